/* Calls of tools: run one after the other, their answers stored as they come. */
#include "agent/agent.h"

#include "base/err.h"
#include "base/mem.h"

#define ANSWER_BYTES_MAX SHEAF_BODY_BYTES_MAX

typedef struct piece {
	struct piece *next;
	sheaf_str source_type; /* {NULL,0}: a text */
	sheaf_str media_type;
	sheaf_str data;
} piece;

struct sheaf_tool_answer {
	arena *arena;
	piece *first, **last;
	size_t count;
	size_t bytes;
};

/* ---- What a tool answers ------------------------------------------------- */

static int add_piece(sheaf_tool_answer *answer, sheaf_str source_type, sheaf_str media_type,
                     sheaf_str data)
{
	int ok = 1;
	if (data.len > ANSWER_BYTES_MAX - answer->bytes)
		return SHEAF_TOO_LARGE;
	piece *p = arena_zalloc(answer->arena, sizeof(*p));
	if (p == NULL)
		return SHEAF_NOMEM;
	p->source_type = arena_dup(answer->arena, source_type, &ok);
	p->media_type = arena_dup(answer->arena, media_type, &ok);
	p->data = arena_dup(answer->arena, data, &ok);
	if (!ok)
		return SHEAF_NOMEM;
	*answer->last = p;
	answer->last = &p->next;
	answer->count++;
	answer->bytes += data.len;
	return 0;
}

int sheaf_tool_answer_text(sheaf_tool_answer *answer, sheaf_str text)
{
	return add_piece(answer, NOTHING, NOTHING, text);
}

int sheaf_tool_answer_image(sheaf_tool_answer *answer, sheaf_str source_type, sheaf_str media_type,
                            sheaf_str data)
{
	return add_piece(answer, source_type, media_type, data);
}

static int answer_message(sheaf_message **out, const sheaf_call *call,
                          const sheaf_tool_answer *answer, int is_error, sheaf_error *err)
{
	_cleanup_(message_freep) sheaf_message *m = sheaf_message_new(SHEAF_ROLE_TOOL);
	const piece *p = answer->first;
	if (m == NULL)
		return err_nomem(err);
	/* Tools give what programs print: broken text must not lose the answer. */
	sheaf_message_mend_text(m, 1);
	if (answer->count == 0) {
		(void)sheaf_message_tool_result(m, call->id, call->name, SHEAF_STR(""), is_error);
	} else if (answer->count == 1 && p->source_type.ptr == NULL) {
		(void)sheaf_message_tool_result(m, call->id, call->name, p->data, is_error);
	} else {
		(void)sheaf_message_tool_result_begin(m, call->id, call->name, is_error);
		for (; p != NULL; p = p->next) {
			if (p->source_type.ptr == NULL)
				(void)sheaf_message_text(m, p->data);
			else
				(void)sheaf_message_image(m, p->source_type, p->media_type,
				                          p->data);
		}
		(void)sheaf_message_tool_result_end(m);
	}
	*out = m;
	m = NULL;
	return 0;
}

static int store(run *r, const sheaf_call *call, const sheaf_tool_answer *answer, int code,
                 sheaf_error *err)
{
	_cleanup_(message_freep) sheaf_message *m = NULL;
	int rc = answer_message(&m, call, answer, code != 0, err);
	if (rc == 0)
		rc = turn_append(r, m, NOTHING, NOTHING, err);
	if (rc != 0)
		return rc;
	sheaf_event event = {.kind = SHEAF_EVENT_TOOL_END, .call = call, .code = code};
	for (const piece *p = answer->first; p != NULL && event.text.ptr == NULL; p = p->next)
		if (p->source_type.ptr == NULL)
			event.text = p->data;
	run_event(r, &event);
	return 0;
}

int tools_answer(run *r, const sheaf_call *call, sheaf_str text, int is_error, sheaf_error *err)
{
	sheaf_tool_answer answer = {.arena = r->arena, .last = &answer.first};
	int rc = add_piece(&answer, NOTHING, NOTHING, text);
	if (rc != 0)
		return err_set(err, rc, "the answer cannot be kept");
	return store(r, call, &answer, is_error ? SHEAF_INVALID : 0, err);
}

/* ---- Running ------------------------------------------------------------- */

static const sheaf_agent_tool *find_tool(const sheaf_agent *agent, sheaf_str name)
{
	for (size_t i = 0; i < agent->o.tool_count; i++)
		if (str_eq(agent->o.tools[i].tool.name, name))
			return &agent->o.tools[i];
	return NULL;
}

