/* Checking and repairing: what the store finds in its bytes, and what only chains of forks show. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/session.h"

typedef struct report_box {
	sheaf_report report;
	arena *a;
} report_box;

/* A report under way. */
typedef struct checking {
	sheaf_store *store;
	arena *a;
	sheaf_problem **items;
	size_t count;
	size_t room;
	sheaf_check_totals totals;
	sheaf_store_key *forks; /* to look at; copies in the arena */
	size_t fork_count;
	size_t fork_room;
} checking;

static int checking_begin(checking *c, sheaf_store *store, sheaf_error *err)
{
	*c = (checking){.store = store, .a = arena_new()};
	return c->a != NULL ? 0 : err_nomem(err);
}

static void checking_end(checking *c)
{
	arena_free(c->a);
	mem_free(c->items);
	mem_free(c->forks);
}

/* A part of a key as the caller knows it. A name that is no key's (a stray file) stays as it is. */
static sheaf_str plain_part(sheaf_str encoded, arena *a, int *ok)
{
	char plain[SHEAF_KEY_PART_ROOM];
	size_t len;
	if (encoded.len > SHEAF_KEY_PART_BYTES_MAX ||
	    sheaf_key_decode(plain, &len, encoded, NULL) != 0)
		return arena_dup(a, encoded, ok);
	return arena_dup(a, str_make(plain, len), ok);
}

/* Stores speak of keys in their encoded form. */
static int take_problem(void *ctx, const sheaf_problem *problem)
{
	checking *c = ctx;
	int ok = 1;
	if (mem_grow((void **)&c->items, &c->room, c->count + 1, sizeof(*c->items)) != 0)
		return SHEAF_NOMEM;
	sheaf_problem *copy = arena_alloc(c->a, sizeof(*copy));
	if (copy == NULL)
		return SHEAF_NOMEM;
	*copy = *problem;
	copy->app = plain_part(problem->app, c->a, &ok);
	copy->user = plain_part(problem->user, c->a, &ok);
	copy->session = plain_part(problem->session, c->a, &ok);
	copy->detail = arena_dup(c->a, problem->detail, &ok);
	if (!ok)
		return SHEAF_NOMEM;
	c->items[c->count++] = copy;
	return 0;
}

static int checking_finish(sheaf_report **out, checking *c, sheaf_error *err)
{
	report_box *box = arena_zalloc(c->a, sizeof(*box));
	const sheaf_problem **items = arena_alloc(c->a, (c->count + 1) * sizeof(*items));
	if (box == NULL || items == NULL)
		return err_nomem(err);
	for (size_t i = 0; i < c->count; i++)
		items[i] = c->items[i];
	items[c->count] = NULL;
	box->report = (sheaf_report){c->totals.sessions, c->totals.records, c->totals.bytes,
	                             c->count, items};
	box->a = c->a;
	c->a = NULL;
	*out = &box->report;
	return 0;
}

void sheaf_report_free(const sheaf_report *report)
{
	if (report != NULL)
		arena_free(((const report_box *)(const void *)report)->a);
}

/* ---- Forks -------------------------------------------------------------- */

static int take_fork(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	checking *c = ctx;
	int ok = 1;
	if (info->base == 0 && info->source.len == 0)
		return 0;
	if (mem_grow((void **)&c->forks, &c->fork_room, c->fork_count + 1, sizeof(*c->forks)) != 0)
		return SHEAF_NOMEM;
	sheaf_store_key *copy = &c->forks[c->fork_count];
	copy->owner = arena_dup(c->a, key->owner, &ok);
	copy->app = arena_dup(c->a, key->app, &ok);
	copy->user = arena_dup(c->a, key->user, &ok);
	copy->session = arena_dup(c->a, key->session, &ok);
	if (!ok)
		return SHEAF_NOMEM;
	c->fork_count++;
	return 0;
}

static int fork_problem(checking *c, const sheaf_store_key *key, uint64_t seq, const char *detail)
{
	sheaf_problem p = {
		.what = SHEAF_PROBLEM_FORK,
		.app = key->app,
		.user = key->user,
		.session = key->session,
		.seq = seq,
		.detail = sheaf_str_of(detail),
	};
	return take_problem(c, &p);
}

