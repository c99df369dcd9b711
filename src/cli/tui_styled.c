/* Styled text taken apart: characters with a width and a style, lines that fit. */
#include "tui_styled.h"

#include "base/mem.h"
#include "base/str.h"
#include "text.h"

#define TAB 8u

static unsigned apply(unsigned style, unsigned number)
{
	static const unsigned on[] = {
		0, STYLED_BOLD, STYLED_DIM, STYLED_ITALIC, STYLED_UNDERLINE, 0, 0, STYLED_REVERSE};
	if (number == 0)
		return 0;
	if (number < COUNT_OF(on))
		return style | on[number];
	if (number == 22)
		return style & ~(unsigned)(STYLED_BOLD | STYLED_DIM);
	if (number == 23)
		return style & ~(unsigned)STYLED_ITALIC;
	if (number == 24)
		return style & ~(unsigned)STYLED_UNDERLINE;
	if (number == 27)
		return style & ~(unsigned)STYLED_REVERSE;
	if (number >= 30 && number <= 37)
		return (style & ~(unsigned)STYLED_COLOR) | (number - 30 + 1);
	if (number >= 90 && number <= 97)
		return (style & ~(unsigned)STYLED_COLOR) | (number - 90 + 9);
	return number == 39 ? style & ~(unsigned)STYLED_COLOR : style;
}

/* Passes a sequence ESC [ numbers m. */
static void read_style(styled *s)
{
	unsigned number = 0;
	for (s->at++; s->at < s->text.len; s->at++) {
		char c = s->text.ptr[s->at];
		if (c >= '0' && c <= '9') {
			number = (number * 10 + (unsigned)(c - '0')) % 1000;
		} else if (c == ';' || c == 'm') {
			s->style = apply(s->style, number);
			number = 0;
		}
		if (c == 'm')
			break;
	}
	s->at += s->at < s->text.len;
}

static bool is_ascii(sheaf_str s, size_t at)
{
	return at >= s.len || (s.ptr[at] >= ' ' && s.ptr[at] < 0x7f) || s.ptr[at] == '\n' ||
	       s.ptr[at] == '\033';
}

bool styled_next(styled *s, glyph *out)
{
	while (s->at < s->text.len && s->text.ptr[s->at] == '\033')
		read_style(s);
	if (s->at >= s->text.len || s->text.ptr[s->at] == '\n')
		return false;
	size_t end;
	*out = (glyph){.style = s->style, .columns = 1};
	if (s->text.ptr[s->at] == '\t') {
		out->columns = TAB - s->column % TAB;
		out->text = SHEAF_STR(" ");
		end = s->at + 1;
	} else if (is_ascii(s->text, s->at) && is_ascii(s->text, s->at + 1)) {
		end = s->at + 1; /* most text is this */
		out->text = str_make(s->text.ptr + s->at, 1);
	} else {
		end = text_cluster(s->text, s->at);
		out->text = str_make(s->text.ptr + s->at, end - s->at);
		out->columns = text_width(out->text);
	}
	s->at = end;
	s->column += out->columns;
	return true;
}

/* ---- Lines ------------------------------------------------------------- */

static int add_line(lines *l, size_t begin, size_t end, unsigned style)
{
	if (mem_grow((void **)&l->items, &l->room, l->count + 1, sizeof(*l->items)) != 0)
		return SHEAF_NOMEM;
	l->items[l->count++] = (span){begin, end, style};
	return 0;
}

int lines_break(lines *l, size_t columns)
{
	styled s = {.text = buf_view(&l->text)};
	size_t begin = 0;
	unsigned style = 0;
	l->count = 0;
	while (begin < s.text.len) {
		size_t before = s.at;
		unsigned style_before = s.style;
		glyph g;
		if (styled_next(&s, &g)) {
			if (s.column <= columns || before == begin)
				continue;
			/* It goes on the next line. */
			if (add_line(l, begin, before, style) != 0)
				return SHEAF_NOMEM;
			begin = s.at = before;
			style = s.style = style_before;
		} else {
			/* What stands behind the last line break may be the end of a style. */
			bool line_there = s.at < s.text.len || s.column != 0;
			if (line_there && add_line(l, begin, s.at, style) != 0)
				return SHEAF_NOMEM;
			begin = ++s.at;
			style = s.style;
		}
		s.column = 0;
	}
	return l->text.status;
}

styled lines_at(const lines *l, size_t i)
{
	const span *at = &l->items[i];
	return (styled){.text = str_make(l->text.ptr + at->begin, at->end - at->begin),
	                .style = at->style};
}

void lines_done(lines *l)
{
	buf_free(&l->text);
	mem_free(l->items);
	*l = (lines)LINES_INIT;
}
