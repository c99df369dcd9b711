/* Opening stores and sessions: modes, options, what is promised about errors and durability. */
#include <stdio.h>
#include <stdlib.h>

#include "suite.h"

CASE(open_either_creates_then_opens)
{
	sheaf_key key = t_key(t, "either");
	sheaf_session *a = t_open_in(t, t->store, &key, SHEAF_OPEN_EITHER);
	SAY(a, "user", "hello", .id = "u1");
	sheaf_session *b = t_open_in(t, t->store, &key, SHEAF_OPEN_EITHER);
	IDS(t_path(t, b, NULL), "u1");
	sheaf_session *c = NULL;
	OK(sheaf_session_open(&c, t->store, &key, NULL, &t->err));
	t_keep(t, c);
	IDS(t_path(t, c, NULL), "u1");
}

CASE(open_new_refuses_existing)
{
	t_new(t, "once");
	sheaf_key key = t_key(t, "once");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_NEW;
	sheaf_session *s = (sheaf_session *)t;
	FAILS(EXISTS, sheaf_session_open(&s, t->store, &key, &o, &t->err));
	CHECK(s == (sheaf_session *)t); /* untouched on failure */
	EQ(t_list_mine(t)->count, 1);
}

CASE(open_existing_refuses_missing)
{
	sheaf_key key = t_key(t, "absent");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	sheaf_session *s = (sheaf_session *)t;
	FAILS(NOT_FOUND, sheaf_session_open(&s, t->store, &key, &o, &t->err));
	CHECK(s == (sheaf_session *)t);
	EQ(t_list_mine(t)->count, 0); /* and asking for it made nothing */
}

CASE(open_unknown_mode)
{
	sheaf_key key = t_key(t, "m");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = 77;
	sheaf_session *s = NULL;
	FAILS(INVALID, sheaf_session_open(&s, t->store, &key, &o, &t->err));
	EQ(t_list_mine(t)->count, 0);
}

CASE(open_without_id_makes_uuid7)
{
	char seen[3][SHEAF_ID_ROOM];
	for (int i = 0; i < 3; i++) {
		sheaf_session *s = t_new(t, "");
		snprintf(seen[i], sizeof(seen[i]), "%s", sheaf_session_id(s));
		EQ(strlen(seen[i]), 36);
		EQ(seen[i][14], '7');
		CHECK(strchr("89ab", seen[i][19]) != NULL);
		TEXT(sheaf_session_key(s).session, seen[i]);
		if (i)
			CHECK(strcmp(seen[i - 1], seen[i]) < 0);
	}
	EQ(t_list_mine(t)->count, 3);
}

CASE(open_options_are_stored)
{
	sheaf_key key = t_key(t, "child");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_NEW;
	o.name = S("A name");
	o.kind = S("subagent");
	o.parent_session = S("the-parent");
	o.cwd = S("/home/me/project");
	o.created_us = 1700000000123456;
	sheaf_session *s = NULL;
	OK(sheaf_session_open(&s, t->store, &key, &o, &t->err));
	t_keep(t, s);
	for (int round = 0; round < 2; round++) {
		const sheaf_session_info *info = t_head(t, s)->info;
		TEXT(info->name, "A name");
		TEXT(info->kind, "subagent");
		TEXT(info->parent_session, "the-parent");
		TEXT(info->cwd, "/home/me/project");
		EQ(info->created_us, 1700000000123456);
		TEXT(info->session, "child");
		EQ(info->base, 0);
		s = t_restart(t, "child");
	}
}

CASE(open_options_count_only_at_creation)
{
	sheaf_session *first = t_new(t, "plain");
	SAY(first, "user", "x");
	uint64_t revision = t_revision(t, first);
	sheaf_key key = t_key(t, "plain");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.name = S("late name");
	o.cwd = S("/late");
	o.kind = S("subagent");
	sheaf_session *s = NULL;
	OK(sheaf_session_open(&s, t->store, &key, &o, &t->err));
	t_keep(t, s);
	const sheaf_session_info *info = t_head(t, s)->info;
	TEXT(info->name, "");
	TEXT(info->kind, "main");
	EQ(info->cwd.len, 0);
	EQ(info->revision, revision);
}

