/*
 * Carrying a pull out: records as they are behind what is their beginning, or
 * under new numbers with what makes the two agree. Portion by portion.
 */
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/sync.h"
#include "entry/retention.h"

/* Small enough to be kept a few times over, large enough that round trips do not count. */
#define PORTION_BYTES ((size_t)8 << 20)

/* ---- Appending ------------------------------------------------------------------ */

/* The rows fit on what was seen, and nothing else. */
static int stamp(void *ctx, const sheaf_head *head, sheaf_head *next, const sheaf_row **out,
                 size_t *count, sheaf_error *err)
{
	session_sync *s = ctx;
	bool create = s->t.rows[0].kind == SHEAF_KIND_SESSION;
	if (create ? head != NULL : head == NULL || sheaf_head_revision(head) != s->revision)
		return err_set(err, SHEAF_STALE, "it was written to meanwhile");
	*out = s->t.rows;
	*count = s->t.count;
	return sheaf_head_copy(next, s->t.after, err);
}

static int drop_known(void *ctx, const sheaf_state_item *known)
{
	state_items *user = ctx;
	for (size_t i = 0; i < user->count; i++) {
		if (str_eq(user->items[i].key, known->key)) {
			user->items[i] = user->items[--user->count];
			break;
		}
	}
	return 0;
}

/* What a user has is left alone: nothing says which of two values is the newer one. */
static int only_new_state(session_sync *s, state_load *load, sheaf_error *err)
{
	size_t kept = 0;
	for (size_t i = 0; i < load->user.count; i++) {
		if (load->user.items[i].value.ptr != NULL)
			load->user.items[kept++] = load->user.items[i];
	}
	load->user.count = kept;
	if (kept == 0)
		return 0;
	return store_state_read(s->c->here, s->key.store.owner, 0, drop_known, &load->user, err);
}

static int load_state(session_sync *s, state_load *load, sheaf_error *err)
{
	if (!store_states(s->c->here))
		return 0;
	for (size_t i = 0; i < s->t.count; i++) {
		if (s->t.rows[i].kind != SHEAF_KIND_SESSION &&
		    state_load_row(load, &s->t.rows[i]) != 0)
			return err_nomem(err);
	}
	return only_new_state(s, load, err);
}

static int append_rows(session_sync *s, state_load *load, sheaf_error *err)
{
	transfer *t = &s->t;
	bool create = t->rows[0].kind == SHEAF_KIND_SESSION;
	_cleanup_(mem_freep) sheaf_str *ids = mem_zalloc(t->count * sizeof(*ids));
	_cleanup_(mem_freep) uint64_t *seqs = mem_zalloc(t->count * sizeof(*seqs));
	if (ids == NULL || seqs == NULL)
		return err_nomem(err);
	for (size_t i = 0; i < t->count; i++)
		ids[i] = t->rows[i].id;
	sheaf_append_request request = {
		.size = sizeof(request),
		.stamp = stamp,
		.ctx = s,
		.ids = ids,
		.id_count = create ? 0 : t->count,
		.seqs = seqs,
		.bytes_hint = t->bytes,
		.create = create,
		.source = create ? s->fork_of : (sheaf_str){NULL, 0},
		.user_state = load->user.items,
		.user_state_count = load->user.count,
	};
	sheaf_append_reply reply = {0};
	int rc = create ? create_append(s->c->here, &s->key.store, &request, &reply, err)
	                : store_append(s->c->here, &s->key.store, &request, &reply, err);
	if (rc == SHEAF_EXISTS || (rc == 0 && reply.known != 0))
		rc = err_set(err, SHEAF_STALE, "it was written to meanwhile");
	return rc;
}

/* If it fails the values are pending, as after any append: the session's next one applies them. */
static void apply_app_state(const session_sync *s, const state_load *load)
{
	if (load->app.count != 0)
		(void)store_state_apply(s->c->here, s->key.store.app, load->app.items,
		                        load->app.count, NULL);
}

