/* Records: the bytes of a line, looking at them, and every way they can be wrong. */
#include "entry_test.h"

#include "base/uuid.h"
#include "entry/record.h"

/* ---- Helpers ---------------------------------------------------------------- */

static sheaf_entry_options options_of(const char *id, const char *branch)
{
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	o.id = sheaf_str_of(id);
	o.branch = sheaf_str_of(branch);
	o.time_us = INT64_C(1794650400000001);
	return o;
}

static void make(draft *d, const char *type, const char *body, const sheaf_entry_options *o)
{
	sheaf_error err = {0};
	if (draft_init(d, sheaf_str_of(type), sheaf_str_of(body), false, o, &err) != 0)
		fail_msg("draft_init: %s", err.message);
}

/* The line of a sealed text, without its line break. */
static sheaf_str seal(buf *b, const char *text)
{
	buf_reset(b);
	buf_add(b, text, strlen(text));
	record_seal(b, 0);
	assert_int_equal(b->status, 0);
	return str_make(b->ptr, b->len - 1);
}

#define TIME "2026-11-14T10:00:00.000001Z"
#define HELLO "{\"message\":{\"role\":\"user\",\"content\":\"Hello\"}}"

/* ---- Kinds ------------------------------------------------------------------ */

static void kinds_have_names(void **state)
{
	static const int32_t known[] = {
		SHEAF_KIND_MESSAGE,    SHEAF_KIND_MODEL_CHANGE,   SHEAF_KIND_THINKING_LEVEL,
		SHEAF_KIND_COMPACTION, SHEAF_KIND_BRANCH_SUMMARY, SHEAF_KIND_CUSTOM,
		SHEAF_KIND_LABEL,      SHEAF_KIND_SESSION_INFO,   SHEAF_KIND_LEAF,
		SHEAF_KIND_TURN_END,   SHEAF_KIND_TODO,           SHEAF_KIND_PLAN,
		SHEAF_KIND_SUMMARY,    SHEAF_KIND_RETENTION,      SHEAF_KIND_LOST,
		SHEAF_KIND_SESSION};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(known); i++) {
		sheaf_str name = sheaf_str_of(sheaf_kind_name(known[i]));
		assert_int_equal(record_kind(name, false), known[i]);
		assert_int_equal(record_kind(name, true), known[i]);
		assert_int_equal(record_kind_is_fact(known[i]), known[i] >= 32);
	}
	assert_string_equal(sheaf_kind_name(SHEAF_KIND_OTHER_ENTRY), "entry");
	assert_string_equal(sheaf_kind_name(SHEAF_KIND_OTHER_FACT), "fact");
	assert_string_equal(sheaf_kind_name(99), "fact");
	assert_int_equal(record_kind(S("entry"), true), SHEAF_KIND_OTHER_ENTRY);
	assert_int_equal(record_kind(S("mess"), false), SHEAF_KIND_OTHER_FACT);
	assert_int_equal(record_kind(S(""), false), SHEAF_KIND_OTHER_FACT);
}

/* ---- Writing ---------------------------------------------------------------- */

/* A written line is what we expect, up to the crc, which must hold. */
static void check_line(const buf *b, const char *want)
{
	size_t len = strlen(want);
	assert_true(b->len == len + 19);
	assert_str(str_make(b->ptr, len), sheaf_str_of(want));
	assert_memory_equal(b->ptr + len, ",\"crc\":\"", 8);
	assert_memory_equal(b->ptr + b->len - 3, "\"}\n", 3);
	assert_true(record_crc_ok(str_make(b->ptr, b->len - 1)));
	assert_true(record_has_crc(str_make(b->ptr, b->len - 1)));
}

