/* A turn: its hooks and its input, what it stores, its end, and what the caller is given of it. */
#include "agent/agent.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"

#define SLICE_US 20000 /* how late a cancellation may be noticed */
#define APPEND_TRIES 5
#define RESUMED_ENTRIES_MAX 4096

/* ---- Small things -------------------------------------------------------- */

void run_event(run *r, sheaf_event *event)
{
	const sheaf_agent_options *o = &r->agent->o;
	if (o->on_event == NULL || r->quiet)
		return;
	event->session = r->shown;
	event->turn_id = sheaf_str_of(r->turn);
	o->on_event(o->event_ctx, event);
}

bool run_cancelled(const run *r)
{
	return sheaf_cancel_is_set(r->cancel) != 0;
}

int run_sleep(run *r, int64_t us, sheaf_error *err)
{
	int64_t begun = clock_monotonic_us();
	for (int64_t left = us; left > 0; left = us - (clock_monotonic_us() - begun)) {
		if (run_cancelled(r))
			return err_set(err, SHEAF_CANCELLED, "cancelled");
		clock_sleep_us(left < SLICE_US ? left : SLICE_US);
	}
	return 0;
}

/* ---- Storing ------------------------------------------------------------- */

static sheaf_append_options at_leaf(const run *r)
{
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	how.expect = SHEAF_EXPECT_LEAF;
	how.leaf = sheaf_str_of(r->leaf);
	return how;
}

static sheaf_entry_options of_turn(const run *r, sheaf_str id, sheaf_str extra)
{
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	entry.id = id;
	entry.extra = extra;
	entry.branch = r->branch;
	entry.turn = sheaf_str_of(r->turn);
	entry.agent = r->agent->o.agent;
	return entry;
}

static void tell_stored(run *r, const char *id)
{
	_cleanup_(records_freep) sheaf_records *stored = NULL;
	if (r->agent->o.on_event == NULL ||
	    sheaf_session_get(&stored, r->session, sheaf_str_of(id), NULL) != 0)
		return;
	sheaf_event event = {.kind = SHEAF_EVENT_MESSAGE_END, .entry = stored->items[0]};
	run_event(r, &event);
}

/* Whether an append that perhaps happened is to be repeated, after a pause. */
static bool once_more(int rc, const sheaf_error *err, int *tries)
{
	if (rc == 0 || err->outcome != SHEAF_UNKNOWN || ++*tries == APPEND_TRIES)
		return false;
	clock_sleep_us(SLICE_US << *tries);
	return true;
}

int turn_append(run *r, const sheaf_message *message, sheaf_str id, sheaf_str extra,
                sheaf_error *err)
{
	sheaf_entry_options entry = of_turn(r, id, extra);
	sheaf_append_options how = at_leaf(r);
	sheaf_appended done = SHEAF_APPENDED_INIT;
	int rc, tries = 0;
	do {
		rc = sheaf_session_append_message(r->session, message, &entry, &how, &done, err);
		entry.id = sheaf_str_of(done.id);
	} while (once_more(rc, err, &tries));
	if (rc != 0)
		return rc;
	memcpy(r->leaf, done.id, sizeof(done.id));
	r->stored++;
	tell_stored(r, r->leaf);
	return 0;
}