/* Writes the portion; in a dry run only counts it. */
static int send(session_sync *s, sheaf_error *err)
{
	transfer *t = &s->t;
	state_load load = {0};
	int rc = transfer_fold(t, err);
	if (rc == 0 && !s->c->dry_run) {
		rc = load_state(s, &load, err);
		if (rc == 0)
			rc = append_rows(s, &load, err);
		if (rc == 0)
			apply_app_state(s, &load);
	}
	state_load_end(&load);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < t->count; i++)
		s->c->totals.bytes += t->rows[i].bytes.len + 1;
	s->revision = sheaf_head_revision(t->after);
	map_free(&s->sent);
	rc = transfer_drop(t, err);
	return rc != 0 ? rc : sync_progress(s->c, err);
}

/* ---- As it is ---------------------------------------------------------------------- */

int sync_extend(session_sync *s, sheaf_error *err)
{
	transfer *t = &s->t;
	uint64_t have = s->to_head != NULL ? sheaf_head_revision(s->to_head)
	                                   : head_base(s->from_head);
	int rc = transfer_begin_at(t, s->from, s->from_head, have + 1, s->to_head, err);
	t->most_bytes = PORTION_BYTES;
	s->revision = have;
	if (rc == 0 && s->to_head == NULL) {
		sheaf_row first = {.seq = have, .kind = SHEAF_KIND_SESSION};
		first.id = s->from_hd.id;
		first.bytes = s->from_line;
		rc = transfer_header(t, &first, err);
	}
	while (rc == 0 && (t->next <= t->upto || t->count != 0)) {
		size_t before = t->count;
		if (t->next <= t->upto)
			rc = transfer_fill_raw(t, err);
		for (size_t i = before; rc == 0 && i < t->count; i++) {
			if (record_kind_is_fact(t->rows[i].kind))
				s->facts++;
			else
				s->entries++;
		}
		s->c->totals.records_read += t->count - before;
		if (rc == 0)
			rc = send(s, err);
	}
	return rc;
}

/* ---- Facts of the merge itself -------------------------------------------------------- */

/*
 * Without a time it has the present one. What a merge writes last must have it:
 * the time of the newest record is what tells two logs of the same length apart
 * in a list.
 */
static int add_fact(draft_list *list, const char *type, buf *body, int64_t time_us, sheaf_str delta,
                    sheaf_error *err)
{
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	o.time_us = time_us;
	o.state_delta = delta;
	int rc = buf_status(body, err);
	if (rc == 0)
		rc = drafts_add(list, type, buf_view(body), &o, err);
	buf_reset(body);
	return rc;
}

/* Where a merge begins: what follows has numbers of its own. */
static int add_mark(session_sync *s, sheaf_error *err)
{
	_cleanup_(drafts_free) draft_list list = {0};
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	buf_lit(&body, "\"sync\":{\"source\":");
	buf_json(&body, sheaf_str_of(s->c->source));
	buf_char(&body, '}');
	int rc = add_fact(&list, "sync", &body, 0, (sheaf_str){NULL, 0}, err);
	return rc != 0 ? rc : transfer_drafts(&s->t, &list, err);
}

/* ---- Settings -------------------------------------------------------------------------- */

typedef struct settings {
	bool name;
	bool metadata;
	bool ttl;
	bool pin;
	sheaf_session_info there;
} settings;

static sheaf_str or_empty(sheaf_str object)
{
	return object.ptr != NULL ? object : SHEAF_STR("{}");
}

/* Which of the source's hold here, and are others. */
static settings settings_of(const session_sync *s)
{
	settings x;
	sheaf_session_info here;
	sheaf_head_info(s->from_head, &x.there);
	sheaf_head_info(s->to_head, &here);
	x.name = !str_eq(x.there.name, here.name) && sync_takes(s, "name");
	x.metadata = !str_eq(or_empty(head_metadata(s->from_head)),
	                     or_empty(head_metadata(s->to_head))) &&
	             sync_takes(s, "metadata");
	x.ttl = (x.there.ttl_us != here.ttl_us || x.there.grace_us != here.grace_us) &&
	        sync_takes(s, "ttl");
	x.pin = x.there.pinned != here.pinned && sync_takes(s, "pin");
	return x;
}

