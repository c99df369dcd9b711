/* What Anthropic's Messages interface demands of a request body. */
#include "render/check.h"

#include <stdio.h>

#include "base/cleanup.h"

#define ROOM(i, k) "messages[%zu].content[%zu]", (i), (k)

/* Where a block stands decides what it may be. */
enum {
	IN_USER = 1,
	IN_ASSISTANT = 2,
	IN_SYSTEM = 4,
	IN_RESULT = 8
};

static const struct {
	const char *type;
	unsigned where;
} blocks[] = {
	{"text", IN_USER | IN_ASSISTANT | IN_SYSTEM | IN_RESULT},
	{"image", IN_USER | IN_RESULT},
	{"document", IN_USER | IN_RESULT},
	{"search_result", IN_USER | IN_RESULT},
	{"tool_reference", IN_RESULT},
	{"browser_state", IN_RESULT},
	{"tool_result", IN_USER},
	{"container_upload", IN_USER},
	{"tool_use", IN_ASSISTANT},
	{"thinking", IN_ASSISTANT},
	{"redacted_thinking", IN_ASSISTANT},
	{"server_tool_use", IN_ASSISTANT},
	{"web_search_tool_result", IN_ASSISTANT | IN_USER},
	{"web_fetch_tool_result", IN_ASSISTANT | IN_USER},
	{"code_execution_tool_result", IN_ASSISTANT | IN_USER},
	{"bash_code_execution_tool_result", IN_ASSISTANT | IN_USER},
	{"text_editor_code_execution_tool_result", IN_ASSISTANT | IN_USER},
	{"tool_search_tool_result", IN_ASSISTANT | IN_USER},
	{"mcp_tool_use", IN_ASSISTANT},
	{"mcp_tool_result", IN_ASSISTANT | IN_USER},
	{"mcp_tool_listing", IN_ASSISTANT | IN_USER},
	{"advisor_tool_result", IN_ASSISTANT | IN_USER},
	{"compaction", IN_ASSISTANT | IN_USER},
	{"tool_addition", IN_USER | IN_SYSTEM},
	{"tool_removal", IN_USER | IN_SYSTEM},
	{"fallback", IN_ASSISTANT},
};

typedef struct state {
	checker *c;
	const json_val *messages;
	size_t count;
	size_t marks;
	bool short_mark; /* a mark of five minutes came before */
	bool tool_blocks;
} state;

static bool is_thinking(const json_val *block)
{
	const json_val *type = json_get(block, "type");
	return check_is(type, "thinking") || check_is(type, "redacted_thinking");
}

/* ---- Cache marks ----------------------------------------------------------- */

static void check_mark(state *s, const json_val *holder, const char *place)
{
	const json_val *mark = json_get(holder, "cache_control");
	if (mark == NULL || json_type_of(mark) == JSON_NULL)
		return;
	const json_val *ttl = json_get(mark, "ttl");
	bool is_long = check_is(ttl, "1h");
	if (!check_is(json_get(mark, "type"), "ephemeral") ||
	    (ttl != NULL && !is_long && !check_is(ttl, "5m")))
		check_say(s->c, "mark", "a cache mark is ephemeral and lasts 5m or 1h", "%s",
		          place);
	if (++s->marks == 5)
		check_say(s->c, "marks_many", "there are more than four cache marks", "%s", place);
	if (is_long && s->short_mark)
		check_say(s->c, "marks_order", "a mark of an hour comes after one of five minutes",
		          "%s", place);
	s->short_mark |= !is_long;
	if (is_thinking(holder))
		check_say(s->c, "mark_thinking", "thinking cannot be marked for the cache", "%s",
		          place);
}

/* In a list: LIST[I], or LIST[I].content[K]. */
static void check_mark_in(state *s, const json_val *holder, const char *list, size_t i, size_t k)
{
	char place[64];
	if (json_get(holder, "cache_control") == NULL)
		return;
	if (k == SIZE_MAX)
		(void)snprintf(place, sizeof(place), "%s[%zu]", list, i);
	else
		(void)snprintf(place, sizeof(place), "%s[%zu].content[%zu]", list, i, k);
	check_mark(s, holder, place);
}

