/*
 * Files that are hurt: cut anywhere, with bytes changed anywhere. Importing them
 * never fails for that, and what was in them comes out again.
 */
#ifndef TESTS_CONVERT_HURT_KIT_H
#define TESTS_CONVERT_HURT_KIT_H

#include "support/fail_alloc.h"
#include "unit/convert/convert_kit.h"

static uint64_t hurt_seed;

static UNUSED size_t hurt_random(size_t below)
{
	hurt_seed ^= hurt_seed << 13;
	hurt_seed ^= hurt_seed >> 7;
	hurt_seed ^= hurt_seed << 17;
	return (size_t)(hurt_seed % below);
}

/* What is exported is the file, but for a last line that is not whole, or a file with no session. */
static void hurt_check(kit *k, const char *format, const char *path)
{
	_cleanup_(buf_free) buf out = BUF_INIT(KIT_BYTES_MAX);
	sheaf_export_report *report = NULL;
	sheaf_import_options how = SHEAF_IMPORT_OPTIONS_INIT;
	size_t len;
	how.format = sheaf_str_of(format);
	int rc = kit_try(k, path, &how);
	if (rc != 0)
		print_error("%s\n", k->err.message);
	assert_int_equal(rc, 0);
	char *file = file_read(path, &len);
	if (k->report->session_count != 0) {
		sheaf_session *s = kit_imported(k, k->report->session_count - 1);
		assert_int_equal(kit_export(k, s, format, &out, &report), 0);
		assert_int_equal(report->verbatim, 1);
		sheaf_export_report_free(report);
		sheaf_session_close(s);
	}
	if (memchr(file + out.len, '\n', len - out.len) != NULL || out.len > len ||
	    memcmp(out.len != 0 ? out.ptr : "", file, out.len) != 0) {
		for (size_t i = 0; i < k->report->problem_count; i++)
			print_error("line %llu: %s\n",
			            (unsigned long long)k->report->problems[i]->line,
			            k->report->problems[i]->text.ptr);
		print_error("%zu sessions, %zu bytes of %zu came back\n", k->report->session_count,
		            out.len, len);
	}
	assert_true(out.len <= len);
	assert_memory_equal(out.len != 0 ? out.ptr : "", file, out.len);
	assert_null(memchr(file + out.len, '\n', len - out.len));
	if (len != out.len)
		assert_true(k->report->session_count == 0 || k->report->sessions[0]->partial);
	free(file);
}

static UNUSED void hurt_file(const char *format, const char *from, const char *name, size_t times)
{
	size_t len;
	char *whole = file_read(from, &len);
	hurt_seed = 88172645463325252U;
	for (size_t i = 0; i < times; i++) {
		kit k;
		char path[256];
		kit_open(&k);
		(void)snprintf(path, sizeof(path), "%s/%s", kit_dir(&k), name);
		size_t cut = i % 2 == 0 ? hurt_random(len) : len;
		char *hurt = malloc(len);
		assert_non_null(hurt);
		memcpy(hurt, whole, len);
		for (size_t n = i % 2 == 0 ? 0 : 1 + hurt_random(6); n > 0; n--)
			hurt[hurt_random(len)] = (char)hurt_random(256);
		file_write(path, hurt, cut);
		free(hurt);
		hurt_check(&k, format, path);
		kit_close(&k);
	}
	free(whole);
}

/* Every allocation fails once: importing says so, loses nothing it has, and goes on next time. */
static UNUSED void hurt_memory(const char *format, const char *path, size_t step)
{
	for (size_t n = 1;; n += step) {
		kit k;
		fail_alloc_install();
		kit_open(&k);
		fail_alloc_at(n, false);
		int rc = kit_try(&k, path, NULL);
		bool hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		if (hit && rc != 0)
			assert_int_equal(rc, SHEAF_NOMEM);
		kit_import(&k, path);
		sheaf_session *s = kit_imported(&k, k.report->session_count - 1);
		kit_same(&k, s, format, path);
		sheaf_session_close(s);
		kit_close(&k);
		assert_int_equal(fail_alloc_live(), 0);
		fail_alloc_remove();
		if (!hit)
			break;
	}
}

#endif
