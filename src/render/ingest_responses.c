/*
 * OpenAI Responses: replies and their events.
 *
 * A stream repeats every item whole when it is done. So events only fill a
 * list of items; what they say before that serves the reader, and the reply
 * if the stream is cut.
 */
#include "render/ingest.h"

#include "base/str.h"

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void read_usage(draft *d, node usage)
{
	if (json_type_of(usage.v) != JSON_OBJECT)
		return;
	node in = node_get(usage, "input_tokens_details");
	uint64_t input = 0, cached = 0, written = 0, output = 0, reasoning = 0;
	(void)node_u64(usage, "input_tokens", &input);
	(void)node_u64(in, "cached_tokens", &cached);
	(void)node_u64(in, "cache_write_tokens", &written);
	(void)node_u64(usage, "output_tokens", &output);
	(void)node_u64(node_get(usage, "output_tokens_details"), "reasoning_tokens", &reasoning);
	d->has_usage = true;
	d->usage = (sheaf_usage){.input = less(less(input, cached), written),
	                         .cache_read = cached,
	                         .cache_write_5m = written,
	                         .output = output,
	                         .reasoning = reasoning};
}

static void read_stop(draft *d, node response)
{
	sheaf_str status = node_string(response, "status");
	sheaf_str reason = node_string(node_get(response, "incomplete_details"), "reason");
	if (status.ptr == NULL || str_is(status, "in_progress") || str_is(status, "queued"))
		return;
	draft_set(d, &d->stop_word, reason.ptr != NULL ? reason : status);
	if (str_is(status, "completed"))
		d->stop = SHEAF_STOP_END;
	else if (reason.ptr != NULL && str_is(reason, "max_output_tokens"))
		d->stop = SHEAF_STOP_LENGTH;
	else if (reason.ptr != NULL && str_is(reason, "content_filter"))
		d->stop = SHEAF_STOP_REFUSAL;
}

static void read_response(draft *d, node response)
{
	draft_set(d, &d->response_id, node_string(response, "id"));
	draft_set(d, &d->model, node_string(response, "model"));
	read_stop(d, response);
	read_usage(d, node_get(response, "usage"));
	if (fault_is(response))
		draft_fault(d, response);
}

/* ---- Items ----------------------------------------------------------------- */

/* A part of a message's content. What is said of the item goes with the first of them. */
static void read_message_part(draft *d, node item, node part, bool first)
{
	static const char *const of_item[] = {"type", "role", "content", NULL};
	static const char *const of_part[] = {"type",     "text",        "refusal",
	                                      "logprobs", "annotations", NULL};
	sheaf_str type = node_string(part, "type");
	bool refusal = type.ptr != NULL && str_is(type, "refusal");
	if (!refusal && (type.ptr == NULL || !str_is(type, "output_text"))) {
		draft_opaque(d, part);
		return;
	}
	piece *p = draft_text(d, node_string(part, refusal ? "refusal" : "text"));
	if (p == NULL)
		return;
	if (first)
		draft_ext_others(d, p, item, of_item);
	node annotations = node_get(part, "annotations");
	if (json_count(annotations.v) != 0)
		draft_ext(d, p, SHEAF_STR("annotations"), annotations.text);
	draft_ext_others(d, p, part, of_part);
	d->refused |= refusal;
	if (refusal)
		draft_ext(d, p, SHEAF_STR("type"), SHEAF_STR("\"refusal\""));
}

static void read_message(draft *d, node item)
{
	bool first = true;
	for (node_iter it = node_each(node_get(item, "content")); node_next(&it); first = false)
		read_message_part(d, item, it.value, first);
}

static void read_call(draft *d, node item)
{
	static const char *const known[] = {"type", "call_id", "name", "arguments", NULL};
	piece *p = draft_piece(d, SHEAF_PART_TOOL_USE, 0);
	if (p == NULL)
		return;
	draft_add(d, &p->id, node_string(item, "call_id"));
	draft_add(d, &p->name, node_string(item, "name"));
	draft_add(d, &p->text, node_string(item, "arguments"));
	draft_ext_others(d, p, item, known);
	p->done = true;
}

/* Texts of a list, with an empty line between them; how many there were. */
static size_t join_texts(draft *d, piece *p, node list)
{
	size_t count = 0;
	for (node_iter it = node_each(list); node_next(&it); count++) {
		if (count != 0)
			draft_add(d, &p->text, SHEAF_STR("\n\n"));
		draft_add(d, &p->text, node_string(it.value, "text"));
	}
	return count;
}

static void read_reasoning(draft *d, node item)
{
	static const char *const known[] = {"type", "summary", "encrypted_content", NULL};
	piece *p = draft_piece(d, SHEAF_PART_THINKING, 0);
	if (p == NULL)
		return;
	node summary = node_get(item, "summary");
	size_t count = join_texts(d, p, summary);
	if (count == 0)
		(void)join_texts(d, p, node_get(item, "content"));
	draft_add(d, &p->signature, node_string(item, "encrypted_content"));
	draft_ext_others(d, p, item, known);
	/* One text can be told from the part itself, others not. */
	if (count != 1 && summary.v != NULL)
		draft_ext(d, p, SHEAF_STR("summary"), summary.text);
	p->done = true;
}

