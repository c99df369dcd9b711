/* Importing again, and files that are not what they should be. */
#include "unit/convert/convert_kit.h"
#include "support/fail_alloc.h"

#include <pthread.h>

#define HEADER                                                                                          \
	"{\"type\":\"session\",\"version\":3,\"id\":\"s1\",\"timestamp\":\"2026-11-14T22:58:25.886Z\"," \
	"\"cwd\":\"/p\"}\n"
#define ENTRY(id, parent, text)                                                                          \
	"{\"type\":\"message\",\"id\":\"" id "\",\"parentId\":" parent                                   \
	",\"timestamp\":\"2026-11-14T22:58:25.920Z\",\"message\":{\"role\":\"user\",\"content\":\"" text \
	"\"}}\n"
#define FIRST HEADER ENTRY("a", "null", "one") ENTRY("b", "\"a\"", "two")

static char path[128];

static void file_make(kit *k, const char *text, size_t len)
{
	(void)snprintf(path, sizeof(path), "%s/x.jsonl", kit_dir(k));
	file_write(path, text, len);
}

static const sheaf_imported *import_text(kit *k, const char *text)
{
	file_make(k, text, strlen(text));
	kit_import(k, path);
	assert_int_equal(k->report->session_count, 1);
	return k->report->sessions[0];
}

static uint64_t revision(kit *k, const char *id)
{
	sheaf_session *s = kit_session(k, id);
	sheaf_head_view *head;
	assert_int_equal(sheaf_session_head(&head, s, &k->err), 0);
	uint64_t n = head->info->revision;
	sheaf_head_view_free(head);
	sheaf_session_close(s);
	return n;
}

static void same(kit *k, const char *id)
{
	sheaf_session *s = kit_session(k, id);
	kit_same(k, s, "pi", path);
	sheaf_session_close(s);
}

static void test_again(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	const sheaf_imported *got = import_text(&k, FIRST);
	assert_int_equal(got->state, SHEAF_IMPORT_NEW);
	assert_int_equal(got->records, 3);
	uint64_t was = revision(&k, "pi.s1");
	/* The same time and size; another time; another place. */
	kit_import(&k, path);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
	assert_int_equal(import_text(&k, FIRST)->state, SHEAF_IMPORT_SAME);
	(void)snprintf(path, sizeof(path), "%s/moved.jsonl", kit_dir(&k));
	file_write(path, FIRST, strlen(FIRST));
	kit_import(&k, path);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
	assert_int_equal(revision(&k, "pi.s1"), was);
	kit_close(&k);
}

static void test_grown(void **state)
{
	(void)state;
	kit k;
	char line[256];
	kit_open(&k);
	(void)import_text(&k, FIRST);
	const sheaf_imported *got = import_text(&k, FIRST ENTRY("c", "\"b\"", "three"));
	assert_int_equal(got->state, SHEAF_IMPORT_GROWN);
	assert_int_equal(got->records, 1);
	assert_int_equal(got->pieces, 4);
	same(&k, "pi.s1");
	sheaf_session *s = kit_session(&k, "pi.s1");
	kit_path(&k, s, line, sizeof(line));
	assert_string_equal(line, "a b c");
	sheaf_session_close(s);
	kit_close(&k);
}

static void test_cut_in_a_line(void **state)
{
	(void)state;
	static const char whole[] = FIRST ENTRY("c", "\"b\"", "three");
	kit k;
	kit_open(&k);
	for (size_t len = strlen(FIRST) + 1; len < strlen(whole) - 2; len += 17) {
		char text[1024];
		memcpy(text, whole, len);
		text[len] = '\0';
		const sheaf_imported *got = import_text(&k, text);
		assert_int_equal(got->partial, 1);
		assert_int_equal(got->pieces, 3);
	}
	/* A last line that is whole but for its line break is taken, and written so. */
	char text[1024];
	memcpy(text, whole, sizeof(whole));
	text[strlen(whole) - 1] = '\0';
	const sheaf_imported *got = import_text(&k, text);
	assert_int_equal(got->partial, 0);
	assert_int_equal(got->pieces, 4);
	same(&k, "pi.s1");
	got = import_text(&k, whole);
	assert_int_equal(got->state, SHEAF_IMPORT_SAME);
	same(&k, "pi.s1");
	got = import_text(&k, FIRST ENTRY("c", "\"b\"", "three") ENTRY("d", "\"c\"", "four"));
	assert_int_equal(got->records, 1);
	same(&k, "pi.s1");
	kit_close(&k);
}

