/*
 * What the tests of renderings share: a history in a few lines, a rendering in
 * one, and the checker over everything that comes out.
 *
 *     say(&k, "user", "{'type':'text','text':{'content':'hi'}}");
 *     sees(&k, &how, "messages", "[{'role':'user',…}]");
 *
 * JSON is written with ' for ".
 */
#ifndef RENDER_TEST_H
#define RENDER_TEST_H

#include "unit/core/kit.h"

#include "base/json.h"
#include "sheaf/render.h"
#include "support/fail_alloc.h"

#define TEXT(text) "{'type':'text','text':{'content':'" text "'}}"
#define CALL(id, name, input)                                                                      \
	"{'type':'tool_use','tool_use':{'id':'" id "','name':'" name "','input':" input "}}"
#define ANSWER(id, text)                                                                           \
	"{'type':'tool_result','tool_result':{'tool_use_id':'" id "','content':'" text "'}}"
#define THOUGHT(text, signature)                                                                   \
	"{'type':'thinking','thinking':{'text':'" text "','signature':'" signature "'}}"
#define PNG                                                                                        \
	"{'type':'image','image':{'source':{'type':'base64','media_type':'image/png','data':'AAAA'}}}"

/* A message with what else stands in it: members is empty or "'model':'m',". */
static UNUSED void say_as(kit *k, const char *role, const char *members, const char *parts)
{
	static unsigned number;
	char id[32], body[KIT_LINE];
	(void)snprintf(id, sizeof(id), "e%u", ++number);
	(void)snprintf(body, sizeof(body), "{'message':{'role':'%s',%s'content':[%s]}}", role,
	               members, parts);
	kit_json(k, "message", id, body);
}

static UNUSED void say(kit *k, const char *role, const char *parts)
{
	say_as(k, role, "", parts);
}

static UNUSED sheaf_render_options how_to(int32_t format)
{
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	how.format = format;
	how.model = SHEAF_STR("m");
	how.cache = SHEAF_CACHE_OFF;
	return how;
}

static UNUSED void assert_valid(int32_t format, sheaf_str body)
{
	sheaf_violations *bad = NULL;
	sheaf_error err = {0};
	assert_int_equal(sheaf_request_check(&bad, format, body, &err), 0);
	for (size_t i = 0; i < bad->count; i++)
		print_error("%s: %s: %s\n", bad->items[i]->where.ptr, bad->items[i]->rule.ptr,
		            bad->items[i]->text.ptr);
	if (bad->count != 0)
		print_error("%s\n", body.ptr);
	assert_int_equal(bad->count, 0);
	sheaf_violations_free(bad);
}

/* Renders what the session holds now, checked, twice the same. The caller frees. */
static UNUSED sheaf_request *rendered(kit *k, const sheaf_render_options *how)
{
	const sheaf_context *c = kit_context(k, NULL);
	sheaf_request *first = NULL, *second = NULL;
	int rc = sheaf_render(&first, c, how, &k->err);
	if (rc != 0)
		fail_msg("%s: %s", sheaf_code_name(rc), k->err.message);
	assert_int_equal(sheaf_render(&second, c, how, &k->err), 0);
	sheaf_context_free(c);
	assert_true(str_eq(first->body, second->body));
	assert_int_equal(first->body.ptr[first->body.len], '\0');
	sheaf_request_free(second);
	assert_valid(how->format, first->body);
	return first;
}

static UNUSED void member_is(const sheaf_request *q, const char *member, const char *want)
{
	char *json = kit_quoted(want);
	sheaf_str got = json_member_bytes(q->body, member);
	if (got.ptr == NULL || !str_eq(got, sheaf_str_of(json)))
		fail_msg("%s is\n%.*s\nnot\n%s", member, (int)got.len,
		         got.ptr != NULL ? got.ptr : "", json);
	free(json);
}

static UNUSED size_t notes_of(const sheaf_request *q, int32_t what)
{
	size_t n = 0;
	for (size_t i = 0; i < q->note_count; i++)
		n += q->notes[i]->what == what;
	return n;
}

/* The member as it is rendered now, and how many notes of a kind there are (what 0: none at all). */
static UNUSED void sees_noted(kit *k, const sheaf_render_options *how, const char *member,
                              const char *want, int32_t what, size_t notes)
{
	sheaf_request *q = rendered(k, how);
	member_is(q, member, want);
	if ((what != 0 ? notes_of(q, what) : q->note_count) != notes) {
		for (size_t i = 0; i < q->note_count; i++)
			print_error("note %s %.*s\n", sheaf_note_name(q->notes[i]->what),
			            (int)q->notes[i]->detail.len,
			            q->notes[i]->detail.ptr != NULL ? q->notes[i]->detail.ptr : "");
		fail_msg("%zu notes, not %zu", q->note_count, notes);
	}
	sheaf_request_free(q);
}

static UNUSED void sees(kit *k, const sheaf_render_options *how, const char *member,
                        const char *want)
{
	sees_noted(k, how, member, want, 0, 0);
}

/* Every allocation of a rendering fails once: it is said, and nothing leaks. */
static UNUSED void renders_without_memory(kit *k, const sheaf_context *c,
                                          const sheaf_render_options *how)
{
	size_t live = fail_alloc_live();
	for (size_t n = 1;; n++) {
		sheaf_request *q = NULL;
		fail_alloc_at(n, false);
		int rc = sheaf_render(&q, c, how, &k->err);
		if (!fail_alloc_hit()) {
			assert_int_equal(rc, 0);
			sheaf_request_free(q);
			break;
		}
		assert_int_equal(rc, SHEAF_NOMEM);
		assert_null(q);
		assert_int_equal(fail_alloc_live(), live);
	}
	fail_alloc_at(0, false);
}

#endif
