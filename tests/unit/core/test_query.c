/* Tests of core/query.c, path.c, gather.c and tree.c: pages, paths, children, trees. */
#include "core/read.h"

#include "support/fail_alloc.h"
#include "core_test.h"

static void ten(sheaf_session *s)
{
	char id[16];
	for (int i = 1; i <= 10; i++) {
		(void)snprintf(id, sizeof(id), "m%d", i);
		SAY(s, id, .id = id, .time_us = 1000000 * i);
	}
}

static void expect_records(sheaf_session *s, const sheaf_read_options *o, const char *want,
                           uint64_t next)
{
	sheaf_records *r = NULL;
	OK(sheaf_session_records(&r, s, o, &err));
	assert_string_equal(ids_of(r), want);
	assert_int_equal(r->next_seq, next);
	sheaf_records_free(r);
}

static void test_pages(void **state)
{
	sheaf_session *s = make(*state, "s");
	ten(s);
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.limit = 4;
	expect_records(s, &o, "m1 m2 m3 m4", 5);
	o.from_seq = 5;
	expect_records(s, &o, "m5 m6 m7 m8", 9);
	o.from_seq = 9;
	expect_records(s, &o, "m9 m10", 0);
	o.from_seq = 11;
	expect_records(s, &o, "", 0);
	o.from_seq = 0;
	o.backward = 1;
	expect_records(s, &o, "m10 m9 m8 m7", 6);
	o.from_seq = 6;
	expect_records(s, &o, "m6 m5 m4 m3", 2);
	o.from_seq = 2;
	expect_records(s, &o, "m2 m1", 0);
	o.from_seq = 1;
	o.limit = 1;
	expect_records(s, &o, "m1", 0);

	o = (sheaf_read_options)SHEAF_READ_OPTIONS_INIT;
	o.newest = 1;
	o.limit = 3;
	expect_records(s, &o, "m8 m9 m10", 7);
	o.from_seq = 7;
	expect_records(s, &o, "m5 m6 m7", 4);
	o.from_seq = 0;
	o.after_us = 9000000; /* of the newest three, those */
	expect_records(s, &o, "m9 m10", 7);
	o.newest = 0;
	o.limit = 2;
	o.after_us = 6000000;
	expect_records(s, &o, "m6 m7", 8);
	o.limit = 0;
	expect_records(s, &o, "m6 m7 m8 m9 m10", 0);
	sheaf_records *r = NULL;
	o.limit = 100001;
	FAILS(LIMIT, sheaf_session_records(&r, s, &o, &err));
	sheaf_session_close(s);
}

static void test_filters(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b", .branch = "side", .parent = "a");
	OK(sheaf_session_label(s, S("a"), S("L"), NULL, NULL, &err));
	OK(sheaf_session_append_model_change(s, S("p"), S("m"), NULL, NULL, &done, &err));
	SAY(s, "3", .id = "c");
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.kinds = SHEAF_KIND_BIT(SHEAF_KIND_MESSAGE);
	expect_records(s, &o, "a b c", 0);
	o.branch = S("side");
	expect_records(s, &o, "b", 0);
	o.branch = S("");
	expect_records(s, &o, "a c", 0);
	o = (sheaf_read_options)SHEAF_READ_OPTIONS_INIT;
	o.kinds = SHEAF_KIND_BIT(SHEAF_KIND_LABEL);
	sheaf_records *r = NULL;
	OK(sheaf_session_records(&r, s, &o, &err));
	assert_int_equal(r->count, 1);
	assert_str(r->items[0]->text, "L");
	assert_str(r->items[0]->target_id, "a");
	assert_int_equal(r->items[0]->parent_seq, 0);
	assert_null(r->items[0]->parent_id.ptr);
	assert_int_equal(r->revision, 5);
	sheaf_records_free(r);
	o = (sheaf_read_options)SHEAF_READ_OPTIONS_INIT;
	o.raw = 1;
	OK(sheaf_session_records(&r, s, &o, &err));
	assert_int_equal(r->count, 5);
	assert_null(r->items[0]->message);
	assert_str(r->items[1]->branch, "side");
	sheaf_records_free(r);
	sheaf_session_close(s);
}

