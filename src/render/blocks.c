/*
 * Makes plain messages from the items of a context.
 *
 * An item gives up to three: the results in it, which answer the message
 * before; then what it says itself; then, if it is not the assistant's, the
 * calls in it as a message of the assistant's. Nothing that comes later decides
 * how an item is sent, so that a prefix stays what it was.
 */
#include "render/blocks.h"

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "entry/maker.h"
#include "entry/members.h"

#define OPENING "(The conversation begins.)"
#define MOVED_BEFORE "[from the result of "
#define MOVED_AFTER "]"
#define TOOL_GONE "Used earlier in this conversation; it is not available now."

static void maker_free(maker *k)
{
	mem_free(k->moved);
	mem_free(k->calls);
	mem_free(k->names);
	map_free(&k->by_id);
	map_free(&k->made);
}

/* ---- The list ------------------------------------------------------------ */

block *block_new(maker *k, int32_t kind, const sheaf_part *part)
{
	if (k->block_count == k->block_room) {
		void *blocks = k->blocks;
		if (mem_grow(&blocks, &k->block_room, k->block_count + 1, sizeof(block)) != 0)
			return NULL;
		k->r->blocks = k->blocks = blocks;
	}
	block *b = &k->blocks[k->block_count++];
	*b = (block){.kind = kind, .part = part};
	return b;
}

static int text_add(maker *k, sheaf_str text, const sheaf_part *part)
{
	block *b = block_new(k, SHEAF_PART_TEXT, part);
	if (b == NULL)
		return SHEAF_NOMEM;
	b->text = text;
	return 0;
}

static int message_add(maker *k, block_role role, const sheaf_item *item)
{
	if (k->message_count == k->message_room) {
		void *list = k->messages;
		if (mem_grow(&list, &k->message_room, k->message_count + 1, sizeof(message)) != 0)
			return SHEAF_NOMEM;
		k->r->list = k->messages = list;
	}
	k->messages[k->message_count++] = (message){.role = role, .item = item};
	k->begun = k->block_count;
	return 0;
}

/* The last message is whole; one of nothing goes. */
static void message_end(maker *k)
{
	message *m = &k->messages[k->message_count - 1];
	m->count = k->block_count - k->begun;
	if (m->count != 0)
		return;
	k->message_count--;
	if (k->message_count != 0)
		k->begun = k->block_count - k->messages[k->message_count - 1].count;
}

/* Images that results could not hold follow them as the user's. */
static int moved_flush(maker *k)
{
	if (k->moved_count == 0)
		return 0;
	int rc = message_add(k, ROLE_USER, NULL);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < k->moved_count; i++) {
		block *b = block_new(k, k->moved[i].kind, k->moved[i].part);
		if (b == NULL)
			return SHEAF_NOMEM;
		*b = k->moved[i];
	}
	k->moved_count = 0;
	message_end(k);
	return 0;
}

static int message_begin(maker *k, block_role role)
{
	int rc = moved_flush(k);
	return rc != 0 ? rc : message_add(k, role, k->item);
}

/* ---- Parts --------------------------------------------------------------- */

/* White space beyond ASCII: these spaces and line ends count as nothing, too. */
static const char *const wide_spaces[] = {
	"\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
	"\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
	"\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
	"\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80",
};

static size_t wide_space(sheaf_str text)
{
	for (size_t i = 0; i < COUNT_OF(wide_spaces); i++) {
		if (str_starts(text, wide_spaces[i]))
			return strlen(wide_spaces[i]);
	}
	return 0;
}

bool text_is_blank(sheaf_str text)
{
	while (text.len != 0) {
		char c = text.ptr[0];
		size_t space = c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
		if (space == 0 && (unsigned char)c >= 0x80)
			space = wide_space(text);
		if (space == 0)
			return false;
		text = str_make(text.ptr + space, text.len - space);
	}
	return true;
}