static void test_changed(void **state)
{
	(void)state;
	static const char other[] = HEADER ENTRY("a", "null", "uno") ENTRY("b", "\"a\"", "two");
	kit k;
	kit_open(&k);
	(void)import_text(&k, FIRST);
	uint64_t was = revision(&k, "pi.s1");
	file_make(&k, other, strlen(other));
	assert_int_equal(kit_try(&k, path, NULL), 0);
	assert_int_equal(k.report->problem_total, 1);
	assert_int_equal(k.report->session_count, 1);
	assert_str(k.report->sessions[0]->key.session, "pi.s1~2");
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_CHANGED);
	assert_int_equal(revision(&k, "pi.s1"), was);
	same(&k, "pi.s1~2");
	/* Once is enough. */
	assert_int_equal(kit_try(&k, path, NULL), 0);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
	/* Shorter than it was is changed, too. */
	file_make(&k, HEADER ENTRY("a", "null", "one"), strlen(HEADER ENTRY("a", "null", "one")));
	assert_int_equal(kit_try(&k, path, NULL), 0);
	assert_str(k.report->sessions[0]->key.session, "pi.s1~3");
	kit_close(&k);
}

static void test_damaged(void **state)
{
	(void)state;
	static const char text[] = HEADER ENTRY(
		"a", "null", "one") "{\"type\":\"mess\n"
				    "\0\0\0\0\n"
				    "\n"
				    "\xff\xfe\n"
				    "[1,2]\n" ENTRY("b", "\"gone\"", "two")
					    ENTRY("a", "null", "again")
						    ENTRY("c", "\"a\"", "bro\\ud800ken \xc3");
	static const uint64_t lines[] = {3, 4, 5, 6, 7, 8, 9};
	kit k;
	char line[256];
	kit_open(&k);
	file_make(&k, text, sizeof(text) - 1);
	assert_int_equal(kit_try(&k, path, NULL), 0);
	assert_int_equal(k.report->problem_total, COUNT_OF(lines));
	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		bool found = false;
		for (size_t j = 0; j < COUNT_OF(lines); j++)
			found = found || k.report->problems[j]->line == lines[i];
		assert_true(found);
		assert_str(k.report->problems[i]->file, path);
	}
	assert_int_equal(k.report->sessions[0]->kept, 8);
	assert_int_equal(k.report->sessions[0]->mended, 2);
	same(&k, "pi.s1");
	sheaf_session *s = kit_session(&k, "pi.s1");
	kit_path(&k, s, line, sizeof(line));
	assert_string_equal(line, "a c");
	sheaf_session_close(s);
	/* And again nothing. */
	assert_int_equal(kit_try(&k, path, NULL), 0);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
	kit_close(&k);
}

/* Blanks around a line, and other ends of lines, are part of the file. */
static void test_blanks(void **state)
{
	(void)state;
	static const char text[] = " " HEADER
				   "\t" ENTRY("a", "null", "one") "{\"type\":\"x\"} \n"
								  "{\"type\":\"y\"}\r\n0 ";
	kit k;
	kit_open(&k);
	file_make(&k, text, strlen(text));
	assert_int_equal(kit_try(&k, path, NULL), 0);
	same(&k, "pi.s1");
	kit_close(&k);
}

/* Ids that were made here come back from what was written for another agent. */
static void test_ids_made_here(void **state)
{
	(void)state;
	kit k;
	char line[64];
	kit_open(&k);
	(void)import_text(&k, HEADER ENTRY("line-1", "null", "one")
	                              ENTRY("line-1.1", "\"line-1\"", "two"));
	sheaf_session *s = kit_session(&k, "pi.s1");
	kit_path(&k, s, line, sizeof(line));
	assert_string_equal(line, "line-1 line-1.1");
	sheaf_session_close(s);
	kit_close(&k);
}

/* An id that comes twice is no place to go back to, however much of the file was there first. */
static void test_leaf_of_refused(void **state)
{
	(void)state;
	static const char text[] = FIRST ENTRY("a", "null", "again") ENTRY("d", "\"gone\"", "no");
	for (size_t len = strlen(FIRST); len <= strlen(text); len++) {
		kit k;
		char line[64];
		kit_open(&k);
		file_make(&k, text, len);
		assert_int_equal(kit_try(&k, path, NULL), 0);
		file_make(&k, text, strlen(text));
		assert_int_equal(kit_try(&k, path, NULL), 0);
		sheaf_session *s = kit_session(&k, "pi.s1");
		kit_path(&k, s, line, sizeof(line));
		assert_string_equal(line, "a b");
		sheaf_session_close(s);
		same(&k, "pi.s1");
		kit_close(&k);
	}
}

