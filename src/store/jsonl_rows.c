/*
 * The records of a log: where they lie, which ids there are, and reading them.
 *
 * The older ones are described by the sidecar, the rest by `tail` in memory.
 * Every record is verified when it is read. If one that the sidecar pointed to
 * does not verify, the sidecar may be at fault: it is put aside and the log
 * read again before damage is believed.
 */
#include <errno.h>
#include <fcntl.h>

#include "store/jsonl.h"

#define RANGE_RECORDS 256u
#define RANGE_BYTES ((uint64_t)1 << 20)
#define HOLE_BYTES 4096u

uint64_t jlog_count(const jlog *log)
{
	return log->index.covered + log->tail_count;
}

/* ---- Places ----------------------------------------------------------------- */

static void table_insert(jlog *log, size_t position)
{
	size_t mask = log->table_room - 1;
	size_t at = (size_t)log->tail[position].hash & mask;
	while (log->table[at])
		at = (at + 1) & mask;
	log->table[at] = (uint32_t)position + 1;
}

static int table_grow(jlog *log, sheaf_error *err)
{
	size_t room = log->table_room ? log->table_room * 2 : 1024;
	uint32_t *table = mem_zalloc(room * sizeof(*table));
	if (!table)
		return err_nomem(err);
	mem_free(log->table);
	log->table = table;
	log->table_room = room;
	for (size_t i = 0; i < log->tail_count; i++)
		table_insert(log, i);
	return 0;
}

int jlog_push(jlog *log, const jslot *slot, sheaf_error *err)
{
	if (log->tail_count == log->tail_room &&
	    mem_grow((void **)&log->tail, &log->tail_room, log->tail_count + 1, sizeof(jslot)))
		return err_nomem(err);
	if ((log->tail_count + 1) * 2 > log->table_room) {
		int rc = table_grow(log, err);
		if (rc)
			return rc;
	}
	log->tail[log->tail_count] = *slot;
	table_insert(log, log->tail_count++);
	return 0;
}

static void table_rebuild(jlog *log)
{
	if (!log->table)
		return;
	memset(log->table, 0, log->table_room * sizeof(*log->table));
	for (size_t i = 0; i < log->tail_count; i++)
		table_insert(log, i);
}

void jlog_drop_from(jlog *log, size_t tail_count)
{
	if (tail_count == log->tail_count)
		return;
	log->tail_count = tail_count;
	table_rebuild(log);
}

int jlog_slots(jlog *log, uint64_t first, size_t count, jslot *out, sheaf_error *err)
{
	uint64_t covered = log->index.covered;
	if (first < covered) {
		size_t n = covered - first < count ? (size_t)(covered - first) : count;
		if (jindex_slots(&log->index, first, n, out))
			return err_set(err, SHEAF_DAMAGED, "the index is not to be trusted");
		first += n;
		count -= n;
		out += n;
	}
	if (count)
		memcpy(out, log->tail + (first - covered), count * sizeof(jslot));
	return 0;
}

/*
 * The sidecar was wrong: without it from here on, and gone from the disk. What
 * somebody else is writing to must not change under him.
 */
static int distrust_index(jlog *log, bool leading, sheaf_error *err)
{
	while (log->leader && !leading) {
		log->idle_waiters++;
		pthread_cond_wait(&log->led, &log->mutex);
		log->idle_waiters--;
	}
	return log->file ? jlog_reread(log, err) : jlog_load(log, err);
}

/* ---- Ids -------------------------------------------------------------------- */

typedef struct finding {
	jlog *log;
	sheaf_str id;
	buf spelled;    /* "id" as a line spells it */
	uint64_t found; /* record number from 1; 0 = none */
} finding;

