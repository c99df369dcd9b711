/* State beyond seed 002: limits, deletions, forks, copies, repeats, values that wait. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "suite.h"

/* ---- Setting on a handle ------------------------------------------------------ */

CASE(state_set_is_seen_at_once_and_rides)
{
	sheaf_session *s = t_new(t, "s"), *twin = t_existing(t, "s");
	SET(s, "a", " {\"x\" : 1} ");
	SET(s, "user:b", "2");
	SET(s, "app:c", "3");
	STATE(s, "a={\"x\" : 1} app:c=3 user:b=2");
	STATE(twin, "");
	EQ(t_revision(t, s), 0);
	SAY(s, "user", "hi", .id = "m1");
	EQ(t->out.app_state, SHEAF_APP_STATE_APPLIED);
	STATE(twin, "a={\"x\" : 1} app:c=3 user:b=2");
	CHECK(t_contains(t_get(t, s, "m1")->line,
	                 "\"state_delta\":{\"a\":{\"x\" : 1},\"app:c\":3,\"user:b\":2}"));
	/* Once: the next record carries nothing. */
	SAY(s, "user", "again", .id = "m2");
	CHECK(!t_contains(t_get(t, s, "m2")->line, "state_delta"));
	STATE(t_restart(t, "s"), "a={\"x\" : 1} app:c=3 user:b=2");
}

CASE(state_set_rides_on_batches_turns_and_facts)
{
	sheaf_session *s = t_new(t, "s");
	SET(s, "a", "1");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "q", .id = "u1");
	ADD(b, "assistant", "a", .id = "a1");
	OK(t_append_batch(t, s, b, (put){0}));
	CHECK(t_contains(t_get(t, s, "u1")->line, "\"state_delta\":{\"a\":1}"));
	CHECK(!t_contains(t_get(t, s, "a1")->line, "state_delta"));
	SET(s, "b", "2");
	b = t_batch(t);
	ADD(b, "user", "q", .id = "u2");
	OK(sheaf_session_append_turn(s, b, S("t1"), S(NULL), NULL, NULL, NULL, &t->err));
	SET(s, "c", "3");
	LABEL(s, "u1", "first");
	SET(s, "d", "4");
	OK(t_rename(t, s, "name"));
	STATE(t_existing(t, "s"), "a=1 b=2 c=3 d=4");
	TEXT(t_head(t, s)->info->name, "name");
}

CASE(state_delta_of_the_record_goes_before_sets)
{
	sheaf_session *s = t_new(t, "s");
	SET(s, "a", "1");
	SET(s, "b", "1");
	SAY(s, "user", "hi", .id = "m1", .state_delta = "{\"\\u0061\":2,\"c\":2}");
	STATE(s, "a=2 b=1 c=2");
	STATE(t_existing(t, "s"), "a=2 b=1 c=2");
}

CASE(state_later_records_of_a_batch_win)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "q", .state_delta = "{\"a\":1,\"user:u\":1,\"app:p\":1}", .id = "m1",
	    .time_us = 1000);
	ADD(b, "assistant", "r", .state_delta = "{\"a\":2,\"user:u\":2,\"app:p\":2}", .id = "m2",
	    .time_us = 1000);
	OK(t_append_batch(t, s, b, (put){0}));
	STATE(t_existing(t, "s"), "a=2 app:p=2 user:u=2");
}

CASE(state_null_deletes)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "hi", .state_delta = "{\"a\":1,\"b\":2,\"user:a\":3,\"app:a\":4}");
	SAY(s, "user", "hi", .state_delta = "{\"a\": null ,\"none\":null,\"user:a\":null}");
	STATE(s, "app:a=4 b=2");
	SET(s, "b", "null");
	OK(sheaf_session_state_set(s, S("app:a"), (sheaf_str){NULL, 0}, &t->err));
	STATE(s, "");
	sheaf_state *state = NULL;
	FAILS(NOT_FOUND, sheaf_session_state_get(&state, s, S("b"), &t->err));
	FAILS(NOT_FOUND, sheaf_session_state_get(&state, s, S("app:a"), &t->err));
	SAY(s, "user", "hi");
	STATE(s, "");
	STATE(t_restart(t, "s"), "");
	CSTR(t_store_state(t, t->app, NULL), "");
}