static void test_the_path(void **state)
{
	sheaf_session *s = make(*state, "s");
	ten(s);
	OK(sheaf_session_label(s, S("m3"), S("three"), NULL, NULL, &err));
	sheaf_records *r = NULL;
	OK(sheaf_session_path(&r, s, NONE, S("three"), 0, &err));
	assert_string_equal(ids_of(r), "m1 m2 m3");
	assert_str(r->items[2]->label, "three");
	assert_null(r->items[1]->label.ptr);
	assert_non_null(r->items[0]->message);
	assert_str(r->items[0]->message->parts[0]->text, "m1");
	assert_str(r->items[1]->parent_id, "m1");
	assert_null(r->items[0]->parent_id.ptr);
	sheaf_records_free(r);
	OK(sheaf_session_path(&r, s, NONE, NONE, 3, &err));
	assert_string_equal(ids_of(r), "m8 m9 m10");
	sheaf_records_free(r);
	FAILS(NOT_FOUND, sheaf_session_path(&r, s, S("nobranch"), NONE, 0, &err));
	FAILS(NOT_FOUND, sheaf_session_path(&r, s, NONE, S("nowhere"), 0, &err));
	sheaf_session_close(s);
}

/* Two branches side by side, longer than a range; and one that jumps far back. */
static void test_long_paths(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY(s, "root", .id = "root");
	OK(sheaf_session_branch(s, S("odd"), S("root"), NULL, NULL, &err));
	for (int i = 0; i < 700; i++)
		SAY(s, "x", .branch = i % 2 ? "odd" : NULL);
	sheaf_records *r = NULL;
	for (int odd = 0; odd < 2; odd++) {
		OK(sheaf_session_path(&r, s, odd ? S("odd") : NONE, NONE, 0, &err));
		assert_int_equal(r->count, 351);
		for (size_t i = 1; i < r->count; i++) {
			assert_int_equal(r->items[i]->parent_seq, r->items[i - 1]->seq);
			assert_str(r->items[i]->branch, odd ? "odd" : "main");
		}
		sheaf_records_free(r);
	}
	SAY(s, "jump", .id = "jump", .parent = "root");
	expect_path(s, NULL, "root jump");
	sheaf_session_close(s);
}

static void test_one_record(void **state)
{
	sheaf_session *s = make(*state, "s");
	ten(s);
	OK(sheaf_session_label(s, S("m3"), S("three"), NULL, &done, &err));
	sheaf_records *r = NULL;
	OK(sheaf_session_get(&r, s, S("three"), &err));
	assert_int_equal(r->count, 1);
	assert_str(r->items[0]->id, "m3");
	assert_str(r->items[0]->label, "three");
	assert_int_equal(r->items[0]->seq, 3);
	sheaf_records_free(r);
	OK(sheaf_session_get(&r, s, S(done.id), &err)); /* a fact, by its id */
	assert_int_equal(r->items[0]->kind, SHEAF_KIND_LABEL);
	sheaf_records_free(r);
	FAILS(NOT_FOUND, sheaf_session_get(&r, s, S("m11"), &err));
	FAILS(INVALID, sheaf_session_get(&r, s, S(""), &err));
	sheaf_session_close(s);
}

static void test_children(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b", .parent = "a");
	SAY(s, "3", .id = "c", .parent = "a");
	OK(sheaf_session_label(s, S("a"), S("top"), NULL, NULL, &err));
	SAY(s, "4", .id = "d", .parent = "a");
	SAY(s, "5", .id = "r", .root = 1);
	sheaf_records *r = NULL;
	OK(sheaf_session_children(&r, s, S("top"), &err));
	assert_string_equal(ids_of(r), "b c d");
	sheaf_records_free(r);
	OK(sheaf_session_children(&r, s, S("d"), &err));
	assert_int_equal(r->count, 0);
	sheaf_records_free(r);
	OK(sheaf_session_children(&r, s, NONE, &err));
	assert_string_equal(ids_of(r), "a r");
	sheaf_records_free(r);
	FAILS(NOT_FOUND, sheaf_session_children(&r, s, S("zz"), &err));
	sheaf_session_close(s);
}

