/* Tests of requests for OpenAI Responses. */
#include "render_test.h"

#include "support/fail_alloc.h"

#define EXT(members) "'ext':{'format':'openai-responses'," members "}"
#define SAID(text, members) "{'type':'text','text':{'content':'" text "'," EXT(members) "}}"
#define REASONED(text, members)                                                                    \
	"{'type':'thinking','thinking':{'text':'" text "','signature':'enc'," EXT(members) "}}"
#define CALLED(id, members)                                                                        \
	"{'type':'tool_use','tool_use':{'id':'" id "','name':'bash','input':{}," EXT(members) "}}"
#define OPAQUE(raw) "{'type':'opaque','opaque':{'provider':'openai-responses','raw':" raw "}}"
#define MADE "'provider':'openai','model':'m',"

#define USER(text)                                                                                 \
	"{'type':'message','role':'user','content':[{'type':'input_text','text':'" text "'}]}"
#define REPLY(members, text)                                                                       \
	"{'type':'message','role':'assistant'," members                                            \
	"'content':[{'type':'output_text','text':'" text "'}]}"
#define REASONING(members, text)                                                                   \
	"{'type':'reasoning'," members "'summary':[{'type':'summary_text','text':'" text "'}],"    \
	"'encrypted_content':'enc'}"
#define FUNCTION(members, id)                                                                      \
	"{'type':'function_call'," members "'call_id':'" id "','name':'bash','arguments':'{}'}"
#define OUTPUT(id, text) "{'type':'function_call_output','call_id':'" id "','output':'" text "'}"

static sheaf_render_options responses(void)
{
	return how_to(SHEAF_FORMAT_OPENAI_RESPONSES);
}

/* JSON is laid out by hand from here on. */
/* clang-format off */

static void test_messages_of_every_role(void **state)
{
	const sheaf_system pieces[] = {{SHEAF_STR("now"), 1, 0}, {SHEAF_STR("always"), 0, 0}};
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	say(&k, "developer", TEXT("do") "," TEXT("not"));
	say(&k, "system", TEXT("be"));
	say(&k, "user", SAID("hi", "'id':'msg_u'") "," PNG);
	say(&k, "assistant", TEXT("one") "," TEXT("two"));
	how.system = pieces;
	how.system_count = COUNT_OF(pieces);
	sheaf_request *q = rendered(&k, &how);
	member_is(q, "instructions", "'always\\n\\nnow'");
	member_is(q, "input", "[{'type':'message','role':'developer','content':["
	     "{'type':'input_text','text':'do'},{'type':'input_text','text':'not'}]},"
	     "{'type':'message','role':'system','content':[" "{'type':'input_text','text':'be'}]},"
	     "{'type':'message','role':'user','id':'msg_u','content':["
	     "{'type':'input_text','text':'hi'},"
	     "{'type':'input_image','image_url':'data:image/png;base64,AAAA'}]},"
	     "{'type':'message','role':'assistant','content':["
	     "{'type':'output_text','text':'one'},{'type':'output_text','text':'two'}]}]");
	sheaf_request_free(q);
	kit_close(&k);
}

/* A reply with everything, as it comes and goes back. */
static void say_reply(kit *k, const char *maker)
{
	say(k, "user", TEXT("go"));
	say_as(k, "assistant", maker, REASONED("why", "'id':'rs_1','content':null") ","
	     SAID("I look", "'id':'msg_1','status':'completed','phase':'commentary',"
	          "'annotations':[],'text':'no'") ","
	     SAID("again", "'id':'msg_2'") "," TEXT("and again") ","
	     CALLED("a", "'id':'fc_1','status':'completed','arguments':'no'"));
	say(k, "tool", ANSWER("a", "out"));
}

