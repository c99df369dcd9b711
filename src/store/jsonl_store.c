/*
 * The jsonl store's table: its directory, its owners, and the logs it keeps open.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/jsonl.h"
#include "store/jsonl_state.h"

/* ---- Owners ----------------------------------------------------------------------- */

static void jowner_free(jowner *o)
{
	if (!o)
		return;
	if (o->dir >= 0)
		io_close(o->dir);
	if (atomic_load(&o->side) >= 0)
		io_close(atomic_load(&o->side));
	while (o->old_side_count)
		io_close(o->old_sides[--o->old_side_count]);
	jcatalogue_free(o->catalogue);
	jstate_free(o->state);
	mem_free(o);
}

static int make_dir(int parent, const char *name, sheaf_error *err)
{
	if (io_mkdir(parent, name, 0700) && errno != EEXIST)
		return err_sys(err, SHEAF_STORAGE, errno, "cannot make a directory");
	return 0;
}

static int make_owner_dir(jstore *js, const jowner *o, sheaf_error *err)
{
	int rc = make_dir(js->root, o->app, err);
	if (rc)
		return rc;
	_cleanup_(io_closep) int app = io_open(js->root, o->app, O_RDONLY | O_DIRECTORY, 0);
	if (app < 0)
		return err_sys(err, SHEAF_STORAGE, errno, "cannot open a directory");
	return make_dir(app, o->user, err);
}

static int open_owner_dir(jstore *js, jowner *o, bool create, sheaf_error *err)
{
	o->dir = io_open(js->root, o->path, O_RDONLY | O_DIRECTORY, 0);
	if (o->dir < 0 && errno == ENOENT && create && !js->readonly) {
		int rc = make_owner_dir(js, o, err);
		if (rc)
			return rc;
		o->dir = io_open(js->root, o->path, O_RDONLY | O_DIRECTORY, 0);
	}
	if (o->dir >= 0)
		return 0;
	if (errno == ENOENT || errno == ENOTDIR)
		return err_set(err, SHEAF_NOT_FOUND, "no such session");
	return err_sys(err, errno == ELOOP || errno == EXDEV ? SHEAF_DENIED : SHEAF_STORAGE, errno,
	               "cannot open the owner's directory");
}

