/*
 * What the files of the postgres module share: connections, statements, their
 * arguments and answers.
 *
 *   postgres_conn      a connection: opening it, one statement with a deadline
 *   postgres_pool      a bounded pool of them; calls that outlive a failover
 *   postgres_args      binary arguments and answers; the codec of bodies
 *   postgres_migrate   the schema's versions (postgres_schema.sql)
 *   postgres_append    the one way to write
 *   postgres_read      heads, scans, lists
 *   postgres_check     check
 *   postgres_remove    remove, replace, heads worked out anew
 *   postgres_beside    state and queues
 *   postgres_store     opening one server; the table
 *   postgres_shards    many servers behind one map; its table
 */
#ifndef STORE_POSTGRES_H
#define STORE_POSTGRES_H

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "sheaf/sys/store.h"

#define PG_PREFIX_ROOM 32u
#define PG_POOL_DEFAULT 8u
#define PG_POOL_MAX 64u
#define PG_HOSTS_MAX 16u
#define PG_DEADLINE_US (INT64_C(10) * 1000000)

/* ---- Arguments and answers ------------------------------------------------- */

#define PG_ARGS_MAX 32u
#define PG_ARGS_BYTES_MAX ((size_t)512 << 20)

/* The arguments of one statement, binary, one after the other in a buffer. */
typedef struct pg_args {
	buf bytes;
	int count;
	int retry; /* the boolean that says "this may be stored already"; -1: there is none */
	size_t at[PG_ARGS_MAX];
	int len[PG_ARGS_MAX]; /* -1: NULL */
} pg_args;

/* clang-format off */
#define PG_ARGS_INIT {BUF_INIT(PG_ARGS_BYTES_MAX), 0, -1, {0}, {0}}
/* clang-format on */

void pg_args_free(pg_args *a);
void pg_args_reset(pg_args *a);
void pg_arg_null(pg_args *a);
void pg_arg_text(pg_args *a, sheaf_str text); /* a NULL ptr is NULL; bytea too */
void pg_arg_bool(pg_args *a, bool value);
void pg_arg_i32(pg_args *a, int32_t value);
void pg_arg_i64(pg_args *a, int64_t value);

enum {
	PG_BYTEA = 17,
	PG_INT8 = 20,
	PG_INT4 = 23,
	PG_TEXT = 25
};

/* An array: begin, `count` items, end. */
void pg_array_begin(pg_args *a, uint32_t type, size_t count);
void pg_item_text(pg_args *a, sheaf_str text); /* a NULL ptr is NULL */
void pg_item_i32(pg_args *a, int32_t value);
void pg_item_i64(pg_args *a, int64_t value);
void pg_array_end(pg_args *a);
void pg_array_empty(pg_args *a, uint32_t type);

/* Fields of an answer. A NULL is 0, false, {NULL,0}. */
int64_t pg_get_i64(const PGresult *r, int row, int column);
int32_t pg_get_i32(const PGresult *r, int row, int column);
bool pg_get_bool(const PGresult *r, int row, int column);
/* The number a function that writes answers with; -1 if it is none. */
int32_t pg_get_status(const PGresult *r);
/* What such an answer is: nobody knows what was done. */
int pg_nonsense(sheaf_error *err);
sheaf_str pg_get_text(const PGresult *r, int row, int column);
/* An array of int8 into `out`; false if it is not one of `count`. */
bool pg_get_i64s(const PGresult *r, int row, int column, uint64_t *out, size_t count);

/* A body: codec byte, line, line break. */
void pg_item_body(pg_args *a, sheaf_str line);
/* The line of a body, in place or in `room`; false if it is none. A line break follows it. */
bool pg_body_line(sheaf_str body, buf *room, sheaf_str *line);
/* Whether a line ends in the crc of what precedes it. */
bool pg_line_ok(sheaf_str line);

static inline void pg_clearp(PGresult **r)
{
	PQclear(*r);
}

/* ---- Statements -------------------------------------------------------------- */

/* Every statement is the call of a function; text and name are made when a store is opened. */
typedef enum pg_statement {
	PG_APPEND,
	PG_HEAD,
	PG_FIND,
	PG_SCAN,
	PG_HEADER,
	PG_LIST,
	PG_LIST_EXPIRED,
	PG_READERS,
	PG_REMOVE,
	PG_HIDE,
	PG_REPLACE_BEGIN,
	PG_ADD_ROWS,
	PG_REPLACE_FINISH,
	PG_READ_STATE,
	PG_APPLY_STATE,
	PG_QUEUE_PUT,
	PG_QUEUE_LIST,
	PG_QUEUE_CLAIM,
	PG_QUEUE_ACK,
	PG_QUEUE_CANCEL,
	PG_STATEMENTS
} pg_statement;

