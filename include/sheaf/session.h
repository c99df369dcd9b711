/*
 * Sessions: one append-only log of records whose entries form a tree.
 *
 * A handle is thread-safe. Everything it returns is a snapshot with its own
 * memory: one free, nothing a caller can change.
 *
 *     sheaf_store *store;
 *     sheaf_session *s;
 *     sheaf_open(&store, "jsonl:~/.myagent", NULL, &err);
 *     sheaf_session_open(&s, store, &key, NULL, &err);
 *     sheaf_session_append_text(s, SHEAF_ROLE_USER, sheaf_str_of("Hello"), NULL, &err);
 *     sheaf_session_close(s);
 *     sheaf_close(store);
 */
#ifndef SHEAF_SESSION_H
#define SHEAF_SESSION_H

#include "store.h"

SHEAF_BEGIN

typedef struct sheaf_session sheaf_session;

/* ---- Opening ----------------------------------------------------------- */

enum {
	SHEAF_OPEN_EITHER = 0, /* open it, or create it */
	SHEAF_OPEN_EXISTING = 1,
	SHEAF_OPEN_NEW = 2
};

/** All but `mode` and `readonly` is used only when the session is created. */
typedef struct sheaf_session_options {
	size_t size; /* sizeof(sheaf_session_options) */
	int32_t mode;
	int32_t readonly; /* never write, not even to move a torn tail away */
	sheaf_str name;
	sheaf_str kind; /* empty = "main" */
	sheaf_str parent_session;
	sheaf_str cwd;
	sheaf_str extra;    /* a JSON object of further header members, or {NULL,0} */
	int64_t created_us; /* 0 = now */
	int32_t durability; /* of creating it; 0 = the store's */
	sheaf_str state; /* a JSON object of first values, as state_delta (state.h), or {NULL,0} */
	int64_t ttl_us;  /* expires this long after the last append; 0 = never (sheaf/expiry.h) */
} sheaf_session_options;

/* clang-format off */
#define SHEAF_SESSION_OPTIONS_INIT \
	{sizeof(sheaf_session_options), 0, 0, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, 0, 0, {0, 0}, \
	 0}
/* clang-format on */

/**
 * Opens or creates a session.
 * @param out      caller closes; untouched on failure
 * @param key      borrowed; an empty session part gets a new UUIDv7 (see sheaf_session_key())
 * @param options  may be NULL: open or create
 * @return 0; SHEAF_NOT_FOUND (must exist), SHEAF_EXISTS (must not; also when a
 *         hidden session holds the key), SHEAF_EXPIRED, SHEAF_INVALID, SHEAF_LIMIT,
 *         SHEAF_DAMAGED (no readable header), SHEAF_FORMAT, SHEAF_STORAGE, SHEAF_NOMEM
 */
SHEAF_API int sheaf_session_open(sheaf_session **out, sheaf_store *store, const sheaf_key *key,
                                 const sheaf_session_options *options, sheaf_error *err);

/** Opens the newest session of an app and user. @return 0 or SHEAF_NOT_FOUND, and as above */
SHEAF_API int sheaf_session_open_recent(sheaf_session **out, sheaf_store *store, sheaf_str app,
                                        sheaf_str user, sheaf_error *err);

SHEAF_API void sheaf_session_close(sheaf_session *session);

/** The key; owned by the session. */
SHEAF_API sheaf_key sheaf_session_key(const sheaf_session *session);

/** The store it was opened in. */
SHEAF_API sheaf_store *sheaf_session_store(const sheaf_session *session);

/** The session part of the key, NUL-terminated; owned by the session. */
SHEAF_API const char *sheaf_session_id(const sheaf_session *session);

/* ---- Head -------------------------------------------------------------- */

typedef struct sheaf_branch_info {
	sheaf_str name;
	sheaf_str leaf;    /* {NULL,0}: before the first entry */
	uint64_t leaf_seq; /* 0: before the first entry */
} sheaf_branch_info;

/** What the whole log amounts to, in O(1). */
typedef struct sheaf_head_view {
	const sheaf_session_info *info;
	size_t branch_count;
	const sheaf_branch_info *const *branches; /* "main" first */
	sheaf_str metadata; /* the latest session_info metadata, a JSON object, or {NULL,0} */
	int32_t readonly;
	int32_t damaged;     /* some record cannot be read; writes answer DAMAGED */
	uint64_t torn_bytes; /* moved away since the store was opened */
	sheaf_str torn_file; /* where the last of them went */
	uint64_t tail_bytes; /* unfinished bytes at the end that were left alone */
} sheaf_head_view;

