/*
 * Append: stamped on the head the caller knows, sent as one call of a function
 * that compares and writes, stamped again on the head it answers if another
 * writer was faster.
 */
#include "base/clock.h"
#include "store/postgres.h"

#define HEAD_BYTES_MAX ((size_t)64 << 20)
#define TTL_MOST (INT64_MAX / 4)
#define PAUSE_AFTER 3u /* misses before a writer steps back */
#define PAUSE_MOST_US INT64_C(20000)

/* What the function answers; see postgres_schema.sql. */
enum {
	STORED = 0,
	KNOWN = 1,
	MISSING = 2,
	HIDDEN = 3,
	STALE = 4,
	SOURCE_GONE = 5,
	EXISTS = 6,
	NO_STANDBY = 7,
	EXPIRED = 8
};

/* ---- Heads as rows ------------------------------------------------------------- */

int64_t pg_mark(sheaf_str head)
{
	if (head.len < 4)
		return -1;
	const unsigned char *p = (const unsigned char *)head.ptr + head.len - 4;
	return (int64_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	                 (uint32_t)p[3] << 24);
}

/* Into an empty buffer, by a function that says how much room it needs. */
static int encode(buf *out, const sheaf_head *head,
                  size_t (*fn)(const sheaf_head *head, void *out, size_t room), sheaf_error *err)
{
	out->max = HEAD_BYTES_MAX;
	buf_reset(out);
	size_t need = fn(head, out->ptr, out->room);
	if (need > out->room) {
		if (buf_reserve(out, need) != 0)
			return buf_status(out, err);
		need = fn(head, out->ptr, out->room);
	}
	out->len = need;
	return 0;
}

int pg_head_row_make(pg_head_row *out, const sheaf_head *head, bool with_state, sheaf_error *err)
{
	sheaf_session_info info = {0};
	buf_reset(&out->state);
	int rc = encode(&out->bytes, head, sheaf_head_encode, err);
	if (rc == 0 && with_state)
		rc = encode(&out->state, head, sheaf_head_state_encode, err);
	if (rc != 0)
		return rc;
	sheaf_head_info(head, &info);
	out->revision = (int64_t)info.revision;
	out->base = (int64_t)info.base;
	out->created = info.created_us;
	out->mark = pg_mark(buf_view(&out->bytes));
	out->modified = info.modified_us;
	out->ttl = info.pinned != 0 || info.ttl_us <= 0 || info.ttl_us > TTL_MOST ? 0 : info.ttl_us;
	out->grace = info.grace_us < TTL_MOST ? info.grace_us : TTL_MOST;
	return 0;
}

void pg_arg_state(pg_args *a, const pg_head_row *row)
{
	pg_arg_text(a, row->state.len != 0 ? buf_view(&row->state) : str_make(NULL, 0));
}

void pg_head_row_free(pg_head_row *row)
{
	buf_free(&row->bytes);
	buf_free(&row->state);
}

void pg_arg_links(pg_args *a, const sheaf_head *head)
{
	sheaf_str session;
	uint64_t base;
	size_t count = 0;
	while (head != NULL && sheaf_head_link(head, count, &session, &base))
		count++;
	if (count == 0) {
		pg_array_empty(a, PG_TEXT);
		pg_array_empty(a, PG_INT8);
		return;
	}
	pg_array_begin(a, PG_TEXT, count);
	for (size_t i = 0; sheaf_head_link(head, i, &session, &base); i++)
		pg_item_text(a, session);
	pg_array_end(a);
	pg_array_begin(a, PG_INT8, count);
	for (size_t i = 0; sheaf_head_link(head, i, &session, &base); i++)
		pg_item_i64(a, (int64_t)base);
	pg_array_end(a);
}

/* ---- One append ------------------------------------------------------------------ */

typedef struct appending {
	pg_place at;
	const sheaf_store_key *key;
	const sheaf_append_request *request;
	sheaf_append_reply *reply;
	sheaf_head *present; /* the head the server answered */
	sheaf_head *next;
	bool lost;       /* an answer was: some attempt may have been stored */
	bool new_state;  /* `next` has another state than what it was stamped on */
	pg_head_row row; /* `next` as bytes */
	pg_args args;
	int64_t revision; /* of the head that was stamped on */
	int64_t created;
	int64_t mark;
	const sheaf_row *rows;
	size_t count;
} appending;

static void appending_free(appending *w)
{
	sheaf_head_free(w->present);
	sheaf_head_free(w->next);
	pg_head_row_free(&w->row);
	pg_args_free(&w->args);
}

