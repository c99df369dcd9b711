/* The queue of a session: input that waits, claimed under a lease and acknowledged by a token. */
#include "sheaf/queue.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uuid.h"
#include "core/session.h"
#include "entry/check.h"

#define LEASE_DEFAULT_US INT64_C(60000000)
#define LEASE_MAX_US (INT64_C(86400) * 1000000)

/* ---- What every call begins with ---------------------------------------- */

/* The session must be there, and not expired. The store's own check decides if it goes meanwhile. */
static int begin(sheaf_session *s, bool write, sheaf_head_state *state, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	if (s == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	if (write && s->readonly)
		return err_set(err, SHEAF_READONLY, "the session was opened for reading only");
	return session_peek(s, &head, state, err);
}

/* What a store says of a session that is not there any more. */
static int finish(int rc, sheaf_error *err)
{
	return rc == SHEAF_NOT_FOUND ? err_rename(err, SHEAF_GONE, "the session was deleted") : rc;
}

/* Ids of items and tokens of claims. */
static int check_name(sheaf_str name, const char *what, sheaf_error *err)
{
	if (name.ptr == NULL || name.len == 0)
		return err_set(err, SHEAF_INVALID, "%s is empty", what);
	if (name.len > SHEAF_ID_BYTES_MAX)
		return err_set(err, SHEAF_LIMIT, "%s is longer than %u bytes", what,
		               SHEAF_ID_BYTES_MAX);
	return check_plain(name) ? 0
	                         : err_set(err, SHEAF_INVALID, "%s is not plain UTF-8 text", what);
}

/* ---- Producers ---------------------------------------------------------- */

static int check_item(sheaf_str content, sheaf_str environment, sheaf_error *err)
{
	if (content.ptr == NULL)
		return err_set(err, SHEAF_INVALID, "no content was given");
	int rc = text_check(content, SHEAF_QUEUE_ITEM_BYTES_MAX, "content", err);
	if (rc != 0 || environment.ptr == NULL)
		return rc;
	if (environment.len > SHEAF_QUEUE_ITEM_BYTES_MAX - content.len)
		return err_set(err, SHEAF_LIMIT,
		               "content and environment have %zu bytes; at most %zu are allowed",
		               content.len + environment.len, SHEAF_QUEUE_ITEM_BYTES_MAX);
	return json_check(environment, JSON_NONE, err);
}

static int item_id(char out[SHEAF_ID_ROOM], sheaf_str given, sheaf_error *err)
{
	if (given.ptr == NULL)
		return uuid7_new(out, err);
	int rc = check_name(given, "the item's id", err);
	if (rc != 0)
		return rc;
	memcpy(out, given.ptr, given.len);
	out[given.len] = '\0';
	return 0;
}

int sheaf_session_enqueue(sheaf_session *session, sheaf_str content,
                          const sheaf_enqueue_options *options, sheaf_enqueued *out,
                          sheaf_error *err)
{
	sheaf_str none = {NULL, 0}, environment = OPTION(options, environment, none);
	char id[SHEAF_ID_ROOM] = "";
	int32_t existed = 0;
	int rc = item_id(id, OPTION(options, id, none), err);
	if (rc == 0)
		rc = check_item(content, environment, err);
	if (rc == 0 && out != NULL && out->size >= sizeof(*out))
		memcpy(out->id, id, sizeof(id));
	if (rc == 0)
		rc = begin(session, true, NULL, err);
	if (rc != 0)
		return rc;
	sheaf_queue_row row = {
		.id = sheaf_str_of(id),
		.content = content,
		.environment = environment,
		.priority = OPTION(options, priority, 0),
	};
	rc = finish(store_queue_put(session->store, &session->key.store, &row, &existed, err), err);
	if (rc == 0 && out != NULL && out->size >= sizeof(*out))
		out->existed = existed;
	return rc;
}

int sheaf_session_cancel(sheaf_session *session, sheaf_str id, int32_t *existed, sheaf_error *err)
{
	int32_t found = 0;
	int rc = check_name(id, "the item's id", err);
	if (rc == 0)
		rc = begin(session, true, NULL, err);
	if (rc == 0)
		rc = finish(
			store_queue_cancel(session->store, &session->key.store, id, &found, err),
			err);
	if (rc == 0 && existed != NULL)
		*existed = found;
	return rc;
}

/* ---- Results ------------------------------------------------------------ */

/* Both results begin with what the caller sees; their arena frees them whole. */
typedef struct items_box {
	sheaf_queue_items items;
	arena *a;
} items_box;

typedef struct merged_box {
	sheaf_queue_merged merged;
	arena *a;
} merged_box;

/* Items as a store gives them. */
typedef struct taking {
	arena *a;
	sheaf_queue_item **items;
	size_t count;
	size_t room;
	int64_t now_us; /* listing: leases up to here are over */
} taking;

static void taking_end(taking *t)
{
	arena_free(t->a);
	mem_free(t->items);
}

static int take_row(void *ctx, const sheaf_queue_row *row)
{
	taking *t = ctx;
	int ok = 1;
	sheaf_queue_item *item = arena_zalloc(t->a, sizeof(*item));
	if (item == NULL ||
	    mem_grow((void **)&t->items, &t->room, t->count + 1, sizeof(*t->items)) != 0)
		return SHEAF_NOMEM;
	item->id = arena_dup(t->a, row->id, &ok);
	item->content = arena_dup(t->a, row->content, &ok);
	item->environment = arena_dup(t->a, row->environment, &ok);
	item->priority = row->priority;
	item->claims = row->claims;
	item->enqueued_us = row->enqueued_us;
	item->claimed_until_us = row->claimed_until_us > t->now_us ? row->claimed_until_us : 0;
	t->items[t->count++] = item;
	return ok ? 0 : SHEAF_NOMEM;
}

static int give_items(sheaf_queue_items **out, taking *t, sheaf_str token, sheaf_error *err)
{
	int ok = 1;
	items_box *box = arena_zalloc(t->a, sizeof(*box));
	sheaf_queue_item **items = arena_alloc(t->a, t->count * sizeof(*items));
	sheaf_str kept = arena_dup(t->a, t->count != 0 ? token : (sheaf_str){NULL, 0}, &ok);
	if (box == NULL || items == NULL || !ok)
		return err_nomem(err);
	if (t->count != 0)
		memcpy(items, t->items, t->count * sizeof(*items));
	box->items = (sheaf_queue_items){t->count, (const sheaf_queue_item *const *)items, kept};
	box->a = t->a;
	t->a = NULL;
	*out = &box->items;
	return 0;
}

void sheaf_queue_items_free(const sheaf_queue_items *items)
{
	if (items != NULL)
		arena_free(((const items_box *)(const void *)items)->a);
}

void sheaf_queue_merged_free(const sheaf_queue_merged *merged)
{
	if (merged != NULL)
		arena_free(((const merged_box *)(const void *)merged)->a);
}

/* ---- Workers ------------------------------------------------------------ */

static int claim_options(sheaf_claim *claim, const sheaf_claim_options *o, size_t limit_default,
                         sheaf_error *err)
{
	claim->size = sizeof(*claim);
	claim->lease_us = OPTION(o, lease_us, 0);
	claim->limit = OPTION(o, limit, 0);
	if (claim->lease_us == 0)
		claim->lease_us = LEASE_DEFAULT_US;
	if (claim->limit == 0)
		claim->limit = limit_default;
	if (claim->lease_us < 0)
		return err_set(err, SHEAF_INVALID, "a lease takes time");
	if (claim->lease_us > LEASE_MAX_US)
		return err_set(err, SHEAF_LIMIT, "a lease lasts a day at most");
	if (claim->limit > SHEAF_QUEUE_MERGE_ITEMS_MAX)
		return err_set(err, SHEAF_LIMIT, "at most %u items can be claimed at once",
		               SHEAF_QUEUE_MERGE_ITEMS_MAX);
	return 0;
}

/* Claims into `t` under a token that is made here. */
static int claim(taking *t, sheaf_session *s, sheaf_claim *how, char token[SHEAF_ID_ROOM],
                 sheaf_error *err)
{
	t->a = arena_new();
	if (t->a == NULL)
		return err_nomem(err);
	int rc = begin(s, true, NULL, err);
	if (rc == 0)
		rc = uuid7_new(token, err);
	if (rc != 0)
		return rc;
	how->token = sheaf_str_of(token);
	return finish(store_queue_claim(s->store, &s->key.store, how, take_row, t, err), err);
}

int sheaf_session_claim(sheaf_queue_items **out, sheaf_session *session,
                        const sheaf_claim_options *options, sheaf_error *err)
{
	_cleanup_(taking_end) taking t = {0};
	sheaf_claim how = {.bytes = SHEAF_RECORD_BYTES_MAX};
	char token[SHEAF_ID_ROOM];
	if (out == NULL)
		return err_set(err, SHEAF_INVALID, "there is no place for the result");
	int rc = claim_options(&how, options, 1, err);
	if (rc == 0)
		rc = claim(&t, session, &how, token, err);
	if (rc != 0)
		return rc;
	rc = give_items(out, &t, how.token, err);
	return rc != 0 ? err_unknown(err, rc) : 0;
}

/* The contents of all items with a line break between two. */
static int merge(sheaf_queue_merged *m, const taking *t, sheaf_error *err)
{
	size_t bytes = 0;
	for (size_t i = 0; i < t->count; i++)
		bytes += t->items[i]->content.len + 1;
	sheaf_str *ids = arena_alloc(t->a, t->count * sizeof(*ids));
	char *text = arena_alloc(t->a, bytes + 1);
	if (ids == NULL || text == NULL)
		return err_nomem(err);
	char *at = text;
	for (size_t i = 0; i < t->count; i++) {
		const sheaf_queue_item *item = t->items[i];
		if (i != 0)
			*at++ = '\n';
		if (item->content.len != 0)
			memcpy(at, item->content.ptr, item->content.len);
		at += item->content.len;
		ids[i] = item->id;
		if (item->environment.len != 0)
			m->environment = item->environment;
	}
	*at = '\0';
	m->ids = ids;
	m->count = t->count;
	m->content = (sheaf_str){text, (size_t)(at - text)};
	return 0;
}

int sheaf_session_merge_all(sheaf_queue_merged **out, sheaf_session *session,
                            const sheaf_claim_options *options, sheaf_error *err)
{
	_cleanup_(taking_end) taking t = {0};
	sheaf_claim how = {.bytes = SHEAF_QUEUE_MERGE_BYTES_MAX};
	char token[SHEAF_ID_ROOM];
	int ok = 1;
	if (out == NULL)
		return err_set(err, SHEAF_INVALID, "there is no place for the result");
	int rc = claim_options(&how, options, SHEAF_QUEUE_MERGE_ITEMS_MAX, err);
	if (rc == 0)
		rc = claim(&t, session, &how, token, err);
	if (rc != 0)
		return rc;
	merged_box *box = arena_zalloc(t.a, sizeof(*box));
	rc = box != NULL ? merge(&box->merged, &t, err) : err_nomem(err);
	if (rc == 0 && t.count != 0)
		box->merged.token = arena_dup(t.a, how.token, &ok);
	if (!ok)
		rc = err_nomem(err);
	if (rc != 0)
		return err_unknown(err, rc);
	box->a = t.a;
	t.a = NULL;
	*out = &box->merged;
	return 0;
}

int sheaf_session_ack(sheaf_session *session, sheaf_str token, sheaf_error *err)
{
	size_t count = 0;
	int rc = check_name(token, "the token", err);
	if (rc == 0)
		rc = begin(session, true, NULL, err);
	return rc != 0 ? rc
	               : finish(store_queue_ack(session->store, &session->key.store, token, &count,
	                                        err),
	                        err);
}

int sheaf_session_pending(sheaf_queue_items **out, sheaf_session *session, sheaf_error *err)
{
	_cleanup_(taking_end) taking t = {0};
	sheaf_head_state state = {0};
	if (out == NULL)
		return err_set(err, SHEAF_INVALID, "there is no place for the result");
	int rc = begin(session, false, &state, err);
	if (rc != 0)
		return rc;
	t.a = arena_new();
	if (t.a == NULL)
		return err_nomem(err);
	t.now_us = state.now_us != 0 ? state.now_us : clock_now_us();
	rc = finish(store_queue_list(session->store, &session->key.store, take_row, &t, err), err);
	return rc != 0 ? rc : give_items(out, &t, (sheaf_str){NULL, 0}, err);
}
