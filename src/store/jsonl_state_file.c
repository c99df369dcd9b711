/*
 * The file of a user's or an app's state: its lines, following it, settling its
 * last line, moving a tear away, writing it anew, check and repair.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "entry/check.h"
#include "entry/members.h"
#include "store/jsonl_state.h"

#define KEPT_NAME ".state" /* no session begins with a dot */
#define LINE_BYTES ((size_t)1 << 20)

jstate *jstate_new(jowner *o, bool app)
{
	jstate *s = mem_zalloc(sizeof(*s));
	if (!s)
		return NULL;
	pthread_mutex_init(&s->mutex, NULL);
	s->owner = o;
	s->app = app;
	s->fd = -1;
	s->out = (buf)BUF_INIT(SIZE_MAX);
	return s;
}

void jstate_unload(jstate *s)
{
	io_closep(&s->fd);
	s->fd = -1;
	image_unref(s->image);
	image_unref(s->next);
	s->image = s->next = NULL;
	s->size = s->synced = s->next_size = 0;
	s->last_session[0] = 0;
}

void jstate_free(jstate *s)
{
	if (!s)
		return;
	jstate_unload(s);
	buf_free(&s->out);
	pthread_mutex_destroy(&s->mutex);
	mem_free(s);
}

void jstate_leave(jstate *s)
{
	/* A lock that cannot be given up goes with its descriptor. */
	if (s->fd >= 0 && io_lock_try(s->fd, F_UNLCK))
		jstate_unload(s);
}

int jstate_sync(jstate *s)
{
	if (io_fdatasync(s->fd) == 0)
		return 0;
	int why = errno;
	if (io_fchmod(s->fd, S_IRUSR | S_IWUSR | S_ISVTX))
		s->poisoned = s->inode;
	errno = why;
	return -1;
}

/* ---- Lines: writing ---------------------------------------------------------------- */

void jstate_write_user(buf *out, const char *session, sheaf_str id, const sheaf_state_item *items,
                       size_t count)
{
	size_t start = out->len;
	buf_lit(out, "{\"type\":\"user_state\"");
	if (session) {
		buf_lit(out, ",\"session\":");
		buf_json(out, sheaf_str_of(session));
		buf_lit(out, ",\"id\":");
		buf_json(out, id);
	}
	buf_lit(out, ",\"values\":{");
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_char(out, ',');
		buf_json(out, items[i].key);
		buf_char(out, ':');
		buf_str(out, items[i].value.ptr ? items[i].value : SHEAF_STR("null"));
	}
	buf_char(out, '}');
	record_seal(out, start);
}

void jstate_write_settled(buf *out)
{
	size_t start = out->len;
	buf_lit(out, "{\"type\":\"settled\"");
	record_seal(out, start);
}

static void write_app_line(buf *out, const sheaf_state_item *items, size_t count)
{
	size_t start = out->len;
	buf_lit(out, "{\"type\":\"app_state\",\"values\":{");
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_char(out, ',');
		buf_json(out, items[i].key);
		buf_format(out, ":{\"time_us\":%lld,\"id\":", (long long)items[i].time_us);
		buf_json(out, items[i].id);
		if (items[i].value.ptr) {
			buf_lit(out, ",\"value\":");
			buf_str(out, items[i].value);
		}
		buf_char(out, '}');
	}
	buf_char(out, '}');
	record_seal(out, start);
}

void jstate_write_app(buf *out, const sheaf_state_item *items, size_t count)
{
	for (size_t first = 0, i = 0, bytes = 0; i < count; i++) {
		bytes += items[i].key.len + items[i].value.len + SHEAF_ID_BYTES_MAX;
		if (bytes < LINE_BYTES && i + 1 < count)
			continue;
		write_app_line(out, items + first, i + 1 - first);
		first = i + 1;
		bytes = 0;
	}
}

/* ---- Lines: reading ---------------------------------------------------------------- */

/* A line taken apart; views into it, or into the arena. */
typedef struct line_parts {
	sheaf_str type;
	sheaf_str session; /* ptr NULL: none */
	sheaf_str id;
	sheaf_str values; /* what is between the braces */
} line_parts;

static int quoted(sheaf_str *out, sheaf_str value, arena *a)
{
	int rc = check_unescape(out, value, a);
	return rc == SHEAF_FORMAT ? SHEAF_DAMAGED : rc;
}

