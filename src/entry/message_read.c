/*
 * Reading a stored message: unescaped strings from the parsed value, verbatim
 * ones from the bytes beside it, in one walk over both.
 */
#include "entry/message.h"

#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "base/utf8.h"
#include "entry/members.h"

typedef struct reader {
	arena *a;
	int ok;          /* 0 after an allocation failed */
	bool borrows;    /* strings stay where the document has them */
	sheaf_str bytes; /* the message's text; lives as long as the arena */
} reader;

static sheaf_str take_value(reader *r, const json_val *v)
{
	sheaf_str s = json_string(v);
	return r->borrows ? s : arena_dup(r->a, s, &r->ok);
}

static sheaf_str get_string(reader *r, const json_val *object, const char *name)
{
	return take_value(r, json_get(object, name));
}

static uint64_t get_count(const json_val *object, const char *name)
{
	uint64_t value = 0;
	return json_u64(json_get(object, name), &value) ? value : 0;
}

/*
 * A value kept as `name` or, where it could not be embedded, as the string
 * `text_name`. `part` is the part's text.
 */
static sheaf_str get_verbatim(reader *r, const json_val *payload, sheaf_str part, const char *type,
                              const char *name, const char *text_name)
{
	if (json_get(payload, name) == NULL)
		return get_string(r, payload, text_name);
	sheaf_str payload_text = members_find(members_inside(part), type);
	return members_find(members_inside(payload_text), name);
}

static void read_text(reader *r, sheaf_part *part, const json_val *payload)
{
	/* Providers' own form has the text itself where ours has an object. */
	if (json_type_of(payload) == JSON_STRING) {
		part->text = take_value(r, payload);
		return;
	}
	part->text = get_string(r, payload, "content");
	part->signature = get_string(r, payload, "signature");
}

static void read_thinking(reader *r, sheaf_part *part, const json_val *payload)
{
	part->text = get_string(r, payload, "text");
	part->signature = get_string(r, payload, "signature");
	part->redacted = json_bool(json_get(payload, "redacted"));
}

static void read_source(reader *r, sheaf_part *part, const json_val *payload)
{
	const json_val *source = json_get(payload, "source");
	part->source_type = get_string(r, source, "type");
	part->media_type = get_string(r, source, "media_type");
	part->data = get_string(r, source, "data");
}

static void read_tool_use(reader *r, sheaf_part *part, const json_val *payload)
{
	part->id = get_string(r, payload, "id");
	part->name = get_string(r, payload, "name");
	part->signature = get_string(r, payload, "signature");
	part->input = get_verbatim(r, payload, part->json, "tool_use", "input", "input_text");
}

/* Its content, if it is made of parts, is read by the caller. */
static void read_tool_result(reader *r, sheaf_part *part, const json_val *payload)
{
	const json_val *is_error = json_get(payload, "is_error");
	part->tool_use_id = get_string(r, payload, "tool_use_id");
	part->tool_name = get_string(r, payload, "tool_name");
	part->text = get_string(r, payload, "content");
	part->is_error = json_is_bool(is_error) ? json_bool(is_error) : -1;
}

static void read_opaque(reader *r, sheaf_part *part, const json_val *payload)
{
	part->provider = get_string(r, payload, "provider");
	part->raw = get_verbatim(r, payload, part->json, "opaque", "raw", "raw_text");
}

static const struct part_kind {
	const char *type;
	int32_t kind;
	void (*read)(reader *r, sheaf_part *part, const json_val *payload);
} part_kinds[] = {
	{"text", SHEAF_PART_TEXT, read_text},
	{"tool_use", SHEAF_PART_TOOL_USE, read_tool_use},
	{"tool_result", SHEAF_PART_TOOL_RESULT, read_tool_result},
	{"thinking", SHEAF_PART_THINKING, read_thinking},
	{"image", SHEAF_PART_IMAGE, read_source},
	{"document", SHEAF_PART_DOCUMENT, read_source},
	{"opaque", SHEAF_PART_OPAQUE, read_opaque},
};

