/* Forks: what they share, how they are numbered, what becomes of labels, names and long chains. */
#include <stdio.h>

#include "suite.h"

static sheaf_session *four(suite *t, const char *name)
{
	sheaf_session *s = t_new(t, name);
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	SAY(s, "user", "3", .id = "u2");
	SAY(s, "assistant", "4", .id = "a2");
	return s;
}

CASE(fork_shares_up_to_the_point)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	IDS(t_path(t, f, NULL), "u1 a1");
	LEAF(f, "a1");
	const sheaf_session_info *info = t_head(t, f)->info;
	EQ(info->base, 2);
	EQ(info->revision, 2);
	EQ(info->records, 0);
	TEXT(info->source, "s");
	sheaf_records *r = NULL;
	FAILS(NOT_FOUND, sheaf_session_get(&r, f, S("u2"), &t->err));
	IDS(t_all(t, f), "u1 a1");
}

CASE(fork_numbers_go_on)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	SAY(f, "user", "mine", .id = "f1");
	EQ(t->out.seq, 3);
	SAY(f, "assistant", "mine too", .id = "f2");
	EQ(t->out.seq, 4);
	TEXT(t_get(t, f, "f1")->parent_id, "a1");
	EQ(t_get(t, f, "f1")->parent_seq, 2);
	IDS(t_path(t, f, NULL), "u1 a1 f1 f2");
	IDS(t_path(t, s, NULL), "u1 a1 u2 a2");
	EQ(t_head(t, f)->info->records, 2);
	EQ(t_head(t, f)->info->revision, 4);
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.own_only = 1;
	IDS(t_records(t, f, &o), "f1 f2");
	s = t_restart(t, "f");
	IDS(t_path(t, s, NULL), "u1 a1 f1 f2");
}

CASE(fork_has_the_same_bytes)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = t_fork(t, s, NULL, "f");
	const sheaf_records *a = t_path(t, s, NULL);
	const sheaf_records *b = t_path(t, f, NULL);
	EQ(a->count, b->count);
	for (size_t i = 0; i < a->count; i++)
		BYTES(b->items[i]->line, a->items[i]->line.ptr, a->items[i]->line.len);
}

CASE(fork_at_the_leaf_by_default)
{
	sheaf_session *s = four(t, "s");
	BRANCH(s, NULL, "u2");
	sheaf_session *f = t_fork(t, s, NULL, "f");
	LEAF(f, "u2");
	IDS(t_path(t, f, NULL), "u1 a1 u2");
}

CASE(fork_at_a_label)
{
	sheaf_session *s = four(t, "s");
	LABEL(s, "a1", "good");
	sheaf_session *f = t_fork(t, s, "good", "f");
	LEAF(f, "a1");
	TEXT(t_get(t, f, "good")->id, "a1");
}

CASE(fork_at_nothing_known)
{
	sheaf_session *s = four(t, "s");
	sheaf_key key = t_key(t, "f");
	sheaf_session *f = NULL;
	FAILS(NOT_FOUND, sheaf_session_fork(&f, s, S("ghost"), &key, NULL, &t->err));
	CHECK(f == NULL);
	EQ(t_list_mine(t)->count, 1);
	LABEL(s, "u1", "l");
	const char *fact = t_format(t, "%s", t->out.id);
	FAILS(INVALID, sheaf_session_fork(&f, s, S(fact), &key, NULL, &t->err));
	EQ(t_list_mine(t)->count, 1);
}

CASE(fork_onto_a_taken_key)
{
	sheaf_session *s = four(t, "s");
	t_new(t, "taken");
	sheaf_key key = t_key(t, "taken");
	sheaf_session *f = NULL;
	FAILS(EXISTS, sheaf_session_fork(&f, s, S(NULL), &key, NULL, &t->err));
	key = t_key(t, "s");
	FAILS(EXISTS, sheaf_session_fork(&f, s, S(NULL), &key, NULL, &t->err));
	IDS(t_path(t, s, NULL), "u1 a1 u2 a2");
}

CASE(fork_without_a_key_gets_one)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = t_fork(t, s, NULL, "");
	EQ(strlen(sheaf_session_id(f)), 36);
	EQ(t_list_mine(t)->count, 2);
}

