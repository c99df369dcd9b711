/*
 * The formats by name, and a rendering from the caller's options to the body.
 */
#include "render/render.h"

#include "base/err.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "entry/members.h"

#define BODY_ROOM 32768u
#define MEDIA_TOKENS 1500u
#define PAGE_BYTES 40000u

static const char anthropic_images[] = " image/jpeg image/png image/gif image/webp ";
static const char openai_images[] = " image/jpeg image/png image/gif image/webp ";
static const char gemini_images[] = " image/jpeg image/png image/webp image/heic image/heif ";
static const char pdf_only[] = " application/pdf ";
static const char gemini_documents[] = " application/pdf text/plain text/markdown text/html "
				       "text/css text/csv text/xml text/rtf ";

/* Calls and results are no opaque parts: they would be without their other half. */
static const char anthropic_user_never[] = " tool_use tool_result thinking redacted_thinking "
					   "server_tool_use mcp_tool_use fallback ";
static const char anthropic_reply_never[] =
	" tool_use tool_result thinking redacted_thinking image "
	"document search_result container_upload ";
static const char chat_user_never[] = " refusal ";
static const char chat_reply_never[] = " image_url input_audio file ";

static const format_rules formats[] = {
	{
		.format = SHEAF_FORMAT_ANTHROPIC,
		.name = "anthropic",
		.provider = "anthropic",
		.path = "/v1/messages",
		.write = anthropic_write,
		.has_thinking = true,
		.opens_with_user = true,
		.tools_required = true,
		.result_parts = true,
		.image_url = true,
		.document_url = true,
		.images = anthropic_images,
		.documents = pdf_only,
		.user_never = anthropic_user_never,
		.reply_never = anthropic_reply_never,
	},
	{
		.format = SHEAF_FORMAT_OPENAI_CHAT,
		.name = "openai-chat",
		.provider = "openai",
		.path = "/v1/chat/completions",
		.write = openai_chat_write,
		.has_system = true,
		.has_developer = true,
		.named_thinking = true,
		.blank_text = true,
		.blank_end = true,
		.image_url = true,
		.images = openai_images,
		.documents = pdf_only,
		.user_never = chat_user_never,
		.reply_never = chat_reply_never,
	},
	{
		.format = SHEAF_FORMAT_OPENAI_RESPONSES,
		.name = "openai-responses",
		.provider = "openai",
		.path = "/v1/responses",
		.write = openai_responses_write,
		.has_system = true,
		.has_developer = true,
		.has_thinking = true,
		.result_parts = true,
		.blank_text = true,
		.blank_end = true,
		.ext_together = true,
		.image_url = true,
		.document_url = true,
		.images = openai_images,
		.documents = pdf_only,
	},
	{
		.format = SHEAF_FORMAT_GEMINI,
		.name = "gemini",
		.provider = "google",
		.path = "/v1beta/models/",
		.path_end = ":generateContent",
		.path_stream = ":streamGenerateContent?alt=sse",
		.write = gemini_write,
		.has_thinking = true,
		.opens_with_user = true,
		.result_parts = true,
		.reply_images = true,
		.blank_text = true,
		.blank_end = true,
		.name_letter = true,
		.image_url = true,
		.document_url = true,
		.images = gemini_images,
		.documents = gemini_documents,
	},
};

const format_rules *rules_of(int32_t format)
{
	for (size_t i = 0; i < COUNT_OF(formats); i++) {
		if (formats[i].format == format)
			return &formats[i];
	}
	return NULL;
}

const char *sheaf_format_name(int32_t format)
{
	const format_rules *rules = rules_of(format);
	return rules != NULL ? rules->name : NULL;
}

int32_t sheaf_format_named(sheaf_str name)
{
	for (size_t i = 0; i < COUNT_OF(formats); i++) {
		if (str_is(name, formats[i].name))
			return formats[i].format;
	}
	return 0;
}

const char *sheaf_format_provider(int32_t format)
{
	const format_rules *rules = rules_of(format);
	return rules != NULL ? rules->provider : NULL;
}

