/* Rows on their way into another log: gathered in portions, folded into its head, written. */
#include "core/transfer.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "entry/retention.h"

typedef struct line_take {
	arena *a;
	sheaf_str line;
} line_take;

static int take_line(void *ctx, const sheaf_row *row)
{
	line_take *t = ctx;
	int ok = 1;
	t->line = arena_dup(t->a, row->bytes, &ok);
	return ok ? 0 : SHEAF_NOMEM;
}

int header_load(header *hd, sheaf_str *line, sheaf_store *store, const key_box *key, arena *a,
                sheaf_error *err)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	line_take take = {a, {NULL, 0}};
	int rc = store_header(store, &key->store, take_line, &take, err);
	if (rc == 0 && take.line.ptr == NULL)
		rc = err_set(err, SHEAF_DAMAGED, "the session has no header");
	if (rc == 0)
		rc = header_read(hd, take.line, a, &doc, err);
	*line = take.line;
	return rc;
}

int transfer_begin(transfer *t, sheaf_session *from, const sheaf_head *head, const header *hd,
                   transfer_fill_fn fill, sheaf_error *err)
{
	*t = (transfer){
		.from = from,
		.head = head,
		.upto = sheaf_head_revision(head),
		.most_bytes = SHEAF_BATCH_BYTES_MAX,
		.fill = fill,
		.next = 1,
		.a = arena_new(),
		.after = sheaf_head_new(),
		.line = BUF_INIT(2 * SHEAF_RECORD_BYTES_MAX),
	};
	if (t->a == NULL || t->after == NULL)
		return err_nomem(err);
	header_write(&t->line, hd);
	int rc = buf_status(&t->line, err), ok = 1;
	if (rc == 0)
		rc = head_begin(t->after, hd, err);
	if (rc != 0)
		return rc;
	/* The header is the first row of the first portion. */
	if (mem_grow((void **)&t->rows, &t->room, 1, sizeof(*t->rows)) != 0)
		return err_nomem(err);
	sheaf_str line = arena_dup(t->a, buf_view(&t->line), &ok);
	sheaf_str id = arena_dup(t->a, hd->id, &ok);
	if (!ok)
		return err_nomem(err);
	t->rows[0] = (sheaf_row){.kind = SHEAF_KIND_SESSION, .id = id};
	t->rows[0].bytes = str_make(line.ptr, line.len - 1);
	t->count = t->folded = t->batch_start = 1;
	t->bytes = line.len;
	return 0;
}

void transfer_end(transfer *t)
{
	arena_free(t->a);
	mem_free(t->rows);
	sheaf_head_free(t->after);
	json_free(t->doc);
	buf_free(&t->line);
	*t = (transfer){.a = NULL};
}

void header_unlink(header *hd)
{
	hd->source = hd->at = (sheaf_str){NULL, 0};
	hd->at_seq = hd->base = hd->label_seq = 0;
	hd->link_count = 0;
	hd->hidden = false;
}

bool transfer_full(const transfer *t, size_t more_bytes)
{
	return !t->whole &&
	       (t->count >= SHEAF_BATCH_RECORDS_MAX || t->bytes + more_bytes > t->most_bytes);
}

/* Copies a row with the line break behind its line. */
static int add_row(transfer *t, const sheaf_row *row, sheaf_error *err)
{
	if (mem_grow((void **)&t->rows, &t->room, t->count + 1, sizeof(*t->rows)) != 0)
		return err_nomem(err);
	int ok = 1;
	char *line = arena_alloc(t->a, row->bytes.len + 1);
	sheaf_str id = arena_dup(t->a, row->id, &ok);
	if (line == NULL || !ok)
		return err_nomem(err);
	memcpy(line, row->bytes.ptr, row->bytes.len);
	line[row->bytes.len] = '\n';
	sheaf_row *copy = &t->rows[t->count++];
	*copy = *row;
	copy->id = id;
	copy->bytes.ptr = line;
	t->bytes += row->bytes.len + 1;
	return 0;
}

/* ---- Folding ------------------------------------------------------------ */

/* The parent was found where the row came from. */
static int known_parent(void *ctx, sheaf_str id, uint64_t *seq)
{
	const sheaf_row *row = ctx;
	(void)id;
	*seq = row->parent;
	return row->parent != 0;
}