/* When the source said the later of two things. */
static int64_t said_at(const session_sync *s, const char *a, const char *b)
{
	int64_t x = sync_said_at(s, a), y = sync_said_at(s, b);
	return x > y ? x : y;
}

static int add_settings(session_sync *s, draft_list *list, buf *body, sheaf_error *err)
{
	settings x = settings_of(s);
	const sheaf_str none = {NULL, 0};
	int rc = 0;
	if (x.name || x.metadata) {
		sheaf_str name = x.there.name.ptr != NULL ? x.there.name : (sheaf_str){"", 0};
		body_session_info(body, x.name ? name : none,
		                  x.metadata ? or_empty(head_metadata(s->from_head)) : none);
		rc = add_fact(list, "session_info", body, said_at(s, "name", "metadata"), none,
		              err);
	}
	if (rc == 0 && (x.ttl || x.pin)) {
		retention_fact f = {
			.has_ttl = x.ttl,
			.has_grace = x.ttl && x.there.ttl_us != 0,
			.has_pin = x.pin,
			.pin = x.there.pinned != 0,
			.ttl_us = x.there.ttl_us,
			.grace_us = x.there.grace_us,
		};
		retention_write(body, &f);
		rc = add_fact(list, "retention", body, said_at(s, "ttl", "pin"), none, err);
	}
	return rc;
}

bool sync_merge_is_empty(const session_sync *s)
{
	settings x = settings_of(s);
	return s->entries + s->facts + s->moved + s->apart + s->over == 0 && !x.name &&
	       !x.metadata && !x.ttl && !x.pin;
}

/* ---- Branches ----------------------------------------------------------------------------- */

static const sync_branch *branch_of(const session_sync *s, sheaf_str name)
{
	for (size_t i = 0; i < s->branch_count; i++) {
		if (str_eq(s->branches[i].name, name))
			return &s->branches[i];
	}
	return NULL;
}

/* The branch that a record of the source is on here; `none` if it has no place on any. */
static sheaf_str branch_here(const session_sync *s, sheaf_str name, const char *none)
{
	if (name.len == 0)
		name = SHEAF_STR("main");
	const char *at = memchr(name.ptr, '@', name.len);
	if (at != NULL)
		name.len = (size_t)(at - name.ptr);
	const sync_branch *b = branch_of(s, name);
	if (b != NULL && b->what == BRANCH_MOVES && b->there.exists)
		return str_is(name, "main") ? (sheaf_str){NULL, 0} : b->name;
	return sheaf_str_of(b != NULL && b->what == BRANCH_APART ? b->aside : none);
}

/* Where a branch of this store must stand in the end. */
static place goal_of(const session_sync *s, sheaf_str name)
{
	head_branch is;
	for (size_t i = 0; i < s->branch_count; i++) {
		const sync_branch *b = &s->branches[i];
		if (str_eq(b->name, name) && b->what == BRANCH_MOVES)
			return b->there;
		if (str_is(name, b->aside) && b->what == BRANCH_APART)
			return b->there;
		if (str_is(name, b->aside) && b->over)
			return (place){.exists = false};
	}
	if (!head_branch_find(s->to_head, name, &is))
		return (place){.exists = false};
	return (place){.exists = true, .leaf = is.leaf};
}

static int number_here(session_sync *s, sheaf_str id, uint64_t *seq, sheaf_error *err)
{
	if (map_get(&s->sent, id, seq))
		return 0;
	int rc = read_find(s->to, s->to_head, id, seq, err);
	if (rc == SHEAF_NOT_FOUND)
		rc = err_set(err, SHEAF_DAMAGED, "the source names record %.*s and has it not",
		             (int)(id.len < 40 ? id.len : 40), id.ptr);
	return rc;
}

static int settle_branch(session_sync *s, draft_list *list, sheaf_str name, buf *body,
                         sheaf_error *err)
{
	head_branch is;
	place goal = goal_of(s, name);
	bool there = head_branch_find(s->t.after, name, &is);
	uint64_t seq = 0;
	int rc = 0;
	if (there == goal.exists && (!there || str_eq(is.leaf, goal.leaf)))
		return 0;
	if (!goal.exists) {
		body_leaf_gone(body, name);
	} else {
		if (goal.leaf.len != 0)
			rc = number_here(s, goal.leaf, &seq, err);
		body_leaf(body, name, goal.leaf, seq);
	}
	return rc != 0 ? rc : add_fact(list, "leaf", body, 0, (sheaf_str){NULL, 0}, err);
}

