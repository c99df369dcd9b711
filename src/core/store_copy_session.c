/*
 * Copying one session: what is there is compared, what is missing appended, what was appended read
 * back. Portion by portion, so that neither a long session nor an end in the middle matters.
 */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/store_copy.h"

/* Small enough to be kept a few times over, large enough that round trips do not count. */
#define PORTION_BYTES ((size_t)8 << 20)

typedef struct session_copy {
	store_copy *c;
	key_box key;
	sheaf_session *source; /* a handle without an open: hidden ones are copied, too */
	sheaf_head *head;      /* of the source: what is copied */
	sheaf_head *there;     /* of the destination; NULL: there is none */
	arena *a;
	header hd;
	sheaf_str line; /* of the header, as the destination gets it */
	transfer t;
	uint64_t have;     /* the last record that was there */
	uint64_t appended; /* records */
	sheaf_str fork_of; /* the session that must stay while this one is made */
	int64_t now_us;    /* by the source's clock */
	uint64_t differs;  /* the first record that is not the same */
} session_copy;

static void session_copy_end(session_copy *s)
{
	transfer_end(&s->t);
	sheaf_session_close(s->source);
	sheaf_head_free(s->head);
	sheaf_head_free(s->there);
	arena_free(s->a);
}

/* ---- Headers -------------------------------------------------------------- */

/* A header's line as it was before the session was deleted. */
static int read_header(session_copy *s, sheaf_store *store, header *hd, sheaf_str *line,
                       sheaf_error *err)
{
	int ok = 1, rc = header_load(hd, line, store, &s->key, s->a, err);
	if (rc != 0 || !hd->hidden)
		return rc;
	_cleanup_(buf_free) buf out = BUF_INIT(2 * SHEAF_RECORD_BYTES_MAX);
	hd->hidden = false;
	header_write(&out, hd);
	rc = buf_status(&out, err);
	if (rc == 0)
		*line = arena_dup(s->a, str_make(out.ptr, out.len - 1), &ok);
	return ok ? rc : err_nomem(err);
}

/* ---- Comparing ------------------------------------------------------------- */

typedef struct comparing {
	const sheaf_row *rows;
	size_t count;
	size_t at;
	bool differs;
} comparing;

static int compare_row(void *ctx, const sheaf_row *row)
{
	comparing *c = ctx;
	const sheaf_row *should = &c->rows[c->at];
	c->differs = row->damaged || row->seq != should->seq || row->kind != should->kind ||
	             !str_eq(row->id, should->id) || !str_eq(row->bytes, should->bytes);
	if (c->differs)
		return 1;
	return ++c->at == c->count;
}

/* Whether the destination holds these rows; s->differs is the first that it does not. */
static int compare_rows(session_copy *s, size_t first, size_t count, sheaf_error *err)
{
	if (count == 0)
		return 0;
	comparing c = {s->t.rows + first, count, 0, false};
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = c.rows[0].seq,
		.limit = count,
		.kinds = SHEAF_KINDS_ALL,
	};
	int rc = store_scan(s->c->to, &s->key.store, &scan, compare_row, &c, err);
	if (rc == 0 && c.at < count)
		s->differs = c.rows[c.at].seq;
	if (rc == 0)
		s->c->totals.records_verified += c.at;
	return rc;
}

static int conflict(session_copy *s, uint64_t seq, const char *why, sheaf_error *err)
{
	s->differs = seq;
	return err_set(err, SHEAF_CONFLICT, "%s", why);
}

/* ---- Appending ------------------------------------------------------------- */

/* The rows were folded on top of what was there, and fit nothing else. */
static int stamp(void *ctx, const sheaf_head *head, sheaf_head *next, const sheaf_row **out,
                 size_t *count, sheaf_error *err)
{
	session_copy *s = ctx;
	transfer *t = &s->t;
	bool create = t->rows[0].kind == SHEAF_KIND_SESSION;
	if (create && head != NULL)
		return err_set(err, SHEAF_EXISTS, "there is such a session already");
	/* Rows that were there are not written again. */
	size_t known = 0;
	while (!create && known < t->count && t->rows[known].seq <= s->have)
		known++;
	if (!create && (head == NULL || sheaf_head_revision(head) + 1 != t->rows[known].seq)) {
		int rc = err_set(err, SHEAF_STALE, "the destination was written to meanwhile");
		if (head != NULL)
			err->revision = sheaf_head_revision(head);
		return rc;
	}
	*out = t->rows + known;
	*count = t->count - known;
	return sheaf_head_copy(next, t->after, err);
}

