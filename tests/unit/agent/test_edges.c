/* Rare cases of a run: moments between two steps, extreme numbers, input that is there twice. */
#include "kit.h"

#define NONE ((sheaf_str){NULL, 0})
#define HALF                                                                                       \
	"event: message_start\n"                                                                   \
	"data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\","    \
	"\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{"   \
	"\"input_tokens\":10,\"output_tokens\":1}}}\n\n"                                           \
	"event: content_block_start\n"                                                             \
	"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{"                  \
	"\"type\":\"text\",\"text\":\"\"}}\n\n"                                                    \
	"event: content_block_delta\n"                                                             \
	"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{"                          \
	"\"type\":\"text_delta\",\"text\":\"Hal\"}}\n\n"

/* ---- Somebody else at the worst moment -------------------------------------- */

static void write_behind_the_reply(void *ctx, const sheaf_event *event)
{
	kit *k = ctx;
	if (event->kind == SHEAF_EVENT_MESSAGE_END &&
	    sheaf_str_is(event->entry->message->role, SHEAF_ROLE_ASSISTANT))
		assert_int_equal(sheaf_session_append_text(k->s, SHEAF_ROLE_USER,
		                                           SHEAF_STR("Me too"), NULL, &k->err),
		                 0);
}

static void written_behind_a_broken_reply(void **state)
{
	(void)state;
	static kit k;
	kit_prepare(&k, "memory:");
	k.render.stream = 1;
	k.how.on_event = write_behind_the_reply;
	kit_start(&k);
	k.script = (step[]){{.body = HALF}, {.body = SAYS("Hallo")}, {.ends = true}};
	kit_run(&k, "Hello", SHEAF_STALE);
	kit_path(&k, "user:Hello assistant:Hal user:Me too");
	kit_close(&k);
}

static void write_much(kit *k)
{
	for (int i = 0; i < 5; i++)
		assert_int_equal(sheaf_session_append_text(k->s, SHEAF_ROLE_USER,
		                                           SHEAF_STR("Me too"), NULL, &k->err),
		                 0);
}

/* The turn is as long as it is, however much others have put behind it. */
static void much_is_written_behind(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, "memory:");
	k.script = (step[]){{.body = SAYS("Hi"), .also = write_much}, {.ends = true}};
	kit_run(&k, "Hello", SHEAF_STALE);
	assert_string_equal(kit_words(&k, k.turn->records), "user:Hello");
	kit_close(&k);
}

static int write_while_summarising(void *ctx, const sheaf_cut *plan, sheaf_summary_sink *out,
                                   sheaf_error *err)
{
	kit *k = ctx;
	(void)plan;
	int rc = sheaf_session_append_text(k->s, SHEAF_ROLE_USER, SHEAF_STR("Me too"), NULL, err);
	return rc == 0 ? sheaf_summary_add(out, SHEAF_STR("in short")) : rc;
}

static const char *long_text(void)
{
	static char text[4000];
	memset(text, 'x', sizeof(text) - 1);
	return text;
}

static void written_while_summarising(void **state)
{
	(void)state;
	static kit k;
	kit_prepare(&k, "memory:");
	k.how.summarise = write_while_summarising;
	k.how.summarise_ctx = &k;
	k.compaction.keep_recent = 10;
	kit_start(&k);
	k.script = (step[]){
		{.body = SAYS("long, isn't it")},
		{.body = FAILS("invalid_request_error", "prompt is too long"), .status = 400},
		{.ends = true}};
	kit_run(&k, long_text(), 0);
	kit_run(&k, "after", SHEAF_STALE);
	assert_int_equal(k.err.code, SHEAF_STALE);
	kit_ends(&k, "completed failed");
	/* Whoever compacts only, and asks nothing of a model, has nothing to mind. */
	assert_int_equal(sheaf_session_append_text(k.s, SHEAF_ROLE_USER, sheaf_str_of(long_text()),
	                                           NULL, &k.err),
	                 0);
	assert_int_equal(sheaf_agent_compact(k.agent, NONE, NULL, NULL, &k.err), 0);
	kit_close(&k);
}

/* ---- Waiting ------------------------------------------------------------------ */

static int64_t longest;

static void note_wait(void *ctx, const sheaf_event *event)
{
	(void)ctx;
	if (event->kind == SHEAF_EVENT_RETRY && event->wait_us > longest)
		longest = event->wait_us;
}

static void never_longer_than_said(void **state)
{
	(void)state;
	static kit k;
	kit_prepare(&k, "memory:");
	k.how.backoff_us = k.how.backoff_max_us = 1000;
	k.how.retries = 40;
	k.how.on_event = note_wait;
	kit_start(&k);
	static step script[42];
	for (size_t i = 0; i < 40; i++)
		script[i] = (step){.code = SHEAF_MODEL};
	script[40] = (step){.body = SAYS("Hi")};
	script[41] = (step){.ends = true};
	k.script = script;
	longest = 0;
	kit_run(&k, "Hello", 0);
	assert_in_range(longest, 1, 1000);
	/* Also when the provider asks for it. */
	k.at = 0;
	k.script = (step[]){{.body = FAILS("rate_limit_error", "slow down"),
	                     .status = 429,
	                     .retry_after_us = 1001},
	                    {.ends = true}};
	kit_run(&k, "Again", SHEAF_MODEL);
	kit_close(&k);
}