/* ---- Options ------------------------------------------------------------- */

static bool name_is_good(const format_rules *rules, sheaf_str name)
{
	if (name.len == 0 || name.len > TOOL_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		if (!id_char(name.ptr[i]))
			return false;
	}
	return !rules->name_letter || name_may_begin(name.ptr[0]);
}

static int tools_check(const rendering *r, sheaf_error *err)
{
	_cleanup_(map_free) map names = MAP_INIT;
	for (size_t i = 0; i < r->o.tool_count; i++) {
		const sheaf_tool *tool = &r->o.tools[i];
		if (!name_is_good(r->rules, tool->name))
			return err_set(err, SHEAF_INVALID, "tool %zu: %s takes no such name", i + 1,
			               r->rules->name);
		if (map_get(&names, tool->name, &(uint64_t){0}))
			return err_set(err, SHEAF_INVALID, "two tools are called %.*s",
			               (int)tool->name.len, tool->name.ptr);
		if (map_set(&names, tool->name, 1) != 0)
			return err_nomem(err);
		if (tool->schema.ptr == NULL)
			continue;
		int rc = json_check(tool->schema, JSON_OBJECT, err);
		if (rc == SHEAF_NOMEM)
			return rc;
		if (rc != 0)
			return err_set(err, SHEAF_INVALID,
			               "the schema of the tool %.*s is no JSON object",
			               (int)tool->name.len, tool->name.ptr);
	}
	return 0;
}

static bool ttl_is_good(int32_t ttl)
{
	return ttl == 300 || ttl == 3600;
}

static int options_check(const rendering *r, sheaf_error *err)
{
	const sheaf_render_options *o = &r->o;
	if (o->model.len == 0)
		return err_set(err, SHEAF_INVALID, "no model is given, and the context has none");
	if (o->cache < SHEAF_CACHE_FULL || o->cache > SHEAF_CACHE_OFF)
		return err_set(err, SHEAF_INVALID, "no such cache strategy: %d", (int)o->cache);
	if (!ttl_is_good(o->static_ttl) || !ttl_is_good(o->message_ttl))
		return err_set(err, SHEAF_INVALID,
		               "a cache mark lives 300 or 3600 seconds, not %d and %d",
		               (int)o->static_ttl, (int)o->message_ttl);
	if (o->message_ttl > o->static_ttl)
		return err_set(err, SHEAF_INVALID,
		               "messages may not be cached for longer than what stands before "
		               "them: %d and %d seconds",
		               (int)o->message_ttl, (int)o->static_ttl);
	if (o->extra.ptr != NULL) {
		int rc = json_check(o->extra, JSON_OBJECT, err);
		if (rc == SHEAF_NOMEM)
			return rc;
		if (rc != 0)
			return err_set(err, SHEAF_INVALID, "`extra` is no JSON object");
	}
	return tools_check(r, err);
}

/* The caller's options, as much as its version of the header knew, with defaults filled in. */
static int options_take(rendering *r, const sheaf_render_options *given, sheaf_error *err)
{
	sheaf_render_options *o = &r->o;
	*o = (sheaf_render_options)SHEAF_RENDER_OPTIONS_INIT;
	if (given == NULL || given->size < offsetof(sheaf_render_options, provider))
		return err_set(err, SHEAF_INVALID, "no options, or without their size");
	memcpy(o, given, given->size < sizeof(*o) ? given->size : sizeof(*o));
	r->rules = rules_of(o->format);
	if (r->rules == NULL)
		return err_set(err, SHEAF_INVALID, "no such format: %d", (int)o->format);
	if (o->provider.len == 0)
		o->provider = sheaf_str_of(r->rules->provider);
	if (o->model.len == 0)
		o->model = r->context->model;
	if (o->thinking_level.ptr == NULL)
		o->thinking_level = r->context->thinking_level;
	if (o->static_ttl == 0)
		o->static_ttl = 3600;
	if (o->message_ttl == 0)
		o->message_ttl = 300;
	if (o->bytes_max == 0)
		o->bytes_max = SHEAF_CONTEXT_BYTES_DEFAULT;
	r->tools = o->tools;
	r->tool_count = o->tool_count;
	return options_check(r, err);
}

