/* Tests of base/uuid.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/uuid.h"
#include "sheaf/sys/seams.h"

static int64_t fake_now_us;
static atomic_int random_calls;
static bool random_fails;

static int64_t fake_realtime(void *ctx)
{
	(void)ctx;
	return fake_now_us;
}

static int fake_random(void *ctx, void *buf, size_t len)
{
	(void)ctx;
	atomic_fetch_add(&random_calls, 1);
	if (random_fails) {
		errno = ENOSYS;
		return -1;
	}
	return sheaf_system_io()->random(NULL, buf, len);
}

static int fake_on(void **state)
{
	(void)state;
	static const sheaf_io table = {
		.size = sizeof(table), .random = fake_random, .realtime_us = fake_realtime};
	random_fails = false;
	sheaf_set_io(&table);
	return 0;
}

static int fake_off(void **state)
{
	(void)state;
	sheaf_set_io(NULL);
	return 0;
}

static sheaf_str text_of(const char *id)
{
	return (sheaf_str){id, UUID_TEXT};
}

/* Milliseconds << 12 | counter, as the id says them. */
static uint64_t number_of(const char *id)
{
	char hex[16] = {0};
	memcpy(hex, id, 8);
	memcpy(hex + 8, id + 9, 4);
	memcpy(hex + 12, id + 15, 3);
	return strtoull(hex, NULL, 16);
}

static void test_form_and_time(void **state)
{
	(void)state;
	fake_now_us = INT64_C(1700000000123) * 1000 + 999;
	char id[UUID_TEXT + 1];
	memset(id, 'x', sizeof(id));
	assert_int_equal(uuid7_new(id, NULL), 0);
	assert_int_equal(strlen(id), UUID_TEXT);
	assert_true(uuid7_is(text_of(id)));
	assert_int_equal(number_of(id) >> 12, INT64_C(1700000000123));
}

static void test_ascending_with_a_frozen_clock(void **state)
{
	(void)state;
	char before[UUID_TEXT + 1], id[UUID_TEXT + 1];
	fake_now_us += 10000;
	int64_t ms = fake_now_us / 1000;
	assert_int_equal(uuid7_new(before, NULL), 0);
	uint64_t number = number_of(before);
	assert_true((number & 0xfff) <= 0x7ff); /* at least half of the counter is free */
	for (int i = 0; i < 20000; i++) {
		assert_int_equal(uuid7_new(id, NULL), 0);
		assert_true(strcmp(before, id) < 0);
		assert_true(uuid7_is(text_of(id)));
		assert_int_equal(number_of(id), ++number);
		memcpy(before, id, sizeof(id));
	}
	assert_true(number >> 12 > (uint64_t)ms); /* carried into the milliseconds */
}

static void test_ascending_when_the_clock_goes_back(void **state)
{
	(void)state;
	char before[UUID_TEXT + 1], id[UUID_TEXT + 1];
	fake_now_us += 100000;
	assert_int_equal(uuid7_new(before, NULL), 0);
	static const int64_t jumps[] = {-1, -3600000000, 5, -1700000000000000, -5, 0};
	int64_t now = fake_now_us;
	for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		fake_now_us = now + jumps[i];
		assert_int_equal(uuid7_new(id, NULL), 0);
		assert_true(strcmp(before, id) < 0);
		memcpy(before, id, sizeof(id));
	}
	/* And it follows the clock again when that has caught up. */
	fake_now_us = now + 50000;
	assert_int_equal(uuid7_new(id, NULL), 0);
	assert_true(strcmp(before, id) < 0);
	assert_int_equal(number_of(id) >> 12, (uint64_t)fake_now_us / 1000);
}