static void writes_the_fixed_order(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	_cleanup_(draft_free) draft d;
	sheaf_entry_options o = options_of("m1", NULL);
	make(&d, "message", HELLO, &o);
	record_write(&b, &d, NONE, 0, 1, 0, 1);
	check_line(&b,
	           "{\"type\":\"message\",\"id\":\"m1\",\"parent_id\":null,\"timestamp\":\"" TIME
	           "\",\"message\":{\"role\":\"user\",\"content\":\"Hello\"},\"seq\":1");
	buf_reset(&b);
	record_write(&b, &d, S("p\"1"), 0, 18, 2, 5);
	check_line(
		&b,
		"{\"type\":\"message\",\"id\":\"m1\",\"parent_id\":\"p\\\"1\",\"timestamp\":\"" TIME
		"\",\"message\":{\"role\":\"user\",\"content\":\"Hello\"},\"seq\":18,"
		"\"batch\":[2,5]");
	buf_reset(&b);
	record_write(&b, &d, S("p"), 7, UINT64_MAX, 0, 1);
	check_line(&b,
	           "{\"type\":\"message\",\"id\":\"m1\",\"parent_id\":\"p\",\"timestamp\":\"" TIME
	           "\",\"message\":{\"role\":\"user\",\"content\":\"Hello\"},\"parent_seq\":7,"
	           "\"seq\":18446744073709551615");
}

static void writes_facts_and_branches(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	draft d;
	sheaf_entry_options o = options_of("l1", "side");
	make(&d, "label", "{\"label\":{\"target_id\":\"m1\",\"label\":\"x\"}}", &o);
	/* A fact has no parent, whatever is said. */
	record_write(&b, &d, S("p"), 3, 4, 0, 1);
	check_line(&b, "{\"type\":\"label\",\"id\":\"l1\",\"timestamp\":\"" TIME
	               "\",\"branch\":\"side\","
	               "\"label\":{\"target_id\":\"m1\",\"label\":\"x\"},\"seq\":4");
	draft_free(&d);
	buf_reset(&b);
	make(&d, "event", "{ }", &o);
	record_write(&b, &d, NONE, 3, 4, 0, 1);
	check_line(&b, "{\"type\":\"event\",\"id\":\"l1\",\"parent_id\":null,\"timestamp\":\"" TIME
	               "\",\"branch\":\"side\",\"seq\":4");
	draft_free(&d);
}

/* A buffer too small leaves a failure behind, never half a line taken for a whole one. */
static void writes_within_the_buffer(void **state)
{
	(void)state;
	_cleanup_(draft_free) draft d;
	sheaf_entry_options o = options_of("m1", NULL);
	make(&d, "message", HELLO, &o);
	_cleanup_(buf_free) buf full = BUF_INIT(1 << 20);
	record_write(&full, &d, NONE, 0, 1, 0, 1);
	for (size_t max = 0; max <= full.len; max++) {
		_cleanup_(buf_free) buf b = BUF_INIT(max);
		record_write(&b, &d, NONE, 0, 1, 0, 1);
		assert_int_equal(b.status, max < full.len ? SHEAF_TOO_LARGE : 0);
	}
}

/* ---- Scanning --------------------------------------------------------------- */

static void scans_what_it_writes(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	record r;
	sheaf_str line = seal(
		&b, "{\"type\":\"message\",\"id\":\"m1\",\"parent_id\":\"p1\",\"timestamp\":\"" TIME
		    "\",\"branch\":\"side\",\"message\":{},\"turn\":\"t\","
		    "\"parent_seq\":3,\"seq\":9,\"batch\":[0,2]");
	assert_code(0, record_scan(&r, line, NULL));
	assert_int_equal(r.kind, SHEAF_KIND_MESSAGE);
	assert_str(r.line, line);
	assert_str(r.type, S("message"));
	assert_str(r.id, S("m1"));
	assert_str(r.parent_id, S("p1"));
	assert_str(r.timestamp, S(TIME));
	assert_str(r.branch, S("side"));
	assert_str(r.body, S("\"message\":{},\"turn\":\"t\""));
	assert_true(r.has_parent);
	assert_int_equal(r.parent_seq, 3);
	assert_int_equal(r.seq, 9);
	assert_int_equal(r.batch_index, 0);
	assert_int_equal(r.batch_count, 2);
	line = seal(&b, "{\"type\":\"odd\",\"id\":\"x\",\"timestamp\":\"" TIME "\",\"seq\":1");
	assert_code(0, record_scan(&r, line, NULL));
	assert_int_equal(r.kind, SHEAF_KIND_OTHER_FACT);
	assert_str(r.body, S(""));
	assert_str(r.parent_id, NONE);
	assert_str(r.branch, NONE);
	assert_int_equal(r.batch_count, 1);
	assert_int_equal(r.parent_seq, 0);
}

