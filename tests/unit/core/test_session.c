/* Tests of core/session.c: opening, creating, heads. */
#include "core_test.h"

#include "sheaf/sys/store.h"

static void test_open_modes(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = NULL;
	sheaf_key key = sheaf_key_of("one");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;

	o.mode = SHEAF_OPEN_EXISTING;
	FAILS(NOT_FOUND, sheaf_session_open(&s, store, &key, &o, &err));
	assert_null(s);
	OK(sheaf_session_open(&s, store, &key, NULL, &err)); /* made */
	assert_string_equal(sheaf_session_id(s), "one");
	sheaf_session_close(s);
	OK(sheaf_session_open(&s, store, &key, NULL, &err)); /* opened */
	sheaf_session_close(s);
	OK(sheaf_session_open(&s, store, &key, &o, &err));
	sheaf_session_close(s);
	o.mode = SHEAF_OPEN_NEW;
	FAILS(EXISTS, sheaf_session_open(&s, store, &key, &o, &err));
	o.readonly = 1;
	FAILS(INVALID, sheaf_session_open(&s, store, &key, &o, &err));
	o.mode = 7;
	FAILS(INVALID, sheaf_session_open(&s, store, &key, &o, &err));
	FAILS(INVALID, sheaf_session_open(&s, NULL, &key, NULL, &err));
	FAILS(INVALID, sheaf_session_open(&s, store, NULL, NULL, &err));
}

static void test_new_id_for_an_empty_session_part(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *a = NULL, *b = NULL;
	sheaf_key key = {S("app"), S("user"), NONE};
	OK(sheaf_session_open(&a, store, &key, NULL, &err));
	OK(sheaf_session_open(&b, store, &key, NULL, &err));
	assert_int_equal(strlen(sheaf_session_id(a)), 36);
	assert_true(strcmp(sheaf_session_id(a), sheaf_session_id(b)) < 0);
	assert_str(sheaf_session_key(a).app, "app");
	assert_str(sheaf_session_key(a).user, "user");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	sheaf_session *none = NULL;
	FAILS(INVALID, sheaf_session_open(&none, store, &key, &o, &err));
	sheaf_session_close(a);
	sheaf_session_close(b);
}

static void test_options_of_creation(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = NULL;
	sheaf_key key = {S("a/b"), S("ü"), S("x y")};
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.name = S("A name \xe2\x80\xa8 with U+2028");
	o.kind = S("subagent");
	o.parent_session = S("parent");
	o.cwd = S("/tmp");
	o.extra = S("{ \"tool_call\":\"c1\" }");
	o.created_us = 1700000000000000;
	OK(sheaf_session_open(&s, store, &key, &o, &err));
	sheaf_head_view *h = NULL;
	OK(sheaf_session_head(&h, s, &err));
	assert_str(h->info->app, "a/b");
	assert_str(h->info->user, "ü");
	assert_str(h->info->session, "x y");
	assert_str(h->info->name, "A name \xe2\x80\xa8 with U+2028");
	assert_str(h->info->kind, "subagent");
	assert_str(h->info->parent_session, "parent");
	assert_str(h->info->cwd, "/tmp");
	assert_int_equal(h->info->created_us, 1700000000000000);
	assert_int_equal(h->info->modified_us, 1700000000000000);
	assert_int_equal(h->info->revision, 1); /* the name */
	assert_int_equal(h->info->messages, 0);
	assert_int_equal(h->branch_count, 1);
	assert_str(h->branches[0]->name, "main");
	assert_null(h->branches[0]->leaf.ptr);
	assert_int_equal(h->branches[0]->leaf_seq, 0);
	assert_null(h->metadata.ptr);
	assert_int_equal(h->readonly, 0);
	assert_int_equal(h->damaged, 0);
	sheaf_head_view_free(h);
	sheaf_session_close(s);

	key.session = S("other");
	o.extra = S("{\"id\":\"mine\"}");
	FAILS(INVALID, sheaf_session_open(&s, store, &key, &o, &err));
	o.extra = S("[]");
	FAILS(INVALID, sheaf_session_open(&s, store, &key, &o, &err));
	o.extra = NONE;
	o.name = S("\xff");
	FAILS(INVALID, sheaf_session_open(&s, store, &key, &o, &err));
	char long_name[SHEAF_NAME_BYTES_MAX + 2];
	memset(long_name, 'n', sizeof(long_name));
	o.name = (sheaf_str){long_name, SHEAF_NAME_BYTES_MAX + 1};
	FAILS(LIMIT, sheaf_session_open(&s, store, &key, &o, &err));
	o.name.len--;
	OK(sheaf_session_open(&s, store, &key, &o, &err));
	sheaf_session_close(s);
}

static void test_older_callers_have_shorter_structs(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = NULL;
	sheaf_key key = sheaf_key_of("old");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.name = S("not looked at");
	o.size = offsetof(sheaf_session_options, name);
	OK(sheaf_session_open(&s, store, &key, &o, &err));
	assert_int_equal(revision_of(s), 0);
	sheaf_appended out = {offsetof(sheaf_appended, seq), {0}, 99, 99, 99, 99, 99, 99};
	OK(sheaf_session_append_text(s, "user", S("hi"), &out, &err));
	assert_int_equal(out.size, offsetof(sheaf_appended, seq));
	assert_int_equal(strlen(out.id), 36);
	assert_int_equal(out.seq, 99);
	assert_int_equal(out.durability, 99);
	sheaf_session_close(s);
}

