/*
 * The `memory:` store: sessions in this process, gone with it.
 *
 * It is the model of the contract in sheaf/sys/store.h and the shortest example
 * of a store. One mutex guards everything. Two rules keep callbacks out of it
 * (a callback may call the store again):
 *  - A log only grows. What cuts or replaces one puts a new log in its place,
 *    so whoever holds a reference can read the old one to its end.
 *  - A head never changes. An append puts a new one in its place, so whoever
 *    holds a reference has a consistent snapshot.
 * References are counted under the mutex. Only `stamp` is called with the mutex
 * held: it must see the head that it extends.
 */
#include "store/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define NAME_ROOM (4 * SHEAF_KEY_PART_ROOM)
#define SCAN_PAGE 64u

void memory_lock(mstore *m)
{
	(void)pthread_mutex_lock(&m->mutex);
}

void memory_unlock(mstore *m)
{
	(void)pthread_mutex_unlock(&m->mutex);
}

/* Heads -------------------------------------------------------------------------- */

static mhead *mhead_new(void)
{
	mhead *h = mem_zalloc(sizeof(*h));
	if (h == NULL)
		return NULL;
	h->refs = 1;
	h->head = sheaf_head_new();
	if (h->head == NULL) {
		mem_free(h);
		return NULL;
	}
	return h;
}

static void mhead_unref(mhead *h)
{
	if (h == NULL || --h->refs != 0)
		return;
	sheaf_head_free(h->head);
	mem_free(h);
}

static void mhead_unrefp(mhead **h)
{
	mhead_unref(*h);
}

/* Logs --------------------------------------------------------------------------- */

static mrow *mrow_new(const sheaf_row *row)
{
	mrow *r = mem_alloc(sizeof(*r) + row->bytes.len + 1 + row->id.len + 1);
	if (r == NULL)
		return NULL;
	char *bytes = r->text, *id = bytes + row->bytes.len + 1;
	if (row->bytes.len != 0)
		memcpy(bytes, row->bytes.ptr, row->bytes.len);
	bytes[row->bytes.len] = '\n';
	if (row->id.len != 0)
		memcpy(id, row->id.ptr, row->id.len);
	id[row->id.len] = '\0';
	r->row = *row;
	r->row.bytes = (sheaf_str){bytes, row->bytes.len};
	r->row.id = (sheaf_str){id, row->id.len};
	return r;
}

static void mlog_unref(mlog *l)
{
	if (l == NULL || --l->refs != 0)
		return;
	for (size_t i = 0; i < l->count; i++)
		mem_free(l->rows[i]);
	mem_free(l->rows);
	mem_free(l->header);
	map_free(&l->ids);
	mhead_unref(l->now);
	queue_free(&l->queue);
	mem_free(l->names);
	mem_free(l);
}

static void mlog_unrefp(mlog **l)
{
	mlog_unref(*l);
}

static sheaf_str put_name(char **at, sheaf_str s)
{
	sheaf_str copy = {*at, s.len};
	memcpy(*at, s.ptr, s.len);
	(*at)[s.len] = '\0';
	*at += s.len + 1;
	return copy;
}

/* An empty log: no header, no head yet. */
static mlog *mlog_new(const sheaf_store_key *key)
{
	mlog *l = mem_zalloc(sizeof(*l));
	if (l == NULL)
		return NULL;
	l->refs = 1;
	l->names = mem_alloc(2 * (key->owner.len + 1) + key->session.len + 1 + key->app.len + 1 +
	                     key->user.len + 1);
	if (l->names == NULL) {
		mem_free(l);
		return NULL;
	}
	char *at = l->names;
	l->key.owner = put_name(&at, key->owner);
	l->key.app = put_name(&at, key->app);
	l->key.user = put_name(&at, key->user);
	char *name = at;
	(void)put_name(&at, key->owner);
	at[-1] = '/';
	l->key.session = put_name(&at, key->session);
	l->name = (sheaf_str){name, key->owner.len + 1 + key->session.len};
	return l;
}

static uint64_t mlog_base(const mlog *l)
{
	return l->header->row.seq;
}