bool extra_has(const rendering *r, const char *name)
{
	return r->o.extra.len != 0 && json_member_bytes(r->o.extra, name).ptr != NULL;
}

void ext_write(buf *out, sheaf_str ext, const char *const *without)
{
	sheaf_str key, value;
	for (size_t at = 0; members_next(ext, &at, &key, &value);) {
		const char *const *name = without;
		while (*name != NULL && !members_key_is(key, *name))
			name++;
		if (*name != NULL)
			continue;
		buf_lit(out, ",\"");
		buf_str(out, key);
		buf_lit(out, "\":");
		buf_str(out, value);
	}
}

void extra_write(const rendering *r, buf *out, const char *list)
{
	const char *const ours[] = {"model", list, NULL};
	ext_write(out, members_inside(members_trim(r->o.extra)), ours);
}

/* ---- Notes --------------------------------------------------------------- */

int note_add(rendering *r, int32_t what, const sheaf_item *item, sheaf_str detail)
{
	int ok = 1;
	void *notes = r->notes;
	int rc = mem_grow(&notes, &r->note_room, r->note_count + 1, sizeof(sheaf_note *));
	if (rc != 0)
		return rc;
	r->notes = notes;
	sheaf_note *note = arena_zalloc(r->arena, sizeof(*note));
	if (note == NULL)
		return SHEAF_NOMEM;
	note->what = what;
	note->detail = arena_dup(r->arena, detail, &ok);
	if (item != NULL && item->entry != NULL) {
		note->seq = item->entry->seq;
		note->entry_id = arena_dup(r->arena, item->entry->id, &ok);
	}
	r->notes[r->note_count++] = note;
	return ok ? 0 : SHEAF_NOMEM;
}

/* ---- The whole ----------------------------------------------------------- */

typedef struct result {
	sheaf_request request;
	arena *arena;
	char *body;
} result;

static void rendering_free(rendering *r)
{
	arena_free(r->arena);
	mem_free(r->notes);
	mem_free(r->list);
	mem_free(r->blocks);
}

/* Models are named in addresses by some: what is no plain character there is escaped. */
static int path_make(sheaf_str *out, const rendering *r)
{
	static const char hex[] = "0123456789ABCDEF";
	_cleanup_(buf_free) buf path = BUF_INIT(SIZE_MAX / 2);
	const format_rules *rules = r->rules;
	int ok = 1;

	buf_add(&path, rules->path, strlen(rules->path));
	if (rules->path_end != NULL) {
		for (size_t i = 0; i < r->o.model.len; i++) {
			char c = r->o.model.ptr[i];
			if (id_char(c) || c == '.') {
				buf_char(&path, c);
				continue;
			}
			buf_char(&path, '%');
			buf_char(&path, hex[(unsigned char)c >> 4]);
			buf_char(&path, hex[(unsigned char)c & 15]);
		}
		const char *end = r->o.stream ? rules->path_stream : rules->path_end;
		buf_add(&path, end, strlen(end));
	}
	if (path.status == 0)
		*out = arena_dup(r->arena, buf_view(&path), &ok);
	return path.status == 0 && ok ? 0 : SHEAF_NOMEM;
}

/* An estimate: four bytes a token, and so much for each image or page. */
static uint64_t tokens_of(const rendering *r, size_t bytes)
{
	uint64_t media = 0;
	size_t plain = bytes;
	for (size_t i = 0; i < r->message_count; i++) {
		const message *m = &r->messages[i];
		for (size_t k = 0; k < m->count; k++) {
			const block *b = &m->blocks[k];
			bool whole = b->part_count == 0;
			for (size_t p = 0; p < (whole ? 1 : b->part_count); p++) {
				const block *one = whole ? b : &b->parts[p];
				if (one->kind != SHEAF_PART_IMAGE &&
				    one->kind != SHEAF_PART_DOCUMENT)
					continue;
				size_t data = one->part->data.len;
				plain -= data < plain ? data : plain;
				media += MEDIA_TOKENS;
				if (one->kind == SHEAF_PART_DOCUMENT)
					media += data / PAGE_BYTES * MEDIA_TOKENS;
			}
		}
	}
	return plain / 4 + media;
}

