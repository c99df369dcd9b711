/* State: deltas on drafts, and what they add up to in heads. */
#include "head_test.h"

#define LONG (SHEAF_STATE_VALUE_BYTES_MAX)

static void state_is(const log *l, const char *want)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	state_text(l->applied, &b);
	assert_str(buf_view(&b), sheaf_str_of(want));
}

static void delta(log *l, const char *object)
{
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	o.state_delta = sheaf_str_of(object);
	assert_code(0, log_try(l, "thing", "{}", &o));
}

static void folds_in_log_order(void **state)
{
	(void)state;
	log l = log_new();
	assert_null(head_state(l.applied));
	delta(&l, "{\"b\":1,\"a\":{\"x\": [1, 2]}}");
	state_is(&l, "{\"a\":{\"x\": [1, 2]},\"b\":1}");
	delta(&l, "{\"b\":1e400,\"c\":\"\\u0000\"}");
	state_is(&l, "{\"a\":{\"x\": [1, 2]},\"b\":1e400,\"c\":\"\\u0000\"}");
	delta(&l, "{\"a\":null,\"zz\":null,\"c\":false}");
	state_is(&l, "{\"b\":1e400,\"c\":false}");
	delta(&l, "{\"b\":null,\"c\":null}");
	state_is(&l, "{}");
	assert_null(head_state(l.applied));
	assert_int_equal(head_state_seq(l.applied), 4);
	log_free(&l);
}

static void other_scopes_stay_out(void **state)
{
	(void)state;
	log l = log_new();
	delta(&l, "{\"user:a\":1,\"temp:b\":2,\"app:c\":3,\"d\":4,\"user\":5}");
	state_is(&l, "{\"d\":4,\"user\":5}");
	assert_int_equal(head_app_seq(l.applied), 1);
	delta(&l, "{\"user:a\":2}");
	assert_int_equal(head_app_seq(l.applied), 1);
	assert_int_equal(head_state_seq(l.applied), 1);
	delta(&l, "{\"app:a\":null}");
	assert_int_equal(head_app_seq(l.applied), 3);
	log_free(&l);
}

static void a_record_without_one_copies_nothing(void **state)
{
	(void)state;
	log l = log_new();
	delta(&l, "{\"a\":1}");
	const state_set *before = head_state(l.applied);
	sheaf_head *copy = sheaf_head_new();
	assert_code(0, sheaf_head_copy(copy, l.applied, NULL));
	assert_int_equal(sheaf_head_state_changed(copy, l.applied), 0);
	add(&l, "message", USER("\\\"state_delta\\\": {}"));
	add(&l, "thing", "{\"x\":{\"state_delta\":{\"b\":1}},\"y\":\"state_delta\"}");
	assert_ptr_equal(head_state(l.applied), before);
	assert_int_equal(sheaf_head_state_changed(copy, l.applied), 0);
	delta(&l, "{\"a\":1}");
	assert_int_equal(sheaf_head_state_changed(copy, l.applied), 1);
	sheaf_head_free(copy);
	log_free(&l);
}

static void state_beyond_the_limit_is_read(void **state)
{
	(void)state;
	log l = log_new();
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	/* 15 values of 64 KiB, and one that fills the mebibyte to its last byte. */
	size_t left = SHEAF_STATE_BYTES_MAX;
	for (char key = 'a'; left > 0; key++) {
		size_t len = left > LONG ? LONG : left - 1;
		buf_reset(&b);
		buf_format(&b, "{\"%c\":\"", key);
		for (size_t i = 2; i < len; i++)
			buf_char(&b, 'x');
		buf_lit(&b, "\"}");
		buf_nul(&b);
		delta(&l, b.ptr);
		left -= len + 1;
	}
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	o.state_delta = S("{\"z\":1}");
	/* Nobody could append this; a log that lost a deletion comes to it. */
	assert_code(0, log_try(&l, "thing", "{}", &o));
	o.state_delta = S("{\"a\":null,\"z\":1}");
	assert_code(0, log_try(&l, "thing", "{}", &o));
	log_free(&l);
}

