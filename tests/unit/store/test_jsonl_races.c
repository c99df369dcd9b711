/*
 * The jsonl store between processes and threads: each test stages one moment in
 * which data could be lost or a wrong answer given, with a slowed or failing
 * system call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sheaf.h"
#include "sheaf/sys/seams.h"
#include "support/files.h"
#include "support/play.h"

static char dir[256];
static char url[300];
static sheaf_store *store;
static sheaf_error err;

/* ---- System calls that can be told to be slow, short or failing ------------------------------- */

static _Atomic int slow_sync_ms, slow_write_ms, slow_directory_ms, fail_directory;
static void (*at_lock)(void);  /* called once, before a write lock is taken */
static void (*at_short)(void); /* one write is short, then this is called */

static int my_fdatasync(void *ctx, int fd)
{
	(void)ctx;
	if (slow_sync_ms)
		usleep((useconds_t)slow_sync_ms * 1000);
	return fdatasync(fd);
}

static int my_fsync(void *ctx, int fd)
{
	struct stat st;
	(void)ctx;
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		if (atomic_exchange(&fail_directory, 0)) {
			errno = EIO;
			return -1;
		}
		if (slow_directory_ms)
			usleep((useconds_t)slow_directory_ms * 1000);
	}
	return fsync(fd);
}

static ssize_t my_write(void *ctx, int fd, const void *bytes, size_t len)
{
	(void)ctx;
	if (at_short && len > 100) {
		void (*then)(void) = at_short;
		at_short = NULL;
		ssize_t n = write(fd, bytes, len - 1);
		then();
		return n;
	}
	if (slow_write_ms)
		usleep((useconds_t)slow_write_ms * 1000);
	return write(fd, bytes, len);
}

static int my_lock(void *ctx, int fd, short type)
{
	const sheaf_io *system_io = sheaf_system_io();
	(void)ctx;
	if (at_lock && type == F_WRLCK) {
		void (*then)(void) = at_lock;
		at_lock = NULL;
		then();
	}
	return system_io->lock(system_io->ctx, fd, type);
}

