/* Queues of the `memory:` store: each hangs on its session's log. */
#include "base/clock.h"
#include "base/err.h"
#include "store/memory.h"

/* The log of a session that is there. */
static int find(const mstore *m, const sheaf_store_key *key, mlog **out, sheaf_error *err)
{
	mlog *l = mlog_find(m, key->owner, key->session);
	if (l == NULL)
		return mlog_not_found(err);
	if (mlog_hidden(l))
		return err_set(err, SHEAF_GONE, "the session was deleted");
	*out = l;
	return 0;
}

int memory_queue_put(void *backend, const sheaf_store_key *key, const sheaf_queue_row *row,
                     UNUSED int64_t deadline_us, int32_t *existed, sheaf_error *err)
{
	mstore *m = backend;
	mlog *l = NULL;
	sheaf_queue_row stored = *row;
	queue_item *item;
	memory_lock(m);
	int rc = find(m, key, &l, err);
	if (rc == 0)
		rc = queue_check(&l->queue, row, err);
	*existed = rc == 1;
	stored.claims = 0;
	stored.enqueued_us = clock_now_us();
	if (rc == 0 && queue_add(&l->queue, &stored, &item) != 0)
		rc = err_nomem(err);
	memory_unlock(m);
	return rc < 0 ? rc : 0;
}

int memory_queue_claim(void *backend, const sheaf_store_key *key, const sheaf_claim *claim,
                       sheaf_queue_fn fn, void *ctx, sheaf_error *err)
{
	mstore *m = backend;
	_cleanup_(queue_copies_free) queue_copies copies = {NULL, 0};
	queue_item *items[SHEAF_QUEUE_MERGE_ITEMS_MAX];
	mlog *l = NULL;
	size_t n = 0;
	memory_lock(m);
	int rc = find(m, key, &l, err);
	int64_t now_us = clock_boottime_us();
	if (rc == 0) {
		n = queue_pick(&l->queue, claim, now_us, items);
		rc = queue_copies_take(&copies, items, n, err);
	}
	for (size_t i = 0; rc == 0 && i < n; i++)
		queue_mark(items[i], claim->token, queue_lease_end(now_us, claim->lease_us));
	queue_copies_refresh(&copies);
	memory_unlock(m);
	if (rc != 0)
		return rc;
	rc = queue_copies_give(&copies, fn, ctx);
	return rc != 0 ? err_unknown(err, rc) : 0; /* they are claimed; the callback failed */
}

int memory_queue_ack(void *backend, const sheaf_store_key *key, sheaf_str token,
                     UNUSED int64_t deadline_us, size_t *count, sheaf_error *err)
{
	mstore *m = backend;
	mlog *l = NULL;
	memory_lock(m);
	int rc = find(m, key, &l, err);
	if (rc == 0) {
		*count = queue_carrying(&l->queue, token);
		(void)queue_ack(&l->queue, token);
		rc = *count != 0 ? 0 : queue_stale(err);
	}
	memory_unlock(m);
	return rc;
}

int memory_queue_cancel(void *backend, const sheaf_store_key *key, sheaf_str id,
                        UNUSED int64_t deadline_us, int32_t *existed, sheaf_error *err)
{
	mstore *m = backend;
	mlog *l = NULL;
	memory_lock(m);
	int rc = find(m, key, &l, err);
	queue_item *item = rc == 0 ? queue_find(&l->queue, id) : NULL;
	if (item != NULL && item->until_us > clock_boottime_us())
		rc = queue_busy(err);
	if (item != NULL && rc == 0) {
		queue_remove(&l->queue, item);
		*existed = 1;
	}
	memory_unlock(m);
	return rc;
}

int memory_queue_list(void *backend, const sheaf_store_key *key, sheaf_queue_fn fn, void *ctx,
                      sheaf_error *err)
{
	mstore *m = backend;
	_cleanup_(queue_copies_free) queue_copies copies = {NULL, 0};
	mlog *l = NULL;
	memory_lock(m);
	int rc = find(m, key, &l, err);
	if (rc == 0)
		rc = queue_copies_take(&copies, l->queue.items, l->queue.count, err);
	memory_unlock(m);
	return rc == 0 ? queue_copies_give(&copies, fn, ctx) : rc;
}
