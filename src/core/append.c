/*
 * The one way from core to a store's append: resolve what is named, stamp on
 * the head the store has, tell a repeat from a conflict.
 */
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/read.h"
#include "core/write.h"
#include "entry/members.h"

void appended_set(sheaf_appended *out, const sheaf_appended *full)
{
	if (out == NULL)
		return;
	size_t size = out->size < sizeof(*out) ? out->size : sizeof(*out);
	if (size > sizeof(out->size))
		memcpy((char *)out + sizeof(out->size), (const char *)full + sizeof(out->size),
		       size - sizeof(out->size));
}

static void appended_answer(sheaf_appended *out, const append *a, uint64_t first_seq, bool existed,
                            int32_t durability)
{
	if (out == NULL)
		return;
	sheaf_appended full = SHEAF_APPENDED_INIT;
	const draft *last = a->drafts[a->count - 1];
	str_copy_cut(full.id, sizeof(full.id), draft_id(last));
	if (first_seq != 0) {
		full.first_seq = first_seq;
		full.seq = first_seq + a->count - 1;
	}
	full.existed = existed;
	full.durability = durability;
	appended_set(out, &full);
}

/* ---- Expectations ------------------------------------------------------- */

/* Works out what is expected before anything is read that this handle would then have seen. */
static int expect_take(sheaf_session *s, append *a, char room[SHEAF_ID_ROOM], sheaf_error *err)
{
	a->expect = OPTION(a->how, expect, SHEAF_EXPECT_DEFAULT);
	if (a->expect < SHEAF_EXPECT_DEFAULT || a->expect > SHEAF_EXPECT_REVISION)
		return err_set(err, SHEAF_INVALID, "unknown expectation %d", (int)a->expect);
	a->leaf = OPTION(a->how, leaf, ((sheaf_str){NULL, 0}));
	a->revision = OPTION(a->how, revision, 0);
	if (a->expect == SHEAF_EXPECT_DEFAULT && !a->is_turn)
		a->expect = SHEAF_EXPECT_ANY;
	if (a->expect != SHEAF_EXPECT_DEFAULT)
		return 0;
	head_branch b;
	a->expect = SHEAF_EXPECT_LEAF;
	a->leaf = (sheaf_str){NULL, 0};
	(void)pthread_mutex_lock(&s->lock);
	if (head_branch_find(s->seen, a->branch, &b) && b.leaf_seq != 0) {
		str_copy_cut(room, SHEAF_ID_ROOM, b.leaf);
		a->leaf = str_make(room, b.leaf.len);
	}
	(void)pthread_mutex_unlock(&s->lock);
	return 0;
}

static int expect_check(const append *a, const sheaf_head *head, sheaf_error *err)
{
	head_branch b = {.leaf_seq = 0};
	uint64_t revision = sheaf_head_revision(head);
	bool there = head_branch_find(head, a->branch, &b);
	sheaf_str leaf = there && b.leaf_seq != 0 ? b.leaf : (sheaf_str){"", 0};
	bool met = true;
	if (a->expect == SHEAF_EXPECT_LEAF)
		met = str_eq(a->leaf, leaf);
	else if (a->expect == SHEAF_EXPECT_REVISION)
		met = a->revision == revision;
	if (met) {
		if (a->branch_must_exist && !there)
			return err_set(err, SHEAF_NOT_FOUND, "there is no such branch");
		return 0;
	}
	int rc = err_set(err, SHEAF_STALE,
	                 a->expect == SHEAF_EXPECT_LEAF
	                         ? "the branch does not end where expected"
	                         : "the session is not at the expected revision");
	err_hint(err, "read what was added, then append again");
	if (err != NULL) {
		err->revision = revision;
		str_copy_cut(err->leaf, sizeof(err->leaf), leaf);
	}
	return rc;
}

/* ---- What is named ------------------------------------------------------ */

/* The work of one append_run(). */
typedef struct work {
	sheaf_session *s;
	append *a;
	sheaf_head *head; /* loaded when something must be looked up */
	map ids;          /* of the batch: id → position */
	state_load load;  /* what it changes of the user's and the app's state */
} work;

