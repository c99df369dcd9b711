/* The session an import writes to: found or made, and how far earlier imports came in it. */
#include <stdio.h>

#include "base/crc.h"
#include "base/err.h"
#include "base/str.h"
#include "convert/import_inside.h"
#include "entry/check.h"
#include "entry/members.h"

#define PAGE_RECORDS 32
#define VERSION_BYTES 3 /* "~99" */

static void records_freep(sheaf_records **records)
{
	sheaf_records_free(*records);
}

uint64_t number_read(sheaf_str text)
{
	uint64_t number = 0;
	for (size_t i = 0; i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9'; i++)
		number = number * 10 + (uint64_t)(text.ptr[i] - '0');
	return number;
}

uint64_t members_number(sheaf_str members, const char *name)
{
	return number_read(members_find(members, name));
}

/* Whether the last import was of another file that is still there: agents write several files of one
 * session, and some leave one behind each time they go on. */
static int elsewhere_find(import *im, sheaf_str fact)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	_cleanup_(buf_free) buf path = BUF_INIT(PATH_BYTES_MAX);
	sheaf_error mine;
	int rc = json_parse(&doc, members_find(members_inside(fact), "file"), &mine);
	sheaf_str file = rc == 0 ? json_string(json_root(doc)) : (sheaf_str){NULL, 0};
	if (file.len == 0 || str_eq(file, im->inside->file))
		return rc == SHEAF_NOMEM ? err_nomem(im->err) : 0;
	buf_str(&path, file);
	buf_nul(&path);
	if (path.status == SHEAF_NOMEM)
		return err_nomem(im->err);
	im->inside->elsewhere = path.status == 0 && is_there(path.ptr);
	return 0;
}

/* The last import says how far it came; from which file does not matter: files are moved. Those
 * before it tell a file that is still as it was then. */
static int progress_find(import *im)
{
	import_inside *in = im->inside;
	_cleanup_(records_freep) sheaf_records *facts = NULL;
	sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
	how.backward = 1;
	how.raw = 1;
	how.own_only = 1;
	how.limit = COUNT_OF(in->past);
	how.kinds = SHEAF_KIND_BIT(SHEAF_KIND_IMPORT);
	int rc = sheaf_session_records(&facts, in->session, &how, im->err);
	for (size_t i = 0; rc == 0 && i < facts->count; i++) {
		sheaf_str members = members_inside(members_find(facts->items[i]->body, "import"));
		in->past[i] = (progress){
			.pieces = members_number(members, "pieces"),
			.records = members_number(members, "records"),
			.bytes = members_number(members, "bytes"),
			.mtime_ns = (int64_t)members_number(members, "mtime_ns"),
			.crc = (uint32_t)members_number(members, "crc"),
			.between = (uint32_t)members_number(members, "between_crc"),
			.open_end = str_is(members_find(members, "open_end"), "true"),
		};
	}
	if (rc == 0 && facts->count != 0)
		rc = elsewhere_find(im, members_find(facts->items[0]->body, "import"));
	in->past_count = rc == 0 ? facts->count : 0;
	in->done = in->past[0];
	return rc;
}

bool is_as_imported(const import *im)
{
	const import_inside *in = im->inside;
	for (size_t i = 0; i < in->past_count; i++) {
		if (in->past[i].bytes == in->file_bytes &&
		    in->past[i].mtime_ns == in->file_mtime_ns)
			return true;
	}
	return false;
}

/* Whether it is a beginning of what was imported, as an import saw it. */
static bool is_beginning(const import *im)
{
	const import_inside *in = im->inside;
	for (size_t i = 0; i < in->past_count; i++) {
		if (in->past[i].pieces == in->pieces && in->past[i].crc == in->crc)
			return true;
	}
	return false;
}

/* Whether all pieces are known, but not with this text around them. */
static bool is_other_around(const import *im)
{
	const import_inside *in = im->inside;
	if (im->how->take != NULL || in->pieces != in->done.pieces)
		return false;
	for (size_t i = 0; i < in->past_count; i++) {
		if (in->past[i].pieces == in->pieces && in->past[i].crc == in->crc &&
		    in->past[i].between == in->between)
			return false;
	}
	return true;
}

