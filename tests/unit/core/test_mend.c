/*
 * Tests of core/mend.h.
 *
 * Lists are written in a line: messages "role=part,part" with roles s u a t
 * (system, user, assistant, tool), b (bashExecution) and parts
 *   c1  a call with id 1            r1  its result          e1  a result with an empty text inside
 *   -   a text of nothing           *   signed thinking     ~   thinking without a signature
 *   anything else: that text
 * and come back in the same spelling, with o1 for an orphan made text and !1
 * for a made-up answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "core/mend.h"
#include "support/fail_alloc.h"

#define ITEMS_MAX 64
#define PARTS_MAX 16
#define LINE_MAX 4096

/* A list of items and the memory it lives in. */
typedef struct fixture {
	arena *a;
	const sheaf_item *items[ITEMS_MAX];
	size_t count;
	sheaf_str provider;
	sheaf_str model;
	mended out;
} fixture;

static void fixture_begin(fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->a = arena_new();
	assert_non_null(f->a);
}

static void fixture_end(fixture *f)
{
	arena_free(f->a);
}

static void *zalloc(fixture *f, size_t bytes)
{
	void *p = arena_zalloc(f->a, bytes);
	assert_non_null(p);
	return p;
}

static sheaf_str dup(fixture *f, const char *text, size_t len)
{
	int ok = 1;
	sheaf_str s = arena_dup(f->a, str_make(text, len), &ok);
	assert_true(ok);
	return s;
}

/* ---- Spelling ------------------------------------------------------------ */

static const char *const roles[][2] = {
	{"s", SHEAF_ROLE_SYSTEM}, {"u", SHEAF_ROLE_USER}, {"a", SHEAF_ROLE_ASSISTANT},
	{"t", SHEAF_ROLE_TOOL},   {"b", SHEAF_ROLE_BASH},
};

static const sheaf_part *part_spelled(fixture *f, const char *text, size_t len)
{
	sheaf_part *p = zalloc(f, sizeof(*p));
	p->kind = SHEAF_PART_TEXT;
	p->is_error = -1;
	p->json = dup(f, "{}", 2);
	if (text[0] == '-') {
		p->text = SHEAF_STR("");
	} else if (text[0] == '*' || text[0] == '~') {
		p->kind = SHEAF_PART_THINKING;
		p->text = SHEAF_STR("hm");
		if (text[0] == '*')
			p->signature = SHEAF_STR("sig");
	} else if (text[0] == 'c' && len > 1) {
		p->kind = SHEAF_PART_TOOL_USE;
		p->id = dup(f, text + 1, len - 1);
		p->name = SHEAF_STR("bash");
	} else if ((text[0] == 'r' || text[0] == 'e') && len > 1) {
		p->kind = SHEAF_PART_TOOL_RESULT;
		p->tool_use_id = dup(f, text + 1, len - 1);
		p->tool_name = SHEAF_STR("bash");
		p->text = text[0] == 'r' ? SHEAF_STR("out") : str_make(NULL, 0);
	} else {
		p->text = dup(f, text, len);
	}
	if (text[0] == 'e' && len > 1) {
		const sheaf_part **parts = zalloc(f, 2 * sizeof(*parts));
		parts[0] = part_spelled(f, "-", 1);
		parts[1] = part_spelled(f, "x", 1);
		p->parts = parts;
		p->part_count = 2;
	}
	return p;
}

static void item_add(fixture *f, sheaf_str role, const sheaf_part *const *parts, size_t count)
{
	sheaf_entry *e = zalloc(f, sizeof(*e));
	sheaf_message_view *m = zalloc(f, sizeof(*m));
	sheaf_item *item = zalloc(f, sizeof(*item));
	const sheaf_part **list = zalloc(f, (count + 1) * sizeof(*list));
	char id[24];
	assert_true(f->count < ITEMS_MAX);
	if (count != 0)
		memcpy(list, parts, count * sizeof(*list));
	e->kind = SHEAF_KIND_MESSAGE;
	e->seq = f->count + 1;
	e->id = dup(f, id, (size_t)snprintf(id, sizeof(id), "m%zu", f->count + 1));
	m->role = role;
	m->provider = SHEAF_STR("anthropic");
	m->model = SHEAF_STR("claude");
	m->parts = list;
	m->part_count = count;
	m->json = dup(f, "{}", 2);
	e->message = m;
	item->kind = SHEAF_ITEM_MESSAGE;
	item->entry = e;
	item->message = m;
	f->items[f->count++] = item;
}

