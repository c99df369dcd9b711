/* Requests for Anthropic's Messages interface. */
#include "render_test.h"

#define FORMAT SHEAF_FORMAT_ANTHROPIC
#define USER(text) "{'role':'user','content':[{'type':'text','text':'" text "'}]}"

static void writes_a_conversation(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(FORMAT);
	kit_open(&k);
	say(&k, "user", TEXT("Hello"));
	say_as(&k, "assistant", "'provider':'anthropic','model':'m-20250929',",
	       THOUGHT("hm", "c2ln") ",{'type':'thinking','thinking':{'text':'','redacted':true,"
	                             "'signature':'cmVk'}}," TEXT("Hi") "," CALL("c1", "read",
	                                                                         "{ 'n':1.0 }"));
	say(&k, "tool", ANSWER("c1", "out"));
	sees_noted(
		&k, &how, "messages",
		"[" USER(
			"Hello") ",{'role':'assistant','content':["
				 "{'type':'thinking','thinking':'hm','signature':'c2ln'},"
				 "{'type':'redacted_thinking','data':'cmVk'},{'type':'text','text':'Hi'},"
				 "{'type':'tool_use','id':'c1','name':'read','input':{ 'n':1.0 }}]},"
				 "{'role':'user','content':[{'type':'tool_result','tool_use_id':'c1','content':'out'}]}]",
		SHEAF_NOTE_TOOLS, 1);
	kit_close(&k);
}

static void results_come_first_in_the_users_message(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(FORMAT);
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say(&k, "assistant", CALL("c1", "a", "{}") "," CALL("c2", "b", "{}"));
	say(&k, "tool",
	    "{'type':'tool_result','tool_result':{'tool_use_id':'c2','is_error':true,"
	    "'content':[" TEXT("x") "," PNG "]}}");
	say(&k, "user",
	    "{'type':'tool_result','tool_result':{'tool_use_id':'c1','is_error':false,"
	    "'content':''}}," TEXT("now"));
	say(&k, "user", TEXT("and then"));
	say(&k, "assistant", TEXT("yes "));
	say(&k, "assistant", TEXT("no\\n\\t"));
	sees_noted(
		&k, &how, "messages",
		"[" USER(
			"go") ",{'role':'assistant','content':["
			      "{'type':'tool_use','id':'c1','name':'a','input':{}},"
			      "{'type':'tool_use','id':'c2','name':'b','input':{}}]},"
			      "{'role':'user','content':["
			      "{'type':'tool_result','tool_use_id':'c2','content':[{'type':'text','text':'x'},"
			      "{'type':'image','source':{'type':'base64','media_type':'image/png','data':'AAAA'}}],"
			      "'is_error':true},"
			      "{'type':'tool_result','tool_use_id':'c1','content':'','is_error':false},"
			      "{'type':'text','text':'now'},{'type':'text','text':'and then'}]},"
			      "{'role':'assistant','content':[{'type':'text','text':'yes'},"
			      "{'type':'text','text':'no'}]}]",
		SHEAF_NOTE_PREFILL, 1);
	kit_close(&k);
}

static void writes_the_settings(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(FORMAT);
	const sheaf_system system[] = {{.text = SHEAF_STR("now"), .dynamic = 1},
	                               {.text = SHEAF_STR("be\"good")},
	                               {.text = SHEAF_STR(" ")}};
	const sheaf_tool tools[] = {{SHEAF_STR("read"), SHEAF_STR("reads"),
	                             SHEAF_STR("{\"type\":\"object\",\"x\":1.50}")},
	                            {SHEAF_STR("ls"), {NULL, 0}, {NULL, 0}}};
	kit_open(&k);
	say(&k, "user", TEXT("Hello"));
	how.system = system;
	how.system_count = COUNT_OF(system);
	how.tools = tools;
	how.tool_count = COUNT_OF(tools);
	how.max_tokens = 100;
	how.stream = 1;
	how.extra = SHEAF_STR(" { \"temperature\" : 0.50 } ");
	sheaf_request *q = rendered(&k, &how);
	kit_str(q->body,
	        "{'model':'m','max_tokens':100,'stream':true,'tools':[{'name':'read','description':"
	        "'reads','input_schema':{'type':'object','x':1.50}},{'name':'ls','input_schema':"
	        "{'type':'object'}}],'system':[{'type':'text','text':'be\\'good'},{'type':'text',"
	        "'text':'now'}],'messages':[" USER("Hello") "],'temperature':0.50}");
	kit_str(q->path, "/v1/messages");
	kit_str(q->model, "m");
	kit_str(q->provider, "anthropic");
	assert_int_equal(q->stream, 1);
	assert_int_equal(q->format, FORMAT);
	assert_true(q->tokens > 0);
	sheaf_request_free(q);

	how = how_to(FORMAT);
	q = rendered(&k, &how);
	member_is(q, "max_tokens", "8192");
	assert_null(json_member_bytes(q->body, "system").ptr);
	assert_null(json_member_bytes(q->body, "tools").ptr);
	sheaf_request_free(q);
	how.model = SHEAF_STR("claude-sonnet-4-5");
	q = rendered(&k, &how);
	member_is(q, "max_tokens", "64000");
	sheaf_request_free(q);
	kit_close(&k);
}