/* Lines that fill records, and one that none can hold, between others. */
static void test_large(void **state)
{
	(void)state;
	static const size_t sizes[] = {(1 << 20) - 200, (1 << 20) + 5, 3 << 20, 7 << 20, 20 << 20};
	_cleanup_(buf_free) buf text = BUF_INIT(KIT_BYTES_MAX);
	kit k;
	char line[256];
	kit_open(&k);
	buf_lit(&text, HEADER);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		buf_format(&text,
		           "{\"type\":\"message\",\"id\":\"e%zu\",\"parentId\":null,\"message\":"
		           "{\"role\":\"user\",\"content\":\"",
		           i);
		for (size_t n = 0; n < sizes[i]; n += 4)
			buf_lit(&text, "x\xe2\x82\xac");
		buf_lit(&text, "\"}}\n" ENTRY("a", "null", "a"));
		text.ptr[text.len - sizeof(ENTRY("a", "null", "a")) + 1 + 24] = (char)('a' + i);
	}
	file_make(&k, text.ptr, text.len);
	assert_int_equal(kit_try(&k, path, NULL), 0);
	assert_int_equal(k.report->problem_total, 1);
	assert_int_equal(k.report->sessions[0]->pieces, 1 + 2 * COUNT_OF(sizes));
	same(&k, "pi.s1");
	sheaf_session *s = kit_session(&k, "pi.s1");
	sheaf_records *one;
	assert_int_equal(sheaf_session_get(&one, s, SHEAF_STR("e3"), &k.err), 0);
	assert_int_equal(one->items[0]->message->parts[0]->text.len, sizes[3]);
	sheaf_records_free(one);
	kit_path(&k, s, line, sizeof(line));
	assert_string_equal(line, "e");
	sheaf_session_close(s);
	assert_int_equal(kit_try(&k, path, NULL), 0);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
	buf_lit(&text, ENTRY("z", "\"e\"", "more"));
	file_make(&k, text.ptr, text.len);
	assert_int_equal(kit_try(&k, path, NULL), 0);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_GROWN);
	assert_int_equal(k.report->sessions[0]->records, 1);
	same(&k, "pi.s1");
	kit_close(&k);
}

static void test_no_session(void **state)
{
	(void)state;
	kit k;
	sheaf_import_options how = SHEAF_IMPORT_OPTIONS_INIT;
	kit_open(&k);
	file_make(&k, "", 0);
	assert_int_equal(kit_try(&k, path, NULL), SHEAF_FORMAT);
	file_make(&k, "{}\n", 3);
	assert_int_equal(kit_try(&k, path, NULL), SHEAF_FORMAT);
	assert_int_equal(kit_try(&k, kit_dir(&k), NULL), 0);
	assert_int_equal(k.report->skipped_count, 1);
	assert_int_equal(kit_try(&k, "/nowhere/at/all", NULL), SHEAF_NOT_FOUND);
	how.format = SHEAF_STR("nothing");
	assert_int_equal(kit_try(&k, path, &how), SHEAF_INVALID);
	/* Told that it is one, it is kept under the file's name, and what is wrong is said. */
	how.format = SHEAF_STR("pi");
	assert_int_equal(kit_try(&k, path, &how), 0);
	assert_int_equal(k.report->session_count, 1);
	assert_str(k.report->sessions[0]->key.session, "pi.x");
	assert_int_equal(k.report->sessions[0]->kept, 1);
	assert_int_equal(k.report->problem_total, 1);
	kit_close(&k);
}

