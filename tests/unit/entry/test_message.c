/* Messages: the bytes a builder writes, and what it refuses. */
#include "message_test.h"

#include "entry/members.h"

static int failure(const sheaf_message *m)
{
	sheaf_str json;
	sheaf_error err = {0};
	int rc = message_finish(m, &json, &err);
	assert_int_equal(rc, err.code);
	return rc;
}

/* ---- Building --------------------------------------------------------------- */

static void one_text(void **state)
{
	(void)state;
	sheaf_message *m = sheaf_message_new("user");
	assert_str(finished(m), S("{\"role\":\"user\",\"content\":[]}"));
	assert_code(0, sheaf_message_text(m, S("Hello \"you\"\n")));
	assert_str(finished(m), S("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
	                          "{\"content\":\"Hello \\\"you\\\"\\n\"}}]}"));
	sheaf_message_free(m);
}

static void every_part(void **state)
{
	(void)state;
	sheaf_message *m = sheaf_message_new("assistant");
	assert_code(0, sheaf_message_thinking(m, S("hm"), S("sig"), 1));
	assert_code(0, sheaf_message_thinking(m, S("hm"), NONE, 0));
	assert_code(0, sheaf_message_text(m, S("a")));
	assert_code(0, sheaf_message_signature(m, S("s1")));
	assert_code(0, sheaf_message_tool_use(m, S("c1"), S("read"), S("{\"path\": 1.0}")));
	assert_code(0, sheaf_message_signature(m, S("s2")));
	assert_code(0, sheaf_message_tool_result(m, S("c1"), NONE, S("out"), -1));
	assert_code(0, sheaf_message_tool_result(m, S("c2"), S("read"), S("bad"), 1));
	assert_code(0, sheaf_message_tool_result(m, S("c3"), NONE, S(""), 0));
	assert_code(0, sheaf_message_tool_result_begin(m, S("c4"), S("shot"), 0));
	assert_code(0, sheaf_message_text(m, S("x")));
	assert_code(0, sheaf_message_image(m, S("base64"), S("image/png"), S("AAAA")));
	assert_code(0, sheaf_message_document(m, S("url"), NONE, S("http://x")));
	assert_code(0, sheaf_message_tool_result_end(m));
	assert_code(0, sheaf_message_opaque(m, S("openai"), S("[1,2]")));
	assert_str(finished(m),
	           S("{\"role\":\"assistant\",\"content\":["
	             "{\"type\":\"thinking\",\"thinking\":{\"text\":\"hm\",\"signature\":\"sig\","
	             "\"redacted\":true}},"
	             "{\"type\":\"thinking\",\"thinking\":{\"text\":\"hm\"}},"
	             "{\"type\":\"text\",\"text\":{\"content\":\"a\",\"signature\":\"s1\"}},"
	             "{\"type\":\"tool_use\",\"tool_use\":{\"id\":\"c1\",\"name\":\"read\","
	             "\"input\":{\"path\": 1.0},\"signature\":\"s2\"}},"
	             "{\"type\":\"tool_result\",\"tool_result\":{\"tool_use_id\":\"c1\","
	             "\"content\":\"out\"}},"
	             "{\"type\":\"tool_result\",\"tool_result\":{\"tool_use_id\":\"c2\","
	             "\"tool_name\":\"read\",\"content\":\"bad\",\"is_error\":true}},"
	             "{\"type\":\"tool_result\",\"tool_result\":{\"tool_use_id\":\"c3\","
	             "\"content\":\"\",\"is_error\":false}},"
	             "{\"type\":\"tool_result\",\"tool_result\":{\"tool_use_id\":\"c4\","
	             "\"tool_name\":\"shot\",\"content\":["
	             "{\"type\":\"text\",\"text\":{\"content\":\"x\"}},"
	             "{\"type\":\"image\",\"image\":{\"source\":{\"type\":\"base64\","
	             "\"media_type\":\"image/png\",\"data\":\"AAAA\"}}},"
	             "{\"type\":\"document\",\"document\":{\"source\":{\"type\":\"url\","
	             "\"data\":\"http://x\"}}}],\"is_error\":false}},"
	             "{\"type\":\"opaque\",\"opaque\":{\"provider\":\"openai\",\"raw\":[1,2]}}]}"));
	sheaf_message_free(m);
}

