/* What deleting asks of search. */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include "store/store.h"

/*
 * Takes a session out of the store's index, if this machine has one. If that
 * cannot be done at once, or there is no module that could, the whole index is
 * thrown away: it is derived, and the next search makes it anew.
 */
void search_forget(sheaf_store *store, const sheaf_store_key *key);

#endif
