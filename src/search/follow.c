/*
 * Following the store: what is listed is compared with what is indexed, and
 * the records after each cursor are taken in.
 *
 * A cursor is the number and the checksum of the last record that was taken in.
 * If the log has another record there, it is another log: the session is taken
 * in from its beginning. The index is written in steps, each a transaction that
 * looks at the cursor again, so several processes may follow at once.
 */
#include "base/cleanup.h"
#include "base/crc.h"
#include "base/map.h"
#include "search/search_inside.h"

/* Of lines, in memory at a time and in one transaction. A log's lock is held only while lines are
 * copied. */
#define CHUNK_BYTES ((size_t)4 << 20)
#define CHUNK_ROWS 4096u
#define STEP_BYTES ((size_t)32 << 20)
#define STEP_SESSIONS 256u

/* ---- What the store has ---------------------------------------------------------- */

typedef struct sight {
	index_session s;
	bool same; /* as indexed */
} sight;

typedef struct followed {
	sheaf_search *search;
	sheaf_error *err;
	arena *a;
	sight **sights;
	size_t count;
	size_t room;
	map by_key;
	int64_t *gone;
	size_t gone_count;
	size_t gone_room;
	/* The transaction that is open. */
	bool open;
	bool removed;
	size_t step_bytes;
	size_t step_sessions;
	record_text text;
	buf lines;
} followed;

static void followed_end(followed *f)
{
	if (f->open)
		f->search->ops->undo(f->search->file);
	map_free(&f->by_key);
	mem_free(f->sights);
	mem_free(f->gone);
	text_done(&f->text);
	buf_free(&f->lines);
	arena_free(f->a);
}

static sheaf_str session_key(followed *f, sheaf_str owner, sheaf_str session, int *ok)
{
	size_t len = owner.len + 1 + session.len;
	char *key = arena_alloc(f->a, len);
	if (key == NULL) {
		*ok = 0;
		return (sheaf_str){NULL, 0};
	}
	memcpy(key, owner.ptr, owner.len);
	key[owner.len] = '\n';
	memcpy(key + owner.len + 1, session.ptr, session.len);
	return str_make(key, len);
}

static sheaf_str keep(followed *f, sheaf_str s, int *ok)
{
	return arena_dup(f->a, s.ptr != NULL ? s : (sheaf_str){"", 0}, ok);
}

static int take_listed(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	followed *f = ctx;
	char source[SHEAF_KEY_PART_ROOM] = "";
	int ok = 1;
	if (info->expired != SHEAF_EXPIRY_NONE)
		return 0;
	if (mem_grow((void **)&f->sights, &f->room, f->count + 1, sizeof(*f->sights)) != 0)
		return SHEAF_NOMEM;
	sight *s = arena_zalloc(f->a, sizeof(*s));
	if (s == NULL)
		return SHEAF_NOMEM;
	if (info->source.len != 0 && sheaf_key_encode(source, info->source, NULL) != 0)
		source[0] = '\0';
	s->s = (index_session){
		.owner = keep(f, key->owner, &ok),
		.app = keep(f, key->app, &ok),
		.user = keep(f, key->user, &ok),
		.session = keep(f, key->session, &ok),
		.source = keep(f, sheaf_str_of(source), &ok),
		.name = keep(f, info->name, &ok),
		.preview = keep(f, info->preview, &ok),
		.cwd = keep(f, info->cwd, &ok),
		.created_us = info->created_us,
		.modified_us = info->modified_us,
		.stored_us = info->stored_us,
		.revision = info->revision,
		.base = info->base,
		.hidden = info->hidden != 0,
		.damaged = info->damaged != 0,
	};
	sheaf_str name = session_key(f, key->owner, key->session, &ok);
	if (!ok || map_set_ptr(&f->by_key, name, s) != 0)
		return SHEAF_NOMEM;
	f->sights[f->count++] = s;
	return 0;
}

static bool is_same(const index_session *a, const index_session *b)
{
	return a->revision == b->revision && a->modified_us == b->modified_us &&
	       a->created_us == b->created_us && a->stored_us == b->stored_us &&
	       a->base == b->base && a->hidden == b->hidden && a->damaged == b->damaged &&
	       str_eq(a->name, b->name) && str_eq(a->preview, b->preview) &&
	       str_eq(a->cwd, b->cwd) && str_eq(a->source, b->source);
}

