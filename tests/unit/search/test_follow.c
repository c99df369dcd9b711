/* The index follows its store: appends, names, forks, deletions, and a rebuilt one says the same. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "support/fail_alloc.h"

static const char *const questions[] = {
	"alpha",       "beta gamma",    "\"alpha beta\"", "al*",   "検索",         "日本語",
	"parse_table", "table",         "parseTable",     "delta", "epsilon zeta", "eta",
	"name",        "\"eta theta\"", "src/a.c",        "the*",  "alpha alpha",  "猫",
	NULL};

static int set_up(void **state)
{
	static kit k;
	kit_begin(&k, "jsonl:");
	*state = &k;
	return 0;
}

static int set_up_memory(void **state)
{
	static kit k;
	kit_begin(&k, "memory:");
	*state = &k;
	return 0;
}

static int tear_down(void **state)
{
	kit_end(*state);
	return 0;
}

/* How many files there are below a directory that hold these bytes. */
static int files_with(const char *dir, const char *bytes)
{
	char command[600];
	snprintf(command, sizeof(command), "grep -rlaiF '%s' '%s' | wc -l", bytes, dir);
	FILE *f = popen(command, "r");
	int count = -1;
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &count), 1);
	pclose(f);
	return count;
}

static void test_appends(void **state)
{
	kit *k = *state;
	finds(k, "alpha", "");
	say(k, "s", "e1", "user", "alpha");
	finds(k, "alpha", "s/e1");
	say(k, "s", "e2", "user", "alpha alpha");
	say(k, "t", "e1", "user", "beta");
	sheaf_hits *hits = run_query(k, "alpha");
	assert_int_equal(hits->count, 2);
	assert_int_equal(hits->updated, 2);
	assert_int_equal(hits->rebuilt, 0);
	sheaf_hits_free(hits);
	hits = run_query(k, "alpha");
	assert_int_equal(hits->updated, 0);
	sheaf_hits_free(hits);
}

/* What is known to be indexed is not compared again, until something is another. */
static void test_settled(void **state)
{
	kit *k = *state;
	say(k, "s", "e1", "user", "alpha");
	for (int i = 0; i < 3; i++)
		finds(k, "alpha", "s/e1");
	say(k, "t", "e1", "user", "alpha beta");
	for (int i = 0; i < 3; i++)
		finds(k, "beta", "t/e1");
	drop(k, "s");
	for (int i = 0; i < 3; i++)
		finds(k, "alpha", "t/e1");
	say(k, "t", "e2", "user", "gamma");
	finds(k, "gamma", "t/e2");
	/* Another one takes a session out of the index, which is then not as it was. */
	for (int i = 0; i < 2; i++)
		finds(k, "beta", "t/e1");
	sheaf_search_options anew = SHEAF_SEARCH_OPTIONS_INIT;
	sheaf_search *other;
	assert_int_equal(sheaf_search_open(&other, k->store, &anew, NULL), 0);
	say(k, "u", "e1", "user", "delta");
	sheaf_query whose = SHEAF_QUERY_INIT;
	assert_int_equal(sheaf_search_update(other, &whose, NULL, NULL), 0);
	finds(k, "delta", "u/e1");
	sheaf_search_close(other);
}

static void test_delete(void **state)
{
	kit *k = *state;
	say(k, "s", "e1", "user", "xylophone concert");
	say(k, "t", "e1", "user", "a concert");
	finds(k, "concert", "t/e1 s/e1");
	assert_true(files_with(k->dir, "xylophone") >= 2); /* the log and the index at least */
	drop(k, "s");
	assert_int_equal(files_with(k->dir, "xylophone"), 0);
	finds(k, "xylophone", "");
	finds(k, "concert", "t/e1");
	/* The same key again, with as many records: another session. */
	say(k, "s", "e1", "user", "violin");
	finds(k, "violin", "s/e1");
}

