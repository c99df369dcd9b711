/* Todos, plans, summaries and the history of compactions: facts, of which the latest holds. */
#include "suite.h"

typedef struct todo {
	const char *id;
	const char *content;
	const char *active_form;
	const char *status;
	const char *plan_id;
} todo;

static int set_todo(suite *t, sheaf_session *s, todo x)
{
	sheaf_todo given = SHEAF_TODO_INIT;
	given.id = S(x.id);
	given.content = S(x.content);
	given.active_form = S(x.active_form);
	given.status = S(x.status);
	given.plan_id = S(x.plan_id);
	t->out = (sheaf_appended)SHEAF_APPENDED_INIT;
	return sheaf_session_set_todo(s, &given, NULL, NULL, &t->out, &t->err);
}

#define TASK(s, ...) OK(TRY_TASK(s, __VA_ARGS__))
#define TRY_TASK(s, ...) set_todo(t, (s), (todo){.id = __VA_ARGS__})

typedef struct plan {
	const char *id;
	const char *name;
	const char *content;
	const char *status;
	const char *error;
} plan;

static int set_plan(suite *t, sheaf_session *s, plan x)
{
	sheaf_plan given = SHEAF_PLAN_INIT;
	given.id = S(x.id);
	given.name = S(x.name);
	given.content = S(x.content);
	given.status = S(x.status);
	given.error = S(x.error);
	t->out = (sheaf_appended)SHEAF_APPENDED_INIT;
	return sheaf_session_set_plan(s, &given, NULL, NULL, &t->out, &t->err);
}

#define PLAN(s, ...) OK(TRY_PLAN(s, __VA_ARGS__))
#define TRY_PLAN(s, ...) set_plan(t, (s), (plan){.id = __VA_ARGS__})

static const char *text_of(suite *t, sheaf_str s)
{
	return s.ptr ? t_format(t, "%.*s", (int)s.len, s.ptr) : "-";
}

/* "id:status id:status …" */
static const char *todos(suite *t, sheaf_session *s)
{
	sheaf_todos *list = NULL;
	const char *text = "";
	OK(sheaf_session_todos(&list, s, &t->err));
	for (size_t i = 0; i < list->count; i++)
		text = t_format(t, "%s%s%s:%s", text, i ? " " : "", text_of(t, list->items[i]->id),
		                text_of(t, list->items[i]->status));
	EQ(list->revision, t_revision(t, s));
	sheaf_todos_free(list);
	return text;
}

static const char *plans(suite *t, sheaf_session *s)
{
	sheaf_plans *list = NULL;
	const char *text = "";
	OK(sheaf_session_plans(&list, s, &t->err));
	for (size_t i = 0; i < list->count; i++)
		text = t_format(t, "%s%s%s:%s", text, i ? " " : "", text_of(t, list->items[i]->id),
		                text_of(t, list->items[i]->status));
	sheaf_plans_free(list);
	return text;
}

/* "text@leaf text@leaf …" */
static const char *summaries(suite *t, sheaf_session *s)
{
	sheaf_summaries *list = NULL;
	const char *text = "";
	OK(sheaf_session_summaries(&list, s, &t->err));
	for (size_t i = 0; i < list->count; i++)
		text = t_format(t, "%s%s%s@%s", text, i ? " " : "",
		                text_of(t, list->items[i]->text), text_of(t, list->items[i]->leaf));
	sheaf_summaries_free(list);
	return text;
}

/* ---- Todos ------------------------------------------------------------------ */

CASE(todos_none)
{
	sheaf_session *s = t_new(t, "s");
	CSTR(todos(t, s), "");
	CSTR(plans(t, s), "");
	CSTR(summaries(t, s), "");
	SAY(s, "user", "1");
	CSTR(todos(t, s), "");
}

CASE(todos_in_the_order_they_came)
{
	sheaf_session *s = t_new(t, "s");
	TASK(s, "b", .content = "B");
	TASK(s, "a", .content = "A", .status = "in_progress");
	SAY(s, "user", "1");
	TASK(s, "c", .content = "C", .status = "completed");
	CSTR(todos(t, s), "b:pending a:in_progress c:completed");
	TASK(s, "b", .content = "B", .status = "completed");
	CSTR(todos(t, s), "b:completed a:in_progress c:completed");
	s = t_restart(t, "s");
	CSTR(todos(t, s), "b:completed a:in_progress c:completed");
}

