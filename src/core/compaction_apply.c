/*
 * Applies a plan, and undoes what was applied: each looks at the path as it is
 * now and appends one compaction, on that leaf only.
 */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/compaction_inside.h"
#include "core/write.h"

/* ---- Common -------------------------------------------------------------- */

/* One look at a session: what is on its path, and the compaction to be appended there. */
typedef struct look {
	sheaf_session *session;
	sheaf_head *head;
	arena *arena;
	sheaf_error *err;
	head_branch branch;
	context_raw raw;
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

/* Where the plan's leaf and its cut are now: the number of the first entry that stays. */
static int apply_find(const look *l, const cut_box *plan, size_t *first)
{
	const context_raw *raw = &l->raw;
	uint64_t previous = raw->compaction != NULL ? raw->compaction->seq : 0;
	bool leaf = previous != 0 && str_eq(plan->cut.leaf, raw->compaction->id), found = false;
	size_t after = raw->kept;
	if (previous != plan->previous_seq)
		return stale(l, "another compaction decides than when this one was planned");
	for (size_t i = 0; i < raw->count; i++) {
		if (!found && str_eq(raw->entries[i].entry->id, plan->cut.first_kept)) {
			found = true;
			*first = i;
		}
		if (str_eq(raw->entries[i].entry->id, plan->cut.leaf)) {
			leaf = true;
			after = i + 1;
		}
	}
	if (!leaf)
		return stale(l, "the entry that the compaction was planned for is off the path");
	if (plan->cut.first_kept.len == 0)
		*first = after;
	else if (!found)
		return stale(l, "the first kept entry is off the path");
	return 0;
}

static int unsafe(const look *l)
{
	(void)err_set(l->err, SHEAF_COMPACT,
	              "a tool call before the cut was answered after the compaction was planned");
	err_hint(l->err, "plan again");
	return SHEAF_COMPACT;
}

/* Whether nothing is torn apart by a cut before entry `first`; and how many items it leaves out. */
static int apply_check(const look *l, size_t first, size_t *dropped)
{
	steps all;
	int rc = steps_make(&all, &l->raw, NULL, l->arena, l->err);
	if (rc != 0)
		return rc;
	size_t at = l->raw.given_count;
	for (size_t i = 0; i < first; i++)
		at += l->raw.entries[i].item != NULL;
	*dropped = at;
	/* What comes first after the cut was planned as such, or came after the plan. */
	bool parted = at < all.count ? all.items[at].parted : all.parted;
	return parted || (at < all.count && all.items[at].place == CUT_NEVER) ? unsafe(l) : 0;
}

/* The items of the context before and after, as they will be sent. */
static int apply_count(look *l, const cut_box *plan, size_t dropped)
{
	const context_raw *raw = &l->raw;
	const compaction_rules *rules = &plan->rules;
	const sheaf_item **items = arena_alloc(l->arena, (raw->given_count + raw->count + 1) *
	                                                         sizeof(*items));
	const sheaf_item *summary = item_of_text(SHEAF_ITEM_COMPACTION_SUMMARY,
	                                         SHEAF_STR(SHEAF_ROLE_COMPACTION_SUMMARY),
	                                         l->body.summary, NULL, l->arena);
	uint64_t before, after;
	size_t n = 0;
	if (items == NULL || summary == NULL)
		return err_nomem(l->err);
	for (size_t i = 0; i < raw->given_count; i++)
		items[n++] = raw->given[i];
	for (size_t i = 0; i < raw->count; i++) {
		if (raw->entries[i].item != NULL)
			items[n++] = raw->entries[i].item;
	}
	int rc = rules_tokens_mended(rules, items, n, l->arena, &before, l->err);
	items[dropped - 1] = summary;
	if (rc == 0)
		rc = rules_tokens_mended(rules, items + dropped - 1, n - dropped + 1, l->arena,
		                         &after, l->err);
	if (rc != 0)
		return rc;
	if (after >= before) {
		(void)err_set(l->err, SHEAF_COMPACT,
		              "the context would not be smaller: %llu tokens instead of %llu",
		              (unsigned long long)after, (unsigned long long)before);
		err_hint(l->err, "write a shorter summary, or keep less");
		return SHEAF_COMPACT;
	}
	/* In the provider's measure, where there is one. */
	sheaf_fill fill;
	fill_make(&fill, rules, raw);
	uint64_t extra = fill.tokens > rules->extra ? rules->extra : 0;
	uint64_t tokens = fill.tokens != 0 ? fill.tokens - extra : before;
	l->body.tokens_before = extra + tokens;
	l->body.tokens_after = extra + tokens / before * after + tokens % before * after / before;
	l->body.counted = l->body.shrunk = true;
	return 0;
}

static int apply_try(sheaf_session *session, const cut_box *plan, sheaf_str summary,
                     sheaf_appended *out, bool *again, sheaf_error *err)
{
	_cleanup_(look_free) look l = {.session = session, .err = err};
	uint64_t leaf_seq;
	size_t first = 0, dropped = 0;
	int rc = look_begin(&l, plan->rules.branch);
	if (rc == 0)
		rc = apply_leaf(&l, plan, &leaf_seq);
	if (rc == 0)
		rc = context_raw_read(&l.raw, session, l.head, leaf_seq, 0, l.arena, err);
	if (rc == 0)
		rc = apply_find(&l, plan, &first);
	if (rc == 0)
		rc = apply_check(&l, first, &dropped);
	if (rc != 0)
		return rc;
	l.body.summary = summary;
	l.body.trigger = plan->rules.trigger;
	l.body.settings = l.raw.settings;
	if (first < l.raw.count)
		l.body.first_kept = l.raw.entries[first].entry->id;
	rc = apply_count(&l, plan, dropped);
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

/* Keeps the entries that the older compaction chose, and all that came after it. */
static int undo_chosen(look *l)
{
	sheaf_str *ids = arena_alloc(l->arena, (l->raw.count + 1) * sizeof(*ids));
	if (ids == NULL)
		return err_nomem(l->err);
	for (size_t i = 0; i < l->raw.count; i++) {
		if (l->raw.entries[i].item != NULL)
			ids[l->body.kept_count++] = l->raw.entries[i].entry->id;
	}
	l->body.kept_ids = ids;
	l->body.chooses = true;
	return 0;
}

/*
 * A compaction that says what the older one said, or nothing, and keeps all
 * that the context has without the one that is undone.
 */
static int undo_body(look *l, const context_raw *present)
{
	const context_raw *raw = &l->raw;
	const sheaf_entry *undone = present->compaction;
	l->body.trigger = SHEAF_STR("undo");
	l->body.settings = raw->settings;
	settings_fill(&l->body.settings, &present->settings);
	if (raw->compaction != NULL)
		l->body.summary = raw->compaction->text;
	if (raw->info.replaces) {
		(void)err_set(l->err, SHEAF_COMPACT,
		              "the compaction before it stands for its messages itself");
		err_hint(l->err, "branch off from the entry before the compaction instead");
		return SHEAF_COMPACT;
	}
	if (raw->info.chooses)
		return undo_chosen(l);
	bool first = raw->count != 0 && raw->entries[0].entry->seq < undone->seq;
	l->body.first_kept = first ? raw->entries[0].entry->id : undone->id;
	return 0;
}

static int undo_try(sheaf_session *session, sheaf_str branch, sheaf_appended *out, bool *again,
                    sheaf_error *err)
{
	_cleanup_(look_free) look l = {.session = session, .err = err};
	context_raw present = {0};
	int rc = look_begin(&l, branch);
	if (rc == 0)
		rc = context_raw_read(&present, session, l.head, l.branch.leaf_seq, 0, l.arena,
		                      err);
	if (rc == 0 && present.compaction == NULL)
		rc = err_set(err, SHEAF_NOT_FOUND, "there is no compaction to undo");
	if (rc == 0)
		rc = context_raw_read(&l.raw, session, l.head, l.branch.leaf_seq,
		                      present.compaction->seq, l.arena, err);
	if (rc == 0)
		rc = undo_body(&l, &present);
	return rc == 0 ? look_append(&l, (sheaf_str){NULL, 0}, out, again) : rc;
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
