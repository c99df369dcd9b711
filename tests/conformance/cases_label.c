/* Labels: facts that name entries, the latest of which holds. */
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

CASE(label_is_read_back)
{
	sheaf_session *s = three(t);
	LABEL(s, "u1", "first-greeting");
	EQ(t->out.seq, 4);
	const sheaf_records *labels = t_labels(t, s);
	IDS(labels, "u1");
	TEXT(labels->items[0]->label, "first-greeting");
	TEXT(t_get(t, s, "u1")->label, "first-greeting");
	TEXT(t_path(t, s, NULL)->items[0]->label, "first-greeting");
	CHECK(t_path(t, s, NULL)->items[1]->label.ptr == NULL);
	const sheaf_entry *fact = t_all(t, s)->items[3];
	EQ(fact->kind, SHEAF_KIND_LABEL);
	TEXT(fact->body, "\"label\":{\"target_id\":\"u1\",\"label\":\"first-greeting\"}");
	CHECK(!t_contains(fact->line, "parent_id"));
}

CASE(label_latest_holds)
{
	sheaf_session *s = three(t);
	LABEL(s, "u1", "one");
	LABEL(s, "u1", "two");
	IDS(t_labels(t, s), "u1");
	TEXT(t_get(t, s, "u1")->label, "two");
	s = t_restart(t, "s");
	TEXT(t_get(t, s, "u1")->label, "two");
	sheaf_records *r = NULL;
	FAILS(NOT_FOUND, sheaf_session_get(&r, s, S("one"), &t->err)); /* no name any more */
	TEXT(t_get(t, s, "two")->id, "u1");
}

CASE(label_taken_away)
{
	sheaf_session *s = three(t);
	LABEL(s, "u1", "one");
	LABEL(s, "u1", "");
	EQ(t_labels(t, s)->count, 0);
	CHECK(t_get(t, s, "u1")->label.ptr == NULL);
	LABEL(s, "a1", ""); /* it had none */
	EQ(t_labels(t, s)->count, 0);
	s = t_restart(t, "s");
	EQ(t_labels(t, s)->count, 0);
	LABEL(s, "u1", "again");
	TEXT(t_get(t, s, "again")->id, "u1");
}

CASE(labels_in_the_order_of_entries)
{
	sheaf_session *s = three(t);
	LABEL(s, "u2", "z");
	LABEL(s, "u1", "y");
	LABEL(s, "a1", "x");
	const sheaf_records *labels = t_labels(t, s);
	IDS(labels, "u1 a1 u2");
	TEXT(labels->items[0]->label, "y");
	TEXT(labels->items[1]->label, "x");
	TEXT(labels->items[2]->label, "z");
	CHECK(labels->items[0]->message != NULL);
}

CASE(label_stands_for_an_id)
{
	sheaf_session *s = three(t);
	LABEL(s, "a1", "here");
	TEXT(t_get(t, s, "here")->id, "a1");
	IDS(t_children(t, s, "here"), "u2");
	sheaf_records *r = NULL;
	OK(sheaf_session_path(&r, s, S(NULL), S("here"), 0, &t->err));
	IDS(t_keep_records(t, r), "u1 a1");
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	o.leaf = S("here");
	ITEMS(t_context_with(t, s, &o), "u1 a1");
	char id[SHEAF_ID_ROOM];
	OK(sheaf_session_resolve(s, S("here"), id, &t->err));
	CSTR(id, "a1");
}

CASE(label_by_another_label)
{
	sheaf_session *s = three(t);
	LABEL(s, "a1", "old");
	LABEL(s, "old", "new");
	TEXT(t_get(t, s, "a1")->label, "new");
	TEXT(t_all(t, s)->items[4]->target_id, "a1"); /* the entry is recorded, not its name */
}

CASE(label_on_nothing_known)
{
	sheaf_session *s = three(t);
	FAILS(NOT_FOUND, t_label(t, s, "ghost", "l"));
	CHECK(t_label(t, s, "", "l") != 0);
	EQ(t_revision(t, s), 3);
}

CASE(label_on_a_fact)
{
	sheaf_session *s = three(t);
	LABEL(s, "u1", "l");
	const char *fact = t_format(t, "%s", t->out.id);
	FAILS(INVALID, t_label(t, s, fact, "m"));
	EQ(t_revision(t, s), 4);
}

