/* What an append expects of the session, and what it is told when it missed. */
#include <pthread.h>
#include <stdio.h>

#include "suite.h"

CASE(expect_any_hangs_on_whatever_is_there)
{
	sheaf_session *a = t_new(t, "s");
	sheaf_session *b = t_existing(t, "s");
	SAY(a, "user", "1", .id = "u1", .expect = SHEAF_EXPECT_ANY);
	SAY(b, "assistant", "2", .id = "a1", .expect = SHEAF_EXPECT_ANY);
	SAY(a, "user", "3", .id = "u2", .expect = SHEAF_EXPECT_ANY);
	SAY(b, "user", "4", .id = "u3"); /* single appends: any is the default */
	IDS(t_path(t, a, NULL), "u1 a1 u2 u3");
}

CASE(expect_leaf_met)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1", .expect = SHEAF_EXPECT_LEAF, .leaf = "");
	SAY(s, "user", "2", .id = "u2", .expect = SHEAF_EXPECT_LEAF, .leaf = "u1");
	IDS(t_path(t, s, NULL), "u1 u2");
}

CASE(expect_leaf_missed_names_revision_and_leaf)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "user", "2", .id = "u2");
	LABEL(s, "u1", "l");
	FAILS(STALE, TRY_SAY(s, "user", "3", .expect = SHEAF_EXPECT_LEAF, .leaf = "u1"));
	EQ(t->err.revision, 3);
	CSTR(t->err.leaf, "u2");
	const char *leaf = t_format(t, "%s", t->err.leaf);
	EQ(t_revision(t, s), 3);
	SAY(s, "user", "3", .id = "u3", .expect = SHEAF_EXPECT_LEAF, .leaf = leaf);
	LEAF(s, "u3");
}

CASE(expect_leaf_before_the_first_entry)
{
	sheaf_session *s = t_new(t, "s");
	FAILS(STALE, TRY_SAY(s, "user", "1", .expect = SHEAF_EXPECT_LEAF, .leaf = "ghost"));
	EQ(t->err.revision, 0);
	CSTR(t->err.leaf, "");
	SAY(s, "user", "1", .id = "u1", .expect = SHEAF_EXPECT_LEAF);
	FAILS(STALE, TRY_SAY(s, "user", "2", .expect = SHEAF_EXPECT_LEAF));
	CSTR(t->err.leaf, "u1");
	OK(sheaf_session_clear(s, &t->err));
	SAY(s, "user", "2", .id = "u2", .expect = SHEAF_EXPECT_LEAF, .leaf = "");
	IDS(t_path(t, s, NULL), "u2");
}

CASE(expect_leaf_does_not_mind_facts)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	LABEL(s, "u1", "l");
	OK(t_rename(t, s, "n"));
	SAY(s, "user", "2", .id = "u2", .expect = SHEAF_EXPECT_LEAF, .leaf = "u1");
	LEAF(s, "u2");
}

CASE(expect_leaf_does_not_mind_other_branches)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	BRANCH(s, "side", "u1");
	SAY(s, "assistant", "side", .id = "x1", .branch = "side");
	SAY(s, "assistant", "side", .id = "x2", .branch = "side");
	SAY(s, "assistant", "main", .id = "a1", .expect = SHEAF_EXPECT_LEAF, .leaf = "u1");
	LEAF(s, "a1");
	LEAF_OF(s, "side", "x2");
	FAILS(STALE,
	      TRY_SAY(s, "user", "x", .branch = "side", .expect = SHEAF_EXPECT_LEAF, .leaf = "x1"));
	CSTR(t->err.leaf, "x2"); /* of the branch that was asked about */
	SAY(s, "user", "x", .id = "x3", .branch = "side", .expect = SHEAF_EXPECT_LEAF,
	    .leaf = "x2");
}

CASE(expect_leaf_minds_a_moved_branch)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "user", "2", .id = "u2");
	BRANCH(s, NULL, "u1");
	FAILS(STALE, TRY_SAY(s, "user", "3", .expect = SHEAF_EXPECT_LEAF, .leaf = "u2"));
	CSTR(t->err.leaf, "u1");
	EQ(t->err.revision, 3);
}

CASE(expect_revision_met)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1", .expect = SHEAF_EXPECT_REVISION, .revision = 0);
	SAY(s, "user", "2", .id = "u2", .expect = SHEAF_EXPECT_REVISION, .revision = 1);
	EQ(t_revision(t, s), 2);
}

CASE(expect_revision_minds_everything)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	LABEL(s, "u1", "l");
	FAILS(STALE, TRY_SAY(s, "user", "2", .expect = SHEAF_EXPECT_REVISION, .revision = 1));
	EQ(t->err.revision, 2);
	CSTR(t->err.leaf, "u1");
	FAILS(STALE, TRY_SAY(s, "user", "2", .expect = SHEAF_EXPECT_REVISION, .revision = 3));
	EQ(t_revision(t, s), 2);
}

