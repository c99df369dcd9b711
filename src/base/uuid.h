/* UUIDv7: 48 bits of milliseconds, then a counter and randomness; ascending within a process. */
#ifndef BASE_UUID_H
#define BASE_UUID_H

#include <stdbool.h>

#include "sheaf/error.h"

#define UUID_TEXT 36

int uuid7_new(char out[UUID_TEXT + 1], sheaf_error *err);
bool uuid7_is(
	sheaf_str s); /* spelled as uuid7_new() spells them: lower case, version 7, variant 2 */

#endif
