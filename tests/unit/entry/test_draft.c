/* Drafts: what a caller may store, every limit from both sides, every refusal by name. */
#include "entry_test.h"

#include "base/uuid.h"
#include "entry/record.h"

static int try(const char *type, sheaf_str body, const sheaf_entry_options *o)
{
	draft d;
	sheaf_error err = {0};
	int rc = draft_init(&d, sheaf_str_of(type), body, false, o, &err);
	assert_int_equal(rc, err.code);
	draft_free(&d); /* after a failure too */
	return rc;
}

#define HELLO S("{\"message\":{\"role\":\"user\",\"content\":\"Hello\"}}")

static void accepts(const char *type, const char *body)
{
	draft d;
	sheaf_error err = {0};
	if (draft_init(&d, sheaf_str_of(type), sheaf_str_of(body), false, NULL, &err) != 0)
		fail_msg("%s %s: %s", type, body, err.message);
	draft_free(&d);
	/* The same members as trusted text. */
	sheaf_str members = {body + 1, strlen(body) - 2};
	if (draft_init(&d, sheaf_str_of(type), members, true, NULL, &err) != 0)
		fail_msg("trusted %s %s: %s", type, body, err.message);
	assert_str(buf_view(&d.body), members);
	draft_free(&d);
}

static void refuses(int code, const char *type, const char *body)
{
	sheaf_error err = {0};
	draft d;
	int rc = draft_init(&d, sheaf_str_of(type), sheaf_str_of(body), false, NULL, &err);
	if (rc != code)
		fail_msg("%s %.80s: %s %s", type, body, sheaf_code_name(rc), err.message);
	if (rc == 0)
		draft_free(&d);
}

/* ---- The envelope ----------------------------------------------------------- */

static void fills_in_defaults(void **state)
{
	(void)state;
	draft d;
	assert_code(0, draft_init(&d, S("message"), HELLO, false, NULL, NULL));
	assert_int_equal(d.kind, SHEAF_KIND_MESSAGE);
	assert_str(d.type, S("message"));
	assert_true(uuid7_is(draft_id(&d)));
	assert_true(d.id_fresh);
	assert_false(d.has_parent);
	assert_int_equal(d.branch_len, 0);
	int64_t parsed;
	assert_true(clock_parse(sheaf_str_of(d.timestamp), &parsed));
	assert_int_equal(parsed, d.time_us);
	assert_str(buf_view(&d.body), S("\"message\":{\"role\":\"user\",\"content\":\"Hello\"}"));
	draft_free(&d);
}

static void takes_what_is_given(void **state)
{
	(void)state;
	draft d;
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	o.id = S("é 1");
	o.branch = S("side");
	o.has_parent = 1;
	o.parent_id = S("p");
	o.time_us = 1;
	o.turn = S("t\"1");
	o.author = S("me");
	o.agent = S("a/b");
	o.invocation_id = S("i");
	o.extra = S(" { \"metadata\" : { \"k\" : 1.0 } , \"x\":[ ] } ");
	assert_code(0, draft_init(&d, S("message"), HELLO, false, &o, NULL));
	assert_str(draft_id(&d), S("é 1"));
	assert_false(d.id_fresh);
	assert_string_equal(d.branch, "side");
	assert_true(d.has_parent);
	assert_string_equal(d.parent_id, "p");
	assert_string_equal(d.timestamp, "1970-01-01T00:00:00.000001Z");
	assert_str(buf_view(&d.body),
	           S("\"message\":{\"role\":\"user\",\"content\":\"Hello\"},\"turn\":\"t\\\"1\","
	             "\"author\":\"me\",\"agent\":\"a/b\",\"invocation_id\":\"i\","
	             "\"metadata\" : { \"k\" : 1.0 } , \"x\":[ ]"));
	draft_free(&d);
	o = (sheaf_entry_options)SHEAF_ENTRY_OPTIONS_INIT;
	o.branch = S("main");
	o.turn = S("t");
	o.extra = S("{}");
	o.has_parent = 1;
	assert_code(0, draft_init(&d, S("thing"), S("{}"), false, &o, NULL));
	assert_int_equal(d.kind, SHEAF_KIND_OTHER_ENTRY);
	assert_int_equal(d.branch_len, 0);
	assert_true(d.has_parent);
	assert_int_equal(d.parent_len, 0);
	assert_str(buf_view(&d.body), S("\"turn\":\"t\""));
	draft_free(&d);
}

