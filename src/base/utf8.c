/* UTF-8 as RFC 3629 has it: checking, mending, cutting. */
#include "utf8.h"

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The first byte from `p` on that is not ASCII, or `end`. */
static const unsigned char *skip_ascii(const unsigned char *p, const unsigned char *end)
{
#ifdef __SSE2__
	while (end - p >= 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		unsigned mask = (unsigned)_mm_movemask_epi8(v);
		if (mask != 0)
			return p + __builtin_ctz(mask);
		p += 16;
	}
#endif
	while (end - p >= 8) {
		uint64_t v;
		memcpy(&v, p, 8);
		if ((v & UINT64_C(0x8080808080808080)) != 0)
			break;
		p += 8;
	}
	while (p < end && *p < 0x80)
		p++;
	return p;
}

static bool is_tail(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* How many bytes a lead byte announces; 0 for a byte that can start nothing. */
static size_t announced(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2)
		return 0;
	if (lead < 0xe0)
		return 2;
	if (lead < 0xf0)
		return 3;
	return lead < 0xf5 ? 4 : 0;
}

/* The second byte carries all of the exclusions: overlongs, surrogates, over U+10FFFF. */
static bool is_second(unsigned char lead, unsigned char c)
{
	switch (lead) {
	case 0xe0:
		return c >= 0xa0 && c <= 0xbf;
	case 0xed:
		return c >= 0x80 && c <= 0x9f;
	case 0xf0:
		return c >= 0x90 && c <= 0xbf;
	case 0xf4:
		return c >= 0x80 && c <= 0x8f;
	default:
		return is_tail(c);
	}
}

/*
 * The length of the sequence at `p`. If it is broken, `*good` becomes false and
 * the length is that of its maximal broken part, at least 1.
 */
static size_t sequence(const unsigned char *p, const unsigned char *end, bool *good)
{
	size_t need = announced(*p), have = (size_t)(end - p), n = 1;
	*good = false;
	if (need <= 1) {
		*good = need == 1;
		return 1;
	}
	if (have < 2 || !is_second(*p, p[1]))
		return 1;
	for (n = 2; n < need; n++) {
		if (n >= have || !is_tail(p[n]))
			return n;
	}
	*good = true;
	return need;
}

/*
 * The length of a good sequence of two or three bytes, or 0 to look closer: most
 * of the world's text in two comparisons. Three bytes must be there.
 */
static inline size_t common_sequence(const unsigned char *p)
{
	uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
	uint32_t edge = v & 0x0f2000; /* none set: overlong; 0x0d2000: a surrogate */
	if ((v & 0xf0c0c0) == 0xe08080 && edge != 0 && edge != 0x0d2000)
		return 3;
	if ((v & 0xe0c000) == 0xc08000 && (v & 0x1e0000) != 0)
		return 2;
	return 0;
}

/* From `p` on the first broken byte, or `end`. */
static const unsigned char *skip_valid(const unsigned char *p, const unsigned char *end)
{
	for (;;) {
		p = skip_ascii(p, end);
		/* Text in other scripts comes in runs; ASCII is looked for again after one. */
		while (p < end && *p >= 0x80) {
			bool good = true;
			size_t n = end - p >= 3 ? common_sequence(p) : 0;
			if (n == 0)
				n = sequence(p, end, &good);
			if (!good)
				return p;
			p += n;
		}
		if (p == end)
			return p;
	}
}

bool utf8_valid(sheaf_str s)
{
	if (s.len == 0)
		return true;
	const unsigned char *p = (const unsigned char *)s.ptr, *end = p + s.len;
	return skip_valid(p, end) == end;
}

size_t utf8_mend(buf *out, sheaf_str s)
{
	if (s.len == 0)
		return 0;
	const unsigned char *p = (const unsigned char *)s.ptr, *end = p + s.len;
	size_t mended = 0;
	for (;;) {
		const unsigned char *broken = skip_valid(p, end);
		buf_add(out, p, (size_t)(broken - p));
		if (broken == end)
			return mended;
		bool good;
		p = broken + sequence(broken, end, &good);
		buf_lit(out, "\xef\xbf\xbd");
		mended++;
	}
}

sheaf_str utf8_cut(sheaf_str s, size_t max)
{
	if (s.len <= max)
		return s;
	const unsigned char *p = (const unsigned char *)s.ptr;
	/* Only a whole code point that crosses the edge moves it; broken bytes are cut anywhere. */
	for (size_t back = 1; back <= 3 && back <= max && is_tail(p[max - back + 1]); back++) {
		size_t lead = max - back;
		if (!is_tail(p[lead]))
			return (sheaf_str){s.ptr, announced(p[lead]) > back ? lead : max};
	}
	return (sheaf_str){s.ptr, max};
}