CASE(state_get_by_scope)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_state *state = NULL;
	SAY(s, "user", "hi", .state_delta = "{\"k\":1,\"user:k\":2,\"app:k\":3,\"temp:k\":4}");
	static const char *const keys[] = {"k", "user:k", "app:k", "temp:k"};
	for (int i = 0; i < 4; i++) {
		OK(sheaf_session_state_get(&state, s, S(keys[i]), &t->err));
		EQ(state->count, 1);
		TEXT(state->items[0]->key, keys[i]);
		TEXT(state->items[0]->value, t_format(t, "%d", i + 1));
		sheaf_state_free(state);
	}
	FAILS(NOT_FOUND, sheaf_session_state_get(&state, s, S("x"), &t->err));
	FAILS(NOT_FOUND, sheaf_session_state_get(&state, s, S("user:x"), &t->err));
	FAILS(NOT_FOUND, sheaf_session_state_get(&state, s, S("temp:x"), &t->err));
	FAILS(INVALID, sheaf_session_state_get(&state, s, S(""), &t->err));
	FAILS(INVALID, sheaf_session_state_get(&state, s, S("user:"), &t->err));
}

CASE(state_keys_are_bytes_in_order)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "hi",
	    .state_delta =
	            "{\"\\u00e9\":1,\"\xc3\xa8\":2,\"q\\\"\\\\\":3,\"Z\":4,\"a/b\":5,\"userx\":6,"
	            "\"user:\\u00e9\":7,\"USER:k\":8}");
	STATE(t_restart(t, "s"), "USER:k=8 Z=4 a/b=5 q\"\\=3 user:\xc3\xa9=7 userx=6 \xc3\xa8=2 "
	                         "\xc3\xa9=1");
}

CASE(state_values_byte_for_byte)
{
	sheaf_session *s = t_new(t, "s");
	static const char *const values[] = {
		"\"\\u0000\"",
		"1e400",
		"18446744073709551617",
		"{\"b\":1,\"a\":2}",
		"[ 1 ,2 ]",
		"\"\xf0\x9f\x98\x80\"",
		"-0.0",
		"\"\\ud83d\\ude00\"",
	};
	for (int scope = 0; scope < 3; scope++) {
		static const char *const prefixes[] = {"", "user:", "app:"};
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
			SET(s, t_format(t, "%sk%zu", prefixes[scope], i), values[i]);
	}
	SAY(s, "user", "hi");
	s = t_restart(t, "s");
	for (int scope = 0; scope < 3; scope++) {
		static const char *const prefixes[] = {"", "user:", "app:"};
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			sheaf_state *state = NULL;
			OK(sheaf_session_state_get(
				&state, s, S(t_format(t, "%sk%zu", prefixes[scope], i)), &t->err));
			TEXT(state->items[0]->value, values[i]);
			sheaf_state_free(state);
		}
	}
}

/* ---- Refusals and limits ------------------------------------------------------- */

CASE(state_bad_sets_are_refused)
{
	sheaf_session *s = t_new(t, "s");
	static const char *const keys[] = {"", "user:", "app:", "temp:", "a\nb", "\xff"};
	for (int i = 0; i < 6; i++)
		FAILS(INVALID, sheaf_session_state_set(s, S(keys[i]), S("1"), &t->err));
	static const char *const values[] = {
		"", "x", "{", "1 2", "{\"a\":1,\"a\":2}", "\"\xff\"", "[1,\n2]", "\"\\ud800\""};
	for (int i = 0; i < 8; i++)
		FAILS(INVALID, sheaf_session_state_set(s, S("k"), S(values[i]), &t->err));
	STATE(s, "");
}

CASE(state_bad_deltas_are_refused)
{
	sheaf_session *s = t_new(t, "s");
	FAILS(INVALID, TRY_SAY(s, "user", "x", .state_delta = "[]"));
	FAILS(INVALID, TRY_SAY(s, "user", "x", .state_delta = "{\"\":1}"));
	FAILS(INVALID, TRY_SAY(s, "user", "x", .state_delta = "{\"a\":1,\"a\":2}"));
	FAILS(INVALID, TRY_SAY(s, "user", "x", .state_delta = "{\"app:\":1}"));
	FAILS(INVALID, TRY_SAY(s, "user", "x", .extra = "{\"state_delta\":1}"));
	FAILS(INVALID, TRY_JSON(s, "thing", "{\"state_delta\":\"x\"}"));
	FAILS(INVALID, TRY_JSON(s, "thing", "{\"state_delta\":{\"a\":1}}", .state_delta = "{}"));
	EQ(t_revision(t, s), 0);
}

