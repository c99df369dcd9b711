/*
 * A conversation of every agent, gone on with here and written for every other:
 * what comes of it is the same conversation, but for what was said to be lost.
 */
#include "base/json.h"
#include "sheaf/render.h"
#include "unit/convert/convert_kit.h"

static const char *const sources[] = {
	KIT_DATA "claude-code/2.1.197/projects/-home-user-project/"
		 "11111111-1111-4111-8111-111111111111.jsonl",
	KIT_DATA "codex/0.135.0/sessions/2026/11/14/"
		 "rollout-2026-11-14T23-06-05-01a1dc4f-9557-7792-a2b4-583aecbc89a6.jsonl",
	KIT_DATA "pi/0.73.1/tree-session.jsonl",
	KIT_DATA "gemini-cli/0.61.0/after-compress/session-2026-11-14T23-02-caefd898.jsonl",
	KIT_DATA "opencode/1.18.33/export_compacted.json",
	KIT_DATA "dive/sess-123.jsonl",
	KIT_DATA "uimessage/messages.json",
	KIT_DATA "chatgpt/conversations.json",
};

static const char *const targets[] = {"claude-code", "codex", "pi",        "gemini-cli",
                                      "opencode",    "dive",  "uimessage", "chatgpt"};

/* ---- What a conversation says ---------------------------------------------- */

/* The lines that are not empty. Around a summary stand words that formats have of their own. */
static void text_put(buf *out, const char *before, sheaf_str text)
{
	static const char *const around[] = {
		"The earlier part of this conversation is not shown. In short, it was this:",
		"The messages that follow stand for what was said before.", "<summary>",
		"</summary>", "[developer message]"};
	while (text.len != 0) {
		const char *end = memchr(text.ptr, '\n', text.len);
		size_t len = end != NULL ? (size_t)(end - text.ptr) : text.len, i = 0;
		sheaf_str line = str_make(text.ptr, len);
		while (i < COUNT_OF(around) && !str_is(line, around[i]))
			i++;
		if (len != 0 && i == COUNT_OF(around)) {
			buf_str(out, sheaf_str_of(before));
			buf_str(out, line);
			buf_char(out, '\n');
		}
		len += end != NULL;
		text = str_make(text.ptr + len, text.len - len);
	}
}

/* The texts in a result. */
static void result_put(buf *out, const json_val *content)
{
	if (json_type_of(content) == JSON_STRING)
		text_put(out, "  = ", json_string(content));
	for (json_iter it = json_each(content);
	     json_type_of(content) == JSON_ARRAY && json_next(&it);) {
		sheaf_str text = json_string(json_get(it.value, "text"));
		if (text.ptr != NULL)
			text_put(out, "  = ", text);
	}
}

static void call_put(buf *out, const json_val *call, const json_val *answers)
{
	sheaf_str id = json_string(json_get(call, "id"));
	text_put(out, "call ", id);
	text_put(out, "  ", json_string(json_get(call, "name")));
	for (json_iter it = json_each(json_get(call, "input")); json_next(&it);) {
		text_put(out, "  ", json_string(it.key));
		text_put(out, "  ", json_string(it.value));
	}
	for (json_iter it = json_each(json_get(answers, "content")); json_next(&it);) {
		if (str_eq(json_string(json_get(it.value, "tool_use_id")), id))
			result_put(out, json_get(it.value, "content"));
	}
}