/* FORMAT.ID. An id that no key can hold gives one that is made from it. Returns whether it is so. */
static bool name_make(char out[SHEAF_ID_ROOM], const import *im, sheaf_str id)
{
	char encoded[SHEAF_KEY_PART_ROOM];
	int len = snprintf(out, SHEAF_ID_ROOM, "%s.%.*s", im->how->is.name, (int)id.len, id.ptr);
	if (id.len != 0 && (size_t)len + VERSION_BYTES <= SHEAF_ID_BYTES_MAX && check_plain(id) &&
	    sheaf_key_encode(encoded, str_make(out, (size_t)len), NULL) == 0 &&
	    strlen(encoded) + VERSION_BYTES * 3 <= SHEAF_KEY_PART_BYTES_MAX)
		return true;
	len = snprintf(out, SHEAF_ID_ROOM, "%s.", im->how->is.name);
	for (size_t i = 0; i < id.len && i < 40; i++) {
		char c = id.ptr[i];
		bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
		             (c >= 'A' && c <= 'Z') || c == '-';
		out[len++] = plain ? c : '_';
	}
	(void)snprintf(out + len, SHEAF_ID_ROOM - (size_t)len, "-%08lx",
	               (unsigned long)crc32c(0, id.ptr, id.len));
	return false;
}

static int key_make(import *im, const import_session *session, sheaf_key *key)
{
	import_inside *in = im->inside;
	bool fits = name_make(in->session_id, im, session->id);
	size_t len = strlen(in->session_id);
	if (in->version > 1)
		(void)snprintf(in->session_id + len, sizeof(in->session_id) - len, "~%u",
		               in->version);
	*key = (sheaf_key){in->options.app, in->options.user, sheaf_str_of(in->session_id)};
	return fits ? 0
	            : import_problem(im, "no session can have its id: it is %s here",
	                             in->session_id);
}

int import_peer(import *im, const char *id, sheaf_session **out)
{
	import_inside *in = im->inside;
	char name[SHEAF_ID_ROOM];
	sheaf_session_options how = SHEAF_SESSION_OPTIONS_INIT;
	how.mode = SHEAF_OPEN_EXISTING;
	(void)name_make(name, im, sheaf_str_of(id));
	sheaf_key key = {in->options.app, in->options.user, sheaf_str_of(name)};
	return sheaf_session_open(out, in->store, &key, &how, im->err);
}

/* A fork goes on where it left its source. */
static int fork_stand(import *im, sheaf_str at)
{
	_cleanup_(records_freep) sheaf_records *there = NULL;
	int rc = at.len == 0 || im->inside->session == NULL
	                 ? SHEAF_NOT_FOUND
	                 : sheaf_session_get(&there, im->inside->session, at, im->err);
	if (rc == 0)
		str_copy_cut(im->last, sizeof(im->last), at);
	return rc == SHEAF_NOT_FOUND ? 0 : rc;
}

static int session_new(import *im, const import_session *session, const sheaf_key *key,
                       const sheaf_session_options *how)
{
	import_inside *in = im->inside;
	if (session->fork == NULL || session->fork_at.len == 0)
		return sheaf_session_open(&in->session, in->store, key, how, im->err);
	return sheaf_session_fork(&in->session, session->fork, session->fork_at, key, how, im->err);
}

int session_begin(import *im, const import_session *session)
{
	import_inside *in = im->inside;
	char parent[SHEAF_ID_ROOM] = "";
	sheaf_key key;
	int rc = key_make(im, session, &key);
	if (rc != 0)
		return rc;
	claim_take(in->report, in->session_id);
	in->claimed = true;
	sheaf_session_options how = SHEAF_SESSION_OPTIONS_INIT;
	how.mode = SHEAF_OPEN_EXISTING;
	rc = sheaf_session_open(&in->session, in->store, &key, &how, im->err);
	in->existed = rc == 0;
	if (rc == 0)
		rc = fork_stand(im, session->fork_at);
	if (rc == 0)
		return progress_find(im);
	if (rc != SHEAF_NOT_FOUND || in->options.dry_run)
		return rc == SHEAF_NOT_FOUND ? 0 : rc;
	how.mode = SHEAF_OPEN_NEW;
	how.name = session->name;
	how.cwd = session->cwd;
	how.kind = session->kind;
	how.created_us = session->created_us;
	how.extra = session->extra;
	if (session->parent.len != 0) {
		(void)name_make(parent, im, session->parent);
		how.parent_session = sheaf_str_of(parent);
	}
	rc = session_new(im, session, &key, &how);
	if (rc == SHEAF_INVALID || rc == SHEAF_LIMIT || rc == SHEAF_TOO_LARGE) {
		rc = import_problem(im, "%s: left out", im->err->message);
		how.name = how.cwd = how.extra = (sheaf_str){NULL, 0};
		if (rc == 0)
			rc = session_new(im, session, &key, &how);
	}
	return rc == 0 ? fork_stand(im, session->fork_at) : rc;
}

