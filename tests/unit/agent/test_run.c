/* Turns: what is stored and in which order, tools, retries, cancelling, suspending. */
#include "kit.h"

static void plain(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, "memory:");
	k.script = (step[]){{.body = SAYS("Hi")}, {.body = SAYS("Again")}, {.ends = true}};
	kit_run(&k, "Hello", 0);
	assert_int_equal(k.turn->outcome, SHEAF_TURN_COMPLETED);
	assert_int_equal(k.turn->stop, SHEAF_STOP_END);
	assert_int_equal(k.turn->steps, 1);
	assert_int_equal(k.turn->usage.input, 10);
	assert_string_equal(k.turn->text.ptr, "Hi");
	assert_int_equal(k.turn->records->count, 2);
	assert_string_equal(k.events, "turn_start message_end(user) request message_end(assistant) "
	                              "delta(Hi) turn_end");
	kit_path(&k, "user:Hello assistant:Hi");
	kit_run(&k, "More", 0);
	assert_int_equal(k.turn->records->count, 2);
	kit_path(&k, "user:Hello assistant:Hi user:More assistant:Again");
	kit_ends(&k, "completed completed");
	/* There is nothing left to answer. */
	kit_run(&k, NULL, SHEAF_CONTEXT);
	assert_null(k.turn);
	kit_close(&k);
}

static void input_first(kit *k)
{
	kit_path(k, "user:Hello");
}

static void durable_before_the_model(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, "memory:");
	k.script = (step[]){{.body = SAYS("Hi"), .also = input_first}, {.ends = true}};
	kit_run(&k, "Hello", 0);
	kit_close(&k);
}

static void tools(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, "memory:");
	k.script = (step[]){
		{.body = REPLY(TEXT("Look") "," CALL("c1", "echo",
	                                             "{\"a\":1}") "," CALL("c2", "absent", "{}"),
	                       "tool_use")},
		{.body = SAYS("Done")},
		{.ends = true}};
	kit_run(&k, "Go", 0);
	kit_path(&k, "user:Go assistant:Look@c1@c2 tool:={\"a\":1} "
	             "tool:!there is no tool of this name assistant:Done");
	assert_int_equal(k.turn->steps, 2);
	assert_int_equal(k.turn->usage.output, 10);
	assert_string_equal(k.turn->text.ptr, "Done");
	assert_non_null(strstr(k.events, "tool_start message_end(tool) tool_end tool_start"));
	kit_close(&k);
}

static int shout(void *ctx, const sheaf_call *call, sheaf_tool_answer *answer, sheaf_error *err)
{
	(void)ctx, (void)call, (void)err;
	char *huge = calloc(1, SHEAF_BODY_BYTES_MAX);
	assert_non_null(huge);
	memset(huge, 'x', SHEAF_BODY_BYTES_MAX);
	int rc = sheaf_tool_answer_text(answer, (sheaf_str){huge, SHEAF_BODY_BYTES_MAX});
	assert_int_equal(rc, 0);
	assert_int_equal(sheaf_tool_answer_text(answer, SHEAF_STR("x")), SHEAF_TOO_LARGE);
	free(huge);
	return rc;
}

static int show(void *ctx, const sheaf_call *call, sheaf_tool_answer *answer, sheaf_error *err)
{
	(void)ctx, (void)call, (void)err;
	(void)sheaf_tool_answer_image(answer, SHEAF_STR("base64"), SHEAF_STR("image/png"),
	                              SHEAF_STR("iVBORw0KGgo="));
	(void)sheaf_tool_answer_text(answer, SHEAF_STR("broken \xff text"));
	return SHEAF_DENIED;
}

static void strange_answers(void **state)
{
	(void)state;
	static kit k;
	const sheaf_agent_tool strange[] = {{{{"shout", 5}, {NULL, 0}, {NULL, 0}}, shout, NULL},
	                                    {{{"show", 4}, {NULL, 0}, {NULL, 0}}, show, NULL}};
	kit_prepare(&k, "memory:");
	k.how.tools = strange;
	k.how.tool_count = COUNT_OF(strange);
	kit_start(&k);
	k.script = (step[]){
		{.body = REPLY(CALL("c1", "shout", "{}") "," CALL("c2", "show", "{}"), "tool_use")},
		{.body = SAYS("Too much")},
		{.ends = true}};
	kit_run(&k, "Go", 0);
	kit_path(&k, "user:Go assistant:@c1@c2 tool:!the tool's answer is too large to be kept "
	             "tool:! assistant:Too much");
	const sheaf_part *shown = k.turn->records->items[3]->message->parts[0];
	assert_int_equal(shown->part_count, 2);
	assert_int_equal(shown->parts[0]->kind, SHEAF_PART_IMAGE);
	assert_true(sheaf_str_is(shown->parts[1]->text, "broken \xef\xbf\xbd text"));
	kit_close(&k);
}

