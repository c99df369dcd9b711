/* What the consistency check knows about one session. */
#ifndef CONFORMANCE_VERIFY_H
#define CONFORMANCE_VERIFY_H

#include "suite.h"

/* All records of a session in order. */
typedef struct verify_log {
	const sheaf_entry **items;
	size_t count;
	size_t room;
} verify_log;

/* A session in short, to compare before and after a restart. */
typedef struct verify_print {
	sheaf_key key;
	uint64_t hash;
	uint64_t revision;
	uint64_t own;
} verify_print;

void verify_session(suite *t, sheaf_store *store, const sheaf_key *key, verify_print *print);

#endif
