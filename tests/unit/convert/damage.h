/*
 * A document cut off and spoilt at many places: the import says what is wrong
 * and keeps it all, so that writing it again gives the damaged bytes.
 */
#ifndef TESTS_CONVERT_DAMAGE_H
#define TESTS_CONVERT_DAMAGE_H

#include "unit/convert/convert_kit.h"

/* Imports a text that need not be whole; if a session came of it, it is kept to the byte. */
static void damage_import(const char *format, const char *text, size_t len, bool must_say)
{
	kit k;
	char path[128];
	kit_open(&k);
	sheaf_import_options how = SHEAF_IMPORT_OPTIONS_INIT;
	how.format = sheaf_str_of(format);
	(void)snprintf(path, sizeof(path), "%s/x.json", kit_dir(&k));
	file_write(path, text, len);
	int rc = kit_try(&k, path, &how);
	if (rc != 0)
		print_error("%s: %s\n", path, k.err.message);
	assert_int_equal(rc, 0);
	if (must_say && k.report->problem_total == 0)
		print_error("nothing wrong with the first %zu bytes\n", len);
	assert_true(!must_say || k.report->problem_total != 0);
	for (size_t i = 0; i < k.report->problem_count; i++) {
		assert_str(k.report->problems[i]->file, path);
		if (k.report->problems[i]->line == 0)
			print_error("no line: %s (%zu bytes)\n", k.report->problems[i]->text.ptr,
			            len);
		assert_true(k.report->problems[i]->line != 0);
	}
	if (k.report->session_count == 1) {
		sheaf_session *s = kit_imported(&k, 0);
		kit_same(&k, s, format, path);
		sheaf_session_close(s);
	}
	kit_close(&k);
}

/* Every cut up to `whole` bytes (behind are blanks only) is a problem. */
static void damage_cuts(const char *format, const char *path, size_t whole, size_t stride)
{
	size_t len;
	char *text = file_read(path, &len);
	assert_true(whole <= len);
	for (size_t cut = 1; cut < whole; cut += stride)
		damage_import(format, text, cut, true);
	free(text);
}

/* Bytes replaced here and there by what hurts JSON most. */
static void damage_bytes(const char *format, const char *path, size_t stride)
{
	static const char bytes[] = "\"{}[],:\\\0\n\xff";
	size_t len, n = 0;
	char *text = file_read(path, &len);
	for (size_t at = 0; at < len; at += stride, n++) {
		char was = text[at];
		text[at] = bytes[n % (sizeof(bytes) - 1)];
		damage_import(format, text, len, false);
		text[at] = was;
	}
	free(text);
}

#endif