CASE(fork_to_another_owner)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = NULL;
	sheaf_key key = t_key_of(t, "", "somebody", "f");
	FAILS(INVALID, sheaf_session_fork(&f, s, S(NULL), &key, NULL, &t->err));
	key = t_key_of(t, "x", "", "f");
	FAILS(INVALID, sheaf_session_fork(&f, s, S(NULL), &key, NULL, &t->err));
	CHECK(f == NULL);
	EQ(t_list_mine(t)->count, 1);
}

CASE(fork_in_the_middle_of_a_batch)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	ADD(b, "assistant", "2", .id = "a1");
	ADD(b, "user", "3", .id = "u2");
	OK(t_append_batch(t, s, b, (put){0}));
	SAY(s, "assistant", "4", .id = "a2");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	LEAF(f, "a1");
	IDS(t_path(t, f, NULL), "u1 a1");
	EQ(t_head(t, f)->info->base, 3); /* batches are not torn */
	SAY(f, "user", "mine", .id = "f1");
	EQ(t->out.seq, 4);
	IDS(t_path(t, f, NULL), "u1 a1 f1");
	TEXT(t_get(t, f, "u2")->id, "u2");
	f = t_restart(t, "f");
	IDS(t_path(t, f, NULL), "u1 a1 f1");
}

CASE(fork_takes_the_name_along)
{
	sheaf_session *s = four(t, "s");
	OK(t_rename(t, s, "the name"));
	sheaf_session *f = t_fork(t, s, "u1", "f");
	TEXT(t_head(t, f)->info->name, "the name");
	sheaf_key key = t_key(t, "g");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.name = S("its own");
	sheaf_session *g = NULL;
	OK(sheaf_session_fork(&g, s, S(NULL), &key, &o, &t->err));
	t_keep(t, g);
	TEXT(t_head(t, g)->info->name, "its own");
	OK(t_rename(t, f, "changed"));
	TEXT(t_head(t, s)->info->name, "the name");
	f = t_restart(t, "f");
	TEXT(t_head(t, f)->info->name, "changed");
}

CASE(fork_does_not_see_what_comes_later)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = t_fork(t, s, NULL, "f");
	SAY(s, "user", "later", .id = "u3");
	LABEL(s, "u1", "later label");
	OK(t_rename(t, s, "later name"));
	BRANCH(s, "later", "u1");
	IDS(t_path(t, f, NULL), "u1 a1 u2 a2");
	EQ(t_labels(t, f)->count, 0);
	TEXT(t_head(t, f)->info->name, "");
	EQ(t_head(t, f)->branch_count, 1);
	EQ(t_revision(t, f), 4);
}

CASE(fork_of_an_earlier_branch)
{
	sheaf_session *s = four(t, "s");
	BRANCH(s, "side", "u1");
	SAY(s, "assistant", "x", .id = "x1", .branch = "side");
	SAY(s, "user", "y", .id = "x2", .branch = "side");
	sheaf_session *f = t_fork(t, s, "x1", "f");
	LEAF(f, "x1"); /* of main: a fork begins with one branch */
	IDS(t_path(t, f, NULL), "u1 x1");
	EQ(t_head(t, f)->branch_count, 1);
	SAY(f, "user", "z", .id = "f1");
	IDS(t_path(t, f, NULL), "u1 x1 f1");
	TEXT(t_get(t, f, "a2")->id, "a2"); /* inherited, though not on the path */
}

CASE(fork_of_a_fork)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = t_fork(t, s, "u2", "f");
	SAY(f, "assistant", "f", .id = "f1");
	sheaf_session *g = t_fork(t, f, NULL, "g");
	SAY(g, "user", "g", .id = "g1");
	EQ(t->out.seq, 5);
	IDS(t_path(t, g, NULL), "u1 a1 u2 f1 g1");
	sheaf_session *low = t_fork(t, g, "a1", "low"); /* below both bases */
	IDS(t_path(t, low, NULL), "u1 a1");
	EQ(t_head(t, low)->info->base, 2);
	SAY(low, "user", "l", .id = "l1");
	EQ(t->out.seq, 3);
	g = t_restart(t, "g");
	IDS(t_path(t, g, NULL), "u1 a1 u2 f1 g1");
	IDS(t_path(t, t_existing(t, "low"), NULL), "u1 a1 l1");
}

