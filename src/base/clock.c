/*
 * The one spelling of time, both ways, by arithmetic: no locale, no time zone,
 * no static buffer. (The clock itself is a seam and lives in io.c.)
 */
#include "clock.h"

#define SECOND_US INT64_C(1000000)
#define DAY_S INT64_C(86400)
#define DAY_US (DAY_S * SECOND_US)
#define YEAR_0_US (INT64_C(-719528) * DAY_US)        /* 0000-01-01T00:00:00.000000Z */
#define YEAR_9999_US (INT64_C(2932897) * DAY_US - 1) /* 9999-12-31T23:59:59.999999Z */
#define DAYS_TO_1970 719468                          /* from 0000-03-01 */
#define ERA_DAYS 146097                              /* 400 years */

static char *put2(char *out, unsigned value)
{
	out[0] = (char)('0' + value / 10);
	out[1] = (char)('0' + value % 10);
	return out + 2;
}

/* Days since 1970 to a date: years begin in March, so that the leap day is the last. */
static char *put_date(char *out, int64_t days)
{
	/* One era up, so that nothing is negative. */
	unsigned shifted = (unsigned)(days + DAYS_TO_1970 + ERA_DAYS);
	unsigned era = shifted / ERA_DAYS, day_of_era = shifted % ERA_DAYS;
	unsigned year_of_era =
		(day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	unsigned day_of_year = day_of_era -
	                       (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	unsigned from_march = (5 * day_of_year + 2) / 153;
	unsigned day = day_of_year - (153 * from_march + 2) / 5 + 1;
	unsigned month = from_march < 10 ? from_march + 3 : from_march - 9;
	unsigned year = era * 400 + year_of_era + (month <= 2) - 400;

	out = put2(out, year / 100);
	out = put2(out, year % 100);
	*out++ = '-';
	out = put2(out, month);
	*out++ = '-';
	return put2(out, day);
}

void clock_format(char out[CLOCK_TEXT + 1], int64_t us)
{
	if (us < YEAR_0_US)
		us = YEAR_0_US;
	if (us > YEAR_9999_US)
		us = YEAR_9999_US;
	int64_t days = us / DAY_US, rest = us % DAY_US;
	if (rest < 0) {
		rest += DAY_US;
		days--;
	}
	unsigned seconds = (unsigned)(rest / SECOND_US), micros = (unsigned)(rest % SECOND_US);

	char *p = put_date(out, days);
	*p++ = 'T';
	p = put2(p, seconds / 3600);
	*p++ = ':';
	p = put2(p, seconds / 60 % 60);
	*p++ = ':';
	p = put2(p, seconds % 60);
	*p++ = '.';
	p = put2(p, micros / 10000);
	p = put2(p, micros / 100 % 100);
	p = put2(p, micros % 100);
	*p++ = 'Z';
	*p = '\0';
}

typedef struct reader {
	const char *p;
	const char *end;
	bool ok;
} reader;

static unsigned get_digits(reader *r, int count, unsigned max)
{
	unsigned value = 0;
	for (; count > 0; count--) {
		if (r->p == r->end || *r->p < '0' || *r->p > '9') {
			r->ok = false;
			return 0;
		}
		value = value * 10 + (unsigned)(*r->p++ - '0');
	}
	if (value > max)
		r->ok = false;
	return value;
}

/* One character that must be a or b. */
static char get_char(reader *r, char a, char b)
{
	if (r->p < r->end && (*r->p == a || *r->p == b))
		return *r->p++;
	r->ok = false;
	return '\0';
}

/* The fraction in microseconds; digits after the sixth are read and dropped. */
static int64_t get_fraction(reader *r)
{
	int64_t value = 0, unit = SECOND_US / 10;
	if (r->p == r->end || *r->p != '.')
		return 0;
	r->p++;
	if (r->p == r->end || *r->p < '0' || *r->p > '9')
		r->ok = false;
	for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++) {
		value += (*r->p - '0') * unit;
		unit /= 10;
	}
	return value;
}

static int64_t get_offset_s(reader *r)
{
	if (r->p < r->end && (*r->p == 'Z' || *r->p == 'z')) {
		r->p++;
		return 0;
	}
	int64_t sign = get_char(r, '+', '-') == '-' ? -1 : 1;
	int64_t hours = get_digits(r, 2, 23);
	(void)get_char(r, ':', ':');
	return sign * (hours * 3600 + (int64_t)get_digits(r, 2, 59) * 60);
}

static unsigned days_in_month(unsigned year, unsigned month)
{
	static const unsigned char days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return days[month - 1] + (month == 2 && leap ? 1u : 0u);
}

static int64_t days_since_1970(unsigned year, unsigned month, unsigned day)
{
	unsigned y = year + 400 - (month <= 2); /* one era up: not negative */
	unsigned era = y / 400, year_of_era = y % 400;
	unsigned from_march = month > 2 ? month - 3 : month + 9;
	unsigned day_of_year = (153 * from_march + 2) / 5 + day - 1;
	unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
	return (int64_t)era * ERA_DAYS + day_of_era - DAYS_TO_1970 - ERA_DAYS;
}

bool clock_parse(sheaf_str text, int64_t *out_us)
{
	if (text.ptr == NULL)
		return false;
	reader r = {text.ptr, text.ptr + text.len, true};
	unsigned year = get_digits(&r, 4, 9999);
	(void)get_char(&r, '-', '-');
	unsigned month = get_digits(&r, 2, 12);
	(void)get_char(&r, '-', '-');
	unsigned day = get_digits(&r, 2, 31);
	(void)get_char(&r, 'T', 't');
	int64_t hour = get_digits(&r, 2, 23);
	(void)get_char(&r, ':', ':');
	int64_t minute = get_digits(&r, 2, 59);
	(void)get_char(&r, ':', ':');
	int64_t second = get_digits(&r, 2, 60); /* a leap second is the next one */
	int64_t fraction = get_fraction(&r);
	int64_t offset = get_offset_s(&r);

	if (!r.ok || r.p != r.end || month == 0 || day == 0 || day > days_in_month(year, month))
		return false;
	int64_t seconds = days_since_1970(year, month, day) * DAY_S + hour * 3600 + minute * 60 +
	                  second - offset;
	*out_us = seconds * SECOND_US + fraction;
	return true;
}
