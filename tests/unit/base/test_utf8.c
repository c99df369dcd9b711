/* Tests of base/utf8.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/utf8.h"

static size_t encode(char *out, uint32_t point)
{
	if (point < 0x80) {
		out[0] = (char)point;
		return 1;
	}
	size_t n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (point & 0x3f));
		point >>= 6;
	}
	out[0] = (char)((0xf00u >> n & 0xf0u) | point);
	return n;
}

static void test_every_code_point(void **state)
{
	(void)state;
	for (uint32_t point = 0; point <= 0x110400; point++) {
		char text[4];
		size_t n = encode(text, point);
		bool good = point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
		if (utf8_valid((sheaf_str){text, n}) != good)
			fail_msg("U+%X", point);
	}
}

/* A second opinion: decode and see whether encoding gives the same bytes. */
static bool valid_by_decoding(const unsigned char *p, size_t len)
{
	for (size_t i = 0; i < len;) {
		unsigned char c = p[i];
		size_t n = c < 0x80 ? 1 : c < 0xc0 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
		if (n == 0 || n > len - i || p[i] >= 0xf8)
			return false;
		uint32_t point = n == 1 ? p[i] : p[i] & (0x7fu >> n);
		for (size_t k = 1; k < n; k++) {
			if ((p[i + k] & 0xc0) != 0x80)
				return false;
			point = point << 6 | (p[i + k] & 0x3f);
		}
		char again[4];
		if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff) ||
		    encode(again, point) != n || memcmp(again, p + i, n) != 0)
			return false;
		i += n;
	}
	return true;
}

static void test_all_short_sequences(void **state)
{
	(void)state;
	unsigned char t[3];
	for (unsigned v = 0; v < 1u << 24; v++) {
		t[0] = (unsigned char)(v >> 16);
		t[1] = (unsigned char)(v >> 8);
		t[2] = (unsigned char)v;
		if (t[0] < 0x80 && (v & 0xff) > 1)
			continue;
		sheaf_str s = {(const char *)t, 3};
		if (utf8_valid(s) != valid_by_decoding(t, 3))
			fail_msg("%06x", v);
	}
}

static void test_broken_byte_at_every_place(void **state)
{
	(void)state;
	for (size_t len = 1; len < 70; len++) {
		char *text = malloc(len); /* exact, so that a sanitizer sees reads past it */
		memset(text, 'a', len);
		assert_true(utf8_valid((sheaf_str){text, len}));
		for (size_t at = 0; at < len; at++) {
			text[at] = (char)0x80;
			assert_false(utf8_valid((sheaf_str){text, len}));
			text[at] = (char)0xc3;
			assert_false(utf8_valid((sheaf_str){text, len}));
			text[at] = 'a';
		}
		if (len >= 4) {
			memcpy(text + len - 4, "\xf0\x9f\x98\x80", 4);
			assert_true(utf8_valid((sheaf_str){text, len}));
			assert_false(utf8_valid((sheaf_str){text, len - 1}));
		}
		free(text);
	}
	assert_true(utf8_valid((sheaf_str){NULL, 0}));
	assert_true(utf8_valid((sheaf_str){"", 0}));
	assert_true(utf8_valid((sheaf_str){"\0", 1}));
}

static void assert_mended(const char *from, size_t from_len, const char *to, size_t count)
{
	_cleanup_(buf_free) buf b = BUF_INIT(1000);
	assert_int_equal(utf8_mend(&b, (sheaf_str){from, from_len}), count);
	assert_int_equal(b.len, strlen(to));
	assert_memory_equal(buf_view(&b).ptr, to, b.len);
}

#define MENDED(from, to, count) assert_mended(from, sizeof(from) - 1, to, count)
#define X "\xef\xbf\xbd"

static void test_mend_maximal_parts(void **state)
{
	(void)state;
	MENDED("", "", 0);
	MENDED("plain", "plain", 0);
	MENDED("a\x80z", "a" X "z", 1);
	MENDED("\xc0\x80", X X, 2);
	MENDED("\xed\xa0\x80", X X X, 3); /* a surrogate */
	MENDED("\xe2\x82", X, 1);         /* cut off */
	MENDED("\xe2\x82z", X "z", 1);
	MENDED("\xf0\x9f\x98", X, 1);
	MENDED("\xf0\x9f\x98\xe2\x82\xac", X "\xe2\x82\xac", 1);
	MENDED("\xf4\x90\x80\x80", X X X X, 4); /* over U+10FFFF */
	MENDED("\xff\xfe", X X, 2);
	/* The example of Unicode 15, table 3-11. */
	MENDED("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", X X X X "A", 4);
	/* And 3-8. */
	MENDED("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", X X X X X X X X "A", 8);
}

static void test_mend_makes_valid(void **state)
{
	(void)state;
	srand(2);
	for (int round = 0; round < 20000; round++) {
		unsigned char text[64];
		size_t len = (size_t)rand() % sizeof(text);
		static const unsigned char likely[] = {0xc3, 0xe2, 0xed, 0xf0, 0xf4,
		                                       0x80, 0x9f, 0xbf, 0xa0, 'a'};
		for (size_t i = 0; i < len; i++)
			text[i] = rand() % 4 ? likely[(size_t)rand() % sizeof(likely)]
			                     : (unsigned char)rand();
		_cleanup_(buf_free) buf b = BUF_INIT(1000);
		sheaf_str s = {(const char *)text, len};
		size_t mended = utf8_mend(&b, s);
		assert_true(utf8_valid(buf_view(&b)));
		assert_int_equal(utf8_valid(s), valid_by_decoding(text, len));
		assert_int_equal(mended == 0, utf8_valid(s));
		if (mended == 0)
			assert_memory_equal(buf_view(&b).ptr, text, len);
	}
}

static void test_cut(void **state)
{
	(void)state;
	static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
	static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11, 11};
	for (size_t max = 0; max < sizeof(want) / sizeof(want[0]); max++) {
		sheaf_str cut = utf8_cut(SHEAF_STR(text), max);
		assert_ptr_equal(cut.ptr, text);
		assert_int_equal(cut.len, want[max]);
	}
	/* Broken bytes are cut anywhere, and nothing is read before the start. */
	assert_int_equal(utf8_cut((sheaf_str){"\x80\x80\x80\x80\x80\x80", 6}, 5).len, 5);
	assert_int_equal(utf8_cut((sheaf_str){"\x80\x80", 2}, 1).len, 1);
	assert_int_equal(utf8_cut((sheaf_str){"\xf0\x9f", 2}, 1).len, 0);
	assert_int_equal(utf8_cut((sheaf_str){NULL, 0}, 5).len, 0);
	assert_int_equal(utf8_cut((sheaf_str){"a\x80\x80", 3}, 2).len, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_code_point),
		cmocka_unit_test(test_all_short_sequences),
		cmocka_unit_test(test_broken_byte_at_every_place),
		cmocka_unit_test(test_mend_maximal_parts),
		cmocka_unit_test(test_mend_makes_valid),
		cmocka_unit_test(test_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
