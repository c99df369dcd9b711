/* Making text safe for a terminal, and measuring, cutting and wrapping it. */
#include "text.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <time.h>
#include <wchar.h>

#include "base/str.h"

enum {
	CHARSET_UTF8,
	CHARSET_UNKNOWN,
	CHARSET_OTHER
};

static int charset = CHARSET_UNKNOWN;

static const glyphs glyphs_utf8 = {"·", "…", "●",  "○", "◆", "│ ",  "├─", "⋮",
                                   "→", "←", "│ ", "•", "─", " │ ", "─┼─"};
static const glyphs glyphs_ascii = {"-",  "...", "*",  "o", "#", "| ",  "|-", ":",
                                    "->", "<-",  "| ", "-", "-", " | ", "-+-"};

/*
 * The C locale says nothing about the terminal (containers have it while the
 * terminal outside speaks UTF-8), so text passes and only our own drawing keeps
 * to ASCII. In a locale of another charset everything beyond ASCII is spelled out.
 */
void text_init(void)
{
	setlocale(LC_CTYPE, "");
	const char *codeset = nl_langinfo(CODESET);
	if (strcmp(codeset, "UTF-8") == 0)
		charset = CHARSET_UTF8;
	else if (strcmp(codeset, "ANSI_X3.4-1968") == 0)
		charset = CHARSET_UNKNOWN;
	else
		charset = CHARSET_OTHER;
	if (charset != CHARSET_UTF8)
		setlocale(LC_CTYPE,
		          "C.UTF-8"); /* for wcwidth(); if there is none, all is one wide */
}

const glyphs *text_glyphs(void)
{
	return charset == CHARSET_UTF8 ? &glyphs_utf8 : &glyphs_ascii;
}

static size_t sequence_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

uint32_t text_next(sheaf_str s, size_t *at)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = (const unsigned char *)s.ptr + *at;
	size_t left = s.len - *at, n = sequence_length(p[0]);
	*at += 1;
	if (n == 1)
		return p[0];
	if (n == 0 || n > left)
		return TEXT_BROKEN;
	uint32_t c = p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return TEXT_BROKEN;
		c = c << 6 | (p[i] & 0x3fu);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return TEXT_BROKEN;
	*at += n - 1;
	return c;
}

bool text_spelled(uint32_t c)
{
	if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xa0)) /* C0, DEL, C1 */
		return true;
	if (c < 0x61c)
		return false;
	return c == 0x061c || c == 0x200e || c == 0x200f || /* bidi marks, */
	       (c >= 0x2028 && c <= 0x202e) ||              /* line separators, bidi embedding, */
	       (c >= 0x2066 && c <= 0x206f) ||              /* bidi isolates, deprecated controls */
	       c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	       (c >= 0xe0000 && c <= 0xe007f); /* tags: invisible ASCII */
}

static void spell(buf *out, uint32_t c)
{
	if (c < 0x20 || c == 0x7f)
		buf_format(out, "^%c", (char)(c ^ 0x40));
	else if (c == TEXT_BROKEN)
		buf_str(out, charset == CHARSET_OTHER ? SHEAF_STR("?") : SHEAF_STR("\xef\xbf\xbd"));
	else
		buf_format(out, "<U+%04X>", c);
}

void text_safe(buf *out, sheaf_str s, int shape)
{
	size_t begin = out->len, at = 0;
	bool blank = false;
	while (at < s.len) {
		size_t from = at;
		uint32_t c = text_next(s, &at);
		/* Most text is printable ASCII: as much of it as there is goes at once. */
		while (c > ' ' && c < 0x7f && at < s.len && s.ptr[at] > ' ' && s.ptr[at] < 0x7f)
			at++;
		if (c == '\r' && at < s.len && s.ptr[at] == '\n' && shape != TEXT_ID)
			continue;
		if (shape != TEXT_ID && (c == ' ' || c == '\t' || c == '\n')) {
			if (shape == TEXT_BLOCK)
				buf_char(out, (char)c);
			blank = true;
			continue;
		}
		if (shape == TEXT_LINE && blank && out->len != begin)
			buf_char(out, ' ');
		blank = false;
		if (c == TEXT_BROKEN || text_spelled(c) || (charset == CHARSET_OTHER && c > 0x7e))
			spell(out, c);
		else
			buf_add(out, s.ptr + from, at - from);
	}
}

void text_safe_of(buf *out, const char *s, int shape)
{
	text_safe(out, sheaf_str_of(s), shape);
}

