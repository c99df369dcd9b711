/* A pull under way: what its files share. `here` is the store that gets, `there` the source. */
#ifndef CORE_SYNC_H
#define CORE_SYNC_H

#include "base/map.h"
#include "core/transfer.h"
#include "sheaf/sync.h"

enum {
	SYNC_WAITS = 0,
	SYNC_DONE
};

/* A session of the source. Parts of the key are encoded. */
typedef struct sync_item {
	const char *app; /* then the user, the session and its parent, each with its NUL */
	uint8_t chosen;
	uint8_t same; /* both lists say so */
	uint8_t status;
} sync_item;

typedef struct store_sync {
	sheaf_store *here;
	sheaf_store *there;
	const sheaf_sync_options *options;
	char source[SHEAF_SYNC_NAME_BYTES_MAX + 1];
	bool dry_run;
	sheaf_sync_totals totals;
	int first_code; /* of the first that failed */
	char first_message[160];
	arena *a;
	sync_item *items; /* by app, user, session */
	size_t count;
	size_t room;
} store_sync;

static inline const char *sync_next(const char *part)
{
	return part + strlen(part) + 1;
}

/* What a store is called that has no other name: the directory or file of a path, the host of a
 * URL, or its database. A part of it, with whatever characters. */
sheaf_str sync_name_of(sheaf_str url);

/* Which sessions, in order; SHEAF_NOT_FOUND for one that was named. */
int sync_gather(store_sync *c, sheaf_error *err);
int sync_progress(store_sync *c, sheaf_error *err);
/* The session of the same owner, or NULL. */
sync_item *sync_sibling(store_sync *c, const sync_item *of, sheaf_str session);

/* ---- One session ---------------------------------------------------------- */

/* Where a branch stands, if there is one of that name; no leaf: before the first entry. */
typedef struct place {
	bool exists;
	sheaf_str leaf;
	uint64_t seq; /* where its head was asked */
} place;

enum {
	BRANCH_STAYS = 0,
	BRANCH_MOVES, /* as at the source */
	BRANCH_APART  /* both moved */
};

typedef struct sync_branch {
	sheaf_str name;
	place base; /* when both last agreed */
	place there;
	place here;
	int8_t what;
	bool over;                              /* NAME@SOURCE is not needed any more */
	char aside[SHEAF_BRANCH_BYTES_MAX + 1]; /* NAME@SOURCE; "" if that is too long */
} sync_branch;

/* Something that is set anew and again: who said so last on either side. */
typedef struct latest {
	int64_t rank; /* the greater one holds, then the greater id; INT64_MIN: nobody */
	sheaf_str id;
} latest;

typedef struct sync_key {
	sheaf_str name; /* e.g. "label ID" or "state KEY" */
	latest there;
	latest here;
	size_t row;   /* of the candidate that is to travel for it; SIZE_MAX: none */
	bool arrives; /* state: a record that comes sets it */
} sync_key;

typedef struct session_sync {
	store_sync *c;
	key_box key;
	arena *a;
	sheaf_session *from; /* handles without an open */
	sheaf_session *to;   /* NULL: it is not here */
	sheaf_head *from_head;
	sheaf_head *to_head;
	header from_hd;
	header to_hd;
	sheaf_str from_line;
	sheaf_str to_line;
	sheaf_error err; /* what went wrong in a callback */

	/* where the two part */
	uint64_t start;      /* the source is known here up to this record of it */
	uint64_t here_start; /* and what is here, there, up to this record */
	uint64_t same;       /* so many at the beginning are the same records */
	sheaf_head *base;    /* what both amounted to then; or */
	json_doc *base_doc;  /* what the sync fact says of the source's branches */
	bool has_cursor;

	/* what to do */
	uint64_t *rows; /* candidates, in order; ROW_DROPPED marks those that stay behind */
	size_t row_count;
	size_t row_room;
	uint64_t looked; /* how many records of the source were looked at */
	sync_key *keys;
	size_t key_count;
	size_t key_room;
	map key_at;
	uint64_t key_kinds; /* the kinds of records that set one of them */
	sync_branch *branches;
	size_t branch_count;
	size_t branch_room;
	uint64_t entries;
	uint64_t facts;
	uint64_t moved;
	uint64_t apart;
	uint64_t over;

	/* doing it */
	transfer t;
	uint64_t revision;   /* of this store's session, as far as is known */
	size_t next;         /* the candidate to be sent next */
	uint64_t batch_sent; /* records of the present batch that were sent */
	uint64_t batch_rows; /* that it will have */
	map sent;            /* id → number, of the portion */
	sheaf_str fork_of;   /* encoded: the session that must stay while this one is made */
} session_sync;

#define ROW_DROPPED (UINT64_C(1) << 63)

/* Deals with one session; a failure that is its own is noted, others end the pull. */
int sync_session(store_sync *c, sync_item *it, sheaf_error *err);

/* ---- sync_compare.c: what is the same --------------------------------------- */

/*
 * Whether records 1 … upto are the same in both logs, from their headers, the
 * newest sync facts up to there, and record `upto` itself. Records get equal
 * numbers on two sides by copying, which copies all before them, too, or by
 * chance in a merge, which begins with a sync fact of its own.
 */
int sync_same_upto(session_sync *s, uint64_t upto, bool *same, sheaf_error *err);

/* Finds where the two part: by the newest sync fact that names the source, else by reading. */
int sync_part(session_sync *s, sheaf_error *err);

/* The body of the sync fact that says: all of the source, as its head has it, is here. */
int sync_cursor_body(const session_sync *s, buf *out, sheaf_error *err);

/* Where a branch stood when the two last met. */
place sync_base_place(const session_sync *s, sheaf_str name);
/* Every branch that stood anywhere then. Start with *at = 0. */
bool sync_base_next(const session_sync *s, size_t *at, sheaf_str *name);

/* ---- sync_plan.c: what to do --------------------------------------------------- */

int sync_plan(session_sync *s, sheaf_error *err);
/* Whether the source's value of a key is to hold here. */
bool sync_takes(const session_sync *s, const char *key);
/* When the source last set it. */
int64_t sync_said_at(const session_sync *s, const char *key);

static inline bool sync_is_aside(sheaf_str branch)
{
	return branch.len != 0 && memchr(branch.ptr, '@', branch.len) != NULL;
}

/* ---- sync_merge.c: doing it ------------------------------------------------------ */

/* Appends records of the source as they are to what is here, which is how the source begins;
 * with nothing here, makes the session. */
int sync_extend(session_sync *s, sheaf_error *err);
/* Carries the plan out. */
int sync_merge(session_sync *s, sheaf_error *err);
/* Whether the plan is to do nothing. */
bool sync_merge_is_empty(const session_sync *s);
/* Notes that all of the source is here; `states`: with the user: values of its records. */
int sync_note_cursor(session_sync *s, bool states, sheaf_error *err);

#endif