static void as_long_as_it_takes(void **state)
{
	(void)state;
	static kit k;
	kit_prepare(&k, "memory:");
	k.how.backoff_max_us = INT64_MAX;
	k.call.wait_us = INT64_MAX;
	kit_start(&k);
	k.script = (step[]){{.code = SHEAF_MODEL}, {.body = SAYS("Hi")}, {.ends = true}};
	kit_run(&k, "Hello", 0);
	assert_int_equal(k.turn->retries, 1);
	kit_close(&k);
}

/* ---- Suspended turns ---------------------------------------------------------- */

static const step suspends[] = {{.body = REPLY(CALL("c1", "ask", "{}"), "tool_use")},
                                {.body = SAYS("Thanks")},
                                {.ends = true}};

static void answered_twice_at_once(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, "memory:");
	k.script = suspends;
	kit_run(&k, "Ask", 0);
	sheaf_turn *turn = NULL;
	sheaf_resume answers[] = {{SHEAF_STR("c1"), SHEAF_STR("yes"), 0, 0},
	                          {SHEAF_STR("c1"), SHEAF_STR("no"), 0, 0}};
	assert_int_equal(sheaf_agent_resume(&turn, k.agent, answers, 2, NULL, &k.err),
	                 SHEAF_INVALID);
	assert_null(turn);
	kit_path(&k, "user:Ask assistant:@c1");
	assert_int_equal(sheaf_agent_resume(&turn, k.agent, answers, 1, NULL, &k.err), 0);
	sheaf_turn_free(turn);
	kit_path(&k, "user:Ask assistant:@c1 tool:=yes assistant:Thanks");
	kit_close(&k);
}

static void suspended_behind_many_notes(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, "memory:");
	k.script = suspends;
	kit_run(&k, "Ask", 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(
			sheaf_session_append_json(k.s, SHEAF_STR("custom"),
		                                  SHEAF_STR("{\"custom\":{\"custom_type\":\"x\"}}"),
		                                  NULL, NULL, NULL, &k.err),
			0);
	kit_run(&k, "What now", SHEAF_BUSY);
	sheaf_turn *turn = NULL;
	assert_int_equal(sheaf_agent_pending(&turn, k.agent, NULL, &k.err), 0);
	assert_int_equal(turn->pending_count, 1);
	sheaf_turn_free(turn);
	kit_close(&k);
}

/* What is queued was stored by a run that died before it could say so. */
static void queued_and_stored(void **state)
{
	(void)state;
	static kit k;
	sheaf_enqueue_options how = SHEAF_ENQUEUE_OPTIONS_INIT;
	kit_open(&k, "memory:");
	k.script = suspends;
	how.id = SHEAF_STR("q1");
	assert_int_equal(sheaf_session_enqueue(k.s, SHEAF_STR("Ask"), &how, NULL, &k.err), 0);
	kit_run(&k, NULL, 0);
	assert_int_equal(k.turn->outcome, SHEAF_TURN_SUSPENDED);
	assert_int_equal(sheaf_session_enqueue(k.s, SHEAF_STR("Ask"), &how, NULL, &k.err), 0);
	sheaf_turn *turn = NULL;
	sheaf_resume yes = {SHEAF_STR("c1"), SHEAF_STR("yes"), 0, 0};
	assert_int_equal(sheaf_agent_resume(&turn, k.agent, &yes, 1, NULL, &k.err), 0);
	sheaf_turn_free(turn);
	kit_path(&k, "user:Ask assistant:@c1 tool:=yes assistant:Thanks");
	kit_close(&k);
}

/* ---- Hooks -------------------------------------------------------------------- */

static int remind(void *ctx, sheaf_hook *hook, sheaf_error *err)
{
	(void)ctx, (void)err;
	sheaf_message *m = sheaf_message_new(SHEAF_ROLE_USER);
	(void)sheaf_message_text(m, SHEAF_STR("be brief"));
	int rc = sheaf_hook_message(hook, m);
	sheaf_message_free(m);
	return rc;
}

static void a_message_without_input(void **state)
{
	(void)state;
	static kit k;
	kit_prepare(&k, "memory:");
	sheaf_agent_hook hook = {SHEAF_HOOK_PRE, 0, remind, NULL};
	k.how.hooks = &hook;
	k.how.hook_count = 1;
	kit_start(&k);
	assert_int_equal(
		sheaf_session_append_text(k.s, SHEAF_ROLE_USER, SHEAF_STR("Hello"), NULL, &k.err),
		0);
	k.script = (step[]){{.body = SAYS("Hi")}, {.ends = true}};
	kit_run(&k, NULL, 0);
	kit_path(&k, "user:Hello user:be brief assistant:Hi");
	kit_close(&k);
}

/* ---- Summaries ---------------------------------------------------------------- */

