/* sheaf chat: a conversation with a model in the terminal, kept in a session. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "chat.h"
#include "chat_term.h"
#include "find.h"
#include "opt.h"
#include "request.h"
#include "view.h"

#define TAIL 4u         /* entries shown when a conversation goes on */
#define REMEMBERED 200u /* entries whose texts the arrows bring back */
#define STATE_SYSTEM "chat_system"

static void state_freep(sheaf_state **state)
{
	sheaf_state_free(*state);
}

static void chat_done(chat *ch)
{
	if (ch->terminal)
		term_mode(TERM_FOUND);
	line_done(&ch->line);
	sheaf_session_close(ch->session);
	model_done(&ch->model);
}

/* ---- The session ------------------------------------------------------- */

/* The system text stays with the session, so that going on needs no options. */
static int store_system(chat *ch)
{
	_cleanup_(buf_free) buf json = BUF_INIT(SIZE_MAX);
	if (!ch->system_changed)
		return 0;
	buf_json(&json, ch->system.text);
	int rc = sheaf_session_state_set(ch->session, SHEAF_STR(STATE_SYSTEM), buf_view(&json),
	                                 &ch->c->err);
	if (rc == SHEAF_LIMIT)
		say(ch->c,
		    "note: the system text is too long to be remembered: give it again to go on");
	else if (rc != 0)
		return fail(ch->c);
	ch->system_changed = false;
	return 0;
}

/* A session comes to be with the first thing that is said in it. */
int chat_session(chat *ch)
{
	if (ch->session != NULL)
		return store_system(ch);
	char directory[PATH_MAX];
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	options.mode = SHEAF_OPEN_NEW;
	options.cwd = working_directory(directory);
	if (sheaf_session_open(&ch->session, ch->c->store, &ch->key, &options, &ch->c->err) != 0)
		return fail(ch->c);
	ch->key = sheaf_session_key(ch->session);
	return store_system(ch);
}

int chat_path(chat *ch, size_t limit, sheaf_records **out)
{
	if (ch->session == NULL)
		return 0;
	return sheaf_session_path(out, ch->session, sheaf_str_of(ch->branch), (sheaf_str){NULL, 0},
	                          limit, &ch->c->err) != 0
	               ? fail(ch->c)
	               : 0;
}

static int open_session(chat *ch)
{
	cli *c = ch->c;
	const char *name = c->words[0];
	bool there = false;
	int rc = open_store(c);
	if (rc != 0)
		return rc;
	ch->key = (sheaf_key){c->app, c->user, {NULL, 0}};
	if (name == NULL && !given(c, OPT_CONTINUE))
		return 0;
	if ((rc = try_session(c, name, &ch->key, &there)) != 0)
		return rc;
	if (!there && given(c, OPT_CONTINUE))
		return fail_with(c, SHEAF_NOT_FOUND, "`sheaf ls` shows the sessions there are",
		                 "there is no session '%.100s'", name);
	if (!there)
		return 0;
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	options.mode = SHEAF_OPEN_EXISTING;
	if (sheaf_session_open(&ch->session, c->store, &ch->key, &options, &c->err) != 0)
		return fail(c);
	return find_branch(c, ch->session);
}

static int open_branch(chat *ch)
{
	const char *name = ch->c->values[OPT_BRANCH];
	if (name == NULL)
		name = "main";
	if (strlen(name) >= sizeof(ch->branch))
		return usage(ch->c, "no branch has such a long name");
	snprintf(ch->branch, sizeof(ch->branch), "%s", name);
	return 0;
}

/* ---- The model --------------------------------------------------------- */

/* The system text is as it was unless another is given. */
static int take_system(chat *ch)
{
	cli *c = ch->c;
	if (ch->how.system_count != 0) {
		ch->system = ch->how.system[0];
		ch->system_changed = true;
		return 0;
	}
	_cleanup_(state_freep) sheaf_state *state = NULL;
	_cleanup_(json_freep) json_doc *doc = NULL;
	int ok = 1;
	if (ch->session != NULL &&
	    sheaf_session_state_get(&state, ch->session, SHEAF_STR(STATE_SYSTEM), NULL) == 0 &&
	    json_parse(&doc, state->items[0]->value, NULL) == 0)
		ch->system.text = arena_dup(c->memory, json_string(json_root(doc)), &ok);
	return ok ? 0 : fail_memory(c);
}

