/* Tests of sheaf_session_append_compaction(): which cuts are safe, and what is stored. */
#include "kit.h"

#include <pthread.h>

#include "support/fail_alloc.h"

/* ---- Cuts ---------------------------------------------------------------- */

/* A compaction of a session that was just written; NULL wants it refused. */
static void check_cut(const char *script, const char *first_kept, const char *want)
{
	kit k;
	kit_open(&k);
	kit_script(&k, script);
	int rc = kit_compact(&k, "z", "s", first_kept);
	if (want == NULL) {
		assert_int_equal(rc, SHEAF_COMPACT);
		assert_int_equal(k.err.code, SHEAF_COMPACT);
		assert_int_equal(k.err.outcome, SHEAF_FAILED);
		assert_true(k.err.message[0] != '\0' && k.err.hint[0] != '\0');
		sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
		const sheaf_context *c = kit_context(&k, &o);
		assert_null(c->compaction);
		sheaf_context_free(c);
	} else {
		if (rc != 0)
			print_error("%s: %s\n", sheaf_code_name(rc), k.err.message);
		assert_int_equal(rc, 0);
		kit_items(&k, NULL, want);
	}
	kit_close(&k);
}

static void test_safe_cuts(void **state)
{
	(void)state;
	check_cut("u1=u:a a1=a:b u2=u:c a2=a:d", "u2", "S(s) u2 a2");
	check_cut("u1=u:a a1=a:b u2=u:c a2=a:d", "a2", "S(s) a2");
	check_cut("u1=u:a a1=a:b u2=u:c a2=a:d", "u1", "S(s) u1 a1 u2 a2");
	check_cut("u1=u:a a1=a:b u2=u:c a2=a:d", "", "S(s)");
	check_cut("u1=u:a a1=a:c1 t1=t:r1 a2=a:d", "a2", "S(s) a2");
	check_cut("u1=u:a a1=a:c1 t1=t:r1 a2=a:d", "a1", "S(s) a1 t1 a2");
	check_cut("u1=u:a a1=a:c1,c2 t1=t:r1 t2=t:r2 u2=u:d", "u2", "S(s) u2");
	/* The same id, used twice. */
	check_cut("u1=u:a a1=a:c1 t1=t:r1 a2=a:c1 t2=t:r1", "a2", "S(s) a2 t2");
	/* A call that is open in what is kept is nobody's harm. */
	check_cut("u1=u:a a1=a:b u2=u:c a2=a:c1", "u2", "S(s) u2 a2 !1");
	/* An answer that never had a call has none to lose. */
	check_cut("u1=u:a t1=t:r9 u2=u:c", "u2", "S(s) u2");
	check_cut("", "", "S(s)");
}

static void test_a_call_and_its_answer_stay_together(void **state)
{
	(void)state;
	check_cut("u1=u:a a1=a:c1 t1=t:r1 a2=a:d", "t1", NULL);
	check_cut("u1=u:a a1=a:c1,c2 t1=t:r1 t2=t:r2 a2=a:d", "t2", NULL);
	check_cut("u1=u:a a1=a:c1 u2=u:b t1=t:r1 a2=a:d", "u2", NULL);
	check_cut("u1=u:a a1=a:c1 u2=u:r1,more a2=a:d", "u2", NULL);
	check_cut("u1=u:a a1=a:c1 a2=a:c1 t1=t:r1 t2=t:r1", "a2", NULL);
	/* Right at an answer, even one without a call. */
	check_cut("u1=u:a t1=t:r9 u2=u:c", "t1", NULL);
}

static void test_an_open_call_before_the_cut(void **state)
{
	(void)state;
	check_cut("u1=u:a a1=a:c1 u2=u:b", "u2", NULL);
	check_cut("u1=u:a a1=a:c1", "", NULL);
	check_cut("u1=u:a a1=a:c1,c2 t1=t:r1 u2=u:b", "u2", NULL);
	check_cut("u1=u:a a1=a:c1,c2 t1=t:r1 u2=u:b", "a1", "S(s) a1 t1 !2 u2");
}

