/* Keys: an injective spelling, both ways, and its limit. */
#include "entry_test.h"

#include "base/uuid.h"
#include "entry/key.h"

static void check_encoding(sheaf_str plain, const char *encoded)
{
	char out[SHEAF_KEY_PART_ROOM], back[SHEAF_KEY_PART_ROOM];
	size_t len;
	assert_code(0, sheaf_key_encode(out, plain, NULL));
	assert_string_equal(out, encoded);
	assert_code(0, sheaf_key_decode(back, &len, sheaf_str_of(out), NULL));
	assert_str(str_make(back, len), plain.ptr != NULL ? plain : S(""));
}

static void encodes(void **state)
{
	(void)state;
	check_encoding(S("abcXYZ019._-"), "abcXYZ019._-");
	check_encoding(S(""), "%");
	check_encoding(NONE, "%");
	check_encoding(S("."), "%2E");
	check_encoding(S(".."), "%2E.");
	check_encoding(S(".hidden"), "%2Ehidden");
	check_encoding(S("a.jsonl"), "a%2Ejsonl");
	check_encoding(S(".jsonl"), "%2Ejsonl");
	check_encoding(S("a.jsonl.b"), "a.jsonl.b");
	check_encoding(S("a.JSONL"), "a.JSONL");
	check_encoding(S("jsonl"), "jsonl");
	check_encoding(S("%"), "%25");
	check_encoding(S("a/b"), "a%2Fb");
	check_encoding(S("a b{}"), "a%20b%7B%7D");
	check_encoding(S("é"), "%C3%A9");
	check_encoding(S("a\0b"), "a%00b");
	check_encoding(S("\xff"), "%FF");
	check_encoding(S("a\nb"), "a%0Ab");
}

static void refuses_what_is_never_written(void **state)
{
	static const char *const bad[] = {
		"",        "%2",        "%2e", "%c3%a9", "a%",        "a%%", "%%",  "%41", "a%5F",
		"%2D",     "a%2Eb",     ".a",  ".",      "a/b",       "a b", "é",   "%G0", "%0G",
		"a.jsonl", "%2E.jsonl", "% ",  "%\n",    "a%2ejsonl", "~",   "a+b",
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		char out[SHEAF_KEY_PART_ROOM];
		size_t len;
		sheaf_error err;
		if (sheaf_key_decode(out, &len, sheaf_str_of(bad[i]), &err) != SHEAF_INVALID)
			fail_msg("accepted %s", bad[i]);
		assert_int_equal(err.code, SHEAF_INVALID);
	}
}

static void stands_on_both_sides_of_the_limit(void **state)
{
	(void)state;
	char out[SHEAF_KEY_PART_ROOM], back[SHEAF_KEY_PART_ROOM];
	size_t len;
	char *plain = repeat('a', 201), *odd = repeat('/', 67);
	assert_code(0, sheaf_key_encode(out, str_make(plain, 200), NULL));
	assert_int_equal(strlen(out), 200);
	assert_code(0, sheaf_key_decode(back, &len, sheaf_str_of(out), NULL));
	assert_code(SHEAF_LIMIT, sheaf_key_encode(out, str_make(plain, 201), NULL));
	assert_code(SHEAF_INVALID, sheaf_key_decode(back, &len, str_make(plain, 201), NULL));
	/* 66 escapes are 198 bytes, two plain bytes more are 200, a third is too much. */
	memcpy(plain, odd, 66);
	assert_code(0, sheaf_key_encode(out, str_make(plain, 68), NULL));
	assert_int_equal(strlen(out), 200);
	assert_code(SHEAF_LIMIT, sheaf_key_encode(out, str_make(plain, 69), NULL));
	assert_code(SHEAF_LIMIT, sheaf_key_encode(out, str_make(odd, 67), NULL));
	free(plain);
	free(odd);
}

static void round_trips_any_bytes(void **state)
{
	(void)state;
	chance c = {1};
	for (int i = 0; i < 20000; i++) {
		char plain[64], out[SHEAF_KEY_PART_ROOM], back[SHEAF_KEY_PART_ROOM];
		size_t len = chance_below(&c, sizeof(plain)), back_len;
		for (size_t k = 0; k < len; k++)
			plain[k] = (char)(chance_below(&c, 3) ? ".jsonl%/aA0"[chance_below(&c, 11)]
			                                      : (char)chance_next(&c));
		assert_code(0, sheaf_key_encode(out, str_make(plain, len), NULL));
		for (char *p = out; *p != '\0'; p++)
			assert_non_null(
				strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			               "0123456789._-%",
			               *p));
		assert_code(0, sheaf_key_decode(back, &back_len, sheaf_str_of(out), NULL));
		assert_str(str_make(back, back_len), str_make(plain, len));
	}
}

