/* Deleting: what goes, what stays for forks, and which keys are free again. */
#include <stdio.h>
#include <stdlib.h>

#include "suite.h"

static sheaf_session *four(suite *t, const char *name)
{
	sheaf_session *s = t_new(t, name);
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	SAY(s, "user", "3", .id = "u2");
	SAY(s, "assistant", "4", .id = "a2");
	return s;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Deletes and says what the answer said: "existed hidden fork fork", forks by name. */
static const char *gone(suite *t, const char *session, int purge)
{
	sheaf_key key = t_key(t, session);
	sheaf_delete_options o = SHEAF_DELETE_OPTIONS_INIT;
	o.purge = purge;
	sheaf_deleted *d = NULL;
	OK(sheaf_store_delete(&d, t->store, &key, &o, &t->err));
	CHECK(d != NULL && d->forks != NULL);
	char *text = t_format(t, "%s%s", d->existed ? "existed" : "absent",
	                      d->hidden ? " hidden" : "");
	const char *names[64];
	size_t count = d->forks->count < 64 ? d->forks->count : 64;
	for (size_t i = 0; i < count; i++)
		names[i] = t_format(t, "%.*s", (int)d->forks->items[i]->session.len,
		                    d->forks->items[i]->session.ptr);
	qsort(names, count, sizeof(names[0]), by_text);
	for (size_t i = 0; i < count; i++)
		text = t_format(t, "%s %s", text, names[i]);
	sheaf_deleted_free(d);
	return text;
}

static int open_code(suite *t, const char *session, int mode)
{
	sheaf_key key = t_key(t, session);
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = mode;
	sheaf_session *s = NULL;
	int rc = sheaf_session_open(&s, t->store, &key, &o, NULL);
	if (rc == 0)
		t_keep(t, s);
	return rc;
}

CASE(delete_removes)
{
	t_close(t, four(t, "s"));
	four(t, "other");
	CSTR(gone(t, "s", 0), "existed");
	EQ(open_code(t, "s", SHEAF_OPEN_EXISTING), SHEAF_NOT_FOUND);
	EQ(t_list_mine(t)->count, 1);
	suite_reopen(t);
	EQ(open_code(t, "s", SHEAF_OPEN_EXISTING), SHEAF_NOT_FOUND);
	IDS(t_path(t, t_existing(t, "other"), NULL), "u1 a1 u2 a2");
}

CASE(delete_what_is_not_there)
{
	CSTR(gone(t, "nothing", 0), "absent");
	CSTR(gone(t, "nothing", 1), "absent");
	four(t, "s");
	CSTR(gone(t, "s", 0), "existed");
	CSTR(gone(t, "s", 0), "absent");
	EQ(t_list_mine(t)->count, 0);
}

CASE(delete_then_create_again)
{
	t_close(t, four(t, "s"));
	CSTR(gone(t, "s", 0), "existed");
	sheaf_session *s = t_new(t, "s");
	EQ(t_revision(t, s), 0);
	LEAF(s, "");
	EQ(t_labels(t, s)->count, 0);
	SAY(s, "user", "new", .id = "n1");
	EQ(t->out.seq, 1);
	s = t_restart(t, "s");
	IDS(t_all(t, s), "n1");
}

CASE(delete_under_an_open_handle)
{
	sheaf_session *s = four(t, "s");
	CSTR(gone(t, "s", 0), "existed");
	sheaf_head_view *h = NULL;
	FAILS(GONE, sheaf_session_head(&h, s, &t->err));
	FAILS(GONE, TRY_SAY(s, "user", "x", .id = "u9"));
	sheaf_records *r = NULL;
	FAILS(GONE, sheaf_session_path(&r, s, S(NULL), S(NULL), 0, &t->err));
	FAILS(GONE, sheaf_session_records(&r, s, NULL, &t->err));
	sheaf_context *c = NULL;
	FAILS(GONE, sheaf_session_context(&c, s, NULL, &t->err));
	FAILS(GONE, t_label(t, s, "u1", "l"));
	EQ(t_list_mine(t)->count, 0); /* and no append has made it again */
}

CASE(fork_then_delete_source)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	SAY(f, "user", "mine", .id = "f1");
	t_close(t, s);
	CSTR(gone(t, "s", 0), "existed hidden f");
	IDS(t_path(t, f, NULL), "u1 a1 f1");
	EQ(open_code(t, "s", SHEAF_OPEN_EXISTING), SHEAF_NOT_FOUND);
	EQ(t_list_mine(t)->count, 1);
	f = t_restart(t, "f");
	IDS(t_path(t, f, NULL), "u1 a1 f1");
	SAY(f, "user", "goes on", .id = "f2");
	ITEMS(t_context(t, f), "u1 a1 f1 f2");
}

