/*
 * The contract between the library and a place that keeps bytes.
 *
 * A store moves rows and a head. It knows no tree, no context and no JSON: what
 * a record means is decided once, above, so that every store answers alike.
 * docs/store-contract.md tells the story; this header is the law. It may
 * change in a minor release; `size` in each table lets old and new meet.
 *
 * Rules that hold for every slot:
 *  - Calls come from many threads at once.
 *  - Keys arrive encoded (see sheaf_key_encode()) and NUL-terminated.
 *  - Strings given to a callback are valid only during it.
 *  - 0 or a negative code; `err` is never NULL here. A write that may have
 *    happened is marked SHEAF_UNKNOWN; anything not marked certainly did not.
 *  - A slot the store does not have answers SHEAF_UNSUPPORTED (the dispatch
 *    does that for a NULL slot that is not required).
 */
#ifndef SHEAF_SYS_STORE_H
#define SHEAF_SYS_STORE_H

#include "../store.h"

SHEAF_BEGIN

/** A key as stores see it: every part encoded; owner = app "/" user. */
typedef struct sheaf_store_key {
	sheaf_str owner;
	sheaf_str app;
	sheaf_str user;
	sheaf_str session;
} sheaf_store_key;

/** One record. `bytes` is its line without the line break; a '\n' follows it in memory. */
typedef struct sheaf_row {
	uint64_t seq;    /* the header has the base: 0 unless the session is a fork */
	uint64_t parent; /* an entry's parent; a label's predecessor among the labels; else 0 */
	int32_t kind;
	int32_t damaged; /* from scan: the record cannot be read; bytes hold what is there */
	sheaf_str id;
	sheaf_str bytes;
} sheaf_row;

/*
 * ---- Heads --------------------------------------------------------------
 * What a log amounts to: revision, branches, name, counts. Opaque to stores,
 * which keep it, copy it, or write it down as bytes.
 */
typedef struct sheaf_head sheaf_head;

SHEAF_API sheaf_head *sheaf_head_new(void); /* NULL when out of memory */
SHEAF_API void sheaf_head_free(sheaf_head *head);
/** Makes `to` equal to `from`, reusing its memory. On failure `to` is unchanged. */
SHEAF_API int sheaf_head_copy(sheaf_head *to, const sheaf_head *from, sheaf_error *err);
SHEAF_API uint64_t sheaf_head_revision(const sheaf_head *head);
/** The listing fields; key parts are not among them (the store knows the key). Owned by the head. */
SHEAF_API void sheaf_head_info(const sheaf_head *head, sheaf_session_info *out);
SHEAF_API int sheaf_head_hidden(const sheaf_head *head);
SHEAF_API void sheaf_head_hide(sheaf_head *head);
/** The sessions a fork reads: link `i` says records up to `base` are read from `session`
 * (encoded, of the same owner). Links go from the nearest to the farthest, bases descend.
 * Returns 0 when there is no link `i`. */
SHEAF_API int sheaf_head_link(const sheaf_head *head, size_t i, sheaf_str *session, uint64_t *base);

/**
 * Whether a session's time is over, SHEAF_EXPIRY_*: a ttl, no pin, and stored_us + ttl_us is not
 * after now_us. `stored_us` is when its last append was stored, both are of the store's clock. A
 * store that decides in another place compares ttl_us, grace_us and pinned of the info the same way.
 */
SHEAF_API int sheaf_head_expired(const sheaf_head *head, int64_t stored_us, int64_t now_us);
/** Fills stored_us and expired of what sheaf_head_info() gave, as lists must. */
SHEAF_API void sheaf_info_clock(sheaf_session_info *info, int64_t stored_us, int64_t now_us);

/** Writes the head as bytes into memory of the caller: returns the size needed, writes if it fits. */
SHEAF_API size_t sheaf_head_encode(const sheaf_head *head, void *out, size_t room);
/** The reverse. @return 0; SHEAF_DAMAGED for bytes that are no head; SHEAF_NOMEM */
SHEAF_API int sheaf_head_decode(sheaf_head *head, const void *bytes, size_t len, sheaf_error *err);

/*
 * The session's state belongs to the head but is not among those bytes: it may
 * have SHEAF_STATE_BYTES_MAX and changes seldom. A store writes it down beside
 * them when it changed, and gives it to every head that it decodes.
 */
