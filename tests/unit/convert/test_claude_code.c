/*
 * Claude Code's session files: what a model would be sent is what Claude Code
 * sent, tokens are counted once, and files come out as they were.
 */
#include "unit/convert/hurt_kit.h"

#include "base/json.h"
#include "sheaf/render.h"
#include "sheaf/usage.h"
#include "support/body_lines.h"

#define NEW KIT_DATA "claude-code/2.1.197/projects/-home-user-project/"
#define OLD KIT_DATA "claude-code/2.0.60/projects/-home-user-project/"
#define MAIN "11111111-1111-4111-8111-111111111111"
#define FORK "6b061052-840f-47f7-97a7-d8e8872d7081"
#define OLD_MAIN "22222222-2222-4222-8222-222222222222"
#define OLD_FORK "7e1601ad-fc79-489d-913d-1323c8256c87"
#define AGENT "agent-a09d105b4b643baac"

static const char *const files[] = {
	NEW MAIN ".jsonl",
	NEW FORK ".jsonl",
	NEW MAIN "/subagents/" AGENT ".jsonl",
	OLD OLD_MAIN ".jsonl",
	OLD OLD_FORK ".jsonl",
	OLD "23925ea7-b675-4e36-b6fa-3fdb5f88272a.jsonl",
	OLD "29affae6-df8c-4a48-9f35-ada3f9c78c07.jsonl",
	OLD "741bd94f-4ca4-4530-a781-a4cd74150f4d.jsonl",
	OLD "bd742ded-ac61-4b13-870f-eadd47f12610.jsonl",
	OLD "fb239dda-c780-4a52-9780-931a2abf0a16.jsonl",
	OLD "agent-016de6d3.jsonl",
	OLD "agent-03c89162.jsonl",
	OLD "agent-67cc81fd.jsonl",
};

static void test_round_trip(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(files); i++)
		kit_round(files[i], "claude-code");
}

/* ---- Requests ---------------------------------------------------------------- */

/*
 * Reminders are worded anew for every request and stand where it likes: they do
 * not count, nor does the line break that joins a text to the next.
 */
static void lines_without_reminders(buf *out, const buf *lines)
{
	for (size_t at = 0; at < lines->len;) {
		const char *line = lines->ptr + at;
		const char *end = memchr(line, '\n', lines->len - at);
		size_t len = end != NULL ? (size_t)(end - line) + 1 : lines->len - at;
		sheaf_str text = {line, len};
		at += len;
		if (str_starts(text, "user text") &&
		    (memmem(line, len, "system-reminder", 15) != NULL ||
		     str_starts(text, "user text \"...\"")))
			continue;
		bool joined = len > 4 && memcmp(line + len - 4, "\\n\"\n", 4) == 0;
		buf_add(out, line, joined ? len - 4 : len);
		if (joined)
			buf_lit(out, "\"\n");
	}
	buf_nul(out);
}

static void request_sent(buf *out, const char *name, size_t unwritten, char model[64])
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	_cleanup_(buf_free) buf all = BUF_INIT(KIT_BYTES_MAX);
	char path[512];
	size_t len;
	(void)snprintf(path, sizeof(path), SHEAF_TEST_DATA "/wire/%s.json", name);
	char *file = file_read(path, &len);
	assert_int_equal(json_parse(&doc, str_make(file, len), NULL), 0);
	const json_val *body = json_get(json_root(doc), "body");
	str_copy_cut(model, 64, json_string(json_get(body, "model")));
	body_lines(&all, SHEAF_FORMAT_ANTHROPIC, body, 0);
	for (size_t i = 0; i < unwritten; i++) {
		all.len--;
		while (all.len != 0 && all.ptr[all.len - 1] != '\n')
			all.len--;
	}
	lines_without_reminders(out, &all);
	free(file);
}

static void request_made(buf *out, kit *k, sheaf_session *s, const char *leaf, const char *model)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	_cleanup_(buf_free) buf all = BUF_INIT(KIT_BYTES_MAX);
	sheaf_context *context;
	sheaf_request *request;
	sheaf_context_options as = SHEAF_CONTEXT_OPTIONS_INIT;
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	as.leaf = sheaf_str_of(leaf);
	how.format = SHEAF_FORMAT_ANTHROPIC;
	how.model = sheaf_str_of(model);
	assert_int_equal(sheaf_session_context(&context, s, &as, &k->err), 0);
	assert_int_equal(sheaf_render(&request, context, &how, &k->err), 0);
	assert_int_equal(json_parse(&doc, request->body, NULL), 0);
	body_lines(&all, SHEAF_FORMAT_ANTHROPIC, json_root(doc), 0);
	lines_without_reminders(out, &all);
	sheaf_request_free(request);
	sheaf_context_free(context);
}

