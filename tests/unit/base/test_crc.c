/* Tests of base/crc.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/crc.h"

/* The source a second time under another name, for the tables that this processor may not use. */
#define crc32c crc32c_inside
#include "base/crc.c"
#undef crc32c

static uint32_t by_bits(uint32_t crc, const unsigned char *p, size_t len)
{
	crc = ~crc;
	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
	}
	return ~crc;
}

static void test_known(void **state)
{
	(void)state;
	unsigned char bytes[32];
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283u);
	assert_int_equal(crc32c(0, NULL, 0), 0);
	assert_int_equal(crc32c(77, NULL, 0), 77);
	/* RFC 3720, B.4 */
	memset(bytes, 0, 32);
	assert_int_equal(crc32c(0, bytes, 32), 0x8a9136aau);
	memset(bytes, 0xff, 32);
	assert_int_equal(crc32c(0, bytes, 32), 0x62a8ab43u);
	for (unsigned i = 0; i < 32; i++)
		bytes[i] = (unsigned char)i;
	assert_int_equal(crc32c(0, bytes, 32), 0x46dd794eu);
	for (unsigned i = 0; i < 32; i++)
		bytes[i] = (unsigned char)(31 - i);
	assert_int_equal(crc32c(0, bytes, 32), 0x113fdb5cu);
}

static void test_all_lengths_and_both_ways(void **state)
{
	(void)state;
	enum {
		MOST = 40000
	};
	unsigned char *bytes = malloc(MOST);
	srand(3);
	for (size_t i = 0; i < MOST; i++)
		bytes[i] = (unsigned char)rand();
	uint32_t want = 0;
	for (size_t len = 0; len < MOST; len++) {
		/* by_bits grows by a byte a round; the others do it all. */
		if (len < 2000 || len % 509 == 0 || len % 12288 < 3) {
			assert_int_equal(crc32c(0, bytes, len), want);
			assert_int_equal(~by_tables(~0u, bytes, len), want);
		}
		want = by_bits(want, bytes + len, 1);
	}
	free(bytes);
}

static void test_in_parts(void **state)
{
	(void)state;
	enum {
		MOST = 30000
	};
	unsigned char *bytes = malloc(MOST);
	srand(4);
	for (size_t i = 0; i < MOST; i++)
		bytes[i] = (unsigned char)rand();
	for (int round = 0; round < 500; round++) {
		size_t from = (size_t)rand() % 64, len = (size_t)rand() % (MOST - 64);
		size_t cut = len != 0 ? (size_t)rand() % len : 0;
		uint32_t whole = crc32c(0, bytes + from, len);
		uint32_t part = crc32c(0, bytes + from, cut);
		assert_int_equal(crc32c(part, bytes + from + cut, len - cut), whole);
		assert_int_equal(~by_tables(~part, bytes + from + cut, len - cut), whole);
		assert_int_equal(crc32c_inside(0, bytes + from, len), whole);
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_all_lengths_and_both_ways),
		cmocka_unit_test(test_in_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
