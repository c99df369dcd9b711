/*
 * The catalogue of an owner: which sessions there are and what a list says of
 * them, so that a page costs a page and not a walk through every log.
 *
 * One file, derived: a snapshot sorted the way lists are, its offsets, then a
 * tail of rows that were written since.
 *
 *   header | row row row … | offset offset … | row row …
 *           `--- sorted ---'                  `-- tail --'
 *
 * A row says which file the log was, how long and how old, when it was written.
 * A page is verified against the files: a log that looks otherwise now has its
 * head read again, one that is gone is left out. A session that is appended to again and again writes no
 * row as long as its row is the newest.
 *
 * Rows about a change of the directory carry its mtime before and after. As
 * long as these link up and end at the present mtime, the catalogue knows every
 * file there is; otherwise somebody else put files there or took them away, and
 * the directory is read again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crc.h"
#include "store/jsonl_catalogue.h"

#define MAGIC UINT64_C(0x3274616366616873) /* "shafcat2" */
#define FILE_NAME "catalogue"
#define TAIL_BYTES_MIN ((uint64_t)1 << 20)
#define ROW_BYTES_MAX ((uint32_t)1 << 24)

jcatalogue *jcatalogue_new(void)
{
	jcatalogue *c = mem_zalloc(sizeof(*c));
	if (!c)
		return NULL;
	pthread_mutex_init(&c->mutex, NULL);
	c->fd = -1;
	c->pending = (buf)BUF_INIT(SIZE_MAX);
	return c;
}

static void forget(jcatalogue *c)
{
	if (c->fd >= 0)
		io_close(c->fd);
	for (size_t i = 0; i < c->tail_count; i++)
		mem_free(c->tail[i]);
	c->fd = -1;
	c->tail_count = 0;
	c->known_ns = 0;
	c->memory_ns = 0;
	c->broken = false;
	c->read_to = 0;
	c->file = (jcatalogue_head){0};
	c->newest[0] = 0;
	map_free(&c->names);
}

void jcatalogue_free(jcatalogue *c)
{
	if (!c)
		return;
	forget(c);
	mem_free(c->tail);
	buf_free(&c->pending);
	pthread_mutex_destroy(&c->mutex);
	mem_free(c);
}

/* ---- Rows ------------------------------------------------------------------------ */

static int64_t directory_ns(const jowner *o)
{
	io_stat st;
	return io_stat_fd(o->dir, &st) ? 0 : st.mtime_ns;
}

/* Appends a row's bytes; its place is noted so that before and after can be filled in later. */
static void row_write(buf *out, uint8_t op, const char *session, const io_stat *file,
                      int64_t modified_us, const void *head, size_t head_length, bool links)
{
	size_t name = strlen(session);
	jrow_head h = {.length = (uint32_t)(sizeof(h) + name + head_length),
	               .op = op,
	               .links = links,
	               .name_length = (uint16_t)name,
	               .head_length = (uint32_t)head_length,
	               .modified_us = modified_us,
	               .size = file->size,
	               .inode = file->inode,
	               .mtime_ns = file->mtime_ns};
	buf_add(out, &h, sizeof(h));
	buf_add(out, session, name);
	buf_add(out, head, head_length);
}

void jrow_seal(char *row, int64_t before_ns, int64_t after_ns)
{
	jrow_head h;
	memcpy(&h, row, sizeof(h));
	h.before_ns = before_ns;
	h.after_ns = after_ns;
	memcpy(row, &h, sizeof(h));
	h.crc = crc32c(0, row + offsetof(jrow_head, op), h.length - offsetof(jrow_head, op));
	memcpy(row, &h, sizeof(h));
}

void jrow_put(buf *out, const char *session, const io_stat *file, const sheaf_head *head)
{
	size_t need = sheaf_head_encode(head, NULL, 0);
	_cleanup_(mem_freep) void *bytes = mem_alloc(need ? need : 1);
	sheaf_session_info info;
	sheaf_str link;
	uint64_t base;

	if (!bytes) {
		out->status = SHEAF_NOMEM; /* then nothing is written, not even that all is known */
		return;
	}
	sheaf_head_encode(head, bytes, need);
	sheaf_head_info(head, &info);
	row_write(out, ROW_PUT, session, file, info.modified_us, bytes, need,
	          sheaf_head_link(head, 0, &link, &base));
}