static int add_branches(session_sync *s, draft_list *list, buf *body, sheaf_error *err)
{
	head_branch is, other;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < head_branch_count(s->t.after); i++) {
		head_branch_at(s->t.after, i, &is);
		rc = settle_branch(s, list, is.name, body, err);
	}
	/* Those that no record has made. */
	for (size_t i = 0; rc == 0 && i < s->branch_count; i++) {
		const sync_branch *b = &s->branches[i];
		sheaf_str name = b->what == BRANCH_APART ? sheaf_str_of(b->aside) : b->name;
		if (b->what != BRANCH_STAYS && !head_branch_find(s->t.after, name, &other))
			rc = settle_branch(s, list, name, body, err);
	}
	return rc;
}

/* ---- The end ---------------------------------------------------------------------------------- */

static sheaf_str state_value(const sheaf_head *head, sheaf_str key)
{
	const state_pair *p = state_find(head_state(head), key);
	return p != NULL ? p->value : (sheaf_str){NULL, 0};
}

/* Values of the session that are not those that hold, now that all records are folded. */
static int state_delta(const session_sync *s, buf *out)
{
	static const char prefix[] = "state ";
	for (size_t i = 0; i < s->key_count; i++) {
		const sync_key *k = &s->keys[i];
		if (!k->arrives || !str_starts(k->name, prefix))
			continue;
		sheaf_str key = str_make(k->name.ptr + sizeof(prefix) - 1,
		                         k->name.len - (sizeof(prefix) - 1));
		const sheaf_head *holds = sync_takes(s, k->name.ptr) ? s->from_head : s->to_head;
		sheaf_str value = state_value(holds, key), is = state_value(s->t.after, key);
		if (str_eq(value, is) && (value.ptr == NULL) == (is.ptr == NULL))
			continue;
		buf_char(out, out->len == 0 ? '{' : ',');
		buf_json(out, key);
		buf_char(out, ':');
		buf_str(out, value.ptr != NULL ? value : SHEAF_STR("null"));
	}
	if (out->len != 0)
		buf_char(out, '}');
	return buf_status(out, NULL);
}

/* The facts that make the two agree, and the one that says so. */
static int add_end(session_sync *s, sheaf_error *err)
{
	_cleanup_(drafts_free) draft_list list = {0};
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	_cleanup_(buf_free) buf delta = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	int rc = transfer_fold(&s->t, err);
	if (rc == 0)
		rc = add_settings(s, &list, &body, err);
	if (rc == 0)
		rc = add_branches(s, &list, &body, err);
	if (rc == 0)
		rc = state_delta(s, &delta);
	if (rc == 0)
		rc = sync_cursor_body(s, &body, err);
	if (rc == 0)
		rc = add_fact(&list, "sync", &body, 0,
		              delta.len != 0 ? buf_view(&delta) : (sheaf_str){NULL, 0}, err);
	return rc != 0 ? rc : transfer_drafts(&s->t, &list, err);
}

/* ---- Under new numbers --------------------------------------------------------------------------- */

static void skip_dropped(session_sync *s)
{
	while (s->next < s->row_count && (s->rows[s->next] & ROW_DROPPED) != 0)
		s->next++;
}

/* How many records of the batch that begins here come. */
static uint64_t batch_count(const session_sync *s, const record *r)
{
	uint64_t end = r->seq - r->batch_index + r->batch_count, n = 0;
	for (size_t i = s->next; i < s->row_count && (s->rows[i] & ~ROW_DROPPED) < end; i++)
		n += (s->rows[i] & ROW_DROPPED) == 0;
	return n;
}

