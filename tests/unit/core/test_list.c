/* Tests of core/list.c: order, filters, cursors. */
#include "core_test.h"

#include "support/fail_alloc.h"

static sheaf_session *put_session(sheaf_store *store, const char *app, const char *user,
                                  const char *id, int64_t time_us)
{
	sheaf_session *s = NULL;
	sheaf_key key = {S(app), S(user), S(id)};
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.created_us = 1000000;
	OK(sheaf_session_open(&s, store, &key, &o, &err));
	SAY(s, "x", .time_us = time_us);
	return s;
}

static void expect_list(sheaf_store *store, const sheaf_list_options *o, const char *want)
{
	sheaf_list *l = NULL;
	char text[4096] = "";
	OK(sheaf_store_list(&l, store, o, &err));
	for (size_t i = 0; i < l->count; i++) {
		strcat(text, i ? " " : "");
		strncat(text, l->items[i]->session.ptr, l->items[i]->session.len);
	}
	assert_string_equal(text, want);
	sheaf_list_free(l);
}

static void test_order_and_scope(void **state)
{
	sheaf_store *store = *state;
	sheaf_session_close(put_session(store, "", "", "old", 2000000));
	sheaf_session_close(put_session(store, "", "", "new", 9000000));
	sheaf_session_close(put_session(store, "", "", "b-same", 5000000));
	sheaf_session_close(put_session(store, "", "", "a-same", 5000000));
	sheaf_session_close(put_session(store, "app", "u1", "x1", 3000000));
	sheaf_session_close(put_session(store, "app", "u2", "x2", 4000000));
	sheaf_session_close(put_session(store, "a/pp", "u 2", "x y", 8000000));
	expect_list(store, NULL, "new a-same b-same old");
	sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
	o.app = S("app");
	expect_list(store, &o, "");
	o.user = S("u1");
	expect_list(store, &o, "x1");
	o.all_users = 1;
	expect_list(store, &o, "x2 x1");
	o.all_apps = 1;
	expect_list(store, &o, "new x y a-same b-same x2 x1 old");
	sheaf_list *l = NULL;
	o.limit = 2;
	OK(sheaf_store_list(&l, store, &o, &err));
	assert_str(l->items[1]->app, "a/pp");
	assert_str(l->items[1]->user, "u 2");
	assert_str(l->items[1]->session, "x y");
	assert_str(l->items[1]->preview, "x");
	assert_int_equal(l->items[1]->messages, 1);
	assert_int_equal(l->items[1]->created_us, 1000000);
	assert_int_equal(l->items[1]->modified_us, 8000000);
	sheaf_list_free(l);
	FAILS(INVALID, sheaf_store_list(&l, NULL, &o, &err));
	o.limit = 10001;
	FAILS(LIMIT, sheaf_store_list(&l, store, &o, &err));
}

static void test_cursors(void **state)
{
	sheaf_store *store = *state;
	char id[16], seen[64] = "";
	for (int i = 0; i < 23; i++) {
		(void)snprintf(id, sizeof(id), "s%02d", i);
		sheaf_session_close(put_session(store, "", "", id, 1000000 + 1000000 * (i / 3)));
	}
	sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
	o.limit = 5;
	size_t total = 0, pages = 0;
	char cursor[512] = "";
	int64_t last = INT64_MAX;
	do {
		sheaf_list *l = NULL;
		o.cursor = cursor[0] ? S(cursor) : NONE;
		OK(sheaf_store_list(&l, store, &o, &err));
		for (size_t i = 0; i < l->count; i++) {
			assert_true(l->items[i]->modified_us <= last);
			last = l->items[i]->modified_us;
			int n = atoi(l->items[i]->session.ptr + 1);
			assert_int_equal(seen[n], 0);
			seen[n] = 1;
		}
		total += l->count;
		pages++;
		assert_true(l->cursor.len < sizeof(cursor));
		(void)snprintf(cursor, sizeof(cursor), "%.*s", (int)l->cursor.len,
		               l->cursor.ptr ? l->cursor.ptr : "");
		sheaf_list_free(l);
	} while (cursor[0]);
	assert_int_equal(total, 23);
	assert_int_equal(pages, 5);

	/* A page that is just full has no next one. */
	sheaf_list *l = NULL;
	o.cursor = NONE;
	o.limit = 23;
	OK(sheaf_store_list(&l, store, &o, &err));
	assert_int_equal(l->count, 23);
	assert_null(l->cursor.ptr);
	sheaf_list_free(l);

	/* Nothing but a cursor of ours is taken. */
	o.limit = 2;
	OK(sheaf_store_list(&l, store, &o, &err));
	(void)snprintf(cursor, sizeof(cursor), "%s", l->cursor.ptr);
	sheaf_list_free(l);
	for (size_t i = 0; cursor[i] != '\0'; i++) {
		cursor[i] ^= 1;
		o.cursor = S(cursor);
		FAILS(INVALID, sheaf_store_list(&l, store, &o, &err));
		cursor[i] ^= 1;
	}
	o.cursor = S("garbage");
	FAILS(INVALID, sheaf_store_list(&l, store, &o, &err));
	o.cursor = S(cursor);
	OK(sheaf_store_list(&l, store, &o, &err));
	sheaf_list_free(l);
}

