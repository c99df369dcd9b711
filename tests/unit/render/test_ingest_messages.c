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
#define USER(parts) "{\"role\":\"user\",\"content\":[" parts "]}\n"
#define TOOL(parts) "{\"role\":\"tool\",\"content\":[" parts "]}\n"
#define SAID(by, parts) "{\"role\":\"assistant\",\"content\":[" parts "],\"provider\":\"" by "\"}\n"
#define TEXT(text) "{\"type\":\"text\",\"text\":{\"content\":\"" text "\"}}"
#define MEDIA(kind, from, type, data, more)                                                        \
	"{\"type\":\"" kind "\",\"" kind "\":{\"source\":{\"type\":\"" from "\"" type              \
	",\"data\":\"" data "\"}" more "}}"
#define PNG ",\"media_type\":\"image/png\""
#define CALL(id, name, input, more)                                                                \
	"{\"type\":\"tool_use\",\"tool_use\":{\"id\":\"" id "\",\"name\":\"" name                  \
	"\",\"input\":" input more "}}"
#define RESULT(id, rest)                                                                           \
	"{\"type\":\"tool_result\",\"tool_result\":{\"tool_use_id\":\"" id "\"" rest "}}"
#define EXT(format, members) ",\"ext\":{\"format\":\"" format "\"," members "}"
#define OPAQUE(format, raw)                                                                        \
	"{\"type\":\"opaque\",\"opaque\":{\"provider\":\"" format "\",\"raw\":" raw "}}"

/* The mappings of the seed: every upstream form of a text, and inline data. */
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
	         USER(MEDIA("image", "base64", PNG, "AA", ""))},
		{G, "[{\"parts\":[{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"AA\"}}]}]",
	         USER(MEDIA("image", "base64", PNG, "AA", ""))},
		{G,
	         "[{\"parts\":[{\"file_data\":{\"mime_type\":\"video/mp4\",\"file_uri\":\"u\"}}]}]",
	         USER(MEDIA("document", "url", ",\"media_type\":\"video/mp4\"", "u", ""))},
		{C,
	         "[{\"role\":\"user\",\"name\":\"bob\",\"content\":[{\"type\":\"image_url\","
	         "\"image_url\":{\"url\":\"data:image/png;base64,AA\",\"detail\":\"low\"}},"
	         "{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://x/y.png\"}},"
	         "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"file\",\"file\":{\"file_data\":"
	         "\"data:application/pdf;base64,BB\",\"filename\":\"a.pdf\"}},"
	         "{\"type\":\"file\",\"file\":{\"file_id\":\"f1\"}}]}]",
	         USER(MEDIA("image", "base64", PNG, "AA", EXT("openai-chat", "\"detail\":\"low\"")) "," MEDIA("image", "url", "", "https://x/y.png", "") ",{\"type\":\"text\",\"text\":{\"content\":\"a\"" EXT(
			 "openai-chat",
			 "\"name\":"
			 "\"bob\"") "}"
	                            "}," MEDIA(
					    "document", "base64",
					    ",\"media_type\":\"application/pdf\"", "BB",
					    EXT("openai-chat",
	                                        "\"filename\":\"a.pdf\"")) "," OPAQUE("openai-chat",
	                                                                              "{\"type\":\"file\",\"file\":{\"file_id\":\"f1\"}}")) "1 opaque\n"},
		{R,
	         "[{\"role\":\"developer\",\"content\":[{\"type\":\"input_text\",\"text\":\"d\"}]},"
	         "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_image\","
	         "\"image_url\":\"data:image/png;base64,AA\"},{\"type\":\"input_file\","
	         "\"file_url\":\"https://x\"},{\"type\":\"input_image\",\"file_id\":\"f\"}]}]",
	         "{\"role\":\"developer\",\"content\":[" TEXT("d") "]}\n" USER(
			 MEDIA("image", "base64", PNG, "AA", "") "," MEDIA(
				 "document", "url", "", "https://x",
				 "") "," OPAQUE("openai-responses",
	                                        "{\"type\":\"input_image\",\"file_id\":\"f\"}")) "1 opaque\n"},
		{A,
	         "[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":"
	         "\"base64\",\"media_type\":\"image/png\",\"data\":\"AA\"},"
	         "\"cache_control\":{\"type\":\"ephemeral\"}},{\"type\":\"document\",\"title\":"
	         "\"T\",\"source\":{\"type\":\"url\",\"url\":\"u\"}},{\"type\":\"image\","
	         "\"source\":{\"type\":\"file\",\"file_id\":\"f\"}}]},"
	         "{\"role\":\"system\",\"content\":\"be\"}]",
	         USER(MEDIA("image", "base64", PNG, "AA", "") "," MEDIA(
			 "document", "url", "", "u",
			 EXT("anthropic",
	                     "\"title\":\"T\"")) "," OPAQUE("anthropic",
	                                                    "{\"type\":\"image\",\"source\":{"
	                                                    "\"type\":\"file\",\"file_id\":\"f\"}"
	                                                    "}")) "{\"role\":\"system\",\"content\":[" TEXT("be") "]}\n1 opaque\n"},
		{C, "[]", ""},
		{C, "[{\"role\":\"user\",\"content\":\"\"}]", ""},
	};
	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

