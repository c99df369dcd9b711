/* Walks a JSON document through a window that moves over the file. */
#include "convert/document.h"

#include <errno.h>
#include <fcntl.h>

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"
#include "convert/import_inside.h"
#include "entry/members.h"

#define CHUNK ((size_t)256 << 10)
#define DEPTH_MAX 64
#define KEY_BYTES_MAX ((size_t)64 << 10)
#define TEXT_BYTES_MAX ((size_t)1 << 20) /* between two pieces */
#define MEMBER_BYTES_MAX ((size_t)64 << 10)

/* How far a value has been looked at. */
typedef struct scan {
	size_t depth;
	bool in_string, escaped, scalar, done;
} scan;

struct document {
	int fd;
	uint64_t size;
	char *ptr; /* the window: bytes `base` to `base + len` of the file */
	size_t len, room;
	uint64_t base;
	uint64_t at, line;
	char open[DEPTH_MAX]; /* '{' or '[' of the containers entered */
	size_t depth;
	bool first;  /* nothing of the container was passed yet */
	bool inside; /* a value was given in part */
	scan scan;
	const char *wrong;
	uint64_t kept; /* up to here the text is in pieces or between them */
	buf flat;      /* the element at hand on one line */
};

int document_open(document **out, const char *path, sheaf_error *err)
{
	_cleanup_(document_closep) document *d = mem_zalloc(sizeof(*d));
	io_stat st;
	if (d == NULL)
		return err_nomem(err);
	d->line = 1;
	d->flat = (buf)BUF_INIT(SOURCE_PIECE_MAX + 1);
	int rc = source_file(&d->fd, path, err);
	if (rc != 0)
		return rc;
	if (io_stat_fd(d->fd, &st) != 0)
		return err_sys(err, SHEAF_STORAGE, errno, "%s", path);
	d->size = st.size;
	*out = d;
	d = NULL;
	return 0;
}

void document_close(document *d)
{
	if (d == NULL)
		return;
	if (d->fd >= 0)
		(void)io_close(d->fd);
	buf_free(&d->flat);
	mem_free(d->ptr);
	mem_free(d);
}

void document_closep(document **d)
{
	document_close(*d);
}

uint64_t document_at(const document *d)
{
	return d->at;
}

uint64_t document_line(const document *d)
{
	return d->line;
}

uint64_t document_size(const document *d)
{
	return d->size;
}

const char *document_wrong(const document *d)
{
	return d->wrong;
}

document_place document_here(const document *d)
{
	return (document_place){d->at, d->line, d->depth, d->first};
}

void document_back(document *d, document_place place)
{
	d->at = place.at;
	d->line = place.line;
	d->depth = place.depth;
	d->first = place.first;
	d->inside = false;
	d->wrong = NULL;
}

/* ---- The window ---------------------------------------------------------- */

/* Makes the window hold [from, at least one byte more than it does), or as much as there is. */
static int fill(document *d, uint64_t from, sheaf_error *err)
{
	if (from < d->base || from > d->base + d->len) {
		d->base = from;
		d->len = 0;
	} else if (from != d->base) {
		size_t gone = (size_t)(from - d->base);
		memmove(d->ptr, d->ptr + gone, d->len - gone);
		d->len -= gone;
		d->base = from;
	}
	if (d->room - d->len < CHUNK) {
		size_t room = d->room + (d->room < CHUNK ? 2 * CHUNK : d->room / 2);
		char *grown = mem_resize(d->ptr, room);
		if (grown == NULL)
			return err_nomem(err);
		d->ptr = grown;
		d->room = room;
	}
	uint64_t end = d->base + d->len;
	size_t want = d->room - d->len;
	if (end >= d->size)
		return 0;
	if (want > d->size - end)
		want = (size_t)(d->size - end);
	ssize_t n = io_pread(d->fd, d->ptr + d->len, want, (off_t)end);
	if (n < 0)
		return err_sys(err, SHEAF_STORAGE, errno, "reading");
	d->len += (size_t)n;
	if (n == 0) /* it was cut off meanwhile */
		d->size = end;
	return 0;
}

