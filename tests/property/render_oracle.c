/* Says what a context and its renderings must be; see render_oracle.h. */
#include "property/render_oracle.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static bool wrong(oracle *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool wrong(oracle *o, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	(void)vsnprintf(o->why, sizeof(o->why), format, args);
	va_end(args);
	return false;
}

static bool same(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static bool is_user_like(const said *s)
{
	return same(s->role, SHEAF_ROLE_USER) || same(s->role, SHEAF_ROLE_TOOL);
}

static bool is_reply(const said *s)
{
	return same(s->role, SHEAF_ROLE_ASSISTANT);
}

static bool is_system(const said *s)
{
	return same(s->role, SHEAF_ROLE_SYSTEM) || same(s->role, SHEAF_ROLE_DEVELOPER);
}

/* ---- What is shown --------------------------------------------------------- */

static void show(oracle *o, const entry *e)
{
	if (o->count == SHOWN_MAX)
		return;
	if (e->kind == ENTRY_MESSAGE)
		o->items[o->count++] = (shown){e, e->said, 0};
	else if (e->kind == ENTRY_SUMMARY || e->kind == ENTRY_CUSTOM)
		o->items[o->count++] = (shown){e, NULL, e->mark};
}

static void note(oracle *o, int32_t what, uint64_t seq)
{
	if (o->note_count < EXPECTED_MAX)
		o->notes[o->note_count++] = (expected){what, seq, false};
}

static void may_note(oracle *o, int32_t what, uint64_t seq)
{
	if (o->note_count < EXPECTED_MAX)
		o->notes[o->note_count++] = (expected){what, seq, true};
}

/* From which place of the path on entries are kept; `end` is where the compaction stands. */
static size_t first_kept(oracle *o, const size_t *path, size_t end, const entry *cut)
{
	const history *h = o->h;
	for (size_t i = 0; i < end; i++) {
		if (same(h->entries[path[i]].id, cut->kept[0]))
			return i;
	}
	for (size_t f = 0; f < h->fact_count; f++) {
		if (!same(h->facts[f].id, cut->kept[0]))
			continue;
		size_t i = 0;
		while (i < end && h->entries[path[i]].seq < h->facts[f].seq)
			i++;
		return i;
	}
	note(o, SHEAF_NOTE_FIRST_KEPT, cut->seq);
	return 0;
}

static void show_kept_ids(oracle *o, const size_t *path, size_t end, const entry *cut)
{
	bool found[KEPT_MAX] = {false};
	for (size_t i = 0; i < end; i++) {
		bool kept = false;
		for (size_t k = 0; k < cut->kept_count; k++) {
			if (same(o->h->entries[path[i]].id, cut->kept[k]))
				found[k] = kept = true;
		}
		if (kept)
			show(o, &o->h->entries[path[i]]);
	}
	for (size_t k = 0; k < cut->kept_count; k++) {
		bool again = false;
		for (size_t n = 0; n < k; n++)
			again |= same(cut->kept[n], cut->kept[k]);
		if (!found[k] && !again)
			note(o, SHEAF_NOTE_FIRST_KEPT, cut->seq);
	}
}

static void show_path(oracle *o, size_t leaf)
{
	size_t path[ENTRIES_MAX], count = 0, at = 0;
	for (size_t i = leaf; i != NONE; i = o->h->entries[i].parent)
		count++;
	for (size_t i = leaf, k = count; i != NONE; i = o->h->entries[i].parent)
		path[--k] = i;
	for (size_t i = count; i-- > 0;) {
		const entry *cut = &o->h->entries[path[i]];
		if (cut->kind != ENTRY_COMPACTION)
			continue;
		if (cut->mark != 0)
			o->items[o->count++] = (shown){cut, NULL, cut->mark};
		for (size_t k = 0; k < cut->said_count; k++)
			o->items[o->count++] = (shown){cut, &cut->said[k], 0};
		if (cut->cut == CUT_KEPT_IDS)
			show_kept_ids(o, path, i, cut);
		at = cut->cut == CUT_FIRST_KEPT ? first_kept(o, path, i, cut) : i;
		break;
	}
	for (; at < count; at++)
		show(o, &o->h->entries[path[at]]);
}

/* ---- Who answers whom ------------------------------------------------------ */

/* Dates at the end of names do not make another model. */
static bool model_is(sheaf_str a, const char *b)
{
	const char *date = strstr(b, "-20250929");
	return str_is(a, b) || (date != NULL && str_eq(a, str_make(b, (size_t)(date - b))));
}

static bool is_maker(const said *s, sheaf_str provider, sheaf_str model)
{
	return s->maker == NULL || ((provider.len == 0 || str_is(provider, s->maker->provider)) &&
	                            (model.len == 0 || model_is(model, s->maker->model)));
}

static fate fate_of_result(oracle *o, size_t item, size_t p, size_t *call)
{
	const char *id = o->items[item].said->parts[p].id;
	bool known = false;
	*call = NONE;
	for (size_t i = 0; i < o->call_count; i++) {
		const asked *a = &o->calls[i];
		if (!same(o->items[a->item].said->parts[a->part].id, id))
			continue;
		known = true;
		if (a->answer_item == NONE && (*call == NONE || o->calls[*call].item != a->item))
			*call = i;
	}
	return *call != NONE ? FATE_ANSWER : known ? FATE_SECOND : FATE_ORPHAN;
}

static bool has_empty_inside(const part *p)
{
	for (size_t i = 0; i < p->inner_count; i++) {
		if (p->inner[i].kind == PART_EMPTY)
			return true;
	}
	return false;
}

static void judge_result(oracle *o, size_t i, size_t p, size_t said_so_far, const size_t *after)
{
	const part *result = &o->items[i].said->parts[p];
	uint64_t seq = o->items[i].from->seq;
	size_t call;
	fate f = fate_of_result(o, i, p, &call);
	o->fates[i][p] = (uint8_t)f;
	if (has_empty_inside(result) && f != FATE_SECOND)
		note(o, SHEAF_NOTE_EMPTY_TEXT, seq);
	if (f == FATE_ORPHAN)
		note(o, SHEAF_NOTE_ORPHAN_ANSWER, seq);
	if (f == FATE_SECOND)
		note(o, SHEAF_NOTE_SECOND_ANSWER, seq);
	if (f != FATE_ANSWER)
		return;
	asked *a = &o->calls[call];
	a->answer_item = i;
	a->answer_part = p;
	if (a->item == i || after[a->item] != said_so_far)
		note(o, SHEAF_NOTE_LATE_ANSWER, seq);
}

static void judge_part(oracle *o, size_t i, size_t p)
{
	const said *s = o->items[i].said;
	const part *what = &s->parts[p];
	uint64_t seq = o->items[i].from->seq;
	o->fates[i][p] = FATE_STAYS;
	if (what->kind == PART_EMPTY) {
		o->fates[i][p] = FATE_EMPTY;
		note(o, SHEAF_NOTE_EMPTY_TEXT, seq);
	} else if (what->kind == PART_THINKING && o->provider.len != 0 &&
	           (what->is_signed || what->redacted) && !is_maker(s, o->provider, o->model)) {
		o->fates[i][p] = FATE_FOREIGN;
		note(o, SHEAF_NOTE_FOREIGN_THINKING, seq);
	} else if (what->kind == PART_CALL) {
		o->calls[o->call_count++] = (asked){i, p, NONE, NONE};
	}
}

/* A message of no role that providers know may say something besides its parts. */
static bool speaks_besides(const said *s)
{
	for (size_t p = 0; p < s->count; p++) {
		if (s->parts[p].kind != PART_EMPTY)
			return false;
	}
	return !is_user_like(s) && !is_reply(s) && !is_system(s);
}

static void judge(oracle *o)
{
	size_t after[SHOWN_MAX], stays = 0;
	for (size_t i = 0; i < o->count; i++) {
		const said *s = o->items[i].said;
		for (size_t p = 0; s != NULL && p < s->count; p++) {
			if (s->parts[p].kind == PART_RESULT)
				judge_result(o, i, p, stays, after);
			else
				judge_part(o, i, p);
			stays += o->fates[i][p] == FATE_STAYS || o->fates[i][p] == FATE_ORPHAN;
		}
		stays += s == NULL || speaks_besides(s);
		after[i] = stays;
		if (s != NULL && s->count == 0 && !speaks_besides(s))
			note(o, SHEAF_NOTE_EMPTY_TEXT, o->items[i].from->seq);
	}
	for (size_t i = 0; i < o->call_count; i++) {
		if (o->calls[i].answer_item == NONE)
			note(o, SHEAF_NOTE_INTERRUPTED, o->items[o->calls[i].item].from->seq);
	}
}

void oracle_make(oracle *o, const history *h, size_t leaf, sheaf_str provider, sheaf_str model)
{
	o->h = h;
	o->provider = provider;
	o->model = model;
	o->count = o->call_count = o->note_count = 0;
	o->why[0] = '\0';
	show_path(o, leaf);
	judge(o);
}

/* ---- Notes ----------------------------------------------------------------- */

/* The expectation a note fulfils: one that must be fulfilled first. */
static size_t expected_by(const oracle *o, const sheaf_note *n, const bool *used)
{
	size_t found = o->note_count;
	for (size_t k = o->note_count; k-- > 0;) {
		const expected *e = &o->notes[k];
		if (!used[k] && e->what == n->what && (e->seq == 0 || e->seq == n->seq) &&
		    (found == o->note_count || !e->may))
			found = k;
	}
	return found;
}

static bool notes_match(oracle *o, const sheaf_note *const *notes, size_t count, const char *where)
{
	bool used[EXPECTED_MAX] = {false};
	for (size_t i = 0; i < count; i++) {
		size_t k = expected_by(o, notes[i], used);
		if (k == o->note_count)
			return wrong(o, "%s: a note without cause: %s at %llu (%.*s)", where,
			             sheaf_note_name(notes[i]->what),
			             (unsigned long long)notes[i]->seq, (int)notes[i]->detail.len,
			             notes[i]->detail.ptr != NULL ? notes[i]->detail.ptr : "");
		used[k] = true;
	}
	for (size_t k = 0; k < o->note_count; k++) {
		if (!used[k] && !o->notes[k].may)
			return wrong(o, "%s: mended without a note: %s at %llu", where,
			             sheaf_note_name(o->notes[k].what),
			             (unsigned long long)o->notes[k].seq);
	}
	return true;
}

bool oracle_context(oracle *o, const sheaf_context *context)
{
	return notes_match(o, context->notes, context->note_count, "context");
}

bool oracle_nothing(const oracle *o)
{
	for (size_t i = 0; i < o->count; i++) {
		const said *s = o->items[i].said;
		if (s != NULL && is_system(s))
			continue;
		if (s == NULL || (s->command != 0 && !s->excluded))
			return false;
		for (size_t p = 0; !s->excluded && p < s->count; p++) {
			if (s->parts[p].kind == PART_TEXT || s->parts[p].kind == PART_CALL ||
			    s->parts[p].kind == PART_RESULT)
				return false;
		}
	}
	return true;
}

/* ---- Renderings ------------------------------------------------------------ */

/* What one request is held against. */
typedef struct trial {
	oracle *o;
	const sheaf_request *q;
	const sheaf_render_options *how;
	bool elided;            /* something was left out for its size */
	size_t missing;         /* images that are not there then */
	bool unsent;            /* an opaque part was not sent */
	uint8_t may[MARKS_MAX]; /* 1: the mark must be there, 2: it may */
} trial;

static bool must(trial *t, unsigned mark, char role)
{
	const seen *s = &t->o->seen;
	if (mark == 0)
		return true;
	t->may[mark] = 1;
	if (s->times[mark] == 1 && s->role[mark] == role)
		return true;
	return wrong(t->o, "#%u# is there %u times, in '%c' and not in '%c'", mark, s->times[mark],
	             s->role[mark] != 0 ? s->role[mark] : '-', role);
}

/* Something that need not be there if a note says so. */
static bool may(trial *t, unsigned mark, bool demanded, int32_t what, uint64_t seq)
{
	if (mark == 0)
		return true;
	t->may[mark] = 2;
	if (t->o->seen.times[mark] != 0)
		return true;
	if (t->elided && what == SHEAF_NOTE_STAND_IN) {
		t->missing++; /* for its size, or for what it is */
		may_note(t->o, what, seq);
		return true;
	}
	if (demanded)
		return wrong(t->o, "#%u# could have been kept", mark);
	t->unsent |= what == SHEAF_NOTE_FOREIGN_PART;
	note(t->o, what, seq);
	return true;
}

static bool media_demanded(const trial *t, part_kind kind, bool common)
{
	return common && !(kind == PART_IMAGE && t->how->no_images);
}

static bool check_text(trial *t, const said *s, const part *p)
{
	const seen *found = &t->o->seen;
	char role = is_reply(s) ? 'a' : 'u';
	/* Among the messages, or in the system text before them. */
	if (is_system(s) && (found->role[p->mark] == 's' || found->role[p->mark] == 0))
		role = found->role[p->mark];
	return must(t, p->mark, role);
}

/* Whether something of the message comes after a part, so that it does not end in thinking. */
static bool is_followed(const said *s, size_t p)
{
	for (size_t i = p + 1; i < s->count; i++) {
		if (s->parts[i].kind == PART_TEXT || s->parts[i].kind == PART_CALL)
			return true;
	}
	return false;
}

static bool check_thinking(trial *t, const said *s, size_t p, uint64_t seq)
{
	const part *what = &s->parts[p];
	bool own = is_reply(s) && (what->is_signed || what->redacted) &&
	           is_maker(s, t->q->provider, t->q->model) &&
	           t->q->format != SHEAF_FORMAT_OPENAI_CHAT;
	if (!may(t, what->mark, own && is_followed(s, p), SHEAF_NOTE_FOREIGN_THINKING, seq))
		return false;
	if (t->o->seen.times[what->mark] != 0 && !own) {
		if (!t->how->thinking_as_text)
			return wrong(t->o, "thinking #%u# was sent to somebody else", what->mark);
		note(t->o, SHEAF_NOTE_THINKING_TEXT, seq);
	}
	return true;
}

/* Whether an opaque part goes back: its own format's, and nobody else made the message. */
static bool opaque_demanded(const trial *t, const said *s, const part *p)
{
	bool own = p->kind == PART_OPAQUE && p->format + 1 == t->q->format &&
	           (s->maker == NULL || str_is(t->q->provider, s->maker->provider));
	return own &&
	       (t->q->format == SHEAF_FORMAT_ANTHROPIC || t->q->format == SHEAF_FORMAT_GEMINI);
}

static bool check_call(trial *t, const asked *a)
{
	const oracle *o = t->o;
	const shown *item = &o->items[a->item];
	const part *p = &item->said->parts[a->part];
	if (!must(t, p->mark, 'a'))
		return false;
	if (o->seen.call[p->mark] == 0)
		return wrong(t->o, "call #%u# is no call any more", p->mark);
	const seen_block *call = &o->seen.calls[o->seen.call[p->mark] - 1];
	if (!str_is(call->id, p->id))
		note(t->o, SHEAF_NOTE_RENAMED, item->from->seq);
	if (!str_is(call->name, p->name))
		note(t->o, SHEAF_NOTE_RENAMED, item->from->seq);
	if (!p->object)
		note(t->o, SHEAF_NOTE_INPUT, item->from->seq);
	return true;
}

/* The result a call got in the body. */
static size_t result_of(const seen *s, unsigned call_mark)
{
	sheaf_str id = s->calls[s->call[call_mark] - 1].id;
	for (size_t i = 0; i < s->result_count; i++) {
		if (str_eq(s->results[i].id, id))
			return i;
	}
	return NONE;
}

static bool check_inner(trial *t, const part *p, size_t result, uint64_t seq)
{
	oracle *o = t->o;
	for (size_t i = 0; i < p->inner_count; i++) {
		const inner *in = &p->inner[i];
		if (in->kind == PART_BLANK && t->q->format == SHEAF_FORMAT_ANTHROPIC &&
		    result != NONE)
			note(o, SHEAF_NOTE_EMPTY_TEXT, seq);
		if (in->mark == 0)
			continue;
		if (in->kind == PART_TEXT) {
			if (!must(t, in->mark, 'u'))
				return false;
		} else {
			if (!may(t, in->mark, media_demanded(t, in->kind, in->common),
			         SHEAF_NOTE_STAND_IN, seq))
				return false;
			if (result != NONE && o->seen.times[in->mark] != 0 &&
			    o->seen.answers[in->mark] == 0)
				note(o, SHEAF_NOTE_MOVED, 0);
			else if (t->elided)
				may_note(o, SHEAF_NOTE_MOVED, 0); /* and left out there */
			if (o->seen.answers[in->mark] == 0)
				continue;
		}
		if (result != NONE && o->seen.answers[in->mark] != result + 1)
			return wrong(o, "#%u# is not in the answer to its call", in->mark);
	}
	return true;
}

static bool check_answer(trial *t, const asked *a)
{
	oracle *o = t->o;
	unsigned call = o->items[a->item].said->parts[a->part].mark;
	size_t result = result_of(&o->seen, call);
	if (result == NONE)
		return wrong(o, "call #%u# has no answer", call);
	if (a->answer_item == NONE) {
		if (!str_holds(o->seen.results[result].bytes, "interrupted"))
			return wrong(o, "call #%u# should be interrupted", call);
		return true;
	}
	const shown *item = &o->items[a->answer_item];
	const part *p = &item->said->parts[a->answer_part];
	if (p->mark != 0) {
		if (!must(t, p->mark, 'u'))
			return false;
		if (o->seen.answers[p->mark] != result + 1)
			return wrong(o, "#%u# does not answer call #%u#", p->mark, call);
	}
	return check_inner(t, p, result, item->from->seq);
}

static bool check_part(trial *t, size_t i, size_t p)
{
	oracle *o = t->o;
	const shown *item = &o->items[i];
	const said *s = item->said;
	const part *what = &s->parts[p];
	uint64_t seq = item->from->seq;
	switch (what->kind) {
	case PART_TEXT:
		return check_text(t, s, what);
	case PART_BLANK:
		/* Among the texts of other roles it is one line of many. */
		if (!is_user_like(s) && !is_reply(s))
			may_note(o, SHEAF_NOTE_EMPTY_TEXT, seq);
		else if (t->q->format == SHEAF_FORMAT_ANTHROPIC)
			note(o, SHEAF_NOTE_EMPTY_TEXT, seq);
		return true;
	case PART_THINKING:
		return o->fates[i][p] == FATE_FOREIGN || check_thinking(t, s, p, seq);
	case PART_IMAGE:
	case PART_DOCUMENT:
		return may(t, what->mark,
		           is_user_like(s) && media_demanded(t, what->kind, what->common),
		           SHEAF_NOTE_STAND_IN, seq);
	case PART_OPAQUE:
	case PART_OTHER:
		return may(t, what->mark, opaque_demanded(t, s, what), SHEAF_NOTE_FOREIGN_PART,
		           seq);
	case PART_RESULT:
		if (o->fates[i][p] != FATE_ORPHAN)
			return true;
		return must(t, what->mark, 'u') && check_inner(t, what, NONE, seq);
	default:
		return true;
	}
}

/* Signatures go to the model that made them; Gemini has them on texts and calls, too. */
static bool check_signature(trial *t, const said *s, const part *p)
{
	bool own = is_reply(s) && is_maker(s, t->q->provider, t->q->model);
	bool found = t->o->seen.has_signature[p->mark];
	bool wanted = own && p->is_signed && t->q->format == SHEAF_FORMAT_GEMINI &&
	              (p->kind == PART_TEXT || p->kind == PART_CALL);
	if (p->mark == 0)
		return true;
	if (wanted && !found)
		return wrong(t->o, "#%u# has lost its signature", p->mark);
	bool may_be = own && (wanted || p->kind == PART_THINKING);
	return !found || may_be || wrong(t->o, "the signature of #%u# is not for this", p->mark);
}

static bool check_said(trial *t, size_t i)
{
	oracle *o = t->o;
	const shown *item = &o->items[i];
	const said *s = item->said;
	bool as_user = false, unseen = false;
	if (s == NULL)
		return must(t, item->mark, 'u');
	if (s->excluded)
		return true;
	if (!must(t, s->command, 'u'))
		return false;
	for (size_t p = 0; p < s->count; p++) {
		unsigned mark = s->parts[p].mark;
		if (!check_part(t, i, p) || !check_signature(t, s, &s->parts[p]))
			return false;
		as_user |= mark != 0 && o->seen.role[mark] == 'u';
		unseen |= s->parts[p].kind == PART_BLANK || o->seen.times[mark] == 0;
	}
	/* A line that stands for an image may be all there is of it. */
	if (is_system(s) && as_user)
		note(o, SHEAF_NOTE_ROLE, item->from->seq);
	else if (is_system(s) && unseen)
		may_note(o, SHEAF_NOTE_ROLE, item->from->seq);
	return true;
}

/* Notes about the whole. */
static void expect_general(trial *t, const sheaf_context *context)
{
	oracle *o = t->o;
	static const char *const levels[] = {"minimal", "low", "medium", "high"};
	sheaf_str level = t->how->thinking_level.ptr != NULL ? t->how->thinking_level
	                                                     : context->thinking_level;
	bool asked_for = false;
	for (size_t i = 0; i < COUNT_OF(levels); i++)
		asked_for |= str_is(level, levels[i]);
	bool anthropic = t->q->format == SHEAF_FORMAT_ANTHROPIC;
	if (str_holds(o->seen.first, "(The conversation begins.)"))
		note(o, SHEAF_NOTE_OPENING, 0);
	if (o->seen.last_role == 'a' && !str_holds(o->seen.last, "web_search_call"))
		note(o, SHEAF_NOTE_PREFILL, 0);
	else if (t->unsent || o->seen.last_role == 'a')
		may_note(o, SHEAF_NOTE_PREFILL,
		         0); /* a reply of which nothing was sent in the end */
	if (anthropic && t->how->tool_count == 0 && o->seen.call_count != 0)
		note(o, SHEAF_NOTE_TOOLS, 0);
	if (anthropic && asked_for && !str_holds(t->q->body, "\"thinking\":{\"type\":\"enabled\""))
		note(o, SHEAF_NOTE_THINKING_OFF, 0);
}

bool oracle_request(oracle *o, const sheaf_context *context, const sheaf_request *request,
                    const sheaf_render_options *options)
{
	trial t = {.o = o, .q = request, .how = options};
	/* Every place where something is missing says so. */
	size_t places = str_times(request->body, " left out]");
	size_t images = str_times(request->body, ": left out]");
	o->note_count = 0;
	for (size_t i = 0; i < places; i++)
		note(o, SHEAF_NOTE_ELIDED, 0);
	t.elided = places != 0;
	if (t.elided && (options->elide == 0 || request->body.len > options->bytes_max))
		return wrong(o, "something was left out that need not be, or too little");
	body_see(&o->seen, request->format, request->body, o->h->marks);
	if (!o->seen.good)
		return wrong(o, "the body has no messages");
	for (size_t i = 0; i < o->count; i++) {
		if (!check_said(&t, i))
			return false;
	}
	for (size_t i = 0; i < o->call_count; i++) {
		if (!check_call(&t, &o->calls[i]) || !check_answer(&t, &o->calls[i]))
			return false;
	}
	for (unsigned mark = 1; mark <= o->h->marks; mark++) {
		if (o->seen.times[mark] > (t.may[mark] != 0))
			return wrong(o, "#%u# is there %u times", mark, o->seen.times[mark]);
	}
	for (size_t i = 0; t.elided && i < request->note_count; i++)
		images += request->notes[i]->what == SHEAF_NOTE_STAND_IN;
	if (t.elided && t.missing != images)
		return wrong(o, "%zu images are missing, %zu are accounted for", t.missing, images);
	expect_general(&t, context);
	return notes_match(o, request->notes, request->note_count, "request");
}
