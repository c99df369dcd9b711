/* What was summed up and compacted in the course of a session. */
#include "base/err.h"
#include "base/str.h"
#include "core/facts.h"
#include "sheaf/todo.h"

/* ---- Summaries ---------------------------------------------------------- */

int sheaf_session_add_summary(sheaf_session *session, sheaf_str text, sheaf_str leaf,
                              const sheaf_entry_options *entry, const sheaf_append_options *how,
                              sheaf_appended *out, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	char id[SHEAF_ID_ROOM] = "";
	uint64_t seq;
	head_branch b;
	if (session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	if (text.len == 0)
		return err_set(err, SHEAF_INVALID, "the summary is empty");
	int rc = text_check(text, SHEAF_BODY_BYTES_MAX, "summary", err);
	if (rc == 0)
		rc = session_peek(session, &head, NULL, err);
	if (rc == 0 && leaf.len != 0)
		rc = read_resolve(session, head, leaf, id, &seq, err);
	else if (rc == 0 && head_branch_find(head, SHEAF_STR("main"), &b) && b.leaf_seq != 0)
		str_copy_cut(id, sizeof(id), b.leaf);
	if (rc != 0)
		return rc;
	buf_lit(&body, "{\"summary\":{\"text\":");
	buf_json(&body, text);
	buf_lit(&body, ",\"leaf\":");
	if (id[0] != '\0')
		buf_json(&body, sheaf_str_of(id));
	else
		buf_lit(&body, "null");
	buf_lit(&body, "}}");
	rc = buf_status(&body, err);
	return rc != 0 ? rc
	               : sheaf_session_append_json(session, SHEAF_STR("summary"), buf_view(&body),
	                                           entry, how, out, err);
}

static int take_summary(facts *f, const record *r, const sheaf_row *row, const json_val *payload)
{
	int ok = 1;
	sheaf_summary *s = arena_zalloc(f->a, sizeof(*s));
	if (s == NULL)
		return err_nomem(&f->err);
	s->id = arena_dup(f->a, r->id, &ok);
	s->text = facts_str(f, payload, "text", &ok);
	s->leaf = facts_str(f, payload, "leaf", &ok);
	s->seq = row->seq;
	s->time_us = facts_time(r);
	if (!ok)
		return err_nomem(&f->err);
	return s->text.ptr != NULL ? facts_add(f, s) : 0;
}

typedef struct summaries_box {
	sheaf_summaries summaries;
	arena *a;
} summaries_box;

static int give_summaries(sheaf_summaries **out, facts *f, uint64_t revision, sheaf_error *err)
{
	void **items;
	summaries_box *box = facts_box(f, sizeof(*box), &items, err);
	if (box == NULL)
		return SHEAF_NOMEM;
	box->summaries = (sheaf_summaries){f->count, (const sheaf_summary *const *)items, revision};
	box->a = f->a;
	f->a = NULL;
	*out = &box->summaries;
	return 0;
}

int sheaf_session_summaries(sheaf_summaries **out, sheaf_session *session, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	_cleanup_(facts_end) facts f = {0};
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = session_peek(session, &head, NULL, err);
	if (rc == 0)
		rc = facts_begin(&f, "summary", take_summary, err);
	if (rc == 0)
		rc = facts_scan(&f, session, head, SHEAF_KIND_SUMMARY, err);
	return rc != 0 ? rc : give_summaries(out, &f, sheaf_head_revision(head), err);
}

void sheaf_summaries_free(const sheaf_summaries *summaries)
{
	if (summaries != NULL)
		arena_free(((const summaries_box *)(const void *)summaries)->a);
}

/* ---- Compactions -------------------------------------------------------- */

static uint64_t number_of(const json_val *payload, const char *name)
{
	uint64_t value = 0;
	return json_u64(json_get(payload, name), &value) ? value : 0;
}

static int take_compaction(facts *f, const record *r, const sheaf_row *row, const json_val *payload)
{
	int ok = 1;
	sheaf_compaction_info *c = arena_zalloc(f->a, sizeof(*c));
	if (c == NULL)
		return err_nomem(&f->err);
	c->id = arena_dup(f->a, r->id, &ok);
	c->branch = arena_dup(f->a, r->branch.ptr != NULL ? r->branch : SHEAF_STR("main"), &ok);
	c->summary = facts_str(f, payload, "summary", &ok);
	c->trigger = facts_str(f, payload, "trigger", &ok);
	c->first_kept_id = facts_str(f, payload, "first_kept_entry_id", &ok);
	c->tokens_before = number_of(payload, "tokens_before");
	c->tokens_after = number_of(payload, "tokens_after");
	c->seq = row->seq;
	c->time_us = facts_time(r);
	return ok ? facts_add(f, c) : err_nomem(&f->err);
}

static int compactions_of(facts *f, sheaf_session *s, const sheaf_head *head, sheaf_str branch,
                          sheaf_error *err)
{
	head_branch b;
	if (branch.ptr == NULL)
		return facts_scan(f, s, head, SHEAF_KIND_COMPACTION, err);
	int rc = branch_name_check(&branch, err);
	if (rc != 0)
		return rc;
	if (!head_branch_find(head, branch, &b))
		return err_set(err, SHEAF_NOT_FOUND, "there is no such branch");
	return b.leaf_seq != 0 ? facts_path(f, s, head, b.leaf_seq, SHEAF_KIND_COMPACTION, err) : 0;
}

typedef struct compactions_box {
	sheaf_compactions compactions;
	arena *a;
} compactions_box;

static int give_compactions(sheaf_compactions **out, facts *f, uint64_t revision, sheaf_error *err)
{
	void **items;
	compactions_box *box = facts_box(f, sizeof(*box), &items, err);
	if (box == NULL)
		return SHEAF_NOMEM;
	box->compactions = (sheaf_compactions){
		f->count, (const sheaf_compaction_info *const *)items, revision};
	box->a = f->a;
	f->a = NULL;
	*out = &box->compactions;
	return 0;
}

int sheaf_session_compactions(sheaf_compactions **out, sheaf_session *session, sheaf_str branch,
                              sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	_cleanup_(facts_end) facts f = {0};
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = session_head(session, &head, NULL, err);
	if (rc == 0)
		rc = facts_begin(&f, "compaction", take_compaction, err);
	if (rc == 0)
		rc = compactions_of(&f, session, head, branch, err);
	return rc != 0 ? rc : give_compactions(out, &f, sheaf_head_revision(head), err);
}

void sheaf_compactions_free(const sheaf_compactions *compactions)
{
	if (compactions != NULL)
		arena_free(((const compactions_box *)(const void *)compactions)->a);
}
