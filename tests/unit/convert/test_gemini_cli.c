/* Gemini CLI's chats: logs that are played back, documents, lists set anew. */
#include "sheaf/usage.h"
#include "unit/convert/hurt_kit.h"
#include "unit/convert/wire_kit.h"

#define LOGS KIT_DATA "gemini-cli/0.61.0/"
#define BEFORE LOGS "before-compress/session-2026-11-14T23-02-caefd898.jsonl"
#define AFTER LOGS "after-compress/session-2026-11-14T23-02-caefd898.jsonl"
#define LOG_ID "gemini-cli.caefd898-195c-44aa-a02f-2f8e07b71f6b"

static const char *const files[] = {
	BEFORE,
	AFTER,
	LOGS "before-compress/session-2026-11-14T23-03-caefd898.jsonl",
	LOGS "after-compress/session-2026-11-14T23-03-caefd898.jsonl",
	LOGS "after-compress/session-2026-11-14T23-04-caefd898.jsonl",
	KIT_DATA "gemini-cli/0.36.0/session-2026-11-14T23-15-befd15e2.json",
	KIT_DATA "gemini-cli/0.20.2/session-2026-11-14T23-07-dc191de4.json",
};

/* Replies in each; tokens are the same in all. */
static const uint64_t replies[] = {9, 11, 0, 0, 0, 5, 7};

static void test_round_trip(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(files); i++)
		kit_round(files[i], "gemini-cli");
}

static void test_usage(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(files); i++) {
		const uint64_t n = replies[i];
		kit k;
		sheaf_usage_report *report;
		kit_open(&k);
		kit_import(&k, files[i]);
		sheaf_session *s = kit_imported(&k, 0);
		assert_int_equal(sheaf_session_usage(&report, s, NULL, &k.err), 0);
		assert_int_equal(report->own.replies, n);
		assert_int_equal(report->own.tokens.input, n * 176);
		assert_int_equal(report->own.tokens.cache_read, n * 1024);
		assert_int_equal(report->own.tokens.output, n * 60);
		assert_int_equal(report->own.tokens.reasoning, n * 10);
		sheaf_usage_report_free(report);
		sheaf_session_close(s);
		kit_import(&k, files[i]);
		assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
		kit_close(&k);
	}
}

static const wire requests[] = {
	{"gemini-gemini-cli-parallel-tools", SHEAF_FORMAT_GEMINI, NULL, "line-24.1", 0, 0, 1, 1, 0},
	{"gemini-gemini-cli-image-result", SHEAF_FORMAT_GEMINI, NULL,
         "aa26a46d-79e7-4cd7-a7d8-2d54634f2449", 0, 0, 1, 1, 0},
};

static void test_wire(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_import(&k, AFTER);
	sheaf_session *s = kit_session(&k, LOG_ID);
	for (size_t i = 0; i < COUNT_OF(requests); i++)
		wire_same(s, &requests[i]);
	sheaf_session_close(s);
	kit_close(&k);
}

/* Files of one session id: the log that grew, and what each resuming leaves behind. */
static void test_directory(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_import(&k, BEFORE);
	kit_import(&k, AFTER);
	assert_int_equal(k.report->session_count, 1);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_GROWN);
	assert_int_equal(kit_try(&k, files[2], NULL), 0);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_NEW);
	assert_int_equal(k.report->problem_total, 0);
	assert_str(k.report->sessions[0]->key.session, LOG_ID "~2");
	sheaf_session *s = kit_session(&k, LOG_ID);
	kit_same(&k, s, "gemini-cli", AFTER);
	sheaf_session_close(s);
	s = kit_session(&k, LOG_ID "~2");
	kit_same(&k, s, "gemini-cli", files[2]);
	sheaf_session_close(s);
	kit_import(&k, AFTER);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
	kit_import(&k, files[2]);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
	assert_int_equal(k.report->problem_total, 0);
	kit_close(&k);
}

/* A log written for a case: JSON with ' for ". */
static sheaf_session *log_import(kit *k, const char *lines, size_t problems)
{
	static const char meta[] = "{'sessionId':'s1','projectHash':'h','startTime':"
				   "'2026-01-01T00:00:00Z','kind':'main'}\n";
	char path[256], text[8192];
	int len = snprintf(text, sizeof(text), "%s%s", meta, lines);
	assert_true(len > 0 && (size_t)len < sizeof(text));
	for (char *p = text; (p = strchr(p, '\'')) != NULL;)
		*p = '"';
	(void)snprintf(path, sizeof(path), "%s/session.jsonl", kit_dir(k));
	file_write(path, text, (size_t)len);
	assert_int_equal(kit_try(k, path, NULL), 0);
	assert_int_equal(k->report->problem_total, problems);
	sheaf_session *s = kit_session(k, "gemini-cli.s1");
	kit_same(k, s, "gemini-cli", path);
	return s;
}

static void check_path(kit *k, sheaf_session *s, const char *ids)
{
	char path[1024];
	kit_path(k, s, path, sizeof(path));
	assert_string_equal(path, ids);
}

#define USER(id, text) "{'id':'" id "','type':'user','content':[{'text':'" text "'}]}\n"
#define REPLY(id, text) "{'id':'" id "','type':'gemini','content':'" text "'}\n"

