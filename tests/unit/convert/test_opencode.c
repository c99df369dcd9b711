/* OpenCode: its export and its storage folder, taken in whole and written again as they were. */
#include "base/json.h"
#include "sheaf/render.h"
#include "support/body_lines.h"
#include "unit/convert/damage.h"

#define NEW KIT_DATA "opencode/1.18.33/"
#define OLD KIT_DATA "opencode/1.1.34/"
#define STORED OLD "storage/session/global/"
#define COMPACTED "opencode.ses_e23b5fa6cffeFJNzLxh0hGmYnD"

static void test_round_trip(void **state)
{
	(void)state;
	kit_round(NEW "export_main.json", "opencode");
	kit_round(NEW "export_compacted.json", "opencode");
	kit_round(OLD "export_main.json", "opencode");
}

/* What the folder amounts to is what OpenCode itself exported of it. */
static void test_storage(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_import(&k, STORED "ses_e23ab6d51ffeUokG1Z7pTZJL7F.json");
	assert_int_equal(k.report->session_count, 1);
	sheaf_session *s = kit_session(&k, "opencode.ses_e23ab6d51ffeUokG1Z7pTZJL7F");
	kit_same(&k, s, "opencode", OLD "export_main.json");
	sheaf_session_close(s);
	/* So the export brings nothing new. */
	kit_import(&k, OLD "export_main.json");
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
	kit_close(&k);
}

static void test_directory(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_import(&k, OLD "storage");
	assert_int_equal(k.report->session_count, 2);
	kit_import(&k, OLD "storage");
	for (size_t i = 0; i < k.report->session_count; i++) {
		assert_int_equal(k.report->sessions[i]->state, SHEAF_IMPORT_SAME);
		assert_int_equal(k.report->sessions[i]->records, 0);
	}
	kit_close(&k);
}

static void test_goes_on(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_import(&k, NEW "export_main.json");
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_NEW);
	assert_int_equal(k.report->sessions[0]->pieces, 14);
	kit_import(&k, NEW "export_compacted.json");
	assert_int_equal(k.report->session_count, 1);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_GROWN);
	assert_int_equal(k.report->sessions[0]->pieces, 18);
	sheaf_session *s = kit_session(&k, COMPACTED);
	kit_same(&k, s, "opencode", NEW "export_compacted.json");
	sheaf_session_close(s);
	kit_close(&k);
}

/* The sums that OpenCode itself keeps in the session's info. */
static void test_usage(void **state)
{
	(void)state;
	kit k;
	sheaf_head_view *head;
	kit_open(&k);
	kit_import(&k, NEW "export_compacted.json");
	sheaf_session *s = kit_session(&k, COMPACTED);
	assert_int_equal(sheaf_session_head(&head, s, &k.err), 0);
	assert_str(head->info->name, "Stub answer: \"Hello there\"");
	assert_str(head->info->cwd, "/home/user/project");
	assert_int_equal(head->info->usage.input, 132);
	assert_int_equal(head->info->usage.output, 462);
	assert_int_equal(head->info->usage.reasoning, 0);
	assert_int_equal(head->info->usage.cache_read, 61600);
	assert_int_equal(head->info->usage.cache_write_5m, 3740);
	sheaf_head_view_free(head);
	sheaf_session_close(s);
	kit_close(&k);
}

/* ---- What the model saw -------------------------------------------------- */

static void rendered(buf *out, sheaf_session *s, const char *leaf)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	sheaf_context *context;
	sheaf_request *request;
	sheaf_violations *violations;
	sheaf_error err;
	sheaf_context_options as = SHEAF_CONTEXT_OPTIONS_INIT;
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	as.leaf = sheaf_str_of(leaf);
	assert_int_equal(sheaf_session_context(&context, s, &as, &err), 0);
	how.format = SHEAF_FORMAT_ANTHROPIC;
	how.model = SHEAF_STR("claude-sonnet-4-5");
	assert_int_equal(sheaf_render(&request, context, &how, &err), 0);
	assert_int_equal(sheaf_request_check(&violations, how.format, request->body, &err), 0);
	assert_int_equal(violations->count, 0);
	sheaf_violations_free(violations);
	assert_int_equal(json_parse(&doc, request->body, NULL), 0);
	body_lines(out, how.format, json_root(doc), 0);
	buf_nul(out);
	sheaf_request_free(request);
	sheaf_context_free(context);
}

