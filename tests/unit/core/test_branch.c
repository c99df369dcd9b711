/* Tests of core/branch.c: branches, summaries, labels, names. */
#include "core_test.h"

static void three(sheaf_session *s)
{
	SAY(s, "1", .id = "aaaa-1");
	SAY(s, "2", .id = "aaaa-2");
	SAY(s, "3", .id = "bbbb-3");
}

static void test_moving_and_making(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s");
	three(s);
	done = (sheaf_appended)SHEAF_APPENDED_INIT;
	OK(sheaf_session_branch(s, NONE, S("aaaa-1"), NULL, &done, &err));
	assert_int_equal(done.seq, 4);
	expect_leaf(s, NULL, "aaaa-1");
	SAY(s, "4", .id = "c");
	expect_path(s, NULL, "aaaa-1 c");
	OK(sheaf_session_branch(s, S("old"), S("bbbb-3"), NULL, NULL, &err));
	expect_path(s, "old", "aaaa-1 aaaa-2 bbbb-3");
	SAY(s, "5", .id = "d", .branch = "old");
	expect_path(s, "old", "aaaa-1 aaaa-2 bbbb-3 d");
	expect_path(s, NULL, "aaaa-1 c");
	/* Another handle sees the same: it is in the log. */
	sheaf_session *other = again(store, "s");
	expect_leaf(other, "old", "d");
	sheaf_session_close(other);

	FAILS(NOT_FOUND, sheaf_session_branch(s, S("x"), S("nowhere"), NULL, NULL, &err));
	char id[SHEAF_ID_ROOM];
	FAILS(NOT_FOUND, sheaf_session_leaf(s, S("x"), id, &err));
	char name[SHEAF_BRANCH_BYTES_MAX + 2] = {0};
	memset(name, 'b', SHEAF_BRANCH_BYTES_MAX + 1);
	FAILS(LIMIT, sheaf_session_branch(s, S(name), S("c"), NULL, NULL, &err));
	name[SHEAF_BRANCH_BYTES_MAX] = '\0';
	OK(sheaf_session_branch(s, S(name), S("c"), NULL, NULL, &err));
	FAILS(INVALID, sheaf_session_branch(s, S("a\nb"), S("c"), NULL, NULL, &err));
	FAILS(INVALID, sheaf_session_branch(s, S("\xff"), S("c"), NULL, NULL, &err));
	sheaf_session_close(s);
}

static void test_expecting_a_leaf(void **state)
{
	sheaf_session *s = make(*state, "s");
	three(s);
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	how.expect = SHEAF_EXPECT_LEAF;
	how.leaf = S("aaaa-2");
	FAILS(STALE, sheaf_session_branch(s, NONE, S("aaaa-1"), &how, NULL, &err));
	assert_string_equal(err.leaf, "bbbb-3");
	how.leaf = S("bbbb-3");
	OK(sheaf_session_branch(s, NONE, S("aaaa-1"), &how, NULL, &err));
	/* A branch that is not there ends nowhere. */
	how.leaf = NONE;
	OK(sheaf_session_branch(s, S("new"), S("aaaa-2"), &how, NULL, &err));
	FAILS(STALE, sheaf_session_branch_delete(s, S("new"), &how, NULL, &err));
	assert_string_equal(err.leaf, "aaaa-2");
	sheaf_session_close(s);
}

static void test_clear_and_null(void **state)
{
	sheaf_session *s = make(*state, "s");
	three(s);
	OK(sheaf_session_label(s, S("aaaa-2"), S("keep"), NULL, NULL, &err));
	OK(sheaf_session_clear(s, &err));
	expect_leaf(s, NULL, "");
	expect_path(s, NULL, "");
	expect_label(s, "keep", "aaaa-2");
	SAY(s, "new", .id = "n");
	expect_path(s, NULL, "n");
	sheaf_records *r = NULL;
	OK(sheaf_session_children(&r, s, NONE, &err));
	assert_string_equal(ids_of(r), "aaaa-1 n");
	sheaf_records_free(r);
	OK(sheaf_session_branch(s, S("side"), NONE, NULL, NULL, &err));
	expect_leaf(s, "side", "");
	sheaf_session_close(s);
}

static void test_deleting(void **state)
{
	sheaf_session *s = make(*state, "s");
	three(s);
	FAILS(INVALID, sheaf_session_branch_delete(s, NONE, NULL, NULL, &err));
	FAILS(INVALID, sheaf_session_branch_delete(s, S("main"), NULL, NULL, &err));
	FAILS(NOT_FOUND, sheaf_session_branch_delete(s, S("x"), NULL, NULL, &err));
	OK(sheaf_session_branch(s, S("x"), S("aaaa-2"), NULL, NULL, &err));
	OK(sheaf_session_branch_delete(s, S("x"), NULL, NULL, &err));
	FAILS(NOT_FOUND, sheaf_session_branch_delete(s, S("x"), NULL, NULL, &err));
	SAY_FAILS(NOT_FOUND, s, "y", .branch = "x");
	SAY(s, "y", .id = "y", .branch = "x", .parent = "aaaa-2");
	expect_path(s, "x", "aaaa-1 aaaa-2 y");
	sheaf_session_close(s);
}

static void test_at_most_256(void **state)
{
	sheaf_session *s = make(*state, "s");
	three(s);
	char name[16];
	for (unsigned i = 1; i < SHEAF_BRANCHES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "b%u", i);
		OK(sheaf_session_branch(s, S(name), S("aaaa-1"), NULL, NULL, &err));
	}
	uint64_t before = revision_of(s);
	FAILS(LIMIT, sheaf_session_branch(s, S("one-too-many"), S("aaaa-1"), NULL, NULL, &err));
	SAY_FAILS(LIMIT, s, "x", .branch = "one-too-many", .parent = "aaaa-1");
	assert_int_equal(revision_of(s), before);
	OK(sheaf_session_branch_delete(s, S("b7"), NULL, NULL, &err));
	OK(sheaf_session_branch(s, S("one-too-many"), S("aaaa-1"), NULL, NULL, &err));
	sheaf_session_close(s);
}

