/*
 * A log: opening its file and following what is appended to it, by us or by
 * other processes, so that its head and the places of its records are known.
 *
 * Following reads lines from where we stand to the end of the file. A line
 * counts when its crc holds, its seq is the next one and its batch is complete.
 * What else can be found there, and what it means, is decided in jsonl_tail.c.
 */
#include <errno.h>
#include <fcntl.h>

#include "store/jsonl.h"

bool jlog_sealed(const io_stat *st)
{
	return (st->mode & S_ISVTX) != 0;
}

uint32_t jline_crc(sheaf_str line)
{
	uint32_t value = 0;
	if (line.len < 10)
		return 0;
	for (size_t i = line.len - 10; i < line.len - 2; i++) {
		char c = line.ptr[i];
		value = value << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return value;
}

/* Forgets what is known of the records. */
static void forget(jlog *log)
{
	jindex_close(&log->index);
	log->tail_count = 0;
	if (log->table)
		memset(log->table, 0, log->table_room * sizeof(*log->table));
	log->foreign = log->readonly = log->damaged = log->needs_newline = log->unconfirmed =
		log->dirty = false;
	log->size = log->synced = log->tail_bytes = log->file_seen = log->lost = 0;
	log->last_id = (sheaf_str){NULL, 0};
	log->last_id_seq = 0;
}

void jlog_unload(jlog *log)
{
	/* A reader may keep the descriptor open for a while; the lock goes now. */
	jlog_unlock(log);
	jfile_unref(log->file);
	log->file = NULL;
	forget(log);
}

/* ---- Opening -------------------------------------------------------------- */

static int open_file(jlog *log, sheaf_error *err)
{
	int fd = -1;

	log->can_write = false;
	if (!log->owner->store->readonly) {
		fd = io_open(log->owner->dir, log->file_name, O_RDWR | O_APPEND, 0);
		log->can_write = fd >= 0;
	}
	if (fd < 0 &&
	    (log->owner->store->readonly || errno == EACCES || errno == EROFS || errno == EPERM))
		fd = io_open(log->owner->dir, log->file_name, O_RDONLY, 0);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return err_set(err, SHEAF_NOT_FOUND, "no such session");
	if (fd < 0 && (errno == ELOOP || errno == EXDEV))
		return err_sys(err, SHEAF_DENIED, errno, "the log is a link");
	if (fd < 0)
		return err_sys(err, errno == EACCES ? SHEAF_DENIED : SHEAF_STORAGE, errno,
		               "cannot open the log");
	log->file = jfile_new(fd);
	return log->file ? 0 : err_nomem(err);
}

/* Whether the sidecar describes this very log: same inode, same first and last line. */
static bool index_fits(jlog *log, const io_stat *st)
{
	const jindex *x = &log->index;
	_cleanup_(buf_free) buf line = BUF_INIT(SHEAF_RECORD_BYTES_MAX + 1);
	jslot last;

	if (x->inode != st->inode || x->base != log->base || x->first_crc != log->header_crc ||
	    x->covered == 0 || x->log_size > st->size)
		return false;
	if (jindex_slots(x, x->covered - 1, 1, &last))
		return false;
	if (last.offset + last.length + 1 != x->log_size || buf_reserve(&line, last.length + 1u))
		return false;
	if (io_pread_full(log->file->fd, line.ptr, last.length + 1u, (off_t)last.offset) !=
	    (ssize_t)last.length + 1)
		return false;
	sheaf_str text = {line.ptr, last.length};
	return line.ptr[last.length] == '\n' && record_crc_ok(text) &&
	       jline_crc(text) == x->last_crc;
}

static void use_index(jlog *log, const io_stat *st)
{
	if (log->hands_off || log->owner->store->single)
		return;
	jindex_open(&log->index, jowner_side(log->owner), log->session);
	if (log->index.fd < 0)
		return;
	if (!index_fits(log, st) || jindex_head(&log->index, log->spare[0])) {
		jindex_close(&log->index);
		return;
	}
	sheaf_head *head = log->head;
	log->head = log->spare[0];
	log->spare[0] = head;
	log->size = log->synced = log->index.log_size;
	log->last_crc = log->index.last_crc;
}

/* Whether a first line without an end could have become one of ours. */
static bool begins_as_ours(sheaf_str line)
{
	static const char ours[] = "{\"type\":\"session\",\"format\":\"sheaf\"";
	size_t n = line.len < sizeof(ours) - 1 ? line.len : sizeof(ours) - 1;
	return memcmp(line.ptr, ours, n) == 0;
}

static int read_header(jlog *log, uint64_t file_size, sheaf_error *err)
{
	_cleanup_(jlines_free) jlines lines = JLINES_INIT(log->file->fd, 0, file_size);
	_cleanup_(arena_freep) arena *a = arena_new();
	jline line;
	header h;

	if (!a)
		return err_nomem(err);
	int rc = jlines_next(&lines, &line);
	if (rc < 0)
		return errno == ENOMEM ? err_nomem(err)
		                       : err_sys(err, SHEAF_STORAGE, errno, "cannot read the log");
	if (rc == 0 || !line.text.ptr)
		return err_set(err, SHEAF_DAMAGED, "the log has no readable header");
	rc = header_read(&h, line.text, a, &log->doc, err);
	if (rc == SHEAF_FORMAT && !line.terminated && begins_as_ours(line.text))
		rc = err_set(err, SHEAF_DAMAGED, "the log ends inside its header");
	if (rc)
		return rc;
	if (h.ours && !line.terminated)
		return err_set(err, SHEAF_DAMAGED, "the log ends inside its header");
	log->foreign = !h.ours;
	log->readonly = log->foreign || h.version > HEADER_VERSION || !log->can_write;
	log->header_length = line.length;
	log->header_crc = h.ours ? jline_crc(line.text) : 0;
	log->last_crc = log->header_crc;
	log->base = h.base;
	log->size = log->synced = line.length + (line.terminated ? 1 : 0);
	return head_begin(log->head, &h, err);
}

int jlog_load(jlog *log, sheaf_error *err)
{
	io_stat st;
	int rc;

	if (log->file)
		return 0;
	for (int i = 0; i < 2; i++)
		if (!log->spare[i] && !(log->spare[i] = sheaf_head_new()))
			return err_nomem(err);
	/* A new head, not the old one reused: it may have been handed to nobody, but it is whole. */
	sheaf_head *fresh = sheaf_head_new();
	if (!fresh)
		return err_nomem(err);
	sheaf_head_free(log->head);
	log->head = fresh;
	rc = open_file(log, err);
	if (rc)
		return rc;
	if (io_stat_fd(log->file->fd, &st)) {
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot look at the log");
		goto fail;
	}
	if (!S_ISREG(st.mode)) {
		rc = err_set(err, SHEAF_DENIED, "the log is not a regular file");
		goto fail;
	}
	log->inode = st.inode;
	rc = read_header(log, st.size, err);
	if (rc)
		goto fail;
	if (!log->foreign)
		use_index(log, &st);
	rc = jlog_follow(log, false, err);
	if (rc == 0)
		return 0;
fail:
	jlog_unload(log);
	return rc;
}

int jlog_reread(jlog *log, sheaf_error *err)
{
	uint64_t synced = log->synced;
	io_stat st;
	sheaf_head *fresh = sheaf_head_new();
	int rc = fresh ? 0 : err_nomem(err);

	if (rc == 0) {
		if (!log->owner->store->readonly)
			jindex_remove(jowner_side(log->owner), log->session);
		sheaf_head_free(log->head);
		log->head = fresh;
		forget(log);
		if (io_stat_fd(log->file->fd, &st))
			rc = err_sys(err, SHEAF_STORAGE, errno, "cannot look at the log");
	}
	if (rc == 0)
		rc = read_header(log, st.size, err);
	if (rc == 0)
		rc = jlog_follow(log, false, err);
	if (rc) {
		jlog_unlock(log);
		jlog_unload(log);
	} else if (synced <= log->size) {
		log->synced = synced;
	}
	return rc;
}

/* ---- Following ------------------------------------------------------------ */

static int seq_of(void *ctx, sheaf_str id, uint64_t *seq)
{
	jlog *log = ctx;
	sheaf_error err;

	if (log->last_id.ptr && str_eq(log->last_id, id)) {
		*seq = log->last_id_seq;
		return 1;
	}
	int rc = jlog_find_once(log, id, seq, &err);
	if (rc == 0)
		return 1;
	if (rc != SHEAF_NOT_FOUND) {
		log->find_failed = rc;
		log->find_errno = err.sys_errno;
		log->suspect = rc == SHEAF_DAMAGED;
		return 0;
	}
	/* The child of a record that cannot be read hangs on the hole. */
	if (log->lost) {
		*seq = log->lost;
		return 1;
	}
	return 0;
}

static void remember_last(jlog *log, const sheaf_row *row)
{
	if (record_kind_is_fact(row->kind) || row->id.len >= sizeof(log->last_id_room))
		return;
	memcpy(log->last_id_room, row->id.ptr, row->id.len);
	log->last_id = (sheaf_str){log->last_id_room, row->id.len};
	log->last_id_seq = row->seq;
}

/* Folds one verified line into `head` and notes its place. */
static int take_line(jlog *log, sheaf_head *head, const jline *line, uint64_t seq, sheaf_error *err)
{
	sheaf_row row = {.seq = seq, .bytes = line->text};
	log->find_failed = 0;
	int rc = sheaf_head_fold(head, &row, seq_of, log, err);
	if (log->find_failed == SHEAF_NOMEM)
		return err_nomem(err);
	if (log->find_failed)
		return err_sys(err, SHEAF_STORAGE, log->find_errno, "cannot read the log");
	if (rc)
		return rc;
	jslot slot = {.offset = line->offset,
	              .hash = str_hash(row.id),
	              .parent = row.parent,
	              .length = (uint32_t)line->length,
	              .kind = (uint8_t)row.kind};
	rc = jlog_push(log, &slot, err);
	if (rc == 0)
		remember_last(log, &row);
	if (row.kind == SHEAF_KIND_LOST)
		log->lost = seq;
	return rc;
}

/* Stands in for a record that cannot be read, so that numbers stay dense. */
static int take_lost(jlog *log, uint64_t seq, uint64_t offset, uint64_t length, sheaf_error *err)
{
	_cleanup_(buf_free) buf line = BUF_INIT(4096);
	int rc = record_write_lost(&line, seq, err);
	if (rc)
		return rc;
	sheaf_row row = {.seq = seq, .bytes = {line.ptr, line.len - 1}};
	rc = sheaf_head_fold(log->head, &row, seq_of, log, err);
	if (rc)
		return rc;
	jslot slot = {.offset = offset,
	              .hash = 0,
	              .length = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length,
	              .flags = JSLOT_DAMAGED};
	log->lost = seq;
	log->damaged = true;
	return jlog_push(log, &slot, err);
}

typedef struct follow {
	jlog *log;
	jlines lines;
	uint64_t batch_left; /* records still to come of the batch that is open */
	uint64_t batch_count;
	uint64_t
		lost_run; /* `lost` records directly before: a repaired batch may begin with them */
	size_t mark;      /* log->tail_count before it */
	uint64_t mark_last;
	char mark_id[SHEAF_ID_ROOM];
	size_t mark_id_len;
	bool bad;
	uint64_t bad_at;
	bool sure; /* no writer was at it meanwhile */
} follow;

/* Forgets the records of a batch that is not complete. */
static void batch_abandon(follow *f)
{
	jlog *log = f->log;
	if (f->batch_left == 0)
		return;
	jlog_drop_from(log, f->mark);
	memcpy(log->last_id_room, f->mark_id, f->mark_id_len);
	log->last_id = f->mark_last ? (sheaf_str){log->last_id_room, f->mark_id_len}
	                            : (sheaf_str){NULL, 0};
	log->last_id_seq = f->mark_last;
	f->batch_left = 0;
}

static int batch_begin(follow *f, const record *r, sheaf_error *err)
{
	jlog *log = f->log;
	f->batch_count = r->batch_count;
	f->batch_left = r->batch_count - r->batch_index;
	f->mark = log->tail_count;
	f->mark_last = log->last_id_seq;
	f->mark_id_len = log->last_id.len;
	if (log->last_id.ptr)
		memcpy(f->mark_id, log->last_id.ptr, log->last_id.len);
	return r->batch_count > 1 ? sheaf_head_copy(log->spare[0], log->head, err) : 0;
}

/* Whether a line is the next record: 1, 0, or SHEAF_NOMEM. Its crc is checked here, and its place
 * in a batch. */
static int line_fits(const follow *f, const jline *line, const sheaf_head *head, record *r,
                     arena *scratch)
{
	if (!line->text.ptr || !record_crc_ok(line->text))
		return false;
	int rc = record_scan(r, line->text, scratch);
	if (rc)
		return rc == SHEAF_NOMEM ? rc : false;
	if (r->seq != sheaf_head_revision(head) + 1)
		return false;
	if (r->kind == SHEAF_KIND_LOST)
		return true;
	if (f->batch_left == 0)
		return r->batch_index <= f->lost_run && r->batch_index < r->batch_count &&
		       r->batch_count <= SHEAF_BATCH_RECORDS_MAX;
	return r->batch_count == f->batch_count && r->batch_index == f->batch_count - f->batch_left;
}

/* One line; sets f->bad when it is not the next record. */
static int follow_line(follow *f, const jline *line, arena *scratch, sheaf_error *err)
{
	jlog *log = f->log;
	sheaf_head *head = f->batch_left ? log->spare[0] : log->head;
	record r;
	int rc;

	rc = line_fits(f, line, head, &r, scratch);
	if (rc < 0)
		return err_nomem(err);
	if (rc == 0) {
		f->bad = true;
		f->bad_at = line->offset;
		return 0;
	}
	if (f->batch_left == 0) {
		rc = batch_begin(f, &r, err);
		if (rc)
			return rc;
		head = f->batch_count > 1 ? log->spare[0] : log->head;
	}
	f->lost_run = r.kind == SHEAF_KIND_LOST ? f->lost_run + 1 : 0;
	rc = take_line(log, head, line, r.seq, err);
	if (rc == SHEAF_DAMAGED || rc == SHEAF_FORMAT || rc == SHEAF_LIMIT) {
		/* It verifies, but cannot follow (its parent is nowhere): as bad as a bad line. */
		f->bad = true;
		f->bad_at = line->offset;
		return 0;
	}
	if (rc)
		return rc;
	if (--f->batch_left == 0) {
		if (f->batch_count > 1) {
			log->spare[0] = log->head;
			log->head = head;
		}
		log->size = line->offset + line->length + (line->terminated ? 1 : 0);
		log->needs_newline = !line->terminated;
		log->last_crc = jline_crc(line->text);
	}
	return 0;
}

/*
 * Past damage: every line that verifies is served, every number that is missing
 * is marked, batches are not insisted on. Such a log is never written to.
 */
static int follow_damaged(follow *f, uint64_t from, sheaf_error *err)
{
	jlog *log = f->log;
	_cleanup_(jlines_free) jlines lines = JLINES_INIT(log->file->fd, from, f->lines.end);
	uint64_t hole = from;
	jline line;
	int rc;

	log->damaged = true;
	while ((rc = jlines_next(&lines, &line)) == 1) {
		_cleanup_(arena_freep) arena *scratch = arena_new();
		record r;
		if (!scratch)
			return err_nomem(err);
		uint64_t next = sheaf_head_revision(log->head) + 1;
		if (!line.text.ptr || !record_crc_ok(line.text))
			continue;
		rc = record_scan(&r, line.text, scratch);
		if (rc == SHEAF_NOMEM)
			return err_nomem(err);
		if (rc || r.seq < next || r.seq - next > lines.end)
			continue;
		for (; next < r.seq; next++) {
			rc = take_lost(log, next, hole, line.offset - hole, err);
			if (rc)
				return rc;
		}
		rc = take_line(log, log->head, &line, r.seq, err);
		if (rc == SHEAF_DAMAGED || rc == SHEAF_LIMIT)
			rc = take_lost(log, r.seq, line.offset, line.length, err);
		if (rc)
			return rc;
		hole = log->size = line.offset + line.length + (line.terminated ? 1 : 0);
		log->needs_newline = !line.terminated;
		log->last_crc = jline_crc(line.text);
	}
	return rc < 0 ? err_sys(err, SHEAF_STORAGE, errno, "cannot read the log") : 0;
}

/* ---- Files that are not ours ------------------------------------------------ */

/* The entry a foreign parent id means: through facts to the nearest entry. */
static uint64_t foreign_parent(jlog *log, const record *r, uint64_t own_seq)
{
	sheaf_error err;
	uint64_t seq;
	jslot slot;

	if (!r->parent_id.ptr)
		return 0;
	if (jlog_find_once(log, r->parent_id, &seq, &err))
		return own_seq; /* unknown, or later in the file: a walk sees that it does not precede */
	if (jlog_slots(log, seq - 1, 1, &slot, &err))
		return own_seq;
	return record_kind_is_fact(slot.kind) ? slot.parent : seq;
}

static int follow_foreign(follow *f, sheaf_error *err)
{
	jlog *log = f->log;
	jline line;
	int rc;

	while ((rc = jlines_next(&f->lines, &line)) == 1) {
		_cleanup_(arena_freep) arena *a = arena_new();
		uint64_t seq = sheaf_head_revision(log->head) + 1;
		int64_t time = 0;
		record r;
		if (!a)
			return err_nomem(err);
		if (line.terminated && line.length == 0) {
			log->size = line.offset + 1;
			continue;
		}
		rc = line.text.ptr ? record_scan_foreign(&r, line.text, a, &log->doc, err)
		                   : SHEAF_FORMAT;
		if (rc == SHEAF_NOMEM)
			return rc;
		if (rc && !line.terminated)
			break; /* still being written */
		if (rc) {
			rc = take_lost(log, seq, line.offset, line.length, err);
		} else {
			clock_parse(r.timestamp, &time);
			jslot slot = {.offset = line.offset,
			              .hash = str_hash(r.id),
			              .parent = foreign_parent(log, &r, seq),
			              .length = (uint32_t)line.length,
			              .kind = (uint8_t)r.kind};
			rc = head_apply(log->head, r.kind, r.id, r.branch, r.body,
			                state_delta_of(r.body), time, seq, &log->doc, err);
			if (rc == 0)
				rc = jlog_push(log, &slot, err);
		}
		if (rc)
			return rc;
		log->size = line.offset + line.length + (line.terminated ? 1 : 0);
		log->needs_newline = !line.terminated;
	}
	return rc < 0 && rc != SHEAF_FORMAT
	               ? err_sys(err, SHEAF_STORAGE, errno, "cannot read the log")
	               : 0;
}

/* ---- The whole of it --------------------------------------------------------- */

static int follow_ours(follow *f, sheaf_error *err)
{
	_cleanup_(arena_freep) arena *scratch = arena_new();
	jline line;
	int rc = 0;

	if (!scratch)
		return err_nomem(err);
	while (!f->bad && (rc = jlines_next(&f->lines, &line)) == 1) {
		rc = follow_line(f, &line, scratch, err);
		if (rc) {
			batch_abandon(f);
			return rc;
		}
	}
	if (rc < 0) {
		batch_abandon(f);
		return errno == ENOMEM ? err_nomem(err)
		                       : err_sys(err, SHEAF_STORAGE, errno, "cannot read the log");
	}
	if (f->batch_left)
		batch_abandon(f);
	return 0;
}

/* The line break that a complete last record lacked may have come meanwhile. */
static int skip_newline(jlog *log, sheaf_error *err)
{
	char c;
	if (!log->needs_newline)
		return 0;
	ssize_t got = io_pread_full(log->file->fd, &c, 1, (off_t)log->size);
	if (got < 0)
		return err_sys(err, SHEAF_STORAGE, errno, "cannot read the log");
	if (got == 1 && c == '\n') {
		log->size++;
		log->needs_newline = false;
	}
	return 0;
}

bool jlog_end_fits(const jlog *log)
{
	/* …"crc":"9f2b11c0"} and a line break */
	char end[11];
	size_t want = log->needs_newline ? 10 : 11;

	if (log->foreign || log->size < want)
		return true;
	if (io_pread_full(log->file->fd, end, want, (off_t)(log->size - want)) != (ssize_t)want)
		return false;
	return jline_crc(str_make(end, 10)) == log->last_crc && memcmp(end + 8, "\"}", 2) == 0 &&
	       (want == 10 || end[10] == '\n');
}

/* One pass to the end of the file as it is now; what is left over is f->bad and beyond. */
static int follow_once(follow *f, sheaf_error *err)
{
	jlog *log = f->log;
	io_stat st;
	int rc = skip_newline(log, err);

	if (rc)
		return rc;
	if (io_stat_fd_lean(log->file->fd, &st))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot look at the log");
	log->file_seen = st.size;
	log->tail_bytes = 0;
	*f = (follow){.log = log, .lines = JLINES_INIT(log->file->fd, log->size, st.size)};
	if (st.size <= log->size)
		return 0;
	if (log->foreign)
		rc = follow_foreign(f, err);
	else if (log->damaged)
		rc = follow_damaged(f, log->size, err);
	else
		rc = follow_ours(f, err);
	jlines_free(&f->lines);
	if (f->lines.end > log->size)
		log->tail_bytes = f->lines.end - log->size;
	return rc;
}

/*
 * A reader without the lock may have read while a writer moved a tear away, and
 * then old and new bytes look like damage. Writers keep out for the second look.
 */
static int follow_again(follow *f, sheaf_error *err)
{
	jlog *log = f->log;
	bool shared = false;

	for (int i = 0; i < 20 && !shared; i++) {
		shared = io_lock_try(log->file->fd, F_RDLCK) == 0;
		if (!shared && errno != EAGAIN && errno != EACCES)
			break;
		if (!shared)
			clock_sleep_us(5000);
	}
	int rc = follow_once(f, err);
	f->sure = shared;
	if (shared)
		io_lock_try(log->file->fd, F_UNLCK);
	return rc;
}

/* A crash may have cut a record's line break off. Before anything is built on the record it gets
 * one, for good: with bytes behind it that are torn it would not be a record any more. */
static int end_line(jlog *log, sheaf_error *err)
{
	if (io_write(log->file->fd, "\n", 1) != 1 || jlog_sync(log, log->size + 1))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot end the last line");
	log->file_seen = ++log->size;
	log->needs_newline = false;
	return 0;
}

static int follow_all(jlog *log, bool locked, sheaf_error *err)
{
	follow f = {.log = log};
	uint64_t size = log->size;

	for (int look = 0;; look++) {
		int rc = look == 1 && !log->held ? follow_again(&f, err) : follow_once(&f, err);
		if (!log->held && log->size != size)
			log->unconfirmed = true;
		if (rc == 0 && locked && log->needs_newline && log->tail_bytes == 0 &&
		    log->can_write && !log->readonly && !log->damaged)
			return end_line(log, err);
		if (rc || log->tail_bytes == 0 || log->foreign || log->damaged)
			return rc;
		jtail_kind kind = f.bad ? jtail_classify(log->file->fd, f.bad_at, f.lines.end)
		                        : JTAIL_TEAR;
		if (kind == JTAIL_FAILED)
			return err_sys(err, SHEAF_STORAGE, errno, "cannot read the log");
		if (kind == JTAIL_TEAR || (look == 1 && !log->held && !f.sure))
			break;
		if (log->held || look == 1) {
			rc = follow_damaged(&f, log->size, err);
			log->tail_bytes = f.lines.end > log->size ? f.lines.end - log->size : 0;
			return rc;
		}
	}
	if (locked && log->can_write && !log->readonly)
		return jtail_move(log, log->size, f.lines.end, err);
	return 0; /* perhaps a write in flight: left alone */
}

int jlog_follow(jlog *log, bool locked, sheaf_error *err)
{
	log->suspect = false;
	int rc = follow_all(log, locked, err);
	if (rc == 0)
		return 0;
	if (log->suspect) {
		/* The sidecar was at fault; it is gone now, so this happens once. */
		rc = jlog_reread(log, err);
		return rc ? rc : jlog_follow(log, locked, err);
	}
	/* The head may know half of a record: from the beginning next time. */
	jlog_unlock(log);
	jlog_unload(log);
	return rc;
}

int jlog_refresh(jlog *log, sheaf_error *err)
{
	io_stat st;

	if (!log->file)
		return jlog_load(log, err);
	if (log->leader)
		return 0; /* what is being written now is not acknowledged yet */
	if (io_stat_fd_lean(log->file->fd, &st))
		return err_sys(err, SHEAF_STORAGE, errno, "cannot look at the log");
	if (st.links == 0 || st.size < log->size || (log->unconfirmed && !jlog_end_fits(log))) {
		jlog_unload(log);
		return jlog_load(log, err);
	}
	if (st.size == log->file_seen && st.size == log->size + log->tail_bytes)
		return 0;
	return jlog_follow(log, false, err);
}
