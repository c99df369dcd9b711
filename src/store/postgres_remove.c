/* What takes records away: remove, replace; and working a head out from records. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "store/postgres.h"

#define BATCH_ROWS 256u
#define BATCH_BYTES ((size_t)4 << 20)

/* ---- Heads from records --------------------------------------------------------- */

typedef struct folding {
	sheaf_head *head;
	map ids;
	arena *names;
	uint64_t last;
	sheaf_error *err;
} folding;

static void folding_free(folding *f)
{
	map_free(&f->ids);
	arena_free(f->names);
}

static int seq_of(void *ctx, sheaf_str id, uint64_t *seq)
{
	const folding *f = ctx;
	return map_get(&f->ids, id, seq);
}

static int fold(folding *f, sheaf_row *row)
{
	int rc = sheaf_head_fold(f->head, row, seq_of, f, f->err), ok = 1;
	if (rc != 0 || row->id.len == 0 || row->kind == SHEAF_KIND_SESSION)
		return rc;
	sheaf_str id = arena_dup(f->names, row->id, &ok);
	if (!ok || map_set(&f->ids, id, row->seq) != 0)
		return err_nomem(f->err);
	return 0;
}

static int fold_row(void *ctx, const sheaf_row *given)
{
	folding *f = ctx;
	sheaf_row row = *given;
	if (row.kind != SHEAF_KIND_SESSION && row.seq > f->last)
		return 1;
	if (row.damaged)
		return err_set(f->err, SHEAF_DAMAGED, "record %llu cannot be read",
		               (unsigned long long)row.seq);
	return fold(f, &row);
}

int pg_head_fold(pg_place at, const sheaf_store_key *key, uint64_t last, sheaf_head *out,
                 sheaf_error *err)
{
	_cleanup_(folding_free) folding f = {
		.head = sheaf_head_new(), .names = arena_new(), .last = last, .err = err};
	sheaf_scan scan = {.size = sizeof(scan), .limit = SIZE_MAX, .kinds = SHEAF_KINDS_ALL};
	int rc = f.head == NULL || f.names == NULL ? err_nomem(err) : 0;
	if (rc == 0)
		rc = pg_header(at, key, fold_row, &f, err);
	if (rc == 0)
		rc = pg_scan(at, key, &scan, fold_row, &f, err);
	if (rc == 0)
		rc = sheaf_head_copy(out, f.head, err);
	sheaf_head_free(f.head);
	return rc;
}

/* ---- Remove ------------------------------------------------------------------------ */

enum {
	ABSENT = 2,
	KEPT = 3,
	READ = 4,
	ALIVE = 6
};

/* Hides a session that is read up to `highest`; *done says whether that was still so. */
static int hide(pg_place at, const sheaf_store_key *key, uint64_t highest, sheaf_str bytes,
                int64_t deadline_us, bool *done, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	_cleanup_(pg_head_row_free) pg_head_row row = {.revision = 0};
	sheaf_head *head = sheaf_head_new();
	int rc = head != NULL ? sheaf_head_decode(head, bytes.ptr, bytes.len, err) : err_nomem(err);
	bool cut = rc == SHEAF_DAMAGED || (rc == 0 && sheaf_head_revision(head) > highest);
	if (cut)
		rc = pg_head_fold(at, key, highest, head, err);
	if (rc == 0) {
		sheaf_head_hide(head);
		rc = pg_head_row_make(&row, head, cut, err);
	}
	sheaf_head_free(head);
	if (cut && (rc == SHEAF_NOT_FOUND || rc == SHEAF_GONE))
		return 0; /* somebody else has removed it meanwhile */
	if (rc != 0)
		return rc;
	pg_arg_key(&a, at, key);
	pg_arg_i64(&a, (int64_t)highest);
	pg_arg_i64(&a, pg_mark(bytes));
	pg_arg_i64(&a, row.revision);
	pg_arg_i64(&a, row.mark);
	pg_arg_text(&a, buf_view(&row.bytes));
	pg_arg_i64(&a, row.modified);
	pg_arg_state(&a, &row);
	rc = pg_call(at.server, PG_HIDE, &a, deadline_us, NULL, &r, err);
	*done = rc == 0 && pg_get_bool(r, 0, 0);
	return rc;
}

