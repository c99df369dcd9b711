/*
 * What the tests of the agent share: a model that says what a script says, and
 * looks at every request it gets.
 *
 *     kit_open(&k, "memory:");
 *     k.script = (step[]){{.body = SAYS("Hi")}, {0}};
 *     kit_run(&k, "Hello", 0);
 *     kit_path(&k, "user:Hello assistant:Hi");
 */
#ifndef TESTS_AGENT_KIT_H
#define TESTS_AGENT_KIT_H

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
#include "sheaf.h"

#define KIT_TEXT 65536

#define USAGE "\"usage\":{\"input_tokens\":10,\"output_tokens\":5}"
#define REPLY(content, stop)                                                                       \
	"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\","           \
	"\"content\":[" content "],\"stop_reason\":\"" stop "\"," USAGE "}"
#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define CALL(id, name, input)                                                                      \
	"{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":" input "}"
#define SAYS(text) REPLY(TEXT(text), "end_turn")
#define FAILS(type, text)                                                                          \
	"{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"" text "\"}}"

struct kit;

/* What the model does with one request. */
typedef struct step {
	const char *body;
	int32_t status; /* 0 = 200 */
	int32_t code;   /* returned instead of 0 */
	int64_t retry_after_us;
	void (*also)(struct kit *k); /* called before the answer */
	bool ends;                   /* after the last */
} step;

typedef struct kit {
	sheaf_store *store;
	sheaf_session *s;
	sheaf_agent *agent;
	sheaf_agent_options how;
	sheaf_render_options render;
	sheaf_compaction_options compaction;
	sheaf_run_options call;
	sheaf_turn *turn;
	sheaf_error err;
	sheaf_cancel *cancel;
	const step *script;
	size_t at; /* requests so far */
	char last_request[KIT_TEXT];
	char events[KIT_TEXT]; /* their names, one after the other */
	char text[KIT_TEXT];
	bool quiet; /* no assertions inside callbacks: memory is short */
} kit;

/* Every request keeps the provider's rules. */
static UNUSED void kit_check(kit *k, const sheaf_request *request)
{
	sheaf_violations *broken = NULL;
	if (k->quiet)
		return;
	assert_int_equal(sheaf_request_check(&broken, request->format, request->body, &k->err), 0);
	for (size_t i = 0; i < broken->count; i++)
		print_error("%.*s: %.*s\n", (int)broken->items[i]->where.len,
		            broken->items[i]->where.ptr, (int)broken->items[i]->text.len,
		            broken->items[i]->text.ptr);
	assert_int_equal(broken->count, 0);
	sheaf_violations_free(broken);
}

static UNUSED int kit_send(void *ctx, const sheaf_request *request, sheaf_answer *answer,
                           sheaf_error *err)
{
	kit *k = ctx;
	const step *now = &k->script[k->at];
	kit_check(k, request);
	str_copy_cut(k->last_request, KIT_TEXT, request->body);
	if (now->ends) {
		print_error("no more is in the script: %s\n", k->last_request);
		fail();
	}
	k->at++;
	if (now->also != NULL)
		now->also(k);
	if (now->status != 0 || now->retry_after_us != 0)
		sheaf_answer_status(answer, now->status != 0 ? now->status : 200,
		                    now->retry_after_us != 0 ? now->retry_after_us : -1);
	int rc = 0;
	/* In two pieces, to be cut somewhere. */
	size_t len = now->body != NULL ? strlen(now->body) : 0;
	if (len != 0)
		rc = sheaf_answer_feed(answer, (sheaf_str){now->body, len / 2}, err);
	if (rc == 0 && len != 0)
		rc = sheaf_answer_feed(answer, (sheaf_str){now->body + len / 2, len - len / 2},
		                       err);
	if (rc != 0)
		return rc;
	if (now->code != 0 && err != NULL) {
		memset(err, 0, sizeof(*err));
		err->code = now->code;
		(void)snprintf(err->message, sizeof(err->message), "scripted");
	}
	return now->code;
}

