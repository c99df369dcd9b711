/* Tests of pulling: without memory, with calls that fail, in portions, and what is read for it. */

/* First: the tests have an `err` of their own. */
#include "core/sync.h"

#include "core_test.h"

#include "store/store.h"
#include "support/fail_alloc.h"
#include "support/files.h"
#include "support/play.h"

static sheaf_store *open_url(const char *url)
{
	sheaf_store *store = NULL;
	OK(sheaf_open(&store, url, NULL, &err));
	return store;
}

static int pull(sheaf_store *here, sheaf_store *there, sheaf_sync_totals *totals)
{
	sheaf_sync_options o = SHEAF_SYNC_OPTIONS_INIT;
	o.source = S("b");
	if (totals != NULL)
		*totals = (sheaf_sync_totals){.size = sizeof(*totals)};
	return sheaf_store_pull(totals, here, there, &o, &err);
}

static void json(sheaf_session *s, const char *type, const char *body)
{
	OK(sheaf_session_append_json(s, S(type), S(body), NULL, NULL, NULL, &err));
}

/* Two stores with sessions of every sort: both went on, only there, only there at all, a fork. */
static void two_stores(sheaf_store **here, sheaf_store **there)
{
	*here = open_url("memory:");
	*there = open_url("memory:");
	sheaf_session *s = make(*there, "s");
	SAY(s, "1", .id = "r");
	sheaf_session *o = make(*there, "only");
	SAY(o, "1", .id = "o1");
	OK(pull(*here, *there, NULL));
	sheaf_session *mine = again(*here, "s");
	SAY(mine, "2", .id = "a1");
	OK(sheaf_session_label(mine, S("r"), S("mine"), NULL, NULL, &err));
	SAY(s, "2", .id = "b1");
	SAY(s, "3", .id = "x1", .branch = "side", .parent = "r");
	OK(sheaf_session_label(s, S("r"), S("theirs"), NULL, NULL, &err));
	OK(sheaf_session_rename(s, S("name"), S("{\"k\":1}"), NULL, NULL, &err));
	json(s, "custom",
	     "{\"custom\":{\"custom_type\":\"x\"},\"state_delta\":{\"k\":1,\"user:u\":2}}");
	json(s, "retention", "{\"retention\":{\"pin\":true}}");
	sheaf_session *f = fork_of(s, "b1", "f");
	SAY(f, "4", .id = "f1");
	SAY(o, "2", .id = "o2");
	sheaf_session *n = make(*there, "new");
	SAY(n, "1", .id = "n1");
	sheaf_session_close(mine);
	sheaf_session_close(s);
	sheaf_session_close(o);
	sheaf_session_close(f);
	sheaf_session_close(n);
}

static void expect_leaf_in(sheaf_store *store, const char *session, const char *branch,
                           const char *want)
{
	char id[SHEAF_ID_ROOM];
	sheaf_session *s = again(store, session);
	OK(sheaf_session_leaf(s, S(branch), id, &err));
	assert_string_equal(id, want);
	sheaf_session_close(s);
}

static void expect_pulled(sheaf_store *here, sheaf_store *there)
{
	sheaf_sync_totals totals;
	sheaf_head_view *head = NULL;
	expect_leaf_in(here, "s", "main", "a1");
	expect_leaf_in(here, "s", "side", "x1");
	expect_leaf_in(here, "only", "main", "o2");
	expect_leaf_in(here, "new", "main", "n1");
	expect_leaf_in(here, "f", "main", "f1");
	sheaf_session *s = again(here, "s");
	OK(sheaf_session_head(&head, s, &err));
	assert_int_equal(head->branch_count, 3);
	assert_int_equal(head->info->messages, 4);
	assert_int_equal(head->info->pinned, 1);
	assert_str(head->info->name, "name");
	sheaf_head_view_free(head);
	sheaf_session_close(s);
	OK(pull(here, there, &totals));
	assert_int_equal(totals.bytes, 0);
	assert_int_equal(totals.same, 4);
}

static void test_what_comes(void **state)
{
	(void)state;
	sheaf_store *here, *there;
	sheaf_sync_totals totals;
	two_stores(&here, &there);
	OK(pull(here, there, &totals));
	assert_int_equal(totals.merged, 1);
	assert_int_equal(totals.extended, 1);
	assert_int_equal(totals.copied, 2);
	expect_pulled(here, there);
	sheaf_close(here);
	sheaf_close(there);
}

