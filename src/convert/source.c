/*
 * Reads a file in lines with one buffer that grows to the longest line and no
 * further; one that is compressed through the module for that.
 */
#include "convert/source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/module.h"
#include "base/str.h"
#include "convert/zstd.h"

#define CHUNK ((size_t)256 << 10)
#define HEAD_BYTES ((size_t)64 << 10)
/* What is compressed further than that, and comes to so much, is no session. */
#define UNPACKED_FREE ((uint64_t)64 << 20)
#define UNPACKED_TIMES 500

struct source {
	int fd;
	uint64_t at; /* where the next bytes of the file are read */
	char *ptr;   /* [from, len) is read and not given out */
	size_t from, len, room;
	size_t scanned; /* up to here there is no line break */
	uint64_t given;
	bool ended;
	bool eof;
	const zstd_ops *zstd; /* of a compressed file, else NULL */
	unpacker *unpacker;
	char *packed; /* [packed_from, packed_len) is read and not unpacked */
	size_t packed_from, packed_len;
	uint64_t unpacked;
	bool broken;
};

/* ---- Opening ------------------------------------------------------------- */

static int zstd_find(source *s, sheaf_error *err)
{
	module m;
	bool there;
	int rc = module_find(ZSTD_MODULE, ZSTD_SYMBOL, &m, &there, err);
	if (rc != 0 && !there)
		return err_set(err, SHEAF_UNSUPPORTED,
		               "the module for compressed files is not installed");
	if (rc != 0)
		return rc;
	const zstd_ops *ops = m.symbol;
	if (ops->size < sizeof(*ops) || ops->version != ZSTD_OPS_VERSION) {
		module_unload(&m);
		return err_set(err, SHEAF_UNSUPPORTED,
		               "the module for compressed files is of another version");
	}
	s->unpacker = ops->open();
	s->packed = mem_alloc(CHUNK);
	s->zstd = ops;
	return s->unpacker != NULL && s->packed != NULL ? 0 : err_nomem(err);
}

static int zstd_detect(source *s, sheaf_error *err)
{
	static const unsigned char magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
	unsigned char opening[sizeof(magic)];
	ssize_t n = io_pread(s->fd, opening, sizeof(opening), 0);
	if (n < 0)
		return err_sys(err, SHEAF_STORAGE, errno, "reading");
	bool packed = n == (ssize_t)sizeof(opening) && memcmp(opening, magic, sizeof(magic)) == 0;
	return packed ? zstd_find(s, err) : 0;
}

