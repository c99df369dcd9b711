/* Heads as bytes: there and back, corrupted, forged. */
#include "head_test.h"

static char *encoded(const sheaf_head *h, size_t *len)
{
	*len = sheaf_head_encode(h, NULL, 0);
	char *bytes = malloc(*len);
	assert_int_equal(sheaf_head_encode(h, bytes, *len), *len);
	return bytes;
}

static log rich_log(chance *c)
{
	header hd = {.id = S("f"),
	             .time_us = 7,
	             .source = S("src"),
	             .at = S("e9"),
	             .at_seq = 9,
	             .base = 12,
	             .label_seq = 4,
	             .cwd = S("/w"),
	             .parent_session = S("p"),
	             .link_count = 2,
	             .links = {{S("src"), 12}, {S("old"), 3}}};
	log l = log_begin(&hd);
	random_steps(&l, c, 60);
	return l;
}

static void bytes_round_trip(void **state)
{
	(void)state;
	chance c = {9};
	sheaf_head *back = sheaf_head_new();
	for (int i = 0; i < 50; i++) {
		log l = i % 2 ? rich_log(&c) : log_new();
		size_t len;
		char *bytes = encoded(l.applied, &len);
		assert_code(0, sheaf_head_decode(back, bytes, len, NULL));
		assert_true(same_head(back, l.applied));
		assert_null(head_state(back));
		char state_bytes[256];
		size_t state_len = sheaf_head_state_encode(l.applied, state_bytes, 256);
		assert_code(0, sheaf_head_state_decode(back, state_bytes, state_len, NULL));
		assert_true(same_state(back, l.applied));
		char *small = malloc(len);
		memset(small, 'x', len);
		assert_int_equal(sheaf_head_encode(l.applied, small, len - 1), len);
		assert_int_equal(small[0], 'x');
		free(small);
		free(bytes);
		/* A decoded head goes on like the one it came from. */
		sheaf_head *was = l.applied;
		l.applied = back;
		random_steps(&l, &c, 20);
		l.applied = was;
		log_free(&l);
	}
	sheaf_head_free(back);
}

static void corrupt_bytes_are_refused(void **state)
{
	(void)state;
	chance c = {10};
	log l = rich_log(&c);
	size_t len;
	char *bytes = encoded(l.applied, &len);
	sheaf_head *h = sheaf_head_new();
	assert_code(0, sheaf_head_copy(h, l.folded, NULL));
	for (size_t bit = 0; bit < len * 8; bit++) {
		bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
		assert_code(SHEAF_DAMAGED, sheaf_head_decode(h, bytes, len, NULL));
		bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
	}
	for (size_t n = 0; n < len; n++)
		assert_code(SHEAF_DAMAGED, sheaf_head_decode(h, bytes, n, NULL));
	assert_code(SHEAF_DAMAGED, sheaf_head_decode(h, NULL, 0, NULL));
	assert_true(same_head(h, l.folded));
	sheaf_head_free(h);
	free(bytes);
	log_free(&l);
}

/* Damage under a crc that holds: refused or read, and what is read can be used. */
static void forged_bytes_are_survived(void **state)
{
	(void)state;
	chance c = {11};
	log l = rich_log(&c);
	size_t len;
	char *good = encoded(l.applied, &len);
	for (int i = 0; i < 20000; i++) {
		size_t n = len;
		char *bytes = malloc(len + 8);
		memcpy(bytes, good, len);
		for (size_t k = chance_below(&c, 4); k != 0; k--) {
			size_t at = 16 + chance_below(&c, len - 20);
			bytes[at] = chance_below(&c, 2) ? (char)chance_next(&c)
			                                : (char)(bytes[at] + 1);
		}
		if (chance_below(&c, 3) == 0)
			n = 20 + chance_below(&c, len - 19);
		uint64_t total = n;
		memcpy(bytes + 8, &total, 8);
		uint32_t crc = crc32c(0, bytes, n - 4);
		memcpy(bytes + n - 4, &crc, 4);
		char *exact = malloc(n);
		memcpy(exact, bytes, n);
		sheaf_head *h = sheaf_head_new(), *copy = sheaf_head_new();
		int rc = sheaf_head_decode(h, exact, n, NULL);
		assert_true(rc == 0 || rc == SHEAF_DAMAGED);
		if (rc == 0) {
			sheaf_session_info info;
			sheaf_head_info(h, &info);
			assert_code(0, sheaf_head_copy(copy, h, NULL));
			assert_true(same_head(h, copy));
		}
		sheaf_head_free(h);
		sheaf_head_free(copy);
		free(exact);
		free(bytes);
	}
	for (int i = 0; i < 20000; i++) {
		char noise[200];
		size_t n = chance_below(&c, sizeof(noise));
		for (size_t k = 0; k < n; k++)
			noise[k] = (char)chance_next(&c);
		sheaf_head *h = sheaf_head_new();
		assert_code(SHEAF_DAMAGED, sheaf_head_decode(h, noise, n, NULL));
		sheaf_head_free(h);
	}
	free(good);
	log_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_round_trip),
		cmocka_unit_test(corrupt_bytes_are_refused),
		cmocka_unit_test(forged_bytes_are_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
