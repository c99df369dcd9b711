/* Redis: an append against the bare call of the same function with the same arguments. */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define ARGS_MAX 64

/* Where the arguments of the append's function are, after "FCALL name 11" and eleven keys. */
enum {
	ARGV = 13, /* ARGV[1] of the function is args[ARGV + 1] */
	EXPECTED = ARGV + 3,
	DIGEST = ARGV + 6,
	ORDER = ARGV + 7,
	REVISION = ARGV + 8,
	FIRST = ARGV + 9
};

/* A command as the store has sent it, with the numbers and the id that each call must change. */
typedef struct bare_call {
	redisContext *c;
	int count;
	char *args[ARGS_MAX];
	size_t lengths[ARGS_MAX];
	unsigned long long at, order;
	char revision[24];
} bare_call;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "sheaf-bench: %s: %s\n", what, why);
	exit(1);
}

static redisContext *connect_to(const char *url)
{
	char host[128];
	int port = 0;
	if (sscanf(url, "redis://%127[^:]:%d", host, &port) != 2)
		die("connect", url);
	redisContext *c = redisConnect(host, port);
	if (!c || c->err)
		die("connect", c ? c->errstr : "no memory");
	return c;
}

static sheaf_session *open_session(sheaf_store *store, const char *name)
{
	sheaf_key key = {sheaf_str_of("bench"), sheaf_str_of("user"), sheaf_str_of(name)};
	sheaf_session *s;
	sheaf_error err;
	bench_check(sheaf_session_open(&s, store, &key, NULL, &err), &err, "open");
	return s;
}

static void delete_session(sheaf_store *store, const char *name)
{
	sheaf_key key = {sheaf_str_of("bench"), sheaf_str_of("user"), sheaf_str_of(name)};
	sheaf_error err;
	bench_check(sheaf_store_delete(NULL, store, &key, NULL, &err), &err, "delete");
}

static void append_one(sheaf_session *s)
{
	sheaf_error err;
	bench_check(sheaf_session_append_text(s, "user", (sheaf_str){bench_text(), BENCH_TEXT},
	                                      NULL, &err),
	            &err, "append");
}

/* ---- The bare side ------------------------------------------------------------------------ */