/* 1 if the record's line has this id, 0 if not, -1 when it cannot be read. */
static int has_id(finding *f, const jslot *slot)
{
	char head[1024];
	size_t want = slot->length < sizeof(head) ? slot->length : sizeof(head);

	if (slot->flags & JSLOT_DAMAGED)
		return 0;
	if (f->log->foreign) {
		_cleanup_(arena_freep) arena *a = arena_new();
		_cleanup_(mem_freep) char *line = mem_alloc(slot->length + 1u);
		record r;
		sheaf_error err;
		if (!a || !line ||
		    io_pread_full(f->log->file->fd, line, slot->length, (off_t)slot->offset) !=
		            (ssize_t)slot->length)
			return -1;
		return record_scan_foreign(&r, str_make(line, slot->length), a, &f->log->doc,
		                           &err) == 0 &&
		       str_eq(r.id, f->id);
	}
	if (io_pread_full(f->log->file->fd, head, want, (off_t)slot->offset) != (ssize_t)want)
		return -1;
	if (f->spelled.len == 0)
		buf_json(&f->spelled, f->id);
	if (f->spelled.status != 0)
		return -1;
	/* {"type":"T","id":"ID", with both at fixed places */
	static const char before[] = "{\"type\":\"", between[] = "\",\"id\":";
	size_t at = sizeof(before) - 1;
	if (want < at || memcmp(head, before, at) != 0)
		return -1;
	const char *quote = memchr(head + at, '"', want - at);
	if (!quote)
		return -1;
	at = (size_t)(quote - head);
	if (want - at < sizeof(between) - 1 + f->spelled.len)
		return 0;
	return memcmp(head + at, between, sizeof(between) - 1) == 0 &&
	       memcmp(head + at + sizeof(between) - 1, f->spelled.ptr, f->spelled.len) == 0;
}

static int candidate(void *ctx, uint64_t index)
{
	finding *f = ctx;
	jslot slot;
	sheaf_error err;
	if (index >= f->log->index.covered || jlog_slots(f->log, index, 1, &slot, &err))
		return -1;
	int rc = has_id(f, &slot);
	if (rc == 1)
		f->found = index + 1;
	return rc;
}

static int find_in_tail(finding *f, uint64_t hash)
{
	jlog *log = f->log;
	if (!log->table_room)
		return 0;
	size_t mask = log->table_room - 1;
	for (size_t at = (size_t)hash & mask; log->table[at]; at = (at + 1) & mask) {
		const jslot *slot = &log->tail[log->table[at] - 1];
		/* Beyond the count is what a leader is writing now: not there yet for readers. */
		if (slot->hash != hash || log->table[at] > log->tail_count)
			continue;
		errno = EIO;
		int rc = has_id(f, slot);
		if (rc == 1)
			f->found = log->index.covered + log->table[at];
		if (rc)
			return rc;
	}
	return 0;
}

/* Its number, or 0 if no record has it. */
static int find_once(jlog *log, sheaf_str id, uint64_t *seq, sheaf_error *err)
{
	finding f = {.log = log, .id = id, .spelled = BUF_INIT(6 * SHEAF_ID_BYTES_MAX + 8)};
	uint64_t hash = str_hash(id);
	int rc = 0, hit = find_in_tail(&f, hash);
	if (hit < 0)
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot read the log");
	else if (hit == 0 && log->index.fd >= 0 &&
	         jindex_find(&log->index, hash, candidate, &f) < 0)
		rc = err_set(err, SHEAF_DAMAGED, "the index is not to be trusted");
	if (f.spelled.status != 0)
		rc = buf_status(&f.spelled, err);
	buf_free(&f.spelled);
	*seq = f.found != 0 ? log->base + f.found : 0;
	return rc;
}

static int none_has_it(sheaf_error *err)
{
	return err_set(err, SHEAF_NOT_FOUND, "no record has this id");
}

int jlog_find_once(jlog *log, sheaf_str id, uint64_t *seq, sheaf_error *err)
{
	uint64_t found;
	int rc = find_once(log, id, &found, err);
	if (rc == 0 && found == 0)
		return none_has_it(err);
	if (rc == 0)
		*seq = found;
	return rc;
}

int jlog_look_up(jlog *log, sheaf_str id, uint64_t *seq, bool leading, sheaf_error *err)
{
	int rc = find_once(log, id, seq, err);
	if (rc != SHEAF_DAMAGED)
		return rc;
	rc = distrust_index(log, leading, err);
	return rc ? rc : find_once(log, id, seq, err);
}

int jlog_find(jlog *log, sheaf_str id, uint64_t *seq, bool leading, sheaf_error *err)
{
	uint64_t found;
	int rc = jlog_look_up(log, id, &found, leading, err);
	if (rc == 0 && found == 0)
		return none_has_it(err);
	if (rc == 0)
		*seq = found;
	return rc;
}

/* ---- Keeping the sidecar up to date ------------------------------------------- */

