/* Copies of a whole store into another and back: nothing changes on the way, nothing is lost. */
#include <stdio.h>
#include <unistd.h>

#include "partner.h"
#include "trash.h"

/* A store of the first kind, for cases that need just any. */
static sheaf_store *memory_open(suite *t)
{
	sheaf_store *store = NULL;
	OK(sheaf_open(&store, "memory:", NULL, &t->err));
	return store;
}

/* ---- What is copied ---------------------------------------------------------- */

static sheaf_session *make(suite *t, sheaf_store *store, const char *session)
{
	sheaf_key key = partner_key(t, "u", session);
	return t_open_in(t, store, &key, SHEAF_OPEN_NEW);
}

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

/* A bit of everything, with chains of forks whose middles and ends were deleted. */
static void fill(suite *t, sheaf_store *store)
{
	sheaf_session *s = make(t, store, "s");
	SAY(s, "user", "one", .id = "a");
	sheaf_batch *b = t_batch(t);
	ADD(b, "assistant", "two", .id = "b");
	ADD(b, "user", "\n\t\"\\\x7f \xf0\x9f\x8c\xbe", .id = "c");
	OK(t_append_batch(t, s, b, (put){0}));
	LABEL(s, "a", "first");
	BRANCH(s, "side", "b");
	SAY(s, "user", "x", .id = "x", .branch = "side");
	OK(sheaf_session_rename(s, S("the name"), S("{\"k\":[1e400]}"), NULL, NULL, &t->err));
	COMPACT(s, "sum", "c", .id = "d");
	JSON(s, "made_up", "{\"made_up\":{\"n\":18446744073709551617}}", .id = "e");
	sheaf_session *f = fork_of(t, s, "c", "f");
	SAY(f, "user", "three", .id = "f1");
	LABEL(f, "b", "second");
	SAY(f, "user", "four", .id = "f2");
	sheaf_session *g = fork_of(t, f, "f1", "g");
	SAY(g, "user", "five", .id = "g1");
	sheaf_session *h = fork_of(t, g, "g1", "h");
	SAY(h, "user", "six", .id = "h1");
	(void)make(t, store, "empty");
	sheaf_session *gone = make(t, store, "aaa");
	SAY(gone, "user", "root", .id = "r");
	SAY(gone, "user", "not read", .id = "r2");
	(void)fork_of(t, gone, "r", "zzz");
	erase(t, store, "aaa");
	erase(t, store, "f");
	erase(t, store, "g");
}

static int copy_with(suite *t, sheaf_store *from, sheaf_store *to, sheaf_copy_totals *out,
                     sheaf_copy_options options)
{
	sheaf_key key = partner_key(t, "u", "");
	options.app = key.app;
	options.user = key.user;
	*out = (sheaf_copy_totals){.size = sizeof(*out)};
	return sheaf_store_copy(out, from, to, &options, &t->err);
}

static int copy(suite *t, sheaf_store *from, sheaf_store *to, sheaf_copy_totals *out)
{
	return copy_with(t, from, to, out, (sheaf_copy_options)SHEAF_COPY_OPTIONS_INIT);
}

static const sheaf_records *lines(suite *t, sheaf_store *store, sheaf_str session)
{
	sheaf_key key = partner_key(t, "u", "");
	key.session = session;
	sheaf_session *s = t_open_in(t, store, &key, SHEAF_OPEN_EXISTING);
	sheaf_read_options all = SHEAF_READ_OPTIONS_INIT;
	all.limit = 100000;
	all.raw = 1;
	const sheaf_records *r = t_records(t, s, &all);
	t_close(t, s);
	return r;
}

static sheaf_list *list(suite *t, sheaf_store *store)
{
	sheaf_key key = partner_key(t, "u", "");
	sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
	sheaf_list *l = NULL;
	o.app = key.app;
	o.user = key.user;
	o.limit = 10000;
	OK(sheaf_store_list(&l, store, &o, &t->err));
	return l;
}

static void same_text(suite *t, sheaf_str a, sheaf_str b)
{
	CHECK((a.ptr == NULL) == (b.ptr == NULL));
	if (b.ptr != NULL)
		BYTES(a, b.ptr, b.len);
}

