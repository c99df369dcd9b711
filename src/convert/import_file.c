/* Importing files: one, or all below a directory that a converter knows. */
#include "base/err.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "convert/import_inside.h"
#include "entry/record.h"

#define VERSIONS_MAX 99
/* How long a row of files may be of which each needs the next. */
#define CHAIN_MAX 32
/* Text between the pieces of a document: more is not kept. */
#define GAPS_BYTES_MAX (SHEAF_BODY_BYTES_MAX / 2)

static void inside_free(import_inside *in)
{
	json_free(in->doc);
	buf_free(&in->mended_text);
	buf_free(&in->origin);
	buf_free(&in->name);
	gaps_free(&in->gaps);
	sheaf_batch_free(in->batch);
}

int import_open(import *im, const import_session *session)
{
	import_inside *in = im->inside;
	if (in->session_id[0] != '\0') {
		int rc = session_end(im);
		if (rc != 0)
			return rc;
	}
	in->done = (progress){0};
	memset(in->past, 0, sizeof(in->past));
	in->past_count = 0;
	in->leaf[0] = in->added[0] = im->last[0] = '\0';
	in->named = false;
	gaps_reset(&in->gaps);
	in->pieces = in->kept = in->records = in->mended = in->emitted = 0;
	in->crc = 0;
	import_session sane = *session;
	if (!draft_may_be_time(sane.created_us))
		sane.created_us = 0;
	im->time_us = sane.created_us;
	int rc = session_begin(im, &sane);
	/* A log holds one session: what has the size and time it had, is what it was. */
	if (rc == 0 && im->how->take != NULL && is_as_imported(im))
		return IMPORT_SAME;
	return rc;
}

/* ---- One file ------------------------------------------------------------ */

/* The last line may be in the writing: it is taken only when it is whole. */
static int check_finished(import *im, sheaf_str line, bool cut)
{
	if (cut || source_ended(im->source))
		return 0;
	int rc = json_parse(&im->inside->doc, line, im->err);
	im->inside->partial = rc == SHEAF_FORMAT;
	return rc == SHEAF_FORMAT ? 0 : rc;
}

static int lines_read(import *im)
{
	sheaf_str line;
	bool cut, was_cut = false;
	for (;;) {
		int rc = source_line(im->source, &line, &cut, im->err);
		if (rc == 0 && source_broken(im->source))
			return import_problem(im, "what is compressed is damaged from here on");
		if (rc <= 0)
			return rc;
		rc = check_finished(im, line, cut || was_cut);
		if (rc != 0 || im->inside->partial)
			return rc;
		rc = piece_begin(im, line, cut);
		if (rc == 0 && (cut || was_cut))
			rc = was_cut ? 0 : import_problem(im, "longer than a record may be");
		else if (rc == 0)
			rc = im->how->take(im, line);
		was_cut = cut;
		if (rc == 0)
			rc = piece_end(im);
		if (rc != 0)
			return rc;
	}
}

static int version_read(import *im)
{
	int rc = im->how->begin != NULL ? im->how->begin(im) : 0;
	if (rc == 0)
		rc = im->how->read != NULL ? im->how->read(im) : lines_read(im);
	if (rc == 0 && im->how->end != NULL)
		rc = im->how->end(im);
	if (rc == IMPORT_SAME) {
		im->inside->emitted = im->inside->done.records;
		im->inside->pieces = im->inside->done.pieces;
		rc = 0;
	}
	return rc == 0 ? session_end(im) : rc;
}

/* The import is done when the fact about it is stored as well as the store can; a sync of that is one
 * of all before it. If it does not come to that, everything is appended again, and existed. */
static int32_t durability_before_last(sheaf_store *store)
{
	sheaf_store_info info = SHEAF_STORE_INFO_INIT;
	if (sheaf_store_describe(store, &info, NULL) != 0)
		return SHEAF_DURABILITY_DEFAULT;
	return info.durability < SHEAF_DURABILITY_PROCESS ? info.durability
	                                                  : SHEAF_DURABILITY_PROCESS;
}

static int origin_begin(import *im)
{
	buf *out = &im->inside->origin;
	buf_lit(out, "{\"format\":\"");
	buf_str(out, sheaf_str_of(im->how->is.name));
	buf_lit(out, "\",\"file\":");
	buf_json(out, im->inside->file);
	buf_lit(out, ",\"line\":");
	return buf_status(out, im->err);
}