/* ---- Drafts ------------------------------------------------------------------- */

static void body_is(const char *type, const char *body, const sheaf_entry_options *o,
                    const char *want, const char *temp)
{
	draft d;
	sheaf_error err = {0};
	if (draft_init(&d, sheaf_str_of(type), sheaf_str_of(body), false, o, &err) != 0)
		fail_msg("%s: %s", body, err.message);
	assert_str(buf_view(&d.body), sheaf_str_of(want));
	assert_str(buf_view(&d.temp), sheaf_str_of(temp));
	assert_str(draft_delta(&d), state_delta_of(buf_view(&d.body)));
	draft_free(&d);
}

static void temp_keys_are_stripped_on_every_way_in(void **state)
{
	(void)state;
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	body_is("thing", "{\"state_delta\":{\"a\": 1 , \"temp:b\":2},\"x\":3}", NULL,
	        "\"x\":3,\"state_delta\":{\"a\": 1}", "\"temp:b\":2");
	body_is("thing", "{\"state_delta\":{\"temp:b\":2},\"x\":3}", NULL, "\"x\":3",
	        "\"temp:b\":2");
	body_is("thing", "{\"state_delta\":{\"t\\u0065mp:b\":2}}", NULL, "", "\"t\\u0065mp:b\":2");
	body_is("thing", "{\"x\":3, \"state_delta\":{ }}", NULL, "\"x\":3", "");
	body_is("thing", "{\"x\":3, \"state_delta\":{ \"a\" : 1 }}", NULL,
	        "\"x\":3, \"state_delta\":{ \"a\" : 1 }", "");
	o.extra = S("{\"state_delta\":{\"temp:b\":2,\"a\":1},\"y\":4}");
	body_is("thing", "{\"x\":3}", &o, "\"x\":3,\"y\":4,\"state_delta\":{\"a\":1}",
	        "\"temp:b\":2");
	o = (sheaf_entry_options)SHEAF_ENTRY_OPTIONS_INIT;
	o.state_delta = S(" {\"temp:b\":2,\"a\":1} ");
	body_is("thing", "{\"x\":3}", &o, "\"x\":3,\"state_delta\":{\"a\":1}", "\"temp:b\":2");
	o.state_delta = S("{\"temp:b\":null}");
	body_is("thing", "{}", &o, "", "\"temp:b\":null");
}

static int try_delta(sheaf_str object)
{
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_error err = {0};
	draft d;
	o.state_delta = object;
	int rc = draft_init(&d, S("thing"), S("{}"), false, &o, &err);
	assert_int_equal(rc, err.code);
	if (rc == 0)
		draft_free(&d);
	return rc;
}

static void bad_deltas_are_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"[]",
	                                  "1",
	                                  "{\"\":1}",
	                                  "{\"app:\":1}",
	                                  "{\"user:\":1}",
	                                  "{\"temp:\":1}",
	                                  "{\"a\":1,\"a\":2}",
	                                  "{\"a\\n\":1}",
	                                  "{\"a\\u0000\":1}",
	                                  "{\"a\":}",
	                                  "x"};
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_code(SHEAF_INVALID, try_delta(sheaf_str_of(bad[i])));
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	draft d;
	o.state_delta = S("{\"a\":1}");
	assert_code(SHEAF_INVALID,
	            draft_init(&d, S("thing"), S("{\"state_delta\":{}}"), false, &o, NULL));
	o.extra = S("{\"state_delta\":{}}");
	assert_code(SHEAF_INVALID, draft_init(&d, S("thing"), S("{}"), false, &o, NULL));
	assert_code(SHEAF_INVALID,
	            draft_init(&d, S("thing"), S("{\"state\\u005fdelta\":{\"a\":1}}"), false, NULL,
	                       NULL));
	assert_code(SHEAF_INVALID,
	            draft_init(&d, S("thing"), S("{\"state_delta\":[]}"), false, NULL, NULL));
}