static void headp_free(sheaf_head_view **head)
{
	sheaf_head_view_free(*head);
}

/* A fact of the time of the last record: importing does not make a session newer. */
static int fact_append(import *im, const char *type, const buf *body, int32_t durability,
                       sheaf_error *err)
{
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_append_options how = {.size = sizeof(how), .durability = durability};
	int rc = buf_status(body, err);
	o.time_us = im->time_us;
	if (rc == 0)
		rc = sheaf_session_append_json(im->inside->session, sheaf_str_of(type),
		                               buf_view(body), &o, &how, NULL, err);
	return rc;
}

static int rename_if_other(import *im)
{
	import_inside *in = im->inside;
	_cleanup_(headp_free) sheaf_head_view *head = NULL;
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	int rc = sheaf_session_head(&head, in->session, im->err);
	if (rc != 0 || str_eq(head->info->name, buf_view(&in->name)))
		return rc;
	buf_lit(&body, "{\"session_info\":{\"name\":");
	buf_json(&body, buf_view(&in->name));
	buf_lit(&body, "}}");
	return fact_append(im, "session_info", &body, in->durability, im->err);
}

/* Moves the leaf there if it is not there already; SHEAF_NOT_FOUND if there is no such entry. */
static int leaf_move(import *im, const char *to)
{
	_cleanup_(records_freep) sheaf_records *entry = NULL;
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	char leaf[SHEAF_ID_ROOM];
	int rc = sheaf_session_leaf(im->inside->session, (sheaf_str){NULL, 0}, leaf, im->err);
	if (rc != 0 || strcmp(leaf, to) == 0)
		return rc;
	rc = sheaf_session_get(&entry, im->inside->session, sheaf_str_of(to), im->err);
	if (rc != 0)
		return rc;
	buf_lit(&body, "{\"leaf\":{\"branch\":\"main\",\"entry_id\":");
	buf_json(&body, entry->items[0]->id);
	buf_lit(&body, ",\"entry_seq\":");
	buf_u64(&body, entry->items[0]->seq);
	buf_lit(&body, "}}");
	return fact_append(im, "leaf", &body, im->inside->durability, im->err);
}

/* The last entry that came from the source: what the store refused is none. "" without any. */
static int last_find(import *im, char out[SHEAF_ID_ROOM])
{
	sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
	how.backward = 1;
	how.raw = 1;
	how.own_only = 1;
	how.limit = PAGE_RECORDS;
	how.kinds = SHEAF_KINDS_ENTRIES;
	out[0] = '\0';
	for (;;) {
		_cleanup_(records_freep) sheaf_records *page = NULL;
		int rc = sheaf_session_records(&page, im->inside->session, &how, im->err);
		if (rc != 0 || page->count == 0)
			return rc;
		for (size_t i = 0; i < page->count; i++) {
			if (members_find(page->items[i]->body, "origin").ptr == NULL)
				continue;
			str_copy_cut(out, SHEAF_ID_ROOM, page->items[i]->id);
			return 0;
		}
		how.from_seq = page->items[page->count - 1]->seq;
		if (how.from_seq-- <= 1)
			return 0;
	}
}

