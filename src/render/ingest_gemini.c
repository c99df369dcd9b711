/*
 * Google Gemini generateContent: replies, and the chunks of a stream, each of
 * which is a reply itself.
 */
#include "render/ingest.h"

#include "base/mem.h"
#include "base/str.h"

static void read_usage(draft *d, node usage)
{
	if (json_type_of(usage.v) != JSON_OBJECT)
		return;
	uint64_t prompt = 0, cached = 0, tools = 0, candidates = 0, thoughts = 0;
	(void)node_u64(usage, "promptTokenCount", &prompt);
	(void)node_u64(usage, "cachedContentTokenCount", &cached);
	(void)node_u64(usage, "toolUsePromptTokenCount", &tools);
	(void)node_u64(usage, "candidatesTokenCount", &candidates);
	(void)node_u64(usage, "thoughtsTokenCount", &thoughts);
	d->has_usage = true;
	d->usage = (sheaf_usage){.input = (prompt > cached ? prompt - cached : 0) + tools,
	                         .cache_read = cached,
	                         .output = candidates + thoughts,
	                         .reasoning = thoughts};
}

static void read_stop(draft *d, sheaf_str word)
{
	static const char *const refusals[] = {
		"SAFETY",       "RECITATION", "LANGUAGE",
		"BLOCKLIST",    "SPII",       "PROHIBITED_CONTENT",
		"IMAGE_SAFETY", "OTHER",      "IMAGE_PROHIBITED_CONTENT"};
	if (word.ptr == NULL || word.len == 0)
		return;
	draft_set(d, &d->stop_word, word);
	d->stop = str_is(word, "STOP")         ? SHEAF_STOP_END
	          : str_is(word, "MAX_TOKENS") ? SHEAF_STOP_LENGTH
	                                       : SHEAF_STOP_UNKNOWN;
	for (size_t i = 0; i < COUNT_OF(refusals); i++) {
		if (str_is(word, refusals[i]))
			d->stop = SHEAF_STOP_REFUSAL;
	}
	d->ended = true;
}

/* A member that requests may spell in either of two ways. */
static node either(node object, const char *name, const char *other)
{
	node found = node_get(object, name);
	return found.v != NULL ? found : node_get(object, other);
}

static sheaf_str signature_of(node part)
{
	return json_string(either(part, "thoughtSignature", "thought_signature").v);
}

static bool is_image(sheaf_str media)
{
	return media.ptr != NULL && str_starts(media, "image/");
}

/* Bytes or a link. */
static void read_media(draft *d, node part, node media)
{
	static const char *const known[] = {"inlineData", "fileData", "inline_data", "file_data",
	                                    NULL};
	sheaf_str type = json_string(either(media, "mimeType", "mime_type").v);
	sheaf_str uri = json_string(either(media, "fileUri", "file_uri").v);
	piece *p = draft_piece(d, is_image(type) ? SHEAF_PART_IMAGE : SHEAF_PART_DOCUMENT, 0);
	if (p == NULL)
		return;
	draft_add(d, &p->id, uri.ptr != NULL ? SHEAF_STR("url") : SHEAF_STR("base64"));
	draft_add(d, &p->name, type);
	draft_add(d, &p->raw, uri.ptr != NULL ? uri : node_string(media, "data"));
	draft_ext_others(d, p, part, known);
	p->done = true;
}

static void read_call(draft *d, node part, node call)
{
	static const char *const known[] = {"functionCall", "function_call", "thoughtSignature",
	                                    "thought_signature", NULL};
	piece *p = draft_piece(d, SHEAF_PART_TOOL_USE, 0);
	if (p == NULL)
		return;
	node args = node_get(call, "args");
	draft_add(d, &p->id, node_string(call, "id"));
	draft_call(d, p, node_string(call, "name"));
	draft_add(d, &p->raw, args.v != NULL ? args.text : SHEAF_STR("{}"));
	draft_add(d, &p->signature, signature_of(part));
	draft_ext_others(d, p, part, known);
	p->done = true;
}

/*
 * Text goes on where the chunk before ended; a signature ends it. `first`: no other part of this
 * chunk stands before it.
 */
