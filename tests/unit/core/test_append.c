/* Tests of core/append.c, entries.c and batch.c: stamping, expectations, repeats, turns. */
#include "core_test.h"

#include <pthread.h>

#include "support/fail_alloc.h"
#include "store/store.h"

/* ---- One record --------------------------------------------------------- */

static void test_a_message_is_a_line(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY(s, "Hello", .id = "m1", .time_us = 1763114400000000);
	assert_int_equal(done.seq, 1);
	assert_int_equal(done.first_seq, 1);
	assert_int_equal(done.existed, 0);
	assert_int_equal(done.durability, SHEAF_DURABILITY_NONE);
	assert_string_equal(done.id, "m1");
	SAY(s, "u2028 \xe2\x80\xa8 \"q\" \\ \t", .id = "m2", .time_us = 1763114400000001);
	char *lines = lines_of(s);
	const char *first =
		"{\"type\":\"message\",\"id\":\"m1\",\"parent_id\":null,"
		"\"timestamp\":\"2025-11-14T10:00:00.000000Z\",\"message\":{\"role\":\"user\","
		"\"content\":[{\"type\":\"text\",\"text\":{\"content\":\"Hello\"}}]},"
		"\"seq\":1,\"crc\":\"";
	assert_memory_equal(lines, first, strlen(first));
	assert_non_null(strstr(lines, "\"id\":\"m2\",\"parent_id\":\"m1\""));
	assert_non_null(strstr(lines, "u2028 \xe2\x80\xa8 \\\"q\\\" \\\\ \\t"));
	free(lines);
	sheaf_session_close(s);
}

static void test_typed_appends(void **state)
{
	sheaf_session *s = make(*state, "s");
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_appended out = SHEAF_APPENDED_INIT;
	e.id = S("a");
	e.agent = S("root");
	e.turn = S("t1");
	e.extra = S("{\"metadata\":{\"x\":1}}");
	OK(sheaf_session_append_model_change(s, S("anthropic"), S("opus"), &e, NULL, &out, &err));
	OK(sheaf_session_append_thinking_level(s, S("high"), NULL, NULL, &out, &err));
	OK(sheaf_session_append_custom(s, S("note"), S("{\"n\": 1.0}"), NULL, NULL, &out, &err));
	OK(sheaf_session_append_custom(s, S("bare"), NONE, NULL, NULL, &out, &err));
	OK(sheaf_session_append_custom_text(s, S("hint"), S("look"), NULL, NULL, &out, &err));
	OK(sheaf_session_append_json(s, S("message"),
	                             S("{\"message\":{\"role\":\"user\",\"content\":\"x\"}}"), NULL,
	                             NULL, &out, &err));
	OK(sheaf_session_append_json(s, S("my_own_kind"), S("{\"my_own_kind\":{\"z\":null}}"), NULL,
	                             NULL, &out, &err));
	assert_int_equal(out.seq, 7);
	sheaf_records *r = NULL;
	OK(sheaf_session_path(&r, s, NONE, NONE, 0, &err));
	assert_int_equal(r->count, 7);
	assert_int_equal(r->items[0]->kind, SHEAF_KIND_MODEL_CHANGE);
	assert_str(r->items[0]->provider, "anthropic");
	assert_str(r->items[0]->model, "opus");
	assert_str(r->items[0]->agent, "root");
	assert_str(r->items[0]->turn, "t1");
	assert_str(r->items[1]->text, "high");
	assert_str(r->items[2]->text, "note");
	assert_str(r->items[2]->data, "{\"n\": 1.0}");
	assert_int_equal(r->items[3]->data.len, 0);
	assert_non_null(strstr(r->items[4]->line.ptr, "\"in_context\":true,\"content\":\"look\""));
	assert_int_equal(r->items[6]->kind, SHEAF_KIND_OTHER_ENTRY);
	assert_int_equal(r->items[6]->parent_seq, 6);
	sheaf_records_free(r);

	FAILS(INVALID, sheaf_session_append_custom(s, S("t"), S("{"), NULL, NULL, &out, &err));
	FAILS(INVALID, sheaf_session_append_json(s, S("session"), S("{}"), NULL, NULL, &out, &err));
	FAILS(INVALID, sheaf_session_append_json(s, S("message"), S("{\"message\":{},\"seq\":4}"),
	                                         NULL, NULL, &out, &err));
	FAILS(INVALID, sheaf_session_append_text(s, "nobody", S("x"), &out, &err));
	FAILS(INVALID, sheaf_session_append_text(s, "user", S("\xff"), &out, &err));
	FAILS(INVALID, sheaf_session_append_text(NULL, "user", S("x"), &out, &err));
	sheaf_session_close(s);
}

