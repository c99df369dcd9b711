/* Contexts: the path, mended so that every tool call is answered exactly once, next to it. */
#include <stdio.h>

#include "suite.h"

CASE(context_is_the_path)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "system", "be kind", .id = "s1");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	LABEL(s, "u1", "l");
	OK(sheaf_session_append_custom(s, S("ext"), S("{}"), NULL, NULL, NULL, &t->err));
	OK(t_rename(t, s, "n"));
	SAY(s, "user", "3", .id = "u2");
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "s1 u1 a1 u2");
	EQ(c->note_count, 0);
	TEXT(c->leaf, "u2");
	EQ(c->revision, 7);
	CHECK(c->compaction == NULL);
	CHECK(c->bytes > 100);
	EQ(c->items[0]->kind, SHEAF_ITEM_MESSAGE);
	EQ(c->items[0]->synthetic, 0);
	TEXT(c->items[0]->message->role, "system");
	BYTES(c->items[3]->message->json, t_get(t, s, "u2")->message->json.ptr,
	      t_get(t, s, "u2")->message->json.len);
}

CASE(context_of_a_branch_and_of_an_entry)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	BRANCH(s, "side", "u1");
	SAY(s, "assistant", "x", .id = "x1", .branch = "side");
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	o.branch = S("side");
	ITEMS(t_context_with(t, s, &o), "u1 x1");
	o.leaf = S("a1");
	ITEMS(t_context_with(t, s, &o), "u1 a1");
	o = (sheaf_context_options)SHEAF_CONTEXT_OPTIONS_INIT;
	o.leaf = S("u1");
	const sheaf_context *c = t_context_with(t, s, &o);
	ITEMS(c, "u1");
	TEXT(c->leaf, "u1");
}

CASE(context_tool_pair)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	CALL(s, "c1", "ls", .id = "a1");
	ANSWER(s, "c1", "files", .id = "t1");
	SAY(s, "assistant", "done", .id = "a2");
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "u1 a1 t1 a2");
	EQ(c->note_count, 0);
}

CASE(interrupted_call)
{
	/* A call nobody answered gets an answer made from the call alone. */
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	CALL(s, "c1", "ls", .id = "a1");
	SAY(s, "user", "never mind", .id = "u2");
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "u1 a1 !c1 u2");
	const sheaf_item *made = c->items[2];
	EQ(made->synthetic, 1);
	CHECK(made->entry == NULL);
	TEXT(made->message->role, "tool");
	const sheaf_part *p = made->message->parts[0];
	EQ(p->kind, SHEAF_PART_TOOL_RESULT);
	EQ(p->synthetic, 1);
	EQ(p->is_error, 1);
	TEXT(p->tool_use_id, "c1");
	TEXT(p->tool_name, "ls");
	CHECK(p->text.len > 0);
	CHECK(t_noted(c, SHEAF_NOTE_INTERRUPTED, "c1"));
	EQ(c->note_count, 1);
	EQ(t_revision(t, s), 3); /* the log never changes */
	BRANCH(s, NULL, "a1");
	ITEMS(t_context(t, s), "u1 a1 !c1"); /* at the very end too */
}

CASE(interrupted_some_of_several)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_message *m = sheaf_message_new("assistant");
	sheaf_message_tool_use(m, S("c1"), S("a"), S("{}"));
	sheaf_message_tool_use(m, S("c2"), S("b"), S("{}"));
	sheaf_message_tool_use(m, S("c3"), S("c"), S("{}"));
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("a1");
	int rc = sheaf_session_append_message(s, m, &e, NULL, NULL, &t->err);
	sheaf_message_free(m);
	EQ(rc, 0);
	ANSWER(s, "c2", "only this", .id = "t2");
	SAY(s, "user", "go on", .id = "u1");
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "a1 t2 !c1 !c3 u1"); /* what came, then what is made up */
	EQ(c->note_count, 2);
}

CASE(late_answer)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	CALL(s, "c1", "slow", .id = "a1");
	SAY(s, "user", "meanwhile", .id = "u2");
	SAY(s, "assistant", "yes?", .id = "a2");
	const sheaf_context *before = t_context(t, s);
	ITEMS(before, "u1 a1 !c1 u2 a2");
	ANSWER(s, "c1", "at last", .id = "t1");
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "u1 a1 t1 u2 a2");
	CHECK(t_noted(c, SHEAF_NOTE_LATE_ANSWER, "c1"));
	EQ(c->note_count, 1);
	EQ(c->items[2]->synthetic, 0);
	TEXT(c->items[2]->message->parts[0]->text, "at last");
	/* It breaks the prefix, and one can tell. */
	CHECK(sheaf_context_prefix(c, before->count) != before->prefix_hash);
	EQ(sheaf_context_prefix(c, 2), sheaf_context_prefix(before, 2));
}

