/*
 * Dispatch of what lies beside the log: state, queues, waiting, and bringing a
 * schema up to date.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "store/store_inside.h"
#include "store/store_url.h"

/* State ------------------------------------------------------------------------------ */

/* The parts around the slash of an owner are encoded, so the first slash is the only one. */
static int check_scope(sheaf_str scope, int app, sheaf_error *err)
{
	if (scope.ptr == NULL || scope.len == 0 || scope.ptr[scope.len] != '\0')
		return err_set(err, SHEAF_INVALID, "no scope was given");
	if (app != 0)
		return call_part_ok(scope) ? 0
		                           : err_set(err, SHEAF_INVALID, "the app is not encoded");
	return memchr(scope.ptr, '/', scope.len) != NULL
	               ? 0
	               : err_set(err, SHEAF_INVALID, "the owner is not app/user");
}

int store_state_read(sheaf_store *s, sheaf_str scope, int app, sheaf_state_fn fn, void *ctx,
                     sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = call_check_store(s, err);
	if (rc == 0 && s->ops.state_read == NULL)
		rc = call_no_slot(s, "keep state", err);
	if (rc == 0)
		rc = check_scope(scope, app, err);
	if (rc == 0 && fn == NULL)
		rc = call_no_argument("callback", err);
	if (rc == 0)
		rc = call_fault_point("state_read", err);
	if (rc == 0)
		rc = s->ops.state_read(s->backend, scope, app, fn, ctx, err);
	return call_finish_read(&c, rc);
}

int store_state_apply(sheaf_store *s, sheaf_str app, const sheaf_state_item *items, size_t count,
                      sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = call_check_writable(s, err);
	if (rc == 0 && s->ops.state_apply == NULL)
		rc = call_no_slot(s, "keep state", err);
	if (rc == 0)
		rc = check_scope(app, 1, err);
	if (rc == 0 && (items == NULL || count == 0))
		rc = call_no_argument("state", err);
	if (rc == 0)
		rc = call_fault_point("state_apply", err);
	if (rc == 0)
		rc = s->ops.state_apply(s->backend, app, items, count,
		                        call_deadline_from_now(s->deadline_us), err);
	return call_finish(&c, rc);
}

/* Queues ----------------------------------------------------------------------------- */

/* What every call on a queue is checked for. */
static int check_queue(const sheaf_store *s, const sheaf_store_key *key, bool write,
                       sheaf_error *err)
{
	int rc = write ? call_check_writable(s, err) : call_check_store(s, err);
	if (rc == 0 && s->ops.queue_put == NULL)
		rc = call_no_slot(s, "keep a queue", err);
	return rc == 0 ? call_check_key(key, err) : rc;
}

int store_queue_put(sheaf_store *s, const sheaf_store_key *key, const sheaf_queue_row *row,
                    int32_t *existed, sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = check_queue(s, key, true, err);
	if (rc == 0 &&
	    (row == NULL || row->id.len == 0 || row->content.ptr == NULL || existed == NULL))
		rc = call_no_argument("item", err);
	if (rc == 0)
		rc = call_fault_point("queue_put", err);
	if (rc == 0) {
		*existed = 0;
		rc = s->ops.queue_put(s->backend, key, row, call_deadline_from_now(s->deadline_us),
		                      existed, err);
	}
	return call_finish(&c, rc);
}

int store_queue_claim(sheaf_store *s, const sheaf_store_key *key, const sheaf_claim *claim,
                      sheaf_queue_fn fn, void *ctx, sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = check_queue(s, key, true, err);
	if (rc == 0 &&
	    (claim == NULL || claim->size < sizeof(*claim) || claim->token.len == 0 || fn == NULL))
		rc = call_no_argument("claim", err);
	if (rc == 0 && (claim->lease_us <= 0 || claim->limit == 0 ||
	                claim->limit > SHEAF_QUEUE_MERGE_ITEMS_MAX))
		rc = err_set(err, SHEAF_INVALID, "a claim has a lease and takes 1 to %u items",
		             SHEAF_QUEUE_MERGE_ITEMS_MAX);
	if (rc == 0)
		rc = call_fault_point("queue_claim", err);
	if (rc == 0) {
		sheaf_claim filled = *claim;
		if (filled.deadline_us == 0)
			filled.deadline_us = call_deadline_from_now(s->deadline_us);
		rc = s->ops.queue_claim(s->backend, key, &filled, fn, ctx, err);
	}
	return call_finish(&c, rc);
}