/* Every session is in both, and everything about it is the same, also what it inherits. */
static void same(suite *t, sheaf_store *one, sheaf_store *two)
{
	sheaf_list *a = list(t, one), *b = list(t, two);
	EQ(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		const sheaf_session_info *x = a->items[i], *y = b->items[i];
		same_text(t, y->session, x->session);
		same_text(t, y->name, x->name);
		same_text(t, y->source, x->source);
		same_text(t, y->preview, x->preview);
		EQ(y->base, x->base);
		EQ(y->created_us, x->created_us);
		EQ(y->modified_us, x->modified_us);
		EQ(y->revision, x->revision);
		EQ(y->records, x->records);
		EQ(y->messages, x->messages);
		const sheaf_records *r = lines(t, one, x->session);
		const sheaf_records *q = lines(t, two, x->session);
		EQ(q->count, r->count);
		for (size_t k = 0; k < r->count; k++) {
			EQ(q->items[k]->seq, r->items[k]->seq);
			EQ(q->items[k]->parent_seq, r->items[k]->parent_seq);
			same_text(t, q->items[k]->line, r->items[k]->line);
		}
	}
	sheaf_list_free(a);
	sheaf_list_free(b);
}

/* ---- There and back ------------------------------------------------------------ */

CASE(store_copy_to_every_store)
{
	fill(t, t->store);
	for (int i = 0; i < PARTNERS; i++) {
		partner p;
		sheaf_copy_totals done;
		if (!partner_open(t, i, &p))
			continue;
		OK(copy(t, t->store, p.store, &done));
		EQ(done.sessions, 7);
		EQ(done.copied, 7);
		EQ(done.done, 7);
		EQ(done.records_copied, done.records_done);
		EQ(done.records_verified, done.records_copied);
		same(t, t->store, p.store);
		/* Again there is nothing to do. */
		OK(copy(t, t->store, p.store, &done));
		EQ(done.equal, 7);
		EQ(done.records_copied, 0);
		EQ(done.bytes_copied, 0);
		CHECK(done.records_verified != 0);
		same(t, t->store, p.store);
		trash_sessions(t);
		partner_close(t, &p);
	}
}

CASE(store_copy_from_every_store)
{
	for (int i = 0; i < PARTNERS; i++) {
		partner p;
		sheaf_copy_totals done;
		if (!partner_open(t, i, &p))
			continue;
		t->app = t_format(t, "%s-%d", partner_key(t, "", "").app.ptr, i);
		fill(t, p.store);
		OK(copy(t, p.store, t->store, &done));
		EQ(done.copied, 7);
		same(t, p.store, t->store);
		/* What was hidden is hidden here too: not there, but its key is taken. */
		sheaf_key key = partner_key(t, "u", "aaa");
		sheaf_session *s = NULL;
		sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
		o.mode = SHEAF_OPEN_EXISTING;
		FAILS(NOT_FOUND, sheaf_session_open(&s, t->store, &key, &o, &t->err));
		o.mode = SHEAF_OPEN_NEW;
		FAILS(EXISTS, sheaf_session_open(&s, t->store, &key, &o, &t->err));
		/* The last fork takes it along. */
		erase(t, t->store, "zzz");
		t_close(t, make(t, t->store, "aaa"));
		/* And a copy is a session like any other. */
		key = partner_key(t, "u", "h");
		s = t_open_in(t, t->store, &key, SHEAF_OPEN_EXISTING);
		SAY(s, "user", "goes on", .id = "h2");
		SAY(s, "user", "six", .id = "h1");
		EQ(t->out.existed, 1);
		t_close(t, s);
		trash_sessions(t);
		partner_close(t, &p);
	}
}

/* ---- What is there already ------------------------------------------------------ */

CASE(store_copy_extends)
{
	sheaf_store *to = memory_open(t);
	sheaf_copy_totals done;
	sheaf_session *s = make(t, t->store, "s");
	SAY(s, "user", "one", .id = "a");
	OK(copy(t, t->store, to, &done));
	SAY(s, "user", "two", .id = "b");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "three", .id = "c");
	ADD(b, "user", "four", .id = "d");
	OK(t_append_batch(t, s, b, (put){0}));
	(void)fork_of(t, s, "b", "f");
	OK(copy(t, t->store, to, &done));
	EQ(done.sessions, 2);
	EQ(done.extended, 1);
	EQ(done.copied, 1);
	same(t, t->store, to);
	/* Into the store of the case, too. */
	sheaf_key key = partner_key(t, "u", "s");
	sheaf_session *there = t_open_in(t, to, &key, SHEAF_OPEN_EXISTING);
	SAY(there, "user", "five", .id = "e");
	OK(copy(t, to, t->store, &done));
	EQ(done.extended, 1);
	EQ(done.equal, 1);
	EQ(done.records_copied, 1);
	same(t, to, t->store);
	trash_sessions(t);
	sheaf_close(to);
}

