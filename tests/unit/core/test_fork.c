/* Tests of core/fork.c: what a fork shares, what it inherits, and how far a chain goes. */
#include "core_test.h"

#include "support/fail_alloc.h"
#include "store/store.h"

static void test_a_fork_goes_on_by_itself(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s");
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b");
	SAY(s, "3", .id = "c");
	sheaf_session *f = fork_of(s, "b", "f");
	expect_leaf(f, NULL, "b");
	expect_path(f, NULL, "a b");
	SAY(f, "4", .id = "x");
	assert_int_equal(done.seq, 3);
	SAY(f, "5", .id = "c"); /* c of the source is not inherited */
	assert_int_equal(done.seq, 4);
	expect_path(f, NULL, "a b x c");
	expect_path(s, NULL, "a b c");
	SAY(s, "6", .id = "d");
	expect_path(f, NULL, "a b x c");
	sheaf_head_view *h = NULL;
	OK(sheaf_session_head(&h, f, &err));
	assert_int_equal(h->info->base, 2);
	assert_str(h->info->source, "s");
	assert_int_equal(h->info->records, 2);
	assert_int_equal(h->info->revision, 4);
	sheaf_head_view_free(h);
	/* The frame says where an inherited parent is. */
	char *lines = lines_of(f);
	assert_non_null(strstr(lines, "\"id\":\"x\",\"parent_id\":\"b\""));
	assert_non_null(strstr(lines, ",\"parent_seq\":2,\"seq\":3,"));
	free(lines);
	sheaf_session_close(f);
	f = again(store, "f");
	expect_path(f, NULL, "a b x c");
	sheaf_session_close(f);
	sheaf_session_close(s);
}

static void test_ids_are_unique_with_what_is_inherited(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s");
	sheaf_batch *b = sheaf_batch_new();
	ADD(b, "1", .id = "a");
	ADD(b, "2", .id = "b");
	OK(sheaf_session_append_batch(s, b, NULL, NULL, &err));
	SAY(s, "3", .id = "c");
	sheaf_session *f = fork_of(s, "c", "f");
	SAY(f, "3", .id = "c");
	assert_int_equal(done.existed, 1);
	assert_int_equal(done.seq, 3);
	SAY_FAILS(CONFLICT, f, "three", .id = "c");
	done = (sheaf_appended)SHEAF_APPENDED_INIT;
	OK(sheaf_session_append_batch(f, b, NULL, &done, &err));
	assert_int_equal(done.existed, 1);
	assert_int_equal(done.first_seq, 1);
	SAY_FAILS(CONFLICT, f, "1", .id = "a");
	sheaf_batch_free(b);
	b = sheaf_batch_new();
	ADD(b, "3", .id = "c");
	ADD(b, "4", .id = "new");
	FAILS(CONFLICT, sheaf_session_append_batch(f, b, NULL, &done, &err));
	sheaf_batch_free(b);
	assert_int_equal(revision_of(f), 3);
	sheaf_session_close(f);
	sheaf_session_close(s);
}

static void test_base_is_the_end_of_the_batch(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s");
	SAY(s, "0", .id = "z");
	sheaf_batch *b = sheaf_batch_new();
	ADD(b, "1", .id = "a");
	ADD(b, "2", .id = "b");
	ADD(b, "3", .id = "c");
	OK(sheaf_session_append_batch(s, b, NULL, NULL, &err));
	sheaf_batch_free(b);
	SAY(s, "4", .id = "d");
	sheaf_session *f = fork_of(s, "a", "f");
	sheaf_head_view *h = NULL;
	OK(sheaf_session_head(&h, f, &err));
	assert_int_equal(h->info->base, 4);
	sheaf_head_view_free(h);
	expect_leaf(f, NULL, "a");
	expect_path(f, NULL, "z a");
	SAY(f, "x", .id = "x");
	assert_int_equal(done.seq, 5);
	expect_path(f, NULL, "z a x");
	sheaf_session_close(f);
	sheaf_session_close(s);
}

