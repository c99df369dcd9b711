/*
 * A conversation of one agent as the file of another: what comes out is that
 * agent's format, and taken in again it is the same conversation.
 */
#include "base/json.h"
#include "sheaf/render.h"
#include "support/body_lines.h"
#include "support/fail_alloc.h"
#include "unit/convert/convert_kit.h"

#define CODEX                                                                                      \
	KIT_DATA "codex/0.135.0/sessions/2026/11/14/"                                              \
		 "rollout-2026-11-14T23-06-05-01a1dc4f-9557-7792-a2b4-583aecbc89a6.jsonl"
#define GEMINI KIT_DATA "gemini-cli/0.61.0/after-compress/session-2026-11-14T23-02-caefd898.jsonl"
#define PI KIT_DATA "pi/0.73.1/tree-session.jsonl"

/* What the session is to a model, in one form. */
static void lines_of(buf *out, sheaf_session *s)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	sheaf_context *context;
	sheaf_request *request;
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	how.format = SHEAF_FORMAT_OPENAI_CHAT; /* has no thinking */
	how.model = SHEAF_STR("m");
	how.provider = SHEAF_STR("p");
	assert_int_equal(sheaf_session_context(&context, s, NULL, NULL), 0);
	assert_int_equal(sheaf_render(&request, context, &how, NULL), 0);
	assert_int_equal(json_parse(&doc, request->body, NULL), 0);
	body_lines(out, how.format, json_root(doc), 0);
	buf_nul(out);
	sheaf_request_free(request);
	sheaf_context_free(context);
}

static void convert(const char *from, const char *to, const char *place)
{
	_cleanup_(buf_free) buf out = BUF_INIT(KIT_BYTES_MAX);
	_cleanup_(buf_free) buf was = BUF_INIT(KIT_BYTES_MAX), is = BUF_INIT(KIT_BYTES_MAX);
	sheaf_export_report *report;
	char path[256];
	kit k;
	kit_open(&k);
	kit_import(&k, from);
	sheaf_session *s = kit_imported(&k, 0);
	int rc = kit_export(&k, s, to, &out, &report);
	if (rc != 0)
		print_error("%s to %s: %s\n", from, to, k.err.message);
	assert_int_equal(rc, 0);
	assert_int_equal(report->verbatim, 0);
	if (place != NULL)
		assert_true(str_starts(report->path, place));
	sheaf_export_report_free(report);
	lines_of(&was, s);
	sheaf_session_close(s);
	(void)snprintf(path, sizeof(path), "%s/out.jsonl", kit_dir(&k));
	file_write(path, out.ptr, out.len);
	kit_import(&k, path);
	assert_string_equal(k.report->sessions[0]->format, to);
	s = kit_imported(&k, 0);
	lines_of(&is, s);
	assert_string_equal(is.ptr, was.ptr);
	kit_same(&k, s, to, path);
	sheaf_session_close(s);
	kit_close(&k);
}

static void test_others(void **state)
{
	(void)state;
	convert(GEMINI, "codex", ".codex/sessions/2026/11/14/rollout-2026-11-14T23-02-55-");
	convert(PI, "codex", ".codex/sessions/2026/11/14/rollout-2026-11-14T23-06-18-");
	convert(CODEX, "gemini-cli", NULL);
	convert(PI, "gemini-cli", NULL);
}

/* What was added here comes behind the agent's own lines. */
static void test_continued(void **state)
{
	(void)state;
	static const struct {
		const char *file, *format;
	} cases[] = {{CODEX, "codex"}, {GEMINI, "gemini-cli"}};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		_cleanup_(buf_free) buf out = BUF_INIT(KIT_BYTES_MAX);
		sheaf_export_report *report;
		kit k;
		size_t len;
		kit_open(&k);
		kit_import(&k, cases[i].file);
		sheaf_session *s = kit_imported(&k, 0);
		assert_int_equal(sheaf_session_append_text(s, SHEAF_ROLE_USER,
		                                           SHEAF_STR("one more"), NULL, &k.err),
		                 0);
		assert_int_equal(kit_export(&k, s, cases[i].format, &out, &report), 0);
		assert_int_equal(report->verbatim, 0);
		sheaf_export_report_free(report);
		char *file = file_read(cases[i].file, &len);
		assert_true(out.len > len);
		assert_memory_equal(out.ptr, file, len);
		buf_nul(&out);
		assert_non_null(strstr(out.ptr + len, "one more"));
		assert_null(strstr(out.ptr + len, "Hello there"));
		free(file);
		sheaf_session_close(s);
		kit_close(&k);
	}
}

