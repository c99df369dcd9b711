/* Streams: cut anywhere, cut off anywhere, and not what they should be. */
#include "ingest_test.h"

/* What the reply to a stream must be stands beside it. */
static void says_what_it_should(const fixture *f)
{
	buf said = {0};
	size_t len;
	char *want = reply_file(f->name, "reply", &len);
	assert_int_equal(stream_says(&said, f->format, str_make(f->events, f->len), f->len, NULL),
	                 0);
	if (strcmp(said.ptr, want) != 0)
		fail_msg("%s says\n%sinstead of\n%s", f->name, said.ptr, want);
	free(want);
	buf_free(&said);
}

static void streams_say_what_they_should(void **state)
{
	(void)state;
	each_stream(says_what_it_should);
}

static void equals_its_body(const fixture *f)
{
	buf said = {0}, whole = {0};
	size_t len;
	char *body = reply_file(f->name, "json", &len);
	assert_int_equal(stream_says(&said, f->format, str_make(f->events, f->len), f->len, NULL),
	                 0);
	assert_int_equal(body_says(&whole, f->format, str_make(body, len)), 0);
	if (strcmp(said.ptr, whole.ptr) != 0)
		fail_msg("%s as a stream\n%sand whole\n%s", f->name, said.ptr, whole.ptr);
	/* A server that does not stream although it was asked to. */
	assert_int_equal(stream_says(&said, f->format, str_make(body, len), 7, NULL), 0);
	assert_string_equal(said.ptr, whole.ptr);
	free(body);
	buf_free(&said);
	buf_free(&whole);
}

static void streams_equal_bodies(void **state)
{
	(void)state;
	each_stream(equals_its_body);
}

static void same_in_pieces(const fixture *f)
{
	buf once = {0}, said = {0};
	chance c = {1};
	sheaf_str bytes = str_make(f->events, f->len);
	assert_int_equal(stream_says(&once, f->format, bytes, f->len, NULL), 0);
	for (size_t i = 0; i < 50; i++) {
		assert_int_equal(stream_says(&said, f->format, bytes, i < 4 ? i + 1 : 0, &c), 0);
		assert_string_equal(said.ptr, once.ptr);
	}
	buf_free(&once);
	buf_free(&said);
}

static void cut_anywhere(void **state)
{
	(void)state;
	each_stream(same_in_pieces);
}

/* ---- Streams that break off -------------------------------------------------- */

/* Words a whole reply has: what a cut one says must be among them. */
static bool is_among(const char *part, size_t len, const char *whole)
{
	char *copy = strndup(part, len);
	bool found = strstr(whole, copy) != NULL;
	free(copy);
	return found;
}

/* Every call of the cut reply must stand in the whole one as it is. */
static void check_calls(const char *cut, const char *whole)
{
	static const char call[] = "{\"type\":\"tool_use\"";
	for (const char *at = cut; (at = strstr(at, call)) != NULL; at++) {
		const char *end = strstr(at + 1, "},{\"type\"");
		if (end == NULL)
			end = strstr(at, "}],\"provider\"");
		assert_non_null(end);
		assert_true(is_among(at, (size_t)(end - at), whole));
	}
}

static void survives_every_cut(const fixture *f)
{
	buf said = {0}, whole = {0};
	size_t cut_count = 0;
	assert_int_equal(stream_says(&whole, f->format, str_make(f->events, f->len), f->len, NULL),
	                 0);
	for (size_t len = 0; len < f->len; len++) {
		assert_int_equal(
			stream_says(&said, f->format, str_make(f->events, len), 4096, NULL), 0);
		cut_count += strstr(said.ptr, ", cut,") != NULL;
		check_calls(said.ptr, whole.ptr);
		/* Nothing that is signed or kept as it came is there in part. */
		for (const char *at = said.ptr; (at = strstr(at, "\"signature\":\"")) != NULL; at++)
			assert_true(is_among(at, strcspn(at + 13, "\"") + 14, whole.ptr));
		for (const char *at = said.ptr; (at = strstr(at, "\"raw\":")) != NULL; at++)
			assert_true(is_among(at, strcspn(at, "}"), whole.ptr));
	}
	/* All but those that lack only what comes after the reason for the end. */
	assert_true(cut_count > f->len / 2);
	buf_free(&said);
	buf_free(&whole);
}