/* Whether the log is still the file that the row speaks of, and as it was. */
bool jrow_fits(const jrow_head *h, const io_stat *file)
{
	return h->size == file->size && h->inode == file->inode && h->mtime_ns == file->mtime_ns;
}

/* A row from its bytes: NULL when they are none (or memory ran out). */
jrow *jrow_read(const char *bytes, size_t have)
{
	jrow_head h;
	if (have < sizeof(h))
		return NULL;
	memcpy(&h, bytes, sizeof(h));
	if (h.length > have || h.length > ROW_BYTES_MAX ||
	    h.length != sizeof(h) + h.name_length + (uint64_t)h.head_length ||
	    h.crc != crc32c(0, bytes + offsetof(jrow_head, op), h.length - offsetof(jrow_head, op)))
		return NULL;
	jrow *row = mem_alloc(sizeof(*row) + h.length);
	if (!row)
		return NULL;
	char *copy = (char *)(row + 1);
	memcpy(copy, bytes + sizeof(h), h.length - sizeof(h));
	row->h = h;
	row->name = (sheaf_str){copy, h.name_length};
	row->head = copy + h.name_length;
	return row;
}

static int row_cmp(const jrow *a, const jrow *b)
{
	if (a->h.modified_us != b->h.modified_us)
		return a->h.modified_us > b->h.modified_us ? -1 : 1;
	return str_cmp(a->name, b->name);
}

static int row_cmp_ptr(const void *a, const void *b)
{
	return row_cmp(*(jrow *const *)a, *(jrow *const *)b);
}

/* ---- Reading the file -------------------------------------------------------------- */

static jrow *tail_get(const jcatalogue *c, sheaf_str name)
{
	return map_get_ptr(&c->names, name);
}

/* Takes a row into the tail; it replaces an older one of the same name. */
int jcatalogue_add(jcatalogue *c, jrow *row)
{
	if (row->h.before_ns)
		c->known_ns = c->known_ns == row->h.before_ns ? row->h.after_ns : 0;
	if (row->h.op == ROW_DIRECTORY) {
		mem_free(row);
		return 0;
	}
	snprintf(c->newest, sizeof(c->newest), "%.*s", (int)row->name.len, row->name.ptr);
	jrow *old = tail_get(c, row->name);
	if (old) {
		map_remove(&c->names, old->name);
		old->h.op = ROW_DEAD;
	}
	if (mem_grow((void **)&c->tail, &c->tail_room, c->tail_count + 1, sizeof(*c->tail)) ||
	    map_set_ptr(&c->names, row->name, row)) {
		mem_free(row);
		return -1;
	}
	c->tail[c->tail_count++] = row;
	c->tail_sorted = false;
	return 0;
}

/* Reads what was added to the tail. -1: the file is no good. */
static int read_tail(jcatalogue *c, uint64_t end)
{
	_cleanup_(mem_freep) char *bytes = NULL;
	size_t have, at = 0;

	if (end <= c->read_to)
		return end == c->read_to ? 0 : -1;
	have = (size_t)(end - c->read_to);
	bytes = mem_alloc(have);
	if (!bytes || io_pread_full(c->fd, bytes, have, (off_t)c->read_to) != (ssize_t)have)
		return -1;
	while (at < have) {
		jrow *row = jrow_read(bytes + at, have - at);
		if (!row)
			return -1;
		at += row->h.length;
		if (jcatalogue_add(c, row))
			return -1;
	}
	c->read_to = end;
	return 0;
}

static bool head_ok(const jcatalogue_head *h, uint64_t size)
{
	return h->magic == MAGIC && h->crc == crc32c(0, h, offsetof(jcatalogue_head, crc)) &&
	       h->offsets_at >= sizeof(*h) && h->tail_at == h->offsets_at + 8 * h->count &&
	       h->tail_at <= size;
}

static int open_catalogue(jowner *o)
{
	int side = jowner_side(o);
	if (side < 0)
		return -1;
	int fd = io_open(side, FILE_NAME, O_RDWR | O_APPEND, 0);
	if (fd < 0 && (errno == EACCES || errno == EROFS))
		fd = io_open(side, FILE_NAME, O_RDONLY, 0);
	return fd;
}

