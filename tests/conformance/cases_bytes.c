/* Byte-exactness, and what JSON and text are refused. */
#include <stdio.h>
#include <stdlib.h>

#include "suite.h"

/* Stores a body and checks that it comes back byte for byte, also after a restart. */
static void exact(suite *t, const char *body)
{
	sheaf_session *s = t_new(t, "s");
	JSON(s, "custom", body, .id = "e1");
	for (int round = 0; round < 2; round++) {
		BYTES(t_get(t, s, "e1")->body, body + 1, strlen(body) - 2);
		BYTES(t_all(t, s)->items[0]->body, body + 1, strlen(body) - 2);
		s = t_restart(t, "s");
	}
}

#define CUSTOM(data) "{\"custom\":{\"custom_type\":\"x\",\"data\":" data "}}"

CASE(bytes_escaped_nul)
{
	exact(t, CUSTOM("\"a\\u0000b\""));
}

CASE(bytes_numbers)
{
	exact(t, CUSTOM("[1e400,-1E-400,18446744073709551617,1.0,1.50,-0,0.1e+01,"
	                "123456789012345678901234567890.123456789]"));
}

CASE(bytes_key_order)
{
	exact(t, "{\"zeta\":1,\"custom\":{\"data\":{\"b\":1,\"a\":2,\"\":3},\"custom_type\":\"x\"},"
	         "\"alpha\":{\"z\":{},\"y\":[]}}");
}

CASE(bytes_blanks)
{
	exact(t, "{\"custom\" : { \"custom_type\":\"x\",  \"data\" :[ 1 , 2 ]  } , \"m\" : null}");
}

CASE(bytes_escapes)
{
	exact(t, CUSTOM("[\"\\/\\b\\f\\n\\r\\t\\\"\\\\\",\"\\u00e9 \\u00E9 \\u2028\","
	                "\"\\ud83d\\ude00 \xf0\x9f\x98\x80\"]"));
}

CASE(bytes_key_escapes)
{
	exact(t, CUSTOM("{\"\\u0061\":1,\"b\\n\":2,\"\\ud83d\\ude00\":3}"));
}

CASE(u2028)
{
	/* Line separators that are not "\n" separate nothing. */
	const char *odd = "one\xe2\x80\xa8two\xe2\x80\xa9three\xc2\x85"
			  "four\x0b"
			  "five\x0csix\rseven\neight\x1e\x7f";
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", odd, .id = "u1");
	JSON(s, "custom", CUSTOM("\"raw \xe2\x80\xa8 and \xe2\x80\xa9\""), .id = "c1");
	SAY(s, "user", "after", .id = "u2");
	LABEL(s, "u1",
	      "la\xe2\x80\xa8"
	      "bel");
	s = t_restart(t, "s");
	TEXT(t_get(t, s, "u1")->message->parts[0]->text, odd);
	CHECK(t_contains(t_get(t, s, "c1")->line, "raw \xe2\x80\xa8 and \xe2\x80\xa9"));
	EQ(t_all(t, s)->count, 4);
	TEXT(t_get(t, s,
	           "la\xe2\x80\xa8"
	           "bel")
	             ->id,
	     "u1");
}

CASE(bytes_every_character)
{
	sheaf_session *s = t_new(t, "s");
	char text[700];
	size_t n = 0;
	for (int c = 1; c < 0x80; c++)
		text[n++] = (char)c;
	for (int c = 0x80; c < 0x100; c++) {
		text[n++] = (char)(0xc0 | c >> 6);
		text[n++] = (char)(0x80 | (c & 0x3f));
	}
	n += (size_t)sprintf(text + n, "%s",
	                     "\xef\xbf\xbf\xee\x80\x80\xed\x9f\xbf\xf4\x8f\xbf\xbf\xef\xbb\xbf");
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_text(m, (sheaf_str){text, n});
	sheaf_message_text(m, (sheaf_str){"with \0 inside", 13});
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("u1");
	int rc = sheaf_session_append_message(s, m, &e, NULL, NULL, &t->err);
	sheaf_message_free(m);
	EQ(rc, 0);
	s = t_restart(t, "s");
	const sheaf_message_view *v = t_get(t, s, "u1")->message;
	BYTES(v->parts[0]->text, text, n);
	BYTES(v->parts[1]->text, "with \0 inside", 13); /* as the escape \u0000 */
}

