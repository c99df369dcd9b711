/* A conversation carried over into another format says the same to the model. */
#include "base/json.h"
#include "sheaf/render.h"
#include "support/body_lines.h"
#include "support/fail_alloc.h"
#include "unit/convert/convert_kit.h"

static void rendered(buf *out, kit *k, sheaf_session *s)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	sheaf_context *context;
	sheaf_request *request;
	sheaf_violations *violations;
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	assert_int_equal(sheaf_session_context(&context, s, NULL, &k->err), 0);
	how.format = SHEAF_FORMAT_ANTHROPIC;
	how.model = SHEAF_STR("claude-sonnet-4-5");
	assert_int_equal(sheaf_render(&request, context, &how, &k->err), 0);
	assert_int_equal(sheaf_request_check(&violations, how.format, request->body, &k->err), 0);
	assert_int_equal(violations->count, 0);
	sheaf_violations_free(violations);
	assert_int_equal(json_parse(&doc, request->body, NULL), 0);
	body_lines(out, how.format, json_root(doc), 0);
	buf_nul(out);
	sheaf_request_free(request);
	sheaf_context_free(context);
}

static uint64_t losses(const sheaf_export_report *report)
{
	uint64_t n = 0;
	for (size_t i = 0; i < report->loss_count; i++)
		n += report->losses[i]->count;
	return n;
}

/* From a file into a format, taken in again: the request is the same. */
static void carry(const char *path, const char *format, uint64_t lost)
{
	_cleanup_(buf_free) buf file = BUF_INIT(KIT_BYTES_MAX);
	_cleanup_(buf_free) buf was = BUF_INIT(KIT_BYTES_MAX), is = BUF_INIT(KIT_BYTES_MAX);
	sheaf_export_report *report = NULL;
	kit k;
	char made[128];
	kit_open(&k);
	kit_import(&k, path);
	sheaf_session *s = kit_imported(&k, 0);
	rendered(&was, &k, s);
	int rc = kit_export(&k, s, format, &file, &report);
	if (rc != 0)
		print_error("%s to %s: %s\n", path, format, k.err.message);
	assert_int_equal(rc, 0);
	assert_int_equal(report->verbatim, 0);
	for (size_t i = 0; losses(report) != lost && i < report->loss_count; i++)
		print_error("%s to %s: %s\n", path, format, report->losses[i]->what);
	assert_int_equal(losses(report), lost);
	sheaf_export_report_free(report);
	sheaf_session_close(s);
	(void)snprintf(made, sizeof(made), "%s/made.json", kit_dir(&k));
	file_write(made, file.ptr, file.len);
	kit_import(&k, made);
	assert_string_equal(k.report->sessions[0]->format, format);
	s = kit_imported(&k, 0);
	rendered(&is, &k, s);
	assert_true(was.len > 20);
	assert_string_equal(is.ptr, was.ptr);
	sheaf_session_close(s);
	kit_close(&k);
}

static void test_opencode(void **state)
{
	(void)state;
	carry(KIT_DATA "dive/sess-123.jsonl", "opencode", 1);
	carry(KIT_DATA "uimessage/messages.json", "opencode", 0);
	carry(KIT_DATA "chatgpt/conversations.json", "opencode", 1);
}

static void test_uimessage(void **state)
{
	(void)state;
	carry(KIT_DATA "dive/sess-123.jsonl", "uimessage", 1);
	carry(KIT_DATA "opencode/1.1.34/export_main.json", "uimessage", 1);
	carry(KIT_DATA "opencode/1.18.33/export_compacted.json", "uimessage", 1);
	carry(KIT_DATA "chatgpt/conversations.json", "uimessage", 1);
	/* A compaction that stands for several messages, each with an id of its own. */
	carry(KIT_DATA "gemini-cli/0.61.0/after-compress/session-2026-11-14T23-02-caefd898.jsonl",
	      "uimessage", 1);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	static const struct {
		const char *file, *format;
	} cases[] = {{KIT_DATA "dive/sess-123.jsonl", "opencode"},
	             {KIT_DATA "dive/sess-123.jsonl", "uimessage"},
	             {KIT_DATA "uimessage/messages.json", "dive"},
	             {KIT_DATA "uimessage/messages.json", "chatgpt"}};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		bool hit = true;
		for (size_t n = 1; hit; n++) {
			kit k;
			sheaf_export_report *report = NULL;
			fail_alloc_install();
			kit_open(&k);
			kit_import(&k, cases[i].file);
			sheaf_session *s = kit_imported(&k, 0);
			buf out = BUF_INIT(KIT_BYTES_MAX);
			fail_alloc_at(n, n % 2 == 0);
			int rc = kit_export(&k, s, cases[i].format, &out, &report);
			hit = fail_alloc_hit();
			fail_alloc_at(0, false);
			if (rc != (hit ? SHEAF_NOMEM : 0))
				print_error("%s: allocation %zu\n", cases[i].format, n);
			assert_int_equal(rc, hit ? SHEAF_NOMEM : 0);
			if (rc == 0)
				sheaf_export_report_free(report);
			buf_free(&out);
			sheaf_session_close(s);
			kit_close(&k);
			assert_int_equal(fail_alloc_live(), 0);
			fail_alloc_remove();
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opencode),
		cmocka_unit_test(test_uimessage),
		cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