int tools_call(run *r, const sheaf_call *call, sheaf_error *err)
{
	const sheaf_agent_tool *tool = find_tool(r->agent, call->name);
	_cleanup_(arena_freep) arena *own = arena_new();
	sheaf_tool_answer answer = {.arena = own, .last = &answer.first};
	sheaf_error why = {0};
	if (own == NULL)
		return err_nomem(err);
	sheaf_event event = {.kind = SHEAF_EVENT_TOOL_START, .call = call};
	run_event(r, &event);
	int code = SHEAF_NOT_FOUND;
	if (tool != NULL)
		code = tool->run(tool->ctx, call, &answer, &why);
	else
		(void)err_set(&why, code, "there is no tool of this name");
	if (code == SHEAF_TOOL_SUSPEND && !call->approved)
		return code;
	/* Cancelled in the middle: the call stays open and is answered with all that are. */
	if (code != 0 && run_cancelled(r))
		return err_set(err, SHEAF_CANCELLED, "cancelled");
	if (code != 0 && answer.count == 0) {
		const char *words = why.message[0] != '\0' ? why.message : "the tool failed";
		int rc = add_piece(&answer, NOTHING, NOTHING, sheaf_str_of(words));
		if (rc != 0)
			return err_set(err, rc, "the answer cannot be kept");
	}
	int rc = store(r, call, &answer, code, err);
	/* An answer that no record can hold is still an answer: the model can ask for less. */
	if (rc == SHEAF_TOO_LARGE || rc == SHEAF_LIMIT || rc == SHEAF_INVALID)
		rc = tools_answer(r, call, SHEAF_STR("the tool's answer is too large to be kept"),
		                  1, err);
	return rc;
}

static sheaf_call call_of(const run *r, const sheaf_part *part)
{
	return (sheaf_call){.id = part->id,
	                    .name = part->name,
	                    .input = part->input,
	                    .turn = sheaf_str_of(r->turn),
	                    .session = r->shown,
	                    .cancel = r->cancel};
}

int tools_run(run *r, const char *reply_id, size_t *suspended, sheaf_error *err)
{
	_cleanup_(records_freep) sheaf_records *stored = NULL;
	bool cut = r->stop == SHEAF_STOP_LENGTH;
	r->called = false;
	*suspended = 0;
	int rc = sheaf_session_get(&stored, r->session, sheaf_str_of(reply_id), err);
	const sheaf_message_view *message = rc == 0 ? stored->items[0]->message : NULL;
	for (size_t i = 0; rc == 0 && message != NULL && i < message->part_count; i++) {
		if (message->parts[i]->kind != SHEAF_PART_TOOL_USE)
			continue;
		sheaf_call call = call_of(r, message->parts[i]);
		r->called = true;
		if (run_cancelled(r))
			return err_set(err, SHEAF_CANCELLED, "cancelled");
		if (cut)
			rc = tools_answer(r, &call,
			                  SHEAF_STR("not run: the reply was cut off at its limit"),
			                  1, err);
		else
			rc = tools_call(r, &call, err);
		if (rc == SHEAF_TOOL_SUSPEND) {
			++*suspended;
			rc = 0;
		}
	}
	if (rc == 0)
		r->open_calls = *suspended != 0;
	return rc;
}

/* ---- Calls that nobody has answered -------------------------------------- */

/* The call a made-up answer belongs to: its input is in the reply before it. */
static void find_input(const sheaf_context *context, size_t before, sheaf_call *call)
{
	for (size_t i = before; i-- > 0;) {
		const sheaf_message_view *message = context->items[i]->message;
		for (size_t k = 0; k < message->part_count; k++) {
			const sheaf_part *part = message->parts[k];
			if (part->kind == SHEAF_PART_TOOL_USE && str_eq(part->id, call->id)) {
				call->input = part->input;
				return;
			}
		}
	}
}

static int copy_call(sheaf_call *call, arena *a)
{
	int ok = 1;
	call->id = arena_dup(a, call->id, &ok);
	call->name = arena_dup(a, call->name, &ok);
	call->input = arena_dup(a, call->input, &ok);
	call->turn = arena_dup(a, call->turn, &ok);
	return ok;
}

int tools_open(run *r, arena *a, sheaf_call **out, size_t *count, sheaf_error *err)
{
	_cleanup_(context_freep) sheaf_context *context = NULL;
	*count = 0;
	*out = NULL;
	int rc = exchange_context(r, &context, err);
	if (rc != 0)
		return rc;
	size_t from = context->count;
	while (from > 0 && (context->items[from - 1]->synthetic ||
	                    sheaf_str_is(context->items[from - 1]->message->role, SHEAF_ROLE_TOOL)))
		from--;
	*out = arena_alloc(a, (context->count - from + 1) * sizeof(**out));
	if (*out == NULL)
		return err_nomem(err);
	for (size_t i = from; i < context->count; i++) {
		if (!context->items[i]->synthetic)
			continue;
		const sheaf_part *part = context->items[i]->message->parts[0];
		sheaf_call call = {.id = part->tool_use_id,
		                   .name = part->tool_name,
		                   .turn = sheaf_str_of(r->turn),
		                   .session = r->shown,
		                   .cancel = r->cancel};
		find_input(context, i, &call);
		if (!copy_call(&call, a))
			return err_nomem(err);
		(*out)[(*count)++] = call;
	}
	return 0;
}

int tools_close(run *r, sheaf_str text, sheaf_error *err)
{
	sheaf_call *open = NULL;
	size_t count = 0;
	int rc = tools_open(r, r->arena, &open, &count, err);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = tools_answer(r, &open[i], text, 1, err);
	if (rc == 0)
		r->open_calls = false;
	return rc;
}