static void test_partial_pieces_are_dropped(void **state)
{
	sheaf_session *s = make(*state, "s");
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.partial = 1;
	e.id = S("p");
	sheaf_message *m = sheaf_message_new("assistant");
	(void)sheaf_message_text(m, S("Hel"));
	done = (sheaf_appended)SHEAF_APPENDED_INIT;
	OK(sheaf_session_append_message(s, m, &e, NULL, &done, &err));
	assert_int_equal(done.seq, 0);
	assert_string_equal(done.id, "p");
	OK(sheaf_session_append_json(s, S("custom"), S("{\"custom\":{\"custom_type\":\"x\"}}"), &e,
	                             NULL, &done, &err));
	sheaf_batch *b = sheaf_batch_new();
	OK(sheaf_batch_message(b, m, &e, &err));
	assert_int_equal(sheaf_batch_count(b), 0);
	sheaf_batch_free(b);
	sheaf_message_free(m);
	assert_int_equal(revision_of(s), 0);
	SAY(s, "Hello", .id = "p");
	assert_int_equal(done.seq, 1);
	sheaf_session_close(s);
}

static void test_parents(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b");
	SAY(s, "3", .id = "c", .parent = "a");
	expect_path(s, NULL, "a c");
	SAY(s, "4", .id = "r", .root = 1);
	expect_path(s, NULL, "r");
	OK(sheaf_session_label(s, S("b"), S("here"), NULL, NULL, &err));
	SAY(s, "5", .id = "d", .parent = "here");
	expect_path(s, NULL, "a b d");
	/* An id goes before a label of the same spelling. */
	OK(sheaf_session_label(s, S("b"), S("a"), NULL, NULL, &err));
	SAY(s, "6", .id = "e", .parent = "a");
	expect_path(s, NULL, "a e");
	SAY_FAILS(NOT_FOUND, s, "x", .parent = "nowhere");
	assert_int_equal(strlen(done.id), 36);
	OK(sheaf_session_rename(s, S("n"), NONE, NULL, &done, &err));
	SAY_FAILS(INVALID, s, "x", .parent = done.id);
	SAY_FAILS(NOT_FOUND, s, "x", .branch = "nobranch");
	SAY(s, "7", .id = "f", .branch = "new", .parent = "b");
	SAY(s, "8", .id = "g", .branch = "new");
	expect_path(s, "new", "a b f g");
	expect_leaf(s, NULL, "e");
	sheaf_session_close(s);
}

/* ---- Expectations ------------------------------------------------------- */