/* Told that it is one, what has nothing in it is said to be so; and said again the next time. */
static void test_nothing(void **state)
{
	(void)state;
	static const char *const texts[] = {"", "\n", "  ", "\0\0\0", "{", "[", "{\"a\":"};
	const sheaf_converter *c;
	for (size_t i = 0; (c = sheaf_converter_at(i)) != NULL; i++) {
		for (size_t t = 0; c->imports && t < COUNT_OF(texts); t++) {
			kit k;
			sheaf_import_options how = SHEAF_IMPORT_OPTIONS_INIT;
			how.format = sheaf_str_of(c->name);
			kit_open(&k);
			file_make(&k, texts[t], t == 3 ? 3 : strlen(texts[t]));
			assert_int_equal(kit_try(&k, path, &how), 0);
			size_t n = k.report->session_count;
			bool waits = n == 1 && k.report->sessions[0]->partial;
			if (k.report->problem_total == 0 && !waits)
				print_error("%s: %s (%zu)\n", c->name, texts[t], t);
			assert_true(k.report->problem_total != 0 || waits);
			if (!waits)
				assert_str(k.report->problems[0]->file, path);
			file_make(&k, texts[t], t == 3 ? 3 : strlen(texts[t]));
			assert_int_equal(kit_try(&k, path, &how), 0);
			assert_int_equal(k.report->session_count, n);
			if (n != 0)
				assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);
			kit_close(&k);
		}
	}
}

static void test_dry_run(void **state)
{
	(void)state;
	kit k;
	sheaf_import_options how = SHEAF_IMPORT_OPTIONS_INIT;
	sheaf_key key = sheaf_key_of("pi.s1");
	sheaf_session *s = NULL;
	sheaf_session_options open = SHEAF_SESSION_OPTIONS_INIT;
	kit_open(&k);
	file_make(&k, FIRST, strlen(FIRST));
	how.dry_run = 1;
	assert_int_equal(kit_try(&k, path, &how), 0);
	assert_int_equal(k.report->sessions[0]->pieces, 3);
	assert_int_equal(k.report->sessions[0]->records, 3);
	open.mode = SHEAF_OPEN_EXISTING;
	assert_int_equal(sheaf_session_open(&s, k.store, &key, &open, &k.err), SHEAF_NOT_FOUND);
	kit_close(&k);
}

/* Whatever cannot be had, nothing is left behind, and the next import completes it. */
static void test_out_of_memory(void **state)
{
	(void)state;
	static const char text[] = FIRST ENTRY("c", "\"b\"", "br\\ud800oken") "no JSON\n";
	kit k;
	memset(&k, 0, sizeof(k));
	file_make(&k, text, strlen(text));
	for (size_t n = 1;; n++) {
		sheaf_store *store = NULL;
		sheaf_import_report *report = NULL;
		sheaf_error err;
		fail_alloc_install();
		assert_int_equal(sheaf_open(&store, "memory:", NULL, &err), 0);
		fail_alloc_at(n, n % 2 == 0);
		int rc = sheaf_import(&report, store, sheaf_str_of(path), NULL, &err);
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		sheaf_import_report_free(report);
		if (hit && rc != SHEAF_NOMEM)
			print_error("allocation %zu\n", n);
		assert_int_equal(rc, hit ? SHEAF_NOMEM : 0);
		report = NULL;
		assert_int_equal(sheaf_import(&report, store, sheaf_str_of(path), NULL, &err), 0);
		assert_int_equal(report->session_count, 1);
		sheaf_import_report_free(report);

		sheaf_session *s = NULL;
		sheaf_key key = sheaf_key_of("pi.s1");
		sheaf_export_report *written = NULL;
		sheaf_export_options as = SHEAF_EXPORT_OPTIONS_INIT;
		buf out = BUF_INIT(KIT_BYTES_MAX);
		as.format = SHEAF_STR("pi");
		assert_int_equal(sheaf_session_open(&s, store, &key, NULL, &err), 0);
		fail_alloc_at(n, n % 2 == 0);
		rc = sheaf_export(&written, s, &as, kit_write, &out, &err);
		bool hit_too = fail_alloc_hit();
		fail_alloc_at(0, false);
		if (hit_too) {
			assert_int_equal(rc, SHEAF_NOMEM);
		} else {
			assert_int_equal(rc, 0);
			assert_int_equal(out.len, strlen(text));
			assert_memory_equal(out.ptr, text, out.len);
			sheaf_export_report_free(written);
		}
		buf_free(&out);
		sheaf_session_close(s);
		sheaf_close(store);
		assert_int_equal(fail_alloc_live(), 0);
		fail_alloc_remove();
		if (!hit && !hit_too)
			break;
	}
	kit_open(&k);
	kit_close(&k);
}

