/* Lists of messages in the providers' forms. */
#include "ingest_test.h"

/* The messages of a list, one a line, without the braces around. */
static int list_says(buf *out, int32_t format, sheaf_str array)
{
	sheaf_messages *list = NULL;
	sheaf_error err = {0};
	int rc = sheaf_ingest_messages(&list, format, NONE, array, &err);
	out->max = SIZE_MAX;
	buf_reset(out);
	buf_nul(out);
	if (rc != 0) {
		assert_int_equal(err.code, rc);
		assert_null(list);
		return rc;
	}
	for (size_t i = 0; i < list->count; i++) {
		sheaf_str json = sheaf_message_json(list->items[i]);
		assert_non_null(json.ptr);
		assert_int_equal(json_check(json, JSON_OBJECT, NULL), 0);
		buf_str(out, json);
		buf_char(out, '\n');
	}
	if (list->opaque_count != 0)
		buf_format(out, "%zu opaque\n", list->opaque_count);
	buf_nul(out);
	sheaf_messages_free(list);
	return 0;
}

typedef struct row {
	int32_t format;
	const char *given;
	const char *made;
} row;

static void check_rows(const row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		buf said = {0};
		int rc = list_says(&said, rows[i].format, sheaf_str_of(rows[i].given));
		if (rc != 0 || strcmp(said.ptr, rows[i].made) != 0)
			fail_msg("%s\nbecame (%s)\n%sinstead of\n%s", rows[i].given,
			         sheaf_code_name(rc), said.ptr, rows[i].made);
		buf_free(&said);
	}
}

#define A SHEAF_FORMAT_ANTHROPIC
#define C SHEAF_FORMAT_OPENAI_CHAT
#define R SHEAF_FORMAT_OPENAI_RESPONSES
#define G SHEAF_FORMAT_GEMINI
#define USER(part) "{\"role\":\"user\",\"content\":[" part "]}\n"
#define TEXT(text) "{\"type\":\"text\",\"text\":{\"content\":\"" text "\"}}"
#define IMAGE                                                                                      \
	"{\"type\":\"image\",\"image\":{\"source\":{\"type\":\"base64\",\"media_type\":"           \
	"\"image/png\",\"data\":\"AA\"}}}"
#define OPAQUE(raw)                                                                                \
	"{\"type\":\"opaque\",\"opaque\":{\"provider\":\"openai-chat\",\"raw\":" raw "}}"

