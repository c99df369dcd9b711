/* Playing a scenario with a fault in it: the loop and the judgement of trial.h. */
#include "trial.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/fault_io.h"

#define COMPLAINTS_MAX 60

tally trials;

double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int trials_end(const char *name, double seconds)
{
	printf("%s: %lu trials, %lu failures, %.1f s\n", name, trials.trials, trials.failures,
	       seconds);
	return trials.failures ? 1 : 0;
}

/* ---- Without a fault -------------------------------------------------------------------- */

static void die(const char *what, const scenario *sc, size_t at, const sheaf_error *err)
{
	fprintf(stderr, "%s, step %zu: %s: %s %s\n", sc->name, at, what, sheaf_code_name(err->code),
	        err->message);
	exit(1);
}

static void open_and_set_up(player *p, const golden *g, const char *dir)
{
	sheaf_error err;
	if (player_set_up(p, g->sc, g->memory ? NULL : dir, &err))
		die("the setup fails", g->sc, 0, &err);
}

/* What each session says, read with a store of its own where there can be one. */
static char **state_of(const player *p, const golden *g)
{
	sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
	sheaf_store *own = NULL;
	sheaf_error err;
	char url[300];
	char **state = calloc(PLAY_SESSIONS, sizeof(char *));

	options.readonly = 1;
	snprintf(url, sizeof(url), "jsonl:%s", p->dir);
	int rc = g->memory ? 0 : sheaf_open(&own, url, &options, &err);
	for (size_t i = 0; i < g->who.count; i++) {
		char none[100];
		snprintf(none, sizeof(none), "%s: %s\n", g->who.names[i],
		         rc == SHEAF_NOT_FOUND ? "absent" : sheaf_code_name(rc));
		state[i] = rc ? strdup(none)
		              : session_text(own ? own : p->store, own ? p->dir : NULL,
		                             g->who.names[i], true);
	}
	sheaf_close(own);
	return state;
}

static void state_free(char **state)
{
	for (size_t i = 0; i < PLAY_SESSIONS; i++)
		free(state[i]);
	free(state);
}

void golden_make(golden *g, const scenario *sc, bool memory)
{
	player p = {.dir = ""};
	char dir[256], store[300];
	sheaf_error err;
	int rc;

	*g = (golden){.sc = sc, .memory = memory, .steps = steps_count(sc->steps)};
	cast_of(&g->who, sc);
	g->states = calloc(g->steps + 1, sizeof(char **));
	g->said = calloc(g->steps + 1, sizeof(char *));
	scratch_dir(dir, "golden");
	snprintf(store, sizeof(store), "%s/store", dir);
	open_and_set_up(&p, g, store);
	g->states[0] = state_of(&p, g);
	for (unsigned i = 0; i < g->steps; i++) {
		if (player_do(&p, &sc->steps[i], i, false, &err))
			die("fails without a fault", sc, i, &err);
		g->states[i + 1] = state_of(&p, g);
		if (step_reads(&sc->steps[i]))
			g->said[i] = text_masked(p.said);
	}
	g->list = list_text(p.store, &rc, &err);
	if (rc)
		die("cannot list", sc, g->steps, &err);
	player_free(&p);
	tree_remove(dir);
}

void golden_free(golden *g)
{
	for (size_t i = 0; i <= g->steps; i++) {
		state_free(g->states[i]);
		free(g->said[i]);
	}
	free(g->states);
	free(g->said);
	free(g->list);
}

/* ---- With one ----------------------------------------------------------------------------- */

typedef struct run {
	const trial *t;
	const golden *g;
	player p;
	unsigned at; /* the step */
	bool bad;
} run;

