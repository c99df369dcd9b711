/*
 * The module `search`, inside: what its files share.
 *
 *   fts.c          the table, the file and its tables
 *   fts_vfs.c      pages that carry a checksum
 *   fts_words.c    text → words
 *   fts_query.c    what a person typed → what SQLite is asked; marks in a text
 *   fts_rank.c     how good a hit is, and the best of them
 *   fts_sessions.c sessions and their texts, in and out
 */
#ifndef SEARCH_FTS_H
#define SEARCH_FTS_H

#include <sqlite3.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "search/index.h"

/* ---- Words ---------------------------------------------------------------- */

#define WORD_BYTES_MAX 64u /* what is longer is cut, in texts and queries alike */

typedef struct word {
	sheaf_str text; /* folded */
	size_t begin;   /* where in the text */
	size_t end;
	bool same_place; /* part of the word before: stands where that stands */
	bool tail;       /* the last character of a run that is indexed in pairs */
	bool lone;       /* and the only one */
} word;

/* 0 to go on; anything else ends it and is returned. */
typedef int (*word_fn)(void *ctx, const word *w);
int words_each(sheaf_str text, word_fn fn, void *ctx);

/* ---- Queries --------------------------------------------------------------- */

#define QUERY_PHRASES_MAX 32u
#define QUERY_WORDS_MAX 128u

typedef struct phrase {
	size_t first; /* of the query's words */
	size_t count;
	bool prefix; /* the last of them is a beginning */
} phrase;

typedef struct parsed {
	arena *a;
	sheaf_str words[QUERY_WORDS_MAX];
	size_t word_count;
	phrase phrases[QUERY_PHRASES_MAX];
	size_t phrase_count;
	buf match; /* the same for SQLite */
} parsed;

int query_parse(parsed *q, sheaf_str text, sheaf_error *err);
void query_free(parsed *q); /* for _cleanup_ */

#define SNIPPET_MARKS_MAX 32u

typedef struct snippet {
	sheaf_str text;
	sheaf_mark marks[SNIPPET_MARKS_MAX];
	size_t mark_count;
	bool cut_before;
	bool cut_after;
} snippet;

/* The part of a text that shows best why it was found. */
void snippet_make(snippet *out, const parsed *q, sheaf_str text);

/* ---- The number of a text ---------------------------------------------------- */

/*
 * What ranking needs is in the number itself, so that a hundred thousand hits
 * are ranked without one being looked up:
 *
 *   40 bits in ascending order | 5 bits length | 3 bits role | 15 bits day
 */
#define ID_LOW_BITS 23
#define ID_DAYS 32768

static inline int64_t id_make(int64_t order, int length, int role, int day)
{
	return order << ID_LOW_BITS | (int64_t)length << 18 | (int64_t)role << 15 | day;
}

static inline int id_length(int64_t id)
{
	return (int)(id >> 18 & 31);
}

static inline int id_role(int64_t id)
{
	return (int)(id >> 15 & 7);
}

static inline int id_day(int64_t id)
{
	return (int)(id & (ID_DAYS - 1));
}

int day_of(int64_t time_us); /* since 2000, 0 before it */
int length_of(size_t bytes); /* in half powers of two, 0 to 31 */

/* ---- The file ---------------------------------------------------------------- */

enum {
	ST_BEGIN,
	ST_COMMIT,
	ST_ROLLBACK,
	ST_VERSION,
	ST_STAMPS,
	ST_SESSIONS,
	ST_SESSION_GET,
	ST_SESSION_BY_NUMBER,
	ST_SESSION_PUT,
	ST_SESSION_DROP,
	ST_READER,
	ST_OTHERS,
	ST_DOC_LAST,
	ST_DOC_ADD,
	ST_DOC_GET,
	ST_DOC_DROP,
	ST_DOCS_OF,
	ST_TITLE_OF,
	ST_BODY_ADD,
	ST_BODY_GET,
	ST_BODY_DROP,
	ST_WORDS_ADD,
	ST_WORDS_DROP,
	ST_WORDS_OPTIMIZE,
	ST_WORDS_SIZE,
	ST_CALL_PUT,
	ST_CALL_GET,
	ST_CALLS_DROP,
	ST_MATCH,
	ST_COUNT
};

struct index_file {
	sqlite3 *db;
	sqlite3_stmt *statements[ST_COUNT]; /* prepared on first use */
	buf packed;
	buf plain;
	int64_t order; /* of the next text; 0: look */
	bool writing;
	bool wrong; /* a page was not as it was written */
};

/* Puts what SQLite answered into our words. */
int fts_fail(index_file *ix, int rc, sheaf_error *err);
/* A statement, ready for its values; NULL after a failure. Those in use are reset by fts_done(). */
sqlite3_stmt *fts_use(index_file *ix, int which, sheaf_error *err);
/* Runs a statement that gives no row. */
int fts_run(index_file *ix, sqlite3_stmt *st, sheaf_error *err);
void fts_done(sqlite3_stmt **st);                    /* for _cleanup_ */
int fts_bind(sqlite3_stmt *st, int at, sheaf_str s); /* the string must live until it is run */
sheaf_str fts_column(sqlite3_stmt *st, int at);

int fts_register(index_file *ix, sheaf_error *err); /* the tokenizer and the rank */

/* The text of a doc, into ix->plain, and if wanted the id of its entry. */
int fts_body(index_file *ix, int64_t id, buf *entry, sheaf_error *err);

/* Number, session and cwd of the sessions of an app and user. */
int fts_sessions(index_file *ix, sheaf_str app, sheaf_str user, index_session_fn fn, void *ctx,
                 sheaf_error *err);
int fts_stamps(index_file *ix, sheaf_str app, sheaf_str user, index_session_fn fn, void *ctx,
               sheaf_error *err);
int fts_get(index_file *ix, sheaf_str owner, sheaf_str session, index_session *out,
            sheaf_error *err);
int fts_put(index_file *ix, index_session *session, sheaf_error *err);
int fts_add(index_file *ix, const index_doc *doc, sheaf_error *err);
int fts_empty(index_file *ix, int64_t number, bool whole, sheaf_error *err);
int fts_call_put(index_file *ix, int64_t number, sheaf_str call, sheaf_str tool, sheaf_error *err);
int fts_call_get(index_file *ix, int64_t number, sheaf_str call, buf *tool, bool *found,
                 sheaf_error *err);
int fts_scrub(index_file *ix, bool *clean, sheaf_error *err);
/* All columns of ST_SESSION_GET and its like. */
void fts_session_row(sqlite3_stmt *st, index_session *out);
int fts_query(index_file *ix, const index_query *query, index_hit_fn fn, void *ctx, bool *more,
              sheaf_error *err);

/* ---- Pages --------------------------------------------------------------------- */

#define PAGE_BYTES 4096
#define PAGE_RESERVED 8

/* The name of a VFS whose main files carry checksums; `wrong` of an open one is set by a bad page. */
int vfs_register(void);
#define VFS_NAME "sheaf-checked"
/* For sqlite3_file_control: the argument is the `bool` to set when a page is wrong. */
#define VFS_TELL 0x53484541

#endif
