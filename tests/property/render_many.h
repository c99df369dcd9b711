/*
 * Many random histories on all cores, one after the other in each, and the
 * shortest that fails as well when one fails.
 */
#ifndef PROPERTY_RENDER_MANY_H
#define PROPERTY_RENDER_MANY_H

#include "property/render_oracle.h"

typedef struct runner {
	sheaf_store *store;
	unsigned stored;
	history h;
	oracle o;
	bool print; /* what fails */
	char why[WHY_ROOM * 2];
} runner;

/* Says what is wrong, and is false. */
bool runner_fails(runner *r, const char *where, const char *text);

/* Looks at a history that was just made; may add to it. */
typedef bool (*check_fn)(runner *r, uint64_t seed);

/* The whole program: seeds from 0 on, as many as SHEAF_TEST_SCALE makes of `count`; or the one
 * that is given as an argument. */
int many_run(int argc, char **argv, unsigned long count, check_fn check);

#endif
