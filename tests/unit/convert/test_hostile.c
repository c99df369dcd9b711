/*
 * Files that want to do harm, or are harmed: whatever they hold, importing them
 * ends, says what is wrong with file and line, and gives back every byte.
 */
#include <errno.h>
#include <sys/stat.h>
#include <zstd.h>

#include "unit/convert/convert_kit.h"

#define PI_HEAD(id)                                                                                \
	"{\"type\":\"session\",\"version\":3,\"id\":\"" id                                         \
	"\",\"timestamp\":\"2026-11-14T22:58:25.886Z\",\"cwd\":\"/p\"}\n"
#define PI(id, parent, more)                                                                       \
	"{\"type\":\"message\",\"id\":\"" id "\",\"parentId\":" parent more                        \
	",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n"

static char path[256];

static void make(kit *k, const char *name, const void *text, size_t len)
{
	(void)snprintf(path, sizeof(path), "%s/%s", kit_dir(k), name);
	file_write(path, text, len);
}

static int import_as(kit *k, const char *format)
{
	sheaf_import_options how = SHEAF_IMPORT_OPTIONS_INIT;
	how.format = sheaf_str_of(format);
	int rc = kit_try(k, path, &how);
	if (rc != 0)
		print_error("%s as %s: %s\n", path, format, k->err.message);
	return rc;
}

/* Everything is said of the file at hand. */
static void problems_named(kit *k)
{
	for (size_t i = 0; i < k->report->problem_count; i++)
		assert_str(k->report->problems[i]->file, path);
}

/* Imports a text as the format it is told, and what came of it is the text. */
static void take(kit *k, const char *format, const char *name, sheaf_str text)
{
	kit_open(k);
	make(k, name, text.ptr, text.len);
	assert_int_equal(import_as(k, format), 0);
	problems_named(k);
	if (k->report->session_count == 1 && !k->report->sessions[0]->partial) {
		sheaf_session *s = kit_imported(k, 0);
		kit_same(k, s, format, path);
		sheaf_session_close(s);
	}
}

/* ---- What a file may hold ------------------------------------------------- */

/* Brackets in brackets, alone and where a value should be. */
static void test_deep(void **state)
{
	(void)state;
	const sheaf_converter *c;
	enum {
		DEPTH = 100000
	};
	_cleanup_(buf_free) buf deep = BUF_INIT(KIT_BYTES_MAX), text = BUF_INIT(KIT_BYTES_MAX);
	for (size_t i = 0; i < DEPTH; i++)
		buf_str(&deep, i % 2 == 0 ? SHEAF_STR("[") : SHEAF_STR("{\"a\":"));
	for (size_t i = DEPTH; i-- > 0;)
		buf_char(&deep, i % 2 == 0 ? ']' : '}');
	for (size_t i = 0; (c = sheaf_converter_at(i)) != NULL; i++) {
		kit k;
		if (!c->imports)
			continue;
		take(&k, c->name, "x.jsonl", buf_view(&deep));
		kit_close(&k);
	}
	kit k;
	buf_lit(&text, PI_HEAD("s1") "{\"type\":\"message\",\"id\":\"a\",\"message\":");
	buf_str(&text, buf_view(&deep));
	buf_lit(&text, "}\n" PI("b", "null", ""));
	take(&k, "pi", "x.jsonl", buf_view(&text));
	assert_int_equal(k.report->problem_total, 1);
	assert_int_equal(k.report->problems[0]->line, 2);
	kit_close(&k);
	buf_reset(&text);
	buf_lit(&text, "{\"info\":{\"id\":\"ses_1\"},\"messages\":[");
	buf_str(&text, buf_view(&deep));
	buf_lit(&text, "]}");
	take(&k, "opencode", "x.json", buf_view(&text));
	assert_int_equal(k.report->problem_total, 1);
	assert_int_equal(k.report->problems[0]->line, 1);
	kit_close(&k);
}