/* Removed behind its back. */
static void test_vanished(void **state)
{
	kit *k = *state;
	char path[400];
	say(k, "s", "e1", "user", "xylophone");
	say(k, "t", "e1", "user", "violin");
	finds(k, "xylophone", "s/e1");
	sheaf_search_close(k->search);
	sheaf_close(k->store);
	snprintf(path, sizeof(path), "%s/store/s.jsonl", k->dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(sheaf_open(&k->store, k->url, NULL, &k->err), 0);
	assert_int_equal(sheaf_search_open(&k->search, k->store, NULL, &k->err), 0);
	finds(k, "xylophone", "");
	finds(k, "violin", "t/e1");
	/* And put in its place: other records under the same key. */
	char other[400];
	snprintf(other, sizeof(other), "%s/store/t.jsonl", k->dir);
	say(k, "t", "e2", "user", "viola");
	finds(k, "viola", "t/e2");
	sheaf_search_close(k->search);
	sheaf_close(k->store);
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(sheaf_open(&k->store, k->url, NULL, &k->err), 0);
	assert_int_equal(sheaf_search_open(&k->search, k->store, NULL, &k->err), 0);
	finds(k, "viol*", "s/e2 s/e1");
}

/* Another log under the same key, as old as the one before and with as many records or more. */
static void test_replaced(void **state)
{
	kit *k = *state;
	kit other = *k;
	char from[400], to[400];
	int64_t t = k->time_us;
	say(k, "s", "e1", "user", "apple");
	finds(k, "apple", "s/e1");
	snprintf(other.url, sizeof(other.url), "jsonl:%s/other", k->dir);
	assert_int_equal(sheaf_open(&other.store, other.url, NULL, &other.err), 0);
	other.time_us = t;
	say(&other, "s", "e1", "user", "pears");
	say(&other, "s", "e2", "user", "plums");
	sheaf_close(other.store);
	sheaf_search_close(k->search);
	sheaf_close(k->store);
	snprintf(from, sizeof(from), "%s/other/s.jsonl", k->dir);
	snprintf(to, sizeof(to), "%s/store/s.jsonl", k->dir);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(sheaf_open(&k->store, k->url, NULL, &k->err), 0);
	assert_int_equal(sheaf_search_open(&k->search, k->store, NULL, &k->err), 0);
	finds(k, "apple", "");
	finds(k, "pears", "s/e1");
	finds(k, "plums", "s/e2");
}

/* A record is found once, where it is stored; and in a fork when only that can be opened. */
static void test_forks(void **state)
{
	kit *k = *state;
	sheaf_key key = sheaf_key_of("fork"), second = sheaf_key_of("fork2");
	sheaf_session *fork, *again;
	say(k, "s", "e1", "user", "trunk");
	say(k, "s", "e2", "user", "twig");
	sheaf_session *s = kit_session(k, "s");
	assert_int_equal(sheaf_session_fork(&fork, s, sheaf_str_of("e1"), &key, NULL, &k->err), 0);
	say(k, "fork", "f1", "user", "leaf");
	assert_int_equal(
		sheaf_session_fork(&again, fork, sheaf_str_of("f1"), &second, NULL, &k->err), 0);
	finds(k, "trunk", "s/e1");
	finds(k, "leaf", "fork/f1");
	sheaf_session_close(s);
	sheaf_session_close(fork);
	sheaf_session_close(again);
	drop(k, "s");
	finds(k, "twig", "");
	finds(k, "trunk", "fork2/e1"); /* the newest that reads it */
	drop(k, "fork2");
	finds(k, "trunk", "fork/e1");
	finds(k, "leaf", "fork/f1");
	kit_again(k, true);
	finds(k, "trunk", "fork/e1");
	drop(k, "fork");
	finds(k, "trunk", "");
	assert_int_equal(files_with(k->dir, "trunk"), 0);
}

/* ---- Rebuilt, it says the same ------------------------------------------------------ */

static uint64_t seed;

static unsigned dice(unsigned sides)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % sides;
}

static void random_text(buf *out)
{
	static const char *const words[] = {"alpha",   "beta",         "gamma",       "delta",
	                                    "epsilon", "zeta",         "eta",         "theta",
	                                    "検索",    "日本語の文章", "parse_table", "parseTable",
	                                    "src/a.c", "the",          "name",        "猫が好き"};
	for (unsigned n = 1 + dice(12); n != 0; n--) {
		buf_str(out, sheaf_str_of(words[dice(16)]));
		buf_char(out, dice(5) == 0 ? '\n' : ' ');
	}
	buf_nul(out);
}

static void random_append(kit *k, const char *session, int number)
{
	static const char *const roles[] = {"user", "assistant", "tool", "system"};
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	char id[32], call[32];
	snprintf(id, sizeof(id), "e%d", number);
	snprintf(call, sizeof(call), "c%d", (int)dice(5));
	random_text(&text);
	k->time_us = NOW_US - (int64_t)dice(200) * 43200000000;
	sheaf_message *m = sheaf_message_new(roles[dice(4)]);
	if (dice(4) == 0)
		sheaf_message_tool_use(m, sheaf_str_of(call), sheaf_str_of("bash"),
		                       buf_view(&text));
	else if (dice(4) == 0)
		sheaf_message_tool_result(m, sheaf_str_of(call), (sheaf_str){NULL, 0},
		                          buf_view(&text), 0);
	else
		sheaf_message_text(m, buf_view(&text));
	put(k, session, id, m);
}