static void test_expect(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY(s, "1", .id = "a", .expect = SHEAF_EXPECT_LEAF, .leaf = "");
	SAY(s, "2", .id = "b", .expect = SHEAF_EXPECT_LEAF, .leaf = "a");
	SAY_FAILS(STALE, s, "3", .id = "c", .expect = SHEAF_EXPECT_LEAF, .leaf = "a");
	assert_int_equal(err.revision, 2);
	assert_string_equal(err.leaf, "b");
	assert_string_equal(done.id, "c");
	assert_int_equal(done.seq, 0);
	/* Facts and other branches do not matter to a leaf, but to a revision. */
	OK(sheaf_session_label(s, S("a"), S("l"), NULL, NULL, &err));
	SAY(s, "side", .id = "x", .branch = "side", .parent = "a");
	SAY(s, "3", .id = "c", .expect = SHEAF_EXPECT_LEAF, .leaf = "b");
	SAY_FAILS(STALE, s, "4", .expect = SHEAF_EXPECT_REVISION, .revision = 4);
	assert_int_equal(err.revision, 5);
	assert_string_equal(err.leaf, "c");
	SAY(s, "4", .id = "d", .expect = SHEAF_EXPECT_REVISION, .revision = 5);
	/* The leaf is the one of the entry's branch. */
	SAY_FAILS(STALE, s, "y", .branch = "side", .expect = SHEAF_EXPECT_LEAF, .leaf = "d");
	assert_string_equal(err.leaf, "x");
	SAY(s, "y", .id = "y", .branch = "side", .expect = SHEAF_EXPECT_LEAF, .leaf = "x");
	SAY_FAILS(INVALID, s, "z", .expect = 9);
	sheaf_session_close(s);
}

static void test_stale_before_the_first_entry(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY_FAILS(STALE, s, "1", .expect = SHEAF_EXPECT_LEAF, .leaf = "ghost");
	assert_int_equal(err.revision, 0);
	assert_string_equal(err.leaf, "");
	sheaf_session_close(s);
}

/* ---- Repeats ------------------------------------------------------------ */

static void test_repeating_is_idempotent(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b");
	SAY(s, "3", .id = "c");
	SAY(s, "2", .id = "b");
	assert_int_equal(done.existed, 1);
	assert_int_equal(done.seq, 2);
	assert_int_equal(done.first_seq, 2);
	assert_int_equal(revision_of(s), 3);
	SAY(s, "2", .id = "b", .parent = "a");
	assert_int_equal(done.existed, 1);
	SAY_FAILS(CONFLICT, s, "2", .id = "b", .parent = "c");
	SAY_FAILS(CONFLICT, s, "2", .id = "b", .root = 1);
	SAY_FAILS(CONFLICT, s, "two", .id = "b");
	/* Existed is tested before the expectation. */
	SAY(s, "2", .id = "b", .expect = SHEAF_EXPECT_LEAF, .leaf = "a");
	assert_int_equal(done.existed, 1);
	SAY(s, "2", .id = "b", .expect = SHEAF_EXPECT_REVISION, .revision = 1);
	assert_int_equal(done.existed, 1);
	SAY_FAILS(CONFLICT, s, "two", .id = "b", .expect = SHEAF_EXPECT_LEAF, .leaf = "a");
	assert_int_equal(revision_of(s), 3);
	sheaf_session_close(s);
}