static void bodies_may_look_like_frames(void **state)
{
	static const char *const bodies[] = {
		"\"x\":\",\\\"seq\\\":1,\\\"crc\\\":\\\"00000000\\\"}\"",
		"\"x\":{\"seq\":5,\"batch\":[0,2],\"crc\":\"00000000\"}",
		"\"x\":{\"parent_seq\":5}",
		"\"x\":\",\\\"parent_seq\\\":5\"",
		"\"x\":5",
		"\"x\":[1,2]",
		"\"x\":[0,\"seq\",1]",
		"\"x\":\"\\\\\"",
		"\"x\":{\"parent_id\":null,\"branch\":\"b\"}",
		"\"x\":18446744073709551616"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(bodies); i++) {
		_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
		_cleanup_(draft_free) draft d;
		char text[300];
		record r;
		(void)snprintf(text, sizeof(text), "{%s}", bodies[i]);
		sheaf_entry_options o = options_of("m", NULL);
		make(&d, "thing", text, &o);
		record_write(&b, &d, NONE, 0, 77, 0, 1);
		assert_code(0, record_scan(&r, str_make(b.ptr, b.len - 1), NULL));
		assert_str(r.body, sheaf_str_of(bodies[i]));
		assert_int_equal(r.seq, 77);
		assert_int_equal(r.parent_seq, 0);
	}
}

#define HEAD "{\"type\":\"message\",\"id\":\"m\",\"parent_id\":null,\"timestamp\":\"" TIME "\""

static void refuses_other_shapes(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"{}",
		HEAD,
		HEAD ",\"seq\":0",
		HEAD ",\"seq\":01",
		HEAD ",\"seq\":",
		HEAD ",\"seq\":-1",
		HEAD ",\"seq\":1.5",
		HEAD ",\"seq\":\"1\"",
		HEAD ",\"seq\":18446744073709551616",
		HEAD ",\"seq\":100000000000000000000",
		HEAD ", \"seq\":1",
		HEAD ",\"seq\": 1",
		HEAD ",\"seq\":1 ",
		HEAD ",\"seq\":1,\"batch\":[0,1]",
		HEAD ",\"seq\":1,\"batch\":[2,2]",
		HEAD ",\"seq\":1,\"batch\":[0,4097]",
		HEAD ",\"seq\":1,\"batch\":[00,2]",
		HEAD ",\"seq\":1,\"batch\":[,2]",
		HEAD ",\"seq\":1,\"batch\":[0,2",
		HEAD ",\"seq\":1,\"batch\":[]",
		HEAD ",\"batch\":[0,2],\"seq\":1,\"x\":]",
		HEAD ",\"parent_seq\":1,\"seq\":2", /* a root has no inherited parent */
		"{\"type\":\"message\",\"id\":\"m\",\"parent_id\":\"p\",\"timestamp\":\"" TIME
		"\",\"parent_seq\":0,\"seq\":1",
		"{\"type\":\"message\",\"id\":\"m\",\"parent_id\":\"p\",\"timestamp\":\"" TIME
		"\",\"parent_seq\":1,\"seq\":1",
		HEAD "\"x\":1,\"seq\":1",
		HEAD ",x,\"seq\":1",
		HEAD ",,\"seq\":1",
		HEAD ",\"branch\":\"\",\"seq\":1",
		"{\"type\":\"message\",\"id\":\"m\",\"timestamp\":\"" TIME "\",\"seq\":1",
		"{\"type\":\"label\",\"id\":\"m\",\"parent_id\":null,\"timestamp\":\"" TIME
		"\",\"seq\":1",
		"{\"type\":\"session\",\"id\":\"m\",\"timestamp\":\"" TIME "\",\"seq\":1",
		"{\"type\":\"session\",\"id\":\"m\",\"parent_id\":null,\"timestamp\":\"" TIME
		"\",\"seq\":1",
		"{\"type\":\"message\",\"id\":\"\",\"parent_id\":null,\"timestamp\":\"" TIME
		"\",\"seq\":1",
		"{\"type\":\"\",\"id\":\"m\",\"parent_id\":null,\"timestamp\":\"" TIME
		"\",\"seq\":1",
		"{\"type\":\"message\",\"id\":\"m\",\"parent_id\":\"\",\"timestamp\":\"" TIME
		"\",\"seq\":1",
		"{\"type\":\"message\",\"id\":\"m\",\"parent_id\":3,\"timestamp\":\"" TIME
		"\",\"seq\":1",
		"{\"type\":\"message\",\"id\":\"m\",\"parent_id\":null,\"timestamp\":\"\",\"seq\":1",
		"{\"type\":\"message\",\"id\":\"m\",\"parent_id\":null,\"timestamp\":5,\"seq\":1",
		"{\"id\":\"m\",\"type\":\"message\",\"parent_id\":null,\"timestamp\":\"" TIME
		"\",\"seq\":1",
		" " HEAD ",\"seq\":1",
		"{\"type\":\"message\",\"id\":\"m,\"seq\":1",
		"{\"type\":\"message",
	};
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	arena *a = arena_new();
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		record r;
		if (record_scan(&r, seal(&b, bad[i]), a) != SHEAF_DAMAGED)
			fail_msg("accepted %s", bad[i]);
	}
	record r;
	assert_code(0, record_scan(&r, seal(&b, HEAD ",\"seq\":1"), a));
	assert_code(0, record_scan(&r, seal(&b, HEAD ",\"seq\":1,\"batch\":[4095,4096]"), a));
	assert_code(SHEAF_DAMAGED, record_scan(&r, S(HEAD ",\"seq\":1}"), a));
	assert_code(SHEAF_DAMAGED, record_scan(&r, S(""), a));
	arena_free(a);
}