/* The directory that holds the store's own. One that may not be read is not ours to sync. */
static int sync_above(jstore *js)
{
	size_t room = strlen(js->path) + 4;
	_cleanup_(mem_freep) char *path = mem_alloc(room);
	if (!path) {
		errno = ENOMEM;
		return -1;
	}
	snprintf(path, room, "%s/..", js->path);
	_cleanup_(io_closep) int dir = io_open_root(path, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return errno == EACCES ? 0 : -1;
	return io_fsync(dir);
}

int jowner_anchor(jowner *o, sheaf_error *err)
{
	jstore *js = o->store;
	int rc;

	if (atomic_load(&o->anchored))
		return 0;
	rc = sync_above(js);
	if (rc == 0 && strcmp(o->path, ".") != 0) {
		_cleanup_(io_closep) int app = io_open(js->root, o->app, O_RDONLY | O_DIRECTORY, 0);
		rc = app < 0 || io_fsync(js->root) || io_fsync(app) ? -1 : 0;
	}
	if (rc)
		return errno == ENOMEM
		               ? err_nomem(err)
		               : err_sys(err, SHEAF_STORAGE, errno, "cannot sync a directory");
	atomic_store(&o->anchored, true);
	return 0;
}

static jowner *jowner_new(jstore *js, sheaf_str app, sheaf_str user)
{
	jowner *o = mem_zalloc(sizeof(*o));
	if (!o)
		return NULL;
	o->store = js;
	o->dir = -1;
	atomic_init(&o->side, -1);
	snprintf(o->app, sizeof(o->app), "%.*s", (int)app.len, app.ptr);
	snprintf(o->user, sizeof(o->user), "%.*s", (int)user.len, user.ptr);
	snprintf(o->key, sizeof(o->key), "%s/%s", o->app, o->user);
	bool bare = strcmp(o->key, "%/%") == 0;
	snprintf(o->path, sizeof(o->path), "%s", bare ? "." : o->key);
	o->catalogue = jcatalogue_new();
	o->state = jstate_new(o, false);
	if (!o->catalogue || !o->state) {
		jowner_free(o);
		return NULL;
	}
	return o;
}

int jowner_open(jstore *js, sheaf_str app, sheaf_str user, bool create, jowner **out,
                sheaf_error *err)
{
	jowner *o = jowner_new(js, app, user), *known;
	int rc = 0;

	if (!o)
		return err_nomem(err);
	pthread_mutex_lock(&js->mutex);
	known = js->single ? js->single_owner : map_get_ptr(&js->owners, sheaf_str_of(o->key));
	if (known && strcmp(known->key, o->key) == 0)
		known->refs++;
	else
		known = NULL;
	pthread_mutex_unlock(&js->mutex);
	if (known || js->single) {
		jowner_free(o);
		*out = known;
		return known ? 0 : err_set(err, SHEAF_NOT_FOUND, "no such session");
	}
	rc = open_owner_dir(js, o, create, err);
	if (rc) {
		jowner_free(o);
		return rc;
	}
	pthread_mutex_lock(&js->mutex);
	known = map_get_ptr(&js->owners, sheaf_str_of(o->key));
	if (!known) {
		if (map_set_ptr(&js->owners, sheaf_str_of(o->key), o))
			rc = err_nomem(err);
		else
			known = o;
	}
	if (known)
		known->refs++;
	pthread_mutex_unlock(&js->mutex);
	if (known != o)
		jowner_free(o);
	*out = known;
	return rc;
}

int jowner_app(jstore *js, sheaf_str app, bool create, jowner **out, sheaf_error *err)
{
	jowner *o = jowner_new(js, app, SHEAF_STR("%"));
	if (!o)
		return err_nomem(err);
	o->state->app = true;
	snprintf(o->path, sizeof(o->path), "%s", o->app);
	int rc = create ? make_dir(js->root, o->app, err) : 0;
	if (rc == 0)
		rc = open_owner_dir(js, o, false, err);
	if (rc)
		jowner_free(o);
	else
		*out = o;
	return rc;
}

void jowner_app_put(jowner *o)
{
	jowner_free(o);
}

int jowner_get(jstore *js, const sheaf_store_key *key, bool create, jowner **out, sheaf_error *err)
{
	return jowner_open(js, key->app, key->user, create, out, err);
}

#define IDLE_OWNERS 64

void jowner_put(jowner *o)
{
	if (!o)
		return;
	jstore *js = o->store;
	pthread_mutex_lock(&js->mutex);
	/* An owner's catalogue is worth keeping; only a store with many owners lets go of it. */
	bool gone = --o->refs == 0 && !js->single && js->owners.count > IDLE_OWNERS;
	if (gone)
		map_remove(&js->owners, sheaf_str_of(o->key));
	pthread_mutex_unlock(&js->mutex);
	if (gone)
		jowner_free(o);
}

void jowner_putp(jowner **o)
{
	jowner_put(*o);
}

static int open_side(const jowner *o)
{
	int side = io_open(o->dir, JSONL_SIDE_DIR, O_RDONLY | O_DIRECTORY, 0);
	if (side < 0 && errno == ENOENT && !o->store->readonly) {
		if (io_mkdir(o->dir, JSONL_SIDE_DIR, 0700) && errno != EEXIST)
			return -1;
		side = io_open(o->dir, JSONL_SIDE_DIR, O_RDONLY | O_DIRECTORY, 0);
	}
	return side;
}

int jowner_side_anew(jowner *o)
{
	int side = open_side(o);
	if (side < 0)
		return -1;
	pthread_mutex_lock(&o->store->mutex);
	/* Other threads may be using the old one: it is closed with the owner. */
	bool room = o->old_side_count < COUNT_OF(o->old_sides);
	if (room)
		o->old_sides[o->old_side_count++] = atomic_exchange(&o->side, side);
	pthread_mutex_unlock(&o->store->mutex);
	if (!room)
		io_close(side);
	return room ? side : -1;
}

int jowner_side(jowner *o)
{
	int side = atomic_load(&o->side), none = -1;

	if (side >= 0 || o->store->single)
		return side;
	side = open_side(o);
	if (side < 0)
		return -1;
	if (!atomic_compare_exchange_strong(&o->side, &none, side)) {
		io_close(side);
		return none;
	}
	return side;
}

/* ---- Open logs ---------------------------------------------------------------------- */

void jlog_free(jlog *log)
{
	if (!log)
		return;
	jlog_unload(log);
	sheaf_head_free(log->head);
	sheaf_head_free(log->spare[0]);
	sheaf_head_free(log->spare[1]);
	mem_free(log->tail);
	mem_free(log->table);
	buf_free(&log->out);
	json_free(log->doc);
	jqueue_free(log->queue);
	pthread_mutex_destroy(&log->mutex);
	pthread_cond_destroy(&log->led);
	jowner_put(log->owner);
	mem_free(log);
}

/* Before a log's file is closed: nothing stays unsynced, and the sidecar is brought up to date. */
static void jlog_settle(jlog *log)
{
	pthread_mutex_lock(&log->mutex);
	/* Who only read has nothing to sync, unless it is for the sidecar. */
	bool covers = log->tail_count >= JSONL_INDEX_RECORDS ||
	              log->size - log->index.log_size >= JSONL_INDEX_BYTES;
	if (log->file && !log->readonly && log->synced < log->size && (log->dirty || covers))
		(void)jlog_sync(log, log->size);
	if (log->file && !log->readonly && covers && jlog_lock_now(log)) {
		io_stat st;
		if (io_stat_fd_lean(log->file->fd, &st) == 0 && st.links && st.size == log->size)
			jlog_cover(log, true);
		jlog_unlock(log);
	}
	pthread_mutex_unlock(&log->mutex);
}

static jlog *jlog_new(jowner *o, const char *session)
{
	jlog *log = mem_zalloc(sizeof(*log));
	if (!log)
		return NULL;
	log->owner = o;
	snprintf(log->session, sizeof(log->session), "%s", session);
	if (o->store->single)
		snprintf(log->file_name, sizeof(log->file_name), "%s", o->store->single_file);
	else
		snprintf(log->file_name, sizeof(log->file_name), "%s.jsonl", session);
	pthread_mutex_init(&log->mutex, NULL);
	pthread_cond_init(&log->led, NULL);
	jindex_init(&log->index);
	log->out = (buf)BUF_INIT(SIZE_MAX);
	return log;
}

jlog *jlog_private(jowner *o, const char *session)
{
	jlog *log = jlog_new(o, session);
	if (!log)
		return NULL;
	log->hands_off = true;
	pthread_mutex_lock(&o->store->mutex);
	o->refs++;
	pthread_mutex_unlock(&o->store->mutex);
	return log;
}

/* The list of cached logs, newest first. Store mutex held. */
static void list_unlink(jstore *js, jlog *log)
{
	*(log->newer ? &log->newer->older : &js->newest) = log->older;
	*(log->older ? &log->older->newer : &js->oldest) = log->newer;
	log->newer = log->older = NULL;
}

static void list_push(jstore *js, jlog *log)
{
	log->older = js->newest;
	log->newer = NULL;
	*(js->newest ? &js->newest->newer : &js->oldest) = log;
	js->newest = log;
}

static sheaf_str log_key(const jlog *log)
{
	return sheaf_str_of(log->cache_key);
}

/* Takes the least recently used log that nobody has out of the cache. Store mutex held. */
static jlog *evict(jstore *js)
{
	if (js->cached <= JSONL_OPEN_LOGS)
		return NULL;
	for (jlog *log = js->oldest; log; log = log->newer)
		if (log->refs == 0) {
			list_unlink(js, log);
			map_remove(&js->logs, log_key(log));
			js->cached--;
			return log;
		}
	return NULL;
}

static void jlog_retire(jlog *log)
{
	if (!log)
		return;
	jlog_settle(log);
	jlog_free(log);
}

static jlog *cache_get(jstore *js, sheaf_str key)
{
	jlog *log = map_get_ptr(&js->logs, key);
	if (!log)
		return NULL;
	log->refs++;
	if (log != js->newest) {
		list_unlink(js, log);
		list_push(js, log);
	}
	return log;
}

int jlog_get_named(jowner *o, const char *session, jlog **out, sheaf_error *err)
{
	jstore *js = o->store;
	char key[3 * SHEAF_KEY_PART_ROOM];
	jlog *log, *fresh, *old = NULL;

	if (js->single && strcmp(session, js->single_session) != 0)
		return err_set(err, SHEAF_NOT_FOUND, "no such session");
	int len = snprintf(key, sizeof(key), "%s/%s", o->key, session);
	pthread_mutex_lock(&js->mutex);
	log = cache_get(js, str_make(key, (size_t)len));
	pthread_mutex_unlock(&js->mutex);
	if (log) {
		*out = log;
		return 0;
	}
	fresh = jlog_new(o, session);
	if (!fresh)
		return err_nomem(err);
	memcpy(fresh->cache_key, key, (size_t)len + 1);
	pthread_mutex_lock(&js->mutex);
	log = cache_get(js, str_make(key, (size_t)len));
	if (!log && map_set_ptr(&js->logs, log_key(fresh), fresh) == 0) {
		log = fresh;
		log->refs = 1;
		o->refs++;
		list_push(js, log);
		js->cached++;
		old = evict(js);
	}
	pthread_mutex_unlock(&js->mutex);
	if (log != fresh) {
		fresh->owner = NULL;
		jlog_free(fresh);
	}
	jlog_retire(old);
	*out = log;
	return log ? 0 : err_nomem(err);
}

int jlog_get(jstore *js, const sheaf_store_key *key, jlog **out, sheaf_error *err)
{
	char text[3 * SHEAF_KEY_PART_ROOM];
	jlog *log;

	/* The usual case without touching the owner: the log is open already. */
	size_t n = key->owner.len, m = key->session.len;
	memcpy(text, key->owner.ptr, n);
	text[n] = '/';
	memcpy(text + n + 1, key->session.ptr, m + 1);
	pthread_mutex_lock(&js->mutex);
	log = cache_get(js, str_make(text, n + 1 + m));
	pthread_mutex_unlock(&js->mutex);
	if (log) {
		*out = log;
		return 0;
	}
	_cleanup_(jowner_putp) jowner *o = NULL;
	int rc = jowner_get(js, key, false, &o, err);
	return rc ? rc : jlog_get_named(o, key->session.ptr, out, err);
}

void jlog_put(jlog *log)
{
	if (!log)
		return;
	jstore *js = log->owner->store;
	pthread_mutex_lock(&js->mutex);
	log->refs--;
	jlog *old = evict(js);
	pthread_mutex_unlock(&js->mutex);
	jlog_retire(old);
}

void jlog_putp(jlog **log)
{
	jlog_put(*log);
}

/* ---- Opening the store ---------------------------------------------------------------- */

static bool network_fs(int64_t type)
{
	static const int64_t refused[] = {0x6969 /* nfs */,      0xff534d42 /* cifs */,
	                                  0x517b /* smb */,      0xfe534d42 /* smb2 */,
	                                  0x01021997 /* 9p */,   0x65735546 /* fuse */,
	                                  0x5346414f /* afs */,  0x73757245 /* coda */,
	                                  0x00c36400 /* ceph */, 0x0bd00bd0 /* lustre */};
	for (size_t i = 0; i < COUNT_OF(refused); i++)
		if (refused[i] == type)
			return true;
	return false;
}

/* Syncs the directory above the one that was just made. */
static int sync_parent(char *path)
{
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = 0;
	_cleanup_(io_closep) int dir = io_open_root(slash == path ? "/"
	                                            : slash       ? path
	                                                          : ".",
	                                            O_RDONLY | O_DIRECTORY, 0);
	if (slash)
		*slash = '/';
	if (dir < 0)
		return errno == EACCES ? 0 : -1;
	return io_fsync(dir);
}

/* Makes every missing directory of a path, as mkdir -p does, each on the disk before the next. */
static int make_path(const char *path, sheaf_error *err)
{
	_cleanup_(mem_freep) char *copy = mem_dup(path, strlen(path));
	if (!copy)
		return err_nomem(err);
	for (char *p = copy + 1;; p++) {
		if (*p != '/' && *p != 0)
			continue;
		char c = *p;
		*p = 0;
		bool made = io_mkdir(AT_FDCWD, copy, 0700) == 0;
		if (!made && errno != EEXIST && errno != EISDIR)
			return err_sys(err,
			               errno == EACCES || errno == EROFS ? SHEAF_DENIED
			                                                 : SHEAF_STORAGE,
			               errno, "cannot make the store's directory");
		if (made && sync_parent(copy)) {
			int why = errno;
			io_rmdir(AT_FDCWD, copy);
			return err_sys(err, SHEAF_STORAGE, why, "cannot sync a directory");
		}
		*p = c;
		if (c == 0)
			return 0;
	}
}

static int open_root(jstore *js, const char *path, bool unsafe_fs, bool make, sheaf_error *err)
{
	int64_t type;

	js->root = io_open_root(path, O_RDONLY | O_DIRECTORY, 0);
	if (js->root < 0 && errno == ENOENT && make && !js->readonly) {
		int rc = make_path(path, err);
		if (rc)
			return rc;
		js->root = io_open_root(path, O_RDONLY | O_DIRECTORY, 0);
	}
	if (js->root < 0)
		return err_sys(err,
		               errno == ENOENT   ? SHEAF_NOT_FOUND
		               : errno == EACCES ? SHEAF_DENIED
		                                 : SHEAF_STORAGE,
		               errno, "cannot open the store's directory");
	if (io_statfs_type(js->root, &type))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot tell the filesystem");
	if (network_fs(type) && !unsafe_fs) {
		int rc = err_set(err, SHEAF_UNSUPPORTED,
		                 "the directory is on a network filesystem");
		err_hint(err, "appends are not atomic there; ?unsafe_fs=1 takes the risk");
		return rc;
	}
	return 0;
}

/* A store of one file: its session's key is what the header says. */
static int open_single(jstore *js, sheaf_error *err)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	_cleanup_(io_closep) int fd = io_open(js->root, js->single_file, O_RDONLY, 0);
	_cleanup_(json_freep) json_doc *doc = NULL;
	char app[SHEAF_KEY_PART_ROOM], user[SHEAF_KEY_PART_ROOM];
	io_stat st;
	jline line;
	header h;
	int rc;

	if (!a)
		return err_nomem(err);
	if (fd < 0)
		return err_sys(err, errno == ENOENT ? SHEAF_NOT_FOUND : SHEAF_STORAGE, errno,
		               "cannot open the file");
	if (io_stat_fd(fd, &st))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot look at the file");
	_cleanup_(jlines_free) jlines lines = JLINES_INIT(fd, 0, st.size);
	rc = jlines_next(&lines, &line);
	if (rc < 0)
		return err_sys(err, SHEAF_STORAGE, errno, "cannot read the file");
	if (rc == 0 || !line.text.ptr)
		return err_set(err, SHEAF_FORMAT, "the file holds no session");
	rc = header_read(&h, line.text, a, &doc, err);
	if (rc == 0)
		rc = sheaf_key_encode(js->single_session, h.id, err);
	if (rc == 0)
		rc = sheaf_key_encode(app, h.app.ptr ? h.app : (sheaf_str){"", 0}, err);
	if (rc == 0)
		rc = sheaf_key_encode(user, h.user.ptr ? h.user : (sheaf_str){"", 0}, err);
	if (rc)
		return rc;
	js->single_owner = jowner_new(js, sheaf_str_of(app), sheaf_str_of(user));
	if (!js->single_owner)
		return err_nomem(err);
	js->single_owner->refs = 1;
	js->single_owner->dir = io_open(js->root, ".", O_RDONLY | O_DIRECTORY, 0);
	return js->single_owner->dir >= 0
	               ? 0
	               : err_sys(err, SHEAF_STORAGE, errno, "cannot open the directory");
}