/* The byte at a place: 1, or 0 at the end of the file. */
static int byte_at(document *d, uint64_t at, char *out, sheaf_error *err)
{
	if (at >= d->size)
		return 0;
	if (at < d->base || at >= d->base + d->len) {
		int rc = fill(d, at, err);
		if (rc != 0 || at >= d->base + d->len)
			return rc;
	}
	*out = d->ptr[at - d->base];
	return 1;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Passes blanks, counting lines; then as byte_at(). */
static int next_byte(document *d, char *out, sheaf_error *err)
{
	int rc;
	while ((rc = byte_at(d, d->at, out, err)) == 1 && is_blank(*out)) {
		d->line += *out == '\n';
		d->at++;
	}
	return rc;
}

int document_peek(document *d, char *out, sheaf_error *err)
{
	return next_byte(d, out, err);
}

static int wrong(document *d, const char *what)
{
	d->wrong = what;
	return 0;
}

/* ---- Values -------------------------------------------------------------- */

/* Goes on over a string; returns where it stopped, behind the closing quote if it came to that. */
static const char *scan_string(scan *s, const char *p, const char *end)
{
	if (s->escaped && p < end) {
		s->escaped = false;
		p++;
	}
	while (p < end && *p != '"') {
		if (*p == '\\' && ++p == end) {
			s->escaped = true;
			return p;
		}
		p++;
	}
	if (p == end)
		return p;
	s->in_string = false;
	return p + 1;
}

/* Goes on over a value; returns where it stopped, with s->done when that is the value's end. */
static const char *scan_on(scan *s, const char *p, const char *end, uint64_t *lines)
{
	for (; p < end; p++) {
		if (s->in_string) {
			p = scan_string(s, p, end);
			if (s->in_string || s->depth == 0) {
				s->done = !s->in_string;
				return p;
			}
			if (p == end)
				return p;
		}
		char c = *p;
		if (s->scalar && (is_blank(c) || c == ',' || c == '}' || c == ']' || c == ':')) {
			s->done = true;
			return p;
		}
		if (c == '"') {
			s->in_string = true;
		} else if (c == '{' || c == '[') {
			s->depth++;
		} else if (c == '}' || c == ']') {
			if (s->depth <= 1) {
				s->done = true;
				return s->depth == 1 ? p + 1 : p;
			}
			s->depth--;
		} else if (s->depth == 0) {
			s->scalar = true;
		}
		*lines += c == '\n';
	}
	return end;
}

/* Where a text that is too long is cut: no code point is split. */
static const char *piece_end_at(const char *start, size_t len)
{
	size_t cut = len;
	while (cut > len - 4 && ((unsigned char)start[cut] & 0xc0) == 0x80)
		cut--;
	return start + cut;
}

int document_value(document *d, document_element *out, sheaf_error *err)
{
	char c;
	int rc = d->inside ? 1 : next_byte(d, &c, err);
	if (rc < 0)
		return rc;
	if (!d->inside)
		d->scan = (scan){0};
	*out = (document_element){.at = d->at, .line = d->line, .whole = true};
	uint64_t looked = d->at, lines = d->line;
	for (;;) {
		if (looked >= d->base + d->len || d->at < d->base) {
			rc = fill(d, d->at, err);
			if (rc != 0)
				return rc;
		}
		const char *start = d->ptr + (d->at - d->base);
		const char *end = d->ptr + d->len, *p = d->ptr + (looked - d->base);
		bool full = (size_t)(end - start) > SOURCE_PIECE_MAX;
		if (full)
			end = piece_end_at(start, SOURCE_PIECE_MAX);
		if (p < end)
			p = scan_on(&d->scan, p, end, &lines);
		looked = d->base + (uint64_t)(p - d->ptr);
		bool ended = !d->scan.done && looked >= d->size;
		if (!d->scan.done && !full && !ended)
			continue;
		out->text = str_make(start, (size_t)(p - start));
		out->cut = d->inside = !d->scan.done && full;
		out->whole = !ended || (d->scan.scalar && d->depth == 0);
		d->at = looked;
		d->line = lines;
		return out->whole ? 0 : wrong(d, "the file ends in the middle of a value");
	}
}

int document_skip(document *d, sheaf_error *err)
{
	char c;
	int rc = next_byte(d, &c, err);
	scan s = {0};
	while (rc >= 0 && !s.done) {
		rc = byte_at(d, d->at, &c, err);
		if (rc == 0)
			return s.scalar ? 0 : wrong(d, "the file ends in the middle of a value");
		if (rc < 0)
			return rc;
		const char *from = d->ptr + (d->at - d->base);
		const char *p = scan_on(&s, from, d->ptr + d->len, &d->line);
		d->at += (uint64_t)(p - from);
	}
	return rc < 0 ? rc : 0;
}

/* ---- Containers ---------------------------------------------------------- */

int document_enter(document *d, sheaf_error *err)
{
	char c;
	int rc = next_byte(d, &c, err);
	if (rc != 1)
		return rc;
	if (c != '{' && c != '[')
		return 0;
	if (d->depth == DEPTH_MAX)
		return wrong(d, "nested too deeply");
	d->open[d->depth++] = c;
	d->first = true;
	d->at++;
	return 1;
}

/* A key up to the value behind it. */
static int key_take(document *d, sheaf_str *key, sheaf_error *err)
{
	document_element k;
	char c;
	int rc = next_byte(d, &c, err);
	if (rc < 0)
		return rc;
	if (rc == 0 || c != '"')
		return wrong(d, "a name was expected");
	uint64_t at = d->at;
	rc = document_value(d, &k, err);
	if (rc != 0)
		return rc;
	if (!k.whole || k.text.len > KEY_BYTES_MAX || k.text.len < 2)
		return wrong(d, "a name that has no end");
	uint64_t end = d->at;
	rc = next_byte(d, &c, err);
	if (rc < 0)
		return rc;
	if (rc == 0 || c != ':')
		return wrong(d, "a colon was expected");
	d->at++;
	rc = next_byte(d, &c, err);
	if (rc < 0)
		return rc;
	if (at < d->base) { /* the window moved on */
		rc = fill(d, at, err);
		if (rc != 0)
			return rc;
	}
	while (end > d->base + d->len) {
		size_t had = d->len;
		rc = fill(d, at, err);
		if (rc != 0 || d->len == had)
			return rc != 0 ? rc : wrong(d, "the file became shorter");
	}
	*key = str_make(d->ptr + (at - d->base) + 1, (size_t)(end - at) - 2);
	return 1;
}

int document_each(document *d, sheaf_str *key, sheaf_error *err)
{
	char c;
	*key = (sheaf_str){NULL, 0};
	if (d->wrong != NULL || d->depth == 0)
		return 0;
	int rc = next_byte(d, &c, err);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return wrong(d, "the file ends before its lists do");
	char opened = d->open[d->depth - 1];
	if (c == (opened == '{' ? '}' : ']')) {
		d->depth--;
		d->first = false;
		d->at++;
		return 0;
	}
	if (!d->first) {
		if (c != ',')
			return wrong(d, "a comma was expected");
		d->at++;
		rc = next_byte(d, &c, err);
		if (rc <= 0)
			return rc < 0 ? rc : wrong(d, "the file ends before its lists do");
	}
	d->first = false;
	if (c == ',' || c == ']' || c == '}' || c == ':')
		return wrong(d, "a value was expected");
	return opened == '{' ? key_take(d, key, err) : 1;
}

/* ---- Looking around ------------------------------------------------------ */

int document_text(document *d, uint64_t from, uint64_t to, buf *out, sheaf_error *err)
{
	if (to > d->size)
		to = d->size;
	while (from < to) {
		size_t want = to - from < CHUNK ? (size_t)(to - from) : CHUNK;
		int rc = buf_reserve(out, want);
		if (rc != 0)
			return buf_status(out, err);
		ssize_t n = io_pread(d->fd, out->ptr + out->len, want, (off_t)from);
		if (n < 0)
			return err_sys(err, SHEAF_STORAGE, errno, "reading");
		if (n == 0)
			return 0;
		out->len += (size_t)n;
		from += (uint64_t)n;
	}
	return 0;
}

static size_t name_index(const char *const *names, size_t count, sheaf_str key)
{
	for (size_t i = 0; i < count; i++) {
		if (members_key_is(key, names[i]))
			return i;
	}
	return count;
}

int document_members(document *d, const char *const *names, sheaf_str *values, size_t count,
                     arena *a, sheaf_error *err)
{
	document_place here = document_here(d);
	document_element v;
	sheaf_str key;
	size_t found = 0;
	int ok = 1;
	memset(values, 0, count * sizeof(*values));
	int rc = document_enter(d, err);
	if (rc == 1 && d->open[d->depth - 1] != '{')
		rc = 0;
	while (rc == 1 && found < count && (rc = document_each(d, &key, err)) == 1) {
		size_t i = name_index(names, count, key);
		if (i == count || values[i].ptr != NULL) {
			rc = document_skip(d, err);
		} else {
			rc = document_value(d, &v, err);
			while (rc == 0 && v.cut)
				rc = document_value(d, &v, err);
			if (rc == 0 && v.whole && v.text.len <= MEMBER_BYTES_MAX) {
				values[i] = arena_dup(a, v.text, &ok);
				found++;
			}
		}
		rc = rc != 0 ? rc : !ok ? err_nomem(err) : 1;
	}
	document_back(d, here);
	return rc < 0 ? rc : 0;
}

void document_flatten(buf *out, sheaf_str json)
{
	const char *p = json.ptr, *end = json.ptr + json.len;
	while (p < end) {
		const char *from = p;
		if (*p == '"') {
			const char *quote = json_string_end(p + 1, end);
			p = quote != NULL ? quote + 1 : end;
		} else {
			while (p < end && *p != '"' && !is_blank(*p))
				p++;
		}
		buf_add(out, from, (size_t)(p - from));
		while (p < end && is_blank(*p))
			p++;
	}
}

/* ---- Elements as pieces -------------------------------------------------- */

void document_begin(document *d, uint64_t at)
{
	d->kept = at;
}

/* Text that is no piece, up to a place. More than fits between pieces becomes pieces. */
static int keep_text(import *im, document *d, uint64_t to)
{
	_cleanup_(buf_free) buf text = BUF_INIT(TEXT_BYTES_MAX);
	int rc = 0;
	while (rc == 0 && d->kept < to) {
		uint64_t end = to - d->kept > TEXT_BYTES_MAX ? d->kept + TEXT_BYTES_MAX : to;
		buf_reset(&text);
		rc = document_text(d, d->kept, end, &text, im->err);
		if (rc == 0 && end == to) {
			rc = import_between(im, buf_view(&text));
		} else if (rc == 0) {
			rc = piece_begin(im, buf_view(&text), true);
			if (rc == 0)
				rc = piece_end(im);
		}
		d->kept = end;
	}
	return rc;
}

static bool is_one_line(sheaf_str text)
{
	return memchr(text.ptr, '\n', text.len) == NULL &&
	       memchr(text.ptr, '\r', text.len) == NULL && memchr(text.ptr, '\t', text.len) == NULL;
}

/* The piece at hand, given to the converter if it can be parsed. */
static int element_take(import *im, document *d, sheaf_str key, sheaf_str text, document_take *take)
{
	value element;
	if (!is_one_line(text)) {
		buf_reset(&d->flat);
		document_flatten(&d->flat, text);
		int rc = buf_status(&d->flat, im->err);
		if (rc != 0)
			return rc;
		text = buf_view(&d->flat);
	}
	int rc = import_parse(im, text, &element);
	return rc == 0 && element.v != NULL ? take(im, key, element) : rc;
}

int document_piece(import *im, document *d, sheaf_str key, document_take *take)
{
	document_element e;
	document_place here = document_here(d);
	bool cut = false;
	do {
		int rc = document_value(d, &e, im->err);
		if (rc != 0)
			return rc;
		if (!e.whole && !cut) { /* text behind the last piece, until there is more */
			const char *what = d->wrong;
			document_back(d, here);
			d->wrong = what;
			return 0;
		}
		uint64_t end = document_at(d);
		rc = keep_text(im, d, e.at);
		if (rc == 0)
			rc = piece_begin(im, e.text, e.cut);
		im->line = e.line;
		if (rc == 0 && (cut || e.cut))
			rc = cut ? 0 : import_problem(im, "longer than a record may be");
		else if (rc == 0)
			rc = element_take(im, d, key, e.text, take);
		if (rc == 0)
			rc = piece_end(im);
		if (rc != 0)
			return rc;
		d->kept = end;
		cut = e.cut;
	} while (cut);
	return 0;
}

int document_pieces(import *im, document *d, document_take *take)
{
	_cleanup_(buf_free) buf name = BUF_INIT(KEY_BYTES_MAX);
	sheaf_str key;
	int more = document_enter(d, im->err);
	while (more == 1 && (more = document_each(d, &key, im->err)) == 1) {
		buf_reset(&name); /* the key moves when the element is read */
		buf_str(&name, key);
		int rc = buf_status(&name, im->err);
		if (rc == 0)
			rc = document_piece(im, d, buf_view(&name), take);
		if (rc != 0)
			return rc;
	}
	return more;
}

int document_finish(import *im, document *d, uint64_t to)
{
	int rc = 0;
	if (d->wrong != NULL) {
		im->inside->partial = true;
		im->line = document_line(d);
		rc = import_problem(im, "%s, at byte %llu", d->wrong,
		                    (unsigned long long)document_at(d));
	}
	return rc == 0 ? keep_text(im, d, to) : rc;
}
