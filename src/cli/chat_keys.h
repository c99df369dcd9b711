/* Keys as a terminal sends them: characters, controls, escape sequences, pasted text. */
#ifndef CLI_CHAT_KEYS_H
#define CLI_CHAT_KEYS_H

#include "base/buf.h"

enum {
	KEY_NONE, /* nothing that means anything here */
	KEY_TEXT, /* a character, or what was pasted: `keys->text` */
	KEY_CLOSED,
	KEY_RESIZED,
	KEY_TOO_LONG, /* more was pasted than fits */
	KEY_ENTER,
	KEY_BREAK, /* a line break within the text */
	KEY_LEFT,
	KEY_RIGHT,
	KEY_UP,
	KEY_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_WORD_LEFT,
	KEY_WORD_RIGHT,
	KEY_BACKSPACE,
	KEY_DELETE,
	KEY_DELETE_OR_CLOSE, /* Ctrl-D */
	KEY_KILL_BEFORE,
	KEY_KILL_AFTER,
	KEY_KILL_WORD,
	KEY_KILL_WORD_AFTER,
	KEY_YANK,
	KEY_CLEAR,
	KEY_CANCEL, /* Ctrl-C */
	KEY_SUSPEND
};

typedef struct keys {
	unsigned char room[4096];
	size_t at;
	size_t end;
	buf text;
} keys;

/* clang-format off */
#define KEYS_INIT {{0}, 0, 0, BUF_INIT(KEYS_PASTE_MAX)}
/* clang-format on */
#define KEYS_PASTE_MAX ((size_t)1 << 20)

/* Waits for the next key. */
int keys_next(keys *k);
void keys_done(keys *k);

#endif