static void read_text(draft *d, node part, bool first)
{
	static const char *const known[] = {"text", "thought", "thoughtSignature",
	                                    "thought_signature", NULL};
	int32_t kind = json_bool(node_get(part, "thought").v) ? SHEAF_PART_THINKING
	                                                      : SHEAF_PART_TEXT;
	piece *p = first ? draft_last(d) : NULL;
	if (p == NULL || p->kind != kind || p->signature.len != 0)
		p = draft_piece(d, kind, 0);
	if (p == NULL)
		return;
	draft_say(d, p, node_string(part, "text"));
	draft_add(d, &p->signature, signature_of(part));
	draft_ext_others(d, p, part, known);
	p->done = true;
}

static void read_part(draft *d, node part, bool first)
{
	node call = either(part, "functionCall", "function_call");
	node data = either(part, "inlineData", "inline_data");
	if (data.v == NULL)
		data = either(part, "fileData", "file_data");
	if (json_type_of(call.v) == JSON_OBJECT)
		read_call(d, part, call);
	else if (json_type_of(data.v) == JSON_OBJECT)
		read_media(d, part, data);
	else if (node_string(part, "text").ptr != NULL)
		read_text(d, part, first);
	else if (json_type_of(part.v) == JSON_OBJECT)
		draft_opaque(d, part);
}

static void read_chunk(draft *d, node root)
{
	node candidates = node_get(root, "candidates"), feedback = node_get(root, "promptFeedback");
	node_iter it = node_each(candidates);
	if (node_next(&it)) {
		node parts = node_get(node_get(it.value, "content"), "parts");
		bool first = true;
		for (node_iter at = node_each(parts); node_next(&at); first = false)
			read_part(d, at.value, first);
		read_stop(d, node_string(it.value, "finishReason"));
	} else if (node_string(feedback, "blockReason").ptr != NULL) {
		read_stop(d, node_string(feedback, "blockReason"));
		d->stop = SHEAF_STOP_REFUSAL;
	}
	draft_set(d, &d->response_id, node_string(root, "responseId"));
	draft_set(d, &d->model, node_string(root, "modelVersion"));
	read_usage(d, node_get(root, "usageMetadata"));
}

static bool is_reply(node root)
{
	return json_type_of(node_get(root, "candidates").v) == JSON_ARRAY ||
	       json_type_of(node_get(root, "promptFeedback").v) == JSON_OBJECT;
}

/* One reply, or the list of chunks that a stream is when nobody asks for events. */
static void body(draft *d, node root)
{
	if (json_type_of(root.v) != JSON_ARRAY) {
		if (is_reply(root))
			read_chunk(d, root);
		else
			draft_fail(d, SHEAF_FORMAT);
		return;
	}
	for (node_iter it = node_each(root); node_next(&it);) {
		if (fault_is(it.value))
			draft_fault(d, it.value);
		else
			read_chunk(d, it.value);
	}
}

static void event(draft *d, UNUSED sheaf_str name, node data)
{
	read_chunk(d, data);
}

/* ---- Messages -------------------------------------------------------------- */

static void call_forget(taking *t, size_t at)
{
	buf_free(&t->calls[at].id);
	buf_free(&t->calls[at].name);
	t->call_count--;
	for (; at < t->call_count; at++)
		t->calls[at] = t->calls[at + 1];
}

/* Keeps in mind which calls a message has, and gives ids to those without. */
static void calls_remember(taking *t)
{
	draft *d = &t->draft;
	while (t->call_count != 0)
		call_forget(t, t->call_count - 1);
	for (size_t i = 0; i < d->count; i++) {
		piece *p = &d->pieces[i];
		if (p->kind != SHEAF_PART_TOOL_USE)
			continue;
		if (p->id.len == 0) {
			p->id.max = SHEAF_RECORD_BYTES_MAX;
			draft_call_id(d, p, &p->id);
		}
		void *calls = t->calls;
		if (mem_grow(&calls, &t->call_room, t->call_count + 1, sizeof(open_call)) != 0) {
			take_fail(t, SHEAF_NOMEM);
			return;
		}
		t->calls = calls;
		open_call *call = &t->calls[t->call_count++];
		*call = (open_call){BUF_INIT(SHEAF_RECORD_BYTES_MAX),
		                    BUF_INIT(SHEAF_RECORD_BYTES_MAX)};
		buf_str(&call->id, buf_view(&p->id));
		buf_str(&call->name, buf_view(&p->name));
		if (p->id.status != 0 || call->id.status != 0 || call->name.status != 0)
			take_fail(t, SHEAF_NOMEM);
	}
}

