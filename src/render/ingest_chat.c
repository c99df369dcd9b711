/*
 * OpenAI Chat Completions, as OpenAI and the many compatible servers speak it:
 * replies and their chunks.
 */
#include "render/ingest.h"

#include "base/str.h"

/* Pieces that there is one of; calls have the index of the provider. */
#define INDEX_FUNCTION (UINT64_MAX - 3)
#define INDEX_THINKING (UINT64_MAX - 2)
#define INDEX_TEXT (UINT64_MAX - 1)
#define INDEX_REFUSAL UINT64_MAX

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void read_usage(draft *d, node usage)
{
	if (json_type_of(usage.v) != JSON_OBJECT)
		return;
	node in = node_get(usage, "prompt_tokens_details");
	node out = node_get(usage, "completion_tokens_details");
	uint64_t prompt = 0, completion = 0, total = 0, cached = 0, written = 0, reasoning = 0;
	(void)node_u64(usage, "prompt_tokens", &prompt);
	(void)node_u64(usage, "completion_tokens", &completion);
	(void)node_u64(usage, "total_tokens", &total);
	if (!node_u64(in, "cached_tokens", &cached))
		(void)node_u64(usage, "prompt_cache_hit_tokens", &cached); /* DeepSeek */
	(void)node_u64(in, "cache_write_tokens", &written);
	(void)node_u64(out, "reasoning_tokens", &reasoning);
	/* Some servers count thinking beside the completion instead of in it; the total tells. */
	if (reasoning != 0 && total - prompt == completion + reasoning && total > prompt)
		completion += reasoning;
	d->has_usage = true;
	d->usage = (sheaf_usage){.input = less(less(prompt, cached), written),
	                         .cache_read = cached,
	                         .cache_write_5m = written,
	                         .output = completion,
	                         .reasoning = reasoning};
}

static void read_stop(draft *d, sheaf_str word)
{
	if (word.ptr == NULL || word.len == 0)
		return;
	draft_set(d, &d->stop_word, word);
	d->stop = str_is(word, "stop")             ? SHEAF_STOP_END
	          : str_is(word, "tool_calls")     ? SHEAF_STOP_TOOL_USE
	          : str_is(word, "function_call")  ? SHEAF_STOP_TOOL_USE
	          : str_is(word, "length")         ? SHEAF_STOP_LENGTH
	          : str_is(word, "content_filter") ? SHEAF_STOP_REFUSAL
	                                           : SHEAF_STOP_UNKNOWN;
}

static void read_head(draft *d, node root)
{
	if (d->response_id.len == 0)
		draft_set(d, &d->response_id, node_string(root, "id"));
	if (d->model.len == 0)
		draft_set(d, &d->model, node_string(root, "model"));
	read_usage(d, node_get(root, "usage"));
}

/* Adds to the one piece of that index. */
static void say(draft *d, int32_t kind, uint64_t index, sheaf_str text)
{
	if (text.ptr == NULL || text.len == 0)
		return;
	piece *p = draft_find(d, index);
	if (p == NULL)
		p = draft_piece(d, kind, index);
	if (p == NULL)
		return;
	if (index == INDEX_REFUSAL && p->ext.len == 0) {
		d->refused = true;
		draft_ext(d, p, SHEAF_STR("type"), SHEAF_STR("\"refusal\""));
	}
	draft_say(d, p, text);
}

/* Content is a string, or with some servers a list of parts. */
static void read_content(draft *d, node content)
{
	say(d, SHEAF_PART_TEXT, INDEX_TEXT, json_string(content.v));
	if (json_type_of(content.v) != JSON_ARRAY)
		return;
	for (node_iter it = node_each(content); node_next(&it);) {
		sheaf_str type = node_string(it.value, "type");
		if (type.ptr != NULL && str_is(type, "text"))
			say(d, SHEAF_PART_TEXT, INDEX_TEXT, node_string(it.value, "text"));
		else if (type.ptr != NULL && str_is(type, "refusal"))
			say(d, SHEAF_PART_TEXT, INDEX_REFUSAL, node_string(it.value, "refusal"));
		else
			draft_opaque(d, it.value);
	}
}

/*
 * A call, or what a chunk adds to one. Calls are told apart by index; a server that gives none, or
 * the same to all, tells by a new id.
 */
