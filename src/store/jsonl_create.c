/*
 * Logs that come into being, are replaced as a whole, or go.
 *
 * A log never appears half-written: it is made under another name, synced, and
 * then linked or renamed into place, and the directory is synced before anybody
 * is told. A log that is replaced leaves its old inode without a name, which
 * every process with it open notices under the lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/uuid.h"
#include "store/jsonl.h"

int jcopy_range(int in, uint64_t from, uint64_t to, int out, sheaf_error *err)
{
	enum {
		CHUNK = 256 << 10
	};
	_cleanup_(mem_freep) char *chunk = mem_alloc(CHUNK);

	if (!chunk)
		return err_nomem(err);
	while (from < to) {
		size_t want = to - from < CHUNK ? (size_t)(to - from) : CHUNK;
		ssize_t got = io_pread_full(in, chunk, want, (off_t)from);
		if (got != (ssize_t)want)
			return err_sys(err, SHEAF_STORAGE, got < 0 ? errno : EIO,
			               "cannot read the log");
		if (io_write_full(out, chunk, want))
			return err_sys(err, SHEAF_STORAGE, errno, "cannot write a copy of the log");
		from += want;
	}
	return 0;
}

/* A store of one file has no directory of its own for them. */
static int tmp_dir(jowner *o)
{
	return o->store->single ? o->dir : jowner_side(o);
}

int jtmp_open(jowner *o, const char *session, char name[JSONL_TMP_ROOM], sheaf_error *err)
{
	char id[UUID_TEXT + 1];
	int dir = tmp_dir(o);
	int rc = uuid7_new(id, err);

	if (rc)
		return rc;
	if (dir < 0)
		return err_sys(err, SHEAF_STORAGE, errno,
		               "cannot make the directory " JSONL_SIDE_DIR);
	snprintf(name, JSONL_TMP_ROOM, "%stmp-%s.%s", o->store->single ? ".sheaf-" : "", id,
	         session ? session : "");
	mode_t mode = session ? S_IRUSR | S_IWUSR | S_ISVTX : S_IRUSR | S_IWUSR;
	int fd = io_open(dir, name, O_RDWR | O_APPEND | O_CREAT | O_EXCL, mode);
	if (fd < 0 && errno == ENOENT && !o->store->single && (dir = jowner_side_anew(o)) >= 0)
		fd = io_open(dir, name, O_RDWR | O_APPEND | O_CREAT | O_EXCL, mode);
	return fd >= 0 ? fd : err_sys(err, SHEAF_STORAGE, errno, "cannot make a file");
}

void jtmp_unlink(jowner *o, const char *name)
{
	(void)io_unlink(tmp_dir(o), name);
}

/* The name of a new log is on the disk. If this fails the next writer copies it once more. */
static void unseal(int fd)
{
	(void)io_fchmod(fd, S_IRUSR | S_IWUSR);
}

int jtmp_install(jlog *log, int fd, const char *tmp, sheaf_error *err)
{
	jowner *o = log->owner;
	int rc = 0;

	if (io_fsync(fd))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot sync the new log");
	jcatalogue_begin(o);
	if (io_rename(tmp_dir(o), tmp, o->dir, log->file_name))
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot put the new log in place");
	else if (io_fsync(o->dir))
		rc = err_unknown(err,
		                 err_sys(err, SHEAF_STORAGE, errno, "cannot sync the directory"));
	else
		unseal(fd);
	jcatalogue_end(o);
	return rc;
}

/* ---- New ------------------------------------------------------------------------ */

static int write_rows(int fd, const sheaf_row *rows, size_t count, sheaf_error *err)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);

	for (size_t i = 0; i < count; i++) {
		buf_add(&out, rows[i].bytes.ptr, rows[i].bytes.len + 1);
		if (i + 1 < count && out.len < JSONL_GROUP_BYTES)
			continue;
		int rc = buf_status(&out, err);
		if (rc)
			return rc;
		if (io_write_full(fd, out.ptr, out.len))
			return err_sys(err, SHEAF_STORAGE, errno, "cannot write the new log");
		buf_reset(&out);
	}
	return 0;
}

