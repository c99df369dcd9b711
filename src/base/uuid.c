/*
 * UUIDv7 by RFC 9562, method 1: milliseconds and a 12-bit counter form one
 * ascending number of 60 bits, the other 62 bits are random.
 *
 * Never blocks, so that a child of fork() cannot hang on a lock its parent's
 * other thread held: the number is one atomic, and a caller that finds the
 * pool of randomness taken asks the system for its few bytes.
 */
#include "uuid.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "err.h"
#include "io.h"

#define POOL_BYTES 4096u
#define DRAW_BYTES 10u /* 62 bits and the counter's start */
#define MS_MAX ((INT64_C(1) << 48) - 1)
#define COUNTER_START_MASK 0x7ffu /* half of the counter is left for ids of the same millisecond */

static _Atomic uint64_t last; /* milliseconds << 12 | counter of the newest id */

static struct {
	atomic_flag taken;
	pid_t pid;
	size_t left;
	unsigned char bytes[POOL_BYTES];
} pool = {.taken = ATOMIC_FLAG_INIT};

/* Bytes are wiped as they are handed out, and all dropped in a child: no two ids share them. */
static int pool_draw(unsigned char out[DRAW_BYTES])
{
	pid_t pid = getpid();
	if (pool.pid != pid)
		pool.left = 0;
	if (pool.left < DRAW_BYTES) {
		pool.left = 0;
		if (io_random(pool.bytes, POOL_BYTES) != 0)
			return -1;
		pool.pid = pid;
		pool.left = POOL_BYTES;
	}
	pool.left -= DRAW_BYTES;
	memcpy(out, pool.bytes + pool.left, DRAW_BYTES);
	memset(pool.bytes + pool.left, 0, DRAW_BYTES);
	return 0;
}

static int draw(unsigned char out[DRAW_BYTES])
{
	if (atomic_flag_test_and_set_explicit(&pool.taken, memory_order_acquire))
		return io_random(out, DRAW_BYTES);
	int rc = pool_draw(out);
	atomic_flag_clear_explicit(&pool.taken, memory_order_release);
	return rc;
}

/* The next number: the clock's if it has moved on, else one more than the last. */
static uint64_t next_number(uint64_t counter_start)
{
	int64_t ms = clock_now_us() / 1000;
	if (ms < 0)
		ms = 0;
	if (ms > MS_MAX)
		ms = MS_MAX;
	uint64_t by_clock = (uint64_t)ms << 12 | counter_start;
	uint64_t before = atomic_load_explicit(&last, memory_order_relaxed), next;
	do {
		/* Whole milliseconds are compared: within one the counter goes up by one. */
		next = by_clock >> 12 > before >> 12 ? by_clock : before + 1;
	} while (!atomic_compare_exchange_weak_explicit(&last, &before, next, memory_order_relaxed,
	                                                memory_order_relaxed));
	return next;
}

static void put_hex(char *out, const unsigned char *bytes, size_t count)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < count; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
}

int uuid7_new(char out[UUID_TEXT + 1], sheaf_error *err)
{
	unsigned char drawn[DRAW_BYTES], id[16];
	if (draw(drawn) != 0)
		return err_sys(err, SHEAF_STORAGE, errno, "no randomness for an id");

	uint64_t start = ((uint64_t)drawn[8] << 8 | drawn[9]) & COUNTER_START_MASK;
	uint64_t number = next_number(start);
	for (int i = 0; i < 6; i++)
		id[i] = (unsigned char)(number >> (52 - 8 * i));
	id[6] = (unsigned char)(0x70 | ((number >> 8) & 0x0f));
	id[7] = (unsigned char)number;
	memcpy(id + 8, drawn, 8);
	id[8] = (unsigned char)(0x80 | (id[8] & 0x3f));

	put_hex(out, id, 4);
	put_hex(out + 9, id + 4, 2);
	put_hex(out + 14, id + 6, 2);
	put_hex(out + 19, id + 8, 2);
	put_hex(out + 24, id + 10, 6);
	out[8] = out[13] = out[18] = out[23] = '-';
	out[UUID_TEXT] = '\0';
	return 0;
}

bool uuid7_is(sheaf_str s)
{
	if (s.len != UUID_TEXT)
		return false;
	for (size_t i = 0; i < UUID_TEXT; i++) {
		char c = s.ptr[i];
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
		if (dash ? c != '-' : !digit)
			return false;
	}
	char variant = s.ptr[19];
	return s.ptr[14] == '7' &&
	       (variant == '8' || variant == '9' || variant == 'a' || variant == 'b');
}