/* Fills a zeroed part; what it cannot make sense of stays OTHER. */
static void read_part(reader *r, sheaf_part *part, const json_val *v, sheaf_str json)
{
	part->json = json;
	sheaf_str type = json_string(json_get(v, "type"));
	for (size_t i = 0; type.ptr != NULL && i < COUNT_OF(part_kinds); i++) {
		if (!str_is(type, part_kinds[i].type))
			continue;
		const json_val *payload = json_get(v, part_kinds[i].type);
		json_type is = json_type_of(payload);
		if (is != JSON_OBJECT &&
		    (is != JSON_STRING || part_kinds[i].kind != SHEAF_PART_TEXT))
			return;
		part->kind = part_kinds[i].kind;
		part_kinds[i].read(r, part, payload);
		if (json_type_of(json_get(payload, "ext")) == JSON_OBJECT)
			part->ext = get_verbatim(r, payload, json, part_kinds[i].type, "ext", "");
		return;
	}
}

/* Room for `count` parts and the pointers to them; NULL when out of memory. */
static const sheaf_part **parts_alloc(reader *r, size_t count, sheaf_part **parts)
{
	if (count > SIZE_MAX / 2 / sizeof(**parts))
		return NULL;
	const sheaf_part **list = arena_alloc(r->a, count * sizeof(*list));
	*parts = arena_zalloc(r->a, count * sizeof(**parts));
	return *parts != NULL ? list : NULL;
}

/* The parts of a tool result. Results do not nest: one in a result stays OTHER. */
static void read_result_parts(reader *r, sheaf_part *result, const json_val *content,
                              sheaf_str text)
{
	sheaf_part *parts;
	const sheaf_part **list = parts_alloc(r, json_count(content), &parts);
	if (list == NULL) {
		r->ok = 0;
		return;
	}
	size_t at = 0, count = 0;
	sheaf_str inside = members_inside(text), json = {NULL, 0};
	for (json_iter it = json_each(content); json_next(&it); count++) {
		list[count] = &parts[count];
		if (!elements_next(inside, &at, &json))
			json = (sheaf_str){NULL, 0};
		read_part(r, &parts[count], it.value, json);
		if (parts[count].kind == SHEAF_PART_TOOL_RESULT)
			parts[count] = (sheaf_part){.kind = SHEAF_PART_OTHER, .json = json};
	}
	result->parts = list;
	result->part_count = count;
}

static void read_result_content(reader *r, sheaf_part *part, const json_val *v)
{
	const json_val *content = json_get(json_get(v, "tool_result"), "content");
	if (json_type_of(content) != JSON_ARRAY || json_count(content) == 0)
		return;
	sheaf_str payload = members_find(members_inside(part->json), "tool_result");
	read_result_parts(r, part, content, members_find(members_inside(payload), "content"));
}

/* Most messages end with their content and have one part of it: then the text, which may be long,
 * need not be walked through again to know where it ends. */
static void read_parts(reader *r, sheaf_message_view *view, const json_val *content, bool last)
{
	bool is_string = json_type_of(content) == JSON_STRING;
	size_t count = is_string ? 1 : json_count(content);
	sheaf_part *parts;
	if (count == 0 || (!is_string && json_type_of(content) != JSON_ARRAY))
		return;
	const sheaf_part **list = parts_alloc(r, count, &parts);
	if (list == NULL) {
		r->ok = 0;
		return;
	}
	view->parts = list;
	view->part_count = count;
	sheaf_str members = members_inside(members_trim(r->bytes));
	sheaf_str text = last ? members_last(members, "content") : members_find(members, "content");
	if (is_string) {
		list[0] = parts;
		*parts = (sheaf_part){.kind = SHEAF_PART_TEXT, .json = text};
		parts->text = take_value(r, content);
		return;
	}
	size_t at = 0, i = 0;
	sheaf_str inside = members_inside(text), json = inside;
	for (json_iter it = json_each(content); json_next(&it); i++) {
		list[i] = &parts[i];
		if (count != 1 && !elements_next(inside, &at, &json))
			json = (sheaf_str){NULL, 0};
		read_part(r, &parts[i], it.value, json);
		if (parts[i].kind == SHEAF_PART_TOOL_RESULT)
			read_result_content(r, &parts[i], it.value);
	}
}