static void test_labels_name_and_branches(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s");
	SAY(s, "1", .id = "a");
	OK(sheaf_session_label(s, S("a"), S("early"), NULL, NULL, &err));
	SAY(s, "2", .id = "b");
	SAY(s, "3", .id = "c");
	OK(sheaf_session_branch(s, S("side"), S("a"), NULL, NULL, &err));
	OK(sheaf_session_label(s, S("b"), S("late-1"), NULL, NULL, &err));
	OK(sheaf_session_label(s, S("c"), S("beyond"), NULL, NULL, &err));
	OK(sheaf_session_label(s, S("b"), S("late-2"), NULL, NULL, &err));
	OK(sheaf_session_rename(s, S("Name"), S("{\"m\":1}"), NULL, NULL, &err));
	sheaf_session *f = fork_of(s, "b", "f");
	expect_label(f, "early", "a");
	expect_label(f, "late-2", "b");
	char id[SHEAF_ID_ROOM];
	FAILS(NOT_FOUND, sheaf_session_resolve(f, S("late-1"), id, &err));
	FAILS(NOT_FOUND, sheaf_session_resolve(f, S("beyond"), id, &err));
	FAILS(NOT_FOUND, sheaf_session_leaf(f, S("side"), id, &err));
	sheaf_head_view *h = NULL;
	OK(sheaf_session_head(&h, f, &err));
	assert_str(h->info->name, "Name");
	assert_str(h->metadata, "{\"m\":1}");
	assert_int_equal(h->info->records, 2); /* the name and one label */
	assert_int_equal(h->branch_count, 1);
	sheaf_head_view_free(h);
	sheaf_records *r = NULL;
	OK(sheaf_session_labels(&r, f, &err));
	assert_string_equal(ids_of(r), "a b");
	sheaf_records_free(r);
	sheaf_session_close(f);

	/* A label taken away later is not there in the fork either. */
	OK(sheaf_session_label(s, S("a"), S(""), NULL, NULL, &err));
	sheaf_key key = sheaf_key_of("g");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.name = S("Own");
	o.kind = S("subagent");
	OK(sheaf_session_fork(&f, s, S("b"), &key, &o, &err));
	FAILS(NOT_FOUND, sheaf_session_resolve(f, S("early"), id, &err));
	OK(sheaf_session_head(&h, f, &err));
	assert_str(h->info->name, "Own");
	assert_str(h->info->kind, "subagent");
	sheaf_head_view_free(h);
	sheaf_session_close(f);
	sheaf_session_close(s);
}

