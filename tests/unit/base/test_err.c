/* Tests of base/err.h and of the code table in sheaf/error.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/err.h"

static sheaf_error dirty(void)
{
	sheaf_error err;
	memset(&err, 0xa5, sizeof(err));
	return err;
}

/* Everything that was not filled on purpose is zero. */
static void assert_rest_zero(const sheaf_error *err)
{
	static const char zero[sizeof(err->leaf)];
	assert_int_equal(err->reserved0, 0);
	assert_int_equal(err->revision, 0);
	assert_memory_equal(err->leaf, zero, sizeof(err->leaf));
	assert_memory_equal(err->reserved, zero, sizeof(err->reserved));
}

static void test_size(void **state)
{
	(void)state;
	assert_int_equal(sizeof(sheaf_error), 512);
}

static void test_set(void **state)
{
	(void)state;
	sheaf_error err = dirty();
	assert_int_equal(err_set(&err, SHEAF_LIMIT, "%s has %d", "it", 5), SHEAF_LIMIT);
	assert_int_equal(err.code, SHEAF_LIMIT);
	assert_int_equal(err.outcome, SHEAF_FAILED);
	assert_int_equal(err.sys_errno, 0);
	assert_string_equal(err.message, "it has 5");
	assert_string_equal(err.hint, "");
	assert_rest_zero(&err);
	for (size_t i = strlen(err.message); i < sizeof(err.message); i++)
		assert_int_equal(err.message[i], 0);
}

static void test_null(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, SHEAF_STALE, "x"), SHEAF_STALE);
	assert_int_equal(err_sys(NULL, SHEAF_STORAGE, ENOSPC, "x"), SHEAF_STORAGE);
	assert_int_equal(err_nomem(NULL), SHEAF_NOMEM);
	assert_int_equal(err_unknown(NULL, SHEAF_STORAGE), SHEAF_STORAGE);
	err_hint(NULL, "x");
}

static void test_long_texts_are_cut_on_a_character(void **state)
{
	(void)state;
	char text[1000];
	sheaf_error err = dirty();
	for (size_t shift = 0; shift < 3; shift++) {
		memset(text, 0, sizeof(text));
		memset(text, 'a', shift);
		for (size_t i = shift; i + 3 < sizeof(text); i += 3)
			memcpy(text + i, "\xe2\x82\xac", 3);
		(void)err_set(&err, SHEAF_INVALID, "%s", text);
		err_hint(&err, "%s", text);
		size_t len = strlen(err.message), hint = strlen(err.hint);
		assert_in_range(len, sizeof(err.message) - 4, sizeof(err.message) - 1);
		assert_int_equal((len - shift) % 3, 0);
		assert_in_range(hint, sizeof(err.hint) - 4, sizeof(err.hint) - 1);
		assert_int_equal((hint - shift) % 3, 0);
		assert_memory_equal(err.message, text, len);
		assert_rest_zero(&err);

		/* The errno's text is kept whole. */
		(void)err_sys(&err, SHEAF_STORAGE, ENOENT, "%s", text);
		assert_true(strlen(err.message) < sizeof(err.message));
		assert_non_null(strstr(err.message, ": No such file or directory"));
		assert_rest_zero(&err);
	}
}

static void test_messages_are_one_line(void **state)
{
	(void)state;
	sheaf_error err;
	(void)err_set(&err, SHEAF_INVALID, "a\nb\rc\td\x7f%s", "\x1b");
	assert_string_equal(err.message, "a b c d  ");
	err_hint(&err, "x\ny");
	assert_string_equal(err.hint, "x y");
}

static void test_arguments_may_be_the_error_itself(void **state)
{
	(void)state;
	sheaf_error err;
	(void)err_set(&err, SHEAF_NOT_FOUND, "inner");
	(void)err_set(&err, SHEAF_STORAGE, "outer: %s", err.message);
	assert_string_equal(err.message, "outer: inner");
	(void)err_sys(&err, SHEAF_STORAGE, EIO, "%s", err.message);
	assert_string_equal(err.message, "outer: inner: Input/output error");
	err_hint(&err, "see %s", err.message);
	err_hint(&err, "%s!", err.hint);
	assert_string_equal(err.hint, "see outer: inner: Input/output error!");
}

static void test_sys(void **state)
{
	(void)state;
	sheaf_error err = dirty();
	assert_int_equal(err_sys(&err, SHEAF_STORAGE, ENOSPC, "write %s", "f"), SHEAF_STORAGE);
	assert_int_equal(err.sys_errno, ENOSPC);
	assert_int_equal(err.outcome, SHEAF_FAILED);
	assert_string_equal(err.message, "write f: No space left on device");
	assert_rest_zero(&err);
	(void)err_sys(&err, SHEAF_STORAGE, 99999, "x");
	assert_int_equal(err.sys_errno, 99999);
	assert_string_equal(err.message, "x: unknown system error");
	(void)err_sys(&err, SHEAF_STORAGE, EIO, "%s", "");
	assert_string_equal(err.message, "Input/output error");
}