static void test_the_cut_is_on_the_path(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:b");
	kit_branch(&k, "side", "u1");
	k.entry.branch = SHEAF_STR("side");
	kit_script(&k, "v1=u:c v2=a:d");
	k.entry.branch = SHEAF_STR("");
	kit_script(&k, "u2=u:e");
	assert_int_equal(kit_compact(&k, "z1", "s", "v1"), SHEAF_COMPACT);
	assert_int_equal(kit_compact(&k, "z1", "s", "nothing"), SHEAF_NOT_FOUND);
	k.entry.branch = SHEAF_STR("side");
	assert_int_equal(kit_compact(&k, "z1", "s", "a1"), SHEAF_COMPACT);
	assert_int_equal(kit_compact(&k, "z1", "s", "v2"), 0);
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	o.branch = SHEAF_STR("side");
	kit_items(&k, &o, "S(s) v2");
	kit_items(&k, NULL, "u1 a1 u2");
	kit_close(&k);
}

static void test_the_cut_is_a_label(void **state)
{
	(void)state;
	kit k;
	char fact[SHEAF_ID_ROOM];
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:b");
	(void)strcpy(fact, kit_label(&k, "u1", "early"));
	kit_script(&k, "u2=u:c a2=a:d");
	(void)kit_label(&k, "a2", "late");
	/* The label of an entry means that entry. */
	assert_int_equal(kit_compact(&k, "z1", "s", "late"), 0);
	kit_items(&k, NULL, "S(s) a2");
	/* The id of a label record means the entry that follows it. */
	assert_int_equal(kit_compact(&k, "z2", "t", fact), 0);
	kit_items(&k, NULL, "S(t) u2 a2");
	sheaf_records *r;
	assert_int_equal(sheaf_session_get(&r, k.s, SHEAF_STR("z2"), &k.err), 0);
	kit_str(r->items[0]->target_id, "u2");
	sheaf_records_free(r);
	/* After that one there is none. */
	(void)strcpy(fact, kit_label(&k, "z2", "end"));
	assert_int_equal(kit_compact(&k, "z3", "u", fact), SHEAF_COMPACT);
	kit_close(&k);
}

/* ---- After another compaction -------------------------------------------- */

static void test_only_what_is_in_the_context_is_checked(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	/* The call that was never answered is summarised away by a tool that did not care. */
	kit_script(&k, "u1=u:a a1=a:c1 u2=u:b a2=a:d");
	kit_json(&k, "compaction", "z1",
	         "{'compaction':{'summary':'s','first_kept_entry_id':'u2'}}");
	kit_script(&k, "u3=u:e a3=a:f");
	assert_int_equal(kit_compact(&k, "z2", "t", "a3"), 0);
	kit_items(&k, NULL, "S(t) a3");
	assert_int_equal(kit_compact(&k, "z3", "t", ""), 0);
	kit_script(&k, "u4=u:g");
	assert_int_equal(kit_compact(&k, "z4", "t", "u4"), 0);
	/* Going back behind a summary is possible, but not into the middle of a pair. */
	assert_int_equal(kit_compact(&k, "z5", "t", "u2"), 0);
	kit_items(&k, NULL, "S(t) u2 a2 u3 a3 u4");
	assert_int_equal(kit_compact(&k, "z6", "t", "u1"), 0);
	kit_items(&k, NULL, "S(t) u1 a1 !1 u2 a2 u3 a3 u4");
	kit_close(&k);
}

static void test_going_back_behind_a_summary(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:c1 u2=u:b t1=t:r1 u3=u:c");
	assert_int_equal(kit_compact(&k, "z1", "s", "u3"), 0);
	kit_script(&k, "u4=u:d");
	assert_int_equal(kit_compact(&k, "z2", "s", "u2"), SHEAF_COMPACT);
	assert_int_equal(kit_compact(&k, "z2", "s", "t1"), SHEAF_COMPACT);
	assert_int_equal(kit_compact(&k, "z2", "s", "a1"), 0);
	kit_items(&k, NULL, "S(s) a1 t1 u2 u3 u4");
	kit_close(&k);
}