CASE(delete_keeps_a_hidden_key_taken)
{
	sheaf_session *s = four(t, "s");
	t_fork(t, s, "a1", "f");
	t_close(t, s);
	CSTR(gone(t, "s", 0), "existed hidden f");
	EQ(open_code(t, "s", SHEAF_OPEN_NEW), SHEAF_EXISTS);
	EQ(open_code(t, "s", SHEAF_OPEN_EXISTING), SHEAF_NOT_FOUND);
	EQ(open_code(t, "s", SHEAF_OPEN_EITHER), SHEAF_EXISTS);
	suite_reopen(t);
	EQ(open_code(t, "s", SHEAF_OPEN_NEW), SHEAF_EXISTS);
	EQ(t_list_mine(t)->count, 1);
}

CASE(delete_the_last_fork_frees_the_key)
{
	sheaf_session *s = four(t, "s");
	t_fork(t, s, "a1", "f");
	t_fork(t, s, "u1", "g");
	t_close(t, s);
	CSTR(gone(t, "s", 0), "existed hidden f g");
	CSTR(gone(t, "f", 0), "existed");
	EQ(open_code(t, "s", SHEAF_OPEN_NEW), SHEAF_EXISTS);
	IDS(t_path(t, t_existing(t, "g"), NULL), "u1");
	CSTR(gone(t, "g", 0), "existed");
	EQ(open_code(t, "s", SHEAF_OPEN_NEW), 0);
	EQ(t_list_mine(t)->count, 1);
}

CASE(delete_names_forks_as_lists_do)
{
	sheaf_session *s = four(t, "s");
	static const char *const names[] = {"b", "c", "a"};
	for (int i = 0; i < 3; i++)
		SAY(t_fork(t, s, "a1", names[i]), "user", "x", .id = "f1",
		    .time_us = 1000000 * (i + 1));
	SAY(t_fork(t, s, "a1", "d"), "user", "x", .id = "f1", .time_us = 2000000);
	t_close(t, s);
	sheaf_key key = t_key(t, "s");
	sheaf_deleted *d = NULL;
	OK(sheaf_store_delete(&d, t->store, &key, NULL, &t->err));
	char *all = t_format(t, "%s", "");
	for (size_t i = 0; i < d->forks->count; i++)
		all = t_format(t, "%s%.*s", all, (int)d->forks->items[i]->session.len,
		               d->forks->items[i]->session.ptr);
	bool cursor = d->forks->cursor.ptr != NULL;
	sheaf_deleted_free(d);
	CHECK(!cursor);
	CSTR(all, "acdb"); /* newest first, then by key: the same on every store */
}

CASE(delete_a_fork_leaves_its_source)
{
	sheaf_session *s = four(t, "s");
	t_close(t, t_fork(t, s, "a1", "f"));
	CSTR(gone(t, "f", 0), "existed");
	IDS(t_path(t, s, NULL), "u1 a1 u2 a2");
	t_close(t, s);
	CSTR(gone(t, "s", 0), "existed"); /* nobody reads it any more */
	EQ(t_list_mine(t)->count, 0);
}

CASE(delete_in_the_middle_of_a_chain)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = t_fork(t, s, NULL, "f");
	SAY(f, "user", "f", .id = "f1");
	sheaf_session *g = t_fork(t, f, NULL, "g");
	SAY(g, "user", "g", .id = "g1");
	t_close(t, f);
	CSTR(gone(t, "f", 0), "existed hidden g");
	IDS(t_path(t, g, NULL), "u1 a1 u2 a2 f1 g1");
	t_close(t, s);
	CSTR(gone(t, "s", 0), "existed hidden g");
	g = t_restart(t, "g");
	IDS(t_path(t, g, NULL), "u1 a1 u2 a2 f1 g1");
	t_close(t, g);
	CSTR(gone(t, "g", 0), "existed");
	EQ(open_code(t, "f", SHEAF_OPEN_NEW), 0);
	EQ(open_code(t, "s", SHEAF_OPEN_NEW), 0);
}

CASE(delete_a_hidden_session_again)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	t_close(t, s);
	CSTR(gone(t, "s", 0), "existed hidden f");
	const char *again = gone(t, "s", 0);
	CHECK(strncmp(again, "absent", 6) == 0); /* it was deleted; what forks read stays */
	IDS(t_path(t, f, NULL), "u1 a1");
}

CASE(purge_copies_what_forks_read)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	SAY(f, "user", "mine", .id = "f1");
	LABEL(f, "u1", "first");
	const char *line = t_format(t, "%.*s", (int)t_get(t, f, "u1")->line.len,
	                            t_get(t, f, "u1")->line.ptr);
	t_close(t, s);
	const char *said = gone(t, "s", 1);
	CHECK(strncmp(said, "existed", 7) == 0 && !strstr(said, "hidden"));
	IDS(t_path(t, f, NULL), "u1 a1 f1");
	f = t_restart(t, "f");
	IDS(t_path(t, f, NULL), "u1 a1 f1");
	TEXT(t_get(t, f, "u1")->line, line);
	TEXT(t_get(t, f, "first")->id, "u1");
	SAY(f, "user", "more", .id = "f2");
	EQ(t->out.seq, 5);
	EQ(open_code(t, "s", SHEAF_OPEN_NEW), 0); /* erased: the key is free */
}

