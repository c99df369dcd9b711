/*
 * What the tests of contexts and compactions share: sessions written in a line,
 * contexts read in a line.
 *
 *     kit_script(&k, "u1=u:hi a1=a:c1 t1=t:r1 a2=a:done");
 *     kit_items(&k, NULL, "u1 a1 t1 a2");
 *
 * A word is ID=ROLE:PART,PART with roles u a t s and parts c1 (a call), r1 (its
 * result), - (an empty text), anything else a text. In a context a message is
 * its entry's id, S(…) a compaction's summary, B(…) a branch's, X(…) a custom,
 * R(…) a replacement message, !1 a made-up answer. JSON is written with ' for ".
 */
#ifndef TESTS_CORE_KIT_H
#define TESTS_CORE_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "sheaf/context.h"
#include "store/store.h"

#define KIT_LINE 65536

typedef struct kit {
	sheaf_store *store;
	sheaf_session *s;
	sheaf_error err;
	sheaf_entry_options entry; /* what kit_script() says of every entry besides its id */
	char line[KIT_LINE];
} kit;

static UNUSED void kit_open_url(kit *k, const char *url, const char *session)
{
	sheaf_key key = sheaf_key_of(session);
	memset(k, 0, sizeof(*k));
	k->entry = (sheaf_entry_options)SHEAF_ENTRY_OPTIONS_INIT;
	assert_int_equal(sheaf_open(&k->store, url, NULL, &k->err), 0);
	assert_int_equal(sheaf_session_open(&k->s, k->store, &key, NULL, &k->err), 0);
}

static UNUSED void kit_open(kit *k)
{
	kit_open_url(k, "memory:", "s");
}

static UNUSED void kit_close(kit *k)
{
	sheaf_session_close(k->s);
	sheaf_close(k->store);
}

/* JSON as it is, from JSON as it can be read in C. The caller frees. */
static UNUSED char *kit_quoted(const char *text)
{
	char *json = strdup(text);
	assert_non_null(json);
	for (char *p = json; (p = strchr(p, '\'')) != NULL;)
		*p = '"';
	return json;
}

/* ---- Writing ------------------------------------------------------------- */

static UNUSED void kit_part(sheaf_message *m, sheaf_str part)
{
	sheaf_str id = {part.ptr + 1, part.len - 1};
	if (part.len > 1 && part.ptr[0] == 'c')
		(void)sheaf_message_tool_use(m, id, SHEAF_STR("bash"),
		                             SHEAF_STR("{\"cmd\":\"ls\"}"));
	else if (part.len > 1 && part.ptr[0] == 'r')
		(void)sheaf_message_tool_result(m, id, SHEAF_STR("bash"), SHEAF_STR("out"), 0);
	else
		(void)sheaf_message_text(m, str_is(part, "-") ? SHEAF_STR("") : part);
}

static UNUSED sheaf_message *kit_message(char role, sheaf_str parts)
{
	const char *name = role == 'u'   ? SHEAF_ROLE_USER
	                   : role == 'a' ? SHEAF_ROLE_ASSISTANT
	                   : role == 't' ? SHEAF_ROLE_TOOL
	                                 : SHEAF_ROLE_SYSTEM;
	sheaf_message *m = sheaf_message_new(name);
	assert_non_null(m);
	while (parts.len != 0) {
		const char *comma = memchr(parts.ptr, ',', parts.len);
		size_t len = comma != NULL ? (size_t)(comma - parts.ptr) : parts.len;
		kit_part(m, str_make(parts.ptr, len));
		len += comma != NULL;
		parts = str_make(parts.ptr + len, parts.len - len);
	}
	return m;
}

static UNUSED int kit_put(kit *k, sheaf_session *s, sheaf_str id, sheaf_message *m)
{
	sheaf_entry_options entry = k->entry;
	entry.id = id;
	int rc = sheaf_session_append_message(s, m, &entry, NULL, NULL, &k->err);
	sheaf_message_free(m);
	return rc;
}

static UNUSED void kit_script(kit *k, const char *words)
{
	while (*words != '\0') {
		size_t len = strcspn(words, " ");
		const char *equals = memchr(words, '=', len);
		assert_non_null(equals);
		size_t id = (size_t)(equals - words);
		sheaf_str parts = str_make(equals + 3, len - id - 3);
		assert_int_equal(
			kit_put(k, k->s, str_make(words, id), kit_message(equals[1], parts)), 0);
		words += len;
		words += *words == ' ';
	}
}

