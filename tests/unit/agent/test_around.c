/* Around a turn: hooks, sessions and none, who may run, queued input, compacting, branches. */
#include <pthread.h>

#include "kit.h"

/* ---- Hooks ------------------------------------------------------------------ */

typedef struct seen {
	kit *k;
	const char *name;
	int answer;
} seen;

static seen before_one, before_two, after_one;
static char order[512];

static int before(void *ctx, sheaf_hook *hook, sheaf_error *err)
{
	const seen *s = ctx;
	(void)err;
	assert_non_null(sheaf_hook_context(hook));
	assert_null(sheaf_hook_turn(hook));
	assert_int_equal(sheaf_hook_input_count(hook), 1);
	assert_non_null(strstr(sheaf_message_json(sheaf_hook_input(hook, 0)).ptr, "Hello"));
	assert_null(sheaf_hook_input(hook, 1));
	(void)snprintf(order + strlen(order), sizeof(order) - strlen(order), "%s(%zu) ", s->name,
	               sheaf_hook_context(hook)->count);
	assert_int_equal(sheaf_hook_system(hook, sheaf_str_of(s->name)), 0);
	sheaf_message *m = sheaf_message_new(SHEAF_ROLE_USER);
	(void)sheaf_message_text(m, sheaf_str_of(s->name));
	assert_int_equal(sheaf_hook_message(hook, m), 0);
	sheaf_message_free(m);
	return s->answer;
}

static int after(void *ctx, sheaf_hook *hook, sheaf_error *err)
{
	const seen *s = ctx;
	const sheaf_turn *turn = sheaf_hook_turn(hook);
	assert_null(sheaf_hook_context(hook));
	assert_non_null(turn);
	assert_int_equal(sheaf_hook_system(hook, SHEAF_STR("late")), SHEAF_INVALID);
	kit_ends(s->k, ""); /* the end is not stored yet */
	(void)snprintf(order + strlen(order), sizeof(order) - strlen(order), "%s:%s ", s->name,
	               turn->text.ptr);
	if (s->answer != 0)
		(void)snprintf(err->message, sizeof(err->message), "not good");
	return s->answer;
}

static void note_model(kit *k)
{
	(void)k;
	(void)strcat(order, "model ");
}

static void hooks_in_order(void **state)
{
	(void)state;
	static kit k;
	kit_prepare(&k, "memory:");
	before_one = (seen){.k = &k, .name = "one"};
	before_two = (seen){.k = &k, .name = "two"};
	after_one = (seen){.k = &k, .name = "after"};
	order[0] = '\0';
	sheaf_agent_hook hooks[] = {{SHEAF_HOOK_POST, 0, after, &after_one},
	                            {SHEAF_HOOK_PRE, 0, before, &before_one},
	                            {SHEAF_HOOK_PRE, 0, before, &before_two}};
	k.how.hooks = hooks;
	k.how.hook_count = COUNT_OF(hooks);
	kit_start(&k);
	k.script = (step[]){{.body = SAYS("Hi"), .also = note_model}, {.ends = true}};
	after_one.answer = SHEAF_CONFLICT;
	kit_run(&k, "Hello", SHEAF_CONFLICT);
	assert_string_equal(k.err.message, "not good");
	assert_string_equal(order, "one(0) two(0) model after:Hi ");
	/* What hooks add is stored and sent, in their order, before the input. */
	kit_path(&k, "user:one user:two user:Hello assistant:Hi");
	assert_non_null(strstr(k.last_request, "\"system\""));
	const char *system = strstr(k.last_request, "\"system\"");
	assert_non_null(strstr(system, "one"));
	kit_ends(&k, "completed");
	kit_close(&k);
}

static void refused(void **state)
{
	(void)state;
	static kit k;
	kit_prepare(&k, "memory:");
	before_one = (seen){.k = &k, .name = "one", .answer = SHEAF_DENIED};
	sheaf_agent_hook hook = {SHEAF_HOOK_PRE, 0, before, &before_one};
	k.how.hooks = &hook;
	k.how.hook_count = 1;
	kit_start(&k);
	k.script = (step[]){{.ends = true}};
	kit_run(&k, "Hello", SHEAF_DENIED);
	assert_null(k.turn);
	assert_string_equal(k.events, "");
	kit_path(&k, "");
	kit_close(&k);
}

