/* The store in memory under strain: callbacks that call it again, no memory, many threads. */
#include <pthread.h>
#include <stdatomic.h>

#include "log_writer.h"
#include "support/fail_alloc.h"

/* Callbacks that call the store again ------------------------------------------------------------------ */

static int scan_and_write(void *ctx, const sheaf_row *row)
{
	int *calls = ctx;
	char id[32];
	(void)snprintf(id, sizeof(id), "new%d", ++*calls);
	assert_int_equal(append(store, "s", id), 0);
	assert_true(find("s", id) > 0);
	return row->seq > 1000 ? SHEAF_LIMIT : 0;
}

static int scan_and_delete(void *ctx, const sheaf_row *row)
{
	int *calls = ctx;
	if ((*calls)++ == 0)
		assert_removal(erase("s", 0), 1, 0, "");
	assert_true(record_crc_ok(row->bytes));
	return 0;
}

static int list_and_delete(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	int *calls = ctx;
	++*calls;
	assert_int_equal(create(store, *calls == 1 ? "new1" : "new2", "a"), 0);
	assert_removal(erase(key->session.ptr, 0), 1, 0, "");
	assert_int_equal(info->records, 1);
	assert_int_equal(key->session.len, strlen(key->session.ptr));
	return 0;
}

static void reentrance(void **state)
{
	(void)state;
	key_box box;
	int calls = 0;
	make_key(&box, NULL, "s");
	const sheaf_scan scan = {.size = sizeof(scan), .limit = SIZE_MAX, .kinds = SHEAF_KINDS_ALL};
	assert_int_equal(create(store, "s", "a b"), 0);
	for (int i = 0; i < 98; i++) {
		char id[16];
		(void)snprintf(id, sizeof(id), "m%d", i);
		assert_int_equal(append(store, "s", id), 0);
	}
	/* A scan ends where the log ended when it began. */
	assert_int_equal(store_scan(store, &box.store, &scan, scan_and_write, &calls, NULL), 0);
	assert_int_equal(calls, 100);
	assert_int_equal(revision("s", NULL), 200);
	/* And reads on in a log that was deleted under it. */
	calls = 0;
	assert_int_equal(store_scan(store, &box.store, &scan, scan_and_delete, &calls, NULL), 0);
	assert_int_equal(calls, 200);
	assert_int_equal(revision("s", NULL), SHEAF_NOT_FOUND);

	calls = 0;
	assert_int_equal(create(store, "s", "a"), 0);
	assert_int_equal(create(store, "t", "a"), 0);
	const sheaf_list_query all = {.size = sizeof(all)};
	assert_int_equal(store_list(store, &all, list_and_delete, &calls, NULL), 0);
	assert_int_equal(calls, 2);
	assert_list(&all, "a/u/new1 a/u/new2");
}

/* Out of memory -------------------------------------------------------------------------------------------- */

/* Everything that can be read, as text. */
static int dump_one(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	seen *s = ctx;
	const sheaf_scan scan = {.size = sizeof(scan), .limit = SIZE_MAX, .kinds = SHEAF_KINDS_ALL};
	(void)seen_info(s, key, info);
	s->len += (size_t)snprintf(s->text + s->len, sizeof(s->text) - s->len, "[%llu,%llu]",
	                           (unsigned long long)info->revision,
	                           (unsigned long long)info->records);
	return store_scan(store, key, &scan, seen_row, s, NULL);
}

static void dump(seen *s)
{
	const sheaf_list_query all = {.size = sizeof(all), .hidden = 1};
	*s = (seen){.len = 0};
	assert_int_equal(store_list(store, &all, dump_one, s, NULL), 0);
}

static copy_rows spare;

static int try_create(void)
{
	return create(store, "new", "a b c");
}

static int try_append(void)
{
	return append(store, "s", "p q r");
}

static int try_fork(void)
{
	return fork_at(store, "g", "s", 3, "x");
}

static int try_remove(void)
{
	return erase("s", 0).rc;
}

static int try_replace(void)
{
	key_box box;
	make_key(&box, NULL, "s");
	spare.at = 0;
	return store_replace(store, &box.store, 4, copy_next, &spare, NULL);
}

static int list_nothing(UNUSED void *ctx, UNUSED const sheaf_store_key *key,
                        UNUSED const sheaf_session_info *info)
{
	return 0;
}

static int try_list(void)
{
	const sheaf_list_query all = {.size = sizeof(all)};
	return store_list(store, &all, list_nothing, NULL, NULL);
}

