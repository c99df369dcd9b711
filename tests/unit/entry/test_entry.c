/* Entries: a scanned line as callers see it. */
#include "entry_test.h"

#include "entry/record.h"

#define TIME "2026-11-14T10:00:00.000001Z"

typedef struct got {
	arena *a;
	json_doc *doc;
	sheaf_entry e;
} got;

/* Reads a line whose memory is gone afterwards: nothing may point into it. */
static got get(const char *text, bool parse)
{
	got g = {arena_new(), NULL, {0}};
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	sheaf_error err = {0};
	record r;
	buf_add(&b, text, strlen(text));
	record_seal(&b, 0);
	arena *scratch = arena_new();
	assert_code(0, record_scan(&r, str_make(b.ptr, b.len - 1), scratch));
	if (entry_read(&g.e, &r, 5, parse, g.a, &g.doc, &err) != 0)
		fail_msg("%s: %s", text, err.message);
	assert_str(g.e.line, str_make(b.ptr, b.len - 1));
	json_free(g.doc);
	arena_free(scratch);
	return g;
}

static void got_free(got *g)
{
	arena_free(g->a);
}

#define ENTRY(type, rest)                                                                          \
	"{\"type\":\"" type "\",\"id\":\"e\",\"parent_id\":\"p\",\"timestamp\":\"" TIME "\"," rest \
	",\"seq\":9"
#define FACT(type, rest)                                                                           \
	"{\"type\":\"" type "\",\"id\":\"f\",\"timestamp\":\"" TIME "\"," rest ",\"seq\":9"

static void envelopes(void **state)
{
	(void)state;
	got g = get(
		"{\"type\":\"thing\",\"id\":\"e\\\"\",\"parent_id\":\"p\",\"timestamp\":\"" TIME
		"\",\"branch\":\"side\",\"agent\":\"a\\/b\",\"turn\":\"t\",\"seq\":9,\"batch\":[1,3]",
		true);
	assert_int_equal(g.e.kind, SHEAF_KIND_OTHER_ENTRY);
	assert_int_equal(g.e.damaged, 0);
	assert_int_equal(g.e.seq, 9);
	assert_int_equal(g.e.parent_seq, 5);
	assert_str(g.e.type, S("thing"));
	assert_str(g.e.id, S("e\""));
	assert_str(g.e.parent_id, S("p"));
	assert_str(g.e.timestamp, S(TIME));
	assert_int_equal(g.e.time_us, INT64_C(1794650400000001));
	assert_str(g.e.branch, S("side"));
	assert_str(g.e.agent, S("a/b"));
	assert_str(g.e.turn, S("t"));
	assert_str(g.e.body, S("\"agent\":\"a\\/b\",\"turn\":\"t\""));
	assert_str(g.e.label, NONE);
	assert_null(g.e.message);
	assert_int_equal(g.e.batch_index, 1);
	assert_int_equal(g.e.batch_count, 3);
	got_free(&g);
	g = get(FACT("label", "\"label\":{\"target_id\":\"x\",\"label\":\"l\",\"agent\":\"no\"}"),
	        false);
	assert_str(g.e.parent_id, NONE);
	assert_str(g.e.branch, S("main"));
	assert_str(g.e.agent, S(""));
	assert_str(g.e.text, NONE);
	assert_str(g.e.target_id, NONE);
	got_free(&g);
	g = get(ENTRY("thing", "\"agent\":5,\"turn\":[\"turn\"]"), true);
	assert_str(g.e.agent, S(""));
	assert_str(g.e.turn, NONE);
	got_free(&g);
}

