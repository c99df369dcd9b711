/* Tests of core/remove.c and check.c: deleting with and without living forks, purging, checking. */
#include "core_test.h"

#include "support/fail_alloc.h"
#include "store/store.h"

static bool listed(sheaf_store *store, const char *id)
{
	sheaf_list *l = NULL;
	bool found = false;
	OK(sheaf_store_list(&l, store, NULL, &err));
	for (size_t i = 0; i < l->count; i++)
		found = found || (l->items[i]->session.len == strlen(id) &&
		                  memcmp(l->items[i]->session.ptr, id, strlen(id)) == 0);
	sheaf_list_free(l);
	return found;
}

/* Whether the store keeps anything under the key, hidden or not. */
static bool kept(sheaf_store *store, const char *id)
{
	key_box box;
	sheaf_key key = sheaf_key_of(id);
	sheaf_head *head = sheaf_head_new();
	OK(key_box_init(&box, &key, &err));
	int rc = store_head(store, &box.store, 0, head, NULL, NULL);
	sheaf_head_free(head);
	return rc == 0;
}

static sheaf_deleted *delete (sheaf_store *store, const char *id, int purge)
{
	sheaf_deleted *d = NULL;
	sheaf_key key = sheaf_key_of(id);
	sheaf_delete_options o = SHEAF_DELETE_OPTIONS_INIT;
	o.purge = purge;
	OK(sheaf_store_delete(&d, store, &key, &o, &err));
	return d;
}

static void expect_deleted(sheaf_store *store, const char *id, int purge, int existed, int hidden,
                           size_t forks)
{
	sheaf_deleted *d = delete (store, id, purge);
	assert_int_equal(d->existed, existed);
	assert_int_equal(d->hidden, hidden);
	assert_int_equal(d->forks->count, forks);
	sheaf_deleted_free(d);
}

static void test_plain(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s");
	SAY(s, "1", .id = "a");
	sheaf_session_close(s);
	expect_deleted(store, "s", 0, 1, 0, 0);
	assert_false(listed(store, "s"));
	assert_false(kept(store, "s"));
	expect_deleted(store, "s", 0, 0, 0, 0);
	expect_deleted(store, "never", 1, 0, 0, 0);
	sheaf_key key = sheaf_key_of("");
	FAILS(INVALID, sheaf_store_delete(NULL, store, &key, NULL, &err));
	FAILS(INVALID, sheaf_store_delete(NULL, NULL, &key, NULL, &err));
	/* The key is free, and the ids are forgotten. */
	s = make(store, "s");
	SAY(s, "other", .id = "a");
	assert_int_equal(done.existed, 0);
	sheaf_session_close(s);
}

static void test_with_living_forks(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s");
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b");
	SAY(s, "secret", .id = "c");
	sheaf_session *f = fork_of(s, "a", "f"), *g = fork_of(s, "b", "g");
	SAY(f, "x", .id = "x");
	sheaf_deleted *d = delete (store, "s", 0);
	assert_int_equal(d->existed, 1);
	assert_int_equal(d->hidden, 1);
	assert_int_equal(d->forks->count, 2);
	assert_str(d->forks->items[0]->app, "");
	sheaf_deleted_free(d);
	assert_false(listed(store, "s"));
	assert_true(kept(store, "s"));
	expect_path(f, NULL, "a x");
	expect_path(g, NULL, "a b");
	expect_deleted(store, "s", 0, 0, 1, 2); /* again: it is gone for the caller */
	expect_deleted(store, "g", 0, 1, 0, 0);
	assert_true(kept(store, "s"));
	expect_path(f, NULL, "a x");
	expect_deleted(store, "f", 0, 1, 0, 0);
	assert_false(kept(store, "s")); /* the last reader took it along */
	sheaf_session_close(f);
	sheaf_session_close(g);
	sheaf_session_close(s);
}

static void test_chains(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *a = make(store, "a");
	SAY(a, "1", .id = "a1");
	sheaf_session *b = fork_of(a, "a1", "b");
	SAY(b, "2", .id = "b1");
	sheaf_session *c = fork_of(b, "b1", "c");
	SAY(c, "3", .id = "c1");
	expect_deleted(store, "a", 0, 1, 1, 2); /* both read it */
	expect_deleted(store, "b", 0, 1, 1, 1);
	expect_path(c, NULL, "a1 b1 c1");
	assert_true(kept(store, "a"));
	assert_true(kept(store, "b"));
	expect_deleted(store, "c", 0, 1, 0, 0);
	assert_false(kept(store, "b"));
	assert_false(kept(store, "a"));
	sheaf_session_close(a);
	sheaf_session_close(b);
	sheaf_session_close(c);
}