CASE(state_key_and_value_limits)
{
	sheaf_session *s = t_new(t, "s");
	char *key = t_fill(t, 'k', SHEAF_STATE_KEY_BYTES_MAX + 1);
	char *value = t_fill(t, '1', SHEAF_STATE_VALUE_BYTES_MAX + 1);
	FAILS(LIMIT, sheaf_session_state_set(s, S(key), S("1"), &t->err));
	FAILS(LIMIT, sheaf_session_state_set(s, S("k"), S(value), &t->err));
	FAILS(LIMIT, TRY_SAY(s, "user", "x", .state_delta = t_format(t, "{\"%s\":1}", key)));
	FAILS(LIMIT, TRY_SAY(s, "user", "x", .state_delta = t_format(t, "{\"k\":%s}", value)));
	key[SHEAF_STATE_KEY_BYTES_MAX] = 0;
	value[SHEAF_STATE_VALUE_BYTES_MAX] = 0;
	memcpy(key, "user:", 5);
	SET(s, key, value);
	SAY(s, "user", "x", .state_delta = t_format(t, "{\"s\":%s,\"app:a\":%s}", value, value));
	EQ(t->out.app_state, SHEAF_APP_STATE_APPLIED);
	STATE(t_restart(t, "s"), t_format(t, "app:a=%s s=%s %s=%s", value, value, key, value));
}

/* A delta with 15 values of 64 KiB and one that leaves `left` bytes of a mebibyte. */
static const char *big_delta(suite *t, const char *prefix, size_t left)
{
	size_t long_len = SHEAF_STATE_VALUE_BYTES_MAX, used = 15 * (long_len + 1);
	size_t last = SHEAF_STATE_BYTES_MAX - used - 1 - left;
	char *delta = t_alloc(t, SHEAF_STATE_BYTES_MAX + 1024);
	size_t n = (size_t)sprintf(delta, "{");
	for (int i = 0; i < 16; i++) {
		size_t len = i < 15 ? long_len : last;
		n += (size_t)sprintf(delta + n, "%s\"%s%c\":", i ? "," : "", prefix, 'a' + i);
		memset(delta + n, '1', len);
		n += len;
	}
	strcpy(delta + n, "}");
	return delta;
}

CASE(state_of_a_session_has_a_limit)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "full", .state_delta = big_delta(t, "", 0));
	FAILS(LIMIT, TRY_SAY(s, "user", "more", .state_delta = "{\"z\":1}"));
	EQ(t_revision(t, s), 1);
	SAY(s, "user", "no more", .state_delta = "{\"a\":null,\"z\":1}");
	sheaf_state *state = NULL;
	OK(sheaf_session_state_get(&state, t_restart(t, "s"), S("z"), &t->err));
	sheaf_state_free(state);
}

CASE(state_of_a_user_has_a_limit)
{
	sheaf_session *s = t_new(t, "s"), *other = t_new(t, "other");
	SAY(s, "user", "full", .state_delta = big_delta(t, "user:", 0));
	FAILS(LIMIT, TRY_SAY(other, "user", "more", .state_delta = "{\"user:z\":1,\"own\":1}"));
	EQ(t_revision(t, other), 0);
	STATE(t_existing(t, "other"), t_state(t, s));
	SAY(other, "user", "swap", .state_delta = "{\"user:a\":null,\"user:z\":1}");
	sheaf_state *state = NULL;
	OK(sheaf_session_state_get(&state, t_restart(t, "s"), S("user:z"), &t->err));
	sheaf_state_free(state);
}

/* Also what only deletes has its limit: a user's file has a line for every append. */
CASE(state_changes_of_an_append_have_a_limit)
{
	sheaf_session *s = t_new(t, "s");
	static const char *const prefixes[] = {"user:", "app:"};
	for (size_t i = 0; i < 2; i++) {
		sheaf_batch *b = t_batch(t);
		const char *name = t_fill(t, 'k', 200);
		for (int k = 0, n = 0; k < 2; k++) {
			const char *delta = "";
			for (int m = 0; m < 60; m++) {
				const char *some = "";
				for (int j = 0; j < 50; j++, n++)
					some = t_format(t, "%s%s\"%s%s%d\":null", some,
					                j ? "," : "", prefixes[i], name, n);
				delta = t_format(t, "%s%s%s", delta, m ? "," : "", some);
			}
			ADD(b, "user", "x", .state_delta = t_format(t, "{%s}", delta));
		}
		FAILS(LIMIT, sheaf_session_append_batch(s, b, NULL, NULL, &t->err));
		EQ(t_revision(t, s), 0);
	}
}

