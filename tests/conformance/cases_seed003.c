/* The fourteen tests of seed 003: a session with an id, messages, and clear. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "suite.h"

CASE(session003_new)
{
	sheaf_session *s = t_new(t, "");
	CHECK(sheaf_session_id(s)[0] != 0);
	EQ(t_path(t, s, NULL)->count, 0);
}

CASE(session003_id_unique)
{
	const char *a = sheaf_session_id(t_new(t, ""));
	const char *b = sheaf_session_id(t_new(t, ""));
	CHECK(strcmp(a, b) != 0);
}

CASE(session003_id_stable)
{
	sheaf_session *s = t_new(t, "");
	const char *first = t_format(t, "%s", sheaf_session_id(s));
	SAY(s, "user", "x");
	CSTR(sheaf_session_id(s), first);
	CSTR(sheaf_session_id(s), first);
	s = t_restart(t, first);
	CSTR(sheaf_session_id(s), first);
}

CASE(session003_add_message_and_messages)
{
	sheaf_session *s = t_new(t, "");
	SAY(s, "user", "Hello", .time_us = 1700000000000000);
	const sheaf_records *m = t_path(t, s, NULL);
	EQ(m->count, 1);
	TEXT(m->items[0]->message->role, "user");
	char text[32];
	EQ(sheaf_message_view_text(m->items[0]->message, text, sizeof(text)), 5);
	CSTR(text, "Hello");
	EQ(m->items[0]->message->part_count, 1);
	EQ(m->items[0]->time_us, 1700000000000000); /* the caller's time */
}

CASE(session003_messages_order)
{
	sheaf_session *s = t_new(t, "");
	static const char *const texts[] = {"first", "second", "third", "fourth"};
	for (int i = 0; i < 4; i++)
		SAY(s, i % 2 ? "assistant" : "user", texts[i]);
	const sheaf_records *m = t_path(t, s, NULL);
	EQ(m->count, 4);
	for (size_t i = 0; i < 4; i++)
		TEXT(m->items[i]->message->parts[0]->text, texts[i]);
}

CASE(session003_messages_roles)
{
	sheaf_session *s = t_new(t, "");
	static const char *const roles[] = {"system", "user", "assistant", "tool"};
	for (size_t i = 0; i < 4; i++) {
		SAY(s, roles[i], roles[i]);
		const sheaf_records *m = t_path(t, s, NULL);
		EQ(m->count, i + 1);
		TEXT(m->items[i]->message->role, roles[i]);
		TEXT(m->items[i]->message->parts[0]->text, roles[i]);
	}
}

CASE(session003_messages_tool_calls)
{
	sheaf_session *s = t_new(t, "");
	sheaf_message *m = sheaf_message_new("assistant");
	sheaf_message_tool_use(m, S("call_1"), S("read_file"), S("{\"path\":\"a.go\"}"));
	sheaf_message_tool_use(m, S("call_2"), S("list"), S("{}"));
	int rc = sheaf_session_append_message(s, m, NULL, NULL, NULL, &t->err);
	sheaf_message_free(m);
	EQ(rc, 0);
	ANSWER(s, "call_1", "package main");
	const sheaf_records *all = t_path(t, s, NULL);
	EQ(all->count, 2);
	const sheaf_message_view *v = all->items[0]->message;
	EQ(v->part_count, 2);
	TEXT(v->parts[0]->id, "call_1");
	TEXT(v->parts[0]->name, "read_file");
	TEXT(v->parts[0]->input, "{\"path\":\"a.go\"}");
	TEXT(v->parts[1]->id, "call_2");
	v = all->items[1]->message;
	TEXT(v->role, "tool");
	TEXT(v->parts[0]->tool_use_id, "call_1");
	TEXT(v->parts[0]->text, "package main");
}

CASE(session003_messages_defensive_copy)
{
	sheaf_session *s = t_new(t, "");
	SAY(s, "user", "original");
	const sheaf_records *a = t_path(t, s, NULL);
	/* Through a cast a caller can spoil his own copy; the session's stays. */
	memset((char *)(uintptr_t)a->items[0]->message->parts[0]->text.ptr, 'X', 8);
	const sheaf_records *b = t_path(t, s, NULL);
	EQ(b->count, 1);
	TEXT(b->items[0]->message->parts[0]->text, "original");
	TEXT(t_context(t, s)->items[0]->message->parts[0]->text, "original");
}

