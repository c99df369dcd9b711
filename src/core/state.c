/* Scoped state as callers see it: setting on a handle, and reads that merge every scope. */
#include "core/state.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/session.h"
#include "entry/members.h"
#include "sheaf/state.h"

/* ---- Values of a handle ------------------------------------------------- */

static void own_clear(own_values *v)
{
	for (size_t i = 0; i < v->count; i++)
		mem_free(v->items[i].text);
	v->count = 0;
}

void handle_state_free(handle_state *h)
{
	own_clear(&h->sets);
	own_clear(&h->temp);
	mem_free(h->sets.items);
	mem_free(h->temp.items);
	buf_free(&h->rode);
}

/* Where a key is, or would be. */
static size_t own_place(const own_values *v, sheaf_str key, bool *found)
{
	size_t low = 0, high = v->count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (str_cmp(v->items[mid].key, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	*found = low < v->count && str_eq(v->items[low].key, key);
	return low;
}

static int own_set(own_values *v, sheaf_str key, sheaf_str value, uint64_t set_at)
{
	bool found;
	char *text = mem_alloc(key.len + value.len + 2);
	if (text == NULL ||
	    mem_grow((void **)&v->items, &v->room, v->count + 1, sizeof(*v->items)) != 0) {
		mem_free(text);
		return SHEAF_NOMEM;
	}
	memcpy(text, key.ptr, key.len);
	text[key.len] = '\0';
	own_value kept = {text, str_make(text, key.len), str_make(NULL, 0), set_at};
	if (value.ptr != NULL) {
		memcpy(text + key.len + 1, value.ptr, value.len);
		text[key.len + 1 + value.len] = '\0';
		kept.value = str_make(text + key.len + 1, value.len);
	}
	size_t at = own_place(v, key, &found);
	if (found)
		mem_free(v->items[at].text);
	else
		memmove(&v->items[at + 1], &v->items[at], (v->count++ - at) * sizeof(*v->items));
	v->items[at] = kept;
	return 0;
}

/* A caller's value: checked, without blanks around it; {NULL,0} for one that deletes. */
static int take_value(sheaf_str *value, sheaf_error *err)
{
	if (value->ptr == NULL)
		return 0;
	if (value->len > SHEAF_RECORD_BYTES_MAX)
		return err_set(err, SHEAF_LIMIT, "a state value has more than %zu bytes",
		               SHEAF_STATE_VALUE_BYTES_MAX);
	int rc = json_check(*value, JSON_NONE, err);
	if (rc != 0)
		return rc;
	*value = members_trim(*value);
	if (value->len > SHEAF_STATE_VALUE_BYTES_MAX)
		return err_set(err, SHEAF_LIMIT, "a state value has more than %zu bytes",
		               SHEAF_STATE_VALUE_BYTES_MAX);
	/* In a record it lies two levels down. */
	if (members_depth(*value) + 2 > SHEAF_DEPTH_MAX)
		return err_set(err, SHEAF_LIMIT, "JSON nested deeper than %u", SHEAF_DEPTH_MAX);
	if (str_is(*value, "null"))
		*value = str_make(NULL, 0);
	return 0;
}

int sheaf_session_state_set(sheaf_session *session, sheaf_str key, sheaf_str value,
                            sheaf_error *err)
{
	if (session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = state_key_check(key, err);
	if (rc == 0)
		rc = take_value(&value, err);
	if (rc != 0)
		return rc;
	state_scope scope = state_scope_of(key, NULL);
	if (scope != STATE_TEMP && session->readonly)
		return err_set(err, SHEAF_READONLY, "the session was opened for reading only");
	if ((scope == STATE_USER || scope == STATE_APP) && !store_states(session->store))
		return err_set(err, SHEAF_UNSUPPORTED,
		               "this store keeps no state of users and apps");
	handle_state *h = &session->state;
	(void)pthread_mutex_lock(&session->lock);
	atomic_store(&h->used, true);
	rc = own_set(scope == STATE_TEMP ? &h->temp : &h->sets, key, value, ++h->clock);
	(void)pthread_mutex_unlock(&session->lock);
	return rc == 0 ? 0 : err_nomem(err);
}

void state_take_temp(sheaf_session *s, draft *const *drafts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (drafts[i]->temp.len == 0)
			continue;
		_cleanup_(arena_freep) arena *a = arena_new();
		_cleanup_(buf_free) buf object = BUF_INIT(SHEAF_RECORD_BYTES_MAX + 2);
		buf_char(&object, '{');
		buf_str(&object, buf_view(&drafts[i]->temp));
		buf_char(&object, '}');
		if (a == NULL || object.status != 0)
			continue; /* they were never promised to last */
		state_change c;
		(void)pthread_mutex_lock(&s->lock);
		for (size_t at = 0; state_delta_next(buf_view(&object), &at, a, &c) == 1;)
			(void)own_set(&s->state.temp, c.key, c.value, 0);
		(void)pthread_mutex_unlock(&s->lock);
	}
}

void sheaf_session_state_end_invocation(sheaf_session *session)
{
	if (session == NULL)
		return;
	(void)pthread_mutex_lock(&session->lock);
	own_clear(&session->state.temp);
	(void)pthread_mutex_unlock(&session->lock);
}

/* ---- Results ------------------------------------------------------------ */

typedef struct state_box {
	sheaf_state state;
	arena *a;
} state_box;

/* Values on their way into a result. */
typedef struct collecting {
	arena *a;
	map at; /* key → position */
	sheaf_state_value *items;
	size_t count;
	size_t room;
	const char *prefix;
	sheaf_str only; /* this key alone, without its prefix; ptr NULL: all */
} collecting;

static void collecting_end(collecting *c)
{
	arena_free(c->a);
	map_free(&c->at);
	mem_free(c->items);
}

/* Sets a key, or with {NULL,0} takes it out; later ones count. */
static int collect(collecting *c, const char *prefix, sheaf_str key, sheaf_str value)
{
	size_t skip = strlen(prefix);
	int ok = 1;
	char *text = arena_alloc(c->a, skip + key.len + 1);
	sheaf_str kept = arena_dup(c->a, value, &ok);
	if (text == NULL || !ok)
		return SHEAF_NOMEM;
	memcpy(text, prefix, skip);
	memcpy(text + skip, key.ptr, key.len);
	text[skip + key.len] = '\0';
	sheaf_str full = {text, skip + key.len};
	uint64_t at;
	if (map_get(&c->at, full, &at)) {
		c->items[at].value = kept;
		return 0;
	}
	if (mem_grow((void **)&c->items, &c->room, c->count + 1, sizeof(*c->items)) != 0 ||
	    map_set(&c->at, full, c->count) != 0)
		return SHEAF_NOMEM;
	c->items[c->count++] = (sheaf_state_value){full, kept};
	return 0;
}

static int collect_item(void *ctx, const sheaf_state_item *item)
{
	collecting *c = ctx;
	if (item->value.ptr == NULL || (c->only.ptr != NULL && !str_eq(c->only, item->key)))
		return 0;
	return collect(c, c->prefix, item->key, item->value);
}

/* The values of a user or an app, as the store has them. */
static int collect_scope(collecting *c, sheaf_store *store, sheaf_str scope, state_scope which,
                         sheaf_str only, sheaf_error *err)
{
	c->prefix = state_prefix(which);
	c->only = only;
	return store_state_read(store, scope, which == STATE_APP, collect_item, c, err);
}

static int collect_session(collecting *c, sheaf_session *s, sheaf_str only, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	int rc = session_peek(s, &head, NULL, err);
	if (rc != 0)
		return rc;
	const state_set *set = head_state(head);
	for (size_t i = 0; set != NULL && i < set->count; i++) {
		if (only.ptr != NULL && !str_eq(only, set->pairs[i].key))
			continue;
		if (collect(c, "", set->pairs[i].key, set->pairs[i].value) != 0)
			return err_nomem(err);
	}
	return 0;
}

static int collect_own(collecting *c, const own_values *v)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < v->count; i++)
		rc = collect(c, "", v->items[i].key, v->items[i].value);
	return rc;
}

