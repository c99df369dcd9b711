/* What every format gets: roles, ids, names, inputs, and what had to be changed. */
#include "render_test.h"

#include "support/fail_alloc.h"

#define ANTHROPIC SHEAF_FORMAT_ANTHROPIC
#define CHAT SHEAF_FORMAT_OPENAI_CHAT
#define RESPONSES SHEAF_FORMAT_OPENAI_RESPONSES
#define GEMINI SHEAF_FORMAT_GEMINI

#define USER(blocks) "{'role':'user','content':[" blocks "]}"
#define MODEL(blocks) "{'role':'assistant','content':[" blocks "]}"
#define SAYS(text) "{'type':'text','text':'" text "'}"
#define CALLS(id, name, input)                                                                     \
	"{'type':'tool_use','id':'" id "','name':'" name "','input':" input "}"
#define RESULT(id, text) "{'type':'tool_result','tool_use_id':'" id "','content':'" text "'}"

/* ---- Roles --------------------------------------------------------------- */

static void every_role_has_its_words(void **state)
{
	(void)state;
	static const struct {
		const char *message, *want;
	} cases[] = {
		{"'role':'bashExecution','content':[],'command':'ls -l','output':'a\\nb\\n','exitCode':0",
	         "[The user ran a command]\\n$ ls -l\\na\\nb\\n[exit code 0]"},
		{"'role':'bashExecution','content':[],'command':'x','output':'','exitCode':null,'cancelled':true",
	         "[The user ran a command]\\n$ x\\n[no output]\\n[cancelled]"},
		{"'role':'bashExecution','content':[],'command':'x','output':'abc','truncated':true,'exitCode':-3",
	         "[The user ran a command]\\n$ x\\nabc\\n[the output was cut]\\n[exit code -3]"},
		{"'role':'bashExecution','content':[" TEXT("as text") "]",
	         "[The user ran a command]\\nas text"},
		{"'role':'bashExecution','command':'x','content':[" TEXT("more") "]",
	         "[The user ran a command]\\n$ x\\n[no output]\\nmore"},
		{"'role':'bashExecution','command':'x','content':[" TEXT("") "]",
	         "[The user ran a command]\\n$ x\\n[no output]"},
		{"'role':'bashExecution','command':'x','content':[" TEXT("") "," TEXT("more") "]",
	         "[The user ran a command]\\n$ x\\n[no output]\\nmore"},
		{"'role':'custom','content':'just this'", "just this"},
		{"'role':'branchSummary','content':[],'summary':'went \\u0041way'",
	         "This conversation went another way and came back to this point. In short, what "
	         "happened there:\\n\\n<summary>\\nwent Away\\n</summary>"},
		{"'role':'compactionSummary','content':[" TEXT("a") "," TEXT("b") "]",
	         "The earlier part of this conversation is not shown. In short, it was this:\\n\\n"
	         "<summary>\\na\\nb\\n</summary>"},
		{"'role':'system','content':'be brief'", "[system message]\\nbe brief"},
		{"'role':'developer','content':'be brief'", "[developer message]\\nbe brief"},
	};
	sheaf_render_options how = how_to(ANTHROPIC);
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		kit k;
		char body[1024], want[1024];
		kit_open(&k);
		say(&k, "user", TEXT("1"));
		(void)snprintf(body, sizeof(body), "{'message':{%s}}", cases[i].message);
		(void)snprintf(want, sizeof(want), "[" USER(SAYS("1") "," SAYS("%s")) "]",
		               cases[i].want);
		kit_json(&k, "message", "x", body);
		sees_noted(&k, &how, "messages", want, SHEAF_NOTE_ROLE, i >= 10);
		kit_close(&k);
	}
}

static void what_says_nothing_is_left_out(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"'role':'bashExecution','content':[],'command':'ls','excludeFromContext':true",
		"'role':'bashExecution','content':[],'exitCode':0",
		"'role':'branchSummary','content':[]",
		"'role':'custom','content':[],'data':1",
		"'role':'system','content':' \\u00a0\\u3000'",
		"'role':'user','content':' \\n\\t\\u2003'",
		"'role':'assistant','content':[" THOUGHT("t", "s") "]",
		"'role':'assistant','content':[{'type':'what','what':1}]",
	};
	sheaf_render_options how = how_to(ANTHROPIC);
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		kit k;
		char body[1024];
		sheaf_request *q = NULL;
		kit_open(&k);
		(void)snprintf(body, sizeof(body), "{'message':{%s}}", cases[i]);
		kit_json(&k, "message", "x", body);
		const sheaf_context *c = kit_context(&k, NULL);
		if (sheaf_render(&q, c, &how, &k.err) != SHEAF_CONTEXT)
			fail_msg("case %zu", i);
		assert_null(q);
		assert_int_equal(k.err.code, SHEAF_CONTEXT);
		sheaf_context_free(c);
		say(&k, "user", TEXT("1"));
		q = rendered(&k, &how);
		member_is(q, "messages", "[" USER(SAYS("1")) "]");
		sheaf_request_free(q);
		kit_close(&k);
	}
}