static void retries(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, "memory:");
	k.script = (step[]){{.body = FAILS("rate_limit_error", "slow down"), .status = 429},
	                    {.body = FAILS("api_error", "broken"), .status = 500},
	                    {.code = SHEAF_MODEL},
	                    {.body = SAYS("Hi")},
	                    {.ends = true}};
	kit_run(&k, "Hello", 0);
	assert_int_equal(k.turn->retries, 3);
	kit_path(&k, "user:Hello assistant:Hi");
	/* Five tries, then it is given up; the input stays. */
	k.at = 0;
	k.script = (step[]){{.code = SHEAF_TIMEOUT}, {.code = SHEAF_TIMEOUT}, {.code = SHEAF_MODEL},
	                    {.code = SHEAF_MODEL},   {.code = SHEAF_MODEL},   {.ends = true}};
	kit_run(&k, "Again", SHEAF_MODEL);
	assert_int_equal(k.turn->outcome, SHEAF_TURN_FAILED);
	assert_int_equal(k.turn->code, SHEAF_MODEL);
	kit_path(&k, "user:Hello assistant:Hi user:Again");
	/* And is answered without being said again. */
	k.at = 0;
	k.script = (step[]){{.body = SAYS("Here")}, {.ends = true}};
	kit_run(&k, NULL, 0);
	kit_path(&k, "user:Hello assistant:Hi user:Again assistant:Here");
	kit_ends(&k, "completed failed completed");
	kit_close(&k);
}

static void not_retried(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, "memory:");
	k.script = (step[]){
		{.body = FAILS("authentication_error", "bad key"), .status = 401},
		{.body = FAILS("invalid_request_error", "no such thing"), .status = 400},
		{.body = FAILS("rate_limit_error", "tomorrow"),
	         .status = 429,
	         .retry_after_us = 3600 * (int64_t)1000000},
		{.ends = true}};
	kit_run(&k, "a", SHEAF_DENIED);
	assert_non_null(strstr(k.err.message, "bad key"));
	kit_run(&k, "b", SHEAF_MODEL);
	assert_non_null(strstr(k.err.message, "400"));
	kit_run(&k, "c", SHEAF_MODEL);
	kit_path(&k, "user:a user:b user:c");
	kit_renders(&k);
	kit_close(&k);
}

#define EVENT(name, data) "event: " name "\ndata: " data "\n\n"
#define STREAM_START                                                                               \
	EVENT("message_start", "{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\","        \
	                       "\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\","      \
	                       "\"content\":[],\"stop_reason\":null,\"usage\":{"                   \
	                       "\"input_tokens\":10,\"output_tokens\":1}}}")
#define STREAM_TEXT(text)                                                                          \
	EVENT("content_block_start", "{\"type\":\"content_block_start\",\"index\":0,"              \
	                             "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}")       \
	EVENT("content_block_delta", "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{"   \
	                             "\"type\":\"text_delta\",\"text\":\"" text "\"}}")
#define STREAM_END                                                                                 \
	EVENT("content_block_stop", "{\"type\":\"content_block_stop\",\"index\":0}")               \
	EVENT("message_delta", "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"           \
	                       "\"end_turn\"},\"usage\":{\"output_tokens\":5}}")                   \
	EVENT("message_stop", "{\"type\":\"message_stop\"}")

static void cut_streams_branch(void **state)
{
	(void)state;
	static kit k;
	sheaf_records *children = NULL;
	kit_prepare(&k, "memory:");
	k.render.stream = 1;
	kit_start(&k);
	k.script = (step[]){{.body = STREAM_START STREAM_TEXT("Hal")},
	                    {.body = STREAM_START STREAM_TEXT("Hallo") STREAM_END},
	                    {.ends = true}};
	kit_run(&k, "Hello", 0);
	kit_path(&k, "user:Hello assistant:Hallo");
	assert_non_null(strstr(k.events, "delta(Hal) message_end(assistant) retry request"));
	/* What broke off is still there, beside the reply, and says so. */
	assert_int_equal(
		sheaf_session_children(&children, k.s, k.turn->records->items[0]->id, &k.err), 0);
	assert_int_equal(children->count, 2);
	assert_string_equal(kit_words(&k, children), "assistant:Hal assistant:Hallo");
	assert_non_null(strstr(children->items[0]->line.ptr, "\"incomplete\":true"));
	assert_int_equal(k.turn->usage.input, 20);
	sheaf_records_free(children);
	kit_close(&k);
}

