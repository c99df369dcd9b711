/* What the tests of planned compactions share. */
#ifndef TESTS_CORE_PLAN_KIT_H
#define TESTS_CORE_PLAN_KIT_H

#include "kit.h"

#include "sheaf/compaction.h"

static UNUSED sheaf_compaction_options options(uint64_t keep)
{
	sheaf_compaction_options o = SHEAF_COMPACTION_OPTIONS_INIT;
	o.keep_recent = keep;
	return o;
}

static UNUSED const sheaf_cut *plan_with(kit *k, const sheaf_compaction_options *o)
{
	sheaf_cut *plan = NULL;
	int rc = sheaf_compaction_plan(&plan, k->s, o, &k->err);
	if (rc != 0)
		print_error("%s: %s\n", sheaf_code_name(rc), k->err.message);
	assert_int_equal(rc, 0);
	return plan;
}

static UNUSED const sheaf_cut *plan_of(kit *k, uint64_t keep)
{
	sheaf_compaction_options o = options(keep);
	return plan_with(k, &o);
}

static UNUSED int plan_fails(kit *k, uint64_t keep)
{
	sheaf_compaction_options o = options(keep);
	sheaf_cut *plan = NULL;
	int rc = sheaf_compaction_plan(&plan, k->s, &o, &k->err);
	assert_null(plan);
	return rc;
}

/* "u1 a1 | u2": what a plan covers and where it cuts; "~" marks a split turn. */
static UNUSED void cut_is(const sheaf_cut *plan, const char *want)
{
	char line[4096];
	size_t at = 0;
	line[0] = '\0';
	for (size_t i = 0; i < plan->covered_count; i++)
		at += (size_t)snprintf(line + at, sizeof(line) - at, "%s ", plan->covered[i].ptr);
	(void)snprintf(line + at, sizeof(line) - at, "%s%s", plan->split ? "~" : "|",
	               plan->first_kept.len != 0 ? plan->first_kept.ptr : "");
	assert_string_equal(line, want);
}

static UNUSED int apply(kit *k, const sheaf_cut *plan, const char *summary)
{
	sheaf_appended out = SHEAF_APPENDED_INIT;
	return sheaf_compaction_apply(k->s, plan, sheaf_str_of(summary), &out, &k->err);
}

static UNUSED void compacts(kit *k, uint64_t keep, const char *cut, const char *summary)
{
	const sheaf_cut *plan = plan_of(k, keep);
	cut_is(plan, cut);
	int rc = apply(k, plan, summary);
	if (rc != 0)
		print_error("%s: %s\n", sheaf_code_name(rc), k->err.message);
	assert_int_equal(rc, 0);
	sheaf_cut_free(plan);
}

/* Every item is as long as its id says: ten tokens for each unit. */
static UNUSED uint64_t ten_each(void *ctx, const sheaf_item *item)
{
	(void)ctx;
	return item->kind == SHEAF_ITEM_COMPACTION_SUMMARY ? 3 : 10;
}

static UNUSED sheaf_compaction_options tens(uint64_t keep)
{
	sheaf_compaction_options o = options(keep);
	o.tokens = ten_each;
	return o;
}

static UNUSED void cut_tens(kit *k, uint64_t keep, const char *want)
{
	sheaf_compaction_options o = tens(keep);
	const sheaf_cut *plan = plan_with(k, &o);
	cut_is(plan, want);
	assert_int_equal(plan->tokens_kept, 10 * plan->kept_count);
	sheaf_cut_free(plan);
}

/* A reply with usage: ten tokens of cache besides. */
static UNUSED void reply(kit *k, const char *id, const char *stop, uint64_t input, uint64_t output)
{
	sheaf_usage usage = {.input = input,
	                     .cache_read = 7,
	                     .cache_write_5m = 2,
	                     .cache_write_1h = 1,
	                     .output = output};
	sheaf_message *m = sheaf_message_new("assistant");
	(void)sheaf_message_text(m, SHEAF_STR("12345678"));
	(void)sheaf_message_usage(m, &usage);
	(void)sheaf_message_stop_reason(m, sheaf_str_of(stop));
	assert_int_equal(kit_put(k, k->s, sheaf_str_of(id), m), 0);
}

#endif