bool mlog_hidden(const mlog *l)
{
	return sheaf_head_hidden(l->now->head) != 0;
}

static int mlog_expired(const mlog *l)
{
	return sheaf_head_expired(l->now->head, l->now->stored_us, clock_now_us());
}

mlog *mlog_find(const mstore *m, sheaf_str owner, sheaf_str session)
{
	char name[NAME_ROOM];
	if (owner.len + 1 + session.len > sizeof(name))
		return NULL;
	memcpy(name, owner.ptr, owner.len);
	name[owner.len] = '/';
	memcpy(name + owner.len + 1, session.ptr, session.len);
	return map_get_ptr(&m->logs, (sheaf_str){name, owner.len + 1 + session.len});
}

/* The log of a key with a reference of the caller's. */
static mlog *mlog_get(mstore *m, const sheaf_store_key *key)
{
	memory_lock(m);
	mlog *l = mlog_find(m, key->owner, key->session);
	if (l != NULL)
		l->refs++;
	memory_unlock(m);
	return l;
}

static void mlog_put(mstore *m, mlog *l)
{
	memory_lock(m);
	mlog_unref(l);
	memory_unlock(m);
}

int mlog_not_found(sheaf_error *err)
{
	return err_set(err, SHEAF_NOT_FOUND, "there is no such session");
}

/* Adds one row; `l->rows` has room. */
static int mlog_add_row(mlog *l, const sheaf_row *row, sheaf_error *err)
{
	uint64_t known;
	if (row->seq != mlog_base(l) + l->count + 1)
		return err_set(err, SHEAF_INVALID, "the records do not follow the log");
	if (row->id.len != 0 && map_get(&l->ids, row->id, &known))
		return err_set(err, SHEAF_CONFLICT, "an id is in the session already");
	mrow *r = mrow_new(row);
	if (r == NULL)
		return err_nomem(err);
	if (row->id.len != 0 && map_set(&l->ids, r->row.id, row->seq) != 0) {
		mem_free(r);
		return err_nomem(err);
	}
	l->rows[l->count++] = r;
	return 0;
}

/* Adds all rows or none. */
static int mlog_add(mlog *l, const sheaf_row *rows, size_t count, sheaf_error *err)
{
	size_t before = l->count;
	if (mem_grow((void **)&l->rows, &l->room, before + count, sizeof(*l->rows)) != 0)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++) {
		int rc = mlog_add_row(l, &rows[i], err);
		if (rc == 0)
			continue;
		while (l->count > before) {
			mrow *r = l->rows[--l->count];
			(void)map_remove(&l->ids, r->row.id);
			mem_free(r);
		}
		return rc;
	}
	return 0;
}

static int mlog_begin(mlog *l, const sheaf_row *rows, size_t count, sheaf_error *err)
{
	if (count == 0 || rows[0].kind != SHEAF_KIND_SESSION)
		return err_set(err, SHEAF_INVALID, "a log begins with its header");
	l->header = mrow_new(&rows[0]);
	return l->header != NULL ? 0 : err_nomem(err);
}

static int seq_of(void *ctx, sheaf_str id, uint64_t *seq)
{
	const mlog *l = ctx;
	return map_get(&l->ids, id, seq);
}

/* A whole log from its rows, the head worked out from them. The caller unrefs it. */
static int mlog_build(mlog **out, const sheaf_store_key *key, sheaf_rows_fn next, void *ctx,
                      sheaf_error *err)
{
	_cleanup_(mlog_unrefp) mlog *l = mlog_new(key);
	if (l == NULL || (l->now = mhead_new()) == NULL)
		return err_nomem(err);
	for (;;) {
		sheaf_row row = {0};
		int rc = next(ctx, &row, err);
		if (rc == 0)
			break;
		if (rc > 0)
			rc = sheaf_head_fold(l->now->head, &row, seq_of, l, err);
		if (rc == 0)
			rc = l->header == NULL ? mlog_begin(l, &row, 1, err)
			                       : mlog_add(l, &row, 1, err);
		if (rc != 0)
			return rc;
	}
	if (l->header == NULL)
		return mlog_begin(l, NULL, 0, err);
	*out = l;
	l = NULL;
	return 0;
}

