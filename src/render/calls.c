/* Calls as a format takes them: unique ids, plain names, inputs that are objects. */
#include "render/blocks.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "entry/members.h"

#define NONE SIZE_MAX
#define ID_MADE_LEN 21u /* "call_" and 16 digits */

const bool id_chars[256] = {
	['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true,
	['_'] = true,         ['-'] = true,
};

static int name_of(maker *k, sheaf_str id, size_t *out)
{
	uint64_t at = k->name_count;
	void *names = k->names;
	int rc = mem_grow(&names, &k->name_room, k->name_count + 1, sizeof(*k->names));
	if (rc != 0)
		return rc;
	k->names = names;
	rc = map_get_or_set(&k->by_id, id, &at);
	if (rc != 0)
		return rc;
	if (at == k->name_count)
		k->names[k->name_count++] = (call_name){0, NONE, NONE};
	*out = (size_t)at;
	return 0;
}

static bool id_is_good(sheaf_str id)
{
	if (id.len == 0 || id.len > CALL_ID_MAX)
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

/*
 * An id stays if it may and no call before has it: then it is the first of its
 * name, and none that was made up is the same.
 */
static int id_give(maker *k, sheaf_str id, uint64_t times, sheaf_str *out)
{
	uint64_t salt = times, at;
	*out = id;
	if (times == 1 && id_is_good(id) && !map_get(&k->made, id, &at))
		return 0;
	do {
		*out = id_made(k, id, salt);
		if (out->ptr == NULL)
			return SHEAF_NOMEM;
		salt += UINT64_C(1) << 32;
	} while (map_get(&k->made, *out, &at) || map_get(&k->by_id, *out, &at));
	int rc = map_set(&k->made, *out, 1);
	return rc != 0 ? rc : note_add(k->r, SHEAF_NOTE_RENAMED, k->item, id);
}

static int tool_name(maker *k, sheaf_str name, sheaf_str *out)
{
	const format_rules *rules = k->r->rules;
	bool good = name.len != 0 && name.len <= TOOL_NAME_MAX &&
	            (!rules->name_letter || name_may_begin(name.ptr[0]));
	for (size_t i = 0; good && i < name.len; i++)
		good = id_char(name.ptr[i]);
	*out = name;
	if (good)
		return 0;
	bool lead = name.len == 0 || (rules->name_letter && !name_may_begin(name.ptr[0]));
	size_t len = name.len + lead < TOOL_NAME_MAX ? name.len + lead : TOOL_NAME_MAX;
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

/* Whether JSON that was kept as text can stand in a body: no key twice, no half of a character. */
static int input_check(sheaf_str input, bool *good)
{
	_cleanup_(buf_free) buf tight = BUF_INIT(SIZE_MAX / 2);
	const char *end = input.ptr + input.len;
	for (const char *p = input.ptr; p < end;) {
		const char *from = p;
		if (*p == '"') {
			const char *close = json_string_end(p + 1, end);
			p = close != NULL ? close + 1 : end;
		} else {
			p++;
		}
		/* Line breaks between tokens are nothing to mind. */
		if (*from != ' ' && *from != '\t' && *from != '\n' && *from != '\r')
			buf_add(&tight, from, (size_t)(p - from));
	}
	int rc = tight.status == 0 ? json_check(buf_view(&tight), JSON_NONE, NULL) : SHEAF_NOMEM;
	*good = rc == 0;
	return rc == SHEAF_NOMEM ? rc : 0;
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
		if (is_json && (rc = input_check(input, &is_json)) != 0)
			return rc;
		is_object = is_json && json_type_of(json_root(doc)) == JSON_OBJECT;
	}
	if (is_object)
		return 0;
	int rc = input_wrap(k, input, is_json, out);
	return rc != 0 ? rc : note_add(k->r, SHEAF_NOTE_INPUT, k->item, part->id);
}

int call_add(maker *k, const sheaf_part *part, bool own, sheaf_str ext)
{
	size_t at;
	block *b = block_new(k, SHEAF_PART_TOOL_USE, part);
	if (b == NULL)
		return SHEAF_NOMEM;
	b->ext = ext;
	if (own)
		b->signature = part->signature;
	int rc = name_of(k, part->id, &at);
	if (rc == 0)
		rc = id_give(k, part->id, ++k->names[at].times, &b->id);
	if (rc == 0)
		rc = tool_name(k, part->name, &b->name);
	if (rc == 0)
		rc = input_make(k, part, &b->input);
	void *calls = k->calls;
	if (rc == 0)
		rc = mem_grow(&calls, &k->call_room, k->call_count + 1, sizeof(*k->calls));
	if (rc != 0)
		return rc;
	k->calls = calls;
	k->calls[k->call_count] = (call_at){k->block_count - 1, at, NONE};
	call_name *name = &k->names[at];
	if (name->open == NONE)
		name->open = k->call_count;
	else
		k->calls[name->last].next = k->call_count;
	name->last = k->call_count++;
	return 0;
}

/* Tools mostly answer in the order they were called: then no id is looked up. */
static call_name *name_awaited(maker *k, sheaf_str id)
{
	if (k->awaited >= k->call_count)
		return NULL;
	const call_at *c = &k->calls[k->awaited];
	return str_eq(k->blocks[c->block].part->id, id) ? &k->names[c->name] : NULL;
}

bool call_answer(maker *k, block *result, sheaf_str id)
{
	call_name *name = name_awaited(k, id);
	uint64_t at;
	if (name == NULL && map_get(&k->by_id, id, &at))
		name = &k->names[at];
	if (name == NULL || name->open == NONE)
		return false;
	const call_at *c = &k->calls[name->open];
	result->id = k->blocks[c->block].id;
	result->name = k->blocks[c->block].name;
	k->awaited = name->open + 1;
	name->open = c->next;
	return true;
}
