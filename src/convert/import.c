/*
 * Importing one file: hands its pieces to the converter and appends what that
 * makes of them, after what an earlier import appended.
 *
 * The converter gives the same records every time. A fact `import` says how many
 * pieces and records were taken, and the crc of those pieces; the next import
 * reads them again without appending, compares, and goes on behind. If the crc
 * differs the file is another than it was: it becomes a session of its own,
 * FORMAT.ID~2, and what was imported stays.
 */
#include "convert/import_inside.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/crc.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "entry/batch.h"
#include "entry/members.h"
#include "entry/message.h"
#include "entry/record.h"

#define RECORD_BESIDE ((size_t)16384) /* what a record has beside its body and the piece */
/* Several files are imported at a time, and a batch is in memory three times. */
#define BATCH_BYTES ((size_t)768 << 10)
/* A larger piece is kept in records of its own, in chunks, not with what it gave. */
#define CHUNK_BYTES ((size_t)1 << 20)

/* ---- Problems ------------------------------------------------------------ */

int import_problem(import *im, const char *format, ...)
{
	char text[256];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return report_problem(im->inside->report, im->file, im->line, sheaf_str_of(text), im->err);
}

static int record_add(import *im, const import_record *r, bool with_raw);

/* ---- Pieces -------------------------------------------------------------- */

static int flush_if_full(import *im)
{
	const sheaf_batch *batch = im->inside->batch;
	return batch == NULL || batch->bytes < BATCH_BYTES ? 0 : import_flush(im);
}

/* How deep a piece may be nested: the record and `origin` are around it. */
#define RAW_DEPTH_MAX (SHEAF_DEPTH_MAX - 2u)

/* Whether the piece can stand in a record as the JSON it is: 0; SHEAF_INVALID, SHEAF_NOMEM. */
static int raw_check(const import_inside *in, sheaf_str raw)
{
	if (members_trim(raw).len != raw.len) /* blanks around a value are not found again */
		return SHEAF_INVALID;
	if (in->piece_parsed && json_doc_passes(in->doc, raw, RAW_DEPTH_MAX))
		return 0;
	int rc = json_check(raw, JSON_NONE, NULL);
	return rc == 0 && raw.len > RAW_DEPTH_MAX && members_depth(raw) > RAW_DEPTH_MAX
	               ? SHEAF_INVALID
	               : rc;
}

/* The piece as it is: JSON where it can be embedded, else text, else its bytes in hexadecimal. */
static void raw_write(const import_inside *in, buf *out, sheaf_str raw)
{
	int rc = raw_check(in, raw);
	if (rc == SHEAF_NOMEM) {
		out->status = rc;
	} else if (rc == 0) {
		buf_lit(out, ",\"raw\":");
		buf_str(out, raw);
	} else if (utf8_valid(raw)) {
		buf_lit(out, ",\"raw_text\":");
		buf_json(out, raw);
	} else {
		buf_lit(out, ",\"raw_hex\":\"");
		hex_write(out, raw);
		buf_char(out, '"');
	}
}

/* The members of `origin` and of a `source` fact. */
static void origin_write(const import *im, buf *out, bool with_raw)
{
	const import_inside *in = im->inside;
	buf_str(out, buf_view(&in->origin));
	buf_u64(out, im->line);
	if (in->piece_cut)
		buf_lit(out, ",\"cut\":true");
	if (in->piece_chunk)
		buf_lit(out, ",\"more\":true");
	if (with_raw)
		raw_write(in, out, in->piece);
	buf_char(out, '}');
}

int piece_begin(import *im, sheaf_str piece, bool cut)
{
	im->line = ++im->number;
	im->inside->piece = piece;
	im->inside->piece_cut = cut;
	im->inside->piece_records = 0;
	im->inside->piece_parsed = false;
	if (im->how->take == NULL)
		gaps_end_one(&im->inside->gaps);
	return 0;
}

static bool is_large(const import *im)
{
	return im->inside->piece.len > CHUNK_BYTES;
}