/* ---- Blocks ---------------------------------------------------------------- */

static void check_text(checker *c, const json_val *v, bool blank_too, size_t i, size_t k)
{
	sheaf_str text = json_string(v);
	if (text.ptr == NULL)
		check_say(c, "text", "a text block holds its text as a string", ROOM(i, k));
	else if (text.len == 0)
		check_say(c, "text_empty", "a text may not be empty", ROOM(i, k));
	else if (blank_too && check_is_blank(text))
		check_say(c, "text_blank", "a text may not be white space alone", ROOM(i, k));
}

static bool source_is_good(const json_val *source, bool image)
{
	static const char *const images[] = {"image/jpeg", "image/png", "image/gif", "image/webp"};
	const json_val *type = json_get(source, "type");
	sheaf_str media = json_string(json_get(source, "media_type"));
	const json_val *data = json_get(source, "data");
	if (check_is(type, "base64"))
		return check_is_base64(json_string(data)) &&
		       (image ? check_in(media, images, COUNT_OF(images))
		              : str_is(media, "application/pdf"));
	if (check_is(type, "url"))
		return check_is_url(json_string(json_get(source, "url")));
	if (check_is(type, "file"))
		return check_has_text(json_get(source, "file_id"));
	if (image)
		return false;
	if (check_is(type, "text"))
		return str_is(media, "text/plain") && check_has_text(data);
	return check_is(type, "content") && json_count(json_get(source, "content")) != 0;
}

static void check_source(checker *c, const json_val *block, size_t i, size_t k)
{
	const json_val *type = json_get(block, "type"), *source = json_get(block, "source");
	if (check_is(type, "image") && !source_is_good(source, true))
		check_say(c, "image",
		          "an image is base64 of JPEG, PNG, GIF or WebP, a URL or a file",
		          ROOM(i, k));
	if (check_is(type, "document") && !source_is_good(source, false))
		check_say(c, "document",
		          "a document is base64 of PDF, plain text, content, a URL or a file",
		          ROOM(i, k));
}

static void check_type(checker *c, const json_val *block, unsigned where, size_t i, size_t k)
{
	sheaf_str type = json_string(json_get(block, "type"));
	for (size_t b = 0; b < COUNT_OF(blocks); b++) {
		if (str_is(type, blocks[b].type) && (blocks[b].where & where) != 0)
			return;
	}
	check_say(c, "block_type", "a block of this type cannot stand here", ROOM(i, k));
}

static void check_call(state *s, const json_val *block, size_t i, size_t k)
{
	sheaf_str id = json_string(json_get(block, "id"));
	s->tool_blocks = true;
	if (!check_is_word(id, SIZE_MAX))
		check_say(s->c, "call_id", "a call's id is made of letters, digits, _ and -",
		          ROOM(i, k));
	else if (!check_first(s->c, &s->c->seen, id, i))
		check_say(s->c, "call_id_twice", "two calls have the same id", ROOM(i, k));
	if (!check_is_word(json_string(json_get(block, "name")), 128))
		check_say(s->c, "tool_name", "a tool's name is 1 to 128 letters, digits, _ and -",
		          ROOM(i, k));
	if (json_type_of(json_get(block, "input")) != JSON_OBJECT)
		check_say(s->c, "input", "a call's input must be an object", ROOM(i, k));
}

static void check_result(state *s, const json_val *block, size_t i, size_t k)
{
	const json_val *content = json_get(block, "content"), *error = json_get(block, "is_error");
	s->tool_blocks = true;
	if (error != NULL && !json_is_bool(error))
		check_say(s->c, "is_error", "is_error must be true or false", ROOM(i, k));
	if (content == NULL || json_type_of(content) == JSON_STRING)
		return;
	if (json_type_of(content) != JSON_ARRAY) {
		check_say(s->c, "content", "content must be a string or a list of blocks",
		          ROOM(i, k));
		return;
	}
	for (json_iter it = json_each(content); json_next(&it);) {
		check_type(s->c, it.value, IN_RESULT, i, k);
		check_source(s->c, it.value, i, k);
		if (check_is(json_get(it.value, "type"), "text"))
			check_text(s->c, json_get(it.value, "text"), false, i, k);
		check_mark_in(s, it.value, "messages", i, k);
	}
}

