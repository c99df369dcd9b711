/* Messages as they are read back. */
#include "message_test.h"

static void reads_every_part(void **state)
{
	(void)state;
	const sheaf_usage usage = {1, 2, 3, 4, 5, UINT64_MAX};
	sheaf_message *m = sheaf_message_new("assistant");
	assert_code(0, sheaf_message_thinking(m, S("h\"m"), S("sig"), 1));
	assert_code(0, sheaf_message_text(m, S("a\nb")));
	assert_code(0, sheaf_message_signature(m, S("s1")));
	assert_code(0, sheaf_message_tool_use(m, S("c1"), S("read"), S("{\"]\":\"}\\\"\"}")));
	assert_code(0, sheaf_message_tool_result(m, S("c1"), S("read"), S("out"), 1));
	assert_code(0, sheaf_message_tool_result_begin(m, S("c4"), NONE, -1));
	assert_code(0, sheaf_message_text(m, S("x")));
	assert_code(0, sheaf_message_image(m, S("base64"), S("image/png"), S("AAAA")));
	assert_code(0, sheaf_message_tool_result_end(m));
	assert_code(0, sheaf_message_document(m, S("url"), S("a/b"), S("http://x")));
	assert_code(0, sheaf_message_provider(m, S("p")));
	assert_code(0, sheaf_message_model(m, S("m")));
	assert_code(0, sheaf_message_response_id(m, S("r")));
	assert_code(0, sheaf_message_stop_reason(m, S("s")));
	assert_code(0, sheaf_message_usage(m, &usage));
	reading r = read_back(finished(m));
	const sheaf_message_view *v = r.view;
	assert_str(v->json, finished(m));
	assert_str(v->role, S("assistant"));
	assert_str(v->provider, S("p"));
	assert_str(v->model, S("m"));
	assert_str(v->response_id, S("r"));
	assert_str(v->stop_reason, S("s"));
	assert_memory_equal(v->usage, &usage, sizeof(usage));
	assert_int_equal(v->part_count, 6);
	assert_int_equal(v->parts[0]->kind, SHEAF_PART_THINKING);
	assert_str(v->parts[0]->text, S("h\"m"));
	assert_str(v->parts[0]->signature, S("sig"));
	assert_int_equal(v->parts[0]->redacted, 1);
	assert_str(v->parts[1]->text, S("a\nb"));
	assert_str(v->parts[1]->signature, S("s1"));
	assert_str(v->parts[2]->id, S("c1"));
	assert_str(v->parts[2]->name, S("read"));
	assert_str(v->parts[2]->input, S("{\"]\":\"}\\\"\"}"));
	assert_str(v->parts[3]->tool_use_id, S("c1"));
	assert_str(v->parts[3]->tool_name, S("read"));
	assert_str(v->parts[3]->text, S("out"));
	assert_int_equal(v->parts[3]->is_error, 1);
	assert_null(v->parts[3]->parts);
	assert_int_equal(v->parts[4]->is_error, -1);
	assert_int_equal(v->parts[4]->part_count, 2);
	assert_str(v->parts[4]->text, NONE);
	assert_str(v->parts[4]->parts[0]->text, S("x"));
	assert_str(v->parts[4]->parts[0]->json,
	           S("{\"type\":\"text\",\"text\":{\"content\":\"x\"}}"));
	assert_str(v->parts[4]->parts[1]->media_type, S("image/png"));
	assert_str(v->parts[4]->parts[1]->data, S("AAAA"));
	assert_int_equal(v->parts[5]->kind, SHEAF_PART_DOCUMENT);
	assert_str(v->parts[5]->source_type, S("url"));
	reading_free(&r);
	sheaf_message_free(m);
}