static void test_what_is_kept_is_checked(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:b u2=u:c a2=a:c1");
	assert_int_equal(kit_compact(&k, "z1", "s", "u2"), 0);
	/* The open call lies before the compaction, in what it keeps. */
	kit_script(&k, "u3=u:d");
	assert_int_equal(kit_compact(&k, "z2", "s", "u3"), SHEAF_COMPACT);
	assert_int_equal(kit_compact(&k, "z2", "s", ""), SHEAF_COMPACT);
	kit_script(&k, "t1=t:r1");
	assert_int_equal(kit_compact(&k, "z2", "s", "u3"), SHEAF_COMPACT);
	assert_int_equal(kit_compact(&k, "z2", "s", "a2"), 0);
	assert_int_equal(kit_compact(&k, "z3", "s", ""), 0);
	kit_items(&k, NULL, "S(s)");
	kit_close(&k);
}

static void test_forms_of_imports_are_checked(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:c1 u2=u:b a2=a:c2");
	kit_json(&k, "compaction", "z1", "{'compaction':{'summary':'s','kept_ids':['u1','a2']}}");
	kit_script(&k, "u3=u:c");
	/* Call 1 is not kept, call 2 is. */
	assert_int_equal(kit_compact(&k, "z2", "s", "u3"), SHEAF_COMPACT);
	kit_script(&k, "t2=t:r2 u4=u:d");
	assert_int_equal(kit_compact(&k, "z2", "s", "u4"), 0);

	kit_json(&k, "compaction", "z3",
	         "{'compaction':{'summary':'s','replacement':[{'role':'assistant','content':"
	         "[{'type':'tool_use','tool_use':{'id':'9','name':'t','input':{}}}]}]}}");
	kit_script(&k, "u5=u:e");
	assert_int_equal(kit_compact(&k, "z4", "s", "u5"), SHEAF_COMPACT);
	assert_int_equal(kit_compact(&k, "z4", "s", "z3"), SHEAF_COMPACT);
	kit_script(&k, "t9=t:r9 u6=u:f");
	assert_int_equal(kit_compact(&k, "z4", "s", "t9"), SHEAF_COMPACT);
	assert_int_equal(kit_compact(&k, "z4", "s", "u6"), 0);
	kit_items(&k, NULL, "S(s) u6");
	kit_close(&k);
}

/* ---- What is stored ------------------------------------------------------ */

static void check_body(kit *k, const char *id, const char *want)
{
	sheaf_records *r;
	assert_int_equal(sheaf_session_get(&r, k->s, sheaf_str_of(id), &k->err), 0);
	kit_str(r->items[0]->body, want);
	sheaf_records_free(r);
}

static void test_what_is_stored(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	assert_int_equal(kit_compact(&k, "z0", "", ""), 0);
	check_body(&k, "z0", "'compaction':{'summary':'','tokens_before':1000,'trigger':'manual'}");
	assert_int_equal(sheaf_session_append_model_change(k.s, SHEAF_STR("p"), SHEAF_STR("m\"1"),
	                                                   NULL, NULL, NULL, &k.err),
	                 0);
	assert_int_equal(sheaf_session_append_thinking_level(k.s, SHEAF_STR("high"), NULL, NULL,
	                                                     NULL, &k.err),
	                 0);
	kit_script(&k, "u1=u:a");
	assert_int_equal(kit_compact(&k, "z1", "one\ntwo", "u1"), 0);
	check_body(&k, "z1",
	           "'compaction':{'summary':'one\\ntwo','first_kept_entry_id':'u1',"
	           "'tokens_before':1000,'trigger':'manual','model':{'provider':'p',"
	           "'model_id':'m\\\"1'},'thinking_level':'high'}");
	/* The settings go from one to the next, also where none is set again. */
	kit_script(&k, "u2=u:b");
	k.entry.turn = SHEAF_STR("t1");
	assert_int_equal(kit_compact(&k, "z2", "s", "u2"), 0);
	check_body(&k, "z2",
	           "'compaction':{'summary':'s','first_kept_entry_id':'u2',"
	           "'tokens_before':1000,'trigger':'manual','model':{'provider':'p',"
	           "'model_id':'m\\\"1'},'thinking_level':'high'},'turn':'t1'");
	assert_int_equal(kit_compact(&k, "z3", "\xff", "u2"), SHEAF_INVALID);
	assert_int_equal(sheaf_session_append_compaction(NULL, SHEAF_STR("s"), SHEAF_STR(""), 0,
	                                                 NULL, NULL, NULL, &k.err),
	                 SHEAF_INVALID);
	kit_close(&k);
}

