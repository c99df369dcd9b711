/* Tests of sheaf/context.h: what is mended and reported, what it costs, prefixes, damage. */
#include "kit.h"

#include <fcntl.h>
#include <unistd.h>

#include "support/fail_alloc.h"

static sheaf_context_options options(void)
{
	return (sheaf_context_options)SHEAF_CONTEXT_OPTIONS_INIT;
}

/* ---- Tool calls ---------------------------------------------------------- */

/* Every line of the log, and a hash over it. */
static uint64_t log_hash(kit *k)
{
	sheaf_records *r;
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.limit = 10000;
	assert_int_equal(sheaf_session_records(&r, k->s, &o, &k->err), 0);
	uint64_t h = r->count;
	for (size_t i = 0; i < r->count; i++)
		h = h * 31 + str_hash(r->items[i]->line);
	sheaf_records_free(r);
	return h;
}

static void check_mended(const char *script, const char *want, int note, const char *detail)
{
	kit k;
	kit_open(&k);
	kit_script(&k, script);
	uint64_t before = log_hash(&k);
	const sheaf_context *c = kit_context(&k, NULL);
	assert_string_equal(kit_spell(&k, c), want);
	assert_int_equal(kit_notes(c, note), 1);
	assert_int_equal(c->note_count, 1);
	kit_str(c->notes[0]->detail, detail);
	/* Same log, same options, same bytes. */
	const sheaf_context *again = kit_context(&k, NULL);
	assert_int_equal(again->prefix_hash, c->prefix_hash);
	for (size_t i = 0; i < c->count; i++) {
		assert_int_equal(sheaf_context_prefix(c, i), sheaf_context_prefix(again, i));
		assert_true(str_eq(c->items[i]->message->json, again->items[i]->message->json));
	}
	sheaf_context_free(again);
	sheaf_context_free(c);
	assert_int_equal(log_hash(&k), before);
	kit_close(&k);
}

static void test_late_answer(void **state)
{
	(void)state;
	check_mended("u1=u:hi a1=a:c1 u2=u:wait t1=t:r1 a2=a:ok", "u1 a1 t1 u2 a2",
	             SHEAF_NOTE_LATE_ANSWER, "1");
}

static void test_orphan_answer(void **state)
{
	(void)state;
	check_mended("u1=u:hi t1=t:r7 a1=a:ok", "u1 t1 a1", SHEAF_NOTE_ORPHAN_ANSWER, "7");
}

static void test_interrupted_call(void **state)
{
	(void)state;
	check_mended("u1=u:hi a1=a:c1,c2 t1=t:r1 u2=u:well", "u1 a1 t1 !2 u2",
	             SHEAF_NOTE_INTERRUPTED, "2");
	check_mended("u1=u:hi a1=a:c1", "u1 a1 !1", SHEAF_NOTE_INTERRUPTED, "1");
}

static void test_second_answer_and_empty_text(void **state)
{
	(void)state;
	check_mended("u1=u:hi a1=a:c1 t1=t:r1 t2=t:r1", "u1 a1 t1", SHEAF_NOTE_SECOND_ANSWER, "1");
	check_mended("u1=u:hi a1=a:- u2=u:you", "u1 u2", SHEAF_NOTE_EMPTY_TEXT, NULL);
}

static void test_answer_lost_to_a_compaction(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	/* A cut of another tool, between a call and its answer. */
	kit_script(&k, "u1=u:hi a1=a:c1");
	kit_script(&k, "t1=t:r1 a2=a:x");
	kit_json(&k, "compaction", "z1",
	         "{'compaction':{'summary':'s','first_kept_entry_id':'t1'}}");
	const sheaf_context *c = kit_context(&k, NULL);
	assert_string_equal(kit_spell(&k, c), "S(s) t1 a2");
	assert_int_equal(kit_notes(c, SHEAF_NOTE_ORPHAN_ANSWER), 1);
	kit_str(c->items[1]->message->role, SHEAF_ROLE_USER);
	kit_str(c->items[1]->message->parts[0]->text, "[tool result bash 1]\nout");
	sheaf_context_free(c);
	kit_close(&k);
}