/* Members of one format: on every part but an opaque one, with a signature or without. */
static void members_of_a_format(void **state)
{
	(void)state;
	sheaf_message *m = sheaf_message_new("assistant");
	assert_code(0, sheaf_message_text(m, S("a")));
	assert_code(0, sheaf_message_ext(m, S("openai-chat"), S(" { \"id\": 1.0 } ")));
	assert_code(0, sheaf_message_signature(m, S("s1")));
	assert_code(0, sheaf_message_tool_use(m, S("c1"), S("read"), S("{}")));
	assert_code(0, sheaf_message_signature(m, S("s2")));
	assert_code(0, sheaf_message_ext(m, S("gemini"), S("{}")));
	assert_code(0, sheaf_message_tool_result_begin(m, S("c4"), NONE, 0));
	assert_code(0, sheaf_message_image(m, S("url"), NONE, S("u")));
	assert_code(0, sheaf_message_ext(m, S("gemini"), S("{\"a\":[{}]}")));
	assert_code(0, sheaf_message_tool_result_end(m));
	assert_code(0, sheaf_message_ext(m, S("anthropic"), S("{\"b\":\"}\"}")));
	assert_code(0, sheaf_message_model(m, S("m")));
	assert_str(
		finished(m),
		S("{\"role\":\"assistant\",\"content\":["
	          "{\"type\":\"text\",\"text\":{\"content\":\"a\","
	          "\"ext\":{\"format\":\"openai-chat\",\"id\": 1.0},\"signature\":\"s1\"}},"
	          "{\"type\":\"tool_use\",\"tool_use\":{\"id\":\"c1\",\"name\":\"read\",\"input\":{},"
	          "\"signature\":\"s2\",\"ext\":{\"format\":\"gemini\"}}},"
	          "{\"type\":\"tool_result\",\"tool_result\":{\"tool_use_id\":\"c4\",\"content\":["
	          "{\"type\":\"image\",\"image\":{\"source\":{\"type\":\"url\",\"data\":\"u\"},"
	          "\"ext\":{\"format\":\"gemini\",\"a\":[{}]}}}],\"is_error\":false,"
	          "\"ext\":{\"format\":\"anthropic\",\"b\":\"}\"}}}],\"model\":\"m\"}"));
	reading r = read_back(finished(m));
	assert_str(r.view->parts[0]->ext, S("{\"format\":\"openai-chat\",\"id\": 1.0}"));
	assert_str(r.view->parts[0]->signature, S("s1"));
	assert_str(r.view->parts[1]->ext, S("{\"format\":\"gemini\"}"));
	assert_str(r.view->parts[2]->ext, S("{\"format\":\"anthropic\",\"b\":\"}\"}"));
	assert_str(r.view->parts[2]->parts[0]->ext, S("{\"format\":\"gemini\",\"a\":[{}]}"));
	reading_free(&r);
	sheaf_message_free(m);
}

/* As deep as a record may be, and no deeper, also inside a tool result. */
static void members_depth_limit(void **state)
{
	(void)state;
	for (int inside = 0; inside < 2; inside++) {
		size_t deepest = SHEAF_DEPTH_MAX - (inside ? 9 : 6);
		for (size_t over = 0; over < 2; over++) {
			buf json = BUF_INIT(4096);
			buf_lit(&json, "{\"a\":");
			for (size_t i = 0; i < deepest + over; i++)
				buf_char(&json, '[');
			for (size_t i = 0; i < deepest + over; i++)
				buf_char(&json, ']');
			buf_char(&json, '}');
			sheaf_message *m = sheaf_message_new("tool");
			if (inside)
				(void)sheaf_message_tool_result_begin(m, S("a"), NONE, 0);
			(void)sheaf_message_text(m, S("a"));
			assert_code(over ? SHEAF_LIMIT : 0,
			            sheaf_message_ext(m, S("gemini"), buf_view(&json)));
			if (inside && !over)
				assert_code(0, sheaf_message_tool_result_end(m));
			/* One more for the record around it. */
			if (!over)
				assert_int_equal(members_depth(finished(m)) + 1, SHEAF_DEPTH_MAX);
			sheaf_message_free(m);
			buf_free(&json);
		}
	}
}

