/*
 * Reading what a person says: a line editor on a terminal, plain lines elsewhere.
 *
 * A text may have several lines: pasted ones, those made with Alt-Enter, and a
 * line that ends in a backslash goes on in the next.
 */
#ifndef CLI_CHAT_LINE_H
#define CLI_CHAT_LINE_H

#include <stdbool.h>

#include "chat_keys.h"
#include "print.h"

typedef struct line {
	const cli *c;
	bool terminal;
	keys in;
	buf text;
	size_t cursor;
	buf killed;     /* what Ctrl-Y brings back */
	buf draft;      /* what was being typed before an earlier text was looked at */
	char **history; /* oldest first */
	size_t history_count;
	size_t history_room;
	size_t history_at; /* history_count: the draft */
	buf first;         /* what the next text begins with */
	size_t rows_above; /* rows drawn above the one with the cursor */
} line;

/* clang-format off */
#define LINE_INIT(cli_, terminal_)                                                                 \
	{(cli_), (terminal_), KEYS_INIT, BUF_INIT(LINE_MAX_BYTES), 0, BUF_INIT(LINE_MAX_BYTES),    \
	 BUF_INIT(LINE_MAX_BYTES), NULL, 0, 0, 0, BUF_INIT(LINE_MAX_BYTES), 0}
/* clang-format on */
#define LINE_MAX_BYTES ((size_t)4 << 20)

enum {
	LINE_SAID = 0, /* `text` has it, without the last line break */
	LINE_CLOSED,   /* the end of the input */
	LINE_FAILED    /* it cannot be read */
};

int line_read(line *l);

/* What the next text begins with: one after the other. */
void line_prefill(line *l, sheaf_str mark, sheaf_str text);

/* What the arrows bring back. */
void line_remember(line *l, sheaf_str text);
void line_done(line *l); /* for _cleanup_ */

#endif
