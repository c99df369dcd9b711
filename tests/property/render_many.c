/* Runs many random histories; see render_many.h. */
#include "property/render_many.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/play.h"

#define STORE_TURNS 64 /* histories before a new store is opened */
#define JOBS_MAX 8

static check_fn checks;
static const char *program;

bool runner_fails(runner *r, const char *where, const char *text)
{
	(void)snprintf(r->why, sizeof(r->why), "%s: %s", where, text);
	return false;
}

static bool run(runner *r, const act *steps, size_t count, uint64_t seed, bool print)
{
	r->print = print;
	char name[32];
	bool good = true;
	if (r->stored++ % STORE_TURNS == 0) {
		sheaf_close(r->store);
		r->store = NULL;
		if (sheaf_open(&r->store, "memory:", NULL, &r->h.err) != 0)
			return runner_fails(r, "store", r->h.err.message);
	}
	(void)snprintf(name, sizeof(name), "s%u", r->stored);
	r->h.long_results = seed % 50 == 0;
	int rc = history_open(&r->h, r->store, name);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = history_step(&r->h, &steps[i]);
	if (rc != 0)
		good = runner_fails(r, "history", r->h.err.message);
	good = good && checks(r, seed);
	if (print)
		history_print(&r->h);
	history_close(&r->h);
	return good;
}

/* Whether two reports say the same but for their numbers. */
static bool is_same_report(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strspn(a, "0123456789");
		b += strspn(b, "0123456789");
		if (*a != *b)
			return false;
		if (*a == '\0')
			return true;
	}
}

/* Leaves out steps as long as it still fails in the same way. */
static void report(runner *r, act *steps, size_t count, uint64_t seed)
{
	char first[sizeof(r->why)];
	memcpy(first, r->why, sizeof(first));
	(void)fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, r->why);
	for (size_t i = count; i-- > 0;) {
		act without[STEPS_MAX];
		memcpy(without, steps, count * sizeof(*steps));
		memmove(without + i, without + i + 1, (count - i - 1) * sizeof(*steps));
		if (run(r, without, count - 1, seed, false) || !is_same_report(first, r->why))
			continue;
		memcpy(steps, without, --count * sizeof(*steps));
	}
	for (size_t i = 0; i < count; i++)
		(void)fprintf(stderr, "%s%s",
		              i != 0 ? ", " : "at the least: ", step_name(&steps[i]));
	(void)fprintf(stderr, "\n");
	(void)run(r, steps, count, seed, true);
	(void)fprintf(stderr, "=> %s\nagain with: %s %llu\n", r->why, program,
	              (unsigned long long)seed);
}

/* ---- Many ------------------------------------------------------------------ */

static atomic_ulong next_seed;
static atomic_uint failures;
static unsigned long histories;
static pthread_mutex_t reporting = PTHREAD_MUTEX_INITIALIZER;

static void *work(UNUSED void *ctx)
{
	runner *r = calloc(1, sizeof(*r));
	act steps[STEPS_MAX];
	if (r == NULL)
		abort();
	for (;;) {
		uint64_t seed = atomic_fetch_add(&next_seed, 1);
		if (seed >= histories || atomic_load(&failures) >= 5)
			break;
		size_t count = steps_make(steps, seed);
		if (run(r, steps, count, seed, false))
			continue;
		atomic_fetch_add(&failures, 1);
		(void)pthread_mutex_lock(&reporting);
		report(r, steps, count, seed);
		(void)pthread_mutex_unlock(&reporting);
	}
	sheaf_close(r->store);
	free(r);
	return NULL;
}

int many_run(int argc, char **argv, unsigned long count, check_fn check)
{
	pthread_t threads[JOBS_MAX];
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t jobs = cores < 1 ? 1 : cores > JOBS_MAX ? JOBS_MAX : (size_t)cores;
	checks = check;
	program = argv[0];
	if (argc > 1) {
		atomic_store(&next_seed, strtoul(argv[1], NULL, 10));
		histories = atomic_load(&next_seed) + 1;
		jobs = 1;
	} else {
		histories = (unsigned long)((double)count * test_scale());
	}
	for (size_t i = 0; i < jobs; i++) {
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			abort();
	}
	for (size_t i = 0; i < jobs; i++)
		(void)pthread_join(threads[i], NULL);
	unsigned failed = atomic_load(&failures);
	printf("%lu histories, %u failed\n", histories, failed);
	return failed != 0;
}
