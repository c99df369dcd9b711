/* Pulls between two stores that both go on: nothing is lost, and in the end both have the same. */
#include <stdio.h>

#include "partner.h"
#include "trash.h"

/* ---- Words -------------------------------------------------------------------------- */

static int pull_with(suite *t, sheaf_store *here, sheaf_store *there, sheaf_sync_totals *out,
                     const char *source, sheaf_sync_options options)
{
	sheaf_key key = partner_key(t, "u", "");
	options.app = key.app;
	options.user = key.user;
	options.source = S(source);
	*out = (sheaf_sync_totals){.size = sizeof(*out)};
	return sheaf_store_pull(out, here, there, &options, &t->err);
}

static int pull(suite *t, sheaf_store *here, sheaf_store *there, sheaf_sync_totals *out,
                const char *source)
{
	return pull_with(t, here, there, out, source, (sheaf_sync_options)SHEAF_SYNC_OPTIONS_INIT);
}

/* A pull that has nothing to do. */
static void no_news(suite *t, sheaf_store *here, sheaf_store *there, const char *source)
{
	sheaf_sync_totals done;
	OK(pull(t, here, there, &done, source));
	EQ(done.same, done.sessions);
	EQ(done.bytes, 0);
	EQ(done.entries + done.facts + done.branches + done.apart, 0);
}

static sheaf_store *memory_open(suite *t)
{
	sheaf_store *store = NULL;
	OK(sheaf_open(&store, "memory:", NULL, &t->err));
	return store;
}

static sheaf_session *make(suite *t, sheaf_store *store, const char *session)
{
	sheaf_key key = partner_key(t, "u", session);
	return t_open_in(t, store, &key, SHEAF_OPEN_NEW);
}

static sheaf_session *in(suite *t, sheaf_store *store, const char *session)
{
	sheaf_key key = partner_key(t, "u", session);
	return t_open_in(t, store, &key, SHEAF_OPEN_EXISTING);
}

static const sheaf_records *all(suite *t, sheaf_session *s, uint64_t kinds)
{
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.limit = 100000;
	o.kinds = kinds;
	return t_records(t, s, &o);
}

static const sheaf_entry *find(const sheaf_records *r, sheaf_str id)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->items[i]->id.len == id.len &&
		    memcmp(r->items[i]->id.ptr, id.ptr, id.len) == 0)
			return r->items[i];
	return NULL;
}

static void same_text(suite *t, sheaf_str a, sheaf_str b)
{
	CHECK((a.ptr == NULL) == (b.ptr == NULL));
	if (b.ptr != NULL)
		BYTES(a, b.ptr, b.len);
}

/* The same entries, whatever their numbers. */
static void same_entries(suite *t, sheaf_session *a, sheaf_session *b)
{
	const sheaf_records *x = all(t, a, SHEAF_KINDS_ENTRIES),
			    *y = all(t, b, SHEAF_KINDS_ENTRIES);
	EQ(x->count, y->count);
	for (size_t i = 0; i < x->count; i++) {
		const sheaf_entry *e = x->items[i], *f = find(y, e->id);
		CHECK(f != NULL);
		same_text(t, f->type, e->type);
		same_text(t, f->parent_id, e->parent_id);
		same_text(t, f->timestamp, e->timestamp);
		same_text(t, f->body, e->body);
	}
}

static size_t syncs(suite *t, sheaf_session *s)
{
	return all(t, s, SHEAF_KIND_BIT(SHEAF_KIND_SYNC))->count;
}

/* ---- Copies ----------------------------------------------------------------------------- */