static int take_indexed(void *ctx, const index_session *known)
{
	followed *f = ctx;
	char key[3 * SHEAF_KEY_PART_ROOM];
	size_t len = known->owner.len + 1 + known->session.len;
	if (len > sizeof(key))
		return SHEAF_DAMAGED;
	memcpy(key, known->owner.ptr, known->owner.len);
	key[known->owner.len] = '\n';
	memcpy(key + known->owner.len + 1, known->session.ptr, known->session.len);
	sight *s = map_get_ptr(&f->by_key, str_make(key, len));
	if (s != NULL) {
		s->same = is_same(&s->s, known);
		return 0;
	}
	if (mem_grow((void **)&f->gone, &f->gone_room, f->gone_count + 1, sizeof(*f->gone)) != 0)
		return SHEAF_NOMEM;
	f->gone[f->gone_count++] = known->number;
	return 0;
}

/* ---- Steps ------------------------------------------------------------------------- */

static int step_begin(followed *f)
{
	if (f->open)
		return 0;
	int rc = f->search->ops->begin(f->search->file, f->err);
	f->open = rc == 0;
	f->step_bytes = f->step_sessions = 0;
	return rc;
}

static int step_end(followed *f)
{
	if (!f->open)
		return 0;
	bool clean;
	int rc = f->removed ? f->search->ops->scrub(f->search->file, &clean, f->err) : 0;
	f->removed = false;
	if (rc == 0)
		rc = f->search->ops->commit(f->search->file, f->err);
	else
		f->search->ops->undo(f->search->file);
	f->open = false;
	return rc;
}

/* ---- Records ------------------------------------------------------------------------- */

/* Where a line lies among those that were copied. */
typedef struct copied_line {
	size_t at;
	size_t len;
	uint64_t seq;
} copied_line;

typedef struct copying {
	followed *f;
	copied_line lines[CHUNK_ROWS];
	size_t count;
	bool full;
} copying;

static int copy_row(void *ctx, const sheaf_row *row)
{
	copying *c = ctx;
	buf *b = &c->f->lines;
	if (row->damaged)
		return 0;
	c->lines[c->count++] = (copied_line){b->len, row->bytes.len, row->seq};
	buf_str(b, row->bytes);
	c->full = c->count == CHUNK_ROWS || b->len >= CHUNK_BYTES;
	return b->status != 0 ? SHEAF_NOMEM : c->full;
}

static int told_call(void *ctx, sheaf_str call, sheaf_str tool, sheaf_error *err)
{
	const void *const *pair = ctx;
	sheaf_search *s = ((const followed *)pair[0])->search;
	return s->ops->call_put(s->file, *(const int64_t *)pair[1], call, tool, err);
}

static int asked_call(void *ctx, sheaf_str call, buf *tool, bool *found, sheaf_error *err)
{
	const void *const *pair = ctx;
	sheaf_search *s = ((const followed *)pair[0])->search;
	return s->ops->call_get(s->file, *(const int64_t *)pair[1], call, tool, found, err);
}

static int add_line(followed *f, index_session *s, sheaf_str line, uint64_t seq)
{
	const void *pair[2] = {f, &s->number};
	tool_names names = {told_call, asked_call, pair};
	int rc = text_of_record(&f->text, line, seq, &names, f->err);
	if (rc == 0 && f->text.any) {
		f->text.out.session = s->number;
		rc = f->search->ops->add(f->search->file, &f->text.out, f->err);
	}
	s->seq = seq;
	s->crc = crc32c(0, line.ptr, line.len);
	f->step_bytes += line.len;
	return rc;
}

static int copy_chunk(followed *f, const index_session *s, copying *c)
{
	sheaf_store_key key = {s->owner, s->app, s->user, s->session};
	sheaf_scan scan = {.size = sizeof(scan),
	                   .from = s->seq > s->base ? s->seq : s->base + 1,
	                   .limit = CHUNK_ROWS,
	                   .kinds = TEXT_KINDS};
	buf_reset(&f->lines);
	c->f = f;
	c->count = 0;
	c->full = false;
	int rc = store_scan(f->search->store, &key, &scan, copy_row, c, f->err);
	/* Deleted since it was listed: the next search sees that. Unreadable: `sheaf check` says so. */
	return rc == SHEAF_NOT_FOUND || rc == SHEAF_GONE || rc == SHEAF_EXPIRED ||
	                       rc == SHEAF_DAMAGED || rc == SHEAF_FORMAT
	               ? 0
	               : rc;
}

/*
 * Takes in the records after the cursor, as far as one chunk goes. The first
 * must be the cursor's own, if it has one: SHEAF_STALE.
 */
