/* Dive's session files: taken in whole, and written again as they were. */
#include "unit/convert/convert_kit.h"

#define FILE_PATH KIT_DATA "dive/sess-123.jsonl"

static void test_round_trip(void **state)
{
	(void)state;
	kit_round(FILE_PATH, "dive");
}

static void test_session(void **state)
{
	(void)state;
	kit k;
	char path[1024];
	sheaf_head_view *head;
	sheaf_records *one;
	kit_open(&k);
	kit_import(&k, FILE_PATH);
	assert_int_equal(k.report->sessions[0]->pieces, 5);
	assert_int_equal(k.report->sessions[0]->kept, 1); /* the header */
	sheaf_session *s = kit_session(&k, "dive.sess-123");
	kit_path(&k, s, path, sizeof(path));
	assert_string_equal(path, "evt-1772442000123456789-1 evt-1772442000123456789-1.2 "
	                          "evt-1772442000123456789-1.3 evt-1772442000123456789-1.4 "
	                          "evt-1772442010123456789-2 evt-1772442010123456789-2.2 "
	                          "evt-1772442020123456789-3 evt-1772442030123456789-4 "
	                          "evt-1772442030123456789-4.2");
	assert_int_equal(sheaf_session_head(&head, s, &k.err), 0);
	assert_str(head->info->name, "Tidy the parser");
	assert_str(head->info->parent_session, "dive.sess-100");
	/* what Dive's TotalUsage adds up */
	assert_int_equal(head->info->usage.input, 160);
	assert_int_equal(head->info->usage.output, 52);
	assert_int_equal(head->info->usage.cache_read, 2000);
	assert_int_equal(head->info->usage.cache_write_5m, 1000);
	sheaf_head_view_free(head);

	assert_int_equal(
		sheaf_session_get(&one, s, SHEAF_STR("evt-1772442000123456789-1.2"), &k.err), 0);
	assert_str(one->items[0]->turn, "evt-1772442000123456789-1");
	const sheaf_message_view *m = one->items[0]->message;
	assert_str(m->role, "assistant");
	assert_int_equal(m->part_count, 5);
	assert_int_equal(m->parts[1]->redacted, 1);
	assert_str(m->parts[3]->input, "{\"path\":\"parse.c\"}");
	sheaf_records_free(one);
	assert_int_equal(
		sheaf_session_get(&one, s, SHEAF_STR("evt-1772442000123456789-1.3"), &k.err), 0);
	m = one->items[0]->message;
	assert_str(m->role, "tool");
	assert_int_equal(m->parts[1]->is_error, 1);
	sheaf_records_free(one);
	sheaf_session_close(s);
	kit_close(&k);
}

/* After a compaction its messages stand for all before. */
static void test_context(void **state)
{
	(void)state;
	kit k;
	sheaf_context *context;
	kit_open(&k);
	kit_import(&k, FILE_PATH);
	sheaf_session *s = kit_session(&k, "dive.sess-123");
	assert_int_equal(sheaf_session_context(&context, s, NULL, &k.err), 0);
	assert_int_equal(context->count, 3);
	assert_str(context->items[0]->message->parts[0]->text,
	           "<summary>The user asked about parse().</summary>");
	assert_str(context->items[2]->message->parts[0]->text, "Done.");
	sheaf_context_free(context);
	sheaf_session_close(s);
	kit_close(&k);
}

/* A second import takes nothing, one of a file that grew the rest, bad lines are kept. */
static void test_again(void **state)
{
	(void)state;
	kit k;
	size_t len;
	char path[128], *text = file_read(FILE_PATH, &len);
	kit_open(&k);
	(void)snprintf(path, sizeof(path), "%s/x.jsonl", kit_dir(&k));
	char *third = strchr(strchr(text, '\n') + 1, '\n') + 1;
	file_write(path, text, (size_t)(third - text) + 40); /* in the middle of a line */
	kit_import(&k, path);
	assert_int_equal(k.report->sessions[0]->partial, 1);
	assert_int_equal(k.report->sessions[0]->pieces, 2);
	file_write(path, text, len);
	kit_import(&k, path);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_GROWN);
	assert_int_equal(k.report->sessions[0]->records, 5);
	kit_import(&k, path);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);

	static const char bad[] =
		"{\"line_type\":\"event\",\"data\":{\"type\":\"turn\",\"id\":\"x\","
		"\"messages\":[3]}}\n{\"line_type\":\"event\"\n{\"line_type\":"
		"\"new\",\"data\":1}\n[]\n{\"line_type\":\"event\",\"data\":{\"type\":"
		"\"turn\",\"id\":\"y\",\"messages\":null}}\n";
	_cleanup_(buf_free) buf more = BUF_INIT(KIT_BYTES_MAX);
	buf_add(&more, text, len);
	buf_lit(&more, bad);
	file_write(path, more.ptr, more.len);
	assert_int_equal(kit_try(&k, path, NULL), 0);
	assert_int_equal(k.report->problem_total, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(k.report->problems[i]->line, 6 + i);
	assert_int_equal(k.report->sessions[0]->pieces, 10);
	sheaf_session *s = kit_session(&k, "dive.sess-123");
	kit_same(&k, s, "dive", path);
	sheaf_session_close(s);
	kit_close(&k);
	free(text);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	kit_out_of_memory(FILE_PATH, SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_session),
		cmocka_unit_test(test_context),       cmocka_unit_test(test_again),
		cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
