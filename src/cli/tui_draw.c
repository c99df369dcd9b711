/*
 * The screen of the browser: cells, styles and keys, by ncurses.
 *
 * Two parties count columns besides us: ncurses, by wcwidth() of every code
 * point, and the terminal, as it likes. Where they may differ the rows below
 * garble, so a cell gets only what all of them count alike: one character
 * that takes room, and marks that take none. An emoji of several is shown by
 * its first, a flag by its letters.
 *
 * A terminal that reorders right-to-left text takes blanks and borders along
 * that stand between two pieces of it; a left-to-right mark behind each piece
 * keeps them where they are.
 */
#include "tui_draw.h"

#include <poll.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>

#include "base/str.h"
#include "text.h"

#define LEFT_TO_RIGHT 0x200e
#define MARKS_MAX (CCHARW_MAX - 1)
#define ESCAPE_MS 25 /* what comes later is no part of a sequence */

static bool colored;
static SCREEN *terminal;

bool draw_start(bool color)
{
	terminal = newterm(NULL, stdout, stdin);
	if (terminal == NULL)
		return false;
	if (tigetstr("cup") == NULL) { /* it cannot place text */
		endwin();
		delscreen(terminal);
		return false;
	}
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	/* Ctrl-C comes as a key: it may only mean to stop a search. */
	struct termios t;
	if (tcgetattr(STDIN_FILENO, &t) == 0) {
		t.c_cc[VINTR] = _POSIX_VDISABLE;
		tcsetattr(STDIN_FILENO, TCSANOW, &t);
		def_prog_mode();
	}
	colored = color && has_colors() && start_color() == OK && use_default_colors() == OK;
	for (short i = 0; colored && i < 16; i++)
		init_pair((short)(i + 1), COLORS >= 16 ? i : (short)(i % 8), -1);
	return true;
}

void draw_end(void)
{
	endwin();
	delscreen(terminal);
}

area draw_whole(void)
{
	area a = {.rows = getmaxy(stdscr), .columns = getmaxx(stdscr)};
	return a;
}

void draw_begin(void)
{
	erase();
}

void draw_show(int row, int column)
{
	curs_set(row >= 0);
	if (row >= 0)
		move(row, column);
	refresh();
}

void draw_again(void)
{
	clearok(curscr, TRUE);
}

/* ---- Cells ------------------------------------------------------------- */

static bool is_right_to_left(uint32_t c)
{
	return (c >= 0x590 && c <= 0x8ff) || (c >= 0xfb1d && c <= 0xfdff) ||
	       (c >= 0xfe70 && c <= 0xfefc) || (c >= 0x10800 && c <= 0x10fff) ||
	       (c >= 0x1e800 && c <= 0x1efff);
}

/* What joins characters or asks for another look of one: terminals differ on what it takes. */
static bool is_joiner(uint32_t c)
{
	return c == 0x200d || c == 0xfe0e || c == 0xfe0f;
}

static attr_t attributes(unsigned style)
{
	static const struct {
		unsigned bit;
		attr_t attribute;
	} all[] = {{STYLED_BOLD, A_BOLD},
	           {STYLED_DIM, A_DIM},
	           {STYLED_ITALIC, A_ITALIC},
	           {STYLED_UNDERLINE, A_UNDERLINE},
	           {STYLED_REVERSE, A_REVERSE}};
	attr_t out = A_NORMAL;
	for (size_t i = 0; i < COUNT_OF(all); i++)
		out |= style & all[i].bit ? all[i].attribute : A_NORMAL;
	return out;
}

/* The characters of a cell; how many, or 0 if nothing of it can be shown alone. */
static int cell_of(const glyph *g, wchar_t out[CCHARW_MAX + 1], bool *rtl)
{
	size_t at = 0;
	int count = 0;
	while (at < g->text.len && count < CCHARW_MAX) {
		uint32_t c = text_next(g->text, &at);
		if (c == TEXT_BROKEN || is_joiner(c))
			continue;
		if (c >= 0x1f1e6 && c <= 0x1f1ff) /* the letters that flags are made of */
			c = c - 0x1f1e6 + 'A';
		int width = wcwidth((wchar_t)c);
		if ((count == 0) != (width > 0))
			continue;
		out[count++] = (wchar_t)c;
		*rtl = *rtl || is_right_to_left(c);
	}
	out[count] = L'\0';
	return count;
}

typedef struct pen {
	int row;
	int column;
	int how;
	bool rtl;                     /* since the last mark */
	wchar_t last[CCHARW_MAX + 1]; /* the last cell, should it need one */
	int last_column;
	attr_t last_attributes;
	short last_pair;
} pen;

static void put_cell(const pen *p, int column, const wchar_t *text, attr_t how, short pair)
{
	cchar_t cell;
	if (setcchar(&cell, text, how, pair, NULL) == OK)
		mvadd_wch(p->row, column, &cell);
}

static void put_glyph(pen *p, const glyph *g)
{
	attr_t how = attributes(g->style);
	short pair = colored ? (short)(g->style & STYLED_COLOR) : 0;
	if (p->how & DRAW_CHOSEN) {
		how = (how & ~A_DIM) | A_REVERSE;
		pair = 0;
	}
	if (p->how & DRAW_DIM)
		how |= A_DIM;
	wchar_t text[CCHARW_MAX + 1];
	int count = cell_of(g, text, &p->rtl);
	int shown = count != 0 ? wcwidth(text[0]) : 0;
	if (count != 0 && shown <= (int)g->columns) {
		put_cell(p, p->column, text, how, pair);
		wmemcpy(p->last, text, CCHARW_MAX + 1);
		p->last_column = p->column;
		p->last_attributes = how;
		p->last_pair = pair;
	} else {
		shown = 0;
	}
	for (int i = shown; i < (int)g->columns; i++)
		put_cell(p, p->column + i, L" ", how, pair);
	p->column += (int)g->columns;
}