/* The head, without having seen it: a turn still expects what the caller saw. */
static int work_head(work *w, sheaf_error *err)
{
	if (w->head != NULL)
		return 0;
	_cleanup_(head_freep) sheaf_head *head = sheaf_head_new();
	if (head == NULL)
		return err_nomem(err);
	sheaf_head_state state = {0};
	int rc = store_head(w->s->store, &w->s->key.store, 0, head, &state, err);
	if (rc == SHEAF_NOT_FOUND)
		return err_set(err, SHEAF_GONE, "the session was deleted");
	if (rc == 0 && !w->a->revive)
		rc = expiry_check(head, &state, SHEAF_GONE, err);
	if (rc != 0)
		return rc;
	w->head = head;
	head = NULL;
	return 0;
}

/* Whether the id is an earlier entry of the batch; SHEAF_INVALID if it is a fact. */
static int find_in_batch(const work *w, sheaf_str id, const char *what, uint64_t *at, bool *found,
                         sheaf_error *err)
{
	*found = w->a->count > 1 && map_get(&w->ids, id, at);
	if (*found && record_kind_is_fact(w->a->drafts[*at]->kind))
		return err_set(err, SHEAF_INVALID, "%s must be an entry, not a fact", what);
	return 0;
}

static int no_parent(sheaf_error *err)
{
	return err_set(err, SHEAF_NOT_FOUND, "there is no such entry or label");
}

/*
 * Finds a given parent. One that is not there is no mistake yet: it may have been
 * a label when the record was stored that this is a repeat of.
 */
static int resolve_parent(work *w, draft *d, sheaf_error *err)
{
	sheaf_str given = str_make(d->parent_id, d->parent_len);
	uint64_t at;
	bool found;
	int rc = find_in_batch(w, given, "a parent", &at, &found, err);
	if (rc != 0)
		return rc;
	if (found) {
		d->parent_seq = PARENT_IN_BATCH | at;
		return 0;
	}
	rc = work_head(w, err);
	if (rc != 0)
		return rc;
	char id[SHEAF_ID_ROOM];
	uint64_t seq;
	sheaf_error local = {0};
	rc = read_resolve(w->s, w->head, given, id, &seq, &local);
	bool named = rc == SHEAF_NOT_FOUND || (rc == 0 && !str_is(given, id));
	if (named && d->parent_name_len == 0) {
		memcpy(d->parent_name, d->parent_id, d->parent_len + 1);
		d->parent_name_len = d->parent_len;
	}
	if (rc == SHEAF_NOT_FOUND && !d->id_fresh) {
		w->a->unresolved = true;
		return 0;
	}
	if (rc != 0)
		return err_pass(err, &local, rc);
	d->parent_seq = seq;
	d->parent_len = strlen(id);
	memcpy(d->parent_id, id, d->parent_len + 1);
	return 0;
}

/* A record of the caller's own JSON names entries by id only: its bytes are stored as they are. */
static int target_seq(work *w, sheaf_str id, const char *what, uint64_t *seq, bool *in_batch,
                      sheaf_error *err)
{
	int rc = find_in_batch(w, id, what, seq, in_batch, err);
	if (rc != 0 || *in_batch)
		return rc;
	rc = work_head(w, err);
	return rc != 0 ? rc : read_entry_seq(w->s, w->head, id, seq, err);
}

static int check_label(work *w, draft *d, sheaf_error *err)
{
	if (d->parent_seq != 0)
		return 0; /* sheaf_session_label() resolved it */
	sheaf_str payload = members_find(buf_view(&d->body), "label");
	int rc = json_parse(&w->a->scratch->doc, payload, err);
	if (rc != 0)
		return rc;
	sheaf_str target = json_string(json_get(json_root(w->a->scratch->doc), "target_id"));
	if (target.len == 0)
		return err_set(err, SHEAF_INVALID, "a label needs a target");
	uint64_t seq;
	bool in_batch;
	return target_seq(w, target, "the target of a label", &seq, &in_batch, err);
}

