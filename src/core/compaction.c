/*
 * Appends a compaction after checking its cut: the first kept entry lies on the
 * path, and no tool call before it is still open or answered behind it.
 *
 * The check reads what a context would be made of and no more: back to what the
 * previous compaction keeps, because what lies before that is summarised
 * already. Only a cut still further back has the whole path read: whether an
 * answer behind it has a call before it cannot be told otherwise.
 */
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/compaction_inside.h"
#include "core/write.h"

#define NONE SIZE_MAX

/* A tool call or an answer on the path. */
typedef struct mark {
	sheaf_str id;
	uint64_t seq;
	size_t below; /* the next older open call with this id */
	bool call;
	bool open;
} mark;

typedef struct check {
	sheaf_session *session;
	const sheaf_head *head;
	sheaf_error *err;
	arena *arena;
	json_doc *doc;
	/* the cut */
	bool keeps_none;
	bool cut_fact;     /* named by a fact: the first entry after that */
	uint64_t cut_from; /* the seq asked for; with cut_fact the least that can be it */
	uint64_t cut_seq;  /* the entry found on the path, 0 = not found */
	char cut_id[SHEAF_ID_ROOM];
	bool cut_is_answer;
	/* the walk */
	uint64_t resumed_at;  /* passed over when the walk goes on there */
	uint64_t lower;       /* nothing with a smaller seq is read */
	bool lower_must_meet; /* an entry: if it is not on the path, there is no lower end */
	bool chosen_only;
	map chosen;
	/* the previous compaction */
	const sheaf_entry *previous;
	compaction_info info;
	/* what was met, newest first */
	mark *marks;
	size_t count, room;
	bool behind_summary; /* what lies before the cut was summarised already */
	settings settings;
} check;

static void check_free(check *c)
{
	arena_free(c->arena);
	json_free(c->doc);
	map_free(&c->chosen);
	mem_free(c->marks);
}

/* ---- Calls and answers --------------------------------------------------- */

static int mark_add(check *c, const sheaf_part *part, uint64_t seq)
{
	bool call = part->kind == SHEAF_PART_TOOL_USE;
	if (!call && part->kind != SHEAF_PART_TOOL_RESULT)
		return 0;
	void *marks = c->marks;
	int ok = 1;
	if (mem_grow(&marks, &c->room, c->count + 1, sizeof(*c->marks)) != 0)
		return err_nomem(c->err);
	c->marks = marks;
	sheaf_str id = arena_dup(c->arena, call ? part->id : part->tool_use_id, &ok);
	if (!ok)
		return err_nomem(c->err);
	c->marks[c->count++] = (mark){.id = id, .seq = seq, .below = NONE, .call = call};
	return 0;
}

/* Marks are added oldest first here, and the list goes from the newest to the oldest. */
static void marks_reverse(check *c, size_t from)
{
	for (size_t a = from, b = c->count; a + 1 < b; a++) {
		mark kept = c->marks[a];
		c->marks[a] = c->marks[--b];
		c->marks[b] = kept;
	}
}

