/* Foreign lines: plain session files, nested and flat, and what is none of them. */
#include "entry_test.h"

#include "entry/record.h"

typedef struct looked {
	arena *a;
	json_doc *doc;
	record r;
} looked;

static looked look(const char *line)
{
	looked l = {arena_new(), NULL, {0}};
	sheaf_error err = {0};
	if (record_scan_foreign(&l.r, sheaf_str_of(line), l.a, &l.doc, &err) != 0)
		fail_msg("%s: %s", line, err.message);
	assert_str(l.r.line, sheaf_str_of(line));
	assert_int_equal(l.r.seq, 0);
	assert_int_equal(l.r.parent_seq, 0);
	assert_int_equal(l.r.batch_index, 0);
	assert_int_equal(l.r.batch_count, 1);
	return l;
}

static void looked_free(looked *l)
{
	json_free(l->doc);
	arena_free(l->a);
}

/* The body must be what our own form of the record would have. */
static void check_body(const char *line, int32_t kind, const char *body)
{
	looked l = look(line);
	assert_int_equal(l.r.kind, kind);
	assert_str(l.r.body, sheaf_str_of(body));
	looked_free(&l);
}

static void nested_lines(void **state)
{
	(void)state;
	looked l = look(
		"{\"type\":\"message\",\"id\":\"m-2\",\"parent_id\":\"m-1\",\"timestamp\":"
		"\"2024-02-01T12:00:02Z\",\"message\":{\"role\":\"assistant\",\"content\":"
		"[{\"type\":\"tool_use\",\"tool_use\":{\"id\":\"call_abc\",\"name\":\"read_file\","
		"\"input\":{\"path\":\"main.go\"}}}]}}");
	assert_int_equal(l.r.kind, SHEAF_KIND_MESSAGE);
	assert_str(l.r.type, S("message"));
	assert_str(l.r.id, S("m-2"));
	assert_str(l.r.parent_id, S("m-1"));
	assert_str(l.r.timestamp, S("2024-02-01T12:00:02Z"));
	assert_str(l.r.branch, NONE);
	assert_true(l.r.has_parent);
	assert_str(l.r.body,
	           S("\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\","
	             "\"tool_use\":{\"id\":\"call_abc\",\"name\":\"read_file\",\"input\":"
	             "{\"path\":\"main.go\"}}}]}"));
	looked_free(&l);
	l = look("{\"type\":\"message\",\"id\":\"m\",\"parent_id\":null,\"message\":{}}");
	assert_true(l.r.has_parent);
	assert_str(l.r.parent_id, NONE);
	assert_str(l.r.timestamp, NONE);
	looked_free(&l);
	l = look(
		" { \"message\" : { } , \"id\" : \"a\\\"b\" , \"type\" : \"message\", \"parent_id\":\"\","
		"\"branch\":\"side\", \"turn\" : 1 } ");
	assert_str(l.r.id, S("a\"b"));
	assert_str(l.r.parent_id, NONE);
	assert_true(l.r.has_parent);
	assert_str(l.r.branch, S("side"));
	assert_str(l.r.body, S("\"message\":{ },\"turn\":1"));
	looked_free(&l);
}