static void payloads(void **state)
{
	(void)state;
	got g = get(ENTRY("message",
	                  "\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_use\","
	                  "\"tool_use\":{\"id\":\"c\",\"name\":\"n\",\"input\":{\"a\" : 1}}}]}"),
	            true);
	assert_non_null(g.e.message);
	assert_str(g.e.message->role, S("user"));
	assert_str(g.e.message->parts[0]->input, S("{\"a\" : 1}"));
	assert_true(g.e.message->json.ptr > g.e.line.ptr &&
	            g.e.message->json.ptr < g.e.line.ptr + g.e.line.len);
	got_free(&g);
	g = get(ENTRY("message", "\"message\":{\"role\":\"user\",\"content\":\"\"}"), false);
	assert_null(g.e.message);
	got_free(&g);
	g = get(ENTRY("compaction",
	              "\"compaction\":{\"summary\":\"s\\n\",\"first_kept_entry_id\":\"k\"}"),
	        true);
	assert_str(g.e.text, S("s\n"));
	assert_str(g.e.target_id, S("k"));
	got_free(&g);
	g = get(ENTRY("branch_summary", "\"branch_summary\":{\"summary\":\"s\",\"from_id\":null}"),
	        true);
	assert_str(g.e.text, S("s"));
	assert_str(g.e.target_id, NONE);
	got_free(&g);
	g = get(ENTRY("model_change", "\"model_change\":{\"provider\":\"p\",\"model_id\":\"m\"}"),
	        true);
	assert_str(g.e.provider, S("p"));
	assert_str(g.e.model, S("m"));
	got_free(&g);
	g = get(ENTRY("thinking_level", "\"thinking_level\":{\"thinking_level\":\"low\"}"), true);
	assert_str(g.e.text, S("low"));
	got_free(&g);
	g = get(ENTRY("custom", "\"custom\":{\"custom_type\":\"c\",\"data\":{\"x\" : [1.0]}}"),
	        true);
	assert_str(g.e.text, S("c"));
	assert_str(g.e.data, S("{\"x\" : [1.0]}"));
	got_free(&g);
	g = get(FACT("label", "\"label\":{\"target_id\":\"t\",\"label\":\"l\"}"), true);
	assert_str(g.e.text, S("l"));
	assert_str(g.e.target_id, S("t"));
	got_free(&g);
	g = get(FACT("session_info", "\"session_info\":{\"name\":\"n\"}"), true);
	assert_str(g.e.text, S("n"));
	got_free(&g);
	g = get(FACT("leaf", "\"leaf\":{\"branch\":\"b\",\"entry_id\":\"i\",\"entry_seq\":1}"),
	        true);
	assert_str(g.e.target_id, S("i"));
	got_free(&g);
	g = get(FACT("turn_end", "\"turn_end\":{\"turn\":\"t1\"}"), true);
	assert_str(g.e.turn, S("t1"));
	got_free(&g);
	g = get(FACT("todo", "\"todo\":{}"), true);
	got_free(&g);
}

static void damage_is_reported(void **state)
{
	static const char *const bad[] = {
		ENTRY("message", "\"x\":1"),
		ENTRY("message", "\"message\":1"),
		ENTRY("message", "\"message\":{\"role\":}"),
		ENTRY("message", "\"message\":{\"role\":\"\\ud800\"}"),
		FACT("label", "\"label\":{\"target_id\":tru}"),
		"{\"type\":\"thing\",\"id\":\"e\",\"parent_id\":null,\"timestamp\":\"today\",\"seq\":9",
		"{\"type\":\"thing\",\"id\":\"e\",\"parent_id\":null,\"timestamp\":\"2026-13-14T10:00:00Z\",\"seq\":9"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
		arena *a = arena_new();
		json_doc *doc = NULL;
		record r;
		sheaf_entry e;
		buf_add(&b, bad[i], strlen(bad[i]));
		record_seal(&b, 0);
		assert_code(0, record_scan(&r, str_make(b.ptr, b.len - 1), a));
		if (entry_read(&e, &r, 0, true, a, &doc, NULL) != SHEAF_DAMAGED)
			fail_msg("read %s", bad[i]);
		json_free(doc);
		arena_free(a);
	}
}

