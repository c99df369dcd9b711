/* Listing sessions: rows, filters, order, pages. */
#include <stdio.h>

#include "suite.h"

static const char *names(suite *t, const sheaf_list *l)
{
	char *all = t_format(t, "%s", "");
	for (size_t i = 0; i < l->count; i++)
		all = t_format(t, "%s%s%.*s", all, i ? " " : "", (int)l->items[i]->session.len,
		               l->items[i]->session.ptr);
	return all;
}

#define NAMES(list, want) CSTR(names(t, (list)), (want))

static sheaf_list_options mine(suite *t)
{
	sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
	o.app = S(t->app);
	o.user = S("");
	return o;
}

/* A session with one message at that second. */
static sheaf_session *at(suite *t, const char *name, int second)
{
	sheaf_session *s = t_new(t, name);
	SAY(s, "user", name, .time_us = second * 1000000LL);
	return s;
}

CASE(list_empty)
{
	const sheaf_list *l = t_list_mine(t);
	EQ(l->count, 0);
	CHECK(l->cursor.ptr == NULL);
}

CASE(list_rows)
{
	sheaf_key key = t_key(t, "s");
	sheaf_session_options so = SHEAF_SESSION_OPTIONS_INIT;
	so.name = S("the name");
	so.cwd = S("/work");
	so.kind = S("subagent");
	so.parent_session = S("p");
	so.created_us = 1600000000000000;
	sheaf_session *s = NULL;
	OK(sheaf_session_open(&s, t->store, &key, &so, &t->err));
	t_keep(t, s);
	sheaf_message *m = sheaf_message_new("assistant");
	sheaf_usage u = {.input = 5, .output = 6};
	sheaf_message_text(m, S("reply"));
	sheaf_message_usage(m, &u);
	SAY(s, "user", "the question", .time_us = 1600000001000000);
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.time_us = 1600000002000000;
	int rc = sheaf_session_append_message(s, m, &e, NULL, NULL, &t->err);
	sheaf_message_free(m);
	EQ(rc, 0);
	for (int round = 0; round < 2; round++) {
		const sheaf_list *l = t_list_mine(t);
		EQ(l->count, 1);
		const sheaf_session_info *i = l->items[0];
		TEXT(i->app, t->app);
		TEXT(i->user, "");
		TEXT(i->session, "s");
		TEXT(i->name, "the name");
		TEXT(i->cwd, "/work");
		TEXT(i->kind, "subagent");
		TEXT(i->parent_session, "p");
		TEXT(i->preview, "the question");
		EQ(i->created_us, 1600000000000000);
		EQ(i->modified_us, 1600000002000000);
		EQ(i->revision, 3);
		EQ(i->messages, 2);
		EQ(i->usage.input, 5);
		EQ(i->usage.output, 6);
		EQ(i->hidden, 0);
		EQ(i->base, 0);
		suite_reopen(t);
	}
}

CASE(list_newest_first)
{
	sheaf_session *a = at(t, "a", 10);
	at(t, "b", 30);
	at(t, "c", 20);
	NAMES(t_list_mine(t), "b c a");
	SAY(a, "user", "again", .time_us = 40000000);
	NAMES(t_list_mine(t), "a b c");
	SAY(a, "user", "the clock went back", .time_us = 5000000);
	NAMES(t_list_mine(t), "b c a");
	suite_reopen(t);
	NAMES(t_list_mine(t), "b c a");
}

CASE(list_same_time_by_key)
{
	at(t, "c", 10);
	at(t, "a", 10);
	at(t, "d", 10);
	at(t, "b", 10);
	at(t, "z", 11);
	NAMES(t_list_mine(t), "z a b c d");
	suite_reopen(t);
	NAMES(t_list_mine(t), "z a b c d");
}

CASE(list_in_pages)
{
	for (int i = 0; i < 25; i++)
		t_close(t, at(t, t_format(t, "s%02d", i), 1000 - i / 3)); /* with ties */
	sheaf_list_options o = mine(t);
	o.limit = 100;
	const char *whole = names(t, t_list(t, &o));
	for (size_t limit = 1; limit <= 26; limit += 3) {
		o.limit = limit;
		o.cursor = S(NULL);
		char *all = t_format(t, "%s", "");
		do {
			const sheaf_list *l = t_list(t, &o);
			CHECK(l->count <= limit);
			CHECK(l->count == limit || !l->cursor.ptr);
			all = t_format(t, "%s%s%s", all, all[0] && l->count ? " " : "",
			               names(t, l));
			o.cursor = l->cursor;
		} while (o.cursor.ptr);
		CSTR(all, whole);
	}
}