CASE(purge_changes_no_record)
{
	/* Deleting one session leaves every byte and number of the others as it was. */
	sheaf_session *s = four(t, "s");
	BRANCH(s, "side", "u1");
	SAY(s, "user", "x", .id = "x1", .branch = "side");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	SAY(f, "user", "mine", .id = "f1");
	SAY(f, "user", "under an inherited one", .id = "f2", .parent = "u1");
	const sheaf_records *before = t_all(t, f);
	t_close(t, s);
	gone(t, "s", 1);
	const sheaf_records *after = t_all(t, f);
	EQ(after->count, before->count);
	for (size_t i = 0; i < before->count; i++)
		BYTES(after->items[i]->line, before->items[i]->line.ptr,
		      before->items[i]->line.len);
	IDS(t_path(t, f, NULL), "u1 f2");
	EQ(t_head(t, f)->branch_count, 1);
}

CASE(purge_keeps_a_leaf_within_a_batch)
{
	/* The leaf of a fork in the middle of a batch is not where the records alone would put it. */
	sheaf_session *s = t_new(t, "s");
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "1", .id = "u1");
	ADD(b, "assistant", "2", .id = "a1");
	ADD(b, "user", "x", .id = "x1", .branch = "side", .parent = "u1");
	ADD(b, "user", "3", .id = "u2");
	OK(t_append_batch(t, s, b, (put){0}));
	OK(t_rename(t, s, "named"));
	sheaf_session *f = t_fork(t, s, "u1", "f");
	LEAF(f, "u1");
	OK(t_rename(t, f, ""));
	t_close(t, s);
	gone(t, "s", 1);
	LEAF(f, "u1");
	EQ(t_head(t, f)->branch_count, 1);
	TEXT(t_head(t, f)->info->name, "");
	f = t_restart(t, "f");
	LEAF(f, "u1");
	EQ(t_head(t, f)->branch_count, 1);
	SAY(f, "user", "on", .id = "f1");
	IDS(t_path(t, f, NULL), "u1 f1");
}

CASE(purge_with_forks_of_forks)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = t_fork(t, s, NULL, "f");
	SAY(f, "user", "f", .id = "f1");
	sheaf_session *g = t_fork(t, f, NULL, "g");
	SAY(g, "user", "g", .id = "g1");
	t_fork(t, s, "u1", "h");
	t_close(t, s);
	gone(t, "s", 1);
	IDS(t_path(t, f, NULL), "u1 a1 u2 a2 f1");
	IDS(t_path(t, g, NULL), "u1 a1 u2 a2 f1 g1");
	suite_reopen(t);
	IDS(t_path(t, t_existing(t, "g"), NULL), "u1 a1 u2 a2 f1 g1");
	IDS(t_path(t, t_existing(t, "h"), NULL), "u1");
	EQ(open_code(t, "s", SHEAF_OPEN_EXISTING), SHEAF_NOT_FOUND);
	EQ(open_code(t, "s", SHEAF_OPEN_NEW), 0);
	FAILS(CONFLICT, TRY_SAY(t_existing(t, "g"), "user", "changed", .id = "u1"));
}

CASE(purge_what_was_hidden)
{
	sheaf_session *s = four(t, "s");
	sheaf_session *f = t_fork(t, s, "a1", "f");
	t_close(t, s);
	CSTR(gone(t, "s", 0), "existed hidden f");
	gone(t, "s", 1);
	IDS(t_path(t, f, NULL), "u1 a1");
	EQ(open_code(t, "s", SHEAF_OPEN_NEW), 0);
}

CASE(purge_alone)
{
	t_close(t, four(t, "s"));
	CSTR(gone(t, "s", 1), "existed");
	EQ(t_list_mine(t)->count, 0);
	EQ(open_code(t, "s", SHEAF_OPEN_NEW), 0);
}

CASE(delete_many)
{
	for (int i = 0; i < 30; i++) {
		sheaf_session *s = t_new(t, t_format(t, "s%02d", i));
		SAY(s, "user", "x", .id = "u1");
		t_close(t, s);
	}
	for (int i = 0; i < 30; i += 2)
		CSTR(gone(t, t_format(t, "s%02d", i), 0), "existed");
	EQ(t_list_mine(t)->count, 15);
	suite_reopen(t);
	const sheaf_list *list = t_list_mine(t);
	EQ(list->count, 15);
	for (size_t i = 0; i < 15; i++)
		CHECK(list->items[i]->session.ptr[2] % 2 == 1);
}

CASE(delete_does_not_reach_other_owners)
{
	sheaf_key mine = t_key_of(t, "", "me", "s");
	sheaf_key yours = t_key_of(t, "", "you", "s");
	sheaf_session *a = t_open_in(t, t->store, &mine, SHEAF_OPEN_NEW);
	sheaf_session *b = t_open_in(t, t->store, &yours, SHEAF_OPEN_NEW);
	SAY(a, "user", "a", .id = "u1");
	SAY(b, "user", "b", .id = "u1");
	t_close(t, a);
	OK(sheaf_store_delete(NULL, t->store, &mine, NULL, &t->err));
	TEXT(t_get(t, b, "u1")->message->parts[0]->text, "b");
}
