/*
 * Queues of the jsonl store: .queue/SESSION.jsonl beside the logs.
 *
 *   jsonl_queue.c        the operations
 *   jsonl_queue_file.c   following the file, writing it anew, removing, check and repair
 *   jsonl_queue_lines.c  its lines
 *
 * The file is primary data and a log of its own: a first line that binds it to
 * its session, then a line for every put, claim, ack and cancel, each with a
 * crc. It has its own lock, so work on a queue waits for no append. Everything
 * happens under that lock, reading too: whoever has it finds only whole lines,
 * or what a crash left.
 *
 *   - A process keeps the image of the file up to an offset and reads only what
 *     was added since, so no call costs more the longer the queue has lived.
 *   - When what is done outweighs what waits, the file is written anew and
 *     renamed into place; others find their inode without a name.
 *   - It is made under the lock of the session's log, and goes after the log.
 *     What a crash leaves in between belongs to no session: the first line
 *     names the birth of the one it was made for.
 *   - Leases are boot time and name the boot, so a reboot ends them all.
 *
 * A write that fails leaves what a failed append leaves: see jsonl_append.c.
 *
 * Locks: a queue's mutex and then its OFD lock come after those of the log, and
 * before those of the catalogue.
 */
#ifndef STORE_JSONL_QUEUE_H
#define STORE_JSONL_QUEUE_H

#include "base/clock.h"
#include "store/jsonl.h"
#include "store/queue.h"

#define JSONL_QUEUE_DIR ".queue"

struct jqueue {
	jowner *owner;
	const char *session;
	pthread_mutex_t mutex; /* guards all that follows */
	int fd;                /* -1 until it is needed */
	uint64_t inode;
	uint64_t poisoned;  /* the inode whose sync failed, for when sealing it fails too */
	bool bound;         /* the first line was read */
	int64_t created_us; /* of the session it belongs to */
	queue items;
	uint64_t size;   /* bytes of the file that the image knows */
	uint64_t synced; /* of these, known to be on the disk */
	uint64_t live;   /* of these, still needed */
	char boot[SHEAF_BOOT_ID_ROOM];
	buf out;
	json_doc *doc;
};

/* The session's names must outlive it. */
jqueue *jqueue_new(jowner *o, const char *session);
/* Forgets image and file, and with it the lock; the next use begins anew. */
void jqueue_unload(jqueue *q);

/* jsonl_queue_lines.c: each adds a line to `out` */
void jqueue_write_header(buf *out, const char *session, int64_t created_us);
/* `item`: what it has besides in a file that is written anew; NULL for a new one. */
void jqueue_write_put(buf *out, const sheaf_queue_row *row, const queue_item *item,
                      const char *boot);
void jqueue_write_claim(buf *out, const sheaf_claim *claim, int64_t until_us, const char *boot,
                        queue_item *const *items, size_t count);
void jqueue_write_done(buf *out, const char *type, const char *name, sheaf_str value);
/* One verified line into the image. SHEAF_DAMAGED, SHEAF_FORMAT (it is newer), SHEAF_NOMEM */
int jqueue_apply(jqueue *q, sheaf_str text);
void jqueue_take_out(jqueue *q, queue_item *item);

/* jsonl_queue_file.c: the mutex is held */
/* Takes the lock and catches up. 1: there is no file. */
int jqueue_enter(jqueue *q, bool write, int64_t deadline_us, sheaf_error *err);
void jqueue_leave(jqueue *q);
/* Writes what waits, or nothing with `items` NULL, to a new file in the place of the old. */
int jqueue_write_anew(jqueue *q, int64_t created_us, const queue *items, sheaf_error *err);
/* Syncs the file. If that fails it is sealed, as a log is. 0 or -1, errno. */
int jqueue_sync(jqueue *q);

#endif