static void press_cancel(kit *k)
{
	sheaf_cancel_set(k->cancel, 1);
}

static int stop_in_tool(void *ctx, const sheaf_call *call, sheaf_tool_answer *answer,
                        sheaf_error *err)
{
	(void)ctx, (void)call, (void)answer, (void)err;
	press_cancel(ctx);
	return SHEAF_CANCELLED;
}

static void cancelling(void **state)
{
	(void)state;
	static kit k;
	kit_prepare(&k, "memory:");
	sheaf_agent_tool stop = {{{"stop", 4}, {NULL, 0}, {NULL, 0}}, stop_in_tool, &k};
	k.how.tools = &stop;
	k.how.tool_count = 1;
	kit_start(&k);
	k.script = (step[]){
		{.body = SAYS("never"), .also = press_cancel},
		{.body = REPLY(CALL("c1", "stop", "{}") "," CALL("c2", "stop", "{}"), "tool_use")},
		{.body = SAYS("Fine")},
		{.ends = true}};
	kit_run(&k, "Hello", SHEAF_CANCELLED);
	assert_int_equal(k.turn->outcome, SHEAF_TURN_CANCELLED);
	kit_path(&k, "user:Hello");
	sheaf_cancel_set(k.cancel, 0);
	kit_run(&k, "Stop", SHEAF_CANCELLED);
	kit_path(&k, "user:Hello user:Stop assistant:@c1@c2 tool:!interrupted tool:!interrupted");
	sheaf_cancel_set(k.cancel, 0);
	kit_run(&k, "Go on", 0);
	kit_ends(&k, "cancelled cancelled completed");
	kit_close(&k);
}

static void pauses_and_limits(void **state)
{
	(void)state;
	static kit k;
	kit_prepare(&k, "memory:");
	k.how.steps_max = 2;
	kit_start(&k);
	k.script = (step[]){{.body = REPLY(TEXT("wait"), "pause_turn")},
	                    {.body = SAYS("there")},
	                    {.body = REPLY(TEXT("cut"), "max_tokens")},
	                    {.body = REPLY(CALL("c1", "echo", "{}"), "max_tokens")},
	                    {.body = REPLY(CALL("c2", "echo", "{}"), "tool_use")},
	                    {.ends = true}};
	kit_run(&k, "a", 0);
	kit_path(&k, "user:a assistant:wait assistant:there");
	kit_run(&k, "b", 0);
	assert_int_equal(k.turn->stop, SHEAF_STOP_LENGTH);
	kit_run(&k, "c", 0);
	assert_int_equal(k.turn->outcome, SHEAF_TURN_LIMIT);
	kit_path(&k, "user:a assistant:wait assistant:there user:b assistant:cut user:c "
	             "assistant:@c1 tool:!not run: the reply was cut off at its limit "
	             "assistant:@c2 tool:={}");
	kit_ends(&k, "completed completed limit");
	kit_close(&k);
}

static void suspending(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, "memory:");
	k.script = (step[]){{.body = REPLY(CALL("c1", "ask", "{\"q\":1}") "," CALL(
						   "c2", "echo", "{}") "," CALL("c3", "ask", "{}"),
	                                   "tool_use")},
	                    {.body = SAYS("Thanks")},
	                    {.ends = true}};
	kit_run(&k, "Ask", 0);
	assert_int_equal(k.turn->outcome, SHEAF_TURN_SUSPENDED);
	assert_int_equal(k.turn->pending_count, 2);
	assert_true(sheaf_str_is(k.turn->pending[0].id, "c1"));
	assert_true(sheaf_str_is(k.turn->pending[0].input, "{\"q\":1}"));
	kit_path(&k, "user:Ask assistant:@c1@c2@c3 tool:={}");
	kit_renders(&k);
	kit_run(&k, "What now", SHEAF_BUSY);
	/* Another process knows as much. */
	sheaf_agent_free(k.agent);
	kit_start(&k);
	sheaf_turn *turn = NULL;
	assert_int_equal(sheaf_agent_pending(&turn, k.agent, NULL, &k.err), 0);
	assert_int_equal(turn->pending_count, 2);
	assert_int_equal(turn->usage.input, 10);
	sheaf_turn_free(turn);
	sheaf_resume wrong[] = {{.call_id = SHEAF_STR("c1")}, {.call_id = SHEAF_STR("c9")}};
	assert_int_equal(sheaf_agent_resume(&turn, k.agent, wrong, 2, NULL, &k.err),
	                 SHEAF_NOT_FOUND);
	assert_null(turn);
	sheaf_resume one = {SHEAF_STR("c3"), SHEAF_STR("no"), 1, 0};
	assert_int_equal(sheaf_agent_resume(&turn, k.agent, &one, 1, NULL, &k.err), 0);
	assert_int_equal(turn->outcome, SHEAF_TURN_SUSPENDED);
	assert_int_equal(turn->pending_count, 1);
	sheaf_turn_free(turn);
	sheaf_resume other = {SHEAF_STR("c1"), {NULL, 0}, 0, 1};
	assert_int_equal(sheaf_agent_resume(&turn, k.agent, &other, 1, NULL, &k.err), 0);
	assert_int_equal(turn->outcome, SHEAF_TURN_COMPLETED);
	assert_int_equal(turn->usage.input, 20);
	assert_int_equal(turn->records->count, 6);
	assert_true(str_eq(turn->id, k.turn != NULL ? k.turn->id : turn->id));
	sheaf_turn_free(turn);
	kit_path(&k, "user:Ask assistant:@c1@c2@c3 tool:={} tool:!no tool:=done assistant:Thanks");
	kit_ends(&k, "suspended suspended completed");
	assert_int_equal(sheaf_agent_resume(&turn, k.agent, &one, 1, NULL, &k.err),
	                 SHEAF_NOT_FOUND);
	kit_close(&k);
}