static int setup(void **state)
{
	static const sheaf_io io = {.size = sizeof(io),
	                            .fdatasync = my_fdatasync,
	                            .fsync = my_fsync,
	                            .write = my_write,
	                            .lock = my_lock};
	(void)state;
	scratch_dir(dir, "races");
	snprintf(url, sizeof(url), "jsonl:%s", dir);
	slow_sync_ms = slow_write_ms = slow_directory_ms = fail_directory = 0;
	at_lock = at_short = NULL;
	sheaf_set_io(&io);
	assert_int_equal(sheaf_open(&store, url, NULL, &err), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sheaf_close(store);
	sheaf_set_io(NULL);
	tree_remove(dir);
	return 0;
}

static const char *path_of(const char *name)
{
	static char path[600];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static sheaf_session *open_in(sheaf_store *st, const char *name)
{
	sheaf_key key = sheaf_key_of(name);
	sheaf_session *s;
	int rc = sheaf_session_open(&s, st, &key, NULL, &err);
	if (rc)
		fail_msg("open: %s: %s", sheaf_code_name(rc), err.message);
	return s;
}

static int try_say(sheaf_session *s, const char *text)
{
	return sheaf_session_append_text(s, "user", sheaf_str_of(text), NULL, &err);
}

static void say(sheaf_session *s, const char *text)
{
	int rc = try_say(s, text);
	if (rc)
		fail_msg("append: %s: %s", sheaf_code_name(rc), err.message);
}

static size_t path_count(sheaf_session *s)
{
	sheaf_records *r;
	int rc = sheaf_session_path(&r, s, (sheaf_str){NULL, 0}, (sheaf_str){NULL, 0}, 0, &err);
	if (rc)
		fail_msg("path: %s: %s", sheaf_code_name(rc), err.message);
	size_t n = r->count;
	sheaf_records_free(r);
	return n;
}

static sheaf_session *fork_to(sheaf_session *s, const char *name, int *rc)
{
	sheaf_key key = sheaf_key_of(name);
	sheaf_session *f = NULL;
	*rc = sheaf_session_fork(&f, s, (sheaf_str){NULL, 0}, &key, NULL, &err);
	return f;
}

static size_t listed(sheaf_store *st, uint64_t *revision)
{
	sheaf_list *list;
	assert_int_equal(sheaf_store_list(&list, st, NULL, &err), 0);
	size_t n = list->count;
	if (revision)
		*revision = n ? list->items[0]->revision : 0;
	sheaf_list_free(list);
	return n;
}

static size_t delete_names(const char *name)
{
	sheaf_key key = sheaf_key_of(name);
	sheaf_deleted *d;
	int rc = sheaf_store_delete(&d, store, &key, NULL, &err);
	if (rc)
		fail_msg("delete: %s: %s", sheaf_code_name(rc), err.message);
	size_t forks = d->forks->count;
	sheaf_deleted_free(d);
	return forks;
}

/* ---- Two processes ------------------------------------------------------------------------------ */

static int to_child[2], to_parent[2];

/* Ends a child that did well. By another program: a checker of leaks would blame it for what the
 * parent has. */
static void leave(void)
{
	execl("/bin/true", "true", (char *)NULL);
	_exit(8);
}

static void tell(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(9);
}

static void await(int fd)
{
	char c;
	if (read(fd, &c, 1) != 1)
		_exit(9);
}

static void wait_for_reader(void)
{
	tell(to_parent[1]);
	await(to_child[0]);
}

/* The other process: a short write that a reader sees whole, then a longer one that counts. */
static void short_writer(void)
{
	sheaf_store *st;
	if (sheaf_open(&st, url, NULL, &err))
		_exit(1);
	sheaf_session *s = open_in(st, "A");
	at_short = wait_for_reader;
	if (try_say(s, "short") != SHEAF_STORAGE || err.outcome != SHEAF_FAILED)
		_exit(2);
	if (try_say(s, "a much longer text that is acknowledged as durable"))
		_exit(3);
	tell(to_parent[1]);
	await(to_child[0]);
	if (path_count(s) != 3)
		_exit(4);
	leave();
}

/* A reader takes in what a failing writer cuts off again; later it must not build on that. */
static void cut_back_after_it_was_read(void **state)
{
	int status;
	(void)state;
	sheaf_session *s = open_in(store, "A");
	say(s, "one");
	assert_int_equal(pipe(to_child) | pipe(to_parent), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		short_writer();
	await(to_parent[0]);
	(void)path_count(s); /* reads the record without its line break */
	tell(to_child[1]);
	await(to_parent[0]);
	say(s, "from the reader");
	assert_int_equal(path_count(s), 3);
	tell(to_child[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(file_count(path_of(".kept"), "A."), 0);
	sheaf_session_close(s);
}

/* Runs something in another process and waits for it. */
static void elsewhere(void (*what)(sheaf_store *st))
{
	int status;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		sheaf_store *st;
		if (sheaf_open(&st, url, NULL, &err))
			_exit(1);
		what(st);
		sheaf_close(st);
		leave();
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void repair_and_append(sheaf_store *st)
{
	sheaf_key key = sheaf_key_of("A");
	if (sheaf_store_repair(NULL, st, &key, &err))
		_exit(2);
	sheaf_session *s = open_in(st, "A");
	say(s, "acknowledged");
	sheaf_session_close(s);
}

static void other_repairs(void)
{
	elsewhere(repair_and_append);
}

static void hurt(const char *file, const char *word)
{
	size_t len;
	char *bytes = file_read(path_of(file), &len);
	char *at = strstr(bytes, word);
	assert_non_null(at);
	*at ^= 1;
	file_write(path_of(file), bytes, len);
	free(bytes);
}

static void two_repairs(void **state)
{
	sheaf_key key = sheaf_key_of("A");
	(void)state;
	sheaf_session *s = open_in(store, "A");
	say(s, "one");
	say(s, "two");
	say(s, "three");
	sheaf_session_close(s);
	sheaf_close(store);
	hurt("A.jsonl", "two");
	assert_int_equal(sheaf_open(&store, url, NULL, &err), 0);
	at_lock = other_repairs;
	assert_int_equal(sheaf_store_repair(NULL, store, &key, &err), 0);
	s = open_in(store, "A");
	sheaf_head_view *h;
	assert_int_equal(sheaf_session_head(&h, s, &err), 0);
	assert_int_equal(h->info->revision, 4); /* the other one's append is there */
	sheaf_head_view_free(h);
	sheaf_session_close(s);
}

/* ---- The user's state ---- */

static void set_user_state(sheaf_store *st, const char *delta)
{
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_session *s = open_in(st, "A");
	entry.state_delta = sheaf_str_of(delta);
	if (sheaf_session_append_custom(s, sheaf_str_of("c"), sheaf_str_of("{}"), &entry, NULL,
	                                NULL, &err))
		fail_msg("append: %s", err.message);
	sheaf_session_close(s);
}

static void user_state_is(const char *want)
{
	char line[200] = "";
	size_t n = 0;
	sheaf_state *s = NULL;
	assert_int_equal(sheaf_store_state(&s, store, sheaf_str_of(""), sheaf_str_of(""), &err), 0);
	for (size_t i = 0; i < s->count; i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%.*s=%.*s", i ? " " : "",
		                      (int)s->items[i]->key.len, s->items[i]->key.ptr,
		                      (int)s->items[i]->value.len, s->items[i]->value.ptr);
	sheaf_state_free(s);
	assert_string_equal(line, want);
}

static void repair_and_set(sheaf_store *st)
{
	sheaf_key key = sheaf_key_of("A");
	if (sheaf_store_repair(NULL, st, &key, &err))
		_exit(2);
	set_user_state(st, "{\"user:m\":3}");
}

static void other_repairs_state(void)
{
	elsewhere(repair_and_set);
}

static void two_repairs_of_state(void **state)
{
	sheaf_key key = sheaf_key_of("A");
	(void)state;
	set_user_state(store, "{\"user:k\":1}");
	set_user_state(store, "{\"user:lost\":2}");
	set_user_state(store, "{\"user:l\":2}");
	sheaf_close(store);
	hurt(".state.jsonl", "lost");
	assert_int_equal(sheaf_open(&store, url, NULL, &err), 0);
	at_lock = other_repairs_state;
	assert_int_equal(sheaf_store_repair(NULL, store, &key, &err), 0);
	user_state_is("user:k=1 user:l=2 user:m=3"); /* what the other one set is there */
}

static void set_first(sheaf_store *st)
{
	set_user_state(st, "{\"user:k\":1}");
}

static void other_sets_first(void)
{
	elsewhere(set_first);
}

/* The user had no state when the removal began: it must notice that there is some by now. */
static void first_state_while_its_session_is_deleted(void **state)
{
	(void)state;
	sheaf_session *s = open_in(store, "A");
	say(s, "one");
	at_lock = other_sets_first;
	assert_int_equal(delete_names("A"), 0);
	sheaf_session_close(s);
	assert_int_equal(access(path_of("A.jsonl"), F_OK), -1);
	user_state_is("user:k=1");
	set_user_state(store, "{\"user:l\":2}");
	user_state_is("user:k=1 user:l=2");
}

static void delete_and_make_again(sheaf_store *st)
{
	sheaf_key key = sheaf_key_of("A");
	if (sheaf_store_delete(NULL, st, &key, NULL, &err))
		_exit(2);
	usleep(2000);
	sheaf_session *s = open_in(st, "A");
	say(s, "new life");
	sheaf_session_close(s);
}

static void other_makes_it_again(void)
{
	elsewhere(delete_and_make_again);
}

/* The parent was found in a session that is not there any more. */
static void parent_of_an_earlier_life(void **state)
{
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_appended root = SHEAF_APPENDED_INIT;
	(void)state;
	sheaf_session *s = open_in(store, "A");
	assert_int_equal(sheaf_session_append_text(s, "user", sheaf_str_of("root"), &root, &err),
	                 0);
	say(s, "two");
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_text(m, sheaf_str_of("child"));
	o.has_parent = 1;
	o.parent_id = sheaf_str_of(root.id);
	at_lock = other_makes_it_again;
	assert_int_equal(sheaf_session_append_message(s, m, &o, NULL, NULL, &err), SHEAF_GONE);
	sheaf_message_free(m);
	sheaf_session_close(s);
	s = open_in(store, "A");
	say(s, "afterwards");
	assert_int_equal(path_count(s), 2);
	sheaf_session_close(s);
}

/* ---- Lists and what they are made from --------------------------------------------------------------- */

static void *say_second(void *s)
{
	sheaf_error unused;
	(void)sheaf_session_append_text(s, "user", sheaf_str_of("second"), NULL, &unused);
	return NULL;
}

static void list_while_it_is_synced(void **state)
{
	pthread_t thread;
	uint64_t revision;
	(void)state;
	sheaf_session *s = open_in(store, "A");
	say(s, "first");
	assert_int_equal(listed(store, NULL), 1);
	slow_sync_ms = 200;
	assert_int_equal(pthread_create(&thread, NULL, say_second, s), 0);
	usleep(80000);
	assert_int_equal(listed(store, NULL), 1); /* the file is longer already, the head is not */
	pthread_join(thread, NULL);
	slow_sync_ms = 0;
	assert_int_equal(listed(store, &revision), 1);
	assert_int_equal(revision, 2);
	sheaf_store *fresh;
	assert_int_equal(sheaf_open(&fresh, url, NULL, &err), 0);
	assert_int_equal(listed(fresh, &revision), 1);
	assert_int_equal(revision, 2);
	sheaf_close(fresh);
	sheaf_session_close(s);
}

static void *append_the_id(void *s)
{
	sheaf_error unused;
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_message *m = sheaf_message_new("user");
	o.id = sheaf_str_of("the-id");
	sheaf_message_text(m, sheaf_str_of("x"));
	(void)sheaf_session_append_message(s, m, &o, NULL, NULL, &unused);
	sheaf_message_free(m);
	return NULL;
}

static void get_while_it_is_written(void **state)
{
	pthread_t thread;
	sheaf_records *r;
	(void)state;
	sheaf_session *s = open_in(store, "A");
	say(s, "first");
	slow_write_ms = 200;
	assert_int_equal(pthread_create(&thread, NULL, append_the_id, s), 0);
	usleep(80000);
	assert_int_equal(sheaf_session_get(&r, s, sheaf_str_of("the-id"), &err), SHEAF_NOT_FOUND);
	pthread_join(thread, NULL);
	slow_write_ms = 0;
	assert_int_equal(sheaf_session_get(&r, s, sheaf_str_of("the-id"), &err), 0);
	sheaf_records_free(r);
	sheaf_session_close(s);
}

/* A fork whose creation ended UNKNOWN is there: lists show it and deletes spare what it reads. */
static void fork_with_unknown_outcome(void **state)
{
	int rc;
	(void)state;
	sheaf_session *s = open_in(store, "A");
	say(s, "one");
	say(s, "two");
	assert_int_equal(listed(store, NULL), 1);
	fail_directory = 1;
	sheaf_session *f = fork_to(s, "F", &rc);
	if (rc)
		assert_int_equal(err.outcome, SHEAF_UNKNOWN);
	fail_directory = 0;
	sheaf_session_close(f);
	f = open_in(store, "F");
	uint64_t inherited = path_count(f);
	assert_int_equal(listed(store, NULL), 2);
	assert_int_equal(delete_names("A"), inherited ? 1 : 0);
	assert_int_equal(path_count(f), inherited);
	sheaf_session_close(f);
	sheaf_session_close(s);
}

/* While one process holds the catalogue for long, another makes a fork. */
static void fork_past_a_held_catalogue(void **state)
{
	int status, rc;
	(void)state;
	sheaf_session *s = open_in(store, "A");
	say(s, "one");
	say(s, "two");
	assert_int_equal(listed(store, NULL), 1);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		sheaf_store *st;
		if (sheaf_open(&st, url, NULL, &err))
			_exit(1);
		slow_directory_ms = 1500;
		sheaf_session_close(open_in(st, "B"));
		sheaf_close(st);
		leave();
	}
	usleep(300000);
	sheaf_session *f = fork_to(s, "F", &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	sheaf_store *fresh;
	assert_int_equal(sheaf_open(&fresh, url, NULL, &err), 0);
	assert_int_equal(listed(fresh, NULL), 3);
	sheaf_close(fresh);
	assert_int_equal(delete_names("A"), 1);
	assert_int_equal(path_count(f), 2);
	sheaf_session_close(f);
	sheaf_session_close(s);
}

/* Every bit of the catalogue flipped in turn: no session leaves the list, no delete overlooks a fork. */
static void flipped_catalogue(void **state)
{
	int rc;
	size_t len;
	(void)state;
	sheaf_session *s = open_in(store, "A");
	say(s, "one");
	sheaf_session *f = fork_to(s, "F", &rc);
	assert_int_equal(rc, 0);
	sheaf_session_close(f);
	sheaf_session_close(s);
	/* A strange change of the directory makes the next list write a snapshot. */
	file_write(path_of("strange"), "", 0);
	assert_int_equal(listed(store, NULL), 2);
	sheaf_close(store);
	char *bytes = file_read(path_of(".sheaf/catalogue"), &len);
	for (size_t bit = 0; bit < len * 8; bit += 5) {
		bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << (bit % 8)));
		file_write(path_of(".sheaf/catalogue"), bytes, len);
		bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << (bit % 8)));
		assert_int_equal(sheaf_open(&store, url, NULL, &err), 0);
		if (listed(store, NULL) != 2)
			fail_msg("a session left the list with bit %zu", bit);
		sheaf_close(store);
	}
	bytes[len / 3] ^= 4;
	file_write(path_of(".sheaf/catalogue"), bytes, len);
	free(bytes);
	assert_int_equal(sheaf_open(&store, url, NULL, &err), 0);
	assert_int_equal(delete_names("A"), 1);
}

/* ---- Deleting ------------------------------------------------------------------------------------------ */

static void deleted_text_is_nowhere(void **state)
{
	char where[700];
	(void)state;
	sheaf_session *s = open_in(store, "A");
	say(s, "TOPSECRET");
	sheaf_session_close(open_in(store, "B"));
	assert_int_equal(listed(store, NULL), 2);
	assert_true(tree_holds(dir, "TOPSECRET", where, sizeof(where)));
	assert_int_equal(delete_names("A"), 0);
	if (tree_holds(dir, "TOPSECRET", where, sizeof(where)))
		fail_msg("still in %s", where);
	sheaf_session_close(s);
}

static void unreadable_header_can_be_deleted(void **state)
{
	(void)state;
	sheaf_session *s = open_in(store, "A");
	say(s, "x");
	sheaf_session_close(s);
	sheaf_close(store);
	hurt("A.jsonl", "timestamp");
	assert_int_equal(sheaf_open(&store, url, NULL, &err), 0);
	assert_int_equal(delete_names("A"), 0);
	assert_int_equal(access(path_of("A.jsonl"), F_OK), -1);
}

static void derived_data_removed_under_a_store(void **state)
{
	(void)state;
	sheaf_session *s = open_in(store, "A");
	say(s, "x");
	tree_remove(path_of(".sheaf"));
	say(s, "y");
	sheaf_session_close(open_in(store, "B"));
	assert_int_equal(listed(store, NULL), 2);
	sheaf_session_close(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(cut_back_after_it_was_read),
		T(two_repairs),
		T(two_repairs_of_state),
		T(first_state_while_its_session_is_deleted),
		T(parent_of_an_earlier_life),
		T(list_while_it_is_synced),
		T(get_while_it_is_written),
		T(fork_with_unknown_outcome),
		T(fork_past_a_held_catalogue),
		T(flipped_catalogue),
		T(deleted_text_is_nowhere),
		T(unreadable_header_can_be_deleted),
		T(derived_data_removed_under_a_store),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
