/*
 * Scoped state, above the stores: what was set on a handle, what an append
 * takes along, and which app: values are still to be applied.
 */
#ifndef CORE_STATE_H
#define CORE_STATE_H

#include <stdatomic.h>

#include "base/map.h"
#include "entry/record.h"
#include "entry/state.h"
#include "sheaf/sys/store.h"

struct sheaf_session;
struct append;

/* A value set on a handle. */
typedef struct own_value {
	char *text; /* what key and value point into */
	sheaf_str key;
	sheaf_str value; /* {NULL,0}: deleted */
	uint64_t set_at; /* counts the sets of the handle */
} own_value;

/* Sorted by key. */
typedef struct own_values {
	own_value *items;
	size_t count;
	size_t room;
} own_values;

/* What a handle knows of state; under its lock. */
typedef struct handle_state {
	/* Something was set or is pending, or was once: until then an append need not look. */
	atomic_bool used;
	own_values sets; /* ride on the next append */
	own_values temp;
	uint64_t clock; /* counts sets */
	bool riding;    /* an append carries the sets just now */
	/* The last append that carried some: a repeat must carry the same. */
	char rode_on[SHEAF_ID_ROOM];
	size_t rode_len;
	buf rode;
	uint64_t rode_clock;
	/* Own records whose app: values may not be applied; 0: none. */
	uint64_t app_from;
	uint64_t app_to;
} handle_state;

void handle_state_free(handle_state *h);

/* ---- What goes with an append ------------------------------------------- */

/* Items of one scope, each key once; keys and values are views or in `a`. */
typedef struct state_items {
	sheaf_state_item *items;
	size_t count;
	size_t room;
	map at; /* key → position */
} state_items;

/* The state that an append changes outside of its head. All zero to begin with. */
typedef struct state_load {
	arena *a; /* NULL: there is nothing of it */
	state_items user;
	state_items app;
} state_load;

void state_load_end(state_load *l);

/* Takes the user: and app: values of drafts. */
int state_load_drafts(state_load *l, draft *const *drafts, size_t count, sheaf_error *err);

/* Takes those of a stored record, whose text need not outlive this call. SHEAF_NOMEM. */
int state_load_row(state_load *l, const sheaf_row *row);

/* What was set on the handle, on its way with an append. */
typedef struct state_ride {
	bool riding;
	buf before; /* the body of the draft that carries it */
} state_ride;

int state_ride_begin(struct sheaf_session *s, state_ride *r, draft *first, sheaf_error *err);
void state_ride_end(struct sheaf_session *s, state_ride *r, draft *first, bool stored);

/*
 * After an append: applies what app: values it has, and those of earlier ones
 * that are pending. With `existed` the records are the stored ones.
 * Returns sheaf_appended.app_state.
 */
int32_t state_after_append(struct sheaf_session *s, const state_load *l, uint64_t first,
                           uint64_t last, bool existed);

/* The temp: values of drafts belong to the handle. */
void state_take_temp(struct sheaf_session *s, draft *const *drafts, size_t count);

/* The session's own state as it was after record `seq`. The caller unrefs it. */
int state_at(struct sheaf_session *s, const sheaf_head *head, uint64_t seq, state_set **out,
             sheaf_error *err);

#endif
