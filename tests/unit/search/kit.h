/*
 * What the tests of search share: sessions written in a line, answers read in a line.
 *
 *     say(&k, "s", "e1", "user", "the parser fails");
 *     finds(&k, "parser", "s/e1");
 */
#ifndef TESTS_SEARCH_KIT_H
#define TESTS_SEARCH_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sheaf.h"
#include "support/play.h"

#define NOW_US (INT64_C(1794700800) * 1000000)

typedef struct kit {
	char dir[256];
	char url[300];
	sheaf_store *store;
	sheaf_search *search;
	sheaf_query q;
	sheaf_error err;
	int64_t time_us; /* of the next message */
} kit;

static UNUSED void kit_init(kit *k, const char *scheme)
{
	memset(k, 0, sizeof(*k));
	k->q = (sheaf_query)SHEAF_QUERY_INIT;
	k->time_us = NOW_US - INT64_C(86400000000);
	scratch_dir(k->dir, "search");
	setenv("XDG_CACHE_HOME", k->dir, 1);
	if (strcmp(scheme, "memory:") == 0)
		snprintf(k->url, sizeof(k->url), "memory:");
	else
		snprintf(k->url, sizeof(k->url), "jsonl:%s/store?durability=process", k->dir);
}

static UNUSED void kit_begin(kit *k, const char *scheme)
{
	kit_init(k, scheme);
	assert_int_equal(sheaf_open(&k->store, k->url, NULL, &k->err), 0);
	assert_int_equal(sheaf_search_open(&k->search, k->store, NULL, &k->err), 0);
}

static UNUSED void kit_end(kit *k)
{
	sheaf_search_close(k->search);
	sheaf_close(k->store);
	tree_remove(k->dir);
}

/* The index is opened again, as another process would. */
static UNUSED void kit_again(kit *k, bool rebuild)
{
	sheaf_search_options o = SHEAF_SEARCH_OPTIONS_INIT;
	o.rebuild = rebuild;
	sheaf_search_close(k->search);
	k->search = NULL;
	assert_int_equal(sheaf_search_open(&k->search, k->store, &o, &k->err), 0);
}

static UNUSED sheaf_session *kit_session(kit *k, const char *id)
{
	sheaf_key key = sheaf_key_of(id);
	sheaf_session *s;
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.created_us = k->time_us;
	assert_int_equal(sheaf_session_open(&s, k->store, &key, &o, &k->err), 0);
	return s;
}

static UNUSED void put(kit *k, const char *session, const char *id, sheaf_message *m)
{
	sheaf_session *s = kit_session(k, session);
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	entry.id = sheaf_str_of(id);
	entry.time_us = k->time_us;
	k->time_us += 1000000;
	assert_int_equal(sheaf_session_append_message(s, m, &entry, NULL, NULL, &k->err), 0);
	sheaf_message_free(m);
	sheaf_session_close(s);
}

static UNUSED void say(kit *k, const char *session, const char *id, const char *role,
                       const char *text)
{
	sheaf_message *m = sheaf_message_new(role);
	sheaf_message_text(m, sheaf_str_of(text));
	put(k, session, id, m);
}

static UNUSED void drop(kit *k, const char *session)
{
	sheaf_key key = sheaf_key_of(session);
	assert_int_equal(sheaf_store_delete(NULL, k->store, &key, NULL, &k->err), 0);
}

static UNUSED sheaf_hits *run_query(kit *k, const char *text)
{
	sheaf_hits *hits = NULL;
	k->q.text = sheaf_str_of(text);
	k->q.now_us = NOW_US;
	int rc = sheaf_search_run(&hits, k->search, &k->q, &k->err);
	if (rc != 0)
		fail_msg("%s: %s", text, k->err.message);
	return hits;
}

/* "session/entry session/entry …", a title as "session/". */
static UNUSED void write_hits(buf *out, const sheaf_hits *hits, bool whole)
{
	for (size_t i = 0; i < hits->count; i++) {
		const sheaf_hit *h = hits->items[i];
		if (i != 0)
			buf_char(out, ' ');
		buf_str(out, h->session);
		buf_char(out, '/');
		buf_str(out, h->entry_id);
		if (!whole)
			continue;
		buf_format(out, "#%llu:%d:%.9g:%lld:", (unsigned long long)h->seq, h->role,
		           h->score, (long long)h->time_us);
		buf_str(out, h->tool);
		buf_char(out, ':');
		buf_str(out, h->snippet);
	}
	buf_nul(out);
}

static UNUSED void finds(kit *k, const char *text, const char *wanted)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	sheaf_hits *hits = run_query(k, text);
	write_hits(&out, hits, false);
	if (strcmp(out.ptr != NULL ? out.ptr : "", wanted) != 0)
		fail_msg("\"%s\" finds \"%s\", not \"%s\"", text, out.ptr, wanted);
	sheaf_hits_free(hits);
}

/* Everything the questions find, with scores and snippets: two indexes that are equal say the same. */
static UNUSED char *answers(kit *k, const char *const *questions)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; questions[i] != NULL; i++) {
		sheaf_hits *hits = run_query(k, questions[i]);
		buf_format(&out, "%s: ", questions[i]);
		write_hits(&out, hits, true);
		buf_char(&out, '\n');
		sheaf_hits_free(hits);
	}
	buf_nul(&out);
	char *copy = strdup(out.ptr);
	assert_non_null(copy);
	return copy;
}

#endif