/* The order of the calls about a reply does not matter, nor where among the parts they come. */
static void reply_members_have_one_order(void **state)
{
	(void)state;
	const sheaf_usage usage = {1, 2, 0, 4, 0, 6};
	sheaf_message *m = sheaf_message_new("assistant"), *n = sheaf_message_new("assistant");
	assert_code(0, sheaf_message_usage(m, &usage));
	assert_code(0, sheaf_message_stop_reason(m, S("end")));
	assert_code(0, sheaf_message_text(m, S("a")));
	assert_code(0, sheaf_message_model(m, S("old")));
	assert_code(0, sheaf_message_model(m, S("m")));
	assert_code(0, sheaf_message_response_id(m, S("r")));
	assert_code(0, sheaf_message_provider(m, S("p")));
	assert_code(0, sheaf_message_text(m, S("b")));
	assert_code(0, sheaf_message_text(n, S("a")));
	assert_code(0, sheaf_message_text(n, S("b")));
	assert_code(0, sheaf_message_provider(n, S("p")));
	assert_code(0, sheaf_message_model(n, S("m")));
	assert_code(0, sheaf_message_response_id(n, S("r")));
	assert_code(0, sheaf_message_stop_reason(n, S("end")));
	assert_code(0, sheaf_message_usage(n, &usage));
	assert_str(finished(m), finished(n));
	assert_str(
		finished(m),
		S("{\"role\":\"assistant\",\"content\":["
	          "{\"type\":\"text\",\"text\":{\"content\":\"a\"}},"
	          "{\"type\":\"text\",\"text\":{\"content\":\"b\"}}],"
	          "\"provider\":\"p\",\"model\":\"m\",\"response_id\":\"r\",\"stop_reason\":\"end\","
	          "\"usage\":{\"input\":1,\"cache_read\":2,\"cache_write_1h\":4,\"output\":0,"
	          "\"reasoning\":6}}"));
	assert_code(0, sheaf_message_usage(m, NULL));
	assert_code(0, sheaf_message_model(m, NONE));
	assert_null(memmem(finished(m).ptr, finished(m).len, "usage", 5));
	assert_null(memmem(finished(m).ptr, finished(m).len, "model", 5));
	sheaf_message_free(m);
	sheaf_message_free(n);
}

static void roles(void **state)
{
	static const char *const bad[] = {"", "User", "users", "use", "human", "model"};
	(void)state;
	for (size_t i = 0; message_roles[i] != NULL; i++) {
		sheaf_message *m = sheaf_message_new(message_roles[i]);
		(void)finished(m);
		sheaf_message_free(m);
	}
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		sheaf_message *m = sheaf_message_new(bad[i]);
		assert_non_null(m);
		assert_code(SHEAF_INVALID, failure(m));
		assert_code(SHEAF_INVALID, sheaf_message_text(m, S("a")));
		assert_null(sheaf_message_json(m).ptr);
		sheaf_message_free(m);
	}
	sheaf_message *m = sheaf_message_new(NULL);
	assert_code(SHEAF_INVALID, failure(m));
	sheaf_message_free(m);
}

/* Every call on a message that could not be made answers like a failed one. */
static void no_message(void **state)
{
	(void)state;
	sheaf_usage usage = {0};
	assert_code(SHEAF_NOMEM, failure(NULL));
	assert_code(SHEAF_NOMEM, sheaf_message_text(NULL, S("a")));
	assert_code(SHEAF_NOMEM, sheaf_message_tool_use(NULL, S("a"), S("a"), S("a")));
	assert_code(SHEAF_NOMEM, sheaf_message_tool_result_begin(NULL, S("a"), S("a"), 0));
	assert_code(SHEAF_NOMEM, sheaf_message_tool_result_end(NULL));
	assert_code(SHEAF_NOMEM, sheaf_message_signature(NULL, S("a")));
	assert_code(SHEAF_NOMEM, sheaf_message_ext(NULL, S("a"), S("{}")));
	assert_code(SHEAF_NOMEM, sheaf_message_model(NULL, S("a")));
	assert_code(SHEAF_NOMEM, sheaf_message_usage(NULL, &usage));
	assert_null(sheaf_message_json(NULL).ptr);
	sheaf_message_mend_text(NULL, 1);
	assert_int_equal(sheaf_message_mended(NULL), 0);
	sheaf_message_free(NULL);
}

