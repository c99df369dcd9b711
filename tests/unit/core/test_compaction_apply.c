/* Tests of sheaf/compaction.h: applying a plan, undoing it, and both in one call. */
#include "plan_kit.h"

#include "sheaf/todo.h"
#include "support/fail_alloc.h"

/* ---- Apply --------------------------------------------------------------- */

static void test_apply_keeps_what_came_since(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:one a1=a:two u2=u:three a2=a:four");
	sheaf_compaction_options o = tens(20);
	const sheaf_cut *some = plan_with(&k, &o);
	o.keep_recent = 0;
	o.trigger = SHEAF_STR("threshold");
	const sheaf_cut *all = plan_with(&k, &o);
	kit_script(&k, "u3=u:five a3=a:c1");
	assert_int_equal(apply(&k, all, "s"), 0);
	kit_items(&k, NULL, "S(s) u3 a3 !1"); /* what is kept may be open */
	assert_int_equal(apply(&k, some, "s"), SHEAF_STALE);
	kit_script(&k, "t3=t:r1");
	/* Again: it is there, and nothing is written. */
	sheaf_appended out = SHEAF_APPENDED_INIT;
	assert_int_equal(sheaf_compaction_apply(k.s, all, SHEAF_STR("s"), &out, &k.err), 0);
	assert_int_equal(out.existed, 1);
	assert_int_equal(sheaf_compaction_apply(k.s, all, SHEAF_STR("t"), &out, &k.err),
	                 SHEAF_CONFLICT);
	kit_items(&k, NULL, "S(s) u3 a3 t3");
	sheaf_cut_free(some);
	sheaf_cut_free(all);

	sheaf_compactions *list = NULL;
	assert_int_equal(sheaf_session_compactions(&list, k.s, (sheaf_str){0}, &k.err), 0);
	assert_int_equal(list->count, 1);
	kit_str(list->items[0]->trigger, "threshold");
	kit_str(list->items[0]->first_kept_id, "u3");
	assert_int_equal(list->items[0]->tokens_before, 60);
	assert_int_equal(list->items[0]->tokens_after, 23);
	sheaf_compactions_free(list);
	kit_close(&k);
}

static void test_apply_refuses(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:one a1=a:two u2=u:three a2=a:four");
	const sheaf_cut *plan = plan_of(&k, 2);
	assert_int_equal(apply(&k, plan, ""), SHEAF_INVALID);
	assert_int_equal(apply(&k, plan, " \n\t"), SHEAF_INVALID);
	assert_int_equal(apply(&k, plan, "\xff"), SHEAF_INVALID);
	assert_int_equal(apply(&k, plan, "longer than what it stands for"), SHEAF_COMPACT);
	assert_int_equal(sheaf_compaction_apply(NULL, plan, SHEAF_STR("x"), NULL, NULL),
	                 SHEAF_INVALID);
	assert_int_equal(sheaf_compaction_apply(k.s, NULL, SHEAF_STR("x"), NULL, NULL),
	                 SHEAF_INVALID);
	kit_branch(&k, "main", "a1");
	assert_int_equal(apply(&k, plan, "s"), SHEAF_STALE); /* its leaf is off the path */
	kit_str(sheaf_str_of(k.err.leaf), "a1");
	kit_branch(&k, "main", "a2");
	assert_int_equal(kit_compact(&k, "c1", "s", "u2"), 0);
	assert_int_equal(apply(&k, plan, "s"), SHEAF_STALE); /* another one was faster */
	sheaf_cut_free(plan);
	kit_close(&k);
}

static void test_apply_on_a_branch(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:one-two a1=a:two u2=u:three a2=a:four");
	kit_branch(&k, "side", "a1");
	k.entry.branch = SHEAF_STR("side");
	kit_script(&k, "x1=u:elsewhere x2=a:yes");
	sheaf_compaction_options o = tens(20);
	char name[] = "side";
	o.branch = sheaf_str_of(name);
	const sheaf_cut *plan = plan_with(&k, &o);
	memset(name, 'x', 4); /* the plan has its own */
	cut_is(plan, "u1 a1 |x1");
	assert_int_equal(apply(&k, plan, "s"), 0);
	sheaf_cut_free(plan);
	kit_items(&k, NULL, "u1 a1 u2 a2");
	sheaf_context_options c = SHEAF_CONTEXT_OPTIONS_INIT;
	c.branch = SHEAF_STR("side");
	kit_items(&k, &c, "S(s) x1 x2");
	kit_close(&k);
}

