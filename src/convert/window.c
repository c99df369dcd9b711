/* Two maps: when the young one is full it becomes the old one, and that is forgotten. */
#include "convert/window.h"

#include <string.h>

/* A value longer than this counts as several. */
#define VALUE_BYTES 256

static void part_free(window_part *p)
{
	map_free(&p->map);
	arena_free(p->arena);
	*p = (window_part){MAP_INIT, NULL};
}

void window_free(window *w)
{
	part_free(&w->young);
	part_free(&w->old);
}

int window_set(window *w, sheaf_str key, sheaf_str text)
{
	if (w->young.map.count >= WINDOW_COUNT ||
	    (w->young.arena != NULL &&
	     arena_bytes(w->young.arena) >= (size_t)WINDOW_COUNT * VALUE_BYTES)) {
		part_free(&w->old);
		w->old = w->young;
		w->young = (window_part){MAP_INIT, NULL};
	}
	if (w->young.arena == NULL)
		w->young.arena = arena_new();
	if (w->young.arena == NULL)
		return SHEAF_NOMEM;
	/* Length, bytes, NUL; then the key. */
	size_t room = sizeof(size_t) + text.len + 1;
	char *kept = arena_alloc(w->young.arena, room + key.len + 1);
	if (kept == NULL)
		return SHEAF_NOMEM;
	memcpy(kept, &text.len, sizeof(size_t));
	if (text.len != 0)
		memcpy(kept + sizeof(size_t), text.ptr, text.len);
	kept[room - 1] = '\0';
	if (key.len != 0)
		memcpy(kept + room, key.ptr, key.len);
	return map_set_ptr(&w->young.map, (sheaf_str){kept + room, key.len}, kept);
}

sheaf_str window_get(const window *w, sheaf_str key)
{
	const char *kept = map_get_ptr(&w->young.map, key);
	sheaf_str text;
	if (kept == NULL)
		kept = map_get_ptr(&w->old.map, key);
	if (kept == NULL)
		return (sheaf_str){NULL, 0};
	memcpy(&text.len, kept, sizeof(size_t));
	text.ptr = kept + sizeof(size_t);
	return text;
}
