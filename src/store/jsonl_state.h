/*
 * User and app state of the jsonl store: .state.jsonl in the directory of the
 * owner, and in that of the app.
 *
 *   jsonl_state.c       the operations, and what an append has to do with them
 *   jsonl_state_file.c  following the file, its lines, writing it anew, check and repair
 *
 * The file is primary data and a log of its own: a line for every change, each
 * with a crc. It is empty when it is made. Everything happens under its lock.
 *
 * An append that sets user state takes this lock, then the session's; writes the
 * line, which names the session and the last record of the append; then the
 * record. A line counts only if its record is there. That can only be in doubt
 * for the last line, because whoever writes the next one has looked: a line
 * without its record is cut off. Removing a session, which would take the record
 * away, first puts a line behind it that says it counts.
 *
 * Lines:
 *   {"type":"user_state","session":S,"id":ID,"values":{KEY:VALUE|null,…},"crc":…}
 *   {"type":"user_state","values":{…},"crc":…}       written anew: it counts
 *   {"type":"settled","crc":…}                       the line before counts
 *   {"type":"app_state","values":{KEY:{"time_us":N,"id":ID[,"value":VALUE]},…},"crc":…}
 */
#ifndef STORE_JSONL_STATE_H
#define STORE_JSONL_STATE_H

#include "store/jsonl.h"
#include "store/state_image.h"

#define JSONL_STATE_FILE ".state.jsonl"

struct jstate {
	jowner *owner; /* whose directory it lies in */
	bool app;
	pthread_mutex_t mutex; /* guards all that follows */
	int fd;                /* -1 until it is needed */
	uint64_t inode;
	uint64_t poisoned; /* the inode whose sync failed, for when sealing it fails too */
	uint64_t size;     /* bytes of the file that the image knows, all of which count */
	uint64_t synced;   /* of these, known to be on the disk */
	state_image *image;
	char last_session[SHEAF_KEY_PART_ROOM]; /* of the last of them; "": it names none */
	/* A line that waits for its record. */
	state_image *next;
	uint64_t next_size; /* 0: there is none */
	buf out;
};

jstate *jstate_new(jowner *o, bool app); /* NULL when out of memory */

/* jsonl_state_file.c: the mutex is held */
void jstate_unload(jstate *s);
/* Takes the lock and catches up. With `write` the file is made if it is not there; without it
 * 1 says so. */
int jstate_enter(jstate *s, bool write, int64_t deadline_us, sheaf_error *err);
void jstate_leave(jstate *s);
int jstate_sync(jstate *s);
/* Adds s->out to the file. What fails has not happened. */
int jstate_add(jstate *s, bool durable, sheaf_error *err);
int jstate_write_anew(jstate *s, sheaf_error *err);

/* The lines; `session` NULL: it counts by itself. */
void jstate_write_user(buf *out, const char *session, sheaf_str id, const sheaf_state_item *items,
                       size_t count);
void jstate_write_settled(buf *out);
/* As many lines as it takes: one is bounded like a record. */
void jstate_write_app(buf *out, const sheaf_state_item *items, size_t count);

#endif
