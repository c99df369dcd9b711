/* Amounts of money as text: whole billionths of a dollar, so nothing is ever rounded but to show it. */
#include <stdio.h>

#include "base/str.h"
#include "sheaf/usage.h"

#define NANO 1000000000
#define DECIMALS 9

int sheaf_money_parse(sheaf_money *out, sheaf_str text)
{
	int64_t value = 0;
	int decimals = -1; /* -1: before the point */
	size_t i = 0, digits = 0;
	bool minus = text.len != 0 && text.ptr[0] == '-';
	for (i = minus; i < text.len; i++) {
		char c = text.ptr[i];
		if (c == '.' && decimals < 0 && digits != 0) {
			decimals = 0;
			continue;
		}
		if (c < '0' || c > '9' || decimals == DECIMALS)
			return SHEAF_INVALID;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, c - '0', &value))
			return SHEAF_INVALID;
		decimals += decimals >= 0;
		digits++;
	}
	if (digits == 0 || decimals == 0)
		return SHEAF_INVALID;
	for (int d = decimals < 0 ? 0 : decimals; d < DECIMALS; d++) {
		if (__builtin_mul_overflow(value, 10, &value))
			return SHEAF_INVALID;
	}
	*out = minus ? -value : value;
	return 0;
}

/* The amount without its sign. */
static uint64_t size_of(sheaf_money amount)
{
	return amount < 0 ? -(uint64_t)amount : (uint64_t)amount;
}

size_t sheaf_money_format(char out[SHEAF_MONEY_ROOM], sheaf_money amount)
{
	const char *sign = amount < 0 ? "-" : "";
	uint64_t value = size_of(amount);
	int len;
	if (amount == SHEAF_MONEY_UNKNOWN) {
		len = snprintf(out, SHEAF_MONEY_ROOM, "unknown");
	} else if (value != 0 && value < NANO / 20000) {
		len = snprintf(out, SHEAF_MONEY_ROOM, "%s<$0.0001", sign);
	} else if (value < NANO - NANO / 20000) {
		value = (value + NANO / 20000) / (NANO / 10000);
		len = snprintf(out, SHEAF_MONEY_ROOM, "%s$0.%04u", sign, (unsigned)value);
	} else {
		value = (value + NANO / 200) / (NANO / 100);
		len = snprintf(out, SHEAF_MONEY_ROOM, "%s$%llu.%02u", sign,
		               (unsigned long long)(value / 100), (unsigned)(value % 100));
	}
	return (size_t)len;
}

size_t sheaf_money_exact(char out[SHEAF_MONEY_ROOM], sheaf_money amount)
{
	uint64_t value = size_of(amount);
	if (amount == SHEAF_MONEY_UNKNOWN)
		return (size_t)snprintf(out, SHEAF_MONEY_ROOM, "null");
	int len = snprintf(out, SHEAF_MONEY_ROOM, "%s%llu.%09u", amount < 0 ? "-" : "",
	                   (unsigned long long)(value / NANO), (unsigned)(value % NANO));
	while (out[len - 1] == '0')
		len--;
	len -= out[len - 1] == '.';
	out[len] = '\0';
	return (size_t)len;
}
