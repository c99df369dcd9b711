/* Copying what lies beside the logs: state of users and apps, items that wait in queues. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/store_copy.h"
#include "entry/state.h"

void state_diff_free(state_diff *d)
{
	mem_free(d->items);
	d->items = NULL;
}

typedef struct gathering {
	state_diff *diff;
	arena *a;
	bool app; /* time and id count */
} gathering;

static int take_state(void *ctx, const sheaf_state_item *one)
{
	gathering *g = ctx;
	state_diff *d = g->diff;
	int ok = 1;
	if (mem_grow((void **)&d->items, &d->room, d->count + 1, sizeof(*d->items)) != 0)
		return SHEAF_NOMEM;
	d->items[d->count++] = (sheaf_state_item){
		.key = arena_dup(g->a, one->key, &ok),
		.value = arena_dup(g->a, one->value, &ok),
		.time_us = one->time_us,
		.id = arena_dup(g->a, one->id, &ok),
	};
	return ok ? 0 : SHEAF_NOMEM;
}

/* Takes out what the destination has already. */
static int drop_state(void *ctx, const sheaf_state_item *one)
{
	gathering *g = ctx;
	state_diff *d = g->diff;
	for (size_t i = 0; i < d->count; i++) {
		const sheaf_state_item *is = &d->items[i];
		if (!str_eq(is->key, one->key))
			continue;
		bool same = str_eq(is->value, one->value) &&
		            (is->value.ptr == NULL) == (one->value.ptr == NULL);
		if (g->app)
			same = same && is->time_us == one->time_us && str_eq(is->id, one->id);
		if (same)
			d->items[i] = d->items[--d->count];
		break;
	}
	return 0;
}

static bool has_key(const state_diff *d, sheaf_str key)
{
	for (size_t i = 0; i < d->count; i++) {
		if (str_eq(d->items[i].key, key))
			return true;
	}
	return false;
}

/* The keys of the user that a record changes, with no value. */
static int take_changes(const sheaf_row *row, state_diff *touched, arena *a, sheaf_error *err)
{
	record r;
	state_change change;
	size_t at = 0;
	int rc = record_scan(&r, row->bytes, a);
	sheaf_str delta = rc == 0 ? state_delta_of(r.body) : (sheaf_str){NULL, 0};
	if (delta.ptr == NULL)
		return 0;
	gathering g = {touched, a, false};
	while ((rc = state_delta_next(delta, &at, a, &change)) == 1) {
		sheaf_state_item one = {.key = change.rest};
		if (change.scope == STATE_USER && !has_key(touched, change.rest) &&
		    take_state(&g, &one) != 0)
			return err_nomem(err);
	}
	return rc;
}

int copy_user_state(store_copy *c, const key_box *key, const sheaf_row *added, size_t count,
                    bool always, state_diff *out, arena *a, sheaf_error *err)
{
	_cleanup_(state_diff_free) state_diff touched = {NULL, 0, 0};
	int rc = 0;
	if (!c->states)
		return 0;
	for (size_t i = 0; rc == 0 && i < count; i++) {
		if (added[i].kind != SHEAF_KIND_SESSION)
			rc = take_changes(&added[i], &touched, a, err);
	}
	if (rc != 0 || (touched.count == 0 && !always))
		return rc;
	gathering g = {out, a, false};
	rc = store_state_read(c->from, key->store.owner, 0, take_state, &g, err);
	/* What was changed and is not there any more was deleted. */
	for (size_t i = 0; rc == 0 && i < touched.count; i++) {
		if (!has_key(out, touched.items[i].key) && take_state(&g, &touched.items[i]) != 0)
			rc = err_nomem(err);
	}
	if (rc == 0 && out->count != 0)
		rc = store_state_read(c->to, key->store.owner, 0, drop_state, &g, err);
	return rc;
}

int copy_app_state(store_copy *c, const char *app, sheaf_error *err)
{
	if (!c->states)
		return 0;
	_cleanup_(arena_freep) arena *a = arena_new();
	_cleanup_(state_diff_free) state_diff diff = {NULL, 0, 0};
	if (a == NULL)
		return err_nomem(err);
	gathering g = {&diff, a, true};
	int rc = store_state_read(c->from, sheaf_str_of(app), 1, take_state, &g, err);
	if (rc == 0 && diff.count != 0)
		rc = store_state_read(c->to, sheaf_str_of(app), 1, drop_state, &g, err);
	if (rc == 0 && diff.count != 0)
		rc = store_state_apply(c->to, sheaf_str_of(app), diff.items, diff.count, err);
	if (rc == 0)
		c->totals.state_items += diff.count;
	return rc;
}

/* ---- Queues --------------------------------------------------------------- */

typedef struct queueing {
	sheaf_queue_row *rows;
	size_t count;
	size_t room;
	size_t claimed;
	int64_t now_us;
	arena *a;
} queueing;

static int take_queued(void *ctx, const sheaf_queue_row *row)
{
	queueing *q = ctx;
	int ok = 1;
	if (row->claimed_until_us > q->now_us) {
		q->claimed++;
		return 0;
	}
	if (mem_grow((void **)&q->rows, &q->room, q->count + 1, sizeof(*q->rows)) != 0)
		return SHEAF_NOMEM;
	q->rows[q->count++] = (sheaf_queue_row){
		.id = arena_dup(q->a, row->id, &ok),
		.content = arena_dup(q->a, row->content, &ok),
		.environment = arena_dup(q->a, row->environment, &ok),
		.priority = row->priority,
	};
	return ok ? 0 : SHEAF_NOMEM;
}

int copy_queue(store_copy *c, const key_box *key, int64_t now_us, sheaf_error *err)
{
	if (!c->queues)
		return 0;
	_cleanup_(arena_freep) arena *a = arena_new();
	if (a == NULL)
		return err_nomem(err);
	queueing q = {.now_us = now_us, .a = a};
	int rc = store_queue_list(c->from, &key->store, take_queued, &q, err);
	for (size_t i = 0; rc == 0 && i < q.count; i++) {
		int32_t existed = 0;
		rc = store_queue_put(c->to, &key->store, &q.rows[i], &existed, err);
		if (rc == 0 && !existed)
			c->totals.queue_items++;
	}
	mem_free(q.rows);
	if (rc == 0 && q.claimed != 0)
		copy_note(c, &key->plain, SHEAF_COPY_LEFT, 0, 0,
		          "%zu items of its queue are claimed and were not copied", q.claimed);
	return rc;
}
