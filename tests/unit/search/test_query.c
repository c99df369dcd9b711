/* What a query finds: words, phrases, beginnings, scripts, identifiers, filters, ranks, snippets. */
#include "kit.h"

static int set_up(void **state)
{
	static kit k;
	kit_begin(&k, "memory:");
	*state = &k;
	return 0;
}

static int set_up_jsonl(void **state)
{
	static kit k;
	kit_begin(&k, "jsonl:");
	*state = &k;
	return 0;
}

static int tear_down(void **state)
{
	kit_end(*state);
	return 0;
}

/* ---- Words ------------------------------------------------------------------- */

static void test_words(void **state)
{
	kit *k = *state;
	say(k, "s", "e1", "user", "The Parser fails: connection refused by café Zürich");
	say(k, "s", "e2", "assistant", "The connection was then refused");
	finds(k, "parser", "s/e1");
	finds(k, "PARSER fails", "s/e1");
	finds(k, "fails parser", "s/e1");
	finds(k, "parser nowhere", "");
	finds(k, "\"connection refused\"", "s/e1");
	finds(k, "\"refused connection\"", "");
	finds(k, "connection refused", "s/e1 s/e2");
	finds(k, "cafe zurich", "s/e1");
	finds(k, "CAFÉ", "s/e1");
	finds(k, "pars*", "s/e1");
	finds(k, "pars", "");
	finds(k, "\"connection re\"*", "s/e1");
	finds(k, "parser:fails", "s/e1");
	/* Colours are no part of words. */
	say(k, "s", "e3", "tool", "\033[1;31mred\033[0mdish \033[mplain\033[2J\033");
	finds(k, "red", "s/e3");
	finds(k, "dish plain", "s/e3");
	finds(k, "31mred", "");
	/* Nothing of this is for SQLite. */
	finds(k, "NOT", "");
	finds(k, "parser OR nowhere", "");
	finds(k, "text:parser", "");
	finds(k, "parser^2 *", "");
	finds(k, "(parser)", "s/e1");
	finds(k, "'; -- parser", "s/e1");
}

static void test_scripts(void **state)
{
	kit *k = *state;
	say(k, "s", "e1", "user", "日本語の検索エンジンを作る。parserは速い");
	say(k, "s", "e2", "user", "中文搜索引擎测试");
	say(k, "s", "e3", "user", "한국어 검색은 어렵다");
	say(k, "s", "e4", "user", "ภาษาไทยไม่มีช่องว่าง");
	say(k, "s", "e5", "user", "Быстрый ПОИСК по истории");
	say(k, "s", "e6", "user", "ＡＢＣ ﬁle straße");
	say(k, "s", "e7", "user", "हिन्दी में खोज");
	finds(k, "検索", "s/e1");
	finds(k, "日本", "s/e1");
	finds(k, "本語の検", "s/e1");
	finds(k, "語検", "");
	finds(k, "搜索", "s/e2");
	finds(k, "索引擎", "s/e2");
	finds(k, "擎", "s/e2");
	finds(k, "试", "s/e2");
	finds(k, "검색", "s/e3");
	finds(k, "ไทย", "s/e4");
	finds(k, "быстрый поиск", "s/e5");
	finds(k, "ПОИС*", "s/e5");
	finds(k, "abc", "s/e6");
	finds(k, "file", "s/e6");
	finds(k, "STRASSE", "s/e6");
	finds(k, "खोज", "s/e7");
	finds(k, "हिन्दी", "s/e7");
	finds(k, "\"作る。parser\"", "s/e1");
	finds(k, "parserは", "s/e1");
}

