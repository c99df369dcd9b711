/* Usage as records have it, and which of it counts. */
#include "entry/usage.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "entry/members.h"

/* ---- Reading ------------------------------------------------------------ */

/* A whole number's value, as message_usage() has it: 0 for anything else. */
static uint64_t whole(sheaf_str digits)
{
	uint64_t value = 0;
	for (size_t i = 0; i < digits.len; i++) {
		uint64_t digit = (uint64_t)(unsigned char)digits.ptr[i] - '0';
		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return 0;
		value = value * 10 + digit;
	}
	return value;
}

/* Nearly every reply has usage, so it is read where it stands. */
bool usage_read(sheaf_usage *out, sheaf_str value)
{
	if (value.len == 0 || value.ptr[0] != '{')
		return false;
	const struct {
		const char *name;
		uint64_t *count;
	} places[] = {
		{"input", &out->input},
		{"output", &out->output},
		{"cache_read", &out->cache_read},
		{"cache_write_5m", &out->cache_write_5m},
		{"cache_write_1h", &out->cache_write_1h},
		{"reasoning", &out->reasoning},
	};
	sheaf_str inside = members_inside(value), key, number;
	for (size_t at = 0; members_next(inside, &at, &key, &number);) {
		for (size_t i = 0; i < COUNT_OF(places); i++) {
			if (members_key_is(key, places[i].name))
				*places[i].count = whole(number);
		}
	}
	return true;
}

static void add(uint64_t *to, uint64_t value)
{
	*to = value > UINT64_MAX - *to ? UINT64_MAX : *to + value;
}

void usage_add(sheaf_usage *to, const sheaf_usage *more)
{
	add(&to->input, more->input);
	add(&to->cache_read, more->cache_read);
	add(&to->cache_write_5m, more->cache_write_5m);
	add(&to->cache_write_1h, more->cache_write_1h);
	add(&to->output, more->output);
	add(&to->reasoning, more->reasoning);
}

sheaf_str usage_payload(sheaf_str body, const char *type)
{
	size_t len = strlen(type);
	if (body.len > len + 4 && body.ptr[0] == '"' && memcmp(body.ptr + 1, type, len) == 0 &&
	    memcmp(body.ptr + 1 + len, "\":{", 3) == 0)
		return str_make(body.ptr + len + 4, body.len - len - 4);
	return members_inside(members_find(body, type));
}

/* ---- Turns -------------------------------------------------------------- */

#define LOST_BITS ((uint64_t)TURNS_LOST * 64)

uint64_t turns_hash(sheaf_str turn)
{
	uint64_t hash = str_hash(turn);
	return hash != 0 ? hash : 1;
}

/* Where a turn stands among those known; TURNS_KNOWN if it does not. */
static size_t turn_find(const turns *t, uint64_t hash)
{
	for (size_t i = 0; i < t->count; i++) {
		if (t->known[i] == hash)
			return i;
	}
	return TURNS_KNOWN;
}

/* Two bits of `lost`. */
static bool turn_lost(const turns *t, uint64_t hash)
{
	uint64_t a = hash % LOST_BITS, b = (hash >> 32) % LOST_BITS;
	return (t->lost[a / 64] >> (a % 64) & 1) != 0 && (t->lost[b / 64] >> (b % 64) & 1) != 0;
}

bool turns_had_usage(const turns *t, uint64_t hash)
{
	return turn_find(t, hash) != TURNS_KNOWN || turn_lost(t, hash);
}

/* Makes room for one more turn: the oldest that has ended goes, else the oldest. */
static void turn_forget(turns *t)
{
	size_t at = 0;
	while (at < TURNS_KNOWN && (t->ended >> at & 1) == 0)
		at++;
	if (at == TURNS_KNOWN) {
		uint64_t hash = t->known[0], a = hash % LOST_BITS, b = (hash >> 32) % LOST_BITS;
		t->lost[a / 64] |= UINT64_C(1) << (a % 64);
		t->lost[b / 64] |= UINT64_C(1) << (b % 64);
		at = 0;
	}
	uint64_t below = (UINT64_C(1) << at) - 1;
	t->ended = (t->ended & below) | (t->ended >> 1 & ~below);
	t->count--;
	memmove(&t->known[at], &t->known[at + 1], (size_t)(t->count - at) * sizeof(t->known[0]));
}

void turns_note_usage(turns *t, uint64_t hash)
{
	if (turn_find(t, hash) != TURNS_KNOWN)
		return;
	if (t->count == TURNS_KNOWN)
		turn_forget(t);
	t->known[t->count++] = hash;
}

void turns_note_end(turns *t, uint64_t hash)
{
	size_t at = turn_find(t, hash);
	if (at != TURNS_KNOWN)
		t->ended |= UINT64_C(1) << at;
}
