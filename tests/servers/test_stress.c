/*
 * Many writers on a store whose servers are killed under them: nothing that was
 * acknowledged is missing, nothing is there twice, and writing goes on in the
 * same process.
 *
 *     test_servers_stress URL [--writers N] [--sessions N] [--rounds N]
 *                         [--disturb COMMAND] [--mend COMMAND]
 *                         [--level process|disk|replica]
 *                         [--calm MS] [--resume S] [--losses]
 *
 * A round lets the writers write for a while (--calm), runs the first command,
 * waits until every writer has stored something it began after the command had
 * ended, --resume seconds at most, and runs the second one. A writer makes its
 * own ids and repeats an append, with the same id, until it is acknowledged.
 * With --losses what is missing in the end is counted but no failure. Exits 1 if
 * a promise was broken.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sheaf.h"

#define WRITERS_MAX 64
#define LEVELS 5

typedef struct arguments {
	const char *url;
	const char *disturb;
	const char *mend;
	unsigned writers;
	unsigned sessions;
	unsigned rounds;
	unsigned calm_ms;
	unsigned resume_s;
	int level;
	bool losses;
} arguments;

typedef struct writer {
	pthread_t thread;
	unsigned number;
	_Atomic uint64_t acked;   /* appends acknowledged so far: numbers 0 to acked - 1 */
	_Atomic uint64_t repeats; /* appends that had to be given again */
	_Atomic uint64_t existed; /* of these: had been stored the first time */
	double pause;             /* the longest between two acknowledgements */
	unsigned char *levels;    /* of each acknowledged one */
	size_t room;
	unsigned char *seen; /* the verifier's: how often each was found */
	uint64_t next;       /* the verifier's: the least number that may come now */
} writer;

static arguments args = {
	.writers = 16, .sessions = 4, .rounds = 1, .calm_ms = 300, .resume_s = 60, .level = 0};
static writer writers[WRITERS_MAX];
static sheaf_store *store;
static atomic_bool stop;
static char app[64];
static pthread_mutex_t speak = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint broken;