typedef struct pg_text {
	char sql[256];
	char name[32]; /* says which text it is: the same on every connection, also of others */
} pg_text;

/* ---- A server ------------------------------------------------------------------ */

typedef struct pg_conn {
	PGconn *pq;
	bool prepared[PG_STATEMENTS];
	bool warned;    /* the server sent a warning since the statement began */
	bool cancelled; /* a statement was, which may reach the server after its end */
	struct pg_conn *next;
} pg_conn;

/* One database, as a URL names it, and its pool. */
typedef struct pg_server {
	char prefix[PG_PREFIX_ROOM];
	pg_text texts[PG_STATEMENTS];
	PQconninfoOption *info;
	atomic_bool unnamed; /* a pooler between us does not keep prepared statements */
	int32_t durability_max;
	int64_t deadline_us;
	pthread_mutex_t mutex;
	pthread_cond_t freed;
	pg_conn *idle;
	unsigned open;
	unsigned most;
} pg_server;

typedef sheaf_str (*pg_option_fn)(const void *url, const char *name);

/* Reads the URL; connects to nothing. `rest` is what follows "postgres:". */
int pg_server_init(pg_server *s, sheaf_str rest, const sheaf_store_options *options,
                   pg_option_fn option, const void *url, sheaf_error *err);
void pg_server_free(pg_server *s);
extern const char pg_option_names[];

/* How an attempt ended. */
typedef enum pg_end {
	PG_DONE,
	PG_AGAIN, /* certainly not applied; worth another attempt */
	PG_LOST,  /* sent, and no answer */
	PG_ERROR, /* certainly not applied; `err` says why */
	PG_KNOWN, /* an id is there already (unique violation) */
} pg_end;

pg_conn *pg_conn_open(pg_server *s, int64_t deadline_us, pg_end *end, sheaf_error *err);
void pg_conn_close(pg_conn *c);
/* One statement by its number, or `sql` alone (simple protocol, many statements). */
pg_end pg_conn_run(pg_server *s, pg_conn *c, pg_statement which, const pg_args *args,
                   int64_t deadline_us, PGresult **out, sheaf_error *err);
pg_end pg_conn_sql(pg_conn *c, const char *sql, int64_t deadline_us, PGresult **out,
                   sheaf_error *err);

/*
 * Runs a statement on a connection of the pool, again after failures that
 * passing time may mend, until the deadline. Sets the retry argument after an
 * attempt whose answer was lost; `*lost` (may be NULL) says whether there was
 * one. A failure after that is marked UNKNOWN. SHEAF_CONFLICT for an id that is
 * there already.
 */
int pg_call(pg_server *s, pg_statement which, pg_args *args, int64_t deadline_us, bool *lost,
            PGresult **out, sheaf_error *err);

/* When a call that was given no deadline must end. */
int64_t pg_deadline(const pg_server *s);

/* ---- The schema ----------------------------------------------------------------- */

#define PG_SCHEMA_VERSION 1

/* Looks at the schema's version and at what the server promises; with `migrate` mends it. */
int pg_prepare_server(pg_server *s, bool migrate, sheaf_error *err);
extern const char pg_schema_sql[]; /* postgres_schema.sql */
int pg_migrate(pg_server *s, int print, sheaf_text_fn fn, void *ctx, sheaf_error *err);

/* ---- Calls on one server ---------------------------------------------------------- */

/* Where a call goes: a server, and the virtual shard it must find there (-1: none). */
typedef struct pg_place {
	pg_server *server;
	int32_t shard;
} pg_place;

int pg_head(pg_place at, const sheaf_store_key *key, sheaf_head *out, sheaf_head_state *state,
            sheaf_error *err);
int pg_append(pg_place at, const sheaf_store_key *key, const sheaf_append_request *request,
              sheaf_append_reply *reply, sheaf_error *err);
int pg_scan(pg_place at, const sheaf_store_key *key, const sheaf_scan *scan, sheaf_row_fn fn,
            void *ctx, sheaf_error *err);
/* The same with the head, if it is not NULL. */
int pg_read(pg_place at, const sheaf_store_key *key, const sheaf_scan *scan, sheaf_head *head,
            sheaf_head_state *state, sheaf_row_fn fn, void *ctx, sheaf_error *err);
