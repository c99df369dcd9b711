/* Seeded random histories, run in lockstep on a naive model, on memory and on a store. */
#ifndef CONFORMANCE_HISTORIES_H
#define CONFORMANCE_HISTORIES_H

#include <stdint.h>

#include "suite.h"

typedef struct histories_options {
	uint64_t count;
	uint64_t seed; /* of the first; the next has seed + 1 */
	unsigned ops;  /* operations in each */
	unsigned jobs; /* processors to keep busy */
} histories_options;

/* Runs them and prints what differed. 0, or 1 if any did. */
int histories_run(const char *url, const histories_options *options);

/* A few of them in one place, in this process. How many failed. */
int histories_some(const suite_place *place, uint64_t seed, uint64_t count, unsigned ops);

#endif