/* The members of a part's `ext` that are for this format; `format` may stand anywhere in it. */
static int ext_members(maker *k, const sheaf_part *part, sheaf_str *out)
{
	const char *name = k->r->rules->name;
	*out = (sheaf_str){NULL, 0};
	if (!made_by_provider(k->item->message, k->r->o.provider))
		return 0;
	sheaf_str members = members_inside(part->ext), key;
	sheaf_str value = members_find(members, "format");
	if (value.len != strlen(name) + 2 || value.ptr[0] != '"' ||
	    memcmp(value.ptr + 1, name, value.len - 2) != 0)
		return 0;
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX / 2);
	for (size_t at = 0; members_next(members, &at, &key, &value);) {
		if (members_key_is(key, "format") || members_key_is(key, "cache_control"))
			continue;
		if (text.len != 0)
			buf_char(&text, ',');
		buf_char(&text, '"');
		buf_str(&text, key);
		buf_lit(&text, "\":");
		buf_str(&text, value);
	}
	int ok = 1;
	if (text.status == 0 && text.len != 0)
		*out = arena_dup(k->r->arena, buf_view(&text), &ok);
	return text.status == 0 && ok ? 0 : SHEAF_NOMEM;
}

static bool type_in(const char *types, sheaf_str type)
{
	char padded[64];
	if (types == NULL)
		return true;
	if (type.len == 0 || type.len + 3 > sizeof(padded) || memchr(type.ptr, ' ', type.len))
		return false;
	padded[0] = ' ';
	memcpy(padded + 1, type.ptr, type.len);
	padded[1 + type.len] = ' ';
	padded[2 + type.len] = '\0';
	return strstr(types, padded) != NULL;
}

static bool is_base64(sheaf_str data)
{
	size_t len = data.len;
	for (size_t pad = 0; pad < 2 && len != 0 && data.ptr[len - 1] == '='; pad++)
		len--;
	if (len == 0 || data.len % 4 != 0)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = data.ptr[i];
		if ((!id_char(c) || c == '_' || c == '-') && c != '+' && c != '/')
			return false;
	}
	return true;
}

static bool is_address(const rendering *r, sheaf_str data)
{
	if (r->o.format == SHEAF_FORMAT_GEMINI && str_starts(data, "gs://") && data.len > 5)
		return true;
	return (str_starts(data, "https://") && data.len > 8) ||
	       (str_starts(data, "http://") && data.len > 7);
}

/* Whether the format can hold an image or a document. */
static bool is_taken(const rendering *r, const sheaf_part *part)
{
	bool image = part->kind == SHEAF_PART_IMAGE;
	if (image && r->o.no_images)
		return false;
	if (str_is(part->source_type, "url"))
		return (image ? r->rules->image_url : r->rules->document_url) &&
		       is_address(r, part->data);
	return str_is(part->source_type, "base64") &&
	       type_in(image ? r->rules->images : r->rules->documents, part->media_type) &&
	       is_base64(part->data);
}

static int stand_in(maker *k, const sheaf_part *part, bool in_result, block *b)
{
	*b = (block){.kind = SHEAF_PART_TEXT, .part = part};
	int rc = wording_stand_in(&b->text, part, k->r->o.no_images != 0, in_result, k->r->arena);
	return rc != 0 ? rc : note_add(k->r, SHEAF_NOTE_STAND_IN, k->item, part->media_type);
}

static int media_add(maker *k, const sheaf_part *part, bool may, sheaf_str ext)
{
	block *b = block_new(k, part->kind, part);
	if (b == NULL)
		return SHEAF_NOMEM;
	b->ext = ext;
	return may && is_taken(k->r, part) ? 0 : stand_in(k, part, false, b);
}

static int thinking_add(maker *k, const sheaf_part *part, bool reply, bool own, sheaf_str ext)
{
	rendering *r = k->r;
	bool is_signed = r->rules->has_thinking && part->signature.len != 0;
	bool is_named = r->rules->named_thinking && members_find(ext, "member").ptr != NULL;
	if (reply && own && (is_signed || is_named)) {
		block *b = block_new(k, SHEAF_PART_THINKING, part);
		if (b == NULL)
			return SHEAF_NOMEM;
		b->text = part->text;
		b->signature = part->signature;
		b->ext = ext;
		return 0;
	}
	if (!reply || !r->o.thinking_as_text || part->redacted || text_is_blank(part->text))
		return note_add(r, SHEAF_NOTE_FOREIGN_THINKING, k->item, (sheaf_str){NULL, 0});
	int rc = note_add(r, SHEAF_NOTE_THINKING_TEXT, k->item, (sheaf_str){NULL, 0});
	return rc != 0 ? rc : text_add(k, part->text, part);
}

