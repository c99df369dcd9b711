/* Walking from an entry to the root, in ranges that start at the next parent wanted. */
#include "base/err.h"
#include "base/str.h"
#include "core/read.h"

/* Most paths are short or end soon; a long one is read in larger pieces. */
#define RANGE_FIRST 64u
#define RANGE_NEXT 256u

#define KINDS_ON_PATH (SHEAF_KINDS_ENTRIES | SHEAF_KIND_BIT(SHEAF_KIND_LOST))

typedef struct walk {
	sheaf_session *s;
	const sheaf_head *head;
	read_entry_fn fn;
	read_damage_fn on_damage;
	void *ctx;
	arena *a;
	json_doc *doc;
	uint64_t want;      /* the entry to give next */
	uint64_t range_low; /* where the present range ends */
	bool done;          /* at the root, or told to stop */
	bool got;           /* the entry wanted was given */
	bool orphan;        /* the last one given names a parent that nobody has */
	bool any;           /* one was given: `branch` is its branch */
	bool repaired;      /* a `lost` record stands where the path goes on */
	char branch[SHEAF_BRANCH_BYTES_MAX + 1];
	size_t branch_len;
	sheaf_error err;
} walk;

static void walk_branch(walk *w, sheaf_str branch)
{
	if (branch.ptr == NULL)
		branch = SHEAF_STR("main");
	str_copy_cut(w->branch, sizeof(w->branch), branch);
	w->branch_len = strlen(w->branch);
	w->any = true;
}

/* Gives the wanted row to the caller and finds out where to go on; 1 ends the range. */
static int walk_give(walk *w, const sheaf_row *row, const record *r)
{
	int rc = w->fn(w->ctx, row, r);
	w->got = true;
	if (rc != 0) {
		w->done = rc > 0;
		return rc;
	}
	walk_branch(w, r->branch);
	w->want = row->parent;
	if (row->parent == 0) {
		w->orphan = r->parent_id.len != 0;
		w->done = !w->orphan;
		/* What a search for the lost parent begins with. */
		w->want = w->orphan ? row->seq : 0;
		return 1;
	}
	if (row->parent >= row->seq) {
		w->orphan = true;
		w->want = row->seq;
		return 1;
	}
	return row->parent < w->range_low;
}

/* A line that cannot be read is damage, which the walk puts into its own words. */
static int walk_record(walk *w, const sheaf_row *row, record *r)
{
	int rc = read_record(r, row, w->a, &w->doc, &w->err);
	if (rc != SHEAF_NOMEM)
		w->err.code = 0;
	return rc;
}

static int walk_row(void *ctx, const sheaf_row *row)
{
	walk *w = ctx;
	if (row->seq > w->want)
		return 0;
	w->got = false;
	if (row->seq < w->want)
		return 1;
	w->repaired = !row->damaged && row->kind == SHEAF_KIND_LOST;
	if (row->damaged || record_kind_is_fact(row->kind))
		return 1;
	record r;
	int rc = walk_record(w, row, &r);
	if (rc != 0)
		return rc == SHEAF_NOMEM ? rc : 1;
	return walk_give(w, row, &r);
}

/* ---- Through damage ----------------------------------------------------- */

/* Looks for the nearest earlier readable entry of the same branch. */
typedef struct detour {
	walk *w;
	uint64_t found;
	bool lost; /* a repaired record was passed */
} detour;

static int detour_report(detour *d, uint64_t seq)
{
	return d->w->on_damage != NULL ? d->w->on_damage(d->w->ctx, seq) : 0;
}

static int detour_row(void *ctx, const sheaf_row *row)
{
	detour *d = ctx;
	walk *w = d->w;
	if (row->damaged || row->kind == SHEAF_KIND_LOST) {
		d->lost = d->lost || row->kind == SHEAF_KIND_LOST;
		return detour_report(d, row->seq);
	}
	record r;
	int rc = walk_record(w, row, &r);
	if (rc != 0)
		return rc == SHEAF_NOMEM ? rc : detour_report(d, row->seq);
	sheaf_str branch = r.branch.ptr != NULL ? r.branch : SHEAF_STR("main");
	if (w->any && !str_eq(branch, str_make(w->branch, w->branch_len)))
		return 0;
	d->found = row->seq;
	return 1;
}

static int damaged(walk *w, uint64_t seq, sheaf_error *err)
{
	int rc = w->orphan
	                 ? err_set(err, SHEAF_DAMAGED, "record %llu hangs on one that is not there",
	                           (unsigned long long)seq)
	                 : err_set(err, SHEAF_DAMAGED, "record %llu cannot be read",
	                           (unsigned long long)seq);
	err_hint(err, "sheaf check tells more; a context can be asked for with allow_damage");
	return rc;
}

/* The wanted entry cannot be had: fail, or go on at the nearest earlier one. */
static int walk_detour(walk *w, sheaf_error *err)
{
	detour d = {.w = w};
	if (w->on_damage == NULL && !w->orphan && !w->repaired)
		return damaged(w, w->want, err);
	/* An orphan stands before the search; anything else is itself what is lost. */
	int rc = w->orphan ? 0 : detour_report(&d, w->want);
	if (rc < 0)
		return rc;
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = w->want - 1,
		.backward = 1,
		.limit = SIZE_MAX,
		.kinds = KINDS_ON_PATH,
	};
	if (scan.from != 0)
		rc = read_scan(w->s, w->head, &scan, detour_row, &d, err);
	if (rc != 0)
		return rc;
	if (w->orphan && !d.lost) {
		if (w->on_damage == NULL)
			return damaged(w, w->want, err);
		rc = detour_report(&d, 0);
	}
	w->want = d.found;
	w->done = d.found == 0;
	w->orphan = w->repaired = false;
	return rc < 0 ? rc : 0;
}

static int walk_range(walk *w, size_t limit, sheaf_error *err)
{
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = w->want,
		.backward = 1,
		.limit = limit,
		.kinds = KINDS_ON_PATH,
	};
	uint64_t from = w->want;
	w->range_low = from > limit ? from - limit + 1 : 1;
	w->got = false;
	int rc = read_scan(w->s, w->head, &scan, walk_row, w, err);
	if (rc != 0 || w->done)
		return rc;
	/* Nothing new was given, or the next one was not where it should be. */
	if (w->orphan || !w->got)
		return walk_detour(w, err);
	return 0;
}

int read_path(sheaf_session *s, const sheaf_head *head, uint64_t leaf_seq, read_entry_fn fn,
              read_damage_fn on_damage, void *ctx, sheaf_error *err)
{
	if (leaf_seq == 0)
		return 0;
	walk w = {.s = s,
	          .head = head,
	          .fn = fn,
	          .on_damage = on_damage,
	          .ctx = ctx,
	          .a = arena_new(),
	          .want = leaf_seq};
	if (w.a == NULL)
		return err_nomem(err);
	size_t limit = RANGE_FIRST;
	int rc = 0;
	while (rc == 0 && !w.done) {
		rc = walk_range(&w, limit, err);
		limit = RANGE_NEXT;
	}
	arena_free(w.a);
	json_free(w.doc);
	return err_pass(err, &w.err, rc);
}
