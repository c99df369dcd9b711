/*
 * Appending: stamp on the head that is known, send it all, and stamp again on
 * the head the server answers with, until the deadline. A log too long for one
 * command is staged first.
 */
#include "base/clock.h"
#include "base/uuid.h"
#include "store/redis.h"

#define STAGE_BYTES ((size_t)8 << 20) /* of one call */
#define STAGE_ROWS 4096u
#define DIRECT_BYTES ((size_t)96 << 20) /* more goes in pieces */

/* ---- Staged rows ------------------------------------------------------------------- */

static void stage_reset(rstage *st)
{
	rcmd_free(&st->rows);
	rcmd_begin(&st->rows);
	buf_reset(&st->index);
	st->pending = 0;
}

int rstage_begin(rstage *st, rstore *s, const sheaf_store_key *key, int64_t deadline_us,
                 sheaf_error *err)
{
	*st = (rstage){.s = s,
	               .key = key,
	               .deadline_us = deadline_us,
	               .index = BUF_INIT(REDIS_COMMAND_MAX)};
	rcmd_begin(&st->rows);
	return uuid7_new(st->name, err);
}

void rstage_end(rstage *st)
{
	rcmd_free(&st->rows);
	buf_free(&st->index);
}

int rstage_flush(rstage *st, sheaf_error *err)
{
	if (st->pending == 0)
		return 0;
	_cleanup_(rcmd_free) rcmd cmd;
	rcmd_session(&cmd, st->s, "sheaf_1_stage", st->key, st->name);
	rcmd_u64(&cmd, st->count);
	rcmd_u64(&cmd, st->first);
	rcmd_arg(&cmd, buf_view(&st->index));
	rcmd_u64(&cmd, st->pending);
	rcmd_rest(&cmd, &st->rows);
	rcall how = {.deadline_us = st->deadline_us};
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	int rc = redis_call(st->s, &cmd, &how, &reply, err);
	if (rc == 0 && reply_code(reply) != ANSWER_OK)
		rc = err_set(err, SHEAF_STORAGE, "the staged records have vanished");
	st->count += st->pending;
	stage_reset(st);
	return rc;
}

int rstage_add(rstage *st, const sheaf_row *row, sheaf_error *err)
{
	if (st->pending == 0)
		st->first = row->seq;
	rcmd_row(&st->rows, row);
	redis_index(&st->index, row);
	st->pending++;
	if (st->rows.bytes.len < STAGE_BYTES && st->pending < STAGE_ROWS)
		return 0;
	return rstage_flush(st, err);
}

/* ---- One try ------------------------------------------------------------------------- */

typedef struct appending {
	rstore *s;
	const sheaf_store_key *key;
	const sheaf_append_request *request;
	int64_t deadline_us;
	sheaf_head *head; /* what `stamp` gets; NULL: there is no session */
	bool present;     /* `head` came from the server just now */
	char digest[REDIS_DIGEST + 1];
	sheaf_head *next;
	rhead sent;
	const sheaf_row *rows;
	size_t count;
	bool probing; /* nothing to write: what does the server have? */
	rstage stage;
	bool staged;
} appending;

static void appending_end(appending *a)
{
	sheaf_head_free(a->head);
	sheaf_head_free(a->next);
	rhead_free(&a->sent);
	rstage_end(&a->stage);
}

/* A header is no record of the list; what follows it is. */
static size_t skip_header(const appending *a)
{
	return a->request->create && !a->probing ? 1 : 0;
}

static int stage_rows(appending *a, sheaf_error *err)
{
	size_t bytes = 0;
	for (size_t i = 0; i < a->count; i++)
		bytes += a->rows[i].bytes.len;
	if (bytes <= DIRECT_BYTES)
		return 0;
	if (!a->request->create)
		return err_set(err, SHEAF_TOO_LARGE, "a batch takes at most %zu bytes here",
		               DIRECT_BYTES);
	rstage_end(&a->stage);
	a->staged = true;
	int rc = rstage_begin(&a->stage, a->s, a->key, a->deadline_us, err);
	for (size_t i = 1; rc == 0 && i < a->count; i++)
		rc = rstage_add(&a->stage, &a->rows[i], err);
	return rc == 0 ? rstage_flush(&a->stage, err) : rc;
}

