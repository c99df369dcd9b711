/* Deleting: a session, what it alone kept alive, and on demand what its forks read of it. */
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/list.h"
#include "core/remove.h"
#include "core/transfer.h"
#include "search/search.h"

/* How often a fork is copied anew because somebody wrote to it meanwhile. */
#define PURGE_TRIES 64

typedef struct deleted_box {
	sheaf_deleted deleted;
	sheaf_list *forks;
} deleted_box;

/* A deletion under way. */
typedef struct removing {
	sheaf_store *store;
	key_box key;
	bool expired;     /* only if its grace is over */
	removal outcome;  /* of that */
	listing forks;    /* all that were ever named */
	sheaf_str *names; /* encoded sessions that read this one now; in the listing's arena */
	size_t name_count;
	size_t name_room;
} removing;

static void removing_end(removing *r)
{
	listing_end(&r->forks);
	mem_free(r->names);
}

static bool named_before(const removing *r, const sheaf_store_key *key)
{
	char plain[SHEAF_KEY_PART_ROOM];
	size_t len;
	if (sheaf_key_decode(plain, &len, key->session, NULL) != 0)
		return false;
	for (size_t i = 0; i < r->forks.count; i++) {
		if (str_eq(r->forks.items[i]->session, str_make(plain, len)))
			return true;
	}
	return false;
}

static int take_reader(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	removing *r = ctx;
	int ok = 1;
	if (info->hidden)
		return 0;
	if (mem_grow((void **)&r->names, &r->name_room, r->name_count + 1, sizeof(*r->names)) != 0)
		return SHEAF_NOMEM;
	sheaf_str name = arena_dup(r->forks.a, key->session, &ok);
	if (!ok)
		return SHEAF_NOMEM;
	r->names[r->name_count++] = name;
	return named_before(r, key) ? 0 : listing_add(&r->forks, key, info);
}

/* What is removed cannot be found any more either. */
static int remove_and_forget(sheaf_store *store, const sheaf_store_key *key,
                             sheaf_remove_request *request, sheaf_remove_reply *reply,
                             sheaf_error *err)
{
	int rc = store_remove(store, key, request, reply, err);
	if (rc == 0 && reply->existed)
		search_forget(store, key);
	return rc;
}

static int remove_once(removing *r, bool reap, sheaf_remove_reply *reply, sheaf_error *err)
{
	sheaf_remove_request request = {
		.size = sizeof(request),
		.reap = reap,
		.expired = r->expired,
		.reader = take_reader,
		.ctx = r,
	};
	r->name_count = 0;
	return remove_and_forget(r->store, &r->key.store, &request, reply, err);
}

/* ---- What a fork kept alive --------------------------------------------- */

/*
 * Gives back what hidden sessions kept only for this head's session. The
 * nearest first: it may itself be what keeps a farther one.
 */
