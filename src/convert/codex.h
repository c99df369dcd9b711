/* Between the parts of the Codex converter. */
#ifndef CONVERT_CODEX_H
#define CONVERT_CODEX_H

#include "convert/convert.h"

/*
 * A rollout that begins where another one was at some time names that one, and
 * has no lines of it: finds the session, which may have to be imported first,
 * and the entry. Without it the session is left without a beginning, which is a
 * problem. The caller closes session->fork; fork_at is in the arena.
 */
int codex_fork_find(import *im, value meta, import_session *session);

int codex_write(export *ex);
int codex_place(export *ex);

#endif