static int send_row(void *ctx, const sheaf_row *row)
{
	session_sync *s = ctx;
	transfer *t = &s->t;
	record r;
	char none[SHEAF_SYNC_NAME_BYTES_MAX + 2];
	uint64_t parent = 0;
	int ok = 1;
	if (s->next == s->row_count)
		return 1;
	if (row->seq != s->rows[s->next])
		return 0;
	if (row->damaged || record_scan(&r, row->bytes, t->a) != 0)
		return err_set(&t->err, SHEAF_DAMAGED, "record %llu cannot be read there",
		               (unsigned long long)row->seq);
	if (s->batch_sent == 0) {
		s->batch_rows = batch_count(s, &r);
		if (t->count > 1 && (t->count + s->batch_rows > SHEAF_BATCH_RECORDS_MAX ||
		                     t->bytes > PORTION_BYTES))
			return 1;
	}
	int rc = 0;
	if (r.parent_id.ptr != NULL)
		rc = number_here(s, r.parent_id, &parent, &t->err);
	(void)snprintf(none, sizeof(none), "@%s", s->c->source);
	if (!record_kind_is_fact(r.kind))
		r.branch = branch_here(s, r.branch, none);
	if (rc == 0)
		rc = transfer_restamp(t, &r, r.parent_id, parent, s->batch_sent, s->batch_rows,
		                      &t->err);
	sheaf_str id = arena_dup(t->a, r.id, &ok);
	if (rc == 0 && (!ok || map_set(&s->sent, id, t->rows[t->count - 1].seq) != 0))
		rc = err_nomem(&t->err);
	s->batch_sent = (s->batch_sent + 1) % s->batch_rows;
	s->next++;
	skip_dropped(s);
	return rc;
}

static int fill(session_sync *s, sheaf_error *err)
{
	skip_dropped(s);
	if (s->next == s->row_count)
		return 0;
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = s->rows[s->next],
		.limit = SIZE_MAX,
		.kinds = SHEAF_KINDS_ALL,
	};
	size_t before = s->next;
	int rc = err_pass(err, &s->t.err,
	                  read_scan(s->from, s->from_head, &scan, send_row, s, err));
	if (rc == 0 && (s->next == before || s->batch_sent != 0))
		rc = err_set(err, SHEAF_DAMAGED, "record %llu is missing there",
		             (unsigned long long)s->rows[s->next]);
	return rc;
}

int sync_merge(session_sync *s, sheaf_error *err)
{
	if (s->c->dry_run)
		return 0;
	int rc = transfer_begin_at(&s->t, s->from, s->from_head, s->start + 1, s->to_head, err);
	s->revision = sheaf_head_revision(s->to_head);
	for (bool last = false; rc == 0 && !last;) {
		rc = add_mark(s, err);
		if (rc == 0)
			rc = fill(s, err);
		last = s->next == s->row_count;
		if (rc == 0 && last)
			rc = add_end(s, err);
		if (rc == 0)
			rc = send(s, err);
	}
	return rc;
}

static int load_row(void *ctx, const sheaf_row *row)
{
	return row->damaged ? 0 : state_load_row(ctx, row);
}

int sync_note_cursor(session_sync *s, bool states, sheaf_error *err)
{
	_cleanup_(drafts_free) draft_list list = {0};
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	state_load load = {0};
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = 1,
		.limit = SIZE_MAX,
		.kinds = SHEAF_KINDS_ALL,
	};
	int rc = transfer_begin_at(&s->t, s->from, s->from_head, 1, s->to_head, err);
	s->revision = sheaf_head_revision(s->to_head);
	if (rc == 0 && states && store_states(s->c->here))
		rc = read_scan(s->from, s->from_head, &scan, load_row, &load, err);
	if (rc == 0)
		rc = only_new_state(s, &load, err);
	if (rc == 0)
		rc = sync_cursor_body(s, &body, err);
	if (rc == 0)
		rc = add_fact(&list, "sync", &body, 0, (sheaf_str){NULL, 0}, err);
	if (rc == 0)
		rc = transfer_drafts(&s->t, &list, err);
	if (rc == 0)
		rc = append_rows(s, &load, err);
	if (rc == 0)
		apply_app_state(s, &load);
	state_load_end(&load);
	return rc;
}
