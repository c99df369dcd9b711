/*
 * Mending: from what is on a path to what a provider accepts.
 *
 * A pure function over a list of items. Behind every message with tool calls
 * come the answers to these calls, each once, in the order they came in, then
 * the made-up ones, and there are no answers anywhere else. It looks at parts,
 * not at roles: results inside user messages (as some tools write them) count
 * like tool messages.
 */
#ifndef CORE_MEND_H
#define CORE_MEND_H

#include "base/arena.h"
#include "sheaf/context.h"

/* What is said in the name of a call nobody answered. Changing it breaks every prompt cache. */
#define MEND_INTERRUPTED "interrupted"

typedef struct mended {
	const sheaf_item **items; /* in the arena; what needed no change is the item that came in */
	size_t count;
	const sheaf_note **notes; /* in the arena, in the order of the list */
	size_t note_count;
} mended;

/*
 * Mends `count` items for a provider and model ({NULL,0}: nobody in particular,
 * then thinking stays). New items, views and notes are made in `a`; they point
 * into the old ones. One pass over the parts, no recursion; the same list gives
 * the same result, and mending the result changes nothing more.
 */
int mend_items(mended *out, const sheaf_item *const *items, size_t count, sheaf_str provider,
               sheaf_str model, arena *a, sheaf_error *err);

#endif