static const char numbered[] =
	"{\"timestamp\":\"2026-11-14T10:00:00.000Z\",\"ordinal\":0,\"type\":\"session_meta\",\"payload\":"
	"{\"id\":\"01a1dc49-dd38-7103-bd23-2ca2f89caecb\",\"timestamp\":\"2026-11-14T10:00:00.000Z\","
	"\"cwd\":\"/p\",\"originator\":\"x\",\"cli_version\":\"0.166.0\",\"history_mode\":\"paginated\"}}\n"
	"{\"timestamp\":\"2026-11-14T10:00:01.000Z\",\"ordinal\":1,\"type\":\"response_item\",\"payload\":"
	"{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"Hi\"}]}}\n"
	"{\"timestamp\":\"2026-11-14T10:00:02.000Z\",\"ordinal\":2,\"type\":\"compacted\",\"payload\":"
	"{\"message\":\"\",\"replacement_history\":[{\"type\":\"message\",\"role\":\"user\",\"content\":"
	"[{\"type\":\"input_text\",\"text\":\"It was short\"}]},{\"type\":\"message\",\"role\":"
	"\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"Yes\"}]}]}}\n";

static const char document[] =
	"{\"info\":{\"id\":\"ses_1\",\"directory\":\"/p\",\"title\":\"t\",\"time\":{\"created\":1}},"
	"\"messages\":[{\"info\":{\"id\":\"msg_1\",\"sessionID\":\"ses_1\",\"role\":\"user\",\"time\":"
	"{\"created\":1}},\"parts\":[{\"id\":\"prt_1\",\"type\":\"text\",\"text\":\"Hi\"}]}]}";

/* Exports what went on here; the first `until` allocations succeed, 0 = all of them. */
static int go_on(kit *k, const char *file, const char *text, const char *format, size_t until,
                 bool *hit, buf *out)
{
	sheaf_export_report *report = NULL;
	char path[256];
	kit_open(k);
	(void)snprintf(path, sizeof(path), "%s/%s", kit_dir(k), file);
	file_write(path, text, strlen(text));
	kit_import(k, path);
	sheaf_session *s = kit_imported(k, 0);
	assert_int_equal(sheaf_session_append_text(s, SHEAF_ROLE_ASSISTANT, SHEAF_STR("one more"),
	                                           NULL, &k->err),
	                 0);
	fail_alloc_at(until, until % 2 == 0);
	int rc = kit_export(k, s, format, out, &report);
	*hit = fail_alloc_hit();
	fail_alloc_at(0, false);
	if (rc == 0)
		sheaf_export_report_free(report);
	sheaf_session_close(s);
	kit_close(k);
	return rc;
}

static const struct {
	const char *file, *text, *format, *wanted;
} gone_on[] = {
	{"x.jsonl", numbered, "codex", "\"ordinal\":3,\"type\":\"response_item\""},
	{"x.jsonl", numbered, "pi", "It was short"},
	{"x.json", document, "opencode", "\"parentID\":\"msg_1\""},
};

static void test_out_of_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(gone_on); i++) {
		bool hit = true;
		for (size_t n = 1; hit; n++) {
			_cleanup_(buf_free) buf out = BUF_INIT(KIT_BYTES_MAX);
			kit k;
			fail_alloc_install();
			int rc = go_on(&k, gone_on[i].file, gone_on[i].text, gone_on[i].format, n,
			               &hit, &out);
			if (rc != (hit ? SHEAF_NOMEM : 0))
				print_error("%s: allocation %zu\n", gone_on[i].format, n);
			assert_int_equal(rc, hit ? SHEAF_NOMEM : 0);
			buf_nul(&out);
			if (rc == 0)
				assert_non_null(strstr(out.ptr, gone_on[i].wanted));
			buf_free(&out);
			out = (buf)BUF_INIT(KIT_BYTES_MAX);
			assert_int_equal(fail_alloc_live(), 0);
			fail_alloc_remove();
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_continued),
		cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
