/* Tests of base/json.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "support/fail_alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"

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

static const json_val *parse(json_doc **doc, const char *text)
{
	assert_int_equal(json_parse(doc, sheaf_str_of(text), NULL), 0);
	return json_root(*doc);
}

static void assert_str(sheaf_str s, const char *want)
{
	assert_non_null(s.ptr);
	assert_int_equal(s.len, strlen(want));
	assert_memory_equal(s.ptr, want, s.len);
}

/* Parsing and looking. */

static void test_values(void **state)
{
	(void)state;
	_cleanup_(json_freep) json_doc *doc = NULL;
	const json_val *root = parse(&doc, " {\"n\":null,\"t\":true,\"f\":false,\"i\":-12.50e+3,"
	                                   "\"s\":\"a\\u0000\\ud83d\\ude00\",\"a\":[1,[2],{}],"
	                                   "\"o\":{\"x\":1},\"n\":1,\"\":0}\r\n\t ");
	assert_int_equal(json_type_of(root), JSON_OBJECT);
	assert_int_equal(json_count(root), 9);
	assert_int_equal(json_type_of(json_get(root, "n")), JSON_NULL); /* the first */
	assert_int_equal(json_type_of(json_get(root, "t")), JSON_BOOL);
	assert_int_equal(json_type_of(json_get(root, "i")), JSON_NUMBER);
	assert_int_equal(json_type_of(json_get(root, "s")), JSON_STRING);
	assert_int_equal(json_type_of(json_get(root, "a")), JSON_ARRAY);
	assert_int_equal(json_type_of(json_get(root, "o")), JSON_OBJECT);
	assert_null(json_get(root, "absent"));
	assert_non_null(json_get(root, ""));
	assert_true(json_bool(json_get(root, "t")));
	assert_false(json_bool(json_get(root, "f")));
	assert_true(json_is_bool(json_get(root, "f")));
	assert_false(json_is_bool(json_get(root, "n")));
	assert_false(json_bool(json_get(root, "i")));
	assert_str(json_number(json_get(root, "i")), "-12.50e+3");
	sheaf_str s = json_string(json_get(root, "s"));
	assert_int_equal(s.len, 6);
	assert_memory_equal(s.ptr, "a\0\xf0\x9f\x98\x80", 7); /* with its NUL */
	assert_int_equal(json_count(json_get(root, "a")), 3);
	assert_int_equal(json_count(json_get(root, "s")), 0);
	assert_null(json_string(json_get(root, "i")).ptr);
	assert_null(json_number(json_get(root, "s")).ptr);
	assert_null(json_get(json_get(root, "a"), "x"));
}

static void test_absent(void **state)
{
	(void)state;
	uint64_t n = 5;
	assert_int_equal(json_type_of(NULL), JSON_NONE);
	assert_null(json_get(NULL, "x"));
	assert_null(json_string(NULL).ptr);
	assert_null(json_number(NULL).ptr);
	assert_false(json_u64(NULL, &n));
	assert_int_equal(n, 5);
	assert_false(json_bool(NULL));
	assert_false(json_is_bool(NULL));
	assert_int_equal(json_count(NULL), 0);
	json_iter it = json_each(NULL);
	assert_false(json_next(&it));
	assert_null(json_root(NULL));
	json_free(NULL);
}

static void test_u64(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool whole;
		uint64_t value;
	} cases[] = {
		{"0", true, 0},
		{"7", true, 7},
		{"18446744073709551615", true, UINT64_MAX},
		{"18446744073709551616", false, 0},
		{"99999999999999999999999", false, 0},
		{"-1", false, 0},
		{"-0", false, 0},
		{"1.0", false, 0},
		{"1e2", false, 0},
		{"\"1\"", false, 0},
		{"true", false, 0},
		{"[]", false, 0},
	};
	_cleanup_(json_freep) json_doc *doc = NULL;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		uint64_t value = 123;
		const json_val *root = parse(&doc, cases[i].text);
		assert_int_equal(json_u64(root, &value), cases[i].whole);
		assert_true(value == (cases[i].whole ? cases[i].value : 123));
	}
}

static void test_iteration(void **state)
{
	(void)state;
	_cleanup_(json_freep) json_doc *doc = NULL;
	const json_val *root = parse(&doc, "{\"a\":[[1,2],{\"x\":[3]}],\"b\":{},\"c\":[],\"d\":4}");
	char seen[16] = "";
	for (json_iter it = json_each(root); json_next(&it);) {
		strcat(seen, json_string(it.key).ptr);
		if (json_type_of(it.value) == JSON_ARRAY) {
			for (json_iter in = json_each(it.value); json_next(&in);) {
				assert_null(in.key);
				strcat(seen, json_type_of(in.value) == JSON_OBJECT ? "o" : "l");
			}
		}
	}
	assert_string_equal(seen, "alobcd");
	json_iter it = json_each(json_get(root, "d"));
	assert_false(json_next(&it));
	it = json_each(json_get(root, "b"));
	assert_false(json_next(&it));
	assert_false(json_next(&it));
}

