/*
 * Applies a plan, and undoes what was applied: each looks at the path as it is
 * now and appends one compaction, on that leaf only.
 */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/compaction_inside.h"
#include "core/write.h"

#define NONE SIZE_MAX

/* ---- Common -------------------------------------------------------------- */

/* One look at a session, and the compaction to be appended where it stands. */
typedef struct look {
	sheaf_session *session;
	sheaf_head *head;
	arena *arena;
	sheaf_error *err;
	head_branch branch;
	compaction_body body;
} look;

static void look_free(look *l)
{
	sheaf_head_free(l->head);
	arena_free(l->arena);
}

static int look_begin(look *l, sheaf_str branch)
{
	l->arena = arena_new();
	if (l->arena == NULL)
		return err_nomem(l->err);
	int rc = session_head(l->session, &l->head, NULL, l->err);
	return rc == 0 ? compaction_leaf(l->head, branch, &l->branch, l->err) : rc;
}

/* `again`: somebody was faster, look once more. */
static int look_append(const look *l, sheaf_str id, sheaf_appended *out, bool *again)
{
	_cleanup_(draft_free) draft d = {0};
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	sheaf_entry_options entry = {.size = sizeof(entry), .id = id, .branch = l->branch.name};
	sheaf_append_options how = {
		.size = sizeof(how), .expect = SHEAF_EXPECT_LEAF, .leaf = l->branch.leaf};
	compaction_write(&body, &l->body);
	int rc = buf_status(&body, l->err);
	if (rc == 0)
		rc = draft_init(&d, SHEAF_STR("compaction"), buf_view(&body), true, &entry, l->err);
	draft *list[1] = {&d};
	if (rc == 0)
		rc = session_append(l->session, list, 1, &how, false, out, l->err);
	*again = rc == SHEAF_STALE;
	return rc;
}

/* ---- Apply --------------------------------------------------------------- */

static int stale(const look *l, const char *what)
{
	int rc = err_set(l->err, SHEAF_STALE, "%s", what);
	err_hint(l->err, "plan again");
	l->err->revision = sheaf_head_revision(l->head);
	str_copy_cut(l->err->leaf, sizeof(l->err->leaf), l->branch.leaf);
	return rc;
}

static int parent_of(void *ctx, const sheaf_row *row)
{
	*(uint64_t *)ctx = row->parent;
	return 1;
}

/*
 * Where to look from: the leaf; or, if this very plan was applied already, the
 * entry it was applied on, so that a repeat is the same record again.
 */
static int apply_leaf(look *l, const cut_box *plan, uint64_t *leaf_seq)
{
	uint64_t seq;
	*leaf_seq = l->branch.leaf_seq;
	int rc = read_find(l->session, l->head, plan->id, &seq, l->err);
	if (rc == SHEAF_NOT_FOUND || (rc == 0 && seq > sheaf_head_revision(l->head)))
		return 0;
	return rc == 0 ? read_row(l->session, l->head, seq, parent_of, leaf_seq, l->err) : rc;
}

/* Where the plan's leaf and its cut are now: how many steps stay, and from which entry on. */
static int apply_find(look *l, const cut_box *plan, const outline *all, size_t *stay)
{
	const sheaf_entry *previous = all->scan.compaction;
	const char *from = all->after_leaf;
	size_t after = all->steps_at_leaf;
	if ((previous != NULL ? previous->seq : 0) != plan->previous_seq)
		return stale(l, "another compaction decides than when this one was planned");
	if (after == NONE && previous != NULL && str_eq(plan->cut.leaf, previous->id)) {
		from = all->first_after;
		after = 0;
		while (after < all->count && !all->steps[all->count - 1 - after].kept)
			after++;
	}
	if (after == NONE)
		return stale(l, "the entry that the compaction was planned for is off the path");
	*stay = plan->cut.first_kept.len != 0 ? all->steps_at_cut : after;
	if (*stay == NONE)
		return stale(l, "the first kept entry is off the path");
	/* What came after the plan is kept, also if nothing was to be kept then. */
	l->body.first_kept = plan->cut.first_kept.len != 0 ? plan->cut.first_kept
	                                                   : sheaf_str_of(from);
	return 0;
}

