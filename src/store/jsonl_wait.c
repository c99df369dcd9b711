/*
 * Waiting for a log to change, whoever changes it: the system tells what happens to the file. It
 * tells nothing of what another machine does, and where there are no more watches to be had the
 * wait is a sleep, so whoever waits must look now and then whatever happens.
 */
#include "base/clock.h"
#include "store/jsonl.h"

static int notify_take(jstore *js)
{
	pthread_mutex_lock(&js->mutex);
	int notify = js->notify_count ? js->notify[--js->notify_count] : -1;
	pthread_mutex_unlock(&js->mutex);
	return notify >= 0 ? notify : io_notify_open();
}

static void notify_give(jstore *js, int notify)
{
	pthread_mutex_lock(&js->mutex);
	bool kept = js->notify_count < JSONL_NOTIFY_KEPT;
	if (kept)
		js->notify[js->notify_count++] = notify;
	pthread_mutex_unlock(&js->mutex);
	if (!kept)
		io_close(notify);
}

/* Whether the log is still in this file and ends at this revision; the file if NULL was given. */
static bool unchanged(jlog *log, uint64_t revision, jfile **file, sheaf_error *err)
{
	pthread_mutex_lock(&log->mutex);
	bool same = jlog_refresh(log, err) == 0 && sheaf_head_revision(log->head) == revision &&
	            (!*file || *file == log->file);
	if (same && !*file)
		*file = jfile_ref(log->file);
	pthread_mutex_unlock(&log->mutex);
	return same;
}

/* A failure ends the wait and is no failure of it: who looks then is told. */
int jsonl_wait(void *backend, const sheaf_store_key *key, uint64_t revision, int64_t deadline_us,
               sheaf_error *err)
{
	jstore *js = backend;
	_cleanup_(jlog_putp) jlog *log = NULL;
	_cleanup_(jfile_unrefp) jfile *file = NULL;
	if (jlog_get(js, key, &log, err) || !unchanged(log, revision, &file, err))
		return 0;
	int notify = notify_take(js);
	int watch = -1;
	if (notify >= 0) {
		(void)io_notify_wait(notify, 0); /* what is left of its last use */
		watch = io_notify_add(notify, file->fd);
	}
	int64_t left = deadline_us - clock_monotonic_us();
	if (watch < 0 && left > 0)
		clock_sleep_us(left);
	/* What happened before the watch was set is not told. */
	else if (left > 0 && unchanged(log, revision, &file, err))
		(void)io_notify_wait(notify, left);
	if (watch >= 0)
		(void)io_notify_remove(notify, watch);
	if (notify >= 0)
		notify_give(js, notify);
	return 0;
}
