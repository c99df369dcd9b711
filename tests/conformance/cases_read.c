/* Reading records: pages in both directions, filters, one record, children, prefixes, snapshots. */
#include <stdio.h>

#include "suite.h"

/* Ten records: entries e1 … e10 at seconds 1 … 10, with facts at 3 and 7. */
static sheaf_session *ten(suite *t)
{
	sheaf_session *s = t_new(t, "s");
	for (int i = 1; i <= 10; i++) {
		put p = {.id = t_format(t, "e%d", i), .time_us = i * 1000000};
		if (i == 3 || i == 7)
			OK(t_json(t, s, "label",
			          t_format(t,
			                   "{\"label\":{\"target_id\":\"e1\",\"label\":\"l%d\"}}",
			                   i),
			          p));
		else
			OK(t_say(t, s, i % 2 ? "user" : "assistant", t_format(t, "text %d", i), p));
	}
	return s;
}

CASE(records_in_order)
{
	sheaf_session *s = ten(t);
	const sheaf_records *r = t_records(t, s, NULL);
	IDS(r, "e1 e2 e3 e4 e5 e6 e7 e8 e9 e10");
	EQ(r->next_seq, 0);
	EQ(r->revision, 10);
	EQ(r->items[2]->kind, SHEAF_KIND_LABEL);
	TEXT(r->items[2]->text, "l3");
	TEXT(r->items[2]->target_id, "e1");
	TEXT(r->items[9]->message->parts[0]->text, "text 10");
}

CASE(records_in_pages)
{
	sheaf_session *s = ten(t);
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.limit = 4;
	const sheaf_records *r = t_records(t, s, &o);
	IDS(r, "e1 e2 e3 e4");
	EQ(r->next_seq, 5);
	o.from_seq = r->next_seq;
	r = t_records(t, s, &o);
	IDS(r, "e5 e6 e7 e8");
	o.from_seq = r->next_seq;
	r = t_records(t, s, &o);
	IDS(r, "e9 e10");
	EQ(r->next_seq, 0);
	o.from_seq = 7;
	o.limit = 4; /* ends exactly at the end */
	r = t_records(t, s, &o);
	IDS(r, "e7 e8 e9 e10");
	EQ(r->next_seq, 0);
	o.from_seq = 11;
	r = t_records(t, s, &o);
	EQ(r->count, 0);
	EQ(r->next_seq, 0);
}

CASE(records_backward)
{
	sheaf_session *s = ten(t);
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.backward = 1;
	o.limit = 4;
	const sheaf_records *r = t_records(t, s, &o);
	IDS(r, "e10 e9 e8 e7");
	EQ(r->next_seq, 6);
	o.from_seq = r->next_seq;
	r = t_records(t, s, &o);
	IDS(r, "e6 e5 e4 e3");
	o.from_seq = r->next_seq;
	r = t_records(t, s, &o);
	IDS(r, "e2 e1");
	EQ(r->next_seq, 0);
	o.from_seq = 999; /* beyond the end is the end */
	o.limit = 1;
	IDS(t_records(t, s, &o), "e10");
}

CASE(records_by_kind)
{
	sheaf_session *s = ten(t);
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.kinds = SHEAF_KIND_BIT(SHEAF_KIND_LABEL);
	IDS(t_records(t, s, &o), "e3 e7");
	o.backward = 1;
	IDS(t_records(t, s, &o), "e7 e3");
	o.backward = 0;
	o.kinds = SHEAF_KINDS_ENTRIES;
	o.limit = 3;
	const sheaf_records *r = t_records(t, s, &o);
	IDS(r, "e1 e2 e4"); /* the limit counts what is given */
	o.from_seq = r->next_seq;
	IDS(t_records(t, s, &o), "e5 e6 e8");
	o = (sheaf_read_options)SHEAF_READ_OPTIONS_INIT;
	o.kinds = SHEAF_KIND_BIT(SHEAF_KIND_TODO);
	EQ(t_records(t, s, &o)->count, 0);
	o.kinds = SHEAF_KINDS_ALL;
	EQ(t_records(t, s, &o)->count, 10);
}