/* Puts a log in the place of another of the same name. Cannot fail: the key is in the map. */
static void mlog_swap(mstore *m, mlog *old, mlog *new)
{
	new->now->stored_us = clock_now_us();
	(void)map_set_ptr(&m->logs, new->name, new);
	mlog_unref(old);
}

/* Opening ---------------------------------------------------------------------------- */

static int memory_open(void **backend, sheaf_str rest, UNUSED const sheaf_store_options *options,
                       UNUSED sheaf_str (*option)(const void *url, const char *name),
                       UNUSED const void *url, sheaf_error *err)
{
	if (rest.len != 0)
		return err_set(err, SHEAF_INVALID,
		               "a store in memory is named memory: and no more");
	mstore *m = mem_zalloc(sizeof(*m));
	if (m == NULL)
		return err_nomem(err);
	if (clock_wait_init(&m->changed) != 0) {
		mem_free(m);
		return err_nomem(err);
	}
	(void)pthread_mutex_init(&m->mutex, NULL); /* cannot fail without attributes */
	*backend = m;
	return 0;
}

static void memory_close(void *backend)
{
	mstore *m = backend;
	size_t at = 0;
	for (const map_slot *slot; (slot = map_each(&m->logs, &at)) != NULL;)
		mlog_unref((mlog *)(uintptr_t)slot->value);
	map_free(&m->logs);
	(void)pthread_cond_destroy(&m->changed);
	mstate_free_all(m);
	(void)pthread_mutex_destroy(&m->mutex);
	mem_free(m);
}

static void memory_describe(UNUSED void *backend, sheaf_store_info *out)
{
	out->durability = SHEAF_DURABILITY_NONE;
	out->durability_max = SHEAF_DURABILITY_NONE;
	out->lists_app = 1;
	out->queues = 1;
}

/* Reading ---------------------------------------------------------------------------- */

static int memory_head(void *backend, const sheaf_store_key *key, UNUSED int write, sheaf_head *out,
                       sheaf_head_state *state, sheaf_error *err)
{
	mstore *m = backend;
	memory_lock(m);
	mlog *l = mlog_find(m, key->owner, key->session);
	int rc = l != NULL ? sheaf_head_copy(out, l->now->head, err) : mlog_not_found(err);
	if (l != NULL)
		state->stored_us = l->now->stored_us;
	state->now_us = clock_now_us();
	memory_unlock(m);
	return rc;
}

static int memory_find(void *backend, const sheaf_store_key *key, sheaf_str id, uint64_t *seq,
                       sheaf_error *err)
{
	mstore *m = backend;
	memory_lock(m);
	mlog *l = mlog_find(m, key->owner, key->session);
	bool found = l != NULL && map_get(&l->ids, id, seq);
	memory_unlock(m);
	if (found)
		return 0;
	return l != NULL ? err_set(err, SHEAF_NOT_FOUND, "there is no such record")
	                 : mlog_not_found(err);
}

static int memory_header(void *backend, const sheaf_store_key *key, sheaf_row_fn fn, void *ctx,
                         sheaf_error *err)
{
	mstore *m = backend;
	mlog *l = mlog_get(m, key);
	if (l == NULL)
		return mlog_not_found(err);
	int rc = fn(ctx, &l->header->row);
	mlog_put(m, l);
	return rc < 0 ? rc : 0;
}

/* Rows [first, end) as positions in a log: what is left of a scan. */
typedef struct mrange {
	size_t first;
	size_t end;
} mrange;

/* Fixed when the scan begins, so that it ends also if its callback appends. */
static mrange scan_range(const mlog *l, const sheaf_scan *scan)
{
	uint64_t base = mlog_base(l);
	if (scan->from > base + l->count && !scan->backward)
		return (mrange){0, 0};
	uint64_t from = scan->from > base + l->count ? base + l->count : scan->from;
	size_t before = from > base ? (size_t)(from - base - 1) : 0;
	if (!scan->backward)
		return (mrange){before, l->count};
	return (mrange){0, from > base ? before + 1 : 0};
}

