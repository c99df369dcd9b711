/* What is said to the chat itself, with a slash: looking around, going back, settings. */
#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "chat.h"
#include "find.h"
#include "shapes.h"
#include "view.h"

#define PATH_LIMIT 1000u /* how far back the last message of the user is looked for */

/* The first word of `*rest`, which goes on behind it. */
static sheaf_str next_word(sheaf_str *rest)
{
	while (rest->len != 0 && rest->ptr[0] == ' ')
		*rest = str_make(rest->ptr + 1, rest->len - 1);
	size_t len = 0;
	while (len < rest->len && rest->ptr[len] != ' ' && rest->ptr[len] != '\n')
		len++;
	sheaf_str word = str_make(rest->ptr, len);
	*rest = str_make(rest->ptr + len, rest->len - len);
	while (rest->len != 0 && (rest->ptr[0] == ' ' || rest->ptr[0] == '\n'))
		*rest = str_make(rest->ptr + 1, rest->len - 1);
	return word;
}

/* A copy with a NUL that lives as long as the command. */
static const char *kept(chat *ch, sheaf_str text)
{
	int ok = 1;
	sheaf_str copy = arena_dup(ch->c->memory, text, &ok);
	return ok ? copy.ptr : NULL;
}

static int nothing_yet(chat *ch)
{
	say(ch->c, "nothing has been said yet");
	return 0;
}

static bool is_of_user(const sheaf_entry *entry)
{
	return entry->kind == SHEAF_KIND_MESSAGE && entry->message != NULL &&
	       str_is(entry->message->role, SHEAF_ROLE_USER);
}

/* What the user said last; NULL if it was nothing, or long ago. */
static const sheaf_entry *last_of_user(const sheaf_records *path)
{
	for (size_t i = path->count; i > 0; i--) {
		if (is_of_user(path->items[i - 1]))
			return path->items[i - 1];
	}
	return NULL;
}

/* ---- Going back -------------------------------------------------------- */

/* Puts a text of the user into the line, to be said otherwise. */
static void offer(chat *ch, const sheaf_entry *entry)
{
	char text[65536];
	size_t len = sheaf_message_view_text(entry->message, text, sizeof(text));
	if (ch->terminal && len < sizeof(text))
		chat_offer(ch, str_make(text, len));
}

/* The name is a branch's, so it fits; it may be the one there is. */
static void be_on(chat *ch, const char *branch)
{
	memmove(ch->branch, branch, strlen(branch) + 1);
}

/* Puts a branch where an entry is; if the user said that, before it, for saying it otherwise. */
static int go_to(chat *ch, const char *branch, sheaf_str id)
{
	_cleanup_(records_freep) sheaf_records *found = NULL;
	cli *c = ch->c;
	if (sheaf_session_get(&found, ch->session, id, &c->err) != 0)
		return fail(c);
	const sheaf_entry *entry = found->items[0];
	bool mine = is_of_user(entry);
	sheaf_str target = entry->id;
	if (mine)
		target = entry->parent_id.ptr != NULL ? entry->parent_id : SHEAF_STR("");
	if (sheaf_session_branch(ch->session, sheaf_str_of(branch), target, NULL, NULL, &c->err) !=
	    0)
		return fail(c);
	be_on(ch, branch);
	if (mine)
		offer(ch, entry);
	say(c, "branch %s goes on %s @%llu", branch, mine ? "in place of" : "after",
	    (unsigned long long)entry->seq);
	return 0;
}

/* A number alone is more likely an entry's than the name somebody wants. */
static int new_branch(chat *ch, const char *name)
{
	char leaf[SHEAF_ID_ROOM];
	cli *c = ch->c;
	if (name[strspn(name, "0123456789")] == '\0')
		return fail_with(c, SHEAF_NOT_FOUND, "an entry's number has an @ before it",
		                 "there is no branch '%.50s'; did you mean @%.50s?", name, name);
	if (sheaf_session_leaf(ch->session, sheaf_str_of(ch->branch), leaf, &c->err) != 0 ||
	    sheaf_session_branch(ch->session, sheaf_str_of(name), sheaf_str_of(leaf), NULL, NULL,
	                         &c->err) != 0)
		return fail(c);
	say(c, "new branch %s; /branch %s goes back", name, ch->branch);
	be_on(ch, name);
	return 0;
}