static void list_spelled(fixture *f, const char *line)
{
	while (*line != '\0') {
		const sheaf_part *parts[PARTS_MAX];
		size_t count = 0, r = 0;
		while (roles[r][0][0] != *line)
			r++;
		for (line += 2; *line != '\0' && *line != ' '; line += *line == ',') {
			size_t len = strcspn(line, ", ");
			parts[count++] = part_spelled(f, line, len);
			line += len;
		}
		item_add(f, sheaf_str_of(roles[r][1]), parts, count);
		line += *line == ' ';
	}
}

static size_t put(char *out, size_t at, const char *prefix, sheaf_str s)
{
	at += (size_t)snprintf(out + at, LINE_MAX - at, "%s%.*s", prefix, (int)s.len,
	                       s.ptr != NULL ? s.ptr : "");
	assert_true(at < LINE_MAX);
	return at;
}

static size_t part_spell(char *out, size_t at, const sheaf_part *p)
{
	static const char orphan[] = "[tool result bash ";
	switch (p->kind) {
	case SHEAF_PART_TOOL_USE:
		return put(out, at, "c", p->id);
	case SHEAF_PART_TOOL_RESULT:
		if (p->synthetic) {
			assert_true(str_is(p->text, MEND_INTERRUPTED));
			assert_int_equal(p->is_error, 1);
			assert_null(p->json.ptr);
		}
		return put(out, at, p->synthetic ? "!" : "r", p->tool_use_id);
	case SHEAF_PART_THINKING:
		return put(out, at, p->signature.len != 0 ? "*" : "~", str_make(NULL, 0));
	default:
		break;
	}
	if (p->text.len == 0)
		return put(out, at, "-", str_make(NULL, 0));
	if (!str_starts(p->text, orphan))
		return put(out, at, "", p->text);
	const char *id = p->text.ptr + strlen(orphan);
	return put(out, at, "o", str_make(id, strcspn(id, "]")));
}

static void list_spell(char *out, const sheaf_item *const *items, size_t count)
{
	size_t at = 0;
	out[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const sheaf_message_view *m = items[i]->message;
		size_t r = 0;
		while (!str_is(m->role, roles[r][1]))
			r++;
		at = put(out, at, i != 0 ? " " : "", sheaf_str_of(roles[r][0]));
		for (size_t p = 0; p < m->part_count; p++) {
			at = put(out, at, p == 0 ? "=" : ",", str_make(NULL, 0));
			at = part_spell(out, at, m->parts[p]);
		}
		if (m->part_count == 0)
			at = put(out, at, "=", str_make(NULL, 0));
	}
}

static void notes_spell(char *out, const mended *m)
{
	static const char *const names[] = {"?",     "interrupted", "late", "orphan", "second",
	                                    "empty", "foreign",     "?",    "?"};
	size_t at = 0;
	out[0] = '\0';
	for (size_t i = 0; i < m->note_count; i++) {
		const sheaf_note *n = m->notes[i];
		at = put(out, at, i != 0 ? " " : "", sheaf_str_of(names[n->what]));
		at = put(out, at, ":", n->entry_id);
		if (n->detail.len != 0)
			at = put(out, at, "/", n->detail);
	}
}

static void run(fixture *f)
{
	sheaf_error err;
	int rc = mend_items(&f->out, f->items, f->count, f->provider, f->model, f->a, &err);
	assert_int_equal(rc, 0);
}

/* Mends `list`, then mends the result: that must change nothing. */
static void check_for(const char *provider, const char *model, const char *list, const char *want,
                      const char *want_notes)
{
	fixture f;
	char got[LINE_MAX];
	fixture_begin(&f);
	f.provider = sheaf_str_of(provider);
	f.model = sheaf_str_of(model);
	list_spelled(&f, list);
	run(&f);
	list_spell(got, f.out.items, f.out.count);
	assert_string_equal(got, want);
	notes_spell(got, &f.out);
	assert_string_equal(got, want_notes);

	sheaf_error err;
	mended again;
	assert_int_equal(
		mend_items(&again, f.out.items, f.out.count, f.provider, f.model, f.a, &err), 0);
	assert_int_equal(again.note_count, 0);
	assert_int_equal(again.count, f.out.count);
	for (size_t i = 0; i < again.count; i++)
		assert_ptr_equal(again.items[i], f.out.items[i]);
	fixture_end(&f);
}