static void id_limits_hold_on_the_way_out(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	record r;
	char text[700], *id = repeat('i', 129), *branch = repeat('b', 65);
	for (int over = 0; over < 2; over++) {
		int want = over ? SHEAF_DAMAGED : 0;
		(void)snprintf(text, sizeof(text),
		               "{\"type\":\"message\",\"id\":\"%.*s\",\"parent_id\":null,"
		               "\"timestamp\":\"" TIME "\",\"seq\":1",
		               128 + over, id);
		assert_code(want, record_scan(&r, seal(&b, text), NULL));
		(void)snprintf(text, sizeof(text),
		               "{\"type\":\"message\",\"id\":\"i\",\"parent_id\":\"%.*s\","
		               "\"timestamp\":\"" TIME "\",\"seq\":1",
		               128 + over, id);
		assert_code(want, record_scan(&r, seal(&b, text), NULL));
		(void)snprintf(text, sizeof(text), HEAD ",\"branch\":\"%.*s\",\"seq\":1", 64 + over,
		               branch);
		assert_code(want, record_scan(&r, seal(&b, text), NULL));
		(void)snprintf(text, sizeof(text),
		               "{\"type\":\"%.*s\",\"id\":\"i\",\"parent_id\":null,"
		               "\"timestamp\":\"" TIME "\",\"seq\":1",
		               64 + over, branch);
		assert_code(want, record_scan(&r, seal(&b, text), NULL));
	}
	free(id);
	free(branch);
}

static void escaped_ids_need_scratch(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	_cleanup_(draft_free) draft d;
	sheaf_entry_options o = options_of("a\"b\\c", "x\\y");
	record r;
	make(&d, "message", HELLO, &o);
	record_write(&b, &d, S("p\"q"), 0, 2, 0, 1);
	sheaf_str line = str_make(b.ptr, b.len - 1);
	assert_code(SHEAF_DAMAGED, record_scan(&r, line, NULL));
	arena *a = arena_new();
	assert_code(0, record_scan(&r, line, a));
	assert_str(r.id, S("a\"b\\c"));
	assert_str(r.parent_id, S("p\"q"));
	assert_str(r.branch, S("x\\y"));
	arena_free(a);
}

static void size_limit_on_the_way_out(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(SHEAF_RECORD_BYTES_MAX * 2);
	record r;
	for (size_t over = 0; over < 2; over++) {
		buf_reset(&b);
		buf_lit(&b, HEAD ",\"x\":\"");
		size_t tail = sizeof("\",\"seq\":1") - 1 + 18;
		while (b.len + tail < SHEAF_RECORD_BYTES_MAX + over)
			buf_char(&b, 'x');
		buf_lit(&b, "\",\"seq\":1");
		record_seal(&b, 0);
		assert_int_equal(b.len - 1, SHEAF_RECORD_BYTES_MAX + over);
		assert_code(over ? SHEAF_DAMAGED : 0,
		            record_scan(&r, str_make(b.ptr, b.len - 1), NULL));
	}
}