static void read_item(draft *d, node item)
{
	sheaf_str type = node_string(item, "type");
	if (type.ptr == NULL)
		return;
	if (str_is(type, "message"))
		read_message(d, item);
	else if (str_is(type, "function_call"))
		read_call(d, item);
	else if (str_is(type, "reasoning"))
		read_reasoning(d, item);
	else
		draft_opaque(d, item);
}

static void body(draft *d, node root)
{
	node output = node_get(root, "output");
	if (json_type_of(output.v) != JSON_ARRAY) {
		draft_fail(d, SHEAF_FORMAT);
		return;
	}
	for (node_iter it = node_each(output); node_next(&it);)
		read_item(d, it.value);
	read_response(d, root);
}

/* ---- Events ---------------------------------------------------------------- */

/* The piece of an item, in the order of the items. */
static piece *item_piece(draft *d, uint64_t index)
{
	piece *p = draft_find(d, index);
	if (p == NULL && (p = draft_piece(d, SHEAF_PART_OPAQUE, index)) != NULL)
		p->item = true;
	return p;
}

static void item_begins(draft *d, uint64_t index, node item)
{
	piece *p = item_piece(d, index);
	sheaf_str type = node_string(item, "type");
	if (p == NULL || p->done || type.ptr == NULL)
		return;
	if (str_is(type, "message"))
		p->kind = SHEAF_PART_TEXT;
	else if (str_is(type, "reasoning"))
		p->kind = SHEAF_PART_THINKING;
	else if (str_is(type, "function_call") && d->on_delta != NULL)
		d->on_delta(d->ctx, SHEAF_DELTA_TOOL_USE, node_string(item, "name"));
}

static void item_says(draft *d, uint64_t index, int32_t kind, sheaf_str text)
{
	piece *p = item_piece(d, index);
	if (p == NULL || p->done)
		return;
	p->kind = kind;
	draft_say(d, p, text);
}

static void item_is_done(draft *d, uint64_t index, node item)
{
	piece *p = item_piece(d, index);
	if (p == NULL || p->done)
		return;
	draft_add(d, &p->raw, item.text);
	p->done = true;
}

/* A summary's second and later texts are told apart by an empty line, as in the item. */
static void summary_goes_on(draft *d, uint64_t index, node data)
{
	uint64_t part = 0;
	piece *p = item_piece(d, index);
	if (node_u64(data, "summary_index", &part) && part != 0 && p != NULL && p->text.len != 0)
		item_says(d, index, SHEAF_PART_THINKING, SHEAF_STR("\n\n"));
}

static void response_ends(draft *d, node response)
{
	uint64_t index = 0;
	for (node_iter it = node_each(node_get(response, "output")); node_next(&it); index++)
		item_is_done(d, index, it.value);
	read_response(d, response);
	d->ended = true;
}

static void event(draft *d, sheaf_str name, node data)
{
	sheaf_str type = node_string(data, "type"), delta = node_string(data, "delta");
	if (type.ptr == NULL)
		type = name;
	uint64_t index = 0;
	(void)node_u64(data, "output_index", &index);
	if (str_is(type, "response.created"))
		read_response(d, node_get(data, "response"));
	else if (str_is(type, "response.output_item.added"))
		item_begins(d, index, node_get(data, "item"));
	else if (str_is(type, "response.output_item.done"))
		item_is_done(d, index, node_get(data, "item"));
	else if (str_is(type, "response.output_text.delta") ||
	         str_is(type, "response.refusal.delta"))
		item_says(d, index, SHEAF_PART_TEXT, delta);
	else if (str_is(type, "response.reasoning_summary_text.delta") ||
	         str_is(type, "response.reasoning_text.delta"))
		item_says(d, index, SHEAF_PART_THINKING, delta);
	else if (str_is(type, "response.reasoning_summary_part.added"))
		summary_goes_on(d, index, data);
	else if (str_is(type, "response.completed") || str_is(type, "response.incomplete") ||
	         str_is(type, "response.failed") || str_is(type, "response.done"))
		response_ends(d, node_get(data, "response"));
}

/* Reads the items that are whole; of the others what was said stays. */
static void end(draft *d)
{
	draft items = *d;
	_cleanup_(source_free) source s = {0};
	d->pieces = NULL;
	d->count = d->room = d->bytes = 0;
	for (size_t i = 0; i < items.count && d->status == 0; i++) {
		piece *from = &items.pieces[i];
		if (from->done) {
			int rc = source_read(&s, buf_view(&from->raw), NULL);
			if (rc != 0)
				draft_fail(d, rc);
			else
				read_item(d, s.root);
		} else if (from->kind != SHEAF_PART_OPAQUE) {
			piece *p = draft_piece(d, from->kind, 0);
			if (p != NULL)
				draft_add(d, &p->text, buf_view(&from->text));
		}
	}
	draft_clear(&(draft){.pieces = items.pieces, .count = items.count});
}

/* ---- Messages -------------------------------------------------------------- */