/* ---- Sessions ---------------------------------------------------------------- */

static void without_a_session(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, NULL);
	k.script = (step[]){{.body = REPLY(CALL("c1", "echo", "{}"), "tool_use")},
	                    {.body = SAYS("Hi")},
	                    {.body = SAYS("Who?")},
	                    {.ends = true}};
	kit_run(&k, "Hello", 0);
	assert_int_equal(k.turn->records->count, 4);
	assert_string_equal(kit_words(&k, k.turn->records),
	                    "user:Hello assistant:@c1 tool:={} assistant:Hi");
	kit_run(&k, "Remember?", 0);
	assert_null(strstr(k.last_request, "Hello"));
	kit_run(&k, NULL, SHEAF_CONTEXT);
	kit_close(&k);
}

static void another_session(void **state)
{
	(void)state;
	static kit k;
	sheaf_session *other = NULL;
	sheaf_key key = sheaf_key_of("other");
	kit_open(&k, "memory:");
	assert_int_equal(sheaf_session_open(&other, k.store, &key, NULL, &k.err), 0);
	k.script = (step[]){
		{.body = SAYS("a")}, {.body = SAYS("b")}, {.body = SAYS("c")}, {.ends = true}};
	kit_run(&k, "mine", 0);
	k.call.session = other;
	k.call.model = SHEAF_STR("claude-opus-4-1");
	k.call.turn = SHEAF_STR("t7");
	kit_run(&k, "other", 0);
	assert_true(sheaf_str_is(k.turn->id, "t7"));
	assert_non_null(strstr(k.last_request, "claude-opus-4-1"));
	assert_null(strstr(k.last_request, "mine"));
	k.call.session = NULL;
	k.call.no_session = 1;
	kit_run(&k, "nobody's", 0);
	kit_path(&k, "user:mine assistant:a");
	sheaf_session *mine = k.s;
	k.s = other;
	kit_path(&k, "user:other assistant:b");
	k.s = mine;
	sheaf_session_close(other);
	kit_close(&k);
}

static void branches_of_a_session(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, "memory:");
	k.script = (step[]){{.body = SAYS("a")}, {.body = SAYS("b")}, {.ends = true}};
	kit_run(&k, "one", 0);
	assert_int_equal(sheaf_session_branch(k.s, SHEAF_STR("side"), k.turn->records->items[0]->id,
	                                      NULL, NULL, &k.err),
	                 0);
	k.call.branch = SHEAF_STR("side");
	kit_run(&k, "two", 0);
	assert_int_equal(k.turn->records->count, 2);
	kit_path(&k, "user:one assistant:a");
	k.call.branch = SHEAF_STR("absent");
	kit_run(&k, "three", SHEAF_NOT_FOUND);
	kit_close(&k);
}

/* ---- One at a time ------------------------------------------------------------- */

static int inner_code;

static void run_inside(kit *k)
{
	sheaf_error err;
	sheaf_run_options how = SHEAF_RUN_OPTIONS_INIT;
	how.wait_us = 60000000; /* it is not waited for: the one that is waited for would wait */
	inner_code = sheaf_agent_run_text(NULL, k->agent, SHEAF_STR("me too"), &how, &err);
}

static void *run_beside(void *ctx)
{
	kit *k = ctx;
	sheaf_error err;
	sheaf_session *same = NULL;
	sheaf_key key = sheaf_key_of("s");
	sheaf_run_options how = SHEAF_RUN_OPTIONS_INIT;
	how.wait_us = 30000;
	assert_int_equal(sheaf_session_open(&same, k->store, &key, NULL, &err), 0);
	how.session = same; /* another handle */
	inner_code = sheaf_agent_run_text(NULL, k->agent, SHEAF_STR("me too"), &how, &err);
	sheaf_session_close(same);
	return NULL;
}