/* Links the finished file to the session's name: it must not be taken. */
static int link_new(jowner *o, int fd, const char *tmp, const char *file, const char *session,
                    const sheaf_head *head, sheaf_error *err)
{
	int rc = 0;

	jcatalogue_begin(o);
	if (io_link(tmp_dir(o), tmp, o->dir, file)) {
		rc = errno == EEXIST
		             ? err_set(err, SHEAF_EXISTS, "the session exists already")
		             : err_sys(err, SHEAF_STORAGE, errno, "cannot name the new log");
	} else {
		/* It has its name now, be the name durable or not: lists must know it. */
		if (io_fsync(o->dir))
			rc = err_unknown(err, err_sys(err, SHEAF_STORAGE, errno,
			                              "cannot sync the directory"));
		jcatalogue_put(o, session, fd, head);
	}
	jcatalogue_end(o);
	return rc;
}

/* Every session a fork is to read must be kept alive by its source, or be it. */
static int check_links(const sheaf_head *fork, const sheaf_head *source_head, sheaf_str source,
                       sheaf_error *err)
{
	sheaf_str link, theirs;
	uint64_t base;

	for (size_t i = 0; sheaf_head_link(fork, i, &link, &base); i++) {
		bool found = str_eq(link, source);
		for (size_t k = 0; !found && sheaf_head_link(source_head, k, &theirs, &base); k++)
			found = str_eq(link, theirs);
		if (!found)
			return err_set(err, SHEAF_GONE, "a session it would read was deleted");
	}
	return 0;
}

/* `source_head`: of the session that is forked, which is locked; NULL for a session of its own. */
static int create_file(jowner *o, const sheaf_store_key *key, const sheaf_append_request *request,
                       const sheaf_head *source_head, sheaf_append_reply *reply, sheaf_error *err)
{
	char tmp[JSONL_TMP_ROOM], file[JSONL_NAME_ROOM];
	const sheaf_row *rows;
	size_t count;
	sheaf_head *head = sheaf_head_new();
	_cleanup_(io_closep) int fd = -1;
	int rc = head ? request->stamp(request->ctx, NULL, head, &rows, &count, err)
	              : err_nomem(err);

	if (rc == 0 && source_head)
		rc = check_links(head, source_head, request->source, err);
	snprintf(file, sizeof(file), "%s.jsonl", key->session.ptr);
	if (rc == 0) {
		fd = jtmp_open(o, key->session.ptr, tmp, err);
		rc = fd < 0 ? fd : 0;
	}
	if (rc == 0) {
		rc = write_rows(fd, rows, count, err);
		if (rc == 0 && io_fsync(fd))
			rc = err_sys(err, SHEAF_STORAGE, errno, "cannot sync the new log");
		if (rc == 0 && request->user_state_count)
			rc = jstate_line(o, key->session.ptr, request, rows[count - 1].id, true,
			                 err);
		if (rc == 0)
			rc = link_new(o, fd, tmp, file, key->session.ptr, head, err);
		if (rc == 0)
			unseal(fd);
		jtmp_unlink(o, tmp);
	}
	if (fd < 0)
		fd = -1;
	if (rc == 0)
		reply->durability = SHEAF_DURABILITY_DISK;
	sheaf_head_free(head);
	return rc;
}

/* A fork becomes visible while its source is locked, so that no delete can overlook it. */
static int create_fork(jowner *o, const sheaf_store_key *key, const sheaf_append_request *request,
                       sheaf_append_reply *reply, sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *source = NULL;
	int rc = jlog_get_named(o, request->source.ptr, &source, err);

	if (rc)
		return rc;
	rc = jlog_lead(source, request->deadline_us, err);
	if (rc)
		return rc;
	rc = jlog_lock_damaged(source, request->deadline_us, err);
	bool locked = rc == 0;
	if (rc == SHEAF_NOT_FOUND || (rc == 0 && sheaf_head_hidden(source->head)))
		rc = err_set(err, SHEAF_GONE, "the source was deleted");
	/* What the fork reads must be there after a power cut as surely as the fork. */
	if (rc == 0 && source->synced < source->size && jlog_sync(source, source->size))
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot sync the source");
	if (rc == 0) {
		/* Leadership and lock are enough; readers of the source go on. */
		pthread_mutex_unlock(&source->mutex);
		rc = create_file(o, key, request, source->head, reply, err);
		pthread_mutex_lock(&source->mutex);
	}
	if (locked)
		jlog_unlock(source);
	jlog_unlead(source);
	return rc;
}

