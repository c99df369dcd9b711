/* Search: the index of many sessions made from nothing, and what a query then takes. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench.h"

#define DAY_US (INT64_C(86400) * 1000000)
#define NOW_US (INT64_C(1794700800) * 1000000)

/* A vocabulary like a real one: few words are common, most are rare. */
enum {
	COMMON_WORDS = 60,
	WORDS = 40000
};

static const char *const common[COMMON_WORDS] = {
	"the",     "file",   "error",   "function", "to",     "return",  "is",     "test",
	"line",    "value",  "in",      "string",   "and",    "read",    "a",      "path",
	"of",      "code",   "this",    "check",    "for",    "fix",     "not",    "build",
	"with",    "config", "be",      "server",   "it",     "request", "on",     "run",
	"failed",  "update", "as",      "method",   "if",     "name",    "are",    "type",
	"parser",  "should", "can",     "module",   "was",    "will",    "data",   "index",
	"session", "query",  "timeout", "refused",  "memory", "thread",  "socket", "branch",
	"commit",  "merge",  "deploy",  "migration"};

static void add_word(char *text, size_t *at, size_t room)
{
	uint64_t r = bench_random();
	char word[40];
	/* Half of all words are common ones, and those nearer the front are commoner. */
	if (r % 2 == 0) {
		uint64_t a = (r >> 8) % COMMON_WORDS, b = (r >> 20) % COMMON_WORDS;
		snprintf(word, sizeof(word), "%s ", common[a < b ? a : b]);
	} else {
		uint64_t a = (r >> 8) % WORDS, b = (r >> 28) % WORDS, n = a < b ? a : b;
		const char *shape = n % 7 == 0   ? "parse%llxTable "
		                    : n % 7 == 1 ? "src/m%llx/io.c "
		                    : n % 7 == 2 ? "max_%llx_len "
		                                 : "w%llx ";
		snprintf(word, sizeof(word), shape, (unsigned long long)n * 2654435761u % 0xffffff);
	}
	size_t len = strlen(word);
	if (*at + len < room) {
		memcpy(text + *at, word, len);
		*at += len;
	}
}

static void add_message(sheaf_batch *batch, size_t i, int64_t time_us)
{
	char text[1200], json[1400];
	size_t at = 0;
	sheaf_error err;
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	entry.time_us = time_us;
	/* What people say is short, what tools answer is long. */
	size_t room = i % 4 == 0 ? 120 : i % 4 == 3 ? 1150 : 300;
	while (at + 24 < room)
		add_word(text, &at, room);
	sheaf_str said = {text, at};
	sheaf_message *m = sheaf_message_new(i % 4 == 0   ? "user"
	                                     : i % 4 == 3 ? "tool"
	                                                  : "assistant");
	if (i % 4 == 3) {
		sheaf_message_tool_result(m, sheaf_str_of("c1"), sheaf_str_of("bash"), said, 0);
	} else if (i % 4 == 2) {
		int n = snprintf(json, sizeof(json), "{\"command\":\"%.*s\"}", (int)at, text);
		sheaf_message_tool_use(m, sheaf_str_of("c1"), sheaf_str_of("bash"),
		                       (sheaf_str){json, (size_t)n});
	} else {
		sheaf_message_text(m, said);
	}
	bench_check(sheaf_batch_message(batch, m, &entry, &err), &err, "add to a batch");
	sheaf_message_free(m);
}

static void make_session(sheaf_store *store, size_t number, size_t messages)
{
	char id[64], cwd[64], name[64];
	sheaf_session *s;
	sheaf_error err;
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	snprintf(id, sizeof(id), "%s.s%06zu", number % 3 ? "claude-code" : "codex", number);
	snprintf(cwd, sizeof(cwd), "/home/u/project%zu", number % 40);
	snprintf(name, sizeof(name), "%s number %zu", common[number % COMMON_WORDS], number);
	sheaf_key key = sheaf_key_of(id);
	options.cwd = sheaf_str_of(cwd);
	options.name = sheaf_str_of(name);
	options.created_us = NOW_US - (int64_t)(bench_random() % 365) * DAY_US;
	bench_check(sheaf_session_open(&s, store, &key, &options, &err), &err, "make a session");
	sheaf_batch *batch = sheaf_batch_new();
	for (size_t i = 0; i < messages; i++)
		add_message(batch, i, options.created_us + (int64_t)i * 20000000);
	bench_check(sheaf_session_append_batch(s, batch, NULL, NULL, &err), &err, "append a batch");
	sheaf_batch_free(batch);
	sheaf_session_close(s);
}

static double dir_bytes(const char *url, const char *below)
{
	char path[600], file[900];
	double bytes = 0;
	snprintf(path, sizeof(path), "%.*s%s", (int)strcspn(url + 6, "?"), url + 6, below);
	DIR *d = opendir(path);
	struct dirent *e;
	struct stat st;
	while (d && (e = readdir(d))) {
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		if (e->d_name[0] != '.' && stat(file, &st) == 0)
			bytes += (double)st.st_size;
	}
	if (d)
		closedir(d);
	return bytes;
}