static int take_apart(line_parts *out, sheaf_str text, arena *a)
{
	sheaf_str inside = {text.ptr + 1, text.len - 1}, key, value;
	int rc = 0;
	*out = (line_parts){0};
	for (size_t at = 0; rc == 0 && members_next(inside, &at, &key, &value);) {
		if (members_key_is(key, "type"))
			rc = quoted(&out->type, value, a);
		else if (members_key_is(key, "session"))
			rc = quoted(&out->session, value, a);
		else if (members_key_is(key, "id"))
			rc = quoted(&out->id, value, a);
		else if (members_key_is(key, "values"))
			out->values = members_inside(value);
	}
	return rc;
}

static int read_app_item(sheaf_state_item *item, sheaf_str object, arena *a)
{
	sheaf_str inside = members_inside(object), key, value;
	int rc = 0;
	for (size_t at = 0; rc == 0 && members_next(inside, &at, &key, &value);) {
		if (members_key_is(key, "id"))
			rc = quoted(&item->id, value, a);
		else if (members_key_is(key, "value"))
			item->value = value;
		else if (members_key_is(key, "time_us"))
			item->time_us = strtoll(value.ptr, NULL, 10); /* a brace or comma ends it */
	}
	return rc;
}

/* A verified line into the image that is being built. SHEAF_DAMAGED, SHEAF_FORMAT, SHEAF_NOMEM. */
static int apply_line(const jstate *s, image_builder *b, sheaf_str text, char *last_session)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	line_parts p;
	sheaf_str key, value;
	int rc = a ? take_apart(&p, text, a) : SHEAF_NOMEM;
	if (rc)
		return rc;
	snprintf(last_session, SHEAF_KEY_PART_ROOM, "%.*s", (int)p.session.len,
	         p.session.ptr ? p.session.ptr : "");
	if (!s->app && str_is(p.type, "settled"))
		return 0;
	if (!str_is(p.type, s->app ? "app_state" : "user_state"))
		return SHEAF_FORMAT;
	for (size_t at = 0; rc == 0 && members_next(p.values, &at, &key, &value);) {
		sheaf_state_item item = {.value = value};
		rc = quoted(&item.key, str_make(key.ptr - 1, key.len + 2), a);
		if (rc == 0 && s->app) {
			item.value = str_make(NULL, 0);
			rc = read_app_item(&item, value, a);
		} else if (str_is(value, "null")) {
			item.value = str_make(NULL, 0);
		}
		if (rc == 0)
			rc = image_add(b, &item, true);
	}
	return rc;
}

/* ---- Following --------------------------------------------------------------------- */

typedef struct follow {
	jstate *s;
	image_builder b;
	buf held;         /* the last whole line: it may not count */
	uint64_t held_at; /* where it begins */
	uint64_t good;    /* where whole lines end */
	bool whole;       /* the bad line there has its line break */
	char last_session[SHEAF_KEY_PART_ROOM];
} follow;

static void follow_end(follow *f)
{
	image_end(&f->b);
	buf_free(&f->held);
}

static int follow_begin(follow *f, jstate *s, sheaf_error *err)
{
	*f = (follow){.s = s, .held = BUF_INIT(SIZE_MAX), .good = s->size, .held_at = s->size};
	snprintf(f->last_session, sizeof(f->last_session), "%s", s->last_session);
	return image_begin(&f->b, s->image, s->app) ? err_nomem(err) : 0;
}

static int take_held(follow *f)
{
	if (f->held.len == 0)
		return 0;
	int rc = apply_line(f->s, &f->b, buf_view(&f->held), f->last_session);
	buf_reset(&f->held);
	f->held_at = f->good;
	return rc;
}

static int read_error(sheaf_error *err)
{
	return errno == ENOMEM ? err_nomem(err)
	                       : err_sys(err, SHEAF_STORAGE, errno, "cannot read the state");
}

/* Reads lines up to `end`; the last stays held. 1: the one at f->good is bad. With `all` bad ones
 * are passed over. */
