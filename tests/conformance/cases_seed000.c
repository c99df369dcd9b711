/* Seed 000: Session (ID, Messages, SaveTurn, Title, Usage, Fork, Compact) and Store. */
#include <stdio.h>

#include "suite.h"

/* SaveTurn(messages, usage): "user text", "assistant text". */
static void save_turn(suite *t, sheaf_session *s, const char *user, const char *assistant,
                      uint64_t tokens)
{
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", user);
	ADD(b, "assistant", assistant);
	sheaf_usage u = {.input = tokens, .output = 1};
	OK(sheaf_session_append_turn(s, b, S(NULL), S(NULL), &u, NULL, NULL, &t->err));
}

static const char *texts(suite *t, sheaf_session *s)
{
	const sheaf_context *c = t_context(t, s);
	char *all = t_format(t, "%s", "");
	for (size_t i = 0; i < c->count; i++) {
		char text[100];
		sheaf_message_view_text(c->items[i]->message, text, sizeof(text));
		all = t_format(t, "%s%s%s", all, i ? "|" : "", text);
	}
	return all;
}

CASE(seed000_id_and_messages)
{
	sheaf_session *s = t_new(t, "my-session");
	CSTR(sheaf_session_id(s), "my-session");
	CSTR(texts(t, s), "");
	save_turn(t, s, "Hello", "Hi there", 10);
	save_turn(t, s, "Tell me more", "More", 12);
	CSTR(texts(t, s), "Hello|Hi there|Tell me more|More");
}

CASE(seed000_save_turn_is_whole)
{
	sheaf_session *s = t_new(t, "s");
	save_turn(t, s, "a", "b", 5);
	const sheaf_records *r = t_all(t, s);
	EQ(r->count, 3);
	EQ(r->items[2]->kind, SHEAF_KIND_TURN_END);
	for (size_t i = 0; i < 3; i++)
		EQ(r->items[i]->batch_count, 3);
	BYTES(r->items[0]->turn, r->items[1]->turn.ptr, r->items[1]->turn.len);
	s = t_restart(t, "s");
	CSTR(texts(t, s), "a|b");
}

CASE(seed000_title)
{
	sheaf_session *s = t_new(t, "s");
	TEXT(t_head(t, s)->info->name, "");
	OK(t_rename(t, s, "A title"));
	TEXT(t_head(t, s)->info->name, "A title");
	s = t_restart(t, "s"); /* persisted at once, not with the next Put */
	TEXT(t_head(t, s)->info->name, "A title");
}

CASE(seed000_event_count_and_usage)
{
	sheaf_session *s = t_new(t, "s");
	for (int i = 1; i <= 3; i++)
		save_turn(t, s, "q", "a", (uint64_t)i * 100);
	const sheaf_session_info *info = t_head(t, s)->info;
	EQ(info->turns, 3);
	EQ(info->usage.input, 600);
	EQ(info->usage.output, 3);
	EQ(info->messages, 6);
}

CASE(seed000_fork)
{
	sheaf_session *s = t_new(t, "original");
	save_turn(t, s, "q1", "a1", 1);
	sheaf_session *f = t_fork(t, s, NULL, "new-branch");
	save_turn(t, f, "q2", "a2", 1);
	save_turn(t, s, "other", "way", 1);
	CSTR(texts(t, f), "q1|a1|q2|a2");
	CSTR(texts(t, s), "q1|a1|other|way");
	CSTR(sheaf_session_id(f), "new-branch");
}

CASE(seed000_compact)
{
	sheaf_session *s = t_new(t, "s");
	save_turn(t, s, "q1", "a1", 1);
	save_turn(t, s, "q2", "a2", 1);
	/* Replaces all events with what the summariser returned … */
	JSON(s, "compaction",
	     "{\"compaction\":{\"summary\":\"\",\"replacement\":[{\"role\":\"user\",\"content\":"
	     "[{\"type\":\"text\",\"text\":{\"content\":\"so far: q1, q2\"}}]}]}}");
	CSTR(texts(t, s), "so far: q1, q2");
	save_turn(t, s, "q3", "a3", 1);
	CSTR(texts(t, s), "so far: q1, q2|q3|a3");
	EQ(t_path(t, s, NULL)->count, 7); /* … and yet keeps every original */
	EQ(t_head(t, s)->info->turns, 3);
}

CASE(seed000_store_open)
{
	sheaf_key key = t_key(t, "my-session");
	sheaf_session *s = t_open_in(t, t->store, &key, SHEAF_OPEN_EITHER);
	save_turn(t, s, "q", "a", 1);
	t_close(t, s);
	s = t_open_in(t, t->store, &key, SHEAF_OPEN_EITHER);
	CSTR(texts(t, s), "q|a");
}

CASE(seed000_store_put)
{
	sheaf_session *s = t_new(t, "s");
	save_turn(t, s, "q", "a", 1);
	suite_place *other = suite_other(t);
	sheaf_key key = {S(other->app), S(""), S("s")};
	sheaf_session *put_there = NULL;
	OK(sheaf_session_copy(&put_there, s, other->store, &key, &t->err));
	t_keep(t, put_there);
	save_turn(t, put_there, "q2", "a2", 1);
	CSTR(texts(t, put_there), "q|a|q2|a2");
	CSTR(texts(t, s), "q|a");
}

CASE(seed000_store_list_and_delete)
{
	save_turn(t, t_new(t, "a"), "q", "a", 1);
	save_turn(t, t_new(t, "b"), "q", "a", 1);
	EQ(t_list_mine(t)->count, 2);
	sheaf_key key = t_key(t, "a");
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	const sheaf_list *l = t_list_mine(t);
	EQ(l->count, 1);
	TEXT(l->items[0]->session, "b");
	EQ(l->items[0]->turns, 1);
}

CASE(seed000_double_open_loses_nothing)
{
	sheaf_session *a = t_new(t, "s");
	sheaf_session *b = t_existing(t, "s");
	sheaf_append_options any = SHEAF_APPEND_OPTIONS_INIT;
	any.expect = SHEAF_EXPECT_ANY;
	for (int i = 0; i < 10; i++) {
		sheaf_batch *turn = t_batch(t);
		ADD(turn, "user", t_format(t, "t%d", i));
		OK(sheaf_session_append_turn(i % 2 ? a : b, turn, S(NULL), S(NULL), NULL, &any,
		                             NULL, &t->err));
	}
	CSTR(texts(t, a), "t0|t1|t2|t3|t4|t5|t6|t7|t8|t9");
	CSTR(texts(t, b), texts(t, a));
}