/* Whether an opaque part can stand in a message of this role, as far as its type tells. */
static bool opaque_fits(const format_rules *rules, const json_val *raw, bool reply)
{
	const char *never = reply ? rules->reply_never : rules->user_never;
	sheaf_str type = json_string(json_get(raw, "type"));
	if (json_type_of(raw) != JSON_OBJECT)
		return false;
	return never == NULL || (type.len != 0 && !type_in(never, type));
}

/* What is given back as it came must at least be an object, and of this very format. */
static int opaque_add(maker *k, const sheaf_part *part, bool may, bool reply)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	rendering *r = k->r;
	may = may && str_is(part->provider, r->rules->name) &&
	      made_by_provider(k->item->message, r->o.provider);
	if (may) {
		int rc = json_parse(&doc, part->raw, NULL);
		if (rc == SHEAF_NOMEM)
			return rc;
		may = rc == 0 && opaque_fits(r->rules, json_root(doc), reply);
	}
	if (!may)
		return note_add(r, SHEAF_NOTE_FOREIGN_PART, k->item, part->provider);
	return block_new(k, SHEAF_PART_OPAQUE, part) != NULL ? 0 : SHEAF_NOMEM;
}

static int said_text(maker *k, const sheaf_part *part, bool signature, sheaf_str ext)
{
	if (part->text.len == 0 || (!k->r->rules->blank_text && text_is_blank(part->text)))
		return note_add(k->r, SHEAF_NOTE_EMPTY_TEXT, k->item, (sheaf_str){NULL, 0});
	block *b = block_new(k, SHEAF_PART_TEXT, part);
	if (b == NULL)
		return SHEAF_NOMEM;
	b->text = part->text;
	b->ext = ext;
	if (signature)
		b->signature = part->signature;
	return 0;
}

static int part_add(maker *k, const sheaf_part *part, block_role role, bool own, bool with_ext)
{
	bool reply = role == ROLE_ASSISTANT, plain = role == ROLE_USER || reply;
	sheaf_str ext = {NULL, 0};
	int rc = with_ext && part->ext.len != 0 ? ext_members(k, part, &ext) : 0;
	if (rc != 0)
		return rc;
	switch (part->kind) {
	case SHEAF_PART_TEXT:
		return said_text(k, part, reply && own, ext);
	case SHEAF_PART_THINKING:
		return thinking_add(k, part, reply, own, ext);
	case SHEAF_PART_IMAGE:
	case SHEAF_PART_DOCUMENT:
		return media_add(k, part, plain && (!reply || k->r->rules->reply_images), ext);
	case SHEAF_PART_TOOL_USE:
		return reply ? call_add(k, part, own, ext) : 0;
	case SHEAF_PART_TOOL_RESULT:
		return 0;
	case SHEAF_PART_OPAQUE:
		return opaque_add(k, part, plain, reply);
	default:
		return note_add(k->r, SHEAF_NOTE_FOREIGN_PART, k->item, (sheaf_str){NULL, 0});
	}
}

/* ---- Results ------------------------------------------------------------- */

static int moved_add(maker *k, const block *b)
{
	void *moved = k->moved;
	int rc = mem_grow(&moved, &k->moved_room, k->moved_count + 1, sizeof(*k->moved));
	if (rc != 0)
		return rc;
	k->moved = moved;
	k->moved[k->moved_count++] = *b;
	return 0;
}