/* Brings `after` up to the rows gathered, by the same fold that stores use. */
int transfer_fold(transfer *t, sheaf_error *err)
{
	for (; t->folded < t->count; t->folded++) {
		sheaf_row *row = &t->rows[t->folded], copy = *row;
		int rc = sheaf_head_fold(t->after, &copy, known_parent, row, err);
		if (rc != 0)
			return rc;
		row->parent = copy.parent;
		row->kind = copy.kind;
	}
	return 0;
}

int transfer_begin_at(transfer *t, sheaf_session *from, const sheaf_head *head, uint64_t next,
                      const sheaf_head *onto, sheaf_error *err)
{
	*t = (transfer){
		.from = from,
		.head = head,
		.upto = sheaf_head_revision(head),
		.most_bytes = SHEAF_BATCH_BYTES_MAX,
		.fill = transfer_fill_raw,
		.next = next,
		.a = arena_new(),
		.after = sheaf_head_new(),
		.line = BUF_INIT(2 * SHEAF_RECORD_BYTES_MAX),
	};
	if (t->a == NULL || t->after == NULL)
		return err_nomem(err);
	t->last_label = onto != NULL ? head_last_label(onto) : 0;
	return onto != NULL ? sheaf_head_copy(t->after, onto, err) : 0;
}

int transfer_header(transfer *t, const sheaf_row *row, sheaf_error *err)
{
	int rc = add_row(t, row, err);
	return rc != 0 ? rc : transfer_fold(t, err);
}

/* ---- Filling ------------------------------------------------------------ */

/* Where the records of the portion begin: the first portion has the header in front. */
static size_t portion_first(const transfer *t)
{
	return t->count != 0 && t->rows[0].kind == SHEAF_KIND_SESSION ? 1 : 0;
}

static int raw_row(void *ctx, const sheaf_row *row)
{
	transfer *t = ctx;
	record r;
	size_t first = portion_first(t);
	if (row->seq > t->upto)
		return 1;
	if (row->damaged || record_scan(&r, row->bytes, t->a) != 0) {
		int rc = err_set(&t->err, SHEAF_DAMAGED, "record %llu cannot be read",
		                 (unsigned long long)row->seq);
		err_hint(&t->err, "repair the session first");
		return rc;
	}
	/* A stored batch stays whole: readers must see all of it or nothing. */
	if (r.batch_index == 0) {
		t->batch_start = t->count;
		if (!t->whole && t->count > first &&
		    t->count - first + r.batch_count > SHEAF_BATCH_RECORDS_MAX)
			return 1;
	}
	if (!t->whole && t->bytes + row->bytes.len >= t->most_bytes && t->batch_start > first) {
		t->count = t->batch_start;
		return 1;
	}
	return add_row(t, row, &t->err);
}

int transfer_fill_raw(transfer *t, sheaf_error *err)
{
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = t->next,
		.limit = SIZE_MAX,
		.kinds = SHEAF_KINDS_ALL,
	};
	size_t before = t->count;
	int rc = err_pass(err, &t->err, read_scan(t->from, t->head, &scan, raw_row, t, err));
	if (rc != 0)
		return rc;
	if (t->count > before)
		t->next = t->rows[t->count - 1].seq + 1;
	t->ended = t->next > t->upto;
	if (!t->ended && t->count == before)
		return err_set(err, SHEAF_DAMAGED, "record %llu is missing",
		               (unsigned long long)t->next);
	return 0;
}

int transfer_restamp(transfer *t, const record *r, sheaf_str parent_id, uint64_t parent,
                     uint64_t batch_index, uint64_t batch_count, sheaf_error *err)
{
	bool label = r->kind == SHEAF_KIND_LABEL;
	uint64_t seq = sheaf_head_revision(t->after) + (t->count - t->folded) + 1;
	uint64_t inherited = parent <= head_base(t->after) ? parent : 0;
	buf_reset(&t->line);
	int rc = record_renumber(&t->line, r, parent_id, inherited, seq, batch_index, batch_count,
	                         err);
	if (rc != 0)
		return rc;
	sheaf_row row = {
		.seq = seq,
		.parent = label ? t->last_label : parent,
		.kind = r->kind,
		.id = r->id,
		.bytes = str_make(t->line.ptr, t->line.len - 1),
	};
	if (row.bytes.len > SHEAF_RECORD_BYTES_MAX)
		return err_set(err, SHEAF_TOO_LARGE, "a record holds at most %zu bytes",
		               SHEAF_RECORD_BYTES_MAX);
	if (label)
		t->last_label = seq;
	return add_row(t, &row, err);
}