CASE(sync_copies_what_is_not_here)
{
	for (int i = 0; i < PARTNERS; i++) {
		partner p;
		sheaf_sync_totals done;
		if (!partner_open(t, i, &p))
			continue;
		t->app = t_format(t, "%s-%d", partner_key(t, "", "").app.ptr, i);
		sheaf_session *s = make(t, p.store, "s");
		SAY(s, "user", "one", .id = "a");
		sheaf_batch *b = t_batch(t);
		ADD(b, "assistant", "two", .id = "b");
		ADD(b, "user", "three", .id = "c");
		OK(t_append_batch(t, s, b, (put){0}));
		LABEL(s, "a", "first");
		BRANCH(s, "side", "b");
		OK(pull(t, t->store, p.store, &done, "there"));
		EQ(done.sessions, 1);
		EQ(done.copied, 1);
		EQ(done.entries, 3);
		EQ(done.facts, 2);
		sheaf_session *here = in(t, t->store, "s");
		const sheaf_records *x = all(t, s, 0), *y = all(t, here, 0);
		EQ(x->count, y->count);
		for (size_t k = 0; k < x->count; k++)
			same_text(t, y->items[k]->line, x->items[k]->line);
		no_news(t, t->store, p.store, "there");
		/* Only there it goes on: byte for byte here, too, and nothing is noted. */
		SAY(s, "user", "four", .id = "d");
		BRANCH(s, NULL, "a");
		OK(pull(t, t->store, p.store, &done, "there"));
		EQ(done.extended, 1);
		EQ(done.entries, 1);
		x = all(t, s, 0);
		y = all(t, here, 0);
		EQ(x->count, y->count);
		for (size_t k = 0; k < x->count; k++)
			same_text(t, y->items[k]->line, x->items[k]->line);
		LEAF(here, "a");
		EQ(syncs(t, here), 0);
		no_news(t, t->store, p.store, "there");
		no_news(t, p.store, t->store, "here");
		trash_sessions(t);
		partner_close(t, &p);
	}
}

/* ---- Merges -------------------------------------------------------------------------------- */

CASE(sync_both_went_on)
{
	for (int i = 0; i < PARTNERS; i++) {
		partner p;
		sheaf_sync_totals done;
		if (!partner_open(t, i, &p))
			continue;
		const char *name = "s";
		t->app = t_format(t, "%s-%d", partner_key(t, "", "").app.ptr, i);
		sheaf_session *a = make(t, t->store, name);
		SAY(a, "user", "one", .id = "r");
		OK(pull(t, p.store, t->store, &done, "a"));
		sheaf_session *b = in(t, p.store, name);
		SAY(a, "user", "mine", .id = "a1");
		SAY(a, "assistant", "mine", .id = "a2");
		SAY(b, "user", "theirs", .id = "b1");
		sheaf_batch *batch = t_batch(t);
		ADD(batch, "assistant", "theirs", .id = "b2");
		ADD(batch, "user", "theirs", .id = "b3");
		OK(t_append_batch(t, b, batch, (put){0}));
		OK(pull(t, t->store, p.store, &done, "b"));
		EQ(done.merged, 1);
		EQ(done.entries, 3);
		EQ(done.apart, 1);
		EQ(done.branches, 0);
		LEAF(a, "a2");
		LEAF_OF(a, "main@b", "b3");
		IDS(t_path(t, a, "main"), "r a1 a2");
		IDS(t_path(t, a, "main@b"), "r b1 b2 b3");
		EQ(t_get(t, a, "b3")->batch_index, 1);
		EQ(t_get(t, a, "b3")->batch_count, 2);
		no_news(t, t->store, p.store, "b");
		OK(pull(t, p.store, t->store, &done, "a"));
		EQ(done.entries, 2);
		EQ(done.apart, 1);
		LEAF(b, "b3");
		LEAF_OF(b, "main@a", "a2");
		IDS(t_path(t, b, "main@a"), "r a1 a2");
		same_entries(t, a, b);
		no_news(t, t->store, p.store, "b");
		no_news(t, p.store, t->store, "a");
		/* They agree on theirs; then both follow, and what was set apart is gone. */
		BRANCH(a, NULL, "b3");
		SAY(a, "user", "together", .id = "a3");
		OK(pull(t, p.store, t->store, &done, "a"));
		EQ(done.branches, 1);
		LEAF(b, "a3");
		EQ(t_head(t, b)->branch_count, 1);
		OK(pull(t, t->store, p.store, &done, "b"));
		LEAF(a, "a3");
		EQ(t_head(t, a)->branch_count, 1);
		same_entries(t, a, b);
		no_news(t, t->store, p.store, "b");
		no_news(t, p.store, t->store, "a");
		trash_sessions(t);
		partner_close(t, &p);
	}
}

/* Two stores with a session "s" of an entry "r", and something that makes their logs differ. */
static void two(suite *t, sheaf_store **other, sheaf_session **a, sheaf_session **b)
{
	sheaf_sync_totals done;
	*other = memory_open(t);
	*a = make(t, t->store, "s");
	SAY(*a, "user", "one", .id = "r");
	OK(pull(t, *other, t->store, &done, "a"));
	*b = in(t, *other, "s");
	LABEL(*a, "r", "root");
}

static void end_two(suite *t, sheaf_store *other)
{
	trash_sessions(t);
	sheaf_close(other);
}