static void test_without_memory(void **state)
{
	(void)state;
	fail_alloc_install();
	for (size_t n = 1;; n++) {
		sheaf_store *here, *there;
		two_stores(&here, &there);
		fail_alloc_at(n, false);
		int rc = pull(here, there, NULL);
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		if (rc != 0)
			assert_int_equal(rc, SHEAF_NOMEM);
		OK(pull(here, there, NULL));
		expect_pulled(here, there);
		sheaf_close(here);
		sheaf_close(there);
		if (!hit)
			break;
	}
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

static struct {
	const char *slot; /* NULL: any */
	int left;
	int code;
	bool hit;
	int calls;
} fault;

static int fail_once(void *ctx, const char *slot, sheaf_error *e)
{
	(void)ctx;
	(void)e;
	if (fault.slot != NULL && strcmp(slot, fault.slot) != 0)
		return 0;
	fault.calls++;
	if (fault.left-- != 0)
		return 0;
	fault.hit = true;
	return fault.code;
}

/* Whatever call fails, and however: the next run makes it good. */
static void test_every_call_fails(void **state)
{
	(void)state;
	static const int codes[] = {SHEAF_STORAGE, SHEAF_GONE, SHEAF_STALE, SHEAF_CONFLICT,
	                            SHEAF_NOT_FOUND};
	for (size_t c = 0; c < 5; c++) {
		for (int n = 0;; n++) {
			sheaf_store *here, *there;
			two_stores(&here, &there);
			fault.left = n;
			fault.code = codes[c];
			fault.hit = false;
			store_set_fault(fail_once, NULL);
			(void)pull(here, there, NULL);
			store_set_fault(NULL, NULL);
			OK(pull(here, there, NULL));
			/* A record that seems not to be here is refused by the append itself. */
			expect_pulled(here, there);
			sheaf_close(here);
			sheaf_close(there);
			if (!fault.hit)
				break;
		}
	}
}

/* ---- Long ones --------------------------------------------------------------------------- */

#define MANY 10000

static void fill(sheaf_session *s, const char *prefix, int count)
{
	char id[32];
	for (int i = 0; i < count; i += 10) {
		sheaf_batch *b = sheaf_batch_new();
		for (int k = i; k < i + 10; k++) {
			sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
			snprintf(id, sizeof(id), "%s%d", prefix, k);
			o.id = S(id);
			OK(sheaf_batch_json(
				b, S("message"),
				S("{\"message\":{\"role\":\"user\",\"content\":\"x\"}}"), &o,
				&err));
		}
		OK(sheaf_session_append_batch(s, b, NULL, NULL, &err));
		sheaf_batch_free(b);
	}
}

static size_t count_of(sheaf_store *store, const char *session, uint64_t kinds)
{
	sheaf_session *s = again(store, session);
	sheaf_records *r = NULL;
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.kinds = kinds;
	o.limit = 100000;
	o.raw = 1;
	OK(sheaf_session_records(&r, s, &o, &err));
	size_t count = r->count;
	sheaf_records_free(r);
	sheaf_session_close(s);
	return count;
}

/* Broken off after every append, and before it: it goes on, and nothing comes twice. */
static void test_interrupted_at_every_append(void **state)
{
	(void)state;
	int appends = 0;
	for (int stop = -1; stop <= appends; stop++) {
		sheaf_store *here = open_url("memory:"), *there = open_url("memory:");
		sheaf_session *s = make(there, "s");
		SAY(s, "1", .id = "r");
		OK(pull(here, there, NULL));
		sheaf_session *mine = again(here, "s");
		SAY(mine, "2", .id = "mine");
		fill(s, "m", MANY);
		sheaf_session *n = make(there, "new");
		fill(n, "n", MANY);
		fault.slot = "append";
		fault.calls = 0;
		fault.left = stop;
		fault.code = SHEAF_STORAGE;
		store_set_fault(fail_once, NULL);
		int rc = pull(here, there, NULL);
		store_set_fault(NULL, NULL);
		assert_int_equal(rc, stop < 0 || stop >= appends ? 0 : SHEAF_STORAGE);
		if (stop < 0) {
			appends = fault.calls;
			assert_true(appends >= 6);
		}
		/* Half of it here, this side's branch is where it was. */
		expect_leaf_in(here, "s", "main", "mine");
		OK(pull(here, there, NULL));
		expect_leaf_in(here, "s", "main", "mine");
		expect_leaf_in(here, "s", "main@b", "m9999");
		expect_leaf_in(here, "new", "main", "n9999");
		assert_int_equal(count_of(here, "s", SHEAF_KINDS_ENTRIES), MANY + 2);
		assert_int_equal(count_of(here, "new", 0), MANY);
		sheaf_sync_totals totals;
		OK(pull(here, there, &totals));
		assert_int_equal(totals.bytes, 0);
		sheaf_session_close(mine);
		sheaf_session_close(s);
		sheaf_session_close(n);
		sheaf_close(here);
		sheaf_close(there);
	}
	fault.slot = NULL;
}

/* ---- A log that lost its end --------------------------------------------------------------- */

/* The bytes up to the end of line `lines`. */
static size_t lines_end(const char *text, size_t len, size_t lines)
{
	size_t at = 0;
	for (; lines > 0 && at < len; lines--) {
		const char *end = memchr(text + at, '\n', len - at);
		at = end != NULL ? (size_t)(end - text) + 1 : len;
	}
	return at;
}

/*
 * Power went while a merge was written: what is left of it is some of its
 * batches. The branch here has not moved, and the next pull completes it.
 */
static void test_cut_off_after_every_record(void **state)
{
	(void)state;
	for (size_t cut = 0;; cut++) {
		char path[] = "./sync-XXXXXX", url[64], log[64], derived[64];
		size_t len;
		assert_non_null(mkdtemp(path));
		snprintf(url, sizeof(url), "jsonl:%s", path);
		snprintf(log, sizeof(log), "%s/s.jsonl", path);
		snprintf(derived, sizeof(derived), "%s/.sheaf", path);
		sheaf_store *here = open_url(url), *there = open_url("memory:");
		sheaf_session *s = make(there, "s");
		SAY(s, "1", .id = "r");
		OK(pull(here, there, NULL));
		sheaf_session *mine = again(here, "s");
		SAY(mine, "2", .id = "a1");
		/* In their log they have the numbers that they will get here. */
		OK(sheaf_session_label(s, S("r"), S("L"), NULL, NULL, &err));
		SAY(s, "2", .id = "b1");
		fill(s, "c", 10);
		SAY(s, "3", .id = "x1", .branch = "side", .parent = "r");
		size_t before = count_of(here, "s", 0) + 1;
		OK(pull(here, there, NULL));
		size_t after = count_of(here, "s", 0) + 1;
		sheaf_session_close(mine);
		sheaf_close(here);
		char *bytes = file_read(log, &len);
		file_write(log, bytes, lines_end(bytes, len, before + cut));
		free(bytes);
		tree_remove(derived);
		here = open_url(url);
		expect_leaf_in(here, "s", "main", "a1");
		OK(pull(here, there, NULL));
		expect_leaf_in(here, "s", "main", "a1");
		expect_leaf_in(here, "s", "main@b", "c9");
		expect_leaf_in(here, "s", "side", "x1");
		assert_int_equal(count_of(here, "s", SHEAF_KINDS_ENTRIES), 14);
		sheaf_sync_totals totals;
		OK(pull(here, there, &totals));
		assert_int_equal(totals.bytes, 0);
		OK(pull(there, here, &totals));
		assert_int_equal(count_of(there, "s", SHEAF_KINDS_ENTRIES), 14);
		sheaf_session_close(s);
		sheaf_close(here);
		sheaf_close(there);
		tree_remove(path);
		if (before + cut == after)
			break;
	}
}

/* What is new is read, not what was there. */
static void test_reads_what_is_new(void **state)
{
	(void)state;
	sheaf_store *here = open_url("memory:"), *there = open_url("memory:");
	sheaf_sync_totals totals;
	sheaf_session *s = make(there, "s"), *o = make(there, "o");
	fill(s, "m", 5000);
	fill(o, "m", 5000);
	OK(pull(here, there, NULL));
	sheaf_session *mine = again(here, "s");
	SAY(mine, "2", .id = "mine");
	SAY(s, "2", .id = "b1");
	OK(pull(here, there, NULL)); /* the logs part: they are read once */
	SAY(s, "3", .id = "b2");
	SAY(o, "3", .id = "o2");
	OK(pull(here, there, &totals));
	assert_int_equal(totals.entries, 2);
	assert_true(totals.records_read < 10);
	OK(pull(here, there, &totals));
	assert_int_equal(totals.records_read, 0);
	/* And back: many that the other side has already are noted, so that they are read once. */
	OK(pull(there, here, &totals));
	assert_int_equal(totals.entries, 1);
	fill(s, "k", 300);
	OK(pull(here, there, NULL));
	OK(pull(there, here, &totals));
	assert_int_equal(totals.entries, 0);
	assert_true(totals.records_read >= 300);
	OK(pull(there, here, &totals));
	assert_int_equal(totals.records_read, 0);
	sheaf_session_close(mine);
	sheaf_session_close(s);
	sheaf_session_close(o);
	sheaf_close(here);
	sheaf_close(there);
}

/* ---- The rest ---------------------------------------------------------------------------------- */

static sheaf_session *writer;
static int writes;

/* Somebody writes to the session between the look and the append. */
static int write_between(void *ctx, const char *slot, sheaf_error *e)
{
	(void)ctx;
	(void)e;
	if (strcmp(slot, "append") == 0 && writes > 0) {
		writes--;
		store_set_fault(NULL, NULL);
		SAY(writer, "between");
		store_set_fault(write_between, NULL);
	}
	return 0;
}

static void test_somebody_writes_meanwhile(void **state)
{
	(void)state;
	sheaf_store *here, *there;
	sheaf_sync_totals totals;
	two_stores(&here, &there);
	writer = again(here, "s");
	writes = 3;
	store_set_fault(write_between, NULL);
	OK(pull(here, there, &totals));
	store_set_fault(NULL, NULL);
	assert_int_equal(totals.merged, 1);
	/* One that never stops is not waited for. */
	sheaf_session *s = again(there, "s");
	SAY(s, "more");
	writes = 1000;
	store_set_fault(write_between, NULL);
	FAILS(STALE, pull(here, there, &totals));
	store_set_fault(NULL, NULL);
	assert_int_equal(totals.failed, 1);
	sheaf_session_close(s);
	sheaf_session_close(writer);
	sheaf_close(here);
	sheaf_close(there);
}

static void test_names(void **state)
{
	(void)state;
	static const char *const names[][2] = {
		{"memory:", "memory"},
		{"jsonl:/srv/sheaf", "sheaf"},
		{"jsonl:/home/ada/.agent/", "agent"},
		{"jsonl:office", "office"},
		{"jsonl://srv/x", "x"},
		{"jsonl:/one/log.jsonl", "log.jsonl"},
		{"jsonl:/", "jsonl"},
		{"postgres://ada:se/cret@db.example:5432/sheaf", "ada"},
		{"postgres://ada:secret@db.example:5432/sheaf", "db.example"},
		{"postgres:///sheaf", "sheaf"},
		{"postgres://ada:secret@/sheaf", "sheaf"},
		{"redis://[::1]:6379/0", "::1"},
		{"redis://cache", "cache"},
		{"redis:", "redis"},
		{"nothing", "nothing"},
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_str(sync_name_of(S(names[i][0])), names[i][1]);
}

static int stop_at_once(void *ctx, const sheaf_sync_totals *totals)
{
	(void)ctx;
	(void)totals;
	return 1;
}

static void test_arguments(void **state)
{
	sheaf_store *store = *state, *to = NULL;
	sheaf_store_options readonly = SHEAF_STORE_OPTIONS_INIT;
	sheaf_sync_totals unset = {.size = 0};
	sheaf_sync_options o = SHEAF_SYNC_OPTIONS_INIT;
	readonly.readonly = 1;
	sheaf_session_close(make(store, "s"));
	OK(sheaf_open(&to, "memory:", &readonly, &err));
	FAILS(READONLY, sheaf_store_pull(NULL, to, store, NULL, &err));
	o.dry_run = 1;
	OK(sheaf_store_pull(NULL, to, store, &o, &err));
	sheaf_close(to);
	FAILS(INVALID, sheaf_store_pull(&unset, store, store, NULL, &err));
	FAILS(INVALID, sheaf_store_pull(NULL, store, NULL, NULL, &err));
	FAILS(INVALID, sheaf_store_pull(NULL, NULL, store, NULL, &err));
	to = open_url("memory:");
	o = (sheaf_sync_options)SHEAF_SYNC_OPTIONS_INIT;
	o.progress = stop_at_once;
	FAILS(CANCELLED, sheaf_store_pull(NULL, to, store, &o, &err));
	/* From itself: nothing is new. */
	unset.size = sizeof(unset);
	OK(sheaf_store_pull(&unset, store, store, NULL, &err));
	assert_int_equal(unset.same, 1);
	sheaf_close(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_comes),
		cmocka_unit_test(test_without_memory),
		cmocka_unit_test(test_every_call_fails),
		cmocka_unit_test(test_interrupted_at_every_append),
		cmocka_unit_test(test_cut_off_after_every_record),
		cmocka_unit_test(test_reads_what_is_new),
		cmocka_unit_test(test_somebody_writes_meanwhile),
		cmocka_unit_test(test_names),
		TEST(test_arguments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
