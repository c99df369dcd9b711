/* What a message of Gemini CLI says, as messages. */
#ifndef CONVERT_GEMINI_MESSAGE_H
#define CONVERT_GEMINI_MESSAGE_H

#include "convert/parts.h"
#include "convert/window.h"

/*
 * Gemini CLI writes an answer down twice: with the call, and as the user's
 * message that carried it. `answered` has the ids of calls whose answer is in.
 */

/* All but the answers and calls: the same for a message in any of the forms it is written in. */
uint64_t gemini_digest(value message);

/* Whether it is a user's message of nothing but answers that are in. */
bool gemini_is_double(const window *answered, value message);

/* Tokens as we count them; all 0 if it has none. */
sheaf_usage gemini_usage(value message);

/* A call's id as it was sent: without the name of the tool that is put before it. */
sheaf_str gemini_call_id(value call);

/* What the user said beside answers; NULL if that is nothing. */
int gemini_user(import *im, value message, sheaf_message **out);

/* Answers in the user's message that are not in yet, which then are: a tool's message, or NULL. */
int gemini_responses(import *im, window *answered, value message, sheaf_message **out);

/*
 * What the model said, with the calls from one on; without text and thoughts if
 * that is not the first (`rest`). NULL when out of memory.
 */
sheaf_message *gemini_reply(value message, size_t first_call, bool rest);

/* The answers that are not in yet, which then are: a tool's message, or NULL if there are none. */
int gemini_answers(import *im, window *answered, value message, sheaf_message **out);

void gemini_freep(sheaf_message **m);

int gemini_cli_write(export *ex);
int gemini_cli_place(export *ex);

#endif
