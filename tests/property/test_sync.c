/*
 * Random histories on stores that drift apart, with pulls in any direction and
 * any order, some of them broken off: no entry is lost or changed, no branch
 * moves away from what the other side did not know, a second pull writes
 * nothing, and in the end all stores have the same.
 *
 *   test_property_sync [SEED [URL]]    SHEAF_TEST_SCALE multiplies the number of histories
 *
 * With a URL one of the stores is there; else one of three is in a directory.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sheaf.h"
#include "store/store.h"

#define HISTORIES 60
#define STORES 3
#define SESSIONS 3
#define STEPS 60
#define ROUNDS 6

static uint64_t seed, rng;
static sheaf_error err;
static sheaf_store *stores[STORES];
/* Now and then two stores are called the same, and one has two names. */
static const char *store_names[STORES] = {"a", "b", "c"};
static char app[64];
static unsigned counter;

static uint64_t next(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

/* SHEAF_TRACE=1: what is done. */
__attribute__((format(printf, 1, 2))) static void trace(const char *format, ...)
{
	va_list args;
	if (getenv("SHEAF_TRACE") == NULL)
		return;
	va_start(args, format);
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
}

static size_t below(size_t n)
{
	return (size_t)(next() % n);
}

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "seed %llu: ", (unsigned long long)seed);
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

