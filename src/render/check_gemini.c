/* What Google's Gemini interface (generateContent) demands of a request body. */
#include "render/check.h"

#include "base/cleanup.h"

#define PLACE(i, k) "contents[%zu].parts[%zu]", (i), (k)

#define SENTINEL "skip_thought_signature_validator"

/* A part has exactly one of these. */
static const char *const kinds[] = {
	"text",           "inlineData",          "fileData", "functionCall", "functionResponse",
	"executableCode", "codeExecutionResult", "toolCall", "toolResponse",
};

typedef struct state {
	checker *c;
	const json_val *contents;
	size_t count;
} state;

/* Letters, digits, _ - . and :, and no digit or sign first. */
static bool is_name(sheaf_str s)
{
	char first = s.len != 0 ? s.ptr[0] : '0';
	if (s.len > 128 || first == '-' || first == '.' || first == ':' ||
	    (first >= '0' && first <= '9'))
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (!check_is_word(str_make(s.ptr + i, 1), 1) && s.ptr[i] != '.' && s.ptr[i] != ':')
			return false;
	}
	return true;
}

static bool is_model(const json_val *content)
{
	return check_is(json_get(content, "role"), "model");
}

/* ---- Parts ----------------------------------------------------------------- */

static bool data_is_good(const json_val *data)
{
	sheaf_str type = json_string(json_get(data, "mimeType"));
	return type.len > 2 && memchr(type.ptr, '/', type.len) != NULL &&
	       check_is_base64(json_string(json_get(data, "data")));
}

static void check_call(state *s, const json_val *call, bool model, size_t i, size_t k)
{
	const json_val *args = json_get(call, "args");
	if (!model)
		check_say(s->c, "call_role", "only the model's turn has calls", PLACE(i, k));
	if (!is_name(json_string(json_get(call, "name"))))
		check_say(s->c, "tool_name",
		          "a function's name begins with a letter or _ and has at most 128 bytes",
		          PLACE(i, k));
	if (args != NULL && json_type_of(args) != JSON_OBJECT)
		check_say(s->c, "args", "a call's args must be an object", PLACE(i, k));
	sheaf_str id = json_string(json_get(call, "id"));
	if (id.len != 0 && !check_first(s->c, &s->c->seen, id, i))
		check_say(s->c, "call_id_twice", "two calls have the same id", PLACE(i, k));
}

static void check_response(state *s, const json_val *response, bool model, size_t i, size_t k)
{
	const json_val *parts = json_get(response, "parts");
	if (model)
		check_say(s->c, "response_role", "only the user's turn has responses", PLACE(i, k));
	if (!is_name(json_string(json_get(response, "name"))))
		check_say(s->c, "tool_name",
		          "a function's name begins with a letter or _ and has at most 128 bytes",
		          PLACE(i, k));
	if (json_type_of(json_get(response, "response")) != JSON_OBJECT)
		check_say(s->c, "response", "a function's response must be an object", PLACE(i, k));
	if (parts != NULL && json_type_of(parts) != JSON_ARRAY)
		check_say(s->c, "response_parts", "a response's parts are a list", PLACE(i, k));
	for (json_iter it = json_each(parts); json_next(&it);) {
		if (!data_is_good(json_get(it.value, "inlineData")) &&
		    !check_has_text(json_get(json_get(it.value, "fileData"), "fileUri")))
			check_say(s->c, "response_parts",
			          "a response's parts are inlineData or fileData", PLACE(i, k));
	}
}

static void check_part(state *s, const json_val *part, bool model, size_t i, size_t k)
{
	const json_val *text = json_get(part, "text"), *data = json_get(part, "inlineData");
	const json_val *file = json_get(part, "fileData"), *call = json_get(part, "functionCall");
	const json_val *response = json_get(part, "functionResponse");
	const json_val *signature = json_get(part, "thoughtSignature");
	size_t found = 0;
	for (size_t n = 0; n < COUNT_OF(kinds); n++)
		found += json_get(part, kinds[n]) != NULL;
	if (found != 1)
		check_say(s->c, "part_kind", "a part is of one kind", PLACE(i, k));
	if (signature != NULL && (!model || !check_has_text(signature)))
		check_say(s->c, "signature", "a signature is the model's, and not empty",
		          PLACE(i, k));
	/* A signature may come with a text of nothing. */
	if (text != NULL && !check_has_text(text) && signature == NULL)
		check_say(s->c, "text_empty", "a text may not be empty", PLACE(i, k));
	if (json_get(part, "thought") != NULL && (!model || text == NULL))
		check_say(s->c, "thought", "a thought is a text of the model", PLACE(i, k));
	if (data != NULL && !data_is_good(data))
		check_say(s->c, "inline_data", "inlineData has a mimeType and base64 data",
		          PLACE(i, k));
	if (file != NULL && !check_has_text(json_get(file, "fileUri")))
		check_say(s->c, "file_data", "fileData has a fileUri", PLACE(i, k));
	if (call != NULL)
		check_call(s, call, model, i, k);
	if (response != NULL)
		check_response(s, response, model, i, k);
}

