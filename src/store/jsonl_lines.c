/* Reading a log's file line by line, with bounded memory, and sharing its descriptor. */
#include <errno.h>

#include "store/jsonl.h"

#define CHUNK ((size_t)256 << 10)

jfile *jfile_new(int fd)
{
	jfile *f = mem_alloc(sizeof(*f));
	if (!f) {
		io_close(fd);
		return NULL;
	}
	f->fd = fd;
	atomic_init(&f->refs, 1);
	return f;
}

jfile *jfile_ref(jfile *f)
{
	atomic_fetch_add(&f->refs, 1);
	return f;
}

void jfile_unref(jfile *f)
{
	if (!f || atomic_fetch_sub(&f->refs, 1) != 1)
		return;
	io_close(f->fd);
	mem_free(f);
}

void jfile_unrefp(jfile **f)
{
	jfile_unref(*f);
	*f = NULL;
}

void jlines_free(jlines *r)
{
	buf_free(&r->data);
}

/* Drops what was consumed and reads one more chunk. 1 read something, 0 at the end, -1. */
static int more(jlines *r)
{
	uint64_t have_to = r->data_at + r->data.len;
	size_t used = (size_t)(r->next - r->data_at);

	if (have_to >= r->end)
		return 0;
	if (used) {
		memmove(r->data.ptr, r->data.ptr + used, r->data.len - used);
		r->data.len -= used;
		r->data_at = r->next;
	}
	size_t want = r->end - have_to < CHUNK ? (size_t)(r->end - have_to) : CHUNK;
	if (buf_reserve(&r->data, want + 1)) {
		errno = ENOMEM;
		return -1;
	}
	ssize_t got = io_pread_full(r->fd, r->data.ptr + r->data.len, want, (off_t)have_to);
	if (got < 0)
		return -1;
	if ((size_t)got < want)
		r->end = have_to + (uint64_t)got; /* somebody cut the file meanwhile */
	r->data.len += (size_t)got;
	return got > 0;
}

/* A line longer than any record: its extent only, without keeping it. */
static int skip_long(jlines *r, jline *out)
{
	uint64_t start = r->next;
	for (;;) {
		size_t used = (size_t)(r->next - r->data_at);
		const char *at = r->data.ptr + used;
		const char *lf = memchr(at, '\n', r->data.len - used);
		if (lf) {
			uint64_t end = r->next + (uint64_t)(lf - at);
			*out = (jline){{NULL, 0}, start, end - start, true};
			r->next = end + 1;
			return 1;
		}
		r->next = r->data_at + r->data.len;
		int rc = more(r);
		if (rc < 0)
			return -1;
		if (rc == 0) {
			*out = (jline){{NULL, 0}, start, r->next - start, false};
			return 1;
		}
	}
}

int jlines_next(jlines *r, jline *out)
{
	size_t looked = 0; /* bytes of this line already searched */

	if (r->data.len == 0)
		r->data_at = r->next;
	for (;;) {
		size_t used = (size_t)(r->next - r->data_at);
		size_t have = r->data.len - used;
		const char *at = have ? r->data.ptr + used : "";
		const char *lf = have > looked ? memchr(at + looked, '\n', have - looked) : NULL;
		if (lf) {
			size_t len = (size_t)(lf - at);
			*out = (jline){{at, len}, r->next, len, true};
			r->next += len + 1;
			return 1;
		}
		looked = have;
		if (have > SHEAF_RECORD_BYTES_MAX)
			return skip_long(r, out);
		int rc = more(r);
		if (rc < 0)
			return -1;
		if (rc == 0) {
			used = (size_t)(r->next - r->data_at);
			have = r->data.len - used;
			if (have == 0)
				return 0;
			*out = (jline){{r->data.ptr + used, have}, r->next, have, false};
			r->next += have;
			return 1;
		}
	}
}
