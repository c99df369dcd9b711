/* Exporting to the format a session came from: the source's own bytes, in their order. */
#include "base/err.h"
#include "base/str.h"
#include "convert/export_inside.h"
#include "convert/import_inside.h"
#include "entry/members.h"

#define PAGE_RECORDS 32
#define KINDS_OF_WEIGHT                                                                            \
	(SHEAF_KINDS_ENTRIES | SHEAF_KIND_BIT(SHEAF_KIND_LABEL) |                                  \
	 SHEAF_KIND_BIT(SHEAF_KIND_SESSION_INFO) | SHEAF_KIND_BIT(SHEAF_KIND_LEAF))

static void recordsp_free(sheaf_records **records)
{
	sheaf_records_free(*records);
}

/* ---- What was imported ---------------------------------------------------- */

void imported_free(imported *was)
{
	sheaf_records_free(was->facts);
}

/* Whether members name the format of this export. */
static bool is_of_format(const export *ex, sheaf_str members)
{
	sheaf_str name = members_find(members, "format");
	return name.len >= 2 && str_is(str_make(name.ptr + 1, name.len - 2), ex->how->is.name);
}

int imported_find(export *ex, imported *was)
{
	sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
	how.backward = 1;
	how.raw = 1;
	how.own_only = 1;
	how.limit = PAGE_RECORDS;
	how.kinds = SHEAF_KIND_BIT(SHEAF_KIND_IMPORT);
	*was = (imported){0};
	int rc = sheaf_session_records(&was->facts, ex->session, &how, ex->err);
	for (size_t i = 0; rc == 0 && i < was->facts->count; i++) {
		const sheaf_entry *fact = was->facts->items[i];
		sheaf_str members = members_inside(members_find(fact->body, "import"));
		if (!is_of_format(ex, members))
			continue;
		was->seq = fact->seq;
		was->pieces = members_number(members, "pieces");
		was->open_end = str_is(members_find(members, "open_end"), "true");
		was->between = members_inside(members_find(members, "between"));
		was->file = members_find(members, "file");
		return 0;
	}
	return rc;
}

int imported_changed(export *ex, const imported *was, bool *changed)
{
	_cleanup_(recordsp_free) sheaf_records *after = NULL;
	sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
	how.raw = 1;
	how.limit = 1;
	how.from_seq = was->seq + 1;
	how.kinds = KINDS_OF_WEIGHT;
	int rc = sheaf_session_records(&after, ex->session, &how, ex->err);
	*changed = rc == 0 && after->count != 0;
	return rc;
}

/* Where the import left the conversation: the entry that came or was named last. */
static int imported_leaf(export *ex, const imported *was, char out[SHEAF_ID_ROOM])
{
	_cleanup_(recordsp_free) sheaf_records *last = NULL;
	sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
	how.backward = 1;
	how.limit = 1;
	how.from_seq = was->seq;
	how.kinds = SHEAF_KINDS_ENTRIES | SHEAF_KIND_BIT(SHEAF_KIND_LEAF);
	out[0] = '\0';
	int rc = sheaf_session_records(&last, ex->session, &how, ex->err);
	if (rc == 0 && last->count != 0)
		str_copy_cut(out, SHEAF_ID_ROOM,
		             last->items[0]->kind == SHEAF_KIND_LEAF ? last->items[0]->target_id
		                                                     : last->items[0]->id);
	return rc;
}

int imported_passed(export *ex, const imported *was, bool *passed)
{
	const sheaf_records *path;
	char leaf[SHEAF_ID_ROOM];
	int rc = imported_leaf(ex, was, leaf);
	if (rc == 0)
		rc = export_path(ex, &path);
	*passed = rc == 0 && leaf[0] == '\0';
	for (size_t i = 0; rc == 0 && !*passed && i < path->count; i++)
		*passed = str_is(path->items[i]->id, leaf);
	return rc;
}

/* ---- Pieces --------------------------------------------------------------- */

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

static void unhex(buf *out, sheaf_str hex)
{
	for (size_t i = 0; i + 1 < hex.len; i += 2)
		buf_char(out, (char)(digit(hex.ptr[i]) << 4 | digit(hex.ptr[i + 1])));
}

/* A JSON string's text, valid until the next call. */
static int unescape(export *ex, sheaf_str string, bool hex, sheaf_str *out)
{
	export_inside *in = ex->inside;
	int rc = json_parse(&in->doc, string, ex->err);
	if (rc != 0)
		return rc;
	*out = json_string(json_root(in->doc));
	if (!hex)
		return 0;
	buf_reset(&in->raw);
	unhex(&in->raw, *out);
	*out = buf_view(&in->raw);
	return buf_status(&in->raw, ex->err);
}

/* The members that say where a record came from, if it was this format; else {NULL,0}. */
static sheaf_str origin_of(const export *ex, const sheaf_entry *record)
{
	sheaf_str origin = members_inside(members_find(
		record->body, record->kind == SHEAF_KIND_SOURCE ? "source" : "origin"));
	return origin.ptr != NULL && is_of_format(ex, origin) ? origin : (sheaf_str){NULL, 0};
}