/* ---- Calls and their answers ----------------------------------------------- */

/* The next part that has this member, or NULL. */
static const json_val *next_with(json_iter *it, const char *kind)
{
	while (json_next(it)) {
		const json_val *v = json_get(it->value, kind);
		if (v != NULL)
			return v;
	}
	return NULL;
}

static void check_answers(state *s, const json_val *before, const json_val *content, size_t i)
{
	json_iter calls = json_each(is_model(before) ? json_get(before, "parts") : NULL);
	json_iter answers = json_each(json_get(content, "parts"));
	for (;;) {
		const json_val *call = next_with(&calls, "functionCall");
		const json_val *answer = next_with(&answers, "functionResponse");
		if (call == NULL && answer == NULL)
			return;
		if (call == NULL) {
			check_say(s->c, "response_orphan",
			          "there are more responses than calls in the turn before",
			          "contents[%zu]", i);
			return;
		}
		if (answer == NULL) {
			check_say(s->c, "call_unanswered",
			          "there are fewer responses than calls in the turn before",
			          "contents[%zu]", i);
			return;
		}
		sheaf_str id = json_string(json_get(call, "id"));
		sheaf_str of = json_string(json_get(answer, "id"));
		if (!str_eq(json_string(json_get(call, "name")),
		            json_string(json_get(answer, "name"))) ||
		    (id.len != 0 && of.len != 0 && !str_eq(id, of)))
			check_say(s->c, "response_match",
			          "a response has the name and the id of its call", "contents[%zu]",
			          i);
	}
}

/* ---- Signatures ------------------------------------------------------------ */

static uint64_t version_of(sheaf_str model)
{
	uint64_t version = 0;
	if (str_starts(model, "models/"))
		model = str_make(model.ptr + 7, model.len - 7);
	if (!str_starts(model, "gemini-"))
		return 0;
	for (size_t i = 7; i < model.len && model.ptr[i] >= '0' && model.ptr[i] <= '9' && i < 16;
	     i++)
		version = version * 10 + (uint64_t)(model.ptr[i] - '0');
	return version;
}

static bool has_sentinel(const state *s)
{
	for (json_iter it = json_each(s->contents); json_next(&it);) {
		for (json_iter p = json_each(json_get(it.value, "parts")); json_next(&p);) {
			if (check_is(json_get(p.value, "thoughtSignature"), SENTINEL))
				return true;
		}
	}
	return false;
}

/*
 * The model is named in the address, not in the body; a body that uses what came
 * with Gemini 3 is held to its rules.
 */
static bool needs_signatures(const state *s, const json_val *body)
{
	const json_val *thinking = json_get(json_get(body, "generationConfig"), "thinkingConfig");
	return version_of(json_string(json_get(body, "model"))) >= 3 ||
	       json_get(thinking, "thinkingLevel") != NULL || has_sentinel(s);
}

/* Whether a user's turn begins anew: it says something besides answering. */
static bool is_new_turn(const json_val *content)
{
	if (is_model(content))
		return false;
	for (json_iter it = json_each(json_get(content, "parts")); json_next(&it);) {
		if (json_get(it.value, "text") != NULL)
			return true;
	}
	return false;
}

static void check_signatures(state *s)
{
	size_t i = 0, turn = 0;
	for (json_iter it = json_each(s->contents); json_next(&it); i++) {
		if (is_new_turn(it.value))
			turn = i;
	}
	i = 0;
	for (json_iter it = json_each(s->contents); json_next(&it); i++) {
		if (i < turn || !is_model(it.value))
			continue;
		size_t k = 0;
		for (json_iter p = json_each(json_get(it.value, "parts")); json_next(&p); k++) {
			if (json_get(p.value, "functionCall") == NULL)
				continue;
			if (!check_has_text(json_get(p.value, "thoughtSignature")))
				check_say(s->c, "signature_missing",
				          "the first call of a step has its signature",
				          PLACE(i, k));
			break;
		}
	}
}

/* ---- The body -------------------------------------------------------------- */