/* Takes the next rows of the wanted kinds out of the range; the mutex is held. */
static size_t scan_page(const mlog *l, const sheaf_scan *scan, mrange *range, mrow **page,
                        size_t most)
{
	size_t n = 0;
	while (n < most && range->first < range->end) {
		mrow *r = l->rows[scan->backward ? --range->end : range->first++];
		if ((scan->kinds & SHEAF_KIND_BIT(r->row.kind)) != 0)
			page[n++] = r;
	}
	return n;
}

static int memory_scan(void *backend, const sheaf_store_key *key, const sheaf_scan *scan,
                       sheaf_row_fn fn, void *ctx, sheaf_error *err)
{
	mstore *m = backend;
	mlog *l = mlog_get(m, key);
	if (l == NULL)
		return mlog_not_found(err);
	mrow *page[SCAN_PAGE];
	size_t left = scan->limit;
	int rc = 0;
	memory_lock(m);
	for (mrange range = scan_range(l, scan);;) {
		size_t n = scan_page(l, scan, &range, page, left < SCAN_PAGE ? left : SCAN_PAGE);
		memory_unlock(m);
		for (size_t i = 0; i < n && rc == 0; i++)
			rc = fn(ctx, &page[i]->row);
		left -= n;
		memory_lock(m);
		if (rc != 0 || n == 0)
			break;
	}
	mlog_unref(l);
	memory_unlock(m);
	return rc < 0 ? rc : 0;
}

/* Listing ---------------------------------------------------------------------------- */

/* A session as it was when the mutex was held. */
typedef struct mlisted {
	mlog *log;
	mhead *head;
	int64_t modified_us;
} mlisted;

typedef struct mlisting {
	mlisted *items;
	size_t count;
	size_t room;
} mlisting;

static int64_t modified_us(const mlog *l)
{
	sheaf_session_info info = {0};
	sheaf_head_info(l->now->head, &info);
	return info.modified_us;
}

static int listing_add(mlisting *list, mlog *l)
{
	if (mem_grow((void **)&list->items, &list->room, list->count + 1, sizeof(*list->items)) !=
	    0)
		return SHEAF_NOMEM;
	list->items[list->count++] = (mlisted){l, l->now, modified_us(l)};
	l->refs++;
	l->now->refs++;
	return 0;
}

/* The order of lists: newest first, then owner, then session. */
static int compare(int64_t a_us, sheaf_str a_owner, sheaf_str a_session, int64_t b_us,
                   sheaf_str b_owner, sheaf_str b_session)
{
	if (a_us != b_us)
		return a_us > b_us ? -1 : 1;
	int order = str_cmp(a_owner, b_owner);
	return order != 0 ? order : str_cmp(a_session, b_session);
}

static int compare_listed(const void *a, const void *b)
{
	const mlisted *x = a, *y = b;
	return compare(x->modified_us, x->log->key.owner, x->log->key.session, y->modified_us,
	               y->log->key.owner, y->log->key.session);
}

static int listing_give(mlisting *list, sheaf_info_fn fn, void *ctx)
{
	int64_t now_us = clock_now_us();
	int rc = 0;
	if (list->count != 0)
		qsort(list->items, list->count, sizeof(*list->items), compare_listed);
	for (size_t i = 0; i < list->count && rc == 0; i++) {
		const mlisted *item = &list->items[i];
		sheaf_session_info info = {0};
		sheaf_head_info(item->head->head, &info);
		info.app = item->log->key.app;
		info.user = item->log->key.user;
		info.session = item->log->key.session;
		info.hidden = sheaf_head_hidden(item->head->head);
		sheaf_info_clock(&info, item->head->stored_us, now_us);
		rc = fn(ctx, &item->log->key, &info);
	}
	return rc < 0 ? rc : 0;
}