static int append_rows(session_copy *s, size_t first, sheaf_error *err)
{
	transfer *t = &s->t;
	bool create = t->rows[0].kind == SHEAF_KIND_SESSION;
	_cleanup_(state_diff_free) state_diff state = {NULL, 0, 0};
	sheaf_append_request request = {
		.size = sizeof(request),
		.stamp = stamp,
		.ctx = s,
		.bytes_hint = t->bytes,
		.create = create,
		.revive = 1,
		.source = create ? s->fork_of : (sheaf_str){NULL, 0},
	};
	int rc = transfer_fold(t, err);
	/* Read after the head: what the records that are copied did to the state is in it. */
	if (rc == 0)
		rc = copy_user_state(s->c, &s->key, t->rows + first, t->count - first,
		                     s->appended == 0, &state, t->a, err);
	if (rc != 0)
		return rc;
	request.user_state = state.items;
	request.user_state_count = state.count;
	rc = store_append(s->c->to, &s->key.store, &request, NULL, err);
	if (rc != 0)
		return rc;
	for (size_t i = first; i < t->count; i++)
		s->c->totals.bytes_copied += t->rows[i].bytes.len + 1;
	first += create;
	s->appended += t->count - first;
	s->c->totals.records_copied += t->count - first;
	s->c->totals.state_items += state.count;
	s->have = t->count > first ? t->rows[t->count - 1].seq : s->have;
	if (s->c->verify)
		rc = compare_rows(s, first, t->count - first, err);
	if (rc == 0 && s->differs != 0)
		rc = err_set(err, SHEAF_DAMAGED,
		             "record %llu was read back other than it was written",
		             (unsigned long long)s->differs);
	return rc;
}

/* One portion: the part that is there must be the same, the rest is added. */
static int copy_portion(session_copy *s, sheaf_error *err)
{
	transfer *t = &s->t;
	size_t before = t->count; /* 1: the header of a new session */
	int rc = t->next <= t->upto ? transfer_fill_raw(t, err) : 0;
	if (rc != 0)
		return rc;
	size_t known = before;
	while (before == 0 && known < t->count && t->rows[known].seq <= s->have)
		known++;
	s->c->totals.records_done += t->count - before;
	rc = compare_rows(s, before, known - before, err);
	if (rc != 0)
		return rc;
	if (s->differs != 0)
		return conflict(s, s->differs, "another record is there", err);
	if (before != 0)
		return append_rows(s, 0, err);
	t->folded = known;
	return known < t->count ? append_rows(s, known, err) : 0;
}

/* ---- The session ------------------------------------------------------------ */

/* What is at the destination under the key, and whether it can be the beginning of this session. */
static int look_there(session_copy *s, const copy_item *it, sheaf_error *err)
{
	header hd;
	sheaf_str line;
	s->there = sheaf_head_new();
	if (s->there == NULL)
		return err_nomem(err);
	int rc = store_head(s->c->to, &s->key.store, 1, s->there, NULL, err);
	if (rc == SHEAF_NOT_FOUND) {
		head_freep(&s->there);
		return 0;
	}
	if (rc == 0)
		rc = read_header(s, s->c->to, &hd, &line, err);
	if (rc != 0)
		return rc;
	s->have = sheaf_head_revision(s->there);
	if (!str_eq(line, s->line))
		return conflict(s, 0, "another session is there under this key", err);
	if (sheaf_head_hidden(s->there) && !it->hidden)
		return conflict(s, 0, "it was deleted there", err);
	return 0;
}

/* A fork's nearest source must hold what the fork reads, and stay until the fork is there. */
static int look_at_source(session_copy *s, sheaf_error *err)
{
	sheaf_str source;
	uint64_t base;
	if (s->there != NULL || !sheaf_head_link(s->head, 0, &source, &base))
		return 0;
	_cleanup_(head_freep) sheaf_head *head = sheaf_head_new();
	if (head == NULL)
		return err_nomem(err);
	int ok = 1;
	sheaf_store_key key = s->key.store;
	key.session = arena_dup(s->a, source, &ok);
	int rc = ok ? store_head(s->c->to, &key, 0, head, NULL, err) : err_nomem(err);
	if (rc == 0 && sheaf_head_revision(head) < base)
		rc = err_set(err, SHEAF_CONFLICT, "what it was forked from is cut off there");
	if (rc == 0 && !sheaf_head_hidden(head))
		s->fork_of = key.session;
	return rc;
}

static int copy_begin(session_copy *s, const copy_item *it, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *seen = sheaf_head_new();
	s->a = arena_new();
	s->head = sheaf_head_new();
	if (s->a == NULL || s->head == NULL || seen == NULL)
		return err_nomem(err);
	sheaf_head_state state = {0};
	int rc = store_head(s->c->from, &s->key.store, 0, s->head, &state, err);
	s->now_us = state.now_us;
	if (rc == 0)
		rc = sheaf_head_copy(seen, s->head, err);
	if (rc == 0) {
		sheaf_head *given = seen;
		seen = NULL;
		rc = session_make(&s->source, s->c->from, &s->key, true, given, NULL, err);
	}
	if (rc == 0)
		rc = read_header(s, s->c->from, &s->hd, &s->line, err);
	if (rc == 0 && s->hd.ours && s->hd.version > HEADER_VERSION)
		rc = err_set(err, SHEAF_FORMAT, "the session was written by a newer version");
	if (rc != 0 || !s->hd.ours)
		return rc;
	s->have = head_base(s->head);
	rc = look_there(s, it, err);
	return rc != 0 ? rc : look_at_source(s, err);
}

