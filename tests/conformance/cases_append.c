/* Appending one record: numbers, parents, ids, times, kinds, options. */
#include <stdio.h>
#include <stdlib.h>

#include "suite.h"

CASE(append_text_comes_back)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_appended out = SHEAF_APPENDED_INIT;
	OK(sheaf_session_append_text(s, SHEAF_ROLE_USER, S("Hello"), &out, &t->err));
	EQ(out.seq, 1);
	EQ(out.first_seq, 1);
	EQ(out.existed, 0);
	const sheaf_entry *e = t_get(t, s, out.id);
	EQ(e->kind, SHEAF_KIND_MESSAGE);
	TEXT(e->type, "message");
	TEXT(e->branch, "main");
	CHECK(e->parent_id.ptr == NULL);
	TEXT(e->message->role, "user");
	EQ(e->message->part_count, 1);
	EQ(e->message->parts[0]->kind, SHEAF_PART_TEXT);
	TEXT(e->message->parts[0]->text, "Hello");
	TEXT(e->message->json,
	     "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":{\"content\":\"Hello\"}}]}");
	TEXT(e->body,
	     t_format(t, "\"message\":%.*s", (int)e->message->json.len, e->message->json.ptr));
}

CASE(append_numbers_without_gaps)
{
	sheaf_session *s = t_new(t, "s");
	for (uint64_t i = 1; i <= 50; i++) {
		SAY(s, i % 2 ? "user" : "assistant", t_format(t, "text %d", (int)i));
		EQ(t->out.seq, i);
		EQ(t->out.first_seq, i);
	}
	EQ(t_revision(t, s), 50);
	EQ(t_path(t, s, NULL)->count, 50);
}

CASE(append_hangs_on_the_leaf)
{
	sheaf_session *s = t_new(t, "s");
	LEAF(s, "");
	SAY(s, "user", "1", .id = "u1");
	LEAF(s, "u1");
	SAY(s, "assistant", "2", .id = "a1");
	LEAF(s, "a1");
	SAY(s, "user", "3", .id = "u2");
	const sheaf_records *path = t_path(t, s, NULL);
	IDS(path, "u1 a1 u2");
	TEXT(path->items[1]->parent_id, "u1");
	EQ(path->items[1]->parent_seq, 1);
	TEXT(path->items[2]->parent_id, "a1");
	EQ(path->items[2]->parent_seq, 2);
}

CASE(append_makes_ascending_ids)
{
	sheaf_session *s = t_new(t, "s");
	char before[SHEAF_ID_ROOM] = "";
	for (int i = 0; i < 20; i++) {
		SAY(s, "user", "x");
		EQ(strlen(t->out.id), 36);
		EQ(t->out.id[14], '7');
		CHECK(strcmp(before, t->out.id) < 0);
		snprintf(before, sizeof(before), "%s", t->out.id);
	}
}

CASE(append_takes_any_id)
{
	sheaf_session *s = t_new(t, "s");
	static const char *const ids[] = {"u1",    "U1",   "a b", "é",     "{x}",
	                                  "../..", "100%", "-",   "\"q\"", "back\\slash"};
	size_t n = sizeof(ids) / sizeof(ids[0]);
	for (size_t i = 0; i < n; i++) {
		SAY(s, "user", t_format(t, "text %zu", i), .id = ids[i]);
		CSTR(t->out.id, ids[i]);
		LEAF(s, ids[i]);
	}
	s = t_restart(t, "s");
	const sheaf_records *path = t_path(t, s, NULL);
	EQ(path->count, n);
	for (size_t i = 0; i < n; i++) {
		TEXT(path->items[i]->id, ids[i]);
		TEXT(t_get(t, s, ids[i])->id, ids[i]);
	}
	FAILS(INVALID, TRY_SAY(s, "user", "x", .id = "line\nbreak"));
	FAILS(INVALID, TRY_SAY(s, "user", "x", .id = "\xff"));
}

CASE(append_under_a_given_parent)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	SAY(s, "assistant", "2b", .id = "a2", .parent = "u1");
	LEAF(s, "a2");
	IDS(t_path(t, s, NULL), "u1 a2");
	IDS(t_children(t, s, "u1"), "a1 a2");
	SAY(s, "user", "3", .id = "u3");
	IDS(t_path(t, s, NULL), "u1 a2 u3");
}