static void the_context_has_items_of_its_own(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(ANTHROPIC);
	kit_open(&k);
	kit_script(&k, "u1=u:old a1=a:older u2=u:kept");
	assert_int_equal(kit_compact(&k, "x", "short", "u2"), 0);
	kit_json(&k, "branch_summary", "b",
	         "{'branch_summary':{'summary':'aside','from_id':null}}");
	kit_json(&k, "custom", "c",
	         "{'custom':{'custom_type':'t','in_context':true,'content':'note'}}");
	sees(&k, &how, "messages",
	     "[" USER(SAYS(
		     "The earlier part of this conversation is not shown. In short, it was this:"
		     "\\n\\n<summary>\\nshort\\n</summary>") "," SAYS("kept") "," SAYS("This conversation went another way and came back to this point. In short, what "
	                                                                               "happened there:\\n\\n<summary>\\naside\\n</summary>") "," SAYS("note")) "]");
	kit_close(&k);
}

/* ---- System messages ----------------------------------------------------- */

static void system_messages_go_where_they_may(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	say(&k, "system", TEXT("first"));
	say(&k, "developer", TEXT("second") "," TEXT("third"));
	say(&k, "user", TEXT("1"));
	say(&k, "developer", TEXT("later"));
	sheaf_render_options how = how_to(ANTHROPIC);
	const sheaf_system system = {.text = SHEAF_STR("given")};
	how.system = &system;
	how.system_count = 1;
	sheaf_request *q = rendered(&k, &how);
	member_is(q, "system", "[" SAYS("given") "," SAYS("first") "," SAYS("second\\nthird") "]");
	member_is(q, "messages", "[" USER(SAYS("1") "," SAYS("[developer message]\\nlater")) "]");
	assert_int_equal(notes_of(q, SHEAF_NOTE_ROLE), 1);
	sheaf_request_free(q);
	how = how_to(CHAT);
	sees(&k, &how, "messages",
	     "[{'role':'system','content':'first'},{'role':'developer','content':[" SAYS(
		     "second") "," SAYS("third") "]},{'role':'user','content':'1'},"
	                                         "{'role':'developer','content':'later'}]");
	kit_close(&k);
}

/* What was written for another provider's model is shown, but does not rule. */
/* With an image it is no system text, and not lost either. */
static void system_messages_with_images_are_shown(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(ANTHROPIC);
	kit_open(&k);
	say(&k, "system", TEXT("look") "," PNG);
	sees_noted(&k, &how, "messages",
	           "[" USER(SAYS("[system message]\\nlook") ",{'type':'image','source':"
	                                                    "{'type':'base64','media_type':"
	                                                    "'image/png','data':'AAAA'}}") "]",
	           SHEAF_NOTE_ROLE, 1);
	kit_close(&k);
}