static void test_requests(void **state)
{
	(void)state;
	static const struct {
		const char *name, *leaf;
		size_t unwritten; /* blocks at the end that are in no session file */
	} rows[] = {
		{"anthropic-claude-code-parallel-tools", "69d0fad2-4509-44d4-8160-b9449405536d", 0},
		{"anthropic-claude-code-image-result", "7ca7f026-cf6b-473d-9747-51838d304229", 0},
		{"anthropic-claude-code-error-result", "41073797-b8d9-4161-b1f6-e954b0aeb2e4", 0},
		{"anthropic-claude-code-after-compact", "e490abe5-6907-4dd9-9612-6e6661e90648", 0},
		/* What asks for the summary is not written down. */
		{"anthropic-claude-code-compact-request", "43e8cb91-453d-4e34-a559-f17632452df7",
	         1},
	};
	kit k;
	kit_open(&k);
	kit_import(&k, NEW MAIN ".jsonl");
	sheaf_session *s = kit_imported(&k, 0);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		_cleanup_(buf_free) buf sent = BUF_INIT(KIT_BYTES_MAX);
		_cleanup_(buf_free) buf made = BUF_INIT(KIT_BYTES_MAX);
		char model[64];
		request_sent(&sent, rows[i].name, rows[i].unwritten, model);
		request_made(&made, &k, s, rows[i].leaf, model);
		if (strcmp(sent.ptr, made.ptr) != 0)
			print_error("%s\n--- sent\n%s--- made\n%s", rows[i].name, sent.ptr,
			            made.ptr);
		assert_string_equal(made.ptr, sent.ptr);
	}
	sheaf_session_close(s);
	kit_close(&k);
}

/* ---- Sessions ---------------------------------------------------------------- */

static void usage_is(kit *k, const char *id, uint64_t output)
{
	sheaf_session *s = kit_session(k, id);
	sheaf_head_view *head;
	assert_int_equal(sheaf_session_head(&head, s, &k->err), 0);
	assert_int_equal(head->info->usage.output, output);
	sheaf_head_view_free(head);
	sheaf_session_close(s);
}

static void test_usage(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_import(&k, KIT_DATA "claude-code");
	usage_is(&k, "claude-code." MAIN, 630);
	usage_is(&k, "claude-code." FORK, 42); /* the rest is a copy */
	usage_is(&k, "claude-code." OLD_MAIN, 420);
	usage_is(&k, "claude-code." OLD_FORK, 42);
	kit_close(&k);
}

static void test_sessions(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_import(&k, KIT_DATA "claude-code/2.1.197");
	assert_int_equal(k.report->session_count, 3);
	assert_int_equal(k.report->skipped_count, 1); /* the agent's .meta.json, which is read */
	sheaf_session *s = kit_session(&k, "claude-code." MAIN "." AGENT);
	sheaf_head_view *head;
	assert_int_equal(sheaf_session_head(&head, s, &k.err), 0);
	assert_str(head->info->kind, "subagent");
	assert_str(head->info->parent_session, "claude-code." MAIN);
	sheaf_head_view_free(head);
	sheaf_session_close(s);
	s = kit_session(&k, "claude-code." FORK);
	assert_int_equal(sheaf_session_head(&head, s, &k.err), 0);
	assert_str(head->info->kind, "main");
	assert_str(head->info->parent_session, "claude-code." MAIN);
	assert_str(head->info->cwd, "/home/user/project");
	sheaf_head_view_free(head);
	sheaf_session_close(s);
	kit_close(&k);
}

static void test_hurt(void **state)
{
	(void)state;
	hurt_file("claude-code", NEW MAIN ".jsonl", MAIN ".jsonl", 120);
	hurt_file("claude-code", OLD OLD_FORK ".jsonl", OLD_FORK ".jsonl", 60);
	hurt_file("claude-code", OLD "agent-016de6d3.jsonl", "agent-016de6d3.jsonl", 60);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	hurt_memory("claude-code", NEW FORK ".jsonl", 53);
	hurt_memory("claude-code", NEW MAIN "/subagents/" AGENT ".jsonl", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_requests),
		cmocka_unit_test(test_usage),      cmocka_unit_test(test_sessions),
		cmocka_unit_test(test_hurt),       cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
