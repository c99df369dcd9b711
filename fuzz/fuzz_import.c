/*
 * Anything that may lie where agents keep their sessions: imported into a store
 * in memory, exported, imported again. One program for each kind of file: FUZZ_FORMAT
 * is the format that is asked for, FUZZ_FILE the name of the file.
 *
 * The input is the file; or several of them, each begun by a byte 0x1e, its name
 * and a line break. One whose name ends in .zst is compressed before it is
 * imported.
 *
 * Beyond not crashing: importing never fails; what is exported is the file byte
 * for byte, but for a last line that is not whole; importing again finds nothing
 * new; a file that grew gives the same records; and what a model is sent of it
 * breaks no rule, also after it was written for another agent.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "mutate.h"
#include "sheaf/convert.h"
#include "sheaf/render.h"

#define FILES_MAX 16
#define BYTES_MAX ((size_t)1 << 28)
#define SEPARATOR 0x1e
#ifdef FUZZ_STORAGE /* a session is made of many files */
#define FUZZ_ONE_FILE 0
#else
#define FUZZ_ONE_FILE 1
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

#define must(good) must_be(good, #good, __LINE__, NULL)
#define must_ok(rc, err) must_be((rc) == 0, #rc, __LINE__, (err)->message)

static void must_be(int good, const char *what, int line, const char *why)
{
	if (good)
		return;
	(void)fprintf(stderr, "line %d: not %s%s%s\n", line, what, why != NULL ? ": " : "",
	              why != NULL ? why : "");
	abort();
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	chance c = {seed};
	for (size_t n = 1 + below(&c, 3); size != 0 && n > 0; n--)
		size = below(&c, 3) == 0 ? mutate_bytes(&c, data, size, room)
		                         : mutate_json(&c, data, size, room);
	return size;
}

/* ---- Files --------------------------------------------------------------- */

typedef struct file {
	char path[256];
	sheaf_str text;
	int packed;
} file;

static char dir[64];

static void dir_make(void)
{
	if (dir[0] != '\0')
		return;
	(void)snprintf(dir, sizeof(dir), "%s/sheaf-fuzz-XXXXXX",
	               access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	must(mkdtemp(dir) != NULL);
}

/* Everything below a path, which is made of few levels. */
static void clear(const char *path)
{
	DIR *d = opendir(path);
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		char below_it[512];
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		(void)snprintf(below_it, sizeof(below_it), "%s/%s", path, e->d_name);
		if (unlink(below_it) != 0) {
			clear(below_it);
			(void)rmdir(below_it);
		}
	}
	if (d != NULL)
		(void)closedir(d);
}

static void dir_remove(void)
{
	clear(dir);
	(void)rmdir(dir);
}