/* The call an answer is for: by id, else the first of that tool; none if there is no such call. */
static size_t call_of(const taking *t, sheaf_str id, sheaf_str name)
{
	for (size_t i = 0; i < t->call_count; i++) {
		const buf *mine = id.len != 0 ? &t->calls[i].id : &t->calls[i].name;
		if (str_eq(buf_view(mine), id.len != 0 ? id : name))
			return i;
	}
	return SIZE_MAX;
}

/* The text of a response, if all it has is one; else its JSON, and then it goes back as it is. */
static sheaf_str response_text(node response, int *is_error, bool *plain)
{
	sheaf_str output = node_string(response, "output"), error = node_string(response, "error");
	*is_error = node_get(response, "error").v != NULL ? 1 : -1;
	*plain = json_count(response.v) == 1 && (output.ptr != NULL || error.ptr != NULL);
	if (*plain)
		return output.ptr != NULL ? output : error;
	return response.text;
}

static void read_response_part(draft *d, node part)
{
	node data = either(part, "inlineData", "inline_data");
	if (data.v == NULL)
		data = either(part, "fileData", "file_data");
	if (json_type_of(data.v) == JSON_OBJECT)
		read_media(d, part, data);
	else
		(void)draft_text(d, part.text);
}

static void take_result(taking *t, node part, node answer)
{
	static const char *const known[] = {"functionResponse", "function_response", NULL};
	node response = node_get(answer, "response"), parts = node_get(answer, "parts");
	sheaf_str name = node_string(answer, "name"), id = node_string(answer, "id");
	size_t call = call_of(t, id, name);
	draft *d = take_message(t, SHEAF_ROLE_TOOL, true);
	if (d == NULL)
		return;
	int is_error;
	bool plain;
	sheaf_str text = response_text(response, &is_error, &plain);
	if (id.len == 0 && call != SIZE_MAX)
		id = buf_view(&t->calls[call].id);
	size_t at = d->count;
	piece *p = draft_result(d, id.len != 0 ? id : name, name, is_error);
	if (p == NULL)
		return;
	if (!plain && response.v != NULL)
		draft_ext(d, p, SHEAF_STR("response"), response.text);
	draft_ext_others(d, p, part, known);
	if (json_count(parts.v) == 0) {
		draft_add(d, &p->text, text);
	} else {
		p->list = true;
		(void)draft_text(d, text);
		for (node_iter it = node_each(parts); node_next(&it);)
			read_response_part(d, it.value);
		for (size_t i = at + 1; i < d->count; i++)
			d->pieces[i].inner = true;
	}
	if (call != SIZE_MAX)
		call_forget(t, call);
}

/* The user's side: answers are a message of their own, before the rest. */
static void take_user(taking *t, node parts)
{
	bool first = true;
	for (node_iter it = node_each(parts); node_next(&it);) {
		node answer = either(it.value, "functionResponse", "function_response");
		if (json_type_of(answer.v) == JSON_OBJECT)
			take_result(t, it.value, answer);
	}
	for (node_iter it = node_each(parts); node_next(&it);) {
		if (either(it.value, "functionResponse", "function_response").v != NULL)
			continue;
		draft *d = take_message(t, SHEAF_ROLE_USER, !first);
		first = false;
		if (d != NULL)
			read_part(d, it.value, false);
	}
}

static void message(taking *t, node element)
{
	sheaf_str role = node_string(element, "role");
	node parts = node_get(element, "parts");
	if (role.ptr == NULL || str_is(role, "user") || str_is(role, "function")) {
		take_user(t, parts);
		return;
	}
	draft *d = str_is(role, "model") ? take_message(t, SHEAF_ROLE_ASSISTANT, false) : NULL;
	if (d == NULL) {
		take_fail(t, SHEAF_FORMAT);
		return;
	}
	for (node_iter it = node_each(parts); node_next(&it);)
		read_part(d, it.value, false);
	calls_remember(t);
}

const ingest_format ingest_gemini = {
	.format = SHEAF_FORMAT_GEMINI,
	.body = body,
	.event = event,
	.message = message,
};
