/* What the cases on PostgreSQL share: bare connections, calls built by hand, and the store's tables. */
#ifndef BENCH_PG_H
#define BENCH_PG_H

#include <libpq-fe.h>

#include "bench.h"

/* A store of its own in the database, by its prefix, opened as a role that owns nothing. */
typedef struct pg_side {
	char prefix[16];
	PGconn *admin; /* the superuser: sees every row and the statistics */
	PGconn *bare;  /* the store's role, on a connection of its own */
	sheaf_store *store;
} pg_side;

/* False, and says so, when there is no server to measure. */
bool pg_side_open(pg_side *p, const char *name, const char *prefix);
void pg_side_close(pg_side *p); /* and drops what was stored */

/* Statements whose failure ends the program. "@" is the prefix. The caller clears the answer. */
PGresult *pg_do(const pg_side *p, PGconn *c, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for one number, and for nothing. */
double pg_number(const pg_side *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pg_run(const pg_side *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A prepared call with its arguments built once, binary; numbers are set in place. */
#define PG_CALL_MAX 48
typedef struct pg_call {
	char function[32];
	int count;
	const char *names[PG_CALL_MAX];
	Oid types[PG_CALL_MAX];
	char *values[PG_CALL_MAX];
	int lengths[PG_CALL_MAX];
	int formats[PG_CALL_MAX];
} pg_call;

enum {
	PG_BOOL = 16,
	PG_BYTEA = 17,
	PG_INT8 = 20,
	PG_INT4 = 23,
	PG_TEXT = 25,
	PG_BYTEAS = 1001,
	PG_INT4S = 1007,
	PG_TEXTS = 1009,
	PG_INT8S = 1016
};

/* Each gives the place of the value, which lives until the call is freed. */
char *pg_call_bytes(pg_call *c, const char *name, Oid type, const void *bytes, size_t len);
char *pg_call_text(pg_call *c, const char *name, const char *text);
char *pg_call_int(pg_call *c, const char *name, Oid type, int64_t value);
void pg_call_null(pg_call *c, const char *name, Oid type);
/* An array of `count` equal items; gives the place of the first item's bytes. */
char *pg_call_array(pg_call *c, const char *name, Oid type, size_t count, const void *item,
                    size_t len);
void pg_call_prepare(pg_call *c, const pg_side *p, const char *function);
PGresult *pg_call_run(const pg_call *c, PGconn *conn);
void pg_call_free(pg_call *c);

void pg_put_i64(char *at, int64_t value);
int64_t pg_get_int(const PGresult *r, int row, const char *column);

/* Copies the rows of a table that `where` finds (as "t") many times; `set` is "column = expression;
 * column = …" over the number n from 1 to `count`. What is not set stays as it is there. */
void pg_multiply(const pg_side *p, const char *table, const char *where, const char *set,
                 uint64_t count);

#endif
