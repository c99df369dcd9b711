/* Queues: input that waits for a session, kept beside it. */
#include <stdio.h>

#include "store/redis.h"

#define LIST_BYTES ((size_t)4 << 20)
#define ITEM_ELEMENTS 8u

/* The failure that an answer of every queue function may be, or 0. */
static int refused(const redisReply *reply, sheaf_error *err)
{
	switch (reply_code(reply)) {
	case ANSWER_NOT_FOUND:
		return redis_not_found(err);
	case ANSWER_GONE:
		return err_set(err, SHEAF_GONE, "the session was deleted");
	case ANSWER_CONFLICT:
		return err_set(err, SHEAF_CONFLICT,
		               "the queue has an item with this id and other content");
	case ANSWER_LIMIT:
		return err_set(err, SHEAF_LIMIT, "the queue is full: %u items wait",
		               SHEAF_QUEUE_ITEMS_MAX);
	case ANSWER_BUSY:
		return err_set(err, SHEAF_BUSY, "somebody is working on the item");
	default:
		return 0;
	}
}

/* A '0' that becomes '1' when the command is sent again. */
static void add_repeat(rcmd *c)
{
	rcmd_text(c, "0");
	c->repeat_at = c->bytes.len - 3;
}

/* `*repeated` (may be NULL) says whether an answer was lost. A refusal after that is of what came
 * after: it may have been done before. */
static int call(rstore *s, rcmd *cmd, int64_t deadline_us, bool write, bool *repeated,
                redisReply **reply, sheaf_error *err)
{
	rcall how = {.deadline_us = deadline_us, .write = write};
	int rc = redis_call(s, cmd, &how, reply, err);
	if (repeated != NULL)
		*repeated = how.repeated;
	if (rc != 0)
		return rc;
	rc = refused(*reply, err);
	return rc != 0 && how.repeated ? err_unknown(err, rc) : rc;
}

int redis_queue_put(void *backend, const sheaf_store_key *key, const sheaf_queue_row *row,
                    int64_t deadline_us, int32_t *existed, sheaf_error *err)
{
	_cleanup_(rcmd_free) rcmd cmd;
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	char order[9]; /* the greater priority sorts first */
	(void)snprintf(order, sizeof(order), "%08x",
	               (unsigned)~((uint32_t)row->priority ^ UINT32_C(1) << 31));
	rcmd_session(&cmd, backend, "sheaf_1_queue_put", key, NULL);
	rcmd_arg(&cmd, row->id);
	rcmd_arg(&cmd, row->content);
	rcmd_text(&cmd, row->environment.ptr != NULL ? "1" : "0");
	rcmd_arg(&cmd, row->environment.ptr != NULL ? row->environment : str_make("", 0));
	rcmd_i64(&cmd, row->priority);
	rcmd_text(&cmd, order);
	bool repeated;
	int rc = call(backend, &cmd, deadline_us, true, &repeated, &reply, err);
	/* After a lost answer it is most likely this very call's. */
	*existed = rc == 0 && reply_code(reply) == ANSWER_KNOWN && !repeated;
	return rc;
}

/* Gives the items of an answer from element `at` on. */
static int give_items(const redisReply *reply, size_t at, sheaf_queue_fn fn, void *ctx)
{
	int rc = 0;
	for (; rc == 0 && at + ITEM_ELEMENTS <= reply->elements; at += ITEM_ELEMENTS) {
		sheaf_queue_row row = {
			.id = reply_str(reply, at),
			.content = reply_str(reply, at + 1),
			.environment = reply_i64(reply, at + 2) != 0 ? reply_str(reply, at + 3)
		                                                     : str_make(NULL, 0),
			.priority = (int32_t)reply_i64(reply, at + 4),
			.claims = (int32_t)reply_i64(reply, at + 5),
			.enqueued_us = reply_i64(reply, at + 6),
			.claimed_until_us = reply_i64(reply, at + 7),
		};
		rc = fn(ctx, &row);
	}
	return rc;
}

int redis_queue_claim(void *backend, const sheaf_store_key *key, const sheaf_claim *claim,
                      sheaf_queue_fn fn, void *ctx, sheaf_error *err)
{
	_cleanup_(rcmd_free) rcmd cmd;
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	rcmd_session(&cmd, backend, "sheaf_1_queue_claim", key, NULL);
	rcmd_arg(&cmd, claim->token);
	add_repeat(&cmd);
	rcmd_i64(&cmd, claim->lease_us);
	rcmd_u64(&cmd, claim->limit);
	rcmd_u64(&cmd, claim->bytes);
	int rc = call(backend, &cmd, claim->deadline_us, true, NULL, &reply, err);
	if (rc != 0)
		return rc;
	rc = give_items(reply, 1, fn, ctx);
	return rc < 0 ? err_unknown(err, rc) : 0; /* they are claimed; the callback failed */
}

int redis_queue_ack(void *backend, const sheaf_store_key *key, sheaf_str token, int64_t deadline_us,
                    size_t *count, sheaf_error *err)
{
	_cleanup_(rcmd_free) rcmd cmd;
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	rcmd_session(&cmd, backend, "sheaf_1_queue_ack", key, NULL);
	rcmd_arg(&cmd, token);
	add_repeat(&cmd);
	bool repeated;
	int rc = call(backend, &cmd, deadline_us, true, &repeated, &reply, err);
	if (rc != 0)
		return rc;
	if (reply_code(reply) == ANSWER_MISS) {
		rc = err_set(err, SHEAF_STALE,
		             "nothing is claimed under this token: it was acknowledged, or "
		             "claimed anew");
		return repeated ? err_unknown(err, rc) : rc;
	}
	*count = (size_t)reply_u64(reply, 1);
	return 0;
}

int redis_queue_cancel(void *backend, const sheaf_store_key *key, sheaf_str id, int64_t deadline_us,
                       int32_t *existed, sheaf_error *err)
{
	_cleanup_(rcmd_free) rcmd cmd;
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	rcmd_session(&cmd, backend, "sheaf_1_queue_cancel", key, NULL);
	rcmd_arg(&cmd, id);
	add_repeat(&cmd);
	int rc = call(backend, &cmd, deadline_us, true, NULL, &reply, err);
	*existed = rc == 0 && reply_i64(reply, 1) != 0;
	return rc;
}

int redis_queue_list(void *backend, const sheaf_store_key *key, sheaf_queue_fn fn, void *ctx,
                     sheaf_error *err)
{
	_cleanup_(buf_free) buf after = BUF_INIT(4096);
	do {
		_cleanup_(rcmd_free) rcmd cmd;
		_cleanup_(redis_reply_free) redisReply *reply = NULL;
		rcmd_session(&cmd, backend, "sheaf_1_queue_list", key, NULL);
		rcmd_arg(&cmd, buf_view(&after));
		rcmd_u64(&cmd, LIST_BYTES);
		int rc = call(backend, &cmd, 0, false, NULL, &reply, err);
		if (rc == 0)
			rc = give_items(reply, 2, fn, ctx);
		if (rc != 0)
			return rc < 0 ? rc : 0;
		buf_reset(&after);
		buf_str(&after, reply_str(reply, 1));
		rc = buf_status(&after, err);
		if (rc != 0)
			return rc;
	} while (after.len != 0);
	return 0;
}