static UNUSED void kit_event(void *ctx, const sheaf_event *event)
{
	static const char *const names[] = {
		"?",        "turn_start",    "request",     "delta", "message_end", "tool_start",
		"tool_end", "compact_start", "compact_end", "retry", "turn_end",    "interrupted"};
	kit *k = ctx;
	size_t len = strlen(k->events);
	(void)snprintf(k->events + len, KIT_TEXT - len, "%s%s", len != 0 ? " " : "",
	               names[event->kind]);
	len = strlen(k->events);
	if (event->kind == SHEAF_EVENT_DELTA)
		(void)snprintf(k->events + len, KIT_TEXT - len, "(%.*s)", (int)event->text.len,
		               event->text.ptr);
	if (event->kind == SHEAF_EVENT_MESSAGE_END)
		(void)snprintf(k->events + len, KIT_TEXT - len, "(%.*s)",
		               (int)event->entry->message->role.len,
		               event->entry->message->role.ptr);
}

/* A tool that answers with its input. */
static UNUSED int kit_echo(void *ctx, const sheaf_call *call, sheaf_tool_answer *answer,
                           sheaf_error *err)
{
	(void)ctx, (void)err;
	return sheaf_tool_answer_text(answer, call->input);
}

/* A tool that waits for somebody. */
static UNUSED int kit_wait(void *ctx, const sheaf_call *call, sheaf_tool_answer *answer,
                           sheaf_error *err)
{
	(void)ctx, (void)err;
	if (!call->approved)
		return SHEAF_TOOL_SUSPEND;
	return sheaf_tool_answer_text(answer, SHEAF_STR("done"));
}

static UNUSED const sheaf_agent_tool kit_tools[] = {
	{{{"echo", 4}, {"Says it again", 13}, {NULL, 0}}, kit_echo, NULL},
	{{{"ask", 3}, {"Asks somebody", 13}, {NULL, 0}}, kit_wait, NULL},
};

static UNUSED void kit_prepare(kit *k, const char *url)
{
	memset(k, 0, sizeof(*k));
	sheaf_key key = sheaf_key_of("s");
	if (url != NULL) {
		assert_int_equal(sheaf_open(&k->store, url, NULL, &k->err), 0);
		assert_int_equal(sheaf_session_open(&k->s, k->store, &key, NULL, &k->err), 0);
	}
	k->render = (sheaf_render_options)SHEAF_RENDER_OPTIONS_INIT;
	k->render.model = SHEAF_STR("claude-sonnet-4-5");
	k->compaction = (sheaf_compaction_options)SHEAF_COMPACTION_OPTIONS_INIT;
	k->how = (sheaf_agent_options)SHEAF_AGENT_OPTIONS_INIT;
	k->how.model = (sheaf_model){kit_send, k, SHEAF_FORMAT_ANTHROPIC, 0};
	k->how.session = k->s;
	k->how.render = &k->render;
	k->how.compaction = &k->compaction;
	k->how.tools = kit_tools;
	k->how.tool_count = COUNT_OF(kit_tools);
	k->how.on_event = kit_event;
	k->how.event_ctx = k;
	k->how.backoff_us = 1000;
	k->call = (sheaf_run_options)SHEAF_RUN_OPTIONS_INIT;
	k->cancel = sheaf_cancel_new();
	assert_non_null(k->cancel);
	k->call.cancel = k->cancel;
}

static UNUSED void kit_start(kit *k)
{
	assert_int_equal(sheaf_agent_new(&k->agent, &k->how, &k->err), 0);
}

static UNUSED void kit_open(kit *k, const char *url)
{
	kit_prepare(k, url);
	kit_start(k);
}

