/* Copies with the same bytes, and paths exported as linear sessions. */
#include <stdio.h>

#include "suite.h"

static sheaf_session *rich(suite *t, const char *name)
{
	sheaf_session *s = t_new(t, name);
	SAY(s, "user", "1", .id = "u1");
	sheaf_batch *b = t_batch(t);
	ADD(b, "assistant", "2", .id = "a1");
	ADD(b, "user", "3", .id = "u2");
	OK(t_append_batch(t, s, b, (put){0}));
	LABEL(s, "u1", "first");
	BRANCH(s, "side", "a1");
	SAY(s, "user", "x", .id = "x1", .branch = "side");
	OK(sheaf_session_rename(s, S("the name"), S("{\"k\":1}"), NULL, NULL, &t->err));
	COMPACT(s, "sum", "u2", .id = "c1");
	return s;
}

static void same_records(suite *t, sheaf_session *a, sheaf_session *b)
{
	const sheaf_records *x = t_all(t, a);
	const sheaf_records *y = t_all(t, b);
	EQ(x->count, y->count);
	for (size_t i = 0; i < x->count; i++) {
		EQ(x->items[i]->seq, y->items[i]->seq);
		BYTES(y->items[i]->line, x->items[i]->line.ptr, x->items[i]->line.len);
	}
}

CASE(copy_to_another_store)
{
	sheaf_session *s = rich(t, "s");
	suite_place *other = suite_other(t);
	sheaf_key key = {S(other->app), S(""), S("copied")};
	sheaf_session *c = NULL;
	OK(sheaf_session_copy(&c, s, other->store, &key, &t->err));
	t_keep(t, c);
	same_records(t, s, c);
	CSTR(sheaf_session_id(c), "copied");
	LEAF(c, "c1");
	LEAF_OF(c, "side", "x1");
	TEXT(t_get(t, c, "first")->id, "u1");
	TEXT(t_head(t, c)->info->name, "the name");
	TEXT(t_head(t, c)->metadata, "{\"k\":1}");
	ITEMS(t_context(t, c), "S(sum) u2");
	EQ(t_context(t, c)->prefix_hash, t_context(t, s)->prefix_hash);
	SAY(c, "user", "goes on", .id = "n1"); /* it is a session like any other */
	EQ(t->out.seq, t_revision(t, s) + 1);
	LEAF(s, "c1");
	SAY(c, "user", "1", .id = "u1");
	EQ(t->out.existed, 1);
}

CASE(copy_within_a_store)
{
	sheaf_session *s = rich(t, "s");
	sheaf_key key = t_key(t, "copy");
	sheaf_session *c = NULL;
	OK(sheaf_session_copy(&c, s, t->store, &key, &t->err));
	t_keep(t, c);
	same_records(t, s, c);
	t_close(t, s);
	key = t_key(t, "s");
	sheaf_deleted *d = NULL;
	OK(sheaf_store_delete(&d, t->store, &key, NULL, &t->err));
	int hidden = d->hidden; /* a copy reads nothing of it */
	sheaf_deleted_free(d);
	EQ(hidden, 0);
	c = t_restart(t, "copy");
	ITEMS(t_context(t, c), "S(sum) u2");
}

CASE(copy_of_a_fork_is_whole)
{
	sheaf_session *s = rich(t, "s");
	sheaf_session *f = t_fork(t, s, "u2", "f");
	SAY(f, "user", "mine", .id = "f1");
	suite_place *other = suite_other(t);
	sheaf_key key = {S(other->app), S(""), S("whole")};
	sheaf_session *c = NULL;
	OK(sheaf_session_copy(&c, f, other->store, &key, &t->err));
	t_keep(t, c);
	same_records(t, f, c);
	IDS(t_path(t, c, NULL), "u1 a1 u2 f1");
	EQ(t_head(t, c)->info->base, 0);
	EQ(t_revision(t, c), t_revision(t, f));
	TEXT(t_get(t, c, "first")->id, "u1");
	SAY(c, "user", "on", .id = "c9");
	EQ(t_get(t, c, "c9")->parent_seq, t_get(t, c, "f1")->seq);
}