/* An image of a result that may not hold one: it follows, with a line that says whose it is. */
static int move_out(maker *k, const block *result, const sheaf_part *part, block *here)
{
	rendering *r = k->r;
	size_t len = sizeof(MOVED_BEFORE MOVED_AFTER) + result->name.len + 1 + result->id.len;
	char *line = arena_alloc(r->arena, len + 1);
	if (line == NULL)
		return SHEAF_NOMEM;
	char *at = line;
	memcpy(at, MOVED_BEFORE, sizeof(MOVED_BEFORE) - 1);
	at += sizeof(MOVED_BEFORE) - 1;
	memcpy(at, result->name.ptr, result->name.len);
	at += result->name.len;
	*at++ = ' ';
	memcpy(at, result->id.ptr, result->id.len);
	at += result->id.len;
	memcpy(at, MOVED_AFTER, sizeof(MOVED_AFTER));
	at += sizeof(MOVED_AFTER) - 1;

	*here = (block){.kind = SHEAF_PART_TEXT, .part = part, .text = SHEAF_STR("[see below]")};
	int rc = moved_add(k, &(block){.kind = SHEAF_PART_TEXT,
	                               .part = part,
	                               .text = str_make(line, (size_t)(at - line))});
	if (rc == 0)
		rc = moved_add(k, &(block){.kind = part->kind, .part = part});
	return rc != 0 ? rc : note_add(r, SHEAF_NOTE_MOVED, k->item, result->id);
}

static int result_part(maker *k, const block *result, const sheaf_part *part, block *parts,
                       size_t *count)
{
	rendering *r = k->r;
	block *b = &parts[*count];
	int rc = 0;
	switch (part->kind) {
	case SHEAF_PART_TEXT:
		if (part->text.len == 0 || (!r->rules->blank_text && text_is_blank(part->text)))
			return note_add(r, SHEAF_NOTE_EMPTY_TEXT, k->item, result->id);
		*b = (block){.kind = SHEAF_PART_TEXT, .part = part, .text = part->text};
		break;
	case SHEAF_PART_IMAGE:
	case SHEAF_PART_DOCUMENT:
		*b = (block){.kind = part->kind, .part = part};
		if (!is_taken(r, part))
			rc = stand_in(k, part, true, b);
		else if (!r->rules->result_parts)
			rc = move_out(k, result, part, b);
		else
			rc = ext_members(k, part, &b->ext);
		break;
	default:
		return note_add(r, SHEAF_NOTE_FOREIGN_PART, k->item, result->id);
	}
	(*count)++;
	return rc;
}

static int result_parts(maker *k, block *result, const sheaf_part *part)
{
	block *parts = arena_alloc(k->r->arena, part->part_count * sizeof(*parts));
	int rc = parts != NULL ? 0 : SHEAF_NOMEM;
	for (size_t i = 0; rc == 0 && i < part->part_count; i++)
		rc = result_part(k, result, part->parts[i], parts, &result->part_count);
	result->parts = result->part_count != 0 ? parts : NULL;
	return rc;
}

static int result_add(maker *k, const sheaf_part *part)
{
	block b = {.kind = SHEAF_PART_TOOL_RESULT,
	           .error = part->is_error == 1,
	           .said_error = part->is_error >= 0,
	           .part = part,
	           .text = part->text};
	int rc = 0;
	if (!call_answer(k, &b, part->tool_use_id))
		return note_add(k->r, SHEAF_NOTE_ORPHAN_ANSWER, k->item, part->tool_use_id);
	if (part->ext.len != 0)
		rc = ext_members(k, part, &b.ext);
	if (rc == 0 && part->part_count != 0)
		rc = result_parts(k, &b, part);
	if (rc != 0)
		return rc;
	block *to = block_new(k, b.kind, part);
	if (to == NULL)
		return SHEAF_NOMEM;
	*to = b;
	return 0;
}

/* The results in an item, all of them answers to the calls before: one message with its neighbours. */
static int results_add(maker *k)
{
	const sheaf_message_view *view = k->item->message;
	bool begun = false;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < view->part_count; i++) {
		if (view->parts[i]->kind != SHEAF_PART_TOOL_RESULT)
			continue;
		if (!begun) {
			begun = true;
			if (k->messages[k->message_count - 1].role != ROLE_TOOL)
				rc = message_begin(k, ROLE_TOOL);
		}
		if (rc == 0)
			rc = result_add(k, view->parts[i]);
	}
	if (rc == 0 && begun)
		message_end(k);
	return rc;
}

/* ---- Items --------------------------------------------------------------- */