/* One link of a fork: its session must be there and reach as far as is read from it. */
static int check_link(checking *c, const sheaf_store_key *fork, sheaf_head *link_head,
                      sheaf_str session, uint64_t base)
{
	char name[SHEAF_KEY_PART_ROOM];
	sheaf_store_key key = *fork;
	str_copy_cut(name, sizeof(name), session);
	key.session = sheaf_str_of(name);
	int rc = store_head(c->store, &key, 0, link_head, NULL, NULL);
	if (rc == SHEAF_NOT_FOUND)
		return fork_problem(c, fork, base, "a session it was forked from is not there");
	if (rc == 0 && sheaf_head_revision(link_head) < base)
		return fork_problem(c, fork, base, "a session it was forked from is too short");
	/* Other failures are problems of that session, and reported as such. */
	return rc == SHEAF_NOMEM ? rc : 0;
}

static int check_forks(checking *c, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = sheaf_head_new();
	_cleanup_(head_freep) sheaf_head *link_head = sheaf_head_new();
	if (head == NULL || link_head == NULL)
		return err_nomem(err);
	for (size_t i = 0; i < c->fork_count; i++) {
		sheaf_str session;
		uint64_t base;
		/* Whoever reads a hidden one has its links too; one that nobody reads is only waiting to
		 * be removed. */
		if (store_head(c->store, &c->forks[i], 0, head, NULL, NULL) != 0 ||
		    sheaf_head_hidden(head))
			continue;
		for (size_t k = 0; sheaf_head_link(head, k, &session, &base); k++) {
			int rc = check_link(c, &c->forks[i], link_head, session, base);
			if (rc != 0)
				return err_set(err, rc, "%s", sheaf_code_text(rc));
		}
	}
	return 0;
}

static int find_forks(checking *c, const key_box *key, sheaf_error *err)
{
	if (key != NULL) {
		sheaf_session_info all = {.base = 1};
		return take_fork(c, &key->store, &all) == 0 ? 0 : err_nomem(err);
	}
	sheaf_list_query query = {.size = sizeof(query), .hidden = 1};
	int rc = store_list(c->store, &query, take_fork, c, err);
	/* A store that cannot list everything is checked without this. */
	return rc == SHEAF_UNSUPPORTED ? 0 : rc;
}

/* ---- The calls ---------------------------------------------------------- */

int sheaf_store_check(sheaf_report **out, sheaf_store *store, const sheaf_key *key,
                      sheaf_error *err)
{
	checking c;
	key_box box;
	sheaf_error local = {0};
	if (out == NULL || store == NULL)
		return err_set(err, SHEAF_INVALID, "no store was given");
	int rc = key != NULL ? key_box_init(&box, key, err) : 0;
	if (rc == 0)
		rc = checking_begin(&c, store, err);
	if (rc != 0)
		return rc;
	rc = store_check(store, key != NULL ? &box.store : NULL, take_problem, &c, &c.totals,
	                 &local);
	if (rc == 0)
		rc = find_forks(&c, key != NULL ? &box : NULL, &local);
	if (rc == 0)
		rc = check_forks(&c, &local);
	if (rc == 0)
		rc = checking_finish(out, &c, &local);
	checking_end(&c);
	return err_pass(err, &local, rc);
}

int sheaf_store_repair(sheaf_report **out, sheaf_store *store, const sheaf_key *key,
                       sheaf_error *err)
{
	checking c;
	key_box box;
	if (store == NULL || key == NULL)
		return err_set(err, SHEAF_INVALID, "no store or no key was given");
	int rc = key_box_init(&box, key, err);
	if (rc == 0)
		rc = checking_begin(&c, store, err);
	if (rc != 0)
		return rc;
	rc = store_repair(store, &box.store, take_problem, &c, &c.totals, err);
	if (rc == 0 && out != NULL) {
		rc = checking_finish(out, &c, err);
		if (rc != 0)
			rc = err_unknown(err, rc); /* it is repaired */
	}
	checking_end(&c);
	return rc;
}