/* Opens or follows the catalogue file. False: there is none to use. */
static bool catch_up(jcatalogue *c, jowner *o)
{
	io_stat st;

	for (int again = 0; again < 2; again++) {
		if (c->fd < 0) {
			int fd = open_catalogue(o);
			if (fd < 0)
				return false;
			forget(c);
			c->fd = fd;
			if (io_stat_fd_lean(c->fd, &st) ||
			    io_pread_full(c->fd, &c->file, sizeof(c->file), 0) != sizeof(c->file) ||
			    !head_ok(&c->file, st.size)) {
				forget(c);
				return false;
			}
			c->known_ns = c->file.directory_ns;
			c->read_to = c->file.tail_at;
		} else if (io_stat_fd_lean(c->fd, &st) || st.links == 0) {
			forget(c);
			continue;
		}
		if (st.links && read_tail(c, st.size) == 0)
			return true;
		forget(c);
	}
	return false;
}

static jrow *snapshot_read(const jcatalogue *c, uint64_t i)
{
	uint64_t at;
	char small[2048];
	jrow_head h;

	if (c->fd < 0 || i >= c->file.count ||
	    io_pread_full(c->fd, &at, sizeof(at), (off_t)(c->file.offsets_at + 8 * i)) !=
	            sizeof(at))
		return NULL;
	ssize_t got = io_pread_full(c->fd, small, sizeof(small), (off_t)at);
	if (got < (ssize_t)sizeof(h))
		return NULL;
	memcpy(&h, small, sizeof(h));
	if (h.length <= (size_t)got)
		return jrow_read(small, (size_t)got);
	if (h.length > ROW_BYTES_MAX)
		return NULL;
	_cleanup_(mem_freep) char *large = mem_alloc(h.length);
	if (!large || io_pread_full(c->fd, large, h.length, (off_t)at) != (ssize_t)h.length)
		return NULL;
	return jrow_read(large, h.length);
}

/* Snapshot row `i`; the caller frees it. NULL at the end, or with `broken` set. */
static jrow *snapshot_row(jcatalogue *c, uint64_t i)
{
	if (c->fd < 0 || i >= c->file.count)
		return NULL;
	jrow *row = snapshot_read(c, i);
	if (!row)
		c->broken = true;
	return row;
}

/* ---- In the order of lists ---------------------------------------------------------- */

void jcursor_done(jcursor *k)
{
	mem_free(k->ahead);
}

/* The first snapshot row not before `after` in the order of lists. */
static uint64_t snapshot_lower(jcatalogue *c, const jrow *after)
{
	uint64_t low = 0, high = c->file.count;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		jrow *row = snapshot_row(c, mid);
		bool before = row && row_cmp(row, after) < 0;
		mem_free(row);
		if (before)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void jcursor_begin(jcursor *k, jcatalogue *c, const jrow *after)
{
	*k = (jcursor){.c = c};
	if (!c->tail_sorted && c->tail_count)
		qsort(c->tail, c->tail_count, sizeof(*c->tail), row_cmp_ptr);
	c->tail_sorted = true;
	if (!after)
		return;
	k->snapshot_at = snapshot_lower(c, after);
	while (k->tail_at < c->tail_count && row_cmp(c->tail[k->tail_at], after) < 0)
		k->tail_at++;
}

/* The next row; 1 with *own set if the caller must free it, 0 at the end. */
int jcursor_next(jcursor *k, const jrow **out, jrow **own)
{
	jcatalogue *c = k->c;
	for (;;) {
		while (!k->ahead && k->snapshot_at < c->file.count) {
			k->ahead = snapshot_row(c, k->snapshot_at++);
			if (!k->ahead)
				return 0; /* broken: a list that leaves one out is worse than none */
			if (k->ahead->h.op != ROW_PUT || tail_get(c, k->ahead->name)) {
				mem_free(k->ahead);
				k->ahead = NULL;
			}
		}
		jrow *t = k->tail_at < c->tail_count ? c->tail[k->tail_at] : NULL;
		if (!t && !k->ahead)
			return 0;
		if (t && (!k->ahead || row_cmp(t, k->ahead) <= 0)) {
			k->tail_at++;
			if (t->h.op != ROW_PUT)
				continue;
			*out = t;
			*own = NULL;
			return 1;
		}
		*out = *own = k->ahead;
		k->ahead = NULL;
		return 1;
	}
}

/* ---- Writing ------------------------------------------------------------------------- */

/* Writes all rows as a new snapshot in place of the file. Mutex held. */
static int write_snapshot(jowner *o, jrow **rows, size_t count, int64_t mtime_ns)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	_cleanup_(io_closep) int fd = -1;
	jcatalogue_head h = {.magic = MAGIC, .count = count, .directory_ns = mtime_ns};
	char tmp[JSONL_TMP_ROOM];
	sheaf_error err;

	buf_add(&out, &h, sizeof(h));
	size_t offsets_at = sizeof(h);
	for (size_t i = 0; i < count; i++)
		offsets_at += rows[i]->h.length;
	if (buf_reserve(&out, offsets_at + 8 * count))
		return -1;
	for (size_t i = 0; i < count; i++) {
		size_t at = out.len;
		buf_add(&out, &rows[i]->h, sizeof(jrow_head));
		buf_add(&out, rows[i]->name.ptr, rows[i]->h.length - sizeof(jrow_head));
		jrow_seal(out.ptr + at, 0, 0);
	}
	uint64_t at = sizeof(h);
	for (size_t i = 0; i < count; i++) {
		buf_add(&out, &at, sizeof(at));
		at += rows[i]->h.length;
	}
	h.offsets_at = offsets_at;
	h.tail_at = out.len;
	h.crc = crc32c(0, &h, offsetof(jcatalogue_head, crc));
	memcpy(out.ptr, &h, sizeof(h));
	int got = jtmp_open(o, NULL, tmp, &err);
	if (got < 0)
		return -1;
	fd = got;
	if (io_write_full(fd, out.ptr, out.len) ||
	    io_rename(jowner_side(o), tmp, jowner_side(o), FILE_NAME)) {
		jtmp_unlink(o, tmp);
		return -1;
	}
	return 0;
}

