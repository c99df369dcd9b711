/* Checks a request body: what is the same for all formats, and which checker serves which. */
#include "render/check.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"

/* ---- Saying what is wrong -------------------------------------------------- */

static void checker_done(checker *c)
{
	mem_free(c->found);
	map_free(&c->seen);
	map_free(&c->items);
}

void check_say(checker *c, const char *rule, const char *text, const char *where, ...)
{
	char place[256];
	va_list args;
	if (c->status != 0 || c->count == CHECK_VIOLATIONS_MAX)
		return;
	va_start(args, where);
	int len = vsnprintf(place, sizeof(place), where, args);
	va_end(args);
	size_t used = len < 0 ? 0 : (size_t)len < sizeof(place) ? (size_t)len : sizeof(place) - 1;

	void *found = c->found;
	int ok = 1;
	sheaf_str copy = arena_dup(c->arena, str_make(place, used), &ok);
	if (!ok || mem_grow(&found, &c->room, c->count + 1, sizeof(*c->found)) != 0) {
		c->status = SHEAF_NOMEM;
		return;
	}
	c->found = found;
	c->found[c->count++] = (sheaf_violation){copy, sheaf_str_of(rule), sheaf_str_of(text)};
}

bool check_first(checker *c, map *m, sheaf_str key, uint64_t value)
{
	uint64_t before;
	if (map_get(m, key, &before))
		return false;
	if (map_set(m, key, value) != 0)
		c->status = SHEAF_NOMEM;
	return true;
}

/* ---- Looking at values ----------------------------------------------------- */

static bool is_word_char(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
	       ch == '_' || ch == '-';
}

bool check_is_word(sheaf_str s, size_t max)
{
	if (s.len == 0 || s.len > max)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (!is_word_char(s.ptr[i]))
			return false;
	}
	return true;
}

/* The bytes of a white space character at `s`, 0 if there is none; Unicode's, as servers strip. */
static size_t space_size(const unsigned char *s, size_t len)
{
	if (s[0] == ' ' || (s[0] >= 0x09 && s[0] <= 0x0d) || (s[0] >= 0x1c && s[0] <= 0x1f))
		return 1;
	if (len >= 2 && s[0] == 0xc2 && (s[1] == 0x85 || s[1] == 0xa0))
		return 2;
	if (len < 3)
		return 0;
	bool wide = (s[0] == 0xe1 && s[1] == 0x9a && s[2] == 0x80) ||
	            (s[0] == 0xe2 && s[1] == 0x80 &&
	             ((s[2] >= 0x80 && s[2] <= 0x8a) || s[2] == 0xa8 || s[2] == 0xa9 ||
	              s[2] == 0xaf)) ||
	            (s[0] == 0xe2 && s[1] == 0x81 && s[2] == 0x9f) ||
	            (s[0] == 0xe3 && s[1] == 0x80 && s[2] == 0x80);
	return wide ? 3 : 0;
}

bool check_is_blank(sheaf_str s)
{
	for (size_t i = 0; i < s.len;) {
		size_t size = space_size((const unsigned char *)s.ptr + i, s.len - i);
		if (size == 0)
			return false;
		i += size;
	}
	return true;
}

bool check_is_base64(sheaf_str s)
{
	size_t len = s.len;
	for (size_t pad = 0; pad < 2 && len > 0 && s.ptr[len - 1] == '='; pad++)
		len--;
	if (len == 0 || s.len % 4 != 0)
		return false;
	for (size_t i = 0; i < len; i++) {
		char ch = s.ptr[i];
		if ((!is_word_char(ch) || ch == '_' || ch == '-') && ch != '+' && ch != '/')
			return false;
	}
	return true;
}

bool check_is_url(sheaf_str s)
{
	return (str_starts(s, "https://") && s.len > 8) || (str_starts(s, "http://") && s.len > 7);
}

bool check_is_data_url(sheaf_str s)
{
	const char *comma = s.len != 0 ? memchr(s.ptr, ',', s.len) : NULL;
	if (!str_starts(s, "data:") || comma == NULL)
		return false;
	sheaf_str head = str_make(s.ptr + 5, (size_t)(comma - s.ptr) - 5);
	const size_t tail = sizeof(";base64") - 1;
	return head.len > tail && memcmp(head.ptr + head.len - tail, ";base64", tail) == 0 &&
	       memchr(head.ptr, '/', head.len) != NULL &&
	       check_is_base64(str_make(comma + 1, s.len - (size_t)(comma + 1 - s.ptr)));
}

bool check_in(sheaf_str s, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (str_is(s, words[i]))
			return true;
	}
	return false;
}

/* ---- The same for all ------------------------------------------------------ */

void check_model(checker *c, const json_val *body)
{
	if (check_is_blank(json_string(json_get(body, "model"))))
		check_say(c, "model", "`model` must name a model", "model");
}

