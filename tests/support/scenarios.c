/* The scenarios that faults and crashes are tried on. */
#include "play.h"

#include <stdio.h>
#include <string.h>

#define PROCESS SHEAF_DURABILITY_PROCESS

/* clang-format off */
#define STEPS(...) (const step[]){__VA_ARGS__, {.kind = STEP_END}}

#define END {.kind = STEP_END}
#define CREATE(s) {.kind = STEP_CREATE, .session = (s)}
#define CREATE_STATE(s) {.kind = STEP_CREATE_STATE, .session = (s)}
#define STATE(s) {.kind = STEP_STATE, .session = (s), .bytes = 30}
#define APP(s) {.kind = STEP_APP, .session = (s)}
#define OPEN(s) {.kind = STEP_OPEN, .session = (s)}
#define REOPEN {.kind = STEP_REOPEN}
#define TEXT(s, n) {.kind = STEP_TEXT, .session = (s), .bytes = (n)}
#define TEXT_PROCESS(s, n) {.kind = STEP_TEXT, .session = (s), .bytes = (n), .durability = PROCESS}
#define AUTO(s, n) {.kind = STEP_AUTO, .session = (s), .bytes = (n)}
#define BATCH(s, k, n) {.kind = STEP_BATCH, .session = (s), .count = (k), .bytes = (n)}
#define CUSTOM(s, k) {.kind = STEP_CUSTOM, .session = (s), .count = (k)}
#define LABEL(s) {.kind = STEP_LABEL, .session = (s)}
#define NAME(s) {.kind = STEP_NAME, .session = (s)}
#define NAME_PROCESS(s) {.kind = STEP_NAME, .session = (s), .durability = PROCESS}
#define BRANCH(s) {.kind = STEP_BRANCH, .session = (s)}
#define COMPACT(s) {.kind = STEP_COMPACT, .session = (s)}
#define AGAIN(s, step) {.kind = STEP_AGAIN, .session = (s), .count = (step)}
#define FORK(s, to) {.kind = STEP_FORK, .session = (s), .other = (to)}
#define COPY(s, to) {.kind = STEP_COPY, .session = (s), .other = (to)}
#define EXPORT(s, to) {.kind = STEP_EXPORT, .session = (s), .other = (to)}
#define DELETE(s) {.kind = STEP_DELETE, .session = (s)}
#define PURGE(s) {.kind = STEP_PURGE, .session = (s)}
#define REPAIR(s) {.kind = STEP_REPAIR, .session = (s)}
#define LIST {.kind = STEP_LIST}
#define CHECK {.kind = STEP_CHECK}
#define RECORDS(s) {.kind = STEP_RECORDS, .session = (s)}
#define CONTEXT(s) {.kind = STEP_CONTEXT, .session = (s)}
#define TREE(s) {.kind = STEP_TREE, .session = (s)}
#define PATH(s) {.kind = STEP_PATH, .session = (s)}
#define DAMAGE(s) {.kind = STEP_DAMAGE, .session = (s)}
#define TEAR(s) {.kind = STEP_TEAR, .session = (s)}
#define PUT(s, n) {.kind = STEP_PUT, .session = (s), .bytes = (n)}
#define TAKE(s, k) {.kind = STEP_TAKE, .session = (s), .count = (k)}
#define CANCEL(s, step) {.kind = STEP_CANCEL, .session = (s), .count = (step)}
#define QUEUE(s) {.kind = STEP_QUEUE, .session = (s)}
#define DAMAGE_QUEUE(s) {.kind = STEP_DAMAGE_QUEUE, .session = (s)}
#define TEAR_QUEUE(s) {.kind = STEP_TEAR_QUEUE, .session = (s)}
/* clang-format on */

