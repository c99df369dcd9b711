/*
 * What agents really sent is what Sheaf renders from the same history.
 *
 * tests/data/wire holds requests of five agents; tests/data/wire-histories the
 * entries that the session files they wrote at that time amount to. A line there
 * is a record: its type, its id, its body; or a leaf that moves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/str.h"
#include "sheaf/ingest.h"
#include "sheaf/store.h"
#include "support/body_lines.h"
#include "support/files.h"

#define LIMIT ((size_t)1 << 24)

static const struct row {
	const char *request;
	const char *history;
	const char *leaf; /* as of this entry; NULL: the last */
	int32_t format;
	size_t system;   /* messages at the front that are the agent's system text */
	int32_t doubles; /* answers stand twice in what was sent */
	const char *provider;
	int32_t as_text, no_images;
} rows[] = {
	{"anthropic-claude-code-parallel-tools", "claude-code",
         "69d0fad2-4509-44d4-8160-b9449405536d", SHEAF_FORMAT_ANTHROPIC, 0, 0, NULL, 0, 0},
	{"anthropic-claude-code-image-result", "claude-code",
         "7ca7f026-cf6b-473d-9747-51838d304229", SHEAF_FORMAT_ANTHROPIC, 0, 0, NULL, 0, 0},
	{"anthropic-claude-code-error-result", "claude-code",
         "41073797-b8d9-4161-b1f6-e954b0aeb2e4", SHEAF_FORMAT_ANTHROPIC, 0, 0, NULL, 0, 0},
	{"anthropic-claude-code-compact-request", "claude-code", "compact-prompt",
         SHEAF_FORMAT_ANTHROPIC, 0, 0, NULL, 0, 0},
	{"anthropic-claude-code-after-compact", "claude-code", NULL, SHEAF_FORMAT_ANTHROPIC, 0, 0,
         NULL, 0, 0},
	{"anthropic-opencode-after-compaction", "opencode", "msg_1dc4e6f4e001yl5PT0OQz1CwYM",
         SHEAF_FORMAT_ANTHROPIC, 0, 0, NULL, 0, 0},
	{"openai-chat-pi-cross-provider", "pi", "ca9e72e3", SHEAF_FORMAT_OPENAI_CHAT, 1, 0,
         "stubchat", 1, 1},
	{"openai-responses-codex-0.135-parallel-tools", "codex-0.135", "l42",
         SHEAF_FORMAT_OPENAI_RESPONSES, 0, 0, NULL, 0, 0},
	{"openai-responses-codex-0.135-last", "codex-0.135", NULL, SHEAF_FORMAT_OPENAI_RESPONSES, 0,
         0, NULL, 0, 0},
	{"openai-responses-codex-0.166", "codex-0.166", NULL, SHEAF_FORMAT_OPENAI_RESPONSES, 1, 0,
         NULL, 0, 0},
	{"gemini-gemini-cli-parallel-tools", "gemini-cli", "22a349af-55bd-4fed-aa99-6700a26146b7",
         SHEAF_FORMAT_GEMINI, 0, 1, NULL, 0, 0},
	{"gemini-gemini-cli-image-result", "gemini-cli", NULL, SHEAF_FORMAT_GEMINI, 0, 1, NULL, 0,
         0},
};

/* ---- Histories --------------------------------------------------------------- */

static void append_line(sheaf_session *s, sheaf_str line)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_error err;
	int rc = json_parse(&doc, line, &err);
	if (rc == 0 && json_get(json_root(doc), "move") != NULL) {
		rc = sheaf_session_branch(s, SHEAF_STR(""),
		                          json_string(json_get(json_root(doc), "move")), NULL, NULL,
		                          &err);
	} else if (rc == 0) {
		entry.id = json_string(json_get(json_root(doc), "id"));
		rc = sheaf_session_append_json(s, json_string(json_get(json_root(doc), "type")),
		                               json_member_bytes(line, "body"), &entry, NULL, NULL,
		                               &err);
	}
	if (rc != 0)
		print_error("%.*s\n%s\n", (int)line.len, line.ptr, err.message);
	assert_int_equal(rc, 0);
}

static void append_file(sheaf_session *s, const char *history)
{
	char path[512];
	size_t len;
	(void)snprintf(path, sizeof(path), SHEAF_TEST_DATA "/wire-histories/%s.jsonl", history);
	char *text = file_read(path, &len);
	for (char *p = text; p < text + len;) {
		char *end = strchr(p, '\n');
		assert_non_null(end);
		append_line(s, str_make(p, (size_t)(end - p)));
		p = end + 1;
	}
	free(text);
}

/* ---- Requests ---------------------------------------------------------------- */

/* A request as it was sent. */
typedef struct wire {
	char *file;
	char model[64];
	sheaf_str list; /* of its messages */
	buf lines;
} wire;

static void sent_read(wire *q, const struct row *row)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	const char *list = row->format == SHEAF_FORMAT_GEMINI             ? "contents"
	                   : row->format == SHEAF_FORMAT_OPENAI_RESPONSES ? "input"
	                                                                  : "messages";
	char path[512];
	size_t len;
	(void)snprintf(path, sizeof(path), SHEAF_TEST_DATA "/wire/%s.json", row->request);
	*q = (wire){.file = file_read(path, &len), .lines = BUF_INIT(LIMIT)};
	assert_int_equal(json_parse(&doc, str_make(q->file, len), NULL), 0);
	const json_val *body = json_get(json_root(doc), "body");
	sheaf_str model = json_string(json_get(body, "model"));
	str_copy_cut(q->model, sizeof(q->model),
	             model.len != 0 ? model : SHEAF_STR("gemini-2.5-flash"));
	q->list = json_member_bytes(json_member_bytes(str_make(q->file, len), "body"), list);
	if (row->doubles)
		body_lines_once(&q->lines, body);
	else
		body_lines(&q->lines, row->format, body, row->system);
	buf_nul(&q->lines);
	assert_int_equal(q->lines.status, 0);
	assert_true(q->lines.len > 200);
}