static void test_a_reply_goes_back_whole(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	say_reply(&k, MADE);
	sees(&k, &how, "input", "[" USER("go")
	     ",{'type':'reasoning','id':'rs_1','summary':[{'type':'summary_text',"
	     "'text':'why'}],'encrypted_content':'enc','content':null},"
	     "{'type':'message','role':'assistant','id':'msg_1','status':'completed',"
	     "'phase':'commentary','content':[{'type':'output_text','text':'I look',"
	     "'annotations':[]}]},{'type':'message','role':'assistant','id':'msg_2','content':["
	     "{'type':'output_text','text':'again'},{'type':'output_text','text':'and again'}]},"
	     "{'type':'function_call','id':'fc_1','status':'completed','call_id':'a','name':'bash',"
	     "'arguments':'{}'}," OUTPUT("a", "out") "]");
	kit_close(&k);
}

static void test_another_model_gets_no_reasoning_and_no_ids(void **state)
{
	static const char *const makers[] = {"'provider':'openai','model':'other',",
	                                     "'provider':'anthropic','model':'m',"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(makers); i++) {
		kit k;
		sheaf_render_options how = responses();
		kit_open(&k);
		say_reply(&k, makers[i]);
		sheaf_request *q = rendered(&k, &how);
		assert_null(strstr(q->body.ptr, "\"reasoning\","));
		assert_null(strstr(q->body.ptr, "\"id\""));
		assert_non_null(strstr(q->body.ptr, "and again"));
		assert_int_equal(notes_of(q, SHEAF_NOTE_FOREIGN_THINKING), 1);
		sheaf_request_free(q);
		kit_close(&k);
	}
}

static void test_items_without_their_reasoning_go_without_ids(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	/* Unsigned thinking cannot go back. */
	say_as(&k, "assistant", MADE, "{'type':'thinking','thinking':{'text':'hm'}},"
	     SAID("a", "'id':'msg_1'"));
	say(&k, "user", TEXT("on"));
	/* A reply that broke off after its reasoning, and what may belong to it. */
	say_as(&k, "assistant", MADE, REASONED("lost", "'id':'rs_2'"));
	say_as(&k, "assistant", MADE, SAID("b", "'id':'msg_2'"));
	say(&k, "user", TEXT("on"));
	say_as(&k, "assistant", MADE, SAID("c", "'id':'msg_3'"));
	sees_noted(&k, &how, "input", "[" USER("go") "," REPLY("", "a") "," USER("on") ","
	     REPLY("", "b") "," USER("on") "," REPLY("'id':'msg_3',", "c") "]",
	     SHEAF_NOTE_FOREIGN_THINKING, 2);
	/* A context that was made for another model has lost it already. */
	sheaf_context_options as = SHEAF_CONTEXT_OPTIONS_INIT;
	sheaf_context *c = NULL;
	sheaf_request *q = NULL;
	say(&k, "user", TEXT("on"));
	say_as(&k, "assistant", MADE, REASONED("d", "'id':'rs_4'") "," SAID("d", "'id':'msg_4'"));
	as.provider = SHEAF_STR("openai");
	as.model = SHEAF_STR("other");
	assert_int_equal(sheaf_session_context(&c, k.s, &as, &k.err), 0);
	assert_int_equal(sheaf_render(&q, c, &how, &k.err), 0);
	assert_valid(how.format, q->body);
	assert_non_null(strstr(q->body.ptr, "msg_3"));
	assert_null(strstr(q->body.ptr, "msg_4"));
	sheaf_request_free(q);
	sheaf_context_free(c);
	kit_close(&k);
}

static void test_thinking_as_text(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say_as(&k, "assistant", "'provider':'anthropic',", THOUGHT("hm", "s") ","
	     SAID("so", "'id':'msg_1'"));
	how.thinking_as_text = 1;
	sees_noted(&k, &how, "input", "[" USER("go")
	     ",{'type':'message','role':'assistant','content':["
	     "{'type':'output_text','text':'hm'},{'type':'output_text','text':'so'}]}]",
	     SHEAF_NOTE_THINKING_TEXT, 1);
	kit_close(&k);
}

