/* What a session's queue is asked to do, in the jsonl store. */
#include <errno.h>

#include "store/jsonl_queue.h"

/* Done bytes below this are not worth a new file. */
#define REWRITE_BYTES ((uint64_t)64 << 10)
#define LIST_WAIT_US INT64_C(10000000)

/* When what is done outweighs what waits. A failure changes nothing: the old file is whole. */
static void rewrite_if_worth(jqueue *q)
{
	sheaf_error ignored;
	uint64_t done = q->size - q->live;
	if (done < REWRITE_BYTES || done < q->live)
		return;
	(void)jqueue_write_anew(q, q->created_us, &q->items, &ignored);
	jqueue_unload(q);
}

/* The session of a key, which must be there; when it was made says which one it is. */
static int find_log(jstore *js, const sheaf_store_key *key, jlog **out, int64_t *created_us,
                    sheaf_error *err)
{
	sheaf_session_info info;
	if (js->single)
		return err_set(err, SHEAF_UNSUPPORTED, "a store of one file keeps no queue");
	int rc = jlog_get(js, key, out, err);
	if (rc)
		return rc;
	jlog *log = *out;
	pthread_mutex_lock(&log->mutex);
	rc = jlog_refresh(log, err);
	if (rc == 0 && sheaf_head_hidden(log->head))
		rc = err_set(err, SHEAF_GONE, "the session was deleted");
	if (rc == 0) {
		sheaf_head_info(log->head, &info);
		*created_us = info.created_us;
		if (!log->queue)
			log->queue = jqueue_new(log->owner, log->session);
		if (!log->queue)
			rc = err_nomem(err);
	}
	pthread_mutex_unlock(&log->mutex);
	return rc;
}

/*
 * Begins a call on a queue. 0: mutex and lock are held and the image is true;
 * 1: the session has no queue, or what is there was another's; the mutex is held.
 */
static int begin(jstore *js, const sheaf_store_key *key, bool write, int64_t deadline_us,
                 jlog **log, sheaf_error *err)
{
	int64_t created_us = 0;
	int rc = find_log(js, key, log, &created_us, err);
	if (rc)
		return rc;
	jqueue *q = (*log)->queue;
	pthread_mutex_lock(&q->mutex);
	rc = jqueue_enter(q, write, deadline_us, err);
	if (rc == 0 && q->created_us != created_us) {
		jqueue_leave(q);
		rc = 1;
	}
	if (rc < 0)
		pthread_mutex_unlock(&q->mutex);
	return rc;
}

static void end(jlog *log)
{
	jqueue_leave(log->queue);
	pthread_mutex_unlock(&log->queue->mutex);
}

/* Makes the file, empty, for the session as it is: its log is locked meanwhile. */
static int make(jlog *log, int64_t deadline_us, sheaf_error *err)
{
	jqueue *q = log->queue;
	sheaf_session_info info;
	int rc = jlog_lead(log, deadline_us, err);
	if (rc)
		return rc;
	rc = jlog_lock_damaged(log, deadline_us, err);
	bool locked = rc == 0;
	if (rc == 0 && sheaf_head_hidden(log->head))
		rc = err_set(err, SHEAF_GONE, "the session was deleted");
	if (rc == 0) {
		sheaf_head_info(log->head, &info);
		/* Leadership and lock are enough; readers of the log go on. */
		pthread_mutex_unlock(&log->mutex);
		pthread_mutex_lock(&q->mutex);
		rc = jqueue_enter(q, true, deadline_us, err);
		if (rc == 1 || (rc == 0 && q->created_us != info.created_us))
			rc = jqueue_write_anew(q, info.created_us, NULL, err);
		jqueue_unload(q);
		pthread_mutex_unlock(&q->mutex);
		pthread_mutex_lock(&log->mutex);
	}
	if (locked)
		jlog_unlock(log);
	jlog_unlead(log);
	return rc;
}

/* Adds q->out to the file, for good. After a failure the image begins anew. */
static int commit(jqueue *q, sheaf_error *err)
{
	int rc = buf_status(&q->out, err);
	if (rc)
		return rc;
	ssize_t n = io_write(q->fd, q->out.ptr, q->out.len);
	if (n != (ssize_t)q->out.len) {
		rc = err_sys(err, SHEAF_STORAGE, n < 0 ? errno : ENOSPC,
		             "cannot write to the queue");
		if (io_ftruncate(q->fd, (off_t)q->size) || (n > 0 && jqueue_sync(q)))
			rc = err_unknown(err, rc);
		jqueue_unload(q);
		return rc;
	}
	q->size += q->out.len;
	if (jqueue_sync(q)) {
		rc = err_sys(err, SHEAF_STORAGE, errno, "cannot sync the queue");
		jqueue_unload(q);
		return err_unknown(err, rc);
	}
	return 0;
}

/* ---- The operations ---------------------------------------------------------------------- */