/* Behind right-to-left text: on its last cell, for a mark has none of its own. */
static void put_mark(pen *p)
{
	if (!p->rtl)
		return;
	size_t len = wcslen(p->last);
	len = len > MARKS_MAX ? MARKS_MAX : len;
	p->last[len] = LEFT_TO_RIGHT;
	p->last[len + 1] = L'\0';
	put_cell(p, p->last_column, p->last, p->last_attributes, p->last_pair);
}

/* Says in the last column that there is more. */
static void put_cut(pen *p, int end)
{
	static const glyph more = {{"\xe2\x80\xa6", 3}, 1, STYLED_DIM},
			   more_ascii = {{">", 1}, 1, 0};
	static const glyph blank = {{" ", 1}, 1, 0};
	while (p->column < end - 1)
		put_glyph(p, &blank);
	p->column = end - 1;
	put_glyph(p, text_glyphs()->ellipsis[0] == '.' ? &more_ascii : &more);
}

void draw_styled(area in, int row, int column, int columns, styled line, int how)
{
	if (row < 0 || row >= in.rows || column >= in.columns)
		return;
	if (columns > in.columns - column)
		columns = in.columns - column;
	pen p = {.row = in.top + row, .column = in.left + column, .how = how};
	int end = p.column + columns;
	bool cut = false;
	glyph g;
	while (!cut && styled_next(&line, &g)) {
		cut = (size_t)(end - p.column) < g.columns;
		if (!cut && g.columns != 0)
			put_glyph(&p, &g);
	}
	if (cut)
		put_cut(&p, end);
	put_mark(&p);
	static const glyph blank = {{" ", 1}, 1, 0};
	while (how & DRAW_CHOSEN && p.column < end)
		put_glyph(&p, &blank);
}

void draw_text(area in, int row, int column, int columns, sheaf_str text, int how)
{
	draw_styled(in, row, column, columns, (styled){.text = text}, how);
}

void draw_row(area in, int row, styled line, int how)
{
	draw_styled(in, row, 0, in.columns, line, how);
}

static bool in_ascii(void)
{
	return text_glyphs()->bar[0] == '|';
}

void draw_rule(int row, int column, int columns)
{
	for (int i = 0; i < columns; i++)
		draw_text(draw_whole(), row, column + i, 1,
		          in_ascii() ? SHEAF_STR("-") : SHEAF_STR("─"), DRAW_DIM);
}

void draw_wall(int row, int column, int rows)
{
	for (int i = 0; i < rows; i++)
		draw_text(draw_whole(), row + i, column, 1,
		          in_ascii() ? SHEAF_STR("|") : SHEAF_STR("│"), DRAW_DIM);
}

/* ---- Keys -------------------------------------------------------------- */

static int named_key(wint_t key)
{
	static const struct {
		wint_t curses;
		int ours;
	} all[] = {{KEY_UP, KEYS_UP},         {KEY_DOWN, KEYS_DOWN},
	           {KEY_LEFT, KEYS_LEFT},     {KEY_RIGHT, KEYS_RIGHT},
	           {KEY_PPAGE, KEYS_PAGE_UP}, {KEY_NPAGE, KEYS_PAGE_DOWN},
	           {KEY_HOME, KEYS_HOME},     {KEY_END, KEYS_END},
	           {KEY_ENTER, KEYS_ENTER},   {KEY_BACKSPACE, KEYS_BACKSPACE},
	           {KEY_BTAB, KEYS_BACK_TAB}, {KEY_RESIZE, KEYS_RESIZED}};
	for (size_t i = 0; i < COUNT_OF(all); i++) {
		if (all[i].curses == key)
			return all[i].ours;
	}
	return KEYS_OTHER;
}

static bool is_gone(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	return poll(&in, 1, 0) > 0 && (in.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

int draw_key(int milliseconds)
{
	wint_t key;
	timeout(milliseconds);
	int rc = get_wch(&key);
	if (rc == ERR)
		return is_gone() ? KEYS_CLOSED : KEYS_NONE;
	if (rc == KEY_CODE_YES)
		return named_key(key);
	switch (key) {
	case '\r':
	case '\n':
		return KEYS_ENTER;
	case '\t':
		return KEYS_TAB;
	case 0x7f:
	case '\b':
		return KEYS_BACKSPACE;
	case 0x1b:
		return KEYS_ESCAPE;
	default:
		return (int)key;
	}
}

void draw_copy(sheaf_str plain)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	refresh();
	fputs("\033]52;c;", stdout);
	for (size_t i = 0; i < plain.len; i += 3) {
		uint32_t bits = 0;
		for (size_t k = 0; k < 3; k++)
			bits = bits << 8 |
			       (i + k < plain.len ? (unsigned char)plain.ptr[i + k] : 0u);
		for (size_t k = 0; k < 4; k++)
			fputc(i + k <= plain.len ? digits[bits >> (18 - 6 * k) & 63] : '=', stdout);
	}
	fputs("\a", stdout);
	fflush(stdout);
}