static void test_bad_json(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		" ",
		"{",
		"[",
		"[1,]",
		"{\"a\":1,}",
		"{a:1}",
		"01",
		"1.",
		"+1",
		"NaN",
		"'a'",
		"\"a",
		"\"\\x\"",
		"\"\\ud800\"",
		"\"\\udc00\"",
		"\"\xff\"",
		"\"\xc3\"",
		"1 2",
		"{} x",
		"tru",
		"nul",
		"\"a\nb\"",
		"[1 2]",
		"{\"a\" 1}",
		"\xef\xbb\xbf{}",
		"/**/1",
		"-",
		"1e",
		"\xff",
		"]",
		"}",
		",",
	};
	_cleanup_(json_freep) json_doc *doc = NULL;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		sheaf_error err;
		if (json_parse(&doc, sheaf_str_of(bad[i]), &err) != SHEAF_FORMAT)
			fail_msg("%s was taken", bad[i]);
		assert_int_equal(err.code, SHEAF_FORMAT);
		assert_non_null(strstr(err.message, "at byte "));
		assert_null(doc); /* nothing was there, nothing is */
	}
	sheaf_error err;
	assert_int_equal(json_parse(&doc, (sheaf_str){NULL, 0}, NULL), SHEAF_FORMAT);
	assert_int_equal(json_parse(&doc, SHEAF_STR("{}\0"), NULL), SHEAF_FORMAT);
	assert_int_equal(json_parse(&doc, SHEAF_STR("[1,x]"), &err), SHEAF_FORMAT);
	assert_non_null(strstr(err.message, "at byte 3"));
	/* A document in use stays usable, but shows nothing of its last text. */
	(void)parse(&doc, "{\"a\":1}");
	assert_int_equal(json_parse(&doc, SHEAF_STR("{"), &err), SHEAF_FORMAT);
	assert_null(json_root(doc));
	assert_non_null(json_get(parse(&doc, "{\"b\":1}"), "b"));
}

static bool passes(const char *text, size_t depth)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	(void)parse(&doc, text);
	return json_doc_passes(doc, sheaf_str_of(text), depth);
}

static void test_parsed_passes(void **state)
{
	(void)state;
	assert_true(passes("1", 0));
	assert_true(passes("[[],{\"a\":[1]},[[2]]]", 3));
	assert_false(passes("[[],{\"a\":[1]},[[2]]]", 2));
	assert_false(passes("[]", 0));
	assert_false(passes("[]", SHEAF_DEPTH_MAX + 1));
	assert_true(passes("{\"\":1,\"a\":{\"\":1},\"A\":2}", 2));
	assert_false(passes("{\"ab\":1,\"c\":{\"d\":1,\"\\u0064\":1}}", 2));
	assert_false(passes("{\"ab\":1,\t\"c\":2}", 1));
	/* One whose members are too many to compare is left to json_check(). */
	_cleanup_(buf_free) buf many = BUF_INIT(10000);
	for (int i = 0; i < 65; i++)
		buf_format(&many, "%s\"k%d\":0", i == 0 ? "{" : ",", i);
	buf_lit(&many, "}");
	buf_nul(&many);
	assert_false(passes(many.ptr, 1));
}

static void test_text_need_not_end_with_nul(void **state)
{
	(void)state;
	_cleanup_(json_freep) json_doc *doc = NULL;
	static const char text[] = "{\"k\":[true,12345,\"abc\"]}";
	for (size_t len = 0; len <= sizeof(text) - 1; len++) {
		char *exact = malloc(len + (len == 0));
		memcpy(exact, text, len);
		int rc = json_parse(&doc, (sheaf_str){exact, len}, NULL);
		assert_int_equal(rc, len == sizeof(text) - 1 ? 0 : SHEAF_FORMAT);
		int checked = json_check((sheaf_str){exact, len}, JSON_NONE, NULL);
		assert_int_equal(checked == 0, rc == 0);
		free(exact);
	}
}

static void test_first_of_several(void **state)
{
	(void)state;
	json_doc *doc = NULL;
	size_t used = 0;
	sheaf_str text = sheaf_str_of("{\"a\":[1,\"}\"]} ,\"b\":2");
	assert_int_equal(json_parse_first(&doc, text, &used, NULL), 0);
	assert_int_equal(used, 13);
	assert_int_equal(json_count(json_get(json_root(doc), "a")), 2);
	assert_int_equal(json_parse_first(&doc, sheaf_str_of("[]"), &used, NULL), 0);
	assert_int_equal(used, 2);
	assert_int_equal(json_parse_first(&doc, sheaf_str_of("{\"a\":"), &used, NULL),
	                 SHEAF_FORMAT);
	json_free(doc);
}

