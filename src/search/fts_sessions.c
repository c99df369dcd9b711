/* Sessions and their texts: into the index and out of it again. */
#include <zstd.h>

#include "base/cleanup.h"
#include "search/fts.h"

#define PACK_LEVEL 1
#define PACK_LEAST 64u /* what is shorter is kept as it is */
/* So many blocks of words are put in order in a moment: about 16 MB. */
#define SCRUB_BLOCKS_MAX 4096

static int use_failed(sheaf_error *err)
{
	return err != NULL && err->code != 0 ? err->code : SHEAF_DAMAGED;
}

/* ---- Sessions ------------------------------------------------------------------ */

void fts_session_row(sqlite3_stmt *st, index_session *out)
{
	*out = (index_session){
		.number = sqlite3_column_int64(st, 0),
		.owner = fts_column(st, 1),
		.app = fts_column(st, 2),
		.user = fts_column(st, 3),
		.session = fts_column(st, 4),
		.source = fts_column(st, 5),
		.name = fts_column(st, 6),
		.preview = fts_column(st, 7),
		.cwd = fts_column(st, 8),
		.stamp = (uint64_t)sqlite3_column_int64(st, 9),
		.expires_us = sqlite3_column_int64(st, 10),
		.created_us = sqlite3_column_int64(st, 11),
		.modified_us = sqlite3_column_int64(st, 12),
		.base = (uint64_t)sqlite3_column_int64(st, 13),
		.hidden = sqlite3_column_int(st, 14),
		.damaged = sqlite3_column_int(st, 15),
		.seq = (uint64_t)sqlite3_column_int64(st, 16),
		.crc = (uint32_t)sqlite3_column_int64(st, 17),
	};
}

static int bind_text(sqlite3_stmt *st, int at, sheaf_str s)
{
	return s.ptr == NULL
	               ? sqlite3_bind_null(st, at)
	               : sqlite3_bind_text64(st, at, s.ptr, s.len, SQLITE_STATIC, SQLITE_UTF8);
}

static void stamp_row(sqlite3_stmt *st, index_session *out)
{
	*out = (index_session){
		.number = sqlite3_column_int64(st, 0),
		.owner = fts_column(st, 1),
		.session = fts_column(st, 2),
		.stamp = (uint64_t)sqlite3_column_int64(st, 3),
		.expires_us = sqlite3_column_int64(st, 4),
	};
}

static int each_session(index_file *ix, bool stamps, sheaf_str app, sheaf_str user,
                        index_session_fn fn, void *ctx, sheaf_error *err)
{
	_cleanup_(fts_done) sqlite3_stmt *st = fts_use(ix, stamps ? ST_STAMPS : ST_SESSIONS, err);
	if (st == NULL)
		return use_failed(err);
	(void)bind_text(st, 1, app);
	(void)bind_text(st, 2, user);
	int rc;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		index_session s;
		if (stamps)
			stamp_row(st, &s);
		else
			s = (index_session){.number = sqlite3_column_int64(st, 0),
			                    .session = fts_column(st, 1),
			                    .cwd = fts_column(st, 2)};
		int stop = fn(ctx, &s);
		if (stop != 0)
			return stop == SHEAF_NOMEM ? err_nomem(err) : stop;
	}
	return rc == SQLITE_DONE ? 0 : fts_fail(ix, rc, err);
}

int fts_stamps(index_file *ix, sheaf_str app, sheaf_str user, index_session_fn fn, void *ctx,
               sheaf_error *err)
{
	return each_session(ix, true, app, user, fn, ctx, err);
}

int fts_sessions(index_file *ix, sheaf_str app, sheaf_str user, index_session_fn fn, void *ctx,
                 sheaf_error *err)
{
	return each_session(ix, false, app, user, fn, ctx, err);
}

