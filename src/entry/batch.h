/* Drafts that are stored together: all of them or none. */
#ifndef ENTRY_BATCH_H
#define ENTRY_BATCH_H

#include "entry/record.h"

/* A list of drafts, each allocated for itself and owned by the list. */
typedef struct draft_list {
	draft **items;
	size_t count;
	size_t room;
} draft_list;

void drafts_free(draft_list *list);

struct sheaf_batch {
	draft_list drafts; /* has room for the end of a turn behind the last */
	size_t bytes;
	draft *end; /* turn_end: kept, so that a repeat has the same id */
	char turn[SHEAF_ID_ROOM];
	size_t turn_len;
};

/*
 * Puts a draft, allocated for itself and filled, behind the others. It is the
 * batch's unless this fails: SHEAF_LIMIT, SHEAF_TOO_LARGE, SHEAF_NOMEM.
 */
int batch_take(struct sheaf_batch *batch, draft *d, sheaf_error *err);

#endif