CASE(todo_as_given)
{
	static const char content[] = "Run \"the\" tests\n\\ \xe2\x82\xac";
	sheaf_session *s = t_new(t, "s");
	sheaf_todos *list = NULL;
	TASK(s, "a", .content = content, .active_form = "Running", .status = "in_progress",
	     .plan_id = "p1");
	uint64_t seq = t->out.seq;
	OK(sheaf_session_todos(&list, s, &t->err));
	EQ(list->count, 1);
	const sheaf_todo *x = list->items[0];
	TEXT(x->id, "a");
	TEXT(x->content, content);
	TEXT(x->active_form, "Running");
	TEXT(x->status, "in_progress");
	TEXT(x->plan_id, "p1");
	EQ(x->seq, seq);
	CHECK(x->created_us > 0 && x->created_us == x->updated_us);
	sheaf_todos_free(list);
}

CASE(todo_is_set_whole)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_todos *list = NULL;
	sheaf_todo x = SHEAF_TODO_INIT;
	sheaf_entry_options when = SHEAF_ENTRY_OPTIONS_INIT;
	x.id = S("a");
	x.content = S("first");
	x.active_form = S("doing");
	when.time_us = 1700000000000000;
	OK(sheaf_session_set_todo(s, &x, &when, NULL, NULL, &t->err));
	x.content = S("second");
	x.active_form = (sheaf_str){NULL, 0};
	when.time_us = 1700000001000000;
	OK(sheaf_session_set_todo(s, &x, &when, NULL, NULL, &t->err));
	OK(sheaf_session_todos(&list, s, &t->err));
	EQ(list->count, 1);
	TEXT(list->items[0]->content, "second");
	CHECK(list->items[0]->active_form.ptr == NULL);
	EQ(list->items[0]->created_us, 1700000000000000);
	EQ(list->items[0]->updated_us, 1700000001000000);
	sheaf_todos_free(list);
	EQ(t_all(t, s)->count, 2); /* both versions are in the log */
}

CASE(todo_without_an_id_gets_the_record_s)
{
	sheaf_session *s = t_new(t, "s");
	TASK(s, NULL, .content = "new");
	const char *id = t_format(t, "%s", t->out.id);
	CSTR(todos(t, s), t_format(t, "%s:pending", id));
	TASK(s, id, .content = "new", .status = "completed");
	CSTR(todos(t, s), t_format(t, "%s:completed", id));
	CHECK(strcmp(t->out.id, id) != 0);
}

CASE(todo_repeat_existed)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_todo x = SHEAF_TODO_INIT;
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	x.content = S("once");
	e.id = S("r1");
	for (int i = 0; i < 2; i++) {
		t->out = (sheaf_appended)SHEAF_APPENDED_INIT;
		OK(sheaf_session_set_todo(s, &x, &e, NULL, &t->out, &t->err));
		EQ(t->out.existed, i);
	}
	x.content = S("twice");
	FAILS(CONFLICT, sheaf_session_set_todo(s, &x, &e, NULL, NULL, &t->err));
	CSTR(todos(t, s), "r1:pending");
}

CASE(todo_any_status_to_any)
{
	static const char *const words[] = {"pending", "in_progress", "completed"};
	sheaf_session *s = t_new(t, "s");
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++) {
			TASK(s, "a", .content = "x", .status = words[i]);
			TASK(s, "a", .content = "x", .status = words[k]);
			CSTR(todos(t, s), t_format(t, "a:%s", words[k]));
		}
}

CASE(todo_refuses)
{
	sheaf_session *s = t_new(t, "s");
	FAILS(INVALID, TRY_TASK(s, "a", .content = "x", .status = "done"));
	FAILS(INVALID, TRY_TASK(s, "a", .content = "x", .status = ""));
	FAILS(INVALID, TRY_TASK(s, "a", .content = "x", .status = "Pending"));
	FAILS(INVALID, TRY_TASK(s, "a", .content = ""));
	FAILS(INVALID, TRY_TASK(s, "a", .content = NULL));
	FAILS(INVALID, TRY_TASK(s, "", .content = "x"));
	FAILS(INVALID, TRY_TASK(s, "a\n", .content = "x"));
	FAILS(INVALID, TRY_TASK(s, "a", .content = "\xff"));
	FAILS(LIMIT, TRY_TASK(s, t_fill(t, 'x', SHEAF_ID_BYTES_MAX + 1), .content = "x"));
	FAILS(INVALID, sheaf_session_set_todo(s, NULL, NULL, NULL, NULL, &t->err));
	EQ(t_revision(t, s), 0);
	TASK(s, t_fill(t, 'x', SHEAF_ID_BYTES_MAX), .content = "x");
}