static void run_in_thread(kit *k)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, run_beside, k), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static pthread_t waiting;
static sheaf_cancel *stop_waiting;

static void *run_when_free(void *ctx)
{
	kit *k = ctx;
	sheaf_error err;
	sheaf_run_options how = SHEAF_RUN_OPTIONS_INIT;
	how.wait_us = 60000000;
	how.cancel = stop_waiting;
	inner_code = sheaf_agent_run_text(NULL, k->agent, SHEAF_STR("me too"), &how, &err);
	return NULL;
}

static void start_waiting(kit *k)
{
	assert_int_equal(pthread_create(&waiting, NULL, run_when_free, k), 0);
}

static void start_and_cancel(kit *k)
{
	start_waiting(k);
	sheaf_cancel_set(stop_waiting, 1);
	assert_int_equal(pthread_join(waiting, NULL), 0);
}

static void waiting_for_another(void **state)
{
	(void)state;
	static kit k;
	stop_waiting = sheaf_cancel_new();
	assert_non_null(stop_waiting);
	kit_open(&k, "memory:");
	k.script = (step[]){{.body = SAYS("a"), .also = start_and_cancel},
	                    {.body = SAYS("b"), .also = start_waiting},
	                    {.body = SAYS("c")},
	                    {.ends = true}};
	kit_run(&k, "one", 0);
	assert_int_equal(inner_code, SHEAF_CANCELLED);
	sheaf_cancel_set(stop_waiting, 0);
	kit_run(&k, "two", 0);
	assert_int_equal(pthread_join(waiting, NULL), 0);
	assert_int_equal(inner_code, 0);
	kit_path(&k, "user:one assistant:a user:two assistant:b user:me too assistant:c");
	kit_close(&k);
	sheaf_cancel_free(stop_waiting);
}

static void one_at_a_time(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, "memory:");
	k.script = (step[]){{.body = SAYS("a"), .also = run_inside},
	                    {.body = SAYS("b"), .also = run_in_thread},
	                    {.body = SAYS("c")},
	                    {.ends = true}};
	inner_code = 0;
	kit_run(&k, "one", 0);
	assert_int_equal(inner_code, SHEAF_BUSY);
	inner_code = 0;
	kit_run(&k, "two", 0);
	assert_int_equal(inner_code, SHEAF_BUSY);
	kit_run(&k, "three", 0);
	kit_path(&k, "user:one assistant:a user:two assistant:b user:three assistant:c");
	kit_close(&k);
}

/* ---- Queued input ---------------------------------------------------------------- */

static void steer_and_follow(kit *k)
{
	assert_int_equal(sheaf_agent_follow_up(k->agent, NULL, SHEAF_STR("later"), &k->err), 0);
	assert_int_equal(sheaf_agent_steer(k->agent, NULL, SHEAF_STR("left"), &k->err), 0);
}

static void steering(void **state)
{
	static const char *const urls[] = {"memory:", NULL};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(urls); i++) {
		static kit k;
		kit_open(&k, urls[i]);
		k.script = (step[]){{.body = REPLY(CALL("c1", "echo", "{}"), "tool_use"),
		                     .also = steer_and_follow},
		                    {.body = SAYS("to the left")},
		                    {.body = SAYS("later then")},
		                    {.ends = true}};
		kit_run(&k, "go", 0);
		assert_string_equal(k.turn->text.ptr, "later then");
		if (k.s != NULL) {
			kit_path(&k, "user:go assistant:@c1 tool:={} user:left "
			             "assistant:to the left user:later assistant:later then");
			kit_ends(&k, "completed completed");
			sheaf_queue_items *left = NULL;
			assert_int_equal(sheaf_session_pending(&left, k.s, &k.err), 0);
			assert_int_equal(left->count, 0);
			sheaf_queue_items_free(left);
		}
		kit_close(&k);
	}
}

static void steer_at_the_end(kit *k)
{
	assert_int_equal(sheaf_agent_steer(k->agent, NULL, SHEAF_STR("one more"), &k->err), 0);
}

