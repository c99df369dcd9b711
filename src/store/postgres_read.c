/* Reading: heads, ids, ranges of records, lists. */
#include <stdlib.h>

#include "base/mem.h"
#include "store/postgres.h"

#define PAGE_ROWS_FIRST 256
#define PAGE_ROWS 1024
#define PAGE_BYTES (INT64_C(4) << 20)
#define SPAN_MOST (INT64_C(1) << 20) /* seqs looked at for one page of a few kinds */
#define LIST_ROWS_LEAST 16
#define LIST_ROWS 256

int pg_no_session(sheaf_error *err)
{
	return err_set(err, SHEAF_NOT_FOUND, "there is no such session");
}

void pg_arg_shard(pg_args *a, pg_place at)
{
	if (at.shard < 0)
		pg_arg_null(a);
	else
		pg_arg_i32(a, at.shard);
}

void pg_arg_key(pg_args *a, pg_place at, const sheaf_store_key *key)
{
	pg_arg_text(a, key->owner);
	pg_arg_text(a, key->app);
	pg_arg_text(a, key->session);
	pg_arg_shard(a, at);
}

/* ---- Heads and ids -------------------------------------------------------------- */

int pg_head_read(pg_place at, const sheaf_store_key *key, sheaf_str bytes, sheaf_str state,
                 bool hidden, sheaf_head *out, sheaf_error *err)
{
	int rc = sheaf_head_decode(out, bytes.ptr, bytes.len, err);
	if (rc == 0)
		rc = sheaf_head_state_decode(out, state.ptr, state.len, err);
	if (rc != SHEAF_DAMAGED)
		return rc;
	rc = pg_head_fold(at, key, UINT64_MAX, out, err);
	if (rc == 0 && hidden)
		sheaf_head_hide(out); /* no record says that */
	return rc;
}

int pg_head(pg_place at, const sheaf_store_key *key, sheaf_head *out, sheaf_head_state *state,
            sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	pg_arg_key(&a, at, key);
	int rc = pg_call(at.server, PG_HEAD, &a, pg_deadline(at.server), NULL, &r, err);
	if (rc != 0)
		return rc;
	if (PQntuples(r) == 0)
		return pg_no_session(err);
	state->stored_us = pg_get_i64(r, 0, 2);
	state->now_us = pg_get_i64(r, 0, 3);
	return pg_head_read(at, key, pg_get_text(r, 0, 0), pg_get_text(r, 0, 1),
	                    pg_get_bool(r, 0, 4), out, err);
}

int pg_find(pg_place at, const sheaf_store_key *key, sheaf_str id, uint64_t *seq, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	pg_arg_key(&a, at, key);
	pg_arg_text(&a, id);
	int rc = pg_call(at.server, PG_FIND, &a, pg_deadline(at.server), NULL, &r, err);
	if (rc != 0)
		return rc;
	if (PQntuples(r) == 0)
		return pg_no_session(err);
	if (PQgetisnull(r, 0, 0))
		return err_set(err, SHEAF_NOT_FOUND, "there is no such record");
	*seq = (uint64_t)pg_get_i64(r, 0, 0);
	return 0;
}

/* ---- Records ----------------------------------------------------------------------- */

/* Row `i` of an answer (seq, parent, kind, id, body). `room` keeps a line that was compressed. */
static int read_row(const PGresult *r, int i, buf *room, sheaf_row *out, sheaf_error *err)
{
	sheaf_str id = pg_get_text(r, i, 3), body = pg_get_text(r, i, 4);
	*out = (sheaf_row){
		.seq = (uint64_t)pg_get_i64(r, i, 0),
		.parent = (uint64_t)pg_get_i64(r, i, 1),
		.kind = pg_get_i32(r, i, 2),
		.id = id.ptr != NULL ? id : SHEAF_STR(""),
		.bytes = body.ptr != NULL ? body : SHEAF_STR(""),
	};
	if (pg_body_line(body, room, &out->bytes) && pg_line_ok(out->bytes))
		return 0;
	if (room->status == SHEAF_NOMEM)
		return err_nomem(err);
	out->damaged = 1;
	return 0;
}