/** Whether two heads have different states; `b` was stamped on top of `a`. 0 or 1. */
SHEAF_API int sheaf_head_state_changed(const sheaf_head *a, const sheaf_head *b);
/** As sheaf_head_encode(). An empty state has bytes too. */
SHEAF_API size_t sheaf_head_state_encode(const sheaf_head *head, void *out, size_t room);
/** Into a head that was decoded, which has none then. @return as sheaf_head_decode() */
SHEAF_API int sheaf_head_state_decode(sheaf_head *head, const void *bytes, size_t len,
                                      sheaf_error *err);

/**
 * Takes the next record into account, as stores do that rebuild a head from a
 * log. `row->bytes` must be a verified line; seq must follow the head's
 * revision (the header comes first, into a new head). Fills row->parent, kind
 * and id from the line where `seq_of` resolves the parent's id.
 * @return 0; SHEAF_DAMAGED for a line that cannot follow; SHEAF_NOMEM
 */
typedef int (*sheaf_seq_of_fn)(void *ctx, sheaf_str id, uint64_t *seq); /* 1 found, 0 not */
SHEAF_API int sheaf_head_fold(sheaf_head *head, sheaf_row *row, sheaf_seq_of_fn seq_of, void *ctx,
                              sheaf_error *err);

/*
 * ---- State --------------------------------------------------------------
 * Session state is a part of the head and no concern of stores. A user's state
 * belongs to the owner and changes only with an append; an app's belongs to no
 * owner and changes by state_apply alone.
 */
typedef struct sheaf_state_item {
	sheaf_str key;   /* without its prefix; 1 to SHEAF_STATE_KEY_BYTES_MAX bytes of UTF-8 */
	sheaf_str value; /* JSON text, kept byte for byte; {NULL,0}: deleted */
	int64_t time_us; /* app state: the time of the record that sets it */
	sheaf_str id;    /* app state: that record's id, which decides between equal times */
} sheaf_state_item;

/** 0 to go on, 1 to stop, negative to fail. */
typedef int (*sheaf_state_fn)(void *ctx, const sheaf_state_item *item);

/*
 * ---- Append -------------------------------------------------------------
 * The one way to write. The store calls `stamp` with the head as it is (NULL:
 * there is no session) and gets rows and the head after them, valid only on
 * top of that head; or a refusal, which it passes on. It writes the rows only
 * if the revision is still that head's, all or none, and then keeps `next`.
 * A store may call `stamp` again with a newer head; the rows of the call before
 * are then void. Rows belong to the caller and live until the append returns.
 *
 * With `create` set the first row is the header (kind SHEAF_KIND_SESSION).
 *
 * A session whose time is over is not written to, or a plain append would bring
 * it back. The store looks at sheaf_head_expired() of the head that is there, by
 * its own clock and in the same step as the write, before it looks at ids or
 * stamps: SHEAF_EXPIRED during the grace (unless `revive`), SHEAF_GONE after it.
 */
typedef int (*sheaf_stamp_fn)(void *ctx, const sheaf_head *head, sheaf_head *next,
                              const sheaf_row **rows, size_t *count, sheaf_error *err);

typedef struct sheaf_append_request {
	size_t size; /* sizeof(sheaf_append_request) */
	sheaf_stamp_fn stamp;
	void *ctx;
	const sheaf_str
		*ids; /* to look up before anything else; ids known to be new are left out */
	size_t id_count;
	uint64_t *seqs;      /* id_count places: the seq of each id the store holds, else 0 */
	size_t bytes_hint;   /* about how much will be written */
	int32_t create;      /* 1: there must be no session: else SHEAF_EXISTS, also when hidden */
	int32_t durability;  /* never 0: the dispatch has filled in the store's */
	int64_t deadline_us; /* monotonic */
	sheaf_str source;    /* create a fork: this session of the owner must be there and not
	                         hidden when the new one becomes visible; else SHEAF_GONE */
	const sheaf_head *known; /* the head the caller last saw, or NULL. A store that must ask
	                            another machine for the head stamps on this one first; a
	                            refusal counts only on the present head */
	/* To be set with the rows, in the same step, each key once. SHEAF_LIMIT as state_apply; a
	   refusal of `stamp` goes before it. */
	const sheaf_state_item *user_state;
	size_t user_state_count;
	int32_t revive; /* 1: write also to a session that has expired and is in its grace */
	int32_t reserved0;
} sheaf_append_request;