/* Documents with a part that no record can hold. */
static void test_long(void **state)
{
	(void)state;
	static const struct {
		const char *format, *before, *after;
	} cases[] = {
		{"opencode",
	         "{\"info\":{\"id\":\"ses_1\"},\"messages\":[{\"info\":{\"id\":\"m\",\"role\":\"user\"},"
	         "\"parts\":[{\"type\":\"text\",\"text\":\"",
	         "\"}]}]}\n"},
		{"uimessage",
	         "[{\"id\":\"m\",\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"",
	         "\"}]}]\n"},
		{"chatgpt",
	         "[{\"id\":\"c\",\"mapping\":{\"a\":{\"id\":\"a\",\"parent\":null,\"message\":{\"id\":\"a\","
	         "\"author\":{\"role\":\"user\"},\"content\":{\"content_type\":\"text\",\"parts\":[\"",
	         "\"]}}}},\"current_node\":\"a\"}]\n"},
		{"gemini-cli",
	         "{\"sessionId\":\"s\",\"projectHash\":\"h\",\"startTime\":\"2026-01-01T00:00:00Z\","
	         "\"messages\":[{\"id\":\"a\",\"type\":\"user\",\"content\":\"",
	         "\"}]}\n"},
		{"dive",
	         "{\"line_type\":\"header\",\"data\":{\"id\":\"s\"}}\n{\"line_type\":\"event\",\"data\":\"",
	         "\"}\n"},
	};
	_cleanup_(buf_free) buf text = BUF_INIT(KIT_BYTES_MAX);
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		kit k;
		buf_reset(&text);
		buf_str(&text, sheaf_str_of(cases[i].before));
		assert_int_equal(buf_reserve(&text, 20 << 20), 0);
		memset(text.ptr + text.len, 'x', 20 << 20);
		text.len += 20 << 20;
		buf_str(&text, sheaf_str_of(cases[i].after));
		take(&k, cases[i].format, "x.json", buf_view(&text));
		assert_int_equal(k.report->session_count, 1);
		assert_true(k.report->problem_total >= 1);
		kit_close(&k);
	}
}

/* Who are their own ancestors, or say they are somebody else. */
static void test_cycles(void **state)
{
	(void)state;
	static const struct {
		const char *format, *text;
	} cases[] = {
		{"pi",
	         PI_HEAD("s1") PI("a", "\"b\"", "") PI("b", "\"a\"", "") PI("c", "\"c\"", "")},
		{"claude-code",
	         "{\"type\":\"user\",\"uuid\":\"a\",\"parentUuid\":\"b\",\"sessionId\":\"s\",\"message\":"
	         "{\"role\":\"user\",\"content\":\"x\"}}\n"
	         "{\"type\":\"user\",\"uuid\":\"b\",\"parentUuid\":\"a\",\"sessionId\":\"s\",\"message\":"
	         "{\"role\":\"user\",\"content\":\"x\"}}\n"
	         "{\"type\":\"user\",\"uuid\":\"c\",\"parentUuid\":\"c\",\"sessionId\":\"s\",\"message\":"
	         "{\"role\":\"user\",\"content\":\"x\"}}\n"},
		{"chatgpt",
	         "[{\"id\":\"c\",\"mapping\":{\"a\":{\"id\":\"a\",\"parent\":\"b\",\"message\":null},"
	         "\"b\":{\"id\":\"b\",\"parent\":\"a\",\"message\":null},\"c\":{\"id\":\"c\","
	         "\"parent\":\"c\",\"message\":null}},\"current_node\":\"a\"}]\n"},
		/* twice, and before their parent */
		{"chatgpt",
	         "[{\"id\":\"c\",\"mapping\":{\"a\":{\"parent\":\"b\",\"message\":null},\"a\":{"
	         "\"parent\":\"b\",\"message\":null},\"b\":{\"parent\":null,\"message\":null}}}]\n"},
		/* no conversation, but kept with its list */
		{"chatgpt", "[-1]\n"},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		kit k;
		take(&k, cases[i].format, "x.jsonl", sheaf_str_of(cases[i].text));
		assert_int_equal(k.report->session_count, 1);
		sheaf_session *s = kit_imported(&k, 0);
		sheaf_context *context;
		assert_int_equal(sheaf_session_context(&context, s, NULL, &k.err), 0);
		sheaf_context_free(context);
		sheaf_session_close(s);
		kit_close(&k);
	}
}