static void read_call(draft *d, node call, bool whole)
{
	node function = node_get(call, "function");
	if (function.v == NULL && node_get(call, "custom").v != NULL) {
		if (whole)
			draft_opaque(d, call);
		return;
	}
	sheaf_str id = node_string(call, "id");
	piece *last = draft_last(d), *p = NULL;
	uint64_t index = last != NULL && last->kind == SHEAF_PART_TOOL_USE ? last->index : 0;
	bool numbered = node_u64(call, "index", &index);
	if (!whole)
		p = draft_find(d, index);
	if (p != NULL && p->kind != SHEAF_PART_TOOL_USE)
		p = NULL;
	if (p != NULL && id.len != 0 && p->id.len != 0 && !str_eq(id, buf_view(&p->id)))
		p = NULL;
	if (p == NULL && !numbered)
		index = d->count;
	if (p == NULL) {
		/* Servers send one call after the other: what was open is over. */
		if (last != NULL)
			last->done = true;
		p = draft_piece(d, SHEAF_PART_TOOL_USE, index);
	}
	if (p == NULL)
		return;
	if (p->id.len == 0)
		draft_add(d, &p->id, id);
	if (p->name.len == 0 && node_string(function, "name").len != 0)
		draft_call(d, p, node_string(function, "name"));
	node arguments = node_get(function, "arguments");
	/* A string; an object with servers that do not know better. */
	draft_add(d, &p->text,
	          json_type_of(arguments.v) == JSON_OBJECT ? arguments.text
	                                                   : json_string(arguments.v));
}

/* Servers that show thinking have two names for it, and some want it back under theirs. */
static void read_thinking(draft *d, node message)
{
	sheaf_str text = node_string(message, "reasoning_content");
	sheaf_str member = SHEAF_STR("\"reasoning_content\"");
	if (text.len == 0) {
		text = node_string(message, "reasoning");
		member = SHEAF_STR("\"reasoning\"");
	}
	say(d, SHEAF_PART_THINKING, INDEX_THINKING, text);
	piece *p = draft_find(d, INDEX_THINKING);
	if (p != NULL && p->ext.len == 0)
		draft_ext(d, p, SHEAF_STR("member"), member);
}

/* A message or a delta. */
static void read_message(draft *d, node message, bool whole)
{
	read_thinking(d, message);
	read_content(d, node_get(message, "content"));
	say(d, SHEAF_PART_TEXT, INDEX_REFUSAL, node_string(message, "refusal"));
	node calls = node_get(message, "tool_calls"), old = node_get(message, "function_call");
	for (node_iter it = node_each(calls); node_next(&it);)
		read_call(d, it.value, whole);
	/* Beside the newer form the older one says the same again. */
	if (json_type_of(old.v) != JSON_OBJECT || json_count(calls.v) != 0)
		return;
	piece *p = draft_find(d, INDEX_FUNCTION);
	if (p == NULL)
		p = draft_piece(d, SHEAF_PART_TOOL_USE, INDEX_FUNCTION);
	if (p == NULL)
		return;
	if (p->name.len == 0 && node_string(old, "name").len != 0)
		draft_call(d, p, node_string(old, "name"));
	draft_add(d, &p->text, node_string(old, "arguments"));
}

static void all_done(draft *d)
{
	for (size_t i = 0; i < d->count; i++)
		d->pieces[i].done = true;
}

/* The first choice; a request of ours never asks for more. */
static node first_choice(node root)
{
	for (node_iter it = node_each(node_get(root, "choices")); node_next(&it);) {
		uint64_t index = 0;
		(void)node_u64(it.value, "index", &index);
		if (index == 0)
			return it.value;
	}
	return (node){NULL, {NULL, 0}};
}

static void body(draft *d, node root)
{
	if (json_type_of(node_get(root, "choices").v) != JSON_ARRAY) {
		draft_fail(d, SHEAF_FORMAT);
		return;
	}
	node choice = first_choice(root);
	read_head(d, root);
	read_message(d, node_get(choice, "message"), true);
	read_stop(d, node_string(choice, "finish_reason"));
	all_done(d);
}