/** Reads the head. Caller frees. @return 0; SHEAF_GONE, SHEAF_EXPIRED, SHEAF_STORAGE, SHEAF_NOMEM */
SHEAF_API int sheaf_session_head(sheaf_head_view **out, sheaf_session *session, sheaf_error *err);
SHEAF_API void sheaf_head_view_free(const sheaf_head_view *head);

/* ---- Appending --------------------------------------------------------- */

/** What may be said about one record besides its content. Zero means the default. */
typedef struct sheaf_entry_options {
	size_t size;         /* sizeof(sheaf_entry_options) */
	sheaf_str id;        /* the caller's; else a new UUIDv7 */
	sheaf_str branch;    /* else "main" */
	int32_t has_parent;  /* 1: hang on parent_id instead of the branch's leaf */
	int32_t partial;     /* a streaming piece: accepted and dropped */
	sheaf_str parent_id; /* with has_parent: an entry id or label; empty = a new root */
	int64_t time_us;     /* 0 = now */
	sheaf_str turn;
	sheaf_str author;
	sheaf_str agent;
	sheaf_str invocation_id;
	sheaf_str
		extra; /* a JSON object whose members are added to the record, e.g. {"metadata":{…}} */
	sheaf_str state_delta; /* a JSON object: what this record changes of the state (state.h) */
} sheaf_entry_options;

/* clang-format off */
#define SHEAF_ENTRY_OPTIONS_INIT \
	{sizeof(sheaf_entry_options), {0, 0}, {0, 0}, 0, 0, {0, 0}, 0, {0, 0}, {0, 0}, {0, 0}, \
	 {0, 0}, {0, 0}, {0, 0}}
/* clang-format on */

enum {
	SHEAF_EXPECT_DEFAULT = 0, /* any; for turns: the leaf this handle last saw */
	SHEAF_EXPECT_ANY = 1,     /* hang on whatever the leaf is */
	SHEAF_EXPECT_LEAF = 2,    /* the branch still ends at `leaf` */
	SHEAF_EXPECT_REVISION = 3 /* nothing at all was added since `revision` */
};

typedef struct sheaf_append_options {
	size_t size; /* sizeof(sheaf_append_options) */
	int32_t expect;
	int32_t durability; /* 0 = the store's */
	sheaf_str leaf;     /* empty: before the first entry */
	uint64_t revision;
	int64_t deadline_us; /* from now; 0 = the store's */
} sheaf_append_options;

/* clang-format off */
#define SHEAF_APPEND_OPTIONS_INIT {sizeof(sheaf_append_options), 0, 0, {0, 0}, 0, 0}
/* clang-format on */

enum {
	SHEAF_APP_STATE_NONE = 0,    /* there were none */
	SHEAF_APP_STATE_APPLIED = 1, /* they are set, or were set since */
	SHEAF_APP_STATE_PENDING =
		2 /* the record has them, the app not yet: the next append tries again */
};

/** What an append did. `id` is filled on failure too, for the repeat. */
typedef struct sheaf_appended {
	size_t size;            /* sizeof(sheaf_appended), set by the caller */
	char id[SHEAF_ID_ROOM]; /* of the last record */
	uint64_t seq;           /* of the last record; 0 for a dropped partial */
	uint64_t first_seq;
	int32_t existed;    /* it was stored already; nothing was written */
	int32_t durability; /* the level reached */
	int32_t app_state;  /* of app: values: one of the above */
	int32_t reserved0;
} sheaf_appended;

