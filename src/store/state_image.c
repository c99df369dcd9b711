/* The state of one user or app as a set of items that never changes. */
#include "store/state_image.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

state_image *image_ref(state_image *s)
{
	if (s != NULL)
		s->refs++;
	return s;
}

void image_unref(state_image *s)
{
	if (s != NULL && --s->refs == 0)
		mem_free(s);
}

void image_unrefp(state_image **s)
{
	image_unref(*s);
}

/* ---- Building --------------------------------------------------------------- */

void image_end(image_builder *b)
{
	mem_free(b->items);
	map_free(&b->at);
	arena_free(b->a);
	*b = (image_builder){0};
}

static int push(image_builder *b, const sheaf_state_item *item)
{
	if (mem_grow((void **)&b->items, &b->room, b->count + 1, sizeof(*b->items)) != 0 ||
	    map_set(&b->at, item->key, b->count) != 0)
		return SHEAF_NOMEM;
	b->items[b->count++] = *item;
	return 0;
}

int image_begin(image_builder *b, const state_image *from, bool app)
{
	*b = (image_builder){.app = app, .a = arena_new()};
	int rc = b->a != NULL ? 0 : SHEAF_NOMEM;
	for (size_t i = 0; rc == 0 && from != NULL && i < from->count; i++)
		rc = push(b, &from->items[i]);
	if (rc != 0)
		image_end(b);
	return rc;
}

/* Of an app's values the later counts, by time and then by id. */
static bool is_newer(const sheaf_state_item *item, const sheaf_state_item *held)
{
	if (item->time_us != held->time_us)
		return item->time_us > held->time_us;
	return str_cmp(item->id, held->id) > 0;
}

int image_add(image_builder *b, const sheaf_state_item *item, bool keep)
{
	uint64_t at;
	int ok = 1;
	bool known = map_get(&b->at, item->key, &at);
	if (known && b->app && !is_newer(item, &b->items[at]))
		return 0;
	sheaf_state_item kept = *item;
	if (keep) {
		kept.key = known ? kept.key : arena_dup(b->a, item->key, &ok);
		kept.value = arena_dup(b->a, item->value, &ok);
		kept.id = arena_dup(b->a, item->id, &ok);
	}
	if (!ok)
		return SHEAF_NOMEM;
	b->changed = true;
	if (!known)
		return push(b, &kept);
	kept.key = b->items[at].key; /* the map points to it */
	b->items[at] = kept;
	return 0;
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

static int compare_items(const void *a, const void *b)
{
	return str_cmp(((const sheaf_state_item *)a)->key, ((const sheaf_state_item *)b)->key);
}

/* An app's deletions are held, so that an older value cannot come back. */
static bool stays(const image_builder *b, size_t i)
{
	return b->app || b->items[i].value.ptr != NULL;
}

int image_make(state_image **out, const image_builder *b)
{
	size_t count = 0, bytes = 0;
	for (size_t i = 0; i < b->count; i++) {
		if (!stays(b, i))
			continue;
		count++;
		bytes += b->items[i].key.len + b->items[i].value.len + b->items[i].id.len + 3;
	}
	state_image *s = mem_alloc(sizeof(*s) + count * sizeof(s->items[0]) + bytes);
	if (s == NULL)
		return SHEAF_NOMEM;
	*s = (state_image){.refs = 1, .app = b->app};
	char *at = (char *)&s->items[count];
	for (size_t i = 0; i < b->count; i++) {
		const sheaf_state_item *from = &b->items[i];
		if (!stays(b, i))
			continue;
		s->items[s->count++] = (sheaf_state_item){
			put_text(&at, from->key),
			put_text(&at, from->value),
			from->time_us,
			put_text(&at, from->id),
		};
		if (from->value.ptr != NULL)
			s->bytes += from->key.len + from->value.len;
	}
	if (count > 1)
		qsort(s->items, count, sizeof(s->items[0]), compare_items);
	*out = s;
	return 0;
}

int image_apply(state_image **out, state_image *from, bool app, const sheaf_state_item *items,
                size_t count, sheaf_error *err)
{
	_cleanup_(image_end) image_builder b = {0};
	int rc = image_begin(&b, from, app);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = image_add(&b, &items[i], false);
	if (rc == 0 && !b.changed) {
		*out = image_ref(from);
		return 0;
	}
	state_image *made = NULL;
	if (rc == 0)
		rc = image_make(&made, &b);
	if (rc != 0)
		return err_nomem(err);
	if (made->bytes > SHEAF_STATE_BYTES_MAX) {
		image_unref(made);
		return err_set(err, SHEAF_LIMIT, "the state of %s has more than %zu bytes",
		               app ? "an app" : "a user", SHEAF_STATE_BYTES_MAX);
	}
	*out = made;
	return 0;
}
