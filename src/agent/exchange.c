/*
 * One request and its reply: rendered, sent, sent again when that may help, and
 * stored. And compacting, which needs the same of a summariser.
 */
#include "agent/agent.h"

#include "base/err.h"
#include "base/io.h"

/* ---- Contexts and requests ----------------------------------------------- */

int exchange_context(run *r, sheaf_context **out, sheaf_error *err)
{
	sheaf_context_options how = SHEAF_CONTEXT_OPTIONS_INIT;
	how.branch = r->branch;
	how.agent = r->agent->o.agent;
	how.provider = r->provider;
	how.model = r->model;
	return sheaf_session_context(out, r->session, &how, err);
}

static sheaf_render_options render_options(const run *r)
{
	sheaf_render_options how = r->agent->render;
	how.model = r->model;
	how.thinking_level = r->thinking_level;
	how.system = r->system;
	how.system_count = r->system_count;
	if (how.cache_key.ptr == NULL && r->shown != NULL)
		how.cache_key = sheaf_str_of(sheaf_session_id(r->shown));
	return how;
}

static int make_request(run *r, sheaf_request **out, sheaf_error *err)
{
	_cleanup_(context_freep) sheaf_context *context = NULL;
	sheaf_render_options how = render_options(r);
	int rc = exchange_context(r, &context, err);
	return rc == 0 ? sheaf_render(out, context, &how, err) : rc;
}

/* ---- What to do after a reply -------------------------------------------- */

typedef enum verdict {
	TAKEN,    /* it is a reply */
	AGAIN,    /* try again after a pause */
	OVERFLOW, /* compact, then try again */
	OVER      /* give up with the code */
} verdict;

static int fault_error(const exchange *x, int code, sheaf_error *err)
{
	const char *words = x->words[0] != '\0' ? x->words : "it did not say why";
	if (x->status >= 200 && x->status < 300)
		return err_set(err, code, "the model failed: %s", words);
	return err_set(err, code, "the model answered %d: %s", (int)x->status, words);
}

/* `*rc` is what sending returned, and becomes what a run that gives up returns. */
static verdict judge(const run *r, const exchange *x, int *rc, sheaf_error *err)
{
	/* All was said, whatever happened to the connection then, and if it was cancelled too late. */
	bool whole = x->complete && x->fault == SHEAF_FAULT_NONE;
	if (whole && x->stop != SHEAF_STOP_OVERFLOW) {
		*rc = 0;
		return TAKEN;
	}
	if (run_cancelled(r) || *rc == SHEAF_CANCELLED) {
		*rc = err_set(err, SHEAF_CANCELLED, "cancelled");
		return OVER;
	}
	if (x->fault == SHEAF_FAULT_OVERFLOW || whole) {
		*rc = err_set(err, SHEAF_CONTEXT, "the model's window is full%s%s",
		              x->words[0] != '\0' ? ": " : "", x->words);
		return OVERFLOW;
	}
	if (x->fault == SHEAF_FAULT_AUTH) {
		*rc = fault_error(x, SHEAF_DENIED, err);
		return OVER;
	}
	if (x->fault == SHEAF_FAULT_REQUEST) {
		*rc = fault_error(x, SHEAF_MODEL, err);
		return OVER;
	}
	if (x->fault != SHEAF_FAULT_NONE) {
		*rc = fault_error(x, SHEAF_MODEL, err);
		return AGAIN;
	}
	if (*rc == 0 && x->message == NULL)
		*rc = err_set(err, SHEAF_MODEL, "the server sent no reply in the format %s",
		              sheaf_format_name(r->agent->o.model.format));
	else if (*rc == 0)
		*rc = err_set(err, SHEAF_MODEL, "the model's reply broke off");
	if (*rc == SHEAF_FORMAT)
		*rc = err_rename(err, SHEAF_MODEL, "the model's reply cannot be read");
	return *rc == SHEAF_MODEL || *rc == SHEAF_TIMEOUT ? AGAIN : OVER;
}

/* A quarter more or less, so that many who were refused together do not come back together. */
static int64_t jitter(int64_t us)
{
	uint32_t random = 0;
	if (io_random(&random, sizeof(random)) != 0)
		return us;
	return us - us / 4 + (int64_t)((double)us / 2 * (random / 4294967296.0));
}

