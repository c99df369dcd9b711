/* Whose a message is, and when two names mean one model. */
#include "entry_test.h"

#include "entry/maker.h"

static void dates_are_no_part_of_a_name(void **state)
{
	(void)state;
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{"m-4-5", "m-4-5", true},           {"m-4-5", "m-4-5-20250929", true},
		{"m-4-5", "m-4-5@20250929", true},  {"m-4-5", "m-4-5-2025-09-29", true},
		{"m-4-5-latest", "m-4-5", true},    {"m-4-5-20250929", "m-4-5-20250101", false},
		{"m-4-5", "m-4-5-mini", false},     {"m-4-5", "m-4-5-2025092", false},
		{"m-4-5", "m-4-5-2025092x", false}, {"m-4", "m-5", false},
		{"-20250929", "", false},           {"", "", true},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		sheaf_str a = sheaf_str_of(cases[i].a), b = sheaf_str_of(cases[i].b);
		if (model_same(a, b) != cases[i].same || model_same(b, a) != cases[i].same)
			fail_msg("%s and %s", cases[i].a, cases[i].b);
	}
}

static void nobody_is_anybody(void **state)
{
	(void)state;
	sheaf_message_view known = {.provider = S("p"), .model = S("m-20250929")}, unknown = {0};
	assert_true(made_by(&known, S("p"), S("m")));
	assert_true(made_by(&known, S("p"), NONE));
	assert_true(made_by(&known, NONE, S("m")));
	assert_false(made_by(&known, S("q"), S("m")));
	assert_false(made_by(&known, S("p"), S("n")));
	assert_true(made_by_provider(&known, S("p")));
	assert_false(made_by_provider(&known, S("q")));
	assert_true(made_by(&unknown, S("q"), S("n")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dates_are_no_part_of_a_name),
		cmocka_unit_test(nobody_is_anybody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
