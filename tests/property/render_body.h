/*
 * A rendered body as the tests of rendering look at it: a list of blocks in
 * order, whatever the format, and where each mark came to stand.
 */
#ifndef PROPERTY_RENDER_BODY_H
#define PROPERTY_RENDER_BODY_H

#include "property/render_history.h"

typedef enum block_kind {
	BLOCK_OTHER,
	BLOCK_CALL,
	BLOCK_RESULT
} block_kind;

typedef struct seen_block {
	block_kind kind;
	char role;       /* u user, a assistant, s system or developer */
	sheaf_str id;    /* call, result */
	sheaf_str name;  /* call */
	sheaf_str bytes; /* the whole block, in the body */
	bool first;      /* of its message */
} seen_block;

/* Calls `fn` for every block; false if the body is not as it should be. */
typedef void (*block_fn)(void *ctx, const seen_block *b);
bool body_each(int32_t format, sheaf_str body, block_fn fn, void *ctx);

/* The next mark in a text; 0 at the end. Start with *at = 0. */
unsigned mark_next(sheaf_str text, size_t *at);

/* Where things are in a body. */
typedef struct seen {
	uint8_t times[MARKS_MAX];      /* 0, 1, or 2 for more: a mark in the whole body */
	bool has_signature[MARKS_MAX]; /* its signature is in the body */
	char role[MARKS_MAX];          /* the role it was last found under, 0 outside of messages */
	uint16_t call[MARKS_MAX];      /* 1 + the call it is in … */
	uint16_t answers[MARKS_MAX];   /* … or 1 + the result it is in */
	seen_block calls[256];
	size_t call_count;
	seen_block results[256];
	size_t result_count;
	char first_role, last_role;
	sheaf_str first; /* the first block */
	sheaf_str last;
	bool good;
} seen;

void body_see(seen *s, int32_t format, sheaf_str body, unsigned marks);

size_t str_times(sheaf_str text, const char *word); /* how often it is there */

static inline bool str_holds(sheaf_str text, const char *word)
{
	return str_times(text, word) != 0;
}

#endif
