/*
 * The checkers of request bodies: for every rule a body that breaks it and
 * nothing else, and bodies that break none.
 *
 * Bodies are written with ' for ". A row is the inside of the list of messages
 * (input, contents), put into a frame that is right, or a whole body.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "sheaf/render.h"
#include "support/fail_alloc.h"

#define BODY_ROOM 65536

typedef struct row {
	const char *rule; /* NULL: the body is right */
	const char *inside;
	const char *where; /* NULL: not looked at */
} row;

static int32_t format;

static sheaf_violations *check(const char *body)
{
	static char text[BODY_ROOM];
	sheaf_violations *found = NULL;
	sheaf_error err;
	assert_true(strlen(body) < sizeof(text));
	(void)snprintf(text, sizeof(text), "%s", body);
	for (char *p = text; (p = strchr(p, '\'')) != NULL;)
		*p = '"';
	int rc = sheaf_request_check(&found, format, sheaf_str_of(text), &err);
	if (rc != 0)
		fail_msg("%s: %s", body, err.message);
	return found;
}

static void check_row(const char *body, const row *r)
{
	sheaf_violations *found = check(body);
	for (size_t i = 0; i < found->count; i++) {
		const sheaf_violation *v = found->items[i];
		if (r->rule == NULL || !str_is(v->rule, r->rule))
			fail_msg("%s\nexpected %s, got %s at %s", body, r->rule, v->rule.ptr,
			         v->where.ptr);
		assert_true(v->text.len > 10);
	}
	if (r->rule != NULL && found->count == 0)
		fail_msg("%s\nexpected %s", body, r->rule);
	if (r->where != NULL)
		assert_string_equal(found->items[0]->where.ptr, r->where);
	sheaf_violations_free(found);
}

static void check_rows(int32_t which, const char *frame, const row *rows, size_t count)
{
	static char body[BODY_ROOM];
	format = which;
	for (size_t i = 0; i < count; i++) {
		const char *at = strstr(frame, "@@");
		if (rows[i].inside[0] == '{' && rows[i].inside[1] == ' ')
			(void)snprintf(body, sizeof(body), "%s", rows[i].inside);
		else
			(void)snprintf(body, sizeof(body), "%.*s%s%s", (int)(at - frame), frame,
			               rows[i].inside, at + 2);
		check_row(body, &rows[i]);
	}
}

/* ---- Anthropic ------------------------------------------------------------- */

#define U "{'role':'user','content':'hi'}"
#define A "{'role':'assistant','content':'yes'}"
#define TEXT(t) "{'type':'text','text':'" t "'}"
#define USE(id) "{'type':'tool_use','id':'" id "','name':'t','input':{}}"
#define RES(id) "{'type':'tool_result','tool_use_id':'" id "','content':'ok'}"
#define THINK "{'type':'thinking','thinking':'hm','signature':'s'}"
#define US(blocks) "{'role':'user','content':[" blocks "]}"
#define AS(blocks) "{'role':'assistant','content':[" blocks "]}"
#define SYS "{'role':'system','content':'be brief'}"
#define PNG "{'type':'image','source':{'type':'base64','media_type':'image/png','data':'QUJD'}}"
#define PDF                                                                                        \
	"{'type':'document','source':{'type':'base64','media_type':'application/pdf',"             \
	"'data':'QUJD'}}"
#define MARKED(t, ttl)                                                                             \
	"{'type':'text','text':'" t "','cache_control':{'type':'ephemeral','ttl':'" ttl "'}}"
#define ATOOL "{'name':'t','input_schema':{'type':'object'}}"
#define ABODY(more, messages)                                                                      \
	"{ 'model':'m','max_tokens':4096,'tools':[" ATOOL "]" more ",'messages':[" messages "]}"
#define THINKING ",'thinking':{'type':'enabled','budget_tokens':1024}"