CASE(fork_chain_of_seventy)
{
	/* Beyond 64 links a fork is a copy; nobody who reads it can tell. */
	sheaf_session *s = t_new(t, "f0");
	SAY(s, "user", "0", .id = "e0");
	for (int i = 1; i <= 70; i++) {
		s = t_fork(t, s, NULL, t_format(t, "f%d", i));
		SAY(s, "user", t_format(t, "%d", i), .id = t_format(t, "e%d", i));
		EQ(t->out.seq, (uint64_t)i + 1);
		EQ(t_revision(t, s), (uint64_t)i + 1);
	}
	s = t_restart(t, "f70");
	const sheaf_records *path = t_path(t, s, NULL);
	EQ(path->count, 71);
	for (size_t i = 0; i <= 70; i++) {
		TEXT(path->items[i]->id, t_format(t, "e%zu", i));
		EQ(path->items[i]->seq, i + 1);
	}
	SAY(s, "user", "0", .id = "e0", .root = 1);
	EQ(t->out.existed, 1);
	FAILS(CONFLICT, TRY_SAY(s, "user", "changed", .id = "e33"));
	LABEL(s, "e5", "five");
	TEXT(t_get(t, s, "five")->id, "e5");
	IDS(t_path(t, t_existing(t, "f3"), NULL), "e0 e1 e2 e3");
}

CASE(fork_beyond_the_links)
{
	/* The copy that a fork becomes is all that a fork would have been. */
	sheaf_session *s = t_new(t, "f0");
	SAY(s, "user", "0", .id = "e0");
	for (int i = 1; i <= 64; i++) {
		s = t_fork(t, s, NULL, t_format(t, "f%d", i));
		SAY(s, "user", "x", .id = t_format(t, "e%d", i));
	}
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "b1");
	ADD(b, "assistant", "2", .id = "b2");
	ADD(b, "user", "3", .id = "b3");
	OK(t_append_batch(t, s, b, (put){0}));
	BRANCH(s, "side", "e3");
	SAY(s, "user", "aside", .id = "x1", .branch = "side");
	LABEL(s, "e5", "five");
	LABEL(s, "b3", "three");
	LABEL(s, "x1", "beyond");
	OK(t_rename(t, s, "named"));
	sheaf_session *f = t_fork(t, s, "b2", "copy");
	for (int round = 0; round < 2; round++) {
		LEAF(f, "b2");
		EQ(t_head(t, f)->branch_count, 1);
		TEXT(t_head(t, f)->info->name, "named");
		EQ(t_path(t, f, NULL)->count, 67);
		IDS(t_labels(t, f), "e5 b3");
		sheaf_records *r = NULL;
		FAILS(NOT_FOUND, sheaf_session_get(&r, f, S("x1"), &t->err));
		f = t_restart(t, "copy");
	}
	SAY(f, "user", "on", .id = "n1");
	TEXT(t_get(t, f, "n1")->parent_id, "b2");
	sheaf_key key = t_key(t, "f64");
	sheaf_deleted *d = NULL;
	OK(sheaf_store_delete(&d, t->store, &key, NULL, &t->err));
	int hidden = d->hidden; /* nothing is read from it */
	sheaf_deleted_free(d);
	EQ(hidden, 0);
	EQ(t_path(t, f, NULL)->count, 68);
}

CASE(fork_of_an_empty_session)
{
	/* There is no entry to share anything up to; a copy is what is wanted. */
	sheaf_session *s = t_new(t, "s");
	sheaf_session *f = NULL;
	sheaf_key key = t_key(t, "f");
	FAILS(NOT_FOUND, sheaf_session_fork(&f, s, S(NULL), &key, NULL, &t->err));
	SAY(s, "user", "1", .id = "u1");
	OK(sheaf_session_clear(s, &t->err));
	FAILS(NOT_FOUND, sheaf_session_fork(&f, s, S(NULL), &key, NULL, &t->err));
	EQ(t_list_mine(t)->count, 1);
	f = t_fork(t, s, "u1", "f"); /* after clearing it can still be forked where it stood */
	LEAF(f, "u1");
}

