/*
 * sheaf-bench [--short] [--dir DIR] CASE…: measures Sheaf against the bare
 * limit it stands on, in one run, interleaved, and prints one JSON object a
 * line. Ends with 1 if a case breaks its bar. bench/README.md explains each.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "generate.h"

static const struct {
	const char *name;
	int (*run)(bench *b);
} cases[] = {
	{"append-process", bench_append_process},
	{"append-disk", bench_append_disk},
	{"group-64", bench_group},
	{"resume-growth", bench_resume_growth},
	{"resume-1m", bench_resume_1m},
	{"load-full", bench_load_full},
	{"fork-growth", bench_fork_growth},
	{"list-10k", bench_list_10k},
	{"list-100k", bench_list_100k},
	{"list-cold", bench_list_cold},
	{"ls", bench_ls},
	{"import", bench_import},
	{"search", bench_search},
	{"context-growth", bench_context_growth},
	{"plan", bench_plan},
	{"render", bench_render},
	{"pg-append", bench_pg_append},
	{"pg-batch", bench_pg_batch},
	{"pg-tail", bench_pg_tail},
	{"pg-tail-typed", bench_pg_tail_typed},
	{"pg-list-growth", bench_pg_list_growth},
	{"pg-list-owner-1m", bench_pg_list_owner_1m},
	{"pg-hot", bench_pg_hot},
	{"pg-expire", bench_pg_expire},
	{"redis-append", bench_redis_append},
	{"redis-append-everysec", bench_redis_append_everysec},
};

/* The bars that noise cannot break: these decide in CI. */
static const char *const growth[] = {"resume-growth", "fork-growth", "context-growth",
                                     "list-10k",      "list-cold",   "pg-list-growth",
                                     "pg-expire"};

#define CASES (sizeof(cases) / sizeof(cases[0]))

double bench_now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

double bench_cpu_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

double bench_median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), cmp);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

uint64_t bench_random(void)
{
	static uint64_t s = 0x9e3779b97f4a7c15u;
	s ^= s << 13;
	s ^= s >> 7;
	return s ^= s << 17;
}

void bench_check(int rc, const sheaf_error *err, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "sheaf-bench: %s: %s: %s\n", what, sheaf_code_name(rc),
	        err ? err->message : "");
	exit(1);
}

static void print(bench *b, const char *name, double value, const char *unit, double bare,
                  double ratio, double bar, bool ok)
{
	printf("{\"case\":\"%s\",\"value\":%.5g,\"unit\":\"%s\",\"bare\":%.5g,\"ratio\":%.4f,"
	       "\"bar\":%.4g,\"ok\":%s}\n",
	       name, value, unit, bare, ratio, bar, ok ? "true" : "false");
	fflush(stdout);
	bool decides = !b->quick;
	for (size_t i = 0; i < sizeof(growth) / sizeof(growth[0]); i++)
		decides = decides || strncmp(name, growth[i], strlen(growth[i])) == 0;
	if (!ok && decides)
		b->failed++;
}

void bench_report(bench *b, const char *name, double value, const char *unit, double bare,
                  double bar, bool at_least)
{
	double ratio = value / bare;
	print(b, name, value, unit, bare, ratio, bar,
	      bar == 0 || (at_least ? ratio >= bar : ratio <= bar));
}

void bench_report_value(bench *b, const char *name, double value, const char *unit, double bar)
{
	print(b, name, value, unit, bar, bar > 0 ? value / bar : value, bar, value <= bar);
}

void bench_skip(const char *name, const char *why)
{
	printf("{\"case\":\"%s\",\"skipped\":\"%s\"}\n", name, why);
}

const char *bench_text(void)
{
	static char text[BENCH_TEXT + 1];
	static const char *words[] = {
		"read ",        "the ",    "file ",     "src/main.c ", "then ",   "say \"x\" ",
		"caf\xc3\xa9 ", "error: ", "line 42\n", "tool ",       "result ", "ok "};
	if (text[0])
		return text;
	size_t at = 0;
	for (size_t i = 0; at + 16 < BENCH_TEXT; i++) {
		const char *w = words[(i * 7 + i / 5) % 12];
		memcpy(text + at, w, strlen(w));
		at += strlen(w);
	}
	memset(text + at, '.', BENCH_TEXT - at);
	return text;
}

