/* Reading calls: pages of records, the path, one record, children, labels. */
#include <stdlib.h>

#include "base/err.h"
#include "base/str.h"
#include "core/gather.h"

#define PAGE_DEFAULT 100u
#define PAGE_MAX 100000u

/* ---- Pages -------------------------------------------------------------- */

typedef struct page {
	gather g;
	size_t limit;
	bool newest;
	bool by_branch;
	sheaf_str branch;
	int64_t after_us;
	uint64_t above; /* own_only: rows at or below are not wanted */
	uint64_t next_seq;
} page;

static bool page_wants(const page *p, const record *r)
{
	if (p->by_branch) {
		/* Facts are the whole log's; only entries belong to a branch. */
		sheaf_str branch = r->branch.ptr != NULL ? r->branch : SHEAF_STR("main");
		if (record_kind_is_fact(r->kind) || !str_eq(branch, p->branch))
			return false;
	}
	int64_t time_us;
	return p->after_us == 0 || p->newest ||
	       (clock_parse(r->timestamp, &time_us) && time_us >= p->after_us);
}

static int page_row(void *ctx, const sheaf_row *row)
{
	page *p = ctx;
	record r;
	bool readable;
	if (row->seq <= p->above)
		return 1;
	int rc = gather_look(&p->g, row, &r, &readable);
	if (rc != 0)
		return rc;
	if (readable && !page_wants(p, &r))
		return 0;
	/* A page of large records ends early; the next one goes on there. */
	if (p->g.count == p->limit ||
	    (p->g.count != 0 && p->g.bytes + row->bytes.len > SHEAF_CONTEXT_BYTES_DEFAULT)) {
		p->next_seq = row->seq;
		return 1;
	}
	return gather_add(&p->g, row, readable ? &r : NULL);
}

/* The newest ones are chosen by number; of these, the time picks. */
static void page_after(page *p)
{
	size_t kept = 0;
	gather_reverse(&p->g);
	for (size_t i = 0; i < p->g.count; i++) {
		sheaf_entry *e = p->g.items[i];
		if (p->after_us == 0 || e->damaged || e->time_us >= p->after_us)
			p->g.items[kept++] = e;
	}
	p->g.count = kept;
}

/* Without a head the session is no fork, and its end is where the store says. */
static int page_options(page *p, sheaf_scan *scan, const sheaf_read_options *o,
                        const sheaf_head *head, sheaf_error *err)
{
	uint64_t last = head != NULL ? sheaf_head_revision(head) : UINT64_MAX;
	p->limit = OPTION(o, limit, 0);
	if (p->limit == 0)
		p->limit = PAGE_DEFAULT;
	if (p->limit > PAGE_MAX)
		return err_set(err, SHEAF_LIMIT, "a page has at most %u records", PAGE_MAX);
	p->newest = OPTION(o, newest, 0) != 0;
	p->after_us = OPTION(o, after_us, 0);
	p->branch = OPTION(o, branch, ((sheaf_str){NULL, 0}));
	p->by_branch = p->branch.ptr != NULL;
	if (p->by_branch && p->branch.len == 0)
		p->branch = SHEAF_STR("main");
	p->above = head != NULL && OPTION(o, own_only, 0) ? head_base(head) : 0;

	uint64_t from = OPTION(o, from_seq, 0);
	*scan = (sheaf_scan){.size = sizeof(*scan), .from = from, .limit = SIZE_MAX};
	scan->kinds = OPTION(o, kinds, 0);
	if (scan->kinds == 0)
		scan->kinds = SHEAF_KINDS_ALL;
	scan->backward = p->newest || OPTION(o, backward, 0);
	if (scan->backward && (from == 0 || from > last))
		scan->from = last;
	if (!scan->backward && from <= p->above)
		scan->from = p->above + 1;
	/* Without filters of our own the store need not read further than the page. */
	if (!p->by_branch && (p->after_us == 0 || p->newest))
		scan->limit = p->limit + 1;
	return 0;
}

/* The rows of a page, and the head they belong to; in one step if `at_once`. */
static int page_read(page *p, sheaf_session *s, const sheaf_read_options *options, bool at_once,
                     sheaf_head **head, sheaf_error *err)
{
	sheaf_scan scan;
	int rc = at_once ? 0 : session_head(s, head, NULL, err);
	if (rc == 0)
		rc = page_options(p, &scan, options, *head, err);
	if (rc == 0)
		rc = gather_begin(&p->g, !OPTION(options, raw, 0), err);
	if (rc != 0)
		return rc;
	rc = at_once ? session_read(s, &scan, page_row, p, head, err)
	             : read_scan(s, *head, &scan, page_row, p, err);
	return err_pass(err, &p->g.err, rc);
}

