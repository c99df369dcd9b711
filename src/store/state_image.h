/*
 * The state of one user or app, as stores in this library hold it: a set of
 * items that never changes. What sets a value makes a new one, so a reader goes
 * on with the one it has, and a writer has the new one before it does anything
 * that cannot be taken back.
 */
#ifndef STORE_STATE_IMAGE_H
#define STORE_STATE_IMAGE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/map.h"
#include "sheaf/sys/store.h"

/* References are counted without atomics: under a lock of the holder's. */
typedef struct state_image {
	size_t refs;
	bool app;     /* by time and id, deletions held; else the last one counts */
	size_t bytes; /* of keys and values that are set */
	size_t count;
	sheaf_state_item items[]; /* sorted by key; texts lie behind them */
} state_image;

state_image *image_ref(state_image *s); /* NULL, the empty one, is fine here and below */
void image_unref(state_image *s);
void image_unrefp(state_image **s);

/* What is to become the next image. */
typedef struct image_builder {
	bool app;
	bool changed;
	sheaf_state_item *items;
	size_t count;
	size_t room;
	map at;   /* key → position */
	arena *a; /* texts that were kept */
} image_builder;

/* `from` must live as long as the builder. */
int image_begin(image_builder *b, const state_image *from, bool app);
void image_end(image_builder *b); /* for _cleanup_ */
/* Takes an item in. With `keep` its texts are copied, else they must outlive the builder. */
int image_add(image_builder *b, const sheaf_state_item *item, bool keep);
int image_make(state_image **out, const image_builder *b);

/* All of it in one: `*out` is `from` after the items, with a reference; the same one if an app's
 * state held newer ones of all. SHEAF_LIMIT, SHEAF_NOMEM. */
int image_apply(state_image **out, state_image *from, bool app, const sheaf_state_item *items,
                size_t count, sheaf_error *err);

#endif