static void test_reuse_does_not_allocate(void **state)
{
	(void)state;
	_cleanup_(json_freep) json_doc *doc = NULL;
	char text[400];
	memset(text, ' ', sizeof(text));
	memcpy(text, "{\"a\":[1,2,3]", 12);
	text[sizeof(text) - 1] = '}';
	assert_int_equal(json_parse(&doc, str_make(text, sizeof(text)), NULL), 0);
	fail_alloc_at(1, true);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(json_parse(&doc, str_make(text, sizeof(text)), NULL), 0);
		assert_int_equal(json_count(json_get(json_root(doc), "a")), 3);
	}
	assert_int_equal(fail_alloc_count(), 0);
}

/* The densest text there is for values, over the border between pool and heap. */
static void test_sizes(void **state)
{
	(void)state;
	_cleanup_(json_freep) json_doc *doc = NULL;
	enum {
		MOST = 400000
	};
	char *text = malloc(MOST);
	for (size_t count = 1; count < MOST / 2; count = count * 5 / 3 + 1) {
		for (int shape = 0; shape < 3; shape++) {
			size_t len = count * 2 + 1;
			for (size_t i = 0; i < len; i++)
				text[i] = shape == 0 ? (i % 2 ? '1' : ',') : i < count ? '[' : ']';
			text[0] = '[';
			text[len - 1] = ']';
			if (shape == 1)
				text[count] = '1';
			if (shape == 2)
				memset(text + 1, 'a', len - 2), text[1] = text[len - 2] = '"';
			if (shape == 2 && len < 4)
				continue;
			assert_int_equal(json_parse(&doc, str_make(text, len), NULL), 0);
			size_t depth = 0, want = shape == 0 ? count : 1;
			assert_int_equal(json_count(json_root(doc)), want);
			for (json_iter it = json_each(json_root(doc)); json_next(&it); depth++)
				it = it.left == 0 ? json_each(it.value) : it;
		}
	}
	/* After a large line a small one holds little. */
	(void)parse(&doc, "[1]");
	assert_in_range(fail_alloc_live(), 1, 2);
	free(text);
}

static void test_parse_out_of_memory(void **state)
{
	(void)state;
	size_t len = 300000; /* goes to the heap */
	char *large = malloc(len);
	memset(large, ' ', len);
	large[0] = '[';
	large[len - 1] = ']';
	sheaf_str texts[] = {SHEAF_STR("{\"a\":[1,2,{\"b\":\"c\"}]}"), {large, len}};
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		for (size_t n = 1;; n++) {
			json_doc *doc = NULL;
			sheaf_error err;
			fail_alloc_at(n, false);
			int rc = json_parse(&doc, texts[i], &err);
			bool hit = fail_alloc_hit();
			assert_int_equal(rc, hit ? SHEAF_NOMEM : 0);
			if (hit) {
				assert_int_equal(err.code, SHEAF_NOMEM);
				assert_null(doc);
			}
			json_free(doc);
			assert_int_equal(fail_alloc_live(), 0);
			if (!hit)
				break;
			assert_true(n < 20);
		}
	}
	free(large);
}

/* buf_json and back. */
static void test_round_trip(void **state)
{
	(void)state;
	_cleanup_(json_freep) json_doc *doc = NULL;
	_cleanup_(buf_free) buf text = BUF_INIT(1 << 20);
	_cleanup_(buf_free) buf json = BUF_INIT(1 << 22);
	srand(6);
	for (int round = 0; round < 3000; round++) {
		char raw[600];
		size_t len = (size_t)rand() % (round % 20 == 0 ? sizeof(raw) : 60);
		int kind = rand() % 3;
		for (size_t i = 0; i < len; i++) {
			int any = rand();
			raw[i] = (char)(kind == 0 ? any : kind == 1 ? any % 128 : ' ' + any % 90);
		}
		buf_reset(&text);
		(void)utf8_mend(&text, str_make(raw, len));
		buf_reset(&json);
		buf_json(&json, buf_view(&text));
		assert_int_equal(buf_status(&json, NULL), 0);
		assert_int_equal(json_check(buf_view(&json), JSON_STRING, NULL), 0);
		assert_int_equal(json_parse(&doc, buf_view(&json), NULL), 0);
		assert_true(str_eq(json_string(json_root(doc)), buf_view(&text)));
	}
}

/* Checking. */