static void test_wire(void **state)
{
	(void)state;
	_cleanup_(json_freep) json_doc *doc = NULL;
	_cleanup_(buf_free) buf sent = BUF_INIT(KIT_BYTES_MAX), got = BUF_INIT(KIT_BYTES_MAX);
	kit k;
	size_t len;
	char *file = file_read(SHEAF_TEST_DATA "/wire/anthropic-opencode-after-compaction.json",
	                       &len);
	assert_int_equal(json_parse(&doc, str_make(file, len), NULL), 0);
	body_lines(&sent, SHEAF_FORMAT_ANTHROPIC, json_get(json_root(doc), "body"), 0);
	buf_nul(&sent);
	assert_true(sent.len > 200);
	kit_open(&k);
	kit_import(&k, NEW "export_compacted.json");
	sheaf_session *s = kit_session(&k, COMPACTED);
	rendered(&got, s, "msg_1dc4e6f4e001yl5PT0OQz1CwYM");
	assert_string_equal(got.ptr, sent.ptr);
	sheaf_session_close(s);
	kit_close(&k);
	free(file);
}

static void test_parts(void **state)
{
	(void)state;
	kit k;
	sheaf_records *one;
	kit_open(&k);
	kit_import(&k, NEW "export_main.json");
	sheaf_session *s = kit_session(&k, COMPACTED);
	assert_int_equal(
		sheaf_session_get(&one, s, SHEAF_STR("msg_1dc4ad5b2001bmRYRM94uoKf7L"), &k.err), 0);
	const sheaf_message_view *m = one->items[0]->message;
	assert_int_equal(m->part_count, 5);
	assert_int_equal(m->parts[0]->kind, SHEAF_PART_THINKING);
	assert_true(m->parts[0]->signature.len != 0);
	assert_int_equal(m->parts[1]->redacted, 1);
	assert_true(m->parts[1]->signature.len != 0);
	assert_int_equal(m->parts[3]->kind, SHEAF_PART_TOOL_USE);
	assert_str(m->parts[4]->id, "toolu_01000010StubStubStub");
	assert_str(m->parts[4]->input,
	           "{\"command\":\"echo hello-2\",\"description\":\"print a line\"}");
	assert_str(m->provider, "anthropic");
	assert_str(m->model, "claude-sonnet-4-5");
	assert_str(m->stop_reason, "tool-calls");
	sheaf_records_free(one);
	assert_int_equal(sheaf_session_get(&one, s,
	                                   SHEAF_STR("msg_1dc4cc9ae001dg2xJ0psT2uEGl-results"),
	                                   &k.err),
	                 0);
	m = one->items[0]->message;
	assert_str(m->role, "tool");
	assert_int_equal(m->parts[0]->part_count, 2);
	assert_int_equal(m->parts[0]->parts[1]->kind, SHEAF_PART_IMAGE);
	assert_str(m->parts[0]->parts[1]->media_type, "image/png");
	sheaf_records_free(one);
	sheaf_session_close(s);
	kit_close(&k);
}

#define INFO(more) "{\"info\":{\"id\":\"ses_x\",\"title\":\"t\"" more "},\"messages\":["
#define USER(id, parts) "{\"info\":{\"id\":\"" id "\",\"role\":\"user\"},\"parts\":[" parts "]}"
#define SAID(id, parts)                                                                            \
	"{\"info\":{\"id\":\"" id "\",\"role\":\"assistant\",\"providerID\":\"p\","                \
	"\"modelID\":\"m\"},\"parts\":[" parts "]}"
#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"

static sheaf_session *import_text(kit *k, const char *text)
{
	char path[128];
	(void)snprintf(path, sizeof(path), "%s/x.json", kit_dir(k));
	file_write(path, text, strlen(text));
	kit_import(k, path);
	return kit_imported(k, 0);
}

static void test_revert(void **state)
{
	(void)state;
	kit k;
	char path[256];
	kit_open(&k);
	sheaf_session *s = import_text(
		&k, INFO(",\"revert\":{\"messageID\":\"c\"}")
			    USER("a", TEXT("one")) "," SAID("b", TEXT("two")) "," USER(
				    "c", TEXT("three")) "," SAID("d", TEXT("four")) "]}");
	kit_path(&k, s, path, sizeof(path));
	assert_string_equal(path, "a b");
	sheaf_session_close(s);
	/* Not taken back any more. */
	s = import_text(&k, INFO("") USER("a", TEXT("one")) "," SAID("b", TEXT("two")) "," USER(
				    "c", TEXT("three")) "," SAID("d", TEXT("four")) "]}");
	kit_path(&k, s, path, sizeof(path));
	assert_string_equal(path, "a b c d");
	sheaf_session_close(s);
	kit_close(&k);
}

