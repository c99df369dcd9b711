/* Editing a line, or several, on a terminal; and reading plain lines where there is none. */
#include "chat_line.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "chat_term.h"

#define HISTORY_MAX 500u
#define PROMPT "> "
#define PROMPT_COLUMNS 2u
#define TAB_COLUMNS 4u

void line_done(line *l)
{
	for (size_t i = 0; i < l->history_count; i++)
		mem_free(l->history[i]);
	mem_free(l->history);
	buf_free(&l->text);
	buf_free(&l->killed);
	buf_free(&l->draft);
	buf_free(&l->first);
	keys_done(&l->in);
}

void line_remember(line *l, sheaf_str text)
{
	if (text.len == 0 ||
	    (l->history_count != 0 && str_is(text, l->history[l->history_count - 1])))
		return;
	if (l->history_count == HISTORY_MAX) {
		mem_free(l->history[0]);
		memmove(l->history, l->history + 1, (HISTORY_MAX - 1) * sizeof(*l->history));
		l->history_count--;
	}
	/* Without memory it is forgotten, which harms nobody. */
	if (mem_grow((void **)&l->history, &l->history_room, l->history_count + 1,
	             sizeof(*l->history)) != 0)
		return;
	char *copy = mem_dup(text.ptr, text.len);
	if (copy != NULL)
		l->history[l->history_count++] = copy;
}

/* ---- Drawing ----------------------------------------------------------- */

/* How one character looks on a row: a tab as blanks, a control spelled out. */
static size_t put_character(buf *out, sheaf_str character)
{
	_cleanup_(buf_free) buf safe = BUF_INIT(SIZE_MAX);
	if (character.len == 1 && character.ptr[0] == '\t')
		text_spaces(&safe, TAB_COLUMNS);
	else
		text_safe(&safe, character, TEXT_ID);
	buf_str(out, buf_view(&safe));
	return text_width(buf_view(&safe));
}

typedef struct spot {
	size_t row;
	size_t column;
} spot;

/* Moves over the character that begins at `at`, and adds it to `out`. */
static size_t step(sheaf_str text, size_t at, size_t columns, spot *s, buf *out)
{
	size_t end = text_cluster(text, at);
	if (text.ptr[at] == '\n') {
		*s = (spot){s->row + 1, PROMPT_COLUMNS};
		return at + 1;
	}
	size_t width = put_character(out, str_make(text.ptr + at, end - at));
	/* The last column stays free: terminals differ in when they leave it. */
	if (s->column + width >= columns)
		*s = (spot){s->row + 1, PROMPT_COLUMNS};
	s->column += width;
	return end;
}

/* Where the cursor stands, and how many rows there are. */
static spot find_cursor(const line *l, size_t columns, size_t *rows)
{
	_cleanup_(buf_free) buf ignored = BUF_INIT(SIZE_MAX);
	spot s = {0, PROMPT_COLUMNS}, cursor = s;
	sheaf_str text = buf_view(&l->text);
	for (size_t at = 0; at < text.len;) {
		at = step(text, at, columns, &s, &ignored);
		buf_reset(&ignored);
		if (at <= l->cursor)
			cursor = s;
	}
	*rows = s.row + 1;
	return cursor;
}

static void put_rows(const line *l, buf *out, size_t columns, size_t first, size_t last)
{
	_cleanup_(buf_free) buf piece = BUF_INIT(SIZE_MAX);
	sheaf_str text = buf_view(&l->text);
	spot s = {0, PROMPT_COLUMNS};
	if (first == 0)
		print_styled(&l->c->screen, out, STYLE_USER, SHEAF_STR(PROMPT));
	else
		text_spaces(out, PROMPT_COLUMNS);
	for (size_t at = 0; at < text.len;) {
		size_t row = s.row;
		at = step(text, at, columns, &s, &piece);
		if (s.row != row && s.row > first && s.row <= last) {
			buf_lit(out, "\r\n");
			text_spaces(out, PROMPT_COLUMNS);
		}
		if (s.row >= first && s.row <= last)
			buf_str(out, buf_view(&piece));
		buf_reset(&piece);
	}
}

static void put_at_once(buf *out)
{
	print_out(out);
	fflush(stdout);
}