static void listing_free(mstore *m, mlisting *list)
{
	memory_lock(m);
	for (size_t i = 0; i < list->count; i++) {
		mhead_unref(list->items[i].head);
		mlog_unref(list->items[i].log);
	}
	memory_unlock(m);
	mem_free(list->items);
}

static bool wanted(const mlog *l, const sheaf_list_query *q)
{
	if ((q->app.ptr != NULL && !str_eq(q->app, l->key.app)) ||
	    (q->user.ptr != NULL && !str_eq(q->user, l->key.user)) ||
	    (q->hidden == 0 && mlog_hidden(l)))
		return false;
	if (q->expired_by_us != 0 &&
	    (mlog_hidden(l) || sheaf_head_expired(l->now->head, l->now->stored_us,
	                                          q->expired_by_us) == SHEAF_EXPIRY_NONE))
		return false;
	if (q->has_after == 0)
		return true;
	return compare(modified_us(l), l->key.owner, l->key.session, q->after_modified_us,
	               q->after_owner, q->after_session) > 0;
}

static int memory_list(void *backend, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
                       sheaf_error *err)
{
	mstore *m = backend;
	mlisting list = {NULL, 0, 0};
	size_t at = 0;
	int rc = 0;
	memory_lock(m);
	for (const map_slot *slot; rc == 0 && (slot = map_each(&m->logs, &at)) != NULL;) {
		mlog *l = (mlog *)(uintptr_t)slot->value;
		if (wanted(l, query))
			rc = listing_add(&list, l);
	}
	memory_unlock(m);
	rc = rc != 0 ? err_nomem(err) : listing_give(&list, fn, ctx);
	listing_free(m, &list);
	return rc;
}

static int memory_check(void *backend, const sheaf_store_key *key, UNUSED sheaf_problem_fn fn,
                        UNUSED void *ctx, sheaf_check_totals *totals, sheaf_error *err)
{
	mstore *m = backend;
	size_t at = 0;
	memory_lock(m);
	mlog *one = key != NULL ? mlog_find(m, key->owner, key->session) : NULL;
	for (const map_slot *slot; (slot = map_each(&m->logs, &at)) != NULL;) {
		const mlog *l = (const mlog *)(uintptr_t)slot->value;
		if (key != NULL && l != one)
			continue;
		totals->sessions++;
		totals->records += l->count;
		totals->bytes += l->header->row.bytes.len + 1;
		for (size_t i = 0; i < l->count; i++)
			totals->bytes += l->rows[i]->row.bytes.len + 1;
	}
	memory_unlock(m);
	return key != NULL && one == NULL ? mlog_not_found(err) : 0;
}

/* Writing ---------------------------------------------------------------------------- */

/* Whether the session is as the request needs it; `l` is NULL if there is none. */
static int check_request(const mstore *m, const sheaf_store_key *key, const mlog *l,
                         const sheaf_append_request *request, sheaf_error *err)
{
	if (request->create == 0)
		return l != NULL ? 0 : mlog_not_found(err);
	if (l != NULL)
		return err_set(err, SHEAF_EXISTS, "the session exists already");
	if (request->source.len == 0)
		return 0;
	const mlog *source = mlog_find(m, key->owner, request->source);
	if (source == NULL || mlog_hidden(source))
		return err_set(err, SHEAF_GONE, "the session to fork was deleted");
	return 0;
}

static int create(mstore *m, const sheaf_store_key *key, const sheaf_row *rows, size_t count,
                  mhead **next, sheaf_error *err)
{
	_cleanup_(mlog_unrefp) mlog *l = mlog_new(key);
	if (l == NULL)
		return err_nomem(err);
	int rc = mlog_begin(l, rows, count, err);
	if (rc == 0)
		rc = mlog_add(l, rows + 1, count - 1, err);
	if (rc == 0 && map_set_ptr(&m->logs, l->name, l) != 0)
		rc = err_nomem(err);
	if (rc != 0)
		return rc;
	l->now = *next;
	*next = NULL;
	l = NULL;
	return 0;
}

