/* Tells whether a message was made by a given provider and model. */
#include "entry/maker.h"

#include "base/str.h"

static bool is_digits(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return false;
	}
	return true;
}

/* Whether the end of a name is a separator and a date: -20250929, @20250929, -2025-09-29. */
static bool is_dated(sheaf_str name, size_t digits, bool dashes)
{
	size_t len = digits + (dashes ? 2 : 0);
	if (name.len <= len + 1)
		return false;
	const char *p = name.ptr + name.len - len;
	if (p[-1] != '-' && p[-1] != '@')
		return false;
	if (!dashes)
		return is_digits(p, digits);
	return is_digits(p, 4) && p[4] == '-' && is_digits(p + 5, 2) && p[7] == '-' &&
	       is_digits(p + 8, 2);
}

static sheaf_str without_date(sheaf_str name)
{
	const size_t latest = sizeof("-latest") - 1;
	if (is_dated(name, 8, false))
		return str_make(name.ptr, name.len - 9);
	if (is_dated(name, 8, true))
		return str_make(name.ptr, name.len - 11);
	if (name.len > latest && memcmp(name.ptr + name.len - latest, "-latest", latest) == 0)
		return str_make(name.ptr, name.len - latest);
	return name;
}

/* Two different dates are two models. */
bool model_same(sheaf_str a, sheaf_str b)
{
	if (str_eq(a, b))
		return true;
	sheaf_str plain_a = without_date(a), plain_b = without_date(b);
	return str_eq(plain_a, plain_b) && (plain_a.len == a.len || plain_b.len == b.len);
}

bool made_by_provider(const sheaf_message_view *message, sheaf_str provider)
{
	return provider.len == 0 || message->provider.len == 0 ||
	       str_eq(message->provider, provider);
}

bool made_by(const sheaf_message_view *message, sheaf_str provider, sheaf_str model)
{
	return made_by_provider(message, provider) &&
	       (model.len == 0 || message->model.len == 0 || model_same(message->model, model));
}
