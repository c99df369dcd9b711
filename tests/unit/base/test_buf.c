/* Tests of base/buf.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/fail_alloc.h"
#include "base/buf.h"

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

static void assert_text(const buf *b, const char *text)
{
	assert_int_equal(b->status, 0);
	assert_int_equal(b->len, strlen(text));
	assert_memory_equal(buf_view(b).ptr, text, b->len);
}

static void test_empty(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(10);
	assert_string_equal(buf_view(&b).ptr, "");
	assert_int_equal(buf_view(&b).len, 0);
	buf_add(&b, NULL, 0);
	buf_add_slow(&b, NULL, 0);
	assert_int_equal(buf_reserve(&b, 0), 0);
	assert_int_equal(buf_status(&b, NULL), 0);
	assert_int_equal(fail_alloc_count(), 0);
}

static void test_appends(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1000);
	buf_lit(&b, "lit ");
	buf_str(&b, SHEAF_STR("str "));
	buf_char(&b, 'c');
	buf_format(&b, " %s=%d%s ", "f", 42, "");
	buf_u64(&b, 7);
	buf_char(&b, ' ');
	buf_i64(&b, -7);
	buf_format(&b, "%s", "");
	assert_text(&b, "lit str c f=42 7 -7");
	buf_nul(&b);
	assert_int_equal(strlen(b.ptr), b.len);
}

static void test_format_long(void **state)
{
	(void)state;
	char text[3000];
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (size_t before = 0; before < 200; before++) {
		_cleanup_(buf_free) buf b = BUF_INIT(10000);
		for (size_t i = 0; i < before; i++)
			buf_char(&b, 'y');
		buf_format(&b, "%s", text);
		assert_int_equal(b.status, 0);
		assert_int_equal(b.len, before + sizeof(text) - 1);
		assert_memory_equal(b.ptr + before, text, sizeof(text) - 1);
	}
	_cleanup_(buf_free) buf b = BUF_INIT(100);
	buf_format(&b, "%s", text);
	assert_int_equal(b.status, SHEAF_TOO_LARGE);
	_cleanup_(buf_free) buf exact = BUF_INIT(sizeof(text) - 1);
	buf_format(&exact, "%s", text);
	assert_int_equal(exact.status, 0);
	_cleanup_(buf_free) buf none = BUF_INIT(0);
	buf_format(&none, "%s", "");
	assert_int_equal(none.status, 0);
}

static void test_numbers(void **state)
{
	(void)state;
	uint64_t value = 1;
	for (int i = 0; i < 2000; i++) {
		uint64_t v = i < 1000 ? (uint64_t)i : value;
		if (i == 1999)
			v = UINT64_MAX;
		char want[64];
		_cleanup_(buf_free) buf b = BUF_INIT(100);
		buf_u64(&b, v);
		(void)snprintf(want, sizeof(want), "%" PRIu64, v);
		assert_text(&b, want);
		buf_reset(&b);
		buf_i64(&b, (int64_t)v);
		(void)snprintf(want, sizeof(want), "%" PRId64, (int64_t)v);
		assert_text(&b, want);
		value = value * 31 + 7;
	}
	_cleanup_(buf_free) buf b = BUF_INIT(100);
	buf_i64(&b, INT64_MIN);
	assert_text(&b, "-9223372036854775808");
}

static void test_maximum(void **state)
{
	(void)state;
	sheaf_error err;
	_cleanup_(buf_free) buf b = BUF_INIT(200);
	for (int i = 0; i < 200; i++)
		buf_char(&b, 'a');
	assert_int_equal(buf_status(&b, &err), 0);
	assert_int_equal(b.len, 200);
	assert_true(b.room <= 200);
	buf_nul(&b); /* fits beside the maximum */
	assert_int_equal(buf_status(&b, NULL), 0);
	assert_int_equal(b.ptr[200], '\0');

	buf_char(&b, 'b');
	assert_int_equal(buf_status(&b, &err), SHEAF_TOO_LARGE);
	assert_int_equal(err.code, SHEAF_TOO_LARGE);
	assert_int_equal(err.outcome, SHEAF_FAILED);
	assert_non_null(strstr(err.message, "200"));
	assert_int_equal(buf_status(&b, NULL), SHEAF_TOO_LARGE);
	assert_int_equal(b.len, 200);

	/* Sticky, for every append, until it is forgotten. */
	b.len = 10;
	buf_char(&b, 'b');
	buf_lit(&b, "b");
	buf_u64(&b, 1);
	buf_i64(&b, -1);
	buf_format(&b, "x");
	buf_json(&b, SHEAF_STR("x"));
	buf_nul(&b);
	assert_int_equal(buf_reserve(&b, 1), SHEAF_TOO_LARGE);
	assert_int_equal(b.len, 10);
	buf_reset(&b);
	assert_int_equal(b.len, 0);
	buf_lit(&b, "again");
	assert_text(&b, "again");
	assert_int_equal(buf_reserve(&b, SIZE_MAX), SHEAF_TOO_LARGE);
	buf_free(&b);
	assert_null(b.ptr);
	buf_lit(&b, "and again");
	assert_text(&b, "and again");
}