static void test_randomness_is_pooled_and_may_fail(void **state)
{
	(void)state;
	char id[UUID_TEXT + 1];
	fake_now_us += 1000000;
	atomic_store(&random_calls, 0);
	for (int i = 0; i < 4000; i++)
		assert_int_equal(uuid7_new(id, NULL), 0);
	assert_in_range(atomic_load(&random_calls), 5, 12);

	sheaf_error err;
	int rc = 0;
	random_fails = true;
	memset(id, 0, sizeof(id));
	for (int i = 0; i < 1000 && rc == 0; i++)
		rc = uuid7_new(id, &err);
	assert_int_equal(rc, SHEAF_STORAGE);
	assert_int_equal(err.code, SHEAF_STORAGE);
	assert_int_equal(err.sys_errno, ENOSYS);
	assert_int_equal(uuid7_new(id, NULL), SHEAF_STORAGE);
	random_fails = false;
	assert_int_equal(uuid7_new(id, NULL), 0);
	assert_true(uuid7_is(text_of(id)));
}

static void test_child_has_other_randomness(void **state)
{
	(void)state;
	char mine[UUID_TEXT + 1];
	char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	assert_int_equal(uuid7_new(mine, NULL), 0); /* the pool is filled */
	pid_t pid = fork();
	if (pid == 0)
		_exit(uuid7_new(shared, NULL) == 0 ? 0 : 1);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(uuid7_new(mine, NULL), 0);
	assert_true(uuid7_is(text_of(shared)));
	assert_string_not_equal(mine + 19, shared + 19);
	munmap(shared, 4096);
}

enum {
	THREADS = 4,
	PER_THREAD = 20000
};

static void *make_many(void *arg)
{
	char(*ids)[UUID_TEXT + 1] = arg;
	for (int i = 0; i < PER_THREAD; i++) {
		if (uuid7_new(ids[i], NULL) != 0 || (i != 0 && strcmp(ids[i - 1], ids[i]) >= 0))
			return ids;
	}
	return NULL;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void test_threads(void **state)
{
	(void)state;
	char(*ids)[UUID_TEXT + 1] = calloc(THREADS * PER_THREAD, UUID_TEXT + 1);
	pthread_t threads[THREADS];
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, make_many, ids + i * PER_THREAD),
		                 0);
	for (size_t i = 0; i < THREADS; i++) {
		void *bad = NULL;
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
	qsort(ids, THREADS * PER_THREAD, UUID_TEXT + 1, by_text);
	for (size_t i = 1; i < THREADS * PER_THREAD; i++)
		assert_true(number_of(ids[i]) != number_of(ids[i - 1]));
	free(ids);
}

static void test_is(void **state)
{
	(void)state;
	char id[] = "0192f7a0-1111-7abc-8def-00000000000f";
	assert_true(uuid7_is(SHEAF_STR("0192f7a0-1111-7abc-8def-00000000000f")));
	assert_false(uuid7_is((sheaf_str){NULL, 0}));
	assert_false(uuid7_is((sheaf_str){id, UUID_TEXT - 1}));
	assert_false(uuid7_is((sheaf_str){id, UUID_TEXT + 1}));
	/* Every place has characters that are right and some that are not. */
	for (size_t at = 0; at < UUID_TEXT; at++) {
		bool dash = at == 8 || at == 13 || at == 18 || at == 23;
		const char *hex = at == 19 ? "89ab" : "0123456789abcdef";
		const char *good = dash ? "-" : at == 14 ? "7" : hex;
		char was = id[at];
		for (int c = 0; c < 256; c++) {
			id[at] = (char)c;
			bool want = c != 0 && strchr(good, c) != NULL;
			assert_int_equal(uuid7_is(text_of(id)), want);
		}
		id[at] = was;
	}
}

#define FAKE(name) cmocka_unit_test_setup_teardown(name, fake_on, fake_off)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE(test_form_and_time),
		FAKE(test_ascending_with_a_frozen_clock),
		FAKE(test_ascending_when_the_clock_goes_back),
		FAKE(test_randomness_is_pooled_and_may_fail),
		FAKE(test_child_has_other_randomness),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