static UNUSED void kit_close(kit *k)
{
	sheaf_turn_free(k->turn);
	sheaf_agent_free(k->agent);
	sheaf_cancel_free(k->cancel);
	sheaf_session_close(k->s);
	sheaf_close(k->store);
}

/* Runs a turn and frees the one before. NULL: without input. */
static UNUSED void kit_run(kit *k, const char *text, int want)
{
	sheaf_turn_free(k->turn);
	k->turn = NULL;
	k->events[0] = '\0';
	int rc = text != NULL ? sheaf_agent_run_text(&k->turn, k->agent, sheaf_str_of(text),
	                                             &k->call, &k->err)
	                      : sheaf_agent_run(&k->turn, k->agent, NULL, 0, &k->call, &k->err);
	if (rc != want)
		print_error("%s: %s\n", sheaf_code_name(rc), k->err.message);
	assert_int_equal(rc, want);
}

static UNUSED void kit_part(char *out, size_t room, const sheaf_part *part)
{
	size_t len = strlen(out);
	sheaf_str text = part->text;
	const char *mark = "";
	if (part->kind == SHEAF_PART_TOOL_USE) {
		text = part->id;
		mark = "@";
	} else if (part->kind == SHEAF_PART_TOOL_RESULT) {
		mark = part->is_error == 1 ? "!" : "=";
	}
	(void)snprintf(out + len, room - len, "%s%.*s", mark, (int)text.len, text.ptr);
}

/* The path in words: "role:text", calls as @id, answers as =text or !text. */
static UNUSED const char *kit_words(kit *k, const sheaf_records *path)
{
	k->text[0] = '\0';
	for (size_t i = 0; i < path->count; i++) {
		const sheaf_message_view *m = path->items[i]->message;
		size_t len = strlen(k->text);
		sheaf_str role = m != NULL ? m->role : path->items[i]->type;
		(void)snprintf(k->text + len, KIT_TEXT - len, "%s%.*s:", len != 0 ? " " : "",
		               (int)role.len, role.ptr);
		for (size_t p = 0; m != NULL && p < m->part_count; p++)
			kit_part(k->text, KIT_TEXT, m->parts[p]);
	}
	return k->text;
}

static UNUSED void kit_path(kit *k, const char *want)
{
	sheaf_records *path = NULL;
	assert_int_equal(sheaf_session_path(&path, k->s, (sheaf_str){NULL, 0}, (sheaf_str){NULL, 0},
	                                    0, &k->err),
	                 0);
	assert_string_equal(kit_words(k, path), want);
	sheaf_records_free(path);
}

/* The outcomes of all turns that have ended, oldest first. */
static UNUSED void kit_ends(kit *k, const char *want)
{
	sheaf_records *ends = NULL;
	sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
	char got[1024] = "";
	how.kinds = SHEAF_KIND_BIT(SHEAF_KIND_TURN_END);
	assert_int_equal(sheaf_session_records(&ends, k->s, &how, &k->err), 0);
	for (size_t i = 0; i < ends->count; i++) {
		const char *at = strstr(ends->items[i]->line.ptr, "\"outcome\":\"");
		assert_non_null(at);
		at += 11;
		size_t len = strlen(got);
		(void)snprintf(got + len, sizeof(got) - len, "%s%.*s", len != 0 ? " " : "",
		               (int)strcspn(at, "\""), at);
	}
	sheaf_records_free(ends);
	assert_string_equal(got, want);
}

/* The session as it is makes a valid request. */
static UNUSED void kit_renders(kit *k)
{
	sheaf_context *context = NULL;
	sheaf_request *request = NULL;
	sheaf_render_options how = k->render;
	how.format = SHEAF_FORMAT_ANTHROPIC;
	assert_int_equal(sheaf_session_context(&context, k->s, NULL, &k->err), 0);
	assert_int_equal(sheaf_render(&request, context, &how, &k->err), 0);
	kit_check(k, request);
	sheaf_request_free(request);
	sheaf_context_free(context);
}

#endif