static void test_identifiers(void **state)
{
	kit *k = *state;
	say(k, "s", "e1", "user", "call parse_json_value(x)");
	say(k, "s", "e2", "user", "call parseJsonValue(x)");
	say(k, "s", "e3", "user", "class HTTPServerError2 in src/net/http_server.c:42");
	say(k, "s", "e4", "user", "my GitHub account");
	finds(k, "parse_json_value", "s/e1");
	finds(k, "parseJsonValue", "s/e2");
	finds(k, "parsejsonvalue", "s/e2");
	finds(k, "json value", "s/e2 s/e1");
	finds(k, "json_value", "s/e1");
	finds(k, "parse_js*", "s/e1");
	finds(k, "parseJs*", "s/e2");
	finds(k, "http", "s/e3");
	finds(k, "server", "s/e3");
	finds(k, "error2", "s/e3");
	finds(k, "httpservererror2", "s/e3");
	finds(k, "src/net/http_server.c", "s/e3");
	finds(k, "net/http_server", "s/e3");
	finds(k, "http_server.c:42", "s/e3");
	finds(k, "src/http_server", "");
	finds(k, "github", "s/e4");
	finds(k, "hub", "s/e4");
	finds(k, "\"my github account\"", "s/e4");
}

/* A word of any length is found, by itself and by its beginning. */
static void test_long_words(void **state)
{
	kit *k = *state;
	char word[4000];
	for (size_t i = 0; i < sizeof(word) - 1; i++)
		word[i] = "aBcDeF0123456789"[(i * 7 + i / 16) % 16];
	word[sizeof(word) - 1] = '\0';
	say(k, "s", "e1", "user", word);
	finds(k, word, "s/e1");
	word[40] = '*';
	word[41] = '\0';
	finds(k, word, "s/e1");
}

static int code_of(kit *k, const char *text)
{
	sheaf_hits *hits = NULL;
	k->q.text = sheaf_str_of(text);
	return sheaf_search_run(&hits, k->search, &k->q, &k->err);
}

static void test_refusals(void **state)
{
	kit *k = *state;
	char many[5000];
	assert_int_equal(code_of(k, ""), SHEAF_INVALID);
	assert_int_equal(code_of(k, "  ... !"), SHEAF_INVALID);
	assert_int_equal(code_of(k, "\"open"), SHEAF_INVALID);
	assert_int_equal(code_of(k, "a*"), SHEAF_INVALID);
	memset(many, 'x', sizeof(many));
	many[4999] = '\0';
	assert_int_equal(code_of(k, many), SHEAF_LIMIT);
	for (size_t i = 0; i < 100; i++)
		memcpy(many + 3 * i, "xy ", 4);
	assert_int_equal(code_of(k, many), SHEAF_LIMIT);
	k->q.limit = 1001;
	assert_int_equal(code_of(k, "x1"), SHEAF_LIMIT);
	k->q.limit = 1000;
	assert_int_equal(sheaf_search_run(NULL, k->search, &k->q, &k->err), SHEAF_INVALID);
	assert_int_equal(sheaf_search_run(&(sheaf_hits *){0}, k->search, NULL, &k->err),
	                 SHEAF_INVALID);
	assert_int_equal(sheaf_search_open(NULL, k->store, NULL, &k->err), SHEAF_INVALID);
}

/* Bytes of any kind are a query or none, and never more than that. */
static void test_any_bytes(void **state)
{
	kit *k = *state;
	uint64_t seed = 42;
	say(k, "s", "e1", "user", "alpha beta 検索 parseTable \"quoted\" *");
	for (int i = 0; i < 3000; i++) {
		static const char some[] = "ab\"* _\\\xe6\xa4\x9c\xff\xc3\xa9\x1b[A\xf0\x9f'";
		char text[40];
		sheaf_hits *hits = NULL;
		size_t len = (size_t)(i % 39) + 1;
		for (size_t n = 0; n < len; n++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			text[n] = some[(seed >> 33) % (sizeof(some) - 1)];
		}
		k->q.text = str_make(text, len);
		int rc = sheaf_search_run(&hits, k->search, &k->q, &k->err);
		assert_true(rc == 0 || rc == SHEAF_INVALID || rc == SHEAF_LIMIT);
		sheaf_hits_free(hits);
	}
}

/* ---- What is searched ------------------------------------------------------------ */