CASE(store_copy_of_what_has_gone_on_there)
{
	sheaf_store *to = memory_open(t);
	sheaf_copy_totals done;
	sheaf_session *s = make(t, t->store, "s");
	SAY(s, "user", "one", .id = "a");
	OK(copy(t, t->store, to, &done));
	sheaf_key key = partner_key(t, "u", "s");
	sheaf_session *there = t_open_in(t, to, &key, SHEAF_OPEN_EXISTING);
	SAY(there, "user", "two", .id = "b");
	OK(copy(t, t->store, to, &done));
	EQ(done.ahead, 1);
	EQ(done.records_copied, 0);
	EQ(lines(t, to, S("s"))->count, 2);
	trash_sessions(t);
	sheaf_close(to);
}

typedef struct noted {
	int count[8];
	uint64_t seq;
	char session[80];
} noted;

static void take_note(void *ctx, const sheaf_copy_note *note)
{
	noted *n = ctx;
	n->count[note->what]++;
	n->seq = note->seq;
	snprintf(n->session, sizeof(n->session), "%.*s", (int)note->session.len, note->session.ptr);
}

CASE(store_copy_leaves_conflicts_alone)
{
	sheaf_store *from = memory_open(t);
	sheaf_copy_totals done;
	noted notes = {{0}, 0, ""};
	sheaf_copy_options options = SHEAF_COPY_OPTIONS_INIT;
	options.note = take_note;
	options.ctx = &notes;
	sheaf_session *s = make(t, from, "s");
	SAY(s, "user", "one", .id = "a");
	OK(copy(t, from, t->store, &done));
	/* Both go on, each for itself. */
	sheaf_key key = partner_key(t, "u", "s");
	sheaf_session *there = t_open_in(t, t->store, &key, SHEAF_OPEN_EXISTING);
	SAY(s, "user", "two", .id = "b");
	SAY(there, "user", "zwei", .id = "z");
	SAY(there, "user", "drei", .id = "y");
	/* Another session altogether, and one that is fine. */
	usleep(2000);
	(void)make(t, from, "other");
	usleep(2000);
	(void)make(t, t->store, "other");
	SAY(make(t, from, "fine"), "user", "fine", .id = "f");
	/* What reads a session that is not the same there cannot be copied either. */
	(void)fork_of(t, s, "b", "fork");
	FAILS(CONFLICT, copy_with(t, from, t->store, &done, options));
	EQ(done.conflicts, 2);
	EQ(done.failed, 1);
	EQ(done.copied, 1);
	EQ(done.done, 4);
	EQ(notes.count[SHEAF_COPY_CONFLICT], 2);
	EQ(notes.count[SHEAF_COPY_FAILED], 1);
	const sheaf_records *r = lines(t, t->store, S("s"));
	IDS(r, "a z y");
	IDS(lines(t, t->store, S("fine")), "f");
	sheaf_list *l = list(t, t->store);
	EQ(l->count, 3);
	sheaf_list_free(l);
	erase(t, from, "fork");
	erase(t, from, "other");
	FAILS(CONFLICT, copy_with(t, from, t->store, &done, options));
	EQ(notes.seq, 2);
	CSTR(notes.session, "s");
	trash_sessions(t);
	sheaf_close(from);
}

CASE(store_copy_does_not_bring_back_what_was_deleted_there)
{
	sheaf_store *from = memory_open(t);
	sheaf_copy_totals done;
	sheaf_session *s = make(t, from, "s");
	SAY(s, "user", "one", .id = "a");
	(void)fork_of(t, s, "a", "f");
	OK(copy(t, from, t->store, &done));
	erase(t, t->store, "s");
	FAILS(CONFLICT, copy(t, from, t->store, &done));
	EQ(done.conflicts, 1);
	IDS(lines(t, t->store, S("f")), "a");
	trash_sessions(t);
	sheaf_close(from);
}

CASE(store_copy_of_a_source_that_was_deleted_later)
{
	sheaf_store *from = memory_open(t);
	sheaf_copy_totals done;
	sheaf_session *s = make(t, from, "s");
	SAY(s, "user", "one", .id = "a");
	SAY(s, "user", "two", .id = "b");
	sheaf_session *f = fork_of(t, s, "a", "f");
	OK(copy(t, from, t->store, &done));
	erase(t, from, "s");
	SAY(f, "user", "three", .id = "c");
	/* There it lives and has more than the forks read: nothing is deleted. */
	OK(copy(t, from, t->store, &done));
	EQ(done.ahead, 1);
	EQ(done.extended, 1);
	IDS(lines(t, t->store, S("s")), "a b");
	trash_sessions(t);
	sheaf_close(from);
}