int fts_get(index_file *ix, sheaf_str owner, sheaf_str session, index_session *out,
            sheaf_error *err)
{
	_cleanup_(fts_done) sqlite3_stmt *st = fts_use(ix, ST_SESSION_GET, err);
	*out = (index_session){.number = 0};
	if (st == NULL)
		return use_failed(err);
	(void)bind_text(st, 1, owner);
	(void)bind_text(st, 2, session);
	int rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		index_session s;
		fts_session_row(st, &s);
		/* Only what outlives the statement. */
		*out = (index_session){.number = s.number,
		                       .created_us = s.created_us,
		                       .base = s.base,
		                       .hidden = s.hidden,
		                       .damaged = s.damaged,
		                       .seq = s.seq,
		                       .crc = s.crc};
		return 0;
	}
	return rc == SQLITE_DONE ? 0 : fts_fail(ix, rc, err);
}

/* ---- Texts ----------------------------------------------------------------------- */

/* Into ix->packed: a byte that says how, then the text. */
static int pack(index_file *ix, sheaf_str text, sheaf_error *err)
{
	buf *b = &ix->packed;
	buf_reset(b);
	if (text.len >= PACK_LEAST) {
		size_t room = ZSTD_compressBound(text.len);
		buf_char(b, 'z');
		if (buf_reserve(b, room) != 0)
			return buf_status(b, err);
		size_t n = ZSTD_compress(b->ptr + 1, room, text.ptr, text.len, PACK_LEVEL);
		if (!ZSTD_isError(n) && n < text.len) {
			b->len = n + 1;
			return 0;
		}
		buf_reset(b);
	}
	buf_char(b, '=');
	buf_str(b, text);
	return buf_status(b, err);
}

static int unpack(index_file *ix, sheaf_str packed, sheaf_error *err)
{
	buf *b = &ix->plain;
	buf_reset(b);
	if (packed.len != 0 && packed.ptr[0] == '=') {
		buf_add(b, packed.ptr + 1, packed.len - 1);
		buf_nul(b);
		return buf_status(b, err);
	}
	unsigned long long size = packed.len > 1 && packed.ptr[0] == 'z'
	                                  ? ZSTD_getFrameContentSize(packed.ptr + 1, packed.len - 1)
	                                  : ZSTD_CONTENTSIZE_ERROR;
	if (size > INDEX_TEXT_BYTES_MAX * 2)
		return err_set(err, SHEAF_DAMAGED, "the search index is damaged: a packed text");
	if (buf_reserve(b, (size_t)size + 1) != 0)
		return buf_status(b, err);
	size_t n = ZSTD_decompress(b->ptr, (size_t)size, packed.ptr + 1, packed.len - 1);
	if (ZSTD_isError(n) || n != size)
		return err_set(err, SHEAF_DAMAGED, "the search index is damaged: a packed text");
	b->len = n;
	buf_nul(b);
	return buf_status(b, err);
}

int fts_body(index_file *ix, int64_t id, buf *entry, sheaf_error *err)
{
	_cleanup_(fts_done) sqlite3_stmt *st = fts_use(ix, ST_BODY_GET, err);
	if (st == NULL)
		return use_failed(err);
	(void)sqlite3_bind_int64(st, 1, id);
	int rc = sqlite3_step(st);
	if (rc == SQLITE_DONE)
		return err_set(err, SHEAF_DAMAGED, "the search index is damaged: a text is gone");
	if (rc != SQLITE_ROW)
		return fts_fail(ix, rc, err);
	if (entry != NULL) {
		buf_reset(entry);
		buf_str(entry, fts_column(st, 0));
		buf_nul(entry);
	}
	return unpack(ix, fts_column(st, 1), err);
}

/* Where the next text stands in the order of numbers. */
static int next_order(index_file *ix, int64_t *out, sheaf_error *err)
{
	if (ix->order == 0) {
		_cleanup_(fts_done) sqlite3_stmt *st = fts_use(ix, ST_DOC_LAST, err);
		if (st == NULL)
			return use_failed(err);
		int rc = sqlite3_step(st);
		if (rc != SQLITE_ROW)
			return fts_fail(ix, rc, err);
		ix->order = (sqlite3_column_int64(st, 0) >> ID_LOW_BITS) + 1;
	}
	*out = ix->order++;
	return 0;
}

