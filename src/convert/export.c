/* Exporting a session: as it came where it came from that format, else as a converter writes it. */
#include <stdarg.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "convert/export_inside.h"
#include "convert/export_wire.h"
#include "convert/import_inside.h"

#define PAGE_RECORDS 32

/* ---- The report ----------------------------------------------------------- */

static export_report *export_report_new(void)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	export_report *r = a != NULL ? arena_zalloc(a, sizeof(*r)) : NULL;
	if (r == NULL)
		return NULL;
	r->arena = a;
	a = NULL;
	return r;
}

void sheaf_export_report_free(const sheaf_export_report *done)
{
	export_report *r = (export_report *)(uintptr_t)(const void *)done;
	if (r == NULL)
		return;
	mem_free(r->losses);
	arena_free(r->arena);
}

int export_loss(export *ex, const char *what)
{
	export_report *r = ex->inside->report;
	for (size_t i = 0; i < r->is.loss_count; i++) {
		if (strcmp(r->losses[i]->what, what) == 0) {
			r->losses[i]->count++;
			return 0;
		}
	}
	void *list = r->losses;
	if (mem_grow(&list, &r->loss_room, r->is.loss_count + 1, sizeof(*r->losses)) != 0)
		return err_nomem(ex->err);
	r->losses = list;
	sheaf_export_loss *loss = arena_alloc(r->arena, sizeof(*loss));
	if (loss == NULL)
		return err_nomem(ex->err);
	*loss = (sheaf_export_loss){what, 1};
	r->losses[r->is.loss_count++] = loss;
	r->is.losses = (const sheaf_export_loss *const *)r->losses;
	return 0;
}

int export_place(export *ex, const char *format, ...)
{
	export_report *r = ex->inside->report;
	char path[4096];
	int ok = 1;
	va_list args;
	va_start(args, format);
	int len = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof(path))
		return 0;
	r->is.path = arena_dup(r->arena, str_make(path, (size_t)len), &ok);
	r->is.id = arena_dup(r->arena, sheaf_str_of(ex->id), &ok);
	r->is.cwd = arena_dup(r->arena, export_cwd(ex), &ok);
	return ok ? 0 : err_nomem(ex->err);
}

sheaf_str export_cwd(const export *ex)
{
	return ex->cwd.len != 0 ? ex->cwd : SHEAF_STR("/");
}