static void test_batches(void **state)
{
	sheaf_session *s = make(*state, "s");
	sheaf_batch *b = sheaf_batch_new();
	FAILS(INVALID, sheaf_session_append_batch(s, b, NULL, &done, &err));
	ADD(b, "1", .id = "a");
	ADD(b, "2", .id = "b");
	ADD(b, "side", .id = "x", .branch = "side", .parent = "a");
	ADD(b, "3", .id = "c");
	ADD(b, "side", .id = "y", .branch = "side");
	OK(sheaf_batch_json(b, S("label"), S("{\"label\":{\"target_id\":\"b\",\"label\":\"L\"}}"),
	                    NULL, &err));
	OK(sheaf_batch_json(b, S("label"), S("{\"label\":{\"target_id\":\"c\",\"label\":\"M\"}}"),
	                    NULL, &err));
	assert_int_equal(sheaf_batch_count(b), 7);
	assert_string_equal(sheaf_batch_id(b, 2), "x");
	assert_null(sheaf_batch_id(b, 7));
	done = (sheaf_appended)SHEAF_APPENDED_INIT;
	OK(sheaf_session_append_batch(s, b, NULL, &done, &err));
	assert_int_equal(done.first_seq, 1);
	assert_int_equal(done.seq, 7);
	assert_string_equal(done.id, sheaf_batch_id(b, 6));
	expect_path(s, NULL, "a b c");
	expect_path(s, "side", "a x y");
	expect_label(s, "L", "b");
	expect_label(s, "M", "c");
	char *lines = lines_of(s);
	assert_non_null(strstr(lines, "\"seq\":4,\"batch\":[3,7]"));
	free(lines);

	/* The same batch again, also after others went on; the ids made here are known now. */
	SAY(s, "4", .id = "d");
	OK(sheaf_session_append_batch(s, b, NULL, &done, &err));
	assert_int_equal(done.existed, 1);
	assert_int_equal(done.seq, 7);
	assert_int_equal(done.first_seq, 1);
	/* A part of it, or more than it, is a conflict. */
	SAY_FAILS(CONFLICT, s, "1", .id = "a");
	ADD(b, "5", .id = "e");
	FAILS(CONFLICT, sheaf_session_append_batch(s, b, NULL, &done, &err));
	sheaf_batch_free(b);
	b = sheaf_batch_new();
	ADD(b, "3", .id = "c");
	ADD(b, "4", .id = "d");
	FAILS(CONFLICT, sheaf_session_append_batch(s, b, NULL, &done, &err));
	sheaf_batch_free(b);
	b = sheaf_batch_new();
	ADD(b, "new", .id = "n1");
	ADD(b, "1", .id = "a");
	FAILS(CONFLICT, sheaf_session_append_batch(s, b, NULL, &done, &err));
	assert_int_equal(revision_of(s), 8);
	sheaf_batch_free(b);
	sheaf_session_close(s);
}

static void test_batches_that_cannot_be(void **state)
{
	sheaf_session *s = make(*state, "s");
	sheaf_batch *b = sheaf_batch_new();
	ADD(b, "1", .id = "a");
	ADD(b, "2", .id = "a");
	FAILS(INVALID, sheaf_session_append_batch(s, b, NULL, &done, &err));
	sheaf_batch_free(b);

	b = sheaf_batch_new();
	ADD(b, "1", .id = "a", .parent = "b"); /* comes later */
	ADD(b, "2", .id = "b");
	FAILS(NOT_FOUND, sheaf_session_append_batch(s, b, NULL, &done, &err));
	sheaf_batch_free(b);

	b = sheaf_batch_new();
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("fact");
	OK(sheaf_batch_json(b, S("todo"), S("{\"todo\":{}}"), &e, &err));
	ADD(b, "2", .id = "b", .parent = "fact");
	FAILS(INVALID, sheaf_session_append_batch(s, b, NULL, &done, &err));
	sheaf_batch_free(b);

	b = sheaf_batch_new();
	OK(sheaf_batch_json(b, S("label"), S("{\"label\":{\"target_id\":\"zz\",\"label\":\"L\"}}"),
	                    NULL, &err));
	FAILS(NOT_FOUND, sheaf_session_append_batch(s, b, NULL, &done, &err));
	sheaf_batch_free(b);

	SAY(s, "x", .id = "m");
	b = sheaf_batch_new();
	OK(sheaf_batch_json(b, S("leaf"),
	                    S("{\"leaf\":{\"branch\":\"w\",\"entry_id\":\"m\",\"entry_seq\":9}}"),
	                    NULL, &err));
	FAILS(INVALID, sheaf_session_append_batch(s, b, NULL, &done, &err));
	sheaf_batch_free(b);
	b = sheaf_batch_new();
	OK(sheaf_batch_json(b, S("leaf"), S("{\"leaf\":{\"branch\":\"main\"}}"), NULL, &err));
	FAILS(INVALID, sheaf_session_append_batch(s, b, NULL, &done, &err));
	sheaf_batch_free(b);
	b = sheaf_batch_new();
	OK(sheaf_batch_json(b, S("leaf"),
	                    S("{\"leaf\":{\"branch\":\"w\",\"entry_id\":\"m\",\"entry_seq\":1}}"),
	                    NULL, &err));
	OK(sheaf_session_append_batch(s, b, NULL, &done, &err));
	expect_leaf(s, "w", "m");
	sheaf_batch_free(b);
	assert_int_equal(revision_of(s), 2);
	sheaf_session_close(s);
}