static void test_partial_is_dropped(void **state)
{
	(void)state;
	kit k;
	sheaf_appended out = SHEAF_APPENDED_INIT;
	kit_open(&k);
	kit_script(&k, "u1=u:a");
	k.entry.partial = 1;
	assert_int_equal(sheaf_session_append_compaction(k.s, SHEAF_STR("s"), SHEAF_STR("nowhere"),
	                                                 0, &k.entry, NULL, &out, &k.err),
	                 0);
	assert_int_equal(out.seq, 0);
	assert_true(out.id[0] != '\0');
	k.entry.partial = 0;
	kit_items(&k, NULL, "u1");
	kit_close(&k);
}

static int compact_as(kit *k, const char *id, const char *first_kept, sheaf_append_options *how,
                      sheaf_appended *out)
{
	sheaf_entry_options entry = k->entry;
	entry.id = sheaf_str_of(id);
	*out = (sheaf_appended)SHEAF_APPENDED_INIT;
	return sheaf_session_append_compaction(k->s, SHEAF_STR("s"), sheaf_str_of(first_kept), 7,
	                                       &entry, how, out, &k->err);
}

static void test_repeated_it_is_the_same(void **state)
{
	(void)state;
	kit k;
	sheaf_appended out;
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:b u2=u:c");
	how.expect = SHEAF_EXPECT_LEAF;
	how.leaf = SHEAF_STR("u2");
	assert_int_equal(compact_as(&k, "z1", "u2", &how, &out), 0);
	assert_int_equal(out.existed, 0);
	assert_string_equal(out.id, "z1");
	uint64_t seq = out.seq;
	/* Much has happened since: another model, and the cut is not even on the path now. */
	assert_int_equal(sheaf_session_append_model_change(k.s, SHEAF_STR("p"), SHEAF_STR("m"),
	                                                   NULL, NULL, NULL, &k.err),
	                 0);
	kit_script(&k, "a2=a:c1");
	assert_int_equal(compact_as(&k, "z1", "u2", &how, &out), 0);
	assert_int_equal(out.existed, 1);
	assert_int_equal(out.seq, seq);
	kit_branch(&k, "", "u1");
	assert_int_equal(compact_as(&k, "z1", "u2", NULL, &out), 0);
	assert_int_equal(out.existed, 1);
	/* Something else under its id is not. */
	assert_int_equal(compact_as(&k, "z1", "a1", &how, &out), SHEAF_CONFLICT);
	assert_int_equal(compact_as(&k, "z1", "", NULL, &out), SHEAF_CONFLICT);
	assert_int_equal(compact_as(&k, "u1", "", NULL, &out), SHEAF_CONFLICT);
	kit_close(&k);
}

/* ---- Others who write ---------------------------------------------------- */

