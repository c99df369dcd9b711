/*
 * The end of a log after a crash: telling a tear from damage, and moving a tear
 * away without losing a byte.
 *
 * A crash can only hurt what was not synced, and writers keep that within a
 * window. Bad bytes there are a tear when nothing valid follows them, or when
 * they hold NULs as a filesystem leaves them: a run of two or more that touches
 * a sector boundary, where a size grew and the bytes never came; or one alone, in
 * place of the brace of a line that begins with a sector's last byte. Then all after
 * the last complete batch goes, valid lines included: none of it was
 * acknowledged as durable. Anything else is damage, and damage is never cut.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/clock.h"
#include "store/jsonl.h"

#define SECTOR 512u

/* Whether [from, to) holds a run of two or more NULs that touches a multiple of 512. */
static int has_sector_nuls(int fd, uint64_t from, uint64_t to)
{
	char chunk[16384];
	uint64_t run = 0; /* NULs directly before `at` */

	for (uint64_t at = from; at < to;) {
		size_t want = to - at < sizeof(chunk) ? (size_t)(to - at) : sizeof(chunk);
		ssize_t got = io_pread_full(fd, chunk, want, (off_t)at);
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		for (ssize_t i = 0; i < got; i++) {
			if (chunk[i] == 0) {
				run++;
				continue;
			}
			uint64_t end = at + (uint64_t)i, start = end - run;
			if (run >= 2 && end / SECTOR * SECTOR >= start)
				return 1;
			run = 0;
		}
		at += (uint64_t)got;
	}
	return run >= 2 && to / SECTOR * SECTOR >= to - run;
}

jtail_kind jtail_classify(int fd, uint64_t bad, uint64_t end)
{
	_cleanup_(jlines_free) jlines lines = JLINES_INIT(fd, bad, end);
	jline first, line;
	int rc;

	if (end - bad > JSONL_TEAR_WINDOW)
		return JTAIL_DAMAGE;
	rc = jlines_next(&lines, &first);
	if (rc < 0)
		return JTAIL_FAILED;
	if (rc == 0)
		return JTAIL_TEAR;
	bool valid = first.text.ptr && record_crc_ok(first.text);
	if (!valid && first.length && first.offset % SECTOR == SECTOR - 1) {
		char brace;
		if (io_pread_full(fd, &brace, 1, (off_t)first.offset) != 1)
			return JTAIL_FAILED;
		if (brace == 0)
			return JTAIL_TEAR;
	}
	if (!valid) {
		rc = has_sector_nuls(fd, first.offset, first.offset + first.length);
		if (rc)
			return rc < 0 ? JTAIL_FAILED : JTAIL_TEAR;
	}
	while (!valid && (rc = jlines_next(&lines, &line)) == 1)
		valid = line.text.ptr && record_crc_ok(line.text);
	if (rc < 0)
		return JTAIL_FAILED;
	return valid ? JTAIL_DAMAGE : JTAIL_TEAR;
}

/* Opens a new file in .kept, named after what it holds and when. */
static int kept_open(jowner *o, const char *session, const char *what, char name[256], int *dir,
                     sheaf_error *err)
{
	if (io_mkdir(o->dir, JSONL_KEPT_DIR, 0700) == 0) {
		if (io_fsync(o->dir))
			return err_sys(err, SHEAF_STORAGE, errno, "cannot sync the directory");
	} else if (errno != EEXIST) {
		return err_sys(err, SHEAF_STORAGE, errno,
		               "cannot make the directory of kept bytes");
	}
	*dir = io_open(o->dir, JSONL_KEPT_DIR, O_RDONLY | O_DIRECTORY, 0);
	if (*dir < 0)
		return err_sys(err, SHEAF_STORAGE, errno,
		               "cannot open the directory of kept bytes");
	uint64_t now = (uint64_t)clock_now_us();
	for (int i = 0; i < 1000; i++) {
		snprintf(name, 256, "%s.%s-%llu", session, what,
		         (unsigned long long)(now + (unsigned)i));
		int fd = io_open(*dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			break;
	}
	return err_sys(err, SHEAF_STORAGE, errno, "cannot keep a copy of the bytes");
}

int jtail_keep(jowner *o, const char *session, const char *what, int fd, uint64_t from,
               uint64_t end, char name[256], sheaf_error *err)
{
	_cleanup_(io_closep) int dir = -1;
	_cleanup_(io_closep) int out = kept_open(o, session, what, name, &dir, err);

	if (out < 0) {
		int rc = out;
		out = -1;
		return rc;
	}
	int rc = jcopy_range(fd, from, end, out, err);
	if (rc == 0 && (io_fsync(out) || io_fsync(dir)))
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot keep a copy of the bytes");
	if (rc)
		io_unlink(dir, name);
	return rc;
}

int jtail_move(jlog *log, uint64_t from, uint64_t end, sheaf_error *err)
{
	char name[256];
	int rc = jtail_keep(log->owner, log->session, "torn", log->file->fd, from, end, name, err);
	if (rc)
		return rc;
	if (io_ftruncate(log->file->fd, (off_t)from) || jlog_sync(log, from))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot cut the torn bytes off");
	log->torn_bytes += end - from;
	snprintf(log->torn_file, sizeof(log->torn_file), JSONL_KEPT_DIR "/%.240s", name);
	log->tail_bytes = 0;
	log->file_seen = from;
	return 0;
}