static int take_chunk(followed *f, index_session *s, copying *c, bool *more)
{
	size_t first = 0;
	int rc = copy_chunk(f, s, c);
	if (rc == 0 && s->seq > s->base) {
		sheaf_str line = c->count != 0
		                         ? str_make(f->lines.ptr + c->lines[0].at, c->lines[0].len)
		                         : (sheaf_str){NULL, 0};
		if (c->count == 0 || c->lines[0].seq != s->seq ||
		    crc32c(0, line.ptr, line.len) != s->crc)
			return SHEAF_STALE;
		first = 1;
	}
	for (size_t i = first; rc == 0 && i < c->count; i++)
		rc = add_line(f, s, str_make(f->lines.ptr + c->lines[i].at, c->lines[i].len),
		              c->lines[i].seq);
	*more = c->full && c->count > first;
	return rc;
}

/* ---- Sessions -------------------------------------------------------------------------- */

/* Where to go on with a session, by what is indexed of it now. */
static int find_cursor(followed *f, index_session *s)
{
	index_session known;
	const index_ops *ops = f->search->ops;
	int rc = ops->get(f->search->file, s->owner, s->session, &known, f->err);
	if (rc != 0)
		return rc;
	s->number = known.number;
	s->seq = s->base;
	s->crc = 0;
	if (known.number == 0)
		return ops->put(f->search->file, s, f->err);
	bool other = known.created_us != s->created_us || known.base != s->base ||
	             known.hidden != s->hidden || known.damaged != s->damaged;
	if (!other) {
		s->seq = known.seq;
		s->crc = known.crc;
		return 0;
	}
	f->removed = true;
	return ops->empty(f->search->file, s->number, false, f->err);
}

static int take_session(followed *f, index_session *s, copying *c)
{
	const index_ops *ops = f->search->ops;
	uint64_t revision = s->revision;
	bool more = true;
	int rc = 0;
	while (rc == 0 && more) {
		rc = step_begin(f);
		if (rc == 0)
			rc = find_cursor(f, s);
		if (rc == 0)
			rc = take_chunk(f, s, c, &more);
		if (rc == SHEAF_STALE) {
			f->removed = true;
			s->seq = s->base;
			s->crc = 0;
			rc = ops->empty(f->search->file, s->number, false, f->err);
			if (rc == 0)
				rc = take_chunk(f, s, c, &more);
		}
		/* Not as listed until all of it is there. */
		s->revision = more ? 0 : revision;
		if (rc == 0)
			rc = ops->put(f->search->file, s, f->err);
		f->step_sessions += !more;
		if (rc == 0 && (f->step_bytes >= STEP_BYTES || f->step_sessions >= STEP_SESSIONS))
			rc = step_end(f);
	}
	s->revision = revision;
	return rc;
}

static int tell(followed *f, uint64_t done, uint64_t total)
{
	sheaf_search *s = f->search;
	if (s->progress == NULL || s->progress(s->ctx, done, total) == 0)
		return 0;
	return err_set(f->err, SHEAF_CANCELLED, "the search was cancelled");
}

static int drop_gone(followed *f)
{
	int rc = f->gone_count != 0 ? step_begin(f) : 0;
	for (size_t i = 0; rc == 0 && i < f->gone_count; i++) {
		rc = f->search->ops->empty(f->search->file, f->gone[i], true, f->err);
		f->removed = true;
	}
	return rc;
}

static int take_changes(followed *f, uint64_t *updated)
{
	uint64_t total = f->gone_count, done = f->gone_count;
	for (size_t i = 0; i < f->count; i++)
		total += !f->sights[i]->same;
	*updated = total;
	if (total == 0)
		return 0;
	_cleanup_(mem_freep) copying *c = mem_alloc(sizeof(*c));
	if (c == NULL)
		return err_nomem(f->err);
	int rc = drop_gone(f);
	for (size_t i = 0; rc == 0 && i < f->count; i++) {
		if (f->sights[i]->same)
			continue;
		rc = take_session(f, &f->sights[i]->s, c);
		if (rc == 0)
			rc = tell(f, ++done, total);
	}
	return rc == 0 ? step_end(f) : rc;
}

int follow(sheaf_search *s, sheaf_str app, sheaf_str user, uint64_t *updated, sheaf_error *err)
{
	sheaf_error own = {0}; /* what is passed down is looked at, so it must be there */
	_cleanup_(followed_end) followed f = {
		.search = s, .err = err != NULL ? err : &own, .lines = BUF_INIT(SIZE_MAX)};
	sheaf_list_query query = {.size = sizeof(query), .app = app, .user = user, .hidden = 1};
	f.a = arena_new();
	if (f.a == NULL)
		return err_nomem(err);
	int rc = store_list(s->store, &query, take_listed, &f, f.err);
	if (rc == 0)
		rc = s->ops->sessions(s->file, app, user, take_indexed, &f, f.err);
	return rc == 0 ? take_changes(&f, updated) : rc;
}
