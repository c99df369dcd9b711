/* The growable buffer, and the one place where text becomes a JSON string. */
#include "buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "err.h"
#include "mem.h"
#include "scan.h"

/*
 * Every block is this much larger than `room` says. It holds buf_nul()'s NUL
 * and lets buf_json() store whole blocks, also when the content is at its
 * maximum.
 */
#define SLACK 32u
#define ROOM_MIN 96u
#define ROOM_DOUBLES ((size_t)64 << 10) /* up to here; then it grows by half */

void buf_free(buf *b)
{
	mem_free(b->ptr);
	b->ptr = NULL;
	b->len = 0;
	b->room = 0;
	b->status = 0;
}

void buf_reset(buf *b)
{
	b->len = 0;
	b->status = 0;
}

int buf_reserve(buf *b, size_t more)
{
	if (b->status != 0)
		return b->status;
	if (more <= b->room - b->len)
		return 0;
	if (more > b->max - b->len)
		return b->status = SHEAF_TOO_LARGE;
	size_t need = b->len + more;
	size_t room = b->room + (b->room < ROOM_DOUBLES ? b->room : b->room / 2);
	if (room < need)
		room = need;
	if (room < ROOM_MIN)
		room = ROOM_MIN;
	if (room > b->max)
		room = b->max;
	char *grown = room <= SIZE_MAX - SLACK ? mem_resize(b->ptr, room + SLACK) : NULL;
	if (grown == NULL)
		return b->status = SHEAF_NOMEM;
	b->ptr = grown;
	b->room = room;
	return 0;
}

void buf_add_slow(buf *b, const void *ptr, size_t len)
{
	if (len == 0 || buf_reserve(b, len) != 0)
		return;
	memcpy(b->ptr + b->len, ptr, len);
	b->len += len;
}

void buf_u64(buf *b, uint64_t value)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char digits[20];
	size_t at = sizeof(digits);
	while (value >= 100) {
		at -= 2;
		memcpy(digits + at, pairs + 2 * (value % 100), 2);
		value /= 100;
	}
	if (value >= 10) {
		at -= 2;
		memcpy(digits + at, pairs + 2 * value, 2);
	} else {
		digits[--at] = (char)('0' + value);
	}
	buf_add(b, digits + at, sizeof(digits) - at);
}

void buf_i64(buf *b, int64_t value)
{
	uint64_t size = (uint64_t)value;
	if (value < 0) {
		buf_char(b, '-');
		size = 0 - size;
	}
	buf_u64(b, size);
}

void buf_format(buf *b, const char *format, ...)
{
	if (b->status != 0)
		return;
	size_t room = b->room - b->len;
	va_list args;
	va_start(args, format);
	/* The slack has the NUL. */
	int n = b->ptr != NULL ? vsnprintf(b->ptr + b->len, room + 1, format, args)
	                       : vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0) {
		b->status = SHEAF_NOMEM;
		return;
	}
	if (b->ptr == NULL || (size_t)n > room) {
		if (buf_reserve(b, (size_t)n) != 0)
			return;
		if (n == 0)
			return;
		va_start(args, format);
		n = vsnprintf(b->ptr + b->len, (size_t)n + 1, format, args);
		va_end(args);
		if (n < 0) {
			b->status = SHEAF_NOMEM;
			return;
		}
	}
	b->len += (size_t)n;
}

void buf_nul(buf *b)
{
	if (b->status != 0)
		return;
	if (b->ptr == NULL) {
		b->ptr = mem_alloc(SLACK);
		if (b->ptr == NULL) {
			b->status = SHEAF_NOMEM;
			return;
		}
	}
	b->ptr[b->len] = '\0';
}

/* Input is taken in pieces, so that the worst case (six bytes for one) is asked for a piece. */
#define JSON_PIECE 4096u
#define JSON_WORST 6u

static inline char *escape_one(char *out, char c)
{
	static const char hex[] = "0123456789abcdef";
	static const char shorts[32] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
	unsigned char byte = (unsigned char)c;
	*out++ = '\\';
	if (byte >= 0x20) {
		*out++ = c;
	} else if (shorts[byte] != 0) {
		*out++ = shorts[byte];
	} else {
		memcpy(out, "u00", 3);
		out[3] = hex[byte >> 4];
		out[4] = hex[byte & 15];
		out += 5;
	}
	return out;
}

/*
 * Writes the escaped form of [p, end) and returns its end. Whole blocks are
 * stored before it is known how much of them is plain; the slack takes what is
 * too much, and the next store overwrites it.
 */
static char *escape_run(char *out, const char *p, const char *end)
{
	while ((size_t)(end - p) >= 2 * SCAN_WIDTH) {
		size_t plain = scan_blocks_special(p);
		memcpy(out, p, 2 * SCAN_WIDTH);
		p += plain;
		out += plain;
		if (plain < 2 * SCAN_WIDTH)
			out = escape_one(out, *p++);
	}
	while ((size_t)(end - p) >= SCAN_WIDTH) {
		size_t plain = scan_block_special(p);
		memcpy(out, p, SCAN_WIDTH);
		p += plain;
		out += plain;
		if (plain < SCAN_WIDTH)
			out = escape_one(out, *p++);
	}
	for (; p < end; p++) {
		if (scan_is_special(*p))
			out = escape_one(out, *p);
		else
			*out++ = *p;
	}
	return out;
}

static size_t escaped_len(const char *p, const char *end)
{
	char one[8];
	size_t len = (size_t)(end - p);
	for (p = scan_special(p, end); p < end; p = scan_special(p + 1, end))
		len += (size_t)(escape_one(one, *p) - one) - 1;
	return len;
}

static void add_escaped(buf *b, const char *p, size_t len)
{
	size_t worst = len * JSON_WORST;
	/* Close to the maximum the true length decides, not the worst that could be. */
	if (b->status == 0 && worst > b->max - b->len)
		worst = escaped_len(p, p + len);
	if (buf_reserve(b, worst) != 0)
		return;
	b->len = (size_t)(escape_run(b->ptr + b->len, p, p + len) - b->ptr);
}

void buf_json(buf *b, sheaf_str text)
{
	const char *p = text.ptr;
	size_t left = text.len;

	/* One growth for a long text, which is mostly plain. */
	if (left > JSON_PIECE && b->status == 0 && left < b->max - b->len) {
		size_t guess = left + left / 8 + 2 * JSON_PIECE * JSON_WORST;
		(void)buf_reserve(b, guess <= b->max - b->len ? guess : left);
	}
	buf_char(b, '"');
	while (left != 0 && b->status == 0) {
		size_t piece = left < JSON_PIECE ? left : JSON_PIECE;
		add_escaped(b, p, piece);
		p += piece;
		left -= piece;
	}
	buf_char(b, '"');
}

int buf_status(const buf *b, sheaf_error *err)
{
	if (b->status == 0)
		return 0;
	if (b->status == SHEAF_NOMEM)
		return err_nomem(err);
	return err_set(err, b->status, "more than %zu bytes", b->max);
}