static void sent_free(wire *q)
{
	free(q->file);
	buf_free(&q->lines);
}

/* What a session renders to, as of an entry. */
static void session_lines(buf *out, const struct row *row, const char *model, sheaf_session *s,
                          const char *leaf, size_t skip)
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
	how.format = row->format;
	how.model = sheaf_str_of(model);
	how.provider = sheaf_str_of(row->provider);
	how.thinking_as_text = row->as_text;
	how.no_images = row->no_images;
	int rc = sheaf_render(&request, context, &how, &err);
	if (rc != 0)
		print_error("%s: %s\n", row->request, err.message);
	assert_int_equal(rc, 0);
	assert_int_equal(sheaf_request_check(&violations, row->format, request->body, &err), 0);
	assert_int_equal(violations->count, 0);
	sheaf_violations_free(violations);
	assert_int_equal(json_parse(&doc, request->body, NULL), 0);
	body_lines(out, row->format, json_root(doc), skip);
	sheaf_request_free(request);
	sheaf_context_free(context);
}

static void rendered_lines(buf *out, const struct row *row, const wire *q)
{
	sheaf_store *store;
	sheaf_session *s;
	sheaf_key key = sheaf_key_of(row->history);
	assert_int_equal(sheaf_open(&store, "memory:", NULL, NULL), 0);
	assert_int_equal(sheaf_session_open(&s, store, &key, NULL, NULL), 0);
	append_file(s, row->history);
	session_lines(out, row, q->model, s, row->leaf, 0);
	sheaf_session_close(s);
	sheaf_close(store);
}

/* The same for what the request itself is read as. */
static void reread_lines(buf *out, const struct row *row, const wire *q)
{
	sheaf_store *store;
	sheaf_session *s;
	sheaf_messages *read;
	sheaf_key key = sheaf_key_of("s");
	assert_int_equal(sheaf_open(&store, "memory:", NULL, NULL), 0);
	assert_int_equal(sheaf_session_open(&s, store, &key, NULL, NULL), 0);
	assert_int_equal(
		sheaf_ingest_messages(&read, row->format, (sheaf_str){NULL, 0}, q->list, NULL), 0);
	for (size_t i = 0; i < read->count; i++)
		assert_int_equal(
			sheaf_session_append_message(s, read->items[i], NULL, NULL, NULL, NULL), 0);
	sheaf_messages_free(read);
	session_lines(out, row, q->model, s, NULL, row->system);
	sheaf_session_close(s);
	sheaf_close(store);
}

/* Shows the first line that differs. */
static void show_difference(const char *request, const char *sent, const char *rendered)
{
	size_t line = 1;
	while (*sent != '\0' && *rendered != '\0') {
		size_t a = strcspn(sent, "\n"), b = strcspn(rendered, "\n");
		if (a != b || memcmp(sent, rendered, a) != 0)
			break;
		sent += a + 1;
		rendered += b + 1;
		line++;
	}
	print_error("%s, block %zu:\n  sent     %.*s\n  rendered %.*s\n", request, line,
	            (int)strcspn(sent, "\n"), sent, (int)strcspn(rendered, "\n"), rendered);
}

typedef void (*lines_fn)(buf *out, const struct row *row, const wire *q);

static void check_row(const struct row *row, lines_fn lines)
{
	_cleanup_(sent_free) wire q;
	_cleanup_(buf_free) buf rendered = BUF_INIT(LIMIT);
	sent_read(&q, row);
	lines(&rendered, row, &q);
	buf_nul(&rendered);
	assert_int_equal(rendered.status, 0);
	if (strcmp(q.lines.ptr, rendered.ptr) != 0) {
		show_difference(row->request, q.lines.ptr, rendered.ptr);
		fail();
	}
}

static void check_format(int32_t format)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (rows[i].format == format)
			check_row(&rows[i], rendered_lines);
	}
}

static void test_every_request_has_its_row(void **state)
{
	static const char dir[] = SHEAF_TEST_DATA "/wire";
	(void)state;
	assert_int_equal(file_count(dir, "anthropic-") + file_count(dir, "openai-") +
	                         file_count(dir, "gemini-"),
	                 COUNT_OF(rows));
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		assert_int_equal(file_count(dir, rows[i].request), 1);
}

static void test_anthropic(void **state)
{
	(void)state;
	check_format(SHEAF_FORMAT_ANTHROPIC);
}

static void test_openai_chat(void **state)
{
	(void)state;
	check_format(SHEAF_FORMAT_OPENAI_CHAT);
}

static void test_openai_responses(void **state)
{
	(void)state;
	check_format(SHEAF_FORMAT_OPENAI_RESPONSES);
}

static void test_gemini(void **state)
{
	(void)state;
	check_format(SHEAF_FORMAT_GEMINI);
}

/* Reading is the inverse of rendering, but for what stands in a request twice. */
static void test_requests_read_and_rendered(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (!rows[i].doubles)
			check_row(&rows[i], reread_lines);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_request_has_its_row),
		cmocka_unit_test(test_anthropic),
		cmocka_unit_test(test_openai_chat),
		cmocka_unit_test(test_openai_responses),
		cmocka_unit_test(test_gemini),
		cmocka_unit_test(test_requests_read_and_rendered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