CASE(state_of_an_app_waits_for_room)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "full", .state_delta = big_delta(t, "app:", 0));
	EQ(t->out.app_state, SHEAF_APP_STATE_APPLIED);
	/* There is no room: the record is stored, its value waits. */
	SAY(s, "user", "more", .id = "m2", .state_delta = "{\"app:z\":1}");
	EQ(t->out.app_state, SHEAF_APP_STATE_PENDING);
	EQ(t_revision(t, s), 2);
	SAY(s, "user", "still waiting");
	EQ(t->out.app_state, SHEAF_APP_STATE_PENDING);
	OK(sheaf_store_state_set(t->store, S(t->app), S("a"), S("null"), &t->err));
	SAY(s, "user", "now");
	EQ(t->out.app_state, SHEAF_APP_STATE_NONE);
	sheaf_state *state = NULL;
	OK(sheaf_session_state_get(&state, s, S("app:z"), &t->err));
	TEXT(state->items[0]->value, "1");
	sheaf_state_free(state);
}

CASE(state_pending_is_finished_by_a_new_handle)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "full", .state_delta = big_delta(t, "app:", 0));
	SAY(s, "user", "more", .state_delta = "{\"app:z\":1}");
	EQ(t->out.app_state, SHEAF_APP_STATE_PENDING);
	OK(sheaf_store_state_set(t->store, S(t->app), S("app:a"), S(NULL), &t->err));
	s = t_restart(t, "s");
	sheaf_state *state = NULL;
	if (!t->memory)
		FAILS(NOT_FOUND, sheaf_session_state_get(&state, s, S("app:z"), &t->err));
	SAY(s, "user", "first of the new handle");
	OK(sheaf_session_state_get(&state, s, S("app:z"), &t->err));
	sheaf_state_free(state);
}

CASE(state_replay_applies_every_record)
{
	sheaf_session *s = t_new(t, "s");
	uint64_t applied = 99;
	OK(sheaf_session_state_replay(s, &applied, &t->err));
	EQ(applied, 0);
	SAY(s, "user", "1", .state_delta = big_delta(t, "app:", 0), .time_us = 1000);
	SAY(s, "user", "2", .state_delta = "{\"app:y\":1,\"own\":1}", .time_us = 2000);
	SAY(s, "user", "3", .state_delta = "{\"app:z\":1}", .time_us = 3000);
	EQ(t->out.app_state, SHEAF_APP_STATE_PENDING);
	FAILS(LIMIT, sheaf_session_state_replay(s, NULL, &t->err));
	OK(sheaf_store_state_set(t->store, S(t->app), S("b"), S("2"), &t->err));
	OK(sheaf_session_state_replay(s, &applied, &t->err));
	EQ(applied, 18);
	sheaf_state *state = NULL;
	OK(sheaf_session_state_get(&state, s, S("app:y"), &t->err));
	sheaf_state_free(state);
	OK(sheaf_session_state_get(&state, s, S("app:z"), &t->err));
	sheaf_state_free(state);
	/* What was set since stays. */
	OK(sheaf_session_state_get(&state, s, S("app:b"), &t->err));
	TEXT(state->items[0]->value, "2");
	sheaf_state_free(state);
	OK(sheaf_session_state_replay(s, &applied, &t->err));
	EQ(applied, 18);
	SAY(s, "user", "4");
	EQ(t->out.app_state, SHEAF_APP_STATE_NONE);
}

/* ---- App state -------------------------------------------------------------------- */

CASE(state_app_last_writer_wins)
{
	sheaf_session *s = t_new(t, "s"), *other = t_new(t, "other");
	SAY(s, "user", "late", .state_delta = "{\"app:k\":\"late\"}", .time_us = 5000);
	SAY(other, "user", "early", .state_delta = "{\"app:k\":\"early\"}", .time_us = 4000);
	EQ(t->out.app_state, SHEAF_APP_STATE_APPLIED);
	CSTR(t_store_state(t, t->app, NULL), "app:k=\"late\"");
	/* Of equal times the greater id. */
	SAY(s, "user", "b", .state_delta = "{\"app:k\":\"b\"}", .time_us = 6000, .id = "b");
	SAY(other, "user", "a", .state_delta = "{\"app:k\":\"a\"}", .time_us = 6000, .id = "a");
	CSTR(t_store_state(t, t->app, NULL), "app:k=\"b\"");
	SAY(other, "user", "c", .state_delta = "{\"app:k\":\"c\"}", .time_us = 6000, .id = "c");
	CSTR(t_store_state(t, t->app, NULL), "app:k=\"c\"");
}