/* NAME of a branch: there it goes on. Of an entry: this branch goes on there. Else a new branch. */
static int do_branch(chat *ch, sheaf_str rest)
{
	cli *c = ch->c;
	char id[SHEAF_ID_ROOM];
	const char *name = kept(ch, next_word(&rest)), *entry = kept(ch, next_word(&rest));
	if (name == NULL || entry == NULL)
		return fail_memory(c);
	if (ch->session == NULL)
		return nothing_yet(ch);
	if (name[0] == '\0')
		return show_branches(c, ch->session);
	if (entry[0] != '\0') {
		int rc = find_entry(c, ch->session, entry, id);
		return rc != 0 ? rc : go_to(ch, name, sheaf_str_of(id));
	}
	if (sheaf_session_leaf(ch->session, sheaf_str_of(name), id, NULL) == 0) {
		be_on(ch, name);
		say(c, "on branch %s", name);
		return 0;
	}
	if (name[0] != '@' &&
	    sheaf_session_resolve(ch->session, sheaf_str_of(name), id, NULL) == SHEAF_NOT_FOUND)
		return new_branch(ch, name);
	int rc = find_entry(c, ch->session, name, id);
	return rc != 0 ? rc : go_to(ch, ch->branch, sheaf_str_of(id));
}

/* A compaction, but not one that only takes another back. */
static bool sums_up(const sheaf_entry *entry)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	if (entry->kind != SHEAF_KIND_COMPACTION || json_parse(&doc, entry->line, NULL) != 0)
		return false;
	const json_val *body = json_get(json_root(doc), "compaction");
	return !str_is(json_string(json_get(body, "trigger")), "undo");
}

/* A compaction at the end is taken back, else the last thing the user said. */
static int do_undo(chat *ch, sheaf_str rest)
{
	(void)rest;
	cli *c = ch->c;
	_cleanup_(records_freep) sheaf_records *path = NULL;
	int rc = chat_path(ch, PATH_LIMIT, &path);
	if (rc != 0)
		return rc;
	if (path != NULL && path->count != 0 && sums_up(path->items[path->count - 1])) {
		if (sheaf_compaction_undo(ch->session, sheaf_str_of(ch->branch), NULL, &c->err) !=
		    0)
			return fail(c);
		say(c, "the model sees again what was summed up");
		return 0;
	}
	const sheaf_entry *last = path != NULL ? last_of_user(path) : NULL;
	return last != NULL ? go_to(ch, ch->branch, last->id) : nothing_yet(ch);
}

/* Asks again what was asked last; an answer that is there stays on a branch of its own. */
static int do_retry(chat *ch, sheaf_str rest)
{
	(void)rest;
	cli *c = ch->c;
	_cleanup_(records_freep) sheaf_records *path = NULL;
	int rc = chat_path(ch, PATH_LIMIT, &path);
	if (rc != 0)
		return rc;
	const sheaf_entry *last = path != NULL ? last_of_user(path) : NULL;
	if (last == NULL)
		return nothing_yet(ch);
	bool answered = false;
	for (size_t i = path->count; i > 0 && path->items[i - 1] != last; i--)
		answered = answered || path->items[i - 1]->kind == SHEAF_KIND_MESSAGE;
	if (answered && sheaf_session_branch(ch->session, sheaf_str_of(ch->branch), last->id, NULL,
	                                     NULL, &c->err) != 0)
		return fail(c);
	return chat_ask(ch, (sheaf_str){NULL, 0});
}

/* ---- Looking around ---------------------------------------------------- */

static int do_tree(chat *ch, sheaf_str rest)
{
	(void)rest;
	return ch->session == NULL ? nothing_yet(ch)
	                           : show_tree(ch->c, ch->session, ch->branch, false);
}

