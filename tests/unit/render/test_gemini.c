/* Tests of requests for Google's Gemini. */
#include "render_test.h"

#include "support/fail_alloc.h"

#define GEMINI SHEAF_FORMAT_GEMINI
#define U(parts) "{'role':'user','parts':[" parts "]}"
#define M(parts) "{'role':'model','parts':[" parts "]}"
#define T(text) "{'text':'" text "'}"
#define FC(id, name, args) "{'functionCall':{'id':'" id "','name':'" name "','args':" args "}}"
#define FCS(id, name, args, signature)                                                             \
	"{'functionCall':{'id':'" id "','name':'" name "','args':" args                            \
	"},'thoughtSignature':'" signature "'}"
#define FR(id, name, response)                                                                     \
	"{'functionResponse':{'id':'" id "','name':'" name "','response':" response "}}"
#define DATA "{'inlineData':{'mimeType':'image/png','data':'AAAA'}}"
#define SKIP "skip_thought_signature_validator"
#define OWN "'provider':'google','model':'gemini-3-pro',"

static sheaf_render_options how_for(const char *model)
{
	sheaf_render_options how = how_to(GEMINI);
	how.model = sheaf_str_of(model);
	return how;
}

static void turns_alternate(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_for("gemini-2.5-flash");
	kit_open(&k);
	say(&k, "user", TEXT("a") "," TEXT("b"));
	say(&k, "user", TEXT("c") "," PNG);
	say(&k, "assistant", TEXT("d"));
	say(&k, "assistant", TEXT("e"));
	say(&k, "user", TEXT("f"));
	sees(&k, &how, "contents",
	     "[" U(T("a") "," T("b") "," T("c") "," DATA) "," M(T("d") "," T("e")) "," U(
		     T("f")) "]");
	kit_close(&k);
}

static void answers_stand_in_the_order_of_calls(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_for("gemini-2.5-flash");
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say(&k, "assistant", CALL("1", "x", "{'a':1}") "," CALL("2", "y", "{}"));
	say(&k, "tool", ANSWER("2", "two") "," ANSWER("1", "one"));
	say(&k, "user", TEXT("and"));
	sees(&k, &how, "contents",
	     "[" U(T("go")) "," M(FCS("1", "x", "{'a':1}", SKIP) "," FC("2", "y", "{}")) "," U(
		     FR("1", "x", "{'output':'one'}") "," FR("2", "y",
	                                                     "{'output':'two'}") "," T("and")) "]");
	kit_close(&k);
}

static void results_are_output_or_error(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_for("gemini-2.5-flash");
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say(&k, "assistant",
	    CALL("1", "x", "{}") "," CALL("2", "x", "{}") "," CALL("3", "x",
	                                                           "{}") "," CALL("4", "x", "{}"));
	say(&k, "tool",
	    "{'type':'tool_result','tool_result':{'tool_use_id':'1','content':'bad','is_error':true}},"
	    "{'type':'tool_result','tool_result':{'tool_use_id':'2','content':[" TEXT("a") "," TEXT(
		    "b") "],'is_error':false}},"
	                 "{'type':'tool_result','tool_result':{'tool_use_id':'3',"
	                 "'content':[]}}");
	sees(&k, &how, "contents",
	     "[" U(T("go")) "," M(FCS("1", "x", "{}", SKIP) "," FC("2", "x", "{}") "," FC("3", "x", "{}") "," FC("4", "x", "{}")) "," U(
		     FR("1", "x", "{'error':'bad'}") "," FR("2", "x", "{'output':'a\\nb'}") "," FR(
			     "3", "x", "{'output':''}") "," FR("4", "x",
	                                                       "{'error':'interrupted'}")) "]");
	kit_close(&k);
}