/* DIR/NAME, with nothing in the name that leads elsewhere. */
static void path_make(char *out, size_t room, sheaf_str name)
{
	size_t at = (size_t)snprintf(out, room, "%s/", dir), depth = 0;
	for (size_t i = 0; i < name.len && i < 120; i++) {
		char c = name.ptr[i];
		bool slash = c == '/' && out[at - 1] != '/' && i + 1 < name.len && ++depth < 5;
		bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
		             (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
		             (c == '.' && out[at - 1] != '/');
		out[at++] = slash || plain ? c : '_';
	}
	out[at] = '\0';
	if (name.len == 0 || out[at - 1] == '/')
		(void)snprintf(out + at, room - at, "x");
}

static size_t files_split(file files[FILES_MAX], sheaf_str all)
{
	size_t count = 0;
	if (all.len == 0 || all.ptr[0] != SEPARATOR) {
		path_make(files[0].path, sizeof(files[0].path), SHEAF_STR(FUZZ_FILE));
		files[0].text = all;
		files[0].packed = 0;
		return 1;
	}
	while (all.len != 0 && count < FILES_MAX) {
		const char *end = memchr(all.ptr + 1, SEPARATOR, all.len - 1);
		size_t len = end != NULL ? (size_t)(end - all.ptr) : all.len;
		const char *line = memchr(all.ptr, '\n', len);
		sheaf_str name = {all.ptr + 1, (line != NULL ? (size_t)(line - all.ptr) : len) - 1};
		file *f = &files[count++];
		path_make(f->path, sizeof(f->path), name);
		f->text = line != NULL ? str_make(line + 1, len - name.len - 2)
		                       : (sheaf_str){all.ptr, 0};
		f->packed = name.len > 4 && memcmp(name.ptr + name.len - 4, ".zst", 4) == 0;
		all = str_make(all.ptr + len, all.len - len);
	}
	return count;
}

static void put(const char *path, const void *bytes, size_t len)
{
	char part[256];
	(void)snprintf(part, sizeof(part), "%s", path);
	for (char *p = part + strlen(dir) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		(void)mkdir(part, 0700);
		*p = '/';
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) /* a name that is a folder already, or a folder's that is a file */
		return;
	must(write(fd, bytes, len) == (ssize_t)len);
	/* No two writes at the same time, or the file is taken for what it was. */
	static time_t now = 1700000000;
	struct timespec times[2] = {{.tv_sec = ++now}, {.tv_sec = 0}};
	times[1].tv_sec = now;
	must(futimens(fd, times) == 0);
	(void)close(fd);
}

static void file_put(const file *f, size_t len)
{
	if (!f->packed) {
		put(f->path, f->text.ptr, len);
		return;
	}
	size_t room = ZSTD_compressBound(len);
	char *packed = malloc(room);
	must(packed != NULL);
	put(f->path, packed, ZSTD_compress(packed, room, f->text.ptr, len, 1));
	free(packed);
}

/* ---- Sessions ------------------------------------------------------------ */

static int collect(void *ctx, sheaf_str bytes)
{
	buf_str(ctx, bytes);
	return ((buf *)ctx)->status;
}

static sheaf_import_report *import_into(sheaf_store *store, const char *path, const char *format)
{
	sheaf_import_report *report = NULL;
	sheaf_import_options how = SHEAF_IMPORT_OPTIONS_INIT;
	sheaf_error err = {0};
	how.format = sheaf_str_of(format);
	int rc = sheaf_import(&report, store, sheaf_str_of(path), &how, &err);
	must_ok(rc, &err);
	return report;
}

static sheaf_session *session_of(sheaf_store *store, const sheaf_imported *imported)
{
	sheaf_session *s = NULL;
	sheaf_session_options how = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_error err = {0};
	how.mode = SHEAF_OPEN_EXISTING;
	int rc = sheaf_session_open(&s, store, &imported->key, &how, &err);
	must_ok(rc, &err);
	return s;
}

static int export_to(buf *out, sheaf_session *s, const char *format)
{
	sheaf_export_report *report = NULL;
	sheaf_export_options how = SHEAF_EXPORT_OPTIONS_INIT;
	sheaf_error err = {0};
	how.format = sheaf_str_of(format);
	int rc = sheaf_export(&report, s, &how, collect, out, &err);
	must_ok(rc, &err);
	int verbatim = report->verbatim;
	sheaf_export_report_free(report);
	return verbatim;
}

/* What a session holds, without how often it was imported. */
static void session_text(buf *out, sheaf_session *s)
{
	sheaf_records *all;
	sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
	sheaf_head_view *head;
	char leaf[SHEAF_ID_ROOM];
	how.limit = 100000;
	how.raw = 1;
	must(sheaf_session_records(&all, s, &how, NULL) == 0);
	for (size_t i = 0; i < all->count; i++) {
		const sheaf_entry *e = all->items[i];
		if (e->kind == SHEAF_KIND_IMPORT || e->kind == SHEAF_KIND_LEAF ||
		    e->kind == SHEAF_KIND_SESSION_INFO)
			continue;
		buf_format(out, "%.*s %.*s %.*s ", (int)e->type.len, e->type.ptr, (int)e->id.len,
		           e->id.ptr, (int)e->parent_id.len, e->parent_id.ptr);
		buf_str(out, e->body);
		buf_char(out, '\n');
	}
	sheaf_records_free(all);
	must(sheaf_session_leaf(s, (sheaf_str){NULL, 0}, leaf, NULL) == 0);
	must(sheaf_session_head(&head, s, NULL) == 0);
	buf_format(out, "at %s, called ", leaf);
	buf_str(out, head->info->name);
	sheaf_head_view_free(head);
	must(out->status == 0);
}

/* Whether parts are given back to their provider as they came, right or wrong. */
static bool gives_back(const sheaf_context *context)
{
	for (size_t i = 0; i < context->count; i++) {
		const sheaf_message_view *m = context->items[i]->message;
		for (size_t k = 0; k < m->part_count; k++) {
			if (m->parts[k]->kind == SHEAF_PART_OPAQUE || m->parts[k]->ext.len != 0)
				return true;
		}
	}
	return false;
}

/* A request in each format keeps to the rules. */
static void check_requests(sheaf_session *s)
{
	sheaf_context *context;
	sheaf_error err = {0};
	int rc = sheaf_session_context(&context, s, NULL, &err);
	must_ok(rc, &err);
	for (int32_t format = 1; format <= 4; format++) {
		sheaf_request *request;
		sheaf_violations *broken;
		sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
		how.format = format;
		how.model = SHEAF_STR("m");
		rc = sheaf_render(&request, context, &how, &err);
		if (rc == SHEAF_CONTEXT) /* nothing to send */
			continue;
		must_ok(rc, &err);
		rc = sheaf_request_check(&broken, format, request->body, &err);
		must_ok(rc, &err);
		if (broken->count != 0 && !gives_back(context))
			must_be(0, sheaf_format_name(format), __LINE__, broken->items[0]->text.ptr);
		sheaf_violations_free(broken);
		sheaf_request_free(request);
	}
	sheaf_context_free(context);
}

/* ---- What must hold ------------------------------------------------------ */

/* The session of a file of its own gives it back. */
static void check_same(sheaf_str was, sheaf_str is, int partial)
{
	if (!str_eq(is, str_make(was.ptr, is.len < was.len ? is.len : was.len))) {
		(void)fprintf(stderr, "--- was\n%.*s\n--- is\n%.*s\n", (int)was.len, was.ptr,
		              (int)is.len, is.ptr);
		must(0);
	}
	if (partial)
		must(memchr(was.ptr + is.len, '\n', was.len - is.len) == NULL);
	else
		must(is.len == was.len);
}

/* What was exported is known to the store that it came from. */
static void check_known(sheaf_store *store, sheaf_str text)
{
	char path[256];
	path_make(path, sizeof(path), SHEAF_STR("again.json"));
	put(path, text.ptr, text.len);
	sheaf_import_report *report = import_into(store, path, FUZZ_FORMAT);
	for (size_t i = 0; i < report->session_count; i++)
		must(report->sessions[i]->records == 0);
	sheaf_import_report_free(report);
}

static void check_session(sheaf_store *store, const file *f, size_t files,
                          const sheaf_import_report *report, size_t i)
{
	buf out = BUF_INIT(BYTES_MAX);
	sheaf_session *s = session_of(store, report->sessions[i]);
	must(export_to(&out, s, FUZZ_FORMAT) == 1);
	/* Of several files one may be the beginning of another's session. */
	bool own = files == 1 || report->sessions[i]->state == SHEAF_IMPORT_NEW;
	bool one = FUZZ_ONE_FILE && report->session_count == 1;
	if (one && own)
		check_same(f->text, buf_view(&out), report->sessions[i]->partial);
	else if (!one && report->problem_total == 0)
		check_known(store, buf_view(&out));
	check_requests(s);
	sheaf_session_close(s);
	buf_free(&out);
}

/* Written for another agent, it can be read. */
static void check_carried(sheaf_store *store, const sheaf_imported *imported, size_t which)
{
	const sheaf_converter *to = NULL;
	size_t count = 0;
	while (sheaf_converter_at(count) != NULL)
		count++;
	to = sheaf_converter_at(which % count);
	if (!to->exports || strcmp(to->name, FUZZ_FORMAT) == 0)
		return;
	buf out = BUF_INIT(BYTES_MAX);
	sheaf_session *s = session_of(store, imported);
	(void)export_to(&out, s, to->name);
	sheaf_session_close(s);
	if (to->imports && out.len != 0) {
		char path[256];
		sheaf_store *other;
		path_make(path, sizeof(path), SHEAF_STR("other.jsonl"));
		put(path, out.ptr, out.len);
		must(sheaf_open(&other, "memory:", NULL, NULL) == 0);
		sheaf_import_report *report = import_into(other, path, to->name);
		must(report->session_count == 1);
		if (report->problem_total != 0)
			must_be(0, to->name, __LINE__, report->problems[0]->text.ptr);
		s = session_of(other, report->sessions[0]);
		check_requests(s);
		sheaf_session_close(s);
		sheaf_import_report_free(report);
		sheaf_close(other);
	}
	buf_free(&out);
}

static void check_again(sheaf_store *store, const file *f)
{
	file_put(f, f->text.len);
	sheaf_import_report *report = import_into(store, f->path, FUZZ_FORMAT);
	for (size_t i = 0; i < report->session_count; i++) {
		must(report->sessions[i]->state == SHEAF_IMPORT_SAME);
		must(report->sessions[i]->records == 0);
	}
	sheaf_import_report_free(report);
}

/* Whether a log that is cut there ends in a line that looks whole and is not. */
static bool looks_whole(sheaf_str text, size_t cut)
{
	size_t from = cut;
	json_doc *doc = NULL;
	while (from > 0 && text.ptr[from - 1] != '\n')
		from--;
	bool whole = json_parse(&doc, str_make(text.ptr + from, cut - from), NULL) == 0;
	json_free(doc);
	return whole;
}

/* First a part of it, then all. */
static void check_grown(const file *files, size_t count, size_t at, size_t cut, sheaf_store *once)
{
	const file *f = &files[at];
	sheaf_store *store;
	must(sheaf_open(&store, "memory:", NULL, NULL) == 0);
	for (size_t i = 0; i < count; i++)
		file_put(&files[i], files[i].text.len);
	file_put(f, cut);
	sheaf_import_report_free(import_into(store, f->path, FUZZ_FORMAT));
	file_put(f, f->text.len);
	sheaf_import_report *report = import_into(store, f->path, FUZZ_FORMAT);
	for (size_t i = 0; i < report->session_count; i++) {
		const sheaf_imported *one = report->sessions[i];
		if (FUZZ_ONE_FILE)
			check_session(store, f, count, report, i);
		if (!FUZZ_LOG || f->packed || looks_whole(f->text, cut))
			continue;
		must(one->state != SHEAF_IMPORT_CHANGED);
		buf whole = BUF_INIT(BYTES_MAX), grown = BUF_INIT(BYTES_MAX);
		sheaf_session *a = session_of(once, one), *b = session_of(store, one);
		session_text(&whole, a);
		session_text(&grown, b);
		if (!str_eq(buf_view(&whole), buf_view(&grown))) {
			(void)fprintf(stderr, "--- at once\n%.*s\n--- grown at %zu\n%.*s\n",
			              (int)whole.len, whole.ptr, cut, (int)grown.len, grown.ptr);
			must(0);
		}
		sheaf_session_close(a);
		sheaf_session_close(b);
		buf_free(&whole);
		buf_free(&grown);
	}
	sheaf_import_report_free(report);
	sheaf_close(store);
}

static void check_file(sheaf_store *store, const file *files, size_t count, size_t at, chance *c)
{
	const file *f = &files[at];
	struct stat st;
	file_put(f, f->text.len); /* another one may have its name */
	if (stat(f->path, &st) != 0 || !S_ISREG(st.st_mode))
		return;
	sheaf_import_report *report = import_into(store, f->path, FUZZ_FORMAT);
	must(report->session_count != 0 || report->problem_total != 0);
	for (size_t i = 0; i < report->session_count && i < 4; i++) {
		const sheaf_imported *one = report->sessions[i];
		if (one->state == SHEAF_IMPORT_CHANGED) /* two files of one id */
			continue;
		check_session(store, f, count, report, i);
		check_carried(store, one, below(c, 64));
	}
	sheaf_import_report_free(report);
	check_again(store, f);
	if (f->text.len != 0 && count == 1)
		check_grown(files, count, at, below(c, f->text.len), store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool begun;
	static file files[FILES_MAX];
	sheaf_store *store;
	chance c = {size};
	if (!begun) {
		dir_make();
		begun = atexit(dir_remove) == 0;
	}
	for (size_t i = 0; i < size; i++)
		c.state = c.state * 31 + data[i];
	size_t count = files_split(files, (sheaf_str){(const char *)data, size});
	for (size_t i = 0; i < count; i++)
		file_put(&files[i], files[i].text.len);
	must(sheaf_open(&store, "memory:", NULL, NULL) == 0);
	for (size_t i = 0; i < count; i++)
		check_file(store, files, count, i, &c);
	if (count > 1) { /* and all at once, as a person would */
		sheaf_store *all;
		must(sheaf_open(&all, "memory:", NULL, NULL) == 0);
		sheaf_import_report_free(import_into(all, dir, ""));
		sheaf_close(all);
	}
	sheaf_close(store);
	clear(dir);
	return 0;
}