static int check_leaf(work *w, draft *d, sheaf_error *err)
{
	if (d->parent_seq != 0)
		return 0; /* made by sheaf_session_branch() and its like */
	sheaf_str payload = members_find(buf_view(&d->body), "leaf");
	int rc = json_parse(&w->a->scratch->doc, payload, err);
	if (rc != 0)
		return rc;
	const json_val *leaf = json_root(w->a->scratch->doc);
	const json_val *entry = json_get(leaf, "entry_id"), *number = json_get(leaf, "entry_seq");
	sheaf_str branch = json_string(json_get(leaf, "branch")), id = json_string(entry);
	if (branch.len == 0)
		return err_set(err, SHEAF_INVALID, "a leaf record names its branch");
	if (entry == NULL) {
		if (str_is(branch, "main"))
			return err_set(err, SHEAF_INVALID, "main cannot be deleted");
		return 0;
	}
	uint64_t seq = 0, said;
	bool in_batch = false;
	if (json_type_of(entry) != JSON_NULL) {
		if (id.len == 0)
			return err_set(err, SHEAF_INVALID, "entry_id is an id or null");
		rc = target_seq(w, id, "the target of a branch", &seq, &in_batch, err);
		if (rc != 0)
			return rc;
		if (in_batch)
			return err_set(err, SHEAF_INVALID,
			               "a leaf record cannot name an entry of its own batch");
	}
	/* The number is there so that a log can be read alone; a wrong one would mislead. */
	if (number == NULL ? seq != 0 : !json_u64(number, &said) || said != seq)
		return err_set(err, SHEAF_INVALID, "entry_seq is not the number of that entry");
	return 0;
}

/* Looks at every draft once: ids are different, and what is named is there. */
static int resolve_each(work *w, sheaf_error *err)
{
	for (size_t i = 0; i < w->a->count; i++) {
		draft *d = w->a->drafts[i];
		int rc = 0;
		if (d->kind == SHEAF_KIND_LABEL)
			rc = check_label(w, d, err);
		else if (d->kind == SHEAF_KIND_LEAF)
			rc = check_leaf(w, d, err);
		else if (!record_kind_is_fact(d->kind) && d->has_parent && d->parent_len != 0)
			rc = resolve_parent(w, d, err);
		if (rc != 0)
			return rc;
		if (w->a->count == 1)
			break;
		uint64_t other;
		if (map_get(&w->ids, draft_id(d), &other))
			return err_set(err, SHEAF_INVALID,
			               "two records of the batch have the same id");
		if (map_set(&w->ids, draft_id(d), i) != 0)
			return err_nomem(err);
	}
	return 0;
}

static int resolve_all(work *w, sheaf_error *err)
{
	int rc = resolve_each(w, err);
	/* What is wrong besides cannot be stored already: the first mistake is the one to tell. */
	return rc != 0 && rc != SHEAF_NOMEM && w->a->unresolved ? no_parent(err) : rc;
}

/* ---- What exists -------------------------------------------------------- */

static int scratch_room(scratch *sc, size_t count, sheaf_error *err)
{
	if (count <= sc->room)
		return 0;
	sheaf_str *ids = mem_resize(sc->ids, count * sizeof(*ids));
	if (ids == NULL)
		return err_nomem(err);
	sc->ids = ids;
	uint64_t *seqs = mem_resize(sc->seqs, count * sizeof(*seqs));
	if (seqs == NULL)
		return err_nomem(err);
	sc->seqs = seqs;
	sc->room = count;
	return 0;
}

/* A stored parent, and the name by which the same one may have been given. */
typedef struct renamed {
	sheaf_str parent;
	sheaf_str name;
	bool found;
} renamed;

typedef struct compare {
	const append *a;
	size_t at;
	bool same;
	arena *room;
	renamed *others; /* parents that are other ones now */
	size_t other_count;
} compare;

/* Whether the parent is the same, as far as that can be said without looking at labels. */
static bool compare_parent(compare *c, const record *r, const draft *d)
{
	int ok = 1;
	if (record_same_parent(r, d))
		return true;
	if (d->parent_name_len == 0 || r->parent_id.ptr == NULL)
		return false;
	c->others[c->other_count++] = (renamed){
		.parent = arena_dup(c->room, r->parent_id, &ok),
		.name = str_make(d->parent_name, d->parent_name_len),
	};
	return ok != 0;
}

static int compare_row(void *ctx, const sheaf_row *row)
{
	compare *c = ctx;
	record r;
	c->same = !row->damaged && record_scan(&r, row->bytes, c->room) == 0 &&
	          r.batch_count == c->a->count && r.batch_index == c->at &&
	          record_same_but_parent(&r, c->a->drafts[c->at]) &&
	          compare_parent(c, &r, c->a->drafts[c->at]);
	c->at++;
	return c->same ? 0 : 1;
}

