/*
 * Writing formats in which a call and its answer are one part: the conversation
 * as the model sees it, and the answer of each call.
 */
#ifndef CONVERT_SAID_H
#define CONVERT_SAID_H

#include "convert/convert.h"
#include "sheaf/context.h"

/* The context at the leaf asked for. What it leaves out is counted as lost. Caller frees. */
int said_open(export *ex, sheaf_context **out);
void said_freep(sheaf_context **context);

/*
 * What an item says that is neither the user's, the assistant's, a tool's nor the
 * system's, in the words a model would be sent: summaries, what a command printed.
 * out->len stays 0 for the others.
 */
int said_wording(export *ex, const sheaf_context *context, size_t i, buf *out);

/* The answer to a call of item `i`: all calls of a context are answered. NULL if it is not. */
const sheaf_part *said_answer(const sheaf_context *context, size_t i, sheaf_str call);

/* A result's text: its own, or its texts joined by line breaks. What else is in it is lost, but not
 * images and documents if `files`: the format has a place for them. */
int said_result_text(export *ex, const sheaf_part *result, bool files, buf *out);

/* A JSON value on one line; what is none, as a string. */
int said_value(export *ex, buf *out, sheaf_str json);

/* "data:TYPE;base64,DATA" or the address, as a JSON string. */
void said_url(buf *out, const sheaf_part *media);

/* What a provider wants back with thinking: {"anthropic":{"signature":…}}, with NAME before it and
 * a comma before that; nothing if it is not signed. */
int said_metadata(export *ex, buf *out, const char *name, const sheaf_message_view *message,
                  const sheaf_part *part);

#endif