/* clang-format off */
#define SHEAF_APPENDED_INIT {sizeof(sheaf_appended), {0}, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/*
 * Appends. Each takes the record's options, the append's options and a place
 * for the result, any of which may be NULL, and returns
 *   0;
 *   SHEAF_STALE     the expectation was missed; err has revision and leaf
 *   SHEAF_CONFLICT  the id is stored with other content
 *   SHEAF_NOT_FOUND a parent or target that is not in the session
 *   SHEAF_INVALID, SHEAF_LIMIT, SHEAF_TOO_LARGE   nothing was written
 *   SHEAF_READONLY, SHEAF_DAMAGED, SHEAF_GONE, SHEAF_EXPIRED, SHEAF_BUSY,
 *   SHEAF_UNSUPPORTED (durability)
 *   SHEAF_STORAGE   look at err->outcome: UNKNOWN means repeat with the same id
 *   SHEAF_NOMEM, SHEAF_FORKED
 * Repeating an append with the same ids and content answers 0 with `existed`.
 */
SHEAF_API int sheaf_session_append_message(sheaf_session *session, const sheaf_message *message,
                                           const sheaf_entry_options *entry,
                                           const sheaf_append_options *how, sheaf_appended *out,
                                           sheaf_error *err);

/** A message of one text. */
SHEAF_API int sheaf_session_append_text(sheaf_session *session, const char *role, sheaf_str text,
                                        sheaf_appended *out, sheaf_error *err);

SHEAF_API int sheaf_session_append_model_change(sheaf_session *session, sheaf_str provider,
                                                sheaf_str model, const sheaf_entry_options *entry,
                                                const sheaf_append_options *how,
                                                sheaf_appended *out, sheaf_error *err);

SHEAF_API int sheaf_session_append_thinking_level(sheaf_session *session, sheaf_str level,
                                                  const sheaf_entry_options *entry,
                                                  const sheaf_append_options *how,
                                                  sheaf_appended *out, sheaf_error *err);

/** Data for programs; never reaches a context. `data` is one JSON value, given back byte for byte,
 * or {NULL,0}. */
SHEAF_API int sheaf_session_append_custom(sheaf_session *session, sheaf_str custom_type,
                                          sheaf_str data, const sheaf_entry_options *entry,
                                          const sheaf_append_options *how, sheaf_appended *out,
                                          sheaf_error *err);

/** Custom data that does reach a context, as user text. */
SHEAF_API int sheaf_session_append_custom_text(sheaf_session *session, sheaf_str custom_type,
                                               sheaf_str content, const sheaf_entry_options *entry,
                                               const sheaf_append_options *how, sheaf_appended *out,
                                               sheaf_error *err);

/**
 * Records that everything before `first_kept` (an entry id or a label on the
 * branch's path) is replaced by a summary. An empty first_kept keeps nothing.
 * @return as above; SHEAF_COMPACT: the cut is not on the path, or separates a
 *         tool call from its answer, or a call before it is still open
 */
SHEAF_API int sheaf_session_append_compaction(sheaf_session *session, sheaf_str summary,
                                              sheaf_str first_kept, uint64_t tokens_before,
                                              const sheaf_entry_options *entry,
                                              const sheaf_append_options *how, sheaf_appended *out,
                                              sheaf_error *err);

/**
 * Any record from its type and body: a JSON object with the members after the
 * envelope, e.g. type "message", body {"message":{…},"turn":"t1"}. A body that
 * holds an envelope or frame name at top level is refused. Its shape is checked,
 * but not what it says of other records: a compaction given this way, as imports
 * do, may cut where sheaf_session_append_compaction() would refuse.
 */
SHEAF_API int sheaf_session_append_json(sheaf_session *session, sheaf_str type, sheaf_str body,
                                        const sheaf_entry_options *entry,
                                        const sheaf_append_options *how, sheaf_appended *out,
                                        sheaf_error *err);

/* Facts: they hang on nothing and move no leaf. */

/** Labels an entry (an id or another label names it); an empty label takes it away. */
SHEAF_API int sheaf_session_label(sheaf_session *session, sheaf_str target, sheaf_str label,
                                  const sheaf_append_options *how, sheaf_appended *out,
                                  sheaf_error *err);

/** Names the session; empty takes the name away. `metadata` is a JSON object, or {NULL,0} to keep it. */
SHEAF_API int sheaf_session_rename(sheaf_session *session, sheaf_str name, sheaf_str metadata,
                                   const sheaf_append_options *how, sheaf_appended *out,
                                   sheaf_error *err);

/* ---- Batches and turns ------------------------------------------------- */

/** Records that are stored all together or not at all. Not thread-safe. */
typedef struct sheaf_batch sheaf_batch;

