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
#include "base/clock.h"
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

/* A session as the store has it. There are many of these, and few have changed. */
typedef struct sight {
	const index_session *of; /* owner, app and user: of the first session of its owner */
	sheaf_str key;           /* owner and session */
	sheaf_str session;
	uint64_t stamp;
	index_session *s; /* all of it, once that is known */
	bool same;        /* as indexed */
} sight;

typedef struct followed {
	sheaf_search *search;
	sheaf_error *err;
	arena *a;
	int64_t now_us;
	sight **sights;
	size_t count;
	size_t room;
	uint64_t sum; /* over the sessions and their stamps, in whatever order they came */
	bool expires; /* some are the same only for a time */
	map by_key;
	int64_t *gone; /* numbers of what the store has no more */
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

/* Owner and session as one: neither holds a line break. */
#define KEY_ROOM (3 * SHEAF_KEY_PART_ROOM)

static sheaf_str join_key(char room[KEY_ROOM], sheaf_str owner, sheaf_str session)
{
	size_t len = owner.len + 1 + session.len;
	if (len > KEY_ROOM)
		return (sheaf_str){NULL, 0};
	memcpy(room, owner.ptr, owner.len);
	room[owner.len] = '\n';
	memcpy(room + owner.len + 1, session.ptr, session.len);
	return str_make(room, len);
}

static sheaf_str keep(followed *f, sheaf_str s, int *ok)
{
	return arena_dup(f->a, s.ptr != NULL ? s : (sheaf_str){"", 0}, ok);
}

/* Sessions come owner by owner, so the last one's is mostly this one's too. */
static const index_session *owner_of(followed *f, const sheaf_store_key *key)
{
	int ok = 1;
	if (f->count != 0 && str_eq(f->sights[f->count - 1]->of->owner, key->owner))
		return f->sights[f->count - 1]->of;
	index_session *o = arena_zalloc(f->a, sizeof(*o));
	if (o == NULL)
		return NULL;
	o->owner = keep(f, key->owner, &ok);
	o->app = keep(f, key->app, &ok);
	o->user = keep(f, key->user, &ok);
	return ok ? o : NULL;
}

static sight *add_sight(followed *f, const sheaf_store_key *key, uint64_t stamp)
{
	char room[KEY_ROOM];
	int ok = 1;
	if (mem_grow((void **)&f->sights, &f->room, f->count + 1, sizeof(*f->sights)) != 0)
		return NULL;
	sight *s = arena_zalloc(f->a, sizeof(*s));
	sheaf_str joined = keep(f, join_key(room, key->owner, key->session), &ok);
	const index_session *of = owner_of(f, key);
	if (s == NULL || of == NULL || !ok)
		return NULL;
	s->of = of;
	s->key = joined;
	s->session = str_make(joined.ptr + key->owner.len + 1, key->session.len);
	s->stamp = stamp;
	uint64_t parts[2] = {str_hash(joined), stamp};
	f->sum += str_hash(str_make((const char *)parts, sizeof(parts)));
	f->sights[f->count++] = s;
	return s;
}

static int fill_sight(followed *f, sight *s, const sheaf_session_info *info)
{
	char source[SHEAF_KEY_PART_ROOM] = "";
	int ok = 1;
	index_session *full = arena_zalloc(f->a, sizeof(*full));
	if (full == NULL)
		return SHEAF_NOMEM;
	if (info->source.len != 0 && sheaf_key_encode(source, info->source, NULL) != 0)
		source[0] = '\0';
	*full = (index_session){
		.owner = s->of->owner,
		.app = s->of->app,
		.user = s->of->user,
		.session = s->session,
		.stamp = s->stamp,
		.source = keep(f, sheaf_str_of(source), &ok),
		.name = keep(f, info->name, &ok),
		.preview = keep(f, info->preview, &ok),
		.cwd = keep(f, info->cwd, &ok),
		.created_us = info->created_us,
		.modified_us = info->modified_us,
		.base = info->base,
		.hidden = info->hidden != 0,
		.damaged = info->damaged != 0,
	};
	/* What has expired is not found; it may come back. */
	if (info->expired != SHEAF_EXPIRY_NONE)
		full->hidden = 1;
	else if (info->ttl_us != 0 && !info->pinned)
		full->expires_us = info->stored_us + info->ttl_us;
	s->s = full;
	return ok ? 0 : SHEAF_NOMEM;
}

static int take_stamp(void *ctx, const sheaf_store_key *key, uint64_t stamp)
{
	return add_sight(ctx, key, stamp) != NULL ? 0 : SHEAF_NOMEM;
}

/* A stamp of what a list says, for stores that have none. */
static uint64_t stamp_of_info(const sheaf_session_info *info)
{
	const int64_t numbers[] = {info->created_us,        info->modified_us,   info->stored_us,
	                           (int64_t)info->revision, (int64_t)info->base, info->hidden,
	                           info->damaged,           info->expired};
	uint64_t stamp = str_hash(str_make((const char *)numbers, sizeof(numbers)));
	stamp = stamp * 31 + str_hash(info->name);
	return stamp != 0 ? stamp : 1;
}

static int take_listed(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	followed *f = ctx;
	sight *s = add_sight(f, key, stamp_of_info(info));
	return s != NULL ? fill_sight(f, s, info) : SHEAF_NOMEM;
}

static int take_indexed(void *ctx, const index_session *known)
{
	followed *f = ctx;
	char room[KEY_ROOM];
	sheaf_str key = join_key(room, known->owner, known->session);
	sight *s = key.ptr != NULL ? map_get_ptr(&f->by_key, key) : NULL;
	f->expires = f->expires || known->expires_us != 0;
	if (s != NULL) {
		s->same = s->stamp == known->stamp &&
		          (known->expires_us == 0 || known->expires_us > f->now_us);
		return 0;
	}
	if (mem_grow((void **)&f->gone, &f->gone_room, f->gone_count + 1, sizeof(*f->gone)) != 0)
		return SHEAF_NOMEM;
	f->gone[f->gone_count++] = known->number;
	return 0;
}

/* What a list would say of one session. One that cannot be read has no text, and keeps its stamp. */
static int look_at(followed *f, sight *s)
{
	sheaf_head *head = sheaf_head_new();
	sheaf_head_state state = {0};
	sheaf_session_info info = {0};
	sheaf_store_key key = {s->of->owner, s->of->app, s->of->user, s->session};
	if (head == NULL)
		return err_nomem(f->err);
	int rc = store_head(f->search->store, &key, 0, head, &state, f->err);
	if (rc == 0) {
		sheaf_head_info(head, &info);
		sheaf_info_clock(&info, state.stored_us, state.now_us);
		info.hidden = sheaf_head_hidden(head);
		info.damaged = state.damaged;
	} else if (rc == SHEAF_DAMAGED || rc == SHEAF_FORMAT || rc == SHEAF_DENIED) {
		info.damaged = 1;
		rc = 0;
	}
	if (rc == 0 && fill_sight(f, s, &info) != 0)
		rc = err_nomem(f->err);
	sheaf_head_free(head);
	return rc;
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

static int take_session(followed *f, sight *seen, copying *c)
{
	const index_ops *ops = f->search->ops;
	bool more = true;
	int rc = seen->s != NULL ? 0 : look_at(f, seen);
	if (rc == SHEAF_NOT_FOUND)
		return 0; /* deleted since it was seen: the next search sees that */
	index_session *s = seen->s;
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
		s->stamp = more ? 0 : seen->stamp;
		if (rc == 0)
			rc = ops->put(f->search->file, s, f->err);
		f->step_sessions += !more;
		if (rc == 0 && (f->step_bytes >= STEP_BYTES || f->step_sessions >= STEP_SESSIONS))
			rc = step_end(f);
	}
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
		rc = take_session(f, f->sights[i], c);
		if (rc == 0)
			rc = tell(f, ++done, total);
	}
	return rc == 0 ? step_end(f) : rc;
}

