/* Words for the cases of expiry. */
#ifndef CONFORMANCE_WORDS_EXPIRY_H
#define CONFORMANCE_WORDS_EXPIRY_H

#include <time.h>

#include "suite.h"

#define SECOND_US INT64_C(1000000)
#define DAY_US (INT64_C(86400) * SECOND_US)

void t_wait_ms(unsigned ms);
int64_t t_now_us(clockid_t clock);
int t_retain(suite *t, sheaf_session *s, int64_t ttl_us, int64_t grace_us, int pin);
/* Its time is over from now on; it can be undeleted. */
void t_expire(suite *t, sheaf_session *s);
/* Its grace is over too. */
void t_end(suite *t, sheaf_session *s);
/* A new session with u1 and a1. */
sheaf_session *t_two(suite *t, const char *name);
int t_open_code(suite *t, const char *session, int mode);
int t_undelete(suite *t, const char *session, const sheaf_retention *r, int32_t *existed);
/* Brings a session back for good. */
void t_revive(suite *t, const char *session);
const sheaf_session_info *t_info(suite *t, sheaf_session *s);
/* The sessions of a list, by name. */
char *t_names(suite *t, const sheaf_list *list);
/* Sweeps what the case's user has, and says "removed | in grace", " +" if there was more. */
const char *t_sweep(suite *t, int dry_run, size_t limit);
const sheaf_list *t_list_expired(suite *t);

#endif
