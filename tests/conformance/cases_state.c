/* Scoped state, as seed 002 tells it: deltas on records, four scopes, merged reads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "suite.h"

CASE(state_routed_and_merged)
{
	sheaf_session *s = t_new(t, "s"), *other = t_new(t, "other");
	STATE(s, "");
	SAY(s, "user", "hi",
	    .state_delta =
	            "{\"b\":1,\"user:theme\":\"dark\",\"app:limit\":[1, 2],\"a\":{\"x\":null}}");
	EQ(t->out.app_state, SHEAF_APP_STATE_APPLIED);
	STATE(s, "a={\"x\":null} app:limit=[1, 2] b=1 user:theme=\"dark\"");
	/* Another session of the user sees the user's and the app's, another user the app's. */
	STATE(other, "app:limit=[1, 2] user:theme=\"dark\"");
	sheaf_key key = t_key_of(t, "", "second", "s");
	STATE(t_open_in(t, t->store, &key, SHEAF_OPEN_NEW), "app:limit=[1, 2]");
	CSTR(t_store_state(t, t->app, ""), "user:theme=\"dark\"");
	CSTR(t_store_state(t, t->app, "second"), "");
	CSTR(t_store_state(t, t->app, NULL), "app:limit=[1, 2]");
	s = t_restart(t, "s");
	STATE(s, "a={\"x\":null} app:limit=[1, 2] b=1 user:theme=\"dark\"");
}

CASE(temp_not_stored)
{
	sheaf_session *s = t_new(t, "s");
	SET(s, "temp:scratch", "1");
	STATE(s, "temp:scratch=1");
	SAY(s, "user", "hi", .id = "m1", .state_delta = "{\"temp:x\":2,\"kept\":3}");
	/* Every way in: body, extra, batch. */
	JSON(s, "message",
	     "{\"message\":{\"role\":\"user\",\"content\":[]},\"state_delta\":{\"temp:y\":4}}",
	     .id = "m2");
	SAY(s, "user", "hi", .id = "m3", .extra = "{\"state_delta\":{\"temp:z\":5}}");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "hi", .id = "m4", .state_delta = "{\"temp:w\":6}");
	OK(t_append_batch(t, s, b, (put){0}));
	STATE(s, "kept=3 temp:scratch=1 temp:w=6 temp:x=2 temp:y=4 temp:z=5");
	STATE(t_existing(t, "s"), "kept=3");
	const sheaf_records *all = t_all(t, s);
	for (size_t i = 0; i < all->count; i++)
		CHECK(!t_contains(all->items[i]->line, "temp:"));
	CHECK(t_contains(t_get(t, s, "m1")->line, "\"state_delta\":{\"kept\":3}"));
	CHECK(!t_contains(t_get(t, s, "m2")->line, "state_delta"));
	sheaf_session_state_end_invocation(s);
	STATE(s, "kept=3");
	STATE(t_restart(t, "s"), "kept=3");
}

CASE(partial_ignored)
{
	sheaf_session *s = t_new(t, "s");
	SET(s, "set", "1");
	SAY(s, "assistant", "par", .partial = 1,
	    .state_delta = "{\"a\":1,\"user:b\":2,\"app:c\":3,\"temp:d\":4}");
	EQ(t->out.seq, 0);
	EQ(t->out.app_state, SHEAF_APP_STATE_NONE);
	EQ(t_revision(t, s), 0);
	STATE(s, "set=1");
	CSTR(t_store_state(t, t->app, ""), "");
	CSTR(t_store_state(t, t->app, NULL), "");
	SAY(s, "assistant", "partial no more");
	STATE(t_existing(t, "s"), "set=1");
}

/* ---- Two writers who expect the same ---------------------------------------- */

typedef struct race {
	sheaf_store *store;
	sheaf_key key;
	pthread_barrier_t start;
	pthread_barrier_t end;
	int rounds;
	int durability;
	uint64_t revision; /* what both expect; set between rounds */
	atomic_int won;
	atomic_int stale;
	atomic_int wrong;
} race;

static void *race_writer(void *argument)
{
	race *r = argument;
	sheaf_session *s = NULL;
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	if (sheaf_session_open(&s, r->store, &r->key, &o, NULL) != 0)
		atomic_fetch_add(&r->wrong, 1);
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	how.expect = SHEAF_EXPECT_REVISION;
	how.durability = r->durability;
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	entry.state_delta = S("{\"n\":1}");
	for (int i = 0; i < r->rounds; i++) {
		sheaf_error err = {0};
		pthread_barrier_wait(&r->start);
		how.revision = r->revision;
		int rc = s ? sheaf_session_append_custom(s, S("race"), S("{}"), &entry, &how, NULL,
		                                         &err)
		           : SHEAF_INVALID;
		if (rc == 0)
			atomic_fetch_add(&r->won, 1);
		else if (rc == SHEAF_STALE && err.outcome == SHEAF_FAILED &&
		         err.revision == how.revision + 1)
			atomic_fetch_add(&r->stale, 1);
		else
			atomic_fetch_add(&r->wrong, 1);
		pthread_barrier_wait(&r->end);
	}
	sheaf_session_close(s);
	return NULL;
}