CASE(append_under_a_label)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	LABEL(s, "u1", "start");
	SAY(s, "assistant", "2b", .id = "a2", .parent = "start");
	TEXT(t_get(t, s, "a2")->parent_id, "u1");
}

CASE(append_a_new_root)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "user", "other beginning", .id = "r2", .root = 1);
	LEAF(s, "r2");
	IDS(t_path(t, s, NULL), "r2");
	IDS(t_children(t, s, ""), "u1 r2");
	const sheaf_entry *e = t_get(t, s, "r2");
	EQ(e->parent_seq, 0);
	CHECK(e->parent_id.ptr == NULL);
	CHECK(t_contains(e->line, "\"parent_id\":null"));
}

CASE(append_under_a_missing_parent)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	FAILS(NOT_FOUND, TRY_SAY(s, "user", "2", .id = "u2", .parent = "nowhere"));
	EQ(t_revision(t, s), 1);
	LEAF(s, "u1");
}

CASE(append_under_a_fact)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	LABEL(s, "u1", "l");
	const char *fact = t_format(t, "%s", t->out.id);
	FAILS(INVALID, TRY_SAY(s, "user", "2", .id = "u2", .parent = fact));
	EQ(t_revision(t, s), 2);
}

CASE(append_partial_is_dropped)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "hal", .id = "a1", .partial = 1);
	EQ(t->out.seq, 0);
	EQ(t->out.existed, 0);
	EQ(t_revision(t, s), 1);
	LEAF(s, "u1");
	SAY(s, "assistant", "half and whole", .id = "a1"); /* its id was not used up */
	EQ(t->out.seq, 2);
	EQ(t->out.existed, 0);
	IDS(t_path(t, s, NULL), "u1 a1");
}

CASE(append_every_role)
{
	sheaf_session *s = t_new(t, "s");
	static const char *const roles[] = {"system",    "developer",     "user",
	                                    "assistant", "tool",          "bashExecution",
	                                    "custom",    "branchSummary", "compactionSummary"};
	size_t n = sizeof(roles) / sizeof(roles[0]);
	for (size_t i = 0; i < n; i++)
		SAY(s, roles[i], "text");
	const sheaf_records *path = t_path(t, s, NULL);
	EQ(path->count, n);
	for (size_t i = 0; i < n; i++)
		TEXT(path->items[i]->message->role, roles[i]);
}

CASE(append_unknown_role)
{
	sheaf_session *s = t_new(t, "s");
	FAILS(INVALID, TRY_SAY(s, "narrator", "x"));
	FAILS(INVALID, TRY_SAY(s, "", "x"));
	FAILS(INVALID, TRY_SAY(s, "User", "x"));
	FAILS(INVALID,
	      TRY_JSON(s, "message", "{\"message\":{\"role\":\"narrator\",\"content\":[]}}"));
	FAILS(INVALID, TRY_JSON(s, "message", "{\"message\":{\"content\":[]}}"));
	FAILS(INVALID, TRY_JSON(s, "message", "{}"));
	EQ(t_revision(t, s), 0);
}

static void all_parts(sheaf_message *m)
{
	sheaf_message_thinking(m, S("let me see"), S("sig=="), 0);
	sheaf_message_thinking(m, S(""), S("redacted-bytes"), 1);
	sheaf_message_text(m, S("a text"));
	sheaf_message_signature(m, S("text-sig"));
	sheaf_message_image(m, S("base64"), S("image/png"), S("iVBORw0KGgo="));
	sheaf_message_document(m, S("url"), S("application/pdf"), S("https://x.org/a.pdf"));
	sheaf_message_tool_use(m, S("c1"), S("read"), S("{\"b\":1, \"a\": [ ]}"));
	sheaf_message_signature(m, S("call-sig"));
	sheaf_message_tool_result(m, S("c0"), S("ls"), S("out\nput"), 1);
	sheaf_message_tool_result_begin(m, S("c00"), S(NULL), 0);
	sheaf_message_text(m, S("inner"));
	sheaf_message_image(m, S("url"), S("image/gif"), S("https://x.org/a.gif"));
	sheaf_message_tool_result_end(m);
	sheaf_message_opaque(m, S("openai"), S("{\"type\":\"reasoning\",\"n\":1.50}"));
}