static int follow_lines(follow *f, uint64_t end, bool all, sheaf_error *err)
{
	_cleanup_(jlines_free) jlines lines = JLINES_INIT(f->s->fd, f->good, end);
	jline line;
	int rc;

	while ((rc = jlines_next(&lines, &line)) == 1) {
		f->whole = line.terminated;
		bool ok = line.terminated && line.text.ptr && record_crc_ok(line.text);
		if (!ok && all)
			continue;
		if (!ok)
			return 1;
		rc = take_held(f);
		if (rc == SHEAF_NOMEM)
			return err_nomem(err);
		if (rc == SHEAF_FORMAT && !all)
			return err_set(err, rc, "the state was written by a newer version");
		if (rc && !all)
			return err_set(err, SHEAF_DAMAGED, "the state is damaged");
		f->held_at = line.offset;
		f->good = line.offset + line.length + 1;
		buf_str(&f->held, line.text);
		if (f->held.status)
			return err_nomem(err);
	}
	return rc < 0 ? read_error(err) : 0;
}

/* Whether the record of a line is in its session: 1, 0, or what kept us from knowing. A writer
 * takes the session's lock, so that what a crash left there is dealt with. */
static int record_there(jowner *o, sheaf_str session, sheaf_str id, bool write, int64_t deadline_us,
                        sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	char name[SHEAF_KEY_PART_ROOM];
	sheaf_error local;
	uint64_t seq;

	snprintf(name, sizeof(name), "%.*s", (int)session.len, session.ptr);
	int rc = jlog_get_named(o, name, &log, err);
	if (rc)
		return rc == SHEAF_NOT_FOUND ? 0 : rc;
	if (write) {
		rc = jlog_lead(log, deadline_us, err);
		if (rc)
			return rc;
		rc = jlog_lock_damaged(log, deadline_us, &local);
	} else {
		pthread_mutex_lock(&log->mutex);
		rc = jlog_refresh(log, &local);
	}
	bool readable = rc == 0;
	if (rc == 0)
		rc = jlog_find(log, id, &seq, write, &local);
	/* What cannot be read may have been there. */
	int there = rc == 0 || rc == SHEAF_DAMAGED || (readable && log->damaged);
	if (write && readable)
		jlog_unlock(log);
	if (write)
		jlog_unlead(log);
	else
		pthread_mutex_unlock(&log->mutex);
	if (there || rc == SHEAF_NOT_FOUND)
		return there;
	*err = local;
	return rc;
}

/* The held line counts if its record is there; else it is cut off, or left alone. */
static int settle_held(follow *f, bool write, int64_t deadline_us, sheaf_error *err)
{
	jstate *s = f->s;
	if (f->held.len == 0)
		return 0;
	_cleanup_(arena_freep) arena *a = arena_new();
	line_parts p;
	int rc = a ? take_apart(&p, buf_view(&f->held), a) : SHEAF_NOMEM, there = 1;
	if (rc)
		return rc == SHEAF_NOMEM ? err_nomem(err)
		                         : err_set(err, SHEAF_DAMAGED, "the state is damaged");
	if (p.session.ptr)
		there = record_there(s->owner, p.session, p.id, write, deadline_us, err);
	if (there < 0)
		return there;
	if (there) {
		rc = take_held(f);
		if (rc == SHEAF_FORMAT)
			return err_set(err, rc, "the state was written by a newer version");
		return rc == SHEAF_NOMEM ? err_nomem(err) : rc;
	}
	f->good = f->held_at;
	if (write && (io_ftruncate(s->fd, (off_t)f->good) || jstate_sync(s)))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot cut off what was not stored");
	return 0;
}

static int damaged(sheaf_error *err)
{
	int rc = err_set(err, SHEAF_DAMAGED, "the state is damaged");
	err_hint(err, "sheaf check shows it, sheaf repair saves what can be read");
	return rc;
}

/* What a crash left at the end is kept and cut off. */
static int move_tear(follow *f, uint64_t end, sheaf_error *err)
{
	jstate *s = f->s;
	char name[256];
	int rc = jtail_keep(s->owner, KEPT_NAME, "torn", s->fd, f->good, end, name, err);
	if (rc == 0 && (io_ftruncate(s->fd, (off_t)f->good) || jstate_sync(s)))
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot cut the torn bytes off");
	return rc;
}

