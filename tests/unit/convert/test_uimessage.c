/* UI messages of the AI SDK: taken in whole, and written again as they were. */
#include "base/json.h"
#include "unit/convert/damage.h"

#define LIST KIT_DATA "uimessage/messages.json"

static void test_round_trip(void **state)
{
	(void)state;
	kit_round(LIST, "uimessage");
}

/* The roles and the kinds of the parts are those of the messages the SDK itself makes of them. */
static void test_as_the_sdk(void **state)
{
	(void)state;
	static const struct {
		const char *type;
		int32_t kind;
	} kinds[] = {
		{"text", SHEAF_PART_TEXT},
		{"file", SHEAF_PART_IMAGE},
		{"reasoning", SHEAF_PART_THINKING},
		{"tool-call", SHEAF_PART_TOOL_USE},
		{"tool-result", SHEAF_PART_TOOL_RESULT},
	};
	_cleanup_(json_freep) json_doc *doc = NULL;
	kit k;
	size_t len, i = 0;
	sheaf_records *path;
	char *file = file_read(KIT_DATA "uimessage/model-messages.json", &len);
	assert_int_equal(json_parse(&doc, str_make(file, len), NULL), 0);
	kit_open(&k);
	kit_import(&k, LIST);
	sheaf_session *s = kit_imported(&k, 0);
	assert_int_equal(
		sheaf_session_path(&path, s, (sheaf_str){NULL, 0}, (sheaf_str){NULL, 0}, 0, &k.err),
		0);
	assert_int_equal(path->count, json_count(json_root(doc)));
	for (json_iter it = json_each(json_root(doc)); json_next(&it); i++) {
		const sheaf_message_view *m = path->items[i]->message;
		const json_val *content = json_get(it.value, "content");
		size_t n = 0;
		assert_true(str_eq(m->role, json_string(json_get(it.value, "role"))));
		assert_int_equal(m->part_count, json_count(content));
		for (json_iter part = json_each(content); json_next(&part); n++) {
			sheaf_str type = json_string(json_get(part.value, "type"));
			size_t kind = 0;
			while (!str_is(type, kinds[kind].type))
				assert_true(++kind < COUNT_OF(kinds));
			assert_int_equal(m->parts[n]->kind, kinds[kind].kind);
			sheaf_str call = json_string(json_get(part.value, "toolCallId"));
			if (m->parts[n]->kind == SHEAF_PART_TOOL_RESULT)
				assert_true(str_eq(m->parts[n]->tool_use_id, call));
		}
	}
	const sheaf_message_view *said = path->items[1]->message;
	assert_str(said->provider, "anthropic");
	assert_str(said->parts[0]->signature, "c3R1Yi1zaWduYXR1cmU=");
	assert_int_equal(path->items[2]->message->parts[1]->is_error, 1);
	sheaf_records_free(path);
	sheaf_session_close(s);
	kit_close(&k);
	free(file);
}

static void test_usage(void **state)
{
	(void)state;
	kit k;
	sheaf_head_view *head;
	kit_open(&k);
	kit_import(&k, LIST);
	sheaf_session *s = kit_imported(&k, 0);
	assert_int_equal(sheaf_session_head(&head, s, &k.err), 0);
	assert_int_equal(head->info->usage.input, 352);
	assert_int_equal(head->info->usage.cache_read, 2048);
	assert_int_equal(head->info->usage.output, 100);
	assert_int_equal(head->info->usage.reasoning, 20);
	sheaf_head_view_free(head);
	sheaf_session_close(s);
	kit_import(&k, LIST);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
	kit_close(&k);
}

#define PART(state, more)                                                                          \
	"{\"type\":\"tool-x\",\"toolCallId\":\"" state "\",\"state\":\"" state                     \
	"\",\"input\":{\"a\": 1}" more "}"

/* All states of a call, parts that are not for models, a chat that has an id. */
static void test_states(void **state)
{
	(void)state;
	static const char text[] =
		"{\"id\":\"chat-7\",\"title\":\"All\",\"messages\":[{\"id\":\"a\",\"role\":\"system\","
		"\"parts\":[{\"type\":\"text\",\"text\":\"be kind\"}]},\n"
		"{\"id\":\"b\",\"role\":\"assistant\",\"parts\":[" PART("input-streaming", "") "," PART(
			"input-available",
			"") "," PART("approval-requested",
	                             "") "," PART("output-available",
	                                          ",\"output\":{\"n\":2}") "," PART("output-error",
	                                                                            ",\"errorText\":\"boom\"") "," PART("output-denied",
	                                                                                                                ",\"approval\":{\"id\":\"q\",\"approved\":false}") ","
																					   "{\"type\":\"data-weather\",\"data\":{}},{\"type\":\"dynamic-tool\",\"toolName\":\"dyn\","
																					   "\"toolCallId\":\"d\",\"state\":\"output-available\",\"input\":{},\"output\":\"fine\"}]},"
																					   "{\"id\":\"c\",\"role\":\"critic\",\"parts\":[]}],\"extra\":1}\n";
	kit k;
	char path[256];
	sheaf_records *one;
	kit_open(&k);
	(void)snprintf(path, sizeof(path), "%s/chat.json", kit_dir(&k));
	file_write(path, text, sizeof(text) - 1);
	assert_int_equal(kit_try(&k, path, NULL), 0);
	assert_int_equal(k.report->problem_total, 1);
	assert_int_equal(k.report->problems[0]->line, 2);
	sheaf_session *s = kit_session(&k, "uimessage.chat-7");
	kit_same(&k, s, "uimessage", path);
	kit_path(&k, s, path, sizeof(path));
	assert_string_equal(path, "a b b-results");
	assert_int_equal(sheaf_session_get(&one, s, SHEAF_STR("b-results"), &k.err), 0);
	const sheaf_message_view *m = one->items[0]->message;
	assert_int_equal(m->part_count, 4);
	assert_str(m->parts[0]->text, "{\"n\":2}");
	assert_str(m->parts[1]->text, "boom");
	assert_int_equal(m->parts[2]->is_error, 1);
	assert_str(m->parts[3]->tool_name, "dyn");
	sheaf_records_free(one);
	assert_int_equal(sheaf_session_get(&one, s, SHEAF_STR("b"), &k.err), 0);
	assert_int_equal(one->items[0]->message->part_count, 8);
	assert_int_equal(one->items[0]->message->parts[6]->kind, SHEAF_PART_OPAQUE);
	sheaf_records_free(one);
	sheaf_session_close(s);
	kit_close(&k);
}

static void test_damaged(void **state)
{
	(void)state;
	damage_cuts("uimessage", LIST, 1927, 7);
	damage_bytes("uimessage", LIST, 5);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	kit_out_of_memory(LIST, SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_as_the_sdk),
		cmocka_unit_test(test_usage),      cmocka_unit_test(test_states),
		cmocka_unit_test(test_damaged),    cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
