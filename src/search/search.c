/* Searching: opening the index of a store, keeping it whole, asking it, and forgetting sessions. */
#include "search/search.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/module.h"
#include "entry/key.h"
#include "search/search_inside.h"

#define LIMIT_DEFAULT 20u
#define LIMIT_MAX 1000u
#define REPAIRS_MAX 2

const char *sheaf_hit_role(int32_t role)
{
	static const char *const names[] = {"title", "user",   "assistant", "call",
	                                    "tool",  "system", "summary",   "other"};
	return role >= 0 && (size_t)role < COUNT_OF(names) ? names[role] : "other";
}

/* ---- The module and its file ------------------------------------------------------ */

int search_module(const index_ops **out, bool *there, sheaf_error *err)
{
	module m;
	int rc = module_find(INDEX_MODULE, INDEX_SYMBOL, &m, there, err);
	if (rc != 0 && !*there)
		return err_set(err, SHEAF_UNSUPPORTED, "the module for search is not installed");
	if (rc != 0)
		return rc;
	const index_ops *ops = m.symbol;
	if (ops->size < sizeof(*ops) || ops->version != INDEX_VERSION) {
		module_unload(&m);
		return err_set(err, SHEAF_UNSUPPORTED,
		               "the module for search is of another version");
	}
	*out = ops;
	return 0;
}

static void shut(sheaf_search *s)
{
	if (s->file != NULL)
		s->ops->close(s->file);
	mem_free(s->path);
	s->file = NULL;
	s->settled.known = false;
	s->path = NULL;
}

/* Opens what is there, or something new in the place of what is damaged. */
static int open_file(sheaf_search *s, sheaf_error *err)
{
	int rc = SHEAF_DAMAGED;
	for (int i = 0; rc == SHEAF_DAMAGED && i < REPAIRS_MAX; i++) {
		rc = place_make(&s->path, s->store, err);
		if (rc != 0)
			return rc;
		rc = s->ops->open(&s->file, s->path, store_patience_us(s->store), err);
		if (rc == SHEAF_DAMAGED) {
			place_drop(s->path);
			s->rebuilt = true;
		}
		if (rc != 0)
			shut(s);
	}
	return rc;
}

/* Throws the index away and begins with an empty one. */
static int renew(sheaf_search *s, sheaf_error *err)
{
	place_drop(s->path);
	shut(s);
	return open_file(s, err);
}

int sheaf_search_open(sheaf_search **out, sheaf_store *store, const sheaf_search_options *options,
                      sheaf_error *err)
{
	sheaf_search_options o = SHEAF_SEARCH_OPTIONS_INIT;
	bool there;
	if (out == NULL || store == NULL)
		return err_set(err, SHEAF_INVALID, "no store was given");
	if (options != NULL)
		memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
	sheaf_search *s = mem_zalloc(sizeof(*s));
	if (s == NULL)
		return err_nomem(err);
	s->store = store;
	s->progress = o.progress;
	s->ctx = o.ctx;
	pthread_mutex_init(&s->mutex, NULL);
	int rc = search_module(&s->ops, &there, err);
	if (rc == 0)
		rc = open_file(s, err);
	if (rc == 0 && o.rebuild)
		rc = renew(s, err);
	s->rebuilt = s->rebuilt && !o.rebuild;
	if (rc != 0)
		sheaf_search_close(s);
	else
		*out = s;
	return rc;
}

void sheaf_search_close(sheaf_search *search)
{
	if (search == NULL)
		return;
	shut(search);
	pthread_mutex_destroy(&search->mutex);
	mem_free(search);
}

/* ---- Hits ------------------------------------------------------------------------------ */

typedef struct hits_box {
	sheaf_hits hits;
	arena *a;
} hits_box;

typedef struct collecting {
	arena *a;
	const sheaf_hit **items;
	size_t count;
	sheaf_error *err;
} collecting;

void sheaf_hits_free(const sheaf_hits *hits)
{
	if (hits != NULL)
		arena_free(((const hits_box *)(const void *)hits)->a);
}

static sheaf_str decoded(arena *a, sheaf_str part, int *ok)
{
	char plain[SHEAF_KEY_PART_ROOM];
	size_t len = 0;
	if (sheaf_key_decode(plain, &len, part, NULL) != 0)
		return arena_dup(a, part, ok);
	return arena_dup(a, str_make(plain, len), ok);
}

