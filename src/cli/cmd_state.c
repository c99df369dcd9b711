/* sheaf state: small named values of a session, its user and its app. */
#include <string.h>

#include "base/json.h"
#include "find.h"
#include "view.h"

static void state_freep(sheaf_state **state)
{
	sheaf_state_free(*state);
}

/* What the words ask for. */
typedef struct asked {
	const char *session; /* NULL: the newest */
	const char *verb;    /* NULL: list */
	const char *key;
	const char *value;
} asked;

static const struct verb {
	const char *name;
	int words; /* after it */
} verbs[] = {{"get", 1}, {"set", 2}, {"rm", 1}, {"replay", 0}};

/* Whether the words from `at` on are a verb and what belongs to it. */
static bool take_verb(const cli *c, int at, asked *out)
{
	for (size_t i = 0; at < c->word_count && i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(c->words[at], verbs[i].name) != 0 ||
		    c->word_count - at - 1 != verbs[i].words)
			continue;
		out->verb = verbs[i].name;
		out->key = verbs[i].words > 0 ? c->words[at + 1] : NULL;
		out->value = verbs[i].words > 1 ? c->words[at + 2] : NULL;
		return true;
	}
	return false;
}

static bool is(const asked *a, const char *verb)
{
	return a->verb != NULL && strcmp(a->verb, verb) == 0;
}

/* ---- Showing --------------------------------------------------------------- */

static int show_state(cli *c, const sheaf_state *state, bool value_only)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX), text = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < state->count; i++) {
		const sheaf_state_value *v = state->items[i];
		if (c->json) {
			js_open(&out, NULL, '{');
			js_str(&out, "key", v->key);
			js_raw(&out, "value", v->value);
			js_close(&out, '}');
		} else {
			buf_reset(&text);
			text_safe(&text, v->key, TEXT_ID);
			if (!value_only) {
				print_styled(&c->screen, &out, STYLE_TITLE, buf_view(&text));
				buf_lit(&out, " = ");
			}
			js_line(&out, v->value);
		}
		buf_char(&out, '\n');
	}
	print_out(&out);
	if (state->count == 0 && !c->json)
		say(c, "no state");
	return out.status != 0 ? fail_memory(c) : 0;
}

/* ---- Setting --------------------------------------------------------------- */

/* The value as JSON: what is none is text. */
static sheaf_str value_of(buf *room, const char *value)
{
	sheaf_str text = sheaf_str_of(value);
	if (text.len != 0 && json_check(text, JSON_NONE, NULL) == 0)
		return text;
	buf_json(room, text);
	return buf_view(room);
}

static int say_set(cli *c, const asked *a, const sheaf_appended *done)
{
	bool pending = done != NULL && done->app_state == SHEAF_APP_STATE_PENDING;
	if (c->json) {
		_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
		js_open(&out, NULL, '{');
		if (done != NULL)
			js_appended(&out, done);
		js_text(&out, "key", a->key);
		js_bool(&out, "pending", pending);
		js_close(&out, '}');
		buf_char(&out, '\n');
		print_out(&out);
	} else {
		say(c, "%.300s is %s", a->key, is(a, "rm") ? "gone" : "set");
	}
	if (pending)
		say(c,
		    "it is stored, but the app does not have it yet: `sheaf state %.300s replay`",
		    a->session != NULL ? a->session : "SESSION");
	return 0;
}

/* A record that says nothing but this. */
static int set_on_session(cli *c, sheaf_session *session, const asked *a)
{
	_cleanup_(buf_free) buf delta = BUF_INIT(SIZE_MAX), room = BUF_INIT(SIZE_MAX);
	if (strncmp(a->key, "temp:", 5) == 0)
		return usage(c, "temp: values are never stored");
	buf_char(&delta, '{');
	buf_json(&delta, sheaf_str_of(a->key));
	buf_char(&delta, ':');
	buf_str(&delta, is(a, "rm") ? SHEAF_STR("null") : value_of(&room, a->value));
	buf_char(&delta, '}');
	if (delta.status != 0 || room.status != 0)
		return fail_memory(c);
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	entry.state_delta = buf_view(&delta);
	sheaf_appended done = SHEAF_APPENDED_INIT;
	if (sheaf_session_append_json(session, SHEAF_STR("session_info"),
	                              SHEAF_STR("{\"session_info\":{}}"), &entry, NULL, &done,
	                              &c->err) != 0)
		return fail(c);
	return say_set(c, a, &done);
}