static void check(const char *list, const char *want, const char *want_notes)
{
	check_for(NULL, NULL, list, want, want_notes);
}

/* ---- Cases --------------------------------------------------------------- */

static void test_good_lists_stay(void **state)
{
	(void)state;
	static const char *const lists[] = {
		"",
		"u=hi",
		"s=be u=hi a=hello",
		"u=hi a=~,text,c1 t=r1 a=done",
		"u=hi a=c1,c2 t=r1,r2 a=done",
		"u=hi a=c1,c2 t=r1 t=r2 a=done",
		"u=hi a=c1,c2 u=r1,r2 a=done",
		"u=hi a=c1,c2 u=r1,r2,more a=done",
		"u=hi a=c1,c2 t=r1 u=r2,more a=done",
		"u=hi a=c1 t=r1 a=c1 t=r1",
		"u=hi a=c1,c1 t=r1,r1",
		"u=hi b= a=x",
		"u=hi a=c1 u=r1,x,c2 t=r2",
	};
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		fixture f;
		fixture_begin(&f);
		list_spelled(&f, lists[i]);
		run(&f);
		assert_int_equal(f.out.note_count, 0);
		assert_int_equal(f.out.count, f.count);
		for (size_t k = 0; k < f.count; k++)
			assert_ptr_equal(f.out.items[k], f.items[k]);
		fixture_end(&f);
	}
}

static void test_interrupted_call(void **state)
{
	(void)state;
	check("u=hi a=c1", "u=hi a=c1 t=!1", "interrupted:m2/1");
	check("u=hi a=c1 u=go", "u=hi a=c1 t=!1 u=go", "interrupted:m2/1");
	check("a=c1,c2,c3 t=r2 u=go", "a=c1,c2,c3 t=r2 t=!1 t=!3 u=go",
	      "interrupted:m1/1 interrupted:m1/3");
	/* The same id again: the newer call takes the answer. */
	check("a=c1 a=c1 t=r1", "a=c1 t=!1 a=c1 t=r1", "interrupted:m1/1");
}

static void test_interrupted_answer_is_made_of_the_call(void **state)
{
	(void)state;
	fixture f;
	fixture_begin(&f);
	list_spelled(&f, "a=c77");
	run(&f);
	assert_int_equal(f.out.count, 2);
	const sheaf_item *item = f.out.items[1];
	assert_int_equal(item->kind, SHEAF_ITEM_MESSAGE);
	assert_int_equal(item->synthetic, 1);
	assert_null(item->entry);
	const sheaf_part *p = item->message->parts[0];
	assert_true(str_is(p->tool_use_id, "77"));
	assert_true(str_is(p->tool_name, "bash"));
	assert_true(str_is(p->text, "interrupted"));
	assert_int_equal(p->synthetic, 1);
	assert_int_equal(p->is_error, 1);
	fixture_end(&f);
}

static void test_late_answer(void **state)
{
	(void)state;
	check("a=c1 u=wait t=r1", "a=c1 t=r1 u=wait", "late:m3/1");
	check("a=c1 a=c2 t=r1 t=r2", "a=c1 t=r1 a=c2 t=r2", "late:m3/1");
	check("a=c1 u=x,r1", "a=c1 u=r1 u=x", "late:m2/1");
	check("a=c1 u=x,r1,y", "a=c1 u=r1 u=x,y", "late:m2/1");
	check("a=c1,c2 u=r1,x t=r2", "a=c1,c2 u=r1 t=r2 u=x", "late:m3/2");
	/* Inside the message that makes the call. */
	check("a=c1,r1,x", "a=c1,x t=r1", "late:m1/1");
}

static void test_answers_keep_their_order(void **state)
{
	(void)state;
	check("a=c1,c2 t=r2 t=r1", "a=c1,c2 t=r2 t=r1", "");
	check("a=c1,c2 t=r2,r1", "a=c1,c2 t=r2,r1", "");
	check("a=c1,c2,c3 t=r2 u=r3,r1,x", "a=c1,c2,c3 t=r2 u=r3,r1,x", "");
	check("a=c1,c2 t=r2,x,r1", "a=c1,c2 t=r2,r1 u=x", "late:m2/1");
	/* One message with the answers to calls of two. */
	check("a=c1 a=c2 t=r1,r2", "a=c1 t=r1 a=c2 t=r2", "late:m3/1");
}