/* ---- The checksum ----------------------------------------------------------- */

static void every_flipped_bit_is_seen(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	_cleanup_(draft_free) draft d;
	sheaf_entry_options o = options_of("m1", "side");
	make(&d, "message", HELLO, &o);
	record_write(&b, &d, S("parent"), 0, 12, 1, 3);
	sheaf_str line = str_make(b.ptr, b.len - 1);
	assert_true(record_crc_ok(line));
	for (size_t bit = 0; bit < line.len * 8; bit++) {
		b.ptr[bit / 8] = (char)(b.ptr[bit / 8] ^ (1 << bit % 8));
		assert_false(record_crc_ok(line));
		b.ptr[bit / 8] = (char)(b.ptr[bit / 8] ^ (1 << bit % 8));
	}
	for (size_t len = 0; len < line.len; len++)
		assert_false(record_crc_ok(str_make(b.ptr, len)));
	for (size_t skip = 1; skip < line.len; skip++)
		assert_false(record_crc_ok(str_make(b.ptr + skip, line.len - skip)));
}

static void the_crc_has_one_spelling(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	/* This text's crc has a letter in it. */
	char text[64];
	sheaf_str line;
	for (int i = 0;; i++) {
		(void)snprintf(text, sizeof(text), "{\"n\":%d", i);
		line = seal(&b, text);
		if (strpbrk(b.ptr + line.len - 10, "abcdef") != NULL)
			break;
	}
	char *letter = strpbrk(b.ptr + line.len - 10, "abcdef");
	assert_true(record_crc_ok(line));
	*letter = (char)(*letter - 32);
	assert_false(record_crc_ok(line));
	assert_true(record_has_crc(line));
	assert_true(record_has_crc(S("{\"a\":1,\"crc\":\"zz\"}")));
	assert_true(record_has_crc(S(",\"crc\":\"\"}")));
	assert_false(record_has_crc(S("{\"crc\":\"00000000\"}")));
	assert_false(record_has_crc(S("{\"a\":1,\"crc\":\"00000000\"} ")));
	assert_false(record_has_crc(S("{\"a\":1,\"crc\":\"00000000\",\"b\":\"\"}")));
	assert_false(record_has_crc(S("{\"a\":1,\"crc\":0}")));
	assert_false(record_has_crc(S("\"}")));
	assert_false(record_has_crc(S("}")));
	assert_false(record_has_crc(S("")));
	assert_false(record_has_crc(NONE));
	assert_false(record_crc_ok(NONE));
}

/* ---- Copies ----------------------------------------------------------------- */

static void renumbers(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20), again = BUF_INIT(1 << 20);
	_cleanup_(draft_free) draft d;
	sheaf_entry_options o = options_of("m\"1", "side");
	record r, s;
	arena *a = arena_new();
	make(&d, "message", HELLO, &o);
	record_write(&b, &d, S("p"), 0, 12, 1, 3);
	assert_code(0, record_scan(&r, str_make(b.ptr, b.len - 1), a));
	assert_code(0, record_renumber(&again, &r, S("p"), 0, 12, 1, 3, NULL));
	assert_str(buf_view(&again), buf_view(&b));
	buf_reset(&again);
	assert_code(0, record_renumber(&again, &r, S("other"), 4, 5, 0, 1, NULL));
	assert_true(record_crc_ok(str_make(again.ptr, again.len - 1)));
	assert_code(0, record_scan(&s, str_make(again.ptr, again.len - 1), a));
	assert_str(s.parent_id, S("other"));
	assert_str(s.id, S("m\"1"));
	assert_str(s.body, r.body);
	assert_str(s.branch, r.branch);
	assert_str(s.timestamp, r.timestamp);
	assert_int_equal(s.seq, 5);
	assert_int_equal(s.parent_seq, 4);
	assert_int_equal(s.batch_count, 1);
	_cleanup_(buf_free) buf small = BUF_INIT(50);
	assert_code(SHEAF_TOO_LARGE, record_renumber(&small, &r, NONE, 0, 5, 0, 1, NULL));
	r.timestamp = S("yesterday");
	assert_code(SHEAF_DAMAGED, record_renumber(&again, &r, NONE, 0, 5, 0, 1, NULL));
	arena_free(a);
}

