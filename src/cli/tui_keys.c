/* What each key does on each screen, the page that says so, and moving among rows. */
#include "base/str.h"
#include "tui.h"

#define ON(screen) (1u << (screen))
#define EVERYWHERE (ON(SHOW_COUNT) - 1)
#define KEYS_EACH 6
#define ROWS_KEYS 16u /* columns of the names of keys */

typedef struct binding {
	action what;
	unsigned on;
	int keys[KEYS_EACH];
	const char *names;
	const char *help;
	const char *hint; /* a word for the line at the bottom, or NULL */
} binding;

/* In the order of the page of help. */
static const binding bindings[] = {
	{ACT_OPEN,
         ON(SHOW_LIST) | ON(SHOW_PROJECTS) | ON(SHOW_HITS) | ON(SHOW_TREE),
         {KEYS_ENTER, KEYS_RIGHT, 'l'},
         "Enter",
         "open the session, the hit, the entry; choose the project",
         "open"},
	{ACT_SEARCH,
         EVERYWHERE & ~ON(SHOW_HELP),
         {'/'},
         "/",
         "search in everything that was said, as you type",
         "search"},
	{ACT_FOLD,
         ON(SHOW_TRANSCRIPT),
         {' ', KEYS_ENTER, 'o'},
         "Space Enter",
         "fold or unfold the entry: tool output, thinking, calls",
         "fold"},
	{ACT_FOLD_ALL, ON(SHOW_TRANSCRIPT), {'z'}, "z", "fold or unfold every entry", "all"},
	{ACT_TREE,
         ON(SHOW_LIST) | ON(SHOW_TRANSCRIPT),
         {'t'},
         "t",
         "the tree of the session; Enter there goes to an entry",
         "tree"},
	{ACT_PROJECTS, ON(SHOW_LIST) | ON(SHOW_HITS), {'p'}, "p", "only of one project", "project"},
	{ACT_PREVIEW, ON(SHOW_LIST), {KEYS_TAB}, "Tab", "show or hide the preview", NULL},
	{ACT_NEXT_ENTRY,
         ON(SHOW_TRANSCRIPT),
         {KEYS_TAB, '}', 'J'},
         "Tab }",
         "the next entry",
         NULL},
	{ACT_PREVIOUS_ENTRY,
         ON(SHOW_TRANSCRIPT),
         {KEYS_BACK_TAB, '{', 'K'},
         "Shift-Tab {",
         "the entry before",
         NULL},
	{ACT_NEXT_USER, ON(SHOW_TRANSCRIPT), {'u', ']'}, "u ]", "what a person said next", "user"},
	{ACT_PREVIOUS_USER,
         ON(SHOW_TRANSCRIPT),
         {'U', '['},
         "U [",
         "what a person said before",
         NULL},
	{ACT_NEXT_HIT, ON(SHOW_TRANSCRIPT), {'n'}, "n", "the next hit of the search", NULL},
	{ACT_PREVIOUS_HIT, ON(SHOW_TRANSCRIPT), {'N'}, "N", "the hit before", NULL},
	{ACT_COPY,
         ON(SHOW_LIST) | ON(SHOW_HITS) | ON(SHOW_TRANSCRIPT) | ON(SHOW_TREE),
         {'y'},
         "y",
         "copy the id: of the session, or of the entry within one",
         "copy"},
	{ACT_COPY_SESSION,
         ON(SHOW_TRANSCRIPT) | ON(SHOW_TREE) | ON(SHOW_HITS),
         {'Y'},
         "Y",
         "copy the id of the session",
         NULL},
	{ACT_DOWN, EVERYWHERE, {'j', KEYS_DOWN, KEYS_CTRL('n')}, "j Down", "down", NULL},
	{ACT_UP, EVERYWHERE, {'k', KEYS_UP, KEYS_CTRL('p')}, "k Up", "up", NULL},
	{ACT_PAGE_DOWN,
         EVERYWHERE,
         {KEYS_PAGE_DOWN, KEYS_CTRL('f'), 'f', ' '},
         "PgDn Ctrl-F",
         "a screen down",
         NULL},
	{ACT_PAGE_UP,
         EVERYWHERE,
         {KEYS_PAGE_UP, KEYS_CTRL('b'), 'b'},
         "PgUp Ctrl-B",
         "a screen up",
         NULL},
	{ACT_HALF_DOWN, EVERYWHERE, {KEYS_CTRL('d'), 'd'}, "Ctrl-D", "half a screen down", NULL},
	{ACT_HALF_UP, EVERYWHERE, {KEYS_CTRL('u')}, "Ctrl-U", "half a screen up", NULL},
	{ACT_TOP, EVERYWHERE, {'g', KEYS_HOME, '<'}, "g Home", "to the beginning", NULL},
	{ACT_BOTTOM, EVERYWHERE, {'G', KEYS_END, '>'}, "G End", "to the end", NULL},
	{ACT_RELOAD, EVERYWHERE & ~ON(SHOW_HELP), {'R', KEYS_CTRL('r')}, "R", "read it anew", NULL},
	{ACT_REDRAW, EVERYWHERE, {KEYS_CTRL('l')}, "Ctrl-L", "draw the screen anew", NULL},
	{ACT_HELP, EVERYWHERE, {'?', 'h'}, "?", "this page", "help"},
	{ACT_BACK,
         EVERYWHERE,
         {'q', KEYS_ESCAPE, KEYS_LEFT},
         "q Esc",
         "back; q on the list of sessions quits",
         "quit"},
	{ACT_QUIT, EVERYWHERE, {'Q', KEYS_CTRL('c')}, "Q Ctrl-C", "quit", NULL},
};

