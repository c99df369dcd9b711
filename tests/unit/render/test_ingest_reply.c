/* Replies that come whole: what they end with, what they cost, and what went wrong. */
#include "ingest_test.h"

#define A SHEAF_FORMAT_ANTHROPIC
#define C SHEAF_FORMAT_OPENAI_CHAT
#define R SHEAF_FORMAT_OPENAI_RESPONSES
#define G SHEAF_FORMAT_GEMINI

typedef struct row {
	int32_t format;
	const char *body;
	const char *says; /* part of the description */
} row;

static void check_rows(const row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		buf said = {0};
		int rc = body_says(&said, rows[i].format, sheaf_str_of(rows[i].body));
		if (rc != 0 || strstr(said.ptr, rows[i].says) == NULL)
			fail_msg("%s\nsays (%s)\n%sand not\n%s", rows[i].body, sheaf_code_name(rc),
			         rc == 0 ? said.ptr : "", rows[i].says);
		buf_free(&said);
	}
}

#define ENDS_A(word)                                                                               \
	"{\"content\":[{\"type\":\"text\",\"text\":\"x\"}],\"stop_reason\":\"" word "\"}"
#define ENDS_C(word)                                                                               \
	"{\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":\"" word "\"}]}"
#define ENDS_R(status, reason)                                                                     \
	"{\"status\":\"" status "\",\"incomplete_details\":{\"reason\":\"" reason                  \
	"\"},\"output\":[]}"
#define ENDS_G(word) "{\"candidates\":[{\"finishReason\":\"" word "\"}]}"