static const row anthropic_rows[] = {
	{NULL, U, NULL},
	{NULL, U "," U "," A, NULL},
	{NULL, U "," AS(USE("a") "," USE("b")) "," US(RES("b") "," RES("a") "," TEXT("and")), NULL},
	{NULL, US(PNG "," PDF "," TEXT("x")), NULL},
	{NULL, US("{'type':'image','source':{'type':'url','url':'https://x/y'}}"), NULL},
	{NULL, US("{'type':'image','source':{'type':'file','file_id':'f'}}"), NULL},
	{NULL,
         US("{'type':'document','source':{'type':'text','media_type':'text/plain','data':'x'}}"),
         NULL},
	{NULL, U "," AS(THINK "," TEXT("x")) "," U, NULL},
	{NULL, U "," AS("{'type':'redacted_thinking','data':'x'}," TEXT("x")) "," U, NULL},
	{NULL, U "," SYS, NULL},
	{NULL, U "," SYS "," A "," U, NULL},
	{NULL,
         U "," AS("{'type':'server_tool_use','id':'s','name':'web_search','input':{}}") "," SYS,
         NULL},
	{NULL, U "," AS(""), NULL},
	{NULL,
         U "," AS(USE("a")) "," US(
		 "{'type':'tool_result','tool_use_id':'a','is_error':true,'content':[" TEXT(
			 " ") "," PNG "]}"),
         NULL},
	{NULL, ABODY(",'system':[" MARKED("s", "1h") "]", US(MARKED("x", "5m"))), NULL},
	{NULL, ABODY(THINKING, U "," AS(THINK "," USE("a")) "," US(RES("a"))), NULL},
	{NULL,
         ABODY(THINKING,
               U "," AS(THINK "," USE("a")) "," US(RES("a")) "," AS(USE("b")) "," US(RES("b"))),
         NULL},
	{NULL, ABODY(THINKING, U "," A "," U), NULL},
	{NULL, ABODY(",'thinking':{'type':'disabled'}", U "," AS(USE("a")) "," US(RES("a"))), NULL},
	{NULL, "{ 'model':'m','max_tokens':0,'system':'s','messages':[" U "]}", NULL},

	{"key_twice", "{ 'model':'m','model':'m','max_tokens':1,'messages':[" U "]}", ""},
	{"key_twice", US("{'type':'text','text':'x','text':'y'}"), "messages[0].content[0]"},
	{"model", "{ 'max_tokens':1,'messages':[" U "]}", "model"},
	{"max_tokens", "{ 'model':'m','messages':[" U "]}", "max_tokens"},
	{"max_tokens", "{ 'model':'m','max_tokens':-1,'messages':[" U "]}", NULL},
	{"messages", "", "messages"},
	{"first_role", A, "messages[0]"},
	{"role", U ",{'role':'tool','content':'x'}", "messages[1]"},
	{"system_place", U "," SYS "," U, "messages[1]"},
	{"system_place", U "," A "," SYS, "messages[2]"},
	{"system_place", U "," SYS "," SYS, NULL},
	{"content", "{'role':'user','content':7}", NULL},
	{"content",
         U "," AS(USE("a")) "," US("{'type':'tool_result','tool_use_id':'a','content':{}}"), NULL},
	{"content_empty", US(""), "messages[0]"},
	{"content_empty", U "," AS("") "," U, "messages[1]"},
	{"text", US("{'type':'text'}"), NULL},
	{"text", U "," AS("{'type':'thinking','signature':'s'}") "," U, NULL},
	{"text_empty", "{'role':'user','content':''}", NULL},
	{"text_empty", US(TEXT("x") "," TEXT("")), "messages[0].content[1]"},
	{"text_empty",
         U "," AS(USE("a")) "," US(
		 "{'type':'tool_result','tool_use_id':'a','content':[" TEXT("") "]}"),
         NULL},
	{"text_blank", US(TEXT(" \\n\\t\\u00a0\\u3000\\u2003")), NULL},
	{"block_type", US(THINK), NULL},
	{"block_type", US("{'type':'image_url'}"), NULL},
	{"image",
         US("{'type':'image','source':{'type':'base64','media_type':'image/tiff','data':'QUJD'}}"),
         NULL},
	{"image",
         US("{'type':'image','source':{'type':'base64','media_type':'image/png','data':'Q'}}"),
         NULL},
	{"image", US("{'type':'image','source':{'type':'url','url':'file:///x'}}"), NULL},
	{"document",
         US("{'type':'document','source':{'type':'base64','media_type':'text/plain','data':'QUJD'}}"),
         NULL},
	{"call_id",
         U "," AS("{'type':'tool_use','id':'a b','name':'t','input':{}}") "," US(RES("a b")), NULL},
	{"call_id_twice", U "," AS(USE("a")) "," US(RES("a")) "," AS(USE("a")) "," US(RES("a")),
         "messages[3].content[0]"},
	{"tool_name",
         U "," AS("{'type':'tool_use','id':'a','name':'t.x','input':{}}") "," US(RES("a")), NULL},
	{"input", U "," AS("{'type':'tool_use','id':'a','name':'t','input':'x'}") "," US(RES("a")),
         NULL},
	{"is_error",
         U "," AS(USE("a")) "," US("{'type':'tool_result','tool_use_id':'a','is_error':1}"), NULL},
	{"thinking_signature", U "," AS("{'type':'thinking','thinking':'x','signature':''}") "," U,
         NULL},
	{"thinking_signature", U "," AS("{'type':'redacted_thinking'}") "," U, NULL},
	{"call_unanswered", U "," AS(USE("a")) "," U, "messages[1].content[0]"},
	{"call_unanswered", U "," AS(USE("a")), NULL},
	{"call_unanswered", U "," AS(USE("a") "," USE("b")) "," US(RES("a")), NULL},
	{"result_orphan", US(RES("a")), "messages[0].content[0]"},
	{"result_orphan", U "," AS(USE("a")) "," US(RES("a")) "," US(RES("a")), NULL},
	{"result_twice", U "," AS(USE("a")) "," US(RES("a") "," RES("a")), NULL},
	{"results_first", U "," AS(USE("a")) "," US(TEXT("x") "," RES("a")), NULL},
	{"prefill_space", U ",{'role':'assistant','content':'x '}", NULL},
	{"prefill_space", U "," AS(TEXT("x\\n")), NULL},
	{"thinking_first", ABODY(THINKING, U "," AS(USE("a")) "," US(RES("a"))), "messages[1]"},
	{"thinking_first", ABODY(THINKING, U "," A), NULL},
	{"thinking_budget", ABODY(",'thinking':{'type':'enabled','budget_tokens':1023}", U), NULL},
	{"thinking_budget", ABODY(",'thinking':{'type':'enabled','budget_tokens':4096}", U), NULL},
	{"tools",
         "{ 'model':'m','max_tokens':1,'messages':[" U "," AS(USE("a")) "," US(RES("a")) "]}",
         NULL},
	{"tool_name",
         "{ 'model':'m','max_tokens':1,'tools':[{'name':'','input_schema':{'type':'object'}}],"
         "'messages':[" U "]}",
         "tools[0]"},
	{"tool_twice",
         "{ 'model':'m','max_tokens':1,'tools':[" ATOOL "," ATOOL "],'messages':[" U "]}",
         "tools[1]"},
	{"tool_schema", "{ 'model':'m','max_tokens':1,'tools':[{'name':'t'}],'messages':[" U "]}",
         NULL},
	{"system", ABODY(",'system':[" TEXT(" ") "]", U), "system[0]"},
	{"mark", US("{'type':'text','text':'x','cache_control':{'type':'ephemeral','ttl':'2h'}}"),
         NULL},
	{"marks_many",
         US(MARKED("1", "5m") "," MARKED("2", "5m") "," MARKED("3", "5m") "," MARKED(
		 "4", "5m") "," MARKED("5", "5m")),
         "messages[0].content[4]"},
	{"marks_order", ABODY(",'system':[" MARKED("s", "5m") "]", US(MARKED("x", "1h"))), NULL},
	{"mark_thinking",
         U "," AS("{'type':'thinking','thinking':'x','signature':'s',"
                  "'cache_control':{'type':'ephemeral'}}") "," U,
         NULL},
};