CASE(open_extra_header_members)
{
	sheaf_key key = t_key(t, "extra");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_session *s = NULL;
	static const char *const bad[] = {"[1]",
	                                  "{\"id\":\"x\"}",
	                                  "{\"format\":\"mine\"}",
	                                  "{\"crc\":\"00000000\"}",
	                                  "{\"a\":1,\"a\":2}",
	                                  "{\"a\":1",
	                                  "7"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		o.extra = S(bad[i]);
		FAILS(INVALID, sheaf_session_open(&s, t->store, &key, &o, &t->err));
	}
	EQ(t_list_mine(t)->count, 0);
	o.extra = S("{\"tool\":{\"call\":\"c1\"},\"n\":1e400}");
	OK(sheaf_session_open(&s, t->store, &key, &o, &t->err));
	t_keep(t, s);
	SAY(s, "user", "works", .id = "u1");
	s = t_restart(t, "extra");
	IDS(t_path(t, s, NULL), "u1");
}

CASE(open_recent_is_newest_by_time)
{
	sheaf_session *a = t_new(t, "a");
	sheaf_session *b = t_new(t, "b");
	SAY(a, "user", "x", .time_us = 2000000000000000);
	SAY(b, "user", "y", .time_us = 1900000000000000);
	sheaf_session *s = NULL;
	OK(sheaf_session_open_recent(&s, t->store, S(t->app), S(""), &t->err));
	t_keep(t, s);
	CSTR(sheaf_session_id(s), "a");
	SAY(b, "user", "z", .time_us = 2100000000000000);
	s = NULL;
	OK(sheaf_session_open_recent(&s, t->store, S(t->app), S(""), &t->err));
	t_keep(t, s);
	CSTR(sheaf_session_id(s), "b");
	SAY(s, "assistant", "it can be written to", .time_us = 2100000000000001);
}

CASE(open_recent_none)
{
	sheaf_session *s = NULL;
	FAILS(NOT_FOUND, sheaf_session_open_recent(&s, t->store, S(t->app), S(""), &t->err));
	sheaf_key other = t_key_of(t, "", "somebody", "x");
	t_open_in(t, t->store, &other, SHEAF_OPEN_NEW);
	FAILS(NOT_FOUND, sheaf_session_open_recent(&s, t->store, S(t->app), S(""), &t->err));
	CHECK(s == NULL);
}

CASE(readonly_session_refuses_every_write)
{
	sheaf_session *w = t_new(t, "ro");
	SAY(w, "user", "one", .id = "u1");
	SAY(w, "user", "two", .id = "u2");
	sheaf_key key = t_key(t, "ro");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	o.readonly = 1;
	sheaf_session *s = NULL;
	OK(sheaf_session_open(&s, t->store, &key, &o, &t->err));
	t_keep(t, s);
	FAILS(READONLY, TRY_SAY(s, "user", "x", .id = "u9"));
	FAILS(READONLY, t_label(t, s, "u1", "l"));
	FAILS(READONLY, t_rename(t, s, "n"));
	FAILS(READONLY, t_branch(t, s, "b", "u1"));
	FAILS(READONLY, sheaf_session_clear(s, &t->err));
	FAILS(READONLY, TRY_COMPACT(s, "sum", "u2"));
	sheaf_batch *b = t_batch(t);
	ADD(b, "user", "x");
	FAILS(READONLY, t_append_batch(t, s, b, (put){0}));
	IDS(t_path(t, s, NULL), "u1 u2");
	EQ(t_revision(t, w), 2);
	SAY(w, "user", "three", .id = "u3");
	IDS(t_path(t, s, NULL), "u1 u2 u3"); /* it follows what others write */
}

CASE(readonly_store_refuses_every_write)
{
	sheaf_session *w = t_new(t, "ro");
	SAY(w, "user", "one", .id = "u1");
	sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
	options.readonly = 1;
	sheaf_store *store = NULL;
	OK(sheaf_open(&store, t->places[0].url, &options, &t->err));
	sheaf_store_info info = {.size = sizeof(info)};
	OK(sheaf_store_describe(store, &info, &t->err));
	EQ(info.readonly, 1);
	sheaf_key key = t_key(t, "made");
	sheaf_session *s = NULL;
	int made = sheaf_session_open(&s, store, &key, NULL, NULL);
	key = t_key(t, "ro");
	int deleted = sheaf_store_delete(NULL, store, &key, NULL, NULL);
	int opened = SHEAF_OK;
	int wrote = SHEAF_READONLY;
	if (!t->memory) {
		opened = sheaf_session_open(&s, store, &key, NULL, NULL);
		if (opened == 0) {
			wrote = sheaf_session_append_text(s, "user", S("x"), NULL, NULL);
			sheaf_session_close(s);
		}
	}
	sheaf_close(store);
	EQ(made, SHEAF_READONLY);
	EQ(deleted, SHEAF_READONLY);
	EQ(opened, 0);
	EQ(wrote, SHEAF_READONLY);
	IDS(t_path(t, w, NULL), "u1");
}

