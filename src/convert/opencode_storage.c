/*
 * OpenCode's storage folder, before it became a database: a file for each
 * session, message and part.
 *
 * It is read as the document that `opencode export` would make of it: so its
 * pieces are messages, whichever way a session came, and writing it again gives
 * that document. A file's text is put in as it is, only further to the right.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "convert/document.h"
#include "convert/media.h"
#include "convert/opencode.h"
#include "entry/members.h"

#define NAMES_MAX 1000000
#define PATH_BYTES_MAX 4096

static const char above[] = "/session/";

/* Where "/session/PROJECT/ses_….json" begins in a path, or NULL. */
static const char *storage_end(sheaf_str path)
{
	const char *name = path.ptr + path.len, *end = name;
	while (name > path.ptr && name[-1] != '/')
		name--;
	if (end - name < 10 || memcmp(name, "ses_", 4) != 0 || memcmp(end - 5, ".json", 5) != 0)
		return NULL;
	const char *project = name > path.ptr ? name - 1 : name;
	while (project > path.ptr && project[-1] != '/')
		project--;
	size_t len = sizeof(above) - 1;
	if ((size_t)(project - path.ptr) < len || memcmp(project - len, above, len) != 0)
		return NULL;
	return project - len;
}

bool opencode_is_storage(sheaf_str path)
{
	return path.ptr != NULL && storage_end(path) != NULL;
}

/* ---- Names --------------------------------------------------------------- */

typedef struct names {
	arena *arena;
	sheaf_str *items;
	size_t count, room;
} names;

static void names_free(names *n)
{
	mem_free(n->items);
	arena_free(n->arena);
}

/* The names of the .json files, without that ending. */
static int names_add(void *ctx, const char *name, unsigned char type)
{
	names *n = ctx;
	sheaf_str s = sheaf_str_of(name);
	void *items = n->items;
	int ok = 1;
	(void)type;
	if (s.len < 6 || memcmp(s.ptr + s.len - 5, ".json", 5) != 0)
		return 0;
	if (n->count == NAMES_MAX)
		return SHEAF_LIMIT;
	if (mem_grow(&items, &n->room, n->count + 1, sizeof(*n->items)) != 0)
		return SHEAF_NOMEM;
	n->items = items;
	n->items[n->count++] = arena_dup(n->arena, str_make(s.ptr, s.len - 5), &ok);
	return ok ? 0 : SHEAF_NOMEM;
}

/* By id, which is by time. */
static void names_sort(names *n)
{
	for (size_t gap = n->count / 2; gap > 0; gap /= 2) {
		for (size_t i = gap; i < n->count; i++) {
			sheaf_str item = n->items[i];
			size_t k = i;
			for (; k >= gap && str_cmp(n->items[k - gap], item) > 0; k -= gap)
				n->items[k] = n->items[k - gap];
			n->items[k] = item;
		}
	}
}

/* The files of STORAGE/KIND/ID; none if there is no such folder. */
static int names_list(import *im, sheaf_str storage, const char *kind, sheaf_str id, names *out)
{
	_cleanup_(buf_free) buf path = BUF_INIT(PATH_BYTES_MAX);
	buf_format(&path, "%.*s/%s/%.*s", (int)storage.len, storage.ptr, kind, (int)id.len, id.ptr);
	buf_nul(&path);
	int rc = buf_status(&path, im->err);
	if (rc != 0)
		return rc;
	if (out->arena == NULL && (out->arena = arena_new()) == NULL)
		return err_nomem(im->err);
	_cleanup_(io_closep) int fd = io_open_root(path.ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0 && errno == ENOENT)
		return 0;
	rc = fd < 0 ? -1 : io_each_name(fd, names_add, out);
	if (rc == SHEAF_NOMEM || (rc == -1 && errno == ENOMEM))
		return err_nomem(im->err);
	if (rc == SHEAF_LIMIT)
		return err_set(im->err, rc, "too many files in a folder");
	if (rc != 0)
		return import_problem(im, "%s cannot be read", path.ptr);
	names_sort(out);
	return 0;
}

/* ---- Files --------------------------------------------------------------- */

/* A file whole; 1, or 0 when it cannot be read or is too large, which is a problem then. */
static int file_load(import *im, const char *path, buf *out)
{
	_cleanup_(document_closep) document *d = NULL;
	sheaf_error mine;
	buf_reset(out);
	int rc = document_open(&d, path, &mine);
	if (rc == 0 && document_size(d) > SOURCE_PIECE_MAX)
		rc = import_problem(im, "%s is longer than a record may be", path);
	else if (rc == 0 && (rc = document_text(d, 0, document_size(d), out, &mine)) == 0)
		return 1;
	if (rc == SHEAF_NOMEM)
		return err_nomem(im->err);
	return rc == 0 ? 0 : import_problem(im, "%s", mine.message);
}

/* Text as it is, each line but the first further to the right. */
static void indented(buf *out, sheaf_str text, const char *blanks)
{
	const char *p = text.ptr, *end = text.ptr + text.len;
	while (p < end) {
		const char *line = memchr(p, '\n', (size_t)(end - p));
		const char *to = line != NULL ? line + 1 : end;
		buf_add(out, p, (size_t)(to - p));
		if (line != NULL)
			buf_str(out, sheaf_str_of(blanks));
		p = to;
	}
}

/* One file as a value of the document: what is no JSON as a string. */
typedef struct loader {
	import *im;
	sheaf_str storage;
	buf path, file;
	json_doc *doc;
} loader;

static void loader_free(loader *l)
{
	buf_free(&l->path);
	buf_free(&l->file);
	json_free(l->doc);
}

