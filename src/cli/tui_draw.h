/* The screen of the browser and its keys: the only user of ncurses. */
#ifndef CLI_TUI_DRAW_H
#define CLI_TUI_DRAW_H

#include "tui_styled.h"

/* A part of the screen. */
typedef struct area {
	int top;
	int left;
	int rows;
	int columns;
} area;

/* Takes the terminal; false if it is none on which text can be placed. */
bool draw_start(bool color);
void draw_end(void);

/* The whole screen, as it is now. */
area draw_whole(void);

/* Begins a new picture, and shows it; the cursor stands at (row, column), or is hidden if < 0. */
void draw_begin(void);
void draw_show(int row, int column);
/* Draws everything anew, whatever was on the screen. */
void draw_again(void);

/* Puts a line at a row of an area, from a column of it on, in at most so many columns. */
enum {
	DRAW_CHOSEN = 1, /* brought out over the whole width */
	DRAW_DIM = 2
};
void draw_styled(area in, int row, int column, int columns, styled line, int how);
void draw_text(area in, int row, int column, int columns, sheaf_str text, int how);
/* The same over the whole row. */
void draw_row(area in, int row, styled line, int how);

/* A line between two parts. */
void draw_rule(int row, int column, int columns);
void draw_wall(int row, int column, int rows);

/* Keys: a character, or one of these. */
enum {
	KEYS_NONE = -1, /* none came in time */
	KEYS_CLOSED = -2,
	KEYS_UP = 0x110000,
	KEYS_DOWN,
	KEYS_LEFT,
	KEYS_RIGHT,
	KEYS_PAGE_UP,
	KEYS_PAGE_DOWN,
	KEYS_HOME,
	KEYS_END,
	KEYS_ENTER,
	KEYS_BACKSPACE,
	KEYS_TAB,
	KEYS_BACK_TAB,
	KEYS_ESCAPE,
	KEYS_RESIZED,
	KEYS_OTHER
};
#define KEYS_CTRL(letter) ((letter) - 'a' + 1)

/* Waits so many milliseconds for a key, -1 for as long as it takes. */
int draw_key(int milliseconds);

/* Asks the terminal to put plain ASCII into the clipboard of whoever sits at it. */
void draw_copy(sheaf_str plain);

#endif