/* Waits before try number `tries` + 1, or gives up with `rc`. */
static int wait_again(run *r, const exchange *x, uint32_t tries, int rc, sheaf_error *err)
{
	const sheaf_agent_options *o = &r->agent->o;
	if (o->retries < 0 || tries > (uint32_t)o->retries)
		return rc;
	int64_t us = o->backoff_us;
	if (x->retry_after_us > o->backoff_max_us)
		return rc;
	for (uint32_t i = 1; i < tries && us < o->backoff_max_us; i++)
		us = us <= o->backoff_max_us / 2 ? us * 2 : o->backoff_max_us;
	us = jitter(us < o->backoff_max_us ? us : o->backoff_max_us);
	us = us < o->backoff_max_us ? us : o->backoff_max_us;
	if (x->retry_after_us > us)
		us = x->retry_after_us;
	r->retries++;
	sheaf_event event = {.kind = SHEAF_EVENT_RETRY,
	                     .code = rc,
	                     .attempt = tries,
	                     .wait_us = us,
	                     .text = sheaf_str_of(err->message)};
	run_event(r, &event);
	return run_sleep(r, us, err);
}

/* ---- Storing ------------------------------------------------------------- */

/* Text as it arrived in one piece, for observers that show what comes. */
static void show_whole(run *r, const char *id)
{
	_cleanup_(records_freep) sheaf_records *stored = NULL;
	if (r->agent->o.on_event == NULL ||
	    sheaf_session_get(&stored, r->session, sheaf_str_of(id), NULL) != 0)
		return;
	const sheaf_message_view *message = stored->items[0]->message;
	for (size_t i = 0; message != NULL && i < message->part_count; i++) {
		const sheaf_part *part = message->parts[i];
		sheaf_event event = {.kind = SHEAF_EVENT_DELTA, .text = part->text};
		if (part->kind == SHEAF_PART_TEXT)
			event.delta = SHEAF_DELTA_TEXT;
		else if (part->kind == SHEAF_PART_THINKING)
			event.delta = SHEAF_DELTA_THINKING;
		if (event.delta != 0 && part->text.len != 0)
			run_event(r, &event);
	}
}

/*
 * A reply that broke off stays in the log, marked, beside the path: the branch
 * goes back to where it was asked. One that was cancelled stays on the path.
 */
static int store_broken(run *r, const exchange *x, bool keep, sheaf_error *err)
{
	char before[SHEAF_ID_ROOM];
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	sum_usage(&r->usage, &x->usage);
	if (x->message == NULL)
		return 0;
	memcpy(before, r->leaf, sizeof(before));
	int rc = turn_append(r, x->message, NOTHING, SHEAF_STR("{\"incomplete\":true}"), err);
	if (rc != 0)
		return rc;
	r->open_calls = keep && x->calls != 0;
	if (keep)
		return 0;
	/* Not if somebody has written behind it: that would be off the path, too. */
	how.expect = SHEAF_EXPECT_LEAF;
	how.leaf = sheaf_str_of(r->leaf);
	rc = sheaf_session_branch(r->session, r->branch, sheaf_str_of(before), &how, NULL, err);
	if (rc == 0)
		memcpy(r->leaf, before, sizeof(before));
	return rc;
}

static int store_reply(run *r, const exchange *x, char reply_id[SHEAF_ID_ROOM], sheaf_error *err)
{
	r->steps++;
	r->stop = x->stop;
	sum_usage(&r->usage, &x->usage);
	if (x->message == NULL)
		return 0;
	int rc = turn_append(r, x->message, NOTHING, NOTHING, err);
	if (rc != 0)
		return rc;
	memcpy(reply_id, r->leaf, SHEAF_ID_ROOM);
	r->open_calls = x->calls != 0;
	if (!x->deltas)
		show_whole(r, reply_id);
	return 0;
}

/* ---- A step -------------------------------------------------------------- */

/* One request. AGAIN and OVERFLOW leave the branch where it was. */
static verdict try_once(run *r, exchange *x, int *rc, sheaf_error *err)
{
	_cleanup_(request_freep) sheaf_request *request = NULL;
	*rc = make_request(r, &request, err);
	if (*rc == SHEAF_TOO_LARGE)
		return OVERFLOW;
	if (*rc != 0)
		return OVER;
	sheaf_event event = {.kind = SHEAF_EVENT_REQUEST, .request = request};
	run_event(r, &event);
	*rc = exchange_send(r, request, true, x, err);
	return judge(r, x, rc, err);
}

