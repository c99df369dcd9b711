/*
 * A hash map from byte strings to pointers or numbers.
 *
 * Keys are not copied: they must stay valid while they are in the map, which
 * they are when they live in the value or in an arena beside it.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>

#include "sheaf/common.h"

typedef struct map_slot {
	uint64_t hash; /* 0 = never used */
	sheaf_str key; /* ptr NULL with a hash = removed */
	uint64_t value;
} map_slot;

typedef struct map {
	map_slot *slots;
	size_t room; /* a power of two, or 0 */
	size_t used; /* live and removed */
	size_t count;
} map;

/* clang-format off */
#define MAP_INIT {NULL, 0, 0, 0}
/* clang-format on */

void map_free(map *m);
int map_set(map *m, sheaf_str key, uint64_t value); /* 0 or SHEAF_NOMEM; replaces */
/* The value of a key; one that is not there gets `*value`. 0 or SHEAF_NOMEM. */
int map_get_or_set(map *m, sheaf_str key, uint64_t *value);
bool map_get(const map *m, sheaf_str key, uint64_t *value);
bool map_remove(map *m, sheaf_str key);

static inline int map_set_ptr(map *m, sheaf_str key, void *value)
{
	return map_set(m, key, (uint64_t)(uintptr_t)value);
}

static inline void *map_get_ptr(const map *m, sheaf_str key)
{
	uint64_t value;
	return map_get(m, key, &value) ? (void *)(uintptr_t)value : NULL;
}

/* The next live slot at or after *at, or NULL. Start with *at = 0. Do not change the map meanwhile. */
const map_slot *map_each(const map *m, size_t *at);

#endif
