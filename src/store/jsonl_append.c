/*
 * Appending: threads of a process queue at a log; one leads, takes the lock,
 * stamps and writes what all of them brought with one write(), syncs once if
 * any of them asked for it, and answers all.
 *
 * What a failure leaves:
 *   stamp refuses, lock not got      nothing was written             FAILED
 *   write fails or is short          cut back to where it was        FAILED
 *   … and cutting back fails too     perhaps there                   UNKNOWN
 *   fdatasync fails                  perhaps there, perhaps not:     UNKNOWN
 *                                    the file is sealed for every process, since
 *                                    a second sync would lie; the next writer
 *                                    copies what verifies to a new inode
 */
#include <errno.h>
#include <fcntl.h>

#include "base/clock.h"
#include "store/jsonl.h"

/* ---- Having a log to oneself --------------------------------------------------- */

/* The next in line: a waiting append leads, or else whoever waits for the whole log. */
static void pass_on(jlog *log)
{
	log->leader = false;
	if (log->idle_waiters)
		pthread_cond_broadcast(&log->led);
	if (log->first)
		pthread_cond_signal(&log->first->wake);
}

int jlog_lead(jlog *log, int64_t deadline_us, sheaf_error *err)
{
	pthread_mutex_lock(&log->mutex);
	while (log->leader) {
		if (clock_monotonic_us() > deadline_us) {
			pthread_mutex_unlock(&log->mutex);
			return err_set(err, SHEAF_BUSY, "the session is being written to");
		}
		log->idle_waiters++;
		pthread_cond_wait(&log->led, &log->mutex);
		log->idle_waiters--;
	}
	log->leader = true;
	return 0;
}

void jlog_unlead(jlog *log)
{
	pass_on(log);
	pthread_mutex_unlock(&log->mutex);
}

int jlock_take(int fd, short type, int64_t deadline_us, sheaf_error *err)
{
	for (int64_t pause = 50;; pause = pause * 2 > 5000 ? 5000 : pause * 2) {
		if (io_lock_try(fd, type) == 0)
			return 0;
		if (errno != EAGAIN && errno != EACCES)
			return err_sys(err, SHEAF_STORAGE, errno, "cannot lock the file");
		if (clock_monotonic_us() + pause > deadline_us)
			return err_set(err, SHEAF_BUSY, "another process holds the session's lock");
		clock_sleep_us(pause);
	}
}

/*
 * The lock of the file the log has now. Readers go on meanwhile: the mutex is
 * given up, so the file may be another one afterwards (1: look again).
 */
static int lock_file(jlog *log, int64_t deadline_us, sheaf_error *err)
{
	if (jlog_lock_now(log))
		return 0;
	_cleanup_(jfile_unrefp) jfile *file = jfile_ref(log->file);
	pthread_mutex_unlock(&log->mutex);
	int rc = jlock_take(file->fd, F_WRLCK, deadline_us, err);
	pthread_mutex_lock(&log->mutex);
	if (rc == 0 && log->file != file) {
		io_lock_try(file->fd, F_UNLCK);
		return 1;
	}
	log->held = rc == 0;
	return rc;
}

bool jlog_lock_now(jlog *log)
{
	log->held = io_lock_try(log->file->fd, F_WRLCK) == 0;
	return log->held;
}

void jlog_unlock(jlog *log)
{
	if (log->file && log->held)
		io_lock_try(log->file->fd, F_UNLCK);
	log->held = false;
}

/* The log as it is now, under the lock. 1: it was replaced, look again. */
static int settle(jlog *log, sheaf_error *err)
{
	io_stat st;

	if (io_stat_fd_lean(log->file->fd, &st))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot look at the log");
	if (st.links == 0 || st.size < log->size || (log->unconfirmed && !jlog_end_fits(log))) {
		jlog_unload(log);
		return 1;
	}
	log->unconfirmed = false;
	if (jlog_sealed(&st) || log->poisoned == st.inode) {
		int rc = jlog_follow(log, false, err);
		if (rc == 0)
			rc = jlog_rewrite(log, err);
		jlog_unlock(log);
		if (rc)
			return rc;
		jlog_unload(log);
		return 1;
	}
	if (st.size != log->size || log->needs_newline)
		return jlog_follow(log, true, err);
	return 0;
}

int jlog_sync(jlog *log, uint64_t upto)
{
	if (io_fdatasync(log->file->fd) == 0) {
		log->synced = upto;
		log->dirty = false;
		return 0;
	}
	int why = errno;
	if (io_fchmod(log->file->fd, S_IRUSR | S_IWUSR | S_ISVTX))
		log->poisoned = log->inode;
	errno = why;
	return -1;
}