/* ---- The end ------------------------------------------------------------ */

int transfer_drafts(transfer *t, const draft_list *list, sheaf_error *err)
{
	if (list->count == 0)
		return 0;
	rows made = {.bytes = BUF_INIT(2 * SHEAF_BATCH_BYTES_MAX)};
	sheaf_head *scratch_head = sheaf_head_new();
	int rc = scratch_head != NULL ? sheaf_head_copy(scratch_head, t->after, err)
	                              : err_nomem(err);
	if (rc == 0)
		rc = rows_stamp(&made, scratch_head, list->items, list->count, &t->doc, err);
	if (rc == 0)
		rows_close(&made);
	for (size_t i = 0; rc == 0 && i < made.count; i++)
		rc = add_row(t, &made.items[i], err);
	rows_free(&made);
	sheaf_head_free(scratch_head);
	return rc != 0 ? rc : transfer_fold(t, err);
}

static int add_fact(draft_list *list, const char *type, buf *body, sheaf_error *err)
{
	int rc = buf_status(body, err);
	if (rc == 0)
		rc = drafts_add(list, type, buf_view(body), NULL, err);
	buf_reset(body);
	return rc;
}

transfer_goal transfer_goal_of(const sheaf_head *head)
{
	sheaf_session_info info;
	head_branch main = {.leaf_seq = 0};
	sheaf_head_info(head, &info);
	(void)head_branch_find(head, SHEAF_STR("main"), &main);
	return (transfer_goal){
		.branches = head,
		.leaf = main.leaf,
		.leaf_seq = main.leaf_seq,
		.name = info.name,
		.metadata = head_metadata(head),
		.ttl_us = info.ttl_us,
		.grace_us = info.grace_us,
		.pinned = info.pinned != 0,
	};
}

/* Branches that are too many go, those that differ move. */
static int goal_branches(draft_list *list, const sheaf_head *after, const transfer_goal *goal,
                         buf *body, sheaf_error *err)
{
	head_branch is, should;
	int rc = 0;
	for (size_t i = 1; rc == 0 && i < head_branch_count(after); i++) {
		head_branch_at(after, i, &is);
		if (goal->branches != NULL && head_branch_find(goal->branches, is.name, &should))
			continue;
		body_leaf_gone(body, is.name);
		rc = add_fact(list, "leaf", body, err);
	}
	head_branch_at(after, 0, &is);
	if (rc == 0 && is.leaf_seq != goal->leaf_seq) {
		body_leaf(body, SHEAF_STR("main"),
		          goal->leaf_seq != 0 ? goal->leaf : (sheaf_str){"", 0}, goal->leaf_seq);
		rc = add_fact(list, "leaf", body, err);
	}
	for (size_t i = 1; rc == 0 && goal->branches && i < head_branch_count(goal->branches);
	     i++) {
		head_branch_at(goal->branches, i, &should);
		if (head_branch_find(after, should.name, &is) && is.leaf_seq == should.leaf_seq)
			continue;
		body_leaf(body, should.name,
		          should.leaf_seq != 0 ? should.leaf : (sheaf_str){"", 0}, should.leaf_seq);
		rc = add_fact(list, "leaf", body, err);
	}
	return rc;
}

static int goal_name(draft_list *list, const sheaf_head *after, const transfer_goal *goal,
                     buf *body, sheaf_error *err)
{
	sheaf_session_info info;
	sheaf_head_info(after, &info);
	/* Metadata can be emptied, not taken away: nothing and an empty object mean the same. */
	sheaf_str is = head_metadata(after), should = goal->metadata, none = {NULL, 0};
	if (is.ptr == NULL)
		is = SHEAF_STR("{}");
	if (should.ptr == NULL)
		should = SHEAF_STR("{}");
	bool described = str_eq(is, should);
	if (described && str_eq(info.name, goal->name))
		return 0;
	body_session_info(body, goal->name.ptr != NULL ? goal->name : (sheaf_str){"", 0},
	                  described ? none : should);
	return add_fact(list, "session_info", body, err);
}