CASE(list_limits)
{
	for (int i = 0; i < 53; i++)
		t_close(t, at(t, t_format(t, "s%02d", i), 100 + i));
	const sheaf_list *l = t_list_mine(t);
	EQ(l->count, 50); /* the default */
	CHECK(l->cursor.ptr != NULL);
	sheaf_list_options o = mine(t);
	o.limit = 10000;
	EQ(t_list(t, &o)->count, 53);
	o.limit = 10001;
	sheaf_list *bad = NULL;
	int rc = sheaf_store_list(&bad, t->store, &o, &t->err);
	CHECK(rc == SHEAF_LIMIT || rc == SHEAF_INVALID);
}

CASE(list_bad_cursor)
{
	at(t, "a", 1);
	sheaf_list_options o = mine(t);
	sheaf_list *l = NULL;
	static const char *const bad[] = {"nonsense", "1/2/3/4/5", "-", "\xff\xfe"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		o.cursor = S(bad[i]);
		FAILS(INVALID, sheaf_store_list(&l, t->store, &o, &t->err));
	}
	CHECK(l == NULL);
}

CASE(list_by_name)
{
	OK(t_rename(t, at(t, "a", 1), "report"));
	OK(t_rename(t, at(t, "b", 2), "Report"));
	OK(t_rename(t, at(t, "c", 3), "report"));
	OK(t_rename(t, at(t, "d", 4), "report 2"));
	sheaf_list_options o = mine(t);
	o.name = S("report");
	NAMES(t_list(t, &o), "c a");
	o.name = S("repor");
	EQ(t_list(t, &o)->count, 0);
	sheaf_session *c = t_existing(t, "c");
	OK(t_rename(t, c, "other"));
	o.name = S("report");
	NAMES(t_list(t, &o), "a");
	suite_reopen(t);
	NAMES(t_list(t, &o), "a");
}

CASE(list_by_origin)
{
	sheaf_session_options so = SHEAF_SESSION_OPTIONS_INIT;
	static const char *const rows[][4] = {{"a", "/x", "main", ""},
	                                      {"b", "/x", "subagent", "a"},
	                                      {"c", "/y", "subagent", "a"},
	                                      {"d", "/y", "subagent", "b"}};
	for (size_t i = 0; i < 4; i++) {
		so.cwd = S(rows[i][1]);
		so.kind = S(rows[i][2]);
		so.parent_session = S(rows[i][3]);
		so.created_us = (int64_t)(i + 1) * 1000000;
		sheaf_key key = t_key(t, rows[i][0]);
		sheaf_session *s = NULL;
		OK(sheaf_session_open(&s, t->store, &key, &so, &t->err));
		t_keep(t, s);
	}
	sheaf_list_options o = mine(t);
	o.cwd = S("/x");
	NAMES(t_list(t, &o), "b a");
	o.kind = S("subagent");
	NAMES(t_list(t, &o), "b");
	o.cwd = S(NULL);
	NAMES(t_list(t, &o), "d c b");
	o.parent_session = S("a");
	NAMES(t_list(t, &o), "c b");
	o.kind = S(NULL);
	o.parent_session = S("b");
	NAMES(t_list(t, &o), "d");
	o = mine(t);
	o.kind = S("main");
	NAMES(t_list(t, &o), "a");
}

CASE(list_below_a_directory)
{
	sheaf_session_options so = SHEAF_SESSION_OPTIONS_INIT;
	static const char *const rows[][2] = {{"a", "/x"},     {"b", "/x/y"}, {"c", "/xy"},
	                                      {"d", "/x/y/z"}, {"e", ""},     {"f", "/"}};
	for (size_t i = 0; i < 6; i++) {
		so.cwd = S(rows[i][1]);
		so.created_us = (int64_t)(i + 1) * 1000000;
		sheaf_key key = t_key(t, rows[i][0]);
		sheaf_session *s = NULL;
		OK(sheaf_session_open(&s, t->store, &key, &so, &t->err));
		t_keep(t, s);
	}
	sheaf_list_options o = mine(t);
	o.cwd_below = 1;
	NAMES(t_list(t, &o), "f e d c b a"); /* of no directory in particular */
	o.cwd = S("/x");
	NAMES(t_list(t, &o), "d b a");
	o.cwd = S("/x/y");
	NAMES(t_list(t, &o), "d b");
	o.cwd = S("/");
	NAMES(t_list(t, &o), "f d c b a");
	o.cwd = S("");
	NAMES(t_list(t, &o), "e");
	o.cwd = S("/x");
	o.limit = 2; /* and pages of it */
	const sheaf_list *page = t_list(t, &o);
	NAMES(page, "d b");
	o.cursor = page->cursor;
	NAMES(t_list(t, &o), "a");
}