static void jsonl_close(void *backend)
{
	jstore *js = backend;
	size_t at = 0;
	const map_slot *slot;

	while (js->newest) {
		jlog *log = js->newest;
		list_unlink(js, log);
		map_remove(&js->logs, log_key(log));
		jlog_retire(log);
	}
	while ((slot = map_each(&js->owners, &at)))
		jowner_free((jowner *)(uintptr_t)slot->value);
	jowner_free(js->single_owner);
	map_free(&js->owners);
	map_free(&js->logs);
	if (js->root >= 0)
		io_close(js->root);
	while (js->notify_count)
		io_close(js->notify[--js->notify_count]);
	mem_free(js->path);
	pthread_mutex_destroy(&js->mutex);
	mem_free(js);
}

static int jsonl_open(void **backend, sheaf_str rest, const sheaf_store_options *options,
                      sheaf_str (*option)(const void *url, const char *name), const void *url,
                      sheaf_error *err)
{
	_cleanup_(mem_freep) char *path = mem_dup(rest.ptr, rest.len);
	bool unsafe_fs = str_is(option(url, "unsafe_fs"), "1");
	int rc;

	if (!path)
		return err_nomem(err);
	if (rest.len == 0 || memchr(rest.ptr, 0, rest.len))
		return err_set(err, SHEAF_INVALID, "jsonl: needs a directory");
	jstore *js = mem_zalloc(sizeof(*js));
	if (!js)
		return err_nomem(err);
	js->root = -1;
	js->readonly = options->readonly;
	pthread_mutex_init(&js->mutex, NULL);
	js->single = rest.len > 6 && memcmp(rest.ptr + rest.len - 6, ".jsonl", 6) == 0;
	if (js->single) {
		char *slash = strrchr(path, '/');
		const char *file = slash ? slash + 1 : path;
		if (strlen(file) >= sizeof(js->single_file)) {
			jsonl_close(js);
			return err_set(err, SHEAF_LIMIT, "the file's name is too long");
		}
		memcpy(js->single_file, file, strlen(file) + 1);
		if (slash)
			slash[slash == path] = 0;
		rc = open_root(js, slash ? path : ".", unsafe_fs, false, err);
		if (rc == 0)
			rc = open_single(js, err);
	} else {
		js->path = path;
		path = NULL;
		rc = open_root(js, js->path, unsafe_fs, true, err);
	}
	if (rc) {
		jsonl_close(js);
		return rc;
	}
	*backend = js;
	return 0;
}

