/*
 * Styled text: safe text with our own styles in it, as print_styled() puts them.
 *
 * The text is safe, so every escape sequence in it is ours. Here it is taken
 * apart into what a screen wants: characters, each with its width and style,
 * and lines that fit.
 */
#ifndef CLI_TUI_STYLED_H
#define CLI_TUI_STYLED_H

#include <stdbool.h>

#include "base/buf.h"

/* A style: a colour (0: the terminal's own, else 1 to 8, bright ones 9 to 16) and these. */
enum {
	STYLED_COLOR = 0xff,
	STYLED_BOLD = 1 << 8,
	STYLED_DIM = 1 << 9,
	STYLED_ITALIC = 1 << 10,
	STYLED_UNDERLINE = 1 << 11,
	STYLED_REVERSE = 1 << 12
};

/* One line of styled text on its way to the screen. */
typedef struct styled {
	sheaf_str text;
	size_t at;
	size_t column;
	unsigned style;
} styled;

/* What a person sees as one character. */
typedef struct glyph {
	sheaf_str text; /* a blank for a tab, which is then wider */
	size_t columns;
	unsigned style;
} glyph;

/* The next one; false at the end of the line. */
bool styled_next(styled *s, glyph *out);

/* Where a line lies in a text, and the style it begins in. */
typedef struct span {
	size_t begin;
	size_t end;
	unsigned style;
} span;

typedef struct lines {
	buf text;
	span *items;
	size_t count;
	size_t room;
} lines;

/* clang-format off */
#define LINES_INIT {BUF_INIT(SIZE_MAX), NULL, 0, 0}
/* clang-format on */

/* Finds the lines of `text`, none wider than `columns`. 0 or SHEAF_NOMEM. */
int lines_break(lines *l, size_t columns);
styled lines_at(const lines *l, size_t i);
void lines_done(lines *l); /* can be used again */

#endif