static void test_summaries_of_reasoning(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say_as(&k, "assistant", MADE,
	     REASONED("a\\n\\nb", "'summary':[{'type':'summary_text','text':'a'},"
	              "{'type':'summary_text','text':'b'}]") ","
	     "{'type':'thinking','thinking':{'text':'','signature':'enc'}}," TEXT("so"));
	sees_noted(&k, &how, "input", "[" USER("go")
	     ",{'type':'reasoning','summary':[{'type':'summary_text','text':'a'},"
	     "{'type':'summary_text','text':'b'}],'encrypted_content':'enc'},"
	     "{'type':'reasoning','summary':[],'encrypted_content':'enc'}," REPLY("", "so") "]",
	     SHEAF_NOTE_PREFILL, 1);
	kit_close(&k);
}

/* Two items with one id are refused, as are ids that are none. */
static void test_ids_stand_once(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	for (size_t i = 0; i < 2; i++) {
		say(&k, "user", SAID("go", "'id':'msg_u'"));
		say_as(&k, "assistant", MADE, REASONED("why", "'id':'rs_1'") ","
		     SAID("so", "'id':'msg_1'"));
	}
	say(&k, "user", SAID("go", "'id':7") "," TEXT("on"));
	say(&k, "user", SAID("go", "'id':'msg u'"));
	sees(&k, &how, "input", "[{'type':'message','role':'user','id':'msg_u','content':["
	     "{'type':'input_text','text':'go'}]}," REASONING("'id':'rs_1',", "why") ","
	     REPLY("'id':'msg_1',", "so") "," USER("go") "," REASONING("", "why") ","
	     REPLY("", "so") ",{'type':'message','role':'user','content':["
	     "{'type':'input_text','text':'go'},{'type':'input_text','text':'on'}]}," USER("go")
	     "]");
	kit_close(&k);
}

static void test_answers(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say(&k, "assistant", CALL("a", "bash", "{}") "," CALL("b", "bash", "{}") ","
	     CALL("c", "bash", "{}") "," CALL("d", "bash", "{}"));
	say(&k, "tool", "{'type':'tool_result','tool_result':{'tool_use_id':'b','content':["
	     TEXT("x") "," "{'type':'image','image':{'source':{'type':'url','data':'https://x/y.png'},"
	     EXT("'detail':'low'") "}},"
	     "{'type':'document','document':{'source':{'type':'url','data':'https://x/y.pdf'"
	     "}}}],'is_error':true," EXT("'id':'fco_1','phase':'x','call_id':'no'") "}}");
	say(&k, "tool", "{'type':'tool_result','tool_result':{'tool_use_id':'a','content':["
	     TEXT("one") "]}},"
	     "{'type':'tool_result','tool_result':{'tool_use_id':'c','content':[]}}");
	sees(&k, &how, "input", "[" USER("go") "," FUNCTION("", "a") "," FUNCTION("", "b") ","
	     FUNCTION("", "c") "," FUNCTION("", "d")
	     ",{'type':'function_call_output','id':'fco_1','phase':'x','call_id':'b',"
	     "'output':[{'type':'input_text','text':'x'},"
	     "{'type':'input_image','image_url':'https://x/y.png','detail':'low'},"
	     "{'type':'input_file','file_url':'https://x/y.pdf'}]}," OUTPUT("a", "one") ","
	     OUTPUT("c", "") "," OUTPUT("d", "interrupted") "]");
	kit_close(&k);
}

#define SEARCH "{'type':'web_search_call','id':'ws_1','status':'completed'}"
#define PATCH(id, call)                                                                            \
	"{'type':'custom_tool_call'," id "'call_id':'" call "','name':'p','input':'x'}"
#define PATCHED(call) "{'type':'custom_tool_call_output','call_id':'" call "','output':'ok'}"

