/*
 * Power cuts after every operation of every scenario: whatever the disk may hold then, nothing that
 * was acknowledged is lost, and nothing that was deleted comes back. And the same without one kind
 * of sync at a time, to show that this would be noticed.
 *
 *     test_replay [--states N] [--seed S] [--jobs J] [--only SCENARIO]
 *
 * SHEAF_TEST_SCALE multiplies N; SHEAF_TEST_KEEP leaves images behind that break the promise.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "replay.h"
#include "support/fault_io.h"

#define SHOWN 12u

typedef struct counts {
	uint64_t states, unique, violations, recordings, operations;
} counts;

typedef struct task {
	uint64_t states;
	uint64_t seed;
	unsigned jobs, rounds;
	int forget;
	bool quiet;
	const char *only;
} task;

/* ---- Scenarios of our own ---- */

#define STEP(k, s)                                                                                 \
	{                                                                                          \
		.kind = (k), .session = (s)                                                        \
	}
#define DISK(n)                                                                                    \
	{                                                                                          \
		.kind = STEP_TEXT, .session = "a", .bytes = (n)                                    \
	}
#define SOON(n)                                                                                    \
	{                                                                                          \
		.kind = STEP_TEXT, .session = "a", .bytes = (n),                                   \
		.durability = SHEAF_DURABILITY_PROCESS                                             \
	}
#define TRIPLE(n) DISK(n), SOON(n), SOON(n)
#define STEPS(...)                                                                                 \
	(const step[])                                                                             \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			.kind = STEP_END                                                           \
		}                                                                                  \
	}

/* Sessions come and go within a tick of the clock, while the catalogue knows all of them. */
static const scenario churn = {
	.name = "churn",
	.setup = STEPS(STEP(STEP_CREATE, "a"), DISK(30), {.kind = STEP_LIST}),
	.steps = STEPS(STEP(STEP_CREATE, "b"), STEP(STEP_CREATE, "c"), STEP(STEP_DELETE, "b"),
                       STEP(STEP_CREATE, "d"), {.kind = STEP_LIST}, STEP(STEP_CREATE, "e"),
                       STEP(STEP_DELETE, "c"), {.kind = STEP_LIST}, STEP(STEP_CREATE, "b")),
	.files = true};

/* Played with other sizes until a write begins at the last byte of a sector. */
static const scenario edge = {.name = "edge",
                              .setup = STEPS(STEP(STEP_CREATE, "a")),
                              .steps = STEPS(TRIPLE(30), TRIPLE(40), TRIPLE(50), TRIPLE(60),
                                             TRIPLE(70), TRIPLE(80), TRIPLE(90), TRIPLE(100),
                                             TRIPLE(110)),
                              .files = true};

static size_t scenarios_all(void)
{
	return scenario_count + 2;
}

static const scenario *scenario_at(size_t i)
{
	return i < scenario_count ? &scenarios[i] : i == scenario_count ? &churn : &edge;
}

static bool at_edge(const recording *r)
{
	for (size_t i = 0; i + 6 < r->op_count; i++)
		if (r->ops[i].kind == OP_WRITE && r->ops[i].at % 512 == 511 && r->ops[i].len > 1 &&
		    r->steps[r->ops[i].step].durability == SHEAF_DURABILITY_PROCESS &&
		    r->steps[r->ops[i].step + 1].kind == STEP_TEXT)
			return true;
	return false;
}

static recording *record(const scenario *sc, unsigned round, int forget)
{
	recording *r = cut_record(sc, round, forget);
	for (unsigned k = 1; sc == &edge && !at_edge(r) && k < 400; k++) {
		cut_recording_free(r);
		r = cut_record(sc, round + 1000 * k, forget);
	}
	return r;
}

/* ---- Images seen already ---- */

typedef struct seen {
	uint64_t (*hashes)[2];
	size_t count, room;
} seen;