/* Opaque parts go back where their kind may stand, and nowhere else. */
static void opaque_parts_stand_where_they_may(void **state)
{
	(void)state;
	static const struct {
		int32_t format;
		const char *role, *raw;
		size_t dropped;
	} cases[] = {
		{ANTHROPIC, "user", "{'type':'container_upload','file_id':'f'}", 0},
		{ANTHROPIC, "assistant", "{'type':'container_upload','file_id':'f'}", 1},
		{ANTHROPIC, "user", "{'type':'server_tool_use','id':'s','name':'x','input':{}}", 1},
		{ANTHROPIC, "assistant",
	         "{'type':'server_tool_use','id':'s','name':'x','input':{}}", 0},
		{ANTHROPIC, "assistant", "{'type':'tool_use','id':'s','name':'x','input':{}}", 1},
		{ANTHROPIC, "user", "{'a':1}", 1},
		{SHEAF_FORMAT_OPENAI_CHAT, "user", "{'type':'refusal','refusal':'no'}", 1},
		{SHEAF_FORMAT_OPENAI_CHAT, "user",
	         "{'type':'input_audio','input_audio':{'data':'AAAA','format':'wav'}}", 0},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		kit k;
		char parts[1024];
		sheaf_render_options how = how_to(cases[i].format);
		kit_open(&k);
		(void)snprintf(parts, sizeof(parts),
		               TEXT("x") ",{'type':'opaque','opaque':{'provider':'%s','raw':%s}}",
		               sheaf_format_name(cases[i].format), cases[i].raw);
		say(&k, "user", TEXT("1"));
		say(&k, cases[i].role, parts);
		sheaf_request *q = rendered(&k, &how);
		if (notes_of(q, SHEAF_NOTE_FOREIGN_PART) != cases[i].dropped)
			fail_msg("case %zu", i);
		sheaf_request_free(q);
		kit_close(&k);
	}
}

static void imported_system_messages_are_only_shown(void **state)
{
	(void)state;
	static const struct {
		const char *members;
		bool chat, anthropic;
	} cases[] = {
		{"", true, true},
		{",'origin':{'format':'codex'}", true, false},
		{",'origin':{'format':'openai-responses'}", true, false},
		{",'origin':{'format':'claude-code','line':3}", false, true},
		{",'origin':{'format':'anthropic'}", false, true},
		{",'origin':{'format':'gemini-cli'}", false, false},
		{",'origin':{'format':'pi'}", false, false},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		kit k;
		char body[256];
		kit_open(&k);
		(void)snprintf(body, sizeof(body),
		               "{'message':{'role':'system','content':'rule'}%s}",
		               cases[i].members);
		kit_json(&k, "message", "x", body);
		say(&k, "user", TEXT("1"));
		sheaf_render_options how = how_to(CHAT);
		sheaf_request *q = rendered(&k, &how);
		assert_int_equal(notes_of(q, SHEAF_NOTE_ROLE), !cases[i].chat);
		sheaf_request_free(q);
		how = how_to(ANTHROPIC);
		q = rendered(&k, &how);
		assert_int_equal(notes_of(q, SHEAF_NOTE_ROLE), !cases[i].anthropic);
		assert_int_equal(json_member_bytes(q->body, "system").ptr != NULL,
		                 cases[i].anthropic);
		sheaf_request_free(q);
		kit_close(&k);
	}
}

/* ---- Calls --------------------------------------------------------------- */

static void ids_are_plain_and_unique(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	say(&k, "user", TEXT("1"));
	for (int i = 0; i < 2; i++) {
		say(&k, "assistant", CALL("same", "x", "{}") "," CALL("a|b", "x", "{}"));
		say(&k, "tool", ANSWER("a|b", "b") "," ANSWER("same", "s"));
	}
	say(&k, "assistant",
	    CALL("", "x", "{}") "," CALL("same", "x", "{}") "," CALL("same", "x", "{}"));
	say(&k, "tool", ANSWER("same", "s1") "," ANSWER("", "e") "," ANSWER("same", "s2"));
	sheaf_render_options how = how_to(ANTHROPIC);
	sees_noted(
		&k, &how, "messages",
		"[" USER(SAYS("1")) "," MODEL(CALLS("same", "x", "{}") "," CALLS("call_76c897ad6b1fd215", "x", "{}")) "," USER(RESULT("call_76c897ad6b1fd215", "b") "," RESULT("same", "s")) "," MODEL(
			CALLS("call_3e5447196d2671b8", "x", "{}") "," CALLS(
				"call_72c15de57169c87d", "x",
				"{}")) "," USER(RESULT("call_72c15de57169c87d",
	                                               "b") "," RESULT("call_3e5447196d2671b8",
	                                                               "s")) "," MODEL(CALLS("call_36b75056f4ff9e60",
	                                                                                     "x",
	                                                                                     "{}") "," CALLS("call_6f7c18b45f4a8d2b",
	                                                                                                     "x",
	                                                                                                     "{}") "," CALLS("call_89146d6ea2371925",
	                                                                                                                     "x",
	                                                                                                                     "{}")) "," USER(RESULT("call_6f7c18b45f4a8d2b",
	                                                                                                                                            "s1") "," RESULT("call_36b75056f4ff9e60",
	                                                                                                                                                             "e") "," RESULT("call_89146d6ea2371925",
	                                                                                                                                                                             "s2")) "]",
		SHEAF_NOTE_RENAMED, 6);
	kit_close(&k);
}

