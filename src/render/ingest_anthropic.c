/*
 * Anthropic Messages: replies and their events.
 */
#include "render/ingest.h"

#include "base/str.h"
#include "entry/members.h"

/* draft.counts */
enum {
	COUNT_INPUT,
	COUNT_READ,
	COUNT_WRITE,
	COUNT_WRITE_5M,
	COUNT_WRITE_1H,
	COUNT_OUTPUT,
	COUNT_THINKING
};

/* Later numbers replace earlier ones: those of message_delta count from the beginning, too. */
static void read_usage(draft *d, node usage)
{
	if (json_type_of(usage.v) != JSON_OBJECT)
		return;
	node writes = node_get(usage, "cache_creation");
	node details = node_get(usage, "output_tokens_details");
	uint64_t *n = d->counts;
	(void)node_u64(usage, "input_tokens", &n[COUNT_INPUT]);
	(void)node_u64(usage, "cache_read_input_tokens", &n[COUNT_READ]);
	(void)node_u64(usage, "cache_creation_input_tokens", &n[COUNT_WRITE]);
	(void)node_u64(writes, "ephemeral_5m_input_tokens", &n[COUNT_WRITE_5M]);
	(void)node_u64(writes, "ephemeral_1h_input_tokens", &n[COUNT_WRITE_1H]);
	(void)node_u64(usage, "output_tokens", &n[COUNT_OUTPUT]);
	(void)node_u64(details, "thinking_tokens", &n[COUNT_THINKING]);
	d->has_usage = true;
	d->usage = (sheaf_usage){.input = n[COUNT_INPUT],
	                         .cache_read = n[COUNT_READ],
	                         .cache_write_5m = n[COUNT_WRITE_5M],
	                         .cache_write_1h = n[COUNT_WRITE_1H],
	                         .output = n[COUNT_OUTPUT],
	                         .reasoning = n[COUNT_THINKING]};
	/* Without a split all of it is the shorter kind, which is the default. */
	if (n[COUNT_WRITE] > n[COUNT_WRITE_1H])
		d->usage.cache_write_5m = n[COUNT_WRITE] - n[COUNT_WRITE_1H];
}

static void read_stop(draft *d, sheaf_str word)
{
	static const struct {
		const char *word;
		int32_t stop;
	} stops[] = {
		{"end_turn", SHEAF_STOP_END},
		{"stop_sequence", SHEAF_STOP_END},
		{"tool_use", SHEAF_STOP_TOOL_USE},
		{"max_tokens", SHEAF_STOP_LENGTH},
		{"pause_turn", SHEAF_STOP_PAUSE},
		{"refusal", SHEAF_STOP_REFUSAL},
		{"model_context_window_exceeded", SHEAF_STOP_OVERFLOW},
	};
	draft_set(d, &d->stop_word, word);
	for (size_t i = 0; word.ptr != NULL && i < COUNT_OF(stops); i++) {
		if (str_is(word, stops[i].word))
			d->stop = stops[i].stop;
	}
}

static void read_message(draft *d, node message)
{
	draft_set(d, &d->response_id, node_string(message, "id"));
	draft_set(d, &d->model, node_string(message, "model"));
	read_stop(d, node_string(message, "stop_reason"));
	read_usage(d, node_get(message, "usage"));
}

/* A content block, whole or as it begins. */
static void read_block(draft *d, uint64_t index, node block)
{
	static const char *const of_text[] = {"type", "text", "citations", "cache_control", NULL};
	static const char *const of_thinking[] = {"type", "thinking", "signature", "cache_control",
	                                          NULL};
	static const char *const of_redacted[] = {"type", "data", "cache_control", NULL};
	static const char *const of_call[] = {"type", "id", "name", "input", "cache_control", NULL};
	sheaf_str type = node_string(block, "type");
	if (type.ptr == NULL)
		return;
	piece *p;
	if (str_is(type, "text")) {
		if ((p = draft_piece(d, SHEAF_PART_TEXT, index)) == NULL)
			return;
		draft_say(d, p, node_string(block, "text"));
		draft_add(d, &p->citations, members_inside(node_get(block, "citations").text));
		draft_ext_others(d, p, block, of_text);
	} else if (str_is(type, "thinking")) {
		if ((p = draft_piece(d, SHEAF_PART_THINKING, index)) == NULL)
			return;
		draft_say(d, p, node_string(block, "thinking"));
		draft_add(d, &p->signature, node_string(block, "signature"));
		draft_ext_others(d, p, block, of_thinking);
	} else if (str_is(type, "redacted_thinking")) {
		if ((p = draft_piece(d, SHEAF_PART_THINKING, index)) == NULL)
			return;
		p->redacted = true;
		draft_add(d, &p->signature, node_string(block, "data"));
		draft_ext_others(d, p, block, of_redacted);
	} else if (str_is(type, "tool_use")) {
		if ((p = draft_piece(d, SHEAF_PART_TOOL_USE, index)) == NULL)
			return;
		draft_add(d, &p->id, node_string(block, "id"));
		draft_call(d, p, node_string(block, "name"));
		draft_add(d, &p->raw, node_get(block, "input").text);
		draft_ext_others(d, p, block, of_call);
	} else if ((p = draft_piece(d, SHEAF_PART_OPAQUE, index)) != NULL) {
		draft_add(d, &p->raw, block.text);
	}
}