void jrows_free(jrow **rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mem_free(rows[i]);
	mem_free(rows);
}

/* Every row there is, as copies, in order. */
int jcatalogue_rows(jcatalogue *c, jrow ***out, size_t *out_count)
{
	jrow **rows = NULL;
	size_t count = 0, room = 0;
	const jrow *row;
	jrow *own;
	jcursor k;
	int bad = 0;

	jcursor_begin(&k, c, NULL);
	while (!bad && jcursor_next(&k, &row, &own)) {
		if (!own) {
			own = mem_alloc(sizeof(*own) + row->h.length);
			if (own) {
				memcpy(own, row, sizeof(*own) + row->h.length - sizeof(jrow_head));
				own->name.ptr = (char *)(own + 1);
				own->head = own->name.ptr + own->name.len;
			}
		}
		bad = !own || mem_grow((void **)&rows, &room, count + 1, sizeof(*rows));
		if (bad)
			mem_free(own);
		else
			rows[count++] = own;
	}
	jcursor_done(&k);
	if (bad || c->broken) {
		jrows_free(rows, count);
		return -1;
	}
	*out = rows;
	*out_count = count;
	return 0;
}

/* The tail has outgrown the snapshot: fold it in. Mutex and file lock held. */
static void compact(jcatalogue *c, jowner *o)
{
	jrow **rows;
	size_t count;

	if (c->read_to - c->file.tail_at < TAIL_BYTES_MIN + c->file.tail_at / 8)
		return;
	if (jcatalogue_rows(c, &rows, &count)) {
		forget(c);
		return;
	}
	write_snapshot(o, rows, count, c->known_ns);
	jrows_free(rows, count);
	forget(c);
	catch_up(c, o);
}

/* The file lock, on the file that has the name. False: do without. */
bool jcatalogue_lock(jcatalogue *c, jowner *o)
{
	for (int tries = 0; tries < 100; tries++) {
		if (!catch_up(c, o))
			return false;
		if (io_lock_try(c->fd, F_WRLCK) == 0) {
			io_stat st;
			if (io_stat_fd_lean(c->fd, &st) == 0 && st.links &&
			    read_tail(c, st.size) == 0)
				return true;
			forget(c);
			continue;
		}
		if (errno != EAGAIN && errno != EACCES)
			return false;
		clock_sleep_us(tries < 10 ? 100 : 2000);
	}
	return false;
}