static void assert_checked(sheaf_str text, json_type must, int want)
{
	sheaf_error err = {0};
	int rc = json_check(text, must, &err);
	if (rc != want)
		fail_msg("%.*s gave %d %s", (int)text.len, text.ptr, rc, err.message);
	assert_int_equal(err.code, want);
	if (want != 0)
		assert_true(strlen(err.message) > 5);
	assert_int_equal(json_check(text, must, NULL), want);
}

#define CHECK(text, want) assert_checked(SHEAF_STR(text), JSON_NONE, want)

static void test_check_good(void **state)
{
	(void)state;
	static const char *const good[] = {
		"{}",
		"[]",
		" { } ",
		"[ ]",
		"0",
		"-0",
		"-0.0e-0",
		"1E+5",
		"12.340",
		"true",
		"false",
		"null",
		"\"\"",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uFFFF\\ud83D\\uDe00\"",
		"{\"a\":1,\"b\":{\"a\":2,\"b\":[{\"a\":3},{\"a\":4}]}}",
		"{\"\":1,\" \":2}",
		"\"\x7f\xc3\xa9\xf0\x9f\x98\x80\"",
		"[ 1 , 2 , [ ] , { \"k\" : null } ]",
		"{\"a\":1,\"\\u0041\":2}",
		"\"\xe2\x80\xa8\"",
		"123456789012345678901234567890",
	};
	for (size_t i = 0; i < COUNT_OF(good); i++)
		assert_checked(sheaf_str_of(good[i]), JSON_NONE, 0);
}

static const char *const bad[] = {
	"",
	" ",
	"{",
	"}",
	"[",
	"]",
	"[1",
	"[1,",
	"[1,]",
	"[,1]",
	"{\"a\"",
	"{\"a\":",
	"{\"a\":1",
	"{\"a\":1,",
	"{\"a\":1,}",
	"{,}",
	"{1:2}",
	"{a:1}",
	"{\"a\" 1}",
	"[1 2]",
	"{\"a\":1]",
	"[1}",
	"1 2",
	"{}{}",
	"[][]",
	"{} x",
	"01",
	"-01",
	"00",
	"1.",
	".5",
	"+1",
	"-",
	"1e",
	"1e+",
	"1.e5",
	"0x10",
	"NaN",
	"Infinity",
	"-Infinity",
	"tru",
	"truex",
	"nul",
	"fals",
	"'a'",
	"\"a",
	"\"\\",
	"\"\\\"",
	"\"\\x\"",
	"\"\\u12\"",
	"\"\\u123g\"",
	"\"\\u\"",
	"/**/1",
	"\xef\xbb\xbf{}",
	"\xc3\xa9",
	",",
	":",
	"[\"a\":1]",
	/* controls in strings and between tokens */
	"\"a\nb\"",
	"\"\t\"",
	"\"\x1f\"",
	"\n1",
	"1\n",
	"{\n}",
	"[1,\n2]",
	"{\"a\":\r1}",
	"\t1",
	"1\t",
	"[1,\t2]",
	"{\"a\"\v:1}",
	"[\f]",
	/* lone surrogates */
	"\"\\ud800\"",
	"\"\\uDBFF\"",
	"\"\\udc00\"",
	"\"\\udfff\"",
	"\"\\ud800\\ud800\"",
	"\"\\ud800x\"",
	"\"\\ud800\\n\"",
	"\"\\ud800\\u0041\"",
	"\"\\udc00\\ud800\"",
	"\"\\ud83d\\ude00\\ud83d\"",
	"\"\\ud800\\udc0\"",
	"\"\\ud800\\",
	"\"\\ud800",
	/* broken UTF-8 */
	"\"\xff\"",
	"\"\x80\"",
	"\"\xc3\"",
	"\"\xc0\x80\"",
	"\"\xed\xa0\x80\"",
	"\"\xf4\x90\x80\x80\"",
	"\"\xe2\x82\"",
	/* the same key twice */
	"{\"a\":1,\"a\":2}",
	"{\"a\":1,\"\\u0061\":2}",
	"{\"\":1,\"\":2}",
	"{\"x\":{\"a\":1,\"b\":2,\"a\":3}}",
	"[{\"a\":1},{\"b\":1,\"b\":2}]",
	"{\"\xf0\x9f\x98\x80\":1,\"\\ud83d\\ude00\":1}",
	"{\"a\\/b\":1,\"a/b\":1}",
	"{\"\\n\":1,\"\\u000a\":1}",
	"{\"\xc3\xa9\":1,\"\\u00e9\":1}",
	"{\"\xe2\x82\xac\":1,\"\\u20ac\":1}",
	"{\"a\":[{\"k\":1}],\"b\":0,\"a\":1}",
};