/* Texts, calls, and the answer behind each call, in order; thinking and images are left out. */
static void said(buf *out, kit *k, sheaf_session *s)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	sheaf_context *context;
	sheaf_request *request;
	sheaf_violations *broken;
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	how.format = SHEAF_FORMAT_ANTHROPIC;
	how.model = SHEAF_STR("claude-sonnet-4-5");
	assert_int_equal(sheaf_session_context(&context, s, NULL, &k->err), 0);
	assert_int_equal(sheaf_render(&request, context, &how, &k->err), 0);
	assert_int_equal(sheaf_request_check(&broken, how.format, request->body, &k->err), 0);
	assert_int_equal(broken->count, 0);
	sheaf_violations_free(broken);
	assert_int_equal(json_parse(&doc, request->body, NULL), 0);
	const json_val *messages = json_get(json_root(doc), "messages");
	for (json_iter it = json_each(messages); json_next(&it);) {
		bool reply = str_is(json_string(json_get(it.value, "role")), "assistant");
		json_iter rest = it;
		const json_val *answers = json_next(&rest) ? rest.value : NULL;
		for (json_iter b = json_each(json_get(it.value, "content")); json_next(&b);) {
			sheaf_str type = json_string(json_get(b.value, "type"));
			if (str_is(type, "text"))
				text_put(out, reply ? "assistant " : "user ",
				         json_string(json_get(b.value, "text")));
			else if (str_is(type, "tool_use"))
				call_put(out, b.value, answers);
		}
	}
	buf_nul(out);
	sheaf_request_free(request);
	sheaf_context_free(context);
}

/* ---- Going on ---------------------------------------------------------------- */

static void append(kit *k, sheaf_session *s, sheaf_message *m)
{
	assert_int_equal(sheaf_session_append_message(s, m, NULL, NULL, NULL, &k->err), 0);
	sheaf_message_free(m);
}

/* One more turn, with a tool. */
static void go_on(kit *k, sheaf_session *s)
{
	sheaf_message *m = sheaf_message_new(SHEAF_ROLE_USER);
	(void)sheaf_message_text(m, SHEAF_STR("And what is here?"));
	append(k, s, m);
	m = sheaf_message_new(SHEAF_ROLE_ASSISTANT);
	(void)sheaf_message_text(m, SHEAF_STR("I look."));
	(void)sheaf_message_tool_use(m, SHEAF_STR("call_here_1"), SHEAF_STR("bash"),
	                             SHEAF_STR("{\"command\":\"ls\"}"));
	(void)sheaf_message_tool_use(m, SHEAF_STR("call_here_2"), SHEAF_STR("bash"),
	                             SHEAF_STR("{\"command\":\"pwd\"}"));
	append(k, s, m);
	m = sheaf_message_new(SHEAF_ROLE_TOOL);
	(void)sheaf_message_tool_result(m, SHEAF_STR("call_here_1"), SHEAF_STR("bash"),
	                                SHEAF_STR("a b c"), 0);
	(void)sheaf_message_tool_result(m, SHEAF_STR("call_here_2"), SHEAF_STR("bash"),
	                                SHEAF_STR("/here"), 0);
	append(k, s, m);
	m = sheaf_message_new(SHEAF_ROLE_ASSISTANT);
	(void)sheaf_message_text(m, SHEAF_STR("Three files."));
	append(k, s, m);
}

static void losses_put(char *out, size_t room, const sheaf_export_report *report)
{
	size_t len = 0;
	out[0] = '\0';
	for (size_t i = 0; i < report->loss_count; i++) {
		len += (size_t)snprintf(out + len, room - len, "%s%s %llu", i == 0 ? "" : ", ",
		                        report->losses[i]->what,
		                        (unsigned long long)report->losses[i]->count);
		assert_true(len < room);
	}
}

