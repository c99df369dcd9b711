/* Tenants and owners: keys that could be mistaken for each other and are not. */
#include <stdio.h>

#include "suite.h"

typedef struct owner {
	const char *app;
	const char *user;
	const char *session;
} owner;

/* Makes all of them, and checks that each sees its own and nothing else. */
static void apart(suite *t, const owner *owners, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		sheaf_key key = t_key_of(t, owners[i].app, owners[i].user, owners[i].session);
		sheaf_session *s = t_open_in(t, t->store, &key, SHEAF_OPEN_NEW);
		SAY(s, "user", t_format(t, "owner %zu", i), .id = "u1");
		t_close(t, s);
	}
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < count; i++) {
			sheaf_key key = t_key_of(t, owners[i].app, owners[i].user,
			                         owners[i].session);
			sheaf_session *s = t_open_in(t, t->store, &key, SHEAF_OPEN_EXISTING);
			TEXT(t_get(t, s, "u1")->message->parts[0]->text,
			     t_format(t, "owner %zu", i));
			t_close(t, s);
			sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
			o.app = key.app;
			o.user = key.user;
			size_t same = 0;
			for (size_t k = 0; k < count; k++)
				same += strcmp(owners[k].app, owners[i].app) == 0 &&
				        strcmp(owners[k].user, owners[i].user) == 0;
			const sheaf_list *l = t_list(t, &o);
			EQ(l->count, same);
			for (size_t k = 0; k < l->count; k++) {
				BYTES(l->items[k]->app, key.app.ptr, key.app.len);
				BYTES(l->items[k]->user, key.user.ptr, key.user.len);
			}
		}
		suite_reopen(t);
	}
}

CASE(tenants_with_slashes)
{
	static const owner owners[] = {{"a/b", "c", "s"},  {"a", "b/c", "s"},  {"a", "b", "c/s"},
	                               {"a/b/c", "", "s"}, {"", "a/b/c", "s"}, {"a", "b", "s"},
	                               {"", "", "a/b/c/s"}};
	apart(t, owners, sizeof(owners) / sizeof(owners[0]));
}

CASE(tenants_with_empty_parts)
{
	static const owner owners[] = {{"", "", "s"},   {"", "x", "s"},  {"x", "", "s"},
	                               {"x", "x", "s"}, {"", "", "x"},   {"%", "", "s"},
	                               {"", "%", "s"},  {"%", "%", "s"}, {"%25", "", "s"}};
	apart(t, owners, sizeof(owners) / sizeof(owners[0]));
}

CASE(tenants_with_braces)
{
	static const owner owners[] = {{"{a}", "b", "s"}, {"a", "{b}", "s"},  {"{a", "b}", "s"},
	                               {"a}", "{b", "s"}, {"{a/b}", "", "s"}, {"a", "b", "{s}"}};
	apart(t, owners, sizeof(owners) / sizeof(owners[0]));
}

CASE(tenants_with_dots_and_percent)
{
	static const owner owners[] = {{".", "..", "s"},      {"..", ".", "s"},
	                               {".a", "a.", "s"},     {"%2e", "x", "s"},
	                               {"a.jsonl", "b", "s"}, {"a", "b.jsonl", "s"},
	                               {"a", "b", "s.jsonl"}, {"a", "b", "s%2ejsonl"},
	                               {"a", "b", ".s"},      {"a", "b", "%2Es"}};
	apart(t, owners, sizeof(owners) / sizeof(owners[0]));
}

CASE(tenants_by_case_and_form)
{
	static const owner owners[] = {{"App", "u", "s"},       {"app", "u", "s"},
	                               {"APP", "u", "s"},       {"\xc3\xa9", "u", "s"},
	                               {"e\xcc\x81", "u", "s"}, {"app ", "u", "s"},
	                               {" app", "u", "s"},      {"app\n", "u", "s"}};
	apart(t, owners, sizeof(owners) / sizeof(owners[0]));
}