static void cut_off_anywhere(void **state)
{
	(void)state;
	each_stream(survives_every_cut);
}

static void cut_in_a_call(void **state)
{
	(void)state;
	buf said = {0};
	/* The first call is whole, the second is not. */
	size_t len;
	char *events = reply_file("openai-chat-tools", "sse", &len);
	char *at = strstr(events, "\"{}\"");
	assert_non_null(at);
	assert_int_equal(stream_says(&said, SHEAF_FORMAT_OPENAI_CHAT,
	                             str_make(events, (size_t)(at - events)), 99, NULL),
	                 0);
	assert_non_null(strstr(said.ptr, "stop tool_use, cut, 1 calls"));
	assert_non_null(strstr(said.ptr, "call_a"));
	assert_null(strstr(said.ptr, "call_b"));
	free(events);
	events = reply_file("openai-responses-tools", "sse", &len);
	at = strstr(events, "Second.");
	assert_non_null(at);
	assert_int_equal(stream_says(&said, SHEAF_FORMAT_OPENAI_RESPONSES,
	                             str_make(events, (size_t)(at - events)), 99, NULL),
	                 0);
	assert_non_null(strstr(said.ptr, "{\"text\":\"**Plan**\\n\\nFirst.\\n\\n\"}"));
	free(events);
	buf_free(&said);
}