int store_queue_ack(sheaf_store *s, const sheaf_store_key *key, sheaf_str token, size_t *count,
                    sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = check_queue(s, key, true, err);
	if (rc == 0 && (token.len == 0 || count == NULL))
		rc = call_no_argument("token", err);
	if (rc == 0)
		rc = call_fault_point("queue_ack", err);
	if (rc == 0) {
		*count = 0;
		rc = s->ops.queue_ack(s->backend, key, token,
		                      call_deadline_from_now(s->deadline_us), count, err);
	}
	return call_finish(&c, rc);
}

int store_queue_cancel(sheaf_store *s, const sheaf_store_key *key, sheaf_str id, int32_t *existed,
                       sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = check_queue(s, key, true, err);
	if (rc == 0 && (id.len == 0 || existed == NULL))
		rc = call_no_argument("id", err);
	if (rc == 0)
		rc = call_fault_point("queue_cancel", err);
	if (rc == 0) {
		*existed = 0;
		rc = s->ops.queue_cancel(s->backend, key, id,
		                         call_deadline_from_now(s->deadline_us), existed, err);
	}
	return call_finish(&c, rc);
}

int store_queue_list(sheaf_store *s, const sheaf_store_key *key, sheaf_queue_fn fn, void *ctx,
                     sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = check_queue(s, key, false, err);
	if (rc == 0 && fn == NULL)
		rc = call_no_argument("callback", err);
	if (rc == 0)
		rc = call_fault_point("queue_list", err);
	if (rc == 0)
		rc = s->ops.queue_list(s->backend, key, fn, ctx, err);
	return call_finish_read(&c, rc);
}

/* Waiting ---------------------------------------------------------------------------- */

int store_wait(sheaf_store *s, const sheaf_store_key *key, uint64_t revision, int64_t deadline_us,
               sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = call_check_store(s, err);
	if (rc == 0)
		rc = call_check_key(key, err);
	if (rc == 0)
		rc = call_fault_point("wait", err);
	if (rc == 0 && s->ops.wait != NULL) {
		rc = s->ops.wait(s->backend, key, revision, deadline_us, err);
	} else if (rc == 0) {
		int64_t left = deadline_us - clock_monotonic_us();
		if (left > 0)
			clock_sleep_us(left);
	}
	return call_finish_read(&c, rc);
}

/* Migrating -------------------------------------------------------------------------- */

static int migrate(const char *url, int print, sheaf_text_fn line, void *ctx, sheaf_error *err)
{
	_cleanup_(store_url_free) store_url u;
	sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
	const sheaf_store_ops *ops = NULL;
	int rc = store_url_parse(&u, url, err);
	if (rc == 0)
		rc = store_scheme_find(u.scheme, &ops, err);
	if (rc == 0)
		rc = store_url_settle(&u, ops->option_names, &options, err);
	if (rc != 0)
		return rc;
	if (ops->size < offsetof(sheaf_store_ops, migrate) + sizeof(ops->migrate) ||
	    ops->migrate == NULL)
		return err_set(err, SHEAF_UNSUPPORTED, "%s stores have no schema", ops->scheme);
	return ops->migrate(u.rest, &options, store_url_option, &u, print, line, ctx, err);
}

int sheaf_store_migrate(const char *url, int print, sheaf_text_fn line, void *ctx, sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = line != NULL ? call_fault_point("migrate", err)
	                      : call_no_argument("callback", err);
	if (rc == 0)
		rc = migrate(url, print, line, ctx, err);
	return call_finish(&c, rc);
}
