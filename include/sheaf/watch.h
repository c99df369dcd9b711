/*
 * Watching a session: its records as they are stored, by whomever.
 *
 * A watch is pulled: it has no thread and calls nobody. A store's notification
 * only wakes it early and may be lost or false; every watch also looks by
 * itself, at least once a second.
 */
#ifndef SHEAF_WATCH_H
#define SHEAF_WATCH_H

#include "session.h"

SHEAF_BEGIN

typedef struct sheaf_watch sheaf_watch;

/* What one call returns at most; a batch that is larger comes alone. */
#define SHEAF_WATCH_RECORDS_MAX 1000u
#define SHEAF_WATCH_BYTES_MAX ((size_t)16 << 20)

/**
 * Begins to watch what comes after a record. To go on after a restart, give the
 * `revision` of the last sheaf_watch_next().
 * @param out             caller closes
 * @param session         must outlive the watch, which does not change it
 * @param after_revision  0 = from the first record. A fork's inherited records
 *                        are not among what is watched
 * @return 0; SHEAF_GONE; SHEAF_STALE if the session ends before that record
 *         (err->revision says where)
 */
SHEAF_API int sheaf_watch_open(sheaf_watch **out, sheaf_session *session, uint64_t after_revision,
                               sheaf_error *err);

/**
 * The next records in seq order, each once, whole batches, damaged ones as such;
 * waits for the first of them. `revision` of the result is the seq of the last.
 * A failure loses nothing: the next call goes on where this one began.
 * One thread at a time.
 * @param timeout_us  for records: 0 = do not wait; negative = for ever. A store that does
 *                    not answer holds the call until the store's deadline, whatever this says
 * @return 0; SHEAF_TIMEOUT if there is nothing yet; SHEAF_GONE if the session was
 *         deleted (also if another has its key by now); SHEAF_STALE if it ends
 *         before what was seen, as after the loss of a store's newest records;
 *         SHEAF_EXPIRED; SHEAF_CANCELLED
 */
SHEAF_API int sheaf_watch_next(sheaf_records **out, sheaf_watch *watch, int64_t timeout_us,
                               sheaf_error *err);

/**
 * Ends the wait of this and every later sheaf_watch_next(), within 100 ms on
 * every store. From any thread, and from a signal handler.
 */
SHEAF_API void sheaf_watch_cancel(sheaf_watch *watch);

/** NULL is fine. No call may be under way. */
SHEAF_API void sheaf_watch_close(sheaf_watch *watch);

SHEAF_END
#endif