static int add_words(index_file *ix, int which, int64_t id, sheaf_str text, sheaf_error *err)
{
	sqlite3_stmt *st = fts_use(ix, which, err);
	if (st == NULL)
		return use_failed(err);
	(void)sqlite3_bind_int64(st, 1, id);
	(void)sqlite3_bind_text64(st, 2, text.ptr, text.len, SQLITE_STATIC, SQLITE_UTF8);
	return fts_run(ix, st, err);
}

int fts_add(index_file *ix, const index_doc *doc, sheaf_error *err)
{
	int64_t order = 0;
	int rc = next_order(ix, &order, err);
	if (rc == 0)
		rc = pack(ix, doc->text, err);
	sqlite3_stmt *row = rc == 0 ? fts_use(ix, ST_DOC_ADD, err) : NULL;
	sqlite3_stmt *body = row != NULL ? fts_use(ix, ST_BODY_ADD, err) : NULL;
	if (rc != 0 || body == NULL)
		return rc != 0 ? rc : use_failed(err);
	int64_t id = id_make(order, length_of(doc->text.len), doc->role, day_of(doc->time_us));
	(void)sqlite3_bind_int64(row, 1, id);
	(void)sqlite3_bind_int64(row, 2, doc->session);
	(void)sqlite3_bind_int64(row, 3, (int64_t)doc->seq);
	(void)sqlite3_bind_int64(row, 4, doc->time_us);
	(void)fts_bind(row, 5, doc->agent.len != 0 ? doc->agent : (sheaf_str){NULL, 0});
	(void)fts_bind(row, 6, doc->tools.len != 0 ? doc->tools : (sheaf_str){NULL, 0});
	rc = fts_run(ix, row, err);
	if (rc != 0)
		return rc;
	(void)sqlite3_bind_int64(body, 1, id);
	(void)fts_bind(body, 2, doc->entry);
	(void)fts_bind(body, 3, buf_view(&ix->packed));
	rc = fts_run(ix, body, err);
	return rc == 0 ? add_words(ix, ST_WORDS_ADD, id, doc->text, err) : rc;
}

static int run_number(index_file *ix, int which, int64_t number, sheaf_error *err)
{
	sqlite3_stmt *st = fts_use(ix, which, err);
	if (st == NULL)
		return use_failed(err);
	(void)sqlite3_bind_int64(st, 1, number);
	return fts_run(ix, st, err);
}

/* Words can only be taken out of the index by saying which they were. */
static int drop_doc(index_file *ix, int64_t id, sheaf_error *err)
{
	int rc = fts_body(ix, id, NULL, err);
	if (rc == 0)
		rc = add_words(ix, ST_WORDS_DROP, id, buf_view(&ix->plain), err);
	if (rc == 0)
		rc = run_number(ix, ST_BODY_DROP, id, err);
	return rc == 0 ? run_number(ix, ST_DOC_DROP, id, err) : rc;
}

static int first_ids(index_file *ix, int which, int64_t number, int64_t ids[256], size_t *count,
                     sheaf_error *err)
{
	_cleanup_(fts_done) sqlite3_stmt *st = fts_use(ix, which, err);
	*count = 0;
	if (st == NULL)
		return use_failed(err);
	(void)sqlite3_bind_int64(st, 1, number);
	int rc;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW && *count < 256)
		ids[(*count)++] = sqlite3_column_int64(st, 0);
	return rc == SQLITE_DONE ? 0 : fts_fail(ix, rc, err);
}

int fts_empty(index_file *ix, int64_t number, bool whole, sheaf_error *err)
{
	int64_t ids[256];
	size_t count;
	int rc;
	do {
		rc = first_ids(ix, ST_DOCS_OF, number, ids, &count, err);
		for (size_t i = 0; rc == 0 && i < count; i++)
			rc = drop_doc(ix, ids[i], err);
	} while (rc == 0 && count != 0);
	if (rc == 0)
		rc = run_number(ix, ST_CALLS_DROP, number, err);
	if (rc == 0 && whole)
		rc = run_number(ix, ST_SESSION_DROP, number, err);
	return rc;
}

/* ---- Names ------------------------------------------------------------------------- */