static void test_forks_of_forks(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *a = make(store, "a");
	SAY(a, "1", .id = "a1");
	SAY(a, "2", .id = "a2");
	SAY(a, "3", .id = "a3");
	OK(sheaf_session_label(a, S("a1"), S("root"), NULL, NULL, &err));
	sheaf_session *b = fork_of(a, "a2", "b");
	SAY(b, "4", .id = "b1");
	SAY(b, "5", .id = "b2");
	sheaf_session *c = fork_of(b, "b1", "c");
	SAY(c, "6", .id = "c1");
	OK(sheaf_session_label(c, S("a2"), S("from-c"), NULL, NULL, &err));
	sheaf_session *d = fork_of(c, "c1", "d");
	SAY(d, "7", .id = "d1");
	expect_path(d, NULL, "a1 a2 b1 c1 d1");
	expect_label(d, "root", "a1");
	expect_label(d, "from-c", "a2"); /* set after c1, so written again */

	/* At an inherited entry the chain begins where that entry is. */
	sheaf_session *e = fork_of(d, "a1", "e");
	sheaf_head_view *h = NULL;
	OK(sheaf_session_head(&h, e, &err));
	assert_int_equal(h->info->base, 1);
	assert_str(h->info->source, "d");
	sheaf_head_view_free(h);
	expect_path(e, NULL, "a1");
	expect_label(e, "root", "a1");
	SAY(e, "8", .id = "a2"); /* free here */
	expect_path(e, NULL, "a1 a2");
	/* Its source may go: it does not read it. */
	sheaf_key key = sheaf_key_of("d");
	sheaf_deleted *gone = NULL;
	OK(sheaf_store_delete(&gone, store, &key, NULL, &err));
	assert_int_equal(gone->hidden, 0);
	sheaf_deleted_free(gone);
	expect_path(e, NULL, "a1 a2");

	/* Branches, children and pages see through the chain. */
	SAY(c, "9", .id = "side", .branch = "x", .parent = "a1");
	expect_path(c, "x", "a1 side");
	sheaf_records *r = NULL;
	OK(sheaf_session_children(&r, c, S("a1"), &err));
	assert_string_equal(ids_of(r), "a2 side");
	sheaf_records_free(r);
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.kinds = SHEAF_KINDS_ENTRIES;
	OK(sheaf_session_records(&r, c, &o, &err));
	assert_string_equal(ids_of(r), "a1 a2 b1 c1 side");
	sheaf_records_free(r);
	o.own_only = 1;
	OK(sheaf_session_records(&r, c, &o, &err));
	assert_string_equal(ids_of(r), "c1 side");
	sheaf_records_free(r);
	o.backward = 1;
	OK(sheaf_session_records(&r, c, &o, &err));
	assert_string_equal(ids_of(r), "side c1");
	assert_int_equal(r->next_seq, 0);
	sheaf_records_free(r);
	sheaf_session_close(a);
	sheaf_session_close(b);
	sheaf_session_close(c);
	sheaf_session_close(d);
	sheaf_session_close(e);
}

static void test_a_chain_of_many(void **state)
{
	sheaf_store *store = *state;
	enum {
		DEPTH = SHEAF_FORK_LINKS_MAX + 6
	};
	sheaf_session *s = make(store, "0");
	char want[4096] = "";
	OK(sheaf_session_rename(s, S("Deep"), NONE, NULL, NULL, &err));
	for (int i = 0; i < DEPTH; i++) {
		char id[16], name[16], label[16];
		(void)snprintf(id, sizeof(id), "e%d", i);
		(void)snprintf(label, sizeof(label), "L%d", i);
		SAY(s, "x", .id = id);
		OK(sheaf_session_branch(s, S("other"), S(id), NULL, NULL, &err));
		OK(sheaf_session_label(s, S("e0"), S(label), NULL, NULL, &err));
		strcat(want, i ? " " : "");
		strcat(want, id);
		(void)snprintf(name, sizeof(name), "f%d", i + 1);
		sheaf_session *next = fork_of(s, id, name);
		sheaf_session_close(s);
		s = next;
		expect_path(s, NULL, want);
		expect_label(s, label, "e0");
		sheaf_head_view *h = NULL;
		OK(sheaf_session_head(&h, s, &err));
		assert_str(h->info->name, "Deep");
		assert_int_equal(h->branch_count, 1);
		/* Beyond the limit one is a copy; the next are forks of that again. */
		assert_int_equal(h->info->base == 0, i == SHEAF_FORK_LINKS_MAX);
		sheaf_head_view_free(h);
	}
	SAY(s, "x", .id = "end");
	sheaf_session_close(s);
}

static void test_what_cannot_be(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s"), *f = NULL;
	sheaf_key key = sheaf_key_of("f");
	FAILS(NOT_FOUND, sheaf_session_fork(&f, s, NONE, &key, NULL, &err)); /* nothing there */
	SAY(s, "1", .id = "a");
	FAILS(NOT_FOUND, sheaf_session_fork(&f, s, S("zz"), &key, NULL, &err));
	key.app = S("other");
	FAILS(INVALID, sheaf_session_fork(&f, s, NONE, &key, NULL, &err));
	key = sheaf_key_of("s");
	FAILS(EXISTS, sheaf_session_fork(&f, s, NONE, &key, NULL, &err));
	OK(sheaf_session_fork(&f, s, NONE, NULL, NULL, &err));
	assert_int_equal(strlen(sheaf_session_id(f)), 36);
	sheaf_session_close(f);
	f = NULL;
	OK(sheaf_store_delete(NULL, store, &key, NULL, &err));
	key = sheaf_key_of("late");
	FAILS(GONE, sheaf_session_fork(&f, s, NONE, &key, NULL, &err));
	assert_null(f);
	sheaf_session_close(s);
}

