/* Tests of core/expiry.c: to the microsecond, and what happens between two steps. */
#include "core_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sheaf/sys/seams.h"
#include "store/store.h"
#include "support/fail_alloc.h"

/* ---- A clock that stands still ------------------------------------------- */

static int64_t now_us;

static int64_t standing(void *ctx)
{
	(void)ctx;
	return now_us;
}

static int open_standing(void **state)
{
	sheaf_io io = {.size = sizeof(io), .realtime_us = standing};
	now_us = INT64_C(1800000000) * 1000000;
	sheaf_set_io(&io);
	return open_store(state);
}

static int close_standing(void **state)
{
	store_set_fault(NULL, NULL);
	(void)close_store(state);
	sheaf_set_io(NULL);
	return 0;
}

#define STANDING(name) cmocka_unit_test_setup_teardown(name, open_standing, close_standing)

static void retain(sheaf_session *s, int64_t ttl_us, int64_t grace_us)
{
	sheaf_retention r = SHEAF_RETENTION_INIT;
	r.ttl_us = ttl_us;
	r.grace_us = grace_us;
	OK(sheaf_session_retain(s, &r, NULL, NULL, &err));
}

static int opens(sheaf_store *store, const char *id)
{
	sheaf_key key = sheaf_key_of(id);
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_session *s = NULL;
	o.mode = SHEAF_OPEN_EXISTING;
	int rc = sheaf_session_open(&s, store, &key, &o, NULL);
	sheaf_session_close(s);
	return rc;
}

static size_t swept(sheaf_store *store)
{
	sheaf_expired *e = NULL;
	OK(sheaf_store_expire(&e, store, NULL, &err));
	size_t count = e->removed->count;
	sheaf_expired_free(e);
	return count;
}

static void test_to_the_microsecond(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY(s, "1", .id = "a");
	retain(s, 10, 5);
	int64_t stored = now_us;
	now_us = stored + 9;
	assert_int_equal(opens(*state, "s"), 0);
	now_us = stored + 10;
	assert_int_equal(opens(*state, "s"), SHEAF_EXPIRED);
	now_us = stored + 14;
	assert_int_equal(opens(*state, "s"), SHEAF_EXPIRED);
	assert_int_equal(swept(*state), 0);
	now_us = stored + 15;
	assert_int_equal(opens(*state, "s"), SHEAF_NOT_FOUND);
	now_us = stored - 1000; /* a clock that was set back brings it back */
	assert_int_equal(opens(*state, "s"), 0);
	now_us = INT64_C(253402300799) * 1000000; /* the end of 9999 */
	assert_int_equal(swept(*state), 1);
	sheaf_session_close(s);
}

/* ---- Between two steps ----------------------------------------------------- */

typedef struct between {
	sheaf_store *store;
	const char *slot;
	int left;
	int64_t later_us; /* so much time passes */
	bool anew;        /* the session is deleted and made again */
	bool gone;        /* it is removed */
} between;

static int step_in(void *ctx, const char *slot, sheaf_error *e)
{
	between *b = ctx;
	sheaf_key key = sheaf_key_of("s");
	(void)e;
	if (strcmp(slot, b->slot) != 0 || b->left == 0 || --b->left != 0)
		return 0;
	now_us += b->later_us;
	if (b->anew || b->gone)
		assert_int_equal(sheaf_store_delete(NULL, b->store, &key, NULL, NULL), 0);
	if (b->anew) {
		sheaf_session *s = NULL;
		assert_int_equal(sheaf_session_open(&s, b->store, &key, NULL, NULL), 0);
		sheaf_session_close(s);
	}
	return 0;
}

static void sweep_meanwhile(sheaf_store *store)
{
	between b = {.store = store, .slot = "remove", .left = 1, .anew = true};
	store_set_fault(step_in, &b);
	assert_int_equal(swept(store), 0);
	store_set_fault(NULL, NULL);
	assert_int_equal(b.left, 0);
	assert_int_equal(opens(store, "s"), 0); /* it is another one */
}

static void test_sweep_of_what_was_made_anew(void **state)
{
	sheaf_session *s = make(*state, "s");
	retain(s, 1, SHEAF_GRACE_NONE);
	now_us += 10;
	sweep_meanwhile(*state);
	sheaf_session_close(s);
}