static void reads_what_it_does_not_know(void **state)
{
	(void)state;
	sheaf_str json = S("{\"c\\u006fntent\": [ 1 ,{\"type\":\"new\",\"new\":{ } } , \"s\",{},"
	                   "{\"type\":\"text\"},{\"type\":\"text\",\"text\":\"flat\"},"
	                   "{\"type\":\"tool_use\",\"tool_use\":[]},"
	                   "{\"type\":\"tool_result\",\"tool_result\":{\"content\":["
	                   "{\"type\":\"tool_result\",\"tool_result\":{\"content\":[[]]}},[]]}} ],"
	                   "\"role\":\"user\",\"usage\":{\"input\":-1,\"output\":2}}");
	reading r = read_back(json);
	const sheaf_message_view *v = r.view;
	static const char *const spans[] = {"1", "{\"type\":\"new\",\"new\":{ } }", "\"s\"", "{}",
	                                    "{\"type\":\"text\"}"};
	assert_int_equal(v->part_count, 8);
	for (size_t i = 0; i < COUNT_OF(spans); i++) {
		assert_int_equal(v->parts[i]->kind, SHEAF_PART_OTHER);
		assert_str(v->parts[i]->json, sheaf_str_of(spans[i]));
	}
	assert_int_equal(v->parts[5]->kind, SHEAF_PART_TEXT);
	assert_str(v->parts[5]->text, S("flat"));
	assert_int_equal(v->parts[6]->kind, SHEAF_PART_OTHER);
	assert_int_equal(v->parts[7]->part_count, 2);
	assert_int_equal(v->parts[7]->parts[0]->kind, SHEAF_PART_OTHER);
	assert_null(v->parts[7]->parts[0]->parts);
	assert_str(v->parts[7]->parts[1]->json, S("[]"));
	assert_int_equal(v->usage->input, 0);
	assert_int_equal(v->usage->output, 2);
	reading_free(&r);
	r = read_back(S("{\"role\":\"user\",\"content\":\"a\\nb\"}"));
	assert_int_equal(r.view->part_count, 1);
	assert_int_equal(r.view->parts[0]->kind, SHEAF_PART_TEXT);
	assert_str(r.view->parts[0]->text, S("a\nb"));
	assert_null(r.view->usage);
	reading_free(&r);
	arena *a = arena_new();
	json_doc *doc = NULL;
	sheaf_message_view *view = NULL;
	assert_code(0, json_parse(&doc, S("[]"), NULL));
	assert_code(SHEAF_FORMAT, message_read(&view, json_root(doc), S("[]"), a, NULL));
	json_free(doc);
	arena_free(a);
}

static void joins_texts(void **state)
{
	(void)state;
	char out[16];
	sheaf_message *m = sheaf_message_new("user");
	assert_code(0, sheaf_message_text(m, S("abé")));
	assert_code(0, sheaf_message_image(m, S("url"), NONE, S("u")));
	assert_code(0, sheaf_message_text(m, S("cd")));
	reading r = read_back(finished(m));
	assert_int_equal(sheaf_message_view_text(r.view, out, sizeof(out)), 7);
	assert_string_equal(out, "abé\ncd");
	assert_int_equal(sheaf_message_view_text(r.view, out, 8), 7);
	assert_string_equal(out, "abé\ncd");
	assert_int_equal(sheaf_message_view_text(r.view, out, 7), 7);
	assert_string_equal(out, "abé\nc");
	assert_int_equal(sheaf_message_view_text(r.view, out, 5), 7);
	assert_string_equal(out, "abé");
	/* In the middle of a character nothing more is written, not even what would fit. */
	assert_int_equal(sheaf_message_view_text(r.view, out, 4), 7);
	assert_string_equal(out, "ab");
	assert_int_equal(sheaf_message_view_text(r.view, out, 1), 7);
	assert_string_equal(out, "");
	assert_int_equal(sheaf_message_view_text(r.view, NULL, 0), 7);
	assert_int_equal(sheaf_message_view_text(NULL, out, sizeof(out)), 0);
	reading_free(&r);
	sheaf_message_free(m);
}

/* ---- Chance --------------------------------------------------------------- */

#define PARTS 12u