static void test_opaque_items(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("go") "," OPAQUE("{'type':'input_audio','data':'AAAA'}"));
	say_as(&k, "assistant", MADE, REASONED("why", "'id':'rs_1'") "," OPAQUE(SEARCH) ","
	     TEXT("a") "," SAID("no", "'type':'refusal'") ","
	     OPAQUE(PATCH("'id':'ctc_1',", "p")));
	say(&k, "user", OPAQUE(PATCHED("p")) "," TEXT("on"));
	/* None of these makes a pair, or one that is not there yet. */
	say_as(&k, "assistant", MADE, OPAQUE(PATCH("", "p")) "," OPAQUE(PATCH("", "q")) ","
	     OPAQUE(PATCHED("r")) "," OPAQUE("{'kind':'?'}") ","
	     OPAQUE("{'type':'input_text','text':'x'}") "," TEXT("b"));
	sheaf_request *q = NULL;
	const sheaf_context *c = kit_context(&k, NULL);
	assert_int_equal(sheaf_render(&q, c, &how, &k.err), 0);
	sheaf_context_free(c);
	member_is(q, "input",
	     "[{'type':'message','role':'user','content':[{'type':'input_text','text':'go'},"
	     "{'type':'input_audio','data':'AAAA'}]}," REASONING("'id':'rs_1',", "why") "," SEARCH
	     ",{'type':'message','role':'assistant','content':["
	     "{'type':'output_text','text':'a'},{'type':'refusal','refusal':'no'}]},"
	     PATCH("'id':'ctc_1',", "p") "," PATCHED("p") "," USER("on") "," REPLY("", "b") "]");
	assert_int_equal(notes_of(q, SHEAF_NOTE_FOREIGN_PART), 5);
	sheaf_request_free(q);
	kit_close(&k);
}

/* Where a reply has lost its reasoning, what can do without its id does, and the rest goes. */
static void test_opaque_items_without_their_reasoning(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say_as(&k, "assistant", "'provider':'openai','model':'other',",
	     REASONED("why", "'id':'rs_1'") "," OPAQUE(SEARCH) ","
	     OPAQUE("{ 'id' : 'ctc_1', 'type':'custom_tool_call','call_id':'p','name':'p',"
	            "'input':'x' }") ","
	     OPAQUE("{'type':'compaction','id':'cmp_1'}"));
	say(&k, "user", OPAQUE(PATCHED("p")) "," TEXT("on"));
	say_as(&k, "assistant", MADE, OPAQUE("{'type':'reasoning','id':'rs_9','summary':[]}") ","
	     SAID("b", "'id':'msg_9'"));
	/* Reasoning that leads to nothing but what is left out. */
	say(&k, "user", TEXT("on"));
	say_as(&k, "assistant", MADE, REASONED("why", "'id':'rs_3'") "," OPAQUE(PATCH("", "z")));
	sheaf_request *q = rendered(&k, &how);
	member_is(q, "input", "[" USER("go") "," PATCH("", "p")
	     ",{'type':'compaction','id':'cmp_1'}," PATCHED("p") "," USER("on") ","
	     REPLY("", "b") "," USER("on") "]");
	assert_int_equal(notes_of(q, SHEAF_NOTE_FOREIGN_PART), 3);
	assert_int_equal(notes_of(q, SHEAF_NOTE_FOREIGN_THINKING), 2);
	sheaf_request_free(q);
	kit_close(&k);
}

static void test_reasoning_that_leads_to_nothing(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	say_as(&k, "assistant", MADE, REASONED("why", "'id':'rs_1'") "," OPAQUE(PATCH("", "z")));
	say_as(&k, "assistant", MADE, SAID("a", "'id':'msg_1'"));
	say(&k, "user", TEXT("on"));
	/* Unsigned, so that the search it led to cannot go back either. */
	say_as(&k, "assistant", MADE, "{'type':'thinking','thinking':{'text':'hm'}},"
	     OPAQUE(SEARCH) "," TEXT("b"));
	say(&k, "user", TEXT("on"));
	sees_noted(&k, &how, "input",
	     "[" REPLY("", "a") "," USER("on") "," REPLY("", "b") "," USER("on") "]",
	     SHEAF_NOTE_FOREIGN_PART, 2);
	kit_close(&k);
}

/* A local shell's answer names its call by its own id. */
static void test_local_shell(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
#define SHELL(call) "{'type':'local_shell_call','id':'lsh_1','call_id':'" call "','action':{}}"
#define RAN(call) "{'type':'local_shell_call_output','id':'" call "','output':'ok'}"
	say(&k, "user", TEXT("go"));
	say_as(&k, "assistant", MADE, OPAQUE(SHELL("a")) "," OPAQUE(SHELL("b")));
	say(&k, "user", OPAQUE(RAN("a")) "," OPAQUE(RAN("a")) "," TEXT("on"));
	sees_noted(&k, &how, "input",
	     "[" USER("go") "," SHELL("a") "," RAN("a") "," USER("on") "]",
	     SHEAF_NOTE_FOREIGN_PART, 2);
	kit_close(&k);
}

