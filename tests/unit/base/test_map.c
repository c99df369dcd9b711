/* Tests of base/map.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "support/fail_alloc.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "sheaf/error.h"

static int install(void **state)
{
	(void)state;
	fail_alloc_install();
	return 0;
}

static int no_leak(void **state)
{
	(void)state;
	size_t live = fail_alloc_live();
	fail_alloc_remove();
	return live == 0 ? 0 : -1;
}

enum {
	KEYS = 5000
};
static char names[KEYS][16];

static sheaf_str name_of(size_t i)
{
	int n = snprintf(names[i], sizeof(names[i]), "key-%zu", i);
	return (sheaf_str){names[i], (size_t)n};
}

static void test_empty(void **state)
{
	(void)state;
	map m = MAP_INIT;
	uint64_t value = 3;
	size_t at = 0;
	assert_false(map_get(&m, SHEAF_STR("x"), &value));
	assert_int_equal(value, 3);
	assert_false(map_remove(&m, SHEAF_STR("x")));
	assert_null(map_each(&m, &at));
	assert_null(map_get_ptr(&m, SHEAF_STR("x")));
	map_free(&m);
	map_free(&m);
}

static void test_set_get_replace(void **state)
{
	(void)state;
	_cleanup_(map_free) map m = MAP_INIT;
	uint64_t value;
	for (size_t i = 0; i < KEYS; i++)
		assert_int_equal(map_set(&m, name_of(i), i), 0);
	assert_int_equal(m.count, KEYS);
	assert_int_equal(m.room & (m.room - 1), 0);
	assert_true(m.used <= m.room / 4 * 3);
	for (size_t i = 0; i < KEYS; i++) {
		assert_true(map_get(&m, name_of(i), &value));
		assert_int_equal(value, i);
	}
	assert_false(map_get(&m, SHEAF_STR("key-"), &value));
	assert_false(map_get(&m, SHEAF_STR("key-5000"), &value));

	/* The key goes with the value: the old one may be freed. */
	char *old = strdup("key-7");
	assert_int_equal(map_set(&m, (sheaf_str){old, 5}, 70), 0);
	assert_int_equal(map_set(&m, name_of(7), 700), 0);
	free(old);
	assert_true(map_get(&m, SHEAF_STR("key-7"), &value));
	assert_int_equal(value, 700);
	assert_int_equal(m.count, KEYS);
}

static void test_odd_keys(void **state)
{
	(void)state;
	_cleanup_(map_free) map m = MAP_INIT;
	uint64_t value;
	assert_int_equal(map_set(&m, (sheaf_str){NULL, 0}, 1), 0);
	assert_true(map_get(&m, SHEAF_STR(""), &value));
	assert_int_equal(value, 1);
	assert_int_equal(map_set(&m, SHEAF_STR(""), 2), 0);
	assert_int_equal(m.count, 1);
	assert_int_equal(map_set(&m, SHEAF_STR("a\0b"), 3), 0);
	assert_int_equal(map_set(&m, SHEAF_STR("a\0c"), 4), 0);
	assert_true(map_get(&m, SHEAF_STR("a\0b"), &value));
	assert_int_equal(value, 3);
	assert_true(map_remove(&m, (sheaf_str){NULL, 0}));
	assert_false(map_get(&m, SHEAF_STR(""), &value));
	int x;
	assert_int_equal(map_set_ptr(&m, SHEAF_STR("p"), &x), 0);
	assert_ptr_equal(map_get_ptr(&m, SHEAF_STR("p")), &x);
	assert_int_equal(map_set(&m, SHEAF_STR("max"), UINT64_MAX), 0);
	assert_true(map_get(&m, SHEAF_STR("max"), &value));
	assert_true(value == UINT64_MAX);
}