/* A large piece in several records; all but the last one of them say that there is more. */
static int chunks_add(import *im)
{
	import_inside *in = im->inside;
	sheaf_str left = in->piece, whole = in->piece;
	int rc = 0;
	in->piece_parsed = false; /* its chunks are not */
	for (size_t n = 0; rc == 0 && left.len != 0; n++) {
		_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
		char id[SHEAF_ID_ROOM];
		in->piece = utf8_cut(left, CHUNK_BYTES);
		if (in->piece.len == 0)
			in->piece = str_make(left.ptr,
			                     left.len < CHUNK_BYTES ? left.len : CHUNK_BYTES);
		left = str_make(left.ptr + in->piece.len, left.len - in->piece.len);
		in->piece_chunk = left.len != 0;
		int len = snprintf(id, sizeof(id), "source-%llu%s~%zu",
		                   (unsigned long long)im->number, im->id_tail, n);
		buf_lit(&body, "\"source\":");
		origin_write(im, &body, true);
		rc = buf_status(&body, im->err);
		if (rc == 0)
			rc = record_add(im,
			                &(import_record){.type = "source",
			                                 .body = buf_view(&body),
			                                 .id = str_make(id, (size_t)len),
			                                 .fact = true,
			                                 .built = true},
			                false);
		if (rc == 0)
			rc = flush_if_full(im);
	}
	in->piece = whole;
	in->piece_chunk = false;
	return rc;
}

/* The piece itself as a record. */
static int source_add(import *im)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	im->inside->kept++;
	if (is_large(im))
		return chunks_add(im);
	(void)buf_reserve(&body, im->inside->piece.len + im->file.len + 128);
	buf_lit(&body, "\"source\":");
	origin_write(im, &body, true);
	int rc = buf_status(&body, im->err);
	if (rc == 0)
		rc = record_add(im,
		                &(import_record){.type = "source",
		                                 .body = buf_view(&body),
		                                 .fact = true,
		                                 .built = true},
		                false);
	return rc;
}

/* Whatever the piece was: it is in a record now, and counted. */
int piece_end(import *im)
{
	import_inside *in = im->inside;
	if (in->session_id[0] == '\0')
		return import_problem(im, "there is no session this belongs to");
	int rc = in->piece_records == 0 ? source_add(im) : 0;
	if (rc == 0)
		rc = flush_if_full(im);
	if (rc != 0)
		return rc;
	if (is_large(im)) { /* what was needed for it is not needed for the next one */
		json_free(in->doc);
		in->doc = NULL;
		in->piece_parsed = false;
		buf_free(&in->mended_text);
	}
	in->crc = crc32c(in->crc, in->piece.ptr, in->piece.len);
	if (in->piece_cut)
		return 0;
	in->pieces++;
	in->crc = crc32c(in->crc, "\n", 1);
	if (in->pieces == in->done.pieces && in->crc != in->done.crc)
		return IMPORT_CHANGED;
	return 0;
}

int import_parse(import *im, sheaf_str piece, value *root)
{
	import_inside *in = im->inside;
	sheaf_error mine;
	int rc = json_parse(&in->doc, piece, &mine);
	*root = (value){NULL, piece};
	in->piece_parsed = rc == 0 && piece.ptr == in->piece.ptr && piece.len == in->piece.len;
	if (rc == SHEAF_FORMAT) {
		size_t mended = 0;
		buf_reset(&in->mended_text);
		json_mend(&in->mended_text, piece, &mended);
		rc = buf_status(&in->mended_text, im->err);
		if (rc == 0)
			rc = json_parse(&in->doc, buf_view(&in->mended_text), &mine);
		in->mended += rc == 0 ? mended : 0;
		root->text = buf_view(&in->mended_text);
	}
	if (rc == SHEAF_FORMAT)
		return import_problem(im, "%s", mine.message);
	if (rc != 0)
		return err_nomem(im->err);
	root->v = json_root(in->doc);
	return 0;
}

/* ---- Appending ----------------------------------------------------------- */

static bool is_refusal(int rc)
{
	return rc == SHEAF_CONFLICT || rc == SHEAF_INVALID || rc == SHEAF_LIMIT ||
	       rc == SHEAF_TOO_LARGE || rc == SHEAF_NOT_FOUND;
}

