/*
 * Dispatch: the only caller of a store's table. Checks arguments, fills in
 * defaults, refuses what a store cannot do, and gives tests a fault point
 * before every call.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "entry/head.h"
#include "entry/key.h"
#include "sheaf/sys/store.h"

/* Each mirrors the slot of its name; see sheaf/sys/store.h. */
int store_head(sheaf_store *s, const sheaf_store_key *key, int write, sheaf_head *out,
               sheaf_head_state *state, sheaf_error *err);
int store_append(sheaf_store *s, const sheaf_store_key *key, sheaf_append_request *request,
                 sheaf_append_reply *reply, sheaf_error *err);
int store_scan(sheaf_store *s, const sheaf_store_key *key, const sheaf_scan *scan, sheaf_row_fn fn,
               void *ctx, sheaf_error *err);
/* Only of a store that store_reads(). */
int store_read(sheaf_store *s, const sheaf_store_key *key, const sheaf_scan *scan, sheaf_head *out,
               sheaf_head_state *state, sheaf_row_fn fn, void *ctx, sheaf_error *err);
int store_find(sheaf_store *s, const sheaf_store_key *key, sheaf_str id, uint64_t *seq,
               sheaf_error *err);
int store_header(sheaf_store *s, const sheaf_store_key *key, sheaf_row_fn fn, void *ctx,
                 sheaf_error *err);
int store_list(sheaf_store *s, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
               sheaf_error *err);
/* Only of a store that store_stamped(). */
int store_stamps(sheaf_store *s, sheaf_str app, sheaf_str user, sheaf_stamp_seen_fn fn, void *ctx,
                 sheaf_error *err);
int store_remove(sheaf_store *s, const sheaf_store_key *key, sheaf_remove_request *request,
                 sheaf_remove_reply *reply, sheaf_error *err);
int store_replace(sheaf_store *s, const sheaf_store_key *key, uint64_t revision, sheaf_rows_fn next,
                  void *ctx, sheaf_error *err);
int store_check(sheaf_store *s, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
                sheaf_check_totals *totals, sheaf_error *err);
int store_repair(sheaf_store *s, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
                 sheaf_check_totals *totals, sheaf_error *err);

int store_state_read(sheaf_store *s, sheaf_str scope, int app, sheaf_state_fn fn, void *ctx,
                     sheaf_error *err);
int store_state_apply(sheaf_store *s, sheaf_str app, const sheaf_state_item *items, size_t count,
                      sheaf_error *err);
int store_queue_put(sheaf_store *s, const sheaf_store_key *key, const sheaf_queue_row *row,
                    int32_t *existed, sheaf_error *err);
int store_queue_claim(sheaf_store *s, const sheaf_store_key *key, const sheaf_claim *claim,
                      sheaf_queue_fn fn, void *ctx, sheaf_error *err);
int store_queue_ack(sheaf_store *s, const sheaf_store_key *key, sheaf_str token, size_t *count,
                    sheaf_error *err);
int store_queue_cancel(sheaf_store *s, const sheaf_store_key *key, sheaf_str id, int32_t *existed,
                       sheaf_error *err);
int store_queue_list(sheaf_store *s, const sheaf_store_key *key, sheaf_queue_fn fn, void *ctx,
                     sheaf_error *err);
/* Without the slot it sleeps until then. */
int store_wait(sheaf_store *s, const sheaf_store_key *key, uint64_t revision, int64_t deadline_us,
               sheaf_error *err);

bool store_readonly(const sheaf_store *s);
/* The URL it was opened by, without what only says how: the same for all that see the same
 * sessions. It may hold a password. */
const char *store_place(const sheaf_store *s);
int64_t store_patience_us(const sheaf_store *s); /* how long a call may wait */
bool store_remote(const sheaf_store *s);
bool store_reads(const sheaf_store *s);   /* head and records in one step */
bool store_stamped(const sheaf_store *s); /* says which sessions changed */
bool store_states(const sheaf_store *s);  /* keeps user and app state */

/* The built-in tables. */
extern const sheaf_store_ops store_memory_ops;
extern const sheaf_store_ops store_jsonl_ops;

/*
 * Tests only: called before every dispatched call with its slot's name; a
 * non-zero result is returned in its place. NULL switches it off.
 */
void store_set_fault(int (*fault)(void *ctx, const char *slot, sheaf_error *err), void *ctx);

#endif
