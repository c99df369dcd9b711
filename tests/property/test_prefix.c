/*
 * Random conversations that go on: what was sent before stands at the front of
 * what is sent next, block for block and without the cache marks, unless the
 * context says what broke it.
 *
 *   test_property_prefix [SEED]     SHEAF_TEST_SCALE multiplies the number of histories
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "property/render_many.h"

#define HISTORIES 10000
#define BLOCKS_MAX 1024

/* A rendering as a list of blocks. */
typedef struct sent {
	sheaf_context *context;
	sheaf_request *request;
	buf blocks[BLOCKS_MAX]; /* role, then the bytes without marks */
	size_t count;
} sent;

static void sent_free(sent *s)
{
	for (size_t i = 0; i < s->count; i++)
		buf_free(&s->blocks[i]);
	sheaf_request_free(s->request);
	sheaf_context_free(s->context);
}

/* Everything but the marks, which move. */
static void add_unmarked(buf *out, sheaf_str bytes)
{
	static const char mark[] = ",\"cache_control\":{";
	const size_t len = sizeof(mark) - 1;
	for (size_t i = 0; i < bytes.len; i++) {
		if (bytes.len - i > len && memcmp(bytes.ptr + i, mark, len) == 0) {
			const char *end = memchr(bytes.ptr + i, '}', bytes.len - i);
			i = end != NULL ? (size_t)(end - bytes.ptr) : bytes.len;
			continue;
		}
		buf_char(out, bytes.ptr[i]);
	}
}

static void sent_add(void *ctx, const seen_block *b)
{
	sent *s = ctx;
	if (s->count == BLOCKS_MAX)
		abort();
	buf *out = &s->blocks[s->count++];
	*out = (buf)BUF_INIT(SIZE_MAX / 2);
	buf_char(out, b->role);
	add_unmarked(out, b->bytes);
}

/* What stands before the messages. */
static void sent_add_front(sent *s)
{
	static const char *const members[] = {"tools", "system", "instructions",
	                                      "systemInstruction"};
	for (size_t i = 0; i < COUNT_OF(members); i++) {
		seen_block b = {.role = 'f'};
		b.bytes = json_member_bytes(s->request->body, members[i]);
		sent_add(s, &b);
	}
}

/* 1: rendered; 0: there is nothing to send; -1: it failed. */
static int sent_make(sent *s, runner *r, const sheaf_render_options *how, bool addressed)
{
	sheaf_context_options which = SHEAF_CONTEXT_OPTIONS_INIT;
	*s = (sent){.count = 0};
	if (addressed) {
		which.provider = sheaf_str_of(sheaf_format_provider(how->format));
		which.model = how->model;
	}
	if (sheaf_session_context(&s->context, r->h.session, &which, &r->h.err) != 0) {
		(void)runner_fails(r, "context", r->h.err.message);
		return -1;
	}
	int rc = sheaf_render(&s->request, s->context, how, &r->h.err);
	if (rc == SHEAF_CONTEXT)
		return 0;
	if (rc != 0) {
		(void)runner_fails(r, "render", r->h.err.message);
		return -1;
	}
	sent_add_front(s);
	return body_each(how->format, s->request->body, sent_add, s) ? 1 : -1;
}

/* Whether the context had calls nobody had answered. */
static bool had_open_calls(const sheaf_context *c)
{
	for (size_t i = 0; i < c->note_count; i++) {
		if (c->notes[i]->what == SHEAF_NOTE_INTERRUPTED)
			return true;
	}
	return false;
}

/* Whether the break may be: after a plain turn only answers break a prefix. */
static bool is_allowed(const sheaf_common *common, const sent *before, bool plain)
{
	switch (common->why) {
	case SHEAF_BREAK_LATE_ANSWER:
		return had_open_calls(before->context);
	case SHEAF_BREAK_COMPACTION:
	case SHEAF_BREAK_BRANCH:
		return !plain;
	default:
		return false;
	}
}

/* ---- What stands before a break -------------------------------------------- */

static void marks_take(uint8_t *shared, sheaf_str text)
{
	unsigned mark;
	for (size_t at = 0; (mark = mark_next(text, &at)) != 0;)
		shared[mark] = 1;
}

/* The marks of the items that both contexts begin with. */
static void marks_shared(uint8_t *shared, const sheaf_context *c, size_t items)
{
	memset(shared, 0, MARKS_MAX);
	for (size_t i = 0; i < items; i++) {
		const sheaf_message_view *m = c->items[i]->message;
		marks_take(shared, m->json);
		for (size_t p = 0; p < m->part_count; p++) {
			const sheaf_part *q = m->parts[p];
			const sheaf_str texts[] = {q->text, q->signature, q->input,
			                           q->data, q->raw,       q->json};
			for (size_t t = 0; t < COUNT_OF(texts); t++)
				marks_take(shared, texts[t]);
		}
	}
}

