/* Tests of core/copy.c and transfer.c: copies keep bytes and numbers, exports make a line. */
#include "core_test.h"

#include "support/fail_alloc.h"
#include "store/store.h"

static sheaf_session *copy_to(sheaf_session *s, sheaf_store *store, const char *id)
{
	sheaf_session *made = NULL;
	sheaf_key key = {S("app"), S("user"), S(id)};
	OK(sheaf_session_copy(&made, s, store, &key, &err));
	return made;
}

/* The same records; the frame of a fork's record may be without its parent_seq. */
static void expect_same_lines(sheaf_session *a, sheaf_session *b)
{
	char *x = lines_of(a), *y = lines_of(b);
	assert_string_equal(x, y);
	free(x);
	free(y);
}

static void expect_same_heads(sheaf_session *a, sheaf_session *b)
{
	sheaf_head_view *x = NULL, *y = NULL;
	OK(sheaf_session_head(&x, a, &err));
	OK(sheaf_session_head(&y, b, &err));
	assert_int_equal(x->branch_count, y->branch_count);
	for (size_t i = 0; i < x->branch_count; i++) {
		bool found = false;
		for (size_t k = 0; k < y->branch_count; k++) {
			if (x->branches[i]->name.len == y->branches[k]->name.len &&
			    memcmp(x->branches[i]->name.ptr, y->branches[k]->name.ptr,
			           x->branches[i]->name.len) == 0) {
				found = true;
				assert_int_equal(x->branches[i]->leaf_seq,
				                 y->branches[k]->leaf_seq);
			}
		}
		assert_true(found);
	}
	assert_int_equal(x->info->name.len, y->info->name.len);
	assert_memory_equal(x->info->name.ptr, y->info->name.ptr, x->info->name.len);
	assert_int_equal(x->info->created_us, y->info->created_us);
	sheaf_head_view_free(x);
	sheaf_head_view_free(y);
}

static void test_copy_keeps_everything(void **state)
{
	sheaf_store *store = *state, *elsewhere = NULL;
	sheaf_session *s = make(store, "s");
	sheaf_batch *b = sheaf_batch_new();
	ADD(b, "1 \xe2\x80\xa8", .id = "a");
	ADD(b, "2", .id = "b");
	OK(sheaf_session_append_turn(s, b, S("t"), NONE, NULL, NULL, NULL, &err));
	sheaf_batch_free(b);
	SAY(s, "3", .id = "c", .branch = "side", .parent = "a");
	OK(sheaf_session_label(s, S("a"), S("L"), NULL, NULL, &err));
	OK(sheaf_session_rename(s, S("Name"), S("{\"x\":1}"), NULL, NULL, &err));
	OK(sheaf_open(&elsewhere, "memory:", NULL, &err));
	sheaf_session *c = copy_to(s, elsewhere, "copy");
	expect_same_lines(s, c);
	expect_same_heads(s, c);
	expect_label(c, "L", "a");
	assert_str(sheaf_session_key(c).app, "app");
	/* It goes on by itself, and the ids are taken. */
	SAY(c, "4", .id = "d");
	SAY(c, "3", .id = "c", .branch = "side", .parent = "a");
	assert_int_equal(done.existed, 1);
	expect_path(c, NULL, "a b d");
	sheaf_session *again_ = NULL;
	sheaf_key key = {S("app"), S("user"), S("copy")};
	FAILS(EXISTS, sheaf_session_copy(&again_, s, elsewhere, &key, &err));
	expect_path(c, NULL, "a b d"); /* and it is still there */
	sheaf_session_close(c);
	sheaf_session_close(s);
	sheaf_close(elsewhere);
}

static void test_copy_of_an_empty_session(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s"), *c = copy_to(s, store, "c");
	assert_int_equal(revision_of(c), 0);
	SAY(c, "1", .id = "a");
	sheaf_session_close(c);
	sheaf_session_close(s);
}