/* Reads what was added since. Lock held: what is bad now stays bad. */
static int catch_up(jstate *s, uint64_t end, bool write, int64_t deadline_us, sheaf_error *err)
{
	_cleanup_(follow_end) follow f;
	int rc = follow_begin(&f, s, err);
	if (rc == 0)
		rc = follow_lines(&f, end, false, err);
	if (rc == 1) {
		jtail_kind kind = f.whole ? jtail_classify(s->fd, f.good, end) : JTAIL_TEAR;
		rc = kind == JTAIL_FAILED   ? read_error(err)
		     : kind == JTAIL_DAMAGE ? damaged(err)
		     : write                ? move_tear(&f, end, err)
		                            : 0;
	}
	if (rc == 0)
		rc = settle_held(&f, write, deadline_us, err);
	state_image *made = NULL;
	if (rc == 0 && image_make(&made, &f.b))
		rc = err_nomem(err);
	if (rc)
		return rc;
	image_unref(s->image);
	s->image = made;
	s->size = f.good;
	memcpy(s->last_session, f.last_session, sizeof(s->last_session));
	return 0;
}

/* ---- A file written anew ------------------------------------------------------------- */

static void write_image(buf *out, const jstate *s)
{
	const state_image *image = s->image;
	if (!image || image->count == 0)
		return;
	if (s->app)
		jstate_write_app(out, image->items, image->count);
	else
		jstate_write_user(out, NULL, str_make(NULL, 0), image->items, image->count);
}

int jstate_write_anew(jstate *s, sheaf_error *err)
{
	jowner *o = s->owner;
	char tmp[JSONL_TMP_ROOM];
	int got = jtmp_open(o, KEPT_NAME, tmp, err);
	if (got < 0)
		return got;
	_cleanup_(io_closep) int fd = got;
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	write_image(&out, s);
	int rc = buf_status(&out, err);
	if (rc == 0 && (io_write_full(fd, out.ptr, out.len) || io_fsync(fd)))
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot write the new state");
	if (rc == 0) {
		jcatalogue_begin(o);
		if (io_rename(jowner_side(o), tmp, o->dir, JSONL_STATE_FILE) || io_fsync(o->dir))
			rc = err_sys(err, SHEAF_STORAGE, errno,
			             "cannot put the new state in place");
		jcatalogue_end(o);
	}
	if (rc == 0)
		(void)io_fchmod(fd, S_IRUSR | S_IWUSR);
	else
		jtmp_unlink(o, tmp);
	return rc;
}

/* ---- In and out ---------------------------------------------------------------------- */

static int open_file(jstate *s, bool create, sheaf_error *err)
{
	jowner *o = s->owner;
	if (s->fd >= 0)
		return 0;
	int flags = o->store->readonly ? O_RDONLY : O_RDWR | O_APPEND;
	s->fd = io_open(o->dir, JSONL_STATE_FILE, flags, 0);
	if (s->fd < 0 && errno == ENOENT && create) {
		jcatalogue_begin(o);
		s->fd = io_open(o->dir, JSONL_STATE_FILE, flags | O_CREAT, 0600);
		jcatalogue_end(o);
	}
	if (s->fd >= 0)
		return 0;
	s->fd = -1;
	if (errno == ENOENT)
		return 1;
	return err_sys(err, errno == EACCES || errno == ELOOP ? SHEAF_DENIED : SHEAF_STORAGE, errno,
	               "cannot open the state");
}

/* The file as it is now, under the lock. 1: it was replaced, look again. */
static int look(jstate *s, bool write, int64_t deadline_us, sheaf_error *err)
{
	io_stat st;
	if (io_stat_fd_lean(s->fd, &st))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot look at the state");
	if (st.links == 0 || st.size < s->size) {
		jstate_unload(s);
		return 1;
	}
	s->inode = st.inode;
	int rc = st.size > s->size ? catch_up(s, st.size, write, deadline_us, err) : 0;
	if (rc == 0 && write && (jlog_sealed(&st) || s->poisoned == st.inode)) {
		rc = jstate_write_anew(s, err);
		jstate_unload(s);
		return rc ? rc : 1;
	}
	if (rc)
		jstate_unload(s);
	return rc;
}

int jstate_enter(jstate *s, bool write, int64_t deadline_us, sheaf_error *err)
{
	for (int again = 0; again < 4; again++) {
		int rc = open_file(s, write, err);
		if (rc)
			return rc;
		rc = jlock_take(s->fd, write ? F_WRLCK : F_RDLCK, deadline_us, err);
		if (rc)
			return rc;
		rc = look(s, write, deadline_us, err);
		if (rc < 0)
			jstate_leave(s);
		if (rc <= 0)
			return rc;
	}
	return err_set(err, SHEAF_BUSY, "the state keeps being replaced");
}