/* What is signed, and what is said of a text, counts only when its end was seen. */
static void cut_before_the_end_of_a_block(void **state)
{
	static const struct {
		const char *file;
		const char *before; /* cut in front of the last of these */
		const char *has, *lacks;
	} rows[] = {
		{"anthropic-tools",
	         "event: content_block_stop\ndata: {\"type\":\"content_block_stop\","
	         "\"index\":0}",
	         "{\"text\":\"Two files, both at once.\"}", "signature"},
		{"anthropic-search",
	         "event: content_block_stop\ndata: {\"type\":\"content_block_stop\","
	         "\"index\":2}",
	         "{\"content\":\"It is so\"}", "citations"},
		{"openai-responses-text", "event: response.output_item.done",
	         "{\"content\":\"Hi there 語\"}", "msg_1"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		buf said = {0};
		size_t len;
		char *events = reply_file(rows[i].file, "sse", &len);
		char *at = strstr(events, rows[i].before);
		assert_non_null(at);
		assert_int_equal(stream_says(&said, format_of_file(rows[i].file),
		                             str_make(events, (size_t)(at - events)), 50, NULL),
		                 0);
		if (strstr(said.ptr, rows[i].has) == NULL ||
		    strstr(said.ptr, rows[i].lacks) != NULL)
			fail_msg("%s says\n%s", rows[i].file, said.ptr);
		free(events);
		buf_free(&said);
	}
}

/* ---- Streams that are not what they should be --------------------------------- */

typedef struct strange {
	int32_t format;
	const char *bytes;
	const char *says; /* part of the description */
} strange;

#define A SHEAF_FORMAT_ANTHROPIC
#define C SHEAF_FORMAT_OPENAI_CHAT
#define R SHEAF_FORMAT_OPENAI_RESPONSES
#define G SHEAF_FORMAT_GEMINI
#define START "data:{\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n"
#define BLOCK(i, block)                                                                            \
	"data:{\"type\":\"content_block_start\",\"index\":" #i ",\"content_block\":" block "}\n\n"
#define DELTA(i, delta)                                                                            \
	"data:{\"type\":\"content_block_delta\",\"index\":" #i ",\"delta\":" delta "}\n\n"
#define TEXT(text) DELTA(0, "{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define STOP(i) "data:{\"type\":\"content_block_stop\",\"index\":" #i "}\n\n"
#define CHUNK(delta) "data:{\"choices\":[{\"index\":0,\"delta\":" delta "}]}\n\n"
#define FINISH(word) "data:{\"choices\":[{\"delta\":{},\"finish_reason\":\"" word "\"}]}\n\n"

static const strange stranges[] = {
	/* Lines. */
	{C,
         "\xef\xbb\xbf"
         "data:{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
         "\"a\""},
	{C, "\xef\xbb\xbf\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\r", "\"a\""},
	{C, ":\n: ping\n\nretry: 10\nid: 7\ndata\ndata:{\"choices\":[\ndata:]}\n\n", "nothing"},
	{C, "data:{\"choices\":[{\"delta\":\ndata: {\"content\":\"a\"}}]}\n\n", "\"a\""},
	{C, CHUNK("{\"content\":\"a\"}") "data:[DONE]", "complete"},
	{C, FINISH("stop") "data:[DONE]\n\n", "complete"},
	{C, "data:[DONE]\n\n", "cut"},
	{A, CHUNK("{\"content\":\"a\"}") FINISH("stop") "data:[DONE]\n\n", "cut"},
	{R, CHUNK("{\"content\":\"a\"}") FINISH("stop") "data:[DONE]\n\n", "cut"},
	{G, CHUNK("{\"content\":\"a\"}") FINISH("stop") "data:[DONE]\n\n", "cut"},
	{C, "data:{\"choices\":[{\"delta\":\r\ndata: {\"content\":\"a\"}}]}\r\n\r\n", "\"a\""},
	{A,
         "event: content_block_start\r\ndata: {\"index\":0,\"content_block\":{\"type\":\"text\","
         "\"text\":\"a\"}}\r\n\r\n",
         "\"a\""},
	{C, "\n\n", "nothing"},
	{C, "", "cut, 0 calls"},
	{C, "<html>\n<body>\n\n", "nothing"},
	/* Events that come to nothing. */
	{A, TEXT("a") STOP(3) "data:{}\n\ndata:[]\n\ndata:1\n\n", "nothing"},
	{A, BLOCK(0, "{}") BLOCK(0, "7") TEXT("a"), "nothing"},
	{A,
         BLOCK(0, "{\"type\":\"text\",\"text\":\"\"}") DELTA(0, "{\"type\":\"signature_delta\"}"),
         "nothing"},
	{C, CHUNK("null") CHUNK("[]") CHUNK("{\"tool_calls\":7}") CHUNK("{\"content\":[7]}"),
         "cut"},
	{R, "data:{\"type\":\"response.output_item.done\",\"item\":7}\n\n", "nothing"},
	{G, "data:{\"candidates\":[{\"content\":{\"parts\":[7,{}]}}]}\n\n", "cut"},
	/* Deltas of another kind, and after the end. */
	{A,
         BLOCK(0, "{\"type\":\"text\",\"text\":\"a\"}")
                 DELTA(0, "{\"type\":\"thinking_delta\",\"thinking\":\"b\"}") STOP(0) TEXT("c"),
         "{\"content\":\"a\"}"},
	/* A call whose input is no JSON: broken off, or the model's own. */
	{A,
         BLOCK(0, "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{}}") DELTA(
		 0, "{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\"\"}")
                 STOP(0) "data:{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}\n\n",
         "stop length, complete, 0 calls"},
	{A,
         BLOCK(0, "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{}}") DELTA(
		 0, "{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\"\"}")
                 STOP(0) "data:{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n",
         "\"input_text\":\"{\\\"a\\\"\""},
	/* A server's tool whose input is none. */
	{A,
         BLOCK(0, "{\"type\":\"server_tool_use\",\"input\":{}}")
                 DELTA(0, "{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}") STOP(0),
         "nothing"},
	/* Servers that number calls in their own way. */
	{C,
         CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\","
               "\"arguments\":\"{}\"}}]}")
                 CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"g\","
                       "\"arguments\":\"{}\"}}]}") FINISH("stop"),
         "stop tool_use, complete, 2 calls"},
	{C,
         CHUNK("{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]"
               "}") CHUNK("{\"tool_calls\":[{\"function\":{\"arguments\":\"}\"}}]}")
                 CHUNK("{\"tool_calls\":[{\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":"
                       "{\"x\":1}}}]}") FINISH("tool_calls"),
         "\"id\":\"b\",\"name\":\"g\",\"input\":{\"x\":1}"},
	{C,
         CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\","
               "\"arguments\":\"{\"}}]}")
                 CHUNK("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\","
                       "\"arguments\":\"}\"}}]}") FINISH("tool_calls"),
         "complete, 1 calls"},
	{C,
         CHUNK("{\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"}}") FINISH("function_call"),
         "stop tool_use, complete, 1 calls"},
	{C,
         CHUNK("{\"content\":\"x\",\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{"
               "\"name\":\"f\",\"arguments\":\"{\"}}]}") FINISH("length"),
         "stop length, complete, 0 calls"},
	/* Errors in mid-stream: what was said stays. */
	{A,
         START BLOCK(
		 0,
		 "{\"type\":\"text\",\"text\":\"a\"}") "event: error\ndata:{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
                                                       "\"message\":\"Overloaded\"}}\n\n",
         "stop unknown, cut, 0 calls, fault server: Overloaded\nid m"},
	{C, "data:{\"error\":{\"message\":\"Slow down\",\"code\":\"rate_limit_exceeded\"}}\n\n",
         "fault rate: Slow down"},
	{R,
         "data:{\"type\":\"error\",\"code\":\"context_length_exceeded\",\"message\":\"Too "
         "long\",\"param\":null}\n\n",
         "fault overflow: Too long"},
	{R,
         "data:{\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\","
         "\"error\":{\"code\":\"server_error\",\"message\":\"Sorry\"},\"output\":[]}}\n\n",
         "fault server: Sorry\nid r"},
	{G, "data:{\"error\":{\"code\":503,\"message\":\"Busy\",\"status\":\"UNAVAILABLE\"}}\n\n",
         "fault server: Busy"},
	{G, "[{\"error\":{\"code\":429,\"message\":\"Quota\",\"status\":\"RESOURCE_EXHAUSTED\"}}]",
         "fault rate: Quota"},
	/* Broken text. */
	{C, CHUNK("{\"content\":\"a\xff\xc3\"}") CHUNK("{\"content\":\"\\udc00z\"}"),
         "a\ufffd\ufffd\ufffdz"},
	/* A signature ends a text. */
	{G,
         "data:{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\",\"thoughtSignature\":"
         "\"s\"}]}}]}\n\ndata:{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"b\"}]}}]}\n\n",
         "{\"content\":\"a\",\"signature\":\"s\"}},{\"type\":\"text\",\"text\":{\"content\":\"b\"}}"},
	{G, "data:{\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n", "stop refusal, complete"},
};

