/* Text on its way into a page: escaped, with what hides or misleads spelled out. */
#include "html_inside.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/utf8.h"

static bool plain(char c)
{
	unsigned char u = (unsigned char)c;
	return u >= 0x20 && u < 0x7f && c != '<' && c != '>' && c != '&' && c != '"' && c != '\'';
}

/* The name of a character nobody sees: a picture of a control, else its number. */
static void put_name(buf *out, uint32_t c)
{
	if (c < 0x20)
		buf_format(out, "&#x%X;", 0x2400 + c);
	else if (c == 0x7f)
		buf_lit(out, "&#x2421;");
	else
		buf_format(out, "U+%04X", c);
}

static void put_char(buf *out, uint32_t c, sheaf_str bytes, bool marked)
{
	switch (c) {
	case '<':
		buf_lit(out, "&lt;");
		return;
	case '>':
		buf_lit(out, "&gt;");
		return;
	case '&':
		buf_lit(out, "&amp;");
		return;
	case '"':
		buf_lit(out, "&quot;");
		return;
	case '\'':
		buf_lit(out, "&#39;");
		return;
	case '\r':
		buf_char(out, '\n');
		return;
	case '\t':
	case '\n':
		buf_char(out, (char)c);
		return;
	case TEXT_BROKEN:
		buf_lit(out, "\xef\xbf\xbd");
		return;
	default:
		break;
	}
	if (!text_spelled(c)) {
		buf_str(out, bytes);
		return;
	}
	if (marked)
		buf_lit(out, "<span class=\"ctl\">");
	put_name(out, c);
	if (marked)
		buf_lit(out, "</span>");
}

static void put(buf *out, sheaf_str text, bool marked)
{
	size_t at = 0;
	while (at < text.len) {
		size_t from = at;
		while (at < text.len && plain(text.ptr[at]))
			at++;
		buf_add(out, text.ptr + from, at - from);
		if (at == text.len)
			return;
		from = at;
		uint32_t c = text_next(text, &at);
		if (c == '\r' && at < text.len && text.ptr[at] == '\n')
			continue;
		put_char(out, c, str_make(text.ptr + from, at - from), marked);
	}
}

void html_text(buf *out, sheaf_str text)
{
	put(out, text, true);
}

void html_attr(buf *out, sheaf_str text)
{
	put(out, text, false);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

void html_line(buf *out, sheaf_str text, size_t max)
{
	sheaf_str cut = utf8_cut(text, max);
	bool first = true;
	for (size_t at = 0; at < cut.len;) {
		size_t from = at;
		while (at < cut.len && !is_blank(cut.ptr[at]))
			at++;
		if (at > from && !first)
			buf_char(out, ' ');
		put(out, str_make(cut.ptr + from, at - from), true);
		first = first && at == from;
		while (at < cut.len && is_blank(cut.ptr[at]))
			at++;
	}
	if (cut.len < text.len)
		buf_lit(out, "…");
}

/* ---- What programs print --------------------------------------------------- */

/* The colours and weights of a terminal, as far as they are shown. */
typedef struct ink {
	unsigned color; /* 0: none; else 1 + the number of one of 16 */
	bool bold;
	bool faint;
} ink;

static void ink_set(ink *k, unsigned n)
{
	if (n == 0)
		*k = (ink){0};
	else if (n == 1)
		k->bold = true;
	else if (n == 2)
		k->faint = true;
	else if (n == 22)
		k->bold = k->faint = false;
	else if (n >= 30 && n <= 37)
		k->color = 1 + n - 30;
	else if (n >= 90 && n <= 97)
		k->color = 1 + 8 + n - 90;
	else if (n == 39)
		k->color = 0;
}

/* The end of the control sequence at `at` (its ESC), or `at` if it is none; one of colours changes
 * the ink. */
static size_t sequence(sheaf_str text, size_t at, ink *k)
{
	size_t i = at + 1;
	unsigned n = 0;
	ink next = *k;
	if (i >= text.len || text.ptr[i] != '[')
		return at;
	for (i++; i < text.len && i - at < 64; i++) {
		char c = text.ptr[i];
		if (c >= '0' && c <= '9' && n < 1000) {
			n = n * 10 + (unsigned)(c - '0');
		} else if (c == ';') {
			ink_set(&next, n);
			n = 0;
		} else if (c == 'm') {
			ink_set(&next, n);
			*k = next;
			return i + 1;
		} else if (c >= '@' && c <= '~') {
			return i + 1;
		} else if (c < ' ' || c > '?') {
			return at;
		}
	}
	return at;
}

void html_output_line(buf *out, sheaf_str text, size_t max)
{
	_cleanup_(buf_free) buf bare = BUF_INIT(SIZE_MAX);
	ink k = {0};
	for (size_t at = 0; at < text.len && bare.len <= max;) {
		size_t end = text.ptr[at] == 0x1b ? sequence(text, at, &k) : at;
		if (end == at)
			buf_char(&bare, text.ptr[at++]);
		else
			at = end;
	}
	html_line(out, buf_view(&bare), max);
	if (bare.status != 0 && out->status == 0)
		out->status = bare.status;
}

static bool ink_is(const ink *k)
{
	return k->color != 0 || k->bold || k->faint;
}

static void ink_open(buf *out, const ink *k)
{
	buf_lit(out, "<span class=\"");
	if (k->color != 0)
		buf_format(out, "c%u ", k->color - 1);
	if (k->bold)
		buf_lit(out, "cb ");
	if (k->faint)
		buf_lit(out, "cf ");
	buf_lit(out, "\">");
}

void html_output(buf *out, sheaf_str text)
{
	ink now = {0};
	size_t at = 0;
	while (at < text.len) {
		const char *esc = memchr(text.ptr + at, 0x1b, text.len - at);
		size_t end = esc != NULL ? (size_t)(esc - text.ptr) : text.len;
		if (end > at && ink_is(&now))
			ink_open(out, &now);
		html_text(out, str_make(text.ptr + at, end - at));
		if (end > at && ink_is(&now))
			buf_lit(out, "</span>");
		if (end == text.len)
			return;
		at = sequence(text, end, &now);
		if (at == end) { /* no sequence: the character itself is shown */
			html_text(out, str_make(text.ptr + end, 1));
			at = end + 1;
		}
	}
}

/* ---- JSON ------------------------------------------------------------------ */

static void indent(buf *out, size_t depth)
{
	buf_char(out, '\n');
	for (size_t i = 0; i < depth && i < 64; i++)
		buf_lit(out, "  ");
}

static size_t string_end(sheaf_str json, size_t at)
{
	for (at++; at < json.len && json.ptr[at] != '"'; at++)
		at += json.ptr[at] == '\\';
	return at < json.len ? at + 1 : json.len;
}

void html_json(buf *out, sheaf_str json)
{
	size_t depth = 0, at = 0;
	while (at < json.len) {
		char c = json.ptr[at];
		size_t end = at + 1;
		if (c == '"') {
			end = string_end(json, at);
			html_text(out, str_make(json.ptr + at, end - at));
		} else if (c == '{' || c == '[') {
			buf_char(out, c);
			while (end < json.len && json.ptr[end] == ' ')
				end++;
			if (end < json.len && (json.ptr[end] == '}' || json.ptr[end] == ']'))
				buf_char(out, json.ptr[end++]);
			else
				indent(out, ++depth);
		} else if (c == '}' || c == ']') {
			indent(out, depth > 0 ? --depth : 0);
			buf_char(out, c);
		} else if (c == ',') {
			buf_char(out, c);
			indent(out, depth);
		} else if (c == ':') {
			buf_lit(out, ": ");
		} else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
			while (end < json.len && strchr(" \t\n\r,:]}[{\"", json.ptr[end]) == NULL)
				end++;
			html_text(out, str_make(json.ptr + at, end - at));
		}
		at = end;
	}
}