CASE(tenants_with_long_parts)
{
	size_t used = strlen(t->app);
	char *long1 = t_fill(t, 'a', 200 - used);
	char *long2 = t_fill(t, 'a', 200);
	char *long3 = t_fill(t, 'a', 199 - used);
	const owner owners[] = {{long1, long2, long2},
	                        {long3, long2, long2},
	                        {long1, "a", long2},
	                        {long1, long2, "a"}};
	apart(t, owners, 4);
}

CASE(tenants_do_not_share_forks)
{
	sheaf_key a = t_key_of(t, "", "ann", "s");
	sheaf_key b = t_key_of(t, "", "bob", "s");
	sheaf_session *s = t_open_in(t, t->store, &a, SHEAF_OPEN_NEW);
	SAY(s, "user", "private", .id = "u1");
	sheaf_session *f = NULL;
	FAILS(INVALID, sheaf_session_fork(&f, s, S(NULL), &b, NULL, &t->err));
	OK(sheaf_session_copy(&f, s, t->store, &b, &t->err)); /* a copy is how to give it away */
	t_keep(t, f);
	IDS(t_path(t, f, NULL), "u1");
	t_close(t, s);
	sheaf_deleted *d = NULL;
	OK(sheaf_store_delete(&d, t->store, &a, NULL, &t->err));
	int hidden = d->hidden;
	sheaf_deleted_free(d);
	EQ(hidden, 0);
	IDS(t_path(t, f, NULL), "u1");
}

CASE(tenants_recent_is_the_owners)
{
	sheaf_key a = t_key_of(t, "", "ann", "a1");
	sheaf_key b = t_key_of(t, "", "bob", "b1");
	SAY(t_open_in(t, t->store, &a, SHEAF_OPEN_NEW), "user", "x", .time_us = 1000000);
	SAY(t_open_in(t, t->store, &b, SHEAF_OPEN_NEW), "user", "x", .time_us = 2000000);
	sheaf_session *s = NULL;
	OK(sheaf_session_open_recent(&s, t->store, S(t->app), S("ann"), &t->err));
	t_keep(t, s);
	CSTR(sheaf_session_id(s), "a1");
}

CASE(tenants_are_bytes)
{
	/* Key parts are the caller's bytes, valid text or not. */
	static const sheaf_str parts[] = {
		{"\xff\xfe", 2}, {"a\0b", 3}, {"a", 1}, {"\0", 1}, {"\xc3", 1}};
	size_t n = sizeof(parts) / sizeof(parts[0]);
	for (size_t i = 0; i < n; i++) {
		sheaf_key key = {S(t->app), parts[i], parts[n - 1 - i]};
		sheaf_session *s = t_open_in(t, t->store, &key, SHEAF_OPEN_NEW);
		SAY(s, "user", t_format(t, "owner %zu", i), .id = "u1");
		sheaf_key forked = {S(t->app), parts[i], S("fork")};
		sheaf_session *f = NULL;
		OK(sheaf_session_fork(&f, s, S(NULL), &forked, NULL, &t->err));
		t_keep(t, f);
	}
	suite_reopen(t);
	for (size_t i = 0; i < n; i++) {
		sheaf_key key = {S(t->app), parts[i], parts[n - 1 - i]};
		sheaf_session *s = t_open_in(t, t->store, &key, SHEAF_OPEN_EXISTING);
		TEXT(t_get(t, s, "u1")->message->parts[0]->text, t_format(t, "owner %zu", i));
		BYTES(sheaf_session_key(s).user, parts[i].ptr, parts[i].len);
		sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
		o.app = S(t->app);
		o.user = parts[i];
		const sheaf_list *l = t_list(t, &o);
		EQ(l->count, 2);
		for (size_t k = 0; k < 2; k++)
			BYTES(l->items[k]->user, parts[i].ptr, parts[i].len);
		sheaf_key fork = {S(t->app), parts[i], S("fork")};
		sheaf_session *f = t_open_in(t, t->store, &fork, SHEAF_OPEN_EXISTING);
		sheaf_str source = t_head(t, f)->info->source;
		BYTES(source, parts[n - 1 - i].ptr, parts[n - 1 - i].len);
		IDS(t_path(t, f, NULL), "u1");
	}
}