/* What comes first after the cut was planned as such, or came after the plan. */
static int apply_check(const look *l, const outline *all, size_t at)
{
	const step *s = at < all->count ? &all->steps[at] : NULL;
	if (s != NULL ? !s->parted && s->place != CUT_NEVER : !all->parted)
		return 0;
	(void)err_set(l->err, SHEAF_COMPACT,
	              "a tool call before the cut was answered after the compaction was planned");
	err_hint(l->err, "plan again");
	return SHEAF_COMPACT;
}

/* Compares the context before and after by the same measure, and records both. */
static int apply_count(look *l, const outline *all, size_t at)
{
	const sheaf_item *summary = item_of_text(SHEAF_ITEM_COMPACTION_SUMMARY,
	                                         SHEAF_STR(SHEAF_ROLE_COMPACTION_SUMMARY),
	                                         l->body.summary, NULL, l->arena);
	if (summary == NULL)
		return err_nomem(l->err);
	uint64_t before = all->tokens, after = all->tokens + rules_tokens(&all->rules, summary);
	uint64_t gone = 0;
	for (size_t i = 0; i < at; i++)
		gone += all->steps[i].doubled ? 0 : all->steps[i].tokens;
	after -= gone;
	if (after >= before) {
		(void)err_set(l->err, SHEAF_COMPACT,
		              "the context would not be smaller: %llu tokens instead of %llu",
		              (unsigned long long)after, (unsigned long long)before);
		err_hint(l->err, "write a shorter summary, or keep less");
		return SHEAF_COMPACT;
	}
	/* In the provider's measure, where there is one. */
	sheaf_fill fill;
	outline_fill(&fill, all);
	uint64_t extra = fill.tokens > all->rules.extra ? all->rules.extra : 0;
	uint64_t tokens = fill.tokens - extra;
	l->body.tokens_before = fill.tokens;
	l->body.tokens_after = extra + tokens / before * after + tokens % before * after / before;
	l->body.counted = l->body.shrunk = true;
	return 0;
}

static int apply_try(sheaf_session *session, const cut_box *plan, sheaf_str summary,
                     sheaf_appended *out, bool *again, sheaf_error *err)
{
	_cleanup_(look_free) look l = {.session = session, .err = err};
	_cleanup_(outline_free) outline all = {.leaf = plan->cut.leaf, .cut = plan->cut.first_kept};
	uint64_t leaf_seq;
	size_t stay = 0;
	int rc = look_begin(&l, plan->options.branch);
	if (rc == 0)
		rc = apply_leaf(&l, plan, &leaf_seq);
	if (rc == 0)
		rc = outline_make(&all, session, l.head, leaf_seq, &plan->options, l.arena, err);
	if (rc == 0)
		rc = apply_find(&l, plan, &all, &stay);
	if (rc == 0)
		rc = apply_check(&l, &all, all.count - stay);
	if (rc != 0)
		return rc;
	l.body.summary = summary;
	l.body.trigger = plan->cut.trigger;
	l.body.settings = all.scan.settings;
	rc = apply_count(&l, &all, all.count - stay);
	return rc == 0 ? look_append(&l, plan->id, out, again) : rc;
}

static bool is_blank(sheaf_str text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (strchr(" \t\r\n", text.ptr[i]) == NULL || text.ptr[i] == '\0')
			return false;
	}
	return true;
}

static int apply_run(sheaf_session *session, const cut_box *plan, sheaf_str summary,
                     sheaf_appended *out, sheaf_error *err)
{
	for (int i = 1;; i++) {
		bool again = false;
		int rc = apply_try(session, plan, summary, out, &again, err);
		if (!again || i == COMPACTION_TRIES)
			return rc;
	}
}

