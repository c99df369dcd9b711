/* sheaf tui: a browser of sessions in the terminal; how it begins, goes on and ends. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "opt.h"
#include "tui.h"

#define REST_MS 40 /* how long keys rest before what takes a while is done */
#define AGES_MS 60000

/* ---- Screens ----------------------------------------------------------- */

typedef struct shows {
	const char *title;
	void (*draw)(tui *t, area in);
	void (*act)(tui *t, action what);
	void (*where)(const tui *t, buf *out);
} shows;

static const shows screens[SHOW_COUNT] = {
	[SHOW_LIST] = {"sessions", list_draw, list_act, list_where},
	[SHOW_PROJECTS] = {"projects", projects_draw, projects_act, projects_where},
	[SHOW_HITS] = {"search", hits_draw, hits_act, hits_where},
	[SHOW_TRANSCRIPT] = {NULL, transcript_draw, transcript_act, transcript_where},
	[SHOW_TREE] = {NULL, tree_draw, tree_act, tree_where},
	[SHOW_HELP] = {"help", help_draw, help_act, NULL},
};

int tui_shown(const tui *t)
{
	return t->shown[t->depth - 1];
}

void tui_leave(tui *t, int which)
{
	size_t kept = 0;
	for (size_t i = 0; i < t->depth; i++) {
		if (t->shown[i] != which)
			t->shown[kept++] = t->shown[i];
	}
	t->depth = kept;
}

void tui_show(tui *t, int which)
{
	tui_leave(t, which);
	t->shown[t->depth++] = which;
}

/* ---- The status line --------------------------------------------------- */

void tui_say(tui *t, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(t->status, sizeof(t->status), format, args);
	va_end(args);
	t->bad = false;
}

void tui_fail(tui *t, const sheaf_error *err)
{
	tui_say(t, "%s", err->message[0] != '\0' ? err->message : sheaf_code_text(err->code));
	t->bad = true;
}

/* Letters, digits and a few signs: pasted into a shell it is one word that does nothing. */
static bool is_harmless(sheaf_str id)
{
	for (size_t i = 0; i < id.len; i++) {
		char c = id.ptr[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    (c == '\0' || strchr("._-:+@", c) == NULL))
			return false;
	}
	return id.len != 0 && id.ptr[0] != '-';
}

void tui_copy(tui *t, const char *what, sheaf_str id)
{
	bool harmless = is_harmless(id);
	if (harmless)
		draw_copy(id);
	tui_say(t, "%s %.*s %s", what, (int)id.len, id.ptr != NULL ? id.ptr : "",
	        harmless ? "copied" : "has an id that is not copied");
}

/* ---- Drawing ----------------------------------------------------------- */

static void put_title(const tui *t, buf *out)
{
	int shown = tui_shown(t);
	const sheaf_head_view *head = t->transcript.head;
	buf_format(out, "sheaf %s ", text_glyphs()->dot);
	if (screens[shown].title != NULL) {
		buf_str(out, sheaf_str_of(screens[shown].title));
	} else if (head != NULL) {
		if (shown == SHOW_TREE)
			buf_lit(out, "tree of ");
		view_name(out, head->info);
		buf_format(out, " %s ", text_glyphs()->dot);
		text_safe(out, head->info->session, TEXT_ID);
	}
	if (t->sessions.project[0] != '\0' && (shown == SHOW_LIST || shown == SHOW_HITS)) {
		buf_lit(out, " of ");
		view_directory(out, sheaf_str_of(t->sessions.project));
	}
}

/* The last line: what is typed, else what is to be said, else what can be done; and where one is. */
static void draw_status(tui *t, area in, int *cursor)
{
	const screen *s = &t->page.screen;
	int shown = tui_shown(t);
	_cleanup_(buf_free) buf left = BUF_INIT(SIZE_MAX), right = BUF_INIT(SIZE_MAX);
	_cleanup_(buf_free) buf safe = BUF_INIT(SIZE_MAX), cut = BUF_INIT(SIZE_MAX);
	if (screens[shown].where != NULL)
		screens[shown].where(t, &right);
	int room = in.columns - (int)text_width(buf_view(&right)) - 3;
	room = room < in.columns / 2 ? in.columns / 2 : room;
	if (shown == SHOW_HITS && t->search.typing && t->status[0] == '\0') {
		buf_char(&safe, '/');
		text_safe(&safe, buf_view(&t->search.text), TEXT_ID);
		text_cut_front(&left, buf_view(&safe), (size_t)room - 1);
		*cursor = (int)text_width(buf_view(&left));
	} else {
		if (t->status[0] != '\0')
			text_safe_of(&safe, t->status, TEXT_LINE);
		else
			tui_hint(shown, &safe);
		text_cut(&cut, buf_view(&safe), (size_t)room);
		print_styled(s, &left,
		             t->status[0] == '\0' ? STYLE_DIM : (t->bad ? STYLE_BAD : STYLE_TITLE),
		             buf_view(&cut));
	}
	draw_text(in, 0, 0, room, buf_view(&left), 0);
	int at = in.columns - 1 -
	         (int)text_width(buf_view(&right)); /* no terminal likes its last cell */
	if (at > room)
		draw_text(in, 0, at, in.columns - at, buf_view(&right), 0);
}

