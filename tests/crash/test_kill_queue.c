/*
 * Sixteen processes on one queue, each killed at a random moment: what was
 * acknowledged to a producer is delivered, what a worker acknowledged is never
 * given again.
 *
 *     test_kill_queue [kills [seed]]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sheaf.h"
#include "support/play.h"

#define PROCESSES 16
#define LEASE_US 50000
#define NUMBERS 1000000u

static unsigned kills = 800;
static uint64_t seed = 1;
static sheaf_error err;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static int64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* What a process tells of itself once a call has returned. */
typedef struct event {
	char kind; /* 'p' put, 'g' given, 'd' done */
	uint32_t number;
	int64_t began_us;
	int64_t ended_us;
} event;

/* What is known of an item. */
typedef struct fate {
	bool put;
	bool given;
	int64_t given_us; /* the last claim that gave it began then */
	bool done;
	int64_t done_us; /* its ack had returned */
} fate;

static fate *fates;

static void tell(int to, char kind, uint32_t number, int64_t began_us)
{
	event e = {kind, number, began_us, now_us()};
	if (write(to, &e, sizeof(e)) != sizeof(e))
		_exit(5);
}

static int open_both(const char *url, sheaf_store **store, sheaf_session **s)
{
	sheaf_key key = sheaf_key_of("s");
	int rc = sheaf_open(store, url, NULL, &err);
	return rc ? rc : sheaf_session_open(s, *store, &key, NULL, &err);
}

static int put_one(sheaf_session *s, uint32_t number, int to)
{
	sheaf_enqueue_options o = SHEAF_ENQUEUE_OPTIONS_INIT;
	char id[16], content[3000];
	int64_t began = now_us();
	snprintf(id, sizeof(id), "%u", number);
	memset(content, 'x', sizeof(content));
	o.id = sheaf_str_of(id);
	int rc = sheaf_session_enqueue(s, (sheaf_str){content, number % sizeof(content)}, &o, NULL,
	                               &err);
	if (rc == 0)
		tell(to, 'p', number, began);
	return rc == SHEAF_LIMIT ? 0 : rc;
}

/* Claims up to three and acknowledges them. Returns how many, or a code. */
static int work(sheaf_session *s, int to)
{
	sheaf_claim_options o = SHEAF_CLAIM_OPTIONS_INIT;
	sheaf_queue_items *items = NULL;
	int64_t began = now_us();
	o.limit = 3;
	o.lease_us = LEASE_US;
	int rc = sheaf_session_claim(&items, s, &o, &err);
	if (rc)
		return rc;
	int count = (int)items->count;
	for (size_t i = 0; i < items->count; i++)
		tell(to, 'g', (uint32_t)strtoul(items->items[i]->id.ptr, NULL, 10), began);
	began = now_us();
	/* Only what surely was not taken over is told of as done. */
	rc = count ? sheaf_session_ack(s, items->token, &err) : 0;
	if (rc == 0 && (count == 1 || now_us() - began < LEASE_US / 2))
		for (size_t i = 0; i < items->count; i++)
			if (items->items[i]->claimed_until_us)
				tell(to, 'd', (uint32_t)strtoul(items->items[i]->id.ptr, NULL, 10),
				     began);
	sheaf_queue_items_free(items);
	return rc && rc != SHEAF_STALE ? rc : count;
}

static void child(const char *url, uint32_t from, int to)
{
	sheaf_store *store;
	sheaf_session *s;
	if (open_both(url, &store, &s))
		_exit(3);
	for (uint32_t n = from;; n++)
		if (put_one(s, n, to) || work(s, to) < 0) {
			fprintf(stderr, "%s: %s\n", sheaf_code_name(err.code), err.message);
			_exit(4);
		}
}

static void read_events(int from)
{
	event e;
	while (read(from, &e, sizeof(e)) == sizeof(e)) {
		fate *f = &fates[e.number];
		if (e.kind == 'p')
			f->put = true;
		if (e.kind == 'g') {
			f->given = true;
			if (e.began_us > f->given_us)
				f->given_us = e.began_us;
		}
		if (e.kind == 'd') {
			f->done = true;
			f->done_us = e.ended_us;
		}
	}
}