static void test_anthropic(UNUSED void **state)
{
	check_rows(SHEAF_FORMAT_ANTHROPIC, ABODY("", "@@"), anthropic_rows,
	           COUNT_OF(anthropic_rows));
}

/* ---- Chat ------------------------------------------------------------------ */

#define CALL(id) "{'id':'" id "','type':'function','function':{'name':'t','arguments':'{}'}}"
#define CALLS(list) "{'role':'assistant','content':null,'tool_calls':[" list "]}"
#define TOOL(id) "{'role':'tool','tool_call_id':'" id "','content':'ok'}"
#define CBODY(more, messages) "{ 'model':'m'" more ",'messages':[" messages "]}"
#define FUNCTION "{'type':'function','function':{'name':'t','parameters':{}}}"
#define LONG_ID "0123456789012345678901234567890123456789012345678901234567890123"

static const row chat_rows[] = {
	{NULL, U, NULL},
	{NULL, SYS ",{'role':'developer','content':'x'}," U "," A, NULL},
	{NULL, U "," CALLS(CALL("a") "," CALL("b")) "," TOOL("b") "," TOOL("a") "," U, NULL},
	{NULL, U ",{'role':'assistant','refusal':'no'}", NULL},
	{NULL,
         U "," CALLS("{'id':'a','type':'custom','custom':{'name':'t','input':'x'}}") "," TOOL("a"),
         NULL},
	{NULL,
         US(TEXT("x") ",{'type':'image_url','image_url':{'url':'data:image/png;base64,QUJD'}}"
                      ",{'type':'image_url','image_url':{'url':'https://x/y'}}"
                      ",{'type':'file','file':{'filename':'x','file_data':"
                      "'data:application/pdf;base64,QUJD'}}"),
         NULL},
	{NULL, CBODY(",'tools':[" FUNCTION "],'max_completion_tokens':5", U), NULL},

	{"key_twice", CBODY(",'a':{'b':1,'b':2}", U), "a"},
	{"model", "{ 'messages':[" U "]}", NULL},
	{"messages", "", NULL},
	{"max_tokens", CBODY(",'max_completion_tokens':0", U), NULL},
	{"role", "{'role':'model','content':'x'}", NULL},
	{"content", US(""), NULL},
	{"content_null", "{'role':'assistant','content':null}", NULL},
	{"content_null", "{'role':'user'}", NULL},
	{"part", US("{'type':'input_text','text':'x'}"), NULL},
	{"part", US("{'type':'image_url','image_url':{'url':'data:image/png;base64,-'}}"), NULL},
	{"part", AS("{'type':'image_url','image_url':{'url':'https://x/y'}}"), NULL},
	{"result_text",
         U "," CALLS(CALL("a")) ",{'role':'tool','tool_call_id':'a','content':["
                                "{'type':'image_url','image_url':{'url':'https://x/y'}}]}",
         "messages[2].content[0]"},
	{"tool_calls", U "," CALLS(""), NULL},
	{"tool_calls", "{'role':'user','content':'x','tool_calls':[" CALL("a") "]}", NULL},
	{"call_type",
         U "," CALLS("{'id':'a','function':{'name':'t','arguments':''}}") "," TOOL("a"), NULL},
	{"call_id", U "," CALLS(CALL("")), NULL},
	{"call_id", U "," CALLS(CALL(LONG_ID "x")), "messages[1].tool_calls[0]"},
	{"call_id_twice", U "," CALLS(CALL("a")) "," TOOL("a") "," CALLS(CALL("a")), NULL},
	{"tool_name",
         U
         "," CALLS("{'id':'a','type':'function','function':{'name':'t x','arguments':''}}") "," TOOL(
		 "a"),
         NULL},
	{"arguments",
         U
         "," CALLS("{'id':'a','type':'function','function':{'name':'t','arguments':{}}}") "," TOOL(
		 "a"),
         NULL},
	{"call_unanswered", U "," CALLS(CALL("a") "," CALL("b")) "," TOOL("a"), "messages[1]"},
	{"result_orphan", U "," TOOL("a"), "messages[1]"},
	{"result_orphan", U "," CALLS(CALL("a")) "," TOOL("a") "," U "," TOOL("a"), NULL},
	{"result_twice", U "," CALLS(CALL("a")) "," TOOL("a") "," TOOL("a"), NULL},
	{"tool_name", CBODY(",'tools':[{'type':'function','function':{'name':'a.b'}}]", U), NULL},
	{"tool_twice", CBODY(",'tools':[" FUNCTION "," FUNCTION "]", U), NULL},
	{"tool_schema", CBODY(",'tools':[{'function':{'name':'a'}}]", U), NULL},
	{"tools_empty", CBODY(",'tools':[]", U), NULL},
};

