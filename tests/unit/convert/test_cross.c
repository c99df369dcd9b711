/* A conversation of one agent written for another, and gone on with here: it stays what it is. */
#include "unit/convert/convert_kit.h"

#include "base/json.h"
#include "sheaf/render.h"
#include "support/body_lines.h"

#define PI_TREE KIT_DATA "pi/0.73.1/tree-session.jsonl"
#define PI                                                                                         \
	KIT_DATA "pi/0.73.1/sessions/--home-user-project--/"                                       \
		 "2026-11-14T22-58-25-886Z_01a1dc48-91dd-754a-b727-3d8f61e55eff.jsonl"
#define CLAUDE                                                                                     \
	KIT_DATA "claude-code/2.1.197/projects/-home-user-project/"                                \
		 "11111111-1111-4111-8111-111111111111.jsonl"

/* What a model would be sent, one block a line. */
static void request_lines(buf *out, kit *k, sheaf_session *s)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	sheaf_context *context;
	sheaf_request *request;
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	how.format = SHEAF_FORMAT_ANTHROPIC;
	how.model = SHEAF_STR("claude-sonnet-4-5");
	assert_int_equal(sheaf_session_context(&context, s, NULL, &k->err), 0);
	assert_int_equal(sheaf_render(&request, context, &how, &k->err), 0);
	assert_int_equal(json_parse(&doc, request->body, NULL), 0);
	body_lines(out, SHEAF_FORMAT_ANTHROPIC, json_root(doc), 0);
	buf_nul(out);
	assert_true(out->len > 100);
	sheaf_request_free(request);
	sheaf_context_free(context);
}

/* Writes a session in a format and imports that into another store. */
static sheaf_session *carry(kit *from, sheaf_session *s, const char *format, kit *to)
{
	_cleanup_(buf_free) buf out = BUF_INIT(KIT_BYTES_MAX);
	sheaf_export_report *report = NULL;
	char path[256];
	int rc = kit_export(from, s, format, &out, &report);
	if (rc != 0)
		print_error("%s: %s\n", format, from->err.message);
	assert_int_equal(rc, 0);
	assert_non_null(report->path.ptr);
	sheaf_export_report_free(report);
	kit_open(to);
	(void)snprintf(path, sizeof(path), "%s/01a1dc48-91dd-754a-b727-3d8f61e55eff.jsonl",
	               kit_dir(to));
	file_write(path, out.ptr, out.len);
	kit_import(to, path);
	assert_int_equal(to->report->session_count, 1);
	assert_string_equal(to->report->sessions[0]->format, format);
	return kit_imported(to, 0);
}

static void crossed(const char *path, const char *format)
{
	_cleanup_(buf_free) buf before = BUF_INIT(KIT_BYTES_MAX);
	_cleanup_(buf_free) buf after = BUF_INIT(KIT_BYTES_MAX);
	kit from, to;
	kit_open(&from);
	kit_import(&from, path);
	sheaf_session *s = kit_imported(&from, 0);
	sheaf_session *there = carry(&from, s, format, &to);
	request_lines(&before, &from, s);
	request_lines(&after, &to, there);
	if (strcmp(before.ptr, after.ptr) != 0)
		print_error("%s as %s\n--- before\n%s--- after\n%s", path, format, before.ptr,
		            after.ptr);
	assert_string_equal(after.ptr, before.ptr);
	sheaf_session_close(s);
	sheaf_session_close(there);
	kit_close(&from);
	kit_close(&to);
}

static void test_to_another_agent(void **state)
{
	(void)state;
	crossed(PI, "claude-code");
	crossed(PI_TREE, "claude-code");
	crossed(CLAUDE, "pi");
}

/* What was said here is written behind the source's own lines. */
static void gone_on(const char *path, const char *format)
{
	_cleanup_(buf_free) buf before = BUF_INIT(KIT_BYTES_MAX);
	_cleanup_(buf_free) buf after = BUF_INIT(KIT_BYTES_MAX);
	_cleanup_(buf_free) buf out = BUF_INIT(KIT_BYTES_MAX);
	sheaf_export_report *report = NULL;
	kit from, to;
	size_t len;
	kit_open(&from);
	kit_import(&from, path);
	sheaf_session *s = kit_imported(&from, 0);
	assert_int_equal(sheaf_session_append_text(s, SHEAF_ROLE_USER, SHEAF_STR("And now?"), NULL,
	                                           &from.err),
	                 0);
	assert_int_equal(sheaf_session_append_text(s, SHEAF_ROLE_ASSISTANT, SHEAF_STR("Now this."),
	                                           NULL, &from.err),
	                 0);
	char *file = file_read(path, &len);
	assert_int_equal(kit_export(&from, s, format, &out, &report), 0);
	assert_int_equal(report->verbatim, 0);
	assert_true(out.len > len);
	assert_memory_equal(out.ptr, file, len);
	sheaf_export_report_free(report);
	free(file);
	sheaf_session *there = carry(&from, s, format, &to);
	request_lines(&before, &from, s);
	request_lines(&after, &to, there);
	assert_string_equal(after.ptr, before.ptr);
	sheaf_session_close(s);
	sheaf_session_close(there);
	kit_close(&from);
	kit_close(&to);
}

static void test_gone_on_with(void **state)
{
	(void)state;
	gone_on(PI, "pi");
	gone_on(PI_TREE, "pi");
	gone_on(CLAUDE, "claude-code");
}

/* A session made here: the tree, its labels and its leaf as pi has them. */
static void test_tree_for_pi(void **state)
{
	(void)state;
	kit from, to;
	char path[256];
	sheaf_session *s = NULL;
	sheaf_records *labels;
	sheaf_key key = sheaf_key_of("mine");
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	kit_open(&from);
	assert_int_equal(sheaf_session_open(&s, from.store, &key, NULL, &from.err), 0);
	static const char *const ids[] = {"e1", "e2", "e3"};
	for (size_t i = 0; i < COUNT_OF(ids); i++) {
		o.id = sheaf_str_of(ids[i]);
		assert_int_equal(
			sheaf_session_append_json(
				s, SHEAF_STR("message"),
				SHEAF_STR("{\"message\":{\"role\":\"user\",\"content\":\"x\"}}"),
				&o, NULL, NULL, &from.err),
			0);
	}
	assert_int_equal(
		sheaf_session_label(s, SHEAF_STR("e1"), SHEAF_STR("here"), NULL, NULL, &from.err),
		0);
	assert_int_equal(sheaf_session_rename(s, SHEAF_STR("Mine"), (sheaf_str){NULL, 0}, NULL,
	                                      NULL, &from.err),
	                 0);
	assert_int_equal(sheaf_session_branch(s, (sheaf_str){NULL, 0}, SHEAF_STR("e2"), NULL, NULL,
	                                      &from.err),
	                 0);
	sheaf_session *there = carry(&from, s, "pi", &to);
	kit_path(&to, there, path, sizeof(path));
	assert_string_equal(path, "e1 e2 e2.leaf");
	assert_int_equal(sheaf_session_labels(&labels, there, &to.err), 0);
	assert_int_equal(labels->count, 1);
	assert_str(labels->items[0]->label, "here");
	sheaf_records_free(labels);
	sheaf_head_view *head;
	assert_int_equal(sheaf_session_head(&head, there, &to.err), 0);
	assert_str(head->info->name, "Mine");
	sheaf_head_view_free(head);
	sheaf_session_close(s);
	sheaf_session_close(there);
	kit_close(&from);
	kit_close(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_to_another_agent),
		cmocka_unit_test(test_gone_on_with),
		cmocka_unit_test(test_tree_for_pi),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