/* What a fork inherits comes first; other branches of the source do not come back. */
static void test_copy_of_a_fork(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s");
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b");
	SAY(s, "3", .id = "x", .branch = "side", .parent = "a");
	OK(sheaf_session_rename(s, S("early"), NONE, NULL, NULL, &err));
	SAY(s, "4", .id = "c");
	OK(sheaf_session_rename(s, S(""), NONE, NULL, NULL, &err));
	sheaf_session *f = fork_of(s, "b", "f");
	sheaf_session *c = copy_to(f, store, "c1");
	expect_same_heads(f, c); /* the same leaf, though nothing was added */
	expect_path(c, NULL, "a b");
	sheaf_session_close(c);
	sheaf_session *g = fork_of(s, "c", "g");
	SAY(g, "5", .id = "g1");
	SAY(g, "6", .id = "g2", .branch = "own", .parent = "a");
	OK(sheaf_session_label(g, S("a"), S("L"), NULL, NULL, &err));
	c = copy_to(g, store, "c2");
	expect_same_heads(g, c);
	expect_path(c, NULL, "a b c g1");
	expect_path(c, "own", "a g2");
	expect_label(c, "L", "a");
	char id[SHEAF_ID_ROOM];
	FAILS(NOT_FOUND, sheaf_session_leaf(c, S("side"), id, &err));
	sheaf_head_view *h = NULL;
	OK(sheaf_session_head(&h, c, &err));
	assert_int_equal(h->info->base, 0);
	assert_int_equal(h->info->source.len, 0);
	sheaf_head_view_free(h);
	/* Every record of the fork is there, under its number and with its content. */
	sheaf_records *x = NULL, *y = NULL;
	OK(sheaf_session_records(&x, g, NULL, &err));
	OK(sheaf_session_records(&y, c, NULL, &err));
	assert_true(y->count >= x->count);
	for (size_t i = 0; i < x->count; i++) {
		assert_int_equal(x->items[i]->seq, y->items[i]->seq);
		assert_int_equal(x->items[i]->parent_seq, y->items[i]->parent_seq);
		assert_int_equal(x->items[i]->id.len, y->items[i]->id.len);
		assert_memory_equal(x->items[i]->id.ptr, y->items[i]->id.ptr, x->items[i]->id.len);
		assert_int_equal(x->items[i]->body.len, y->items[i]->body.len);
		assert_memory_equal(x->items[i]->body.ptr, y->items[i]->body.ptr,
		                    x->items[i]->body.len);
	}
	sheaf_records_free(x);
	sheaf_records_free(y);
	/* The sources may go now. */
	sheaf_key key = sheaf_key_of("s");
	sheaf_delete_options purge = SHEAF_DELETE_OPTIONS_INIT;
	purge.purge = 1;
	OK(sheaf_store_delete(NULL, store, &key, &purge, &err));
	expect_path(c, NULL, "a b c g1");
	sheaf_session_close(c);
	sheaf_session_close(g);
	sheaf_session_close(f);
	sheaf_session_close(s);
}

/* More than one portion: whole batches stay whole. */
static void test_copy_in_portions(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s");
	sheaf_str body = S("{\"custom\":{\"custom_type\":\"x\"}}");
	for (int k = 0; k < 4; k++) {
		sheaf_batch *b = sheaf_batch_new();
		for (int i = 0; i < 3000; i++)
			OK(sheaf_batch_json(b, S("custom"), body, NULL, &err));
		OK(sheaf_session_append_batch(s, b, NULL, NULL, &err));
		sheaf_batch_free(b);
		SAY(s, "between", .id = NULL);
	}
	size_t len = (size_t)15 << 20;
	char *text = malloc(len + 1);
	assert_non_null(text);
	memset(text, 'x', len);
	text[len] = '\0';
	for (int k = 0; k < 2; k++) {
		sheaf_batch *b = sheaf_batch_new();
		for (int i = 0; i < 3; i++)
			ADD(b, text, .id = NULL);
		OK(sheaf_session_append_batch(s, b, NULL, NULL, &err));
		sheaf_batch_free(b);
	}
	free(text);
	sheaf_session *c = copy_to(s, store, "c");
	expect_same_lines(s, c);
	expect_same_heads(s, c);
	sheaf_session_close(c);
	sheaf_session_close(s);
}

/* What comes after the creation fails: nothing of the copy stays. */
static int fail_replace(void *ctx, const char *slot, sheaf_error *e)
{
	int *appends = ctx;
	*appends += strcmp(slot, "append") == 0;
	if (strcmp(slot, "replace") != 0)
		return 0;
	memset(e, 0, sizeof(*e));
	e->code = SHEAF_STORAGE;
	(void)snprintf(e->message, sizeof(e->message), "no");
	return SHEAF_STORAGE;
}

