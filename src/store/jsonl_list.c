/*
 * Lists: pages of an owner's sessions out of its catalogue, each verified against
 * its file, and the sessions of many owners merged.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/jsonl_catalogue.h"

static int listed_cmp(const void *a, const void *b)
{
	const jlisted *x = a, *y = b;
	if (x->modified_us != y->modified_us)
		return x->modified_us > y->modified_us ? -1 : 1;
	return strcmp(x->session, y->session);
}

/* Whether a session stands at or before the place where the query wants to go on. */
static bool before_cursor(const sheaf_list_query *q, const sheaf_store_key *key,
                          int64_t modified_us)
{
	if (!q->has_after || modified_us < q->after_modified_us)
		return false;
	if (modified_us > q->after_modified_us)
		return true;
	int cmp = str_cmp(key->owner, q->after_owner);
	return cmp < 0 || (cmp == 0 && str_cmp(key->session, q->after_session) <= 0);
}

/* Reads a head from the log itself. 1: there is no such session; 0 also when it is damaged. */
int jlisted_read(jowner *o, jlisted *l, sheaf_error *err)
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
	bool looked = rc == 0 && io_stat_fd(log->file->fd, &l->file) == 0;
	l->stored_us = looked ? l->file.mtime_ns / 1000 : clock_now_us();
	/* While it is being written to, the file is ahead of the head. */
	l->fits = looked && !log->leader && l->file.size == log->size + log->tail_bytes;
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
	jrow_head h;
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
	jlisted *waiting;
	size_t count, room;
	map seen; /* sessions met, for rows that another writer moves meanwhile */
	arena *names;
	buf corrected; /* rows to write when the list is done */
	jrow *after;   /* the key of the last row taken; NULL at the start */
} listing;

/* Verifies one row against its file and fills what the list shows. 1: leave it out. */
static int verify(listing *l, const candidate_row *row, jlisted *out, sheaf_error *err)
{
	char file[JSONL_NAME_ROOM];
	io_stat st;
	int rc;

	snprintf(file, sizeof(file), "%s.jsonl", row->session);
	snprintf(out->session, sizeof(out->session), "%s", row->session);
	out->modified_us = row->h.modified_us;
	if (io_stat_at(l->o->dir, file, &st))
		return errno == ENOENT ? 1
		                       : err_sys(err, SHEAF_STORAGE, errno, "cannot look at a log");
	out->head = sheaf_head_new();
	if (!out->head)
		return err_nomem(err);
	if (jrow_fits(&row->h, &st) && row->h.head_length &&
	    sheaf_head_decode(out->head, row->head, row->h.head_length, err) == 0) {
		out->stored_us = st.mtime_ns / 1000;
		return 0;
	}
	rc = jlisted_read(l->o, out, err);
	if (rc == 0 && !out->damaged) {
		sheaf_session_info info;
		sheaf_head_info(out->head, &info);
		out->modified_us = info.modified_us;
		if (out->fits)
			jrow_put(&l->corrected, out->session, &out->file, out->head);
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
	jcursor k;
	int rc = 0;

	*count = 0;
	jcursor_begin(&k, l->o->catalogue, l->after);
	while (rc == 0 && *count < CHUNK_ROWS && jcursor_next(&k, &row, &own)) {
		candidate_row *r = &rows[(*count)++];
		snprintf(r->session, sizeof(r->session), "%.*s", (int)row->name.len, row->name.ptr);
		r->h = row->h;
		r->head = mem_dup(row->head, row->h.head_length);
		mem_free(own);
		rc = r->head ? 0 : err_nomem(err);
	}
	jcursor_done(&k);
	return rc;
}

/* The next rows, as copies, so that the mutex need not be held while they are verified. */
static int take_candidates(listing *l, candidate_row *rows, size_t *count, sheaf_error *err)
{
	jcatalogue *c = l->o->catalogue;

	pthread_mutex_lock(&c->mutex);
	int rc = l->after && jcatalogue_in_memory(c, l->o) ? 0 : jcatalogue_load(c, l->o, err);
	if (rc == 0)
		rc = copy_candidates(l, rows, count, err);
	if (rc == 0 && c->broken) {
		candidates_free(rows, *count);
		*count = 0;
		rc = jcatalogue_reconcile(c, l->o, err);
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
	int64_t now_us = clock_now_us();
	size_t given = 0;
	int rc = 0;

	if (l->count)
		qsort(l->waiting, l->count, sizeof(*l->waiting), listed_cmp);
	for (; rc == 0 && given < l->count; given++) {
		jlisted *x = &l->waiting[given];
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
		sheaf_info_clock(&info, x->stored_us, now_us);
		if ((info.hidden && !q->hidden) || before_cursor(q, &key, x->modified_us))
			continue;
		if (q->expired_by_us &&
		    (info.hidden || !sheaf_head_expired(x->head, x->stored_us, q->expired_by_us)))
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
	row->h = (jrow_head){.modified_us = modified_us};
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
	jlisted *x = &l->waiting[l->count];
	*x = (jlisted){.head = NULL};
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
	if (!o->store->readonly && jcatalogue_lock(c, o)) {
		jcatalogue_flush(c, o, 0, 0);
		if (c->fd >= 0)
			io_lock_try(c->fd, F_UNLCK);
	} else {
		/* Not on disk; in memory they serve the next page. */
		for (size_t at = 0; at < c->pending.len;) {
			jrow_seal(c->pending.ptr + at, 0, 0);
			jrow *row = jrow_read(c->pending.ptr + at, c->pending.len - at);
			if (!row)
				break;
			at += row->h.length;
			if (jcatalogue_add(c, row))
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
	jlisted *items;
	size_t count, room;
} gathered;

/* Lists all of one owner into memory. */
static int gather(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	gathered *g = ctx;
	if (mem_grow((void **)&g->items, &g->room, g->count + 1, sizeof(*g->items)))
		return SHEAF_NOMEM;
	jlisted *l = &g->items[g->count];
	*l = (jlisted){.modified_us = info->modified_us,
	               .damaged = info->damaged,
	               .readonly = info->readonly};
	snprintf(l->session, sizeof(l->session), "%s", key->session.ptr);
	g->count++;
	return 0;
}

typedef struct merge_item {
	jowner *o;
	jlisted l;
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
	if (rc == 0 &&
	    mem_grow((void **)&w->items, &w->room, w->count + g.count, sizeof(*w->items)))
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
static int give_one(jowner *o, jlisted *x, const sheaf_list_query *query, sheaf_info_fn fn,
                    void *ctx, sheaf_error *err)
{
	listing l = {.o = o, .query = query, .fn = fn, .ctx = ctx, .waiting = x, .count = 1};
	int64_t key = x->modified_us;
	int rc;

	x->head = sheaf_head_new();
	if (!x->head)
		return err_nomem(err);
	rc = jlisted_read(o, x, err);
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
	jlisted one = {.head = NULL};

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