static void test_head_counts(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY(s, "  Hello\n there ", .id = "m1", .time_us = 1000000);
	SAY(s, "more", .id = "m2", .time_us = 500000);
	OK(sheaf_session_rename(s, S("Name"), S("{\"k\": 1.50}"), NULL, NULL, &err));
	OK(sheaf_session_branch(s, S("side"), S("m1"), NULL, NULL, &err));
	sheaf_head_view *h = NULL;
	OK(sheaf_session_head(&h, s, &err));
	assert_str(h->info->preview, "Hello there");
	assert_str(h->info->name, "Name");
	assert_str(h->metadata, "{\"k\": 1.50}");
	assert_int_equal(h->info->messages, 2);
	assert_int_equal(h->info->records, 4);
	assert_int_equal(h->info->revision, 4);
	assert_int_equal(h->branch_count, 2);
	assert_str(h->branches[0]->leaf, "m2");
	assert_str(h->branches[1]->name, "side");
	assert_str(h->branches[1]->leaf, "m1");
	assert_int_equal(h->branches[1]->leaf_seq, 1);
	sheaf_head_view_free(h);
	/* A name alone keeps the metadata, metadata alone the name. */
	OK(sheaf_session_rename(s, S(""), NONE, NULL, NULL, &err));
	OK(sheaf_session_rename(s, NONE, S("{}"), NULL, NULL, &err));
	OK(sheaf_session_head(&h, s, &err));
	assert_str(h->info->name, "");
	assert_str(h->metadata, "{}");
	sheaf_head_view_free(h);
	FAILS(INVALID, sheaf_session_rename(s, S("x"), S("[1]"), NULL, NULL, &err));
	sheaf_session_close(s);
}

static void test_recent(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = NULL;
	FAILS(NOT_FOUND, sheaf_session_open_recent(&s, store, S(""), S(""), &err));
	sheaf_session *a = make(store, "a"), *b = make(store, "b");
	SAY(a, "x", .time_us = 5000000000000000);
	SAY(b, "x", .time_us = 4000000000000000);
	OK(sheaf_session_open_recent(&s, store, S(""), S(""), &err));
	assert_string_equal(sheaf_session_id(s), "a");
	sheaf_session_close(s);
	FAILS(NOT_FOUND, sheaf_session_open_recent(&s, store, S("app"), S(""), &err));
	sheaf_session_close(a);
	sheaf_session_close(b);
}

static void test_deleted_under_a_handle(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s");
	sheaf_key key = sheaf_key_of("s");
	char id[SHEAF_ID_ROOM];
	SAY(s, "x", .id = "m1");
	OK(sheaf_store_delete(NULL, store, &key, NULL, &err));
	FAILS(GONE, sheaf_session_leaf(s, NONE, id, &err));
	SAY_FAILS(GONE, s, "y");
	assert_int_equal(strlen(done.id), 36);
	SAY_FAILS(GONE, s, "y", .parent = "m1");
	sheaf_records *r = NULL;
	FAILS(GONE, sheaf_session_records(&r, s, NULL, &err));
	sheaf_session_close(s);
}

static void test_readonly_handle(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s"), *ro = NULL;
	sheaf_key key = sheaf_key_of("s");
	SAY(s, "x", .id = "m1");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.readonly = 1;
	OK(sheaf_session_open(&ro, store, &key, &o, &err));
	SAY_FAILS(READONLY, ro, "y");
	expect_path(ro, NULL, "m1");
	key = sheaf_key_of("absent");
	sheaf_session *none = NULL;
	FAILS(NOT_FOUND, sheaf_session_open(&none, store, &key, &o, &err));
	sheaf_session_close(ro);
	sheaf_session_close(s);
}

static void test_hidden_keys_stay_taken(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s"), *none = NULL;
	SAY(s, "x", .id = "m1");
	sheaf_session *f = fork_of(s, "m1", "f");
	sheaf_key key = sheaf_key_of("s");
	OK(sheaf_store_delete(NULL, store, &key, NULL, &err));
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	FAILS(NOT_FOUND, sheaf_session_open(&none, store, &key, &o, &err));
	FAILS(EXISTS, sheaf_session_open(&none, store, &key, NULL, &err));
	o.mode = SHEAF_OPEN_NEW;
	FAILS(EXISTS, sheaf_session_open(&none, store, &key, &o, &err));
	SAY_FAILS(GONE, s, "y");
	sheaf_session_close(f);
	sheaf_session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_open_modes),
		TEST(test_new_id_for_an_empty_session_part),
		TEST(test_options_of_creation),
		TEST(test_older_callers_have_shorter_structs),
		TEST(test_head_counts),
		TEST(test_recent),
		TEST(test_deleted_under_a_handle),
		TEST(test_readonly_handle),
		TEST(test_hidden_keys_stay_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
