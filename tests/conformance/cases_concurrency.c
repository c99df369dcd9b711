/* Many threads and several handles on one session: nothing is lost, nothing is seen half. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

#define WRITERS 8

typedef struct crowd {
	sheaf_store *stores[2];
	sheaf_key key;
	sheaf_session *shared; /* NULL: each opens its own handle */
	int each;
	int batch; /* records in one append */
	atomic_int done;
	atomic_int failures;
	atomic_int existed;
	pthread_barrier_t start;
} crowd;

typedef struct member {
	crowd *crowd;
	int number;
} member;

static sheaf_session *member_session(member *m)
{
	if (m->crowd->shared)
		return m->crowd->shared;
	sheaf_session *s = NULL;
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	if (sheaf_session_open(&s, m->crowd->stores[m->number % 2], &m->crowd->key, &o, NULL) != 0)
		atomic_fetch_add(&m->crowd->failures, 1);
	return s;
}

static int member_append(member *m, sheaf_session *s, int i)
{
	sheaf_batch *b = sheaf_batch_new();
	int rc = b ? 0 : SHEAF_NOMEM;
	for (int k = 0; k < m->crowd->batch && rc == 0; k++) {
		char id[64];
		char text[96];
		snprintf(id, sizeof(id), "w%d-%d-%d", m->number, i, k);
		snprintf(text, sizeof(text), "text of %s", id);
		sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
		e.id = sheaf_str_of(id);
		sheaf_message *msg = sheaf_message_new("user");
		sheaf_message_text(msg, sheaf_str_of(text));
		rc = sheaf_batch_message(b, msg, &e, NULL);
		sheaf_message_free(msg);
	}
	if (rc == 0)
		rc = sheaf_session_append_batch(s, b, NULL, NULL, NULL);
	sheaf_batch_free(b);
	return rc;
}

static void *write_many(void *argument)
{
	member *m = argument;
	sheaf_session *s = member_session(m);
	pthread_barrier_wait(&m->crowd->start);
	for (int i = 0; i < m->crowd->each && s; i++)
		if (member_append(m, s, i) != 0)
			atomic_fetch_add(&m->crowd->failures, 1);
	if (s != m->crowd->shared)
		sheaf_session_close(s);
	atomic_fetch_add(&m->crowd->done, 1);
	return NULL;
}

/* Whatever a reader sees is whole batches, numbered without gaps, each path complete. */
static bool view_is_whole(sheaf_session *s)
{
	sheaf_records *r = NULL;
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.limit = 100000;
	if (sheaf_session_records(&r, s, &o, NULL) != 0)
		return false;
	bool good = r->count <= r->revision;
	for (size_t i = 0; i < r->count && good; i++)
		good = r->items[i]->seq == i + 1 &&
		       (i == 0 ? r->items[i]->parent_seq == 0
		               : r->items[i]->parent_seq == r->items[i - 1]->seq);
	if (good && r->count) {
		const sheaf_entry *last = r->items[r->count - 1];
		good = last->batch_index + 1 == last->batch_count;
	}
	sheaf_records_free(r);
	return good;
}

static void *read_many(void *argument)
{
	member *m = argument;
	sheaf_session *s = member_session(m);
	pthread_barrier_wait(&m->crowd->start);
	uint64_t before = 0;
	while (s && atomic_load(&m->crowd->done) < WRITERS) {
		sheaf_records *path = NULL;
		if (sheaf_session_path(&path, s, sheaf_str_of(NULL), sheaf_str_of(NULL), 0, NULL) !=
		    0) {
			atomic_fetch_add(&m->crowd->failures, 1);
			break;
		}
		if (path->count < before || !view_is_whole(s))
			atomic_fetch_add(&m->crowd->failures, 1);
		before = path->count;
		sheaf_records_free(path);
		sheaf_context *c = NULL;
		if (sheaf_session_context(&c, s, NULL, NULL) != 0)
			atomic_fetch_add(&m->crowd->failures, 1);
		else if (c->count < before)
			atomic_fetch_add(&m->crowd->failures, 1);
		sheaf_context_free(c);
	}
	if (s != m->crowd->shared)
		sheaf_session_close(s);
	return NULL;
}