static void draw(tui *t)
{
	area all = draw_whole();
	int cursor = -1;
	draw_begin();
	/* On the smallest of screens the middle goes last. */
	area title = {0, 0, all.rows > 2, all.columns};
	area middle = {title.rows, 0, all.rows - title.rows - (all.rows > 1), all.columns};
	area status = {all.rows - 1, 0, all.rows > 1, all.columns};
	if (middle.rows > 0 && all.columns > 0)
		screens[tui_shown(t)].draw(t, middle);
	/* Drawing reads, and so what is known of the place comes after. */
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX), cut = BUF_INIT(SIZE_MAX);
	put_title(t, &text);
	text_cut(&cut, buf_view(&text), (size_t)all.columns);
	draw_row(title, 0, (styled){.text = buf_view(&cut)}, DRAW_CHOSEN);
	draw_status(t, status, &cursor);
	draw_show(cursor >= 0 ? all.rows - 1 : -1, cursor);
}

bool tui_wait(tui *t, const char *what)
{
	area all = draw_whole();
	area status = {all.rows - 1, 0, 1, all.columns};
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	buf_format(&text, "%s ... (Esc stops)", what);
	text_spaces(&text, (size_t)all.columns);
	draw_row(status, 0, (styled){.text = buf_view(&text)}, 0);
	draw_show(-1, 0);
	(void)t;
	int key = draw_key(0);
	return key == KEYS_ESCAPE || key == KEYS_CTRL('c') || key == KEYS_CLOSED;
}

/* ---- Keys -------------------------------------------------------------- */

static void act(tui *t, action what)
{
	switch (what) {
	case ACT_QUIT:
		t->quit = true;
		break;
	case ACT_HELP:
		tui_show(t, SHOW_HELP);
		break;
	case ACT_SEARCH:
		search_begin(t);
		break;
	case ACT_REDRAW:
		draw_again();
		break;
	case ACT_BACK:
		if (t->depth > 1)
			t->depth--;
		break;
	default:
		screens[tui_shown(t)].act(t, what);
	}
}

static void take_key(tui *t, int key)
{
	int shown = tui_shown(t);
	if (key == KEYS_RESIZED)
		return;
	t->status[0] = '\0';
	if (shown == SHOW_HITS && t->search.typing)
		search_key(t, key);
	else if (shown == SHOW_LIST && key == 'q')
		t->quit = true;
	else
		act(t, tui_action(shown, key));
}

/* What waits until the keys rest. */
static bool is_due(const tui *t)
{
	return (tui_shown(t) == SHOW_LIST && t->preview.due && !t->preview.hidden) ||
	       (tui_shown(t) == SHOW_HITS && t->search.due);
}

static void loop(tui *t)
{
	while (!t->quit) {
		t->page.screen.now_us = clock_now_us();
		draw(t);
		int key = draw_key(is_due(t) ? REST_MS : AGES_MS);
		if (key == KEYS_CLOSED)
			break;
		if (key != KEYS_NONE) {
			take_key(t, key);
		} else if (tui_shown(t) == SHOW_HITS && t->search.due) {
			search_run(t);
		} else {
			t->preview.due = false; /* drawing loads it */
		}
	}
}

/* ---- The command ------------------------------------------------------- */

static int no_terminal(cli *c)
{
	const char *kind = getenv("TERM");
	const char *hint = "`sheaf ls`, `sheaf show` and `sheaf search` work everywhere";
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return fail_with(c, SHEAF_UNSUPPORTED, hint, "this needs a terminal");
	return fail_with(c, SHEAF_UNSUPPORTED, hint,
	                 "a terminal of kind '%.40s' cannot show it (see TERM)",
	                 kind != NULL ? kind : "");
}

static bool can_draw(void)
{
	const char *kind = getenv("TERM");
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && kind != NULL && kind[0] != '\0' &&
	       strcmp(kind, "dumb") != 0;
}

static int choose_project(cli *c, tui *t)
{
	char room[PATH_MAX];
	if (given(c, OPT_PROJECT) && given(c, OPT_HERE))
		return usage(c, "--project and --here name the same");
	sheaf_str wanted = opt_str(c, OPT_PROJECT);
	if (given(c, OPT_HERE))
		wanted = working_directory(room);
	else if (given(c, OPT_PROJECT) && realpath(c->values[OPT_PROJECT], room) != NULL)
		wanted = sheaf_str_of(room);
	if (wanted.ptr != NULL)
		str_copy_cut(t->sessions.project, sizeof(t->sessions.project), wanted);
	return 0;
}

static void tui_done(tui *t)
{
	treeing_done(&t->tree);
	transcript_done(&t->transcript);
	searching_done(&t->search);
	projects_done(&t->projects);
	preview_done(&t->preview);
	sessions_done(&t->sessions);
}

static void start(tui *t, const sheaf_key *key)
{
	t->page = *t->c;
	t->page.screen.color = true; /* styles, that is; the screen knows which it has */
	t->preview.of = t->search.text = (buf)BUF_INIT(SIZE_MAX);
	t->preview.text = (lines)LINES_INIT;
	tui_show(t, SHOW_LIST);
	list_load(t);
	if (key != NULL && transcript_open(t, key, 0))
		tui_show(t, SHOW_TRANSCRIPT);
}

int cmd_tui(cli *c)
{
	_cleanup_(tui_done) tui t = {.c = c};
	sheaf_key key;
	int rc;
	if (c->json)
		return usage(c, "there is nothing here for programs");
	if ((rc = choose_project(c, &t)) != 0 || (rc = open_store(c)) != 0)
		return rc;
	if (c->word_count != 0 && (rc = find_session(c, c->words[0], &key)) != 0)
		return rc;
	if (!can_draw() || !draw_start(c->screen.color))
		return no_terminal(c);
	start(&t, c->word_count != 0 ? &key : NULL);
	loop(&t);
	draw_end();
	return 0;
}
