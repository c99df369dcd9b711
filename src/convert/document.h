/*
 * A JSON document walked from the outside in, with bounded memory: containers
 * are entered, their elements taken or skipped one by one, and everything is
 * known by its place in the file, so that the text around the elements can be
 * kept and a member that stands behind them can be looked at first.
 *
 * Only the containers that are entered are checked; what an element holds is the
 * taker's business. Where the text stops being JSON the walk ends, and
 * document_wrong() says what was expected.
 *
 *     rc = document_open(&d, im->file.ptr, im->err);
 *     if (document_enter(d, im->err) == 1)
 *             while ((rc = document_each(d, &key, im->err)) == 1)
 *                     rc = document_value(d, &v, im->err);    // or document_skip()
 */
#ifndef CONVERT_DOCUMENT_H
#define CONVERT_DOCUMENT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "convert/convert.h"

typedef struct document document;

int document_open(document **out, const char *path, sheaf_error *err);
void document_close(document *d);
void document_closep(document **d);

/* Where the walk is, in bytes and in lines from 1; and going to where it was before. */
uint64_t document_at(const document *d);
uint64_t document_line(const document *d);
typedef struct document_place {
	uint64_t at, line;
	size_t depth;
	bool first;
} document_place;
document_place document_here(const document *d);
void document_back(document *d, document_place place);

/* The byte that comes next, blanks passed: 1, or 0 at the end of the file. */
int document_peek(document *d, char *out, sheaf_error *err);

/* Steps into the array or object that comes next: 1, or 0 if something else comes. */
int document_enter(document *d, sheaf_error *err);

/*
 * Goes to the next element of the container: 1, or 0 when it was left, or at a
 * place that is wrong. `key` is still escaped, {NULL,0} in arrays; valid until
 * the next call.
 */
int document_each(document *d, sheaf_str *key, sheaf_error *err);

typedef struct document_element {
	sheaf_str text; /* valid until the next call */
	uint64_t at, line;
	bool cut;   /* longer than a piece may be: the next call gives more of it */
	bool whole; /* false: the file ended in it */
} document_element;

int document_value(document *d, document_element *out, sheaf_error *err);
int document_skip(document *d, sheaf_error *err);

/* NULL, or what is wrong at the place where the walk ended. */
const char *document_wrong(const document *d);

/* The bytes from one place to another, appended. */
int document_text(document *d, uint64_t from, uint64_t to, buf *out, sheaf_error *err);
uint64_t document_size(const document *d);

/*
 * Copies the values of members of the object that comes next; the walk stays
 * where it is. {NULL,0} for one that is absent or larger than 64 KiB.
 */
int document_members(document *d, const char *const *names, sheaf_str *values, size_t count,
                     arena *a, sheaf_error *err);

/* Blanks between tokens left out, so that a value can be put into a record. */
void document_flatten(buf *out, sheaf_str json);

/* ---- Elements as pieces -------------------------------------------------- */

/*
 * What an element means. It is the piece at hand, parsed, on one line and
 * mended; valid during the call. `key` is still escaped.
 */
typedef int document_take(import *im, sheaf_str key, value element);

/* The text that belongs to the session at hand begins here. */
void document_begin(document *d, uint64_t at);

/*
 * The elements of the container that comes next become pieces of the session at
 * hand, the text before and between them is kept with it. What is no JSON is a
 * problem, and kept. Whatever it returns that is not 0 is passed on at once.
 */
int document_pieces(import *im, document *d, document_take *take);

/* The value that comes next becomes a piece, or several if it is too long for one. */
int document_piece(import *im, document *d, sheaf_str key, document_take *take);

/* The text behind the last piece up to `to` is kept, too; a place where the walk went wrong is
 * reported. */
int document_finish(import *im, document *d, uint64_t to);

#endif