static int compare_values(const void *a, const void *b)
{
	return str_cmp((*(const sheaf_state_value *const *)a)->key,
	               (*(const sheaf_state_value *const *)b)->key);
}

/* What was collected, as a result of the caller's. */
static int collect_give(collecting *c, sheaf_state **out, sheaf_error *err)
{
	state_box *box = arena_zalloc(c->a, sizeof(*box));
	sheaf_state_value *values = arena_alloc(c->a, (c->count + 1) * sizeof(*values));
	const sheaf_state_value **list = arena_alloc(c->a, (c->count + 1) * sizeof(*list));
	if (box == NULL || values == NULL || list == NULL)
		return err_nomem(err);
	size_t count = 0;
	for (size_t i = 0; i < c->count; i++) {
		if (c->items[i].value.ptr == NULL)
			continue;
		values[count] = c->items[i];
		list[count] = &values[count];
		count++;
	}
	if (count > 1)
		qsort(list, count, sizeof(*list), compare_values);
	box->state = (sheaf_state){count, list};
	box->a = c->a;
	c->a = NULL;
	*out = &box->state;
	return 0;
}

void sheaf_state_free(const sheaf_state *state)
{
	if (state != NULL)
		arena_free(((const state_box *)(const void *)state)->a);
}

static int no_memory_or(int rc, sheaf_error *err)
{
	return rc == SHEAF_NOMEM ? err_nomem(err) : rc;
}