typedef struct sheaf_append_reply {
	size_t known;       /* how many of the ids were held: if any, nothing was written */
	int32_t durability; /* the level reached */
	int32_t reserved0;
} sheaf_append_reply;

/* ---- Reading ------------------------------------------------------------ */

typedef struct sheaf_scan {
	size_t size;      /* sizeof(sheaf_scan) */
	uint64_t from;    /* first seq wanted; beyond the end: nothing, or backward from the end */
	int32_t backward; /* from there towards the beginning */
	int32_t reserved0;
	size_t limit;   /* rows given to the callback at most */
	uint64_t kinds; /* mask; rows of other kinds are passed over cheaply */
} sheaf_scan;

/** 0 to go on, 1 to stop, negative to fail with that code. */
typedef int (*sheaf_row_fn)(void *ctx, const sheaf_row *row);

/** 0 to go on, 1 to stop, negative to fail. The key's parts are encoded; `info` has every field
 * but those of the key. */
typedef int (*sheaf_info_fn)(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info);

/** A session and a number, not 0, that is another whenever its log may be. 0 to go on, negative to
 * fail. */
typedef int (*sheaf_stamp_seen_fn)(void *ctx, const sheaf_store_key *key, uint64_t stamp);

typedef struct sheaf_list_query {
	size_t size;       /* sizeof(sheaf_list_query) */
	sheaf_str app;     /* encoded; {NULL,0} = all apps */
	sheaf_str user;    /* encoded; {NULL,0} = all users */
	int32_t has_after; /* start after (modified, owner, session) in the order of lists */
	int32_t hidden;    /* 1: give hidden sessions too */
	int64_t after_modified_us;
	sheaf_str after_owner;
	sheaf_str after_session;
	const sheaf_list_options *filter; /* a hint: the caller filters again */
	int64_t expired_by_us; /* not 0: only sessions, hidden ones not among them, with a ttl and
	                          no pin whose stored_us + ttl_us is not after this, in any order.
	                          The caller's clock may differ: what counts is info.expired */
} sheaf_list_query;

/* ---- Removing ------------------------------------------------------------ */

typedef struct sheaf_remove_request {
	size_t size;  /* sizeof(sheaf_remove_request) */
	int32_t reap; /* 1: act only if the session is hidden: give back what no fork reads now */
	int32_t expired; /* 1: act only if the session is visible and its grace is over, by the
	                    store's clock and in the same step; else nothing, existed = 0 */
	int64_t deadline_us;
	sheaf_info_fn reader; /* called for each session that still reads this one, in the order of
	                         lists; hidden ones do not count; may be NULL */
	void *ctx;
} sheaf_remove_request;

typedef struct sheaf_remove_reply {
	int32_t existed; /* it was there and visible (with reap: there) */
	int32_t hidden;  /* something stays, for readers; also when it was hidden before */
} sheaf_remove_reply;

/** Gives the rows that replace a log, in order, header first: 1 while `*row` was set, 0 at the end. */
typedef int (*sheaf_rows_fn)(void *ctx, sheaf_row *row, sheaf_error *err);

typedef int (*sheaf_problem_fn)(void *ctx, const sheaf_problem *problem);

typedef struct sheaf_check_totals {
	uint64_t sessions;
	uint64_t records;
	uint64_t bytes;
} sheaf_check_totals;

/*
 * ---- The queue ------------------------------------------------------------
 * Input that waits for a session. It belongs to the session, does not touch its
 * revision, and goes with it. Times are the store's clock.
 */
typedef struct sheaf_queue_row {
	sheaf_str id; /* of the item, the producer's */
	sheaf_str content;
	sheaf_str environment; /* JSON text, or {NULL,0} */
	int32_t priority;      /* greater comes first */
	int32_t claims;        /* how often it was claimed */
	int64_t enqueued_us;
	int64_t claimed_until_us; /* 0: pending; a past time: pending again */
} sheaf_queue_row;

/** 0 to go on, 1 to stop, negative to fail. */
typedef int (*sheaf_queue_fn)(void *ctx, const sheaf_queue_row *row);