CASE(records_newest_then_after)
{
	sheaf_session *s = ten(t);
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.newest = 1;
	o.limit = 3;
	IDS(t_records(t, s, &o), "e8 e9 e10");
	o.after_us = 9000000; /* applied to those three */
	IDS(t_records(t, s, &o), "e9 e10");
	o.after_us = 2000000;
	IDS(t_records(t, s, &o), "e8 e9 e10");
	o.limit = 20;
	o.after_us = 6000000;
	IDS(t_records(t, s, &o), "e6 e7 e8 e9 e10");
	o.limit = 4;
	o.after_us = 0;
	o.kinds = SHEAF_KINDS_ENTRIES;
	IDS(t_records(t, s, &o), "e6 e8 e9 e10");
	SAY(s, "user", "the clock went back", .id = "x1", .time_us = 1000000);
	o.limit = 3;
	o.after_us = 8000000; /* the newest three by number; older ones do not move up */
	IDS(t_records(t, s, &o), "e9 e10");
}

CASE(records_after_a_time)
{
	sheaf_session *s = ten(t);
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.after_us = 8000000;
	IDS(t_records(t, s, &o), "e8 e9 e10");
	o.limit = 2;
	const sheaf_records *r = t_records(t, s, &o);
	IDS(r, "e8 e9");
	o.from_seq = r->next_seq;
	IDS(t_records(t, s, &o), "e10");
	o.from_seq = 0;
	o.after_us = 99000000;
	EQ(t_records(t, s, &o)->count, 0);
}

CASE(records_raw)
{
	sheaf_session *s = ten(t);
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.raw = 1;
	const sheaf_records *raw = t_records(t, s, &o);
	const sheaf_records *full = t_records(t, s, NULL);
	EQ(raw->count, 10);
	for (size_t i = 0; i < 10; i++) {
		BYTES(raw->items[i]->line, full->items[i]->line.ptr, full->items[i]->line.len);
		TEXT(raw->items[i]->id, t_format(t, "e%zu", i + 1));
		EQ(raw->items[i]->seq, i + 1);
		EQ(raw->items[i]->kind, full->items[i]->kind);
		EQ(raw->items[i]->time_us, (i + 1) * 1000000);
		CHECK(raw->items[i]->message == NULL);
	}
}

CASE(records_of_an_empty_session)
{
	sheaf_session *s = t_new(t, "s");
	const sheaf_records *r = t_records(t, s, NULL);
	EQ(r->count, 0);
	EQ(r->next_seq, 0);
	EQ(r->revision, 0);
	EQ(t_path(t, s, NULL)->count, 0);
	EQ(t_labels(t, s)->count, 0);
	EQ(t_children(t, s, "")->count, 0);
	EQ(t_tree(t, s)->node_count, 0);
	EQ(t_context(t, s)->count, 0);
	EQ(t_head(t, s)->branch_count, 1);
}

CASE(records_limits)
{
	sheaf_session *s = ten(t);
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.limit = 100000;
	EQ(t_records(t, s, &o)->count, 10);
	o.limit = 100001;
	sheaf_records *r = NULL;
	int rc = sheaf_session_records(&r, s, &o, &t->err);
	CHECK(rc == SHEAF_LIMIT || rc == SHEAF_INVALID);
	o.limit = 0;
	for (int i = 0; i < 100; i++)
		SAY(s, "user", "more");
	EQ(t_records(t, s, &o)->count, 100); /* the default */
}

CASE(path_as_recorded)
{
	sheaf_session *s = ten(t);
	const sheaf_records *p = t_path(t, s, NULL);
	IDS(p, "e1 e2 e4 e5 e6 e8 e9 e10"); /* facts are no nodes */
	TEXT(p->items[0]->label, "l7");
	EQ(p->revision, 10);
	for (size_t i = 0; i < p->count; i++)
		CHECK(p->items[i]->message != NULL);
}

CASE(path_newest_only)
{
	sheaf_session *s = ten(t);
	sheaf_records *r = NULL;
	OK(sheaf_session_path(&r, s, S(NULL), S(NULL), 3, &t->err));
	IDS(t_keep_records(t, r), "e8 e9 e10");
	OK(sheaf_session_path(&r, s, S(NULL), S(NULL), 100, &t->err));
	EQ(t_keep_records(t, r)->count, 8);
	OK(sheaf_session_path(&r, s, S(NULL), S("e5"), 2, &t->err));
	IDS(t_keep_records(t, r), "e4 e5");
}

CASE(path_of_an_old_entry)
{
	sheaf_session *s = ten(t);
	BRANCH(s, NULL, "e2");
	sheaf_records *r = NULL;
	OK(sheaf_session_path(&r, s, S(NULL), S("e9"), 0, &t->err));
	IDS(t_keep_records(t, r), "e1 e2 e4 e5 e6 e8 e9");
	OK(sheaf_session_path(&r, s, S("main"), S("e1"), 0, &t->err));
	IDS(t_keep_records(t, r), "e1");
}