CASE(list_by_agent)
{
	at(t, "codex.1", 10);
	at(t, "codex", 20);
	at(t, "codex2.1", 30);
	at(t, "pi.codex.1", 40);
	at(t, "codex.2.agent", 50);
	sheaf_list_options o = mine(t);
	o.agent = S("codex");
	NAMES(t_list(t, &o), "codex.2.agent codex.1");
	o.agent = S("pi");
	NAMES(t_list(t, &o), "pi.codex.1");
	o.agent = S("dive");
	NAMES(t_list(t, &o), "");
}

CASE(list_by_time)
{
	at(t, "a", 10);
	at(t, "b", 20);
	at(t, "c", 30);
	sheaf_list_options o = mine(t);
	o.after_us = 20000000;
	NAMES(t_list(t, &o), "c b"); /* at or after */
	o.after_us = 20000001;
	NAMES(t_list(t, &o), "c");
	o.after_us = 0;
	o.before_us = 30000000;
	NAMES(t_list(t, &o), "b a"); /* before */
	o.after_us = 11000000;
	NAMES(t_list(t, &o), "b");
}

CASE(list_filters_with_pages)
{
	for (int i = 0; i < 20; i++) {
		sheaf_session *s = at(t, t_format(t, "s%02d", i), 100 + i);
		JSON(s, "session_info",
		     t_format(t, "{\"session_info\":{\"name\":\"%s\"}}", i % 4 ? "odd" : "wanted"),
		     .time_us = (200 + i) * 1000000LL);
	}
	sheaf_list_options o = mine(t);
	o.name = S("wanted");
	o.limit = 2;
	const sheaf_list *l = t_list(t, &o);
	NAMES(l, "s16 s12");
	CHECK(l->cursor.ptr != NULL);
	o.cursor = l->cursor;
	l = t_list(t, &o);
	NAMES(l, "s08 s04");
	o.cursor = l->cursor;
	l = t_list(t, &o);
	NAMES(l, "s00");
	CHECK(l->cursor.ptr == NULL);
}

CASE(list_by_user)
{
	static const char *const users[] = {"ann", "bob", "", "ann/bob"};
	for (int i = 0; i < 4; i++) {
		sheaf_key key = t_key_of(t, "", users[i], t_format(t, "s%d", i));
		sheaf_session *s = t_open_in(t, t->store, &key, SHEAF_OPEN_NEW);
		SAY(s, "user", "x", .time_us = (i + 1) * 1000000);
	}
	sheaf_list_options o = mine(t);
	for (int i = 0; i < 4; i++) {
		o.user = S(users[i]);
		const sheaf_list *l = t_list(t, &o);
		NAMES(l, t_format(t, "s%d", i));
		TEXT(l->items[0]->user, users[i]);
	}
	o.user = S("nobody");
	EQ(t_list(t, &o)->count, 0);
	o.all_users = 1;
	if (!t->info.lists_app) {
		sheaf_list *l = NULL;
		FAILS(UNSUPPORTED, sheaf_store_list(&l, t->store, &o, &t->err));
		return;
	}
	NAMES(t_list(t, &o), "s3 s2 s1 s0");
	o.limit = 3;
	const sheaf_list *l = t_list(t, &o);
	NAMES(l, "s3 s2 s1");
	o.cursor = l->cursor;
	NAMES(t_list(t, &o), "s0");
}