static void test_half_a_copy_is_removed(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s"), *c = NULL;
	sheaf_str body = S("{\"custom\":{\"custom_type\":\"x\"}}");
	for (int k = 0; k < 2; k++) {
		sheaf_batch *b = sheaf_batch_new();
		for (int i = 0; i < 3000; i++)
			OK(sheaf_batch_json(b, S("custom"), body, NULL, &err));
		OK(sheaf_session_append_batch(s, b, NULL, NULL, &err));
		sheaf_batch_free(b);
	}
	int appends = 0;
	sheaf_key key = sheaf_key_of("c");
	store_set_fault(fail_replace, &appends);
	FAILS(STORAGE, sheaf_session_copy(&c, s, store, &key, &err));
	store_set_fault(NULL, NULL);
	assert_int_equal(appends, 1); /* the header; the rest comes all at once */
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	FAILS(NOT_FOUND, sheaf_session_open(&c, store, &key, &o, &err));
	sheaf_session_close(s);
}

static void test_export_of_a_path(void **state)
{
	sheaf_store *store = *state;
	sheaf_session *s = make(store, "s"), *e = NULL;
	sheaf_batch *b = sheaf_batch_new();
	ADD(b, "1", .id = "a");
	ADD(b, "x", .id = "x");
	OK(sheaf_session_append_batch(s, b, NULL, NULL, &err));
	sheaf_batch_free(b);
	SAY(s, "2", .id = "b", .branch = "side", .parent = "a", .time_us = 7000000);
	OK(sheaf_session_label(s, S("a"), S("first"), NULL, NULL, &err));
	OK(sheaf_session_label(s, S("x"), S("off"), NULL, NULL, &err));
	OK(sheaf_session_label(s, S("b"), S("second"), NULL, NULL, &err));
	SAY(s, "3", .id = "c", .branch = "side");
	OK(sheaf_session_rename(s, S("Name"), NONE, NULL, NULL, &err));
	sheaf_key key = sheaf_key_of("e");
	OK(sheaf_session_export_path(&e, s, S("c"), store, &key, &err));
	expect_path(e, NULL, "a b c");
	expect_label(e, "first", "a");
	expect_label(e, "second", "b");
	char id[SHEAF_ID_ROOM];
	FAILS(NOT_FOUND, sheaf_session_resolve(e, S("off"), id, &err));
	sheaf_records *r = NULL;
	OK(sheaf_session_records(&r, e, NULL, &err));
	assert_int_equal(r->count, 6); /* three entries, two labels, a name */
	assert_str(r->items[1]->branch, "main");
	assert_int_equal(r->items[1]->time_us, 7000000);
	assert_int_equal(r->items[0]->batch_count, 1);
	sheaf_records_free(r);
	sheaf_head_view *h = NULL;
	OK(sheaf_session_head(&h, e, &err));
	assert_str(h->info->name, "Name");
	assert_int_equal(h->branch_count, 1);
	sheaf_head_view_free(h);
	SAY(e, "4", .id = "d");
	expect_path(e, NULL, "a b c d");
	sheaf_session_close(e);
	key = sheaf_key_of("e2");
	FAILS(NOT_FOUND, sheaf_session_export_path(&e, s, S("zz"), store, &key, &err));
	OK(sheaf_session_export_path(&e, s, NONE, store, &key, &err));
	expect_path(e, NULL, "a x");
	sheaf_session_close(e);
	sheaf_session_close(s);
}

/* ---- Foreign files ------------------------------------------------------ */

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");
	assert_non_null(f);
	assert_int_equal(fputs(text, f) >= 0, 1);
	assert_int_equal(fclose(f), 0);
}