static void random_fork(kit *k, const char *from, int number)
{
	char id[32];
	sheaf_session *s = kit_session(k, from), *fork;
	sheaf_records *records;
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	sheaf_session_options made = SHEAF_SESSION_OPTIONS_INIT;
	made.created_us = k->time_us;
	snprintf(id, sizeof(id), "f%d", number);
	sheaf_key key = sheaf_key_of(id);
	o.kinds = SHEAF_KIND_BIT(SHEAF_KIND_MESSAGE);
	assert_int_equal(sheaf_session_records(&records, s, &o, &k->err), 0);
	if (records->count != 0) {
		sheaf_str at = records->items[dice((unsigned)records->count)]->id;
		assert_int_equal(sheaf_session_fork(&fork, s, at, &key, &made, &k->err), 0);
		sheaf_session_close(fork);
	}
	sheaf_records_free(records);
	sheaf_session_close(s);
}

/* Whether a deleted session still holds this key, for its forks. */
static bool is_hidden(kit *k, const char *id)
{
	sheaf_key key = sheaf_key_of(id);
	sheaf_session *s = NULL;
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.created_us = k->time_us;
	int rc = sheaf_session_open(&s, k->store, &key, &o, &k->err);
	sheaf_session_close(s);
	return rc == SHEAF_EXISTS;
}

static void random_step(kit *k, int number)
{
	char id[32];
	unsigned what = dice(20);
	snprintf(id, sizeof(id), "s%u", dice(6));
	if (is_hidden(k, id))
		return;
	if (what == 0) {
		drop(k, id);
	} else if (what == 1) {
		sheaf_session *s = kit_session(k, id);
		_cleanup_(buf_free) buf name = BUF_INIT(SIZE_MAX);
		random_text(&name);
		assert_int_equal(sheaf_session_rename(s, buf_view(&name), (sheaf_str){NULL, 0},
		                                      NULL, NULL, &k->err),
		                 0);
		sheaf_session_close(s);
	} else if (what == 2) {
		random_fork(k, id, number);
	} else {
		random_append(k, id, number);
	}
	if (dice(4) == 0)
		sheaf_hits_free(run_query(k, "alpha"));
}

static void test_rebuilt(void **state)
{
	for (uint64_t n = 1; n <= 5; n++) {
		kit *k = *state;
		if (n != 1) {
			kit_end(k);
			kit_begin(k, "jsonl:");
		}
		seed = n * 7919;
		for (int i = 0; i < 150; i++)
			random_step(k, i);
		k->q.limit = 100;
		char *followed = answers(k, questions);
		kit_again(k, true);
		char *rebuilt = answers(k, questions);
		assert_string_equal(followed, rebuilt);
		assert_non_null(strstr(followed, "#"));
		free(followed);
		free(rebuilt);
	}
}

/* The same in memory as in a file. */
static void test_stores(void **state)
{
	char *said[2];
	kit_end(*state);
	for (int i = 0; i < 2; i++) {
		kit k;
		kit_begin(&k, i == 0 ? "memory:" : "jsonl:");
		seed = 4;
		for (int n = 0; n < 100; n++)
			random_step(&k, n);
		said[i] = answers(&k, questions);
		kit_end(&k);
	}
	assert_string_equal(said[0], said[1]);
	free(said[0]);
	free(said[1]);
	kit_begin(*state, "memory:");
}

/* ---- Several processes ------------------------------------------------------------------ */

static void fill(kit *k, int sessions, int messages)
{
	for (int i = 0; i < sessions; i++)
		for (int n = 0; n < messages; n++) {
			char id[32];
			snprintf(id, sizeof(id), "s%d", i);
			random_append(k, id, n);
		}
}

static void child_search(const kit *parent, int rounds)
{
	kit k = *parent;
	k.store = NULL;
	k.search = NULL;
	for (int i = 0; i < rounds; i++) {
		sheaf_hits *hits = NULL;
		if (sheaf_open(&k.store, k.url, NULL, &k.err) != 0 ||
		    sheaf_search_open(&k.search, k.store, NULL, &k.err) != 0)
			_exit(2);
		k.q.text = sheaf_str_of("alpha");
		if (sheaf_search_run(&hits, k.search, &k.q, &k.err) != 0) {
			fprintf(stderr, "child: %s\n", k.err.message);
			_exit(3);
		}
		sheaf_hits_free(hits);
		sheaf_search_close(k.search);
		sheaf_close(k.store);
	}
	_exit(0);
}