static void read_blocks(draft *d, node content)
{
	for (node_iter it = node_each(content); node_next(&it);) {
		size_t before = d->count;
		read_block(d, before, it.value);
		if (d->count != before)
			draft_last(d)->done = true;
	}
}

static void body(draft *d, node root)
{
	node content = node_get(root, "content");
	if (json_type_of(content.v) != JSON_ARRAY) {
		draft_fail(d, SHEAF_FORMAT);
		return;
	}
	read_blocks(d, content);
	read_message(d, root);
}

/* ---- Events ---------------------------------------------------------------- */

/* Sets a member of an opaque block, in its place if it is there already. */
static void set_member(draft *d, piece *p, sheaf_str name, sheaf_str value)
{
	_cleanup_(buf_free) buf old = p->raw;
	p->raw = (buf)BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	d->bytes -= old.len;
	sheaf_str key, kept;
	bool found = false, first = true;
	draft_add(d, &p->raw, SHEAF_STR("{"));
	for (size_t at = 0; members_next(members_inside(buf_view(&old)), &at, &key, &kept);
	     first = false) {
		bool same = str_eq(key, name);
		found |= same;
		draft_add(d, &p->raw, first ? SHEAF_STR("\"") : SHEAF_STR(",\""));
		draft_add(d, &p->raw, key);
		draft_add(d, &p->raw, SHEAF_STR("\":"));
		draft_add(d, &p->raw, same ? value : kept);
	}
	if (!found) {
		draft_add(d, &p->raw, first ? SHEAF_STR("\"") : SHEAF_STR(",\""));
		draft_add(d, &p->raw, name);
		draft_add(d, &p->raw, SHEAF_STR("\":"));
		draft_add(d, &p->raw, value);
	}
	draft_add(d, &p->raw, SHEAF_STR("}"));
}

/* A delta of a block this does not know: what it says of a member holds. */
static void opaque_delta(draft *d, piece *p, node delta)
{
	for (node_iter it = node_each(delta); node_next(&it);) {
		if (!members_key_is(it.key, "type"))
			set_member(d, p, it.key, it.value.text);
	}
}

static void block_delta(draft *d, piece *p, node delta)
{
	sheaf_str type = node_string(delta, "type");
	if (type.ptr == NULL)
		return;
	if (str_is(type, "input_json_delta")) {
		if (p->kind == SHEAF_PART_TOOL_USE || p->kind == SHEAF_PART_OPAQUE)
			draft_add(d, &p->text, node_string(delta, "partial_json"));
	} else if (p->kind == SHEAF_PART_TEXT && str_is(type, "text_delta")) {
		draft_say(d, p, node_string(delta, "text"));
	} else if (p->kind == SHEAF_PART_THINKING && str_is(type, "thinking_delta")) {
		draft_say(d, p, node_string(delta, "thinking"));
	} else if (p->kind == SHEAF_PART_THINKING && str_is(type, "signature_delta")) {
		draft_add(d, &p->signature, node_string(delta, "signature"));
	} else if (p->kind == SHEAF_PART_TEXT && str_is(type, "citations_delta")) {
		node citation = node_get(delta, "citation");
		if (p->citations.len != 0 && citation.text.len != 0)
			draft_add(d, &p->citations, SHEAF_STR(","));
		draft_add(d, &p->citations, citation.text);
	} else if (p->kind == SHEAF_PART_OPAQUE) {
		opaque_delta(d, p, delta);
	}
}

static void block_stop(draft *d, piece *p)
{
	p->done = true;
	if (p->kind != SHEAF_PART_OPAQUE || p->text.len == 0)
		return;
	/* A server's tool was called; its input must be JSON or the block is none. */
	_cleanup_(json_freep) json_doc *doc = NULL;
	int rc = json_parse(&doc, buf_view(&p->text), NULL);
	if (rc == 0)
		set_member(d, p, SHEAF_STR("input"), buf_view(&p->text));
	else if (rc == SHEAF_NOMEM)
		draft_fail(d, rc);
	else
		p->done = false;
}