static void test_orphan_answer(void **state)
{
	(void)state;
	check("u=hi t=r9 a=x", "u=hi u=o9 a=x", "orphan:m2/9");
	check("u=hi,r9,x", "u=hi,o9,x", "orphan:m1/9");
	check("a=c1 t=r1,r9", "a=c1 t=r1 u=o9", "orphan:m2/9");
	/* Never in the model's mouth. */
	check("a=x,r9,y", "a=x,y u=o9", "orphan:m1/9");
	check("a=x,r9,c1 t=r1", "a=x,c1 t=r1 u=o9", "orphan:m1/9");
	check("a=x,r9,c1 u=r1,more", "a=x,c1 u=r1 u=o9 u=more", "orphan:m1/9");
	/* An answer that comes before its call is none. */
	check("t=r1 a=c1", "u=o1 a=c1 t=!1", "orphan:m1/1 interrupted:m2/1");
}

static void test_orphan_keeps_what_it_holds(void **state)
{
	(void)state;
	fixture f;
	fixture_begin(&f);
	sheaf_part *image = zalloc(&f, sizeof(*image)), *result = zalloc(&f, sizeof(*result));
	const sheaf_part *in[] = {part_spelled(&f, "one", 3), image, part_spelled(&f, "-", 1),
	                          part_spelled(&f, "two", 3)};
	image->kind = SHEAF_PART_IMAGE;
	result->kind = SHEAF_PART_TOOL_RESULT;
	result->tool_use_id = SHEAF_STR("call-9");
	result->parts = in;
	result->part_count = 4;
	const sheaf_part *parts[] = {result};
	item_add(&f, SHEAF_STR(SHEAF_ROLE_TOOL), parts, 1);
	run(&f);
	assert_int_equal(f.out.count, 1);
	const sheaf_message_view *m = f.out.items[0]->message;
	assert_int_equal(m->part_count, 2);
	assert_true(str_is(m->role, SHEAF_ROLE_USER));
	assert_true(str_is(m->parts[0]->text, "[tool result call-9]\none\ntwo"));
	assert_int_equal(strlen(m->parts[0]->text.ptr), m->parts[0]->text.len);
	assert_ptr_equal(m->parts[1], image);
	assert_null(m->json.ptr);
	assert_ptr_equal(f.out.items[0]->entry, f.items[0]->entry);
	fixture_end(&f);
}

static void test_second_answer(void **state)
{
	(void)state;
	check("a=c1 t=r1 t=r1 u=x", "a=c1 t=r1 u=x", "second:m3/1");
	check("a=c1 t=r1,r1", "a=c1 t=r1", "second:m2/1");
	check("a=c1 t=r1 u=x a=c1 t=r1 t=r1", "a=c1 t=r1 u=x a=c1 t=r1", "second:m6/1");
	check("a=c1 u=r1,r1,x", "a=c1 u=r1,x", "second:m2/1");
}

static void test_empty_text(void **state)
{
	(void)state;
	check("u=- a=x", "a=x", "empty:m1");
	check("u=x b=- a=y", "u=x b= a=y", "empty:m2");
	check("u=-,x,- a=y", "u=x a=y", "empty:m1 empty:m1");
	check("u= a=x", "a=x", "empty:m1");
	/* What is left out does not lie between. */
	check("a=c1,- u=- t=r1", "a=c1 t=r1", "empty:m1 empty:m2");
	check("a=c1 t=e1", "a=c1 t=r1", "empty:m2/1");
	check("a=c1 u=e1,x", "a=c1 u=r1,x", "empty:m2/1");
	check("t=e1", "u=o1", "empty:m1/1 orphan:m1/1");
}

static void test_foreign_thinking(void **state)
{
	(void)state;
	check("a=*,x", "a=*,x", "");
	check_for("anthropic", "claude", "a=*,x", "a=*,x", "");
	check_for("anthropic", NULL, "a=*,x", "a=*,x", "");
	check_for("anthropic", "other", "a=*,x", "a=x", "foreign:m1");
	check_for("openai", "claude", "a=*,x a=~,y", "a=x a=~,y", "foreign:m1");
	check_for("openai", NULL, "a=* u=x", "u=x", "foreign:m1");
	check_for(NULL, "other", "a=*,x", "a=*,x", "");
	check_for("openai", NULL, "a=*,c1 t=r1", "a=c1 t=r1", "foreign:m1");
}

