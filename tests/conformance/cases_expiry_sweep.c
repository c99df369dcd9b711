/* Expiry: sweeping what is over, forks and copies of what expires, and all of it at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "words_expiry.h"

/* ---- Sweeping ------------------------------------------------------------------------------ */

CASE(expiry_sweep)
{
	t_two(t, "plain");
	OK(t_retain(t, t_two(t, "long"), DAY_US, SHEAF_GRACE_NONE, 0));
	OK(t_retain(t, t_two(t, "pinned"), 1, SHEAF_GRACE_NONE, 1));
	t_expire(t, t_two(t, "grace"));
	t_end(t, t_two(t, "over1"));
	t_end(t, t_two(t, "over2"));
	CSTR(t_sweep(t, 1, 0), "over1 over2 | grace");
	CSTR(t_sweep(t, 1, 0), "over1 over2 | grace"); /* and nothing was changed */
	CSTR(t_sweep(t, 0, 0), "over1 over2 | grace");
	CSTR(t_sweep(t, 0, 0), " | grace");
	CSTR(t_names(t, t_list_mine(t)), "long pinned plain");
	t_revive(t, "grace");
	suite_reopen(t);
	CSTR(t_names(t, t_list_expired(t)), "grace long pinned plain");
	IDS(t_path(t, t_existing(t, "pinned"), NULL), "u1 a1");
}

CASE(expiry_dry_run_changes_nothing)
{
	sheaf_session *s = t_two(t, "s");
	t_expire(t, s);
	t_end(t, t_two(t, "over"));
	const sheaf_session_info *before = t_list_expired(t)->items[0];
	CSTR(t_sweep(t, 1, 0), "over | s");
	const sheaf_session_info *after = t_list_expired(t)->items[0];
	EQ(before->stored_us, after->stored_us);
	EQ(before->revision, after->revision);
	sheaf_expire_options o = SHEAF_EXPIRE_OPTIONS_INIT;
	o.app = S(t->app);
	OK(sheaf_store_expire(NULL, t->store, &o, &t->err)); /* nobody need look at the answer */
	CSTR(t_sweep(t, 1, 0), " | s");
}

CASE(expiry_sweep_in_portions)
{
	for (int i = 0; i < 5; i++)
		t_end(t, t_two(t, t_format(t, "s%d", i)));
	sheaf_expire_options o = SHEAF_EXPIRE_OPTIONS_INIT;
	sheaf_expired *e = NULL;
	size_t removed = 0;
	o.app = S(t->app);
	o.limit = 2;
	for (int round = 0; round < 3; round++) {
		OK(sheaf_store_expire(&e, t->store, &o, &t->err));
		EQ(e->removed->count, round < 2 ? 2 : 1);
		EQ(e->more, round < 2);
		removed += e->removed->count;
		sheaf_expired_free(e);
	}
	EQ(removed, 5);
	o.deadline_us = -1;
	FAILS(INVALID, sheaf_store_expire(&e, t->store, &o, &t->err));
}

CASE(expiry_sweep_whose)
{
	sheaf_key theirs = t_key_of(t, "", "other", "theirs");
	sheaf_session *s = t_open_in(t, t->store, &theirs, SHEAF_OPEN_NEW);
	t_end(t, s);
	t_end(t, t_two(t, "mine"));
	sheaf_expire_options o = SHEAF_EXPIRE_OPTIONS_INIT;
	sheaf_expired *e = NULL;
	o.app = S(t->app);
	o.dry_run = o.all_users = 1;
	if (t->info.lists_app) {
		OK(sheaf_store_expire(&e, t->store, &o, &t->err));
		CSTR(t_names(t, e->removed), "mine theirs");
		sheaf_expired_free(e);
	} else {
		FAILS(UNSUPPORTED, sheaf_store_expire(&e, t->store, &o, &t->err));
	}
	CSTR(t_sweep(t, 0, 0), "mine | ");
	o.all_users = 0;
	o.user = S("other");
	o.dry_run = 0;
	OK(sheaf_store_expire(&e, t->store, &o, &t->err));
	CSTR(t_names(t, e->removed), "theirs");
	sheaf_expired_free(e);
}

CASE(expiry_handle_after_the_sweep)
{
	sheaf_session *s = t_two(t, "s");
	t_end(t, s);
	CSTR(t_sweep(t, 0, 0), "s | ");
	FAILS(GONE, TRY_SAY(s, "user", "x", .id = "x"));
	sheaf_session *new = t_new(t, "s");
	SAY(new, "user", "new", .id = "n1");
	CSTR(t_sweep(t, 0, 0), " | ");
	IDS(t_path(t, new, NULL), "n1");
}

/* ---- Forks and copies ---------------------------------------------------------------------- */