static void reasons_to_stop(void **state)
{
	static const row rows[] = {
		{A, ENDS_A("end_turn"), "stop end"},
		{A, ENDS_A("stop_sequence"), "stop end"},
		{A, ENDS_A("max_tokens"), "stop length"},
		{A, ENDS_A("pause_turn"), "stop pause"},
		{A, ENDS_A("refusal"), "stop refusal"},
		{A, ENDS_A("model_context_window_exceeded"), "stop overflow"},
		{A, ENDS_A("new_reason"), "stop unknown"},
		{A, ENDS_A("new_reason"), "\"stop_reason\":\"new_reason\""},
		/* Calls decide, not the word. */
		{A, ENDS_A("tool_use"), "stop end, complete, 0 calls"},
		{C, ENDS_C("stop"), "stop end"},
		{C, ENDS_C("length"), "stop length"},
		{C, ENDS_C("content_filter"), "stop refusal"},
		{C, ENDS_C("eos"), "stop unknown"},
		{C,
	         "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":"
	         "\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}]}",
	         "stop tool_use, complete, 1 calls"},
		{R, ENDS_R("incomplete", "max_output_tokens"), "stop length"},
		{R, ENDS_R("incomplete", "content_filter"), "stop refusal"},
		{R, ENDS_R("cancelled", ""), "stop unknown"},
		{R, "{\"status\":\"completed\",\"output\":[]}", "stop end"},
		{G, ENDS_G("STOP"), "stop end"},
		{G, ENDS_G("MAX_TOKENS"), "stop length"},
		{G, ENDS_G("SAFETY"), "stop refusal"},
		{G, ENDS_G("MALFORMED_FUNCTION_CALL"), "stop unknown"},
	};
	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

#define USED_A(usage) "{\"content\":[],\"usage\":" usage "}"
#define USED_C(usage) "{\"choices\":[],\"usage\":" usage "}"
#define USED_R(usage) "{\"output\":[],\"usage\":" usage "}"
#define USED_G(usage) "{\"candidates\":[],\"usageMetadata\":" usage "}"

/* Input excludes what a cache had to do with, output includes thinking, whoever counts. */
static void tokens(void **state)
{
	static const row rows[] = {
		{A,
	         USED_A("{\"input_tokens\":1,\"cache_creation_input_tokens\":5,\"output_tokens\":2}"),
	         "input 1, cache_read 0, cache_write 5 and 0, output 2"},
		{A,
	         USED_A("{\"input_tokens\":1,\"cache_creation_input_tokens\":5,\"cache_creation\":{"
	                "\"ephemeral_1h_input_tokens\":5}}"),
	         "cache_write 0 and 5"},
		{A,
	         USED_A("{\"cache_creation\":{\"ephemeral_1h_input_tokens\":4,"
	                "\"ephemeral_5m_input_tokens\":3}}"),
	         "cache_write 3 and 4"},
		{C,
	         USED_C("{\"prompt_tokens\":10,\"completion_tokens\":7,\"prompt_tokens_details\":{"
	                "\"cached_tokens\":4,\"cache_write_tokens\":3}}"),
	         "input 3, cache_read 4, cache_write 3 and 0, output 7, reasoning 0"},
		{C,
	         USED_C("{\"prompt_tokens\":10,\"completion_tokens\":7,\"total_tokens\":22,"
	                "\"completion_tokens_details\":{\"reasoning_tokens\":5}}"),
	         "output 12, reasoning 5"},
		{C,
	         USED_C("{\"prompt_tokens\":10,\"completion_tokens\":7,\"total_tokens\":17,"
	                "\"completion_tokens_details\":{\"reasoning_tokens\":5}}"),
	         "output 7, reasoning 5"},
		{C, USED_C("{\"prompt_tokens\":1,\"prompt_cache_hit_tokens\":9}"),
	         "input 0, cache_read 9"},
		{C, USED_C("{\"prompt_tokens\":-1,\"completion_tokens\":1.5}"),
	         "input 0, cache_read 0, cache_write 0 and 0, output 0"},
		{R,
	         USED_R("{\"input_tokens\":10,\"output_tokens\":7,\"input_tokens_details\":{"
	                "\"cached_tokens\":4},\"output_tokens_details\":{\"reasoning_tokens\":6}}"),
	         "input 6, cache_read 4, cache_write 0 and 0, output 7, reasoning 6"},
		{G,
	         USED_G("{\"promptTokenCount\":10,\"cachedContentTokenCount\":4,"
	                "\"toolUsePromptTokenCount\":2,\"candidatesTokenCount\":3,"
	                "\"thoughtsTokenCount\":5}"),
	         "input 8, cache_read 4, cache_write 0 and 0, output 8, reasoning 5"},
	};
	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

/* Nothing was said: no message, but what is known of the reply. */
static void nothing_said(void **state)
{
	static const row rows[] = {
		{A, "{\"id\":\"m\",\"model\":\"x\",\"content\":[],\"stop_reason\":\"end_turn\"}",
	         "id m, model x\ninput 0, cache_read 0, cache_write 0 and 0, output 0, reasoning "
	         "0\nnothing\n"},
		{A, "{\"content\":[{\"type\":\"text\",\"text\":\"\"}]}", "model asked"},
		{C, "{\"choices\":[]}", "nothing"},
		{C, "{\"choices\":[{\"index\":1,\"message\":{\"content\":\"x\"}}]}", "nothing"},
	};
	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

/* What belongs to no format, and what each keeps of it. */
static void unknown_parts(void **state)
{
	static const row rows[] = {
		{A, "{\"content\":[{\"type\":\"new\",\"a\": 1.0}]}",
	         "{\"provider\":\"anthropic\",\"raw\":{\"type\":\"new\",\"a\": 1.0}}"},
		{C,
	         "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"c\",\"type\":\"custom\","
	         "\"custom\":{}}]}}]}",
	         "\"raw\":{\"id\":\"c\",\"type\":\"custom\",\"custom\":{}}"},
		/* The older form of a call, beside what is in no format; and beside its newer one. */
		{C,
	         "{\"choices\":[{\"message\":{\"content\":[{\"type\":\"new\"}],"
	         "\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"}}}]}",
	         "\"name\":\"f\",\"input\":{}"},
		{C,
	         "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"c\",\"index\":0,"
	         "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}],"
	         "\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"}}}]}",
	         "\"name\":\"f\",\"input\":{}"},
		{R,
	         "{\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_audio\"}]}]}",
	         "\"raw\":{\"type\":\"output_audio\"}"},
		{G, "{\"candidates\":[{\"content\":{\"parts\":[{\"new\":1}]}}]}",
	         "{\"provider\":\"gemini\",\"raw\":{\"new\":1}}"},
		/* Two members of one name, where the format looks and where it does not. */
		{A,
	         "{\"content\":[{\"type\":\"text\",\"text\":\"a\",\"text\":\"b\",\"type\":\"x\"}]}",
	         "{\"content\":\"a\"}"},
		{A, "{\"content\":[{\"type\":\"new\",\"a\":1,\"a\":2}]}", "\"raw_text\":\"{"},
		{A,
	         "{\"content\":[{\"type\":\"text\",\"text\":\"a\",\"x\":1,\"x\":2,\"format\":3}]}",
	         "{\"content\":\"a\"}"},
		{A, "{\"content\":[{\"type\":\"text\",\"text\":\"a\",\"format\":3,\"x\":2}]}",
	         "\"ext\":{\"format\":\"anthropic\",\"x\":2}"},
	};
	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

