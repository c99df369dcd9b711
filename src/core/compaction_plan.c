/*
 * Plans a compaction: looks at every place where a context could be cut, takes
 * the best, and has the request to a summarising model written.
 */
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uuid.h"
#include "core/compaction_inside.h"

#define NONE SIZE_MAX

/* ---- Steps --------------------------------------------------------------- */

static bool holds(const sheaf_message_view *m, int32_t kind)
{
	for (size_t i = 0; i < m->part_count; i++) {
		if (m->parts[i]->kind == kind)
			return true;
	}
	return false;
}

static step step_of(const sheaf_item *item, const compaction_rules *rules)
{
	const sheaf_message_view *m = item->message;
	step s = {.item = item, .place = CUT_SAFE};
	bool answers = str_is(m->role, SHEAF_ROLE_TOOL) || holds(m, SHEAF_PART_TOOL_RESULT);
	s.replies = str_is(m->role, SHEAF_ROLE_ASSISTANT);
	s.asks = item->kind == SHEAF_ITEM_MESSAGE && str_is(m->role, SHEAF_ROLE_USER) && !answers;
	if (answers)
		s.place = CUT_NEVER;
	else if (holds(m, SHEAF_PART_TOOL_USE))
		s.place = CUT_SPLIT;
	s.tokens = rules != NULL ? rules_tokens(rules, item) : 0;
	return s;
}

/*
 * A cut before an entry that gives no item (a change of the model, data of a
 * program) is safe, whatever reply follows it.
 */
static void steps_take(steps *out, const context_raw *raw, const compaction_rules *rules)
{
	const sheaf_entry *plain = NULL;
	for (size_t i = 0; i < raw->count; i++) {
		const raw_entry *e = &raw->entries[i];
		/* Before single entries that were chosen lie others that were not. */
		if (i == raw->kept && raw->info.chooses)
			plain = NULL;
		if (e->item == NULL) {
			plain = plain != NULL ? plain : e->entry;
			continue;
		}
		step s = step_of(e->item, rules);
		s.id = e->entry->id;
		if (s.place == CUT_SPLIT && plain != NULL) {
			s.place = CUT_SAFE;
			s.id = plain->id;
		}
		s.seq = e->entry->seq;
		s.bytes = e->entry->line.len;
		out->items[out->count++] = s;
		plain = NULL;
		if (i < raw->kept && raw->info.chooses)
			out->low = out->count;
	}
}

/* ---- Calls and answers --------------------------------------------------- */

typedef struct call {
	size_t at;
	size_t below; /* the next older open call with this id */
	bool open;
	sheaf_str id;
} call;

typedef struct pairs {
	call *calls;
	size_t count, room;
	map open;      /* id -> the nearest open call */
	map latest;    /* id -> the nearest call */
	size_t *until; /* for each step: up to where no cut may lie behind it */
} pairs;

static void pairs_free(pairs *p)
{
	mem_free(p->calls);
	mem_free(p->until);
	map_free(&p->open);
	map_free(&p->latest);
}

static int pairs_call(pairs *p, sheaf_str id, size_t at)
{
	uint64_t top = NONE;
	void *calls = p->calls;
	if (mem_grow(&calls, &p->room, p->count + 1, sizeof(*p->calls)) != 0)
		return SHEAF_NOMEM;
	p->calls = calls;
	(void)map_get(&p->open, id, &top);
	p->calls[p->count] = (call){.at = at, .below = (size_t)top, .open = true, .id = id};
	if (map_set(&p->open, id, p->count) != 0 || map_set(&p->latest, id, p->count) != 0)
		return SHEAF_NOMEM;
	p->count++;
	return 0;
}

/*
 * An answer belongs to the nearest earlier open call with its id, as in a
 * context. A second answer stays with the call all the same: without it, it
 * would be shown after all.
 */
static int pairs_answer(pairs *p, sheaf_str id, size_t at)
{
	uint64_t top = NONE;
	int rc = 0;
	if (map_get(&p->open, id, &top) && top != NONE) {
		p->calls[top].open = false;
		rc = map_set(&p->open, id, p->calls[top].below);
	} else if (!map_get(&p->latest, id, &top)) {
		return 0;
	}
	size_t from = p->calls[top].at;
	if (p->until[from] < at)
		p->until[from] = at;
	return rc;
}

