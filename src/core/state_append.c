/*
 * State and appends: values set on a handle ride on the next one, user: values
 * go to the store in the same step, app: values after it.
 */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/read.h"
#include "core/session.h"
#include "core/state.h"
#include "sheaf/state.h"

/* ---- What a store must be told ------------------------------------------ */

void state_load_end(state_load *l)
{
	if (l->a == NULL)
		return;
	arena_free(l->a);
	mem_free(l->user.items);
	mem_free(l->app.items);
	map_free(&l->user.at);
	map_free(&l->app.at);
	*l = (state_load){0};
}

/* Of two that set a key the later counts: in the log, or for an app by time and id. */
static bool counts(const sheaf_state_item *known, const sheaf_state_item *item, bool app)
{
	if (!app)
		return true;
	if (known->time_us != item->time_us)
		return item->time_us > known->time_us;
	return str_cmp(item->id, known->id) > 0;
}

static int items_add(state_items *l, const sheaf_state_item *item, bool app)
{
	uint64_t at;
	if (map_get(&l->at, item->key, &at)) {
		sheaf_str key = l->items[at].key; /* the map points to it */
		if (counts(&l->items[at], item, app))
			l->items[at] = *item;
		l->items[at].key = key;
		return 0;
	}
	if (mem_grow((void **)&l->items, &l->room, l->count + 1, sizeof(*l->items)) != 0 ||
	    map_set(&l->at, item->key, l->count) != 0)
		return SHEAF_NOMEM;
	l->items[l->count++] = *item;
	return 0;
}

/* Takes what one record says. With `keep` its text does not outlive this call. */
static int load_delta(state_load *l, sheaf_str delta, int64_t time_us, sheaf_str id, bool keep)
{
	state_change c;
	int rc, ok = 1;
	if (l->a == NULL && (l->a = arena_new()) == NULL)
		return SHEAF_NOMEM;
	if (keep)
		id = arena_dup(l->a, id, &ok);
	for (size_t at = 0; ok && (rc = state_delta_next(delta, &at, l->a, &c)) != 0;) {
		if (rc < 0)
			return rc;
		if (c.scope != STATE_USER && c.scope != STATE_APP)
			continue;
		sheaf_state_item item = {c.rest, c.value, time_us, id};
		if (keep) {
			item.key = arena_dup(l->a, c.rest, &ok);
			item.value = arena_dup(l->a, c.value, &ok);
		}
		bool app = c.scope == STATE_APP;
		if (ok && items_add(app ? &l->app : &l->user, &item, app) != 0)
			return SHEAF_NOMEM;
	}
	return ok ? 0 : SHEAF_NOMEM;
}

/* A store has this in hand at once, deletions too; sets are bounded by what it may hold. */
static int check_size(const state_items *l, sheaf_error *err)
{
	size_t bytes = 0;
	for (size_t i = 0; i < l->count; i++)
		bytes += l->items[i].key.len + l->items[i].value.len;
	return bytes <= SHEAF_STATE_BYTES_MAX
	               ? 0
	               : err_set(err, SHEAF_LIMIT,
	                         "an append changes more than %zu bytes of the state of a user "
	                         "or an app",
	                         SHEAF_STATE_BYTES_MAX);
}

int state_load_drafts(state_load *l, draft *const *drafts, size_t count, sheaf_error *err)
{
	for (size_t i = 0; i < count; i++) {
		const draft *d = drafts[i];
		if (d->delta_len != 0 &&
		    load_delta(l, draft_delta(d), d->time_us, draft_id(d), false) != 0)
			return err_nomem(err);
	}
	int rc = check_size(&l->user, err);
	return rc != 0 ? rc : check_size(&l->app, err);
}

/* ---- Riding ------------------------------------------------------------- */

static void write_sets(buf *out, const own_values *sets)
{
	buf_reset(out);
	buf_char(out, '{');
	for (size_t i = 0; i < sets->count; i++) {
		if (i != 0)
			buf_char(out, ',');
		buf_json(out, sets->items[i].key);
		buf_char(out, ':');
		buf_str(out, sets->items[i].value.ptr != NULL ? sets->items[i].value
		                                              : SHEAF_STR("null"));
	}
	buf_char(out, '}');
}