static void queue_alone(void **state)
{
	(void)state;
	static kit k;
	sheaf_enqueue_options how = SHEAF_ENQUEUE_OPTIONS_INIT;
	kit_open(&k, "memory:");
	how.environment = SHEAF_STR("{\"cwd\":\"/\"}");
	how.id = SHEAF_STR("q1");
	assert_int_equal(sheaf_session_enqueue(k.s, SHEAF_STR("waiting"), &how, NULL, &k.err), 0);
	k.script = (step[]){{.body = SAYS("here"), .also = steer_at_the_end},
	                    {.body = SAYS("more")},
	                    {.body = SAYS("kept")},
	                    {.ends = true}};
	/* Without input what waits is the input; what steers a turn that is over goes on with it. */
	kit_run(&k, NULL, 0);
	kit_path(&k, "user:waiting assistant:here user:one more assistant:more");
	kit_ends(&k, "completed");
	assert_true(sheaf_str_is(k.turn->records->items[0]->id, "q1"));
	assert_non_null(
		strstr(k.turn->records->items[0]->line.ptr, "\"environment\":{\"cwd\":\"/\"}"));
	/* Stored before, but never acknowledged: it is not said twice. */
	assert_int_equal(sheaf_session_enqueue(k.s, SHEAF_STR("waiting"), &how, NULL, &k.err), 0);
	kit_run(&k, NULL, SHEAF_CONTEXT);
	assert_int_equal(sheaf_agent_follow_up(k.agent, NULL, SHEAF_STR("left"), &k.err), 0);
	k.call.no_follow_ups = 1;
	kit_run(&k, "now", 0);
	kit_path(&k, "user:waiting assistant:here user:one more assistant:more user:now "
	             "assistant:kept");
	kit_close(&k);
}

/* ---- Compacting -------------------------------------------------------------------- */

static char prompted[KIT_TEXT];

static int summarise(void *ctx, const sheaf_cut *plan, sheaf_summary_sink *out, sheaf_error *err)
{
	int *code = ctx;
	str_copy_cut(prompted, sizeof(prompted), plan->prompt);
	if (*code != 0) {
		(void)snprintf(err->message, sizeof(err->message), "no summary");
		err->code = *code;
		return *code;
	}
	return sheaf_summary_add(out, SHEAF_STR("in short"));
}

static char *long_text(void)
{
	static char text[8001];
	memset(text, 'x', sizeof(text) - 1);
	return text;
}

static void compacting(void **state)
{
	(void)state;
	static kit k;
	int code = 0;
	kit_prepare(&k, "memory:");
	k.how.summarise = summarise;
	k.how.summarise_ctx = &code;
	k.compaction.keep_recent = 10;
	kit_start(&k);
	k.script = (step[]){
		{.body = SAYS("long, isn't it")},
		{.body = FAILS("invalid_request_error", "prompt is too long"), .status = 400},
		{.body = SAYS("shorter now")},
		{.body = REPLY(TEXT("half"), "model_context_window_exceeded")},
		{.ends = true}};
	kit_run(&k, long_text(), 0);
	kit_run(&k, "after", 0);
	assert_int_equal(k.turn->compacted, 1);
	assert_int_equal(k.turn->retries, 0);
	assert_non_null(strstr(k.events, "request compact_start compact_end request"));
	assert_non_null(strstr(k.last_request, "in short"));
	assert_null(strstr(k.last_request, "xxx"));
	/* A summariser that fails: the window is full, and that is what is said. */
	code = SHEAF_MODEL;
	kit_run(&k, "once more", SHEAF_MODEL);
	assert_string_equal(k.err.message, "no summary");
	kit_ends(&k, "completed completed failed");
	kit_renders(&k);
	assert_int_equal(sheaf_agent_compact(k.agent, (sheaf_str){NULL, 0}, NULL, NULL, &k.err),
	                 SHEAF_MODEL);
	kit_close(&k);
}