static void recordsp_free(sheaf_records **records)
{
	sheaf_records_free(*records);
}

/* Whether the session has this entry of its own: it was exported, and comes back. */
static bool is_own(import *im, sheaf_str id)
{
	_cleanup_(recordsp_free) sheaf_records *there = NULL;
	sheaf_error mine;
	return sheaf_session_get(&there, im->inside->session, id, &mine) == 0 &&
	       members_find(there->items[0]->body, "origin").ptr == NULL;
}

/* What is refused is kept as a source: origin and source have the same members. {NULL,0}: another
 * record has the piece. `why` NULL: nothing is wrong with it. */
static int keep_refused(import *im, const waiting *w, int64_t time_us, sheaf_str origin,
                        const char *why)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	char id[SHEAF_ID_ROOM];
	uint64_t line = im->line;
	im->line = w->line;
	int rc = why != NULL ? import_problem(im, "kept as it is: %s", why) : 0;
	im->line = line;
	im->inside->kept++;
	if (rc != 0 || origin.ptr == NULL || !w->first)
		return rc;
	buf_lit(&body, "{\"source\":");
	buf_str(&body, origin);
	buf_char(&body, '}');
	rc = buf_status(&body, im->err);
	int len = snprintf(id, sizeof(id), "source-%llu%s~", (unsigned long long)w->number,
	                   im->id_tail);
	sheaf_entry_options o = {.size = sizeof(o), .time_us = time_us};
	sheaf_append_options how = {.size = sizeof(how), .durability = im->inside->durability};
	o.id = str_make(id, (size_t)len);
	if (rc == 0)
		rc = sheaf_session_append_json(im->inside->session, SHEAF_STR("source"),
		                               buf_view(&body), &o, &how, NULL, im->err);
	return rc;
}

/* Whether it is stored: in another batch, by an import that did not come to its end. */
static bool is_stored(import *im, const draft *d)
{
	_cleanup_(recordsp_free) sheaf_records *there = NULL;
	return sheaf_session_get(&there, im->inside->session, draft_id(d), NULL) == 0 &&
	       str_eq(there->items[0]->type, d->type) &&
	       str_eq(there->items[0]->body, buf_view(&d->body));
}

static int append_alone(import *im, const draft *d, sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	sheaf_entry_options o = {.size = sizeof(o), .id = draft_id(d), .time_us = d->time_us};
	o.has_parent = d->has_parent;
	o.parent_id = d->parent_name_len != 0 ? str_make(d->parent_name, d->parent_name_len)
	                                      : str_make(d->parent_id, d->parent_len);
	buf_char(&body, '{');
	buf_str(&body, buf_view(&d->body));
	buf_char(&body, '}');
	int rc = buf_status(&body, err);
	sheaf_append_options how = {.size = sizeof(how), .durability = im->inside->durability};
	return rc != 0 ? rc
	               : sheaf_session_append_json(im->inside->session, d->type, buf_view(&body),
	                                           &o, &how, NULL, err);
}

/* One by one, when they do not go together. */
static int flush_singly(import *im)
{
	import_inside *in = im->inside;
	for (size_t i = 0; i < in->batch->drafts.count; i++) {
		const draft *d = in->batch->drafts.items[i];
		sheaf_error mine;
		int rc = append_alone(im, d, &mine);
		if (rc == SHEAF_CONFLICT && is_stored(im, d))
			rc = 0;
		bool own = rc == SHEAF_CONFLICT && is_own(im, draft_id(d));
		if (is_refusal(rc))
			rc = keep_refused(im, &in->waiting[i], d->time_us,
			                  members_find(buf_view(&d->body), "origin"),
			                  own ? NULL : mine.message);
		else if (rc != 0)
			*im->err = mine;
		if (rc != 0)
			return rc;
	}
	return 0;
}

