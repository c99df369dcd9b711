/*
 * Every n-th allocation fails, once and for ever, across all scenarios, on memory
 * and on jsonl: SHEAF_NOMEM or success, nothing leaks, nothing changes that was
 * not acknowledged, and the store works again as soon as there is memory.
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

static alloc_plan armed;
static bool active; /* between arm and disarm */
static bool seen_hit;

static void arm(const void *plan)
{
	armed = *(const alloc_plan *)plan;
	active = true;
	fail_alloc_at(armed.at, armed.for_ever);
}

static void disarm(void)
{
	if (active)
		seen_hit = seen_hit || fail_alloc_hit();
	active = false;
	fail_alloc_at(0, false);
}

/* Looking at things needs memory; the plan goes on where it stood. */
static void pause_faults(bool on)
{
	static size_t count;
	if (!active)
		return;
	if (on) {
		count = fail_alloc_count();
		seen_hit = seen_hit || fail_alloc_hit();
		fail_alloc_at(0, false);
	} else if (armed.for_ever && seen_hit) {
		fail_alloc_at(1, true);
	} else if (!seen_hit && armed.at > count) {
		armed.at -= count;
		fail_alloc_at(armed.at, armed.for_ever);
	}
}

static bool code_ok(int code, const void *plan)
{
	(void)plan;
	return code == SHEAF_NOMEM;
}

static bool litters(void)
{
	return false;
}

static const fault_kind alloc_kind = {arm, disarm, pause_faults, code_ok, fail_alloc_live, litters};

#define EVERY_ONE 400
#define THEN_STEP 17

static bool try_at(const golden *g, alloc_plan plan, bool reopen)
{
	trial t = {.g = g,
	           .kind = &alloc_kind,
	           .plan = &plan,
	           .for_ever = plan.for_ever,
	           .reopen = reopen};
	snprintf(t.what, sizeof(t.what), "%s allocation %zu %s%s", g->memory ? "memory" : "jsonl",
	         plan.at, plan.for_ever ? "for ever" : "once", reopen ? ", reopened" : "");
	seen_hit = false;
	(void)trial_run(&t);
	return seen_hit;
}

static void try_all(const golden *g, size_t only)
{
	size_t stride = test_scale() < 1 ? (size_t)(1 / test_scale() + 0.5) : 1;

	for (int for_ever = 0; for_ever < 2; for_ever++) {
		alloc_plan plan = {0, for_ever != 0};
		for (plan.at = only ? only : 1 + (unsigned)for_ever % stride;;
		     plan.at += plan.at > EVERY_ONE ? THEN_STEP * stride : stride) {
			bool hit = try_at(g, plan, false);
			if (!g->memory)
				hit = try_at(g, plan, true) || hit;
			if (!hit || only)
				break;
		}
	}
}

/* Memory gives no durability: what asks for one has no place there. */
static bool suits(const scenario *sc, bool memory)
{
	if (!memory)
		return true;
	for (const step *s = sc->steps; s->kind != STEP_END; s++)
		if (s->durability > SHEAF_DURABILITY_NONE)
			return false;
	return !sc->files;
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
		if ((argc > 1 && strcmp(argv[1], sc->name) != 0) || !suits(sc, memory))
			continue;
		double from = seconds_now();
		unsigned long before = trials.trials;
		golden_make(&g, sc, memory);
		try_all(&g, argc > 2 ? strtoull(argv[2], NULL, 10) : 0);
		golden_free(&g);
		printf("%-7s %-14s %6lu trials, %.1f s\n", memory ? "memory" : "jsonl", sc->name,
		       trials.trials - before, seconds_now() - from);
		fflush(stdout);
	}
	fault_io_remove();
	fail_alloc_remove();
	return trials_end("allocation faults", seconds_now() - begin);
}