static void test_chat(UNUSED void **state)
{
	check_rows(SHEAF_FORMAT_OPENAI_CHAT, CBODY("", "@@"), chat_rows, COUNT_OF(chat_rows));
	/* An answer that comes after something else is both: its call was not answered in time. */
	format = SHEAF_FORMAT_OPENAI_CHAT;
	sheaf_violations *found = check(CBODY("", U "," CALLS(CALL("a")) "," U "," TOOL("a")));
	assert_int_equal(found->count, 2);
	assert_string_equal(found->items[0]->rule.ptr, "call_unanswered");
	assert_string_equal(found->items[1]->rule.ptr, "result_orphan");
	sheaf_violations_free(found);
}

/* ---- Responses ------------------------------------------------------------- */

#define FC(id) "{'type':'function_call','call_id':'" id "','name':'t','arguments':'{}'}"
#define FO(id) "{'type':'function_call_output','call_id':'" id "','output':'ok'}"
#define RS                                                                                         \
	"{'type':'reasoning','id':'rs_1','summary':[{'type':'summary_text','text':'x'}],"          \
	"'encrypted_content':'e'}"
#define RBODY(more, input) "{ 'model':'m','store':false" more ",'input':[" input "]}"
#define RFUNCTION "{'type':'function','name':'t','parameters':{}}"