static sheaf_str first_tool(sheaf_str tools)
{
	if (tools.len < 2)
		return (sheaf_str){"", 0};
	const char *end = memchr(tools.ptr + 1, '\n', tools.len - 1);
	return str_make(tools.ptr + 1, end != NULL ? (size_t)(end - tools.ptr - 1) : tools.len - 1);
}

static int take_hit(void *ctx, const index_hit *from)
{
	collecting *c = ctx;
	int ok = 1;
	sheaf_hit *hit = arena_zalloc(c->a, sizeof(*hit));
	sheaf_mark *marks = arena_alloc(c->a, (from->mark_count + 1) * sizeof(*marks));
	if (hit == NULL || marks == NULL)
		return err_nomem(c->err);
	memcpy(marks, from->marks, from->mark_count * sizeof(*marks));
	bool title = from->doc->role == SHEAF_HIT_TITLE;
	*hit = (sheaf_hit){
		.app = decoded(c->a, from->session->app, &ok),
		.user = decoded(c->a, from->session->user, &ok),
		.session = decoded(c->a, from->session->session, &ok),
		.name = arena_dup(c->a, from->session->name, &ok),
		.preview = arena_dup(c->a, from->session->preview, &ok),
		.cwd = arena_dup(c->a, from->session->cwd, &ok),
		.seq = from->doc->seq,
		.time_us = from->doc->time_us,
		.role = from->doc->role,
		.cut_before = from->cut_before,
		.cut_after = from->cut_after,
		.agent = arena_dup(c->a, from->doc->agent, &ok),
		.tool = arena_dup(c->a, first_tool(from->doc->tools), &ok),
		.snippet = arena_dup(c->a, from->snippet, &ok),
		.marks = marks,
		.mark_count = from->mark_count,
		.score = from->score,
	};
	if (!title)
		hit->entry_id = arena_dup(c->a, from->doc->entry, &ok);
	if (!ok)
		return err_nomem(c->err);
	c->items[c->count++] = hit;
	return 0;
}

/* ---- Asking ------------------------------------------------------------------------------ */

/* A query with its keys as stores spell them. */
typedef struct asking {
	index_query q;
	char app[SHEAF_KEY_PART_ROOM];
	char user[SHEAF_KEY_PART_ROOM];
	char prefix[SHEAF_KEY_PART_ROOM + 1];
} asking;

static int take_query(asking *a, const sheaf_query *given, sheaf_error *err)
{
	sheaf_query q = SHEAF_QUERY_INIT;
	if (given == NULL || given->size < sizeof(given->size))
		return err_set(err, SHEAF_INVALID, "no query was given");
	memcpy(&q, given, given->size < sizeof(q) ? given->size : sizeof(q));
	if (q.limit > LIMIT_MAX)
		return err_set(err, SHEAF_LIMIT, "a search gives at most %u hits", LIMIT_MAX);
	int rc = sheaf_key_encode(a->app, q.app, err);
	if (rc == 0)
		rc = sheaf_key_encode(a->user, q.user, err);
	if (rc != 0)
		return rc;
	a->q = (index_query){
		.text = q.text,
		.project = q.project,
		.agent = q.agent,
		.tool = q.tool,
		.roles = q.roles,
		.per_session = q.per_session,
		.after_us = q.after_us,
		.before_us = q.before_us,
		.now_us = q.now_us != 0 ? q.now_us : clock_now_us(),
		.limit = q.limit != 0 ? q.limit : LIMIT_DEFAULT,
	};
	if (!q.all_apps)
		a->q.app = sheaf_str_of(a->app);
	if (!q.all_apps && !q.all_users)
		a->q.user = sheaf_str_of(a->user);
	if (q.agent.len != 0 && sheaf_key_encode(a->prefix, q.agent, NULL) == 0) {
		size_t len = strlen(a->prefix);
		memcpy(a->prefix + len, ".", 2);
		a->q.agent_prefix = sheaf_str_of(a->prefix);
	}
	return 0;
}