static int fill_batch(run *r, sheaf_batch *batch, const inputs *in, sheaf_error *err)
{
	for (size_t i = 0; i < in->count; i++) {
		sheaf_entry_options entry = of_turn(r, in->items[i].id, in->items[i].extra);
		int rc = sheaf_batch_message(batch, in->items[i].message, &entry, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* All of the input at once: it is durable before the model hears of it. */
static int store_input(run *r, const inputs *in, sheaf_error *err)
{
	sheaf_append_options how = at_leaf(r);
	sheaf_batch *batch = sheaf_batch_new();
	int rc = batch != NULL ? fill_batch(r, batch, in, err) : err_nomem(err), tries = 0;
	while (rc == 0) {
		rc = sheaf_session_append_batch(r->session, batch, &how, NULL, err);
		if (!once_more(rc, err, &tries))
			break;
		rc = 0;
	}
	if (rc == 0) {
		sheaf_event event = {.kind = SHEAF_EVENT_TURN_START};
		str_copy_cut(r->leaf, sizeof(r->leaf),
		             sheaf_str_of(sheaf_batch_id(batch, in->count - 1)));
		r->stored += in->count;
		run_event(r, &event);
		for (size_t i = 0; i < in->count; i++)
			tell_stored(r, sheaf_batch_id(batch, i));
	}
	sheaf_batch_free(batch);
	return rc;
}

static void add_count(buf *b, const char *name, uint64_t value)
{
	buf_format(b, ",\"%s\":", name);
	buf_u64(b, value);
}

void write_usage(buf *b, const sheaf_usage *usage)
{
	buf_lit(b, ",\"usage\":{\"input\":");
	buf_u64(b, usage->input);
	if (usage->cache_read != 0)
		add_count(b, "cache_read", usage->cache_read);
	if (usage->cache_write_5m != 0)
		add_count(b, "cache_write_5m", usage->cache_write_5m);
	if (usage->cache_write_1h != 0)
		add_count(b, "cache_write_1h", usage->cache_write_1h);
	add_count(b, "output", usage->output);
	if (usage->reasoning != 0)
		add_count(b, "reasoning", usage->reasoning);
	buf_char(b, '}');
}

int turn_end(run *r, const char *id, int32_t outcome, const sheaf_usage *usage,
             const sheaf_call *pending, size_t pending_count, sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	buf_lit(&body, "{\"turn_end\":{\"turn\":");
	buf_json(&body, sheaf_str_of(id));
	buf_lit(&body, ",\"outcome\":");
	buf_json(&body, sheaf_str_of(sheaf_turn_outcome_name(outcome)));
	if (usage != NULL)
		write_usage(&body, usage);
	for (size_t i = 0; i < pending_count; i++) {
		buf_str(&body, i == 0 ? SHEAF_STR(",\"pending\":[") : SHEAF_STR(","));
		buf_json(&body, pending[i].id);
	}
	if (pending_count != 0)
		buf_char(&body, ']');
	buf_lit(&body, "}}");
	int rc = buf_status(&body, err), tries = 0;
	if (rc != 0)
		return rc;
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_appended done = SHEAF_APPENDED_INIT;
	do {
		rc = sheaf_session_append_json(r->session, SHEAF_STR("turn_end"), buf_view(&body),
		                               &entry, NULL, &done, err);
		entry.id = sheaf_str_of(done.id);
	} while (once_more(rc, err, &tries));
	return rc;
}

/* ---- The last turn on the branch ----------------------------------------- */

static uint64_t count_of(const json_val *usage, const char *name)
{
	uint64_t n = 0;
	return json_u64(json_get(usage, name), &n) ? n : 0;
}

static int read_end(const sheaf_entry *end, last_turn *out, sheaf_error *err)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	_cleanup_(buf_free) buf text = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	buf_char(&text, '{');
	buf_str(&text, end->body);
	buf_char(&text, '}');
	int rc = buf_status(&text, err);
	if (rc == 0)
		rc = json_parse(&doc, buf_view(&text), err);
	if (rc != 0)
		return rc;
	const json_val *said = json_get(json_root(doc), "turn_end");
	sheaf_str outcome = json_string(json_get(said, "outcome"));
	const json_val *usage = json_get(said, "usage");
	out->suspended = sheaf_str_is(outcome, sheaf_turn_outcome_name(SHEAF_TURN_SUSPENDED)) != 0;
	out->usage = (sheaf_usage){.input = count_of(usage, "input"),
	                           .cache_read = count_of(usage, "cache_read"),
	                           .cache_write_5m = count_of(usage, "cache_write_5m"),
	                           .cache_write_1h = count_of(usage, "cache_write_1h"),
	                           .output = count_of(usage, "output"),
	                           .reasoning = count_of(usage, "reasoning")};
	return 0;
}

/* Ends of the turn after its newest entry: the last of them counts. */
static int find_end(run *r, uint64_t from_seq, last_turn *out, sheaf_error *err)
{
	sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
	how.from_seq = from_seq;
	how.kinds = SHEAF_KIND_BIT(SHEAF_KIND_TURN_END);
	out->open = true;
	int rc = 0;
	do {
		_cleanup_(records_freep) sheaf_records *ends = NULL;
		rc = sheaf_session_records(&ends, r->session, &how, err);
		for (size_t i = 0; rc == 0 && i < ends->count; i++) {
			if (!sheaf_str_is(ends->items[i]->turn, out->id))
				continue;
			out->open = false;
			rc = read_end(ends->items[i], out, err);
		}
		how.from_seq = rc == 0 ? ends->next_seq : 0;
	} while (rc == 0 && how.from_seq != 0);
	return rc;
}

/*
 * The newest message of the branch, in `*path`; NULL if there is none. Behind it
 * there may be a compaction, a change of the model, or any number of entries of
 * others, so more of the path is read until it is found.
 */
static int last_message(run *r, sheaf_records **path, const sheaf_entry **out, sheaf_error *err)
{
	*out = NULL;
	for (size_t limit = 1;; limit *= 8) {
		int rc = sheaf_session_path(path, r->session, r->branch, NOTHING, limit, err);
		if (rc != 0)
			return rc;
		for (size_t i = (*path)->count; i-- > 0 && *out == NULL;)
			if ((*path)->items[i]->kind == SHEAF_KIND_MESSAGE)
				*out = (*path)->items[i];
		if (*out != NULL || (*path)->count < limit)
			return 0;
		sheaf_records_free(*path);
		*path = NULL;
	}
}

int turn_last(run *r, last_turn *out, sheaf_error *err)
{
	_cleanup_(records_freep) sheaf_records *path = NULL;
	const sheaf_entry *entry = NULL;
	*out = (last_turn){0};
	int rc = last_message(r, &path, &entry, err);
	if (rc != 0 || entry == NULL || entry->turn.len == 0 || entry->turn.len >= sizeof(out->id))
		return rc;
	memcpy(out->id, entry->turn.ptr, entry->turn.len);
	return find_end(r, entry->seq, out, err);
}

/* ---- Hooks --------------------------------------------------------------- */

struct sheaf_hook {
	run *run;
	inputs *in;
	size_t added; /* messages of hooks, at the front of the input */
	sheaf_context *context;
	const sheaf_turn *turn;
};

const sheaf_context *sheaf_hook_context(const sheaf_hook *hook)
{
	return hook->context;
}

size_t sheaf_hook_input_count(const sheaf_hook *hook)
{
	return hook->in != NULL ? hook->in->count - hook->added : 0;
}

sheaf_message *sheaf_hook_input(const sheaf_hook *hook, size_t i)
{
	return i < sheaf_hook_input_count(hook) ? hook->in->items[hook->added + i].message : NULL;
}

const sheaf_turn *sheaf_hook_turn(const sheaf_hook *hook)
{
	return hook->turn;
}

int sheaf_hook_system(sheaf_hook *hook, sheaf_str text)
{
	run *r = hook->run;
	int ok = hook->context != NULL;
	if (!ok)
		return SHEAF_INVALID;
	sheaf_system *all = arena_alloc(r->arena, (r->system_count + 1) * sizeof(*all));
	if (all == NULL)
		return SHEAF_NOMEM;
	if (r->system_count != 0)
		memcpy(all, r->system, r->system_count * sizeof(*all));
	all[r->system_count] = (sheaf_system){.text = arena_dup(r->arena, text, &ok), .dynamic = 1};
	if (!ok)
		return SHEAF_NOMEM;
	r->system = all;
	r->system_count++;
	return 0;
}

int sheaf_hook_message(sheaf_hook *hook, sheaf_message *message)
{
	inputs *in = hook->in;
	sheaf_str json = sheaf_message_json(message);
	if (hook->context == NULL || json.ptr == NULL)
		return SHEAF_INVALID;
	input *all = arena_alloc(hook->run->arena, (in->count + 1) * sizeof(*all));
	sheaf_message *copy = NULL;
	int rc = all != NULL ? sheaf_message_from_json(&copy, json, NULL) : SHEAF_NOMEM;
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < in->count; i++)
		all[i < hook->added ? i : i + 1] = in->items[i];
	all[hook->added] = (input){.message = copy, .owned = true};
	in->items = all;
	in->count++;
	hook->added++;
	return 0;
}

static int call_hooks(run *r, int32_t when, sheaf_hook *hook, sheaf_error *err)
{
	const sheaf_agent_options *o = &r->agent->o;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < o->hook_count; i++) {
		if (o->hooks[i].when != when)
			continue;
		sheaf_error why = {0};
		rc = o->hooks[i].call(o->hooks[i].ctx, hook, &why);
		if (rc > 0)
			rc = SHEAF_INVALID;
		if (rc != 0)
			(void)err_set(err, rc, "%s",
			              why.message[0] != '\0' ? why.message : "refused by a hook");
	}
	return rc;
}