static void test_with_summary(void **state)
{
	sheaf_session *s = make(*state, "s");
	three(s);
	OK(sheaf_session_label(s, S("aaaa-1"), S("start"), NULL, NULL, &err));
	done = (sheaf_appended)SHEAF_APPENDED_INIT;
	OK(sheaf_session_branch_with_summary(s, NONE, S("start"), S("tried \"b\""), NULL, &done,
	                                     &err));
	sheaf_records *r = NULL;
	OK(sheaf_session_path(&r, s, NONE, NONE, 0, &err));
	assert_int_equal(r->count, 2);
	assert_str(r->items[0]->id, "aaaa-1");
	assert_str(r->items[0]->label, "start");
	assert_int_equal(r->items[1]->kind, SHEAF_KIND_BRANCH_SUMMARY);
	assert_str(r->items[1]->text, "tried \"b\"");
	assert_str(r->items[1]->target_id, "bbbb-3");
	assert_str(r->items[1]->id, done.id);
	sheaf_records_free(r);
	/* To before the first entry, from a branch that is not there. */
	OK(sheaf_session_branch_with_summary(s, S("n"), NONE, S("from nowhere"), NULL, &done,
	                                     &err));
	OK(sheaf_session_path(&r, s, S("n"), NONE, 0, &err));
	assert_int_equal(r->count, 1);
	assert_null(r->items[0]->target_id.ptr);
	assert_null(r->items[0]->parent_id.ptr);
	sheaf_records_free(r);
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	how.expect = SHEAF_EXPECT_LEAF;
	how.leaf = S("aaaa-1");
	FAILS(STALE,
	      sheaf_session_branch_with_summary(s, NONE, S("start"), S("x"), &how, NULL, &err));
	FAILS(NOT_FOUND,
	      sheaf_session_branch_with_summary(s, NONE, S("zzz"), S("x"), NULL, NULL, &err));
	sheaf_session_close(s);
}

static void test_labels(void **state)
{
	sheaf_session *s = make(*state, "s");
	three(s);
	OK(sheaf_session_label(s, S("aaaa-1"), S("first"), NULL, NULL, &err));
	OK(sheaf_session_label(s, S("first"), S("renamed"), NULL, NULL, &err)); /* by its label */
	expect_label(s, "renamed", "aaaa-1");
	char id[SHEAF_ID_ROOM];
	FAILS(NOT_FOUND, sheaf_session_resolve(s, S("first"), id, &err));
	OK(sheaf_session_label(s, S("bbbb-3"), S("renamed"), NULL, NULL, &err));
	expect_label(s, "renamed", "bbbb-3"); /* the newest says */
	sheaf_records *r = NULL;
	OK(sheaf_session_labels(&r, s, &err));
	assert_string_equal(ids_of(r), "aaaa-1 bbbb-3");
	assert_str(r->items[1]->label, "renamed");
	sheaf_records_free(r);
	OK(sheaf_session_label(s, S("bbbb-3"), S(""), NULL, &done, &err));
	expect_label(s, "renamed", "aaaa-1");
	OK(sheaf_session_labels(&r, s, &err));
	assert_string_equal(ids_of(r), "aaaa-1");
	sheaf_records_free(r);
	FAILS(NOT_FOUND, sheaf_session_label(s, S("zz"), S("x"), NULL, NULL, &err));
	FAILS(INVALID, sheaf_session_label(s, S(done.id), S("x"), NULL, NULL, &err)); /* a fact */
	FAILS(INVALID, sheaf_session_label(s, S(""), S("x"), NULL, NULL, &err));
	FAILS(INVALID, sheaf_session_label(s, S("aaaa-1"), S("\xc0"), NULL, NULL, &err));
	/* Labels move no leaf. */
	expect_leaf(s, NULL, "bbbb-3");
	sheaf_session_close(s);
}

static void test_resolving(void **state)
{
	sheaf_session *s = make(*state, "s");
	char id[SHEAF_ID_ROOM];
	three(s);
	expect_label(s, "aaaa-1", "aaaa-1");
	expect_label(s, "bbbb", "bbbb-3");
	FAILS(INVALID, sheaf_session_resolve(s, S("aaaa"), id, &err));
	FAILS(INVALID, sheaf_session_resolve(s, S(""), id, &err));
	FAILS(NOT_FOUND, sheaf_session_resolve(s, S("bbb"), id, &err)); /* too short for a prefix */
	FAILS(NOT_FOUND, sheaf_session_resolve(s, S("cccc"), id, &err));
	OK(sheaf_session_label(s, S("aaaa-2"), S("bbbb"), NULL, NULL, &err));
	expect_label(s, "bbbb", "aaaa-2"); /* a label goes before a prefix */
	char long_label[SHEAF_NAME_BYTES_MAX + 1] = {0};
	memset(long_label, 'l', SHEAF_NAME_BYTES_MAX);
	OK(sheaf_session_label(s, S("aaaa-2"), S(long_label), NULL, NULL, &err));
	expect_label(s, long_label, "aaaa-2");
	sheaf_session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_moving_and_making),
		TEST(test_expecting_a_leaf),
		TEST(test_clear_and_null),
		TEST(test_deleting),
		TEST(test_at_most_256),
		TEST(test_with_summary),
		TEST(test_labels),
		TEST(test_resolving),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