static void test_split_messages_keep_their_entry(void **state)
{
	(void)state;
	fixture f;
	fixture_begin(&f);
	list_spelled(&f, "a=c1 a=c2 t=r1,r2");
	run(&f);
	assert_int_equal(f.out.count, 4);
	assert_ptr_equal(f.out.items[1]->entry, f.items[2]->entry);
	assert_ptr_equal(f.out.items[3]->entry, f.items[2]->entry);
	assert_ptr_equal(f.out.items[1]->message->parts[0], f.items[2]->message->parts[0]);
	assert_int_equal(f.out.items[1]->synthetic, 0);
	assert_null(f.out.items[1]->message->json.ptr);
	assert_ptr_equal(f.out.items[0], f.items[0]);
	fixture_end(&f);
}

/* ---- Random lists -------------------------------------------------------- */

typedef struct rng {
	uint64_t s;
} rng;

static size_t below(rng *r, size_t n)
{
	r->s ^= r->s << 13;
	r->s ^= r->s >> 7;
	r->s ^= r->s << 17;
	return (size_t)((r->s >> 11) % n);
}

static void random_list(fixture *f, rng *r)
{
	static const char *const texts[] = {"-", "*", "~", "x", "y", "z"};
	size_t items = below(r, 14), ids = 1 + below(r, 6);
	for (size_t i = 0; i < items; i++) {
		static const size_t usual[] = {1, 2, 2, 3, 3, 3, 0, 4};
		size_t role = usual[below(r, 8)], count = below(r, 5);
		const sheaf_part *parts[PARTS_MAX];
		for (size_t p = 0; p < count; p++) {
			char spelled[8];
			size_t kind = below(r, 10);
			/* Mostly what belongs there, and sometimes anything anywhere. */
			bool calls = role == 2 ? kind < 5 : kind == 9;
			bool answers = role == 3 ? kind < 8 : role == 1 ? kind < 3 : kind == 8;
			const char *what = calls     ? "c"
			                   : answers ? (below(r, 9) == 0 ? "e" : "r")
			                             : "";
			int len = snprintf(spelled, sizeof(spelled), "%s%zu", what, below(r, ids));
			if (!calls && !answers)
				len = snprintf(spelled, sizeof(spelled), "%s", texts[below(r, 6)]);
			parts[p] = part_spelled(f, spelled, (size_t)len);
		}
		item_add(f, sheaf_str_of(roles[role][1]), parts, count);
	}
	if (below(r, 3) == 0)
		f->provider = sheaf_str_of(below(r, 2) == 0 ? "anthropic" : "openai");
	if (below(r, 2) == 0)
		f->model = sheaf_str_of(below(r, 2) == 0 ? "claude" : "gpt");
}

/* One part of a list, in order. */
typedef struct spot {
	size_t item;
	const sheaf_part *part;
	const sheaf_part *answer; /* of a call; itself, for a result that is one */
} spot;

static size_t spots_of(spot *out, const sheaf_item *const *items, size_t count)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++) {
		for (size_t p = 0; p < items[i]->message->part_count; p++)
			out[n++] = (spot){i, items[i]->message->parts[p], NULL};
	}
	return n;
}

/* The rule, said the slow way: the nearest earlier message with an open call of the id. */
static void pair_naively(spot *spots, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		if (spots[k].part->kind != SHEAF_PART_TOOL_RESULT)
			continue;
		spot *best = NULL;
		for (size_t i = 0; i < k; i++) {
			if (spots[i].part->kind != SHEAF_PART_TOOL_USE || spots[i].answer != NULL ||
			    !str_eq(spots[i].part->id, spots[k].part->tool_use_id))
				continue;
			if (best == NULL || spots[i].item > best->item)
				best = &spots[i];
		}
		if (best != NULL)
			best->answer = spots[k].answer = spots[k].part;
	}
}

static bool same_answer(const sheaf_part *a, const sheaf_part *b)
{
	/* A trimmed result is a copy. */
	return a == b || (b->part_count != 0 && a->json.ptr == NULL && !a->synthetic &&
	                  str_eq(a->tool_use_id, b->tool_use_id));
}

