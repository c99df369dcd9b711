/* Tests of requests for OpenAI Chat Completions. */
#include "render_test.h"

#include "support/fail_alloc.h"

#define USER(text) "{'role':'user','content':'" text "'}"

static sheaf_render_options chat(void)
{
	return how_to(SHEAF_FORMAT_OPENAI_CHAT);
}

/* JSON is laid out by hand from here on. */
/* clang-format off */

static void test_messages_of_every_role(void **state)
{
	kit k;
	sheaf_render_options how = chat();
	(void)state;
	kit_open(&k);
	say(&k, "system", TEXT("be"));
	say(&k, "developer", TEXT("do") "," TEXT("not"));
	say(&k, "user", TEXT("a \\\"b\\\"\\n\\u0001"));
	say(&k, "assistant", TEXT("one") "," TEXT("two"));
	say(&k, "user", TEXT("x") "," TEXT("y"));
	sees(&k, &how, "messages",
	     "[{'role':'system','content':'be'},{'role':'developer','content':["
	     "{'type':'text','text':'do'},{'type':'text','text':'not'}]},"
	     "{'role':'user','content':'a \\'b\\'\\n\\u0001'},"
	     "{'role':'assistant','content':'onetwo'},{'role':'user','content':["
	     "{'type':'text','text':'x'},{'type':'text','text':'y'}]}]");
	kit_close(&k);
}

static void test_system_text_comes_first(void **state)
{
	const sheaf_system pieces[] = {{SHEAF_STR("now"), 1, 0},
	                               {SHEAF_STR("always"), 0, 0},
	                               {SHEAF_STR(""), 0, 0},
	                               {SHEAF_STR("ever"), 0, 0}};
	kit k;
	sheaf_render_options how = chat();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("hi"));
	how.system = pieces;
	how.system_count = COUNT_OF(pieces);
	sees(&k, &how, "messages", "[{'role':'system','content':'always\\n\\never\\n\\nnow'},"
	     USER("hi") "]");
	how.system = pieces + 2;
	how.system_count = 1;
	sees(&k, &how, "messages", "[" USER("hi") "]");
	kit_close(&k);
}

#define FUNCTION(id, arguments)                                                                    \
	"{'id':'" id "','type':'function','function':{'name':'bash','arguments':'" arguments "'}}"

static void test_calls_and_answers(void **state)
{
	kit k;
	sheaf_render_options how = chat();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	/* Arguments are the bytes that came, blanks and all. */
	say(&k, "assistant", CALL("a", "bash", "{ 'n' : 1.50 }") "," CALL("b", "bash", "{}"));
	say(&k, "tool", ANSWER("b", "two"));
	say(&k, "tool", ANSWER("a", ""));
	say(&k, "assistant", TEXT("so") "," CALL("c", "bash", "{}"));
	sees(&k, &how, "messages", "[" USER("go")
	     ",{'role':'assistant','content':null,'tool_calls':["
	     FUNCTION("a", "{ \\'n\\' : 1.50 }") "," FUNCTION("b", "{}") "]},"
	     "{'role':'tool','tool_call_id':'b','content':'two'},"
	     "{'role':'tool','tool_call_id':'a','content':''},"
	     "{'role':'assistant','content':'so','tool_calls':[" FUNCTION("c", "{}") "]},"
	     "{'role':'tool','tool_call_id':'c','content':'interrupted'}]");
	kit_close(&k);
}

#define SHOWN(id)                                                                                  \
	"{'type':'tool_result','tool_result':{'tool_use_id':'" id                                  \
	"','content':[" TEXT("seen") "," PNG "]}}"
#define PNG_URL "{'type':'image_url','image_url':{'url':'data:image/png;base64,AAAA'}}"