/* Times before and after all times, numbers that are none. */
static void test_numbers(void **state)
{
	(void)state;
	static const char *const values[] = {
		"-1",
		"0",
		"1e999",
		"-1e999",
		"9223372036854775807",
		"9223372036854775",
		"1e18",
		"18446744073709551616",
		"123456789012345678901234567890",
		"0.0000000000000001",
		"\"0000-00-00T00:00:00Z\"",
		"\"9999-12-31T23:59:60Z\"",
		"\"99999-01-01T00:00:00Z\"",
		"\"-0001-01-01T00:00:00Z\"",
		"\"2026-02-31T25:61:61+99:99\"",
		"null",
		"[]",
		"\"\"",
	};
	static const struct {
		const char *format, *before, *after;
	} cases[] = {
		{"pi",
	         PI_HEAD("s1") "{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"timestamp\":",
	         ",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n"},
		{"pi",
	         PI_HEAD("s1") "{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"message\":{"
	                       "\"role\":\"assistant\",\"content\":[],\"usage\":{\"input\":",
	         ",\"output\":18446744073709551615}}}\n"},
		{"opencode", "{\"info\":{\"id\":\"ses_1\",\"time\":{\"created\":",
	         "}},\"messages\":[{\"info\":{\"id\":\"m\",\"role\":\"user\"},\"parts\":[]}]}"},
		{"chatgpt", "[{\"id\":\"c\",\"create_time\":",
	         ",\"mapping\":{\"a\":{\"parent\":null,\"message\":{\"author\":{\"role\":\"user\"},"
	         "\"content\":{\"content_type\":\"text\",\"parts\":[\"x\"]}}}}}]"},
		{"claude-code",
	         "{\"type\":\"user\",\"uuid\":\"a\",\"parentUuid\":null,\"sessionId\":\"s\",\"timestamp\":",
	         ",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n"},
		{"codex",
	         "{\"timestamp\":\"2026-11-14T22:58:25.886Z\",\"type\":\"session_meta\",\"payload\":{"
	         "\"id\":\"01a1dc4f-9557-7792-a2b4-583aecbc89a6\",\"timestamp\":",
	         "}}\n"},
		{"gemini-cli", "{\"sessionId\":\"s\",\"projectHash\":\"h\",\"startTime\":",
	         ",\"kind\":\"main\"}\n{\"id\":\"a\",\"type\":\"user\",\"content\":\"x\"}\n"},
		{"dive",
	         "{\"line_type\":\"header\",\"data\":{\"id\":\"s\",\"created_at\":", "}}\n"},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		for (size_t v = 0; v < COUNT_OF(values); v++) {
			kit k;
			char text[1024];
			int len = snprintf(text, sizeof(text), "%s%s%s", cases[i].before, values[v],
			                   cases[i].after);
			take(&k, cases[i].format, "x.jsonl", str_make(text, (size_t)len));
			assert_int_equal(k.report->session_count, 1);
			kit_close(&k);
		}
	}
}

/* ---- Names ----------------------------------------------------------------- */

