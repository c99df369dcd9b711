/* Makes up the operations of a history from a seed and from what the model has got. */
#ifndef CONFORMANCE_HISTORIES_GEN_H
#define CONFORMANCE_HISTORIES_GEN_H

#include "model.h"

#define PAST 32

typedef struct generator {
	uint64_t state;
	int ids;
	int calls;
	int recent[KEYS][4]; /* calls made in each session lately */
	op past[PAST];       /* appends that may be repeated */
	int past_count;
} generator;

void generator_begin(generator *g, uint64_t seed);
void generator_next(generator *g, model *m, op *o);
/* A read that shows everything of a session: the n-th of them, false when there are no more. */
bool generator_look(const model *m, int key, int n, op *o);
uint64_t generator_random(generator *g, uint64_t below);
void op_print(const op *o, answer *a);

#endif