CASE(expect_on_facts_and_branches)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "user", "2", .id = "u2");
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	how.expect = SHEAF_EXPECT_REVISION;
	how.revision = 1;
	FAILS(STALE, sheaf_session_label(s, S("u1"), S("l"), &how, NULL, &t->err));
	FAILS(STALE, sheaf_session_rename(s, S("n"), S(NULL), &how, NULL, &t->err));
	FAILS(STALE, sheaf_session_branch(s, S("b"), S("u1"), &how, NULL, &t->err));
	how.revision = 2;
	OK(sheaf_session_label(s, S("u1"), S("l"), &how, NULL, &t->err));
	how.revision = 3;
	OK(sheaf_session_rename(s, S("n"), S(NULL), &how, NULL, &t->err));
	how.expect = SHEAF_EXPECT_LEAF;
	how.leaf = S("u1");
	FAILS(STALE, sheaf_session_branch(s, S(NULL), S("u1"), &how, NULL, &t->err));
	CSTR(t->err.leaf, "u2");
	how.leaf = S("u2");
	OK(sheaf_session_branch(s, S(NULL), S("u1"), &how, NULL, &t->err));
	LEAF(s, "u1");
	EQ(t_revision(t, s), 5);
}

CASE(expect_turn_the_leaf_last_seen)
{
	sheaf_session *a = t_new(t, "s");
	SAY(a, "user", "1", .id = "u1");
	sheaf_session *b = t_existing(t, "s");
	SAY(b, "assistant", "faster", .id = "b1");
	sheaf_batch *turn = t_batch(t);
	ADD(turn, "assistant", "reply to u1", .id = "a1");
	FAILS(STALE,
	      sheaf_session_append_turn(a, turn, S("t1"), S(NULL), NULL, NULL, NULL, &t->err));
	CSTR(t->err.leaf, "b1");
	EQ(t->err.revision, 2);
	EQ(t_revision(t, b), 2);
	IDS(t_path(t, a, NULL), "u1 b1"); /* now it has seen it */
	OK(sheaf_session_append_turn(a, turn, S("t1"), S(NULL), NULL, NULL, NULL, &t->err));
	IDS(t_path(t, b, NULL), "u1 b1 a1");
}

CASE(expect_turn_any)
{
	sheaf_session *a = t_new(t, "s");
	SAY(a, "user", "1", .id = "u1");
	sheaf_session *b = t_existing(t, "s");
	SAY(b, "assistant", "faster", .id = "b1");
	sheaf_batch *turn = t_batch(t);
	ADD(turn, "assistant", "reply", .id = "a1");
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	how.expect = SHEAF_EXPECT_ANY;
	OK(sheaf_session_append_turn(a, turn, S("t1"), S(NULL), NULL, &how, NULL, &t->err));
	IDS(t_path(t, a, NULL), "u1 b1 a1");
}

CASE(expect_turn_does_not_mind_labels_of_others)
{
	sheaf_session *a = t_new(t, "s");
	SAY(a, "user", "1", .id = "u1");
	sheaf_session *b = t_existing(t, "s");
	LABEL(b, "u1", "seen by a person");
	OK(t_rename(t, b, "renamed meanwhile"));
	sheaf_batch *turn = t_batch(t);
	ADD(turn, "assistant", "reply", .id = "a1");
	OK(sheaf_session_append_turn(a, turn, S("t1"), S(NULL), NULL, NULL, NULL, &t->err));
	IDS(t_path(t, a, NULL), "u1 a1");
}

CASE(expect_turn_is_not_fooled_by_failures)
{
	/* What failed has shown the handle nothing. */
	sheaf_session *a = t_new(t, "s");
	SAY(a, "user", "1", .id = "u1");
	sheaf_session *b = t_existing(t, "s");
	SAY(b, "assistant", "faster", .id = "b1");
	FAILS(NOT_FOUND, TRY_SAY(a, "user", "x", .parent = "ghost"));
	FAILS(CONFLICT, TRY_SAY(a, "user", "x", .id = "u1", .parent = "b1"));
	sheaf_batch *turn = t_batch(t);
	ADD(turn, "assistant", "reply to u1", .id = "a1");
	FAILS(STALE,
	      sheaf_session_append_turn(a, turn, S("t1"), S(NULL), NULL, NULL, NULL, &t->err));
	EQ(t_revision(t, b), 2);
}

