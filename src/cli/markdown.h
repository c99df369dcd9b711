/*
 * Markdown as lines for a terminal: what a text says, laid out in so many columns.
 *
 *     markdown *text;
 *     if (markdown_read(&text, said, 80, MARKDOWN_MARKS) != 0) ...
 *     for (size_t i = 0; i < text->count; i++)
 *             for (size_t k = 0; k < text->lines[i].count; k++)
 *                     show(text->lines[i].runs[k].text, text->lines[i].runs[k].style);
 *     markdown_free(text);
 *
 * The text may be hostile. Whatever a terminal might obey or hide is spelled out,
 * also where an entity (&#27;) stands for it; nesting is drawn to a depth; a text
 * that is very long, or would grow far beyond its size, is laid out as it stands.
 */
#ifndef CLI_MARKDOWN_H
#define CLI_MARKDOWN_H

#include "print.h"

/* How a run looks; these add up. */
enum {
	MARKDOWN_STRONG = 1,
	MARKDOWN_EMPHASIS = 2,
	MARKDOWN_STRIKE = 4,
	MARKDOWN_CODE = 8,
	MARKDOWN_LINK = 16,
	MARKDOWN_HEADING = 32,
	MARKDOWN_DIM = 64, /* not of the text: bars, bullets, rules, addresses of links */
	MARKDOWN_ADDED = 128,
	MARKDOWN_REMOVED = 256
};

typedef struct markdown_run {
	sheaf_str text; /* safe, without tabs and line breaks */
	unsigned style;
} markdown_run;

typedef struct markdown_line {
	const markdown_run *runs;
	size_t count;
	size_t columns; /* it takes */
} markdown_line;

/* Owns all that it points to. */
typedef struct markdown {
	const markdown_line *lines;
	size_t count;
	arena *memory;
} markdown;

enum {
	MARKDOWN_MARKS = 1, /* styles will not be seen: keep the marks that stand for them */
	MARKDOWN_FIT = 2    /* break code and long words, too, rather than be wider */
};

/* Longer texts are not parsed: nobody reads them so, and time must not run away. */
#define MARKDOWN_MAX ((size_t)256 << 10)

/* `columns` 0 = as wide as it needs. 0 or SHEAF_NOMEM. */
int markdown_read(markdown **out, sheaf_str text, size_t columns, int flags);
void markdown_free(markdown *m);
void markdown_freep(markdown **m); /* for _cleanup_ */

/* A line in the colours of a screen, without its line break. */
void markdown_put(const screen *s, buf *out, const markdown_line *line);

#endif