static void stands_in_for_the_lost(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	record r;
	assert_code(0, record_write_lost(&b, 17, NULL));
	sheaf_str line = str_make(b.ptr, b.len - 1);
	assert_true(record_crc_ok(line));
	assert_code(0, record_scan(&r, line, NULL));
	assert_int_equal(r.kind, SHEAF_KIND_LOST);
	assert_int_equal(r.seq, 17);
	assert_str(r.body, S("\"lost\":{\"seq\":17}"));
	assert_true(uuid7_is(r.id));
}

static void compares_what_the_caller_gave(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	_cleanup_(draft_free) draft d;
	draft other;
	record r;
	sheaf_entry_options o = options_of("m", "side");
	make(&d, "message", HELLO, &o);
	record_write(&b, &d, S("p"), 0, 12, 1, 3);
	assert_code(0, record_scan(&r, str_make(b.ptr, b.len - 1), NULL));
	assert_true(record_same(&r, &d));
	o.time_us++; /* the time does not matter */
	make(&other, "message", HELLO, &o);
	assert_true(record_same(&r, &other));
	draft_free(&other);
	o.has_parent = 1;
	o.parent_id = S("p");
	make(&other, "message", HELLO, &o);
	assert_true(record_same(&r, &other));
	draft_free(&other);
	o.parent_id = S("q");
	make(&other, "message", HELLO, &o);
	assert_false(record_same(&r, &other));
	draft_free(&other);
	o.parent_id = NONE; /* a root */
	make(&other, "message", HELLO, &o);
	assert_false(record_same(&r, &other));
	draft_free(&other);
	o = options_of("m", NULL);
	make(&other, "message", HELLO, &o);
	assert_false(record_same(&r, &other));
	draft_free(&other);
	o = options_of("m", "side");
	make(&other, "message", "{\"message\":{\"role\":\"user\",\"content\":\"Hullo\"}}", &o);
	assert_false(record_same(&r, &other));
	draft_free(&other);
	make(&other, "thing", HELLO, &o);
	assert_false(record_same(&r, &other));
	draft_free(&other);
}

/* ---- Chance ----------------------------------------------------------------- */

static void random_records_round_trip(void **state)
{
	(void)state;
	chance c = {4};
	arena *a = arena_new();
	for (int i = 0; i < 5000; i++) {
		_cleanup_(buf_free) buf b = BUF_INIT(1 << 20), body = BUF_INIT(1 << 20);
		char id[128], parent[128], branch[64], text[300];
		sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
		o.id = chance_text(&c, id, sizeof(id), false);
		if (o.id.len == 0)
			o.id = NONE;
		o.branch = chance_text(&c, branch, sizeof(branch), false);
		o.time_us = (int64_t)(chance_next(&c) >> 12);
		sheaf_str p = chance_text(&c, parent, sizeof(parent), false);
		buf_lit(&body, "{\"custom\":{\"custom_type\":");
		buf_json(&body, chance_text(&c, text, sizeof(text), true));
		buf_lit(&body, "}}");
		draft d;
		assert_code(0, draft_init(&d, S("custom"), buf_view(&body), false, &o, NULL));
		uint64_t seq = 2 + chance_next(&c) / 2, n = 1 + chance_below(&c, 4096);
		uint64_t at = chance_below(&c, n), inherited = chance_below(&c, 2);
		record_write(&b, &d, p, inherited, seq, at, n);
		sheaf_str line = str_make(b.ptr, b.len - 1);
		record r;
		assert_true(record_crc_ok(line));
		assert_code(0, json_check(line, JSON_OBJECT, NULL));
		assert_code(0, record_scan(&r, line, a));
		assert_str(r.id, draft_id(&d));
		assert_str(r.parent_id, p.len != 0 ? p : NONE);
		assert_true(str_eq(r.branch, o.branch));
		assert_str(r.body, buf_view(&d.body));
		assert_int_equal(r.seq, seq);
		assert_int_equal(r.batch_index, n > 1 ? at : 0);
		assert_int_equal(r.batch_count, n);
		assert_int_equal(r.parent_seq, p.len != 0 ? inherited : 0);
		assert_true(record_same(&r, &d));
		draft_free(&d);
	}
	arena_free(a);
}