CASE(orphan_answer)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	ANSWER(s, "nobody", "an answer to nothing", .id = "t1");
	SAY(s, "assistant", "2", .id = "a1");
	const sheaf_context *c = t_context(t, s);
	EQ(c->count, 3);
	const sheaf_item *i = c->items[1];
	TEXT(i->message->role, "user");
	EQ(i->message->parts[0]->kind, SHEAF_PART_TEXT);
	CHECK(t_contains(i->message->parts[0]->text, "an answer to nothing"));
	CHECK(i->message->json.ptr == NULL); /* the context changed it */
	CHECK(t_noted(c, SHEAF_NOTE_ORPHAN_ANSWER, "nobody"));
}

CASE(second_answer)
{
	sheaf_session *s = t_new(t, "s");
	CALL(s, "c1", "ls", .id = "a1");
	ANSWER(s, "c1", "first", .id = "t1");
	ANSWER(s, "c1", "second", .id = "t2");
	SAY(s, "user", "x", .id = "u1");
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "a1 t1 u1");
	CHECK(t_noted(c, SHEAF_NOTE_SECOND_ANSWER, "c1"));
}

CASE(answer_takes_the_nearest_open_call)
{
	/* The same id used twice, as some providers do. */
	sheaf_session *s = t_new(t, "s");
	CALL(s, "call_0", "a", .id = "a1");
	ANSWER(s, "call_0", "one", .id = "t1");
	CALL(s, "call_0", "b", .id = "a2");
	SAY(s, "user", "wait", .id = "u1");
	CALL(s, "call_0", "c", .id = "a3");
	ANSWER(s, "call_0", "three", .id = "t3");
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "a1 t1 a2 !call_0 u1 a3 t3");
	ANSWER(s, "call_0", "two, late", .id = "t2");
	c = t_context(t, s);
	ITEMS(c, "a1 t1 a2 t2 u1 a3 t3");
	CHECK(t_noted(c, SHEAF_NOTE_LATE_ANSWER, "call_0"));
}

CASE(answers_in_another_order)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_message *m = sheaf_message_new("assistant");
	sheaf_message_text(m, S("both"));
	sheaf_message_tool_use(m, S("c1"), S("a"), S("{}"));
	sheaf_message_tool_use(m, S("c2"), S("b"), S("{}"));
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("a1");
	int rc = sheaf_session_append_message(s, m, &e, NULL, NULL, &t->err);
	sheaf_message_free(m);
	EQ(rc, 0);
	ANSWER(s, "c2", "two", .id = "t2");
	ANSWER(s, "c1", "one", .id = "t1");
	SAY(s, "assistant", "fine", .id = "a2");
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "a1 t2 t1 a2");
	EQ(t_path(t, s, NULL)->count, 4);
}

CASE(answers_inside_a_user_message)
{
	sheaf_session *s = t_new(t, "s");
	CALL(s, "c1", "a", .id = "a1");
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_tool_result(m, S("c1"), S(NULL), S("result"), 0);
	sheaf_message_text(m, S("and a question"));
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("u1");
	int rc = sheaf_session_append_message(s, m, &e, NULL, NULL, &t->err);
	sheaf_message_free(m);
	EQ(rc, 0);
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "a1 u1"); /* as some providers send it: nothing to mend */
	EQ(c->note_count, 0);
	EQ(c->items[1]->message->part_count, 2);
}

CASE(empty_texts_go)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "", .id = "u1");
	SAY(s, "user", "x", .id = "u2");
	sheaf_message *m = sheaf_message_new("assistant");
	sheaf_message_text(m, S(""));
	sheaf_message_text(m, S("said"));
	sheaf_message_text(m, S(""));
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("a1");
	int rc = sheaf_session_append_message(s, m, &e, NULL, NULL, &t->err);
	sheaf_message_free(m);
	EQ(rc, 0);
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "u2 a1");
	EQ(c->items[1]->message->part_count, 1);
	TEXT(c->items[1]->message->parts[0]->text, "said");
	CHECK(t_noted(c, SHEAF_NOTE_EMPTY_TEXT, "u1"));
	CHECK(t_noted(c, SHEAF_NOTE_EMPTY_TEXT, "a1"));
	IDS(t_path(t, s, NULL), "u1 u2 a1");
}

static int think(sheaf_session *s, const char *id, const char *provider, const char *model,
                 const char *signature)
{
	sheaf_message *m = sheaf_message_new("assistant");
	sheaf_message_thinking(m, S("hm"), S(signature), 0);
	sheaf_message_text(m, S("said"));
	if (provider)
		sheaf_message_provider(m, S(provider));
	if (model)
		sheaf_message_model(m, S(model));
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S(id);
	int rc = sheaf_session_append_message(s, m, &e, NULL, NULL, NULL);
	sheaf_message_free(m);
	return rc;
}