static void strange_streams(void **state)
{
	(void)state;
	chance c = {7};
	for (size_t i = 0; i < COUNT_OF(stranges); i++) {
		buf said = {0};
		for (size_t step = 0; step < 3; step++) {
			int rc = stream_says(&said, stranges[i].format,
			                     sheaf_str_of(stranges[i].bytes), step, &c);
			if (rc != 0 || strstr(said.ptr, stranges[i].says) == NULL)
				fail_msg("%s\nsays (%s)\n%s", stranges[i].bytes,
				         sheaf_code_name(rc), said.ptr);
		}
		buf_free(&said);
	}
}

/* What is no JSON ends a stream; what came before it stays. */
static void no_json(void **state)
{
	(void)state;
	sheaf_error err = {0};
	sheaf_reply *r = NULL;
	sheaf_stream *s = sheaf_stream_new(C, S("me"), S("m"), NULL, NULL);
	assert_int_equal(sheaf_stream_feed(s, S(CHUNK("{\"content\":\"a\"}")), &err), 0);
	assert_int_equal(sheaf_stream_feed(s, S("data: {oops}\n\n"), &err), SHEAF_FORMAT);
	assert_int_equal(err.code, SHEAF_FORMAT);
	err.code = 0;
	assert_int_equal(sheaf_stream_feed(s, S(CHUNK("{\"content\":\"b\"}")), &err), SHEAF_FORMAT);
	assert_int_equal(err.code, SHEAF_FORMAT);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sheaf_stream_reply(&r, s, NULL), 0);
		assert_int_equal(r->complete, 0);
		sheaf_str want = S("{\"role\":\"assistant\",\"content\":[{\"type\":\"text\","
		                   "\"text\":{\"content\":\"a\"}}],\"provider\":\"me\","
		                   "\"model\":\"m\"}");
		assert_true(str_eq(sheaf_message_json(r->message), want));
		sheaf_reply_free(r);
	}
	sheaf_stream_free(s);
	/* Lines of one event are lines, not one. */
	s = sheaf_stream_new(C, NONE, NONE, NULL, NULL);
	assert_int_equal(sheaf_stream_feed(s, S("data: {\"a\":1\ndata: 2}\n\n"), NULL),
	                 SHEAF_FORMAT);
	sheaf_stream_free(s);
	assert_null(sheaf_stream_new(0, NONE, NONE, NULL, NULL));
	assert_int_equal(sheaf_stream_feed(NULL, S("a"), NULL), SHEAF_NOMEM);
	assert_int_equal(sheaf_stream_reply(&r, NULL, NULL), SHEAF_INVALID);
	assert_int_equal(sheaf_stream_done(NULL), 0);
	sheaf_stream_free(NULL);
	sheaf_reply_free(NULL);
}

