/*
 * A chat: one conversation on one branch of a session, with a model behind it.
 *
 * cmd_chat.c starts and ends it, chat_turn.c asks the model, chat_command.c does
 * what is said with a slash.
 */
#ifndef CLI_CHAT_H
#define CLI_CHAT_H

#include "chat_line.h"
#include "cmd.h"
#include "model.h"

typedef struct chat {
	cli *c;
	bool terminal; /* a person is here; else lines come through a pipe */
	line line;
	sheaf_key key;          /* of a session that is not there yet: as it is to be */
	sheaf_session *session; /* NULL before the first message of a new one */
	char branch[SHEAF_BRANCH_BYTES_MAX + 1];
	model model;
	sheaf_render_options how;
	sheaf_system system;
	sheaf_str stored_system; /* what the session remembers */
	sheaf_str stored_url;
	bool over; /* somebody said so */
} chat;

/* Lets the model answer: `text`, which is stored first, or with {NULL,0} what the branch ends with.
 * 0 or the exit code after a report; in a terminal, everything is then as it was before. */
int chat_ask(chat *ch, sheaf_str text);

/* Has the model sum up what came before. */
int chat_compact(chat *ch, sheaf_str instructions);

/* Puts a text on the line, to be changed and sent again; one with a slash as it is to be typed. */
void chat_offer(chat *ch, sheaf_str text);

/* Whether a text is a command, and doing what it says. */
bool chat_is_command(sheaf_str text);
int chat_command(chat *ch, sheaf_str text);

/* Makes the session of a new chat. 0 or the exit code. */
int chat_session(chat *ch);

/* The newest entries of the branch; fewer if those are too large. 0 or the exit code. */
int chat_path(chat *ch, size_t limit, sheaf_records **out);

#endif
