/*
 * What the library and the module `search` agree on. The library knows the
 * store: what changed, what a record says. The module knows SQLite: words,
 * ranks, one file. It shows `sheaf_search_module`.
 */
#ifndef SEARCH_INDEX_H
#define SEARCH_INDEX_H

#include <stdbool.h>

#include "base/buf.h"
#include "sheaf/search.h"

#define INDEX_MODULE "search"
#define INDEX_SYMBOL "sheaf_search_module"
#define INDEX_VERSION 2 /* of this header: library and module must have the same */

/* Of one record's text so much is indexed. */
#define INDEX_TEXT_BYTES_MAX ((size_t)1 << 20)

/* A session as the index knows it. Key parts are encoded. */
typedef struct index_session {
	int64_t number; /* the index's own; 0: not known yet */
	sheaf_str owner;
	sheaf_str app;
	sheaf_str user;
	sheaf_str session;
	sheaf_str source; /* of a fork, encoded; "" */
	sheaf_str name;
	sheaf_str preview;
	sheaf_str cwd;
	uint64_t stamp;     /* of what was taken in; 0: not all of it was */
	int64_t expires_us; /* to be looked at again then; 0: never */
	int64_t created_us;
	int64_t modified_us;
	uint64_t base;
	int32_t hidden;
	int32_t damaged;
	uint64_t seq; /* the last record that was taken in, base if none, */
	uint32_t crc; /* and the checksum of its line */
} index_session;

/* One text. */
typedef struct index_doc {
	int64_t session;
	uint64_t seq;
	int64_t time_us;
	int32_t role; /* SHEAF_HIT_* */
	sheaf_str entry;
	sheaf_str agent;
	sheaf_str tools; /* each between line breaks: "\nbash\nread\n", or "" */
	sheaf_str text;
} index_doc;

typedef struct index_query {
	sheaf_str text;
	sheaf_str app;  /* encoded, {NULL,0}: any */
	sheaf_str user; /* encoded, {NULL,0}: any */
	sheaf_str project;
	sheaf_str agent;
	sheaf_str agent_prefix; /* "NAME." as session ids spell it, encoded */
	sheaf_str tool;
	uint32_t roles;
	uint32_t per_session;
	int64_t after_us;
	int64_t before_us;
	int64_t now_us;
	size_t limit;
} index_query;

/* A hit; key parts are still encoded. Valid during the callback. */
typedef struct index_hit {
	const index_session *session;
	const index_doc *doc; /* its text is not there */
	sheaf_str snippet;
	const sheaf_mark *marks;
	size_t mark_count;
	bool cut_before;
	bool cut_after;
	double score;
} index_hit;

typedef struct index_file index_file;

/* 0 to go on, negative to fail. */
typedef int (*index_session_fn)(void *ctx, const index_session *session);
typedef int (*index_hit_fn)(void *ctx, const index_hit *hit);

/*
 * Every call may answer SHEAF_DAMAGED: the file is no index, or of another
 * version, or not as it was written; whoever opened it throws it away.
 * SHEAF_BUSY, SHEAF_STORAGE, SHEAF_NOMEM as everywhere. One thread at a time.
 */
typedef struct index_ops {
	size_t size;
	uint32_t version;
	uint32_t reserved0;
	/* `path` NULL: in memory. Waits so long for other processes. */
	int (*open)(index_file **out, const char *path, int64_t wait_us, sheaf_error *err);
	void (*close)(index_file *ix);

	/* Changes are made between begin and commit, or undone. Nobody else writes meanwhile. */
	int (*begin)(index_file *ix, sheaf_error *err);
	int (*commit)(index_file *ix, sheaf_error *err);
	void (*undo)(index_file *ix);

	/* A number that is another one after anybody has changed anything. */
	int (*changes)(index_file *ix, uint64_t *out, sheaf_error *err);

	/* Number, owner, session, stamp and expires_us of the sessions of an app and user ({NULL,0}:
	   any). */
	int (*stamps)(index_file *ix, sheaf_str app, sheaf_str user, index_session_fn fn, void *ctx,
	              sheaf_error *err);
	/* Fills number, created_us, base, hidden, damaged, seq and crc; number 0: unknown. */
	int (*get)(index_file *ix, sheaf_str owner, sheaf_str session, index_session *out,
	           sheaf_error *err);
	/* Writes all of it down, and its name as a text; gives it a number. */
	int (*put)(index_file *ix, index_session *session, sheaf_error *err);
	int (*add)(index_file *ix, const index_doc *doc, sheaf_error *err);
	/* Takes the texts of a session out, or the session too. */
	int (*empty)(index_file *ix, int64_t number, bool whole, sheaf_error *err);
	/* Which tool a call of a session was for, once told. `*found` says whether it was. */
	int (*call_put)(index_file *ix, int64_t number, sheaf_str call, sheaf_str tool,
	                sheaf_error *err);
	int (*call_get)(index_file *ix, int64_t number, sheaf_str call, buf *tool, bool *found,
	                sheaf_error *err);
	/* After removals: leaves nothing readable of them in the file, if that is done in a moment.
	   `*clean` says whether it was. */
	int (*scrub)(index_file *ix, bool *clean, sheaf_error *err);

	int (*query)(index_file *ix, const index_query *query, index_hit_fn fn, void *ctx,
	             bool *more, sheaf_error *err);
} index_ops;

#endif
