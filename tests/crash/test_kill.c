/*
 * kill -9 at random moments, and eight processes on one session: nothing that
 * was acknowledged is lost, numbers have no gap, no line is glued.
 *
 *     test_kill [kills [seed]]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sheaf.h"
#include "support/play.h"

static unsigned kills = 2000;
static uint64_t seed = 1;
static sheaf_error err;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static void open_at(const char *url, const char *name, sheaf_store **store, sheaf_session **s)
{
	sheaf_key key = sheaf_key_of(name);
	int rc = sheaf_open(store, url, NULL, &err);
	if (rc == 0)
		rc = sheaf_session_open(s, *store, &key, NULL, &err);
	if (rc)
		fail_msg("open: %s: %s", sheaf_code_name(rc), err.message);
}

/* What a record of this number holds: mostly small, now and then up to 1 MB. */
static size_t text_length(uint64_t n)
{
	switch (n % 16) {
	case 3:
		return 4096 + n % 7;
	case 7:
		return 60000 + n % 1000;
	case 11:
		return n % 64 == 11 ? 1 << 20 : 1000;
	default:
		return 1 + n % 400;
	}
}

static char *text_of(uint64_t n)
{
	size_t len = text_length(n);
	char *text = malloc(len + 1);
	memset(text, 'a' + (int)(n % 26), len);
	text[len] = 0;
	return text;
}

/* What the parent is told after each acknowledgement. */
typedef struct ack {
	uint64_t number;
	uint64_t seq;
	uint64_t batch; /* records of it */
} ack;

static int append_number(sheaf_session *s, uint64_t n, uint64_t batch, uint64_t *seq)
{
	sheaf_appended out = SHEAF_APPENDED_INIT;
	sheaf_batch *b = sheaf_batch_new();
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < batch; i++) {
		char id[40], delta[80], *text = text_of(n + i);
		sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
		/* Two scopes that must never part: one in the log, one in a file of its own. */
		snprintf(delta, sizeof(delta), "{\"n\":%llu,\"user:n\":%llu}",
		         (unsigned long long)n, (unsigned long long)n);
		if (i == 0 && n % 3 == 0)
			o.state_delta = sheaf_str_of(delta);
		sheaf_message *m = sheaf_message_new("user");
		snprintf(id, sizeof(id), "n-%llu", (unsigned long long)(n + i));
		o.id = sheaf_str_of(id);
		sheaf_message_text(m, sheaf_str_of(text));
		rc = sheaf_batch_message(b, m, &o, &err);
		sheaf_message_free(m);
		free(text);
	}
	if (rc == 0)
		rc = sheaf_session_append_batch(s, b, NULL, &out, &err);
	sheaf_batch_free(b);
	*seq = out.seq;
	return rc;
}

/* Appends until it is killed. */
static void child(const char *url, const char *name, uint64_t from, int pipe_to)
{
	sheaf_store *store;
	sheaf_session *s;
	sheaf_key key = sheaf_key_of(name);

	if (sheaf_open(&store, url, NULL, &err) || sheaf_session_open(&s, store, &key, NULL, &err))
		_exit(3);
	for (uint64_t n = from;;) {
		ack a = {n, 0, n % 5 == 4 ? 3 : 1};
		if (append_number(s, n, a.batch, &a.seq))
			_exit(4);
		if (write(pipe_to, &a, sizeof(a)) != sizeof(a))
			_exit(5);
		n += a.batch;
	}
}

static void check_acked(sheaf_session *s, const ack *a)
{
	for (uint64_t i = 0; i < a->batch; i++) {
		char id[40], *text = text_of(a->number + i);
		sheaf_records *r;
		snprintf(id, sizeof(id), "n-%llu", (unsigned long long)(a->number + i));
		int rc = sheaf_session_get(&r, s, sheaf_str_of(id), &err);
		if (rc)
			fail_msg("%s was acknowledged and is lost: %s", id, sheaf_code_name(rc));
		assert_int_equal(r->items[0]->seq, a->seq - a->batch + 1 + i);
		sheaf_str got = r->items[0]->message->parts[0]->text;
		assert_int_equal(got.len, strlen(text));
		assert_memory_equal(got.ptr, text, got.len);
		sheaf_records_free(r);
		free(text);
	}
}

/* What the session has of the user's state is what it has itself. */
static void check_state(sheaf_session *s)
{
	sheaf_state *state;
	assert_int_equal(sheaf_session_state_all(&state, s, &err), 0);
	/* Before the session's first one the user may have that of another. */
	if (state->count == 2 && (state->items[0]->value.len != state->items[1]->value.len ||
	                          memcmp(state->items[0]->value.ptr, state->items[1]->value.ptr,
	                                 state->items[0]->value.len) != 0))
		fail_msg("after a kill the session says %s, the user %s",
		         state->items[0]->value.ptr, state->items[1]->value.ptr);
	sheaf_state_free(state);
}

/* After a kill: all acknowledged are there, nothing is damaged, and it goes on. */
static uint64_t after_kill(const char *url, const char *name, const ack *acks, size_t count)
{
	sheaf_store *store;
	sheaf_session *s;
	sheaf_report *report;
	sheaf_head_view *h;
	sheaf_key key = sheaf_key_of(name);

	open_at(url, name, &store, &s);
	for (size_t i = 0; i < count; i++)
		check_acked(s, &acks[i]);
	check_state(s);
	assert_int_equal(sheaf_store_check(&report, store, &key, &err), 0);
	for (size_t i = 0; i < report->count; i++)
		if (report->problems[i]->what != SHEAF_PROBLEM_KEPT)
			fail_msg("after a kill: %.*s", (int)report->problems[i]->detail.len,
			         report->problems[i]->detail.ptr);
	sheaf_report_free(report);
	assert_int_equal(sheaf_session_head(&h, s, &err), 0);
	uint64_t revision = h->info->revision;
	assert_int_equal(h->info->records, revision);
	sheaf_head_view_free(h);
	sheaf_session_close(s);
	sheaf_close(store);
	return revision;
}

