/* Reading a session's log with what it inherits: rows, ids and labels. */
#include "core/read.h"

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"

/* ---- The chain ---------------------------------------------------------- */

/* Records low + 1 … high are read from this session. */
typedef struct segment {
	sheaf_store_key key;
	uint64_t low;
	uint64_t high;
	char name[SHEAF_KEY_PART_ROOM];
} segment;

/* Segment 0 is the session itself, segment i its link i - 1; false past the farthest. */
static bool segment_at(const sheaf_session *s, const sheaf_head *head, size_t i, segment *out)
{
	sheaf_str session;
	uint64_t base;
	out->key = s->key.store;
	out->high = sheaf_head_revision(head);
	if (i != 0) {
		if (!sheaf_head_link(head, i - 1, &session, &base))
			return false;
		str_copy_cut(out->name, sizeof(out->name), session);
		out->key.session = sheaf_str_of(out->name);
		out->high = base;
	}
	out->low = sheaf_head_link(head, i, &session, &base) ? base : 0;
	return true;
}

static size_t segment_count(const sheaf_head *head)
{
	sheaf_str session;
	uint64_t base;
	size_t count = 1;
	while (sheaf_head_link(head, count - 1, &session, &base))
		count++;
	return count;
}

/* Keeps a scan of one session inside its segment. */
typedef struct clip {
	uint64_t low;
	uint64_t high;
	size_t left;
	bool done;
	sheaf_row_fn fn;
	void *ctx;
} clip;

static int clip_row(void *ctx, const sheaf_row *row)
{
	clip *c = ctx;
	if (row->seq <= c->low || row->seq > c->high)
		return 1;
	int rc = c->fn(c->ctx, row);
	c->left--;
	c->done = rc != 0 || c->left == 0;
	return rc != 0 ? rc : c->done;
}

static int scan_segment(sheaf_session *s, const segment *g, const sheaf_scan *scan, bool own,
                        clip *c, sheaf_error *err)
{
	sheaf_scan part = *scan;
	if (scan->backward ? scan->from <= g->low : scan->from > g->high)
		return 0;
	if (g->high <= g->low)
		return 0;
	if (scan->backward && part.from > g->high)
		part.from = g->high;
	if (!scan->backward && part.from <= g->low)
		part.from = g->low + 1;
	part.limit = c->left;
	c->low = g->low;
	c->high = g->high;
	int rc = store_scan(s->store, &g->key, &part, clip_row, c, err);
	/* A callback may fail with the same code; then c->done tells. */
	if (rc == SHEAF_NOT_FOUND && !c->done)
		return own ? err_set(err, SHEAF_GONE, "the session was deleted")
		           : err_set(err, SHEAF_DAMAGED,
		                     "a session this one was forked from is missing");
	return rc;
}

