/* Building lists of sessions. */
#ifndef CORE_LIST_H
#define CORE_LIST_H

#include "core/session.h"

/* Sessions on their way into a list. */
typedef struct listing {
	arena *a;
	sheaf_session_info **items;
	size_t count;
	size_t room;
} listing;

int listing_begin(listing *l, sheaf_error *err);
void listing_end(listing *l); /* for _cleanup_; a finished one has nothing left */

/* Copies a session as a store gives it. SHEAF_NOMEM, SHEAF_INVALID. */
int listing_add(listing *l, const sheaf_store_key *key, const sheaf_session_info *info);

/* Makes the list; takes the arena over. `cursor` may be NULL. */
int listing_finish(sheaf_list **out, listing *l, const char *cursor, sheaf_error *err);

#endif