static void test_counted_by_the_provider(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:one a1=a:two u2=u:three");
	reply(&k, "a2", "end_turn", 900, 90);
	sheaf_compaction_options o = tens(20);
	const sheaf_cut *plan = plan_with(&k, &o);
	assert_int_equal(plan->tokens_before, 1000);
	assert_int_equal(apply(&k, plan, "s"), 0);
	sheaf_cut_free(plan);
	sheaf_compactions *list = NULL;
	assert_int_equal(sheaf_session_compactions(&list, k.s, (sheaf_str){0}, &k.err), 0);
	assert_int_equal(list->items[0]->tokens_before, 1000);
	assert_int_equal(list->items[0]->tokens_after, 575); /* 23 of 40 */
	sheaf_compactions_free(list);
	kit_close(&k);
}

/* ---- Undo ---------------------------------------------------------------- */

static int undo(kit *k)
{
	return sheaf_compaction_undo(k->s, (sheaf_str){0}, NULL, &k->err);
}

static void test_undo(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	assert_int_equal(undo(&k), SHEAF_NOT_FOUND);
	kit_script(&k, "u1=u:one a1=a:two u2=u:three a2=a:four");
	assert_int_equal(undo(&k), SHEAF_NOT_FOUND);
	assert_int_equal(sheaf_compaction_undo(k.s, SHEAF_STR("x"), NULL, &k.err), SHEAF_NOT_FOUND);
	assert_int_equal(kit_compact(&k, "c1", "one", "u2"), 0);
	kit_script(&k, "u3=u:five");
	assert_int_equal(undo(&k), 0);
	kit_items(&k, NULL, "u1 a1 u2 a2 u3");
	assert_int_equal(undo(&k), 0); /* undoes the undoing */
	kit_items(&k, NULL, "S(one) u2 a2 u3");
	assert_int_equal(undo(&k), 0);
	kit_script(&k, "a3=a:six");
	kit_items(&k, NULL, "u1 a1 u2 a2 u3 a3");
	compacts(&k, 1, "u1 a1 u2 a2 u3 ~a3", "all");
	kit_items(&k, NULL, "S(all) a3");
	assert_int_equal(undo(&k), 0);
	kit_items(&k, NULL, "u1 a1 u2 a2 u3 a3");
	sheaf_compactions *list = NULL;
	assert_int_equal(sheaf_session_compactions(&list, k.s, (sheaf_str){0}, &k.err), 0);
	assert_int_equal(list->count, 6);
	kit_str(list->items[1]->trigger, "undo");
	kit_str(list->items[1]->first_kept_id, "u1");
	kit_str(list->items[2]->summary, "one");
	sheaf_compactions_free(list);
	kit_close(&k);
}

static void test_undo_to_an_older_one(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:one a1=a:two");
	assert_int_equal(kit_compact(&k, "c1", "one", ""), 0); /* keeps nothing */
	assert_int_equal(kit_compact(&k, "c2", "two", ""), 0);
	assert_int_equal(undo(&k), 0);
	kit_items(&k, NULL, "S(one)");
	kit_script(&k, "u2=u:three a2=a:four");
	kit_items(&k, NULL, "S(one) u2 a2");
	assert_int_equal(kit_compact(&k, "c3", "three", "a2"), 0);
	kit_script(&k, "u3=u:five");
	assert_int_equal(undo(&k), 0);
	kit_items(&k, NULL, "S(one) u2 a2 u3");
	assert_int_equal(undo(&k), 0);
	kit_items(&k, NULL, "S(three) a2 u3");
	kit_close(&k);
}

static void test_undo_at_the_root(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	assert_int_equal(kit_compact(&k, "c1", "nothing yet", ""), 0);
	assert_int_equal(undo(&k), 0);
	kit_items(&k, NULL, "");
	kit_script(&k, "u1=u:one");
	kit_items(&k, NULL, "u1");
	kit_close(&k);
}

static void test_undo_among_chosen_and_replaced(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:one a1=a:two u2=u:three a2=a:four");
	kit_json(&k, "compaction", "c1", "{'compaction':{'summary':'s','kept_ids':['a1','u2']}}");
	kit_script(&k, "u3=u:five");
	assert_int_equal(kit_compact(&k, "c2", "two", "u3"), 0);
	kit_script(&k, "u4=u:six");
	assert_int_equal(undo(&k), 0);
	kit_items(&k, NULL, "S(s) a1 u2 u3 u4");
	kit_json(&k, "compaction", "c3",
	         "{'compaction':{'summary':'','replacement':[{'role':'user','content':'r1'}]}}");
	kit_script(&k, "u5=u:six");
	kit_items(&k, NULL, "R(r1) u5");
	assert_int_equal(undo(&k), 0); /* of such a one */
	kit_items(&k, NULL, "S(s) a1 u2 u3 u4 u5");
	kit_close(&k);
}