static int lock_log(jlog *log, int64_t deadline_us, bool damaged_too, sheaf_error *err)
{
	for (int again = 0; again < 4; again++) {
		bool known = log->file != NULL;
		int rc = jlog_load(log, err);
		if (rc)
			return rc;
		if (known && !log->can_write && !log->foreign && !log->owner->store->readonly) {
			/* It could not be opened for writing then; perhaps now. */
			jlog_unload(log);
			continue;
		}
		if (log->readonly)
			return err_set(err, SHEAF_READONLY,
			               log->foreign ? "the file was not written by Sheaf"
			                            : "the session can only be read");
		rc = lock_file(log, deadline_us, err);
		if (rc > 0)
			continue;
		if (rc < 0)
			return rc;
		rc = settle(log, err);
		if (rc == 0 && log->damaged && !damaged_too) {
			rc = err_set(err, SHEAF_DAMAGED, "the session is damaged");
			err_hint(err, "sheaf check shows it, sheaf repair makes it writable");
		}
		if (rc < 0)
			jlog_unlock(log);
		if (rc <= 0)
			return rc;
	}
	return err_set(err, SHEAF_BUSY, "the session keeps being replaced");
}

int jlog_lock(jlog *log, int64_t deadline_us, sheaf_error *err)
{
	return lock_log(log, deadline_us, false, err);
}

int jlog_lock_damaged(jlog *log, int64_t deadline_us, sheaf_error *err)
{
	return lock_log(log, deadline_us, true, err);
}

/* ---- One group ------------------------------------------------------------------- */

typedef struct group {
	jlog *log;
	jwaiter *first;
	sheaf_head *head; /* after what was stamped so far: log->head or a spare */
	size_t mark;      /* log->tail_count before the group */
	size_t records;   /* in log->tail with the group's */
	bool sync;
} group;

/* Looks up the ids a request names. 1: some are there already. */
static int look_up(jlog *log, const sheaf_append_request *q, sheaf_append_reply *reply,
                   sheaf_error *err)
{
	reply->known = 0;
	for (size_t i = 0; i < q->id_count; i++) {
		q->seqs[i] = 0;
		int rc = jlog_look_up(log, q->ids[i], &q->seqs[i], true, err);
		if (rc != 0)
			return rc;
		reply->known += q->seqs[i] != 0;
	}
	return reply->known > 0;
}

/* Ids stamped earlier in this group are not on the disk yet, so find cannot see their lines. */
static bool stamped_before(const group *g, const jwaiter *w)
{
	const sheaf_append_request *q = w->request;
	for (size_t i = 0; i < q->id_count; i++) {
		uint64_t hash = str_hash(q->ids[i]);
		for (size_t k = g->mark; k < g->log->tail_count; k++)
			if (g->log->tail[k].hash == hash)
				return true;
	}
	return false;
}

static int add_rows(group *g, const sheaf_row *rows, size_t count, sheaf_error *err)
{
	jlog *log = g->log;
	size_t out_mark = log->out.len, tail_mark = log->tail_count, bytes = 0;
	int rc = 0;

	for (size_t i = 0; i < count; i++)
		bytes += rows[i].bytes.len + 1;
	(void)buf_reserve(&log->out, bytes);
	for (size_t i = 0; i < count && rc == 0; i++) {
		jslot slot = {.offset = log->size + log->out.len,
		              .hash = str_hash(rows[i].id),
		              .parent = rows[i].parent,
		              .length = (uint32_t)rows[i].bytes.len,
		              .kind = (uint8_t)rows[i].kind};
		buf_add(&log->out, rows[i].bytes.ptr, rows[i].bytes.len + 1);
		rc = buf_status(&log->out, err);
		if (rc == 0)
			rc = jlog_push(log, &slot, err);
	}
	if (rc) {
		log->out.len = out_mark;
		log->out.status = 0;
		jlog_drop_from(log, tail_mark);
	}
	return rc;
}

/* Stamps one request on top of what the group has. */
static void stamp(group *g, jwaiter *w)
{
	jlog *log = g->log;
	const sheaf_append_request *q = w->request;
	sheaf_head *next = g->head == log->spare[0] ? log->spare[1] : log->spare[0];
	const sheaf_row *rows = NULL;
	size_t count = 0;

	if (sheaf_head_hidden(g->head)) {
		w->rc = err_set(w->err, SHEAF_GONE, "the session was deleted");
		return;
	}
	w->rc = q->stamp(q->ctx, g->head, next, &rows, &count, w->err);
	/* He who brought it holds the state's lock. If the rows do not follow he takes it back. */
	if (w->rc == 0 && q->user_state_count)
		w->rc = jstate_line(log->owner, log->session, q, rows[count - 1].id,
		                    q->durability >= SHEAF_DURABILITY_DISK, w->err);
	if (w->rc == 0)
		w->rc = add_rows(g, rows, count, w->err);
	if (w->rc)
		return;
	w->stamped = true;
	g->head = next;
	if (q->durability >= SHEAF_DURABILITY_DISK)
		g->sync = true;
}