static const row responses_rows[] = {
	{NULL, U, NULL},
	{NULL, SYS "," U "," A, NULL},
	{NULL, U "," FC("a") "," FC("b") "," FO("b") "," FO("a"), NULL},
	{NULL, U "," FC("a") "," U "," FO("a"), NULL},
	{NULL, U "," RS "," FC("a") "," FO("a"), NULL},
	{NULL, U "," RS "," A, NULL},
	{NULL,
         U ",{'type':'message','id':'msg_1','role':'assistant','content':["
           "{'type':'output_text','text':'x','annotations':[]},{'type':'refusal','refusal':'n'}]}",
         NULL},
	{NULL,
         US("{'type':'input_text','text':''},{'type':'input_image','image_url':'https://x/y'},"
            "{'type':'input_file','filename':'x','file_data':'data:application/pdf;base64,QUJD'}"),
         NULL},
	{NULL,
         U "," FC("a") ",{'type':'function_call_output','call_id':'a','output':["
                       "{'type':'input_image','image_url':'data:image/png;base64,QUJD'}]}",
         NULL},
	{NULL,
         U ",{'type':'custom_tool_call','call_id':'a','name':'t','input':'x'}"
           ",{'type':'custom_tool_call_output','call_id':'a','output':'x'}",
         NULL},
	{NULL, U ",{'type':'web_search_call','id':'ws_1'}", NULL},
	{NULL, "{ 'model':'m','input':'hi'}", NULL},
	{NULL, "{ 'model':'m','input':[" U ",{'type':'reasoning','summary':[]}," A "]}", NULL},
	{NULL, RBODY(",'tools':[" RFUNCTION ",{'type':'web_search'}]", U), NULL},

	{"key_twice", RBODY(",'store':true", U), NULL},
	{"model", "{ 'input':[" U "]}", NULL},
	{"input", "", NULL},
	{"max_tokens", RBODY(",'max_output_tokens':0", U), NULL},
	{"item_type", U ",{'type':'tool_result'}", "input[1]"},
	{"item_id_twice",
         U ",{'type':'web_search_call','id':'ws_1'},{'type':'web_search_call','id':'ws_1'}", NULL},
	{"role", "{'role':'tool','content':'x'}", NULL},
	{"content", US(""), NULL},
	{"part", US("{'type':'output_text','text':'x'}"), "input[0].content[0]"},
	{"part", U "," AS("{'type':'input_text','text':'x'}"), NULL},
	{"part",
         U "," FC("a") ",{'type':'function_call_output','call_id':'a','output':[" TEXT("x") "]}",
         "input[2].output[0]"},
	{"output", U "," FC("a") ",{'type':'function_call_output','call_id':'a','output':{}}",
         NULL},
	{"call_id", U "," FC(LONG_ID "x") "," FO(LONG_ID "x"), NULL},
	{"call_id_twice", U "," FC("a") "," FO("a") "," FC("a"), NULL},
	{"tool_name",
         U ",{'type':'function_call','call_id':'a','name':'t x','arguments':'{}'}," FO("a"), NULL},
	{"arguments",
         U ",{'type':'function_call','call_id':'a','name':'t','arguments':{}}," FO("a"), NULL},
	{"call_unanswered", U "," FC("a"), "input[1]"},
	{"result_orphan", U "," FO("a"), "input[1]"},
	{"result_twice", U "," FC("a") "," FO("a") "," FO("a"), NULL},
	{"reasoning", U ",{'type':'reasoning','encrypted_content':'e'}," A, NULL},
	{"reasoning",
         U
         ",{'type':'reasoning','summary':[{'type':'text','text':'x'}],'encrypted_content':'e'}," A,
         NULL},
	{"reasoning_content", U ",{'type':'reasoning','summary':[]}," A, NULL},
	{"reasoning_alone", U "," RS, "input[1]"},
	{"reasoning_alone", U "," RS "," U, NULL},
	{"tool_name", RBODY(",'tools':[{'type':'function','name':'a.b'}]", U), NULL},
	{"tool_twice", RBODY(",'tools':[" RFUNCTION "," RFUNCTION "]", U), NULL},
	{"tool_schema", RBODY(",'tools':[{'type':'function','name':'a','parameters':[]}]", U),
         NULL},
};

static void test_responses(UNUSED void **state)
{
	check_rows(SHEAF_FORMAT_OPENAI_RESPONSES, RBODY("", "@@"), responses_rows,
	           COUNT_OF(responses_rows));
	/* An output before its call: no call before it, and the call stays without one. */
	format = SHEAF_FORMAT_OPENAI_RESPONSES;
	sheaf_violations *found = check(RBODY("", U "," FO("a") "," FC("a")));
	assert_int_equal(found->count, 2);
	assert_string_equal(found->items[0]->rule.ptr, "result_orphan");
	assert_string_equal(found->items[1]->rule.ptr, "call_unanswered");
	sheaf_violations_free(found);
}

/* ---- Gemini ---------------------------------------------------------------- */

#define GU(parts) "{'role':'user','parts':[" parts "]}"
#define GM(parts) "{'role':'model','parts':[" parts "]}"
#define GT(t) "{'text':'" t "'}"
#define GC(id, name) "{'functionCall':{'id':'" id "','name':'" name "','args':{}}}"
#define GCS(id, name)                                                                              \
	"{'functionCall':{'id':'" id "','name':'" name "','args':{}},'thoughtSignature':'QUJD'}"
#define GR(id, name)                                                                               \
	"{'functionResponse':{'id':'" id "','name':'" name "','response':{'output':'x'}}}"