static void test_out_of_memory(void **state)
{
	(void)state;
	sheaf_error err;
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	fail_alloc_at(1, false);
	buf_lit(&b, "x");
	assert_int_equal(buf_status(&b, &err), SHEAF_NOMEM);
	assert_int_equal(err.code, SHEAF_NOMEM);
	buf_lit(&b, "x");
	assert_int_equal(b.len, 0);
	buf_reset(&b);
	fail_alloc_at(1, false);
	buf_nul(&b);
	assert_int_equal(buf_status(&b, NULL), SHEAF_NOMEM);
	buf_reset(&b);
	buf_nul(&b);
	assert_string_equal(b.ptr, "");
	buf_lit(&b, "x");
	assert_text(&b, "x");
	fail_alloc_at(1, false);
	assert_int_equal(buf_reserve(&b, 100000), SHEAF_NOMEM);
	assert_memory_equal(b.ptr, "x", 1);
	buf_reset(&b);
	assert_int_equal(buf_reserve(&b, SIZE_MAX), SHEAF_NOMEM);
}

static void test_growth_is_geometric(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	for (int i = 0; i < 1000000; i++)
		buf_char(&b, (char)i);
	assert_int_equal(b.len, 1000000);
	for (int i = 0; i < 1000000; i++)
		assert_int_equal(b.ptr[i], (char)i);
	assert_true(fail_alloc_count() < 40);
}

/* The plain way, to compare with. */
static void json_by_hand(buf *b, const char *p, size_t len)
{
	buf_char(b, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)p[i];
		const char *letter = c != 0 ? strchr("\"\"\\\\\bb\ff\nn\rr\tt", c) : NULL;
		if (c == '"' || c == '\\')
			buf_format(b, "\\%c", c);
		else if (letter != NULL && c < 0x20)
			buf_format(b, "\\%c", letter[1]);
		else if (c < 0x20)
			buf_format(b, "\\u%04x", c);
		else
			buf_char(b, (char)c);
	}
	buf_char(b, '"');
}

static void test_json_every_byte(void **state)
{
	(void)state;
	/* Every byte value at every place of a block. */
	for (int c = 0; c < 256; c++) {
		for (size_t at = 0; at < 40; at++) {
			char text[41];
			memset(text, 'x', sizeof(text));
			text[at] = (char)c;
			_cleanup_(buf_free) buf got = BUF_INIT(1000);
			_cleanup_(buf_free) buf want = BUF_INIT(1000);
			buf_json(&got, (sheaf_str){text, sizeof(text)});
			json_by_hand(&want, text, sizeof(text));
			assert_int_equal(got.len, want.len);
			assert_memory_equal(got.ptr, want.ptr, want.len);
		}
	}
}

static void test_json_known(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1000);
	buf_json(&b, (sheaf_str){NULL, 0});
	buf_json(&b, SHEAF_STR("a\"\\/\b\f\n\r\t\x01\x1f\x7f\xc3\xa9"));
	buf_json(&b, (sheaf_str){"\0", 1});
	assert_text(&b, "\"\"\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\xc3\xa9\"\"\\u0000\"");
}

static void test_json_random(void **state)
{
	(void)state;
	static char text[20000];
	srand(1);
	for (int round = 0; round < 300; round++) {
		size_t len = (size_t)rand() % (round % 10 == 0 ? sizeof(text) : 300);
		int plain = rand() % 3;
		for (size_t i = 0; i < len; i++) {
			bool odd = plain == 0 || rand() % 50 == 0;
			text[i] = (char)(odd ? rand() : 'a' + rand() % 26);
		}
		_cleanup_(buf_free) buf want = BUF_INIT(1 << 20);
		json_by_hand(&want, text, len);

		/* Exactly enough is enough; one less is not. */
		_cleanup_(buf_free) buf got = BUF_INIT(want.len);
		buf_json(&got, (sheaf_str){text, len});
		assert_int_equal(got.status, 0);
		assert_int_equal(got.len, want.len);
		assert_memory_equal(got.ptr, want.ptr, want.len);
		_cleanup_(buf_free) buf less = BUF_INIT(want.len - 1);
		buf_json(&less, (sheaf_str){text, len});
		assert_int_equal(less.status, SHEAF_TOO_LARGE);
		assert_true(less.len <= want.len - 1);
	}
}

static void test_json_long_text_is_not_six_times_as_large(void **state)
{
	(void)state;
	size_t len = (size_t)4 << 20;
	char *text = malloc(len);
	memset(text, 'a', len);
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	buf_json(&b, (sheaf_str){text, len});
	assert_int_equal(b.len, len + 2);
	assert_true(b.room < 2 * len);
	assert_int_equal(fail_alloc_count(), 1);
	memset(text, 1, len);
	buf_reset(&b);
	buf_json(&b, (sheaf_str){text, len});
	assert_int_equal(b.len, 6 * len + 2);
	free(text);
}

#define T(name) cmocka_unit_test_setup_teardown(name, install, no_leak)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_empty),
		T(test_appends),
		T(test_format_long),
		T(test_numbers),
		T(test_maximum),
		T(test_out_of_memory),
		T(test_growth_is_geometric),
		T(test_json_every_byte),
		T(test_json_known),
		T(test_json_random),
		T(test_json_long_text_is_not_six_times_as_large),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