static void names_and_inputs_are_as_a_format_takes_them(void **state)
{
	(void)state;
	static const struct {
		int32_t format;
		const char *call, *want;
		size_t renamed, input;
	} cases[] = {
		{ANTHROPIC, "'name':'a.b c','input':{}", CALLS("1", "a_b_c", "{}"), 1, 0},
		{ANTHROPIC, "'name':'','input':{}", CALLS("1", "_", "{}"), 1, 0},
		{ANTHROPIC, "'name':'1x','input':{}", CALLS("1", "1x", "{}"), 0, 0},
		{ANTHROPIC, "'name':'x','input':[1, 2]", CALLS("1", "x", "{'input':[1, 2]}"), 0, 1},
		{ANTHROPIC, "'name':'x','input':'s'", CALLS("1", "x", "{'input':'s'}"), 0, 1},
		{ANTHROPIC, "'name':'x','input':null", CALLS("1", "x", "{'input':null}"), 0, 1},
		{ANTHROPIC, "'name':'x','input_text':''", CALLS("1", "x", "{}"), 0, 0},
		{ANTHROPIC, "'name':'x'", CALLS("1", "x", "{}"), 0, 0},
		{ANTHROPIC, "'name':'x','input_text':'{\\n}'", CALLS("1", "x", "{\n}"), 0, 0},
		{ANTHROPIC, "'name':'x','input_text':'[\\n]'", CALLS("1", "x", "{'input':[\n]}"), 0,
	         1},
		{ANTHROPIC, "'name':'x','input_text':'{ \\\"a\\\":1,\\n\\\"a\\\":2}'",
	         CALLS("1", "x", "{'input_text':'{ \\'a\\':1,\\n\\'a\\':2}'}"), 0, 1},
		{ANTHROPIC, "'name':'x','input_text':'{no'",
	         CALLS("1", "x", "{'input_text':'{no'}"), 0, 1},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		kit k;
		char part[512], want[512];
		kit_open(&k);
		say(&k, "user", TEXT("1"));
		(void)snprintf(part, sizeof(part), "{'type':'tool_use','tool_use':{'id':'1',%s}}",
		               cases[i].call);
		say(&k, "assistant", part);
		say(&k, "tool", ANSWER("1", "o"));
		(void)snprintf(want, sizeof(want),
		               "[" USER(SAYS("1")) "," MODEL("%s") "," USER(RESULT("1", "o")) "]",
		               cases[i].want);
		sheaf_render_options how = how_to(cases[i].format);
		sheaf_request *q = rendered(&k, &how);
		member_is(q, "messages", want);
		assert_int_equal(notes_of(q, SHEAF_NOTE_RENAMED), cases[i].renamed);
		assert_int_equal(notes_of(q, SHEAF_NOTE_INPUT), cases[i].input);
		sheaf_request_free(q);
		how = how_to(GEMINI);
		sheaf_request_free(rendered(&k, &how));
		kit_close(&k);
	}
}

/* Whoever's message they stand in, calls are the assistant's and none is lost. */
static void calls_in_other_messages(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(ANTHROPIC);
	const sheaf_tool tool = {SHEAF_STR("x"), {NULL, 0}, {NULL, 0}};
	how.tools = &tool;
	how.tool_count = 1;
	kit_open(&k);
	say(&k, "user", TEXT("a") "," CALL("1", "x", "{}") "," TEXT("b"));
	say(&k, "user", ANSWER("1", "o") "," CALL("2", "x", "{}") "," TEXT("c"));
	say(&k, "bashExecution", CALL("3", "x", "{}"));
	say(&k, "assistant", ANSWER("3", "o"));
	sees(&k, &how, "messages",
	     "[" USER(SAYS("a") "," SAYS("b")) "," MODEL(CALLS("1", "x", "{}")) "," USER(RESULT("1", "o") "," SAYS("c")) "," MODEL(CALLS("2", "x", "{}")) "," USER("{'type':'tool_result','tool_use_id':'2','content':'interrupted','is_error':true}") "," MODEL(
		     CALLS("3", "x", "{}")) "," USER(RESULT("3", "o")) "]");
	kit_close(&k);
}