static void check_thinking(checker *c, const json_val *block, size_t i, size_t k)
{
	bool redacted = check_is(json_get(block, "type"), "redacted_thinking");
	if (redacted ? !check_has_text(json_get(block, "data"))
	             : !check_has_text(json_get(block, "signature")))
		check_say(c, "thinking_signature", "thinking goes back with its signature only",
		          ROOM(i, k));
	if (!redacted && json_type_of(json_get(block, "thinking")) != JSON_STRING)
		check_say(c, "text", "a thinking block holds its text as a string", ROOM(i, k));
}

static void check_block(state *s, const json_val *block, unsigned where, size_t i, size_t k)
{
	const json_val *type = json_get(block, "type");
	check_type(s->c, block, where, i, k);
	if (check_is(type, "text"))
		check_text(s->c, json_get(block, "text"), true, i, k);
	else if (check_is(type, "tool_use"))
		check_call(s, block, i, k);
	else if (check_is(type, "tool_result"))
		check_result(s, block, i, k);
	else if (is_thinking(block))
		check_thinking(s->c, block, i, k);
	check_source(s->c, block, i, k);
	check_mark_in(s, block, "messages", i, k);
}

/* ---- Calls and their answers ----------------------------------------------- */

/* The ids of a reply's calls. */
static void calls_of(checker *c, map *calls, const json_val *message)
{
	if (!check_is(json_get(message, "role"), "assistant"))
		return;
	for (json_iter it = json_each(json_get(message, "content")); json_next(&it);) {
		if (check_is(json_get(it.value, "type"), "tool_use"))
			(void)check_first(c, calls, json_string(json_get(it.value, "id")), 0);
	}
}

/* The results of a message: each the answer to a call of the message before, and first in it. */
static void check_answers(state *s, const json_val *message, const json_val *before, size_t i)
{
	_cleanup_(map_free) map called = MAP_INIT;
	_cleanup_(map_free) map answered = MAP_INIT;
	size_t k = 0, calls = 0;
	bool others = false;
	calls_of(s->c, &called, before);
	if (json_type_of(json_get(message, "content")) == JSON_ARRAY) {
		for (json_iter it = json_each(json_get(message, "content")); json_next(&it); k++) {
			if (!check_is(json_get(it.value, "type"), "tool_result")) {
				others = true;
				continue;
			}
			sheaf_str id = json_string(json_get(it.value, "tool_use_id"));
			if (!map_get(&called, id, &(uint64_t){0}))
				check_say(s->c, "result_orphan",
				          "a result answers a call of the message before it",
				          ROOM(i, k));
			else if (!check_first(s->c, &answered, id, 0))
				check_say(s->c, "result_twice", "a call is answered twice",
				          ROOM(i, k));
			if (others)
				check_say(s->c, "results_first",
				          "results come before everything else in their message",
				          ROOM(i, k));
		}
	}
	if (!check_is(json_get(before, "role"), "assistant"))
		return;
	for (json_iter it = json_each(json_get(before, "content")); json_next(&it); calls++) {
		uint64_t value;
		if (check_is(json_get(it.value, "type"), "tool_use") &&
		    !map_get(&answered, json_string(json_get(it.value, "id")), &value))
			check_say(s->c, "call_unanswered",
			          "a call is not answered in the next message", ROOM(i - 1, calls));
	}
}

/* ---- Messages -------------------------------------------------------------- */

static unsigned role_of(const json_val *message)
{
	const json_val *role = json_get(message, "role");
	return check_is(role, "user")        ? IN_USER
	       : check_is(role, "assistant") ? IN_ASSISTANT
	       : check_is(role, "system")    ? IN_SYSTEM
	                                     : 0;
}

