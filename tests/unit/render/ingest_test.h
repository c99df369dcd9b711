/* What the tests of ingesting share: replies as text, and the files of tests/data/replies. */
#ifndef INGEST_TEST_H
#define INGEST_TEST_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "sheaf/ingest.h"
#include "support/fail_alloc.h"
#include "support/files.h"

#define S(literal) SHEAF_STR(literal)
#define NONE ((sheaf_str){NULL, 0})
#define HELPER static __attribute__((unused))

typedef struct chance {
	uint64_t state;
} chance;

static inline size_t chance_below(chance *c, size_t limit)
{
	c->state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = c->state;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (size_t)((z ^ (z >> 31)) % limit);
}

HELPER const char *stop_name(int32_t stop)
{
	static const char *const names[] = {"unknown", "end",     "tool_use", "length",
	                                    "pause",   "refusal", "overflow"};
	assert_in_range(stop, 0, 6);
	return names[stop];
}

HELPER const char *fault_name(int32_t fault)
{
	static const char *const names[] = {"none",   "overflow", "rate",
	                                    "server", "auth",     "request"};
	assert_in_range(fault, 0, 5);
	return names[fault];
}

/* Everything a reply says, as lines. The message must be one that can be stored. */
HELPER void describe(buf *out, const sheaf_reply *r)
{
	out->max = SIZE_MAX;
	buf_reset(out);
	buf_format(out, "stop %s, %s, %d calls, fault %s%s", stop_name(r->stop),
	           r->complete ? "complete" : "cut", (int)r->call_count, fault_name(r->fault),
	           r->fault_text.len != 0 ? ": " : "");
	buf_str(out, r->fault_text);
	buf_lit(out, "\nid ");
	buf_str(out, r->response_id);
	buf_lit(out, ", model ");
	buf_str(out, r->model);
	const sheaf_usage *u = &r->usage;
	buf_format(out,
	           "\ninput %llu, cache_read %llu, cache_write %llu and %llu, output %llu, "
	           "reasoning %llu\n",
	           (unsigned long long)u->input, (unsigned long long)u->cache_read,
	           (unsigned long long)u->cache_write_5m, (unsigned long long)u->cache_write_1h,
	           (unsigned long long)u->output, (unsigned long long)u->reasoning);
	sheaf_str json = r->message != NULL ? sheaf_message_json(r->message) : S("nothing");
	if (r->message != NULL) {
		assert_non_null(json.ptr);
		assert_int_equal(json_check(json, JSON_OBJECT, NULL), 0);
	}
	buf_str(out, json);
	buf_char(out, '\n');
	buf_nul(out);
	assert_int_equal(out->status, 0);
}

/* Feeds the bytes in pieces of `step` (0: of chance's size) and describes the reply. */
HELPER int stream_says(buf *out, int32_t format, sheaf_str bytes, size_t step, chance *c)
{
	sheaf_stream *s = sheaf_stream_new(format, NONE, S("asked"), NULL, NULL);
	sheaf_reply *r = NULL;
	int rc = s != NULL ? 0 : SHEAF_NOMEM;
	for (size_t at = 0; rc == 0 && at < bytes.len;) {
		size_t n = step != 0 ? step : 1 + chance_below(c, 40);
		if (n > bytes.len - at)
			n = bytes.len - at;
		/* A copy of its own: reading past the end would be seen. */
		char *piece = malloc(n);
		assert_non_null(piece);
		memcpy(piece, bytes.ptr + at, n);
		rc = sheaf_stream_feed(s, str_make(piece, n), NULL);
		free(piece);
		at += n;
	}
	if (s != NULL && (rc == 0 || rc == SHEAF_FORMAT)) {
		int end = sheaf_stream_reply(&r, s, NULL);
		if (end != 0)
			rc = end;
		else
			describe(out, r);
	}
	sheaf_reply_free(r);
	sheaf_stream_free(s);
	return rc;
}

HELPER int body_says(buf *out, int32_t format, sheaf_str body)
{
	sheaf_reply *r = NULL;
	int rc = sheaf_ingest_reply(&r, format, NONE, S("asked"), body, NULL);
	if (rc == 0)
		describe(out, r);
	sheaf_reply_free(r);
	return rc;
}

/* Every allocation fails once; each time the call must say so and leave nothing behind. */
HELPER void each_allocation_fails(int (*call)(void))
{
	fail_alloc_install();
	for (size_t n = 1;; n++) {
		fail_alloc_at(n, false);
		int rc = call();
		bool hit = fail_alloc_hit();
		assert_int_equal(rc, hit ? SHEAF_NOMEM : 0);
		assert_int_equal(fail_alloc_live(), 0);
		if (!hit)
			break;
		assert_true(n < 10000);
	}
	fail_alloc_remove();
}

/* ---- Files ----------------------------------------------------------------- */

typedef struct fixture {
	char name[64];
	int32_t format;
	char *events;
	size_t len;
} fixture;

HELPER int32_t format_of_file(const char *name)
{
	return strncmp(name, "anthropic", 9) == 0  ? SHEAF_FORMAT_ANTHROPIC
	       : strncmp(name, "openai-c", 8) == 0 ? SHEAF_FORMAT_OPENAI_CHAT
	       : strncmp(name, "openai-r", 8) == 0 ? SHEAF_FORMAT_OPENAI_RESPONSES
	                                           : SHEAF_FORMAT_GEMINI;
}

HELPER char *reply_file(const char *name, const char *ending, size_t *len)
{
	char path[512];
	(void)snprintf(path, sizeof(path), "%s/replies/%s.%s", SHEAF_TEST_DATA, name, ending);
	return file_read(path, len);
}

/* Every stream of tests/data/replies. */
HELPER void each_stream(void (*test)(const fixture *f))
{
	DIR *dir = opendir(SHEAF_TEST_DATA "/replies");
	size_t count = 0;
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		fixture f = {0};
		const char *dot = strrchr(e->d_name, '.');
		if (dot == NULL || strcmp(dot, ".sse") != 0)
			continue;
		memcpy(f.name, e->d_name, (size_t)(dot - e->d_name));
		f.format = format_of_file(f.name);
		f.events = reply_file(f.name, "sse", &f.len);
		test(&f);
		free(f.events);
		count++;
	}
	(void)closedir(dir);
	assert_true(count >= 12);
}

#endif