static void jsonl_describe(void *backend, sheaf_store_info *out)
{
	const jstore *js = backend;
	out->scheme = "jsonl";
	out->durability = out->durability_max = SHEAF_DURABILITY_DISK;
	out->readonly = js->readonly;
	out->lists_app = 1;
	out->repairs = 1;
	out->queues = !js->single;
}

/* ---- Reading ------------------------------------------------------------------------------ */

/* Opens the log and looks at it. The mutex is held on success. */
static int begin_read(jstore *js, const sheaf_store_key *key, jlog **out, sheaf_error *err)
{
	int rc = jlog_get(js, key, out, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&(*out)->mutex);
	rc = jlog_refresh(*out, err);
	if (rc)
		pthread_mutex_unlock(&(*out)->mutex);
	return rc;
}

int64_t jlog_stored_us(const jlog *log)
{
	io_stat st;
	return io_stat_fd(log->file->fd, &st) == 0 ? st.mtime_ns / 1000 : clock_now_us();
}

int jlog_expired(const jlog *log)
{
	sheaf_session_info info;
	sheaf_head_info(log->head, &info);
	/* Asking for times makes the next write dearer: only where there is a reason. */
	if (info.ttl_us == 0 || info.pinned || info.hidden)
		return SHEAF_EXPIRY_NONE;
	return sheaf_head_expired(log->head, jlog_stored_us(log), clock_now_us());
}