/* A model that will not summarise has not summarised. */
static void refusing_to_summarise(void **state)
{
	(void)state;
	static kit k;
	kit_prepare(&k, "memory:");
	k.compaction.keep_recent = 10;
	kit_start(&k);
	k.script = (step[]){{.body = SAYS("long, isn't it")},
	                    {.body = SAYS("it is")},
	                    {.body = REPLY(TEXT("I can not help with that"), "refusal")},
	                    {.ends = true}};
	kit_run(&k, long_text(), 0);
	kit_run(&k, "really", 0);
	assert_int_equal(sheaf_agent_compact(k.agent, NONE, NULL, NULL, &k.err), SHEAF_MODEL);
	kit_close(&k);
}

/* Answers made up for the summary alone are stored nowhere: nobody is told of them. */
static void leaving_an_open_call(void **state)
{
	(void)state;
	static kit k;
	int32_t summarised = 0;
	kit_prepare(&k, "memory:");
	k.how.branch_summary = SHEAF_SUMMARY_ALWAYS;
	kit_start(&k);
	k.script = (step[]){{.body = REPLY(CALL("c1", "ask", "{}"), "tool_use")},
	                    {.body = SAYS("in short")},
	                    {.ends = true}};
	kit_run(&k, "Ask", 0);
	k.events[0] = '\0';
	assert_int_equal(sheaf_agent_branch(k.agent, NONE, NULL, &summarised, &k.err), 0);
	assert_int_equal(summarised, 1);
	assert_string_equal(k.events, "compact_start compact_end");
	kit_path(&k, "branch_summary:");
	kit_close(&k);
}

static int sums_up(void *ctx, const sheaf_cut *plan, sheaf_summary_sink *out, sheaf_error *err)
{
	(void)ctx, (void)plan, (void)err;
	return sheaf_summary_add(out, SHEAF_STR("in short"));
}

/* Answers of 15 MB each; five of them are more than a path or a context may hold. */
static int huge(void *ctx, const sheaf_call *call, sheaf_tool_answer *answer, sheaf_error *err)
{
	(void)call, (void)err;
	return sheaf_tool_answer_text(answer, (sheaf_str){ctx, (size_t)15 << 20});
}

/* More than can be read at once is no reason for a session, or a turn, to end. */
static void more_than_a_path_holds(void **state)
{
	(void)state;
	static kit k;
	const size_t len = (size_t)15 << 20;
	char *text = test_malloc(len);
	memset(text, 'x', len);
	const sheaf_agent_tool tool = {{{"huge", 4}, {"Much", 4}, {NULL, 0}}, huge, text};
	kit_prepare(&k, "memory:");
	k.how.tools = &tool;
	k.how.tool_count = 1;
	k.how.summarise = sums_up;
	k.compaction.keep_recent = 10;
	kit_start(&k);
	k.script = (step[]){
		{.body = REPLY(
			 CALL("c1", "huge", "{}") "," CALL("c2", "huge", "{}") "," CALL(
				 "c3", "huge", "{}") "," CALL("c4", "huge",
	                                                      "{}") "," CALL("c5", "huge", "{}"),
			 "tool_use")},
		{.body = SAYS("Much")},
		{.body = SAYS("Hi")},
		{.ends = true}};
	kit_run(&k, "All of it", 0);
	assert_string_equal(k.turn->text.ptr, "Much");
	/* And then a turn that never ended. */
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_message *m = sheaf_message_new(SHEAF_ROLE_USER);
	entry.turn = SHEAF_STR("t1");
	(void)sheaf_message_text(m, (sheaf_str){text, len});
	for (int i = 0; i < 5; i++)
		assert_int_equal(sheaf_session_append_message(k.s, m, &entry, NULL, NULL, &k.err),
		                 0);
	sheaf_message_free(m);
	kit_run(&k, "Hello", 0);
	assert_string_equal(k.turn->text.ptr, "Hi");
	kit_ends(&k, "completed interrupted completed");
	kit_close(&k);
	test_free(text);
}

/* ---- What is said ------------------------------------------------------------- */

static void too_large_to_send(void **state)
{
	(void)state;
	static kit k;
	kit_prepare(&k, "memory:");
	k.render.bytes_max = 2000;
	k.how.no_compaction = 1;
	kit_start(&k);
	k.script = (step[]){{.ends = true}};
	kit_run(&k, long_text(), SHEAF_CONTEXT);
	assert_int_equal(k.err.code, SHEAF_CONTEXT);
	kit_close(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_behind_a_broken_reply),
		cmocka_unit_test(much_is_written_behind),
		cmocka_unit_test(written_while_summarising),
		cmocka_unit_test(never_longer_than_said),
		cmocka_unit_test(as_long_as_it_takes),
		cmocka_unit_test(answered_twice_at_once),
		cmocka_unit_test(suspended_behind_many_notes),
		cmocka_unit_test(queued_and_stored),
		cmocka_unit_test(a_message_without_input),
		cmocka_unit_test(refusing_to_summarise),
		cmocka_unit_test(leaving_an_open_call),
		cmocka_unit_test(more_than_a_path_holds),
		cmocka_unit_test(too_large_to_send),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