int jsonl_create(jstore *js, const sheaf_store_key *key, const sheaf_append_request *request,
                 sheaf_append_reply *reply, sheaf_error *err)
{
	_cleanup_(jowner_putp) jowner *o = NULL;
	io_stat st;

	if (js->single)
		return err_set(err, SHEAF_UNSUPPORTED,
		               "this store is one file and holds one session");
	int rc = jowner_get(js, key, true, &o, err);
	if (rc == 0)
		rc = jowner_anchor(o, err);
	if (rc)
		return rc;
	char file[JSONL_NAME_ROOM];
	snprintf(file, sizeof(file), "%s.jsonl", key->session.ptr);
	if (io_stat_at(o->dir, file, &st) == 0)
		return err_set(err, SHEAF_EXISTS, "the session exists already");
	/* What a removal that was cut short left of one with this name. */
	rc = jqueue_remove(o, key->session.ptr, true, request->deadline_us, err);
	if (rc)
		return rc;
	bool state = request->user_state_count != 0;
	if (state)
		rc = jstate_begin(o, request->deadline_us, err);
	if (rc)
		return rc;
	rc = request->source.ptr ? create_fork(o, key, request, reply, err)
	                         : create_file(o, key, request, NULL, reply, err);
	if (state) {
		jstate_done(o, key->session.ptr, rc, rc ? err->outcome : 0);
		jstate_end(o);
	}
	return rc;
}

/* ---- Replaced -------------------------------------------------------------------- */

/* Gives up what is known of the old inode; the next use opens the new one. */
static void replaced(jlog *log)
{
	jindex_remove(jowner_side(log->owner), log->session);
	jlog_unlock(log);
	jlog_unload(log);
}

int jsonl_replace(void *backend, const sheaf_store_key *key, uint64_t revision, sheaf_rows_fn next,
                  void *ctx, int64_t deadline_us, sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	_cleanup_(io_closep) int fd = -1;
	char tmp[JSONL_TMP_ROOM];
	sheaf_row row;
	int rc = jlog_get(backend, key, &log, err);

	if (rc == 0)
		rc = jlog_lead(log, deadline_us, err);
	if (rc)
		return rc;
	rc = jlog_lock(log, deadline_us, err);
	bool locked = rc == 0;
	if (rc == 0 && sheaf_head_revision(log->head) != revision)
		rc = err_set(err, SHEAF_STALE, "the session was written to meanwhile");
	if (rc == 0) {
		int got = jtmp_open(log->owner, log->session, tmp, err);
		fd = got < 0 ? -1 : got;
		rc = got < 0 ? got : 0;
	}
	if (rc == 0) {
		int more;
		/* The rows may be read from this very log: the mutex is not held over them. */
		pthread_mutex_unlock(&log->mutex);
		while ((more = next(ctx, &row, err)) == 1 && rc == 0)
			rc = write_rows(fd, &row, 1, err);
		pthread_mutex_lock(&log->mutex);
		if (more < 0)
			rc = more;
		if (rc == 0)
			rc = jtmp_install(log, fd, tmp, err);
		if (rc)
			jtmp_unlink(log->owner, tmp);
	}
	if (rc == 0)
		replaced(log);
	else if (locked)
		jlog_unlock(log);
	jlog_unlead(log);
	return rc;
}