#define GDATA "{'inlineData':{'mimeType':'image/png','data':'QUJD'}}"
#define GBODY(more, contents) "{ 'contents':[" contents "]" more "}"
#define G3 ",'model':'models/gemini-3-pro'"
#define GFUNCTION "{'name':'t','parametersJsonSchema':{}}"

static const row gemini_rows[] = {
	{NULL, GU(GT("x")), NULL},
	{NULL, GU(GT("x") "," GDATA) "," GM(GT("y")) "," GU(GT("z")), NULL},
	{NULL,
         GU(GT("x")) "," GM(GC("a", "t") "," GC("b", "u")) "," GU(GR("a", "t") "," GR("b", "u")),
         NULL},
	{NULL,
         GU(GT("x")) "," GM(GC("", "t")) "," GU(
		 "{'functionResponse':{'name':'t','response':{},'parts':[" GDATA "]}}," GDATA),
         NULL},
	{NULL,
         GU(GT("x")) "," GM("{'text':'hm','thought':true},{'text':'','thoughtSignature':'QUJD'}"),
         NULL},
	{NULL, GU(GT("x") ",{'fileData':{'fileUri':'https://x/y'}}"), NULL},
	{NULL, GU(GT("x")) "," GM("{'executableCode':{}},{'codeExecutionResult':{}}"), NULL},
	{NULL,
         GBODY(G3, GU(GT("x")) "," GM(GCS("a", "t") "," GC("b", "t")) "," GU(
			   GR("a", "t") "," GR("b", "t"))),
         NULL},
	{NULL,
         GBODY(G3, GU(GT("x")) "," GM(GC("a", "t")) "," GU(GR("a", "t")) "," GM(GT("y")) "," GU(
			   GT("z"))),
         NULL},
	{NULL,
         GBODY(",'model':'models/gemini-2.5-pro'",
               GU(GT("x")) "," GM(GC("a", "t")) "," GU(GR("a", "t"))),
         NULL},
	{NULL,
         GBODY(",'generationConfig':{'maxOutputTokens':5,'thinkingConfig':{'thinkingBudget':-1}},"
               "'systemInstruction':{'parts':[" GT(
		       "s") "]},"
                            "'tools':[{'functionDeclarations':[" GFUNCTION "]}]",
               GU(GT("x"))),
         NULL},

	{"key_twice", GBODY(",'contents':[]", GU(GT("x"))), NULL},
	{"contents", "", NULL},
	{"role", "{'role':'assistant','parts':[" GT("x") "]}", NULL},
	{"first_role", GM(GT("x")), NULL},
	{"roles_alternate", GU(GT("x")) "," GU(GT("y")), "contents[1]"},
	{"parts_empty", GU(""), NULL},
	{"part_kind", GU("{}"), "contents[0].parts[0]"},
	{"part_kind", GU("{'text':'x','inlineData':{'mimeType':'image/png','data':'QUJD'}}"), NULL},
	{"text_empty", GU(GT("")), NULL},
	{"signature", GU("{'text':'x','thoughtSignature':'QUJD'}"), NULL},
	{"signature", GU(GT("x")) "," GM("{'text':'x','thoughtSignature':''}"), NULL},
	{"thought", GU("{'text':'x','thought':true}"), NULL},
	{"inline_data", GU("{'inlineData':{'mimeType':'png','data':'QUJD'}}"), NULL},
	{"inline_data", GU("{'inlineData':{'mimeType':'image/png','data':''}}"), NULL},
	{"file_data", GU("{'fileData':{}}"), NULL},
	{"call_role", GU(GC("a", "t")), NULL},
	{"response_role", GU(GT("x")) "," GM(GR("a", "t")), NULL},
	{"tool_name", GU(GT("x")) "," GM(GC("a", "1t")) "," GU(GR("a", "1t")), NULL},
	{"tool_name", GU(GT("x")) "," GM(GC("a", "t t")) "," GU(GR("a", "t t")), NULL},
	{"args", GU(GT("x")) "," GM("{'functionCall':{'name':'t','args':[]}}") "," GU(GR("", "t")),
         NULL},
	{"response",
         GU(GT("x")) "," GM(GC("a", "t")) "," GU(
		 "{'functionResponse':{'name':'t','response':'x'}}"),
         NULL},
	{"response_parts",
         GU(GT("x")) "," GM(GC("a", "t")) "," GU(
		 "{'functionResponse':{'name':'t','response':{},'parts':[" GT("x") "]}}"),
         NULL},
	{"call_id_twice",
         GU(GT("x")) "," GM(GC("a", "t") "," GC("a", "t")) "," GU(GR("a", "t") "," GR("a", "t")),
         NULL},
	{"call_unanswered", GU(GT("x")) "," GM(GC("a", "t")), NULL},
	{"call_unanswered", GU(GT("x")) "," GM(GC("a", "t") "," GC("b", "t")) "," GU(GR("a", "t")),
         "contents[2]"},
	{"response_orphan", GU(GR("a", "t")), NULL},
	{"response_orphan", GU(GT("x")) "," GM(GC("a", "t")) "," GU(GR("a", "t") "," GR("a", "t")),
         NULL},
	{"response_match", GU(GT("x")) "," GM(GC("a", "t")) "," GU(GR("a", "u")), NULL},
	{"response_match", GU(GT("x")) "," GM(GC("a", "t")) "," GU(GR("b", "t")), NULL},
	{"signature_missing", GBODY(G3, GU(GT("x")) "," GM(GC("a", "t")) "," GU(GR("a", "t"))),
         "contents[1].parts[0]"},
	{"signature_missing",
         GBODY(",'generationConfig':{'thinkingConfig':{'thinkingLevel':'low'}}",
               GU(GT("x")) "," GM(GC("a", "t")) "," GU(GR("a", "t"))),
         NULL},
	{"signature_missing",
         GU(GT("x")) "," GM(
		 "{'functionCall':{'id':'a','name':'t'},"
		 "'thoughtSignature':'skip_thought_signature_validator'}") "," GU(GR("a",
                                                                                     "t")) "," GM(GC("b",
                                                                                                     "t")) "," GU(GR("b",
                                                                                                                     "t")),
         "contents[3].parts[0]"},
	{"max_tokens", GBODY(",'generationConfig':{'maxOutputTokens':0}", GU(GT("x"))), NULL},
	{"thinking_config",
         GBODY(",'generationConfig':{'thinkingConfig':{'thinkingLevel':'low','thinkingBudget':1}}",
               GU(GT("x"))),
         NULL},
	{"thinking_config",
         GBODY(",'generationConfig':{'thinkingConfig':{'thinkingLevel':'much'}}", GU(GT("x"))),
         NULL},
	{"system", GBODY(",'systemInstruction':{'parts':[]}", GU(GT("x"))), NULL},
	{"system", GBODY(",'systemInstruction':{'parts':[" GT("") "]}", GU(GT("x"))), NULL},
	{"tool_name", GBODY(",'tools':[{'functionDeclarations':[{'name':'-'}]}]", GU(GT("x"))),
         NULL},
	{"tool_twice",
         GBODY(",'tools':[{'functionDeclarations':[" GFUNCTION "," GFUNCTION "]}]", GU(GT("x"))),
         NULL},
	{"tool_schema",
         GBODY(",'tools':[{'functionDeclarations':[{'name':'t','parameters':{},"
               "'parametersJsonSchema':{}}]}]",
               GU(GT("x"))),
         NULL},
};