/* Whatever decodes is the encoding of what it decodes to: no two spellings for one key. */
static void decodes_only_the_canonical_form(void **state)
{
	(void)state;
	chance c = {2};
	for (int i = 0; i < 50000; i++) {
		char text[12], out[SHEAF_KEY_PART_ROOM], again[SHEAF_KEY_PART_ROOM];
		size_t len = 1 + chance_below(&c, sizeof(text) - 1), out_len;
		for (size_t k = 0; k < len; k++)
			text[k] = "%%2E5Fa.jsonl/"[chance_below(&c, 14)];
		if (sheaf_key_decode(out, &out_len, str_make(text, len), NULL) != 0)
			continue;
		assert_code(0, sheaf_key_encode(again, str_make(out, out_len), NULL));
		assert_str(sheaf_str_of(again), str_make(text, len));
	}
}

static void boxes_hold_all_parts(void **state)
{
	(void)state;
	key_box box, back;
	sheaf_key key = {S("my app"), NONE, S("s/1")};
	assert_code(0, key_box_init(&box, &key, NULL));
	assert_str(box.store.app, S("my%20app"));
	assert_str(box.store.user, S("%"));
	assert_str(box.store.session, S("s%2F1"));
	assert_str(box.store.owner, S("my%20app/%"));
	assert_str(box.plain.app, S("my app"));
	assert_str(box.plain.user, S(""));
	assert_str(box.plain.session, S("s/1"));
	assert_string_equal(box.owner, "my%20app/%");
	assert_code(0,
	            key_box_decode(&back, box.store.app, box.store.user, box.store.session, NULL));
	assert_str(back.plain.app, S("my app"));
	assert_str(back.plain.session, S("s/1"));
	assert_str(back.store.owner, S("my%20app/%"));
	assert_str(back.store.session, S("s%2F1"));
}

static void boxes_refuse(void **state)
{
	(void)state;
	key_box box;
	sheaf_key key = sheaf_key_of("");
	char *long_part = repeat('x', 201);
	assert_code(SHEAF_INVALID, key_box_init(&box, &key, NULL));
	key = sheaf_key_of(NULL);
	assert_code(SHEAF_INVALID, key_box_init(&box, &key, NULL));
	assert_code(SHEAF_INVALID, key_box_init(&box, NULL, NULL));
	key = sheaf_key_of(long_part);
	assert_code(SHEAF_LIMIT, key_box_init(&box, &key, NULL));
	long_part[200] = '\0';
	key = (sheaf_key){sheaf_str_of(long_part), sheaf_str_of(long_part),
	                  sheaf_str_of(long_part)};
	assert_code(0, key_box_init(&box, &key, NULL));
	assert_int_equal(box.store.owner.len, 401);
	assert_int_equal(strlen(box.owner), 401);
	assert_code(SHEAF_INVALID, key_box_decode(&box, S("a"), S("a"), S("%"), NULL));
	assert_code(SHEAF_INVALID, key_box_decode(&box, S("a"), S("a"), S(".a"), NULL));
	assert_code(SHEAF_INVALID, key_box_decode(&box, S("/"), S("a"), S("a"), NULL));
	assert_code(SHEAF_INVALID, key_box_decode(&box, S("a"), S(""), S("a"), NULL));
	free(long_part);
}

static void ids_are_new_and_ascend(void **state)
{
	(void)state;
	char before[SHEAF_ID_ROOM] = "", id[SHEAF_ID_ROOM];
	for (int i = 0; i < 10000; i++) {
		assert_code(0, sheaf_id_new(id, NULL));
		assert_true(uuid7_is(sheaf_str_of(id)));
		assert_true(strcmp(before, id) < 0);
		memcpy(before, id, sizeof(id));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(encodes),
		cmocka_unit_test(refuses_what_is_never_written),
		cmocka_unit_test(stands_on_both_sides_of_the_limit),
		cmocka_unit_test(round_trips_any_bytes),
		cmocka_unit_test(decodes_only_the_canonical_form),
		cmocka_unit_test(boxes_hold_all_parts),
		cmocka_unit_test(boxes_refuse),
		cmocka_unit_test(ids_are_new_and_ascend),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
