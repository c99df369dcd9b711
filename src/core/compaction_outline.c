/*
 * Reads a context as far as a compaction must know it: item by item from the
 * leaf on, then turned into the order of the path, with calls and answers
 * matched.
 */
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/compaction_inside.h"

#define NONE SIZE_MAX
#define ROOM_MAX 16384u

void outline_free(outline *o)
{
	mem_free(o->steps);
	mem_free(o->marks);
	mem_free(o->pieces.items);
}

/* ---- Item by item -------------------------------------------------------- */

static int marks_take(outline *o, const sheaf_message_view *m)
{
	int ok = 1;
	for (size_t i = 0; i < m->part_count; i++) {
		const sheaf_part *part = m->parts[i];
		bool call = part->kind == SHEAF_PART_TOOL_USE;
		if (!call && part->kind != SHEAF_PART_TOOL_RESULT)
			continue;
		void *marks = o->marks;
		if (mem_grow(&marks, &o->mark_room, o->mark_count + 1, sizeof(*o->marks)) != 0)
			return SHEAF_NOMEM;
		o->marks = marks;
		sheaf_str id = call ? part->id : part->tool_use_id;
		o->marks[o->mark_count++] = (call_mark){
			.id = arena_dup(o->arena, id, &ok),
			.name = call && o->texts ? arena_dup(o->arena, part->name, &ok)
		                                 : (sheaf_str){NULL, 0},
			.piece = NONE,
			.call = call,
		};
	}
	return ok ? 0 : SHEAF_NOMEM;
}

static bool holds(const sheaf_message_view *m, int32_t kind)
{
	for (size_t i = 0; i < m->part_count; i++) {
		if (m->parts[i]->kind == kind)
			return true;
	}
	return false;
}

static int step_add(outline *o, const sheaf_item *item, step **out)
{
	const sheaf_message_view *m = item->message;
	void *steps = o->steps;
	if (mem_grow(&steps, &o->room, o->count + 1, sizeof(*o->steps)) != 0)
		return SHEAF_NOMEM;
	o->steps = steps;
	step *s = *out = &o->steps[o->count++];
	bool answers = str_is(m->role, SHEAF_ROLE_TOOL) || holds(m, SHEAF_PART_TOOL_RESULT);
	*s = (step){.place = CUT_SAFE, .mark = o->mark_count, .piece = o->pieces.count};
	s->replies = str_is(m->role, SHEAF_ROLE_ASSISTANT);
	s->asks = item->kind == SHEAF_ITEM_MESSAGE && str_is(m->role, SHEAF_ROLE_USER) && !answers;
	if (answers)
		s->place = CUT_NEVER;
	else if (holds(m, SHEAF_PART_TOOL_USE))
		s->place = CUT_SPLIT;
	s->tokens = rules_tokens(&o->rules, item);
	o->tokens += s->tokens;
	int rc = marks_take(o, m);
	/* The deciding compaction's summary has a place of its own in the prompt. */
	if (rc == 0 && o->texts && item->kind != SHEAF_ITEM_COMPACTION_SUMMARY)
		rc = pieces_take(o, item);
	s->mark_count = o->mark_count - s->mark;
	s->piece_count = o->pieces.count - s->piece;
	return rc;
}

/* A reply counts for all before it, unless it is older than the compaction. */
static void count_item(outline *o, const sheaf_item *item, bool kept, uint64_t tokens)
{
	if (o->counted != 0)
		return;
	o->counted = kept ? 0 : reply_tokens(item);
	if (o->counted == 0)
		o->estimated += tokens;
}

/* The entries that were asked for. */
static void look_for(outline *o, const sheaf_entry *entry, bool kept)
{
	if (o->leaf.len != 0 && str_eq(entry->id, o->leaf)) {
		o->steps_at_leaf = o->count;
		memcpy(o->after_leaf, o->newer, sizeof(o->newer));
	}
	if (o->cut.len != 0 && str_eq(entry->id, o->cut))
		o->steps_at_cut = o->count + 1;
	str_copy_cut(o->newer, sizeof(o->newer), entry->id);
	if (!kept)
		memcpy(o->first_after, o->newer, sizeof(o->newer));
}

/*
 * A cut before an entry that gives no item (a change of the model, data of a
 * program) is safe, whatever reply follows it. But before single entries that
 * were chosen lie others that were not.
 */
static int take_plain(outline *o, const sheaf_entry *entry, bool kept)
{
	step *s = o->count != 0 ? &o->steps[o->count - 1] : NULL;
	int ok = 1;
	if (o->steps_at_cut == o->count + 1)
		o->steps_at_cut = o->count;
	if (s == NULL || s->kept != kept || s->place != CUT_SPLIT)
		return 0;
	s->from = arena_dup(o->ids, entry->id, &ok);
	s->place = CUT_SAFE;
	return ok ? 0 : SHEAF_NOMEM;
}