/* One attempt: 1 if the session or its readers have changed meanwhile. */
static int try_remove(pg_place at, const sheaf_store_key *key, const sheaf_remove_request *request,
                      bool *begun, sheaf_remove_reply *reply, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	bool lost = false, done = false;
	pg_arg_key(&a, at, key);
	pg_arg_bool(&a, request->reap != 0);
	pg_arg_bool(&a, request->expired != 0);
	int rc = pg_call(at.server, PG_REMOVE, &a, request->deadline_us, &lost, &r, err);
	if (rc != 0)
		return rc;
	int status = pg_get_status(r);
	bool hidden = pg_get_bool(r, 0, 1);
	if (status < 0)
		return pg_nonsense(err);
	/* An answer that was lost said whether it was there. */
	if (!*begun)
		reply->existed = status == ABSENT  ? lost
		                 : status == ALIVE ? 0
		                                   : request->reap != 0 || !hidden;
	*begun = true;
	if (status == KEPT)
		reply->hidden = 1;
	if (status != READ)
		return 0;
	rc = hide(at, key, (uint64_t)pg_get_i64(r, 0, 2), pg_get_text(r, 0, 3),
	          request->deadline_us, &done, err);
	reply->hidden = done;
	if (rc != 0 || done)
		return rc;
	return clock_monotonic_us() < request->deadline_us
	               ? 1
	               : err_set(err, SHEAF_BUSY, "the session changed until the deadline");
}

static int name_readers(pg_place at, const sheaf_store_key *key,
                        const sheaf_remove_request *request, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	pg_arg_key(&a, at, key);
	int rc = pg_call(at.server, PG_READERS, &a, request->deadline_us, NULL, &r, err);
	sheaf_head *scratch = rc == 0 ? sheaf_head_new() : NULL;
	if (rc == 0 && scratch == NULL)
		rc = err_nomem(err);
	if (rc == 0)
		rc = pg_give_listed(r, scratch, request->reader, request->ctx, err);
	sheaf_head_free(scratch);
	return rc < 0 ? rc : 0;
}

int pg_remove(pg_place at, const sheaf_store_key *key, const sheaf_remove_request *request,
              sheaf_remove_reply *reply, sheaf_error *err)
{
	bool begun = false;
	int rc;
	do
		rc = try_remove(at, key, request, &begun, reply, err);
	while (rc == 1);
	if (rc == 0 && reply->hidden != 0 && request->reader != NULL) {
		rc = name_readers(at, key, request, err);
		if (rc != 0)
			(void)err_unknown(err, rc); /* it was deleted; naming failed */
	}
	return rc;
}

/* ---- Replace ------------------------------------------------------------------------- */

typedef struct replacing {
	pg_place at;
	const sheaf_store_key *key;
	pg_conn *conn;
	folding f;
	bool hidden;
	uint64_t base;
	size_t count; /* rows waiting in `lines` */
	sheaf_row rows[BATCH_ROWS];
	arena *lines;
} replacing;

static int step(replacing *p, pg_statement which, pg_args *a, int64_t deadline_us, PGresult **r,
                sheaf_error *err)
{
	pg_end end = pg_conn_run(p->at.server, p->conn, which, a, deadline_us, r, err);
	return end == PG_DONE ? 0 : err->code;
}

static int step_sql(replacing *p, const char *sql, sheaf_error *err)
{
	PGresult *r = NULL;
	pg_end end = pg_conn_sql(p->conn, sql, pg_deadline(p->at.server), &r, err);
	PQclear(r);
	if (end == PG_DONE)
		return 0;
	return end == PG_LOST ? err_unknown(err, err->code) : err->code;
}

static int replace_begin(replacing *p, uint64_t revision, int64_t deadline_us, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	int rc = step_sql(p, "BEGIN", err);
	pg_arg_key(&a, p->at, p->key);
	pg_arg_i64(&a, (int64_t)revision);
	if (rc == 0)
		rc = step(p, PG_REPLACE_BEGIN, &a, deadline_us, &r, err);
	if (rc != 0)
		return rc;
	int status = pg_get_i32(r, 0, 0);
	p->hidden = pg_get_bool(r, 0, 2);
	if (status == ABSENT)
		return pg_no_session(err);
	if (status == READ) {
		rc = err_set(err, SHEAF_STALE, "the session was changed meanwhile");
		err->revision = (uint64_t)pg_get_i64(r, 0, 1);
	}
	return rc;
}

