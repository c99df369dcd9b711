/* Tests of base/mem.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/fail_alloc.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "sheaf/error.h"
#include "sheaf/sys/seams.h"

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

static void test_zero_bytes_give_a_pointer(void **state)
{
	(void)state;
	void *p = mem_alloc(0), *q = mem_zalloc(0), *r = mem_resize(NULL, 0);
	assert_non_null(p);
	assert_non_null(q);
	assert_non_null(r);
	r = mem_resize(r, 0);
	assert_non_null(r);
	assert_int_equal(fail_alloc_live(), 3);
	mem_free(p);
	mem_free(q);
	mem_free(r);
	mem_free(NULL);
}

static void test_zalloc_is_zero(void **state)
{
	(void)state;
	unsigned char *p = mem_alloc(4096);
	memset(p, 0xff, 4096);
	mem_free(p);
	p = mem_zalloc(4096);
	for (size_t i = 0; i < 4096; i++)
		assert_int_equal(p[i], 0);
	mem_free(p);
}

static void test_failed_resize_keeps_the_block(void **state)
{
	(void)state;
	char *p = mem_resize(NULL, 8);
	memcpy(p, "1234567", 8);
	fail_alloc_at(1, false);
	assert_null(mem_resize(p, 1 << 20));
	assert_string_equal(p, "1234567");
	p = mem_resize(p, 16);
	assert_string_equal(p, "1234567");
	mem_free(p);
}

static void test_dup(void **state)
{
	(void)state;
	char *p = mem_dup("ab\0cd", 5), *q = mem_dup(NULL, 0);
	assert_memory_equal(p, "ab\0cd", 6);
	assert_string_equal(q, "");
	mem_free(p);
	mem_free(q);
	fail_alloc_at(1, false);
	assert_null(mem_dup("x", 1));
	assert_null(mem_dup("x", SIZE_MAX));
}

static void test_grow(void **state)
{
	(void)state;
	void *array = NULL;
	size_t room = 0, grown = 0;
	for (size_t need = 1; need <= 10000; need++) {
		size_t before = room;
		assert_int_equal(mem_grow(&array, &room, need, 8), 0);
		assert_true(room >= need);
		if (room != before) {
			grown++;
			assert_true(before < 8 || room == before + before / 2);
			memset(array, 1, room * 8);
		}
	}
	assert_true(grown < 30);
	size_t before = room;
	assert_int_equal(mem_grow(&array, &room, 0, 8), 0);
	assert_int_equal(mem_grow(&array, &room, before, 8), 0);
	assert_int_equal(room, before);
	mem_free(array);
}

static void test_grow_failure_changes_nothing(void **state)
{
	(void)state;
	void *array = NULL;
	size_t room = 0;
	assert_int_equal(mem_grow(&array, &room, 3, 4), 0);
	void *before = array;
	size_t room_before = room;
	fail_alloc_at(1, true);
	assert_int_equal(mem_grow(&array, &room, room + 1, 4), SHEAF_NOMEM);
	fail_alloc_at(0, false);
	assert_int_equal(mem_grow(&array, &room, SIZE_MAX / 4 + 1, 4), SHEAF_NOMEM);
	assert_int_equal(mem_grow(&array, &room, SIZE_MAX, 16), SHEAF_NOMEM);
	assert_ptr_equal(array, before);
	assert_int_equal(room, room_before);
	mem_free(array);
}

static void test_freep(void **state)
{
	(void)state;
	{
		_cleanup_(mem_freep) char *p = mem_alloc(10);
		_cleanup_(mem_freep) int *none = NULL;
		assert_non_null(p);
		assert_null(none);
		assert_int_equal(fail_alloc_live(), 1);
	}
	assert_int_equal(fail_alloc_live(), 0);
	char *p = mem_alloc(10);
	mem_freep(&p);
	assert_null(p);
}

static void test_incomplete_table_is_none(void **state)
{
	(void)state;
	sheaf_allocator half = {sizeof(half), NULL, NULL, NULL, NULL};
	sheaf_set_allocator(&half);
	size_t before = fail_alloc_count();
	void *p = mem_alloc(3);
	assert_non_null(p);
	mem_free(p);
	assert_int_equal(fail_alloc_count(), before);
}

static void test_fail_alloc_itself(void **state)
{
	(void)state;
	fail_alloc_at(2, false);
	void *a = mem_alloc(1), *b = mem_alloc(1), *c = mem_alloc(1);
	assert_non_null(a);
	assert_null(b);
	assert_non_null(c);
	assert_true(fail_alloc_hit());
	assert_int_equal(fail_alloc_count(), 3);
	assert_int_equal(fail_alloc_live(), 2);
	fail_alloc_at(1, true);
	assert_null(mem_alloc(1));
	assert_null(mem_alloc(1));
	mem_free(a);
	mem_free(c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, install, no_leak)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_zero_bytes_give_a_pointer),
		T(test_zalloc_is_zero),
		T(test_failed_resize_keeps_the_block),
		T(test_dup),
		T(test_grow),
		T(test_grow_failure_changes_nothing),
		T(test_freep),
		T(test_incomplete_table_is_none),
		T(test_fail_alloc_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
