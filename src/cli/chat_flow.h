/*
 * A reply on its way to the screen: text in pieces, cut anywhere, becomes safe, wrapped lines.
 *
 * A word is shown when it is whole, a character when all its bytes are there,
 * so that nothing shown has to be taken back.
 */
#ifndef CLI_CHAT_FLOW_H
#define CLI_CHAT_FLOW_H

#include "print.h"

typedef struct flow {
	const screen *s;
	size_t indent;  /* of every line */
	size_t columns; /* where lines are broken; 0: nowhere */
	size_t column;  /* how far the present line goes; 0: nothing is on it */
	size_t breaks;  /* line breaks before the next word: those at the end are never shown */
	size_t blanks;  /* between them and the word */
	bool fenced;    /* in fenced code, which is not broken */
	bool filled;    /* something was shown */
	size_t ticks;   /* the line so far is so many backticks; SIZE_MAX: it is not */
	const char *style;
	buf bytes; /* of a character that is not whole yet */
	buf word;  /* safe */
	buf out;
} flow;

/* Begins. For a pipe, an indent of 0 and no columns. */
void flow_start(flow *f, const screen *s, size_t indent, size_t columns);
void flow_done(flow *f); /* for _cleanup_ */

/* Shows what comes in this style (NULL: plain); another style begins a paragraph of its own. */
void flow_add(flow *f, const char *style, sheaf_str text);
/* Shows the rest and ends the line. */
void flow_end(flow *f);

#endif
