/* Drafts become rows on top of a head; and the memory that appends use again. */
#include "core/write.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* More memory than this is not kept between appends. */
#define SCRATCH_KEEP ((size_t)1 << 20)

/* ---- Rows --------------------------------------------------------------- */

void rows_reset(rows *r)
{
	buf_reset(&r->bytes);
	r->count = 0;
}

void rows_free(rows *r)
{
	buf_free(&r->bytes);
	mem_free(r->items);
	r->items = NULL;
	r->count = r->room = 0;
}

sheaf_row *rows_add(rows *r)
{
	if (r->count == r->room &&
	    mem_grow((void **)&r->items, &r->room, r->count + 1, sizeof(*r->items)) != 0)
		return NULL;
	sheaf_row *row = &r->items[r->count++];
	memset(row, 0, sizeof(*row));
	return row;
}

void rows_close(rows *r)
{
	const char *at = r->bytes.ptr;
	for (size_t i = 0; i < r->count; i++) {
		r->items[i].bytes.ptr = at;
		at += r->items[i].bytes.len + 1;
	}
}

static int stamp_parent(const sheaf_head *next, const draft *d, uint64_t batch_first,
                        sheaf_str *parent_id, uint64_t *parent, sheaf_error *err)
{
	*parent_id = (sheaf_str){NULL, 0};
	*parent = 0;
	if (record_kind_is_fact(d->kind)) {
		if (d->kind == SHEAF_KIND_LABEL)
			*parent = head_last_label(next);
		return 0;
	}
	if (d->has_parent) {
		if (d->parent_len == 0)
			return 0;
		*parent_id = str_make(d->parent_id, d->parent_len);
		*parent = d->parent_seq & PARENT_IN_BATCH
		                  ? batch_first + (d->parent_seq & ~PARENT_IN_BATCH)
		                  : d->parent_seq;
		return 0;
	}
	/* The head has moved on with the batch, so this is the entry before, if there is one. */
	head_branch b;
	if (!head_branch_find(next, str_make(d->branch, d->branch_len), &b)) {
		int rc = err_set(err, SHEAF_NOT_FOUND, "there is no branch of that name");
		err_hint(err, "make it with sheaf_session_branch(), or give the entry a parent");
		return rc;
	}
	if (b.leaf_seq != 0) {
		*parent_id = b.leaf;
		*parent = b.leaf_seq;
	}
	return 0;
}

static size_t state_bytes(const sheaf_head *head)
{
	const state_set *state = head_state(head);
	return state != NULL ? state->bytes : 0;
}

/* The limit is for who writes: a log that lost a deletion adds up to more, and is read all the
 * same. Then nothing can be added until there is room. */
static int stamp_head(sheaf_head *next, const draft *d, uint64_t seq, json_doc **doc,
                      sheaf_error *err)
{
	size_t had = state_bytes(next);
	int rc = head_apply(next, d->kind, draft_id(d), str_make(d->branch, d->branch_len),
	                    buf_view(&d->body), draft_delta(d), d->time_us, seq, doc, err);
	if (rc == 0 && state_bytes(next) > SHEAF_STATE_BYTES_MAX && state_bytes(next) > had)
		return err_set(err, SHEAF_LIMIT, "a session's state has more than %zu bytes",
		               SHEAF_STATE_BYTES_MAX);
	return rc;
}

static int stamp_one(rows *r, sheaf_head *next, const draft *d, uint64_t batch_first,
                     uint64_t batch_index, uint64_t batch_count, json_doc **doc, sheaf_error *err)
{
	sheaf_str parent_id;
	uint64_t parent, seq = sheaf_head_revision(next) + 1;
	int rc = stamp_parent(next, d, batch_first, &parent_id, &parent, err);
	if (rc != 0)
		return rc;
	bool inherited = parent_id.ptr != NULL && parent <= head_base(next);
	sheaf_row *row = rows_add(r);
	if (row == NULL)
		return err_nomem(err);
	size_t start = r->bytes.len;
	record_write(&r->bytes, d, parent_id, inherited ? parent : 0, seq, batch_index,
	             batch_count);
	if (r->bytes.status == SHEAF_TOO_LARGE)
		return err_set(err, SHEAF_TOO_LARGE, "a batch holds at most %zu bytes",
		               SHEAF_BATCH_BYTES_MAX);
	rc = buf_status(&r->bytes, err);
	if (rc != 0)
		return rc;
	row->seq = seq;
	row->parent = parent;
	row->kind = d->kind;
	row->id = draft_id(d);
	row->bytes.len = r->bytes.len - start - 1;
	if (row->bytes.len > SHEAF_RECORD_BYTES_MAX)
		return err_set(err, SHEAF_TOO_LARGE, "a record holds at most %zu bytes",
		               SHEAF_RECORD_BYTES_MAX);
	return stamp_head(next, d, seq, doc, err);
}