/* What comes later brings back nothing that requests were sent without. */
static void test_opaque_answers_that_come_too_late(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say_as(&k, "assistant", MADE, OPAQUE(PATCH("", "p")) "," TEXT("a"));
	say(&k, "user", TEXT("on"));
	sees_noted(&k, &how, "input", "[" USER("go") "," REPLY("", "a") "," USER("on") "]",
	     SHEAF_NOTE_FOREIGN_PART, 1);
	say(&k, "user", OPAQUE(PATCHED("p")));
	/* The same id once more is another call. */
	say_as(&k, "assistant", MADE, OPAQUE(PATCH("", "p")));
	say(&k, "user", OPAQUE(PATCHED("p")) "," TEXT("on"));
	sees_noted(&k, &how, "input", "[" USER("go") "," REPLY("", "a") "," USER("on") ","
	     PATCH("", "p") "," PATCHED("p") "," USER("on") "]", SHEAF_NOTE_FOREIGN_PART, 2);
	kit_close(&k);
}

/* An opaque call may not have the id of a plain one. */
static void test_opaque_calls_and_plain_ones(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say(&k, "assistant", OPAQUE(PATCH("", "a")) "," OPAQUE(PATCHED("a")) ","
	     CALL("a", "bash", "{}"));
	say(&k, "tool", ANSWER("a", "out"));
	sees_noted(&k, &how, "input", "[" USER("go") "," FUNCTION("", "a") "," OUTPUT("a", "out")
	     "]", SHEAF_NOTE_FOREIGN_PART, 2);
	kit_close(&k);
}

static void test_nothing_to_send(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	sheaf_request *none = NULL;
	(void)state;
	kit_open(&k);
	say_as(&k, "assistant", MADE, OPAQUE(PATCH("", "z")));
	const sheaf_context *c = kit_context(&k, NULL);
	assert_int_equal(sheaf_render(&none, c, &how, &k.err), SHEAF_CONTEXT);
	assert_null(none);
	sheaf_context_free(c);
	kit_close(&k);
}

static void test_options(void **state)
{
	const sheaf_tool tools[] = {
		{SHEAF_STR("a"), SHEAF_STR("does a"), SHEAF_STR("{\"type\":\"object\"}")}};
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("hi"));
	how.stream = 1;
	how.max_tokens = 9;
	how.thinking_level = SHEAF_STR("minimal");
	how.cache_key = SHEAF_STR("k");
	how.tools = tools;
	how.tool_count = COUNT_OF(tools);
	how.extra = SHEAF_STR("{\"temperature\":1}");
	sheaf_request *q = rendered(&k, &how);
	char *want = kit_quoted("{'model':'m','stream':true,'prompt_cache_key':'k','store':false,"
	     "'include':['reasoning.encrypted_content'],'max_output_tokens':16,"
	     "'reasoning':{'effort':'minimal'},'tools':[{'type':'function','name':'a',"
	     "'description':'does a','parameters':{'type':'object'},'strict':false}],"
	     "'temperature':1,'input':[" USER("hi") "]}");
	kit_str(q->body, want);
	kit_str(q->path, "/v1/responses");
	free(want);
	sheaf_request_free(q);

	how = responses();
	how.extra = SHEAF_STR(
		"{\"store\":true,\"include\":[],\"reasoning\":{\"summary\":\"auto\"}}");
	how.thinking_level = SHEAF_STR("low");
	q = rendered(&k, &how);
	member_is(q, "store", "true");
	member_is(q, "include", "[]");
	member_is(q, "reasoning", "{'summary':'auto'}");
	sheaf_request_free(q);
	kit_close(&k);
}