static void gather(suite *t, crowd *c, int readers)
{
	pthread_t threads[WRITERS + 4];
	member members[WRITERS + 4];
	int all = WRITERS + readers;
	c->key = t_key(t, "s");
	c->stores[0] = t->store;
	if (!c->stores[1])
		c->stores[1] = t->store;
	pthread_barrier_init(&c->start, NULL, (unsigned)all);
	for (int i = 0; i < all; i++) {
		members[i] = (member){c, i};
		CHECK(pthread_create(&threads[i], NULL, i < WRITERS ? write_many : read_many,
		                     &members[i]) == 0);
	}
	for (int i = 0; i < all; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&c->start);
	EQ(c->failures, 0);
}

static void all_present(suite *t, sheaf_session *s, const crowd *c)
{
	const sheaf_records *r = t_all(t, s);
	EQ(r->count, WRITERS * c->each * c->batch);
	EQ(t_path(t, s, NULL)->count, r->count);
	int next[WRITERS] = {0};
	for (size_t i = 0; i < r->count; i++) {
		int w = -1;
		int n = -1;
		int k = -1;
		char id[64];
		snprintf(id, sizeof(id), "%.*s", (int)r->items[i]->id.len, r->items[i]->id.ptr);
		CHECK(sscanf(id, "w%d-%d-%d", &w, &n, &k) == 3 && w >= 0 && w < WRITERS);
		/* Each writer's records come in the order it wrote them. */
		EQ(n * c->batch + k, next[w]);
		next[w]++;
		TEXT(r->items[i]->message->parts[0]->text, t_format(t, "text of %s", id));
	}
}

CASE(threads_on_one_handle)
{
	sheaf_session *s = t_new(t, "s");
	crowd c = {.shared = s, .each = 40, .batch = 1};
	gather(t, &c, 0);
	all_present(t, s, &c);
}

CASE(threads_on_their_own_handles)
{
	sheaf_session *s = t_new(t, "s");
	crowd c = {.each = 40, .batch = 1};
	gather(t, &c, 0);
	all_present(t, s, &c);
}

CASE(threads_on_two_stores)
{
	sheaf_session *s = t_new(t, "s");
	crowd c = {.stores = {NULL, suite_twin(t)}, .each = 40, .batch = 1};
	gather(t, &c, 0);
	all_present(t, s, &c);
}

CASE(threads_with_batches)
{
	sheaf_session *s = t_new(t, "s");
	crowd c = {.stores = {NULL, suite_twin(t)}, .each = 15, .batch = 7};
	gather(t, &c, 0);
	all_present(t, s, &c);
	const sheaf_records *r = t_all(t, s);
	for (size_t i = 0; i < r->count; i += 7)
		for (size_t k = 1; k < 7; k++) /* batches are not mixed */
			CHECK(memcmp(r->items[i]->id.ptr, r->items[i + k]->id.ptr, 3) == 0);
}

CASE(threads_reading_meanwhile)
{
	sheaf_session *s = t_new(t, "s");
	crowd c = {.stores = {NULL, suite_twin(t)}, .each = 15, .batch = 3};
	gather(t, &c, 4);
	all_present(t, s, &c);
}

CASE(threads_reading_on_one_handle)
{
	sheaf_session *s = t_new(t, "s");
	crowd c = {.shared = s, .each = 15, .batch = 3};
	gather(t, &c, 4);
	all_present(t, s, &c);
}

/* ---- Races for one thing -------------------------------------------------- */

typedef struct contest {
	sheaf_store *stores[2];
	sheaf_key key;
	sheaf_session *session;
	int what;
	pthread_barrier_t start;
} contest;

enum {
	CREATE,
	REPEAT,
	DELETE,
	FORK
};

typedef struct contender {
	contest *contest;
	int number;
	int rc;
	int flag;
} contender;