static void check_undamaged(const char *url)
{
	sheaf_store *store;
	sheaf_session *s;
	sheaf_report *report;
	assert_int_equal(open_both(url, &store, &s), 0);
	assert_int_equal(sheaf_store_check(&report, store, NULL, &err), 0);
	for (size_t i = 0; i < report->count; i++)
		if (report->problems[i]->what != SHEAF_PROBLEM_KEPT)
			fail_msg("at the end: %.*s", (int)report->problems[i]->detail.len,
			         report->problems[i]->detail.ptr);
	sheaf_report_free(report);
	sheaf_session_close(s);
	sheaf_close(store);
}

/* One that lives works off what the dead left. */
static void drain(const char *url)
{
	sheaf_store *store;
	sheaf_session *s;
	sheaf_queue_items *left = NULL;
	int fd[2], rc = 0;
	int64_t end = now_us() + 60000000;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(open_both(url, &store, &s), 0);
	do {
		sheaf_queue_items_free(left);
		rc = work(s, fd[1]);
		read_events(fd[0]);
		assert_int_equal(sheaf_session_pending(&left, s, &err), 0);
		if (rc == 0)
			usleep(2000);
	} while (rc >= 0 && left->count && now_us() < end);
	assert_true(rc >= 0);
	assert_int_equal(left->count, 0);
	sheaf_queue_items_free(left);
	sheaf_session_close(s);
	sheaf_close(store);
	close(fd[0]);
	close(fd[1]);
}

typedef struct process {
	pid_t pid;
	int fd;
	int64_t dies_us;
} process;

static void start(process *p, const char *url, uint32_t from)
{
	int fd[2];
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
	fflush(NULL);
	p->pid = fork();
	if (p->pid == 0) {
		close(fd[0]);
		child(url, from, fd[1]);
	}
	close(fd[1]);
	p->fd = fd[0];
	p->dies_us = now_us() + 1000 + (int64_t)(next_random() % 40000);
}

static void finish(process *p)
{
	int status;
	kill(p->pid, SIGKILL);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	if (WIFEXITED(status))
		fail_msg("a process ended by itself with %d", WEXITSTATUS(status));
	read_events(p->fd);
	close(p->fd);
	p->pid = 0;
}

static void delivered_and_never_again(void **state)
{
	char dir[256], url[300];
	process who[PROCESSES] = {{0}};
	unsigned put = 0, done = 0, number = 0;
	(void)state;
	scratch_dir(dir, "queue");
	snprintf(url, sizeof(url), "jsonl:%s", dir);
	fates = calloc(NUMBERS, sizeof(*fates));
	unsigned rounds = (unsigned)(kills * (test_scale() < 1 ? test_scale() : 1));
	for (unsigned killed = 0; killed < rounds;) {
		for (unsigned i = 0; i < PROCESSES; i++) {
			if (who[i].pid == 0) {
				start(&who[i], url, number);
				number += NUMBERS / (rounds + PROCESSES);
			}
			read_events(who[i].fd);
			if (now_us() >= who[i].dies_us) {
				finish(&who[i]);
				killed++;
			}
		}
		usleep(500);
	}
	for (unsigned i = 0; i < PROCESSES; i++)
		if (who[i].pid)
			finish(&who[i]);
	drain(url);
	check_undamaged(url);
	for (unsigned i = 0; i < NUMBERS; i++) {
		const fate *f = &fates[i];
		put += f->put;
		done += f->done;
		/* It is told of before it is acknowledged, so nobody can have had it in silence. */
		if (f->put && !f->given)
			fail_msg("item %u was acknowledged to its producer and is lost", i);
		if (f->done && f->given_us > f->done_us)
			fail_msg("item %u was given after it was done", i);
	}
	printf("%u kills, %u items acknowledged, %u told of as done\n", rounds, put, done);
	assert_true(put > 0 && done > 0);
	free(fates);
	tree_remove(dir);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(delivered_and_never_again)};
	if (argc > 1)
		kills = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10) | 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