static void test_images_of_answers_follow_the_group(void **state)
{
	kit k;
	sheaf_render_options how = chat();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("go") "," PNG);
	say(&k, "assistant", CALL("a", "bash", "{}") "," CALL("b", "bash", "{}"));
	say(&k, "tool", SHOWN("a"));
	say(&k, "tool", ANSWER("b", "no"));
	say(&k, "user", TEXT("and"));
	sheaf_request *q = rendered(&k, &how);
	assert_int_equal(notes_of(q, SHEAF_NOTE_MOVED), 1);
	member_is(q, "messages", "[{'role':'user','content':[{'type':'text','text':'go'}," PNG_URL
	     "]}," "{'role':'assistant','content':null,'tool_calls':[" FUNCTION("a", "{}") ","
	     FUNCTION("b", "{}") "]},"
	     "{'role':'tool','tool_call_id':'a','content':'seen\\n[see below]'},"
	     "{'role':'tool','tool_call_id':'b','content':'no'},"
	     "{'role':'user','content':[{'type':'text','text':'[from the result of bash a]'},"
	     PNG_URL "]}," USER("and") "]");
	sheaf_request_free(q);

	how.no_images = 1;
	q = rendered(&k, &how);
	assert_int_equal(notes_of(q, SHEAF_NOTE_STAND_IN), 2);
	member_is(q, "messages",
	     "[{'role':'user','content':[{'type':'text','text':'go'},{'type':'text','text':"
	     "'(image omitted: model does not support images)'}]},"
	     "{'role':'assistant','content':null,'tool_calls':[" FUNCTION("a", "{}") ","
	     FUNCTION("b", "{}") "]}," "{'role':'tool','tool_call_id':'a','content':"
	     "'seen\\n(tool image omitted: model does not support images)'},"
	     "{'role':'tool','tool_call_id':'b','content':'no'}," USER("and") "]");
	sheaf_request_free(q);
	kit_close(&k);
}

#define SOURCE(kind, type, media, data)                                                            \
	"{'type':'" kind "','" kind "':{'source':{'type':'" type "'," media "'data':'" data "'}}}"

static void test_images_and_documents(void **state)
{
	kit k;
	sheaf_render_options how = chat();
	(void)state;
	kit_open(&k);
	say(&k, "user", SOURCE("image", "url", "", "https://x/y.png") ","
	     SOURCE("document", "base64", "'media_type':'application/pdf',", "AAA="));
	sees(&k, &how, "messages", "[{'role':'user','content':["
	     "{'type':'image_url','image_url':{'url':'https://x/y.png'}},{'type':'file','file':"
	     "{'file_data':'data:application/pdf;base64,AAA=','filename':'document.pdf'}}]}]");
	/* What is no address, no base64, or not taken: a line stands in. */
	say(&k, "user", SOURCE("image", "url", "", "file:///etc/passwd") ","
	     SOURCE("image", "base64", "'media_type':'image/png',", "A\\\"A=") ","
	     SOURCE("image", "base64", "'media_type':'image/png',", "AAA") ","
	     SOURCE("image", "base64", "'media_type':'image/tiff',", "AAAA") ","
	     SOURCE("document", "url", "", "https://x/y.pdf"));
	sheaf_request *q = rendered(&k, &how);
	assert_int_equal(notes_of(q, SHEAF_NOTE_STAND_IN), 5);
	sheaf_request_free(q);
	kit_close(&k);
}

static void test_thinking(void **state)
{
	kit k;
	sheaf_render_options how = chat();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say(&k, "assistant", THOUGHT("hm ", "s")
	     ",{'type':'thinking','thinking':{'text':'[gone]','signature':'t'," "'redacted':true}},"
	     TEXT("so"));
	sees_noted(&k, &how, "messages", "[" USER("go") ",{'role':'assistant','content':'so'}]",
	     SHEAF_NOTE_FOREIGN_THINKING, 2);
	how.thinking_as_text = 1;
	sees_noted(&k, &how, "messages", "[" USER("go") ",{'role':'assistant','content':'hm so'}]",
	     SHEAF_NOTE_THINKING_TEXT, 1);
	kit_close(&k);
}

#define EXT(format, members) "'ext':{'format':'" format "'," members "}"

/* Some compatible servers want their thinking back, under its name; another model does not. */
static void test_thinking_that_is_wanted_back(void **state)
{
	kit k;
	sheaf_render_options how = chat();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say_as(&k, "assistant", "'provider':'openai','model':'m',",
	     "{'type':'thinking','thinking':{'text':'h\\nm',"
	     EXT("openai-chat", "'member':'reasoning_content'") "}}," CALL("c", "f", "{}"));
	say(&k, "tool", ANSWER("c", "done"));
	say_as(&k, "assistant", "'provider':'openai','model':'m',",
	     "{'type':'thinking','thinking':{'text':'x'," EXT("openai-chat", "'member':'content'")
	     "}}," TEXT("so"));
	say_as(&k, "assistant", "'provider':'openai','model':'other',",
	     "{'type':'thinking','thinking':{'text':'x'," EXT("openai-chat", "'member':'reasoning'")
	     "}}," TEXT("and"));
	sees_noted(&k, &how, "messages", "[" USER("go") ",{'role':'assistant','content':null,"
	     "'reasoning_content':'h\\nm','tool_calls':[{'id':'c','type':'function','function':{"
	     "'name':'f','arguments':'{}'}}]},{'role':'tool','tool_call_id':'c','content':'done'},"
	     "{'role':'assistant','content':'so'},{'role':'assistant','content':'and'}]",
	     SHEAF_NOTE_FOREIGN_THINKING, 1);
	kit_close(&k);
}