int jlog_rewrite(jlog *log, sheaf_error *err)
{
	_cleanup_(io_closep) int fd = -1;
	char tmp[JSONL_TMP_ROOM];
	int got = jtmp_open(log->owner, log->session, tmp, err);

	if (got < 0)
		return got;
	fd = got;
	/* Following verified every line up to log->size; what lies beyond is not ours to keep. */
	int rc = jcopy_range(log->file->fd, 0, log->size, fd, err);
	if (rc == 0 && log->needs_newline && io_write_full(fd, "\n", 1))
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot write a copy of the log");
	if (rc == 0 && log->tail_bytes) {
		char name[256];
		rc = jtail_keep(log->owner, log->session, "torn", log->file->fd, log->size,
		                log->size + log->tail_bytes, name, err);
		if (rc == 0) {
			log->torn_bytes += log->tail_bytes;
			snprintf(log->torn_file, sizeof(log->torn_file), JSONL_KEPT_DIR "/%.240s",
			         name);
		}
	}
	if (rc == 0)
		rc = jtmp_install(log, fd, tmp, err);
	if (rc)
		jtmp_unlink(log->owner, tmp);
	else
		jindex_remove(jowner_side(log->owner), log->session);
	return rc;
}

/* ---- Removed ---------------------------------------------------------------------- */

typedef struct readers {
	const sheaf_remove_request *request;
	jowner *owner;
	uint64_t keep; /* the highest base */
	const char *session;
} readers;

static int reader(void *ctx, const char *name, const sheaf_head *head)
{
	readers *r = ctx;
	sheaf_str session;
	uint64_t base;

	for (size_t i = 0; sheaf_head_link(head, i, &session, &base); i++)
		if (str_is(session, r->session) && base > r->keep)
			r->keep = base;
	if (!r->request->reader)
		return 0;
	sheaf_session_info info;
	sheaf_store_key key = {sheaf_str_of(r->owner->key), sheaf_str_of(r->owner->app),
	                       sheaf_str_of(r->owner->user), sheaf_str_of(name)};
	sheaf_head_info(head, &info);
	return r->request->reader(r->request->ctx, &key, &info);
}

/* Files beside the log that hold something of its session. */
typedef struct traces {
	int dir;
	const char *session;
	bool kept; /* in the directory of kept bytes, else in the derived one */
} traces;

static bool is_trace(const traces *t, const char *name)
{
	enum {
		TMP_LENGTH = 4 + UUID_TEXT
	};
	size_t length = strlen(t->session), all = strlen(name);

	if (!t->kept && all > TMP_LENGTH && strncmp(name, "tmp-", 4) == 0 &&
	    name[TMP_LENGTH] == '.')
		/* Of a writer that died; or of the catalogue's, who can do without; or of the
		 * state's, whose lock we have. */
		return name[TMP_LENGTH + 1] == 0 || strcmp(name + TMP_LENGTH + 1, ".state") == 0 ||
		       strcmp(name + TMP_LENGTH + 1, t->session) == 0;
	if (strncmp(name, t->session, length) != 0 || name[length] != '.')
		return false;
	const char *end = name + length + 1;
	return t->kept ? strchr(end, '.') == NULL
	               : strcmp(end, "idx") == 0 || strcmp(end, "run") == 0;
}

static int remove_trace(void *ctx, const char *name, unsigned char type)
{
	traces *t = ctx;
	(void)type;
	if (!is_trace(t, name))
		return 0;
	return io_unlink(t->dir, name) && errno != ENOENT ? -1 : 0;
}

/* Kept bytes, the sidecar and what dead writers left behind belong to the conversation: they go
 * with it, and before it, so that who finds it gone finds them gone too. */
static int remove_traces(jowner *o, const char *session, const char *where, sheaf_error *err)
{
	_cleanup_(io_closep) int dir = io_open(o->dir, where, O_RDONLY | O_DIRECTORY, 0);
	traces t = {dir, session, strcmp(where, JSONL_KEPT_DIR) == 0};

	if (dir < 0)
		return errno == ENOENT
		               ? 0
		               : err_sys(err, SHEAF_STORAGE, errno, "cannot open a directory");
	/* Synced also if there was nothing: a temporary file's name may be gone from memory only. */
	if (io_each_name(dir, remove_trace, &t) || io_fsync(dir))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot remove what lies beside the log");
	return 0;
}

static int remove_all_traces(jowner *o, const char *session, sheaf_error *err)
{
	int rc = remove_traces(o, session, JSONL_KEPT_DIR, err);
	return rc || o->store->single ? rc : remove_traces(o, session, JSONL_SIDE_DIR, err);
}