int jstate_add(jstate *s, bool durable, sheaf_error *err)
{
	jowner *o = s->owner;
	int rc = buf_status(&s->out, err);
	/* The first line: who made the file may have died before its name was on the disk. */
	if (rc == 0 && s->size == 0) {
		rc = jowner_anchor(o, err);
		if (rc == 0 && io_fsync(o->dir))
			rc = err_sys(err, SHEAF_STORAGE, errno, "cannot sync the directory");
	}
	if (rc)
		return rc;
	ssize_t n = io_write(s->fd, s->out.ptr, s->out.len);
	if (n != (ssize_t)s->out.len) {
		rc = err_sys(err, SHEAF_STORAGE, n < 0 ? errno : ENOSPC, "cannot write the state");
		/* A part of a line is a tear; the next writer cuts it off if this fails. */
		(void)io_ftruncate(s->fd, (off_t)s->size);
		return rc;
	}
	if (durable && jstate_sync(s)) {
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot sync the state");
		(void)io_ftruncate(s->fd, (off_t)s->size);
		return rc;
	}
	s->next_size = s->size + s->out.len;
	return 0;
}

/* ---- Check and repair ---------------------------------------------------------------- */

static int repair(jstate *s, uint64_t size, sheaf_error *err)
{
	_cleanup_(follow_end) follow f = {0};
	char name[256];
	int rc = jtail_keep(s->owner, KEPT_NAME, "damaged", s->fd, 0, size, name, err);
	if (rc == 0)
		rc = follow_begin(&f, s, err);
	if (rc == 0)
		rc = follow_lines(&f, size, true, err);
	if (rc == 0 && take_held(&f) == SHEAF_NOMEM)
		rc = err_nomem(err);
	if (rc == 0 && image_make(&s->image, &f.b))
		rc = err_nomem(err);
	return rc ? rc : jstate_write_anew(s, err);
}

/* The file under its name, locked. 1: there is none. */
static int open_locked(jstate *s, bool write, int64_t deadline_us, io_stat *st, sheaf_error *err)
{
	for (int again = 0; again < 4; again++) {
		int rc = open_file(s, false, err);
		if (rc == 0)
			rc = jlock_take(s->fd, write ? F_WRLCK : F_RDLCK, deadline_us, err);
		if (rc == 0 && io_stat_fd_lean(s->fd, st))
			rc = err_sys(err, SHEAF_STORAGE, errno, "cannot look at the state");
		if (rc || st->links != 0)
			return rc;
		jstate_unload(s); /* somebody wrote it anew while we waited */
	}
	return err_set(err, SHEAF_BUSY, "the state keeps being replaced");
}

int jstate_examine(jowner *o, bool app, bool mend, int64_t deadline_us, jstate_report *out,
                   sheaf_error *err)
{
	_cleanup_(follow_end) follow f = {0};
	io_stat st;
	*out = (jstate_report){0};
	jstate *s = jstate_new(o, app);
	if (!s)
		return err_nomem(err);
	int rc = open_locked(s, mend, deadline_us, &st, err);
	if (rc == 0)
		rc = follow_begin(&f, s, err);
	if (rc == 0) {
		out->size = st.size;
		rc = follow_lines(&f, st.size, false, err);
		out->bad_at = f.good;
		if (rc == SHEAF_FORMAT) {
			out->what = SHEAF_PROBLEM_FOREIGN;
		} else if (rc == SHEAF_DAMAGED) {
			out->what = SHEAF_PROBLEM_DAMAGE;
		} else if (rc == 1) {
			jtail_kind kind = f.whole ? jtail_classify(s->fd, f.good, st.size)
			                          : JTAIL_TEAR;
			out->what = kind == JTAIL_TEAR ? SHEAF_PROBLEM_TORN : SHEAF_PROBLEM_DAMAGE;
		}
		if (out->what)
			rc = 0;
		if (rc == 0 && mend && out->what == SHEAF_PROBLEM_DAMAGE)
			rc = repair(s, st.size, err);
	}
	jstate_free(s);
	return rc == 1 ? 0 : rc;
}