static sheaf_str sync_level(int32_t durability)
{
	if (durability == SHEAF_DURABILITY_REPLICA)
		return SHEAF_STR("on");
	return durability == SHEAF_DURABILITY_DISK ? SHEAF_STR("local") : SHEAF_STR("off");
}

static void arg_lookup(appending *w)
{
	const sheaf_append_request *q = w->request;
	if (q->id_count == 0) {
		pg_array_empty(&w->args, PG_TEXT);
		return;
	}
	pg_array_begin(&w->args, PG_TEXT, q->id_count);
	for (size_t i = 0; i < q->id_count; i++)
		pg_item_text(&w->args, q->ids[i]);
	pg_array_end(&w->args);
}

void pg_arg_rows(pg_args *a, const sheaf_row *rows, size_t count)
{
	if (count == 0) {
		pg_array_empty(a, PG_TEXT);
		pg_array_empty(a, PG_INT8);
		pg_array_empty(a, PG_INT4);
		pg_array_empty(a, PG_BYTEA);
		return;
	}
	pg_array_begin(a, PG_TEXT, count);
	for (size_t i = 0; i < count; i++) {
		bool has_id = rows[i].id.len != 0 && rows[i].kind != SHEAF_KIND_SESSION;
		pg_item_text(a, has_id ? rows[i].id : str_make(NULL, 0));
	}
	pg_array_end(a);
	pg_array_begin(a, PG_INT8, count);
	for (size_t i = 0; i < count; i++)
		pg_item_i64(a, (int64_t)rows[i].parent);
	pg_array_end(a);
	pg_array_begin(a, PG_INT4, count);
	for (size_t i = 0; i < count; i++)
		pg_item_i32(a, rows[i].kind);
	pg_array_end(a);
	pg_array_begin(a, PG_BYTEA, count);
	for (size_t i = 0; i < count; i++)
		pg_item_body(a, rows[i].bytes);
	pg_array_end(a);
}

static void arg_user_state(pg_args *a, const sheaf_state_item *items, size_t count)
{
	if (count == 0) {
		pg_array_empty(a, PG_BYTEA);
		pg_array_empty(a, PG_BYTEA);
		return;
	}
	pg_array_begin(a, PG_BYTEA, count);
	for (size_t i = 0; i < count; i++)
		pg_item_text(a, items[i].key);
	pg_array_end(a);
	pg_array_begin(a, PG_BYTEA, count);
	for (size_t i = 0; i < count; i++)
		pg_item_text(a, items[i].value);
	pg_array_end(a);
}

/* With rows: write them. Without: only look. */
static int make_args(appending *w, sheaf_error *err)
{
	const sheaf_append_request *q = w->request;
	pg_args *a = &w->args;
	pg_head_row *row = &w->row;
	bool write = w->count != 0;
	int rc = write ? pg_head_row_make(row, w->next, w->new_state, err) : 0;
	if (rc != 0)
		return rc;
	pg_args_reset(a);
	pg_arg_key(a, w->at, w->key);
	pg_arg_text(a, sync_level(q->durability));
	pg_arg_bool(a, q->create != 0);
	pg_arg_bool(a, q->revive != 0);
	if (write)
		a->retry = a->count;
	pg_arg_bool(a, false);
	pg_arg_i64(a, write ? w->revision : -1);
	pg_arg_i64(a, q->create != 0 ? row->created : w->created);
	pg_arg_i64(a, w->mark);
	arg_lookup(w);
	pg_arg_i64(a, write ? (int64_t)w->rows[0].seq : 0);
	pg_arg_rows(a, w->rows, w->count);
	pg_arg_i64(a, row->revision);
	pg_arg_i64(a, row->mark);
	pg_arg_text(a, buf_view(&row->bytes));
	pg_arg_i64(a, row->modified);
	pg_arg_i64(a, row->ttl);
	pg_arg_i64(a, row->grace);
	pg_arg_state(a, row);
	pg_arg_text(a, q->source.len != 0 ? q->source : str_make(NULL, 0));
	pg_arg_links(a, write && q->create != 0 ? w->next : NULL);
	arg_user_state(a, q->user_state, q->user_state_count);
	pg_arg_i64(a, (int64_t)SHEAF_STATE_BYTES_MAX);
	return buf_status(&a->bytes, err);
}

