/*
 * The library's system calls, on a leash: counted, failed on demand, watched.
 *
 *     fault_io_install();
 *     for (uint64_t n = 1;; n++) {
 *             fault_io_plan(&(fault_plan){.slot = FAULT_ANY, .at = n, .error = EIO});
 *             the_calls();
 *             if (!fault_io_hits())
 *                     break;              // every operation has failed once
 *     }
 *     fault_io_remove();
 *
 * Time stands still unless it is moved, sleeping moves it, and randomness comes
 * from a seed: two runs with the same plan do the same. For one thread.
 */
#ifndef SUPPORT_FAULT_IO_H
#define SUPPORT_FAULT_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct statx;
struct sheaf_io;

/* The slots of sheaf_io that can fail. */
#define FAULT_SLOTS(X)                                                                             \
	X(open_beneath)                                                                            \
	X(open_root)                                                                               \
	X(close)                                                                                   \
	X(pread)                                                                                   \
	X(write)                                                                                   \
	X(pwrite)                                                                                  \
	X(fdatasync)                                                                               \
	X(fsync)                                                                                   \
	X(ftruncate)                                                                               \
	X(fchmod)                                                                                  \
	X(mkdir)                                                                                   \
	X(link)                                                                                    \
	X(rename)                                                                                  \
	X(unlink)                                                                                  \
	X(statx)                                                                                   \
	X(lock)                                                                                    \
	X(getdents)                                                                                \
	X(statfs_type)                                                                             \
	X(random)

enum {
#define FAULT_SLOT_ENUM(slot) FAULT_##slot,
	FAULT_SLOTS(FAULT_SLOT_ENUM)
#undef FAULT_SLOT_ENUM
	FAULT_SLOT_COUNT,
	FAULT_ANY = FAULT_SLOT_COUNT,
	FAULT_CHANGES,   /* those that change something on the disk, syncs included */
	FAULT_TRANSFERS, /* pread, write, pwrite: those that can be short */
	FAULT_SYNCS      /* fdatasync, fsync */
};

/* In place of an errno. */
enum {
	FAULT_HALF = -1,      /* half of the bytes, at least one */
	FAULT_ONE_BYTE = -2,  /* one byte */
	FAULT_ALL_BUT_1 = -3, /* all but the last byte */
	FAULT_DEAD = -4       /* the process is as good as killed: nothing that follows happens */
};

typedef struct fault_plan {
	int slot;      /* one, or FAULT_ANY … FAULT_SYNCS */
	uint64_t at;   /* the n-th from 1; 0 = none */
	int error;     /* an errno, or one of the above */
	bool for_ever; /* and all after it */
} fault_plan;

/* Calls that are answered with 0 and not made: a library that forgot them. */
enum {
	FAULT_NO_FDATASYNC = 1,
	FAULT_NO_FSYNC_OF_FILES = 2,
	FAULT_NO_FSYNC_OF_DIRECTORIES = 4
};

/* A call that was made, and what came of it. */
typedef struct fault_op {
	int slot;
	int fd; /* or the directory */
	const char *path;
	int to_dir;
	const char *to;
	int flags;
	mode_t mode;
	const void *bytes;
	size_t len;
	off_t at;
	int64_t result;
	bool denied; /* it failed because the plan said so; nothing was done */
} fault_op;

typedef void (*fault_watch_fn)(void *ctx, const fault_op *op);
typedef void (*fault_stat_fn)(void *ctx, struct statx *out);

void fault_io_install(void); /* no plan, no watcher, the clock at its beginning */
void fault_io_remove(void);  /* the system's own calls again */

void fault_io_plan(const fault_plan *plan); /* NULL: none; counting starts anew */
void fault_io_pause(bool on);               /* calls pass uncounted, unfailed and unwatched */
void fault_io_forget(int calls);            /* FAULT_NO_… bits; 0 = none */
uint64_t fault_io_count(int slot);          /* since the plan was made */
uint64_t fault_io_hits(void);               /* how many failed on purpose */
int fault_io_hit_slot(void);                /* the slot of the first, or -1 */

void fault_io_watch(fault_watch_fn fn, void *ctx);   /* after every call that changes or opens */
void fault_io_map_stat(fault_stat_fn fn, void *ctx); /* may rewrite what statx answers */

void fault_io_clock(int64_t realtime_us); /* where the clock stands, from its beginning */
int64_t fault_io_now(void);               /* what the library is told */
void fault_io_wait(int64_t us);           /* the monotonic clock goes on by this much */
void fault_io_seed(uint64_t seed);

const struct sheaf_io *fault_io_table(void); /* for a test that wants to be watched too */

const char *fault_slot_name(int slot);
const char *fault_error_name(int error);

#endif