int sheaf_compaction_apply(sheaf_session *session, const sheaf_cut *plan, sheaf_str summary,
                           sheaf_appended *out, sheaf_error *err)
{
	if (session == NULL || plan == NULL)
		return err_set(err, SHEAF_INVALID, "a compaction needs a session and a plan");
	int rc = text_check(summary, SIZE_MAX, "summary", err);
	if (rc != 0)
		return rc;
	if (is_blank(summary))
		return err_set(err, SHEAF_INVALID, "the summary is empty");
	const cut_box *box = (const cut_box *)(const void *)plan;
	sheaf_appended early = SHEAF_APPENDED_INIT;
	str_copy_cut(early.id, sizeof(early.id), box->id);
	appended_set(out, &early);
	/* Some failures on the way are answers; the caller's struct is for the last word only. */
	sheaf_error mine = {0};
	rc = apply_run(session, box, summary, out, &mine);
	if (rc != 0 && err != NULL)
		*err = mine;
	return rc;
}

/* ---- Undo ---------------------------------------------------------------- */

/* The entries a context is made of, newest first. */
typedef struct trail {
	arena *arena;
	context_scan scan;
	struct place {
		sheaf_str id;
		uint64_t seq;
		bool gives; /* an item */
	} * items;
	size_t count, room;
} trail;

static void trail_free(trail *t)
{
	mem_free(t->items);
}

static int trail_take(void *ctx, const sheaf_entry *entry, const sheaf_item *item, bool kept,
                      sheaf_error *err)
{
	trail *t = ctx;
	int ok = 1;
	void *items = t->items;
	(void)kept;
	if (mem_grow(&items, &t->room, t->count + 1, sizeof(*t->items)) != 0)
		return err_nomem(err);
	t->items = items;
	t->items[t->count++] = (struct place){arena_dup(t->arena, entry->id, &ok), entry->seq,
	                                      item != NULL};
	return ok ? 0 : err_nomem(err);
}

static void trail_forget(void *ctx, uint64_t seq)
{
	trail *t = ctx;
	while (t->count != 0 && t->items[t->count - 1].seq < seq)
		t->count--;
}

static int trail_make(trail *t, const look *l, uint64_t without_seq)
{
	t->arena = l->arena;
	t->scan = (context_scan){.take = trail_take, .forget = trail_forget, .ctx = t};
	return context_scan_run(&t->scan, l->session, l->head, l->branch.leaf_seq, without_seq,
	                        l->arena, l->err);
}

/* Keeps the entries that the older compaction chose, and all that came after it. */
static int undo_chosen(look *l, const trail *older)
{
	sheaf_str *ids = arena_alloc(l->arena, (older->count + 1) * sizeof(*ids));
	if (ids == NULL)
		return err_nomem(l->err);
	for (size_t i = older->count; i-- > 0;) {
		if (older->items[i].gives)
			ids[l->body.kept_count++] = older->items[i].id;
	}
	l->body.kept_ids = ids;
	l->body.chooses = true;
	return 0;
}

/*
 * A compaction that says what the older one said, or nothing, and keeps all
 * that the context has without the one that is undone.
 */
static int undo_body(look *l, const trail *older, const sheaf_entry *undone)
{
	const context_scan *scan = &older->scan;
	l->body.trigger = SHEAF_STR("undo");
	if (scan->compaction != NULL)
		l->body.summary = scan->compaction->text;
	if (scan->info.replaces) {
		(void)err_set(l->err, SHEAF_COMPACT,
		              "the compaction before it stands for its messages itself");
		err_hint(l->err, "branch off from the entry before the compaction instead");
		return SHEAF_COMPACT;
	}
	if (scan->info.chooses)
		return undo_chosen(l, older);
	const struct place *first = older->count != 0 ? &older->items[older->count - 1] : NULL;
	l->body.first_kept = first != NULL && first->seq < undone->seq ? first->id : undone->id;
	return 0;
}

