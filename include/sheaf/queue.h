/*
 * The queue of a session: input that waits until somebody works on it.
 *
 * Producers enqueue; a worker claims what comes first, works, and acknowledges
 * with the token the claim gave it. A claim is a lease: if the worker dies, its
 * items wait again once the time is over. So delivery is at least once, and a
 * worker that comes late is told SHEAF_STALE. Order: the greater priority first,
 * then what came first.
 *
 *     sheaf_queue_merged *work;
 *     sheaf_session_merge_all(&work, session, NULL, &err);
 *     if (work->count != 0) {
 *             … append work->content to the session, let a model answer …
 *             sheaf_session_ack(session, work->token, &err);
 *     }
 *     sheaf_queue_merged_free(work);
 *
 * A queue belongs to its session and is deleted with it; it does not touch the
 * revision, and neither forks nor sheaf_session_copy() take it along;
 * sheaf_store_copy() takes what waits. Leases are counted by the store's clock. A
 * store without queues (see sheaf_store_describe()) answers SHEAF_UNSUPPORTED to
 * everything here, a deleted session SHEAF_GONE, one that has expired
 * SHEAF_EXPIRED.
 */
#ifndef SHEAF_QUEUE_H
#define SHEAF_QUEUE_H

#include "session.h"

SHEAF_BEGIN

/* ---- Producers --------------------------------------------------------- */

typedef struct sheaf_enqueue_options {
	size_t size;           /* sizeof(sheaf_enqueue_options) */
	sheaf_str id;          /* the caller's; else a new UUIDv7 */
	sheaf_str environment; /* one JSON value that goes with it, or {NULL,0} */
	int32_t priority;      /* greater comes first; 0 unless given */
	int32_t reserved0;
} sheaf_enqueue_options;

/* clang-format off */
#define SHEAF_ENQUEUE_OPTIONS_INIT {sizeof(sheaf_enqueue_options), {0, 0}, {0, 0}, 0, 0}
/* clang-format on */

/** What an enqueue did. `id` is filled on failure too, for the repeat. */
typedef struct sheaf_enqueued {
	size_t size; /* sizeof(sheaf_enqueued), set by the caller */
	char id[SHEAF_ID_ROOM];
	int32_t existed; /* it waits already, or is being worked on; nothing was added */
	int32_t reserved0;
} sheaf_enqueued;

/* clang-format off */
#define SHEAF_ENQUEUED_INIT {sizeof(sheaf_enqueued), {0}, 0, 0}
/* clang-format on */

/**
 * Adds an item. Its id is what makes a repeat safe, as long as the item is there.
 * @param content  borrowed; UTF-8; with the environment at most SHEAF_QUEUE_ITEM_BYTES_MAX bytes
 * @param options  may be NULL
 * @param out      may be NULL
 * @return 0; SHEAF_CONFLICT (the id is there with other content, environment or
 *         priority), SHEAF_LIMIT (too large, or SHEAF_QUEUE_ITEMS_MAX are there),
 *         SHEAF_INVALID, SHEAF_GONE, SHEAF_EXPIRED, SHEAF_READONLY, SHEAF_UNSUPPORTED;
 *         SHEAF_STORAGE with outcome UNKNOWN: repeat with the same id
 */
SHEAF_API int sheaf_session_enqueue(sheaf_session *session, sheaf_str content,
                                    const sheaf_enqueue_options *options, sheaf_enqueued *out,
                                    sheaf_error *err);

/**
 * Takes an item back. `existed` (may be NULL) says whether there was one.
 * @return 0, also if there is none; SHEAF_BUSY while it is claimed
 */
SHEAF_API int sheaf_session_cancel(sheaf_session *session, sheaf_str id, int32_t *existed,
                                   sheaf_error *err);

/* ---- Workers ----------------------------------------------------------- */

/** One item, owned by the result it came in. */
typedef struct sheaf_queue_item {
	sheaf_str id;
	sheaf_str content;
	sheaf_str environment; /* JSON as given, or {NULL,0} */
	int32_t priority;
	int32_t claims; /* how often it was claimed, this time included: from 2 on somebody
	                   before may have worked on it */
	int64_t enqueued_us;
	int64_t claimed_until_us; /* 0: it waits */
} sheaf_queue_item;

typedef struct sheaf_queue_items {
	size_t count;
	const sheaf_queue_item *const *items;
	sheaf_str token; /* of a claim that got something, NUL-terminated; else {NULL,0} */
} sheaf_queue_items;

typedef struct sheaf_claim_options {
	size_t size;      /* sizeof(sheaf_claim_options) */
	int64_t lease_us; /* 0 = 60 s; at most a day */
	size_t limit;     /* items at most; 0 = 1, for merge_all 100; at most
	                     SHEAF_QUEUE_MERGE_ITEMS_MAX */
} sheaf_claim_options;

/* clang-format off */
#define SHEAF_CLAIM_OPTIONS_INIT {sizeof(sheaf_claim_options), 0, 0}
/* clang-format on */

/**
 * Claims the items that come first, all under one token. Fewer than `limit` if
 * together they would be larger than SHEAF_RECORD_BYTES_MAX.
 * @param out      caller frees; empty, without a token, if nothing waits
 * @param options  may be NULL
 * @return 0; SHEAF_INVALID, SHEAF_LIMIT, SHEAF_GONE, SHEAF_EXPIRED, SHEAF_UNSUPPORTED. After an
 *         outcome UNKNOWN the items, if they were claimed, wait again when the lease is over.
 */
SHEAF_API int sheaf_session_claim(sheaf_queue_items **out, sheaf_session *session,
                                  const sheaf_claim_options *options, sheaf_error *err);

/**
 * Removes what was claimed under the token: the work is done. Also when the
 * lease is over, as long as nobody else has claimed any of it; of what others
 * claimed nothing is removed.
 * @return 0; SHEAF_STALE if nothing carries the token: it was claimed by somebody
 *         else meanwhile, or acknowledged before
 */
SHEAF_API int sheaf_session_ack(sheaf_session *session, sheaf_str token, sheaf_error *err);

/** Claimed items as one input. */
typedef struct sheaf_queue_merged {
	size_t count;
	const sheaf_str *ids;  /* in the order of their contents */
	sheaf_str content;     /* joined by line breaks */
	sheaf_str environment; /* the last that is not empty, or {NULL,0} */
	sheaf_str token;       /* NUL-terminated; {NULL,0} with count 0 */
} sheaf_queue_merged;

/**
 * Claims what waits, up to SHEAF_QUEUE_MERGE_ITEMS_MAX items and
 * SHEAF_QUEUE_MERGE_BYTES_MAX bytes of merged content (the first item whatever
 * its size), in one step and under one token.
 * @param out  caller frees; count 0 if nothing waits
 */
SHEAF_API int sheaf_session_merge_all(sheaf_queue_merged **out, sheaf_session *session,
                                      const sheaf_claim_options *options, sheaf_error *err);

/** Everything in the queue in the order of claims, what is claimed too. Claims nothing. */
SHEAF_API int sheaf_session_pending(sheaf_queue_items **out, sheaf_session *session,
                                    sheaf_error *err);

SHEAF_API void sheaf_queue_items_free(const sheaf_queue_items *items);
SHEAF_API void sheaf_queue_merged_free(const sheaf_queue_merged *merged);

SHEAF_END
#endif