static void check_content(state *s, const json_val *message, unsigned role, size_t i)
{
	const json_val *content = json_get(message, "content");
	bool may_be_empty = role == IN_ASSISTANT && i + 1 == s->count;
	size_t k = 0;
	if (json_type_of(content) == JSON_STRING) {
		if (!may_be_empty || json_string(content).len != 0)
			check_text(s->c, content, true, i, 0);
		return;
	}
	if (json_type_of(content) != JSON_ARRAY) {
		check_say(s->c, "content", "content must be a string or a list of blocks",
		          "messages[%zu]", i);
		return;
	}
	if (json_count(content) == 0 && !may_be_empty)
		check_say(s->c, "content_empty", "a message must have content", "messages[%zu]", i);
	for (json_iter it = json_each(content); json_next(&it); k++)
		check_block(s, it.value, role, i, k);
}

static bool ends_in_server_tool(const json_val *message)
{
	const json_val *last = NULL;
	for (json_iter it = json_each(json_get(message, "content")); json_next(&it);)
		last = it.value;
	sheaf_str type = json_string(json_get(last, "type"));
	return role_of(message) == IN_ASSISTANT && !str_is(type, "text") &&
	       !str_is(type, "tool_use") && type.len != 0 && !is_thinking(last);
}

/* A system message in the list stands between a user's and an assistant's, or is the last. */
static void check_system_place(state *s, const json_val *before, unsigned after, size_t i)
{
	if (i == 0 || (role_of(before) != IN_USER && !ends_in_server_tool(before)) ||
	    (i + 1 < s->count && after != IN_ASSISTANT))
		check_say(s->c, "system_place",
		          "a system message follows a user's and precedes an assistant's",
		          "messages[%zu]", i);
}

/* White space at the end of what the model is to go on with is refused. */
static void check_prefill(state *s, const json_val *last)
{
	const json_val *content = json_get(last, "content"), *block = NULL;
	sheaf_str text = json_string(content);
	if (role_of(last) != IN_ASSISTANT)
		return;
	if (json_type_of(content) == JSON_ARRAY) {
		for (json_iter it = json_each(content); json_next(&it);)
			block = it.value;
		text = json_string(json_get(block, "text"));
	}
	if (text.len != 0 && check_is_blank(str_make(text.ptr + text.len - 1, 1)))
		check_say(s->c, "prefill_space",
		          "the last message is the assistant's and ends in white space",
		          "messages[%zu]", s->count - 1);
}

static void check_messages(state *s)
{
	const json_val *before = NULL, *last = NULL;
	size_t i = 0;
	for (json_iter it = json_each(s->messages); json_next(&it); i++) {
		unsigned role = role_of(it.value);
		if (role == 0)
			check_say(s->c, "role", "a role is user, assistant or system",
			          "messages[%zu]", i);
		else if (i == 0 && role != IN_USER)
			check_say(s->c, "first_role", "the first message must be the user's",
			          "messages[0]");
		check_content(s, it.value, role, i);
		check_answers(s, it.value, before, i);
		if (i > 0 && role_of(before) == IN_SYSTEM)
			check_system_place(s, last, role, i - 1);
		last = before;
		before = it.value;
	}
	/* What the last message asks for nobody has answered yet. */
	check_answers(s, NULL, before, i);
	if (i > 0 && role_of(before) == IN_SYSTEM)
		check_system_place(s, last, 0, i - 1);
	check_prefill(s, before);
}

/* ---- Thinking -------------------------------------------------------------- */

static bool begins_with_thinking(const json_val *message)
{
	json_iter it = json_each(json_get(message, "content"));
	return json_type_of(json_get(message, "content")) == JSON_ARRAY && json_next(&it) &&
	       is_thinking(it.value);
}

static bool has_block(const json_val *message, const char *type)
{
	for (json_iter it = json_each(json_get(message, "content")); json_next(&it);) {
		if (check_is(json_get(it.value, "type"), type))
			return true;
	}
	return false;
}

