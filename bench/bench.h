/* What the benchmark's cases share: time, medians, the entry, and one line of output each. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdio.h>

#include "sheaf.h"

typedef struct bench {
	const char *dir; /* scratch, on the disk to be measured */
	bool quick;      /* fewer rounds, smaller logs */
	int failed;      /* bars not reached */
} bench;

/*
 * Prints {"case":…,"value":…,"unit":…,"bare":…,"ratio":…,"bar":…,"ok":…}.
 * `bar` is the greatest ratio allowed, or with `at_least` the smallest; 0 for a
 * figure without a bar.
 */
void bench_report(bench *b, const char *name, double value, const char *unit, double bare,
                  double bar, bool at_least);
/* The same where the bar is on the value itself. */
void bench_report_value(bench *b, const char *name, double value, const char *unit, double bar);
/* Says that a case was not run: {"case":…,"skipped":…}. */
void bench_skip(const char *name, const char *why);

double bench_now_us(void);                /* wall clock */
double bench_cpu_us(void);                /* this thread's CPU time */
double bench_median(double *v, size_t n); /* sorts v */
uint64_t bench_random(void);
void bench_check(int rc, const sheaf_error *err,
                 const char *what);     /* ends the program on failure */
void bench_drop_tree(const char *path); /* rm -rf */

#define BENCH_TEXT 900
const char *bench_text(void); /* 900 bytes with quotes, line breaks and UTF-8, NUL-terminated */

/* The URL of a fresh directory under b->dir. */
void bench_url(const bench *b, char out[512], const char *name, const char *options);

/* A session of `records` messages with a compaction that keeps the last 200 of them. */
void bench_fill(sheaf_store *store, const char *session, uint64_t records, bool compacted);

int bench_append_process(bench *b);
int bench_append_disk(bench *b);
int bench_group(bench *b);
int bench_resume_growth(bench *b);
int bench_resume_1m(bench *b);
int bench_resume_child(const char *dir);
int bench_load_full(bench *b);
int bench_load_child(const char *dir, const char *which);
int bench_fork_growth(bench *b);
int bench_list_10k(bench *b);
int bench_list_100k(bench *b);
int bench_list_cold(bench *b);
int bench_ls(bench *b);
int bench_import(bench *b);
int bench_search(bench *b);
int bench_context_growth(bench *b);
int bench_plan(bench *b);
int bench_render(bench *b);
int bench_pg_append(bench *b);
int bench_pg_batch(bench *b);
int bench_pg_tail(bench *b);
int bench_pg_tail_typed(bench *b);
int bench_pg_list_growth(bench *b);
int bench_pg_list_owner_1m(bench *b);
int bench_pg_hot(bench *b);
int bench_pg_expire(bench *b);
int bench_redis_append(bench *b);
int bench_redis_append_everysec(bench *b);

#endif