/* Every call that names a session, with another app's name before it. */
static void refused_everywhere(suite *t, const sheaf_key *key)
{
	sheaf_session *none = NULL;
	sheaf_session_options existing = SHEAF_SESSION_OPTIONS_INIT;
	existing.mode = SHEAF_OPEN_EXISTING;
	FAILS(NOT_FOUND, sheaf_session_open(&none, t->store, key, &existing, &t->err));
	existing.readonly = 1;
	FAILS(NOT_FOUND, sheaf_session_open(&none, t->store, key, &existing, &t->err));
	FAILS(NOT_FOUND, sheaf_session_open_recent(&none, t->store, key->app, key->user, &t->err));
	int32_t existed = 1;
	FAILS(NOT_FOUND, sheaf_store_undelete(t->store, key, NULL, &existed, &t->err));
	sheaf_report *report = NULL;
	FAILS(NOT_FOUND, sheaf_store_check(&report, t->store, key, &t->err));
	sheaf_store_info info = {.size = sizeof(info)};
	OK(sheaf_store_describe(t->store, &info, &t->err));
	if (info.repairs)
		FAILS(NOT_FOUND, sheaf_store_repair(&report, t->store, key, &t->err));
	for (int purge = 0; purge < 2; purge++) {
		sheaf_delete_options how = SHEAF_DELETE_OPTIONS_INIT;
		how.purge = purge;
		sheaf_deleted *gone = NULL;
		OK(sheaf_store_delete(&gone, t->store, key, &how, &t->err));
		existed = gone->existed;
		sheaf_deleted_free(gone);
		EQ(existed, 0);
	}
	sheaf_list_options list = SHEAF_LIST_OPTIONS_INIT;
	list.app = key->app;
	list.user = key->user;
	EQ(t_list(t, &list)->count, 0);
	sheaf_expire_options sweep = SHEAF_EXPIRE_OPTIONS_INIT;
	sweep.app = key->app;
	sweep.user = key->user;
	sheaf_expired *swept = NULL;
	OK(sheaf_store_expire(&swept, t->store, &sweep, &t->err));
	size_t count = swept->removed->count;
	sheaf_expired_free(swept);
	EQ(count, 0);
}

CASE(tenants_every_call_with_the_wrong_app)
{
	sheaf_key mine = t_key_of(t, "mine", "u", "s"), theirs = t_key_of(t, "theirs", "u", "s");
	sheaf_session *s = t_open_in(t, t->store, &mine, SHEAF_OPEN_NEW);
	SAY(s, "user", "secret", .id = "u1",
	    .state_delta = "{\"own\":1,\"user:pin\":2,\"app:key\":3}");
	OK(sheaf_session_enqueue(s, S("waiting"), NULL, NULL, &t->err));
	refused_everywhere(t, &theirs);
	CSTR(t_store_state(t, theirs.app.ptr, "u"), "");
	CSTR(t_store_state(t, theirs.app.ptr, NULL), "");

	/* Of the same name there, and with the same ids: still another one. */
	sheaf_session *other = t_open_in(t, t->store, &theirs, SHEAF_OPEN_NEW);
	SAY(other, "user", "theirs", .id = "u1", .state_delta = "{\"user:pin\":9,\"app:key\":9}");
	sheaf_queue_items *items = NULL;
	OK(sheaf_session_pending(&items, other, &t->err));
	size_t waiting = items->count;
	sheaf_queue_items_free(items);
	EQ(waiting, 0);
	sheaf_deleted *gone = NULL;
	OK(sheaf_store_delete(&gone, t->store, &theirs, NULL, &t->err));
	sheaf_deleted_free(gone);

	TEXT(t_get(t, s, "u1")->message->parts[0]->text, "secret");
	CSTR(t_store_state(t, mine.app.ptr, "u"), "user:pin=2");
	CSTR(t_store_state(t, mine.app.ptr, NULL), "app:key=3");
	OK(sheaf_session_pending(&items, s, &t->err));
	waiting = items->count;
	sheaf_queue_items_free(items);
	EQ(waiting, 1);
}
