/*
 * State: small named values beside the conversation.
 *
 * A key says by its prefix whose value it is:
 *
 *   theme         of the session
 *   user:theme    of the user, in all sessions of the app
 *   app:theme     of the app, for all its users
 *   temp:theme    of the invocation: seen through this handle only, never stored
 *
 * A value is any JSON, kept byte for byte; null deletes. Values change with
 * records: a record's `state_delta` (sheaf_entry_options), or values set on a
 * handle, which ride on its next append. Session and user values are stored in
 * the same step as the record. App values belong to no session and are applied
 * after it, at least once; of two records that set one, the later timestamp
 * counts, then the greater id. sheaf_appended.app_state says how that went.
 *
 * State follows the log, not the path: moving a branch takes nothing back. A
 * fork starts with the session's values as they were where it was made.
 */
#ifndef SHEAF_STATE_H
#define SHEAF_STATE_H

#include "session.h"

SHEAF_BEGIN

typedef struct sheaf_state_value {
	sheaf_str key;   /* with its prefix */
	sheaf_str value; /* JSON text */
} sheaf_state_value;

/** Values sorted by key. A copy: later changes do not show in it. */
typedef struct sheaf_state {
	size_t count;
	const sheaf_state_value *const *items;
} sheaf_state;

SHEAF_API void sheaf_state_free(const sheaf_state *state);

/* ---- On a session ------------------------------------------------------ */

/**
 * Sets a value. This handle sees it at once; it is stored with the handle's next
 * append, batch or turn, on its first record. What the record itself sets goes
 * before it. If the append fails the values stay, and repeating it with the same
 * id carries the same ones.
 * @param key    1 to SHEAF_STATE_KEY_BYTES_MAX bytes with its prefix, no controls
 * @param value  one JSON value of at most SHEAF_STATE_VALUE_BYTES_MAX bytes;
 *               null or {NULL,0} deletes
 * @return 0; SHEAF_INVALID, SHEAF_LIMIT, SHEAF_READONLY, SHEAF_NOMEM; SHEAF_UNSUPPORTED
 *         (user: and app: in a store without them)
 */
SHEAF_API int sheaf_session_state_set(sheaf_session *session, sheaf_str key, sheaf_str value,
                                      sheaf_error *err);

/** One value, as a list of one. Caller frees. @return 0; SHEAF_NOT_FOUND, SHEAF_INVALID, SHEAF_LIMIT,
 *  SHEAF_UNSUPPORTED (user: and app: in a store without them), SHEAF_GONE, SHEAF_STORAGE */
SHEAF_API int sheaf_session_state_get(sheaf_state **out, sheaf_session *session, sheaf_str key,
                                      sheaf_error *err);

/** Everything this session sees: the app's values, the user's, its own, and what was set on this
 *  handle. Caller frees. */
SHEAF_API int sheaf_session_state_all(sheaf_state **out, sheaf_session *session, sheaf_error *err);

/** The invocation is over: forgets the handle's temp: values. */
SHEAF_API void sheaf_session_state_end_invocation(sheaf_session *session);

/**
 * Applies the app: values of every record of the session again. What was set
 * since by a later record stays.
 * @param applied  may be NULL: how many keys were given to the store
 * @return 0; SHEAF_UNSUPPORTED, SHEAF_LIMIT, SHEAF_GONE, SHEAF_STORAGE
 */
SHEAF_API int sheaf_session_state_replay(sheaf_session *session, uint64_t *applied,
                                         sheaf_error *err);

/* ---- On a store -------------------------------------------------------- */

/**
 * The state of a user (with `user`), or of an app (`user` {NULL,0}). Caller frees.
 * @return 0, also if there is none; SHEAF_UNSUPPORTED, SHEAF_INVALID, SHEAF_STORAGE
 */
SHEAF_API int sheaf_store_state(sheaf_state **out, sheaf_store *store, sheaf_str app,
                                sheaf_str user, sheaf_error *err);

/**
 * Sets a value of an app, by itself. `key` may have its prefix; `value` as above.
 * @return 0; SHEAF_UNSUPPORTED, SHEAF_INVALID, SHEAF_LIMIT, SHEAF_READONLY,
 *         SHEAF_STORAGE (look at err->outcome)
 */
SHEAF_API int sheaf_store_state_set(sheaf_store *store, sheaf_str app, sheaf_str key,
                                    sheaf_str value, sheaf_error *err);

SHEAF_END
#endif