/* An import that broke off anywhere is completed by the next, also if the file has grown since. */
static void test_interrupted(void **state)
{
	(void)state;
	static const char text[] = FIRST ENTRY("c", "\"b\"", "three");
	static const char grown[] = FIRST ENTRY("c", "\"b\"", "three") ENTRY("d", "\"c\"", "four");
	for (size_t n = 1, hit = 1; hit != 0; n++) {
		kit k;
		fail_alloc_install();
		kit_open(&k);
		file_make(&k, text, strlen(text));
		fail_alloc_at(n, true);
		int rc = kit_try(&k, path, NULL);
		hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		assert_int_equal(rc, hit ? SHEAF_NOMEM : 0);
		file_write(path, grown, strlen(grown));
		kit_import(&k, path);
		same(&k, "pi.s1");
		sheaf_session *s = kit_session(&k, "pi.s1");
		char line[256];
		kit_path(&k, s, line, sizeof(line));
		assert_string_equal(line, "a b c d");
		sheaf_session_close(s);
		kit_close(&k);
		fail_alloc_remove();
	}
}

typedef struct told {
	pthread_t thread;
	size_t count;
	char last[64]; /* the file told of before */
} told;

static void on_told(void *ctx, const sheaf_imported *session)
{
	told *t = ctx;
	char file[64];
	assert_true(pthread_equal(t->thread, pthread_self()));
	(void)snprintf(file, sizeof(file), "%s", strrchr(session->file.ptr, '/'));
	assert_true(strcmp(t->last, file) < 0);
	memcpy(t->last, file, sizeof(file));
	t->count++;
}

/* Several at a time is the same as one after the other: told in order, and two files of one session
 * do not get in each other's way. */
static void test_threads(void **state)
{
	(void)state;
	enum {
		FILES = 600
	};
	kit k;
	kit_open(&k);
	for (int i = 0; i < FILES; i++) {
		char file[128];
		static char text[(3 << 20) + 1024];
		/* Of ten files nine are of one session each; the tenth says what the ninth does, and the
		 * sixth has the id of the fifth and less to say. */
		int id = i % 10 == 9 || i % 10 == 5 ? i - 1 : i;
		(void)snprintf(file, sizeof(file), "%s/%04d.jsonl", kit_dir(&k), i);
		/* The fifth takes a while until its id is known. */
		(void)snprintf(text, sizeof(text),
		               "{\"type\":\"session\",\"version\":3,\"id\":\"s%d\",\"timestamp\":"
		               "\"2026-11-14T22:58:25.886Z\",\"cwd\":\"/p\",\"pad\":\"%*s\"}\n%s",
		               id, i == 4 ? 3 << 20 : 0, "",
		               i % 10 == 5 ? ENTRY("c", "null", "three")
		                           : ENTRY("a", "null", "one") ENTRY("b", "\"a\"", "two"));
		file_write(file, text, strlen(text));
	}
	told t = {.thread = pthread_self()};
	sheaf_import_options how = SHEAF_IMPORT_OPTIONS_INIT;
	how.threads = 4;
	how.on_session = on_told;
	how.ctx = &t;
	assert_int_equal(kit_try(&k, kit_dir(&k), &how), 0);
	assert_int_equal(t.count, FILES);
	assert_int_equal(k.report->session_count, FILES);
	assert_int_equal(k.report->file_count, FILES);
	assert_int_equal(k.report->problem_total, 0);
	size_t fresh = 0;
	for (size_t i = 0; i < FILES; i++) {
		fresh += k.report->sessions[i]->state == SHEAF_IMPORT_NEW;
		sheaf_session *s = kit_imported(&k, i);
		char line[256];
		kit_path(&k, s, line, sizeof(line));
		/* Whichever thread is faster, the first file has the plain id. */
		assert_string_equal(line, i % 10 == 5 ? "c" : "a b");
		sheaf_str id = k.report->sessions[i]->key.session;
		assert_int_equal(id.ptr[id.len - 2] == '~', i % 10 == 5);
		sheaf_session_close(s);
	}
	assert_int_equal(fresh, FILES / 10 * 9);
	kit_close(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_again),           cmocka_unit_test(test_grown),
		cmocka_unit_test(test_cut_in_a_line),   cmocka_unit_test(test_changed),
		cmocka_unit_test(test_damaged),         cmocka_unit_test(test_large),
		cmocka_unit_test(test_leaf_of_refused), cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_ids_made_here),   cmocka_unit_test(test_blanks),
		cmocka_unit_test(test_no_session),      cmocka_unit_test(test_dry_run),
		cmocka_unit_test(test_out_of_memory),   cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
