/*
 * A log of 60 records cut at every byte and with every bit flipped.
 *
 * Cut: what is served is exactly the complete batches, the torn bytes are kept,
 * the next append lands and survives. Flipped: always reported, or provably
 * harmless; never a silent loss.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sheaf.h"
#include "support/files.h"
#include "support/play.h"

#define RECORDS 60

static char *original;
static size_t original_len;
static size_t header_end;
static size_t line_start[RECORDS + 1]; /* of record i; the last is the end of the file */
static size_t batch_end[RECORDS];      /* records complete once record i's batch is: up to here */

static sheaf_error err;

/* Singles, batches of up to five, facts and entries. */
static void make_original(void)
{
	char dir[256], url[300], path[320], text[200];
	sheaf_store *store;
	sheaf_session *s;
	sheaf_key key = sheaf_key_of("s");
	size_t made = 0;

	scratch_dir(dir, "cut");
	snprintf(url, sizeof(url), "jsonl:%s", dir);
	snprintf(path, sizeof(path), "%s/s.jsonl", dir);
	assert_int_equal(sheaf_open(&store, url, NULL, &err), 0);
	assert_int_equal(sheaf_session_open(&s, store, &key, NULL, &err), 0);
	for (size_t round = 0; made < RECORDS; round++) {
		size_t n = round % 3 == 2 ? 2 + round % 4 : 1;
		if (n > RECORDS - made)
			n = RECORDS - made;
		sheaf_batch *b = sheaf_batch_new();
		for (size_t i = 0; i < n; i++) {
			sheaf_message *m = sheaf_message_new((made + i) % 2 ? "assistant" : "user");
			snprintf(text, sizeof(text), "r%zu \"q\" \n caf\xc3\xa9 %.*s", made + i,
			         (int)(made % 40), "........................................");
			sheaf_message_text(m, sheaf_str_of(text));
			assert_int_equal(sheaf_batch_message(b, m, NULL, &err), 0);
			sheaf_message_free(m);
		}
		assert_int_equal(sheaf_session_append_batch(s, b, NULL, NULL, &err), 0);
		sheaf_batch_free(b);
		for (size_t i = 0; i < n; i++)
			batch_end[made + i] = made + n;
		made += n;
	}
	sheaf_session_close(s);
	sheaf_close(store);
	original = file_read(path, &original_len);
	header_end = (size_t)(strchr(original, '\n') - original) + 1;
	size_t at = header_end;
	for (size_t i = 0; i < RECORDS; i++) {
		line_start[i] = at;
		at = (size_t)(strchr(original + at, '\n') - original) + 1;
	}
	line_start[RECORDS] = at;
	assert_int_equal(at, original_len);
	tree_remove(dir);
}

/* How many records a file cut to `len` bytes must serve. */
static size_t complete(size_t len)
{
	size_t whole = 0;
	/* A last line without its line break counts. */
	while (whole < RECORDS && line_start[whole + 1] - 1 <= len)
		whole++;
	while (whole && batch_end[whole - 1] > whole)
		whole--;
	return whole;
}

/* Every record served must be the original's bytes. Returns how many. */
static size_t served(sheaf_session *s, size_t *damaged)
{
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	sheaf_records *r;
	size_t n = 0;

	o.raw = 1;
	o.limit = 1000;
	*damaged = 0;
	assert_int_equal(sheaf_session_records(&r, s, &o, &err), 0);
	for (size_t i = 0; i < r->count; i++) {
		const sheaf_entry *e = r->items[i];
		if (e->damaged) {
			(*damaged)++;
			continue;
		}
		assert_true(e->seq >= 1 && e->seq <= RECORDS);
		size_t from = line_start[e->seq - 1];
		assert_int_equal(e->line.len, line_start[e->seq] - 1 - from);
		assert_memory_equal(e->line.ptr, original + from, e->line.len);
		n++;
	}
	sheaf_records_free(r);
	return n;
}

static void drop_side(const char *dir)
{
	char path[400];
	snprintf(path, sizeof(path), "%s/.sheaf", dir);
	tree_remove(path);
	snprintf(path, sizeof(path), "%s/.kept", dir);
	tree_remove(path);
}

/* The one kept file must hold exactly what was cut away. */
static void assert_kept(const char *dir, const char *name, const char *bytes, size_t len)
{
	char path[700];
	size_t have;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	char *kept = file_read(path, &have);
	assert_int_equal(have, len);
	assert_memory_equal(kept, bytes, len);
	free(kept);
}