/* Few members are compared with each other, many go through a map. */
#define FEW_MEMBERS 12

static bool has_key_twice(checker *c, const json_val *object)
{
	sheaf_str keys[FEW_MEMBERS];
	size_t count = 0, members = json_count(object);
	_cleanup_(map_free) map many = MAP_INIT;
	for (json_iter it = json_each(object); json_next(&it);) {
		sheaf_str key = json_string(it.key);
		if (members > FEW_MEMBERS) {
			if (!check_first(c, &many, key, 0))
				return true;
			continue;
		}
		for (size_t i = 0; i < count; i++) {
			if (str_eq(keys[i], key))
				return true;
		}
		keys[count++] = key;
	}
	return false;
}

/* One level of the walk over the whole body. */
typedef struct level {
	json_iter it;
	size_t index;
} level;

static void place_of(const level *levels, size_t depth, char *out, size_t room)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < depth && used < room; i++) {
		int len;
		if (levels[i].it.object)
			len = snprintf(out + used, room - used, "%s%.60s", i == 0 ? "" : ".",
			               json_string(levels[i].it.key).ptr);
		else
			len = snprintf(out + used, room - used, "[%zu]", levels[i].index);
		used += len > 0 ? (size_t)len : 0;
	}
}

void check_keys(checker *c, const json_val *body)
{
	level levels[SHEAF_DEPTH_MAX];
	char place[200];
	size_t depth = 0;
	const json_val *v = body;
	for (;;) {
		json_type type = json_type_of(v);
		if (type == JSON_OBJECT && has_key_twice(c, v)) {
			place_of(levels, depth, place, sizeof(place));
			check_say(c, "key_twice", "a key occurs twice in one object", "%s", place);
		}
		if (type == JSON_OBJECT || type == JSON_ARRAY) {
			if (depth == SHEAF_DEPTH_MAX) {
				place_of(levels, depth, place, sizeof(place));
				check_say(c, "depth", "the body is nested too deep", "%s", place);
				return;
			}
			levels[depth++] = (level){json_each(v), SIZE_MAX};
		}
		while (depth > 0 && !json_next(&levels[depth - 1].it))
			depth--;
		if (depth == 0)
			return;
		levels[depth - 1].index++;
		v = levels[depth - 1].it.value;
	}
}

/* ---- The call -------------------------------------------------------------- */

typedef struct violations {
	sheaf_violations list;
	arena *arena;
} violations;

static int violations_make(violations *v, const checker *c)
{
	const sheaf_violation **items = arena_alloc(v->arena, (c->count + 1) * sizeof(*items));
	sheaf_violation *copies = arena_alloc(v->arena, (c->count + 1) * sizeof(*copies));
	if (items == NULL || copies == NULL)
		return SHEAF_NOMEM;
	for (size_t i = 0; i < c->count; i++) {
		copies[i] = c->found[i];
		items[i] = &copies[i];
	}
	v->list.count = c->count;
	v->list.items = items;
	return 0;
}

int sheaf_request_check(sheaf_violations **out, int32_t format, sheaf_str body, sheaf_error *err)
{
	static void (*const checks[])(checker *, const json_val *) = {
		[SHEAF_FORMAT_ANTHROPIC] = check_anthropic,
		[SHEAF_FORMAT_OPENAI_CHAT] = check_openai_chat,
		[SHEAF_FORMAT_OPENAI_RESPONSES] = check_openai_responses,
		[SHEAF_FORMAT_GEMINI] = check_gemini,
	};
	if (out == NULL || format <= 0 || (size_t)format >= COUNT_OF(checks))
		return err_set(err, SHEAF_INVALID, "there is no such format");

	_cleanup_(json_freep) json_doc *doc = NULL;
	int rc = json_parse(&doc, body, err);
	if (rc != 0)
		return rc;
	_cleanup_(arena_freep) arena *a = arena_new();
	violations *v = a != NULL ? arena_zalloc(a, sizeof(*v)) : NULL;
	if (v == NULL)
		return err_nomem(err);
	v->arena = a;
	_cleanup_(checker_done) checker c = {.arena = a, .seen = MAP_INIT, .items = MAP_INIT};
	if (json_type_of(json_root(doc)) != JSON_OBJECT) {
		check_say(&c, "body", "the body must be an object", "%s", "");
	} else {
		check_keys(&c, json_root(doc));
		checks[format](&c, json_root(doc));
	}
	rc = c.status != 0 ? c.status : violations_make(v, &c);
	if (rc != 0)
		return err_nomem(err);
	a = NULL;
	*out = &v->list;
	return 0;
}

void sheaf_violations_free(const sheaf_violations *list)
{
	if (list != NULL)
		arena_free(((const violations *)(const void *)list)->arena);
}