CASE(state_app_deletions_are_held)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .state_delta = "{\"app:k\":1}", .time_us = 1000);
	SAY(s, "user", "2", .state_delta = "{\"app:k\":null}", .time_us = 3000);
	SAY(s, "user", "3", .state_delta = "{\"app:k\":2}", .time_us = 2000);
	CSTR(t_store_state(t, t->app, NULL), "");
	suite_reopen(t);
	s = t_existing(t, "s");
	SAY(s, "user", "4", .state_delta = "{\"app:k\":3}", .time_us = 2500);
	CSTR(t_store_state(t, t->app, NULL), "");
	SAY(s, "user", "5", .state_delta = "{\"app:k\":4}", .time_us = 3001);
	CSTR(t_store_state(t, t->app, NULL), "app:k=4");
}

CASE(state_app_set_by_itself)
{
	OK(sheaf_store_state_set(t->store, S(t->app), S("a"), S(" 1 "), &t->err));
	OK(sheaf_store_state_set(t->store, S(t->app), S("app:b"), S("{}"), &t->err));
	CSTR(t_store_state(t, t->app, NULL), "app:a=1 app:b={}");
	OK(sheaf_store_state_set(t->store, S(t->app), S("app:a"), S(NULL), &t->err));
	CSTR(t_store_state(t, t->app, NULL), "app:b={}");
	FAILS(INVALID, sheaf_store_state_set(t->store, S(t->app), S("user:a"), S("1"), &t->err));
	FAILS(INVALID, sheaf_store_state_set(t->store, S(t->app), S("temp:a"), S("1"), &t->err));
	FAILS(INVALID, sheaf_store_state_set(t->store, S(t->app), S(""), S("1"), &t->err));
	FAILS(INVALID, sheaf_store_state_set(t->store, S(t->app), S("a"), S("x"), &t->err));
	/* It wins over a record whose clock was ahead. */
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .state_delta = "{\"app:c\":1}", .time_us = 4000000000000000);
	OK(sheaf_store_state_set(t->store, S(t->app), S("c"), S("2"), &t->err));
	CSTR(t_store_state(t, t->app, NULL), "app:b={} app:c=2");
	suite_reopen(t);
	CSTR(t_store_state(t, t->app, NULL), "app:b={} app:c=2");
}

CASE(state_apps_are_apart)
{
	const char *second = t_format(t, "%s-2", t->app);
	sheaf_key key = t_key_of(t, "-2", "", "s");
	sheaf_session *s = t_new(t, "s"), *other = t_open_in(t, t->store, &key, SHEAF_OPEN_NEW);
	SAY(s, "user", "1", .state_delta = "{\"app:k\":1,\"user:k\":1}");
	STATE(other, "");
	SAY(other, "user", "1", .state_delta = "{\"app:k\":2,\"user:k\":2}");
	STATE(s, "app:k=1 user:k=1");
	STATE(other, "app:k=2 user:k=2");
	CSTR(t_store_state(t, second, NULL), "app:k=2");
}

/* ---- Repeats -------------------------------------------------------------------------- */

CASE(state_repeat_applies_nothing_twice)
{
	sheaf_session *s = t_new(t, "s");
	const char *delta = "{\"a\":1,\"user:b\":1,\"app:c\":1}";
	SAY(s, "user", "x", .id = "m1", .state_delta = delta);
	SAY(s, "user", "y", .state_delta = "{\"a\":2,\"user:b\":2,\"app:c\":2}");
	SAY(s, "user", "x", .id = "m1", .state_delta = delta);
	EQ(t->out.existed, 1);
	EQ(t->out.app_state, SHEAF_APP_STATE_APPLIED);
	STATE(s, "a=2 app:c=2 user:b=2");
	FAILS(CONFLICT, TRY_SAY(s, "user", "x", .id = "m1", .state_delta = "{\"a\":3}"));
	FAILS(CONFLICT, TRY_SAY(s, "user", "x", .id = "m1"));
	STATE(t_restart(t, "s"), "a=2 app:c=2 user:b=2");
}

CASE(state_sets_ride_again_on_a_repeat)
{
	sheaf_session *s = t_new(t, "s");
	SET(s, "a", "1");
	SAY(s, "user", "x", .id = "m1");
	SET(s, "b", "2");
	/* The same id carries what it carried, and the new value waits. */
	SAY(s, "user", "x", .id = "m1");
	EQ(t->out.existed, 1);
	STATE(s, "a=1 b=2");
	STATE(t_existing(t, "s"), "a=1");
	SAY(s, "user", "y", .id = "m2");
	STATE(t_existing(t, "s"), "a=1 b=2");
}