static void test_foreign_thinking(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:hi");
	sheaf_message *m = sheaf_message_new(SHEAF_ROLE_ASSISTANT);
	(void)sheaf_message_thinking(m, SHEAF_STR("hm"), SHEAF_STR("sig"), 0);
	(void)sheaf_message_text(m, SHEAF_STR("ok"));
	(void)sheaf_message_provider(m, SHEAF_STR("anthropic"));
	(void)sheaf_message_model(m, SHEAF_STR("claude"));
	assert_int_equal(kit_put(&k, k.s, SHEAF_STR("a1"), m), 0);
	sheaf_context_options o = options();
	const sheaf_context *all = kit_context(&k, &o);
	assert_int_equal(all->items[1]->message->part_count, 2);
	o.provider = SHEAF_STR("openai");
	const sheaf_context *c = kit_context(&k, &o);
	assert_int_equal(c->items[1]->message->part_count, 1);
	assert_int_equal(kit_notes(c, SHEAF_NOTE_FOREIGN_THINKING), 1);
	/* A switch of models breaks a prefix, and only from there on. */
	assert_int_not_equal(c->prefix_hash, all->prefix_hash);
	assert_int_equal(sheaf_context_prefix(c, 1), sheaf_context_prefix(all, 1));
	sheaf_context_free(c);
	sheaf_context_free(all);
	kit_close(&k);
}

/* ---- Limits -------------------------------------------------------------- */

static void test_budget(void **state)
{
	(void)state;
	kit k;
	sheaf_context *c = NULL;
	kit_open(&k);
	kit_script(&k, "u1=u:hi a1=a:hello u2=u:more");
	sheaf_context_options o = options();
	const sheaf_context *all = kit_context(&k, NULL);
	assert_true(all->bytes > 300);
	o.bytes_max = all->bytes;
	kit_items(&k, &o, "u1 a1 u2");
	o.bytes_max = all->bytes - 1;
	assert_int_equal(sheaf_session_context(&c, k.s, &o, &k.err), SHEAF_TOO_LARGE);
	assert_non_null(strstr(k.err.hint, "compact"));
	assert_null(c);
	sheaf_context_free(all);

	/* Data no model sees costs nothing. */
	size_t len = 100000;
	char *body = malloc(len + 64);
	assert_non_null(body);
	int at = snprintf(body, 64, "{'custom':{'custom_type':'t','data':'");
	memset(body + at, 'x', len);
	(void)strcpy(body + (size_t)at + len, "'}}");
	kit_json(&k, "custom", "x1", body);
	free(body);
	o.bytes_max += 1;
	kit_items(&k, &o, "u1 a1 u2");

	/* Compacted it fits again. */
	assert_int_equal(kit_compact(&k, "z1", "s", ""), 0);
	o.bytes_max = 400;
	kit_items(&k, &o, "S(s)");
	kit_close(&k);
}

static void test_oversized_last_tool_result(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	size_t len = 4 << 20;
	char *text = malloc(len);
	assert_non_null(text);
	memset(text, 'x', len);
	kit_script(&k, "u1=u:a a1=a:b u2=u:c a2=a:c1");
	sheaf_message *m = sheaf_message_new(SHEAF_ROLE_TOOL);
	(void)sheaf_message_tool_result(m, SHEAF_STR("1"), SHEAF_STR("bash"), str_make(text, len),
	                                0);
	assert_int_equal(kit_put(&k, k.s, SHEAF_STR("t1"), m), 0);
	free(text);
	/* Too much for a context, and yet it can be compacted away. */
	sheaf_context_options o = options();
	sheaf_context *c = NULL;
	o.bytes_max = 1 << 20;
	assert_int_equal(sheaf_session_context(&c, k.s, &o, &k.err), SHEAF_TOO_LARGE);
	assert_int_equal(kit_compact(&k, "z1", "s", "t1"), SHEAF_COMPACT);
	assert_int_equal(kit_compact(&k, "z1", "s", "a2"), 0);
	kit_items(&k, NULL, "S(s) a2 t1");
	assert_int_equal(kit_compact(&k, "z2", "s", ""), 0);
	kit_items(&k, &o, "S(s)");
	kit_close(&k);
}

static size_t scans;

static int count_scans(void *ctx, const char *slot, sheaf_error *err)
{
	(void)ctx;
	(void)err;
	scans += strcmp(slot, "scan") == 0;
	return 0;
}

static void test_cost_is_that_of_the_context(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	char word[64];
	for (size_t i = 0; i < 20000; i++) {
		(void)snprintf(word, sizeof(word), "e%zu=u:some-text", i);
		kit_script(&k, word);
	}
	assert_int_equal(kit_compact(&k, "z1", "s", "e19990"), 0);
	kit_script(&k, "u1=u:x");
	scans = 0;
	store_set_fault(count_scans, NULL);
	const sheaf_context *c = kit_context(&k, NULL);
	store_set_fault(NULL, NULL);
	assert_int_equal(c->count, 12);
	assert_true(c->bytes < 4000);
	assert_true(scans <= 2);
	sheaf_context_free(c);
	scans = 0;
	store_set_fault(count_scans, NULL);
	int rc = kit_compact(&k, "z2", "s", "e19995");
	store_set_fault(NULL, NULL);
	assert_int_equal(rc, 0);
	assert_true(scans <= 8);
	kit_close(&k);
}

