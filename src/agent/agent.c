/* Agents: options copied once, input queued for their runs. */
#include "agent/agent.h"

#include <stdatomic.h>

#include "base/err.h"
#include "base/mem.h"

#define STEPS_DEFAULT 100
#define RETRIES_DEFAULT 4
#define BACKOFF_DEFAULT_US 1000000
#define BACKOFF_MAX_DEFAULT_US 60000000

/* ---- What the files of this folder share --------------------------------- */

void message_freep(sheaf_message **m)
{
	sheaf_message_free(*m);
}

void records_freep(sheaf_records **r)
{
	sheaf_records_free(*r);
}

void context_freep(sheaf_context **c)
{
	sheaf_context_free(*c);
}

void request_freep(sheaf_request **r)
{
	sheaf_request_free(*r);
}

void sum_usage(sheaf_usage *sum, const sheaf_usage *more)
{
	sum->input += more->input;
	sum->cache_read += more->cache_read;
	sum->cache_write_5m += more->cache_write_5m;
	sum->cache_write_1h += more->cache_write_1h;
	sum->output += more->output;
	sum->reasoning += more->reasoning;
}

const char *sheaf_turn_outcome_name(int32_t outcome)
{
	static const char *const names[] = {"completed", "suspended", "limit",
	                                    "cancelled", "failed",    "interrupted"};
	return outcome >= 0 && (size_t)outcome < COUNT_OF(names) ? names[outcome] : "?";
}

/* ---- Cancelling ---------------------------------------------------------- */

struct sheaf_cancel {
	atomic_int on;
};

sheaf_cancel *sheaf_cancel_new(void)
{
	return mem_zalloc(sizeof(sheaf_cancel));
}

void sheaf_cancel_free(sheaf_cancel *cancel)
{
	mem_free(cancel);
}

void sheaf_cancel_set(sheaf_cancel *cancel, int on)
{
	atomic_store(&cancel->on, on != 0);
}

int sheaf_cancel_is_set(const sheaf_cancel *cancel)
{
	return cancel != NULL && atomic_load(&cancel->on) != 0;
}

/* ---- Copying options ----------------------------------------------------- */

typedef struct copier {
	arena *arena;
	int ok;
} copier;

static void copy_str(copier *c, sheaf_str *s)
{
	*s = arena_dup(c->arena, *s, &c->ok);
}

/* A list of structs; NULL for an empty one, or without memory. */
static void *copy_list(copier *c, const void *list, size_t count, size_t element)
{
	if (count == 0 || !c->ok)
		return NULL;
	void *copy = arena_alloc(c->arena, count * element);
	if (copy == NULL)
		c->ok = 0;
	else
		memcpy(copy, list, count * element);
	return copy;
}

static void copy_system(copier *c, sheaf_render_options *render)
{
	sheaf_system *system = copy_list(c, render->system, render->system_count, sizeof(*system));
	for (size_t i = 0; system != NULL && i < render->system_count; i++)
		copy_str(c, &system[i].text);
	render->system = system;
}

static void copy_tools(copier *c, sheaf_agent *agent)
{
	size_t count = agent->o.tool_count;
	sheaf_agent_tool *tools = copy_list(c, agent->o.tools, count, sizeof(*tools));
	sheaf_tool *declared = tools != NULL ? arena_alloc(c->arena, count * sizeof(*declared))
	                                     : NULL;
	c->ok = c->ok && (count == 0 || declared != NULL);
	for (size_t i = 0; c->ok && i < count; i++) {
		copy_str(c, &tools[i].tool.name);
		copy_str(c, &tools[i].tool.description);
		copy_str(c, &tools[i].tool.schema);
		declared[i] = tools[i].tool;
	}
	agent->o.tools = tools;
	agent->render.tools = declared;
	agent->render.tool_count = count;
}

/* What is sent besides the history, as bytes / 4. */
static uint64_t extra_tokens(const sheaf_render_options *render)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < render->system_count; i++)
		bytes += render->system[i].text.len;
	for (size_t i = 0; i < render->tool_count; i++) {
		const sheaf_tool *tool = &render->tools[i];
		bytes += tool->name.len + tool->description.len + tool->schema.len;
	}
	return bytes / 4;
}