static int pairs_find(pairs *p, const steps *all)
{
	p->until = mem_zalloc((all->count + 1) * sizeof(*p->until));
	if (p->until == NULL)
		return SHEAF_NOMEM;
	for (size_t i = 0; i < all->count; i++) {
		const sheaf_message_view *m = all->items[i].item->message;
		for (size_t k = 0; k < m->part_count; k++) {
			const sheaf_part *part = m->parts[k];
			int rc = 0;
			if (part->kind == SHEAF_PART_TOOL_USE)
				rc = pairs_call(p, part->id, i);
			else if (part->kind == SHEAF_PART_TOOL_RESULT)
				rc = pairs_answer(p, part->tool_use_id, i);
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
static size_t gone_on(const steps *all)
{
	size_t i = all->count;
	while (i > 0 && !all->items[i - 1].replies)
		i--;
	while (i > 0 && !all->items[i - 1].asks)
		i--;
	return i;
}

static int steps_pair(steps *all, sheaf_error *err)
{
	_cleanup_(pairs_free) pairs p = {.open = MAP_INIT, .latest = MAP_INIT};
	if (pairs_find(&p, all) != 0)
		return err_nomem(err);
	size_t since = gone_on(all), until = 0;
	for (size_t i = 0; i < p.count; i++) {
		const call *c = &p.calls[i];
		if (!c->open || c->at < since)
			continue;
		p.until[c->at] = NONE;
		if (all->open.ptr == NULL)
			all->open = c->id.ptr != NULL ? c->id : SHEAF_STR("");
	}
	for (size_t i = 0; i < all->count; i++) {
		all->items[i].parted = i > 0 && i <= until;
		if (p.until[i] > until)
			until = p.until[i];
	}
	all->parted = until == NONE;
	return 0;
}

int steps_make(steps *out, const context_raw *raw, const compaction_rules *rules, arena *a,
               sheaf_error *err)
{
	*out = (steps){.count = 0};
	out->items = arena_alloc(a, (raw->given_count + raw->count + 1) * sizeof(*out->items));
	if (out->items == NULL)
		return err_nomem(err);
	for (size_t i = 0; i < raw->given_count; i++) {
		step s = step_of(raw->given[i], rules);
		s.place = CUT_NEVER;
		out->items[out->count++] = s;
	}
	/* A summary alone is nothing to compact; messages that stand for others are. */
	bool replaced = raw->given_count >
	                (raw->compaction != NULL && raw->compaction->text.len != 0);
	out->low = raw->given_count + !replaced;
	steps_take(out, raw, rules);
	return steps_pair(out, err);
}

/* ---- The choice ---------------------------------------------------------- */

/* The best places of one kind, by how much they keep. NONE: there is none. */
typedef struct places {
	size_t above; /* the newest that keeps what is asked for, or up to twice that */
	size_t below; /* keeps at least half of it */
	size_t far;   /* keeps less, but the most of these */
	uint64_t far_tokens;
} places;

typedef struct choice {
	const steps *all;
	const compaction_rules *rules;
	places by[CUT_SAFE + 1];
	size_t large; /* the newest of any kind, however much it keeps */
} choice;

static void choice_look(choice *c, size_t at, uint64_t tokens, size_t bytes)
{
	const step *s = &c->all->items[at];
	uint64_t keep = c->rules->keep;
	places *p = &c->by[s->place];
	if (s->place == CUT_NEVER || s->parted)
		return;
	if (c->large == NONE)
		c->large = at;
	if (tokens / 2 > keep || bytes > c->rules->bytes_max / 2)
		return;
	if (tokens >= keep) {
		p->above = p->above == NONE ? at : p->above;
	} else if (tokens >= keep / 2) {
		p->below = at;
	} else {
		p->far = at;
		p->far_tokens = tokens;
	}
}

/* The number of steps to leave out; NONE if there is no place at all. */
static size_t choice_make(const choice *c)
{
	const places *safe = &c->by[CUT_SAFE], *split = &c->by[CUT_SPLIT];
	const size_t order[] = {safe->above, safe->below, split->above, split->below};
	for (size_t i = 0; i < COUNT_OF(order); i++) {
		if (order[i] != NONE)
			return order[i];
	}
	if (split->far != NONE && (safe->far == NONE || split->far_tokens > safe->far_tokens))
		return split->far;
	if (safe->far != NONE)
		return safe->far;
	return c->all->parted ? c->large : c->all->count;
}

static int refuse_open(const steps *all, sheaf_error *err)
{
	(void)err_set(err, SHEAF_COMPACT, "tool call %.*s has no answer yet",
	              (int)(all->open.len < 80 ? all->open.len : 80), all->open.ptr);
	err_hint(err, "compact when the tool has answered");
	return SHEAF_COMPACT;
}

static int refuse_kept(uint64_t total, sheaf_error *err)
{
	(void)err_set(err, SHEAF_COMPACT, "there is nothing to compact: all of it is to be kept");
	err_hint(err, "keep less than %llu tokens", (unsigned long long)total);
	return SHEAF_COMPACT;
}

/* How many steps to leave out. `needed`: leaving out nothing is no answer. */
static int choose(const steps *all, compaction_rules rules, bool needed, size_t *out,
                  sheaf_error *err)
{
	choice c = {.all = all, .rules = &rules, .large = NONE};
	uint64_t tokens = 0, total = 0;
	size_t bytes = 0;
	c.by[CUT_SAFE] = c.by[CUT_SPLIT] = (places){NONE, NONE, NONE, 0};
	if (all->count < all->low)
		return err_set(err, SHEAF_COMPACT, "there is nothing to compact");
	for (size_t i = 0; i < all->count; i++)
		total += all->items[i].tokens;
	if (total <= rules.keep && !needed && rules.keep != 0)
		return refuse_kept(total, err);
	if (total <= rules.keep)
		rules.keep = total / 2; /* the estimate is too low, or the bytes too many */
	*out = all->count;
	if (rules.keep == 0)
		return all->parted ? refuse_open(all, err) : 0;
	for (size_t i = all->count; i-- > all->low;) {
		tokens += all->items[i].tokens;
		bytes += all->items[i].bytes;
		choice_look(&c, i, tokens, bytes);
	}
	*out = choice_make(&c);
	return *out == NONE ? refuse_open(all, err) : 0;
}

/* ---- The plan ------------------------------------------------------------ */

static int covered_make(cut_box *box, const steps *all, size_t cut, const context_raw *raw,
                        sheaf_error *err)
{
	sheaf_str *ids = arena_alloc(box->arena, (cut + 1) * sizeof(*ids));
	size_t n = 0;
	int ok = 1;
	if (ids == NULL)
		return err_nomem(err);
	for (size_t i = raw->given_count; i < cut; i++)
		ids[n++] = arena_dup(box->arena, all->items[i].item->entry->id, &ok);
	box->cut.covered = ids;
	box->cut.covered_count = n;
	return ok ? 0 : err_nomem(err);
}

/* What apply needs after the caller's strings and the context are gone. */
static int box_keep(cut_box *box, const compaction_rules *rules, sheaf_str leaf, sheaf_error *err)
{
	char id[UUID_TEXT + 1];
	int ok = 1, rc = uuid7_new(id, err);
	if (rc != 0)
		return rc;
	box->rules = *rules;
	box->rules.branch = arena_dup(box->arena, rules->branch, &ok);
	box->rules.trigger = arena_dup(box->arena, rules->trigger, &ok);
	box->rules.instructions = (sheaf_str){NULL, 0};
	box->id = arena_dup(box->arena, sheaf_str_of(id), &ok);
	box->cut.leaf = arena_dup(box->arena, leaf, &ok);
	box->cut.trigger = box->rules.trigger;
	return ok ? 0 : err_nomem(err);
}

static int plan_make(cut_box *box, const context_raw *raw, const compaction_rules *rules,
                     sheaf_str leaf, arena *brief, sheaf_error *err)
{
	sheaf_cut *out = &box->cut;
	sheaf_str previous = {NULL, 0};
	sheaf_fill fill;
	steps all;
	size_t at = 0;
	int ok = 1, rc = steps_make(&all, raw, rules, brief, err);
	fill_make(&fill, rules, raw);
	if (rc == 0)
		rc = choose(&all, *rules, fill.needed != 0, &at, err);
	if (rc == 0)
		rc = covered_make(box, &all, at, raw, err);
	if (rc == 0)
		rc = box_keep(box, rules, leaf, err);
	if (rc != 0)
		return rc;
	out->tokens_before = fill.tokens;
	for (size_t i = at; i < all.count; i++)
		out->tokens_kept += all.items[i].tokens;
	out->kept_count = all.count - at;
	if (at < all.count) {
		out->first_kept = arena_dup(box->arena, all.items[at].id, &ok);
		out->split = all.items[at].replies;
	}
	if (!ok)
		return err_nomem(err);
	if (raw->compaction != NULL) {
		box->previous_seq = raw->compaction->seq;
		previous = raw->compaction->text;
	}
	return prompt_write(&out->prompt, &all, at, out->split != 0, leaf, previous, rules,
	                    box->arena, err);
}

static int plan_run(cut_box *box, sheaf_session *session, const sheaf_compaction_options *options,
                    sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	_cleanup_(arena_freep) arena *brief = arena_new();
	compaction_rules rules;
	context_raw raw;
	head_branch branch;
	int rc = brief != NULL ? session_head(session, &head, NULL, err) : err_nomem(err);
	if (rc == 0)
		rc = compaction_leaf(head, OPTION(options, branch, ((sheaf_str){0})), &branch, err);
	if (rc == 0)
		rc = context_raw_read(&raw, session, head, branch.leaf_seq, 0, brief, err);
	if (rc == 0)
		rc = rules_make(&rules, options, &raw.settings, err);
	return rc == 0 ? plan_make(box, &raw, &rules, branch.leaf, brief, err) : rc;
}

int sheaf_compaction_plan(sheaf_cut **out, sheaf_session *session,
                          const sheaf_compaction_options *options, sheaf_error *err)
{
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "a plan needs a session and a place to put it");
	_cleanup_(arena_freep) arena *a = arena_new();
	cut_box *box = a != NULL ? arena_zalloc(a, sizeof(*box)) : NULL;
	if (box == NULL)
		return err_nomem(err);
	box->arena = a;
	/* Some failures on the way are answers; the caller's struct is for the last word only. */
	sheaf_error mine = {0};
	int rc = plan_run(box, session, options, &mine);
	if (rc != 0) {
		if (err != NULL)
			*err = mine;
		return rc;
	}
	a = NULL;
	*out = &box->cut;
	return 0;
}

void sheaf_cut_free(const sheaf_cut *plan)
{
	if (plan != NULL)
		arena_free(((const cut_box *)(const void *)plan)->arena);
}
