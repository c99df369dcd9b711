/*
 * Usage as records have it, and which of it counts: a turn's end repeats what
 * its messages said, so it counts only where they said nothing.
 */
#ifndef ENTRY_USAGE_H
#define ENTRY_USAGE_H

#include <stdbool.h>

#include "sheaf/usage.h"

/* Reads a `usage` object where it stands; false if the value is none. */
bool usage_read(sheaf_usage *out, sheaf_str value);

/* Each sum stops at the greatest number there is. */
void usage_add(sheaf_usage *to, const sheaf_usage *more);

/* The sum of one reply. */
sheaf_usage_sum usage_sum_of(const sheaf_usage *usage, sheaf_cost cost);

/*
 * The inside of a record's payload. Ours is the body's first member, and its
 * own members can be walked without looking for its end.
 */
sheaf_str usage_payload(sheaf_str body, const char *type);

#define TURNS_KNOWN 16u
#define TURNS_LOST 16u /* words */

/*
 * Hashes of turns whose messages had usage, oldest first. When they are too
 * many, one that has ended goes; one that is still open leaves its mark in
 * `lost`, bits that may be another's too. So a turn is never counted twice; of
 * those whose end alone knows their usage, a few may be missed where dozens
 * were left open.
 */
typedef struct turns {
	uint64_t known[TURNS_KNOWN];
	uint64_t count;
	uint64_t ended; /* bit i: known[i] has had its end */
	uint64_t lost[TURNS_LOST];
} turns;

uint64_t turns_hash(sheaf_str turn); /* never 0 */
bool turns_had_usage(const turns *t, uint64_t hash);
void turns_note_usage(turns *t, uint64_t hash);
void turns_note_end(turns *t, uint64_t hash);

#endif