static void test_what_the_format_itself_said(void **state)
{
	kit k;
	sheaf_render_options how = chat();
	(void)state;
	kit_open(&k);
	say(&k, "user", "{'type':'text','text':{'content':'hi',"
	     EXT("openai-chat", "'name':'ann','role':'x'") "}},"
	     "{'type':'image','image':{'source':{'type':'url','data':'http://x/y'},"
	     EXT("openai-chat", "'detail':'low','url':'no'") "}}");
	say_as(&k, "assistant", "'provider':'openai',", "{'type':'text','text':{'content':'no',"
	     EXT("openai-chat", "'audio':{'id':'a1'}") "}},"
	     "{'type':'opaque','opaque':{'provider':'openai-chat','raw':{'type':'custom'}}},"
	     "{'type':'opaque','opaque':{'provider':'anthropic','raw':{'type':'refusal'}}},"
	     "{'type':'tool_use','tool_use':{'id':'a','name':'bash','input':{},"
	     EXT("openai-chat", "'index':0,'id':'b'") "}}");
	sees_noted(&k, &how, "messages", "[{'role':'user','content':[{'type':'text','text':'hi'},"
	     "{'type':'image_url','image_url':{'url':'http://x/y','detail':'low'}}],"
	     "'name':'ann'},{'role':'assistant','content':'no','tool_calls':[{'id':'a','type':"
	     "'function','function':{'name':'bash','arguments':'{}'},'index':0}],"
	     "'audio':{'id':'a1'}},{'role':'tool','tool_call_id':'a','content':'interrupted'}]",
	     SHEAF_NOTE_FOREIGN_PART, 2);
	kit_close(&k);
}

#define REFUSAL(text)                                                                              \
	"{'type':'text','text':{'content':'" text "'," EXT("openai-chat", "'type':'refusal'") "}}"

static void test_refusals(void **state)
{
	kit k;
	sheaf_render_options how = chat();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say(&k, "assistant", REFUSAL("no"));
	say(&k, "user", TEXT("go"));
	say(&k, "assistant", TEXT("well, ") "," REFUSAL("no"));
	say(&k, "user", TEXT("go"));
	sees(&k, &how, "messages", "[" USER("go")
	     ",{'role':'assistant','content':[{'type':'refusal','refusal':'no'}]}," USER("go")
	     ",{'role':'assistant','content':'well, no'}," USER("go") "]");
	kit_close(&k);
}

static void test_a_message_nothing_is_left_of(void **state)
{
	kit k;
	sheaf_render_options how = chat();
	sheaf_request *none = NULL;
	(void)state;
	kit_open(&k);
	say(&k, "assistant",
	     "{'type':'opaque','opaque':{'provider':'openai-chat','raw':{'type':'audio'}}}");
	const sheaf_context *c = kit_context(&k, NULL);
	assert_int_equal(sheaf_render(&none, c, &how, &k.err), SHEAF_CONTEXT);
	assert_null(none);
	sheaf_context_free(c);
	say(&k, "user", TEXT("hi"));
	sees_noted(&k, &how, "messages", "[" USER("hi") "]", SHEAF_NOTE_FOREIGN_PART, 1);
	kit_close(&k);
}

