/* The inside of a head, for the files that make it up: head*.c. */
#ifndef ENTRY_HEAD_INSIDE_H
#define ENTRY_HEAD_INSIDE_H

#include <stdatomic.h>

#include "entry/head.h"
#include "entry/usage.h"

/* A text that heads share. It never changes; the last to let go frees it. */
typedef struct shared {
	atomic_size_t refs;
	size_t len;
	char text[];
} shared;

shared *shared_new(sheaf_str text); /* NULL when out of memory */
shared *shared_ref(shared *s);      /* NULL is fine */
void shared_unref(shared *s);       /* NULL is fine */

static inline sheaf_str shared_view(const shared *s)
{
	return s != NULL ? (sheaf_str){s->text, s->len} : (sheaf_str){"", 0};
}

/* What the header said. Shared like a text; links and strings lie behind it in the same block. */
typedef struct origin {
	atomic_size_t refs;
	bool readonly; /* foreign, or of a newer version */
	int64_t created_us;
	uint64_t base;
	uint64_t at_seq;
	sheaf_str at;
	sheaf_str kind;
	sheaf_str parent_session;
	sheaf_str cwd;
	sheaf_str source; /* plain, for lists; ptr NULL: no fork */
	size_t link_count;
	header_link links[];
} origin;

/* Copies everything `like` points to, and `count` links. NULL when out of memory. */
origin *origin_new(const origin *like, const header_link *links, size_t count);
void origin_unref(origin *o);

typedef struct slot {
	shared *name; /* NULL: main */
	uint64_t leaf_seq;
	size_t leaf_len;
	char leaf[SHEAF_ID_ROOM]; /* in place: it changes with every append */
} slot;

/* Numbers only: copied as they are. */
typedef struct counts {
	int64_t modified_us;
	uint64_t revision;
	uint64_t records;
	uint64_t messages;
	uint64_t turns;
	uint64_t last_label;
	uint64_t last_lost; /* the newest `lost` record, where an entry's parent may have been */
	sheaf_usage usage;
	turns usage_turns;
	int64_t ttl_us; /* 0: does not expire */
	int64_t grace_us;
	bool pinned;
	uint64_t state_seq; /* the newest own record that changed the state */
	uint64_t app_seq;   /* the newest own record with app: keys */
} counts;

struct sheaf_head {
	bool begun; /* it has its header */
	bool hidden;
	origin *origin;
	shared *name;
	shared *metadata;
	shared *preview;
	state_set *state; /* NULL: empty */
	counts n;
	slot main;
	slot *more; /* the other branches, in the order they were made */
	size_t more_count;
	size_t more_room;
	char id[SHEAF_ID_ROOM]; /* fold: a row's id that had to be unescaped */
};

/* Back to a new head; keeps the memory for branches. */
void head_clear(sheaf_head *h);

/* The branch of that name, made if it is new. SHEAF_LIMIT, SHEAF_NOMEM. */
int head_slot(sheaf_head *h, sheaf_str name, slot **out, sheaf_error *err);
slot *head_slot_find(sheaf_head *h, sheaf_str name); /* NULL if there is none */
void head_slot_remove(sheaf_head *h, slot *s);       /* not main */
void head_slot_set(slot *s, sheaf_str leaf, uint64_t seq);

#endif