CASE(bytes_tool_input)
{
	sheaf_session *s = t_new(t, "s");
	static const char *const inputs[] = {
		"{\"path\":\"main.go\"}",         /* JSON: embedded */
		"{ \"b\" : 1e400, \"a\" : [ ] }", /* with blanks and odd numbers */
		"{\n  \"pretty\": true\n}",       /* line breaks between tokens: kept as text */
		"not JSON at all \" \\ \n",       /* whatever a model wrote */
		"{\"cut\": \"off",
		"{\"a\":1,\"a\":2}",   /* duplicate keys */
		"{\"s\":\"\\ud800\"}", /* lone surrogate escape */
		"",
		" {} ",
		"null",
		"42",
		"\"a string\"",
		"\t{}",
	};
	size_t n = sizeof(inputs) / sizeof(inputs[0]);
	for (size_t i = 0; i < n; i++)
		OK(t_call(t, s, t_format(t, "c%zu", i), "f", inputs[i],
		          (put){.id = t_format(t, "a%zu", i)}));
	s = t_restart(t, "s");
	for (size_t i = 0; i < n; i++) {
		const sheaf_entry *e = t_get(t, s, t_format(t, "a%zu", i));
		TEXT(e->message->parts[0]->input, inputs[i]);
	}
	CHECK(t_contains(t_get(t, s, "a0")->line, "\"input\":{\"path\":\"main.go\"}"));
	CHECK(t_contains(t_get(t, s, "a2")->line, "\"input_text\":\""));
	CHECK(t_contains(t_get(t, s, "a3")->line, "\"input_text\":\""));
}

CASE(bytes_message_from_json)
{
	sheaf_session *s = t_new(t, "s");
	const char *json =
		"{\"content\":[{\"text\":{\"content\":\"hi\",\"x\":1e400},\"type\":\"text\"},"
		"{\"type\":\"tool_use\",\"tool_use\":{\"name\":\"f\",\"input\":{\"b\":1,\"a\":2},"
		"\"id\":\"c1\"}}], \"role\":\"assistant\",\"extra\":[1.0]}";
	sheaf_message *m = NULL;
	OK(sheaf_message_from_json(&m, S(json), &t->err));
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("a1");
	int rc = sheaf_session_append_message(s, m, &e, NULL, NULL, &t->err);
	sheaf_message_free(m);
	EQ(rc, 0);
	s = t_restart(t, "s");
	const sheaf_message_view *v = t_get(t, s, "a1")->message;
	TEXT(v->json, json);
	TEXT(v->role, "assistant");
	TEXT(v->parts[0]->text, "hi");
	TEXT(v->parts[1]->input, "{\"b\":1,\"a\":2}");
}

CASE(bytes_string_content)
{
	sheaf_session *s = t_new(t, "s");
	JSON(s, "message", "{\"message\":{\"role\":\"user\",\"content\":\"plain\"}}", .id = "u1");
	const sheaf_message_view *v = t_get(t, s, "u1")->message;
	EQ(v->part_count, 1);
	TEXT(v->parts[0]->text, "plain");
	TEXT(v->json, "{\"role\":\"user\",\"content\":\"plain\"}");
}

CASE(bytes_fifteen_mebibytes)
{
	sheaf_session *s = t_new(t, "s");
	size_t n = (size_t)15 << 20;
	char *text = t_alloc(t, n + 1);
	uint32_t x = 12345;
	for (size_t i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		text[i] = (char)('!' + (x >> 24) % 90);
		if (text[i] == '"' || text[i] == '\\')
			text[i] = ' ';
	}
	SAY(s, "user", "small", .id = "u0");
	SAY(s, "user", text, .id = "u1");
	SAY(s, "user", "small", .id = "u2");
	s = t_restart(t, "s");
	BYTES(t_get(t, s, "u1")->message->parts[0]->text, text, n);
	IDS(t_path(t, s, NULL), "u0 u1 u2");
	EQ(t_context(t, s)->count, 3);
	SAY(s, "user", text, .id = "u1");
	EQ(t->out.existed, 1);
	text[n - 1] ^= 1;
	FAILS(CONFLICT, TRY_SAY(s, "user", text, .id = "u1"));
}

