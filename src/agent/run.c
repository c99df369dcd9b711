/* The public calls that run turns: which session, who may, and one turn after the other. */
#include "agent/agent.h"

#include "base/err.h"

/* ---- Opening and closing ------------------------------------------------- */

static sheaf_run_options options_of(const sheaf_run_options *options)
{
	sheaf_run_options all = SHEAF_RUN_OPTIONS_INIT;
	if (options != NULL)
		memcpy(&all, options, options->size < sizeof(all) ? options->size : sizeof(all));
	all.size = sizeof(all);
	return all;
}

static int open_scratch(run *r, sheaf_error *err)
{
	sheaf_key key = {0};
	int rc = sheaf_session_open(&r->session, r->agent->memory, &key, NULL, err);
	r->queue = r->agent->queue;
	r->branch = NOTHING;
	return rc;
}

int run_open(run *r, sheaf_agent *agent, const sheaf_run_options *options, sheaf_error *err)
{
	sheaf_run_options o = options_of(options);
	sheaf_session *session = o.session != NULL ? o.session : agent->o.session;
	if (o.no_session)
		session = NULL;
	*r = (run){.agent = agent,
	           .session = session,
	           .shown = session,
	           .queue = session,
	           .branch = o.branch.len != 0 ? o.branch : agent->o.branch,
	           .provider = agent->render.provider,
	           .model = o.model.ptr != NULL ? o.model : agent->render.model,
	           .thinking_level = o.thinking_level.ptr != NULL ? o.thinking_level
	                                                          : agent->render.thinking_level,
	           .turn_wanted = o.turn,
	           .cancel = o.cancel,
	           .follow_ups = !o.no_follow_ups};
	r->arena = arena_new();
	int rc = r->arena != NULL ? 0 : err_nomem(err);
	if (rc == 0)
		rc = session != NULL ? busy_take(&r->busy, session, o.wait_us, o.cancel, err)
		                     : open_scratch(r, err);
	if (rc == 0)
		rc = sheaf_session_leaf(r->session, r->branch, r->leaf, err);
	if (rc != 0)
		run_close(r);
	return rc;
}

void run_close(run *r)
{
	if (r->shown == NULL && r->session != NULL) {
		sheaf_key key = sheaf_session_key(r->session);
		(void)sheaf_store_delete(NULL, r->agent->memory, &key, NULL, NULL);
		sheaf_session_close(r->session);
	} else if (r->busy != NULL) {
		sheaf_session_state_end_invocation(r->session);
	}
	busy_release(r->busy);
	arena_free(r->arena);
	r->session = NULL;
	r->busy = NULL;
	r->arena = NULL;
}

/* A code, and for whom asked its reason. */
static int leave(run *r, int rc, const sheaf_error *why, sheaf_error *err)
{
	run_close(r);
	if (rc != 0 && err != NULL)
		*err = *why;
	return rc;
}

/* ---- Running ------------------------------------------------------------- */

/* A turn whose process died gets its end, and its calls the answer they have in every context. */
static int end_interrupted(run *r, const last_turn *last, sheaf_error *err)
{
	memcpy(r->turn, last->id, sizeof(r->turn));
	int rc = tools_close(r, SHEAF_STR("interrupted"), err);
	/* In a history that can only be compacted now, every context gives them that answer. */
	if (rc == 0 || rc == SHEAF_TOO_LARGE)
		rc = turn_end(r, last->id, SHEAF_TURN_INTERRUPTED, NULL, NULL, 0, err);
	sheaf_event event = {.kind = SHEAF_EVENT_INTERRUPTED, .text = sheaf_str_of(last->id)};
	if (rc == 0)
		run_event(r, &event);
	return rc;
}

static int settle_last(run *r, sheaf_error *err)
{
	last_turn last;
	if (r->shown == NULL)
		return 0;
	int rc = turn_last(r, &last, err);
	if (rc == 0 && last.suspended) {
		rc = err_set(err, SHEAF_BUSY, "the last turn is suspended");
		err_hint(err, "answer its calls, or give it up");
	}
	return rc == 0 && last.open ? end_interrupted(r, &last, err) : rc;
}

/* Without input the history itself must ask for a reply. */
static int check_history(run *r, sheaf_error *err)
{
	_cleanup_(context_freep) sheaf_context *context = NULL;
	int rc = exchange_context(r, &context, err);
	if (rc != 0)
		return rc;
	size_t n = context->count;
	if (n == 0 || sheaf_str_is(context->items[n - 1]->message->role, SHEAF_ROLE_ASSISTANT))
		return err_set(err, SHEAF_CONTEXT, "there is nothing to answer");
	return 0;
}

static int given_input(run *r, sheaf_message *const *messages, size_t count, inputs *out,
                       sheaf_error *err)
{
	*out = (inputs){0};
	if (count == 0) {
		int rc = input_take(r, false, out, err);
		return rc == 0 && out->count == 0 ? check_history(r, err) : rc;
	}
	out->arena = arena_new();
	out->items = out->arena != NULL ? arena_zalloc(out->arena, count * sizeof(*out->items))
	                                : NULL;
	if (out->items == NULL)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++)
		out->items[i].message = messages[i];
	out->count = count;
	return 0;
}

