/*
 * Check and repair: reading every byte of a log, and making a damaged one
 * writable again without changing or dropping anything that can be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/clock.h"
#include "store/jsonl.h"

#define CHECK_WAIT_US INT64_C(10000000) /* for the lock of a queue */

typedef struct checking {
	jowner *o;
	const char *session;
	sheaf_problem_fn fn;
	void *ctx;
	sheaf_check_totals *totals;
} checking;

static int report(const checking *k, int32_t what, uint64_t seq, uint64_t offset, uint64_t bytes,
                  const char *detail)
{
	sheaf_problem p = {.what = what,
	                   .app = sheaf_str_of(k->o->app),
	                   .user = sheaf_str_of(k->o->user),
	                   .session = sheaf_str_of(k->session),
	                   .seq = seq,
	                   .offset = offset,
	                   .bytes = bytes,
	                   .detail = sheaf_str_of(detail)};
	return k->fn(k->ctx, &p);
}

/* One problem for each hole: neighbours that share their bytes are one. */
static int report_holes(const checking *k, jlog *log, sheaf_error *err)
{
	uint64_t total = jlog_count(log), last = UINT64_MAX;
	jslot slots[256];
	bool any = false;

	for (uint64_t at = 0; at < total; at += COUNT_OF(slots)) {
		size_t n = total - at < COUNT_OF(slots) ? (size_t)(total - at) : COUNT_OF(slots);
		int rc = jlog_slots(log, at, n, slots, err);
		for (size_t i = 0; rc == 0 && i < n; i++) {
			if (!(slots[i].flags & JSLOT_DAMAGED))
				continue;
			any = true;
			if (slots[i].offset != last)
				rc = report(k, SHEAF_PROBLEM_DAMAGE, log->base + at + i + 1,
				            slots[i].offset, slots[i].length,
				            "a record cannot be read");
			last = slots[i].offset;
		}
		if (rc)
			return rc;
	}
	if (any)
		return 0;
	return report(k, SHEAF_PROBLEM_DAMAGE, 0, log->size, 0,
	              "records are there twice or out of order");
}

/* A bad tail under a lock that keeps writers out: is it really one? */
static int look_at_tail(const checking *k, jlog *log, sheaf_error *err)
{
	bool shared = false;
	for (int i = 0; i < 200 && !shared; i++) {
		shared = io_lock_try(log->file->fd, F_RDLCK) == 0;
		if (!shared)
			clock_sleep_us(1000);
	}
	int rc = jlog_follow(log, false, err);
	jlog_unlock(log);
	if (rc || log->tail_bytes == 0 || log->damaged)
		return rc;
	return report(k, SHEAF_PROBLEM_TORN, sheaf_head_revision(log->head) + 1, log->size,
	              log->tail_bytes, "bytes after the last complete batch");
}

/* Every session a fork reads must be there and long enough. Of a hidden one that does not matter:
 * whoever reads it has the same links, and if nobody does it only waits to be removed. */
static int check_links(const checking *k, jlog *log, sheaf_error *err)
{
	sheaf_str session;
	uint64_t base;

	if (sheaf_head_hidden(log->head))
		return 0;
	for (size_t i = 0; sheaf_head_link(log->head, i, &session, &base); i++) {
		_cleanup_(jlog_putp) jlog *source = NULL;
		char name[SHEAF_KEY_PART_ROOM];
		snprintf(name, sizeof(name), "%.*s", (int)session.len, session.ptr);
		int rc = jlog_get_named(k->o, name, &source, err);
		if (rc)
			return rc;
		pthread_mutex_lock(&source->mutex);
		rc = jlog_refresh(source, err);
		bool ok = rc == 0 && sheaf_head_revision(source->head) >= base;
		pthread_mutex_unlock(&source->mutex);
		if (rc && rc != SHEAF_NOT_FOUND && rc != SHEAF_DAMAGED)
			return rc;
		if (!ok)
			rc = report(k, SHEAF_PROBLEM_FORK, base, 0, 0,
			            "the session it was forked from is not there or too short");
		if (!ok && rc)
			return rc;
	}
	return 0;
}

static int report_queue(const checking *k, const jqueue_report *q)
{
	k->totals->bytes += q->size;
	if (q->what == 0)
		return 0;
	return report(k, q->what, 0, q->bad_at, q->size - q->bad_at,
	              q->what == SHEAF_PROBLEM_TORN     ? "bytes after the last line of its queue"
	              : q->what == SHEAF_PROBLEM_DAMAGE ? "a line of its queue cannot be read"
	                                                : "its queue is of a newer version");
}