static int feed_many(sheaf_stream *s, const char *piece, size_t times)
{
	sheaf_str bytes = sheaf_str_of(piece);
	int rc = 0;
	for (size_t i = 0; i < times && rc == 0; i++)
		rc = sheaf_stream_feed(s, bytes, NULL);
	return rc;
}

/* Lines, events, replies and lists of blocks that never end. */
static void without_end(void **state)
{
	(void)state;
	static char filler[1 << 16];
	memset(filler, 'x', sizeof(filler) - 1);
	const size_t too_many = 40u * 1024 * 1024 / sizeof(filler);
	static const char *const openings[] = {"x", "data: ", "event: ", "{"};
	for (size_t i = 0; i < COUNT_OF(openings); i++) {
		sheaf_stream *s = sheaf_stream_new(C, NONE, NONE, NULL, NULL);
		assert_int_equal(feed_many(s, openings[i], 1), 0);
		assert_int_equal(feed_many(s, filler, too_many), SHEAF_TOO_LARGE);
		assert_int_equal(feed_many(s, "x", 1), SHEAF_TOO_LARGE);
		sheaf_stream_free(s);
	}
	sheaf_reply *r = NULL;
	sheaf_stream *s = sheaf_stream_new(C, NONE, NONE, NULL, NULL);
	buf chunk = {0};
	chunk.max = SIZE_MAX;
	buf_format(&chunk, "data:{\"choices\":[{\"delta\":{\"content\":\"%s\"}}]}\n\n", filler);
	buf_nul(&chunk);
	assert_int_equal(feed_many(s, chunk.ptr, too_many), SHEAF_TOO_LARGE);
	assert_int_equal(sheaf_stream_reply(&r, s, NULL), SHEAF_TOO_LARGE);
	sheaf_stream_free(s);
	buf_free(&chunk);
	/* Each of two blocks would be small enough. */
	s = sheaf_stream_new(A, NONE, NONE, NULL, NULL);
	chunk.max = SIZE_MAX;
	buf_format(&chunk, DELTA(0, "{\"type\":\"text_delta\",\"text\":\"%s\"}"), filler);
	buf_nul(&chunk);
	int rc = 0;
	for (size_t i = 0; i < 2 && rc == 0; i++) {
		assert_int_equal(feed_many(s, BLOCK(0, "{\"type\":\"text\"}"), 1), 0);
		rc = feed_many(s, chunk.ptr, 160);
	}
	assert_int_equal(rc, SHEAF_TOO_LARGE);
	sheaf_stream_free(s);
	buf_free(&chunk);
	s = sheaf_stream_new(A, NONE, NONE, NULL, NULL);
	assert_int_equal(feed_many(s, BLOCK(0, "{\"type\":\"text\"}"), 100000), SHEAF_TOO_LARGE);
	sheaf_stream_free(s);
}

static void put_block(buf *out, const char *members, size_t depth)
{
	buf_format(out, "data:{\"type\":\"content_block_start\",\"content_block\":{%s", members);
	for (size_t i = 0; i < depth; i++)
		buf_char(out, '[');
	for (size_t i = 0; i < depth; i++)
		buf_char(out, ']');
	buf_lit(out, "}}\n\n" STOP(0));
}