static void random_messages_round_trip(void **state)
{
	(void)state;
	chance c = {3};
	for (int round = 0; round < 2000; round++) {
		char room[PARTS][200];
		sheaf_str texts[PARTS];
		int kinds[PARTS];
		size_t count = chance_below(&c, PARTS);
		sheaf_message *m = sheaf_message_new("assistant");
		for (size_t i = 0; i < count; i++) {
			sheaf_str t = texts[i] = chance_text(&c, room[i], sizeof(room[i]), true);
			kinds[i] = (int)chance_below(&c, 4);
			if (kinds[i] == 0)
				assert_code(0, sheaf_message_text(m, t));
			else if (kinds[i] == 1)
				assert_code(0, sheaf_message_tool_use(m, t, t, t));
			else if (kinds[i] == 2)
				assert_code(0, sheaf_message_tool_result(m, t, t, t, 0));
			else
				assert_code(0, sheaf_message_thinking(m, t, t, 0));
		}
		reading r = read_back(finished(m));
		assert_int_equal(r.view->part_count, count);
		for (size_t i = 0; i < count; i++) {
			const sheaf_part *p = r.view->parts[i];
			assert_str(kinds[i] == 1 ? p->input : p->text, texts[i]);
			assert_code(0, json_check(p->json, JSON_OBJECT, NULL));
			if (kinds[i] == 1)
				assert_str(p->name, texts[i]);
			if (kinds[i] == 3)
				assert_str(p->signature, texts[i]);
		}
		reading_free(&r);
		sheaf_message *again = NULL;
		assert_code(0, sheaf_message_from_json(&again, finished(m), NULL));
		assert_str(finished(again), finished(m));
		sheaf_message_free(again);
		sheaf_message_free(m);
	}
}

/* ---- Memory --------------------------------------------------------------- */

static int read_all(void)
{
	static const char json[] =
		"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":{\"content\":\"a\"}},"
		"{\"type\":\"tool_result\",\"tool_result\":{\"tool_use_id\":\"a\",\"content\":["
		"{\"type\":\"text\",\"text\":\"b\"}]}}],\"usage\":{\"input\":1}}";
	arena *a = arena_new();
	json_doc *doc = NULL;
	sheaf_message_view *view;
	int rc = a != NULL ? json_parse(&doc, S(json), NULL) : SHEAF_NOMEM;
	if (rc == 0)
		rc = message_read(&view, json_root(doc), S(json), a, NULL);
	json_free(doc);
	arena_free(a);
	return rc;
}

/* Content that comes last, or alone, or twice: its bytes are found by different ways. */
static void finds_the_bytes_of_content(void **state)
{
	(void)state;
	static const struct {
		const char *json;
		const char *part;
	} cases[] = {
		{"{\"role\":\"user\",\"content\":[{\"type\":\"a\"}]}", "{\"type\":\"a\"}"},
		{"{ \"content\" : [ {\"type\":\"]}\\\"\"} ] } ", "{\"type\":\"]}\\\"\"}"},
		{"{\"content\":[\"x\"],\"role\":\"user\"}", "\"x\""},
		{"{\"c\\u006fntent\":[1],\"content\":[2]}", "1"},
		{"{\"x\":{\"content\":[7]},\"content\":[[]]}", "[]"},
		{"{\"content\":\"text\"}", "\"text\""},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		reading r = read_back(sheaf_str_of(cases[i].json));
		assert_int_equal(r.view->part_count, 1);
		assert_str(r.view->parts[0]->json, sheaf_str_of(cases[i].part));
		reading_free(&r);
	}
}

static void finds_what_only_a_format_knows(void **state)
{
	(void)state;
	reading r = read_back(
		S("{\"role\":\"user\",\"content\":["
	          "{\"type\":\"text\",\"text\":{\"ext\": {\"format\":\"f\", \"n\":1.0} ,"
	          "\"content\":\"\\\"ext\\\":{}\"}},"
	          "{\"type\":\"text\",\"text\":{\"content\":\"a\",\"ext\":1}},"
	          "{\"type\":\"text\",\"text\":\"flat\",\"ext\":{}}]}"));
	assert_str(r.view->parts[0]->ext, S("{\"format\":\"f\", \"n\":1.0}"));
	assert_str(r.view->parts[1]->ext, NONE);
	assert_str(r.view->parts[2]->ext, NONE);
	reading_free(&r);
}

static void memory_runs_out(void **state)
{
	(void)state;
	each_allocation_fails(read_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_part),
		cmocka_unit_test(reads_what_it_does_not_know),
		cmocka_unit_test(joins_texts),
		cmocka_unit_test(random_messages_round_trip),
		cmocka_unit_test(memory_runs_out),
		cmocka_unit_test(finds_the_bytes_of_content),
		cmocka_unit_test(finds_what_only_a_format_knows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