static void images_of_results_are_inside_or_behind(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options old = how_for("gemini-2.5-flash"), new = how_for("gemini-3-flash");
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say(&k, "assistant", CALL("1", "x", "{}") "," CALL("2", "x", "{}"));
	say(&k, "tool",
	    "{'type':'tool_result','tool_result':{'tool_use_id':'1','content':[" TEXT(
		    "a") "," PNG "," PNG "]}}," ANSWER("2", "b"));
	sees_noted(&k, &old, "contents",
	           "[" U(T("go")) "," M(FCS("1", "x", "{}", SKIP) "," FC("2", "x", "{}")) "," U(
			   FR("1", "x", "{'output':'a'}") "," DATA "," DATA
							  "," FR("2", "x", "{'output':'b'}")) "]",
	           SHEAF_NOTE_MOVED, 2);
	sees(&k, &new, "contents",
	     "[" U(T("go")) "," M(FCS("1", "x", "{}", SKIP) "," FC("2", "x", "{}")) "," U(
		     "{'functionResponse':{'id':'1','name':'x','response':{'output':'a'},'parts':[" DATA
		     "," DATA "]}}," FR("2", "x", "{'output':'b'}")) "]");
	kit_close(&k);
}

/* An address, and what only stands behind, also for new models. */
static void what_results_cannot_hold_stands_behind(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_for("gemini-3-flash");
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say(&k, "assistant", CALL("1", "x", "{}"));
	say(&k, "tool",
	    "{'type':'tool_result','tool_result':{'tool_use_id':'1','content':[{'type':'image',"
	    "'image':{'source':{'type':'url','media_type':'image/png','data':'https://x/y'}}}]}}");
	sees_noted(&k, &how, "contents",
	           "[" U(T("go")) "," M(FCS("1", "x", "{}", SKIP)) "," U(
			   FR("1", "x", "{'output':''}") ",{'fileData':{'mimeType':'image/png',"
							 "'fileUri':'https://x/y'}}") "]",
	           SHEAF_NOTE_MOVED, 1);
	kit_close(&k);
}

static void signatures_go_back_to_their_model(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_for("gemini-3-pro"), other = how_for("gemini-3-flash");
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say_as(&k, "assistant", OWN,
	       THOUGHT("hm",
	               "AAAA") ",{'type':'text','text':{'content':'so','signature':'BBBB'}},"
	                       "{'type':'tool_use','tool_use':{'id':'1','name':'x','input':{},"
	                       "'signature':'CCCC'}}," CALL("2", "x", "{}"));
	say(&k, "tool", ANSWER("1", "one") "," ANSWER("2", "two"));
	sees(&k, &how, "contents",
	     "[" U(T("go")) "," M(
		     "{'text':'hm','thought':true,'thoughtSignature':'AAAA'},"
		     "{'text':'so','thoughtSignature':'BBBB'}," FCS("1", "x", "{}", "CCCC") "," FC(
			     "2", "x",
			     "{}")) "," U(FR("1", "x",
	                                     "{'output':'one'}") "," FR("2", "x",
	                                                                "{'output':'two'}")) "]");
	sees_noted(&k, &other, "contents",
	           "[" U(T("go")) "," M(T("so") "," FCS("1", "x", "{}", SKIP) "," FC(
			   "2", "x",
			   "{}")) "," U(FR("1", "x",
	                                   "{'output':'one'}") "," FR("2", "x",
	                                                              "{'output':'two'}")) "]",
	           SHEAF_NOTE_FOREIGN_THINKING, 1);
	kit_close(&k);
}

static void a_missing_signature_is_replaced_in_each_step(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_for("gemini-3-pro");
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say(&k, "assistant", CALL("1", "x", "{}") "," CALL("2", "x", "{}"));
	say(&k, "tool", ANSWER("1", "one") "," ANSWER("2", "two"));
	say(&k, "assistant", CALL("3", "x", "{}"));
	say(&k, "tool", ANSWER("3", "three"));
	sees(&k, &how, "contents",
	     "[" U(T("go")) "," M(FCS("1", "x", "{}", SKIP) "," FC("2", "x", "{}")) "," U(
		     FR("1", "x", "{'output':'one'}") "," FR(
			     "2", "x",
			     "{'output':'two'}")) "," M(FCS("3", "x", "{}",
	                                                    SKIP)) "," U(FR("3", "x",
	                                                                    "{'output':'three'}")) "]");
	kit_close(&k);
}