static void test_records(void **state)
{
	kit *k = *state;
	sheaf_message *m = sheaf_message_new("assistant");
	sheaf_message_thinking(m, sheaf_str_of("pondering deeply"), (sheaf_str){NULL, 0}, 0);
	sheaf_message_tool_use(
		m, sheaf_str_of("c1"), sheaf_str_of("Bash"),
		sheaf_str_of("{\"command\":\"grep -rn \\u0077idget .\",\"n\":4711}"));
	put(k, "s", "e1", m);
	m = sheaf_message_new("user");
	sheaf_message_tool_result(m, sheaf_str_of("c1"), (sheaf_str){NULL, 0},
	                          sheaf_str_of("src/a.c: gadget"), 0);
	put(k, "s", "e2", m);
	m = sheaf_message_new("assistant");
	sheaf_message_tool_use(m, sheaf_str_of("c2"), sheaf_str_of("edit"),
	                       sheaf_str_of("not json: sprocket"));
	sheaf_message_image(m, sheaf_str_of("base64"), sheaf_str_of("image/png"),
	                    sheaf_str_of("aGlkZGVu"));
	put(k, "s", "e3", m);
	finds(k, "widget", "s/e1");
	finds(k, "4711", "s/e1");
	finds(k, "pondering", "s/e1");
	finds(k, "command", ""); /* the name of an argument says nothing */
	finds(k, "gadget", "s/e2");
	finds(k, "sprocket", "s/e3");
	finds(k, "aGlkZGVu", "");

	sheaf_session *s = kit_session(k, "s");
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	entry.id = sheaf_str_of("c1");
	assert_int_equal(sheaf_session_append_custom(s, sheaf_str_of("note"),
	                                             sheaf_str_of("\"secretive\""), &entry, NULL,
	                                             NULL, &k->err),
	                 0);
	entry.id = sheaf_str_of("c2");
	assert_int_equal(sheaf_session_append_custom_text(s, sheaf_str_of("note"),
	                                                  sheaf_str_of("reminder text"), &entry,
	                                                  NULL, NULL, &k->err),
	                 0);
	entry.id = sheaf_str_of("c3");
	assert_int_equal(
		sheaf_session_append_json(
			s, sheaf_str_of("compaction"),
			sheaf_str_of("{\"compaction\":{\"summary\":\"summed up briefly\"}}"),
			&entry, NULL, NULL, &k->err),
		0);
	assert_int_equal(sheaf_session_rename(s, sheaf_str_of("Grand tour"), (sheaf_str){NULL, 0},
	                                      NULL, NULL, &k->err),
	                 0);
	finds(k, "secretive", "");
	finds(k, "reminder", "s/c2");
	finds(k, "summed", "s/c3");
	finds(k, "grand tour", "s/");
	assert_int_equal(sheaf_session_rename(s, sheaf_str_of("Small walk"), (sheaf_str){NULL, 0},
	                                      NULL, NULL, &k->err),
	                 0);
	finds(k, "grand", "");
	finds(k, "walk", "s/");
	sheaf_session_close(s);

	k->q.tool = sheaf_str_of("bash");
	finds(k, "gadget", "s/e2"); /* the call said which tool it is */
	finds(k, "widget", "s/e1");
	finds(k, "sprocket", "");
	k->q.tool = sheaf_str_of("as");
	finds(k, "gadget", "");
}

/* ---- Filters ------------------------------------------------------------------------ */

static void make(kit *k, const char *app, const char *user, const char *id, const char *cwd,
                 const char *agent)
{
	sheaf_key key = {sheaf_str_of(app), sheaf_str_of(user), sheaf_str_of(id)};
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_session *s;
	o.cwd = sheaf_str_of(cwd);
	assert_int_equal(sheaf_session_open(&s, k->store, &key, &o, &k->err), 0);
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_text(m, sheaf_str_of("needle"));
	entry.id = sheaf_str_of("e");
	entry.agent = sheaf_str_of(agent);
	entry.time_us = k->time_us;
	k->time_us -= INT64_C(86400000000); /* each older than the one before */
	assert_int_equal(sheaf_session_append_message(s, m, &entry, NULL, NULL, &k->err), 0);
	sheaf_message_free(m);
	sheaf_session_close(s);
}

