/* The file of a queue: reboots, what crashes and people leave, versions, growth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sheaf.h"
#include "sheaf/sys/seams.h"
#include "support/files.h"
#include "support/play.h"

static char dir[256], url[300], queue_file[400], log_file[400];
static sheaf_store *store;
static sheaf_session *session;
static sheaf_error err;

static void open_all(int mode)
{
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_key key = sheaf_key_of("s");
	o.mode = mode;
	assert_int_equal(sheaf_open(&store, url, NULL, &err), 0);
	assert_int_equal(sheaf_session_open(&session, store, &key, &o, &err), 0);
}

static void close_all(void)
{
	sheaf_session_close(session);
	sheaf_close(store);
	session = NULL;
	store = NULL;
}

static int set_up(void **state)
{
	(void)state;
	scratch_dir(dir, "queue");
	snprintf(url, sizeof(url), "jsonl:%s", dir);
	snprintf(queue_file, sizeof(queue_file), "%s/.queue/s.jsonl", dir);
	snprintf(log_file, sizeof(log_file), "%s/s.jsonl", dir);
	open_all(SHEAF_OPEN_NEW);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close_all();
	sheaf_set_io(NULL);
	tree_remove(dir);
	return 0;
}

static int put(const char *id, const char *content)
{
	sheaf_enqueue_options o = SHEAF_ENQUEUE_OPTIONS_INIT;
	o.id = sheaf_str_of(id);
	return sheaf_session_enqueue(session, sheaf_str_of(content), &o, NULL, &err);
}

/* How many items wait, and how many there are. */
static size_t waiting(size_t *all)
{
	sheaf_queue_items *items;
	size_t n = 0;
	assert_int_equal(sheaf_session_pending(&items, session, &err), 0);
	for (size_t i = 0; i < items->count; i++)
		n += items->items[i]->claimed_until_us == 0;
	*all = items->count;
	sheaf_queue_items_free(items);
	return n;
}

static void assert_waiting(size_t some, size_t of)
{
	size_t all;
	assert_int_equal(waiting(&all), some);
	assert_int_equal(all, of);
}

static size_t claim(char token[SHEAF_ID_ROOM])
{
	sheaf_queue_items *items;
	assert_int_equal(sheaf_session_claim(&items, session, NULL, &err), 0);
	size_t n = items->count;
	snprintf(token, SHEAF_ID_ROOM, "%s", n ? items->token.ptr : "");
	sheaf_queue_items_free(items);
	return n;
}

static size_t size_of(const char *path)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return (size_t)st.st_size;
}

/* ---- Reboots --------------------------------------------------------------------------- */

static const char *boot;
static int64_t boot_us;

static int64_t my_boottime(void *ctx)
{
	(void)ctx;
	return boot_us;
}

static int my_boot_id(void *ctx, char out[SHEAF_BOOT_ID_ROOM])
{
	(void)ctx;
	snprintf(out, SHEAF_BOOT_ID_ROOM, "%s", boot);
	return 0;
}

static void reboot_as(const char *id, int64_t us)
{
	sheaf_io io = {.size = sizeof(io), .boottime_us = my_boottime, .boot_id = my_boot_id};
	boot = id;
	boot_us = us;
	close_all();
	sheaf_set_io(&io);
	open_all(SHEAF_OPEN_EXISTING);
}

static void a_reboot_ends_all_leases(void **state)
{
	char token[SHEAF_ID_ROOM], other[SHEAF_ID_ROOM];
	(void)state;
	reboot_as("11111111-1111-4111-8111-111111111111", 5000000000000);
	assert_int_equal(put("a", "x"), 0);
	assert_int_equal(put("b", "x"), 0);
	assert_int_equal(claim(token), 1);
	assert_waiting(1, 2);
	reboot_as("11111111-1111-4111-8111-111111111111", 5000000000001); /* the process only */
	assert_waiting(1, 2);
	/* Since boot less time has passed than the lease says, and it is over all the same. */
	reboot_as("22222222-2222-4222-8222-222222222222", 1000000);
	assert_waiting(2, 2);
	assert_int_equal(sheaf_session_ack(session, sheaf_str_of(token), &err), 0);
	assert_waiting(1, 1);
	assert_int_equal(claim(other), 1);
	boot_us += 59000000;
	assert_waiting(0, 1);
	boot_us += 1000001;
	assert_waiting(1, 1);
}

/* ---- What is left behind ------------------------------------------------------------------ */

static void a_queue_without_its_session_is_nobody_s(void **state)
{
	sheaf_key key = sheaf_key_of("s");
	sheaf_deleted *d;
	size_t len, all;
	(void)state;
	assert_int_equal(put("a", "secret"), 0);
	char *bytes = file_read(queue_file, &len);
	assert_int_equal(sheaf_store_delete(&d, store, &key, NULL, &err), 0);
	sheaf_deleted_free(d);
	assert_int_not_equal(access(queue_file, F_OK), 0);
	/* As a crash between log and queue would leave it: a delete that is repeated removes it, */
	file_write(queue_file, bytes, len);
	assert_int_equal(sheaf_store_delete(&d, store, &key, NULL, &err), 0);
	sheaf_deleted_free(d);
	assert_int_not_equal(access(queue_file, F_OK), 0);
	/* and so does a create. */
	file_write(queue_file, bytes, len);
	close_all();
	open_all(SHEAF_OPEN_NEW);
	assert_int_not_equal(access(queue_file, F_OK), 0);
	/* One that came later is of another birth: it counts for nothing and is replaced. */
	file_write(queue_file, bytes, len);
	assert_int_equal(waiting(&all), 0);
	assert_int_equal(all, 0);
	assert_int_equal(put("b", "x"), 0);
	assert_waiting(1, 1);
	free(bytes);
	bytes = file_read(queue_file, &len);
	assert_null(memmem(bytes, len, "secret", 6));
	free(bytes);
}

