/*
 * Walking JSON text that has been checked, without parsing it.
 *
 * A record's body is a list of members without braces, which base/json does not
 * take; and most questions about a record ("has it usage?", "where are the
 * bytes of its input?") need one value of many. Everything here is one pass,
 * allocates nothing, gives views, and stays inside the text whatever it holds.
 */
#ifndef ENTRY_MEMBERS_H
#define ENTRY_MEMBERS_H

#include <stdbool.h>

#include "sheaf/common.h"

/*
 * The next `"key":value`. Key without quotes and still escaped, value with
 * everything. Start with *at = 0. The text may be the rest of an object: a
 * comma before the first member is passed over, a closing brace is the end.
 */
bool members_next(sheaf_str members, size_t *at, sheaf_str *key, sheaf_str *value);

/* The value of the first member of that name, or {NULL,0}. `name` is plain ASCII. */
sheaf_str members_find(sheaf_str members, const char *name);
/* The same for a member that is known to be the last: its end is not looked for. */
sheaf_str members_last(sheaf_str members, const char *name);

/* Whether a key, still escaped, spells `name`. */
bool members_key_is(sheaf_str key, const char *name);

/* The next element of an array's inside. */
bool elements_next(sheaf_str elements, size_t *at, sheaf_str *value);

/* The value of the member whose name stands `offset` behind the first name of `object`. */
sheaf_str members_at(sheaf_str object, size_t offset);

/* What is between the braces or brackets of a value, or {NULL,0} if it has none. */
sheaf_str members_inside(sheaf_str value);

/* Without the blanks around it. */
sheaf_str members_trim(sheaf_str text);

/* How deep arrays and objects are nested: 0 for a string, 1 for [] and {}. */
size_t members_depth(sheaf_str text);

#endif