/* Every upstream form of a text, and inline data in both spellings. */
static void texts_and_images(void **state)
{
	static const row rows[] = {
		{C, "[{\"role\":\"user\",\"content\":\"string\"}]", USER(TEXT("string"))},
		{C, "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}]",
	         USER(TEXT("a"))},
		{A, "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}]",
	         USER(TEXT("a"))},
		{A, "[{\"role\":\"user\",\"content\":\"s\"}]", USER(TEXT("s"))},
		{R, "[{\"role\":\"user\",\"content\":\"s\"}]", USER(TEXT("s"))},
		{R, "\"s\"", USER(TEXT("s"))},
		{G, "[{\"role\":\"user\",\"parts\":[{\"text\":\"a\"}]}]", USER(TEXT("a"))},
		{G,
	         "[{\"parts\":[{\"inline_data\":{\"mime_type\":\"image/png\",\"data\":\"AA\"}}]}]",
	         USER(IMAGE)},
		{G, "[{\"parts\":[{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"AA\"}}]}]",
	         USER(IMAGE)},
		{C, "[]", ""},
		{C, "[{\"role\":\"user\",\"content\":\"\"}]", ""},
	};
	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

/* What the lists of tests/data/lists become stands beside them. */
static void lists_become_messages(void **state)
{
	static const char *const names[] = {"anthropic-parts",        "anthropic-tools",
	                                    "openai-chat-parts",      "openai-chat-tools",
	                                    "openai-responses-parts", "openai-responses-items",
	                                    "gemini-parts",           "gemini-tools"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		char path[512];
		size_t len;
		buf said = {0};
		(void)snprintf(path, sizeof(path), "%s/lists/%s.json", SHEAF_TEST_DATA, names[i]);
		char *list = file_read(path, &len);
		(void)snprintf(path, sizeof(path), "%s/lists/%s.messages", SHEAF_TEST_DATA,
		               names[i]);
		char *want = file_read(path, &(size_t){0});
		assert_int_equal(list_says(&said, format_of_file(names[i]), str_make(list, len)),
		                 0);
		if (strcmp(said.ptr, want) != 0)
			fail_msg("%s became\n%sinstead of\n%s", names[i], said.ptr, want);
		free(list);
		free(want);
		buf_free(&said);
	}
}

/* Calls without ids get some, and answers find theirs by the name of the tool. */
static void gemini_without_ids(void **state)
{
	(void)state;
	sheaf_messages *list = NULL;
	static const char turn[] =
		"{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"f\"}},"
		"{\"functionCall\":{\"name\":\"g\"}},{\"functionCall\":{\"name\":\"f\"}}]},"
		"{\"role\":\"user\",\"parts\":[{\"functionResponse\":{\"name\":\"g\"}},"
		"{\"functionResponse\":{\"name\":\"f\"}},{\"functionResponse\":{\"name\":\"f\"}}]}";
	char array[2 * sizeof(turn) + 8];
	(void)snprintf(array, sizeof(array), "[%s,%s]", turn, turn);
	assert_int_equal(sheaf_ingest_messages(&list, G, NONE, sheaf_str_of(array), NULL), 0);
	assert_int_equal(list->count, 4);
	char ids[4][3][32];
	for (size_t i = 0; i < 4; i++) {
		sheaf_str json = sheaf_message_json(list->items[i]);
		char *copy = strndup(json.ptr, json.len), *at = copy;
		for (size_t k = 0; k < 3; k++, at += 21) {
			at = strstr(at, "call_");
			assert_non_null(at);
			memcpy(ids[i][k], at, 21);
			ids[i][k][21] = '\0';
		}
		free(copy);
	}
	for (size_t i = 0; i < 4; i += 2) {
		assert_string_equal(ids[i][1], ids[i + 1][0]);
		assert_string_equal(ids[i][0], ids[i + 1][1]);
		assert_string_equal(ids[i][2], ids[i + 1][2]);
		assert_string_not_equal(ids[i][0], ids[i][2]);
	}
	assert_string_not_equal(ids[0][0], ids[2][0]);
	sheaf_messages_free(list);
}

static void no_lists(void **state)
{
	(void)state;
	static const char *const bad[] = {"{}",
	                                  "1",
	                                  "[1]",
	                                  "[{}]",
	                                  "[{\"role\":\"nobody\",\"content\":\"x\"}]",
	                                  "[{\"role\":1,\"content\":\"x\"}]",
	                                  "[",
	                                  ""};
	buf said = {0};
	for (int32_t format = A; format <= G; format++) {
		for (size_t i = 0; i < COUNT_OF(bad); i++) {
			if (format == G && strcmp(bad[i], "[{}]") == 0)
				continue; /* a turn of nobody, of nothing */
			if (format == G && strstr(bad[i], ":1") != NULL)
				continue;
			assert_int_equal(list_says(&said, format, sheaf_str_of(bad[i])),
			                 SHEAF_FORMAT);
		}
		sheaf_messages *list = NULL;
		assert_int_equal(sheaf_ingest_messages(NULL, format, NONE, S("[]"), NULL),
		                 SHEAF_INVALID);
		assert_int_equal(sheaf_ingest_messages(&list, 9, NONE, S("[]"), NULL),
		                 SHEAF_INVALID);
	}
	sheaf_messages_free(NULL);
	buf_free(&said);
}

/* Broken text is mended, also in what is kept as it came. */
static void broken_text(void **state)
{
	static const row rows[] = {
		{C, "[{\"role\":\"user\",\"content\":\"a\xff\\ud800\"}]", USER(TEXT("a��"))},
		{C, "[{\"role\":\"user\",\"content\":[{\"type\":\"new\",\"x\":\"\xc3\"}]}]",
	         USER(OPAQUE("{\"type\":\"new\",\"x\":\"�\"}")) "1 opaque\n"},
		{C, "[{\"role\":\"user\",\n\t\"content\":[{\"type\": \"new\",\r\n\"x\": [ 1 ]}]}]",
	         USER(OPAQUE("{\"type\":\"new\",\"x\":[1]}")) "1 opaque\n"},
		/* What cannot stand in a record does not cost the text. */
		{A,
	         "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\","
	         "\"x\":{\"d\":1,\"d\":2}}]}]",
	         USER(TEXT("a"))},
	};
	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

static int take_all(void)
{
	static const char *const lists[] = {
		"[{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":"
		"\"f\",\"input\":{},\"caller\":1},{\"type\":\"x\"}]},{\"role\":\"user\",\"content\":[{"
		"\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":[{\"type\":\"text\","
		"\"text\":\"\xff\"}]}]}]",
		"[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"u\","
		"\"detail\":1}}]},{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"x\"}]",
		"[{\"type\":\"reasoning\",\"summary\":[]},{\"type\":\"function_call\",\"call_id\":\"a\","
		"\"name\":\"f\",\"arguments\":\"\"},{\"type\":\"function_call_output\",\"call_id\":"
		"\"a\",\"output\":[{\"type\":\"input_text\",\"text\":\"x\"}]}]",
		"[{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"f\"}}]},{\"parts\":[{"
		"\"functionResponse\":{\"name\":\"f\",\"response\":{}}},{\"text\":\"x\"}]}]",
	};
	for (int32_t i = 0; i < 4; i++) {
		sheaf_messages *list = NULL;
		int rc = sheaf_ingest_messages(&list, i + 1, NONE, sheaf_str_of(lists[i]), NULL);
		sheaf_messages_free(list);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static void memory_runs_out(void **state)
{
	(void)state;
	each_allocation_fails(take_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_and_images),   cmocka_unit_test(lists_become_messages),
		cmocka_unit_test(gemini_without_ids), cmocka_unit_test(no_lists),
		cmocka_unit_test(broken_text),        cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
