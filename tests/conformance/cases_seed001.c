/* Seed 001's API, one call after the other, and its usage example. */
#include <stdio.h>

#include "suite.h"

CASE(seed001_new)
{
	sheaf_key key = t_key(t, "");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_NEW;
	o.parent_session = S("the-parent");
	sheaf_session *s = NULL;
	OK(sheaf_session_open(&s, t->store, &key, &o, &t->err));
	t_keep(t, s);
	TEXT(t_head(t, s)->info->parent_session, "the-parent");
	EQ(t_revision(t, s), 0);
}

CASE(seed001_load)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "x", .id = "u1");
	s = t_restart(t, "s");
	IDS(t_path(t, s, NULL), "u1");
	sheaf_key key = t_key(t, "absent");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	FAILS(NOT_FOUND, sheaf_session_open(&s, t->store, &key, &o, &t->err));
}

CASE(seed001_continue_recent)
{
	SAY(t_new(t, "old"), "user", "x", .time_us = 1000000);
	SAY(t_new(t, "new"), "user", "x", .time_us = 2000000);
	suite_reopen(t);
	sheaf_session *s = NULL;
	OK(sheaf_session_open_recent(&s, t->store, S(t->app), S(""), &t->err));
	t_keep(t, s);
	CSTR(sheaf_session_id(s), "new");
}

CASE(seed001_fork_from)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	suite_place *target = suite_other(
		t); /* "targetDir: where the new session will be created" */
	sheaf_key key = {S(target->app), S(""), S("")};
	sheaf_session *f = NULL;
	OK(sheaf_session_copy(&f, s, target->store, &key, &t->err));
	t_keep(t, f);
	IDS(t_path(t, f, NULL), "u1 a1");
	CHECK(strcmp(sheaf_session_id(f), "s") != 0);
}

CASE(seed001_append)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	JSON(s, "custom", "{\"custom\":{\"custom_type\":\"x\",\"data\":{\"k\":1}}}", .id = "e1");
	LEAF(s, "e1"); /* child of the leaf, and the leaf advances */
	TEXT(t_get(t, s, "e1")->parent_id, "u1");
}

CASE(seed001_append_message)
{
	sheaf_session *s = t_new(t, "s");
	static const char *const roles[] = {"user", "assistant", "tool"};
	for (int i = 0; i < 3; i++) {
		SAY(s, roles[i], "content");
		LEAF(s, t->out.id); /* it returns the id */
	}
	EQ(t_path(t, s, NULL)->count, 3);
}

CASE(seed001_append_thinking_level_change)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_appended out = SHEAF_APPENDED_INIT;
	OK(sheaf_session_append_thinking_level(s, S("high"), NULL, NULL, &out, &t->err));
	TEXT(t_get(t, s, out.id)->type, "thinking_level");
	TEXT(t_context(t, s)->thinking_level, "high");
}

CASE(seed001_append_model_change)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_appended out = SHEAF_APPENDED_INIT;
	OK(sheaf_session_append_model_change(s, S("openai"), S("gpt-4o"), NULL, NULL, &out,
	                                     &t->err));
	TEXT(t_get(t, s, out.id)->type, "model_change");
	TEXT(t_context(t, s)->provider, "openai");
	TEXT(t_context(t, s)->model, "gpt-4o");
}

CASE(seed001_append_compaction)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "user", "2", .id = "u2");
	sheaf_appended out = SHEAF_APPENDED_INIT;
	OK(sheaf_session_append_compaction(s, S("sum"), S("u2"), 1500, NULL, NULL, &out, &t->err));
	const sheaf_entry *e = t_get(t, s, out.id);
	CHECK(t_contains(e->body, "\"summary\":\"sum\""));
	CHECK(t_contains(e->body, "\"first_kept_entry_id\":\"u2\""));
	CHECK(t_contains(e->body, "\"tokens_before\":1500"));
}

CASE(seed001_append_session_info)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	OK(t_rename(t, s, "My Session"));
	const sheaf_entry *e = t_all(t, s)->items[1];
	TEXT(e->type, "session_info");
	TEXT(e->text, "My Session");
	TEXT(e->body, "\"session_info\":{\"name\":\"My Session\"}");
	LEAF(s, "u1");
}

CASE(seed001_append_custom_entry)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_appended out = SHEAF_APPENDED_INIT;
	OK(sheaf_session_append_custom(s, S("my-ext"), S("{\"n\":1}"), NULL, NULL, &out, &t->err));
	const sheaf_entry *e = t_get(t, s, out.id);
	TEXT(e->body, "\"custom\":{\"custom_type\":\"my-ext\",\"data\":{\"n\":1}}");
	ITEMS(t_context(t, s), ""); /* ignored by the context builder */
}

CASE(seed001_set_label)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	LABEL(s, "u1", "Requirement defined");
	TEXT(t_get(t, s, "u1")->label, "Requirement defined");
	LABEL(s, "u1", ""); /* clears it */
	CHECK(t_get(t, s, "u1")->label.ptr == NULL);
}

