/*
 * JSON as text: our own scanner, for what yyjson does not look at (depth,
 * duplicate keys, line breaks) or would parse too much for (the bytes of one
 * member).
 *
 * Nothing here recurses: nesting is the writer's choice, the stack is ours.
 */
#include "json.h"

#include "arena.h"
#include "err.h"
#include "mem.h"
#include "scan.h"
#include "str.h"
#include "utf8.h"

/* Escapes. */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number of the \uXXXX at `p`, or -1. */
static int unicode_escape(const char *p, const char *end)
{
	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	int value = 0;
	for (int i = 2; i < 6; i++) {
		int digit = hex_digit(p[i]);
		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

static bool is_high(int unit)
{
	return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low(int unit)
{
	return unit >= 0xdc00 && unit <= 0xdfff;
}

static size_t put_utf8(char out[4], int point)
{
	if (point < 0x80) {
		out[0] = (char)point;
		return 1;
	}
	if (point < 0x800) {
		out[0] = (char)(0xc0 | point >> 6);
		out[1] = (char)(0x80 | (point & 0x3f));
		return 2;
	}
	if (point < 0x10000) {
		out[0] = (char)(0xe0 | point >> 12);
		out[1] = (char)(0x80 | (point >> 6 & 0x3f));
		out[2] = (char)(0x80 | (point & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | point >> 18);
	out[1] = (char)(0x80 | (point >> 12 & 0x3f));
	out[2] = (char)(0x80 | (point >> 6 & 0x3f));
	out[3] = (char)(0x80 | (point & 0x3f));
	return 4;
}

/*
 * The bytes one step of a raw string stands for; moves `*p` on. An escape that
 * is none stands for itself, so that the loop around this always ends.
 */
static size_t unescape_step(char out[4], const char **p, const char *end)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = *p;
	int unit = unicode_escape(at, end);
	if (unit >= 0) {
		*p += 6;
		int second = is_high(unit) ? unicode_escape(at + 6, end) : -1;
		if (is_low(second)) {
			*p += 6;
			unit = 0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00);
		}
		return put_utf8(out, unit);
	}
	const char *known = at[0] == '\\' && end - at >= 2 && at[1] != '\0'
	                            ? memchr(from, at[1], sizeof(from) - 1)
	                            : NULL;
	out[0] = known != NULL ? to[known - from] : at[0];
	*p += known != NULL ? 2 : 1;
	return 1;
}

/* Checking. */

typedef struct check_key {
	sheaf_str text; /* unescaped */
	size_t at;      /* where it stands, for the message */
} check_key;

typedef struct check {
	const char *start;
	const char *p;
	const char *end;
	size_t depth;
	bool object[SHEAF_DEPTH_MAX];      /* what each open container is */
	size_t first_key[SHEAF_DEPTH_MAX]; /* where the keys of each open object begin */
	check_key *keys;                   /* of all open objects, innermost last */
	size_t key_count;
	size_t key_room;
	arena *unescaped; /* keys that had escapes; made when the first comes */
	sheaf_error *err;
} check;

static void check_done(check *c)
{
	mem_free(c->keys);
	arena_free(c->unescaped);
}

static int fail_at(check *c, const char *at, const char *why)
{
	return err_set(c->err, SHEAF_INVALID, "%s at byte %zu", why, (size_t)(at - c->start));
}

static int fail_here(check *c)
{
	if (c->p == c->end)
		return fail_at(c, c->p, "JSON ends early");
	if (*c->p == '\0')
		return fail_at(c, c->p, "NUL in JSON");
	if ((unsigned char)*c->p < 0x20)
		return fail_at(c, c->p, "line break or control character between JSON tokens");
	return fail_at(c, c->p, "unexpected character in JSON");
}

static void skip_spaces(check *c)
{
	while (c->p < c->end && *c->p == ' ')
		c->p++;
}

static bool take(check *c, char wanted)
{
	skip_spaces(c);
	if (c->p == c->end || *c->p != wanted)
		return false;
	c->p++;
	return true;
}

static int check_escape(check *c)
{
	if (c->end - c->p < 2)
		return fail_at(c, c->end, "JSON ends early");
	if (c->p[1] != 'u') {
		if (c->p[1] == '\0' || strchr("\"\\/bfnrt", c->p[1]) == NULL)
			return fail_at(c, c->p, "unknown escape");
		c->p += 2;
		return 0;
	}
	int unit = unicode_escape(c->p, c->end);
	if (unit < 0)
		return fail_at(c, c->p, "bad \\u escape");
	bool high = is_high(unit);
	if (is_low(unit) || (high && !is_low(unicode_escape(c->p + 6, c->end))))
		return fail_at(c, c->p, "lone surrogate escape");
	c->p += high ? 12 : 6;
	return 0;
}

/* A string at its opening quote; gives what is between the quotes. */
static int check_string(check *c, sheaf_str *raw, bool *escaped)
{
	const char *from = ++c->p;
	*escaped = false;
	for (;;) {
		c->p = scan_special(c->p, c->end);
		if (c->p == c->end)
			return fail_here(c);
		if (*c->p == '"')
			break;
		if (*c->p != '\\')
			return fail_at(c, c->p, "control character in a JSON string");
		*escaped = true;
		int rc = check_escape(c);
		if (rc != 0)
			return rc;
	}
	*raw = str_make(from, (size_t)(c->p - from));
	c->p++;
	return 0;
}

static size_t skip_digits(check *c)
{
	const char *from = c->p;
	while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
		c->p++;
	return (size_t)(c->p - from);
}

static int check_number(check *c)
{
	if (*c->p == '-')
		c->p++;
	const char *first = c->p;
	size_t whole = skip_digits(c);
	if (whole == 0)
		return fail_here(c);
	if (whole > 1 && *first == '0')
		return fail_at(c, first, "leading zero");
	if (c->p < c->end && *c->p == '.') {
		c->p++;
		if (skip_digits(c) == 0)
			return fail_here(c);
	}
	if (c->p < c->end && (*c->p | 0x20) == 'e') {
		c->p++;
		if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
			c->p++;
		if (skip_digits(c) == 0)
			return fail_here(c);
	}
	return 0;
}

static int check_word(check *c, const char *word)
{
	size_t len = strlen(word);
	if ((size_t)(c->end - c->p) < len || memcmp(c->p, word, len) != 0)
		return fail_here(c);
	c->p += len;
	return 0;
}

/* Any value but a container. */
static int check_scalar(check *c)
{
	sheaf_str raw;
	bool escaped;
	switch (c->p < c->end ? *c->p : '\0') {
	case '"':
		return check_string(c, &raw, &escaped);
	case 't':
		return check_word(c, "true");
	case 'f':
		return check_word(c, "false");
	case 'n':
		return check_word(c, "null");
	case '-':
	case '0':
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
	case '6':
	case '7':
	case '8':
	case '9':
		return check_number(c);
	default:
		return fail_here(c);
	}
}

/* A key has a form without escapes, in the arena if it must be made. */
static int unescape_key(check *c, sheaf_str *key)
{
	if (c->unescaped == NULL)
		c->unescaped = arena_new();
	char *out = c->unescaped != NULL ? arena_alloc(c->unescaped, key->len) : NULL;
	if (out == NULL)
		return err_nomem(c->err);
	size_t len = 0;
	for (const char *p = key->ptr, *end = p + key->len; p < end;) {
		char step[4];
		size_t n = unescape_step(step, &p, end);
		memcpy(out + len, step, n);
		len += n;
	}
	*key = str_make(out, len);
	return 0;
}

static int check_member_name(check *c)
{
	sheaf_str key;
	bool escaped;
	skip_spaces(c);
	if (c->p == c->end || *c->p != '"')
		return fail_here(c);
	size_t at = (size_t)(c->p - c->start);
	int rc = check_string(c, &key, &escaped);
	if (rc == 0 && escaped)
		rc = unescape_key(c, &key);
	if (rc != 0)
		return rc;
	if (c->key_count == c->key_room) {
		void *keys = c->keys;
		if (mem_grow(&keys, &c->key_room, c->key_count + 1, sizeof(check_key)) != 0)
			return err_nomem(c->err);
		c->keys = keys;
	}
	c->keys[c->key_count++] = (check_key){key, at};
	return take(c, ':') ? 0 : fail_here(c);
}

/* Any total order serves; length first spares most of the comparing. */
static int key_order(const check_key *a, const check_key *b)
{
	if (a->text.len != b->text.len)
		return a->text.len < b->text.len ? -1 : 1;
	return a->text.len != 0 ? memcmp(a->text.ptr, b->text.ptr, a->text.len) : 0;
}

static void sift_down(check_key *keys, size_t at, size_t count)
{
	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && key_order(&keys[child], &keys[child + 1]) < 0)
			child++;
		if (key_order(&keys[at], &keys[child]) >= 0)
			return;
		check_key swap = keys[at];
		keys[at] = keys[child];
		keys[child] = swap;
	}
}

/* Heap sort: in place, no allocation, and no input makes it slow. */
static void sort_keys(check_key *keys, size_t count)
{
	for (size_t i = count / 2; i-- > 0;)
		sift_down(keys, i, count);
	for (size_t last = count; last-- > 1;) {
		check_key swap = keys[0];
		keys[0] = keys[last];
		keys[last] = swap;
		sift_down(keys, 0, last);
	}
}

#define PAIRWISE_MAX 16u

static int check_duplicates(check *c, check_key *keys, size_t count)
{
	if (count > PAIRWISE_MAX)
		sort_keys(keys, count);
	for (size_t i = 1; i < count; i++) {
		for (size_t j = count > PAIRWISE_MAX ? i - 1 : 0; j < i; j++) {
			if (!str_eq(keys[i].text, keys[j].text))
				continue;
			size_t at = keys[i].at > keys[j].at ? keys[i].at : keys[j].at;
			return fail_at(c, c->start + at, "duplicate key");
		}
	}
	return 0;
}

static int open_container(check *c, bool object)
{
	if (c->depth == SHEAF_DEPTH_MAX)
		return err_set(c->err, SHEAF_LIMIT, "JSON nested deeper than %u at byte %zu",
		               SHEAF_DEPTH_MAX, (size_t)(c->p - c->start));
	c->object[c->depth] = object;
	c->first_key[c->depth] = c->key_count;
	c->depth++;
	c->p++;
	return 0;
}

static int close_container(check *c)
{
	c->depth--;
	if (!c->object[c->depth])
		return 0;
	size_t first = c->first_key[c->depth];
	int rc = c->key_count - first > 1
	                 ? check_duplicates(c, c->keys + first, c->key_count - first)
	                 : 0;
	c->key_count = first;
	return rc;
}

/*
 * One value up to the point where the next begins: a scalar, an empty
 * container, or the opening of one. `*open` tells that a value must follow.
 */
static int check_begin(check *c, bool *open)
{
	skip_spaces(c);
	*open = false;
	char first = c->p < c->end ? *c->p : '\0';
	if (first != '{' && first != '[')
		return check_scalar(c);
	int rc = open_container(c, first == '{');
	if (rc != 0)
		return rc;
	if (take(c, first == '{' ? '}' : ']'))
		return close_container(c);
	*open = true;
	return first == '{' ? check_member_name(c) : 0;
}

/* After a value: closes what ends here. `*open` tells that a comma came and a value must follow. */
static int check_end(check *c, bool *open)
{
	*open = false;
	while (c->depth != 0) {
		bool object = c->object[c->depth - 1];
		if (take(c, ',')) {
			*open = true;
			return object ? check_member_name(c) : 0;
		}
		if (!take(c, object ? '}' : ']'))
			return fail_here(c);
		int rc = close_container(c);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static json_type type_by_first(char first)
{
	switch (first) {
	case '{':
		return JSON_OBJECT;
	case '[':
		return JSON_ARRAY;
	case '"':
		return JSON_STRING;
	case 't':
	case 'f':
		return JSON_BOOL;
	case 'n':
		return JSON_NULL;
	default:
		return JSON_NUMBER;
	}
}

static const char *type_word(json_type type)
{
	static const char *const words[] = {"a value",  "null",     "true or false", "a number",
	                                    "a string", "an array", "an object"};
	return words[type];
}

int json_check(sheaf_str text, json_type must, sheaf_error *err)
{
	if (text.ptr == NULL || text.len == 0)
		return err_set(err, SHEAF_INVALID, "JSON is empty");
	/* Once for all strings; outside of them the scanner refuses what is not ASCII anyway. */
	if (!utf8_valid(text))
		return err_set(err, SHEAF_INVALID, "JSON is not valid UTF-8");

	_cleanup_(check_done) check c;
	c.start = c.p = text.ptr;
	c.end = text.ptr + text.len;
	c.depth = c.key_count = c.key_room = 0;
	c.keys = NULL;
	c.unescaped = NULL;
	c.err = err;

	skip_spaces(&c);
	if (must != JSON_NONE && c.p < c.end && type_by_first(*c.p) != must)
		return err_set(err, SHEAF_INVALID, "JSON is not %s", type_word(must));
	for (bool open = true; open;) {
		int rc = check_begin(&c, &open);
		if (rc == 0 && !open)
			rc = check_end(&c, &open);
		if (rc != 0)
			return rc;
	}
	skip_spaces(&c);
	return c.p == c.end ? 0 : fail_here(&c);
}

/* Mending. */

#define REPLACEMENT "\xef\xbf\xbd"

/*
 * Strings need no tracking: a backslash outside of one is wrong whatever is
 * done to it, and inside one escapes are stepped over in order.
 */
void json_mend(buf *out, sheaf_str text, size_t *mended)
{
	if (text.len == 0)
		return;
	const char *p = text.ptr, *end = p + text.len, *from = p;
	size_t count = 0;
	while ((p = scan_special(p, end)) < end) {
		size_t drop = 0; /* bytes that become one U+FFFD */
		size_t step = 1;
		if (*p == '\0') {
			drop = 1;
		} else if (*p == '\\' && end - p >= 2 && p[1] != '\0') {
			int unit = unicode_escape(p, end);
			bool paired = is_high(unit) && is_low(unicode_escape(p + 6, end));
			step = paired ? 12 : 2;
			if (!paired && (is_high(unit) || is_low(unit)))
				drop = 6;
		}
		if (drop == 0) {
			p += step;
			continue;
		}
		count += utf8_mend(out, str_make(from, (size_t)(p - from)));
		buf_lit(out, REPLACEMENT);
		count++;
		from = p += drop;
	}
	count += utf8_mend(out, str_make(from, (size_t)(end - from)));
	if (mended != NULL)
		*mended += count;
}

/* Members without parsing. The text is good JSON; on other text these end early, inside it. */

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p;
}

const char *json_string_end(const char *p, const char *end)
{
	while ((p = scan_special(p, end)) < end && *p != '"')
		p += *p == '\\' && end - p >= 2 ? 2 : 1;
	return p < end ? p : NULL;
}

/* From after an opening quote to the closing one, or `end`. */
static const char *find_quote(const char *p, const char *end)
{
	p = json_string_end(p, end);
	return p != NULL ? p : end;
}

/* The nesting at a place in a text. */
typedef struct nesting {
	size_t depth;
	uint64_t in_string; /* all bits set inside of one */
	uint64_t escaped;   /* 1: the next byte follows a backslash that escapes it */
} nesting;

/* The quotes that no backslash stands before. */
static uint64_t plain_quotes(nesting *n, const scan_masks *m)
{
	uint64_t escaped = n->escaped;
	n->escaped = 0;
	for (uint64_t left = m->slashes & ~escaped; left != 0;) {
		unsigned at = (unsigned)__builtin_ctzll(left);
		if (at == 63) {
			n->escaped = 1;
			break;
		}
		escaped |= UINT64_C(2) << at;
		left &= ~(UINT64_C(3) << at);
	}
	return m->quotes & ~escaped;
}

/* Over 64 bytes; the place behind the bracket that closes the outermost, or NULL. */
static const char *nesting_step(nesting *n, const char *p)
{
	scan_masks m = scan_masks_of(p);
	uint64_t quotes = m.slashes != 0 || n->escaped != 0 ? plain_quotes(n, &m) : m.quotes;
	uint64_t inside = scan_parity(quotes) ^ n->in_string;
	uint64_t opens = m.opens & ~inside, closes = m.closes & ~inside;
	n->in_string = 0 - (inside >> 63);
	for (uint64_t left = opens | closes; left != 0; left &= left - 1) {
		if ((opens & left & (0 - left)) != 0)
			n->depth++;
		else if (--n->depth == 0)
			return p + __builtin_ctzll(left) + 1;
	}
	return NULL;
}

const char *json_container_end(const char *p, const char *end)
{
	nesting n = {1, 0, 0};
	char last[SCAN_MASKED];
	const char *found;
	for (p++; (size_t)(end - p) >= SCAN_MASKED; p += SCAN_MASKED) {
		if ((found = nesting_step(&n, p)) != NULL)
			return found;
	}
	size_t rest = (size_t)(end - p);
	memset(last, ' ', sizeof(last));
	memcpy(last, p, rest);
	found = nesting_step(&n, last);
	return found != NULL ? p + (found - last) : NULL;
}

/* From an opening brace or bracket to behind the one that closes it, or `end`. */
static const char *skip_container(const char *p, const char *end)
{
	p = json_container_end(p, end);
	return p != NULL ? p : end;
}

static const char *skip_value(const char *p, const char *end)
{
	if (p == end)
		return end;
	if (*p == '{' || *p == '[')
		return skip_container(p, end);
	if (*p == '"') {
		p = find_quote(p + 1, end);
		return p < end ? p + 1 : end;
	}
	while (p < end && *p != ',' && *p != '}' && *p != ']' && (unsigned char)*p > ' ')
		p++;
	return p;
}

bool json_element_next(sheaf_str array, size_t *at, sheaf_str *value)
{
	if (*at >= array.len)
		return false;
	const char *end = array.ptr + array.len;
	const char *p = skip_blanks(array.ptr + *at, end);
	if (p == end || *p != (*at == 0 ? '[' : ','))
		return false;
	p = skip_blanks(p + 1, end);
	const char *value_end = skip_value(p, end);
	if (value_end == p)
		return false;
	*value = str_make(p, (size_t)(value_end - p));
	*at = (size_t)(value_end - array.ptr);
	return true;
}

bool json_member_next(sheaf_str object, size_t *at, sheaf_str *key, sheaf_str *value)
{
	if (*at >= object.len)
		return false;
	const char *end = object.ptr + object.len;
	const char *p = skip_blanks(object.ptr + *at, end);
	/* Before the first member stands the brace, before every other a comma. */
	if (p == end || *p != (*at == 0 ? '{' : ','))
		return false;
	p = skip_blanks(p + 1, end);
	if (p == end || *p != '"')
		return false;
	const char *name = p + 1, *name_end = find_quote(name, end);
	if (name_end == end)
		return false;
	p = skip_blanks(name_end + 1, end);
	if (p == end || *p != ':')
		return false;
	p = skip_blanks(p + 1, end);
	const char *value_end = skip_value(p, end);
	if (value_end == p)
		return false;
	*key = str_make(name, (size_t)(name_end - name));
	*value = str_make(p, (size_t)(value_end - p));
	*at = (size_t)(value_end - object.ptr);
	return true;
}

/* Whether a raw key, unescaped, is `name`. */
static bool key_is(sheaf_str raw, sheaf_str name)
{
	if (memchr(raw.ptr, '\\', raw.len) == NULL)
		return str_eq(raw, name);
	size_t at = 0;
	for (const char *p = raw.ptr, *end = p + raw.len; p < end;) {
		char step[4];
		size_t n = unescape_step(step, &p, end);
		if (n > name.len - at || memcmp(name.ptr + at, step, n) != 0)
			return false;
		at += n;
	}
	return at == name.len;
}

sheaf_str json_member_bytes(sheaf_str object, const char *name)
{
	sheaf_str wanted = sheaf_str_of(name), key, value;
	for (size_t at = 0; json_member_next(object, &at, &key, &value);) {
		if (key_is(key, wanted))
			return value;
	}
	return (sheaf_str){NULL, 0};
}
