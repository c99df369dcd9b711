/*
 * Every n-th allocation fails, once and for ever, across all scenarios, on
 * memory: and on jsonl:. What is out of memory says so, nothing leaks, nothing
 * is half done, and the next call works.
 *
 *   test_fault_alloc_faults [SCENARIO [N]]     SHEAF_TEST_SCALE=0.1 tries every tenth n
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fail_alloc.h"
#include "support/fault_io.h"
#include "trial.h"

typedef struct alloc_plan {
	size_t at;
	bool for_ever;
} alloc_plan;

/* fail_alloc has no pause: what is left of the plan is set aside and taken up again. */
static alloc_plan armed;
static size_t asked; /* before the pause */
static bool paused, hit;

static void arm(const void *plan)
{
	armed = *(const alloc_plan *)plan;
	asked = 0;
	fail_alloc_at(armed.at, armed.for_ever);
}

static void note(void)
{
	hit = hit || fail_alloc_hit();
}

static void disarm(void)
{
	note();
	armed.at = 0;
	fail_alloc_at(0, false);
}

static void pause(bool on)
{
	if (on == paused)
		return;
	paused = on;
	if (on) {
		note();
		asked += fail_alloc_count();
		fail_alloc_at(0, false);
	} else if (armed.at > asked) {
		fail_alloc_at(armed.at - asked, armed.for_ever);
	} else if (armed.at != 0 && armed.for_ever) {
		fail_alloc_at(1, true);
	} else {
		fail_alloc_at(0, false);
	}
}

static bool code_ok(int code, const void *plan)
{
	(void)plan;
	return code == SHEAF_NOMEM;
}

static bool never(void)
{
	return false;
}

static const fault_kind alloc_kind = {arm, disarm, pause, code_ok, fail_alloc_live, never};

static bool try_at(const golden *g, alloc_plan plan, bool reopen)
{
	trial t = {.g = g,
	           .kind = &alloc_kind,
	           .plan = &plan,
	           .for_ever = plan.for_ever,
	           .reopen = reopen,
	           .erased = !plan.for_ever};
	snprintf(t.what, sizeof(t.what), "allocation %zu %s%s", plan.at,
	         plan.for_ever ? "for ever" : "once", reopen ? ", reopened" : "");
	hit = false;
	(void)trial_run(&t);
	return hit;
}

static void try_all(const golden *g, size_t only)
{
	size_t stride = test_scale() < 1 ? (size_t)(1 / test_scale() + 0.5) : 1;

	stride *= g->sc->dear;
	for (int for_ever = 0; for_ever < 2; for_ever++) {
		size_t offset = for_ever ? stride / 2 : 0;
		for (size_t n = only ? only : 1 + offset;; n += stride) {
			/* The two ways to go on take turns. */
			alloc_plan plan = {n, for_ever != 0};
			bool tried = try_at(g, plan, (n / stride) % 2 != 0);
			if (only)
				(void)try_at(g, plan, (n / stride) % 2 == 0);
			if (!tried || only)
				break;
		}
	}
}

int main(int argc, char **argv)
{
	double begin = seconds_now();

	fail_alloc_install();
	fault_io_install();
	for (size_t i = 0; i < 2 * scenario_count; i++) {
		const scenario *sc = &scenarios[i / 2];
		bool memory = i % 2 == 0;
		golden g;
		if ((argc > 1 && strcmp(argv[1], sc->name) != 0) || (memory && sc->files))
			continue;
		double from = seconds_now();
		unsigned long before = trials.trials;
		golden_make(&g, sc, memory);
		try_all(&g, argc > 2 ? strtoul(argv[2], NULL, 10) : 0);
		golden_free(&g);
		printf("%-14s %-8s %6lu trials, %.1f s\n", sc->name,
		       memory ? "memory:" : "jsonl:", trials.trials - before, seconds_now() - from);
		fflush(stdout);
	}
	fault_io_remove();
	fail_alloc_remove();
	return trials_end("allocation faults", seconds_now() - begin);
}