static int take(void *ctx, const sheaf_entry *entry, const sheaf_item *item, bool kept,
                sheaf_error *err)
{
	outline *o = ctx;
	int ok = 1, rc;
	step *s;
	look_for(o, entry, kept);
	if (!o->model_known && o->scan.settings.model.ptr != NULL) {
		/* Now the window is known. */
		o->model_known = true;
		rc = rules_make(&o->rules, o->options, &o->scan.settings, err);
		if (rc != 0)
			return rc;
	}
	if (item == NULL)
		return take_plain(o, entry, kept) == 0 ? 0 : err_nomem(err);
	rc = step_add(o, item, &s);
	if (rc != 0)
		return err_nomem(err);
	s->id = s->from = arena_dup(o->ids, entry->id, &ok);
	s->kept = kept;
	s->seq = entry->seq;
	s->bytes = entry->line.len;
	o->bytes += s->bytes;
	count_item(o, item, kept, s->tokens);
	return ok ? 0 : err_nomem(err);
}

static void forget(void *ctx, uint64_t seq)
{
	outline *o = ctx;
	while (o->count != 0 && o->steps[o->count - 1].kept && o->steps[o->count - 1].seq < seq) {
		const step *s = &o->steps[--o->count];
		o->tokens -= s->tokens;
		o->bytes -= s->bytes;
		o->estimated -= o->counted == 0 ? s->tokens : 0;
		o->mark_count = s->mark;
		o->pieces.count = s->piece;
	}
	if (o->pieces.counted > o->pieces.count)
		o->pieces.counted = o->pieces.count;
}

/* ---- Calls and answers --------------------------------------------------- */

typedef struct pairs {
	map open;      /* id -> the nearest open call */
	map latest;    /* id -> the nearest call */
	size_t *until; /* for each step: up to where no cut may lie behind it */
} pairs;

static void pairs_free(pairs *p)
{
	mem_free(p->until);
	map_free(&p->open);
	map_free(&p->latest);
}

static int pairs_call(pairs *p, outline *o, size_t i)
{
	call_mark *m = &o->marks[i];
	uint64_t top = NONE;
	(void)map_get(&p->open, m->id, &top);
	m->below = (size_t)top;
	m->open = true;
	if (map_set(&p->open, m->id, i) != 0 || map_set(&p->latest, m->id, i) != 0)
		return SHEAF_NOMEM;
	return 0;
}

/*
 * An answer belongs to the nearest earlier open call with its id, as in a
 * context. A second answer stays with the call all the same: without it, it
 * would be shown after all.
 */
static int pairs_answer(pairs *p, outline *o, size_t i)
{
	const call_mark *m = &o->marks[i];
	uint64_t top = NONE;
	int rc = 0;
	if (map_get(&p->open, m->id, &top) && top != NONE) {
		o->marks[top].open = false;
		rc = map_set(&p->open, m->id, o->marks[top].below);
	} else if (map_get(&p->latest, m->id, &top)) {
		o->steps[m->at].doubled = true;
	} else {
		return 0;
	}
	const call_mark *call = &o->marks[top];
	if (p->until[call->at] < m->at)
		p->until[call->at] = m->at;
	if (m->piece != NONE && o->pieces.items[m->piece].name.len == 0)
		o->pieces.items[m->piece].name = call->name;
	return rc;
}

static int pairs_find(pairs *p, outline *o)
{
	p->until = mem_zalloc((o->count + 1) * sizeof(*p->until));
	if (p->until == NULL)
		return SHEAF_NOMEM;
	for (size_t i = 0; i < o->count; i++) {
		const step *s = &o->steps[i];
		for (size_t k = s->mark; k < s->mark + s->mark_count; k++) {
			o->marks[k].at = i;
			int rc = o->marks[k].call ? pairs_call(p, o, k) : pairs_answer(p, o, k);
			if (rc != 0)
				return rc;
		}
	}
	return 0;
}

/*
 * A call nobody answered is open while its answer may be on its way. When the
 * user has spoken since and a model has replied, the conversation has gone on
 * without it: a call that a crash left behind must not forbid compactions for
 * ever.
 */
static size_t gone_on(const outline *o)
{
	size_t i = o->count;
	while (i > 0 && !o->steps[i - 1].replies)
		i--;
	while (i > 0 && !o->steps[i - 1].asks)
		i--;
	return i;
}

