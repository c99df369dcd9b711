/* The inside of a session handle, and what the files of this folder share. */
#ifndef CORE_SESSION_H
#define CORE_SESSION_H

#include <pthread.h>

#include "core/state.h"
#include "entry/head.h"
#include "entry/key.h"
#include "entry/record.h"
#include "sheaf/context.h"
#include "sheaf/session.h"
#include "store/store.h"

struct scratch;

struct sheaf_session {
	sheaf_store *store;
	key_box key;
	bool readonly;           /* asked for at open */
	bool expired_too;        /* ours: works also while the session has expired */
	pthread_mutex_t lock;    /* guards what follows */
	sheaf_head *seen;        /* the head this handle last saw: what a turn expects by default */
	sheaf_head_state opened; /* what opening found: torn bytes, damage */
	handle_state state;      /* what was set on it, what is pending */
	struct scratch *spare;   /* memory of the last append, for the next (core/write.h) */
};

/* The head as it is now, remembered as seen; the caller frees it. SHEAF_GONE: deleted or hidden.
 * SHEAF_EXPIRED. Every read begins with this. */
int session_head(sheaf_session *s, sheaf_head **out, sheaf_head_state *state, sheaf_error *err);
/* The same without having seen it: for what tells the caller nothing of the conversation. */
int session_peek(sheaf_session *s, sheaf_head **out, sheaf_head_state *state, sheaf_error *err);

/* Whether session_read() will do: the store can, and the session is no fork as far as is known. */
bool session_reads(sheaf_session *s);
/* The head as above, and the session's own rows with it, in one step: they count only if this
 * succeeds. The caller looks whether the head is a fork's after all. */
int session_read(sheaf_session *s, const sheaf_scan *scan, sheaf_row_fn fn, void *ctx,
                 sheaf_head **out, sheaf_error *err);

/*
 * 0 for a session that lives; SHEAF_EXPIRED; `gone` when its grace is over, which is
 * how the caller says that there is none (SHEAF_GONE or SHEAF_NOT_FOUND).
 */
int expiry_check(const sheaf_head *head, const sheaf_head_state *state, int gone, sheaf_error *err);

/* For _cleanup_. */
void head_freep(sheaf_head **h);

/*
 * Appends drafts as one batch: resolves given parents, stamps, compares what
 * exists already. The one way from core to a store's append.
 */
int session_append(sheaf_session *s, draft *const *drafts, size_t count,
                   const sheaf_append_options *how, bool is_turn, sheaf_appended *out,
                   sheaf_error *err);

/* ---- Handles ------------------------------------------------------------ */

/* Encodes a key; an empty session part gets a new id. */
int session_key_make(key_box *box, const sheaf_key *key, sheaf_error *err);

/*
 * A handle on a session whose head is known; takes the head over. On failure
 * the head is freed too.
 */
int session_make(sheaf_session **out, sheaf_store *store, const key_box *key, bool readonly,
                 sheaf_head *head, const sheaf_head_state *state, sheaf_error *err);
/* The handle on a session that was just created: if it cannot be had, the session is there all the
 * same, and the outcome unknown. */
int session_made(sheaf_session **out, sheaf_store *store, const key_box *key, sheaf_head *head,
                 sheaf_error *err);

/* Opens a session also if it has expired, and the handle works all the same. */
int session_open_expired(sheaf_session **out, sheaf_store *store, const key_box *key,
                         sheaf_error *err);

/* Remembers a head as seen, by copying it; an older one than the one known is passed over. */
void session_saw(sheaf_session *s, const sheaf_head *head);

/* The header, its strings in `a`. */
int session_header(sheaf_session *s, header *out, arena *a, sheaf_error *err);

/* Builds a head's public form in an arena (session.c). */
int head_view_make(sheaf_head_view *out, const sheaf_session *s, const sheaf_head *head,
                   const sheaf_head_state *state, arena *a, sheaf_error *err);

/* Copies listing fields into an arena; the key's parts come from `key`, which is encoded. */
int info_copy(sheaf_session_info *out, const sheaf_store_key *key, const sheaf_session_info *info,
              arena *a, sheaf_error *err);

/* A branch name as a caller may give it: SHEAF_INVALID, SHEAF_LIMIT. Empty becomes "main". */
int branch_name_check(sheaf_str *name, sheaf_error *err);

/* Text that goes into a record as a JSON string: SHEAF_INVALID unless UTF-8, SHEAF_LIMIT. */
int text_check(sheaf_str text, size_t max, const char *what, sheaf_error *err);

/*
 * Callbacks of a store cannot reach the caller's error: the dispatch puts its own
 * words over it. They fill a local one, and this brings it through.
 */
static inline int err_pass(sheaf_error *err, const sheaf_error *local, int rc)
{
	if (rc != 0 && err != NULL && local->code == rc)
		*err = *local;
	return rc;
}

/* Whether an options struct of the caller's size has a member; older callers have fewer. */
#define OPTION(options, member, fallback)                                                          \
	((options) && (options)->size >= offsetof(__typeof__(*(options)), member) +                \
	                                         sizeof((options)->member)                         \
	         ? (options)->member                                                               \
	         : (fallback))

#endif
