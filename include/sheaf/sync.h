/*
 * Taking into one store what another has: sheaf pull, and with the stores
 * exchanged sheaf push. Both may have gone on since they last met.
 *
 * A session that is not here is copied, numbers and bytes as they are. One that
 * only the source has continued is continued here the same way. One that both
 * have continued is merged:
 *
 *  - Entries that are not here, by id, are appended under new numbers, with their
 *    own ids, parents, times and bodies; batches stay batches.
 *  - A branch that moved only at the source moves here, too. One that moved only
 *    here stays. Where both moved, this one stays and a branch NAME@SOURCE stands
 *    where the source's does; the entries that came with it are on that branch.
 *    Branches with an @ in their name are each store's own and do not travel.
 *  - What was ended, summed up or imported (turn_end, summary, source, facts of
 *    unknown type) comes along. Of what is set anew and again (labels, todos,
 *    plans, the name, metadata, how long it is kept, keys of the session's state)
 *    the later one holds, by the time of the record and then its id; of imports
 *    the one that came further.
 *  - user: values of what arrives are set where the user has none of that key;
 *    app: values go by their times, as always. Queues stay where they are.
 *  - A `sync` fact notes how far the source was taken in, so that the next pull
 *    reads only what is new there.
 *
 * Usage is added up from records, each of which is here once. Deleting does not
 * travel: what is deleted at the source stays here, what is deleted here comes
 * back with the next pull. A fork stays one if what it reads is the same here,
 * else it becomes a copy.
 *
 * A pull can be broken off at any moment and run again. Run a second time, it
 * writes nothing. After a pull in each direction both stores have the same
 * entries, and every branch is the same or is there as NAME@SOURCE.
 */
#ifndef SHEAF_SYNC_H
#define SHEAF_SYNC_H

#include "store.h"

SHEAF_BEGIN

#define SHEAF_SYNC_NAME_BYTES_MAX 32u

/** What was done so far, or in the end; with `dry_run`, what would be. */
typedef struct sheaf_sync_totals {
	size_t size;           /* sizeof(sheaf_sync_totals), set by the caller */
	uint64_t sessions;     /* to be looked at */
	uint64_t done;         /* dealt with, in one of the ways below */
	uint64_t copied;       /* were not here */
	uint64_t extended;     /* had gone on at the source only */
	uint64_t merged;       /* had gone on at both */
	uint64_t same;         /* the source had nothing new */
	uint64_t conflicts;    /* have other content under the same id; left as they are */
	uint64_t failed;       /* could not be read or written */
	uint64_t left;         /* deleted or expired here, or foreign: left as they are */
	uint64_t entries;      /* that came */
	uint64_t facts;        /* that came; those that sync itself writes are not counted */
	uint64_t bytes;        /* written */
	uint64_t branches;     /* that were moved, made or deleted as they were at the source */
	uint64_t apart;        /* branches that moved at both: NAME@SOURCE was set */
	uint64_t records_read; /* at the source */
} sheaf_sync_totals;

/* clang-format off */
#define SHEAF_SYNC_TOTALS_INIT \
	{sizeof(sheaf_sync_totals), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/** What became of a session. */
enum {
	SHEAF_SYNC_COPIED = 1,
	SHEAF_SYNC_EXTENDED = 2,
	SHEAF_SYNC_MERGED = 3,
	SHEAF_SYNC_CONFLICT = 4, /* nothing of it was written: `detail` names the record */
	SHEAF_SYNC_FAILED = 5,   /* `code` and `detail` say why */
	SHEAF_SYNC_LEFT = 6      /* nothing was done, and nothing is wrong: `detail` says why */
};

/** One session with which something was, or would be, done. Strings live during the call. */
typedef struct sheaf_sync_note {
	int32_t what;
	int32_t code;
	sheaf_str app;
	sheaf_str user;
	sheaf_str session;
	sheaf_str name; /* of the session at the source */
	uint64_t entries;
	uint64_t facts;
	uint64_t branches;
	uint64_t apart;
	sheaf_str branch; /* MERGED: the first that was set apart, as NAME@SOURCE; else {NULL,0} */
	sheaf_str detail; /* a sentence, or {NULL,0} */
} sheaf_sync_note;

typedef struct sheaf_sync_options {
	size_t size; /* sizeof(sheaf_sync_options) */
	sheaf_str app;
	sheaf_str user;
	int32_t all_users; /* every user of `app`; `user` is ignored */
	int32_t all_apps;  /* everything in the source */
	const sheaf_str
		*sessions; /* only these of app and user, with their sub-agents; NULL: all */
	size_t session_count;
	sheaf_str source; /* what the source is called here, 1 to 32 of A-Z a-z 0-9 . _ -; empty:
	                     the directory or the host of its URL */
	int32_t dry_run;  /* look, and write nothing */
	int32_t reserved0;
	/** Called now and then; anything but 0 ends the pull with SHEAF_CANCELLED. May be NULL. */
	int (*progress)(void *ctx, const sheaf_sync_totals *totals);
	/** Called for every session that is not the same already. May be NULL. */
	void (*note)(void *ctx, const sheaf_sync_note *note);
	void *ctx;
} sheaf_sync_options;

/* clang-format off */
#define SHEAF_SYNC_OPTIONS_INIT \
	{sizeof(sheaf_sync_options), {0, 0}, {0, 0}, 0, 0, NULL, 0, {0, 0}, 0, 0, NULL, NULL, NULL}
/* clang-format on */

/**
 * Takes into `store` what `source` has of the sessions chosen.
 *
 * What both lists say of a session decides whether it is looked at: one with the
 * same number of records and messages, the same times and the same usage is the
 * same. For the others it costs what is new, or both logs once when they were
 * never merged before. Memory: a portion of 8 MiB, or one batch; about 250 bytes
 * for each session, and 8 for each record that comes.
 *
 * A session whose id was given to another one here (it was not begun at the same
 * moment), or that has other content under the same record id, is a conflict.
 *
 * @param out      may be NULL; filled also on failure
 * @param options  NULL: the sessions of app "" and user ""
 * @return 0; SHEAF_CONFLICT if there was any; the code of the first session that
 *         failed (all others are done in both cases, and notes say which were not);
 *         SHEAF_NOT_FOUND for a session that was named and is not at the source;
 *         SHEAF_UNSUPPORTED for all users of a store that cannot list them;
 *         SHEAF_INVALID, SHEAF_LIMIT, SHEAF_CANCELLED, SHEAF_READONLY
 */
SHEAF_API int sheaf_store_pull(sheaf_sync_totals *out, sheaf_store *store, sheaf_store *source,
                               const sheaf_sync_options *options, sheaf_error *err);

SHEAF_END
#endif