/* How many blocks at the front hold nothing but what is shared; one without a mark may not. */
static size_t blocks_shared(const sent *s, const uint8_t *shared)
{
	size_t count = 0;
	for (size_t i = 0; i < s->count; i++) {
		unsigned mark;
		bool any = false, all = true;
		for (size_t at = 0; (mark = mark_next(buf_view(&s->blocks[i]), &at)) != 0;
		     any = true)
			all = all && shared[mark];
		if (!all)
			break;
		if (any)
			count = i + 1;
	}
	return count;
}

/* `marked`: of blocks without a mark it is not known whose they are. */
static bool same_blocks(runner *r, const sent *before, const sent *after, size_t count, bool marked)
{
	const char *name = sheaf_format_name(before->request->format);
	char text[WHY_ROOM];
	for (size_t i = 0; i < count; i++) {
		if (marked && mark_next(buf_view(&before->blocks[i]), &(size_t){0}) == 0)
			continue;
		if (i < after->count &&
		    str_eq(buf_view(&before->blocks[i]), buf_view(&after->blocks[i])))
			continue;
		(void)snprintf(text, sizeof(text), "block %zu is not what it was: %.150s | %.150s",
		               i, before->blocks[i].ptr,
		               i < after->count ? after->blocks[i].ptr : "");
		return runner_fails(r, name, text);
	}
	return true;
}

static bool check_prefix(runner *r, const sent *before, const sent *after, bool plain)
{
	const char *name = sheaf_format_name(before->request->format);
	sheaf_common common;
	char text[WHY_ROOM];
	sheaf_context_common(&common, before->context, after->context);
	if (common.items < before->context->count && !is_allowed(&common, before, plain)) {
		(void)snprintf(text, sizeof(text), "broken at item %zu for reason %d", common.items,
		               (int)common.why);
		return runner_fails(r, name, text);
	}
	if (common.items == before->context->count)
		return same_blocks(r, before, after, before->count, false);
	uint8_t shared[MARKS_MAX];
	marks_shared(shared, before->context, common.items);
	return same_blocks(r, before, after, blocks_shared(before, shared), true);
}

static bool check_more(runner *r, const sent *before, const sheaf_render_options *how,
                       bool addressed, bool plain)
{
	sent *after = calloc(1, sizeof(*after));
	if (after == NULL)
		abort();
	int made = sent_make(after, r, how, addressed);
	bool good = made == 0 || (made > 0 && check_prefix(r, before, after, plain));
	if (!good && r->print) {
		(void)fprintf(stderr, "before: %s\n", before->request->body.ptr);
		if (after->request != NULL)
			(void)fprintf(stderr, "after:  %s\n", after->request->body.ptr);
	}
	sent_free(after);
	free(after);
	return good;
}

static sheaf_render_options options_make(int32_t format, chance *c)
{
	static const char *const models[] = {"", "claude-sonnet-4-5", "gpt-5", "gpt-5",
	                                     "gemini-3-pro-preview"};
	static const sheaf_tool tool = {{"bash", 4}, {NULL, 0}, {NULL, 0}};
	static const sheaf_system system = {{"be good", 7}, 0, 0};
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	how.format = format;
	how.model = sheaf_str_of(models[format]);
	how.tools = &tool;
	how.tool_count = 1;
	how.system = &system;
	how.system_count = chance_below(c, 2);
	how.cache = (int32_t)chance_below(c, 4);
	how.thinking_as_text = chance_percent(c, 20);
	return how;
}

/* All formats are rendered, the conversation goes on, and all are rendered again. */
static bool check_all(runner *r, uint64_t seed)
{
	chance c = {seed ^ UINT64_C(0xf00d)};
	bool plain = chance_percent(&c, 70), addressed = chance_percent(&c, 60), good = true;
	sheaf_render_options how[5];
	sent *before = calloc(5, sizeof(*before));
	int made[5] = {0};
	act more[STEPS_MAX];
	if (before == NULL)
		abort();
	for (int32_t f = 1; good && f <= 4; f++) {
		how[f] = options_make(f, &c);
		made[f] = sent_make(&before[f], r, &how[f], addressed);
		good = made[f] >= 0;
	}
	size_t turns = 1 + chance_below(&c, 3), steps = steps_make(more, chance_next(&c));
	for (size_t i = 0; good && i < turns; i++) {
		const act *step = &more[i % steps];
		if (!plain && strcmp(step_name(step), "fork") == 0)
			continue; /* another session */
		int rc = plain ? history_turn(&r->h, chance_next(&c)) : history_step(&r->h, step);
		if (rc != 0)
			good = runner_fails(r, "history", r->h.err.message);
	}
	for (int32_t f = 1; good && f <= 4; f++) {
		if (made[f] > 0)
			good = check_more(r, &before[f], &how[f], addressed, plain);
	}
	for (int32_t f = 1; f <= 4; f++)
		sent_free(&before[f]);
	free(before);
	return good;
}

int main(int argc, char **argv)
{
	return many_run(argc, argv, HISTORIES, check_all);
}
