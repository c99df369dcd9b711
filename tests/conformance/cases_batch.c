/* Batches and turns: all or nothing, in one piece, with their frame. */
#include <stdio.h>

#include "suite.h"

CASE(batch_is_stored_whole)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "0", .id = "u0");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	ADD(b, "assistant", "2", .id = "a1");
	ADD(b, "user", "3", .id = "u2");
	EQ(sheaf_batch_count(b), 3);
	OK(t_append_batch(t, s, b, (put){0}));
	EQ(t->out.first_seq, 2);
	EQ(t->out.seq, 4);
	CSTR(t->out.id, "u2");
	const sheaf_records *path = t_path(t, s, NULL);
	IDS(path, "u0 u1 a1 u2");
	EQ(path->items[0]->batch_count, 1);
	for (uint64_t i = 0; i < 3; i++) {
		EQ(path->items[i + 1]->batch_index, i);
		EQ(path->items[i + 1]->batch_count, 3);
		CHECK(t_contains(path->items[i + 1]->line,
		                 t_format(t, ",\"batch\":[%d,3]", (int)i)));
	}
	CHECK(!t_contains(path->items[0]->line, "\"batch\""));
}

CASE(batch_of_one)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	OK(t_append_batch(t, s, b, (put){0}));
	EQ(t_get(t, s, "u1")->batch_count, 1);
	EQ(t->out.first_seq, 1);
	EQ(t->out.seq, 1);
}

CASE(batch_empty)
{
	sheaf_session *s = t_new(t, "s");
	FAILS(INVALID, t_append_batch(t, s, t_batch(t), (put){0}));
	EQ(t_revision(t, s), 0);
}

CASE(batch_ids_are_known_before)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	ADD(b, "assistant", "2");
	CSTR(sheaf_batch_id(b, 0), "u1");
	const char *made = t_format(t, "%s", sheaf_batch_id(b, 1));
	EQ(strlen(made), 36);
	OK(t_append_batch(t, s, b, (put){0}));
	LEAF(s, made);
}

CASE(batch_follows_its_branches)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "0", .id = "u0");
	BRANCH(s, "side", "u0");
	sheaf_batch *b = t_batch(t);
	ADD(b, "assistant", "m1", .id = "m1");
	ADD(b, "assistant", "s1", .id = "s1", .branch = "side");
	ADD(b, "user", "m2", .id = "m2");
	ADD(b, "user", "s2", .id = "s2", .branch = "side");
	OK(t_append_batch(t, s, b, (put){0}));
	IDS(t_path(t, s, NULL), "u0 m1 m2");
	IDS(t_path(t, s, "side"), "u0 s1 s2");
}

CASE(batch_parents_inside_it)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	ADD(b, "assistant", "2", .id = "a1");
	ADD(b, "assistant", "2b", .id = "a2", .parent = "u1");
	ADD(b, "user", "3", .id = "u3");
	ADD(b, "user", "new root", .id = "r2", .root = 1);
	OK(t_append_batch(t, s, b, (put){0}));
	TEXT(t_get(t, s, "a2")->parent_id, "u1");
	TEXT(t_get(t, s, "u3")->parent_id, "a2");
	LEAF(s, "r2");
	IDS(t_children(t, s, ""), "u1 r2");
}

CASE(batch_parent_that_comes_later)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1", .parent = "u2");
	ADD(b, "user", "2", .id = "u2");
	FAILS(NOT_FOUND, t_append_batch(t, s, b, (put){0}));
	EQ(t_revision(t, s), 0);
}

CASE(batch_with_facts)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	OK(sheaf_batch_json(b, S("label"), S("{\"label\":{\"target_id\":\"u1\",\"label\":\"l\"}}"),
	                    NULL, &t->err));
	ADD(b, "assistant", "2", .id = "a1");
	OK(sheaf_batch_json(b, S("session_info"), S("{\"session_info\":{\"name\":\"n\"}}"), NULL,
	                    &t->err));
	OK(t_append_batch(t, s, b, (put){0}));
	EQ(t_revision(t, s), 4);
	TEXT(t_get(t, s, "u1")->label, "l");
	TEXT(t_get(t, s, "a1")->parent_id, "u1");
	TEXT(t_head(t, s)->info->name, "n");
	LEAF(s, "a1");
}

