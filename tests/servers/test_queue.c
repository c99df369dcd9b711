/*
 * A queue under many claimers, processes that are killed at random moments:
 * every item is delivered, in the order of priority and then age, and none
 * again after its acknowledgement.
 *
 *     test_servers_queue URL [claimers [items [deaths [seed]]]]
 *
 * Claimers write what they were given and what they acknowledged to one file,
 * each event with a single write, and the parent judges that file in the end.
 * Exits 1 if a promise was broken.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sheaf.h"

#define LEASE_US 200000
#define CLAIMERS_MAX 64
#define CLAIM_MAX 5
#define EVENTS_MAX 100000u
#define SECONDS_MAX 240

static sheaf_error err;
static uint64_t seed = 1;

static unsigned dice(unsigned sides)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % sides;
}

static void sleep_us(unsigned us)
{
	struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
	nanosleep(&t, NULL);
}

/* One clock for all processes of the machine. */
static int64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static bool failed(const char *what, int rc)
{
	fprintf(stderr, "queue: %s: %s: %s\n", what, sheaf_code_name(rc), err.message);
	return false;
}

static bool open_session(const char *url, const char *name, sheaf_store **store, sheaf_session **s)
{
	sheaf_key key = sheaf_key_of(name);
	key.app = sheaf_str_of("queue-test");
	int rc = sheaf_open(store, url, NULL, &err);
	if (rc == 0)
		rc = sheaf_session_open(s, *store, &key, NULL, &err);
	return rc == 0 || failed("open", rc);
}

/* Item `i`, whose number is its age. */
static void item_id(unsigned i, char out[32])
{
	snprintf(out, 32, "item-%05u", i);
}

static bool enqueue_all(sheaf_session *s, unsigned items)
{
	for (unsigned i = 0; i < items; i++) {
		char id[32];
		item_id(i, id);
		sheaf_enqueue_options options = SHEAF_ENQUEUE_OPTIONS_INIT;
		options.id = sheaf_str_of(id);
		options.priority = (int32_t)dice(4);
		int rc = sheaf_session_enqueue(s, sheaf_str_of(id), &options, NULL, &err);
		if (rc != 0)
			return failed("enqueue", rc);
	}
	return true;
}

/* ---- A claimer ---------------------------------------------------------------- */

static void note(int log, const char *text, size_t len)
{
	if (write(log, text, len) != (ssize_t)len)
		_exit(3);
}

/* "claim BEGIN END TOKEN COUNT item priority claims" a line for each item, in one write. */
static void note_claim(int log, const sheaf_queue_items *got, int64_t begin, int64_t end)
{
	char text[CLAIM_MAX * 300];
	size_t n = 0;
	for (size_t i = 0; i < got->count; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
		                      "claim %" PRId64 " %" PRId64 " %s %zu %.*s %d %d\n", begin,
		                      end, got->token.ptr, got->count, (int)got->items[i]->id.len,
		                      got->items[i]->id.ptr, (int)got->items[i]->priority,
		                      (int)got->items[i]->claims);
	note(log, text, n);
}

static bool work(sheaf_session *s, int log, const sheaf_queue_items *got)
{
	char text[300];
	/* Now and then too slow, so that somebody else gets it and this one comes late. */
	sleep_us(dice(40) == 0 ? LEASE_US * 3 / 2 : dice(20000));
	int64_t begin = now_us();
	int rc = sheaf_session_ack(s, got->token, &err);
	if (rc != 0 && rc != SHEAF_STALE)
		return failed("ack", rc);
	int n = snprintf(text, sizeof(text), "%s %" PRId64 " %" PRId64 " %s 0 - 0 0\n",
	                 rc == 0 ? "ack" : "late", begin, now_us(), got->token.ptr);
	note(log, text, (size_t)n);
	return true;
}

/* Claims until the queue is empty. */
static bool claim_all(sheaf_session *s, int log)
{
	for (;;) {
		sheaf_claim_options options = SHEAF_CLAIM_OPTIONS_INIT;
		options.lease_us = LEASE_US;
		options.limit = dice(3) == 0 ? 1 + dice(CLAIM_MAX) : 1;
		sheaf_queue_items *got = NULL;
		int64_t begin = now_us();
		int rc = sheaf_session_claim(&got, s, &options, &err);
		if (rc != 0)
			return failed("claim", rc);
		size_t count = got->count;
		bool ok = true;
		if (count > 0) {
			note_claim(log, got, begin, now_us());
			ok = work(s, log, got);
		}
		sheaf_queue_items_free(got);
		if (!ok)
			return false;
		if (count > 0)
			continue;
		rc = sheaf_session_pending(&got, s, &err);
		if (rc != 0)
			return failed("pending", rc);
		count = got->count;
		sheaf_queue_items_free(got);
		if (count == 0)
			return true;
		sleep_us(5000 + dice(10000));
	}
}

