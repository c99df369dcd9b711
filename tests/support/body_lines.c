/* A request body as lines; see body_lines.h. */
#include "support/body_lines.h"

#include "base/str.h"
#include "sheaf/render.h"

/* ---- Values ------------------------------------------------------------------ */

static bool is_trimmed(sheaf_str text)
{
	static const char mark[] = "[trimmed";
	for (size_t i = 0; i + sizeof(mark) - 1 <= text.len; i++) {
		if (memcmp(text.ptr + i, mark, sizeof(mark) - 1) == 0)
			return true;
	}
	return false;
}

/* A value as JSON without blanks. Bodies of tests are not deep. */
static void put_value(buf *out, const json_val *v) /* NOLINT(misc-no-recursion) */
{
	bool object = json_type_of(v) == JSON_OBJECT;
	size_t n = 0;
	switch (json_type_of(v)) {
	case JSON_STRING:
		if (is_trimmed(json_string(v)))
			buf_lit(out, "\"...\"");
		else
			buf_json(out, json_string(v));
		return;
	case JSON_NUMBER:
		buf_str(out, json_number(v));
		return;
	case JSON_BOOL:
		buf_str(out, json_bool(v) ? SHEAF_STR("true") : SHEAF_STR("false"));
		return;
	case JSON_ARRAY:
	case JSON_OBJECT:
		buf_char(out, object ? '{' : '[');
		for (json_iter it = json_each(v); json_next(&it);) {
			if (n++ != 0)
				buf_char(out, ',');
			if (object) {
				put_value(out, it.key);
				buf_char(out, ':');
			}
			put_value(out, it.value);
		}
		buf_char(out, object ? '}' : ']');
		return;
	default:
		buf_lit(out, "null");
	}
}

static void put_member(buf *out, const json_val *object, const char *name)
{
	const json_val *v = json_get(object, name);
	buf_char(out, ' ');
	if (v == NULL)
		buf_char(out, '-');
	else
		put_value(out, v);
}

/* JSON inside a string, as a value. */
static void put_inner(buf *out, const json_val *object, const char *name)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	buf_char(out, ' ');
	if (json_parse(&doc, json_string(json_get(object, name)), NULL) == 0)
		put_value(out, json_root(doc));
	else
		put_value(out, json_get(object, name));
}

static void put_words(buf *out, sheaf_str role, const char *type)
{
	buf_str(out, role);
	buf_char(out, ' ');
	buf_str(out, sheaf_str_of(type));
}

static void put_line(buf *out, sheaf_str role, const char *type, const json_val *v,
                     const char *const *names)
{
	put_words(out, role, type);
	for (; *names != NULL; names++)
		put_member(out, v, *names);
	buf_char(out, '\n');
}

#define NAMES(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static void put_text(buf *out, sheaf_str role, const json_val *text)
{
	put_words(out, role, "text ");
	put_value(out, text);
	buf_char(out, '\n');
}

/* ---- Anthropic --------------------------------------------------------------- */

static void anthropic_source(buf *out, sheaf_str role, const json_val *block)
{
	put_line(out, role, "source", json_get(block, "source"),
	         NAMES("type", "media_type", "data", "url"));
}

static void anthropic_block(buf *out, sheaf_str role, const json_val *b)
{
	sheaf_str type = json_string(json_get(b, "type"));
	const json_val *content = json_get(b, "content");
	if (str_is(type, "text")) {
		put_text(out, role, json_get(b, "text"));
	} else if (str_is(type, "image") || str_is(type, "document")) {
		anthropic_source(out, role, b);
	} else if (str_is(type, "tool_result")) {
		put_line(out, role, "tool_result", b, NAMES("tool_use_id", "is_error"));
		if (json_type_of(content) == JSON_STRING)
			put_text(out, SHEAF_STR("result"), content);
		for (json_iter it = json_each(content); json_next(&it);) {
			if (json_get(it.value, "text") != NULL)
				put_text(out, SHEAF_STR("result"), json_get(it.value, "text"));
			else
				anthropic_source(out, SHEAF_STR("result"), it.value);
		}
	} else {
		put_line(out, role, type.ptr, b,
		         NAMES("id", "name", "input", "thinking", "signature", "data"));
	}
}

static void anthropic_message(buf *out, const json_val *m)
{
	sheaf_str role = json_string(json_get(m, "role"));
	const json_val *content = json_get(m, "content");
	if (json_type_of(content) == JSON_STRING)
		put_text(out, role, content);
	for (json_iter it = json_each(content); json_next(&it);)
		anthropic_block(out, role, it.value);
}

/* ---- OpenAI ------------------------------------------------------------------ */