static void test_batch_limits(void **state)
{
	sheaf_session *s = make(*state, "s");
	sheaf_batch *b = sheaf_batch_new();
	sheaf_str body = S("{\"custom\":{\"custom_type\":\"x\"}}");
	for (unsigned i = 0; i < SHEAF_BATCH_RECORDS_MAX; i++)
		OK(sheaf_batch_json(b, S("custom"), body, NULL, &err));
	FAILS(LIMIT, sheaf_batch_json(b, S("custom"), body, NULL, &err));
	FAILS(LIMIT, sheaf_session_append_turn(s, b, NONE, NONE, NULL, NULL, &done, &err));
	OK(sheaf_session_append_batch(s, b, NULL, &done, &err));
	assert_int_equal(done.seq, SHEAF_BATCH_RECORDS_MAX);
	OK(sheaf_session_append_batch(s, b, NULL, &done, &err));
	assert_int_equal(done.existed, 1);
	sheaf_batch_free(b);

	b = sheaf_batch_new();
	size_t len = (size_t)15 << 20;
	char *text = malloc(len + 1);
	assert_non_null(text);
	memset(text, 'x', len);
	text[len] = '\0';
	for (int i = 0; i < 4; i++)
		ADD(b, text, .id = NULL);
	sheaf_message *m = sheaf_message_new("user");
	(void)sheaf_message_text(m, S(text));
	FAILS(TOO_LARGE, sheaf_batch_message(b, m, NULL, &err));
	sheaf_message_free(m);
	OK(sheaf_session_append_batch(s, b, NULL, &done, &err));
	sheaf_batch_free(b);
	free(text);
	sheaf_session_close(s);
}

/* ---- Turns -------------------------------------------------------------- */

