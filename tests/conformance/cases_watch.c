/* Watches: every record after a revision, once, in order, in whole batches, as they come. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "suite.h"

#define SECOND INT64_C(1000000)

/* Long enough for any store that works, short enough to notice one that does not. */
#define SOON (30 * SECOND)

static int64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * SECOND + t.tv_nsec / 1000;
}

static sheaf_watch *watch_open(suite *t, sheaf_session *s, uint64_t after)
{
	sheaf_watch *w = NULL;
	OK(sheaf_watch_open(&w, s, after, &t->err));
	return w;
}

static const sheaf_records *watch_next(suite *t, sheaf_watch *w, int64_t timeout_us)
{
	sheaf_records *r = NULL;
	OK(sheaf_watch_next(&r, w, timeout_us, &t->err));
	return t_keep_records(t, r);
}

CASE(watch_gives_what_was_there)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "one", .id = "a");
	SAY(s, "assistant", "two", .id = "b");
	LABEL(s, "a", "start");
	sheaf_watch *w = watch_open(t, s, 0);
	const sheaf_records *r = watch_next(t, w, 0);
	EQ(r->count, 3);
	TEXT(r->items[0]->id, "a");
	EQ(r->items[0]->seq, 1);
	TEXT(r->items[1]->id, "b");
	TEXT(r->items[1]->parent_id, "a");
	EQ(r->items[2]->kind, SHEAF_KIND_LABEL);
	EQ(r->revision, 3);
	EQ(r->next_seq, 0);
	sheaf_records *none = NULL;
	FAILS(TIMEOUT, sheaf_watch_next(&none, w, 0, &t->err));
	CHECK(none == NULL);
	sheaf_watch_close(w);
}

CASE(watch_starts_after_a_revision)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "one", .id = "a");
	SAY(s, "user", "two", .id = "b");
	SAY(s, "user", "three", .id = "c");
	sheaf_watch *w = watch_open(t, s, 2);
	IDS(watch_next(t, w, 0), "c");
	SAY(s, "user", "four", .id = "d");
	IDS(watch_next(t, w, SOON), "d");
	sheaf_watch_close(w);
	w = watch_open(t, s, 4);
	sheaf_records *none = NULL;
	FAILS(TIMEOUT, sheaf_watch_next(&none, w, 1000, &t->err));
	sheaf_watch_close(w);
}

CASE(watch_goes_on_after_a_restart)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "one", .id = "a");
	sheaf_watch *w = watch_open(t, s, 0);
	uint64_t seen = watch_next(t, w, 0)->revision;
	sheaf_watch_close(w);
	SAY(s, "user", "two", .id = "b");
	s = t_restart(t, "s");
	w = watch_open(t, s, seen);
	IDS(watch_next(t, w, 0), "b");
	SAY(s, "user", "three", .id = "c");
	IDS(watch_next(t, w, SOON), "c");
	sheaf_watch_close(w);
}

CASE(watch_times_out)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_watch *w = watch_open(t, s, 0);
	sheaf_records *none = NULL;
	int64_t began = now_us();
	FAILS(TIMEOUT, sheaf_watch_next(&none, w, SECOND / 5, &t->err));
	int64_t took = now_us() - began;
	CHECK(took >= SECOND / 5 - 1000);
	CHECK(took < 20 * SECOND);
	SAY(s, "user", "one", .id = "a");
	IDS(watch_next(t, w, 0), "a");
	sheaf_watch_close(w);
}

CASE(watch_of_a_revision_that_is_not_there)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "one", .id = "a");
	sheaf_watch *w = NULL;
	FAILS(STALE, sheaf_watch_open(&w, s, 2, &t->err));
	EQ(t->err.revision, 1);
	CHECK(w == NULL);
	FAILS(INVALID, sheaf_watch_open(NULL, s, 0, &t->err));
	FAILS(INVALID, sheaf_watch_open(&w, NULL, 0, &t->err));
	FAILS(INVALID, sheaf_watch_next(NULL, NULL, 0, &t->err));
	sheaf_watch_cancel(NULL);
	sheaf_watch_close(NULL);
}

CASE(watch_gives_records_of_every_kind)
{
	sheaf_session *s = t_new(t, "s");
	JSON(s, "made_up", "{\"made_up\":{\"x\":[1,2,{\"y\":null}]}}", .id = "a");
	SAY(s, "user", "\n\t\"\\ \x7f", .id = "b");
	sheaf_watch *w = watch_open(t, s, 0);
	const sheaf_records *r = watch_next(t, w, 0);
	IDS(r, "a b");
	for (size_t i = 0; i < r->count; i++)
		CHECK(!r->items[i]->damaged);
	sheaf_watch_close(w);
}