/* ---- In one call --------------------------------------------------------- */

static int summarise(void *ctx, const sheaf_cut *plan, sheaf_summary_sink *out, sheaf_error *err)
{
	(void)err;
	assert_non_null(strstr(plan->prompt.ptr, "## Goal"));
	int rc = sheaf_summary_add(out, SHEAF_STR("o"));
	return rc == 0 && sheaf_summary_add(out, SHEAF_STR("k")) == 0 ? *(int *)ctx : rc;
}

static void test_in_one_call(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:one a1=a:two u2=u:three a2=a:four");
	sheaf_compaction_options o = tens(20);
	int answer = SHEAF_CANCELLED;
	assert_int_equal(sheaf_compact(k.s, &o, summarise, &answer, NULL, &k.err), SHEAF_CANCELLED);
	assert_int_equal(k.err.code, SHEAF_CANCELLED);
	assert_int_equal(sheaf_compact(k.s, &o, summarise, &answer, NULL, NULL), SHEAF_CANCELLED);
	assert_int_equal(sheaf_compact(k.s, &o, NULL, NULL, NULL, &k.err), SHEAF_INVALID);
	kit_items(&k, NULL, "u1 a1 u2 a2");
	answer = 0;
	sheaf_appended out = SHEAF_APPENDED_INIT;
	assert_int_equal(sheaf_compact(k.s, &o, summarise, &answer, &out, &k.err), 0);
	assert_int_equal(out.seq, 5);
	kit_items(&k, NULL, "S(ok) u2 a2");
	o.keep_recent = 30;
	assert_int_equal(sheaf_compact(k.s, &o, summarise, &answer, &out, &k.err), SHEAF_COMPACT);
	assert_int_equal(sheaf_summary_add(NULL, SHEAF_STR("x")), SHEAF_INVALID);
	kit_close(&k);
}

/* ---- Out of memory ------------------------------------------------------- */

static int everything_once(kit *k)
{
	sheaf_compaction_options o = tens(20);
	sheaf_fill fill;
	int answer = 0;
	int rc = sheaf_compaction_need(&fill, k->s, &o, &k->err);
	if (rc == 0)
		rc = sheaf_compact(k->s, &o, summarise, &answer, NULL, &k->err);
	return rc;
}

static void test_out_of_memory(void **state)
{
	(void)state;
	fail_alloc_install();
	size_t first = 1;
	for (;; first++) {
		kit k;
		kit_open(&k);
		kit_script(&k, "u1=u:one a1=a:c1 t1=t:r1 u2=u:three a2=a:four u3=u:five");
		kit_json(&k, "compaction", "c1",
		         "{'compaction':{'summary':'s','kept_ids':['u2','a2']}}");
		kit_script(&k, "u4=u:six a4=a:c9 u5=u:seven a5=a:eight");
		fail_alloc_at(first, false);
		int rc = everything_once(&k);
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		/* The store may take the record and fail later: then it is there. */
		if (rc == 0)
			kit_items(&k, NULL, "S(ok) u5 a5");
		else
			assert_int_equal(rc, SHEAF_NOMEM);
		if (rc == 0) {
			fail_alloc_at(first, false);
			rc = undo(&k);
			hit |= fail_alloc_hit();
			fail_alloc_at(0, false);
			assert_true(rc == 0 || rc == SHEAF_NOMEM);
			if (rc == 0)
				kit_items(&k, NULL, "S(s) u2 a2 u4 a4 !9 u5 a5");
		}
		kit_close(&k);
		assert_int_equal(fail_alloc_live(), 0);
		if (!hit)
			break;
	}
	assert_true(first > 50);
	fail_alloc_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_apply_keeps_what_came_since),
		cmocka_unit_test(test_apply_refuses),
		cmocka_unit_test(test_apply_on_a_branch),
		cmocka_unit_test(test_counted_by_the_provider),
		cmocka_unit_test(test_undo),
		cmocka_unit_test(test_undo_to_an_older_one),
		cmocka_unit_test(test_undo_at_the_root),
		cmocka_unit_test(test_undo_among_chosen_and_replaced),
		cmocka_unit_test(test_in_one_call),
		cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