CASE(session_key_is_the_callers)
{
	sheaf_key key = t_key_of(t, "", "ann/ä", "the session {1}");
	sheaf_session *s = t_open_in(t, t->store, &key, SHEAF_OPEN_NEW);
	sheaf_key got = sheaf_session_key(s);
	TEXT(got.app, t->app);
	TEXT(got.user, "ann/ä");
	TEXT(got.session, "the session {1}");
	CSTR(sheaf_session_id(s), "the session {1}");
}

CASE(describe_names_what_the_store_can)
{
	CHECK(t->info.scheme && strncmp(t->url, t->info.scheme, strlen(t->info.scheme)) == 0);
	CHECK(t->info.durability >= SHEAF_DURABILITY_NONE);
	CHECK(t->info.durability <= t->info.durability_max);
	CHECK(t->info.durability_max <= SHEAF_DURABILITY_REPLICA);
	EQ(t->info.readonly, 0);
	if (t->memory)
		EQ(t->info.durability_max, SHEAF_DURABILITY_NONE);
}

CASE(open_refuses_bad_urls)
{
	sheaf_store *store = (sheaf_store *)t;
	FAILS(UNSUPPORTED, sheaf_open(&store, "nosuchscheme:/x", NULL, &t->err));
	FAILS(INVALID, sheaf_open(&store, "", NULL, &t->err));
	FAILS(INVALID, sheaf_open(&store, "no scheme at all", NULL, &t->err));
	FAILS(INVALID, sheaf_open(&store, "memory:?nosuchoption=1", NULL, &t->err));
	sheaf_store_options o = SHEAF_STORE_OPTIONS_INIT;
	o.durability = 99;
	CHECK(sheaf_open(&store, "memory:", &o, &t->err) != 0);
	o.durability = SHEAF_DURABILITY_DISK;
	FAILS(UNSUPPORTED, sheaf_open(&store, "memory:", &o, &t->err));
	CHECK(store == (sheaf_store *)t);
}

CASE(durability_is_given_or_refused)
{
	sheaf_session *s = t_new(t, "d");
	uint64_t given = 0;
	for (int level = SHEAF_DURABILITY_NONE; level <= SHEAF_DURABILITY_REPLICA; level++) {
		const char *id = t_format(t, "u%d", level);
		if (level > t->info.durability_max) {
			FAILS(UNSUPPORTED, TRY_SAY(s, "user", "x", .id = id, .durability = level));
			continue;
		}
		/* A server with replicas that does not sync has the highest level and not disk. */
		if (level == SHEAF_DURABILITY_DISK && t->info.durability < level &&
		    t->info.durability_max > level &&
		    TRY_SAY(s, "user", "x", .id = id, .durability = level) == SHEAF_UNSUPPORTED)
			continue;
		given++;
		SAY(s, "user", "x", .id = id, .durability = level);
		CHECK(t->out.durability >= level);
		CHECK(t->out.durability <= t->info.durability_max);
	}
	SAY(s, "user", "default", .id = "ud");
	CHECK(t->out.durability >= t->info.durability);
	EQ(t_all(t, s)->count, given + 1);
	CHECK(TRY_SAY(s, "user", "x", .durability = 50) != 0);
}

CASE(error_is_left_alone_on_success)
{
	sheaf_session *s = t_new(t, "e");
	memset(&t->err, 0x33, sizeof(t->err));
	sheaf_error copy = t->err;
	CHECK(sheaf_session_append_text(s, "user", S("x"), NULL, &t->err) == 0);
	CHECK(memcmp(&copy, &t->err, sizeof(copy)) == 0);
	CHECK(sheaf_session_clear(s, &t->err) == 0);
	CHECK(memcmp(&copy, &t->err, sizeof(copy)) == 0);
}