CASE(watch_gives_whole_batches)
{
	sheaf_session *s = t_new(t, "s");
	/* 700 and 700 do not fit into one page, and 1,200 into none. */
	static const int sizes[] = {700, 700, 1200, 1};
	for (size_t i = 0; i < 4; i++) {
		sheaf_batch *b = t_batch(t);
		for (int k = 0; k < sizes[i]; k++)
			ADD(b, "user", "x");
		OK(t_append_batch(t, s, b, (put){0}));
	}
	sheaf_watch *w = watch_open(t, s, 0);
	uint64_t seq = 0;
	for (size_t i = 0; i < 4; i++) {
		const sheaf_records *r = watch_next(t, w, 0);
		EQ(r->count, sizes[i]);
		EQ(r->items[0]->batch_index, 0);
		for (size_t k = 0; k < r->count; k++)
			EQ(r->items[k]->seq, ++seq);
		EQ(r->revision, seq);
		EQ(r->next_seq, i < 3 ? seq + 1 : 0);
	}
	sheaf_watch_close(w);
}

CASE(watch_pages_are_bounded_in_bytes)
{
	sheaf_session *s = t_new(t, "s");
	/* Two of 5 MiB are a batch; a page has room for three such records, not for four. */
	const char *large = t_fill(t, 'x', (size_t)5 << 20);
	for (int i = 0; i < 3; i++) {
		sheaf_batch *b = t_batch(t);
		ADD(b, "user", large);
		ADD(b, "user", large);
		OK(t_append_batch(t, s, b, (put){0}));
	}
	sheaf_watch *w = watch_open(t, s, 0);
	for (int i = 0; i < 3; i++) {
		const sheaf_records *r = watch_next(t, w, 0);
		EQ(r->count, 2);
		EQ(r->items[0]->seq, (uint64_t)i * 2 + 1);
	}
	sheaf_watch_close(w);
}

CASE(watch_of_a_fork_gives_its_own_records)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "one", .id = "a");
	SAY(s, "user", "two", .id = "b");
	sheaf_session *f = t_fork(t, s, "b", "f");
	uint64_t begun = t_revision(t, f);
	sheaf_watch *w = watch_open(t, f, 0);
	SAY(s, "user", "not for the fork", .id = "c");
	SAY(f, "user", "three", .id = "d");
	uint64_t seq = 2;
	const sheaf_records *r;
	do {
		r = watch_next(t, w, SOON);
		for (size_t i = 0; i < r->count; i++)
			EQ(r->items[i]->seq, ++seq);
	} while (seq <= begun);
	TEXT(r->items[r->count - 1]->id, "d");
	TEXT(r->items[r->count - 1]->parent_id, "b");
	sheaf_watch_close(w);
}

CASE(watch_ends_when_the_session_is_deleted)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "one", .id = "a");
	sheaf_watch *w = watch_open(t, s, 1);
	sheaf_key key = t_key(t, "s");
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	sheaf_records *none = NULL;
	FAILS(GONE, sheaf_watch_next(&none, w, SOON, &t->err));
	FAILS(GONE, sheaf_watch_next(&none, w, 0, &t->err));
	/* Another session under the same key is another session. */
	usleep(2000);
	sheaf_session *again = t_new(t, "s");
	SAY(again, "user", "one", .id = "a");
	SAY(again, "user", "two", .id = "b");
	FAILS(GONE, sheaf_watch_next(&none, w, 0, &t->err));
	sheaf_watch_close(w);
	w = NULL;
	sheaf_session *other = t_new(t, "other");
	key = t_key(t, "other");
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	FAILS(GONE, sheaf_watch_open(&w, other, 0, &t->err));
}

CASE(watch_ends_when_the_session_is_hidden)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "one", .id = "a");
	sheaf_watch *w = watch_open(t, s, 0);
	IDS(watch_next(t, w, 0), "a");
	(void)t_fork(t, s, "a", "f");
	sheaf_key key = t_key(t, "s");
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	sheaf_records *none = NULL;
	FAILS(GONE, sheaf_watch_next(&none, w, SOON, &t->err));
	sheaf_watch_close(w);
}

/* ---- With others ---------------------------------------------------------- */

typedef struct writer {
	sheaf_session *session;
	int count;
	int size;        /* records in one append */
	int64_t pause;   /* before each */
	atomic_llong at; /* when the last append was begun */
	atomic_int failures;
} writer;

static void *write_all(void *argument)
{
	writer *self = argument;
	for (int i = 0; i < self->count; i++) {
		if (self->pause != 0)
			usleep((useconds_t)self->pause);
		sheaf_batch *b = sheaf_batch_new();
		for (int k = 0; k < self->size; k++) {
			sheaf_message *m = sheaf_message_new("user");
			sheaf_message_text(m, SHEAF_STR("text"));
			if (sheaf_batch_message(b, m, NULL, NULL) != 0)
				atomic_fetch_add(&self->failures, 1);
			sheaf_message_free(m);
		}
		atomic_store(&self->at, now_us());
		if (sheaf_session_append_batch(self->session, b, NULL, NULL, NULL) != 0)
			atomic_fetch_add(&self->failures, 1);
		sheaf_batch_free(b);
	}
	return NULL;
}

