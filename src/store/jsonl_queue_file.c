/*
 * The file of a queue: following it, moving a tear away, writing it anew,
 * removing it with its session, check and repair.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "store/jsonl_queue.h"

jqueue *jqueue_new(jowner *o, const char *session)
{
	jqueue *q = mem_zalloc(sizeof(*q));
	if (!q)
		return NULL;
	pthread_mutex_init(&q->mutex, NULL);
	q->owner = o;
	q->session = session;
	q->fd = -1;
	q->out = (buf)BUF_INIT(SIZE_MAX);
	return q;
}

void jqueue_unload(jqueue *q)
{
	io_closep(&q->fd);
	q->fd = -1;
	queue_free(&q->items);
	q->size = q->synced = q->live = 0;
	q->bound = false;
}

void jqueue_free(jqueue *q)
{
	if (!q)
		return;
	jqueue_unload(q);
	buf_free(&q->out);
	json_free(q->doc);
	pthread_mutex_destroy(&q->mutex);
	mem_free(q);
}

void jqueue_leave(jqueue *q)
{
	if (q->fd >= 0 && io_lock_try(q->fd, F_UNLCK))
		jqueue_unload(q); /* closing gives it up for certain */
}

static void file_name(char out[JSONL_NAME_ROOM], const char *session)
{
	snprintf(out, JSONL_NAME_ROOM, JSONL_QUEUE_DIR "/%s.jsonl", session);
}

/* ---- Following the file ------------------------------------------------------------ */

int jqueue_sync(jqueue *q)
{
	if (io_fdatasync(q->fd) == 0) {
		q->synced = q->size;
		return 0;
	}
	int why = errno;
	if (io_fchmod(q->fd, S_IRUSR | S_IWUSR | S_ISVTX))
		q->poisoned = q->inode;
	errno = why;
	return -1;
}

static int damaged(sheaf_error *err)
{
	int rc = err_set(err, SHEAF_DAMAGED, "the session's queue is damaged");
	err_hint(err, "sheaf check shows it, sheaf repair saves what can be read");
	return rc;
}

/* What a crash left at the end of the file is kept and cut off. Exclusive lock held. */
static int move_tear(jqueue *q, uint64_t end, sheaf_error *err)
{
	char name[256];
	int rc = jtail_keep(q->owner, q->session, "queue-torn", q->fd, q->size, end, name, err);
	if (rc)
		return rc;
	if (io_ftruncate(q->fd, (off_t)q->size) || jqueue_sync(q))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot cut the queue's torn end");
	return 0;
}

/* Reads lines from q->size on. 1: the one at q->size is bad, `*whole` if it has its line break. */
static int follow_lines(jqueue *q, uint64_t end, bool *whole, sheaf_error *err)
{
	_cleanup_(jlines_free) jlines lines = JLINES_INIT(q->fd, q->size, end);
	jline line;
	int rc;

	while ((rc = jlines_next(&lines, &line)) == 1) {
		*whole = line.terminated;
		if (!line.terminated || !line.text.ptr || !record_crc_ok(line.text))
			return 1;
		rc = jqueue_apply(q, line.text);
		if (rc == SHEAF_NOMEM)
			return err_nomem(err);
		if (rc == SHEAF_FORMAT)
			return err_set(err, rc, "the queue was written by a newer version");
		if (rc)
			return 1;
		q->size = line.offset + line.length + 1;
		if (line.offset == 0)
			q->live = q->size;
	}
	if (rc < 0)
		return errno == ENOMEM
		               ? err_nomem(err)
		               : err_sys(err, SHEAF_STORAGE, errno, "cannot read the queue");
	return 0;
}

/* What the bad line at q->size is. The first line was there before the file had its name. */
static jtail_kind bad_kind(const jqueue *q, uint64_t end, bool whole)
{
	if (!q->bound)
		return JTAIL_DAMAGE;
	return whole ? jtail_classify(q->fd, q->size, end) : JTAIL_TEAR;
}

/* Reads what was added since. Lock held: what is bad now stays bad. */
static int follow(jqueue *q, uint64_t end, bool write, sheaf_error *err)
{
	bool whole = true;
	int rc = follow_lines(q, end, &whole, err);
	if (rc <= 0)
		return rc;
	jtail_kind kind = bad_kind(q, end, whole);
	if (kind == JTAIL_FAILED)
		return err_sys(err, SHEAF_STORAGE, errno, "cannot read the queue");
	if (kind == JTAIL_DAMAGE)
		return damaged(err);
	return write ? move_tear(q, end, err) : 0;
}

/* Opens the file if it is not. 1: there is none. */
static int open_file(jqueue *q, sheaf_error *err)
{
	char name[JSONL_NAME_ROOM];
	if (q->fd >= 0)
		return 0;
	if (clock_boot_id(q->boot))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot tell which boot this is");
	file_name(name, q->session);
	q->fd = io_open(q->owner->dir, name,
	                q->owner->store->readonly ? O_RDONLY : O_RDWR | O_APPEND, 0);
	if (q->fd >= 0)
		return 0;
	q->fd = -1;
	if (errno == ENOENT || errno == ENOTDIR)
		return 1;
	return err_sys(err, errno == EACCES || errno == ELOOP ? SHEAF_DENIED : SHEAF_STORAGE, errno,
	               "cannot open the queue");
}

