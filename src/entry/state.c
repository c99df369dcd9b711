/* Scoped state: deltas on records, and the set of values they add up to. */
#include "entry/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "entry/check.h"
#include "entry/members.h"

#define NAME "state_delta"
#define MAGIC UINT32_C(0x74736673) /* "sfst" */

static const struct prefix {
	const char *text;
	state_scope scope;
} prefixes[] = {{"user:", STATE_USER}, {"app:", STATE_APP}, {"temp:", STATE_TEMP}};

state_scope state_scope_of(sheaf_str key, sheaf_str *rest)
{
	state_scope scope = STATE_SESSION;
	size_t skip = 0;
	for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
		if (!str_starts(key, prefixes[i].text))
			continue;
		scope = prefixes[i].scope;
		skip = strlen(prefixes[i].text);
	}
	if (rest != NULL)
		*rest = str_make(key.ptr + skip, key.len - skip);
	return scope;
}

const char *state_prefix(state_scope scope)
{
	for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
		if (prefixes[i].scope == scope)
			return prefixes[i].text;
	}
	return "";
}

int state_key_check(sheaf_str key, sheaf_error *err)
{
	sheaf_str rest = {NULL, 0};
	if (key.len != 0)
		(void)state_scope_of(key, &rest);
	if (rest.len == 0)
		return err_set(err, SHEAF_INVALID, "a state key is empty");
	if (key.len > SHEAF_STATE_KEY_BYTES_MAX)
		return err_set(err, SHEAF_LIMIT, "a state key is longer than %u bytes",
		               SHEAF_STATE_KEY_BYTES_MAX);
	if (!check_plain(key))
		return err_set(err, SHEAF_INVALID, "a state key is not plain UTF-8 text");
	return 0;
}

/* ---- Deltas --------------------------------------------------------------- */

static bool is_name(sheaf_str key)
{
	return str_is(key, NAME);
}

sheaf_str state_delta_of(sheaf_str body)
{
	static const char word[] = "\"" NAME "\"";
	const char *end = body.ptr + body.len;
	/* From quote to quote: inside a string they are escaped, so few are met. */
	for (const char *at = body.ptr; (at = memchr(at, '"', (size_t)(end - at))) != NULL; at++) {
		if ((size_t)(end - at) < sizeof(word) - 1)
			break;
		if (at[1] != 's' || memcmp(at, word, sizeof(word) - 1) != 0)
			continue;
		sheaf_str key, value;
		for (size_t i = 0; members_next(body, &i, &key, &value);) {
			if (is_name(key))
				return value;
		}
		break;
	}
	return str_make(NULL, 0);
}

static bool is_null(sheaf_str value)
{
	return str_is(value, "null");
}

/* The next member with its key unescaped: 1, 0, SHEAF_NOMEM. */
static int next_change(sheaf_str inside, size_t *at, arena *a, state_change *out)
{
	sheaf_str key, value;
	if (!members_next(inside, at, &key, &value))
		return 0;
	const char *quote = key.ptr - 1;
	int rc = check_unescape(&out->key, str_make(quote, key.len + 2), a);
	if (rc != 0)
		return rc == SHEAF_NOMEM ? rc : 0;
	out->member = str_make(quote, (size_t)(value.ptr + value.len - quote));
	out->value = is_null(value) ? str_make(NULL, 0) : value;
	out->scope = state_scope_of(out->key, &out->rest);
	return 1;
}

static sheaf_str inside_object(sheaf_str delta)
{
	return delta.len != 0 && delta.ptr[0] == '{' ? members_inside(delta) : str_make("", 0);
}

int state_delta_next(sheaf_str delta, size_t *at, arena *a, state_change *out)
{
	sheaf_str inside = inside_object(delta);
	for (;;) {
		int rc = next_change(inside, at, a, out);
		if (rc <= 0)
			return rc;
		if (state_key_check(out->key, NULL) == 0 &&
		    out->value.len <= SHEAF_STATE_VALUE_BYTES_MAX)
			return 1;
	}
}