static void flat_lines(void **state)
{
	(void)state;
	/* Seed 001 §13. */
	looked l = look(
		"{\"type\":\"label\",\"id\":\"lbl-1\",\"parent_id\":\"msg-3\",\"target_id\":\"msg-1\","
		"\"label\":\"first-greeting\",\"timestamp\":\"2024-01-01T10:00:00Z\"}");
	assert_int_equal(l.r.kind, SHEAF_KIND_LABEL);
	assert_str(l.r.parent_id, S("msg-3")); /* children of the fact resolve through it */
	assert_true(l.r.has_parent);
	assert_str(l.r.body, S("\"label\":{\"target_id\":\"msg-1\",\"label\":\"first-greeting\"}"));
	looked_free(&l);
	check_body(
		"{\"type\":\"compaction\",\"id\":\"comp-1\",\"parent_id\":\"lbl-1\",\"summary\":"
		"\"User greeted.\",\"first_kept_entry_id\":\"msg-3\",\"tokens_before\":1500,"
		"\"timestamp\":\"...\"}",
		SHEAF_KIND_COMPACTION,
		"\"compaction\":{\"summary\":\"User greeted.\",\"first_kept_entry_id\":\"msg-3\","
		"\"tokens_before\":1500}");
	check_body(
		"{\"type\":\"message\",\"id\":\"m\",\"role\":\"user\",\"content\":[1.0],\"x\":2}",
		SHEAF_KIND_MESSAGE, "\"message\":{\"role\":\"user\",\"content\":[1.0]},\"x\":2");
	check_body("{\"type\":\"model_change\",\"id\":\"m\",\"provider\":\"p\",\"model_id\":\"i\"}",
	           SHEAF_KIND_MODEL_CHANGE,
	           "\"model_change\":{\"provider\":\"p\",\"model_id\":\"i\"}");
	check_body("{\"type\":\"thinking_level\",\"id\":\"m\",\"thinking_level\":\"high\"}",
	           SHEAF_KIND_THINKING_LEVEL, "\"thinking_level\":{\"thinking_level\":\"high\"}");
	check_body("{\"type\":\"session_info\",\"id\":\"m\",\"name\":\"n\"}",
	           SHEAF_KIND_SESSION_INFO, "\"session_info\":{\"name\":\"n\"}");
	check_body("{\"type\":\"branch_summary\",\"id\":\"m\",\"summary\":\"s\",\"from_id\":\"f\"}",
	           SHEAF_KIND_BRANCH_SUMMARY,
	           "\"branch_summary\":{\"summary\":\"s\",\"from_id\":\"f\"}");
	check_body("{\"type\":\"custom\",\"id\":\"m\",\"custom_type\":\"c\",\"data\":{\"a\" : 1}}",
	           SHEAF_KIND_CUSTOM, "\"custom\":{\"custom_type\":\"c\",\"data\":{\"a\" : 1}}");
	check_body("{\"type\":\"label\",\"id\":\"m\"}", SHEAF_KIND_LABEL, "\"label\":{}");
}

static void unknown_types(void **state)
{
	(void)state;
	check_body("{\"type\":\"file-snapshot\",\"id\":\"m\",\"parent_id\":null,\"a\":1}",
	           SHEAF_KIND_OTHER_ENTRY, "\"a\":1");
	check_body("{\"type\":\"thing\",\"id\":\"m\"}", SHEAF_KIND_OTHER_FACT, "");
	/* Names that our frame needs cannot be kept. */
	check_body("{\"type\":\"thing\",\"id\":\"m\",\"seq\":4,\"crc\":\"x\",\"batch\":1,\"a\":2,"
	           "\"parent_seq\":3}",
	           SHEAF_KIND_OTHER_FACT, "\"a\":2");
	check_body("{\"type\":\"leaf\",\"id\":\"m\",\"branch\":\"main\",\"entry_id\":\"x\"}",
	           SHEAF_KIND_LEAF, "\"entry_id\":\"x\"");
}

static void refuses_other_lines(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"1",
		"[]",
		"{",
		"{}",
		"{\"type\":\"message\"}",
		"{\"id\":\"m\"}",
		"{\"type\":\"session\",\"id\":\"m\"}",
		"{\"type\":1,\"id\":\"m\"}",
		"{\"type\":\"message\",\"id\":1}",
		"{\"type\":\"message\",\"id\":\"\"}",
		"{\"type\":\"\",\"id\":\"m\"}",
		"{\"type\":\"message\",\"id\":\"a\\nb\"}",
		"{\"type\":\"message\",\"id\":\"m\",\"parent_id\":5}",
		"{\"type\":\"message\",\"id\":\"m\",\"parent_id\":\"\\u0001\"}",
		"{\"type\":\"message\",\"id\":\"m\"} {}",
		"{\"type\":\"message\",\"id\":\"\xff\"}",
		"{\"type\":\"message\",\"id\":\"\\ud800\"}"};
	(void)state;
	arena *a = arena_new();
	json_doc *doc = NULL;
	record r;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		if (record_scan_foreign(&r, sheaf_str_of(bad[i]), a, &doc, NULL) != SHEAF_FORMAT)
			fail_msg("accepted %s", bad[i]);
	}
	for (int over = 0; over < 2; over++) {
		char text[300], *id = repeat('i', 129);
		(void)snprintf(text, sizeof(text), "{\"type\":\"message\",\"id\":\"%.*s\"}",
		               128 + over, id);
		assert_code(over ? SHEAF_FORMAT : 0,
		            record_scan_foreign(&r, sheaf_str_of(text), a, &doc, NULL));
		(void)snprintf(text, sizeof(text),
		               "{\"type\":\"message\",\"id\":\"i\",\"parent_id\":\"%.*s\"}",
		               128 + over, id);
		assert_code(over ? SHEAF_FORMAT : 0,
		            record_scan_foreign(&r, sheaf_str_of(text), a, &doc, NULL));
		free(id);
	}
	json_free(doc);
	arena_free(a);
}