static void a_tool_is_declared_for_calls(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(ANTHROPIC);
	kit_open(&k);
	say(&k, "user", TEXT("1"));
	say(&k, "assistant", CALL("1", "first one", "{}") "," CALL("2", "second", "{}"));
	sees_noted(
		&k, &how, "tools",
		"[{'name':'first_one','description':'Used earlier in this conversation; it is not "
		"available now.','input_schema':{'type':'object'}}]",
		SHEAF_NOTE_TOOLS, 1);
	const sheaf_tool tool = {SHEAF_STR("other"), {NULL, 0}, {NULL, 0}};
	how.tools = &tool;
	how.tool_count = 1;
	sees_noted(&k, &how, "tools", "[{'name':'other','input_schema':{'type':'object'}}]",
	           SHEAF_NOTE_TOOLS, 0);
	kit_close(&k);
}

/* ---- Openings, thinking, images ------------------------------------------ */

static void the_user_opens(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(ANTHROPIC);
	kit_open(&k);
	say(&k, "assistant", TEXT("Welcome"));
	say(&k, "user", TEXT("1"));
	sees_noted(&k, &how, "messages",
	           "[" USER(SAYS("(The conversation begins.)")) "," MODEL(SAYS("Welcome")) "," USER(
			   SAYS("1")) "]",
	           SHEAF_NOTE_OPENING, 1);
	how = how_to(CHAT);
	sees(&k, &how, "messages",
	     "[{'role':'assistant','content':'Welcome'},{'role':'user','content':'1'}]");
	kit_close(&k);
}

static void thinking_goes_back_to_who_thought(void **state)
{
	(void)state;
	static const struct {
		const char *members, *thought;
		bool kept;
	} cases[] = {
		{"", THOUGHT("t", "s"), true},
		{"'provider':'anthropic','model':'m',", THOUGHT("t", "s"), true},
		{"'provider':'anthropic','model':'n',", THOUGHT("t", "s"), false},
		{"'provider':'openai',", THOUGHT("t", "s"), false},
		{"'provider':'anthropic','model':'m',",
	         "{'type':'thinking','thinking':{'text':'t'}}", false},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		kit k;
		char parts[512];
		sheaf_render_options how = how_to(ANTHROPIC);
		kit_open(&k);
		say(&k, "user", TEXT("1"));
		(void)snprintf(parts, sizeof(parts), "%s," TEXT("a") ",%s", cases[i].thought,
		               cases[i].thought);
		say_as(&k, "assistant", cases[i].members, parts);
		say(&k, "user", TEXT("2") "," THOUGHT("not mine", "s"));
		/* What a message ends in is no thinking. */
		sees_noted(
			&k, &how, "messages",
			cases[i].kept
				? "[" USER(SAYS("1")) "," MODEL(
					  "{'type':'thinking','thinking':'t',"
					  "'signature':'s'}," SAYS("a")) "," USER(SAYS("2")) "]"
				: "[" USER(SAYS("1")) "," MODEL(SAYS("a")) "," USER(SAYS("2")) "]",
			SHEAF_NOTE_FOREIGN_THINKING, cases[i].kept ? 2 : 3);
		how.thinking_as_text = 1;
		if (!cases[i].kept)
			sees_noted(&k, &how, "messages",
			           "[" USER(SAYS("1")) "," MODEL(SAYS("t") "," SAYS("a") "," SAYS(
					   "t")) "," USER(SAYS("2")) "]",
			           SHEAF_NOTE_THINKING_TEXT, 2);
		kit_close(&k);
	}
}