static int result_make(sheaf_request **out, rendering *r, buf *body, sheaf_error *err)
{
	result *made = arena_zalloc(r->arena, sizeof(*made));
	const sheaf_note **notes = arena_alloc(r->arena, (r->note_count + 1) * sizeof(*notes));
	if (made == NULL || notes == NULL)
		return err_nomem(err);
	sheaf_request *q = &made->request;
	int ok = 1;
	for (size_t i = 0; i < r->note_count; i++)
		notes[i] = r->notes[i];
	q->format = r->o.format;
	q->stream = r->o.stream != 0;
	q->provider = arena_dup(r->arena, r->o.provider, &ok);
	q->model = arena_dup(r->arena, r->o.model, &ok);
	if (!ok || path_make(&q->path, r) != 0)
		return err_nomem(err);
	q->note_count = r->note_count;
	q->notes = notes;
	q->mark_count = r->mark_count;
	memcpy(q->marks, r->marks, sizeof(q->marks));
	q->body = buf_view(body);
	q->tokens = tokens_of(r, q->body.len);
	made->body = body->ptr;
	made->arena = r->arena;
	body->ptr = NULL;
	r->arena = NULL;
	*out = q;
	return 0;
}

static int body_write(rendering *r, buf *body, sheaf_error *err)
{
	buf_reset(body);
	r->mark_count = 0;
	int rc = r->rules->write(r, body, err);
	if (rc != 0)
		return rc;
	buf_nul(body);
	return buf_status(body, err);
}

/*
 * The body, smaller where it has to be. Steps of a quarter: what is left out
 * stays the same until the rest has grown by as much.
 */
static int body_make(rendering *r, buf *body, sheaf_error *err)
{
	const size_t max = r->o.bytes_max, step = max / 4 + 1;
	size_t notes = r->note_count;
	int rc = body_write(r, body, err);
	if (rc == SHEAF_TOO_LARGE)
		return err_set(err, rc, "the request has more than %zu bytes", max);
	if (rc != 0 || body->len <= max)
		return rc;
	r->note_count = notes;
	if (elide(r, ((body->len - max - 1) / step + 1) * step) != 0)
		return err_nomem(err);
	rc = body_write(r, body, err);
	if (rc == 0 && body->len > max)
		return err_set(err, SHEAF_TOO_LARGE,
		               "the request has %zu bytes, more than %zu, also without what may be "
		               "left out",
		               body->len, max);
	return rc;
}

int sheaf_render(sheaf_request **out, const sheaf_context *context,
                 const sheaf_render_options *options, sheaf_error *err)
{
	_cleanup_(rendering_free) rendering r = {.context = context};
	*out = NULL;
	int rc = options_take(&r, options, err);
	if (rc != 0)
		return rc;
	r.arena = arena_new();
	if (r.arena == NULL)
		return err_nomem(err);
	rc = blocks_make(&r, err);
	if (rc != 0)
		return rc;
	/* Where something may be left out it must be known how much is too much. */
	size_t most = r.o.elide != 0 ? SIZE_MAX / 2 : r.o.bytes_max;
	_cleanup_(buf_free) buf body = BUF_INIT(most);
	/* Nearly always enough, so that nothing is moved. */
	size_t guess = context->bytes + context->bytes / 4 + BODY_ROOM;
	if (buf_reserve(&body, guess < most ? guess : most) != 0)
		return err_nomem(err);
	rc = body_make(&r, &body, err);
	return rc != 0 ? rc : result_make(out, &r, &body, err);
}

void sheaf_request_free(const sheaf_request *request)
{
	if (request == NULL)
		return;
	const result *made = (const result *)(const void *)request;
	mem_free(made->body);
	arena_free(made->arena);
}
