/* Other stores, of every kind that is to be had, for cases that need two. */
#ifndef CONFORMANCE_PARTNER_H
#define CONFORMANCE_PARTNER_H

#include "suite.h"

#define PARTNERS 4

/* Another store, of every kind that is to be had. */
typedef struct partner {
	sheaf_store *store;
	char directory[64]; /* to be removed */
} partner;

/* A key that nobody else uses in any of the stores. */
sheaf_key partner_key(suite *t, const char *user, const char *session);

/* Partner 0 … PARTNERS - 1; false if there is none, or it is what is under test. */
bool partner_open(suite *t, int number, partner *p);
void partner_close(suite *t, partner *p);

#endif