static int put_locked(jqueue *q, const sheaf_queue_row *row, int32_t *existed, sheaf_error *err)
{
	sheaf_queue_row stored = *row;
	queue_item *item;
	int rc = queue_check(&q->items, row, err);
	if (rc < 0)
		return rc;
	if (rc == 1) {
		/* Who wrote it may have died before he synced it. */
		if (q->synced < q->size && jqueue_sync(q)) {
			rc = err_sys(err, SHEAF_STORAGE, errno, "cannot sync the queue");
			jqueue_unload(q);
			return err_unknown(err, rc);
		}
		*existed = 1;
		return 0;
	}
	stored.claims = 0;
	stored.enqueued_us = clock_now_us();
	buf_reset(&q->out);
	jqueue_write_put(&q->out, &stored, NULL, q->boot);
	rc = commit(q, err);
	if (rc)
		return rc;
	if (queue_add(&q->items, &stored, &item)) {
		jqueue_unload(q); /* it is stored; the next call reads it */
		return 0;
	}
	item->bytes = q->out.len;
	q->live += item->bytes;
	return 0;
}

int jsonl_queue_put(void *backend, const sheaf_store_key *key, const sheaf_queue_row *row,
                    int64_t deadline_us, int32_t *existed, sheaf_error *err)
{
	for (int again = 0; again < 4 || clock_monotonic_us() < deadline_us; again++) {
		_cleanup_(jlog_putp) jlog *log = NULL;
		int rc = begin(backend, key, true, deadline_us, &log, err);
		if (rc < 0)
			return rc;
		if (rc == 0) {
			rc = put_locked(log->queue, row, existed, err);
			end(log);
			return rc;
		}
		end(log);
		rc = make(log, deadline_us, err);
		if (rc)
			return rc;
	}
	return err_set(err, SHEAF_BUSY, "the session keeps being replaced");
}

static int claim_locked(jqueue *q, const sheaf_claim *claim, queue_copies *copies, sheaf_error *err)
{
	queue_item *items[SHEAF_QUEUE_MERGE_ITEMS_MAX];
	int64_t now_us = clock_boottime_us();
	int64_t until_us = queue_lease_end(now_us, claim->lease_us);
	size_t n = queue_pick(&q->items, claim, now_us, items);
	if (n == 0)
		return 0;
	int rc = queue_copies_take(copies, items, n, err);
	if (rc)
		return rc;
	buf_reset(&q->out);
	jqueue_write_claim(&q->out, claim, until_us, q->boot, items, n);
	rc = commit(q, err);
	for (size_t i = 0; rc == 0 && i < n; i++)
		queue_mark(items[i], claim->token, until_us);
	queue_copies_refresh(copies);
	return rc;
}

int jsonl_queue_claim(void *backend, const sheaf_store_key *key, const sheaf_claim *claim,
                      sheaf_queue_fn fn, void *ctx, sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	_cleanup_(queue_copies_free) queue_copies copies = {NULL, 0};
	int rc = begin(backend, key, true, claim->deadline_us, &log, err);
	if (rc < 0)
		return rc;
	if (rc == 0) {
		rc = claim_locked(log->queue, claim, &copies, err);
		if (rc == 0)
			rewrite_if_worth(log->queue);
	} else {
		rc = 0;
	}
	end(log);
	if (rc)
		return rc;
	rc = queue_copies_give(&copies, fn, ctx);
	return rc ? err_unknown(err, rc) : 0; /* they are claimed; the callback failed */
}

int jsonl_queue_ack(void *backend, const sheaf_store_key *key, sheaf_str token, int64_t deadline_us,
                    size_t *count, sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	int rc = begin(backend, key, true, deadline_us, &log, err);
	if (rc < 0)
		return rc;
	jqueue *q = log->queue;
	size_t n = rc == 0 ? queue_carrying(&q->items, token) : 0;
	rc = n ? 0 : queue_stale(err);
	if (rc == 0) {
		buf_reset(&q->out);
		jqueue_write_done(&q->out, "ack", "token", token);
		rc = commit(q, err);
	}
	if (rc == 0) {
		q->live -= queue_ack(&q->items, token);
		*count = n;
		rewrite_if_worth(q);
	}
	end(log);
	return rc;
}

int jsonl_queue_cancel(void *backend, const sheaf_store_key *key, sheaf_str id, int64_t deadline_us,
                       int32_t *existed, sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	int rc = begin(backend, key, true, deadline_us, &log, err);
	if (rc < 0)
		return rc;
	jqueue *q = log->queue;
	queue_item *item = rc == 0 ? queue_find(&q->items, id) : NULL;
	rc = item && item->until_us > clock_boottime_us() ? queue_busy(err) : 0;
	if (item && rc == 0) {
		buf_reset(&q->out);
		jqueue_write_done(&q->out, "cancel", "id", id);
		rc = commit(q, err);
		*existed = rc == 0;
		if (rc == 0) {
			jqueue_take_out(q, item);
			rewrite_if_worth(q);
		}
	}
	end(log);
	return rc;
}

int jsonl_queue_list(void *backend, const sheaf_store_key *key, sheaf_queue_fn fn, void *ctx,
                     sheaf_error *err)
{
	_cleanup_(jlog_putp) jlog *log = NULL;
	_cleanup_(queue_copies_free) queue_copies copies = {NULL, 0};
	int rc = begin(backend, key, false, clock_monotonic_us() + LIST_WAIT_US, &log, err);
	if (rc < 0)
		return rc;
	const queue *items = &log->queue->items;
	rc = rc == 0 ? queue_copies_take(&copies, items->items, items->count, err) : 0;
	end(log);
	return rc ? rc : queue_copies_give(&copies, fn, ctx);
}