static bool worth_covering(const jlog *log, bool force)
{
	uint64_t bytes = log->size - (log->index.fd >= 0 ? log->index.log_size : 0);
	if (log->owner->store->single || log->foreign || log->damaged || log->readonly ||
	    log->needs_newline)
		return false;
	if (force)
		return log->tail_count >= JSONL_INDEX_RECORDS || bytes >= JSONL_INDEX_BYTES;
	return log->tail_count >= 8 * JSONL_INDEX_RECORDS ||
	       (log->tail_count >= 16 && bytes >= 4 * JSONL_INDEX_BYTES);
}

/* Another process may have covered more than we know of; the tail it covered is dropped here. */
static bool adopt_covered(jlog *log)
{
	jindex now = log->index;
	if (jindex_reread(&now) || now.inode != log->inode || now.covered < log->index.covered ||
	    now.covered - log->index.covered > log->tail_count || now.log_size > log->size)
		return false;
	uint64_t more = now.covered - log->index.covered;
	if (more != 0)
		jindex_drop_sieve(&log->index);
	now.sieve = log->index.sieve;
	log->index = now;
	memmove(log->tail, log->tail + more, (log->tail_count - more) * sizeof(jslot));
	log->tail_count -= (size_t)more;
	return true;
}

void jlog_cover(jlog *log, bool force)
{
	if (!worth_covering(log, force) || log->synced < log->size)
		return;
	int side = jowner_side(log->owner);
	if (log->index.fd >= 0 && !adopt_covered(log)) {
		/* Replaced under us. Nothing is lost: look again from the start at the next use. */
		return;
	}
	if (log->index.fd < 0) {
		log->index.inode = log->inode;
		log->index.base = log->base;
		log->index.first_crc = log->header_crc;
	}
	size_t count = log->tail_count;
	if (jindex_extend(&log->index, side, log->session, log->tail, count, log->head, log->size,
	                  log->last_crc) == 0)
		log->tail_count = 0;
	else if (log->index.fd < 0)
		jindex_init(&log->index);
	table_rebuild(log);
}

/* ---- Reading rows ---------------------------------------------------------------- */

/* A stretch of the log's bytes, held while rows are handed out without the mutex. */
typedef struct stretch {
	jfile *file;
	uint64_t first; /* record number from 0 */
	size_t count;
	jslot slots[RANGE_RECORDS];
	buf bytes;
	uint64_t at; /* file offset of bytes[0] */
} stretch;

static bool wanted(const jslot *slot, uint64_t kinds)
{
	return (slot->flags & JSLOT_DAMAGED) || (kinds & SHEAF_KIND_BIT(slot->kind));
}

/* Reads the bytes of slots [from, to) of the stretch, which follow each other. */
static int stretch_read(stretch *s, size_t from, size_t to, sheaf_error *err)
{
	uint64_t start = s->slots[from].offset;
	uint64_t end = s->slots[to - 1].offset + s->slots[to - 1].length + 1;

	buf_reset(&s->bytes);
	if (buf_reserve(&s->bytes, (size_t)(end - start) + 1))
		return buf_status(&s->bytes, err);
	ssize_t got = io_pread_full(s->file->fd, s->bytes.ptr, (size_t)(end - start), (off_t)start);
	if (got < 0)
		return err_sys(err, SHEAF_STORAGE, errno, "cannot read the log");
	/* The last record may lack its line break; rows always have one behind them. */
	memset(s->bytes.ptr + got, 0, (size_t)(end - start) + 1 - (size_t)got);
	if ((uint64_t)got == end - start - 1)
		s->bytes.ptr[got] = '\n';
	s->bytes.len = (size_t)(end - start);
	s->at = start;
	return 0;
}

typedef struct reading {
	jlog *log;
	sheaf_scan *scan; /* from moves on with every row given */
	sheaf_row_fn fn;
	void *ctx;
	size_t given;
	bool foreign;
	bool suspect; /* a record the sidecar pointed to did not verify */
	uint64_t covered;
	uint64_t base;
	arena *scratch;
	buf line; /* a foreign line in our form */
	json_doc *doc;
} reading;

