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

/* What the state of a session keeps for going on: the system text, and where the model was. */
#define STATE_SYSTEM SHEAF_STR("chat_system")
#define STATE_URL SHEAF_STR("chat_url")

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

/* Goes with the next record. */
static int remember(chat *ch, sheaf_str key, sheaf_str *stored, sheaf_str value)
{
	_cleanup_(buf_free) buf json = BUF_INIT(SIZE_MAX);
	if (str_eq(*stored, value))
		return 0;
	buf_json(&json, value);
	int rc = sheaf_session_state_set(ch->session, key, buf_view(&json), &ch->c->err);
	if (rc == SHEAF_LIMIT)
		say(ch->c,
		    "note: the system text is too long to be remembered: give it again to go on");
	else if (rc != 0)
		return fail(ch->c);
	*stored = value;
	return 0;
}

static int remember_all(chat *ch)
{
	int rc = remember(ch, STATE_SYSTEM, &ch->stored_system, ch->system.text);
	if (rc == 0)
		rc = remember(ch, STATE_URL, &ch->stored_url, sheaf_str_of(ch->model.url));
	return rc;
}

static int recall(chat *ch, sheaf_str key, sheaf_str *out)
{
	_cleanup_(state_freep) sheaf_state *state = NULL;
	_cleanup_(json_freep) json_doc *doc = NULL;
	int ok = 1;
	if (ch->session != NULL && sheaf_session_state_get(&state, ch->session, key, NULL) == 0 &&
	    json_parse(&doc, state->items[0]->value, NULL) == 0)
		*out = arena_dup(ch->c->memory, json_string(json_root(doc)), &ok);
	return ok ? 0 : fail_memory(ch->c);
}

/* A session comes to be with the first thing that is said in it. */
int chat_session(chat *ch)
{
	if (ch->session != NULL)
		return remember_all(ch);
	char directory[PATH_MAX];
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	options.mode = SHEAF_OPEN_NEW;
	options.cwd = working_directory(directory);
	if (sheaf_session_open(&ch->session, ch->c->store, &ch->key, &options, &ch->c->err) != 0)
		return fail(ch->c);
	ch->key = sheaf_session_key(ch->session);
	return remember_all(ch);
}

int chat_path(chat *ch, size_t limit, sheaf_records **out)
{
	if (ch->session == NULL)
		return 0;
	int rc;
	do {
		rc = sheaf_session_path(out, ch->session, sheaf_str_of(ch->branch),
		                        (sheaf_str){NULL, 0}, limit, &ch->c->err);
		limit /= 2;
	} while (rc == SHEAF_TOO_LARGE && limit != 0);
	return rc != 0 ? fail(ch->c) : 0;
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

/*
 * A conversation with a server of one's own is not carried on with a provider
 * because an option was forgotten. Nor is the address simply taken: a session
 * may come from somebody else, and the key would go there.
 */
static int check_url(chat *ch)
{
	if (model_url(ch->c) != NULL || ch->stored_url.len == 0 || given(ch->c, OPT_FORMAT))
		return 0;
	return fail_with(ch->c, SHEAF_INVALID, "--url goes on there, --format with a provider",
	                 "this conversation was held at %.*s",
	                 (int)(ch->stored_url.len < 120 ? ch->stored_url.len : 120),
	                 ch->stored_url.ptr);
}

static int choose_model(chat *ch)
{
	cli *c = ch->c;
	int rc = request_options(c, &ch->how);
	if (rc == 0)
		rc = recall(ch, STATE_SYSTEM, &ch->stored_system);
	if (rc == 0)
		rc = recall(ch, STATE_URL, &ch->stored_url);
	if (rc == 0)
		rc = check_url(ch);
	if (rc != 0)
		return rc;
	ch->system.text = ch->how.system_count != 0 ? ch->how.system[0].text : ch->stored_system;
	rc = model_open(c, ch->session, sheaf_str_of(ch->branch), &ch->model);
	ch->how.model = ch->model.name;
	ch->how.format = ch->model.format;
	return rc;
}

/* ---- The screen -------------------------------------------------------- */

/* The end of the conversation; what the user said goes where the arrows find it. */
static int show_tail(chat *ch, view *v)
{
	_cleanup_(head_freep) sheaf_head_view *head = NULL;
	_cleanup_(records_freep) sheaf_records *path = NULL;
	bool unanswered = false;
	int rc = chat_path(ch, REMEMBERED, &path);
	if (rc != 0)
		return rc;
	if (sheaf_session_head(&head, ch->session, &ch->c->err) != 0)
		return fail(ch->c);
	view_session(v, head);
	if (path->count > TAIL)
		buf_format(&v->out, "\n%s `sheaf show` has what came before\n",
		           text_glyphs()->ellipsis);
	for (size_t i = 0; i < path->count; i++) {
		const sheaf_entry *entry = path->items[i];
		char text[4096];
		if (entry->message != NULL) {
			unanswered = str_is(entry->message->role, SHEAF_ROLE_USER);
			size_t len = sheaf_message_view_text(entry->message, text, sizeof(text));
			if (unanswered && len < sizeof(text))
				line_remember(&ch->line, str_make(text, len));
		}
		if (i + TAIL >= path->count)
			view_entry(v, entry);
		else
			view_note(v, entry);
	}
	buf_char(&v->out, '\n');
	if (unanswered)
		buf_lit(&v->out, "what was said last has no answer; /retry asks for it\n\n");
	return 0;
}

static int greet(chat *ch)
{
	cli *c = ch->c;
	_cleanup_(view_done) view v = VIEW_INIT(c, false);
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	const char *dot = text_glyphs()->dot;
	int rc = ch->session != NULL ? show_tail(ch, &v) : 0;
	if (rc != 0)
		return rc;
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
