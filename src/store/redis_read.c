/* Reading: heads, records in bounded ranges, lists of an owner's sessions. */
#include <stdlib.h>

#include "store/redis.h"

#define SCAN_BYTES ((size_t)4 << 20) /* of records in one answer, one record at least */
#define SCAN_ROWS 2048u
#define LIST_PAGE 100u
#define LIST_BYTES ((size_t)4 << 20)

/* ---- One session --------------------------------------------------------------------- */

void rstate_free(rstate *state)
{
	redis_reply_free(&state->reply);
}

int redis_state(rstore *s, const sheaf_store_key *key, bool header, int64_t deadline_us,
                rstate *out, sheaf_error *err)
{
	_cleanup_(rcmd_free) rcmd cmd;
	rcmd_session(&cmd, s, "sheaf_1_head", key, NULL);
	rcmd_text(&cmd, header ? "1" : "0");
	rcall how = {.deadline_us = deadline_us};
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	*out = (rstate){0};
	int rc = redis_call(s, &cmd, &how, &reply, err);
	if (rc != 0)
		return rc;
	if (reply_code(reply) == ANSWER_NOT_FOUND)
		return redis_not_found(err);
	*out = (rstate){
		.reply = reply,
		.head = reply_str(reply, 1),
		.digest = reply_str(reply, 2),
		.stored_us = reply_i64(reply, 3),
		.now_us = reply_i64(reply, 4),
		.hidden = reply_i64(reply, 5) != 0,
		.base = reply_u64(reply, 6),
		.created = reply_str(reply, 7),
		.revision = reply_u64(reply, 8),
		.state = reply_str(reply, 9),
		.header = reply_str(reply, 10),
	};
	reply = NULL;
	return 0;
}

int redis_head(void *backend, const sheaf_store_key *key, UNUSED int write, sheaf_head *out,
               sheaf_head_state *state, sheaf_error *err)
{
	rstore *s = backend;
	_cleanup_(rstate_free) rstate at = {0};
	int rc = redis_state(s, key, false, 0, &at, err);
	if (rc != 0)
		return rc;
	state->stored_us = at.stored_us;
	state->now_us = at.now_us;
	rc = redis_head_decode(out, at.head, at.state, err);
	if (rc != SHEAF_DAMAGED)
		return rc;
	/* Written by another version: the records say the same. */
	_cleanup_(redis_head_freep) sheaf_head *made = sheaf_head_new();
	if (made == NULL)
		return err_nomem(err);
	rc = redis_fold(s, key, UINT64_MAX, made, err);
	if (rc == 0 && at.hidden)
		sheaf_head_hide(made);
	return rc == 0 ? sheaf_head_copy(out, made, err) : rc;
}

int redis_find(void *backend, const sheaf_store_key *key, sheaf_str id, uint64_t *seq,
               sheaf_error *err)
{
	rstore *s = backend;
	_cleanup_(rcmd_free) rcmd cmd;
	rcmd_session(&cmd, s, "sheaf_1_find", key, NULL);
	rcmd_arg(&cmd, id);
	rcall how = {0};
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	int rc = redis_call(s, &cmd, &how, &reply, err);
	if (rc != 0)
		return rc;
	if (reply_code(reply) == ANSWER_NOT_FOUND)
		return redis_not_found(err);
	if (reply_code(reply) == ANSWER_MISS)
		return err_set(err, SHEAF_NOT_FOUND, "there is no such record");
	*seq = reply_u64(reply, 1);
	return 0;
}

int redis_header(void *backend, const sheaf_store_key *key, sheaf_row_fn fn, void *ctx,
                 sheaf_error *err)
{
	_cleanup_(rstate_free) rstate at = {0};
	int rc = redis_state(backend, key, true, 0, &at, err);
	if (rc != 0)
		return rc;
	sheaf_row row;
	if (!redis_row(&row, at.base, at.header))
		return err_set(err, SHEAF_DAMAGED, "the header of the session cannot be read");
	rc = fn(ctx, &row);
	return rc < 0 ? rc : 0;
}

/* ---- Records --------------------------------------------------------------------------- */

/* What is left of a scan. */
typedef struct scanning {
	const sheaf_scan *scan;
	uint64_t from;
	size_t left;
	char kinds[65]; /* a digit for each kind; "" for all */
	char created[24];
	char last[24];
	bool more;
} scanning;