/* The source goes between our look at it and the fork. */
static int delete_before_append(void *ctx, const char *slot, sheaf_error *e)
{
	(void)e;
	if (strcmp(slot, "append") == 0) {
		store_set_fault(NULL, NULL);
		sheaf_key key = sheaf_key_of("s");
		return sheaf_store_delete(NULL, ctx, &key, NULL, NULL);
	}
	return 0;
}

static void test_fork_races_delete(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s"), *f = NULL;
	SAY(s, "1", .id = "a");
	sheaf_key key = sheaf_key_of("f");
	store_set_fault(delete_before_append, store);
	FAILS(GONE, sheaf_session_fork(&f, s, NONE, &key, NULL, &err));
	store_set_fault(NULL, NULL);
	sheaf_session_close(s);
}

/* At the head of a long session a fork costs a few calls, not a scan. */
static int count_scans(void *ctx, const char *slot, sheaf_error *e)
{
	(void)e;
	*(int *)ctx += strcmp(slot, "scan") == 0;
	return 0;
}

static void test_a_fork_at_the_head_reads_one_row(void **state)
{
	sheaf_session *s = make(*state, "s");
	for (int i = 0; i < 1000; i++)
		SAY(s, "x", .id = NULL);
	int scans = 0;
	store_set_fault(count_scans, &scans);
	sheaf_session *f = fork_of(s, NULL, "f");
	store_set_fault(NULL, NULL);
	assert_int_equal(scans, 1);
	assert_int_equal(revision_of(f), 1000);
	sheaf_session_close(f);
	sheaf_session_close(s);
}

static void test_without_memory(void **state)
{
	(void)state;
	fail_alloc_install();
	sheaf_store *store = NULL;
	assert_int_equal(sheaf_open(&store, "memory:", NULL, NULL), 0);
	sheaf_session *s = make(store, "s"), *f = NULL;
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b");
	OK(sheaf_session_label(s, S("a"), S("later"), NULL, NULL, &err));
	OK(sheaf_session_rename(s, S("n"), NONE, NULL, NULL, &err));
	sheaf_key key = sheaf_key_of("f");
	for (size_t n = 1;; n++) {
		fail_alloc_at(n, false);
		int rc = sheaf_session_fork(&f, s, S("a"), &key, NULL, &err);
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		if (rc == 0 && !hit)
			break;
		if (rc == 0) {
			sheaf_session_close(f);
			OK(sheaf_store_delete(NULL, store, &key, NULL, &err));
		} else if (rc == SHEAF_EXISTS) {
			/* It was made, and only the handle failed. */
			OK(sheaf_store_delete(NULL, store, &key, NULL, &err));
		} else {
			assert_int_equal(rc, SHEAF_NOMEM);
		}
	}
	expect_label(f, "later", "a");
	sheaf_session_close(f);
	sheaf_session_close(s);
	sheaf_close(store);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_fork_goes_on_by_itself),
		TEST(test_ids_are_unique_with_what_is_inherited),
		TEST(test_base_is_the_end_of_the_batch),
		TEST(test_labels_name_and_branches),
		TEST(test_forks_of_forks),
		TEST(test_a_chain_of_many),
		TEST(test_what_cannot_be),
		TEST(test_fork_races_delete),
		TEST(test_a_fork_at_the_head_reads_one_row),
		cmocka_unit_test(test_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