/* Ids that are no names of files, or of nothing; each a session of its own, the same every time. */
static void test_ids(void **state)
{
	(void)state;
	static const char *const ids[] = {
		"../../../../etc/passwd",
		"..",
		".",
		"/",
		"a/b",
		"a\\u0000b",
		"a\\u0000c",
		"a\\nb",
		"\\u001b[31m",
		"\\u202e",
		"%2e%2e",
		".jsonl",
		"CON",
		"~2",
	};
	_cleanup_(buf_free) buf text = BUF_INIT(KIT_BYTES_MAX);
	char url[128], was[SHEAF_ID_ROOM];
	kit k;
	memset(&k, 0, sizeof(k));
	(void)snprintf(url, sizeof(url), "jsonl:%s/store", kit_dir(&k));
	assert_int_equal(sheaf_open(&k.store, url, NULL, &k.err), 0);
	for (size_t i = 0; i < COUNT_OF(ids) + 2; i++) {
		buf_reset(&text);
		buf_lit(&text, "{\"type\":\"session\",\"version\":3,\"id\":\"");
		/* too long by far, and too long when it is spelled for a path */
		for (size_t n = 0; i >= COUNT_OF(ids) && n < (i == COUNT_OF(ids) ? 5000 : 30); n++)
			buf_str(&text,
			        i == COUNT_OF(ids) ? SHEAF_STR("y") : SHEAF_STR("\xe6\xbc\xa2"));
		if (i < COUNT_OF(ids))
			buf_str(&text, sheaf_str_of(ids[i]));
		buf_lit(&text, "\",\"cwd\":\"/p\"}\n" PI("a", "null", ""));
		make(&k, "x.jsonl", text.ptr, text.len);
		assert_int_equal(import_as(&k, "pi"), 0);
		assert_int_equal(k.report->session_count, 1);
		assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_NEW);
		str_copy_cut(was, sizeof(was), k.report->sessions[0]->key.session);
		sheaf_session *s = kit_imported(&k, 0);
		kit_same(&k, s, "pi", path);
		sheaf_session_close(s);
		make(&k, "y.jsonl", text.ptr, text.len);
		assert_int_equal(import_as(&k, "pi"), 0);
		assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
		assert_str(k.report->sessions[0]->key.session, was);
	}
	/* All of it lies in the store. */
	assert_int_equal(file_count(kit_dir(&k), ""), 5); /* with . and .. */
	kit_close(&k);
}

/* What a header cannot hold is left out of it, and said. */
static void test_header(void **state)
{
	(void)state;
	kit k;
	take(&k, "pi", "x.jsonl",
	     SHEAF_STR(
		     "{\"type\":\"session\",\"version\":3,\"id\":\"s1\",\"cwd\":\"/a\\u0001b\"}\n" PI(
			     "a", "null", "")));
	assert_int_equal(k.report->session_count, 1);
	assert_int_equal(k.report->problem_total, 1);
	assert_int_equal(k.report->problems[0]->line, 1);
	kit_close(&k);
	take(&k, "opencode", "x.json",
	     SHEAF_STR("{\"info\":{\"id\":\"ses_1\",\"parentID\":\"a\\u0001b\"},\"messages\":[]}"));
	assert_int_equal(k.report->session_count, 1);
	kit_close(&k);
}

/* Files whose names are no text, and of formats that take a session's id from them. */
static void test_file_names(void **state)
{
	(void)state;
	static const char *const names[] = {"a\nb.jsonl", "\x1b[31m.jsonl", "\xff\xfe.jsonl",
	                                    "\"\\.jsonl", " .jsonl",        ".jsonl",
	                                    "%s%n.jsonl"};
	char longest[256];
	memset(longest, 'n', sizeof(longest));
	memcpy(longest + 249, ".jsonl", 7);
	for (size_t i = 0; i <= COUNT_OF(names); i++) {
		static const char text[] =
			"{\"type\":\"user\",\"uuid\":\"a\",\"parentUuid\":null,\"sessionId\":\"s\","
			"\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n";
		kit k;
		take(&k, "claude-code", i < COUNT_OF(names) ? names[i] : longest, SHEAF_STR(text));
		assert_int_equal(k.report->session_count, 1);
		assert_int_equal(k.report->sessions[0]->kept, 0);
		assert_int_equal(import_as(&k, "claude-code"), 0);
		assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
		kit_close(&k);
	}
}

/* ---- What is no file ------------------------------------------------------- */

