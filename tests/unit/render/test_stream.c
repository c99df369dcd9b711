/* Streams: cut anywhere, cut off anywhere, and not what they should be. */
#include "ingest_test.h"

/* What the reply to a stream must be stands beside it. */
static void says_what_it_should(const fixture *f)
{
	buf said = {0};
	size_t len;
	char *want = reply_file(f->name, "reply", &len);
	assert_int_equal(stream_says(&said, f->format, str_make(f->events, f->len), f->len, NULL),
	                 0);
	if (strcmp(said.ptr, want) != 0)
		fail_msg("%s says\n%sinstead of\n%s", f->name, said.ptr, want);
	free(want);
	buf_free(&said);
}

static void streams_say_what_they_should(void **state)
{
	(void)state;
	each_stream(says_what_it_should);
}

static void equals_its_body(const fixture *f)
{
	buf said = {0}, whole = {0};
	size_t len;
	char *body = reply_file(f->name, "json", &len);
	assert_int_equal(stream_says(&said, f->format, str_make(f->events, f->len), f->len, NULL),
	                 0);
	assert_int_equal(body_says(&whole, f->format, str_make(body, len)), 0);
	if (strcmp(said.ptr, whole.ptr) != 0)
		fail_msg("%s as a stream\n%sand whole\n%s", f->name, said.ptr, whole.ptr);
	/* A server that does not stream although it was asked to. */
	assert_int_equal(stream_says(&said, f->format, str_make(body, len), 7, NULL), 0);
	assert_string_equal(said.ptr, whole.ptr);
	free(body);
	buf_free(&said);
	buf_free(&whole);
}

static void streams_equal_bodies(void **state)
{
	(void)state;
	each_stream(equals_its_body);
}

static void same_in_pieces(const fixture *f)
{
	buf once = {0}, said = {0};
	chance c = {1};
	sheaf_str bytes = str_make(f->events, f->len);
	assert_int_equal(stream_says(&once, f->format, bytes, f->len, NULL), 0);
	for (size_t i = 0; i < 50; i++) {
		assert_int_equal(stream_says(&said, f->format, bytes, i < 4 ? i + 1 : 0, &c), 0);
		assert_string_equal(said.ptr, once.ptr);
	}
	buf_free(&once);
	buf_free(&said);
}

static void cut_anywhere(void **state)
{
	(void)state;
	each_stream(same_in_pieces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_say_what_they_should),
		cmocka_unit_test(streams_equal_bodies),
		cmocka_unit_test(cut_anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