int pg_find(pg_place at, const sheaf_store_key *key, sheaf_str id, uint64_t *seq, sheaf_error *err);
int pg_header(pg_place at, const sheaf_store_key *key, sheaf_row_fn fn, void *ctx,
              sheaf_error *err);
int pg_list(pg_place at, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
            sheaf_error *err);
int pg_remove(pg_place at, const sheaf_store_key *key, const sheaf_remove_request *request,
              sheaf_remove_reply *reply, sheaf_error *err);
int pg_replace(pg_place at, const sheaf_store_key *key, uint64_t revision, sheaf_rows_fn next,
               void *ctx, int64_t deadline_us, sheaf_error *err);
int pg_check(pg_place at, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
             sheaf_check_totals *totals, sheaf_error *err);
int pg_state_read(pg_place at, sheaf_str scope, int app, sheaf_state_fn fn, void *ctx,
                  sheaf_error *err);
int pg_state_apply(pg_place at, sheaf_str app, const sheaf_state_item *items, size_t count,
                   int64_t deadline_us, sheaf_error *err);
int pg_queue_put(pg_place at, const sheaf_store_key *key, const sheaf_queue_row *row,
                 int64_t deadline_us, int32_t *existed, sheaf_error *err);
int pg_queue_claim(pg_place at, const sheaf_store_key *key, const sheaf_claim *claim,
                   sheaf_queue_fn fn, void *ctx, sheaf_error *err);
int pg_queue_ack(pg_place at, const sheaf_store_key *key, sheaf_str token, int64_t deadline_us,
                 size_t *count, sheaf_error *err);
int pg_queue_cancel(pg_place at, const sheaf_store_key *key, sheaf_str id, int64_t deadline_us,
                    int32_t *existed, sheaf_error *err);
int pg_queue_list(pg_place at, const sheaf_store_key *key, sheaf_queue_fn fn, void *ctx,
                  sheaf_error *err);

/* ---- Between the files of calls ------------------------------------------------------ */

/* The arguments that nearly every function begins with: owner, app, session, shard. */
void pg_arg_key(pg_args *a, pg_place at, const sheaf_store_key *key);
void pg_arg_shard(pg_args *a, pg_place at);

/* A head as bytes, with the numbers of the session's row that come from it. */
typedef struct pg_head_row {
	buf bytes;
	int64_t revision;
	int64_t base;
	int64_t created;
	int64_t mark;
	int64_t modified;
	int64_t ttl; /* 0: does not expire */
	int64_t grace;
	buf state; /* the session's state, if asked for */
} pg_head_row;

int pg_head_row_make(pg_head_row *out, const sheaf_head *head, bool with_state, sheaf_error *err);
void pg_arg_state(pg_args *a, const pg_head_row *row); /* NULL if it was not asked for */
void pg_head_row_free(pg_head_row *row);
int64_t pg_mark(sheaf_str head); /* the checksum that ends a head's bytes */
/* Four arrays: ids, parents, kinds, bodies. */
void pg_arg_rows(pg_args *a, const sheaf_row *rows, size_t count);
void pg_arg_links(pg_args *a, const sheaf_head *head);

/* A head from its bytes; what cannot be read is worked out from the records. */
int pg_head_read(pg_place at, const sheaf_store_key *key, sheaf_str bytes, sheaf_str state,
                 bool hidden, sheaf_head *out, sheaf_error *err);
/* The head that the records up to `last` amount to. */
int pg_head_fold(pg_place at, const sheaf_store_key *key, uint64_t last, sheaf_head *out,
                 sheaf_error *err);

/* Gives the rows of an answer (owner, session, app, modified, stored, head, now) to `fn`: 0, 1 if it
 * stopped, or negative. */
int pg_give_listed(const PGresult *r, sheaf_head *scratch, sheaf_info_fn fn, void *ctx,
                   sheaf_error *err);

/* A list that is read row by row, for who merges several: fill, then ask whether there is one. */
typedef struct pg_lister pg_lister;
int pg_lister_new(pg_lister **out, pg_place at, const sheaf_list_query *query, sheaf_error *err);
void pg_lister_free(pg_lister *l);
int pg_lister_fill(pg_lister *l, sheaf_error *err);
bool pg_lister_has(const pg_lister *l);
bool pg_lister_before(const pg_lister *a, const pg_lister *b); /* both have a row */
int pg_lister_give(pg_lister *l, sheaf_info_fn fn, void *ctx, sheaf_error *err);

int pg_no_session(sheaf_error *err);

#endif