static int value_write(loader *l, const char *kind, sheaf_str of, sheaf_str id, const char *blanks,
                       buf *out)
{
	sheaf_error mine;
	buf_reset(&l->path);
	buf_format(&l->path, "%.*s/%s/%.*s/%.*s.json", (int)l->storage.len, l->storage.ptr, kind,
	           (int)of.len, of.ptr, (int)id.len, id.ptr);
	buf_nul(&l->path);
	int rc = buf_status(&l->path, l->im->err);
	if (rc == 0)
		rc = file_load(l->im, l->path.ptr, &l->file);
	if (rc < 0)
		return rc;
	sheaf_str text = members_trim(buf_view(&l->file));
	if (rc == 0) {
		buf_lit(out, "null");
		return 0;
	}
	rc = json_parse(&l->doc, text, &mine);
	if (rc == SHEAF_NOMEM)
		return err_nomem(l->im->err);
	if (rc == 0 && memchr(text.ptr, '\r', text.len) == NULL) {
		indented(out, text, blanks);
		return 0;
	}
	_cleanup_(buf_free) buf mended = BUF_INIT(2 * SOURCE_PIECE_MAX);
	(void)utf8_mend(&mended, text);
	buf_json(out, buf_view(&mended));
	rc = buf_status(&mended, l->im->err);
	return rc == 0 ? import_problem(l->im, "%s: %s", l->path.ptr, mine.message) : rc;
}

/* ---- The session --------------------------------------------------------- */

/* A message with its parts, as it stands in the export. */
static int message_write(loader *l, sheaf_str session, sheaf_str id, buf *out)
{
	_cleanup_(names_free) names parts = {0};
	buf_reset(out);
	buf_lit(out, "{\n      \"info\": ");
	int rc = value_write(l, "message", session, id, "      ", out);
	if (rc == 0)
		rc = names_list(l->im, l->storage, "part", id, &parts);
	buf_lit(out, ",\n      \"parts\": [");
	for (size_t i = 0; rc == 0 && i < parts.count; i++) {
		buf_str(out, i == 0 ? SHEAF_STR("\n        ") : SHEAF_STR(",\n        "));
		rc = value_write(l, "part", id, parts.items[i], "        ", out);
	}
	buf_str(out, parts.count != 0 ? SHEAF_STR("\n      ]\n    }") : SHEAF_STR("]\n    }"));
	return rc;
}

static int message_take(import *im, sheaf_str piece)
{
	_cleanup_(buf_free) buf flat = BUF_INIT(SOURCE_PIECE_MAX);
	value message;
	document_flatten(&flat, piece);
	int rc = buf_status(&flat, im->err);
	if (rc == 0)
		rc = import_parse(im, buf_view(&flat), &message);
	return rc == 0 && message.v != NULL ? opencode_message(im, (sheaf_str){NULL, 0}, message)
	                                    : rc;
}

static int messages_read(loader *l, sheaf_str session)
{
	import *im = l->im;
	_cleanup_(names_free) names messages = {0};
	_cleanup_(buf_free) buf piece = BUF_INIT(SOURCE_PIECE_MAX);
	int rc = names_list(im, l->storage, "message", session, &messages);
	for (size_t i = 0; rc == 0 && i < messages.count; i++) {
		rc = message_write(l, session, messages.items[i], &piece);
		if (rc == 0 && piece.status == SHEAF_TOO_LARGE) {
			rc = import_problem(im, "%.*s is longer than a record may be",
			                    (int)messages.items[i].len, messages.items[i].ptr);
			continue;
		}
		if (rc == 0)
			rc = buf_status(&piece, im->err);
		if (rc == 0)
			rc = import_between(im,
			                    i == 0 ? SHEAF_STR("\n    ") : SHEAF_STR(",\n    "));
		if (rc == 0)
			rc = piece_begin(im, buf_view(&piece), false);
		if (rc == 0)
			rc = message_take(im, buf_view(&piece));
		if (rc == 0)
			rc = piece_end(im);
	}
	if (rc == 0)
		rc = import_between(im, messages.count != 0 ? SHEAF_STR("\n  ]\n}\n")
		                                            : SHEAF_STR("]\n}\n"));
	return rc;
}

int opencode_storage_read(import *im)
{
	const char *end = storage_end(im->file);
	_cleanup_(loader_free) loader l = {
		.im = im,
		.storage = str_make(im->file.ptr, (size_t)(end - im->file.ptr)),
		.path = BUF_INIT(PATH_BYTES_MAX),
		.file = BUF_INIT(SOURCE_PIECE_MAX),
	};
	_cleanup_(buf_free) buf info = BUF_INIT(SOURCE_PIECE_MAX);
	_cleanup_(buf_free) buf flat = BUF_INIT(SOURCE_PIECE_MAX);
	const char *name = im->file.ptr + im->file.len;
	while (name[-1] != '/')
		name--;
	sheaf_str id = {name, (size_t)(im->file.ptr + im->file.len - name) - 5};
	int rc = file_load(im, im->file.ptr, &l.file);
	if (rc != 1)
		return rc;
	indented(&info, members_trim(buf_view(&l.file)), "  ");
	document_flatten(&flat, buf_view(&l.file));
	rc = buf_status(&flat, im->err);
	if (rc == 0)
		rc = buf_status(&info, im->err);
	if (rc == 0)
		rc = opencode_open(im, buf_view(&flat));
	if (rc == 0)
		rc = import_between(im, SHEAF_STR("{\n  \"info\": "));
	if (rc == 0)
		rc = import_between(im, buf_view(&info));
	if (rc == 0)
		rc = import_between(im, SHEAF_STR(",\n  \"messages\": ["));
	return rc == 0 ? messages_read(&l, id) : rc;
}
