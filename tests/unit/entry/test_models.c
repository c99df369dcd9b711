/* The table of models: that the built-in one is sound, which row holds, files laid over it, money. */
#include "entry_test.h"

#include "entry/models.h"

#define DAY_US INT64_C(86400000000)

static const sheaf_model_row *at(const sheaf_models *t, const char *provider, const char *model,
                                 int64_t time_us)
{
	return sheaf_models_find(t, sheaf_str_of(provider), sheaf_str_of(model), time_us);
}

static void is_row(const sheaf_model_row *row, const char *model, const char *input)
{
	sheaf_money want;
	assert_non_null(row);
	assert_true(str_is(row->model, model));
	assert_int_equal(sheaf_money_parse(&want, sheaf_str_of(input)), 0);
	assert_int_equal(row->prices.input, want);
}

static void built_in_is_sound(void **state)
{
	(void)state;
	sheaf_models *t = NULL;
	sheaf_error err;
	int rc = sheaf_models_read(&t, str_make(models_text, models_text_len), &err);
	if (rc != 0)
		print_error("%s\n", err.message);
	assert_int_equal(rc, 0);
	sheaf_models_free(t);
	/* All of it fits: the last row is there too. */
	is_row(at(NULL, "google", "gemini-2.5-flash-lite", 0), "gemini-2.5-flash-lite", "0.10");
	const sheaf_model_row *m = at(NULL, "anthropic", "claude-sonnet-4-5", 0);
	is_row(m, "claude-sonnet-4-5", "3");
	assert_int_equal(m->window, 200000);
	assert_int_equal(m->max_output, 64000);
	assert_int_equal(m->cache_minimum, 1024);
	assert_int_equal(m->tier_over, 200000);
	assert_int_equal(m->tier.output, INT64_C(22500000000));
}

static void names_fit(void **state)
{
	(void)state;
	is_row(at(NULL, "anthropic", "claude-opus-4-5-20251101", 0), "claude-opus-4-5", "5");
	is_row(at(NULL, "anthropic", "claude-opus-4-20250514", 0), "claude-opus-4", "15");
	is_row(at(NULL, "anthropic", "claude-opus-4@20250514", 0), "claude-opus-4", "15");
	is_row(at(NULL, "anthropic", "claude-3-7-sonnet-latest", 0), "claude-3-7-sonnet", "3");
	is_row(at(NULL, "openai", "gpt-5-2025-08-07", 0), "gpt-5", "1.25");
	is_row(at(NULL, "openai", "gpt-5-mini", 0), "gpt-5-mini", "0.25");
	is_row(at(NULL, "", "gpt-5-mini", 0), "gpt-5-mini", "0.25");
	/* Another model, though it begins the same. */
	assert_null(at(NULL, "openai", "gpt-5-other", 0));
	assert_null(at(NULL, "openai", "gpt-5-2025-08-0", 0));
	assert_null(at(NULL, "anthropic", "claude-opus-4-2025051", 0));
	assert_null(at(NULL, "openai", "claude-opus-4-5", 0));
	assert_null(at(NULL, "openai", "gpt", 0));
	assert_null(at(NULL, "openai", "", 0));
}

static sheaf_models *table(const char *rows)
{
	char text[2048];
	sheaf_models *t = NULL;
	sheaf_error err;
	snprintf(text, sizeof(text),
	         "{\"format\":\"sheaf-models\",\"version\":1,\"groups\":"
	         "[{\"provider\":\"p\",\"source\":\"s\",\"models\":[%s]}]}\n",
	         rows);
	int rc = sheaf_models_read(&t, sheaf_str_of(text), &err);
	assert_true(rc == 0 || rc == SHEAF_FORMAT);
	assert_true((rc == 0) == (t != NULL));
	return t;
}

static void longest_and_latest(void **state)
{
	(void)state;
	sheaf_models *t = table("{\"model\":\"m*\",\"input\":\"1\"},"
	                        "{\"model\":\"m-2*\",\"input\":\"2\"},"
	                        "{\"model\":\"m-2\",\"input\":\"3\",\"from\":\"1970-01-03\"},"
	                        "{\"model\":\"m-2\",\"input\":\"4\",\"from\":\"1970-01-02\"},"
	                        "{\"model\":\"m-2\",\"input\":\"5\",\"from\":\"1970-01-05\"}");
	is_row(at(t, "p", "m-1", 0), "m*", "1");
	is_row(at(t, "p", "m", 0), "m*", "1");
	is_row(at(t, "p", "m-2-turbo", 0), "m-2*", "2");
	is_row(at(t, "p", "m-2", 0), "m-2", "5");
	is_row(at(t, "p", "m-2", 4 * DAY_US), "m-2", "5");
	is_row(at(t, "p", "m-2", 4 * DAY_US - 1), "m-2", "3");
	is_row(at(t, "p", "m-2", 2 * DAY_US), "m-2", "3");
	is_row(at(t, "p", "m-2", DAY_US), "m-2", "4");
	is_row(at(t, "p", "m-2", 1), "m-2", "4");
	is_row(at(t, "p", "m-2-20260101", 0), "m-2", "5");
	/* What the file does not know, the built-in table does. */
	is_row(at(t, "openai", "gpt-5", 0), "gpt-5", "1.25");
	sheaf_models_free(t);
	/* A price that is not listed is not known; nothing is 0 by being left out. */
	t = table("{\"model\":\"m\",\"output\":\"0\"}");
	assert_int_equal(at(t, "p", "m", 0)->prices.input, SHEAF_MONEY_UNKNOWN);
	assert_int_equal(at(t, "p", "m", 0)->prices.output, 0);
	assert_int_equal(at(t, "p", "m", 0)->window, 0);
	sheaf_models_free(t);
}