static int choose_model(chat *ch)
{
	cli *c = ch->c;
	int rc = request_options(c, &ch->how);
	if (rc == 0)
		rc = take_system(ch);
	if (rc == 0)
		rc = model_open(c, ch->session, sheaf_str_of(ch->branch), &ch->model);
	ch->how.model = ch->model.name;
	ch->how.format = ch->model.format;
	return rc;
}

/* ---- The screen -------------------------------------------------------- */

static int greet(chat *ch)
{
	cli *c = ch->c;
	_cleanup_(view_done) view v = VIEW_INIT(c, false);
	if (ch->session != NULL) {
		_cleanup_(head_freep) sheaf_head_view *head = NULL;
		_cleanup_(records_freep) sheaf_records *path = NULL;
		int rc = chat_path(ch, REMEMBERED, &path);
		if (rc != 0)
			return rc;
		if (sheaf_session_head(&head, ch->session, &c->err) != 0)
			return fail(c);
		view_session(&v, head);
		if (path->count > TAIL) {
			buf_format(&v.out, "\n%s `sheaf show` has what came before\n",
			           text_glyphs()->ellipsis);
			v.gap = true;
		}
		for (size_t i = 0; i < path->count; i++) {
			const sheaf_entry *entry = path->items[i];
			char text[4096];
			if (entry->message != NULL &&
			    str_is(entry->message->role, SHEAF_ROLE_USER) &&
			    sheaf_message_view_text(entry->message, text, sizeof(text)) <
			            sizeof(text))
				line_remember(&ch->line, sheaf_str_of(text));
			if (i + TAIL >= path->count)
				view_entry(&v, entry);
			else
				view_note(&v, entry);
		}
		buf_char(&v.out, '\n');
	}
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	const char *dot = text_glyphs()->dot;
	if (ch->session == NULL)
		buf_format(&text, "a new session %s ", dot);
	text_safe(&text, ch->how.model, TEXT_LINE);
	buf_format(&text, " %s ", dot);
	text_safe_of(&text,
	             ch->model.url != NULL ? ch->model.url : sheaf_format_provider(ch->how.format),
	             TEXT_LINE);
	if (strcmp(ch->branch, "main") != 0) {
		buf_format(&text, " %s branch ", dot);
		text_safe_of(&text, ch->branch, TEXT_LINE);
	}
	buf_format(&text, " %s /help", dot);
	print_styled(&c->screen, &v.out, STYLE_DIM, buf_view(&text));
	buf_lit(&v.out, "\n\n");
	print_out(&v.out);
	return v.out.status != 0 ? fail_memory(c) : 0;
}

static void part_from(chat *ch)
{
	if (ch->terminal && ch->session != NULL)
		say(ch->c, "`sheaf chat %s` goes on from here", sheaf_session_id(ch->session));
}

/* ---- The command ------------------------------------------------------- */

/* One thing that was said. In a pipe a failure ends the chat, a person goes on. */
static int answer(chat *ch)
{
	sheaf_str text = buf_view(&ch->line.text);
	int rc = 0;
	ch->c->screen.now_us = clock_now_us(); /* a chat may be open for days */
	while (text.len != 0 && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == ' '))
		text.len--;
	if (text.len == 0)
		return 0;
	if (chat_is_command(text)) {
		rc = chat_command(ch, text);
	} else {
		if (str_starts(text, "//"))
			text = str_make(text.ptr + 1, text.len - 1);
		rc = chat_ask(ch, text);
	}
	fflush(stdout);
	return ch->terminal ? 0 : rc;
}

static int converse(chat *ch)
{
	int rc = 0;
	while (rc == 0 && !ch->over) {
		int what = line_read(&ch->line);
		if (what == LINE_CLOSED)
			break;
		if (what == LINE_FAILED)
			return fail_with(ch->c, SHEAF_STORAGE, NULL, "cannot read the input");
		rc = answer(ch);
	}
	return rc;
}

int cmd_chat(cli *c)
{
	_cleanup_(chat_done) chat ch = {.c = c, .terminal = !c->json && term_start()};
	ch.line = (line)LINE_INIT(c, ch.terminal);
	/* A tree in the middle of a conversation is part of it. */
	c->values[OPT_NO_PAGER] = "";
	int rc = open_branch(&ch);
	if (rc == 0)
		rc = open_session(&ch);
	if (rc == 0)
		rc = choose_model(&ch);
	if (rc == 0 && ch.terminal)
		rc = greet(&ch);
	if (rc == 0)
		rc = converse(&ch);
	part_from(&ch);
	return rc;
}