static void test_processes(void **state)
{
	kit *k = *state;
	pid_t pids[3];
	seed = 11;
	fill(k, 20, 10);
	for (int i = 0; i < 3; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			child_search(k, 8);
	}
	for (int i = 0; i < 30; i++) {
		random_step(k, 1000 + i);
		sheaf_hits_free(run_query(k, "beta"));
	}
	for (int i = 0; i < 3; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	char *followed = answers(k, questions);
	kit_again(k, true);
	char *rebuilt = answers(k, questions);
	assert_string_equal(followed, rebuilt);
	free(followed);
	free(rebuilt);
}

/* Killed in the middle of it, at many moments. */
static void test_killed(void **state)
{
	kit *k = *state;
	seed = 13;
	fill(k, 30, 20);
	for (int i = 0; i < 12; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			kit c = *k;
			sheaf_search_options o = SHEAF_SEARCH_OPTIONS_INIT;
			o.rebuild = i == 0;
			if (sheaf_open(&c.store, c.url, NULL, &c.err) != 0 ||
			    sheaf_search_open(&c.search, c.store, &o, &c.err) != 0)
				_exit(2);
			_exit(sheaf_search_update(c.search, &c.q, NULL, &c.err) == 0 ? 0 : 3);
		}
		usleep((useconds_t)(1000 + i * 9000));
		(void)kill(pid, SIGKILL);
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
		random_append(k, "s1", 5000 + i);
	}
	kit_again(k, false);
	char *followed = answers(k, questions);
	kit_again(k, true);
	char *rebuilt = answers(k, questions);
	assert_string_equal(followed, rebuilt);
	free(followed);
	free(rebuilt);
}

static int stop_at_once(void *ctx, uint64_t done, uint64_t total)
{
	uint64_t *seen = ctx;
	seen[0] = done;
	seen[1] = total;
	return 1;
}

static void test_cancelled(void **state)
{
	kit *k = *state;
	uint64_t seen[2] = {0, 0};
	sheaf_search_options o = SHEAF_SEARCH_OPTIONS_INIT;
	say(k, "s", "e1", "user", "alpha");
	say(k, "t", "e1", "user", "alpha");
	sheaf_search_close(k->search);
	o.progress = stop_at_once;
	o.ctx = seen;
	assert_int_equal(sheaf_search_open(&k->search, k->store, &o, &k->err), 0);
	assert_int_equal(sheaf_search_update(k->search, &k->q, NULL, &k->err), SHEAF_CANCELLED);
	assert_int_equal(seen[0], 1);
	assert_int_equal(seen[1], 2);
	kit_again(k, false);
	finds(k, "alpha", "t/e1 s/e1");
}

/* Every allocation of the library fails once: refused or answered, and nothing is lost. */
static void test_memory(void **state)
{
	kit k;
	(void)state;
	kit_init(&k, "jsonl:");
	fail_alloc_install();
	for (size_t n = 1;; n++) {
		kit_init(&k, "jsonl:");
		assert_int_equal(sheaf_open(&k.store, k.url, NULL, &k.err), 0);
		say(&k, "s", "e1", "user", "alpha \\n beta");
		fail_alloc_at(n, false);
		sheaf_hits *hits = NULL;
		k.q.text = sheaf_str_of("alpha");
		int rc = sheaf_search_open(&k.search, k.store, NULL, &k.err);
		if (rc == 0)
			rc = sheaf_search_run(&hits, k.search, &k.q, &k.err);
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		assert_true(rc == 0 || rc == SHEAF_NOMEM || rc == SHEAF_STORAGE);
		assert_true(rc == 0 || hits == NULL);
		if (rc == 0)
			assert_int_equal(hits->count, 1);
		sheaf_hits_free(hits);
		if (k.search == NULL)
			assert_int_equal(sheaf_search_open(&k.search, k.store, NULL, &k.err), 0);
		finds(&k, "alpha", "s/e1");
		kit_end(&k);
		if (!hit)
			break;
	}
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_appends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_appends, set_up_memory, tear_down),
		cmocka_unit_test_setup_teardown(test_settled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_delete, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_vanished, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_forks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rebuilt, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stores, set_up_memory, tear_down),
		cmocka_unit_test_setup_teardown(test_processes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cancelled, set_up, tear_down),
		cmocka_unit_test(test_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