static void test_check_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_checked(sheaf_str_of(bad[i]), JSON_NONE, SHEAF_INVALID);
	assert_checked((sheaf_str){NULL, 0}, JSON_NONE, SHEAF_INVALID);
	CHECK("{}\0", SHEAF_INVALID);
	CHECK("\0{}", SHEAF_INVALID);
	CHECK("\"a\0b\"", SHEAF_INVALID);
	CHECK("\"\\\0\"", SHEAF_INVALID);
	CHECK("[1,\0 2]", SHEAF_INVALID);
	CHECK("1\0", SHEAF_INVALID);
}

static void test_check_says_where(void **state)
{
	(void)state;
	sheaf_error err;
	(void)json_check(SHEAF_STR("{\"aa\":1,\"b\":2,\"aa\":3}"), JSON_NONE, &err);
	assert_string_equal(err.message, "duplicate key at byte 14");
	(void)json_check(SHEAF_STR("[1,\n2]"), JSON_NONE, &err);
	assert_non_null(strstr(err.message, "line break"));
	assert_non_null(strstr(err.message, "at byte 3"));
	(void)json_check(SHEAF_STR("[\"\\ud800\"]"), JSON_NONE, &err);
	assert_string_equal(err.message, "lone surrogate escape at byte 2");
}

static void test_check_type(void **state)
{
	(void)state;
	static const char *const texts[] = {NULL, "null", "true", "-1", " \"s\"", "[]", "  {}"};
	for (int is = JSON_NULL; is <= JSON_OBJECT; is++) {
		assert_checked(sheaf_str_of(texts[is]), JSON_NONE, 0);
		for (int must = JSON_NULL; must <= JSON_OBJECT; must++)
			assert_checked(sheaf_str_of(texts[is]), (json_type)must,
			               is == must ? 0 : SHEAF_INVALID);
	}
	assert_checked(SHEAF_STR("  "), JSON_OBJECT, SHEAF_INVALID);
	assert_checked(SHEAF_STR("{"), JSON_OBJECT, SHEAF_INVALID);
}

static void test_check_depth(void **state)
{
	(void)state;
	for (int shape = 0; shape < 3; shape++) {
		for (size_t depth = SHEAF_DEPTH_MAX - 1; depth <= SHEAF_DEPTH_MAX + 1; depth++) {
			_cleanup_(buf_free) buf b = BUF_INIT(10000);
			for (size_t i = 0; i < depth; i++) {
				bool array = shape == 0 || (shape == 2 && i % 2);
				buf_format(&b, "%s", array ? "[" : "{\"k\":");
			}
			buf_lit(&b, "1");
			for (size_t i = depth; i-- > 0;) {
				bool array = shape == 0 || (shape == 2 && i % 2);
				buf_char(&b, array ? ']' : '}');
			}
			assert_checked(buf_view(&b), JSON_NONE,
			               depth <= SHEAF_DEPTH_MAX ? 0 : SHEAF_LIMIT);
		}
	}
	/* Deep beyond reason, and never closed. */
	size_t len = (size_t)1 << 20;
	char *deep = malloc(len);
	memset(deep, '[', len);
	assert_checked((sheaf_str){deep, len}, JSON_NONE, SHEAF_LIMIT);
	free(deep);
	/* Wide is not deep. */
	_cleanup_(buf_free) buf b = BUF_INIT(100000);
	buf_lit(&b, "[");
	for (int i = 0; i < 1000; i++)
		buf_lit(&b, "[{}],");
	buf_lit(&b, "{}]");
	assert_checked(buf_view(&b), JSON_NONE, 0);
}

/* Around the border where comparing each with each ends, with the twin at every place. */
static void test_check_many_keys(void **state)
{
	(void)state;
	for (int count = 2; count <= 40; count++) {
		for (int twin = -1; twin < count; twin++) {
			_cleanup_(buf_free) buf b = BUF_INIT(10000);
			for (int i = 0; i < count; i++)
				buf_format(&b, "%s\"k%d\":{\"k0\":%d}", i == 0 ? "{" : ",", i, i);
			if (twin >= 0)
				buf_format(&b, ",\"\\u006b%d\":0", twin);
			buf_lit(&b, "}");
			assert_checked(buf_view(&b), JSON_OBJECT, twin < 0 ? 0 : SHEAF_INVALID);
		}
	}
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 24);
	for (unsigned i = 0; i < 100000; i++)
		buf_format(&b, "%s\"%x\":0", i == 0 ? "{" : ",", i * 2654435761u);
	buf_lit(&b, "}");
	assert_checked(buf_view(&b), JSON_OBJECT, 0);
	b.len--;
	buf_format(&b, ",\"%x\":0}", 77u * 2654435761u);
	assert_checked(buf_view(&b), JSON_OBJECT, SHEAF_INVALID);
}

