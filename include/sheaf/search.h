/*
 * Search: full text over messages, tool calls, their results, summaries and
 * the names of sessions.
 *
 *     sheaf_search *search;
 *     sheaf_query q = SHEAF_QUERY_INIT;
 *     q.text = sheaf_str_of("\"connection refused\" retry*");
 *     sheaf_search_open(&search, store, NULL, &err);
 *     sheaf_search_run(&hits, search, &q, &err);
 *     for (size_t i = 0; i < hits->count; i++)
 *             show(hits->items[i]->session, hits->items[i]->entry_id, hits->items[i]->snippet);
 *     sheaf_hits_free(hits);
 *     sheaf_search_close(search);
 *
 * An index is derived from the store and follows it: every search first takes
 * in what was appended since the last one and drops what was deleted, so an
 * append never pays for it. It may be deleted at any time. A jsonl store has
 * its index beside the logs, in `.search`; a memory store in memory; every
 * other store, and one that cannot be written to, under $XDG_CACHE_HOME/sheaf.
 *
 * A query is words, all of which must occur in one record: in any case, with
 * or without accents. "Quoted words" must stand side by side, `word*` is a
 * beginning. What is spelled without blanks is found by any two characters of
 * it (Chinese, Japanese, Korean, Thai …), an identifier by its parts and as a
 * whole: parse_json_text, parseJsonText and src/parse/json.c all by `json`.
 *
 * The index needs the module `search` (SQLite); without it these calls answer
 * SHEAF_UNSUPPORTED.
 */
#ifndef SHEAF_SEARCH_H
#define SHEAF_SEARCH_H

#include "session.h"

SHEAF_BEGIN

typedef struct sheaf_search sheaf_search;

/** How far the index is behind: `done` of `total` sessions that changed. Not 0: stop, CANCELLED. */
typedef int (*sheaf_search_progress_fn)(void *ctx, uint64_t done, uint64_t total);

typedef struct sheaf_search_options {
	size_t size; /* sizeof(sheaf_search_options) */
	sheaf_search_progress_fn progress;
	void *ctx;
	int32_t rebuild; /* 1: begin with an empty index */
	int32_t reserved0;
} sheaf_search_options;

/* clang-format off */
#define SHEAF_SEARCH_OPTIONS_INIT {sizeof(sheaf_search_options), NULL, NULL, 0, 0}
/* clang-format on */

/**
 * Opens the index of a store, making it if there is none. Reads no records yet.
 * @param out      caller closes, before the store; untouched on failure
 * @param options  may be NULL
 * @return 0; SHEAF_UNSUPPORTED (no module), SHEAF_STORAGE, SHEAF_NOMEM
 */
SHEAF_API int sheaf_search_open(sheaf_search **out, sheaf_store *store,
                                const sheaf_search_options *options, sheaf_error *err);
SHEAF_API void sheaf_search_close(sheaf_search *search);

/** Whose text it is. */
enum {
	SHEAF_HIT_TITLE = 0,     /* a session's name */
	SHEAF_HIT_USER = 1,      /* what a person said */
	SHEAF_HIT_ASSISTANT = 2, /* what a model said */
	SHEAF_HIT_CALL = 3,      /* what a model called, without a word */
	SHEAF_HIT_TOOL = 4,      /* what a tool answered */
	SHEAF_HIT_SYSTEM = 5,    /* system and developer */
	SHEAF_HIT_SUMMARY = 6,   /* of a compaction or of a branch */
	SHEAF_HIT_OTHER = 7
};

#define SHEAF_HIT_BIT(role) ((uint32_t)1 << (role))

/** "title", "user", "assistant", "call", "tool", "system", "summary", "other". */
SHEAF_API const char *sheaf_hit_role(int32_t role);

/** What is looked for. Zero means everything. Strings are borrowed. */
typedef struct sheaf_query {
	size_t size; /* sizeof(sheaf_query) */
	sheaf_str text;
	sheaf_str app;
	sheaf_str user;
	int32_t all_users;    /* every user of `app`; `user` is ignored */
	int32_t all_apps;     /* everything in the store */
	sheaf_str project;    /* sessions of this directory and those below it */
	sheaf_str agent;      /* sessions imported from this agent (codex, claude-code …), and
	                       entries of an agent of this name */
	sheaf_str tool;       /* calls of this tool and its answers, in any case */
	uint32_t roles;       /* SHEAF_HIT_BIT() of those wanted; 0 = all */
	uint32_t per_session; /* hits of one session at most; 0 = any number */
	int64_t after_us;     /* timestamp at or after; 0 = any */
	int64_t before_us;    /* timestamp before; 0 = any */
	size_t limit;         /* 0 = 20; at most 1,000 */
	int64_t now_us;       /* what is new is ranked by this moment; 0 = now */
} sheaf_query;

/* clang-format off */
#define SHEAF_QUERY_INIT \
	{sizeof(sheaf_query), {0, 0}, {0, 0}, {0, 0}, 0, 0, {0, 0}, {0, 0}, {0, 0}, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/** A part of a snippet that matches. */
typedef struct sheaf_mark {
	size_t begin; /* bytes */
	size_t end;
} sheaf_mark;

/** One record that matches. Owned by the hits. */
typedef struct sheaf_hit {
	sheaf_str app;
	sheaf_str user;
	sheaf_str session;  /* where it can be opened: of a deleted one, a fork that reads it */
	sheaf_str name;     /* of the session */
	sheaf_str preview;  /* of the session */
	sheaf_str cwd;      /* of the session */
	sheaf_str entry_id; /* {NULL,0} for a title */
	uint64_t seq;       /* 0 for a title */
	int64_t time_us;
	int32_t role;       /* SHEAF_HIT_* */
	int32_t cut_before; /* the snippet does not begin where the text begins */
	int32_t cut_after;
	int32_t reserved0;
	sheaf_str agent;   /* of the entry, "" if none */
	sheaf_str tool;    /* called or answering, the first of them; "" if none */
	sheaf_str snippet; /* text around the best place, line breaks and all: not safe to print */
	const sheaf_mark *marks;
	size_t mark_count;
	double score; /* of this search: greater is better */
} sheaf_hit;

typedef struct sheaf_hits {
	size_t count;
	const sheaf_hit *const *items; /* best first */
	int32_t more;                  /* there are others */
	int32_t rebuilt;               /* the index was damaged, and was made anew */
	uint64_t updated;              /* sessions that were taken in or dropped before */
} sheaf_hits;

/**
 * Takes in what changed, of the apps and users the query names, then searches.
 * @return 0; SHEAF_INVALID (no word in the query, an open quote), SHEAF_LIMIT,
 *         SHEAF_UNSUPPORTED (the store cannot list that), SHEAF_CANCELLED,
 *         SHEAF_BUSY (another process holds the index), SHEAF_STORAGE, SHEAF_NOMEM
 */
SHEAF_API int sheaf_search_run(sheaf_hits **out, sheaf_search *search, const sheaf_query *query,
                               sheaf_error *err);
SHEAF_API void sheaf_hits_free(const sheaf_hits *hits);

/**
 * Only takes in what changed, of the apps and users that `whose` names; the rest of it is ignored.
 * @param updated  sessions that were taken in or dropped; may be NULL
 * @return as sheaf_search_run()
 */
SHEAF_API int sheaf_search_update(sheaf_search *search, const sheaf_query *whose, uint64_t *updated,
                                  sheaf_error *err);

SHEAF_END
#endif
