/*
 * sheaf-conformance URL [--case NAME] [--list] [--histories N] [--seed S] [--ops N] [--jobs N]
 *
 * Runs every case against a fresh place in the store that URL names, or, with
 * --histories, seeded random histories on memory, on that store and on a naive
 * model in lockstep. Prints a line a case; exits 1 if anything failed. NAME is
 * a glob with ksh's extensions: '!(tree_*|path_*)' leaves those out. With
 * --jobs so many processes take the cases, each the next that nobody has.
 * SHEAF_TRACE=1 prints every operation of a history with its answer.
 */
#include <fnmatch.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "histories.h"
#include "suite.h"

#define CASE_SECONDS 600

typedef struct arguments {
	const char *url;
	const char *pattern;
	bool list;
	bool histories;
	unsigned jobs;
	histories_options run;
} arguments;

static const char *running = "";

static void say(const char *text)
{
	ssize_t n = write(STDOUT_FILENO, text, strlen(text));
	(void)n;
}

/* A case that crashes or hangs is named before the program ends. */
static void crashed(int number)
{
	say("not ok ");
	say(running);
	say(number == SIGALRM ? " hung\n" : " crashed\n");
	signal(number, SIG_DFL);
	raise(number);
}

static int usage(void)
{
	fputs("usage: sheaf-conformance URL [--case NAME] [--list] [--jobs N]\n"
	      "       sheaf-conformance URL --histories N [--seed S] [--ops N] [--jobs N]\n",
	      stderr);
	return 2;
}

static bool parse(arguments *a, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		if (strcmp(argv[i], "--list") == 0) {
			a->list = true;
			continue;
		}
		if (argv[i][0] != '-' && !a->url) {
			a->url = argv[i];
			continue;
		}
		if (!value)
			return false;
		if (strcmp(argv[i], "--case") == 0) {
			a->pattern = value;
		} else if (strcmp(argv[i], "--histories") == 0) {
			a->histories = true;
			a->run.count = strtoull(value, NULL, 10);
		} else if (strcmp(argv[i], "--seed") == 0) {
			a->run.seed = strtoull(value, NULL, 10);
		} else if (strcmp(argv[i], "--ops") == 0) {
			a->run.ops = (unsigned)strtoul(value, NULL, 10);
		} else if (strcmp(argv[i], "--jobs") == 0) {
			a->jobs = a->run.jobs = (unsigned)strtoul(value, NULL, 10);
		} else {
			return false;
		}
		i++;
	}
	return a->url || a->list;
}

/* What the processes share. */
typedef struct tally {
	atomic_uint next; /* the case nobody has taken yet */
	atomic_uint passed;
	atomic_uint failed;
} tally;

static void run_cases(const arguments *a, tally *shared)
{
	static suite t;
	unsigned mine = atomic_fetch_add(&shared->next, 1);
	unsigned number = 0;
	for (const suite_case *c = suite_first(); c; c = c->next) {
		if (a->pattern && fnmatch(a->pattern, c->name, FNM_EXTMATCH) != 0)
			continue;
		if (number++ != mine)
			continue;
		running = c->name;
		alarm(CASE_SECONDS);
		if (suite_run(&t, a->url, c)) {
			atomic_fetch_add(&shared->passed, 1);
			printf("ok %s\n", c->name);
		} else {
			atomic_fetch_add(&shared->failed, 1);
			printf("not ok %s %s\n", c->name, t.reason);
		}
		alarm(0);
		fflush(stdout);
		mine = atomic_fetch_add(&shared->next, 1);
	}
}

/* Runs the cases in a->jobs processes. One that a crashing case ends has said so, and counts. */
static void run_processes(const arguments *a, tally *shared)
{
	for (unsigned i = 0; i < a->jobs; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			run_cases(a, shared);
			_exit(0);
		}
		if (pid < 0)
			atomic_fetch_add(&shared->failed, 1);
	}
	int status;
	while (wait(&status) > 0)
		if (status != 0)
			atomic_fetch_add(&shared->failed, 1);
}

static int run_all(const arguments *a)
{
	tally *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	if (a->jobs > 1)
		run_processes(a, shared);
	else
		run_cases(a, shared);
	unsigned passed = atomic_load(&shared->passed);
	unsigned failed = atomic_load(&shared->failed);
	printf("%u passed, %u failed\n", passed, failed);
	if (passed + failed == 0) {
		fprintf(stderr, "sheaf-conformance: no case is called %s\n", a->pattern);
		return 2;
	}
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	arguments a = {.run = {.count = 100, .seed = 1, .ops = 100, .jobs = 2}};
	if (!parse(&a, argc, argv))
		return usage();
	if (a.list) {
		for (const suite_case *c = suite_first(); c; c = c->next)
			puts(c->name);
		return 0;
	}
	if (a.histories)
		return histories_run(a.url, &a.run);
	signal(SIGABRT, crashed);
	signal(SIGALRM, crashed);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	signal(SIGSEGV, crashed);
	signal(SIGBUS, crashed);
	signal(SIGFPE, crashed);
#endif
	return run_all(&a);
}
