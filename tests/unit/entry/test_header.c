/* Headers: the first line, ours and foreign, whole and damaged. */
#include "entry_test.h"

#include "entry/header.h"

#define TIME "2026-11-14T10:00:00.000001Z"

typedef struct got {
	arena *a;
	json_doc *doc;
	header h;
} got;

static int try(got *g, sheaf_str line)
{
	*g = (got){arena_new(), NULL, {0}};
	sheaf_error err = {0};
	int rc = header_read(&g->h, line, g->a, &g->doc, &err);
	assert_int_equal(rc, err.code);
	return rc;
}

static void done(got *g)
{
	json_free(g->doc);
	arena_free(g->a);
}

static void check_line(const header *h, const char *want)
{
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	header_write(&b, h);
	assert_int_equal(b.status, 0);
	assert_str(str_make(b.ptr, b.len - 19), sheaf_str_of(want));
	sheaf_str line = str_make(b.ptr, b.len - 1);
	assert_true(record_crc_ok(line));
	assert_int_equal(b.ptr[b.len - 1], '\n');
	assert_code(0, json_check(line, JSON_OBJECT, NULL));
}

static header full(void)
{
	return (header){
		.id = S("s\"1"),
		.app = S("app"),
		.user = S("me"),
		.timestamp = S(TIME),
		.kind = S("subagent"),
		.parent_session = S("par"),
		.cwd = S("/tmp"),
		.extra = S("\"x\":1,\"y\":{\"z\":[]}"),
		.source = S("src%2F"),
		.at = S("e9"),
		.at_seq = 9,
		.base = 12,
		.label_seq = 3,
		.hidden = true,
		.link_count = 2,
		.links = {{S("src%2F"), 12}, {S("older"), 7}},
	};
}

static void writes_the_fixed_order(void **state)
{
	(void)state;
	header h = {.id = S("s1"), .timestamp = S(TIME)};
	check_line(&h, "{\"type\":\"session\",\"format\":\"sheaf\",\"version\":1,\"id\":\"s1\","
	               "\"timestamp\":\"" TIME "\",\"app\":\"\",\"user\":\"\",\"kind\":\"main\"");
	h = full();
	check_line(&h, "{\"type\":\"session\",\"format\":\"sheaf\",\"version\":1,\"id\":\"s\\\"1\","
	               "\"timestamp\":\"" TIME
	               "\",\"app\":\"app\",\"user\":\"me\",\"kind\":\"subagent\","
	               "\"parent_session\":\"par\",\"fork\":{\"source\":\"src%2F\",\"at\":\"e9\","
	               "\"at_seq\":9,\"base\":12,\"label_seq\":3,\"links\":[[\"src%2F\",12],"
	               "[\"older\",7]]},\"hidden\":true,\"cwd\":\"/tmp\",\"x\":1,\"y\":{\"z\":[]}");
	/* A fork from before the first entry. */
	h = (header){.id = S("f"), .timestamp = S(TIME), .source = S("s"), .link_count = 1};
	h.links[0] = (header_link){S("s"), 0};
	check_line(&h, "{\"type\":\"session\",\"format\":\"sheaf\",\"version\":1,\"id\":\"f\","
	               "\"timestamp\":\"" TIME "\",\"app\":\"\",\"user\":\"\",\"kind\":\"main\","
	               "\"fork\":{\"source\":\"s\",\"at\":null,\"at_seq\":0,\"base\":0,"
	               "\"label_seq\":0,\"links\":[[\"s\",0]]}");
	/* Without a text the number is written; what is no text is left out. */
	h = (header){
		.id = S("\xff"), .app = S("a\nb"), .user = S("é"), .time_us = 1, .cwd = S("\xc3")};
	check_line(
		&h,
		"{\"type\":\"session\",\"format\":\"sheaf\",\"version\":1,"
		"\"timestamp\":\"1970-01-01T00:00:00.000001Z\",\"user\":\"é\",\"kind\":\"main\"");
}