int pg_header(pg_place at, const sheaf_store_key *key, sheaf_row_fn fn, void *ctx, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	_cleanup_(buf_free) buf room = BUF_INIT(SHEAF_RECORD_BYTES_MAX + 1);
	pg_arg_key(&a, at, key);
	int rc = pg_call(at.server, PG_HEADER, &a, pg_deadline(at.server), NULL, &r, err);
	if (rc != 0)
		return rc;
	if (PQntuples(r) == 0)
		return pg_no_session(err);
	sheaf_row row;
	rc = read_row(r, 0, &room, &row, err);
	if (rc == 0)
		rc = fn(ctx, &row);
	return rc < 0 ? rc : 0;
}

/* What is left of a scan: seqs [low, high], fixed by the first page, so that it ends. */
typedef struct range {
	int64_t low;
	int64_t high;
	int64_t span;    /* seqs of the next page */
	int64_t created; /* of the session that is read; another one is not it */
	size_t left;     /* rows */
	bool begun;
	sheaf_head *head; /* wanted with the first page; NULL: not, or no longer */
	sheaf_head_state *state;
} range;

static int64_t clamp(uint64_t value)
{
	return value > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)value;
}

static int32_t page_rows(const range *g)
{
	size_t most = g->begun ? PAGE_ROWS : PAGE_ROWS_FIRST;
	return (int32_t)(g->left < most ? g->left : most);
}

static int fetch_page(pg_place at, const sheaf_store_key *key, const sheaf_scan *scan,
                      const range *g, PGresult **out, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	pg_arg_key(&a, at, key);
	pg_arg_i64(&a, g->low);
	pg_arg_i64(&a, g->high);
	pg_arg_i64(&a, g->span);
	pg_arg_i64(&a, (int64_t)scan->kinds);
	pg_arg_bool(&a, scan->backward != 0);
	pg_arg_i32(&a, page_rows(g));
	pg_arg_i64(&a, PAGE_BYTES);
	pg_arg_bool(&a, g->head != NULL);
	return pg_call(at.server, PG_SCAN, &a, pg_deadline(at.server), NULL, out, err);
}

/* The first row of a page is about the session: what the page can have had becomes the range. */
static int page_session(const PGresult *r, range *g, sheaf_error *err)
{
	if (PQntuples(r) == 0)
		return g->begun ? err_set(err, SHEAF_GONE, "the session was deleted")
		                : pg_no_session(err);
	int64_t revision = pg_get_i64(r, 0, 0), base = pg_get_i64(r, 0, 1);
	int64_t created = strtoll(PQgetvalue(r, 0, 3), NULL, 10);
	if (g->begun && created != g->created)
		return err_set(err, SHEAF_GONE, "the session was deleted");
	g->begun = true;
	g->created = created;
	if (g->low <= base)
		g->low = base + 1;
	if (g->high > revision)
		g->high = revision;
	return 0;
}

/* Head and state are the next two rows, if they were asked for. */
static int page_head(pg_place at, const sheaf_store_key *key, const PGresult *r, range *g,
                     sheaf_error *err)
{
	if (g->head == NULL)
		return 0;
	g->state->stored_us = pg_get_i64(r, 1, 0);
	g->state->now_us = pg_get_i64(r, 1, 1);
	return pg_head_read(at, key, pg_get_text(r, 1, 4), pg_get_text(r, 2, 4),
	                    !PQgetisnull(r, 1, 3), g->head, err);
}

/* Takes what a page has answered off the range. `first` is its first record. */
static void take_off(const PGresult *r, int first, const sheaf_scan *scan, range *g, int asked)
{
	int rows = PQntuples(r);
	int64_t bytes = 0;
	for (int i = first; i < rows; i++)
		bytes += PQgetlength(r, i, 4);
	bool cut = rows > first && (rows - first >= asked || bytes >= PAGE_BYTES);
	int64_t last = cut              ? pg_get_i64(r, rows - 1, 0)
	               : scan->backward ? g->high - g->span + 1
	                                : g->low + g->span - 1;
	if (scan->backward)
		g->high = last - 1;
	else
		g->low = last + 1;
	if (scan->kinds == SHEAF_KINDS_ALL)
		g->span = PAGE_ROWS;
	else if (!cut && g->span < SPAN_MOST)
		g->span *= 8; /* few of these kinds: look further */
}

static int give_page(const PGresult *r, int first, range *g, buf *room, sheaf_row_fn fn, void *ctx,
                     sheaf_error *err)
{
	int rc = 0;
	for (int i = first; i < PQntuples(r) && rc == 0; i++) {
		sheaf_row row;
		rc = read_row(r, i, room, &row, err);
		g->left--;
		if (rc == 0)
			rc = fn(ctx, &row);
	}
	return rc;
}