/* ---- Refusals ------------------------------------------------------------- */

typedef int (*mistake)(sheaf_message *m);

static int bad_text(sheaf_message *m)
{
	return sheaf_message_text(m, S("a\xff"));
}
static int bad_thinking(sheaf_message *m)
{
	return sheaf_message_thinking(m, S("\xc3"), NONE, 0);
}
static int bad_signature(sheaf_message *m)
{
	return sheaf_message_thinking(m, S("a"), S("\xc0"), 0);
}
static int bad_source(sheaf_message *m)
{
	return sheaf_message_image(m, S("file"), S("a"), S("b"));
}
static int no_source(sheaf_message *m)
{
	return sheaf_message_document(m, NONE, S("a"), S("b"));
}
static int bad_data(sheaf_message *m)
{
	return sheaf_message_image(m, S("url"), S("a"), S("\x80"));
}
static int bad_call_id(sheaf_message *m)
{
	return sheaf_message_tool_use(m, S("\xff"), S("a"), S("{}"));
}
static int bad_tool(sheaf_message *m)
{
	return sheaf_message_tool_use(m, S("a"), S("\xff"), S("{}"));
}
static int bad_input(sheaf_message *m)
{
	return sheaf_message_tool_use(m, S("a"), S("b"), S("{\"\xff\":1}"));
}
static int bad_result(sheaf_message *m)
{
	return sheaf_message_tool_result(m, S("a"), NONE, S("\xff"), 0);
}
static int bad_raw(sheaf_message *m)
{
	return sheaf_message_opaque(m, S("a"), S("{"));
}
static int no_raw(sheaf_message *m)
{
	return sheaf_message_opaque(m, S("a"), NONE);
}
static int bad_raw_text(sheaf_message *m)
{
	return sheaf_message_opaque(m, S("a"), S("\"\xff\""));
}
static int sign_nothing(sheaf_message *m)
{
	return sheaf_message_signature(m, S("a"));
}
static int end_nothing(sheaf_message *m)
{
	return sheaf_message_tool_result_end(m);
}
static int bad_model(sheaf_message *m)
{
	return sheaf_message_model(m, S("\xff"));
}
static int bad_provider(sheaf_message *m)
{
	return sheaf_message_provider(m, S("\xed\xa0\x80"));
}

static int sign_twice(sheaf_message *m)
{
	assert_code(0, sheaf_message_text(m, S("a")));
	assert_code(0, sheaf_message_signature(m, S("a")));
	return sheaf_message_signature(m, S("b"));
}

static int sign_image(sheaf_message *m)
{
	assert_code(0, sheaf_message_image(m, S("url"), NONE, S("b")));
	return sheaf_message_signature(m, S("b"));
}

static int sign_result(sheaf_message *m)
{
	assert_code(0, sheaf_message_tool_result_begin(m, S("a"), NONE, 0));
	assert_code(0, sheaf_message_text(m, S("a")));
	assert_code(0, sheaf_message_tool_result_end(m));
	return sheaf_message_signature(m, S("b"));
}

static int call_in_result(sheaf_message *m)
{
	assert_code(0, sheaf_message_tool_result_begin(m, S("a"), NONE, 0));
	return sheaf_message_tool_use(m, S("a"), S("b"), S("{}"));
}

static int result_in_result(sheaf_message *m)
{
	assert_code(0, sheaf_message_tool_result_begin(m, S("a"), NONE, 0));
	return sheaf_message_tool_result_begin(m, S("a"), NONE, 0);
}

static int thinking_in_result(sheaf_message *m)
{
	assert_code(0, sheaf_message_tool_result_begin(m, S("a"), NONE, 0));
	return sheaf_message_thinking(m, S("a"), NONE, 0);
}

