/* What OpenAI's Responses interface demands of a request body. */
#include "render/check.h"

#include "base/cleanup.h"

/* What an item is to the items around it. */
enum {
	ITEM_PLAIN = 0,
	ITEM_CALL = 1,   /* needs an answer by call_id */
	ITEM_ANSWER = 2, /* needs such a call */
	ITEM_MADE = 4    /* a part of a response: what reasoning may lead to */
};

static const struct {
	const char *type;
	const char *answer; /* of a call: the type of its answer */
	unsigned what;
} items[] = {
	{"message", NULL, ITEM_PLAIN},
	{"reasoning", NULL, ITEM_MADE},
	{"function_call", "function_call_output", ITEM_CALL | ITEM_MADE},
	{"function_call_output", NULL, ITEM_ANSWER},
	{"custom_tool_call", "custom_tool_call_output", ITEM_CALL | ITEM_MADE},
	{"custom_tool_call_output", NULL, ITEM_ANSWER},
	{"shell_call", "shell_call_output", ITEM_CALL | ITEM_MADE},
	{"shell_call_output", NULL, ITEM_ANSWER},
	{"apply_patch_call", "apply_patch_call_output", ITEM_CALL | ITEM_MADE},
	{"apply_patch_call_output", NULL, ITEM_ANSWER},
	{"computer_call", "computer_call_output", ITEM_CALL | ITEM_MADE},
	{"computer_call_output", NULL, ITEM_ANSWER},
	{"local_shell_call", NULL, ITEM_MADE},
	{"local_shell_call_output", NULL, ITEM_PLAIN},
	{"web_search_call", NULL, ITEM_MADE},
	{"file_search_call", NULL, ITEM_MADE},
	{"code_interpreter_call", NULL, ITEM_MADE},
	{"image_generation_call", NULL, ITEM_MADE},
	{"mcp_list_tools", NULL, ITEM_MADE},
	{"mcp_approval_request", NULL, ITEM_MADE},
	{"mcp_approval_response", NULL, ITEM_PLAIN},
	{"mcp_call", NULL, ITEM_MADE},
	{"tool_search_call", NULL, ITEM_MADE},
	{"tool_search_output", NULL, ITEM_PLAIN},
	{"additional_tools", NULL, ITEM_PLAIN},
	{"program", NULL, ITEM_MADE},
	{"program_output", NULL, ITEM_PLAIN},
	{"compaction", NULL, ITEM_MADE},
	{"compaction_trigger", NULL, ITEM_PLAIN},
	{"item_reference", NULL, ITEM_MADE},
};

typedef struct state {
	checker *c;
	const json_val *input;
	bool stored; /* the server keeps what it made */
	map answered;
} state;

/* The row of an item; a message may leave its type out. */
static size_t row_of(const json_val *item)
{
	const json_val *type = json_get(item, "type");
	if (type == NULL && json_get(item, "role") != NULL)
		return 0;
	for (size_t i = 0; i < COUNT_OF(items); i++) {
		if (check_is(type, items[i].type))
			return i;
	}
	return COUNT_OF(items);
}

/* ---- Content --------------------------------------------------------------- */

static bool input_part_is_good(const json_val *part)
{
	const json_val *type = json_get(part, "type");
	if (check_is(type, "input_text"))
		return json_type_of(json_get(part, "text")) == JSON_STRING;
	if (check_is(type, "input_image")) {
		sheaf_str url = json_string(json_get(part, "image_url"));
		return check_has_text(json_get(part, "file_id")) || check_is_url(url) ||
		       (str_starts(url, "data:image/") && check_is_data_url(url));
	}
	return check_is(type, "input_file") &&
	       (check_has_text(json_get(part, "file_id")) ||
	        check_is_url(json_string(json_get(part, "file_url"))) ||
	        (check_is_data_url(json_string(json_get(part, "file_data"))) &&
	         check_has_text(json_get(part, "filename"))));
}

static bool output_part_is_good(const json_val *part)
{
	const json_val *type = json_get(part, "type");
	return (check_is(type, "output_text") &&
	        json_type_of(json_get(part, "text")) == JSON_STRING) ||
	       (check_is(type, "refusal") && check_has_text(json_get(part, "refusal")));
}