typedef struct watcher {
	sheaf_watch *watch;
	uint64_t want;
	uint64_t seen;
	int rc;
	bool torn; /* a gap, a double, or half of a batch */
} watcher;

static void *watch_all(void *argument)
{
	watcher *self = argument;
	while (self->seen < self->want && self->rc == 0) {
		sheaf_records *r = NULL;
		self->rc = sheaf_watch_next(&r, self->watch, SOON, NULL);
		if (self->rc != 0)
			break;
		const sheaf_entry *last = r->items[r->count - 1];
		self->torn = self->torn || r->items[0]->batch_index != 0 ||
		             last->batch_index + 1 != last->batch_count;
		for (size_t i = 0; i < r->count; i++)
			self->torn = self->torn || r->items[i]->seq != ++self->seen;
		sheaf_records_free(r);
	}
	return NULL;
}

CASE(watch_by_several_while_several_write)
{
	enum {
		WRITERS = 3,
		WATCHERS = 4,
		APPENDS = 40,
		SIZE = 3
	};
	sheaf_session *s = t_new(t, "s");
	sheaf_key key = t_key(t, "s");
	writer writers[WRITERS];
	watcher watchers[WATCHERS];
	pthread_t threads[WRITERS + WATCHERS];
	for (int i = 0; i < WATCHERS; i++) {
		sheaf_session *own = t_open_in(t, i % 2 ? suite_twin(t) : t->store, &key,
		                               SHEAF_OPEN_EXISTING);
		watchers[i] = (watcher){.watch = watch_open(t, own, 0),
		                        .want = (uint64_t)WRITERS * APPENDS * SIZE};
		pthread_create(&threads[WRITERS + i], NULL, watch_all, &watchers[i]);
	}
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (writer){.session = s, .count = APPENDS, .size = SIZE};
		pthread_create(&threads[i], NULL, write_all, &writers[i]);
	}
	for (int i = 0; i < WRITERS + WATCHERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < WRITERS; i++)
		EQ(atomic_load(&writers[i].failures), 0);
	for (int i = 0; i < WATCHERS; i++) {
		EQ(watchers[i].rc, 0);
		CHECK(!watchers[i].torn);
		EQ(watchers[i].seen, watchers[i].want);
		sheaf_watch_close(watchers[i].watch);
	}
}

/* The last of what two store objects write reaches a watch that waits, before it has to look. */
CASE(watch_is_told_soon)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_key key = t_key(t, "s");
	sheaf_session *far = t_open_in(t, suite_twin(t), &key, SHEAF_OPEN_EXISTING);
	sheaf_watch *w = watch_open(t, s, 0);
	writer self = {.session = far, .count = 1, .size = 2, .pause = SECOND / 2};
	pthread_t thread;
	pthread_create(&thread, NULL, write_all, &self);
	sheaf_records *r = NULL;
	int rc = sheaf_watch_next(&r, w, SOON, &t->err);
	int64_t took = now_us() - atomic_load(&self.at);
	pthread_join(thread, NULL);
	EQ(rc, 0);
	EQ(t_keep_records(t, r)->count, 2);
	if (took > 2 * SECOND)
		FAIL("it took %lld us", (long long)took);
	sheaf_watch_close(w);
}

static void *cancel_soon(void *argument)
{
	usleep(100000);
	sheaf_watch_cancel(argument);
	return NULL;
}

CASE(watch_cancelled)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_watch *w = watch_open(t, s, 0);
	pthread_t thread;
	pthread_create(&thread, NULL, cancel_soon, w);
	sheaf_records *none = NULL;
	int64_t began = now_us();
	int rc = sheaf_watch_next(&none, w, -1, &t->err);
	int64_t took = now_us() - began;
	pthread_join(thread, NULL);
	EQ(rc == SHEAF_CANCELLED, 1);
	CHECK(took < 10 * SECOND);
	SAY(s, "user", "one", .id = "a");
	FAILS(CANCELLED, sheaf_watch_next(&none, w, 0, &t->err));
	sheaf_watch_close(w);
	/* The next one has lost nothing. */
	w = watch_open(t, s, 0);
	IDS(watch_next(t, w, 0), "a");
	sheaf_watch_close(w);
}

CASE(watch_leaves_the_handle_as_it_was)
{
	sheaf_session *s = t_new(t, "s"), *other = t_existing(t, "s");
	SAY(s, "user", "q", .id = "u1");
	SAY(other, "user", "meanwhile", .id = "u2");
	sheaf_watch *w = watch_open(t, s, 1);
	IDS(watch_next(t, w, 0), "u2");
	/* Who writes the turn need not be who watches. */
	sheaf_batch *b = t_batch(t);
	ADD(b, "assistant", "answer", .id = "a1");
	FAILS(STALE, sheaf_session_append_turn(s, b, S("t1"), S(NULL), NULL, NULL, NULL, &t->err));
	sheaf_watch_close(w);
}
