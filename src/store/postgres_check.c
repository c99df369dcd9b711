/* Check: reads and verifies everything of a session, or of all. */
#include "store/postgres.h"

typedef struct checking {
	pg_place at;
	sheaf_problem_fn fn;
	void *ctx;
	sheaf_check_totals *totals;
	const sheaf_store_key *key;
	uint64_t next; /* the seq that must come */
	sheaf_error *err;
} checking;

static int report(const checking *k, int32_t what, uint64_t seq, uint64_t bytes, const char *detail)
{
	sheaf_problem p = {
		.what = what,
		.app = k->key->app,
		.user = k->key->user,
		.session = k->key->session,
		.seq = seq,
		.bytes = bytes,
		.detail = sheaf_str_of(detail),
	};
	return k->fn(k->ctx, &p);
}

static int check_row(void *ctx, const sheaf_row *row)
{
	checking *k = ctx;
	int rc = 0;
	k->totals->bytes += row->bytes.len + 1;
	if (row->damaged)
		rc = report(k, SHEAF_PROBLEM_DAMAGE, row->seq, row->bytes.len,
		            "a record cannot be read");
	if (row->kind == SHEAF_KIND_SESSION) {
		k->next = row->seq + 1;
		return rc;
	}
	k->totals->records++;
	for (; rc == 0 && k->next < row->seq; k->next++)
		rc = report(k, SHEAF_PROBLEM_DAMAGE, k->next, 0, "a record is not there");
	k->next = row->seq + 1;
	return rc;
}

/* Every session a fork reads must be there and long enough. Of a hidden one that does not matter:
 * whoever reads it has the same links, and if nobody does it only waits to be removed. */
static int check_links(const checking *k, const sheaf_head *head)
{
	sheaf_str session;
	uint64_t base;
	if (sheaf_head_hidden(head))
		return 0;
	sheaf_head *source = sheaf_head_new();
	int rc = source != NULL ? 0 : err_nomem(k->err);
	for (size_t i = 0; rc == 0 && sheaf_head_link(head, i, &session, &base); i++) {
		sheaf_store_key key = *k->key;
		sheaf_head_state state;
		key.session = session;
		rc = pg_head(k->at, &key, source, &state, k->err);
		if (rc == SHEAF_NOT_FOUND || rc == SHEAF_DAMAGED ||
		    (rc == 0 && sheaf_head_revision(source) < base))
			rc = report(k, SHEAF_PROBLEM_FORK, base, 0,
			            "the session it was forked from is not there or too short");
	}
	sheaf_head_free(source);
	return rc;
}

static int check_session(checking *k)
{
	sheaf_scan scan = {.size = sizeof(scan), .limit = SIZE_MAX, .kinds = SHEAF_KINDS_ALL};
	sheaf_head_state state;
	sheaf_head *head = sheaf_head_new();
	if (head == NULL)
		return err_nomem(k->err);
	int rc = pg_head(k->at, k->key, head, &state, k->err);
	bool readable = rc == 0;
	if (rc == SHEAF_DAMAGED)
		rc = 0; /* the rows below say where */
	if (rc == 0)
		rc = pg_header(k->at, k->key, check_row, k, k->err);
	if (rc == SHEAF_NOT_FOUND && readable)
		rc = report(k, SHEAF_PROBLEM_DAMAGE, 0, 0, "the header is not there");
	if (rc == 0)
		rc = pg_scan(k->at, k->key, &scan, check_row, k, k->err);
	for (; rc == 0 && readable && k->next <= sheaf_head_revision(head); k->next++)
		rc = report(k, SHEAF_PROBLEM_DAMAGE, k->next, 0, "a record is not there");
	if (rc == 0 && readable)
		rc = check_links(k, head);
	if (rc == 0)
		k->totals->sessions++;
	sheaf_head_free(head);
	return rc;
}

static int check_listed(void *ctx, const sheaf_store_key *key,
                        UNUSED const sheaf_session_info *info)
{
	checking *k = ctx;
	k->key = key;
	int rc = check_session(k);
	return rc == SHEAF_NOT_FOUND ? 0 : rc; /* deleted meanwhile */
}

int pg_check(pg_place at, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
             sheaf_check_totals *totals, sheaf_error *err)
{
	checking k = {.at = at, .fn = fn, .ctx = ctx, .totals = totals, .key = key, .err = err};
	if (key != NULL)
		return check_session(&k);
	sheaf_list_query all = {.size = sizeof(all), .hidden = 1};
	return pg_list(at, &all, check_listed, &k, err);
}
