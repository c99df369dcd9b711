/* Checks that drafts, foreign records, headers and heads share. */
#ifndef ENTRY_CHECK_H
#define ENTRY_CHECK_H

#include <stdbool.h>

#include "base/arena.h"
#include "sheaf/error.h"

/* Valid UTF-8 without control characters: what ids, branch names and keys in headers must be. */
bool check_plain(sheaf_str text);

/* Whether a top-level member of that name belongs to the envelope or the frame. */
bool check_reserved(sheaf_str key); /* still escaped */

/*
 * No member of a body or of extra members may have a reserved name. SHEAF_INVALID.
 * `*delta` gets the value of their state_delta, or {NULL,0}.
 */
int check_names(sheaf_str members, sheaf_str *delta, sheaf_error *err);

/*
 * A body of this kind has the payload its type needs, in checked JSON members.
 * `type` names the payload. SHEAF_INVALID, SHEAF_LIMIT.
 */
int check_payload(int32_t kind, sheaf_str type, sheaf_str members, sheaf_error *err);

/*
 * A JSON string value with its quotes, unescaped: a view of it where nothing is
 * escaped, else a copy in `a` (NULL: refused). SHEAF_FORMAT if it is no string,
 * SHEAF_NOMEM.
 */
int check_unescape(sheaf_str *out, sheaf_str value, arena *a);

#endif
