/* What lies beside the log: the state of users and apps, queues. */
#include "store/postgres.h"

/* ---- State ------------------------------------------------------------------- */

int pg_state_read(pg_place at, sheaf_str scope, int app, sheaf_state_fn fn, void *ctx,
                  sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	const char *slash = memchr(scope.ptr, '/', scope.len);
	bool owner = app == 0 && slash != NULL;
	pg_arg_text(&a, scope);
	pg_arg_text(&a, owner ? str_make(scope.ptr, (size_t)(slash - scope.ptr)) : scope);
	pg_arg_shard(&a, at);
	int rc = pg_call(at.server, PG_READ_STATE, &a, pg_deadline(at.server), NULL, &r, err);
	for (int i = 0; rc == 0 && i < PQntuples(r); i++) {
		sheaf_state_item item = {
			.key = pg_get_text(r, i, 0),
			.value = pg_get_text(r, i, 1),
			.time_us = pg_get_i64(r, i, 2),
			.id = pg_get_text(r, i, 3),
		};
		rc = fn(ctx, &item);
	}
	return rc < 0 ? rc : 0;
}

int pg_state_apply(pg_place at, sheaf_str app, const sheaf_state_item *items, size_t count,
                   int64_t deadline_us, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	pg_arg_text(&a, app);
	pg_arg_shard(&a, at);
	pg_array_begin(&a, PG_BYTEA, count);
	for (size_t i = 0; i < count; i++)
		pg_item_text(&a, items[i].key);
	pg_array_end(&a);
	pg_array_begin(&a, PG_BYTEA, count);
	for (size_t i = 0; i < count; i++)
		pg_item_text(&a, items[i].value);
	pg_array_end(&a);
	pg_array_begin(&a, PG_INT8, count);
	for (size_t i = 0; i < count; i++)
		pg_item_i64(&a, items[i].time_us);
	pg_array_end(&a);
	pg_array_begin(&a, PG_TEXT, count);
	for (size_t i = 0; i < count; i++)
		pg_item_text(&a, items[i].id.ptr != NULL ? items[i].id : SHEAF_STR(""));
	pg_array_end(&a);
	pg_arg_i64(&a, (int64_t)SHEAF_STATE_BYTES_MAX);
	/* Applying twice is applying once, so a lost answer needs no care. */
	return pg_call(at.server, PG_APPLY_STATE, &a, deadline_us, NULL, &r, err);
}

/* ---- Queues ------------------------------------------------------------------- */

enum {
	PUT_DONE = 0,
	PUT_EXISTED = 1,
	PUT_CONFLICT = 2,
	PUT_FULL = 3
};
enum {
	CANCEL_DONE = 0,
	CANCEL_ABSENT = 1,
	CANCEL_CLAIMED = 2
};

int pg_queue_put(pg_place at, const sheaf_store_key *key, const sheaf_queue_row *row,
                 int64_t deadline_us, int32_t *existed, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	bool lost = false;
	pg_arg_key(&a, at, key);
	pg_arg_text(&a, row->id);
	pg_arg_text(&a, row->content);
	pg_arg_text(&a, row->environment);
	pg_arg_i32(&a, row->priority);
	pg_arg_i64(&a, SHEAF_QUEUE_ITEMS_MAX);
	int rc = pg_call(at.server, PG_QUEUE_PUT, &a, deadline_us, &lost, &r, err);
	if (rc != 0)
		return rc;
	switch (pg_get_status(r)) {
	case PUT_DONE:
		return 0;
	case PUT_EXISTED:
		*existed = !lost; /* after a lost answer it is most likely this very call's */
		return 0;
	case PUT_CONFLICT:
		return err_set(err, SHEAF_CONFLICT,
		               "the queue has an item with this id and other content");
	case PUT_FULL:
		return err_set(err, SHEAF_LIMIT, "the queue is full: %u items wait",
		               SHEAF_QUEUE_ITEMS_MAX);
	default:
		return pg_nonsense(err);
	}
}

static int give_items(const PGresult *r, sheaf_queue_fn fn, void *ctx)
{
	int rc = 0;
	for (int i = 0; rc == 0 && i < PQntuples(r); i++) {
		sheaf_queue_row row = {
			.id = pg_get_text(r, i, 0),
			.content = pg_get_text(r, i, 1),
			.environment = pg_get_text(r, i, 2),
			.priority = pg_get_i32(r, i, 3),
			.claims = pg_get_i32(r, i, 4),
			.enqueued_us = pg_get_i64(r, i, 5),
			.claimed_until_us = pg_get_i64(r, i, 6),
		};
		rc = fn(ctx, &row);
	}
	return rc < 0 ? rc : 0;
}

int pg_queue_claim(pg_place at, const sheaf_store_key *key, const sheaf_claim *claim,
                   sheaf_queue_fn fn, void *ctx, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	int64_t lease = claim->lease_us < INT64_MAX / 4 ? claim->lease_us : INT64_MAX / 4;
	int64_t bytes = claim->bytes < INT64_MAX / 4 ? (int64_t)claim->bytes : INT64_MAX / 4;
	pg_arg_key(&a, at, key);
	a.retry = a.count;
	pg_arg_bool(&a, false);
	pg_arg_text(&a, claim->token);
	pg_arg_i64(&a, lease);
	pg_arg_i32(&a, (int32_t)claim->limit);
	pg_arg_i64(&a, bytes);
	int rc = pg_call(at.server, PG_QUEUE_CLAIM, &a, claim->deadline_us, NULL, &r, err);
	if (rc != 0)
		return rc;
	rc = give_items(r, fn, ctx);
	return rc != 0 ? err_unknown(err, rc) : 0; /* they are claimed; the callback failed */
}

int pg_queue_ack(pg_place at, const sheaf_store_key *key, sheaf_str token, int64_t deadline_us,
                 size_t *count, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	bool lost = false;
	pg_arg_key(&a, at, key);
	pg_arg_text(&a, token);
	int rc = pg_call(at.server, PG_QUEUE_ACK, &a, deadline_us, &lost, &r, err);
	if (rc != 0)
		return rc;
	*count = (size_t)pg_get_i64(r, 0, 0);
	if (*count != 0)
		return 0;
	rc = err_set(err, SHEAF_STALE,
	             "nothing is claimed under this token: it was acknowledged, or claimed anew");
	return lost ? err_unknown(err, rc) : rc;
}

int pg_queue_cancel(pg_place at, const sheaf_store_key *key, sheaf_str id, int64_t deadline_us,
                    int32_t *existed, sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	bool lost = false;
	pg_arg_key(&a, at, key);
	pg_arg_text(&a, id);
	int rc = pg_call(at.server, PG_QUEUE_CANCEL, &a, deadline_us, &lost, &r, err);
	if (rc != 0)
		return rc;
	int status = pg_get_status(r);
	if (status == CANCEL_CLAIMED)
		return err_set(err, SHEAF_BUSY, "somebody is working on the item");
	if (status != CANCEL_DONE && status != CANCEL_ABSENT)
		return pg_nonsense(err);
	*existed = status == CANCEL_DONE || lost;
	return 0;
}

int pg_queue_list(pg_place at, const sheaf_store_key *key, sheaf_queue_fn fn, void *ctx,
                  sheaf_error *err)
{
	_cleanup_(pg_args_free) pg_args a = PG_ARGS_INIT;
	_cleanup_(pg_clearp) PGresult *r = NULL;
	pg_arg_key(&a, at, key);
	int rc = pg_call(at.server, PG_QUEUE_LIST, &a, pg_deadline(at.server), NULL, &r, err);
	return rc == 0 ? give_items(r, fn, ctx) : rc;
}