void bench_drop_tree(const char *path)
{
	char command[600];
	snprintf(command, sizeof(command), "rm -rf -- '%s'", path);
	if (system(command) != 0)
		fprintf(stderr, "sheaf-bench: cannot remove %s\n", path);
}

void bench_url(const bench *b, char out[512], const char *name, const char *options)
{
	char path[480];
	snprintf(path, sizeof(path), "%s/%s", b->dir, name);
	bench_drop_tree(path);
	snprintf(out, 512, "jsonl:%s%s", path, options);
}

/* One batch of messages, user and assistant in turn. */
static void fill_batch(sheaf_session *s, size_t count, uint64_t at)
{
	sheaf_batch *batch = sheaf_batch_new();
	sheaf_error err;
	for (size_t i = 0; i < count; i++) {
		sheaf_message *m = sheaf_message_new((at + i) % 2 ? "assistant" : "user");
		sheaf_message_text(m, (sheaf_str){bench_text(), BENCH_TEXT});
		bench_check(sheaf_batch_message(batch, m, NULL, &err), &err, "add to a batch");
		sheaf_message_free(m);
	}
	bench_check(sheaf_session_append_batch(s, batch, NULL, NULL, &err), &err, "append a batch");
	sheaf_batch_free(batch);
}

void bench_fill(sheaf_store *store, const char *session, uint64_t records, bool compacted)
{
	sheaf_key key = sheaf_key_of(session);
	sheaf_session *s;
	sheaf_error err;
	uint64_t tail = compacted ? 201 : 0;

	bench_check(sheaf_session_open(&s, store, &key, NULL, &err), &err, "open");
	for (uint64_t at = 0; at + tail < records; at += 500) {
		uint64_t left = records - tail - at;
		fill_batch(s, left < 500 ? (size_t)left : 500, at);
	}
	if (compacted) {
		bench_check(sheaf_session_append_compaction(
				    s, sheaf_str_of("What was said before."), (sheaf_str){"", 0},
				    100000, NULL, NULL, NULL, &err),
		            &err, "compact");
		fill_batch(s, 200, 0);
	}
	sheaf_session_close(s);
}

/* In the short form a case that misses its bar is measured again: noise only ever adds. */
static void run_one(bench *b, size_t i)
{
	for (int tries = 0; tries < (b->quick ? 3 : 1); tries++) {
		int before = b->failed;
		cases[i].run(b);
		if (b->failed == before)
			return;
		if (tries < 2 && b->quick)
			b->failed = before;
	}
}

static int run_case(bench *b, const char *name)
{
	for (size_t i = 0; i < CASES; i++)
		if (strcmp(cases[i].name, name) == 0) {
			run_one(b, i);
			return 0;
		}
	fprintf(stderr, "sheaf-bench: no case '%s'; there are:", name);
	for (size_t i = 0; i < CASES; i++)
		fprintf(stderr, " %s", cases[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

int main(int argc, char **argv)
{
	char dir[256];
	bench b = {.dir = NULL};
	int given = 0;

	if (argc == 3 && strcmp(argv[1], "--child-resume") == 0)
		return bench_resume_child(argv[2]);
	if (argc == 4 && strcmp(argv[1], "--child-load") == 0)
		return bench_load_child(argv[2], argv[3]);
	if (argc == 5 && strcmp(argv[1], "--generate") == 0)
		return generate_main(argv[2], argv[3], argv[4]);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--short") == 0)
			b.quick = true;
		else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc)
			b.dir = argv[++i];
		else
			given++;
	}
	snprintf(dir, sizeof(dir), "%s/sheaf-bench.%ld", b.dir ? b.dir : "/var/tmp",
	         (long)getpid());
	if (mkdir(dir, 0700)) {
		perror(dir);
		return 1;
	}
	b.dir = dir;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--dir") == 0)
			i++;
		else if (strcmp(argv[i], "--short") != 0)
			run_case(&b, argv[i]);
	}
	for (size_t i = 0; !given && i < CASES; i++)
		run_one(&b, i);
	bench_drop_tree(dir);
	return b.failed ? 1 : 0;
}
