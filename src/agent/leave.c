/* Compacting on demand, and moving a branch with a summary of what it leaves behind. */
#include "agent/agent.h"

#include "base/err.h"

int sheaf_agent_compact(sheaf_agent *agent, sheaf_str instructions,
                        const sheaf_run_options *options, sheaf_appended *out, sheaf_error *err)
{
	run r;
	sheaf_error why = {0};
	int rc = run_open(&r, agent, options, &why);
	if (rc == 0)
		rc = exchange_compact(&r, "manual", instructions, out, &why);
	run_close(&r);
	if (rc != 0 && err != NULL)
		*err = why;
	return rc;
}

/* ---- What is left behind ------------------------------------------------- */

static size_t common_entries(const sheaf_records *a, const sheaf_records *b)
{
	size_t n = 0;
	while (n < a->count && n < b->count && a->items[n]->seq == b->items[n]->seq)
		n++;
	return n;
}

/* The old path, and where it parts from the target's. */
static int find_left(run *r, sheaf_str target, sheaf_records **old, size_t *from, sheaf_error *err)
{
	_cleanup_(records_freep) sheaf_records *there = NULL;
	int rc = sheaf_session_path(old, r->session, r->branch, NOTHING, 0, err);
	*from = 0;
	if (rc == 0 && target.len != 0) {
		rc = sheaf_session_path(&there, r->session, r->branch, target, 0, err);
		if (rc == 0)
			*from = common_entries(*old, there);
	}
	return rc;
}

static size_t count_messages(const sheaf_records *path, size_t from)
{
	size_t n = 0;
	for (size_t i = from; i < path->count; i++)
		n += path->items[i]->kind == SHEAF_KIND_MESSAGE;
	return n;
}

/* Puts what is left into a session of its own, so that it can be summarised as a whole. */
static int copy_left(sheaf_session *scratch, const sheaf_records *path, size_t from,
                     sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	int rc = 0;
	for (size_t i = from; rc == 0 && i < path->count; i++) {
		const sheaf_entry *entry = path->items[i];
		if (entry->kind != SHEAF_KIND_MESSAGE && entry->kind != SHEAF_KIND_BRANCH_SUMMARY)
			continue;
		buf_reset(&body);
		buf_char(&body, '{');
		buf_str(&body, entry->body);
		buf_char(&body, '}');
		rc = buf_status(&body, err);
		if (rc == 0)
			rc = sheaf_session_append_json(scratch, entry->type, buf_view(&body), NULL,
			                               NULL, NULL, err);
	}
	return rc;
}

static int plan_left(run *scratch, sheaf_cut **plan, sheaf_error *err)
{
	sheaf_compaction_options how = scratch->agent->compaction;
	how.branch = NOTHING;
	how.keep_recent = 0;
	how.extra_tokens = 0;
	how.provider = scratch->provider;
	how.model = scratch->model;
	how.trigger = SHEAF_STR("branch");
	how.instructions = SHEAF_STR("The conversation goes on from before this part. Say what "
	                             "was tried here, what was found, and which files were "
	                             "changed.");
	/* A call that nobody has answered would keep it from being planned. */
	int rc = sheaf_session_leaf(scratch->session, NOTHING, scratch->leaf, err);
	if (rc == 0)
		rc = tools_close(scratch, SHEAF_STR("interrupted"), err);
	return rc == 0 ? sheaf_compaction_plan(plan, scratch->session, &how, err) : rc;
}

static int summarise_left(run *r, const sheaf_records *path, size_t from, sheaf_summary_sink *sink,
                          sheaf_error *err)
{
	run scratch = *r;
	sheaf_key key = {0};
	sheaf_cut *plan = NULL;
	int rc = sheaf_session_open(&scratch.session, r->agent->memory, &key, NULL, err);
	if (rc != 0)
		return rc;
	scratch.branch = NOTHING;
	scratch.quiet = true;
	rc = copy_left(scratch.session, path, from, err);
	if (rc == 0)
		rc = plan_left(&scratch, &plan, err);
	if (rc == 0) {
		rc = exchange_summarise(r, plan, sink, err);
		sheaf_event event = {.kind = SHEAF_EVENT_COMPACTION_END, .code = rc};
		if (rc != 0)
			event.text = sheaf_str_of(err->message);
		run_event(r, &event);
	}
	sheaf_cut_free(plan);
	key = sheaf_session_key(scratch.session);
	(void)sheaf_store_delete(NULL, r->agent->memory, &key, NULL, NULL);
	sheaf_session_close(scratch.session);
	return rc;
}

/* ---- Moving -------------------------------------------------------------- */

static bool wants_summary(const run *r, size_t count)
{
	const sheaf_agent_options *o = &r->agent->o;
	if (count == 0 || o->branch_summary == SHEAF_SUMMARY_NEVER)
		return false;
	return o->branch_summary == SHEAF_SUMMARY_ALWAYS || o->ask(o->ask_ctx, r->session, count);
}

static int move_with_summary(run *r, sheaf_str target, const sheaf_records *path, size_t from,
                             sheaf_error *err)
{
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	sheaf_summary_sink *sink = sheaf_summary_sink_new();
	int rc = sink != NULL ? summarise_left(r, path, from, sink, err) : err_nomem(err);
	how.expect = SHEAF_EXPECT_LEAF; /* else what was said meanwhile is missing in the summary */
	how.leaf = sheaf_str_of(r->leaf);
	if (rc == 0)
		rc = sheaf_session_branch_with_summary(r->session, r->branch, target,
		                                       sheaf_summary_sink_text(sink), &how, NULL,
		                                       err);
	sheaf_summary_sink_free(sink);
	return rc;
}

static int move(run *r, sheaf_str target, int32_t *summarised, sheaf_error *err)
{
	_cleanup_(records_freep) sheaf_records *path = NULL;
	size_t from = 0;
	int rc = 0;
	bool with = false;
	if (r->agent->o.branch_summary != SHEAF_SUMMARY_NEVER) {
		rc = find_left(r, target, &path, &from, err);
		with = rc == 0 && wants_summary(r, count_messages(path, from));
	}
	if (rc == 0)
		rc = with ? move_with_summary(r, target, path, from, err)
		          : sheaf_session_branch(r->session, r->branch, target, NULL, NULL, err);
	if (rc == 0 && summarised != NULL)
		*summarised = with;
	return rc;
}

int sheaf_agent_branch(sheaf_agent *agent, sheaf_str target, const sheaf_run_options *options,
                       int32_t *summarised, sheaf_error *err)
{
	run r;
	sheaf_error why = {0};
	if (summarised != NULL)
		*summarised = 0;
	int rc = run_open(&r, agent, options, &why);
	if (rc == 0)
		rc = move(&r, target, summarised, &why);
	run_close(&r);
	if (rc != 0 && err != NULL)
		*err = why;
	return rc;
}