static int claimer(const char *url, const char *name, const char *log_file)
{
	sheaf_store *store = NULL;
	sheaf_session *s = NULL;
	int log = open(log_file, O_WRONLY | O_APPEND | O_CLOEXEC);
	seed = (uint64_t)getpid() * 0x9e3779b97f4a7c15u;
	bool ok = log >= 0 && open_session(url, name, &store, &s) && claim_all(s, log);
	if (s)
		sheaf_session_close(s);
	sheaf_close(store);
	return ok ? 0 : 1;
}

/* ---- The parent ------------------------------------------------------------------ */

static pid_t spawn(const char *url, const char *name, const char *log_file)
{
	pid_t pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "test_servers_queue", "claim", url, name, log_file,
		      (char *)NULL);
		_exit(127);
	}
	return pid;
}

/* Keeps the claimers going, killing one now and then, until all have found the queue empty. */
static bool herd(const char *url, const char *name, const char *log_file, unsigned claimers,
                 unsigned deaths)
{
	pid_t pids[CLAIMERS_MAX];
	unsigned running = claimers;
	bool ok = true;
	int64_t end = now_us() + SECONDS_MAX * 1000000LL;
	for (unsigned i = 0; i < claimers; i++)
		pids[i] = spawn(url, name, log_file);
	sleep_us(100000);
	while (running > 0) {
		sleep_us(5000 + dice(30000));
		if (deaths > 0) {
			unsigned victim = dice(claimers);
			if (pids[victim] > 0 && kill(pids[victim], SIGKILL) == 0)
				deaths--;
		}
		for (unsigned i = 0; i < claimers; i++) {
			int status;
			if (pids[i] <= 0 || waitpid(pids[i], &status, WNOHANG) != pids[i])
				continue;
			if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
				pids[i] = spawn(url, name, log_file);
				continue;
			}
			pids[i] = 0;
			running--;
			ok &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
		}
		if (now_us() > end) {
			fprintf(stderr, "queue: not empty after %d s\n", SECONDS_MAX);
			for (unsigned i = 0; i < claimers; i++)
				if (pids[i] > 0)
					kill(pids[i], SIGKILL);
			end = INT64_MAX;
			ok = false;
		}
	}
	return ok;
}

/* ---- Judging ------------------------------------------------------------------------ */

typedef struct event {
	char what[8];
	int64_t begin, end;
	char token[80];
	size_t count; /* items claimed together */
	unsigned item;
	int priority;
	int claims;
} event;

static event *events;
static size_t event_count;

static bool read_events(const char *log_file)
{
	FILE *f = fopen(log_file, "r");
	events = calloc(EVENTS_MAX, sizeof(*events));
	char line[400];
	while (f && events && event_count < EVENTS_MAX && fgets(line, sizeof(line), f)) {
		event *e = &events[event_count];
		char item[40];
		if (sscanf(line, "%7s %" SCNd64 " %" SCNd64 " %79s %zu %39s %d %d", e->what,
		           &e->begin, &e->end, e->token, &e->count, item, &e->priority,
		           &e->claims) != 8) {
			fprintf(stderr, "queue: cannot read %s", line);
			break;
		}
		if (e->what[0] == 'c')
			sscanf(item, "item-%u", &e->item);
		event_count++;
	}
	bool ok = f && feof(f);
	if (f)
		fclose(f);
	return ok;
}

static bool is(const event *e, const char *what)
{
	return strcmp(e->what, what) == 0;
}

/* Whether `a` is to be delivered before `b`. */
static bool before(const event *a, const event *b)
{
	return a->priority != b->priority ? a->priority > b->priority : a->item < b->item;
}

/* Two claims of different items: `a` may not have been given while `b`, which is due earlier,
 * waited. `first` says that a's is noted before b's. */
