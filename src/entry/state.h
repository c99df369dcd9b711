/*
 * Scoped state: what records change of it, and what a session's adds up to.
 *
 * A record may carry a top-level member `state_delta`, an object whose keys say
 * by their prefix where a value belongs: app:, user:, temp: (never stored), or
 * none, the session. The session's own keys are folded into its head; the
 * others are looked at here and kept elsewhere.
 */
#ifndef ENTRY_STATE_H
#define ENTRY_STATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "sheaf/error.h"

typedef enum state_scope {
	STATE_SESSION,
	STATE_USER,
	STATE_APP,
	STATE_TEMP
} state_scope;

/* Where a key belongs; `rest` (may be NULL) gets it without the prefix. */
state_scope state_scope_of(sheaf_str key, sheaf_str *rest);
const char *state_prefix(state_scope scope);

/* A key as callers give it: plain UTF-8, something after the prefix. SHEAF_INVALID, SHEAF_LIMIT. */
int state_key_check(sheaf_str key, sheaf_error *err);

/* ---- Deltas --------------------------------------------------------------- */

/*
 * The value of a body's state_delta, or {NULL,0}. The name counts only where it
 * is spelled without escapes, so that not finding its bytes is proof and a body
 * without it is never walked.
 */
sheaf_str state_delta_of(sheaf_str body);

/* One change: the key as it is written and as it reads, the value as it is written. */
typedef struct state_change {
	sheaf_str member; /* "key":value, as written */
	sheaf_str key;    /* unescaped, with its prefix */
	sheaf_str value;  /* {NULL,0}: null, which deletes */
	state_scope scope;
	sheaf_str rest; /* the key without its prefix */
} state_change;

/*
 * The next change of a delta (an object's text). Start with *at = 0. Keys that
 * need it are unescaped into `a`. 1, 0 at the end, SHEAF_NOMEM. What is not
 * shaped like a delta ends it; keys and values no draft could have are passed over.
 */
int state_delta_next(sheaf_str delta, size_t *at, arena *a, state_change *out);

/* Whether a caller's delta, in checked JSON, is one. SHEAF_INVALID, SHEAF_LIMIT, SHEAF_NOMEM. */
int state_delta_check(sheaf_str delta, sheaf_error *err);

/*
 * Takes the temp: keys out of a delta: the rest goes to `kept`, members with
 * braces, empty if nothing is left; theirs to `temp`, members alone.
 */
int state_delta_strip(sheaf_str delta, buf *kept, buf *temp, sheaf_error *err);

/* Members without their state_delta, in `out`, the bytes of all others as they are. */
void state_members_without(buf *out, sheaf_str members);

/* ---- A session's state ------------------------------------------------------ */

typedef struct state_pair {
	sheaf_str key;
	sheaf_str value;
} state_pair;

/* Sorted by key. It never changes, heads share it, and the last to let go frees it. */
typedef struct state_set {
	atomic_size_t refs;
	size_t count;
	size_t bytes; /* of keys and values */
	state_pair pairs[];
} state_set;

state_set *state_ref(state_set *s); /* NULL, the empty set, is fine here and below */
void state_unref(state_set *s);
void state_unrefp(state_set **s);
const state_pair *state_find(const state_set *s, sheaf_str key);

/*
 * What a set is after a delta's session keys, in *out with a reference of the
 * caller's: the same one if there are none. `*app` says whether the delta has
 * app: keys. SHEAF_NOMEM. Whoever appends keeps to SHEAF_STATE_BYTES_MAX.
 */
int state_apply(state_set **out, state_set *from, sheaf_str delta, bool *app, sheaf_error *err);

/* The whole set as a delta that makes it, with braces. */
void state_write(buf *out, const state_set *s);

/* As bytes, for stores. Reading checks everything. SHEAF_DAMAGED, SHEAF_NOMEM. */
size_t state_encode(const state_set *s, void *out, size_t room);
int state_decode(state_set **out, const void *bytes, size_t len, sheaf_error *err);

#endif