/* Seed 001's own example: flat lines, entries that hang on facts, a double id. */
static void test_a_foreign_file_is_taken_in(void **state)
{
	sheaf_store *store = *state, *file = NULL;
	char dir[] = "/tmp/sheaf-copy-XXXXXX", path[128], url[160];
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/seed.jsonl", dir);
	(void)snprintf(url, sizeof(url), "jsonl:%s", path);
	write_file(
		path,
		"{\"type\":\"session\",\"id\":\"seed\",\"version\":1,"
		"\"timestamp\":\"2026-01-01T00:00:00Z\"}\n"
		"{\"type\":\"message\",\"id\":\"msg-1\",\"parent_id\":null,"
		"\"timestamp\":\"2026-01-01T00:00:01Z\",\"message\":{\"role\":\"user\","
		"\"content\":[{\"type\":\"text\",\"text\":{\"content\":\"Hi \xe2\x80\xa8\"}}]}}\n"
		"{\"type\":\"label\",\"id\":\"lbl-1\",\"parent_id\":\"msg-1\","
		"\"target_id\":\"msg-1\",\"label\":\"first-greeting\","
		"\"timestamp\":\"2026-01-01T00:00:02Z\"}\n"
		"{\"type\":\"message\",\"id\":\"msg-2\",\"parent_id\":\"lbl-1\","
		"\"timestamp\":\"2026-01-01T00:00:03Z\",\"role\":\"assistant\","
		"\"content\":\"Hello\"}\n");
	sheaf_session *s = NULL, *c = NULL;
	sheaf_key key = sheaf_key_of("seed");
	OK(sheaf_open(&file, url, NULL, &err));
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	OK(sheaf_session_open(&s, file, &key, &o, &err));
	expect_path(s, NULL, "msg-1 msg-2");
	expect_label(s, "first-greeting", "msg-1");
	sheaf_records *r = NULL;
	OK(sheaf_session_get(&r, s, S("msg-2"), &err));
	assert_str(r->items[0]->parent_id, "msg-1");
	assert_int_equal(r->items[0]->seq, 3);
	assert_int_equal(r->items[0]->parent_seq, 1);
	sheaf_records_free(r);
	SAY_FAILS(READONLY, s, "x");

	OK(sheaf_session_copy(&c, s, store, &key, &err));
	expect_path(c, NULL, "msg-1 msg-2");
	expect_label(c, "first-greeting", "msg-1");
	OK(sheaf_session_records(&r, c, NULL, &err));
	assert_int_equal(r->count, 3);
	assert_str(r->items[0]->message->parts[0]->text, "Hi \xe2\x80\xa8");
	assert_str(r->items[2]->parent_id, "msg-1");
	assert_str(r->items[2]->message->role, "assistant");
	assert_int_equal(r->items[2]->time_us - r->items[0]->time_us, 2000000);
	assert_null(strstr(r->items[1]->line.ptr, "parent_id"));
	sheaf_records_free(r);
	SAY(c, "more", .id = "msg-3");
	expect_path(c, NULL, "msg-1 msg-2 msg-3");
	sheaf_session_close(c);
	sheaf_session_close(s);
	sheaf_close(file);
	(void)remove(path);
	char command[200];
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

static void test_without_memory(void **state)
{
	(void)state;
	fail_alloc_install();
	sheaf_store *store = NULL;
	assert_int_equal(sheaf_open(&store, "memory:", NULL, NULL), 0);
	sheaf_session *s = make(store, "s"), *c = NULL;
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b", .branch = "side", .parent = "a");
	OK(sheaf_session_label(s, S("a"), S("L"), NULL, NULL, &err));
	sheaf_session *f = fork_of(s, "b", "f");
	SAY(f, "3", .id = "c");
	sheaf_key key = sheaf_key_of("c");
	for (int what = 0; what < 2; what++) {
		for (size_t n = 1;; n++) {
			fail_alloc_at(n, false);
			int rc = what == 0 ? sheaf_session_copy(&c, f, store, &key, &err)
			                   : sheaf_session_export_path(&c, f, NONE, store, &key,
			                                               &err);
			bool hit = fail_alloc_hit();
			fail_alloc_at(0, false);
			if (rc == 0)
				sheaf_session_close(c);
			else if (rc != SHEAF_EXISTS)
				assert_int_equal(rc, SHEAF_NOMEM);
			OK(sheaf_store_delete(NULL, store, &key, NULL, &err));
			if (!hit)
				break;
		}
	}
	sheaf_session_close(f);
	sheaf_session_close(s);
	sheaf_close(store);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_copy_keeps_everything),
		TEST(test_copy_of_an_empty_session),
		TEST(test_copy_of_a_fork),
		TEST(test_copy_in_portions),
		TEST(test_half_a_copy_is_removed),
		TEST(test_export_of_a_path),
		TEST(test_a_foreign_file_is_taken_in),
		cmocka_unit_test(test_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