int read_scan(sheaf_session *s, const sheaf_head *head, const sheaf_scan *scan, sheaf_row_fn fn,
              void *ctx, sheaf_error *err)
{
	clip c = {.left = scan->limit, .fn = fn, .ctx = ctx};
	if (scan->limit == 0)
		return 0;
	size_t count = segment_count(head);
	for (size_t i = 0; i < count && !c.done; i++) {
		segment g;
		size_t at = scan->backward ? i : count - 1 - i;
		(void)segment_at(s, head, at, &g);
		int rc = scan_segment(s, &g, scan, at == 0, &c, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int read_find_inherited(sheaf_session *s, const sheaf_head *head, sheaf_str id, uint64_t *seq,
                        sheaf_error *err)
{
	segment g;
	for (size_t i = 1; segment_at(s, head, i, &g); i++) {
		sheaf_error local;
		uint64_t found;
		int rc = store_find(s->store, &g.key, id, &found, &local);
		if (rc == 0 && found > g.low && found <= g.high) {
			*seq = found;
			return 0;
		}
		if (rc != 0 && rc != SHEAF_NOT_FOUND) {
			if (err != NULL)
				*err = local;
			return rc;
		}
	}
	return err_set(err, SHEAF_NOT_FOUND, "there is no such record");
}

/* To a store's find a session that is gone looks like one without the id. */
static int not_found_or_gone(sheaf_session *s, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *now = sheaf_head_new();
	if (now == NULL)
		return err_nomem(err);
	if (store_head(s->store, &s->key.store, 0, now, NULL, NULL) == SHEAF_NOT_FOUND)
		return err_set(err, SHEAF_GONE, "the session was deleted");
	return err_set(err, SHEAF_NOT_FOUND, "there is no such record");
}

int read_find(sheaf_session *s, const sheaf_head *head, sheaf_str id, uint64_t *seq,
              sheaf_error *err)
{
	sheaf_error local;
	int rc = store_find(s->store, &s->key.store, id, seq, &local);
	if (rc == 0)
		return 0;
	if (rc == SHEAF_NOT_FOUND)
		rc = read_find_inherited(s, head, id, seq, &local);
	if (rc == SHEAF_NOT_FOUND)
		return not_found_or_gone(s, err);
	if (rc != 0 && err != NULL)
		*err = local;
	return rc;
}

/* ---- One row ------------------------------------------------------------ */

typedef struct one_row {
	uint64_t seq;
	bool found;
	sheaf_row_fn fn;
	void *ctx;
} one_row;

static int one_row_take(void *ctx, const sheaf_row *row)
{
	one_row *one = ctx;
	if (row->seq != one->seq)
		return 1;
	one->found = true;
	int rc = one->fn(one->ctx, row);
	return rc < 0 ? rc : 1;
}

int read_row(sheaf_session *s, const sheaf_head *head, uint64_t seq, sheaf_row_fn fn, void *ctx,
             sheaf_error *err)
{
	one_row one = {seq, false, fn, ctx};
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = seq,
		.limit = 1,
		.kinds = SHEAF_KINDS_ALL,
	};
	int rc = read_scan(s, head, &scan, one_row_take, &one, err);
	if (rc == 0 && !one.found)
		return err_set(err, SHEAF_NOT_FOUND, "there is no record %llu",
		               (unsigned long long)seq);
	return rc;
}

int read_record(record *out, const sheaf_row *row, arena *a, json_doc **doc, sheaf_error *err)
{
	if (record_has_crc(row->bytes)) {
		if (record_scan(out, row->bytes, a) == 0)
			return 0;
		return err_set(err, SHEAF_DAMAGED, "record %llu cannot be read",
		               (unsigned long long)row->seq);
	}
	return record_scan_foreign(out, row->bytes, a, doc, err);
}

/* ---- Names of entries --------------------------------------------------- */

static int take_kind(void *ctx, const sheaf_row *row)
{
	int32_t *kind = ctx;
	*kind = row->damaged ? -1 : row->kind;
	return 0;
}

int read_entry_seq(sheaf_session *s, const sheaf_head *head, sheaf_str id, uint64_t *seq,
                   sheaf_error *err)
{
	int32_t kind = 0;
	int rc = read_find(s, head, id, seq, err);
	if (rc != 0)
		return rc;
	if (*seq > sheaf_head_revision(head))
		return err_set(err, SHEAF_NOT_FOUND, "there is no such record yet");
	rc = read_row(s, head, *seq, take_kind, &kind, err);
	if (rc == 0 && kind < 0)
		rc = err_set(err, SHEAF_DAMAGED, "record %llu cannot be read",
		             (unsigned long long)*seq);
	if (rc == 0 && record_kind_is_fact(kind))
		rc = err_set(err, SHEAF_INVALID, "the id names a %s, which is no entry",
		             sheaf_kind_name(kind));
	return rc;
}

typedef struct label_match {
	sheaf_str wanted;
	char id[SHEAF_ID_ROOM];
	size_t len;
} label_match;

static int label_match_take(void *ctx, sheaf_str target, sheaf_str label)
{
	label_match *m = ctx;
	if (!str_eq(label, m->wanted) || target.len > SHEAF_ID_BYTES_MAX)
		return 0;
	str_copy_cut(m->id, sizeof(m->id), target);
	m->len = target.len;
	return 1;
}

int read_resolve(sheaf_session *s, const sheaf_head *head, sheaf_str what, char id[SHEAF_ID_ROOM],
                 uint64_t *seq, sheaf_error *err)
{
	if (what.len == 0)
		return err_set(err, SHEAF_INVALID, "an entry is named by its id or a label");
	if (what.len <= SHEAF_ID_BYTES_MAX) {
		sheaf_error local;
		int rc = read_entry_seq(s, head, what, seq, &local);
		if (rc == 0)
			str_copy_cut(id, SHEAF_ID_ROOM, what);
		else if (rc != SHEAF_NOT_FOUND && err != NULL)
			*err = local;
		if (rc != SHEAF_NOT_FOUND)
			return rc;
	}
	label_match m = {.wanted = what};
	int rc = read_labels(s, head, label_match_take, &m, err);
	if (rc != 0)
		return rc;
	if (m.len == 0)
		return err_set(err, SHEAF_NOT_FOUND, "there is no such entry or label");
	str_copy_cut(id, SHEAF_ID_ROOM, str_make(m.id, m.len));
	return read_entry_seq(s, head, str_make(m.id, m.len), seq, err);
}

/* ---- Labels ------------------------------------------------------------- */

/* A walk over label records, newest first. */
typedef struct label_walk {
	sheaf_session *s;
	const sheaf_head *head;
	read_label_row_fn fn;
	void *ctx;
	arena *a;
	json_doc *doc;
	map seen;     /* targets that had their say */
	bool foreign; /* a file that is not ours: its labels are no chain */
	/* the record just read */
	bool broken;
	label_row row;
	uint64_t previous;
	sheaf_error *err;
} label_walk;

static int label_take(void *ctx, const sheaf_row *row)
{
	label_walk *w = ctx;
	w->broken = row->damaged || row->kind != SHEAF_KIND_LABEL;
	if (w->broken)
		return 0;
	record r;
	sheaf_entry e;
	int rc = read_record(&r, row, w->a, &w->doc, w->err);
	if (rc == 0)
		rc = entry_read(&e, &r, 0, true, w->a, &w->doc, w->err);
	if (rc == SHEAF_NOMEM)
		return rc;
	w->broken = rc != 0;
	w->row = (label_row){.seq = row->seq, .target = e.target_id, .label = e.text};
	w->previous = row->parent;
	return 0;
}

/* Gives the record just read to fn. */
static int label_give(label_walk *w)
{
	uint64_t known;
	if (w->row.target.len == 0)
		return 0;
	w->row.latest = !map_get(&w->seen, w->row.target, &known);
	if (w->row.latest && map_set(&w->seen, w->row.target, 1) != 0)
		return err_nomem(w->err);
	return w->fn(w->ctx, &w->row);
}

static int label_scan_take(void *ctx, const sheaf_row *row)
{
	uint64_t *seq = ctx;
	*seq = row->seq;
	return 1;
}

/* Reads the newest label record at or below `from` by looking for it; *seq is 0 without one. */
static int label_search(label_walk *w, uint64_t from, uint64_t *seq)
{
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = from,
		.backward = 1,
		.limit = 1,
		.kinds = SHEAF_KIND_BIT(SHEAF_KIND_LABEL),
	};
	for (*seq = 0; scan.from != 0; scan.from--) {
		uint64_t at = 0;
		int rc = read_scan(w->s, w->head, &scan, label_scan_take, &at, w->err);
		if (rc != 0 || at == 0)
			return rc;
		rc = read_row(w->s, w->head, at, label_take, w, w->err);
		if (rc != 0)
			return rc;
		if (!w->broken) {
			*seq = at;
			return 0;
		}
		scan.from = at;
	}
	return 0;
}

/* Reads the label record that the chain names; where the chain is broken, the next one below. */
static int label_next(label_walk *w, uint64_t named, uint64_t below, uint64_t *seq)
{
	if (w->foreign)
		return label_search(w, below - 1, seq);
	*seq = named;
	if (named == 0)
		return 0;
	if (named < below) {
		int rc = read_row(w->s, w->head, named, label_take, w, w->err);
		if (rc != 0 && rc != SHEAF_NOT_FOUND)
			return rc;
		if (rc == 0 && !w->broken)
			return 0;
		below = named;
	}
	return label_search(w, below - 1, seq);
}

static int label_walk_run(label_walk *w)
{
	uint64_t seq, below = sheaf_head_revision(w->head) + 1;
	int rc = label_next(w, head_last_label(w->head), below, &seq);
	while (rc == 0 && seq != 0) {
		rc = label_give(w);
		if (rc != 0)
			return rc < 0 ? rc : 0;
		rc = label_next(w, w->previous, seq, &seq);
	}
	return rc;
}

int read_label_rows(sheaf_session *s, const sheaf_head *head, read_label_row_fn fn, void *ctx,
                    sheaf_error *err)
{
	sheaf_session_info info;
	sheaf_head_info(head, &info);
	bool foreign = info.readonly != 0;
	if (head_last_label(head) == 0 && !foreign)
		return 0;
	/* What label_take() meets on the way is not the caller's business unless the walk fails. */
	sheaf_error local = {0};
	label_walk w = {.s = s,
	                .head = head,
	                .fn = fn,
	                .ctx = ctx,
	                .a = arena_new(),
	                .foreign = foreign,
	                .err = &local};
	if (w.a == NULL)
		return err_nomem(err);
	int rc = label_walk_run(&w);
	arena_free(w.a);
	json_free(w.doc);
	map_free(&w.seen);
	if (rc != 0 && local.code != rc)
		return err_set(err, rc, "%s", sheaf_code_text(rc));
	return err_pass(err, &local, rc);
}

typedef struct label_present {
	read_label_fn fn;
	void *ctx;
} label_present;

static int label_present_take(void *ctx, const label_row *row)
{
	label_present *p = ctx;
	return row->latest && row->label.len != 0 ? p->fn(p->ctx, row->target, row->label) : 0;
}

int read_labels(sheaf_session *s, const sheaf_head *head, read_label_fn fn, void *ctx,
                sheaf_error *err)
{
	label_present p = {fn, ctx};
	return read_label_rows(s, head, label_present_take, &p, err);
}