/* An id goes into paths and commands: one that could mean more than itself does not. */
static bool id_is_plain(sheaf_str id)
{
	for (size_t i = 0; i < id.len; i++) {
		char c = id.ptr[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		             (c >= '0' && c <= '9') || c == '_' || c == '~';
		if (!plain && (i == 0 || (c != '.' && c != '-')))
			return false;
	}
	return id.len != 0;
}

/* The id it has there if it came from there, without the number of a later version. */
static void id_find(export *ex)
{
	sheaf_str name = ex->head->info->session, format = sheaf_str_of(ex->how->is.name);
	sheaf_str id = {NULL, 0};
	char made[WIRE_ID_ROOM];
	if (name.len > format.len && memcmp(name.ptr, format.ptr, format.len) == 0 &&
	    name.ptr[format.len] == '.')
		id = str_make(name.ptr + format.len + 1, name.len - format.len - 1);
	bool own = id_is_plain(id);
	export_uuid(ex, made);
	str_copy_cut(ex->id, sizeof(ex->id), own ? id : sheaf_str_of(made));
	char *version = strrchr(ex->id, '~');
	if (own && version != NULL)
		*version = '\0';
}

/* ---- What converters call ------------------------------------------------- */

int export_write(export *ex, sheaf_str bytes)
{
	if (bytes.len == 0)
		return 0;
	int rc = ex->inside->write(ex->inside->ctx, bytes);
	return rc != 0 ? err_set(ex->err, rc, "writing the export failed") : 0;
}

int export_path(export *ex, const sheaf_records **out)
{
	export_inside *in = ex->inside;
	int rc = 0;
	if (in->path == NULL)
		rc = sheaf_session_path(&in->path, ex->session, ex->options.branch,
		                        ex->options.leaf, 0, ex->err);
	*out = in->path;
	return rc;
}

int export_records(export *ex, uint64_t *seq, const sheaf_records **out)
{
	export_inside *in = ex->inside;
	sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
	how.limit = PAGE_RECORDS;
	how.from_seq = (*seq != 0 ? *seq : ex->from_seq) + 1;
	sheaf_records_free(in->page);
	in->page = NULL;
	int rc = sheaf_session_records(&in->page, ex->session, &how, ex->err);
	if (rc != 0)
		return rc;
	*out = in->page;
	if (in->page->count == 0)
		return 0;
	*seq = in->page->items[in->page->count - 1]->seq;
	return 1;
}

int export_path_losses(export *ex)
{
	const sheaf_records *path, *page;
	uint64_t seq = 0, from = ex->from_seq;
	int rc = export_path(ex, &path);
	size_t at = 0; /* the path is in the order of the log, too */
	ex->from_seq = 0;
	while (rc >= 0 && (rc = export_records(ex, &seq, &page)) == 1) {
		for (size_t i = 0; rc >= 0 && i < page->count; i++) {
			const sheaf_entry *e = page->items[i];
			if (e->damaged || (SHEAF_KIND_BIT(e->kind) & SHEAF_KINDS_ENTRIES) == 0)
				continue;
			if (at < path->count && path->items[at]->seq == e->seq)
				at++;
			else
				rc = export_loss(ex, "entry of another branch");
		}
	}
	ex->from_seq = from;
	return rc < 0 ? rc : 0;
}

/* ---- The whole ------------------------------------------------------------ */

static int same_write(export *ex, const imported *was, bool *done)
{
	bool changed, log = ex->how->take != NULL && was->between.ptr == NULL;
	*done = false;
	if (was->seq == 0 || (!log && was->between.ptr == NULL))
		return 0;
	if (ex->how->bound && !str_eq(ex->cwd, ex->head->info->cwd))
		return 0;
	bool grows = log ? !was->open_end : ex->how->adds && was->pieces != 0;
	int rc = imported_changed(ex, was, &changed);
	if (rc != 0 || (changed && !grows))
		return rc;
	bool asked = ex->options.leaf.len != 0 || ex->options.branch.len != 0, passed = true;
	if (!ex->how->tree && (changed || asked))
		rc = imported_passed(ex, was, &passed);
	if (rc != 0 || !passed)
		return rc;
	rc = pieces_write(ex, was);
	if (rc == 0 && !changed)
		rc = tail_write(ex, was);
	*done = !changed;
	ex->inside->report->is.verbatim = !changed;
	ex->from_seq = was->seq;
	return rc;
}

static int export_run(export *ex)
{
	_cleanup_(imported_free) imported was = {0};
	bool done;
	int rc = imported_find(ex, &was);
	if (rc == 0)
		rc = imported_note(ex, &was);
	if (rc == 0)
		rc = same_write(ex, &was, &done);
	if (rc != 0 || (done && ex->how->place == NULL))
		return rc;
	if (ex->how->place != NULL)
		rc = ex->how->place(ex);
	if (rc != 0 || done)
		return rc;
	if (ex->how->write == NULL)
		return err_set(ex->err, SHEAF_UNSUPPORTED, "%s cannot be written",
		               ex->how->is.title);
	rc = ex->how->write(ex);
	return rc == 0 && ex->from_seq != 0 ? tail_write(ex, &was) : rc;
}

static void inside_free(export_inside *in)
{
	sheaf_records_free(in->path);
	sheaf_records_free(in->page);
	json_free(in->doc);
	buf_free(&in->raw);
}

static void headp_free(sheaf_head_view **head)
{
	sheaf_head_view_free(*head);
}

int sheaf_export(sheaf_export_report **out, sheaf_session *session,
                 const sheaf_export_options *options, sheaf_write_fn write, void *ctx,
                 sheaf_error *err)
{
	sheaf_error mine = {0};
	if (out == NULL || session == NULL || options == NULL || write == NULL)
		return err_set(err, SHEAF_INVALID,
		               "an export needs a session, a format and a place");
	const converter *how = converter_named(options->format);
	if (how == NULL)
		return err_set(err, SHEAF_INVALID, "there is no format of that name");
	_cleanup_(arena_freep) arena *a = arena_new();
	_cleanup_(headp_free) sheaf_head_view *head = NULL;
	_cleanup_(inside_free) export_inside in = {
		.write = write, .ctx = ctx, .raw = BUF_INIT(SHEAF_RECORD_BYTES_MAX)};
	in.report = export_report_new();
	int rc = a != NULL && in.report != NULL ? 0 : err_nomem(&mine);
	if (rc == 0)
		rc = sheaf_session_head(&head, session, &mine);
	if (rc == 0) {
		struct export ex = {.how = how,
		                    .session = session,
		                    .head = head,
		                    .arena = a,
		                    .err = &mine,
		                    .inside = &in};
		ex.options = (sheaf_export_options)SHEAF_EXPORT_OPTIONS_INIT;
		memcpy(&ex.options, options,
		       options->size < sizeof(ex.options) ? options->size : sizeof(ex.options));
		ex.cwd = ex.options.cwd.len != 0 ? ex.options.cwd : head->info->cwd;
		id_find(&ex);
		rc = export_run(&ex);
	}
	if (rc != 0) {
		sheaf_export_report_free(in.report != NULL ? &in.report->is : NULL);
		if (err != NULL)
			*err = mine;
		return rc;
	}
	*out = &in.report->is;
	return 0;
}