/* The write and the sync. The outcome for all that were stamped. */
static int commit(group *g, sheaf_error *err)
{
	jlog *log = g->log;

	ssize_t n = io_write(log->file->fd, log->out.ptr, log->out.len);
	if (n != (ssize_t)log->out.len) {
		int rc = err_sys(err, SHEAF_STORAGE, n < 0 ? errno : ENOSPC,
		                 "cannot write to the log");
		/* Synced too: what is called FAILED must not come back with a power cut. */
		if (io_ftruncate(log->file->fd, (off_t)log->size) == 0 &&
		    (n <= 0 || jlog_sync(log, log->size) == 0))
			return rc;
		return err_unknown(err, rc);
	}
	uint64_t end = log->size + log->out.len;
	if (!g->sync && end - log->synced <= JSONL_UNSYNCED_MAX &&
	    g->records < JSONL_INDEX_RECORDS_FORCE)
		return 0;
	if (jlog_sync(log, end))
		return err_unknown(err, err_sys(err, SHEAF_STORAGE, errno, "cannot sync the log"));
	return 0;
}

static void note_last(jlog *log)
{
	/* The line's own text is at the end of what was written. */
	log->last_crc = jline_crc(str_make(log->out.ptr, log->out.len - 1));
	log->last_id = (sheaf_str){NULL, 0};
	log->last_id_seq = 0;
}

/* After the commit: what was stamped is now the log. */
static void publish(group *g)
{
	jlog *log = g->log;
	log->size += log->out.len;
	log->dirty = log->synced < log->size;
	log->file_seen = log->size;
	note_last(log);
	sheaf_head *old = log->head;
	log->head = g->head;
	if (log->spare[0] == g->head)
		log->spare[0] = old;
	else
		log->spare[1] = old;
}

/* A session whose time is over takes only what brings it back. */
static void refuse_expired(group *g)
{
	int expired = jlog_expired(g->log);

	for (jwaiter *w = g->first; w && expired; w = w->next)
		if (expired == SHEAF_EXPIRY_OVER)
			w->rc = err_set(w->err, SHEAF_GONE, "the session was deleted");
		else if (!w->request->revive)
			w->rc = err_set(w->err, SHEAF_EXPIRED, "the session has expired");
}

/*
 * Which ids are there already. This comes before any stamping: it may find the
 * sidecar wrong, and then everything that is known changes. What is there needs
 * no write, but it must be as durable as was asked for: who wrote it may have
 * died before he synced it.
 */
static int look_up_all(group *g, sheaf_error *err)
{
	jlog *log = g->log;

	for (jwaiter *w = g->first; w; w = w->next) {
		if (w->rc)
			continue;
		int known = look_up(log, w->request, w->reply, w->err);
		w->rc = known > 0 ? 0 : known;
		if (known < 0 && !log->file) {
			*err = *w->err;
			return known;
		}
		if (known > 0 && w->request->durability >= SHEAF_DURABILITY_DISK)
			g->sync = true;
	}
	/* Looking for an id may have shown that an old record cannot be read. */
	return log->damaged ? err_set(err, SHEAF_DAMAGED, "the session is damaged") : 0;
}

static void stamp_all(group *g)
{
	g->mark = g->log->tail_count;
	g->head = g->log->head;
	for (jwaiter *w = g->first; w; w = w->next) {
		if (w->rc || w->reply->known)
			continue;
		if (!stamped_before(g, w))
			stamp(g, w);
		else
			w->again = true; /* when the line can be read */
	}
}

/*
 * Writes what was stamped. The mutex is not held meanwhile: leadership keeps
 * others from changing the log, and readers go on with what was acknowledged.
 */
static int write_group(group *g, sheaf_error *err)
{
	jlog *log = g->log;
	int rc = 0;

	if (log->out.len == 0 && (!g->sync || log->synced >= log->size))
		return 0;
	g->records = log->tail_count;
	log->tail_count = g->mark; /* readers see it when it is acknowledged */
	pthread_mutex_unlock(&log->mutex);
	if (log->out.len)
		rc = commit(g, err);
	else if (jlog_sync(log, log->size))
		rc = err_unknown(err, err_sys(err, SHEAF_STORAGE, errno, "cannot sync the log"));
	pthread_mutex_lock(&log->mutex);
	log->tail_count = g->records;
	if (rc) {
		jlog_drop_from(log, g->mark);
	} else if (log->out.len) {
		publish(g);
		jlog_cover(log, false);
	}
	return rc;
}