static void want_kinds(scanning *w)
{
	w->kinds[0] = '\0';
	if ((w->scan->kinds & SHEAF_KINDS_ALL) == SHEAF_KINDS_ALL)
		return;
	for (unsigned i = 0; i < 64; i++)
		w->kinds[i] = w->scan->kinds >> i & 1 ? '1' : '0';
	w->kinds[64] = '\0';
}

/* What cannot be taken apart is damaged. */
static sheaf_row row_of(uint64_t seq, sheaf_str element)
{
	sheaf_row row;
	if (!redis_row(&row, seq, element))
		row = (sheaf_row){.seq = seq, .damaged = 1, .id = {"", 0}, .bytes = element};
	return row;
}

static int scan_page(rstore *s, const sheaf_store_key *key, scanning *w, redisReply **reply,
                     sheaf_error *err)
{
	_cleanup_(rcmd_free) rcmd cmd;
	rcmd_session(&cmd, s, "sheaf_1_scan", key, NULL);
	rcmd_u64(&cmd, w->from < INT64_MAX ? w->from : INT64_MAX);
	rcmd_text(&cmd, w->scan->backward ? "1" : "0");
	rcmd_u64(&cmd, w->left < SCAN_ROWS ? w->left : SCAN_ROWS);
	rcmd_text(&cmd, w->kinds);
	rcmd_u64(&cmd, SCAN_BYTES);
	rcmd_text(&cmd, w->created);
	rcmd_text(&cmd, w->last);
	rcall how = {0};
	int rc = redis_call(s, &cmd, &how, reply, err);
	if (rc != 0)
		return rc;
	if (reply_code(*reply) == ANSWER_NOT_FOUND)
		return redis_not_found(err);
	str_copy_cut(w->created, sizeof(w->created), reply_str(*reply, 1));
	str_copy_cut(w->last, sizeof(w->last), reply_str(*reply, 2));
	w->more = reply_str(*reply, 3).len != 0;
	w->from = reply_u64(*reply, 3);
	return 0;
}

int redis_scan(void *backend, const sheaf_store_key *key, const sheaf_scan *scan, sheaf_row_fn fn,
               void *ctx, sheaf_error *err)
{
	scanning w = {.scan = scan, .from = scan->from, .left = scan->limit};
	want_kinds(&w);
	do {
		_cleanup_(redis_reply_free) redisReply *reply = NULL;
		int rc = scan_page(backend, key, &w, &reply, err);
		for (size_t i = 4; rc == 0 && i + 1 < reply->elements; i += 2) {
			sheaf_row row = row_of(reply_u64(reply, i), reply_str(reply, i + 1));
			rc = fn(ctx, &row);
			w.left--;
		}
		if (rc != 0)
			return rc < 0 ? rc : 0;
	} while (w.more && w.left != 0);
	return 0;
}

/* ---- Lists -------------------------------------------------------------------------------- */

typedef struct listed {
	sheaf_head *head;
	sheaf_session_info info;
	bool wanted;
} listed;

/* "app/user", with a NUL. */
static void put_owner(buf *out, sheaf_str app, sheaf_str user)
{
	buf_str(out, app);
	buf_char(out, '/');
	buf_str(out, user);
	buf_nul(out);
}

static int compare(const void *a, const void *b)
{
	const listed *x = a, *y = b;
	if (x->info.modified_us != y->info.modified_us)
		return x->info.modified_us > y->info.modified_us ? -1 : 1;
	return str_cmp(x->info.session, y->info.session);
}

/* A head that this version cannot read is listed by its name alone. */
static int take_listed(listed *to, const redisReply *reply, size_t at, const rgive *how,
                       sheaf_error *err)
{
	sheaf_str bytes = reply_str(reply, at + 1);
	to->head = sheaf_head_new();
	if (to->head == NULL)
		return err_nomem(err);
	int rc = sheaf_head_decode(to->head, bytes.ptr, bytes.len, err);
	if (rc != 0 && rc != SHEAF_DAMAGED)
		return rc;
	int64_t stored_us = reply_i64(reply, at + 2);
	sheaf_head_info(to->head, &to->info);
	sheaf_info_clock(&to->info, stored_us, reply_i64(reply, how->at));
	to->info.app = how->app;
	to->info.user = how->user;
	to->info.session = reply_str(reply, at);
	to->info.hidden = (int32_t)reply_i64(reply, at + 3);
	to->info.damaged = rc != 0;
	to->wanted = how->expired_by_us == 0 ||
	             sheaf_head_expired(to->head, stored_us, how->expired_by_us) !=
	                     SHEAF_EXPIRY_NONE;
	return 0;
}