static void test_turns(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s"), *other = again(store, "s");
	sheaf_usage usage = {100, 20, 0, 0, 30, 0};
	sheaf_batch *b = sheaf_batch_new();
	ADD(b, "q", .id = "q1");
	sheaf_entry_options own = SHEAF_ENTRY_OPTIONS_INIT;
	own.turn = S("mine");
	own.id = S("q2");
	OK(sheaf_batch_json(b, S("message"),
	                    S("{\"message\":{\"role\":\"user\",\"content\":\"x\"}}"), &own, &err));
	done = (sheaf_appended)SHEAF_APPENDED_INIT;
	OK(sheaf_session_append_turn(s, b, S("t1"), NONE, &usage, NULL, &done, &err));
	assert_int_equal(done.seq, 3);
	assert_int_equal(sheaf_batch_count(b), 2);
	char *lines = lines_of(s);
	assert_non_null(strstr(lines, "\"turn\":\"t1\",\"seq\":1,\"batch\":[0,3]"));
	assert_non_null(strstr(lines, "\"turn\":\"mine\",\"seq\":2"));
	assert_non_null(strstr(lines,
	                       "\"turn_end\":{\"turn\":\"t1\",\"outcome\":\"completed\",\"usage\":{"
	                       "\"input\":100,\"cache_read\":20,\"output\":30}}"));
	free(lines);
	sheaf_head_view *h = NULL;
	OK(sheaf_session_head(&h, s, &err));
	assert_int_equal(h->info->turns, 1);
	assert_int_equal(h->info->usage.input, 100);
	sheaf_head_view_free(h);
	/* Again: the same ids, the same turn. */
	OK(sheaf_session_append_turn(s, b, NONE, NONE, &usage, NULL, &done, &err));
	assert_int_equal(done.existed, 1);
	FAILS(CONFLICT,
	      sheaf_session_append_turn(s, b, NONE, S("failed"), &usage, NULL, &done, &err));
	sheaf_batch_free(b);

	/* The other handle has not seen the turn. */
	b = sheaf_batch_new();
	ADD(b, "q", .id = "q3");
	FAILS(STALE, sheaf_session_append_turn(other, b, NONE, NONE, NULL, NULL, &done, &err));
	assert_string_equal(err.leaf, "q2");
	assert_int_equal(err.revision, 3);
	/* Looking is enough. */
	expect_leaf(other, NULL, "q2");
	OK(sheaf_session_append_turn(other, b, NONE, S("interrupted"), NULL, NULL, &done, &err));
	sheaf_batch_free(b);

	/* The first handle is behind now; a single append does not mind and catches up. */
	b = sheaf_batch_new();
	ADD(b, "q", .id = "q5");
	FAILS(STALE, sheaf_session_append_turn(s, b, NONE, NONE, NULL, NULL, &done, &err));
	SAY(s, "q", .id = "q4");
	OK(sheaf_session_append_turn(s, b, NONE, NONE, NULL, NULL, &done, &err));
	sheaf_append_options any = SHEAF_APPEND_OPTIONS_INIT;
	any.expect = SHEAF_EXPECT_ANY;
	sheaf_batch_free(b);
	b = sheaf_batch_new();
	ADD(b, "q", .id = "q6");
	OK(sheaf_session_append_turn(other, b, NONE, NONE, NULL, &any, &done, &err));
	expect_path(s, NULL, "q1 q2 q3 q4 q5 q6");
	sheaf_batch_free(b);

	/* An empty batch ends a turn that was appended as it came. */
	b = sheaf_batch_new();
	FAILS(INVALID, sheaf_session_append_turn(s, b, NONE, NONE, NULL, NULL, &done, &err));
	OK(sheaf_session_append_turn(s, b, S("t9"), NONE, NULL, NULL, &done, &err));
	sheaf_batch_free(b);
	sheaf_session_close(s);
	sheaf_session_close(other);
}

/* A repeat of what was stored makes the handle see it, unless others went on. */
static void test_turn_after_a_repeat(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s"), *other = again(store, "s");
	SAY(other, "1", .id = "a"); /* as if s had sent it and got no answer */
	SAY(s, "1", .id = "a");
	assert_int_equal(done.existed, 1);
	sheaf_batch *b = sheaf_batch_new();
	ADD(b, "2", .id = "b");
	OK(sheaf_session_append_turn(s, b, NONE, NONE, NULL, NULL, &done, &err));
	sheaf_batch_free(b);
	SAY(other, "3", .id = "c");
	SAY(other, "4", .id = "d");
	SAY(s, "3", .id = "c");
	assert_int_equal(done.existed, 1);
	b = sheaf_batch_new();
	ADD(b, "5", .id = "e");
	FAILS(STALE, sheaf_session_append_turn(s, b, NONE, NONE, NULL, NULL, &done, &err));
	assert_string_equal(err.leaf, "d");
	sheaf_batch_free(b);
	sheaf_session_close(s);
	sheaf_session_close(other);
}

/* ---- Faults ------------------------------------------------------------- */

static int fault_calls;

static int fault_after_write(void *ctx, const char *slot, sheaf_error *e)
{
	(void)ctx;
	(void)e;
	if (strcmp(slot, "append") != 0)
		return 0;
	fault_calls++;
	if (fault_calls == 1) {
		memset(e, 0, sizeof(*e));
		e->code = SHEAF_STORAGE;
		e->outcome = SHEAF_UNKNOWN;
		return SHEAF_STORAGE;
	}
	return 0;
}

