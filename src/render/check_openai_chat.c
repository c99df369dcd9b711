/* What OpenAI's Chat Completions interface demands of a request body. */
#include "render/check.h"

#include "base/cleanup.h"

typedef struct state {
	checker *c;
	map open;     /* ids of the calls whose answers must come now -> 0, or 1 once answered */
	size_t left;  /* of these without an answer */
	size_t asked; /* the message that made them */
} state;

/* ---- Content --------------------------------------------------------------- */

static bool part_is_good(const json_val *part, const char *role)
{
	const json_val *type = json_get(part, "type"), *file = json_get(part, "file");
	bool user = strcmp(role, "user") == 0;
	if (check_is(type, "text"))
		return json_type_of(json_get(part, "text")) == JSON_STRING;
	if (check_is(type, "refusal"))
		return strcmp(role, "assistant") == 0 && check_has_text(json_get(part, "refusal"));
	if (check_is(type, "image_url")) {
		sheaf_str url = json_string(json_get(json_get(part, "image_url"), "url"));
		return user && (check_is_url(url) ||
		                (str_starts(url, "data:image/") && check_is_data_url(url)));
	}
	if (check_is(type, "file"))
		return user && (check_has_text(json_get(file, "file_id")) ||
		                (check_is_data_url(json_string(json_get(file, "file_data"))) &&
		                 check_has_text(json_get(file, "filename"))));
	return user && check_is(type, "input_audio") &&
	       check_has_text(json_get(json_get(part, "input_audio"), "data"));
}

static void check_content(state *s, const json_val *message, const char *role, size_t i)
{
	const json_val *content = json_get(message, "content");
	bool assistant = strcmp(role, "assistant") == 0;
	size_t k = 0;
	if (json_type_of(content) == JSON_STRING)
		return;
	if (content == NULL || json_type_of(content) == JSON_NULL) {
		if (!assistant || (json_get(message, "tool_calls") == NULL &&
		                   json_get(message, "function_call") == NULL &&
		                   !check_has_text(json_get(message, "refusal")) &&
		                   json_get(message, "audio") == NULL))
			check_say(s->c, "content_null",
			          "content may be missing only beside tool calls", "messages[%zu]",
			          i);
		return;
	}
	if (json_type_of(content) != JSON_ARRAY || json_count(content) == 0) {
		check_say(s->c, "content", "content must be a string or a list of parts",
		          "messages[%zu]", i);
		return;
	}
	for (json_iter it = json_each(content); json_next(&it); k++) {
		if (part_is_good(it.value, role))
			continue;
		if (strcmp(role, "tool") == 0)
			check_say(s->c, "result_text", "a tool's answer is made of texts only",
			          "messages[%zu].content[%zu]", i, k);
		else
			check_say(s->c, "part",
			          "a part of this type, or of this shape, cannot stand here",
			          "messages[%zu].content[%zu]", i, k);
	}
}

/* ---- Calls and their answers ----------------------------------------------- */

static void check_call(state *s, const json_val *call, size_t i, size_t k)
{
	const json_val *type = json_get(call, "type");
	sheaf_str id = json_string(json_get(call, "id"));
	bool custom = check_is(type, "custom");
	const json_val *what = json_get(call, custom ? "custom" : "function");
	if (!custom && !check_is(type, "function"))
		check_say(s->c, "call_type", "a call is of type function or custom",
		          "messages[%zu].tool_calls[%zu]", i, k);
	if (id.len == 0 || id.len > 64)
		check_say(s->c, "call_id", "a call has an id of at most 64 bytes",
		          "messages[%zu].tool_calls[%zu]", i, k);
	else if (!check_first(s->c, &s->c->seen, id, i))
		check_say(s->c, "call_id_twice", "two calls have the same id",
		          "messages[%zu].tool_calls[%zu]", i, k);
	else if (check_first(s->c, &s->open, id, 0))
		s->left++;
	if (!check_is_word(json_string(json_get(what, "name")), 64))
		check_say(s->c, "tool_name", "a tool's name is 1 to 64 letters, digits, _ and -",
		          "messages[%zu].tool_calls[%zu]", i, k);
	if (json_type_of(json_get(what, custom ? "input" : "arguments")) != JSON_STRING)
		check_say(s->c, "arguments", "a call's arguments are a string",
		          "messages[%zu].tool_calls[%zu]", i, k);
}

