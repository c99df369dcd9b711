/* Changes of bytes, of JSON values and of lines. */
#include "mutate.h"

#include <stdbool.h>
#include <string.h>

size_t below(chance *c, size_t limit)
{
	c->state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = c->state;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (size_t)((z ^ (z >> 31)) % limit);
}

size_t mutate_bytes(chance *c, uint8_t *data, size_t size, size_t room)
{
	static const char special[] = "\"\\{}[]:,\n\r \xff\x00"
				      "0n";
	size_t at = below(c, size), n = 1 + below(c, 32);
	if (n > size - at)
		n = size - at;
	switch (below(c, 5)) {
	case 0:
		data[at] = (uint8_t)special[below(c, sizeof(special) - 1)];
		return size;
	case 1:
		data[at] = (uint8_t)below(c, 256);
		return size;
	case 2:
		memmove(data + at, data + at + n, size - at - n);
		return size - n;
	case 3:
		if (size + n > room)
			return size;
		memmove(data + at + n, data + at, size - at);
		return size + n;
	default:
		memmove(data + below(c, size - n + 1), data + at, n);
		return size;
	}
}

/* ---- Values -------------------------------------------------------------- */

typedef struct span {
	size_t at, len;
} span;

static size_t string_end(const uint8_t *data, size_t size, size_t at)
{
	for (at++; at < size && data[at] != '"'; at++)
		at += data[at] == '\\';
	return at < size ? at + 1 : size;
}

static size_t value_end(const uint8_t *data, size_t size, size_t at)
{
	size_t depth = 0;
	while (at < size) {
		uint8_t b = data[at];
		if (depth == 0 && (b == ',' || b == '}' || b == ']' || b == '\n'))
			break;
		depth += b == '{' || b == '[';
		depth -= b == '}' || b == ']';
		at = b == '"' ? string_end(data, size, at) : at + 1;
		if (depth == 0 && (b == '}' || b == ']' || b == '"'))
			break;
	}
	return at;
}

/* A value behind some colon, comma or bracket; of length 0 if there is none. */
static span value_pick(chance *c, const uint8_t *data, size_t size)
{
	size_t at = below(c, size);
	while (at < size && data[at] != ':' && data[at] != ',' && data[at] != '[')
		at++;
	if (at < size)
		at++;
	while (at < size && data[at] == ' ')
		at++;
	return (span){at, value_end(data, size, at) - at};
}

/* A line with its end. */
static span line_pick(chance *c, const uint8_t *data, size_t size)
{
	size_t at = below(c, size), end;
	while (at > 0 && data[at - 1] != '\n')
		at--;
	for (end = at; end < size && data[end] != '\n'; end++)
		;
	return (span){at, (end < size ? end + 1 : end) - at};
}

/* Puts bytes, which may lie in the same text, in the place of others. */
static size_t replace(uint8_t *data, size_t size, size_t room, span old, const uint8_t *with,
                      size_t len)
{
	static uint8_t kept[1 << 16];
	if (len > sizeof(kept) || size - old.len + len > room)
		return size;
	memcpy(kept, with, len);
	memmove(data + old.at + len, data + old.at + old.len, size - old.at - old.len);
	memcpy(data + old.at, kept, len);
	return size - old.len + len;
}

static size_t mutate_line(chance *c, uint8_t *data, size_t size, size_t room)
{
	span line = line_pick(c, data, size), other = line_pick(c, data, size);
	switch (below(c, 3)) {
	case 0:
		return line.len < size ? replace(data, size, room, line, data, 0) : size;
	case 1:
		return replace(data, size, room, (span){other.at, 0}, data + line.at, line.len);
	default:
		return replace(data, size, room, other, data + line.at, line.len);
	}
}

size_t mutate_json(chance *c, uint8_t *data, size_t size, size_t room)
{
	static const char *const hard[] = {
		"null",   "true",  "\"\"", "[]",       "{}",         "0",        "-1",
		"1e999",  "\"..\"", "1.5",  "[[[]]]",   "\"a/b\"",    "[null]",   "{\"\":0}",
		"\"\\u0000\"", "\"\\ud800\"", "18446744073709551616", "9223372036854775807",
		"\"9999-12-31T23:59:59Z\"", "\"0000-00-00T00:00:00Z\"", "[{}]", "\"\xff\"",
	};
	if (below(c, 4) == 0)
		return mutate_line(c, data, size, room);
	span to = value_pick(c, data, size);
	if (below(c, 3) == 0) {
		const char *text = hard[below(c, sizeof(hard) / sizeof(hard[0]))];
		return replace(data, size, room, to, (const uint8_t *)text, strlen(text));
	}
	span from = value_pick(c, data, size);
	return replace(data, size, room, to, data + from.at, from.len);
}