/* ---- Broken off ------------------------------------------------------------------ */

typedef struct breaking {
	int left;
	int calls;
} breaking;

static int break_off(void *ctx, const sheaf_copy_totals *totals)
{
	breaking *b = ctx;
	(void)totals;
	b->calls++;
	return b->left-- == 0;
}

CASE(store_copy_broken_off_everywhere)
{
	sheaf_store *from = memory_open(t);
	fill(t, from);
	sheaf_copy_options options = SHEAF_COPY_OPTIONS_INIT;
	options.progress = break_off;
	for (int at = 0;; at++) {
		sheaf_copy_totals done;
		breaking b = {.left = at};
		options.ctx = &b;
		/* Each time a bit further, on top of what the time before left. */
		int rc = copy_with(t, from, t->store, &done, options);
		if (rc == 0)
			break;
		EQ(rc == SHEAF_CANCELLED, 1);
		CHECK(at < 100);
	}
	same(t, from, t->store);
	trash_sessions(t);
	sheaf_close(from);
}

CASE(store_copy_of_a_long_session)
{
	/* More than two portions by count, with batches across where they would be cut. */
	sheaf_store *from = memory_open(t);
	sheaf_session *s = make(t, from, "s");
	for (int i = 0; i < 10; i++) {
		sheaf_batch *b = t_batch(t);
		for (int k = 0; k < 999; k++)
			ADD(b, "user", "text");
		OK(t_append_batch(t, s, b, (put){0}));
	}
	sheaf_copy_totals done;
	breaking b = {.left = 2};
	sheaf_copy_options options = SHEAF_COPY_OPTIONS_INIT;
	options.progress = break_off;
	options.ctx = &b;
	FAILS(CANCELLED, copy_with(t, from, t->store, &done, options));
	CHECK(done.records_copied >= 1000 && done.records_copied < 9990);
	EQ(done.records_copied % 999, 0);
	b = (breaking){.left = 1000};
	OK(copy_with(t, from, t->store, &done, options));
	EQ(done.extended, 1);
	CHECK(b.calls >= 4);
	CHECK(done.records_copied < 9990);
	EQ(done.records_verified, 9990);
	same(t, from, t->store);
	trash_sessions(t);
	sheaf_close(from);
}

typedef struct meddling {
	suite *t;
	sheaf_session *session;
	noted notes;
	int once;
} meddling;

static int meddle(void *ctx, const sheaf_copy_totals *totals)
{
	meddling *m = ctx;
	if (totals->records_copied != 0 && m->once++ == 0)
		return t_say(m->t, m->session, "user", "meanwhile", (put){.id = "m"}) != 0;
	return 0;
}

static void meddle_note(void *ctx, const sheaf_copy_note *note)
{
	take_note(&((meddling *)ctx)->notes, note);
}

CASE(store_copy_of_what_is_written_to_meanwhile)
{
	sheaf_store *to = memory_open(t);
	sheaf_copy_totals done;
	sheaf_session *s = make(t, t->store, "s");
	SAY(s, "user", "one", .id = "a");
	meddling m = {t, s, {{0}, 0, ""}, 0};
	sheaf_copy_options options = SHEAF_COPY_OPTIONS_INIT;
	options.progress = meddle;
	options.note = meddle_note;
	options.ctx = &m;
	OK(copy_with(t, t->store, to, &done, options));
	EQ(done.changed, 1);
	EQ(m.notes.count[SHEAF_COPY_CHANGED], 1);
	EQ(m.notes.seq, 1);
	IDS(lines(t, to, S("s")), "a");
	OK(copy_with(t, t->store, to, &done, options));
	EQ(done.extended, 1);
	EQ(done.changed, 0);
	IDS(lines(t, to, S("s")), "a m");
	trash_sessions(t);
	sheaf_close(to);
}

/* ---- Which sessions --------------------------------------------------------------- */