static int copy_options(sheaf_agent *agent, const sheaf_agent_options *options, sheaf_error *err)
{
	copier c = {agent->arena, 1};
	agent->o = (sheaf_agent_options)SHEAF_AGENT_OPTIONS_INIT;
	memcpy(&agent->o, options,
	       options->size < sizeof(agent->o) ? options->size : sizeof(agent->o));
	agent->o.size = sizeof(agent->o);
	agent->render = (sheaf_render_options)SHEAF_RENDER_OPTIONS_INIT;
	if (agent->o.render != NULL)
		memcpy(&agent->render, agent->o.render,
		       agent->o.render->size < sizeof(agent->render) ? agent->o.render->size
		                                                     : sizeof(agent->render));
	agent->compaction = (sheaf_compaction_options)SHEAF_COMPACTION_OPTIONS_INIT;
	if (agent->o.compaction != NULL)
		memcpy(&agent->compaction, agent->o.compaction,
		       agent->o.compaction->size < sizeof(agent->compaction)
		               ? agent->o.compaction->size
		               : sizeof(agent->compaction));
	agent->render.size = sizeof(agent->render);
	agent->compaction.size = sizeof(agent->compaction);
	agent->o.render = &agent->render;
	agent->o.compaction = &agent->compaction;
	sheaf_render_options *render = &agent->render;
	if (agent->compaction.models == NULL)
		agent->compaction.models = render->models;
	render->format = agent->o.model.format;
	if (render->provider.ptr == NULL)
		render->provider = sheaf_str_of(sheaf_format_provider(render->format));
	sheaf_str *const strings[] = {&agent->o.branch,        &agent->o.agent,
	                              &render->provider,       &render->model,
	                              &render->thinking_level, &render->extra,
	                              &render->cache_key,      &agent->compaction.instructions};
	for (size_t i = 0; i < COUNT_OF(strings); i++)
		copy_str(&c, strings[i]);
	copy_system(&c, render);
	copy_tools(&c, agent);
	agent->o.hooks = copy_list(&c, agent->o.hooks, agent->o.hook_count,
	                           sizeof(*agent->o.hooks));
	if (!c.ok)
		return err_nomem(err);
	agent->compaction.extra_tokens = extra_tokens(render);
	return 0;
}

static int check_options(const sheaf_agent_options *o, sheaf_error *err)
{
	if (o == NULL || o->size < offsetof(sheaf_agent_options, backoff_us))
		return err_set(err, SHEAF_INVALID, "the agent's options have no size");
	if (o->model.send == NULL || sheaf_format_name(o->model.format) == NULL)
		return err_set(err, SHEAF_INVALID, "an agent needs a model and its format");
	for (size_t i = 0; i < o->tool_count; i++)
		if (o->tools[i].tool.name.len == 0 || o->tools[i].run == NULL)
			return err_set(err, SHEAF_INVALID, "a tool needs a name and a function");
	for (size_t i = 0; i < o->hook_count; i++)
		if (o->hooks[i].call == NULL)
			return err_set(err, SHEAF_INVALID, "a hook needs a function");
	if (o->branch_summary == SHEAF_SUMMARY_ASK && o->ask == NULL)
		return err_set(err, SHEAF_INVALID, "there is nobody to ask for summaries");
	return 0;
}

/* ---- Agents -------------------------------------------------------------- */

static void set_defaults(sheaf_agent_options *o)
{
	if (o->steps_max == 0)
		o->steps_max = STEPS_DEFAULT;
	if (o->retries == 0)
		o->retries = RETRIES_DEFAULT;
	if (o->backoff_us <= 0)
		o->backoff_us = BACKOFF_DEFAULT_US;
	if (o->backoff_max_us <= 0)
		o->backoff_max_us = BACKOFF_MAX_DEFAULT_US;
}

int sheaf_agent_new(sheaf_agent **out, const sheaf_agent_options *options, sheaf_error *err)
{
	int rc = check_options(options, err);
	if (rc != 0)
		return rc;
	sheaf_agent *agent = mem_zalloc(sizeof(*agent));
	if (agent == NULL)
		return err_nomem(err);
	agent->arena = arena_new();
	rc = agent->arena != NULL ? copy_options(agent, options, err) : err_nomem(err);
	set_defaults(&agent->o);
	if (rc == 0)
		rc = sheaf_open(&agent->memory, "memory:", NULL, err);
	sheaf_key key = sheaf_key_of("queue");
	if (rc == 0)
		rc = sheaf_session_open(&agent->queue, agent->memory, &key, NULL, err);
	if (rc != 0)
		sheaf_agent_free(agent);
	else
		*out = agent;
	return rc;
}

void sheaf_agent_free(sheaf_agent *agent)
{
	if (agent == NULL)
		return;
	sheaf_session_close(agent->queue);
	sheaf_close(agent->memory);
	arena_free(agent->arena);
	mem_free(agent);
}

/* ---- Input from elsewhere ------------------------------------------------ */

static int enqueue(sheaf_agent *agent, sheaf_session *session, sheaf_str text, int32_t priority,
                   sheaf_error *err)
{
	sheaf_enqueue_options how = SHEAF_ENQUEUE_OPTIONS_INIT;
	how.priority = priority;
	if (session == NULL)
		session = agent->o.session != NULL ? agent->o.session : agent->queue;
	return sheaf_session_enqueue(session, text, &how, NULL, err);
}

int sheaf_agent_steer(sheaf_agent *agent, sheaf_session *session, sheaf_str text, sheaf_error *err)
{
	return enqueue(agent, session, text, SHEAF_PRIORITY_STEER, err);
}

int sheaf_agent_follow_up(sheaf_agent *agent, sheaf_session *session, sheaf_str text,
                          sheaf_error *err)
{
	return enqueue(agent, session, text, 0, err);
}