static int check_queue(const checking *k, sheaf_error *err)
{
	jqueue_report found;
	if (k->o->store->single)
		return 0;
	int rc = jqueue_examine(k->o, k->session, NULL, clock_monotonic_us() + CHECK_WAIT_US,
	                        &found, err);
	return rc ? rc : report_queue(k, &found);
}

/* Reads one log from its first byte, with nothing derived. */
static int check_log(const checking *k, sheaf_error *err)
{
	jlog *log = jlog_private(k->o, k->session);
	int rc;

	if (!log)
		return err_nomem(err);
	pthread_mutex_lock(&log->mutex);
	rc = jlog_load(log, err);
	if (rc == 0 && log->tail_bytes && !log->damaged && !log->foreign)
		rc = look_at_tail(k, log, err);
	if (rc == 0 && log->damaged)
		rc = report_holes(k, log, err);
	if (rc == 0 && log->foreign)
		rc = report(k, SHEAF_PROBLEM_FOREIGN, 0, 0, log->size,
		            "not written by Sheaf; only read");
	if (rc == 0)
		rc = check_links(k, log, err);
	if (rc == 0) {
		k->totals->sessions++;
		k->totals->records += jlog_count(log);
		k->totals->bytes += log->size;
	}
	pthread_mutex_unlock(&log->mutex);
	jlog_free(log);
	if (rc == SHEAF_DAMAGED)
		return report(k, SHEAF_PROBLEM_DAMAGE, 0, 0, 0, "the header cannot be read");
	if (rc == SHEAF_FORMAT || rc == SHEAF_DENIED)
		return report(k, SHEAF_PROBLEM_FOREIGN, 0, 0, 0, "not a session");
	return rc == 0 ? check_queue(k, err) : rc;
}

/* ---- Kept bytes --------------------------------------------------------------------------- */

typedef struct kept {
	const checking *k;
	int dir;
	const char *only; /* one session, or NULL */
} kept;

static int report_kept(void *ctx, const char *name, unsigned char type)
{
	kept *x = ctx;
	char session[SHEAF_KEY_PART_ROOM];
	const char *dot = strrchr(name, '.');
	io_stat st;
	(void)type;

	if (!dot || (size_t)(dot - name) >= sizeof(session) || io_stat_at(x->dir, name, &st))
		return 0;
	snprintf(session, sizeof(session), "%.*s", (int)(dot - name), name);
	if (x->only && strcmp(session, x->only) != 0)
		return 0;
	checking k = *x->k;
	k.session = session;
	return report(&k, SHEAF_PROBLEM_KEPT, 0, 0, st.size, name);
}

static int check_kept(const checking *k, const char *only, sheaf_error *err)
{
	_cleanup_(io_closep) int dir = io_open(k->o->dir, JSONL_KEPT_DIR, O_RDONLY | O_DIRECTORY,
	                                       0);
	kept x = {k, dir, only};
	int rc;

	if (dir < 0)
		return 0;
	rc = io_each_name(dir, report_kept, &x);
	return rc == -1 ? err_sys(err, SHEAF_STORAGE, errno, "cannot read a directory") : rc;
}

static int64_t check_deadline(void)
{
	return clock_monotonic_us() + INT64_C(10) * 1000000;
}

/* ---- State -------------------------------------------------------------------------------- */

/* The state that lies in a directory: of a user, or of an app. */
static int check_state(const checking *k, bool app, bool mend, int64_t deadline_us,
                       sheaf_error *err)
{
	jstate_report found;
	int rc = jstate_examine(k->o, app, false, deadline_us, &found, err);
	if (rc)
		return rc;
	if (!found.what || (mend && found.what != SHEAF_PROBLEM_DAMAGE))
		return 0;
	checking own = *k;
	own.session = "";
	rc = report(&own, found.what, 0, found.bad_at, found.size - found.bad_at,
	            found.what == SHEAF_PROBLEM_TORN      ? "torn bytes at the end of the state"
	            : found.what == SHEAF_PROBLEM_FOREIGN ? "state of a newer version"
	            : app                                 ? "the app's state is damaged"
	                                                  : "the user's state is damaged");
	return rc || !mend ? rc : jstate_examine(k->o, app, true, deadline_us, &found, err);
}

static int check_app_state(const checking *k, jstore *js, const char *app, bool mend,
                           int64_t deadline_us, sheaf_error *err)
{
	checking own = *k;
	int rc = jowner_app(js, sheaf_str_of(app), false, &own.o, err);
	if (rc)
		return rc == SHEAF_NOT_FOUND ? 0 : rc;
	rc = check_state(&own, true, mend, deadline_us, err);
	jowner_app_put(own.o);
	return rc;
}