/* Two steps in one message, a call that failed, one that never ended, parts nobody knows. */
static void test_steps(void **state)
{
	(void)state;
	kit k;
	char path[256];
	sheaf_records *one;
	kit_open(&k);
	sheaf_session *s = import_text(
		&k,
		INFO(",\"parentID\":\"ses_w\"") USER("a", TEXT("one") ",{\"type\":\"agent\",\"name\":\"x\"}") "," SAID(
			"b",
			"{\"type\":\"step-start\"},{\"type\":\"tool\",\"callID\":\"c1\",\"tool\":\"t\","
			"\"state\":{\"status\":\"error\",\"input\":{},\"error\":\"no\"}},"
			"{\"type\":\"tool\",\"callID\":\"c2\",\"tool\":\"t\",\"state\":{\"status\":"
			"\"running\",\"input\":{}}},{\"type\":\"step-finish\",\"tokens\":{\"input\":3,"
			"\"output\":4,\"reasoning\":2,\"cache\":{}}},{\"type\":\"step-start\"}," TEXT(
				"two") ",{\"type\":\"step-finish\",\"tokens\":{\"input\":5,\"output\":6}}") "]}");
	kit_path(&k, s, path, sizeof(path));
	assert_string_equal(path, "a b b-results b.2");
	sheaf_head_view *head;
	assert_int_equal(sheaf_session_head(&head, s, &k.err), 0);
	assert_int_equal(head->info->usage.input, 8);
	assert_int_equal(head->info->usage.output, 12);
	assert_int_equal(head->info->usage.reasoning, 2);
	assert_str(head->info->parent_session, "opencode.ses_w");
	assert_str(head->info->kind, "subagent");
	sheaf_head_view_free(head);
	assert_int_equal(sheaf_session_get(&one, s, SHEAF_STR("b-results"), &k.err), 0);
	assert_int_equal(one->items[0]->message->part_count, 1);
	assert_int_equal(one->items[0]->message->parts[0]->is_error, 1);
	sheaf_records_free(one);
	assert_int_equal(sheaf_session_get(&one, s, SHEAF_STR("a"), &k.err), 0);
	assert_int_equal(one->items[0]->message->parts[1]->kind, SHEAF_PART_OPAQUE);
	sheaf_records_free(one);
	sheaf_session_close(s);
	kit_close(&k);
}

/* A session whose beginning alone changed is written as it is now. */
static void test_renamed(void **state)
{
	(void)state;
	kit k;
	char path[128];
	sheaf_head_view *head;
	kit_open(&k);
	sheaf_session_close(import_text(&k, INFO("") USER("a", TEXT("one")) "]}"));
	sheaf_session *s = import_text(
		&k, "{\"info\":{\"id\":\"ses_x\",\"title\":\"new\"},\"messages\":[" USER(
			    "a", TEXT("one")) "]}");
	(void)snprintf(path, sizeof(path), "%s/x.json", k.dir);
	kit_same(&k, s, "opencode", path);
	assert_int_equal(sheaf_session_head(&head, s, &k.err), 0);
	assert_str(head->info->name, "new");
	sheaf_head_view_free(head);
	sheaf_session_close(s);
	/* And one with no messages at all. */
	s = import_text(&k, "{\"info\":{\"id\":\"ses_y\"},\"messages\":[]}");
	kit_same(&k, s, "opencode", path);
	sheaf_session_close(s);
	kit_close(&k);
}

static void test_damaged(void **state)
{
	(void)state;
	damage_cuts("opencode", NEW "export_main.json", 33169, 331);
	damage_bytes("opencode", NEW "export_main.json", 173);
}

static void test_damaged_storage(void **state)
{
	(void)state;
	kit k;
	char command[512], path[256];
	kit_open(&k);
	(void)snprintf(command, sizeof(command), "cp -r " OLD "storage %s && chmod -R u+w %s",
	               kit_dir(&k), k.dir);
	assert_int_equal(system(command), 0);
	(void)snprintf(path, sizeof(path),
	               "%s/storage/part/msg_1dc5492f4001wB5CD61cw11KOH/"
	               "prt_1dc549399001xqMqe9hj7XHeOE.json",
	               k.dir);
	file_write(path, "{\n  \"id\": \"prt", 14);
	(void)snprintf(path, sizeof(path),
	               "%s/storage/session/global/ses_e23ab6d51ffeUokG1Z7pTZJL7F.json", k.dir);
	assert_int_equal(kit_try(&k, path, NULL), 0);
	assert_int_equal(k.report->problem_total, 1);
	assert_non_null(strstr(k.report->problems[0]->text.ptr, "prt_1dc549399001xqMqe9hj7XHeOE"));
	assert_int_equal(k.report->session_count, 1);
	assert_int_equal(k.report->sessions[0]->pieces, 15);
	kit_close(&k);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	static const char *const files[] = {NEW "export_compacted.json",
	                                    STORED "ses_e23ab36d2fferClQSQ2Rl32Byn.json"};
	for (size_t i = 0; i < COUNT_OF(files); i++)
		kit_out_of_memory(files[i], 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_storage),
		cmocka_unit_test(test_directory),     cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_usage),         cmocka_unit_test(test_wire),
		cmocka_unit_test(test_parts),         cmocka_unit_test(test_revert),
		cmocka_unit_test(test_steps),         cmocka_unit_test(test_renamed),
		cmocka_unit_test(test_damaged),       cmocka_unit_test(test_damaged_storage),
		cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