static void open_call(outline *o, pairs *p, const call_mark *m, size_t since)
{
	if (m->piece != NONE)
		o->pieces.items[m->piece].what = "assistant, calling (and no answer came)";
	if (m->at < since)
		return;
	p->until[m->at] = NONE;
	if (o->open.ptr == NULL)
		o->open = m->id.ptr != NULL ? m->id : SHEAF_STR("");
}

static int outline_pair(outline *o)
{
	_cleanup_(pairs_free) pairs p = {.open = MAP_INIT, .latest = MAP_INIT};
	int rc = pairs_find(&p, o);
	if (rc != 0)
		return rc;
	size_t since = gone_on(o), until = 0;
	for (size_t i = 0; i < o->mark_count; i++) {
		if (o->marks[i].call && o->marks[i].open)
			open_call(o, &p, &o->marks[i], since);
	}
	for (size_t i = 0; i < o->count; i++) {
		o->steps[i].parted = i > 0 && i <= until;
		if (p.until[i] > until)
			until = p.until[i];
	}
	o->parted = until == NONE;
	return 0;
}

/* ---- All of it ----------------------------------------------------------- */

/* What the compaction gave lies before everything else. */
static int take_given(outline *o)
{
	const context_scan *found = &o->scan;
	for (size_t i = found->given_count; i-- > 0;) {
		step *s;
		int rc = step_add(o, found->given[i], &s);
		if (rc != 0)
			return rc;
		s->place = CUT_NEVER;
		s->kept = true;
		count_item(o, found->given[i], true, s->tokens);
	}
	o->given = found->given_count;
	if (found->compaction != NULL)
		o->bytes += found->compaction->line.len;
	return 0;
}

static void outline_turn(outline *o)
{
	for (size_t a = 0, b = o->count; a + 1 < b; a++) {
		step kept = o->steps[a];
		o->steps[a] = o->steps[--b];
		o->steps[b] = kept;
	}
}

static void outline_low(outline *o)
{
	/* A summary alone is nothing to compact; messages that stand for others are. */
	const sheaf_entry *c = o->scan.compaction;
	bool replaced = o->given > (c != NULL && c->text.len != 0);
	o->low = o->given + !replaced;
	/* Before single entries that were chosen lie others that were not. */
	for (size_t i = o->given; i < o->count && o->scan.info.chooses && o->steps[i].kept; i++)
		o->low = i + 1;
}

/* Room for what will probably come: growing step by step touches memory over and over. */
static int outline_room(outline *o, uint64_t entries)
{
	size_t most = entries < ROOM_MAX ? (size_t)entries : ROOM_MAX;
	void *items = o->steps;
	if (mem_grow(&items, &o->room, most, sizeof(*o->steps)) != 0)
		return SHEAF_NOMEM;
	o->steps = items;
	items = o->pieces.items;
	if (o->texts && mem_grow(&items, &o->pieces.room, most, sizeof(*o->pieces.items)) != 0)
		return SHEAF_NOMEM;
	o->pieces.items = items;
	return 0;
}

int outline_make(outline *o, sheaf_session *session, const sheaf_head *head, uint64_t leaf_seq,
                 const sheaf_compaction_options *options, arena *a, sheaf_error *err)
{
	o->options = options;
	o->arena = a;
	o->ids = o->ids != NULL ? o->ids : a;
	o->scan = (context_scan){.take = take, .forget = forget, .ctx = o};
	o->steps_at_leaf = o->steps_at_cut = NONE;
	o->pieces.level = SIZE_MAX;
	int rc = rules_make(&o->rules, options, &o->scan.settings, err);
	if (rc == 0 && outline_room(o, leaf_seq) != 0)
		rc = err_nomem(err);
	if (rc == 0)
		rc = context_scan_run(&o->scan, session, head, leaf_seq, 0, a, err);
	if (rc == 0)
		rc = rules_make(&o->rules, options, &o->scan.settings, err);
	if (rc != 0)
		return rc;
	rc = take_given(o);
	if (rc != 0)
		return err_nomem(err);
	outline_turn(o);
	outline_low(o);
	return outline_pair(o) == 0 ? 0 : err_nomem(err);
}

void outline_fill(sheaf_fill *out, const outline *o)
{
	/* The provider has counted what is sent besides, too. */
	uint64_t extra = o->counted == 0 ? o->rules.extra : 0;
	*out = (sheaf_fill){
		.tokens = o->counted + o->estimated + extra,
		.counted = o->counted,
		.window = o->rules.window,
		.limit = o->rules.limit,
		.bytes = o->bytes,
		.unknown = o->scan.compaction != NULL && o->counted == 0,
	};
	out->needed = out->tokens > out->limit || out->bytes > o->rules.bytes_max;
}
