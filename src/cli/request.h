/* What the options say about a request to a model: the format, the system text, the tools. */
#ifndef CLI_REQUEST_H
#define CLI_REQUEST_H

#include "cmd.h"
#include "print.h"

/* Reads --format, --provider, --model, --system, --tools, --cache, --thinking, --bytes and --elide
 * into `out`, whose strings live as long as the command. 0 or the exit code after a report. */
int request_options(cli *c, sheaf_render_options *out);

/* The text of an option that takes TEXT or @FILE; {NULL,0} if it was not given. */
int request_text(cli *c, opt_id id, sheaf_str *out);

/* What contexts and renderings noted, on stderr for people. */
void request_notes(const cli *c, const sheaf_note *const *notes, size_t count);
/* And as members of an array for programs. */
void js_notes(buf *b, const sheaf_note *const *notes, size_t count);

/* For _cleanup_. */
void context_freep(sheaf_context **context);
void rendered_freep(sheaf_request **request);

#endif
