/* Tests of base/str.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/str.h"
#include "base/utf8.h"

static void test_equality(void **state)
{
	(void)state;
	assert_true(str_eq(str_make(NULL, 0), SHEAF_STR("")));
	assert_true(str_eq(SHEAF_STR("a\0b"), str_make("a\0b", 3)));
	assert_false(str_eq(SHEAF_STR("a\0b"), SHEAF_STR("a\0c")));
	assert_false(str_eq(SHEAF_STR("a"), SHEAF_STR("ab")));
	assert_true(str_is(SHEAF_STR("abc"), "abc"));
	assert_false(str_is(SHEAF_STR("abc"), "ab"));
	assert_false(str_is(SHEAF_STR("ab"), "abc"));
	assert_true(str_starts(SHEAF_STR("abc"), "ab"));
	assert_true(str_starts(SHEAF_STR("abc"), ""));
	assert_false(str_starts(SHEAF_STR("a"), "ab"));
	assert_false(str_starts(SHEAF_STR("ba"), "ab"));
}

static void test_order(void **state)
{
	(void)state;
	static const sheaf_str sorted[] = {{NULL, 0},   {"\0", 1},   {"a", 1},       {"a\0", 2},
	                                   {"aa", 2},   {"ab", 2},   {"b", 1},       {"\x7f", 1},
	                                   {"\x80", 1}, {"\xff", 1}, {"\xff\x01", 2}};
	enum {
		COUNT = sizeof(sorted) / sizeof(sorted[0])
	};
	for (int i = 0; i < COUNT; i++) {
		for (int k = 0; k < COUNT; k++) {
			int order = str_cmp(sorted[i], sorted[k]);
			assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
		}
	}
}

static void test_hash_is_the_same_everywhere(void **state)
{
	(void)state;
	/* Derived tables on disk depend on these. */
	assert_int_equal(str_hash(SHEAF_STR("")), UINT64_C(0x69dd07eb53fcc188));
	assert_int_equal(str_hash(SHEAF_STR("a")), UINT64_C(0xb801d7e4073188db));
	assert_int_equal(str_hash(SHEAF_STR("12345678")), UINT64_C(0x5cb424152e5c0a75));
	assert_int_equal(str_hash(SHEAF_STR("0192f7a0-1111-7abc-8def-000000000001")),
	                 UINT64_C(0xb0820b2955e3d6da));
	assert_int_equal(str_hash(str_make(NULL, 0)), str_hash(SHEAF_STR("")));
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void test_hash_tells_apart(void **state)
{
	(void)state;
	/* All lengths of zeros, every single bit of 64 bytes, and numbers: no two alike. */
	enum {
		COUNT = 64 + 64 * 8 + 20000
	};
	uint64_t *seen = malloc(COUNT * sizeof(*seen));
	char bytes[64] = {0};
	size_t n = 0;
	for (size_t len = 0; len < 64; len++)
		seen[n++] = str_hash(str_make(bytes, len));
	for (size_t bit = 0; bit < 512; bit++) {
		bytes[bit / 8] = (char)(1 << bit % 8);
		seen[n++] = str_hash(str_make(bytes, 64));
		bytes[bit / 8] = 0;
	}
	for (uint32_t i = 1; i <= 20000; i++) {
		memcpy(bytes, &i, 4);
		seen[n++] = str_hash(str_make(bytes, 36));
	}
	assert_int_equal(n, COUNT);
	/* The low bits, which tables use, spread too. */
	size_t filled[256] = {0};
	for (size_t i = 0; i < n; i++)
		filled[seen[i] & 255]++;
	for (size_t i = 0; i < 256; i++)
		assert_in_range(filled[i], n / 256 / 2, n / 256 * 2);
	qsort(seen, n, sizeof(*seen), by_value);
	for (size_t i = 1; i < n; i++)
		assert_true(seen[i] != seen[i - 1]);
	free(seen);
}

static void test_copy_cut(void **state)
{
	(void)state;
	char out[8];
	memset(out, 'x', sizeof(out));
	str_copy_cut(out, 0, SHEAF_STR("abc"));
	assert_int_equal(out[0], 'x');
	str_copy_cut(out, 1, SHEAF_STR("abc"));
	assert_string_equal(out, "");
	str_copy_cut(out, sizeof(out), SHEAF_STR("1234567"));
	assert_string_equal(out, "1234567");
	str_copy_cut(out, sizeof(out), SHEAF_STR("12345678"));
	assert_string_equal(out, "1234567");
	str_copy_cut(out, sizeof(out), SHEAF_STR("123456\xc3\xa9"));
	assert_string_equal(out, "123456");
	str_copy_cut(out, sizeof(out), str_make(NULL, 0));
	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equality),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_hash_is_the_same_everywhere),
		cmocka_unit_test(test_hash_tells_apart),
		cmocka_unit_test(test_copy_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