static void test_expectations(void **state)
{
	(void)state;
	kit k;
	sheaf_appended out;
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:b u2=u:c");
	how.expect = SHEAF_EXPECT_LEAF;
	how.leaf = SHEAF_STR("a1");
	assert_int_equal(compact_as(&k, "z1", "a1", &how, &out), SHEAF_STALE);
	assert_string_equal(k.err.leaf, "u2");
	assert_int_equal(k.err.revision, 3);
	/* Even where the cut would be refused: what is stale is not looked at. */
	how.leaf = SHEAF_STR("nobody");
	assert_int_equal(compact_as(&k, "z1", "u2", &how, &out), SHEAF_STALE);
	assert_string_equal(out.id, "z1");
	how.expect = SHEAF_EXPECT_REVISION;
	how.revision = 2;
	assert_int_equal(compact_as(&k, "z1", "a1", &how, &out), SHEAF_STALE);
	assert_int_equal(k.err.revision, 3);
	how.revision = 3;
	assert_int_equal(compact_as(&k, "z1", "a1", &how, &out), 0);
	how.expect = 99;
	assert_int_equal(compact_as(&k, "z2", "a1", &how, &out), SHEAF_INVALID);
	kit_close(&k);
}

static void test_a_given_parent(void **state)
{
	(void)state;
	kit k;
	sheaf_appended out;
	kit_open(&k);
	kit_script(&k, "u1=u:a a1=a:b u2=u:c");
	k.entry.has_parent = 1;
	k.entry.parent_id = SHEAF_STR("a1");
	assert_int_equal(compact_as(&k, "z1", "u2", NULL, &out), SHEAF_COMPACT);
	assert_int_equal(compact_as(&k, "z1", "a1", NULL, &out), 0);
	kit_items(&k, NULL, "S(s) a1");
	k.entry.parent_id = SHEAF_STR("");
	assert_int_equal(compact_as(&k, "z2", "a1", NULL, &out), SHEAF_COMPACT);
	assert_int_equal(compact_as(&k, "z2", "", NULL, &out), 0);
	kit_items(&k, NULL, "S(s)");
	k.entry.parent_id = SHEAF_STR("nobody");
	assert_int_equal(compact_as(&k, "z3", "", NULL, &out), SHEAF_NOT_FOUND);
	kit_close(&k);
}

/* Somebody who appends right before each of our appends, some times. */
static struct intruder {
	kit *k;
	sheaf_session *s;
	int left;
	int serial;
	const char *word; /* what is said, or NULL for a fact */
	bool inside;
} intruder;

static int intrude(void *ctx, const char *slot, sheaf_error *err)
{
	(void)ctx;
	(void)err;
	if (strcmp(slot, "append") != 0 || intruder.inside || intruder.left == 0)
		return 0;
	intruder.inside = true;
	intruder.left--;
	if (intruder.word != NULL) {
		char id[16];
		sheaf_str parts = sheaf_str_of(intruder.word + 2);
		(void)snprintf(id, sizeof(id), "i%d", intruder.serial++);
		assert_int_equal(kit_put(intruder.k, intruder.s, sheaf_str_of(id),
		                         kit_message(intruder.word[0], parts)),
		                 0);
	} else {
		assert_int_equal(sheaf_session_label(intruder.s, SHEAF_STR("u1"), SHEAF_STR("x"),
		                                     NULL, NULL, NULL),
		                 0);
	}
	intruder.inside = false;
	return 0;
}

static int compact_among(kit *k, const char *word, int times, const char *first_kept)
{
	sheaf_key key = sheaf_key_of("s");
	sheaf_appended out;
	intruder = (struct intruder){.k = k, .left = times, .word = word};
	assert_int_equal(sheaf_session_open(&intruder.s, k->store, &key, NULL, &k->err), 0);
	store_set_fault(intrude, NULL);
	int rc = compact_as(k, "z1", first_kept, NULL, &out);
	store_set_fault(NULL, NULL);
	assert_true(intruder.left == 0 || rc == SHEAF_STALE);
	sheaf_session_close(intruder.s);
	return rc;
}

