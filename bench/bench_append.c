/* Appending: unsynced, synced, and from 64 threads at once, against the bare system calls. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "sheaf/sys/seams.h"

/* One line as the library writes it, for the bare side. */
static size_t sample_line(const char *url, char *out, size_t room)
{
	sheaf_error err;
	sheaf_store *store;
	sheaf_session *s;
	sheaf_records *r;
	sheaf_key key = sheaf_key_of("sample");

	bench_check(sheaf_open(&store, url, NULL, &err), &err, "open a store");
	bench_check(sheaf_session_open(&s, store, &key, NULL, &err), &err, "open");
	for (int i = 0; i < 2; i++)
		bench_check(sheaf_session_append_text(
				    s, "user", (sheaf_str){bench_text(), BENCH_TEXT}, NULL, &err),
		            &err, "append");
	bench_check(sheaf_session_records(&r, s, NULL, &err), &err, "read");
	size_t n = r->items[1]->line.len;
	if (n + 1 > room)
		exit(1);
	memcpy(out, r->items[1]->line.ptr, n);
	out[n] = '\n';
	sheaf_records_free(r);
	sheaf_session_close(s);
	sheaf_close(store);
	return n + 1;
}

typedef struct bare {
	int fd;
	char line[4096];
	size_t length;
} bare;

static void bare_open(bare *x, const bench *b, const char *url, const char *name)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", b->dir, name);
	x->length = sample_line(url, x->line, sizeof(x->line));
	x->fd = open(path, O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
}

static void bare_lock(int fd, short type)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET};
	if (fcntl(fd, F_OFD_SETLK, &l))
		exit(1);
}

static void bare_append(bare *x)
{
	struct statx st;
	bare_lock(x->fd, F_WRLCK);
	if (statx(x->fd, "", AT_EMPTY_PATH, STATX_SIZE | STATX_NLINK | STATX_MODE, &st) ||
	    write(x->fd, x->line, x->length) != (ssize_t)x->length)
		exit(1);
	bare_lock(x->fd, F_UNLCK);
}

static void our_append(sheaf_session *s)
{
	sheaf_error err;
	bench_check(sheaf_session_append_text(s, "user", (sheaf_str){bench_text(), BENCH_TEXT},
	                                      NULL, &err),
	            &err, "append");
}

#define BLOCK 64

int bench_append_process(bench *b)
{
	enum {
		ROUNDS = 400
	};
	size_t rounds = b->quick ? 100 : ROUNDS;
	double ours[ROUNDS], theirs[ROUNDS];
	char url[512];
	sheaf_store *store;
	sheaf_session *s;
	sheaf_error err;
	sheaf_key key = sheaf_key_of("append");
	bare x;

	bench_url(b, url, "append-process", "?durability=process");
	bare_open(&x, b, url, "append-process.bare");
	bench_check(sheaf_open(&store, url, NULL, &err), &err, "open a store");
	bench_check(sheaf_session_open(&s, store, &key, NULL, &err), &err, "open");
	for (size_t i = 0; i < rounds; i++) {
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++) {
			double t = bench_now_us();
			for (int j = 0; j < BLOCK; j++) {
				if ((k ^ first) == 0)
					bare_append(&x);
				else
					our_append(s);
			}
			*((k ^ first) == 0 ? &theirs[i] : &ours[i]) = (bench_now_us() - t) / BLOCK;
		}
	}
	sheaf_session_close(s);
	sheaf_close(store);
	close(x.fd);
	bench_report(b, "append-process", bench_median(ours, rounds), "us",
	             bench_median(theirs, rounds), 2.25, false);
	return 0;
}

int bench_append_disk(bench *b)
{
	enum {
		ROUNDS = 1500
	};
	size_t rounds = b->quick ? 200 : ROUNDS;
	double *ours = malloc(2 * ROUNDS * sizeof(double)), *theirs = ours + ROUNDS;
	char url[512];
	sheaf_store *store;
	sheaf_session *s;
	sheaf_error err;
	sheaf_key key = sheaf_key_of("append");
	bare x;

	bench_url(b, url, "append-disk", "");
	bare_open(&x, b, url, "append-disk.bare");
	bench_check(sheaf_open(&store, url, NULL, &err), &err, "open a store");
	bench_check(sheaf_session_open(&s, store, &key, NULL, &err), &err, "open");
	for (size_t i = 0; i < rounds; i++)
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++) {
			double t = bench_now_us();
			if ((k ^ first) == 0) {
				if (write(x.fd, x.line, x.length) != (ssize_t)x.length ||
				    fdatasync(x.fd))
					exit(1);
				theirs[i] = bench_now_us() - t;
			} else {
				our_append(s);
				ours[i] = bench_now_us() - t;
			}
		}
	sheaf_session_close(s);
	sheaf_close(store);
	close(x.fd);
	bench_report(b, "append-disk", bench_median(ours, rounds), "us",
	             bench_median(theirs, rounds), 1.15, false);
	free(ours);
	return 0;
}