/* What the draft is to carry, in `out`; the lock is held. */
static int choose_ride(handle_state *h, state_ride *r, const draft *first, buf *out)
{
	bool again = h->rode_len != 0 && str_eq(draft_id(first), str_make(h->rode_on, h->rode_len));
	if (h->riding || (!again && h->sets.count == 0))
		return 0;
	if (!again) {
		h->rode.max = SHEAF_BODY_BYTES_MAX;
		h->rode_len = 0;
		write_sets(&h->rode, &h->sets);
		if (h->rode.status != 0)
			return h->rode.status;
		memcpy(h->rode_on, first->id, first->id_len);
		h->rode_len = first->id_len;
		h->rode_clock = h->clock;
	}
	buf_str(out, buf_view(&h->rode));
	if (out->status == 0)
		h->riding = r->riding = true;
	return out->status;
}

int state_ride_begin(sheaf_session *s, state_ride *r, draft *first, sheaf_error *err)
{
	_cleanup_(buf_free) buf delta = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	handle_state *h = &s->state;
	r->riding = false;
	if (!atomic_load_explicit(&h->used, memory_order_acquire))
		return 0;
	(void)pthread_mutex_lock(&s->lock);
	int rc = choose_ride(h, r, first, &delta);
	(void)pthread_mutex_unlock(&s->lock);
	if (rc == SHEAF_TOO_LARGE)
		return err_set(err, rc, "the values set are more than a record holds");
	if (rc != 0)
		return err_nomem(err);
	if (!r->riding)
		return 0;
	rc = draft_ride(first, buf_view(&delta), &r->before, err);
	if (rc != 0) {
		(void)pthread_mutex_lock(&s->lock);
		h->riding = r->riding = false;
		(void)pthread_mutex_unlock(&s->lock);
	}
	return rc;
}

void state_ride_end(sheaf_session *s, state_ride *r, draft *first, bool stored)
{
	if (!r->riding)
		return;
	draft_unride(first, &r->before);
	handle_state *h = &s->state;
	(void)pthread_mutex_lock(&s->lock);
	h->riding = false;
	size_t left = 0;
	for (size_t i = 0; stored && i < h->sets.count; i++) {
		/* What was set while it was on its way goes with the next. */
		if (h->sets.items[i].set_at > h->rode_clock)
			h->sets.items[left++] = h->sets.items[i];
		else
			mem_free(h->sets.items[i].text);
	}
	if (stored)
		h->sets.count = left;
	(void)pthread_mutex_unlock(&s->lock);
}

/* ---- App state ---------------------------------------------------------- */

/* What a row changes, or {NULL,0}: its line is an object, and envelope and frame have no such name. */
static sheaf_str row_delta(const sheaf_row *row)
{
	if (row->damaged || row->bytes.len < 2)
		return str_make(NULL, 0);
	return state_delta_of(str_make(row->bytes.ptr + 1, row->bytes.len - 1));
}

int state_load_row(state_load *l, const sheaf_row *row)
{
	sheaf_str delta = row_delta(row);
	if (delta.ptr == NULL)
		return 0;
	_cleanup_(arena_freep) arena *a = arena_new();
	record r;
	int64_t time_us;
	if (a == NULL)
		return SHEAF_NOMEM;
	int rc = record_scan(&r, row->bytes, a);
	if (rc != 0 || !clock_parse(r.timestamp, &time_us))
		return rc == SHEAF_NOMEM ? rc : 0;
	return load_delta(l, delta, time_us, r.id, true);
}

typedef struct replaying {
	state_load load;
	uint64_t last;
} replaying;

static int replay_row(void *ctx, const sheaf_row *row)
{
	replaying *p = ctx;
	return row->seq > p->last ? 1 : state_load_row(&p->load, row);
}

/* Applies the app: values of own records [from, to]. */
static int apply_range(sheaf_session *s, uint64_t from, uint64_t to, uint64_t *applied,
                       sheaf_error *err)
{
	replaying p = {.last = to};
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = from,
		.limit = SIZE_MAX,
		.kinds = SHEAF_KINDS_ALL,
	};
	int rc = store_scan(s->store, &s->key.store, &scan, replay_row, &p, err);
	if (rc == 0 && p.load.app.count != 0)
		rc = store_state_apply(s->store, s->key.store.app, p.load.app.items,
		                       p.load.app.count, err);
	if (rc == 0)
		*applied = p.load.app.count;
	state_load_end(&p.load);
	return rc;
}