/* A caller built against an older header has a shorter struct. */
static void old_callers_have_fewer_options(void **state)
{
	(void)state;
	draft d;
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	o.size = offsetof(sheaf_entry_options, branch);
	o.id = S("mine");
	o.branch = S("\xff");
	o.extra = S("nonsense");
	o.time_us = INT64_MAX;
	assert_code(0, draft_init(&d, S("message"), HELLO, false, &o, NULL));
	assert_str(draft_id(&d), S("mine"));
	assert_int_equal(d.branch_len, 0);
	draft_free(&d);
}

static void types(void **state)
{
	(void)state;
	static const char *const bad[] = {"",    "Message", "1a",  "_a", "a-b",
	                                  "a b", "é",       "a\n", "aB"};
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		refuses(SHEAF_INVALID, bad[i], "{}");
	refuses(SHEAF_INVALID, "session", "{}");
	assert_code(SHEAF_INVALID, try(NULL, S("{}"), NULL));
	accepts("a", "{}");
	accepts("a_9", "{\"b\":1}");
	char *type = repeat('t', 65);
	refuses(SHEAF_LIMIT, type, "{}");
	type[64] = '\0';
	accepts(type, "{}");
	free(type);
}

static void ids(void **state)
{
	static const char *const bad[] = {"",      "a\nb", "\x01",        "\x7f",
	                                  "a\xff", "\xc3", "\xed\xa0\x80"};
	(void)state;
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		o.id = sheaf_str_of(bad[i]);
		assert_code(SHEAF_INVALID, try("message", HELLO, &o));
	}
	o.id = S("a\0b");
	assert_code(SHEAF_INVALID, try("message", HELLO, &o));
	char *id = repeat('i', 129);
	o.id = str_make(id, 129);
	assert_code(SHEAF_LIMIT, try("message", HELLO, &o));
	o.id = str_make(id, 128);
	assert_code(0, try("message", HELLO, &o));
	o.id = S("i");
	o.has_parent = 1;
	o.parent_id = str_make(id, 129);
	assert_code(SHEAF_LIMIT, try("message", HELLO, &o));
	o.parent_id = str_make(id, 128);
	assert_code(0, try("message", HELLO, &o));
	o.parent_id = S("\n");
	assert_code(SHEAF_INVALID, try("message", HELLO, &o));
	o.has_parent = 0; /* then it is not looked at */
	assert_code(0, try("message", HELLO, &o));
	o.has_parent = 1;
	o.parent_id = NONE;
	assert_code(SHEAF_INVALID, try("label", S("{\"label\":{\"target_id\":\"a\"}}"), &o));
	free(id);
}

static void branches(void **state)
{
	static const char *const bad[] = {"a\nb", "\x1f", "a\xff", "\x7f"};
	(void)state;
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		o.branch = sheaf_str_of(bad[i]);
		assert_code(SHEAF_INVALID, try("message", HELLO, &o));
	}
	char *name = repeat('b', 65);
	o.branch = str_make(name, 65);
	assert_code(SHEAF_LIMIT, try("message", HELLO, &o));
	o.branch = str_make(name, 64);
	assert_code(0, try("message", HELLO, &o));
	o.branch = S("");
	assert_code(0, try("message", HELLO, &o));
	free(name);
}