/* Which call of those that begin at `first` this answers; the number of spots if none does. */
static size_t call_of(const spot *in, size_t n, size_t first, const sheaf_part *answer,
                      const bool *taken)
{
	for (size_t k = first; k < n && in[k].item == in[first].item; k++) {
		if (in[k].part->kind != SHEAF_PART_TOOL_USE || taken[k] ||
		    !str_eq(answer->tool_use_id, in[k].part->id) ||
		    answer->synthetic != (in[k].answer == NULL))
			continue;
		if (in[k].answer == NULL || same_answer(answer, in[k].answer))
			return k;
	}
	return n;
}

/* Where an answer came in; what was made up comes last, in the order of the calls. */
static size_t arrival(const spot *in, size_t n, size_t call)
{
	for (size_t k = 0; k < n; k++) {
		if (in[call].answer != NULL && in[k].part == in[call].answer)
			return k;
	}
	return n + call;
}

/* Behind each message with calls its answers, as they came in; none elsewhere; the right ones. */
static void verify_pairs(const fixture *f, const spot *in, size_t n)
{
	const mended *m = &f->out;
	bool *taken = calloc(n + 1, sizeof(*taken));
	size_t next = 0; /* in `in`: the next call */
	assert_non_null(taken);
	for (size_t i = 0; i < m->count; i++) {
		const sheaf_message_view *calls = m->items[i]->message;
		size_t first = n, count = 0, item = i, part = SIZE_MAX, last = 0;
		for (size_t p = 0; p < calls->part_count; p++) {
			if (calls->parts[p]->kind != SHEAF_PART_TOOL_USE)
				continue;
			while (in[next].part->kind != SHEAF_PART_TOOL_USE)
				next++;
			assert_ptr_equal(in[next].part, calls->parts[p]);
			first = count++ == 0 ? next : first;
			next++;
		}
		for (size_t k = 0; k < count; k++) {
			if (item == i || ++part == m->items[item]->message->part_count) {
				item++;
				part = 0;
			}
			assert_true(item < m->count && part < m->items[item]->message->part_count);
			const sheaf_part *answer = m->items[item]->message->parts[part];
			assert_int_equal(answer->kind, SHEAF_PART_TOOL_RESULT);
			size_t call = call_of(in, n, first, answer, taken);
			assert_true(call < n);
			taken[call] = true;
			assert_true(k == 0 || arrival(in, n, call) > last);
			last = arrival(in, n, call);
		}
	}
	while (next < n)
		assert_int_not_equal(in[next++].part->kind, SHEAF_PART_TOOL_USE);
	free(taken);
}

/* Texts and the like are what came in, in the same order, less what had to go. */
static void verify_content(const fixture *f, const spot *in, size_t n)
{
	const mended *m = &f->out;
	size_t at = 0, calls = 0, answers = 0, orphans = 0, want_orphans = 0;
	for (size_t i = 0; i < m->count; i++) {
		const sheaf_message_view *v = m->items[i]->message;
		assert_true(v->part_count != 0 || str_is(v->role, SHEAF_ROLE_BASH));
		for (size_t p = 0; p < v->part_count; p++) {
			const sheaf_part *part = v->parts[p];
			assert_false(part->kind == SHEAF_PART_TEXT && part->text.len == 0);
			for (size_t q = 0; q < part->part_count; q++)
				assert_int_not_equal(part->parts[q]->text.len, 0);
			calls += part->kind == SHEAF_PART_TOOL_USE;
			answers += part->kind == SHEAF_PART_TOOL_RESULT;
			if (part->kind == SHEAF_PART_TOOL_RESULT)
				continue;
			if (part->json.ptr == NULL) {
				orphans++;
				assert_true(str_is(v->role, SHEAF_ROLE_USER));
				continue;
			}
			while (at < n && in[at].part != part) {
				const sheaf_part *gone = in[at++].part;
				assert_true(gone->kind == SHEAF_PART_TOOL_RESULT ||
				            gone->text.len == 0 || gone->signature.len != 0);
			}
			assert_true(at++ < n);
		}
	}
	for (size_t k = 0; k < n; k++) {
		bool known = false;
		for (size_t i = 0; i < k; i++)
			known |= in[i].part->kind == SHEAF_PART_TOOL_USE &&
			         str_eq(in[i].part->id, in[k].part->tool_use_id);
		want_orphans += in[k].part->kind == SHEAF_PART_TOOL_RESULT && !known;
	}
	assert_int_equal(calls, answers);
	assert_int_equal(orphans, want_orphans);
}