static void contend_create(contender *c)
{
	sheaf_session *s = NULL;
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_NEW;
	c->rc = sheaf_session_open(&s, c->contest->stores[c->number % 2], &c->contest->key, &o,
	                           NULL);
	if (c->rc == 0)
		sheaf_session_close(s);
}

static void contend_repeat(contender *c)
{
	sheaf_session *s = NULL;
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_appended out = SHEAF_APPENDED_INIT;
	e.id = sheaf_str_of("once");
	c->rc = sheaf_session_open(&s, c->contest->stores[c->number % 2], &c->contest->key, NULL,
	                           NULL);
	if (c->rc != 0)
		return;
	c->rc = sheaf_session_append_model_change(s, sheaf_str_of("p"), sheaf_str_of("m"), &e, NULL,
	                                          &out, NULL);
	c->flag = out.existed;
	sheaf_session_close(s);
}

static void contend_delete(contender *c)
{
	sheaf_deleted *d = NULL;
	c->rc = sheaf_store_delete(&d, c->contest->stores[c->number % 2], &c->contest->key, NULL,
	                           NULL);
	if (c->rc == 0)
		c->flag = d->existed;
	sheaf_deleted_free(d);
}

static void contend_fork(contender *c)
{
	if (c->number == 0) {
		contend_delete(c);
		return;
	}
	char name[32];
	snprintf(name, sizeof(name), "f%d", c->number);
	sheaf_key key = c->contest->key;
	key.session = sheaf_str_of(name);
	sheaf_session *f = NULL;
	c->rc = sheaf_session_fork(&f, c->contest->session, sheaf_str_of("u1"), &key, NULL, NULL);
	if (c->rc == 0)
		sheaf_session_close(f);
}

static void *contend(void *argument)
{
	contender *c = argument;
	pthread_barrier_wait(&c->contest->start);
	switch (c->contest->what) {
	case CREATE:
		contend_create(c);
		break;
	case REPEAT:
		contend_repeat(c);
		break;
	case DELETE:
		contend_delete(c);
		break;
	default:
		contend_fork(c);
		break;
	}
	return NULL;
}

static void hold(suite *t, contest *c, contender contenders[WRITERS])
{
	pthread_t threads[WRITERS];
	pthread_barrier_init(&c->start, NULL, WRITERS);
	c->stores[0] = t->store;
	for (int i = 0; i < WRITERS; i++) {
		contenders[i] = (contender){.contest = c, .number = i};
		CHECK(pthread_create(&threads[i], NULL, contend, &contenders[i]) == 0);
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&c->start);
}

CASE(race_to_create)
{
	contest c = {.stores = {NULL, suite_twin(t)}, .what = CREATE};
	for (int round = 0; round < 10; round++) {
		contender who[WRITERS];
		c.key = t_key(t, t_format(t, "s%d", round));
		hold(t, &c, who);
		int made = 0;
		for (int i = 0; i < WRITERS; i++) {
			CHECK(who[i].rc == 0 || who[i].rc == SHEAF_EXISTS);
			made += who[i].rc == 0;
		}
		EQ(made, 1);
	}
	EQ(t_list_mine(t)->count, 10);
}

CASE(race_to_append_the_same)
{
	contest c = {.stores = {NULL, suite_twin(t)}, .what = REPEAT};
	for (int round = 0; round < 10; round++) {
		contender who[WRITERS];
		const char *name = t_format(t, "s%d", round);
		c.key = t_key(t, name);
		hold(t, &c, who);
		int fresh = 0;
		for (int i = 0; i < WRITERS; i++) {
			EQ(who[i].rc, 0);
			fresh += !who[i].flag;
		}
		EQ(fresh, 1);
		EQ(t_revision(t, t_existing(t, name)), 1);
	}
}

