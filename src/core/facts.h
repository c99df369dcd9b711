/* Facts of one kind, read in order into an arena: what todos, plans and histories share. */
#ifndef CORE_FACTS_H
#define CORE_FACTS_H

#include "base/map.h"
#include "core/read.h"

typedef struct facts facts;

/*
 * Takes one record: `payload` is the object named after its type. Adds with
 * facts_add() what should be listed. 0, or a negative code with f->err filled.
 */
typedef int (*facts_take_fn)(facts *f, const record *r, const sheaf_row *row,
                             const json_val *payload);

struct facts {
	arena *a; /* of the result; NULL when it was given away */
	facts_take_fn take;
	const char *name; /* of the payload */
	void **items;
	size_t count;
	size_t room;
	map ids; /* id → position in items + 1, for those that replace an earlier one */
	json_doc *doc;
	sheaf_error err;
};

int facts_begin(facts *f, const char *name, facts_take_fn take, sheaf_error *err);
void facts_end(facts *f); /* for _cleanup_ */

/* All records of a kind, own and inherited, oldest first. Others are passed over by the store. */
int facts_scan(facts *f, sheaf_session *s, const sheaf_head *head, int32_t kind, sheaf_error *err);
/* Entries of a kind on the path of a leaf, oldest first. */
int facts_path(facts *f, sheaf_session *s, const sheaf_head *head, uint64_t leaf, int32_t kind,
               sheaf_error *err);

int facts_add(facts *f, void *item);
/* A member as a string in the arena; {NULL,0} if it is none. `*ok` becomes 0 without memory. */
sheaf_str facts_str(facts *f, const json_val *payload, const char *name, int *ok);
int64_t facts_time(const record *r);

/*
 * Room of `size` bytes for the result, zeroed, and its items, both in the arena.
 * The caller fills it in and takes the arena (f->a) over. NULL: no memory, err filled.
 */
void *facts_box(facts *f, size_t size, void ***items, sheaf_error *err);

#endif
