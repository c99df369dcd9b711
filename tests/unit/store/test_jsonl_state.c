/* The state files of the jsonl store, hurt as crashes and people hurt them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "entry/record.h"
#include "sheaf.h"
#include "sheaf/sys/seams.h"
#include "support/files.h"
#include "support/play.h"

static char dir[256];
static char url[300];
static sheaf_store *store;
static sheaf_session *session;
static sheaf_error err;

#define OK(call)                                                                                   \
	do {                                                                                       \
		int ok_rc_ = (call);                                                               \
		if (ok_rc_ != 0)                                                                   \
			fail_msg("%s: %s: %s", #call, sheaf_code_name(ok_rc_), err.message);       \
	} while (0)

static void shut(void)
{
	sheaf_session_close(session);
	sheaf_close(store);
	session = NULL;
	store = NULL;
}

static void open_session(const char *name)
{
	sheaf_key key = sheaf_key_of(name);
	shut();
	OK(sheaf_open(&store, url, NULL, &err));
	OK(sheaf_session_open(&session, store, &key, NULL, &err));
}

static int setup(void **state)
{
	(void)state;
	scratch_dir(dir, "jsonl-state");
	snprintf(url, sizeof(url), "jsonl:%s", dir);
	open_session("s");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	shut();
	tree_remove(dir);
	return 0;
}

static const char *path_of(const char *name)
{
	static char path[600];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int try_say(const char *id, const char *delta)
{
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	entry.id = sheaf_str_of(id);
	entry.state_delta = sheaf_str_of(delta);
	return sheaf_session_append_custom(session, sheaf_str_of("c"), sheaf_str_of("{}"), &entry,
	                                   NULL, NULL, &err);
}

static void say(const char *id, const char *delta)
{
	OK(try_say(id, delta));
}

static void user_is(const char *want)
{
	char line[500] = "";
	size_t n = 0;
	sheaf_state *s = NULL;
	OK(sheaf_store_state(&s, store, sheaf_str_of(""), sheaf_str_of(""), &err));
	for (size_t i = 0; i < s->count; i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%.*s=%.*s", i ? " " : "",
		                      (int)s->items[i]->key.len, s->items[i]->key.ptr,
		                      (int)s->items[i]->value.len, s->items[i]->value.ptr);
	sheaf_state_free(s);
	assert_string_equal(line, want);
}

static size_t state_size(void)
{
	struct stat st;
	assert_int_equal(stat(path_of(".state.jsonl"), &st), 0);
	return (size_t)st.st_size;
}

/* A line as a writer leaves it that died before it wrote the record. */
static void write_line(const char *text)
{
	buf line = BUF_INIT(4096);
	buf_add(&line, text, strlen(text));
	record_seal(&line, 0);
	file_append(path_of(".state.jsonl"), line.ptr, line.len);
	buf_free(&line);
}

