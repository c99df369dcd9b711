/*
 * Stores: where sessions live, named by a URL.
 *
 *   memory:              in this process, gone with it; shared by nobody
 *   jsonl:/dir           one JSONL file a session; "~/" at the start is $HOME
 *   jsonl:/path/x.jsonl  that one file, a store of one session
 *   postgres://…         a PostgreSQL database (a module); docs/stores.md has its options
 *   postgres+shards:/map many of them, each with a part of the owners
 *   redis://host:port    a Redis server or cluster, if that module is installed
 *
 * A URL may end in options: "jsonl:/dir?readonly=1&unsafe_fs=1".
 * A store is thread-safe. After fork() use it only in the process that opened
 * it: in the child every call answers SHEAF_FORKED.
 */
#ifndef SHEAF_STORE_H
#define SHEAF_STORE_H

#include "entry.h"

SHEAF_BEGIN

typedef struct sheaf_store sheaf_store;

typedef struct sheaf_store_options {
	size_t size; /* sizeof(sheaf_store_options) */
	int32_t readonly;
	int32_t durability;  /* for appends that do not say; 0 = the store's best local level */
	int64_t deadline_us; /* how long a call may wait for locks, or for a server that is gone;
	                        0 = 10 s */
} sheaf_store_options;

/* clang-format off */
#define SHEAF_STORE_OPTIONS_INIT {sizeof(sheaf_store_options), 0, 0, 0}
/* clang-format on */

/**
 * Opens a store, making the directory of a jsonl store if it is absent.
 * @param out      caller closes; untouched on failure
 * @param url      NULL: $SHEAF_STORE, else jsonl:$XDG_DATA_HOME/sheaf
 * @param options  may be NULL
 * @return 0; SHEAF_INVALID, SHEAF_UNSUPPORTED (unknown scheme, network
 *         filesystem, a durability the store cannot give), SHEAF_DENIED,
 *         SHEAF_FORMAT (a database without tables, or with those of a newer
 *         version), SHEAF_TIMEOUT, SHEAF_STORAGE, SHEAF_NOMEM
 */
SHEAF_API int sheaf_open(sheaf_store **out, const char *url, const sheaf_store_options *options,
                         sheaf_error *err);

/** Closes a store. Its sessions must be closed before. NULL is fine. */
SHEAF_API void sheaf_close(sheaf_store *store);

typedef struct sheaf_store_info {
	size_t size; /* sizeof(sheaf_store_info), set by the caller */
	const char *scheme;
	int32_t durability;     /* what an append gets that does not ask */
	int32_t durability_max; /* the highest level that can be asked for */
	int32_t readonly;
	int32_t lists_app; /* can list all users of an app */
	int32_t repairs;   /* knows sheaf_store_repair() */
	int32_t states;    /* keeps user and app state */
	int32_t queues;    /* keeps queues */
	int32_t remote;    /* another process keeps it: a call costs a round trip */
} sheaf_store_info;

/* clang-format off */
#define SHEAF_STORE_INFO_INIT {sizeof(sheaf_store_info), NULL, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/** What this store can do. @return 0 or SHEAF_INVALID */
SHEAF_API int sheaf_store_describe(sheaf_store *store, sheaf_store_info *out, sheaf_error *err);

/**
 * Brings a store that has a schema to this version of the library; a store of
 * another kind answers SHEAF_UNSUPPORTED. `line` gets a line for every step; with
 * `print` nothing is connected to and it gets the statements to run by hand.
 * @return 0; SHEAF_INVALID, SHEAF_DENIED, SHEAF_FORMAT (it is newer), SHEAF_STORAGE
 */
SHEAF_API int sheaf_store_migrate(const char *url, int print,
                                  int (*line)(void *ctx, sheaf_str text), void *ctx,
                                  sheaf_error *err);

/* ---- Listing ----------------------------------------------------------- */

/** Whether a session's time is over, by the store's clock. See sheaf/expiry.h. */
enum {
	SHEAF_EXPIRY_NONE = 0,  /* no: it is alive */
	SHEAF_EXPIRY_GRACE = 1, /* it has expired; it can be undeleted */
	SHEAF_EXPIRY_OVER = 2   /* its grace is over too: as if deleted */
};

/** One session as lists and heads show it. Owned by what it came in. */
typedef struct sheaf_session_info {
	sheaf_str app;
	sheaf_str user;
	sheaf_str session;
	sheaf_str name; /* "" until named */
	sheaf_str kind; /* "main", "subagent", … */
	sheaf_str parent_session;
	sheaf_str cwd;
	sheaf_str preview; /* the beginning of the first user text */
	int64_t created_us;
	int64_t modified_us; /* timestamp of the newest record */
	uint64_t revision;   /* seq of the newest record */
	uint64_t records;    /* own ones; an inherited record is counted where it is stored */
	uint64_t messages;
	uint64_t turns; /* ended by a turn_end */
	sheaf_usage usage;
	int32_t hidden;   /* deleted, kept only for what living forks read */
	int32_t readonly; /* a foreign or newer file */
	int32_t damaged;  /* cannot be read as it is; see sheaf_store_check() */
	int32_t reserved0;
	uint64_t base;     /* fork: how many records are inherited */
	sheaf_str source;  /* fork: the session it was made from */
	int64_t stored_us; /* when the newest record was stored, by the store's clock */
	int64_t ttl_us;    /* expires this long after stored_us; 0 = never */
	int64_t grace_us;  /* and can be undeleted this long after that */
	int32_t pinned;    /* does not expire, whatever ttl_us says */
	int32_t expired;   /* SHEAF_EXPIRY_*, when the list was made */
} sheaf_session_info;