static void test_options(void **state)
{
	const sheaf_tool tools[] = {
		{SHEAF_STR("a"), SHEAF_STR("does \"a\""), SHEAF_STR("{\"type\":\"object\"}")},
		{SHEAF_STR("b"), {NULL, 0}, {NULL, 0}}};
	kit k;
	sheaf_render_options how = chat();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("hi"));
	sheaf_request *q = rendered(&k, &how);
	kit_str(q->body, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}");
	kit_str(q->path, "/v1/chat/completions");
	sheaf_request_free(q);

	how.stream = 1;
	how.max_tokens = 9;
	how.thinking_level = SHEAF_STR("low");
	how.cache_key = SHEAF_STR("k");
	how.tools = tools;
	how.tool_count = COUNT_OF(tools);
	how.extra = SHEAF_STR(" { \"temperature\" : 0.50 } ");
	q = rendered(&k, &how);
	char *want = kit_quoted("{'model':'m','stream':true,'prompt_cache_key':'k',"
	     "'stream_options':{'include_usage':true},'max_completion_tokens':9,"
	     "'reasoning_effort':'low','tools':[{'type':'function','function':{'name':'a',"
	     "'description':'does \\'a\\'','parameters':{'type':'object'}}},{'type':'function',"
	     "'function':{'name':'b','parameters':{'type':'object','properties':{}}}}],"
	     "'temperature':0.50,'messages':[" USER("hi") "]}");
	kit_str(q->body, want);
	free(want);
	sheaf_request_free(q);

	/* What the caller says himself is said once. */
	how.extra = SHEAF_STR("{\"model\":\"no\",\"messages\":[],\"stream_options\":null,"
	                      "\"max_completion_tokens\":7,"
	                      "\"reasoning_effort\":\"high\",\"prompt_cache_key\":\"own\"}");
	q = rendered(&k, &how);
	member_is(q, "model", "'m'");
	member_is(q, "messages", "[" USER("hi") "]");
	member_is(q, "max_completion_tokens", "7");
	member_is(q, "reasoning_effort", "'high'");
	member_is(q, "prompt_cache_key", "'own'");
	member_is(q, "stream_options", "null");
	sheaf_request_free(q);
	how.extra = (sheaf_str){NULL, 0};
	how.thinking_level = SHEAF_STR("off");
	q = rendered(&k, &how);
	assert_null(json_member_bytes(q->body, "reasoning_effort").ptr);
	sheaf_request_free(q);
	kit_close(&k);
}

/* Keys of more than 64 characters are refused. */
static void test_long_cache_keys(void **state)
{
	char first[70], second[70];
	kit k;
	sheaf_render_options how = chat();
	(void)state;
	kit_open(&k);
	say(&k, "user", TEXT("hi"));
	memset(first, 'k', sizeof(first));
	memset(second, 'k', sizeof(second));
	second[69] = 'x';
	how.cache_key = str_make(first, 64);
	sheaf_request *q = rendered(&k, &how);
	sheaf_str whole = json_member_bytes(q->body, "prompt_cache_key");
	assert_int_equal(whole.len, 66);
	assert_memory_equal(whole.ptr + 1, first, 64);
	sheaf_request_free(q);
	how.cache_key = str_make(first, 70);
	q = rendered(&k, &how);
	how.cache_key = str_make(second, 70);
	sheaf_request *other = rendered(&k, &how);
	sheaf_str a = json_member_bytes(q->body, "prompt_cache_key");
	sheaf_str b = json_member_bytes(other->body, "prompt_cache_key");
	assert_int_equal(a.len, 66);
	assert_int_equal(b.len, 66);
	assert_false(str_eq(a, b));
	sheaf_request_free(q);
	sheaf_request_free(other);
	kit_close(&k);
}

static void tell(kit *k)
{
	say(k, "user", TEXT("go") "," PNG);
	say(k, "assistant", THOUGHT("hm", "s") "," TEXT("a") "," TEXT("b") ","
	     CALL("a", "bash", "7") "," CALL("b!", "ba sh", "{}"));
	say(k, "tool", SHOWN("a"));
	say(k, "tool", ANSWER("b!", "no"));
	say_as(k, "assistant", "'provider':'openai',", "{'type':'text','text':{'content':'so',"
	     EXT("openai-chat", "'refusal':null") "}}");
	say(k, "branchSummary", TEXT("was elsewhere"));
}

static void test_a_turn_more_leaves_the_front(void **state)
{
	kit k;
	sheaf_render_options how = chat();
	(void)state;
	kit_open(&k);
	tell(&k);
	sheaf_request *before = rendered(&k, &how);
	tell(&k);
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
	sheaf_render_options how = chat();
	kit k;
	(void)state;
	fail_alloc_install();
	kit_open(&k);
	tell(&k);
	how.system = pieces;
	how.system_count = COUNT_OF(pieces);
	how.thinking_as_text = 1;
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
		cmocka_unit_test(test_system_text_comes_first),
		cmocka_unit_test(test_calls_and_answers),
		cmocka_unit_test(test_images_of_answers_follow_the_group),
		cmocka_unit_test(test_images_and_documents),
		cmocka_unit_test(test_thinking),
		cmocka_unit_test(test_thinking_that_is_wanted_back),
		cmocka_unit_test(test_what_the_format_itself_said),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_a_message_nothing_is_left_of),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_long_cache_keys),
		cmocka_unit_test(test_a_turn_more_leaves_the_front),
		cmocka_unit_test(test_every_allocation_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