static int undo_try(sheaf_session *session, sheaf_str branch, sheaf_appended *out, bool *again,
                    sheaf_error *err)
{
	_cleanup_(look_free) look l = {.session = session, .err = err};
	_cleanup_(trail_free) trail now = {0}, older = {0};
	int rc = look_begin(&l, branch);
	if (rc == 0)
		rc = trail_make(&now, &l, 0);
	if (rc == 0 && now.scan.compaction == NULL)
		rc = err_set(err, SHEAF_NOT_FOUND, "there is no compaction to undo");
	if (rc == 0)
		rc = trail_make(&older, &l, now.scan.compaction->seq);
	if (rc == 0)
		rc = undo_body(&l, &older, now.scan.compaction);
	if (rc != 0)
		return rc;
	l.body.settings = older.scan.settings;
	settings_fill(&l.body.settings, &now.scan.settings);
	return look_append(&l, (sheaf_str){NULL, 0}, out, again);
}

int sheaf_compaction_undo(sheaf_session *session, sheaf_str branch, sheaf_appended *out,
                          sheaf_error *err)
{
	sheaf_error mine = {0};
	int rc;
	if (session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	for (int i = 1;; i++) {
		bool again = false;
		rc = undo_try(session, branch, out, &again, &mine);
		if (!again || i == COMPACTION_TRIES)
			break;
	}
	if (rc != 0 && err != NULL)
		*err = mine;
	return rc;
}

/* ---- In one call --------------------------------------------------------- */

struct sheaf_summary_sink {
	buf text;
};

int sheaf_summary_add(sheaf_summary_sink *out, sheaf_str text)
{
	if (out == NULL)
		return SHEAF_INVALID;
	buf_str(&out->text, text);
	return out->text.status;
}

static void sink_free(sheaf_summary_sink *sink)
{
	buf_free(&sink->text);
}

sheaf_summary_sink *sheaf_summary_sink_new(void)
{
	sheaf_summary_sink *sink = mem_alloc(sizeof(*sink));
	if (sink != NULL)
		*sink = (sheaf_summary_sink){BUF_INIT(SHEAF_BODY_BYTES_MAX)};
	return sink;
}

sheaf_str sheaf_summary_sink_text(const sheaf_summary_sink *sink)
{
	return buf_view(&sink->text);
}

void sheaf_summary_sink_free(sheaf_summary_sink *sink)
{
	if (sink != NULL)
		sink_free(sink);
	mem_free(sink);
}

static void plan_freep(sheaf_cut **plan)
{
	sheaf_cut_free(*plan);
}

int sheaf_compact(sheaf_session *session, const sheaf_compaction_options *options,
                  sheaf_summarise_fn summarise, void *ctx, sheaf_appended *out, sheaf_error *err)
{
	_cleanup_(sink_free) sheaf_summary_sink sink = {BUF_INIT(SHEAF_BODY_BYTES_MAX)};
	_cleanup_(plan_freep) sheaf_cut *plan = NULL;
	if (summarise == NULL)
		return err_set(err, SHEAF_INVALID, "nobody was given who writes the summary");
	int rc = sheaf_compaction_plan(&plan, session, options, err);
	if (rc != 0)
		return rc;
	sheaf_error theirs = {0};
	rc = summarise(ctx, plan, &sink, &theirs);
	if (rc != 0) {
		/* It need not say more than a code. */
		if (theirs.code != rc)
			(void)err_set(&theirs, rc, "the summary could not be written");
		if (err != NULL)
			*err = theirs;
		return rc;
	}
	rc = buf_status(&sink.text, err);
	return rc == 0 ? sheaf_compaction_apply(session, plan, buf_view(&sink.text), out, err) : rc;
}