/* ---- Reading ------------------------------------------------------------ */

static int collect_all(collecting *c, sheaf_session *s, sheaf_error *err)
{
	const sheaf_str all = {NULL, 0};
	int rc = 0;
	if (store_states(s->store)) {
		rc = collect_scope(c, s->store, s->key.store.app, STATE_APP, all, err);
		if (rc == 0)
			rc = collect_scope(c, s->store, s->key.store.owner, STATE_USER, all, err);
	}
	if (rc == 0)
		rc = collect_session(c, s, all, err);
	if (rc != 0)
		return rc;
	(void)pthread_mutex_lock(&s->lock);
	rc = collect_own(c, &s->state.sets);
	if (rc == 0)
		rc = collect_own(c, &s->state.temp);
	(void)pthread_mutex_unlock(&s->lock);
	return no_memory_or(rc, err);
}

int sheaf_session_state_all(sheaf_state **out, sheaf_session *session, sheaf_error *err)
{
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	_cleanup_(collecting_end) collecting c = {.a = arena_new()};
	if (c.a == NULL)
		return err_nomem(err);
	int rc = collect_all(&c, session, err);
	return rc == 0 ? collect_give(&c, out, err) : rc;
}

/* Whether this handle itself knows the key: 1 with it collected, 0, SHEAF_NOMEM. */
static int collect_known(collecting *c, sheaf_session *s, sheaf_str key, state_scope scope)
{
	const own_values *v = scope == STATE_TEMP ? &s->state.temp : &s->state.sets;
	bool found;
	int rc = 0;
	(void)pthread_mutex_lock(&s->lock);
	size_t at = own_place(v, key, &found);
	if (found)
		rc = collect(c, "", key, v->items[at].value);
	(void)pthread_mutex_unlock(&s->lock);
	return rc != 0 ? rc : found;
}