static int append(mstore *m, const sheaf_store_key *key, const sheaf_append_request *request,
                  sheaf_append_reply *reply, sheaf_error *err)
{
	mlog *l = mlog_find(m, key->owner, key->session);
	if (l != NULL && request->create == 0) {
		int expired = mlog_expired(l);
		if (mlog_hidden(l) || expired == SHEAF_EXPIRY_OVER)
			return err_set(err, SHEAF_GONE, "the session was deleted");
		if (expired != SHEAF_EXPIRY_NONE && !request->revive)
			return err_set(err, SHEAF_EXPIRED, "the session has expired");
	}
	for (size_t i = 0; l != NULL && i < request->id_count && !mlog_hidden(l); i++)
		reply->known += map_get(&l->ids, request->ids[i], &request->seqs[i]);
	reply->durability = SHEAF_DURABILITY_NONE;
	if (reply->known != 0)
		return 0;
	int rc = check_request(m, key, l, request, err);
	if (rc != 0)
		return rc;

	_cleanup_(mhead_unrefp) mhead *next = mhead_new();
	if (next == NULL)
		return err_nomem(err);
	const sheaf_row *rows = NULL;
	size_t count = 0;
	rc = request->stamp(request->ctx, l != NULL ? l->now->head : NULL, next->head, &rows,
	                    &count, err);
	if (rc != 0)
		return rc;
	_cleanup_(mstate_drop) mstate_change user = {NULL, NULL};
	rc = mstate_prepare(m, key->owner, false, request->user_state, request->user_state_count,
	                    &user, err);
	if (rc != 0)
		return rc;
	next->stored_us = clock_now_us();
	rc = l == NULL ? create(m, key, rows, count, &next, err) : mlog_add(l, rows, count, err);
	if (rc != 0)
		return rc;
	mstate_commit(&user);
	if (l == NULL)
		return 0;
	mhead *before = l->now;
	l->now = next;
	next = before; /* given up on return */
	return 0;
}

static int memory_append(void *backend, const sheaf_store_key *key,
                         const sheaf_append_request *request, sheaf_append_reply *reply,
                         sheaf_error *err)
{
	mstore *m = backend;
	memory_lock(m);
	int rc = append(m, key, request, reply, err);
	(void)pthread_cond_broadcast(&m->changed);
	memory_unlock(m);
	return rc;
}

/* Rows of a log that go into another: the header, then all up to `last`. */
typedef struct mkeep {
	const mlog *log;
	bool begun;
	size_t at;
	uint64_t last;
} mkeep;

static int keep_next(void *ctx, sheaf_row *row, UNUSED sheaf_error *err)
{
	mkeep *k = ctx;
	if (!k->begun) {
		*row = k->log->header->row;
		k->begun = true;
		return 1;
	}
	if (k->at == k->log->count || k->log->rows[k->at]->row.seq > k->last)
		return 0;
	*row = k->log->rows[k->at++]->row;
	return 1;
}

/* Hides a log and gives back what lies above `last`. */
static int hide(mstore *m, mlog *l, uint64_t last, sheaf_error *err)
{
	if (mlog_hidden(l) && sheaf_head_revision(l->now->head) <= last)
		return 0;
	mkeep keep = {l, false, 0, last};
	mlog *kept = NULL;
	int rc = mlog_build(&kept, &l->key, keep_next, &keep, err);
	if (rc != 0)
		return rc;
	sheaf_head_hide(kept->now->head);
	mlog_swap(m, l, kept);
	return 0;
}

/* The living sessions that read `l`, and up to where the one does that reads most. */
static int find_readers(mstore *m, const mlog *l, mlisting *readers, uint64_t *highest)
{
	size_t at = 0;
	for (const map_slot *slot; (slot = map_each(&m->logs, &at)) != NULL;) {
		mlog *reader = (mlog *)(uintptr_t)slot->value;
		sheaf_str session;
		uint64_t base;
		if (!str_eq(reader->key.owner, l->key.owner) || mlog_hidden(reader))
			continue;
		for (size_t i = 0; sheaf_head_link(reader->now->head, i, &session, &base); i++) {
			if (!str_eq(session, l->key.session))
				continue;
			if (listing_add(readers, reader) != 0)
				return SHEAF_NOMEM;
			if (base > *highest)
				*highest = base;
			break;
		}
	}
	return 0;
}