static void test_tree(void **state)
{
	sheaf_session *s = make(*state, "s");
	sheaf_tree *t = NULL;
	OK(sheaf_session_tree(&t, s, &err));
	assert_int_equal(t->node_count, 0);
	assert_int_equal(t->root_count, 0);
	sheaf_tree_free(t);
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b");
	SAY(s, "3", .id = "c", .parent = "a");
	SAY(s, "4", .id = "d");
	SAY(s, "5", .id = "r", .root = 1, .branch = "other");
	OK(sheaf_session_label(s, S("b"), S("B"), NULL, NULL, &err));
	OK(sheaf_session_tree(&t, s, &err));
	assert_int_equal(t->node_count, 5);
	assert_int_equal(t->root_count, 2);
	const sheaf_node *a = t->roots[0];
	assert_str(a->entry->id, "a");
	assert_int_equal(a->child_count, 2);
	assert_str(a->children[0]->entry->id, "b");
	assert_str(a->children[0]->entry->label, "B");
	assert_int_equal(a->children[0]->on_path, 0);
	assert_str(a->children[1]->entry->id, "c");
	assert_int_equal(a->children[1]->on_path, 1);
	assert_ptr_equal(a->children[1]->parent, a);
	assert_int_equal(a->children[1]->children[0]->depth, 2);
	assert_int_equal(t->roots[1]->on_path, 0);
	assert_ptr_equal(t->nodes[4], t->roots[1]);
	assert_int_equal(t->head->branch_count, 2);
	sheaf_tree_free(t);
	sheaf_session_close(s);
}

static void test_a_deep_tree_needs_no_stack(void **state)
{
	sheaf_session *s = make(*state, "s");
	sheaf_batch *b = sheaf_batch_new();
	for (int k = 0; k < 10; k++) {
		for (int i = 0; i < 4000; i++)
			OK(sheaf_batch_json(b, S("custom"),
			                    S("{\"custom\":{\"custom_type\":\"x\"}}"), NULL, &err));
		OK(sheaf_session_append_batch(s, b, NULL, NULL, &err));
		sheaf_batch_free(b);
		b = sheaf_batch_new();
	}
	sheaf_batch_free(b);
	sheaf_tree *t = NULL;
	OK(sheaf_session_tree(&t, s, &err));
	assert_int_equal(t->node_count, 40000);
	assert_int_equal(t->nodes[39999]->depth, 39999);
	assert_int_equal(t->roots[0]->on_path, 1);
	sheaf_tree_free(t);
	sheaf_session_close(s);
}

/* ---- Damage ------------------------------------------------------------- */

/*
 * A store that gives the rows of a memory store with some of them spoilt, as a
 * damaged or foreign file would look.
 */
static struct spoil {
	uint64_t damaged[4];
	uint64_t parent_of; /* this row gets another parent */
	uint64_t parent;
	uint64_t lost; /* this row is a `lost` record */
} spoil;

static sheaf_row_fn inner_fn;
static void *inner_ctx;

static int spoil_row(void *ctx, const sheaf_row *row)
{
	(void)ctx;
	sheaf_row copy = *row;
	for (size_t i = 0; i < COUNT_OF(spoil.damaged); i++) {
		if (spoil.damaged[i] == row->seq)
			copy.damaged = 1;
	}
	if (spoil.parent_of == row->seq)
		copy.parent = spoil.parent;
	if (spoil.lost == row->seq)
		copy.kind = SHEAF_KIND_LOST;
	return inner_fn(inner_ctx, &copy);
}

static int spoil_scan(void *backend, const sheaf_store_key *key, const sheaf_scan *scan,
                      sheaf_row_fn fn, void *ctx, sheaf_error *e)
{
	inner_fn = fn;
	inner_ctx = ctx;
	return store_memory_ops.scan(backend, key, scan, spoil_row, NULL, e);
}

static sheaf_store_ops spoil_ops;