static void test_nomem_hint_unknown(void **state)
{
	(void)state;
	sheaf_error err = dirty();
	assert_int_equal(err_nomem(&err), SHEAF_NOMEM);
	assert_int_equal(err.code, SHEAF_NOMEM);
	assert_string_equal(err.message, "out of memory");
	err_hint(&err, "buy %d", 2);
	assert_string_equal(err.hint, "buy 2");
	assert_string_equal(err.message, "out of memory");
	assert_int_equal(err_unknown(&err, SHEAF_NOMEM), SHEAF_NOMEM);
	assert_int_equal(err.outcome, SHEAF_UNKNOWN);
	assert_int_equal(err.code, SHEAF_NOMEM);
	assert_rest_zero(&err);
}

static void test_table(void **state)
{
	(void)state;
	sheaf_error unknown = {.outcome = SHEAF_UNKNOWN}, failed = {.outcome = SHEAF_FAILED};
	for (int code = -1; code >= SHEAF_CODE_LAST; code--) {
		const char *name = sheaf_code_name(code), *text = sheaf_code_text(code);
		assert_true(strlen(name) >= 4 && strlen(name) <= 12);
		assert_int_equal(strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), strlen(name));
		assert_true(strlen(text) >= 5 && strlen(text) < 100);
		assert_null(strchr(text, '\n'));
		assert_in_range(sheaf_code_exit(code, NULL), 1, 5);
		assert_int_equal(sheaf_code_exit(code, &failed), sheaf_code_exit(code, NULL));
		assert_int_equal(sheaf_code_exit(code, &unknown), 6);
		assert_in_range(sheaf_code_http(code), 400, 599);
		for (int other = -1; other > code; other--) {
			assert_string_not_equal(sheaf_code_name(other), name);
			assert_string_not_equal(sheaf_code_text(other), text);
		}
	}
	assert_string_equal(sheaf_code_name(SHEAF_NOT_FOUND), "NOT_FOUND");
	assert_int_equal(sheaf_code_exit(SHEAF_NOT_FOUND, NULL), 1);
	assert_int_equal(sheaf_code_http(SHEAF_NOT_FOUND), 404);
	assert_int_equal(sheaf_code_exit(SHEAF_INVALID, NULL), 2);
	assert_int_equal(sheaf_code_exit(SHEAF_STALE, NULL), 3);
	assert_int_equal(sheaf_code_exit(SHEAF_DENIED, NULL), 4);
	assert_int_equal(sheaf_code_exit(SHEAF_DAMAGED, NULL), 5);
	assert_int_equal(SHEAF_MODEL, SHEAF_CODE_LAST);
}

static void test_beside_the_table(void **state)
{
	(void)state;
	sheaf_error unknown = {.outcome = SHEAF_UNKNOWN};
	assert_string_equal(sheaf_code_name(0), "OK");
	assert_int_equal(sheaf_code_exit(0, NULL), 0);
	assert_int_equal(sheaf_code_exit(0, &unknown), 0);
	assert_int_equal(sheaf_code_http(0), 200);
	assert_true(strlen(sheaf_code_text(0)) > 0);
	int others[] = {1, SHEAF_CODE_LAST - 1, -1000000, 1000000};
	for (size_t i = 0; i < COUNT_OF(others); i++) {
		assert_string_equal(sheaf_code_name(others[i]), "?");
		assert_true(strlen(sheaf_code_text(others[i])) > 0);
		assert_int_equal(sheaf_code_exit(others[i], NULL), 1);
		assert_int_equal(sheaf_code_http(others[i]), 500);
	}
}

static void test_common(void **state)
{
	(void)state;
	assert_string_equal(sheaf_version(), "0.1.0");
	assert_null(sheaf_str_of(NULL).ptr);
	assert_int_equal(sheaf_str_of(NULL).len, 0);
	assert_int_equal(sheaf_str_of("abc").len, 3);
	assert_int_equal(sheaf_str_is(sheaf_str_of("abc"), "abc"), 1);
	assert_int_equal(sheaf_str_is(sheaf_str_of("abc"), "abcd"), 0);
	assert_int_equal(sheaf_str_is(sheaf_str_of(NULL), ""), 0);
	assert_int_equal(sheaf_str_is(sheaf_str_of(NULL), NULL), 1);
	assert_non_null(sheaf_str_of("").ptr);
	assert_string_equal(sheaf_durability_name(0), "default");
	assert_string_equal(sheaf_durability_name(1), "none");
	assert_string_equal(sheaf_durability_name(2), "process");
	assert_string_equal(sheaf_durability_name(3), "disk");
	assert_string_equal(sheaf_durability_name(4), "replica");
	assert_string_equal(sheaf_durability_name(5), "unknown");
	assert_string_equal(sheaf_durability_name(-1), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_null),
		cmocka_unit_test(test_long_texts_are_cut_on_a_character),
		cmocka_unit_test(test_messages_are_one_line),
		cmocka_unit_test(test_arguments_may_be_the_error_itself),
		cmocka_unit_test(test_sys),
		cmocka_unit_test(test_nomem_hint_unknown),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_beside_the_table),
		cmocka_unit_test(test_common),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