static int take_name(void *ctx, const label_row *row)
{
	compare *c = ctx;
	for (size_t i = 0; i < c->other_count; i++) {
		renamed *o = &c->others[i];
		o->found = o->found ||
		           (str_eq(o->name, row->label) && str_eq(o->parent, row->target));
	}
	return 0;
}

/* A label may have been moved or taken away since: what counts is that it once named the parent. */
static int compare_names(work *w, compare *c, sheaf_error *err)
{
	int rc = read_label_rows(w->s, w->head, take_name, c, err);
	for (size_t i = 0; i < c->other_count; i++)
		c->same = c->same && c->others[i].found;
	return rc;
}

/* Whether the ids are stored as this very batch: side by side, and each with the same content. */
static int compare_stored(work *w, bool inherited, const uint64_t *seqs, size_t known, bool *same,
                          sheaf_error *err)
{
	*same = false;
	if (known != w->a->count)
		return 0;
	for (size_t i = 0; i < known; i++) {
		if (seqs[i] == 0 || seqs[i] != seqs[0] + i)
			return 0;
	}
	_cleanup_(arena_freep) arena *room = arena_new();
	if (room == NULL)
		return err_nomem(err);
	compare c = {.a = w->a, .room = room};
	c.others = arena_zalloc(room, known * sizeof(*c.others));
	if (c.others == NULL)
		return err_nomem(err);
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = seqs[0],
		.limit = known,
		.kinds = SHEAF_KINDS_ALL,
	};
	int rc = inherited ? read_scan(w->s, w->head, &scan, compare_row, &c, err)
	                   : store_scan(w->s->store, &w->s->key.store, &scan, compare_row, &c, err);
	if (rc == 0 && c.same && c.other_count != 0)
		rc = compare_names(w, &c, err);
	*same = rc == 0 && c.same && c.at == known;
	return rc;
}

/* The last entry of the batch, or NULL if it has only facts. */
static const draft *last_entry(const append *a)
{
	for (size_t i = a->count; i-- > 0;) {
		if (!record_kind_is_fact(a->drafts[i]->kind))
			return a->drafts[i];
	}
	return NULL;
}

/*
 * A repeat of what is stored. If the branch still ends with it, this handle has
 * seen the present; if others have gone on from there, its next turn must learn
 * that by STALE.
 */
static void saw_existing(work *w)
{
	const draft *last = last_entry(w->a);
	if (last == NULL)
		return;
	head_freep(&w->head);
	if (work_head(w, NULL) != 0)
		return;
	head_branch b;
	if (head_branch_find(w->head, str_make(last->branch, last->branch_len), &b) &&
	    str_eq(b.leaf, draft_id(last)))
		session_saw(w->s, w->head);
}

/* Whether it moves a branch: an entry, or a leaf record. */
static bool moves_branch(const append *a)
{
	for (size_t i = 0; i < a->count; i++) {
		if (a->drafts[i]->kind == SHEAF_KIND_LEAF)
			return true;
	}
	return last_entry(a) != NULL;
}

/*
 * What was just stored. A fact beside the conversation shows nothing of what
 * others have said meanwhile: the handle's next turn must learn that by STALE.
 */
static void saw_stored(sheaf_session *s, const append *a)
{
	const sheaf_head *after = a->scratch->after;
	(void)pthread_mutex_lock(&s->lock);
	bool alone = sheaf_head_revision(s->seen) + a->count == sheaf_head_revision(after);
	(void)pthread_mutex_unlock(&s->lock);
	if (alone || moves_branch(a))
		session_saw(s, after);
}

/* After it is stored, whenever that was: what the records say to the app and to this handle. */
static void state_done(const work *w, uint64_t first, bool existed, sheaf_appended *out)
{
	sheaf_session *s = w->s;
	append *a = w->a;
	state_take_temp(s, a->drafts, a->count);
	int32_t app_state = state_after_append(s, &w->load, first, first + a->count - 1, existed);
	if (out != NULL &&
	    out->size >= offsetof(sheaf_appended, app_state) + sizeof(out->app_state))
		out->app_state = app_state;
}