/* ---- Everything ------------------------------------------------------------------------------ */

typedef struct walk {
	checking k;
	sheaf_error *err;
} walk;

static int check_name(void *ctx, const char *name, unsigned char type)
{
	walk *w = ctx;
	char session[SHEAF_KEY_PART_ROOM];
	size_t len = strlen(name);
	(void)type;

	if (name[0] == '.' || len < 7 || strcmp(name + len - 6, ".jsonl") != 0 ||
	    len - 6 >= sizeof(session))
		return 0;
	snprintf(session, sizeof(session), "%.*s", (int)(len - 6), name);
	w->k.session = session;
	int rc = check_log(&w->k, w->err);
	return rc == SHEAF_NOT_FOUND ? 0 : rc;
}

static int check_owner(jstore *js, sheaf_str app, sheaf_str user, walk *w)
{
	_cleanup_(jowner_putp) jowner *o = NULL;
	int rc = jowner_open(js, app, user, false, &o, w->err);

	if (rc)
		return rc == SHEAF_NOT_FOUND ? 0 : rc;
	w->k.o = o;
	rc = io_each_name(o->dir, check_name, w);
	if (rc == -1)
		return err_sys(w->err, SHEAF_STORAGE, errno, "cannot read a directory");
	if (rc == 0)
		rc = check_kept(&w->k, NULL, w->err);
	return rc ? rc : check_state(&w->k, false, false, check_deadline(), w->err);
}

static int check_one(jstore *js, const sheaf_store_key *key, walk *w)
{
	_cleanup_(jowner_putp) jowner *o = NULL;
	int rc = jowner_get(js, key, false, &o, w->err);

	if (rc)
		return rc;
	if (js->single && strcmp(key->session.ptr, js->single_session) != 0)
		return err_set(w->err, SHEAF_NOT_FOUND, "no such session");
	w->k.o = o;
	w->k.session = key->session.ptr;
	rc = check_log(&w->k, w->err);
	return rc ? rc : check_kept(&w->k, key->session.ptr, w->err);
}

typedef struct owner_walk {
	jstore *js;
	walk *w;
	const char *app;
	int depth;
} owner_walk;