static void test_sweep_of_a_log_made_anew(void **state)
{
	(void)state;
	char dir[] = "/tmp/sheaf-expiry-XXXXXX", url[80], file[80], clean[80];
	sheaf_store *store = NULL;
	assert_non_null(mkdtemp(dir));
	snprintf(url, sizeof(url), "jsonl:%s", dir);
	snprintf(file, sizeof(file), "%s/s.jsonl", dir);
	OK(sheaf_open(&store, url, NULL, &err));
	sheaf_session *s = make(store, "s");
	retain(s, 1000000, SHEAF_GRACE_NONE);
	struct timespec old[2] = {{1000, 0}, {1000, 0}};
	assert_int_equal(utimensat(AT_FDCWD, file, old, 0), 0);
	sweep_meanwhile(store);
	sheaf_session_close(s);
	sheaf_close(store);
	snprintf(clean, sizeof(clean), "rm -rf %s", dir);
	assert_int_equal(system(clean), 0);
}

static void test_append_as_it_expires(void **state)
{
	sheaf_session *s = make(*state, "s");
	retain(s, 100, 100);
	between b = {.store = *state, .slot = "append", .left = 1, .later_us = 100};
	store_set_fault(step_in, &b);
	FAILS(EXPIRED, sheaf_session_append_text(s, "user", S("late"), NULL, &err));
	now_us += 50;
	FAILS(EXPIRED, sheaf_session_append_text(s, "user", S("late"), NULL, &err));
	sheaf_session_close(s);
}

static void test_undelete_as_its_grace_ends(void **state)
{
	sheaf_key key = sheaf_key_of("s");
	sheaf_session *s = make(*state, "s");
	retain(s, 100, 100);
	now_us += 150;
	between b = {.store = *state, .slot = "append", .left = 1, .later_us = 50};
	store_set_fault(step_in, &b);
	FAILS(NOT_FOUND, sheaf_store_undelete(*state, &key, NULL, NULL, &err));
	assert_int_equal(b.left, 0);
	sheaf_session_close(s);
}

static void test_a_key_that_others_clear(void **state)
{
	sheaf_session *s = make(*state, "s");
	retain(s, 1, SHEAF_GRACE_NONE);
	now_us += 10;
	/* The first append finds the key taken; then somebody else sweeps before we do. */
	between b = {.store = *state, .slot = "head", .left = 1, .gone = true};
	store_set_fault(step_in, &b);
	sheaf_session *new = make(*state, "s");
	assert_int_equal(b.left, 0);
	sheaf_session_close(new);
	sheaf_session_close(s);
}

/* ---- Without memory --------------------------------------------------------- */

static int undelete_call(sheaf_store *store)
{
	sheaf_key key = sheaf_key_of("grace");
	return sheaf_store_undelete(store, &key, NULL, NULL, &err);
}

static int expire_call(sheaf_store *store)
{
	sheaf_expired *e = NULL;
	int rc = sheaf_store_expire(&e, store, NULL, &err);
	sheaf_expired_free(e);
	return rc;
}

static void until_it_works(int (*call)(sheaf_store *store), sheaf_store *store)
{
	for (size_t n = 1;; n++) {
		fail_alloc_at(n, false);
		int rc = call(store);
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		if (!hit) {
			assert_int_equal(rc, 0);
			return;
		}
		if (rc != 0)
			assert_int_equal(rc, SHEAF_NOMEM);
	}
}

static void test_without_memory(void **state)
{
	(void)state;
	fail_alloc_install();
	sheaf_store *store = NULL;
	OK(sheaf_open(&store, "memory:", NULL, &err));
	sheaf_session *grace = make(store, "grace"), *over = make(store, "over");
	retain(grace, 1, 0);
	retain(over, 1, SHEAF_GRACE_NONE);
	usleep(2000);
	until_it_works(expire_call, store);
	assert_int_equal(opens(store, "over"), SHEAF_NOT_FOUND);
	until_it_works(undelete_call, store);
	sheaf_session_close(grace);
	sheaf_session_close(over);
	sheaf_close(store);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STANDING(test_to_the_microsecond),
		STANDING(test_sweep_of_what_was_made_anew),
		STANDING(test_append_as_it_expires),
		STANDING(test_undelete_as_its_grace_ends),
		STANDING(test_a_key_that_others_clear),
		cmocka_unit_test(test_sweep_of_a_log_made_anew),
		cmocka_unit_test(test_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