static void test_unknown_outcome_passes_through(void **state)
{
	sheaf_session *s = make(*state, "s");
	fault_calls = 0;
	store_set_fault(fault_after_write, NULL);
	done = (sheaf_appended)SHEAF_APPENDED_INIT;
	int rc = sheaf_session_append_text(s, "user", S("x"), &done, &err);
	assert_int_equal(rc, SHEAF_STORAGE);
	assert_int_equal(err.outcome, SHEAF_UNKNOWN);
	assert_int_equal(strlen(done.id), 36);
	store_set_fault(NULL, NULL);
	char id[SHEAF_ID_ROOM];
	memcpy(id, done.id, sizeof(id));
	SAY(s, "x", .id = id);
	assert_int_equal(done.existed, 0);
	SAY(s, "x", .id = id);
	assert_int_equal(done.existed, 1);
	sheaf_session_close(s);
}

static void test_without_memory(void **state)
{
	(void)state;
	fail_alloc_install();
	sheaf_store *store = NULL;
	sheaf_session *s = NULL;
	sheaf_key key = sheaf_key_of("s");
	assert_int_equal(sheaf_open(&store, "memory:", NULL, NULL), 0);
	assert_int_equal(sheaf_session_open(&s, store, &key, NULL, NULL), 0);
	sheaf_batch *b = sheaf_batch_new();
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = S("a");
	sheaf_message *m = sheaf_message_new("user");
	(void)sheaf_message_text(m, S("hello"));
	assert_int_equal(sheaf_batch_message(b, m, &e, NULL), 0);
	e.id = S("b");
	assert_int_equal(sheaf_batch_message(b, m, &e, NULL), 0);
	size_t failures = 0;
	for (size_t n = 1;; n++) {
		fail_alloc_at(n, false);
		memset(&err, 0, sizeof(err));
		int rc = sheaf_session_append_turn(s, b, S("t"), NONE, NULL, NULL, NULL, &err);
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		if (rc == 0 && !hit)
			break;
		if (rc != 0) {
			assert_int_equal(rc, SHEAF_NOMEM);
			assert_int_equal(err.code, SHEAF_NOMEM);
			assert_int_equal(revision_of(s), 0);
		}
		failures++;
	}
	assert_true(failures > 3);
	assert_int_equal(revision_of(s), 3);
	sheaf_message_free(m);
	sheaf_batch_free(b);
	sheaf_session_close(s);
	sheaf_close(store);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

/* ---- Threads ------------------------------------------------------------ */

enum {
	THREADS = 4,
	EACH = 500
};

static void *append_many(void *arg)
{
	sheaf_session *s = arg;
	for (int i = 0; i < EACH; i++) {
		if (sheaf_session_append_text(s, "user", S("text"), NULL, NULL) != 0)
			return arg;
	}
	return NULL;
}

static void test_threads_share_a_handle(void **state)
{
	sheaf_session *s = make(*state, "s");
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, append_many, s), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed = s;
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(revision_of(s), THREADS * EACH);
	sheaf_records *r = NULL;
	OK(sheaf_session_path(&r, s, NONE, NONE, 0, &err));
	assert_int_equal(r->count, THREADS * EACH);
	for (size_t i = 1; i < r->count; i++)
		assert_int_equal(r->items[i]->parent_seq, r->items[i - 1]->seq);
	sheaf_records_free(r);
	/* The handle has seen the last of them. */
	sheaf_batch *b = sheaf_batch_new();
	ADD(b, "end", .id = "end");
	OK(sheaf_session_append_turn(s, b, NONE, NONE, NULL, NULL, NULL, &err));
	sheaf_batch_free(b);
	sheaf_session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_message_is_a_line),
		TEST(test_typed_appends),
		TEST(test_partial_pieces_are_dropped),
		TEST(test_parents),
		TEST(test_expect),
		TEST(test_stale_before_the_first_entry),
		TEST(test_repeating_is_idempotent),
		TEST(test_batches),
		TEST(test_batches_that_cannot_be),
		TEST(test_batch_limits),
		TEST(test_turns),
		TEST(test_turn_after_a_repeat),
		TEST(test_unknown_outcome_passes_through),
		TEST(test_threads_share_a_handle),
		cmocka_unit_test(test_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
