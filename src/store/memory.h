/*
 * The inside of the `memory:` store, for the files that make it up:
 * store_memory.c (logs) and memory_*.c (what is kept beside them).
 *
 * One mutex guards everything here: slots of the table take it, all other
 * functions expect it to be held.
 */
#ifndef STORE_MEMORY_H
#define STORE_MEMORY_H

#include <pthread.h>

#include "base/map.h"
#include "store/queue.h"
#include "store/store.h"

/* A record, copied: its line, a line break, its id. */
typedef struct mrow {
	sheaf_row row;
	char text[];
} mrow;

typedef struct mhead {
	size_t refs;
	sheaf_head *head;
	int64_t stored_us; /* when the append was made that it is after */
} mhead;

typedef struct mlog {
	size_t refs;
	char *names;    /* what `name` and `key` point into */
	sheaf_str name; /* "owner/session": the key of the map */
	sheaf_store_key key;
	mrow *header;
	mrow **rows; /* seq base + 1, base + 2, … */
	size_t count;
	size_t room;
	map ids; /* id → seq */
	mhead *now;
	queue queue; /* what waits for the session; not of one that is hidden */
} mlog;

typedef struct mstore {
	pthread_mutex_t mutex;
	map logs;               /* name → mlog */
	map states;             /* owner or app → mstate */
	pthread_cond_t changed; /* some log is not what it was */
} mstore;

void memory_lock(mstore *m);
void memory_unlock(mstore *m);

/* The log of a session, or NULL. */
mlog *mlog_find(const mstore *m, sheaf_str owner, sheaf_str session);
bool mlog_hidden(const mlog *l);

/* SHEAF_NOT_FOUND, said as everywhere. */
int mlog_not_found(sheaf_error *err);

/* memory_wait.c */
int memory_wait(void *backend, const sheaf_store_key *key, uint64_t revision, int64_t deadline_us,
                sheaf_error *err);

/* memory_queue.c */
int memory_queue_put(void *backend, const sheaf_store_key *key, const sheaf_queue_row *row,
                     int64_t deadline_us, int32_t *existed, sheaf_error *err);
int memory_queue_claim(void *backend, const sheaf_store_key *key, const sheaf_claim *claim,
                       sheaf_queue_fn fn, void *ctx, sheaf_error *err);
int memory_queue_ack(void *backend, const sheaf_store_key *key, sheaf_str token,
                     int64_t deadline_us, size_t *count, sheaf_error *err);
int memory_queue_cancel(void *backend, const sheaf_store_key *key, sheaf_str id,
                        int64_t deadline_us, int32_t *existed, sheaf_error *err);
int memory_queue_list(void *backend, const sheaf_store_key *key, sheaf_queue_fn fn, void *ctx,
                      sheaf_error *err);

/* memory_state.c */
typedef struct mstate mstate;
/* What a scope is to become. */
typedef struct mstate_change {
	mstate *scope; /* NULL: nothing changes */
	struct state_image *next;
} mstate_change;
/* Works out what a scope is after these items, and changes nothing. SHEAF_LIMIT, SHEAF_NOMEM. */
int mstate_prepare(mstore *m, sheaf_str scope, bool app, const sheaf_state_item *items,
                   size_t count, mstate_change *change, sheaf_error *err);
void mstate_commit(mstate_change *change);
void mstate_drop(mstate_change *change); /* for _cleanup_ */
void mstate_free_all(mstore *m);
int memory_state_read(void *backend, sheaf_str scope, int app, sheaf_state_fn fn, void *ctx,
                      sheaf_error *err);
int memory_state_apply(void *backend, sheaf_str app, const sheaf_state_item *items, size_t count,
                       int64_t deadline_us, sheaf_error *err);

#endif