SHEAF_API sheaf_batch *sheaf_batch_new(void); /* NULL when out of memory; caller frees */
SHEAF_API void sheaf_batch_free(sheaf_batch *batch);
SHEAF_API size_t sheaf_batch_count(const sheaf_batch *batch);
/** The id of record `i`, known before anything is stored; owned by the batch. */
SHEAF_API const char *sheaf_batch_id(const sheaf_batch *batch, size_t i);

/* Each adds one record and returns 0 or SHEAF_INVALID, SHEAF_LIMIT, SHEAF_TOO_LARGE, SHEAF_NOMEM.
 * Without a parent an entry hangs on the one before it of the same branch. */
SHEAF_API int sheaf_batch_message(sheaf_batch *batch, const sheaf_message *message,
                                  const sheaf_entry_options *entry, sheaf_error *err);
SHEAF_API int sheaf_batch_json(sheaf_batch *batch, sheaf_str type, sheaf_str body,
                               const sheaf_entry_options *entry, sheaf_error *err);

/** Stores a batch. The same batch can be given again after a failure. An empty one is INVALID. */
SHEAF_API int sheaf_session_append_batch(sheaf_session *session, sheaf_batch *batch,
                                         const sheaf_append_options *how, sheaf_appended *out,
                                         sheaf_error *err);

/**
 * Stores a turn: the batch and a `turn_end` with its outcome ("completed" if
 * empty) and usage (may be NULL). `turn` is the turn's id, {NULL,0} for a new
 * one. Expects, unless told otherwise, the leaf this handle last saw.
 */
SHEAF_API int sheaf_session_append_turn(sheaf_session *session, sheaf_batch *batch, sheaf_str turn,
                                        sheaf_str outcome, const sheaf_usage *usage,
                                        const sheaf_append_options *how, sheaf_appended *out,
                                        sheaf_error *err);

/* ---- Branches ---------------------------------------------------------- */

/**
 * Moves a branch to an entry (id or label), making it if it is new. An empty
 * `target` means before the first entry. Survives a restart.
 * @param name  empty = "main"
 */
SHEAF_API int sheaf_session_branch(sheaf_session *session, sheaf_str name, sheaf_str target,
                                   const sheaf_append_options *how, sheaf_appended *out,
                                   sheaf_error *err);

/** Forgets a branch; its entries stay. `main` cannot go: SHEAF_INVALID. */
SHEAF_API int sheaf_session_branch_delete(sheaf_session *session, sheaf_str name,
                                          const sheaf_append_options *how, sheaf_appended *out,
                                          sheaf_error *err);

/** Appends a summary of what is left behind as a child of `target` and moves the branch there. */
SHEAF_API int sheaf_session_branch_with_summary(sheaf_session *session, sheaf_str name,
                                                sheaf_str target, sheaf_str summary,
                                                const sheaf_append_options *how,
                                                sheaf_appended *out, sheaf_error *err);

/** Starts over: `main` stands before the first entry. Nothing is deleted. */
SHEAF_API int sheaf_session_clear(sheaf_session *session, sheaf_error *err);

/** The id of a branch's leaf, NUL-terminated into `out`; "" before the first entry. Empty name = "main". */
SHEAF_API int sheaf_session_leaf(sheaf_session *session, sheaf_str branch, char out[SHEAF_ID_ROOM],
                                 sheaf_error *err);

/** Turns an id, a unique prefix of one (four characters at least) or a label into an entry's id.
 * @return 0; SHEAF_NOT_FOUND; SHEAF_INVALID if several match */
SHEAF_API int sheaf_session_resolve(sheaf_session *session, sheaf_str what, char out[SHEAF_ID_ROOM],
                                    sheaf_error *err);

/* ---- Forks and copies -------------------------------------------------- */

/**
 * A new session that shares everything up to and including `at` (id or label;
 * empty = the leaf of main). Within an owner it is made by reference and costs
 * the same at any length; otherwise use sheaf_session_copy().
 * @param key  app and user as the source's; an empty session part gets a new id
 * @return as sheaf_session_open() with SHEAF_OPEN_NEW; SHEAF_NOT_FOUND for `at`;
 *         SHEAF_INVALID for another owner; SHEAF_GONE if the source was deleted
 */