static void keys_and_values_have_limits(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	for (size_t over = 0; over < 2; over++) {
		buf_reset(&b);
		buf_lit(&b, "{\"user:");
		for (size_t i = 5; i < SHEAF_STATE_KEY_BYTES_MAX + over; i++)
			buf_char(&b, 'k');
		buf_lit(&b, "\":1}");
		assert_code(over ? SHEAF_LIMIT : 0, try_delta(buf_view(&b)));
		buf_reset(&b);
		buf_lit(&b, "{\"a\":\"");
		for (size_t i = 2; i < LONG + over; i++)
			buf_char(&b, 'v');
		buf_lit(&b, "\"}");
		assert_code(over ? SHEAF_LIMIT : 0, try_delta(buf_view(&b)));
		buf_reset(&b);
		buf_lit(&b, "{\"a\":");
		for (size_t i = 2; i < SHEAF_DEPTH_MAX + over; i++)
			buf_char(&b, '[');
		for (size_t i = 2; i < SHEAF_DEPTH_MAX + over; i++)
			buf_char(&b, ']');
		buf_lit(&b, "}");
		assert_code(over ? SHEAF_LIMIT : 0, try_delta(buf_view(&b)));
	}
}

static void changes_ride_on_drafts(void **state)
{
	(void)state;
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	buf before;
	draft d;
	assert_code(0, draft_init(&d, S("thing"), S("{\"x\":1}"), false, NULL, NULL));
	assert_code(0, draft_ride(&d, S("{\"a\":1,\"b\":null}"), &before, NULL));
	assert_str(buf_view(&d.body), S("\"x\":1,\"state_delta\":{\"a\":1,\"b\":null}"));
	assert_str(draft_delta(&d), S("{\"a\":1,\"b\":null}"));
	draft_unride(&d, &before);
	assert_str(buf_view(&d.body), S("\"x\":1"));
	assert_str(draft_delta(&d), NONE);
	draft_free(&d);
	/* What the record itself says goes before what rides. */
	o.state_delta = S("{\"b\":2}");
	assert_code(0, draft_init(&d, S("thing"), S("{\"x\":1}"), false, &o, NULL));
	assert_code(0, draft_ride(&d, S("{\"a\":1,\"\\u0062\":3}"), &before, NULL));
	assert_str(buf_view(&d.body), S("\"x\":1,\"state_delta\":{\"a\":1,\"b\":2}"));
	draft_unride(&d, &before);
	assert_str(draft_delta(&d), S("{\"b\":2}"));
	draft_free(&d);
}

/* ---- Bytes -------------------------------------------------------------------- */

static void bytes_round_trip(void **state)
{
	(void)state;
	log l = log_new();
	for (int step = 0; step < 2; step++) {
		char bytes[256];
		size_t len = sheaf_head_state_encode(l.applied, NULL, 0);
		assert_true(len <= sizeof(bytes));
		assert_int_equal(sheaf_head_state_encode(l.applied, bytes, sizeof(bytes)), len);
		sheaf_head *h = sheaf_head_new();
		assert_code(0, sheaf_head_state_decode(h, bytes, len, NULL));
		assert_true(same_state(h, l.applied));
		for (size_t i = 0; i < len; i++) {
			assert_code(SHEAF_DAMAGED, sheaf_head_state_decode(h, bytes, i, NULL));
			bytes[i] ^= 1;
			assert_code(SHEAF_DAMAGED, sheaf_head_state_decode(h, bytes, len, NULL));
			bytes[i] ^= 1;
			assert_true(same_state(h, l.applied));
		}
		sheaf_head_free(h);
		delta(&l, "{\"a\":1,\"b\":[\"x\",null],\"c\":{}}");
	}
	log_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folds_in_log_order),
		cmocka_unit_test(other_scopes_stay_out),
		cmocka_unit_test(a_record_without_one_copies_nothing),
		cmocka_unit_test(state_beyond_the_limit_is_read),
		cmocka_unit_test(temp_keys_are_stripped_on_every_way_in),
		cmocka_unit_test(bad_deltas_are_refused),
		cmocka_unit_test(keys_and_values_have_limits),
		cmocka_unit_test(changes_ride_on_drafts),
		cmocka_unit_test(bytes_round_trip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