/* A session's name is a text too, numbered 0, always the present one. */
static int put_title(index_file *ix, const index_session *s, sheaf_error *err)
{
	int64_t ids[256];
	size_t count;
	int rc = first_ids(ix, ST_TITLE_OF, s->number, ids, &count, err);
	if (rc == 0 && count != 0) {
		rc = fts_body(ix, ids[0], NULL, err);
		if (rc == 0 && str_eq(buf_view(&ix->plain), s->name))
			return 0;
		if (rc == 0)
			rc = drop_doc(ix, ids[0], err);
	}
	if (rc != 0 || s->name.len == 0 || s->hidden)
		return rc;
	index_doc doc = {.session = s->number,
	                 .time_us = s->created_us,
	                 .role = SHEAF_HIT_TITLE,
	                 .text = s->name};
	return fts_add(ix, &doc, err);
}

int fts_put(index_file *ix, index_session *s, sheaf_error *err)
{
	sqlite3_stmt *st = fts_use(ix, ST_SESSION_PUT, err);
	if (st == NULL)
		return use_failed(err);
	if (s->number != 0)
		(void)sqlite3_bind_int64(st, 1, s->number);
	(void)bind_text(st, 2, s->owner);
	(void)bind_text(st, 3, s->app);
	(void)bind_text(st, 4, s->user);
	(void)bind_text(st, 5, s->session);
	(void)bind_text(st, 6, s->source);
	(void)fts_bind(st, 7, s->name);
	(void)fts_bind(st, 8, s->preview);
	(void)fts_bind(st, 9, s->cwd);
	const int64_t numbers[] = {(int64_t)s->stamp, s->expires_us,    s->created_us,
	                           s->modified_us,    (int64_t)s->base, s->hidden,
	                           s->damaged,        (int64_t)s->seq,  (int64_t)s->crc};
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		(void)sqlite3_bind_int64(st, (int)i + 10, numbers[i]);
	int rc = fts_run(ix, st, err);
	if (rc == 0 && s->number == 0)
		s->number = sqlite3_last_insert_rowid(ix->db);
	return rc == 0 ? put_title(ix, s, err) : rc;
}

/* ---- Calls --------------------------------------------------------------------------- */

int fts_call_put(index_file *ix, int64_t number, sheaf_str call, sheaf_str tool, sheaf_error *err)
{
	sqlite3_stmt *st = fts_use(ix, ST_CALL_PUT, err);
	if (st == NULL)
		return use_failed(err);
	(void)sqlite3_bind_int64(st, 1, number);
	(void)fts_bind(st, 2, call);
	(void)fts_bind(st, 3, tool);
	return fts_run(ix, st, err);
}

int fts_call_get(index_file *ix, int64_t number, sheaf_str call, buf *tool, bool *found,
                 sheaf_error *err)
{
	_cleanup_(fts_done) sqlite3_stmt *st = fts_use(ix, ST_CALL_GET, err);
	*found = false;
	if (st == NULL)
		return use_failed(err);
	(void)sqlite3_bind_int64(st, 1, number);
	(void)fts_bind(st, 2, call);
	int rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		buf_str(tool, fts_column(st, 0));
		*found = true;
		return buf_status(tool, err);
	}
	return rc == SQLITE_DONE ? 0 : fts_fail(ix, rc, err);
}

/* ---- Leaving nothing behind ----------------------------------------------------------- */

int fts_scrub(index_file *ix, bool *clean, sheaf_error *err)
{
	sqlite3_stmt *st = fts_use(ix, ST_WORDS_SIZE, err);
	*clean = false;
	if (st == NULL)
		return use_failed(err);
	(void)sqlite3_bind_int64(st, 1, SCRUB_BLOCKS_MAX + 1);
	int rc = sqlite3_step(st);
	int64_t blocks = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
	int out = rc == SQLITE_ROW ? 0 : fts_fail(ix, rc, err);
	fts_done(&st);
	if (out != 0 || blocks > SCRUB_BLOCKS_MAX)
		return out;
	/* Words that were taken out are marked as such until the lists are merged. */
	st = fts_use(ix, ST_WORDS_OPTIMIZE, err);
	if (st == NULL)
		return use_failed(err);
	out = fts_run(ix, st, err);
	*clean = out == 0;
	return out;
}