action tui_action(int shown, int key)
{
	for (size_t i = 0; i < COUNT_OF(bindings); i++) {
		for (size_t k = 0; k < KEYS_EACH && bindings[i].on & ON(shown); k++) {
			if (bindings[i].keys[k] == key && key != 0)
				return bindings[i].what;
		}
	}
	return ACT_NONE;
}

void tui_hint(int shown, buf *out)
{
	for (size_t i = 0; i < COUNT_OF(bindings); i++) {
		const binding *b = &bindings[i];
		if (b->hint == NULL || !(b->on & ON(shown)))
			continue;
		if (out->len != 0)
			buf_lit(out, "  ");
		size_t len = strcspn(b->names, " ");
		buf_add(out, b->names, len);
		buf_char(out, ' ');
		bool back = b->what == ACT_BACK && shown != SHOW_LIST;
		buf_str(out, sheaf_str_of(back ? "back" : b->hint));
	}
}

/* ---- Help -------------------------------------------------------------- */

static void help_line(size_t i, buf *out)
{
	buf_format(out, "  \033[1m%-*s\033[m%s", (int)ROWS_KEYS, bindings[i].names,
	           bindings[i].help);
}

void help_draw(tui *t, area in)
{
	t->help_rows = in.rows;
	choice_show(&t->help, COUNT_OF(bindings), in.rows);
	for (int row = 0; row < in.rows && t->help.top + (size_t)row < COUNT_OF(bindings); row++) {
		_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
		size_t i = t->help.top + (size_t)row;
		help_line(i, &text);
		draw_row(in, row, (styled){.text = buf_view(&text)},
		         i == t->help.at ? DRAW_CHOSEN : 0);
	}
}

void help_act(tui *t, action what)
{
	choice_act(&t->help, what, COUNT_OF(bindings), t->help_rows);
}

/* ---- Rows -------------------------------------------------------------- */

static void choice_by(choice *c, size_t count, long by)
{
	if (by < 0)
		c->at = (size_t)-by > c->at ? 0 : c->at - (size_t)-by;
	else
		c->at += (size_t)by;
	if (count != 0 && c->at >= count)
		c->at = count - 1;
}

bool choice_act(choice *c, action what, size_t count, int rows)
{
	long page = rows > 1 ? rows - 1 : 1;
	switch (what) {
	case ACT_UP:
		choice_by(c, count, -1);
		return true;
	case ACT_DOWN:
		choice_by(c, count, 1);
		return true;
	case ACT_PAGE_UP:
	case ACT_PAGE_DOWN:
		choice_by(c, count, what == ACT_PAGE_UP ? -page : page);
		return true;
	case ACT_HALF_UP:
	case ACT_HALF_DOWN:
		page = page > 1 ? page / 2 : 1;
		choice_by(c, count, what == ACT_HALF_UP ? -page : page);
		return true;
	case ACT_TOP:
		c->at = 0;
		return true;
	case ACT_BOTTOM:
		c->at = count != 0 ? count - 1 : 0;
		return true;
	default:
		return false;
	}
}

void choice_show(choice *c, size_t count, int rows)
{
	size_t room = rows > 0 ? (size_t)rows : 1;
	if (c->at >= count)
		c->at = count != 0 ? count - 1 : 0;
	if (c->at < c->top)
		c->top = c->at;
	if (c->at >= c->top + room)
		c->top = c->at - room + 1;
	if (c->top != 0 && c->top + room > count)
		c->top = count > room ? count - room : 0;
}
