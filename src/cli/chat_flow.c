/* Showing text as it arrives: made safe, wrapped at words, a word at a time. */
#include "chat_flow.h"

#include <stdio.h>
#include <wchar.h>

#include "base/str.h"

#define WORD_BYTES_MAX 1024u /* of what is longer, the pieces follow one another */
#define TAB_COLUMNS 8u

void flow_start(flow *f, const screen *s, size_t indent, size_t columns)
{
	*f = (flow){.s = s, .indent = indent, .columns = columns};
	f->bytes = f->word = f->out = (buf)BUF_INIT(SIZE_MAX);
}

void flow_done(flow *f)
{
	buf_free(&f->bytes);
	buf_free(&f->word);
	buf_free(&f->out);
}

static void show(flow *f)
{
	print_out(&f->out);
	fflush(stdout);
}

static void break_line(flow *f)
{
	f->breaks++;
	f->column = f->blanks = 0;
}

static void put_word(flow *f)
{
	size_t width = text_width(buf_view(&f->word));
	if (f->word.len == 0)
		return;
	if (f->columns != 0 && !f->fenced && f->column > f->indent &&
	    f->column + f->blanks + width > f->columns)
		break_line(f);
	for (; f->breaks != 0; f->breaks--)
		buf_char(&f->out, '\n');
	if (f->column == 0) {
		text_spaces(&f->out, f->indent);
		f->column = f->indent;
	}
	text_spaces(&f->out, f->blanks);
	buf_str(&f->out, buf_view(&f->word));
	f->column += f->blanks + width;
	f->blanks = 0;
	f->filled = true;
	buf_reset(&f->word);
}

static bool is_wide(uint32_t c)
{
	return c != TEXT_BROKEN && c >= 0x1100 && wcwidth((wchar_t)c) == 2;
}

/* Scripts that write no blanks may be broken anywhere: each of their characters is a word. */
static void add_to_word(flow *f, sheaf_str character, uint32_t c)
{
	size_t before = f->word.len;
	size_t width = text_width(buf_view(&f->word));
	text_safe(&f->word, character, TEXT_ID);
	bool joins = text_width(buf_view(&f->word)) == width;
	if (before == 0 || joins)
		return;
	size_t at = 0;
	bool after_wide = is_wide(text_next(buf_view(&f->word), &at));
	if (!is_wide(c) && !after_wide && before < WORD_BYTES_MAX)
		return;
	f->word.len = before;
	put_word(f);
	text_safe(&f->word, character, TEXT_ID);
}

static size_t used(const flow *f)
{
	return f->column > f->indent ? f->column - f->indent : 0;
}

static void add_character(flow *f, sheaf_str character, uint32_t c)
{
	if (f->ticks < 3)
		f->ticks = c == '`' ? f->ticks + 1 : SIZE_MAX;
	switch (c) {
	case '\n':
		put_word(f);
		f->fenced = f->fenced != (f->ticks == 3);
		f->ticks = 0;
		break_line(f);
		break;
	case ' ':
		put_word(f);
		f->blanks++;
		break;
	case '\t':
		put_word(f);
		f->blanks += TAB_COLUMNS - (used(f) + f->blanks) % TAB_COLUMNS;
		break;
	default:
		add_to_word(f, character, c);
	}
}

/* Whether the bytes at `at` may be the beginning of a character whose rest has yet to come. */
static bool is_unfinished(sheaf_str s, size_t at)
{
	unsigned char first = (unsigned char)s.ptr[at];
	size_t need = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
	if (first == '\r')
		need = 2; /* with the line break after it, it is one */
	return s.len - at < need;
}

void flow_add(flow *f, const char *style, sheaf_str text)
{
	if (style != f->style) {
		bool filled = f->filled;
		flow_end(f);
		if (filled)
			buf_char(&f->out, '\n');
		f->style = style;
		print_on(f->s, &f->out, style);
	}
	if (text.len == 0)
		return;
	buf_str(&f->bytes, text);
	sheaf_str s = buf_view(&f->bytes);
	size_t at = 0;
	while (at < s.len && !is_unfinished(s, at)) {
		size_t from = at;
		uint32_t c = text_next(s, &at);
		if (c == '\r' && s.ptr[at] == '\n')
			continue;
		/* Text begins where there is something to see. */
		if (f->filled || f->word.len != 0 || (c != '\n' && c != '\r'))
			add_character(f, str_make(s.ptr + from, at - from), c);
	}
	memmove(f->bytes.ptr, f->bytes.ptr + at, s.len - at);
	f->bytes.len -= at;
	show(f);
}

void flow_end(flow *f)
{
	if (f->bytes.len != 0) {
		/* What never became whole. */
		text_safe(&f->word, buf_view(&f->bytes), TEXT_ID);
		f->bytes.len = 0;
	}
	put_word(f);
	if (f->filled)
		buf_char(&f->out, '\n');
	if (f->style != NULL)
		print_off(f->s, &f->out);
	f->column = f->breaks = f->blanks = f->ticks = 0;
	f->fenced = f->filled = false;
	f->style = NULL;
	show(f);
}