int sheaf_session_state_get(sheaf_state **out, sheaf_session *session, sheaf_str key,
                            sheaf_error *err)
{
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = state_key_check(key, err);
	if (rc != 0)
		return rc;
	_cleanup_(collecting_end) collecting c = {.a = arena_new()};
	if (c.a == NULL)
		return err_nomem(err);
	sheaf_str rest;
	state_scope scope = state_scope_of(key, &rest);
	int known = collect_known(&c, session, key, scope);
	if (known < 0)
		return err_nomem(err);
	if (known == 0 && scope == STATE_SESSION)
		rc = collect_session(&c, session, rest, err);
	else if (known == 0 && scope != STATE_TEMP)
		rc = collect_scope(&c, session->store,
		                   scope == STATE_APP ? session->key.store.app
		                                      : session->key.store.owner,
		                   scope, rest, err);
	if (rc != 0)
		return rc;
	if (c.count == 0 || c.items[0].value.ptr == NULL)
		return err_set(err, SHEAF_NOT_FOUND, "the state has no such key");
	return collect_give(&c, out, err);
}

/* ---- On a store --------------------------------------------------------- */

int sheaf_store_state(sheaf_state **out, sheaf_store *store, sheaf_str app, sheaf_str user,
                      sheaf_error *err)
{
	const sheaf_str all = {NULL, 0};
	if (out == NULL || store == NULL)
		return err_set(err, SHEAF_INVALID, "no store was given");
	sheaf_key key = {app, user, SHEAF_STR("-")};
	key_box box;
	int rc = key_box_init(&box, &key, err);
	if (rc != 0)
		return rc;
	_cleanup_(collecting_end) collecting c = {.a = arena_new()};
	if (c.a == NULL)
		return err_nomem(err);
	rc = user.ptr != NULL ? collect_scope(&c, store, box.store.owner, STATE_USER, all, err)
	                      : collect_scope(&c, store, box.store.app, STATE_APP, all, err);
	return rc == 0 ? collect_give(&c, out, err) : rc;
}

typedef struct latest {
	sheaf_str key;
	int64_t time_us;
} latest;

static int latest_time(void *ctx, const sheaf_state_item *item)
{
	latest *l = ctx;
	if (!str_eq(l->key, item->key))
		return 0;
	l->time_us = item->time_us;
	return 1;
}

int sheaf_store_state_set(sheaf_store *store, sheaf_str app, sheaf_str key, sheaf_str value,
                          sheaf_error *err)
{
	if (store == NULL)
		return err_set(err, SHEAF_INVALID, "no store was given");
	char prefixed[SHEAF_STATE_KEY_BYTES_MAX + 8], id[SHEAF_ID_ROOM], scope[SHEAF_KEY_PART_ROOM];
	sheaf_str full = key;
	if (key.len != 0 && key.len <= SHEAF_STATE_KEY_BYTES_MAX &&
	    state_scope_of(key, NULL) == STATE_SESSION) {
		memcpy(prefixed, "app:", 4);
		memcpy(prefixed + 4, key.ptr, key.len);
		full = str_make(prefixed, key.len + 4);
	}
	int rc = state_key_check(full, err);
	if (rc == 0 && state_scope_of(full, &full) != STATE_APP)
		rc = err_set(err, SHEAF_INVALID, "only an app's values can be set by themselves");
	if (rc == 0)
		rc = take_value(&value, err);
	if (rc == 0)
		rc = sheaf_key_encode(scope, app, err);
	if (rc == 0)
		rc = sheaf_id_new(id, err);
	if (rc != 0)
		return rc;
	/* Whoever sets it now has seen what is there: a clock that went ahead must not win. */
	latest l = {full, INT64_MIN};
	rc = store_state_read(store, sheaf_str_of(scope), 1, latest_time, &l, err);
	if (rc != 0)
		return rc;
	int64_t now = clock_now_us();
	sheaf_state_item item = {full, value, now > l.time_us ? now : l.time_us + 1,
	                         sheaf_str_of(id)};
	return store_state_apply(store, sheaf_str_of(scope), &item, 1, err);
}