/* A part of what the user, the system or a tool says. */
static bool read_input(draft *d, node part)
{
	static const char *const of_text[] = {"type", "text", NULL};
	static const char *const of_image[] = {"type", "image_url", NULL};
	static const char *const of_file[] = {"type", "file_data", "file_url", NULL};
	sheaf_str type = node_string(part, "type"), image = node_string(part, "image_url");
	sheaf_str data = node_string(part, "file_data"), file = node_string(part, "file_url");
	if (type.ptr == NULL)
		return false;
	piece *p;
	if (str_is(type, "input_text") || str_is(type, "output_text") || str_is(type, "text")) {
		if ((p = draft_text(d, node_string(part, "text"))) != NULL)
			draft_ext_others(d, p, part, of_text);
	} else if (str_is(type, "input_image") && image.ptr != NULL) {
		if ((p = draft_source(d, SHEAF_PART_IMAGE, image)) != NULL)
			draft_ext_others(d, p, part, of_image);
	} else if (str_is(type, "input_file") && file.ptr != NULL) {
		if ((p = draft_source(d, SHEAF_PART_DOCUMENT, file)) != NULL)
			draft_ext_others(d, p, part, of_file);
	} else if (str_is(type, "input_file") && data.ptr != NULL && str_starts(data, "data:")) {
		if ((p = draft_source(d, SHEAF_PART_DOCUMENT, data)) != NULL)
			draft_ext_others(d, p, part, of_file);
	} else {
		return false;
	}
	return true;
}

/* A result has no place for parts that are none of ours: their JSON is text. */
static void read_inner(draft *d, node part)
{
	if (!read_input(d, part))
		(void)draft_text(d, part.text);
}

static void take_result(taking *t, node item)
{
	static const char *const known[] = {"type", "call_id", "output", NULL};
	draft *d = take_message(t, SHEAF_ROLE_TOOL, true);
	piece *p = d != NULL
	                   ? draft_result(d, node_string(item, "call_id"), (sheaf_str){NULL, 0}, -1)
	                   : NULL;
	if (p == NULL)
		return;
	draft_ext_others(d, p, item, known);
	take_content(d, d->count - 1, node_get(item, "output"), read_inner);
}

/* A reply's text in the short form has no parts. */
static void take_reply_message(taking *t, node item)
{
	static const char *const known[] = {"type", "role", "content", NULL};
	draft *d = take_message(t, SHEAF_ROLE_ASSISTANT, true);
	node content = node_get(item, "content");
	if (d == NULL)
		return;
	if (json_type_of(content.v) != JSON_STRING) {
		read_message(d, item);
		return;
	}
	piece *p = draft_text(d, json_string(content.v));
	if (p != NULL)
		draft_ext_others(d, p, item, known);
}

static void take_input_message(taking *t, const char *role, node item)
{
	static const char *const known[] = {"type", "role", "content", NULL};
	node content = node_get(item, "content");
	draft *d = take_message(t, role, false);
	if (d == NULL)
		return;
	if (json_type_of(content.v) == JSON_STRING)
		(void)draft_text(d, json_string(content.v));
	for (node_iter it = node_each(content); node_next(&it);) {
		if (!read_input(d, it.value))
			draft_opaque(d, it.value);
	}
	if (d->count != 0 && d->pieces[0].kind == SHEAF_PART_TEXT)
		draft_ext_others(d, &d->pieces[0], item, known);
}

static bool ends_in(sheaf_str text, const char *tail)
{
	size_t n = strlen(tail);
	return text.len >= n && memcmp(text.ptr + text.len - n, tail, n) == 0;
}

/* Whether an item was not made by the model: an answer to one that was. */
static bool is_answer(sheaf_str type)
{
	return ends_in(type, "_output") || str_is(type, "mcp_approval_response");
}

static void take_item(taking *t, sheaf_str type, node item)
{
	draft *d = take_message(t, is_answer(type) ? SHEAF_ROLE_USER : SHEAF_ROLE_ASSISTANT,
	                        !is_answer(type));
	if (d != NULL)
		read_item(d, item);
}

/* Items of one response follow each other: they are one message. */
static void message(taking *t, node item)
{
	sheaf_str type = node_string(item, "type"), role = node_string(item, "role");
	if (type.ptr != NULL && str_is(type, "function_call_output")) {
		take_result(t, item);
	} else if (type.ptr != NULL && !str_is(type, "message")) {
		take_item(t, type, item);
	} else if (role.ptr == NULL) {
		take_fail(t, SHEAF_FORMAT);
	} else if (str_is(role, "assistant")) {
		take_reply_message(t, item);
	} else if (str_is(role, "user")) {
		take_input_message(t, SHEAF_ROLE_USER, item);
	} else if (str_is(role, "system")) {
		take_input_message(t, SHEAF_ROLE_SYSTEM, item);
	} else if (str_is(role, "developer")) {
		take_input_message(t, SHEAF_ROLE_DEVELOPER, item);
	} else {
		take_fail(t, SHEAF_FORMAT);
	}
}

const ingest_format ingest_responses = {
	.format = SHEAF_FORMAT_OPENAI_RESPONSES,
	.body = body,
	.event = event,
	.end = end,
	.message = message,
};
