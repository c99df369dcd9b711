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
#include "store/jsonl.h"

#define MAGIC UINT64_C(0x3274616366616873) /* "shafcat2" */
#define FILE_NAME "catalogue"
#define TAIL_BYTES_MIN ((uint64_t)1 << 20)
#define ROW_BYTES_MAX ((uint32_t)1 << 24)

enum { ROW_DEAD = 0, ROW_PUT = 1, ROW_DROP = 2, ROW_DIRECTORY = 3 };

typedef struct file_head {
	uint64_t magic;
	uint64_t count;
	uint64_t offsets_at;
	uint64_t tail_at;
	int64_t directory_ns; /* the snapshot knows all files as of this mtime */
	uint32_t spare;
	uint32_t crc;
} file_head;

typedef struct row_head {
	uint32_t length; /* of the whole row */
	uint32_t crc;    /* over what follows this field */
	uint8_t op;
	uint8_t links; /* it is a fork */
	uint16_t name_length;
	uint32_t head_length;
	int64_t modified_us;
	uint64_t size; /* of the log's file, as are the next two */
	uint64_t inode;
	int64_t mtime_ns;
	int64_t before_ns; /* 0: no change of the directory */
	int64_t after_ns;
} row_head;

_Static_assert(sizeof(file_head) == 48 && sizeof(row_head) == 64, "fixed shapes on disk");

/* A row in memory; name and head follow it in the same block. */
typedef struct jrow {
	row_head h;
	sheaf_str name;
	const char *head;
} jrow;

struct jcatalogue {
	pthread_mutex_t mutex;
	int fd;
	uint64_t inode;
	file_head file;
	uint64_t read_to;
	int64_t known_ns; /* the directory's mtime up to which we know all; 0 = we do not */
	bool broken;      /* a row of the snapshot could not be read */
	jrow **tail;      /* the tail's rows; those replaced since are dead */
	size_t tail_count, tail_room;
	bool tail_sorted;
	map names; /* name → its row in tail */
	char newest[SHEAF_KEY_PART_ROOM];
	int64_t looked_us; /* when the file was last looked at for `newest` */
	/* between begin and end */
	bool locked;
	int64_t before_ns;
	buf pending;
};

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
	c->broken = false;
	c->read_to = 0;
	c->file = (file_head){0};
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
	row_head h = {.length = (uint32_t)(sizeof(h) + name + head_length),
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

static void row_seal(char *row, int64_t before_ns, int64_t after_ns)
{
	row_head h;
	memcpy(&h, row, sizeof(h));
	h.before_ns = before_ns;
	h.after_ns = after_ns;
	memcpy(row, &h, sizeof(h));
	h.crc = crc32c(0, row + offsetof(row_head, op), h.length - offsetof(row_head, op));
	memcpy(row, &h, sizeof(h));
}

static void row_put(buf *out, const char *session, const io_stat *file, const sheaf_head *head)
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
static bool row_fits(const row_head *h, const io_stat *file)
{
	return h->size == file->size && h->inode == file->inode && h->mtime_ns == file->mtime_ns;
}

/* A row from its bytes: NULL when they are none (or memory ran out). */
static jrow *row_read(const char *bytes, size_t have)
{
	row_head h;
	if (have < sizeof(h))
		return NULL;
	memcpy(&h, bytes, sizeof(h));
	if (h.length > have || h.length > ROW_BYTES_MAX ||
	    h.length != sizeof(h) + h.name_length + (uint64_t)h.head_length ||
	    h.crc != crc32c(0, bytes + offsetof(row_head, op), h.length - offsetof(row_head, op)))
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
static int tail_add(jcatalogue *c, jrow *row)
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
		jrow *row = row_read(bytes + at, have - at);
		if (!row)
			return -1;
		at += row->h.length;
		if (tail_add(c, row))
			return -1;
	}
	c->read_to = end;
	return 0;
}