/* Formats of files by who speaks in them; the wire formats name themselves. */
static const struct {
	const char *format;
	const char *provider;
} origins[] = {
	{"claude-code", "anthropic"},
	{"codex", "openai"},
	{"chatgpt", "openai"},
	{"gemini-cli", "google"},
};

/* Whether a system message was written for another provider's model. */
static bool is_imported(const maker *k)
{
	const sheaf_item *item = k->item;
	if (!made_by_provider(item->message, k->r->o.provider))
		return true;
	if (item->entry == NULL || item->message->provider.len != 0)
		return false;
	sheaf_str origin = members_find(item->entry->body, "origin");
	sheaf_str format = members_find(members_inside(origin), "format");
	if (format.len < 2 || format.ptr[0] != '"')
		return false;
	format = str_make(format.ptr + 1, format.len - 2);
	for (size_t i = 0; i < COUNT_OF(origins); i++) {
		if (str_is(format, origins[i].format))
			return !str_is(k->r->o.provider, origins[i].provider);
	}
	int32_t wire = sheaf_format_named(format);
	return wire == 0 || !str_is(k->r->o.provider, sheaf_format_provider(wire));
}

static bool is_system(sheaf_str role)
{
	return str_is(role, SHEAF_ROLE_SYSTEM) || str_is(role, SHEAF_ROLE_DEVELOPER);
}

/* Whether a message is nothing but texts, and they say something. */
static bool is_plain_text(const sheaf_message_view *view)
{
	bool says = false;
	for (size_t i = 0; i < view->part_count; i++) {
		if (view->parts[i]->kind != SHEAF_PART_TEXT)
			return false;
		says |= !text_is_blank(view->parts[i]->text);
	}
	return says;
}

/* What a conversation begins with as the system's is system text where there is no such role. */
static bool is_hoisted(const maker *k)
{
	return k->message_count == 1 && !k->r->rules->has_system &&
	       is_system(k->item->message->role) && is_plain_text(k->item->message) &&
	       !is_imported(k);
}

/* What the message is sent as; `*worded`: its texts as one, under a heading of ours. */
static block_role role_of(const maker *k, bool *worded)
{
	const format_rules *rules = k->r->rules;
	sheaf_str role = k->item->message->role;
	*worded = false;
	if (str_is(role, SHEAF_ROLE_ASSISTANT))
		return ROLE_ASSISTANT;
	bool developer = str_is(role, SHEAF_ROLE_DEVELOPER);
	if ((developer || str_is(role, SHEAF_ROLE_SYSTEM)) && rules->has_system && !is_imported(k))
		return developer && rules->has_developer ? ROLE_DEVELOPER : ROLE_SYSTEM;
	*worded = wording_has(role);
	return ROLE_USER;
}

static int hoist(maker *k)
{
	rendering *r = k->r;
	const sheaf_message_view *view = k->item->message;
	sheaf_system *system = arena_alloc(r->arena, (r->o.system_count + 1) * sizeof(*system));
	size_t len = sheaf_message_view_text(view, NULL, 0);
	char *text = arena_alloc(r->arena, len + 1);
	if (system == NULL || text == NULL)
		return SHEAF_NOMEM;
	for (size_t i = 0; i < view->part_count; i++) {
		int32_t kind = view->parts[i]->kind;
		int rc = kind != SHEAF_PART_TEXT && kind != SHEAF_PART_TOOL_USE &&
		                         kind != SHEAF_PART_TOOL_RESULT
		                 ? note_add(r, SHEAF_NOTE_FOREIGN_PART, k->item, view->role)
		                 : 0;
		if (rc != 0)
			return rc;
	}
	if (len == 0)
		return 0;
	(void)sheaf_message_view_text(view, text, len + 1);
	if (r->o.system_count != 0)
		memcpy(system, r->o.system, r->o.system_count * sizeof(*system));
	system[r->o.system_count++] = (sheaf_system){.text = str_make(text, len)};
	r->o.system = system;
	return 0;
}

/* The message as it was stored, also when the context changed its parts. */
static sheaf_str recorded(const sheaf_item *item)
{
	if (item->message->json.ptr != NULL || item->entry == NULL || item->entry->message == NULL)
		return item->message->json;
	return item->entry->message->json;
}