static int version_import(report *r, sheaf_store *store, const sheaf_import_options *options,
                          const converter *how, sheaf_str path, source *from, const io_stat *st,
                          unsigned version, char *first, sheaf_error *err)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	_cleanup_(buf_free) buf name = BUF_INIT(PATH_BYTES_MAX * 3);
	(void)utf8_mend(&name, path);
	if (a == NULL || name.status != 0)
		return err_nomem(err);
	_cleanup_(inside_free) import_inside in = {
		.store = store,
		.options = *options,
		.report = r,
		.file = buf_view(&name),
		.durability = durability_before_last(store),
		.version = version,
		.beside = r->beside,
		.first = first,
		.mended_text = BUF_INIT(SHEAF_RECORD_BYTES_MAX * 2),
		.origin = BUF_INIT(SHEAF_RECORD_BYTES_MAX),
		.name = BUF_INIT(SHEAF_NAME_BYTES_MAX),
		.gaps = {.now = BUF_INIT(GAPS_BYTES_MAX),
	                 .last = BUF_INIT(GAPS_BYTES_MAX),
	                 .list = BUF_INIT(GAPS_BYTES_MAX)},
		.file_bytes = st->size,
		.file_mtime_ns = st->mtime_ns,
	};
	struct import im = {
		.how = how, .file = path, .source = from, .arena = a, .err = err, .inside = &in};
	uint64_t problems = r->is.problem_total, sessions = r->is.session_count;
	int rc = origin_begin(&im);
	if (rc == 0)
		rc = version_read(&im);
	bool nothing = r->is.session_count == sessions ||
	               (how->take != NULL && in.pieces == 0 && !in.partial);
	if (rc == 0 && nothing && r->is.problem_total == problems)
		rc = report_problem(r, path, 0, SHEAF_STR("there is nothing in it"), err);
	if (how->done != NULL)
		how->done(&im);
	session_drop(&im);
	r->beside = in.elsewhere;
	return rc;
}

/* ---- Which converter ------------------------------------------------------- */

static const converter *converter_of(const converter *c, sheaf_str path, sheaf_str head)
{
	for (; c != NULL; c = c->also) {
		if (c->knows != NULL && c->knows(path, head))
			return c;
	}
	return NULL;
}

/* The one asked for takes a file also if it does not know it: that may be damaged. */
static const converter *converter_for(sheaf_str format, sheaf_str path, sheaf_str head)
{
	const converter *c, *found = NULL;
	if (format.len != 0) {
		c = converter_named(format);
		found = converter_of(c, path, head);
		return found != NULL ? found : c;
	}
	for (size_t i = 0; found == NULL && (c = converter_at(i)) != NULL; i++)
		found = converter_of(c, path, head);
	return found;
}

/* ---- One file, with those it needs ----------------------------------------- */

static int file_import(report *r, sheaf_store *store, const sheaf_import_options *options,
                       const char *path, char *first, sheaf_error *err)
{
	const converter *how = NULL;
	const sheaf_str name = sheaf_str_of(path);
	io_stat st;
	r->beside = false;
	for (unsigned version = 1; version <= VERSIONS_MAX; version++) {
		_cleanup_(source_closep) source *from = NULL;
		sheaf_str head;
		int rc = source_open(&from, path, err);
		if (rc == 0)
			rc = source_stat(from, &st, err);
		if (rc == 0)
			rc = source_head(from, &head, err);
		if (rc != 0)
			return rc;
		if (how == NULL)
			how = converter_for(options->format, name, head);
		if (how == NULL || (how->take == NULL && how->read == NULL) ||
		    (r->only.len != 0 && !str_is(r->only, how->is.name))) {
			r->is.skipped_count++;
			return err_set(err, SHEAF_FORMAT, "not a session file of a known format");
		}
		rc = version_import(r, store, options, how, name, from, &st, version, first, err);
		if (rc != IMPORT_CHANGED)
			return rc;
		if (r->beside)
			continue;
		rc = report_problem(
			r, name, 0,
			SHEAF_STR("not what was imported before: imported anew beside it"), err);
		if (rc != 0)
			return rc;
	}
	return err_set(err, SHEAF_LIMIT, "too many versions of one file");
}

int import_first(import *im, const char *path)
{
	char *first = im->inside->first;
	size_t len = strlen(path);
	if (first == NULL || len >= PATH_BYTES_MAX)
		return 0;
	memcpy(first, path, len + 1);
	return IMPORT_FIRST;
}

/* A file that another one needs: what is wrong with it is a problem of its own. */
static int needed_failed(report *r, const char *path, int rc, sheaf_error *err)
{
	if (rc == SHEAF_NOMEM || rc == SHEAF_STORAGE || rc == SHEAF_DAMAGED)
		return rc;
	return report_problem(r, sheaf_str_of(path), 0, sheaf_str_of(err->message), err);
}

int import_file(report *r, sheaf_store *store, const sheaf_import_options *options, sheaf_str path,
                sheaf_error *err)
{
	char *chain[CHAIN_MAX] = {mem_dup(path.ptr, path.len)};
	bool asked[CHAIN_MAX] = {false};
	int rc = chain[0] != NULL ? 0 : err_nomem(err);
	for (size_t depth = 0; rc == 0;) {
		bool may = depth + 1 < CHAIN_MAX && !asked[depth];
		char *first = mem_alloc(PATH_BYTES_MAX);
		if (first == NULL) {
			rc = err_nomem(err);
			break;
		}
		r->is.file_count += !asked[depth];
		rc = file_import(r, store, options, chain[depth], may ? first : NULL, err);
		if (rc == IMPORT_FIRST) {
			asked[depth++] = true;
			chain[depth] = first;
			asked[depth] = false;
			rc = 0;
			continue;
		}
		mem_free(first);
		if (depth == 0)
			break;
		if (rc != 0)
			rc = needed_failed(r, chain[depth], rc, err);
		mem_free(chain[depth]);
		chain[depth--] = NULL;
	}
	for (size_t i = 0; i < CHAIN_MAX; i++)
		mem_free(chain[i]);
	return rc;
}