static void check_message(state *s, const json_val *item, size_t i)
{
	static const char *const roles[] = {"user", "assistant", "system", "developer"};
	const json_val *content = json_get(item, "content");
	sheaf_str role = json_string(json_get(item, "role"));
	size_t k = 0;
	if (!check_in(role, roles, COUNT_OF(roles)))
		check_say(s->c, "role", "a role is user, assistant, system or developer",
		          "input[%zu]", i);
	if (json_type_of(content) == JSON_STRING)
		return;
	if (json_type_of(content) != JSON_ARRAY || json_count(content) == 0) {
		check_say(s->c, "content", "content must be a string or a list of parts",
		          "input[%zu]", i);
		return;
	}
	for (json_iter it = json_each(content); json_next(&it); k++) {
		bool good = str_is(role, "assistant") ? output_part_is_good(it.value)
		                                      : input_part_is_good(it.value);
		if (!good)
			check_say(s->c, "part",
			          "a part of this type, or of this shape, cannot stand here",
			          "input[%zu].content[%zu]", i, k);
	}
}

/* ---- Calls and their answers ----------------------------------------------- */

static void check_call(state *s, const json_val *item, size_t row, size_t i)
{
	sheaf_str id = json_string(json_get(item, "call_id"));
	bool function = strcmp(items[row].type, "function_call") == 0;
	if (id.len == 0 || id.len > 64)
		check_say(s->c, "call_id", "a call_id has 1 to 64 bytes", "input[%zu]", i);
	if (!check_first(s->c, &s->c->seen, id, row))
		check_say(s->c, "call_id_twice", "two calls have the same call_id", "input[%zu]",
		          i);
	if (!function && strcmp(items[row].type, "custom_tool_call") != 0)
		return;
	if (!check_is_word(json_string(json_get(item, "name")), 64))
		check_say(s->c, "tool_name", "a tool's name is 1 to 64 letters, digits, _ and -",
		          "input[%zu]", i);
	if (json_type_of(json_get(item, function ? "arguments" : "input")) != JSON_STRING)
		check_say(s->c, "arguments", "a call's arguments are a string", "input[%zu]", i);
}

static void check_answer(state *s, const json_val *item, size_t row, size_t i)
{
	const json_val *output = json_get(item, "output");
	sheaf_str id = json_string(json_get(item, "call_id"));
	uint64_t call;
	size_t k = 0;
	if (!map_get(&s->c->seen, id, &call) || items[call].answer == NULL ||
	    strcmp(items[call].answer, items[row].type) != 0)
		check_say(s->c, "result_orphan", "an output comes after the call it belongs to",
		          "input[%zu]", i);
	else if (!check_first(s->c, &s->answered, id, i))
		check_say(s->c, "result_twice", "a call is answered twice", "input[%zu]", i);
	if (strcmp(items[row].type, "function_call_output") != 0)
		return;
	if (json_type_of(output) != JSON_STRING &&
	    (json_type_of(output) != JSON_ARRAY || json_count(output) == 0))
		check_say(s->c, "output", "an output is a string or a list of parts", "input[%zu]",
		          i);
	if (json_type_of(output) != JSON_ARRAY)
		return;
	for (json_iter it = json_each(output); json_next(&it); k++) {
		if (!input_part_is_good(it.value))
			check_say(s->c, "part",
			          "a part of this type, or of this shape, cannot stand here",
			          "input[%zu].output[%zu]", i, k);
	}
}

static void check_answered(state *s)
{
	size_t i = 0;
	for (json_iter it = json_each(s->input); json_next(&it); i++) {
		size_t row = row_of(it.value);
		uint64_t at;
		if (row < COUNT_OF(items) && (items[row].what & ITEM_CALL) != 0 &&
		    !map_get(&s->answered, json_string(json_get(it.value, "call_id")), &at))
			check_say(s->c, "call_unanswered", "a call has no output after it",
			          "input[%zu]", i);
	}
}

/* ---- Reasoning ------------------------------------------------------------- */