/* Nesting that no record can hold: kept as text where it is somebody's, else left out. */
static void deep(void **state)
{
	static const size_t depths[] = {SHEAF_DEPTH_MAX - 5, SHEAF_DEPTH_MAX, 100000};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(depths); i++) {
		buf events = {0}, said = {0};
		events.max = SIZE_MAX;
		put_block(&events, "\"type\":\"text\",\"text\":\"a\",\"new\":", depths[i]);
		put_block(&events, "\"type\":\"new\",\"new\":", depths[i]);
		put_block(&events, "\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":",
		          depths[i]);
		assert_int_equal(stream_says(&said, A, buf_view(&events), 1000, NULL), 0);
		assert_non_null(
			strstr(said.ptr, "{\"type\":\"text\",\"text\":{\"content\":\"a\"}}"));
		assert_non_null(strstr(said.ptr, "\"raw_text\":\"{\\\"type\\\":\\\"new\\\""));
		if (i != 0)
			assert_non_null(strstr(said.ptr, "\"name\":\"f\",\"input_text\":\"[[["));
		buf_free(&events);
		buf_free(&said);
	}
}

/* ---- What a reader sees -------------------------------------------------------- */

static void note_delta(void *ctx, int32_t kind, sheaf_str text)
{
	static const char *const names[] = {"", "text", "thinking", "call"};
	buf *out = ctx;
	buf_format(out, "%s(%.*s)", names[kind], (int)text.len, text.ptr);
}

static void deltas(void **state)
{
	static const struct {
		const char *file;
		const char *seen;
	} rows[] = {
		{"anthropic-tools", "thinking(Two files, )thinking(both at once.)"
	                            "text(I will read them.)call(read_file)call(now)"},
		{"openai-chat-tools", "text(Looking.)call(read_file)call(ls)"},
		{"openai-chat-reasoning", "thinking(Let me )thinking(see.)text(Done.)"},
		{"openai-responses-tools",
	         "thinking(**Plan**\n\n)thinking(First.)thinking(\n\n)thinking(Second.)"
	         "text(On it.)call(read_file)call(ls)"},
		{"gemini-tools", "text(Now: )call(read_file)call(read_file)call(ls)"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		buf seen = {0};
		size_t len;
		seen.max = SIZE_MAX;
		char *events = reply_file(rows[i].file, "sse", &len);
		sheaf_stream *s = sheaf_stream_new(format_of_file(rows[i].file), NONE, NONE,
		                                   note_delta, &seen);
		assert_int_equal(sheaf_stream_done(s), 0);
		assert_int_equal(sheaf_stream_feed(s, str_make(events, len), NULL), 0);
		assert_int_equal(sheaf_stream_done(s), 1);
		buf_nul(&seen);
		assert_string_equal(seen.ptr, rows[i].seen);
		sheaf_stream_free(s);
		free(events);
		buf_free(&seen);
	}
}

/* ---- Memory -------------------------------------------------------------------- */

static const fixture *failing;

static int read_stream(void)
{
	sheaf_stream *s = sheaf_stream_new(failing->format, S("p"), S("m"), NULL, NULL);
	sheaf_reply *r = NULL;
	int rc = s != NULL ? 0 : SHEAF_NOMEM;
	for (size_t at = 0; at < failing->len && rc == 0; at += 700) {
		size_t n = failing->len - at < 700 ? failing->len - at : 700;
		rc = sheaf_stream_feed(s, str_make(failing->events + at, n), NULL);
	}
	int end = s != NULL ? sheaf_stream_reply(&r, s, NULL) : 0;
	/* A failure is not forgotten. */
	if (rc != 0 && s != NULL)
		assert_int_equal(end, rc);
	sheaf_reply_free(r);
	sheaf_stream_free(s);
	return rc != 0 ? rc : end;
}

static void fails_cleanly(const fixture *f)
{
	failing = f;
	each_allocation_fails(read_stream);
}

static void memory_runs_out(void **state)
{
	(void)state;
	each_stream(fails_cleanly);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_say_what_they_should),
		cmocka_unit_test(streams_equal_bodies),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(cut_off_anywhere),
		cmocka_unit_test(cut_in_a_call),
		cmocka_unit_test(cut_before_the_end_of_a_block),
		cmocka_unit_test(strange_streams),
		cmocka_unit_test(no_json),
		cmocka_unit_test(without_end),
		cmocka_unit_test(deep),
		cmocka_unit_test(deltas),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
