/* The terminal under a chat: raw while a line is edited, silent while a reply comes. */
#include "chat_term.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define COLUMNS_MIN 8u /* on anything narrower nothing can be drawn */

static struct termios found;
static int present = TERM_FOUND;

/* A write that fails here has nobody to tell. */
static void put(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		return;
}

/* Only async-signal-safe calls: it runs in handlers. */
void term_mode(int mode)
{
	if (mode == present)
		return;
	struct termios t = found;
	if (mode != TERM_FOUND) {
		t.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN | (mode == TERM_EDIT ? ISIG : 0));
		t.c_lflag |= NOFLSH; /* Ctrl-C stops a reply, not what was typed meanwhile */
		t.c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR | IGNCR);
		t.c_cc[VMIN] = 1;
		t.c_cc[VTIME] = 0;
	}
	/* Bracketed paste: what is pasted comes marked, so that its line breaks send nothing. */
	if (present == TERM_EDIT)
		put("\033[?2004l");
	/* Draining keeps what was typed ahead. */
	tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
	if (mode == TERM_EDIT)
		put("\033[?2004h");
	present = mode;
}

static void leave(int number)
{
	term_mode(TERM_FOUND);
	signal(number, SIG_DFL);
	raise(number);
}

static void resized(int number)
{
	(void)number; /* that read() returns is all that is wanted */
}

bool term_start(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	const char *kind = getenv("TERM");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || kind == NULL || kind[0] == '\0' ||
	    strcmp(kind, "dumb") == 0 || tcgetattr(STDIN_FILENO, &found) != 0)
		return false;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		signal(ends[i], leave);
	struct sigaction resize = {.sa_handler = resized};
	sigaction(SIGWINCH, &resize, NULL);
	return true;
}

term_size term_measure(void)
{
	struct winsize size;
	term_size out = {80, 24};
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 && size.ws_row != 0)
		out = (term_size){size.ws_col, size.ws_row};
	if (out.columns < COLUMNS_MIN)
		out.columns = COLUMNS_MIN;
	return out;
}

void term_suspend(void)
{
	int mode = present;
	term_mode(TERM_FOUND);
	raise(SIGTSTP);
	term_mode(mode);
}