int sheaf_session_records(sheaf_records **out, sheaf_session *session,
                          const sheaf_read_options *options, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	page p = {.next_seq = 0};
	bool at_once = session_reads(session);
	int rc = page_read(&p, session, options, at_once, &head, err);
	if (rc == 0 && at_once && head_base(head) != 0) {
		/* Another session has taken the place of the one that was known. */
		gather_end(&p.g);
		head_freep(&head);
		p = (page){.next_seq = 0};
		rc = page_read(&p, session, options, false, &head, err);
	}
	if (rc == 0 && p.newest)
		page_after(&p);
	if (rc == 0)
		rc = gather_parents(&p.g, session, head, err);
	if (rc == 0)
		rc = gather_finish(out, &p.g, sheaf_head_revision(head), p.next_seq, err);
	gather_end(&p.g);
	return rc;
}

/* ---- The path ----------------------------------------------------------- */

typedef struct path_take {
	gather g;
	size_t limit;
	bool too_large;
} path_take;

static int path_row(void *ctx, const sheaf_row *row, const record *r)
{
	path_take *p = ctx;
	if (p->g.bytes + row->bytes.len > SHEAF_CONTEXT_BYTES_DEFAULT) {
		p->too_large = true;
		return 1;
	}
	int rc = gather_add(&p->g, row, r);
	return rc != 0 ? rc : p->g.count == p->limit;
}

/* Where a path begins: the named entry, or the branch's leaf (0 before the first entry). */
static int path_leaf(sheaf_session *s, const sheaf_head *head, sheaf_str branch, sheaf_str leaf,
                     uint64_t *seq, sheaf_error *err)
{
	char id[SHEAF_ID_ROOM];
	if (leaf.len != 0)
		return read_resolve(s, head, leaf, id, seq, err);
	head_branch b;
	int rc = branch_name_check(&branch, err);
	if (rc != 0)
		return rc;
	if (!head_branch_find(head, branch, &b))
		return err_set(err, SHEAF_NOT_FOUND, "there is no such branch");
	*seq = b.leaf_seq;
	return 0;
}

int sheaf_session_path(sheaf_records **out, sheaf_session *session, sheaf_str branch,
                       sheaf_str leaf, size_t limit, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	uint64_t seq;
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = session_head(session, &head, NULL, err);
	if (rc == 0)
		rc = path_leaf(session, head, branch, leaf, &seq, err);
	if (rc != 0)
		return rc;
	path_take p = {.limit = limit};
	rc = gather_begin(&p.g, true, err);
	if (rc == 0)
		rc = err_pass(err, &p.g.err,
		              read_path(session, head, seq, path_row, NULL, &p, err));
	if (rc == 0 && p.too_large) {
		rc = err_set(err, SHEAF_TOO_LARGE, "the path has more than %zu bytes",
		             SHEAF_CONTEXT_BYTES_DEFAULT);
		err_hint(err, "read it in pages, or ask for fewer entries");
	}
	if (rc == 0) {
		gather_reverse(&p.g);
		rc = gather_labels(&p.g, session, head, err);
	}
	if (rc == 0)
		rc = gather_parents(&p.g, session, head, err);
	if (rc == 0)
		rc = gather_finish(out, &p.g, sheaf_head_revision(head), 0, err);
	gather_end(&p.g);
	return rc;
}

/* ---- One record --------------------------------------------------------- */

/* By id any record, by label an entry. */
static int find_any(sheaf_session *s, const sheaf_head *head, sheaf_str what, uint64_t *seq,
                    sheaf_error *err)
{
	char id[SHEAF_ID_ROOM];
	if (what.len != 0 && what.len <= SHEAF_ID_BYTES_MAX) {
		sheaf_error local;
		int rc = read_find(s, head, what, seq, &local);
		if (rc != 0 && rc != SHEAF_NOT_FOUND && err != NULL)
			*err = local;
		if (rc != SHEAF_NOT_FOUND)
			return rc;
	}
	return read_resolve(s, head, what, id, seq, err);
}