/* Compacting because the window is full; only once for a request. */
static int make_room(run *r, bool *before, sheaf_error *err)
{
	sheaf_error why = *err;
	why.code = SHEAF_CONTEXT;
	if (*before || r->agent->o.no_compaction) {
		*err = why;
		return SHEAF_CONTEXT;
	}
	*before = true;
	int rc = exchange_compact(r, "overflow", NOTHING, NULL, err);
	if (rc != SHEAF_COMPACT)
		return rc;
	*err = why; /* the provider's words say more than that there is nothing to compact */
	return SHEAF_CONTEXT;
}

int exchange_step(run *r, char reply_id[SHEAF_ID_ROOM], sheaf_error *err)
{
	bool compacted = false;
	uint32_t tries = 0;
	reply_id[0] = '\0';
	int rc = r->agent->o.no_compaction ? 0 : exchange_compact(r, NULL, NOTHING, NULL, err);
	while (rc == 0) {
		exchange x = {.retry_after_us = -1};
		sheaf_error broken;
		verdict v = try_once(r, &x, &rc, err);
		int stored = 0;
		if (v == TAKEN)
			rc = store_reply(r, &x, reply_id, err);
		else
			stored = store_broken(r, &x, rc == SHEAF_CANCELLED, &broken);
		if (stored != 0) {
			*err = broken;
			rc = stored;
			v = OVER;
		}
		if (v == AGAIN)
			rc = wait_again(r, &x, ++tries, rc, err);
		else if (v == OVERFLOW)
			rc = make_room(r, &compacted, err);
		exchange_free(&x);
		if (v == TAKEN || v == OVER)
			return rc;
	}
	return rc;
}

/* ---- Summarising and compacting ------------------------------------------ */

static void delete_scratch(sheaf_session *session)
{
	sheaf_store *store = sheaf_session_store(session);
	sheaf_key key = sheaf_session_key(session);
	(void)sheaf_store_delete(NULL, store, &key, NULL, NULL);
	sheaf_session_close(session);
}

static int model_of_history(run *r, sheaf_str *out, sheaf_error *err)
{
	_cleanup_(context_freep) sheaf_context *history = NULL;
	int ok = 1, rc = exchange_context(r, &history, err);
	if (rc == 0)
		*out = arena_dup(r->arena, history->model, &ok);
	return ok ? rc : err_nomem(err);
}

static int ask_model(run *r, sheaf_session *scratch, sheaf_str prompt, exchange *x,
                     sheaf_error *err)
{
	_cleanup_(context_freep) sheaf_context *context = NULL;
	_cleanup_(request_freep) sheaf_request *request = NULL;
	sheaf_render_options how = r->agent->render;
	int rc = sheaf_session_append_text(scratch, SHEAF_ROLE_USER, prompt, NULL, err);
	if (rc == 0)
		rc = sheaf_session_context(&context, scratch, NULL, err);
	how.model = r->model;
	if (how.model.ptr == NULL && rc == 0)
		rc = model_of_history(r, &how.model, err);
	how.system = NULL;
	how.system_count = how.tool_count = 0;
	how.tools = NULL;
	how.cache = SHEAF_CACHE_OFF;
	how.thinking_level = NOTHING;
	if (rc == 0)
		rc = sheaf_render(&request, context, &how, err);
	for (uint32_t tries = 0; rc == 0;) {
		rc = exchange_send(r, request, false, x, err);
		verdict v = judge(r, x, &rc, err);
		sum_usage(&r->usage, &x->usage);
		if (v != AGAIN)
			return rc;
		rc = wait_again(r, x, ++tries, rc, err);
		exchange_free(x);
	}
	return rc;
}

static int add_text(sheaf_session *scratch, const exchange *x, sheaf_summary_sink *out,
                    sheaf_error *err)
{
	_cleanup_(records_freep) sheaf_records *stored = NULL;
	sheaf_appended done = SHEAF_APPENDED_INIT;
	if (x->message == NULL)
		return err_set(err, SHEAF_MODEL, "the model wrote no summary");
	int rc = sheaf_session_append_message(scratch, x->message, NULL, NULL, &done, err);
	if (rc == 0)
		rc = sheaf_session_get(&stored, scratch, sheaf_str_of(done.id), err);
	const sheaf_message_view *message = rc == 0 ? stored->items[0]->message : NULL;
	bool any = false;
	for (size_t i = 0; rc == 0 && message != NULL && i < message->part_count; i++) {
		const sheaf_part *part = message->parts[i];
		if (part->kind != SHEAF_PART_TEXT || part->text.len == 0)
			continue;
		rc = any ? sheaf_summary_add(out, SHEAF_STR("\n")) : 0;
		rc = rc == 0 ? sheaf_summary_add(out, part->text) : rc;
		any = true;
	}
	if (rc == 0 && !any)
		return err_set(err, SHEAF_MODEL, "the model wrote no summary");
	return rc == SHEAF_NOMEM ? err_nomem(err) : rc;
}

