/* Heads from lines: what a store does that rebuilds a head from its log. */
#include "entry/head_inside.h"

#include <string.h>

#include "base/err.h"
#include "base/str.h"

static int fold_header(sheaf_head *h, sheaf_row *row, sheaf_error *err)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	_cleanup_(json_freep) json_doc *doc = NULL;
	header hd;
	if (a == NULL)
		return err_nomem(err);
	int rc = header_read(&hd, row->bytes, a, &doc, err);
	if (rc == 0 && !hd.ours)
		rc = err_set(err, SHEAF_DAMAGED, "the header is not ours");
	if (rc == 0)
		rc = head_begin(h, &hd, err);
	if (rc != 0)
		return rc == SHEAF_FORMAT ? err_set(err, SHEAF_DAMAGED, "the header is not one")
		                          : rc;
	row->seq = hd.base;
	row->parent = 0;
	row->kind = SHEAF_KIND_SESSION;
	row->id = SHEAF_STR("");
	return 0;
}

/* An entry's parent as a number. */
static int find_parent(const sheaf_head *h, const record *r, sheaf_seq_of_fn seq_of, void *ctx,
                       uint64_t *out, sheaf_error *err)
{
	*out = 0;
	if (r->parent_id.ptr == NULL)
		return 0;
	/* Inherited where it was written; in a copy that took the inherited records in, it still
	 * names the same record. The scan has checked that it precedes its child. */
	if (r->parent_seq != 0) {
		*out = r->parent_seq;
		return 0;
	}
	if (seq_of != NULL && seq_of(ctx, r->parent_id, out)) {
		if (*out > h->origin->base && *out < r->seq)
			return 0;
		return err_set(err, SHEAF_DAMAGED, "a parent does not precede its child");
	}
	*out = h->origin->at_seq;
	if (*out != 0 && str_eq(r->parent_id, h->origin->at))
		return 0;
	/* The parent may be what a lost record stands for; then that is where a walk must stop. */
	*out = h->n.last_lost;
	return *out != 0 ? 0 : err_set(err, SHEAF_DAMAGED, "a parent is not in the log");
}

/* An escaped id has no bytes in the line to point at: it is kept in the head. */
static sheaf_str id_for_row(sheaf_head *h, const record *r)
{
	uintptr_t at = (uintptr_t)r->id.ptr, line = (uintptr_t)r->line.ptr;
	if (at >= line && at < line + r->line.len)
		return r->id;
	memcpy(h->id, r->id.ptr, r->id.len);
	h->id[r->id.len] = '\0';
	return str_make(h->id, r->id.len);
}

static int scan(record *r, sheaf_str line, arena **scratch, sheaf_error *err)
{
	if (record_scan(r, line, NULL) == 0)
		return 0;
	/* Hardly ever there is something to unescape; only then memory is needed. */
	*scratch = arena_new();
	if (*scratch == NULL)
		return err_nomem(err);
	int rc = record_scan(r, line, *scratch);
	if (rc == SHEAF_NOMEM)
		return err_nomem(err);
	return rc == 0 ? 0 : err_set(err, rc, "a line is not shaped like a record");
}

int sheaf_head_fold(sheaf_head *head, sheaf_row *row, sheaf_seq_of_fn seq_of, void *ctx,
                    sheaf_error *err)
{
	if (!head->begun)
		return fold_header(head, row, err);
	_cleanup_(arena_freep) arena *scratch = NULL;
	_cleanup_(json_freep) json_doc *doc = NULL;
	record r;
	int64_t time_us;
	uint64_t parent = 0;
	int rc = scan(&r, row->bytes, &scratch, err);
	if (rc != 0)
		return rc;
	if (r.seq != head->n.revision + 1)
		return err_set(err, SHEAF_DAMAGED, "record %llu follows record %llu",
		               (unsigned long long)r.seq, (unsigned long long)head->n.revision);
	if (!clock_parse(r.timestamp, &time_us))
		return err_set(err, SHEAF_DAMAGED, "a record has no time");
	if (!record_kind_is_fact(r.kind))
		rc = find_parent(head, &r, seq_of, ctx, &parent, err);
	else if (r.kind == SHEAF_KIND_LABEL)
		parent = head->n.last_label;
	if (rc == 0)
		rc = head_apply(head, r.kind, r.id, r.branch, r.body, state_delta_of(r.body),
		                time_us, r.seq, &doc, err);
	/* A log that says more than a log can say is damaged. */
	if (rc == SHEAF_LIMIT)
		rc = err_set(err, SHEAF_DAMAGED, "a log has too many branches");
	if (rc != 0)
		return rc;
	row->seq = r.seq;
	row->parent = parent;
	row->kind = r.kind;
	row->id = id_for_row(head, &r);
	return 0;
}