CASE(bytes_custom_data_with_line_breaks)
{
	/* Given back as it is or refused: never stored as something else. */
	sheaf_session *s = t_new(t, "s");
	const char *data = "{\n\t\"pretty\": [1,\r\n2]\n}";
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("c1");
	int rc = sheaf_session_append_custom(s, S("x"), S(data), &e, NULL, NULL, &t->err);
	if (rc == 0)
		TEXT(t_get(t, s, "c1")->data, data);
	else
		EQ(rc, SHEAF_INVALID);
	EQ(t_revision(t, s), rc == 0);
}

/* ---- Refused -------------------------------------------------------------- */

static void refused(suite *t, sheaf_str data)
{
	sheaf_session *s = t_existing(t, "s");
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	char *body = t_alloc(t, data.len + 100);
	int n = sprintf(body, "{\"custom\":{\"custom_type\":\"x\",\"data\":");
	memcpy(body + n, data.ptr, data.len);
	memcpy(body + n + data.len, "}}", 2);
	sheaf_str whole = {body, (size_t)n + data.len + 2};
	FAILS(INVALID, sheaf_session_append_json(s, S("custom"), whole, NULL, NULL, NULL, &t->err));
	FAILS(INVALID, sheaf_session_append_custom(s, S("x"), data, NULL, NULL, NULL, &t->err));
	memcpy(body, "{\"metadata\":", 12);
	memcpy(body + 12, data.ptr, data.len);
	body[12 + data.len] = '}';
	e.extra = (sheaf_str){body, data.len + 13};
	FAILS(INVALID, sheaf_session_append_thinking_level(s, S("x"), &e, NULL, NULL, &t->err));
	EQ(t_revision(t, s), 0);
	t_close(t, s);
}

CASE(refused_duplicate_keys)
{
	t_new(t, "s");
	refused(t, S("{\"a\":1,\"a\":2}"));
	refused(t, S("{\"a\":1,\"b\":2,\"\\u0061\":3}"));
	refused(t, S("[[{\"x\":{\"k\":1,\"k\":1}}]]"));
	refused(t, S("{\"\":1,\"\":2}"));
}

CASE(refused_many_duplicate_keys)
{
	/* Found also in an object too large to compare each with each. */
	sheaf_session *s = t_new(t, "s");
	size_t n = 20000;
	char *text = t_alloc(t, n * 16);
	size_t len = (size_t)sprintf(text, "{");
	for (size_t i = 0; i < n; i++)
		len += (size_t)sprintf(text + len, "\"k%zu\":1,", i);
	sprintf(text + len, "\"z\":1}");
	OK(sheaf_session_append_custom(s, S("x"), S(text), NULL, NULL, NULL, &t->err));
	sprintf(text + len, "\"k3\":1}");
	FAILS(INVALID, sheaf_session_append_custom(s, S("x"), S(text), NULL, NULL, NULL, &t->err));
	EQ(t_revision(t, s), 1);
}

CASE(refused_lone_surrogates)
{
	t_new(t, "s");
	refused(t, S("\"\\ud800\""));
	refused(t, S("\"\\udc00\""));
	refused(t, S("\"\\udc00\\ud800\""));
	refused(t, S("\"\\ud800\\u0041\""));
	refused(t, S("\"\\ud800x\""));
	refused(t, S("{\"\\udfff\":1}"));
}

CASE(refused_invalid_utf8)
{
	t_new(t, "s");
	refused(t, S("\"\xff\""));
	refused(t, S("\"\xc3\""));         /* cut off */
	refused(t, S("\"\xc0\xaf\""));     /* overlong */
	refused(t, S("\"\xe0\x80\x80\"")); /* overlong */
	refused(t, S("\"\xed\xa0\x80\"")); /* a surrogate */
	refused(t, S("\"\xf4\x90\x80\x80\""));
	refused(t, S("\"\x80\""));
	refused(t, S("{\"\xfe\":1}"));
}

CASE(refused_raw_controls)
{
	t_new(t, "s");
	refused(t, (sheaf_str){"\"a\0b\"", 5});
	refused(t, (sheaf_str){"1\0", 2});
	refused(t, S("\"a\nb\""));
	refused(t, S("\"a\tb\""));
	refused(t, S("\"\x1f\""));
}

CASE(refused_what_is_no_json)
{
	t_new(t, "s");
	static const char *const bad[] = {"{",         "}",        "[1,]",      "{\"a\":1,}",
	                                  "{a:1}",     "'x'",      "01",        "1.",
	                                  ".5",        "+1",       "0x10",      "NaN",
	                                  "-",         "Infinity", "tru",       "[1] 2",
	                                  "/**/1",     "\"\\x\"",  "\"\\u12\"", "\357\273\2771",
	                                  "{\"a\" 1}", "[1 2]",    "\"abc",     ""};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused(t, S(bad[i]));
}