int pg_read(pg_place at, const sheaf_store_key *key, const sheaf_scan *scan, sheaf_head *head,
            sheaf_head_state *state, sheaf_row_fn fn, void *ctx, sheaf_error *err)
{
	_cleanup_(buf_free) buf room = BUF_INIT(SHEAF_RECORD_BYTES_MAX + 1);
	range g = {
		.low = scan->backward ? 0 : clamp(scan->from),
		.high = scan->backward ? clamp(scan->from) : INT64_MAX,
		.span = PAGE_ROWS_FIRST,
		.left = scan->limit,
		.head = head,
		.state = state,
	};
	do {
		_cleanup_(pg_clearp) PGresult *r = NULL;
		int asked = page_rows(&g), first = g.head != NULL ? 3 : 1;
		int rc = fetch_page(at, key, scan, &g, &r, err);
		if (rc == 0)
			rc = page_session(r, &g, err);
		if (rc == 0)
			rc = page_head(at, key, r, &g, err);
		if (rc == 0) {
			rc = give_page(r, first, &g, &room, fn, ctx, err);
			take_off(r, first, scan, &g, asked);
		}
		if (rc != 0)
			return rc < 0 ? rc : 0;
		g.head = NULL;
	} while (g.left > 0 && g.low <= g.high);
	return 0;
}

int pg_scan(pg_place at, const sheaf_store_key *key, const sheaf_scan *scan, sheaf_row_fn fn,
            void *ctx, sheaf_error *err)
{
	return pg_read(at, key, scan, NULL, NULL, fn, ctx, err);
}

/* ---- Lists --------------------------------------------------------------------------- */

/* Row `i` of an answer (owner, session, app, modified, stored, head, now). */
static int give_listed(const PGresult *r, int i, sheaf_head *scratch, sheaf_info_fn fn, void *ctx,
                       sheaf_error *err)
{
	sheaf_str head = pg_get_text(r, i, 5);
	sheaf_store_key key = {
		.owner = pg_get_text(r, i, 0),
		.app = pg_get_text(r, i, 2),
		.session = pg_get_text(r, i, 1),
	};
	if (key.owner.len <= key.app.len)
		return err_set(err, SHEAF_DAMAGED, "the owner of a session is not app/user");
	key.user = str_make(key.owner.ptr + key.app.len + 1, key.owner.len - key.app.len - 1);
	sheaf_session_info info = {0};
	int rc = sheaf_head_decode(scratch, head.ptr, head.len, err);
	if (rc == 0) {
		sheaf_head_info(scratch, &info);
		info.hidden = sheaf_head_hidden(scratch);
	} else if (rc == SHEAF_DAMAGED) {
		info.damaged = 1; /* a check says more */
		info.modified_us = pg_get_i64(r, i, 3);
	} else {
		return rc;
	}
	info.app = key.app;
	info.user = key.user;
	info.session = key.session;
	sheaf_info_clock(&info, pg_get_i64(r, i, 4), pg_get_i64(r, i, 6));
	return fn(ctx, &key, &info);
}

int pg_give_listed(const PGresult *r, sheaf_head *scratch, sheaf_info_fn fn, void *ctx,
                   sheaf_error *err)
{
	int rc = 0;
	for (int i = 0; rc == 0 && i < PQntuples(r); i++)
		rc = give_listed(r, i, scratch, fn, ctx, err);
	return rc;
}

struct pg_lister {
	pg_place at;
	const sheaf_list_query *query;
	buf owner; /* empty: of all users */
	sheaf_head *scratch;
	PGresult *page;
	int row; /* of the page, the next to be given */
	int32_t asked;
	bool ended;
	/* Where the next page begins; the strings are the page's or the query's. */
	int64_t modified;
	int32_t day;
	sheaf_str after_owner;
	sheaf_str after_session;
};

/* How many rows a first page has: what the caller shows, and one to see whether there are more. */
static int32_t first_rows(const sheaf_list_query *q)
{
	size_t limit = q->filter != NULL ? q->filter->limit : 0;
	if (limit == 0)
		limit = 50;
	if (limit < LIST_ROWS_LEAST)
		return LIST_ROWS_LEAST;
	return limit < LIST_ROWS ? (int32_t)limit + 1 : LIST_ROWS;
}

