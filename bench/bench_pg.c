/* Bare connections to PostgreSQL, calls of its functions built by hand, and rows made in bulk. */
#include "bench_pg.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "sheaf-bench: %s: %s\n", what, why);
	exit(1);
}

static PGconn *connect_to(const char *variable)
{
	PGconn *c = PQconnectdb(getenv(variable));
	if (PQstatus(c) != CONNECTION_OK)
		fail("connect", PQerrorMessage(c));
	return c;
}

static int no_line(void *ctx, sheaf_str line)
{
	(void)ctx, (void)line;
	return 0;
}

static void migrate(const pg_side *p)
{
	char url[600];
	sheaf_error err;
	snprintf(url, sizeof(url), "%s?prefix=%s", getenv("SHEAF_TEST_POSTGRES"), p->prefix);
	bench_check(sheaf_store_migrate(url, 0, no_line, NULL, &err), &err, "make the tables");
}

static void drop(const pg_side *p)
{
	pg_run(p, "DO $$ DECLARE r record; BEGIN"
	          " FOR r IN SELECT oid::regclass AS name FROM pg_class"
	          "  WHERE starts_with(relname, '@') AND relkind = 'r'"
	          "  LOOP EXECUTE 'DROP TABLE ' || r.name; END LOOP;"
	          " FOR r IN SELECT oid::regprocedure AS name FROM pg_proc"
	          "  WHERE starts_with(proname, '@')"
	          "  LOOP EXECUTE 'DROP FUNCTION ' || r.name; END LOOP; END $$");
}

bool pg_side_open(pg_side *p, const char *name, const char *prefix)
{
	char url[600];
	sheaf_error err;
	const char *role = getenv("SHEAF_TEST_POSTGRES_ROLE");
	if (!role || !getenv("SHEAF_TEST_POSTGRES") || !getenv("SHEAF_TEST_POSTGRES_ADMIN")) {
		bench_skip(name, "no SHEAF_TEST_POSTGRES: run under tools/servers run postgres --");
		return false;
	}
	snprintf(p->prefix, sizeof(p->prefix), "%s", prefix);
	p->admin = connect_to("SHEAF_TEST_POSTGRES_ADMIN");
	PQclear(PQexec(p->admin, "SET client_min_messages = warning"));
	p->bare = connect_to("SHEAF_TEST_POSTGRES_ROLE");
	drop(p); /* what a run that was ended has left */
	migrate(p);
	snprintf(url, sizeof(url), "%s?prefix=%s", role, prefix);
	bench_check(sheaf_open(&p->store, url, NULL, &err), &err, "open a store");
	return true;
}

void pg_side_close(pg_side *p)
{
	sheaf_close(p->store);
	PQfinish(p->bare);
	drop(p);
	PQfinish(p->admin);
}

/* ---- Statements ---------------------------------------------------------------------- */

/* Writes the statement with the prefix in the place of "@". */
static char *spell(const pg_side *p, const char *format, va_list args)
{
	static char out[16384];
	char text[8192];
	size_t at = 0;
	vsnprintf(text, sizeof(text), format, args);
	for (const char *s = text; *s && at + sizeof(p->prefix) < sizeof(out); s++) {
		if (*s == '@')
			at += (size_t)snprintf(out + at, sizeof(out) - at, "%s", p->prefix);
		else
			out[at++] = *s;
	}
	out[at] = 0;
	return out;
}

static PGresult *expect(PGresult *r, const char *what)
{
	ExecStatusType s = PQresultStatus(r);
	if (s != PGRES_TUPLES_OK && s != PGRES_COMMAND_OK)
		fail(what, PQresultErrorMessage(r));
	return r;
}

static PGresult *vdo(const pg_side *p, PGconn *c, const char *format, va_list args)
{
	const char *sql = spell(p, format, args);
	return expect(PQexec(c, sql), sql);
}

PGresult *pg_do(const pg_side *p, PGconn *c, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	PGresult *r = vdo(p, c, format, args);
	va_end(args);
	return r;
}

double pg_number(const pg_side *p, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	PGresult *r = vdo(p, p->admin, format, args);
	va_end(args);
	double value = PQntuples(r) == 1 ? atof(PQgetvalue(r, 0, 0)) : 0;
	PQclear(r);
	return value;
}

void pg_run(const pg_side *p, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	PQclear(vdo(p, p->admin, format, args));
	va_end(args);
}

/* ---- Calls ------------------------------------------------------------------------------ */

void pg_put_i64(char *at, int64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (char)((uint64_t)value >> (56 - 8 * i));
}

static void put_i32(char *at, int32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (char)((uint32_t)value >> (24 - 8 * i));
}

static char *add(pg_call *c, const char *name, Oid type, size_t len)
{
	int i = c->count++;
	if (i >= PG_CALL_MAX)
		fail("build a call", "too many arguments");
	c->names[i] = name;
	c->types[i] = type;
	c->lengths[i] = (int)len;
	c->formats[i] = 1;
	c->values[i] = malloc(len ? len : 1);
	return c->values[i];
}

char *pg_call_bytes(pg_call *c, const char *name, Oid type, const void *bytes, size_t len)
{
	return memcpy(add(c, name, type, len), bytes, len);
}