static int open_spoilt(void **state)
{
	sheaf_store *store = NULL;
	if (spoil_ops.size == 0) {
		spoil_ops = store_memory_ops;
		spoil_ops.scheme = "spoilt";
		spoil_ops.scan = spoil_scan;
		OK(sheaf_store_register(&spoil_ops, &err));
	}
	memset(&spoil, 0, sizeof(spoil));
	OK(sheaf_open(&store, "spoilt:", NULL, &err));
	*state = store;
	return 0;
}

static void test_damage_is_not_passed_over(void **state)
{
	sheaf_session *s = make(*state, "s");
	ten(s);
	spoil.damaged[0] = 5;
	sheaf_records *r = NULL;
	FAILS(DAMAGED, sheaf_session_path(&r, s, NONE, NONE, 0, &err));
	OK(sheaf_session_path(&r, s, NONE, S("m4"), 0, &err));
	assert_string_equal(ids_of(r), "m1 m2 m3 m4");
	sheaf_records_free(r);
	FAILS(DAMAGED, sheaf_session_get(&r, s, S("m5"), &err));
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	OK(sheaf_session_records(&r, s, &o, &err));
	assert_int_equal(r->count, 10);
	assert_int_equal(r->items[4]->damaged, 1);
	assert_int_equal(r->items[4]->seq, 5);
	assert_int_equal(r->items[4]->id.len, 0);
	assert_int_equal(r->items[5]->damaged, 0);
	sheaf_records_free(r);
	sheaf_tree *t = NULL;
	OK(sheaf_session_tree(&t, s, &err));
	assert_int_equal(t->node_count, 9);
	assert_int_equal(t->root_count, 2); /* m6 has lost its parent */
	assert_str(t->roots[1]->entry->id, "m6");
	sheaf_tree_free(t);
	sheaf_session_close(s);
}

typedef struct steps {
	char text[256];
} steps;

static int note_entry(void *ctx, const sheaf_row *row, const record *r)
{
	steps *p = ctx;
	(void)row;
	(void)snprintf(p->text + strlen(p->text), sizeof(p->text) - strlen(p->text), "%.*s ",
	               (int)r->id.len, r->id.ptr);
	return 0;
}

static int note_damage(void *ctx, uint64_t seq)
{
	steps *p = ctx;
	(void)snprintf(p->text + strlen(p->text), sizeof(p->text) - strlen(p->text), "!%llu ",
	               (unsigned long long)seq);
	return 0;
}

static void walk_from(sheaf_session *s, uint64_t seq, bool allow, const char *want)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	steps p = {""};
	OK(session_head(s, &head, NULL, &err));
	OK(read_path(s, head, seq, note_entry, allow ? note_damage : NULL, &p, &err));
	assert_string_equal(p.text, want);
}

static void test_through_damage(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b");
	SAY(s, "3", .id = "x", .branch = "side", .parent = "a");
	SAY(s, "4", .id = "c");
	SAY(s, "5", .id = "d");
	spoil.damaged[0] = 4;
	walk_from(s, 5, true, "d !4 b a "); /* x is of another branch */
	spoil.damaged[1] = 2;
	walk_from(s, 5, true, "d !4 !2 a ");
	spoil.damaged[0] = 5; /* the leaf itself */
	spoil.damaged[1] = 0;
	walk_from(s, 5, true, "!5 c b a ");
	spoil.damaged[0] = 1; /* the root */
	walk_from(s, 5, true, "d c b !1 ");
	sheaf_session_close(s);
}

static void test_where_a_lost_record_stands(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b");
	SAY(s, "3", .id = "c");
	spoil.lost = 2;
	walk_from(s, 3, false, "c a "); /* it was repaired: no need to ask */
	walk_from(s, 3, true, "c !2 a ");
	/* The parent's number is not known, only that something was lost. */
	spoil.parent_of = 3;
	spoil.parent = 0;
	walk_from(s, 3, false, "c a ");
	spoil.lost = 0;
	_cleanup_(head_freep) sheaf_head *head = NULL;
	steps p = {""};
	OK(session_head(s, &head, NULL, &err));
	FAILS(DAMAGED, read_path(s, head, 3, note_entry, NULL, &p, &err));
	walk_from(s, 3, true, "c !0 b a ");
	sheaf_session_close(s);
}

