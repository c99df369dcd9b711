/*
 * One trial: a scenario played with a fault in it, and what must hold whatever
 * fails.
 *
 * A step that says OK has happened. One that says FAILED has not, one that says
 * UNKNOWN may have; a repeat of either, once the fault is over, makes it happen
 * exactly once. Reading says the truth or fails. Nothing is damaged, nothing
 * leaks.
 */
#ifndef FAULT_TRIAL_H
#define FAULT_TRIAL_H

#include <stdbool.h>
#include <stddef.h>

#include "support/play.h"

/* How a scenario goes when nothing fails. */
typedef struct golden {
	const scenario *sc;
	bool memory;
	cast who;
	size_t steps;
	char ***states; /* masked, of each session; states[i] before step i, states[steps] at the end */
	char **said; /* by reading steps */
	char *list;  /* of the whole store at the end */
} golden;

/* What the two kinds of fault differ in. */
typedef struct fault_kind {
	void (*arm)(const void *plan);
	void (*disarm)(void);   /* faults are over, the counts stay */
	void (*pause)(bool on); /* for looking at things meanwhile */
	bool (*code_ok)(int code, const void *plan);
	size_t (*live)(void);  /* blocks of memory */
	bool (*litters)(void); /* the fault was one that may leave files behind */
} fault_kind;

typedef struct trial {
	const golden *g;
	const fault_kind *kind;
	const void *plan;
	bool for_ever;
	bool reopen;    /* after a failure go on with a store opened anew, else with the same one */
	bool erased;    /* look for traces of what was deleted */
	char what[160]; /* for messages */
} trial;

void golden_make(golden *g, const scenario *sc, bool memory);
void golden_free(golden *g);

/* Plays; false if something does not hold, which has been printed. */
bool trial_run(const trial *t);

/* How many trials ran and how many did not hold. */
typedef struct tally {
	unsigned long trials, failures;
} tally;

extern tally trials;

/* The exit code of a test program. */
int trials_end(const char *name, double seconds);
double seconds_now(void);

#endif