static int worded_add(maker *k)
{
	const sheaf_message_view *view = k->item->message;
	sheaf_str text;
	bool blank = false;
	int rc = wording_make(&text, view, recorded(k->item), k->r->arena);
	if (rc != 0 || text.ptr == NULL)
		return rc;
	if (text.len != 0)
		return text_add(k, text, NULL);
	for (size_t i = 0; i < view->part_count; i++)
		blank |= view->parts[i]->kind == SHEAF_PART_TEXT &&
		         text_is_blank(view->parts[i]->text);
	return blank ? note_add(k->r, SHEAF_NOTE_EMPTY_TEXT, k->item, (sheaf_str){NULL, 0}) : 0;
}

/* Whether all thinking of a message goes back, for formats that want all or nothing. */
static bool thinking_is_whole(const sheaf_message_view *view)
{
	for (size_t i = 0; i < view->part_count; i++) {
		const sheaf_part *part = view->parts[i];
		if (part->kind == SHEAF_PART_THINKING && part->signature.len == 0)
			return false;
	}
	return true;
}

/* An assistant's message may not end in thinking; nor, for some, in white space. */
static int reply_finish(maker *k)
{
	while (k->block_count > k->begun &&
	       k->blocks[k->block_count - 1].kind == SHEAF_PART_THINKING) {
		k->block_count--;
		int rc = note_add(k->r, SHEAF_NOTE_FOREIGN_THINKING, k->item, (sheaf_str){NULL, 0});
		if (rc != 0)
			return rc;
	}
	if (k->block_count == k->begun || k->r->rules->blank_end)
		return 0;
	block *last = &k->blocks[k->block_count - 1];
	while (last->kind == SHEAF_PART_TEXT &&
	       text_is_blank(str_make(last->text.ptr + last->text.len - 1, 1)))
		last->text.len--;
	return 0;
}

static int said_add(maker *k)
{
	const sheaf_message_view *view = k->item->message;
	bool worded;
	if (is_hoisted(k))
		return hoist(k);
	block_role role = role_of(k, &worded);
	bool own = made_by(view, k->r->o.provider, k->r->o.model);
	bool with_ext = !k->r->rules->ext_together || (own && thinking_is_whole(view));
	int rc = message_begin(k, role);
	if (rc != 0)
		return rc;
	k->messages[k->message_count - 1].own = own && role == ROLE_ASSISTANT;
	if (worded)
		rc = worded_add(k);
	for (size_t i = 0; rc == 0 && i < view->part_count; i++) {
		if (!worded || view->parts[i]->kind != SHEAF_PART_TEXT)
			rc = part_add(k, view->parts[i], role, own, with_ext);
	}
	if (rc == 0 && role == ROLE_ASSISTANT)
		rc = reply_finish(k);
	if (rc == 0 && worded && is_system(view->role) && k->block_count > k->begun)
		rc = note_add(k->r, SHEAF_NOTE_ROLE, k->item, view->role);
	if (rc == 0)
		message_end(k);
	return rc;
}

/* Calls that stand in somebody else's message are still the assistant's. */
static int strays_add(maker *k)
{
	const sheaf_message_view *view = k->item->message;
	bool begun = false;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < view->part_count; i++) {
		if (view->parts[i]->kind != SHEAF_PART_TOOL_USE)
			continue;
		if (!begun)
			rc = message_begin(k, ROLE_ASSISTANT);
		begun = true;
		if (rc == 0)
			rc = call_add(k, view->parts[i], false, (sheaf_str){NULL, 0});
	}
	if (rc == 0 && begun)
		message_end(k);
	return rc;
}

/* ---- The whole ----------------------------------------------------------- */

/* Some want a tool declared if there are calls. One will do, and it stays the same one. */
static int tools_make(maker *k)
{
	rendering *r = k->r;
	if (!r->rules->tools_required || r->tool_count != 0 || k->call_count == 0)
		return 0;
	sheaf_tool *tool = arena_zalloc(r->arena, sizeof(*tool));
	if (tool == NULL)
		return SHEAF_NOMEM;
	tool->name = k->blocks[k->calls[0].block].name;
	tool->description = SHEAF_STR(TOOL_GONE);
	r->tools = tool;
	r->tool_count = 1;
	return note_add(r, SHEAF_NOTE_TOOLS, NULL, tool->name);
}

