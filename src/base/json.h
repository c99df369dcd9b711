/*
 * JSON, through yyjson; json.c is its only includer.
 *
 * Reading gives a document whose values are looked at with the functions
 * below. Numbers stay text. Writing is direct, with base/buf.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>

#include "buf.h"

typedef struct json_doc json_doc;
typedef struct json_val json_val; /* owned by its document; never defined */

/*
 * Parses one JSON value with nothing but blanks around it. Numbers are kept
 * raw. Reuses `*doc` if it is not NULL (its memory serves many lines).
 * SHEAF_FORMAT for bad JSON (with the offset in the message), SHEAF_NOMEM.
 */
int json_parse(json_doc **doc, sheaf_str text, sheaf_error *err);
/* The same for the value at the very beginning of a text: it ends after `*used` bytes, and what
 * follows is not looked at. */
int json_parse_first(json_doc **doc, sheaf_str text, size_t *used, sheaf_error *err);
void json_free(json_doc *doc);
void json_freep(json_doc **doc);
const json_val *json_root(const json_doc *doc);

typedef enum json_type {
	JSON_NONE,
	JSON_NULL,
	JSON_BOOL,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT
} json_type;

/* All of these take NULL as "absent" and answer NONE, NULL, false or 0. */
json_type json_type_of(const json_val *v);
const json_val *json_get(const json_val *object, const char *name); /* first member of that name */
sheaf_str json_string(const json_val *v); /* unescaped, NUL-terminated; {NULL,0} if no string */
sheaf_str json_number(const json_val *v); /* its text; {NULL,0} if no number */
bool json_u64(const json_val *v, uint64_t *out); /* false unless a whole number 0..2^64-1 */
bool json_bool(const json_val *v);               /* true only for true */
bool json_is_bool(const json_val *v);
size_t json_count(const json_val *v); /* elements or members */

/* How far the name of a member's value (from json_get()) stands behind the object's first name, in
 * the text that was parsed. */
size_t json_name_offset(const json_val *object, const json_val *value);

/* Iteration. it.key is NULL in arrays.  for (json_iter it = json_each(v); json_next(&it);) … */
typedef struct json_iter {
	const json_val *key;
	const json_val *value;
	const void *at;
	size_t left;
	bool object;
} json_iter;
json_iter json_each(const json_val *v);
bool json_next(json_iter *it);

/*
 * What a caller's JSON must satisfy before it is embedded in a record: one
 * value; depth at most SHEAF_DEPTH_MAX; no duplicate keys (compared unescaped);
 * valid UTF-8; no lone surrogate escape; no raw NUL; no CR, LF or other
 * control between tokens or in strings. `must` is JSON_OBJECT, or JSON_NONE
 * for any value.
 * SHEAF_INVALID with the reason, SHEAF_LIMIT for depth, SHEAF_NOMEM.
 */
int json_check(sheaf_str text, json_type must, sheaf_error *err);

/*
 * Whether a text passes json_check(), nested at most `depth` deep, told by the
 * document it was parsed to: for text that is parsed anyway this takes a fraction
 * of the time. false: it does not, or an object has too many members to be sure.
 */
bool json_doc_passes(const json_doc *doc, sheaf_str text, size_t depth);

/*
 * The same text with broken UTF-8, lone surrogate escapes and raw NUL made
 * U+FFFD; counts them in `*mended`. What is wrong otherwise stays wrong.
 */
void json_mend(buf *out, sheaf_str text, size_t *mended);

/*
 * The end of the array or object that opens at `p`, of the string behind whose
 * opening quote `p` stands (there its closing quote). NULL if it does not end
 * before `end`.
 */
const char *json_container_end(const char *p, const char *end);
const char *json_string_end(const char *p, const char *end);

/*
 * The bytes of a top-level member's value in an object's text, blanks trimmed,
 * without parsing what lies around it. {NULL,0} if absent. The text must have
 * passed json_check or json_parse.
 */
sheaf_str json_member_bytes(sheaf_str object, const char *name);

/*
 * Walks the top-level members of an object's text in order, giving the raw key
 * (still escaped, without quotes) and the raw value. Returns false at the end.
 * Start with *at = 0.
 */
bool json_member_next(sheaf_str object, size_t *at, sheaf_str *key, sheaf_str *value);

/* The same for the elements of an array's text. */
bool json_element_next(sheaf_str array, size_t *at, sheaf_str *value);

#endif