static int flush_rows(replacing *p, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	if (p->count == 0)
		return 0;
	pg_arg_text(&a, p->key->owner);
	pg_arg_text(&a, p->key->app);
	pg_arg_text(&a, p->key->session);
	pg_arg_i64(&a, (int64_t)p->rows[0].seq);
	pg_arg_rows(&a, p->rows, p->count);
	p->count = 0;
	arena_free(p->lines);
	p->lines = arena_new();
	if (p->lines == NULL)
		return err_nomem(err);
	return step(p, PG_ADD_ROWS, &a, pg_deadline(p->at.server), &r, err);
}

/* Keeps a row until the batch is sent: it is valid only until the next one is asked for. */
static int keep_row(replacing *p, const sheaf_row *row, sheaf_error *err)
{
	int ok = 1;
	sheaf_row *kept = &p->rows[p->count];
	*kept = *row;
	kept->bytes = arena_dup(p->lines, str_make(row->bytes.ptr, row->bytes.len + 1), &ok);
	kept->id = arena_dup(p->lines, row->id, &ok);
	if (!ok)
		return err_nomem(err);
	kept->bytes.len--;
	p->count++;
	if (p->count == BATCH_ROWS || arena_bytes(p->lines) >= BATCH_BYTES)
		return flush_rows(p, err);
	return 0;
}

static int replace_rows(replacing *p, sheaf_rows_fn next, void *ctx, sheaf_error *err)
{
	for (bool first = true;; first = false) {
		sheaf_row row = {0};
		int rc = next(ctx, &row, err);
		if (rc == 0 && first)
			return err_set(err, SHEAF_INVALID, "a log begins with its header");
		if (rc <= 0)
			return rc < 0 ? rc : flush_rows(p, err);
		rc = fold(&p->f, &row);
		if (rc == 0 && first) {
			p->base = row.seq;
			row.kind = SHEAF_KIND_SESSION;
		}
		if (rc == 0)
			rc = keep_row(p, &row, err);
		if (rc != 0)
			return rc;
	}
}

static int replace_finish(replacing *p, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	_cleanup_(pg_head_row_free) pg_head_row row = {.revision = 0};
	if (p->hidden)
		sheaf_head_hide(p->f.head);
	int rc = pg_head_row_make(&row, p->f.head, true, err);
	if (rc != 0)
		return rc;
	pg_arg_text(&a, p->key->owner);
	pg_arg_text(&a, p->key->app);
	pg_arg_text(&a, p->key->session);
	pg_arg_i64(&a, (int64_t)p->base);
	pg_arg_i64(&a, row.created);
	pg_arg_i64(&a, row.revision);
	pg_arg_i64(&a, row.mark);
	pg_arg_text(&a, buf_view(&row.bytes));
	pg_arg_i64(&a, row.modified);
	pg_arg_i64(&a, p->hidden ? 0 : row.ttl);
	pg_arg_i64(&a, row.grace);
	pg_arg_state(&a, &row);
	pg_arg_links(&a, p->f.head);
	rc = step(p, PG_REPLACE_FINISH, &a, pg_deadline(p->at.server), &r, err);
	return rc == 0 ? step_sql(p, "COMMIT", err) : rc;
}

/*
 * On a connection of its own, since `next` may read this store meanwhile and
 * must find one free. Closing it ends the transaction.
 */
int pg_replace(pg_place at, const sheaf_store_key *key, uint64_t revision, sheaf_rows_fn next,
               void *ctx, int64_t deadline_us, sheaf_error *err)
{
	pg_end end;
	replacing *p = mem_zalloc(sizeof(*p));
	if (p == NULL)
		return err_nomem(err);
	p->at = at;
	p->key = key;
	p->f = (folding){.head = sheaf_head_new(), .names = arena_new(), .err = err};
	p->lines = arena_new();
	int rc = p->f.head == NULL || p->f.names == NULL || p->lines == NULL ? err_nomem(err) : 0;
	if (rc == 0) {
		p->conn = pg_conn_open(at.server, deadline_us, &end, err);
		rc = p->conn != NULL ? 0 : err->code;
	}
	if (rc == 0)
		rc = replace_begin(p, revision, deadline_us, err);
	if (rc == 0)
		rc = replace_rows(p, next, ctx, err);
	if (rc == 0)
		rc = replace_finish(p, err);
	if (p->conn != NULL)
		pg_conn_close(p->conn);
	sheaf_head_free(p->f.head);
	folding_free(&p->f);
	arena_free(p->lines);
	mem_free(p);
	return rc;
}
