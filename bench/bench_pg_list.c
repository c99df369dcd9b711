/* PostgreSQL: lists where the table or an owner is large, and updates that touch no index. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_pg.h"

#define DAY_US 86400000000ll

static sheaf_session *open_session(sheaf_store *store, const char *user, const char *name)
{
	sheaf_key key = {sheaf_str_of("bench"), sheaf_str_of(user), sheaf_str_of(name)};
	sheaf_session *s;
	sheaf_error err;
	bench_check(sheaf_session_open(&s, store, &key, NULL, &err), &err, "open");
	return s;
}

static void append_one(sheaf_session *s)
{
	sheaf_error err;
	bench_check(sheaf_session_append_text(s, "user", (sheaf_str){bench_text(), BENCH_TEXT},
	                                      NULL, &err),
	            &err, "append");
}

/*
 * Sessions of `owners` owners in turn, one real session copied, spread over the year that ended
 * with yesterday, so that every day is a full one.
 */
static void load_sessions(const pg_side *p, const char *name, uint64_t count, uint64_t owners)
{
	char set[1024];
	sheaf_session *s = open_session(p->store, "template", "template");
	append_one(s);
	append_one(s);
	sheaf_session_close(s);
	long long end = (long long)time(NULL) * 1000000 / DAY_US * DAY_US - 1;
	long long step = 365 * DAY_US / (long long)count;
	snprintf(set, sizeof(set),
	         "owner = 'bench/%s' || n %% %llu; session = 's' || n; "
	         "modified = %lld - n * %lld::bigint; stored = %lld - n * %lld::bigint; "
	         "recency = (%lld - n * %lld::bigint) / %lld",
	         name, (unsigned long long)owners, end, step, end, step, end, step, DAY_US);
	pg_multiply(p, "session", "t.owner = 'bench/template'", set, count);
	pg_run(p, "VACUUM ANALYZE @session");
}

/* One page of an owner; gives the next page's cursor. */
static double list_once(sheaf_store *store, const char *user, char cursor[512])
{
	sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
	sheaf_list *list;
	sheaf_error err;
	o.app = sheaf_str_of("bench");
	o.user = sheaf_str_of(user);
	if (cursor && cursor[0])
		o.cursor = sheaf_str_of(cursor);
	double t = bench_now_us();
	bench_check(sheaf_store_list(&list, store, &o, &err), &err, "list");
	t = bench_now_us() - t;
	if (list->count != 50)
		bench_check(SHEAF_NOT_FOUND, NULL, "list a full page");
	if (cursor)
		snprintf(cursor, 512, "%.*s", (int)list->cursor.len,
		         list->cursor.ptr ? list->cursor.ptr : "");
	sheaf_list_free(list);
	return t;
}

int bench_pg_list_growth(bench *b)
{
	enum {
		ROUNDS = 1000,
		OWNERS = 10
	};
	size_t rounds = b->quick ? 300 : ROUNDS;
	static double large[ROUNDS], small[ROUNDS];
	uint64_t count = b->quick ? 50000 : 1000000;
	pg_side l, s;
	char user[32];

	if (!pg_side_open(&l, "pg-list-growth", "bl_"))
		return 0;
	pg_side_open(&s, "pg-list-growth", "bs_");
	load_sessions(&l, "u", count, count / 100);
	load_sessions(&s, "u", 1000, OWNERS);
	for (size_t i = 0; i < rounds + OWNERS; i++) { /* the first of each owner warms the cache */
		size_t at = i < OWNERS ? 0 : i - OWNERS;
		snprintf(user, sizeof(user), "u%zu", i % OWNERS);
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++)
			*((k ^ first) ? &large[at] : &small[at]) = list_once(
				(k ^ first) ? l.store : s.store, user, NULL);
	}
	bench_report(b, "pg-list-growth", bench_median(large, rounds), "us",
	             bench_median(small, rounds), 1.5, false);
	pg_side_close(&l);
	pg_side_close(&s);
	return 0;
}

int bench_pg_list_owner_1m(bench *b)
{
	enum {
		ROUNDS = 20,
		PAGES = 20
	};
	static double ms[ROUNDS * PAGES];
	size_t rounds = b->quick ? 5 : ROUNDS, n = 0;
	pg_side p;

	if (!pg_side_open(&p, "pg-list-owner-1m", "bo_"))
		return 0;
	/* Among owners of ten sessions: what is best for them must not be done to this one. */
	load_sessions(&p, "u", b->quick ? 100000 : 1000000, 1);
	load_sessions(&p, "w", b->quick ? 20000 : 200000, b->quick ? 2000 : 20000);
	for (size_t i = 0; i < rounds; i++) {
		char cursor[512] = "";
		for (int page = 0; page < PAGES; page++)
			ms[n++] = list_once(p.store, "u0", cursor) / 1000;
	}
	bench_report_value(b, "pg-list-owner-1m", bench_median(ms, n), "ms", 5);
	pg_side_close(&p);
	return 0;
}

/* ---- HOT updates ------------------------------------------------------------------------------ */

/* What the statistics say of the table of sessions, once all updates are in them. */
static double count_updates(const pg_side *p, double expected, double *hot)
{
	double all = 0;
	for (int i = 0; i < 150 && all < expected; i++) {
		struct timespec wait = {.tv_nsec = 100000000};
		nanosleep(&wait, NULL);
		pg_run(p, "SELECT pg_stat_clear_snapshot()");
		all = pg_number(
			p, "SELECT n_tup_upd FROM pg_stat_all_tables WHERE relname = '@session'");
	}
	*hot = pg_number(p,
	                 "SELECT n_tup_hot_upd FROM pg_stat_all_tables WHERE relname = '@session'");
	return all;
}

int bench_pg_hot(bench *b)
{
	static sheaf_session *s[2000];
	size_t sessions = b->quick ? 200 : 2000, appends = b->quick ? 3000 : 30000;
	double hot, all;
	char name[32];
	pg_side p;

	if (!pg_side_open(&p, "pg-hot", "bh_"))
		return 0;
	for (size_t i = 0; i < sessions; i++) {
		snprintf(name, sizeof(name), "s%zu", i);
		s[i] = open_session(p.store, "hot", name);
	}
	time_t day = time(NULL) / 86400;
	for (size_t i = 0; i < appends; i++)
		append_one(s[bench_random() % sessions]);
	if (time(NULL) / 86400 != day)
		fprintf(stderr, "sheaf-bench: pg-hot: a day has begun meanwhile\n");
	for (size_t i = 0; i < sessions; i++)
		sheaf_session_close(s[i]);
	sheaf_close(p.store); /* a connection hands in its statistics when it ends */
	p.store = NULL;
	all = count_updates(&p, (double)appends, &hot);
	if (all < (double)appends)
		bench_check(SHEAF_STORAGE, NULL, "see every update in the statistics");
	bench_report(b, "pg-hot", hot, "updates", all, 1, true);
	pg_side_close(&p);
	return 0;
}
