/* Codex's rollouts: two generations, forks by copy and by reference, compressed files. */
#include <zstd.h>

#include "sheaf/usage.h"
#include "unit/convert/hurt_kit.h"
#include "unit/convert/wire_kit.h"

#define OLD KIT_DATA "codex/0.135.0/sessions/2026/11/14/"
#define NEW KIT_DATA "codex/0.166.0/sessions/2026/11/14/"
#define OLD_MAIN OLD "rollout-2026-11-14T23-06-05-01a1dc4f-9557-7792-a2b4-583aecbc89a6.jsonl"
#define OLD_FORK OLD "rollout-2026-11-14T23-07-04-01a1dc50-7a12-7ff1-bcb0-049c3ac9c1bf.jsonl"
#define NEW_MAIN NEW "rollout-2026-11-14T22-59-50-01a1dc49-dd38-7103-bd23-2ca2f89caecb.jsonl"
#define NEW_FORK NEW "rollout-2026-11-14T23-02-53-01a1dc4c-a58b-7a91-bc09-1eed8ffc41cb.jsonl"
#define OLD_MAIN_ID "codex.01a1dc4f-9557-7792-a2b4-583aecbc89a6"
#define OLD_FORK_ID "codex.01a1dc50-7a12-7ff1-bcb0-049c3ac9c1bf"
#define NEW_MAIN_ID "codex.01a1dc49-dd38-7103-bd23-2ca2f89caecb"
#define NEW_FORK_ID "codex.01a1dc4c-a58b-7a91-bc09-1eed8ffc41cb"

static const struct rollout {
	const char *file, *id;
	uint64_t replies; /* that are its own; each is 1200 tokens in, of which 1024 were cached */
} rollouts[] = {
	{OLD_MAIN, OLD_MAIN_ID, 12},
	{OLD_FORK, OLD_FORK_ID, 3},
	{NEW_MAIN, NEW_MAIN_ID, 12},
	{NEW_FORK, NEW_FORK_ID, 3},
};

static void test_round_trip(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_import(&k, KIT_DATA "codex");
	assert_int_equal(k.report->session_count, 4);
	assert_int_equal(k.report->skipped_count, 0);
	for (size_t i = 0; i < COUNT_OF(rollouts); i++) {
		sheaf_session *s = kit_session(&k, rollouts[i].id);
		kit_same(&k, s, "codex", rollouts[i].file);
		sheaf_session_close(s);
	}
	kit_import(&k, KIT_DATA "codex");
	assert_int_equal(k.report->session_count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(k.report->sessions[i]->state, SHEAF_IMPORT_SAME);
		assert_int_equal(k.report->sessions[i]->records, 0);
	}
	kit_close(&k);
}

/* Tokens as Codex counts them: those of a fork without what it took over. */
static void test_usage(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_import(&k, KIT_DATA "codex");
	for (size_t i = 0; i < COUNT_OF(rollouts); i++) {
		const uint64_t n = rollouts[i].replies;
		sheaf_usage_options how = SHEAF_USAGE_OPTIONS_INIT;
		sheaf_usage_report *report;
		sheaf_session *s = kit_session(&k, rollouts[i].id);
		how.by = SHEAF_USAGE_BY_MODEL;
		assert_int_equal(sheaf_session_usage(&report, s, &how, &k.err), 0);
		const sheaf_usage *u = &report->own.tokens;
		assert_int_equal(u->input, n * 176);
		assert_int_equal(u->cache_read, n * 1024);
		assert_int_equal(u->output, n * 50);
		assert_int_equal(u->reasoning, n * 10);
		assert_int_equal(report->count, 1);
		assert_str(report->rows[0]->key, "gpt-5.1-codex");
		sheaf_usage_report_free(report);
		sheaf_session_close(s);
	}
	kit_close(&k);
}

static const wire requests[] = {
	{"openai-responses-codex-0.135-parallel-tools", SHEAF_FORMAT_OPENAI_RESPONSES, "stub",
         "line-42", 0, 0, 0, 0, 0},
	/* Its last message asks for the summary. */
	{"openai-responses-codex-0.135-last", SHEAF_FORMAT_OPENAI_RESPONSES, "stub", "line-119", 0,
         2, 0, 0, 0},
	{"openai-responses-codex-0.166", SHEAF_FORMAT_OPENAI_RESPONSES, "stub",
         "ordinal-152-1eed8ffc41cb", 1, 0, 0, 0, 0},
};

static void test_wire(void **state)
{
	(void)state;
	static const char *const of[] = {OLD_MAIN_ID, OLD_FORK_ID, NEW_FORK_ID};
	kit k;
	kit_open(&k);
	kit_import(&k, KIT_DATA "codex");
	for (size_t i = 0; i < COUNT_OF(requests); i++) {
		sheaf_session *s = kit_session(&k, of[i]);
		wire_same(s, &requests[i]);
		sheaf_session_close(s);
	}
	kit_close(&k);
}

static void check_fork(kit *k, const char *id, const char *parent, const char *cwd)
{
	sheaf_head_view *head;
	sheaf_session *s = kit_session(k, id);
	assert_int_equal(sheaf_session_head(&head, s, &k->err), 0);
	assert_str(head->info->parent_session, parent);
	assert_str(head->info->cwd, cwd);
	sheaf_head_view_free(head);
	sheaf_session_close(s);
}

