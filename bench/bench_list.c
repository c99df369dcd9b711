/* Listing: the first page of many sessions, warm and with everything derived deleted. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static void path_of(const char *url, char out[512])
{
	snprintf(out, 512, "%.*s", (int)strcspn(url + 6, "?"), url + 6);
}

static void drop(const char *url)
{
	char path[512];
	path_of(url, path);
	bench_drop_tree(path);
}

/* Sessions of two records. */
static void make_sessions(const char *url, size_t count)
{
	char name[32];
	sheaf_store *store;
	sheaf_session *s;
	sheaf_error err;

	bench_check(sheaf_open(&store, url, NULL, &err), &err, "open a store");
	for (size_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "s%06zu", i);
		sheaf_key key = sheaf_key_of(name);
		bench_check(sheaf_session_open(&s, store, &key, NULL, &err), &err, "open");
		for (int k = 0; k < 2; k++)
			bench_check(sheaf_session_append_text(s, k ? "assistant" : "user",
			                                      (sheaf_str){bench_text(), BENCH_TEXT},
			                                      NULL, &err),
			            &err, "append");
		sheaf_session_close(s);
	}
	sheaf_close(store);
}

/* Opens the store, lists one page, closes: what `sheaf ls` does. Cold, it is all work and no waiting,
 * and CPU time is what a busy machine does not blur. */
static double list_once(const char *url, bool cold)
{
	sheaf_store *store;
	sheaf_list *list;
	sheaf_error err;
	double t = bench_now_us(), cpu = bench_cpu_us();
	bench_check(sheaf_open(&store, url, NULL, &err), &err, "open a store");
	bench_check(sheaf_store_list(&list, store, NULL, &err), &err, "list");
	t = cold ? bench_cpu_us() - cpu : bench_now_us() - t;
	if (list->count != 50)
		bench_check(SHEAF_NOT_FOUND, NULL, "list a full page");
	sheaf_list_free(list);
	sheaf_close(store);
	return t;
}

static void warm(bench *b, const char *name, size_t count, double bar_ms)
{
	enum {
		ROUNDS = 101
	};
	double ms[ROUNDS];
	char url[512];

	bench_url(b, url, name, "?durability=process");
	make_sessions(url, count);
	list_once(url, false);
	for (size_t i = 0; i < ROUNDS; i++)
		ms[i] = list_once(url, false) / 1000;
	bench_report_value(b, name, bench_median(ms, ROUNDS), "ms", bar_ms);
	drop(url);
}

int bench_list_10k(bench *b)
{
	warm(b, "list-10k", 10000, 1);
	return 0;
}

int bench_list_100k(bench *b)
{
	warm(b, "list-100k", b->quick ? 20000 : 100000, 6);
	return 0;
}

/* The bare walk: every name and its size and time. */
static double walk(const char *path)
{
	double t = bench_cpu_us();
	DIR *d = opendir(path);
	struct dirent *e;
	struct statx st;
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' &&
		    statx(dirfd(d), e->d_name, AT_SYMLINK_NOFOLLOW, STATX_SIZE | STATX_MTIME, &st))
			exit(1);
	closedir(d);
	return bench_cpu_us() - t;
}

int bench_list_cold(bench *b)
{
	enum {
		ROUNDS = 31
	};
	size_t rounds = b->quick ? 11 : ROUNDS;
	double ours[ROUNDS], theirs[ROUNDS];
	char url[512], path[512], side[600];

	bench_url(b, url, "list-cold", "?durability=process");
	make_sessions(url, 10000);
	path_of(url, path);
	snprintf(side, sizeof(side), "%s/.sheaf", path);
	for (size_t i = 0; i < rounds; i++)
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++) {
			if (k ^ first) {
				bench_drop_tree(side);
				ours[i] = list_once(url, true);
			} else {
				theirs[i] = walk(path);
			}
		}
	bench_report(b, "list-cold", bench_median(ours, rounds) / 1000, "ms",
	             bench_median(theirs, rounds) / 1000, 2, false);
	drop(url);
	return 0;
}

/* ---- The command ------------------------------------------------------------- */

/* Runs `sheaf ls` as a person does. @return the milliseconds it took, and in `cpu` those of a
 * processor */
static double ls_once(const char *sheaf, const char *store, double *cpu)
{
	struct rusage before, after;
	double t = bench_now_us();
	int status = 1;
	getrusage(RUSAGE_CHILDREN, &before);
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);
		if (null < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
			_exit(1);
		execl(sheaf, "sheaf", "--store", store, "ls", (char *)NULL);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		bench_check(SHEAF_NOT_FOUND, NULL, "run sheaf ls");
	t = bench_now_us() - t;
	getrusage(RUSAGE_CHILDREN, &after);
	*cpu = (double)(after.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_utime.tv_sec -
	                before.ru_stime.tv_sec) *
	               1e3 +
	       (double)(after.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_utime.tv_usec -
	                before.ru_stime.tv_usec) /
	               1e3;
	return t / 1000;
}

int bench_ls(bench *b)
{
	enum {
		ROUNDS = 101
	};
	double ms[ROUNDS], cpu[ROUNDS];
	char url[512], plain[512], self[400];

	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 16);
	if (len <= 0)
		exit(1);
	self[len] = '\0';
	strcpy(strrchr(self, '/') + 1, "sheaf");
	bench_url(b, url, "ls", "?durability=process");
	make_sessions(url, b->quick ? 2000 : 10000);
	snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(url, "?"), url);
	ls_once(self, plain, &cpu[0]);
	for (size_t i = 0; i < ROUNDS; i++)
		ms[i] = ls_once(self, plain, &cpu[i]);
	bench_report_value(b, "ls", bench_median(ms, ROUNDS), "ms", 10);
	bench_report_value(b, "ls-cpu", bench_median(cpu, ROUNDS), "ms", 10);
	drop(url);
	return 0;
}
