/* What the files of the dispatch share: an open store, and what every call begins and ends with. */
#ifndef STORE_STORE_INSIDE_H
#define STORE_STORE_INSIDE_H

#include "store/store.h"

struct sheaf_store {
	sheaf_store_ops ops; /* a copy: slots that an older, smaller table lacks are NULL here */
	void *backend;
	unsigned generation; /* of the process that opened it */
	bool readonly;
	bool lists_app;
	bool remote;
	int32_t durability;     /* for appends that do not ask */
	int32_t durability_max; /* more is refused */
	int64_t deadline_us;    /* from the beginning of a call */
	char *place;            /* see store_place() */
};

/*
 * The error of one call. Stores get one that is never NULL; on success the
 * caller's is as it was before. A callback of the caller's may write into the
 * very error that the call was given, so the store must be given that one too.
 */
typedef struct call {
	sheaf_error *err;
	sheaf_error before; /* or the error itself, if the caller gave none */
} call;

sheaf_error *call_begin(call *c, sheaf_error *err);
int call_finish(call *c, int rc);
int call_finish_read(call *c, int rc); /* its outcome is never UNKNOWN */

/* Each answers 0 or puts into words what is wrong. */
int call_fault_point(const char *slot, sheaf_error *err);
int call_check_store(const sheaf_store *s, sheaf_error *err);
int call_check_writable(const sheaf_store *s, sheaf_error *err);
int call_check_key(const sheaf_store_key *key, sheaf_error *err);
int call_no_argument(const char *what, sheaf_error *err);
int call_no_slot(const sheaf_store *s, const char *what, sheaf_error *err);

/* Whether a key's part is encoded. */
bool call_part_ok(sheaf_str part);

int64_t call_deadline_from_now(int64_t wait_us);

#endif
