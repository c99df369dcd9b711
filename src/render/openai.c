/* What the two formats of OpenAI share; see openai.h. */
#include "render/openai.h"

#include "base/json.h"
#include "base/str.h"
#include "entry/members.h"

void openai_note(openai_writer *w, int32_t what, sheaf_str detail)
{
	int rc = note_add(w->r, what, w->at != NULL ? w->at->item : NULL, detail);
	if (w->rc == 0)
		w->rc = rc;
}

void openai_element(openai_writer *w)
{
	if (w->count++ != 0)
		buf_char(w->out, ',');
	buf_char(w->out, '{');
}

/* ---- The top of a body ------------------------------------------------------ */

bool openai_member(const openai_writer *w, const char *name)
{
	if (extra_has(w->r, name))
		return false;
	buf_lit(w->out, ",\"");
	buf_str(w->out, sheaf_str_of(name));
	buf_lit(w->out, "\":");
	return true;
}

/* Longer keys are refused; the end of one tells conversations apart as well as its beginning. */
#define CACHE_KEY_MAX 64
#define CACHE_KEY_KEPT 47

static void cache_key_write(buf *out, sheaf_str key)
{
	char kept[CACHE_KEY_KEPT + 1];
	if (key.len <= CACHE_KEY_MAX) {
		buf_json(out, key);
		return;
	}
	str_copy_cut(kept, sizeof(kept), key);
	buf_json(out, sheaf_str_of(kept));
	out->len -= out->len != 0; /* the closing quote */
	buf_format(out, "-%016llx\"", (unsigned long long)str_hash(key));
}

void openai_head(const openai_writer *w)
{
	const sheaf_render_options *o = &w->r->o;
	buf_lit(w->out, "{\"model\":");
	buf_json(w->out, o->model);
	if (o->stream && openai_member(w, "stream"))
		buf_lit(w->out, "true");
	if (o->cache_key.len != 0 && openai_member(w, "prompt_cache_key"))
		cache_key_write(w->out, o->cache_key);
}

sheaf_str openai_effort(const rendering *r)
{
	static const char *const levels[] = {"none", "minimal", "low", "medium", "high", "xhigh"};
	for (size_t i = 0; i < COUNT_OF(levels); i++) {
		if (str_is(r->o.thinking_level, levels[i]))
			return r->o.thinking_level;
	}
	return (sheaf_str){NULL, 0};
}

void openai_tools(const openai_writer *w, bool flat)
{
	buf *out = w->out;
	if (w->r->tool_count == 0 || !openai_member(w, "tools"))
		return;
	for (size_t i = 0; i < w->r->tool_count; i++) {
		const sheaf_tool *tool = &w->r->tools[i];
		buf_char(out, i == 0 ? '[' : ',');
		buf_lit(out, "{\"type\":\"function\",");
		if (!flat)
			buf_lit(out, "\"function\":{");
		buf_lit(out, "\"name\":");
		buf_json(out, tool->name);
		if (tool->description.len != 0) {
			buf_lit(out, ",\"description\":");
			buf_json(out, tool->description);
		}
		buf_lit(out, ",\"parameters\":");
		if (tool->schema.len != 0)
			buf_str(out, tool->schema);
		else
			buf_lit(out, "{\"type\":\"object\",\"properties\":{}}");
		/* Responses takes a schema as a strict one unless told otherwise. */
		if (flat)
			buf_lit(out, ",\"strict\":false}");
		else
			buf_lit(out, "}}");
	}
	buf_char(out, ']');
}

/* Text that is put together in the arena, whose size is known. */
typedef struct joined {
	char *ptr;
	size_t len;
} joined;

static void joined_add(joined *j, sheaf_str s)
{
	if (s.len != 0)
		memcpy(j->ptr + j->len, s.ptr, s.len);
	j->len += s.len;
}

static const sheaf_str paragraph = {"\n\n", 2};

sheaf_str openai_system(openai_writer *w)
{
	const sheaf_render_options *o = &w->r->o;
	size_t room = 0;
	for (size_t i = 0; i < o->system_count; i++)
		room += o->system[i].text.len + paragraph.len;
	if (room == 0)
		return (sheaf_str){NULL, 0};
	joined text = {arena_alloc(w->r->arena, room), 0};
	if (text.ptr == NULL) {
		w->rc = SHEAF_NOMEM;
		return (sheaf_str){NULL, 0};
	}
	for (int dynamic = 0; dynamic < 2; dynamic++) {
		for (size_t i = 0; i < o->system_count; i++) {
			const sheaf_system *piece = &o->system[i];
			if ((piece->dynamic != 0) != (dynamic != 0) || piece->text.len == 0)
				continue;
			if (text.len != 0)
				joined_add(&text, paragraph);
			joined_add(&text, piece->text);
		}
	}
	return text.len != 0 ? str_make(text.ptr, text.len) : (sheaf_str){NULL, 0};
}

/* ---- Parts ------------------------------------------------------------------- */

sheaf_str openai_join(openai_writer *w, const block *blocks, size_t count, sheaf_str between)
{
	size_t texts = 0, room = 0;
	sheaf_str last = SHEAF_STR("");
	for (size_t i = 0; i < count; i++) {
		if (blocks[i].kind != SHEAF_PART_TEXT)
			continue;
		texts++;
		last = blocks[i].text;
		room += last.len + between.len;
	}
	if (texts <= 1 || room == 0)
		return last;
	joined text = {arena_alloc(w->r->arena, room), 0};
	if (text.ptr == NULL) {
		w->rc = SHEAF_NOMEM;
		return last;
	}
	for (size_t i = 0, n = 0; i < count; i++) {
		if (blocks[i].kind != SHEAF_PART_TEXT)
			continue;
		if (n++ != 0)
			joined_add(&text, between);
		joined_add(&text, blocks[i].text);
	}
	return str_make(text.ptr, text.len);
}

void openai_source_write(buf *out, const block *b)
{
	if (str_is(b->part->source_type, "url")) {
		buf_json(out, b->part->data);
		return;
	}
	buf_lit(out, "\"data:");
	buf_str(out, b->part->media_type);
	buf_lit(out, ";base64,");
	buf_str(out, b->part->data);
	buf_char(out, '"');
}

sheaf_str openai_opaque_type(const block *b)
{
	sheaf_str raw = b->part != NULL ? members_trim(b->part->raw) : (sheaf_str){NULL, 0};
	if (raw.len < 2 || raw.ptr[0] != '{')
		return (sheaf_str){NULL, 0};
	sheaf_str type = json_member_bytes(raw, "type");
	if (type.len < 2 || type.ptr[0] != '"')
		return (sheaf_str){NULL, 0};
	return str_make(type.ptr + 1, type.len - 2);
}

/* ---- Members that came with a part ------------------------------------------ */

bool openai_ext_has(sheaf_str ext, const char *name)
{
	return ext.len != 0 && members_find(ext, name).ptr != NULL;
}

void openai_ext_only(buf *out, sheaf_str ext, const char *const *only)
{
	for (; *only != NULL; only++) {
		sheaf_str value = members_find(ext, *only);
		if (value.ptr == NULL)
			continue;
		buf_lit(out, ",\"");
		buf_str(out, sheaf_str_of(*only));
		buf_lit(out, "\":");
		buf_str(out, value);
	}
}