static void giving_up(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, "memory:");
	k.script = (step[]){{.body = REPLY(CALL("c1", "ask", "{}"), "tool_use")},
	                    {.body = SAYS("Well")},
	                    {.ends = true}};
	assert_int_equal(sheaf_agent_give_up(k.agent, NULL, &k.err), SHEAF_NOT_FOUND);
	kit_run(&k, "Ask", 0);
	assert_int_equal(sheaf_agent_give_up(k.agent, NULL, &k.err), 0);
	kit_path(&k, "user:Ask assistant:@c1 tool:!cancelled");
	kit_run(&k, "Never mind", 0);
	kit_ends(&k, "suspended cancelled completed");
	kit_close(&k);
}

/* What a process leaves behind that dies after the model called a tool. */
static void interrupted(void **state)
{
	(void)state;
	static kit k;
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	kit_open(&k, "memory:");
	entry.turn = SHEAF_STR("t1");
	sheaf_message *m = sheaf_message_new(SHEAF_ROLE_USER);
	(void)sheaf_message_text(m, SHEAF_STR("Hello"));
	assert_int_equal(sheaf_session_append_message(k.s, m, &entry, NULL, NULL, &k.err), 0);
	sheaf_message_free(m);
	m = sheaf_message_new(SHEAF_ROLE_ASSISTANT);
	(void)sheaf_message_tool_use(m, SHEAF_STR("c1"), SHEAF_STR("echo"), SHEAF_STR("{}"));
	assert_int_equal(sheaf_session_append_message(k.s, m, &entry, NULL, NULL, &k.err), 0);
	sheaf_message_free(m);
	k.script = (step[]){{.body = SAYS("Back")}, {.ends = true}};
	kit_run(&k, NULL, 0);
	assert_true(strncmp(k.events, "message_end(tool) tool_end interrupted turn_start", 49) ==
	            0);
	kit_path(&k, "user:Hello assistant:@c1 tool:!interrupted assistant:Back");
	kit_ends(&k, "interrupted completed");
	kit_close(&k);
}

static void another_writes(kit *k)
{
	assert_int_equal(sheaf_session_append_text(k->s, SHEAF_ROLE_USER, SHEAF_STR("Me too"), NULL,
	                                           &k->err),
	                 0);
}

static void somebody_else(void **state)
{
	(void)state;
	static kit k;
	kit_open(&k, "memory:");
	k.script = (step[]){{.body = SAYS("Hi"), .also = another_writes}, {.ends = true}};
	kit_run(&k, "Hello", SHEAF_STALE);
	assert_int_equal(k.turn->outcome, SHEAF_TURN_FAILED);
	kit_path(&k, "user:Hello user:Me too");
	kit_ends(&k, "failed");
	kit_close(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),
		cmocka_unit_test(durable_before_the_model),
		cmocka_unit_test(tools),
		cmocka_unit_test(strange_answers),
		cmocka_unit_test(retries),
		cmocka_unit_test(not_retried),
		cmocka_unit_test(cut_streams_branch),
		cmocka_unit_test(cancelling),
		cmocka_unit_test(pauses_and_limits),
		cmocka_unit_test(suspending),
		cmocka_unit_test(giving_up),
		cmocka_unit_test(interrupted),
		cmocka_unit_test(somebody_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