CASE(foreign_thinking)
{
	sheaf_session *s = t_new(t, "s");
	EQ(think(s, "a1", "anthropic", "claude-x", "sig"), 0);
	EQ(think(s, "a2", "openai", "gpt", "sig"), 0);
	EQ(think(s, "a3", "openai", "gpt", NULL), 0);
	const sheaf_context *c = t_context(t, s); /* for nobody in particular: all stays */
	for (size_t i = 0; i < 3; i++)
		EQ(c->items[i]->message->part_count, 2);
	EQ(c->note_count, 0);
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	o.provider = S("anthropic");
	o.model = S("claude-x");
	c = t_context_with(t, s, &o);
	EQ(c->items[0]->message->part_count, 2);
	EQ(c->items[1]->message->part_count, 1); /* signed by another */
	EQ(c->items[2]->message->part_count, 2); /* not signed */
	CHECK(t_noted(c, SHEAF_NOTE_FOREIGN_THINKING, "a2"));
	EQ(c->note_count, 1);
	o.model = S("claude-y");
	c = t_context_with(t, s, &o);
	EQ(c->items[0]->message->part_count, 1);
	EQ(c->note_count, 2);
}

CASE(visible_to_an_agent)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "all", .id = "u1");
	SAY(s, "assistant", "root", .id = "r1", .agent = "root");
	SAY(s, "assistant", "planner", .id = "p1", .agent = "root.planner");
	SAY(s, "assistant", "coder", .id = "c1", .agent = "root.coder");
	SAY(s, "assistant", "deep", .id = "d1", .agent = "root.planner.deep");
	SAY(s, "assistant", "plan", .id = "x1", .agent = "root.plan");
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	ITEMS(t_context_with(t, s, &o), "u1 r1 p1 c1 d1 x1");
	o.agent = S("root");
	ITEMS(t_context_with(t, s, &o), "u1 r1");
	o.agent = S("root.planner");
	ITEMS(t_context_with(t, s, &o), "u1 r1 p1");
	o.agent = S("root.planner.deep");
	ITEMS(t_context_with(t, s, &o), "u1 r1 p1 d1");
	o.agent = S("stranger");
	ITEMS(t_context_with(t, s, &o), "u1");
	o.agent = S("");
	ITEMS(t_context_with(t, s, &o), "u1");
}

CASE(settings_come_from_the_path)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	const sheaf_context *c = t_context(t, s);
	CHECK(c->provider.ptr == NULL && c->model.ptr == NULL && c->thinking_level.ptr == NULL);
	e.id = S("m1");
	OK(sheaf_session_append_model_change(s, S("openai"), S("gpt"), &e, NULL, NULL, &t->err));
	OK(sheaf_session_append_thinking_level(s, S("low"), NULL, NULL, NULL, &t->err));
	SAY(s, "user", "1", .id = "u1");
	OK(sheaf_session_append_model_change(s, S("anthropic"), S("claude"), NULL, NULL, NULL,
	                                     &t->err));
	OK(sheaf_session_append_thinking_level(s, S("high"), NULL, NULL, NULL, &t->err));
	c = t_context(t, s);
	ITEMS(c, "u1");
	TEXT(c->provider, "anthropic");
	TEXT(c->model, "claude");
	TEXT(c->thinking_level, "high");
	BRANCH(s, NULL, "u1"); /* as of there, not as of the end of the log */
	c = t_context(t, s);
	TEXT(c->provider, "openai");
	TEXT(c->model, "gpt");
	TEXT(c->thinking_level, "low");
}

CASE(context_too_large)
{
	sheaf_session *s = t_new(t, "s");
	for (int i = 0; i < 20; i++)
		SAY(s, "user", t_fill(t, 'x', 1000), .id = t_format(t, "u%d", i));
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	size_t bytes = t_context(t, s)->bytes;
	CHECK(bytes > 20000 && bytes < 40000);
	o.bytes_max = bytes;
	EQ(t_context_with(t, s, &o)->count, 20);
	o.bytes_max = bytes - 1;
	sheaf_context *c = NULL;
	FAILS(TOO_LARGE, sheaf_session_context(&c, s, &o, &t->err));
	CHECK(c == NULL);
	COMPACT(s, "sum", "u18");
	EQ(t_context_with(t, s, &o)->count, 3); /* compacting helps */
	o.bytes_max = 4000;
	EQ(t_context_with(t, s, &o)->count, 3);
	o.bytes_max = 1000;
	FAILS(TOO_LARGE, sheaf_session_context(&c, s, &o, &t->err));
}

