/*
 * A growable buffer that carries its maximum and remembers its first failure.
 *
 * Append as often as you like, then look at buf_status() once: after a failure
 * every append does nothing.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <string.h>

#include "cleanup.h"
#include "sheaf/error.h"

typedef struct buf {
	char *ptr;
	size_t len;
	size_t room;
	size_t max;
	int status; /* 0, SHEAF_NOMEM or SHEAF_TOO_LARGE */
} buf;

/* clang-format off */
#define BUF_INIT(limit) {NULL, 0, 0, (limit), 0}
/* clang-format on */

void buf_free(buf *b);  /* for _cleanup_ too; the buffer can be used again */
void buf_reset(buf *b); /* empties, keeps the memory, forgets a failure */

/* Makes room for `more` bytes; returns 0 or the (sticky) failure. */
int buf_reserve(buf *b, size_t more);

void buf_add_slow(buf *b, const void *ptr, size_t len);

static inline void buf_add(buf *b, const void *ptr, size_t len)
{
	if (b->status == 0 && b->room - b->len >= len) {
		if (len != 0)
			memcpy(b->ptr + b->len, ptr, len);
		b->len += len;
		return;
	}
	buf_add_slow(b, ptr, len);
}

static inline void buf_str(buf *b, sheaf_str s)
{
	buf_add(b, s.ptr, s.len);
}

#define buf_lit(b, literal) buf_add((b), (literal), sizeof(literal) - 1)

static inline void buf_char(buf *b, char c)
{
	if (b->status == 0 && b->len < b->room)
		b->ptr[b->len++] = c;
	else
		buf_add_slow(b, &c, 1);
}

void buf_u64(buf *b, uint64_t value); /* decimal */
void buf_i64(buf *b, int64_t value);
void buf_format(buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_nul(buf *b); /* writes a NUL after the content without counting it */

/*
 * Text as a JSON string with its quotes, escaped the shortest way: \" \\ \b \f
 * \n \r \t, other controls as \u00XX, everything else as it is. The text must
 * be valid UTF-8 (utf8_check); bytes that are not are copied as they are.
 */
void buf_json(buf *b, sheaf_str text);

/* 0, or the first failure with `err` filled. */
int buf_status(const buf *b, sheaf_error *err);

static inline sheaf_str buf_view(const buf *b)
{
	return (sheaf_str){b->ptr ? b->ptr : "", b->len};
}

#endif
