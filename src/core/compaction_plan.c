/*
 * Plans a compaction: looks at every place where a context could be cut, takes
 * the best, and has the request to a summarising model written.
 */
#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"
#include "core/compaction_inside.h"

#define NONE SIZE_MAX

/* ---- The choice ---------------------------------------------------------- */

/* The best places of one kind, by how much they keep. NONE: there is none. */
typedef struct places {
	size_t above; /* the newest that keeps what is asked for, or up to twice that */
	size_t below; /* keeps at least half of it */
	size_t far;   /* keeps less, but the most of these */
	uint64_t far_tokens;
} places;

typedef struct choice {
	const outline *all;
	const compaction_rules *rules;
	places by[CUT_SAFE + 1];
	size_t large; /* the newest of any kind, however much it keeps */
} choice;

static void choice_look(choice *c, size_t at, uint64_t tokens, size_t bytes)
{
	const step *s = &c->all->steps[at];
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

static int refuse_open(const outline *all, sheaf_error *err)
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

/* How many steps to leave out. */
static int choose(const outline *all, bool needed, size_t *out, sheaf_error *err)
{
	compaction_rules rules = all->rules;
	choice c = {.all = all, .rules = &rules, .large = NONE};
	uint64_t tokens = 0;
	size_t bytes = 0;
	c.by[CUT_SAFE] = c.by[CUT_SPLIT] = (places){NONE, NONE, NONE, 0};
	if (all->count < all->low)
		return err_set(err, SHEAF_COMPACT, "there is nothing to compact");
	if (all->tokens <= rules.keep && !needed && rules.keep != 0)
		return refuse_kept(all->tokens, err);
	/* The estimate is too low, or the bytes too many: leaving out nothing is no answer. */
	if (all->tokens <= rules.keep)
		rules.keep = all->tokens / 2;
	*out = all->count;
	if (rules.keep == 0)
		return all->parted ? refuse_open(all, err) : 0;
	for (size_t i = all->count; i-- > all->low;) {
		tokens += all->steps[i].tokens;
		bytes += all->steps[i].bytes;
		choice_look(&c, i, tokens, bytes);
	}
	*out = choice_make(&c);
	return *out == NONE ? refuse_open(all, err) : 0;
}

/* ---- The plan ------------------------------------------------------------ */

static int covered_make(cut_box *box, const outline *all, size_t cut, sheaf_error *err)
{
	sheaf_str *ids = arena_alloc(box->arena, (cut + 1) * sizeof(*ids));
	size_t n = 0;
	if (ids == NULL)
		return err_nomem(err);
	for (size_t i = all->given; i < cut; i++)
		ids[n++] = all->steps[i].id;
	box->cut.covered = ids;
	box->cut.covered_count = n;
	return 0;
}

/* What apply needs after the caller's strings and the context are gone. */
static int box_keep(cut_box *box, const outline *all, sheaf_str leaf, sheaf_error *err)
{
	const compaction_rules *rules = &all->rules;
	char id[UUID_TEXT + 1];
	int ok = 1, rc = uuid7_new(id, err);
	if (rc != 0)
		return rc;
	box->options = (sheaf_compaction_options)SHEAF_COMPACTION_OPTIONS_INIT;
	box->options.branch = arena_dup(box->arena, rules->branch, &ok);
	box->options.window = rules->window;
	box->options.reserve = rules->reserve;
	box->options.extra_tokens = rules->extra;
	box->options.tokens = rules->tokens;
	box->options.tokens_ctx = rules->tokens_ctx;
	box->options.trigger = arena_dup(box->arena, rules->trigger, &ok);
	box->id = arena_dup(box->arena, sheaf_str_of(id), &ok);
	box->cut.leaf = arena_dup(box->arena, leaf, &ok);
	box->cut.trigger = box->options.trigger;
	if (all->scan.compaction != NULL)
		box->previous_seq = all->scan.compaction->seq;
	return ok ? 0 : err_nomem(err);
}

static int plan_make(cut_box *box, outline *all, sheaf_str leaf, sheaf_error *err)
{
	sheaf_cut *out = &box->cut;
	sheaf_fill fill;
	size_t at = 0;
	outline_fill(&fill, all);
	int rc = choose(all, fill.needed != 0, &at, err);
	if (rc == 0)
		rc = covered_make(box, all, at, err);
	if (rc == 0)
		rc = box_keep(box, all, leaf, err);
	if (rc != 0)
		return rc;
	out->tokens_before = fill.tokens;
	for (size_t i = at; i < all->count; i++)
		out->tokens_kept += all->steps[i].tokens;
	out->kept_count = all->count - at;
	if (at < all->count) {
		out->first_kept = all->steps[at].from;
		out->split = all->steps[at].replies;
	}
	return prompt_write(&out->prompt, all, at, out->split != 0, leaf, box->arena, err);
}

static int plan_run(cut_box *box, sheaf_session *session, const sheaf_compaction_options *options,
                    sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	_cleanup_(arena_freep) arena *brief = arena_new();
	_cleanup_(outline_free) outline all = {.texts = true, .ids = box->arena};
	head_branch branch;
	int rc = brief != NULL ? session_head(session, &head, NULL, err) : err_nomem(err);
	if (rc == 0)
		rc = compaction_leaf(head, OPTION(options, branch, ((sheaf_str){0})), &branch, err);
	if (rc == 0)
		rc = outline_make(&all, session, head, branch.leaf_seq, options, brief, err);
	return rc == 0 ? plan_make(box, &all, branch.leaf, err) : rc;
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