static void test_check_out_of_memory(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(100000);
	for (int i = 0; i < 300; i++)
		buf_format(&b, "%s\"\\u006b and more to fill the arena %d\":0", i ? "," : "{", i);
	buf_lit(&b, "}");
	size_t before = fail_alloc_live(), failures = 0;
	for (size_t n = 1;; n++, failures++) {
		sheaf_error err;
		fail_alloc_at(n, n % 2 == 0);
		int rc = json_check(buf_view(&b), JSON_OBJECT, &err);
		bool hit = fail_alloc_hit();
		assert_int_equal(rc, hit ? SHEAF_NOMEM : 0);
		assert_int_equal(fail_alloc_live(), before);
		if (!hit)
			break;
		assert_int_equal(err.code, SHEAF_NOMEM);
	}
	assert_true(failures >= 3);
	fail_alloc_at(1, true);
	assert_checked(SHEAF_STR("[1,\"\\n\",[{}]]"), JSON_NONE, 0); /* needs none */
}

/* What json_check promises, said with the parser. Recursion is fine here: the texts are short. */
static bool no_twins(const json_val *v, unsigned depth)
{
	if (json_type_of(v) == JSON_ARRAY || json_type_of(v) == JSON_OBJECT) {
		if (depth == SHEAF_DEPTH_MAX)
			return false;
		for (json_iter it = json_each(v); json_next(&it);) {
			if (!no_twins(it.value, depth + 1))
				return false;
			if (it.key == NULL)
				continue;
			size_t same = 0;
			for (json_iter other = json_each(v); json_next(&other);)
				same += str_eq(json_string(it.key), json_string(other.key));
			if (same != 1)
				return false;
		}
	}
	return true;
}

static size_t random_json(char *out, size_t room, unsigned depth)
{
	static const char *const atoms[] = {"1",
	                                    "-0.5e3",
	                                    "true",
	                                    "null",
	                                    "\"\"",
	                                    "\"a\\n\"",
	                                    "\"\\ud83d\\ude00\"",
	                                    "[]",
	                                    "{}",
	                                    "\"\xc3\xa9\"",
	                                    "\"long enough to fill a block of sixteen\"",
	                                    "0"};
	static const char *const names[] = {"a", "b",        "\\u0061", "c",
	                                    "d", "\xc3\xa9", "\\u00e9", ""};
	_cleanup_(buf_free) buf b = BUF_INIT(room);
	int kind = depth > 4 ? 0 : rand() % 4;
	if (kind < 2) {
		buf_format(&b, "%s", atoms[(size_t)rand() % COUNT_OF(atoms)]);
	} else {
		buf_char(&b, kind == 2 ? '[' : '{');
		for (int i = rand() % 4; i > 0; i--) {
			char inner[2000];
			if (kind == 3)
				buf_format(&b, "\"%s\":", names[(size_t)rand() % COUNT_OF(names)]);
			size_t n = random_json(inner, sizeof(inner), depth + 1);
			buf_add(&b, inner, n);
			if (i > 1)
				buf_format(&b, rand() % 4 ? "," : " , ");
		}
		buf_char(&b, kind == 2 ? ']' : '}');
	}
	if (b.status != 0)
		return 0;
	memcpy(out, b.ptr, b.len);
	return b.len;
}

static void mutate(char *text, size_t len)
{
	static const char likely[] = "\"\\{}[],:0123456789.eE+-untf \n\t\x80\xc3\xff";
	for (int i = rand() % 3; i > 0 && len > 0; i--) {
		size_t at = (size_t)rand() % len;
		text[at] = rand() % 3 ? likely[(size_t)rand() % sizeof(likely)] : (char)rand();
	}
}

static void test_check_agrees_with_the_parser(void **state)
{
	(void)state;
	_cleanup_(json_freep) json_doc *doc = NULL;
	static char text[8000];
	size_t good = 0;
	srand(7);
	for (int round = 0; round < 60000; round++) {
		size_t len = random_json(text, sizeof(text), 0);
		mutate(text, len);
		char *exact = malloc(len + (len == 0));
		memcpy(exact, text, len);
		sheaf_str s = {exact, len};
		bool parsed = json_parse(&doc, s, NULL) == 0;
		bool want = parsed && no_twins(json_root(doc), 0);
		for (size_t i = 0; i < len; i++)
			want = want && (unsigned char)exact[i] >= 0x20;
		if (parsed && json_doc_passes(doc, s, SHEAF_DEPTH_MAX) != want)
			fail_msg("parsed, %.*s: %d", (int)len, exact, want);
		if ((json_check(s, JSON_NONE, NULL) == 0) != want)
			fail_msg("%.*s: %d", (int)len, exact, want);
		good += want;

		/* The member walk never leaves the text, and is right for good objects. */
		size_t at = 0, members = 0;
		sheaf_str key, value;
		while (json_member_next(s, &at, &key, &value)) {
			assert_true(key.ptr >= exact && key.ptr + key.len <= exact + len);
			assert_true(value.ptr >= exact && value.ptr + value.len <= exact + len);
			members++;
			if (want)
				assert_int_equal(json_check(value, JSON_NONE, NULL), 0);
		}
		if (want && json_type_of(json_root(doc)) == JSON_OBJECT)
			assert_int_equal(members, json_count(json_root(doc)));

		/* Mending changes nothing that is right, and leaves nothing it should mend. */
		_cleanup_(buf_free) buf out = BUF_INIT(1 << 20);
		size_t mended = 0, again = 0;
		json_mend(&out, s, &mended);
		if (want)
			assert_true(mended == 0 && str_eq(buf_view(&out), s));
		assert_true(utf8_valid(buf_view(&out)));
		_cleanup_(buf_free) buf twice = BUF_INIT(1 << 20);
		json_mend(&twice, buf_view(&out), &again);
		assert_int_equal(again, 0);
		assert_true(str_eq(buf_view(&twice), buf_view(&out)));
		free(exact);
	}
	assert_in_range(good, 10000, 50000);
}