static void times(void **state)
{
	(void)state;
	const int64_t first = INT64_C(-62135596800000000), last = INT64_C(253402300799999999);
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	draft d;
	o.time_us = first - 1;
	assert_code(SHEAF_INVALID, try("message", HELLO, &o));
	o.time_us = last + 1;
	assert_code(SHEAF_INVALID, try("message", HELLO, &o));
	o.time_us = INT64_MIN;
	assert_code(SHEAF_INVALID, try("message", HELLO, &o));
	o.time_us = first;
	assert_code(0, draft_init(&d, S("message"), HELLO, false, &o, NULL));
	assert_string_equal(d.timestamp, "0001-01-01T00:00:00.000000Z");
	draft_free(&d);
	o.time_us = last;
	assert_code(0, draft_init(&d, S("message"), HELLO, false, &o, NULL));
	assert_string_equal(d.timestamp, "9999-12-31T23:59:59.999999Z");
	draft_free(&d);
}

/* ---- The body --------------------------------------------------------------- */

static void bodies(void **state)
{
	static const char *const bad[] = {"",
	                                  "[]",
	                                  "1",
	                                  "{",
	                                  "{}x",
	                                  "\"message\":{}",
	                                  "{\"a\":1,\"a\":2}",
	                                  "{\"a\":1,\"\\u0061\":2}",
	                                  "{\"a\":\n1}",
	                                  "{\"a\":\"\xff\"}",
	                                  "{\"a\":\"\\udc00\"}",
	                                  "{\"a\":\"\t\"}",
	                                  "{\"a\":{}},{}"};
	static const char *const reserved[] = {
		"type",  "id",  "parent_id",  "timestamp", "branch",        "seq",
		"batch", "crc", "parent_seq", "s\\u0065q", "\\u0069\\u0064"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		refuses(SHEAF_INVALID, "thing", bad[i]);
	assert_code(SHEAF_INVALID, try("thing", S("{\"a\":\"\0\"}"), NULL));
	assert_code(SHEAF_INVALID, try("thing", NONE, NULL));
	for (size_t i = 0; i < COUNT_OF(reserved); i++) {
		char text[80];
		sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
		(void)snprintf(text, sizeof(text), "{\"a\":1, \"%s\" : 2}", reserved[i]);
		refuses(SHEAF_INVALID, "thing", text);
		o.extra = sheaf_str_of(text);
		assert_code(SHEAF_INVALID, try("thing", S("{}"), &o));
		(void)snprintf(text, sizeof(text), "{\"a\":{\"%s\":2}}", reserved[i]);
		accepts("thing", text);
	}
	accepts("thing", "{\"typ\":1,\"types\":2,\"\":3,\"seq\\\\\":4,\"\\u00e9\":5}");
}

static void extras(void **state)
{
	static const char *const bad[] = {"[]",
	                                  "1",
	                                  "{",
	                                  "{}x",
	                                  "{\"message\":1}",
	                                  "{\"m\\u0065ssage\":1}",
	                                  "{\"turn\":\"x\"}",
	                                  "{\"a\":1,\"a\":1}",
	                                  "{\"a\":\n1}",
	                                  "{\"y\":2}}",
	                                  "{\"a\":\"\xff\"}"};
	(void)state;
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	o.turn = S("t");
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		o.extra = sheaf_str_of(bad[i]);
		assert_code(SHEAF_INVALID, try("message", HELLO, &o));
		draft d;
		assert_code(SHEAF_INVALID,
		            draft_init(&d, S("message"),
		                       S("\"message\":{\"role\":\"user\",\"content\":[]}"), true,
		                       &o, NULL));
	}
	/* Two halves that only together are an object. */
	o.extra = S("{\"y\":2}}");
	assert_code(SHEAF_INVALID, try("thing", S("{\"a\":{\"x\":1}"), &o));
	o.extra = S("{\"turns\":1}");
	assert_code(0, try("message", HELLO, &o));
}