static void test_no_files(void **state)
{
	(void)state;
	kit k;
	char name[256], loop[256];
	kit_open(&k);
	(void)snprintf(name, sizeof(name), "%s/pipe", kit_dir(&k));
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(kit_try(&k, name, NULL), SHEAF_FORMAT);
	assert_int_equal(kit_try(&k, "/dev/zero", NULL), SHEAF_FORMAT);
	(void)snprintf(loop, sizeof(loop), "%s/loop", k.dir);
	assert_int_equal(symlink(loop, loop), 0);
	assert_int_equal(kit_try(&k, loop, NULL), SHEAF_NOT_FOUND);
	(void)snprintf(loop, sizeof(loop), "%s/up", k.dir);
	assert_int_equal(symlink(k.dir, loop), 0);
	make(&k, "x.jsonl", PI_HEAD("s1"), strlen(PI_HEAD("s1")));
	/* Formats that are asked for look at them, too. */
	for (size_t i = 0; i < 2; i++) {
		sheaf_import_options how = SHEAF_IMPORT_OPTIONS_INIT;
		how.format = i == 0 ? SHEAF_STR("opencode") : SHEAF_STR("codex");
		assert_int_equal(kit_try(&k, name, &how), SHEAF_FORMAT);
	}
	kit_import(&k, k.dir);
	assert_int_equal(k.report->session_count, 1);
	kit_close(&k);
}

/* Folders in folders, deeper than anybody looks; and one that may not be looked into. */
static void test_folders(void **state)
{
	(void)state;
	kit k;
	char name[1024];
	kit_open(&k);
	size_t len = (size_t)snprintf(name, sizeof(name), "%s", kit_dir(&k));
	for (size_t i = 0; i < 40; i++) {
		len += (size_t)snprintf(name + len, sizeof(name) - len, "/d");
		assert_int_equal(mkdir(name, 0700), 0);
	}
	make(&k, "d/x.jsonl", PI_HEAD("s1"), strlen(PI_HEAD("s1")));
	(void)snprintf(name, sizeof(name), "%s/closed", k.dir);
	assert_int_equal(mkdir(name, 0), 0);
	make(&k, "z.jsonl", PI_HEAD("s2"), strlen(PI_HEAD("s2")));
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(kit_try(&k, k.dir, NULL), 0);
	bool all = geteuid() == 0; /* nothing is closed to root */
	assert_int_equal(k.report->session_count, all ? 2 : 1);
	assert_int_equal(k.report->problem_total, all ? 1 : 3);
	kit_close(&k);
}

/* ---- What is compressed ----------------------------------------------------- */

static void *packed(const void *bytes, size_t len, size_t *out)
{
	size_t room = ZSTD_compressBound(len);
	void *made = malloc(room);
	assert_non_null(made);
	*out = ZSTD_compress(made, room, bytes, len, 1);
	assert_false(ZSTD_isError(*out));
	return made;
}

#define CODEX_HEAD                                                                                 \
	"{\"timestamp\":\"2026-11-14T22:58:25.886Z\",\"type\":\"session_meta\",\"payload\":{"      \
	"\"id\":\"01a1dc4f-9557-7792-a2b4-583aecbc89a6\",\"timestamp\":"                           \
	"\"2026-11-14T22:58:25.886Z\",\"cwd\":\"/p\"}}\n"

/* Cut and spoilt anywhere: what can be unpacked is there, the rest is said to be damaged. */
static void test_zst_damaged(void **state)
{
	(void)state;
	_cleanup_(buf_free) buf text = BUF_INIT(KIT_BYTES_MAX);
	size_t len;
	buf_lit(&text, CODEX_HEAD);
	for (size_t i = 0; i < 200; i++)
		buf_format(
			&text,
			"{\"timestamp\":\"2026-11-14T22:58:26Z\",\"type\":\"response_item\","
			"\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":"
			"\"input_text\",\"text\":\"%zu\"}]}}\n",
			i * 7919);
	unsigned char *file = packed(text.ptr, text.len, &len);
	for (size_t cut = 4; cut < len; cut += 97) {
		kit k;
		kit_open(&k);
		make(&k, "rollout.jsonl.zst", file, cut);
		assert_int_equal(import_as(&k, "codex"), 0);
		problems_named(&k);
		assert_true(k.report->problem_total != 0 || k.report->sessions[0]->pieces < 201);
		file[cut] ^= 0x55;
		make(&k, "rollout.jsonl.zst", file, len);
		file[cut] ^= 0x55;
		assert_int_equal(import_as(&k, "codex"), 0);
		problems_named(&k);
		kit_close(&k);
	}
	free(file);
}