static void images_stand_where_they_may(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(ANTHROPIC);
	const sheaf_tool tool = {SHEAF_STR("x"), {NULL, 0}, {NULL, 0}};
	how.tools = &tool;
	how.tool_count = 1;
	kit_open(&k);
	say(&k, "user",
	    "{'type':'image','image':{'source':{'type':'base64','media_type':"
	    "'image/tiff','data':'AAAA'}}}," TEXT("1"));
	say(&k, "assistant", PNG "," CALL("a", "x", "{}") "," CALL("b", "x", "{}"));
	say(&k, "tool",
	    "{'type':'tool_result','tool_result':{'tool_use_id':'b','content':[" PNG
	    "," TEXT("t") ",{'type':'w'}]}}");
	say(&k, "tool", ANSWER("a", "o"));
	sees_noted(
		&k, &how, "messages",
		"[" USER(SAYS("[image, image/tiff: not shown]") "," SAYS("1")) "," MODEL(
			SAYS("[image, image/png: not shown]") "," CALLS("a", "x", "{}") "," CALLS(
				"b", "x",
				"{}")) "," USER("{'type':'tool_result','tool_use_id':'b','content':[{'type':'image','source':"
	                                        "{'type':'base64','media_type':'image/png','data':'AAAA'}}," SAYS(
							"t") "]}," RESULT("a", "o")) "]",
		SHEAF_NOTE_STAND_IN, 2);
	/* Where a result holds no image, it follows when all results are there. */
	how = how_to(CHAT);
	sheaf_request *q = rendered(&k, &how);
	assert_int_equal(notes_of(q, SHEAF_NOTE_MOVED), 1);
	assert_non_null(strstr(q->body.ptr, "[from the result of x b]"));
	const char *second = strstr(q->body.ptr, "\"tool_call_id\":\"a\"");
	assert_true(second != NULL && second < strstr(q->body.ptr, "[from the result of x b]"));
	sheaf_request_free(q);
	how.no_images = 1;
	q = rendered(&k, &how);
	assert_int_equal(notes_of(q, SHEAF_NOTE_MOVED), 0);
	assert_int_equal(notes_of(q, SHEAF_NOTE_STAND_IN), 3);
	sheaf_request_free(q);
	kit_close(&k);
}

/* ---- Options ------------------------------------------------------------- */

static void fails(kit *k, const sheaf_render_options *how, int code)
{
	const sheaf_context *c = kit_context(k, NULL);
	sheaf_request *q = (sheaf_request *)(void *)&q;
	assert_int_equal(sheaf_render(&q, c, how, &k->err), code);
	assert_int_equal(k->err.code, code);
	assert_true(k->err.message[0] != '\0');
	assert_null(q);
	sheaf_context_free(c);
}

static void options_are_looked_at_first(void **state)
{
	(void)state;
	kit k;
	sheaf_tool tools[2] = {{SHEAF_STR("x"), {NULL, 0}, {NULL, 0}},
	                       {SHEAF_STR("x"), {NULL, 0}, {NULL, 0}}};
	kit_open(&k);
	say(&k, "user", TEXT("1"));
	sheaf_render_options how = how_to(9);
	fails(&k, &how, SHEAF_INVALID);
	fails(&k, NULL, SHEAF_INVALID);
	how = how_to(ANTHROPIC);
	how.size = 4;
	fails(&k, &how, SHEAF_INVALID);
#define TRY(change)                                                                                \
	how = how_to(ANTHROPIC);                                                                   \
	change;                                                                                    \
	fails(&k, &how, SHEAF_INVALID)
	TRY(how.model.len = 0);
	TRY(how.cache = 4);
	TRY(how.cache = -1);
	TRY(how.static_ttl = 60);
	TRY(how.message_ttl = 60);
	TRY((how.static_ttl = 300, how.message_ttl = 3600));
	TRY(how.extra = SHEAF_STR("[]"));
	TRY(how.extra = SHEAF_STR("{"));
	TRY((how.tools = tools, how.tool_count = 2));
	tools[1].name = SHEAF_STR("a.b");
	TRY((how.tools = tools, how.tool_count = 2));
	tools[1].name = SHEAF_STR("y");
	tools[1].schema = SHEAF_STR("true");
	TRY((how.tools = tools, how.tool_count = 2));
#undef TRY
	how = how_to(ANTHROPIC);
	how.bytes_max = 40;
	fails(&k, &how, SHEAF_TOO_LARGE);
	/* The model of the path serves when none is given. */
	kit_json(&k, "model_change", "mc",
	         "{'model_change':{'provider':'p','model_id':'the-one'}}");
	how = how_to(ANTHROPIC);
	how.model = (sheaf_str){NULL, 0};
	sees(&k, &how, "model", "'the-one'");
	kit_close(&k);
}

static void formats_have_names(void **state)
{
	(void)state;
	static const char *const names[] = {"anthropic", "openai-chat", "openai-responses",
	                                    "gemini"};
	static const char *const providers[] = {"anthropic", "openai", "openai", "google"};
	for (int32_t i = 1; i <= 4; i++) {
		assert_string_equal(sheaf_format_name(i), names[i - 1]);
		assert_string_equal(sheaf_format_provider(i), providers[i - 1]);
		assert_int_equal(sheaf_format_named(sheaf_str_of(names[i - 1])), i);
	}
	assert_null(sheaf_format_name(0));
	assert_null(sheaf_format_provider(5));
	assert_int_equal(sheaf_format_named(SHEAF_STR("gemin")), 0);
}