static void reads_what_it_writes(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	header h = full();
	got g;
	header_write(&b, &h);
	assert_code(0, try(&g, str_make(b.ptr, b.len - 1)));
	assert_true(g.h.ours);
	assert_true(g.h.hidden);
	assert_int_equal(g.h.version, 1);
	assert_str(g.h.id, h.id);
	assert_str(g.h.app, h.app);
	assert_str(g.h.user, h.user);
	assert_str(g.h.timestamp, h.timestamp);
	assert_int_equal(g.h.time_us, INT64_C(1794650400000001));
	assert_str(g.h.kind, h.kind);
	assert_str(g.h.parent_session, h.parent_session);
	assert_str(g.h.cwd, h.cwd);
	assert_str(g.h.extra, h.extra);
	assert_str(g.h.source, h.source);
	assert_str(g.h.at, h.at);
	assert_int_equal(g.h.at_seq, 9);
	assert_int_equal(g.h.base, 12);
	assert_int_equal(g.h.label_seq, 3);
	assert_int_equal(g.h.link_count, 2);
	assert_str(g.h.links[1].session, S("older"));
	assert_int_equal(g.h.links[1].base, 7);
	_cleanup_(buf_free) buf again = BUF_INIT(1 << 20);
	header_write(&again, &g.h);
	assert_str(buf_view(&again), buf_view(&b));
	done(&g);
}

static void reads_foreign_headers(void **state)
{
	(void)state;
	got g;
	assert_code(
		0,
		try(&g, S("{\"type\":\"session\",\"id\":\"sess-123\",\"version\":1,\"timestamp\":"
	                  "\"2024-01-01T10:00:00Z\",\"cwd\":\"/path\",\"x\":2}")));
	assert_false(g.h.ours);
	assert_str(g.h.id, S("sess-123"));
	assert_int_equal(g.h.version, 1);
	assert_str(g.h.cwd, S("/path"));
	assert_str(g.h.kind, S("main"));
	assert_str(g.h.extra, S("\"x\":2"));
	assert_int_equal(g.h.time_us, INT64_C(1704103200000000));
	done(&g);
	assert_code(
		0,
		try(&g, S("{\"type\":\"session\",\"timestamp\":\"...\",\"fork\":1,\"hidden\":true,"
	                  "\"note\":\"\\\"format\\\":\\\"sheaf\\\"\"}")));
	assert_false(g.h.ours);
	assert_false(g.h.hidden);
	assert_str(g.h.source, NONE);
	assert_int_equal(g.h.time_us, 0);
	assert_str(g.h.id, NONE);
	done(&g);
}

static void other_first_lines_are_no_format(void **state)
{
	static const char *const lines[] = {"",
	                                    "x",
	                                    "[]",
	                                    "{}",
	                                    "{",
	                                    "null",
	                                    "{\"type\":\"message\"}",
	                                    "{\"type\":1}",
	                                    "{\"type\":\"session\"",
	                                    "{\"id\":\"s\"}"};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		got g;
		if (try(&g, sheaf_str_of(lines[i])) != SHEAF_FORMAT)
			fail_msg("accepted %s", lines[i]);
		done(&g);
	}
}

/* Whichever bit flips, our header is damaged, never foreign and never fine. */
static void every_flipped_bit_is_damage(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	header h = full();
	header_write(&b, &h);
	for (size_t bit = 0; bit < (b.len - 1) * 8; bit++) {
		got g;
		b.ptr[bit / 8] = (char)(b.ptr[bit / 8] ^ (1 << bit % 8));
		if (try(&g, str_make(b.ptr, b.len - 1)) != SHEAF_DAMAGED)
			fail_msg("bit %zu", bit);
		done(&g);
		b.ptr[bit / 8] = (char)(b.ptr[bit / 8] ^ (1 << bit % 8));
	}
	/* Cut short, too, as long as there is enough left to know it by. */
	for (size_t len = 40; len < b.len - 1; len++) {
		got g;
		assert_code(SHEAF_DAMAGED, try(&g, str_make(b.ptr, len)));
		done(&g);
	}
}

#define HEAD "{\"type\":\"session\",\"format\":\"sheaf\",\"version\":1,\"timestamp\":\"" TIME "\""
#define FORK(inside) HEAD ",\"fork\":{" inside "}"

