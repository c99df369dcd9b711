/* Turning the bytes of a terminal into keys. */
#include "chat_keys.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/utf8.h"

#define ESCAPE_MS 50 /* how long the rest of a sequence may take; a lone Esc is no key here */
#define FOREVER (-1)
#define PARAMETERS_MAX 16u

enum {
	BYTE_CLOSED = -1,
	BYTE_LATE = -2,
	BYTE_RESIZED = -3
};

void keys_done(keys *k)
{
	buf_free(&k->text);
}

/* The next byte, or one of the above. */
static int next_byte(keys *k, int wait_ms)
{
	if (k->at < k->end)
		return k->room[k->at++];
	struct pollfd in = {STDIN_FILENO, POLLIN, 0};
	int ready = poll(&in, 1, wait_ms);
	if (ready == 0)
		return BYTE_LATE;
	ssize_t n = ready > 0 ? read(STDIN_FILENO, k->room, sizeof(k->room)) : -1;
	if (n < 0 && errno == EINTR)
		return BYTE_RESIZED;
	if (n <= 0)
		return BYTE_CLOSED;
	k->at = 1;
	k->end = (size_t)n;
	return k->room[0];
}

/* Within a sequence a resize is no interruption: the line is drawn anew after it anyway. */
static int next_of_sequence(keys *k)
{
	int byte;
	while ((byte = next_byte(k, ESCAPE_MS)) == BYTE_RESIZED)
		;
	return byte;
}

static int take_character(keys *k, int first)
{
	char bytes[4] = {(char)first};
	size_t len = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
	for (size_t i = 1; i < len; i++) {
		int byte = next_of_sequence(k);
		if (byte < 0)
			return KEY_NONE;
		bytes[i] = (char)byte;
	}
	if (!utf8_valid((sheaf_str){bytes, len}))
		return KEY_NONE;
	buf_add(&k->text, bytes, len);
	return KEY_TEXT;
}

/* Everything up to ESC [ 2 0 1 ~, with line breaks as the rest of the world has them. */
static int take_paste(keys *k)
{
	static const char end[] = "\033[201~";
	size_t matched = 0;
	_cleanup_(buf_free) buf raw = BUF_INIT(KEYS_PASTE_MAX);
	while (matched < sizeof(end) - 1) {
		int byte = next_byte(k, FOREVER);
		if (byte == BYTE_RESIZED)
			continue;
		if (byte < 0)
			return KEY_CLOSED;
		if (byte == end[matched]) {
			matched++;
			continue;
		}
		buf_add(&raw, end, matched);
		matched = byte == end[0];
		if (matched == 0 && byte != 0)
			buf_char(&raw, (char)byte);
	}
	_cleanup_(buf_free) buf lines = BUF_INIT(KEYS_PASTE_MAX);
	for (size_t i = 0; i < raw.len; i++) {
		if (raw.ptr[i] != '\r')
			buf_char(&lines, raw.ptr[i]);
		else if (i + 1 == raw.len || raw.ptr[i + 1] != '\n')
			buf_char(&lines, '\n');
	}
	utf8_mend(&k->text, buf_view(&lines));
	if (raw.status != 0 || lines.status != 0 || k->text.status != 0)
		return KEY_TOO_LONG;
	return k->text.len != 0 ? KEY_TEXT : KEY_NONE;
}

static int numbered(int number)
{
	switch (number) {
	case 1:
	case 7:
		return KEY_HOME;
	case 4:
	case 8:
		return KEY_END;
	case 3:
		return KEY_DELETE;
	default:
		return KEY_NONE;
	}
}

/* By the letter that ends a sequence; `held`: Alt or Ctrl was. */
static int lettered(int letter, bool held)
{
	switch (letter) {
	case 'A':
		return KEY_UP;
	case 'B':
		return KEY_DOWN;
	case 'C':
		return held ? KEY_WORD_RIGHT : KEY_RIGHT;
	case 'D':
		return held ? KEY_WORD_LEFT : KEY_LEFT;
	case 'H':
		return KEY_HOME;
	case 'F':
		return KEY_END;
	default:
		return KEY_NONE;
	}
}

/* ESC [ NUMBER ; MODIFIERS LETTER */
static int take_control_sequence(keys *k)
{
	int number[2] = {0, 0};
	size_t which = 0;
	for (size_t i = 0; i < PARAMETERS_MAX; i++) {
		int byte = next_of_sequence(k);
		if (byte < 0)
			return KEY_NONE;
		if (byte >= '0' && byte <= '9' && which < COUNT_OF(number) && number[which] < 1000)
			number[which] = number[which] * 10 + (byte - '0');
		else if (byte == ';')
			which++;
		else if (byte == '~')
			return number[0] == 200 ? take_paste(k) : numbered(number[0]);
		else if (byte >= 0x40)
			return lettered(byte, number[1] > 2);
	}
	return KEY_NONE;
}

static int take_escape(keys *k)
{
	int byte = next_of_sequence(k);
	switch (byte) {
	case '[':
		return take_control_sequence(k);
	case 'O':
		return lettered(next_of_sequence(k), false);
	case '\r':
	case '\n':
		return KEY_BREAK;
	case 'b':
		return KEY_WORD_LEFT;
	case 'f':
		return KEY_WORD_RIGHT;
	case 'd':
		return KEY_KILL_WORD_AFTER;
	case 0x7f:
	case 0x08:
		return KEY_KILL_WORD;
	default:
		return KEY_NONE;
	}
}

int keys_next(keys *k)
{
	static const unsigned char controls[0x20] = {
		['A' & 0x1f] = KEY_HOME,       ['B' & 0x1f] = KEY_LEFT,
		['C' & 0x1f] = KEY_CANCEL,     ['D' & 0x1f] = KEY_DELETE_OR_CLOSE,
		['E' & 0x1f] = KEY_END,        ['F' & 0x1f] = KEY_RIGHT,
		['H' & 0x1f] = KEY_BACKSPACE,  ['J' & 0x1f] = KEY_ENTER,
		['K' & 0x1f] = KEY_KILL_AFTER, ['L' & 0x1f] = KEY_CLEAR,
		['M' & 0x1f] = KEY_ENTER,      ['N' & 0x1f] = KEY_DOWN,
		['P' & 0x1f] = KEY_UP,         ['U' & 0x1f] = KEY_KILL_BEFORE,
		['W' & 0x1f] = KEY_KILL_WORD,  ['Y' & 0x1f] = KEY_YANK,
		['Z' & 0x1f] = KEY_SUSPEND,
	};
	buf_reset(&k->text);
	int byte = next_byte(k, FOREVER);
	if (byte == BYTE_RESIZED)
		return KEY_RESIZED;
	if (byte < 0)
		return KEY_CLOSED;
	if (byte == '\033')
		return take_escape(k);
	if (byte == 0x7f)
		return KEY_BACKSPACE;
	if (byte >= 0x80)
		return take_character(k, byte);
	if (byte < 0x20 && byte != '\t')
		return controls[byte];
	buf_char(&k->text, (char)byte);
	return KEY_TEXT;
}