CASE(sync_moves_branches_that_moved_there_only)
{
	sheaf_store *other;
	sheaf_session *a, *b;
	sheaf_sync_totals done;
	two(t, &other, &a, &b);
	SAY(b, "user", "one", .id = "b1");
	SAY(b, "user", "two", .id = "x1", .branch = "side", .parent = "r");
	BRANCH(b, "gone", "r");
	OK(pull(t, t->store, other, &done, "b"));
	EQ(done.branches, 3);
	EQ(done.apart, 0);
	LEAF(a, "b1");
	LEAF_OF(a, "side", "x1");
	LEAF_OF(a, "gone", "r");
	/* Back and on from there, which is no descendant. */
	BRANCH(b, NULL, "r");
	SAY(b, "user", "again", .id = "b2");
	OK(sheaf_session_branch_delete(b, S("gone"), NULL, NULL, &t->err));
	OK(pull(t, t->store, other, &done, "b"));
	LEAF(a, "b2");
	EQ(t_head(t, a)->branch_count, 2);
	/* Here only: stays. */
	BRANCH(a, "side", "r");
	no_news(t, t->store, other, "b");
	LEAF_OF(a, "side", "r");
	/* There it goes back to where it was: nothing moved. */
	SAY(b, "user", "left", .id = "b3");
	BRANCH(b, NULL, "b2");
	OK(pull(t, t->store, other, &done, "b"));
	EQ(done.entries, 1);
	EQ(done.branches, 0);
	LEAF(a, "b2");
	EQ(t_head(t, a)->branch_count, 2);
	same_entries(t, a, b);
	no_news(t, t->store, other, "b");
	end_two(t, other);
}

CASE(sync_later_facts_hold)
{
	sheaf_store *other;
	sheaf_session *a, *b;
	sheaf_sync_totals done;
	two(t, &other, &a, &b);
	SAY(a, "user", "a", .id = "a1", .state_delta = "{\"k\":1,\"only_a\":1}");
	LABEL(a, "r", "from-a");
	OK(t_rename(t, a, "the name of a"));
	SAY(b, "user", "b", .id = "b1", .state_delta = "{\"k\":2,\"only_b\":2}");
	LABEL(b, "r", "from-b");
	OK(t_rename(t, b, "the name of b"));
	SAY(a, "user", "a", .id = "a2", .state_delta = "{\"late\":3}");
	SAY(b, "user", "b", .id = "b2", .state_delta = "{\"late\":null}");
	SAY(a, "user", "a", .id = "a3", .state_delta = "{\"late\":4}");
	OK(pull(t, t->store, other, &done, "b"));
	TEXT(t_get(t, a, "r")->label, "from-b");
	TEXT(t_head(t, a)->info->name, "the name of b");
	STATE(a, "k=2 late=4 only_a=1 only_b=2");
	OK(pull(t, other, t->store, &done, "a"));
	TEXT(t_get(t, b, "r")->label, "from-b");
	TEXT(t_head(t, b)->info->name, "the name of b");
	STATE(b, "k=2 late=4 only_a=1 only_b=2");
	same_entries(t, a, b);
	no_news(t, t->store, other, "b");
	no_news(t, other, t->store, "a");
	end_two(t, other);
}

CASE(sync_counts_usage_once)
{
	sheaf_store *other;
	sheaf_session *a, *b;
	sheaf_sync_totals done;
	two(t, &other, &a, &b);
	sheaf_usage usage = {0};
	usage.input = 10;
	usage.output = 5;
	sheaf_batch *x = t_batch(t), *y = t_batch(t);
	ADD(x, "assistant", "a", .id = "a1");
	OK(sheaf_session_append_turn(a, x, S("ta"), S(""), &usage, NULL, NULL, &t->err));
	ADD(y, "assistant", "b", .id = "b1");
	OK(sheaf_session_append_turn(b, y, S("tb"), S(""), &usage, NULL, NULL, &t->err));
	OK(pull(t, t->store, other, &done, "b"));
	OK(pull(t, other, t->store, &done, "a"));
	EQ(t_head(t, a)->info->usage.input, 20);
	EQ(t_head(t, b)->info->usage.input, 20);
	EQ(t_head(t, a)->info->turns, 2);
	EQ(t_head(t, b)->info->turns, 2);
	no_news(t, t->store, other, "b");
	end_two(t, other);
}

typedef struct noted {
	int count[8];
	char branch[80];
} noted;

