/* Short words for the tests of src/core: a store in memory, appends, and what came of them. */
#ifndef CORE_TEST_H
#define CORE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sheaf.h"

#define HELPER static __attribute__((unused))

/* The last failure; OK checks that success leaves it alone. */
HELPER sheaf_error err;

#define OK(call)                                                                                   \
	do {                                                                                       \
		memset(&err, 0x5a, sizeof(err));                                                   \
		int ok_rc_ = (call);                                                               \
		if (ok_rc_ != 0)                                                                   \
			fail_msg("%s: %s: %s", #call, sheaf_code_name(ok_rc_), err.message);       \
		assert_int_equal(err.code, 0x5a5a5a5a);                                            \
	} while (0)

#define FAILS(want, call)                                                                          \
	do {                                                                                       \
		memset(&err, 0x5a, sizeof(err));                                                   \
		int fails_rc_ = (call);                                                            \
		assert_string_equal(sheaf_code_name(fails_rc_), #want);                            \
		assert_int_equal(fails_rc_, SHEAF_##want);                                         \
		assert_int_equal(err.code, SHEAF_##want);                                          \
		assert_int_equal(err.outcome, SHEAF_FAILED);                                       \
		assert_true(err.message[0] != '\0');                                               \
	} while (0)

HELPER sheaf_str S(const char *text)
{
	return sheaf_str_of(text);
}

HELPER const sheaf_str NONE = {NULL, 0};

#define assert_str(got, want)                                                                      \
	do {                                                                                       \
		sheaf_str got_ = (got);                                                            \
		assert_int_equal(got_.len, strlen(want));                                          \
		assert_memory_equal(got_.ptr, (want), got_.len);                                   \
	} while (0)

/* ---- Stores and sessions ------------------------------------------------ */

HELPER int open_store(void **state)
{
	sheaf_store *store = NULL;
	OK(sheaf_open(&store, "memory:", NULL, &err));
	*state = store;
	return 0;
}

HELPER int close_store(void **state)
{
	sheaf_close(*state);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_store, close_store)

HELPER sheaf_session *session_in(sheaf_store *store, const char *id, int mode)
{
	sheaf_session *s = NULL;
	sheaf_key key = sheaf_key_of(id);
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	options.mode = mode;
	OK(sheaf_session_open(&s, store, &key, &options, &err));
	return s;
}

HELPER sheaf_session *make(sheaf_store *store, const char *id)
{
	return session_in(store, id, SHEAF_OPEN_NEW);
}

HELPER sheaf_session *again(sheaf_store *store, const char *id)
{
	return session_in(store, id, SHEAF_OPEN_EXISTING);
}

HELPER sheaf_session *fork_of(sheaf_session *s, const char *at, const char *id)
{
	sheaf_session *made = NULL;
	sheaf_key key = sheaf_key_of(id);
	OK(sheaf_session_fork(&made, s, S(at), &key, NULL, &err));
	return made;
}

/* ---- Appending ---------------------------------------------------------- */

/* What may be said about an append; zero is the default. */
typedef struct put {
	const char *id;
	const char *branch;
	const char *parent;
	int root;
	int64_t time_us;
	int expect;
	const char *leaf;
	uint64_t revision;
} put;

HELPER sheaf_appended done; /* what the last say() did */

HELPER sheaf_entry_options entry_of(const put *p)
{
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	o.id = S(p->id);
	o.branch = S(p->branch);
	o.has_parent = p->parent != NULL || p->root;
	o.parent_id = S(p->parent);
	o.time_us = p->time_us;
	return o;
}

HELPER int say_rc(sheaf_session *s, const char *role, const char *text, put p)
{
	sheaf_entry_options entry = entry_of(&p);
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	how.expect = p.expect;
	how.leaf = S(p.leaf);
	how.revision = p.revision;
	done = (sheaf_appended)SHEAF_APPENDED_INIT;
	sheaf_message *m = sheaf_message_new(role);
	(void)sheaf_message_text(m, S(text));
	int rc = sheaf_session_append_message(s, m, &entry, &how, &done, &err);
	sheaf_message_free(m);
	return rc;
}

#define SAY(s, text, ...) OK(say_rc((s), "user", (text), (put){__VA_ARGS__}))
#define SAY_FAILS(code, s, text, ...) FAILS(code, say_rc((s), "user", (text), (put){__VA_ARGS__}))

HELPER void add_text(sheaf_batch *b, const char *text, put p)
{
	sheaf_entry_options entry = entry_of(&p);
	sheaf_message *m = sheaf_message_new("user");
	(void)sheaf_message_text(m, S(text));
	OK(sheaf_batch_message(b, m, &entry, &err));
	sheaf_message_free(m);
}

#define ADD(batch, text, ...) add_text((batch), (text), (put){__VA_ARGS__})

/* ---- Looking ------------------------------------------------------------ */

/* Ids of records, separated by blanks. */
HELPER const char *ids_of(const sheaf_records *r)
{
	static char text[65536];
	size_t at = 0;
	text[0] = '\0';
	for (size_t i = 0; i < r->count && at < sizeof(text) - 200; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s", i ? " " : "",
		                       (int)r->items[i]->id.len, r->items[i]->id.ptr);
	return text;
}

HELPER void expect_path(sheaf_session *s, const char *branch, const char *want)
{
	sheaf_records *r = NULL;
	OK(sheaf_session_path(&r, s, S(branch), NONE, 0, &err));
	assert_string_equal(ids_of(r), want);
	sheaf_records_free(r);
}

HELPER void expect_leaf(sheaf_session *s, const char *branch, const char *want)
{
	char id[SHEAF_ID_ROOM];
	OK(sheaf_session_leaf(s, S(branch), id, &err));
	assert_string_equal(id, want);
}

HELPER void expect_label(sheaf_session *s, const char *label, const char *want)
{
	char id[SHEAF_ID_ROOM];
	OK(sheaf_session_resolve(s, S(label), id, &err));
	assert_string_equal(id, want);
}

HELPER uint64_t revision_of(sheaf_session *s)
{
	sheaf_head_view *head = NULL;
	OK(sheaf_session_head(&head, s, &err));
	uint64_t revision = head->info->revision;
	sheaf_head_view_free(head);
	return revision;
}

/* All records as they are stored, one line each; the caller frees. */
HELPER char *lines_of(sheaf_session *s)
{
	sheaf_records *r = NULL;
	sheaf_read_options all = SHEAF_READ_OPTIONS_INIT;
	all.limit = 100000;
	OK(sheaf_session_records(&r, s, &all, &err));
	size_t len = 1;
	for (size_t i = 0; i < r->count; i++)
		len += r->items[i]->line.len + 1;
	char *text = malloc(len), *at = text;
	assert_non_null(text);
	for (size_t i = 0; i < r->count; i++) {
		memcpy(at, r->items[i]->line.ptr, r->items[i]->line.len);
		at += r->items[i]->line.len;
		*at++ = '\n';
	}
	*at = '\0';
	sheaf_records_free(r);
	return text;
}

#endif