CASE(session003_messages_tool_calls_defensive_copy)
{
	sheaf_session *s = t_new(t, "");
	CALL(s, "call_1", "read_file");
	const sheaf_records *a = t_path(t, s, NULL);
	const sheaf_part *p = a->items[0]->message->parts[0];
	memset((char *)(uintptr_t)p->name.ptr, 'X', p->name.len);
	memset((char *)(uintptr_t)p->id.ptr, 'X', p->id.len);
	const sheaf_part *q = t_path(t, s, NULL)->items[0]->message->parts[0];
	TEXT(q->name, "read_file");
	TEXT(q->id, "call_1");
}

CASE(session003_clear)
{
	sheaf_session *s = t_new(t, "");
	SAY(s, "user", "a");
	SAY(s, "assistant", "b");
	OK(sheaf_session_clear(s, &t->err));
	EQ(t_path(t, s, NULL)->count, 0);
}

CASE(session003_clear_then_add)
{
	sheaf_session *s = t_new(t, "");
	SAY(s, "user", "before");
	OK(sheaf_session_clear(s, &t->err));
	SAY(s, "user", "after");
	const sheaf_records *m = t_path(t, s, NULL);
	EQ(m->count, 1);
	TEXT(m->items[0]->message->parts[0]->text, "after");
}

typedef struct goroutine {
	sheaf_session *session;
	int number;
	int rc;
} goroutine;

static void *add_one(void *argument)
{
	goroutine *g = argument;
	char text[32];
	snprintf(text, sizeof(text), "message %d", g->number);
	g->rc = sheaf_session_append_text(g->session, "user", sheaf_str_of(text), NULL, NULL);
	return NULL;
}

static void *read_one(void *argument)
{
	goroutine *g = argument;
	sheaf_records *r = NULL;
	g->rc = sheaf_session_path(&r, g->session, sheaf_str_of(NULL), sheaf_str_of(NULL), 0, NULL);
	for (size_t i = 0; g->rc == 0 && i < r->count; i++)
		if (!r->items[i]->message || r->items[i]->message->part_count != 1)
			g->rc = -1000;
	sheaf_records_free(r);
	return NULL;
}

static void *clear_one(void *argument)
{
	goroutine *g = argument;
	g->rc = sheaf_session_clear(g->session, NULL);
	return NULL;
}

static void go(suite *t, sheaf_session *s, int count, void *(*even)(void *), void *(*odd)(void *))
{
	pthread_t threads[100];
	goroutine all[100];
	for (int i = 0; i < count; i++) {
		all[i] = (goroutine){s, i, 1};
		CHECK(pthread_create(&threads[i], NULL, i % 2 ? odd : even, &all[i]) == 0);
	}
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < count; i++)
		EQ(all[i].rc, 0);
}

CASE(session003_concurrent_add_message)
{
	sheaf_session *s = t_new(t, "");
	go(t, s, 100, add_one, add_one);
	const sheaf_records *m = t_path(t, s, NULL);
	EQ(m->count, 100);
	bool seen[100] = {false};
	for (size_t i = 0; i < 100; i++) {
		int n = -1;
		char text[64];
		sheaf_message_view_text(m->items[i]->message, text, sizeof(text));
		CHECK(sscanf(text, "message %d", &n) == 1 && n >= 0 && n < 100 && !seen[n]);
		seen[n] = true;
	}
}

CASE(session003_concurrent_add_and_read)
{
	sheaf_session *s = t_new(t, "");
	go(t, s, 100, add_one, read_one);
	EQ(t_path(t, s, NULL)->count, 50);
}

CASE(session003_concurrent_add_and_clear)
{
	sheaf_session *s = t_new(t, "");
	go(t, s, 100, add_one, clear_one);
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.kinds = SHEAF_KIND_BIT(SHEAF_KIND_MESSAGE);
	EQ(t_records(t, s, &o)->count, 50); /* cleared is not deleted */
	CHECK(t_path(t, s, NULL)->count <= 50);
}