__attribute__((format(printf, 2, 3))) static void complain(run *r, const char *format, ...)
{
	static unsigned long said;
	va_list args;

	r->bad = true;
	if (said++ >= COMPLAINTS_MAX)
		return;
	const step *s = &r->g->sc->steps[r->at];
	printf("%s%s %s, step %u (%s): ", r->g->sc->name, r->g->memory ? " (memory)" : "",
	       r->t->what, r->at, s->session ? s->session : "-");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

/* Where two texts part, for a message. */
static void show_difference(const char *is, const char *should)
{
	size_t i = 0;
	while (is[i] && is[i] == should[i])
		i++;
	size_t from = i > 60 ? i - 60 : 0;
	printf("    is:        …%.160s\n    should be: …%.160s\n", is + from, should + from);
}

/* Deleted and hidden are the same to everybody but the one who deletes. */
static bool unseen(const char *text)
{
	return strstr(text, ": absent\n") || strstr(text, ": hidden\n");
}

/*
 * The store is as in `should`; or, where that is open, each session is as in
 * `should` or as in `or`: what was under way has got somewhere.
 */
static void expect_state(run *r, char **should, char ** or, const char *when)
{
	r->t->kind->pause(true);
	char **is = state_of(&r->p, r->g);
	for (size_t i = 0; i < r->g->who.count; i++) {
		if (strcmp(is[i], should[i]) == 0)
			continue;
		if (or &&(strcmp(is[i], or [i]) == 0 || (unseen(is[i]) && unseen(or [i]))))
			continue;
		complain(r, "%s is not as it must be %s", r->g->who.names[i], when);
		if (trials.failures < COMPLAINTS_MAX)
			show_difference(is[i], or ? or [i] : should[i]);
	}
	state_free(is);
	r->t->kind->pause(false);
}

static void expect_undamaged(run *r, unsigned mask, const char *when)
{
	char why[400];
	if (r->p.store == NULL)
		return;
	r->t->kind->pause(true);
	if (check_count(r->p.store, mask, why, sizeof(why)))
		complain(r, "%s: %s", when, why);
	r->t->kind->pause(false);
}

#define DAMAGE_MASK                                                                                \
	(1u << SHEAF_PROBLEM_DAMAGE | 1u << SHEAF_PROBLEM_FORK | 1u << SHEAF_PROBLEM_FOREIGN)
#define ANY_MASK (DAMAGE_MASK | 1u << SHEAF_PROBLEM_TORN)

/* Damage is part of these until they are repaired. */
static unsigned mask_for(const run *r, unsigned mask)
{
	for (const step *s = r->g->sc->setup; s->kind != STEP_END; s++)
		if (step_damages(s) || step_tears(s))
			return mask & ~(1u << SHEAF_PROBLEM_DAMAGE | 1u << SHEAF_PROBLEM_TORN);
	return mask;
}

/* A list may say of a session that it cannot be read just now; it may not leave it out. */
static bool list_honest(const char *said, const char *should)
{
	for (const char *line = should; *line && *line != '\n'; line = strchr(line, '\n') + 1) {
		size_t key = strcspn(line, " \n"), all = strcspn(line, "\n");
		char name[100];
		snprintf(name, sizeof(name), "%.*s ", (int)key, line);
		const char *is = strstr(said, name);
		if (!is)
			return false;
		size_t length = strcspn(is, "\n");
		if ((length != all || memcmp(is, line, all) != 0) &&
		    !memmem(is, length, "damaged", 7))
			return false;
	}
	return true;
}

static void judge_success(run *r)
{
	const step *s = &r->g->sc->steps[r->at];
	if (!step_reads(s))
		return;
	char *said = text_masked(r->p.said);
	if (strcmp(said, r->g->said[r->at]) != 0 &&
	    !(s->kind == STEP_LIST && list_honest(said, r->g->said[r->at]))) {
		complain(r, "what was read is not true");
		if (trials.failures < COMPLAINTS_MAX)
			show_difference(said, r->g->said[r->at]);
	}
	free(said);
}

/* A step has failed: is what it says about itself true? */
static void judge_failure(run *r, int rc, const sheaf_error *err)
{
	const step *s = &r->g->sc->steps[r->at];
	char **before = r->g->states[r->at], **after = r->g->states[r->at + 1];

	if (rc != err->code)
		complain(r, "returned %s, but the error says %s", sheaf_code_name(rc),
		         sheaf_code_name(err->code));
	if (!r->t->kind->code_ok(rc, r->t->plan))
		complain(r, "failed with %s: %s", sheaf_code_name(rc), err->message);
	/* A message that cannot be made says so with NULL: there is no place for words. */
	if (err->message[0] == 0 && rc != SHEAF_NOMEM)
		complain(r, "%s without a word", sheaf_code_name(rc));
	/* A memory store is gone when it cannot be opened again. */
	if (r->p.store == NULL && r->g->memory)
		return;
	if (err->outcome == SHEAF_UNKNOWN && !step_reads(s))
		expect_state(r, before, after, "after UNKNOWN");
	else
		expect_state(r, before, NULL, "after FAILED");
}

/* The fault is over: what failed is tried again and works. */
static void recover(run *r)
{
	const step *s = &r->g->sc->steps[r->at];
	sheaf_error err;

	if (r->t->reopen && !r->g->memory) {
		player_close(&r->p);
		if (player_open(&r->p, NULL, &err))
			complain(r, "the store cannot be opened any more: %s", err.message);
	}
	if (r->p.store == NULL && s->kind != STEP_REOPEN) {
		complain(r, "there is no store any more");
		return;
	}
	if (!r->g->memory)
		expect_undamaged(r, mask_for(r, DAMAGE_MASK), "before the repeat");
	int rc = player_do(&r->p, s, r->at, true, &err);
	if (rc)
		complain(r, "the repeat fails: %s, %s", sheaf_code_name(rc), err.message);
	else
		judge_success(r);
	expect_state(r, r->g->states[r->at + 1], NULL, "after the repeat");
}

/* The steps, until a failure was seen and got over, and then the rest. */
static void play(run *r)
{
	const golden *g = r->g;
	sheaf_error err;
	bool armed = true;

	for (r->at = 0; r->at < g->steps && !r->bad; r->at++) {
		const step *s = &g->sc->steps[r->at];
		int rc = player_do(&r->p, s, r->at, false, &err);
		if (rc == 0) {
			judge_success(r);
			continue;
		}
		if (!armed) {
			complain(r, "fails after the fault: %s, %s", sheaf_code_name(rc),
			         err.message);
			return;
		}
		judge_failure(r, rc, &err);
		if (r->t->for_ever && !r->bad) {
			/* It still fails, or it does not: the truth either way. */
			bool unknown = err.outcome == SHEAF_UNKNOWN;
			rc = player_do(&r->p, s, r->at, true, &err);
			if (rc && unknown)
				err.outcome = SHEAF_UNKNOWN;
			if (rc)
				judge_failure(r, rc, &err);
			else
				judge_success(r);
		}
		if (r->t->for_ever && r->t->reopen && !r->g->memory)
			player_close(&r->p); /* with the fault still there */
		r->t->kind->disarm();
		armed = false;
		if (!r->bad)
			recover(r);
	}
	r->t->kind->disarm();
	r->at = (unsigned)g->steps - 1;
}

/* Of a session that was deleted nothing is left, except what its forks have: that is theirs. */
static void judge_erased(run *r, size_t who)
{
	const golden *g = r->g;
	char canary[80], where[400];

	snprintf(canary, sizeof(canary), "canary-%s-", g->who.names[who]);
	if (!strstr(g->states[g->steps][who], ": absent\n"))
		return;
	for (size_t i = 0; i < g->who.count; i++)
		if (strstr(g->states[g->steps][i], canary))
			return;
	if (tree_holds(r->p.dir, canary, where, sizeof(where)))
		complain(r, "%s was deleted, but %s still holds some of it", g->who.names[who],
		         where);
}

/* The end of a trial: everything is as if nothing had failed. */
static void judge_end(run *r)
{
	const golden *g = r->g;
	sheaf_error err;
	char where[400];
	int rc;

	/* First of all: a list may tidy up what a delete left behind. */
	for (size_t i = 0; r->t->erased && !g->memory && i < g->who.count; i++)
		judge_erased(r, i);
	expect_state(r, g->states[g->steps], NULL, "at the end");
	char *list = list_text(r->p.store, &rc, &err);
	if (rc || strcmp(list, g->list) != 0) {
		complain(r, "the list is not true at the end");
		if (trials.failures < COMPLAINTS_MAX && list)
			show_difference(list, g->list);
	}
	free(list);
	if (g->memory)
		return;
	player_close(&r->p);
	expect_state(r, g->states[g->steps], NULL, "when read anew");
	if (player_open(&r->p, NULL, &err)) {
		complain(r, "cannot be opened at the end: %s", err.message);
		return;
	}
	expect_undamaged(r, ANY_MASK, "at the end");
	list = list_text(r->p.store, &rc, &err);
	if (rc || strcmp(list, g->list) != 0) {
		complain(r, "the list is not true when read anew");
		if (trials.failures < COMPLAINTS_MAX && list)
			show_difference(list, g->list);
	}
	free(list);
	if (r->t->erased && !r->t->kind->litters() &&
	    tree_names(r->p.dir, "tmp-", where, sizeof(where)))
		complain(r, "%s was left behind", where);
}

bool trial_run(const trial *t)
{
	run r = {.t = t, .g = t->g};
	char dir[256], store[300];
	size_t descriptors = open_descriptors();

	trials.trials++;
	scratch_dir(dir, "trial");
	snprintf(store, sizeof(store), "%s/store", dir);
	open_and_set_up(&r.p, t->g, store);
	t->kind->arm(t->plan);
	play(&r);
	if (!r.bad && r.p.store)
		judge_end(&r);
	player_free(&r.p);
	size_t after = open_descriptors();
	if (after != descriptors)
		complain(&r, "%zu descriptors are open, %zu were", after, descriptors);
	if (t->kind->live() != 0)
		complain(&r, "%zu blocks of memory were not freed", t->kind->live());
	if (!r.bad || !getenv("SHEAF_TEST_KEEP"))
		tree_remove(dir);
	else
		printf("    kept: %s\n", dir);
	if (r.bad)
		trials.failures++;
	return !r.bad;
}