/* Appends the pending rows. Mutex and file lock held. */
void jcatalogue_flush(jcatalogue *c, jowner *o, int64_t before_ns, int64_t after_ns)
{
	if (c->pending.status) {
		forget(c);
		return;
	}
	for (size_t at = 0; at < c->pending.len;) {
		jrow_head h;
		memcpy(&h, c->pending.ptr + at, sizeof(h));
		bool last = at + h.length == c->pending.len;
		jrow_seal(c->pending.ptr + at, last ? before_ns : 0, last ? after_ns : 0);
		at += h.length;
	}
	if (c->pending.len &&
	    io_write(c->fd, c->pending.ptr, c->pending.len) != (ssize_t)c->pending.len) {
		/* A torn row makes the file useless; better none, and the directory is read again. */
		io_unlink(jowner_side(o), FILE_NAME);
		forget(c);
		return;
	}
	if (read_tail(c, c->read_to + c->pending.len) == 0)
		compact(c, o);
	else
		forget(c);
}

/* An empty catalogue that knows nothing yet, so that rows have a file to go to. */
static void begin_file(jcatalogue *c, jowner *o)
{
	if (!catch_up(c, o) && !o->store->readonly)
		write_snapshot(o, NULL, 0, 0);
}

#define TICK_NS INT64_C(20000000) /* no filesystem's clock is coarser */

/*
 * A change of the directory so soon after the last one may leave its mtime as it is. Whoever dies
 * between the change and its row would then leave a catalogue that seems to know all and does not:
 * so it says beforehand, and on the disk, that it does not. Mutex and file lock held.
 */
static void doubt(jcatalogue *c, jowner *o)
{
	row_write(&c->pending, ROW_DIRECTORY, "", &(io_stat){0}, 0, NULL, 0, false);
	bool good = c->pending.status == 0;
	if (good) {
		jrow_seal(c->pending.ptr, 1, 0);
		good = io_write(c->fd, c->pending.ptr, c->pending.len) == (ssize_t)c->pending.len &&
		       io_fdatasync(c->fd) == 0 && read_tail(c, c->read_to + c->pending.len) == 0;
	}
	buf_reset(&c->pending);
	if (good)
		return;
	io_unlink(jowner_side(o), FILE_NAME);
	forget(c);
	c->locked = false;
}

void jcatalogue_begin(jowner *o)
{
	jcatalogue *c = o->catalogue;
	pthread_mutex_lock(&c->mutex);
	begin_file(c, o);
	c->locked = jcatalogue_lock(c, o);
	c->before_ns = directory_ns(o);
	buf_reset(&c->pending);
	if (c->locked && c->known_ns == c->before_ns && c->known_ns &&
	    clock_now_us() * 1000 - c->before_ns < TICK_NS)
		doubt(c, o);
}

void jcatalogue_end(jowner *o)
{
	jcatalogue *c = o->catalogue;
	if (c->locked && c->fd >= 0) {
		if (c->pending.len == 0)
			row_write(&c->pending, ROW_DIRECTORY, "", &(io_stat){0}, 0, NULL, 0, false);
		jcatalogue_flush(c, o, c->before_ns, directory_ns(o));
		if (c->fd >= 0)
			io_lock_try(c->fd, F_UNLCK);
	} else if (!o->store->single) {
		/* Whoever has it does not know of our change, though his row may span it: without the
		 * file the directory is read again. */
		io_unlink(jowner_side(o), FILE_NAME);
		forget(c);
	}
	pthread_mutex_unlock(&c->mutex);
}

void jcatalogue_put(jowner *o, const char *session, int fd, const sheaf_head *head)
{
	io_stat st = {0};
	(void)io_stat_fd(fd, &st);
	jrow_put(&o->catalogue->pending, session, &st, head);
}

/* Overwrites what a row says of its session, in the file. */
static int scrub_row(int fd, uint64_t at, jrow_head h)
{
	_cleanup_(mem_freep) char *row = mem_zalloc(h.length);
	if (!row)
		return -1;
	if (io_pread_full(fd, row + sizeof(h), h.name_length, (off_t)(at + sizeof(h))) !=
	    (ssize_t)h.name_length)
		return -1;
	h.op = ROW_DEAD;
	memcpy(row, &h, sizeof(h));
	jrow_seal(row, h.before_ns, h.after_ns);
	return io_pwrite_full(fd, row, h.length, (off_t)at);
}

