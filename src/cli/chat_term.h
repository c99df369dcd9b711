/* The terminal under a chat: its modes, its size, and how it is left behind. */
#ifndef CLI_CHAT_TERM_H
#define CLI_CHAT_TERM_H

#include <stdbool.h>
#include <stddef.h>

enum {
	TERM_FOUND, /* as it was before */
	TERM_EDIT,  /* every key comes to us, Ctrl-C too */
	TERM_WAIT   /* keys wait unseen until they are read; Ctrl-C is a signal */
};

/* Remembers how the terminal is and sees to it that a signal that ends us leaves it so. False if
 * stdin or stdout is none, or one that knows no cursor. */
bool term_start(void);
void term_mode(int mode);

typedef struct term_size {
	size_t columns;
	size_t rows;
} term_size;
term_size term_measure(void);

/* Stops as Ctrl-Z does; returns when it goes on. */
void term_suspend(void);

#endif