CASE(store_copy_of_one_owner_or_all)
{
	sheaf_store *to = memory_open(t);
	sheaf_copy_totals done = {.size = sizeof(done)};
	sheaf_key ada = partner_key(t, "ada", "s"), bob = partner_key(t, "bob", "s");
	SAY(t_open_in(t, t->store, &ada, SHEAF_OPEN_NEW), "user", "of ada", .id = "a");
	SAY(t_open_in(t, t->store, &bob, SHEAF_OPEN_NEW), "user", "of bob", .id = "b");
	sheaf_copy_options options = SHEAF_COPY_OPTIONS_INIT;
	options.app = ada.app;
	options.user = ada.user;
	OK(sheaf_store_copy(&done, t->store, to, &options, &t->err));
	EQ(done.sessions, 1);
	sheaf_session *s = NULL;
	sheaf_session_options existing = SHEAF_SESSION_OPTIONS_INIT;
	existing.mode = SHEAF_OPEN_EXISTING;
	FAILS(NOT_FOUND, sheaf_session_open(&s, to, &bob, &existing, &t->err));
	options.all_users = 1;
	if (t->info.lists_app) {
		OK(sheaf_store_copy(&done, t->store, to, &options, &t->err));
		EQ(done.sessions, 2);
		EQ(done.copied, 1);
		EQ(done.equal, 1);
		t_close(t, t_open_in(t, to, &bob, SHEAF_OPEN_EXISTING));
	} else {
		FAILS(UNSUPPORTED, sheaf_store_copy(&done, t->store, to, &options, &t->err));
	}
	FAILS(INVALID, sheaf_store_copy(NULL, NULL, to, NULL, &t->err));
	FAILS(INVALID, sheaf_store_copy(NULL, to, NULL, NULL, &t->err));
	trash_sessions(t);
	sheaf_close(to);
}

CASE(store_copy_of_what_has_expired)
{
	sheaf_store *from = memory_open(t);
	sheaf_copy_totals done;
	sheaf_key key = partner_key(t, "u", "s"), over = partner_key(t, "u", "over");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_session *s = NULL;
	o.ttl_us = 1;
	OK(sheaf_session_open(&s, from, &key, &o, &t->err));
	t_keep(t, s);
	s = t_open_in(t, from, &over, SHEAF_OPEN_NEW);
	sheaf_retention soon = SHEAF_RETENTION_INIT;
	soon.ttl_us = soon.grace_us = 1;
	OK(sheaf_session_retain(s, &soon, NULL, NULL, &t->err));
	usleep(5000);
	/* What can be undeleted is copied, what is as good as deleted is not. */
	OK(copy(t, from, t->store, &done));
	EQ(done.sessions, 1);
	EQ(done.copied, 1);
	usleep(5000);
	OK(copy(t, from, t->store, &done));
	EQ(done.equal, 1);
	sheaf_retention day = SHEAF_RETENTION_INIT;
	day.ttl_us = INT64_C(86400) * 1000000;
	OK(sheaf_store_undelete(from, &key, &day, NULL, &t->err));
	OK(copy(t, from, t->store, &done));
	EQ(done.extended, 1);
	same(t, from, t->store);
	trash_sessions(t);
	sheaf_close(from);
}

/* ---- Beside the log ---------------------------------------------------------------- */

static void enqueue(suite *t, sheaf_session *s, const char *id, const char *content, int priority)
{
	sheaf_enqueue_options o = SHEAF_ENQUEUE_OPTIONS_INIT;
	o.id = S(id);
	o.priority = priority;
	o.environment = S("{\"e\":1}");
	OK(sheaf_session_enqueue(s, S(content), &o, NULL, &t->err));
}

static void expect_queue(suite *t, sheaf_store *store, const char *want)
{
	sheaf_key key = partner_key(t, "u", "s");
	sheaf_session *s = t_open_in(t, store, &key, SHEAF_OPEN_EXISTING);
	sheaf_queue_items *items = NULL;
	OK(sheaf_session_pending(&items, s, &t->err));
	const char *got = "";
	for (size_t i = 0; i < items->count; i++)
		got = t_format(t, "%s%.*s=%.*s ", got, (int)items->items[i]->id.len,
		               items->items[i]->id.ptr, (int)items->items[i]->content.len,
		               items->items[i]->content.ptr);
	sheaf_queue_items_free(items);
	t_close(t, s);
	CSTR(got, want);
}