CASE(copy_onto_a_taken_key)
{
	sheaf_session *s = rich(t, "s");
	t_new(t, "taken");
	sheaf_key key = t_key(t, "taken");
	sheaf_session *c = NULL;
	FAILS(EXISTS, sheaf_session_copy(&c, s, t->store, &key, &t->err));
	CHECK(c == NULL);
	EQ(t_revision(t, t_existing(t, "taken")), 0);
}

CASE(copy_of_an_empty_session)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_key key = t_key(t, "c");
	sheaf_session *c = NULL;
	OK(sheaf_session_copy(&c, s, t->store, &key, &t->err));
	t_keep(t, c);
	EQ(t_revision(t, c), 0);
	SAY(c, "user", "1", .id = "u1");
	EQ(t->out.seq, 1);
}

CASE(copy_of_many)
{
	sheaf_session *s = t_new(t, "s");
	for (int k = 0; k < 3; k++) {
		sheaf_batch *b = t_batch(t);
		for (int i = 0; i < 3000; i++)
			ADD(b, "user", "some text", .id = t_format(t, "e%d-%d", k, i));
		OK(t_append_batch(t, s, b, (put){0}));
	}
	suite_place *other = suite_other(t);
	sheaf_key key = {S(other->app), S(""), S("c")};
	sheaf_session *c = NULL;
	OK(sheaf_session_copy(&c, s, other->store, &key, &t->err));
	t_keep(t, c);
	EQ(t_revision(t, c), 9000);
	same_records(t, s, c);
}

CASE(export_a_path)
{
	sheaf_session *s = rich(t, "s");
	suite_place *other = suite_other(t);
	sheaf_key key = {S(other->app), S(""), S("line")};
	sheaf_session *e = NULL;
	OK(sheaf_session_export_path(&e, s, S("x1"), other->store, &key, &t->err));
	t_keep(t, e);
	const sheaf_records *path = t_path(t, e, NULL);
	IDS(path, "u1 a1 x1");
	LEAF(e, "x1");
	EQ(t_head(t, e)->branch_count, 1);
	for (size_t i = 0; i < 3; i++)
		TEXT(path->items[i]->branch, "main");
	TEXT(t_get(t, e, "first")->id, "u1");
	sheaf_records *r = NULL;
	FAILS(NOT_FOUND, sheaf_session_get(&r, e, S("u2"), &t->err));
	BYTES(path->items[2]->body, t_get(t, s, "x1")->body.ptr, t_get(t, s, "x1")->body.len);
	EQ(path->items[2]->time_us, t_get(t, s, "x1")->time_us);
	SAY(e, "user", "on", .id = "n1");
	IDS(t_path(t, e, NULL), "u1 a1 x1 n1");
}

CASE(export_mains_leaf)
{
	sheaf_session *s = rich(t, "s");
	sheaf_key key = t_key(t, "line");
	sheaf_session *e = NULL;
	OK(sheaf_session_export_path(&e, s, S(NULL), t->store, &key, &t->err));
	t_keep(t, e);
	IDS(t_path(t, e, NULL), "u1 a1 u2 c1");
	ITEMS(t_context(t, e), "S(sum) u2");
	EQ(t_context(t, e)->prefix_hash, t_context(t, s)->prefix_hash);
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.kinds = SHEAF_KINDS_ENTRIES;
	EQ(t_records(t, e, &o)->count, 4);
}

CASE(export_of_a_fork)
{
	sheaf_session *s = rich(t, "s");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	SAY(f, "user", "mine", .id = "f1");
	LABEL(f, "f1", "own");
	sheaf_key key = t_key(t, "line");
	sheaf_session *e = NULL;
	OK(sheaf_session_export_path(&e, f, S("own"), t->store, &key, &t->err));
	t_keep(t, e);
	IDS(t_path(t, e, NULL), "u1 a1 f1");
	IDS(t_labels(t, e), "u1 f1");
	EQ(t_head(t, e)->info->base, 0);
}

CASE(export_of_nothing_known)
{
	sheaf_session *s = rich(t, "s");
	sheaf_key key = t_key(t, "line");
	sheaf_session *e = NULL;
	FAILS(NOT_FOUND, sheaf_session_export_path(&e, s, S("ghost"), t->store, &key, &t->err));
	EQ(t_list_mine(t)->count, 1);
	key = t_key(t, "s");
	FAILS(EXISTS, sheaf_session_export_path(&e, s, S(NULL), t->store, &key, &t->err));
}