static void chat_message(buf *out, const json_val *m)
{
	sheaf_str role = json_string(json_get(m, "role"));
	const json_val *content = json_get(m, "content");
	if (json_get(m, "tool_call_id") != NULL)
		put_line(out, role, "answer", m, NAMES("tool_call_id"));
	if (json_type_of(content) == JSON_STRING)
		put_text(out, role, content);
	for (json_iter it = json_each(content); json_next(&it);) {
		if (json_get(it.value, "text") != NULL)
			put_text(out, role, json_get(it.value, "text"));
		else
			put_line(out, role, "part", it.value,
			         NAMES("type", "image_url", "file", "refusal"));
	}
	for (json_iter it = json_each(json_get(m, "tool_calls")); json_next(&it);) {
		const json_val *function = json_get(it.value, "function");
		put_words(out, role, "call");
		put_member(out, it.value, "type");
		put_member(out, it.value, "id");
		put_member(out, function, "name");
		put_inner(out, function, "arguments");
		buf_char(out, '\n');
	}
}

static void responses_parts(buf *out, sheaf_str role, const json_val *parts)
{
	for (json_iter it = json_each(parts); json_next(&it);)
		put_line(out, role, "part", it.value,
		         NAMES("type", "text", "image_url", "detail", "refusal"));
}

static void responses_item(buf *out, const json_val *item)
{
	sheaf_str type = json_string(json_get(item, "type"));
	sheaf_str role = json_string(json_get(item, "role"));
	if (str_is(type, "message")) {
		put_line(out, role, "message", item, NAMES("id", "status", "phase"));
		responses_parts(out, role, json_get(item, "content"));
		return;
	}
	put_words(out, SHEAF_STR("item"), type.ptr);
	put_member(out, item, "id");
	put_member(out, item, "status");
	put_member(out, item, "call_id");
	put_member(out, item, "name");
	put_inner(out, item, "arguments");
	put_member(out, item, "summary");
	put_member(out, item, "encrypted_content");
	if (json_type_of(json_get(item, "output")) == JSON_STRING)
		put_member(out, item, "output");
	buf_char(out, '\n');
	responses_parts(out, SHEAF_STR("output"), json_get(item, "output"));
}

/* ---- Gemini ------------------------------------------------------------------ */

static void gemini_part(buf *out, sheaf_str role, const json_val *p)
{
	const json_val *call = json_get(p, "functionCall");
	const json_val *answer = json_get(p, "functionResponse");
	const json_val *data = json_get(p, "inlineData");
	if (call != NULL)
		put_line(out, role, "call", call, NAMES("id", "name", "args"));
	else if (answer != NULL)
		put_line(out, role, "answer", answer, NAMES("id", "name", "response", "parts"));
	else if (data != NULL)
		put_line(out, role, "data", data, NAMES("mimeType", "data"));
	else
		put_line(out, role, "text", p, NAMES("text", "thought"));
	if (json_get(p, "thoughtSignature") != NULL)
		put_line(out, role, "signature", p, NAMES("thoughtSignature"));
}

/* Whether an answer to the same call stands before this one. */
static bool is_double(const json_val *body, const json_val *part)
{
	sheaf_str id = json_string(json_get(json_get(part, "functionResponse"), "id"));
	if (id.len == 0)
		return false;
	for (json_iter at = json_each(json_get(body, "contents")); json_next(&at);) {
		for (json_iter p = json_each(json_get(at.value, "parts")); json_next(&p);) {
			if (p.value == part)
				return false;
			if (str_eq(id, json_string(json_get(json_get(p.value, "functionResponse"),
			                                    "id"))))
				return true;
		}
	}
	return false;
}

static void gemini_lines(buf *out, const json_val *body, bool once)
{
	bool passing = false;
	for (json_iter at = json_each(json_get(body, "contents")); json_next(&at);) {
		sheaf_str role = json_string(json_get(at.value, "role"));
		for (json_iter p = json_each(json_get(at.value, "parts")); json_next(&p);) {
			if (once && is_double(body, p.value))
				passing = true;
			else if (json_get(p.value, "inlineData") == NULL)
				passing = false;
			if (!passing)
				gemini_part(out, role, p.value);
		}
		passing = false;
	}
}

/* ---- Bodies ------------------------------------------------------------------ */

void body_lines_once(buf *out, const json_val *body)
{
	gemini_lines(out, body, true);
}

void body_lines(buf *out, int32_t format, const json_val *body, size_t skip)
{
	bool responses = format == SHEAF_FORMAT_OPENAI_RESPONSES;
	if (format == SHEAF_FORMAT_GEMINI) {
		gemini_lines(out, body, false);
		return;
	}
	const json_val *list = json_get(body, responses ? "input" : "messages");
	for (json_iter it = json_each(list); json_next(&it);) {
		if (skip != 0)
			skip--;
		else if (responses)
			responses_item(out, it.value);
		else if (format == SHEAF_FORMAT_OPENAI_CHAT)
			chat_message(out, it.value);
		else
			anthropic_message(out, it.value);
	}
}
