/*
 * An arena: many small allocations, one free.
 *
 * Results handed to callers own one arena each. Chunks double up to 1 MiB; a
 * large piece gets a chunk of its own. Built with SHEAF_ARENA_DEBUG each piece
 * is its own allocation, so that sanitizers see overruns.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "sheaf/common.h"

typedef struct arena arena;

arena *arena_new(void);      /* NULL when out of memory */
void arena_free(arena *a);   /* NULL is fine */
void arena_freep(arena **a); /* for _cleanup_ */
void arena_clear(arena *a);  /* forgets what was handed out and keeps some room for the next */
void *arena_alloc(arena *a,
                  size_t bytes); /* 16-byte aligned, not zeroed; NULL when out of memory */
void *arena_zalloc(arena *a, size_t bytes); /* zeroed */
size_t arena_bytes(const arena *a);         /* what was handed out */

/* A copy with a NUL added. A NULL ptr in gives {NULL, 0}; `*ok` becomes 0 on failure. */
sheaf_str arena_dup(arena *a, sheaf_str s, int *ok);

#endif