/*
 * Room for what will mostly do, and the opening line: it stands before the list
 * whether it is needed or not.
 */
static int list_begin(maker *k)
{
	size_t count = k->r->context->count;
	void *blocks = NULL, *messages = NULL;
	int rc = mem_grow(&blocks, &k->block_room, 2 * count + 2, sizeof(*k->blocks));
	k->r->blocks = k->blocks = blocks;
	if (rc == 0)
		rc = mem_grow(&messages, &k->message_room, count + 2, sizeof(*k->messages));
	k->r->list = k->messages = messages;
	if (rc == 0)
		rc = message_add(k, ROLE_USER, NULL);
	if (rc == 0)
		rc = text_add(k, SHEAF_STR(OPENING), NULL);
	if (rc == 0)
		message_end(k);
	return rc;
}

static int list_finish(maker *k)
{
	rendering *r = k->r;
	bool opening = r->rules->opens_with_user && k->messages[1].role != ROLE_USER;
	const sheaf_str none = {NULL, 0};
	block *at = k->blocks;
	for (size_t i = 0; i < k->message_count; at += k->messages[i++].count)
		k->messages[i].blocks = at;
	r->messages = opening ? k->messages : k->messages + 1;
	r->message_count = opening ? k->message_count : k->message_count - 1;
	int rc = opening ? note_add(r, SHEAF_NOTE_OPENING, k->messages[1].item, none) : 0;
	const message *last = &r->messages[r->message_count - 1];
	if (rc == 0 && last->role == ROLE_ASSISTANT)
		rc = note_add(r, SHEAF_NOTE_PREFILL, last->item, none);
	return rc;
}

/* Which kinds of parts a message has, a bit for each. */
static unsigned kinds_of(const sheaf_message_view *view)
{
	unsigned kinds = 0;
	for (size_t i = 0; i < view->part_count; i++) {
		int32_t kind = view->parts[i]->kind;
		kinds |= kind > 0 && kind <= SHEAF_PART_OPAQUE ? 1u << kind : 1u;
	}
	return kinds;
}

static int item_add(maker *k)
{
	const sheaf_message_view *view = k->item->message;
	const unsigned results = 1u << SHEAF_PART_TOOL_RESULT, calls = 1u << SHEAF_PART_TOOL_USE;
	unsigned kinds = kinds_of(view);
	int rc = kinds & results ? results_add(k) : 0;
	/* Answers to one message may come in several items: nothing may come between them. */
	if (rc == 0 && kinds != results)
		rc = said_add(k);
	if (rc == 0 && kinds & calls && !str_is(view->role, SHEAF_ROLE_ASSISTANT))
		rc = strays_add(k);
	return rc;
}

/*
 * Items, messages and parts lie anywhere in memory, and little is done with
 * each: they are asked for ahead, one step of the way at a time.
 */
static void look_ahead(const sheaf_item *const *items, size_t left)
{
	if (left > 12)
		__builtin_prefetch(items[12]);
	if (left > 9)
		__builtin_prefetch(&items[9]->message->part_count);
	if (left > 6)
		__builtin_prefetch(items[6]->message->parts);
	if (left > 3 && items[3]->message->part_count != 0)
		__builtin_prefetch(items[3]->message->parts[0]);
}

int blocks_make(rendering *r, sheaf_error *err)
{
	_cleanup_(maker_free) maker k = {.r = r, .by_id = MAP_INIT, .made = MAP_INIT};
	const sheaf_item *const *items = r->context->items;
	size_t count = r->context->count;
	int rc = list_begin(&k);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		k.item = items[i];
		look_ahead(items + i, count - i);
		rc = item_add(&k);
	}
	if (rc == 0)
		rc = moved_flush(&k);
	if (rc == 0 && k.message_count == 1)
		return err_set(err, SHEAF_CONTEXT, "there is nothing to send");
	if (rc == 0)
		rc = tools_make(&k);
	if (rc == 0)
		rc = list_finish(&k);
	return rc == 0 ? 0 : err_nomem(err);
}