CASE(state_sets_survive_a_failed_append)
{
	sheaf_session *s = t_new(t, "s");
	SET(s, "a", "1");
	SET(s, "user:b", "2");
	FAILS(STALE,
	      TRY_SAY(s, "user", "x", .id = "m1", .expect = SHEAF_EXPECT_REVISION, .revision = 7));
	STATE(s, "a=1 user:b=2");
	STATE(t_existing(t, "s"), "");
	CSTR(t_store_state(t, t->app, ""), "");
	SAY(s, "user", "x", .id = "m1");
	STATE(t_existing(t, "s"), "a=1 user:b=2");
}

CASE(state_stale_changes_no_scope)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "x", .state_delta = "{\"user:a\":1,\"app:a\":1,\"a\":1}");
	FAILS(STALE, TRY_SAY(s, "user", "y", .expect = SHEAF_EXPECT_LEAF, .leaf = "none",
	                     .state_delta = "{\"user:a\":2,\"app:a\":2,\"a\":2}"));
	STATE(s, "a=1 app:a=1 user:a=1");
	STATE(t_restart(t, "s"), "a=1 app:a=1 user:a=1");
}

/* ---- Making, forking, copying, deleting --------------------------------------------------- */

static sheaf_session *new_with(suite *t, const char *session, const char *name, const char *state)
{
	sheaf_session *s = NULL;
	sheaf_key key = t_key(t, session);
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_NEW;
	o.name = S(name);
	o.state = S(state);
	OK(sheaf_session_open(&s, t->store, &key, &o, &t->err));
	t_keep(t, s);
	return s;
}

CASE(state_initial)
{
	sheaf_session *s = new_with(t, "s", NULL,
	                            "{\"a\":1,\"user:b\":2,\"app:c\":3,\"temp:d\":4}");
	STATE(s, "a=1 app:c=3 temp:d=4 user:b=2");
	EQ(t_revision(t, s), 1);
	STATE(t_existing(t, "s"), "a=1 app:c=3 user:b=2");
	s = new_with(t, "named", "name", "{\"x\":1}");
	EQ(t_revision(t, s), 1);
	TEXT(t_head(t, s)->info->name, "name");
	STATE(s, "app:c=3 user:b=2 x=1");
	/* Only for the handle, or nothing: no record. */
	s = new_with(t, "temp", NULL, "{\"temp:d\":4}");
	EQ(t_revision(t, s), 0);
	STATE(s, "app:c=3 temp:d=4 user:b=2");
	EQ(t_revision(t, new_with(t, "empty", NULL, "{}")), 0);
	suite_reopen(t);
	STATE(t_existing(t, "named"), "app:c=3 user:b=2 x=1");
}

CASE(state_initial_bad_makes_nothing)
{
	sheaf_session *s = NULL;
	sheaf_key key = t_key(t, "s");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.state = S("{\"user:a\":1,\"\":2}");
	FAILS(INVALID, sheaf_session_open(&s, t->store, &key, &o, &t->err));
	o.state = S("[]");
	FAILS(INVALID, sheaf_session_open(&s, t->store, &key, &o, &t->err));
	o.mode = SHEAF_OPEN_EXISTING;
	FAILS(NOT_FOUND, sheaf_session_open(&s, t->store, &key, &o, &t->err));
	CSTR(t_store_state(t, t->app, ""), "");
	/* Of a session that is there it changes nothing. */
	(void)t_new(t, "s");
	o.mode = SHEAF_OPEN_EITHER;
	o.state = S("{\"user:a\":1,\"a\":2}");
	OK(sheaf_session_open(&s, t->store, &key, &o, &t->err));
	t_keep(t, s);
	STATE(s, "");
}

CASE(state_of_a_fork_at_the_head)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "m1", .state_delta = "{\"a\":1,\"user:u\":1}");
	sheaf_session *f = t_fork(t, s, NULL, "f");
	STATE(f, "a=1 user:u=1");
	SAY(f, "user", "2", .state_delta = "{\"a\":2,\"user:u\":2}");
	STATE(s, "a=1 user:u=2");
	STATE(f, "a=2 user:u=2");
	suite_reopen(t);
	STATE(t_existing(t, "f"), "a=2 user:u=2");
	STATE(t_existing(t, "s"), "a=1 user:u=2");
}