static void no_replies(void **state)
{
	static const char *const bad[] = {"", " ", "{", "1", "{}", "[]", "null", "\"x\"", "{} {}"};
	(void)state;
	for (int32_t format = A; format <= G; format++) {
		for (size_t i = 0; i < COUNT_OF(bad); i++) {
			sheaf_reply *r = NULL;
			sheaf_error err = {0};
			/* An empty list of chunks is a reply of nothing. */
			int want = format == G && strcmp(bad[i], "[]") == 0 ? 0 : SHEAF_FORMAT;
			assert_int_equal(sheaf_ingest_reply(&r, format, NONE, NONE,
			                                    sheaf_str_of(bad[i]), &err),
			                 want);
			assert_int_equal(err.code, want);
			sheaf_reply_free(r);
		}
	}
	sheaf_reply *r = NULL;
	assert_int_equal(sheaf_ingest_reply(NULL, A, NONE, NONE, S("{}"), NULL), SHEAF_INVALID);
	assert_int_equal(sheaf_ingest_reply(&r, 0, NONE, NONE, S("{}"), NULL), SHEAF_INVALID);
}

/* ---- Failures -------------------------------------------------------------- */

static void faults(void **state)
{
	static const struct {
		int32_t format;
		int32_t status;
		const char *body;
		int32_t fault;
	} rows[] = {
		{A, 400,
	         "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
	         "\"prompt is too long: 210000 tokens > 200000 maximum\"}}",
	         SHEAF_FAULT_OVERFLOW},
		{A, 400,
	         "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and "
	         "`max_tokens` exceed context limit: 1 + 2 > 2\"}}",
	         SHEAF_FAULT_OVERFLOW},
		{A, 413, "{\"error\":{\"type\":\"request_too_large\"}}", SHEAF_FAULT_OVERFLOW},
		{C, 400,
	         "{\"error\":{\"message\":\"This model's maximum context length is 8192 tokens.\","
	         "\"type\":\"invalid_request_error\",\"code\":\"context_length_exceeded\"}}",
	         SHEAF_FAULT_OVERFLOW},
		{C, 400, "{\"error\":{\"message\":\"x\",\"code\":\"context_length_exceeded\"}}",
	         SHEAF_FAULT_OVERFLOW},
		{R, 400,
	         "{\"error\":{\"message\":\"Your input exceeds the context window of this model.\"}}",
	         SHEAF_FAULT_OVERFLOW},
		{G, 400,
	         "{\"error\":{\"code\":400,\"message\":\"The input token count (1200000) exceeds the "
	         "maximum number of tokens allowed (1048576).\",\"status\":\"INVALID_ARGUMENT\"}}",
	         SHEAF_FAULT_OVERFLOW},
		{C, 413, "<html>too large</html>", SHEAF_FAULT_OVERFLOW},
		{C, 500, "the prompt exceeds the available context size", SHEAF_FAULT_OVERFLOW},
		{A, 429, "{\"error\":{\"type\":\"rate_limit_error\",\"message\":\"x\"}}",
	         SHEAF_FAULT_RATE},
		{C, 429, "", SHEAF_FAULT_RATE},
		{G, 429,
	         "[{\"error\":{\"code\":429,\"message\":\"You exceeded your current quota, please "
	         "check your plan and billing details.\",\"status\":\"RESOURCE_EXHAUSTED\"}}]",
	         SHEAF_FAULT_RATE},
		{C, 429, "{\"error\":{\"type\":\"insufficient_quota\",\"message\":\"x\"}}",
	         SHEAF_FAULT_AUTH},
		{A, 400,
	         "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Your credit balance "
	         "is too low\"}}",
	         SHEAF_FAULT_AUTH},
		{A, 401, "{\"error\":{\"type\":\"authentication_error\"}}", SHEAF_FAULT_AUTH},
		{C, 403, "forbidden", SHEAF_FAULT_AUTH},
		{G, 400,
	         "{\"error\":{\"code\":400,\"message\":\"API key not valid. Please pass a valid API "
	         "key.\",\"status\":\"INVALID_ARGUMENT\"}}",
	         SHEAF_FAULT_AUTH},
		{A, 529, "{\"error\":{\"type\":\"overloaded_error\"}}", SHEAF_FAULT_SERVER},
		{C, 500, "", SHEAF_FAULT_SERVER},
		{C, 502, "<html>", SHEAF_FAULT_SERVER},
		{C, 503, "{}", SHEAF_FAULT_SERVER},
		{C, 408, "", SHEAF_FAULT_SERVER},
		{C, 400, "{\"error\":{\"message\":\"no\"}}", SHEAF_FAULT_REQUEST},
		{C, 404, "{\"error\":\"model not found\"}", SHEAF_FAULT_REQUEST},
		{C, 422, "{\"detail\":\"x\"}", SHEAF_FAULT_REQUEST},
		{C, 200, "{\"choices\":[]}", SHEAF_FAULT_NONE},
		{C, 200, "not JSON", SHEAF_FAULT_NONE},
		{C, 0, "", SHEAF_FAULT_NONE},
		/* Inside of a stream nobody says a status. */
		{A, 0, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
	         SHEAF_FAULT_SERVER},
		{A, 0, "{\"type\":\"error\",\"error\":{\"type\":\"api_error\"}}",
	         SHEAF_FAULT_SERVER},
		{A, 0, "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}",
	         SHEAF_FAULT_RATE},
		{A, 0, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\"}}",
	         SHEAF_FAULT_REQUEST},
		{C, 200, "{\"error\":{\"code\":502,\"message\":\"upstream\"}}", SHEAF_FAULT_SERVER},
		{C, 200, "{\"error\":{\"code\":401,\"message\":\"x\"}}", SHEAF_FAULT_AUTH},
		{C, 0, "{\"object\":\"error\",\"message\":\"maximum context length\"}",
	         SHEAF_FAULT_OVERFLOW},
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		int32_t fault = sheaf_ingest_fault(rows[i].format, rows[i].status,
		                                   sheaf_str_of(rows[i].body));
		if (fault != rows[i].fault)
			fail_msg("%d %s is %s and not %s", (int)rows[i].status, rows[i].body,
			         fault_name(fault), fault_name(rows[i].fault));
	}
	assert_int_equal(sheaf_ingest_fault(C, 500, NONE), SHEAF_FAULT_SERVER);
}