int state_delta_check(sheaf_str delta, sheaf_error *err)
{
	if (delta.len == 0 || delta.ptr[0] != '{')
		return err_set(err, SHEAF_INVALID, NAME " is not an object");
	_cleanup_(arena_freep) arena *a = arena_new();
	if (a == NULL)
		return err_nomem(err);
	sheaf_str inside = inside_object(delta);
	state_change c;
	int rc;
	for (size_t at = 0; (rc = next_change(inside, &at, a, &c)) == 1;) {
		rc = state_key_check(c.key, err);
		if (rc != 0)
			return rc;
		if (c.value.len > SHEAF_STATE_VALUE_BYTES_MAX)
			return err_set(err, SHEAF_LIMIT, "a state value has more than %zu bytes",
			               SHEAF_STATE_VALUE_BYTES_MAX);
	}
	return rc != 0 ? err_nomem(err) : 0;
}

static void add_member(buf *out, sheaf_str member)
{
	if (out->len != 0 && out->ptr[out->len - 1] != '{')
		buf_char(out, ',');
	buf_str(out, member);
}

int state_delta_strip(sheaf_str delta, buf *kept, buf *temp, sheaf_error *err)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	if (a == NULL)
		return err_nomem(err);
	sheaf_str inside = inside_object(delta);
	state_change c;
	int rc;
	buf_char(kept, '{');
	for (size_t at = 0; (rc = next_change(inside, &at, a, &c)) == 1;)
		add_member(c.scope == STATE_TEMP ? temp : kept, c.member);
	buf_char(kept, '}');
	if (kept->len == 2)
		buf_reset(kept);
	if (rc != 0)
		return err_nomem(err);
	rc = buf_status(kept, err);
	return rc == 0 ? buf_status(temp, err) : rc;
}

void state_members_without(buf *out, sheaf_str members)
{
	sheaf_str key, value;
	for (size_t at = 0; members_next(members, &at, &key, &value);) {
		const char *quote = key.ptr - 1;
		if (!is_name(key))
			add_member(out, str_make(quote, (size_t)(value.ptr + value.len - quote)));
	}
}

/* ---- Sets ----------------------------------------------------------------- */