/* What is given besides replaces ours of the same name: no member twice. */
static void extra_goes_before(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(FORMAT);
	kit_open(&k);
	say(&k, "user", TEXT("Hello"));
	how.thinking_level = SHEAF_STR("low");
	how.extra = SHEAF_STR("{\"max_tokens\":7,\"thinking\":{\"type\":\"adaptive\"}}");
	sheaf_request *q = rendered(&k, &how);
	kit_str(q->body, "{'model':'m','messages':[" USER(
				 "Hello") "],'max_tokens':7,'thinking':{'type':'adaptive'}}");
	sheaf_request_free(q);

	const sheaf_system piece = {SHEAF_STR("be"), 0, 0};
	const sheaf_tool tool = {SHEAF_STR("a"), {NULL, 0}, {NULL, 0}};
	how.system = &piece;
	how.system_count = 1;
	how.tools = &tool;
	how.tool_count = 1;
	how.stream = 1;
	how.extra = SHEAF_STR(
		"{\"model\":\"no\",\"messages\":[],\"system\":\"so\",\"stream\":false,"
		"\"tools\":[{\"name\":\"b\",\"input_schema\":{\"type\":\"object\"}}]}");
	q = rendered(&k, &how);
	member_is(q, "model", "'m'");
	member_is(q, "system", "'so'");
	member_is(q, "stream", "false");
	member_is(q, "tools", "[{'name':'b','input_schema':{'type':'object'}}]");
	sheaf_request_free(q);

	/* Less than thinking needs, said where it is easily overlooked. */
	how.thinking_level = SHEAF_STR("high");
	how.extra = SHEAF_STR("{\"max_tokens\":900}");
	q = rendered(&k, &how);
	assert_int_equal(notes_of(q, SHEAF_NOTE_THINKING_OFF), 1);
	sheaf_request_free(q);
	kit_close(&k);
}

static const char *thinking_now(kit *k, const sheaf_render_options *how, size_t off)
{
	static char text[128];
	sheaf_request *q = rendered(k, how);
	sheaf_str got = json_member_bytes(q->body, "thinking");
	(void)snprintf(text, sizeof(text), "%.*s", (int)got.len, got.ptr != NULL ? got.ptr : "");
	for (char *p = text; (p = strchr(p, '"')) != NULL;)
		*p = '\'';
	assert_int_equal(notes_of(q, SHEAF_NOTE_THINKING_OFF), off);
	sheaf_request_free(q);
	return text;
}

static void asks_for_thinking(void **state)
{
	(void)state;
	static const struct {
		const char *level;
		uint64_t max_tokens;
		const char *want;
		size_t off;
	} cases[] = {
		{"off", 9000, "{'type':'disabled'}", 0},
		{"minimal", 9000, "{'type':'enabled','budget_tokens':1024}", 0},
		{"low", 9000, "{'type':'enabled','budget_tokens':4096}", 0},
		{"medium", 90000, "{'type':'enabled','budget_tokens':10240}", 0},
		{"high", 90000, "{'type':'enabled','budget_tokens':32768}", 0},
		{"high", 9000, "{'type':'enabled','budget_tokens':4500}", 0},
		{"high", 1500, "{'type':'enabled','budget_tokens':1024}", 0},
		{"high", 1025, "{'type':'enabled','budget_tokens':1024}", 0},
		{"high", 1024, "", 1},
		{"tremendous", 9000, "", 0},
		{"", 9000, "", 0},
	};
	kit k;
	sheaf_render_options how = how_to(FORMAT);
	kit_open(&k);
	say(&k, "user", TEXT("Hello"));
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		how.thinking_level = sheaf_str_of(cases[i].level);
		how.max_tokens = cases[i].max_tokens;
		assert_string_equal(thinking_now(&k, &how, cases[i].off), cases[i].want);
	}
	/* From the path, if the caller says nothing. */
	how.thinking_level = (sheaf_str){NULL, 0};
	how.max_tokens = 9000;
	assert_string_equal(thinking_now(&k, &how, 0), "");
	kit_json(&k, "thinking_level", "level", "{'thinking_level':{'thinking_level':'low'}}");
	assert_string_equal(thinking_now(&k, &how, 0), cases[2].want);
	kit_close(&k);
}