static void check_parts(suite *t, const sheaf_message_view *v)
{
	EQ(v->part_count, 9);
	const sheaf_part *const *p = v->parts;
	EQ(p[0]->kind, SHEAF_PART_THINKING);
	TEXT(p[0]->text, "let me see");
	TEXT(p[0]->signature, "sig==");
	EQ(p[1]->redacted, 1);
	TEXT(p[1]->signature, "redacted-bytes");
	EQ(p[2]->kind, SHEAF_PART_TEXT);
	TEXT(p[2]->signature, "text-sig");
	EQ(p[3]->kind, SHEAF_PART_IMAGE);
	TEXT(p[3]->source_type, "base64");
	TEXT(p[3]->media_type, "image/png");
	TEXT(p[3]->data, "iVBORw0KGgo=");
	EQ(p[4]->kind, SHEAF_PART_DOCUMENT);
	TEXT(p[4]->data, "https://x.org/a.pdf");
	EQ(p[5]->kind, SHEAF_PART_TOOL_USE);
	TEXT(p[5]->id, "c1");
	TEXT(p[5]->name, "read");
	TEXT(p[5]->input, "{\"b\":1, \"a\": [ ]}");
	TEXT(p[5]->signature, "call-sig");
	EQ(p[6]->kind, SHEAF_PART_TOOL_RESULT);
	TEXT(p[6]->tool_use_id, "c0");
	TEXT(p[6]->tool_name, "ls");
	TEXT(p[6]->text, "out\nput");
	EQ(p[6]->is_error, 1);
	EQ(p[7]->is_error, 0);
	EQ(p[7]->part_count, 2);
	TEXT(p[7]->parts[0]->text, "inner");
	EQ(p[7]->parts[1]->kind, SHEAF_PART_IMAGE);
	EQ(p[8]->kind, SHEAF_PART_OPAQUE);
	TEXT(p[8]->provider, "openai");
	TEXT(p[8]->raw, "{\"type\":\"reasoning\",\"n\":1.50}");
}

CASE(append_every_part)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_message *m = sheaf_message_new("assistant");
	all_parts(m);
	sheaf_usage u = {1, 2, 3, 4, 5, 6};
	sheaf_message_provider(m, S("anthropic"));
	sheaf_message_model(m, S("claude-x"));
	sheaf_message_response_id(m, S("msg_1"));
	sheaf_message_stop_reason(m, S("tool_use"));
	sheaf_message_usage(m, &u);
	sheaf_str json = sheaf_message_json(m);
	char *copy = t_format(t, "%.*s", (int)json.len, json.ptr);
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("a1");
	int rc = sheaf_session_append_message(s, m, &e, NULL, NULL, &t->err);
	sheaf_message_free(m);
	EQ(rc, 0);
	for (int round = 0; round < 2; round++) {
		const sheaf_message_view *v = t_get(t, s, "a1")->message;
		check_parts(t, v);
		TEXT(v->json, copy);
		TEXT(v->provider, "anthropic");
		TEXT(v->model, "claude-x");
		TEXT(v->response_id, "msg_1");
		TEXT(v->stop_reason, "tool_use");
		CHECK(v->usage && memcmp(v->usage, &u, sizeof(u)) == 0);
		s = t_restart(t, "s");
	}
}

CASE(append_not_said_is_error)
{
	sheaf_session *s = t_new(t, "s");
	CALL(s, "c1", "ls", .id = "a1");
	ANSWER(s, "c1", "fine", .id = "t1");
	const sheaf_part *p = t_get(t, s, "t1")->message->parts[0];
	EQ((uint32_t)p->is_error, (uint32_t)-1);
	CHECK(!t_contains(p->json, "is_error"));
}

CASE(append_model_change)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("mc");
	OK(sheaf_session_append_model_change(s, S("openai"), S("gpt-4o"), &e, NULL, NULL, &t->err));
	LEAF(s, "mc");
	const sheaf_entry *got = t_get(t, s, "mc");
	EQ(got->kind, SHEAF_KIND_MODEL_CHANGE);
	TEXT(got->provider, "openai");
	TEXT(got->model, "gpt-4o");
	TEXT(got->body, "\"model_change\":{\"provider\":\"openai\",\"model_id\":\"gpt-4o\"}");
	IDS(t_path(t, s, NULL), "u1 mc");
}