static bool seen_place(const seen *s, const uint64_t hash[2], size_t *place)
{
	size_t at = (size_t)hash[0] & (s->room - 1);
	while (s->hashes[at][0] || s->hashes[at][1]) {
		if (s->hashes[at][0] == hash[0] && s->hashes[at][1] == hash[1])
			return true;
		at = (at + 1) & (s->room - 1);
	}
	*place = at;
	return false;
}

/* Whether it is new; it is not from now on. */
static bool seen_add(seen *s, const uint64_t hash[2])
{
	size_t place;

	if ((s->count + 1) * 2 > s->room) {
		seen larger = {.room = s->room ? s->room * 2 : 1024};
		larger.hashes = calloc(larger.room, sizeof(*larger.hashes));
		if (larger.hashes == NULL)
			abort();
		for (size_t i = 0; i < s->room; i++)
			if ((s->hashes[i][0] || s->hashes[i][1]) &&
			    !seen_place(&larger, s->hashes[i], &place))
				memcpy(larger.hashes[place], s->hashes[i], sizeof(*s->hashes));
		free(s->hashes);
		s->hashes = larger.hashes;
		s->room = larger.room;
	}
	if (seen_place(s, hash, &place))
		return false;
	memcpy(s->hashes[place], hash, sizeof(*s->hashes));
	s->count++;
	return true;
}

/* ---- One recording ---- */

typedef struct unit {
	const task *t;
	const recording *r;
	unsigned round;
	counts *sum;
	seen seen;
	char dir[256];
} unit;

static const char *op_name(op_kind kind)
{
	static const char *const names[] = {"write", "truncate", "chmod", "datasync",
	                                    "fsync", "make",     "link",  "remove",
	                                    "move",  "spoil",    "ack"};
	return names[kind];
}

static void show(const unit *u, size_t at, uint64_t number, const char *why, const char *dir)
{
	const op *o = &u->r->ops[at];

	if (u->sum->violations++ >= SHOWN || u->t->quiet)
		return;
	printf("%s, round %u, seed %llu, after operation %zu (%s %s%s%s, node %d), %u steps "
	       "acknowledged, image %llu: %s\n",
	       u->r->name, u->round, (unsigned long long)u->t->seed, at, op_name(o->kind), o->name,
	       o->to[0] ? " to " : "", o->to, o->node, o->step, (unsigned long long)number, why);
	if (getenv("SHEAF_TEST_KEEP"))
		printf("    kept in %s\n", dir);
	fflush(stdout);
}

static void try_image(unit *u, size_t at, uint64_t number, image *img)
{
	char dir[300];
	unsigned acked = u->r->ops[at].step;

	u->sum->states++;
	img->hash[0] ^= (acked + 1) * UINT64_C(0x9e3779b97f4a7c15);
	if (!seen_add(&u->seen, img->hash))
		return;
	u->sum->unique++;
	snprintf(dir, sizeof(dir), "%s/%zu-%llu", u->dir, at, (unsigned long long)number);
	if (mkdir(dir, 0700))
		abort();
	const char *why = cut_judge(u->r, acked, img, dir);
	if (why)
		show(u, at, number, why, dir);
	if (!why || !getenv("SHEAF_TEST_KEEP"))
		tree_remove(dir);
}

/* `states` crashes, spread over all operations. */
static void run_unit(unit *u, uint64_t states)
{
	disk *d = cut_disk_new();
	image img = {0};
	uint64_t random = u->t->seed * 1000003 + u->round;
	const size_t count = u->r->op_count;

	scratch_dir(u->dir, "replay");
	for (const char *c = u->r->name; *c; c++)
		random = random * 31 + (unsigned char)*c;
	for (size_t at = 0; at < count; at++) {
		cut_disk_apply(d, &u->r->ops[at]);
		uint64_t share = states * (at + 1) / count - states * at / count;
		for (uint64_t i = 0; i < share; i++) {
			cut_disk_image(d, &img, &random);
			try_image(u, at, i, &img);
		}
	}
	tree_remove(u->dir);
	cut_image_free(&img);
	cut_disk_free(d);
	free(u->seen.hashes);
}

/* ---- All of them ---- */