/* The leaf and the name the source has, where the session has others. */
static int settle(import *im)
{
	import_inside *in = im->inside;
	char last[SHEAF_ID_ROOM];
	const char *want = in->leaf[0] != '\0' ? in->leaf : im->last;
	bool end = in->leaf[0] == '\0' && strcmp(im->last, in->added) == 0;
	int rc = !end && want[0] != '\0' ? leaf_move(im, want) : 0;
	if (rc == SHEAF_NOT_FOUND) {
		rc = import_problem(im, "the leaf it names is not there");
		end = true;
	}
	if (rc == 0 && end)
		rc = last_find(im, last);
	if (rc == 0 && end && last[0] != '\0')
		rc = leaf_move(im, last);
	return rc == 0 && in->named ? rename_if_other(im) : rc;
}

/* Whether the last line that was taken has no line break. */
static bool has_open_end(const import *im)
{
	return im->how->take != NULL && !im->inside->partial && !source_ended(im->source);
}

static int progress_store(import *im, sheaf_str between)
{
	import_inside *in = im->inside;
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	buf_lit(&body, "{\"import\":{\"format\":\"");
	buf_str(&body, sheaf_str_of(im->how->is.name));
	buf_lit(&body, "\",\"file\":");
	buf_json(&body, in->file);
	buf_format(&body, ",\"pieces\":%llu,\"records\":%llu,\"bytes\":%llu,\"mtime_ns\":%lld",
	           (unsigned long long)in->pieces, (unsigned long long)in->emitted,
	           (unsigned long long)in->file_bytes, (long long)in->file_mtime_ns);
	buf_format(&body, ",\"crc\":%lu", (unsigned long)in->crc);
	if (has_open_end(im))
		buf_lit(&body, ",\"open_end\":true");
	if (between.ptr != NULL) {
		buf_lit(&body, ",\"between\":[");
		buf_str(&body, between);
		buf_format(&body, "],\"between_crc\":%lu", (unsigned long)in->between);
	}
	buf_lit(&body, "}}");
	return fact_append(im, "import", &body, SHEAF_DURABILITY_DEFAULT, im->err);
}

static int session_say(import *im, int32_t state)
{
	import_inside *in = im->inside;
	const sheaf_imported *said;
	sheaf_imported one = {
		.key = {in->options.app, in->options.user, sheaf_str_of(in->session_id)},
		.format = im->how->is.name,
		.file = im->file,
		.state = state,
		.partial = in->partial,
		.pieces = in->pieces,
		.kept = in->kept,
		.records = in->records,
		.mended = in->mended,
	};
	int rc = report_session(in->report, &one, &said, im->err);
	if (rc == 0 && in->options.on_session != NULL)
		in->options.on_session(in->options.ctx, said);
	return rc;
}

void session_drop(import *im)
{
	import_inside *in = im->inside;
	sheaf_session_close(in->session);
	in->session = NULL;
	if (in->claimed)
		claim_leave(in->report, in->session_id);
	in->claimed = false;
	in->session_id[0] = '\0';
}

int session_end(import *im)
{
	import_inside *in = im->inside;
	if (in->session_id[0] == '\0')
		return 0;
	int rc = import_flush(im);
	sheaf_str between = {NULL, 0};
	if (rc == 0 && im->how->take == NULL)
		rc = gaps_list(im, &between);
	in->between = crc32c(0, between.ptr, between.len);
	/* A document may have nothing but its text, and that may change alone. */
	bool grown = in->emitted > in->done.records || !in->existed || is_other_around(im);
	if (rc == 0 && in->pieces < in->done.pieces && !is_beginning(im))
		return IMPORT_CHANGED;
	if (rc == 0 && grown && !in->options.dry_run)
		rc = settle(im);
	/* A line break alone is nothing new to anybody, but it is part of the file. */
	bool ended = in->done.open_end && in->pieces == in->done.pieces && !has_open_end(im);
	if (rc == 0 && (grown || ended) && !in->options.dry_run)
		rc = progress_store(im, between);
	if (rc == 0)
		rc = session_say(im, !grown                           ? SHEAF_IMPORT_SAME
		                     : in->version > 1 && !in->beside ? SHEAF_IMPORT_CHANGED
		                     : in->existed                    ? SHEAF_IMPORT_GROWN
		                                                      : SHEAF_IMPORT_NEW);
	session_drop(im);
	return rc;
}
