/*
 * What the tests of converters share: importing a file of tests/data/import into
 * a store in memory, exporting into memory, comparing.
 */
#ifndef TESTS_CONVERT_KIT_H
#define TESTS_CONVERT_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "sheaf/context.h"
#include "sheaf/convert.h"
#include "support/fail_alloc.h"
#include "support/files.h"

#define KIT_DATA SHEAF_TEST_DATA "/import/"
#define KIT_BYTES_MAX ((size_t)1 << 30)

typedef struct kit {
	sheaf_store *store;
	sheaf_import_report *report; /* of the last kit_import() */
	sheaf_error err;
	char dir[64]; /* for files a test makes; "" until kit_dir() */
} kit;

#define assert_str(s, literal)                                                                     \
	do {                                                                                       \
		char text_[4096];                                                                  \
		(void)snprintf(text_, sizeof(text_), "%.*s", (int)(s).len,                         \
		               (s).ptr != NULL ? (s).ptr : "");                                    \
		assert_string_equal(text_, literal);                                               \
	} while (0)

static UNUSED void kit_open(kit *k)
{
	memset(k, 0, sizeof(*k));
	assert_int_equal(sheaf_open(&k->store, "memory:", NULL, &k->err), 0);
}

static UNUSED void kit_close(kit *k)
{
	sheaf_import_report_free(k->report);
	sheaf_close(k->store);
	if (k->dir[0] != '\0') {
		char command[128];
		(void)snprintf(command, sizeof(command), "rm -rf %s", k->dir);
		assert_int_equal(system(command), 0);
	}
}

static UNUSED const char *kit_dir(kit *k)
{
	if (k->dir[0] == '\0') {
		(void)snprintf(k->dir, sizeof(k->dir), "/tmp/sheaf-import-XXXXXX");
		assert_non_null(mkdtemp(k->dir));
	}
	return k->dir;
}

static UNUSED int kit_try(kit *k, const char *path, const sheaf_import_options *how)
{
	sheaf_import_report_free(k->report);
	k->report = NULL;
	return sheaf_import(&k->report, k->store, sheaf_str_of(path), how, &k->err);
}

/* Imports without any problem. */
static UNUSED void kit_import(kit *k, const char *path)
{
	int rc = kit_try(k, path, NULL);
	if (rc != 0)
		print_error("%s: %s\n", path, k->err.message);
	assert_int_equal(rc, 0);
	for (size_t i = 0; i < k->report->problem_count; i++)
		print_error("%.*s:%llu: %s\n", (int)k->report->problems[i]->file.len,
		            k->report->problems[i]->file.ptr,
		            (unsigned long long)k->report->problems[i]->line,
		            k->report->problems[i]->text.ptr);
	assert_int_equal(k->report->problem_total, 0);
}

static UNUSED sheaf_session *kit_session(kit *k, const char *id)
{
	sheaf_session *s = NULL;
	sheaf_key key = sheaf_key_of(id);
	sheaf_session_options how = SHEAF_SESSION_OPTIONS_INIT;
	how.mode = SHEAF_OPEN_EXISTING;
	int rc = sheaf_session_open(&s, k->store, &key, &how, &k->err);
	if (rc != 0)
		print_error("%s: %s\n", id, k->err.message);
	assert_int_equal(rc, 0);
	return s;
}

/* The session the import at hand says it made of its first file. */
static UNUSED sheaf_session *kit_imported(kit *k, size_t i)
{
	assert_true(i < k->report->session_count);
	return kit_session(k, k->report->sessions[i]->key.session.ptr);
}

static int kit_write(void *ctx, sheaf_str bytes)
{
	buf *out = ctx;
	buf_str(out, bytes);
	return out->status;
}

static UNUSED int kit_export(kit *k, sheaf_session *s, const char *format, buf *out,
                             sheaf_export_report **report)
{
	sheaf_export_options how = SHEAF_EXPORT_OPTIONS_INIT;
	how.format = sheaf_str_of(format);
	return sheaf_export(report, s, &how, kit_write, out, &k->err);
}

/* The session exported to a format is what is in the file, byte for byte. */
static UNUSED void kit_same(kit *k, sheaf_session *s, const char *format, const char *path)
{
	_cleanup_(buf_free) buf out = BUF_INIT(KIT_BYTES_MAX);
	sheaf_export_report *report = NULL;
	size_t len;
	char *file = file_read(path, &len);
	int rc = kit_export(k, s, format, &out, &report);
	if (rc != 0)
		print_error("%s: %s\n", path, k->err.message);
	assert_int_equal(rc, 0);
	assert_int_equal(report->verbatim, 1);
	assert_int_equal(report->loss_count, 0);
	size_t same = 0;
	while (same < len && same < out.len && file[same] == out.ptr[same])
		same++;
	if (same != len || same != out.len)
		print_error("%s: differs at byte %zu of %zu (%zu were written)\n", path, same, len,
		            out.len);
	assert_int_equal(out.len, len);
	assert_int_equal(same, len);
	sheaf_export_report_free(report);
	free(file);
}

/* Imports a file and exports it again. */
static UNUSED void kit_round(const char *path, const char *format)
{
	kit k;
	kit_open(&k);
	kit_import(&k, path);
	assert_int_equal(k.report->session_count, 1);
	sheaf_session *s = kit_imported(&k, 0);
	kit_same(&k, s, format, path);
	sheaf_session_close(s);
	kit_close(&k);
}

/* The path to the leaf as ids, one behind the other. */
static UNUSED void kit_path(kit *k, sheaf_session *s, char *out, size_t room)
{
	sheaf_records *path;
	size_t len = 0;
	assert_int_equal(sheaf_session_path(&path, s, (sheaf_str){NULL, 0}, (sheaf_str){NULL, 0}, 0,
	                                    &k->err),
	                 0);
	out[0] = '\0';
	for (size_t i = 0; i < path->count; i++) {
		len += (size_t)snprintf(out + len, room - len, "%s%.*s", i == 0 ? "" : " ",
		                        (int)path->items[i]->id.len, path->items[i]->id.ptr);
		assert_true(len < room);
	}
	sheaf_records_free(path);
}

/* Every allocation of an import fails once, behind the first `every` some of them: it is said, and
 * nothing leaks. */
static UNUSED void kit_out_of_memory(const char *path, size_t every)
{
	bool hit = true;
	for (size_t n = 1; hit; n += n < every ? 1 : 37) {
		sheaf_store *store;
		sheaf_import_report *report = NULL;
		sheaf_error err;
		fail_alloc_install();
		assert_int_equal(sheaf_open(&store, "memory:", NULL, &err), 0);
		fail_alloc_at(n, n % 2 == 0);
		int rc = sheaf_import(&report, store, sheaf_str_of(path), NULL, &err);
		hit = fail_alloc_hit();
		fail_alloc_at(0, false);
		if (rc != (hit ? SHEAF_NOMEM : 0))
			print_error("%s: allocation %zu\n", path, n);
		assert_int_equal(rc, hit ? SHEAF_NOMEM : 0);
		sheaf_import_report_free(report);
		sheaf_close(store);
		assert_int_equal(fail_alloc_live(), 0);
		fail_alloc_remove();
	}
}

#endif