static int extend_nothing(sheaf_message *m)
{
	return sheaf_message_ext(m, S("gemini"), S("{}"));
}

static int extend_twice(sheaf_message *m)
{
	assert_code(0, sheaf_message_text(m, S("a")));
	assert_code(0, sheaf_message_ext(m, S("gemini"), S("{}")));
	return sheaf_message_ext(m, S("gemini"), S("{}"));
}

static int extend_opaque(sheaf_message *m)
{
	assert_code(0, sheaf_message_opaque(m, S("gemini"), S("{}")));
	return sheaf_message_ext(m, S("gemini"), S("{}"));
}

static int extend_open_result(sheaf_message *m)
{
	assert_code(0, sheaf_message_tool_result_begin(m, S("a"), NONE, 0));
	return sheaf_message_ext(m, S("gemini"), S("{}"));
}

static int bad_ext(sheaf_message *m, sheaf_str format, sheaf_str members)
{
	assert_code(0, sheaf_message_text(m, S("a")));
	return sheaf_message_ext(m, format, members);
}

static int ext_no_object(sheaf_message *m)
{
	return bad_ext(m, S("gemini"), S("[]"));
}
static int ext_double_key(sheaf_message *m)
{
	return bad_ext(m, S("gemini"), S("{\"a\":1,\"\\u0061\":2}"));
}
static int ext_line_break(sheaf_message *m)
{
	return bad_ext(m, S("gemini"), S("{\"a\":\n1}"));
}
static int ext_with_format(sheaf_message *m)
{
	return bad_ext(m, S("gemini"), S("{\"form\\u0061t\":1}"));
}
static int ext_bad_format(sheaf_message *m)
{
	return bad_ext(m, S("\xff"), S("{\"a\":1}"));
}

static void mistakes_stick(void **state)
{
	static const mistake mistakes[] = {bad_text,
	                                   bad_thinking,
	                                   bad_signature,
	                                   bad_source,
	                                   no_source,
	                                   bad_data,
	                                   bad_call_id,
	                                   bad_tool,
	                                   bad_input,
	                                   bad_result,
	                                   bad_raw,
	                                   no_raw,
	                                   bad_raw_text,
	                                   sign_nothing,
	                                   end_nothing,
	                                   bad_model,
	                                   bad_provider,
	                                   sign_twice,
	                                   sign_image,
	                                   sign_result,
	                                   call_in_result,
	                                   result_in_result,
	                                   thinking_in_result,
	                                   extend_nothing,
	                                   extend_twice,
	                                   extend_opaque,
	                                   extend_open_result,
	                                   ext_no_object,
	                                   ext_double_key,
	                                   ext_line_break,
	                                   ext_with_format,
	                                   ext_bad_format};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
		sheaf_message *m = sheaf_message_new("user");
		if (mistakes[i](m) != SHEAF_INVALID)
			fail_msg("mistake %zu was not refused", i);
		assert_code(SHEAF_INVALID, sheaf_message_text(m, S("fine")));
		assert_code(SHEAF_INVALID, sheaf_message_stop_reason(m, S("fine")));
		assert_code(SHEAF_INVALID, failure(m));
		assert_null(sheaf_message_json(m).ptr);
		sheaf_message_free(m);
	}
}

/* An open tool result is not a failure of the message, only not the end of it. */
static void open_results_are_not_finished(void **state)
{
	(void)state;
	sheaf_message *m = sheaf_message_new("tool");
	assert_code(0, sheaf_message_tool_result_begin(m, S("a"), NONE, -1));
	assert_code(SHEAF_INVALID, failure(m));
	assert_code(0, sheaf_message_model(m, S("m")));
	assert_code(0, sheaf_message_text(m, S("x")));
	assert_code(0, sheaf_message_signature(m, S("s")));
	assert_null(sheaf_message_json(m).ptr);
	assert_code(0, sheaf_message_tool_result_end(m));
	assert_code(0, sheaf_message_text(m, S("y")));
	assert_str(finished(m),
	           S("{\"role\":\"tool\",\"content\":[{\"type\":\"tool_result\",\"tool_result\":"
	             "{\"tool_use_id\":\"a\",\"content\":[{\"type\":\"text\",\"text\":"
	             "{\"content\":\"x\",\"signature\":\"s\"}}]}},"
	             "{\"type\":\"text\",\"text\":{\"content\":\"y\"}}],\"model\":\"m\"}"));
	sheaf_message_free(m);
}

