/* What a case leaves behind and the runner frees: handles, results, memory. */
#ifndef CONFORMANCE_TRASH_H
#define CONFORMANCE_TRASH_H

#include "suite.h"

enum {
	TRASH_NONE,
	TRASH_MEMORY,
	TRASH_SESSION,
	TRASH_RECORDS,
	TRASH_HEAD,
	TRASH_TREE,
	TRASH_LIST,
	TRASH_CONTEXT,
	TRASH_BATCH
};

typedef struct trash {
	int kind;
	const void *thing;
} trash;

void trash_add(suite *t, int kind, const void *thing);
/* Forgets a thing the case has freed itself. */
void trash_forget(suite *t, const void *thing);
/* Closes the sessions only. */
void trash_sessions(suite *t);
void trash_all(suite *t);

#endif
