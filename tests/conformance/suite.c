/* Runs a case: its fresh place in the store, its checks, and the cleaning up after it. */
#include "suite.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "trash.h"

/* ---- Cases -------------------------------------------------------------- */

static suite_case *first;
static suite_case **last = &first;

void suite_register(suite_case *self)
{
	*last = self;
	last = &self->next;
}

const suite_case *suite_first(void)
{
	return first;
}

/* ---- Checks --------------------------------------------------------------- */

void suite_fail(suite *t, const char *file, int line, const char *format, ...)
{
	const char *slash = strrchr(file, '/');
	int n = snprintf(t->reason, sizeof(t->reason), "%s:%d: ", slash ? slash + 1 : file, line);
	va_list args;
	va_start(args, format);
	vsnprintf(t->reason + n, sizeof(t->reason) - (size_t)n, format, args);
	va_end(args);
	longjmp(t->escape, 1);
}

#define POISON 0x5a

void suite_arm(suite *t)
{
	memset(&t->err, POISON, sizeof(t->err));
}

static bool untouched(const sheaf_error *err)
{
	const unsigned char *p = (const unsigned char *)err;
	for (size_t i = 0; i < sizeof(*err); i++)
		if (p[i] != POISON)
			return false;
	return true;
}

void suite_ok(suite *t, int rc, const char *call, const char *file, int line)
{
	bool clean = untouched(&t->err);
	if (rc != 0)
		suite_fail(t, file, line, "%.300s: %s (%s)", call, sheaf_code_name(rc),
		           clean ? "err untouched" : t->err.message);
	if (!clean)
		suite_fail(t, file, line, "%.300s: succeeded, but wrote to err", call);
}

void suite_fails(suite *t, int want, int rc, const char *call, const char *file, int line)
{
	bool clean = untouched(&t->err);
	if (rc != want)
		suite_fail(t, file, line, "%.300s: wanted %s, got %s (%s)", call,
		           sheaf_code_name(want), sheaf_code_name(rc), clean ? "" : t->err.message);
	if (clean)
		return; /* the call was given no err */
	if (t->err.code != rc)
		suite_fail(t, file, line, "%.300s: err.code is %d, not %d", call, t->err.code, rc);
	if (t->err.outcome != SHEAF_FAILED)
		suite_fail(t, file, line, "%.300s: outcome is %d", call, t->err.outcome);
	if (!memchr(t->err.message, 0, sizeof(t->err.message)) || !t->err.message[0] ||
	    !memchr(t->err.hint, 0, sizeof(t->err.hint)) ||
	    !memchr(t->err.leaf, 0, sizeof(t->err.leaf)))
		suite_fail(t, file, line, "%.300s: err has no proper text", call);
}

void suite_eq(suite *t, uint64_t a, uint64_t b, const char *what, const char *file, int line)
{
	if (a != b)
		suite_fail(t, file, line, "%.300s: %lld and %lld", what, (long long)a,
		           (long long)b);
}

void suite_text(suite *t, sheaf_str got, const char *want, size_t len, const char *what,
                const char *file, int line)
{
	if (!got.ptr)
		suite_fail(t, file, line, "%.300s: not given, wanted \"%.200s\"", what, want);
	if (got.len != len || (len && memcmp(got.ptr, want, len) != 0))
		suite_fail(t, file, line, "%.300s: \"%.*s\" (%zu bytes), wanted \"%.200s\" (%zu)",
		           what, (int)(got.len > 300 ? 300 : got.len), got.ptr, got.len, want, len);
}

void suite_ids(suite *t, const sheaf_records *r, const char *want, const char *what,
               const char *file, int line)
{
	char got[4096] = "";
	size_t n = 0;
	for (size_t i = 0; i < r->count && n < sizeof(got) - 200; i++)
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%.*s", i ? " " : "",
		                      (int)r->items[i]->id.len, r->items[i]->id.ptr);
	if (strcmp(got, want) != 0)
		suite_fail(t, file, line, "%.300s: \"%.600s\", wanted \"%.600s\"", what, got, want);
}

/* ---- Places --------------------------------------------------------------- */