/* A foreign line in our form, under the number it has here. */
static int foreign_row(reading *rd, stretch *s, size_t i, sheaf_str text, sheaf_row *row,
                       sheaf_error *err)
{
	const jslot *slot = &s->slots[i];
	_cleanup_(buf_free) buf parent = BUF_INIT(SHEAF_RECORD_BYTES_MAX + 1);
	sheaf_str parent_id = {NULL, 0};
	record r, p;
	int rc = record_scan_foreign(&r, text, rd->scratch, &rd->doc, err);

	if (rc)
		return rc;
	if (slot->parent && slot->parent < row->seq && !record_kind_is_fact(r.kind)) {
		jslot up;
		pthread_mutex_lock(&rd->log->mutex);
		rc = jlog_slots(rd->log, slot->parent - rd->base - 1, 1, &up, err);
		pthread_mutex_unlock(&rd->log->mutex);
		if (rc || buf_reserve(&parent, up.length + 1u))
			return rc ? rc : buf_status(&parent, err);
		if (io_pread_full(s->file->fd, parent.ptr, up.length, (off_t)up.offset) !=
		    (ssize_t)up.length)
			return err_sys(err, SHEAF_STORAGE, errno, "cannot read the log");
		rc = record_scan_foreign(&p, str_make(parent.ptr, up.length), rd->scratch, &rd->doc,
		                         err);
		if (rc)
			return rc;
		parent_id = p.id;
	} else if (slot->parent == row->seq) {
		parent_id = r.parent_id;
	}
	buf_reset(&rd->line);
	rc = record_renumber(&rd->line, &r, parent_id, 0, row->seq, 0, 1, err);
	if (rc)
		return rc;
	row->id = r.id;
	row->bytes = str_make(rd->line.ptr, rd->line.len - 1);
	return buf_status(&rd->line, err);
}

/* Hands out record i of the stretch. 0 go on, 1 stop, negative failure. */
static int give(reading *rd, stretch *s, size_t i, sheaf_error *err)
{
	const jslot *slot = &s->slots[i];
	sheaf_str text = {s->bytes.ptr + (slot->offset - s->at), slot->length};
	sheaf_row row = {.seq = rd->base + s->first + i + 1,
	                 .parent = record_kind_is_fact(slot->kind) && rd->foreign ? 0
	                                                                          : slot->parent,
	                 .kind = slot->kind,
	                 .bytes = text};
	record r;

	if (slot->flags & JSLOT_DAMAGED) {
		row.damaged = 1;
	} else if (rd->foreign) {
		int rc = foreign_row(rd, s, i, text, &row, err);
		if (rc == SHEAF_NOMEM || rc == SHEAF_STORAGE)
			return rc;
		row.damaged = rc != 0;
	} else if (!record_crc_ok(text) || record_scan(&r, text, rd->scratch) || r.seq != row.seq) {
		if (s->first + i < rd->covered) {
			rd->suspect = true;
			return 1;
		}
		row.damaged = 1;
	} else {
		row.id = r.id;
		row.kind = r.kind;
	}
	int rc = rd->fn(rd->ctx, &row);
	rd->given++;
	rd->scan->from = rd->scan->backward ? row.seq - 1 : row.seq + 1;
	if (rc < 0)
		return rc;
	return rc || rd->given == rd->scan->limit;
}

/* Hands out what is wanted of a stretch, reading runs of neighbours together. */
static int stretch_give(reading *rd, stretch *s, sheaf_error *err)
{
	bool back = rd->scan->backward;
	for (size_t done = 0; done < s->count;) {
		size_t i = back ? s->count - 1 - done : done;
		if (!wanted(&s->slots[i], rd->scan->kinds)) {
			done++;
			continue;
		}
		/* The run of wanted neighbours from i on, in the direction of the scan. */
		size_t run = 1;
		uint64_t bytes = s->slots[i].length;
		while (done + run < s->count && rd->given + run < rd->scan->limit) {
			size_t j = back ? i - run : i + run;
			bytes += s->slots[j].length;
			if (!wanted(&s->slots[j], rd->scan->kinds) || bytes > RANGE_BYTES ||
			    ((s->slots[j].flags | s->slots[i].flags) & JSLOT_DAMAGED))
				break;
			run++;
		}
		size_t from = back ? i + 1 - run : i;
		int rc = stretch_read(s, from, from + run, err);
		for (size_t k = 0; rc == 0 && k < run; k++)
			rc = give(rd, s, back ? i - k : i + k, err);
		if (rc)
			return rc;
		done += run;
	}
	return 0;
}