static int hex(char c)
{
	return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

/* One quoted argument of a line of MONITOR. */
static const char *read_quoted(const char *at, bare_call *x)
{
	char *out = malloc(strlen(at) + 1);
	size_t n = 0;
	for (at++; *at && *at != '"'; at++) {
		if (*at != '\\') {
			out[n++] = *at;
			continue;
		}
		switch (*++at) {
		case 'n':
			out[n++] = '\n';
			break;
		case 'r':
			out[n++] = '\r';
			break;
		case 't':
			out[n++] = '\t';
			break;
		case 'a':
			out[n++] = '\a';
			break;
		case 'b':
			out[n++] = '\b';
			break;
		case 'x':
			out[n++] = (char)(hex(at[1]) * 16 + hex(at[2]));
			at += 2;
			break;
		default:
			out[n++] = *at;
		}
	}
	if (x->count == ARGS_MAX)
		die("the bare call", "too many arguments");
	x->args[x->count] = out;
	x->lengths[x->count++] = n;
	return *at ? at + 1 : at;
}

/* Watches the server while the store appends, and takes the command it was sent. */
static void capture(bare_call *x, const char *url, sheaf_session *s)
{
	redisContext *monitor = connect_to(url);
	redisReply *r = redisCommand(monitor, "MONITOR");
	freeReplyObject(r);
	append_one(s);
	for (;;) {
		if (redisGetReply(monitor, (void **)&r) != REDIS_OK || !r->str)
			die("watch the server", monitor->errstr);
		const char *at = strstr(r->str, "\"FCALL\"");
		for (; at && *at == '"'; at += *at == ' ')
			at = read_quoted(at, x);
		freeReplyObject(r);
		if (x->count)
			break;
	}
	redisFree(monitor);
}

static size_t id_at(const bare_call *x)
{
	/* One row: element and id, and no state behind them. */
	return (size_t)x->count - 1;
}

static void bare_make(bare_call *x, const char *url, sheaf_store *store)
{
	sheaf_session *s = open_session(store, "bare");
	append_one(s);
	append_one(s);
	capture(x, url, s);
	sheaf_session_close(s);
	x->c = connect_to(url);
	if (x->lengths[ORDER] != 16 || x->lengths[id_at(x)] != 36 ||
	    x->lengths[EXPECTED] != x->lengths[DIGEST])
		die("the bare call", "the arguments are not those this program knows");
	x->at = strtoull(x->args[REVISION], NULL, 10);
	x->order = strtoull(x->args[ORDER], NULL, 16);
	/* From here on the head stays as it is, and with it its digest. */
	memcpy(x->args[EXPECTED], x->args[DIGEST], x->lengths[DIGEST]);
	memcpy(x->args[id_at(x)], "01900000-0000-7000-8000-", 24);
	free(x->args[REVISION]);
	free(x->args[FIRST]);
	x->args[REVISION] = x->args[FIRST] = x->revision;
}

static void bare_run(bare_call *x)
{
	char digits[24];
	int n = snprintf(x->revision, sizeof(x->revision), "%llu", ++x->at);
	x->lengths[REVISION] = x->lengths[FIRST] = (size_t)n;
	snprintf(digits, sizeof(digits), "%012llx", x->at);
	memcpy(x->args[id_at(x)] + 24, digits, 12);
	snprintf(digits, sizeof(digits), "%016llx", --x->order);
	memcpy(x->args[ORDER], digits, 16);
	redisReply *r = redisCommandArgv(x->c, x->count, (const char **)x->args, x->lengths);
	if (!r || r->type != REDIS_REPLY_ARRAY || r->elements < 1 || r->element[0]->integer != 0)
		die("the bare append", r && r->str ? r->str : x->c->errstr);
	freeReplyObject(r);
}

static void bare_free(bare_call *x)
{
	for (int i = 0; i < x->count; i++)
		if (i != REVISION && i != FIRST)
			free(x->args[i]);
	redisFree(x->c);
}

static void run(bench *b, const char *name, const char *variable)
{
	enum {
		ROUNDS = 6000
	};
	size_t rounds = b->quick ? 1000 : ROUNDS;
	static double ours[ROUNDS], theirs[ROUNDS];
	const char *url = getenv(variable);
	char reason[120], own[600];
	sheaf_store *store;
	sheaf_error err;
	bare_call x = {.count = 0};

	if (!url) {
		snprintf(reason, sizeof(reason), "no %s: run under tools/servers", variable);
		bench_skip(name, reason);
		return;
	}
	snprintf(own, sizeof(own), "%s?prefix=bench:", url);
	bench_check(sheaf_open(&store, own, NULL, &err), &err, "open a store");
	bare_make(&x, url, store);
	sheaf_session *s = open_session(store, "ours");
	for (int i = 0; i < 100; i++) {
		append_one(s);
		bare_run(&x);
	}
	for (size_t i = 0; i < rounds; i++)
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++) {
			double t = bench_now_us();
			if (k ^ first)
				append_one(s);
			else
				bare_run(&x);
			*((k ^ first) ? &ours[i] : &theirs[i]) = bench_now_us() - t;
		}
	bench_report(b, name, bench_median(ours, rounds), "us", bench_median(theirs, rounds), 1.15,
	             false);
	sheaf_session_close(s);
	delete_session(store, "ours");
	delete_session(store, "bare");
	sheaf_close(store);
	bare_free(&x);
}

int bench_redis_append(bench *b)
{
	run(b, "redis-append", "SHEAF_TEST_REDIS");
	return 0;
}

int bench_redis_append_everysec(bench *b)
{
	run(b, "redis-append-everysec", "SHEAF_TEST_REDIS_EVERYSEC");
	return 0;
}
