/* Watches below the suite: what wakes them, what they do where nothing can, and when it breaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/session.h"
#include "sheaf.h"
#include "sheaf/sys/seams.h"

#define SECOND INT64_C(1000000)

typedef struct fixture {
	sheaf_store *store;
	sheaf_session *session;
	sheaf_session *far; /* of another store object, where the store has more than one */
	sheaf_store *second;
} fixture;

static void open_on(fixture *f, const char *url)
{
	sheaf_key key = {{NULL, 0}, {NULL, 0}, SHEAF_STR("s")};
	*f = (fixture){NULL, NULL, NULL, NULL};
	assert_int_equal(sheaf_open(&f->store, url, NULL, NULL), 0);
	assert_int_equal(sheaf_session_open(&f->session, f->store, &key, NULL, NULL), 0);
	sheaf_store *other = f->store;
	if (strncmp(url, "jsonl:", 6) == 0) {
		assert_int_equal(sheaf_open(&f->second, url, NULL, NULL), 0);
		other = f->second;
	}
	assert_int_equal(sheaf_session_open(&f->far, other, &key, NULL, NULL), 0);
}

static void close_all(fixture *f)
{
	sheaf_session_close(f->far);
	sheaf_session_close(f->session);
	sheaf_close(f->second);
	sheaf_close(f->store);
}

static void say(sheaf_session *s)
{
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_text(m, SHEAF_STR("text"));
	assert_int_equal(sheaf_session_append_message(s, m, NULL, NULL, NULL, NULL), 0);
	sheaf_message_free(m);
}

static void *say_soon(void *s)
{
	usleep(200000);
	say(s);
	return NULL;
}

static void *delete_soon(void *s)
{
	sheaf_session *session = s;
	usleep(200000);
	assert_int_equal(sheaf_store_delete(NULL, session->store, &session->key.plain, NULL, NULL),
	                 0);
	return NULL;
}

/* How long the store waits while another thread does something after 0.2 s. */
static int64_t waited(fixture *f, uint64_t revision, void *(*meanwhile)(void *), int64_t most)
{
	pthread_t thread;
	int64_t began = clock_monotonic_us();
	if (meanwhile != NULL)
		assert_int_equal(pthread_create(&thread, NULL, meanwhile, f->far), 0);
	assert_int_equal(store_wait(f->store, &f->session->key.store, revision, began + most, NULL),
	                 0);
	int64_t took = clock_monotonic_us() - began;
	if (meanwhile != NULL)
		pthread_join(thread, NULL);
	return took;
}

static void wakes(const char *url)
{
	fixture f;
	open_on(&f, url);
	/* Nothing happens: to the end. */
	assert_true(waited(&f, 0, NULL, SECOND / 10) >= SECOND / 10);
	assert_true(waited(&f, 0, NULL, -1) < SECOND);
	/* Something does: at once, not at the end. */
	int64_t took = waited(&f, 0, say_soon, 30 * SECOND);
	assert_true(took >= SECOND / 10 && took < 10 * SECOND);
	/* It has already: no waiting. */
	assert_true(waited(&f, 0, NULL, 30 * SECOND) < 10 * SECOND);
	/* Again, with what is left over from before. */
	took = waited(&f, 1, say_soon, 30 * SECOND);
	assert_true(took >= SECOND / 10 && took < 10 * SECOND);
	took = waited(&f, 2, delete_soon, 30 * SECOND);
	assert_true(took >= SECOND / 10 && took < 10 * SECOND);
	assert_true(waited(&f, 2, NULL, 30 * SECOND) < 10 * SECOND);
	close_all(&f);
}

static char directory[64];

static const char *jsonl_url(void)
{
	static char url[96];
	snprintf(directory, sizeof(directory), "/tmp/sheaf-watch-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(url, sizeof(url), "jsonl:%s", directory);
	return url;
}

static void remove_directory(void)
{
	char command[96];
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	assert_int_equal(system(command), 0);
}

static void memory_wakes(void **state)
{
	(void)state;
	wakes("memory:");
}

static void jsonl_wakes(void **state)
{
	(void)state;
	wakes(jsonl_url());
	remove_directory();
}

/* ---- Where nothing wakes -------------------------------------------------------- */

static void comes_all_the_same(const char *url)
{
	fixture f;
	sheaf_watch *w = NULL;
	sheaf_records *r = NULL;
	pthread_t thread;
	open_on(&f, url);
	assert_true(waited(&f, 7, NULL, SECOND / 10) < 10 * SECOND);
	assert_int_equal(sheaf_watch_open(&w, f.session, 0, NULL), 0);
	assert_int_equal(sheaf_watch_next(&r, w, SECOND / 20, NULL), SHEAF_TIMEOUT);
	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(pthread_create(&thread, NULL, say_soon, f.far), 0);
		assert_int_equal(sheaf_watch_next(&r, w, 30 * SECOND, NULL), 0);
		pthread_join(thread, NULL);
		assert_int_equal(r->count, 1);
		assert_int_equal(r->items[0]->seq, i);
		sheaf_records_free(r);
	}
	sheaf_watch_close(w);
	close_all(&f);
}

