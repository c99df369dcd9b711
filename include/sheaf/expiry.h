/*
 * Expiry: sessions that go by themselves when nobody has written to them for a
 * while. Never by default: a session expires only if it has a `ttl`.
 *
 *   last append        + ttl                       + grace
 *       |--- alive ------|--- expired, undeletable ---|--- as if deleted ---
 *
 * The ttl counts from the last append, whatever was appended, by the clock of
 * the store; timestamps of records have no part in it. An expired session
 * answers SHEAF_EXPIRED to everything, also through handles that are open, and
 * is left out of lists; sheaf_store_undelete() brings it back as it was. When its
 * grace is over it is as if deleted, and sheaf_store_expire() removes it. A fork
 * does not inherit the retention of its source, and what it reads of it stays.
 */
#ifndef SHEAF_EXPIRY_H
#define SHEAF_EXPIRY_H

#include "session.h"

SHEAF_BEGIN

#define SHEAF_TTL_NEVER INT64_C(-1)  /* takes the ttl away */
#define SHEAF_GRACE_NONE INT64_C(-1) /* no grace: expired is deleted */

/** What to change. Zero leaves a member as it is. */
typedef struct sheaf_retention {
	size_t size;      /* sizeof(sheaf_retention) */
	int64_t ttl_us;   /* up to SHEAF_TTL_US_MAX, or SHEAF_TTL_NEVER */
	int64_t grace_us; /* as ttl_us, or SHEAF_GRACE_NONE; SHEAF_GRACE_US_DEFAULT until set */
	int32_t pin;      /* 1: does not expire, whatever its ttl; -1: it does again */
} sheaf_retention;

/* clang-format off */
#define SHEAF_RETENTION_INIT {sizeof(sheaf_retention), 0, 0, 0}
/* clang-format on */

/**
 * Sets how long a session is kept, by appending a `retention` fact. The present
 * values are in its sheaf_session_info.
 * @param how  may be NULL
 * @param out  may be NULL
 * @return 0; SHEAF_INVALID (nothing to change, no time), SHEAF_LIMIT (over 100 years),
 *         SHEAF_EXPIRED, and as any append
 */
SHEAF_API int sheaf_session_retain(sheaf_session *session, const sheaf_retention *retention,
                                   const sheaf_append_options *how, sheaf_appended *out,
                                   sheaf_error *err);

/**
 * Brings a session back that has expired and is still in its grace: appends a
 * `retention` fact, so that its ttl counts from now.
 * @param retention  what else that fact says, e.g. a longer ttl; may be NULL
 * @param existed    1 if the session was alive, and then nothing was changed; may be NULL
 * @return 0; SHEAF_NOT_FOUND (no such session, or its grace is over), SHEAF_INVALID,
 *         SHEAF_LIMIT, SHEAF_READONLY, and as any append
 */
SHEAF_API int sheaf_store_undelete(sheaf_store *store, const sheaf_key *key,
                                   const sheaf_retention *retention, int32_t *existed,
                                   sheaf_error *err);

typedef struct sheaf_expire_options {
	size_t size; /* sizeof(sheaf_expire_options) */
	sheaf_str app;
	sheaf_str user;
	int32_t all_users;   /* every user of `app`; `user` is ignored */
	int32_t all_apps;    /* everything in the store */
	int32_t dry_run;     /* change nothing, only say what would be removed */
	int32_t reserved0;   /* 0 */
	size_t limit;        /* remove at most so many; 0 = all */
	int64_t deadline_us; /* begin no removal after this long; 0 = no end */
} sheaf_expire_options;

/* clang-format off */
#define SHEAF_EXPIRE_OPTIONS_INIT \
	{sizeof(sheaf_expire_options), {0, 0}, {0, 0}, 0, 0, 0, 0, 0, 0}
/* clang-format on */

typedef struct sheaf_expired {
	const sheaf_list *removed; /* never NULL; with dry_run: what would be */
	const sheaf_list *grace;   /* never NULL; expired, can be undeleted */
	int32_t more;              /* there was more to remove: limit, deadline, or in use */
} sheaf_expired;

/**
 * Removes sessions whose grace is over, each as sheaf_store_delete() does: what
 * living forks still read stays, hidden.
 * @param out      may be NULL; caller frees with sheaf_expired_free()
 * @param options  may be NULL: those of the empty app and user
 * @return 0; SHEAF_UNSUPPORTED (cannot list that), SHEAF_READONLY, SHEAF_STORAGE, SHEAF_NOMEM.
 *         UNKNOWN if some were removed before it failed.
 */
SHEAF_API int sheaf_store_expire(sheaf_expired **out, sheaf_store *store,
                                 const sheaf_expire_options *options, sheaf_error *err);
SHEAF_API void sheaf_expired_free(sheaf_expired *expired);

SHEAF_END
#endif