CASE(list_all_apps)
{
	if (t->app[0])
		return; /* a store shared with others: its apps are not ours to count */
	static const char *const apps[] = {"", "one", "two"};
	for (int i = 0; i < 3; i++) {
		sheaf_key key = t_key_of(t, apps[i], "u", "s");
		SAY(t_open_in(t, t->store, &key, SHEAF_OPEN_NEW), "user", "x",
		    .time_us = (i + 1) * 1000000);
	}
	sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
	o.all_apps = 1;
	const sheaf_list *l = t_list(t, &o);
	EQ(l->count, 3);
	TEXT(l->items[0]->app, "two");
	TEXT(l->items[2]->app, "");
	o.all_apps = 0;
	o.app = S("one");
	o.all_users = 1;
	EQ(t_list(t, &o)->count, 1);
	o.all_users = 0;
	EQ(t_list(t, &o)->count, 0); /* user "" has none there */
}

CASE(list_leaves_out_the_hidden)
{
	sheaf_session *s = at(t, "s", 10);
	t_fork(t, s, NULL, "f");
	t_close(t, s);
	sheaf_key key = t_key(t, "s");
	OK(sheaf_store_delete(NULL, t->store, &key, NULL, &t->err));
	const sheaf_list *l = t_list_mine(t);
	NAMES(l, "f");
	TEXT(l->items[0]->source, "s");
	suite_reopen(t);
	NAMES(t_list_mine(t), "f");
}

CASE(list_follows_every_change)
{
	sheaf_session *s = at(t, "s", 10);
	EQ(t_list_mine(t)->items[0]->records, 1);
	SAY(s, "assistant", "2", .time_us = 11000000);
	EQ(t_list_mine(t)->items[0]->records, 2);
	EQ(t_list_mine(t)->items[0]->modified_us, 11000000);
	OK(t_rename(t, s, "n"));
	TEXT(t_list_mine(t)->items[0]->name, "n");
	sheaf_store *twin = suite_twin(t);
	sheaf_key key = t_key(t, "s");
	sheaf_session *w = t_open_in(t, twin, &key, SHEAF_OPEN_EXISTING);
	SAY(w, "user", "by another store", .time_us = 99000000);
	EQ(t_list_mine(t)->items[0]->records, 4);
	EQ(t_list_mine(t)->items[0]->modified_us, 99000000);
}

CASE(list_pages_of_odd_keys)
{
	static const char *const words[] = {"a/b", "..", "%41",   "ü",
	                                    "a b", "*",  "{tag}", "x.jsonl"};
	for (size_t i = 0; i < 8; i++)
		for (size_t k = 0; k < 3; k++) {
			sheaf_key key = t_key_of(t, "", words[k], words[i]);
			sheaf_session *s = t_open_in(t, t->store, &key, SHEAF_OPEN_NEW);
			SAY(s, "user", "x", .time_us = 1000000); /* all at once */
			t_close(t, s);
		}
	sheaf_list_options o = mine(t);
	o.all_users = 1;
	o.limit = 1;
	size_t count = 0;
	char before[256] = "";
	while (t->info.lists_app) {
		const sheaf_list *l = t_list(t, &o);
		EQ(l->count, 1);
		char user[SHEAF_KEY_PART_ROOM];
		char session[SHEAF_KEY_PART_ROOM];
		OK(sheaf_key_encode(user, l->items[0]->user, &t->err));
		OK(sheaf_key_encode(session, l->items[0]->session, &t->err));
		char now[256];
		snprintf(now, sizeof(now), "%.100s/%.100s", user, session);
		CHECK(strcmp(before, now) < 0); /* each once, by encoded key */
		snprintf(before, sizeof(before), "%s", now);
		count++;
		o.cursor = l->cursor;
		if (!o.cursor.ptr)
			break;
	}
	EQ(count, t->info.lists_app ? 24 : 0);
}

CASE(list_odd_ids)
{
	static const char *const ids[] = {"a/b", "..", ".",   ".hidden",   "x.jsonl",
	                                  "%41", "ü",  "a b", "-rf",       "CON",
	                                  "*",   "A",  "a",   "new\nline", "{tag}"};
	size_t n = sizeof(ids) / sizeof(ids[0]);
	for (size_t i = 0; i < n; i++) {
		sheaf_session *s = t_new(t, ids[i]);
		SAY(s, "user", ids[i], .id = "u1", .time_us = (int64_t)(n - i) * 1000000);
		t_close(t, s);
	}
	suite_reopen(t);
	const sheaf_list *l = t_list_mine(t);
	EQ(l->count, n);
	for (size_t i = 0; i < n; i++) {
		TEXT(l->items[i]->session, ids[i]);
		sheaf_session *s = t_existing(t, ids[i]);
		TEXT(t_get(t, s, "u1")->message->parts[0]->text, ids[i]);
	}
}
