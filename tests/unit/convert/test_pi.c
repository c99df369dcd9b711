/* pi's session files: taken in whole, and written again as they were. */
#include "unit/convert/hurt_kit.h"
#include "unit/convert/wire_kit.h"

#define SESSIONS KIT_DATA "pi/0.73.1/sessions/--home-user-project--/"
#define TREE KIT_DATA "pi/0.73.1/tree-session.jsonl"
#define TREE_ID "pi.01a1dc4f-c788-72a9-a893-f5a44e60eaa8"

static const char *const files[] = {
	SESSIONS "2026-11-14T22-58-25-886Z_01a1dc48-91dd-754a-b727-3d8f61e55eff.jsonl",
	SESSIONS "2026-11-14T22-58-59-297Z_01a1dc49-1460-773b-aa1b-0a2abac42233.jsonl",
	SESSIONS "2026-11-14T23-06-18-377Z_01a1dc4f-c788-72a9-a893-f5a44e60eaa8.jsonl",
	SESSIONS "2026-11-14T23-06-21-623Z_01a1dc4f-d437-75e5-9960-19adabcd669e.jsonl",
	TREE,
};

static void test_round_trip(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(files); i++)
		kit_round(files[i], "pi");
}

static void test_tree(void **state)
{
	(void)state;
	kit k;
	char path[1024];
	kit_open(&k);
	kit_import(&k, TREE);
	assert_int_equal(k.report->session_count, 1);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_NEW);
	assert_int_equal(k.report->sessions[0]->pieces, 30);
	assert_int_equal(k.report->sessions[0]->kept, 1);
	sheaf_session *s = kit_session(&k, TREE_ID);
	kit_path(&k, s, path, sizeof(path));
	assert_string_equal(
		path, "b173bc90 4b4940cd 20c74e97 7ca02888 5517189f 0d80d20f 91d3939d 2f33e304");

	sheaf_head_view *head;
	assert_int_equal(sheaf_session_head(&head, s, &k.err), 0);
	assert_str(head->info->name, "Stub session name");
	assert_str(head->info->cwd, "/home/user/project");
	sheaf_head_view_free(head);

	/* What hung on the session's name hangs on the entry before it. */
	sheaf_records *one;
	assert_int_equal(sheaf_session_get(&one, s, SHEAF_STR("924496ca"), &k.err), 0);
	assert_str(one->items[0]->parent_id, "39afac32");
	assert_str(one->items[0]->message->role, "bashExecution");
	sheaf_records_free(one);
	/* The compaction keeps from the name on: from the entry that followed it. */
	assert_int_equal(sheaf_session_get(&one, s, SHEAF_STR("c78a972d"), &k.err), 0);
	assert_str(one->items[0]->target_id, "924496ca");
	sheaf_records_free(one);
	/* The label was taken away again. */
	assert_int_equal(sheaf_session_labels(&one, s, &k.err), 0);
	assert_int_equal(one->count, 0);
	sheaf_records_free(one);
	sheaf_session_close(s);
	kit_close(&k);
}

static void test_directory(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_import(&k, KIT_DATA "pi");
	assert_int_equal(k.report->file_count, 5);
	assert_int_equal(k.report->skipped_count, 0);
	assert_int_equal(k.report->session_count, 5);
	/* The tree's file is the same session a little later. */
	assert_int_equal(k.report->sessions[4]->state, SHEAF_IMPORT_GROWN);
	sheaf_session *s = kit_session(&k, TREE_ID);
	kit_same(&k, s, "pi", TREE);
	sheaf_session_close(s);
	s = kit_session(&k, "pi.01a1dc49-1460-773b-aa1b-0a2abac42233");
	sheaf_head_view *head;
	assert_int_equal(sheaf_session_head(&head, s, &k.err), 0);
	assert_str(head->info->parent_session, "pi.01a1dc48-91dd-754a-b727-3d8f61e55eff");
	sheaf_head_view_free(head);
	sheaf_session_close(s);

	kit_import(&k, KIT_DATA "pi");
	for (size_t i = 0; i < k.report->session_count; i++)
		assert_int_equal(k.report->sessions[i]->records, 0);
	kit_close(&k);
}

/* A conversation with one provider, as it went on with another. */
static void test_wire(void **state)
{
	(void)state;
	static const wire request = {.request = "openai-chat-pi-cross-provider",
	                             .format = SHEAF_FORMAT_OPENAI_CHAT,
	                             .provider = "stubchat",
	                             .leaf = "ca9e72e3",
	                             .system = 1,
	                             .plain = 1};
	kit k;
	kit_open(&k);
	kit_import(&k, SESSIONS);
	sheaf_session *s = kit_session(&k, "pi.01a1dc48-91dd-754a-b727-3d8f61e55eff");
	wire_same(s, &request);
	sheaf_session_close(s);
	kit_close(&k);
}

static void test_hurt(void **state)
{
	(void)state;
	hurt_file("pi", TREE, "x.jsonl", 150);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	hurt_memory("pi", TREE, 17);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_tree),
		cmocka_unit_test(test_wire),       cmocka_unit_test(test_directory),
		cmocka_unit_test(test_hurt),       cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
