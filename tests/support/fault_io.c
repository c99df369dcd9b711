/* The table of fault_io.h, over the system's own. */
#include "fault_io.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sheaf/sys/seams.h"

/* Before any file of a test was made: a file is not older than what it holds. */
#define CLOCK_BEGINS INT64_C(1700000000000000)

static struct {
	fault_plan plan;
	uint64_t counts[FAULT_SLOT_COUNT];
	uint64_t matched; /* calls the plan speaks of */
	uint64_t hits;
	int hit_slot;
	bool dead;
	bool paused;
	int forgotten;
	fault_watch_fn watch;
	void *watch_ctx;
	fault_stat_fn stat;
	void *stat_ctx;
	int64_t realtime, monotonic;
	uint64_t random;
} io;

/* ---- Whether a call fails -------------------------------------------------------- */

static bool changes(int slot)
{
	switch (slot) {
	case FAULT_write:
	case FAULT_pwrite:
	case FAULT_fdatasync:
	case FAULT_fsync:
	case FAULT_ftruncate:
	case FAULT_fchmod:
	case FAULT_mkdir:
	case FAULT_link:
	case FAULT_rename:
	case FAULT_unlink:
		return true;
	default:
		return false;
	}
}

/* Whether a slot is among those that a plan's slot stands for. */
static bool meant(int of, int slot)
{
	switch (of) {
	case FAULT_ANY:
		return true;
	case FAULT_CHANGES:
		return changes(slot);
	case FAULT_TRANSFERS:
		return slot == FAULT_pread || slot == FAULT_write || slot == FAULT_pwrite;
	case FAULT_SYNCS:
		return slot == FAULT_fdatasync || slot == FAULT_fsync;
	default:
		return slot == of;
	}
}

/* 0: let it pass; else what to do instead, an errno or one of FAULT_…. */
static int verdict(int slot)
{
	if (io.paused)
		return 0;
	io.counts[slot]++;
	/* The dead change nothing; what they only look at does not matter. */
	if (io.dead)
		return changes(slot) || slot == FAULT_open_beneath || slot == FAULT_open_root ? EIO
		                                                                              : 0;
	if (io.plan.at == 0 || !meant(io.plan.slot, slot))
		return 0;
	uint64_t n = ++io.matched;
	if (n != io.plan.at && !(n > io.plan.at && io.plan.for_ever))
		return 0;
	if (io.hits++ == 0)
		io.hit_slot = slot;
	if (io.plan.error != FAULT_DEAD)
		return io.plan.error;
	io.dead = true;
	return EIO;
}

static size_t cut(int how, size_t len)
{
	if (len <= 1)
		return len;
	if (how == FAULT_HALF)
		return len / 2;
	return how == FAULT_ONE_BYTE ? 1 : len - 1;
}

static void tell(fault_op op)
{
	int saved = errno;
	if (io.watch != NULL && !io.paused)
		io.watch(io.watch_ctx, &op);
	errno = saved;
}

/* A call that is refused: told as such, because a refused sync has consequences. What the dead
 * call was never made. */
static int64_t refuse(fault_op op, int error)
{
	op.result = -1;
	op.denied = true;
	if (!io.dead)
		tell(op);
	errno = error;
	return -1;
}

/* ---- The calls --------------------------------------------------------------------- */

#define SYSTEM(slot, ...) sheaf_system_io()->slot(NULL, __VA_ARGS__)

static int do_open_beneath(void *ctx, int dir, const char *path, int flags, mode_t mode)
{
	int error = verdict(FAULT_open_beneath);
	(void)ctx;
	if (error) {
		errno = error;
		return -1;
	}
	int fd = SYSTEM(open_beneath, dir, path, flags, mode);
	tell((fault_op){.slot = FAULT_open_beneath,
	                .fd = dir,
	                .path = path,
	                .flags = flags,
	                .mode = mode,
	                .result = fd});
	return fd;
}

static int do_open_root(void *ctx, const char *path, int flags, mode_t mode)
{
	int error = verdict(FAULT_open_root);
	(void)ctx;
	if (error) {
		errno = error;
		return -1;
	}
	int fd = SYSTEM(open_root, path, flags, mode);
	tell((fault_op){.slot = FAULT_open_root,
	                .fd = -1,
	                .path = path,
	                .flags = flags,
	                .mode = mode,
	                .result = fd});
	return fd;
}

/* The descriptor goes in any case, as on Linux. */
static int do_close(void *ctx, int fd)
{
	int error = verdict(FAULT_close);
	(void)ctx;
	tell((fault_op){.slot = FAULT_close, .fd = fd});
	int rc = SYSTEM(close, fd);
	if (error == 0)
		return rc;
	errno = error;
	return -1;
}

static ssize_t do_pread(void *ctx, int fd, void *buf, size_t len, off_t at)
{
	int error = verdict(FAULT_pread);
	(void)ctx;
	if (error > 0) {
		errno = error;
		return -1;
	}
	return SYSTEM(pread, fd, buf, error ? cut(error, len) : len, at);
}