static int marks_of_message(check *c, const sheaf_message_view *message, uint64_t seq)
{
	for (size_t i = 0; i < message->part_count; i++) {
		int rc = mark_add(c, message->parts[i], seq);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* The messages a compaction stands for lie right before it. */
static int marks_of_replacement(check *c)
{
	size_t from = c->count;
	for (size_t at = 0;;) {
		const sheaf_message_view *message;
		int rc = replacement_next(&c->info, &at, &message, c->arena, &c->doc, c->err);
		if (rc == 0)
			break;
		if (rc == SHEAF_DAMAGED)
			continue;
		if (rc < 0)
			return rc;
		rc = marks_of_message(c, message, c->previous->seq - 1);
		if (rc != 0)
			return rc;
	}
	marks_reverse(c, from);
	return 0;
}

/* Whether a line can hold a call, an answer or a setting; escapes can hide any word. */
static bool may_matter(const check *c, const sheaf_row *row, sheaf_str body)
{
	bool want_model = c->settings.provider.ptr == NULL || c->settings.model.ptr == NULL;
	switch (row->kind) {
	case SHEAF_KIND_MODEL_CHANGE:
	case SHEAF_KIND_THINKING_LEVEL:
		return true;
	case SHEAF_KIND_MESSAGE:
		return memmem(body.ptr, body.len, "tool", 4) != NULL ||
		       (want_model && memmem(body.ptr, body.len, "model", 5) != NULL) ||
		       (want_model && memmem(body.ptr, body.len, "provider", 8) != NULL) ||
		       memmem(body.ptr, body.len, "\\u", 2) != NULL;
	default:
		return false;
	}
}

static int settings_keep(check *c, const sheaf_entry *entry)
{
	settings s = c->settings;
	int ok = 1;
	settings_take(&s, entry);
	if (s.provider.ptr != c->settings.provider.ptr)
		s.provider = arena_dup(c->arena, s.provider, &ok);
	if (s.model.ptr != c->settings.model.ptr)
		s.model = arena_dup(c->arena, s.model, &ok);
	if (s.thinking_level.ptr != c->settings.thinking_level.ptr)
		s.thinking_level = arena_dup(c->arena, s.thinking_level, &ok);
	if (!ok)
		return err_nomem(c->err);
	c->settings = s;
	return 0;
}

/*
 * Takes an entry's calls, answers and settings. The entry itself is forgotten:
 * a session too large for a context must still be one that can be compacted.
 */
static int check_entry(check *c, const sheaf_row *row, const record *r, bool *answers)
{
	*answers = false;
	if (!may_matter(c, row, r->body))
		return 0;
	_cleanup_(arena_freep) arena *brief = arena_new();
	sheaf_entry *entry = brief != NULL ? arena_zalloc(brief, sizeof(*entry)) : NULL;
	if (entry == NULL)
		return err_nomem(c->err);
	int rc = entry_read(entry, r, row->parent, true, brief, &c->doc, c->err);
	/* A payload that cannot be read gives nothing to check; the append judges damage. */
	if (rc != 0)
		return rc == SHEAF_NOMEM ? rc : 0;
	rc = settings_keep(c, entry);
	if (rc != 0 || entry->message == NULL)
		return rc;
	size_t from = c->count;
	rc = marks_of_message(c, entry->message, row->seq);
	if (rc != 0)
		return rc;
	marks_reverse(c, from);
	*answers = str_is(entry->message->role, SHEAF_ROLE_TOOL);
	for (size_t i = from; i < c->count; i++)
		*answers |= !c->marks[i].call;
	return 0;
}

/* ---- The walk ------------------------------------------------------------ */

static bool check_is_cut(const check *c, const sheaf_row *row)
{
	if (c->keeps_none)
		return false;
	return c->cut_fact ? row->seq >= c->cut_from : row->seq == c->cut_from;
}

/* Remembers the compaction that decides now, in memory that outlives the walk. */
static int check_previous(check *c, const sheaf_row *row, const record *r)
{
	sheaf_entry *entry = arena_zalloc(c->arena, sizeof(*entry));
	if (entry == NULL)
		return err_nomem(c->err);
	int rc = entry_read(entry, r, row->parent, true, c->arena, &c->doc, c->err);
	if (rc == 0) {
		entry->seq = row->seq;
		rc = compaction_read(&c->info, entry, c->arena, &c->doc, c->err);
	}
	if (rc != 0)
		return rc;
	c->previous = entry;
	settings_fill(&c->settings, &c->info.settings);
	return 0;
}

static int check_step(void *ctx, const sheaf_row *row, const record *r)
{
	check *c = ctx;
	bool answers = false;
	int rc = 0;

	if (row->seq == c->resumed_at)
		return 0;
	if (row->seq < c->lower) {
		if (!c->lower_must_meet)
			return 1;
		c->lower = 0;
	}
	bool decides = c->previous == NULL && row->kind == SHEAF_KIND_COMPACTION;
	if (decides)
		rc = check_previous(c, row, r);
	else if (!c->chosen_only || map_remove(&c->chosen, r->id))
		rc = check_entry(c, row, r, &answers);
	if (rc != 0)
		return rc;
	if (check_is_cut(c, row)) {
		c->cut_seq = row->seq;
		c->cut_is_answer = answers;
		str_copy_cut(c->cut_id, sizeof(c->cut_id), r->id);
	}
	return decides || row->seq == c->lower || (c->chosen_only && c->chosen.count == 0);
}

/* What cannot be read is passed over: whether the session may be written to is not judged here. */
static int check_damage(void *ctx, uint64_t seq)
{
	(void)ctx;
	(void)seq;
	return 0;
}

/* One walk; what a callback has to say about a failure is better than what the store says. */
static int check_walk(check *c, uint64_t from)
{
	sheaf_error theirs;
	c->err->code = 0;
	int rc = read_path(c->session, c->head, from, check_step, check_damage, c, &theirs);
	if (rc != 0 && c->err->code != rc)
		*c->err = theirs;
	return rc;
}

/* How far back the walk goes on beyond the previous compaction: 0 is to the root. */
static int check_bounds(check *c, bool *go_on)
{
	bool behind = c->keeps_none || c->cut_from >= c->previous->seq;
	kept_place place = {0};
	*go_on = true;
	c->behind_summary = !behind;
	if (compaction_ends_walk(&c->info)) {
		if (behind) {
			*go_on = false;
			return c->info.replaces ? marks_of_replacement(c) : 0;
		}
		return 0;
	}
	if (c->info.chooses) {
		c->chosen_only = behind;
		for (size_t i = 0; behind && i < c->info.kept_count; i++) {
			if (map_set(&c->chosen, c->info.kept_ids[i], i) != 0)
				return err_nomem(c->err);
		}
		return 0;
	}
	int rc = kept_locate(c->session, c->head, c->info.first_kept, c->previous->seq, &place,
	                     c->err);
	if (rc != 0)
		return rc;
	c->lower = place.found ? place.seq + place.fact : 0;
	c->lower_must_meet = place.found && !place.fact;
	c->behind_summary = !behind && c->cut_from < c->lower;
	if (c->behind_summary) {
		c->lower = 0;
		c->lower_must_meet = false;
	}
	return 0;
}

static int check_path(check *c, uint64_t leaf_seq)
{
	bool go_on = false;
	int rc = leaf_seq != 0 ? check_walk(c, leaf_seq) : 0;
	if (rc == 0 && c->previous != NULL)
		rc = check_bounds(c, &go_on);
	if (rc != 0 || !go_on)
		return rc;
	c->resumed_at = c->previous->seq;
	return check_walk(c, c->previous->seq);
}

/* ---- The verdict --------------------------------------------------------- */

static int refuse(check *c, const char *what, sheaf_str call)
{
	(void)err_set(c->err, SHEAF_COMPACT, "tool call %.*s %s",
	              (int)(call.len < 80 ? call.len : 80), call.len != 0 ? call.ptr : "", what);
	err_hint(c->err, "cut before the message that makes the call, or after its answer");
	return SHEAF_COMPACT;
}

/* An answer belongs to the nearest earlier open call with its id, as in a context. */
static int check_pairs(check *c)
{
	_cleanup_(map_free) map open = MAP_INIT;
	uint64_t cut = c->keeps_none ? UINT64_MAX : c->cut_seq, top;
	for (size_t i = c->count; i-- > 0;) {
		mark *m = &c->marks[i];
		bool found = map_get(&open, m->id, &top) && top != NONE;
		size_t next = i;
		if (m->call) {
			m->open = true;
			m->below = found ? (size_t)top : NONE;
		} else if (found) {
			mark *call = &c->marks[top];
			if (call->seq < cut && m->seq >= cut)
				return refuse(c, "before the cut is answered after it", m->id);
			call->open = false;
			next = call->below;
		} else {
			continue; /* an answer without a call is separated from nothing */
		}
		if (map_set(&open, m->id, next) != 0)
			return err_nomem(c->err);
	}
	for (size_t i = 0; i < c->count && !c->behind_summary; i++) {
		if (c->marks[i].open && c->marks[i].seq < cut)
			return refuse(c, "before the cut has no answer yet", c->marks[i].id);
	}
	return 0;
}

static int check_verdict(check *c)
{
	if (!c->keeps_none && c->cut_seq == 0) {
		(void)err_set(c->err, SHEAF_COMPACT, "the first kept entry is not on the path");
		err_hint(c->err, "name an entry between the root and the branch's leaf");
		return SHEAF_COMPACT;
	}
	if (c->cut_is_answer) {
		(void)err_set(c->err, SHEAF_COMPACT, "the first kept entry holds a tool's answer");
		err_hint(c->err, "cut before the message that makes the call");
		return SHEAF_COMPACT;
	}
	return check_pairs(c);
}

/* Turns the caller's word for the first kept entry into a place in the log. */
static int check_cut(check *c, sheaf_str first_kept)
{
	int32_t kind;
	if (first_kept.len == 0) {
		c->keeps_none = true;
		return 0;
	}
	int rc = read_resolve(c->session, c->head, first_kept, c->cut_id, &c->cut_from, c->err);
	if (rc != SHEAF_INVALID)
		return rc;
	/* A fact's id, as files of other tools have it: the next entry is meant. */
	sheaf_error unused;
	if (read_find(c->session, c->head, first_kept, &c->cut_from, &unused) != 0 ||
	    row_kind(c->session, c->head, c->cut_from, &kind, &unused) != 0 ||
	    !record_kind_is_fact(kind))
		return rc;
	c->cut_fact = true;
	c->cut_from++;
	return 0;
}

/* ---- The append ---------------------------------------------------------- */

typedef struct request {
	sheaf_session *session;
	sheaf_str summary;
	sheaf_str first_kept;
	uint64_t tokens_before;
	const sheaf_entry_options *entry;
	const sheaf_append_options *how;
	sheaf_appended *out;
	/* found out on the way */
	bool stored;    /* a record with the caller's id is there */
	bool may_retry; /* STALE only means that somebody was faster */
} request;

static int parent_of_row(void *ctx, const sheaf_row *row)
{
	if (row->kind == SHEAF_KIND_COMPACTION && !row->damaged)
		*(uint64_t *)ctx = row->parent;
	return 1;
}

static int request_stale(const sheaf_head *head, const head_branch *branch, sheaf_error *err)
{
	int rc = err_set(err, SHEAF_STALE, "the session is not where it was expected to be");
	err_hint(err, "read what was added, then append again");
	err->revision = sheaf_head_revision(head);
	str_copy_cut(err->leaf, sizeof(err->leaf), branch->leaf);
	return rc;
}

/* Whether the id is stored already; then its parent is found out. */
static int request_stored(request *q, const sheaf_head *head, uint64_t *parent, sheaf_error *err)
{
	sheaf_str id = OPTION(q->entry, id, ((sheaf_str){0}));
	uint64_t seq;
	if (id.len == 0 || id.len > SHEAF_ID_BYTES_MAX)
		return 0;
	int rc = read_find(q->session, head, id, &seq, err);
	if (rc != 0)
		return rc == SHEAF_NOT_FOUND ? 0 : rc;
	q->stored = seq <= sheaf_head_revision(head);
	return q->stored ? read_row(q->session, head, seq, parent_of_row, parent, err) : 0;
}

/*
 * The entry the compaction will hang on, and the expectation that makes this
 * true. A repeated append is looked at as it was: on the parent it was stored
 * with, so that it is the same record again.
 */
static int request_leaf(request *q, const sheaf_head *head, sheaf_append_options *how,
                        uint64_t *leaf_seq, sheaf_error *err)
{
	sheaf_str parent = OPTION(q->entry, parent_id, ((sheaf_str){0}));
	char name[SHEAF_ID_ROOM];
	head_branch branch;

	*leaf_seq = 0;
	int rc = request_stored(q, head, leaf_seq, err);
	if (rc != 0 || q->stored)
		return rc;
	if (!head_branch_find(head, OPTION(q->entry, branch, ((sheaf_str){0})), &branch))
		branch = (head_branch){.leaf_seq = 0};
	if (how->expect == SHEAF_EXPECT_LEAF && !str_eq(how->leaf, branch.leaf))
		return request_stale(head, &branch, err);
	if (how->expect == SHEAF_EXPECT_REVISION && how->revision != sheaf_head_revision(head))
		return request_stale(head, &branch, err);
	if (OPTION(q->entry, has_parent, 0) != 0) {
		if (parent.len == 0)
			return 0;
		return read_resolve(q->session, head, parent, name, leaf_seq, err);
	}
	*leaf_seq = branch.leaf_seq;
	if (how->expect == SHEAF_EXPECT_DEFAULT || how->expect == SHEAF_EXPECT_ANY) {
		how->expect = SHEAF_EXPECT_LEAF;
		how->leaf = branch.leaf;
		q->may_retry = true;
	}
	return 0;
}

static void write_settings(buf *out, const settings *s)
{
	if (s->provider.len != 0 || s->model.len != 0) {
		buf_lit(out, ",\"model\":{");
		if (s->provider.len != 0) {
			buf_lit(out, "\"provider\":");
			buf_json(out, s->provider);
		}
		if (s->model.len != 0) {
			if (s->provider.len != 0)
				buf_lit(out, ",");
			buf_lit(out, "\"model_id\":");
			buf_json(out, s->model);
		}
		buf_lit(out, "}");
	}
	if (s->thinking_level.len != 0) {
		buf_lit(out, ",\"thinking_level\":");
		buf_json(out, s->thinking_level);
	}
}

void compaction_write(buf *out, const compaction_body *c)
{
	buf_lit(out, "\"compaction\":{\"summary\":");
	buf_json(out, c->summary);
	if (c->first_kept.len != 0) {
		buf_lit(out, ",\"first_kept_entry_id\":");
		buf_json(out, c->first_kept);
	}
	if (c->chooses) {
		buf_lit(out, ",\"kept_ids\":[");
		for (size_t i = 0; i < c->kept_count; i++) {
			if (i != 0)
				buf_char(out, ',');
			buf_json(out, c->kept_ids[i]);
		}
		buf_char(out, ']');
	}
	if (c->counted) {
		buf_lit(out, ",\"tokens_before\":");
		buf_u64(out, c->tokens_before);
	}
	if (c->shrunk) {
		buf_lit(out, ",\"tokens_after\":");
		buf_u64(out, c->tokens_after);
	}
	buf_lit(out, ",\"trigger\":");
	buf_json(out, c->trigger);
	write_settings(out, &c->settings);
	buf_lit(out, "}");
}

static void body_write(buf *out, const request *q, const check *c)
{
	compaction_write(out, &(compaction_body){
				      .summary = q->summary,
				      .first_kept = sheaf_str_of(c->cut_id),
				      .counted = true,
				      .tokens_before = q->tokens_before,
				      .trigger = SHEAF_STR("manual"),
				      .settings = c->settings,
			      });
}

static int request_check(request *q, check *c, sheaf_append_options *how)
{
	uint64_t leaf_seq;
	int rc = request_leaf(q, c->head, how, &leaf_seq, c->err);
	if (rc == 0)
		rc = check_cut(c, q->first_kept);
	if (rc == 0)
		rc = check_path(c, leaf_seq);
	if (rc == 0)
		rc = check_verdict(c);
	/* It was allowed when it was stored: the cut named now is another one. */
	if (rc == SHEAF_COMPACT && q->stored)
		rc = err_set(c->err, SHEAF_CONFLICT, "the id is stored with other content");
	return rc;
}

static int request_try(request *q, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	_cleanup_(draft_free) draft d = {0};
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	sheaf_append_options how = {
		.size = sizeof(how),
		.expect = OPTION(q->how, expect, 0),
		.durability = OPTION(q->how, durability, 0),
		.leaf = OPTION(q->how, leaf, ((sheaf_str){0})),
		.revision = OPTION(q->how, revision, 0),
		.deadline_us = OPTION(q->how, deadline_us, 0),
	};
	int rc = session_head(q->session, &head, NULL, err);
	if (rc != 0)
		return rc;
	_cleanup_(check_free) check c = {
		.session = q->session,
		.head = head,
		.err = err,
		.arena = arena_new(),
		.chosen = MAP_INIT,
	};
	q->stored = q->may_retry = false;
	if (c.arena == NULL)
		return err_nomem(err);
	rc = request_check(q, &c, &how);
	if (rc != 0)
		return rc;
	body_write(&body, q, &c);
	rc = buf_status(&body, err);
	if (rc == 0)
		rc = draft_init(&d, SHEAF_STR("compaction"), buf_view(&body), true, q->entry, err);
	draft *list[1] = {&d};
	return rc == 0 ? session_append(q->session, list, 1, &how, false, q->out, err) : rc;
}

/* A streaming piece: what it grows into will be appended, and checked, when it is whole. */
static int request_drop(const request *q, sheaf_error *err)
{
	_cleanup_(draft_free) draft d = {0};
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	const check unchecked = {.keeps_none = true};
	sheaf_appended dropped = SHEAF_APPENDED_INIT;
	body_write(&body, q, &unchecked);
	int rc = buf_status(&body, err);
	if (rc == 0)
		rc = draft_init(&d, SHEAF_STR("compaction"), buf_view(&body), true, q->entry, err);
	if (rc != 0)
		return rc;
	str_copy_cut(dropped.id, sizeof(dropped.id), draft_id(&d));
	appended_set(q->out, &dropped);
	return 0;
}

static int request_run(request *q, sheaf_error *err)
{
	bool named = OPTION(q->entry, id, ((sheaf_str){0})).len != 0;
	for (int i = 1;; i++) {
		int rc = request_try(q, err);
		bool again = rc == SHEAF_STALE && q->may_retry;
		/* A twin of this call may have stored the same record after we looked for it. */
		again |= rc == SHEAF_CONFLICT && named && !q->stored;
		if (!again || i == COMPACTION_TRIES)
			return rc;
	}
}

int sheaf_session_append_compaction(sheaf_session *session, sheaf_str summary, sheaf_str first_kept,
                                    uint64_t tokens_before, const sheaf_entry_options *entry,
                                    const sheaf_append_options *how, sheaf_appended *out,
                                    sheaf_error *err)
{
	request q = {
		.session = session,
		.summary = summary,
		.first_kept = first_kept,
		.tokens_before = tokens_before,
		.entry = entry,
		.how = how,
		.out = out,
	};
	if (session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = text_check(summary, SIZE_MAX, "summary", err);
	if (rc != 0)
		return rc;
	if (OPTION(entry, partial, 0) != 0)
		return request_drop(&q, err);
	sheaf_appended early = SHEAF_APPENDED_INIT;
	str_copy_cut(early.id, sizeof(early.id), OPTION(entry, id, ((sheaf_str){0})));
	appended_set(out, &early);
	/* Some failures on the way are answers; the caller's struct is for the last word only. */
	sheaf_error mine = {0};
	rc = request_run(&q, &mine);
	if (rc != 0 && err != NULL)
		*err = mine;
	return rc;
}