CASE(append_thinking_level)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("tl");
	OK(sheaf_session_append_thinking_level(s, S("high"), &e, NULL, NULL, &t->err));
	const sheaf_entry *got = t_get(t, s, "tl");
	EQ(got->kind, SHEAF_KIND_THINKING_LEVEL);
	TEXT(got->text, "high");
	TEXT(got->body, "\"thinking_level\":{\"thinking_level\":\"high\"}");
	LEAF(s, "tl");
}

CASE(append_custom)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("cu");
	OK(sheaf_session_append_custom(s, S("my.ext"), S("{\"z\":1,\"a\":[1.0]}"), &e, NULL, NULL,
	                               &t->err));
	e.id = S("cn");
	OK(sheaf_session_append_custom(s, S("bare"), S(NULL), &e, NULL, NULL, &t->err));
	const sheaf_entry *got = t_get(t, s, "cu");
	EQ(got->kind, SHEAF_KIND_CUSTOM);
	TEXT(got->text, "my.ext");
	TEXT(got->data, "{\"z\":1,\"a\":[1.0]}");
	TEXT(t_get(t, s, "cn")->text, "bare");
	LEAF(s, "cn");
	ITEMS(t_context(t, s), "");
	FAILS(INVALID,
	      sheaf_session_append_custom(s, S("x"), S("{broken"), NULL, NULL, NULL, &t->err));
}

CASE(append_custom_text)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("cu");
	OK(sheaf_session_append_custom_text(s, S("note"), S("mind the gap"), &e, NULL, NULL,
	                                    &t->err));
	EQ(t_get(t, s, "cu")->kind, SHEAF_KIND_CUSTOM);
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "X(mind the gap)");
	TEXT(c->items[0]->message->role, "user");
	TEXT(c->items[0]->entry->id, "cu");
}

CASE(append_json_keeps_unknown_members)
{
	sheaf_session *s = t_new(t, "s");
	const char *body =
		"{\"message\":{\"role\":\"user\",\"x\":{\"b\":1,\"a\":2},\"content\":[]},"
		"\"turn\":\"t1\",\"zeta\":[1,2],\"alpha\":null}";
	JSON(s, "message", body, .id = "u1");
	const sheaf_entry *e = t_get(t, s, "u1");
	BYTES(e->body, body + 1, strlen(body) - 2);
	TEXT(e->turn, "t1");
}

CASE(append_json_refuses_our_names)
{
	sheaf_session *s = t_new(t, "s");
	static const char *const names[] = {"type",   "id",  "parent_id", "timestamp",
	                                    "branch", "seq", "batch",     "crc"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *m = "\"message\":{\"role\":\"user\",\"content\":[]}";
		FAILS(INVALID, TRY_JSON(s, "message", t_format(t, "{%s,\"%s\":1}", m, names[i])));
		FAILS(INVALID,
		      TRY_JSON(s, "message", t_format(t, "{\"%s\":\"x\",%s}", names[i], m)));
		FAILS(INVALID,
		      TRY_SAY(s, "user", "x", .extra = t_format(t, "{\"%s\":1}", names[i])));
	}
	FAILS(INVALID, TRY_JSON(s, "message", "{\"m\\u0065ssage\":1,\"\\u0069d\":2}"));
	/* Further in they are the caller's. */
	JSON(s, "custom", "{\"custom\":{\"custom_type\":\"x\",\"data\":{\"id\":1,\"crc\":2}}}");
	EQ(t_revision(t, s), 1);
}

CASE(append_json_refuses_headers)
{
	sheaf_session *s = t_new(t, "s");
	FAILS(INVALID, TRY_JSON(s, "session", "{\"format\":\"sheaf\"}"));
	FAILS(INVALID, TRY_JSON(s, "", "{}"));
	FAILS(INVALID, TRY_JSON(s, "message", "[]"));
	FAILS(INVALID, TRY_JSON(s, "message", "null"));
	FAILS(INVALID, TRY_JSON(s, "message", ""));
	EQ(t_revision(t, s), 0);
}

CASE(append_json_unknown_type)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	JSON(s, "weather", "{\"weather\":{\"sky\":\"blue\"}}", .id = "w1", .parent = "u1");
	const sheaf_entry *e = t_get(t, s, "w1");
	EQ(e->kind, SHEAF_KIND_OTHER_ENTRY);
	TEXT(e->type, "weather");
	TEXT(e->body, "\"weather\":{\"sky\":\"blue\"}");
	SAY(s, "user", "2", .id = "u2");
	IDS(t_path(t, s, NULL), "u1 w1 u2");
	ITEMS(t_context(t, s), "u1 u2");
}