static void take_note(void *ctx, const sheaf_sync_note *n)
{
	noted *k = ctx;
	k->count[n->what]++;
	if (n->branch.ptr != NULL)
		snprintf(k->branch, sizeof(k->branch), "%.*s", (int)n->branch.len, n->branch.ptr);
}

CASE(sync_conflicts_are_left_alone)
{
	sheaf_store *other;
	sheaf_session *a, *b;
	sheaf_sync_totals done;
	noted n = {{0}, ""};
	sheaf_sync_options o = SHEAF_SYNC_OPTIONS_INIT;
	o.note = take_note;
	o.ctx = &n;
	two(t, &other, &a, &b);
	SAY(a, "user", "mine", .id = "x");
	SAY(b, "user", "b", .id = "b1");
	SAY(b, "user", "theirs", .id = "x");
	sheaf_session *fine = make(t, other, "t");
	SAY(fine, "user", "fine", .id = "f");
	(void)make(t, t->store, "u");
	(void)make(t, other, "u");
	uint64_t revision = t_revision(t, a);
	FAILS(CONFLICT, pull_with(t, t->store, other, &done, "b", o));
	EQ(done.conflicts, 2);
	EQ(done.copied, 1);
	EQ(n.count[SHEAF_SYNC_CONFLICT], 2);
	EQ(n.count[SHEAF_SYNC_COPIED], 1);
	EQ(t_revision(t, a), revision);
	LEAF(in(t, t->store, "t"), "f");
	end_two(t, other);
}

CASE(sync_dry_run_writes_nothing)
{
	sheaf_store *other;
	sheaf_session *a, *b;
	sheaf_sync_totals done, then;
	noted n = {{0}, ""};
	sheaf_sync_options o = SHEAF_SYNC_OPTIONS_INIT;
	o.note = take_note;
	o.ctx = &n;
	o.dry_run = 1;
	two(t, &other, &a, &b);
	SAY(a, "user", "a", .id = "a1");
	SAY(b, "user", "b", .id = "b1");
	sheaf_session *more = make(t, other, "t");
	SAY(more, "user", "t", .id = "t1");
	LABEL(more, "t1", "L");
	uint64_t revision = t_revision(t, a);
	OK(pull_with(t, t->store, other, &done, "b", o));
	EQ(t_revision(t, a), revision);
	EQ(n.count[SHEAF_SYNC_MERGED], 1);
	EQ(n.count[SHEAF_SYNC_COPIED], 1);
	CSTR(n.branch, "main@b");
	o.dry_run = 0;
	OK(pull_with(t, t->store, other, &then, "b", o));
	EQ(then.entries, done.entries);
	EQ(then.facts, done.facts);
	EQ(then.apart, done.apart);
	EQ(then.merged, 1);
	EQ(then.copied, 1);
	no_news(t, t->store, other, "b");
	end_two(t, other);
}

/* ---- Forks, sub-agents, deleted ones ---------------------------------------------------------- */

static sheaf_session *fork_of(suite *t, sheaf_session *s, const char *at, const char *session)
{
	sheaf_key key = partner_key(t, "u", session);
	sheaf_session *f = NULL;
	OK(sheaf_session_fork(&f, s, S(at), &key, NULL, &t->err));
	t_keep(t, f);
	return f;
}

static void erase(suite *t, sheaf_store *store, const char *session)
{
	sheaf_key key = partner_key(t, "u", session);
	OK(sheaf_store_delete(NULL, store, &key, NULL, &t->err));
}

CASE(sync_forks)
{
	for (int i = 0; i < PARTNERS; i++) {
		partner p;
		sheaf_sync_totals done;
		if (!partner_open(t, i, &p))
			continue;
		t->app = t_format(t, "%s-%d", partner_key(t, "", "").app.ptr, i);
		sheaf_session *s = make(t, p.store, "s");
		SAY(s, "user", "1", .id = "s1");
		SAY(s, "user", "2", .id = "s2");
		/* Named so that they come before what they read. */
		sheaf_session *f = fork_of(t, s, "s1", "f");
		SAY(f, "user", "3", .id = "f1");
		sheaf_session *e = fork_of(t, f, "f1", "e");
		SAY(e, "user", "4", .id = "e1");
		OK(pull(t, t->store, p.store, &done, "p"));
		EQ(done.copied, 3);
		EQ(t_head(t, in(t, t->store, "f"))->info->base, 1);
		EQ(t_head(t, in(t, t->store, "e"))->info->base, t_head(t, e)->info->base);
		IDS(t_path(t, in(t, t->store, "e"), "main"), "s1 f1 e1");
		no_news(t, t->store, p.store, "p");
		/* Both go on with the fork. */
		SAY(f, "user", "5", .id = "f2");
		SAY(in(t, t->store, "f"), "user", "6", .id = "g2");
		OK(pull(t, t->store, p.store, &done, "p"));
		EQ(done.merged, 1);
		IDS(t_path(t, in(t, t->store, "f"), "main"), "s1 f1 g2");
		IDS(t_path(t, in(t, t->store, "f"), "main@p"), "s1 f1 f2");
		OK(pull(t, p.store, t->store, &done, "t"));
		IDS(t_path(t, f, "main@t"), "s1 f1 g2");
		same_entries(t, f, in(t, t->store, "f"));
		no_news(t, t->store, p.store, "p");
		no_news(t, p.store, t->store, "t");
		trash_sessions(t);
		partner_close(t, &p);
	}
}