CASE(todos_pass_over_what_is_none)
{
	sheaf_session *s = t_new(t, "s");
	JSON(s, "todo", "{\"todo\":{}}");
	JSON(s, "todo", "{\"todo\":{\"id\":\"a\",\"content\":\"x\",\"status\":\"later\"}}");
	JSON(s, "todo", "{\"todo\":{\"id\":7,\"content\":\"x\",\"status\":\"pending\"}}");
	JSON(s, "todo",
	     "{\"todo\":{\"id\":\"b\",\"content\":\"x\",\"status\":\"pending\",\"more\":1}}");
	CSTR(todos(t, s), "b:pending");
}

CASE(todos_are_no_part_of_the_tree)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	TASK(s, "a", .content = "x");
	PLAN(s, "p", .content = "x");
	LEAF(s, "u1");
	IDS(t_path(t, s, NULL), "u1");
	ITEMS(t_context(t, s), "u1");
	BRANCH(s, "main", "");
	CSTR(todos(t, s), "a:pending"); /* clearing leaves facts alone */
	SAY(s, "user", "2", .id = "u2");
	CSTR(todos(t, s), "a:pending");
}

CASE(todos_of_a_fork)
{
	sheaf_session *s = t_new(t, "s");
	TASK(s, "a", .content = "x");
	SAY(s, "user", "1", .id = "u1");
	TASK(s, "late", .content = "x");
	SAY(s, "user", "2", .id = "u2");
	sheaf_session *fork = t_fork(t, s, "u1", "fork"), *whole = t_fork(t, s, "u2", "whole");
	CSTR(todos(t, fork), "a:pending"); /* what was there at its base */
	CSTR(todos(t, whole), "a:pending late:pending");
	TASK(fork, "a", .content = "x", .status = "completed");
	TASK(fork, "own", .content = "x");
	TASK(s, "a", .content = "x", .status = "in_progress");
	CSTR(todos(t, fork), "a:completed own:pending");
	CSTR(todos(t, s), "a:in_progress late:pending");
}

CASE(todos_of_a_copy)
{
	sheaf_session *s = t_new(t, "s"), *copy = NULL;
	sheaf_key key = t_key(t, "copy");
	TASK(s, "a", .content = "x");
	TASK(s, "a", .content = "x", .status = "completed");
	PLAN(s, "p", .content = "x", .status = "approved");
	OK(sheaf_session_copy(&copy, s, t->store, &key, &t->err));
	t_keep(t, copy);
	CSTR(todos(t, copy), "a:completed");
	CSTR(plans(t, copy), "p:approved");
}

CASE(todos_many)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_todos *list = NULL;
	for (int i = 0; i < 150; i++) {
		if (i % 3 == 0)
			SAY(s, "user", "x");
		TASK(s, t_format(t, "t%d", i % 50), .content = t_format(t, "%d", i));
	}
	OK(sheaf_session_todos(&list, s, &t->err));
	EQ(list->count, 50);
	for (size_t i = 0; i < 50; i++)
		CSTR(text_of(t, list->items[i]->content), t_format(t, "%zu", 100 + i));
	sheaf_todos_free(list);
}

/* ---- Plans ------------------------------------------------------------------- */

CASE(plan_as_given)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_plans *list = NULL;
	PLAN(s, "p", .name = "Parser", .content = "1. measure\n2. table", .status = "failed",
	     .error = "no time");
	OK(sheaf_session_plans(&list, s, &t->err));
	EQ(list->count, 1);
	const sheaf_plan *x = list->items[0];
	TEXT(x->id, "p");
	TEXT(x->name, "Parser");
	TEXT(x->content, "1. measure\n2. table");
	TEXT(x->status, "failed");
	TEXT(x->error, "no time");
	EQ(x->seq, t->out.seq);
	sheaf_plans_free(list);
}

CASE(plan_statuses)
{
	static const char *const words[] = {"draft",     "approved", "executing",
	                                    "completed", "failed",   "cancelled"};
	sheaf_session *s = t_new(t, "s");
	PLAN(s, "p", .content = "x");
	PLAN(s, "q", .content = "x");
	CSTR(plans(t, s), "p:draft q:draft");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		PLAN(s, "p", .content = "x", .status = words[i]);
		CSTR(plans(t, s), t_format(t, "p:%s q:draft", words[i]));
	}
	FAILS(INVALID, TRY_PLAN(s, "p", .content = "x", .status = "pending"));
	FAILS(INVALID, TRY_PLAN(s, "p", .content = "x", .status = "canceled"));
	FAILS(INVALID, TRY_PLAN(s, "p", .content = ""));
	CSTR(plans(t, t_restart(t, "s")), "p:cancelled q:draft");
}