static void named_members(void **state)
{
	static const char *const names[] = {"turn", "author", "agent", "invocation_id"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
		sheaf_str *places[] = {&o.turn, &o.author, &o.agent, &o.invocation_id};
		char body[60];
		(void)snprintf(body, sizeof(body), "{\"%s\":\"x\"}", names[i]);
		accepts("thing", body);
		*places[i] = S("\xff");
		assert_code(SHEAF_INVALID, try("thing", S("{}"), &o));
		*places[i] = S("y");
		assert_code(SHEAF_INVALID, try("thing", sheaf_str_of(body), &o));
		*places[i] = S("");
		assert_code(0, try("thing", sheaf_str_of(body), &o));
	}
}

/* ---- Payloads --------------------------------------------------------------- */

static void payloads_that_are_right(void **state)
{
	(void)state;
	accepts("message", "{\"message\":{\"role\":\"user\",\"content\":[]}}");
	accepts("message",
	        "{\"message\":{\"role\":\"\\u0075ser\",\"content\":\"\"},\"turn\":\"t\"}");
	accepts("model_change", "{\"model_change\":{\"provider\":\"p\",\"model_id\":\"m\"}}");
	accepts("thinking_level", "{\"thinking_level\":{\"thinking_level\":\"high\"}}");
	accepts("compaction", "{\"compaction\":{\"summary\":\"s\"}}");
	accepts("compaction", "{\"compaction\":{\"summary\":\"s\",\"first_kept_entry_id\":\"a\"}}");
	accepts("compaction", "{\"compaction\":{\"summary\":\"s\",\"first_kept_entry_id\":\"\"}}");
	accepts("compaction", "{\"compaction\":{\"summary\":\"s\",\"first_kept_entry_id\":null,"
	                      "\"replacement\":[]}}");
	accepts("compaction", "{\"compaction\":{\"summary\":\"s\",\"kept_ids\":[],\"x\":1}}");
	accepts("branch_summary", "{\"branch_summary\":{\"summary\":\"s\",\"from_id\":null}}");
	accepts("branch_summary", "{\"branch_summary\":{\"summary\":\"s\",\"from_id\":\"a\"}}");
	accepts("custom", "{\"custom\":{\"custom_type\":\"c\",\"data\":[1]}}");
	accepts("label", "{\"label\":{\"target_id\":\"a\"}}");
	accepts("label", "{\"label\":{\"target_id\":\"a\",\"label\":\"\"}}");
	accepts("label", "{\"label\":{\"target_id\":\"a\",\"label\":null}}");
	accepts("session_info", "{\"session_info\":{}}");
	accepts("session_info", "{\"session_info\":{\"name\":\"n\",\"metadata\":{}}}");
	accepts("leaf", "{\"leaf\":{\"branch\":\"b\",\"entry_id\":\"a\",\"entry_seq\":1}}");
	accepts("leaf", "{\"leaf\":{\"branch\":\"main\",\"entry_id\":null}}");
	accepts("leaf", "{\"leaf\":{\"branch\":\"b\"}}");
	accepts("turn_end", "{\"turn_end\":{\"turn\":\"t\"}}");
	accepts("turn_end", "{\"turn_end\":{\"turn\":\"t\",\"outcome\":\"x\",\"usage\":{}}}");
	accepts("todo", "{\"todo\":{}}");
	accepts("plan", "{\"plan\":{\"a\":1}}");
	accepts("summary", "{\"summary\":{}}");
	accepts("retention", "{\"retention\":{}}");
	accepts("lost", "{\"lost\":{\"seq\":1}}");
}

