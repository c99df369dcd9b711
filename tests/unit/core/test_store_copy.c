/* Tests of copying a store: without memory, with calls that fail, into a store that lies. */
#include "core_test.h"

#include "store/store.h"
#include "support/fail_alloc.h"

static sheaf_store *open_url(const char *url)
{
	sheaf_store *store = NULL;
	OK(sheaf_open(&store, url, NULL, &err));
	return store;
}

/* Forks of a deleted session, among others. */
static sheaf_store *filled(void)
{
	sheaf_store *store = open_url("memory:");
	sheaf_key key = sheaf_key_of("s");
	sheaf_session *s = make(store, "s");
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b", .branch = "side", .parent = "a");
	OK(sheaf_session_label(s, S("a"), S("L"), NULL, NULL, &err));
	sheaf_session *f = fork_of(s, "b", "f");
	SAY(f, "3", .id = "c");
	sheaf_session_close(f);
	sheaf_session_close(s);
	sheaf_session_close(make(store, "e"));
	OK(sheaf_store_delete(NULL, store, &key, NULL, &err));
	return store;
}

static void expect_same(sheaf_store *one, sheaf_store *two)
{
	static const char *const names[] = {"e", "f"};
	for (size_t i = 0; i < 2; i++) {
		sheaf_session *a = again(one, names[i]), *b = again(two, names[i]);
		char *x = lines_of(a), *y = lines_of(b);
		assert_string_equal(x, y);
		free(x);
		free(y);
		sheaf_session_close(a);
		sheaf_session_close(b);
	}
	sheaf_list *l = NULL;
	OK(sheaf_store_list(&l, two, NULL, &err));
	assert_int_equal(l->count, 2);
	sheaf_list_free(l);
}

static void test_without_memory(void **state)
{
	(void)state;
	fail_alloc_install();
	sheaf_store *from = filled();
	for (size_t n = 1;; n++) {
		sheaf_store *to = open_url("memory:");
		fail_alloc_at(n, false);
		int rc = sheaf_store_copy(NULL, from, to, NULL, &err);
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		/* One that is only asked whether there is more to say may fail unheard. */
		if (rc != 0)
			assert_int_equal(rc, SHEAF_NOMEM);
		OK(sheaf_store_copy(NULL, from, to, NULL, &err));
		expect_same(from, to);
		sheaf_close(to);
		if (!hit)
			break;
	}
	sheaf_close(from);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

static struct {
	int left;
	int code;
	bool hit;
} fault;

static int fail_once(void *ctx, const char *slot, sheaf_error *e)
{
	(void)ctx;
	(void)slot;
	(void)e;
	if (fault.left-- != 0)
		return 0;
	fault.hit = true;
	return fault.code;
}

/* Whatever call fails, and however: the next run makes it good. */
static void test_every_call_fails(void **state)
{
	(void)state;
	static const int codes[] = {SHEAF_STORAGE, SHEAF_GONE, SHEAF_STALE, SHEAF_CONFLICT};
	sheaf_store *from = filled();
	for (size_t c = 0; c < 4; c++) {
		for (int n = 0;; n++) {
			sheaf_store *to = open_url("memory:");
			sheaf_copy_totals totals = {.size = sizeof(totals)};
			fault.left = n;
			fault.code = codes[c];
			fault.hit = false;
			store_set_fault(fail_once, NULL);
			int rc = sheaf_store_copy(&totals, from, to, NULL, &err);
			store_set_fault(NULL, NULL);
			if (rc == SHEAF_DAMAGED)
				assert_true(totals.failed != 0);
			else if (rc == SHEAF_CONFLICT && codes[c] == SHEAF_CONFLICT)
				assert_true(fault.hit);
			else if (rc != 0)
				assert_int_equal(rc, codes[c]);
			if (rc == 0)
				assert_int_equal(totals.copied, 3);
			OK(sheaf_store_copy(NULL, from, to, NULL, &err));
			expect_same(from, to);
			sheaf_close(to);
			if (!fault.hit)
				break;
		}
	}
	sheaf_close(from);
}

/* ---- A store that gives back other bytes than it was given ---------------- */

static struct {
	sheaf_row_fn fn;
	void *ctx;
} honest;

static int lie(void *ctx, const sheaf_row *row)
{
	(void)ctx;
	char line[4096];
	sheaf_row other = *row;
	assert_true(row->bytes.len < sizeof(line));
	memcpy(line, row->bytes.ptr, row->bytes.len);
	if (row->seq == 2)
		line[row->bytes.len / 2] ^= 1;
	other.bytes.ptr = line;
	return honest.fn(honest.ctx, &other);
}

static int lying_scan(void *backend, const sheaf_store_key *key, const sheaf_scan *scan,
                      sheaf_row_fn fn, void *ctx, sheaf_error *e)
{
	honest.fn = fn;
	honest.ctx = ctx;
	return store_memory_ops.scan(backend, key, scan, lie, NULL, e);
}

static int notes;

static void take_note(void *ctx, const sheaf_copy_note *note)
{
	(void)ctx;
	assert_int_equal(note->what, SHEAF_COPY_FAILED);
	assert_int_equal(note->code, SHEAF_DAMAGED);
	assert_int_equal(note->seq, 2);
	notes++;
}

static void test_a_store_that_lies(void **state)
{
	sheaf_store *from = *state, *to;
	static sheaf_store_ops ops;
	ops = store_memory_ops;
	ops.scheme = "liar";
	ops.scan = lying_scan;
	OK(sheaf_store_register(&ops, &err));
	sheaf_session *s = make(from, "s");
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b");
	SAY(s, "3", .id = "c");
	sheaf_session_close(s);
	sheaf_copy_options options = SHEAF_COPY_OPTIONS_INIT;
	options.note = take_note;
	to = open_url("liar:");
	FAILS(DAMAGED, sheaf_store_copy(NULL, from, to, &options, &err));
	assert_int_equal(notes, 1);
	sheaf_close(to);
	options.verify = 0;
	to = open_url("liar:");
	OK(sheaf_store_copy(NULL, from, to, &options, &err));
	assert_int_equal(notes, 1);
	sheaf_close(to);
}

static void test_arguments(void **state)
{
	sheaf_store *store = *state, *to = NULL;
	sheaf_store_options readonly = SHEAF_STORE_OPTIONS_INIT;
	sheaf_copy_totals unset = {.size = 0};
	readonly.readonly = 1;
	OK(sheaf_open(&to, "memory:", &readonly, &err));
	FAILS(READONLY, sheaf_store_copy(NULL, store, to, NULL, &err));
	sheaf_close(to);
	FAILS(INVALID, sheaf_store_copy(&unset, store, store, NULL, &err));
	/* An older caller's totals are shorter. */
	struct {
		sheaf_copy_totals totals;
		char after;
	} short_one;
	memset(&short_one, 0x5a, sizeof(short_one));
	short_one.totals.size = offsetof(sheaf_copy_totals, records);
	OK(sheaf_store_copy(&short_one.totals, store, store, NULL, &err));
	assert_int_equal(short_one.totals.sessions, 0);
	assert_int_equal(short_one.totals.records, 0x5a5a5a5a5a5a5a5a);
	/* Onto itself everything is there already. */
	sheaf_session *s = make(store, "s");
	SAY(s, "1", .id = "a");
	sheaf_copy_totals totals = {.size = sizeof(totals)};
	OK(sheaf_store_copy(&totals, store, store, NULL, &err));
	assert_int_equal(totals.equal, 1);
	sheaf_session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_memory),
		cmocka_unit_test(test_every_call_fails),
		TEST(test_a_store_that_lies),
		TEST(test_arguments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