static bool fair(const event *a, const event *b, bool first)
{
	bool together = strcmp(a->token, b->token) == 0;
	if (together && first && !before(a, b)) {
		fprintf(stderr, "queue: %u was given before %u in one claim\n", a->item, b->item);
		return false;
	}
	/* b waited, never claimed, all the time that a was being claimed. */
	if (a->end < b->begin && b->claims == 1 && before(b, a)) {
		fprintf(stderr, "queue: %u (priority %d) was given while %u (priority %d) waited\n",
		        a->item, a->priority, b->item, b->priority);
		return false;
	}
	return true;
}

/* The acknowledgement of a claim, or NULL. */
static const event *ack_of(const event *claim)
{
	for (size_t i = 0; i < event_count; i++)
		if (is(&events[i], "ack") && strcmp(events[i].token, claim->token) == 0)
			return &events[i];
	return NULL;
}

/* `later` is the same item, claimed again. An item claimed with others may have gone to somebody
 * else before their acknowledgement, which then removed only the others. */
static bool final(const event *claim, const event *ack, const event *later)
{
	if (later->claims <= claim->claims)
		return true;
	bool again = claim->count == 1 ||
	             (later->claims == claim->claims + 1 && later->begin > ack->end);
	if (again)
		fprintf(stderr, "queue: %u was given again after its acknowledgement\n",
		        claim->item);
	return !again;
}

static bool judge(unsigned items)
{
	unsigned char *delivered = calloc(items, 1);
	size_t claims = 0, again = 0, acks = 0, late = 0, missing = 0;
	bool ok = delivered != NULL;
	for (size_t i = 0; ok && i < event_count; i++) {
		const event *e = &events[i];
		acks += is(e, "ack");
		late += is(e, "late");
		if (!is(e, "claim") || e->item >= items)
			continue;
		claims++;
		again += e->claims > 1;
		delivered[e->item] = 1;
		const event *ack = ack_of(e);
		for (size_t j = 0; j < event_count; j++) {
			const event *f = &events[j];
			if (!is(f, "claim") || j == i)
				continue;
			if (f->item != e->item)
				ok &= fair(e, f, i < j);
			else if (ack)
				ok &= final(e, ack, f);
		}
	}
	for (unsigned i = 0; ok && i < items; i++)
		missing += !delivered[i];
	printf("%u items: %zu claims, %zu of them again, %zu acknowledgements, %zu too late, %zu "
	       "items never delivered\n",
	       items, claims, again, acks, late, missing);
	free(delivered);
	return ok && missing == 0;
}

static bool queue_is_empty(sheaf_session *s)
{
	sheaf_queue_items *rest = NULL;
	int rc = sheaf_session_pending(&rest, s, &err);
	if (rc != 0)
		return failed("pending", rc);
	bool empty = rest->count == 0;
	sheaf_queue_items_free(rest);
	return empty;
}

static unsigned argument(int argc, char **argv, int i, unsigned otherwise)
{
	return argc > i ? (unsigned)strtoul(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "claim") == 0)
		return claimer(argv[2], argv[3], argv[4]);
	unsigned claimers = argument(argc, argv, 2, 16);
	unsigned items = argument(argc, argv, 3, 400);
	unsigned deaths = argument(argc, argv, 4, 40);
	seed = argument(argc, argv, 5, 1) + 1u;
	if (argc < 2 || claimers < 1 || claimers > CLAIMERS_MAX || items < 1) {
		fputs("usage: test_servers_queue URL [claimers [items [deaths [seed]]]]\n", stderr);
		return 2;
	}
	char name[64], log_file[] = "/tmp/sheaf-queue.XXXXXX";
	snprintf(name, sizeof(name), "q-%d-%ld", (int)getpid(), (long)time(NULL));
	int log = mkstemp(log_file);
	sheaf_store *store = NULL;
	sheaf_session *s = NULL;
	bool ok = log >= 0 && open_session(argv[1], name, &store, &s) && enqueue_all(s, items);
	int64_t from = now_us();
	ok = ok && herd(argv[1], name, log_file, claimers, deaths);
	double took = (double)(now_us() - from) / 1e6;
	ok = ok && read_events(log_file) && judge(items) && queue_is_empty(s);
	if (s)
		sheaf_session_close(s);
	sheaf_close(store);
	unlink(log_file);
	close(log);
	free(events);
	printf("%s: %u claimers, %u deaths, %.1f s\n", ok ? "ok" : "BROKEN", claimers, deaths,
	       took);
	return ok ? 0 : 1;
}