static UNUSED void kit_json(kit *k, const char *type, const char *id, const char *body)
{
	sheaf_entry_options entry = k->entry;
	char *json = kit_quoted(body);
	entry.id = sheaf_str_of(id);
	int rc = sheaf_session_append_json(k->s, sheaf_str_of(type), sheaf_str_of(json), &entry,
	                                   NULL, NULL, &k->err);
	free(json);
	if (rc != 0)
		print_error("%s\n", k->err.message);
	assert_int_equal(rc, 0);
}

static UNUSED int kit_compact(kit *k, const char *id, const char *summary, const char *first_kept)
{
	sheaf_entry_options entry = k->entry;
	entry.id = sheaf_str_of(id);
	return sheaf_session_append_compaction(k->s, sheaf_str_of(summary),
	                                       sheaf_str_of(first_kept), 1000, &entry, NULL, NULL,
	                                       &k->err);
}

/* Labels an entry and gives back the id of the label record. */
static UNUSED const char *kit_label(kit *k, const char *target, const char *label)
{
	static sheaf_appended out;
	out = (sheaf_appended)SHEAF_APPENDED_INIT;
	int rc = sheaf_session_label(k->s, sheaf_str_of(target), sheaf_str_of(label), NULL, &out,
	                             &k->err);
	assert_int_equal(rc, 0);
	return out.id;
}

static UNUSED void kit_branch(kit *k, const char *name, const char *target)
{
	assert_int_equal(sheaf_session_branch(k->s, sheaf_str_of(name), sheaf_str_of(target), NULL,
	                                      NULL, &k->err),
	                 0);
}

/* ---- Reading ------------------------------------------------------------- */

static UNUSED const sheaf_context *kit_context(kit *k, const sheaf_context_options *options)
{
	sheaf_context *c = NULL;
	int rc = sheaf_session_context(&c, k->s, options, &k->err);
	if (rc != 0)
		print_error("%s: %s\n", sheaf_code_name(rc), k->err.message);
	assert_int_equal(rc, 0);
	assert_int_equal(sheaf_context_prefix(c, c->count), c->prefix_hash);
	return c;
}

static UNUSED const char *kit_spell(kit *k, const sheaf_context *c)
{
	size_t at = 0;
	k->line[0] = '\0';
	for (size_t i = 0; i < c->count; i++) {
		static const char *const opening[] = {"", "", "S(", "B(", "X("};
		const sheaf_item *item = c->items[i];
		const char *open = opening[item->kind], *shut = item->text.ptr != NULL ? ")" : "";
		sheaf_str text = item->text;
		assert_non_null(item->message);
		if (item->synthetic) {
			assert_null(item->entry);
			open = "!";
			text = item->message->parts[0]->tool_use_id;
		} else if (item->kind == SHEAF_ITEM_MESSAGE) {
			bool replaced = item->entry->kind == SHEAF_KIND_COMPACTION;
			text = replaced ? item->message->parts[0]->text : item->entry->id;
			open = replaced ? "R(" : "";
			shut = replaced ? ")" : "";
		}
		at += (size_t)snprintf(k->line + at, KIT_LINE - at, "%s%s%.*s%s", i != 0 ? " " : "",
		                       open, (int)text.len, text.ptr, shut);
		assert_true(at < KIT_LINE);
	}
	return k->line;
}

static UNUSED void kit_items(kit *k, const sheaf_context_options *options, const char *want)
{
	const sheaf_context *c = kit_context(k, options);
	assert_string_equal(kit_spell(k, c), want);
	sheaf_context_free(c);
}

static UNUSED size_t kit_notes(const sheaf_context *c, int what)
{
	size_t n = 0;
	for (size_t i = 0; i < c->note_count; i++)
		n += c->notes[i]->what == what;
	return n;
}

static UNUSED void kit_str(sheaf_str got, const char *want)
{
	if (want == NULL) {
		assert_null(got.ptr);
		return;
	}
	char *json = kit_quoted(want);
	assert_non_null(got.ptr);
	assert_int_equal(got.len, strlen(json));
	assert_memory_equal(got.ptr, json, got.len);
	free(json);
}

/* ---- Chance -------------------------------------------------------------- */

typedef struct rng {
	uint64_t s;
} rng;

static UNUSED size_t below(rng *r, size_t n)
{
	r->s ^= r->s << 13;
	r->s ^= r->s >> 7;
	r->s ^= r->s << 17;
	return (size_t)((r->s >> 11) % n);
}

#endif
