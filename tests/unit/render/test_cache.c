/* Cache marks: which strategy puts them where, for how long, and when not at all. */
#include "render_test.h"

#include "sheaf/usage.h"

#define LONG_TEXT 3000 /* bytes: more than a model needs to remember them */

static char filler[LONG_TEXT + 1];

/* A request with tools, system text (two static pieces, one dynamic) and a tool loop. */
static sheaf_request *request(kit *k, sheaf_render_options *how)
{
	static sheaf_system system[3];
	static sheaf_tool tools[2];
	system[0] = (sheaf_system){.text = sheaf_str_of(filler)};
	system[1] = (sheaf_system){.text = SHEAF_STR("today"), .dynamic = 1};
	system[2] = (sheaf_system){.text = SHEAF_STR("static")};
	tools[0] = (sheaf_tool){SHEAF_STR("a"), sheaf_str_of(filler), {NULL, 0}};
	tools[1] = (sheaf_tool){SHEAF_STR("b"), {NULL, 0}, {NULL, 0}};
	how->system = system;
	how->system_count = 3;
	how->tools = tools;
	how->tool_count = 2;
	return rendered(k, how);
}

/* What a mark stands behind: the text before it, back to the last `{"`. */
static void spell_marks(char *out, size_t room, const sheaf_request *q)
{
	size_t used = 0;
	out[0] = '\0';
	for (const char *at = q->body.ptr; (at = strstr(at, "\"cache_control\"")) != NULL; at++) {
		const char *from = at, *end = strchr(at, '}') + 1;
		while (from > q->body.ptr && strncmp(from, "{\"type\":\"t", 10) != 0 &&
		       strncmp(from, "{\"name", 6) != 0)
			from--;
		used += (size_t)snprintf(out + used, room - used, "%s%.*s|%.*s", used ? " " : "",
		                         from[2] == 'n' ? 11 : 22, from, (int)(end - at - 16),
		                         at + 16);
		assert_true(used < room);
	}
	for (char *p = out; (p = strchr(p, '"')) != NULL;)
		*p = '\'';
}

#define HOUR "{'type':'ephemeral','ttl':'1h'}"
#define MINUTES "{'type':'ephemeral'}"
#define AT_TOOL "{'name':'b'|"
#define AT_SYSTEM "{'type':'text','text':|"
#define AT_RESULT "{'type':'tool_result',|"

static void each_strategy_has_its_places(void **state)
{
	(void)state;
	static const struct {
		int32_t cache, static_ttl, message_ttl;
		const char *want;
		size_t count;
	} cases[] = {
		{SHEAF_CACHE_FULL, 0, 0, AT_TOOL HOUR " " AT_SYSTEM HOUR " " AT_RESULT MINUTES, 3},
		{SHEAF_CACHE_SYSTEM, 0, 0, AT_TOOL HOUR " " AT_SYSTEM HOUR, 2},
		{SHEAF_CACHE_MESSAGES, 0, 0, AT_RESULT MINUTES, 1},
		{SHEAF_CACHE_OFF, 0, 0, "", 0},
		{SHEAF_CACHE_FULL, 300, 300,
	         AT_TOOL MINUTES " " AT_SYSTEM MINUTES " " AT_RESULT MINUTES, 3},
		{SHEAF_CACHE_FULL, 3600, 3600, AT_TOOL HOUR " " AT_SYSTEM HOUR " " AT_RESULT HOUR,
	         3},
	};
	kit k;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	say(&k, "assistant", CALL("1", "a", "{}"));
	say(&k, "tool", ANSWER("1", "out"));
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		sheaf_render_options how = how_to(SHEAF_FORMAT_ANTHROPIC);
		char got[1024];
		how.cache = cases[i].cache;
		how.static_ttl = cases[i].static_ttl;
		how.message_ttl = cases[i].message_ttl;
		sheaf_request *q = request(&k, &how);
		spell_marks(got, sizeof(got), q);
		assert_string_equal(got, cases[i].want);
		assert_int_equal(q->mark_count, cases[i].count);
		for (size_t m = 1; m < q->mark_count; m++) {
			assert_true(q->marks[m].ttl <= q->marks[m - 1].ttl);
			assert_true(q->marks[m].place > q->marks[m - 1].place);
			assert_true(q->marks[m].tokens > q->marks[m - 1].tokens);
		}
		/* The static piece that stands last is marked, not the dynamic one. */
		if (cases[i].cache == SHEAF_CACHE_SYSTEM)
			assert_non_null(
				strstr(q->body.ptr, "\"text\":\"static\",\"cache_control\""));
		sheaf_request_free(q);
	}
	kit_close(&k);
}

/* Others remember by themselves. */
static void only_one_format_has_marks(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	for (int32_t format = SHEAF_FORMAT_OPENAI_CHAT; format <= SHEAF_FORMAT_GEMINI; format++) {
		sheaf_render_options how = how_to(format);
		how.cache = SHEAF_CACHE_FULL;
		sheaf_request *q = request(&k, &how);
		assert_null(strstr(q->body.ptr, "cache_control"));
		assert_int_equal(q->mark_count, 0);
		sheaf_request_free(q);
	}
	kit_close(&k);
}