static void mends_when_told(void **state)
{
	(void)state;
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_mend_text(m, 1);
	assert_code(0, sheaf_message_text(m, S("a\xff"
	                                       "b\xc3")));
	assert_int_equal(sheaf_message_mended(m), 2);
	assert_code(0, sheaf_message_tool_use(m, S("c"), S("n"), S("{\"a\":\"\xff\"}")));
	assert_code(0, sheaf_message_tool_use(m, S("c"), S("n"), S("{\"a\":\n\"\xff\"}")));
	assert_code(0, sheaf_message_opaque(m, S("p"), S("\"\xff\"")));
	assert_int_equal(sheaf_message_mended(m), 5);
	sheaf_str json = finished(m);
	assert_non_null(memmem(json.ptr, json.len,
	                       "a\xef\xbf\xbd"
	                       "b\xef\xbf\xbd",
	                       8));
	assert_non_null(memmem(json.ptr, json.len, "\"input\":{\"a\":\"\xef\xbf\xbd\"}", 19));
	sheaf_message_mend_text(m, 0);
	assert_code(SHEAF_INVALID, sheaf_message_text(m, S("\xff")));
	sheaf_message_free(m);
}

/* ---- Tool input ----------------------------------------------------------- */

/* Whatever was given comes back; `embedded` says which way it was kept. */
static void check_input(sheaf_str input, bool embedded)
{
	sheaf_message *m = sheaf_message_new("assistant");
	assert_code(0, sheaf_message_tool_use(m, S("c"), S("n"), input));
	sheaf_str json = finished(m);
	if ((memmem(json.ptr, json.len, "\"input\":", 8) != NULL) != embedded)
		fail_msg("kept the wrong way: %.*s", (int)json.len, json.ptr);
	assert_int_equal(memmem(json.ptr, json.len, "\"input_text\":", 13) == NULL, embedded);
	reading r = read_back(json);
	assert_int_equal(r.view->part_count, 1);
	assert_int_equal(r.view->parts[0]->kind, SHEAF_PART_TOOL_USE);
	assert_str(r.view->parts[0]->input, input);
	reading_free(&r);
	sheaf_message_free(m);
}

static void input_comes_back(void **state)
{
	static const char *const embedded[] = {"{}",
	                                       "{\"a\":1.50,\"b\":[ 1 , 2 ]}",
	                                       "[]",
	                                       "\"text\"",
	                                       "1e5",
	                                       "null",
	                                       "true",
	                                       "-0",
	                                       "{\"\\u0061\":\"\\/\"}",
	                                       "{\"input\":{\"input\":1}}",
	                                       "\"\\u0000\""};
	static const char *const text[] = {"",
	                                   " {}",
	                                   "{} ",
	                                   "{\n}",
	                                   "{\"a\":\t1}",
	                                   "{\"a\":1,}",
	                                   "{\"a\":1,\"a\":2}",
	                                   "{\"a\":1,\"\\u0061\":2}",
	                                   "not json",
	                                   "{\"a\":\"\\ud800\"}",
	                                   "1 2",
	                                   "{\"a\":\"line\nbreak\"}",
	                                   "'a'",
	                                   "{\"a\":01}",
	                                   "\r\n",
	                                   "é"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(embedded); i++)
		check_input(sheaf_str_of(embedded[i]), true);
	for (size_t i = 0; i < COUNT_OF(text); i++)
		check_input(sheaf_str_of(text[i]), false);
	check_input(S("{\"a\":\"x\0y\"}"), false);
	check_input(S("\0"), false);
	sheaf_message *m = sheaf_message_new("assistant");
	assert_code(0, sheaf_message_tool_use(m, S("c"), S("n"), NONE));
	reading r = read_back(finished(m));
	assert_str(r.view->parts[0]->input, S("{}"));
	reading_free(&r);
	sheaf_message_free(m);
}