static bool has_hooks(const run *r, int32_t when)
{
	for (size_t i = 0; i < r->agent->o.hook_count; i++)
		if (r->agent->o.hooks[i].when == when)
			return true;
	return false;
}

static int hooks_before(run *r, inputs *in, sheaf_error *err)
{
	_cleanup_(context_freep) sheaf_context *context = NULL;
	if (!has_hooks(r, SHEAF_HOOK_PRE))
		return 0;
	int rc = exchange_context(r, &context, err);
	if (rc != 0)
		return rc;
	sheaf_hook hook = {.run = r, .in = in, .context = context};
	return call_hooks(r, SHEAF_HOOK_PRE, &hook, err);
}

/* ---- What the caller is given -------------------------------------------- */

typedef struct turn_box {
	sheaf_turn turn; /* first: what is freed */
	arena *arena;
	sheaf_records *all; /* the end of the path … */
	sheaf_records own;  /* … and what of it is the turn's */
} turn_box;

void sheaf_turn_free(const sheaf_turn *turn)
{
	if (turn == NULL)
		return;
	turn_box *box = (turn_box *)(uintptr_t)turn;
	sheaf_records_free(box->all);
	arena_free(box->arena);
	mem_free(box);
}

static int pick_records(turn_box *box, const run *r)
{
	size_t room = box->all->count;
	const sheaf_entry **own = arena_alloc(box->arena, (room + 1) * sizeof(const sheaf_entry *));
	if (own == NULL)
		return SHEAF_NOMEM;
	for (size_t i = 0; i < room; i++)
		if (sheaf_str_is(box->all->items[i]->turn, r->turn))
			own[box->own.count++] = box->all->items[i];
	box->own.items = own;
	box->own.revision = box->all->revision;
	return 0;
}