/* ---- Small things ----------------------------------------------------------- */

void html_code_begin(buf *out, sheaf_str lang)
{
	buf_lit(out, "<div class=\"code\">");
	if (lang.len != 0) {
		buf_lit(out, "<span class=\"lang\">");
		html_line(out, lang, 80);
		buf_lit(out, "</span>");
	}
	buf_lit(out, "<button type=\"button\" class=\"copy\">Copy</button><pre tabindex=\"0\">");
	/* A parser drops the first line break of a <pre>: this one. */
	buf_char(out, '\n');
}

void html_code_end(buf *out)
{
	buf_lit(out, "</pre></div>");
}

sheaf_str html_trim(sheaf_str text)
{
	size_t at = 0, line = 0;
	while (at < text.len && is_blank(text.ptr[at])) {
		if (text.ptr[at++] == '\n')
			line = at;
	}
	text = str_make(text.ptr + line, text.len - line);
	while (text.len != 0 && is_blank(text.ptr[text.len - 1]))
		text.len--;
	return text;
}

size_t html_lines(sheaf_str text)
{
	size_t lines = text.len != 0;
	for (size_t i = 0; i + 1 < text.len; i++)
		lines += text.ptr[i] == '\n';
	return lines;
}

void html_number(buf *out, uint64_t number)
{
	text_number(out, number);
}

void html_tokens(buf *out, uint64_t tokens)
{
	if (tokens < 1000)
		buf_u64(out, tokens);
	else if (tokens < 1000000)
		buf_format(out, "%.1fk", (double)tokens / 1e3);
	else
		buf_format(out, "%.1fM", (double)tokens / 1e6);
}

static void put_time(buf *out, int64_t us, bool whole)
{
	static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
	                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	char text[CLOCK_TEXT + 1];
	clock_format(text, us);
	unsigned month = (unsigned)((text[5] - '0') * 10 + (text[6] - '0'));
	buf_format(out, "<time datetime=\"%s\" title=\"%.10s %.8s UTC\">%d %s ", text, text,
	           text + 11, (text[8] - '0') * 10 + (text[9] - '0'),
	           months[month >= 1 && month <= 12 ? month - 1 : 0]);
	if (whole)
		buf_format(out, "%.4s, %.5s UTC</time>", text, text + 11);
	else
		buf_format(out, "%.5s</time>", text + 11);
}

void html_time(buf *out, int64_t us)
{
	put_time(out, us, false);
}

void html_date(buf *out, int64_t us)
{
	put_time(out, us, true);
}

void html_link(buf *out, uint64_t seq)
{
	buf_format(out, "<a href=\"#e%llu\">@%llu</a>", (unsigned long long)seq,
	           (unsigned long long)seq);
}