/* What fails, and how often the summariser was asked: never, or once. */
static void overflow_stays(int32_t no_compaction, int32_t want_compacted)
{
	static kit k;
	int code = 0;
	kit_prepare(&k, "memory:");
	k.how.no_compaction = no_compaction;
	k.how.summarise = summarise;
	k.how.summarise_ctx = &code;
	k.compaction.keep_recent = 10;
	kit_start(&k);
	static const step full = {.body = FAILS("invalid_request_error", "prompt is too long"),
	                          .status = 400};
	k.script = (step[]){{.body = SAYS("long, isn't it")}, full, full, {.ends = true}};
	kit_run(&k, long_text(), 0);
	kit_run(&k, "after", SHEAF_CONTEXT);
	assert_non_null(strstr(k.err.message, "too long"));
	assert_int_equal(k.turn->compacted, want_compacted);
	assert_int_equal(k.at, 2 + want_compacted);
	kit_renders(&k);
	kit_close(&k);
}

static void full_for_good(void **state)
{
	(void)state;
	overflow_stays(1, 0);
	overflow_stays(0, 1);
}

/* ---- Branches that are left ---------------------------------------------------------- */

static int asked;

static int ask(void *ctx, sheaf_session *session, size_t count)
{
	(void)session;
	asked = (int)count;
	return *(const int *)ctx;
}

static void leave_twice(int32_t policy, int answer, bool want)
{
	static kit k;
	int code = 0;
	int32_t summarised = -1;
	char first[SHEAF_ID_ROOM];
	kit_prepare(&k, "memory:");
	k.how.branch_summary = policy;
	k.how.ask = ask;
	k.how.ask_ctx = &answer;
	k.how.summarise = summarise;
	k.how.summarise_ctx = &code;
	kit_start(&k);
	k.script = (step[]){
		{.body = SAYS("a")}, {.body = SAYS("b")}, {.body = SAYS("c")}, {.ends = true}};
	kit_run(&k, "one", 0);
	str_copy_cut(first, sizeof(first), k.turn->records->items[1]->id);
	kit_run(&k, "the wrong way", 0);
	asked = 0;
	prompted[0] = '\0';
	assert_int_equal(
		sheaf_agent_branch(k.agent, sheaf_str_of(first), NULL, &summarised, &k.err), 0);
	assert_int_equal(summarised, want);
	assert_int_equal(asked, policy == SHEAF_SUMMARY_ASK ? 2 : 0);
	kit_path(&k, want ? "user:one assistant:a branch_summary:" : "user:one assistant:a");
	assert_true((strstr(prompted, "the wrong way") != NULL) == want);
	/* Nothing is left behind by going nowhere. */
	assert_int_equal(sheaf_session_leaf(k.s, (sheaf_str){NULL, 0}, first, &k.err), 0);
	assert_int_equal(
		sheaf_agent_branch(k.agent, sheaf_str_of(first), NULL, &summarised, &k.err), 0);
	assert_int_equal(summarised, 0);
	kit_run(&k, "again", 0);
	assert_true((strstr(k.last_request, "in short") != NULL) == want);
	kit_close(&k);
}

static void leaving_branches(void **state)
{
	(void)state;
	leave_twice(SHEAF_SUMMARY_NEVER, 1, false);
	leave_twice(SHEAF_SUMMARY_ASK, 1, true);
	leave_twice(SHEAF_SUMMARY_ASK, 0, false);
	leave_twice(SHEAF_SUMMARY_ALWAYS, 0, true);
}

/* ---- Options and models ----------------------------------------------------------------- */

static void bad_options(void **state)
{
	(void)state;
	static kit k;
	sheaf_agent *agent = NULL;
	kit_prepare(&k, "memory:");
	sheaf_agent_options how = k.how;
	assert_int_equal(sheaf_agent_new(&agent, NULL, &k.err), SHEAF_INVALID);
	how.model.send = NULL;
	assert_int_equal(sheaf_agent_new(&agent, &how, &k.err), SHEAF_INVALID);
	how = k.how;
	how.model.format = 9;
	assert_int_equal(sheaf_agent_new(&agent, &how, &k.err), SHEAF_INVALID);
	how = k.how;
	how.branch_summary = SHEAF_SUMMARY_ASK;
	assert_int_equal(sheaf_agent_new(&agent, &how, &k.err), SHEAF_INVALID);
	sheaf_agent_tool nameless = {{{NULL, 0}, {NULL, 0}, {NULL, 0}}, kit_echo, NULL};
	how = k.how;
	how.tools = &nameless;
	how.tool_count = 1;
	assert_int_equal(sheaf_agent_new(&agent, &how, &k.err), SHEAF_INVALID);
	assert_null(agent);
	kit_close(&k);
}

