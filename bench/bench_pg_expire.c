/* PostgreSQL: sweeping sessions whose time is over, without reading through a table. */
#include <stdlib.h>
#include <string.h>

#include "bench_pg.h"

#define DAY_US 86400000000ll

/* A session that is kept for a day after its last record, with no grace. */
static void make_template(const pg_side *p)
{
	sheaf_key key = {sheaf_str_of("bench"), sheaf_str_of("template"), sheaf_str_of("template")};
	sheaf_retention keep = SHEAF_RETENTION_INIT;
	sheaf_session *s;
	sheaf_error err;
	bench_check(sheaf_session_open(&s, p->store, &key, NULL, &err), &err, "open");
	keep.ttl_us = DAY_US;
	keep.grace_us = SHEAF_GRACE_NONE;
	bench_check(sheaf_session_retain(s, &keep, NULL, NULL, &err), &err, "retain");
	bench_check(sheaf_session_append_text(s, "user", (sheaf_str){bench_text(), BENCH_TEXT},
	                                      NULL, &err),
	            &err, "append");
	sheaf_session_close(s);
}

/* `count` sessions that were last written to 2 to 12 days ago, and `alive` that were just now. */
static void load_expired(const pg_side *p, uint64_t count, uint64_t alive)
{
	char set[1024];
	make_template(p);
	snprintf(set, sizeof(set),
	         "owner = 'bench/u' || n %% 1000; session = 's' || n; "
	         "stored = t.stored - (2 + n %% 11) * %lld; "
	         "expires = t.expires - (2 + n %% 11) * %lld; "
	         "over = t.over - (2 + n %% 11) * %lld; "
	         "expires_on = (t.expires - (2 + n %% 11) * %lld) / %lld",
	         DAY_US, DAY_US, DAY_US, DAY_US, DAY_US);
	pg_multiply(p, "session", "t.owner = 'bench/template'", set, count);
	pg_multiply(p, "record", "t.owner = 'bench/template'",
	            "owner = 'bench/u' || n % 1000; session = 's' || n", count);
	pg_multiply(p, "session", "t.owner = 'bench/template'",
	            "owner = 'bench/v' || n % 1000; session = 's' || n", alive);
	pg_run(p, "VACUUM ANALYZE @session, @record");
}

static double seq_scans(const pg_side *p)
{
	pg_run(p, "SELECT pg_stat_clear_snapshot()");
	return pg_number(p, "SELECT sum(seq_scan) FROM pg_stat_all_tables WHERE relname IN"
	                    " ('@session', '@record', '@link', '@queue')");
}

/* ---- The plans ------------------------------------------------------------------------------- */

typedef struct plans {
	bool show;
	int sequential; /* nodes that read through a table of sessions or records */
} plans;

static void take_notice(void *ctx, const PGresult *r)
{
	plans *x = ctx;
	const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
	if (!text || !strstr(text, "Query Text:"))
		return;
	for (const char *at = text; (at = strstr(at, "Seq Scan on ")); at++)
		x->sequential++;
	if (x->show)
		fprintf(stderr, "%s\n", text);
}

/* Runs the module's statement as its role, with the server telling every plan inside. */
static int explain(const pg_side *p, bool show, const char *sql)
{
	plans x = {.show = show};
	PQsetNoticeReceiver(p->admin, take_notice, &x);
	pg_run(p, "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;"
	          "SET auto_explain.log_nested_statements = on; SET auto_explain.log_analyze = off;"
	          "SET client_min_messages = log; SET ROLE sheaf_app");
	pg_run(p, "%s", sql);
	pg_run(p, "RESET ROLE; SET auto_explain.log_min_duration = -1;"
	          "SET client_min_messages = warning");
	PQsetNoticeReceiver(p->admin, NULL, NULL);
	return x.sequential;
}

int bench_pg_expire(bench *b)
{
	uint64_t count = b->quick ? 4000 : 100000;
	sheaf_expire_options o = SHEAF_EXPIRE_OPTIONS_INIT;
	sheaf_expired *gone;
	sheaf_error err;
	pg_side p;

	if (!pg_side_open(&p, "pg-expire", "bx_"))
		return 0;
	load_expired(&p, count, b->quick ? 40000 : count);
	int planned = explain(&p, !b->quick,
	                      "SELECT * FROM @list_expired(NULL, 'bench', NULL,"
	                      " (extract(epoch FROM now()) * 1000000)::bigint, 0, '', '', 256);"
	                      "SELECT * FROM @remove(p_owner => 'bench/u1', p_app => 'bench',"
	                      " p_session => 's1', p_shard => NULL, p_reap => false,"
	                      " p_expired => true)");
	double before = seq_scans(&p);
	o.app = sheaf_str_of("bench");
	o.all_users = 1;
	double t = bench_now_us();
	bench_check(sheaf_store_expire(&gone, p.store, &o, &err), &err, "expire");
	t = bench_now_us() - t;
	double swept = (double)gone->removed->count;
	sheaf_expired_free(gone);
	sheaf_close(p.store);
	p.store = NULL;
	pg_number(&p, "SELECT pg_sleep(1)");
	double scans = seq_scans(&p) - before;
	bench_report(b, "pg-expire", swept, "sessions", (double)count - 1, 1, true);
	bench_report(b, "pg-expire-speed", swept * 1e6 / t, "sessions/s", swept * 1e6 / t, 0, true);
	bench_report_value(b, "pg-expire-planned", planned, "sequential scans", 0);
	bench_report_value(b, "pg-expire-done", scans, "sequential scans", 0);
	pg_side_close(&p);
	return 0;
}