CASE(path_of_many)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	for (int i = 0; i < 2000; i++)
		ADD(b, "user", "x", .id = t_format(t, "e%d", i));
	OK(t_append_batch(t, s, b, (put){0}));
	BRANCH(s, "side", "e0");
	sheaf_batch *c = t_batch(t);
	for (int i = 0; i < 2000; i++)
		ADD(c, "user", "y", .id = t_format(t, "s%d", i), .branch = "side");
	OK(t_append_batch(t, s, c, (put){0}));
	const sheaf_records *p = t_path(t, s, NULL);
	EQ(p->count, 2000);
	TEXT(p->items[1999]->id, "e1999");
	p = t_path(t, s, "side");
	EQ(p->count, 2001);
	TEXT(p->items[1]->id, "s0");
}

CASE(get_one)
{
	sheaf_session *s = ten(t);
	const sheaf_entry *e = t_get(t, s, "e4");
	EQ(e->seq, 4);
	TEXT(e->message->parts[0]->text, "text 4");
	TEXT(t_get(t, s, "l7")->id, "e1");
	EQ(t_get(t, s, "e3")->kind, SHEAF_KIND_LABEL); /* a fact is a record too */
	sheaf_records *r = NULL;
	FAILS(NOT_FOUND, sheaf_session_get(&r, s, S("e11"), &t->err));
	FAILS(NOT_FOUND, sheaf_session_get(&r, s, S("e"), &t->err));
}

CASE(children_oldest_first)
{
	sheaf_session *s = ten(t);
	SAY(s, "user", "a", .id = "x1", .parent = "e2");
	SAY(s, "user", "b", .id = "x2", .parent = "e2");
	SAY(s, "user", "c", .id = "r2", .root = 1);
	IDS(t_children(t, s, "e2"), "e4 x1 x2");
	IDS(t_children(t, s, ""), "e1 r2");
	IDS(t_children(t, s, "x2"), "");
	IDS(t_children(t, s, "l7"), "e2");
	CHECK(t_children(t, s, "e2")->items[1]->message != NULL);
}

CASE(resolve_by_prefix)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "abcdef-1");
	SAY(s, "user", "2", .id = "abcdef-2");
	SAY(s, "user", "3", .id = "abcx");
	SAY(s, "user", "4", .id = "abcxyz");
	char id[SHEAF_ID_ROOM];
	OK(sheaf_session_resolve(s, S("abcdef-1"), id, &t->err));
	CSTR(id, "abcdef-1");
	FAILS(INVALID, sheaf_session_resolve(s, S("abcd"), id, &t->err));
	FAILS(INVALID, sheaf_session_resolve(s, S("abcdef-"), id, &t->err));
	OK(sheaf_session_resolve(s, S("abcxy"), id, &t->err));
	CSTR(id, "abcxyz");
	OK(sheaf_session_resolve(s, S("abcx"), id, &t->err)); /* a whole id beats a prefix */
	CSTR(id, "abcx");
	FAILS(NOT_FOUND,
	      sheaf_session_resolve(s, S("abc"), id, &t->err)); /* too short to mean one */
	FAILS(NOT_FOUND, sheaf_session_resolve(s, S("zzzz"), id, &t->err));
	LABEL(s, "abcdef-2", "zzz");
	OK(sheaf_session_resolve(s, S("zzz"), id, &t->err));
	CSTR(id, "abcdef-2");
	CHECK(sheaf_session_resolve(s, S(""), id, &t->err) != 0);
}

CASE(resolve_prefix_of_inherited)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "source-1");
	SAY(s, "user", "2", .id = "source-2");
	sheaf_session *f = t_fork(t, s, "source-1", "f");
	SAY(f, "user", "3", .id = "forked-1");
	char id[SHEAF_ID_ROOM];
	OK(sheaf_session_resolve(f, S("sour"), id, &t->err)); /* the other is not inherited */
	CSTR(id, "source-1");
	OK(sheaf_session_resolve(f, S("fork"), id, &t->err));
	CSTR(id, "forked-1");
	FAILS(INVALID, sheaf_session_resolve(s, S("sour"), id, &t->err));
}