state_set *state_ref(state_set *s)
{
	if (s != NULL)
		atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void state_unref(state_set *s)
{
	if (s != NULL && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
		mem_free(s);
}

void state_unrefp(state_set **s)
{
	state_unref(*s);
}

const state_pair *state_find(const state_set *s, sheaf_str key)
{
	size_t low = 0, high = s != NULL ? s->count : 0;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = str_cmp(s->pairs[mid].key, key);
		if (order == 0)
			return &s->pairs[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static sheaf_str put_text(char **at, sheaf_str text)
{
	char *copy = *at;
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	*at += text.len + 1;
	return str_make(copy, text.len);
}

/* A set of these pairs, which are sorted; NULL and 0 for none. */
static int set_new(state_set **out, const state_pair *pairs, size_t count)
{
	size_t bytes = 0;
	*out = NULL;
	if (count == 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		bytes += pairs[i].key.len + pairs[i].value.len;
	state_set *s = mem_alloc(sizeof(*s) + count * sizeof(s->pairs[0]) + bytes + 2 * count);
	if (s == NULL)
		return SHEAF_NOMEM;
	atomic_init(&s->refs, 1);
	s->count = count;
	s->bytes = bytes;
	char *at = (char *)&s->pairs[count];
	for (size_t i = 0; i < count; i++) {
		s->pairs[i].key = put_text(&at, pairs[i].key);
		s->pairs[i].value = put_text(&at, pairs[i].value);
	}
	*out = s;
	return 0;
}

static int compare_pairs(const void *a, const void *b)
{
	return str_cmp(((const state_pair *)a)->key, ((const state_pair *)b)->key);
}

/* The session's keys of a delta, sorted. A delta has no key twice. */
static int read_changes(sheaf_str delta, arena *a, state_pair **pairs, size_t *count, bool *app)
{
	size_t room = 0;
	state_change c;
	int rc;
	for (size_t at = 0; (rc = state_delta_next(delta, &at, a, &c)) == 1;) {
		*app = *app || c.scope == STATE_APP;
		if (c.scope != STATE_SESSION)
			continue;
		if (mem_grow((void **)pairs, &room, *count + 1, sizeof(**pairs)) != 0)
			return SHEAF_NOMEM;
		(*pairs)[(*count)++] = (state_pair){c.key, c.value};
	}
	if (rc == 0 && *count > 1)
		qsort(*pairs, *count, sizeof(**pairs), compare_pairs);
	return rc;
}

/* The new pairs go before the old ones of the same key; a deletion leaves neither. */
static size_t merge(state_pair *out, const state_set *from, const state_pair *news, size_t count)
{
	size_t n = 0, i = 0, k = 0, olds = from != NULL ? from->count : 0;
	while (i < olds || k < count) {
		int order = i == olds    ? 1
		            : k == count ? -1
		                         : str_cmp(from->pairs[i].key, news[k].key);
		if (order < 0) {
			out[n++] = from->pairs[i++];
			continue;
		}
		i += order == 0;
		if (news[k].value.ptr != NULL)
			out[n++] = news[k];
		k++;
	}
	return n;
}

int state_apply(state_set **out, state_set *from, sheaf_str delta, bool *app, sheaf_error *err)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	_cleanup_(mem_freep) state_pair *news = NULL;
	_cleanup_(mem_freep) state_pair *all = NULL;
	size_t count = 0, total;
	*app = false;
	if (a == NULL || read_changes(delta, a, &news, &count, app) != 0)
		return err_nomem(err);
	if (count == 0) {
		*out = state_ref(from);
		return 0;
	}
	all = mem_alloc(((from != NULL ? from->count : 0) + count) * sizeof(*all));
	if (all == NULL)
		return err_nomem(err);
	total = merge(all, from, news, count);
	return set_new(out, all, total) == 0 ? 0 : err_nomem(err);
}

void state_write(buf *out, const state_set *s)
{
	buf_char(out, '{');
	for (size_t i = 0; s != NULL && i < s->count; i++) {
		if (i != 0)
			buf_char(out, ',');
		buf_json(out, s->pairs[i].key);
		buf_char(out, ':');
		buf_str(out, s->pairs[i].value);
	}
	buf_char(out, '}');
}

/* ---- As bytes: magic, count, then length and bytes of each key and value, then the crc -------- */

static void put_u32(unsigned char *out, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		out[i] = (unsigned char)(value >> (8 * i));
}

static uint32_t get_u32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static unsigned char *encode_text(unsigned char *at, sheaf_str text)
{
	put_u32(at, (uint32_t)text.len);
	memcpy(at + 4, text.ptr, text.len);
	return at + 4 + text.len;
}

size_t state_encode(const state_set *s, void *out, size_t room)
{
	size_t count = s != NULL ? s->count : 0;
	size_t total = 12 + 8 * count + (s != NULL ? s->bytes : 0);
	if (out == NULL || total > room)
		return total;
	unsigned char *at = out;
	put_u32(at, MAGIC);
	put_u32(at + 4, (uint32_t)count);
	at += 8;
	for (size_t i = 0; i < count; i++) {
		at = encode_text(at, s->pairs[i].key);
		at = encode_text(at, s->pairs[i].value);
	}
	put_u32(at, crc32c(0, out, total - 4));
	return total;
}

static bool decode_text(const unsigned char **at, const unsigned char *end, size_t max,
                        sheaf_str *out)
{
	if (end - *at < 4)
		return false;
	size_t len = get_u32(*at);
	if (len == 0 || len > max || len > (size_t)(end - *at) - 4)
		return false;
	*out = str_make((const char *)*at + 4, len);
	*at += 4 + len;
	return true;
}

int state_decode(state_set **out, const void *bytes, size_t len, sheaf_error *err)
{
	const unsigned char *at = bytes, *end = at + len - 4;
	_cleanup_(mem_freep) state_pair *pairs = NULL;
	if (bytes == NULL || len < 12 || get_u32(at) != MAGIC ||
	    get_u32(end) != crc32c(0, bytes, len - 4) || get_u32(at + 4) > len / 8)
		return err_set(err, SHEAF_DAMAGED, "the bytes are no state");
	size_t count = get_u32(at + 4);
	at += 8;
	pairs = mem_alloc((count + 1) * sizeof(*pairs));
	if (pairs == NULL)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++) {
		if (!decode_text(&at, end, SHEAF_STATE_KEY_BYTES_MAX, &pairs[i].key) ||
		    !decode_text(&at, end, SHEAF_STATE_VALUE_BYTES_MAX, &pairs[i].value) ||
		    (i != 0 && str_cmp(pairs[i - 1].key, pairs[i].key) >= 0))
			return err_set(err, SHEAF_DAMAGED, "the bytes are no state");
	}
	if (at != end)
		return err_set(err, SHEAF_DAMAGED, "the bytes are no state");
	return set_new(out, pairs, count) == 0 ? 0 : err_nomem(err);
}