static const struct {
	const char *type;
	const char *body;
} wrong_payloads[] = {
	{"message", "{}"},
	{"message", "{\"Message\":{\"role\":\"user\",\"content\":[]}}"},
	{"message", "{\"message\":[]}"},
	{"message", "{\"message\":null}"},
	{"message", "{\"message\":{}}"},
	{"message", "{\"message\":{\"role\":\"user\"}}"},
	{"message", "{\"message\":{\"content\":[]}}"},
	{"message", "{\"message\":{\"role\":\"human\",\"content\":[]}}"},
	{"message", "{\"message\":{\"role\":null,\"content\":[]}}"},
	{"message", "{\"message\":{\"role\":\"user\",\"content\":{}}}"},
	{"message", "{\"message\":{\"role\":\"user\",\"content\":true}}"},
	{"model_change", "{\"model_change\":{\"provider\":\"p\"}}"},
	{"model_change", "{\"model_change\":{\"model_id\":\"p\"}}"},
	{"model_change", "{\"model_change\":{\"provider\":1,\"model_id\":\"p\"}}"},
	{"thinking_level", "{\"thinking_level\":\"high\"}"},
	{"thinking_level", "{\"thinking_level\":{}}"},
	{"thinking_level", "{\"thinking_level\":{\"thinking_level\":3}}"},
	{"compaction", "{\"compaction\":{}}"},
	{"compaction", "{\"compaction\":{\"summary\":null}}"},
	{"compaction", "{\"compaction\":{\"summary\":\"s\",\"first_kept_entry_id\":1}}"},
	{"compaction", "{\"compaction\":{\"summary\":\"s\",\"replacement\":{}}}"},
	{"compaction", "{\"compaction\":{\"summary\":\"s\",\"kept_ids\":\"a\"}}"},
	{"compaction", "{\"compaction\":{\"summary\":\"s\",\"kept_ids\":[],\"replacement\":[]}}"},
	{"compaction", "{\"compaction\":{\"summary\":\"s\",\"kept_ids\":[],"
                       "\"first_kept_entry_id\":\"a\"}}"},
	{"branch_summary", "{\"branch_summary\":{\"summary\":\"s\"}}"},
	{"branch_summary", "{\"branch_summary\":{\"from_id\":null}}"},
	{"branch_summary", "{\"branch_summary\":{\"summary\":\"s\",\"from_id\":\"\"}}"},
	{"branch_summary", "{\"branch_summary\":{\"summary\":\"s\",\"from_id\":7}}"},
	{"custom", "{\"custom\":{\"data\":1}}"},
	{"custom", "{\"custom\":{\"custom_type\":[]}}"},
	{"label", "{\"label\":\"x\",\"target_id\":\"a\"}"},
	{"label", "{\"label\":{\"label\":\"x\"}}"},
	{"label", "{\"label\":{\"target_id\":\"\"}}"},
	{"label", "{\"label\":{\"target_id\":null}}"},
	{"label", "{\"label\":{\"target_id\":\"a\\nb\"}}"},
	{"label", "{\"label\":{\"target_id\":\"a\\u0000\"}}"},
	{"label", "{\"label\":{\"target_id\":\"a\",\"label\":1}}"},
	{"session_info", "{}"},
	{"session_info", "{\"session_info\":{\"name\":1}}"},
	{"session_info", "{\"session_info\":{\"name\":null}}"},
	{"session_info", "{\"session_info\":{\"metadata\":[]}}"},
	{"leaf", "{\"leaf\":{}}"},
	{"leaf", "{\"leaf\":{\"branch\":\"\"}}"},
	{"leaf", "{\"leaf\":{\"branch\":\"a\\u0001\"}}"},
	{"leaf", "{\"leaf\":{\"branch\":\"b\",\"entry_id\":1}}"},
	{"leaf", "{\"leaf\":{\"branch\":\"b\",\"entry_id\":\"\"}}"},
	{"leaf", "{\"leaf\":{\"branch\":\"b\",\"entry_id\":\"a\"}}"},
	{"leaf", "{\"leaf\":{\"branch\":\"b\",\"entry_id\":\"a\",\"entry_seq\":0}}"},
	{"leaf", "{\"leaf\":{\"branch\":\"b\",\"entry_id\":\"a\",\"entry_seq\":1.5}}"},
	{"leaf", "{\"leaf\":{\"branch\":\"b\",\"entry_id\":\"a\",\"entry_seq\":\"1\"}}"},
	{"turn_end", "{\"turn_end\":{}}"},
	{"turn_end", "{\"turn_end\":{\"turn\":\"\"}}"},
	{"turn_end", "{\"turn_end\":{\"turn\":\"t\",\"usage\":[]}}"},
	{"turn_end", "{\"turn_end\":{\"turn\":\"t\",\"outcome\":1}}"},
	{"todo", "{}"},
	{"todo", "{\"todo\":[]}"},
	{"plan", "{\"todo\":{}}"},
	{"summary", "{\"summary\":\"s\"}"},
	{"retention", "{\"retention\":1}"},
	{"lost", "{\"seqs\":1}"},
};

