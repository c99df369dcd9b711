/* Where output goes: colour, pager, messages, errors. Data goes to stdout, words to stderr. */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include "base/buf.h"
#include "cmd.h"
#include "json_out.h"
#include "text.h"

/* Select graphic rendition, by meaning. */
#define STYLE_TITLE "1"
#define STYLE_DIM "2"
#define STYLE_ERROR "1;31"
#define STYLE_WARN "33"
#define STYLE_USER "1;32"
#define STYLE_ASSISTANT "1;36"
#define STYLE_TOOL "1;34"
#define STYLE_OTHER "1"
#define STYLE_LABEL "33"
#define STYLE_BRANCH "1;32"
#define STYLE_COMPACTED "1;35"
#define STYLE_BAD "31"
#define STYLE_ADDED "32"

/* Looks at the terminal, the environment and the options. */
void print_init(cli *c);

/* Puts text (already safe) in a style; without colour just the text. `style` NULL = plain. */
void print_styled(const screen *s, buf *out, const char *style, sheaf_str safe);
void print_on(const screen *s, buf *out, const char *style);
void print_off(const screen *s, buf *out);

/* From here on output is long and for people: through a pager if stdout is a terminal. */
void print_page(cli *c);

/* Writes the buffer to stdout and empties it. */
void print_out(buf *out);

/* Ends the output: waits for the pager. 0, or the exit code if something could not be written. */
int print_end(cli *c);

/* A message on stderr unless --quiet; the line break is added. */
void say(const cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether to advise `sheaf repair`: the store knows it, or none is open that could be asked. */
bool store_repairs(const cli *c);

/* Reports `c->err` (or the given error) and returns the exit code for it. */
int fail(cli *c);
int fail_with(cli *c, int code, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The same with a list of what was meant, one a line. */
int fail_among(cli *c, int code, const char *message, const sheaf_str *candidates, size_t count);
/* A mistake on the command line: exit code 2, and where help is. */
int usage(cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
int fail_memory(cli *c);

/* Tokens, as --json says them. */
void js_usage(buf *b, const char *name, const sheaf_usage *usage);

/* Whether and when a session expires, as --json says it. */
void js_retention(buf *b, const sheaf_session_info *info);

/* What an append did, as --json says it. */
void js_appended(buf *b, const sheaf_appended *done);

#endif