/* The queue goes after the log: it is the log that says whether there is a session. */
static int remove_queue(jlog *log, int64_t deadline_us, sheaf_error *err)
{
	if (log->owner->store->single)
		return 0;
	int rc = jqueue_remove(log->owner, log->session, false, deadline_us, err);
	return rc ? err_unknown(err, rc) : 0;
}

static int remove_all(jlog *log, int64_t deadline_us, sheaf_error *err)
{
	jowner *o = log->owner;
	int rc = remove_all_traces(o, log->session, err);

	if (rc == 0)
		rc = jcatalogue_scrub(o, log->session, log->file->fd, err);
	if (rc)
		return rc;
	jcatalogue_begin(o);
	if (io_unlink(o->dir, log->file_name))
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot remove the log");
	else if (io_fsync(o->dir))
		rc = err_unknown(err,
		                 err_sys(err, SHEAF_STORAGE, errno, "cannot sync the directory"));
	if (rc == 0)
		jcatalogue_drop(o, log->session);
	jcatalogue_end(o);
	return rc ? rc : remove_queue(log, deadline_us, err);
}

/* Keeps the records up to `keep` under a header that says hidden. */
static int hide(jlog *log, uint64_t keep, int64_t deadline_us, sheaf_error *err)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	_cleanup_(buf_free) buf line = BUF_INIT(SHEAF_RECORD_BYTES_MAX + 4096);
	_cleanup_(io_closep) int fd = -1;
	char tmp[JSONL_TMP_ROOM];
	jslot last;
	header h;
	int rc = a ? jlog_header_line(log, &line, err) : err_nomem(err);

	if (rc == 0)
		rc = remove_all_traces(log->owner, log->session, err);
	if (rc == 0)
		rc = jcatalogue_scrub(log->owner, log->session, log->file->fd, err);
	if (rc == 0)
		rc = header_read(&h, buf_view(&line), a, &log->doc, err);
	if (rc)
		return rc;
	uint64_t from = log->header_length + 1, to = from;
	if (keep > log->base) {
		uint64_t count = keep - log->base < jlog_count(log) ? keep - log->base
		                                                    : jlog_count(log);
		if (count) {
			rc = jlog_slots(log, count - 1, 1, &last, err);
			if (rc)
				return rc;
			to = last.offset + last.length + 1;
		}
	}
	h.hidden = true;
	buf fresh = BUF_INIT(SHEAF_RECORD_BYTES_MAX + 4096);
	header_write(&fresh, &h);
	rc = buf_status(&fresh, err);
	if (rc == 0) {
		int got = jtmp_open(log->owner, log->session, tmp, err);
		fd = got < 0 ? -1 : got;
		rc = got < 0 ? got : 0;
	}
	if (rc == 0 && io_write_full(fd, fresh.ptr, fresh.len))
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot write the hidden log");
	if (rc == 0)
		rc = jcopy_range(log->file->fd, from, to, fd, err);
	if (rc == 0)
		rc = jtmp_install(log, fd, tmp, err);
	if (rc && fd >= 0)
		jtmp_unlink(log->owner, tmp);
	buf_free(&fresh);
	return rc ? rc : remove_queue(log, deadline_us, err);
}

/* The session under its lock: gone, or hidden, or left as it is. */
static int remove_locked(jlog *log, const sheaf_remove_request *request, sheaf_remove_reply *reply,
                         sheaf_error *err)
{
	bool was_hidden = sheaf_head_hidden(log->head);
	readers r = {.request = request, .owner = log->owner, .session = log->session};
	int rc = 0;

	if (request->expired && (was_hidden || jlog_expired(log) != SHEAF_EXPIRY_OVER))
		return 0;
	reply->existed = request->reap || !was_hidden;
	if (request->reap && !was_hidden)
		return 0;
	if (!log->owner->store->single) {
		/* This looks into other logs, whose removers may be looking into this one. */
		pthread_mutex_unlock(&log->mutex);
		rc = jcatalogue_readers(log->owner, log->session, reader, &r, err);
		pthread_mutex_lock(&log->mutex);
		if (rc)
			return rc;
	}
	reply->hidden = r.keep > 0;
	/* A removal that was cut short may have left its queue. */
	if (was_hidden && (!request->reap || sheaf_head_revision(log->head) <= r.keep) && r.keep)
		return remove_queue(log, request->deadline_us, err);
	rc = r.keep ? hide(log, r.keep, request->deadline_us, err)
	            : remove_all(log, request->deadline_us, err);
	if (rc == 0)
		replaced(log);
	return rc;
}