static void test_filters(void **state)
{
	sheaf_store *store = *state;
	for (int i = 0; i < 4; i++) {
		sheaf_session *s = NULL;
		char id[8];
		(void)snprintf(id, sizeof(id), "s%d", i);
		sheaf_key key = sheaf_key_of(id);
		sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
		o.created_us = 1000000 * (i + 1);
		o.name = i == 1 ? S("Name") : NONE;
		o.kind = i == 2 ? S("subagent") : NONE;
		o.parent_session = i == 2 ? S("s0") : NONE;
		o.cwd = i % 2 ? S("/odd") : S("/even");
		OK(sheaf_session_open(&s, store, &key, &o, &err));
		sheaf_session_close(s);
	}
	sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
	o.name = S("Name");
	expect_list(store, &o, "s1");
	o.name = S("");
	expect_list(store, &o, "s3 s2 s0");
	o.name = NONE;
	o.cwd = S("/odd");
	expect_list(store, &o, "s3 s1");
	o.cwd = NONE;
	o.kind = S("main");
	expect_list(store, &o, "s3 s1 s0");
	o.kind = NONE;
	o.parent_session = S("s0");
	expect_list(store, &o, "s2");
	o.parent_session = NONE;
	o.after_us = 2000000;
	expect_list(store, &o, "s3 s2 s1");
	o.before_us = 4000000;
	expect_list(store, &o, "s2 s1");
	/* The cursor of a filtered list goes on in it. */
	o.limit = 1;
	sheaf_list *l = NULL;
	OK(sheaf_store_list(&l, store, &o, &err));
	char cursor[512];
	(void)snprintf(cursor, sizeof(cursor), "%s", l->cursor.ptr);
	sheaf_list_free(l);
	o.cursor = S(cursor);
	expect_list(store, &o, "s1");
}

static void test_without_memory(void **state)
{
	(void)state;
	fail_alloc_install();
	sheaf_store *store = NULL;
	assert_int_equal(sheaf_open(&store, "memory:", NULL, NULL), 0);
	for (int i = 0; i < 5; i++) {
		char id[8];
		(void)snprintf(id, sizeof(id), "s%d", i);
		sheaf_session_close(put_session(store, "", "", id, 1000000));
	}
	sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
	o.limit = 3;
	for (size_t n = 1;; n++) {
		sheaf_list *l = NULL;
		fail_alloc_at(n, false);
		memset(&err, 0, sizeof(err));
		int rc = sheaf_store_list(&l, store, &o, &err);
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		sheaf_list_free(l);
		if (!hit) {
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(rc, SHEAF_NOMEM);
		assert_int_equal(err.code, SHEAF_NOMEM);
	}
	sheaf_close(store);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_order_and_scope),
		TEST(test_cursors),
		TEST(test_filters),
		cmocka_unit_test(test_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