static void payloads_that_are_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(wrong_payloads); i++)
		refuses(SHEAF_INVALID, wrong_payloads[i].type, wrong_payloads[i].body);
	draft d;
	assert_code(SHEAF_INVALID, draft_init(&d, S("message"), S("\"x\":1"), true, NULL, NULL));
	assert_code(SHEAF_INVALID, draft_init(&d, S("label"), S("\"label\":{}"), true, NULL, NULL));
}

/* A text of exactly so many bytes, spelled plainly or in escapes: both are measured unescaped. */
static void check_text_limit(const char *type, const char *before, const char *after, size_t max)
{
	static const struct {
		const char *unit;
		size_t bytes;
	} spellings[] = {{"x", 1}, {"\\u0041", 1}, {"\\\"", 1},           {"\\u00e9", 2},
	                 {"é", 2}, {"\\u8a9e", 3}, {"\\ud83d\\ude00", 4}, {"😀", 4}};
	for (size_t k = 0; k < COUNT_OF(spellings); k++) {
		for (int over = 0; over < 2; over++) {
			_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
			size_t len = 0;
			buf_add(&b, before, strlen(before));
			for (; len + spellings[k].bytes <= max; len += spellings[k].bytes)
				buf_add(&b, spellings[k].unit, strlen(spellings[k].unit));
			for (; len < max + (size_t)over; len++)
				buf_lit(&b, "y");
			buf_add(&b, after, strlen(after));
			buf_nul(&b);
			refuses(over ? SHEAF_LIMIT : 0, type, b.ptr);
		}
	}
}

static void text_limits(void **state)
{
	(void)state;
	check_text_limit("label", "{\"label\":{\"target_id\":\"a\",\"label\":\"", "\"}}",
	                 SHEAF_NAME_BYTES_MAX);
	check_text_limit("label", "{\"label\":{\"target_id\":\"", "\"}}", SHEAF_ID_BYTES_MAX);
	check_text_limit("session_info", "{\"session_info\":{\"name\":\"", "\"}}",
	                 SHEAF_NAME_BYTES_MAX);
	check_text_limit("leaf", "{\"leaf\":{\"branch\":\"", "\"}}", SHEAF_BRANCH_BYTES_MAX);
	check_text_limit("leaf", "{\"leaf\":{\"branch\":\"b\",\"entry_seq\":3,\"entry_id\":\"",
	                 "\"}}", SHEAF_ID_BYTES_MAX);
	check_text_limit("compaction",
	                 "{\"compaction\":{\"summary\":\"\",\"first_kept_entry_id\":\"", "\"}}",
	                 SHEAF_ID_BYTES_MAX);
	check_text_limit("branch_summary", "{\"branch_summary\":{\"summary\":\"\",\"from_id\":\"",
	                 "\"}}", SHEAF_ID_BYTES_MAX);
}

/* ---- Size and depth --------------------------------------------------------- */

static void depth_limit(void **state)
{
	(void)state;
	for (size_t depth = 126; depth <= 130; depth++) {
		_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
		buf_lit(&b, "{\"custom\":{\"custom_type\":\"c\",\"data\":");
		for (size_t i = 2; i < depth; i++)
			buf_lit(&b, "[");
		for (size_t i = 2; i < depth; i++)
			buf_lit(&b, "]");
		buf_lit(&b, "}}");
		int want = depth <= SHEAF_DEPTH_MAX ? 0 : SHEAF_LIMIT;
		draft d;
		assert_code(want, try("custom", buf_view(&b), NULL));
		/* Trusted members are counted too. */
		assert_code(want, draft_init(&d, S("custom"), str_make(b.ptr + 1, b.len - 2), true,
		                             NULL, NULL));
		draft_free(&d);
	}
}