const scenario scenarios[] = {
	{"first", STEPS(END), STEPS(REOPEN, CREATE("a"), TEXT("a", 60), CREATE("one/two/b")), true,
         1},
	{"append", STEPS(CREATE("a"), TEXT("a", 40)),
         STEPS(TEXT("a", 300), AUTO("a", 700), TEXT("a", 1500), TEXT("a", 10)), false, 1},
	{"batch", STEPS(CREATE("a")),
         STEPS(BATCH("a", 3, 200), BATCH("a", 2, 900), TEXT("a", 20), BATCH("a", 5, 60)), false, 1},
	{"branch", STEPS(CREATE("a"), TEXT("a", 50), TEXT("a", 60)),
         STEPS(BRANCH("a"), LABEL("a"), NAME("a"), TEXT("a", 120), COMPACT("a"), TEXT("a", 30)),
         false, 1},
	{"create", STEPS(REOPEN),
         STEPS(CREATE("a"), CREATE("one/two/b"), TEXT("one/two/b", 80), CREATE("one/two/c"),
               TEXT("a", 30)),
         false, 1},
	{"levels", STEPS(CREATE("a"), TEXT("a", 30)),
         STEPS(TEXT_PROCESS("a", 400), NAME_PROCESS("a"), TEXT_PROCESS("a", 900), AGAIN("a", 0),
               TEXT_PROCESS("a", 20), TEXT("a", 20), NAME_PROCESS("a")),
         true, 1},
	{"fork-unsynced", STEPS(CREATE("a"), TEXT("a", 50)),
         STEPS(TEXT_PROCESS("a", 300), FORK("a", "b"), TEXT_PROCESS("a", 700), FORK("a", "c"),
               TEXT("c", 20), DELETE("a"), TEXT("b", 30)),
         true, 1},
	{"fork", STEPS(CREATE("a"), TEXT("a", 90), TEXT("a", 200)),
         STEPS(FORK("a", "b"), TEXT("b", 110), TEXT("a", 70), FORK("b", "c"), TEXT("c", 10)), false,
         1},
	{"delete", STEPS(CREATE("a"), TEXT("a", 90), CREATE("b"), TEXT("b", 20), LIST),
         STEPS(DELETE("a"), LIST, CREATE("a"), TEXT("a", 10), DELETE("a")), false, 1},
	{"delete-forked",
         STEPS(CREATE("a"), TEXT("a", 90), FORK("a", "b"), TEXT("b", 50), TEXT("a", 300)),
         STEPS(DELETE("a"), TEXT("b", 30), FORK("b", "c"), DELETE("b"), TEXT("c", 12), DELETE("c")),
         false, 1},
	{"purge", STEPS(CREATE("a"), TEXT("a", 90), FORK("a", "b"), TEXT("b", 50), FORK("a", "c")),
         STEPS(PURGE("a"), TEXT("b", 30), TEXT("c", 10), DELETE("b")), false, 1},
	{"key-again",
         STEPS(CREATE("b"), TEXT("b", 70), CREATE("a"), TEXT("a", 90), LIST, TEXT("b", 20), LIST),
         STEPS(DELETE("b"), FORK("a", "b"), TEXT("b", 20), DELETE("a"), RECORDS("b")), false, 1},
	{"copy", STEPS(CREATE("a"), TEXT("a", 90), BRANCH("a"), TEXT("a", 400), LABEL("a")),
         STEPS(COPY("a", "one/two/b"), TEXT("one/two/b", 60), EXPORT("a", "c"), TEXT("c", 20)),
         false, 1},
	{"read", STEPS(CREATE("a"), BATCH("a", 4, 100), BRANCH("a"), LABEL("a"), TEXT("a", 50)),
         STEPS(RECORDS("a"), CONTEXT("a"), TREE("a"), PATH("a"), CHECK), false, 1},
	{"list",
         STEPS(CREATE("a"), TEXT("a", 50), CREATE("b"), TEXT("b", 40), CREATE("one/two/c"),
               NAME("b")),
         STEPS(LIST, TEXT("a", 20), LIST, REOPEN, LIST, TEXT("b", 30), LIST), true, 1},
	{"reopen", STEPS(CREATE("a"), BATCH("a", 3, 200), TEXT("a", 100), FORK("a", "b")),
         STEPS(REOPEN, OPEN("a"), RECORDS("b"), TEXT("b", 40), REOPEN, TEXT("a", 60), LIST), true,
         1},
	{"torn", STEPS(CREATE("a"), TEXT("a", 300), TEXT("a", 100), TEAR("a")),
         STEPS(REOPEN, OPEN("a"), TEXT("a", 200), RECORDS("a"), DELETE("a")), true, 1},
	{"repair", STEPS(CREATE("a"), TEXT("a", 300), TEXT("a", 500), TEXT("a", 100), DAMAGE("a")),
         STEPS(REOPEN, REPAIR("a"), TEXT("a", 200), RECORDS("a"), CHECK), true, 1},
	{"state", STEPS(CREATE("a"), TEXT("a", 30), CREATE("b")),
         STEPS(STATE("a"), STATE("b"), TEXT("a", 20), STATE("a"), AGAIN("a", 0), FORK("a", "c"),
               CREATE_STATE("d"), STATE("c")),
         false, 3},
	{"state-delete", STEPS(CREATE("a"), STATE("a"), CREATE("b"), STATE("b")),
         STEPS(STATE("a"), DELETE("a"), STATE("b"), CREATE_STATE("a"), DELETE("b"), STATE("a")),
         false, 3},
	{"state-reopen", STEPS(CREATE("a"), STATE("a"), CREATE("b")),
         STEPS(REOPEN, STATE("b"), REOPEN, STATE("a"), RECORDS("a"), REOPEN, OPEN("b"), CHECK),
         true, 3},
	{"app-state", STEPS(CREATE("one/two/a"), TEXT("one/two/a", 20)),
         STEPS(APP("one/two/a"), TEXT("one/two/a", 30), APP("one/two/a"), STATE("one/two/a")),
         false, 1},
	{"sidecar", STEPS(CREATE("a"), CUSTOM("a", 600), TEXT("a", 30), REOPEN, RECORDS("a")),
         STEPS(TEXT("a", 60), CUSTOM("a", 520), REOPEN, TEXT("a", 50), AGAIN("a", 0), RECORDS("a"),
               DELETE("a")),
         true, 199},
	{"queue", STEPS(CREATE("a"), TEXT("a", 40)),
         STEPS(PUT("a", 60), PUT("a", 900), TEXT("a", 30), TAKE("a", 1), PUT("a", 30),
               CANCEL("a", 1), QUEUE("a"), TAKE("a", 5), TAKE("a", 1)),
         false, 1},
	{"queue-delete", STEPS(CREATE("a"), TEXT("a", 40), PUT("a", 80), CREATE("one/two/b")),
         STEPS(PUT("one/two/b", 50), DELETE("a"), CREATE("a"), QUEUE("a"), PUT("a", 70),
               DELETE("one/two/b"), TAKE("a", 1), DELETE("a")),
         false, 3},
	{"queue-forked", STEPS(CREATE("a"), TEXT("a", 40), PUT("a", 80)),
         STEPS(FORK("a", "b"), PUT("b", 50), DELETE("a"), TAKE("b", 1), PUT("b", 20), DELETE("b")),
         false, 3},
	{"queue-reopen", STEPS(CREATE("a"), PUT("a", 80), PUT("a", 40)),
         STEPS(REOPEN, PUT("a", 60), REOPEN, TAKE("a", 2), QUEUE("a"), REOPEN, QUEUE("a")), true,
         1},
	{"queue-rewritten", STEPS(CREATE("a"), PUT("a", 33000), PUT("a", 34000), PUT("a", 20)),
         STEPS(TAKE("a", 2), PUT("a", 50), TAKE("a", 1), QUEUE("a")), true, 1},
	{"queue-torn", STEPS(CREATE("a"), PUT("a", 80), PUT("a", 30), TEAR_QUEUE("a")),
         STEPS(REOPEN, QUEUE("a"), PUT("a", 200), TAKE("a", 1), DELETE("a")), true, 1},
	{"queue-repair",
         STEPS(CREATE("a"), PUT("a", 300), PUT("a", 500), PUT("a", 100), DAMAGE_QUEUE("a")),
         STEPS(REOPEN, REPAIR("a"), PUT("a", 200), QUEUE("a"), TAKE("a", 9)), true, 1},
};

