/* Keeps what a case made until its end, so that cases need not free anything. */
#include "trash.h"

#include <stdlib.h>

void trash_add(suite *t, int kind, const void *thing)
{
	if (!thing)
		return;
	if (t->trash_count == t->trash_room) {
		size_t room = t->trash_room ? t->trash_room * 2 : 64;
		trash *more = realloc(t->trash, room * sizeof(*more));
		if (!more)
			abort();
		t->trash = more;
		t->trash_room = room;
	}
	t->trash[t->trash_count++] = (trash){kind, thing};
}

void trash_forget(suite *t, const void *thing)
{
	for (size_t i = t->trash_count; i-- > 0;)
		if (t->trash[i].thing == thing) {
			t->trash[i].kind = TRASH_NONE;
			t->trash[i].thing = NULL;
			return;
		}
}

static void empty(trash *x)
{
	/* The things were handed out as const; here they end, which is what the casts say. */
	void *thing = (void *)(uintptr_t)x->thing;
	switch (x->kind) {
	case TRASH_MEMORY:
		free(thing);
		break;
	case TRASH_SESSION:
		sheaf_session_close(thing);
		break;
	case TRASH_RECORDS:
		sheaf_records_free(thing);
		break;
	case TRASH_HEAD:
		sheaf_head_view_free(thing);
		break;
	case TRASH_TREE:
		sheaf_tree_free(thing);
		break;
	case TRASH_LIST:
		sheaf_list_free(thing);
		break;
	case TRASH_CONTEXT:
		sheaf_context_free(thing);
		break;
	case TRASH_BATCH:
		sheaf_batch_free(thing);
		break;
	default:
		break;
	}
	x->kind = TRASH_NONE;
	x->thing = NULL;
}

void trash_sessions(suite *t)
{
	for (size_t i = t->trash_count; i-- > 0;)
		if (t->trash[i].kind == TRASH_SESSION)
			empty(&t->trash[i]);
}

void trash_all(suite *t)
{
	trash_sessions(t);
	for (size_t i = t->trash_count; i-- > 0;)
		empty(&t->trash[i]);
	free(t->trash);
	t->trash = NULL;
	t->trash_count = 0;
	t->trash_room = 0;
}