/* Every row of a session in [at, end) of the file, be it valid or replaced. */
static int scrub_range(int fd, const char *session, uint64_t at, uint64_t end)
{
	char name[SHEAF_KEY_PART_ROOM];
	size_t length = strlen(session);
	jrow_head h;

	for (; at < end; at += h.length) {
		if (io_pread_full(fd, &h, sizeof(h), (off_t)at) != (ssize_t)sizeof(h) ||
		    h.length < sizeof(h) || h.length > end - at)
			return -1;
		if (h.op != ROW_PUT || h.head_length == 0 || h.name_length != length)
			continue;
		if (io_pread_full(fd, name, length, (off_t)(at + sizeof(h))) != (ssize_t)length)
			return -1;
		if (memcmp(name, session, length) == 0 && scrub_row(fd, at, h))
			return -1;
	}
	return 0;
}

static int scrub_file(jcatalogue *c, jowner *o, const char *session, int log)
{
	io_stat file, same, st;

	if (io_stat_fd(log, &st))
		return -1;
	/* The log is still there: known, from here on, by a row that says nothing of it. */
	buf_reset(&c->pending);
	row_write(&c->pending, ROW_PUT, session, &st, st.mtime_ns / 1000, NULL, 0, true);
	jcatalogue_flush(c, o, 0, 0);
	/* Before the others go: a power cut between must not leave the log without any row. */
	if (c->fd < 0 || io_fdatasync(c->fd))
		return -1;
	/* What is open for appending cannot be written elsewhere. */
	_cleanup_(io_closep) int fd = io_open(jowner_side(o), FILE_NAME, O_RDWR, 0);
	if (c->fd < 0 || fd < 0 || io_stat_fd_lean(fd, &same) || io_stat_fd_lean(c->fd, &file) ||
	    same.inode != file.inode)
		return -1;
	if (scrub_range(fd, session, sizeof(jcatalogue_head), c->file.offsets_at) ||
	    scrub_range(fd, session, c->file.tail_at, c->read_to))
		return -1;
	return io_fdatasync(fd);
}

int jcatalogue_scrub(jowner *o, const char *session, int fd, sheaf_error *err)
{
	jcatalogue *c = o->catalogue;
	int side = o->store->single ? -1 : jowner_side(o), rc = 0;

	if (side < 0)
		return 0;
	pthread_mutex_lock(&c->mutex);
	bool locked = jcatalogue_lock(c, o);
	if (!locked || scrub_file(c, o, session, fd)) {
		/* Then all of it goes: it can be made again from the logs. */
		if ((io_unlink(side, FILE_NAME) && errno != ENOENT) || io_fsync(side))
			rc = err_sys(err, SHEAF_STORAGE, errno, "cannot clear the catalogue");
		forget(c);
	} else if (c->fd >= 0) {
		io_lock_try(c->fd, F_UNLCK);
	}
	pthread_mutex_unlock(&c->mutex);
	return rc;
}

void jcatalogue_drop(jowner *o, const char *session)
{
	row_write(&o->catalogue->pending, ROW_DROP, session, &(io_stat){0}, 0, NULL, 0, false);
}

#define LOOK_AGAIN_US 1000000

void jcatalogue_touch(jlog *log)
{
	jowner *o = log->owner;
	jcatalogue *c = o->catalogue;
	int64_t now = clock_monotonic_us();

	if (o->store->single)
		return;
	pthread_mutex_lock(&c->mutex);
	bool newest = strcmp(c->newest, log->session) == 0;
	if (!newest || now - c->looked_us > LOOK_AGAIN_US) {
		c->looked_us = now;
		if (jcatalogue_lock(c, o)) {
			if (strcmp(c->newest, log->session) != 0) {
				io_stat st = {0};
				(void)io_stat_fd(log->file->fd, &st);
				st.size = log->size;
				buf_reset(&c->pending);
				jrow_put(&c->pending, log->session, &st, log->head);
				jcatalogue_flush(c, o, 0, 0);
			}
			if (c->fd >= 0)
				io_lock_try(c->fd, F_UNLCK);
		}
	}
	pthread_mutex_unlock(&c->mutex);
}

/* ---- Reading the directory again ------------------------------------------------------ */

typedef struct rebuild {
	jcatalogue *c;
	jowner *o;
	map known; /* name → jrow of the old catalogue */
	jrow **rows;
	size_t count, room;
} rebuild;