CASE(seed001_branch)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	BRANCH(s, NULL, "u1");
	SAY(s, "user", "Actually, tell me a joke.", .id = "u2");
	TEXT(t_get(t, s, "u2")->parent_id, "u1");
	FAILS(NOT_FOUND, t_branch(t, s, NULL, "no-such-entry"));
}

CASE(seed001_branch_with_summary)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	sheaf_appended out = SHEAF_APPENDED_INIT;
	OK(sheaf_session_branch_with_summary(s, S(NULL), S("u1"), S("tried a1"), NULL, &out,
	                                     &t->err));
	const sheaf_entry *e = t_get(t, s, out.id);
	TEXT(e->type, "branch_summary");
	TEXT(e->parent_id, "u1");
	CHECK(t_contains(e->body, "\"summary\":\"tried a1\""));
	CHECK(t_contains(e->body, "\"from_id\":\"a1\""));
	LEAF(s, out.id);
}

CASE(seed001_create_branched_session)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	SAY(s, "assistant", "2b", .id = "a2", .parent = "u1");
	sheaf_key key = t_key(t, "");
	sheaf_session *e = NULL;
	OK(sheaf_session_export_path(&e, s, S("a1"), t->store, &key, &t->err));
	t_keep(t, e);
	IDS(t_path(t, e, NULL), "u1 a1");
	EQ(t_tree(t, e)->node_count, 2);
}

CASE(seed001_get_context)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	ITEMS(t_context(t, s), "u1 a1");
	EQ(t_context(t, s)->items[0]->entry->kind, SHEAF_KIND_MESSAGE);
}

CASE(seed001_get_tree)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	SAY(s, "assistant", "3", .id = "a2", .parent = "u1");
	LABEL(s, "a2", "better");
	const sheaf_tree *tree = t_tree(t, s);
	EQ(tree->roots[0]->child_count, 2);
	TEXT(tree->roots[0]->children[1]->entry->label, "better");
}

CASE(seed001_list)
{
	sheaf_session *s = t_new(t, "sess-123");
	SAY(s, "user", "1");
	SAY(s, "assistant", "2");
	OK(t_rename(t, s, "Named"));
	const sheaf_list *l = t_list_mine(t);
	EQ(l->count, 1);
	TEXT(l->items[0]->session, "sess-123");
	TEXT(l->items[0]->name, "Named");
	EQ(l->items[0]->messages, 2);
	CHECK(l->items[0]->created_us > 0 && l->items[0]->modified_us >= l->items[0]->created_us);
}

CASE(seed001_file_content)
{
	/* §5.1: a text with a file in it, as the seed writes it. */
	sheaf_session *s = t_new(t, "s");
	const char *body =
		"{\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":{\"content\":"
		"\"Analyze this file:\\n<file name=\\\"main.go\\\">\\npackage main\\n...</file>\"}}]}}";
	JSON(s, "message", body, .id = "msg-123");
	const sheaf_entry *e = t_get(t, s, "msg-123");
	BYTES(e->body, body + 1, strlen(body) - 2);
	TEXT(e->message->parts[0]->text,
	     "Analyze this file:\n<file name=\"main.go\">\npackage main\n...</file>");
}

CASE(seed001_tool_scenario)
{
	/* §12.2 */
	sheaf_session *s = t_new(t, "sess-456");
	JSON(s, "message",
	     "{\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
	     "{\"content\":\"Read main.go\"}}]}}",
	     .id = "m-1");
	JSON(s, "message",
	     "{\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"tool_use\":"
	     "{\"id\":\"call_abc\",\"name\":\"read_file\",\"input\":{\"path\":\"main.go\"}}}]}}",
	     .id = "m-2");
	JSON(s, "message",
	     "{\"message\":{\"role\":\"tool\",\"content\":[{\"type\":\"tool_result\",\"tool_result\":"
	     "{\"tool_use_id\":\"call_abc\",\"content\":\"package main...\"}}]}}",
	     .id = "m-3");
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "m-1 m-2 m-3");
	EQ(c->note_count, 0);
	TEXT(c->items[1]->message->parts[0]->input, "{\"path\":\"main.go\"}");
	TEXT(c->items[2]->message->parts[0]->text, "package main...");
}

CASE(seed001_usage_example)
{
	/* §13, step by step. */
	sheaf_session *s = NULL;
	if (sheaf_session_open_recent(&s, t->store, S(t->app), S(""), NULL) != 0)
		s = t_new(t, "");
	else
		t_keep(t, s);
	SAY(s, "user", "Hello, Agent!", .id = "msg-1");
	EQ(t_context(t, s)->count, 1);
	SAY(s, "assistant", "Hello! How can I help?", .id = "msg-2");
	BRANCH(s, NULL, "msg-1");
	SAY(s, "user", "Actually, tell me a joke.", .id = "msg-3");
	LABEL(s, "msg-1", "first-greeting");
	COMPACT(s, "User greeted and then asked for a joke.", "msg-3", .id = "comp-1");
	ITEMS(t_context(t, s), "S(User greeted and then asked for a joke.) msg-3");
}
