/* Removing, hiding, reaping, and putting other records in the place of all of them. */
#include "base/clock.h"
#include "store/redis.h"

/* ---- Removing ------------------------------------------------------------------------ */

typedef struct removing {
	rstore *s;
	const sheaf_store_key *key;
	int64_t deadline_us;
	redisReply *reply; /* of the last `remove`, with the readers */
} removing;

static int ask_remove(removing *r, const sheaf_remove_request *request, bool *repeated,
                      sheaf_error *err)
{
	_cleanup_(rcmd_free) rcmd cmd;
	rcmd_session(&cmd, r->s, "sheaf_1_remove", r->key, NULL);
	rcmd_arg(&cmd, r->key->session);
	rcmd_text(&cmd, request->reap ? "1" : "0");
	rcmd_text(&cmd, request->expired ? "1" : "0");
	rcall how = {.deadline_us = r->deadline_us, .write = true};
	redis_reply_free(&r->reply);
	int rc = redis_call(r->s, &cmd, &how, &r->reply, err);
	*repeated = how.repeated;
	return rc;
}

/* Hides what forks read, cut to what they read; `*again` if something changed meanwhile. */
static int hide(removing *r, bool *again, sheaf_error *err)
{
	uint64_t highest = reply_u64(r->reply, 2);
	_cleanup_(redis_head_freep) sheaf_head *kept = sheaf_head_new();
	_cleanup_(rhead_free) rhead sent = {.bytes = BUF_INIT(0)};
	if (kept == NULL)
		return err_nomem(err);
	int rc = redis_fold(r->s, r->key, highest, kept, err);
	if (rc == 0) {
		sheaf_head_hide(kept);
		rc = rhead_make(&sent, kept, true, err);
	}
	if (rc == SHEAF_NOT_FOUND) {
		*again = true;
		return 0;
	}
	if (rc != 0)
		return rc;
	_cleanup_(rcmd_free) rcmd cmd;
	rcmd_session(&cmd, r->s, "sheaf_1_hide", r->key, NULL);
	rcmd_arg(&cmd, r->key->session);
	rcmd_arg(&cmd, reply_str(r->reply, 3));
	rcmd_u64(&cmd, highest);
	rcmd_arg(&cmd, buf_view(&sent.bytes));
	rcmd_text(&cmd, sent.digest);
	rcmd_text(&cmd, sent.order);
	rcmd_u64(&cmd, sent.info.revision);
	rcmd_arg(&cmd, buf_view(&sent.state));
	rcall how = {.deadline_us = r->deadline_us, .write = true};
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	rc = redis_call(r->s, &cmd, &how, &reply, err);
	*again = rc == 0 && reply_code(reply) != ANSWER_OK;
	return rc;
}

static int remove_once(removing *r, const sheaf_remove_request *request, sheaf_remove_reply *reply,
                       bool *again, sheaf_error *err)
{
	bool repeated = false;
	*again = false;
	int rc = ask_remove(r, request, &repeated, err);
	if (rc != 0)
		return rc;
	/* Of a repeat the first answer counts: this one found what the one before left. An answer
	 * that was lost said most likely that it was there. */
	if (reply_i64(r->reply, 1) != 0 || (repeated && reply_code(r->reply) == ANSWER_NOT_FOUND))
		reply->existed = 1;
	reply->hidden = reply_code(r->reply) == ANSWER_MISS;
	if (!reply->hidden)
		return 0;
	bool was_hidden = reply_i64(r->reply, 4) != 0;
	if (was_hidden && reply_u64(r->reply, 5) <= reply_u64(r->reply, 2))
		return 0;
	rc = hide(r, again, err);
	if (rc == 0 && *again && clock_monotonic_us() >= r->deadline_us)
		rc = err_set(err, SHEAF_BUSY, "others kept writing until the deadline");
	return rc;
}

int redis_remove(void *backend, const sheaf_store_key *key, const sheaf_remove_request *request,
                 sheaf_remove_reply *reply, sheaf_error *err)
{
	rstore *s = backend;
	removing r = {.s = s, .key = key, .deadline_us = redis_deadline(s, request->deadline_us)};
	bool again = true;
	int rc = 0;
	while (rc == 0 && again)
		rc = remove_once(&r, request, reply, &again, err);
	if (rc == 0 && reply->hidden && request->reader != NULL) {
		rgive how = {key->app, key->user, 6, true, 0, request->reader, request->ctx};
		rc = redis_give(r.reply, &how, err);
		rc = rc > 0 ? 0 : rc;
		if (rc != 0)
			(void)err_unknown(err, rc); /* it was deleted; the callback failed */
	}
	redis_reply_free(&r.reply);
	return rc;
}

/* ---- Replacing --------------------------------------------------------------------------- */

typedef struct replacing {
	rstore *s;
	const sheaf_store_key *key;
	int64_t deadline_us;
	rstage stage;
	sheaf_head *head;
	buf header; /* an element */
	map ids;
	char **kept;
	size_t count;
	size_t room;
} replacing;

static void replacing_end(replacing *p)
{
	rstage_end(&p->stage);
	sheaf_head_free(p->head);
	buf_free(&p->header);
	for (size_t i = 0; i < p->count; i++)
		mem_free(p->kept[i]);
	mem_free(p->kept);
	map_free(&p->ids);
}

static int seq_of(void *ctx, sheaf_str id, uint64_t *seq)
{
	const replacing *p = ctx;
	return map_get(&p->ids, id, seq);
}