/* ENTRY NAME, or only a name for where the branch stands. */
static int do_label(chat *ch, sheaf_str rest)
{
	cli *c = ch->c;
	char id[SHEAF_ID_ROOM];
	const char *entry = kept(ch, next_word(&rest)), *name = kept(ch, rest);
	if (name == NULL || entry == NULL)
		return fail_memory(c);
	if (ch->session == NULL)
		return nothing_yet(ch);
	if (entry[0] == '\0') {
		say(c, "/label ENTRY NAME, or /label NAME for the last entry");
		return 0;
	}
	bool last = name[0] == '\0';
	int rc = find_entry(c, ch->session, last ? ch->branch : entry, id);
	if (rc != 0)
		return rc;
	const char *label = last ? entry : name;
	if (sheaf_session_label(ch->session, sheaf_str_of(id), sheaf_str_of(label), NULL, NULL,
	                        &c->err) != 0)
		return fail(c);
	say(c, "%s is now labelled [%.100s]", last ? "the last entry" : entry, label);
	return 0;
}

static void put_count(buf *out, const char *what, uint64_t tokens)
{
	if (tokens == 0)
		return;
	buf_format(out, "%-14s", what);
	text_count(out, tokens, "token", "tokens");
	buf_char(out, '\n');
}

/* By the list prices of the day; nothing where they are not known. */
static void put_cost(chat *ch, buf *out)
{
	sheaf_usage_report *report = NULL;
	char text[SHEAF_MONEY_ROOM];
	sheaf_usage_options how = SHEAF_USAGE_OPTIONS_INIT;
	how.models = ch->c->models;
	if (sheaf_session_usage(&report, ch->session, &how, NULL) != 0)
		return;
	if (report->own.replies > report->own.unpriced) {
		sheaf_money_format(text, report->own.cost);
		buf_format(out, "%-14s%s%s\n", "cost", text, report->own.unpriced != 0 ? "+" : "");
	}
	sheaf_usage_report_free(report);
}

static int do_usage(chat *ch, sheaf_str rest)
{
	(void)rest;
	cli *c = ch->c;
	_cleanup_(head_freep) sheaf_head_view *head = NULL;
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	if (ch->session == NULL)
		return nothing_yet(ch);
	if (sheaf_session_head(&head, ch->session, &c->err) != 0)
		return fail(c);
	const sheaf_usage *usage = &head->info->usage;
	put_count(&out, "input", usage->input);
	put_count(&out, "from cache", usage->cache_read);
	put_count(&out, "to cache", usage->cache_write_5m + usage->cache_write_1h);
	put_count(&out, "output", usage->output);
	put_count(&out, "of it thought", usage->reasoning);
	put_cost(ch, &out);

	sheaf_compaction_options how = SHEAF_COMPACTION_OPTIONS_INIT;
	sheaf_fill fill;
	how.branch = sheaf_str_of(ch->branch);
	how.provider = ch->how.provider;
	how.model = ch->how.model;
	how.models = c->models;
	if (sheaf_compaction_need(&fill, ch->session, &how, NULL) == 0 && fill.window != 0) {
		buf_format(&out, "%-14s", "window");
		text_count(&out, fill.tokens, "token", "tokens");
		buf_format(&out, ", %llu%% of ",
		           (unsigned long long)(fill.tokens * 100 / fill.window));
		text_count(&out, fill.window, "token", "tokens");
		buf_char(&out, '\n');
	}
	print_out(&out);
	return 0;
}

/* ---- Settings ---------------------------------------------------------- */

static int do_model(chat *ch, sheaf_str rest)
{
	cli *c = ch->c;
	const char *name = kept(ch, next_word(&rest));
	if (name == NULL)
		return fail_memory(c);
	const char *other = model_elsewhere(c, &ch->model, sheaf_str_of(name));
	if (other != NULL)
		return fail_with(c, SHEAF_INVALID,
		                 "/quit, and go on with `sheaf chat SESSION --model NAME`",
		                 "%.60s is a model of %s, and this chat is with %s", name, other,
		                 sheaf_format_provider(ch->model.format));
	if (name[0] != '\0') {
		ch->how.model = sheaf_str_of(name);
		sheaf_str provider = ch->how.provider;
		if (provider.len == 0)
			provider = sheaf_str_of(sheaf_format_provider(ch->how.format));
		sheaf_entry_options where = SHEAF_ENTRY_OPTIONS_INIT;
		where.branch = sheaf_str_of(ch->branch);
		if (ch->session != NULL &&
		    sheaf_session_append_model_change(ch->session, provider, ch->how.model, &where,
		                                      NULL, NULL, &c->err) != 0)
			return fail(c);
	}
	say(c, "the model is %.*s", (int)ch->how.model.len, ch->how.model.ptr);
	return 0;
}