CASE(expect_turn_after_a_repeat)
{
	/* The answer to u2 was lost; others have gone on from there: the turn must learn it. */
	sheaf_session *a = t_new(t, "s");
	SAY(a, "user", "1", .id = "u1");
	sheaf_session *b = t_existing(t, "s");
	SAY(b, "user", "2", .id = "u2");
	SAY(b, "assistant", "faster", .id = "b1");
	SAY(a, "user", "2", .id = "u2");
	EQ(t->out.existed, 1);
	sheaf_batch *turn = t_batch(t);
	ADD(turn, "assistant", "reply to u2", .id = "a1");
	FAILS(STALE,
	      sheaf_session_append_turn(a, turn, S("t1"), S(NULL), NULL, NULL, NULL, &t->err));
	CSTR(t->err.leaf, "b1");
	/* Where nobody has gone on, a repeat is as good as the append itself. */
	SAY(b, "user", "3", .id = "u3");
	SAY(a, "user", "3", .id = "u3");
	EQ(t->out.existed, 1);
	OK(sheaf_session_append_turn(a, turn, S("t1"), S(NULL), NULL, NULL, NULL, &t->err));
	IDS(t_path(t, a, NULL), "u1 u2 b1 u3 a1");
}

CASE(expect_unknown_kind)
{
	sheaf_session *s = t_new(t, "s");
	FAILS(INVALID, TRY_SAY(s, "user", "1", .expect = 44));
	FAILS(INVALID, TRY_SAY(s, "user", "1", .expect = -1));
	EQ(t_revision(t, s), 0);
}

CASE(expect_does_not_excuse_a_missing_parent)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	FAILS(NOT_FOUND, TRY_SAY(s, "user", "2", .parent = "ghost", .expect = SHEAF_EXPECT_REVISION,
	                         .revision = 1));
	/* An explicit parent need not be the leaf that is expected. */
	SAY(s, "user", "2", .id = "u2", .root = 1, .expect = SHEAF_EXPECT_LEAF, .leaf = "u1");
	FAILS(STALE,
	      TRY_SAY(s, "user", "3", .parent = "u1", .expect = SHEAF_EXPECT_LEAF, .leaf = "u1"));
	CSTR(t->err.leaf, "u2");
}

#define RACERS 8
#define RACES 20

typedef struct racer {
	sheaf_store *store;
	sheaf_key key;
	char leaf[SHEAF_ID_ROOM];
	char id[SHEAF_ID_ROOM];
	pthread_barrier_t *start;
	int rc;
	sheaf_error err;
} racer;

static void *race(void *argument)
{
	racer *r = argument;
	sheaf_session *s = NULL;
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	r->rc = sheaf_session_open(&s, r->store, &r->key, &o, NULL);
	pthread_barrier_wait(r->start);
	if (r->rc)
		return NULL;
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	how.expect = SHEAF_EXPECT_LEAF;
	how.leaf = sheaf_str_of(r->leaf);
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = sheaf_str_of(r->id);
	r->rc = sheaf_session_append_model_change(s, sheaf_str_of("p"), sheaf_str_of("m"), &e, &how,
	                                          NULL, &r->err);
	sheaf_session_close(s);
	return NULL;
}

CASE(stale_one_of_eight_wins)
{
	sheaf_session *s = t_new(t, "s");
	sheaf_store *twin = suite_twin(t);
	char leaf[SHEAF_ID_ROOM] = "";
	for (int round = 0; round < RACES; round++) {
		racer racers[RACERS];
		pthread_t threads[RACERS];
		pthread_barrier_t start;
		pthread_barrier_init(&start, NULL, RACERS);
		memset(racers, 0, sizeof(racers));
		for (int i = 0; i < RACERS; i++) {
			racers[i].store = i % 2 ? twin : t->store;
			racers[i].key = t_key(t, "s");
			racers[i].start = &start;
			snprintf(racers[i].leaf, SHEAF_ID_ROOM, "%s", leaf);
			snprintf(racers[i].id, SHEAF_ID_ROOM, "r%d-%d", round, i);
			CHECK(pthread_create(&threads[i], NULL, race, &racers[i]) == 0);
		}
		for (int i = 0; i < RACERS; i++)
			pthread_join(threads[i], NULL);
		pthread_barrier_destroy(&start);
		int winner = -1;
		for (int i = 0; i < RACERS; i++) {
			CHECK(racers[i].rc == 0 || racers[i].rc == SHEAF_STALE);
			CHECK(racers[i].rc != 0 || winner < 0);
			if (racers[i].rc == 0)
				winner = i;
		}
		CHECK(winner >= 0);
		for (int i = 0; i < RACERS; i++)
			if (i != winner) {
				CSTR(racers[i].err.leaf, racers[winner].id);
				EQ(racers[i].err.revision, round + 1);
			}
		snprintf(leaf, sizeof(leaf), "%s", racers[winner].id);
		LEAF(s, leaf);
	}
	EQ(t_revision(t, s), RACES);
}