/* Lines with a good crc and anything before it: refused or read, never worse. */
static void random_damage_is_survived(void **state)
{
	(void)state;
	static const char line[] =
		"{\"type\":\"message\",\"id\":\"m1\",\"parent_id\":\"p1\",\"timestamp\":\"" TIME
		"\",\"branch\":\"side\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_use\","
		"\"tool_use\":{\"id\":\"a\",\"name\":\"b\",\"input\":{\"c\":[1,2]}}}]},\"agent\":\"x\","
		"\"parent_seq\":3,\"seq\":9,\"batch\":[0,2]";
	chance c = {5};
	for (int i = 0; i < 30000; i++) {
		_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
		size_t len = sizeof(line) - 1;
		char *text = malloc(len + 1);
		memcpy(text, line, len + 1);
		for (size_t n = 1 + chance_below(&c, 3); n != 0; n--) {
			size_t at = chance_below(&c, len);
			if (chance_below(&c, 2))
				text[at] = "\"\\{}[],:0a"[chance_below(&c, 10)];
			else
				text[at] = (char)chance_next(&c);
		}
		if (chance_below(&c, 4) == 0)
			len = chance_below(&c, len);
		buf_add(&b, text, len);
		record_seal(&b, 0);
		/* An exact copy, so that a sanitizer sees a byte too far. */
		sheaf_str exact = {malloc(b.len - 1), b.len - 1};
		memcpy((char *)(uintptr_t)exact.ptr, b.ptr, exact.len);
		arena *a = arena_new();
		json_doc *doc = NULL;
		record r;
		sheaf_entry e;
		int rc = record_scan(&r, exact, a);
		assert_true(rc == 0 || rc == SHEAF_DAMAGED);
		if (rc == 0)
			(void)entry_read(&e, &r, 3, true, a, &doc, NULL);
		json_free(doc);
		arena_free(a);
		free((char *)(uintptr_t)exact.ptr);
		free(text);
	}
}

/* ---- Memory ----------------------------------------------------------------- */

static int write_and_renumber(void)
{
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20), again = BUF_INIT(1 << 20);
	draft d;
	record r;
	sheaf_entry_options o = options_of("m", NULL);
	int rc = draft_init(&d, S("message"), S(HELLO), false, &o, NULL);
	if (rc != 0)
		return rc;
	record_write(&b, &d, NONE, 0, 1, 0, 1);
	draft_free(&d);
	rc = buf_status(&b, NULL);
	if (rc != 0)
		return rc;
	assert_code(0, record_scan(&r, str_make(b.ptr, b.len - 1), NULL));
	r.seq = 0; /* as a foreign one */
	rc = record_renumber(&again, &r, NONE, 0, 3, 0, 1, NULL);
	return rc == 0 ? record_write_lost(&again, 4, NULL) : rc;
}

static void memory_runs_out(void **state)
{
	(void)state;
	each_allocation_fails(write_and_renumber);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_have_names),
		cmocka_unit_test(writes_the_fixed_order),
		cmocka_unit_test(writes_facts_and_branches),
		cmocka_unit_test(writes_within_the_buffer),
		cmocka_unit_test(scans_what_it_writes),
		cmocka_unit_test(bodies_may_look_like_frames),
		cmocka_unit_test(refuses_other_shapes),
		cmocka_unit_test(id_limits_hold_on_the_way_out),
		cmocka_unit_test(escaped_ids_need_scratch),
		cmocka_unit_test(size_limit_on_the_way_out),
		cmocka_unit_test(every_flipped_bit_is_seen),
		cmocka_unit_test(the_crc_has_one_spelling),
		cmocka_unit_test(renumbers),
		cmocka_unit_test(stands_in_for_the_lost),
		cmocka_unit_test(compares_what_the_caller_gave),
		cmocka_unit_test(random_records_round_trip),
		cmocka_unit_test(random_damage_is_survived),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