static void build(appending *a, rcmd *c)
{
	const sheaf_append_request *q = a->request;
	const sheaf_session_info *info = &a->sent.info;
	size_t skip = skip_header(a), count = a->probing ? 0 : a->count - skip;
	if (a->staged)
		count = 0;
	rcmd_session(c, a->s, "sheaf_1_append", a->key, a->staged ? a->stage.name : NULL);
	rcmd_text(c, q->create ? "1" : "0");
	rcmd_text(c, "0");
	c->repeat_at = a->probing ? 0 : c->bytes.len - 3;
	rcmd_text(c, a->probing ? "?" : a->digest);
	rcmd_arg(c, q->source.len != 0 ? q->source : str_make("", 0));
	rcmd_arg(c, buf_view(&a->sent.bytes));
	rcmd_text(c, a->sent.digest);
	rcmd_text(c, a->sent.order);
	rcmd_u64(c, info->revision);
	rcmd_u64(c, a->probing || a->count == skip ? 0 : a->rows[skip].seq);
	rcmd_u64(c, info->base);
	rcmd_i64(c, info->created_us);
	rcmd_i64(c, redis_expiry_us(info));
	rcmd_i64(c, redis_life_us(a->s, info));
	rcmd_arg(c, buf_view(&a->sent.links));
	_cleanup_(buf_free) buf piece = BUF_INIT(REDIS_COMMAND_MAX);
	if (skip != 0)
		redis_element(&piece, &a->rows[0]);
	rcmd_arg(c, buf_view(&piece));
	buf_reset(&piece);
	for (size_t i = 0; i < count; i++)
		redis_index(&piece, &a->rows[skip + i]);
	rcmd_arg(c, buf_view(&piece));
	rcmd_arg(c, a->key->session);
	rcmd_u64(c, q->id_count);
	rcmd_u64(c, count);
	rcmd_u64(c, a->probing ? 0 : q->user_state_count);
	if (a->staged)
		rcmd_u64(c, a->stage.count);
	else
		rcmd_text(c, "");
	rcmd_i64(c, info->grace_us);
	rcmd_text(c, q->revive ? "1" : "0");
	rcmd_arg(c, buf_view(&a->sent.state));
	rcmd_text(c, q->durability == SHEAF_DURABILITY_REPLICA ? "1" : "0");
	for (size_t i = 0; i < q->id_count; i++)
		rcmd_arg(c, q->ids[i]);
	for (size_t i = 0; i < count; i++)
		rcmd_row(c, &a->rows[skip + i]);
	for (size_t i = 0; !a->probing && i < q->user_state_count; i++) {
		const sheaf_state_item *item = &q->user_state[i];
		rcmd_arg(c, item->key);
		rcmd_arg(c, item->value.ptr != NULL ? item->value : str_make("", 0));
		rcmd_text(c, item->value.ptr != NULL ? "1" : "0");
	}
	if (piece.status != 0)
		c->bytes.status = piece.status;
}

/* Takes the head of an answer as the one to stamp on. */
static int take_head(appending *a, const redisReply *reply, sheaf_error *err)
{
	sheaf_str bytes = reply_str(reply, 1);
	a->present = true;
	if (a->request->create)
		return 0; /* nothing is there */
	if (a->head == NULL && (a->head = sheaf_head_new()) == NULL)
		return err_nomem(err);
	str_copy_cut(a->digest, sizeof(a->digest), reply_str(reply, 2));
	int rc = redis_head_decode(a->head, bytes, reply_str(reply, 3), err);
	if (rc == SHEAF_DAMAGED) /* of another version: the records say it too */
		rc = redis_fold(a->s, a->key, UINT64_MAX, a->head, err);
	return rc;
}

static int known(const appending *a, const redisReply *reply, sheaf_append_reply *out)
{
	for (size_t i = 0; i < a->request->id_count; i++) {
		a->request->seqs[i] = reply_u64(reply, i + 1);
		out->known += a->request->seqs[i] != 0;
	}
	return 0;
}