int pg_lister_new(pg_lister **out, pg_place at, const sheaf_list_query *query, sheaf_error *err)
{
	pg_lister *l = mem_zalloc(sizeof(*l));
	if (l == NULL)
		return err_nomem(err);
	*l = (pg_lister){
		.at = at,
		.query = query,
		.owner = BUF_INIT(1024),
		.scratch = sheaf_head_new(),
		.asked = first_rows(query),
		.modified = INT64_MAX,
		.day = INT32_MIN,
		.after_owner = SHEAF_STR(""),
		.after_session = SHEAF_STR(""),
	};
	if (query->app.ptr != NULL && query->user.ptr != NULL) {
		buf_str(&l->owner, query->app);
		buf_char(&l->owner, '/');
		buf_str(&l->owner, query->user);
	}
	if (query->has_after != 0) {
		l->modified = query->after_modified_us;
		l->after_owner = query->after_owner;
		l->after_session = query->after_session;
	}
	int rc = l->scratch != NULL ? buf_status(&l->owner, err) : err_nomem(err);
	if (rc != 0)
		pg_lister_free(l);
	else
		*out = l;
	return rc;
}

void pg_lister_free(pg_lister *l)
{
	if (l == NULL)
		return;
	PQclear(l->page);
	buf_free(&l->owner);
	sheaf_head_free(l->scratch);
	mem_free(l);
}

static int fetch_list(const pg_lister *l, PGresult **out, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	const sheaf_list_query *q = l->query;
	bool expired = q->expired_by_us != 0;
	pg_arg_text(&a, l->owner.len != 0 ? buf_view(&l->owner) : str_make(NULL, 0));
	pg_arg_text(&a, q->app.ptr != NULL ? q->app : SHEAF_STR("*"));
	pg_arg_shard(&a, l->at);
	if (expired) {
		pg_arg_i64(&a, q->expired_by_us);
		pg_arg_i32(&a, l->day);
	} else {
		pg_arg_bool(&a, q->hidden != 0);
		pg_arg_i64(&a, l->modified);
	}
	pg_arg_text(&a, l->after_owner);
	pg_arg_text(&a, l->after_session);
	if (!expired)
		pg_arg_i64(&a, q->filter != NULL && q->filter->after_us != 0 ? q->filter->after_us
		                                                             : INT64_MIN);
	pg_arg_i32(&a, l->asked);
	return pg_call(l->at.server, expired ? PG_LIST_EXPIRED : PG_LIST, &a,
	               pg_deadline(l->at.server), NULL, out, err);
}

int pg_lister_fill(pg_lister *l, sheaf_error *err)
{
	if (l->ended || pg_lister_has(l))
		return 0;
	PGresult *r = NULL;
	int rc = fetch_list(l, &r, err);
	if (rc != 0)
		return rc;
	int rows = PQntuples(r);
	PQclear(l->page);
	l->page = r;
	l->row = 0;
	l->ended = rows < l->asked;
	l->asked = LIST_ROWS;
	if (rows == 0)
		return 0;
	l->after_owner = pg_get_text(r, rows - 1, 0);
	l->after_session = pg_get_text(r, rows - 1, 1);
	l->modified = pg_get_i64(r, rows - 1, 3);
	if (PQnfields(r) > 7)
		l->day = pg_get_i32(r, rows - 1, 7);
	return 0;
}

bool pg_lister_has(const pg_lister *l)
{
	return l->page != NULL && l->row < PQntuples(l->page);
}

bool pg_lister_before(const pg_lister *a, const pg_lister *b)
{
	int64_t a_us = pg_get_i64(a->page, a->row, 3), b_us = pg_get_i64(b->page, b->row, 3);
	if (a_us != b_us)
		return a_us > b_us;
	int order = str_cmp(pg_get_text(a->page, a->row, 0), pg_get_text(b->page, b->row, 0));
	if (order == 0)
		order = str_cmp(pg_get_text(a->page, a->row, 1), pg_get_text(b->page, b->row, 1));
	return order < 0;
}

int pg_lister_give(pg_lister *l, sheaf_info_fn fn, void *ctx, sheaf_error *err)
{
	return give_listed(l->page, l->row++, l->scratch, fn, ctx, err);
}

int pg_list(pg_place at, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
            sheaf_error *err)
{
	pg_lister *l = NULL;
	int rc = pg_lister_new(&l, at, query, err);
	while (rc == 0) {
		rc = pg_lister_fill(l, err);
		if (rc != 0 || !pg_lister_has(l))
			break;
		rc = pg_lister_give(l, fn, ctx, err);
	}
	pg_lister_free(l);
	return rc < 0 ? rc : 0;
}
