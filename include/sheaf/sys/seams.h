/*
 * Seams for tests and embedders: allocation, files, clock, randomness.
 *
 * The library reaches the outside only through the two tables here. Set them
 * once, before anything else is called; they are process-wide and not locked.
 * This header may change in a minor release.
 */
#ifndef SHEAF_SYS_SEAMS_H
#define SHEAF_SYS_SEAMS_H

#include <sys/types.h>

#include "../common.h"

struct iovec;
struct statx;

SHEAF_BEGIN

typedef struct sheaf_allocator {
	size_t size; /* sizeof(sheaf_allocator) */
	void *(*alloc)(void *ctx, size_t bytes);
	void *(*resize)(void *ctx, void *ptr, size_t bytes); /* ptr may be NULL */
	void (*release)(void *ctx, void *ptr);               /* ptr may be NULL */
	void *ctx;
} sheaf_allocator;

/** Replaces malloc, realloc and free for everything in the library; NULL restores them. */
SHEAF_API void sheaf_set_allocator(const sheaf_allocator *allocator);

#define SHEAF_BOOT_ID_ROOM 37 /* a UUID and a NUL */

/*
 * Every system call the library makes. Each has its namesake's meaning,
 * arguments and result (-1 and errno), with `ctx` in front. A table that
 * leaves a slot NULL gets the system's own for it, so a test replaces one call
 * at a time.
 */
typedef struct sheaf_io {
	size_t size; /* sizeof(sheaf_io) */
	void *ctx;
	/* openat2 with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | O_CLOEXEC */
	int (*open_beneath)(void *ctx, int dir, const char *path, int flags, mode_t mode);
	/* plain open with O_CLOEXEC, for the root of a store only */
	int (*open_root)(void *ctx, const char *path, int flags, mode_t mode);
	int (*close)(void *ctx, int fd);
	ssize_t (*pread)(void *ctx, int fd, void *buf, size_t len, off_t at);
	ssize_t (*write)(void *ctx, int fd, const void *buf, size_t len);
	ssize_t (*pwrite)(void *ctx, int fd, const void *buf, size_t len, off_t at);
	int (*fdatasync)(void *ctx, int fd);
	int (*fsync)(void *ctx, int fd);
	int (*ftruncate)(void *ctx, int fd, off_t len);
	int (*fchmod)(void *ctx, int fd, mode_t mode);
	int (*mkdir)(void *ctx, int dir, const char *path, mode_t mode);
	int (*link)(void *ctx, int from_dir, const char *from, int to_dir, const char *to);
	int (*rename)(void *ctx, int from_dir, const char *from, int to_dir, const char *to);
	int (*unlink)(void *ctx, int dir, const char *path, int flags);
	int (*statx)(void *ctx, int dir, const char *path, int flags, unsigned mask,
	             struct statx *out);
	/* F_OFD_SETLK; type is F_RDLCK, F_WRLCK or F_UNLCK over the whole file */
	int (*lock)(void *ctx, int fd, short type);
	/* getdents64 on a directory descriptor, from where the last call ended */
	ssize_t (*getdents)(void *ctx, int fd, void *buf, size_t len);
	int (*statfs_type)(void *ctx, int fd, int64_t *out_type);
	int (*random)(void *ctx, void *buf, size_t len);
	int64_t (*realtime_us)(void *ctx);  /* since 1970 */
	int64_t (*monotonic_us)(void *ctx); /* never goes back */
	void (*sleep_us)(void *ctx, int64_t us);
	/* inotify_init1, not blocking */
	int (*notify_open)(void *ctx);
	/* inotify_add_watch on the file behind a descriptor: written to, cut, unlinked, replaced */
	int (*notify_add)(void *ctx, int notify, int fd);
	int (*notify_remove)(void *ctx, int notify, int watch);
	/* poll, then all events are read away: 1 if there was any, 0 if none came in time */
	int (*notify_wait)(void *ctx, int notify, int64_t us);
	int64_t (*boottime_us)(void *ctx); /* never goes back, also while the machine sleeps */
	int (*boot_id)(void *ctx, char out[SHEAF_BOOT_ID_ROOM]); /* another one after a reboot */
} sheaf_io;

/** Replaces the system calls; NULL restores them. The table is copied, its ctx must outlive it. */
SHEAF_API void sheaf_set_io(const sheaf_io *io);

/** The system's own table, for a test that wraps it. Every slot is set. */
SHEAF_API const sheaf_io *sheaf_system_io(void);

SHEAF_END
#endif
