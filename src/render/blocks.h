/* What the two files that make blocks share: the list as it grows, and the calls in it. */
#ifndef RENDER_BLOCKS_H
#define RENDER_BLOCKS_H

#include "base/map.h"
#include "render/render.h"

/* The calls with one id. Those without an answer form a list, the first one first. */
typedef struct call_name {
	uint64_t times;
	size_t open;
	size_t last;
} call_name;

typedef struct call_at {
	size_t block;
	size_t name; /* in names */
	size_t next; /* the next one of its name, NONE at the end */
} call_at;

typedef struct maker {
	rendering *r;
	const sheaf_item *item; /* the one being made into messages */
	block *blocks;
	size_t block_count, block_room;
	message *messages; /* their blocks are counted, and found at the end */
	size_t message_count, message_room;
	size_t begun; /* where the blocks of the last message begin */
	block *moved; /* images of results, to be sent behind them */
	size_t moved_count, moved_room;
	call_at *calls;
	size_t call_count, call_room;
	size_t awaited; /* the call that is most likely answered next */
	call_name *names;
	size_t name_count, name_room;
	map by_id; /* id as it is recorded -> index in names */
	map made;  /* ids that were made up here */
} maker;

/* A new block at the end of the last message; NULL when out of memory. */
block *block_new(maker *k, int32_t kind, const sheaf_part *part);

/* Gives a call its id, name and input, and adds it. */
int call_add(maker *k, const sheaf_part *part, bool own, sheaf_str ext);

/* Gives a result the id and name of the call it answers; false if there is none. */
bool call_answer(maker *k, block *result, sheaf_str id);

#endif