static int raw_of(export *ex, sheaf_str origin, sheaf_str *raw)
{
	sheaf_str text = members_find(origin, "raw_text"), hex = members_find(origin, "raw_hex");
	*raw = members_find(origin, "raw");
	if (raw->ptr != NULL || (text.ptr == NULL && hex.ptr == NULL))
		return 0;
	return unescape(ex, text.ptr != NULL ? text : hex, text.ptr == NULL, raw);
}

int export_raw(export *ex, const sheaf_entry *record, sheaf_str *raw)
{
	sheaf_str origin = origin_of(ex, record);
	*raw = (sheaf_str){NULL, 0};
	return origin.ptr != NULL ? raw_of(ex, origin, raw) : 0;
}

int imported_note(export *ex, const imported *was)
{
	export_report *r = ex->inside->report;
	sheaf_str file;
	int ok = 1;
	int rc = was->file.len != 0 ? unescape(ex, was->file, false, &file) : 0;
	if (rc != 0 || was->file.len == 0)
		return rc;
	r->is.file = arena_dup(r->arena, file, &ok);
	return ok ? 0 : err_nomem(ex->err);
}

/* ---- Writing -------------------------------------------------------------- */

/* The text between pieces, one after the other. */
typedef struct between {
	sheaf_str list;
	size_t at;
	sheaf_str now; /* a string, or hexadecimal */
	uint64_t left;
	bool hex;
	bool inside; /* a piece goes on in the next record: there is none before that */
} between;

static bool between_next(between *b)
{
	sheaf_str item, count, form;
	size_t at = 0;
	if (!elements_next(b->list, &b->at, &item))
		return false;
	sheaf_str inside = members_inside(item);
	(void)elements_next(inside, &at, &b->now);
	if (elements_next(inside, &at, &count))
		b->left = number_read(count);
	b->hex = elements_next(inside, &at, &form);
	return true;
}

static int between_write(export *ex, between *b)
{
	sheaf_str text;
	if (b->list.ptr == NULL)
		return 0;
	if (b->left == 0 && !between_next(b))
		return err_set(ex->err, SHEAF_DAMAGED, "the text between the parts is missing");
	if (b->left == 0 || b->now.ptr == NULL)
		return err_set(ex->err, SHEAF_DAMAGED,
		               "the text between the parts is not readable");
	b->left--;
	int rc = unescape(ex, b->now, b->hex, &text);
	return rc == 0 ? export_write(ex, text) : rc;
}

static int piece_write(export *ex, const imported *was, between *b, const sheaf_entry *record,
                       uint64_t *count)
{
	sheaf_str raw, origin = origin_of(ex, record);
	if (origin.ptr == NULL)
		return 0;
	int rc = raw_of(ex, origin, &raw);
	if (rc != 0 || raw.ptr == NULL)
		return rc;
	bool more = str_is(members_find(origin, "more"), "true"), inside = b->inside;
	bool cut = more || str_is(members_find(origin, "cut"), "true");
	*count += !cut;
	b->inside = more;
	if (b->list.ptr != NULL && !inside) {
		_cleanup_(buf_free) buf kept = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
		bool direct = members_find(origin, "raw").ptr != NULL;
		if (!direct) { /* the text before it needs the same room */
			buf_str(&kept, raw);
			rc = buf_status(&kept, ex->err);
		}
		if (rc == 0)
			rc = between_write(ex, b);
		return rc == 0 ? export_write(ex, direct ? raw : buf_view(&kept)) : rc;
	}
	rc = export_write(ex, raw);
	if (rc == 0 && b->list.ptr == NULL && !cut && !(was->open_end && *count == was->pieces))
		rc = export_write(ex, SHEAF_STR("\n"));
	return rc;
}

int pieces_write(export *ex, const imported *was)
{
	between b = {.list = was->between};
	uint64_t from = 1, count = 0;
	sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
	how.raw = 1;
	how.own_only = 1;
	how.limit = PAGE_RECORDS;
	int rc = 0;
	while (rc == 0 && from != 0 && from < was->seq) {
		_cleanup_(recordsp_free) sheaf_records *page = NULL;
		how.from_seq = from;
		rc = sheaf_session_records(&page, ex->session, &how, ex->err);
		if (rc != 0)
			return rc;
		from = page->next_seq;
		for (size_t i = 0; rc == 0 && i < page->count; i++) {
			if (page->items[i]->seq < was->seq)
				rc = piece_write(ex, was, &b, page->items[i], &count);
		}
	}
	if (rc == 0 && count != was->pieces)
		rc = err_set(ex->err, SHEAF_DAMAGED, "%llu of %llu parts of the source are there",
		             (unsigned long long)count, (unsigned long long)was->pieces);
	return rc;
}

int tail_write(export *ex, const imported *was)
{
	between b = {.list = was->between};
	while (between_next(&b))
		; /* the last one */
	return b.now.ptr != NULL ? between_write(ex, &b) : 0;
}
