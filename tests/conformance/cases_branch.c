/* Branches: named leaves that are made, moved, forgotten, and survive a restart. */
#include <stdio.h>

#include "suite.h"

static sheaf_session *three(suite *t)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	SAY(s, "user", "3", .id = "u2");
	return s;
}

CASE(branch_moves_main)
{
	sheaf_session *s = three(t);
	BRANCH(s, NULL, "u1");
	EQ(t->out.seq, 4);
	LEAF(s, "u1");
	IDS(t_path(t, s, NULL), "u1");
	SAY(s, "assistant", "2b", .id = "a2");
	IDS(t_path(t, s, NULL), "u1 a2");
	IDS(t_children(t, s, "u1"), "a1 a2");
	EQ(t_get(t, s, "a1")->seq, 2); /* nothing was lost */
}

CASE(branch_makes_a_new_one)
{
	sheaf_session *s = three(t);
	BRANCH(s, "try", "a1");
	LEAF(s, "u2");
	LEAF_OF(s, "try", "a1");
	SAY(s, "user", "other", .id = "x1", .branch = "try");
	LEAF(s, "u2");
	LEAF_OF(s, "try", "x1");
	IDS(t_path(t, s, "try"), "u1 a1 x1");
	IDS(t_path(t, s, "main"), "u1 a1 u2");
	TEXT(t_get(t, s, "x1")->branch, "try");
	CHECK(t_contains(t_get(t, s, "x1")->line, "\"branch\":\"try\""));
	CHECK(!t_contains(t_get(t, s, "u2")->line, "\"branch\""));
}

CASE(leaf_after_restart)
{
	/* A moved leaf stays where it was put (A1.6). */
	sheaf_session *s = three(t);
	BRANCH(s, NULL, "u1");
	s = t_restart(t, "s");
	LEAF(s, "u1");
	SAY(s, "assistant", "2b", .id = "a2");
	IDS(t_path(t, s, NULL), "u1 a2");
	s = t_restart(t, "s");
	LEAF(s, "a2");
}

CASE(branches_after_restart)
{
	sheaf_session *s = three(t);
	BRANCH(s, "b1", "u1");
	BRANCH(s, "b2", "a1");
	BRANCH(s, "b3", NULL);
	SAY(s, "user", "on b2", .id = "x2", .branch = "b2");
	SAY(s, "user", "on b3", .id = "x3", .branch = "b3");
	OK(sheaf_session_branch_delete(s, S("b1"), NULL, NULL, &t->err));
	s = t_restart(t, "s");
	const sheaf_head_view *h = t_head(t, s);
	EQ(h->branch_count, 3);
	TEXT(h->branches[0]->name, "main");
	LEAF(s, "u2");
	LEAF_OF(s, "b2", "x2");
	LEAF_OF(s, "b3", "x3");
	IDS(t_path(t, s, "b3"), "x3");
	char leaf[SHEAF_ID_ROOM];
	FAILS(NOT_FOUND, sheaf_session_leaf(s, S("b1"), leaf, &t->err));
}

CASE(branch_before_the_first_entry)
{
	sheaf_session *s = three(t);
	BRANCH(s, "fresh", "");
	LEAF_OF(s, "fresh", "");
	IDS(t_path(t, s, "fresh"), "");
	SAY(s, "user", "new root", .id = "r2", .branch = "fresh");
	CHECK(t_get(t, s, "r2")->parent_id.ptr == NULL);
	IDS(t_path(t, s, "fresh"), "r2");
	LEAF(s, "u2");
}

CASE(branch_by_label)
{
	sheaf_session *s = three(t);
	LABEL(s, "a1", "good");
	BRANCH(s, NULL, "good");
	LEAF(s, "a1");
	s = t_restart(t, "s");
	LEAF(s, "a1");
	LABEL(s, "a1", ""); /* the branch holds the entry, not the label */
	LEAF(s, "a1");
}