typedef struct sheaf_claim {
	size_t size;      /* sizeof(sheaf_claim) */
	sheaf_str token;  /* made by the caller; what is claimed carries it */
	int64_t lease_us; /* from now */
	size_t limit;     /* items at most, 1 to SHEAF_QUEUE_MERGE_ITEMS_MAX */
	size_t bytes;     /* of content at most, a byte between two items counted; the first item
	                     is given whatever its size */
	int64_t deadline_us;
} sheaf_claim;

/** A line of text, without its break. 0 to go on, negative to fail. */
typedef int (*sheaf_text_fn)(void *ctx, sheaf_str line);

/** What head() knows beyond the head. */
typedef struct sheaf_head_state {
	int32_t readonly; /* foreign or newer format, or the store is */
	int32_t damaged;
	uint64_t torn_bytes;
	uint64_t tail_bytes;
	char torn_file[256];
	int64_t stored_us; /* when the last append was stored, by the store's clock */
	int64_t now_us;    /* that clock now */
} sheaf_head_state;

/* ---- The table ------------------------------------------------------------ */

typedef struct sheaf_store_ops {
	size_t size;        /* sizeof(sheaf_store_ops), written by the compiler */
	const char *scheme; /* [a-z][a-z0-9+]{1,15} */

	/** Required. `rest` is the URL after "scheme:", without its ?options. `option(name)` reads
	 * one of those, {NULL,0} if absent; unknown names have been refused against `option_names`. */
	int (*open)(void **backend, sheaf_str rest, const sheaf_store_options *options,
	            sheaf_str (*option)(const void *url, const char *name), const void *url,
	            sheaf_error *err);
	const char *option_names; /* space-separated, e.g. "unsafe_fs" */

	/** Required. Nothing is in flight. */
	void (*close)(void *backend);

	/** Required. */
	void (*describe)(void *backend, sheaf_store_info *out);

	/**
	 * Required. The head as last acknowledged. `write` says the caller means to append: a
	 * store that must recover a log before it can be written does it now.
	 * SHEAF_NOT_FOUND. A hidden session is found, with sheaf_head_hidden().
	 */
	int (*head)(void *backend, const sheaf_store_key *key, int write, sheaf_head *out,
	            sheaf_head_state *state, sheaf_error *err);

	/** Required. See above. SHEAF_NOT_FOUND without `create` when there is no session,
	 * SHEAF_GONE when it is hidden. */
	int (*append)(void *backend, const sheaf_store_key *key,
	              const sheaf_append_request *request, sheaf_append_reply *reply,
	              sheaf_error *err);

	/** Required. Own rows only (a fork's inherited ones are read from its source by the caller),
	 * whole batches only, the header never. Hidden sessions can be scanned. */
	int (*scan)(void *backend, const sheaf_store_key *key, const sheaf_scan *scan,
	            sheaf_row_fn fn, void *ctx, sheaf_error *err);

	/** Required. The seq of an id in this log, in O(1) or O(log n): 0 with *seq, or NOT_FOUND. */
	int (*find)(void *backend, const sheaf_store_key *key, sheaf_str id, uint64_t *seq,
	            sheaf_error *err);

	/** The header's line, for copies. Required. */
	int (*header)(void *backend, const sheaf_store_key *key, sheaf_row_fn fn, void *ctx,
	              sheaf_error *err);

	/** Required. In the order of lists: modified_us descending, then owner, then session. */
	int (*list)(void *backend, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
	            sheaf_error *err);

	/**
	 * Required. Removes a session nobody reads, with all that is derived from it, durably. If
	 * forks read it, everything above the highest base is removed the same way, the rest is
	 * hidden, and each reader is named. One atomic step against fork creation.
	 */
	int (*remove)(void *backend, const sheaf_store_key *key,
	              const sheaf_remove_request *request, sheaf_remove_reply *reply,
	              sheaf_error *err);

	/** Required. Replaces the whole log if its revision is `revision`, else SHEAF_STALE. For
	 * expiry it counts as an append. */
	int (*replace)(void *backend, const sheaf_store_key *key, uint64_t revision,
	               sheaf_rows_fn next, void *ctx, int64_t deadline_us, sheaf_error *err);

	/** Optional. Reads and verifies everything of one session, or of all (`key` NULL). */
	int (*check)(void *backend, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
	             sheaf_check_totals *totals, sheaf_error *err);

	/** Optional. See sheaf_store_repair(). */
	int (*repair)(void *backend, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
	              sheaf_check_totals *totals, int64_t deadline_us, sheaf_error *err);

	/** Optional, with state_apply and `user_state` of append. Every item of a user's state
	 * (`app` 0, `scope` an owner) or of an app's (`app` 1, `scope` an encoded app), deleted ones
	 * of an app's too, in any order. An unknown scope has none. */
	int (*state_read)(void *backend, sheaf_str scope, int app, sheaf_state_fn fn, void *ctx,
	                  sheaf_error *err);

	/** Optional. Takes each item into an app's state unless what is held of its key is as new
	 * or newer (time_us, then id, bytewise); a deletion is held too. All of them in one step.
	 * SHEAF_LIMIT over SHEAF_STATE_BYTES_MAX, as for user state in append. */
	int (*state_apply)(void *backend, sheaf_str app, const sheaf_state_item *items,
	                   size_t count, int64_t deadline_us, sheaf_error *err);

	/** Optional, with the four below. Adds an item. SHEAF_NOT_FOUND, SHEAF_GONE as for append;
	 * SHEAF_LIMIT when SHEAF_QUEUE_ITEMS_MAX are there; an id that is there: `existed` if
	 * content, environment and priority are the same, else SHEAF_CONFLICT. */
	int (*queue_put)(void *backend, const sheaf_store_key *key, const sheaf_queue_row *row,
	                 int64_t deadline_us, int32_t *existed, sheaf_error *err);

	/** Takes the first items that are pending, by priority and then in the order they came, and
	 * marks them with the token. `fn` is called once that is durable. None: no call. */
	int (*queue_claim)(void *backend, const sheaf_store_key *key, const sheaf_claim *claim,
	                   sheaf_queue_fn fn, void *ctx, sheaf_error *err);

	/** Removes what carries the token, also if its time is over but nobody has claimed it since.
	 * SHEAF_STALE if nothing carries it. */
	int (*queue_ack)(void *backend, const sheaf_store_key *key, sheaf_str token,
	                 int64_t deadline_us, size_t *count, sheaf_error *err);

	/** Removes a pending item. SHEAF_BUSY while it is claimed. */
	int (*queue_cancel)(void *backend, const sheaf_store_key *key, sheaf_str id,
	                    int64_t deadline_us, int32_t *existed, sheaf_error *err);

	/** Every item, claimed ones too, in the order of claims. */
	int (*queue_list)(void *backend, const sheaf_store_key *key, sheaf_queue_fn fn, void *ctx,
	                  sheaf_error *err);

	/** Optional. Returns when the revision may have passed `revision`, when the session may be
	 * gone, or at the deadline: a hint, the caller looks. Without it the dispatch sleeps. */
	int (*wait)(void *backend, const sheaf_store_key *key, uint64_t revision,
	            int64_t deadline_us, sheaf_error *err);

	/** Optional. Brings what is kept there to this version and says each step in a line; with
	 * `print` it connects to nothing and gives the statements. Not called on an open store. */
	int (*migrate)(sheaf_str rest, const sheaf_store_options *options,
	               sheaf_str (*option)(const void *url, const char *name), const void *url,
	               int print, sheaf_text_fn fn, void *ctx, sheaf_error *err);

	/** Optional. head() without `write` and scan() in one step, for stores where each costs a
	 * round trip. The head is there before the first row is given. */
	int (*read)(void *backend, const sheaf_store_key *key, const sheaf_scan *scan,
	            sheaf_head *out, sheaf_head_state *state, sheaf_row_fn fn, void *ctx,
	            sheaf_error *err);

	/** Optional. Every session of an app and user ({NULL,0}: any), hidden ones too, in any order:
	 * for whoever follows the store and asks for the heads of those that changed only. */
	int (*stamps)(void *backend, sheaf_str app, sheaf_str user, sheaf_stamp_seen_fn fn,
	              void *ctx, sheaf_error *err);
} sheaf_store_ops;

/**
 * Makes a scheme known to sheaf_open(). The table must outlive its use. Required
 * slots are checked here, once.
 * @return 0; SHEAF_INVALID (a bad scheme or a missing slot), SHEAF_EXISTS, SHEAF_LIMIT
 */
SHEAF_API int sheaf_store_register(const sheaf_store_ops *ops, sheaf_error *err);

SHEAF_END
#endif