static void check_contents(state *s)
{
	const json_val *before = NULL;
	size_t i = 0;
	for (json_iter it = json_each(s->contents); json_next(&it); i++) {
		const json_val *role = json_get(it.value, "role");
		const json_val *parts = json_get(it.value, "parts");
		bool model = is_model(it.value);
		size_t k = 0;
		if (!model && !check_is(role, "user"))
			check_say(s->c, "role", "a role is user or model", "contents[%zu]", i);
		if (i == 0 && model)
			check_say(s->c, "first_role", "the first turn must be the user's",
			          "contents[0]");
		if (i > 0 && is_model(before) == model)
			check_say(s->c, "roles_alternate", "turns of user and model alternate",
			          "contents[%zu]", i);
		if (json_type_of(parts) != JSON_ARRAY || json_count(parts) == 0)
			check_say(s->c, "parts_empty", "a turn must have parts", "contents[%zu]",
			          i);
		for (json_iter p = json_each(parts); json_next(&p); k++)
			check_part(s, p.value, model, i, k);
		if (!model)
			check_answers(s, before, it.value, i);
		before = it.value;
	}
	if (is_model(before))
		check_answers(s, before, NULL, i);
}

static void check_tools(checker *c, const json_val *tools)
{
	size_t i = 0;
	for (json_iter t = json_each(tools); json_next(&t); i++) {
		size_t k = 0;
		for (json_iter it = json_each(json_get(t.value, "functionDeclarations"));
		     json_next(&it); k++) {
			const json_val *old = json_get(it.value, "parameters");
			const json_val *schema = json_get(it.value, "parametersJsonSchema");
			sheaf_str name = json_string(json_get(it.value, "name"));
			if (!is_name(name))
				check_say(c, "tool_name",
				          "a function's name begins with a letter or _ and has at "
				          "most 128 bytes",
				          "tools[%zu].functionDeclarations[%zu]", i, k);
			else if (!check_first(c, &c->items, name, k))
				check_say(c, "tool_twice", "two tools have the same name",
				          "tools[%zu].functionDeclarations[%zu]", i, k);
			if ((old != NULL && schema != NULL) ||
			    (old != NULL && json_type_of(old) != JSON_OBJECT) ||
			    (schema != NULL && json_type_of(schema) != JSON_OBJECT))
				check_say(c, "tool_schema",
				          "a function's parameters are one object",
				          "tools[%zu].functionDeclarations[%zu]", i, k);
		}
	}
}

static void check_config(checker *c, const json_val *config)
{
	static const char *const levels[] = {"minimal", "low", "medium", "high",
	                                     "MINIMAL", "LOW", "MEDIUM", "HIGH"};
	const json_val *thinking = json_get(config, "thinkingConfig");
	const json_val *most = json_get(config, "maxOutputTokens");
	const json_val *level = json_get(thinking, "thinkingLevel");
	const json_val *budget = json_get(thinking, "thinkingBudget");
	uint64_t number;
	if (most != NULL && (!json_u64(most, &number) || number == 0))
		check_say(c, "max_tokens", "maxOutputTokens is a whole number from 1",
		          "generationConfig.maxOutputTokens");
	if ((level != NULL && budget != NULL) ||
	    (level != NULL && !check_in(json_string(level), levels, COUNT_OF(levels))) ||
	    (budget != NULL && !json_u64(budget, &number) && !str_is(json_number(budget), "-1")))
		check_say(c, "thinking_config",
		          "thinkingConfig has a thinkingLevel or a thinkingBudget",
		          "generationConfig.thinkingConfig");
}

static void check_system(checker *c, const json_val *system)
{
	size_t k = 0;
	if (system == NULL)
		return;
	for (json_iter it = json_each(json_get(system, "parts")); json_next(&it); k++) {
		if (!check_has_text(json_get(it.value, "text")))
			check_say(c, "system", "the system instruction is made of texts",
			          "systemInstruction.parts[%zu]", k);
	}
	if (k == 0)
		check_say(c, "system", "the system instruction is made of texts",
		          "systemInstruction");
}

void check_gemini(checker *c, const json_val *body)
{
	const json_val *contents = json_get(body, "contents");
	state s = {.c = c, .contents = contents, .count = json_count(contents)};
	check_config(c, json_get(body, "generationConfig"));
	check_system(c, json_get(body, "systemInstruction"));
	check_tools(c, json_get(body, "tools"));
	if (json_type_of(contents) != JSON_ARRAY || s.count == 0) {
		check_say(c, "contents", "there must be contents", "contents");
		return;
	}
	check_contents(&s);
	if (needs_signatures(&s, body))
		check_signatures(&s);
}