CASE(error_never_holds_content)
{
	sheaf_session *s = t_new(t, "e");
	SAY(s, "user", "CANARY first", .id = "u1");
	FAILS(CONFLICT, TRY_SAY(s, "user", "CANARY second", .id = "u1"));
	CHECK(!strstr(t->err.message, "CANARY") && !strstr(t->err.hint, "CANARY"));
	FAILS(INVALID, TRY_JSON(s, "message", "{\"message\":{\"CANARY\":\"CANARY"));
	CHECK(!strstr(t->err.message, "CANARY") && !strstr(t->err.hint, "CANARY"));
	FAILS(INVALID, TRY_JSON(s, "custom",
	                        "{\"custom\":{\"custom_type\":\"x\",\"data\":"
	                        "{\"CANARY\":1,\"CANARY\":2}}}"));
	CHECK(!strstr(t->err.message, "CANARY") && !strstr(t->err.hint, "CANARY"));
}

CASE(error_may_be_null)
{
	sheaf_session *s = t_new(t, "e");
	EQ(sheaf_session_append_text(s, "nobody", S("x"), NULL, NULL), SHEAF_INVALID);
	EQ(sheaf_session_label(s, S("gone"), S("l"), NULL, NULL, NULL), SHEAF_NOT_FOUND);
	sheaf_records *r = NULL;
	EQ(sheaf_session_get(&r, s, S("gone"), NULL), SHEAF_NOT_FOUND);
	sheaf_context *c = NULL;
	EQ(sheaf_session_context(&c, s, NULL, NULL), 0);
	sheaf_context_free(c);
	EQ(t_revision(t, s), 0);
}

CASE(frees_take_null)
{
	sheaf_close(NULL);
	sheaf_session_close(NULL);
	sheaf_records_free(NULL);
	sheaf_list_free(NULL);
	sheaf_head_view_free(NULL);
	sheaf_tree_free(NULL);
	sheaf_context_free(NULL);
	sheaf_deleted_free(NULL);
	sheaf_report_free(NULL);
	sheaf_batch_free(NULL);
	sheaf_message_free(NULL);
	EQ(t_list_mine(t)->count, 0);
}

CASE(options_of_an_older_caller)
{
	sheaf_session *s = t_new(t, "old");
	SAY(s, "user", "one", .id = "u1");
	SAY(s, "user", "two", .id = "u2");
	/* A caller built before the later members existed says so with its size. */
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.size = offsetof(sheaf_read_options, newest);
	o.backward = 1;
	o.newest = 77;
	o.limit = 1;
	o.kinds = SHEAF_KIND_BIT(SHEAF_KIND_LABEL);
	IDS(t_records(t, s, &o), "u2 u1");
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.size = offsetof(sheaf_entry_options, branch);
	e.id = S("u3");
	e.branch = S("elsewhere");
	e.extra = S("not even JSON");
	OK(sheaf_session_append_model_change(s, S("p"), S("m"), &e, NULL, NULL, &t->err));
	LEAF(s, "u3");
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	how.size = offsetof(sheaf_append_options, expect);
	how.expect = SHEAF_EXPECT_REVISION;
	how.revision = 999;
	OK(sheaf_session_label(s, S("u1"), S("l"), &how, NULL, &t->err));
	EQ(t_revision(t, s), 4);
}

CASE(what_is_not_named_is_not_found)
{
	sheaf_session *s = t_new(t, "n");
	SAY(s, "user", "one", .id = "u1");
	sheaf_records *r = NULL;
	FAILS(NOT_FOUND, sheaf_session_path(&r, s, S("nobranch"), S(NULL), 0, &t->err));
	FAILS(NOT_FOUND, sheaf_session_path(&r, s, S(NULL), S("noid"), 0, &t->err));
	FAILS(NOT_FOUND, sheaf_session_get(&r, s, S("noid"), &t->err));
	FAILS(NOT_FOUND, sheaf_session_children(&r, s, S("noid"), &t->err));
	CHECK(r == NULL);
	char id[SHEAF_ID_ROOM];
	FAILS(NOT_FOUND, sheaf_session_leaf(s, S("nobranch"), id, &t->err));
	FAILS(NOT_FOUND, sheaf_session_resolve(s, S("noid"), id, &t->err));
	sheaf_context *c = NULL;
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	o.branch = S("nobranch");
	FAILS(NOT_FOUND, sheaf_session_context(&c, s, &o, &t->err));
	o.branch = S(NULL);
	o.leaf = S("noid");
	FAILS(NOT_FOUND, sheaf_session_context(&c, s, &o, &t->err));
	CHECK(c == NULL);
}