static void a_store_that_cannot_wait(void **state)
{
	(void)state;
	static sheaf_store_ops ops;
	ops = store_memory_ops;
	ops.scheme = "nowait";
	ops.wait = NULL;
	assert_int_equal(sheaf_store_register(&ops, NULL), 0);
	comes_all_the_same("nowait:");
}

static int refuse_open(void *ctx)
{
	(void)ctx;
	errno = EMFILE;
	return -1;
}

static int refuse_add(void *ctx, int notify, int fd)
{
	(void)ctx;
	(void)notify;
	(void)fd;
	errno = ENOSPC;
	return -1;
}

/* A filesystem that tells of nothing. */
static int hear_nothing(void *ctx, int notify, int64_t us)
{
	(void)ctx;
	(void)notify;
	if (us > 0)
		clock_sleep_us(us);
	return 0;
}

static void a_system_that_does_not_tell(void **state)
{
	(void)state;
	sheaf_io no_instances = {.size = sizeof(sheaf_io), .notify_open = refuse_open};
	sheaf_io no_watches = {.size = sizeof(sheaf_io), .notify_add = refuse_add};
	sheaf_io deaf = {.size = sizeof(sheaf_io), .notify_wait = hear_nothing};
	const sheaf_io *tables[] = {&no_instances, &no_watches, &deaf};
	for (size_t i = 0; i < 3; i++) {
		sheaf_set_io(tables[i]);
		comes_all_the_same(jsonl_url());
		sheaf_set_io(NULL);
		remove_directory();
	}
}

/* ---- When it breaks --------------------------------------------------------------- */

static const char *broken_slot;

static int break_slot(void *ctx, const char *slot, sheaf_error *err)
{
	(void)ctx;
	(void)err;
	return strcmp(slot, broken_slot) == 0 ? SHEAF_STORAGE : 0;
}

static void a_failure_loses_nothing(void **state)
{
	(void)state;
	fixture f;
	sheaf_watch *w = NULL;
	sheaf_records *r = NULL;
	static const char *const slots[] = {"head", "scan"};
	open_on(&f, "memory:");
	assert_int_equal(sheaf_watch_open(&w, f.session, 0, NULL), 0);
	broken_slot = "wait";
	store_set_fault(break_slot, NULL);
	assert_int_equal(sheaf_watch_next(&r, w, SECOND, NULL), SHEAF_STORAGE);
	say(f.session);
	for (size_t i = 0; i < 2; i++) {
		broken_slot = slots[i];
		assert_int_equal(sheaf_watch_next(&r, w, SECOND, NULL), SHEAF_STORAGE);
	}
	store_set_fault(NULL, NULL);
	assert_int_equal(sheaf_watch_next(&r, w, SECOND, NULL), 0);
	assert_int_equal(r->count, 1);
	sheaf_records_free(r);
	sheaf_watch_close(w);
	close_all(&f);
}

static void *wait_long(void *argument)
{
	fixture *f = argument;
	int64_t until = clock_monotonic_us() + 30 * SECOND;
	assert_int_equal(store_wait(f->store, &f->session->key.store, 0, until, NULL), 0);
	return NULL;
}

/* More than the store keeps notifiers for: all wake, and none is kept open. */
static void many_wait_at_once(void **state)
{
	(void)state;
	enum {
		MANY = 20
	};
	pthread_t threads[MANY];
	fixture f;
	open_on(&f, jsonl_url());
	int64_t began = clock_monotonic_us();
	for (int i = 0; i < MANY; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_long, &f), 0);
	say_soon(f.far);
	for (int i = 0; i < MANY; i++)
		pthread_join(threads[i], NULL);
	assert_true(clock_monotonic_us() - began < 10 * SECOND);
	close_all(&f);
	remove_directory();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_wakes),
		cmocka_unit_test(jsonl_wakes),
		cmocka_unit_test(a_store_that_cannot_wait),
		cmocka_unit_test(a_system_that_does_not_tell),
		cmocka_unit_test(a_failure_loses_nothing),
		cmocka_unit_test(many_wait_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