/* There is no such log. If that is the work of a removal that was cut short, it is finished. */
static int remove_again(jlog *log, int64_t deadline_us, sheaf_error *err)
{
	int rc = remove_all_traces(log->owner, log->session, err);
	if (rc == 0 && !log->owner->store->single)
		rc = jqueue_remove(log->owner, log->session, true, deadline_us, err);
	if (rc == 0 && io_fsync(log->owner->dir))
		rc = err_unknown(err,
		                 err_sys(err, SHEAF_STORAGE, errno, "cannot sync the directory"));
	return rc;
}

/* A log whose header cannot be read: it can be deleted if nobody reads it, and nothing else. */
static int remove_unreadable(jlog *log, const sheaf_remove_request *request,
                             sheaf_remove_reply *reply, sheaf_error *err)
{
	readers r = {.request = request, .owner = log->owner, .session = log->session};
	io_stat st;
	int fd = io_open(log->owner->dir, log->file_name, O_RDWR | O_APPEND, 0);

	if (fd < 0)
		return err_sys(err, errno == ENOENT ? SHEAF_NOT_FOUND : SHEAF_STORAGE, errno,
		               "cannot open the log");
	log->file = jfile_new(fd);
	if (!log->file)
		return err_nomem(err);
	if (!jlog_lock_now(log) || io_stat_fd_lean(log->file->fd, &st) || st.links == 0)
		return err_set(err, SHEAF_BUSY, "another process holds the session's lock");
	pthread_mutex_unlock(&log->mutex);
	int rc = jcatalogue_readers(log->owner, log->session, reader, &r, err);
	pthread_mutex_lock(&log->mutex);
	if (rc == 0 && r.keep)
		rc = err_set(err, SHEAF_DAMAGED,
		             "forks read this session, and its header is damaged");
	if (rc == 0)
		rc = remove_all(log, request->deadline_us, err);
	reply->existed = rc == 0;
	return rc;
}

/* 1: there was no state of the user to hold, and now there is. */
static int remove_session(jlog *log, bool stateless, const sheaf_remove_request *request,
                          sheaf_remove_reply *reply, sheaf_error *err)
{
	int rc = jlog_lead(log, request->deadline_us, err);
	if (rc)
		return rc;
	rc = jlog_lock_damaged(log, request->deadline_us, err);
	if (rc == 0) {
		rc = stateless && jstate_there(log->owner)
		             ? 1
		             : remove_locked(log, request, reply, err);
	} else if (rc == SHEAF_DAMAGED && !log->file && !request->reap && !request->expired &&
	           !log->owner->store->readonly) {
		rc = remove_unreadable(log, request, reply, err);
		jlog_unload(log);
	}
	if (rc != SHEAF_NOT_FOUND)
		jlog_unlock(log);
	else
		rc = request->reap || request->expired
		             ? 0
		             : remove_again(log, request->deadline_us, err);
	jlog_unlead(log);
	return rc;
}

int jsonl_remove(void *backend, const sheaf_store_key *key, const sheaf_remove_request *request,
                 sheaf_remove_reply *reply, sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	int rc = jlog_get(backend, key, &log, err);

	*reply = (sheaf_remove_reply){0, 0};
	if (rc)
		return rc == SHEAF_NOT_FOUND ? 0 : rc;
	do {
		bool held, stateless = !jstate_there(log->owner);
		rc = jstate_hold(log->owner, log->session, request->deadline_us, &held, err);
		if (rc)
			return rc;
		rc = remove_session(log, stateless, request, reply, err);
		if (held)
			jstate_end(log->owner);
	} while (rc == 1);
	return rc;
}