static void shapes_that_are_damage(void **state)
{
	static const char *const bad[] = {
		"{\"type\":\"session\",\"version\":1,\"timestamp\":\"" TIME "\"",
		"{\"type\":\"message\",\"format\":\"sheaf\",\"version\":1,\"timestamp\":\"" TIME
		"\"",
		"{\"type\":\"message\",\"id\":\"m\"",
		"{\"type\":\"session\",\"format\":\"sheaf\",\"timestamp\":\"" TIME "\"",
		"{\"type\":\"session\",\"format\":\"sheaf\",\"version\":0,\"timestamp\":\"" TIME
		"\"",
		"{\"type\":\"session\",\"format\":\"sheaf\",\"version\":\"1\",\"timestamp\":\"" TIME
		"\"",
		"{\"type\":\"session\",\"format\":\"sheaf\",\"version\":1",
		"{\"type\":\"session\",\"format\":\"sheaf\",\"version\":1,\"timestamp\":\"now\"",
		HEAD ",\"fork\":1",
		HEAD ",\"fork\":null",
		FORK(""),
		FORK("\"source\":\"\",\"at\":\"e\",\"at_seq\":1,\"base\":1,\"label_seq\":0,\"links\":[[\"s\",1]]"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":1,\"base\":1,\"label_seq\":0,\"links\":[]"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":1,\"base\":1,\"label_seq\":0,\"links\":{}"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":1,\"base\":1,\"label_seq\":0,\"links\":[1]"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":1,\"base\":1,\"label_seq\":0,\"links\":[[\"s\"]]"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":1,\"base\":1,\"label_seq\":0,\"links\":[[1,1]]"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":1,\"base\":1,\"label_seq\":0,"
	             "\"links\":[[\"s\",\"1\"]]"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":1,\"base\":1,\"label_seq\":0,"
	             "\"links\":[[\"s\",1,2]]"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":1,\"base\":1,\"label_seq\":0,\"links\":[[\"s\",2]]"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":1,\"base\":1,\"label_seq\":0,"
	             "\"links\":[[\"s\",1],[\"t\",2]]"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":2,\"base\":1,\"label_seq\":0,\"links\":[[\"s\",1]]"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":1,\"base\":1,\"label_seq\":2,\"links\":[[\"s\",1]]"),
		FORK("\"source\":\"s\",\"at\":null,\"at_seq\":1,\"base\":1,\"label_seq\":0,\"links\":[[\"s\",1]]"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":0,\"base\":1,\"label_seq\":0,\"links\":[[\"s\",1]]"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"base\":1,\"label_seq\":0,\"links\":[[\"s\",1]]"),
	};
	static const char *const good[] = {
		HEAD,
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":1,\"base\":1,\"label_seq\":0,\"links\":[[\"s\",1]]"),
		FORK("\"source\":\"s\",\"at\":null,\"at_seq\":0,\"base\":0,\"label_seq\":0,\"links\":[[\"s\",0]]"),
		FORK("\"source\":\"s\",\"at\":\"e\",\"at_seq\":1,\"base\":2,\"label_seq\":1,"
	             "\"links\":[[\"s\",2],[\"t\",2]]"),
	};
	(void)state;
	got g;
	for (size_t i = 0; i < COUNT_OF(bad) + COUNT_OF(good); i++) {
		bool is_good = i >= COUNT_OF(bad);
		const char *text = is_good ? good[i - COUNT_OF(bad)] : bad[i];
		_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
		buf_add(&b, text, strlen(text));
		record_seal(&b, 0);
		if (try(&g, str_make(b.ptr, b.len - 1)) != (is_good ? 0 : SHEAF_DAMAGED))
			fail_msg("%s", text);
		done(&g);
	}
	assert_code(SHEAF_DAMAGED, try(&g, S(HEAD "}")));
	done(&g);
	assert_code(SHEAF_DAMAGED,
	            try(&g, S("{\"type\":\"session\",\"id\":\"s\",\"crc\":\"00000000\"}")));
	done(&g);
}