static void error_bodies(void **state)
{
	static const row rows[] = {
		{A,
	         "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Over\"}}",
	         "stop unknown, cut, 0 calls, fault server: Over\n"},
		{C, "{\"error\":\"just words\"}", "fault server: just words\n"},
		{C, "{\"error\":{\"code\":\"invalid_api_key\"}}", "fault auth: invalid_api_key\n"},
		{R,
	         "{\"id\":\"r\",\"status\":\"failed\",\"output\":[],\"error\":{\"code\":"
	         "\"rate_limit_exceeded\",\"message\":\"slow\"}}",
	         "fault rate: slow\n"},
		{G,
	         "[{\"error\":{\"code\":400,\"message\":\"bad\",\"status\":\"INVALID_ARGUMENT\"}}]",
	         "fault request: bad\n"},
	};
	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

/* ---- Memory ---------------------------------------------------------------- */

static const char *failing_body;
static size_t failing_len;
static int32_t failing_format;

static int read_body(void)
{
	sheaf_reply *r = NULL;
	int rc = sheaf_ingest_reply(&r, failing_format, S("p"), S("m"),
	                            str_make(failing_body, failing_len), NULL);
	sheaf_reply_free(r);
	return rc;
}

static void fails_cleanly(const fixture *f)
{
	char *body = reply_file(f->name, "json", &failing_len);
	failing_body = body;
	failing_format = f->format;
	each_allocation_fails(read_body);
	free(body);
}

static void memory_runs_out(void **state)
{
	(void)state;
	each_stream(fails_cleanly);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reasons_to_stop), cmocka_unit_test(tokens),
		cmocka_unit_test(nothing_said),    cmocka_unit_test(unknown_parts),
		cmocka_unit_test(no_replies),      cmocka_unit_test(faults),
		cmocka_unit_test(error_bodies),    cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