/* Models that do not reason refuse to be asked for it. */
static void test_models_that_do_not_reason(void **state)
{
	static const struct {
		const char *model;
		bool asked;
	} rows[] = {{"gpt-4o", false},
	            {"gpt-4.1-mini", false},
	            {"chatgpt-4o-latest", false},
	            {"gpt-3.5-turbo", false},
	            {"gpt-5-chat-latest", false},
	            {"gpt-5.1", true},
	            {"o3", true},
	            {"gpt-5.1-codex", true},
	            {"gpt-oss-20b", true}};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		kit k;
		sheaf_render_options how = responses();
		kit_open(&k);
		say(&k, "user", TEXT("hi"));
		how.model = sheaf_str_of(rows[i].model);
		sheaf_request *q = rendered(&k, &how);
		assert_int_equal(json_member_bytes(q->body, "include").ptr != NULL, rows[i].asked);
		sheaf_request_free(q);
		kit_close(&k);
	}
}

static void tell(kit *k, unsigned turn)
{
	static const char *const ids[][2] = {{"'id':'rs_a'", "'id':'msg_a'"},
	                                     {"'id':'rs_b'", "'id':'msg_b'"}};
	char parts[2048];
	say(k, "user", TEXT("go") "," PNG);
	(void)snprintf(parts, sizeof(parts), REASONED("why", "%s") "," OPAQUE(SEARCH) ","
	     SAID("so", "%s") "," OPAQUE(PATCH("", "z")) "," CALL("a", "bash", "7"), ids[turn][0],
	     ids[turn][1]);
	say_as(k, "assistant", MADE, parts);
	say(k, "tool", ANSWER("a", "no"));
	say_as(k, "assistant", "'provider':'anthropic',", THOUGHT("hm", "s") "," TEXT("done"));
}

static void test_a_turn_more_leaves_the_front(void **state)
{
	kit k;
	sheaf_render_options how = responses();
	(void)state;
	kit_open(&k);
	tell(&k, 0);
	sheaf_request *before = rendered(&k, &how);
	assert_non_null(strstr(before->body.ptr, "msg_a"));
	tell(&k, 1);
	sheaf_request *after = rendered(&k, &how);
	assert_true(after->body.len > before->body.len);
	assert_memory_equal(before->body.ptr, after->body.ptr, before->body.len - 2);
	sheaf_request_free(before);
	sheaf_request_free(after);
	kit_close(&k);
}

static void test_every_allocation_may_fail(void **state)
{
	const sheaf_system pieces[] = {{SHEAF_STR("now"), 1, 0}, {SHEAF_STR("always"), 0, 0}};
	sheaf_render_options how = responses();
	kit k;
	(void)state;
	fail_alloc_install();
	kit_open(&k);
	tell(&k, 0);
	say_as(&k, "assistant", MADE, OPAQUE(PATCH("", "p")) "," OPAQUE(PATCHED("p")));
	how.system = pieces;
	how.system_count = COUNT_OF(pieces);
	const sheaf_context *c = kit_context(&k, NULL);
	renders_without_memory(&k, c, &how);
	sheaf_context_free(c);
	kit_close(&k);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

/* clang-format on */

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_of_every_role),
		cmocka_unit_test(test_a_reply_goes_back_whole),
		cmocka_unit_test(test_another_model_gets_no_reasoning_and_no_ids),
		cmocka_unit_test(test_items_without_their_reasoning_go_without_ids),
		cmocka_unit_test(test_thinking_as_text),
		cmocka_unit_test(test_summaries_of_reasoning),
		cmocka_unit_test(test_ids_stand_once),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_opaque_items),
		cmocka_unit_test(test_opaque_items_without_their_reasoning),
		cmocka_unit_test(test_reasoning_that_leads_to_nothing),
		cmocka_unit_test(test_local_shell),
		cmocka_unit_test(test_opaque_answers_that_come_too_late),
		cmocka_unit_test(test_opaque_calls_and_plain_ones),
		cmocka_unit_test(test_nothing_to_send),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_models_that_do_not_reason),
		cmocka_unit_test(test_a_turn_more_leaves_the_front),
		cmocka_unit_test(test_every_allocation_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