typedef struct sheaf_list_options {
	size_t size; /* sizeof(sheaf_list_options) */
	sheaf_str app;
	sheaf_str user;
	int32_t all_users; /* every user of `app`; `user` is ignored */
	int32_t all_apps;  /* everything in the store */
	sheaf_str name;    /* exact */
	sheaf_str cwd;     /* exact, or see cwd_below */
	sheaf_str kind;    /* exact */
	sheaf_str parent_session;
	int64_t after_us;  /* modified at or after; 0 = any */
	int64_t before_us; /* modified before; 0 = any */
	size_t limit;      /* 0 = 50; at most 10,000 */
	sheaf_str cursor;  /* from the page before */
	int32_t expired;   /* 1: also sessions that have expired and can be undeleted */
	int32_t cwd_below; /* 1: also sessions of directories below `cwd` */
	sheaf_str agent;   /* imported from this agent: codex, claude-code … */
} sheaf_list_options;

/* clang-format off */
#define SHEAF_LIST_OPTIONS_INIT \
	{sizeof(sheaf_list_options), {0, 0}, {0, 0}, 0, 0, {0, 0}, {0, 0}, {0, 0}, {0, 0}, 0, \
	 0, 0, {0, 0}, 0, 0, {0, 0}}
/* clang-format on */

typedef struct sheaf_list {
	size_t count;
	const sheaf_session_info *const *items;
	sheaf_str cursor; /* for the next page; {NULL,0} at the end */
} sheaf_list;

/**
 * A page of sessions, newest first (by `modified_us`, then key).
 * A session that is written to between two pages may be missed by the later one.
 * @return 0; SHEAF_INVALID (a cursor that is none), SHEAF_UNSUPPORTED,
 *         SHEAF_STORAGE, SHEAF_NOMEM
 */
SHEAF_API int sheaf_store_list(sheaf_list **out, sheaf_store *store,
                               const sheaf_list_options *options, sheaf_error *err);
SHEAF_API void sheaf_list_free(const sheaf_list *list);

/* ---- Deleting ---------------------------------------------------------- */

typedef struct sheaf_delete_options {
	size_t size;   /* sizeof(sheaf_delete_options) */
	int32_t purge; /* copy what forks still read into them, then erase all of it */
} sheaf_delete_options;

/* clang-format off */
#define SHEAF_DELETE_OPTIONS_INIT {sizeof(sheaf_delete_options), 0}
/* clang-format on */

typedef struct sheaf_deleted {
	int32_t existed;
	int32_t hidden;          /* kept, out of sight, for the forks named here */
	const sheaf_list *forks; /* never NULL */
} sheaf_deleted;

/**
 * Deletes a session: log and everything derived from it, before it answers.
 * What living forks still read stays, hidden, until the last of them goes;
 * its key stays taken. Deleting what is not there is OK, `existed` = 0.
 * @param out  may be NULL; caller frees with sheaf_deleted_free()
 * @return 0; SHEAF_READONLY, SHEAF_BUSY, SHEAF_STORAGE, SHEAF_NOMEM
 */
SHEAF_API int sheaf_store_delete(sheaf_deleted **out, sheaf_store *store, const sheaf_key *key,
                                 const sheaf_delete_options *options, sheaf_error *err);
SHEAF_API void sheaf_deleted_free(sheaf_deleted *deleted);

/* ---- Checking and repairing -------------------------------------------- */

/** What a problem is. */
enum {
	SHEAF_PROBLEM_TORN = 1, /* bytes after the last complete batch; a writer moves them away */
	SHEAF_PROBLEM_DAMAGE = 2,  /* a record that cannot be read; `repair` is explicit */
	SHEAF_PROBLEM_FOREIGN = 3, /* a file that is not ours; left alone */
	SHEAF_PROBLEM_KEPT = 4,    /* a copy of torn or repaired bytes is lying beside the log */
	SHEAF_PROBLEM_FORK = 5     /* a fork whose source is not there or too short */
};

typedef struct sheaf_problem {
	int32_t what;
	int32_t reserved0;
	sheaf_str app;
	sheaf_str user;
	sheaf_str session;
	uint64_t seq;    /* the first record concerned, 0 if none */
	uint64_t offset; /* where in the file */
	uint64_t bytes;
	sheaf_str detail; /* a sentence */
} sheaf_problem;

typedef struct sheaf_report {
	uint64_t sessions;
	uint64_t records;
	uint64_t bytes;
	size_t count;
	const sheaf_problem *const *problems;
} sheaf_report;

/**
 * Reads every byte of one session, or of the whole store (`key` NULL), and
 * verifies it. Changes nothing.
 * @return 0 whatever was found (look at `count`); SHEAF_NOT_FOUND, SHEAF_STORAGE
 */
SHEAF_API int sheaf_store_check(sheaf_report **out, sheaf_store *store, const sheaf_key *key,
                                sheaf_error *err);
SHEAF_API void sheaf_report_free(const sheaf_report *report);

/**
 * Makes a damaged session writable again: a `lost` record stands in for every
 * record that cannot be read, all others keep their bytes and numbers. The
 * original is kept beside the log.
 * @param out  what was mended; may be NULL
 * @return 0, also if there was nothing to mend; SHEAF_NOT_FOUND,
 *         SHEAF_READONLY, SHEAF_BUSY, SHEAF_FORMAT (the header is unreadable), SHEAF_STORAGE
 */
SHEAF_API int sheaf_store_repair(sheaf_report **out, sheaf_store *store, const sheaf_key *key,
                                 sheaf_error *err);

SHEAF_END
#endif