static void event(draft *d, sheaf_str name, node data)
{
	sheaf_str type = node_string(data, "type");
	if (type.ptr == NULL)
		type = name;
	uint64_t index = 0;
	(void)node_u64(data, "index", &index);
	if (str_is(type, "message_start")) {
		read_message(d, node_get(data, "message"));
	} else if (str_is(type, "content_block_start")) {
		read_block(d, index, node_get(data, "content_block"));
	} else if (str_is(type, "content_block_delta")) {
		piece *p = draft_find(d, index);
		if (p != NULL && !p->done)
			block_delta(d, p, node_get(data, "delta"));
	} else if (str_is(type, "content_block_stop")) {
		piece *p = draft_find(d, index);
		if (p != NULL && !p->done)
			block_stop(d, p);
	} else if (str_is(type, "message_delta")) {
		read_stop(d, node_string(node_get(data, "delta"), "stop_reason"));
		read_usage(d, node_get(data, "usage"));
	} else if (str_is(type, "message_stop")) {
		d->ended = true;
	}
}

/* ---- Messages -------------------------------------------------------------- */

/* An image or a document whose bytes or address are known; false for others. */
static bool read_media(draft *d, node block)
{
	static const char *const known[] = {"type", "source", "cache_control", NULL};
	node from = node_get(block, "source");
	sheaf_str type = node_string(block, "type"), kind = node_string(from, "type");
	bool image = str_is(type, "image");
	if ((!image && !str_is(type, "document")) || kind.ptr == NULL)
		return false;
	bool base64 = str_is(kind, "base64");
	if (!base64 && !str_is(kind, "url"))
		return false;
	piece *p = draft_piece(d, image ? SHEAF_PART_IMAGE : SHEAF_PART_DOCUMENT, 0);
	if (p == NULL)
		return true;
	draft_add(d, &p->id, kind);
	draft_add(d, &p->name, node_string(from, "media_type"));
	draft_add(d, &p->raw, node_string(from, base64 ? "data" : "url"));
	draft_ext_others(d, p, block, known);
	p->done = true;
	return true;
}

/* What a result holds. It has no place for parts that are none of ours: their JSON is text. */
static void read_inner(draft *d, node block)
{
	sheaf_str type = node_string(block, "type");
	size_t before = d->count;
	if (type.ptr != NULL && str_is(type, "text"))
		read_block(d, 0, block);
	else if (type.ptr == NULL || !read_media(d, block))
		(void)draft_text(d, block.text);
	if (d->count != before)
		draft_last(d)->done = true;
}

static void read_result(draft *d, node block)
{
	static const char *const known[] = {"type",     "tool_use_id",   "content",
	                                    "is_error", "cache_control", NULL};
	node is_error = node_get(block, "is_error");
	piece *p = draft_result(d, node_string(block, "tool_use_id"), (sheaf_str){NULL, 0},
	                        json_is_bool(is_error.v) ? json_bool(is_error.v) : -1);
	if (p == NULL)
		return;
	draft_ext_others(d, p, block, known);
	take_content(d, d->count - 1, node_get(block, "content"), read_inner);
}

static bool is_result(node block)
{
	sheaf_str type = node_string(block, "type");
	return type.ptr != NULL && str_is(type, "tool_result");
}

/* The user's side: results are a message of their own, before the rest. */
static void take_user(taking *t, node content)
{
	draft *d;
	for (node_iter it = node_each(content); node_next(&it);) {
		if (is_result(it.value) && (d = take_message(t, SHEAF_ROLE_TOOL, true)) != NULL)
			read_result(d, it.value);
	}
	bool first = true;
	for (node_iter it = node_each(content); node_next(&it);) {
		if (is_result(it.value))
			continue;
		d = take_message(t, SHEAF_ROLE_USER, !first);
		first = false;
		if (d == NULL)
			return;
		sheaf_str type = node_string(it.value, "type");
		if (type.ptr == NULL || !read_media(d, it.value))
			read_block(d, d->count, it.value);
		if (draft_last(d) != NULL)
			draft_last(d)->done = true;
	}
}

static void message(taking *t, node element)
{
	sheaf_str role = node_string(element, "role");
	node content = node_get(element, "content");
	bool user = role.ptr != NULL && str_is(role, "user");
	const char *ours = user                                            ? SHEAF_ROLE_USER
	                   : role.ptr != NULL && str_is(role, "assistant") ? SHEAF_ROLE_ASSISTANT
	                   : role.ptr != NULL && str_is(role, "system")    ? SHEAF_ROLE_SYSTEM
	                                                                   : NULL;
	if (ours == NULL) {
		take_fail(t, SHEAF_FORMAT);
		return;
	}
	if (user && json_type_of(content.v) == JSON_ARRAY) {
		take_user(t, content);
		return;
	}
	draft *d = take_message(t, ours, false);
	if (d == NULL)
		return;
	if (json_type_of(content.v) == JSON_STRING)
		(void)draft_text(d, json_string(content.v));
	else
		read_blocks(d, content);
}

const ingest_format ingest_anthropic = {
	.format = SHEAF_FORMAT_ANTHROPIC,
	.body = body,
	.event = event,
	.message = message,
};