CASE(expiry_forks_do_not_inherit)
{
	sheaf_session *s = t_two(t, "s");
	OK(t_retain(t, s, DAY_US, 2 * DAY_US, 1));
	SAY(s, "user", "3", .id = "u2");
	sheaf_session *f = t_fork(t, s, "u2", "f");
	EQ(t_info(t, f)->ttl_us, 0);
	EQ(t_info(t, f)->pinned, 0);
	EQ(t_info(t, f)->grace_us, SHEAF_GRACE_US_DEFAULT);
	sheaf_key key = t_key(t, "g");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.ttl_us = 3 * DAY_US;
	OK(sheaf_session_fork(&f, s, S(NULL), &key, &o, &t->err));
	t_keep(t, f);
	EQ(t_info(t, f)->ttl_us, 3 * DAY_US);
	EQ(t_info(t, s)->ttl_us, DAY_US);
	suite_reopen(t);
	EQ(t_info(t, t_existing(t, "f"))->ttl_us, 0);
	EQ(t_info(t, t_existing(t, "g"))->ttl_us, 3 * DAY_US);
}

CASE(expiry_forks_live_on)
{
	sheaf_session *s = t_two(t, "s");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	SAY(f, "user", "mine", .id = "f1");
	t_expire(t, s);
	IDS(t_path(t, f, NULL), "u1 a1 f1");
	SAY(f, "user", "more", .id = "f2", .parent = "u1");
	SAY(f, "user", "1", .id = "u1"); /* a repeat of what is inherited */
	EQ(t->out.existed, 1);
	sheaf_session *g = t_fork(t, f, "u1", "g");
	IDS(t_path(t, g, NULL), "u1");
	t_expire(t, f);
	FAILS(EXPIRED, TRY_SAY(f, "user", "1", .id = "u1"));
	IDS(t_path(t, g, NULL), "u1");
}

CASE(expiry_sweep_keeps_what_forks_read)
{
	sheaf_session *s = t_two(t, "s");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	SAY(f, "user", "mine", .id = "f1");
	t_end(t, s);
	CSTR(t_sweep(t, 0, 0), "s | ");
	CSTR(t_sweep(t, 0, 0), " | ");
	IDS(t_path(t, f, NULL), "u1 a1 f1");
	EQ(t_open_code(t, "s", SHEAF_OPEN_NEW), SHEAF_EXISTS); /* a hidden key is taken */
	f = t_restart(t, "f");
	IDS(t_path(t, f, NULL), "u1 a1 f1");
	t_end(t, f);
	CSTR(t_sweep(t, 0, 0), "f | ");
	EQ(t_open_code(t, "s", SHEAF_OPEN_NEW), 0); /* nobody reads it any more */
}

CASE(expiry_sweep_a_whole_chain)
{
	sheaf_session *s = t_two(t, "s");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	sheaf_session *g = t_fork(t, f, "u1", "g");
	t_end(t, s);
	t_end(t, f);
	t_end(t, g);
	CSTR(t_sweep(t, 0, 0), "f g s | ");
	CSTR(t_sweep(t, 1, 0), " | ");
	EQ(t_open_code(t, "s", SHEAF_OPEN_NEW), 0);
	EQ(t_open_code(t, "f", SHEAF_OPEN_NEW), 0);
	EQ(t_open_code(t, "g", SHEAF_OPEN_NEW), 0);
}

CASE(expiry_purge_brings_no_ttl)
{
	sheaf_session *s = t_two(t, "s");
	OK(t_retain(t, s, 1, SHEAF_GRACE_NONE, 1)); /* only the pin keeps it */
	SAY(s, "user", "3", .id = "u2");
	sheaf_session *f = t_fork(t, s, "u2", "f");
	sheaf_session *g = t_fork(t, s, "u2", "g");
	OK(t_retain(t, g, DAY_US, 0, 0));
	sheaf_key key = t_key(t, "s");
	sheaf_delete_options o = SHEAF_DELETE_OPTIONS_INIT;
	o.purge = 1;
	OK(sheaf_store_delete(NULL, t->store, &key, &o, &t->err));
	t_wait_ms(5);
	EQ(t_info(t, f)->ttl_us, 0);
	EQ(t_info(t, f)->pinned, 0);
	EQ(t_info(t, g)->ttl_us, DAY_US);
	EQ(t_info(t, g)->pinned, 0);
	suite_reopen(t);
	EQ(t_info(t, t_existing(t, "f"))->ttl_us, 0);
	IDS(t_path(t, t_existing(t, "g"), NULL), "u1 a1 u2");
}

CASE(expiry_purge_under_expired_forks)
{
	sheaf_session *s = t_two(t, "s");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	sheaf_session *g = t_fork(t, s, "a1", "g");
	SAY(f, "user", "mine", .id = "f1");
	t_expire(t, f);
	t_end(t, g);
	sheaf_key key = t_key(t, "s");
	sheaf_delete_options o = SHEAF_DELETE_OPTIONS_INIT;
	o.purge = 1;
	OK(sheaf_store_delete(NULL, t->store, &key, &o, &t->err));
	t_wait_ms(5);
	EQ(t_open_code(t, "s", SHEAF_OPEN_NEW), 0);
	EQ(t_open_code(t, "g", SHEAF_OPEN_EXISTING), SHEAF_NOT_FOUND);
	FAILS(EXPIRED, TRY_SAY(f, "user", "x", .id = "x"));
	t_revive(t, "f");
	IDS(t_path(t, f, NULL), "u1 a1 f1");
}

