/* Resuming, loading, forking and building contexts: what must not grow with history. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <yyjson.h>

#include "bench.h"

static sheaf_store *open_store(const char *url)
{
	sheaf_store *store;
	sheaf_error err;
	bench_check(sheaf_open(&store, url, NULL, &err), &err, "open a store");
	return store;
}

static sheaf_session *open_session(sheaf_store *store, const char *name)
{
	sheaf_session *s;
	sheaf_error err;
	sheaf_key key = sheaf_key_of(name);
	bench_check(sheaf_session_open(&s, store, &key, NULL, &err), &err, "open");
	return s;
}

/* Reopens everything and builds the context. */
static double resume(const char *url, const char *name)
{
	sheaf_context *c;
	sheaf_error err;
	double t = bench_now_us();
	sheaf_store *store = open_store(url);
	sheaf_session *s = open_session(store, name);
	bench_check(sheaf_session_context(&c, s, NULL, &err), &err, "context");
	t = bench_now_us() - t;
	if (c->count != 201)
		bench_check(SHEAF_CONTEXT, NULL, "a context of another length");
	sheaf_context_free(c);
	sheaf_session_close(s);
	sheaf_close(store);
	return t;
}

int bench_resume_growth(bench *b)
{
	enum {
		ROUNDS = 201
	};
	size_t rounds = b->quick ? 51 : ROUNDS;
	double large[ROUNDS], small[ROUNDS];
	char url[512];

	bench_url(b, url, "resume", "?durability=process");
	sheaf_store *store = open_store(url);
	bench_fill(store, "small", 1000, true);
	bench_fill(store, "large", 100000, true);
	sheaf_close(store);
	for (size_t i = 0; i < rounds; i++)
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++)
			*((k ^ first) ? &large[i] : &small[i]) = resume(url, (k ^ first) ? "large"
			                                                                 : "small");
	bench_report(b, "resume-growth", bench_median(large, rounds), "us",
	             bench_median(small, rounds), 1.1, false);
	return 0;
}

/* ---- A million records, in a process of its own --------------------------------------- */

static double peak_mb(void)
{
	char line[256];
	double kb = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %lf", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb / 1024;
}

int bench_resume_child(const char *url)
{
	sheaf_error err;
	sheaf_context *c;
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	char id[64];
	snprintf(id, sizeof(id), "caller-%ld", (long)getpid());
	entry.id = sheaf_str_of(id);
	how.durability = SHEAF_DURABILITY_PROCESS;

	double t = bench_now_us();
	sheaf_store *store = open_store(url);
	sheaf_session *s = open_session(store, "million");
	bench_check(sheaf_session_context(&c, s, NULL, &err), &err, "context");
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_text(m, (sheaf_str){bench_text(), BENCH_TEXT});
	bench_check(sheaf_session_append_message(s, m, &entry, &how, NULL, &err), &err, "append");
	t = bench_now_us() - t;
	printf("%.3f %.3f\n", t / 1000, peak_mb());
	sheaf_message_free(m);
	sheaf_context_free(c);
	fflush(stdout);
	_exit(0); /* without closing: the next child finds the log as a killed process leaves it */
}

static void read_child(const char *arguments, double *a, double *b2)
{
	char self[256], command[1024];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[n > 0 ? n : 0] = 0;
	snprintf(command, sizeof(command), "'%s' %s", self, arguments);
	FILE *f = popen(command, "r");
	if (!f || fscanf(f, "%lf %lf", a, b2) != 2 || pclose(f))
		bench_check(SHEAF_STORAGE, NULL, "run a child");
}

int bench_resume_1m(bench *b)
{
	enum {
		ROUNDS = 21
	};
	size_t rounds = b->quick ? 5 : ROUNDS;
	double ms[ROUNDS], mb[ROUNDS];
	char url[512], arguments[600];

	bench_url(b, url, "million", "?durability=process");
	sheaf_store *store = open_store(url);
	bench_fill(store, "million", b->quick ? 200000 : 1000000, true);
	sheaf_close(store);
	snprintf(arguments, sizeof(arguments), "--child-resume '%s'", url);
	for (size_t i = 0; i < rounds; i++)
		read_child(arguments, &ms[i], &mb[i]);
	bench_report_value(b, "resume-1m", bench_median(ms, rounds), "ms", 5);
	bench_report_value(b, "resume-1m-memory", bench_median(mb, rounds), "MB", 8);
	bench_drop_tree(url + strlen("jsonl:"));
	return 0;
}

/* ---- Loading everything ---------------------------------------------------------------- */

static volatile uint64_t sink;

static void touch(sheaf_str s)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < s.len; i += 64)
		sum += (unsigned char)s.ptr[i];
	sink += sum;
}

static double load_ours(const char *url)
{
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	sheaf_records *pages[64];
	size_t page = 0, total = 0;
	sheaf_error err;
	o.limit = 100000;
	sheaf_store *store = open_store(url);
	sheaf_session *s = open_session(store, "load");
	double t = bench_cpu_us();
	do {
		sheaf_records *r;
		bench_check(sheaf_session_records(&r, s, &o, &err), &err, "read");
		for (size_t i = 0; i < r->count; i++)
			if (r->items[i]->message)
				touch(r->items[i]->message->parts[0]->text);
		total += r->count;
		o.from_seq = r->next_seq;
		pages[page++] = r;
	} while (o.from_seq && page < 64);
	if (total != 100000)
		bench_check(SHEAF_NOT_FOUND, NULL, "read every record");
	while (page)
		sheaf_records_free(pages[--page]);
	t = bench_cpu_us() - t;
	sheaf_session_close(s);
	sheaf_close(store);
	return t;
}