CASE(sync_forks_of_what_is_other_here)
{
	sheaf_store *other;
	sheaf_session *a, *b;
	sheaf_sync_totals done;
	two(t, &other, &a, &b);
	SAY(a, "user", "a", .id = "a1");
	SAY(b, "user", "b", .id = "b1");
	BRANCH(b, "side", "r");
	sheaf_session *f = fork_of(t, b, "b1", "f");
	SAY(f, "user", "f", .id = "f1");
	OK(pull(t, t->store, other, &done, "b"));
	EQ(done.merged, 1);
	EQ(done.copied, 1);
	sheaf_session *here = in(t, t->store, "f");
	EQ(t_head(t, here)->info->base, 0);
	IDS(t_path(t, here, "main"), "r b1 f1");
	EQ(t_head(t, here)->branch_count, t_head(t, f)->branch_count);
	no_news(t, t->store, other, "b");
	SAY(f, "user", "f", .id = "f2");
	SAY(here, "user", "g", .id = "g2");
	OK(pull(t, t->store, other, &done, "b"));
	IDS(t_path(t, here, "main@b"), "r b1 f1 f2");
	OK(pull(t, other, t->store, &done, "a"));
	IDS(t_path(t, f, "main@a"), "r b1 f1 g2");
	no_news(t, other, t->store, "a");
	no_news(t, t->store, other, "b");
	/* A fork of a session that is deleted there. */
	erase(t, other, "s");
	sheaf_session *g = fork_of(t, f, "f1", "g");
	SAY(g, "user", "g", .id = "g1");
	OK(pull(t, t->store, other, &done, "b"));
	EQ(done.copied, 1);
	IDS(t_path(t, in(t, t->store, "g"), "main"), "r b1 f1 g1");
	LEAF(a, "a1");
	end_two(t, other);
}

CASE(sync_named_sessions_and_their_subagents)
{
	sheaf_store *other = memory_open(t);
	sheaf_sync_totals done;
	sheaf_key key = partner_key(t, "u", "worker");
	sheaf_session_options child = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_session *w = NULL;
	child.kind = S("subagent");
	child.parent_session = S("s");
	SAY(make(t, other, "s"), "user", "1", .id = "s1");
	SAY(make(t, other, "t"), "user", "1", .id = "t1");
	OK(sheaf_session_open(&w, other, &key, &child, &t->err));
	t_keep(t, w);
	key.session = S("helper");
	child.parent_session = S("worker");
	OK(sheaf_session_open(&w, other, &key, &child, &t->err));
	t_keep(t, w);
	const sheaf_str one[] = {S("s")}, none[] = {S("s"), S("nobody")};
	sheaf_sync_options o = SHEAF_SYNC_OPTIONS_INIT;
	o.sessions = none;
	o.session_count = 2;
	FAILS(NOT_FOUND, pull_with(t, t->store, other, &done, "b", o));
	o.sessions = one;
	o.session_count = 1;
	OK(pull_with(t, t->store, other, &done, "b", o));
	EQ(done.sessions, 3);
	EQ(done.copied, 3);
	OK(pull(t, t->store, other, &done, "b"));
	EQ(done.copied, 1);
	EQ(done.same, 3);
	end_two(t, other);
}