CASE(context_default_budget)
{
	sheaf_session *s = t_new(t, "s");
	char *text = t_fill(t, 'x', 13 << 20);
	for (int i = 0; i < 5; i++) /* 65 MiB */
		SAY(s, "user", text, .id = t_format(t, "u%d", i));
	sheaf_context *c = NULL;
	FAILS(TOO_LARGE, sheaf_session_context(&c, s, NULL, &t->err));
	CHECK(t->err.hint[0] != 0);
	sheaf_records *r = NULL;
	FAILS(TOO_LARGE, sheaf_session_path(&r, s, S(NULL), S(NULL), 0, &t->err));
	OK(sheaf_session_path(&r, s, S(NULL), S(NULL), 2, &t->err));
	IDS(t_keep_records(t, r), "u3 u4");
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	o.bytes_max = (size_t)80 << 20;
	EQ(t_context_with(t, s, &o)->count, 5);
	COMPACT(s, "sum", "u4");
	EQ(t_context(t, s)->count, 2);
	/* The check at the end reads every path whole. */
	t_close(t, s);
	sheaf_key key = t_key(t, "s");
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
}

CASE(prefix_hash_grows_with_the_path)
{
	sheaf_session *s = t_new(t, "s");
	uint64_t seen[10];
	for (int i = 0; i < 10; i++) {
		SAY(s, i % 2 ? "assistant" : "user", t_format(t, "t%d", i));
		seen[i] = t_context(t, s)->prefix_hash;
	}
	const sheaf_context *c = t_context(t, s);
	for (size_t i = 0; i < 10; i++)
		EQ(sheaf_context_prefix(c, i + 1), seen[i]);
	for (size_t i = 1; i < 10; i++)
		CHECK(seen[i] != seen[i - 1]);
	LABEL(s, t_leaf(t, s, NULL), "last");
	OK(t_rename(t, s, "n"));
	EQ(t_context(t, s)->prefix_hash, seen[9]); /* facts change nothing */
	s = t_restart(t, "s");
	EQ(t_context(t, s)->prefix_hash, seen[9]);
}

CASE(prefix_hash_is_of_the_content)
{
	sheaf_session *a = t_new(t, "a");
	sheaf_session *b = t_new(t, "b");
	SAY(a, "user", "same", .id = "u1");
	SAY(b, "user", "same", .id = "u2");
	EQ(t_context(t, a)->prefix_hash, t_context(t, b)->prefix_hash);
	SAY(a, "user", "x", .id = "x1");
	SAY(b, "user", "y", .id = "y1");
	CHECK(t_context(t, a)->prefix_hash != t_context(t, b)->prefix_hash);
	EQ(sheaf_context_prefix(t_context(t, a), 1), sheaf_context_prefix(t_context(t, b), 1));
	EQ(sheaf_context_prefix(t_context(t, a), 3), 0); /* there is no such prefix */
}

CASE(branch_summaries_in_context)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	OK(sheaf_session_branch_with_summary(s, S(NULL), S("u1"), S("one way"), NULL, NULL,
	                                     &t->err));
	SAY(s, "assistant", "2b", .id = "a2");
	OK(sheaf_session_branch_with_summary(s, S(NULL), S("a2"), S("other way"), NULL, NULL,
	                                     &t->err));
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "u1 B(one way) a2 B(other way)");
	TEXT(c->items[1]->message->role, "branchSummary");
	EQ(c->items[1]->message->parts[0]->kind, SHEAF_PART_TEXT);
	EQ(c->items[1]->entry->kind, SHEAF_KIND_BRANCH_SUMMARY);
}

CASE(context_of_a_fork_across_the_base)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	CALL(s, "c1", "ls", .id = "a1");
	sheaf_session *f = t_fork(t, s, NULL, "f");
	ITEMS(t_context(t, f), "u1 a1 !c1");
	ANSWER(f, "c1", "in the fork", .id = "t1");
	ANSWER(s, "c1", "in the source", .id = "t1");
	ITEMS(t_context(t, f), "u1 a1 t1");
	TEXT(t_context(t, f)->items[2]->message->parts[0]->text, "in the fork");
	TEXT(t_context(t, s)->items[2]->message->parts[0]->text, "in the source");
}

CASE(context_keeps_bash_and_unknown_parts)
{
	sheaf_session *s = t_new(t, "s");
	JSON(s, "message",
	     "{\"message\":{\"role\":\"bashExecution\",\"command\":\"ls\",\"content\":[]}}",
	     .id = "b1");
	JSON(s, "message",
	     "{\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"hologram\",\"hologram\":{}}]}}",
	     .id = "h1");
	const sheaf_context *c = t_context(t, s);
	ITEMS(c, "b1 h1");
	EQ(c->items[1]->message->parts[0]->kind, SHEAF_PART_OTHER);
	TEXT(c->items[1]->message->parts[0]->json, "{\"type\":\"hologram\",\"hologram\":{}}");
	CHECK(t_contains(c->items[0]->message->json, "\"command\":\"ls\""));
}