SHEAF_API int sheaf_session_fork(sheaf_session **out, sheaf_session *source, sheaf_str at,
                                 const sheaf_key *key, const sheaf_session_options *options,
                                 sheaf_error *err);

/** A copy, record by record with the same bytes and numbers, in any store under any key.
 * A foreign file is taken in this way. */
SHEAF_API int sheaf_session_copy(sheaf_session **out, sheaf_session *source, sheaf_store *store,
                                 const sheaf_key *key, sheaf_error *err);

/** One path as a new, linear session: the entries from the root to `leaf` (id or label; empty =
 * main's leaf) with their ids, and the labels on them. */
SHEAF_API int sheaf_session_export_path(sheaf_session **out, sheaf_session *source, sheaf_str leaf,
                                        sheaf_store *store, const sheaf_key *key, sheaf_error *err);

/* ---- Reading ----------------------------------------------------------- */

typedef struct sheaf_read_options {
	size_t size;       /* sizeof(sheaf_read_options) */
	int32_t backward;  /* newest first */
	int32_t newest;    /* the newest `limit` records, then in ascending order */
	int32_t raw;       /* do not parse payloads: lines and envelopes only */
	int32_t own_only;  /* fork: leave out what is inherited */
	uint64_t from_seq; /* 0 = the beginning (or, backward, the end) */
	size_t limit;      /* 0 = 100; at most 100,000 */
	uint64_t kinds;    /* mask of SHEAF_KIND_BIT(); 0 = all */
	int64_t after_us;  /* timestamp at or after; 0 = any; with `newest`, applied to those */
	sheaf_str branch;  /* only records of this branch; {NULL,0} = any */
} sheaf_read_options;

/* clang-format off */
#define SHEAF_READ_OPTIONS_INIT {sizeof(sheaf_read_options), 0, 0, 0, 0, 0, 0, 0, 0, {0, 0}}
/* clang-format on */

/** A page of records in seq order. Damaged ones appear as such. @return 0 and as usual */
SHEAF_API int sheaf_session_records(sheaf_records **out, sheaf_session *session,
                                    const sheaf_read_options *options, sheaf_error *err);

/**
 * The path from the root to a leaf, as recorded, with labels.
 * @param leaf  id or label, or {NULL,0}: the leaf of `branch`
 * @param limit at most this many, the newest; 0 = all
 * @return 0; SHEAF_NOT_FOUND; SHEAF_DAMAGED; SHEAF_TOO_LARGE over SHEAF_CONTEXT_BYTES_DEFAULT
 */
SHEAF_API int sheaf_session_path(sheaf_records **out, sheaf_session *session, sheaf_str branch,
                                 sheaf_str leaf, size_t limit, sheaf_error *err);

/** One record by id or label, as a list of one. @return 0, SHEAF_NOT_FOUND, SHEAF_DAMAGED */
SHEAF_API int sheaf_session_get(sheaf_records **out, sheaf_session *session, sheaf_str id,
                                sheaf_error *err);

/** The entries whose parent is `id` (empty: the roots), oldest first. */
SHEAF_API int sheaf_session_children(sheaf_records **out, sheaf_session *session, sheaf_str id,
                                     sheaf_error *err);

/** The present labels: the labelled entries in seq order, `label` set. */
SHEAF_API int sheaf_session_labels(sheaf_records **out, sheaf_session *session, sheaf_error *err);

/** A node of the whole tree. */
typedef struct sheaf_node {
	const sheaf_entry *entry;                 /* with its label */
	const struct sheaf_node *parent;          /* NULL for a root */
	const struct sheaf_node *const *children; /* oldest first */
	size_t child_count;
	int32_t on_path; /* on the path of main's leaf */
	int32_t depth;
} sheaf_node;

typedef struct sheaf_tree {
	const sheaf_node *const *roots;
	size_t root_count;
	const sheaf_node *const *nodes; /* all, by seq */
	size_t node_count;
	const sheaf_head_view *head; /* branches, to mark leaves */
} sheaf_tree;

/** The whole tree; an entry whose parent is lost becomes a root. Caller frees. */
SHEAF_API int sheaf_session_tree(sheaf_tree **out, sheaf_session *session, sheaf_error *err);
SHEAF_API void sheaf_tree_free(const sheaf_tree *tree);

SHEAF_END
#endif