/* Taken in, a foreign record is one of ours. */
static void becomes_ours(void **state)
{
	static const char *const lines[] = {
		("{\"type\":\"message\",\"id\":\"m-1\",\"parent_id\":null,\"timestamp\":"
	         "\"2024-01-01T10:00:01Z\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}"),
		"{\"type\":\"label\",\"id\":\"l\",\"parent_id\":\"m-1\",\"target_id\":\"m-1\",\"label\":\"x\"}",
		"{\"type\":\"file-snap\\\"shot\",\"id\":\"q\\\"\",\"parent_id\":\"m-1\",\"timestamp\":\"...\"}",
		"{\"type\":\"odd\",\"id\":\"o\"}"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
		looked l = look(lines[i]);
		record ours;
		assert_code(0, record_renumber(&b, &l.r, l.r.parent_id, 0, 7, 0, 1, NULL));
		sheaf_str line = str_make(b.ptr, b.len - 1);
		assert_true(record_crc_ok(line));
		assert_code(0, json_check(line, JSON_OBJECT, NULL));
		assert_code(0, record_scan(&ours, line, l.a));
		assert_int_equal(ours.kind, l.r.kind);
		assert_str(ours.id, l.r.id);
		assert_str(ours.type, l.r.type);
		assert_str(ours.body, l.r.body);
		sheaf_entry e;
		assert_code(0, entry_read(&e, &ours, 0, true, l.a, &l.doc, NULL));
		looked_free(&l);
	}
}

/* What our format refuses is refused on the way in, also from a foreign file. */
static void does_not_become_ours(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(64 << 20);
	looked l = look("{\"type\":\"thing\",\"id\":\"m\",\"a\":{\"x\":1,\"x\":2}}");
	assert_code(SHEAF_INVALID, record_renumber(&b, &l.r, NONE, 0, 7, 0, 1, NULL));
	looked_free(&l);
	l = look("{\"type\":\"thing\",\"id\":\"m\",\"a\":{\"x\":\t1}}");
	assert_code(SHEAF_INVALID, record_renumber(&b, &l.r, NONE, 0, 7, 0, 1, NULL));
	looked_free(&l);
	_cleanup_(buf_free) buf deep = BUF_INIT(1 << 20);
	buf_lit(&deep, "{\"type\":\"thing\",\"id\":\"m\",\"a\":");
	for (int i = 0; i < 128; i++)
		buf_lit(&deep, "[");
	for (int i = 0; i < 128; i++)
		buf_lit(&deep, "]");
	buf_lit(&deep, "}");
	buf_nul(&deep);
	l = look(deep.ptr);
	assert_code(SHEAF_LIMIT, record_renumber(&b, &l.r, NONE, 0, 7, 0, 1, NULL));
	looked_free(&l);
	char *large = repeat('x', SHEAF_BODY_BYTES_MAX + 64);
	static const char head[] = "{\"type\":\"thing\",\"id\":\"m\",\"a\":\"";
	memcpy(large, head, sizeof(head) - 1);
	for (size_t over = 0; over < 2; over++) {
		/* body: "a":"…" */
		size_t len = sizeof(head) - 1 + SHEAF_BODY_BYTES_MAX - 6 + over + 2;
		memcpy(large + len - 2, "\"}", 3);
		l = look(large);
		assert_int_equal(l.r.body.len, SHEAF_BODY_BYTES_MAX + over);
		buf_reset(&b);
		assert_code(over ? SHEAF_TOO_LARGE : 0,
		            record_renumber(&b, &l.r, NONE, 0, 7, 0, 1, NULL));
		looked_free(&l);
		large[len - 2] = large[len - 1] = large[len] = 'x';
	}
	free(large);
}

static int scan_once(void)
{
	arena *a = arena_new();
	json_doc *doc = NULL;
	record r;
	int rc = a == NULL ? SHEAF_NOMEM
	                   : record_scan_foreign(
				     &r,
				     S("{\"type\":\"label\",\"id\":\"l\",\"target_id\":\"m\","
	                               "\"x\":1}"),
				     a, &doc, NULL);
	json_free(doc);
	arena_free(a);
	return rc;
}

static void memory_runs_out(void **state)
{
	(void)state;
	each_allocation_fails(scan_once);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_lines),    cmocka_unit_test(flat_lines),
		cmocka_unit_test(unknown_types),   cmocka_unit_test(refuses_other_lines),
		cmocka_unit_test(becomes_ours),    cmocka_unit_test(does_not_become_ours),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