CASE(branch_to_nothing_known)
{
	sheaf_session *s = three(t);
	FAILS(NOT_FOUND, t_branch(t, s, NULL, "ghost"));
	FAILS(NOT_FOUND, t_branch(t, s, "new", "ghost"));
	EQ(t_revision(t, s), 3);
	EQ(t_head(t, s)->branch_count, 1);
	LABEL(s, "u1", "l");
	const char *fact = t_format(t, "%s", t->out.id);
	FAILS(INVALID, t_branch(t, s, "new", fact));
	EQ(t_revision(t, s), 4);
}

CASE(branch_to_where_it_is)
{
	sheaf_session *s = three(t);
	BRANCH(s, NULL, "u2");
	LEAF(s, "u2");
	SAY(s, "user", "4", .id = "u3");
	IDS(t_path(t, s, NULL), "u1 a1 u2 u3");
}

CASE(branch_to_another_branchs_entry)
{
	sheaf_session *s = three(t);
	BRANCH(s, "side", "u1");
	SAY(s, "assistant", "x", .id = "x1", .branch = "side");
	BRANCH(s, NULL, "x1");
	SAY(s, "user", "y", .id = "y1");
	IDS(t_path(t, s, NULL), "u1 x1 y1");
	LEAF_OF(s, "side", "x1");
}

CASE(branch_delete)
{
	sheaf_session *s = three(t);
	BRANCH(s, "side", "u1");
	SAY(s, "assistant", "x", .id = "x1", .branch = "side");
	OK(sheaf_session_branch_delete(s, S("side"), NULL, NULL, &t->err));
	EQ(t_head(t, s)->branch_count, 1);
	TEXT(t_get(t, s, "x1")->id, "x1"); /* its entries stay */
	IDS(t_children(t, s, "u1"), "a1 x1");
	sheaf_records *r = NULL;
	FAILS(NOT_FOUND, sheaf_session_path(&r, s, S("side"), S(NULL), 0, &t->err));
	OK(sheaf_session_path(&r, s, S(NULL), S("x1"), 0, &t->err));
	IDS(t_keep_records(t, r), "u1 x1");
}

CASE(branch_delete_then_make_again)
{
	sheaf_session *s = three(t);
	BRANCH(s, "side", "u1");
	OK(sheaf_session_branch_delete(s, S("side"), NULL, NULL, &t->err));
	BRANCH(s, "side", "u2");
	s = t_restart(t, "s");
	LEAF_OF(s, "side", "u2");
	EQ(t_head(t, s)->branch_count, 2);
}

CASE(branch_delete_main)
{
	sheaf_session *s = three(t);
	FAILS(INVALID, sheaf_session_branch_delete(s, S("main"), NULL, NULL, &t->err));
	FAILS(INVALID, sheaf_session_branch_delete(s, S(""), NULL, NULL, &t->err));
	LEAF(s, "u2");
	EQ(t_revision(t, s), 3);
}

CASE(branch_delete_unknown)
{
	sheaf_session *s = three(t);
	FAILS(NOT_FOUND, sheaf_session_branch_delete(s, S("ghost"), NULL, NULL, &t->err));
	EQ(t_revision(t, s), 3);
}

CASE(branch_with_summary)
{
	sheaf_session *s = three(t);
	sheaf_appended out = SHEAF_APPENDED_INIT;
	OK(sheaf_session_branch_with_summary(s, S(NULL), S("u1"), S("went nowhere"), NULL, &out,
	                                     &t->err));
	LEAF(s, out.id);
	const sheaf_entry *e = t_get(t, s, out.id);
	EQ(e->kind, SHEAF_KIND_BRANCH_SUMMARY);
	TEXT(e->text, "went nowhere");
	TEXT(e->target_id, "u2"); /* the leaf left behind */
	TEXT(e->parent_id, "u1");
	ITEMS(t_context(t, s), "u1 B(went nowhere)");
	s = t_restart(t, "s");
	LEAF(s, out.id);
	SAY(s, "user", "next", .id = "n1");
	ITEMS(t_context(t, s), "u1 B(went nowhere) n1");
}