static void a_torn_end_is_kept_and_cut(void **state)
{
	char where[400];
	(void)state;
	assert_int_equal(put("a", "x"), 0);
	assert_int_equal(put("b", "x"), 0);
	size_t whole = size_of(queue_file);
	FILE *f = fopen(queue_file, "a");
	fputs("{\"type\":\"put\",\"id\":\"torn", f);
	fclose(f);
	assert_waiting(2, 2);
	assert_true(size_of(queue_file) > whole); /* who only looks changes nothing */
	assert_int_equal(put("c", "x"), 0);
	assert_waiting(3, 3);
	assert_true(tree_names(dir, "s.queue-torn-", where, sizeof(where)));
	assert_true(tree_holds(dir, "\"id\":\"torn", where, sizeof(where)));
	assert_non_null(strstr(where, ".kept"));
	close_all();
	open_all(SHEAF_OPEN_EXISTING);
	assert_waiting(3, 3);
}

static void damage_is_reported_and_repaired_by_name(void **state)
{
	sheaf_key key = sheaf_key_of("s");
	sheaf_report *report;
	sheaf_queue_items *items;
	size_t len;
	(void)state;
	assert_int_equal(put("a", "x"), 0);
	assert_int_equal(put("b", "hurt"), 0);
	assert_int_equal(put("c", "x"), 0);
	char *bytes = file_read(queue_file, &len);
	memcpy(memmem(bytes, len, "hurt", 4), "hurl", 4);
	file_write(queue_file, bytes, len);
	free(bytes);
	close_all();
	open_all(SHEAF_OPEN_EXISTING);
	assert_int_equal(put("d", "x"), SHEAF_DAMAGED);
	assert_int_equal(sheaf_session_pending(&items, session, &err), SHEAF_DAMAGED);
	assert_int_equal(
		sheaf_session_append_text(session, SHEAF_ROLE_USER, SHEAF_STR("on"), NULL, &err),
		0); /* the conversation goes on */
	assert_int_equal(sheaf_store_repair(&report, store, &key, &err), 0);
	assert_true(report->count >= 1);
	sheaf_report_free(report);
	assert_waiting(2, 2);
	assert_int_equal(put("d", "x"), 0);
}

static void a_newer_version_is_left_alone(void **state)
{
	sheaf_queue_items *items;
	(void)state;
	assert_int_equal(put("a", "x"), 0);
	close_all();
	/* A first line of version 2, with its crc. */
	static const char line[] = "{\"type\":\"queue\",\"format\":\"sheaf\",\"version\":2,"
				   "\"session\":\"s\",\"created\":\"2026-11-14T10:00:00.000000Z\"";
	uint32_t crc = 0xffffffff;
	for (size_t i = 0; i < sizeof(line) - 1; i++) {
		crc ^= (unsigned char)line[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	char whole[300];
	int len = snprintf(whole, sizeof(whole), "%s,\"crc\":\"%08x\"}\n", line, ~crc);
	file_write(queue_file, whole, (size_t)len);
	open_all(SHEAF_OPEN_EXISTING);
	assert_int_equal(sheaf_session_pending(&items, session, &err), SHEAF_FORMAT);
	assert_int_equal(put("b", "x"), SHEAF_FORMAT);
	assert_int_equal(size_of(queue_file), (size_t)len);
}

/* ---- Growth ------------------------------------------------------------------------------------ */

static void the_file_does_not_grow_with_what_is_done(void **state)
{
	char token[SHEAF_ID_ROOM], content[1000];
	size_t most = 0;
	(void)state;
	memset(content, 'x', sizeof(content));
	content[sizeof(content) - 1] = 0;
	for (int i = 0; i < 500; i++) {
		char id[16];
		snprintf(id, sizeof(id), "%d", i);
		assert_int_equal(put(id, content), 0);
		assert_int_equal(claim(token), 1);
		assert_int_equal(sheaf_session_ack(session, sheaf_str_of(token), &err), 0);
		if (size_of(queue_file) > most)
			most = size_of(queue_file);
	}
	assert_true(most < 80000);
	assert_waiting(0, 0);
}

static void a_store_of_one_file_has_none(void **state)
{
	char one[500];
	sheaf_store *single;
	sheaf_session *s;
	sheaf_store_info info = {.size = sizeof(info)};
	sheaf_key key = sheaf_key_of("s");
	(void)state;
	snprintf(one, sizeof(one), "jsonl:%s", log_file);
	assert_int_equal(sheaf_open(&single, one, NULL, &err), 0);
	assert_int_equal(sheaf_store_describe(single, &info, &err), 0);
	assert_int_equal(info.queues, 0);
	assert_int_equal(sheaf_session_open(&s, single, &key, NULL, &err), 0);
	assert_int_equal(sheaf_session_enqueue(s, SHEAF_STR("x"), NULL, NULL, &err),
	                 SHEAF_UNSUPPORTED);
	sheaf_session_close(s);
	sheaf_close(single);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_reboot_ends_all_leases),      TEST(a_queue_without_its_session_is_nobody_s),
		TEST(a_torn_end_is_kept_and_cut),    TEST(damage_is_reported_and_repaired_by_name),
		TEST(a_newer_version_is_left_alone), TEST(the_file_does_not_grow_with_what_is_done),
		TEST(a_store_of_one_file_has_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
