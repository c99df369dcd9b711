/* Small helpers for converters: values of JSON text, and building messages from them. */
#ifndef CONVERT_PARTS_H
#define CONVERT_PARTS_H

#include "base/json.h"
#include "convert/convert.h"

/* A member of an object; {NULL, {NULL,0}} if it has none of that name. */
value value_get(value object, const char *name);

/* The elements of an array, in order: for (value_iter it = value_each(a); value_next(&it, &v);) */
typedef struct value_iter {
	json_iter it;
	sheaf_str inside;
	size_t at;
} value_iter;

value_iter value_each(value array);
bool value_next(value_iter *it, value *out);

static inline sheaf_str value_string(value object, const char *name)
{
	return json_string(json_get(object.v, name));
}

/* The members of the object that a file begins with, as far as `head` has them, for
 * members_find(); {NULL,0} if it begins otherwise. */
sheaf_str head_members(sheaf_str head);

/* RFC 3339 text, or milliseconds since 1970; 0 if it is neither. */
int64_t value_time(value object, const char *name);

#endif
