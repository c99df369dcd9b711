/*
 * Power cuts: what one may leave of a scenario, and whether the library makes of it what it
 * promised.
 *
 *   replay_record.c  plays a scenario once on a real directory and notes every operation
 *   replay_disk.c    a model of the disk: what is durable, what is pending, images of both
 *   replay_judge.c   puts an image on a real directory and opens it with the library
 *
 * The model. A file has its content as of its last sync and one version for each change since;
 * after a crash it has any of the sizes of these, and each of its 512-byte sectors is that of any
 * version, zeros where that version was shorter. Mode and age are any since the last fsync. A
 * directory has its entries as of its last fsync and any prefix of the changes since, each
 * directory for itself. Inode numbers and ages are the model's own, during the recording and
 * afterwards, so that derived files fit what they describe as well as they would on a real disk.
 */
#ifndef CRASH_REPLAY_H
#define CRASH_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/play.h"

#define CUT_NAME_ROOM 120
#define CUT_STEPS 64
#define CUT_INODES_FROM 1000u
#define CUT_STORE "store"

/* ---- What happened ----------------------------------------------------------------- */

typedef enum op_kind {
	OP_WRITE,
	OP_TRUNCATE,
	OP_CHMOD,
	OP_SYNC,  /* a file's content */
	OP_FSYNC, /* and all else of it; or a directory */
	OP_MAKE,  /* a new node under a name */
	OP_LINK,
	OP_REMOVE,
	OP_MOVE,
	OP_SPOIL, /* the test itself put this content there, for good */
	OP_ACK    /* a step was acknowledged */
} op_kind;

typedef struct op {
	op_kind kind;
	int node;
	int dir, to_dir;
	char name[CUT_NAME_ROOM], to[CUT_NAME_ROOM];
	char *bytes;
	size_t len;
	uint64_t at;
	mode_t mode;
	bool is_dir;
	unsigned step;    /* how many steps are acknowledged once it is done */
	int64_t mtime_ns; /* of what it changed */
} op;

/* Files and directories, by number; 0 is the directory above the store. */
typedef struct recorded_node {
	ino_t real;
	int64_t mtime_ns;
} recorded_node;

typedef struct recording {
	const char *name;
	step steps[CUT_STEPS]; /* setup and steps; at[] is the player's number of each */
	unsigned at[CUT_STEPS];
	unsigned count;
	cast who;
	char *texts[CUT_STEPS + 1][PLAY_SESSIONS]; /* each session after so many steps */
	/* So many steps acknowledged: the oldest state a session may be in. */
	unsigned floor[CUT_STEPS + 1][PLAY_SESSIONS];
	op *ops;
	size_t op_count, op_room;
	recorded_node *nodes;
	size_t node_count, node_room;
	unsigned ops_per_tick; /* how coarse the clock of the files is */
	char dir[256];
} recording;

/* Plays the scenario; the sizes of entries vary with `round`. `forget`: FAULT_NO_… bits. */
recording *cut_record(const scenario *sc, unsigned round, int forget);
void cut_recording_free(recording *r);

/* ---- The disk ------------------------------------------------------------------------ */

typedef struct disk disk;

typedef struct image_node {
	char path[400]; /* beneath the image's directory; "" is itself */
	int node;
	bool is_dir;
	mode_t mode;
	int64_t mtime_ns;
	const char *bytes; /* the image's */
	size_t len;
	int same_as; /* a further name of this one, or -1 */
} image_node;

typedef struct image {
	image_node *nodes; /* directories before what they hold */
	size_t count, room;
	char *content; /* of all files */
	size_t content_len, content_room;
	uint64_t hash[2];
} image;

disk *cut_disk_new(void);
void cut_disk_free(disk *d);
void cut_disk_apply(disk *d, const op *o);
/* One legal state after a crash now. */
void cut_disk_image(disk *d, image *out, uint64_t *random);
void cut_image_free(image *img);

uint64_t cut_random(uint64_t *state);

/* ---- The judgement -------------------------------------------------------------------- */

/* NULL, or what is wrong: static text. `acked`: how many steps were. `dir` is empty. */
const char *cut_judge(const recording *r, unsigned acked, const image *img, const char *dir);

#endif