static int jsonl_head(void *backend, const sheaf_store_key *key, int write, sheaf_head *out,
                      sheaf_head_state *state, sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	int rc = begin_read(backend, key, &log, err);

	if (rc)
		return rc;
	if (write && log->tail_bytes && !log->readonly && !log->damaged && !log->leader &&
	    jlog_expired(log) == SHEAF_EXPIRY_NONE) {
		/* A bad tail: if nobody is writing it is a tear, and a writer may move it away. */
		log->leader = true;
		if (jlog_lock_now(log)) {
			io_stat st;
			if (io_stat_fd_lean(log->file->fd, &st) == 0 && st.links)
				rc = jlog_follow(log, true, err);
			jlog_unlock(log);
		}
		jlog_unlead(log);
		pthread_mutex_lock(&log->mutex);
		/* Others may have been at it in between. */
		if (rc == 0)
			rc = jlog_refresh(log, err);
	}
	if (rc == 0)
		rc = sheaf_head_copy(out, log->head, err);
	*state = (sheaf_head_state){.readonly = log->readonly,
	                            .damaged = log->damaged,
	                            .torn_bytes = log->torn_bytes,
	                            .tail_bytes = log->tail_bytes,
	                            .now_us = clock_now_us()};
	if (rc == 0)
		state->stored_us = jlog_stored_us(log);
	snprintf(state->torn_file, sizeof(state->torn_file), "%s", log->torn_file);
	pthread_mutex_unlock(&log->mutex);
	return rc;
}