/* The last block of the last user message, whatever its type. */
static void the_last_mark_moves(void **state)
{
	(void)state;
	static const struct {
		const char *parts, *want;
	} cases[] = {
		{TEXT("x"), "{'type':'text','text':'x','cache_control':{'type':'ephemeral'}}"},
		{PNG, "'data':'AAAA'},'cache_control':{'type':'ephemeral'}}"},
		{"{'type':'opaque','opaque':{'provider':'anthropic','raw':{'type':'search_result',"
	         "'cache_control':{'ttl':'1h'}}}}",
	         "{'type':'search_result','cache_control':{'type':'ephemeral'}}"},
	};
	kit k;
	kit_open(&k);
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		sheaf_render_options how = how_to(SHEAF_FORMAT_ANTHROPIC);
		how.cache = SHEAF_CACHE_MESSAGES;
		say(&k, "user", cases[i].parts);
		sheaf_request *q = request(&k, &how);
		char *want = kit_quoted(cases[i].want), got[1024];
		assert_non_null(strstr(q->body.ptr, want));
		free(want);
		spell_marks(got, sizeof(got), q);
		assert_int_equal(q->mark_count, 1);
		sheaf_request_free(q);
		say(&k, "assistant", TEXT("y"));
		/* What a model is to go on with is behind it. */
		q = request(&k, &how);
		want = kit_quoted(cases[i].want);
		assert_non_null(strstr(q->body.ptr, want));
		free(want);
		sheaf_request_free(q);
	}
	kit_close(&k);
}

/* A turn of more blocks than a provider looks back over: the mark before is repeated. */
static void a_long_turn_marks_twice(void **state)
{
	(void)state;
	for (size_t calls = 8; calls <= 9; calls++) {
		kit k;
		sheaf_render_options how = how_to(SHEAF_FORMAT_ANTHROPIC);
		how.cache = SHEAF_CACHE_FULL;
		kit_open(&k);
		say(&k, "user", TEXT("go"));
		sheaf_message *m = sheaf_message_new("assistant"), *t = sheaf_message_new("tool");
		sheaf_message_text(m, SHEAF_STR("many"));
		for (size_t i = 0; i < calls; i++) {
			char id[24];
			(void)snprintf(id, sizeof(id), "c%zu", i);
			sheaf_message_tool_use(m, sheaf_str_of(id), SHEAF_STR("a"),
			                       SHEAF_STR("{}"));
			sheaf_message_tool_result(t, sheaf_str_of(id), SHEAF_STR("a"),
			                          SHEAF_STR("o"), 0);
			assert_non_null(sheaf_message_json(m).ptr);
			assert_non_null(sheaf_message_json(t).ptr);
		}
		assert_int_equal(kit_put(&k, k.s, SHEAF_STR("a1"), m), 0);
		assert_int_equal(kit_put(&k, k.s, SHEAF_STR("t1"), t), 0);
		sheaf_request *q = request(&k, &how);
		assert_int_equal(q->mark_count, calls == 8 ? 3 : 4);
		assert_int_equal(strstr(q->body.ptr, "\"text\":\"go\",\"cache_control\"") != NULL,
		                 calls == 9);
		sheaf_request_free(q);
		/* A mark of the caller's own counts, too. */
		how.extra = SHEAF_STR("{\"cache_control\":{\"type\":\"ephemeral\"}}");
		q = request(&k, &how);
		assert_int_equal(q->mark_count, 3);
		sheaf_request_free(q);
		kit_close(&k);
	}
}

/* What is too short for the model is not remembered, and not marked. */
static void short_prefixes_are_not_marked(void **state)
{
	(void)state;
	static const char table[] =
		"{\"format\":\"sheaf-models\",\"version\":1,\"date\":\"2026-01-01\",\"groups\":["
		"{\"provider\":\"anthropic\",\"models\":[{\"model\":\"m\",\"cache_minimum\":%u}]}]}";
	kit k;
	kit_open(&k);
	say(&k, "user", TEXT("go"));
	sheaf_render_options how = how_to(SHEAF_FORMAT_ANTHROPIC);
	how.cache = SHEAF_CACHE_FULL;
	sheaf_request *q = request(&k, &how);
	size_t len = q->body.len;
	assert_int_equal(q->mark_count, 3);
	sheaf_request_free(q);
	q = rendered(
		&k, &(sheaf_render_options){sizeof(how), .format = how.format, .model = how.model});
	assert_int_equal(q->mark_count, 0);
	sheaf_request_free(q);
	for (unsigned minimum = 512; minimum <= 65536; minimum *= 2) {
		char text[512];
		sheaf_models *models = NULL;
		(void)snprintf(text, sizeof(text), table, minimum);
		assert_int_equal(sheaf_models_read(&models, sheaf_str_of(text), &k.err), 0);
		how.models = models;
		q = request(&k, &how);
		/* Tools are half of it, and with the system text it is nearly all of it. */
		assert_int_equal(q->mark_count, len / 4 > minimum        ? 3
		                                : len / 2 > minimum + 64 ? 2
		                                                         : 0);
		sheaf_request_free(q);
		sheaf_models_free(models);
	}
	kit_close(&k);
}

int main(void)
{
	memset(filler, 'x', LONG_TEXT);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_strategy_has_its_places),
		cmocka_unit_test(only_one_format_has_marks),
		cmocka_unit_test(the_last_mark_moves),
		cmocka_unit_test(a_long_turn_marks_twice),
		cmocka_unit_test(short_prefixes_are_not_marked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