CASE(expiry_copies)
{
	sheaf_session *s = t_two(t, "s"), *copy = NULL, *path = NULL;
	OK(t_retain(t, s, DAY_US, 2 * DAY_US, 1));
	sheaf_key key = t_key(t, "copy");
	OK(sheaf_session_copy(&copy, s, t->store, &key, &t->err));
	t_keep(t, copy);
	EQ(t_info(t, copy)->ttl_us, DAY_US); /* it is as its source */
	EQ(t_info(t, copy)->grace_us, 2 * DAY_US);
	EQ(t_info(t, copy)->pinned, 1);
	key = t_key(t, "path");
	OK(sheaf_session_export_path(&path, s, S(NULL), t->store, &key, &t->err));
	t_keep(t, path);
	EQ(t_info(t, path)->ttl_us, 0); /* entries and labels, no more */
	EQ(t_revision(t, path), 2);
}

/* ---- At once --------------------------------------------------------------------------------- */

typedef struct race {
	sheaf_store *store;
	sheaf_key key;
	atomic_bool expired; /* somebody was told so */
	atomic_int stored;
	atomic_int wrong;
} race;

static void *race_append(void *ctx)
{
	race *r = ctx;
	sheaf_session *s = NULL;
	if (sheaf_session_open(&s, r->store, &r->key, NULL, NULL) != 0)
		return NULL;
	for (int i = 0; i < 400; i++) {
		bool known = atomic_load(&r->expired);
		int rc = sheaf_session_append_text(s, SHEAF_ROLE_USER, S("on"), NULL, NULL);
		if (rc == 0)
			atomic_fetch_add(&r->stored, 1);
		if (rc == 0 ? known : rc != SHEAF_EXPIRED)
			atomic_fetch_add(&r->wrong, 1);
		if (rc == SHEAF_EXPIRED)
			atomic_store(&r->expired, true);
		if (known)
			break;
		usleep((useconds_t)(rand() % 4000));
	}
	sheaf_session_close(s);
	return NULL;
}

/* Appends that come about when the ttl ends either keep the session alive or come too late; once
 * one was too late, all are. */
CASE(expiry_races_with_appends)
{
	pthread_t threads[4];
	sheaf_session *s = t_two(t, "s");
	OK(t_retain(t, s, 3000, DAY_US, 0));
	race r = {.store = t->store, .key = t_key(t, "s")};
	for (size_t i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, race_append, &r) == 0);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	EQ(atomic_load(&r.wrong), 0);
	t_wait_ms(10);
	FAILS(EXPIRED, TRY_SAY(s, "user", "late", 0));
	t_revive(t, "s");
	EQ(t_info(t, s)->messages, 2 + (uint64_t)atomic_load(&r.stored));
}

static void *race_undelete(void *ctx)
{
	race *r = ctx;
	sheaf_retention pin = SHEAF_RETENTION_INIT;
	int32_t existed = 0;
	pin.pin = 1;
	if (sheaf_store_undelete(r->store, &r->key, &pin, &existed, NULL) != 0)
		atomic_fetch_add(&r->wrong, 1);
	return NULL;
}

CASE(expiry_undelete_at_once)
{
	pthread_t threads[6];
	sheaf_session *s = t_two(t, "s");
	t_expire(t, s);
	race r = {.store = t->store, .key = t_key(t, "s")};
	for (size_t i = 0; i < 6; i++)
		CHECK(pthread_create(&threads[i], NULL, race_undelete, &r) == 0);
	for (size_t i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	EQ(atomic_load(&r.wrong), 0);
	SAY(s, "user", "on", .id = "u2");
	EQ(t_info(t, s)->pinned, 1);
}

static void *race_sweep(void *ctx)
{
	race *r = ctx;
	sheaf_expire_options o = SHEAF_EXPIRE_OPTIONS_INIT;
	o.app = r->key.app;
	o.user = r->key.user;
	for (int i = 0; i < 40; i++)
		if (sheaf_store_expire(NULL, r->store, &o, NULL) != 0)
			atomic_fetch_add(&r->wrong, 1);
	return NULL;
}

/* A key that is made again while others sweep is the new session's: no sweep may take it. */
CASE(expiry_sweep_races_with_creating)
{
	pthread_t threads[3];
	race r = {.store = t->store, .key = t_key(t, "s")};
	for (size_t i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, race_sweep, &r) == 0);
	for (int i = 0; i < 20; i++) {
		sheaf_session *s = t_new(t, "s");
		SAY(s, "user", "new", .id = "n");
		usleep(500);
		IDS(t_all(t, s), "n");
		OK(t_retain(t, s, 1, SHEAF_GRACE_NONE, 0));
		usleep(50);
		t_close(t, s);
	}
	sheaf_session *last = t_new(t, "s");
	for (size_t i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	EQ(atomic_load(&r.wrong), 0);
	SAY(last, "user", "last", .id = "l");
}