static void verify_again(fixture *f)
{
	sheaf_error err;
	mended twice, again;
	char one[LINE_MAX], two[LINE_MAX];
	assert_int_equal(mend_items(&twice, f->items, f->count, f->provider, f->model, f->a, &err),
	                 0);
	list_spell(one, f->out.items, f->out.count);
	list_spell(two, twice.items, twice.count);
	assert_string_equal(one, two);
	notes_spell(one, &f->out);
	notes_spell(two, &twice);
	assert_string_equal(one, two);
	assert_int_equal(
		mend_items(&again, f->out.items, f->out.count, f->provider, f->model, f->a, &err),
		0);
	assert_int_equal(again.note_count, 0);
	assert_int_equal(again.count, f->out.count);
	for (size_t i = 0; i < again.count; i++)
		assert_ptr_equal(again.items[i], f->out.items[i]);
}

static void test_random_lists(void **state)
{
	(void)state;
	rng r = {UINT64_C(0x9e3779b97f4a7c15)};
	size_t notes[SHEAF_NOTE_DAMAGE + 1] = {0};
	for (size_t round = 0; round < 20000; round++) {
		fixture f;
		spot in[ITEMS_MAX * PARTS_MAX];
		fixture_begin(&f);
		random_list(&f, &r);
		run(&f);
		size_t n = spots_of(in, f.items, f.count);
		pair_naively(in, n);
		verify_pairs(&f, in, n);
		verify_content(&f, in, n);
		verify_again(&f);
		for (size_t i = 0; i < f.out.note_count; i++)
			notes[f.out.notes[i]->what]++;
		fixture_end(&f);
	}
	for (int what = SHEAF_NOTE_INTERRUPTED; what <= SHEAF_NOTE_FOREIGN_THINKING; what++)
		assert_true(notes[what] > 500);
}

/* ---- Limits -------------------------------------------------------------- */

static void test_many_calls_cost_little(void **state)
{
	(void)state;
	/* One message with very many calls of one id: any search among them would be squared. */
	enum {
		MANY = 200000
	};
	fixture f;
	fixture_begin(&f);
	const sheaf_part *call = part_spelled(&f, "c1", 2), *result = part_spelled(&f, "r1", 2);
	const sheaf_part **calls = zalloc(&f, MANY * sizeof(*calls));
	const sheaf_part **results = zalloc(&f, MANY * sizeof(*results));
	for (size_t i = 0; i < MANY; i++) {
		calls[i] = call;
		results[i] = result;
	}
	item_add(&f, SHEAF_STR(SHEAF_ROLE_ASSISTANT), calls, MANY);
	item_add(&f, SHEAF_STR(SHEAF_ROLE_TOOL), results, MANY);
	item_add(&f, SHEAF_STR(SHEAF_ROLE_TOOL), results, 3);
	run(&f);
	assert_int_equal(f.out.count, 2);
	assert_int_equal(f.out.note_count, 3);
	assert_ptr_equal(f.out.items[1], f.items[1]);
	fixture_end(&f);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	fail_alloc_install();
	for (size_t n = 1;; n++) {
		fixture f;
		sheaf_error err;
		fail_alloc_at(0, false);
		fixture_begin(&f);
		list_spelled(&f, "u=- a=c1,c2,r9 u=x,e1 t=r7 a=c3 t=r3,r3 a=*,c5 b=");
		fail_alloc_at(n, false);
		int rc = mend_items(&f.out, f.items, f.count, f.provider, f.model, f.a, &err);
		bool hit = fail_alloc_hit();
		assert_int_equal(rc, hit ? SHEAF_NOMEM : 0);
		fixture_end(&f);
		if (!hit)
			break;
	}
	assert_int_equal(fail_alloc_live(), 0);
	fail_alloc_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_lists_stay),
		cmocka_unit_test(test_interrupted_call),
		cmocka_unit_test(test_interrupted_answer_is_made_of_the_call),
		cmocka_unit_test(test_late_answer),
		cmocka_unit_test(test_answers_keep_their_order),
		cmocka_unit_test(test_orphan_answer),
		cmocka_unit_test(test_orphan_keeps_what_it_holds),
		cmocka_unit_test(test_second_answer),
		cmocka_unit_test(test_empty_text),
		cmocka_unit_test(test_foreign_thinking),
		cmocka_unit_test(test_split_messages_keep_their_entry),
		cmocka_unit_test(test_random_lists),
		cmocka_unit_test(test_many_calls_cost_little),
		cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests_name("core/mend", tests, NULL, NULL);
}
