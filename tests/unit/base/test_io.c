/* Tests of base/io.h, in a directory of their own under $TMPDIR. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/fail_alloc.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/io.h"

static char root[256];
static int dir = -1;

static int enter(void **state)
{
	(void)state;
	const char *tmp = getenv("TMPDIR");
	(void)snprintf(root, sizeof(root), "%.200s/sheaf-test-io-XXXXXX", tmp ? tmp : "/tmp");
	if (mkdtemp(root) == NULL)
		return -1;
	dir = io_open_root(root, O_RDONLY | O_DIRECTORY, 0);
	return dir < 0 ? -1 : 0;
}

static int leave(void **state)
{
	(void)state;
	char command[320];
	sheaf_set_io(NULL);
	io_closep(&dir);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command) == 0 ? 0 : -1;
}

static int make(const char *name, const char *text)
{
	int fd = io_open(dir, name, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(io_write_full(fd, text, strlen(text)), 0);
	return fd;
}

static void put(const char *name, const char *text)
{
	assert_int_equal(io_close(make(name, text)), 0);
}

static void test_open_write_read(void **state)
{
	(void)state;
	char got[32];
	_cleanup_(io_closep) int fd = make("f", "hello");
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	assert_true((fcntl(dir, F_GETFD) & FD_CLOEXEC) != 0);
	assert_int_equal(io_pread(fd, got, sizeof(got), 1), 4);
	assert_memory_equal(got, "ello", 4);
	assert_int_equal(io_pread_full(fd, got, sizeof(got), 0), 5);
	assert_int_equal(io_pread_full(fd, got, 3, 0), 3);
	assert_int_equal(io_pread_full(fd, got, 3, 100), 0);
	assert_int_equal(io_write(fd, " you", 4), 4);
	assert_int_equal(io_pwrite_full(fd, "J", 1, 0), 0);
	assert_int_equal(io_pread_full(fd, got, sizeof(got), 0), 9);
	assert_memory_equal(got, "Jello you", 9);
	assert_int_equal(io_fdatasync(fd), 0);
	assert_int_equal(io_fsync(fd), 0);
	assert_int_equal(io_fsync(dir), 0);
	assert_int_equal(io_ftruncate(fd, 3), 0);
	assert_int_equal(io_pread_full(fd, got, sizeof(got), 0), 3);
	errno = 0;
	assert_int_equal(io_open(dir, "f", O_RDWR | O_CREAT | O_EXCL, 0600), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(io_open(dir, "none", O_RDONLY, 0600), -1);
	assert_int_equal(errno, ENOENT);
}

static void test_open_stays_beneath(void **state)
{
	(void)state;
	char path[320];
	assert_int_equal(symlink("/etc/passwd", strcat(strcpy(path, root), "/link")), 0);
	assert_int_equal(symlink("f", strcat(strcpy(path, root), "/inner")), 0);
	assert_int_equal(symlink("d", strcat(strcpy(path, root), "/way")), 0);
	assert_int_equal(io_mkdir(dir, "d", 0700), 0);
	put("f", "x");
	_cleanup_(io_closep) int deep = io_open(dir, "d/g", O_RDWR | O_CREAT, 0600);
	assert_true(deep >= 0);
	assert_int_equal(io_open(dir, "link", O_RDONLY, 0), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(io_open(dir, "inner", O_RDONLY, 0), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(io_open(dir, "way/g", O_RDONLY, 0), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(io_open(dir, "../x", O_RDWR | O_CREAT, 0600), -1);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(io_open(dir, "/etc/passwd", O_RDONLY, 0), -1);
	assert_int_equal(errno, EXDEV);
}

static void test_stat(void **state)
{
	(void)state;
	io_stat lean, whole, at;
	char path[320];
	_cleanup_(io_closep) int fd = make("f", "hello");
	assert_int_equal(io_fchmod(fd, 0640), 0);
	assert_int_equal(io_link(dir, "f", dir, "g"), 0);
	assert_int_equal(io_stat_fd_lean(fd, &lean), 0);
	assert_int_equal(io_stat_fd(fd, &whole), 0);
	assert_int_equal(io_stat_at(dir, "g", &at), 0);
	assert_int_equal(lean.size, 5);
	assert_int_equal(lean.links, 2);
	assert_int_equal(lean.mode, S_IFREG | 0640);
	assert_int_equal(lean.mtime_ns, 0);
	assert_int_equal(whole.size, 5);
	assert_int_equal(whole.links, 2);
	assert_int_equal(whole.mode, S_IFREG | 0640);
	assert_true(llabs(whole.mtime_ns / 1000 - clock_now_us()) < 60000000);
	assert_int_equal(at.size, whole.size);
	assert_int_equal(at.inode, whole.inode);
	assert_int_equal(at.links, whole.links);
	assert_int_equal(at.mode, whole.mode);
	assert_int_equal(at.mtime_ns, whole.mtime_ns);
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(whole.inode, st.st_ino);
	assert_int_equal(whole.mtime_ns,
	                 st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec);
	assert_int_equal(symlink("f", strcat(strcpy(path, root), "/link")), 0);
	assert_int_equal(io_stat_at(dir, "link", &at), 0);
	assert_true(S_ISLNK(at.mode));
	assert_int_equal(io_stat_at(dir, "none", &at), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(io_stat_fd(-1, &at), -1);
	assert_int_equal(errno, EBADF);
}

static void test_names(void **state)
{
	(void)state;
	io_stat st;
	put("a", "1");
	assert_int_equal(io_rename(dir, "a", dir, "b"), 0);
	assert_int_equal(io_stat_at(dir, "a", &st), -1);
	put("c", "2");
	assert_int_equal(io_link(dir, "b", dir, "c"), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(io_unlink(dir, "b"), 0);
	assert_int_equal(io_stat_at(dir, "b", &st), -1);
	assert_int_equal(io_mkdir(dir, "d", 0700), 0);
	assert_int_equal(io_mkdir(dir, "d", 0700), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(io_unlink(dir, "d"), -1);
	assert_int_equal(io_rmdir(dir, "d"), 0);
	assert_int_equal(io_rmdir(dir, "c"), -1);
	assert_int_equal(errno, ENOTDIR);
}

static void test_lock(void **state)
{
	(void)state;
	_cleanup_(io_closep) int a = make("f", "x");
	_cleanup_(io_closep) int b = io_open(dir, "f", O_RDWR, 0);
	assert_int_equal(io_lock_try(a, F_WRLCK), 0);
	errno = 0;
	assert_int_equal(io_lock_try(b, F_WRLCK), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(io_lock_try(b, F_RDLCK), -1);
	assert_int_equal(io_lock_try(a, F_RDLCK), 0);
	assert_int_equal(io_lock_try(b, F_RDLCK), 0);
	assert_int_equal(io_lock_try(a, F_WRLCK), -1);
	assert_int_equal(io_lock_try(b, F_UNLCK), 0);
	assert_int_equal(io_lock_try(a, F_WRLCK), 0);
	io_closep(&a);
	assert_int_equal(io_lock_try(b, F_WRLCK), 0);
}

static void test_close(void **state)
{
	(void)state;
	int fd = make("f", "x"), none = -1;
	int same = fd;
	errno = 5;
	io_closep(&fd);
	io_closep(&none);
	assert_int_equal(errno, 5);
	assert_int_equal(fd, -1);
	errno = 0;
	assert_int_equal(io_close(same), -1);
	assert_int_equal(errno, EBADF);
}

static void test_random_and_fs(void **state)
{
	(void)state;
	unsigned char a[5000] = {0}, b[5000] = {0};
	int64_t type = 0;
	assert_int_equal(io_random(a, sizeof(a)), 0);
	assert_int_equal(io_random(b, sizeof(b)), 0);
	assert_memory_not_equal(a, b, sizeof(a));
	assert_memory_not_equal(a + 4990, (unsigned char[10]){0}, 10);
	assert_int_equal(io_random(a, 0), 0);
	assert_int_equal(io_statfs_type(dir, &type), 0);
	assert_true(type != 0);
	assert_int_equal(io_statfs_type(-1, &type), -1);
}

typedef struct walk {
	size_t count, limit, directories;
	unsigned char seen[2000];
} walk;

static int walk_one(void *ctx, const char *name, unsigned char type)
{
	walk *w = ctx;
	if (name[0] == 'd') {
		assert_true(type == 4 /* DT_DIR */ || type == 0);
		w->directories++;
		return 0;
	}
	assert_int_equal(name[0], 'f');
	assert_int_equal(w->seen[atoi(name + 1)]++, 0);
	w->count++;
	return w->count == w->limit ? 77 : 0;
}

