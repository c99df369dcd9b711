/*
 * Writing: drafts become rows on top of a head. Appends, creations and copies
 * share this.
 */
#ifndef CORE_WRITE_H
#define CORE_WRITE_H

#include "core/session.h"
#include "entry/batch.h"

/*
 * Rows whose lines lie one after the other in one buffer. Rows point into it
 * only after rows_close(), because the buffer moves while it grows.
 */
typedef struct rows {
	buf bytes;
	sheaf_row *items;
	size_t count;
	size_t room;
} rows;

void rows_reset(rows *r);
void rows_free(rows *r);
sheaf_row *rows_add(rows *r); /* zeroed; NULL when out of memory */
void rows_close(rows *r);

/* What one append needs and the next can use again. One is kept with the handle. */
typedef struct scratch {
	rows rows;
	sheaf_head *after; /* the head after the append */
	sheaf_head *known; /* what the handle had seen when the append began */
	json_doc *doc;
	buf body;
	sheaf_str *ids;
	uint64_t *seqs;
	size_t room; /* of ids and seqs */
} scratch;

scratch *scratch_take(sheaf_session *s); /* NULL when out of memory */
void scratch_give(sheaf_session *s, scratch *sc);
void scratch_free(scratch *sc);

/* A given parent that is record `i` of the same batch, in draft.parent_seq. */
#define PARENT_IN_BATCH (UINT64_C(1) << 63)

/*
 * Stamps drafts on top of `next`, which moves on with each. They form a batch;
 * more than SHEAF_BATCH_RECORDS_MAX form several.
 */
int rows_stamp(rows *r, sheaf_head *next, draft *const *drafts, size_t count, json_doc **doc,
               sheaf_error *err);

/* ---- Drafts made here --------------------------------------------------- */

/* Adds a draft of these members (trusted JSON); `options` may be NULL. */
int drafts_add(draft_list *list, const char *type, sheaf_str body,
               const sheaf_entry_options *options, sheaf_error *err);

/* Adds the retention fact that the options of a new session ask for, if they do (expiry.c). */
int drafts_add_ttl(draft_list *list, const sheaf_session_options *options, sheaf_error *err);

/* Bodies. Strings must have been checked. A ptr of NULL leaves a member out. */
void body_label(buf *out, sheaf_str target_id, sheaf_str label);
void body_session_info(buf *out, sheaf_str name, sheaf_str metadata);
void body_leaf(buf *out, sheaf_str branch, sheaf_str entry_id, uint64_t entry_seq);
void body_leaf_gone(buf *out, sheaf_str branch);

/* ---- Appending ---------------------------------------------------------- */

/* An append with all that can be said about it; session_append() is the plain form. */
typedef struct append {
	draft *const *drafts;
	size_t count;
	bool is_turn;
	sheaf_str branch; /* whose leaf is expected and, on STALE, reported; empty = main */
	bool branch_must_exist;
	bool revive; /* write also to a session that has expired */
	const sheaf_append_options *how;
	/* the rest belongs to append.c */
	int32_t expect;
	uint64_t revision;
	sheaf_str leaf;
	scratch *scratch;
	uint64_t first_seq;
	size_t bytes_hint;
	bool refused;                  /* the stamp said no: its code is about the request */
	bool unresolved;               /* a parent is not there: only a repeat can be answered */
	const sheaf_head *resolved_on; /* the head that given parents and targets were found in */
} append;

int append_run(sheaf_session *s, append *a, sheaf_appended *out, sheaf_error *err);

/* Fills what the caller's version of the struct has room for. */
void appended_set(sheaf_appended *out, const sheaf_appended *full);

/* ---- Creating ----------------------------------------------------------- */

/*
 * Creates a session from a header and facts, in one append. `after` becomes its
 * head. `source` as in sheaf_append_request.
 */
int session_create(sheaf_store *store, const sheaf_store_key *key, const header *hd,
                   draft *const *facts, size_t fact_count, sheaf_str source, int32_t durability,
                   sheaf_head *after, sheaf_error *err);

/* The append that creates: a key whose session is past its grace is cleared for it. */
int create_append(sheaf_store *store, const sheaf_store_key *key, sheaf_append_request *request,
                  sheaf_append_reply *reply, sheaf_error *err);

/* Fills a header from the options and the key; its strings are views, its time is in `stamp`. */
int header_from_options(header *hd, const key_box *key, const sheaf_session_options *options,
                        char stamp[CLOCK_TEXT + 1], sheaf_error *err);

#endif