static void check_reasoning(state *s, const json_val *item, const json_val *next, size_t i)
{
	const json_val *summary = json_get(item, "summary");
	size_t row = row_of(next);
	bool made = row < COUNT_OF(items) && (items[row].what & ITEM_MADE) != 0;
	if (json_type_of(summary) != JSON_ARRAY)
		check_say(s->c, "reasoning", "reasoning has a list of summaries", "input[%zu]", i);
	for (json_iter it = json_each(summary); json_next(&it);) {
		if (!check_is(json_get(it.value, "type"), "summary_text") ||
		    json_type_of(json_get(it.value, "text")) != JSON_STRING)
			check_say(s->c, "reasoning", "a summary is a summary_text", "input[%zu]",
			          i);
	}
	if (!s->stored && !check_has_text(json_get(item, "encrypted_content")))
		check_say(s->c, "reasoning_content",
		          "reasoning the server does not keep goes back encrypted", "input[%zu]",
		          i);
	if (!made && !(row == 0 && check_is(json_get(next, "role"), "assistant")))
		check_say(s->c, "reasoning_alone",
		          "reasoning is followed by an item of the same response", "input[%zu]", i);
}

/* ---- The body -------------------------------------------------------------- */

static void check_item(state *s, const json_val *item, const json_val *next, size_t i)
{
	size_t row = row_of(item);
	sheaf_str id = json_string(json_get(item, "id"));
	if (row == COUNT_OF(items)) {
		check_say(s->c, "item_type", "there is no item of this type", "input[%zu]", i);
		return;
	}
	if (id.len != 0 && !check_first(s->c, &s->c->items, id, i))
		check_say(s->c, "item_id_twice", "two items have the same id", "input[%zu]", i);
	if (row == 0)
		check_message(s, item, i);
	else if (strcmp(items[row].type, "reasoning") == 0)
		check_reasoning(s, item, next, i);
	else if ((items[row].what & ITEM_CALL) != 0)
		check_call(s, item, row, i);
	else if ((items[row].what & ITEM_ANSWER) != 0)
		check_answer(s, item, row, i);
}

static void check_tools(checker *c, const json_val *tools)
{
	_cleanup_(map_free) map names = MAP_INIT;
	size_t i = 0;
	for (json_iter it = json_each(tools); json_next(&it); i++) {
		const json_val *schema = json_get(it.value, "parameters");
		sheaf_str name = json_string(json_get(it.value, "name"));
		if (!check_has_text(json_get(it.value, "type")) ||
		    (schema != NULL && json_type_of(schema) != JSON_OBJECT))
			check_say(c, "tool_schema",
			          "a tool has a type, and an object of parameters", "tools[%zu]",
			          i);
		if (!check_is(json_get(it.value, "type"), "function"))
			continue;
		if (!check_is_word(name, 64))
			check_say(c, "tool_name",
			          "a tool's name is 1 to 64 letters, digits, _ and -", "tools[%zu]",
			          i);
		else if (!check_first(c, &names, name, i))
			check_say(c, "tool_twice", "two tools have the same name", "tools[%zu]", i);
	}
}

void check_openai_responses(checker *c, const json_val *body)
{
	const json_val *input = json_get(body, "input"),
		       *most = json_get(body, "max_output_tokens");
	const json_val *item = NULL;
	state s = {.c = c, .input = input, .answered = MAP_INIT};
	uint64_t number;
	size_t i = 0;
	s.stored = json_get(body, "store") == NULL || json_bool(json_get(body, "store"));
	check_model(c, body);
	if (most != NULL && (!json_u64(most, &number) || number == 0))
		check_say(c, "max_tokens", "max_output_tokens is a whole number from 1",
		          "max_output_tokens");
	check_tools(c, json_get(body, "tools"));
	if (check_has_text(input))
		return;
	if (json_type_of(input) != JSON_ARRAY || json_count(input) == 0) {
		check_say(c, "input", "there must be input", "input");
		return;
	}
	for (json_iter it = json_each(input); json_next(&it); item = it.value) {
		if (item != NULL)
			check_item(&s, item, it.value, i++);
	}
	check_item(&s, item, NULL, i);
	check_answered(&s);
	map_free(&s.answered);
}
