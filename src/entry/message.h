/* The inside of a message builder, for the appends that take one. */
#ifndef ENTRY_MESSAGE_H
#define ENTRY_MESSAGE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "sheaf/message.h"

/*
 * The message's JSON and its first failure. Works on a const message: the
 * builder closes its JSON after every call, so there is nothing left to do.
 */
int message_finish(const sheaf_message *m, sheaf_str *json, sheaf_error *err);

/* Reads a parsed `message` value; `bytes` is its text as stored. Strings are copied into `a`. */
int message_read(sheaf_message_view **out, const json_val *v, sheaf_str bytes, arena *a,
                 sheaf_error *err);

/* The same for bytes that live as long as `a`: they are not copied, views point into them. */
int message_read_kept(sheaf_message_view **out, const json_val *v, sheaf_str bytes, arena *a,
                      sheaf_error *err);

/* And for a look: strings are the document's, until its next parse. */
int message_look(sheaf_message_view **out, const json_val *v, sheaf_str bytes, arena *a,
                 sheaf_error *err);

/* A `usage` object; what is absent or no number counts as 0. */
void message_usage(sheaf_usage *out, const json_val *v);

extern const char *const message_roles[]; /* ends in NULL */
bool message_role_known(sheaf_str role);

#endif