static void test_errors_are_for_failures(void **state)
{
	(void)state;
	kit k;
	sheaf_context *c;
	kit_open(&k);
	kit_script(&k, "u1=u:hi");
	kit_json(&k, "compaction", "z1",
	         "{'compaction':{'summary':'s','first_kept_entry_id':'none'}}");
	sheaf_error err, untouched;
	memset(&err, 0x5a, sizeof(err));
	memcpy(&untouched, &err, sizeof(err));
	assert_int_equal(sheaf_session_context(&c, k.s, NULL, &err), 0);
	assert_memory_equal(&err, &untouched, sizeof(err));
	assert_int_equal(c->note_count, 1);
	sheaf_context_free(c);
	/* Options of an older, shorter struct. */
	sheaf_context_options o = options();
	o.size = offsetof(sheaf_context_options, without_compaction);
	o.without_compaction = 1;
	o.bytes_max = 1;
	kit_items(&k, &o, "S(s) u1");
	kit_close(&k);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	kit k;
	fail_alloc_install();
	kit_open(&k);
	kit_script(&k, "u1=u:hi a1=a:c1,c2 t1=t:r1 u2=u:- t2=t:r9");
	kit_json(&k, "compaction", "z1",
	         "{'compaction':{'summary':'s','kept_ids':['a1','no\\n'],'model':"
	         "{'provider':'p','model_id':'m'}}}");
	kit_script(&k, "u3=u:x");
	size_t live = fail_alloc_live();
	for (size_t n = 1;; n++) {
		sheaf_context *c = NULL;
		fail_alloc_at(n, false);
		int rc = sheaf_session_context(&c, k.s, NULL, &k.err);
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		if (rc == 0)
			sheaf_context_free(c);
		else
			assert_int_equal(rc, SHEAF_NOMEM);
		if (!hit)
			break;
		assert_true(n < 10000);
	}
	assert_true(fail_alloc_live() <= live + 2);
	kit_close(&k);
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

/* ---- Prefixes ------------------------------------------------------------ */

/* One turn of chance, complete: every call in it is answered before it ends. */
static void random_turn(kit *k, rng *r, size_t *serial)
{
	char word[256];
	size_t steps = below(r, 4);
	(void)snprintf(word, sizeof(word), "u%zu=u:%s", ++*serial, below(r, 8) == 0 ? "-" : "ask");
	kit_script(k, word);
	for (size_t i = 0; i < steps; i++) {
		size_t calls = 1 + below(r, 3), first = *serial * 10;
		int at = snprintf(word, sizeof(word), "a%zu=a:%s", ++*serial,
		                  below(r, 2) ? "so" : "-");
		for (size_t c = 0; c < calls; c++)
			at += snprintf(word + at, sizeof(word) - (size_t)at, ",c%zu", first + c);
		kit_script(k, word);
		/* Answers in any order, together or one by one, some of them the user's. */
		size_t start = below(r, calls);
		bool together = below(r, 2) == 0;
		char role = below(r, 3) == 0 ? 'u' : 't';
		at = 0;
		for (size_t c = 0; c < calls; c++) {
			size_t id = first + (start + c) % calls;
			if (at == 0)
				at = snprintf(word, sizeof(word), "t%zu=%c:r%zu", ++*serial, role,
				              id);
			else
				at += snprintf(word + at, sizeof(word) - (size_t)at, ",r%zu", id);
			if (together && c + 1 < calls)
				continue;
			if (below(r, 4) == 0)
				at += snprintf(word + at, sizeof(word) - (size_t)at, ",r%zu",
				               first + below(r, calls));
			if (role == 'u' && c + 1 == calls && below(r, 2) == 0)
				(void)snprintf(word + at, sizeof(word) - (size_t)at, ",more");
			kit_script(k, word);
			at = 0;
		}
		if (below(r, 6) == 0) {
			(void)snprintf(word, sizeof(word), "t%zu=t:r%zu", ++*serial,
			               (size_t)9000000);
			kit_script(k, word);
		}
	}
	(void)snprintf(word, sizeof(word), "a%zu=a:done", ++*serial);
	kit_script(k, word);
	if (below(r, 3) == 0)
		(void)kit_label(k, strtok(word, "="), "mark");
	if (below(r, 5) == 0)
		assert_int_equal(sheaf_session_append_thinking_level(k->s, SHEAF_STR("high"), NULL,
		                                                     NULL, NULL, &k->err),
		                 0);
}

static void test_prefix_is_stable(void **state)
{
	(void)state;
	rng r = {UINT64_C(88172645463325252)};
	for (size_t round = 0; round < 2000; round++) {
		kit k;
		uint64_t hashes[8];
		size_t counts[8], serial = 0, turns = 2 + below(&r, 5);
		kit_open(&k);
		for (size_t t = 0; t < turns; t++) {
			random_turn(&k, &r, &serial);
			const sheaf_context *c = kit_context(&k, NULL);
			assert_int_equal(kit_notes(c, SHEAF_NOTE_INTERRUPTED), 0);
			assert_int_equal(kit_notes(c, SHEAF_NOTE_LATE_ANSWER), 0);
			hashes[t] = c->prefix_hash;
			counts[t] = c->count;
			for (size_t e = 0; e <= t; e++)
				assert_int_equal(sheaf_context_prefix(c, counts[e]), hashes[e]);
			for (size_t e = 0; e < c->count; e++)
				assert_int_not_equal(sheaf_context_prefix(c, e), c->prefix_hash);
			sheaf_context_free(c);
		}
		kit_close(&k);
	}
}

static void test_prefix_breaks_are_reported(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_script(&k, "u1=u:hi a1=a:c1 u2=u:well");
	const sheaf_context *before = kit_context(&k, NULL);
	kit_script(&k, "t1=t:r1");
	const sheaf_context *after = kit_context(&k, NULL);
	assert_int_equal(kit_notes(after, SHEAF_NOTE_LATE_ANSWER), 1);
	assert_int_not_equal(sheaf_context_prefix(after, before->count), before->prefix_hash);
	assert_int_equal(sheaf_context_prefix(after, 2), sheaf_context_prefix(before, 2));
	sheaf_context_free(before);
	sheaf_context_free(after);
	kit_close(&k);
}

/* ---- Damage -------------------------------------------------------------- */

static void file_write(const char *path, const char *text)
{
	char *json = kit_quoted(text);
	size_t len = strlen(json);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, json, len), (ssize_t)len);
	assert_int_equal(close(fd), 0);
	free(json);
}