static void cut_at(const char *dir, const char *url, const char *path, size_t len)
{
	sheaf_store *store;
	sheaf_session *s;
	sheaf_key key = sheaf_key_of("s");
	sheaf_head_view *h;
	size_t want = complete(len), damaged;

	drop_side(dir);
	file_write(path, original, len);
	assert_int_equal(sheaf_open(&store, url, NULL, &err), 0);
	int rc = sheaf_session_open(&s, store, &key, NULL, &err);
	if (len < header_end) {
		size_t after;
		assert_int_equal(rc, SHEAF_DAMAGED);
		char *bytes = file_read(path, &after);
		assert_int_equal(after, len);
		assert_memory_equal(bytes, original, len);
		free(bytes);
		sheaf_close(store);
		return;
	}
	assert_int_equal(rc, 0);
	assert_int_equal(served(s, &damaged), want);
	assert_int_equal(damaged, 0);
	assert_int_equal(sheaf_session_head(&h, s, &err), 0);
	size_t end = line_start[want];
	if (len > end) {
		assert_int_equal(h->torn_bytes, len - end);
		assert_kept(dir, h->torn_file.ptr, original + end, len - end);
	} else {
		assert_int_equal(h->torn_bytes, 0);
	}
	sheaf_head_view_free(h);
	sheaf_appended a = SHEAF_APPENDED_INIT;
	assert_int_equal(sheaf_session_append_text(s, "user", sheaf_str_of("next"), &a, &err), 0);
	assert_int_equal(a.seq, want + 1);
	sheaf_session_close(s);
	sheaf_close(store);

	assert_int_equal(sheaf_open(&store, url, NULL, &err), 0);
	assert_int_equal(sheaf_session_open(&s, store, &key, NULL, &err), 0);
	assert_int_equal(sheaf_session_head(&h, s, &err), 0);
	assert_int_equal(h->info->revision, want + 1);
	assert_int_equal(h->torn_bytes, 0);
	assert_false(h->damaged);
	sheaf_head_view_free(h);
	sheaf_session_close(s);
	sheaf_close(store);
}

static void cut_at_every_byte(void **state)
{
	char dir[256], url[300], path[320];
	size_t stride = test_scale() < 1 ? (size_t)(1 / test_scale()) : 1;
	(void)state;
	scratch_dir(dir, "cut");
	snprintf(url, sizeof(url), "jsonl:%s", dir);
	snprintf(path, sizeof(path), "%s/s.jsonl", dir);
	for (size_t len = 0; len <= original_len; len += stride)
		cut_at(dir, url, path, len);
	tree_remove(dir);
}

/* True if the flip was reported, or everything is served as it was. */
static bool flip_shows(const char *url)
{
	sheaf_store *store;
	sheaf_session *s;
	sheaf_key key = sheaf_key_of("s");
	sheaf_head_view *h;
	size_t damaged;

	assert_int_equal(sheaf_open(&store, url, NULL, &err), 0);
	int rc = sheaf_session_open(&s, store, &key, NULL, &err);
	if (rc) {
		sheaf_close(store);
		/* A first line that is no header any more is refused, not taken for an empty file. */
		return rc == SHEAF_DAMAGED || rc == SHEAF_FORMAT;
	}
	size_t n = served(s, &damaged);
	assert_int_equal(sheaf_session_head(&h, s, &err), 0);
	bool reported = h->damaged || h->torn_bytes || damaged || h->readonly;
	sheaf_head_view_free(h);
	sheaf_session_close(s);
	sheaf_close(store);
	return reported || n == RECORDS;
}

static void flip_range(size_t from, size_t to)
{
	char dir[256], url[300], path[320];
	size_t stride = test_scale() < 1 ? (size_t)(1 / test_scale()) : 1;
	char *copy = malloc(original_len);

	scratch_dir(dir, "flip");
	snprintf(url, sizeof(url), "jsonl:%s", dir);
	snprintf(path, sizeof(path), "%s/s.jsonl", dir);
	memcpy(copy, original, original_len);
	for (size_t bit = from * 8; bit < to * 8; bit += stride) {
		copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << (bit % 8)));
		drop_side(dir);
		file_write(path, copy, original_len);
		if (!flip_shows(url))
			fail_msg("bit %zu of byte %zu flipped in silence", bit % 8, bit / 8);
		copy[bit / 8] = original[bit / 8];
	}
	free(copy);
	tree_remove(dir);
}

/* Two processes share the bits. */
static void flip_every_bit(void **state)
{
	int status;
	(void)state;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		flip_range(0, original_len / 2);
		_exit(0);
	}
	flip_range(original_len / 2, original_len);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(flip_every_bit),
	};
	make_original();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(original);
	return failed;
}