/* What people ask: rare words, common words, both, phrases, beginnings, filters. */
typedef struct question {
	const char *text;
	const char *project;
	const char *agent;
	const char *tool;
	uint32_t roles;
} question;

static const question questions[] = {
	{"migration timeout", NULL, NULL, NULL, 0},
	{"connection refused socket", NULL, NULL, NULL, 0},
	{"deploy", NULL, NULL, NULL, 0},
	{"file error", NULL, NULL, NULL, 0},
	{"\"memory thread\"", NULL, NULL, NULL, 0},
	{"parse9*", NULL, NULL, NULL, 0},
	{"max_9e_len", NULL, NULL, NULL, 0},
	{"src/m1a2*", NULL, NULL, NULL, 0},
	{"merge branch", "/home/u/project7", NULL, NULL, 0},
	{"session query", NULL, "codex", NULL, 0},
	{"deploy server", NULL, NULL, NULL, SHEAF_HIT_BIT(SHEAF_HIT_USER)},
	{"config build", NULL, NULL, "bash", 0},
	{"number 77", NULL, NULL, NULL, SHEAF_HIT_BIT(SHEAF_HIT_TITLE)},
	{"parser module commit", NULL, NULL, NULL, 0},
	{"refused", NULL, NULL, NULL, 0},
	{"the", NULL, NULL, NULL, 0},
};

#define QUESTIONS (sizeof(questions) / sizeof(questions[0]))

/* Milliseconds by the clock and, apart, of processor time: other work on the machine adds to the
 * first only. */
static double ask(sheaf_search *search, const question *what, uint64_t *hash, double *cpu_ms)
{
	sheaf_error err;
	sheaf_hits *hits;
	sheaf_query q = SHEAF_QUERY_INIT;
	q.text = sheaf_str_of(what->text);
	q.project = sheaf_str_of(what->project);
	q.agent = sheaf_str_of(what->agent);
	q.tool = sheaf_str_of(what->tool);
	q.roles = what->roles;
	q.per_session = 3;
	q.now_us = NOW_US;
	double t = bench_now_us(), cpu = bench_cpu_us();
	bench_check(sheaf_search_run(&hits, search, &q, &err), &err, what->text);
	*cpu_ms = (bench_cpu_us() - cpu) / 1000;
	t = bench_now_us() - t;
	/* Which hits, in which order. */
	for (size_t i = 0; i < hits->count; i++) {
		const sheaf_hit *h = hits->items[i];
		for (size_t k = 0; k < h->session.len; k++)
			*hash = *hash * 1099511628211u + (unsigned char)h->session.ptr[k];
		*hash = *hash * 1099511628211u + h->seq;
	}
	sheaf_hits_free(hits);
	return t / 1000;
}

static double build(sheaf_store *store, sheaf_search **out)
{
	sheaf_error err;
	sheaf_search_options options = SHEAF_SEARCH_OPTIONS_INIT;
	sheaf_query whose = SHEAF_QUERY_INIT;
	options.rebuild = 1;
	double t = bench_now_us();
	bench_check(sheaf_search_open(out, store, &options, &err), &err, "open the index");
	bench_check(sheaf_search_update(*out, &whose, NULL, &err), &err, "make the index");
	return (bench_now_us() - t) / 1e6;
}

static double ask_all(bench *b, sheaf_search *search, size_t rounds, uint64_t *hash)
{
	size_t count = 0, all = rounds * QUESTIONS;
	double *ms = calloc(2 * all, sizeof(*ms));
	if (ms == NULL)
		exit(1);
	for (size_t i = 0; i < rounds; i++)
		for (size_t k = 0; k < QUESTIONS; k++, count++) {
			uint64_t unused = 0;
			ms[count] = ask(search, &questions[k], i == 0 ? hash : &unused,
			                &ms[all + count]);
		}
	double median = bench_median(ms, all);
	bench_report_value(b, "search-p95", ms[all * 95 / 100], "ms", 1000);
	bench_report_value(b, "search-cpu", bench_median(ms + all, all), "ms", 50);
	free(ms);
	return median;
}

int bench_search(bench *b)
{
	size_t sessions = b->quick ? 300 : 10000, messages = 100;
	char url[512];
	sheaf_store *store;
	sheaf_search *search;
	sheaf_error err;
	uint64_t first = 0, again = 0;

	bench_url(b, url, "search", "?durability=process");
	bench_check(sheaf_open(&store, url, NULL, &err), &err, "open a store");
	for (size_t i = 0; i < sessions; i++)
		make_session(store, i, messages);
	double seconds = build(store, &search);
	bench_report_value(b, "search-build", seconds, "s", b->quick ? 30 : 600);
	bench_report(b, "search-index-bytes", dir_bytes(url, "/.search"), "bytes",
	             dir_bytes(url, ""), 2, false);
	bench_report_value(b, "search", ask_all(b, search, b->quick ? 5 : 11, &first), "ms", 50);
	sheaf_search_close(search);
	/* Made anew from the logs it answers the same. */
	build(store, &search);
	ask_all(b, search, 1, &again);
	bench_report_value(b, "search-rebuilt-differs", first != again, "", 0);
	sheaf_search_close(search);
	sheaf_close(store);
	return 0;
}