static void test_filters(void **state)
{
	kit *k = *state;
	int64_t t = k->time_us, day = INT64_C(86400000000);
	make(k, "", "", "codex.1", "/p", NULL);
	make(k, "", "", "claude-code.2", "/p/sub", NULL);
	make(k, "", "", "3", "/pq", "codex");
	make(k, "a", "u", "4", "/p", NULL);
	make(k, "a", "v/w", "5", "/p", NULL);
	make(k, "b", "u", "6", "/", NULL);
	finds(k, "needle", "codex.1/e claude-code.2/e 3/e");
	k->q.all_apps = 1;
	finds(k, "needle", "codex.1/e claude-code.2/e 3/e 4/e 5/e 6/e");
	k->q.project = sheaf_str_of("/p");
	finds(k, "needle", "codex.1/e claude-code.2/e 4/e 5/e");
	k->q.project = sheaf_str_of("/p/");
	finds(k, "needle", "codex.1/e claude-code.2/e 4/e 5/e");
	k->q.project = sheaf_str_of("/");
	finds(k, "needle", "codex.1/e claude-code.2/e 3/e 4/e 5/e 6/e");
	k->q.project = (sheaf_str){NULL, 0};
	k->q.agent = sheaf_str_of("codex");
	finds(k, "needle", "codex.1/e 3/e");
	k->q.agent = sheaf_str_of("code");
	finds(k, "needle", "");
	k->q.agent = (sheaf_str){NULL, 0};
	k->q.after_us = t - day;
	finds(k, "needle", "codex.1/e claude-code.2/e");
	k->q.before_us = t;
	finds(k, "needle", "claude-code.2/e");
	k->q.after_us = k->q.before_us = 0;
	k->q.all_apps = 0;
	k->q.app = sheaf_str_of("a");
	k->q.user = sheaf_str_of("v/w");
	finds(k, "needle", "5/e");
	k->q.all_users = 1;
	finds(k, "needle", "4/e 5/e");
	k->q.roles = SHEAF_HIT_BIT(SHEAF_HIT_ASSISTANT);
	finds(k, "needle", "");
	k->q.roles |= SHEAF_HIT_BIT(SHEAF_HIT_USER);
	finds(k, "needle", "4/e 5/e");
}

/* ---- Ranks and snippets ---------------------------------------------------------------- */

static void test_ranks(void **state)
{
	kit *k = *state;
	k->time_us = NOW_US - INT64_C(86400000000) * 300;
	say(k, "s", "old", "user", "alpha beta");
	k->time_us = NOW_US - INT64_C(86400000000);
	say(k, "s", "tool", "tool", "alpha beta");
	say(k, "s", "said", "assistant", "alpha beta");
	say(k, "s", "asked", "user", "alpha beta");
	say(k, "s", "twice", "user", "alpha alpha beta");
	finds(k, "alpha", "s/twice s/asked s/said s/old s/tool");
	/* What is rare counts more than what is everywhere. */
	for (int i = 0; i < 30; i++) {
		char id[16];
		snprintf(id, sizeof(id), "c%d", i);
		say(k, "t", id, "user", "common stone");
	}
	say(k, "t", "rare", "user", "common common common gem");
	say(k, "t", "both", "user", "gem gem gem common");
	finds(k, "common gem", "t/both t/rare");
	k->q.limit = 2;
	k->q.per_session = 1;
	finds(k, "alpha", "s/twice");
	sheaf_hits *hits = run_query(k, "common");
	assert_int_equal(hits->count, 1);
	assert_int_equal(hits->more, 1);
	sheaf_hits_free(hits);
}