/* The text of the last reply. */
static int pick_text(turn_box *box)
{
	const sheaf_message_view *last = NULL;
	for (size_t i = box->own.count; i-- > 0 && last == NULL;) {
		const sheaf_message_view *m = box->own.items[i]->message;
		if (m != NULL && sheaf_str_is(m->role, SHEAF_ROLE_ASSISTANT))
			last = m;
	}
	size_t len = last != NULL ? sheaf_message_view_text(last, NULL, 0) : 0;
	char *text = arena_zalloc(box->arena, len + 1);
	if (text == NULL)
		return SHEAF_NOMEM;
	if (len != 0)
		(void)sheaf_message_view_text(last, text, len + 1);
	box->turn.text = str_make(text, len);
	return 0;
}

static int fill_turn(run *r, turn_box *box, sheaf_error *err)
{
	int ok = 1;
	box->arena = arena_new();
	if (box->arena == NULL)
		return err_nomem(err);
	size_t limit = r->resumed ? RESUMED_ENTRIES_MAX : r->stored + r->compacted + 1;
	/* From where the run itself came to: others may have written behind it. */
	sheaf_str leaf = sheaf_str_of(r->leaf);
	int rc = sheaf_session_path(&box->all, r->session, r->branch, leaf, limit, err);
	/* Of a turn that is too long to be given whole, the newest. */
	while (rc == SHEAF_TOO_LARGE && limit > 1) {
		limit /= 2;
		rc = sheaf_session_path(&box->all, r->session, r->branch, leaf, limit, err);
	}
	if (rc != 0)
		return rc;
	sheaf_turn *turn = &box->turn;
	*turn = (sheaf_turn){.id = arena_dup(box->arena, sheaf_str_of(r->turn), &ok),
	                     .outcome = r->outcome,
	                     .stop = r->stop,
	                     .steps = r->steps,
	                     .retries = r->retries,
	                     .compacted = r->compacted,
	                     .usage = r->usage,
	                     .records = &box->own};
	if (!ok || pick_records(box, r) != 0 || pick_text(box) != 0)
		return err_nomem(err);
	if (r->outcome != SHEAF_TURN_SUSPENDED)
		return 0;
	sheaf_call *pending = NULL;
	rc = tools_open(r, box->arena, &pending, &turn->pending_count, err);
	turn->pending = pending;
	return rc;
}