/* Makes the directories above `path`. */
static bool make_directories(const char *path)
{
	char copy[SUITE_URL];
	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(copy, 0700) != 0 && errno != EEXIST)
			return false;
		*p = '/';
	}
	return true;
}

/* jsonl:/dir?x=1 becomes jsonl:/dir/NAME?x=1, with a directory that was not there before. */
static bool place_jsonl(suite_place *p, const char *url, const char *name)
{
	const char *path = url + strlen("jsonl:");
	size_t path_len = strcspn(path, "?");
	char dir[SUITE_URL];
	for (int i = 1;; i++) {
		char number[16] = "";
		if (i > 1)
			snprintf(number, sizeof(number), "-%d", i);
		int n = snprintf(dir, sizeof(dir), "%.*s/%.80s%s", (int)path_len, path, name,
		                 number);
		if (n < 0 || (size_t)n >= sizeof(dir) || !make_directories(dir))
			return false;
		if (mkdir(dir, 0700) == 0)
			break;
		if (errno != EEXIST)
			return false;
	}
	return snprintf(p->url, sizeof(p->url), "jsonl:%s%s", dir, path + path_len) < SUITE_URL;
}

bool suite_place_make(suite_place *p, const char *url, const char *name)
{
	p->app[0] = 0;
	p->store = NULL;
	if (strncmp(url, "jsonl:", 6) == 0)
		return place_jsonl(p, url, name);
	if (strncmp(url, "memory:", 7) != 0) {
		struct timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		snprintf(p->app, sizeof(p->app), "%.30s-%d-%lx%lx", name, (int)getpid(),
		         (unsigned long)now.tv_sec, (unsigned long)now.tv_nsec);
	}
	return snprintf(p->url, sizeof(p->url), "%s", url) < SUITE_URL;
}

static suite_place *place_add(suite *t, const char *name)
{
	CHECK(t->place_count < SUITE_STORES);
	suite_place *p = &t->places[t->place_count];
	if (!suite_place_make(p, t->url, name))
		FAIL("no place in %s: %s", t->url, strerror(errno));
	t->place_count++;
	OK(sheaf_open(&p->store, p->url, NULL, &t->err));
	return p;
}

void suite_open(suite *t)
{
	t->place_count = 0;
	suite_place *p = place_add(t, t->name);
	t->store = p->store;
	t->app = p->app;
	memset(&t->info, 0, sizeof(t->info));
	t->info.size = sizeof(t->info);
	OK(sheaf_store_describe(t->store, &t->info, &t->err));
}

suite_place *suite_other(suite *t)
{
	char name[100];
	snprintf(name, sizeof(name), "%.60s-other", t->name);
	return place_add(t, name);
}

sheaf_store *suite_twin(suite *t)
{
	if (t->memory)
		return t->store;
	suite_place *p = &t->places[t->place_count];
	CHECK(t->place_count < SUITE_STORES);
	*p = t->places[0];
	p->store = NULL;
	t->place_count++;
	OK(sheaf_open(&p->store, p->url, NULL, &t->err));
	return p->store;
}

void suite_reopen(suite *t)
{
	trash_sessions(t);
	if (t->memory)
		return;
	for (size_t i = 0; i < t->place_count; i++) {
		sheaf_close(t->places[i].store);
		t->places[i].store = NULL;
	}
	for (size_t i = 0; i < t->place_count; i++)
		OK(sheaf_open(&t->places[i].store, t->places[i].url, NULL, &t->err));
	t->store = t->places[0].store;
}

/* ---- Running -------------------------------------------------------------- */

static void run_guarded(suite *t, const suite_case *c)
{
	suite_open(t);
	c->run(t);
	trash_sessions(t);
	if (!t->unverified)
		suite_verify(t);
}

bool suite_run(suite *t, const char *url, const suite_case *c)
{
	memset(t, 0, sizeof(*t));
	t->url = url;
	t->name = c->name;
	t->memory = strncmp(url, "memory:", 7) == 0;
	bool passed = false;
	if (setjmp(t->escape) == 0) {
		run_guarded(t, c);
		t->reason[0] = 0;
	}
	passed = t->reason[0] == 0;
	trash_all(t);
	for (size_t i = 0; i < t->place_count; i++)
		sheaf_close(t->places[i].store);
	return passed;
}
