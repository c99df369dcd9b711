/* A session's first line. */
#ifndef ENTRY_HEADER_H
#define ENTRY_HEADER_H

#include "entry/record.h"

#define HEADER_VERSION 1

typedef struct header_link {
	sheaf_str session; /* encoded */
	uint64_t base;
} header_link;

/* Strings are views or in the arena it was read into. */
typedef struct header {
	bool ours; /* "format":"sheaf" */
	bool hidden;
	uint64_t version;
	sheaf_str id; /* the session id, plain */
	sheaf_str app;
	sheaf_str user;
	sheaf_str timestamp;
	int64_t time_us;
	sheaf_str kind;
	sheaf_str parent_session;
	sheaf_str cwd;
	sheaf_str extra; /* members we do not know, with their commas between them, no braces */
	/* fork */
	sheaf_str source; /* encoded; ptr NULL: no fork */
	sheaf_str at;     /* the leaf at the start */
	uint64_t at_seq;
	uint64_t base;      /* links[0].base */
	uint64_t label_seq; /* the newest inherited label */
	size_t link_count;
	header_link links[SHEAF_FORK_LINKS_MAX];
} header;

/* Writes the line, sealed with its crc, and a line break. */
void header_write(buf *out, const header *h);

/*
 * The members of a caller's extra object, checked: JSON as in a body, no name
 * that a header or a record has itself. A view. SHEAF_INVALID, SHEAF_LIMIT,
 * SHEAF_TOO_LARGE, SHEAF_NOMEM.
 */
int header_extra(sheaf_str *members, sheaf_str object, sheaf_error *err);

/*
 * Reads a first line. For a line that says it is ours or ends in a crc, a bad
 * crc or shape is SHEAF_DAMAGED. Any other session header (a plain session file's) gives
 * ours = false; anything else SHEAF_FORMAT.
 */
int header_read(header *out, sheaf_str line, arena *a, json_doc **doc, sheaf_error *err);

#endif
