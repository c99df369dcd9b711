/* Importing: sessions of seven kinds of agents' files, against yyjson reading the same files. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <yyjson.h>

#include "bench.h"
#include "generate.h"

/* Sessions are imported and parsed in blocks, in turn; each block lies in a directory of its own. */
enum {
	BLOCKS = 20,
	MESSAGES = 100
};

static double process_cpu_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

typedef struct spent {
	double wall, cpu; /* µs */
} spent;

static spent spent_now(void)
{
	return (spent){bench_now_us(), process_cpu_us()};
}

static spent spent_since(spent began)
{
	spent now = spent_now();
	return (spent){now.wall - began.wall, now.cpu - began.cpu};
}

/* ---- Bare -------------------------------------------------------------------- */

static void parse(const char *text, size_t len)
{
	yyjson_doc *doc = yyjson_read(text, len, 0);
	if (doc == NULL)
		bench_check(SHEAF_FORMAT, NULL, "parse");
	yyjson_doc_free(doc);
}

static void parse_file(int dir, const char *name, char **room, size_t *room_len)
{
	struct stat st;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		bench_check(SHEAF_NOT_FOUND, NULL, name);
	if ((size_t)st.st_size > *room_len) {
		*room_len = (size_t)st.st_size * 2;
		free(*room);
		*room = malloc(*room_len);
	}
	if (*room == NULL || read(fd, *room, (size_t)st.st_size) != st.st_size)
		bench_check(SHEAF_STORAGE, NULL, name);
	close(fd);
	const char *p = *room, *end = p + st.st_size;
	if (strcmp(name + strlen(name) - 5, ".json") == 0) {
		parse(p, (size_t)st.st_size);
		return;
	}
	for (const char *next; p < end; p = next + 1) {
		next = memchr(p, '\n', (size_t)(end - p));
		parse(p, (size_t)(next - p));
	}
}

static spent parse_all(const char *path)
{
	char *room = NULL;
	size_t room_len = 0;
	spent began = spent_now();
	DIR *d = opendir(path);
	struct dirent *e;
	while (d != NULL && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			parse_file(dirfd(d), e->d_name, &room, &room_len);
	if (d != NULL)
		closedir(d);
	free(room);
	return spent_since(began);
}

/* ---- Sheaf ------------------------------------------------------------------- */

static spent import_all(sheaf_store *store, const char *path, size_t sessions, long threads)
{
	sheaf_import_report *report;
	sheaf_error err;
	sheaf_import_options how = SHEAF_IMPORT_OPTIONS_INIT;
	how.threads = (int32_t)threads;
	spent began = spent_now();
	bench_check(sheaf_import(&report, store, sheaf_str_of(path), &how, &err), &err, "import");
	spent took = spent_since(began);
	for (size_t i = 0; i < report->session_count; i++)
		if (report->sessions[i]->state != SHEAF_IMPORT_NEW)
			bench_check(SHEAF_EXISTS, NULL, "import a session for the first time");
	if (report->session_count != sessions || report->problem_total != 0)
		bench_check(SHEAF_FORMAT, NULL,
		            report->problem_total != 0 ? report->problems[0]->text.ptr
		                                       : "import every session");
	sheaf_import_report_free(report);
	return took;
}

static uint64_t count_messages(sheaf_store *store)
{
	sheaf_list *list;
	sheaf_error err;
	sheaf_list_options options = SHEAF_LIST_OPTIONS_INIT;
	uint64_t count = 0;
	char cursor[1024] = "";
	options.limit = 1000;
	for (;;) {
		options.cursor = sheaf_str_of(cursor);
		bench_check(sheaf_store_list(&list, store, &options, &err), &err, "list");
		for (size_t i = 0; i < list->count; i++)
			count += list->items[i]->messages;
		snprintf(cursor, sizeof(cursor), "%.*s", (int)list->cursor.len, list->cursor.ptr);
		sheaf_list_free(list);
		if (cursor[0] == '\0')
			return count;
	}
}

int bench_import(bench *b)
{
	size_t each = b->quick ? 14 : 500;
	long threads = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1; /* as the command does */
	char url[512], dir[BLOCKS][560];
	spent ours, bare;
	double speed[BLOCKS], speed_bare[BLOCKS], cpu[BLOCKS], cpu_bare[BLOCKS], bytes[BLOCKS];
	sheaf_store *store;
	sheaf_error err;

	for (size_t i = 0; i < BLOCKS; i++) {
		snprintf(dir[i], sizeof(dir[i]), "%s/sources-%zu", b->dir, i);
		bytes[i] = 0;
		if (mkdir(dir[i], 0700) != 0)
			exit(1);
		for (size_t k = 0; k < each; k++)
			bytes[i] += (double)generate_session(dir[i], i * each + k, MESSAGES, 0);
	}
	bench_url(b, url, "import", "");
	bench_check(sheaf_open(&store, url, NULL, &err), &err, "open a store");
	for (size_t i = 0; i < BLOCKS; i++) {
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++) {
			if (k ^ first)
				ours = import_all(store, dir[i], each, threads);
			else
				bare = parse_all(dir[i]);
		}
		/* Bytes a microsecond are MB a second. */
		speed[i] = bytes[i] / ours.wall;
		cpu[i] = bytes[i] / ours.cpu;
		speed_bare[i] = bytes[i] / bare.wall;
		cpu_bare[i] = bytes[i] / bare.cpu;
	}
	bench_report(b, "import", bench_median(speed, BLOCKS), "MB/s",
	             bench_median(speed_bare, BLOCKS), 0.3, true);
	bench_report(b, "import-cpu", bench_median(cpu, BLOCKS), "MB/s",
	             bench_median(cpu_bare, BLOCKS), 0, true);
	bench_report(b, "import-messages", (double)count_messages(store), "",
	             (double)(BLOCKS * each * MESSAGES), 0, true);
	sheaf_close(store);
	for (size_t i = 0; i < BLOCKS; i++)
		bench_drop_tree(dir[i]);
	return 0;
}