static int ask(sheaf_hits **out, sheaf_search *s, const asking *a, uint64_t updated,
               sheaf_error *err)
{
	bool more = false;
	_cleanup_(arena_freep) arena *memory = arena_new();
	hits_box *box = memory != NULL ? arena_zalloc(memory, sizeof(*box)) : NULL;
	collecting c = {.a = memory, .err = err};
	if (box != NULL)
		c.items = arena_zalloc(memory, (a->q.limit + 1) * sizeof(*c.items));
	if (c.items == NULL)
		return err_nomem(err);
	int rc = s->ops->query(s->file, &a->q, take_hit, &c, &more, err);
	if (rc != 0)
		return rc;
	box->hits = (sheaf_hits){.count = c.count,
	                         .items = c.items,
	                         .more = more,
	                         .rebuilt = s->rebuilt,
	                         .updated = updated};
	box->a = memory;
	memory = NULL;
	s->rebuilt = false;
	*out = &box->hits;
	return 0;
}

/* Takes in what changed, then asks unless `out` is NULL. */
static int update_and_ask(sheaf_hits **out, sheaf_search *s, const asking *a, uint64_t *updated,
                          sheaf_error *err)
{
	int rc = s->file != NULL ? 0 : open_file(s, err);
	if (rc == 0)
		rc = follow(s, a->q.app, a->q.user, updated, err);
	return rc == 0 && out != NULL ? ask(out, s, a, *updated, err) : rc;
}

static int run(sheaf_hits **out, sheaf_search *s, const asking *a, uint64_t *updated,
               sheaf_error *err)
{
	sheaf_error local = {0};
	pthread_mutex_lock(&s->mutex);
	int rc = update_and_ask(out, s, a, updated, &local);
	/* What is damaged is made anew from the logs: there is nothing to lose. */
	for (int i = 0; rc == SHEAF_DAMAGED && i < REPAIRS_MAX; i++) {
		s->rebuilt = true;
		rc = renew(s, &local);
		if (rc == 0)
			rc = update_and_ask(out, s, a, updated, &local);
	}
	pthread_mutex_unlock(&s->mutex);
	if (rc != 0 && err != NULL)
		*err = local;
	return rc;
}

int sheaf_search_run(sheaf_hits **out, sheaf_search *search, const sheaf_query *query,
                     sheaf_error *err)
{
	asking a;
	uint64_t updated = 0;
	if (out == NULL || search == NULL)
		return err_set(err, SHEAF_INVALID, "no search was given");
	int rc = take_query(&a, query, err);
	return rc == 0 ? run(out, search, &a, &updated, err) : rc;
}

int sheaf_search_update(sheaf_search *search, const sheaf_query *whose, uint64_t *updated,
                        sheaf_error *err)
{
	asking a;
	uint64_t count = 0;
	if (search == NULL)
		return err_set(err, SHEAF_INVALID, "no search was given");
	int rc = take_query(&a, whose, err);
	if (rc == 0)
		rc = run(NULL, search, &a, &count, err);
	if (rc == 0 && updated != NULL)
		*updated = count;
	return rc;
}

/* ---- Forgetting ------------------------------------------------------------------------------ */

static int forget_in(const index_ops *ops, index_file *file, const sheaf_store_key *key,
                     bool *clean, sheaf_error *err)
{
	index_session known;
	int rc = ops->begin(file, err);
	if (rc != 0)
		return rc;
	rc = ops->get(file, key->owner, key->session, &known, err);
	*clean = rc == 0 && known.number == 0;
	if (rc == 0 && known.number != 0) {
		rc = ops->empty(file, known.number, true, err);
		if (rc == 0)
			rc = ops->scrub(file, clean, err);
	}
	if (rc == 0 && *clean)
		return ops->commit(file, err);
	ops->undo(file);
	return rc;
}

static bool forget_at(sheaf_store *store, const char *path, const sheaf_store_key *key)
{
	const index_ops *ops;
	index_file *file = NULL;
	sheaf_error err = {0};
	bool there, clean = false;
	if (search_module(&ops, &there, &err) != 0 ||
	    ops->open(&file, path, store_patience_us(store), &err) != 0)
		return false;
	int rc = forget_in(ops, file, key, &clean, &err);
	ops->close(file);
	return rc == 0 && clean;
}

void search_forget(sheaf_store *store, const sheaf_store_key *key)
{
	for (int beside = 0; beside < 2; beside++) {
		_cleanup_(mem_freep) char *path = NULL;
		if (place_look(&path, store, beside != 0, NULL) == 0 && path != NULL &&
		    !forget_at(store, path, key))
			place_drop(path);
	}
}