/* What is taken back stays in the tree; from an id nobody knows on, all is taken back. */
static void test_rewind(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	sheaf_session *s = log_import(&k,
	                              USER("u1", "one") REPLY("a1", "1") USER("u2", "two") REPLY(
					      "a2", "2") "{'$rewindTo':'u2'}\n" USER("u3", "three"),
	                              0);
	check_path(&k, s, "u1 a1 u3");
	sheaf_records *one;
	assert_int_equal(sheaf_session_get(&one, s, SHEAF_STR("a2"), &k.err), 0);
	sheaf_records_free(one);
	sheaf_session_close(s);
	kit_close(&k);

	kit_open(&k);
	s = log_import(&k, USER("u1", "one") "{'$rewindTo':'no'}\n" USER("u2", "two"), 0);
	check_path(&k, s, "u2");
	sheaf_session_close(s);
	kit_close(&k);
	kit_open(&k);
	s = log_import(&k, USER("u1", "one") REPLY("a1", "1") "{'$rewindTo':'a1'}\n", 0);
	check_path(&k, s, "u1");
	sheaf_session_close(s);
	kit_close(&k);
}

/* Written again: calls are added, another text is another version, notices are kept apart. */
static void test_again(void **state)
{
	(void)state;
	static const char call[] =
		"{'id':'a1','type':'gemini','content':'x','tokens':{'input':10,'output':2,"
		"'cached':4,'thoughts':1,'tool':0,'total':13},'toolCalls':[{'id':'c1','name':'ls',"
		"'args':{},'status':'executing'}]}\n"
		"{'id':'a1','type':'gemini','content':'x','tokens':{'input':10,'output':2,"
		"'cached':4,'thoughts':1,'tool':0,'total':13},'toolCalls':[{'id':'c1','name':'ls',"
		"'args':{},'status':'error','result':[{'functionResponse':{'id':'c1','name':'ls',"
		"'response':{'error':'no'}}}]}]}\n"
		"{'id':'r1','type':'user','content':[{'functionResponse':{'id':'c1','name':'ls',"
		"'response':{'error':'no'}}}]}\n";
	kit k;
	char lines[4096];
	sheaf_records *one;
	kit_open(&k);
	(void)snprintf(lines, sizeof(lines), "%s%s%s", USER("u1", "one") REPLY("a1", "x"), call,
	               "{'id':'i1','type':'info','content':'note'}\n" REPLY("a2", "y")
	                       REPLY("a2", "z") REPLY("a1", "late"));
	sheaf_session *s = log_import(&k, lines, 1);
	assert_int_equal(k.report->problems[0]->line, 10);
	check_path(&k, s, "u1 a1 line-4 line-5 i1 a2~2");
	assert_int_equal(sheaf_session_get(&one, s, SHEAF_STR("line-5"), &k.err), 0);
	assert_str(one->items[0]->message->role, "tool");
	assert_int_equal(one->items[0]->message->parts[0]->is_error, 1);
	sheaf_records_free(one);
	assert_int_equal(sheaf_session_get(&one, s, SHEAF_STR("i1"), &k.err), 0);
	assert_int_equal(one->items[0]->kind, SHEAF_KIND_CUSTOM);
	sheaf_records_free(one);
	sheaf_usage_report *used;
	assert_int_equal(sheaf_session_usage(&used, s, NULL, &k.err), 0);
	assert_int_equal(used->own.tokens.input, 6);
	assert_int_equal(used->own.tokens.output, 3);
	sheaf_usage_report_free(used);
	sheaf_session_close(s);
	kit_close(&k);
}

#define SET(list) "{'$set':{'messages':[" list "]}}\n"
#define ITEM(id, text) "{'id':'" id "','type':'user','content':'" text "'}"

/* A list set anew: the same, longer, shorter, another. */
static void test_lists(void **state)
{
	(void)state;
	static const struct {
		const char *lines, *path;
	} cases[] = {
		{SET(ITEM("u1", "a")) SET(ITEM("u1", "a")), "u1"},
		{SET(ITEM("u1", "a")) SET(ITEM("u1", "a") "," ITEM("u2", "b")), "u1 u2"},
		{SET(ITEM("u1", "a") "," ITEM("u2", "b")) SET(ITEM("u1", "a")) USER("u3", "c"),
	         "u1 u3"},
		{SET(ITEM("u1", "a")) SET(ITEM("u2", "b")) USER("u3", "c"), "u1 line-3 u3"},
		{SET(ITEM("u1", "a")) SET(ITEM("u1", "changed")), "u1 line-3"},
		{SET(ITEM("u1", "a")) SET("") USER("u2", "b"), "u2"},
		{USER("u1", "a") "{'$set':{'summary':'A title'}}\n", "u1"},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		kit k;
		kit_open(&k);
		sheaf_session *s = log_import(&k, cases[i].lines, 0);
		check_path(&k, s, cases[i].path);
		if (i == 6) {
			sheaf_head_view *head;
			assert_int_equal(sheaf_session_head(&head, s, &k.err), 0);
			assert_str(head->info->name, "A title");
			sheaf_head_view_free(head);
		}
		sheaf_session_close(s);
		kit_close(&k);
	}
}

static void test_hurt(void **state)
{
	(void)state;
	hurt_file("gemini-cli", AFTER, "session.jsonl", 200);
}

static void test_hurt_document(void **state)
{
	(void)state;
	hurt_file("gemini-cli", files[5], "session.json", 200);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	hurt_memory("gemini-cli", BEFORE, 7);
	hurt_memory("gemini-cli", files[5], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_usage),
		cmocka_unit_test(test_wire),          cmocka_unit_test(test_directory),
		cmocka_unit_test(test_rewind),        cmocka_unit_test(test_again),
		cmocka_unit_test(test_lists),         cmocka_unit_test(test_hurt),
		cmocka_unit_test(test_hurt_document), cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