CASE(fork_branches_inside)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = t_fork(t, s, NULL, "f");
	BRANCH(f, NULL, "u1");
	SAY(f, "assistant", "b", .id = "f1");
	BRANCH(f, "side", "a1");
	SAY(f, "user", "c", .id = "f2", .branch = "side");
	IDS(t_path(t, f, NULL), "u1 f1");
	IDS(t_path(t, f, "side"), "u1 a1 f2");
	IDS(t_children(t, f, "u1"), "a1 f1");
	IDS(t_children(t, f, "a1"), "u2 f2");
	LEAF(s, "a2");
	f = t_restart(t, "f");
	IDS(t_path(t, f, "side"), "u1 a1 f2");
}

CASE(fork_usage_counts_once)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_message *m = sheaf_message_new("assistant");
	sheaf_usage u = {.input = 1000, .output = 50};
	sheaf_message_text(m, S("x"));
	sheaf_message_usage(m, &u);
	int rc = sheaf_session_append_message(s, m, NULL, NULL, NULL, &t->err);
	sheaf_session *f = t_fork(t, s, NULL, "f");
	int rc2 = sheaf_session_append_message(f, m, NULL, NULL, NULL, &t->err);
	sheaf_message_free(m);
	EQ(rc, 0);
	EQ(rc2, 0);
	EQ(t_head(t, s)->info->usage.input, 1000);
	EQ(t_head(t, f)->info->usage.input, 1000); /* its own; the other is the source's */
	uint64_t sum = 0;
	const sheaf_list *list = t_list_mine(t);
	for (size_t i = 0; i < list->count; i++)
		sum += list->items[i]->usage.input;
	EQ(sum, 2000);
}

CASE(fork_options)
{
	sheaf_session *s = four(t, "s");
	sheaf_key key = t_key(t, "f");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.kind = S("subagent");
	o.parent_session = S("s");
	o.cwd = S("/tmp/f");
	o.created_us = 1700000000000000;
	sheaf_session *f = NULL;
	OK(sheaf_session_fork(&f, s, S("u1"), &key, &o, &t->err));
	t_keep(t, f);
	const sheaf_session_info *info = t_head(t, f)->info;
	TEXT(info->kind, "subagent");
	TEXT(info->parent_session, "s");
	TEXT(info->cwd, "/tmp/f");
	EQ(info->created_us, 1700000000000000);
	TEXT(info->source, "s");
}

CASE(fork_of_a_deleted_source)
{
	sheaf_session *s = four(t, "s");
	sheaf_key key = t_key(t, "s");
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	key = t_key(t, "f");
	sheaf_session *f = NULL;
	FAILS(GONE, sheaf_session_fork(&f, s, S("u1"), &key, NULL, &t->err));
	EQ(t_list_mine(t)->count, 0);
}

CASE(fork_of_a_hidden_source)
{
	sheaf_session *s = four(t, "s");
	t_fork(t, s, "a1", "f");
	sheaf_key key = t_key(t, "s");
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	key = t_key(t, "g");
	sheaf_session *g = NULL;
	FAILS(GONE, sheaf_session_fork(&g, s, S("u1"), &key, NULL, &t->err));
	EQ(t_list_mine(t)->count, 1);
}

CASE(fork_reads_in_pages_across_the_base)
{
	sheaf_session *s = t_new(t, "s");
	for (int i = 1; i <= 10; i++)
		SAY(s, "user", "s", .id = t_format(t, "s%d", i));
	sheaf_session *f = t_fork(t, s, "s7", "f");
	for (int i = 8; i <= 12; i++)
		SAY(f, "user", "f", .id = t_format(t, "f%d", i));
	sheaf_session *g = t_fork(t, f, "f10", "g");
	SAY(g, "user", "g", .id = "g11");
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.limit = 4;
	const sheaf_records *page = t_records(t, g, &o);
	IDS(page, "s1 s2 s3 s4");
	o.from_seq = page->next_seq;
	page = t_records(t, g, &o);
	IDS(page, "s5 s6 s7 f8");
	o.from_seq = page->next_seq;
	page = t_records(t, g, &o);
	IDS(page, "f9 f10 g11");
	EQ(page->next_seq, 0);
	o.backward = 1;
	o.from_seq = 9;
	page = t_records(t, g, &o);
	IDS(page, "f9 f8 s7 s6");
	o.newest = 1;
	o.backward = 0;
	o.from_seq = 0;
	o.limit = 6;
	IDS(t_records(t, g, &o), "s6 s7 f8 f9 f10 g11");
}