/* ---- Width ------------------------------------------------------------- */

typedef struct meter {
	size_t columns;
	bool joined; /* after a zero width joiner: the next one merges */
	bool wide;
} meter;

/*
 * Sums of wcwidth() are wrong for emoji made of several code points: a skin
 * tone and what follows a joiner add nothing.
 */
static void measure(meter *m, uint32_t c)
{
	if (c == '\t') {
		m->columns += 8 - m->columns % 8;
		m->joined = m->wide = false;
		return;
	}
	int w = c < 0x7f || c == TEXT_BROKEN ? 1 : wcwidth((wchar_t)c);
	if (w < 0)
		w = 1;
	if ((m->joined && c > 0x7f) || (m->wide && c >= 0x1f3fb && c <= 0x1f3ff))
		w = 0;
	m->joined = c == 0x200d && m->wide;
	if (w > 0)
		m->wide = w == 2;
	m->columns += (size_t)w;
}

size_t text_width(sheaf_str safe)
{
	meter m = {0};
	size_t at = 0;
	while (at < safe.len)
		measure(&m, text_next(safe, &at));
	return m.columns;
}

size_t text_cluster(sheaf_str s, size_t at)
{
	meter m = {0};
	if (at >= s.len)
		return s.len;
	measure(&m, text_next(s, &at));
	for (size_t next = at; next < s.len; at = next) {
		size_t columns = m.columns;
		uint32_t c = text_next(s, &next);
		if (c == '\n' || text_spelled(c))
			break;
		measure(&m, c);
		if (m.columns != columns)
			break;
	}
	return at;
}

/* How many bytes of `safe` fit into `columns`. */
static size_t fitting(sheaf_str safe, size_t columns)
{
	meter m = {0};
	size_t at = 0, fits = 0;
	while (at < safe.len) {
		measure(&m, text_next(safe, &at));
		if (m.columns > columns)
			return fits;
		fits = at;
	}
	return fits;
}

void text_cut(buf *out, sheaf_str safe, size_t columns)
{
	if (columns == 0 || text_width(safe) <= columns) {
		buf_str(out, safe);
		return;
	}
	sheaf_str mark = sheaf_str_of(text_glyphs()->ellipsis);
	size_t room = columns > text_width(mark) ? columns - text_width(mark) : 0;
	size_t keep = fitting(safe, room);
	while (keep > 0 && safe.ptr[keep - 1] == ' ')
		keep--;
	buf_add(out, safe.ptr, keep);
	buf_str(out, mark);
}

void text_cut_front(buf *out, sheaf_str safe, size_t columns)
{
	size_t width = text_width(safe);
	if (columns == 0 || width <= columns) {
		buf_str(out, safe);
		return;
	}
	sheaf_str mark = sheaf_str_of(text_glyphs()->ellipsis);
	size_t room = columns > text_width(mark) ? columns - text_width(mark) : 0, at = 0;
	meter dropped = {0};
	while (at < safe.len && width - dropped.columns > room)
		measure(&dropped, text_next(safe, &at));
	buf_str(out, mark);
	buf_add(out, safe.ptr + at, safe.len - at);
}

void text_spaces(buf *out, size_t count)
{
	while (count-- > 0)
		buf_char(out, ' ');
}

size_t text_shared(sheaf_str a, sheaf_str b)
{
	size_t n = 0;
	while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n])
		n++;
	return n;
}

/* ---- Wrapping ---------------------------------------------------------- */

static bool is_wide(sheaf_str s, size_t at)
{
	uint32_t c = text_next(s, &at);
	return c != TEXT_BROKEN && c >= 0x1100 && wcwidth((wchar_t)c) == 2;
}

/* One line, broken between words; a word longer than a line is left to the terminal. */
static void wrap_line(buf *out, sheaf_str line, size_t indent, size_t columns)
{
	size_t room = columns > indent + 8 ? columns - indent : 0;
	for (size_t cut; room != 0 && (cut = fitting(line, room)) < line.len;) {
		/* A blank right after the last column is a fine place too, and so is any wide character:
		 * they are of scripts that write no blanks. */
		size_t end = line.ptr[cut] == ' ' || is_wide(line, cut) ? cut : 0;
		size_t lead = 0; /* blanks a line begins with are no place to break it */
		while (lead < line.len && line.ptr[lead] == ' ')
			lead++;
		for (size_t i = cut; end == 0 && i > lead; i--) {
			if (line.ptr[i - 1] == ' ')
				end = i - 1;
		}
		for (size_t i = cut > lead ? cut : lead; end == 0 && i < line.len; i++) {
			if (line.ptr[i] == ' ')
				end = i;
		}
		if (end == 0)
			break;
		sheaf_str row = str_make(line.ptr, end);
		while (row.len > 0 && row.ptr[row.len - 1] == ' ')
			row.len--;
		text_spaces(out, indent);
		buf_str(out, row);
		buf_char(out, '\n');
		while (end < line.len && line.ptr[end] == ' ')
			end++;
		line = str_make(line.ptr + end, line.len - end);
	}
	if (line.len != 0)
		text_spaces(out, indent);
	buf_str(out, line);
	buf_char(out, '\n');
}

