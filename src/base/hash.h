/*
 * The hash behind str_hash() and the map; private to src/base.
 *
 * A multiply-and-fold hash in the manner of wyhash. The four secret words are
 * the caller's: fixed ones give the same value on every machine, random ones
 * give a value that a hostile writer of keys cannot aim at.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>
#include <string.h>

#include "sheaf/common.h"

static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
	__extension__ typedef unsigned __int128 wide;
	wide product = (wide)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
	uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
	uint64_t ll = al * bl, lh = al * bh, hl = ah * bl, hh = ah * bh;
	uint64_t mid = (ll >> 32) + (uint32_t)lh + (uint32_t)hl;
	uint64_t low = (mid << 32) | (uint32_t)ll;
	uint64_t high = hh + (lh >> 32) + (hl >> 32) + (mid >> 32);
	return low ^ high;
#endif
}

static inline uint64_t hash_load8(const char *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v;
}

/* The last 0..8 bytes as one number; with the length it tells all of them apart. */
static inline uint64_t hash_load_tail(const char *p, size_t len)
{
	uint64_t v = 0;
	for (size_t i = 0; i < len; i++)
		v |= (uint64_t)(unsigned char)p[i] << (8 * i);
	return v;
}

static inline uint64_t hash_bytes(sheaf_str s, const uint64_t secret[4])
{
	const char *p = s.ptr;
	size_t left = s.len;
	uint64_t state = secret[0] ^ (uint64_t)s.len;

	while (left > 16) {
		state = hash_fold(hash_load8(p) ^ secret[1], hash_load8(p + 8) ^ state);
		p += 16;
		left -= 16;
	}
	uint64_t a, b = 0;
	if (left >= 8) {
		a = hash_load8(p);
		/* The second word may overlap the first; the length tells by how much. */
		b = hash_load8(p + left - 8);
	} else {
		a = hash_load_tail(p, left);
	}
	state = hash_fold(a ^ secret[2], b ^ state);
	return hash_fold(state ^ secret[3], (uint64_t)s.len ^ secret[1]);
}

#endif