static int replay(cli *c, sheaf_session *session)
{
	uint64_t applied = 0;
	if (sheaf_session_state_replay(session, &applied, &c->err) != 0)
		return fail(c);
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	if (c->json) {
		js_open(&out, NULL, '{');
		js_u64(&out, "applied", applied);
		js_close(&out, '}');
		buf_char(&out, '\n');
		print_out(&out);
	} else {
		text_count(&out, applied, "value", "values");
		say(c, "%.*s of the app applied again", (int)out.len, out.ptr);
	}
	return 0;
}

/* ---- A session's, a user's, an app's ------------------------------------------ */

static int on_session(cli *c, const asked *a)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	_cleanup_(state_freep) sheaf_state *state = NULL;
	bool writes = is(a, "set") || is(a, "rm") || is(a, "replay");
	int rc = writes ? open_for_writing(c, a->session, &session)
	                : open_for_reading(c, a->session, &session);
	if (rc != 0)
		return rc;
	if (is(a, "replay"))
		return replay(c, session);
	if (writes)
		return set_on_session(c, session, a);
	rc = is(a, "get") ? sheaf_session_state_get(&state, session, sheaf_str_of(a->key), &c->err)
	                  : sheaf_session_state_all(&state, session, &c->err);
	return rc != 0 ? fail(c) : show_state(c, state, is(a, "get"));
}

static int get_one(cli *c, const sheaf_state *state, const char *prefix, const char *key)
{
	size_t skip = strlen(prefix);
	for (size_t i = 0; i < state->count; i++) {
		sheaf_str have = state->items[i]->key;
		sheaf_str bare = {have.ptr + skip, have.len - skip};
		if (!sheaf_str_is(have, key) && !sheaf_str_is(bare, key))
			continue;
		const sheaf_state_value *one[1] = {state->items[i]};
		sheaf_state found = {1, one};
		return show_state(c, &found, true);
	}
	return fail_with(c, SHEAF_NOT_FOUND, NULL, "the state has no key '%.300s'", key);
}

static int on_scope(cli *c, const asked *a, bool app)
{
	_cleanup_(state_freep) sheaf_state *state = NULL;
	_cleanup_(buf_free) buf room = BUF_INIT(SIZE_MAX);
	if (is(a, "replay") || a->session != NULL)
		return usage(c, "--scope is about no session");
	if (!app && a->verb != NULL && !is(a, "get"))
		return usage(c, "a user's values are set through a session: "
		                "sheaf state SESSION set user:KEY VALUE");
	int rc = open_store(c);
	if (rc != 0)
		return rc;
	sheaf_str of = c->app.ptr != NULL ? c->app : SHEAF_STR("");
	if (is(a, "set") || is(a, "rm")) {
		sheaf_str value = is(a, "rm") ? (sheaf_str){NULL, 0} : value_of(&room, a->value);
		if (sheaf_store_state_set(c->store, of, sheaf_str_of(a->key), value, &c->err) != 0)
			return fail(c);
		return say_set(c, a, NULL);
	}
	sheaf_str user = c->user.ptr != NULL ? c->user : SHEAF_STR("");
	if (sheaf_store_state(&state, c->store, of, app ? (sheaf_str){NULL, 0} : user, &c->err) !=
	    0)
		return fail(c);
	return is(a, "get") ? get_one(c, state, app ? "app:" : "user:", a->key)
	                    : show_state(c, state, false);
}

int cmd_state(cli *c)
{
	asked a = {0};
	if (!take_verb(c, 0, &a) && c->word_count > 0) {
		a.session = c->words[0];
		if (c->word_count > 1 && !take_verb(c, 1, &a))
			return usage(c, "state takes get KEY, set KEY VALUE, rm KEY or replay");
	}
	if (given(c, OPT_SCOPE))
		return on_scope(c, &a, strcmp(c->values[OPT_SCOPE], "app") == 0);
	return on_session(c, &a);
}