int sheaf_session_get(sheaf_records **out, sheaf_session *session, sheaf_str id, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	_cleanup_(gather_end) gather g = {.a = NULL};
	uint64_t seq;
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = session_head(session, &head, NULL, err);
	if (rc == 0)
		rc = find_any(session, head, id, &seq, err);
	if (rc == 0)
		rc = gather_begin(&g, true, err);
	if (rc == 0)
		rc = err_pass(err, &g.err, read_row(session, head, seq, gather_row, &g, err));
	if (rc == 0 && g.items[0]->damaged)
		rc = err_set(err, SHEAF_DAMAGED, "record %llu cannot be read",
		             (unsigned long long)seq);
	if (rc == 0)
		rc = gather_labels(&g, session, head, err);
	if (rc == 0)
		rc = gather_parents(&g, session, head, err);
	if (rc == 0)
		rc = gather_finish(out, &g, sheaf_head_revision(head), 0, err);
	return rc;
}

/* ---- Children ----------------------------------------------------------- */

typedef struct family {
	gather g;
	uint64_t parent;
} family;

static int family_row(void *ctx, const sheaf_row *row)
{
	family *f = ctx;
	if (row->damaged || row->parent != f->parent)
		return 0;
	return gather_row(&f->g, row);
}

int sheaf_session_children(sheaf_records **out, sheaf_session *session, sheaf_str id,
                           sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	char resolved[SHEAF_ID_ROOM];
	family f = {.parent = 0};
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = session_head(session, &head, NULL, err);
	if (rc == 0 && id.len != 0)
		rc = read_resolve(session, head, id, resolved, &f.parent, err);
	if (rc != 0)
		return rc;
	/* A child comes after its parent, so the search begins there. */
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = f.parent + 1,
		.limit = SIZE_MAX,
		.kinds = SHEAF_KINDS_ENTRIES,
	};
	rc = gather_begin(&f.g, true, err);
	if (rc == 0)
		rc = err_pass(err, &f.g.err, read_scan(session, head, &scan, family_row, &f, err));
	if (rc == 0)
		rc = gather_labels(&f.g, session, head, err);
	if (rc == 0)
		rc = gather_parents(&f.g, session, head, err);
	if (rc == 0)
		rc = gather_finish(out, &f.g, sheaf_head_revision(head), 0, err);
	gather_end(&f.g);
	return rc;
}

/* ---- Labels ------------------------------------------------------------- */

typedef struct labelled {
	sheaf_session *s;
	const sheaf_head *head;
	gather g;
	sheaf_error *err;
} labelled;

static int labelled_take(void *ctx, sheaf_str target, sheaf_str label)
{
	labelled *l = ctx;
	uint64_t seq;
	sheaf_error local;
	int rc = read_entry_seq(l->s, l->head, target, &seq, &local);
	/* In a foreign file a label may hang on nothing, or on a fact. */
	if (rc == SHEAF_NOT_FOUND || rc == SHEAF_INVALID)
		return 0;
	if (rc == 0)
		rc = read_row(l->s, l->head, seq, gather_row, &l->g, &local);
	if (rc != 0) {
		if (l->err != NULL)
			*l->err = local;
		return rc;
	}
	int ok = 1;
	l->g.items[l->g.count - 1]->label = arena_dup(l->g.a, label, &ok);
	return ok ? 0 : SHEAF_NOMEM;
}

static int by_seq(const void *a, const void *b)
{
	const sheaf_entry *const *x = a, *const *y = b;
	return (*x)->seq < (*y)->seq ? -1 : (*x)->seq > (*y)->seq;
}

int sheaf_session_labels(sheaf_records **out, sheaf_session *session, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = session_head(session, &head, NULL, err);
	if (rc != 0)
		return rc;
	labelled l = {.s = session, .head = head, .err = err};
	rc = gather_begin(&l.g, true, err);
	if (rc == 0)
		rc = read_labels(session, head, labelled_take, &l, err);
	if (rc == 0 && l.g.count > 1)
		qsort(l.g.items, l.g.count, sizeof(*l.g.items), by_seq);
	if (rc == 0)
		rc = gather_parents(&l.g, session, head, err);
	if (rc == 0)
		rc = gather_finish(out, &l.g, sheaf_head_revision(head), 0, err);
	gather_end(&l.g);
	return rc;
}