/* Remembers that [from, to] is to be applied again. */
static void put_off(sheaf_session *s, uint64_t from, uint64_t to)
{
	handle_state *h = &s->state;
	(void)pthread_mutex_lock(&s->lock);
	atomic_store(&h->used, true);
	if (h->app_from == 0 || from < h->app_from)
		h->app_from = from;
	if (to > h->app_to)
		h->app_to = to;
	(void)pthread_mutex_unlock(&s->lock);
}

static bool try_range(sheaf_session *s, uint64_t from, uint64_t to)
{
	uint64_t applied;
	if (from == 0 || apply_range(s, from, to, &applied, NULL) == 0)
		return true;
	put_off(s, from, to);
	return false;
}

int32_t state_after_append(sheaf_session *s, const state_load *l, uint64_t first, uint64_t last,
                           bool existed)
{
	handle_state *h = &s->state;
	if (l->app.count == 0 && !atomic_load_explicit(&h->used, memory_order_acquire))
		return SHEAF_APP_STATE_NONE;
	(void)pthread_mutex_lock(&s->lock);
	uint64_t from = h->app_from, to = h->app_to;
	h->app_from = h->app_to = 0;
	(void)pthread_mutex_unlock(&s->lock);
	bool ok = try_range(s, from, to);
	if (l->app.count == 0)
		return ok ? SHEAF_APP_STATE_NONE : SHEAF_APP_STATE_PENDING;
	if (existed) /* what is stored has its own time */
		ok = try_range(s, first, last) && ok;
	else if (store_state_apply(s->store, s->key.store.app, l->app.items, l->app.count, NULL) !=
	         0) {
		put_off(s, first, last);
		ok = false;
	}
	return ok ? SHEAF_APP_STATE_APPLIED : SHEAF_APP_STATE_PENDING;
}

int sheaf_session_state_replay(sheaf_session *session, uint64_t *applied, sheaf_error *err)
{
	uint64_t count = 0;
	if (session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	if (!store_states(session->store))
		return err_set(err, SHEAF_UNSUPPORTED, "this store keeps no state of apps");
	_cleanup_(head_freep) sheaf_head *head = NULL;
	int rc = session_peek(session, &head, NULL, err);
	if (rc == 0)
		rc = apply_range(session, head_base(head) + 1, sheaf_head_revision(head), &count,
		                 err);
	if (rc == SHEAF_NOT_FOUND)
		rc = err_set(err, SHEAF_GONE, "the session was deleted");
	if (rc != 0)
		return rc;
	(void)pthread_mutex_lock(&session->lock);
	if (session->state.app_to <= sheaf_head_revision(head))
		session->state.app_from = session->state.app_to = 0;
	(void)pthread_mutex_unlock(&session->lock);
	if (applied != NULL)
		*applied = count;
	return 0;
}

/* ---- As it was ---------------------------------------------------------- */

typedef struct folding {
	state_set *state;
	uint64_t last;
	sheaf_error err;
} folding;

static int fold_row(void *ctx, const sheaf_row *row)
{
	folding *f = ctx;
	if (row->seq > f->last)
		return 1;
	sheaf_str delta = row_delta(row);
	if (delta.ptr == NULL)
		return 0;
	bool app;
	state_set *next;
	int rc = state_apply(&next, f->state, delta, &app, &f->err);
	if (rc != 0)
		return rc;
	state_unref(f->state);
	f->state = next;
	return 0;
}

int state_at(sheaf_session *s, const sheaf_head *head, uint64_t seq, state_set **out,
             sheaf_error *err)
{
	/* At the head, or nothing was ever set: nothing need be read. */
	if (seq >= head_state_seq(head) && (seq > head_base(head) || head_base(head) == 0)) {
		*out = state_ref(head_state(head));
		return 0;
	}
	folding f = {.last = seq};
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = 1,
		.limit = SIZE_MAX,
		.kinds = SHEAF_KINDS_ALL,
	};
	int rc = err_pass(err, &f.err, read_scan(s, head, &scan, fold_row, &f, err));
	if (rc != 0) {
		state_unref(f.state);
		return rc;
	}
	*out = f.state;
	return 0;
}
