/* UTF-8: checking, mending, cutting. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>

#include "buf.h"

bool utf8_valid(sheaf_str s); /* no overlongs, no surrogates, at most U+10FFFF */

/*
 * Appends `s` to `out` with every broken sequence as U+FFFD (one for each
 * maximal broken part); returns how many were replaced.
 */
size_t utf8_mend(buf *out, sheaf_str s);

/* The longest prefix of at most `max` bytes that does not split a code point. */
sheaf_str utf8_cut(sheaf_str s, size_t max);

#endif