int source_file(int *out, const char *path, sheaf_error *err)
{
	io_stat st;
	/* A pipe would wait for its writer, and devices have no end. */
	*out = io_open_root(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
	if (*out >= 0 && io_stat_fd_lean(*out, &st) == 0 && !S_ISREG(st.mode))
		return err_set(err, SHEAF_FORMAT, "%s: not a file", path);
	if (*out >= 0)
		return 0;
	bool absent = errno == ENOENT || errno == ENOTDIR || errno == ELOOP ||
	              errno == ENAMETOOLONG || errno == ENXIO;
	return err_sys(err,
	               absent            ? SHEAF_NOT_FOUND
	               : errno == EACCES ? SHEAF_DENIED
	                                 : SHEAF_STORAGE,
	               errno, "%s", path);
}

int source_open(source **out, const char *path, sheaf_error *err)
{
	_cleanup_(source_closep) source *s = mem_zalloc(sizeof(*s));
	if (s == NULL)
		return err_nomem(err);
	int rc = source_file(&s->fd, path, err);
	if (rc == 0)
		rc = zstd_detect(s, err);
	if (rc != 0)
		return rc;
	*out = s;
	s = NULL;
	return 0;
}

void source_close(source *s)
{
	if (s == NULL)
		return;
	if (s->fd >= 0)
		(void)io_close(s->fd);
	if (s->unpacker != NULL)
		s->zstd->close(s->unpacker);
	mem_free(s->packed);
	mem_free(s->ptr);
	mem_free(s);
}

void source_closep(source **s)
{
	source_close(*s);
}

/* ---- Reading ------------------------------------------------------------- */

static ssize_t read_some(source *s, char *out, size_t room)
{
	ssize_t n = io_pread(s->fd, out, room, (off_t)s->at);
	if (n > 0)
		s->at += (uint64_t)n;
	return n;
}

/* What is unpacked of a damaged file is what it has. */
static ssize_t unpack_some(source *s, char *out, size_t room)
{
	for (;;) {
		if (s->packed_from == s->packed_len) {
			ssize_t n = read_some(s, s->packed, CHUNK);
			if (n <= 0)
				return n;
			s->packed_from = 0;
			s->packed_len = (size_t)n;
		}
		sheaf_str packed = {s->packed + s->packed_from, s->packed_len - s->packed_from};
		size_t taken = 0, given = 0;
		if (s->zstd->run(s->unpacker, packed, &taken, out, room, &given) != 0 ||
		    (taken == 0 && given == 0)) {
			s->broken = true;
			return 0;
		}
		s->packed_from += taken;
		s->unpacked += given;
		if (s->unpacked > UNPACKED_FREE && s->unpacked / UNPACKED_TIMES > s->at) {
			s->broken = true;
			return 0;
		}
		if (given != 0)
			return (ssize_t)given;
	}
}

/* Reads on; what was given out makes room first. */
static int fill(source *s, sheaf_error *err)
{
	if (s->from != 0) {
		memmove(s->ptr, s->ptr + s->from, s->len - s->from);
		s->len -= s->from;
		s->scanned -= s->from;
		s->from = 0;
	}
	if (s->room - s->len < CHUNK) {
		size_t room = s->room + (s->room < CHUNK ? 2 * CHUNK : s->room / 2);
		char *grown = mem_resize(s->ptr, room);
		if (grown == NULL)
			return err_nomem(err);
		s->ptr = grown;
		s->room = room;
	}
	char *out = s->ptr + s->len;
	ssize_t n = s->zstd != NULL ? unpack_some(s, out, s->room - s->len)
	                            : read_some(s, out, s->room - s->len);
	if (n < 0)
		return err_sys(err, SHEAF_STORAGE, errno, "reading");
	s->len += (size_t)n;
	s->eof = n == 0;
	return 0;
}

int source_peek(source *s, size_t need, sheaf_str *out, sheaf_error *err)
{
	while (s->len - s->from < need && !s->eof) {
		int rc = fill(s, err);
		if (rc != 0)
			return rc;
	}
	*out = str_make(s->ptr + s->from, s->len - s->from);
	return 0;
}

void source_skip(source *s, size_t bytes)
{
	s->from += bytes;
	s->given += bytes;
	if (s->scanned < s->from)
		s->scanned = s->from;
}

int source_head(source *s, sheaf_str *out, sheaf_error *err)
{
	int rc = source_peek(s, HEAD_BYTES, out, err);
	if (rc == 0 && out->len > HEAD_BYTES)
		out->len = HEAD_BYTES;
	return rc;
}

static int give(source *s, size_t end, bool ended, sheaf_str *line)
{
	*line = str_make(s->ptr + s->from, end - s->from);
	s->ended = ended;
	s->from = end + ended;
	s->scanned = s->from;
	s->given += line->len + ended;
	return 1;
}

int source_line(source *s, sheaf_str *line, bool *cut, sheaf_error *err)
{
	*cut = false;
	for (;;) {
		const char *found = s->len > s->scanned
		                            ? memchr(s->ptr + s->scanned, '\n', s->len - s->scanned)
		                            : NULL;
		size_t end = found != NULL ? (size_t)(found - s->ptr) : s->len;
		if (end - s->from > SOURCE_PIECE_MAX) {
			*cut = true;
			return give(s, s->from + SOURCE_PIECE_MAX, false, line);
		}
		if (found != NULL)
			return give(s, end, true, line);
		s->scanned = s->len;
		if (s->eof)
			return s->from == s->len ? 0 : give(s, s->len, false, line);
		int rc = fill(s, err);
		if (rc != 0)
			return rc;
	}
}

bool source_ended(const source *s)
{
	return s->ended;
}

uint64_t source_bytes(const source *s)
{
	return s->given;
}

int source_stat(source *s, io_stat *out, sheaf_error *err)
{
	if (io_stat_fd(s->fd, out) == 0)
		return 0;
	return err_sys(err, SHEAF_STORAGE, errno, "looking at a file");
}

bool source_broken(const source *s)
{
	return s->broken;
}