CASE(race_to_delete)
{
	contest c = {.stores = {NULL, suite_twin(t)}, .what = DELETE};
	for (int round = 0; round < 10; round++) {
		contender who[WRITERS];
		const char *name = t_format(t, "s%d", round);
		SAY(t_new(t, name), "user", "x");
		c.key = t_key(t, name);
		hold(t, &c, who);
		int existed = 0;
		for (int i = 0; i < WRITERS; i++) {
			EQ(who[i].rc, 0);
			existed += who[i].flag;
		}
		EQ(existed, 1);
	}
	EQ(t_list_mine(t)->count, 0);
}

CASE(race_of_forks_and_deletion)
{
	contest c = {.stores = {NULL, suite_twin(t)}, .what = FORK};
	for (int round = 0; round < 10; round++) {
		contender who[WRITERS];
		sheaf_session *s = t_new(t, t_format(t, "s%d", round));
		SAY(s, "user", "x", .id = "u1");
		c.key = t_key(t, t_format(t, "s%d", round));
		c.session = s;
		hold(t, &c, who);
		EQ(who[0].rc, 0);
		for (int i = 1; i < WRITERS; i++) {
			if (who[i].rc == SHEAF_GONE)
				continue;
			EQ(who[i].rc, 0);
			const char *name = t_format(t, "f%d", i);
			sheaf_session *f = t_existing(t, name); /* what was made can be read */
			IDS(t_path(t, f, NULL), "u1");
			t_close(t, f);
			sheaf_key key = t_key(t, name);
			OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
		}
		EQ(t_list_mine(t)->count, 0);
		t_new(t, t_format(t, "s%d", round)); /* its key is free again */
		sheaf_key key = t_key(t, t_format(t, "s%d", round));
		OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	}
}

/* What a child of fork() is told by every call; the first that is wrong, or 0. */
static int ask_as_child(sheaf_store *store, sheaf_session *s, const sheaf_key *key)
{
	sheaf_head_view *h = NULL;
	sheaf_records *r = NULL;
	sheaf_list *l = NULL;
	sheaf_session *other = NULL;
	if (sheaf_session_head(&h, s, NULL) != SHEAF_FORKED)
		return 1;
	if (sheaf_session_append_text(s, "user", sheaf_str_of("x"), NULL, NULL) != SHEAF_FORKED)
		return 2;
	if (sheaf_session_records(&r, s, NULL, NULL) != SHEAF_FORKED)
		return 3;
	if (sheaf_store_list(&l, store, NULL, NULL) != SHEAF_FORKED)
		return 4;
	if (sheaf_session_open(&other, store, key, NULL, NULL) != SHEAF_FORKED)
		return 5;
	if (sheaf_store_delete(NULL, store, key, NULL, NULL) != SHEAF_FORKED)
		return 6;
	return 0;
}

CASE(forked_child_is_refused)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "x", .id = "u1");
	sheaf_key key = t_key(t, "s");
	pid_t child = fork();
	if (child == 0)
		_exit(ask_as_child(t->store, s, &key));
	CHECK(child > 0);
	int status = -1;
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status));
	EQ(WEXITSTATUS(status), 0);
	SAY(s, "user", "the parent goes on", .id = "u2");
	IDS(t_path(t, s, NULL), "u1 u2");
}

CASE(two_handles_see_each_other)
{
	sheaf_session *a = t_new(t, "s");
	sheaf_store *twin = suite_twin(t);
	sheaf_key key = t_key(t, "s");
	sheaf_session *b = t_open_in(t, twin, &key, SHEAF_OPEN_EXISTING);
	for (int i = 0; i < 20; i++) {
		SAY(i % 2 ? a : b, "user", "x", .id = t_format(t, "e%d", i));
		LEAF(i % 2 ? b : a, t_format(t, "e%d", i));
	}
	LABEL(a, "e3", "three");
	TEXT(t_get(t, b, "three")->id, "e3");
	BRANCH(b, "side", "e5");
	LEAF_OF(a, "side", "e5");
	EQ(t_path(t, a, NULL)->count, 20);
	EQ(t_path(t, b, NULL)->count, 20);
	SAY(a, "user", "x", .id = "e0"); /* stored by the other one */
	EQ(t->out.existed, 1);
}
