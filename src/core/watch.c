/* Watches: the records after a revision, as they come. */
#include "sheaf/watch.h"

#include <stdatomic.h>

#include "base/err.h"
#include "base/mem.h"
#include "core/gather.h"

/* A wait cannot be broken off, so that a cancelled one lasts no longer than this. */
#define SLICE_US INT64_C(100000)
/* How long a watch goes without looking: the longer nothing happens, the longer. */
#define LOOK_LEAST_US INT64_C(20000)
#define LOOK_MOST_US INT64_C(1000000)

struct sheaf_watch {
	sheaf_session *session;
	uint64_t after;       /* the last record given */
	int64_t created_us;   /* tells the session from a later one of the same key */
	int64_t last_news_us; /* when there was something, or when the watch began */
	atomic_int cancelled;
};

/* ---- A page ------------------------------------------------------------- */

typedef struct page {
	gather g;
	uint64_t left;      /* of the batch that is being read */
	size_t batch_start; /* where it begins in the page */
} page;

static bool page_full(const page *p, uint64_t batch)
{
	return p->g.count != 0 && (p->g.count + batch > SHEAF_WATCH_RECORDS_MAX ||
	                           p->g.bytes >= SHEAF_WATCH_BYTES_MAX);
}

/* A damaged record belongs to the batch that the one before it began, else it stands alone. */
static int page_row(void *ctx, const sheaf_row *row)
{
	page *p = ctx;
	record r;
	bool readable;
	int rc = gather_look(&p->g, row, &r, &readable);
	if (rc != 0)
		return rc;
	if (p->left == 0 || (readable && r.batch_index == 0)) {
		p->left = readable && r.batch_count > r.batch_index ? r.batch_count - r.batch_index
		                                                    : 1;
		p->batch_start = p->g.count;
		if (page_full(p, p->left))
			return 1;
	}
	if (p->batch_start != 0 && p->g.bytes + row->bytes.len > SHEAF_WATCH_BYTES_MAX) {
		p->g.count = p->batch_start;
		return 1;
	}
	p->left--;
	return gather_add(&p->g, row, readable ? &r : NULL);
}

static int page_read(sheaf_records **out, sheaf_watch *w, const sheaf_head *head, sheaf_error *err)
{
	sheaf_session *s = w->session;
	uint64_t base = head_base(head);
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = (w->after > base ? w->after : base) + 1,
		.limit = SIZE_MAX,
		.kinds = SHEAF_KINDS_ALL,
	};
	page p = {.left = 0};
	int rc = gather_begin(&p.g, true, err);
	if (rc == 0)
		rc = err_pass(err, &p.g.err, read_scan(s, head, &scan, page_row, &p, err));
	if (rc == 0)
		rc = gather_parents(&p.g, s, head, err);
	if (rc == 0 && p.g.count == 0)
		rc = err_set(err, SHEAF_DAMAGED, "record %llu is missing",
		             (unsigned long long)scan.from);
	if (rc == 0) {
		uint64_t last = p.g.items[p.g.count - 1]->seq;
		uint64_t next = last < sheaf_head_revision(head) ? last + 1 : 0;
		rc = gather_finish(out, &p.g, last, next, err);
		if (rc == 0)
			w->after = last;
	}
	gather_end(&p.g);
	return rc;
}

/* ---- Looking ------------------------------------------------------------ */

static int64_t created_us(const sheaf_head *head)
{
	sheaf_session_info info;
	sheaf_head_info(head, &info);
	return info.created_us;
}

/* Whether it is the session that was watched, as far as it was watched. */
static int fits(const sheaf_watch *w, const sheaf_head *head, sheaf_error *err)
{
	uint64_t revision = sheaf_head_revision(head);
	if (created_us(head) != w->created_us)
		return err_set(err, SHEAF_GONE, "the session was deleted and another has its key");
	if (revision >= w->after)
		return 0;
	int rc = err_set(err, SHEAF_STALE, "the session ends at %llu, before record %llu",
	                 (unsigned long long)revision, (unsigned long long)w->after);
	if (err != NULL)
		err->revision = revision;
	return rc;
}

static int64_t until(int64_t now, int64_t us)
{
	return us < 0 || us > INT64_MAX - now ? INT64_MAX : now + us;
}

/* How long it may be until the next look. */
static int64_t patience(const sheaf_watch *w, int64_t now)
{
	int64_t us = (now - w->last_news_us) / 4;
	return us < LOOK_LEAST_US ? LOOK_LEAST_US : us > LOOK_MOST_US ? LOOK_MOST_US : us;
}

/* Waits until it is worth looking again; at the deadline at the latest. */
static int pause(sheaf_watch *w, uint64_t revision, int64_t deadline, sheaf_error *err)
{
	int64_t now = clock_monotonic_us(), look_at = until(now, patience(w, now));
	if (look_at > deadline)
		look_at = deadline;
	while (now < look_at && !atomic_load(&w->cancelled)) {
		int64_t slice = look_at - now < SLICE_US ? look_at : now + SLICE_US;
		int rc = store_wait(w->session->store, &w->session->key.store, revision, slice,
		                    err);
		now = clock_monotonic_us();
		/* Awake before the time: something may have happened. */
		if (rc != 0 || now < slice)
			return rc;
	}
	return 0;
}

int sheaf_watch_next(sheaf_records **out, sheaf_watch *watch, int64_t timeout_us, sheaf_error *err)
{
	if (out == NULL || watch == NULL)
		return err_set(err, SHEAF_INVALID, "no watch was given");
	int64_t deadline = until(clock_monotonic_us(), timeout_us);
	for (;;) {
		_cleanup_(head_freep) sheaf_head *head = NULL;
		if (atomic_load(&watch->cancelled))
			return err_set(err, SHEAF_CANCELLED, "the watch was cancelled");
		int rc = session_peek(watch->session, &head, NULL, err);
		if (rc == 0)
			rc = fits(watch, head, err);
		if (rc != 0)
			return rc;
		uint64_t revision = sheaf_head_revision(head);
		if (revision > watch->after && revision > head_base(head)) {
			watch->last_news_us = clock_monotonic_us();
			return page_read(out, watch, head, err);
		}
		if (clock_monotonic_us() >= deadline)
			return err_set(err, SHEAF_TIMEOUT, "nothing was added in that time");
		rc = pause(watch, revision, deadline, err);
		if (rc != 0)
			return rc;
	}
}

/* ---- The watch ---------------------------------------------------------- */

int sheaf_watch_open(sheaf_watch **out, sheaf_session *session, uint64_t after_revision,
                     sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = session_peek(session, &head, NULL, err);
	if (rc != 0)
		return rc;
	_cleanup_(mem_freep) sheaf_watch *w = mem_zalloc(sizeof(*w));
	if (w == NULL)
		return err_nomem(err);
	w->session = session;
	w->after = after_revision;
	w->created_us = created_us(head);
	w->last_news_us = clock_monotonic_us();
	atomic_init(&w->cancelled, 0);
	rc = fits(w, head, err);
	if (rc != 0)
		return rc;
	*out = w;
	w = NULL;
	return 0;
}

void sheaf_watch_cancel(sheaf_watch *watch)
{
	if (watch != NULL)
		atomic_store(&watch->cancelled, 1);
}

void sheaf_watch_close(sheaf_watch *watch)
{
	mem_free(watch);
}