static size_t read_acks(int from, ack **acks, size_t have)
{
	ack a;
	while (read(from, &a, sizeof(a)) == sizeof(a)) {
		*acks = realloc(*acks, (have + 1) * sizeof(a));
		(*acks)[have++] = a;
	}
	return have;
}

static void kill_once(const char *url, const char *name, uint64_t from, ack **acks, size_t *count)
{
	int fd[2], status;
	assert_int_equal(pipe(fd), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(fd[0]);
		child(url, name, from, fd[1]);
	}
	close(fd[1]);
	usleep((useconds_t)(next_random() % 4000));
	kill(pid, SIGKILL);
	*count = read_acks(fd[0], acks, *count);
	close(fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		fail_msg("the child ended by itself with %d", WEXITSTATUS(status));
}

#define KILLS_PER_SESSION 20

static void nothing_acknowledged_is_lost(void **state)
{
	char dir[256], url[300], name[32];
	size_t total = 0;
	(void)state;
	scratch_dir(dir, "kill");
	snprintf(url, sizeof(url), "jsonl:%s?durability=process", dir);
	unsigned rounds = (unsigned)(kills * (test_scale() < 1 ? test_scale() : 1));
	for (unsigned done = 0; done < rounds;) {
		ack *acks = NULL;
		size_t count = 0;
		uint64_t revision = 0;
		snprintf(name, sizeof(name), "s%u", done);
		for (unsigned k = 0; k < KILLS_PER_SESSION && done < rounds; k++, done++) {
			size_t before = count;
			/* Numbers no earlier child can have used. */
			kill_once(url, name, ((uint64_t)done << 24) + next_random() % 97, &acks,
			          &count);
			revision = after_kill(url, name, acks + before, count - before);
		}
		/* What was acknowledged before all the later kills is still there. */
		assert_int_equal(after_kill(url, name, acks, count), revision);
		total += count;
		free(acks);
		tree_remove(dir);
	}
	printf("%u kills, %zu acknowledged appends, none lost\n", rounds, total);
	assert_true(total > 0);
}

/* ---- Eight at once ---------------------------------------------------------------------------- */

#define PROCESSES 8
#define APPENDS 2000

static void worker(const char *url, int which, int appends)
{
	sheaf_store *store;
	sheaf_session *s;
	sheaf_key key = sheaf_key_of("one");
	if (sheaf_open(&store, url, NULL, &err) || sheaf_session_open(&s, store, &key, NULL, &err))
		_exit(1);
	for (int i = 0; i < appends; i++) {
		char id[40];
		sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
		sheaf_message *m = sheaf_message_new("user");
		snprintf(id, sizeof(id), "p%d-%d", which, i);
		o.id = sheaf_str_of(id);
		sheaf_message_text(m, sheaf_str_of(id));
		if (sheaf_session_append_message(s, m, &o, NULL, NULL, &err))
			_exit(2);
		sheaf_message_free(m);
	}
	sheaf_session_close(s);
	sheaf_close(store);
	_exit(0);
}

static void check_page(const sheaf_records *r, uint64_t *seq, int next[PROCESSES])
{
	for (size_t i = 0; i < r->count; i++) {
		const sheaf_entry *e = r->items[i];
		int which, n;
		char id[64];
		assert_false(e->damaged);
		assert_int_equal(e->seq, ++*seq);
		assert_int_equal(e->parent_seq, e->seq - 1);
		snprintf(id, sizeof(id), "%.*s", (int)e->id.len, e->id.ptr);
		assert_int_equal(sscanf(id, "p%d-%d", &which, &n), 2);
		assert_int_equal(n, next[which]++);
	}
}

static void eight_processes_one_session(void **state)
{
	char dir[256], url[300];
	pid_t pids[PROCESSES];
	int appends = (int)(APPENDS * (test_scale() < 1 ? test_scale() : 1)), next[PROCESSES] = {0};
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	sheaf_store *store;
	sheaf_session *s;
	uint64_t seq = 0;
	(void)state;

	scratch_dir(dir, "eight");
	snprintf(url, sizeof(url), "jsonl:%s?durability=process", dir);
	fflush(NULL);
	for (int i = 0; i < PROCESSES; i++)
		if ((pids[i] = fork()) == 0)
			worker(url, i, appends);
	for (int i = 0; i < PROCESSES; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	open_at(url, "one", &store, &s);
	o.limit = 1000;
	do {
		sheaf_records *r;
		assert_int_equal(sheaf_session_records(&r, s, &o, &err), 0);
		check_page(r, &seq, next);
		o.from_seq = r->next_seq;
		sheaf_records_free(r);
	} while (o.from_seq);
	assert_int_equal(seq, (uint64_t)appends * PROCESSES);
	for (int i = 0; i < PROCESSES; i++)
		assert_int_equal(next[i], appends);
	sheaf_session_close(s);
	sheaf_close(store);
	tree_remove(dir);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_acknowledged_is_lost),
		cmocka_unit_test(eight_processes_one_session),
	};
	if (argc > 1)
		kills = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10) | 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