#define OK(call)                                                                                   \
	do {                                                                                       \
		if ((call) != 0)                                                                   \
			die("line %d: %s: %s", __LINE__, #call, err.message);                      \
	} while (0)
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			die("line %d: %s", __LINE__, #condition);                                  \
	} while (0)

static sheaf_str S(const char *text)
{
	return sheaf_str_of(text);
}

static bool eq(sheaf_str a, sheaf_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* ---- Sessions ----------------------------------------------------------------------------- */

static sheaf_session *open_in(size_t store, size_t session)
{
	char name[16];
	sheaf_session *s = NULL;
	snprintf(name, sizeof(name), "s%zu", session);
	sheaf_key key = {S(app), S("u"), S(name)};
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	int rc = sheaf_session_open(&s, stores[store], &key, &o, &err);
	CHECK(rc == 0 || rc == SHEAF_NOT_FOUND);
	return s;
}

static sheaf_records *entries_of(sheaf_session *s)
{
	sheaf_records *r = NULL;
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.kinds = SHEAF_KINDS_ENTRIES;
	o.limit = 100000;
	o.raw = 1;
	OK(sheaf_session_records(&r, s, &o, &err));
	return r;
}

static const sheaf_entry *find(const sheaf_records *r, sheaf_str id)
{
	for (size_t i = 0; r != NULL && i < r->count; i++)
		if (eq(r->items[i]->id, id))
			return r->items[i];
	return NULL;
}

static sheaf_str pick(const sheaf_records *r)
{
	return r->count != 0 ? r->items[below(r->count)]->id : S("");
}

static sheaf_entry_options entry(char room[32])
{
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	static const char *const branches[] = {"", "", "side", "try"};
	snprintf(room, 32, "e%u", counter++);
	e.id = S(room);
	e.branch = S(branches[below(4)]);
	if (e.branch.len != 0)
		e.has_parent = 1;
	return e;
}

static void say(sheaf_session *s, const sheaf_records *known)
{
	char id[32], delta[64];
	sheaf_entry_options e = entry(id);
	if (e.has_parent)
		e.parent_id = pick(known);
	snprintf(delta, sizeof(delta), "{\"k%zu\":%s}", below(3), below(4) == 0 ? "null" : id + 1);
	if (below(3) == 0)
		e.state_delta = S(delta);
	OK(sheaf_session_append_json(
		s, S("message"),
		S("{\"message\":{\"role\":\"user\",\"content\":\"x\",\"usage\":{\"input\":1}}}"),
		&e, NULL, NULL, &err));
}

static void batch(sheaf_session *s, const sheaf_records *known)
{
	sheaf_batch *b = sheaf_batch_new();
	CHECK(b != NULL);
	char id[3][32];
	for (size_t i = 0; i < 3; i++) {
		sheaf_entry_options e = entry(id[i]);
		if (e.has_parent)
			e.parent_id = pick(known);
		OK(sheaf_batch_json(b, S("custom"), S("{\"custom\":{\"custom_type\":\"x\"}}"), &e,
		                    &err));
	}
	OK(sheaf_session_append_batch(s, b, NULL, NULL, &err));
	sheaf_batch_free(b);
}

static void change(sheaf_session *s)
{
	sheaf_records *known = entries_of(s);
	char text[32];
	static const char *const branches[] = {"main", "side", "try"};
	snprintf(text, sizeof(text), "t%u", counter++);
	size_t what = below(9);
	trace("change %zu (%s)", what, text);
	switch (what) {
	case 0:
		batch(s, known);
		break;
	case 1:
		if (known->count != 0)
			OK(sheaf_session_label(s, pick(known), S(below(3) ? text : ""), NULL, NULL,
			                       &err));
		break;
	case 2:
		OK(sheaf_session_rename(s, S(text), (sheaf_str){NULL, 0}, NULL, NULL, &err));
		break;
	case 3:
		OK(sheaf_session_branch(s, S(branches[below(3)]), pick(known), NULL, NULL, &err));
		break;
	case 4:
		(void)sheaf_session_branch_delete(s, S(branches[1 + below(2)]), NULL, NULL, &err);
		break;
	case 5: {
		sheaf_todo todo = SHEAF_TODO_INIT;
		todo.id = S("todo");
		todo.content = S(text);
		OK(sheaf_session_set_todo(s, &todo, NULL, NULL, NULL, &err));
		break;
	}
	default:
		say(s, known);
	}
	sheaf_records_free(known);
}

/* ---- Pulling -------------------------------------------------------------------------------- */

/* What a session was before a pull. */
typedef struct before {
	sheaf_records *entries;
	sheaf_head_view *head;
} before;

static before look(size_t store, size_t session)
{
	before b = {NULL, NULL};
	sheaf_session *s = open_in(store, session);
	if (s == NULL)
		return b;
	b.entries = entries_of(s);
	OK(sheaf_session_head(&b.head, s, &err));
	sheaf_session_close(s);
	return b;
}

static void forget(before *b)
{
	sheaf_records_free(b->entries);
	sheaf_head_view_free(b->head);
}

static const sheaf_branch_info *branch(const before *b, sheaf_str name)
{
	for (size_t i = 0; b->head != NULL && i < b->head->branch_count; i++)
		if (eq(b->head->branches[i]->name, name))
			return b->head->branches[i];
	return NULL;
}

static void expect_entries(const before *has, const before *of)
{
	for (size_t i = 0; of->entries != NULL && i < of->entries->count; i++) {
		const sheaf_entry *e = of->entries->items[i], *f = find(has->entries, e->id);
		if (f == NULL)
			die("entry %.*s is missing", (int)e->id.len, e->id.ptr);
		CHECK(eq(f->type, e->type) && eq(f->body, e->body) &&
		      eq(f->parent_id, e->parent_id) && eq(f->timestamp, e->timestamp));
	}
}

static bool descends(const before *b, sheaf_str from, sheaf_str leaf)
{
	for (const sheaf_entry *e = find(b->entries, leaf); e != NULL;
	     e = find(b->entries, e->parent_id)) {
		if (eq(e->id, from))
			return true;
	}
	return from.len == 0;
}

/* Where every branch of the receiver is, given where it was. */
static void expect_branches(size_t source, const before *was, const before *there, const before *is)
{
	for (size_t i = 0; i < is->head->branch_count; i++) {
		const sheaf_branch_info *now = is->head->branches[i];
		const sheaf_branch_info *old = branch(was, now->name);
		const sheaf_branch_info *theirs = branch(there, now->name);
		if (memchr(now->name.ptr, '@', now->name.len) != NULL)
			continue;
		if (old != NULL && eq(old->leaf, now->leaf))
			continue;
		/* It moved: to where the source is, which knew where it was. */
		CHECK(theirs != NULL && eq(theirs->leaf, now->leaf));
		CHECK(old == NULL || old->leaf.len == 0 || find(there->entries, old->leaf) != NULL);
	}
	for (size_t i = 0; i < there->head->branch_count; i++) {
		const sheaf_branch_info *theirs = there->head->branches[i];
		char aside[80];
		if (memchr(theirs->name.ptr, '@', theirs->name.len) != NULL)
			continue;
		snprintf(aside, sizeof(aside), "%.*s@%s", (int)theirs->name.len, theirs->name.ptr,
		         store_names[source]);
		const sheaf_branch_info *now = branch(is, theirs->name),
					*apart = branch(is, S(aside));
		/* The same, behind, set apart, or not moved there since this side has. */
		bool fine = (now != NULL && descends(is, theirs->leaf, now->leaf)) ||
		            (apart != NULL && eq(apart->leaf, theirs->leaf)) ||
		            (was->entries != NULL &&
		             (theirs->leaf.len == 0 || find(was->entries, theirs->leaf) != NULL));
		if (!fine)
			die("branch %.*s of %s is nowhere", (int)theirs->name.len, theirs->name.ptr,
			    store_names[source]);
	}
}

static int stop_at;

static int stop(void *ctx, const sheaf_sync_totals *totals)
{
	(void)ctx;
	(void)totals;
	return stop_at > 0 && --stop_at == 0;
}

static int fault_at;

static int fail_append(void *ctx, const char *slot, sheaf_error *e)
{
	(void)ctx;
	(void)e;
	return strcmp(slot, "append") == 0 && fault_at > 0 && --fault_at == 0 ? SHEAF_STORAGE : 0;
}

static int pull(size_t here, size_t there, sheaf_sync_totals *totals)
{
	sheaf_sync_options o = SHEAF_SYNC_OPTIONS_INIT;
	o.app = S(app);
	o.user = S("u");
	o.source = S(store_names[there]);
	o.progress = stop;
	*totals = (sheaf_sync_totals){.size = sizeof(*totals)};
	return sheaf_store_pull(totals, stores[here], stores[there], &o, &err);
}

/* A pull, sometimes broken off first; then all that must hold. True if there was news. */
static bool pull_and_look(size_t here, size_t there, bool disturbed)
{
	static const char *const names[] = {"a", "b", "c", "x", "x"};
	before was[SESSIONS], theirs[SESSIONS];
	sheaf_sync_totals totals, again;
	store_names[there] = names[disturbed ? below(5) : there];
	for (size_t i = 0; i < SESSIONS; i++) {
		was[i] = look(here, i);
		theirs[i] = look(there, i);
	}
	if (disturbed) {
		stop_at = below(2) ? (int)below(4) : 0;
		fault_at = below(2) ? (int)below(4) : 0;
		store_set_fault(fail_append, NULL);
		int rc = pull(here, there, &totals);
		CHECK(rc == 0 || rc == SHEAF_CANCELLED || rc == SHEAF_STORAGE);
		store_set_fault(NULL, NULL);
		stop_at = 0;
	}
	OK(pull(here, there, &totals));
	trace("%c pulls %c as %s: %llu merged, %llu extended, %llu entries, %llu facts",
	      (char)('a' + here), (char)('a' + there), store_names[there],
	      (unsigned long long)totals.merged, (unsigned long long)totals.extended,
	      (unsigned long long)totals.entries, (unsigned long long)totals.facts);
	CHECK(totals.conflicts + totals.failed + totals.left == 0);
	for (size_t i = 0; i < SESSIONS; i++) {
		before is = look(here, i);
		if (theirs[i].head != NULL) {
			expect_entries(&is, &was[i]);
			expect_entries(&is, &theirs[i]);
			expect_branches(there, &was[i], &theirs[i], &is);
		}
		forget(&is);
		forget(&was[i]);
		forget(&theirs[i]);
	}
	OK(pull(here, there, &again));
	if (again.bytes != 0)
		trace("again: %llu merged, %llu entries, %llu facts, %llu branches, %llu apart",
		      (unsigned long long)again.merged, (unsigned long long)again.entries,
		      (unsigned long long)again.facts, (unsigned long long)again.branches,
		      (unsigned long long)again.apart);
	CHECK(again.bytes == 0 && again.same == again.sessions);
	return totals.bytes != 0;
}

/* ---- The end ------------------------------------------------------------------------------------ */

static void expect_same_head(const before *a, const before *b)
{
	const sheaf_session_info *x = a->head->info, *y = b->head->info;
	CHECK(eq(x->name, y->name));
	CHECK(x->messages == y->messages);
	CHECK(x->usage.input == y->usage.input);
	CHECK(a->entries->count == b->entries->count);
}

static void expect_same_labels(sheaf_session *a, sheaf_session *b)
{
	sheaf_records *x = NULL, *y = NULL;
	OK(sheaf_session_labels(&x, a, &err));
	OK(sheaf_session_labels(&y, b, &err));
	CHECK(x->count == y->count);
	for (size_t i = 0; i < x->count; i++) {
		const sheaf_entry *e = find(y, x->items[i]->id);
		CHECK(e != NULL && eq(e->label, x->items[i]->label));
	}
	sheaf_records_free(x);
	sheaf_records_free(y);
}

static void expect_same_state(sheaf_session *a, sheaf_session *b)
{
	sheaf_state *x = NULL, *y = NULL;
	sheaf_todos *t = NULL, *u = NULL;
	OK(sheaf_session_state_all(&x, a, &err));
	OK(sheaf_session_state_all(&y, b, &err));
	CHECK(x->count == y->count);
	for (size_t i = 0; i < x->count; i++)
		CHECK(eq(x->items[i]->key, y->items[i]->key) &&
		      eq(x->items[i]->value, y->items[i]->value));
	sheaf_state_free(x);
	sheaf_state_free(y);
	OK(sheaf_session_todos(&t, a, &err));
	OK(sheaf_session_todos(&u, b, &err));
	CHECK(t->count == u->count);
	for (size_t i = 0; i < t->count; i++)
		CHECK(eq(t->items[i]->content, u->items[i]->content));
	sheaf_todos_free(t);
	sheaf_todos_free(u);
}

/* Pulls all around until nothing is new anywhere, which must be soon. */
static void settle(void)
{
	bool news = true;
	for (int round = 0; news; round++) {
		CHECK(round < ROUNDS);
		news = false;
		for (size_t i = 0; i < STORES; i++)
			for (size_t k = 0; k < STORES; k++)
				if (i != k && pull_and_look(i, k, false))
					news = true;
	}
	for (size_t i = 0; i < SESSIONS; i++) {
		trace("s%zu must be the same everywhere", i);
		before first = look(0, i);
		sheaf_session *a = open_in(0, i);
		for (size_t k = 1; k < STORES; k++) {
			before other = look(k, i);
			sheaf_session *b = open_in(k, i);
			expect_entries(&first, &other);
			expect_entries(&other, &first);
			expect_same_head(&first, &other);
			expect_same_labels(a, b);
			expect_same_state(a, b);
			sheaf_session_close(b);
			forget(&other);
		}
		sheaf_session_close(a);
		forget(&first);
	}
}

static void history(void)
{
	for (size_t i = 0; i < SESSIONS; i++) {
		char name[16];
		sheaf_session *s = NULL, *from = NULL;
		snprintf(name, sizeof(name), "s%zu", i);
		sheaf_key key = {S(app), S("u"), S(name)};
		size_t store = i == 2 ? 0 : below(STORES);
		char leaf[SHEAF_ID_ROOM] = "";
		if (i == 2 && (from = open_in(0, 0)) != NULL)
			OK(sheaf_session_leaf(from, S(""), leaf, &err));
		if (leaf[0] != '\0')
			OK(sheaf_session_fork(&s, from, S(leaf), &key, NULL, &err));
		else
			OK(sheaf_session_open(&s, stores[store], &key, NULL, &err));
		for (size_t k = below(6); k > 0; k--)
			change(s);
		sheaf_session_close(s);
		sheaf_session_close(from);
	}
	for (size_t step = 0; step < STEPS; step++) {
		size_t store = below(STORES), other = below(STORES);
		if (store != other && below(3) == 0) {
			(void)pull_and_look(store, other, below(3) == 0);
			continue;
		}
		size_t session = below(SESSIONS);
		trace("%c s%zu", (char)('a' + store), session);
		sheaf_session *s = open_in(store, session);
		if (s != NULL)
			change(s);
		sheaf_session_close(s);
	}
	settle();
}

int main(int argc, char **argv)
{
	const char *scale = getenv("SHEAF_TEST_SCALE");
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	unsigned long count = argc > 1 ? 1 : HISTORIES;
	char directory[] = "sync-XXXXXX", url[64];
	if (scale != NULL && argc <= 1)
		count *= strtoul(scale, NULL, 10);
	if (mkdtemp(directory) == NULL)
		return 1;
	snprintf(url, sizeof(url), "jsonl:%s", directory);
	OK(sheaf_open(&stores[0], "memory:", NULL, &err));
	OK(sheaf_open(&stores[1], argc > 2 ? argv[2] : url, NULL, &err));
	OK(sheaf_open(&stores[2], "memory:", NULL, &err));
	for (seed = first; seed < first + count; seed++) {
		rng = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
		snprintf(app, sizeof(app), "sync-%d-%llu", (int)getpid(), (unsigned long long)seed);
		counter = 0;
		for (int i = 0; i < 8; i++)
			(void)next();
		history();
	}
	for (size_t i = 0; i < STORES; i++)
		sheaf_close(stores[i]);
	printf("%lu histories\n", count);
	return 0;
}
