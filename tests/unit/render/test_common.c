/* What stays of a context and of a request, and what breaks it. */
#include "render_test.h"

static const sheaf_context *seen_by(kit *k, const char *agent, const char *model)
{
	sheaf_context_options how = SHEAF_CONTEXT_OPTIONS_INIT;
	how.agent = sheaf_str_of(agent);
	how.provider = model != NULL ? SHEAF_STR("anthropic") : (sheaf_str){NULL, 0};
	how.model = sheaf_str_of(model);
	return kit_context(k, &how);
}

static void common_is(const sheaf_context *earlier, const sheaf_context *later, size_t items,
                      int32_t why, const char *entry)
{
	sheaf_common c;
	memset(&c, 0x5a, sizeof(c));
	sheaf_context_common(&c, earlier, later);
	assert_int_equal(c.why, why);
	assert_int_equal(c.items, items);
	kit_str(c.entry_id, entry);
}

static void a_turn_more_breaks_nothing(void **state)
{
	(void)state;
	kit k;
	sheaf_common c;
	kit_open(&k);
	const sheaf_context *none = kit_context(&k, NULL);
	kit_script(&k, "u1=u:hello a1=a:c1 t1=t:r1 a2=a:done");
	const sheaf_context *one = kit_context(&k, NULL);
	kit_script(&k, "u2=u:more a3=a:c2");
	const sheaf_context *two = kit_context(&k, NULL);
	common_is(none, one, 0, SHEAF_BREAK_NONE, NULL);
	common_is(one, two, 4, SHEAF_BREAK_NONE, NULL);
	common_is(two, two, 7, SHEAF_BREAK_NONE, NULL);
	sheaf_context_common(&c, one, two);
	assert_int_equal(c.bytes,
	                 strlen("hello") + strlen("{'cmd':'ls'}") + strlen("out") + strlen("done"));
	sheaf_context_free(none);
	sheaf_context_free(one);
	sheaf_context_free(two);
	kit_close(&k);
}

static void a_late_answer_breaks_it(void **state)
{
	(void)state;
	static const char *const later[] = {"t2=t:r2", "u3=u:r2,and", "t1=t:r1"};
	static const char *const entry[] = {"t2", "u3", "t1"};
	for (size_t i = 0; i < COUNT_OF(later); i++) {
		kit k;
		kit_open(&k);
		kit_script(&k, "u1=u:hello a1=a:c1,c2");
		if (i == 1)
			kit_script(&k, "t1=t:r1");
		if (i != 1)
			kit_script(&k, "u2=u:wait");
		const sheaf_context *one = kit_context(&k, NULL);
		kit_script(&k, later[i]);
		const sheaf_context *two = kit_context(&k, NULL);
		common_is(one, two, i == 1 ? 3 : 2, SHEAF_BREAK_LATE_ANSWER, entry[i]);
		sheaf_context_free(one);
		sheaf_context_free(two);
		kit_close(&k);
	}
}

static void a_compaction_breaks_it(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:hello a1=a:hi u2=u:more a2=a:yes");
	const sheaf_context *one = kit_context(&k, NULL);
	assert_int_equal(kit_compact(&k, "x1", "short", "u2"), 0);
	const sheaf_context *two = kit_context(&k, NULL);
	common_is(one, two, 0, SHEAF_BREAK_COMPACTION, "x1");
	common_is(two, one, 0, SHEAF_BREAK_COMPACTION, "u1");
	kit_script(&k, "u3=u:on");
	const sheaf_context *three = kit_context(&k, NULL);
	common_is(two, three, 3, SHEAF_BREAK_NONE, NULL);
	assert_int_equal(kit_compact(&k, "x2", "shorter", "u3"), 0);
	const sheaf_context *four = kit_context(&k, NULL);
	common_is(three, four, 0, SHEAF_BREAK_COMPACTION, "x2");
	sheaf_context_free(one);
	sheaf_context_free(two);
	sheaf_context_free(three);
	sheaf_context_free(four);
	kit_close(&k);
}

static void another_model_breaks_it(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	say(&k, "user", TEXT("1"));
	kit_json(&k, "message", "a1",
	         "{'message':{'role':'assistant','provider':'anthropic','model':'m-20250929',"
	         "'content':[" THOUGHT("t", "s") "," TEXT("x") "]}}");
	const sheaf_context *one = seen_by(&k, NULL, "m");
	kit_json(&k, "model_change", "mc",
	         "{'model_change':{'provider':'anthropic','model_id':'m'}}");
	const sheaf_context *same = seen_by(&k, NULL, "m");
	kit_json(&k, "model_change", "md",
	         "{'model_change':{'provider':'anthropic','model_id':'n'}}");
	const sheaf_context *other = seen_by(&k, NULL, "n"), *plain = kit_context(&k, NULL);
	common_is(one, same, 2, SHEAF_BREAK_NONE, NULL);
	common_is(one, other, 1, SHEAF_BREAK_MODEL, "a1");
	/* Nothing was signed, but no cache is shared either. */
	common_is(one, plain, 2, SHEAF_BREAK_MODEL, NULL);
	sheaf_context_free(one);
	sheaf_context_free(same);
	sheaf_context_free(other);
	sheaf_context_free(plain);
	kit_close(&k);
}