CASE(state_of_a_fork_at_an_older_entry)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "m1", .state_delta = "{\"a\":1,\"b\":1}");
	SAY(s, "user", "2", .id = "m2");
	SAY(s, "user", "3", .id = "m3", .state_delta = "{\"a\":null,\"c\":3}");
	sheaf_session *at1 = t_fork(t, s, "m1", "at1"), *at2 = t_fork(t, s, "m2", "at2");
	STATE(at1, "a=1 b=1");
	STATE(at2, "a=1 b=1");
	STATE(s, "b=1 c=3");
	/* A fork of a fork, at what it inherits. */
	SAY(at2, "user", "x", .id = "x1", .state_delta = "{\"b\":null}");
	STATE(t_fork(t, at2, "m1", "deep"), "a=1 b=1");
	STATE(t_fork(t, at2, "x1", "deeper"), "a=1");
	suite_reopen(t);
	STATE(t_existing(t, "at1"), "a=1 b=1");
	STATE(t_existing(t, "deeper"), "a=1");
}

CASE(state_of_a_fork_without_any_adds_no_record)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "m1");
	SAY(s, "user", "2", .id = "m2", .state_delta = "{\"a\":1}");
	EQ(t_revision(t, t_fork(t, s, "m1", "f")), 1);
	STATE(t_existing(t, "f"), "");
}

CASE(state_is_copied_with_the_log)
{
	sheaf_session *s = t_new(t, "s"), *copy = NULL, *line = NULL;
	SAY(s, "user", "1", .id = "m1", .state_delta = "{\"a\":1,\"user:u\":1}");
	OK(t_rename(t, s, "n"));
	SET(s, "b", "2");
	LABEL(s, "m1", "first");
	SAY(s, "user", "2", .id = "m2", .state_delta = "{\"c\":3}");
	suite_place *other = suite_other(t);
	sheaf_key key = {S(other->app), S("else"), S("copy")};
	OK(sheaf_session_copy(&copy, s, other->store, &key, &t->err));
	t_keep(t, copy);
	/* The user's values are not the session's. */
	STATE(copy, "a=1 b=2 c=3");
	/* A path brings what its entries say. */
	key.session = S("line");
	OK(sheaf_session_export_path(&line, s, S(NULL), other->store, &key, &t->err));
	t_keep(t, line);
	STATE(line, "a=1 c=3");
}

CASE(state_stays_where_branches_move)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "m1", .state_delta = "{\"a\":1}");
	SAY(s, "user", "2", .id = "m2", .state_delta = "{\"a\":2}");
	BRANCH(s, "main", "m1");
	STATE(s, "a=2");
	OK(sheaf_session_clear(s, &t->err));
	STATE(s, "a=2");
	SAY(s, "user", "3", .branch = "side", .root = 1, .state_delta = "{\"b\":3}");
	STATE(t_restart(t, "s"), "a=2 b=3");
}

CASE(state_deleting_a_session_leaves_the_users)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .state_delta = "{\"a\":1,\"user:u\":1,\"app:p\":1}");
	t_close(t, s);
	sheaf_key key = t_key(t, "s");
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	CSTR(t_store_state(t, t->app, ""), "user:u=1");
	CSTR(t_store_state(t, t->app, NULL), "app:p=1");
	s = t_new(t, "s");
	STATE(s, "app:p=1 user:u=1");
	suite_reopen(t);
	CSTR(t_store_state(t, t->app, ""), "user:u=1");
	SAY(t_existing(t, "s"), "user", "2", .state_delta = "{\"user:v\":2}");
	CSTR(t_store_state(t, t->app, ""), "user:u=1 user:v=2");
}

CASE(state_of_a_gone_session)
{
	sheaf_session *s = t_new(t, "s");
	SET(s, "a", "1");
	sheaf_key key = t_key(t, "s");
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	sheaf_state *state = NULL;
	FAILS(GONE, sheaf_session_state_all(&state, s, &t->err));
	FAILS(GONE, sheaf_session_state_replay(s, NULL, &t->err));
	FAILS(GONE, TRY_SAY(s, "user", "x", .state_delta = "{\"user:a\":1}"));
	CSTR(t_store_state(t, t->app, ""), "");
}

CASE(state_reading_it_is_not_seeing_the_conversation)
{
	sheaf_session *s = t_new(t, "s"), *other = t_existing(t, "s");
	SAY(s, "user", "q", .id = "u1");
	SAY(other, "user", "meanwhile", .id = "u2", .state_delta = "{\"a\":1}");
	/* A turn that was thought out before u2 must learn of it, whatever was read of state. */
	STATE(s, "a=1");
	OK(sheaf_session_state_replay(s, NULL, &t->err));
	sheaf_batch *b = t_batch(t);
	ADD(b, "assistant", "answer", .id = "a1");
	FAILS(STALE, sheaf_session_append_turn(s, b, S("t1"), S(NULL), NULL, NULL, NULL, &t->err));
}