/* Mending. */

#define X "\xef\xbf\xbd"

static void assert_mended(sheaf_str from, sheaf_str want, size_t count)
{
	_cleanup_(buf_free) buf b = BUF_INIT(1000);
	size_t mended = 100;
	json_mend(&b, from, &mended);
	assert_int_equal(mended, 100 + count);
	if (!str_eq(buf_view(&b), want))
		fail_msg("%.*s", (int)b.len, b.ptr);
}

#define MENDED(from, want, count) assert_mended(SHEAF_STR(from), SHEAF_STR(want), count)

static void test_mend(void **state)
{
	(void)state;
	MENDED("", "", 0);
	MENDED("{\"a\":[1,\"b\\n\\u0000\\ud83d\\ude00\xc3\xa9\"]}",
	       "{\"a\":[1,\"b\\n\\u0000\\ud83d\\ude00\xc3\xa9\"]}", 0);
	MENDED("\"\\ud800\"", "\"" X "\"", 1);
	MENDED("\"\\udc00\"", "\"" X "\"", 1);
	MENDED("\"\\uD800\\uD800\\uDC00\"", "\"" X "\\uD800\\uDC00\"", 1);
	MENDED("\"\\udc00\\ud800\"", "\"" X X "\"", 2);
	MENDED("\"\\ud800\\u0041\"", "\"" X "\\u0041\"", 1);
	MENDED("\"\\ud800\\n\"", "\"" X "\\n\"", 1);
	MENDED("\"\\\\ud800\"", "\"\\\\ud800\"", 0); /* a backslash and letters */
	MENDED("\"\\\\\\ud800\"", "\"\\\\" X "\"", 1);
	MENDED("\"a\0b\"", "\"a" X "b\"", 1);
	MENDED("\"\\\0\"", "\"\\" X "\"", 1); /* still no escape */
	MENDED("\"\xff\xc3\xa9\xe2\x82\"", "\"" X "\xc3\xa9" X "\"", 2);
	MENDED("\"\\\xff\"", "\"\\" X "\"", 1);
	MENDED("\0\0", X X, 2);
	/* What is wrong otherwise stays. */
	MENDED("{\"a\":\"\\u12\\uZZZZ\\x\n\"", "{\"a\":\"\\u12\\uZZZZ\\x\n\"", 0);
	MENDED("\"\\ud8", "\"\\ud8", 0);
	MENDED("\\", "\\", 0);
	_cleanup_(buf_free) buf b = BUF_INIT(100);
	json_mend(&b, SHEAF_STR("\xff"), NULL);
	assert_int_equal(b.len, 3);
}

/* Members. */

static void test_member_bytes(void **state)
{
	(void)state;
	static const char text[] =
		" { \"a\" : 1 , \"b\":[1,{\"a\":\"]}\\\"\"}] ,\"c\":{\"a\":[]},\n\"d\" :\t"
		"\"x\\\\\",\"\\u0065\":true,\"f\":-1.5e3\t,\"g\":\"\",\"a\":2,\"\":null } ";
	sheaf_str s = SHEAF_STR(text);
	assert_str(json_member_bytes(s, "a"), "1");
	assert_str(json_member_bytes(s, "b"), "[1,{\"a\":\"]}\\\"\"}]");
	assert_str(json_member_bytes(s, "c"), "{\"a\":[]}");
	assert_str(json_member_bytes(s, "d"), "\"x\\\\\"");
	assert_str(json_member_bytes(s, "e"), "true");
	assert_str(json_member_bytes(s, "f"), "-1.5e3");
	assert_str(json_member_bytes(s, "g"), "\"\"");
	assert_str(json_member_bytes(s, ""), "null");
	assert_null(json_member_bytes(s, "h").ptr);
	assert_null(json_member_bytes(s, "ee").ptr);
	assert_null(json_member_bytes(SHEAF_STR("{}"), "a").ptr);
	assert_null(json_member_bytes(SHEAF_STR(" { } "), "a").ptr);
	assert_null(json_member_bytes(SHEAF_STR("[\"a\",1]"), "a").ptr);
	assert_null(json_member_bytes(SHEAF_STR(""), "a").ptr);
	assert_null(json_member_bytes((sheaf_str){NULL, 0}, "a").ptr);
	assert_str(json_member_bytes(SHEAF_STR("{\"\\ud83d\\ude00\":7}"), "\xf0\x9f\x98\x80"), "7");
}