CASE(branch_with_summary_to_the_beginning)
{
	sheaf_session *s = three(t);
	sheaf_appended out = SHEAF_APPENDED_INIT;
	OK(sheaf_session_branch_with_summary(s, S(NULL), S(""), S("all wrong"), NULL, &out,
	                                     &t->err));
	const sheaf_entry *e = t_get(t, s, out.id);
	CHECK(e->parent_id.ptr == NULL);
	TEXT(e->target_id, "u2");
	ITEMS(t_context(t, s), "B(all wrong)");
}

CASE(branch_with_summary_on_a_new_branch)
{
	sheaf_session *s = three(t);
	sheaf_appended out = SHEAF_APPENDED_INIT;
	OK(sheaf_session_branch_with_summary(s, S("retry"), S("a1"), S("tried"), NULL, &out,
	                                     &t->err));
	LEAF(s, "u2");
	LEAF_OF(s, "retry", out.id);
	FAILS(NOT_FOUND, sheaf_session_branch_with_summary(s, S(NULL), S("ghost"), S("x"), NULL,
	                                                   NULL, &t->err));
	LEAF(s, "u2");
}

CASE(clear_starts_over)
{
	sheaf_session *s = three(t);
	LABEL(s, "u1", "kept");
	OK(t_rename(t, s, "kept name"));
	OK(sheaf_session_clear(s, &t->err));
	LEAF(s, "");
	EQ(t_path(t, s, NULL)->count, 0);
	EQ(t_context(t, s)->count, 0);
	EQ(t_all(t, s)->count, 6);              /* nothing is deleted */
	TEXT(t_get(t, s, "u1")->label, "kept"); /* and facts stay */
	TEXT(t_head(t, s)->info->name, "kept name");
	SAY(s, "user", "again", .id = "r2");
	IDS(t_path(t, s, NULL), "r2");
	s = t_restart(t, "s");
	IDS(t_path(t, s, NULL), "r2");
}

CASE(clear_twice_and_empty)
{
	sheaf_session *s = t_new(t, "s");
	OK(sheaf_session_clear(s, &t->err));
	LEAF(s, "");
	SAY(s, "user", "1", .id = "u1");
	OK(sheaf_session_clear(s, &t->err));
	OK(sheaf_session_clear(s, &t->err));
	LEAF(s, "");
	s = t_restart(t, "s");
	LEAF(s, "");
}

CASE(branches_main_is_first)
{
	sheaf_session *s = t_new(t, "s");
	BRANCH(s, "aaa", "");
	SAY(s, "user", "x", .id = "x1", .branch = "aaa");
	const sheaf_head_view *h = t_head(t, s);
	EQ(h->branch_count, 2);
	TEXT(h->branches[0]->name, "main");
	CHECK(h->branches[0]->leaf.ptr == NULL);
	TEXT(h->branches[1]->name, "aaa");
	TEXT(h->branches[1]->leaf, "x1");
	EQ(h->branches[1]->leaf_seq, 2);
}

CASE(branch_records_filter)
{
	sheaf_session *s = three(t);
	BRANCH(s, "side", "u1");
	SAY(s, "assistant", "x", .id = "x1", .branch = "side");
	SAY(s, "user", "4", .id = "u3");
	SAY(s, "user", "y", .id = "x2", .branch = "side");
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.branch = S("side");
	o.kinds = SHEAF_KINDS_ENTRIES;
	IDS(t_records(t, s, &o), "x1 x2");
	o.branch = S("main");
	IDS(t_records(t, s, &o), "u1 a1 u2 u3");
}

CASE(branch_append_to_an_unknown_one)
{
	sheaf_session *s = three(t);
	FAILS(NOT_FOUND,
	      TRY_SAY(s, "user", "x", .id = "x1", .branch = "new")); /* a slip of the pen */
	EQ(t_revision(t, s), 3);
	SAY(s, "user", "x", .id = "x1", .branch = "new",
	    .parent = "a1"); /* with a parent it is meant */
	LEAF_OF(s, "new", "x1");
	LEAF(s, "u2");
	SAY(s, "user", "r", .id = "r1", .branch = "fresh", .root = 1);
	EQ(t_head(t, s)->branch_count, 3);
	s = t_restart(t, "s");
	IDS(t_path(t, s, "new"), "u1 a1 x1");
	IDS(t_path(t, s, "fresh"), "r1");
}
