/*
 * Finding the bytes that matter in JSON text, many at a time; private to src/base.
 *
 * A block is SCAN_WIDTH bytes. The scan_* functions over a block return the
 * index of the first byte that matters, or SCAN_WIDTH; those over a range
 * return a pointer to it, or `end`. Nothing reads past `end`.
 */
#ifndef BASE_SCAN_H
#define BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#define SCAN_WIDTH 16u
#else
#define SCAN_WIDTH 8u
#endif

/* What ends a plain run inside a JSON string: a quote, a backslash or a control. */
static inline bool scan_is_special(char c)
{
	return (unsigned char)c < 0x20 || c == '"' || c == '\\';
}

#ifdef __SSE2__

static inline size_t scan_first16(__m128i hits)
{
	unsigned mask = (unsigned)_mm_movemask_epi8(hits);
	return mask != 0 ? (size_t)__builtin_ctz(mask) : SCAN_WIDTH;
}

static inline __m128i scan_special16(const char *p)
{
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
	__m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);
	__m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
	__m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
	return _mm_or_si128(control, _mm_or_si128(quote, slash));
}

static inline size_t scan_block_special(const char *p)
{
	return scan_first16(scan_special16(p));
}

/* The same over two blocks. */
static inline size_t scan_blocks_special(const char *p)
{
	uint32_t low = (uint32_t)_mm_movemask_epi8(scan_special16(p));
	uint32_t high = (uint32_t)_mm_movemask_epi8(scan_special16(p + SCAN_WIDTH));
	uint32_t mask = low | high << SCAN_WIDTH;
	return mask != 0 ? (size_t)__builtin_ctz(mask) : 2 * SCAN_WIDTH;
}

#else

#define SCAN_ONES UINT64_C(0x0101010101010101)
#define SCAN_HIGH UINT64_C(0x8080808080808080)

static inline uint64_t scan_load8(const char *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v;
}

/*
 * The high bit of each byte below `limit` (at most 0x80). A borrow can mark a
 * byte after a true hit by mistake, never one before: the first is right.
 */
static inline uint64_t scan_below(uint64_t v, uint64_t limit)
{
	return (v - SCAN_ONES * limit) & ~v & SCAN_HIGH;
}

static inline uint64_t scan_equal(uint64_t v, char c)
{
	return scan_below(v ^ (SCAN_ONES * (unsigned char)c), 1);
}

static inline size_t scan_first8(uint64_t hits)
{
	return hits != 0 ? (size_t)__builtin_ctzll(hits) / 8 : SCAN_WIDTH;
}

static inline size_t scan_block_special(const char *p)
{
	uint64_t v = scan_load8(p);
	return scan_first8(scan_below(v, 0x20) | scan_equal(v, '"') | scan_equal(v, '\\'));
}

static inline size_t scan_blocks_special(const char *p)
{
	size_t at = scan_block_special(p);
	return at < SCAN_WIDTH ? at : SCAN_WIDTH + scan_block_special(p + SCAN_WIDTH);
}

#endif

/* Whether there is a byte below 0x20. */
static inline bool scan_has_control(const char *p, const char *end)
{
#ifdef __SSE2__
	const __m128i last = _mm_set1_epi8(0x1f);
	for (; (size_t)(end - p) >= SCAN_WIDTH; p += SCAN_WIDTH) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		if (_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(v, last), v)) != 0)
			return true;
	}
#endif
	for (; p < end; p++) {
		if ((unsigned char)*p < 0x20)
			return true;
	}
	return false;
}

static inline const char *scan_special(const char *p, const char *end)
{
	while ((size_t)(end - p) >= SCAN_WIDTH) {
		size_t at = scan_block_special(p);
		p += at;
		if (at < SCAN_WIDTH)
			return p;
	}
	while (p < end && !scan_is_special(*p))
		p++;
	return p;
}

/* What SCAN_MASKED bytes hold, a bit for each: the least one is the first. */
#define SCAN_MASKED 64u

typedef struct scan_masks {
	uint64_t quotes;
	uint64_t slashes;
	uint64_t opens; /* brackets and braces */
	uint64_t closes;
} scan_masks;

static inline scan_masks scan_masks_of(const char *p)
{
	scan_masks m = {0, 0, 0, 0};
#ifdef __SSE2__
	for (unsigned i = 0; i < SCAN_MASKED; i += SCAN_WIDTH) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
		__m128i folded = _mm_or_si128(v, _mm_set1_epi8(0x20));
		__m128i open = _mm_cmpeq_epi8(folded, _mm_set1_epi8('{'));
		__m128i shut = _mm_cmpeq_epi8(folded, _mm_set1_epi8('}'));
		__m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
		__m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
		m.quotes |= (uint64_t)(unsigned)_mm_movemask_epi8(quote) << i;
		m.slashes |= (uint64_t)(unsigned)_mm_movemask_epi8(slash) << i;
		m.opens |= (uint64_t)(unsigned)_mm_movemask_epi8(open) << i;
		m.closes |= (uint64_t)(unsigned)_mm_movemask_epi8(shut) << i;
	}
#else
	for (unsigned i = 0; i < SCAN_MASKED; i++) {
		uint64_t bit = UINT64_C(1) << i;
		m.quotes |= p[i] == '"' ? bit : 0;
		m.slashes |= p[i] == '\\' ? bit : 0;
		m.opens |= (p[i] | 0x20) == '{' ? bit : 0;
		m.closes |= (p[i] | 0x20) == '}' ? bit : 0;
	}
#endif
	return m;
}

/* Each bit becomes the parity of those up to it: from quote to quote all are set. */
static inline uint64_t scan_parity(uint64_t bits)
{
	for (unsigned by = 1; by < 64; by *= 2)
		bits ^= bits << by;
	return bits;
}

#endif
