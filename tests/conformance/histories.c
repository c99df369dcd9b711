/*
 * Runs random histories on the model, on memory and on a store, operation by
 * operation, and compares the answers. Several processes share the work.
 */
#include "histories.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "histories_gen.h"
#include "lockstep.h"
#include "suite.h"

#define LOOK_EVERY 10
#define FAILURES_MAX 3
#define WAITERS 8 /* processes a job where a store waits for its disk most of the time */

typedef struct history {
	model model;
	real stores[2]; /* memory, and the one that is tested */
	generator gen;
	uint64_t seed;
	unsigned at;
	answer want, got[2], bytes[2], text;
	bool trace;
} history;

static void report(history *h, const op *o, const char *what)
{
	answer_clear(&h->text);
	op_print(o, &h->text);
	printf("not ok history seed %llu op %u: %s\n  %s\n  model : %s\n  memory: %s\n  store : %s\n",
	       (unsigned long long)h->seed, h->at, what, h->text.text, h->want.text, h->got[0].text,
	       h->got[1].text);
	if (h->bytes[0].len || h->bytes[1].len)
		printf("  bytes : %s\n        : %s\n", h->bytes[0].text ? h->bytes[0].text : "",
		       h->bytes[1].text ? h->bytes[1].text : "");
	fflush(stdout);
}

static bool same(const answer *a, const answer *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->text, b->text, a->len) == 0);
}

/* Runs one operation everywhere; false if the answers differ. */
static bool step(history *h, const op *o)
{
	answer_clear(&h->want);
	if (h->trace) {
		answer_clear(&h->text);
		op_print(o, &h->text);
		printf("%u %s\n", h->at, h->text.text);
		fflush(stdout);
	}
	model_run(&h->model, o, &h->want);
	for (int i = 0; i < 2; i++) {
		answer_clear(&h->got[i]);
		answer_clear(&h->bytes[i]);
		real_run(&h->stores[i], o, &h->got[i], &h->bytes[i]);
	}
	if (h->trace)
		printf("    -> %s\n", h->want.text ? h->want.text : "");
	const char *wrong = NULL;
	if (!same(&h->want, &h->got[0]))
		wrong = "memory differs from the model";
	if (!same(&h->want, &h->got[1]))
		wrong = wrong ? "both differ from the model" : "the store differs from the model";
	if (!wrong && !same(&h->bytes[0], &h->bytes[1]))
		wrong = "other bytes than memory has";
	if (wrong)
		report(h, o, wrong);
	return !wrong;
}

static bool look(history *h, int key)
{
	op o;
	for (int n = 0;
	     m_is_visible(&h->model.sessions[key]) && generator_look(&h->model, key, n, &o); n++) {
		o.handle = n % 2;
		if (!step(h, &o))
			return false;
	}
	return true;
}

/* Everything is deleted, and then there is nothing. */
static bool finish(history *h)
{
	static const char *const names[] = {"memory", "store"};
	for (int i = 0; i < 2; i++) {
		answer_clear(&h->got[i]);
		real_end(&h->stores[i], &h->got[i]);
		if (strcmp(h->got[i].text, "OK") != 0) {
			printf("not ok history seed %llu end: %s still lists: %s\n",
			       (unsigned long long)h->seed, names[i], h->got[i].text);
			return false;
		}
	}
	return true;
}

static bool run(history *h, const char *prefix, uint64_t seed, unsigned ops)
{
	char app[120];
	snprintf(app, sizeof(app), "%.90sh%llx", prefix, (unsigned long long)seed);
	h->seed = seed;
	for (int i = 0; i < 2; i++)
		real_begin(&h->stores[i], app);
	model_clear(&h->model);
	generator_begin(&h->gen, seed * 0x2545f4914f6cdd1du + 1);
	for (h->at = 0; h->at < ops; h->at++) {
		op o;
		generator_next(&h->gen, &h->model, &o);
		if (!step(h, &o))
			return false;
		if (h->at % LOOK_EVERY == LOOK_EVERY - 1 && !look(h, o.key))
			return false;
	}
	for (int key = 0; key < KEYS; key++)
		if (!look(h, key))
			return false;
	return finish(h);
}

/* Every jobs-th history, beginning with number `job`. Returns how many failed. */
static int work(const suite_place *place, const histories_options *options, unsigned job)
{
	static history h;
	sheaf_error err = {0};
	memset(&h, 0, sizeof(h));
	h.trace = getenv("SHEAF_TRACE") != NULL;
	if (real_open(&h.stores[0], "memory:", &err) != 0 ||
	    real_open(&h.stores[1], place->url, &err) != 0) {
		printf("not ok histories: %s: %s\n", place->url, err.message);
		return 1;
	}
	int failed = 0;
	for (uint64_t i = job; i < options->count && failed < FAILURES_MAX; i += options->jobs)
		failed += !run(&h, place->app, options->seed + i, options->ops);
	for (int k = 0; k < 2; k++) {
		real_close(&h.stores[k]);
		answer_free(&h.got[k]);
		answer_free(&h.bytes[k]);
	}
	model_clear(&h.model);
	answer_free(&h.want);
	answer_free(&h.text);
	return failed;
}

int histories_some(const suite_place *place, uint64_t seed, uint64_t count, unsigned ops)
{
	histories_options o = {.count = count, .seed = seed, .ops = ops, .jobs = 1};
	return work(place, &o, 0);
}

int histories_run(const char *url, const histories_options *options)
{
	histories_options o = *options;
	suite_place place;
	if (!suite_place_make(&place, url, "histories")) {
		fprintf(stderr, "sheaf-conformance: no place in %s: %s\n", url, strerror(errno));
		return 1;
	}
	if (o.jobs < 1)
		o.jobs = 1;
	if (o.jobs > 1 && strncmp(url, "memory:", 7) != 0)
		o.jobs *= WAITERS;
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	int failed = 0;
	if (o.jobs == 1) {
		failed = work(&place, &o, 0) != 0;
	} else {
		fflush(stdout);
		for (unsigned i = 0; i < o.jobs; i++) {
			pid_t child = fork();
			if (child == 0) {
				int bad = work(&place, &o, i);
				fflush(stdout);
				exit(bad ? 1 : 0);
			}
			failed += child < 0;
		}
		int status;
		while (wait(&status) > 0)
			failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	double seconds = (double)(to.tv_sec - from.tv_sec) +
	                 (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	printf("%s %llu histories of %u operations from seed %llu on memory, %s and the model: %.1f s\n",
	       failed ? "not ok" : "ok", (unsigned long long)o.count, o.ops,
	       (unsigned long long)o.seed, place.url, seconds);
	return failed ? 1 : 0;
}
