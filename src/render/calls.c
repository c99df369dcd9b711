/* Calls as a format takes them: unique ids, plain names, inputs that are objects. */
#include "render/blocks.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#define NONE SIZE_MAX
#define ID_MADE_LEN 21u /* "call_" and 16 digits */

static int name_of(maker *k, sheaf_str id, call_name **out)
{
	uint64_t at;
	if (!map_get(&k->by_id, id, &at)) {
		void *names = k->names;
		int rc = mem_grow(&names, &k->name_room, k->name_count + 1, sizeof(*k->names));
		if (rc != 0)
			return rc;
		k->names = names;
		at = k->name_count;
		rc = map_set(&k->by_id, id, at);
		if (rc != 0)
			return rc;
		k->names[k->name_count++] = (call_name){0, NONE, NONE};
	}
	*out = &k->names[at];
	return 0;
}

static bool id_is_good(const maker *k, sheaf_str id)
{
	if (id.len == 0 || id.len > k->r->rules->id_max)
		return false;
	for (size_t i = 0; i < id.len; i++) {
		if (!id_char(id.ptr[i]))
			return false;
	}
	return true;
}

/* From the id and how often it came before, so that what follows changes nothing. */
static sheaf_str id_made(maker *k, sheaf_str id, uint64_t salt)
{
	static const char hex[] = "0123456789abcdef";
	char *text = arena_alloc(k->r->arena, ID_MADE_LEN + 1);
	if (text == NULL)
		return (sheaf_str){NULL, 0};
	uint64_t h = str_hash(id) + salt * UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
	h ^= h >> 31;
	memcpy(text, "call_", 5);
	for (unsigned i = 0; i < 16; i++)
		text[5 + i] = hex[h >> (60 - 4 * i) & 15];
	text[ID_MADE_LEN] = '\0';
	return str_make(text, ID_MADE_LEN);
}

static int id_give(maker *k, sheaf_str id, uint64_t times, sheaf_str *out)
{
	uint64_t salt = times;
	*out = id;
	while (!id_is_good(k, *out) || map_get(&k->used, *out, &(uint64_t){0})) {
		*out = id_made(k, id, salt);
		if (out->ptr == NULL)
			return SHEAF_NOMEM;
		salt += UINT64_C(1) << 32;
	}
	int rc = map_set(&k->used, *out, 1);
	if (rc != 0 || out->ptr == id.ptr)
		return rc;
	return note_add(k->r, SHEAF_NOTE_RENAMED, k->item, id);
}

static int tool_name(maker *k, sheaf_str name, sheaf_str *out)
{
	const format_rules *rules = k->r->rules;
	bool good = name.len != 0 && name.len <= rules->name_max &&
	            (!rules->name_letter || name_may_begin(name.ptr[0]));
	for (size_t i = 0; good && i < name.len; i++)
		good = id_char(name.ptr[i]);
	*out = name;
	if (good)
		return 0;
	bool lead = name.len == 0 || (rules->name_letter && !name_may_begin(name.ptr[0]));
	size_t len = name.len + lead < rules->name_max ? name.len + lead : rules->name_max;
	char *text = arena_alloc(k->r->arena, len + 1);
	if (text == NULL)
		return SHEAF_NOMEM;
	text[0] = '_';
	for (size_t i = lead; i < len; i++)
		text[i] = id_char(name.ptr[i - lead]) ? name.ptr[i - lead] : '_';
	text[len] = '\0';
	*out = str_make(text, len);
	return note_add(k->r, SHEAF_NOTE_RENAMED, k->item, name);
}

/* Whether the text lies in the part's own JSON: then it was stored as a value, not as a string. */
static bool is_embedded(const sheaf_part *part, sheaf_str text)
{
	uintptr_t at = (uintptr_t)text.ptr, json = (uintptr_t)part->json.ptr;
	return part->json.ptr != NULL && at >= json && at < json + part->json.len;
}

static int input_wrap(maker *k, sheaf_str input, bool is_json, sheaf_str *out)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX / 2);
	int ok = 1;
	if (is_json) {
		buf_lit(&text, "{\"input\":");
		buf_str(&text, input);
	} else {
		buf_lit(&text, "{\"input_text\":");
		buf_json(&text, input);
	}
	buf_char(&text, '}');
	if (text.status != 0)
		return SHEAF_NOMEM;
	*out = arena_dup(k->r->arena, buf_view(&text), &ok);
	return ok ? 0 : SHEAF_NOMEM;
}

static int input_make(maker *k, const sheaf_part *part, sheaf_str *out)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	sheaf_str input = part->input;
	bool is_json = true, is_object;

	*out = input;
	if (input.len == 0) {
		*out = SHEAF_STR("{}");
		return 0;
	}
	if (is_embedded(part, input)) {
		is_object = input.ptr[0] == '{';
	} else {
		int rc = json_parse(&doc, input, NULL);
		if (rc == SHEAF_NOMEM)
			return rc;
		is_json = rc == 0;
		is_object = is_json && json_type_of(json_root(doc)) == JSON_OBJECT;
	}
	if (is_object || !k->r->rules->input_object)
		return 0;
	int rc = input_wrap(k, input, is_json, out);
	return rc != 0 ? rc : note_add(k->r, SHEAF_NOTE_INPUT, k->item, part->id);
}

int call_add(maker *k, const sheaf_part *part, bool own, sheaf_str ext)
{
	call_name *name;
	block b = {.kind = SHEAF_PART_TOOL_USE, .part = part, .ext = ext};
	if (own)
		b.signature = part->signature;
	int rc = name_of(k, part->id, &name);
	if (rc == 0)
		rc = id_give(k, part->id, ++name->times, &b.id);
	if (rc == 0)
		rc = tool_name(k, part->name, &b.name);
	if (rc == 0)
		rc = input_make(k, part, &b.input);
	void *calls = k->calls;
	if (rc == 0)
		rc = mem_grow(&calls, &k->call_room, k->call_count + 1, sizeof(*k->calls));
	if (rc != 0)
		return rc;
	k->calls = calls;
	k->calls[k->call_count] = (call_at){k->block_count, NONE};
	if (name->open == NONE)
		name->open = k->call_count;
	else
		k->calls[name->last].next = k->call_count;
	name->last = k->call_count++;
	return block_add(k, &b);
}

int call_answer(maker *k, block *result, sheaf_str id, bool *found)
{
	call_name *name;
	int rc = name_of(k, id, &name);
	*found = rc == 0 && name->open != NONE;
	if (!*found)
		return rc;
	const block *call = &k->blocks[k->calls[name->open].block];
	result->id = call->id;
	result->name = call->name;
	name->open = k->calls[name->open].next;
	return 0;
}