static int remove_log(mstore *m, const sheaf_store_key *key, const sheaf_remove_request *request,
                      sheaf_remove_reply *reply, mlisting *readers, sheaf_error *err)
{
	mlog *l = mlog_find(m, key->owner, key->session);
	if (l == NULL)
		return 0;
	bool hidden = mlog_hidden(l);
	if (request->expired && (hidden || mlog_expired(l) != SHEAF_EXPIRY_OVER))
		return 0;
	reply->existed = request->reap != 0 || !hidden;
	if (request->reap != 0 && !hidden)
		return 0;
	uint64_t highest = 0;
	if (find_readers(m, l, readers, &highest) != 0)
		return err_nomem(err);
	if (readers->count == 0) {
		(void)map_remove(&m->logs, l->name);
		mlog_unref(l);
		return 0;
	}
	int rc = hide(m, l, highest, err);
	reply->hidden = rc == 0;
	return rc;
}

static int memory_remove(void *backend, const sheaf_store_key *key,
                         const sheaf_remove_request *request, sheaf_remove_reply *reply,
                         sheaf_error *err)
{
	mstore *m = backend;
	mlisting readers = {NULL, 0, 0};
	memory_lock(m);
	int rc = remove_log(m, key, request, reply, &readers, err);
	(void)pthread_cond_broadcast(&m->changed);
	memory_unlock(m);
	if (rc == 0 && request->reader != NULL) {
		rc = listing_give(&readers, request->reader, request->ctx);
		if (rc != 0)
			(void)err_unknown(err, rc); /* it was deleted; the callback failed */
	}
	listing_free(m, &readers);
	return rc;
}

/* The rows are asked for without the mutex; whether they are still wanted shows after that. */
static int memory_replace(void *backend, const sheaf_store_key *key, uint64_t revision,
                          sheaf_rows_fn next, void *ctx, UNUSED int64_t deadline_us,
                          sheaf_error *err)
{
	mstore *m = backend;
	mlog *old = mlog_get(m, key), *new = NULL;
	if (old == NULL)
		return mlog_not_found(err);
	int rc = mlog_build(&new, key, next, ctx, err);
	memory_lock(m);
	mlog *now = mlog_find(m, key->owner, key->session);
	if (rc == 0 && now == NULL) {
		rc = mlog_not_found(err);
	} else if (rc == 0 && (now != old || sheaf_head_revision(now->now->head) != revision)) {
		rc = err_set(err, SHEAF_STALE, "the session was changed meanwhile");
		err->revision = sheaf_head_revision(now->now->head);
	}
	if (rc == 0) {
		if (mlog_hidden(old))
			sheaf_head_hide(new->now->head);
		new->queue = old->queue;
		old->queue = (queue){NULL, 0, 0};
		mlog_swap(m, old, new);
		(void)pthread_cond_broadcast(&m->changed);
		new = NULL;
	}
	mlog_unref(new);
	mlog_unref(old);
	memory_unlock(m);
	return rc;
}

const sheaf_store_ops store_memory_ops = {
	.size = sizeof(sheaf_store_ops),
	.scheme = "memory",
	.open = memory_open,
	.option_names = NULL,
	.close = memory_close,
	.describe = memory_describe,
	.head = memory_head,
	.append = memory_append,
	.scan = memory_scan,
	.find = memory_find,
	.header = memory_header,
	.list = memory_list,
	.remove = memory_remove,
	.replace = memory_replace,
	.check = memory_check,
	.repair = NULL, /* there is nothing that could break */
	.wait = memory_wait,
	.queue_put = memory_queue_put,
	.queue_claim = memory_queue_claim,
	.queue_ack = memory_queue_ack,
	.queue_cancel = memory_queue_cancel,
	.queue_list = memory_queue_list,
	.state_read = memory_state_read,
	.state_apply = memory_state_apply,
};