static int tells(void *ctx, const sheaf_request *request, sheaf_answer *answer, sheaf_error *err)
{
	kit *k = ctx;
	sheaf_usage usage = {.input = 3, .output = 4};
	kit_check(k, request);
	sheaf_message *m = sheaf_message_new(SHEAF_ROLE_ASSISTANT);
	if (k->at++ == 0)
		(void)sheaf_message_tool_use(m, SHEAF_STR("c1"), SHEAF_STR("echo"),
		                             SHEAF_STR("{}"));
	else
		(void)sheaf_message_text(m, SHEAF_STR("told"));
	int rc = sheaf_answer_message(answer, m, SHEAF_STOP_UNKNOWN, &usage, err);
	assert_int_equal(sheaf_answer_feed(answer, SHEAF_STR("{}"), NULL), SHEAF_INVALID);
	sheaf_message_free(m);
	return rc;
}

static void messages_instead_of_bytes(void **state)
{
	(void)state;
	static kit k;
	kit_prepare(&k, "memory:");
	k.how.model.send = tells;
	kit_start(&k);
	kit_run(&k, "Hello", 0);
	kit_path(&k, "user:Hello assistant:@c1 tool:={} assistant:told");
	assert_int_equal(k.turn->usage.output, 8);
	const sheaf_message_view *last = k.turn->records->items[3]->message;
	assert_true(sheaf_str_is(last->model, "claude-sonnet-4-5"));
	assert_int_equal(last->usage->input, 3);
	kit_close(&k);
}

static int look_at_temp(void *ctx, const sheaf_call *call, sheaf_tool_answer *answer,
                        sheaf_error *err)
{
	(void)ctx;
	int rc = sheaf_session_state_set(call->session, SHEAF_STR("temp:x"), SHEAF_STR("1"), err);
	sheaf_state *value = NULL;
	rc = rc == 0 ? sheaf_session_state_get(&value, call->session, SHEAF_STR("temp:x"), err)
	             : rc;
	sheaf_state_free(value);
	return rc == 0 ? sheaf_tool_answer_text(answer, SHEAF_STR("seen")) : rc;
}

static void temporary_values_end(void **state)
{
	(void)state;
	static kit k;
	kit_prepare(&k, "memory:");
	sheaf_agent_tool tool = {{SHEAF_STR("echo"), {NULL, 0}, {NULL, 0}}, look_at_temp, NULL};
	k.how.tools = &tool;
	k.how.tool_count = 1;
	kit_start(&k);
	k.script = (step[]){{.body = REPLY(CALL("c1", "echo", "{}"), "tool_use")},
	                    {.body = SAYS("ok")},
	                    {.ends = true}};
	kit_run(&k, "Hello", 0);
	kit_path(&k, "user:Hello assistant:@c1 tool:=seen assistant:ok");
	sheaf_state *value = NULL;
	assert_int_equal(sheaf_session_state_get(&value, k.s, SHEAF_STR("temp:x"), &k.err),
	                 SHEAF_NOT_FOUND);
	kit_close(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hooks_in_order),
		cmocka_unit_test(refused),
		cmocka_unit_test(without_a_session),
		cmocka_unit_test(another_session),
		cmocka_unit_test(branches_of_a_session),
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(waiting_for_another),
		cmocka_unit_test(steering),
		cmocka_unit_test(queue_alone),
		cmocka_unit_test(compacting),
		cmocka_unit_test(full_for_good),
		cmocka_unit_test(leaving_branches),
		cmocka_unit_test(bad_options),
		cmocka_unit_test(messages_instead_of_bytes),
		cmocka_unit_test(temporary_values_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