static void paths_name_the_model_where_they_must(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	say(&k, "user", TEXT("1"));
	sheaf_render_options how = how_to(GEMINI);
	how.model = SHEAF_STR("a/b.c d");
	sheaf_request *q = rendered(&k, &how);
	kit_str(q->path, "/v1beta/models/a%2Fb.c%20d:generateContent");
	sheaf_request_free(q);
	how.stream = 1;
	how.model = SHEAF_STR("m");
	q = rendered(&k, &how);
	kit_str(q->path, "/v1beta/models/m:streamGenerateContent?alt=sse");
	sheaf_request_free(q);
	kit_close(&k);
}

/* ---- Memory -------------------------------------------------------------- */

static void history_of_everything(kit *k)
{
	say(k, "system", TEXT("s"));
	say(k, "assistant", TEXT("hello"));
	say(k, "bashExecution", TEXT("x"));
	kit_json(
		k, "message", "bash",
		"{'message':{'role':'bashExecution','content':[],'command':'a\\nb','output':'o'}}");
	say(k, "assistant",
	    THOUGHT("t",
	            "s") ",{'type':'text','text':{'content':'b','ext':{'format':'anthropic',"
	                 "'citations':[]}}}," CALL(
				 "a|b", "x y",
				 "[1]") "," PNG
	                                ",{'type':'tool_use','tool_use':{'id':'t','name':'x','input_text':'{'}},"
	                                "{'type':'opaque','opaque':{'provider':'anthropic','raw':{'type':"
	                                "'server_tool_use','id':'q'}}}");
	say(k, "tool",
	    "{'type':'tool_result','tool_result':{'tool_use_id':'t','content':[" PNG
	    "," TEXT("t") "]}}");
	say(k, "user", ANSWER("a|b", "o") "," TEXT("go on"));
}

static void memory_runs_out(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	history_of_everything(&k);
	const sheaf_context *c = kit_context(&k, NULL);
	for (int32_t format = 1; format <= 4; format++) {
		sheaf_render_options how = how_to(format);
		sheaf_request *want = NULL, *q = NULL;
		how.cache = SHEAF_CACHE_FULL;
		how.extra = SHEAF_STR("{\"x\":1}");
		assert_int_equal(sheaf_render(&want, c, &how, &k.err), 0);
		assert_valid(format, want->body);
		fail_alloc_install();
		for (size_t n = 1;; n++) {
			fail_alloc_at(n, n % 2 == 0);
			int rc = sheaf_render(&q, c, &how, &k.err);
			if (!fail_alloc_hit()) {
				assert_int_equal(rc, 0);
				break;
			}
			assert_int_equal(rc, SHEAF_NOMEM);
			assert_int_equal(k.err.code, SHEAF_NOMEM);
			assert_null(q);
			assert_int_equal(fail_alloc_live(), 0);
		}
		assert_true(str_eq(q->body, want->body));
		sheaf_request_free(q);
		assert_int_equal(fail_alloc_live(), 0);
		fail_alloc_remove();
		sheaf_request_free(want);
	}
	sheaf_request_free(NULL);
	sheaf_context_free(c);
	kit_close(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_role_has_its_words),
		cmocka_unit_test(what_says_nothing_is_left_out),
		cmocka_unit_test(the_context_has_items_of_its_own),
		cmocka_unit_test(system_messages_go_where_they_may),
		cmocka_unit_test(system_messages_with_images_are_shown),
		cmocka_unit_test(opaque_parts_stand_where_they_may),
		cmocka_unit_test(imported_system_messages_are_only_shown),
		cmocka_unit_test(ids_are_plain_and_unique),
		cmocka_unit_test(names_and_inputs_are_as_a_format_takes_them),
		cmocka_unit_test(calls_in_other_messages),
		cmocka_unit_test(a_tool_is_declared_for_calls),
		cmocka_unit_test(the_user_opens),
		cmocka_unit_test(thinking_goes_back_to_who_thought),
		cmocka_unit_test(images_stand_where_they_may),
		cmocka_unit_test(options_are_looked_at_first),
		cmocka_unit_test(formats_have_names),
		cmocka_unit_test(paths_name_the_model_where_they_must),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