static ssize_t do_write(void *ctx, int fd, const void *buf, size_t len)
{
	int error = verdict(FAULT_write);
	fault_op op = {.slot = FAULT_write, .fd = fd, .bytes = buf, .len = len};
	(void)ctx;
	if (error > 0)
		return (ssize_t)refuse(op, error);
	ssize_t n = SYSTEM(write, fd, buf, error ? cut(error, len) : len);
	op.result = n;
	tell(op);
	return n;
}

static ssize_t do_pwrite(void *ctx, int fd, const void *buf, size_t len, off_t at)
{
	int error = verdict(FAULT_pwrite);
	fault_op op = {.slot = FAULT_pwrite, .fd = fd, .bytes = buf, .len = len, .at = at};
	(void)ctx;
	if (error > 0)
		return (ssize_t)refuse(op, error);
	ssize_t n = SYSTEM(pwrite, fd, buf, error ? cut(error, len) : len, at);
	op.result = n;
	tell(op);
	return n;
}

static int do_fdatasync(void *ctx, int fd)
{
	fault_op op = {.slot = FAULT_fdatasync, .fd = fd};
	(void)ctx;
	if (!io.paused && (io.forgotten & FAULT_NO_FDATASYNC))
		return 0;
	int error = verdict(FAULT_fdatasync);
	if (error)
		return (int)refuse(op, error);
	op.result = SYSTEM(fdatasync, fd);
	tell(op);
	return (int)op.result;
}