CASE(batch_with_one_bad_record_writes_nothing)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "0", .id = "u0");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	ADD(b, "user", "2", .id = "u2");
	ADD(b, "user", "3", .id = "u3", .parent = "ghost");
	FAILS(NOT_FOUND, t_append_batch(t, s, b, (put){0}));
	EQ(t_revision(t, s), 1);
	LEAF(s, "u0");
	SAY(s, "user", "1", .id = "u1");
	EQ(t->out.existed, 0); /* not one of its ids is taken */
}

CASE(batch_refuses_what_it_is_given)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	FAILS(INVALID, t_batch_say(t, b, "nobody", "1", (put){0}));
	FAILS(INVALID, sheaf_batch_json(b, S("message"), S("{\"seq\":1}"), NULL, &t->err));
	FAILS(INVALID, sheaf_batch_json(b, S("message"), S("{"), NULL, &t->err));
	EQ(sheaf_batch_count(b), 0);
	ADD(b, "user", "1", .id = "u1"); /* it is as good as before */
	OK(t_append_batch(t, s, b, (put){0}));
	IDS(t_path(t, s, NULL), "u1");
}

CASE(batch_again_after_stale)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "0", .id = "u0");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1");
	ADD(b, "user", "2");
	FAILS(STALE, t_append_batch(t, s, b, (put){.expect = SHEAF_EXPECT_LEAF}));
	CSTR(t->err.leaf, "u0");
	EQ(t_revision(t, s), 1);
	OK(t_append_batch(t, s, b, (put){.expect = SHEAF_EXPECT_LEAF, .leaf = "u0"}));
	EQ(t->out.existed, 0);
	OK(t_append_batch(t, s, b, (put){.expect = SHEAF_EXPECT_LEAF, .leaf = "u0"}));
	EQ(t->out.existed, 1);
	EQ(t_revision(t, s), 3);
}

CASE(batch_expects_the_leaf_of_its_first_branch)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "0", .id = "u0");
	BRANCH(s, "side", "u0");
	SAY(s, "user", "x", .id = "x1", .branch = "side");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "y", .id = "x2", .branch = "side");
	FAILS(STALE, t_append_batch(t, s, b, (put){.expect = SHEAF_EXPECT_LEAF, .leaf = "u0"}));
	CSTR(t->err.leaf, "x1");
	OK(t_append_batch(t, s, b, (put){.expect = SHEAF_EXPECT_LEAF, .leaf = "x1"}));
	LEAF_OF(s, "side", "x2");
}

CASE(batch_drops_partials)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	ADD(b, "assistant", "hal", .id = "a1", .partial = 1);
	ADD(b, "assistant", "half", .id = "a1");
	OK(t_append_batch(t, s, b, (put){0}));
	EQ(t_revision(t, s), 2);
	IDS(t_path(t, s, NULL), "u1 a1");
	EQ(t_get(t, s, "a1")->batch_count, 2);
}

CASE(turn_ends_with_its_fact)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1", .turn = "t1");
	sheaf_batch *b = t_batch(t);
	ADD(b, "assistant", "2", .id = "a1");
	sheaf_appended out = SHEAF_APPENDED_INIT;
	sheaf_usage u = {.input = 100, .cache_read = 7, .output = 20, .reasoning = 3};
	OK(sheaf_session_append_turn(s, b, S("t1"), S(NULL), &u, NULL, &out, &t->err));
	EQ(out.first_seq, 2);
	EQ(out.seq, 3);
	const sheaf_entry *e = t_all(t, s)->items[2];
	EQ(e->kind, SHEAF_KIND_TURN_END);
	CHECK(t_contains(e->body, "\"turn\":\"t1\""));
	CHECK(t_contains(e->body, "\"outcome\":\"completed\""));
	CHECK(t_contains(e->body, "\"input\":100"));
	TEXT(t_get(t, s, "a1")->turn, "t1");
	LEAF(s, "a1");
	const sheaf_session_info *info = t_head(t, s)->info;
	EQ(info->turns, 1);
	EQ(info->usage.input, 100);
	EQ(info->usage.cache_read, 7);
	EQ(info->usage.output, 20);
	EQ(info->usage.reasoning, 3);
}