CASE(append_options_are_recorded)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "x", .id = "u1", .turn = "t1", .author = "ann", .agent = "root.planner",
	    .invocation_id = "inv", .extra = "{\"metadata\":{\"k\":1}}",
	    .time_us = 1700000000000001);
	const sheaf_entry *e = t_get(t, s, "u1");
	TEXT(e->turn, "t1");
	TEXT(e->agent, "root.planner");
	EQ(e->time_us, 1700000000000001);
	TEXT(e->timestamp, "2023-11-14T22:13:20.000001Z");
	CHECK(t_contains(e->body, "\"turn\":\"t1\""));
	CHECK(t_contains(e->body, "\"author\":\"ann\""));
	CHECK(t_contains(e->body, "\"agent\":\"root.planner\""));
	CHECK(t_contains(e->body, "\"invocation_id\":\"inv\""));
	CHECK(t_contains(e->body, "\"metadata\":{\"k\":1}"));
}

CASE(append_extra_must_be_an_object)
{
	sheaf_session *s = t_new(t, "s");
	FAILS(INVALID, TRY_SAY(s, "user", "x", .extra = "[1]"));
	FAILS(INVALID, TRY_SAY(s, "user", "x", .extra = "{\"a\":1"));
	FAILS(INVALID, TRY_SAY(s, "user", "x", .extra = "{\"a\":1,\"a\":2}"));
	FAILS(INVALID, TRY_SAY(s, "user", "x", .extra = "{\"message\":1}")); /* there is one */
	SAY(s, "user", "x", .extra = "{}");
	EQ(t_revision(t, s), 1);
}

CASE(clock_goes_back)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "late", .id = "u1", .time_us = 1900000000000000);
	SAY(s, "user", "early", .id = "u2", .time_us = 1000000000000000);
	SAY(s, "user", "between", .id = "u3", .time_us = 1500000000000000);
	SAY(s, "user", "the same", .id = "u4", .time_us = 1500000000000000);
	SAY(s, "user", "before 1970", .id = "u5", .time_us = -86400000000);
	IDS(t_path(t, s, NULL), "u1 u2 u3 u4 u5");
	IDS(t_all(t, s), "u1 u2 u3 u4 u5");
	EQ(t_head(t, s)->info->modified_us, (uint64_t)-86400000000);
	TEXT(t_get(t, s, "u5")->timestamp, "1969-12-31T00:00:00.000000Z");
	/* A turn of a handle that saw the leaf is not stale for a clock. */
	sheaf_batch *b = t_batch(t);
	ADD(b, "assistant", "reply", .id = "a1", .time_us = 1200000000000000);
	OK(sheaf_session_append_turn(s, b, S("t1"), S(NULL), NULL, NULL, NULL, &t->err));
	s = t_restart(t, "s");
	IDS(t_path(t, s, NULL), "u1 u2 u3 u4 u5 a1");
}

CASE(append_reports_the_builders_first_failure)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_message *m = sheaf_message_new("user");
	CHECK(sheaf_message_text(m, S("fine")) == 0);
	CHECK(sheaf_message_text(m, (sheaf_str){"\xff", 1}) == SHEAF_INVALID);
	CHECK(sheaf_message_text(m, S("fine again")) == SHEAF_INVALID);
	CHECK(sheaf_message_json(m).ptr == NULL);
	int rc = sheaf_session_append_message(s, m, NULL, NULL, NULL, &t->err);
	sheaf_message_free(m);
	EQ(rc, SHEAF_INVALID);
	m = sheaf_message_new("user");
	sheaf_message_tool_result_begin(m, S("c"), S(NULL), 0);
	rc = sheaf_session_append_message(s, m, NULL, NULL, NULL, &t->err); /* never ended */
	sheaf_message_free(m);
	EQ(rc, SHEAF_INVALID);
	m = sheaf_message_new("user");
	CHECK(sheaf_message_signature(m, S("on nothing")) == SHEAF_INVALID);
	sheaf_message_free(m);
	EQ(t_revision(t, s), 0);
}

CASE(append_id_is_given_on_failure_too)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	FAILS(STALE, TRY_SAY(s, "user", "2", .expect = SHEAF_EXPECT_LEAF, .leaf = "other"));
	const char *id = t_format(t, "%s", t->out.id);
	EQ(strlen(id), 36);
	SAY(s, "user", "2", .id = id, .expect = SHEAF_EXPECT_LEAF, .leaf = "u1");
	LEAF(s, id);
}