static bool head_ok(const file_head *h, uint64_t size)
{
	return h->magic == MAGIC && h->crc == crc32c(0, h, offsetof(file_head, crc)) &&
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
	row_head h;

	if (c->fd < 0 || i >= c->file.count ||
	    io_pread_full(c->fd, &at, sizeof(at), (off_t)(c->file.offsets_at + 8 * i)) != sizeof(at))
		return NULL;
	ssize_t got = io_pread_full(c->fd, small, sizeof(small), (off_t)at);
	if (got < (ssize_t)sizeof(h))
		return NULL;
	memcpy(&h, small, sizeof(h));
	if (h.length <= (size_t)got)
		return row_read(small, (size_t)got);
	if (h.length > ROW_BYTES_MAX)
		return NULL;
	_cleanup_(mem_freep) char *large = mem_alloc(h.length);
	if (!large || io_pread_full(c->fd, large, h.length, (off_t)at) != (ssize_t)h.length)
		return NULL;
	return row_read(large, h.length);
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

typedef struct cursor {
	jcatalogue *c;
	size_t tail_at;
	uint64_t snapshot_at;
	jrow *ahead; /* the snapshot's next, read already */
} cursor;

static void cursor_done(cursor *k)
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

static void cursor_begin(cursor *k, jcatalogue *c, const jrow *after)
{
	*k = (cursor){.c = c};
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
static int cursor_next(cursor *k, const jrow **out, jrow **own)
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
	file_head h = {.magic = MAGIC, .count = count, .directory_ns = mtime_ns};
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
		buf_add(&out, &rows[i]->h, sizeof(row_head));
		buf_add(&out, rows[i]->name.ptr, rows[i]->h.length - sizeof(row_head));
		row_seal(out.ptr + at, 0, 0);
	}
	uint64_t at = sizeof(h);
	for (size_t i = 0; i < count; i++) {
		buf_add(&out, &at, sizeof(at));
		at += rows[i]->h.length;
	}
	h.offsets_at = offsets_at;
	h.tail_at = out.len;
	h.crc = crc32c(0, &h, offsetof(file_head, crc));
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

static void rows_free(jrow **rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mem_free(rows[i]);
	mem_free(rows);
}

/* Every row there is, as copies, in order. */
static int all_rows(jcatalogue *c, jrow ***out, size_t *out_count)
{
	jrow **rows = NULL;
	size_t count = 0, room = 0;
	const jrow *row;
	jrow *own;
	cursor k;
	int bad = 0;

	cursor_begin(&k, c, NULL);
	while (!bad && cursor_next(&k, &row, &own)) {
		if (!own) {
			own = mem_alloc(sizeof(*own) + row->h.length);
			if (own) {
				memcpy(own, row, sizeof(*own) + row->h.length - sizeof(row_head));
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
	cursor_done(&k);
	if (bad || c->broken) {
		rows_free(rows, count);
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
	if (all_rows(c, &rows, &count)) {
		forget(c);
		return;
	}
	write_snapshot(o, rows, count, c->known_ns);
	rows_free(rows, count);
	forget(c);
	catch_up(c, o);
}

/* The file lock, on the file that has the name. False: do without. */
static bool lock_catalogue(jcatalogue *c, jowner *o)
{
	for (int tries = 0; tries < 100; tries++) {
		if (!catch_up(c, o))
			return false;
		if (io_lock_try(c->fd, F_WRLCK) == 0) {
			io_stat st;
			if (io_stat_fd_lean(c->fd, &st) == 0 && st.links && read_tail(c, st.size) == 0)
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
static void flush_pending(jcatalogue *c, jowner *o, int64_t before_ns, int64_t after_ns)
{
	if (c->pending.status) {
		forget(c);
		return;
	}
	for (size_t at = 0; at < c->pending.len;) {
		row_head h;
		memcpy(&h, c->pending.ptr + at, sizeof(h));
		bool last = at + h.length == c->pending.len;
		row_seal(c->pending.ptr + at, last ? before_ns : 0, last ? after_ns : 0);
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

void jcatalogue_begin(jowner *o)
{
	jcatalogue *c = o->catalogue;
	pthread_mutex_lock(&c->mutex);
	begin_file(c, o);
	c->locked = lock_catalogue(c, o);
	c->before_ns = directory_ns(o);
	buf_reset(&c->pending);
}

void jcatalogue_end(jowner *o)
{
	jcatalogue *c = o->catalogue;
	if (c->locked && c->fd >= 0) {
		if (c->pending.len == 0)
			row_write(&c->pending, ROW_DIRECTORY, "", &(io_stat){0}, 0, NULL, 0, false);
		flush_pending(c, o, c->before_ns, directory_ns(o));
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
	row_put(&o->catalogue->pending, session, &st, head);
}

/* Overwrites what a row says of its session, in the file. */
static int scrub_row(int fd, uint64_t at, row_head h)
{
	_cleanup_(mem_freep) char *row = mem_zalloc(h.length);
	if (!row)
		return -1;
	if (io_pread_full(fd, row + sizeof(h), h.name_length, (off_t)(at + sizeof(h))) !=
	    (ssize_t)h.name_length)
		return -1;
	h.op = ROW_DEAD;
	memcpy(row, &h, sizeof(h));
	row_seal(row, h.before_ns, h.after_ns);
	return io_pwrite_full(fd, row, h.length, (off_t)at);
}

/* Every row of a session in [at, end) of the file, be it valid or replaced. */
static int scrub_range(int fd, const char *session, uint64_t at, uint64_t end)
{
	char name[SHEAF_KEY_PART_ROOM];
	size_t length = strlen(session);
	row_head h;

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
	flush_pending(c, o, 0, 0);
	/* Before the others go: a power cut between must not leave the log without any row. */
	if (c->fd < 0 || io_fdatasync(c->fd))
		return -1;
	/* What is open for appending cannot be written elsewhere. */
	_cleanup_(io_closep) int fd = io_open(jowner_side(o), FILE_NAME, O_RDWR, 0);
	if (c->fd < 0 || fd < 0 || io_stat_fd_lean(fd, &same) || io_stat_fd_lean(c->fd, &file) ||
	    same.inode != file.inode)
		return -1;
	if (scrub_range(fd, session, sizeof(file_head), c->file.offsets_at) ||
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
	bool locked = lock_catalogue(c, o);
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
		if (lock_catalogue(c, o)) {
			if (strcmp(c->newest, log->session) != 0) {
				io_stat st = {0};
				(void)io_stat_fd(log->file->fd, &st);
				st.size = log->size;
				buf_reset(&c->pending);
				row_put(&c->pending, log->session, &st, log->head);
				flush_pending(c, o, 0, 0);
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
	if (old && !row_fits(&old->h, &st))
		old = NULL;
	if (mem_grow((void **)&b->rows, &b->room, b->count + 1, sizeof(*b->rows)))
		return SHEAF_NOMEM;
	size_t body = old ? old->h.length - sizeof(row_head) : session.len;
	row = mem_alloc(sizeof(*row) + body);
	if (!row)
		return SHEAF_NOMEM;
	char *copy = (char *)(row + 1);
	memcpy(copy, old ? old->name.ptr : name, body);
	if (old)
		row->h = old->h;
	else
		row->h = (row_head){.length = (uint32_t)(sizeof(row_head) + body),
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
			bad = tail_add(c, b->rows[i]);
	}
	mem_free(b->rows);
	b->rows = NULL;
	b->count = 0;
	return bad;
}

/* Makes the catalogue complete again: names from the directory, the rest from old rows. */
static int reconcile(jcatalogue *c, jowner *o, sheaf_error *err)
{
	rebuild b = {.c = c, .o = o};
	jrow **old = NULL;
	size_t old_count = 0;
	int64_t mtime_ns = directory_ns(o);
	int rc = !c->broken && all_rows(c, &old, &old_count) && !c->broken ? SHEAF_NOMEM : 0;

	for (size_t i = 0; rc == 0 && i < old_count; i++)
		rc = map_set_ptr(&b.known, old[i]->name, old[i]);
	errno = 0;
	if (rc == 0)
		rc = io_each_name(o->dir, rebuild_name, &b);
	int why = errno;
	map_free(&b.known);
	rows_free(old, old_count);
	if (rc) {
		rows_free(b.rows, b.count);
		return rc == SHEAF_NOMEM ? err_nomem(err)
		                         : err_sys(err, SHEAF_STORAGE, why, "cannot read the directory");
	}
	if (b.count)
		qsort(b.rows, b.count, sizeof(*b.rows), row_cmp_ptr);
	bool stored = !o->store->readonly && write_snapshot(o, b.rows, b.count, mtime_ns) == 0;
	forget(c);
	if (stored && catch_up(c, o)) {
		rows_free(b.rows, b.count);
		return 0;
	}
	/* It cannot be written: this once from memory. */
	forget(c);
	return tail_from_rows(c, &b) ? err_nomem(err) : 0;
}

/* The catalogue, complete. Mutex held. */
static int load(jcatalogue *c, jowner *o, sheaf_error *err)
{
	int64_t now = directory_ns(o);
	if (catch_up(c, o) && c->known_ns == now && now != 0)
		return 0;
	bool locked = c->fd >= 0 && !o->store->readonly && lock_catalogue(c, o);
	int fd = c->fd;
	if (locked && c->known_ns == directory_ns(o)) {
		io_lock_try(fd, F_UNLCK);
		return 0;
	}
	/* Closing the old file gives its lock back. */
	return reconcile(c, o, err);
}

/* ---- Listing ---------------------------------------------------------------------------- */

typedef struct listed {
	char session[SHEAF_KEY_PART_ROOM];
	sheaf_head *head;
	int64_t modified_us;
	int damaged; /* cannot be read */
	int denied;  /* because it may not be */
	int readonly;
	bool fits;    /* the head and what follows belong together */
	io_stat file;
} listed;

static int listed_cmp(const void *a, const void *b)
{
	const listed *x = a, *y = b;
	if (x->modified_us != y->modified_us)
		return x->modified_us > y->modified_us ? -1 : 1;
	return strcmp(x->session, y->session);
}

/* Whether a session stands at or before the place where the query wants to go on. */
static bool before_cursor(const sheaf_list_query *q, const sheaf_store_key *key, int64_t modified_us)
{
	if (!q->has_after || modified_us < q->after_modified_us)
		return false;
	if (modified_us > q->after_modified_us)
		return true;
	int cmp = str_cmp(key->owner, q->after_owner);
	return cmp < 0 || (cmp == 0 && str_cmp(key->session, q->after_session) <= 0);
}

/* Reads a head from the log itself. 1: there is no such session; 0 also when it is damaged. */
static int head_from_log(jowner *o, listed *l, sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	int rc = jlog_get_named(o, l->session, &log, err);

	if (rc)
		return rc;
	pthread_mutex_lock(&log->mutex);
	rc = jlog_refresh(log, err);
	if (rc == 0)
		rc = sheaf_head_copy(l->head, log->head, err);
	l->damaged = rc == 0 && log->damaged;
	l->readonly = rc == 0 && log->readonly;
	/* While it is being written to, the file is ahead of the head. */
	l->fits = rc == 0 && !log->leader && io_stat_fd(log->file->fd, &l->file) == 0 &&
	          l->file.size == log->size + log->tail_bytes;
	pthread_mutex_unlock(&log->mutex);
	if (rc == SHEAF_DAMAGED || (rc == SHEAF_DENIED && err->sys_errno == EACCES)) {
		l->damaged = 1;
		l->denied = rc == SHEAF_DENIED;
		return 0;
	}
	return rc == SHEAF_NOT_FOUND || rc == SHEAF_FORMAT || rc == SHEAF_DENIED ? 1 : rc;
}

typedef struct candidate_row {
	char session[SHEAF_KEY_PART_ROOM];
	row_head h;
	char *head;
} candidate_row;

#define CHUNK_ROWS 64

/*
 * One owner's list. Rows come in the order of their keys; a row whose log was
 * never read has the file's mtime as its key, which is not below the time of
 * its newest record. So a session may be given once everything still to come
 * has a key behind it: what waits for that is in `waiting`.
 */
typedef struct listing {
	jowner *o;
	const sheaf_list_query *query;
	sheaf_info_fn fn;
	void *ctx;
	listed *waiting;
	size_t count, room;
	map seen;    /* sessions met, for rows that another writer moves meanwhile */
	arena *names;
	buf corrected; /* rows to write when the list is done */
	jrow *after; /* the key of the last row taken; NULL at the start */
} listing;

/* Verifies one row against its file and fills what the list shows. 1: leave it out. */
static int verify(listing *l, const candidate_row *row, listed *out, sheaf_error *err)
{
	char file[JSONL_NAME_ROOM];
	io_stat st;
	int rc;

	snprintf(file, sizeof(file), "%s.jsonl", row->session);
	snprintf(out->session, sizeof(out->session), "%s", row->session);
	out->modified_us = row->h.modified_us;
	if (io_stat_at(l->o->dir, file, &st))
		return errno == ENOENT
		               ? 1
		               : err_sys(err, SHEAF_STORAGE, errno, "cannot look at a log");
	out->head = sheaf_head_new();
	if (!out->head)
		return err_nomem(err);
	if (row_fits(&row->h, &st) && row->h.head_length &&
	    sheaf_head_decode(out->head, row->head, row->h.head_length, err) == 0)
		return 0;
	rc = head_from_log(l->o, out, err);
	if (rc == 0 && !out->damaged) {
		sheaf_session_info info;
		sheaf_head_info(out->head, &info);
		out->modified_us = info.modified_us;
		if (out->fits)
			row_put(&l->corrected, out->session, &out->file, out->head);
	}
	return rc;
}

static void candidates_free(candidate_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		mem_free(rows[i].head);
		rows[i].head = NULL;
	}
}

/* Copies the next rows in order. Mutex held. */
static int copy_candidates(listing *l, candidate_row *rows, size_t *count, sheaf_error *err)
{
	const jrow *row;
	jrow *own;
	cursor k;
	int rc = 0;

	*count = 0;
	cursor_begin(&k, l->o->catalogue, l->after);
	while (rc == 0 && *count < CHUNK_ROWS && cursor_next(&k, &row, &own)) {
		candidate_row *r = &rows[(*count)++];
		snprintf(r->session, sizeof(r->session), "%.*s", (int)row->name.len, row->name.ptr);
		r->h = row->h;
		r->head = mem_dup(row->head, row->h.head_length);
		mem_free(own);
		rc = r->head ? 0 : err_nomem(err);
	}
	cursor_done(&k);
	return rc;
}

/* The next rows, as copies, so that the mutex need not be held while they are verified. */
static int take_candidates(listing *l, candidate_row *rows, size_t *count, sheaf_error *err)
{
	jcatalogue *c = l->o->catalogue;

	pthread_mutex_lock(&c->mutex);
	int rc = load(c, l->o, err);
	if (rc == 0)
		rc = copy_candidates(l, rows, count, err);
	if (rc == 0 && c->broken) {
		candidates_free(rows, *count);
		*count = 0;
		rc = reconcile(c, l->o, err);
		if (rc == 0)
			rc = copy_candidates(l, rows, count, err);
		if (rc == 0 && c->broken)
			rc = err_sys(err, SHEAF_STORAGE, EIO, "cannot read the catalogue");
	}
	pthread_mutex_unlock(&c->mutex);
	return rc;
}

/* Gives what waits and does not come after `bound` in the order of lists; NULL: all of it. */
static int give_waiting(listing *l, const candidate_row *bound)
{
	const sheaf_list_query *q = l->query;
	size_t given = 0;
	int rc = 0;

	if (l->count)
		qsort(l->waiting, l->count, sizeof(*l->waiting), listed_cmp);
	for (; rc == 0 && given < l->count; given++) {
		listed *x = &l->waiting[given];
		if (bound && (x->modified_us < bound->h.modified_us ||
		              (x->modified_us == bound->h.modified_us &&
		               strcmp(x->session, bound->session) > 0)))
			break;
		sheaf_session_info info;
		sheaf_store_key key = {sheaf_str_of(l->o->key), sheaf_str_of(l->o->app),
		                       sheaf_str_of(l->o->user), sheaf_str_of(x->session)};
		sheaf_head_info(x->head, &info);
		info.modified_us = x->modified_us;
		info.damaged = x->damaged;
		info.readonly = x->readonly;
		if ((info.hidden && !q->hidden) || before_cursor(q, &key, x->modified_us))
			continue;
		rc = l->fn(l->ctx, &key, &info);
	}
	for (size_t i = 0; i < given; i++)
		sheaf_head_free(l->waiting[i].head);
	l->count -= given;
	if (l->count)
		memmove(l->waiting, l->waiting + given, l->count * sizeof(*l->waiting));
	return rc;
}

/* Where to go on: the catalogue may change between chunks, so by value, not by place. */
static jrow *key_row(const char *session, int64_t modified_us)
{
	size_t len = strlen(session);
	jrow *row = mem_alloc(sizeof(*row) + len + 1);
	if (!row)
		return NULL;
	memcpy(row + 1, session, len + 1);
	row->h = (row_head){.modified_us = modified_us};
	row->name = (sheaf_str){(char *)(row + 1), len};
	return row;
}

/* Verifies a row, unless it was met before, and lets it wait for its turn. */
static int take_one(listing *l, const candidate_row *row, sheaf_error *err)
{
	int ok = 1;
	uint64_t value;

	if (map_get(&l->seen, sheaf_str_of(row->session), &value))
		return 0;
	sheaf_str name = arena_dup(l->names, sheaf_str_of(row->session), &ok);
	if (!ok || map_set(&l->seen, name, 1) ||
	    mem_grow((void **)&l->waiting, &l->room, l->count + 1, sizeof(*l->waiting)))
		return err_nomem(err);
	listed *x = &l->waiting[l->count];
	*x = (listed){.head = NULL};
	int rc = verify(l, row, x, err);
	if (rc == 0)
		l->count++;
	else
		sheaf_head_free(x->head);
	return rc > 0 ? 0 : rc;
}

/* One chunk. 0 more may come, 1 stop or end, negative failure. */
static int list_chunk(listing *l, sheaf_error *err)
{
	candidate_row *rows = mem_zalloc(CHUNK_ROWS * sizeof(*rows));
	size_t count = 0;
	int rc = rows ? take_candidates(l, rows, &count, err) : err_nomem(err);
	bool end = count < CHUNK_ROWS;

	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = take_one(l, &rows[i], err);
	if (rc == 0 && count) {
		mem_free(l->after);
		l->after = key_row(rows[count - 1].session, rows[count - 1].h.modified_us);
		rc = l->after ? 0 : err_nomem(err);
	}
	if (rc == 0)
		rc = give_waiting(l, end ? NULL : &rows[count - 1]);
	if (rows)
		candidates_free(rows, count);
	mem_free(rows);
	return rc ? rc : end;
}

/* Rows that turned out otherwise are written down as they are. */
static void write_corrected(jowner *o, const buf *rows)
{
	jcatalogue *c = o->catalogue;

	if (rows->len == 0 || rows->status)
		return;
	pthread_mutex_lock(&c->mutex);
	buf_reset(&c->pending);
	buf_add(&c->pending, rows->ptr, rows->len);
	if (!o->store->readonly && lock_catalogue(c, o)) {
		flush_pending(c, o, 0, 0);
		if (c->fd >= 0)
			io_lock_try(c->fd, F_UNLCK);
	} else {
		/* Not on disk; in memory they serve the next page. */
		for (size_t at = 0; at < c->pending.len;) {
			row_seal(c->pending.ptr + at, 0, 0);
			jrow *row = row_read(c->pending.ptr + at, c->pending.len - at);
			if (!row)
				break;
			at += row->h.length;
			if (tail_add(c, row))
				break;
		}
	}
	pthread_mutex_unlock(&c->mutex);
}

static int list_owner(jowner *o, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
                      sheaf_error *err)
{
	listing l = {.o = o, .query = query, .fn = fn, .ctx = ctx, .corrected = BUF_INIT(SIZE_MAX)};
	int rc = 0;

	l.names = arena_new();
	if (!l.names)
		return err_nomem(err);
	if (query->has_after) {
		l.after = key_row("", query->after_modified_us);
		rc = l.after ? 0 : err_nomem(err);
	}
	while (rc == 0)
		rc = list_chunk(&l, err);
	write_corrected(o, &l.corrected);
	for (size_t i = 0; i < l.count; i++)
		sheaf_head_free(l.waiting[i].head);
	mem_free(l.waiting);
	map_free(&l.seen);
	arena_free(l.names);
	buf_free(&l.corrected);
	mem_free(l.after);
	return rc < 0 ? rc : 0;
}

/* Whether the file's header says that the session is a fork; 1 also when it cannot be read. */
static int header_forks(jowner *o, const char *session, sheaf_error *err)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	_cleanup_(json_freep) json_doc *doc = NULL;
	char file[JSONL_NAME_ROOM];
	jline line;
	header h;

	if (!a)
		return err_nomem(err);
	snprintf(file, sizeof(file), "%s.jsonl", session);
	_cleanup_(io_closep) int fd = io_open(o->dir, file, O_RDONLY, 0);
	if (fd < 0)
		return errno == ENOENT ? 0 : 1;
	_cleanup_(jlines_free) jlines lines = JLINES_INIT(fd, 0, SHEAF_RECORD_BYTES_MAX);
	if (jlines_next(&lines, &line) != 1 || !line.text.ptr)
		return 1;
	int rc = header_read(&h, line.text, a, &doc, err);
	return rc == SHEAF_NOMEM ? rc : rc != 0 || h.link_count != 0;
}

/* Whether the session of a row may be a fork. The row alone can say so only of the file it knew. */
static int row_forks(jowner *o, const jrow *row, const char *session, sheaf_error *err)
{
	char file[JSONL_NAME_ROOM];
	io_stat st;

	if (row->h.links || row->h.head_length == 0)
		return 1;
	snprintf(file, sizeof(file), "%s.jsonl", session);
	if (io_stat_at(o->dir, file, &st) == 0 && row_fits(&row->h, &st))
		return 0;
	return header_forks(o, session, err);
}

/* Calls fn if the session of a row reads `session`. */
static int if_reads(jowner *o, const jrow *row, const char *session,
                    int (*fn)(void *ctx, const char *name, const sheaf_head *head), void *ctx,
                    sheaf_error *err)
{
	listed l = {.head = NULL};
	sheaf_str link;
	uint64_t base;
	bool reads = false;

	snprintf(l.session, sizeof(l.session), "%.*s", (int)row->name.len, row->name.ptr);
	int rc = row_forks(o, row, l.session, err);
	if (rc <= 0)
		return rc;
	l.head = sheaf_head_new();
	if (!l.head)
		return err_nomem(err);
	/* Whether it is hidden or gone only its file can say. */
	rc = head_from_log(o, &l, err);
	if (rc == 0 && l.denied)
		rc = err_sys(err, SHEAF_DENIED, EACCES, "cannot tell whether %s reads it", l.session);
	for (size_t k = 0; rc == 0 && sheaf_head_link(l.head, k, &link, &base); k++)
		reads = reads || str_is(link, session);
	if (reads && !sheaf_head_hidden(l.head))
		rc = fn(ctx, l.session, l.head);
	sheaf_head_free(l.head);
	return rc > 0 ? 0 : rc;
}

int jcatalogue_readers(jowner *o, const char *session,
                       int (*fn)(void *ctx, const char *name, const sheaf_head *head), void *ctx,
                       sheaf_error *err)
{
	jcatalogue *c = o->catalogue;
	jrow **rows = NULL;
	size_t count = 0;
	int rc;

	pthread_mutex_lock(&c->mutex);
	rc = load(c, o, err);
	int bad = rc == 0 ? all_rows(c, &rows, &count) : 0;
	if (bad && c->broken) {
		rc = reconcile(c, o, err);
		bad = rc == 0 ? all_rows(c, &rows, &count) : 0;
	}
	if (bad)
		rc = c->broken ? err_sys(err, SHEAF_STORAGE, EIO, "cannot read the catalogue")
		               : err_nomem(err);
	pthread_mutex_unlock(&c->mutex);
	for (size_t i = 0; rc == 0 && i < count; i++)
		if (!str_is(rows[i]->name, session))
			rc = if_reads(o, rows[i], session, fn, ctx, err);
	rows_free(rows, count);
	return rc;
}

/* ---- Several owners ----------------------------------------------------------------------- */

typedef struct names {
	char (*items)[SHEAF_KEY_PART_ROOM];
	size_t count, room;
} names;

static int collect_name(void *ctx, const char *name, unsigned char type)
{
	names *n = ctx;
	(void)type;
	if (name[0] == '.' || strlen(name) >= SHEAF_KEY_PART_ROOM)
		return 0;
	if (mem_grow((void **)&n->items, &n->room, n->count + 1, sizeof(*n->items)))
		return SHEAF_NOMEM;
	snprintf(n->items[n->count++], SHEAF_KEY_PART_ROOM, "%s", name);
	return 0;
}

static int names_of(int dir, names *out, sheaf_error *err)
{
	int rc = io_each_name(dir, collect_name, out);
	if (rc == SHEAF_NOMEM)
		return err_nomem(err);
	return rc ? err_sys(err, SHEAF_STORAGE, errno, "cannot read a directory") : 0;
}

typedef struct gathered {
	listed *items;
	size_t count, room;
} gathered;

/* Lists all of one owner into memory. */
static int gather(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	gathered *g = ctx;
	if (mem_grow((void **)&g->items, &g->room, g->count + 1, sizeof(*g->items)))
		return SHEAF_NOMEM;
	listed *l = &g->items[g->count];
	*l = (listed){.modified_us = info->modified_us, .damaged = info->damaged,
	              .readonly = info->readonly};
	snprintf(l->session, sizeof(l->session), "%s", key->session.ptr);
	g->count++;
	return 0;
}

typedef struct merge_item {
	jowner *o;
	listed l;
} merge_item;

static int merge_cmp(const void *a, const void *b)
{
	const merge_item *x = a, *y = b;
	if (x->l.modified_us != y->l.modified_us)
		return x->l.modified_us > y->l.modified_us ? -1 : 1;
	int cmp = strcmp(x->o->key, y->o->key);
	return cmp ? cmp : strcmp(x->l.session, y->l.session);
}

typedef struct wide {
	jstore *js;
	const sheaf_list_query *query;
	jowner **owners;
	size_t owner_count, owner_room;
	merge_item *items;
	size_t count, room;
} wide;

static int wide_owner(wide *w, sheaf_str app, sheaf_str user, sheaf_error *err)
{
	gathered g = {0};
	jowner *o = NULL;
	int rc = jowner_open(w->js, app, user, false, &o, err);

	if (rc == SHEAF_NOT_FOUND)
		return 0;
	if (rc)
		return rc;
	if (mem_grow((void **)&w->owners, &w->owner_room, w->owner_count + 1, sizeof(*w->owners))) {
		jowner_put(o);
		return err_nomem(err);
	}
	w->owners[w->owner_count++] = o;
	sheaf_list_query all = *w->query;
	all.has_after = 0;
	rc = list_owner(o, &all, gather, &g, err);
	if (rc == 0 && mem_grow((void **)&w->items, &w->room, w->count + g.count, sizeof(*w->items)))
		rc = err_nomem(err);
	for (size_t i = 0; rc == 0 && i < g.count; i++)
		w->items[w->count++] = (merge_item){o, g.items[i]};
	mem_free(g.items);
	return rc;
}

static int wide_app(wide *w, const char *app, sheaf_error *err)
{
	_cleanup_(io_closep) int dir = io_open(w->js->root, app, O_RDONLY | O_DIRECTORY, 0);
	names users = {0};
	int rc;

	if (dir < 0)
		return errno == ENOENT || errno == ENOTDIR
		               ? 0
		               : err_sys(err, SHEAF_STORAGE, errno, "cannot open a directory");
	rc = names_of(dir, &users, err);
	for (size_t i = 0; rc == 0 && i < users.count; i++)
		rc = wide_owner(w, sheaf_str_of(app), sheaf_str_of(users.items[i]), err);
	mem_free(users.items);
	return rc;
}

static int wide_gather(wide *w, sheaf_error *err)
{
	const sheaf_list_query *q = w->query;
	static const sheaf_str none = {"%", 1};
	int rc = 0;

	if (q->app.ptr && !str_eq(q->app, none))
		return wide_app(w, q->app.ptr, err);
	rc = wide_owner(w, none, none, err); /* both empty: the root itself */
	if (rc == 0 && q->app.ptr)
		return wide_app(w, "%", err);
	names apps = {0};
	if (rc == 0)
		rc = names_of(w->js->root, &apps, err);
	for (size_t i = 0; rc == 0 && i < apps.count; i++) {
		size_t len = strlen(apps.items[i]);
		if (len < 6 || strcmp(apps.items[i] + len - 6, ".jsonl") != 0)
			rc = wide_app(w, apps.items[i], err);
	}
	mem_free(apps.items);
	return rc;
}

/* Reads one session's head and gives it. */
static int give_one(jowner *o, listed *x, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
                    sheaf_error *err)
{
	listing l = {.o = o, .query = query, .fn = fn, .ctx = ctx, .waiting = x, .count = 1};
	int64_t key = x->modified_us;
	int rc;

	x->head = sheaf_head_new();
	if (!x->head)
		return err_nomem(err);
	rc = head_from_log(o, x, err);
	if (rc) {
		sheaf_head_free(x->head);
		return rc > 0 ? 0 : rc;
	}
	if (key == 0 && !x->damaged) {
		sheaf_session_info info;
		sheaf_head_info(x->head, &info);
		x->modified_us = info.modified_us;
	}
	return give_waiting(&l, NULL);
}

static int wide_give(wide *w, sheaf_info_fn fn, void *ctx, sheaf_error *err)
{
	int rc = 0;
	if (w->count)
		qsort(w->items, w->count, sizeof(*w->items), merge_cmp);
	for (size_t i = 0; rc == 0 && i < w->count; i++) {
		rc = give_one(w->items[i].o, &w->items[i].l, w->query, fn, ctx, err);
	}
	return rc < 0 ? rc : 0;
}

/* A store of one file lists that file, if the query means its owner. */
static int list_single(jstore *js, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
                       sheaf_error *err)
{
	jowner *o = js->single_owner;
	listed one = {.head = NULL};

	if ((query->app.ptr && !str_is(query->app, o->app)) ||
	    (query->user.ptr && !str_is(query->user, o->user)))
		return 0;
	snprintf(one.session, sizeof(one.session), "%s", js->single_session);
	int rc = give_one(o, &one, query, fn, ctx, err);
	return rc < 0 ? rc : 0;
}

int jsonl_list(void *backend, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
               sheaf_error *err)
{
	jstore *js = backend;
	_cleanup_(jowner_putp) jowner *o = NULL;
	wide w = {.js = js, .query = query};
	int rc;

	if (js->single)
		return list_single(js, query, fn, ctx, err);
	if (query->app.ptr && query->user.ptr) {
		rc = jowner_open(js, query->app, query->user, false, &o, err);
		if (rc)
			return rc == SHEAF_NOT_FOUND ? 0 : rc;
		return list_owner(o, query, fn, ctx, err);
	}
	rc = wide_gather(&w, err);
	if (rc == 0)
		rc = wide_give(&w, fn, ctx, err);
	for (size_t i = 0; i < w.owner_count; i++)
		jowner_put(w.owners[i]);
	mem_free(w.owners);
	mem_free(w.items);
	return rc;
}