/* A file of another program is taken in, under new numbers; it is done once. */
static int copy_foreign(session_copy *s, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = sheaf_head_new();
	sheaf_session *made = NULL;
	if (head == NULL)
		return err_nomem(err);
	int rc = store_head(s->c->to, &s->key.store, 0, head, NULL, err);
	if (rc == 0) {
		s->have = s->t.upto = sheaf_head_revision(head);
		s->there = head;
		head = NULL;
		return 0;
	}
	if (rc == SHEAF_NOT_FOUND)
		rc = sheaf_session_copy(&made, s->source, s->c->to, &s->key.plain, err);
	sheaf_session_close(made);
	if (rc == 0) {
		s->appended = sheaf_head_revision(s->head);
		s->c->totals.records_copied += s->appended;
		s->c->totals.records_done += s->appended;
	}
	return rc;
}

static int copy_ours(session_copy *s, sheaf_error *err)
{
	sheaf_row first = {.seq = head_base(s->head), .kind = SHEAF_KIND_SESSION};
	first.id = s->hd.id;
	first.bytes = s->line;
	int rc = transfer_begin_at(&s->t, s->source, s->head, head_base(s->head) + 1, s->there,
	                           err);
	s->t.most_bytes = PORTION_BYTES;
	/* A hidden one has what its forks read, and nothing can be added to it. */
	if (s->there != NULL && sheaf_head_hidden(s->there) && s->have < s->t.upto)
		s->t.upto = s->have;
	if (rc == 0 && s->there == NULL)
		rc = transfer_header(&s->t, &first, err);
	while (rc == 0 && (s->t.next <= s->t.upto || s->t.count != 0)) {
		rc = copy_portion(s, err);
		if (rc == 0)
			rc = transfer_drop(&s->t, err);
		if (rc == 0)
			rc = copy_progress(s->c, err);
	}
	return rc;
}

/* Whether the source has gone on since its head was read. */
static void look_again(session_copy *s)
{
	uint64_t upto = sheaf_head_revision(s->head);
	sheaf_head *now = sheaf_head_new();
	if (now != NULL && store_head(s->c->from, &s->key.store, 0, now, NULL, NULL) == 0 &&
	    sheaf_head_revision(now) > upto) {
		s->c->totals.changed++;
		copy_note(s->c, &s->key.plain, SHEAF_COPY_CHANGED, 0, upto,
		          "it was written to meanwhile, and is copied up to record %llu",
		          (unsigned long long)upto);
	}
	sheaf_head_free(now);
}

static void count_done(session_copy *s, copy_item *it)
{
	sheaf_copy_totals *t = &s->c->totals;
	it->status = ITEM_SAME;
	if (s->there == NULL) {
		t->copied++;
	} else if (s->appended != 0) {
		t->extended++;
	} else if (s->have > sheaf_head_revision(s->head)) {
		it->status = ITEM_AHEAD;
		t->ahead++;
	} else {
		t->equal++;
	}
	if (s->there == NULL || s->appended != 0)
		look_again(s);
}

/* Whether a failure concerns this session only, so that the others can be copied all the same. */
static bool is_own(int rc)
{
	switch (rc) {
	case SHEAF_CONFLICT:
	case SHEAF_DAMAGED:
	case SHEAF_FORMAT:
	case SHEAF_GONE:
	case SHEAF_NOT_FOUND:
	case SHEAF_EXISTS:
	case SHEAF_EXPIRED:
	case SHEAF_STALE:
	case SHEAF_LIMIT:
	case SHEAF_TOO_LARGE:
		return true;
	default:
		return false;
	}
}

static void count_failed(session_copy *s, copy_item *it, int rc, const sheaf_error *err)
{
	it->status = ITEM_NOT;
	if (rc == SHEAF_CONFLICT) {
		s->c->totals.conflicts++;
		copy_note(s->c, &s->key.plain, SHEAF_COPY_CONFLICT, rc, s->differs, "%s",
		          err->message);
	} else {
		s->c->totals.failed++;
		copy_note(s->c, &s->key.plain, SHEAF_COPY_FAILED, rc, s->differs, "%s",
		          err->message);
	}
}

int copy_session(store_copy *c, copy_item *it, sheaf_error *err)
{
	_cleanup_(mem_freep) session_copy *s = mem_zalloc(sizeof(*s));
	if (s == NULL)
		return err_nomem(err);
	s->c = c;
	sheaf_error local = {0};
	int rc = key_box_decode(&s->key, sheaf_str_of(it->app), sheaf_str_of(item_user(it)),
	                        sheaf_str_of(item_session(it)), &local);
	if (rc == 0)
		rc = copy_begin(s, it, &local);
	if (rc == 0)
		rc = s->hd.ours ? copy_ours(s, &local) : copy_foreign(s, &local);
	if (rc == 0 && !it->hidden)
		rc = copy_queue(c, &s->key, s->now_us, &local);
	c->totals.done++;
	if (rc == 0) {
		count_done(s, it);
	} else if (is_own(rc) && local.outcome == SHEAF_FAILED) {
		count_failed(s, it, rc, &local);
		rc = 0;
	} else if (err != NULL) {
		*err = local;
	}
	session_copy_end(s);
	return rc != 0 ? rc : copy_progress(c, err);
}
