/* Removing what has expired, for the sweep and for keys that are wanted again. */
#ifndef CORE_REMOVE_H
#define CORE_REMOVE_H

#include "core/session.h"

typedef enum removal {
	REMOVAL_LEFT,   /* the session lives, or can be undeleted, or is hidden */
	REMOVAL_ABSENT, /* it is not there, or went while we looked */
	REMOVAL_DONE
} removal;

/* Removes a session whose grace is over, as sheaf_store_delete() would; no other. */
int remove_expired(sheaf_store *store, const key_box *key, removal *out, sheaf_error *err);

#endif