static void test_each(void **state)
{
	(void)state;
	_cleanup_(map_free) map m = MAP_INIT;
	static unsigned char seen[KEYS];
	for (size_t i = 0; i < KEYS; i++)
		assert_int_equal(map_set(&m, name_of(i), i), 0);
	for (size_t i = 0; i < KEYS; i += 3)
		assert_true(map_remove(&m, name_of(i)));
	size_t at = 0, count = 0;
	for (const map_slot *slot; (slot = map_each(&m, &at)) != NULL; count++) {
		assert_int_equal(seen[slot->value]++, 0);
		assert_int_not_equal(slot->value % 3, 0);
		assert_string_equal(slot->key.ptr, names[slot->value]);
	}
	assert_int_equal(count, m.count);
	assert_null(map_each(&m, &at));
}

/* Against an array that does the same. */
static void test_random(void **state)
{
	(void)state;
	_cleanup_(map_free) map m = MAP_INIT;
	static int64_t want[KEYS];
	for (size_t i = 0; i < KEYS; i++)
		want[i] = -1;
	srand(5);
	size_t count = 0;
	for (int step = 0; step < 300000; step++) {
		size_t i = (size_t)rand() % (step % 2000 < 1000 ? KEYS : 50);
		uint64_t value = 0;
		switch (rand() % 3) {
		case 0:
			count += want[i] < 0;
			want[i] = rand();
			assert_int_equal(map_set(&m, name_of(i), (uint64_t)want[i]), 0);
			break;
		case 1:
			assert_int_equal(map_remove(&m, name_of(i)), want[i] >= 0);
			count -= want[i] >= 0;
			want[i] = -1;
			break;
		default:
			assert_int_equal(map_get(&m, name_of(i), &value), want[i] >= 0);
			if (want[i] >= 0)
				assert_int_equal(value, want[i]);
		}
		assert_int_equal(m.count, count);
	}
}

static void test_churn_does_not_grow(void **state)
{
	(void)state;
	_cleanup_(map_free) map m = MAP_INIT;
	for (int round = 0; round < 1000; round++) {
		for (size_t i = 0; i < 20; i++)
			assert_int_equal(map_set(&m, name_of((size_t)round + i), i), 0);
		for (size_t i = 0; i < 20; i++)
			assert_true(map_remove(&m, name_of((size_t)round + i)));
	}
	assert_true(m.room <= 64);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	_cleanup_(map_free) map m = MAP_INIT;
	uint64_t value;
	fail_alloc_at(1, false);
	assert_int_equal(map_set(&m, SHEAF_STR("a"), 1), SHEAF_NOMEM);
	assert_int_equal(m.count, 0);
	assert_false(map_get(&m, SHEAF_STR("a"), &value));
	assert_int_equal(map_set(&m, SHEAF_STR("a"), 1), 0);
	fail_alloc_at(1, true);
	size_t i = 0;
	while (map_set(&m, name_of(i), i) == 0)
		i++;
	assert_in_range(i, 5, 100);
	assert_int_equal(m.count, i + 1);
	/* What was in stays in, and replacing needs no memory. */
	for (size_t k = 0; k < i; k++) {
		assert_true(map_get(&m, name_of(k), &value));
		assert_int_equal(value, k);
		assert_int_equal(map_set(&m, name_of(k), k + 1), 0);
	}
	fail_alloc_at(0, false);
	assert_int_equal(map_set(&m, name_of(i), i), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, install, no_leak)

static void asked_and_set_at_once(void **state)
{
	(void)state;
	map m = MAP_INIT;
	char keys[200][8];
	for (uint64_t round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < 200; i++) {
			uint64_t value = i + 1000 * round;
			(void)snprintf(keys[i], sizeof(keys[i]), "k%u", (unsigned)i);
			assert_int_equal(map_get_or_set(&m, sheaf_str_of(keys[i]), &value), 0);
			assert_int_equal(value, i);
			assert_int_equal(m.count, round == 0 ? i + 1 : 200);
		}
	}
	map_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asked_and_set_at_once),
		T(test_empty),
		T(test_set_get_replace),
		T(test_odd_keys),
		T(test_each),
		T(test_random),
		T(test_churn_does_not_grow),
		T(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
