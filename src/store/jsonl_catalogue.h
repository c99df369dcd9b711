/* The inside of the catalogue, for the two files that read it: lists and the search for readers. */
#ifndef STORE_JSONL_CATALOGUE_H
#define STORE_JSONL_CATALOGUE_H

#include "store/jsonl.h"

enum {
	ROW_DEAD = 0,
	ROW_PUT = 1,
	ROW_DROP = 2,
	ROW_DIRECTORY = 3
};

typedef struct jcatalogue_head {
	uint64_t magic;
	uint64_t count;
	uint64_t offsets_at;
	uint64_t tail_at;
	int64_t directory_ns; /* the snapshot knows all files as of this mtime */
	uint32_t spare;
	uint32_t crc;
} jcatalogue_head;

typedef struct jrow_head {
	uint32_t length; /* of the whole row */
	uint32_t crc;    /* over what follows this field */
	uint8_t op;
	uint8_t links; /* it is a fork */
	uint16_t name_length;
	uint32_t head_length;
	int64_t modified_us;
	uint64_t size; /* of the log's file, as are the next two */
	uint64_t inode;
	int64_t mtime_ns;
	int64_t before_ns; /* 0: no change of the directory */
	int64_t after_ns;
} jrow_head;

_Static_assert(sizeof(jcatalogue_head) == 48 && sizeof(jrow_head) == 64, "fixed shapes on disk");

/* A row in memory; name and head follow it in the same block. */
typedef struct jrow {
	jrow_head h;
	sheaf_str name;
	const char *head;
} jrow;

struct jcatalogue {
	pthread_mutex_t mutex;
	int fd;
	uint64_t inode;
	jcatalogue_head file;
	uint64_t read_to;
	int64_t known_ns;  /* the directory's mtime up to which we know all; 0 = we do not */
	bool broken;       /* a row of the snapshot could not be read */
	int64_t memory_ns; /* it is in memory only: the directory's mtime then; 0 = it is not */
	jrow **tail;       /* the tail's rows; those replaced since are dead */
	size_t tail_count, tail_room;
	bool tail_sorted;
	map names; /* name → its row in tail */
	char newest[SHEAF_KEY_PART_ROOM];
	int64_t looked_us; /* when the file was last looked at for `newest` */
	/* between begin and end */
	bool locked;
	int64_t before_ns;
	buf pending;
};

/* Rows. */
void jrow_put(buf *out, const char *session, const io_stat *file, const sheaf_head *head);
void jrow_seal(char *row, int64_t before_ns, int64_t after_ns);
bool jrow_fits(const jrow_head *h, const io_stat *file);
jrow *jrow_read(const char *bytes, size_t have);
void jrows_free(jrow **rows, size_t count);

/* All of these with the mutex held. */
int jcatalogue_load(jcatalogue *c, jowner *o,
                    sheaf_error *err); /* complete, as far as it can tell */
/* Whether it was loaded into memory, for it cannot be written, and the directory is as it was: good
 * enough to go on with a list that began by loading it. */
bool jcatalogue_in_memory(const jcatalogue *c, jowner *o);
int jcatalogue_reconcile(jcatalogue *c, jowner *o, sheaf_error *err); /* from the directory */
int jcatalogue_add(jcatalogue *c, jrow *row);                         /* in memory; takes the row */
bool jcatalogue_lock(jcatalogue *c, jowner *o); /* the file lock; false: do without */
void jcatalogue_flush(jcatalogue *c, jowner *o, int64_t before_ns, int64_t after_ns);
int jcatalogue_rows(jcatalogue *c, jrow ***out, size_t *out_count); /* copies of all, in order */

/* Rows in the order of lists. */
typedef struct jcursor {
	jcatalogue *c;
	size_t tail_at;
	uint64_t snapshot_at;
	jrow *ahead; /* the snapshot's next, read already */
} jcursor;

void jcursor_begin(jcursor *k, jcatalogue *c, const jrow *after);
int jcursor_next(jcursor *k, const jrow **out, jrow **own); /* 1; `own` is the caller's to free */
void jcursor_done(jcursor *k);

/* A session as a list shows it. */
typedef struct jlisted {
	char session[SHEAF_KEY_PART_ROOM];
	sheaf_head *head;
	int64_t modified_us;
	int64_t stored_us;
	int damaged; /* cannot be read */
	int denied;  /* because it may not be */
	int readonly;
	bool fits; /* the head and what follows belong together */
	io_stat file;
} jlisted;

/* Reads a head from the log itself. 1: there is no such session; 0 also when it is damaged. */
int jlisted_read(jowner *o, jlisted *l, sheaf_error *err);

#endif