CASE(stale_exactly_one_wins)
{
	sheaf_session *s = t_new(t, "s");
	const char *given = getenv("SHEAF_TEST_RACES");
	race *r = t_alloc(t, sizeof(*r));
	memset(r, 0, sizeof(*r));
	r->store = t->store;
	r->key = t_key(t, "s");
	r->rounds = given ? atoi(given) : 10000;
	r->durability = t->info.durability_max >= SHEAF_DURABILITY_PROCESS && !t->info.remote
	                        ? SHEAF_DURABILITY_PROCESS
	                        : 0;
	pthread_barrier_init(&r->start, NULL, 3);
	pthread_barrier_init(&r->end, NULL, 3);
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, race_writer, r);
	int bad = 0;
	for (int i = 0; i < r->rounds; i++) {
		r->revision = (uint64_t)i;
		pthread_barrier_wait(&r->start);
		pthread_barrier_wait(&r->end);
		bad += atomic_load(&r->won) != i + 1 || atomic_load(&r->stale) != i + 1;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&r->start);
	pthread_barrier_destroy(&r->end);
	EQ(bad, 0);
	EQ(atomic_load(&r->wrong), 0);
	EQ(t_revision(t, s), r->rounds);
	t->unverified = r->rounds > 1000; /* it is long, and verified by its count */
}

/* ---- Reading ------------------------------------------------------------------ */

CASE(recent_n_then_after)
{
	sheaf_session *s = t_new(t, "s");
	static const int64_t times[] = {100, 500, 200, 400, 300};
	for (int i = 0; i < 5; i++)
		SAY(s, "user", "x", .id = t_format(t, "m%d", i + 1), .time_us = times[i]);
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.newest = 1;
	o.limit = 3;
	IDS(t_records(t, s, &o), "m3 m4 m5");
	/* The newest three first, then what of them is not too old. */
	o.after_us = 300;
	IDS(t_records(t, s, &o), "m4 m5");
	o.limit = 4;
	IDS(t_records(t, s, &o), "m2 m4 m5");
	o.limit = 100;
	o.after_us = 200;
	IDS(t_records(t, s, &o), "m2 m3 m4 m5");
	o.after_us = 501;
	IDS(t_records(t, s, &o), "");
}

CASE(copy_on_read)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "hi", .id = "m1", .state_delta = "{\"a\":\"one\",\"user:b\":\"two\"}");
	sheaf_state *before = NULL, *again = NULL;
	OK(sheaf_session_state_all(&before, s, &t->err));
	const sheaf_records *records = t_all(t, s);
	/* Writing over what was returned reaches nobody else. */
	for (size_t i = 0; i < before->count; i++)
		memset((char *)(uintptr_t)before->items[i]->value.ptr, 'X',
		       before->items[i]->value.len);
	memset((char *)(uintptr_t)records->items[0]->line.ptr, 'X', records->items[0]->line.len);
	STATE(s, "a=\"one\" user:b=\"two\"");
	CHECK(t_contains(t_get(t, s, "m1")->line, "\"one\""));
	SAY(s, "user", "hi", .state_delta = "{\"a\":\"three\"}");
	EQ(before->count, 2);
	OK(sheaf_session_state_get(&again, s, S("a"), &t->err));
	TEXT(again->items[0]->value, "\"three\"");
	SET(s, "a", "4");
	TEXT(again->items[0]->value, "\"three\"");
	sheaf_state_free(before);
	sheaf_state_free(again);
}

CASE(other_user_not_readable_listable_deletable)
{
	sheaf_key mine = t_key_of(t, "", "ann", "s"), theirs = t_key_of(t, "", "bob", "s");
	sheaf_session *s = t_open_in(t, t->store, &mine, SHEAF_OPEN_NEW), *none = NULL;
	SAY(s, "user", "secret", .state_delta = "{\"user:pin\":1234,\"own\":1}");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	FAILS(NOT_FOUND, sheaf_session_open(&none, t->store, &theirs, &o, &t->err));
	sheaf_list_options list = SHEAF_LIST_OPTIONS_INIT;
	list.app = theirs.app;
	list.user = theirs.user;
	EQ(t_list(t, &list)->count, 0);
	FAILS(NOT_FOUND,
	      sheaf_session_open_recent(&none, t->store, theirs.app, theirs.user, &t->err));
	sheaf_deleted *gone = NULL;
	OK(sheaf_store_delete(&gone, t->store, &theirs, NULL, &t->err));
	EQ(gone->existed, 0);
	sheaf_deleted_free(gone);
	CSTR(t_store_state(t, t->app, "bob"), "");
	sheaf_session *bobs = t_open_in(t, t->store, &theirs, SHEAF_OPEN_NEW);
	STATE(bobs, "");
	SAY(bobs, "user", "x", .state_delta = "{\"user:pin\":null,\"user:own\":2}");
	STATE(bobs, "user:own=2");
	STATE(s, "own=1 user:pin=1234");
	CSTR(t_store_state(t, t->app, "ann"), "user:pin=1234");
}