char *pg_call_text(pg_call *c, const char *name, const char *text)
{
	return pg_call_bytes(c, name, PG_TEXT, text, strlen(text));
}

char *pg_call_int(pg_call *c, const char *name, Oid type, int64_t value)
{
	char *at = add(c, name, type, type == PG_BOOL ? 1 : type == PG_INT4 ? 4 : 8);
	if (type == PG_BOOL)
		*at = value != 0;
	else if (type == PG_INT4)
		put_i32(at, (int32_t)value);
	else
		pg_put_i64(at, value);
	return at;
}

void pg_call_null(pg_call *c, const char *name, Oid type)
{
	add(c, name, type, 0);
	free(c->values[c->count - 1]);
	c->values[c->count - 1] = NULL;
}

char *pg_call_array(pg_call *c, const char *name, Oid type, size_t count, const void *item,
                    size_t len)
{
	static const int32_t of[][2] = {{PG_BYTEAS, PG_BYTEA},
	                                {PG_INT4S, PG_INT4},
	                                {PG_TEXTS, PG_TEXT},
	                                {PG_INT8S, PG_INT8}};
	char *at = add(c, name, type, count ? 20 + count * (4 + len) : 12);
	put_i32(at, count ? 1 : 0);
	put_i32(at + 4, 0);
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (of[i][0] == (int32_t)type)
			put_i32(at + 8, of[i][1]);
	if (!count)
		return NULL;
	put_i32(at + 12, (int32_t)count);
	put_i32(at + 16, 1);
	for (size_t i = 0; i < count; i++) {
		put_i32(at + 20 + i * (4 + len), (int32_t)len);
		memcpy(at + 24 + i * (4 + len), item, len);
	}
	return at + 24;
}

void pg_call_prepare(pg_call *c, const pg_side *p, const char *function)
{
	char sql[2048];
	size_t at = (size_t)snprintf(sql, sizeof(sql), "SELECT * FROM \"%s%s\"(", p->prefix,
	                             function);
	snprintf(c->function, sizeof(c->function), "bare_%s", function);
	for (int i = 0; i < c->count; i++)
		at += (size_t)snprintf(sql + at, sizeof(sql) - at, "%s%s => $%d", i ? ", " : "",
		                       c->names[i], i + 1);
	snprintf(sql + at, sizeof(sql) - at, ")");
	PQclear(expect(PQprepare(p->bare, c->function, sql, c->count, c->types), sql));
}

PGresult *pg_call_run(const pg_call *c, PGconn *conn)
{
	return expect(PQexecPrepared(conn, c->function, c->count, (const char *const *)c->values,
	                             c->lengths, c->formats, 1),
	              c->function);
}

void pg_call_free(pg_call *c)
{
	for (int i = 0; i < c->count; i++)
		free(c->values[i]);
	*c = (pg_call){.count = 0};
}

int64_t pg_get_int(const PGresult *r, int row, const char *column)
{
	int f = PQfnumber(r, column);
	if (f < 0 || row >= PQntuples(r))
		fail("read an answer", column);
	const unsigned char *at = (const unsigned char *)PQgetvalue(r, row, f);
	uint64_t value = 0;
	for (int i = 0; i < PQgetlength(r, row, f); i++)
		value = value << 8 | at[i];
	return PQgetlength(r, row, f) == 4 ? (int64_t)(int32_t)value : (int64_t)value;
}

/* ---- Rows in bulk -------------------------------------------------------------------------- */

/* Whether `set` has something for the column, and what. */
static bool set_of(const char *set, const char *column, char *out, size_t room)
{
	char wanted[80];
	snprintf(wanted, sizeof(wanted), "%s = ", column);
	const char *at = set;
	while (at && strncmp(at, wanted, strlen(wanted)) != 0) {
		at = strchr(at, ';');
		at = at ? at + 2 : NULL;
	}
	if (at)
		snprintf(out, room, "%.*s", (int)strcspn(at + strlen(wanted), ";"),
		         at + strlen(wanted));
	return at != NULL;
}

void pg_multiply(const pg_side *p, const char *table, const char *where, const char *set,
                 uint64_t count)
{
	char columns[2048] = "", values[4096] = "", one[1024];
	size_t c = 0, v = 0;
	PGresult *r = pg_do(p, p->admin,
	                    "SELECT column_name FROM information_schema.columns"
	                    " WHERE table_name = '@%s' ORDER BY ordinal_position",
	                    table);
	for (int i = 0; i < PQntuples(r); i++) {
		const char *name = PQgetvalue(r, i, 0);
		if (!set_of(set, name, one, sizeof(one)))
			snprintf(one, sizeof(one), "t.%s", name);
		c += (size_t)snprintf(columns + c, sizeof(columns) - c, "%s%s", i ? ", " : "",
		                      name);
		v += (size_t)snprintf(values + v, sizeof(values) - v, "%s%s", i ? ", " : "", one);
	}
	PQclear(r);
	pg_run(p, "INSERT INTO @%s (%s) SELECT %s FROM @%s t, generate_series(1, %llu) n WHERE %s",
	       table, columns, values, table, (unsigned long long)count, where);
}