static void complain(const char *what, int rc, const sheaf_error *err)
{
	atomic_fetch_add(&broken, 1);
	pthread_mutex_lock(&speak);
	fprintf(stderr, "stress: %s: %s: %s\n", what, sheaf_code_name(rc), err->message);
	pthread_mutex_unlock(&speak);
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void sleep_ms(unsigned ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
	nanosleep(&t, NULL);
}

/* Every session has a user of its own, so that they lie on different shards and nodes. */
static sheaf_key key_of(unsigned session, char *room, size_t size)
{
	snprintf(room, size, "s%u", session);
	sheaf_key key = sheaf_key_of(room);
	key.app = sheaf_str_of(app);
	key.user = key.session;
	return key;
}

/* ---- Writers -------------------------------------------------------------- */

/* What passes by itself: the server is away, or somebody else holds what is needed. An unknown
 * outcome is always to be repeated. */
static bool passing(int rc, const sheaf_error *err)
{
	return err->outcome == SHEAF_UNKNOWN || rc == SHEAF_STORAGE || rc == SHEAF_BUSY ||
	       rc == SHEAF_TIMEOUT;
}

static bool remember(writer *w, int level)
{
	uint64_t n = atomic_load(&w->acked);
	if (n == w->room) {
		size_t room = w->room ? w->room * 2 : 4096;
		unsigned char *more = realloc(w->levels, room);
		if (!more)
			return false;
		w->levels = more;
		w->room = room;
	}
	w->levels[n] = (unsigned char)level;
	atomic_store(&w->acked, n + 1);
	return true;
}

/* One append, given again with its id until it is acknowledged. */
static bool append_next(writer *w, sheaf_session *s)
{
	char id[64], body[600];
	uint64_t n = atomic_load(&w->acked);
	snprintf(id, sizeof(id), "w%02u-%08" PRIu64, w->number, n);
	snprintf(body, sizeof(body), "{\"message\":{\"role\":\"user\",\"content\":\"%s%*s\"}}", id,
	         (int)(n % 500), "");
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	entry.id = sheaf_str_of(id);
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	how.durability = args.level;
	for (bool again = false;; again = true) {
		sheaf_appended out = SHEAF_APPENDED_INIT;
		sheaf_error err = {0};
		int rc = sheaf_session_append_json(s, sheaf_str_of("message"), sheaf_str_of(body),
		                                   &entry, &how, &out, &err);
		if (rc == 0) {
			if (out.existed)
				atomic_fetch_add(&w->existed, 1);
			return remember(w, out.durability);
		}
		if (!passing(rc, &err)) {
			complain(id, rc, &err);
			return false;
		}
		if (!again)
			atomic_fetch_add(&w->repeats, 1);
		if (atomic_load(&stop)) /* its fate is open, and it may be there */
			return false;
		sleep_ms(20);
	}
}

static void *write_all(void *argument)
{
	writer *w = argument;
	char name[32];
	sheaf_key key = key_of(w->number % args.sessions, name, sizeof(name));
	sheaf_session *s = NULL;
	sheaf_error err = {0};
	int rc = sheaf_session_open(&s, store, &key, NULL, &err);
	if (rc != 0) {
		complain("open", rc, &err);
		return NULL;
	}
	for (double last = now_s(); !atomic_load(&stop) && append_next(w, s);) {
		double now = now_s();
		if (now - last > w->pause)
			w->pause = now - last;
		last = now;
	}
	sheaf_session_close(s);
	return NULL;
}

/* ---- Rounds ---------------------------------------------------------------- */

/* Whether every writer has acknowledged two more than then: the first may have begun before. */
static bool all_beyond(const uint64_t *then)
{
	for (unsigned i = 0; i < args.writers; i++)
		if (atomic_load(&writers[i].acked) < then[i] + 2)
			return false;
	return true;
}

static bool command(const char *text)
{
	int status = text ? system(text) : 0;
	if (status != 0)
		fprintf(stderr, "stress: %s: status %d\n", text, WEXITSTATUS(status));
	return status == 0;
}

/* Whether all writers go on within the time they have. */
static bool resumed(void)
{
	uint64_t then[WRITERS_MAX];
	for (unsigned i = 0; i < args.writers; i++)
		then[i] = atomic_load(&writers[i].acked);
	double from = now_s();
	while (!all_beyond(then)) {
		if (now_s() > from + args.resume_s || atomic_load(&broken)) {
			fprintf(stderr, "stress: not every writer went on within %u s\n",
			        args.resume_s);
			return false;
		}
		sleep_ms(5);
	}
	return true;
}

static bool rounds(void)
{
	for (unsigned i = 0; i < args.rounds; i++) {
		sleep_ms(args.calm_ms);
		if (!command(args.disturb) || !resumed() || !command(args.mend)) {
			fprintf(stderr, "stress: in round %u of %u\n", i + 1, args.rounds);
			return false;
		}
	}
	return true;
}

/* ---- Verifying -------------------------------------------------------------- */

/* Says what is wrong with a record, the first few times. */
static bool wrong(const char *id, const char *what)
{
	static unsigned said;
	if (said++ < 10)
		fprintf(stderr, "stress: %s %s\n", id, what);
	return false;
}

/* Counts a record's id; false for an id nobody made, or one behind a later one of its writer. */
static bool count_id(const sheaf_entry *e, unsigned session)
{
	unsigned number;
	uint64_t n;
	char id[64];
	snprintf(id, sizeof(id), "%.*s", (int)(e->id.len < 63 ? e->id.len : 63), e->id.ptr);
	if (sscanf(id, "w%u-%" SCNu64, &number, &n) != 2 || number >= args.writers ||
	    number % args.sessions != session || n > atomic_load(&writers[number].acked))
		return wrong(id, "is there, and nobody appended it");
	writer *w = &writers[number];
	bool ordered = n >= w->next;
	w->next = n + 1;
	if (++w->seen[n] > 1)
		return wrong(id, "is there twice");
	return ordered || wrong(id, "is there after a later one");
}

static bool verify_session(sheaf_store *fresh, unsigned session)
{
	char name[32];
	sheaf_key key = key_of(session, name, sizeof(name));
	sheaf_session *s = NULL;
	sheaf_error err = {0};
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	options.mode = SHEAF_OPEN_EXISTING;
	int rc = sheaf_session_open(&s, fresh, &key, &options, &err);
	if (rc != 0) {
		complain("open to verify", rc, &err);
		return false;
	}
	bool ok = true;
	sheaf_read_options page = SHEAF_READ_OPTIONS_INIT;
	page.limit = 1000;
	page.from_seq = 1;
	for (size_t got = 1; got > 0 && rc == 0;) {
		sheaf_records *records = NULL;
		rc = sheaf_session_records(&records, s, &page, &err);
		got = rc == 0 ? records->count : 0;
		for (size_t i = 0; i < got; i++) {
			ok &= records->items[i]->seq == page.from_seq + i;
			ok &= count_id(records->items[i], session);
		}
		page.from_seq += got;
		sheaf_records_free(records);
	}
	if (rc != 0)
		complain("read to verify", rc, &err);
	sheaf_session_close(s);
	return ok && rc == 0;
}

/* Adds up what is missing, by the level it was acknowledged at; gives how many of those had the
 * level that was asked for. (An append that is repeated and found may be told a lower one.) */
static uint64_t report(void)
{
	static const char *const names[LEVELS] = {"?", "none", "process", "disk", "replica"};
	uint64_t acked[LEVELS] = {0}, missing[LEVELS] = {0};
	uint64_t repeats = 0, existed = 0, lost = 0;
	double pause = 0;
	for (unsigned i = 0; i < args.writers; i++) {
		writer *w = &writers[i];
		repeats += atomic_load(&w->repeats);
		existed += atomic_load(&w->existed);
		pause = w->pause > pause ? w->pause : pause;
		for (uint64_t n = 0; n < atomic_load(&w->acked); n++) {
			unsigned level = w->levels[n] < LEVELS ? w->levels[n] : 0;
			acked[level]++;
			missing[level] += w->seen[n] == 0;
		}
	}
	printf("%u rounds, longest pause of a writer %.2f s\n", args.rounds, pause);
	printf("%" PRIu64 " appends repeated, %" PRIu64 " of them had been stored the first time\n",
	       repeats, existed);
	for (int i = 0; i < LEVELS; i++) {
		lost += i >= args.level ? missing[i] : 0;
		if (acked[i])
			printf("level %s: %" PRIu64 " acknowledged, %" PRIu64 " missing\n",
			       names[i], acked[i], missing[i]);
	}
	return lost;
}

static bool verify(void)
{
	bool ok = true;
	for (unsigned i = 0; i < args.writers; i++) {
		writers[i].seen = calloc(atomic_load(&writers[i].acked) + 1, 1);
		ok &= writers[i].seen != NULL;
	}
	sheaf_store *fresh = store; /* a store in memory has no other way in */
	sheaf_error err = {0};
	if (strncmp(args.url, "memory:", 7) != 0) {
		int rc = sheaf_open(&fresh, args.url, NULL, &err);
		if (rc != 0) {
			complain("open the store to verify", rc, &err);
			return false;
		}
	}
	for (unsigned i = 0; ok && i < args.sessions; i++)
		ok &= verify_session(fresh, i);
	if (fresh != store)
		sheaf_close(fresh);
	return ok;
}

/* ---- The program -------------------------------------------------------------- */

static int usage(void)
{
	fputs("usage: test_servers_stress URL [--writers N] [--sessions N] [--rounds N]\n"
	      "       [--disturb COMMAND] [--mend COMMAND] [--level process|disk|replica]\n"
	      "       [--calm MS] [--resume S] [--losses]\n",
	      stderr);
	return 2;
}

static int level_of(const char *name)
{
	static const char *const names[] = {"process", "disk", "replica"};
	for (int i = 0; i < 3; i++)
		if (strcmp(name, names[i]) == 0)
			return SHEAF_DURABILITY_PROCESS + i;
	return 0;
}

static bool parse(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--losses") == 0) {
			args.losses = true;
			continue;
		}
		if (argv[i][0] != '-' && !args.url) {
			args.url = argv[i];
			continue;
		}
		const char *name = argv[i];
		const char *value = ++i < argc ? argv[i] : NULL;
		if (!value)
			return false;
		unsigned number = (unsigned)strtoul(value, NULL, 10);
		if (strcmp(name, "--writers") == 0)
			args.writers = number;
		else if (strcmp(name, "--sessions") == 0)
			args.sessions = number;
		else if (strcmp(name, "--rounds") == 0)
			args.rounds = number;
		else if (strcmp(name, "--calm") == 0)
			args.calm_ms = number;
		else if (strcmp(name, "--resume") == 0)
			args.resume_s = number;
		else if (strcmp(name, "--disturb") == 0)
			args.disturb = value;
		else if (strcmp(name, "--mend") == 0)
			args.mend = value;
		else if (strcmp(name, "--level") == 0 && level_of(value))
			args.level = level_of(value);
		else
			return false;
	}
	return args.url && args.writers >= 1 && args.writers <= WRITERS_MAX && args.sessions >= 1;
}

int main(int argc, char **argv)
{
	if (!parse(argc, argv))
		return usage();
	snprintf(app, sizeof(app), "stress-%d-%ld", (int)getpid(), (long)time(NULL));
	sheaf_error err = {0};
	int rc = sheaf_open(&store, args.url, NULL, &err);
	if (rc != 0) {
		complain(args.url, rc, &err);
		return 1;
	}
	double from = now_s();
	for (unsigned i = 0; i < args.writers; i++) {
		writers[i].number = i;
		if (pthread_create(&writers[i].thread, NULL, write_all, &writers[i]) != 0)
			return 1;
	}
	bool ok = rounds();
	atomic_store(&stop, true);
	for (unsigned i = 0; i < args.writers; i++)
		pthread_join(writers[i].thread, NULL);
	double took = now_s() - from;
	ok &= verify();
	uint64_t lost = report();
	for (unsigned i = 0; i < args.writers; i++) {
		free(writers[i].levels);
		free(writers[i].seen);
	}
	sheaf_close(store);
	ok &= atomic_load(&broken) == 0 && (lost == 0 || args.losses);
	printf("%s: %u writers, %.1f s\n", ok ? "ok" : "BROKEN", args.writers, took);
	return ok ? 0 : 1;
}