static void newer_versions_are_read(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	got g;
	buf_lit(&b, "{\"type\":\"session\",\"format\":\"sheaf\",\"version\":2,\"timestamp\":\"" TIME
	            "\"");
	record_seal(&b, 0);
	assert_code(0, try(&g, str_make(b.ptr, b.len - 1)));
	assert_int_equal(g.h.version, 2);
	assert_true(g.h.ours);
	done(&g);
}

static void link_limit(void **state)
{
	(void)state;
	for (size_t count = 64; count <= 65; count++) {
		_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
		got g;
		buf_lit(&b,
		        HEAD ",\"fork\":{\"source\":\"s\",\"at\":\"e\",\"at_seq\":1,\"base\":100,"
		             "\"label_seq\":0,\"links\":[");
		for (size_t i = 0; i < count; i++)
			buf_format(&b, "%s[\"s%zu\",%zu]", i != 0 ? "," : "", i, 100 - i);
		buf_lit(&b, "]}");
		record_seal(&b, 0);
		assert_code(count <= 64 ? 0 : SHEAF_DAMAGED, try(&g, str_make(b.ptr, b.len - 1)));
		if (count == 64)
			assert_int_equal(g.h.link_count, 64);
		done(&g);
	}
}

static void extra_members(void **state)
{
	static const char *const bad[] = {"",
	                                  "[]",
	                                  "{",
	                                  "{\"a\":1,\"a\":2}",
	                                  "{\"type\":1}",
	                                  "{\"format\":1}",
	                                  "{\"version\":1}",
	                                  "{\"id\":1}",
	                                  "{\"timestamp\":1}",
	                                  "{\"app\":1}",
	                                  "{\"user\":1}",
	                                  "{\"kind\":1}",
	                                  "{\"parent_session\":1}",
	                                  "{\"fork\":1}",
	                                  "{\"hidden\":1}",
	                                  "{\"cwd\":1}",
	                                  "{\"crc\":1}",
	                                  "{\"cr\\u0063\":1}",
	                                  "{\"seq\":1}",
	                                  "{\"batch\":1}",
	                                  "{\"a\":\n1}"};
	(void)state;
	sheaf_str members = NONE;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		if (header_extra(&members, sheaf_str_of(bad[i]), NULL) != SHEAF_INVALID)
			fail_msg("accepted %s", bad[i]);
	}
	assert_code(0, header_extra(&members, S(" { \"a\" : 1, \"name\":\"x\" } "), NULL));
	assert_str(members, S("\"a\" : 1, \"name\":\"x\""));
	assert_code(0, header_extra(&members, S("{}"), NULL));
	char *large = repeat(' ', SHEAF_BODY_BYTES_MAX + 1);
	large[0] = '{';
	large[1] = '}';
	assert_code(0, header_extra(&members, str_make(large, SHEAF_BODY_BYTES_MAX), NULL));
	assert_code(SHEAF_TOO_LARGE,
	            header_extra(&members, str_make(large, SHEAF_BODY_BYTES_MAX + 1), NULL));
	free(large);
	assert_int_equal(members.len, 0);
}

static int read_once(void)
{
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	header h = full(), back;
	header_write(&b, &h);
	if (b.status != 0)
		return b.status;
	arena *a = arena_new();
	json_doc *doc = NULL;
	int rc = a != NULL ? header_read(&back, str_make(b.ptr, b.len - 1), a, &doc, NULL)
	                   : SHEAF_NOMEM;
	json_free(doc);
	arena_free(a);
	return rc;
}

static void memory_runs_out(void **state)
{
	(void)state;
	each_allocation_fails(read_once);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_the_fixed_order),
		cmocka_unit_test(reads_what_it_writes),
		cmocka_unit_test(reads_foreign_headers),
		cmocka_unit_test(other_first_lines_are_no_format),
		cmocka_unit_test(every_flipped_bit_is_damage),
		cmocka_unit_test(shapes_that_are_damage),
		cmocka_unit_test(newer_versions_are_read),
		cmocka_unit_test(link_limit),
		cmocka_unit_test(extra_members),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
