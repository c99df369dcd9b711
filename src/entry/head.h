/*
 * Heads: what a log amounts to, kept up to date record by record.
 *
 * Stores see an opaque sheaf_head (sheaf/sys/store.h); core looks inside with
 * the functions here. A head is copied on every append, so its strings are
 * shared and counted, and only the branches are copied.
 */
#ifndef ENTRY_HEAD_H
#define ENTRY_HEAD_H

#include "entry/header.h"
#include "entry/record.h"
#include "entry/state.h"
#include "sheaf/sys/store.h"

typedef struct head_branch {
	sheaf_str name; /* owned by the head */
	sheaf_str leaf; /* len 0: before the first entry */
	uint64_t leaf_seq;
} head_branch;

size_t head_branch_count(const sheaf_head *h); /* at least 1: main is first */
void head_branch_at(const sheaf_head *h, size_t i, head_branch *out);
bool head_branch_find(const sheaf_head *h, sheaf_str name, head_branch *out); /* empty = main */
uint64_t head_base(const sheaf_head *h);
uint64_t head_last_label(const sheaf_head *h);
sheaf_str head_metadata(const sheaf_head *h);
state_set *head_state(const sheaf_head *h);   /* owned by the head; NULL: empty */
uint64_t head_state_seq(const sheaf_head *h); /* the newest own record that changed it, or 0 */
uint64_t head_app_seq(const sheaf_head *h);   /* the newest own record with app: keys, or 0 */

/* Begins a head from a header. */
int head_begin(sheaf_head *h, const header *hd, sheaf_error *err);

/*
 * Takes a record into account. `seq` is the next number (checked with an
 * assertion); `body` and the rest come from a draft or a scanned line; `delta`
 * is the body's state_delta (state_delta_of()), which drafts know without a
 * search. `doc` is scratch for the few records whose payload must be parsed.
 * SHEAF_LIMIT when a branch too many would be made.
 */
int head_apply(sheaf_head *h, int32_t kind, sheaf_str id, sheaf_str branch, sheaf_str body,
               sheaf_str delta, int64_t time_us, uint64_t seq, json_doc **doc, sheaf_error *err);

#endif