/* Foreign lines come without numbers and perhaps without a time. */
static void foreign_entries(void **state)
{
	(void)state;
	arena *a = arena_new(), *scratch = arena_new();
	json_doc *doc = NULL;
	record r;
	sheaf_entry e;
	assert_code(0, record_scan_foreign(
			       &r,
			       S("{\"type\":\"label\",\"id\":\"l\",\"parent_id\":\"m\","
	                         "\"target_id\":\"m\",\"label\":\"x\",\"timestamp\":\"...\"}"),
			       scratch, &doc, NULL));
	assert_code(0, entry_read(&e, &r, 0, true, a, &doc, NULL));
	arena_free(scratch);
	assert_int_equal(e.time_us, 0);
	assert_str(e.timestamp, S("..."));
	assert_str(e.text, S("x"));
	assert_str(e.target_id, S("m"));
	assert_str(e.parent_id, NONE);
	assert_str(e.body, S("\"label\":{\"target_id\":\"m\",\"label\":\"x\"}"));
	scratch = arena_new();
	assert_code(0, record_scan_foreign(&r, S("{\"type\":\"leaf\",\"id\":\"l\"}"), scratch, &doc,
	                                   NULL));
	assert_code(0, entry_read(&e, &r, 0, true, a, &doc, NULL));
	json_free(doc);
	arena_free(scratch);
	arena_free(a);
}

/* A look gives the same as a copy, wherever the payload stands, and leaves strings where they are. */
static void looks(void **state)
{
	static const char *const lines[] = {
		ENTRY("message",
	              "\"message\":{\"role\":\"user\",\"content\":\"a}\\\"\"},\"agent\":\"x\""),
		ENTRY("message",
	              "\"turn\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"b\"}"),
		ENTRY("message",
	              "\"message\": {\"role\":\"user\",\"content\":\"c\"} ,\"turn\":\"t\""),
		ENTRY("branch_summary", "\"branch_summary\":{\"summary\":\"s\",\"from_id\":null}"),
		ENTRY("thing", "\"thing\":[1,2]"),
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
		arena *a = arena_new();
		json_doc *doc = NULL;
		record r;
		sheaf_entry e, copy;
		buf_add(&b, lines[i], strlen(lines[i]));
		record_seal(&b, 0);
		assert_code(0, record_scan(&r, str_make(b.ptr, b.len - 1), a));
		assert_code(0, entry_read(&copy, &r, 7, true, a, &doc, NULL));
		assert_code(0, entry_look(&e, &r, 7, a, &doc, NULL));
		assert_ptr_equal(e.line.ptr, b.ptr);
		assert_ptr_not_equal(copy.line.ptr, b.ptr);
		assert_str(e.body, copy.body);
		assert_str(e.turn, copy.turn);
		assert_str(e.agent, copy.agent);
		assert_str(e.text, copy.text);
		assert_int_equal(e.parent_seq, 7);
		if (copy.message != NULL) {
			assert_str(e.message->json, copy.message->json);
			assert_str(e.message->parts[0]->text, copy.message->parts[0]->text);
			assert_true(e.message->json.ptr > b.ptr &&
			            e.message->json.ptr < b.ptr + b.len);
		}
		json_free(doc);
		arena_free(a);
	}
}

static int read_once(void)
{
	static const char text[] = ENTRY("message",
	                                 "\"message\":{\"role\":\"user\",\"content\":\"x\"},"
	                                 "\"agent\":\"a\\\"\"");
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	record r;
	sheaf_entry e;
	buf_add(&b, text, sizeof(text) - 1);
	record_seal(&b, 0);
	if (b.status != 0)
		return b.status;
	assert_code(0, record_scan(&r, str_make(b.ptr, b.len - 1), NULL));
	arena *a = arena_new();
	json_doc *doc = NULL;
	int rc = a != NULL ? entry_read(&e, &r, 0, true, a, &doc, NULL) : SHEAF_NOMEM;
	json_free(doc);
	arena_free(a);
	return rc;
}

static void memory_runs_out(void **state)
{
	(void)state;
	each_allocation_fails(read_once);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(envelopes),
		cmocka_unit_test(payloads),
		cmocka_unit_test(damage_is_reported),
		cmocka_unit_test(foreign_entries),
		cmocka_unit_test(looks),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
