/* Arguments and answers in PostgreSQL's binary form, and the codec of bodies. */
#include <zstd.h>

#include "base/crc.h"
#include "store/postgres.h"

#define NULL_LEN UINT32_MAX
#define COMPRESS_FROM 2048u /* bytes; smaller lines gain little */
#define COMPRESS_LEVEL 1

enum {
	CODEC_PLAIN = 0,
	CODEC_ZSTD = 1
};

/* ---- Arguments --------------------------------------------------------------- */

void pg_args_free(pg_args *a)
{
	buf_free(&a->bytes);
}

void pg_args_reset(pg_args *a)
{
	buf_reset(&a->bytes);
	a->count = 0;
	a->retry = -1;
}

/* An argument begins at the end of the buffer. */
static void arg_begin(pg_args *a)
{
	a->at[a->count] = a->bytes.len;
}

static void arg_end(pg_args *a)
{
	a->len[a->count] = (int)(a->bytes.len - a->at[a->count]);
	a->count++;
}

static void put_u32(pg_args *a, uint32_t value)
{
	unsigned char bytes[4];
	for (int i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(value >> (24 - 8 * i));
	buf_add(&a->bytes, bytes, sizeof(bytes));
}

static void put_u64(pg_args *a, uint64_t value)
{
	put_u32(a, (uint32_t)(value >> 32));
	put_u32(a, (uint32_t)value);
}

void pg_arg_null(pg_args *a)
{
	arg_begin(a);
	a->len[a->count++] = -1;
}

void pg_arg_text(pg_args *a, sheaf_str text)
{
	if (text.ptr == NULL) {
		pg_arg_null(a);
		return;
	}
	arg_begin(a);
	buf_str(&a->bytes, text);
	arg_end(a);
}

void pg_arg_bool(pg_args *a, bool value)
{
	arg_begin(a);
	buf_char(&a->bytes, value ? 1 : 0);
	arg_end(a);
}

void pg_arg_i32(pg_args *a, int32_t value)
{
	arg_begin(a);
	put_u32(a, (uint32_t)value);
	arg_end(a);
}

void pg_arg_i64(pg_args *a, int64_t value)
{
	arg_begin(a);
	put_u64(a, (uint64_t)value);
	arg_end(a);
}

void pg_array_begin(pg_args *a, uint32_t type, size_t count)
{
	arg_begin(a);
	put_u32(a, 1); /* dimensions */
	put_u32(a, 1); /* may hold NULLs */
	put_u32(a, type);
	put_u32(a, (uint32_t)count);
	put_u32(a, 1); /* the first is number 1 */
}

void pg_array_empty(pg_args *a, uint32_t type)
{
	arg_begin(a);
	put_u32(a, 0);
	put_u32(a, 0);
	put_u32(a, type);
	arg_end(a);
}

void pg_array_end(pg_args *a)
{
	arg_end(a);
}

void pg_item_text(pg_args *a, sheaf_str text)
{
	put_u32(a, text.ptr != NULL ? (uint32_t)text.len : NULL_LEN);
	if (text.ptr != NULL)
		buf_str(&a->bytes, text);
}

void pg_item_i32(pg_args *a, int32_t value)
{
	put_u32(a, sizeof(value));
	put_u32(a, (uint32_t)value);
}

void pg_item_i64(pg_args *a, int64_t value)
{
	put_u32(a, sizeof(value));
	put_u64(a, (uint64_t)value);
}

/* ---- Answers ----------------------------------------------------------------- */

static uint64_t get_be(const char *p, int len)
{
	uint64_t value = 0;
	for (int i = 0; i < len; i++)
		value = value << 8 | (unsigned char)p[i];
	return value;
}

int64_t pg_get_i64(const PGresult *r, int row, int column)
{
	return PQgetlength(r, row, column) == 8 ? (int64_t)get_be(PQgetvalue(r, row, column), 8)
	                                        : 0;
}

int32_t pg_get_i32(const PGresult *r, int row, int column)
{
	return PQgetlength(r, row, column) == 4
	               ? (int32_t)(uint32_t)get_be(PQgetvalue(r, row, column), 4)
	               : 0;
}

int32_t pg_get_status(const PGresult *r)
{
	return PQntuples(r) == 1 && PQgetlength(r, 0, 0) == 4 ? pg_get_i32(r, 0, 0) : -1;
}

int pg_nonsense(sheaf_error *err)
{
	return err_unknown(err, err_set(err, SHEAF_STORAGE, "the database answered nonsense"));
}

bool pg_get_bool(const PGresult *r, int row, int column)
{
	return PQgetlength(r, row, column) == 1 && PQgetvalue(r, row, column)[0] != 0;
}

sheaf_str pg_get_text(const PGresult *r, int row, int column)
{
	if (PQgetisnull(r, row, column))
		return (sheaf_str){NULL, 0};
	return (sheaf_str){PQgetvalue(r, row, column), (size_t)PQgetlength(r, row, column)};
}

bool pg_get_i64s(const PGresult *r, int row, int column, uint64_t *out, size_t count)
{
	const char *p = PQgetvalue(r, row, column);
	size_t len = (size_t)PQgetlength(r, row, column), head = 20, item = 12;
	if (len != head + count * item || get_be(p, 4) != 1 || get_be(p + 12, 4) != count)
		return false;
	for (size_t i = 0; i < count; i++)
		out[i] = get_be(p + head + i * item + 4, 8);
	return true;
}

/* ---- Bodies ------------------------------------------------------------------ */

/* Writes the compressed body after its length; false if that is no gain. */
static bool put_compressed(pg_args *a, sheaf_str line)
{
	size_t start = a->bytes.len, bound = ZSTD_compressBound(line.len + 1);
	if (buf_reserve(&a->bytes, 4 + 1 + bound) != 0)
		return true; /* the buffer remembers */
	put_u32(a, 0);
	buf_char(&a->bytes, CODEC_ZSTD);
	size_t got = ZSTD_compress(a->bytes.ptr + a->bytes.len, bound, line.ptr, line.len + 1,
	                           COMPRESS_LEVEL);
	if (ZSTD_isError(got) || got > line.len - line.len / 8) {
		a->bytes.len = start;
		return false;
	}
	a->bytes.len = start;
	put_u32(a, (uint32_t)got + 1);
	a->bytes.len += 1 + got;
	return true;
}

void pg_item_body(pg_args *a, sheaf_str line)
{
	if (line.len >= COMPRESS_FROM && put_compressed(a, line))
		return;
	put_u32(a, (uint32_t)line.len + 2);
	buf_char(&a->bytes, CODEC_PLAIN);
	buf_add(&a->bytes, line.ptr, line.len + 1);
}

bool pg_body_line(sheaf_str body, buf *room, sheaf_str *line)
{
	if (body.ptr == NULL || body.len < 2)
		return false;
	if (body.ptr[0] == CODEC_PLAIN) {
		*line = (sheaf_str){body.ptr + 1, body.len - 2};
		return body.ptr[body.len - 1] == '\n';
	}
	if (body.ptr[0] != CODEC_ZSTD)
		return false;
	unsigned long long size = ZSTD_getFrameContentSize(body.ptr + 1, body.len - 1);
	if (size == 0 || size > SHEAF_RECORD_BYTES_MAX + 1)
		return false;
	buf_reset(room);
	if (buf_reserve(room, (size_t)size) != 0)
		return false;
	size_t got = ZSTD_decompress(room->ptr, (size_t)size, body.ptr + 1, body.len - 1);
	if (ZSTD_isError(got) || got != size || room->ptr[got - 1] != '\n')
		return false;
	room->len = got;
	*line = (sheaf_str){room->ptr, got - 1};
	return true;
}

#define CRC_BEGIN ",\"crc\":\""
#define CRC_BEGIN_LEN (sizeof(CRC_BEGIN) - 1)
#define CRC_MEMBER_LEN (CRC_BEGIN_LEN + 8 + 2)

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool pg_line_ok(sheaf_str line)
{
	if (line.len < CRC_MEMBER_LEN)
		return false;
	size_t covered = line.len - CRC_MEMBER_LEN;
	const char *member = line.ptr + covered, *digits = member + CRC_BEGIN_LEN;
	if (memcmp(member, CRC_BEGIN, CRC_BEGIN_LEN) != 0 || memcmp(digits + 8, "\"}", 2) != 0)
		return false;
	uint32_t crc = 0;
	for (int i = 0; i < 8; i++) {
		int value = hex_value(digits[i]);
		if (value < 0)
			return false;
		crc = crc << 4 | (uint32_t)value;
	}
	return crc == crc32c(0, line.ptr, covered);
}
