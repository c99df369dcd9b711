/*
 * A map from strings to strings that remembers the newest: what was set long
 * ago is forgotten, so that a file of any length takes bounded memory.
 */
#ifndef CONVERT_WINDOW_H
#define CONVERT_WINDOW_H

#include "base/arena.h"
#include "base/map.h"
#include "sheaf/error.h"

/* At least so many are remembered, at most twice as many. */
#define WINDOW_COUNT 8192

typedef struct window_part {
	map map;
	arena *arena;
} window_part;

/* All zero is an empty one. */
typedef struct window {
	window_part young, old;
} window;

void window_free(window *w);

/* Copies both; replaces. 0 or SHEAF_NOMEM. */
int window_set(window *w, sheaf_str key, sheaf_str text);

/* {NULL,0} if it is not there (any more). NUL-terminated; valid until the next window_set(). */
sheaf_str window_get(const window *w, sheaf_str key);

#endif