/* Hits that are alike in everything come newest first, then by their keys. */
static void test_ties(void **state)
{
	kit *k = *state;
	for (int i = 9; i >= 0; i--) {
		char id[16];
		int64_t t = k->time_us;
		snprintf(id, sizeof(id), "s%d", i);
		say(k, id, "e", "user", "same");
		k->time_us = t;
	}
	k->q.limit = 3;
	finds(k, "same", "s0/e s1/e s2/e");
}

/* One session must not hide all others, however many hits it has. */
static void test_flood(void **state)
{
	kit *k = *state;
	sheaf_session *s = kit_session(k, "flood");
	sheaf_batch *batch = sheaf_batch_new();
	for (int i = 0; i < 3000; i++) {
		sheaf_message *m = sheaf_message_new("user");
		sheaf_message_text(m, sheaf_str_of("water"));
		assert_int_equal(sheaf_batch_message(batch, m, NULL, &k->err), 0);
		sheaf_message_free(m);
	}
	assert_int_equal(sheaf_session_append_batch(s, batch, NULL, NULL, &k->err), 0);
	sheaf_batch_free(batch);
	sheaf_session_close(s);
	k->time_us -= INT64_C(86400000000) * 100;
	say(k, "dry", "e", "tool", "a drop of water in a text that is longer and worth less");
	k->q.per_session = 2;
	k->q.limit = 3;
	sheaf_hits *hits = run_query(k, "water");
	assert_int_equal(hits->count, 3);
	assert_string_equal(hits->items[2]->session.ptr, "dry");
	sheaf_hits_free(hits);
}

static void marked(kit *k, const char *query, const char *wanted)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	sheaf_hits *hits = run_query(k, query);
	assert_int_equal(hits->count, 1);
	const sheaf_hit *h = hits->items[0];
	size_t at = 0;
	buf_str(&out, h->cut_before ? SHEAF_STR("<") : SHEAF_STR(""));
	for (size_t i = 0; i < h->mark_count; i++) {
		assert_true(h->marks[i].begin >= at && h->marks[i].end <= h->snippet.len);
		buf_add(&out, h->snippet.ptr + at, h->marks[i].begin - at);
		buf_char(&out, '[');
		buf_add(&out, h->snippet.ptr + h->marks[i].begin,
		        h->marks[i].end - h->marks[i].begin);
		buf_char(&out, ']');
		at = h->marks[i].end;
	}
	buf_add(&out, h->snippet.ptr + at, h->snippet.len - at);
	buf_str(&out, h->cut_after ? SHEAF_STR(">") : SHEAF_STR(""));
	buf_nul(&out);
	assert_string_equal(out.ptr, wanted);
	sheaf_hits_free(hits);
}

static void test_snippets(void **state)
{
	kit *k = *state;
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	say(k, "s", "e1", "user", "one two\nthree FourFive 検索エンジン six_seven");
	marked(k, "two", "one [two]\nthree FourFive 検索エンジン six_seven");
	marked(k, "five", "one two\nthree Four[Five] 検索エンジン six_seven");
	marked(k, "索エンジ", "one two\nthree FourFive 検[索エンジ]ン six_seven");
	marked(k, "six_seven one", "[one] two\nthree FourFive 検索エンジン [six_seven]");
	marked(k, "\"two three\" three", "one [two\nthree] FourFive 検索エンジン six_seven");
	marked(k, "thr*", "one two\n[three] FourFive 検索エンジン six_seven");
	for (int i = 0; i < 5000; i++)
		buf_lit(&text, "filler ");
	buf_lit(&text, "alone ");
	for (int i = 0; i < 5000; i++)
		buf_lit(&text, "filler ");
	buf_lit(&text, "alone together end");
	buf_nul(&text);
	say(k, "s", "e2", "user", text.ptr);
	marked(k, "alone together",
	       "<filler filler filler filler filler filler filler [alone] [together] end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_words, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_scripts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_identifiers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_long_words, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_any_bytes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_records, set_up_jsonl, tear_down),
		cmocka_unit_test_setup_teardown(test_filters, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_filters, set_up_jsonl, tear_down),
		cmocka_unit_test_setup_teardown(test_ranks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ties, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_flood, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_snippets, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