/* ---- A file written anew ------------------------------------------------------------- */

static int queue_dir(jowner *o, sheaf_error *err)
{
	int made = 0;
	jcatalogue_begin(o);
	if (io_mkdir(o->dir, JSONL_QUEUE_DIR, 0700) && errno != EEXIST)
		made = err_sys(err, SHEAF_STORAGE, errno, "cannot make the directory of queues");
	jcatalogue_end(o);
	if (made)
		return made;
	int dir = io_open(o->dir, JSONL_QUEUE_DIR, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return err_sys(err, SHEAF_STORAGE, errno, "cannot open the directory of queues");
	return dir;
}

/* Puts the finished file in place. It is sealed until its name is on the disk, as new logs are. */
static int install(jowner *o, const char *session, int fd, const char *tmp, sheaf_error *err)
{
	char name[JSONL_NAME_ROOM];
	if (io_fsync(fd))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot sync the new queue");
	int got = queue_dir(o, err);
	if (got < 0)
		return got;
	_cleanup_(io_closep) int dir = got;
	/* Also if the directory was there: who made it may not have come to this. */
	if (io_fsync(o->dir))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot sync the directory");
	snprintf(name, sizeof(name), "%s.jsonl", session);
	if (io_rename(jowner_side(o), tmp, dir, name))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot put the new queue in place");
	if (io_fsync(dir))
		return err_unknown(err,
		                   err_sys(err, SHEAF_STORAGE, errno, "cannot sync the directory"));
	(void)io_fchmod(fd, S_IRUSR | S_IWUSR);
	return 0;
}

/* Writes what waits, or nothing with `items` NULL, to a new file in the place of the old. */
int jqueue_write_anew(jqueue *q, int64_t created_us, const queue *items, sheaf_error *err)
{
	jowner *o = q->owner;
	char tmp[JSONL_TMP_ROOM];
	int got = jtmp_open(o, q->session, tmp, err);
	if (got < 0)
		return got;
	_cleanup_(io_closep) int fd = got;
	/* Held until it is unsealed: who finds it under its name must not write it anew too. */
	int rc = jlock_take(fd, F_WRLCK, 0, err);

	buf_reset(&q->out);
	jqueue_write_header(&q->out, q->session, created_us);
	for (size_t i = 0; rc == 0 && i <= (items ? items->count : 0); i++) {
		bool last = i == (items ? items->count : 0);
		if (!last) {
			const queue_item *item = items->items[i];
			sheaf_queue_row row = {.id = item->id,
			                       .content = item->content,
			                       .environment = item->environment,
			                       .priority = item->priority,
			                       .claims = item->claims,
			                       .enqueued_us = item->enqueued_us};
			jqueue_write_put(&q->out, &row, item, q->boot);
		}
		if (!last && q->out.len < JSONL_GROUP_BYTES)
			continue;
		rc = buf_status(&q->out, err);
		if (rc == 0 && io_write_full(fd, q->out.ptr, q->out.len))
			rc = err_sys(err, SHEAF_STORAGE, errno, "cannot write the new queue");
		buf_reset(&q->out);
	}
	if (rc == 0)
		rc = install(o, q->session, fd, tmp, err);
	if (rc)
		jtmp_unlink(o, tmp);
	return rc;
}

/* ---- In and out ---------------------------------------------------------------------- */

/* The file as it is now, under the lock. 1: it was replaced, look again. */
static int settle(jqueue *q, bool write, sheaf_error *err)
{
	io_stat st;
	if (io_stat_fd_lean(q->fd, &st))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot look at the queue");
	if (st.links == 0 || st.size < q->size) {
		jqueue_unload(q);
		return 1;
	}
	q->inode = st.inode;
	int rc = st.size > q->size ? follow(q, st.size, write, err) : 0;
	if (rc == 0 && write && (jlog_sealed(&st) || q->poisoned == st.inode)) {
		rc = jqueue_write_anew(q, q->created_us, &q->items, err);
		jqueue_unload(q);
		return rc ? rc : 1;
	}
	return rc;
}

/* Takes the lock and catches up. 1: there is no file. The mutex is held. */
int jqueue_enter(jqueue *q, bool write, int64_t deadline_us, sheaf_error *err)
{
	/* Others may replace it as long as they find reason to; each time somebody got further. */
	for (int again = 0; again < 4 || clock_monotonic_us() < deadline_us; again++) {
		int rc = open_file(q, err);
		if (rc)
			return rc;
		rc = jlock_take(q->fd, write ? F_WRLCK : F_RDLCK, deadline_us, err);
		if (rc)
			return rc;
		rc = settle(q, write, err);
		if (rc < 0)
			jqueue_unload(q);
		if (rc <= 0)
			return rc;
	}
	return err_set(err, SHEAF_BUSY, "the queue keeps being replaced");
}

/* ---- With the session ---------------------------------------------------------------------- */

int jqueue_remove(jowner *o, const char *session, bool orphan, int64_t deadline_us,
                  sheaf_error *err)
{
	char name[JSONL_NAME_ROOM], log[JSONL_NAME_ROOM];
	io_stat st;

	file_name(name, session);
	snprintf(log, sizeof(log), "%s.jsonl", session);
	for (int again = 0; again < 4 || clock_monotonic_us() < deadline_us; again++) {
		_cleanup_(io_closep) int fd = io_open(o->dir, name, O_RDWR, 0);
		if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
			return 0;
		if (fd < 0)
			return err_sys(err, SHEAF_STORAGE, errno, "cannot open the queue");
		int rc = jlock_take(fd, F_WRLCK, deadline_us, err);
		if (rc)
			return rc;
		if (io_stat_fd_lean(fd, &st))
			return err_sys(err, SHEAF_STORAGE, errno, "cannot look at the queue");
		if (st.links == 0)
			continue;
		if (orphan && io_stat_at(o->dir, log, &st) == 0)
			return 0;
		_cleanup_(io_closep) int dir = io_open(o->dir, JSONL_QUEUE_DIR,
		                                       O_RDONLY | O_DIRECTORY, 0);
		if (dir < 0 || io_unlink(o->dir, name) || io_fsync(dir))
			return err_sys(err, SHEAF_STORAGE, errno, "cannot remove the queue");
		return 0;
	}
	return err_set(err, SHEAF_BUSY, "the queue keeps being replaced");
}

/* ---- Check and repair ---------------------------------------------------------------------- */

/* Reads the file from its beginning under a lock. What is wrong: 0, or a SHEAF_PROBLEM_ */
static int look(jqueue *q, jqueue_report *out, sheaf_error *err)
{
	io_stat st;
	bool whole = true;
	if (io_stat_fd_lean(q->fd, &st))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot look at the queue");
	out->size = st.size;
	int rc = follow_lines(q, st.size, &whole, err);
	out->bad_at = q->size;
	if (rc == SHEAF_FORMAT) {
		out->what = SHEAF_PROBLEM_FOREIGN;
		return 0;
	}
	if (rc <= 0)
		return rc;
	jtail_kind kind = bad_kind(q, st.size, whole);
	if (kind == JTAIL_FAILED)
		return err_sys(err, SHEAF_STORAGE, errno, "cannot read the queue");
	out->what = kind == JTAIL_TEAR ? SHEAF_PROBLEM_TORN : SHEAF_PROBLEM_DAMAGE;
	return 0;
}

/* Every line that verifies goes into the image. */
static int read_what_can_be(jqueue *q, uint64_t end, sheaf_error *err)
{
	_cleanup_(jlines_free) jlines lines = JLINES_INIT(q->fd, 0, end);
	jline line;
	int rc;
	queue_free(&q->items);
	q->bound = false;
	while ((rc = jlines_next(&lines, &line)) == 1) {
		if (!line.text.ptr || !record_crc_ok(line.text))
			continue;
		rc = jqueue_apply(q, line.text);
		if (rc == SHEAF_DAMAGED && !q->bound) {
			/* The first line is lost, and with it whose the rest is: the session's. */
			q->bound = true;
			rc = jqueue_apply(q, line.text);
		}
		if (rc == SHEAF_NOMEM)
			return err_nomem(err);
	}
	return rc < 0 ? err_sys(err, SHEAF_STORAGE, errno, "cannot read the queue") : 0;
}

static int repair(jqueue *q, const jqueue_report *found, int64_t created_us, sheaf_error *err)
{
	char name[256];
	int rc = jtail_keep(q->owner, q->session, "queue-damaged", q->fd, 0, found->size, name,
	                    err);
	if (rc == 0)
		rc = read_what_can_be(q, found->size, err);
	return rc ? rc : jqueue_write_anew(q, created_us, &q->items, err);
}

int jqueue_examine(jowner *o, const char *session, const int64_t *repair_created_us,
                   int64_t deadline_us, jqueue_report *out, sheaf_error *err)
{
	*out = (jqueue_report){0};
	jqueue *q = jqueue_new(o, session);
	if (!q)
		return err_nomem(err);
	int rc = open_file(q, err);
	if (rc == 0)
		rc = jlock_take(q->fd, repair_created_us ? F_WRLCK : F_RDLCK, deadline_us, err);
	if (rc == 0)
		rc = look(q, out, err);
	if (rc == 0 && repair_created_us && out->what == SHEAF_PROBLEM_DAMAGE)
		rc = repair(q, out, *repair_created_us, err);
	jqueue_free(q);
	return rc == 1 ? 0 : rc;
}