CASE(append_text_without_out_or_err)
{
	sheaf_session *s = t_new(t, "s");
	EQ(sheaf_session_append_text(s, "user", S("x"), NULL, NULL), 0);
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_text(m, S("y"));
	int rc = sheaf_session_append_message(s, m, NULL, NULL, NULL, NULL);
	sheaf_message_free(m);
	EQ(rc, 0);
	EQ(t_path(t, s, NULL)->count, 2);
}

CASE(append_same_message_twice)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_text(m, S("again"));
	int a = sheaf_session_append_message(s, m, NULL, NULL, NULL, NULL);
	int b = sheaf_session_append_message(s, m, NULL, NULL, NULL, NULL);
	sheaf_message_free(m);
	EQ(a, 0);
	EQ(b, 0);
	const sheaf_records *path = t_path(t, s, NULL);
	EQ(path->count, 2); /* two ids, two records */
	BYTES(path->items[0]->body, path->items[1]->body.ptr, path->items[1]->body.len);
}

CASE(custom_data_over_several_lines)
{
	static const char *const data[] = {
		"{\n\t\"a\": [1,\r\n 2]\n}",
		" 7",
		"\"x\"\n",
	};
	sheaf_session *s = t_new(t, "s");
	sheaf_appended out = SHEAF_APPENDED_INIT;
	for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++) {
		OK(sheaf_session_append_custom(s, S("kind"), S(data[i]), NULL, NULL, &out,
		                               &t->err));
		const sheaf_entry *e = t_get(t, s, out.id);
		TEXT(e->data, data[i]);
		CHECK(t_contains(e->line, "\"data_text\":\""));
	}
	OK(sheaf_session_append_custom(s, S("kind"), S("{\"a\":1}"), NULL, NULL, &out, &t->err));
	CHECK(t_contains(t_get(t, s, out.id)->line, "\"data\":{\"a\":1}"));
	static const char *const bad[] = {"",    "\n", "{\n", "\"a\nb\"", "{\"a\":1,\n\"a\":2}",
	                                  "1\n2"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		FAILS(INVALID, sheaf_session_append_custom(s, S("kind"), S(bad[i]), NULL, NULL,
		                                           NULL, &t->err));
	s = t_restart(t, "s");
	TEXT(t_path(t, s, NULL)->items[0]->data, data[0]);
}

/* Every turn ends with the usage its message had: it counts once, however many are open at once. */
CASE(usage_of_many_open_turns)
{
	sheaf_session *s = t_new(t, "s");
	enum {
		TURNS = 50
	};
	for (int i = 0; i < TURNS; i++)
		JSON(s, "message",
		     t_format(t,
		              "{\"message\":{\"role\":\"assistant\",\"content\":\"x\","
		              "\"usage\":{\"input\":1,\"output\":0}},\"turn\":\"t%d\"}",
		              i),
		     0);
	for (int i = 0; i < TURNS; i++)
		JSON(s, "turn_end",
		     t_format(
			     t,
			     "{\"turn_end\":{\"turn\":\"t%d\",\"usage\":{\"input\":1,\"output\":0}}}",
			     i),
		     0);
	EQ(t_head(t, s)->info->usage.input, TURNS);
	EQ(t_head(t, t_restart(t, "s"))->info->usage.input, TURNS);
}

/* Turns one after the other, half of them known by their end alone: all count, however many. */
CASE(usage_of_many_turns)
{
	sheaf_session *s = t_new(t, "s");
	for (int i = 0; i < 60; i++) {
		if (i % 2 == 0)
			JSON(s, "message",
			     t_format(t,
			              "{\"message\":{\"role\":\"assistant\",\"content\":\"x\","
			              "\"usage\":{\"input\":1,\"output\":0}},\"turn\":\"t%d\"}",
			              i),
			     0);
		for (int again = 0; again < 1 + (i % 2 == 0); again++)
			JSON(s, "turn_end",
			     t_format(t,
			              "{\"turn_end\":{\"turn\":\"t%d\","
			              "\"usage\":{\"input\":1,\"output\":0}}}",
			              i),
			     0);
	}
	EQ(t_head(t, s)->info->usage.input, 60);
}