const size_t scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);

size_t steps_count(const step *steps)
{
	size_t n = 0;
	while (steps[n].kind != STEP_END)
		n++;
	return n;
}

bool step_reads(const step *s)
{
	return s->kind >= STEP_LIST && s->kind <= STEP_QUEUE;
}

bool step_damages(const step *s)
{
	return s->kind == STEP_DAMAGE || s->kind == STEP_DAMAGE_QUEUE;
}

bool step_tears(const step *s)
{
	return s->kind == STEP_TEAR || s->kind == STEP_TEAR_QUEUE;
}

void step_file(const step *s, char *out, size_t room)
{
	const char *slash = strrchr(s->session, '/');
	int owner = slash ? (int)(slash - s->session) + 1 : 0;
	bool queue = s->kind == STEP_DAMAGE_QUEUE || s->kind == STEP_TEAR_QUEUE;
	snprintf(out, room, "%.*s%s%s.jsonl", owner, s->session, queue ? ".queue/" : "",
	         s->session + owner);
}

static void cast_add(cast *out, const char *name)
{
	if (name == NULL)
		return;
	for (size_t i = 0; i < out->count; i++)
		if (strcmp(out->names[i], name) == 0)
			return;
	if (out->count < PLAY_SESSIONS)
		out->names[out->count++] = name;
}

void cast_of(cast *out, const scenario *sc)
{
	out->count = 0;
	for (const step *s = sc->setup; s->kind != STEP_END; s++) {
		cast_add(out, s->session);
		cast_add(out, s->other);
	}
	for (const step *s = sc->steps; s->kind != STEP_END; s++) {
		cast_add(out, s->session);
		cast_add(out, s->other);
	}
}
