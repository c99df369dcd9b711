/*
 * The `memory:` store: the state of users and apps.
 *
 * A scope's state never changes: what sets a value puts a new one in its place,
 * so a reader goes on with the one it has, and an append can make the new state
 * before it does anything that cannot be taken back.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/memory.h"

struct mstate {
	size_t refs;
	sheaf_str name; /* an owner, or an app: only an owner has a slash */
	size_t count;
	sheaf_state_item items[]; /* sorted by key; names and texts lie behind them */
};

void mstate_unref(mstate *s)
{
	if (s != NULL && --s->refs == 0)
		mem_free(s);
}

void mstate_unrefp(mstate **s)
{
	mstate_unref(*s);
}

static sheaf_str put_text(char **at, sheaf_str text)
{
	if (text.ptr == NULL)
		return text;
	sheaf_str copy = {*at, text.len};
	if (text.len != 0)
		memcpy(*at, text.ptr, text.len);
	(*at)[text.len] = '\0';
	*at += text.len + 1;
	return copy;
}

static mstate *mstate_new(sheaf_str name, const sheaf_state_item *items, size_t count)
{
	size_t bytes = name.len + 1;
	for (size_t i = 0; i < count; i++)
		bytes += items[i].key.len + items[i].value.len + items[i].id.len + 3;
	mstate *s = mem_alloc(sizeof(*s) + count * sizeof(s->items[0]) + bytes);
	if (s == NULL)
		return NULL;
	char *at = (char *)&s->items[count];
	s->refs = 1;
	s->name = put_text(&at, name);
	s->count = count;
	for (size_t i = 0; i < count; i++) {
		s->items[i].key = put_text(&at, items[i].key);
		s->items[i].value = put_text(&at, items[i].value);
		s->items[i].time_us = items[i].time_us;
		s->items[i].id = put_text(&at, items[i].id);
	}
	return s;
}

static int compare_items(const void *a, const void *b)
{
	return str_cmp(((const sheaf_state_item *)a)->key, ((const sheaf_state_item *)b)->key);
}

/* What is to be held of a key that `old` has: of an app's the newer one. */
static const sheaf_state_item *newer(const sheaf_state_item *old, const sheaf_state_item *new,
                                     bool app)
{
	if (!app)
		return new;
	if (old->time_us != new->time_us)
		return new->time_us > old->time_us ? new : old;
	return str_cmp(new->id, old->id) > 0 ? new : old;
}

/* Both sorted by key. An app's deletions are held, so that an older value cannot come back. */
static size_t merge(sheaf_state_item *out, const mstate *from, const sheaf_state_item *news,
                    size_t count, bool app)
{
	size_t n = 0, i = 0, k = 0;
	while (i < from->count || k < count) {
		int order = i == from->count ? 1
		            : k == count     ? -1
		                             : str_cmp(from->items[i].key, news[k].key);
		const sheaf_state_item *held = order < 0    ? &from->items[i]
		                               : order == 0 ? newer(&from->items[i], &news[k], app)
		                                            : &news[k];
		if (app || held->value.ptr != NULL)
			out[n++] = *held;
		i += order <= 0;
		k += order >= 0;
	}
	return n;
}

/* What a scope has, made empty if it has nothing yet. NULL when out of memory. */
static const mstate *scope_of(mstore *m, sheaf_str name)
{
	mstate *s = map_get_ptr(&m->states, name);
	if (s != NULL)
		return s;
	s = mstate_new(name, NULL, 0);
	if (s != NULL && map_set_ptr(&m->states, s->name, s) != 0) {
		mstate_unref(s);
		s = NULL;
	}
	return s;
}

int mstate_prepare(mstore *m, sheaf_str scope, bool app, const sheaf_state_item *items,
                   size_t count, mstate **next, sheaf_error *err)
{
	*next = NULL;
	if (count == 0)
		return 0;
	const mstate *from = scope_of(m, scope);
	if (from == NULL)
		return err_nomem(err);
	size_t bytes = 0;
	_cleanup_(mem_freep) sheaf_state_item *news = mem_alloc(count * sizeof(*news));
	_cleanup_(mem_freep)
		sheaf_state_item *all = mem_alloc((from->count + count) * sizeof(*all));
	if (news == NULL || all == NULL)
		return err_nomem(err);
	memcpy(news, items, count * sizeof(*news));
	qsort(news, count, sizeof(*news), compare_items);
	size_t total = merge(all, from, news, count, app);
	for (size_t i = 0; i < total; i++)
		bytes += all[i].value.ptr != NULL ? all[i].key.len + all[i].value.len : 0;
	if (bytes > SHEAF_STATE_BYTES_MAX)
		return err_set(err, SHEAF_LIMIT, "the state of %s has more than %zu bytes",
		               app ? "an app" : "a user", SHEAF_STATE_BYTES_MAX);
	*next = mstate_new(scope, all, total);
	return *next != NULL ? 0 : err_nomem(err);
}

void mstate_commit(mstore *m, mstate **next)
{
	if (*next == NULL)
		return;
	mstate *old = map_get_ptr(&m->states, (*next)->name);
	(void)map_set_ptr(&m->states, (*next)->name, *next); /* in its place: cannot fail */
	mstate_unref(old);
	*next = NULL;
}

void mstate_free_all(mstore *m)
{
	size_t at = 0;
	for (const map_slot *slot; (slot = map_each(&m->states, &at)) != NULL;)
		mstate_unref((mstate *)(uintptr_t)slot->value);
	map_free(&m->states);
}

int memory_state_read(void *backend, sheaf_str scope, UNUSED int app, sheaf_state_fn fn, void *ctx,
                      UNUSED sheaf_error *err)
{
	mstore *m = backend;
	int rc = 0;
	memory_lock(m);
	mstate *s = map_get_ptr(&m->states, scope);
	if (s != NULL)
		s->refs++;
	memory_unlock(m);
	for (size_t i = 0; s != NULL && rc == 0 && i < s->count; i++)
		rc = fn(ctx, &s->items[i]);
	memory_lock(m);
	mstate_unref(s);
	memory_unlock(m);
	return rc < 0 ? rc : 0;
}

int memory_state_apply(void *backend, sheaf_str app, const sheaf_state_item *items, size_t count,
                       UNUSED int64_t deadline_us, sheaf_error *err)
{
	mstore *m = backend;
	mstate *next;
	memory_lock(m);
	int rc = mstate_prepare(m, app, true, items, count, &next, err);
	if (rc == 0)
		mstate_commit(m, &next);
	memory_unlock(m);
	return rc;
}