/* Draws the text anew over what was drawn before. */
static void draw(line *l)
{
	term_size size = term_measure();
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	size_t rows, room = size.rows > 1 ? size.rows - 1 : 1;
	spot cursor = find_cursor(l, size.columns, &rows);
	/* Of a text higher than the screen, the part around the cursor. */
	size_t first = cursor.row >= room ? cursor.row - room + 1 : 0;
	size_t last = rows - first > room ? first + room - 1 : rows - 1;
	if (l->rows_above != 0)
		buf_format(&out, "\033[%zuA", l->rows_above);
	buf_lit(&out, "\r\033[J");
	put_rows(l, &out, size.columns, first, last);
	if (last != cursor.row)
		buf_format(&out, "\033[%zuA", last - cursor.row);
	buf_format(&out, "\r\033[%zuC", cursor.column);
	l->rows_above = cursor.row - first;
	put_at_once(&out);
}

/* Leaves the text on the screen and goes below it. */
static void leave(line *l)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	l->cursor = l->text.len;
	draw(l);
	buf_lit(&out, "\r\n");
	put_at_once(&out);
	l->rows_above = 0;
}

/* ---- Editing ----------------------------------------------------------- */

static void insert(line *l, sheaf_str text)
{
	if (text.len == 0)
		return;
	if (buf_reserve(&l->text, text.len) != 0) {
		l->text.status = 0; /* no room: nothing was changed */
		return;
	}
	memmove(l->text.ptr + l->cursor + text.len, l->text.ptr + l->cursor,
	        l->text.len - l->cursor);
	memcpy(l->text.ptr + l->cursor, text.ptr, text.len);
	l->text.len += text.len;
	l->cursor += text.len;
}

static void erase(line *l, size_t from, size_t to)
{
	if (from == to)
		return;
	memmove(l->text.ptr + from, l->text.ptr + to, l->text.len - to);
	l->text.len -= to - from;
	l->cursor = from;
}

static void kill_range(line *l, size_t from, size_t to)
{
	if (from == to)
		return;
	buf_reset(&l->killed);
	buf_add(&l->killed, l->text.ptr + from, to - from);
	erase(l, from, to);
}

static void set_text(line *l, sheaf_str text)
{
	l->text.len = l->cursor = 0;
	insert(l, text);
}

static size_t line_begin(const line *l)
{
	size_t at = l->cursor;
	while (at > 0 && l->text.ptr[at - 1] != '\n')
		at--;
	return at;
}

static size_t line_end(const line *l)
{
	size_t at = l->cursor;
	while (at < l->text.len && l->text.ptr[at] != '\n')
		at++;
	return at;
}

/* The beginning of the character before the cursor. */
static size_t before(const line *l)
{
	size_t at = line_begin(l), last = at;
	if (at == l->cursor)
		return at > 0 ? at - 1 : 0;
	while (at < l->cursor) {
		last = at;
		at = text_cluster(buf_view(&l->text), at);
	}
	return last;
}