int redis_give(const redisReply *reply, const rgive *how, sheaf_error *err)
{
	size_t first = how->at + 1, made = 0;
	size_t count = reply->elements > first ? (reply->elements - first) / 4 : 0;
	listed *items = mem_zalloc((count + 1) * sizeof(*items));
	char owner[2 * SHEAF_KEY_PART_ROOM];
	buf name = {owner, 0, sizeof(owner), sizeof(owner), 0};
	int rc = items != NULL ? 0 : err_nomem(err);
	put_owner(&name, how->app, how->user);
	for (; rc == 0 && made < count; made++)
		rc = take_listed(&items[made], reply, first + 4 * made, how, err);
	if (rc == 0 && how->sort)
		qsort(items, count, sizeof(*items), compare);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		sheaf_store_key key = {buf_view(&name), how->app, how->user, items[i].info.session};
		if (items[i].wanted)
			rc = how->fn(how->ctx, &key, &items[i].info);
	}
	for (size_t i = 0; i < made; i++)
		sheaf_head_free(items[i].head);
	mem_free(items);
	return rc;
}

/* A page of the function that gives one; the answer's second element says where to go on. */
static int list_page(rstore *s, const sheaf_list_query *q, sheaf_str after, redisReply **reply,
                     sheaf_error *err)
{
	char owner[2 * SHEAF_KEY_PART_ROOM];
	buf name = {owner, 0, sizeof(owner), sizeof(owner), 0};
	put_owner(&name, q->app, q->user);
	sheaf_store_key key = {buf_view(&name), q->app, q->user, {"", 0}};
	bool expiring = q->expired_by_us != 0;
	_cleanup_(rcmd_free) rcmd cmd;
	rcmd_session(&cmd, s, expiring ? "sheaf_1_expiring" : "sheaf_1_list", &key, NULL);
	if (expiring) {
		rcmd_i64(&cmd, q->expired_by_us);
		rcmd_u64(&cmd, LIST_PAGE);
		rcmd_arg(&cmd, after.len != 0 ? after : SHEAF_STR("0"));
	} else {
		rcmd_arg(&cmd, after);
		rcmd_u64(&cmd, LIST_PAGE);
		rcmd_text(&cmd, q->hidden ? "1" : "0");
		rcmd_u64(&cmd, LIST_BYTES);
	}
	rcall how = {0};
	return redis_call(s, &cmd, &how, reply, err);
}

/* Where a page after another begins, from a query: order and session. */
static void place_after(buf *out, const sheaf_list_query *q)
{
	char order[REDIS_ORDER + 1];
	if (q->has_after == 0)
		return;
	char owner[2 * SHEAF_KEY_PART_ROOM];
	buf name = {owner, 0, sizeof(owner), sizeof(owner), 0};
	put_owner(&name, q->app, q->user);
	int side = str_cmp(buf_view(&name), q->after_owner);
	redis_order(order, q->after_modified_us);
	buf_add(out, order, REDIS_ORDER);
	/* The place may be one of another owner: before or behind all of ours of that time. */
	if (side == 0)
		buf_str(out, q->after_session);
	else if (side < 0)
		buf_char(out, '\x7f');
}

int redis_list(void *backend, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
               sheaf_error *err)
{
	_cleanup_(buf_free) buf after = BUF_INIT(4096);
	rgive how = {query->app, query->user, 2, false, query->expired_by_us, fn, ctx};
	place_after(&after, query);
	for (;;) {
		_cleanup_(redis_reply_free) redisReply *reply = NULL;
		int rc = buf_status(&after, err);
		if (rc == 0)
			rc = list_page(backend, query, buf_view(&after), &reply, err);
		if (rc == 0)
			rc = redis_give(reply, &how, err);
		if (rc != 0)
			return rc < 0 ? rc : 0;
		buf_reset(&after);
		buf_str(&after, reply_str(reply, 1));
		if (after.len == 0)
			return 0;
	}
}
