/*
 * Google Gemini generateContent: replies, and the chunks of a stream, each of
 * which is a reply itself.
 */
#include "render/ingest.h"

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

static bool is_image(sheaf_str media)
{
	return media.ptr != NULL && str_starts(media, "image/");
}

/* Bytes or a link. */
static void read_media(draft *d, node part, node media)
{
	static const char *const known[] = {"inlineData", "fileData", NULL};
	sheaf_str type = node_string(media, "mimeType"), uri = node_string(media, "fileUri");
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
	static const char *const known[] = {"functionCall", "thoughtSignature", NULL};
	piece *p = draft_piece(d, SHEAF_PART_TOOL_USE, 0);
	if (p == NULL)
		return;
	node args = node_get(call, "args");
	draft_add(d, &p->id, node_string(call, "id"));
	draft_call(d, p, node_string(call, "name"));
	draft_add(d, &p->raw, args.v != NULL ? args.text : SHEAF_STR("{}"));
	draft_add(d, &p->signature, node_string(part, "thoughtSignature"));
	draft_ext_others(d, p, part, known);
	p->done = true;
}

/*
 * Text goes on where the chunk before ended; a signature ends it. `first`: no other part of this
 * chunk stands before it.
 */
static void read_text(draft *d, node part, bool first)
{
	static const char *const known[] = {"text", "thought", "thoughtSignature", NULL};
	int32_t kind = json_bool(node_get(part, "thought").v) ? SHEAF_PART_THINKING
	                                                      : SHEAF_PART_TEXT;
	piece *p = first ? draft_last(d) : NULL;
	if (p == NULL || p->kind != kind || p->signature.len != 0)
		p = draft_piece(d, kind, 0);
	if (p == NULL)
		return;
	draft_say(d, p, node_string(part, "text"));
	draft_add(d, &p->signature, node_string(part, "thoughtSignature"));
	draft_ext_others(d, p, part, known);
	p->done = true;
}

static void read_part(draft *d, node part, bool first)
{
	node call = node_get(part, "functionCall"), data = node_get(part, "inlineData");
	if (data.v == NULL)
		data = node_get(part, "fileData");
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

const ingest_format ingest_gemini = {
	.name = "gemini",
	.provider = "google",
	.body = body,
	.event = event,
};