static size_t after(const line *l)
{
	return text_cluster(buf_view(&l->text), l->cursor);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static size_t word_before(const line *l)
{
	size_t at = l->cursor;
	while (at > 0 && is_blank(l->text.ptr[at - 1]))
		at--;
	while (at > 0 && !is_blank(l->text.ptr[at - 1]))
		at--;
	return at;
}

static size_t word_after(const line *l)
{
	size_t at = l->cursor;
	while (at < l->text.len && is_blank(l->text.ptr[at]))
		at++;
	while (at < l->text.len && !is_blank(l->text.ptr[at]))
		at++;
	return at;
}

/* Up and down: within a text of several lines from line to line, beyond its ends through what was
 * said before. */
static bool move_within(line *l, int key)
{
	size_t begin = line_begin(l), end = line_end(l);
	sheaf_str text = buf_view(&l->text);
	size_t column = text_width(str_make(text.ptr + begin, l->cursor - begin));
	if (key == KEY_UP ? begin == 0 : end == text.len)
		return false;
	l->cursor = key == KEY_UP ? begin - 1 : end + 1;
	begin = line_begin(l);
	end = line_end(l);
	l->cursor = begin;
	while (l->cursor < end &&
	       text_width(str_make(text.ptr + begin, after(l) - begin)) <= column)
		l->cursor = after(l);
	return true;
}

static void move_through_history(line *l, int key)
{
	if (key == KEY_UP ? l->history_at == 0 : l->history_at == l->history_count)
		return;
	if (l->history_at == l->history_count) {
		buf_reset(&l->draft);
		buf_str(&l->draft, buf_view(&l->text));
	}
	l->history_at = key == KEY_UP ? l->history_at - 1 : l->history_at + 1;
	set_text(l, l->history_at < l->history_count ? sheaf_str_of(l->history[l->history_at])
	                                             : buf_view(&l->draft));
}

static void move(line *l, int key)
{
	switch (key) {
	case KEY_LEFT:
		l->cursor = before(l);
		break;
	case KEY_RIGHT:
		l->cursor = after(l);
		break;
	case KEY_HOME:
		l->cursor = line_begin(l);
		break;
	case KEY_END:
		l->cursor = line_end(l);
		break;
	case KEY_WORD_LEFT:
		l->cursor = word_before(l);
		break;
	case KEY_WORD_RIGHT:
		l->cursor = word_after(l);
		break;
	case KEY_UP:
	case KEY_DOWN:
		if (!move_within(l, key))
			move_through_history(l, key);
		break;
	default:
		break;
	}
}

static void change(line *l, int key)
{
	switch (key) {
	case KEY_TEXT:
		insert(l, buf_view(&l->in.text));
		break;
	case KEY_BREAK:
		insert(l, SHEAF_STR("\n"));
		break;
	case KEY_BACKSPACE:
		erase(l, before(l), l->cursor);
		break;
	case KEY_DELETE:
	case KEY_DELETE_OR_CLOSE:
		erase(l, l->cursor, after(l));
		break;
	case KEY_KILL_BEFORE:
		kill_range(l, line_begin(l), l->cursor);
		break;
	case KEY_KILL_AFTER:
		kill_range(l, l->cursor, line_end(l));
		break;
	case KEY_KILL_WORD:
		kill_range(l, word_before(l), l->cursor);
		break;
	case KEY_KILL_WORD_AFTER:
		kill_range(l, l->cursor, word_after(l));
		break;
	case KEY_YANK:
		insert(l, buf_view(&l->killed));
		break;
	default:
		move(l, key);
	}
}

/* A line that ends in a backslash goes on. */
static bool goes_on(line *l)
{
	if (l->text.len == 0 || l->text.ptr[l->text.len - 1] != '\\')
		return false;
	l->text.ptr[l->text.len - 1] = '\n';
	l->cursor = l->text.len;
	return true;
}

/* Ctrl-C puts a text away; the arrow up has it. */
static void give_up(line *l)
{
	leave(l);
	if (l->text.len == 0)
		say(l->c, "Ctrl-D or /quit ends the chat, /help says what else there is");
	line_remember(l, buf_view(&l->text));
	set_text(l, SHEAF_STR(""));
	l->history_at = l->history_count;
}

static void interlude(line *l, int key)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	if (key == KEY_CLEAR) {
		buf_lit(&out, "\033[H\033[2J");
		put_at_once(&out);
		l->rows_above = 0;
		return;
	}
	leave(l);
	if (key == KEY_SUSPEND)
		term_suspend();
	else
		say(l->c, "that was too much for one paste: `sheaf append SESSION <FILE` takes it");
}

void line_prefill(line *l, sheaf_str mark, sheaf_str text)
{
	buf_reset(&l->first);
	buf_str(&l->first, mark);
	buf_str(&l->first, text);
}

static int edit(line *l)
{
	set_text(l, buf_view(&l->first));
	buf_reset(&l->first);
	l->history_at = l->history_count;
	l->rows_above = 0;
	for (;;) {
		draw(l);
		int key = keys_next(&l->in);
		if (key == KEY_CLOSED || (key == KEY_DELETE_OR_CLOSE && l->text.len == 0)) {
			leave(l);
			return LINE_CLOSED;
		}
		if (key == KEY_CANCEL)
			give_up(l);
		else if (key == KEY_CLEAR || key == KEY_SUSPEND || key == KEY_TOO_LONG)
			interlude(l, key);
		else if (key == KEY_ENTER && !goes_on(l))
			break;
		else
			change(l, key);
	}
	leave(l);
	line_remember(l, buf_view(&l->text));
	return LINE_SAID;
}

/* ---- Plain lines ------------------------------------------------------- */

static int read_plain(line *l)
{
	int c;
	_cleanup_(buf_free) buf raw = BUF_INIT(LINE_MAX_BYTES);
	while ((c = getc(stdin)) != EOF) {
		if (c != '\n')
			buf_char(&raw, (char)c);
		else if (raw.len != 0 && raw.ptr[raw.len - 1] == '\\')
			raw.ptr[raw.len - 1] = '\n';
		else
			break;
	}
	if (ferror(stdin) || raw.status != 0)
		return LINE_FAILED;
	if (c == EOF && raw.len == 0)
		return LINE_CLOSED;
	if (raw.len != 0 && raw.ptr[raw.len - 1] == '\r')
		raw.len--;
	buf_reset(&l->text);
	utf8_mend(&l->text, buf_view(&raw));
	return l->text.status != 0 ? LINE_FAILED : LINE_SAID;
}

int line_read(line *l)
{
	if (!l->terminal)
		return read_plain(l);
	term_mode(TERM_EDIT);
	int what = edit(l);
	term_mode(TERM_WAIT);
	return what;
}