/* What a model's name says of it. */
static void results_hold_images_since_gemini_3(void **state)
{
	(void)state;
	static const struct {
		const char *model;
		size_t moved;
	} cases[] = {
		{"gemini-3-pro-preview", 0},  {"gemini-3.1-flash", 0},
		{"gemini-12-pro", 0},         {"models/gemini-flash-latest", 0},
		{"google/gemini-3-flash", 0}, {"gemini-2.5-pro", 1},
		{"gemini-2.0-flash", 1},      {"gemma-3-27b-it", 1},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		kit k;
		sheaf_render_options how = how_for(cases[i].model);
		kit_open(&k);
		say(&k, "user", TEXT("go"));
		say(&k, "assistant", CALL("1", "x", "{}"));
		say(&k, "tool",
		    "{'type':'tool_result','tool_result':{'tool_use_id':'1','content':[" PNG "]}}");
		sheaf_request *q = rendered(&k, &how);
		if (notes_of(q, SHEAF_NOTE_MOVED) != cases[i].moved)
			fail_msg("%s", cases[i].model);
		sheaf_request_free(q);
		kit_close(&k);
	}
}

static void what_only_gemini_knows_goes_back(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_for("gemini-2.5-flash");
	kit_open(&k);
	say(&k, "user",
	    "{'type':'text','text':{'content':'go','ext':{'format':'gemini','partMetadata':{'a':1},"
	    "'text':'no'}}}");
	say(&k, "assistant",
	    "{'type':'opaque','opaque':{'provider':'gemini','raw':{'executableCode':{'code':'1'}}}},"
	    "{'type':'opaque','opaque':{'provider':'anthropic','raw':{'type':'x'}}}," CALL("1", "x",
	                                                                                   "{}"));
	say(&k, "tool",
	    "{'type':'tool_result','tool_result':{'tool_use_id':'1','content':'x','ext':"
	    "{'format':'gemini','response':{'result':[1,2.50]}}}}");
	sees_noted(&k, &how, "contents",
	           "[" U("{'text':'go','partMetadata':{'a':1}}") "," M(
			   "{'executableCode':{'code':'1'}}," FCS(
				   "1", "x", "{}", SKIP)) "," U(FR("1", "x",
	                                                           "{'result':[1,2.50]}")) "]",
	           SHEAF_NOTE_FOREIGN_PART, 1);
	kit_close(&k);
}

/* What was cut for its size does not come back by the side door. */
static void a_cut_response_is_not_given_back_whole(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_for("gemini-2.5-flash");
	static char body[40000], words[12001];
	memset(words, 'w', sizeof(words) - 1);
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say(&k, "assistant", CALL("1", "x", "{}"));
	(void)snprintf(body, sizeof(body),
	               "{'message':{'role':'tool','content':[{'type':'tool_result','tool_result':"
	               "{'tool_use_id':'1','content':'%s','ext':{'format':'gemini','response':"
	               "{'result':'%s'}}}}]}}",
	               words, words);
	kit_json(&k, "message", "big", body);
	say(&k, "assistant", TEXT("so"));
	say(&k, "user", TEXT("next"));
	sheaf_request *q = rendered(&k, &how);
	assert_non_null(strstr(q->body.ptr, "\"result\""));
	sheaf_request_free(q);
	how.elide = SHEAF_ELIDE_OUTPUTS;
	how.bytes_max = 8000;
	q = rendered(&k, &how);
	assert_null(strstr(q->body.ptr, "\"result\""));
	assert_non_null(strstr(q->body.ptr, "bytes left out]"));
	assert_int_equal(notes_of(q, SHEAF_NOTE_ELIDED), 1);
	sheaf_request_free(q);
	kit_close(&k);
}