CASE(state_readonly_handles_set_nothing)
{
	sheaf_session *s = t_new(t, "s"), *reader = NULL;
	SAY(s, "user", "1", .state_delta = "{\"a\":1}");
	sheaf_key key = t_key(t, "s");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	o.readonly = 1;
	OK(sheaf_session_open(&reader, t->store, &key, &o, &t->err));
	t_keep(t, reader);
	FAILS(READONLY, sheaf_session_state_set(reader, S("a"), S("2"), &t->err));
	SET(reader, "temp:x", "1");
	STATE(reader, "a=1 temp:x=1");
}

/* ---- Many at once ------------------------------------------------------------------------- */

typedef struct crowd {
	sheaf_store *store;
	sheaf_key key;
	int number;
	int each;
	atomic_int *wrong;
} crowd;

static void *set_many(void *argument)
{
	crowd *c = argument;
	sheaf_session *s = NULL;
	if (sheaf_session_open(&s, c->store, &c->key, NULL, NULL) != 0)
		atomic_fetch_add(c->wrong, 1);
	for (int i = 1; s && i <= c->each; i++) {
		char delta[160];
		sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
		snprintf(delta, sizeof(delta),
		         "{\"n\":%d,\"user:n%d\":%d,\"user:shared\":%d,\"app:n%d\":%d}", i,
		         c->number, i, c->number, c->number, i);
		entry.state_delta = S(delta);
		if (sheaf_session_append_custom(s, S("c"), S("{}"), &entry, NULL, NULL, NULL) != 0)
			atomic_fetch_add(c->wrong, 1);
	}
	sheaf_session_close(s);
	return NULL;
}

CASE(state_of_a_user_from_two_sessions)
{
	atomic_int wrong = 0;
	enum {
		MANY = 4,
		EACH = 20
	};
	crowd members[MANY];
	pthread_t threads[MANY];
	sheaf_store *twin = suite_twin(t);
	for (int i = 0; i < MANY; i++) {
		members[i] = (crowd){i % 2 ? twin : t->store, t_key(t, t_format(t, "s%d", i / 2)),
		                     i, EACH, &wrong};
		pthread_create(&threads[i], NULL, set_many, &members[i]);
	}
	for (int i = 0; i < MANY; i++)
		pthread_join(threads[i], NULL);
	EQ(atomic_load(&wrong), 0);
	const char *user = t_store_state(t, t->app, ""), *app = t_store_state(t, t->app, NULL);
	for (int i = 0; i < MANY; i++) {
		CHECK(strstr(user, t_format(t, "user:n%d=%d", i, EACH)) != NULL);
		CHECK(strstr(app, t_format(t, "app:n%d=%d", i, EACH)) != NULL);
	}
	STATE(t_existing(t, "s0"), t_format(t, "%s n=%d %s", app, EACH, user));
	EQ(t_revision(t, t_existing(t, "s0")), 2 * EACH);
}

CASE(state_of_a_user_in_log_order)
{
	/* What a session's newest record with the key says is what the user has. */
	sheaf_session *s = t_new(t, "s");
	for (int i = 0; i < 50; i++)
		SAY(s, "user", "x", .time_us = 1000 - i,
		    .state_delta = t_format(t, "{\"user:k\":%d}", i));
	CSTR(t_store_state(t, t->app, ""), "user:k=49");
	suite_reopen(t);
	CSTR(t_store_state(t, t->app, ""), "user:k=49");
}

CASE(state_logs_are_written_anew)
{
	/* More than a store keeps of old values. */
	sheaf_session *s = t_new(t, "s");
	char *value = t_fill(t, '7', SHEAF_STATE_VALUE_BYTES_MAX);
	for (int i = 0; i < 40; i++)
		SAY(s, "user", "x",
		    .state_delta = t_format(t, "{\"user:k\":%s,\"app:k\":%s,\"user:n\":%d}", value,
		                            value, i));
	CSTR(t_store_state(t, t->app, ""), t_format(t, "user:k=%s user:n=39", value));
	suite_reopen(t);
	CSTR(t_store_state(t, t->app, ""), t_format(t, "user:k=%s user:n=39", value));
	CSTR(t_store_state(t, t->app, NULL), t_format(t, "app:k=%s", value));
	SAY(t_existing(t, "s"), "user", "x", .state_delta = "{\"user:k\":1}");
	CSTR(t_store_state(t, t->app, ""), "user:k=1 user:n=39");
}
