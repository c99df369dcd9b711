/* Cache marks as a format writes them: asked for at each place that may have one. */
#ifndef RENDER_CACHE_H
#define RENDER_CACHE_H

#include "render/render.h"

#define CACHE_MARKS_MAX 4u

/* sheaf_cache_mark.place */
enum {
	CACHE_TOOLS = 1,
	CACHE_SYSTEM = 2,
	CACHE_MESSAGES = 3
};

typedef struct cache_marks {
	rendering *r;
	const buf *out; /* what is written so far is what a mark stands behind */
	uint64_t minimum;
	size_t left;
	bool fixed;
	bool messages;
} cache_marks;

void cache_begin(cache_marks *c, rendering *r, const buf *out);

/*
 * The mark at a place, as a member without a comma, and noted in the rendering;
 * NULL if none is wanted there or what stands before it is too short to be
 * remembered.
 */
const char *cache_mark(cache_marks *c, int32_t place);

#endif