static int answer_existing(work *w, bool inherited, const uint64_t *seqs, size_t known,
                           int32_t durability, sheaf_appended *out, sheaf_error *err)
{
	bool same;
	int rc = compare_stored(w, inherited, seqs, known, &same, err);
	if (rc != 0) /* stored it is, but as what could not be read */
		return err_unknown(err, rc);
	if (!same)
		return err_set(err, SHEAF_CONFLICT,
		               w->a->count == 1
		                       ? "the id is stored with other content"
		                       : "some of these ids are stored, but not as this batch");
	appended_answer(out, w->a, seqs[0], true, durability);
	if (!inherited) {
		saw_existing(w);
		state_done(w, seqs[0], true, out);
	}
	return 0;
}

static bool is_fork(sheaf_session *s)
{
	(void)pthread_mutex_lock(&s->lock);
	bool fork = head_base(s->seen) != 0;
	(void)pthread_mutex_unlock(&s->lock);
	return fork;
}

/*
 * Looks ids up in what a fork inherits. The store's own look-up ends at the
 * fork's log; what is inherited never changes, so there is no race.
 */
static int find_inherited(work *w, size_t id_count, size_t *known, sheaf_error *err)
{
	scratch *sc = w->a->scratch;
	*known = 0;
	if (id_count == 0 || !is_fork(w->s))
		return 0;
	int rc = work_head(w, err);
	for (size_t i = 0; rc == 0 && i < id_count; i++) {
		sheaf_error local;
		rc = read_find_inherited(w->s, w->head, sc->ids[i], &sc->seqs[i], &local);
		if (rc == 0) {
			(*known)++;
		} else if (rc == SHEAF_NOT_FOUND) {
			sc->seqs[i] = 0;
			rc = 0;
		} else if (err != NULL) {
			*err = local;
		}
	}
	return rc;
}

/* ---- Appending ---------------------------------------------------------- */

/* A session that was deleted and made again under the same key is another one: what was resolved
 * in the old one means nothing in it. */
static bool same_session(const sheaf_head *a, const sheaf_head *b)
{
	sheaf_session_info x, y;
	sheaf_head_info(a, &x);
	sheaf_head_info(b, &y);
	return x.created_us == y.created_us && x.base == y.base && x.revision <= y.revision;
}

static int append_stamp(void *ctx, const sheaf_head *head, sheaf_head *next, const sheaf_row **out,
                        size_t *count, sheaf_error *err)
{
	append *a = ctx;
	rows *r = &a->scratch->rows;
	a->refused = true;
	if (head == NULL || sheaf_head_hidden(head) ||
	    (a->resolved_on != NULL && !same_session(a->resolved_on, head)))
		return err_set(err, SHEAF_GONE, "the session was deleted");
	if (a->unresolved)
		return no_parent(err);
	int rc = expect_check(a, head, err);
	if (rc == 0)
		rc = sheaf_head_copy(next, head, err);
	if (rc != 0)
		return rc;
	rows_reset(r);
	(void)buf_reserve(&r->bytes, a->bytes_hint < r->bytes.max ? a->bytes_hint : 0);
	a->first_seq = sheaf_head_revision(head) + 1;
	rc = rows_stamp(r, next, a->drafts, a->count, &a->scratch->doc, err);
	if (rc == 0)
		rc = sheaf_head_copy(a->scratch->after, next, err);
	if (rc != 0)
		return rc;
	rows_close(r);
	*out = r->items;
	*count = r->count;
	a->refused = false;
	return 0;
}

static size_t bytes_hint(const append *a)
{
	size_t bytes = 0;
	for (size_t i = 0; i < a->count; i++)
		bytes += a->drafts[i]->body.len + 256;
	return bytes;
}

static int64_t deadline_take(const sheaf_append_options *how)
{
	int64_t wait = OPTION(how, deadline_us, 0);
	if (wait <= 0)
		return 0;
	int64_t now = clock_monotonic_us();
	return wait > INT64_MAX - now ? INT64_MAX : now + wait;
}

/* A store on another machine need not ask for a head that this handle has just seen. */
static int known_take(sheaf_session *s, scratch *sc, const sheaf_head **known, sheaf_error *err)
{
	*known = NULL;
	if (!store_remote(s->store))
		return 0;
	(void)pthread_mutex_lock(&s->lock);
	int rc = sheaf_head_copy(sc->known, s->seen, err);
	(void)pthread_mutex_unlock(&s->lock);
	*known = sc->known;
	return rc;
}