static void carried(size_t from, size_t to, const char *lost)
{
	_cleanup_(buf_free) buf file = BUF_INIT(KIT_BYTES_MAX);
	_cleanup_(buf_free) buf was = BUF_INIT(KIT_BYTES_MAX), is = BUF_INIT(KIT_BYTES_MAX);
	sheaf_export_report *report = NULL;
	char path[256], losses[1024];
	kit k, other;
	kit_open(&k);
	kit_open(&other);
	kit_import(&k, sources[from]);
	sheaf_session *s = kit_imported(&k, 0);
	go_on(&k, s);
	said(&was, &k, s);
	int rc = kit_export(&k, s, targets[to], &file, &report);
	if (rc != 0)
		print_error("%s as %s: %s\n", sources[from], targets[to], k.err.message);
	assert_int_equal(rc, 0);
	assert_int_equal(report->verbatim, 0);
	losses_put(losses, sizeof(losses), report);
	if (strcmp(losses, lost) != 0)
		print_error("%s as %s\n", targets[from], targets[to]);
	assert_string_equal(losses, lost);
	sheaf_export_report_free(report);
	sheaf_session_close(s);
	(void)snprintf(path, sizeof(path), "%s/made.jsonl", kit_dir(&other));
	file_write(path, file.ptr, file.len);
	kit_import(&other, path);
	assert_int_equal(other.report->session_count, 1);
	assert_string_equal(other.report->sessions[0]->format, targets[to]);
	s = kit_imported(&other, 0);
	said(&is, &other, s);
	if (strcmp(is.ptr, was.ptr) != 0)
		(void)fprintf(stderr, "%s as %s\n--- was\n%s\n--- is\n%s\n", targets[from],
		              targets[to], was.ptr, is.ptr);
	assert_string_equal(is.ptr, was.ptr);
	kit_same(&other, s, targets[to], path);
	sheaf_session_close(s);
	kit_close(&k);
	kit_close(&other);
}

/* What cannot be carried from each (down) to each (across). */
static const char *const lost[COUNT_OF(sources)][COUNT_OF(targets)] = {
	{
		/* claude-code */
		"",
		"foreign_thinking 17",
		"what a compaction keeps 1",
		"foreign_thinking 17",
		"what was said before a compaction 1",
		"foreign_thinking 2",
		"what was said before a compaction 1",
		"what was said before a compaction 1, signature of thinking 3",
	},
	{
		/* codex */
		"role 2, foreign_thinking 11",
		"",
		"role 2",
		"role 2, foreign_thinking 11",
		"what was said before a compaction 1, role 1, signature of thinking 2",
		"role 2, foreign_thinking 11",
		"what was said before a compaction 1, role 1, signature of thinking 2",
		"what was said before a compaction 1, role 1, signature of thinking 2",
	},
	{
		/* pi */
		"entry of another branch 18",
		"foreign_thinking 1, entry of another branch 18",
		"",
		"foreign_thinking 1, entry of another branch 18",
		"entry of another branch 18",
		"entry of another branch 18",
		"entry of another branch 18",
		"entry of another branch 18, signature of thinking 1",
	},
	{
		/* gemini-cli */
		"foreign_thinking 4",
		"foreign_thinking 4",
		"",
		"",
		"what was said before a compaction 1",
		"foreign_thinking 4",
		"what was said before a compaction 1",
		"what was said before a compaction 1",
	},
	{
		/* opencode */
		"",
		"foreign_thinking 13",
		"",
		"foreign_thinking 13",
		"what was said before a compaction 1",
		"",
		"what was said before a compaction 1",
		"what was said before a compaction 1, signature of thinking 2",
	},
	{
		/* dive */
		"",
		"foreign_thinking 2",
		"",
		"foreign_thinking 2",
		"what was said before a compaction 1",
		"",
		"what was said before a compaction 1",
		"what was said before a compaction 1",
	},
	{
		/* uimessage */
		"",
		"foreign_thinking 2",
		"",
		"foreign_thinking 2",
		"",
		"",
		"",
		"image 1, signature of thinking 2, failure of a tool 1",
	},
	{
		/* chatgpt */
		"entry of another branch 1",
		"entry of another branch 1",
		"",
		"entry of another branch 1",
		"entry of another branch 1",
		"entry of another branch 1",
		"entry of another branch 1",
		"entry of another branch 1",
	},
};

static void test_matrix(void **state)
{
	(void)state;
	for (size_t from = 0; from < COUNT_OF(sources); from++) {
		for (size_t to = 0; to < COUNT_OF(targets); to++)
			carried(from, to, lost[from][to]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_matrix)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