/* Hundreds of records take their time: fewer states of those. */
static uint64_t weight_of(const scenario *sc)
{
	return strcmp(sc->name, "sidecar") == 0 ? 1 : 4;
}

static void work(const task *t, unsigned job, counts *sum)
{
	uint64_t all = 0;
	unsigned turn = 0;

	for (size_t i = 0; i < scenarios_all(); i++)
		if (!t->only || strcmp(t->only, scenario_at(i)->name) == 0)
			all += weight_of(scenario_at(i)) * t->rounds;
	for (unsigned round = 0; round < t->rounds; round++)
		for (size_t i = 0; i < scenarios_all(); i++) {
			const scenario *sc = scenario_at(i);
			if (t->only && strcmp(t->only, sc->name) != 0)
				continue;
			if (turn++ % t->jobs != job)
				continue;
			recording *r = record(sc, round, t->forget);
			unit u = {.t = t, .r = r, .round = round, .sum = sum};
			sum->recordings++;
			sum->operations += r->op_count;
			run_unit(&u, (t->states * weight_of(sc) + all - 1) / all);
			cut_recording_free(r);
		}
}

static counts run(const task *t)
{
	counts all = {0};
	int pipes[2];

	fflush(stdout);
	if (pipe(pipes))
		abort();
	for (unsigned job = 0; job < t->jobs; job++) {
		pid_t pid = fork();
		if (pid < 0)
			abort();
		if (pid == 0) {
			counts sum = {0};
			work(t, job, &sum);
			fflush(stdout);
			_exit(write(pipes[1], &sum, sizeof(sum)) == sizeof(sum) ? 0 : 1);
		}
	}
	close(pipes[1]);
	for (unsigned job = 0; job < t->jobs; job++) {
		counts sum;
		int status;
		if (wait(&status) < 0 || status ||
		    read(pipes[0], &sum, sizeof(sum)) != sizeof(sum)) {
			printf("a worker died (%d)\n", status);
			exit(1);
		}
		all.states += sum.states;
		all.unique += sum.unique;
		all.violations += sum.violations;
		all.recordings += sum.recordings;
		all.operations += sum.operations;
	}
	close(pipes[0]);
	return all;
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static counts run_and_tell(const task *t, const char *what)
{
	double begin = seconds();
	counts c = run(t);
	printf("%s: %llu recordings, %llu operations, %llu states, %llu unique, %llu violations, "
	       "%.1f s\n",
	       what, (unsigned long long)c.recordings, (unsigned long long)c.operations,
	       (unsigned long long)c.states, (unsigned long long)c.unique,
	       (unsigned long long)c.violations, seconds() - begin);
	fflush(stdout);
	return c;
}

/* A library that forgot a sync is caught. */
static bool caught(const task *as, int forget, const char *what)
{
	task t = *as;
	t.forget = forget;
	t.quiet = true;
	t.rounds = 1;
	t.states = 4000;
	if (run_and_tell(&t, what).violations)
		return true;
	printf("%s: NOT CAUGHT\n", what);
	return false;
}

int main(int argc, char **argv)
{
	task t = {.states = 210000, .seed = 1, .jobs = 2};

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--states") == 0)
			t.states = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--seed") == 0)
			t.seed = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--jobs") == 0)
			t.jobs = (unsigned)strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--only") == 0)
			t.only = argv[i + 1];
	}
	t.states = (uint64_t)((double)t.states * test_scale());
	t.jobs = t.jobs ? t.jobs : 1;
	t.rounds = (unsigned)(t.states / 20000) + 1;
	bool good = run_and_tell(&t, "every operation").violations == 0;
	if (!t.only) {
		good = caught(&t, FAULT_NO_FDATASYNC, "without fdatasync") && good;
		good = caught(&t, FAULT_NO_FSYNC_OF_FILES, "without fsync of new files") && good;
		good = caught(&t, FAULT_NO_FSYNC_OF_DIRECTORIES, "without fsync of directories") &&
		       good;
	}
	return good ? 0 : 1;
}