static int append_work(work *w, sheaf_appended *out, sheaf_error *err)
{
	append *a = w->a;
	scratch *sc = a->scratch;
	int rc = resolve_all(w, err);
	if (rc == 0)
		rc = scratch_room(sc, a->count, err);
	if (rc != 0)
		return rc;
	rc = state_load_drafts(&w->load, a->drafts, a->count, err);
	if (rc == 0 && w->load.app.count != 0 && !store_states(w->s->store))
		rc = err_set(err, SHEAF_UNSUPPORTED, "this store keeps no state of apps");
	if (rc != 0)
		return rc;
	size_t id_count = 0, known;
	for (size_t i = 0; i < a->count; i++) {
		if (!a->drafts[i]->id_fresh)
			sc->ids[id_count++] = draft_id(a->drafts[i]);
	}
	rc = find_inherited(w, id_count, &known, err);
	if (rc != 0)
		return rc;
	if (known != 0)
		return answer_existing(w, true, sc->seqs, known, 0, out, err);
	const sheaf_head *seen;
	rc = known_take(w->s, sc, &seen, err);
	if (rc != 0)
		return rc;

	a->bytes_hint = bytes_hint(a);
	sheaf_append_request request = {
		.size = sizeof(request),
		.stamp = append_stamp,
		.ctx = a,
		.ids = sc->ids,
		.id_count = id_count,
		.seqs = sc->seqs,
		.bytes_hint = a->bytes_hint,
		.durability = OPTION(a->how, durability, 0),
		.deadline_us = deadline_take(a->how),
		.known = seen,
		.user_state = w->load.user.items,
		.user_state_count = w->load.user.count,
		.revive = a->revive,
	};
	sheaf_append_reply reply;
	a->refused = false;
	a->resolved_on = w->head;
	rc = store_append(w->s->store, &w->s->key.store, &request, &reply, err);
	for (size_t i = 0; i < a->count; i++)
		a->drafts[i]->id_fresh = false;
	if (rc == SHEAF_NOT_FOUND && !a->refused)
		return err_rename(err, SHEAF_GONE, "the session was deleted");
	if (rc != 0)
		return rc;
	if (reply.known != 0)
		return answer_existing(w, false, sc->seqs, reply.known, reply.durability, out, err);
	appended_answer(out, a, a->first_seq, false, reply.durability);
	saw_stored(w->s, a);
	state_done(w, a->first_seq, false, out);
	return 0;
}

int append_run(sheaf_session *s, append *a, sheaf_appended *out, sheaf_error *err)
{
	char leaf[SHEAF_ID_ROOM];
	if (a->count == 0)
		return err_set(err, SHEAF_INVALID, "there is nothing to append");
	appended_answer(out, a, 0, false, 0);
	if (a->count > SHEAF_BATCH_RECORDS_MAX)
		return err_set(err, SHEAF_LIMIT, "a batch holds at most %u records",
		               SHEAF_BATCH_RECORDS_MAX);
	if (s->readonly)
		return err_set(err, SHEAF_READONLY, "the session was opened for reading only");
	int rc = expect_take(s, a, leaf, err);
	if (rc != 0)
		return rc;
	a->scratch = scratch_take(s);
	if (a->scratch == NULL)
		return err_nomem(err);
	work w = {.s = s, .a = a};
	state_ride ride;
	rc = state_ride_begin(s, &ride, a->drafts[0], err);
	if (rc == 0) {
		rc = append_work(&w, out, err);
		state_ride_end(s, &ride, a->drafts[0], rc == 0);
	}
	scratch_give(s, a->scratch);
	state_load_end(&w.load);
	map_free(&w.ids);
	sheaf_head_free(w.head);
	return rc;
}

int session_append(sheaf_session *s, draft *const *drafts, size_t count,
                   const sheaf_append_options *how, bool is_turn, sheaf_appended *out,
                   sheaf_error *err)
{
	append a = {.drafts = drafts, .count = count, .is_turn = is_turn, .how = how};
	for (size_t i = 0; i < count; i++) {
		if (!record_kind_is_fact(drafts[i]->kind)) {
			a.branch = str_make(drafts[i]->branch, drafts[i]->branch_len);
			break;
		}
	}
	return append_run(s, &a, out, err);
}
