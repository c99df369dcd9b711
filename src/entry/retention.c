/* The `retention` fact, both ways. Times are seconds with up to six decimals. */
#include "entry/retention.h"

#include "base/err.h"
#include "base/str.h"
#include "entry/members.h"

#define SECOND_US INT64_C(1000000)

/* Seconds as microseconds: digits, and at most six after a point. Capped above what is allowed. */
static bool seconds(sheaf_str number, int64_t *out_us)
{
	int64_t us = 0, unit = SECOND_US;
	bool point = false;
	for (size_t i = 0; i < number.len; i++) {
		char c = number.ptr[i];
		if (c == '.' && !point) {
			point = true;
			continue;
		}
		if (c < '0' || c > '9' || (point && unit == 1))
			return false;
		if (point) {
			unit /= 10;
			us += (c - '0') * unit;
		} else if (us <= SHEAF_TTL_US_MAX) {
			us = us * 10 + (c - '0') * SECOND_US;
		}
	}
	*out_us = us;
	return number.len != 0;
}

static int read_time(sheaf_str value, const char *what, int64_t least_us, int64_t *out_us,
                     sheaf_error *err)
{
	if (!seconds(value, out_us) || *out_us < least_us)
		return err_set(err, SHEAF_INVALID,
		               "%s of a retention is no time in seconds, to the microsecond", what);
	if (*out_us > SHEAF_TTL_US_MAX)
		return err_set(err, SHEAF_LIMIT, "%s of a retention is longer than 100 years",
		               what);
	return 0;
}

int retention_read(retention_fact *out, sheaf_str inside, sheaf_error *err)
{
	sheaf_str key, value;
	int rc = 0;
	*out = (retention_fact){.has_ttl = false};
	for (size_t at = 0; rc == 0 && members_next(inside, &at, &key, &value);) {
		if (members_key_is(key, "ttl")) {
			out->has_ttl = true;
			if (!str_is(value, "null"))
				rc = read_time(value, "ttl", 1, &out->ttl_us, err);
		} else if (members_key_is(key, "grace")) {
			out->has_grace = true;
			rc = read_time(value, "grace", 0, &out->grace_us, err);
		} else if (members_key_is(key, "pin")) {
			out->has_pin = true;
			out->pin = str_is(value, "true");
			if (!out->pin && !str_is(value, "false"))
				rc = err_set(err, SHEAF_INVALID,
				             "pin of a retention is true or false");
		}
	}
	return rc;
}

static void write_time(buf *out, int64_t us)
{
	char digits[8] = ".000000";
	buf_u64(out, (uint64_t)(us / SECOND_US));
	size_t len = 0;
	for (int64_t rest = us % SECOND_US, unit = SECOND_US / 10; rest != 0; unit /= 10) {
		digits[++len] = (char)('0' + rest / unit);
		rest %= unit;
	}
	if (len != 0)
		buf_str(out, str_make(digits, len + 1));
}

void retention_write(buf *out, const retention_fact *r)
{
	const char *comma = "";
	buf_lit(out, "\"retention\":{");
	if (r->has_ttl) {
		buf_lit(out, "\"ttl\":");
		if (r->ttl_us != 0)
			write_time(out, r->ttl_us);
		else
			buf_lit(out, "null");
		comma = ",";
	}
	if (r->has_grace) {
		buf_str(out, sheaf_str_of(comma));
		buf_lit(out, "\"grace\":");
		write_time(out, r->grace_us);
		comma = ",";
	}
	if (r->has_pin) {
		buf_str(out, sheaf_str_of(comma));
		buf_lit(out, "\"pin\":");
		buf_str(out, sheaf_str_of(r->pin ? "true" : "false"));
	}
	buf_char(out, '}');
}