/* What is indexed, compared with what was seen. */
static int compare_all(followed *f, sheaf_str app, sheaf_str user)
{
	for (size_t i = 0; i < f->count; i++) {
		if (map_set_ptr(&f->by_key, f->sights[i]->key, f->sights[i]) != 0)
			return err_nomem(f->err);
	}
	return f->search->ops->stamps(f->search->file, app, user, take_indexed, f, f->err);
}

static uint64_t whom_of(sheaf_str app, sheaf_str user)
{
	return str_hash(app) * 31 + str_hash(user) + 2u * (app.ptr != NULL) + (user.ptr != NULL);
}

int follow(sheaf_search *s, sheaf_str app, sheaf_str user, uint64_t *updated, sheaf_error *err)
{
	sheaf_error own = {0}; /* what is passed down is looked at, so it must be there */
	_cleanup_(followed_end) followed f = {
		.search = s, .err = err != NULL ? err : &own, .lines = BUF_INIT(SIZE_MAX)};
	sheaf_list_query query = {.size = sizeof(query), .app = app, .user = user, .hidden = 1};
	uint64_t changes = 0;
	f.a = arena_new();
	f.now_us = clock_now_us();
	if (f.a == NULL)
		return err_nomem(err);
	int rc = store_stamped(s->store) ? store_stamps(s->store, app, user, take_stamp, &f, f.err)
	                                 : store_list(s->store, &query, take_listed, &f, f.err);
	if (rc == 0)
		rc = s->ops->changes(s->file, &changes, f.err);
	if (rc == 0 && s->settled.known && s->settled.sum == f.sum &&
	    s->settled.changes == changes && s->settled.whom == whom_of(app, user)) {
		*updated = 0;
		return 0;
	}
	if (rc == 0)
		rc = compare_all(&f, app, user);
	if (rc == 0)
		rc = take_changes(&f, updated);
	s->settled.known = rc == 0 && *updated == 0 && !f.expires;
	s->settled.sum = f.sum;
	s->settled.changes = changes;
	s->settled.whom = whom_of(app, user);
	return rc;
}