static void calls_and_results(void **state)
{
	static const row rows[] = {
		{A,
	         "[{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\","
	         "\"signature\":\"s\"},{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"f\","
	         "\"input\":{\"a\": 1.0}},{\"type\":\"tool_use\",\"id\":\"c2\",\"name\":\"f\","
	         "\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
	         "\"tool_use_id\":\"c2\",\"content\":\"two\",\"is_error\":true},{\"type\":\"text\","
	         "\"text\":\"and\"},{\"type\":\"tool_result\",\"tool_use_id\":\"c1\",\"content\":["
	         "{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"image\",\"source\":{\"type\":"
	         "\"base64\",\"media_type\":\"image/png\",\"data\":\"AA\"}},{\"type\":"
	         "\"tool_reference\",\"tool_name\":\"g\"}]}]}]",
	         SAID("anthropic", "{\"type\":\"thinking\",\"thinking\":{\"text\":\"t\","
	                           "\"signature\":\"s\"}}," CALL("c1", "f", "{\"a\": 1.0}",
	                                                         "") "," CALL("c2", "f", "{}", ""))
	                 TOOL(RESULT("c2", ",\"content\":\"two\",\"is_error\":true") "," RESULT(
				 "c1", ",\"content\":[" TEXT("one") "," MEDIA(
					       "image", "base64", PNG, "AA",
					       "") "," TEXT("{\\\"type\\\":\\\"tool_reference\\\","
	                                                    "\\\"tool_name\\\":\\\"g\\\"}") "]"))
	                         USER(TEXT("and"))},
		/* Results in two messages answer one. */
		{A,
	         "[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"a\"}]"
	         "},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"b\","
	         "\"is_error\":false,\"content\":[]}]}]",
	         TOOL(RESULT("a", ",\"content\":\"\"") "," RESULT(
			 "b", ",\"content\":[],\"is_error\":false"))},
		{C,
	         "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\","
	         "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
	         "\"{\\\"a\\\": 1}\"}},{\"id\":\"c2\",\"type\":\"function\",\"function\":{"
	         "\"name\":\"g\",\"arguments\":\"\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"c1\","
	         "\"content\":\"one\"},{\"role\":\"tool\",\"tool_call_id\":\"c2\",\"content\":[{"
	         "\"type\":\"text\",\"text\":\"two\"}]},{\"role\":\"assistant\",\"content\":\"x\"},"
	         "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"y\"},"
	         "{\"type\":\"refusal\",\"refusal\":\"no\"}]}]",
	         SAID("openai",
	              CALL("c1", "f", "{\"a\": 1}",
	                   "") ","
	                       "{\"type\":\"tool_use\",\"tool_use\":{\"id\":\"c2\",\"name\":\"g\","
	                       "\"input_text\":\"\"}}")
	                 TOOL(RESULT("c1", ",\"content\":\"one\"") "," RESULT(
				 "c2", ",\"content\":[" TEXT("two") "]")) SAID("openai", TEXT("x"))
	                         SAID("openai",
	                              TEXT("y") ",{\"type\":\"text\",\"text\":{\"content\":\"no\"" EXT(
					      "openai-chat", "\"type\":\"refusal\"") "}}")},
	};
	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

static void items_and_turns(void **state)
{
	static const row rows[] = {
		{R,
	         "[{\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[{\"type\":\"summary_text\","
	         "\"text\":\"t\"}],\"encrypted_content\":\"e\"},{\"type\":\"message\",\"role\":"
	         "\"assistant\",\"id\":\"m\",\"content\":[{\"type\":\"output_text\",\"text\":\"x\","
	         "\"annotations\":[]},{\"type\":\"output_text\",\"text\":\"y\"}]},{\"type\":"
	         "\"function_call\",\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"{}\"},"
	         "{\"type\":\"custom_tool_call\",\"call_id\":\"c2\",\"name\":\"p\",\"input\":\"*\"},"
	         "{\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":\"one\"},"
	         "{\"type\":\"custom_tool_call_output\",\"call_id\":\"c2\",\"output\":\"o\"},"
	         "{\"role\":\"assistant\",\"content\":\"short\",\"phase\":\"final_answer\"}]",
	         SAID("openai",
	              "{\"type\":\"thinking\",\"thinking\":{\"text\":\"t\",\"signature\":\"e\"" EXT(
			      "openai-responses",
			      "\"id\":\"rs\"") "}},{\"type\":\"text\",\"text\":{"
	                                       "\"content\":\"x\"" EXT(
						       "openai-"
						       "respon"
						       "ses",
						       "\"id\":"
						       "\"m\"") "}}," TEXT("y") "," CALL("c1", "f",
	                                                                                 "{}",
	                                                                                 "") "," OPAQUE("openai-responses",
	                                                                                                "{\"type\":\"custom_tool_call\",\"call_id\":\"c2\",\"name\":\"p\","
	                                                                                                "\"input\":\"*\"}"))
	                 TOOL(RESULT("c1", ",\"content\":\"one\"")) USER(
				 OPAQUE("openai-responses",
	                                "{\"type\":\"custom_tool_call_output\",\"call_id\":\"c2\","
	                                "\"output\":\"o\"}"))
	                         SAID("openai",
	                              "{\"type\":\"text\",\"text\":{\"content\":\"short\"" EXT(
					      "openai-responses",
					      "\"phase\":\"final_answer\"") "}}") "2 opaque\n"},
		{G,
	         "[{\"role\":\"model\",\"parts\":[{\"text\":\"hm\",\"thought\":true},"
	         "{\"functionCall\":{\"id\":\"c1\",\"name\":\"f\",\"args\":{\"a\":1}},"
	         "\"thoughtSignature\":\"s\"}]},{\"role\":\"user\",\"parts\":[{"
	         "\"functionResponse\":{\"id\":\"c1\",\"name\":\"f\",\"response\":{\"output\":\"o\"}"
	         "}},{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"AA\"}}]}]",
	         SAID("google", "{\"type\":\"thinking\",\"thinking\":{\"text\":\"hm\"}}," CALL(
					"c1", "f", "{\"a\":1}", ",\"signature\":\"s\""))
	                 TOOL(RESULT("c1", ",\"tool_name\":\"f\",\"content\":\"o\""))
	                         USER(MEDIA("image", "base64", PNG, "AA", ""))},
		{G,
	         "[{\"role\":\"function\",\"parts\":[{\"function_response\":{\"name\":\"f\","
	         "\"response\":{\"error\":\"bad\"}}},{\"functionResponse\":{\"name\":\"g\","
	         "\"response\":{\"n\":1},\"parts\":[{\"inlineData\":{\"mimeType\":\"image/png\","
	         "\"data\":\"AA\"}}]}}]}]",
	         TOOL(RESULT("f", ",\"tool_name\":\"f\",\"content\":\"bad\",\"is_error\":true") "," RESULT(
			 "g", ",\"tool_name\":\"g\",\"content\":[" TEXT("{\\\"n\\\":1}") "," MEDIA(
				      "image", "base64", PNG, "AA",
				      "") "]" EXT("gemini", "\"response\":{\"n\":1}")))},
	};
	(void)state;
	check_rows(rows, COUNT_OF(rows));
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
		const char *at = sheaf_message_json(list->items[i]).ptr;
		for (size_t k = 0; k < 3; k++) {
			at = strstr(at, "call_");
			assert_non_null(at);
			memcpy(ids[i][k], at, 21);
			ids[i][k][21] = '\0';
			at += 21;
		}
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
	         USER(OPAQUE("openai-chat", "{\"type\":\"new\",\"x\":\"�\"}")) "1 opaque\n"},
		{C, "[{\"role\":\"user\",\n\t\"content\":[{\"type\": \"new\",\r\n\"x\": [ 1 ]}]}]",
	         USER(OPAQUE("openai-chat", "{\"type\":\"new\",\"x\":[1]}")) "1 opaque\n"},
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
		cmocka_unit_test(texts_and_images), cmocka_unit_test(calls_and_results),
		cmocka_unit_test(items_and_turns),  cmocka_unit_test(gemini_without_ids),
		cmocka_unit_test(no_lists),         cmocka_unit_test(broken_text),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
