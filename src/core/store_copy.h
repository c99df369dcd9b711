/* A copy of a store under way: what its files share. */
#ifndef CORE_STORE_COPY_H
#define CORE_STORE_COPY_H

#include "core/transfer.h"
#include "sheaf/transfer.h"

/* What became of a session. */
enum {
	ITEM_WAITS = 0,
	ITEM_SAME,  /* it is at the destination as it is at the source */
	ITEM_AHEAD, /* the same, and there is more of it */
	ITEM_NOT    /* it is not there, or not as it should be */
};

/* A session of the source. Parts of the key are encoded. */
typedef struct copy_item {
	const char *app; /* then the user, then the session, each with its NUL */
	uint64_t records;
	uint8_t hidden;
	uint8_t status; /* ITEM_… */
} copy_item;

typedef struct store_copy {
	sheaf_store *from;
	sheaf_store *to;
	const sheaf_copy_options *options;
	bool verify;
	bool states; /* both keep them */
	bool queues;
	sheaf_copy_totals totals;
	arena *a;
	copy_item *items; /* by app, user, session */
	size_t count;
	size_t room;
	size_t first; /* the items of the present owner */
	size_t end;
} store_copy;

static inline const char *item_user(const copy_item *i)
{
	return i->app + strlen(i->app) + 1;
}

static inline const char *item_session(const copy_item *i)
{
	const char *user = item_user(i);
	return user + strlen(user) + 1;
}

/* Lists what is to be copied, in order. */
int copy_gather(store_copy *c, sheaf_error *err);

/* Says what did not go as it should. `session` "" for what belongs to no session. */
void copy_note(const store_copy *c, const sheaf_key *key, int32_t what, int32_t code, uint64_t seq,
               const char *format, ...) __attribute__((format(printf, 6, 7)));

/* SHEAF_CANCELLED if the caller has had enough. */
int copy_progress(store_copy *c, sheaf_error *err);

/*
 * Copies one session, whose sources are there. A failure that is the session's
 * own is noted and becomes its status; others end the copy.
 */
int copy_session(store_copy *c, copy_item *it, sheaf_error *err);

/* ---- Beside the log ------------------------------------------------------ */

/* The state items that the destination's owner lacks; all in `a`. */
typedef struct state_diff {
	sheaf_state_item *items;
	size_t count;
	size_t room;
} state_diff;

void state_diff_free(state_diff *d); /* for _cleanup_ */
/* What the owner's state at the destination becomes with these rows; looked up if they change any
 * of it, or `always`. */
int copy_user_state(store_copy *c, const key_box *key, const sheaf_row *added, size_t count,
                    bool always, state_diff *out, arena *a, sheaf_error *err);
int copy_app_state(store_copy *c, const char *app, sheaf_error *err);
/* The time is of the source's clock. */
int copy_queue(store_copy *c, const key_box *key, int64_t now_us, sheaf_error *err);

#endif