static int goal_retention(draft_list *list, const sheaf_head *after, const transfer_goal *goal,
                          buf *body, sheaf_error *err)
{
	sheaf_session_info info;
	sheaf_head_info(after, &info);
	if (info.ttl_us == goal->ttl_us && (info.pinned != 0) == goal->pinned &&
	    (goal->ttl_us == 0 || info.grace_us == goal->grace_us))
		return 0;
	retention_fact r = {
		.has_ttl = true,
		.has_grace = goal->ttl_us != 0,
		.has_pin = true,
		.pin = goal->pinned,
		.ttl_us = goal->ttl_us,
		.grace_us = goal->grace_us,
	};
	retention_write(body, &r);
	return add_fact(list, "retention", body, err);
}

int transfer_close(transfer *t, const draft_list *more, const transfer_goal *goal, sheaf_error *err)
{
	int rc = transfer_fold(t, err);
	if (rc == 0 && more != NULL)
		rc = transfer_drafts(t, more, err);
	if (rc != 0 || goal == NULL)
		return rc;
	_cleanup_(drafts_free) draft_list facts = {0};
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	rc = goal_branches(&facts, t->after, goal, &body, err);
	if (rc == 0)
		rc = goal_name(&facts, t->after, goal, &body, err);
	if (rc == 0)
		rc = goal_retention(&facts, t->after, goal, &body, err);
	return rc != 0 ? rc : transfer_drafts(t, &facts, err);
}

/* ---- Writing ------------------------------------------------------------ */

/* Makes the portion ready to be handed out: filled, folded, and closed if it is the last. */
static int portion_next(transfer *t, const draft_list *more, const transfer_goal *goal,
                        sheaf_error *err)
{
	int rc = t->fill(t, err);
	if (rc == 0)
		rc = transfer_fold(t, err);
	if (rc == 0 && t->ended)
		rc = transfer_close(t, more, goal, err);
	return rc;
}

int transfer_drop(transfer *t, sheaf_error *err)
{
	arena_free(t->a);
	t->a = arena_new();
	t->count = t->folded = t->batch_start = 0;
	t->bytes = 0;
	return t->a != NULL ? 0 : err_nomem(err);
}

/* All of a session that is one portion; of a longer one the header alone. */
static int create_stamp(void *ctx, const sheaf_head *head, sheaf_head *next, const sheaf_row **out,
                        size_t *count, sheaf_error *err)
{
	transfer *t = ctx;
	if (head != NULL)
		return err_set(err, SHEAF_EXISTS, "there is such a session already");
	*out = t->rows;
	*count = t->ended ? t->count : 1;
	if (t->ended)
		return sheaf_head_copy(next, t->after, err);
	sheaf_row first = t->rows[0];
	return sheaf_head_fold(next, &first, NULL, NULL, err);
}

typedef struct stream {
	transfer *t;
	const draft_list *more;
	const transfer_goal *goal;
	size_t at;
} stream;

/* Row after row of all portions, only one of which is in memory. */
static int stream_row(void *ctx, sheaf_row *row, sheaf_error *err)
{
	stream *s = ctx;
	while (s->at == s->t->count) {
		if (s->t->ended)
			return 0;
		int rc = transfer_drop(s->t, err);
		if (rc == 0)
			rc = portion_next(s->t, s->more, s->goal, err);
		if (rc != 0)
			return rc;
		s->at = 0;
	}
	*row = s->t->rows[s->at++];
	return 1;
}

static void remove_half(sheaf_store *store, const sheaf_store_key *key)
{
	sheaf_remove_request request = {.size = sizeof(request)};
	(void)store_remove(store, key, &request, NULL, NULL);
}

/*
 * A copy is never seen half-way: one portion is stored as it is created, a longer
 * one replaces, all at once, a session that has nothing but its header.
 */
int transfer_store(transfer *t, sheaf_store *store, const key_box *key, const draft_list *more,
                   const transfer_goal *goal, sheaf_str source, int32_t durability,
                   sheaf_error *err)
{
	sheaf_append_request request = {
		.size = sizeof(request),
		.stamp = create_stamp,
		.ctx = t,
		.create = 1,
		.durability = durability,
		.source = source,
	};
	sheaf_append_reply reply;
	int rc = portion_next(t, more, goal, err);
	if (rc != 0)
		return rc;
	request.bytes_hint = t->bytes;
	rc = create_append(store, &key->store, &request, &reply, err);
	if (rc != 0 || t->ended)
		return rc;
	stream all = {t, more, goal, 0};
	rc = store_replace(store, &key->store, 0, stream_row, &all, err);
	/* STALE means that somebody has begun to use it: then it is not ours to remove. */
	if (rc != 0 && rc != SHEAF_STALE)
		remove_half(store, &key->store);
	return rc;
}