/*
 * With thinking on, a turn that is going on begins with thinking: the first reply
 * since somebody said something else than the results of tools.
 */
static void check_thinking_on(state *s, const json_val *body)
{
	const json_val *thinking = json_get(body, "thinking"), *first = NULL;
	uint64_t budget, most;
	size_t at = 0, i = 0;
	if (!check_is(json_get(thinking, "type"), "enabled"))
		return;
	if (!json_u64(json_get(thinking, "budget_tokens"), &budget) || budget < 1024 ||
	    (json_u64(json_get(body, "max_tokens"), &most) && budget >= most))
		check_say(s->c, "thinking_budget",
		          "budget_tokens is at least 1024 and less than max_tokens",
		          "thinking.budget_tokens");
	for (json_iter it = json_each(s->messages); json_next(&it); i++) {
		if (role_of(it.value) == IN_ASSISTANT && first == NULL) {
			first = it.value;
			at = i;
		} else if (role_of(it.value) != IN_ASSISTANT &&
		           !has_block(it.value, "tool_result")) {
			first = NULL;
		}
	}
	if (first != NULL && !begins_with_thinking(first))
		check_say(s->c, "thinking_first",
		          "with thinking on, a turn that is going on must begin with thinking",
		          "messages[%zu]", at);
}

/* ---- Tools and system ------------------------------------------------------ */

static void check_tools(state *s, const json_val *tools)
{
	size_t i = 0;
	for (json_iter it = json_each(tools); json_next(&it); i++) {
		const json_val *type = json_get(it.value, "type");
		const json_val *schema = json_get(it.value, "input_schema");
		sheaf_str name = json_string(json_get(it.value, "name"));
		bool custom = type == NULL || check_is(type, "custom");
		if (!check_is_word(name, 128))
			check_say(s->c, "tool_name",
			          "a tool's name is 1 to 128 letters, digits, _ and -",
			          "tools[%zu]", i);
		else if (!check_first(s->c, &s->c->items, name, i))
			check_say(s->c, "tool_twice", "two tools have the same name", "tools[%zu]",
			          i);
		if (custom && (json_type_of(schema) != JSON_OBJECT ||
		               !check_is(json_get(schema, "type"), "object")))
			check_say(s->c, "tool_schema", "a tool has an input_schema of type object",
			          "tools[%zu]", i);
		check_mark_in(s, it.value, "tools", i, SIZE_MAX);
	}
}

static void check_system(state *s, const json_val *system)
{
	size_t i = 0;
	if (system == NULL || json_type_of(system) == JSON_STRING)
		return;
	for (json_iter it = json_each(system); json_next(&it); i++) {
		sheaf_str text = json_string(json_get(it.value, "text"));
		if (!check_is(json_get(it.value, "type"), "text") || check_is_blank(text))
			check_say(s->c, "system",
			          "the system text is made of texts that say something",
			          "system[%zu]", i);
		check_mark_in(s, it.value, "system", i, SIZE_MAX);
	}
}

void check_anthropic(checker *c, const json_val *body)
{
	const json_val *messages = json_get(body, "messages"), *tools = json_get(body, "tools");
	state s = {.c = c, .messages = messages, .count = json_count(messages)};
	uint64_t most;
	check_model(c, body);
	if (!json_u64(json_get(body, "max_tokens"), &most))
		check_say(c, "max_tokens", "max_tokens must be there, a whole number",
		          "max_tokens");
	check_tools(&s, tools);
	check_system(&s, json_get(body, "system"));
	if (json_type_of(messages) != JSON_ARRAY || s.count == 0) {
		check_say(c, "messages", "there must be messages", "messages");
		return;
	}
	if (s.count > 100000)
		check_say(c, "messages_many", "there are more than 100,000 messages", "messages");
	check_messages(&s);
	check_thinking_on(&s, body);
	check_mark(&s, body, "cache_control");
	if (s.tool_blocks && json_count(tools) == 0)
		check_say(c, "tools", "calls and results need tools to be declared", "tools");
}
