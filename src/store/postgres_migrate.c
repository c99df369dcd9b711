/* The versions of the schema: which one a database has, and bringing it to ours. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/postgres.h"

#define SQL_BYTES_MAX ((size_t)1 << 20)
#define VERSION_MARK "-- version "

/* Writes SQL with every @name as the quoted name of this store. */
static void put_sql(buf *out, const pg_server *s, sheaf_str sql)
{
	for (size_t i = 0; i < sql.len; i++) {
		if (sql.ptr[i] != '@') {
			buf_char(out, sql.ptr[i]);
			continue;
		}
		size_t n = strspn(sql.ptr + i + 1, "abcdefghijklmnopqrstuvwxyz_");
		buf_format(out, "\"%s%.*s\"", s->prefix, (int)n, sql.ptr + i + 1);
		i += n;
	}
}

/* The part of the schema that makes version `version`. */
static sheaf_str version_part(int version)
{
	char mark[32];
	snprintf(mark, sizeof(mark), "\n" VERSION_MARK "%d\n", version);
	const char *begin = strstr(pg_schema_sql, mark);
	if (begin == NULL)
		return (sheaf_str){"", 0};
	begin++;
	const char *end = strstr(begin, "\n" VERSION_MARK);
	return str_make(begin, end != NULL ? (size_t)(end + 1 - begin) : strlen(begin));
}

/* One transaction from version `from` to ours. The lock lets two that migrate at once take turns:
 * the second finds the tables and fails, which whoever called it looks into. */
static void put_migration(buf *out, const pg_server *s, int from)
{
	buf_lit(out, "BEGIN;\n");
	buf_format(out, "SELECT pg_advisory_xact_lock(hashtextextended('%sschema', 0));\n",
	           s->prefix);
	for (int v = from + 1; v <= PG_SCHEMA_VERSION; v++)
		put_sql(out, s, version_part(v));
	buf_format(out,
	           "INSERT INTO \"%smeta\" (key, value) VALUES ('schema', '%d')\n"
	           "\tON CONFLICT (key) DO UPDATE SET value = excluded.value;\nCOMMIT;\n",
	           s->prefix, PG_SCHEMA_VERSION);
	buf_nul(out);
}

/* The version that is there, 0 if there is none. */
static int read_version(pg_server *s, pg_conn *c, int *version, sheaf_error *err)
{
	char sql[256];
	_cleanup_(pg_clearp) PGresult *r = NULL;
	*version = 0;
	snprintf(sql, sizeof(sql),
	         "SELECT to_regclass('\"%smeta\"') IS NOT NULL, current_setting('fsync'), "
	         "current_setting('synchronous_standby_names') <> '', "
	         "current_setting('default_transaction_isolation')",
	         s->prefix);
	if (pg_conn_sql(c, sql, pg_deadline(s), &r, err) != PG_DONE)
		return err->code;
	/* Functions look again once they have a lock, and must see what was done meanwhile. */
	if (strcmp(PQgetvalue(r, 0, 3), "repeatable read") == 0) {
		int rc = err_set(err, SHEAF_UNSUPPORTED,
		                 "the server's default_transaction_isolation is repeatable read");
		err_hint(err, "ALTER ROLE or DATABASE … SET default_transaction_isolation = "
		              "'read committed'");
		return rc;
	}
	bool there = PQgetvalue(r, 0, 0)[0] == 't';
	/* What the server does not promise is not promised to callers. */
	if (strcmp(PQgetvalue(r, 0, 1), "on") != 0)
		s->durability_max = SHEAF_DURABILITY_PROCESS;
	else
		s->durability_max = PQgetvalue(r, 0, 2)[0] == 't' ? SHEAF_DURABILITY_REPLICA
		                                                  : SHEAF_DURABILITY_DISK;
	if (!there)
		return 0;
	PQclear(r);
	snprintf(sql, sizeof(sql), "SELECT value FROM \"%smeta\" WHERE key = 'schema'", s->prefix);
	if (pg_conn_sql(c, sql, pg_deadline(s), &r, err) != PG_DONE)
		return err->code;
	if (PQntuples(r) == 1)
		*version = (int)strtol(PQgetvalue(r, 0, 0), NULL, 10);
	return 0;
}

