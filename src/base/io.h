/*
 * Files, through the seam of sheaf/sys/seams.h. Nothing else in src/ makes a
 * system call on a file.
 *
 * The thin calls return -1 and set errno as their namesakes do; EINTR is
 * retried here where that is right (never for close).
 */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "sheaf/sys/seams.h"

int io_open(int dir, const char *path, int flags, mode_t mode); /* beneath dir, no symlinks */
int io_open_root(const char *path, int flags, mode_t mode);
int io_close(int fd);
void io_closep(int *fd);                                   /* for _cleanup_; -1 is fine */
ssize_t io_pread(int fd, void *buf, size_t len, off_t at); /* one call */
ssize_t io_write(int fd, const void *buf, size_t len);     /* one call, may be short */
int io_fdatasync(int fd);
int io_fsync(int fd);
int io_ftruncate(int fd, off_t len);
int io_fchmod(int fd, mode_t mode);
int io_mkdir(int dir, const char *path, mode_t mode);
int io_link(int from_dir, const char *from, int to_dir, const char *to);
int io_rename(int from_dir, const char *from, int to_dir, const char *to);
int io_unlink(int dir, const char *path);
int io_rmdir(int dir, const char *path);
int io_lock_try(int fd, short type); /* F_OFD_SETLK; -1 with EAGAIN when held by another */
int io_statfs_type(int fd, int64_t *type);
int io_random(void *buf, size_t len);

/* Changes of a file: what is opened here takes watches on descriptors and waits for any of them.
 * Waiting answers 1 (something happened), 0 (nothing in that time) or -1. */
int io_notify_open(void);
int io_notify_add(int notify, int fd);
int io_notify_remove(int notify, int watch);
int io_notify_wait(int notify, int64_t us);

/* Waits until a descriptor is ready for `events` (POLLIN, POLLOUT): what it is ready for, 0 when the
 * time is over or a signal came. Sockets belong to client libraries; this only waits for them. */
int io_poll(int fd, short events, int64_t wait_us);

typedef struct io_stat {
	uint64_t size;
	uint64_t inode;
	uint64_t links;
	uint32_t mode;
	int64_t mtime_ns;
} io_stat;

/*
 * Size, links and mode only: asking for times makes the next write dearer, so
 * the append path uses this one.
 */
int io_stat_fd_lean(int fd, io_stat *out);
int io_stat_fd(int fd, io_stat *out);
int io_stat_at(int dir, const char *path, io_stat *out); /* does not follow links */

/* Loops until all `len` bytes are there or the file ends; returns how many, or -1. */
ssize_t io_pread_full(int fd, void *buf, size_t len, off_t at);

/* Loops until everything is written; 0 or -1. For files nobody else sees yet. */
int io_write_full(int fd, const void *buf, size_t len);
int io_pwrite_full(int fd, const void *buf, size_t len, off_t at);

/* The names in a directory, "." and ".." left out. fn returns 0 to go on, else it ends the walk
 * and is returned. -1 with errno if reading fails. `dir` is not moved or closed. */
int io_each_name(int dir, int (*fn)(void *ctx, const char *name, unsigned char d_type), void *ctx);

#endif
