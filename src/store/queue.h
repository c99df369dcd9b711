/*
 * A queue in memory, for stores that keep theirs in this process: the items in
 * the order of claims, and what each operation does to them. Nothing here is
 * locked; leases are counted in clock_boottime_us().
 */
#ifndef STORE_QUEUE_H
#define STORE_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "store/store.h"

/* Text never changes, so who holds a reference may read it without the queue's lock. */
typedef struct queue_item {
	_Atomic unsigned refs;
	sheaf_str id;
	sheaf_str content;
	sheaf_str environment;
	int32_t priority;
	int32_t claims;
	int64_t enqueued_us;
	int64_t until_us;          /* of the lease; at or before now: it waits */
	uint64_t bytes;            /* the owner's, for its own accounts */
	char token[SHEAF_ID_ROOM]; /* of the last claim, or "" */
	char text[];
} queue_item;

typedef struct queue {
	queue_item **items; /* the greater priority first, then the earlier */
	size_t count;
	size_t room;
} queue;

void queue_free(queue *q); /* empties it; it can be used again */
queue_item *queue_find(const queue *q, sheaf_str id);

/* Whether an item may be added: 0; 1 if it is there already; SHEAF_CONFLICT, SHEAF_LIMIT. */
int queue_check(const queue *q, const sheaf_queue_row *row, sheaf_error *err);
/* Adds an item behind those of its priority. 0 with the item, or SHEAF_NOMEM. */
int queue_add(queue *q, const sheaf_queue_row *row, queue_item **out);
void queue_remove(queue *q, queue_item *item);

/* What a claim takes now: how many of `out`, which has room for its limit. */
size_t queue_pick(const queue *q, const sheaf_claim *claim, int64_t now_us, queue_item **out);
void queue_mark(queue_item *item, sheaf_str token, int64_t until_us);
int64_t queue_lease_end(int64_t now_us, int64_t lease_us);

/* How many items carry the token. */
size_t queue_carrying(const queue *q, sheaf_str token);
/* Removes them; gives the sum of their `bytes`. */
uint64_t queue_ack(queue *q, sheaf_str token);

/* SHEAF_STALE for an ack and SHEAF_BUSY for a cancel, said alike. */
int queue_stale(sheaf_error *err);
int queue_busy(sheaf_error *err);

/*
 * Items as they were at one moment, to be given to a callback when no lock is
 * held any more.
 */
typedef struct queue_copy {
	sheaf_queue_row row;
	queue_item *item;
} queue_copy;

typedef struct queue_copies {
	queue_copy *rows;
	size_t count;
} queue_copies;

int queue_copies_take(queue_copies *c, queue_item *const *items, size_t count, sheaf_error *err);
/* What a claim changes, taken once more: the items were marked meanwhile. */
void queue_copies_refresh(queue_copies *c);
int queue_copies_give(const queue_copies *c, sheaf_queue_fn fn, void *ctx);
void queue_copies_free(queue_copies *c); /* for _cleanup_ */

#endif
