/* What the files of the Markdown renderer share: text with styles, rows of it, a page of lines. */
#ifndef CLI_MARKDOWN_INSIDE_H
#define CLI_MARKDOWN_INSIDE_H

#include "markdown.h"

/* Safe text whose styles change at the ends of its pieces. Line breaks part it. */
typedef struct md_piece {
	size_t end; /* in the text */
	unsigned style;
} md_piece;

typedef struct md_flow {
	sheaf_str text;
	const md_piece *pieces;
	size_t count;
} md_flow;

/* ---- Rows -------------------------------------------------------------- */

typedef struct md_cursor {
	md_flow flow;
	size_t at;    /* where the next row begins */
	size_t piece; /* the first piece that does not end before it */
} md_cursor;

typedef struct md_row {
	size_t begin;
	size_t end;
	size_t columns;
} md_row;

/*
 * The next row of at most `room` columns (0: any number); false at the end.
 * Broken between words, and between the wide characters of scripts that write no
 * blanks; with `fit` a word that is wider than a row is broken anywhere.
 */
bool md_next_row(md_cursor *w, size_t room, bool fit, md_row *row);

/* Columns of the widest line, unbroken. */
size_t md_flow_width(const md_flow *flow);

/* ---- The page ---------------------------------------------------------- */

typedef struct md_line {
	size_t first; /* run */
	size_t count;
	size_t columns;
} md_line;

typedef struct md_page {
	arena *memory;
	markdown_run *runs;
	size_t run_count;
	size_t run_room;
	md_line *lines;
	size_t line_count;
	size_t line_room;
	md_line open;    /* the line that is being made */
	size_t runs_max; /* a page that grows beyond these is given up */
	size_t bytes_left;
	int status; /* 0, SHEAF_NOMEM or SHEAF_TOO_LARGE */
} md_page;

void md_put(md_page *p, sheaf_str text, unsigned style, size_t columns);
void md_put_blanks(md_page *p, size_t count);
void md_put_row(md_page *p, md_cursor *w, const md_row *row);
void md_end_line(md_page *p);

/* ---- Tables ------------------------------------------------------------ */

enum {
	MD_LEFT,
	MD_CENTER,
	MD_RIGHT
};

typedef struct md_cell {
	md_flow flow;
	int align;
} md_cell;

typedef struct md_table {
	md_cell *cells; /* row after row, the heading first */
	size_t count;
	size_t room;
	size_t columns; /* of the table, so many cells a row */
} md_table;

/* What stands before every line of it. */
typedef void md_prefix(void *by);

/* Lays a table out in `room` columns (0: any number): as a grid, or if that is too narrow for one,
 * each row as a list of its cells. */
void md_put_table(md_page *p, const md_table *t, size_t room, md_prefix *prefix, void *by);

#endif