static void check_calls(state *s, const json_val *message, size_t i)
{
	const json_val *calls = json_get(message, "tool_calls");
	size_t k = 0;
	if (calls == NULL)
		return;
	s->asked = i;
	if (json_type_of(calls) != JSON_ARRAY || json_count(calls) == 0)
		check_say(s->c, "tool_calls", "tool_calls is a list of at least one call",
		          "messages[%zu]", i);
	for (json_iter it = json_each(calls); json_next(&it); k++)
		check_call(s, it.value, i, k);
}

static void check_result(state *s, const json_val *message, size_t i)
{
	sheaf_str id = json_string(json_get(message, "tool_call_id"));
	uint64_t answered;
	if (!map_get(&s->open, id, &answered))
		check_say(s->c, "result_orphan",
		          "a tool's answer follows the message that has its call", "messages[%zu]",
		          i);
	else if (answered != 0)
		check_say(s->c, "result_twice", "a call is answered twice", "messages[%zu]", i);
	else if (map_set(&s->open, id, 1) != 0)
		s->c->status = SHEAF_NOMEM;
	else
		s->left--;
}

/* Whatever is no answer ends the run of answers. */
static void check_answered(state *s)
{
	if (s->left != 0)
		check_say(s->c, "call_unanswered",
		          "calls must be followed by one tool message for each", "messages[%zu]",
		          s->asked);
	map_free(&s->open);
	s->open = (map)MAP_INIT;
	s->left = 0;
}

/* ---- The body -------------------------------------------------------------- */

static void check_message(state *s, const json_val *message, size_t i)
{
	static const char *const roles[] = {"system",    "developer", "user",
	                                    "assistant", "tool",      "function"};
	sheaf_str role = json_string(json_get(message, "role"));
	bool tool = str_is(role, "tool");
	if (!check_in(role, roles, COUNT_OF(roles)))
		check_say(s->c, "role", "a role is system, developer, user, assistant or tool",
		          "messages[%zu]", i);
	if (tool)
		check_result(s, message, i);
	else
		check_answered(s);
	if (str_is(role, "assistant"))
		check_calls(s, message, i);
	else if (json_get(message, "tool_calls") != NULL)
		check_say(s->c, "tool_calls", "only an assistant's message has calls",
		          "messages[%zu]", i);
	check_content(s, message, role.ptr != NULL ? role.ptr : "", i);
}

static void check_tools(checker *c, const json_val *tools)
{
	size_t i = 0;
	for (json_iter it = json_each(tools); json_next(&it); i++) {
		bool custom = check_is(json_get(it.value, "type"), "custom");
		const json_val *what = json_get(it.value, custom ? "custom" : "function");
		const json_val *schema = json_get(what, "parameters");
		sheaf_str name = json_string(json_get(what, "name"));
		if (!check_is_word(name, 64))
			check_say(c, "tool_name",
			          "a tool's name is 1 to 64 letters, digits, _ and -", "tools[%zu]",
			          i);
		else if (!check_first(c, &c->items, name, i))
			check_say(c, "tool_twice", "two tools have the same name", "tools[%zu]", i);
		if ((!custom && !check_is(json_get(it.value, "type"), "function")) ||
		    (schema != NULL && json_type_of(schema) != JSON_OBJECT))
			check_say(c, "tool_schema",
			          "a tool is a function with an object of parameters", "tools[%zu]",
			          i);
	}
	if (tools != NULL && i == 0)
		check_say(c, "tools_empty", "a list of no tools is refused", "tools");
}

void check_openai_chat(checker *c, const json_val *body)
{
	static const char *const limits[] = {"max_tokens", "max_completion_tokens"};
	const json_val *messages = json_get(body, "messages");
	state s = {.c = c, .open = MAP_INIT};
	size_t i = 0;
	check_model(c, body);
	for (size_t k = 0; k < COUNT_OF(limits); k++) {
		const json_val *limit = json_get(body, limits[k]);
		uint64_t most;
		if (limit != NULL && json_type_of(limit) != JSON_NULL &&
		    (!json_u64(limit, &most) || most == 0))
			check_say(c, "max_tokens", "a limit of tokens is a whole number from 1",
			          "%s", limits[k]);
	}
	check_tools(c, json_get(body, "tools"));
	if (json_type_of(messages) != JSON_ARRAY || json_count(messages) == 0)
		check_say(c, "messages", "there must be messages", "messages");
	else
		for (json_iter it = json_each(messages); json_next(&it); i++)
			check_message(&s, it.value, i);
	check_answered(&s);
}