static void test_member_next(void **state)
{
	(void)state;
	sheaf_str s = SHEAF_STR("{\"a\\n\":[1, 2],\"b\":{} , \"c\":\"\"}"), key, value;
	size_t at = 0;
	assert_true(json_member_next(s, &at, &key, &value));
	assert_str(key, "a\\n");
	assert_str(value, "[1, 2]");
	assert_true(json_member_next(s, &at, &key, &value));
	assert_str(key, "b");
	assert_str(value, "{}");
	assert_true(json_member_next(s, &at, &key, &value));
	assert_str(key, "c");
	assert_str(value, "\"\"");
	assert_false(json_member_next(s, &at, &key, &value));
	assert_false(json_member_next(s, &at, &key, &value));
	/* Every prefix ends inside itself. */
	for (size_t len = 0; len < s.len; len++) {
		char *exact = malloc(len + (len == 0));
		memcpy(exact, s.ptr, len);
		at = 0;
		while (json_member_next(str_make(exact, len), &at, &key, &value))
			assert_true(value.ptr + value.len <= exact + len);
		free(exact);
	}
}

static void test_element_next(void **state)
{
	(void)state;
	static const char *const wanted[] = {"{\"a\":[1]}", "12", "true", "\"],\"", "[ ]", "null"};
	sheaf_str s = SHEAF_STR(" [{\"a\":[1]} ,12,true, \"],\",[ ],null]"), value;
	size_t at = 0;
	for (size_t i = 0; i < COUNT_OF(wanted); i++) {
		assert_true(json_element_next(s, &at, &value));
		assert_str(value, wanted[i]);
	}
	assert_false(json_element_next(s, &at, &value));
	assert_false(json_element_next(s, &at, &value));
	static const char *const none[] = {"[]", "[ ]", "", "{\"a\":1}", "7"};
	for (size_t i = 0; i < COUNT_OF(none); i++) {
		at = 0;
		assert_false(json_element_next(sheaf_str_of(none[i]), &at, &value));
	}
	/* Every prefix ends inside itself. */
	for (size_t len = 0; len < s.len; len++) {
		char *exact = malloc(len + (len == 0));
		memcpy(exact, s.ptr, len);
		at = 0;
		while (json_element_next(str_make(exact, len), &at, &value))
			assert_true(value.ptr + value.len <= exact + len);
		free(exact);
	}
}

/* A bracket, brace, quote or escape at every place of a block. */
static void test_member_blocks(void **state)
{
	(void)state;
	for (size_t pad = 0; pad < 40; pad++) {
		_cleanup_(buf_free) buf value = BUF_INIT(1000);
		_cleanup_(buf_free) buf b = BUF_INIT(1000);
		int wide = (int)pad;
		buf_format(&value, "[\"%*s\\\"]}\",{\"k\":[%*s1]}]", wide, "\\\\", wide, "");
		buf_lit(&b, "{\"v\":");
		buf_str(&b, buf_view(&value));
		buf_lit(&b, ",\"w\":1}");
		assert_true(str_eq(json_member_bytes(buf_view(&b), "v"), buf_view(&value)));
		assert_str(json_member_bytes(buf_view(&b), "w"), "1");
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, install, no_leak)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_values),
		T(test_absent),
		T(test_u64),
		T(test_iteration),
		T(test_bad_json),
		T(test_parsed_passes),
		T(test_text_need_not_end_with_nul),
		T(test_first_of_several),
		T(test_reuse_does_not_allocate),
		T(test_sizes),
		T(test_parse_out_of_memory),
		T(test_round_trip),
		T(test_check_good),
		T(test_check_bad),
		T(test_check_says_where),
		T(test_check_type),
		T(test_check_depth),
		T(test_check_many_keys),
		T(test_check_out_of_memory),
		T(test_check_agrees_with_the_parser),
		T(test_mend),
		T(test_member_bytes),
		T(test_member_next),
		T(test_element_next),
		T(test_member_blocks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