/* The limit is the record's: five levels are there before the input begins. */
static void input_depth(void **state)
{
	(void)state;
	for (size_t depth = 122; depth <= 130; depth++) {
		char text[300];
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		check_input(str_make(text, 2 * depth), depth + 5 <= SHEAF_DEPTH_MAX);
	}
}

static void opaque_comes_back(void **state)
{
	static const char *const raws[] = {"{\"a\":1}", "{\n\"a\":1}", "{\"a\":1,\"a\":2}", " 1 ",
	                                   "null"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(raws); i++) {
		sheaf_message *m = sheaf_message_new("assistant");
		assert_code(0, sheaf_message_opaque(m, S("p"), sheaf_str_of(raws[i])));
		reading r = read_back(finished(m));
		assert_int_equal(r.view->parts[0]->kind, SHEAF_PART_OPAQUE);
		assert_str(r.view->parts[0]->raw, sheaf_str_of(raws[i]));
		assert_str(r.view->parts[0]->provider, S("p"));
		reading_free(&r);
		sheaf_message_free(m);
	}
}

/* ---- Limits --------------------------------------------------------------- */

static void size_limit(void **state)
{
	(void)state;
	static const char around[] = "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
				     "{\"content\":\"\"}}]}";
	size_t most = SHEAF_RECORD_BYTES_MAX - (sizeof(around) - 1);
	char *text = repeat('x', most + 1);
	sheaf_message *m = sheaf_message_new("user");
	assert_code(0, sheaf_message_text(m, str_make(text, most)));
	assert_int_equal(finished(m).len, SHEAF_RECORD_BYTES_MAX);
	sheaf_message_free(m);
	m = sheaf_message_new("user");
	assert_code(SHEAF_TOO_LARGE, sheaf_message_text(m, str_make(text, most + 1)));
	assert_code(SHEAF_TOO_LARGE, failure(m));
	sheaf_message_free(m);
	free(text);
}

/* ---- From JSON ------------------------------------------------------------ */

static void from_json_keeps_bytes(void **state)
{
	static const char *const good[] = {
		"{\"role\":\"user\",\"content\":[]}",
		"{ \"content\" : \"plain\", \"role\" : \"user\" }",
		"{\"x\":1.0,\"role\":\"tool\",\"content\":[1,{\"type\":\"y\"}],\"usage\":null}",
		"{\"r\\u006fle\":\"us\\u0065r\",\"content\":\"\"}"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(good); i++) {
		sheaf_message *m = NULL;
		assert_code(0, sheaf_message_from_json(&m, sheaf_str_of(good[i]), NULL));
		assert_str(finished(m), sheaf_str_of(good[i]));
		assert_code(SHEAF_INVALID, sheaf_message_text(m, S("more")));
		sheaf_message_free(m);
		assert_code(0, sheaf_message_from_json(&m, sheaf_str_of(good[i]), NULL));
		assert_code(SHEAF_INVALID, sheaf_message_model(m, S("more")));
		sheaf_message_free(m);
	}
}

static void from_json_refuses(void **state)
{
	static const char *const bad[] = {"",
	                                  "{",
	                                  "[]",
	                                  "1",
	                                  "{}",
	                                  "{\"role\":\"user\"}",
	                                  "{\"content\":[]}",
	                                  "{\"role\":\"human\",\"content\":[]}",
	                                  "{\"role\":1,\"content\":[]}",
	                                  "{\"role\":\"user\",\"content\":{}}",
	                                  "{\"role\":\"user\",\"content\":null}",
	                                  "{\"role\":\"user\",\"content\":[]} x",
	                                  "{\"role\":\"user\",\n\"content\":[]}",
	                                  "{\"role\":\"user\",\"content\":[],\"role\":\"user\"}",
	                                  "{\"role\":\"user\",\"content\":\"\xff\"}",
	                                  "{\"role\":\"user\",\"content\":\"\\ud800\"}",
	                                  "{\"role\":\"user\",\"content\":\"a\tb\"}"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		sheaf_message *m = NULL;
		sheaf_error err;
		if (sheaf_message_from_json(&m, sheaf_str_of(bad[i]), &err) != SHEAF_INVALID)
			fail_msg("accepted %s", bad[i]);
		assert_null(m);
	}
	sheaf_message *m = NULL;
	assert_code(SHEAF_INVALID, sheaf_message_from_json(&m, NONE, NULL));
	assert_code(SHEAF_INVALID,
	            sheaf_message_from_json(&m, S("{\"role\":\"user\",\"content\":\"\0\"}"), NULL));
	assert_code(SHEAF_INVALID, sheaf_message_from_json(NULL, S("{}"), NULL));
}

