/* A real store in a history: runs the model's operations through the public API. */
#ifndef CONFORMANCE_LOCKSTEP_H
#define CONFORMANCE_LOCKSTEP_H

#include "model.h"

typedef struct real {
	const char *url;
	sheaf_store *store;
	bool lasting; /* it can be closed and opened again */
	char app[120];
	sheaf_session *handles[KEYS][2];
} real;

/* Opens the store. @return 0 or a code */
int real_open(real *r, const char *url, sheaf_error *err);
void real_close(real *r);
/* Goes on under another app. */
void real_begin(real *r, const char *app);

/*
 * Runs an operation. `said` is what the model must say too; `bytes` holds what
 * only real stores can be compared by: lines and hashes.
 */
void real_run(real *r, const op *o, answer *said, answer *bytes);
/* Deletes every session of the app; says what is left. */
void real_end(real *r, answer *said);

#endif