CASE(refused_text)
{
	sheaf_session *s = t_new(t, "s");
	FAILS(INVALID, TRY_SAY(s, "user", "\xff"));
	FAILS(INVALID, TRY_SAY(s, "user", "ok \xed\xa0\x80"));
	FAILS(INVALID, t_call(t, s, "c\xff", "f", "{}", (put){0}));
	FAILS(INVALID, t_call(t, s, "c", "f", "\xff", (put){0}));
	FAILS(INVALID, t_answer(t, s, "c", "\xc3(", (put){0}));
	FAILS(INVALID, t_rename(t, s, "\xff"));
	FAILS(INVALID, TRY_COMPACT(s, "\xff", NULL));
	FAILS(INVALID, TRY_SAY(s, "user", "x", .author = "\xff"));
	FAILS(INVALID, TRY_SAY(s, "user", "x", .branch = "\xff", .root = 1));
	FAILS(INVALID,
	      sheaf_session_append_model_change(s, S("\xff"), S("m"), NULL, NULL, NULL, &t->err));
	EQ(t_revision(t, s), 0);
}

CASE(mended_text)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_mend_text(m, 1);
	CHECK(sheaf_message_text(m, S("a\xff"
	                              "b\xc3")) == 0);
	CHECK(sheaf_message_mended(m) == 2);
	CHECK(sheaf_message_text(m, S("clean")) == 0);
	CHECK(sheaf_message_mended(m) == 2);
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("u1");
	int rc = sheaf_session_append_message(s, m, &e, NULL, NULL, &t->err);
	int again = sheaf_session_append_message(s, m, &e, NULL, &t->out, &t->err);
	sheaf_message_free(m);
	EQ(rc, 0);
	EQ(again, 0); /* what is compared is the mended text */
	TEXT(t_get(t, s, "u1")->message->parts[0]->text, "a\xef\xbf\xbd"
	                                                 "b\xef\xbf\xbd");
	EQ(t_revision(t, s), 1);
}

CASE(refused_messages)
{
	sheaf_message *m = NULL;
	static const char *const bad[] = {"[]",
	                                  "{}",
	                                  "null",
	                                  "{\"role\":\"nobody\",\"content\":[]}",
	                                  "{\"role\":\"user\"}",
	                                  "{\"role\":1,\"content\":[]}",
	                                  "{\"role\":\"user\",\"content\":7}",
	                                  "{\"role\":\"user\",\"role\":\"user\",\"content\":[]}",
	                                  "{\"role\":\"user\",\"content\":[]",
	                                  "{\"role\":\"user\",\"content\":\"\\ud800\"}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		FAILS(INVALID, sheaf_message_from_json(&m, S(bad[i]), &t->err));
	CHECK(m == NULL);
}

CASE(refused_payloads)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "x", .id = "u1");
	static const char *const bad[][2] = {
		{"label", "{\"label\":{}}"},
		{"label", "{\"label\":{\"target_id\":7,\"label\":\"x\"}}"},
		{"label", "{\"label\":\"x\"}"},
		{"compaction", "{\"compaction\":{}}"},
		{"compaction", "{\"compaction\":{\"summary\":7}}"},
		{"model_change", "{\"model_change\":{\"provider\":\"p\"}}"},
		{"thinking_level", "{}"},
		{"branch_summary", "{\"branch_summary\":{\"from_id\":\"u1\"}}"},
		{"custom", "{\"custom\":{}}"},
		{"session_info", "{\"session_info\":{\"name\":7}}"},
		{"session_info", "{\"session_info\":{\"metadata\":[]}}"},
		{"turn_end", "{\"turn_end\":{}}"},
		{"leaf", "{\"leaf\":{}}"},
		{"Message", "{\"message\":{\"role\":\"user\",\"content\":[]}}"},
		{"two words", "{}"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		FAILS(INVALID, TRY_JSON(s, bad[i][0], bad[i][1]));
	FAILS(NOT_FOUND,
	      TRY_JSON(s, "label", "{\"label\":{\"target_id\":\"ghost\",\"label\":\"x\"}}"));
	EQ(t_revision(t, s), 1);
}