int rows_stamp(rows *r, sheaf_head *next, draft *const *drafts, size_t count, json_doc **doc,
               sheaf_error *err)
{
	for (size_t at = 0; at < count;) {
		size_t n = count - at;
		if (n > SHEAF_BATCH_RECORDS_MAX)
			n = SHEAF_BATCH_RECORDS_MAX;
		uint64_t first = sheaf_head_revision(next) + 1;
		for (size_t i = 0; i < n; i++) {
			int rc = stamp_one(r, next, drafts[at + i], first, i, n, doc, err);
			if (rc != 0)
				return rc;
		}
		at += n;
	}
	return 0;
}

/* ---- Scratch ------------------------------------------------------------ */

scratch *scratch_take(sheaf_session *s)
{
	(void)pthread_mutex_lock(&s->lock);
	scratch *sc = s->spare;
	s->spare = NULL;
	(void)pthread_mutex_unlock(&s->lock);
	if (sc != NULL)
		return sc;
	sc = mem_zalloc(sizeof(*sc));
	if (sc == NULL)
		return NULL;
	sc->rows.bytes.max = SHEAF_BATCH_BYTES_MAX;
	sc->body.max = SHEAF_RECORD_BYTES_MAX;
	sc->after = sheaf_head_new();
	sc->known = sheaf_head_new();
	if (sc->after == NULL || sc->known == NULL) {
		scratch_free(sc);
		return NULL;
	}
	return sc;
}

void scratch_free(scratch *sc)
{
	if (sc == NULL)
		return;
	rows_free(&sc->rows);
	buf_free(&sc->body);
	json_free(sc->doc);
	sheaf_head_free(sc->after);
	sheaf_head_free(sc->known);
	mem_free(sc->ids);
	mem_free(sc->seqs);
	mem_free(sc);
}

void scratch_give(sheaf_session *s, scratch *sc)
{
	rows_reset(&sc->rows);
	if (sc->rows.bytes.room > SCRATCH_KEEP)
		buf_free(&sc->rows.bytes);
	if (sc->body.room > SCRATCH_KEEP)
		buf_free(&sc->body);
	(void)pthread_mutex_lock(&s->lock);
	scratch *extra = s->spare;
	s->spare = sc;
	(void)pthread_mutex_unlock(&s->lock);
	scratch_free(extra);
}

/* ---- Drafts ------------------------------------------------------------- */

int drafts_add(draft_list *list, const char *type, sheaf_str body,
               const sheaf_entry_options *options, sheaf_error *err)
{
	if (mem_grow((void **)&list->items, &list->room, list->count + 1, sizeof(*list->items)) !=
	    0)
		return err_nomem(err);
	draft *d = mem_zalloc(sizeof(*d));
	if (d == NULL)
		return err_nomem(err);
	int rc = draft_init(d, sheaf_str_of(type), body, true, options, err);
	if (rc != 0) {
		mem_free(d);
		return rc;
	}
	list->items[list->count++] = d;
	return 0;
}

void body_label(buf *out, sheaf_str target_id, sheaf_str label)
{
	buf_lit(out, "\"label\":{\"target_id\":");
	buf_json(out, target_id);
	buf_lit(out, ",\"label\":");
	buf_json(out, label);
	buf_char(out, '}');
}

void body_session_info(buf *out, sheaf_str name, sheaf_str metadata)
{
	buf_lit(out, "\"session_info\":{");
	if (name.ptr != NULL) {
		buf_lit(out, "\"name\":");
		buf_json(out, name);
	}
	if (metadata.ptr != NULL) {
		if (name.ptr != NULL)
			buf_char(out, ',');
		buf_lit(out, "\"metadata\":");
		buf_str(out, metadata);
	}
	buf_char(out, '}');
}

void body_leaf(buf *out, sheaf_str branch, sheaf_str entry_id, uint64_t entry_seq)
{
	buf_lit(out, "\"leaf\":{\"branch\":");
	buf_json(out, branch);
	buf_lit(out, ",\"entry_id\":");
	if (entry_id.len != 0)
		buf_json(out, entry_id);
	else
		buf_lit(out, "null");
	buf_lit(out, ",\"entry_seq\":");
	buf_u64(out, entry_seq);
	buf_char(out, '}');
}

void body_leaf_gone(buf *out, sheaf_str branch)
{
	buf_lit(out, "\"leaf\":{\"branch\":");
	buf_json(out, branch);
	buf_char(out, '}');
}
