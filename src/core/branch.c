/* Branches: moving, forgetting, leaving with a summary; and what a name stands for. */
#include "base/err.h"
#include "base/str.h"
#include "core/read.h"
#include "core/write.h"

/* How often a summary is written anew because the branch moved on under it. */
#define SUMMARY_TRIES 64

/* Appends one leaf fact; the target is resolved. */
static int append_leaf(sheaf_session *s, sheaf_str name, const buf *body, bool must_exist,
                       const sheaf_append_options *how, sheaf_appended *out, sheaf_error *err)
{
	draft d, *list[1] = {&d};
	int rc = buf_status(body, err);
	if (rc == 0)
		rc = draft_init(&d, SHEAF_STR("leaf"), buf_view(body), true, NULL, err);
	if (rc != 0)
		return rc;
	d.parent_seq = 1; /* nothing is left to resolve */
	append a = {
		.drafts = list,
		.count = 1,
		.branch = name,
		.branch_must_exist = must_exist,
		.how = how,
	};
	rc = append_run(s, &a, out, err);
	draft_free(&d);
	return rc;
}

int sheaf_session_branch(sheaf_session *session, sheaf_str name, sheaf_str target,
                         const sheaf_append_options *how, sheaf_appended *out, sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	_cleanup_(head_freep) sheaf_head *head = NULL;
	char id[SHEAF_ID_ROOM] = "";
	uint64_t seq = 0;
	if (session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = branch_name_check(&name, err);
	if (rc == 0 && target.len != 0) {
		rc = session_head(session, &head, NULL, err);
		if (rc == 0)
			rc = read_resolve(session, head, target, id, &seq, err);
	}
	if (rc != 0)
		return rc;
	body_leaf(&body, name, sheaf_str_of(id), seq);
	return append_leaf(session, name, &body, false, how, out, err);
}

int sheaf_session_branch_delete(sheaf_session *session, sheaf_str name,
                                const sheaf_append_options *how, sheaf_appended *out,
                                sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	if (session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = branch_name_check(&name, err);
	if (rc != 0)
		return rc;
	if (str_is(name, "main"))
		return err_set(err, SHEAF_INVALID, "main cannot be deleted");
	body_leaf_gone(&body, name);
	return append_leaf(session, name, &body, true, how, out, err);
}

int sheaf_session_clear(sheaf_session *session, sheaf_error *err)
{
	return sheaf_session_branch(session, (sheaf_str){NULL, 0}, (sheaf_str){NULL, 0}, NULL, NULL,
	                            err);
}

/* ---- Leaving with a summary --------------------------------------------- */

typedef struct leaving {
	sheaf_session *s;
	sheaf_str name;
	sheaf_str summary;
	char target[SHEAF_ID_ROOM];
	sheaf_append_options how;
	sheaf_appended *out;
} leaving;

static int leave(leaving *l, sheaf_str from, sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	buf_lit(&body, "\"branch_summary\":{\"summary\":");
	buf_json(&body, l->summary);
	buf_lit(&body, ",\"from_id\":");
	if (from.len != 0)
		buf_json(&body, from);
	else
		buf_lit(&body, "null");
	buf_char(&body, '}');
	int rc = buf_status(&body, err);
	if (rc != 0)
		return rc;
	/* An entry on a branch moves its leaf, so the summary alone does both. */
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	entry.branch = l->name;
	entry.has_parent = 1;
	entry.parent_id = sheaf_str_of(l->target);
	draft d, *list[1] = {&d};
	rc = draft_init(&d, SHEAF_STR("branch_summary"), buf_view(&body), true, &entry, err);
	if (rc != 0)
		return rc;
	append a = {.drafts = list, .count = 1, .branch = l->name, .how = &l->how};
	rc = append_run(l->s, &a, l->out, err);
	draft_free(&d);
	return rc;
}

/*
 * The summary names the leaf it leaves, so it may be stored only if that is the
 * leaf: without an expectation of the caller's it expects just this, and reads
 * again when somebody was faster.
 */
static int leave_present(leaving *l, bool ours, sheaf_error *err)
{
	int rc = SHEAF_STALE;
	for (int i = 0; i < SUMMARY_TRIES && rc == SHEAF_STALE; i++) {
		_cleanup_(head_freep) sheaf_head *head = NULL;
		rc = session_head(l->s, &head, NULL, err);
		if (rc != 0)
			return rc;
		head_branch b;
		sheaf_str from = {NULL, 0};
		if (head_branch_find(head, l->name, &b) && b.leaf_seq != 0)
			from = b.leaf;
		if (ours) {
			l->how.expect = SHEAF_EXPECT_LEAF;
			l->how.leaf = from;
		}
		rc = leave(l, from, err);
		if (!ours)
			break;
	}
	return rc;
}

int sheaf_session_branch_with_summary(sheaf_session *session, sheaf_str name, sheaf_str target,
                                      sheaf_str summary, const sheaf_append_options *how,
                                      sheaf_appended *out, sheaf_error *err)
{
	if (session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	leaving l = {.s = session,
	             .name = name,
	             .summary = summary,
	             .out = out,
	             .how = SHEAF_APPEND_OPTIONS_INIT};
	int rc = branch_name_check(&l.name, err);
	if (rc == 0)
		rc = text_check(summary, SHEAF_BODY_BYTES_MAX, "summary", err);
	if (rc != 0)
		return rc;
	l.how.expect = OPTION(how, expect, SHEAF_EXPECT_DEFAULT);
	l.how.durability = OPTION(how, durability, 0);
	l.how.leaf = OPTION(how, leaf, ((sheaf_str){NULL, 0}));
	l.how.revision = OPTION(how, revision, 0);
	l.how.deadline_us = OPTION(how, deadline_us, 0);

	/* Failures on the way to success must not reach the caller's struct. */
	sheaf_error local = {0};
	if (target.len != 0) {
		_cleanup_(head_freep) sheaf_head *head = NULL;
		uint64_t seq;
		rc = session_head(session, &head, NULL, err);
		if (rc == 0)
			rc = read_resolve(session, head, target, l.target, &seq, err);
		if (rc != 0)
			return rc;
	}
	bool ours = l.how.expect == SHEAF_EXPECT_DEFAULT || l.how.expect == SHEAF_EXPECT_ANY;
	rc = leave_present(&l, ours, &local);
	return err_pass(err, &local, rc);
}

/* ---- What a name stands for --------------------------------------------- */

typedef struct prefix {
	sheaf_str wanted;
	char id[SHEAF_ID_ROOM];
	size_t matches;
} prefix;

static int prefix_row(void *ctx, const sheaf_row *row)
{
	prefix *p = ctx;
	if (row->damaged || row->id.len < p->wanted.len ||
	    memcmp(row->id.ptr, p->wanted.ptr, p->wanted.len) != 0)
		return 0;
	if (p->matches == 0)
		str_copy_cut(p->id, sizeof(p->id), row->id);
	return ++p->matches > 1;
}

static int resolve_prefix(sheaf_session *s, const sheaf_head *head, sheaf_str what,
                          char out[SHEAF_ID_ROOM], sheaf_error *err)
{
	prefix p = {.wanted = what};
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = sheaf_head_revision(head),
		.backward = 1,
		.limit = SIZE_MAX,
		.kinds = SHEAF_KINDS_ENTRIES,
	};
	int rc = read_scan(s, head, &scan, prefix_row, &p, err);
	if (rc != 0)
		return rc;
	if (p.matches == 0)
		return err_set(err, SHEAF_NOT_FOUND, "there is no such entry or label");
	if (p.matches > 1)
		return err_set(err, SHEAF_INVALID, "several entries begin like this");
	memcpy(out, p.id, SHEAF_ID_ROOM);
	return 0;
}

int sheaf_session_resolve(sheaf_session *session, sheaf_str what, char out[SHEAF_ID_ROOM],
                          sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	sheaf_error local;
	uint64_t seq;
	if (session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = session_head(session, &head, NULL, err);
	if (rc != 0)
		return rc;
	rc = read_resolve(session, head, what, out, &seq, &local);
	if (rc == SHEAF_NOT_FOUND && what.len >= 4 && what.len <= SHEAF_ID_BYTES_MAX)
		return resolve_prefix(session, head, what, out, err);
	if (rc != 0 && err != NULL)
		*err = local;
	return rc;
}