CASE(turn_outcome_and_new_id)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "assistant", "2", .id = "a1");
	OK(sheaf_session_append_turn(s, b, S(NULL), S("aborted"), NULL, NULL, NULL, &t->err));
	const sheaf_records *all = t_all(t, s);
	EQ(all->count, 2);
	EQ(all->items[0]->turn.len, 36);
	CHECK(t_contains(all->items[1]->body, "\"outcome\":\"aborted\""));
	const char *turn = t_member(t, all->items[1]->body, "turn");
	CHECK(turn && strlen(turn) == 36);
	TEXT(all->items[0]->turn, turn);
}

CASE(turn_usage_is_not_counted_twice)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_message *m = sheaf_message_new("assistant");
	sheaf_usage u = {.input = 10, .output = 2};
	sheaf_message_text(m, S("reply"));
	sheaf_message_usage(m, &u);
	sheaf_batch *b = t_batch(t);
	int rc = sheaf_batch_message(b, m, NULL, &t->err);
	sheaf_message_free(m);
	EQ(rc, 0);
	OK(sheaf_session_append_turn(s, b, S("t1"), S(NULL), &u, NULL, NULL, &t->err));
	EQ(t_head(t, s)->info->usage.input, 10);
	EQ(t_head(t, s)->info->usage.output, 2);
	sheaf_batch *bare = t_batch(t);
	ADD(bare, "assistant", "no usage of its own");
	OK(sheaf_session_append_turn(s, bare, S("t2"), S(NULL), &u, NULL, NULL, &t->err));
	EQ(t_head(t, s)->info->usage.input, 20);
	s = t_restart(t, "s");
	EQ(t_head(t, s)->info->usage.input, 20);
	EQ(t_head(t, s)->info->turns, 2);
}

CASE(turn_in_many_appends)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1", .turn = "t1");
	CALL(s, "c1", "ls", .id = "a1", .turn = "t1");
	ANSWER(s, "c1", "files", .id = "r1", .turn = "t1");
	EQ(t_head(t, s)->info->turns, 0); /* interrupted, as far as anybody can tell */
	JSON(s, "turn_end", "{\"turn_end\":{\"turn\":\"t1\",\"outcome\":\"completed\"}}");
	EQ(t_head(t, s)->info->turns, 1);
	LEAF(s, "r1");
}

CASE(turn_ended_by_an_empty_batch)
{
	/* A turn whose messages were appended as they came is ended by a batch of nothing. */
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1", .turn = "t1");
	sheaf_batch *b = t_batch(t);
	FAILS(INVALID,
	      sheaf_session_append_turn(s, b, S(NULL), S(NULL), NULL, NULL, NULL, &t->err));
	OK(sheaf_session_append_turn(s, b, S("t1"), S("aborted"), NULL, NULL, NULL, &t->err));
	const sheaf_records *all = t_all(t, s);
	EQ(all->count, 2);
	EQ(all->items[1]->kind, SHEAF_KIND_TURN_END);
	CHECK(t_contains(all->items[1]->body, "\"turn\":\"t1\""));
	EQ(all->items[1]->batch_count, 1);
	LEAF(s, "u1");
}

CASE(turn_counts_tokens_of_messages)
{
	sheaf_session *s = t_new(t, "s");
	for (int i = 0; i < 3; i++) {
		sheaf_message *m = sheaf_message_new("assistant");
		sheaf_usage u = {1, 10, 100, 1000, 10000, 100000};
		sheaf_message_text(m, S("x"));
		sheaf_message_usage(m, &u);
		int rc = sheaf_session_append_message(s, m, NULL, NULL, NULL, &t->err);
		sheaf_message_free(m);
		EQ(rc, 0);
	}
	sheaf_usage got = t_head(t, s)->info->usage;
	EQ(got.input, 3);
	EQ(got.cache_read, 30);
	EQ(got.cache_write_5m, 300);
	EQ(got.cache_write_1h, 3000);
	EQ(got.output, 30000);
	EQ(got.reasoning, 300000);
}

CASE(prompt_before_reply)
{
	/* The user's prompt is there as soon as it was said, whatever happens next (A1.8). */
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "a long prompt, worth keeping", .id = "u1");
	s = t_restart(t, "s");
	IDS(t_path(t, s, NULL), "u1");
	TEXT(t_get(t, s, "u1")->message->parts[0]->text, "a long prompt, worth keeping");
	EQ(t_list_mine(t)->count, 1);
	EQ(t_list_mine(t)->items[0]->messages, 1);
	SAY(s, "assistant", "reply", .id = "a1");
	IDS(t_path(t, s, NULL), "u1 a1");
}
