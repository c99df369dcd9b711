/* Small functions over sheaf_str. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <string.h>

#include "sheaf/common.h"

static inline sheaf_str str_make(const char *ptr, size_t len)
{
	return (sheaf_str){ptr, len};
}

static inline bool str_eq(sheaf_str a, sheaf_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool str_is(sheaf_str a, const char *literal)
{
	size_t n = strlen(literal);
	return a.len == n && memcmp(a.ptr, literal, n) == 0;
}

static inline bool str_starts(sheaf_str a, const char *literal)
{
	size_t n = strlen(literal);
	return a.len >= n && memcmp(a.ptr, literal, n) == 0;
}

int str_cmp(sheaf_str a, sheaf_str b); /* bytewise, shorter first on a tie */

/* 64-bit hash for in-memory and derived tables; the same on every machine. */
uint64_t str_hash(sheaf_str s);

/* Copies into a fixed array with a NUL, cutting on a code point boundary. */
void str_copy_cut(char *out, size_t room, sheaf_str s);

#endif