int import_flush(import *im)
{
	import_inside *in = im->inside;
	sheaf_error mine;
	if (in->batch == NULL)
		return 0;
	sheaf_append_options how = {.size = sizeof(how), .durability = in->durability};
	int rc = sheaf_session_append_batch(in->session, in->batch, &how, NULL, &mine);
	if (is_refusal(rc))
		rc = flush_singly(im);
	else if (rc != 0)
		*im->err = mine;
	if (rc == 0)
		in->records += in->batch->drafts.count;
	sheaf_batch_free(in->batch);
	in->batch = NULL;
	return rc;
}

static void draft_drop(draft **d)
{
	if (*d == NULL)
		return;
	draft_free(*d);
	mem_free(*d);
}

/* What is written where a record came from; `with_raw` if it carries the piece. */
static void origin_add(const import *im, const import_record *r, buf *body, bool with_raw)
{
	size_t piece = with_raw ? im->inside->piece.len : 0;
	/* One growth in most cases: the member's other parts are short. */
	if (piece + im->file.len + 128 < body->max - body->len)
		(void)buf_reserve(body, piece + im->file.len + 128);
	buf_lit(body, ",\"origin\":");
	origin_write(im, body, with_raw);
	if (r->continues)
		buf_lit(body, ",\"continues\":true");
	if (r->preamble)
		buf_lit(body, ",\"preamble\":true");
}

/* The record as a draft. What it has of a message and of the piece was checked when it was made. */
static int draft_make(import *im, draft *d, const import_record *r, sheaf_str id, sheaf_str parent,
                      bool with_raw, sheaf_error *err)
{
	sheaf_entry_options o = {.size = sizeof(o), .id = id, .time_us = r->time_us};
	o.has_parent = !r->fact;
	o.parent_id = parent;
	o.turn = r->turn;
	o.agent = r->agent;
	sheaf_str type = sheaf_str_of(r->type);
	bool is_source = str_is(type, "source");
	int rc = draft_init(d, type, r->body, r->built, &o, err);
	if (rc != 0)
		return rc;
	if (!is_source)
		origin_add(im, r, &d->body, with_raw);
	return buf_status(&d->body, err);
}

static int refuse_now(import *im, const import_record *r, bool first, const char *why)
{
	_cleanup_(buf_free) buf origin = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	waiting w = {.first = first, .number = im->number, .line = im->line};
	int rc = import_flush(im);
	if (first)
		origin_write(im, &origin, true);
	if (rc == 0)
		rc = buf_status(&origin, im->err);
	im->inside->records += rc == 0;
	return rc == 0 ? keep_refused(im, &w, r->time_us, buf_view(&origin), why) : rc;
}

static int wait_add(import *im, const import_record *r, sheaf_str id, sheaf_str parent, bool first)
{
	import_inside *in = im->inside;
	_cleanup_(draft_drop) draft *d = mem_zalloc(sizeof(*d));
	sheaf_error mine;
	if (in->batch == NULL)
		in->batch = sheaf_batch_new();
	if (d == NULL || in->batch == NULL)
		return err_nomem(im->err);
	int rc = draft_make(im, d, r, id, parent, first, &mine);
	if (rc == 0)
		rc = batch_take(in->batch, d, &mine);
	if (is_refusal(rc))
		return refuse_now(im, r, first, mine.message);
	if (rc != 0) {
		*im->err = mine;
		return rc;
	}
	d = NULL;
	in->waiting[in->batch->drafts.count - 1] = (waiting){
		.first = first, .number = im->number, .line = im->line};
	return in->batch->drafts.count < BATCH_RECORDS ? 0 : import_flush(im);
}

sheaf_str id_number(char room[SHEAF_ID_ROOM], const char *word, uint64_t number, const char *tail,
                    uint64_t part)
{
	char digits[20];
	size_t at = strlen(word), tail_len = strlen(tail);
	memcpy(room, word, at);
	for (bool last = part == 0;; last = true, number = part, tail_len = 0) {
		size_t n = 0;
		do
			digits[n++] = (char)('0' + number % 10);
		while ((number /= 10) != 0);
		while (n != 0)
			room[at++] = digits[--n];
		memcpy(room + at, tail, tail_len);
		at += tail_len;
		if (last)
			return str_make(room, at);
		room[at++] = '.';
	}
}

