/* Tests of base/clock.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "sheaf/sys/seams.h"

#define YEAR_0_US INT64_C(-62167219200000000)
#define YEAR_9999_US INT64_C(253402300799999999)

static void assert_format(int64_t us, const char *want)
{
	char text[CLOCK_TEXT + 1];
	memset(text, 'x', sizeof(text));
	clock_format(text, us);
	assert_int_equal(text[CLOCK_TEXT], '\0');
	assert_string_equal(text, want);
}

static void test_format_known(void **state)
{
	(void)state;
	assert_format(0, "1970-01-01T00:00:00.000000Z");
	assert_format(-1, "1969-12-31T23:59:59.999999Z");
	assert_format(1, "1970-01-01T00:00:00.000001Z");
	assert_format(INT64_C(951782400000000), "2000-02-29T00:00:00.000000Z");
	assert_format(INT64_C(951868799999999), "2000-02-29T23:59:59.999999Z");
	assert_format(INT64_C(1794650400000000), "2026-11-14T10:00:00.000000Z");
	assert_format(INT64_C(1234567890123456), "2009-02-13T23:31:30.123456Z");
}

static void test_format_is_clamped(void **state)
{
	(void)state;
	assert_format(YEAR_0_US, "0000-01-01T00:00:00.000000Z");
	assert_format(YEAR_0_US - 1, "0000-01-01T00:00:00.000000Z");
	assert_format(INT64_MIN, "0000-01-01T00:00:00.000000Z");
	assert_format(YEAR_9999_US, "9999-12-31T23:59:59.999999Z");
	assert_format(YEAR_9999_US + 1, "9999-12-31T23:59:59.999999Z");
	assert_format(INT64_MAX, "9999-12-31T23:59:59.999999Z");
}

/* Every day of ten thousand years, against the C library, and back. */
static void test_every_day(void **state)
{
	(void)state;
	int64_t day = INT64_C(86400000000), us = YEAR_0_US, back;
	for (; us < YEAR_9999_US; us += day) {
		int64_t now = us + (us / 7919 % day + day) % day;
		time_t seconds = (time_t)(now / 1000000 - (now % 1000000 < 0));
		int micros = (int)(now - seconds * 1000000);
		struct tm tm;
		char want[96], got[CLOCK_TEXT + 1];
		gmtime_r(&seconds, &tm);
		(void)snprintf(want, sizeof(want), "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ",
		               tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
		               tm.tm_sec, micros);
		clock_format(got, now);
		if (strcmp(got, want) != 0)
			fail_msg("%s, not %s", got, want);
		if (!clock_parse((sheaf_str){got, CLOCK_TEXT}, &back) || back != now)
			fail_msg("%s is not read back", got);
	}
}

static void assert_parse(const char *text, int64_t want)
{
	int64_t us = -77;
	if (!clock_parse(sheaf_str_of(text), &us) || us != want)
		fail_msg("%s gave %lld", text, (long long)us);
}

static void test_parse_good(void **state)
{
	(void)state;
	assert_parse("1970-01-01T00:00:00Z", 0);
	assert_parse("1970-01-01t00:00:00z", 0);
	assert_parse("1970-01-01T00:00:00.5Z", 500000);
	assert_parse("1970-01-01T00:00:00.123Z", 123000);
	assert_parse("1970-01-01T00:00:00.123456Z", 123456);
	assert_parse("1970-01-01T00:00:00.1234569999Z", 123456);
	assert_parse("1970-01-01T00:00:00.00000000000000000000000000000000009Z", 0);
	assert_parse("1970-01-01T01:30:00+01:30", 0);
	assert_parse("1969-12-31T22:30:00.25-01:30", 250000);
	assert_parse("1970-01-01T00:00:00-00:00", 0);
	assert_parse("1970-01-01T00:00:00+23:59", -INT64_C(86340000000));
	assert_parse("2000-02-29T00:00:00Z", INT64_C(951782400000000));
	assert_parse("2016-12-31T23:59:60Z", INT64_C(1483228800000000));
	assert_parse("0000-01-01T00:00:00Z", YEAR_0_US);
	assert_parse("9999-12-31T23:59:59.999999Z", YEAR_9999_US);
}

static void test_parse_bad(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"Z",
		"1970",
		"1970-01-01",
		"1970-01-01T00:00:00",
		"1970-01-01T00:00Z",
		"1970-01-01T00:00:00.Z",
		"1970-01-01T00:00:00,5Z",
		"1970-01-01T00:00:00ZZ",
		"1970-01-01T00:00:00Z ",
		" 1970-01-01T00:00:00Z",
		"1970-01-01T00:00:00+0100",
		"1970-01-01T00:00:00+01",
		"1970-01-01T00:00:00+24:00",
		"1970-01-01T00:00:00+01:60",
		"1970-00-01T00:00:00Z",
		"1970-13-01T00:00:00Z",
		"1970-01-00T00:00:00Z",
		"1970-01-32T00:00:00Z",
		"1970-04-31T00:00:00Z",
		"1970-02-29T00:00:00Z",
		"1900-02-29T00:00:00Z",
		"1970-01-01T24:00:00Z",
		"1970-01-01T00:60:00Z",
		"1970-01-01T00:00:61Z",
		"197a-01-01T00:00:00Z",
		"1970/01/01T00:00:00Z",
		"+970-01-01T00:00:00Z",
		"1970-1-01T00:00:00Z",
		"19700101T000000Z",
		"1970-01-01X00:00:00Z",
		"1970-01-01T00:00:00.5",
		"1970-01-01T00:00:00*00:00",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int64_t us = -77;
		if (clock_parse(sheaf_str_of(bad[i]), &us))
			fail_msg("%s was taken", bad[i]);
		assert_int_equal(us, -77);
	}
	int64_t us;
	assert_false(clock_parse((sheaf_str){NULL, 0}, &us));
	/* Every prefix is bad, and nothing is read past it. */
	for (size_t len = 0; len < CLOCK_TEXT; len++) {
		char *part = malloc(len + 1);
		memcpy(part, "2026-11-14T10:00:00.000000Z", len);
		assert_false(clock_parse((sheaf_str){part, len}, &us));
		free(part);
	}
}

static int64_t fixed(void *ctx)
{
	return *(int64_t *)ctx;
}

static void slept(void *ctx, int64_t us)
{
	*(int64_t *)ctx += us;
}

static void test_seam(void **state)
{
	(void)state;
	int64_t now = 5;
	sheaf_io table = {.size = sizeof(table),
	                  .ctx = &now,
	                  .realtime_us = fixed,
	                  .monotonic_us = fixed,
	                  .sleep_us = slept};
	sheaf_set_io(&table);
	assert_int_equal(clock_now_us(), 5);
	assert_int_equal(clock_monotonic_us(), 5);
	clock_sleep_us(7);
	assert_int_equal(clock_now_us(), 12);
	sheaf_set_io(NULL);

	int64_t real = clock_now_us(), mono = clock_monotonic_us();
	assert_true(llabs(real / 1000000 - (int64_t)time(NULL)) <= 1);
	clock_sleep_us(2000);
	clock_sleep_us(0);
	clock_sleep_us(-5);
	assert_true(clock_monotonic_us() - mono >= 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format_known), cmocka_unit_test(test_format_is_clamped),
		cmocka_unit_test(test_every_day),    cmocka_unit_test(test_parse_good),
		cmocka_unit_test(test_parse_bad),    cmocka_unit_test(test_seam),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