/* While tools are run, the turn must have begun with thinking. */
static void thinking_is_left_off_where_it_would_fail(void **state)
{
	(void)state;
	static const char on[] = "{'type':'enabled','budget_tokens':1024}";
	kit k;
	sheaf_render_options how = how_to(FORMAT);
	how.thinking_level = SHEAF_STR("minimal");
	kit_open(&k);
	say(&k, "user", TEXT("a"));
	say(&k, "assistant", TEXT("plain"));
	assert_string_equal(thinking_now(&k, &how, 1), ""); /* it would go on there */
	say(&k, "user", TEXT("b"));
	assert_string_equal(thinking_now(&k, &how, 0), on);
	say(&k, "assistant", THOUGHT("t", "s") "," CALL("1", "x", "{}"));
	say(&k, "tool", ANSWER("1", "o"));
	assert_string_equal(thinking_now(&k, &how, 0), on);
	say(&k, "assistant", CALL("2", "x", "{}"));
	say(&k, "tool", ANSWER("2", "o"));
	assert_string_equal(thinking_now(&k, &how, 0), on); /* thought once, at the beginning */
	say(&k, "user", TEXT("quick"));
	assert_string_equal(thinking_now(&k, &how, 0), on);
	say(&k, "assistant", CALL("3", "x", "{}"));
	say(&k, "tool", ANSWER("3", "o"));
	assert_string_equal(thinking_now(&k, &how, 1), "");
	say(&k, "assistant", TEXT("done"));
	say(&k, "user", TEXT("c"));
	assert_string_equal(thinking_now(&k, &how, 0), on);
	say_as(&k, "assistant", "'model':'other',", THOUGHT("t", "s") "," CALL("4", "x", "{}"));
	say(&k, "tool", ANSWER("4", "o"));
	assert_string_equal(thinking_now(&k, &how, 1), "");
	kit_close(&k);
}

static void gives_back_what_is_its_own(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(FORMAT);
	kit_open(&k);
	say(&k, "user",
	    "{'type':'document','document':{'source':{'type':'url','media_type':'application/pdf',"
	    "'data':'https://x/y.pdf'},'ext':{'title':'T','format':'anthropic','context':null,"
	    "'cache_control':{}}}}," TEXT("q"));
	say(&k, "assistant",
	    "{'type':'opaque','opaque':{'provider':'anthropic','raw':{'type':'server_tool_use', "
	    "'id':'x', 'cache_control':{'type':'ephemeral'} ,'n':1e2}}},"
	    "{'type':'opaque','opaque':{'provider':'openai-chat','raw':{'type':'what'}}},"
	    "{'type':'opaque','opaque':{'provider':'anthropic','raw':[]}},"
	    "{'type':'newer','newer':{}},"
	    "{'type':'text','text':{'content':'cited','ext':{'format':'anthropic','citations':[]}}},"
	    "{'type':'text','text':{'content':'b','ext':{'format':'gemini','citations':[1]}}}");
	say(&k, "user", TEXT("q"));
	sees_noted(
		&k, &how, "messages",
		"[{'role':'user','content':[{'type':'document','source':{'type':'url','url':"
		"'https://x/y.pdf'},'title':'T','context':null},{'type':'text','text':'q'}]},"
		"{'role':'assistant','content':[{'type':'server_tool_use','id':'x','n':1e2},"
		"{'type':'text','text':'cited','citations':[]},{'type':'text','text':'b'}]}," USER(
			"q") "]",
		SHEAF_NOTE_FOREIGN_PART, 3);
	kit_close(&k);
}

/* What came with a part never says again what is said already, nor sets marks. */
static void says_nothing_twice(void **state)
{
	kit k;
	sheaf_render_options how = how_to(SHEAF_FORMAT_ANTHROPIC);
	(void)state;
	kit_open(&k);
	say(&k, "user",
	    "{'type':'text','text':{'content':'hi','ext':{'format':'anthropic','type':'x',"
	    "'text':'y','citations':[],'cache_control':{'type':'ephemeral'}}}}");
	sees(&k, &how, "messages",
	     "[{'role':'user','content':[{'type':'text','text':'hi','citations':[]}]}]");
	kit_close(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_a_conversation),
		cmocka_unit_test(results_come_first_in_the_users_message),
		cmocka_unit_test(writes_the_settings),
		cmocka_unit_test(extra_goes_before),
		cmocka_unit_test(asks_for_thinking),
		cmocka_unit_test(thinking_is_left_off_where_it_would_fail),
		cmocka_unit_test(gives_back_what_is_its_own),
		cmocka_unit_test(says_nothing_twice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