static int each_owner(void *ctx, const char *name, unsigned char type)
{
	owner_walk *ow = ctx;
	size_t len = strlen(name);
	(void)type;

	if (name[0] == '.' || len >= SHEAF_KEY_PART_ROOM ||
	    (len > 6 && strcmp(name + len - 6, ".jsonl") == 0))
		return 0;
	if (ow->app)
		return check_owner(ow->js, sheaf_str_of(ow->app), sheaf_str_of(name), ow->w);
	_cleanup_(io_closep) int dir = io_open(ow->js->root, name, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return 0;
	int rc = check_app_state(&ow->w->k, ow->js, name, false, check_deadline(), ow->w->err);
	if (rc)
		return rc;
	owner_walk users = {ow->js, ow->w, name, 1};
	return io_each_name(dir, each_owner, &users);
}

int jsonl_check(void *backend, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
                sheaf_check_totals *totals, sheaf_error *err)
{
	jstore *js = backend;
	walk w = {.k = {.fn = fn, .ctx = ctx, .totals = totals}, .err = err};
	int rc;

	*totals = (sheaf_check_totals){0};
	if (key)
		return check_one(js, key, &w);
	if (js->single) {
		w.k.o = js->single_owner;
		w.k.session = js->single_session;
		return check_log(&w.k, err);
	}
	rc = check_owner(js, sheaf_str_of("%"), sheaf_str_of("%"), &w);
	owner_walk apps = {js, &w, NULL, 0};
	if (rc == 0)
		rc = io_each_name(js->root, each_owner, &apps);
	return rc == -1 ? err_sys(err, SHEAF_STORAGE, errno, "cannot read a directory") : rc;
}

/* ---- Repair ------------------------------------------------------------------------------------ */

/* Writes every record, and a `lost` one for each that cannot be read. */
static int write_repaired(jlog *log, int fd, sheaf_error *err)
{
	_cleanup_(buf_free) buf line = BUF_INIT(SHEAF_RECORD_BYTES_MAX + 4096);
	uint64_t total = jlog_count(log);
	jslot slot;
	int rc = jlog_header_line(log, &line, err);

	if (rc == 0 && io_write_full(fd, line.ptr, line.len + 1))
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot write the repaired log");
	for (uint64_t i = 0; rc == 0 && i < total; i++) {
		rc = jlog_slots(log, i, 1, &slot, err);
		if (rc)
			break;
		buf_reset(&line);
		if (slot.flags & JSLOT_DAMAGED) {
			rc = record_write_lost(&line, log->base + i + 1, err);
			if (rc == 0 && io_write_full(fd, line.ptr, line.len))
				rc = err_sys(err, SHEAF_STORAGE, errno,
				             "cannot write the repaired log");
			continue;
		}
		rc = jcopy_range(log->file->fd, slot.offset, slot.offset + slot.length, fd, err);
		if (rc == 0 && io_write_full(fd, "\n", 1))
			rc = err_sys(err, SHEAF_STORAGE, errno, "cannot write the repaired log");
	}
	return rc;
}

static int repair_locked(jlog *log, const checking *k, sheaf_error *err)
{
	_cleanup_(io_closep) int fd = -1;
	char tmp[JSONL_TMP_ROOM], name[256];
	io_stat st;
	int rc = report_holes(k, log, err);

	if (rc == 0 && io_stat_fd(log->file->fd, &st))
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot look at the log");
	if (rc == 0)
		rc = jtail_keep(log->owner, log->session, "damaged", log->file->fd, 0, st.size,
		                name, err);
	if (rc)
		return rc;
	int got = jtmp_open(log->owner, log->session, tmp, err);
	if (got < 0)
		return got;
	fd = got;
	rc = write_repaired(log, fd, err);
	if (rc == 0)
		rc = jtmp_install(log, fd, tmp, err);
	if (rc)
		jtmp_unlink(log->owner, tmp);
	else
		jindex_remove(jowner_side(log->owner), log->session);
	return rc;
}

/* The queue is repaired whether or not its log is damaged. What is found is told first. */
static int repair_queue(const checking *k, int64_t created_us, int64_t deadline_us,
                        sheaf_error *err)
{
	jqueue_report found;
	int rc = jqueue_examine(k->o, k->session, NULL, deadline_us, &found, err);
	if (rc || found.what != SHEAF_PROBLEM_DAMAGE)
		return rc;
	rc = report_queue(k, &found);
	return rc ? rc : jqueue_examine(k->o, k->session, &created_us, deadline_us, &found, err);
}

static int repair_both(jlog *log, const checking *k, int64_t deadline_us, sheaf_error *err)
{
	sheaf_session_info info;
	int rc = 0;
	bool damaged = log->damaged;
	sheaf_head_info(log->head, &info);
	int64_t created_us = info.created_us;
	bool queue = !log->owner->store->single && !sheaf_head_hidden(log->head);
	if (damaged)
		rc = repair_locked(log, k, err);
	if (rc == 0 && queue)
		rc = repair_queue(k, created_us, deadline_us, err);
	return rc && damaged ? err_unknown(err, rc) : rc;
}

static int repair_session(jlog *log, checking *k, int64_t deadline_us, sheaf_error *err)
{
	sheaf_check_totals *totals = k->totals;
	int rc = jlog_lead(log, deadline_us, err);
	if (rc)
		return rc;
	/* Read it anew and without the sidecar: that is how damage in old records is found. */
	jlog_unload(log);
	log->hands_off = true;
	rc = jlog_lock_damaged(log, deadline_us, err);
	if (rc == SHEAF_DAMAGED)
		rc = err_set(err, SHEAF_FORMAT, "the header cannot be read");
	if (rc == 0)
		rc = repair_both(log, k, deadline_us, err);
	if (log->file) {
		totals->sessions = 1;
		totals->records = jlog_count(log);
		totals->bytes = log->size;
	}
	jlog_unload(log);
	log->hands_off = false;
	jlog_unlead(log);
	return rc;
}

/* The state of its user and app too: no other key leads there. */
int jsonl_repair(void *backend, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
                 sheaf_check_totals *totals, int64_t deadline_us, sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	checking k = {.fn = fn, .ctx = ctx, .totals = totals};
	bool held = false;
	int rc = jlog_get(backend, key, &log, err);

	*totals = (sheaf_check_totals){0};
	if (rc)
		return rc;
	k.o = log->owner;
	k.session = log->session;
	if (!k.o->store->single) {
		rc = check_state(&k, false, true, deadline_us, err);
		if (rc == 0)
			rc = check_app_state(&k, k.o->store, k.o->app, true, deadline_us, err);
	}
	/* A record that is lost takes nothing with it that it has set. */
	if (rc == 0)
		rc = jstate_hold(k.o, log->session, deadline_us, &held, err);
	if (rc)
		return rc;
	rc = repair_session(log, &k, deadline_us, err);
	if (held)
		jstate_end(k.o);
	return rc;
}