/* ---- 64 threads -------------------------------------------------------------------- */

#define THREADS 64

/* The bare group commit: a leader takes the same lock, writes what all brought, syncs, answers. */
typedef struct group {
	bare x;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	char *pending, *flight;
	size_t pending_count;
	uint64_t queued, durable;
	uint64_t syncs;
	bool leading;
	sheaf_session *session; /* NULL: bare */
	int per_thread;
} group;

static void bare_commit(group *g)
{
	struct statx st;
	size_t len = g->x.length;

	pthread_mutex_lock(&g->mutex);
	memcpy(g->pending + g->pending_count++ * len, g->x.line, len);
	uint64_t mine = ++g->queued;
	while (g->durable < mine) {
		if (g->leading) {
			pthread_cond_wait(&g->wake, &g->mutex);
			continue;
		}
		g->leading = true;
		char *take = g->pending;
		g->pending = g->flight;
		g->flight = take;
		size_t bytes = g->pending_count * len;
		uint64_t upto = g->queued;
		g->pending_count = 0;
		pthread_mutex_unlock(&g->mutex);
		bare_lock(g->x.fd, F_WRLCK);
		if (statx(g->x.fd, "", AT_EMPTY_PATH, STATX_SIZE | STATX_NLINK | STATX_MODE, &st) ||
		    write(g->x.fd, take, bytes) != (ssize_t)bytes || fdatasync(g->x.fd))
			exit(1);
		bare_lock(g->x.fd, F_UNLCK);
		pthread_mutex_lock(&g->mutex);
		g->syncs++;
		g->durable = upto;
		g->leading = false;
		pthread_cond_broadcast(&g->wake);
	}
	pthread_mutex_unlock(&g->mutex);
}

static void *group_worker(void *arg)
{
	group *g = arg;
	for (int i = 0; i < g->per_thread; i++) {
		if (g->session)
			our_append(g->session);
		else
			bare_commit(g);
	}
	return NULL;
}

/* Appends a second. */
static double group_run(group *g)
{
	pthread_t threads[THREADS];
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	double t = bench_now_us();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], &attr, group_worker, g))
			exit(1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attr);
	return THREADS * g->per_thread * 1e6 / (bench_now_us() - t);
}

static _Atomic uint64_t our_syncs;

static int counting_fdatasync(void *ctx, int fd)
{
	(void)ctx;
	atomic_fetch_add(&our_syncs, 1);
	return fdatasync(fd);
}

int bench_group(bench *b)
{
	enum {
		ROUNDS = 61
	};
	size_t rounds = b->quick ? 7 : ROUNDS;
	double ours[ROUNDS], theirs[ROUNDS];
	static const sheaf_io counting = {.size = sizeof(sheaf_io),
	                                  .fdatasync = counting_fdatasync};
	char url[512];
	sheaf_store *store;
	sheaf_error err;
	sheaf_key key = sheaf_key_of("group");
	group bare_side = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
	group our_side = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

	bench_url(b, url, "group-64", "");
	bare_open(&bare_side.x, b, url, "group.bare");
	bare_side.pending = malloc(THREADS * bare_side.x.length);
	bare_side.flight = malloc(THREADS * bare_side.x.length);
	bare_side.per_thread = our_side.per_thread = 60;
	sheaf_set_io(&counting);
	bench_check(sheaf_open(&store, url, NULL, &err), &err, "open a store");
	bench_check(sheaf_session_open(&our_side.session, store, &key, NULL, &err), &err, "open");
	atomic_store(&our_syncs, 0);
	for (size_t i = 0; i < rounds; i++)
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++)
			*((k ^ first) ? &ours[i] : &theirs[i]) = group_run(
				(k ^ first) ? &our_side : &bare_side);
	double total = (double)rounds * THREADS * 60;
	bench_report(b, "group-64", bench_median(ours, rounds), "appends/s",
	             bench_median(theirs, rounds), 0.75, true);
	bench_report(b, "group-64-per-sync", total / (double)atomic_load(&our_syncs),
	             "appends/sync", total / (double)bare_side.syncs, 0.9, true);
	sheaf_session_close(our_side.session);
	sheaf_close(store);
	sheaf_set_io(NULL);
	close(bare_side.x.fd);
	free(bare_side.pending);
	free(bare_side.flight);
	return 0;
}
