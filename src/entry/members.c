/* Walks over members and elements of checked JSON text. */
#include "entry/members.h"

#include <string.h>

#include "base/json.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && is_blank(*p))
		p++;
	return p;
}

static const char *value_end(const char *p, const char *end)
{
	if (p == end)
		return NULL;
	if (*p == '"') {
		p = json_string_end(p + 1, end);
		return p != NULL ? p + 1 : NULL;
	}
	if (*p == '{' || *p == '[')
		return json_container_end(p, end);
	const char *start = p;
	while (p < end && !is_blank(*p) && *p != ',' && *p != '}' && *p != ']')
		p++;
	return p > start ? p : NULL;
}

/* Over the comma that separates from what came before. */
static const char *step(sheaf_str text, size_t at, const char **end)
{
	*end = text.ptr + text.len;
	const char *p = skip_blanks(text.ptr + at, *end);
	if (p < *end && *p == ',')
		p = skip_blanks(p + 1, *end);
	return p;
}

/* Where the value of the member at `at` begins, with its key; NULL if there is none. */
static const char *value_of(sheaf_str members, size_t at, sheaf_str *key, const char **end)
{
	if (at >= members.len)
		return NULL;
	const char *p = step(members, at, end);
	if (p == *end || *p != '"')
		return NULL;
	const char *key_end = json_string_end(p + 1, *end);
	if (key_end == NULL)
		return NULL;
	*key = (sheaf_str){p + 1, (size_t)(key_end - p - 1)};
	p = skip_blanks(key_end + 1, *end);
	return p == *end || *p != ':' ? NULL : skip_blanks(p + 1, *end);
}

bool members_next(sheaf_str members, size_t *at, sheaf_str *key, sheaf_str *value)
{
	const char *end, *p = value_of(members, *at, key, &end);
	const char *stop = p != NULL ? value_end(p, end) : NULL;
	if (stop == NULL)
		return false;
	*value = (sheaf_str){p, (size_t)(stop - p)};
	*at = (size_t)(stop - members.ptr);
	return true;
}

bool elements_next(sheaf_str elements, size_t *at, sheaf_str *value)
{
	if (*at >= elements.len)
		return false;
	const char *end, *p = step(elements, *at, &end), *stop = value_end(p, end);
	if (stop == NULL)
		return false;
	*value = (sheaf_str){p, (size_t)(stop - p)};
	*at = (size_t)(stop - elements.ptr);
	return true;
}

/* The ASCII character that \u0000-style digits spell, or -1. */
static int escaped_ascii(const char *digits)
{
	int code = 0;
	for (int i = 0; i < 4; i++) {
		char c = digits[i];
		int value = c >= '0' && c <= '9'   ? c - '0'
		            : c >= 'a' && c <= 'f' ? c - 'a' + 10
		            : c >= 'A' && c <= 'F' ? c - 'A' + 10
		                                   : -1;
		if (value < 0)
			return -1;
		code = code * 16 + value;
	}
	return code < 0x80 ? code : -1;
}

/* Names are letters, digits and underscores: of the escapes only \u can spell them. */
static bool escaped_key_is(sheaf_str key, const char *name)
{
	size_t i = 0;
	for (; i < key.len && *name != '\0'; name++) {
		int c = key.ptr[i];
		if (c == '\\') {
			if (key.len - i < 6 || key.ptr[i + 1] != 'u')
				return false;
			c = escaped_ascii(key.ptr + i + 2);
			i += 5;
		}
		if (c != *name)
			return false;
		i++;
	}
	return i == key.len && *name == '\0';
}

bool members_key_is(sheaf_str key, const char *name)
{
	if (key.len == 0 || (key.ptr[0] != name[0] && key.ptr[0] != '\\'))
		return false;
	size_t len = strlen(name);
	if (key.len == len)
		return memcmp(key.ptr, name, len) == 0;
	return key.len > len && memchr(key.ptr, '\\', key.len) != NULL && escaped_key_is(key, name);
}

sheaf_str members_find(sheaf_str members, const char *name)
{
	sheaf_str key, value;
	for (size_t at = 0; members_next(members, &at, &key, &value);) {
		if (members_key_is(key, name))
			return value;
	}
	return (sheaf_str){NULL, 0};
}

sheaf_str members_at(sheaf_str object, size_t offset)
{
	const char *end = object.ptr + object.len;
	const char *p = skip_blanks(skip_blanks(object.ptr, end) + 1, end);
	sheaf_str rest = {p + offset, (size_t)(end - p) - offset}, key, value;
	size_t at = 0;
	return members_next(rest, &at, &key, &value) ? value : (sheaf_str){NULL, 0};
}

sheaf_str members_last(sheaf_str members, const char *name)
{
	sheaf_str key;
	const char *end, *p;
	for (size_t at = 0; (p = value_of(members, at, &key, &end)) != NULL;) {
		if (members_key_is(key, name))
			return (sheaf_str){p, (size_t)(end - p)};
		if ((p = value_end(p, end)) == NULL)
			break;
		at = (size_t)(p - members.ptr);
	}
	return (sheaf_str){NULL, 0};
}

sheaf_str members_trim(sheaf_str text)
{
	while (text.len != 0 && is_blank(text.ptr[0])) {
		text.ptr++;
		text.len--;
	}
	while (text.len != 0 && is_blank(text.ptr[text.len - 1]))
		text.len--;
	return text;
}

sheaf_str members_inside(sheaf_str value)
{
	if (value.len < 2 || (value.ptr[0] != '{' && value.ptr[0] != '['))
		return (sheaf_str){NULL, 0};
	return members_trim((sheaf_str){value.ptr + 1, value.len - 2});
}

size_t members_depth(sheaf_str text)
{
	size_t depth = 0, deepest = 0;
	const char *end = text.ptr + text.len;
	for (const char *p = text.ptr; p < end; p++) {
		if (*p == '"') {
			p = json_string_end(p + 1, end);
			if (p == NULL)
				break;
		} else if (*p == '{' || *p == '[') {
			if (++depth > deepest)
				deepest = depth;
		} else if ((*p == '}' || *p == ']') && depth != 0) {
			depth--;
		}
	}
	return deepest;
}