int turn_make(run *r, int code, sheaf_turn **out, sheaf_error *err)
{
	turn_box *box = mem_zalloc(sizeof(*box));
	if (box == NULL)
		return err_nomem(err);
	int rc = fill_turn(r, box, err);
	if (rc != 0) {
		sheaf_turn_free(&box->turn);
		return rc;
	}
	box->turn.code = code;
	*out = &box->turn;
	return 0;
}

/* ---- One turn ------------------------------------------------------------ */

static int new_turn(run *r, sheaf_error *err)
{
	arena_free(r->arena);
	r->arena = arena_new();
	if (r->arena == NULL)
		return err_nomem(err);
	r->system = NULL;
	r->system_count = r->agent->render.system_count;
	if (r->system_count != 0) {
		size_t bytes = r->system_count * sizeof(*r->system);
		r->system = arena_alloc(r->arena, bytes);
		if (r->system == NULL)
			return err_nomem(err);
		memcpy(r->system, r->agent->render.system, bytes);
	}
	r->outcome = SHEAF_TURN_COMPLETED;
	r->stop = SHEAF_STOP_UNKNOWN;
	r->steps = r->retries = r->compacted = 0;
	r->stored = 0;
	r->usage = (sheaf_usage){0};
	r->no_room = r->open_calls = r->resumed = false;
	sheaf_str wanted = r->turn_wanted;
	r->turn_wanted = NOTHING;
	if (wanted.len == 0)
		return sheaf_id_new(r->turn, err);
	if (wanted.len > SHEAF_ID_BYTES_MAX)
		return err_set(err, SHEAF_LIMIT, "the turn's id is too long");
	memcpy(r->turn, wanted.ptr, wanted.len);
	r->turn[wanted.len] = '\0';
	return 0;
}

/*
 * Post-generation hooks, then the end of the turn. A failure on the way does not
 * keep the end from being stored: a turn without one counts as interrupted.
 */