static bool is_directory(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

static int do_fsync(void *ctx, int fd)
{
	fault_op op = {.slot = FAULT_fsync, .fd = fd};
	(void)ctx;
	int kind = is_directory(fd) ? FAULT_NO_FSYNC_OF_DIRECTORIES : FAULT_NO_FSYNC_OF_FILES;
	if (!io.paused && (io.forgotten & kind))
		return 0;
	int error = verdict(FAULT_fsync);
	if (error)
		return (int)refuse(op, error);
	op.result = SYSTEM(fsync, fd);
	tell(op);
	return (int)op.result;
}

static int do_ftruncate(void *ctx, int fd, off_t len)
{
	int error = verdict(FAULT_ftruncate);
	fault_op op = {.slot = FAULT_ftruncate, .fd = fd, .at = len};
	(void)ctx;
	if (error)
		return (int)refuse(op, error);
	op.result = SYSTEM(ftruncate, fd, len);
	tell(op);
	return (int)op.result;
}

static int do_fchmod(void *ctx, int fd, mode_t mode)
{
	int error = verdict(FAULT_fchmod);
	fault_op op = {.slot = FAULT_fchmod, .fd = fd, .mode = mode};
	(void)ctx;
	if (error)
		return (int)refuse(op, error);
	op.result = SYSTEM(fchmod, fd, mode);
	tell(op);
	return (int)op.result;
}

static int do_mkdir(void *ctx, int dir, const char *path, mode_t mode)
{
	int error = verdict(FAULT_mkdir);
	fault_op op = {.slot = FAULT_mkdir, .fd = dir, .path = path, .mode = mode};
	(void)ctx;
	if (error)
		return (int)refuse(op, error);
	op.result = SYSTEM(mkdir, dir, path, mode);
	tell(op);
	return (int)op.result;
}

static int do_link(void *ctx, int from_dir, const char *from, int to_dir, const char *to)
{
	int error = verdict(FAULT_link);
	fault_op op = {
		.slot = FAULT_link, .fd = from_dir, .path = from, .to_dir = to_dir, .to = to};
	(void)ctx;
	if (error)
		return (int)refuse(op, error);
	op.result = SYSTEM(link, from_dir, from, to_dir, to);
	tell(op);
	return (int)op.result;
}

static int do_rename(void *ctx, int from_dir, const char *from, int to_dir, const char *to)
{
	int error = verdict(FAULT_rename);
	fault_op op = {
		.slot = FAULT_rename, .fd = from_dir, .path = from, .to_dir = to_dir, .to = to};
	(void)ctx;
	if (error)
		return (int)refuse(op, error);
	op.result = SYSTEM(rename, from_dir, from, to_dir, to);
	tell(op);
	return (int)op.result;
}

static int do_unlink(void *ctx, int dir, const char *path, int flags)
{
	int error = verdict(FAULT_unlink);
	fault_op op = {.slot = FAULT_unlink, .fd = dir, .path = path, .flags = flags};
	(void)ctx;
	if (error)
		return (int)refuse(op, error);
	op.result = SYSTEM(unlink, dir, path, flags);
	tell(op);
	return (int)op.result;
}

static int do_statx(void *ctx, int dir, const char *path, int flags, unsigned mask,
                    struct statx *out)
{
	int error = verdict(FAULT_statx);
	(void)ctx;
	if (error) {
		errno = error;
		return -1;
	}
	int rc = SYSTEM(statx, dir, path, flags, mask, out);
	if (rc == 0 && io.stat != NULL && !io.paused)
		io.stat(io.stat_ctx, out);
	return rc;
}

static int do_lock(void *ctx, int fd, short type)
{
	int error = verdict(FAULT_lock);
	(void)ctx;
	if (error) {
		errno = error;
		return -1;
	}
	return SYSTEM(lock, fd, type);
}

static ssize_t do_getdents(void *ctx, int fd, void *buf, size_t len)
{
	int error = verdict(FAULT_getdents);
	(void)ctx;
	if (error) {
		errno = error;
		return -1;
	}
	return SYSTEM(getdents, fd, buf, len);
}

static int do_statfs_type(void *ctx, int fd, int64_t *out_type)
{
	int error = verdict(FAULT_statfs_type);
	(void)ctx;
	if (error) {
		errno = error;
		return -1;
	}
	return SYSTEM(statfs_type, fd, out_type);
}

static int do_random(void *ctx, void *buf, size_t len)
{
	int error = verdict(FAULT_random);
	unsigned char *to = buf;
	(void)ctx;
	if (error) {
		errno = error;
		return -1;
	}
	for (size_t i = 0; i < len; i++) {
		io.random = io.random * UINT64_C(6364136223846793005) +
		            UINT64_C(1442695040888963407);
		to[i] = (unsigned char)(io.random >> 56);
	}
	return 0;
}

/* ---- Time ---------------------------------------------------------------------------- */

static int64_t do_realtime_us(void *ctx)
{
	(void)ctx;
	return io.realtime;
}

static int64_t do_monotonic_us(void *ctx)
{
	(void)ctx;
	return ++io.monotonic;
}

static void do_sleep_us(void *ctx, int64_t us)
{
	(void)ctx;
	io.monotonic += us > 0 ? us : 0;
}

/* The machine's time since boot is the monotonic clock's, and it never boots again. */
static int64_t do_boottime_us(void *ctx)
{
	(void)ctx;
	return io.monotonic;
}

static int do_boot_id(void *ctx, char out[SHEAF_BOOT_ID_ROOM])
{
	(void)ctx;
	memcpy(out, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", SHEAF_BOOT_ID_ROOM);
	return 0;
}

/* ---- What tests call ------------------------------------------------------------------- */

const struct sheaf_io *fault_io_table(void)
{
#define FAULT_SLOT_FILL(slot) .slot = do_##slot,
	static const sheaf_io table = {.size = sizeof(table),
	                               FAULT_SLOTS(FAULT_SLOT_FILL).realtime_us = do_realtime_us,
	                               .monotonic_us = do_monotonic_us,
	                               .sleep_us = do_sleep_us,
	                               .boottime_us = do_boottime_us,
	                               .boot_id = do_boot_id};
	return &table;
}

void fault_io_install(void)
{
	memset(&io, 0, sizeof(io));
	io.realtime = CLOCK_BEGINS;
	io.monotonic = 1000000000;
	io.random = 1;
	io.hit_slot = -1;
	sheaf_set_io(fault_io_table());
}

void fault_io_remove(void)
{
	sheaf_set_io(NULL);
}

void fault_io_plan(const fault_plan *plan)
{
	io.plan = plan != NULL ? *plan : (fault_plan){.at = 0};
	memset(io.counts, 0, sizeof(io.counts));
	io.matched = io.hits = 0;
	io.hit_slot = -1;
	io.dead = false;
}

void fault_io_pause(bool on)
{
	io.paused = on;
}

void fault_io_forget(int calls)
{
	io.forgotten = calls;
}

uint64_t fault_io_count(int slot)
{
	uint64_t sum = 0;
	for (int i = 0; i < FAULT_SLOT_COUNT; i++)
		if (meant(slot, i))
			sum += io.counts[i];
	return sum;
}

uint64_t fault_io_hits(void)
{
	return io.hits;
}

int fault_io_hit_slot(void)
{
	return io.hit_slot;
}

void fault_io_watch(fault_watch_fn fn, void *ctx)
{
	io.watch = fn;
	io.watch_ctx = ctx;
}

void fault_io_map_stat(fault_stat_fn fn, void *ctx)
{
	io.stat = fn;
	io.stat_ctx = ctx;
}

void fault_io_clock(int64_t realtime_us)
{
	io.realtime = CLOCK_BEGINS + realtime_us;
}

int64_t fault_io_now(void)
{
	return io.realtime;
}

void fault_io_wait(int64_t us)
{
	io.monotonic += us;
}

void fault_io_seed(uint64_t seed)
{
	io.random = seed * 2 + 1;
}

const char *fault_slot_name(int slot)
{
	static const char *const names[] = {
#define FAULT_SLOT_NAME(slot) #slot,
		FAULT_SLOTS(FAULT_SLOT_NAME) "any", "changes", "transfers", "syncs"};
	return slot >= 0 && slot <= FAULT_SYNCS ? names[slot] : "none";
}

const char *fault_error_name(int error)
{
	switch (error) {
	case FAULT_HALF:
		return "half";
	case FAULT_ONE_BYTE:
		return "one-byte";
	case FAULT_ALL_BUT_1:
		return "all-but-1";
	case FAULT_DEAD:
		return "dead";
	default:
		return error > 0 ? strerrorname_np(error) : "none";
	}
}