static int remember(replacing *p, const sheaf_row *row, sheaf_error *err)
{
	uint64_t known;
	if (row->id.len == 0)
		return 0;
	if (map_get(&p->ids, row->id, &known))
		return err_set(err, SHEAF_CONFLICT, "an id is in the session already");
	if (mem_grow((void **)&p->kept, &p->room, p->count + 1, sizeof(*p->kept)) != 0)
		return err_nomem(err);
	char *copy = mem_dup(row->id.ptr, row->id.len);
	if (copy == NULL)
		return err_nomem(err);
	p->kept[p->count++] = copy;
	return map_set(&p->ids, str_make(copy, row->id.len), row->seq) == 0 ? 0 : err_nomem(err);
}

static int take_row(replacing *p, sheaf_row *row, sheaf_error *err)
{
	int rc = sheaf_head_fold(p->head, row, seq_of, p, err);
	if (rc != 0)
		return rc;
	if (p->header.len == 0) {
		if (row->kind != SHEAF_KIND_SESSION)
			return err_set(err, SHEAF_INVALID, "a log begins with its header");
		redis_element(&p->header, row);
		return buf_status(&p->header, err);
	}
	rc = remember(p, row, err);
	return rc == 0 ? rstage_add(&p->stage, row, err) : rc;
}

static int take_rows(replacing *p, sheaf_rows_fn next, void *ctx, sheaf_error *err)
{
	for (;;) {
		sheaf_row row = {0};
		int rc = next(ctx, &row, err);
		if (rc == 0)
			break;
		if (rc > 0)
			rc = take_row(p, &row, err);
		if (rc != 0)
			return rc;
	}
	if (p->header.len == 0)
		return err_set(err, SHEAF_INVALID, "a log begins with its header");
	return rstage_flush(&p->stage, err);
}

static int stale(uint64_t revision, sheaf_error *err)
{
	int rc = err_set(err, SHEAF_STALE, "the session was changed meanwhile");
	err->revision = revision;
	return rc;
}

/* The state of the log if it is at the revision that is to be replaced. */
static int present(const replacing *p, uint64_t revision, rstate *at, sheaf_error *err)
{
	int rc = redis_state(p->s, p->key, false, p->deadline_us, at, err);
	if (rc != 0)
		return rc;
	if (at->revision != revision)
		return stale(at->revision, err);
	return 0;
}

static int commit(const replacing *p, const rstate *at, bool *again, sheaf_error *err)
{
	_cleanup_(rhead_free) rhead sent = {.bytes = BUF_INIT(0)};
	if (at->hidden)
		sheaf_head_hide(p->head);
	int rc = rhead_make(&sent, p->head, true, err);
	if (rc != 0)
		return rc;
	_cleanup_(rcmd_free) rcmd cmd;
	rcmd_session(&cmd, p->s, "sheaf_1_replace", p->key, p->stage.name);
	rcmd_arg(&cmd, p->key->session);
	rcmd_arg(&cmd, at->digest);
	rcmd_u64(&cmd, p->stage.count);
	rcmd_arg(&cmd, buf_view(&sent.bytes));
	rcmd_text(&cmd, sent.digest);
	rcmd_text(&cmd, sent.order);
	rcmd_u64(&cmd, sent.info.revision);
	rcmd_u64(&cmd, sent.info.base);
	rcmd_i64(&cmd, sent.info.created_us);
	rcmd_arg(&cmd, buf_view(&sent.links));
	rcmd_arg(&cmd, buf_view(&p->header));
	rcmd_i64(&cmd, at->hidden ? 0 : redis_expiry_us(&sent.info));
	rcmd_i64(&cmd, redis_life_us(p->s, &sent.info));
	rcmd_i64(&cmd, sent.info.grace_us);
	rcmd_arg(&cmd, buf_view(&sent.state));
	rcall how = {.deadline_us = p->deadline_us, .write = true};
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	rc = redis_call(p->s, &cmd, &how, &reply, err);
	if (rc != 0)
		return rc;
	*again = reply_code(reply) == ANSWER_MISS;
	return reply_code(reply) == ANSWER_NOT_FOUND ? redis_not_found(err) : 0;
}

int redis_replace(void *backend, const sheaf_store_key *key, uint64_t revision, sheaf_rows_fn next,
                  void *ctx, int64_t deadline_us, sheaf_error *err)
{
	rstore *s = backend;
	replacing p = {.s = s,
	               .key = key,
	               .deadline_us = redis_deadline(s, deadline_us),
	               .header = BUF_INIT(REDIS_COMMAND_MAX)};
	_cleanup_(rstate_free) rstate at = {0};
	bool again = true;
	int rc = present(&p, revision, &at, err);
	char created[24];
	str_copy_cut(created, sizeof(created), rc == 0 ? at.created : str_make("", 0));
	if (rc == 0 && (p.head = sheaf_head_new()) == NULL)
		rc = err_nomem(err);
	if (rc == 0)
		rc = rstage_begin(&p.stage, s, key, p.deadline_us, err);
	if (rc == 0)
		rc = take_rows(&p, next, ctx, err);
	while (rc == 0 && again) {
		rstate_free(&at);
		rc = present(&p, revision, &at, err);
		if (rc == 0 && !str_is(at.created, created))
			rc = stale(at.revision, err);
		if (rc == 0)
			rc = commit(&p, &at, &again, err);
	}
	replacing_end(&p);
	return rc;
}