static int reap_links(sheaf_store *store, const sheaf_store_key *key, const sheaf_head *head,
                      sheaf_error *err)
{
	sheaf_str session;
	uint64_t base;
	for (size_t i = 0; sheaf_head_link(head, i, &session, &base); i++) {
		char name[SHEAF_KEY_PART_ROOM];
		sheaf_store_key link = *key;
		str_copy_cut(name, sizeof(name), session);
		link.session = sheaf_str_of(name);
		sheaf_remove_request request = {.size = sizeof(request), .reap = 1};
		sheaf_remove_reply reply;
		int rc = remove_and_forget(store, &link, &request, &reply, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Hidden sessions of an owner, by their encoded names. */
typedef struct hidden_list {
	char (*names)[SHEAF_KEY_PART_ROOM];
	size_t count;
	size_t room;
} hidden_list;

static int take_hidden(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	hidden_list *l = ctx;
	if (!info->hidden)
		return 0;
	if (mem_grow((void **)&l->names, &l->room, l->count + 1, sizeof(*l->names)) != 0)
		return SHEAF_NOMEM;
	str_copy_cut(l->names[l->count++], SHEAF_KEY_PART_ROOM, key->session);
	return 0;
}

/*
 * There was nothing to delete. If an earlier try got as far as that and no
 * further, nobody knows any more what the session kept alive: whatever is hidden
 * is looked at.
 */
static int reap_hidden(sheaf_store *store, const sheaf_store_key *key, sheaf_error *err)
{
	hidden_list l = {NULL, 0, 0};
	sheaf_list_query query = {
		.size = sizeof(query), .app = key->app, .user = key->user, .hidden = 1};
	int rc = store_list(store, &query, take_hidden, &l, err);
	for (size_t i = 0; rc == 0 && i < l.count; i++) {
		sheaf_store_key link = *key;
		link.session = sheaf_str_of(l.names[i]);
		sheaf_remove_request request = {.size = sizeof(request), .reap = 1};
		sheaf_remove_reply reply;
		rc = remove_and_forget(store, &link, &request, &reply, err);
	}
	mem_free(l.names);
	return rc;
}

/* ---- Purging ------------------------------------------------------------ */

typedef struct pull {
	const transfer *t;
	size_t at;
} pull;

static int pull_row(void *ctx, sheaf_row *row, sheaf_error *err)
{
	pull *p = ctx;
	(void)err;
	if (p->at == p->t->count)
		return 0;
	*row = p->t->rows[p->at++];
	return 1;
}

/* Replaces a fork's log by one that has everything it inherited. */
static int copy_into(sheaf_session *s, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	_cleanup_(arena_freep) arena *a = arena_new();
	_cleanup_(transfer_end) transfer t = {.a = NULL};
	header hd;
	if (a == NULL)
		return err_nomem(err);
	int rc = session_head(s, &head, NULL, err);
	if (rc != 0 || head_base(head) == 0)
		return rc;
	rc = session_header(s, &hd, a, err);
	if (rc != 0)
		return rc;
	header_unlink(&hd);
	rc = transfer_begin(&t, s, head, &hd, transfer_fill_raw, err);
	if (rc != 0)
		return rc;
	/* All at once: a store may hold its locks while it takes the rows. */
	t.whole = true;
	transfer_goal goal = transfer_goal_of(head);
	rc = t.fill(&t, err);
	if (rc == 0)
		rc = transfer_close(&t, NULL, &goal, err);
	if (rc != 0)
		return rc;
	pull p = {&t, 0};
	rc = store_replace(s->store, &s->key.store, sheaf_head_revision(head), pull_row, &p, err);
	/* It does not read its other sources any more either. */
	return rc != 0 ? rc : reap_links(s->store, &s->key.store, head, err);
}

static int purge_fork(removing *r, sheaf_str name, sheaf_error *err)
{
	key_box box;
	sheaf_session *s = NULL;
	sheaf_error local = {0}; /* tries that fail must not reach the caller's struct */
	int rc = key_box_decode(&box, r->key.store.app, r->key.store.user, name, &local);
	removal over = REMOVAL_LEFT;
	if (rc == 0)
		rc = remove_expired(r->store, &box, &over, &local);
	if (rc == 0 && over != REMOVAL_LEFT)
		return 0;
	if (rc == 0)
		rc = session_open_expired(&s, r->store, &box, &local);
	if (rc == 0) {
		rc = SHEAF_STALE;
		for (int i = 0; i < PURGE_TRIES && rc == SHEAF_STALE; i++)
			rc = copy_into(s, &local);
	}
	sheaf_session_close(s);
	/* A fork that went away meanwhile reads nothing. */
	if (rc == SHEAF_NOT_FOUND || rc == SHEAF_GONE)
		return 0;
	return err_pass(err, &local, rc);
}

/* Until nobody reads the session. New forks cannot come: it is hidden. */
static int purge(removing *r, sheaf_remove_reply *reply, sheaf_error *err)
{
	int rc = 0;
	for (int round = 0; rc == 0 && reply->hidden; round++) {
		size_t readers = r->name_count;
		for (size_t i = 0; rc == 0 && i < readers; i++)
			rc = purge_fork(r, r->names[i], err);
		if (rc == 0)
			rc = remove_once(r, true, reply, err);
		if (rc == 0 && reply->hidden && (readers == 0 || round == PURGE_TRIES))
			return err_set(err, SHEAF_STORAGE,
			               "the store keeps a session that nobody reads");
	}
	return rc;
}

/* ---- Deleting ----------------------------------------------------------- */

static int removing_run(removing *r, bool purged, sheaf_remove_reply *answer, sheaf_error *err)
{
	/* What it reads must be known before it is gone. An unreadable head has no links. */
	_cleanup_(head_freep) sheaf_head *head = sheaf_head_new();
	sheaf_remove_reply reply;
	if (head == NULL)
		return err_nomem(err);
	sheaf_error unread;
	sheaf_head_state state = {0};
	int rc = store_head(r->store, &r->key.store, 0, head, &state, &unread);
	bool known = rc == 0;
	if (rc != 0 && rc != SHEAF_NOT_FOUND && rc != SHEAF_DAMAGED && rc != SHEAF_FORMAT) {
		if (err != NULL)
			*err = unread;
		return rc;
	}
	/* For the caller a hidden session is not there; it may have something to give back. */
	bool was_hidden = known && sheaf_head_hidden(head) != 0;
	bool over = known &&
	            sheaf_head_expired(head, state.stored_us, state.now_us) == SHEAF_EXPIRY_OVER;
	if (r->expired && (was_hidden || !over)) {
		r->outcome = rc == SHEAF_NOT_FOUND ? REMOVAL_ABSENT : REMOVAL_LEFT;
		return 0;
	}
	rc = remove_once(r, was_hidden, &reply, err);
	if (rc != 0)
		return rc;
	*answer = reply;
	r->outcome = reply.existed ? REMOVAL_DONE : REMOVAL_ABSENT;
	if (r->expired && !reply.existed)
		return 0;
	if (was_hidden || (over && !r->expired))
		answer->existed = 0;
	if (purged) {
		rc = purge(r, &reply, err);
		answer->hidden = reply.hidden;
	}
	if (rc == 0 && known)
		rc = reap_links(r->store, &r->key.store, head, err);
	else if (rc == 0 && !reply.existed)
		rc = reap_hidden(r->store, &r->key.store, err);
	/* Some of it was done. */
	return rc != 0 ? err_unknown(err, rc) : 0;
}

int remove_expired(sheaf_store *store, const key_box *key, removal *out, sheaf_error *err)
{
	removing r = {.store = store, .expired = true};
	sheaf_remove_reply reply = {0};
	int rc = key_box_init(&r.key, &key->plain, err);
	if (rc == 0)
		rc = listing_begin(&r.forks, err);
	if (rc == 0)
		rc = removing_run(&r, false, &reply, err);
	*out = r.outcome;
	removing_end(&r);
	return rc;
}

/* The order of lists: newest first, then by key as stores spell it. */
static int by_recency(const void *a, const void *b)
{
	const sheaf_session_info *x = *(const sheaf_session_info *const *)a;
	const sheaf_session_info *y = *(const sheaf_session_info *const *)b;
	char x_name[SHEAF_KEY_PART_ROOM], y_name[SHEAF_KEY_PART_ROOM];
	if (x->modified_us != y->modified_us)
		return x->modified_us > y->modified_us ? -1 : 1;
	if (sheaf_key_encode(x_name, x->session, NULL) != 0 ||
	    sheaf_key_encode(y_name, y->session, NULL) != 0)
		return str_cmp(x->session, y->session);
	return strcmp(x_name, y_name);
}

static int deleted_make(sheaf_deleted **out, removing *r, const sheaf_remove_reply *reply,
                        sheaf_error *err)
{
	deleted_box *box = mem_zalloc(sizeof(*box));
	if (box == NULL)
		return err_nomem(err);
	if (r->forks.count > 1)
		qsort(r->forks.items, r->forks.count, sizeof(*r->forks.items), by_recency);
	int rc = listing_finish(&box->forks, &r->forks, NULL, err);
	if (rc != 0) {
		mem_free(box);
		return rc;
	}
	box->deleted.existed = reply->existed;
	box->deleted.hidden = reply->hidden;
	box->deleted.forks = box->forks;
	*out = &box->deleted;
	return 0;
}

int sheaf_store_delete(sheaf_deleted **out, sheaf_store *store, const sheaf_key *key,
                       const sheaf_delete_options *options, sheaf_error *err)
{
	if (store == NULL || key == NULL)
		return err_set(err, SHEAF_INVALID, "no store or no key was given");
	removing r = {.store = store};
	sheaf_remove_reply reply = {0};
	int rc = key_box_init(&r.key, key, err);
	if (rc == 0)
		rc = listing_begin(&r.forks, err);
	if (rc == 0)
		rc = removing_run(&r, OPTION(options, purge, 0) != 0, &reply, err);
	if (rc == 0 && out != NULL) {
		rc = deleted_make(out, &r, &reply, err);
		if (rc != 0)
			rc = err_unknown(err, rc); /* it is deleted */
	}
	removing_end(&r);
	return rc;
}

void sheaf_deleted_free(sheaf_deleted *deleted)
{
	if (deleted == NULL)
		return;
	deleted_box *box = (deleted_box *)(void *)deleted;
	sheaf_list_free(box->forks);
	mem_free(box);
}