int exchange_summarise(void *ctx, const sheaf_cut *plan, sheaf_summary_sink *out, sheaf_error *err)
{
	run *r = ctx;
	const sheaf_agent_options *o = &r->agent->o;
	sheaf_event event = {.kind = SHEAF_EVENT_COMPACTION_START, .text = plan->trigger};
	run_event(r, &event);
	r->summarising = true;
	if (o->summarise != NULL)
		return o->summarise(o->summarise_ctx, plan, out, err);
	sheaf_session *scratch = NULL;
	sheaf_key key = {0};
	exchange x = {.retry_after_us = -1};
	int rc = sheaf_session_open(&scratch, r->agent->memory, &key, NULL, err);
	if (rc != 0)
		return rc;
	rc = ask_model(r, scratch, plan->prompt, &x, err);
	/* What a model says instead of a summary must not take the place of what it would not read. */
	if (rc == 0 && x.stop == SHEAF_STOP_REFUSAL)
		rc = err_set(err, SHEAF_MODEL, "the model refuses to summarise");
	if (rc == 0)
		rc = add_text(scratch, &x, out, err);
	exchange_free(&x);
	delete_scratch(scratch);
	return rc;
}

/* A compaction keeps what others wrote meanwhile; a turn does not go on behind their backs. */
static int check_alone(run *r, const char *compaction, sheaf_error *err)
{
	_cleanup_(records_freep) sheaf_records *stored = NULL;
	if (r->turn[0] == '\0')
		return 0;
	int rc = sheaf_session_get(&stored, r->session, sheaf_str_of(compaction), err);
	if (rc == 0 && !sheaf_str_is(stored->items[0]->parent_id, r->leaf))
		rc = err_set(err, SHEAF_STALE, "somebody else wrote to the branch meanwhile");
	return rc;
}

static int compact_now(run *r, const sheaf_compaction_options *how, sheaf_appended *out,
                       sheaf_error *err)
{
	sheaf_appended done = SHEAF_APPENDED_INIT;
	r->summarising = false;
	int rc = sheaf_compact(r->session, how, exchange_summarise, r, &done, err);
	sheaf_event event = {.kind = SHEAF_EVENT_COMPACTION_END, .code = rc};
	if (rc != 0)
		event.text = sheaf_str_of(err->message);
	if (r->summarising)
		run_event(r, &event);
	if (rc != 0)
		return rc;
	r->compacted++;
	rc = check_alone(r, done.id, err);
	if (rc != 0)
		return rc;
	memcpy(r->leaf, done.id, sizeof(done.id));
	if (out != NULL) {
		done.size = out->size;
		memcpy(out, &done, out->size < sizeof(done) ? out->size : sizeof(done));
	}
	return 0;
}

int exchange_compact(run *r, const char *trigger, sheaf_str instructions, sheaf_appended *out,
                     sheaf_error *err)
{
	sheaf_compaction_options how = r->agent->compaction;
	how.branch = r->branch;
	how.provider = r->provider;
	how.model = r->model;
	how.trigger = sheaf_str_of(trigger != NULL ? trigger : "threshold");
	if (instructions.ptr != NULL)
		how.instructions = instructions;
	if (trigger == NULL) {
		sheaf_fill fill;
		if (r->no_room)
			return 0;
		int rc = sheaf_compaction_need(&fill, r->session, &how, err);
		if (rc != SHEAF_TOO_LARGE && (rc != 0 || !fill.needed))
			return rc;
	}
	int rc = compact_now(r, &how, out, err);
	if (trigger != NULL || rc == 0 || rc == SHEAF_CANCELLED || rc == SHEAF_NOMEM ||
	    rc == SHEAF_STALE)
		return rc;
	/* Unasked for, it may fail: the request may still fit, and if not the provider says so. */
	r->no_room = true;
	return 0;
}
