/* ChatGPT's data export: taken in whole, and written again as it was. */
#include "unit/convert/damage.h"

#define LIST KIT_DATA "chatgpt/conversations.json"

static void test_round_trip(void **state)
{
	(void)state;
	kit_round(LIST, "chatgpt");
}

static void test_tree(void **state)
{
	(void)state;
	kit k;
	char path[256];
	sheaf_records *one;
	sheaf_head_view *head;
	kit_open(&k);
	kit_import(&k, LIST);
	sheaf_session *s = kit_session(&k, "chatgpt.c0000000-0000-4000-8000-000000000001");
	kit_path(&k, s, path, sizeof(path));
	assert_string_equal(path, "n2 n4");
	assert_int_equal(sheaf_session_get(&one, s, SHEAF_STR("n3"), &k.err), 0);
	assert_str(one->items[0]->parent_id, "n2");
	assert_str(one->items[0]->message->model, "gpt-4o");
	assert_int_equal(one->items[0]->time_us, 1700000002250000);
	sheaf_records_free(one);
	assert_int_equal(sheaf_session_head(&head, s, &k.err), 0);
	assert_str(head->info->name, "Synthetic sample");
	assert_int_equal(head->info->created_us, 1700000000123456);
	sheaf_head_view_free(head);
	sheaf_session_close(s);
	kit_import(&k, LIST);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
	kit_close(&k);
}

#define NODE(id, parent, role, text)                                                               \
	"\"" id "\": {\"id\":\"" id "\",\"message\":{\"id\":\"" id                                 \
	"\",\"author\":{\"role\":\"" role                                                          \
	"\"},\"content\":{\"content_type\":\"text\",\"parts\":[\"" text "\"]}},\"parent\":" parent \
	",\"children\":[]}"
#define ROOT "\"r\":{\"id\":\"r\",\"message\":null,\"parent\":null}"
#define ONE(id, nodes, leaf)                                                                       \
	"{\"title\":\"T " id "\",\"mapping\":{" nodes "},\"current_node\":\"" leaf                 \
	"\",\"conversation_id\":\"" id "\"}"
#define A                                                                                          \
	ONE("A",                                                                                   \
	    ROOT                                                                                   \
	    "," NODE("a1", "\"r\"", "user", "hi") "," NODE("a2", "\"a1\"", "assistant", "ho"),     \
	    "a2")
#define B ONE("B", ROOT "," NODE("b1", "\"r\"", "user", "one"), "b1")
#define B_MORE                                                                                     \
	ONE("B",                                                                                   \
	    ROOT                                                                                   \
	    "," NODE("b1", "\"r\"", "user", "one") "," NODE("b2", "\"b1\"", "assistant", "two"),   \
	    "b2")
#define B_OTHER                                                                                    \
	ONE("B",                                                                                   \
	    ROOT "," NODE("b1", "\"r\"", "user", "changed") "," NODE("b2", "\"b1\"", "assistant",  \
	                                                             "two"),                       \
	    "b2")

static char file[128];

static void text_import(kit *k, const char *text)
{
	(void)snprintf(file, sizeof(file), "%s/x.json", kit_dir(k));
	file_write(file, text, strlen(text));
	int rc = kit_try(k, file, NULL);
	if (rc != 0)
		print_error("%s\n", k->err.message);
	assert_int_equal(rc, 0);
}

static void exports(kit *k, const char *id, const char *text)
{
	_cleanup_(buf_free) buf out = BUF_INIT(KIT_BYTES_MAX);
	sheaf_export_report *report = NULL;
	sheaf_session *s = kit_session(k, id);
	assert_int_equal(kit_export(k, s, "chatgpt", &out, &report), 0);
	assert_int_equal(report->verbatim, 1);
	buf_nul(&out);
	assert_string_equal(out.ptr, text);
	sheaf_export_report_free(report);
	sheaf_session_close(s);
}

/* Each of several conversations is a session, and a list of its own when it is written. */
static void test_several(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	text_import(&k, "[\n" A ",\n" B "\n]\n");
	assert_int_equal(k.report->problem_total, 0);
	assert_int_equal(k.report->session_count, 2);
	exports(&k, "chatgpt.A", "[\n" A "\n]\n");
	exports(&k, "chatgpt.B", "[\n" B "\n]\n");
	text_import(&k, "[\n" A ",\n" B_MORE "\n]\n");
	assert_int_equal(k.report->problem_total, 0);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
	assert_int_equal(k.report->sessions[1]->state, SHEAF_IMPORT_GROWN);
	assert_int_equal(k.report->sessions[1]->records, 1);
	exports(&k, "chatgpt.B", "[\n" B_MORE "\n]\n");
	/* One that is another now is imported beside; the others are left alone. */
	text_import(&k, "[\n" A ",\n" B_OTHER "\n]\n");
	assert_int_equal(k.report->problem_total, 1);
	assert_int_equal(k.report->session_count, 2);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
	assert_int_equal(k.report->sessions[1]->state, SHEAF_IMPORT_CHANGED);
	assert_str(k.report->sessions[1]->key.session, "chatgpt.B~2");
	exports(&k, "chatgpt.B", "[\n" B_MORE "\n]\n");
	exports(&k, "chatgpt.B~2", "[\n" B_OTHER "\n]\n");
	/* One conversation that is no list. */
	text_import(&k, ONE("C", ROOT, "r") "\n");
	exports(&k, "chatgpt.C", ONE("C", ROOT, "r") "\n");
	kit_close(&k);
}

