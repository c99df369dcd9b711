/*
 * A file read from the beginning to the end in pieces, with bounded memory,
 * plain or compressed.
 */
#ifndef CONVERT_SOURCE_H
#define CONVERT_SOURCE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/io.h"

/* The longest piece: a record holds it twice, understood and as it is. */
#define SOURCE_PIECE_MAX (SHEAF_RECORD_BYTES_MAX / 2 - 65536)

typedef struct source source;

/* Opens a path for reading: SHEAF_FORMAT for what is no file, SHEAF_NOT_FOUND, SHEAF_DENIED,
 * SHEAF_STORAGE. *out is -1 or open, whatever is returned. */
int source_file(int *out, const char *path, sheaf_error *err);

/* The same, and SHEAF_NOMEM. */
int source_open(source **out, const char *path, sheaf_error *err);
void source_close(source *s);
void source_closep(source **s);

/* Its size and times. */
int source_stat(source *s, io_stat *out, sheaf_error *err);

/* The bytes at the beginning, as many as there are up to 64 KiB; nothing is taken by it. */
int source_head(source *s, sheaf_str *out, sheaf_error *err);

/*
 * The next line without its end: 1, or 0 at the end. A line longer than
 * SOURCE_PIECE_MAX comes in several, all but the last with *cut set. The last
 * line may have no end: source_ended() is false then. Valid until the next call.
 */
int source_line(source *s, sheaf_str *line, bool *cut, sheaf_error *err);

/*
 * At least `need` of the bytes that come next, or all there are: whatever is in
 * memory anyway. Nothing is taken by it; source_skip() does. Valid until the
 * next call.
 */
int source_peek(source *s, size_t need, sheaf_str *out, sheaf_error *err);
void source_skip(source *s, size_t bytes); /* of those that were seen */

/* Whether the line given last had its line break. */
bool source_ended(const source *s);

/* Whether it ended because what is compressed in it is damaged. */
bool source_broken(const source *s);

/* How many bytes were given out, line breaks included. */
uint64_t source_bytes(const source *s);

#endif