static int jsonl_scan(void *backend, const sheaf_store_key *key, const sheaf_scan *scan,
                      sheaf_row_fn fn, void *ctx, sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	int rc = begin_read(backend, key, &log, err);

	if (rc)
		return rc;
	rc = jlog_scan(log, scan, fn, ctx, err);
	pthread_mutex_unlock(&log->mutex);
	return rc;
}

static int jsonl_find(void *backend, const sheaf_store_key *key, sheaf_str id, uint64_t *seq,
                      sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	int rc = begin_read(backend, key, &log, err);

	if (rc)
		return rc;
	rc = jlog_find(log, id, seq, false, err);
	pthread_mutex_unlock(&log->mutex);
	return rc;
}

static int jsonl_header(void *backend, const sheaf_store_key *key, sheaf_row_fn fn, void *ctx,
                        sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	_cleanup_(buf_free) buf line = BUF_INIT(SHEAF_RECORD_BYTES_MAX + 4096);
	int rc = begin_read(backend, key, &log, err);

	if (rc)
		return rc;
	sheaf_row row = {.seq = log->base, .kind = SHEAF_KIND_SESSION};
	rc = jlog_header_line(log, &line, err);
	pthread_mutex_unlock(&log->mutex);
	if (rc)
		return rc;
	row.bytes = buf_view(&line);
	rc = fn(ctx, &row);
	return rc < 0 ? rc : 0;
}

const sheaf_store_ops store_jsonl_ops = {
	.size = sizeof(sheaf_store_ops),
	.scheme = "jsonl",
	.open = jsonl_open,
	.option_names = "unsafe_fs",
	.close = jsonl_close,
	.describe = jsonl_describe,
	.head = jsonl_head,
	.append = jsonl_append,
	.scan = jsonl_scan,
	.find = jsonl_find,
	.header = jsonl_header,
	.list = jsonl_list,
	.remove = jsonl_remove,
	.replace = jsonl_replace,
	.check = jsonl_check,
	.repair = jsonl_repair,
	.state_read = jsonl_state_read,
	.state_apply = jsonl_state_apply,
	.wait = jsonl_wait,
	.queue_put = jsonl_queue_put,
	.queue_claim = jsonl_queue_claim,
	.queue_ack = jsonl_queue_ack,
	.queue_cancel = jsonl_queue_cancel,
	.queue_list = jsonl_queue_list,
	.stamps = jsonl_stamps,
};