CASE(store_copy_brings_what_waits_in_queues)
{
	if (!t->info.queues)
		return;
	sheaf_store *from = memory_open(t);
	sheaf_copy_totals done;
	noted notes = {{0}, 0, ""};
	sheaf_copy_options options = SHEAF_COPY_OPTIONS_INIT;
	options.note = take_note;
	options.ctx = &notes;
	sheaf_session *s = make(t, from, "s");
	enqueue(t, s, "first", "is being worked at", 9);
	sheaf_queue_items *claimed = NULL;
	OK(sheaf_session_claim(&claimed, s, NULL, &t->err));
	EQ(claimed->count, 1);
	sheaf_queue_items_free(claimed);
	enqueue(t, s, "second", "later", 1);
	enqueue(t, s, "third", "sooner", 2);
	OK(copy_with(t, from, t->store, &done, options));
	EQ(done.queue_items, 2);
	EQ(notes.count[SHEAF_COPY_LEFT], 1);
	expect_queue(t, t->store, "third=sooner second=later ");
	/* Again adds nothing, and the way back brings the same. */
	OK(copy_with(t, from, t->store, &done, options));
	EQ(done.queue_items, 0);
	sheaf_store *back = memory_open(t);
	OK(copy(t, t->store, back, &done));
	EQ(done.queue_items, 2);
	expect_queue(t, back, "third=sooner second=later ");
	trash_sessions(t);
	sheaf_close(from);
	sheaf_close(back);
}

static bool keeps_state(suite *t, sheaf_store *store)
{
	sheaf_store_info info = {.size = sizeof(info)};
	OK(sheaf_store_describe(store, &info, &t->err));
	return info.states != 0;
}

/* What a user and the app have, "key=value " in the order of keys. */
static const char *state_of(suite *t, sheaf_store *store)
{
	sheaf_key key = partner_key(t, "u", "");
	sheaf_state *state = NULL;
	OK(sheaf_store_state(&state, store, key.app, key.user, &t->err));
	const char *got = "";
	for (size_t i = 0; i < state->count; i++)
		got = t_format(t, "%s%.*s=%.*s ", got, (int)state->items[i]->key.len,
		               state->items[i]->key.ptr, (int)state->items[i]->value.len,
		               state->items[i]->value.ptr);
	sheaf_state_free(state);
	return got;
}

static void set_state(suite *t, sheaf_session *s, const char *key, const char *value,
                      const char *id)
{
	OK(sheaf_session_state_set(s, S(key), S(value), &t->err));
	SAY(s, "user", "with state", .id = id);
}

CASE(store_copy_brings_state)
{
	if (!keeps_state(t, t->store))
		return;
	sheaf_store *from = memory_open(t), *back = memory_open(t);
	sheaf_copy_totals done;
	sheaf_session *one = make(t, from, "one"), *two = make(t, from, "two");
	/* The last to set it is not the last to be copied. */
	set_state(t, two, "user:k", "\"two\"", "a");
	set_state(t, one, "user:k", "\"one\"", "b");
	set_state(t, two, "user:l", "[1.0,2]", "c");
	set_state(t, two, "app:m", "{}", "d");
	set_state(t, one, "own", "true", "e");
	const char *want = state_of(t, from);
	OK(copy(t, from, t->store, &done));
	EQ(done.state_items, 3);
	CSTR(state_of(t, t->store), want);
	OK(copy(t, t->store, back, &done));
	CSTR(state_of(t, back), want);
	sheaf_key key = partner_key(t, "u", "one");
	sheaf_session *there = t_open_in(t, t->store, &key, SHEAF_OPEN_EXISTING);
	sheaf_state *own = NULL;
	OK(sheaf_session_state_get(&own, there, S("own"), &t->err));
	TEXT(own->items[0]->value, "true");
	sheaf_state_free(own);
	/* What changes is brought with the records that changed it. */
	set_state(t, two, "user:k", "\"again\"", "f");
	OK(copy(t, from, t->store, &done));
	EQ(done.state_items, 1);
	CSTR(state_of(t, t->store), state_of(t, from));
	OK(copy(t, from, t->store, &done));
	EQ(done.state_items, 0);
	/* What was deleted goes, too; what only the destination has stays. */
	set_state(t, there, "user:mine", "7", "y");
	set_state(t, one, "user:k", "null", "g");
	set_state(t, one, "app:m", "null", "h");
	FAILS(CONFLICT, copy(t, from, t->store, &done)); /* the record y, not the state */
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	OK(copy(t, from, t->store, &done));
	CSTR(state_of(t, t->store), "user:l=[1.0,2] user:mine=7 ");
	trash_sessions(t);
	sheaf_close(from);
	sheaf_close(back);
}