static void other_options_break_it(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	say(&k, "user", TEXT("1"));
	k.entry.agent = SHEAF_STR("a");
	kit_script(&k, "x=u:secret");
	k.entry.agent = (sheaf_str){NULL, 0};
	kit_script(&k, "u2=u:open");
	const sheaf_context *one = seen_by(&k, "a", NULL);
	kit_script(&k, "u3=u:more");
	const sheaf_context *two = seen_by(&k, "b", NULL), *three = seen_by(&k, "a", NULL);
	common_is(one, three, 3, SHEAF_BREAK_NONE, NULL);
	common_is(one, two, 1, SHEAF_BREAK_OPTIONS, "u2");
	common_is(two, three, 1, SHEAF_BREAK_OPTIONS, "x");
	sheaf_context_free(one);
	sheaf_context_free(two);
	sheaf_context_free(three);
	kit_close(&k);
}

static void another_branch_breaks_it(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:hello a1=a:one u2=u:x");
	const sheaf_context *one = kit_context(&k, NULL);
	kit_branch(&k, "main", "u1");
	const sheaf_context *back = kit_context(&k, NULL);
	kit_script(&k, "a2=a:two");
	const sheaf_context *two = kit_context(&k, NULL);
	common_is(one, back, 1, SHEAF_BREAK_BRANCH, NULL);
	common_is(one, two, 1, SHEAF_BREAK_BRANCH, "a2");
	common_is(back, two, 1, SHEAF_BREAK_NONE, NULL);
	sheaf_context_free(one);
	sheaf_context_free(back);
	sheaf_context_free(two);
	kit_close(&k);
}

/* The newest of the earlier one is gone, though an older entry stands where it stood. */
static void another_branch_with_moved_answers_breaks_it(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:hello a1=a:c1 u2=u:wait t1=t:r1");
	const sheaf_context *one = kit_context(&k, NULL);
	kit_branch(&k, "main", "u2");
	kit_script(&k, "u3=u:r1,and");
	const sheaf_context *two = kit_context(&k, NULL);
	common_is(one, two, 2, SHEAF_BREAK_BRANCH, "u3");
	sheaf_context_free(one);
	sheaf_context_free(two);
	kit_close(&k);
}

/* ---- Requests ------------------------------------------------------------ */

static char filler[4000];

static size_t length_without_marks(sheaf_str body)
{
	size_t len = body.len;
	for (const char *at = body.ptr; (at = strstr(at, ",\"cache_control\"")) != NULL; at++)
		len -= (size_t)(strchr(at, '}') + 1 - at);
	return len;
}

static void requests_share_what_stands_before(void **state)
{
	(void)state;
	kit k;
	sheaf_render_options how = how_to(SHEAF_FORMAT_ANTHROPIC);
	const sheaf_system system = {.text = {filler, sizeof(filler)}};
	memset(filler, 'x', sizeof(filler));
	how.cache = SHEAF_CACHE_FULL;
	how.system = &system;
	how.system_count = 1;
	kit_open(&k);
	say(&k, "user", TEXT("one"));
	sheaf_request *one = rendered(&k, &how);
	say(&k, "assistant", TEXT("two, \\\"cache_control\\\":{\\\"type\\\":\\\"ephemeral\\\"}"));
	say(&k, "user", TEXT("three"));
	sheaf_request *two = rendered(&k, &how);
	assert_int_equal(one->mark_count, 2);
	assert_int_equal(two->mark_count, 2);
	/* All but `]}`: what is behind the last message. */
	assert_int_equal(sheaf_request_common(one, two), length_without_marks(one->body) - 2);
	assert_int_equal(sheaf_request_common(two, two), length_without_marks(two->body));
	how.cache = SHEAF_CACHE_OFF;
	sheaf_request *bare = rendered(&k, &how);
	assert_int_equal(sheaf_request_common(bare, two), bare->body.len);
	how.system_count = 0;
	sheaf_request *other = rendered(&k, &how);
	assert_int_equal(sheaf_request_common(bare, other),
	                 strlen("{'model':'m','max_tokens':8192,'"));
	sheaf_request_free(one);
	sheaf_request_free(two);
	sheaf_request_free(bare);
	sheaf_request_free(other);
	kit_close(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_more_breaks_nothing),
		cmocka_unit_test(a_late_answer_breaks_it),
		cmocka_unit_test(a_compaction_breaks_it),
		cmocka_unit_test(another_model_breaks_it),
		cmocka_unit_test(other_options_break_it),
		cmocka_unit_test(another_branch_breaks_it),
		cmocka_unit_test(another_branch_with_moved_answers_breaks_it),
		cmocka_unit_test(requests_share_what_stands_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