/* ---- Summaries and compactions -------------------------------------------------- */

CASE(summaries_with_their_leaf)
{
	sheaf_session *s = t_new(t, "s");
	OK(sheaf_session_add_summary(s, S("nothing"), S(NULL), NULL, NULL, NULL, &t->err));
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "user", "2", .id = "u2");
	OK(sheaf_session_add_summary(s, S("two"), S(NULL), NULL, NULL, NULL, &t->err));
	OK(sheaf_session_add_summary(s, S("one"), S("u1"), NULL, NULL, NULL, &t->err));
	LABEL(s, "u2", "here");
	OK(sheaf_session_add_summary(s, S("here"), S("here"), NULL, NULL, NULL, &t->err));
	FAILS(NOT_FOUND,
	      sheaf_session_add_summary(s, S("x"), S("nowhere"), NULL, NULL, NULL, &t->err));
	FAILS(INVALID, sheaf_session_add_summary(s, S(""), S(NULL), NULL, NULL, NULL, &t->err));
	CSTR(summaries(t, s), "nothing@- two@u2 one@u1 here@u2");
	ITEMS(t_context(t, s), "u1 u2");
	CSTR(summaries(t, t_restart(t, "s")), "nothing@- two@u2 one@u1 here@u2");
}

static const char *compactions(suite *t, sheaf_session *s, const char *branch)
{
	sheaf_compactions *list = NULL;
	const char *text = "";
	OK(sheaf_session_compactions(&list, s, S(branch), &t->err));
	for (size_t i = 0; i < list->count; i++)
		text = t_format(t, "%s%s%s", text, i ? " " : "", text_of(t, list->items[i]->id));
	sheaf_compactions_free(list);
	return text;
}

CASE(compactions_of_the_log_and_of_a_branch)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_compactions *list = NULL;
	CSTR(compactions(t, s, NULL), "");
	CSTR(compactions(t, s, ""), "");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	COMPACT(s, "first", "a1", .id = "c1");
	SAY(s, "user", "3", .id = "u2");
	BRANCH(s, "side", "u2");
	COMPACT(s, "second", "u2", .id = "c2");
	SAY(s, "user", "4", .id = "s1", .branch = "side");
	COMPACT(s, "third", "s1", .id = "c3", .branch = "side");
	CSTR(compactions(t, s, NULL), "c1 c2 c3");
	CSTR(compactions(t, s, "main"), "c1 c2");
	CSTR(compactions(t, s, "side"), "c1 c3");
	FAILS(NOT_FOUND, sheaf_session_compactions(&list, s, S("nowhere"), &t->err));
}

CASE(compaction_as_recorded)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_compactions *list = NULL;
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "user", "2", .id = "u2");
	JSON(s, "compaction",
	     "{\"compaction\":{\"summary\":\"short\",\"first_kept_entry_id\":\"u2\","
	     "\"tokens_before\":1200,\"tokens_after\":80,\"trigger\":\"threshold\"}}",
	     .id = "c1", .time_us = 1700000000000000);
	OK(sheaf_session_compactions(&list, s, S(NULL), &t->err));
	EQ(list->count, 1);
	const sheaf_compaction_info *c = list->items[0];
	TEXT(c->id, "c1");
	TEXT(c->branch, "main");
	TEXT(c->summary, "short");
	TEXT(c->trigger, "threshold");
	TEXT(c->first_kept_id, "u2");
	EQ(c->tokens_before, 1200);
	EQ(c->tokens_after, 80);
	EQ(c->seq, 3);
	EQ(c->time_us, 1700000000000000);
	sheaf_compactions_free(list);
}

CASE(todos_are_not_the_conversation)
{
	sheaf_session *s = t_new(t, "s"), *other = t_existing(t, "s");
	sheaf_todos *list = NULL;
	SAY(s, "user", "q", .id = "u1");
	SAY(other, "user", "meanwhile", .id = "u2");
	TASK(s, "t", .content = "x");
	OK(sheaf_session_todos(&list, s, &t->err));
	sheaf_todos_free(list);
	CSTR(plans(t, s), "");
	OK(sheaf_session_add_summary(s, S("short"), S("u1"), NULL, NULL, NULL, &t->err));
	CSTR(summaries(t, s), "short@u1");
	/* A turn that was thought out before u2 must learn of it. */
	sheaf_batch *b = t_batch(t);
	ADD(b, "assistant", "answer", .id = "a1");
	FAILS(STALE, sheaf_session_append_turn(s, b, S("t1"), S(NULL), NULL, NULL, NULL, &t->err));
}
