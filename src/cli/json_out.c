/* Writing JSON whose every byte is harmless on a terminal. */
#include "json_out.h"

#include "base/clock.h"
#include "text.h"

static void comma(buf *b)
{
	char last = b->len != 0 ? b->ptr[b->len - 1] : '{';
	if (last != '{' && last != '[' && last != '\n')
		buf_char(b, ',');
}

static void member(buf *b, const char *name)
{
	comma(b);
	if (name != NULL)
		buf_format(b, "\"%s\":", name);
}

void js_open(buf *b, const char *name, char bracket)
{
	member(b, name);
	buf_char(b, bracket);
}

void js_close(buf *b, char bracket)
{
	buf_char(b, bracket);
}

static void escape(buf *b, uint32_t c)
{
	if (c >= 0x10000) {
		c -= 0x10000;
		buf_format(b, "\\u%04x\\u%04x", 0xd800 + (c >> 10), 0xdc00 + (c & 0x3ff));
	} else {
		buf_format(b, "\\u%04x", c);
	}
}

/*
 * What must be escaped can only stand inside strings, so escaping it keeps the
 * value: all but the blanks between tokens, of which the line break would end
 * the line. A broken byte (of a foreign file) becomes U+FFFD.
 */
void js_line(buf *b, sheaf_str json)
{
	size_t at = 0, plain = 0;
	while (at < json.len) {
		size_t from = at;
		uint32_t c = text_next(json, &at);
		if (c == '\t' || (c != TEXT_BROKEN && !text_spelled(c)))
			continue;
		buf_add(b, json.ptr + plain, from - plain);
		if (c == '\n' || c == '\r')
			buf_char(b, ' ');
		else
			escape(b, c == TEXT_BROKEN ? 0xfffd : c);
		plain = at;
	}
	if (plain < json.len)
		buf_add(b, json.ptr + plain, json.len - plain);
}

void js_raw(buf *b, const char *name, sheaf_str json)
{
	member(b, name);
	if (json.ptr == NULL)
		buf_lit(b, "null");
	else
		js_line(b, json);
}

void js_str(buf *b, const char *name, sheaf_str value)
{
	member(b, name);
	if (value.ptr == NULL) {
		buf_lit(b, "null");
		return;
	}
	_cleanup_(buf_free) buf quoted = BUF_INIT(SIZE_MAX);
	buf_json(&quoted, value);
	js_line(b, buf_view(&quoted));
	if (quoted.status != 0)
		b->status = quoted.status;
}

void js_text(buf *b, const char *name, const char *value)
{
	js_str(b, name, sheaf_str_of(value));
}

void js_u64(buf *b, const char *name, uint64_t value)
{
	member(b, name);
	buf_u64(b, value);
}

void js_bool(buf *b, const char *name, bool value)
{
	member(b, name);
	if (value)
		buf_lit(b, "true");
	else
		buf_lit(b, "false");
}

void js_time(buf *b, const char *name, int64_t us)
{
	char text[CLOCK_TEXT + 1];
	if (us != 0)
		clock_format(text, us);
	js_text(b, name, us != 0 ? text : NULL);
}
