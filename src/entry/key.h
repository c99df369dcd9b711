/* Keys in their encoded form, as stores take them. */
#ifndef ENTRY_KEY_H
#define ENTRY_KEY_H

#include "sheaf/sys/store.h"

/* A key with room for all its parts, plain and encoded. Not movable: the views point inside. */
typedef struct key_box {
	sheaf_key plain;
	sheaf_store_key store;
	char owner[2 * SHEAF_KEY_PART_ROOM];
	char session[SHEAF_KEY_PART_ROOM];
	char app[SHEAF_KEY_PART_ROOM];
	char user[SHEAF_KEY_PART_ROOM];
	char plain_app[SHEAF_KEY_PART_ROOM];
	char plain_user[SHEAF_KEY_PART_ROOM];
	char plain_session[SHEAF_KEY_PART_ROOM];
} key_box;

/* Encodes a key; the session part must not be empty. SHEAF_INVALID, SHEAF_LIMIT. */
int key_box_init(key_box *box, const sheaf_key *key, sheaf_error *err);

/* The reverse, for keys that come out of a store. */
int key_box_decode(key_box *box, sheaf_str app, sheaf_str user, sheaf_str session,
                   sheaf_error *err);

#endif
