/*
 * Reading a session's log with what it inherits: a fork's records up to its
 * base live in other sessions, and the functions here go there.
 */
#ifndef CORE_READ_H
#define CORE_READ_H

#include "core/session.h"

/* As store_scan(), over own and inherited rows, as far as `head` knows them. */
int read_scan(sheaf_session *s, const sheaf_head *head, const sheaf_scan *scan, sheaf_row_fn fn,
              void *ctx, sheaf_error *err);

/* The seq of an id, own or inherited. SHEAF_NOT_FOUND. */
int read_find(sheaf_session *s, const sheaf_head *head, sheaf_str id, uint64_t *seq,
              sheaf_error *err);

/* The same in what is inherited only. */
int read_find_inherited(sheaf_session *s, const sheaf_head *head, sheaf_str id, uint64_t *seq,
                        sheaf_error *err);

/* One row by seq, given to fn. SHEAF_NOT_FOUND if there is none. */
int read_row(sheaf_session *s, const sheaf_head *head, uint64_t seq, sheaf_row_fn fn, void *ctx,
             sheaf_error *err);

/* The seq of an entry's id. A fact's id is SHEAF_INVALID (kind in the message). SHEAF_NOT_FOUND. */
int read_entry_seq(sheaf_session *s, const sheaf_head *head, sheaf_str id, uint64_t *seq,
                   sheaf_error *err);

/*
 * What names an entry: its id, or a label on it. Writes the id and the seq; a
 * fact's id is SHEAF_INVALID (kind in the message). SHEAF_NOT_FOUND.
 */
int read_resolve(sheaf_session *s, const sheaf_head *head, sheaf_str what, char id[SHEAF_ID_ROOM],
                 uint64_t *seq, sheaf_error *err);

/*
 * Looks at a row's line, whosever it is. Strings that need unescaping and the
 * nested form of flat foreign payloads go into `a`. SHEAF_DAMAGED, SHEAF_FORMAT.
 */
int read_record(record *out, const sheaf_row *row, arena *a, json_doc **doc, sheaf_error *err);

/*
 * The present labels, newest first: fn(ctx, target id, label). Walks the chain
 * of label records only; each target once. fn may call the store.
 */
typedef int (*read_label_fn)(void *ctx, sheaf_str target, sheaf_str label);
int read_labels(sheaf_session *s, const sheaf_head *head, read_label_fn fn, void *ctx,
                sheaf_error *err);

/* All label records, newest first. */
typedef struct label_row {
	uint64_t seq;
	sheaf_str target;
	sheaf_str label; /* len 0: taken away */
	bool latest;     /* no newer one speaks of this target */
} label_row;
typedef int (*read_label_row_fn)(void *ctx, const label_row *row);
int read_label_rows(sheaf_session *s, const sheaf_head *head, read_label_row_fn fn, void *ctx,
                    sheaf_error *err);

/*
 * From an entry to the root, entry by entry, in ranges read backwards that
 * start at the next parent wanted, so that other branches are not read
 * through. fn gets the row and its scanned line and returns 0 to go on, 1 to
 * stop, or a negative code.
 *
 * A parent that cannot be read ends the walk with SHEAF_DAMAGED; with
 * `on_damage` not NULL it is called with the lost seq (0 if not even that is
 * known) and the walk goes on at the nearest earlier readable entry of the same
 * branch. It does so also where a `lost` record stands for what was repaired. A
 * parent that does not precede its child (a cycle in a foreign file) is damage
 * too.
 */
typedef int (*read_entry_fn)(void *ctx, const sheaf_row *row, const record *r);
typedef int (*read_damage_fn)(void *ctx, uint64_t seq);
int read_path(sheaf_session *s, const sheaf_head *head, uint64_t leaf_seq, read_entry_fn fn,
              read_damage_fn on_damage, void *ctx, sheaf_error *err);

#endif
