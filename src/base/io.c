/* Every system call on files, time and randomness, behind the table tests may replace. */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h> /* renameat */
#include <string.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "mem.h"

/* The system's own calls. */

/*
 * Where openat2 is not to be had (a kernel before 5.6, a sandbox that does not
 * know it): name by name, following no link and never upwards.
 */
static int open_by_steps(int dir, const char *path, int flags, mode_t mode)
{
	char name[NAME_MAX + 1];
	int at = dir, fd;

	for (;;) {
		size_t len = strcspn(path, "/");
		if (len == 0 || len > NAME_MAX || (len == 2 && memcmp(path, "..", 2) == 0)) {
			errno = len > NAME_MAX           ? ENAMETOOLONG
			        : len == 0 && *path == 0 ? ENOENT
			                                 : EXDEV;
			fd = -1;
			break;
		}
		memcpy(name, path, len);
		name[len] = 0;
		bool last = path[len] == 0;
		fd = openat(at, name,
		            (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC, mode);
		struct stat found;
		if (fd < 0 && errno == ENOTDIR && !last) {
			/* A link on the way is ELOOP, as openat2 says it. */
			bool link = fstatat(at, name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
			            S_ISLNK(found.st_mode);
			errno = link ? ELOOP : ENOTDIR;
		}
		if (fd < 0 || last)
			break;
		if (at != dir)
			(void)close(at);
		at = fd;
		path += len + 1;
	}
	int why = errno;
	if (at != dir)
		(void)close(at);
	errno = why;
	return fd;
}

static int sys_open_beneath(UNUSED void *ctx, int dir, const char *path, int flags, mode_t mode)
{
	/* openat2 refuses a mode where no file can be made. */
	bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.mode = makes ? mode & 07777u : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd < 0 && errno == ENOSYS ? open_by_steps(dir, path, flags, mode) : fd;
}

static int sys_open_root(UNUSED void *ctx, const char *path, int flags, mode_t mode)
{
	return open(path, flags | O_CLOEXEC, mode);
}

static int sys_close(UNUSED void *ctx, int fd)
{
	return close(fd);
}

static ssize_t sys_pread(UNUSED void *ctx, int fd, void *buf, size_t len, off_t at)
{
	return pread(fd, buf, len, at);
}

static ssize_t sys_write(UNUSED void *ctx, int fd, const void *buf, size_t len)
{
	return write(fd, buf, len);
}

static ssize_t sys_pwrite(UNUSED void *ctx, int fd, const void *buf, size_t len, off_t at)
{
	return pwrite(fd, buf, len, at);
}

static int sys_fdatasync(UNUSED void *ctx, int fd)
{
	return fdatasync(fd);
}

static int sys_fsync(UNUSED void *ctx, int fd)
{
	return fsync(fd);
}

static int sys_ftruncate(UNUSED void *ctx, int fd, off_t len)
{
	return ftruncate(fd, len);
}

static int sys_fchmod(UNUSED void *ctx, int fd, mode_t mode)
{
	return fchmod(fd, mode);
}

static int sys_mkdir(UNUSED void *ctx, int dir, const char *path, mode_t mode)
{
	return mkdirat(dir, path, mode);
}

static int sys_link(UNUSED void *ctx, int from_dir, const char *from, int to_dir, const char *to)
{
	return linkat(from_dir, from, to_dir, to, 0);
}

static int sys_rename(UNUSED void *ctx, int from_dir, const char *from, int to_dir, const char *to)
{
	return renameat(from_dir, from, to_dir, to);
}

static int sys_unlink(UNUSED void *ctx, int dir, const char *path, int flags)
{
	return unlinkat(dir, path, flags);
}

static int sys_statx(UNUSED void *ctx, int dir, const char *path, int flags, unsigned mask,
                     struct statx *out)
{
	return statx(dir, path, flags, mask, out);
}

static int sys_lock(UNUSED void *ctx, int fd, short type)
{
	struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
	return fcntl(fd, F_OFD_SETLK, &whole);
}

static ssize_t sys_getdents(UNUSED void *ctx, int fd, void *buf, size_t len)
{
	return (ssize_t)syscall(SYS_getdents64, fd, buf, len);
}

static int sys_statfs_type(UNUSED void *ctx, int fd, int64_t *out_type)
{
	struct statfs info;
	if (fstatfs(fd, &info) != 0)
		return -1;
	*out_type = (int64_t)info.f_type;
	return 0;
}

static int sys_random(UNUSED void *ctx, void *buf, size_t len)
{
	char *p = buf;
	while (len != 0) {
		ssize_t n = getrandom(p, len, 0);
		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int64_t read_clock_us(clockid_t id)
{
	struct timespec now = {0, 0};
	(void)clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t sys_realtime_us(UNUSED void *ctx)
{
	return read_clock_us(CLOCK_REALTIME);
}

static int64_t sys_monotonic_us(UNUSED void *ctx)
{
	return read_clock_us(CLOCK_MONOTONIC);
}

static void sys_sleep_us(UNUSED void *ctx, int64_t us)
{
	if (us <= 0)
		return;
	struct timespec left = {.tv_sec = (time_t)(us / 1000000),
	                        .tv_nsec = (long)(us % 1000000) * 1000};
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		continue;
}

static int sys_notify_open(UNUSED void *ctx)
{
	return inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

/* inotify knows paths only, and this one leads to the file however it is named by now. */
static int sys_notify_add(UNUSED void *ctx, int notify, int fd)
{
	char path[sizeof("/proc/self/fd/") + 11];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* Unlinking changes the count of links, which is an attribute. */
	return inotify_add_watch(notify, path, IN_MODIFY | IN_ATTRIB);
}

static int sys_notify_remove(UNUSED void *ctx, int notify, int watch)
{
	return inotify_rm_watch(notify, watch);
}

static int sys_notify_wait(UNUSED void *ctx, int notify, int64_t us)
{
	char events[4096];
	struct pollfd p = {.fd = notify, .events = POLLIN};
	struct timespec left = {.tv_sec = (time_t)(us / 1000000),
	                        .tv_nsec = (long)(us % 1000000) * 1000};
	int rc = ppoll(&p, 1, &left, NULL);
	if (rc <= 0)
		return rc;
	while (read(notify, events, sizeof(events)) > 0)
		continue;
	return 1;
}

static int64_t sys_boottime_us(UNUSED void *ctx)
{
	return read_clock_us(CLOCK_BOOTTIME);
}

static int sys_boot_id(UNUSED void *ctx, char out[SHEAF_BOOT_ID_ROOM])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t got = read(fd, out, SHEAF_BOOT_ID_ROOM - 1);
	int why = got < 0 ? errno : EIO;
	(void)close(fd);
	if (got != SHEAF_BOOT_ID_ROOM - 1) {
		errno = why;
		return -1;
	}
	out[got] = 0;
	return 0;
}

/* The table in use. */

/* clang-format off */
#define SLOTS(X) \
	X(open_beneath) X(open_root) X(close) X(pread) X(write) X(pwrite) X(fdatasync) X(fsync) \
	X(ftruncate) X(fchmod) X(mkdir) X(link) X(rename) X(unlink) X(statx) X(lock) X(getdents) \
	X(statfs_type) X(random) X(realtime_us) X(monotonic_us) X(sleep_us) \
	X(notify_open) X(notify_add) X(notify_remove) X(notify_wait) X(boottime_us) X(boot_id)
/* clang-format on */

#define SLOT_SYSTEM(slot) .slot = sys_##slot,
static const sheaf_io system_io = {.size = sizeof(sheaf_io), .ctx = NULL, SLOTS(SLOT_SYSTEM)};
static sheaf_io io = {.size = sizeof(sheaf_io), .ctx = NULL, SLOTS(SLOT_SYSTEM)};

/* The system's functions ignore ctx, so they can stand beside the caller's. */
void sheaf_set_io(const sheaf_io *table)
{
	sheaf_io merged;
	memset(&merged, 0, sizeof(merged));
	if (table != NULL)
		memcpy(&merged, table, table->size < sizeof(merged) ? table->size : sizeof(merged));
	merged.size = sizeof(merged);
#define SLOT_MERGE(slot)                                                                           \
	if (merged.slot == NULL)                                                                   \
		merged.slot = system_io.slot;
	SLOTS(SLOT_MERGE)
	io = merged;
}

const sheaf_io *sheaf_system_io(void)
{
	return &system_io;
}

int64_t clock_now_us(void)
{
	return io.realtime_us(io.ctx);
}

int64_t clock_monotonic_us(void)
{
	return io.monotonic_us(io.ctx);
}

int64_t clock_boottime_us(void)
{
	return io.boottime_us(io.ctx);
}

int clock_boot_id(char out[SHEAF_BOOT_ID_ROOM])
{
	return io.boot_id(io.ctx, out);
}

void clock_sleep_us(int64_t us)
{
	io.sleep_us(io.ctx, us);
}

int clock_wait_init(pthread_cond_t *wake)
{
	pthread_condattr_t how;
	if (pthread_condattr_init(&how) != 0)
		return -1;
	(void)pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
	int rc = pthread_cond_init(wake, &how);
	(void)pthread_condattr_destroy(&how);
	return rc == 0 ? 0 : -1;
}

void clock_wait_us(pthread_cond_t *wake, pthread_mutex_t *held, int64_t us)
{
	struct timespec until = {0, 0};
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(us / 1000000);
	until.tv_nsec += (long)(us % 1000000) * 1000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	(void)pthread_cond_timedwait(wake, held, &until);
}

/* Thin calls. */

/* A signal storm must not hang a caller for ever: after so many tries EINTR is the answer. */
#define EINTR_TRIES 100

#define RETRY_EINTR(type, call)                                                                    \
	do {                                                                                       \
		type rc_;                                                                          \
		int tries_ = 0;                                                                    \
		do                                                                                 \
			rc_ = (call);                                                              \
		while (rc_ == -1 && errno == EINTR && ++tries_ < EINTR_TRIES);                     \
		return rc_;                                                                        \
	} while (0)

int io_open(int dir, const char *path, int flags, mode_t mode)
{
	RETRY_EINTR(int, io.open_beneath(io.ctx, dir, path, flags, mode));
}

int io_open_root(const char *path, int flags, mode_t mode)
{
	RETRY_EINTR(int, io.open_root(io.ctx, path, flags, mode));
}

/* Not retried: on Linux the descriptor is gone even if close() says EINTR. */
int io_close(int fd)
{
	return io.close(io.ctx, fd);
}

/* Keeps errno: it runs on the way out of a function that has just failed. */
void io_closep(int *fd)
{
	int saved = errno;
	if (*fd >= 0)
		(void)io_close(*fd);
	*fd = -1;
	errno = saved;
}

ssize_t io_pread(int fd, void *buf, size_t len, off_t at)
{
	RETRY_EINTR(ssize_t, io.pread(io.ctx, fd, buf, len, at));
}

ssize_t io_write(int fd, const void *buf, size_t len)
{
	RETRY_EINTR(ssize_t, io.write(io.ctx, fd, buf, len));
}

int io_fdatasync(int fd)
{
	RETRY_EINTR(int, io.fdatasync(io.ctx, fd));
}

int io_fsync(int fd)
{
	RETRY_EINTR(int, io.fsync(io.ctx, fd));
}

int io_ftruncate(int fd, off_t len)
{
	RETRY_EINTR(int, io.ftruncate(io.ctx, fd, len));
}

int io_fchmod(int fd, mode_t mode)
{
	RETRY_EINTR(int, io.fchmod(io.ctx, fd, mode));
}

int io_mkdir(int dir, const char *path, mode_t mode)
{
	return io.mkdir(io.ctx, dir, path, mode);
}

int io_link(int from_dir, const char *from, int to_dir, const char *to)
{
	return io.link(io.ctx, from_dir, from, to_dir, to);
}

int io_rename(int from_dir, const char *from, int to_dir, const char *to)
{
	return io.rename(io.ctx, from_dir, from, to_dir, to);
}

int io_unlink(int dir, const char *path)
{
	return io.unlink(io.ctx, dir, path, 0);
}

int io_rmdir(int dir, const char *path)
{
	return io.unlink(io.ctx, dir, path, AT_REMOVEDIR);
}

int io_lock_try(int fd, short type)
{
	int rc, tries = 0;
	do
		rc = io.lock(io.ctx, fd, type);
	while (rc == -1 && errno == EINTR && ++tries < EINTR_TRIES);
	/* POSIX leaves open which of the two says "held". */
	if (rc == -1 && errno == EACCES)
		errno = EAGAIN;
	return rc;
}

int io_statfs_type(int fd, int64_t *type)
{
	RETRY_EINTR(int, io.statfs_type(io.ctx, fd, type));
}

int io_random(void *buf, size_t len)
{
	RETRY_EINTR(int, io.random(io.ctx, buf, len));
}

int io_notify_open(void)
{
	return io.notify_open(io.ctx);
}

int io_notify_add(int notify, int fd)
{
	return io.notify_add(io.ctx, notify, fd);
}

int io_notify_remove(int notify, int watch)
{
	return io.notify_remove(io.ctx, notify, watch);
}

/* Not retried: whoever waits looks anyway, and comes again. */
int io_notify_wait(int notify, int64_t us)
{
	return io.notify_wait(io.ctx, notify, us);
}

/* File facts. */

#define STAT_LEAN (STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_INO | STATX_SIZE)

static int stat_any(int dir, const char *path, int flags, unsigned mask, io_stat *out)
{
	struct statx x;
	int rc, tries = 0;
	memset(&x, 0, sizeof(x));
	do
		rc = io.statx(io.ctx, dir, path, flags, mask, &x);
	while (rc == -1 && errno == EINTR && ++tries < EINTR_TRIES);
	if (rc != 0)
		return -1;
	*out = (io_stat){
		.size = x.stx_size, .inode = x.stx_ino, .links = x.stx_nlink, .mode = x.stx_mode};
	if ((mask & STATX_MTIME) != 0)
		out->mtime_ns = x.stx_mtime.tv_sec * INT64_C(1000000000) + x.stx_mtime.tv_nsec;
	return 0;
}

int io_stat_fd_lean(int fd, io_stat *out)
{
	return stat_any(fd, "", AT_EMPTY_PATH, STAT_LEAN, out);
}

int io_stat_fd(int fd, io_stat *out)
{
	return stat_any(fd, "", AT_EMPTY_PATH, STAT_LEAN | STATX_MTIME, out);
}

int io_stat_at(int dir, const char *path, io_stat *out)
{
	return stat_any(dir, path, AT_SYMLINK_NOFOLLOW, STAT_LEAN | STATX_MTIME, out);
}

/* Whole reads and writes. */

ssize_t io_pread_full(int fd, void *buf, size_t len, off_t at)
{
	size_t done = 0;
	while (done < len) {
		ssize_t n = io_pread(fd, (char *)buf + done, len - done, at + (off_t)done);
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* A write of nothing would loop for ever; it is an error of the device. */
static int wrote(ssize_t n, size_t *done)
{
	if (n > 0) {
		*done += (size_t)n;
		return 0;
	}
	if (n == 0)
		errno = EIO;
	return -1;
}

int io_write_full(int fd, const void *buf, size_t len)
{
	size_t done = 0;
	while (done < len) {
		if (wrote(io_write(fd, (const char *)buf + done, len - done), &done) != 0)
			return -1;
	}
	return 0;
}

static ssize_t pwrite_once(int fd, const void *buf, size_t len, off_t at)
{
	RETRY_EINTR(ssize_t, io.pwrite(io.ctx, fd, buf, len, at));
}

int io_pwrite_full(int fd, const void *buf, size_t len, off_t at)
{
	size_t done = 0;
	while (done < len) {
		ssize_t n = pwrite_once(fd, (const char *)buf + done, len - done, at + (off_t)done);
		if (wrote(n, &done) != 0)
			return -1;
	}
	return 0;
}

/* Directories. */

#define NAMES_ROOM 32768u

/* What getdents64 writes; the C library has no portable name for it. */
typedef struct dir_entry {
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	unsigned char type;
	char name[];
} dir_entry;

static int each_in_block(const char *block, size_t len,
                         int (*fn)(void *ctx, const char *name, unsigned char d_type), void *ctx)
{
	for (size_t at = 0; at < len;) {
		const dir_entry *e = (const void *)(block + at);
		const char *name = block + at + offsetof(dir_entry, name);
		at += e->size;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		int rc = fn(ctx, name, e->type);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Through a descriptor of its own, so that the place of `dir` is not moved. */
int io_each_name(int dir, int (*fn)(void *ctx, const char *name, unsigned char d_type), void *ctx)
{
	_cleanup_(io_closep) int fd = io_open(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return -1;
	_cleanup_(mem_freep) char *block = mem_alloc(NAMES_ROOM);
	if (block == NULL) {
		errno = ENOMEM;
		return -1;
	}
	for (int tries = 0;;) {
		ssize_t n = io.getdents(io.ctx, fd, block, NAMES_ROOM);
		if (n < 0 && errno == EINTR && ++tries < EINTR_TRIES)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			return 0;
		int rc = each_in_block(block, (size_t)n, fn, ctx);
		if (rc != 0)
			return rc;
	}
}

int io_poll(int fd, short events, int64_t wait_us)
{
	struct pollfd p = {.fd = fd, .events = events};
	int64_t ms = wait_us <= 0 ? 0 : (wait_us + 999) / 1000;
	int n = poll(&p, 1, ms > INT_MAX ? INT_MAX : (int)ms);
	return n > 0 ? p.revents : 0;
}