/* A fork that refers to another file brings that in, wherever it is found. */
static void test_forks(void **state)
{
	(void)state;
	kit k;
	kit_open(&k);
	kit_import(&k, NEW_FORK);
	assert_int_equal(k.report->session_count, 2);
	assert_str(k.report->sessions[0]->key.session, NEW_MAIN_ID);
	assert_str(k.report->sessions[1]->key.session, NEW_FORK_ID);
	check_fork(&k, NEW_FORK_ID, NEW_MAIN_ID, "/home/user/account/proj");
	sheaf_session *s = kit_session(&k, NEW_FORK_ID);
	wire_same(s, &requests[2]);
	sheaf_session_close(s);
	kit_import(&k, OLD_FORK);
	check_fork(&k, OLD_FORK_ID, OLD_MAIN_ID, "/home/user/project");
	kit_close(&k);
}

/* Without the other file the fork is what it has itself. */
static void test_fork_alone(void **state)
{
	(void)state;
	kit k;
	size_t len;
	char path[256];
	kit_open(&k);
	(void)snprintf(path, sizeof(path), "%s/rollout.jsonl", kit_dir(&k));
	char *file = file_read(NEW_FORK, &len);
	file_write(path, file, len);
	free(file);
	assert_int_equal(kit_try(&k, path, NULL), 0);
	assert_int_equal(k.report->problem_total, 1);
	assert_int_equal(k.report->problems[0]->line, 1);
	check_fork(&k, NEW_FORK_ID, NEW_MAIN_ID, "/home/user/account/proj");
	sheaf_session *s = kit_session(&k, NEW_FORK_ID);
	kit_same(&k, s, "codex", NEW_FORK);
	sheaf_session_close(s);
	kit_close(&k);
}

/* What was taken back is not on the path, but still there. */
static void test_rollback(void **state)
{
	(void)state;
	kit k;
	sheaf_records *children;
	kit_open(&k);
	kit_import(&k, OLD_FORK);
	sheaf_session *s = kit_session(&k, OLD_FORK_ID);
	assert_int_equal(sheaf_session_children(&children, s, SHEAF_STR("line-119"), &k.err), 0);
	assert_int_equal(children->count, 2);
	assert_int_equal(children->items[0]->kind, SHEAF_KIND_MESSAGE);
	assert_int_equal(children->items[1]->kind, SHEAF_KIND_COMPACTION);
	sheaf_records_free(children);
	sheaf_session_close(s);
	kit_close(&k);
}

/* Lines as they come: each import takes what is new, and the end is the same. */
static void test_growing(void **state)
{
	(void)state;
	kit k;
	size_t len;
	char path[256];
	kit_open(&k);
	(void)snprintf(path, sizeof(path), "%s/rollout.jsonl", kit_dir(&k));
	char *file = file_read(OLD_FORK, &len);
	for (size_t at = 0, step = 997; at < len; at += step) {
		file_append(path, file + at, at + step < len ? step : len - at);
		int rc = kit_try(&k, path, NULL);
		assert_true(rc == 0);
		assert_int_equal(k.report->problem_total, 0);
	}
	sheaf_session *s = kit_session(&k, OLD_FORK_ID);
	kit_same(&k, s, "codex", OLD_FORK);
	wire_same(s, &requests[1]);
	sheaf_session_close(s);
	free(file);
	kit_close(&k);
}

static void pack(const char *path, const char *bytes, size_t len, size_t cut)
{
	size_t room = ZSTD_compressBound(len);
	char *packed = malloc(room);
	assert_non_null(packed);
	size_t n = ZSTD_compress(packed, room, bytes, len, 3);
	assert_false(ZSTD_isError(n));
	file_write(path, packed, n - cut);
	free(packed);
}

/* The same rollout compressed later on is the same session. */
static void test_compressed(void **state)
{
	(void)state;
	kit k;
	size_t len;
	char path[256];
	kit_open(&k);
	(void)snprintf(path, sizeof(path), "%s/rollout.jsonl.zst", kit_dir(&k));
	char *file = file_read(OLD_MAIN, &len);
	pack(path, file, len, 0);
	kit_import(&k, path);
	sheaf_session *s = kit_session(&k, OLD_MAIN_ID);
	kit_same(&k, s, "codex", OLD_MAIN);
	wire_same(s, &requests[0]);
	sheaf_session_close(s);
	kit_import(&k, OLD_MAIN);
	assert_int_equal(k.report->sessions[0]->state, SHEAF_IMPORT_SAME);

	/* Damaged: what can be unpacked is taken, and the rest is a problem. */
	size_t packed_len;
	char *packed = file_read(path, &packed_len);
	memset(packed + packed_len / 2, 0xff, 64);
	file_write(path, packed, packed_len);
	assert_int_equal(kit_try(&k, path, NULL), 0);
	free(packed);
	free(file);
	kit_close(&k);
}

static void test_hurt(void **state)
{
	(void)state;
	hurt_file("codex", OLD_FORK, "rollout.jsonl", 150);
	hurt_file("codex", NEW_MAIN, "rollout.jsonl", 50);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	hurt_memory("codex", OLD_FORK, 23);
	hurt_memory("codex", NEW_FORK, 41);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_usage),
		cmocka_unit_test(test_wire),       cmocka_unit_test(test_forks),
		cmocka_unit_test(test_fork_alone), cmocka_unit_test(test_rollback),
		cmocka_unit_test(test_growing),    cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_hurt),       cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