/* Nodes may stand before their parents, several levels deep, and hang on nothing. */
static void test_any_order(void **state)
{
	(void)state;
	static const char text[] = "[" ONE(
		"O",
		NODE("d", "\"c\"", "assistant", "4") "," NODE("c", "\"b\"", "user", "3") "," NODE(
			"e", "\"b\"", "user",
			"5") "," NODE("b", "\"a\"", "assistant",
	                              "2") "," NODE("a", "null", "user",
	                                            "1") "," NODE("z", "\"nowhere\"", "user", "9"),
		"d") "]";
	kit k;
	char path[64];
	sheaf_records *one;
	kit_open(&k);
	text_import(&k, text);
	assert_int_equal(k.report->problem_total, 1);
	sheaf_session *s = kit_session(&k, "chatgpt.O");
	kit_path(&k, s, path, sizeof(path));
	assert_string_equal(path, "a b c d");
	assert_int_equal(sheaf_session_get(&one, s, SHEAF_STR("e"), &k.err), 0);
	assert_str(one->items[0]->parent_id, "b");
	sheaf_records_free(one);
	sheaf_session_close(s);
	exports(&k, "chatgpt.O", text);
	text_import(&k, text);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
	kit_close(&k);
}

#define MESSAGE(id, parent, author, more)                                                          \
	"\"" id "\":{\"id\":\"" id "\",\"parent\":\"" parent "\",\"message\":{\"author\":" author  \
	",\"content\":{\"content_type\":" more "}}"

/* Calls to tools and their answers, thoughts, files, and what nobody knows. */
static void test_content(void **state)
{
	(void)state;
	static const char text[] = "[" ONE(
		"K",
		NODE("u", "null", "user", "draw") "," MESSAGE("t", "u", "{\"role\":\"assistant\"}", "\"thoughts\",\"thoughts\":[{\"summary\":\"s\",\"content\":\"hm\"}]}") "," MESSAGE("q", "t", "{\"role\":\"assistant\"}", "\"code\",\"text\":\"{\\\"n\\\":1}\"},\"recipient\":\"dalle\"") "," MESSAGE(
			"w", "q", "{\"role\":\"tool\",\"name\":\"dalle\"}",
			"\"multimodal_text\",\"parts\":[{\"asset_pointer\":\"file-1\"}]}") "," MESSAGE("p",
	                                                                                               "w",
	                                                                                               "{\"role\":\"assistant\"}",
	                                                                                               "\"multimodal_text\",\"parts\":[\"see\",{\"asset_pointer\":\"file-2\"}]}") "," MESSAGE("v",
	                                                                                                                                                                                      "p",
	                                                                                                                                                                                      "{\"role\":\"assistant\"}",
	                                                                                                                                                                                      "\"brand_new\",\"x\":[1]}"),
		"v") "]";
	kit k;
	char path[64];
	sheaf_records *got;
	kit_open(&k);
	text_import(&k, text);
	assert_int_equal(k.report->problem_total, 0);
	exports(&k, "chatgpt.K", text);
	sheaf_session *s = kit_session(&k, "chatgpt.K");
	kit_path(&k, s, path, sizeof(path));
	assert_string_equal(path, "u t q w p v");
	assert_int_equal(
		sheaf_session_path(&got, s, (sheaf_str){NULL, 0}, (sheaf_str){NULL, 0}, 0, &k.err),
		0);
	assert_int_equal(got->items[1]->message->parts[0]->kind, SHEAF_PART_THINKING);
	assert_str(got->items[1]->message->parts[0]->text, "hm");
	assert_int_equal(got->items[2]->message->parts[0]->kind, SHEAF_PART_TOOL_USE);
	assert_str(got->items[2]->message->parts[0]->name, "dalle");
	assert_str(got->items[2]->message->parts[0]->input, "{\"n\":1}");
	assert_str(got->items[3]->message->parts[0]->tool_use_id, "q");
	assert_int_equal(got->items[4]->message->part_count, 2);
	assert_int_equal(got->items[4]->message->parts[1]->kind, SHEAF_PART_OPAQUE);
	assert_str(got->items[5]->message->parts[0]->raw,
	           "{\"content_type\":\"brand_new\",\"x\":[1]}");
	sheaf_records_free(got);
	sheaf_session_close(s);
	kit_close(&k);
}

static void test_damaged(void **state)
{
	(void)state;
	damage_cuts("chatgpt", LIST, 1820, 3);
	damage_bytes("chatgpt", LIST, 3);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	kit_out_of_memory(LIST, SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_tree),
		cmocka_unit_test(test_several),       cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_content),       cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