CASE(snapshots_do_not_change)
{
	sheaf_session *s = ten(t);
	const sheaf_records *path = t_path(t, s, NULL);
	const sheaf_head_view *head = t_head(t, s);
	const sheaf_context *context = t_context(t, s);
	const sheaf_tree *tree = t_tree(t, s);
	const sheaf_list *list = t_list_mine(t);
	const sheaf_records *labels = t_labels(t, s);
	SAY(s, "user", "later", .id = "late");
	LABEL(s, "e1", "changed");
	OK(t_rename(t, s, "renamed"));
	BRANCH(s, NULL, "e1");
	t_close(t, s);
	sheaf_key key = t_key(t, "s");
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	/* What was read lives on by itself: the session, even its log, is gone. */
	IDS(path, "e1 e2 e4 e5 e6 e8 e9 e10");
	TEXT(path->items[0]->label, "l7");
	TEXT(path->items[7]->message->parts[0]->text, "text 10");
	TEXT(head->info->name, "");
	EQ(head->info->revision, 10);
	TEXT(head->branches[0]->leaf, "e10");
	EQ(context->count, 8);
	TEXT(context->items[7]->message->parts[0]->text, "text 10");
	EQ(tree->node_count, 8);
	EQ(list->items[0]->records, 10);
	TEXT(labels->items[0]->label, "l7");
}

CASE(snapshots_are_copies)
{
	sheaf_session *s = t_new(t, "s");
	char text[] = "mine to change";
	char id[] = "u1";
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_text(m, S(text));
	text[0] = 'X'; /* the builder has copied it */
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S(id);
	int rc = sheaf_session_append_message(s, m, &e, NULL, NULL, &t->err);
	id[0] = 'X';
	sheaf_message_free(m);
	EQ(rc, 0);
	TEXT(t_get(t, s, "u1")->message->parts[0]->text, "mine to change");
	/* Two readers have two copies. */
	CHECK(t_get(t, s, "u1")->line.ptr != t_get(t, s, "u1")->line.ptr);
}

CASE(head_tells_the_whole)
{
	sheaf_session *s = ten(t);
	OK(sheaf_session_rename(s, S("A title"), S("{\"b\":1,\"a\":[2]}"), NULL, NULL, &t->err));
	const sheaf_head_view *h = t_head(t, s);
	EQ(h->info->revision, 11);
	EQ(h->info->records, 11);
	EQ(h->info->messages, 8);
	EQ(h->info->turns, 0);
	TEXT(h->info->name, "A title");
	TEXT(h->metadata, "{\"b\":1,\"a\":[2]}");
	TEXT(h->info->preview, "text 1");
	TEXT(h->info->kind, "main");
	EQ(h->readonly, 0);
	EQ(h->damaged, 0);
	OK(t_rename(t, s, "Another")); /* metadata stays unless given */
	h = t_head(t, s);
	TEXT(h->info->name, "Another");
	TEXT(h->metadata, "{\"b\":1,\"a\":[2]}");
	OK(t_rename(t, s, ""));
	s = t_restart(t, "s");
	TEXT(t_head(t, s)->info->name, "");
	TEXT(t_head(t, s)->metadata, "{\"b\":1,\"a\":[2]}");
}

CASE(head_refuses_bad_metadata)
{
	sheaf_session *s = t_new(t, "s");
	FAILS(INVALID, sheaf_session_rename(s, S("n"), S("[1]"), NULL, NULL, &t->err));
	FAILS(INVALID,
	      sheaf_session_rename(s, S("n"), S("{\"a\":1,\"a\":1}"), NULL, NULL, &t->err));
	FAILS(INVALID, sheaf_session_rename(s, S("n"), S("{"), NULL, NULL, &t->err));
	EQ(t_revision(t, s), 0);
	CHECK(t_head(t, s)->metadata.ptr == NULL);
}

CASE(head_preview_is_the_first_user_text)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "system", "You are helpful.");
	SAY(s, "assistant", "Hi!");
	SAY(s, "user", "The question");
	SAY(s, "user", "Another");
	TEXT(t_head(t, s)->info->preview, "The question");
	sheaf_session *p = t_new(t, "preamble");
	SAY(p, "user", "You are on Linux.", .extra = "{\"preamble\":true}");
	CHECK(t_head(t, p)->info->preview.len == 0);
	SAY(p, "user", "The question");
	TEXT(t_head(t, p)->info->preview, "The question");
	sheaf_session *l = t_new(t, "long");
	char *text = t_fill(t, 'q', 100000);
	SAY(l, "user", text);
	sheaf_str preview = t_head(t, l)->info->preview;
	CHECK(preview.len >= 20 && preview.len < 2000);
	CHECK(memcmp(preview.ptr, text, preview.len > 20 ? 20 : preview.len) == 0);
}