/* A message stands at depth 2 of its record. */
static void from_json_limits(void **state)
{
	(void)state;
	for (size_t inner = 125; inner <= 127; inner++) {
		_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
		buf_lit(&b, "{\"role\":\"user\",\"content\":");
		for (size_t i = 0; i < inner; i++)
			buf_char(&b, '[');
		for (size_t i = 0; i < inner; i++)
			buf_char(&b, ']');
		buf_lit(&b, "}");
		sheaf_message *m = NULL;
		/* record, message, then the arrays */
		assert_code(inner + 2 <= SHEAF_DEPTH_MAX ? 0 : SHEAF_LIMIT,
		            sheaf_message_from_json(&m, buf_view(&b), NULL));
		sheaf_message_free(m);
	}
	char *large = repeat(' ', SHEAF_RECORD_BYTES_MAX + 1);
	static const char json[] = "{\"role\":\"user\",\"content\":[]}";
	memcpy(large, json, sizeof(json) - 1);
	sheaf_message *m = NULL;
	assert_code(0, sheaf_message_from_json(&m, str_make(large, SHEAF_RECORD_BYTES_MAX), NULL));
	sheaf_message_free(m);
	assert_code(SHEAF_TOO_LARGE,
	            sheaf_message_from_json(&m, str_make(large, SHEAF_RECORD_BYTES_MAX + 1), NULL));
	free(large);
}

/* ---- Memory --------------------------------------------------------------- */

static int build_all(void)
{
	const sheaf_usage usage = {1, 2, 3, 4, 5, 6};
	sheaf_str json;
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_mend_text(m, 1);
	(void)sheaf_message_text(m, S("a\xff"));
	(void)sheaf_message_tool_use(m, S("a"), S("b"), S("{\"a\":{\"\\u0062\":1}}"));
	(void)sheaf_message_ext(m, S("a"), S("{\"a\":{\"\\u0062\":1}}"));
	(void)sheaf_message_opaque(m, S("a"), S("{\n}"));
	(void)sheaf_message_tool_result_begin(m, S("a"), S("b"), 1);
	(void)sheaf_message_text(m, S("a"));
	(void)sheaf_message_tool_result_end(m);
	(void)sheaf_message_model(m, S("model"));
	(void)sheaf_message_usage(m, &usage);
	int rc = message_finish(m, &json, NULL);
	sheaf_message_free(m);
	return rc;
}

static int build_from_json(void)
{
	sheaf_message *m = NULL;
	int rc = sheaf_message_from_json(&m, S("{\"role\":\"user\",\"content\":[{\"a\":1}]}"),
	                                 NULL);
	sheaf_message_free(m);
	return rc;
}

static void memory_runs_out(void **state)
{
	(void)state;
	each_allocation_fails(build_all);
	each_allocation_fails(build_from_json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_text),
		cmocka_unit_test(every_part),
		cmocka_unit_test(members_of_a_format),
		cmocka_unit_test(members_depth_limit),
		cmocka_unit_test(reply_members_have_one_order),
		cmocka_unit_test(roles),
		cmocka_unit_test(no_message),
		cmocka_unit_test(mistakes_stick),
		cmocka_unit_test(open_results_are_not_finished),
		cmocka_unit_test(mends_when_told),
		cmocka_unit_test(input_comes_back),
		cmocka_unit_test(input_depth),
		cmocka_unit_test(opaque_comes_back),
		cmocka_unit_test(size_limit),
		cmocka_unit_test(from_json_keeps_bytes),
		cmocka_unit_test(from_json_refuses),
		cmocka_unit_test(from_json_limits),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