/* yyjson over the same lines, every document kept to the end, every text looked at. */
static double load_bare(const char *url)
{
	char path[600];
	char *line = NULL;
	size_t room = 0, n = 0;
	ssize_t len;
	yyjson_doc **docs = malloc(200000 * sizeof(*docs));
	snprintf(path, sizeof(path), "%.*s/load.jsonl", (int)strcspn(url + 6, "?"), url + 6);
	double t = bench_cpu_us();
	FILE *f = fopen(path, "r");
	if (!f)
		exit(1);
	static char buffer[1 << 20];
	setvbuf(f, buffer, _IOFBF, sizeof(buffer));
	while ((len = getline(&line, &room, f)) > 0) {
		docs[n] = yyjson_read(line, (size_t)len, 0);
		yyjson_val *m = yyjson_obj_get(yyjson_doc_get_root(docs[n]), "message");
		yyjson_val *part = yyjson_arr_get_first(yyjson_obj_get(m, "content"));
		yyjson_val *text = yyjson_obj_get(yyjson_obj_get(part, "text"), "content");
		if (text)
			touch((sheaf_str){yyjson_get_str(text), yyjson_get_len(text)});
		n++;
	}
	fclose(f);
	free(line);
	while (n)
		yyjson_doc_free(docs[--n]);
	t = bench_cpu_us() - t;
	free(docs);
	return t;
}

int bench_load_child(const char *url, const char *which)
{
	double t = strcmp(which, "ours") == 0 ? load_ours(url) : load_bare(url);
	printf("%.3f %.3f\n", t / 1000, peak_mb());
	return 0;
}

int bench_load_full(bench *b)
{
	enum {
		ROUNDS = 21
	};
	size_t rounds = b->quick ? 5 : ROUNDS;
	double ours[ROUNDS], theirs[ROUNDS], mb;
	char url[512], arguments[600];

	bench_url(b, url, "load", "?durability=process");
	sheaf_store *store = open_store(url);
	bench_fill(store, "load", 100000, false);
	sheaf_close(store);
	for (size_t i = 0; i < rounds; i++)
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++) {
			bool mine = k ^ first;
			snprintf(arguments, sizeof(arguments), "--child-load '%s' %s", url,
			         mine ? "ours" : "bare");
			read_child(arguments, mine ? &ours[i] : &theirs[i], &mb);
		}
	/* As speed: bare time over ours. */
	bench_report(b, "load-full", 100000 / bench_median(ours, rounds), "records/ms",
	             100000 / bench_median(theirs, rounds), 0.85, true);
	return 0;
}

/* ---- Forks and contexts of an open session ----------------------------------------------- */

static double fork_once(sheaf_session *source)
{
	sheaf_session *fork = NULL;
	sheaf_error err;
	sheaf_key key = {{"", 0}, {"", 0}, {"", 0}};
	double t = bench_now_us();
	bench_check(sheaf_session_fork(&fork, source, (sheaf_str){NULL, 0}, &key, NULL, &err), &err,
	            "fork");
	t = bench_now_us() - t;
	sheaf_session_close(fork);
	return t;
}

int bench_fork_growth(bench *b)
{
	enum {
		ROUNDS = 301
	};
	size_t rounds = b->quick ? 101 : ROUNDS;
	double large[ROUNDS], small[ROUNDS];
	char url[512];

	bench_url(b, url, "fork", "?durability=process");
	sheaf_store *store = open_store(url);
	bench_fill(store, "small", 10, false);
	bench_fill(store, "large", 100000, false);
	sheaf_session *s = open_session(store, "small"), *l = open_session(store, "large");
	for (size_t i = 0; i < rounds; i++)
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++)
			*((k ^ first) ? &large[i] : &small[i]) = fork_once((k ^ first) ? l : s);
	sheaf_session_close(s);
	sheaf_session_close(l);
	sheaf_close(store);
	bench_report(b, "fork-growth", bench_median(large, rounds), "us",
	             bench_median(small, rounds), 1.1, false);
	return 0;
}

/* One turn: a message is appended, then the context is built. */
static double context_turn(sheaf_session *s)
{
	sheaf_context *c;
	sheaf_error err;
	double t = bench_now_us();
	bench_check(sheaf_session_append_text(s, "user", (sheaf_str){bench_text(), BENCH_TEXT},
	                                      NULL, &err),
	            &err, "append");
	bench_check(sheaf_session_context(&c, s, NULL, &err), &err, "context");
	t = bench_now_us() - t;
	sheaf_context_free(c);
	return t;
}

int bench_context_growth(bench *b)
{
	enum {
		ROUNDS = 401
	};
	size_t rounds = b->quick ? 101 : ROUNDS;
	double large[ROUNDS], small[ROUNDS];
	char url[512];

	bench_url(b, url, "context", "?durability=process");
	sheaf_store *store = open_store(url);
	bench_fill(store, "small", 1000, true);
	bench_fill(store, "large", 100000, true);
	sheaf_session *s = open_session(store, "small"), *l = open_session(store, "large");
	for (size_t i = 0; i < rounds; i++)
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++)
			*((k ^ first) ? &large[i] : &small[i]) = context_turn((k ^ first) ? l : s);
	sheaf_session_close(s);
	sheaf_session_close(l);
	sheaf_close(store);
	bench_report(b, "context-growth", bench_median(large, rounds), "us",
	             bench_median(small, rounds), 1.1, false);
	return 0;
}
