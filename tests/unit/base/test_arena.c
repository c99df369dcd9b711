/* Tests of base/arena.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/fail_alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"

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

static void test_pieces_are_aligned_and_apart(void **state)
{
	(void)state;
	enum {
		PIECES = 3000
	};
	static unsigned char *pieces[PIECES];
	_cleanup_(arena_freep) arena *a = arena_new();
	size_t total = 0;
	for (size_t i = 0; i < PIECES; i++) {
		size_t bytes = i % 97 == 0 ? 20000 : i % 61;
		pieces[i] = arena_alloc(a, bytes);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % 16, 0);
		memset(pieces[i], (int)(i & 0xff), bytes);
		total += bytes;
		assert_int_equal(arena_bytes(a), total);
	}
	for (size_t i = 0; i < PIECES; i++) {
		size_t bytes = i % 97 == 0 ? 20000 : i % 61;
		for (size_t k = 0; k < bytes; k++)
			assert_int_equal(pieces[i][k], i & 0xff);
	}
}

static void test_small_results_need_one_block(void **state)
{
	(void)state;
	_cleanup_(arena_freep) arena *a = arena_new();
	for (int i = 0; i < 20; i++)
		assert_non_null(arena_alloc(a, 32));
#ifndef SHEAF_ARENA_DEBUG
	assert_int_equal(fail_alloc_count(), 1);
#endif
	/* A million small pieces: chunks double up to 1 MiB. */
	for (int i = 0; i < 1000000; i++)
		assert_non_null(arena_alloc(a, 16));
#ifndef SHEAF_ARENA_DEBUG
	assert_in_range(fail_alloc_count(), 10, 40);
#endif
}

static void test_large_piece_leaves_the_chunk_alone(void **state)
{
	(void)state;
	_cleanup_(arena_freep) arena *a = arena_new();
	char *before = arena_alloc(a, 16);
	assert_non_null(arena_alloc(a, (size_t)5 << 20));
	char *after = arena_alloc(a, 16);
#ifndef SHEAF_ARENA_DEBUG
	assert_ptr_equal(after, before + 16);
#else
	assert_ptr_not_equal(after, before);
#endif
}

static void test_zalloc(void **state)
{
	(void)state;
	_cleanup_(arena_freep) arena *a = arena_new();
	for (size_t bytes = 0; bytes < 5000; bytes += 37) {
		unsigned char *p = arena_zalloc(a, bytes);
		assert_non_null(p);
		for (size_t i = 0; i < bytes; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, bytes);
	}
}

static void test_dup(void **state)
{
	(void)state;
	_cleanup_(arena_freep) arena *a = arena_new();
	int ok = 1;
	sheaf_str s = arena_dup(a, (sheaf_str){"a\0b", 3}, &ok);
	assert_int_equal(s.len, 3);
	assert_memory_equal(s.ptr, "a\0b", 4);
	s = arena_dup(a, (sheaf_str){"", 0}, &ok);
	assert_non_null(s.ptr);
	assert_string_equal(s.ptr, "");
	s = arena_dup(a, (sheaf_str){NULL, 0}, &ok);
	assert_null(s.ptr);
	assert_int_equal(s.len, 0);
	assert_int_equal(ok, 1);
	fail_alloc_at(1, true);
	static char big[100000];
	s = arena_dup(a, (sheaf_str){big, sizeof(big)}, &ok);
	assert_null(s.ptr);
	assert_int_equal(ok, 0);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	fail_alloc_at(1, false);
	assert_null(arena_new());
	_cleanup_(arena_freep) arena *a = arena_new();
	assert_non_null(a);
	fail_alloc_at(1, true);
	size_t had = 0;
	while (arena_alloc(a, 64) != NULL)
		had++;
#ifndef SHEAF_ARENA_DEBUG
	assert_in_range(had, 10, 100);
#endif
	assert_int_equal(arena_bytes(a), had * 64);
	assert_null(arena_alloc(a, SIZE_MAX));
	assert_null(arena_alloc(a, SIZE_MAX - 40));
	assert_null(arena_zalloc(a, (size_t)1 << 20));
	fail_alloc_at(0, false);
	assert_non_null(arena_alloc(a, 64));
}

static void test_clear(void **state)
{
	(void)state;
	_cleanup_(arena_freep) arena *a = arena_new();
	arena_clear(a); /* of nothing */
	for (size_t round = 0; round < 50; round++) {
		for (size_t i = 1; i < 4000; i *= 2) {
			char *p = arena_alloc(a, i);
			assert_non_null(p);
			memset(p, (int)round, i);
		}
		memset(arena_alloc(a, 100000), 1, 100000);
		assert_true(arena_bytes(a) > 100000);
		arena_clear(a);
		assert_int_equal(arena_bytes(a), 0);
	}
	/* What is left is bounded by what one round needs, and it serves the next. */
	assert_true(fail_alloc_live() <= 2);
	assert_non_null(arena_alloc(a, 100));
	assert_true(fail_alloc_live() <= 2);
}

static void test_free_null(void **state)
{
	(void)state;
	arena *none = NULL;
	arena_free(NULL);
	arena_freep(&none);
	arena *a = arena_new();
	arena_freep(&a);
	assert_null(a);
}

#define T(name) cmocka_unit_test_setup_teardown(name, install, no_leak)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_pieces_are_aligned_and_apart),
		T(test_small_results_need_one_block),
		T(test_large_piece_leaves_the_chunk_alone),
		T(test_zalloc),
		T(test_dup),
		T(test_out_of_memory),
		T(test_clear),
		T(test_free_null),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