CASE(sync_deleting_does_not_travel)
{
	sheaf_store *other;
	sheaf_session *a, *b;
	sheaf_sync_totals done;
	two(t, &other, &a, &b);
	t_close(t, b);
	erase(t, other, "s");
	OK(pull(t, t->store, other, &done, "b"));
	EQ(done.sessions, 0);
	LEAF(a, "r");
	/* What is deleted on one side comes back from the other. */
	OK(pull(t, other, t->store, &done, "a"));
	EQ(done.copied, 1);
	/* Deleted, and still read by a fork: its key is taken. */
	(void)fork_of(t, a, "r", "f");
	t_close(t, a);
	erase(t, t->store, "s");
	noted n = {{0}, ""};
	sheaf_sync_options o = SHEAF_SYNC_OPTIONS_INIT;
	o.note = take_note;
	o.ctx = &n;
	OK(pull_with(t, t->store, other, &done, "b", o));
	EQ(done.left, 1);
	EQ(n.count[SHEAF_SYNC_LEFT], 1);
	end_two(t, other);
}

CASE(sync_three_stores)
{
	sheaf_store *one = memory_open(t), *two_ = memory_open(t);
	sheaf_sync_totals done;
	sheaf_session *a = make(t, t->store, "s");
	SAY(a, "user", "r", .id = "r");
	OK(pull(t, one, t->store, &done, "a"));
	OK(pull(t, two_, t->store, &done, "a"));
	sheaf_session *b = in(t, one, "s"), *c = in(t, two_, "s");
	SAY(a, "user", "a", .id = "a1");
	SAY(b, "user", "b", .id = "b1");
	SAY(c, "user", "c", .id = "c1");
	OK(pull(t, one, two_, &done, "c"));
	OK(pull(t, t->store, one, &done, "b"));
	LEAF_OF(a, "main@b", "b1");
	IDS(t_children(t, a, "r"), "a1 b1 c1");
	EQ(t_head(t, a)->branch_count, 2);
	/* The same name for another store: what is known of the one does not count. */
	OK(pull(t, t->store, two_, &done, "b"));
	LEAF_OF(a, "main@b", "c1");
	OK(pull(t, two_, t->store, &done, "a"));
	OK(pull(t, one, two_, &done, "c"));
	same_entries(t, a, b);
	same_entries(t, a, c);
	no_news(t, one, two_, "c");
	no_news(t, two_, t->store, "a");
	trash_sessions(t);
	sheaf_close(one);
	sheaf_close(two_);
}

CASE(sync_user_and_app_state)
{
	sheaf_store *other;
	sheaf_session *a, *b;
	sheaf_sync_totals done;
	two(t, &other, &a, &b);
	SAY(a, "user", "a", .id = "a1", .state_delta = "{\"user:k\":1,\"app:k\":1}");
	SAY(b, "user", "b", .id = "b1", .state_delta = "{\"user:k\":2,\"user:l\":3,\"app:k\":2}");
	OK(pull(t, t->store, other, &done, "b"));
	OK(pull(t, other, t->store, &done, "a"));
	sheaf_key key = partner_key(t, "u", "");
	CSTR(t_store_state(t, key.app.ptr, "u"), "user:k=1 user:l=3");
	CSTR(t_store_state(t, key.app.ptr, NULL), "app:k=2");
	STATE(b, "app:k=2 user:k=2 user:l=3");
	end_two(t, other);
}

CASE(sync_names)
{
	sheaf_store *other;
	sheaf_session *a, *b;
	sheaf_sync_totals done;
	two(t, &other, &a, &b);
	SAY(a, "user", "a", .id = "a1");
	SAY(b, "user", "b", .id = "b1");
	FAILS(INVALID, pull(t, t->store, other, &done, "a b"));
	FAILS(INVALID, pull(t, t->store, other, &done, "a@b"));
	FAILS(LIMIT,
	      pull(t, t->store, other, &done, t_fill(t, 'n', SHEAF_SYNC_NAME_BYTES_MAX + 1)));
	OK(pull(t, t->store, other, &done, t_fill(t, 'n', SHEAF_SYNC_NAME_BYTES_MAX)));
	EQ(done.apart, 1);
	/* Without one it is the store's own. */
	SAY(b, "user", "b", .id = "b2");
	OK(pull(t, t->store, other, &done, ""));
	LEAF_OF(a, "main@memory", "b2");
	/* A branch whose name leaves no room for it. */
	BRANCH(b, t_fill(t, 'x', SHEAF_BRANCH_BYTES_MAX), "b1");
	BRANCH(a, t_fill(t, 'x', SHEAF_BRANCH_BYTES_MAX), "a1");
	uint64_t revision = t_revision(t, a);
	FAILS(LIMIT, pull(t, t->store, other, &done, "b"));
	EQ(t_revision(t, a), revision);
	end_two(t, other);
}