static int rebuild_name(void *ctx, const char *name, unsigned char type)
{
	rebuild *b = ctx;
	size_t len = strlen(name);
	io_stat st;
	(void)type;

	if (name[0] == '.' || len < 7 || strcmp(name + len - 6, ".jsonl") != 0 ||
	    len - 6 >= SHEAF_KEY_PART_ROOM)
		return 0;
	sheaf_str session = {name, len - 6};
	jrow *old = map_get_ptr(&b->known, session), *row;
	if (io_stat_at(b->o->dir, name, &st))
		return errno == ENOENT ? 0 : -1;
	if (!S_ISREG(st.mode))
		return 0;
	/* Of another file nothing can be taken over: it may even be a fork now. */
	if (old && !jrow_fits(&old->h, &st))
		old = NULL;
	if (mem_grow((void **)&b->rows, &b->room, b->count + 1, sizeof(*b->rows)))
		return SHEAF_NOMEM;
	size_t body = old ? old->h.length - sizeof(jrow_head) : session.len;
	row = mem_alloc(sizeof(*row) + body);
	if (!row)
		return SHEAF_NOMEM;
	char *copy = (char *)(row + 1);
	memcpy(copy, old ? old->name.ptr : name, body);
	if (old)
		row->h = old->h;
	else
		row->h = (jrow_head){.length = (uint32_t)(sizeof(jrow_head) + body),
		                     .op = ROW_PUT,
		                     .name_length = (uint16_t)body,
		                     .modified_us = st.mtime_ns / 1000,
		                     .size = st.size,
		                     .inode = st.inode,
		                     .mtime_ns = st.mtime_ns};
	row->name = (sheaf_str){copy, session.len};
	row->head = copy + session.len;
	b->rows[b->count++] = row;
	return 0;
}

static int tail_from_rows(jcatalogue *c, rebuild *b)
{
	int bad = 0;
	for (size_t i = 0; i < b->count; i++) {
		if (bad)
			mem_free(b->rows[i]);
		else
			bad = jcatalogue_add(c, b->rows[i]);
	}
	mem_free(b->rows);
	b->rows = NULL;
	b->count = 0;
	return bad;
}

/* Makes the catalogue complete again: names from the directory, the rest from old rows. */
int jcatalogue_reconcile(jcatalogue *c, jowner *o, sheaf_error *err)
{
	rebuild b = {.c = c, .o = o};
	jrow **old = NULL;
	size_t old_count = 0;
	int64_t mtime_ns = directory_ns(o);
	int rc = !c->broken && jcatalogue_rows(c, &old, &old_count) && !c->broken ? SHEAF_NOMEM : 0;

	for (size_t i = 0; rc == 0 && i < old_count; i++)
		rc = map_set_ptr(&b.known, old[i]->name, old[i]);
	errno = 0;
	if (rc == 0)
		rc = io_each_name(o->dir, rebuild_name, &b);
	int why = errno;
	map_free(&b.known);
	jrows_free(old, old_count);
	if (rc) {
		jrows_free(b.rows, b.count);
		return rc == SHEAF_NOMEM
		               ? err_nomem(err)
		               : err_sys(err, SHEAF_STORAGE, why, "cannot read the directory");
	}
	if (b.count)
		qsort(b.rows, b.count, sizeof(*b.rows), row_cmp_ptr);
	bool stored = !o->store->readonly && write_snapshot(o, b.rows, b.count, mtime_ns) == 0;
	forget(c);
	if (stored && catch_up(c, o)) {
		jrows_free(b.rows, b.count);
		return 0;
	}
	/* It cannot be written: this once from memory. */
	forget(c);
	if (tail_from_rows(c, &b))
		return err_nomem(err);
	c->memory_ns = mtime_ns;
	return 0;
}

bool jcatalogue_in_memory(const jcatalogue *c, jowner *o)
{
	return c->memory_ns != 0 && c->memory_ns == directory_ns(o);
}

/* The catalogue, complete. Mutex held. */
int jcatalogue_load(jcatalogue *c, jowner *o, sheaf_error *err)
{
	int64_t now = directory_ns(o);
	if (catch_up(c, o) && c->known_ns == now && now != 0)
		return 0;
	bool locked = c->fd >= 0 && !o->store->readonly && jcatalogue_lock(c, o);
	int fd = c->fd;
	if (locked && c->known_ns == directory_ns(o)) {
		io_lock_try(fd, F_UNLCK);
		return 0;
	}
	/* Closing the old file gives its lock back. */
	return jcatalogue_reconcile(c, o, err);
}
