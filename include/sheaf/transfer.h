/*
 * Copying a store into another: every session with its bytes, numbers, ids and
 * checksums, forks with what they read, state, and what waits in queues.
 *
 * A copy can be broken off at any moment and run again: what is there already
 * is compared and continued, never overwritten.
 */
#ifndef SHEAF_TRANSFER_H
#define SHEAF_TRANSFER_H

#include "store.h"

SHEAF_BEGIN

/** What was done so far, or in the end. Counts are of sessions where they do not say otherwise. */
typedef struct sheaf_copy_totals {
	size_t size;             /* sizeof(sheaf_copy_totals), set by the caller */
	uint64_t sessions;       /* to be copied, hidden ones that forks read among them */
	uint64_t records;        /* of them, when they were listed */
	uint64_t done;           /* dealt with, in one of the ways below */
	uint64_t copied;         /* were not there */
	uint64_t extended;       /* were there, and had fewer records */
	uint64_t equal;          /* were there */
	uint64_t ahead;          /* were there and have more, nothing of it different */
	uint64_t conflicts;      /* something else is there under the same key; it was left alone */
	uint64_t failed;         /* could not be read, or were deleted meanwhile */
	uint64_t changed;        /* were written to meanwhile: copied up to the revision seen */
	uint64_t records_done;   /* read from the source */
	uint64_t records_copied; /* written */
	uint64_t bytes_copied;
	uint64_t records_verified; /* read at the destination and found to be the same */
	uint64_t state_items;      /* keys of user and app state that were set */
	uint64_t queue_items;      /* items that were put into queues */
} sheaf_copy_totals;

/* clang-format off */
#define SHEAF_COPY_TOTALS_INIT \
	{sizeof(sheaf_copy_totals), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/** What a note is about. */
enum {
	SHEAF_COPY_CONFLICT = 1, /* something else is there under this key */
	SHEAF_COPY_FAILED = 2,   /* could not be copied: `code` says why */
	SHEAF_COPY_CHANGED = 3,  /* written to meanwhile: copied up to `seq` */
	SHEAF_COPY_LEFT = 4      /* something beside the log was not copied: `detail` says what */
};

typedef struct sheaf_copy_note {
	int32_t what;
	int32_t code; /* FAILED: what went wrong */
	sheaf_str app;
	sheaf_str user;
	sheaf_str session; /* "" for what is the owner's or the app's */
	uint64_t seq;      /* the record concerned, 0 if none */
	sheaf_str detail;  /* a sentence */
} sheaf_copy_note;

typedef struct sheaf_copy_options {
	size_t size; /* sizeof(sheaf_copy_options) */
	sheaf_str app;
	sheaf_str user;
	int32_t all_users; /* every user of `app`; `user` is ignored */
	int32_t all_apps;  /* everything in the store */
	int32_t verify;    /* read back what was written; 1 unless taken away */
	int32_t reserved0;
	/** Called after every portion; anything but 0 ends the copy with SHEAF_CANCELLED. May be NULL. */
	int (*progress)(void *ctx, const sheaf_copy_totals *totals);
	/** Called for whatever did not go as it should. May be NULL. */
	void (*note)(void *ctx, const sheaf_copy_note *note);
	void *ctx;
} sheaf_copy_options;

/* clang-format off */
#define SHEAF_COPY_OPTIONS_INIT \
	{sizeof(sheaf_copy_options), {0, 0}, {0, 0}, 0, 0, 1, 0, NULL, NULL, NULL}
/* clang-format on */

/**
 * Copies sessions under their own keys into another store.
 *
 * A session that is there with the same header and the same records gets the
 * records it lacks; one that has other content is a conflict and left alone. A
 * deleted session that forks still read is visible at the destination until all
 * sessions of its owner are there; that is all that is ever deleted. User state
 * goes with the records, in the same step, and the source's values win; app state
 * goes by its times. State of a user or an app that has no session is left behind:
 * nothing says that it is there. Items that wait in a queue are added, claimed ones are not.
 * A session's time to live begins anew.
 *
 * Memory: a portion of 8 MiB, or one batch, and about 100 bytes for each session.
 *
 * @param out      may be NULL; filled also on failure
 * @param options  NULL: the sessions of app "" and user "", verified
 * @return 0; SHEAF_CONFLICT if there was any, SHEAF_DAMAGED if a session could not
 *         be copied (notes say which; all others are); SHEAF_UNSUPPORTED for all
 *         users of a store that cannot list them; SHEAF_CANCELLED; SHEAF_READONLY
 */
SHEAF_API int sheaf_store_copy(sheaf_copy_totals *out, sheaf_store *source,
                               sheaf_store *destination, const sheaf_copy_options *options,
                               sheaf_error *err);

SHEAF_END
#endif