static void size_limit(void **state)
{
	(void)state;
	static const char open[] = "{\"x\":\"", close[] = "\"}";
	size_t members = sizeof(open) - 1 + sizeof(close) - 1 - 2; /* without the braces */
	char *text = repeat('x', SHEAF_RECORD_BYTES_MAX + 64);
	memcpy(text, open, sizeof(open) - 1);
	for (size_t over = 0; over < 2; over++) {
		size_t fill = SHEAF_BODY_BYTES_MAX - members + over;
		size_t len = sizeof(open) - 1 + fill + sizeof(close) - 1;
		memcpy(text + len - 2, close, 2);
		assert_code(over ? SHEAF_TOO_LARGE : 0, try("thing", str_make(text, len), NULL));
		draft d;
		assert_code(
			over ? SHEAF_TOO_LARGE : 0,
			draft_init(&d, S("thing"), str_make(text + 1, len - 2), true, NULL, NULL));
		draft_free(&d);
		text[len - 2] = text[len - 1] = 'x';
	}
	assert_code(SHEAF_TOO_LARGE,
	            try("thing", str_make(text, SHEAF_RECORD_BYTES_MAX + 1), NULL));
	free(text);
}

/* With everything at its longest a record still fits: the frame's share is enough. */
static void largest_record_fits(void **state)
{
	(void)state;
	char *quotes = repeat('"', 128), *type = repeat('t', 64);
	char *text = repeat('x', SHEAF_BODY_BYTES_MAX);
	memcpy(text, "\"x\":\"", 5);
	text[SHEAF_BODY_BYTES_MAX - 1] = '"';
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	o.id = str_make(quotes, 128);
	o.branch = str_make(quotes, 64);
	draft d;
	record r;
	assert_code(0, draft_init(&d, str_make(type, 64), str_make(text, SHEAF_BODY_BYTES_MAX),
	                          true, &o, NULL));
	_cleanup_(buf_free) buf b = BUF_INIT(SHEAF_RECORD_BYTES_MAX + 1);
	record_write(&b, &d, str_make(quotes, 128), UINT64_MAX - 1, UINT64_MAX, 4095, 4096);
	assert_int_equal(b.status, 0);
	assert_true(b.len <= SHEAF_RECORD_BYTES_MAX);
	arena *a = arena_new();
	assert_code(0, record_scan(&r, str_make(b.ptr, b.len - 1), a));
	assert_true(record_same(&r, &d));
	arena_free(a);
	draft_free(&d);
	free(text);
	free(quotes);
	free(type);
}

/* ---- Memory ----------------------------------------------------------------- */

static int draft_everything(void)
{
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	o.turn = S("t");
	o.extra = S("{\"a\":{\"\\u0062\":1,\"c\":2}}");
	draft d;
	int rc = draft_init(&d, S("thing"), S("{\"b\":{\"c\":1,\"d\":2}}"), false, &o, NULL);
	draft_free(&d);
	if (rc != 0)
		return rc;
	rc = draft_init(&d, S("message"), HELLO, false, NULL, NULL);
	draft_free(&d);
	return rc;
}

static void memory_runs_out(void **state)
{
	(void)state;
	each_allocation_fails(draft_everything);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fills_in_defaults),
		cmocka_unit_test(takes_what_is_given),
		cmocka_unit_test(old_callers_have_fewer_options),
		cmocka_unit_test(types),
		cmocka_unit_test(ids),
		cmocka_unit_test(branches),
		cmocka_unit_test(times),
		cmocka_unit_test(bodies),
		cmocka_unit_test(extras),
		cmocka_unit_test(named_members),
		cmocka_unit_test(payloads_that_are_right),
		cmocka_unit_test(payloads_that_are_wrong),
		cmocka_unit_test(text_limits),
		cmocka_unit_test(depth_limit),
		cmocka_unit_test(size_limit),
		cmocka_unit_test(largest_record_fits),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