static void test_others_append_meanwhile(void **state)
{
	(void)state;
	static const struct {
		const char *word;
		int times;
		int rc;
		const char *want;
	} cases[] = {
		{NULL, 1, 0, "S(s) u2"},
		{"u:x", 1, 0, "S(s) u2 i0"},
		{"u:x", 5, 0, "S(s) u2 i0 i1 i2 i3 i4"},
		{"u:x", 1000, SHEAF_STALE, NULL},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		kit k;
		kit_open(&k);
		kit_script(&k, "u1=u:a a1=a:b u2=u:c");
		int rc = compact_among(&k, cases[i].word, cases[i].times, "u2");
		assert_int_equal(rc, cases[i].rc);
		if (cases[i].want != NULL)
			kit_items(&k, NULL, cases[i].want);
		kit_close(&k);
	}
}

static void test_a_call_opened_meanwhile(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:a");
	/* When we looked, nothing was open; when we store, a tool runs. */
	assert_int_equal(compact_among(&k, "a:c1", 1, ""), SHEAF_COMPACT);
	kit_items(&k, NULL, "u1 i0 !1");
	kit_close(&k);
}

typedef struct race {
	kit *k;
	sheaf_session *s;
	int number;
} race;

static void *race_run(void *arg)
{
	race *r = arg;
	for (int i = 0; i < 50; i++) {
		char id[32];
		sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
		(void)snprintf(id, sizeof(id), "w%d-%d", r->number, i);
		entry.id = sheaf_str_of(id);
		sheaf_message *m = kit_message('u', SHEAF_STR("x"));
		if (sheaf_session_append_message(r->s, m, &entry, NULL, NULL, NULL) != 0)
			abort();
		sheaf_message_free(m);
		int rc = sheaf_session_append_compaction(r->s, SHEAF_STR("s"), entry.id, 0, NULL,
		                                         NULL, NULL, NULL);
		if (rc != 0 && rc != SHEAF_STALE)
			abort();
	}
	return NULL;
}