/* A directory for the files of one test. */
static char dir[512];

static void dir_make(void)
{
	const char *tmp = getenv("TMPDIR");
	(void)snprintf(dir, sizeof(dir), "%.400s/context-XXXXXX", tmp != NULL ? tmp : "/tmp");
	assert_non_null(mkdtemp(dir));
}

static void dir_remove(void)
{
	char command[640];
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* A session that is somebody else's file. */
static void lone_file(kit *k, const char *text)
{
	char path[640], url[720];
	dir_make();
	(void)snprintf(path, sizeof(path), "%s/s.jsonl", dir);
	(void)snprintf(url, sizeof(url), "jsonl:%s", path);
	file_write(path, text);
	sheaf_key key = sheaf_key_of("s");
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	o.readonly = 1;
	memset(k, 0, sizeof(*k));
	int rc = sheaf_open(&k->store, url, NULL, &k->err);
	if (rc == 0)
		rc = sheaf_session_open(&k->s, k->store, &key, &o, &k->err);
	if (rc != 0)
		print_error("%s: %s\n", sheaf_code_name(rc), k->err.message);
	assert_int_equal(rc, 0);
}

#define HEADER "{'type':'session','id':'s','version':1,'timestamp':'2024-01-01T10:00:00Z'}\n"
#define MESSAGE(id, parent, text)                                                                  \
	"{'type':'message','id':'" id "','parent_id':" parent ",'timestamp':"                      \
	"'2024-01-01T10:00:01Z','message':{'role':'user','content':'" text "'}}\n"

#define FLAT_LABEL                                                                                 \
	"{'type':'label','id':'lbl-1','parent_id':'msg-3','target_id':'msg-1',"                    \
	"'label':'first-greeting','timestamp':'2024-01-01T10:00:02Z'}\n"
#define FLAT_COMPACTION                                                                            \
	"{'type':'compaction','id':'comp-1','parent_id':'lbl-1','summary':'sum',"                  \
	"'first_kept_entry_id':'msg-3','tokens_before':1500,"                                      \
	"'timestamp':'2024-01-01T10:00:03Z'}\n"

static void test_parent_cycle(void **state)
{
	(void)state;
	kit k;
	sheaf_context *c = NULL;
	static const char *const text = HEADER MESSAGE("m1", "'m3'", "a") MESSAGE("m2", "'m1'", "b")
		MESSAGE("m3", "'m2'", "c");
	lone_file(&k, text);
	assert_int_equal(sheaf_session_context(&c, k.s, NULL, &k.err), SHEAF_DAMAGED);
	sheaf_context_options o = options();
	o.allow_damage = 1;
	const sheaf_context *all = kit_context(&k, &o);
	assert_string_equal(kit_spell(&k, all), "m1 m2 m3");
	assert_int_equal(kit_notes(all, SHEAF_NOTE_DAMAGE), 1);
	sheaf_context_free(all);
	kit_close(&k);
	dir_remove();
}

static void test_seed_file(void **state)
{
	(void)state;
	kit k;
	/* Seed 001 §13: the flat form, and a compaction that hangs on a label. */
	static const char *const text = HEADER MESSAGE("msg-1", "null", "Hello, Agent!")
		MESSAGE("msg-2", "'msg-1'", "Hi") MESSAGE("msg-3", "'msg-1'", "joke")
			FLAT_LABEL FLAT_COMPACTION;
	lone_file(&k, text);
	kit_items(&k, NULL, "S(sum) msg-3");
	sheaf_context_options o = options();
	o.without_compaction = 1;
	kit_items(&k, &o, "msg-1 msg-3");
	kit_close(&k);
	dir_remove();
}

static void test_damage(void **state)
{
	(void)state;
	kit k;
	sheaf_records *r;
	sheaf_context *c = NULL;
	char url[640], path[640];
	dir_make();
	(void)snprintf(url, sizeof(url), "jsonl:%s", dir);
	(void)snprintf(path, sizeof(path), "%s/s.jsonl", dir);
	kit_open_url(&k, url, "s");
	kit_script(&k, "u1=u:a a1=a:b u2=u:xxxx a2=a:d u3=u:e");
	assert_int_equal(sheaf_session_records(&r, k.s, NULL, &k.err), 0);
	assert_int_equal(r->count, 5);
	sheaf_records_free(r);
	kit_close(&k);

	/* One byte of the third record is another now. */
	char text[8192];
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	ssize_t len = read(fd, text, sizeof(text) - 1);
	assert_true(len > 0);
	text[len] = '\0';
	char *spot = strstr(text, "xxxx");
	assert_non_null(spot);
	assert_int_equal(pwrite(fd, "X", 1, spot - text), 1);
	assert_int_equal(close(fd), 0);

	kit_open_url(&k, url, "s");
	assert_int_equal(sheaf_session_context(&c, k.s, NULL, &k.err), SHEAF_DAMAGED);
	assert_null(c);
	assert_non_null(strstr(k.err.message, "3"));
	sheaf_context_options o = options();
	o.allow_damage = 1;
	const sheaf_context *all = kit_context(&k, &o);
	assert_string_equal(kit_spell(&k, all), "u1 a1 a2 u3");
	assert_int_equal(all->note_count, 1);
	assert_int_equal(all->notes[0]->what, SHEAF_NOTE_DAMAGE);
	assert_int_equal(all->notes[0]->seq, 3);
	sheaf_context_free(all);

	/* Once repaired the loss is known and no obstacle, but still told. */
	sheaf_key key = sheaf_key_of("s");
	assert_int_equal(sheaf_store_repair(NULL, k.store, &key, &k.err), 0);
	all = kit_context(&k, NULL);
	assert_string_equal(kit_spell(&k, all), "u1 a1 a2 u3");
	assert_int_equal(kit_notes(all, SHEAF_NOTE_DAMAGE), 1);
	assert_int_equal(all->notes[0]->seq, 3);
	sheaf_context_free(all);
	assert_int_equal(kit_compact(&k, "z1", "s", "a2"), 0);
	kit_items(&k, NULL, "S(s) a2 u3");
	kit_close(&k);
	dir_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_answer),
		cmocka_unit_test(test_orphan_answer),
		cmocka_unit_test(test_interrupted_call),
		cmocka_unit_test(test_second_answer_and_empty_text),
		cmocka_unit_test(test_answer_lost_to_a_compaction),
		cmocka_unit_test(test_foreign_thinking),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_oversized_last_tool_result),
		cmocka_unit_test(test_cost_is_that_of_the_context),
		cmocka_unit_test(test_errors_are_for_failures),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_prefix_is_stable),
		cmocka_unit_test(test_prefix_breaks_are_reported),
		cmocka_unit_test(test_parent_cycle),
		cmocka_unit_test(test_seed_file),
		cmocka_unit_test(test_damage),
	};
	return cmocka_run_group_tests_name("core/context_limits", tests, NULL, NULL);
}