static int finish(run *r, int rc, sheaf_turn **out, sheaf_error *err)
{
	sheaf_error later;
	sheaf_turn *turn = NULL;
	if (rc != 0)
		r->outcome = rc == SHEAF_CANCELLED ? SHEAF_TURN_CANCELLED : SHEAF_TURN_FAILED;
	if (r->open_calls && r->outcome != SHEAF_TURN_SUSPENDED)
		(void)tools_close(r, SHEAF_STR("interrupted"), &later);
	int made = turn_make(r, rc, &turn, &later);
	sheaf_hook hook = {.run = r, .turn = turn};
	if (made == 0 && has_hooks(r, SHEAF_HOOK_POST))
		made = call_hooks(r, SHEAF_HOOK_POST, &hook, &later);
	if (rc == 0 && made != 0) {
		rc = made;
		*err = later;
	}
	int ended = turn_end(r, r->turn, r->outcome, &r->usage, turn != NULL ? turn->pending : NULL,
	                     turn != NULL ? turn->pending_count : 0, &later);
	if (rc == 0 && ended != 0) {
		rc = ended;
		*err = later;
	}
	if (turn != NULL)
		turn->code = rc;
	sheaf_event event = {.kind = SHEAF_EVENT_TURN_END, .turn = turn, .code = rc};
	run_event(r, &event);
	*out = turn;
	return rc;
}

int turn_run(run *r, inputs *in, sheaf_turn **out, sheaf_error *err)
{
	*out = NULL;
	int rc = new_turn(r, err);
	if (rc == 0)
		rc = hooks_before(r, in, err);
	if (rc == 0 && in->count != 0) {
		rc = store_input(r, in, err);
	} else if (rc == 0) {
		sheaf_event event = {.kind = SHEAF_EVENT_TURN_START};
		run_event(r, &event);
	}
	if (rc != 0)
		return rc;
	if (in->token.ptr != NULL)
		rc = input_done(r, in, err);
	if (rc == 0)
		rc = loop_run(r, err);
	return finish(r, rc, out, err);
}

/* ---- Resuming ------------------------------------------------------------ */

static sheaf_call *find_call(sheaf_call *open, size_t count, sheaf_str id)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(open[i].id, id))
			return &open[i];
	return NULL;
}

/* Each is for a call that waits, and no call has two. */
static int check_answers(sheaf_call *open, size_t open_count, const sheaf_resume *answers,
                         size_t count, sheaf_error *err)
{
	for (size_t i = 0; i < count; i++) {
		sheaf_call *call = find_call(open, open_count, answers[i].call_id);
		if (call == NULL)
			return err_set(err, SHEAF_NOT_FOUND, "no such call waits for an answer");
		if (call->approved)
			return err_set(err, SHEAF_INVALID, "a call is answered twice");
		call->approved = 1;
	}
	return 0;
}

static int answer_calls(run *r, sheaf_call *open, size_t open_count, const sheaf_resume *answers,
                        size_t count, sheaf_error *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < count; i++) {
		sheaf_call *call = find_call(open, open_count, answers[i].call_id);
		if (answers[i].run)
			rc = tools_call(r, call, err);
		else
			rc = tools_answer(r, call, answers[i].text, answers[i].is_error, err);
	}
	return rc;
}

int turn_resume(run *r, const last_turn *last, const sheaf_resume *answers, size_t count,
                sheaf_turn **out, sheaf_error *err)
{
	sheaf_call *open = NULL;
	size_t open_count = 0;
	*out = NULL;
	r->turn_wanted = sheaf_str_of(last->id);
	int rc = new_turn(r, err);
	if (rc == 0)
		rc = tools_open(r, r->arena, &open, &open_count, err);
	if (rc != 0)
		return rc;
	r->usage = last->usage;
	r->resumed = true;
	sheaf_event event = {.kind = SHEAF_EVENT_TURN_START};
	rc = check_answers(open, open_count, answers, count, err);
	if (rc != 0)
		return rc;
	run_event(r, &event);
	r->open_calls = true;
	rc = answer_calls(r, open, open_count, answers, count, err);
	if (rc == 0)
		rc = tools_open(r, r->arena, &open, &open_count, err);
	if (rc == 0 && open_count != 0) {
		r->outcome = SHEAF_TURN_SUSPENDED;
	} else if (rc == 0) {
		r->open_calls = false;
		rc = loop_run(r, err);
	}
	return finish(r, rc, out, err);
}