static void test_gemini(UNUSED void **state)
{
	check_rows(SHEAF_FORMAT_GEMINI, GBODY("", "@@"), gemini_rows, COUNT_OF(gemini_rows));
}

/* ---- The list of rules ------------------------------------------------------ */

/* The part of the document that lists a format's rules; the first one lists those of all. */
static const char *section(const char *text, const char *heading, size_t *len)
{
	const char *at = strstr(text, heading);
	assert_non_null(at);
	const char *end = strstr(at + 1, "\n### ");
	*len = end != NULL ? (size_t)(end - at) : strlen(at);
	return at;
}

static bool lists(const char *text, size_t len, const char *rule)
{
	char name[64];
	(void)snprintf(name, sizeof(name), "`%s`", rule);
	return memmem(text, len, name, strlen(name)) != NULL;
}

static void test_documented(UNUSED void **state)
{
	static const struct {
		const char *heading;
		const row *rows;
		size_t count;
	} formats[] = {
		{"\n### anthropic", anthropic_rows, COUNT_OF(anthropic_rows)},
		{"\n### openai-chat", chat_rows, COUNT_OF(chat_rows)},
		{"\n### openai-responses", responses_rows, COUNT_OF(responses_rows)},
		{"\n### gemini", gemini_rows, COUNT_OF(gemini_rows)},
	};
	const char *source = getenv("SHEAF_SOURCE_DIR");
	char path[4096];
	static char text[1 << 18];
	if (source == NULL)
		skip();
	(void)snprintf(path, sizeof(path), "%s/docs/rendering.md", source);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	assert_int_equal(fclose(file), 0);
	size_t common_len, len;
	const char *common = section(text, "\n## The rules checked", &common_len);
	for (size_t f = 0; f < COUNT_OF(formats); f++) {
		const char *at = section(text, formats[f].heading, &len);
		for (size_t i = 0; i < formats[f].count; i++) {
			const char *rule = formats[f].rows[i].rule;
			if (rule != NULL && !lists(at, len, rule) &&
			    !lists(common, common_len, rule))
				fail_msg("%s: %s is not in docs/rendering.md",
				         formats[f].heading + 5, rule);
		}
	}
}

