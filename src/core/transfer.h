/*
 * Rows on their way into another log: copied as they are, or stamped anew. The
 * log they make begins at number 1 and inherits nothing.
 */
#ifndef CORE_TRANSFER_H
#define CORE_TRANSFER_H

#include "core/read.h"
#include "core/write.h"

typedef struct transfer transfer;

/* Adds rows until the portion is full or there are no more, which sets t->ended. */
typedef int (*transfer_fill_fn)(transfer *t, sheaf_error *err);

struct transfer {
	sheaf_session *from;
	const sheaf_head *head; /* the source as it was when the transfer began */
	uint64_t upto;          /* the last record wanted */
	size_t most_bytes;      /* of a portion, unless one batch has more */
	bool whole;             /* one portion, however large */
	transfer_fill_fn fill;
	bool ended;
	uint64_t next; /* the record to read next */
	/* the portion */
	arena *a;
	sheaf_row *rows;
	size_t count;
	size_t room;
	size_t bytes;
	size_t batch_start; /* where the batch begins that is being read */
	size_t folded;      /* how many rows `after` knows */
	sheaf_head *after;  /* what the new log amounts to */
	uint64_t last_label;
	json_doc *doc;
	buf line;
	sheaf_error err; /* what went wrong in a callback */
};

/* What the new log must amount to in the end; where the rows alone do not, facts are added. */
typedef struct transfer_goal {
	const sheaf_head *branches; /* NULL: no branch but main */
	sheaf_str leaf;             /* of main */
	uint64_t leaf_seq;
	sheaf_str name;
	sheaf_str metadata; /* ptr NULL: none */
	int64_t ttl_us;     /* what was inherited may have brought another */
	int64_t grace_us;   /* where there is a ttl */
	bool pinned;
} transfer_goal;

/* Begins with a header, which must say nothing of a fork. */
int transfer_begin(transfer *t, sheaf_session *from, const sheaf_head *head, const header *hd,
                   transfer_fill_fn fill, sheaf_error *err);
void transfer_end(transfer *t); /* for _cleanup_ */

/*
 * Begins one portion after the other by hand: rows of ours from `next` on, which
 * follow a log that amounts to `onto`; NULL: a new one, whose header is the first
 * row.
 */
int transfer_begin_at(transfer *t, sheaf_session *from, const sheaf_head *head, uint64_t next,
                      const sheaf_head *onto, sheaf_error *err);
int transfer_header(transfer *t, const sheaf_row *row, sheaf_error *err);
int transfer_fold(transfer *t, sheaf_error *err); /* brings `after` up to the rows gathered */
int transfer_drop(transfer *t, sheaf_error *err); /* the portion is not needed any more */

/* A session's header as its store has it, and its line, both in the arena. */
int header_load(header *hd, sheaf_str *line, sheaf_store *store, const key_box *key, arena *a,
                sheaf_error *err);

/* Takes what a fork's header says of its links out of it. */
void header_unlink(header *hd);

/* The fill of a plain copy: rows of ours, byte for byte, whole batches. */
int transfer_fill_raw(transfer *t, sheaf_error *err);

/* Adds one record under a new number. */
int transfer_restamp(transfer *t, const record *r, sheaf_str parent_id, uint64_t parent,
                     uint64_t batch_index, uint64_t batch_count, sheaf_error *err);
/* Adds records made here, as a batch; all that was gathered must be folded. */
int transfer_drafts(transfer *t, const draft_list *list, sheaf_error *err);
bool transfer_full(const transfer *t, size_t more_bytes);

/* Adds drafts at the end, and what the goal (may be NULL) asks for besides. */
int transfer_close(transfer *t, const draft_list *more, const transfer_goal *goal,
                   sheaf_error *err);

/* The goal that is the source itself. */
transfer_goal transfer_goal_of(const sheaf_head *head);

/*
 * Runs the transfer into a new session. If it fails half-way the session is
 * removed again. `source` as in sheaf_append_request.
 */
int transfer_store(transfer *t, sheaf_store *store, const key_box *key, const draft_list *more,
                   const transfer_goal *goal, sheaf_str source, int32_t durability,
                   sheaf_error *err);

#endif