CASE(label_moves_no_leaf)
{
	sheaf_session *s = three(t);
	LABEL(s, "u1", "l");
	LEAF(s, "u2");
	SAY(s, "assistant", "4", .id = "a2");
	TEXT(t_get(t, s, "a2")->parent_id, "u2");
	IDS(t_path(t, s, NULL), "u1 a1 u2 a2");
	ITEMS(t_context(t, s), "u1 a1 u2 a2");
}

CASE(label_any_text)
{
	sheaf_session *s = three(t);
	static const char *const texts[] = {"ü → 日本語 🎉", "with \"quotes\" and \\",
	                                    "tab\tand\nline", " ", "{\"json\":1}"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		LABEL(s, "a1", texts[i]);
		TEXT(t_get(t, s, "a1")->label, texts[i]);
		TEXT(t_get(t, s, texts[i])->id, "a1");
	}
	s = t_restart(t, "s");
	TEXT(t_labels(t, s)->items[0]->label, texts[4]);
	FAILS(INVALID,
	      sheaf_session_label(s, S("u1"), (sheaf_str){"\xc3", 1}, NULL, NULL, &t->err));
}

CASE(label_that_looks_like_an_id)
{
	sheaf_session *s = three(t);
	LABEL(s, "u2", "u1"); /* an id is an id first */
	TEXT(t_get(t, s, "u1")->id, "u1");
	BRANCH(s, NULL, "u1");
	LEAF(s, "u1");
	TEXT(t_get(t, s, "u2")->label, "u1");
}

CASE(label_moves_to_another_entry)
{
	sheaf_session *s = three(t);
	LABEL(s, "u1", "best");
	LABEL(s, "u2", "best"); /* the newest entry so labelled is meant */
	TEXT(t_get(t, s, "best")->id, "u2");
	LABEL(s, "u2", "");
	IDS(t_labels(t, s), "u1");
	TEXT(t_get(t, s, "best")->id, "u1");
}

CASE(label_then_fork)
{
	/* A label in the middle of a path changes nothing in a fork's context (A1.1). */
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	LABEL(s, "u1", "mark");
	SAY(s, "user", "3", .id = "u2");
	SAY(s, "assistant", "4", .id = "a2");
	ITEMS(t_context(t, s), "u1 a1 u2 a2");
	sheaf_session *f = t_fork(t, s, NULL, "f");
	ITEMS(t_context(t, f), "u1 a1 u2 a2");
	TEXT(t_get(t, f, "mark")->id, "u1");
	f = t_restart(t, "f");
	ITEMS(t_context(t, f), "u1 a1 u2 a2");
	IDS(t_labels(t, f), "u1");
	s = t_existing(t, "s");
	sheaf_session *e = NULL;
	sheaf_key key = t_key(t, "e");
	OK(sheaf_session_export_path(&e, s, S(NULL), t->store, &key, &t->err));
	t_keep(t, e);
	ITEMS(t_context(t, e), "u1 a1 u2 a2");
	TEXT(t_get(t, e, "mark")->id, "u1");
}

CASE(label_set_after_the_fork_point)
{
	sheaf_session *s = three(t);
	LABEL(s, "u1", "late label");
	LABEL(s, "u2", "beyond");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	IDS(t_labels(t, f), "u1");
	TEXT(t_get(t, f, "late label")->id, "u1");
	sheaf_records *r = NULL;
	FAILS(NOT_FOUND, sheaf_session_get(&r, f, S("beyond"), &t->err));
	LABEL(f, "u1", "changed in the fork");
	TEXT(t_get(t, s, "u1")->label, "late label");
	TEXT(t_get(t, f, "u1")->label, "changed in the fork");
}

CASE(label_removed_after_the_fork_point)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	LABEL(s, "u1", "old");
	SAY(s, "assistant", "2", .id = "a1");
	LABEL(s, "u1", "");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	EQ(t_labels(t, f)->count, 0); /* as it is now, not as it was then */
}

CASE(label_many)
{
	sheaf_session *s = t_new(t, "s");
	for (int i = 0; i < 40; i++)
		SAY(s, "user", "x", .id = t_format(t, "u%02d", i));
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 40; i += 3)
			LABEL(s, t_format(t, "u%02d", i), t_format(t, "r%d-%d", round, i));
	s = t_restart(t, "s");
	const sheaf_records *labels = t_labels(t, s);
	EQ(labels->count, 14);
	TEXT(labels->items[13]->label, "r2-39");
	TEXT(t_get(t, s, "r2-21")->id, "u21");
}