static void the_rest_of_the_body(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_for("gemini-2.5-flash");
	const sheaf_system system[] = {{.text = SHEAF_STR("now"), .dynamic = 1},
	                               {.text = SHEAF_STR("be good")},
	                               {.text = SHEAF_STR("")}};
	const sheaf_tool tools[] = {
		{SHEAF_STR("a"), SHEAF_STR("does"), SHEAF_STR("{\"type\":\"object\",\"b\":1.0}")},
		{.name = SHEAF_STR("c")}};
	kit_open(&k);
	say(&k, "user", TEXT("hi"));
	how.system = system;
	how.system_count = COUNT_OF(system);
	how.tools = tools;
	how.tool_count = COUNT_OF(tools);
	sheaf_request *q = rendered(&k, &how);
	member_is(q, "systemInstruction", "{'parts':[" T("be good") "," T("now") "]}");
	member_is(q, "tools",
	          "[{'functionDeclarations':[{'name':'a','description':'does',"
	          "'parametersJsonSchema':{'type':'object','b':1.0}},"
	          "{'name':'c','parametersJsonSchema':{'type':'object'}}]}]");
	assert_null(json_member_bytes(q->body, "generationConfig").ptr);
	assert_string_equal(q->path.ptr, "/v1beta/models/gemini-2.5-flash:generateContent");
	sheaf_request_free(q);
	how.stream = 1;
	how.extra = SHEAF_STR("{\"tools\":[],\"toolConfig\":{},\"systemInstruction\":"
	                      "{\"parts\":[{\"text\":\"mine\"}]},\"contents\":[]}");
	q = rendered(&k, &how);
	member_is(q, "systemInstruction", "{'parts':[" T("mine") "]}");
	member_is(q, "tools", "[]");
	member_is(q, "toolConfig", "{}");
	member_is(q, "contents", "[" U(T("hi")) "]");
	assert_string_equal(q->path.ptr,
	                    "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
	sheaf_request_free(q);
	kit_close(&k);
}

static void generation_is_configured(void **state)
{
	(void)state;
	static const struct {
		const char *model, *level;
		uint64_t most;
		const char *extra, *want;
	} cases[] = {
		{"gemini-2.5-flash", NULL, 100, NULL, "{'maxOutputTokens':100}"},
		{"gemini-2.5-flash", "off", 0, NULL, "{'thinkingConfig':{'thinkingBudget':0}}"},
		{"gemini-2.5-pro", "off", 0, NULL, "{'thinkingConfig':{'thinkingBudget':128}}"},
		{"gemini-2.5-pro", "high", 7, NULL,
	         "{'maxOutputTokens':7,'thinkingConfig':{'thinkingBudget':32768,'includeThoughts':true}}"},
		{"gemini-3-flash", "minimal", 0, NULL,
	         "{'thinkingConfig':{'thinkingLevel':'minimal','includeThoughts':true}}"},
		{"gemini-3-pro", "off", 0, NULL, "{'thinkingConfig':{'thinkingLevel':'low'}}"},
		{"gemini-2.0-flash", "high", 0, "{\"generationConfig\":{\"topK\":1}}",
	         "{'topK':1}"},
		{"gemini-3-pro", "low", 5,
	         "{\"generationConfig\":{ \"thinkingConfig\":{\"thinkingBudget\":-1} }}",
	         "{'maxOutputTokens':5,'thinkingConfig':{'thinkingBudget':-1}}"},
		{"gemini-3-pro", NULL, 5, "{\"generationConfig\":{\"maxOutputTokens\":6}}",
	         "{'maxOutputTokens':6}"},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		kit k;
		sheaf_render_options how = how_for(cases[i].model);
		kit_open(&k);
		say(&k, "user", TEXT("hi"));
		how.max_tokens = cases[i].most;
		if (cases[i].level != NULL)
			how.thinking_level = sheaf_str_of(cases[i].level);
		if (cases[i].extra != NULL)
			how.extra = sheaf_str_of(cases[i].extra);
		sees(&k, &how, "generationConfig", cases[i].want);
		kit_close(&k);
	}
}

static void memory_may_run_out(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_for("gemini-2.5-flash");
	fail_alloc_install();
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say(&k, "assistant", CALL("1", "x", "{}"));
	say(&k, "tool",
	    "{'type':'tool_result','tool_result':{'tool_use_id':'1','content':[" TEXT("a") "," TEXT(
		    "b") "," PNG "]}}");
	const sheaf_context *c = kit_context(&k, NULL);
	renders_without_memory(&k, c, &how);
	sheaf_context_free(c);
	kit_close(&k);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_alternate),
		cmocka_unit_test(answers_stand_in_the_order_of_calls),
		cmocka_unit_test(results_are_output_or_error),
		cmocka_unit_test(images_of_results_are_inside_or_behind),
		cmocka_unit_test(what_results_cannot_hold_stands_behind),
		cmocka_unit_test(signatures_go_back_to_their_model),
		cmocka_unit_test(a_missing_signature_is_replaced_in_each_step),
		cmocka_unit_test(results_hold_images_since_gemini_3),
		cmocka_unit_test(what_only_gemini_knows_goes_back),
		cmocka_unit_test(a_cut_response_is_not_given_back_whole),
		cmocka_unit_test(the_rest_of_the_body),
		cmocka_unit_test(generation_is_configured),
		cmocka_unit_test(memory_may_run_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