static const sheaf_usage *read_usage(reader *r, const json_val *v)
{
	if (json_type_of(v) != JSON_OBJECT)
		return NULL;
	sheaf_usage *usage = arena_alloc(r->a, sizeof(*usage));
	if (usage == NULL) {
		r->ok = 0;
		return NULL;
	}
	message_usage(usage, v);
	return usage;
}

void message_usage(sheaf_usage *out, const json_val *v)
{
	*out = (sheaf_usage){
		.input = get_count(v, "input"),
		.cache_read = get_count(v, "cache_read"),
		.cache_write_5m = get_count(v, "cache_write_5m"),
		.cache_write_1h = get_count(v, "cache_write_1h"),
		.output = get_count(v, "output"),
		.reasoning = get_count(v, "reasoning"),
	};
}

static int message_fill(sheaf_message_view **out, const json_val *v, reader r, sheaf_error *err)
{
	arena *a = r.a;
	if (json_type_of(v) != JSON_OBJECT)
		return err_set(err, SHEAF_FORMAT, "a message is not an object");
	sheaf_message_view *view = arena_zalloc(a, sizeof(*view));
	if (view == NULL)
		return err_nomem(err);
	const json_val *content = NULL, *usage = NULL, *last = NULL;
	for (json_iter it = json_each(v); json_next(&it); last = it.value) {
		sheaf_str name = json_string(it.key);
		sheaf_str *to = str_is(name, "role")          ? &view->role
		                : str_is(name, "provider")    ? &view->provider
		                : str_is(name, "model")       ? &view->model
		                : str_is(name, "response_id") ? &view->response_id
		                : str_is(name, "stop_reason") ? &view->stop_reason
		                                              : NULL;
		if (to != NULL && to->ptr == NULL)
			*to = take_value(&r, it.value);
		else if (content == NULL && str_is(name, "content"))
			content = it.value;
		else if (usage == NULL && str_is(name, "usage"))
			usage = it.value;
	}
	view->json = r.bytes;
	view->usage = read_usage(&r, usage);
	read_parts(&r, view, content, content == last);
	if (!r.ok)
		return err_nomem(err);
	*out = view;
	return 0;
}

int message_read_kept(sheaf_message_view **out, const json_val *v, sheaf_str bytes, arena *a,
                      sheaf_error *err)
{
	return message_fill(out, v, (reader){.a = a, .ok = 1, .bytes = bytes}, err);
}

int message_look(sheaf_message_view **out, const json_val *v, sheaf_str bytes, arena *a,
                 sheaf_error *err)
{
	return message_fill(out, v, (reader){.a = a, .ok = 1, .borrows = true, .bytes = bytes},
	                    err);
}

int message_read(sheaf_message_view **out, const json_val *v, sheaf_str bytes, arena *a,
                 sheaf_error *err)
{
	int ok = 1;
	sheaf_str kept = arena_dup(a, bytes, &ok);
	return ok ? message_read_kept(out, v, kept, a, err) : err_nomem(err);
}

/* ---- The text of a message ------------------------------------------------ */

typedef struct sink {
	char *out;
	size_t room;
	size_t used;
	size_t len; /* of all, also what did not fit */
} sink;

static void sink_add(sink *to, sheaf_str s)
{
	/* Once something was cut nothing may follow it. */
	if (to->used == to->len && s.len != 0) {
		sheaf_str fits = utf8_cut(s, to->room - to->used);
		if (fits.len != 0)
			memcpy(to->out + to->used, fits.ptr, fits.len);
		to->used += fits.len;
	}
	to->len += s.len;
}

size_t sheaf_message_view_text(const sheaf_message_view *message, char *out, size_t room)
{
	sink to = {out, room != 0 ? room - 1 : 0, 0, 0};
	size_t texts = 0;
	for (size_t i = 0; message != NULL && i < message->part_count; i++) {
		const sheaf_part *part = message->parts[i];
		if (part->kind != SHEAF_PART_TEXT)
			continue;
		if (texts++ != 0)
			sink_add(&to, SHEAF_STR("\n"));
		sink_add(&to, part->text);
	}
	if (room != 0)
		out[to.used] = '\0';
	return to.len;
}