static void event(draft *d, UNUSED sheaf_str name, node data)
{
	node choice = first_choice(data);
	read_head(d, data);
	read_message(d, node_get(choice, "delta"), false);
	read_stop(d, node_string(choice, "finish_reason"));
	if (d->stop_word.len != 0)
		all_done(d);
}

/* The last word of the stream, for servers that give no reason for the end. */
static void end(draft *d)
{
	if (d->ended)
		all_done(d);
}

/* ---- Messages -------------------------------------------------------------- */

/* A part of a user's, system's or tool's message. */
static void read_part(draft *d, node part)
{
	static const char *const of_image[] = {"url", NULL};
	static const char *const of_file[] = {"file_data", NULL};
	sheaf_str type = node_string(part, "type");
	node image = node_get(part, "image_url"), file = node_get(part, "file");
	sheaf_str url = node_string(image, "url"), data = node_string(file, "file_data");
	if (json_type_of(image.v) == JSON_STRING)
		url = json_string(image.v);
	piece *p;
	if (type.ptr != NULL && str_is(type, "text")) {
		(void)draft_text(d, node_string(part, "text"));
	} else if (url.ptr != NULL) {
		if ((p = draft_source(d, SHEAF_PART_IMAGE, url)) != NULL)
			draft_ext_others(d, p, image, of_image);
	} else if (data.ptr != NULL && str_starts(data, "data:")) {
		if ((p = draft_source(d, SHEAF_PART_DOCUMENT, data)) != NULL)
			draft_ext_others(d, p, file, of_file);
	} else {
		draft_opaque(d, part);
	}
}

static void read_parts(draft *d, node content)
{
	if (json_type_of(content.v) == JSON_STRING)
		(void)draft_text(d, json_string(content.v));
	for (node_iter it = node_each(content); node_next(&it);)
		read_part(d, it.value);
}

/* A result holds text; of anything else its JSON is that. */
static void read_inner(draft *d, node part)
{
	sheaf_str text = node_string(part, "text");
	(void)draft_text(d, text.ptr != NULL ? text : part.text);
}

static void read_result(draft *d, node element)
{
	static const char *const known[] = {"role", "tool_call_id", "content", "name", NULL};
	sheaf_str id = node_string(element, "tool_call_id"), name = node_string(element, "name");
	/* Before there were ids a result was known by its tool. */
	piece *p = draft_result(d, id.ptr != NULL ? id : name, name, -1);
	if (p == NULL)
		return;
	draft_ext_others(d, p, element, known);
	take_content(d, d->count - 1, node_get(element, "content"), read_inner);
}

/* Members of the message beside what was said stand with its first text. */
static void read_others(draft *d, node element, const char *const *known)
{
	for (size_t i = 0; i < d->count; i++) {
		if (d->pieces[i].kind == SHEAF_PART_TEXT) {
			draft_ext_others(d, &d->pieces[i], element, known);
			return;
		}
	}
}

static void message(taking *t, node element)
{
	static const char *const known[] = {"role", "content", NULL};
	static const struct {
		const char *theirs;
		const char *ours;
	} roles[] = {
		{"user", SHEAF_ROLE_USER},     {"assistant", SHEAF_ROLE_ASSISTANT},
		{"tool", SHEAF_ROLE_TOOL},     {"function", SHEAF_ROLE_TOOL},
		{"system", SHEAF_ROLE_SYSTEM}, {"developer", SHEAF_ROLE_DEVELOPER},
	};
	sheaf_str role = node_string(element, "role");
	size_t i = 0;
	while (role.ptr != NULL && i < COUNT_OF(roles) && !str_is(role, roles[i].theirs))
		i++;
	if (role.ptr == NULL || i == COUNT_OF(roles)) {
		take_fail(t, SHEAF_FORMAT);
		return;
	}
	bool result = str_is(role, "tool") || str_is(role, "function");
	draft *d = take_message(t, roles[i].ours, result);
	if (d == NULL)
		return;
	if (result) {
		read_result(d, element);
	} else if (str_is(role, "assistant")) {
		read_message(d, element, true);
		all_done(d);
	} else {
		read_parts(d, node_get(element, "content"));
		read_others(d, element, known);
	}
}

const ingest_format ingest_chat = {
	.format = SHEAF_FORMAT_OPENAI_CHAT,
	.body = body,
	.event = event,
	.end = end,
	.message = message,
};