/* Sources have names of their own: ids that were made here come back as those of entries, from
 * what was written for another agent. */
static sheaf_str id_make(const import *im, const import_record *r, char room[SHEAF_ID_ROOM])
{
	if (r->id.len != 0 && r->id.len <= SHEAF_ID_BYTES_MAX)
		return r->id;
	const char *what = str_is(sheaf_str_of(r->type), "source") ? "source-" : "line-";
	return id_number(room, what, im->number, im->id_tail, im->inside->piece_records);
}

/* Adds a record; `with_raw` if it is the one that carries the piece. */
static int record_add(import *im, const import_record *r, bool with_raw)
{
	import_inside *in = im->inside;
	char room[SHEAF_ID_ROOM], parent_room[SHEAF_ID_ROOM];
	sheaf_str id = id_make(im, r, room);
	sheaf_str parent = r->has_parent ? r->parent : sheaf_str_of(im->last);
	if (parent.ptr == im->last) { /* about to be overwritten */
		memcpy(parent_room, im->last, sizeof(parent_room));
		parent.ptr = parent_room;
	}
	in->piece_records++;
	if (!r->fact) {
		memcpy(im->last, id.ptr, id.len);
		im->last[id.len] = '\0';
		memcpy(in->added, im->last, sizeof(in->added));
	}
	import_record whole = *r;
	if (whole.time_us == 0 || !draft_may_be_time(whole.time_us))
		whole.time_us = im->time_us;
	im->time_us = whole.time_us;
	in->emitted++;
	if (in->emitted <= in->done.records)
		return 0;
	if (in->options.dry_run) {
		in->records++;
		return 0;
	}

	return wait_add(im, &whole, id, r->fact ? (sheaf_str){NULL, 0} : parent, with_raw);
}

int import_add(import *im, const import_record *r)
{
	import_inside *in = im->inside;
	bool large = is_large(im), first = in->piece_records == 0;
	size_t beside = RECORD_BESIDE + (large ? 0 : in->piece.len);
	if (in->session_id[0] == '\0')
		return import_problem(im, "there is no session this belongs to");
	/* Refused by the store, it would take all that hangs on it along. */
	if (r->body.len + beside > SHEAF_BODY_BYTES_MAX)
		return import_problem(im, "larger than a record may be: kept as it is");
	int rc = first && large ? chunks_add(im) : 0;
	return rc == 0 ? record_add(im, r, first && !large) : rc;
}

int import_json(import *im, sheaf_message *message, sheaf_str *json)
{
	sheaf_error mine;
	int rc = message_finish(message, json, &mine);
	im->inside->mended += sheaf_message_mended(message);
	if (rc == 0)
		return 0;
	*json = (sheaf_str){NULL, 0};
	return rc == SHEAF_NOMEM ? err_nomem(im->err) : import_problem(im, "%s", mine.message);
}

int import_message(import *im, sheaf_message *message, const import_record *r)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	import_record whole = *r;
	sheaf_str json;
	int rc = import_json(im, message, &json);
	if (rc != 0 || json.ptr == NULL)
		return rc;
	(void)buf_reserve(&body, json.len + sizeof("\"message\":"));
	buf_lit(&body, "\"message\":");
	buf_str(&body, json);
	rc = buf_status(&body, im->err);
	whole.type = "message";
	whole.built = true;
	whole.body = buf_view(&body);
	return rc == 0 ? import_add(im, &whole) : rc;
}

int import_leaf(import *im, sheaf_str id)
{
	if (id.len >= SHEAF_ID_ROOM)
		return 0;
	memcpy(im->inside->leaf, id.ptr, id.len);
	im->inside->leaf[id.len] = '\0';
	return 0;
}

int import_name(import *im, sheaf_str name)
{
	buf_reset(&im->inside->name);
	buf_str(&im->inside->name, utf8_cut(name, SHEAF_NAME_BYTES_MAX));
	im->inside->named = true;
	return buf_status(&im->inside->name, im->err);
}