static void test_each_name(void **state)
{
	(void)state;
	enum {
		FILES = 1500
	};
	walk w = {0};
	assert_int_equal(io_each_name(dir, walk_one, &w), 0);
	assert_int_equal(w.count, 0);
	assert_int_equal(io_mkdir(dir, "d", 0700), 0);
	for (int i = 0; i < FILES; i++) {
		char name[80];
		(void)snprintf(name, sizeof(name), "f%04d-with-a-long-name-to-fill-the-block", i);
		put(name, "");
	}
	/* Twice, since the place of `dir` is not moved. */
	for (int round = 0; round < 2; round++) {
		memset(&w, 0, sizeof(w));
		assert_int_equal(io_each_name(dir, walk_one, &w), 0);
		assert_int_equal(w.count, FILES);
		assert_int_equal(w.directories, 1);
	}
	memset(&w, 0, sizeof(w));
	w.limit = 10;
	assert_int_equal(io_each_name(dir, walk_one, &w), 77);
	assert_int_equal(w.count, 10);
	assert_int_equal(io_each_name(-1, walk_one, &w), -1);
	fail_alloc_install();
	fail_alloc_at(1, false);
	errno = 0;
	assert_int_equal(io_each_name(dir, walk_one, &w), -1);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

/* A table of a few faults: EINTR first, then little by little. */
typedef struct faults {
	int interrupts;
	int calls;
	size_t most;   /* bytes a call moves */
	int fail_with; /* errno, or 0 */
} faults;

static bool faulty(faults *f)
{
	f->calls++;
	if (f->interrupts > 0) {
		f->interrupts--;
		errno = EINTR;
		return true;
	}
	if (f->fail_with != 0) {
		errno = f->fail_with;
		return true;
	}
	return false;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static ssize_t slow_pread(void *ctx, int fd, void *buf, size_t len, off_t at)
{
	faults *f = ctx;
	return faulty(f) ? -1 : sheaf_system_io()->pread(NULL, fd, buf, least(len, f->most), at);
}

static ssize_t slow_write(void *ctx, int fd, const void *buf, size_t len)
{
	faults *f = ctx;
	return faulty(f) ? -1 : sheaf_system_io()->write(NULL, fd, buf, least(len, f->most));
}

static ssize_t slow_pwrite(void *ctx, int fd, const void *buf, size_t len, off_t at)
{
	faults *f = ctx;
	return faulty(f) ? -1 : sheaf_system_io()->pwrite(NULL, fd, buf, least(len, f->most), at);
}

static int slow_fsync(void *ctx, int fd)
{
	return faulty(ctx) ? -1 : sheaf_system_io()->fsync(NULL, fd);
}

static int slow_close(void *ctx, int fd)
{
	(void)sheaf_system_io()->close(NULL, fd);
	return faulty(ctx) ? -1 : 0;
}

static int slow_lock(void *ctx, int fd, short type)
{
	return faulty(ctx) ? -1 : sheaf_system_io()->lock(NULL, fd, type);
}

static int slow_open(void *ctx, int at, const char *path, int flags, mode_t mode)
{
	return faulty(ctx) ? -1 : sheaf_system_io()->open_beneath(NULL, at, path, flags, mode);
}

static int slow_statx(void *ctx, int at, const char *path, int flags, unsigned mask,
                      struct statx *out)
{
	return faulty(ctx) ? -1 : sheaf_system_io()->statx(NULL, at, path, flags, mask, out);
}

static void test_short_and_interrupted(void **state)
{
	(void)state;
	faults f = {.interrupts = 0, .most = 3};
	sheaf_io table = {.size = sizeof(table),
	                  .ctx = &f,
	                  .open_beneath = slow_open,
	                  .close = slow_close,
	                  .pread = slow_pread,
	                  .write = slow_write,
	                  .pwrite = slow_pwrite,
	                  .fsync = slow_fsync,
	                  .statx = slow_statx,
	                  .lock = slow_lock};
	char got[32];
	io_stat st;
	sheaf_set_io(&table);
	f.interrupts = 2;
	int fd = io_open(dir, "f", O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	f.interrupts = 3;
	assert_int_equal(io_write_full(fd, "0123456789", 10), 0);
	f.interrupts = 3;
	assert_int_equal(io_pwrite_full(fd, "abcdefgh", 8, 10), 0);
	f.interrupts = 3;
	assert_int_equal(io_pread_full(fd, got, sizeof(got), 0), 18);
	assert_memory_equal(got, "0123456789abcdefgh", 18);
	f.interrupts = 1;
	assert_int_equal(io_pread(fd, got, sizeof(got), 0), 3); /* one call */
	f.interrupts = 1;
	assert_int_equal(io_write(fd, "zzzz", 4), 3);
	f.interrupts = 2;
	assert_int_equal(io_fsync(fd), 0);
	f.interrupts = 2;
	assert_int_equal(io_stat_fd_lean(fd, &st), 0);
	f.interrupts = 2;
	assert_int_equal(io_lock_try(fd, F_WRLCK), 0);
	f.fail_with = EACCES;
	assert_int_equal(io_lock_try(fd, F_WRLCK), -1);
	assert_int_equal(errno, EAGAIN);

	f.fail_with = ENOSPC;
	assert_int_equal(io_write_full(fd, "x", 1), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(io_pwrite_full(fd, "x", 1, 0), -1);
	assert_int_equal(io_pread_full(fd, got, 1, 0), -1);
	assert_int_equal(io_stat_fd(fd, &st), -1);
	f.fail_with = 0;
	f.most = 0; /* a device that takes nothing does not hang us */
	assert_int_equal(io_write_full(fd, "x", 1), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(io_pwrite_full(fd, "x", 1, 0), -1);
	assert_int_equal(io_write_full(fd, "x", 0), 0);

	f.calls = 0;
	f.interrupts = 1;
	assert_int_equal(io_close(fd), -1); /* never retried */
	assert_int_equal(f.calls, 1);
	f.interrupts = 0;
	sheaf_set_io(NULL);
}

static int64_t fixed_clock(void *ctx)
{
	(void)ctx;
	return 42;
}

static void test_partial_tables(void **state)
{
	(void)state;
	sheaf_io table = {
		.size = sizeof(table), .realtime_us = fixed_clock, .monotonic_us = fixed_clock};
	sheaf_set_io(&table);
	assert_int_equal(clock_now_us(), 42);
	put("f", "x"); /* the system's own for the rest */
	/* A table from before monotonic_us was added: nothing behind its size is looked at. */
	table.size = offsetof(sheaf_io, monotonic_us);
	sheaf_set_io(&table);
	assert_int_equal(clock_now_us(), 42);
	assert_int_not_equal(clock_monotonic_us(), 42);
	/* A larger one of a later library. */
	struct {
		sheaf_io io;
		void *later[4];
	} larger = {.io = table, .later = {&larger}};
	larger.io.size = sizeof(larger);
	sheaf_set_io(&larger.io);
	assert_int_equal(clock_monotonic_us(), 42);
	table.size = 0;
	sheaf_set_io(&table);
	assert_int_not_equal(clock_now_us(), 42);
	sheaf_set_io(NULL);
	assert_int_not_equal(clock_now_us(), 42);

	const sheaf_io *own = sheaf_system_io();
	assert_int_equal(own->size, sizeof(*own));
	void *const *slots = (void *const *)(const void *)&own->open_beneath;
	size_t count = (sizeof(*own) - offsetof(sheaf_io, open_beneath)) / sizeof(void *);
	for (size_t i = 0; i < count; i++)
		assert_non_null(slots[i]);
}

#define T(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_open_write_read),
		T(test_open_stays_beneath),
		T(test_stat),
		T(test_names),
		T(test_lock),
		T(test_close),
		T(test_random_and_fs),
		T(test_each_name),
		T(test_short_and_interrupted),
		T(test_partial_tables),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
