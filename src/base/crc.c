/* CRC-32C: the processor's instruction in three lanes, or tables of eight bytes a step. */
#include "crc.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_CRC_INSTRUCTION 1
#endif

static uint32_t tables[8][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void tables_make(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t v = i;
		for (int bit = 0; bit < 8; bit++)
			v = (v >> 1) ^ (UINT32_C(0x82f63b78) & (0u - (v & 1)));
		tables[0][i] = v;
	}
	for (uint32_t i = 0; i < 256; i++) {
		for (int t = 1; t < 8; t++) {
			uint32_t before = tables[t - 1][i];
			tables[t][i] = (before >> 8) ^ tables[0][before & 0xff];
		}
	}
}

/* `crc` is the inverted state, as in the functions below. */
static uint32_t by_tables(uint32_t crc, const unsigned char *p, size_t len)
{
	(void)pthread_once(&tables_once, tables_make);
	for (; len >= 8; p += 8, len -= 8) {
		uint32_t a = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
		                    (uint32_t)p[3] << 24);
		crc = tables[7][a & 0xff] ^ tables[6][(a >> 8) & 0xff] ^
		      tables[5][(a >> 16) & 0xff] ^ tables[4][a >> 24] ^ tables[3][p[4]] ^
		      tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
	}
	for (; len != 0; len--)
		crc = (crc >> 8) ^ tables[0][(crc ^ *p++) & 0xff];
	return crc;
}

#ifdef HAVE_CRC_INSTRUCTION

/*
 * The instruction takes three cycles but a new one can start every cycle, so
 * three lanes run side by side and are joined by multiplying the first two
 * with x^(8 * bytes after the lane - 33) modulo the polynomial: 33 because the
 * product is one bit short of 64 and the reducing instruction adds 32.
 */
#define LANE_LONG 4096u
#define LANE_SHORT 256u
#define SHIFT_8192 0x54a86326
#define SHIFT_4096 0x82f89c77
#define SHIFT_512 0xdd7e3b0c
#define SHIFT_256 0xb9e02b86

#define CRC_TARGET __attribute__((target("sse4.2,pclmul")))

CRC_TARGET static inline uint64_t step8(uint64_t crc, const unsigned char *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return _mm_crc32_u64(crc, v);
}

CRC_TARGET static inline __m128i shifted(uint64_t crc, long long shift)
{
	return _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi64_si128(shift), 0);
}

CRC_TARGET static inline uint64_t three_lanes(uint64_t crc, const unsigned char *p, size_t lane,
                                              long long shift_two, long long shift_one)
{
	uint64_t a = crc, b = 0, c = 0;
	for (size_t i = 0; i < lane; i += 8) {
		a = step8(a, p + i);
		b = step8(b, p + lane + i);
		c = step8(c, p + 2 * lane + i);
	}
	__m128i joined = _mm_xor_si128(shifted(a, shift_two), shifted(b, shift_one));
	return c ^ _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(joined));
}

CRC_TARGET static uint32_t by_instruction(uint32_t start, const unsigned char *p, size_t len)
{
	uint64_t crc = start;
	for (; len >= 3 * LANE_LONG; p += 3 * LANE_LONG, len -= 3 * LANE_LONG)
		crc = three_lanes(crc, p, LANE_LONG, SHIFT_8192, SHIFT_4096);
	for (; len >= 3 * LANE_SHORT; p += 3 * LANE_SHORT, len -= 3 * LANE_SHORT)
		crc = three_lanes(crc, p, LANE_SHORT, SHIFT_512, SHIFT_256);
	for (; len >= 8; p += 8, len -= 8)
		crc = step8(crc, p);
	uint32_t small = (uint32_t)crc;
	for (; len != 0; len--)
		small = _mm_crc32_u8(small, *p++);
	return small;
}

#endif

uint32_t crc32c(uint32_t crc, const void *ptr, size_t len)
{
#ifdef HAVE_CRC_INSTRUCTION
	if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
		return ~by_instruction(~crc, ptr, len);
#endif
	return ~by_tables(~crc, ptr, len);
}