/* A few kilobytes that come to gigabytes: given up long before. */
static void test_zst_bomb(void **state)
{
	(void)state;
	enum {
		BYTES = 160 << 20
	};
	char *zeros = calloc(1, BYTES);
	size_t len;
	kit k;
	assert_non_null(zeros);
	memcpy(zeros, CODEX_HEAD, strlen(CODEX_HEAD));
	void *file = packed(zeros, BYTES, &len);
	free(zeros);
	assert_true(len < BYTES / 1000);
	kit_open(&k);
	make(&k, "rollout.jsonl.zst", file, len);
	free(file);
	sheaf_import_options how = SHEAF_IMPORT_OPTIONS_INIT;
	how.dry_run = 1;
	assert_int_equal(kit_try(&k, path, &how), 0);
	assert_int_equal(k.report->problem_total,
	                 2); /* too long, and what follows is not looked at */
	problems_named(&k);
	kit_close(&k);
}

/* ---- While it is read -------------------------------------------------------- */

#define ONE(id)                                                                                    \
	"{\"id\":\"" id                                                                            \
	"\",\"mapping\":{\"a\":{\"parent\":null,\"message\":{\"author\":{\"role\":"                \
	"\"user\"},\"content\":{\"content_type\":\"text\",\"parts\":[\"x\"]}}}},"                  \
	"\"current_node\":\"a\"}"

static const char *instead;

static void replace_file(void *ctx, const sheaf_imported *session)
{
	(void)ctx;
	(void)session;
	if (instead != NULL)
		file_write(path, instead, strlen(instead));
	instead = NULL;
}

/* Shorter, longer, or another: between two conversations of a list. */
static void test_changed_meanwhile(void **state)
{
	(void)state;
	static const char *const others[] = {"",
	                                     "[",
	                                     "[{",
	                                     "[" ONE("A"),
	                                     "[" ONE("A") ",",
	                                     "[" ONE("A") "," ONE("C") "," ONE("D") "]"};
	for (size_t i = 0; i < COUNT_OF(others); i++) {
		_cleanup_(buf_free) buf text = BUF_INIT(KIT_BYTES_MAX);
		kit k;
		sheaf_import_options how = SHEAF_IMPORT_OPTIONS_INIT;
		how.on_session = replace_file;
		kit_open(&k);
		buf_lit(&text, "[" ONE("A"));
		for (size_t n = 0; n < 400 << 10; n++) /* more than is in memory at a time */
			buf_char(&text, ' ');
		buf_lit(&text, "," ONE("B") "]");
		make(&k, "x.json", text.ptr, text.len);
		instead = others[i];
		assert_int_equal(kit_try(&k, path, &how), 0);
		assert_true(k.report->session_count >= 1);
		problems_named(&k);
		/* And then as it is. */
		how.format = SHEAF_STR("chatgpt");
		assert_int_equal(kit_try(&k, path, &how), 0);
		kit_close(&k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deep),       cmocka_unit_test(test_long),
		cmocka_unit_test(test_cycles),     cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_ids),        cmocka_unit_test(test_header),
		cmocka_unit_test(test_file_names), cmocka_unit_test(test_no_files),
		cmocka_unit_test(test_folders),    cmocka_unit_test(test_zst_damaged),
		cmocka_unit_test(test_zst_bomb),   cmocka_unit_test(test_changed_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
