/* Memory that runs out anywhere in a turn: nothing leaks, and the session stays usable. */
#include "kit.h"
#include "support/fail_alloc.h"

static const step script[] = {
	{.body = REPLY(TEXT("Look") "," CALL("c1", "echo", "{\"a\":1}"), "tool_use")},
	{.body = FAILS("api_error", "broken"), .status = 500},
	{.body = SAYS("Done")},
	{.body = SAYS("Done")},
	{.body = SAYS("Done")},
	{.body = SAYS("Done")},
	{.ends = true},
};

static int add_words(void *ctx, sheaf_hook *hook, sheaf_error *err)
{
	(void)ctx, (void)err;
	return sheaf_hook_system(hook, SHEAF_STR("be brief"));
}

/* Whatever happened before, the next turn works. */
static void go_on(kit *k)
{
	k->quiet = false;
	k->script = (const step[]){{.body = SAYS("Here")}, {.ends = true}};
	k->at = 0;
	kit_run(k, "And now?", 0);
	assert_string_equal(k->turn->text.ptr, "Here");
	kit_renders(k);
}

static bool run_failing(size_t n, bool for_ever)
{
	static kit k;
	sheaf_agent_hook hook = {SHEAF_HOOK_PRE, 0, add_words, NULL};
	kit_prepare(&k, "memory:");
	k.how.hooks = &hook;
	k.how.hook_count = 1;
	k.quiet = true;
	k.script = script;
	fail_alloc_at(n, for_ever);
	int rc = sheaf_agent_new(&k.agent, &k.how, &k.err);
	if (rc == 0)
		rc = sheaf_agent_run_text(&k.turn, k.agent, SHEAF_STR("Go"), &k.call, &k.err);
	bool hit = fail_alloc_hit();
	fail_alloc_at(0, false);
	if (!hit) {
		assert_int_equal(rc, 0);
		assert_string_equal(k.turn->text.ptr, "Done");
	} else if (rc != 0) {
		assert_int_equal(rc, SHEAF_NOMEM);
		assert_int_equal(k.err.code, SHEAF_NOMEM);
	}
	if (k.agent == NULL)
		kit_start(&k);
	go_on(&k);
	kit_close(&k);
	assert_int_equal(fail_alloc_live(), 0);
	return hit;
}

static void turns_without_memory(void **state)
{
	(void)state;
	fail_alloc_install();
	for (int for_ever = 0; for_ever < 2; for_ever++) {
		size_t n = 1;
		while (run_failing(n, for_ever))
			n++;
		assert_true(n > 100);
	}
	fail_alloc_remove();
}

/* Suspending, resuming and compacting. */
static bool resume_failing(size_t n)
{
	static kit k;
	kit_prepare(&k, "memory:");
	k.compaction.keep_recent = 0;
	k.script = (const step[]){{.body = REPLY(CALL("c1", "ask", "{}"), "tool_use")},
	                          {.body = SAYS("Done")},
	                          {.body = SAYS("In short")},
	                          {.ends = true}};
	kit_start(&k);
	kit_run(&k, "Go", 0);
	sheaf_turn_free(k.turn);
	k.turn = NULL;
	k.quiet = true;
	sheaf_resume answer = {SHEAF_STR("c1"), {NULL, 0}, 0, 1};
	fail_alloc_at(n, false);
	int rc = sheaf_agent_pending(&k.turn, k.agent, NULL, &k.err);
	sheaf_turn_free(rc == 0 ? k.turn : NULL);
	k.turn = NULL;
	if (rc == 0)
		rc = sheaf_agent_resume(&k.turn, k.agent, &answer, 1, &k.call, &k.err);
	if (rc == 0)
		rc = sheaf_agent_compact(k.agent, SHEAF_STR("all"), NULL, NULL, &k.err);
	bool hit = fail_alloc_hit();
	fail_alloc_at(0, false);
	assert_true(rc == SHEAF_NOMEM || (rc == SHEAF_COMPACT && !hit) || rc == 0 || hit);
	sheaf_turn *pending = NULL;
	if (sheaf_agent_pending(&pending, k.agent, NULL, &k.err) == 0)
		assert_int_equal(sheaf_agent_give_up(k.agent, NULL, &k.err), 0);
	sheaf_turn_free(pending);
	go_on(&k);
	kit_close(&k);
	assert_int_equal(fail_alloc_live(), 0);
	return hit;
}

static void resumes_without_memory(void **state)
{
	(void)state;
	fail_alloc_install();
	size_t n = 1;
	while (resume_failing(n))
		n++;
	assert_true(n > 100);
	fail_alloc_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_without_memory),
		cmocka_unit_test(resumes_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
