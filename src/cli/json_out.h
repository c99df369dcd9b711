/*
 * JSON as the command writes it: for programs, and safe on a terminal all the same.
 *
 * Members are put one after the other; the comma comes by itself. Characters
 * that a terminal obeys or hides are written as \uXXXX, so any JSON reader gets
 * them back and no terminal ever sees them.
 */
#ifndef CLI_JSON_OUT_H
#define CLI_JSON_OUT_H

#include <stdbool.h>

#include "base/buf.h"

/* A bracket or brace, with a name in an object and NULL in an array or at the top. */
void js_open(buf *b, const char *name, char bracket);
void js_close(buf *b, char bracket);

void js_str(buf *b, const char *name, sheaf_str value); /* {NULL,0} becomes null */
void js_text(buf *b, const char *name, const char *value);
void js_u64(buf *b, const char *name, uint64_t value);
void js_bool(buf *b, const char *name, bool value);
void js_time(buf *b, const char *name, int64_t us);    /* 0 becomes null */
void js_raw(buf *b, const char *name, sheaf_str json); /* {NULL,0} becomes null */

/* JSON text as it was stored, with the same characters escaped; still the same value. */
void js_line(buf *b, sheaf_str json);

#endif