static int newer(int version, sheaf_error *err)
{
	int rc = err_set(err, SHEAF_FORMAT, "the schema has version %d, this library knows %d",
	                 version, PG_SCHEMA_VERSION);
	err_hint(err, "use the newer library that made it");
	return rc;
}

static int migrate_from(pg_server *s, pg_conn *c, int from, sheaf_error *err)
{
	_cleanup_(buf_free) buf sql = BUF_INIT(SQL_BYTES_MAX);
	_cleanup_(pg_clearp) PGresult *r = NULL;
	put_migration(&sql, s, from);
	int rc = buf_status(&sql, err);
	if (rc != 0)
		return rc;
	pg_end end = pg_conn_sql(c, sql.ptr, pg_deadline(s), &r, err);
	if (end == PG_DONE)
		return 0;
	rc = err->code;
	int now = 0;
	sheaf_error later;
	PGresult *ended = NULL;
	if (end == PG_LOST)
		return err_unknown(err, rc);
	/* Somebody else may have done it in the meantime. */
	if (pg_conn_sql(c, "ROLLBACK", pg_deadline(s), &ended, &later) != PG_DONE)
		return rc;
	PQclear(ended);
	return read_version(s, c, &now, &later) == 0 && now == PG_SCHEMA_VERSION ? 0 : rc;
}

int pg_prepare_server(pg_server *s, bool migrate, sheaf_error *err)
{
	pg_end end;
	pg_conn *c = pg_conn_open(s, pg_deadline(s), &end, err);
	if (c == NULL)
		return err->code;
	int version, rc = read_version(s, c, &version, err);
	if (rc == 0 && version > PG_SCHEMA_VERSION) {
		rc = newer(version, err);
	} else if (rc == 0 && version < PG_SCHEMA_VERSION && migrate) {
		rc = migrate_from(s, c, version, err);
	} else if (rc == 0 && version < PG_SCHEMA_VERSION) {
		rc = err_set(err, SHEAF_FORMAT,
		             version == 0 ? "the database has no Sheaf tables"
		                          : "the schema is of an older version");
		err_hint(err, "run: sheaf migrate URL, or open it with ?migrate=1");
	}
	pg_conn_close(c);
	return rc;
}

static int give_lines(const buf *text, sheaf_text_fn fn, void *ctx)
{
	for (size_t at = 0; at < text->len;) {
		const char *line = text->ptr + at;
		size_t n = strcspn(line, "\n");
		int rc = fn(ctx, str_make(line, n));
		if (rc < 0)
			return rc;
		at += n + 1;
	}
	return 0;
}

static int say(sheaf_text_fn fn, void *ctx, const char *format, int version)
{
	char line[128];
	snprintf(line, sizeof(line), format, version);
	int rc = fn(ctx, sheaf_str_of(line));
	return rc < 0 ? rc : 0;
}

int pg_migrate(pg_server *s, int print, sheaf_text_fn fn, void *ctx, sheaf_error *err)
{
	if (print != 0) {
		_cleanup_(buf_free) buf sql = BUF_INIT(SQL_BYTES_MAX);
		put_migration(&sql, s, 0);
		int rc = buf_status(&sql, err);
		return rc != 0 ? rc : give_lines(&sql, fn, ctx);
	}
	pg_end end;
	pg_conn *c = pg_conn_open(s, pg_deadline(s), &end, err);
	if (c == NULL)
		return err->code;
	int version, rc = read_version(s, c, &version, err);
	bool behind = rc == 0 && version < PG_SCHEMA_VERSION;
	if (rc == 0 && version > PG_SCHEMA_VERSION)
		rc = newer(version, err);
	if (behind)
		rc = migrate_from(s, c, version, err);
	pg_conn_close(c);
	if (rc != 0)
		return rc;
	return say(fn, ctx,
	           behind ? "the schema has now version %d" : "the schema has version %d already",
	           PG_SCHEMA_VERSION);
}
