/* The `memory:` store: the state of users and apps. */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "store/memory.h"
#include "store/state_image.h"

/* A user or an app: only an owner's name has a slash. */
struct mstate {
	state_image *now;
	sheaf_str name;
	char text[];
};

void mstate_free_all(mstore *m)
{
	size_t at = 0;
	for (const map_slot *slot; (slot = map_each(&m->states, &at)) != NULL;) {
		mstate *s = (mstate *)(uintptr_t)slot->value;
		image_unref(s->now);
		mem_free(s);
	}
	map_free(&m->states);
}

/* What a scope has, made empty if it has nothing yet. NULL when out of memory. */
static mstate *scope_of(mstore *m, sheaf_str name)
{
	mstate *s = map_get_ptr(&m->states, name);
	if (s != NULL)
		return s;
	s = mem_zalloc(sizeof(*s) + name.len);
	if (s == NULL)
		return NULL;
	memcpy(s->text, name.ptr, name.len);
	s->name = (sheaf_str){s->text, name.len};
	if (map_set_ptr(&m->states, s->name, s) != 0) {
		mem_free(s);
		return NULL;
	}
	return s;
}

int mstate_prepare(mstore *m, sheaf_str scope, bool app, const sheaf_state_item *items,
                   size_t count, mstate_change *change, sheaf_error *err)
{
	if (count == 0)
		return 0;
	mstate *s = scope_of(m, scope);
	if (s == NULL)
		return err_nomem(err);
	int rc = image_apply(&change->next, s->now, app, items, count, err);
	if (rc == 0)
		change->scope = s;
	return rc;
}

void mstate_commit(mstate_change *change)
{
	if (change->scope == NULL)
		return;
	image_unref(change->scope->now);
	change->scope->now = change->next;
	*change = (mstate_change){0};
}

void mstate_drop(mstate_change *change)
{
	if (change->scope != NULL)
		image_unref(change->next);
	*change = (mstate_change){0};
}

int memory_state_read(void *backend, sheaf_str scope, UNUSED int app, sheaf_state_fn fn, void *ctx,
                      UNUSED sheaf_error *err)
{
	mstore *m = backend;
	int rc = 0;
	memory_lock(m);
	const mstate *s = map_get_ptr(&m->states, scope);
	state_image *image = image_ref(s != NULL ? s->now : NULL);
	memory_unlock(m);
	for (size_t i = 0; image != NULL && rc == 0 && i < image->count; i++)
		rc = fn(ctx, &image->items[i]);
	memory_lock(m);
	image_unref(image);
	memory_unlock(m);
	return rc < 0 ? rc : 0;
}

int memory_state_apply(void *backend, sheaf_str app, const sheaf_state_item *items, size_t count,
                       UNUSED int64_t deadline_us, sheaf_error *err)
{
	mstore *m = backend;
	mstate_change change = {0};
	memory_lock(m);
	int rc = mstate_prepare(m, app, true, items, count, &change, err);
	if (rc == 0)
		mstate_commit(&change);
	memory_unlock(m);
	return rc;
}