/* What the answer means: 0 stored or known, 1 to stamp on `present`, or a refusal. */
static int read_answer(appending *w, const PGresult *r, sheaf_error *err)
{
	const sheaf_append_request *q = w->request;
	w->reply->durability = q->durability;
	switch (pg_get_status(r)) {
	case STORED:
		return 0;
	case KNOWN:
		if (!pg_get_i64s(r, 0, 2, q->seqs, q->id_count))
			return pg_nonsense(err);
		for (size_t i = 0; i < q->id_count; i++)
			w->reply->known += q->seqs[i] != 0;
		return 0;
	case MISSING:
		return pg_no_session(err);
	case HIDDEN:
		return err_set(err, SHEAF_GONE, "the session was deleted");
	case STALE: {
		sheaf_str head = pg_get_text(r, 0, 1);
		int rc = pg_head_read(w->at, w->key, head, pg_get_text(r, 0, 3), false, w->present,
		                      err);
		sheaf_session_info info = {0};
		sheaf_head_info(w->present, &info);
		w->revision = (int64_t)info.revision;
		w->created = info.created_us;
		w->mark = pg_mark(head);
		return rc != 0 ? rc : 1;
	}
	case SOURCE_GONE:
		return err_set(err, SHEAF_GONE, "the session to fork was deleted");
	case EXISTS:
		return err_set(err, SHEAF_EXISTS, "the session exists already");
	case EXPIRED:
		return err_set(err, SHEAF_EXPIRED, "the session has expired");
	case NO_STANDBY:
		return err_set(err, SHEAF_UNSUPPORTED, "the server has no synchronous standby");
	default:
		return pg_nonsense(err);
	}
}

static int send_append(appending *w, sheaf_error *err)
{
	_cleanup_(pg_clearp) PGresult *r = NULL;
	int rc = make_args(w, err);
	if (rc == 0)
		rc = pg_call(w->at.server, PG_APPEND, &w->args, w->request->deadline_us, &w->lost,
		             &r, err);
	if (rc == 0)
		rc = read_answer(w, r, err);
	/* A refusal after a lost answer may be of what came after: stored, and deleted meanwhile. */
	return rc < 0 && w->lost ? err_unknown(err, rc) : rc;
}

/* The head as the server has it, unless ids are known or there is none. */
static int look(appending *w, sheaf_error *err)
{
	w->rows = NULL;
	w->count = 0;
	return send_append(w, err);
}

/* Writers of one session that miss again and again let each other pass. */
static int step_back(const appending *w, unsigned misses, sheaf_error *err)
{
	int64_t now = clock_monotonic_us();
	if (now >= w->request->deadline_us)
		return err_set(err, SHEAF_BUSY, "other writers were faster until the deadline");
	if (misses < PAUSE_AFTER)
		return 0;
	int64_t most = INT64_C(200) << (misses < 8 ? misses - PAUSE_AFTER : 5u);
	clock_sleep_us(now % (most < PAUSE_MOST_US ? most : PAUSE_MOST_US) + 1);
	return 0;
}

/* The mark of a head the caller has: heads have one spelling. */
static int stamp_on_known(appending *w, sheaf_error *err)
{
	int rc = pg_head_row_make(&w->row, w->request->known, false, err);
	w->revision = w->row.revision;
	w->created = w->row.created;
	w->mark = w->row.mark;
	return rc;
}

static int run(appending *w, sheaf_error *err)
{
	const sheaf_append_request *q = w->request;
	const sheaf_head *on = q->create != 0 ? NULL : q->known;
	bool certain = q->create != 0; /* what is stamped on is the present, as far as we know */
	int rc = 0;
	if (on != NULL)
		rc = stamp_on_known(w, err);
	for (unsigned misses = 0; rc == 0; misses++) {
		if (q->create == 0 && on == NULL) {
			rc = look(w, err);
			if (rc != 1)
				return rc;
			on = w->present;
			certain = true;
		}
		rc = q->stamp(q->ctx, on, w->next, &w->rows, &w->count, err);
		if (rc != 0 && !certain) {
			on = NULL; /* a refusal counts only on the present head */
			rc = 0;
			continue;
		}
		if (rc != 0)
			return rc;
		w->new_state = on == NULL || sheaf_head_state_changed(on, w->next);
		rc = send_append(w, err);
		if (rc != 1)
			return rc;
		on = w->present;
		certain = true;
		rc = step_back(w, misses, err);
	}
	return rc;
}

int pg_append(pg_place at, const sheaf_store_key *key, const sheaf_append_request *request,
              sheaf_append_reply *reply, sheaf_error *err)
{
	_cleanup_(appending_free) appending w = {
		.at = at,
		.key = key,
		.request = request,
		.reply = reply,
		.present = sheaf_head_new(),
		.next = sheaf_head_new(),
		.args = PG_ARGS_INIT,
	};
	if (w.present == NULL || w.next == NULL)
		return err_nomem(err);
	return run(&w, err);
}