static void test_purge(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *a = make(store, "a");
	SAY(a, "1", .id = "a1");
	SAY(a, "2", .id = "a2");
	SAY(a, "side", .id = "a3", .branch = "side", .parent = "a1");
	OK(sheaf_session_label(a, S("a1"), S("L"), NULL, NULL, &err));
	sheaf_session *b = fork_of(a, "a2", "b");
	SAY(b, "3", .id = "b1");
	sheaf_session *c = fork_of(b, "b1", "c"), *d = fork_of(a, "a3", "d");
	SAY(c, "4", .id = "c1");
	expect_deleted(store, "b", 0, 1, 1, 1); /* hidden: c reads it, and both read a */
	expect_deleted(store, "a", 1, 1, 0, 2); /* c and d */
	assert_false(kept(store, "a"));
	assert_false(kept(store, "b")); /* nobody reads it any more */
	expect_path(c, NULL, "a1 a2 b1 c1");
	expect_path(d, NULL, "a1 a3");
	expect_label(c, "L", "a1");
	expect_label(d, "L", "a1");
	sheaf_head_view *h = NULL;
	OK(sheaf_session_head(&h, c, &err));
	assert_int_equal(h->info->base, 0);
	assert_int_equal(h->branch_count, 1);
	sheaf_head_view_free(h);
	/* Ids of what was inherited are still taken, expectations still hold. */
	SAY(c, "1", .id = "a1");
	assert_int_equal(done.existed, 1);
	SAY(c, "5", .id = "c2", .expect = SHEAF_EXPECT_LEAF, .leaf = "c1");
	SAY(d, "6", .id = "d1");
	expect_path(d, NULL, "a1 a3 d1");
	sheaf_session *fresh = again(store, "d");
	expect_path(fresh, NULL, "a1 a3 d1");
	sheaf_session_close(fresh);
	sheaf_session *again_a = make(store, "a"); /* the key is free */
	sheaf_session_close(again_a);
	sheaf_session_close(a);
	sheaf_session_close(b);
	sheaf_session_close(c);
	sheaf_session_close(d);
}

static void test_purge_of_what_is_hidden(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s");
	SAY(s, "1", .id = "a");
	sheaf_session *f = fork_of(s, "a", "f");
	expect_deleted(store, "s", 0, 1, 1, 1);
	expect_deleted(store, "s", 1, 0, 0, 1);
	assert_false(kept(store, "s"));
	expect_path(f, NULL, "a");
	sheaf_session_close(f);
	sheaf_session_close(s);
}

/* Somebody writes to the fork while it is copied. */
struct intruder {
	sheaf_session *s;
	int left;
};

static int append_before_replace(void *ctx, const char *slot, sheaf_error *e)
{
	struct intruder *in = ctx;
	(void)e;
	if (strcmp(slot, "replace") == 0 && in->left > 0) {
		in->left--;
		return sheaf_session_append_text(in->s, "user", S("meanwhile"), NULL, NULL);
	}
	return 0;
}

static void test_purge_races_append(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s");
	SAY(s, "1", .id = "a");
	sheaf_session *f = fork_of(s, "a", "f");
	struct intruder in = {f, 3};
	store_set_fault(append_before_replace, &in);
	expect_deleted(store, "s", 1, 1, 0, 1);
	store_set_fault(NULL, NULL);
	assert_int_equal(in.left, 0);
	sheaf_records *r = NULL;
	OK(sheaf_session_path(&r, f, NONE, NONE, 0, &err));
	assert_int_equal(r->count, 4);
	sheaf_records_free(r);
	sheaf_session_close(f);
	sheaf_session_close(s);
}

static void test_check(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s");
	SAY(s, "1", .id = "a");
	sheaf_session *f = fork_of(s, "a", "f");
	SAY(f, "2", .id = "b");
	sheaf_report *r = NULL;
	OK(sheaf_store_check(&r, store, NULL, &err));
	assert_int_equal(r->sessions, 2);
	assert_int_equal(r->records, 2);
	assert_int_equal(r->count, 0);
	sheaf_report_free(r);
	sheaf_key key = sheaf_key_of("f");
	OK(sheaf_store_check(&r, store, &key, &err));
	assert_int_equal(r->sessions, 1);
	sheaf_report_free(r);
	key = sheaf_key_of("none");
	FAILS(NOT_FOUND, sheaf_store_check(&r, store, &key, &err));
	FAILS(UNSUPPORTED, sheaf_store_repair(&r, store, &key, &err));
	sheaf_session_close(f);
	sheaf_session_close(s);
}

static void test_without_memory(void **state)
{
	(void)state;
	fail_alloc_install();
	sheaf_store *store = NULL;
	assert_int_equal(sheaf_open(&store, "memory:", NULL, NULL), 0);
	sheaf_session *s = make(store, "s");
	SAY(s, "1", .id = "a");
	sheaf_session *f = fork_of(s, "a", "f");
	sheaf_key key = sheaf_key_of("s");
	sheaf_delete_options purge = SHEAF_DELETE_OPTIONS_INIT;
	purge.purge = 1;
	for (size_t n = 1;; n++) {
		sheaf_deleted *d = NULL;
		fail_alloc_at(n, false);
		int rc = sheaf_store_delete(&d, store, &key, &purge, &err);
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		sheaf_deleted_free(d);
		expect_path(f, NULL, "a");
		if (!hit) {
			assert_int_equal(rc, 0);
			break;
		}
		if (rc != 0)
			assert_int_equal(rc, SHEAF_NOMEM);
	}
	assert_false(kept(store, "s"));
	sheaf_session_close(f);
	sheaf_session_close(s);
	sheaf_close(store);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_plain),
		TEST(test_with_living_forks),
		TEST(test_chains),
		TEST(test_purge),
		TEST(test_purge_of_what_is_hidden),
		TEST(test_purge_races_append),
		TEST(test_check),
		cmocka_unit_test(test_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