/* ---- The call itself ------------------------------------------------------- */

static void test_refused(UNUSED void **state)
{
	sheaf_violations *found = NULL;
	sheaf_error err;
	assert_int_equal(sheaf_request_check(&found, 0, SHEAF_STR("{}"), &err), SHEAF_INVALID);
	assert_int_equal(sheaf_request_check(&found, 5, SHEAF_STR("{}"), &err), SHEAF_INVALID);
	assert_int_equal(sheaf_request_check(NULL, 1, SHEAF_STR("{}"), &err), SHEAF_INVALID);
	assert_int_equal(sheaf_request_check(&found, 1, SHEAF_STR("{"), &err), SHEAF_FORMAT);
	assert_int_equal(sheaf_request_check(&found, 1, SHEAF_STR("{\"a\":\"\xff\"}"), NULL),
	                 SHEAF_FORMAT);
	assert_int_equal(sheaf_request_check(&found, 1, SHEAF_STR("{\"a\":\"\\ud800\"}"), NULL),
	                 SHEAF_FORMAT);
	assert_null(found);
	sheaf_violations_free(NULL);
	format = SHEAF_FORMAT_ANTHROPIC;
	check_row("[]", &(row){"body", "[]", ""});
}

static void test_deep(UNUSED void **state)
{
	static char body[4096];
	size_t used = (size_t)snprintf(body, sizeof(body),
	                               "{ 'model':'m','max_tokens':1,"
	                               "'messages':[" U "],'x':");
	memset(body + used, '[', 200);
	memset(body + used + 200, ']', 200);
	(void)snprintf(body + used + 400, sizeof(body) - used - 400, "}");
	format = SHEAF_FORMAT_ANTHROPIC;
	check_row(body, &(row){"depth", body, NULL});
}

/* A key among many is found, too. */
static void test_many_keys(UNUSED void **state)
{
	static char body[4096];
	size_t used = (size_t)snprintf(body, sizeof(body),
	                               "{ 'model':'m','max_tokens':1,"
	                               "'messages':[" U "],'x':{");
	for (int i = 0; i < 40; i++)
		used += (size_t)snprintf(body + used, sizeof(body) - used, "'k%d':1,", i);
	(void)snprintf(body + used, sizeof(body) - used, "'k7':1}}");
	format = SHEAF_FORMAT_ANTHROPIC;
	check_row(body, &(row){"key_twice", body, "x"});
}

static void test_bounded(UNUSED void **state)
{
	static char body[BODY_ROOM];
	size_t used = (size_t)snprintf(body, sizeof(body),
	                               "{ 'model':'m','max_tokens':1,'messages':[" U);
	for (int i = 0; i < 1500; i++)
		used += (size_t)snprintf(body + used, sizeof(body) - used, "," US(""));
	(void)snprintf(body + used, sizeof(body) - used, "]}");
	format = SHEAF_FORMAT_ANTHROPIC;
	sheaf_violations *found = check(body);
	assert_int_equal(found->count, 1000);
	sheaf_violations_free(found);
}

static void test_nomem(UNUSED void **state)
{
	static const char *const bodies[] = {
		ABODY("", U "," AS(USE("a") "," USE("a")) "," US(RES("a"))),
		CBODY("", U "," CALLS(CALL("a")) "," TOOL("a") "," TOOL("a")),
		RBODY("", U "," FC("a") "," FO("a") "," FO("a")),
		GBODY("", GU(GT("x")) "," GM(GC("a", "t")) "," GU("")),
	};
	for (int32_t f = 1; f <= 4; f++) {
		char body[1024];
		(void)snprintf(body, sizeof(body), "%s", bodies[f - 1]);
		for (char *p = body; (p = strchr(p, '\'')) != NULL;)
			*p = '"';
		fail_alloc_install();
		for (size_t n = 1;; n++) {
			sheaf_violations *found = NULL;
			fail_alloc_at(n, false);
			int rc = sheaf_request_check(&found, f, sheaf_str_of(body), NULL);
			if (!fail_alloc_hit()) {
				assert_int_equal(rc, 0);
				assert_true(found->count > 0);
				sheaf_violations_free(found);
				break;
			}
			assert_int_equal(rc, SHEAF_NOMEM);
			assert_null(found);
		}
		assert_int_equal(fail_alloc_live(), 0);
		fail_alloc_remove();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_anthropic),  cmocka_unit_test(test_chat),
		cmocka_unit_test(test_responses),  cmocka_unit_test(test_gemini),
		cmocka_unit_test(test_documented), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_deep),       cmocka_unit_test(test_many_keys),
		cmocka_unit_test(test_bounded),    cmocka_unit_test(test_nomem),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