static void test_a_cycle_ends(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b");
	SAY(s, "3", .id = "c");
	sheaf_records *r = NULL;
	spoil.parent_of = 2;
	spoil.parent = 3;
	FAILS(DAMAGED, sheaf_session_path(&r, s, NONE, NONE, 0, &err));
	spoil.parent = 2;
	FAILS(DAMAGED, sheaf_session_path(&r, s, NONE, NONE, 0, &err));
	walk_from(s, 3, true, "c b !0 a ");
	sheaf_tree *t = NULL;
	OK(sheaf_session_tree(&t, s, &err));
	assert_int_equal(t->root_count, 2);
	sheaf_tree_free(t);
	sheaf_session_close(s);
}

static void test_labels_over_a_broken_chain(void **state)
{
	sheaf_session *s = make(*state, "s");
	SAY(s, "1", .id = "a");
	SAY(s, "2", .id = "b");
	OK(sheaf_session_label(s, S("a"), S("A"), NULL, NULL, &err)); /* 3 */
	OK(sheaf_session_label(s, S("b"), S("B"), NULL, NULL, &err)); /* 4 */
	OK(sheaf_session_label(s, S("b"), S("C"), NULL, NULL, &err)); /* 5 */
	spoil.damaged[0] = 4;
	expect_label(s, "A", "a");
	expect_label(s, "C", "b");
	spoil.parent_of = 5;
	spoil.parent = 5;
	expect_label(s, "A", "a");
	sheaf_session_close(s);
}

/* ---- Memory ------------------------------------------------------------- */

static void test_without_memory(void **state)
{
	(void)state;
	fail_alloc_install();
	sheaf_store *store = NULL;
	assert_int_equal(sheaf_open(&store, "memory:", NULL, NULL), 0);
	sheaf_session *s = make(store, "s");
	ten(s);
	OK(sheaf_session_label(s, S("m2"), S("L"), NULL, NULL, &err));
	for (int what = 0; what < 6; what++) {
		for (size_t n = 1;; n++) {
			sheaf_records *r = NULL;
			sheaf_tree *t = NULL;
			sheaf_head_view *h = NULL;
			fail_alloc_at(n, false);
			memset(&err, 0, sizeof(err));
			int rc = what == 0   ? sheaf_session_records(&r, s, NULL, &err)
			         : what == 1 ? sheaf_session_path(&r, s, NONE, S("L"), 0, &err)
			         : what == 2 ? sheaf_session_children(&r, s, S("m1"), &err)
			         : what == 3 ? sheaf_session_labels(&r, s, &err)
			         : what == 4 ? sheaf_session_tree(&t, s, &err)
			                     : sheaf_session_head(&h, s, &err);
			bool hit = fail_alloc_hit();
			fail_alloc_at(0, false);
			sheaf_records_free(r);
			sheaf_tree_free(t);
			sheaf_head_view_free(h);
			if (!hit) {
				assert_int_equal(rc, 0);
				break;
			}
			if (rc != 0) {
				assert_int_equal(rc, SHEAF_NOMEM);
				assert_int_equal(err.code, SHEAF_NOMEM);
			}
		}
	}
	sheaf_session_close(s);
	sheaf_close(store);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

#define SPOILT(name) cmocka_unit_test_setup_teardown(name, open_spoilt, close_store)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_pages),
		TEST(test_filters),
		TEST(test_the_path),
		TEST(test_long_paths),
		TEST(test_one_record),
		TEST(test_children),
		TEST(test_tree),
		TEST(test_a_deep_tree_needs_no_stack),
		SPOILT(test_damage_is_not_passed_over),
		SPOILT(test_through_damage),
		SPOILT(test_where_a_lost_record_stands),
		SPOILT(test_a_cycle_ends),
		SPOILT(test_labels_over_a_broken_chain),
		cmocka_unit_test(test_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