static void the_file_is_private(void **state)
{
	(void)state;
	struct stat st;
	assert_int_not_equal(stat(path_of(".state.jsonl"), &st), 0);
	say("a", "{\"user:k\":1}");
	assert_int_equal(stat(path_of(".state.jsonl"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void a_line_without_its_record_does_not_count(void **state)
{
	(void)state;
	say("a", "{\"user:k\":1}");
	size_t before = state_size();
	shut();
	write_line("{\"type\":\"user_state\",\"session\":\"s\",\"id\":\"b\",\"values\":{\"k\":2}");
	size_t after = state_size();
	open_session("s");
	user_is("user:k=1");
	assert_int_equal(state_size(), after); /* a reader changes nothing */
	say("c", "{\"user:l\":3}");
	user_is("user:k=1 user:l=3");
	char *bytes = file_read(path_of(".state.jsonl"), &after);
	assert_null(strstr(bytes + before, "\"b\""));
	free(bytes);
	open_session("s");
	user_is("user:k=1 user:l=3");
}

static void a_line_whose_record_is_there_counts(void **state)
{
	(void)state;
	say("a", "{\"user:k\":1}");
	say("b", NULL);
	shut();
	write_line("{\"type\":\"user_state\",\"session\":\"s\",\"id\":\"b\",\"values\":{\"k\":2}");
	open_session("s");
	user_is("user:k=2");
	say("c", "{\"user:l\":3}");
	user_is("user:k=2 user:l=3");
}

static void a_line_of_no_session_does_not_count(void **state)
{
	(void)state;
	say("a", "{\"user:k\":1}");
	shut();
	write_line("{\"type\":\"user_state\",\"session\":\"x\",\"id\":\"b\",\"values\":{\"k\":2}");
	open_session("s");
	user_is("user:k=1");
	say("c", "{\"user:l\":3}");
	open_session("s");
	user_is("user:k=1 user:l=3");
}

static void a_torn_end_is_kept(void **state)
{
	(void)state;
	say("a", "{\"user:k\":1}");
	shut();
	file_append(path_of(".state.jsonl"), "{\"type\":\"user_sta", 17);
	open_session("s");
	user_is("user:k=1");
	sheaf_report *r = NULL;
	OK(sheaf_store_check(&r, store, NULL, &err));
	assert_int_equal(r->count, 1);
	assert_int_equal(r->problems[0]->what, SHEAF_PROBLEM_TORN);
	assert_int_equal(r->problems[0]->session.len, 0);
	sheaf_report_free(r);
	say("b", "{\"user:l\":2}");
	user_is("user:k=1 user:l=2");
	assert_int_equal(file_count(path_of(".kept"), ".state.torn-"), 1);
	open_session("s");
	user_is("user:k=1 user:l=2");
}

static void damage_is_told_and_repaired(void **state)
{
	(void)state;
	size_t len;
	say("a", "{\"user:k\":1}");
	say("b", "{\"user:l\":2}");
	say("c", "{\"user:m\":3}");
	shut();
	char *bytes = file_read(path_of(".state.jsonl"), &len);
	*(strstr(bytes, "\"l\":2") + 4) = '9';
	file_write(path_of(".state.jsonl"), bytes, len);
	free(bytes);
	open_session("s");
	sheaf_state *out = NULL;
	assert_int_equal(sheaf_store_state(&out, store, sheaf_str_of(""), sheaf_str_of(""), &err),
	                 SHEAF_DAMAGED);
	assert_int_equal(try_say("d", "{\"user:n\":4}"), SHEAF_DAMAGED);
	say("e", NULL); /* the conversation goes on */
	sheaf_report *r = NULL;
	OK(sheaf_store_check(&r, store, NULL, &err));
	assert_int_equal(r->count, 1);
	assert_int_equal(r->problems[0]->what, SHEAF_PROBLEM_DAMAGE);
	sheaf_report_free(r);
	sheaf_key key = sheaf_key_of("s");
	OK(sheaf_store_repair(NULL, store, &key, &err));
	user_is("user:k=1 user:m=3");
	assert_int_equal(file_count(path_of(".kept"), ".state.damaged-"), 1);
	say("f", "{\"user:n\":4}");
	user_is("user:k=1 user:m=3 user:n=4");
}

static void the_file_does_not_grow_for_ever(void **state)
{
	(void)state;
	char delta[4096];
	memset(delta, '1', sizeof(delta));
	memcpy(delta, "{\"user:k\":", 10);
	memcpy(delta + sizeof(delta) - 2, "}", 2);
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	how.durability = SHEAF_DURABILITY_PROCESS;
	entry.state_delta = sheaf_str_of(delta);
	size_t most = 0;
	for (int i = 0; i < 1000; i++) {
		OK(sheaf_session_append_custom(session, sheaf_str_of("c"), sheaf_str_of("{}"),
		                               &entry, &how, NULL, &err));
		if (state_size() > most)
			most = state_size();
	}
	assert_in_range(most, (1 << 20) - 8192, (1 << 20) + 8192);
	assert_in_range(state_size(), 1, 1 << 20);
	assert_int_equal(file_count(path_of(".sheaf"), "tmp-"), 0);
}

static int no_rename(void *ctx, int from_dir, const char *from, int to_dir, const char *to)
{
	(void)ctx;
	(void)from_dir;
	(void)from;
	(void)to_dir;
	(void)to;
	errno = ENOSPC;
	return -1;
}

/* An app may have many small keys, each of which has a time and an id in the file: more than a line
 * can hold. */
static void many_keys_at_once(void **state)
{
	(void)state;
	const size_t keys = 150000;
	buf delta = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < keys; i++)
		buf_format(&delta, "%c\"app:%zx\":1", i ? ',' : '{', i);
	buf_add(&delta, "}", 2);
	char id[101];
	snprintf(id, sizeof(id), "%0100d", 1);
	const sheaf_io io = {.size = sizeof(io), .rename = no_rename};
	sheaf_set_io(&io); /* it cannot be written anew, which would hide what was written first */
	say(id, delta.ptr);
	sheaf_set_io(NULL);
	buf_free(&delta);
	open_session("s");
	sheaf_state *s = NULL;
	OK(sheaf_store_state(&s, store, sheaf_str_of(""), (sheaf_str){NULL, 0}, &err));
	assert_int_equal(s->count, keys);
	sheaf_state_free(s);
	sheaf_report *r = NULL;
	OK(sheaf_store_check(&r, store, NULL, &err));
	assert_int_equal(r->count, 0);
	sheaf_report_free(r);
}

/* {"P0":"xxx…",…}: half of what a session may have; with `value` false they are deleted. */
static char *half(char prefix, bool value)
{
	buf delta = BUF_INIT(SIZE_MAX);
	char text[60001];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	for (int i = 0; i < 9; i++) {
		buf_format(&delta, "%c\"%c%d\":", i ? ',' : '{', prefix, i);
		buf_add(&delta, "\"", value);
		buf_add(&delta, value ? text : "null", strlen(value ? text : "null"));
		buf_add(&delta, "\"", value);
	}
	buf_add(&delta, "}", 2);
	return delta.ptr;
}

/* Without a record that took values away there may be more of them than anybody could set. */
static void a_lost_deletion_loses_nothing_else(void **state)
{
	(void)state;
	size_t len;
	char *a = half('a', true), *no_a = half('a', false), *b = half('b', true);
	say("one", a);
	say("two", no_a);
	say("three", b);
	assert_int_equal(try_say("four", a), SHEAF_LIMIT);
	shut();
	char *bytes = file_read(path_of("s.jsonl"), &len);
	*(strstr(bytes, "\"two\"") + 1) = 'x';
	file_write(path_of("s.jsonl"), bytes, len);
	free(bytes);
	OK(sheaf_open(&store, url, NULL, &err));
	sheaf_key key = sheaf_key_of("s");
	OK(sheaf_store_repair(NULL, store, &key, &err));
	open_session("s");
	sheaf_records *r = NULL;
	OK(sheaf_session_records(&r, session, NULL, &err));
	assert_int_equal(r->count, 3);
	assert_false(r->items[2]->damaged);
	sheaf_records_free(r);
	sheaf_state *s = NULL;
	OK(sheaf_session_state_all(&s, session, &err));
	assert_int_equal(s->count, 18);
	sheaf_state_free(s);
	/* It goes on: less is always possible, and more is not. */
	assert_int_equal(try_say("five", "{\"c\":1}"), SHEAF_LIMIT);
	say("six", NULL);
	say("seven", "{\"a0\":null}");
	say("eight", no_a);
	say("nine", "{\"c\":1}");
	open_session("s");
	OK(sheaf_session_state_all(&s, session, &err));
	assert_int_equal(s->count, 10);
	sheaf_state_free(s);
	mem_free(a);
	mem_free(no_a);
	mem_free(b);
}

static void a_sidecar_has_the_state(void **state)
{
	(void)state;
	say("first", "{\"a\":1}");
	for (int i = 0; i < 3; i++) {
		sheaf_batch *b = sheaf_batch_new();
		for (int k = 0; k < 600; k++)
			OK(sheaf_batch_json(b, sheaf_str_of("thing"), sheaf_str_of("{}"), NULL,
			                    &err));
		OK(sheaf_session_append_batch(session, b, NULL, NULL, &err));
		sheaf_batch_free(b);
		char id[10], delta[40];
		snprintf(id, sizeof(id), "m%d", i);
		snprintf(delta, sizeof(delta), "{\"b\":%d}", i);
		say(id, i == 1 ? NULL : delta);
		open_session("s");
	}
	assert_int_equal(file_count(path_of(".sheaf"), "s.idx"), 1);
	sheaf_state *s = NULL;
	OK(sheaf_session_state_all(&s, session, &err));
	assert_int_equal(s->count, 2);
	assert_memory_equal(s->items[1]->value.ptr, "2", 2);
	sheaf_state_free(s);
	/* One of the version before is no sidecar: the log is read instead. */
	shut();
	size_t len;
	char *bytes = file_read(path_of(".sheaf/s.idx"), &len);
	bytes[7] = bytes[4096 + 7] = '1';
	file_write(path_of(".sheaf/s.idx"), bytes, len);
	free(bytes);
	open_session("s");
	OK(sheaf_session_state_get(&s, session, sheaf_str_of("b"), &err));
	assert_memory_equal(s->items[0]->value.ptr, "2", 2);
	sheaf_state_free(s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_file_is_private),
		TEST(a_line_without_its_record_does_not_count),
		TEST(a_line_whose_record_is_there_counts),
		TEST(a_line_of_no_session_does_not_count),
		TEST(a_torn_end_is_kept),
		TEST(damage_is_told_and_repaired),
		TEST(the_file_does_not_grow_for_ever),
		TEST(many_keys_at_once),
		TEST(a_lost_deletion_loses_nothing_else),
		TEST(a_sidecar_has_the_state),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
