/* Building results: entries copied into an arena that the caller frees with one call. */
#ifndef CORE_GATHER_H
#define CORE_GATHER_H

#include "base/map.h"
#include "core/read.h"

/* Entries on their way into a result. Usable as the context of a store's callback. */
typedef struct gather {
	arena *a;
	json_doc *doc;
	bool parse;   /* payloads too */
	bool foreign; /* some line was not ours */
	sheaf_entry **items;
	size_t count;
	size_t room;
	size_t bytes;    /* of the lines */
	sheaf_error err; /* what went wrong in a callback */
} gather;

int gather_begin(gather *g, bool parse, sheaf_error *err);
void gather_end(gather *g); /* for _cleanup_; a finished one has nothing left */

/* Looks at a row's line. A line that cannot be read is not a failure: *readable says. */
int gather_look(gather *g, const sheaf_row *row, record *r, bool *readable);

/* Adds a row; `r` NULL adds it as damaged. */
int gather_add(gather *g, const sheaf_row *row, const record *r);

/* A row callback that adds every row. */
int gather_row(void *ctx, const sheaf_row *row);

void gather_reverse(gather *g);

/* Puts the present labels on the entries. */
int gather_labels(gather *g, sheaf_session *s, const sheaf_head *head, sheaf_error *err);

/*
 * In a foreign file a parent may be a fact; the row knows the entry meant. Puts
 * that entry's id in the place of the fact's.
 */
int gather_parents(gather *g, sheaf_session *s, const sheaf_head *head, sheaf_error *err);

/* Makes the result; takes the arena over. */
int gather_finish(sheaf_records **out, gather *g, uint64_t revision, uint64_t next_seq,
                  sheaf_error *err);

/* Present labels by target; keys and values live in `a`, values are sheaf_str *. */
int labels_load(map *labels, sheaf_session *s, const sheaf_head *head, arena *a, sheaf_error *err);

#endif