static void tables_that_are_none(void **state)
{
	(void)state;
	static const char *const rows[] = {
		"{\"input\":\"1\"}",
		"{\"model\":\"\"}",
		"{\"model\":\"m\",\"inptu\":\"1\"}",
		"{\"model\":\"m\",\"input\":1}",
		"{\"model\":\"m\",\"input\":\"1e3\"}",
		"{\"model\":\"m\",\"input\":\"-1\"}",
		"{\"model\":\"m\",\"input\":\"0.0000000001\"}",
		"{\"model\":\"m\",\"window\":\"1\"}",
		"{\"model\":\"m\",\"window\":1.5}",
		"{\"model\":\"m\",\"window\":99999999999999999999}",
		"{\"model\":\"m\",\"from\":\"2026-13-01\"}",
		"{\"model\":\"m\",\"from\":\"2026\"}",
		"{\"model\":\"m\",\"tier\":{\"input\":\"1\"}}",
		"{\"model\":\"m\",\"tier\":{\"over\":1,\"in\":\"1\"}}",
		"{\"model\":\"m\",\"tier\":5}",
		"{\"model\":\"m\\u0031\"}",
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		assert_null(table(rows[i]));
	static const char *const texts[] = {
		"",
		"[]",
		"{\"format\":\"sheaf-models\",\"version\":2,\"groups\":[]}",
		"{\"format\":\"other\",\"version\":1,\"groups\":[]}",
		"{\"format\":\"sheaf-models\",\"version\":1,\"groups\":[{\"models\":[]}]}",
		"{\"format\":\"sheaf-models\"",
	};
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		sheaf_models *t = NULL;
		assert_int_equal(sheaf_models_read(&t, sheaf_str_of(texts[i]), NULL), SHEAF_FORMAT);
		assert_null(t);
	}
	sheaf_models *t = NULL;
	assert_int_equal(sheaf_models_read(NULL, SHEAF_STR("{}"), NULL), SHEAF_INVALID);
	assert_int_equal(sheaf_models_load(&t, "no-such-file", NULL), SHEAF_NOT_FOUND);
	assert_int_equal(sheaf_models_load(&t, ".", NULL), SHEAF_STORAGE);
}

static void files_are_loaded(void **state)
{
	(void)state;
	sheaf_models *t = NULL;
	FILE *f = fopen("models.json", "w");
	assert_non_null(f);
	fputs("{\"format\":\"sheaf-models\",\"version\":1,\"groups\":[{\"provider\":\"openai\","
	      "\"models\":[{\"model\":\"gpt-5\",\"input\":\"7\"}]}]}\n",
	      f);
	fclose(f);
	fail_alloc_install();
	for (size_t n = 1;; n++) {
		fail_alloc_at(n, false);
		int rc = sheaf_models_load(&t, "models.json", NULL);
		if (!fail_alloc_hit()) {
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(rc, SHEAF_NOMEM);
		assert_null(t);
	}
	is_row(at(t, "openai", "gpt-5", 0), "gpt-5", "7");
	sheaf_models_free(t);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

static void money_as_text(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t nano;
		const char *shown;
		const char *exact;
	} rows[] = {
		{"0", 0, "$0.0000", "0"},
		{"3", INT64_C(3000000000), "$3.00", "3"},
		{"3.00", INT64_C(3000000000), "$3.00", "3"},
		{"0.075", 75000000, "$0.0750", "0.075"},
		{"12.345", INT64_C(12345000000), "$12.35", "12.345"},
		{"12.344999999", INT64_C(12344999999), "$12.34", "12.344999999"},
		{"0.00005", 50000, "$0.0001", "0.00005"},
		{"0.000049999", 49999, "<$0.0001", "0.000049999"},
		{"0.99994", 999940000, "$0.9999", "0.99994"},
		{"0.99995", 999950000, "$1.00", "0.99995"},
		{"-1.25", INT64_C(-1250000000), "-$1.25", "-1.25"},
		{"-0.000000001", -1, "-<$0.0001", "-0.000000001"},
		{"9223372036.854775807", INT64_MAX, "$9223372036.85", "9223372036.854775807"},
	};
	char text[SHEAF_MONEY_ROOM];
	sheaf_money amount;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_int_equal(sheaf_money_parse(&amount, sheaf_str_of(rows[i].text)), 0);
		assert_int_equal(amount, rows[i].nano);
		assert_int_equal(sheaf_money_format(text, amount), strlen(rows[i].shown));
		assert_string_equal(text, rows[i].shown);
		assert_int_equal(sheaf_money_exact(text, amount), strlen(rows[i].exact));
		assert_string_equal(text, rows[i].exact);
	}
	sheaf_money_format(text, SHEAF_MONEY_UNKNOWN);
	assert_string_equal(text, "unknown");
	sheaf_money_exact(text, SHEAF_MONEY_UNKNOWN);
	assert_string_equal(text, "null");
	static const char *const none[] = {
		"",   "-",  ".",    ".5",  "5.",  "1.2.3",        "1,5",
		"+1", " 1", "0x10", "1e2", "--1", "0.1234567891", "9223372036.854775808"};
	for (size_t i = 0; i < COUNT_OF(none); i++)
		assert_int_equal(sheaf_money_parse(&amount, sheaf_str_of(none[i])), SHEAF_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(built_in_is_sound),  cmocka_unit_test(names_fit),
		cmocka_unit_test(longest_and_latest), cmocka_unit_test(tables_that_are_none),
		cmocka_unit_test(files_are_loaded),   cmocka_unit_test(money_as_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