/* Turn after turn, as long as input waits; `*out` is the last. */
static int run_turns(run *r, inputs *in, sheaf_turn **out, sheaf_error *err)
{
	for (;;) {
		sheaf_turn *turn = NULL;
		int rc = turn_run(r, in, &turn, err);
		inputs_free(in);
		if (turn != NULL) {
			sheaf_turn_free(*out);
			*out = turn;
		}
		bool more = rc == 0 && r->follow_ups && turn != NULL &&
		            turn->outcome == SHEAF_TURN_COMPLETED && !run_cancelled(r);
		if (more)
			rc = input_take(r, false, in, err);
		if (rc != 0 || !more || in->count == 0) {
			inputs_free(in);
			return rc;
		}
	}
}

int sheaf_agent_run(sheaf_turn **out, sheaf_agent *agent, sheaf_message *const *messages,
                    size_t count, const sheaf_run_options *options, sheaf_error *err)
{
	run r;
	sheaf_error why = {0};
	sheaf_turn *turn = NULL;
	inputs in = {0};
	if (out != NULL)
		*out = NULL;
	int rc = run_open(&r, agent, options, &why);
	if (rc == 0)
		rc = settle_last(&r, &why);
	if (rc == 0)
		rc = given_input(&r, messages, count, &in, &why);
	if (rc == 0)
		rc = run_turns(&r, &in, &turn, &why);
	else
		inputs_free(&in);
	if (out != NULL)
		*out = turn;
	else
		sheaf_turn_free(turn);
	return leave(&r, rc, &why, err);
}

int sheaf_agent_run_text(sheaf_turn **out, sheaf_agent *agent, sheaf_str text,
                         const sheaf_run_options *options, sheaf_error *err)
{
	_cleanup_(message_freep) sheaf_message *m = sheaf_message_new(SHEAF_ROLE_USER);
	if (out != NULL)
		*out = NULL;
	if (m == NULL)
		return err_nomem(err);
	(void)sheaf_message_text(m, text);
	return sheaf_agent_run(out, agent, &m, 1, options, err);
}

/* ---- Suspended turns ----------------------------------------------------- */

/* The suspended turn the branch ends with. SHEAF_NOT_FOUND. */
static int find_suspended(run *r, last_turn *last, sheaf_error *err)
{
	int rc = turn_last(r, last, err);
	if (rc == 0 && !last->suspended)
		return err_set(err, SHEAF_NOT_FOUND, "no turn is suspended");
	memcpy(r->turn, last->id, sizeof(r->turn));
	return rc;
}

int sheaf_agent_pending(sheaf_turn **out, sheaf_agent *agent, const sheaf_run_options *options,
                        sheaf_error *err)
{
	run r;
	last_turn last;
	sheaf_error why = {0};
	int rc = run_open(&r, agent, options, &why);
	if (rc == 0)
		rc = find_suspended(&r, &last, &why);
	if (rc == 0) {
		r.outcome = SHEAF_TURN_SUSPENDED;
		r.usage = last.usage;
		r.resumed = true;
		rc = turn_make(&r, 0, out, &why);
	}
	return leave(&r, rc, &why, err);
}

int sheaf_agent_resume(sheaf_turn **out, sheaf_agent *agent, const sheaf_resume *answers,
                       size_t count, const sheaf_run_options *options, sheaf_error *err)
{
	run r;
	last_turn last;
	sheaf_error why = {0};
	sheaf_turn *turn = NULL;
	if (out != NULL)
		*out = NULL;
	int rc = run_open(&r, agent, options, &why);
	if (rc == 0)
		rc = find_suspended(&r, &last, &why);
	if (rc == 0)
		rc = turn_resume(&r, &last, answers, count, &turn, &why);
	inputs in = {0};
	if (rc == 0 && r.follow_ups && turn->outcome == SHEAF_TURN_COMPLETED)
		rc = input_take(&r, false, &in, &why);
	if (rc == 0 && in.count != 0)
		rc = run_turns(&r, &in, &turn, &why);
	inputs_free(&in);
	if (out != NULL)
		*out = turn;
	else
		sheaf_turn_free(turn);
	return leave(&r, rc, &why, err);
}

int sheaf_agent_give_up(sheaf_agent *agent, const sheaf_run_options *options, sheaf_error *err)
{
	run r;
	last_turn last;
	sheaf_error why = {0};
	int rc = run_open(&r, agent, options, &why);
	if (rc == 0)
		rc = find_suspended(&r, &last, &why);
	if (rc == 0)
		rc = tools_close(&r, SHEAF_STR("cancelled"), &why);
	if (rc == 0)
		rc = turn_end(&r, last.id, SHEAF_TURN_CANCELLED, &last.usage, NULL, 0, &why);
	return leave(&r, rc, &why, err);
}