static int do_system(chat *ch, sheaf_str rest)
{
	if (rest.len != 0) {
		const char *text = kept(ch, rest);
		if (text == NULL)
			return fail_memory(ch->c);
		ch->system.text = sheaf_str_of(text);
	}
	if (ch->system.text.len == 0)
		say(ch->c, "there is no system text; /system TEXT sets it");
	else
		say(ch->c, "the system text is: %.*s", (int)ch->system.text.len,
		    ch->system.text.ptr);
	return 0;
}

static int do_compact(chat *ch, sheaf_str rest)
{
	return ch->session == NULL ? nothing_yet(ch) : chat_compact(ch, rest);
}

static int do_quit(chat *ch, sheaf_str rest)
{
	(void)rest;
	ch->over = true;
	return 0;
}

static int do_help(chat *ch, sheaf_str rest);

static const struct {
	const char *name;
	const char *takes;
	const char *help;
	int (*run)(chat *ch, sheaf_str rest);
} words[] = {
	{"tree", "", "every entry, and where it branches", do_tree},
	{"branch", "[NAME|ENTRY]", "go to a branch, back to an entry, or start a branch",
         do_branch},
	{"label", "[ENTRY] NAME", "a name for an entry; without one, for the last", do_label},
	{"retry", "", "ask again; the answer there is stays in the tree", do_retry},
	{"undo", "", "take back a compaction, or what you said last", do_undo},
	{"compact", "[WHAT]", "have what came before summed up, with an eye on WHAT", do_compact},
	{"usage", "", "tokens so far, and how full the window is", do_usage},
	{"model", "[NAME]", "another model from here on", do_model},
	{"system", "[TEXT]", "another system text from here on", do_system},
	{"help", "", "this", do_help},
	{"quit", "", "as Ctrl-D; `sheaf chat` goes on later", do_quit},
};

static int do_help(chat *ch, sheaf_str rest)
{
	(void)ch;
	(void)rest;
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < COUNT_OF(words); i++) {
		char usage_text[40];
		snprintf(usage_text, sizeof(usage_text), "/%s %s", words[i].name, words[i].takes);
		buf_format(&out, "  %-22s %s\n", usage_text, words[i].help);
	}
	buf_lit(&out, "\n"
	              "An entry is named by its number (@3), a label, or the beginning of its id.\n"
	              "Alt-Enter or a backslash at the end of a line begin another line. Ctrl-C\n"
	              "stops a reply; what came of it is kept. A text that begins with a slash is\n"
	              "sent with two of them.\n");
	print_out(&out);
	return 0;
}

bool chat_is_command(sheaf_str text)
{
	return text.len > 1 && text.ptr[0] == '/' && text.ptr[1] != '/';
}

void chat_offer(chat *ch, sheaf_str text)
{
	line_prefill(&ch->line, text.len > 1 && text.ptr[0] == '/' ? SHEAF_STR("/") : SHEAF_STR(""),
	             text);
}

int chat_command(chat *ch, sheaf_str text)
{
	sheaf_str rest = str_make(text.ptr + 1, text.len - 1);
	sheaf_str word = next_word(&rest);
	for (size_t i = 0; i < COUNT_OF(words); i++) {
		if (str_is(word, words[i].name))
			return words[i].run(ch, rest);
	}
	return fail_with(ch->c, SHEAF_INVALID, "/help lists them; // sends a text with a slash",
	                 "there is no command /%.*s", (int)(word.len < 40 ? word.len : 40),
	                 word.ptr);
}
