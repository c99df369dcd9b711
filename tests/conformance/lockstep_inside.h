/* What the two files of a real store in a history share. */
#ifndef CONFORMANCE_LOCKSTEP_INSIDE_H
#define CONFORMANCE_LOCKSTEP_INSIDE_H

#include "lockstep.h"

sheaf_key real_key(const real *r, int key);
/* A handle on the session, or NULL if there is none. */
sheaf_session *real_session(real *r, int key, int handle);
/* The word this store knows a named entry by. */
sheaf_str real_name(sheaf_session *s, const name *n, char room[SHEAF_ID_ROOM]);
/* The number of an id; 0 if there is none. */
uint64_t real_seq(sheaf_session *s, sheaf_str id);
void real_failed(answer *a, sheaf_session *s, int rc, const sheaf_error *err);
void real_read(sheaf_session *s, const op *o, answer *said, answer *bytes);
void real_list(real *r, answer *said);

#endif