/* Makes every allocation of a call fail in turn; each time the store must be as before. */
static void starve(int (*call)(void))
{
	fail_alloc_install();
	assert_int_equal(sheaf_open(&store, "memory:", NULL, NULL), 0);
	assert_int_equal(create(store, "s", "a b"), 0);
	assert_int_equal(append(store, "s", "c d"), 0);
	assert_int_equal(fork_at(store, "f", "s", 2, "x"), 0);
	/* As many sessions as the map takes before it must grow. */
	for (char name[2] = "A"; name[0] < 'J'; name[0]++)
		assert_int_equal(create(store, name, "a"), 0);
	copy_session(&spare, "s");
	seen before, after;
	dump(&before);
	size_t n = 1;
	for (;; n++) {
		fail_alloc_at(n, false);
		int rc = call();
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		if (!hit) {
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(rc, SHEAF_NOMEM);
		dump(&after);
		assert_string_equal(before.text, after.text);
	}
	assert_true(n > 1);
	copy_free(&spare);
	sheaf_close(store);
	store = NULL;
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

static void starving(void **state)
{
	(void)state;
	starve(try_create);
	starve(try_append);
	starve(try_fork);
	starve(try_remove);
	starve(try_replace);
	starve(try_list);
}

/* Threads ------------------------------------------------------------------------------------------------------ */

enum {
	WRITERS = 4,
	APPENDS = 150
};

static atomic_bool finished;

/* cmocka's assertions are for the main thread: the others count what went wrong. */
static atomic_int wrong;

static void expect(bool ok)
{
	if (!ok)
		atomic_fetch_add(&wrong, 1);
}

static void *write_much(void *ctx)
{
	for (int i = 0; i < APPENDS; i++) {
		char ids[64];
		(void)snprintf(ids, sizeof(ids), "%d-%d-a %d-%d-b", (int)(intptr_t)ctx, i,
		               (int)(intptr_t)ctx, i);
		expect(append(store, "s", ids) == 0);
	}
	return NULL;
}

typedef struct order {
	uint64_t last;
	uint64_t rows;
	bool broken;
} order;

static int in_order(void *ctx, const sheaf_row *row)
{
	order *o = ctx;
	o->broken = o->broken || row->seq != o->last + 1 || !record_crc_ok(row->bytes);
	o->last = row->seq;
	o->rows++;
	return 0;
}

static int count_info(void *ctx, UNUSED const sheaf_store_key *key, const sheaf_session_info *info)
{
	*(uint64_t *)ctx += info->records;
	return 0;
}

static void *read_much(UNUSED void *ctx)
{
	key_box box;
	make_key(&box, NULL, "s");
	const sheaf_scan scan = {.size = sizeof(scan), .limit = SIZE_MAX, .kinds = SHEAF_KINDS_ALL};
	const sheaf_list_query all = {.size = sizeof(all), .hidden = 1};
	while (!atomic_load(&finished)) {
		order o = {0};
		uint64_t records = 0;
		expect(store_scan(store, &box.store, &scan, in_order, &o, NULL) == 0);
		expect(!o.broken && o.rows % 2 == 0); /* whole batches */
		expect(store_list(store, &all, count_info, &records, NULL) == 0);
		sheaf_head *head = sheaf_head_new();
		expect(head != NULL && store_head(store, &box.store, 0, head, NULL, NULL) == 0);
		expect(head != NULL && sheaf_head_revision(head) >= o.rows);
		sheaf_head_free(head);
	}
	return NULL;
}

/* Makes and deletes forks of a session of its own, and that session with them. */
static void *fork_much(UNUSED void *ctx)
{
	while (!atomic_load(&finished)) {
		expect(create(store, "t", "a b c") == 0);
		expect(fork_at(store, "tf", "t", 2, "x") == 0);
		removal r = erase("t", 0);
		expect(r.rc == 0 && r.reply.hidden == 1 && r.readers.rows == 1);
		expect(fork_at(store, "tg", "t", 2, "x") == SHEAF_GONE);
		r = erase("tf", 0);
		expect(r.rc == 0 && r.reply.existed == 1 && r.reply.hidden == 0);
		r = erase("t", 1);
		expect(r.rc == 0 && r.reply.existed == 1 && r.reply.hidden == 0);
	}
	return NULL;
}

static void threads(void **state)
{
	(void)state;
	pthread_t writers[WRITERS], others[3];
	void *(*const jobs[3])(void *) = {read_much, read_much, fork_much};
	atomic_store(&finished, false);
	assert_int_equal(create(store, "s", ""), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&others[i], NULL, jobs[i], NULL), 0);
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, write_much, (void *)(intptr_t)i),
		                 0);
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_join(writers[i], NULL), 0);
	atomic_store(&finished, true);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_join(others[i], NULL), 0);
	assert_int_equal(atomic_load(&wrong), 0);
	assert_int_equal(revision("s", NULL), WRITERS * APPENDS * 2);
	assert_true(find("s", "3-149-b") > 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_store, close_store)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(reentrance),
		cmocka_unit_test(starving),
		CASE(threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
