/*
 * Text on its way to a terminal: what may reach it, how wide it is, where it is cut.
 *
 * Nothing in a transcript is trusted. Text is made safe first (controls and
 * invisible characters are spelled out) and measured, cut and wrapped after.
 */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>

#include "base/buf.h"

/* Our own drawing, in the locale's character set. */
typedef struct glyphs {
	const char *dot;       /* between two facts on a line */
	const char *ellipsis;  /* something was left out */
	const char *on;        /* an entry on the active path */
	const char *off;       /* one that is not */
	const char *compacted; /* a compaction */
	const char *bar;       /* a column that goes on */
	const char *tee;       /* a side branch begins */
	const char *fold;      /* entries left out of a column */
	const char *call;      /* a tool was called */
	const char *answer;    /* it answered */
	const char *quote;     /* at the left of a tool's output */
	const char *bullet;    /* of a list */
	const char *rule;      /* one column of a line across */
	const char *table_bar; /* between two cells, three columns */
	const char *table_cross;
} glyphs;

/* Reads the locale. Call once, first. */
void text_init(void);
const glyphs *text_glyphs(void);

/* The next code point of `s` at `*at`, which moves on; TEXT_BROKEN for a byte that begins none. */
#define TEXT_BROKEN UINT32_MAX
uint32_t text_next(sheaf_str s, size_t *at);

/* Whether a terminal might obey this character, or hide it from the reader. */
bool text_spelled(uint32_t c);

/* Appends `s` with everything a terminal might obey spelled out: ^[ for ESC, <U+202E> and so on. */
enum {
	TEXT_BLOCK = 0, /* line breaks and tabs stay */
	TEXT_LINE = 1,  /* runs of blanks, tabs and line breaks become one blank; trimmed */
	TEXT_ID = 2     /* blanks stay, tabs and line breaks are spelled out too */
};
void text_safe(buf *out, sheaf_str s, int shape);
void text_safe_of(buf *out, const char *s, int shape);

/* Columns that safe text takes; a tab goes to the next multiple of eight. */
size_t text_width(sheaf_str safe);

/* The end of what a person sees as one character, which begins at `at`: a letter with its accents,
 * an emoji of several code points. */
size_t text_cluster(sheaf_str s, size_t at);

/* Appends one safe line in at most `columns` (0: all of it), with an ellipsis where it was cut. */
void text_cut(buf *out, sheaf_str safe, size_t columns);
/* The same, cut at the front: for paths. */
void text_cut_front(buf *out, sheaf_str safe, size_t columns);
void text_spaces(buf *out, size_t count);

/* How many bytes two strings share at their beginnings. */
size_t text_shared(sheaf_str a, sheaf_str b);

/*
 * Appends safe lines, each behind `indent` blanks and ended by a line break.
 * Lines are broken between words at `columns` (0: nowhere) except in fenced
 * code, which people copy.
 */
void text_wrap(buf *out, sheaf_str safe, size_t indent, size_t columns);

/* "just now", "2 hours ago", a date for what is over a year old or lies ahead. */
void text_ago(buf *out, int64_t then_us, int64_t now_us);

/* How long: "30d", "12h", "90s", in the largest unit that says it to about a tenth. */
void text_span(buf *out, int64_t us);

/* "812 B", "1.3 MB". */
void text_bytes(buf *out, uint64_t bytes);

/* "12,345". */
void text_number(buf *out, uint64_t number);

/* A bar of a part (0 to 1) of so many columns, to an eighth of one where the locale has the blocks
 * for it; what is not 0 is seen. */
void text_bar(buf *out, double part, size_t columns);

/* "1 message", "12,345 messages". */
void text_count(buf *out, uint64_t count, const char *one, const char *many);

#endif