static void test_many_compact_at_once(void **state)
{
	(void)state;
	enum {
		THREADS = 4
	};
	kit k;
	pthread_t threads[THREADS];
	race races[THREADS];
	kit_open(&k);
	for (int i = 0; i < THREADS; i++) {
		races[i] = (race){&k, k.s, i};
		assert_int_equal(pthread_create(&threads[i], NULL, race_run, &races[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	const sheaf_context *c = kit_context(&k, NULL);
	assert_int_equal(c->note_count, 0);
	assert_non_null(c->compaction);
	sheaf_context_free(c);
	kit_close(&k);
}

/* ---- Random sessions ----------------------------------------------------- */

typedef struct word {
	size_t calls[3];
	size_t call_count;
	size_t answer; /* 0: none */
} word;

/* The rule, said the slow way, over one path without compactions. */
static bool is_safe(const word *words, size_t count, size_t cut)
{
	bool answered[128] = {false};
	if (cut < count && words[cut].answer != 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (words[i].answer == 0)
			continue;
		for (size_t k = i; k-- > 0;) {
			size_t c = 0;
			while (c < words[k].call_count && words[k].calls[c] != words[i].answer)
				c++;
			if (c == words[k].call_count || answered[k * 3 + c])
				continue;
			answered[k * 3 + c] = true;
			if (k < cut && i >= cut)
				return false;
			break;
		}
	}
	for (size_t k = 0; k < count && k < cut; k++) {
		for (size_t c = 0; c < words[k].call_count; c++) {
			if (!answered[k * 3 + c])
				return false;
		}
	}
	return true;
}

static void test_random_cuts(void **state)
{
	(void)state;
	rng r = {UINT64_C(0x1234567)};
	size_t safe = 0;
	for (size_t round = 0; round < 3000; round++) {
		kit k;
		word words[24] = {{{0}, 0, 0}};
		size_t count = 1 + below(&r, 20), ids = 1 + below(&r, 4);
		kit_open(&k);
		for (size_t i = 0; i < count; i++) {
			char text[64];
			size_t kind = below(&r, 5);
			int at = snprintf(text, sizeof(text), "e%zu=%c:", i,
			                  kind == 0  ? 'a'
			                  : kind < 3 ? 't'
			                             : 'u');
			if (kind == 0) {
				size_t want = 1 + below(&r, 2);
				for (size_t c = 0; c < want; c++) {
					/* Not the same id twice in a message. */
					size_t id = 1 + (below(&r, ids) + c) % (ids + 1);
					if (c > 0 && id == words[i].calls[0])
						break;
					words[i].calls[words[i].call_count++] = id;
					at += snprintf(text + at, sizeof(text) - (size_t)at,
					               "%sc%zu", c != 0 ? "," : "", id);
				}
			} else if (kind < 3) {
				words[i].answer = 1 + below(&r, ids + 1);
				(void)snprintf(text + at, sizeof(text) - (size_t)at, "r%zu",
				               words[i].answer);
			} else {
				(void)snprintf(text + at, sizeof(text) - (size_t)at, "x");
			}
			kit_script(&k, text);
		}
		size_t cut = below(&r, count + 1);
		char id[32] = "";
		if (cut < count)
			(void)snprintf(id, sizeof(id), "e%zu", cut);
		bool want = is_safe(words, count, cut);
		assert_int_equal(kit_compact(&k, "z", "s", id), want ? 0 : SHEAF_COMPACT);
		safe += want;
		if (want) {
			/* A safe cut changes nothing in what is kept. */
			sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
			o.without_compaction = 1;
			const sheaf_context *c = kit_context(&k, NULL), *all = kit_context(&k, &o);
			/* A second answer may lose the first one, and its call with it. */
			bool seconds = kit_notes(all, SHEAF_NOTE_SECOND_ANSWER) != 0;
			assert_true(seconds || c->count - 1 <= all->count);
			for (size_t i = 1; !seconds && i < c->count; i++) {
				const sheaf_item *a = c->items[i];
				const sheaf_item *b = all->items[all->count - c->count + i];
				assert_int_equal(a->synthetic, b->synthetic);
				assert_true(str_eq(a->message->json, b->message->json));
			}
			sheaf_context_free(c);
			sheaf_context_free(all);
		}
		kit_close(&k);
	}
	assert_true(safe > 300 && safe < 2700);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	kit k;
	sheaf_appended out;
	fail_alloc_install();
	kit_open(&k);
	kit_script(&k, "u1=u:hi a1=a:c1,c2 t1=t:r1 t2=t:r2");
	kit_json(&k, "compaction", "z1",
	         "{'compaction':{'summary':'s','kept_ids':['a1','t1','t2'],'model':"
	         "{'provider':'p','model_id':'m'}}}");
	kit_script(&k, "u3=u:x");
	for (size_t n = 1;; n++) {
		fail_alloc_at(n, false);
		int rc = compact_as(&k, "z2", "u3", NULL, &out);
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		if (rc == 0)
			break;
		assert_true(hit);
		assert_int_equal(rc, SHEAF_NOMEM);
		assert_true(n < 10000);
	}
	kit_items(&k, NULL, "S(s) u3");
	kit_close(&k);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_safe_cuts),
		cmocka_unit_test(test_a_call_and_its_answer_stay_together),
		cmocka_unit_test(test_an_open_call_before_the_cut),
		cmocka_unit_test(test_the_cut_is_on_the_path),
		cmocka_unit_test(test_the_cut_is_a_label),
		cmocka_unit_test(test_only_what_is_in_the_context_is_checked),
		cmocka_unit_test(test_going_back_behind_a_summary),
		cmocka_unit_test(test_what_is_kept_is_checked),
		cmocka_unit_test(test_forms_of_imports_are_checked),
		cmocka_unit_test(test_what_is_stored),
		cmocka_unit_test(test_partial_is_dropped),
		cmocka_unit_test(test_repeated_it_is_the_same),
		cmocka_unit_test(test_expectations),
		cmocka_unit_test(test_a_given_parent),
		cmocka_unit_test(test_others_append_meanwhile),
		cmocka_unit_test(test_a_call_opened_meanwhile),
		cmocka_unit_test(test_many_compact_at_once),
		cmocka_unit_test(test_random_cuts),
		cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests_name("core/compaction", tests, NULL, NULL);
}