/* The next stretch, from record `at` in the direction of the scan. Mutex held. */
static int stretch_take(jlog *log, stretch *s, uint64_t at, const sheaf_scan *scan,
                        sheaf_error *err)
{
	uint64_t total = jlog_count(log);
	size_t most = RANGE_RECORDS;
	/* Few wanted: look at few, unless kinds make it a search. */
	if (scan->limit < most && scan->kinds == SHEAF_KINDS_ALL)
		most = scan->limit;
	if (scan->backward) {
		s->count = at + 1 < most ? (size_t)at + 1 : most;
		s->first = at + 1 - s->count;
	} else {
		s->count = total - at < most ? (size_t)(total - at) : most;
		s->first = at;
	}
	jfile_unref(s->file);
	s->file = jfile_ref(log->file);
	int rc = jlog_slots(log, s->first, s->count, s->slots, err);
	/* Of a hole a few bytes are shown: it may be as long as the log. */
	for (size_t i = 0; rc == 0 && i < s->count; i++)
		if ((s->slots[i].flags & JSLOT_DAMAGED) && s->slots[i].length > HOLE_BYTES)
			s->slots[i].length = HOLE_BYTES;
	return rc;
}

static int scan_stretches(jlog *log, reading *rd, stretch *s, sheaf_error *err)
{
	const sheaf_scan *scan = rd->scan;
	uint64_t total = jlog_count(log);
	uint64_t at;

	if (total == 0 || scan->limit == 0)
		return 0;
	if (scan->from <= log->base) {
		if (scan->backward)
			return 0;
		at = 0;
	} else {
		at = scan->from - log->base - 1;
	}
	if (at >= total) {
		if (!scan->backward)
			return 0;
		at = total - 1;
	}
	for (;;) {
		int rc = stretch_take(log, s, at, scan, err);
		if (rc) {
			rd->suspect = rc == SHEAF_DAMAGED && log->index.covered > 0;
			return rd->suspect ? 1 : rc;
		}
		rd->covered = log->index.covered;
		rd->base = log->base;
		pthread_mutex_unlock(&log->mutex);
		rc = stretch_give(rd, s, err);
		pthread_mutex_lock(&log->mutex);
		if (rc || rd->suspect)
			return rc;
		if (scan->backward ? s->first == 0 : s->first + s->count >= total)
			return 0;
		at = scan->backward ? s->first - 1 : s->first + s->count;
		if (!log->file || jlog_count(log) < total)
			return err_set(err, SHEAF_GONE, "the log was replaced while it was read");
	}
}

int jlog_scan(jlog *log, const sheaf_scan *scan, sheaf_row_fn fn, void *ctx, sheaf_error *err)
{
	_cleanup_(arena_freep) arena *scratch = arena_new();
	stretch *s = mem_zalloc(sizeof(*s));
	sheaf_scan now = *scan;
	reading rd = {.log = log,
	              .scan = &now,
	              .fn = fn,
	              .ctx = ctx,
	              .foreign = log->foreign,
	              .scratch = scratch,
	              .line = BUF_INIT(SHEAF_RECORD_BYTES_MAX + 4096)};
	int rc = SHEAF_NOMEM;

	if (!scratch || !s) {
		err_nomem(err);
		goto out;
	}
	s->bytes = (buf)BUF_INIT(SIZE_MAX);
	rc = scan_stretches(log, &rd, s, err);
	if (rd.suspect) {
		/* On without the sidecar, after what was given already. */
		rc = distrust_index(log, false, err);
		rd.suspect = false;
		if (rc == 0)
			rc = scan_stretches(log, &rd, s, err);
	}
	if (rc > 0)
		rc = 0;
out:
	if (s) {
		buf_free(&s->bytes);
		jfile_unref(s->file);
		mem_free(s);
	}
	buf_free(&rd.line);
	json_free(rd.doc);
	return rc;
}

int jlog_header_line(jlog *log, buf *out, sheaf_error *err)
{
	buf_reset(out);
	if (buf_reserve(out, (size_t)log->header_length + 1))
		return buf_status(out, err);
	if (io_pread_full(log->file->fd, out->ptr, (size_t)log->header_length, 0) !=
	    (ssize_t)log->header_length)
		return err_sys(err, SHEAF_STORAGE, errno, "cannot read the log");
	out->len = (size_t)log->header_length;
	out->ptr[out->len] = '\n';
	return 0;
}
