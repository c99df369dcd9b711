/* What the tests of src/entry share: cmocka, chance, and short ways to say things. */
#ifndef ENTRY_TEST_H
#define ENTRY_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/crc.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "sheaf/session.h"
#include "support/fail_alloc.h"

#define S(literal) SHEAF_STR(literal)
#define NONE ((sheaf_str){NULL, 0})

/* The same numbers on every run: a failure can be repeated. */
typedef struct chance {
	uint64_t state;
} chance;

static inline uint64_t chance_next(chance *c)
{
	c->state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = c->state;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline size_t chance_below(chance *c, size_t limit)
{
	return (size_t)(chance_next(c) % limit);
}

/* A text of valid UTF-8 of up to `max` bytes that likes quotes, backslashes and other scripts. */
static inline sheaf_str chance_text(chance *c, char *out, size_t max, bool controls)
{
	static const char *const pieces[] = {"a",  "Z",    " ",          "\"",
	                                     "\\", "{",    "}",          "[",
	                                     "]",  ",",    ":",          "é",
	                                     "語", "😀",    "\x7f",       "\n",
	                                     "\t", "\x01", ",\"seq\":1", "\"crc\":\"00000000\"}"};
	size_t usable = controls ? COUNT_OF(pieces) : 14, len = 0, want = chance_below(c, max + 1);
	for (;;) {
		const char *piece = pieces[chance_below(c, usable)];
		size_t n = strlen(piece);
		if (len + n > want)
			break;
		memcpy(out + len, piece, n);
		len += n;
	}
	return str_make(out, len);
}

static inline void assert_str_at(sheaf_str got, sheaf_str want, const char *file, int line)
{
	if ((got.ptr == NULL) != (want.ptr == NULL) || !str_eq(got, want)) {
		print_error("got  %s%.*s\nwant %s%.*s\n", got.ptr != NULL ? "" : "(not given)",
		            (int)got.len, got.len != 0 ? got.ptr : "",
		            want.ptr != NULL ? "" : "(not given)", (int)want.len,
		            want.len != 0 ? want.ptr : "");
		_fail(file, line);
	}
}

#define assert_str(got, want) assert_str_at((got), (want), __FILE__, __LINE__)
#define assert_code(want, call) assert_int_equal((want), (call))

/* `count` times a character, freed by the caller. */
static inline char *repeat(char c, size_t count)
{
	char *text = malloc(count + 1);
	assert_non_null(text);
	memset(text, c, count);
	text[count] = '\0';
	return text;
}

/*
 * Runs a call with its first, second, … allocation failing until none does.
 * `call` must clean up after itself and gives SHEAF_NOMEM or 0.
 */
static inline void each_allocation_fails(int (*call)(void))
{
	fail_alloc_install();
	for (size_t n = 1;; n++) {
		fail_alloc_at(n, false);
		int rc = call();
		bool hit = fail_alloc_hit();
		assert_int_equal(rc, hit ? SHEAF_NOMEM : 0);
		assert_int_equal(fail_alloc_live(), 0);
		if (!hit)
			break;
		assert_true(n < 10000);
	}
	fail_alloc_remove();
}

#endif
