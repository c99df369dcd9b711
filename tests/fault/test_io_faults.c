/*
 * Every n-th file operation fails, in every way, once and for ever, across all
 * scenarios: outcomes are honest, nothing is damaged, nothing leaks, and the
 * store works again as soon as the fault is over.
 *
 *   test_fault_io_faults [SCENARIO [N]]     SHEAF_TEST_SCALE=0.1 tries every tenth n
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fail_alloc.h"
#include "support/fault_io.h"
#include "trial.h"

static void arm(const void *plan)
{
	fault_io_plan(plan);
}

/* The plan is over but its counts are wanted: nothing more can match. */
static uint64_t seen_hits;
static int seen_slot;

static void disarm(void)
{
	if (fault_io_hits() > seen_hits) {
		seen_hits = fault_io_hits();
		seen_slot = fault_io_hit_slot();
	}
	fault_io_plan(NULL);
}

static bool code_ok(int code, const void *plan)
{
	int error = ((const fault_plan *)plan)->error;
	switch (code) {
	case SHEAF_STORAGE:
	case SHEAF_BUSY:
		return true;
	case SHEAF_DENIED:
	case SHEAF_READONLY:
		return error == EACCES || error == EROFS;
	default:
		return false;
	}
}

static bool litters(void)
{
	return seen_slot == FAULT_unlink;
}

static const fault_kind io_kind = {arm, disarm, fault_io_pause, code_ok, fail_alloc_live, litters};

/* One fault at the n-th operation. False when the scenario has no n-th. */
static bool try_at(const golden *g, fault_plan plan, bool reopen)
{
	trial t = {.g = g,
	           .kind = &io_kind,
	           .plan = &plan,
	           .for_ever = plan.for_ever,
	           .reopen = reopen};
	t.erased = !plan.for_ever;
	snprintf(t.what, sizeof(t.what), "%s %llu %s %s%s", fault_slot_name(plan.slot),
	         (unsigned long long)plan.at, fault_error_name(plan.error),
	         plan.for_ever ? "for ever" : "once", reopen ? ", reopened" : "");
	seen_hits = 0;
	if (!trial_run(&t))
		printf("    (the call that failed: %s)\n", fault_slot_name(seen_slot));
	return seen_hits != 0;
}

static void try_all(const golden *g, uint64_t only)
{
	static const struct {
		int slot, error;
	} faults[] = {{FAULT_ANY, EIO},
	              {FAULT_ANY, ENOSPC},
	              {FAULT_ANY, EINTR},
	              {FAULT_ANY, EMFILE},
	              {FAULT_ANY, EROFS},
	              {FAULT_ANY, EACCES},
	              {FAULT_TRANSFERS, FAULT_HALF},
	              {FAULT_TRANSFERS, FAULT_ONE_BYTE},
	              {FAULT_TRANSFERS, FAULT_ALL_BUT_1}};
	/* Where not every n is tried with every fault, the faults divide them among themselves. */
	uint64_t stride = test_scale() < 1 ? (uint64_t)(1 / test_scale() + 0.5) : 1;
	stride *= g->sc->dear;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		for (int for_ever = 0; for_ever < 2; for_ever++) {
			fault_plan plan = {faults[i].slot, 0, faults[i].error, for_ever != 0};
			for (plan.at = only ? only : 1 + (i * 2 + (unsigned)for_ever) % stride;;
			     plan.at += stride) {
				bool hit = try_at(g, plan, false);
				hit = try_at(g, plan, true) || hit;
				if (!hit || only)
					break;
			}
		}
	}
}

int main(int argc, char **argv)
{
	double begin = seconds_now();

	fail_alloc_install();
	fault_io_install();
	for (size_t i = 0; i < scenario_count; i++) {
		golden g;
		if (argc > 1 && strcmp(argv[1], scenarios[i].name) != 0)
			continue;
		double from = seconds_now();
		unsigned long before = trials.trials;
		golden_make(&g, &scenarios[i], false);
		try_all(&g, argc > 2 ? strtoull(argv[2], NULL, 10) : 0);
		golden_free(&g);
		printf("%-14s %6lu trials, %.1f s\n", scenarios[i].name, trials.trials - before,
		       seconds_now() - from);
		fflush(stdout);
	}
	fault_io_remove();
	fail_alloc_remove();
	return trials_end("io faults", seconds_now() - begin);
}