void text_wrap(buf *out, sheaf_str safe, size_t indent, size_t columns)
{
	bool fenced = false;
	size_t at = 0;
	while (at < safe.len) {
		const char *begin = safe.ptr + at;
		const char *end = memchr(begin, '\n', safe.len - at);
		size_t len = end != NULL ? (size_t)(end - begin) : safe.len - at;
		sheaf_str line = str_make(begin, len);
		if (str_starts(line, "```"))
			fenced = !fenced;
		wrap_line(out, line, indent, fenced ? 0 : columns);
		at += len + 1;
	}
}

/* ---- Numbers and times ------------------------------------------------- */

void text_span(buf *out, int64_t us)
{
	static const struct {
		int64_t seconds;
		char letter;
	} units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}};
	int64_t seconds = us > 0 ? us / 1000000 : 0;
	for (size_t i = 0; i < COUNT_OF(units); i++) {
		int64_t n = seconds / units[i].seconds;
		if (n >= 10 || (n > 0 && seconds % units[i].seconds == 0)) {
			buf_format(out, "%lld%c", (long long)n, units[i].letter);
			return;
		}
	}
	buf_format(out, "%llds", (long long)seconds);
}

void text_ago(buf *out, int64_t then_us, int64_t now_us)
{
	static const struct {
		int64_t seconds;
		const char *one;
		const char *many;
	} units[] = {
		{86400 * 30, "1 month ago", "months"}, {86400 * 7, "1 week ago", "weeks"},
		{86400, "yesterday", "days"},          {3600, "1 hour ago", "hours"},
		{60, "1 minute ago", "minutes"},
	};
	int64_t age = (now_us - then_us) / 1000000;
	if (age < -60 || age >= 86400 * 365) {
		time_t t = (time_t)(then_us / 1000000);
		struct tm tm;
		char text[16];
		if (localtime_r(&t, &tm) != NULL && strftime(text, sizeof(text), "%F", &tm) != 0)
			buf_str(out, sheaf_str_of(text));
		return;
	}
	for (size_t i = 0; i < COUNT_OF(units); i++) {
		int64_t n = age / units[i].seconds;
		if (n == 1)
			buf_str(out, sheaf_str_of(units[i].one));
		else if (n > 1)
			buf_format(out, "%lld %s ago", (long long)n, units[i].many);
		if (n >= 1)
			return;
	}
	buf_lit(out, "just now");
}

void text_bytes(buf *out, uint64_t bytes)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
	if (bytes < 1000) {
		buf_format(out, "%llu B", (unsigned long long)bytes);
		return;
	}
	double size = (double)bytes / 1000;
	size_t unit = 0;
	while (size >= 999.95 && unit + 1 < COUNT_OF(units)) {
		size /= 1000;
		unit++;
	}
	buf_format(out, size < 10 ? "%.1f %s" : "%.0f %s", size, units[unit]);
}

void text_number(buf *out, uint64_t number)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			buf_char(out, ',');
		buf_char(out, digits[i]);
	}
}

void text_bar(buf *out, double part, size_t columns)
{
	static const char *const blocks[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	bool fine = charset == CHARSET_UTF8;
	double all = (double)columns * (fine ? 8 : 1);
	size_t steps = (size_t)((part > 1 ? 1 : part) * all + 0.5);
	if (part > 0 && steps == 0)
		steps = 1;
	for (size_t i = 0; i < steps / (fine ? 8 : 1); i++)
		buf_str(out, fine ? SHEAF_STR("█") : SHEAF_STR("#"));
	if (fine)
		buf_str(out, sheaf_str_of(blocks[steps % 8]));
}

void text_count(buf *out, uint64_t count, const char *one, const char *many)
{
	text_number(out, count);
	buf_format(out, " %s", count == 1 ? one : many);
}