static void answer(group *g, int rc, const sheaf_error *err)
{
	const jlog *log = g->log;
	bool durable = rc == 0 && log->synced >= log->size;

	for (jwaiter *w = g->first; w; w = w->next) {
		bool waits = w->stamped || (w->reply->known && !w->rc &&
		                            w->request->durability >= SHEAF_DURABILITY_DISK);
		if (waits && rc) {
			w->rc = rc;
			*w->err = *err;
			/* What was there before is there still; only how well is not known. */
			if (!w->stamped)
				err_unknown(w->err, rc);
		}
		if (w->stamped || w->reply->known)
			w->reply->durability = durable ? SHEAF_DURABILITY_DISK
			                               : SHEAF_DURABILITY_PROCESS;
	}
}

static void run_group(group *g)
{
	jlog *log = g->log;
	sheaf_error err;
	int64_t deadline_us = 0;

	/* The most patient of them: the others wait for what is done for him. */
	for (jwaiter *w = g->first; w; w = w->next)
		if (w->request->deadline_us > deadline_us)
			deadline_us = w->request->deadline_us;
	int rc = jlog_lock(log, deadline_us, &err);

	if (rc == 0) {
		refuse_expired(g);
		rc = look_up_all(g, &err);
	}
	if (rc) {
		for (jwaiter *w = g->first; w; w = w->next) {
			w->rc = rc;
			*w->err = err;
		}
		jlog_unlock(log);
		return;
	}
	buf_reset(&log->out);
	stamp_all(g);
	bool wrote = log->out.len != 0;
	rc = write_group(g, &err);
	answer(g, rc, &err);
	jlog_unlock(log);
	if (rc)
		jlog_unload(log); /* look again at what is there */
	else if (wrote)
		jcatalogue_touch(log);
}

/* Takes waiting requests, at least one, until they would fill one write. Mutex held. */
static void take_group(jlog *log, group *g)
{
	size_t bytes = 0;
	jwaiter **end = &log->first;

	g->first = log->first;
	do {
		bytes += (*end)->request->bytes_hint;
		end = &(*end)->next;
	} while (*end && bytes + (*end)->request->bytes_hint <= JSONL_GROUP_BYTES);
	log->first = *end;
	*end = NULL;
	if (!log->first)
		log->last = NULL;
}

static void enqueue(jlog *log, jwaiter *w)
{
	w->next = NULL;
	if (log->last)
		log->last->next = w;
	else
		log->first = w;
	log->last = w;
}

/* Leads one group: own request first or not, all are answered. Mutex held. */
static void lead(jlog *log, jwaiter *self)
{
	group g = {.log = log};

	log->leader = true;
	take_group(log, &g);
	run_group(&g);
	for (jwaiter *w = g.first, *next; w; w = next) {
		next = w->next;
		if (w->again) {
			w->again = false;
			enqueue(log, w);
			continue;
		}
		w->done = true;
		if (w != self)
			pthread_cond_signal(&w->wake);
	}
	pass_on(log);
}

/* Waits until the request was written, by this thread or another. */
static int append_queued(jlog *log, jwaiter *self)
{
	pthread_cond_init(&self->wake, NULL);
	pthread_mutex_lock(&log->mutex);
	enqueue(log, self);
	while (!self->done) {
		if (!log->leader) {
			lead(log, self);
		} else {
			pthread_cond_wait(&self->wake, &log->mutex);
		}
	}
	pthread_mutex_unlock(&log->mutex);
	pthread_cond_destroy(&self->wake);
	return self->rc;
}

/* The same with user state, whose lock comes first. */
static int append_with_state(jlog *log, jwaiter *self)
{
	const sheaf_append_request *q = self->request;
	jowner *o = log->owner;
	int rc = jstate_begin(o, q->deadline_us, self->err);
	if (rc)
		return rc;
	rc = append_queued(log, self);
	jstate_done(o, log->session, rc, rc ? self->err->outcome : 0);
	if (rc == 0 && q->durability >= SHEAF_DURABILITY_DISK)
		rc = jstate_make_durable(o, self->err);
	if (rc == 0 && !jstate_durable(o) && self->reply->durability > SHEAF_DURABILITY_PROCESS)
		self->reply->durability = SHEAF_DURABILITY_PROCESS;
	jstate_end(o);
	return rc;
}

static int append_existing(jstore *js, const sheaf_store_key *key,
                           const sheaf_append_request *request, sheaf_append_reply *reply,
                           sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	jwaiter self = {.request = request, .reply = reply, .err = err};
	int rc = jlog_get(js, key, &log, err);

	if (rc)
		return rc;
	return request->user_state_count ? append_with_state(log, &self)
	                                 : append_queued(log, &self);
}

int jsonl_append(void *backend, const sheaf_store_key *key, const sheaf_append_request *request,
                 sheaf_append_reply *reply, sheaf_error *err)
{
	reply->known = 0;
	if (request->create)
		return jsonl_create(backend, key, request, reply, err);
	return append_existing(backend, key, request, reply, err);
}