/* What the answer means: 0 or a failure; `*again` if it is to be stamped once more. */
static int answer(appending *a, const redisReply *reply, sheaf_append_reply *out, bool *again,
                  sheaf_error *err)
{
	switch (reply_code(reply)) {
	case ANSWER_OK:
		return 0;
	case ANSWER_KNOWN:
		return known(a, reply, out);
	case ANSWER_MISS:
		*again = true;
		return take_head(a, reply, err);
	case ANSWER_NOT_FOUND:
		return redis_not_found(err);
	case ANSWER_GONE:
		return err_set(err, SHEAF_GONE, "the session was deleted");
	case ANSWER_EXPIRED:
		return err_set(err, SHEAF_EXPIRED, "the session has expired");
	case ANSWER_EXISTS:
		return err_set(err, SHEAF_EXISTS, "the session exists already");
	case ANSWER_SOURCE_GONE:
		return err_set(err, SHEAF_GONE, "the session to fork was deleted");
	case ANSWER_LIMIT:
		return err_set(err, SHEAF_LIMIT, "the user's state holds at most %zu bytes",
		               SHEAF_STATE_BYTES_MAX);
	case ANSWER_CONFLICT:
		return err_set(err, SHEAF_CONFLICT, "an id is in the session already");
	default:
		return err_unknown(err, redis_strange(err));
	}
}

/* Stamps, or decides that the server must be asked first. */
static int stamp(appending *a, sheaf_error *err)
{
	a->staged = false;
	a->probing = !a->present && a->head == NULL && !a->request->create;
	if (a->probing)
		return 0;
	int rc = a->request->stamp(a->request->ctx, a->head, a->next, &a->rows, &a->count, err);
	if (rc != 0) {
		/* A repeat is answered before anything is refused, and an old head refuses
		 * nothing: ask what is there. */
		a->probing = !a->present;
		return a->probing ? 0 : rc;
	}
	if (a->request->create && (a->count == 0 || a->rows[0].kind != SHEAF_KIND_SESSION))
		return err_set(err, SHEAF_INVALID, "a log begins with its header");
	bool state = a->head == NULL || sheaf_head_state_changed(a->head, a->next);
	rc = rhead_make(&a->sent, a->next, state, err);
	return rc == 0 ? stage_rows(a, err) : rc;
}

static int try_append(appending *a, sheaf_append_reply *out, bool *again, sheaf_error *err)
{
	*again = false;
	int rc = stamp(a, err);
	if (rc != 0)
		return rc;
	_cleanup_(rcmd_free) rcmd cmd;
	build(a, &cmd);
	rcall how = {.deadline_us = a->deadline_us,
	             .write = !a->probing,
	             .durability = a->request->durability};
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	rc = redis_call(a->s, &cmd, &how, &reply, err);
	if (rc != 0)
		return rc;
	out->durability = how.reached;
	rc = answer(a, reply, out, again, err);
	/* A refusal after a lost answer may be of what came after: stored, and deleted meanwhile. */
	return rc < 0 && how.repeated ? err_unknown(err, rc) : rc;
}

static int begin(appending *a, sheaf_error *err)
{
	a->next = sheaf_head_new();
	if (a->next == NULL)
		return err_nomem(err);
	if (a->request->create || a->request->known == NULL)
		return 0;
	a->head = sheaf_head_new();
	if (a->head == NULL)
		return err_nomem(err);
	_cleanup_(rhead_free) rhead seen = {.bytes = BUF_INIT(0)};
	int rc = sheaf_head_copy(a->head, a->request->known, err);
	if (rc == 0)
		rc = rhead_make(&seen, a->head, false, err);
	memcpy(a->digest, seen.digest, sizeof(a->digest));
	return rc;
}

int redis_append(void *backend, const sheaf_store_key *key, const sheaf_append_request *request,
                 sheaf_append_reply *reply, sheaf_error *err)
{
	appending a = {
		.s = backend, .key = key, .request = request, .deadline_us = request->deadline_us};
	bool again = true;
	int rc = begin(&a, err);
	while (rc == 0 && again) {
		rc = try_append(&a, reply, &again, err);
		if (rc == 0 && again && clock_monotonic_us() >= a.deadline_us)
			rc = err_set(err, SHEAF_BUSY, "others kept writing until the deadline");
	}
	appending_end(&a);
	return rc;
}
