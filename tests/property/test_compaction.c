/*
 * Random conversations compacted, again and again: no cut parts a call from its
 * answer, a plan covers every message that is not kept and nothing else, also
 * those that an earlier compaction kept, the context gets smaller, and undoing
 * gives it back byte for byte.
 *
 *   test_property_compaction [SEED]     one history, with what happens in it
 *
 * SHEAF_TEST_SCALE multiplies the number of histories.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "sheaf.h"
#include "support/play.h"

#define HISTORIES 50000
#define STORE_TURNS 64 /* histories before a new store is opened */
#define JOBS_MAX 8
#define NODES_MAX 256
#define CALLS_MAX 3
#define NONE SIZE_MAX
#define ROOM 32

/* How often what is to be shown was seen at all. */
static atomic_ulong planned, split, applied, repeated, undone;

/* ---- What was said --------------------------------------------------------- */

typedef enum kind {
	KIND_MESSAGE,
	KIND_TEXT,   /* a branch's summary or a custom text: an item, but no message */
	KIND_SILENT, /* gives no item */
	KIND_COMPACTION
} kind;

typedef struct node {
	kind kind;
	char id[SHEAF_ID_ROOM];
	size_t parent;
	char mark[ROOM]; /* in its text and nowhere else; "" if it has none */
	bool asks, replies;
	char calls[CALLS_MAX][ROOM];
	size_t call_count;
	char answer[ROOM]; /* the call it answers, or "" */
	/* compaction */
	size_t first; /* the first kept one, or NONE */
	bool replaces, chooses;
	bool chosen[NODES_MAX];
} node;

typedef struct world {
	uint64_t seed, chance;
	sheaf_store *store;
	sheaf_session *session;
	unsigned sessions, stored;
	node nodes[NODES_MAX];
	size_t count;
	size_t leaf;
	unsigned names;
	bool talks; /* says what it does */
	sheaf_error err;
	char why[1024];
} world;

static size_t below(world *w, size_t n)
{
	w->chance ^= w->chance << 13;
	w->chance ^= w->chance >> 7;
	w->chance ^= w->chance << 17;
	return (size_t)((w->chance >> 11) % n);
}

static bool percent(world *w, size_t n)
{
	return below(w, 100) < n;
}

__attribute__((format(printf, 2, 3))) static bool fails(world *w, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	(void)vsnprintf(w->why, sizeof(w->why), format, list);
	va_end(list);
	return false;
}

__attribute__((format(printf, 2, 3))) static void tell(const world *w, const char *format, ...)
{
	va_list list;
	if (!w->talks)
		return;
	va_start(list, format);
	(void)vprintf(format, list);
	va_end(list);
	(void)printf("\n");
}

static bool failed(world *w, const char *what)
{
	return fails(w, "%s: %s", what, w->err.message);
}

/* ---- Making histories ------------------------------------------------------ */

static node *node_add(world *w, kind k)
{
	node *n = &w->nodes[w->count];
	memset(n, 0, sizeof(*n));
	n->kind = k;
	n->parent = w->leaf;
	n->first = NONE;
	(void)snprintf(n->id, sizeof(n->id), "e%zu", w->count);
	w->leaf = w->count++;
	return n;
}

/* A text that is found by its mark, mostly short. */
static const char *text_make(world *w, node *n, char room[2048])
{
	size_t len = percent(w, 80) ? below(w, 60) : below(w, 1800);
	(void)snprintf(n->mark, sizeof(n->mark), "#t%u#", w->names++);
	int at = snprintf(room, 2048, "%s", n->mark);
	memset(room + at, 'x', len);
	room[(size_t)at + len] = '\0';
	return room;
}

static bool put(world *w, node *n, sheaf_message *m)
{
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	entry.id = sheaf_str_of(n->id);
	int rc = sheaf_session_append_message(w->session, m, &entry, NULL, NULL, &w->err);
	sheaf_message_free(m);
	return rc == 0 || failed(w, "append");
}

static bool put_json(world *w, node *n, const char *type, const char *body)
{
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	entry.id = sheaf_str_of(n->id);
	int rc = sheaf_session_append_json(w->session, sheaf_str_of(type), sheaf_str_of(body),
	                                   &entry, NULL, NULL, &w->err);
	return rc == 0 || failed(w, "append");
}

static bool say_user(world *w)
{
	char room[2048];
	node *n = node_add(w, KIND_MESSAGE);
	n->asks = true;
	sheaf_message *m = sheaf_message_new(percent(w, 95) ? "user" : "system");
	n->asks = str_starts(sheaf_message_json(m), "{\"role\":\"user\"");
	(void)sheaf_message_text(m, sheaf_str_of(text_make(w, n, room)));
	return put(w, n, m);
}

static bool say_assistant(world *w, size_t calls)
{
	char room[2048];
	node *n = node_add(w, KIND_MESSAGE);
	sheaf_message *m = sheaf_message_new("assistant");
	n->replies = true;
	if (calls == 0 || percent(w, 50))
		(void)sheaf_message_text(m, sheaf_str_of(text_make(w, n, room)));
	for (size_t i = 0; i < calls; i++) {
		/* Some tools use the same ids again and again. */
		(void)snprintf(n->calls[i], ROOM, "c%u", percent(w, 15) ? 1 : w->names++);
		(void)sheaf_message_tool_use(m, sheaf_str_of(n->calls[i]), SHEAF_STR("bash"),
		                             SHEAF_STR("{\"cmd\":\"ls\"}"));
	}
	n->call_count = calls;
	if (percent(w, 30)) {
		sheaf_usage usage = {.input = below(w, 500),
		                     .cache_read = below(w, 500),
		                     .output = 1 + below(w, 200)};
		(void)sheaf_message_usage(m, &usage);
	}
	return put(w, n, m);
}

static bool say_answer(world *w, const char *call)
{
	char room[2048];
	node *n = node_add(w, KIND_MESSAGE);
	/* Results of some formats come in a user's message. */
	sheaf_message *m = sheaf_message_new(percent(w, 80) ? "tool" : "user");
	(void)snprintf(n->answer, ROOM, "%s", call);
	(void)sheaf_message_tool_result(m, sheaf_str_of(call), (sheaf_str){NULL, 0},
	                                sheaf_str_of(text_make(w, n, room)), 0);
	return put(w, n, m);
}

/* Of the path, newest first: NONE at its end. */
static size_t path_next(const world *w, size_t at)
{
	return w->nodes[at].parent;
}

/* Answers a call somewhere on the path, answered or not; or one that nobody made. */
static bool answer_any(world *w)
{
	char calls[64][ROOM];
	size_t n = 0;
	for (size_t i = w->leaf; i != NONE; i = path_next(w, i)) {
		for (size_t k = 0; k < w->nodes[i].call_count && n < 64; k++)
			memcpy(calls[n++], w->nodes[i].calls[k], ROOM);
	}
	if (n == 0 || percent(w, 5))
		return say_answer(w, "nobody");
	return say_answer(w, calls[percent(w, 60) ? 0 : below(w, n)]);
}

static bool say_rest(world *w)
{
	char body[256];
	node *n = node_add(w, percent(w, 50) ? KIND_TEXT : KIND_SILENT);
	(void)snprintf(n->mark, sizeof(n->mark), "#t%u#", w->names++);
	if (n->kind == KIND_TEXT && percent(w, 50)) {
		(void)snprintf(body, sizeof(body),
		               "{\"branch_summary\":{\"summary\":\"%s\",\"from_id\":null}}",
		               n->mark);
		return put_json(w, n, "branch_summary", body);
	}
	if (n->kind == KIND_TEXT) {
		(void)snprintf(body, sizeof(body),
		               "{\"custom\":{\"custom_type\":\"x\",\"in_context\":true,"
		               "\"content\":\"%s\"}}",
		               n->mark);
		return put_json(w, n, "custom", body);
	}
	n->mark[0] = '\0';
	if (percent(w, 50))
		return put_json(w, n, "model_change",
		                "{\"model_change\":{\"provider\":\"p\",\"model_id\":\"m\"}}");
	return put_json(w, n, "custom", "{\"custom\":{\"custom_type\":\"x\",\"data\":[1]}}");
}

static size_t path_list(const world *w, size_t out[NODES_MAX])
{
	size_t n = 0, back = 0;
	for (size_t i = w->leaf; i != NONE; i = path_next(w, i))
		n++;
	for (size_t i = w->leaf; i != NONE; i = path_next(w, i))
		out[n - ++back] = i;
	return n;
}

/* A compaction as other tools record them, or by hand; the latter may be refused. */
static bool compact_by_hand(world *w)
{
	char body[4096];
	size_t path[NODES_MAX], n = path_list(w, path), form = below(w, 10);
	if (n == 0)
		return true;
	size_t first = path[below(w, n)];
	if (form < 7) {
		sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
		char id[SHEAF_ID_ROOM];
		(void)snprintf(id, sizeof(id), "e%zu", w->count);
		entry.id = sheaf_str_of(id);
		int rc = sheaf_session_append_compaction(w->session, SHEAF_STR("by hand"),
		                                         sheaf_str_of(w->nodes[first].id), 1,
		                                         &entry, NULL, NULL, &w->err);
		if (rc == 0)
			node_add(w, KIND_COMPACTION)->first = first;
		return rc == 0 || rc == SHEAF_COMPACT || failed(w, "compact by hand");
	}
	node *c = node_add(w, KIND_COMPACTION);
	if (form == 9) {
		c->replaces = true;
		return put_json(
			w, c, "compaction",
			"{\"compaction\":{\"summary\":\"\",\"replacement\":["
			"{\"role\":\"user\",\"content\":\"some words that were said\"},"
			"{\"role\":\"assistant\",\"content\":\"and more of them, too\"}]}}");
	}
	c->chooses = true;
	int at = snprintf(body, sizeof(body), "{\"compaction\":{\"summary\":\"s\",\"kept_ids\":[");
	for (size_t i = 0, chosen = 0; i < n; i++) {
		if (chosen >= 20 || !percent(w, 30))
			continue;
		c->chosen[path[i]] = true;
		at += snprintf(body + at, sizeof(body) - (size_t)at, "%s\"%s\"",
		               chosen++ != 0 ? "," : "", w->nodes[path[i]].id);
	}
	(void)snprintf(body + at, sizeof(body) - (size_t)at, "]}}");
	return put_json(w, c, "compaction", body);
}

static bool go_back(world *w)
{
	size_t path[NODES_MAX], n = path_list(w, path);
	if (n < 3)
		return true;
	size_t to = path[n / 2 + below(w, n - n / 2)];
	if (sheaf_session_branch(w->session, (sheaf_str){NULL, 0}, sheaf_str_of(w->nodes[to].id),
	                         NULL, NULL, &w->err) != 0)
		return failed(w, "branch");
	w->leaf = to;
	return true;
}

static bool fork_off(world *w)
{
	sheaf_session *fork = NULL;
	sheaf_key key = sheaf_key_of("");
	char name[ROOM];
	if (w->leaf == NONE)
		return true;
	(void)snprintf(name, sizeof(name), "f%u", w->sessions++);
	key.session = sheaf_str_of(name);
	if (sheaf_session_fork(&fork, w->session, (sheaf_str){NULL, 0}, &key, NULL, &w->err) != 0)
		return failed(w, "fork");
	sheaf_session_close(w->session);
	w->session = fork;
	return true;
}

static bool one_step(world *w)
{
	size_t dice = below(w, 100);
	if (w->count + 4 >= NODES_MAX)
		return true;
	if (dice < 25)
		return say_user(w);
	if (dice < 42)
		return say_assistant(w, 0);
	if (dice < 62) {
		/* A call and its answers, as it should be; perhaps not all of them. */
		size_t calls = 1 + below(w, CALLS_MAX), from = w->count;
		bool good = say_assistant(w, calls);
		for (size_t i = 0; good && i < calls && percent(w, 92); i++)
			good = say_answer(w,
			                  w->nodes[from].calls[percent(w, 90) ? i : calls - 1 - i]);
		return good;
	}
	if (dice < 72)
		return answer_any(w);
	if (dice < 86)
		return say_rest(w);
	if (dice < 92)
		return compact_by_hand(w);
	return dice < 97 ? go_back(w) : fork_off(w);
}

/* ---- What should be -------------------------------------------------------- */

/* The entries a context is made of, in the order of the path; those that give an item. */
typedef struct view {
	size_t path[NODES_MAX];
	size_t path_count;
	size_t items[NODES_MAX];
	size_t count;
	size_t decides; /* the compaction, or NONE */
} view;

static void view_make(view *v, const world *w)
{
	v->path_count = path_list(w, v->path);
	v->count = 0;
	v->decides = NONE;
	size_t at = v->path_count, from = 0;
	while (at > 0 && v->decides == NONE) {
		if (w->nodes[v->path[--at]].kind == KIND_COMPACTION)
			v->decides = v->path[at];
	}
	const node *c = v->decides != NONE ? &w->nodes[v->decides] : NULL;
	if (c != NULL && (c->replaces || (c->first == NONE && !c->chooses)))
		from = at + 1;
	while (c != NULL && !c->chooses && c->first != NONE && v->path[from] != c->first)
		from++;
	for (size_t i = from; i < v->path_count; i++) {
		const node *n = &w->nodes[v->path[i]];
		bool kept = c == NULL || !c->chooses || i > at || c->chosen[v->path[i]];
		if (kept && n->kind <= KIND_TEXT)
			v->items[v->count++] = v->path[i];
	}
}

/* Whether a call among the first `cut` items is answered among the rest. */
static bool parts_a_pair(const world *w, const view *v, size_t cut)
{
	static _Thread_local bool done[NODES_MAX][CALLS_MAX];
	memset(done, 0, sizeof(done));
	for (size_t i = 0; i < v->count; i++) {
		const node *n = &w->nodes[v->items[i]];
		if (n->answer[0] == '\0')
			continue;
		for (size_t k = i; k-- > 0;) {
			const node *c = &w->nodes[v->items[k]];
			size_t at = 0;
			while (at < c->call_count &&
			       (done[k][at] || strcmp(c->calls[at], n->answer) != 0))
				at++;
			if (at == c->call_count)
				continue;
			done[k][at] = true;
			if (k < cut && i >= cut)
				return true;
			break;
		}
	}
	return false;
}

/* Whether a call among the first `cut` items may still get its answer. */
static bool leaves_an_open_call(const world *w, const view *v, size_t cut)
{
	size_t last = v->count;
	while (last > 0 && !w->nodes[v->items[last - 1]].replies)
		last--;
	while (last > 0 && !w->nodes[v->items[last - 1]].asks)
		last--;
	/* Calls at `last` and after it are open unless they have an answer. */
	for (size_t i = last; i < cut; i++) {
		const node *c = &w->nodes[v->items[i]];
		for (size_t k = 0; k < c->call_count; k++) {
			size_t calls = 0, answers = 0;
			/* Enough for ids used once; with others the pairs are looked at as above. */
			for (size_t j = 0; j < v->count; j++) {
				const node *n = &w->nodes[v->items[j]];
				answers += strcmp(n->answer, c->calls[k]) == 0;
				for (size_t x = 0; x < n->call_count; x++)
					calls += strcmp(n->calls[x], c->calls[k]) == 0;
			}
			if (calls == 1 && answers == 0)
				return true;
		}
	}
	return false;
}

/* ---- Contexts -------------------------------------------------------------- */

static void context_freep(sheaf_context **c)
{
	sheaf_context_free(*c);
}

static void plan_freep(sheaf_cut **plan)
{
	sheaf_cut_free(*plan);
}

static uint64_t tokens_of(const sheaf_context *c)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < c->count; i++)
		sum += sheaf_item_tokens(c->items[i]);
	return sum;
}

static bool same_item(const sheaf_item *a, const sheaf_item *b)
{
	if (a->kind != b->kind || a->synthetic != b->synthetic ||
	    !str_eq(a->message->role, b->message->role) ||
	    a->message->part_count != b->message->part_count)
		return false;
	if (!a->synthetic && !str_eq(a->entry->id, b->entry->id))
		return false;
	for (size_t i = 0; i < a->message->part_count; i++) {
		const sheaf_part *x = a->message->parts[i], *y = b->message->parts[i];
		if (x->kind != y->kind || !str_eq(x->text, y->text) || !str_eq(x->id, y->id) ||
		    !str_eq(x->tool_use_id, y->tool_use_id))
			return false;
	}
	return true;
}

/* ---- One round ------------------------------------------------------------- */

static bool check_covered(world *w, const view *v, const sheaf_cut *plan)
{
	if (plan->covered_count > v->count)
		return fails(w, "%zu of %zu are covered", plan->covered_count, v->count);
	for (size_t i = 0; i < plan->covered_count; i++) {
		if (!str_is(plan->covered[i], w->nodes[v->items[i]].id))
			return fails(w, "%s is covered where %s should be", plan->covered[i].ptr,
			             w->nodes[v->items[i]].id);
	}
	if (plan->kept_count != v->count - plan->covered_count)
		return fails(w, "%zu stay, not %zu", plan->kept_count,
		             v->count - plan->covered_count);
	if ((plan->first_kept.len == 0) != (plan->kept_count == 0))
		return fails(w, "something stays and nothing is the first of it");
	if (plan->kept_count == 0)
		return true;
	/* Between the last one covered and the first item that stays, or that itself. */
	size_t first = 0;
	while (first < v->path_count && !str_is(plan->first_kept, w->nodes[v->path[first]].id))
		first++;
	size_t item = first;
	while (item < v->path_count && v->path[item] != v->items[plan->covered_count])
		item++;
	if (item == v->path_count)
		return fails(w, "%s is not where the rest begins", plan->first_kept.ptr);
	for (size_t i = first; i < item; i++) {
		if (w->nodes[v->path[i]].kind <= KIND_TEXT)
			return fails(w, "%s would be kept, too", w->nodes[v->path[i]].id);
	}
	return true;
}

static bool check_prompt(world *w, const view *v, const sheaf_cut *plan)
{
	for (size_t i = 0; i < v->count; i++) {
		const node *n = &w->nodes[v->items[i]];
		bool there = n->mark[0] != '\0' && strstr(plan->prompt.ptr, n->mark) != NULL;
		if (n->mark[0] != '\0' && there != (i < plan->covered_count))
			return fails(w, "%s is%s in the prompt", n->id, there ? "" : " not");
	}
	return true;
}

static bool check_plan(world *w, const view *v, const sheaf_cut *plan)
{
	if (!check_covered(w, v, plan) || !check_prompt(w, v, plan))
		return false;
	if (parts_a_pair(w, v, plan->covered_count))
		return fails(w, "a call is parted from its answer");
	if (leaves_an_open_call(w, v, plan->covered_count))
		return fails(w, "an open call is not kept");
	return true;
}

/* Reads what a compaction says it keeps. */
static bool take_compaction(world *w, const char *id)
{
	sheaf_records *r = NULL;
	node *c = node_add(w, KIND_COMPACTION);
	(void)snprintf(c->id, sizeof(c->id), "%s", id);
	if (sheaf_session_get(&r, w->session, sheaf_str_of(id), &w->err) != 0)
		return failed(w, "get");
	const sheaf_entry *e = r->items[0];
	const char *list = memmem(e->body.ptr, e->body.len, "\"kept_ids\":[", 12);
	for (size_t i = 0; i < w->count; i++) {
		char quoted[SHEAF_ID_ROOM + 2];
		int len = snprintf(quoted, sizeof(quoted), "\"%s\"", w->nodes[i].id);
		if (str_is(e->target_id, w->nodes[i].id))
			c->first = i;
		if (list != NULL)
			c->chosen[i] = memmem(list, (size_t)(e->body.ptr + e->body.len - list),
			                      quoted, (size_t)len) != NULL;
	}
	c->chooses = list != NULL;
	bool found = c->first != NONE || e->target_id.len == 0;
	sheaf_records_free(r);
	return found || fails(w, "the first kept entry of %s is nowhere", id);
}

/* After: a summary, and what stayed, exactly as it was before. */
static bool check_applied(world *w, const sheaf_context *before, const sheaf_context *after)
{
	if (after->count == 0 || after->count > before->count + 1 ||
	    after->items[0]->kind != SHEAF_ITEM_COMPACTION_SUMMARY)
		return fails(w, "the context does not begin with the summary");
	size_t from = before->count - (after->count - 1);
	for (size_t i = 1; i < after->count; i++) {
		if (!same_item(after->items[i], before->items[from + i - 1]))
			return fails(w, "item %zu is not as it was", i);
	}
	if (tokens_of(after) >= tokens_of(before))
		return fails(w, "%llu tokens became %llu", (unsigned long long)tokens_of(before),
		             (unsigned long long)tokens_of(after));
	return true;
}

static bool check_history(world *w, const char *id)
{
	sheaf_compactions *list = NULL;
	if (sheaf_session_compactions(&list, w->session, SHEAF_STR("main"), &w->err) != 0)
		return failed(w, "compactions");
	const sheaf_compaction_info *last = list->items[list->count - 1];
	bool good = str_is(last->id, id) && last->tokens_after < last->tokens_before;
	sheaf_compactions_free(list);
	return good || fails(w, "the history does not end with it, or it did not shrink");
}

/* Undo, and perhaps undo that: the same bytes as before it, or as after. */
static bool check_undo(world *w, const sheaf_context *before, const sheaf_context *after,
                       bool replaced)
{
	sheaf_appended done = SHEAF_APPENDED_INIT;
	for (int i = 0; i < 2; i++) {
		_cleanup_(context_freep) sheaf_context *now = NULL;
		const sheaf_context *want = i == 0 ? before : after;
		int rc = sheaf_compaction_undo(w->session, (sheaf_str){NULL, 0}, &done, &w->err);
		tell(w, "undo: %s", sheaf_code_name(rc));
		if (rc == SHEAF_COMPACT && replaced)
			return true;
		if (rc != 0)
			return failed(w, "undo");
		if (!take_compaction(w, done.id))
			return false;
		if (sheaf_session_context(&now, w->session, NULL, &w->err) != 0)
			return failed(w, "context");
		if (now->count != want->count || now->prefix_hash != want->prefix_hash)
			return fails(w, "undone, it is not what it was");
		for (size_t k = 0; k < now->count; k++) {
			if (sheaf_context_prefix(now, k) != sheaf_context_prefix(want, k))
				return fails(w, "undone, item %zu is not what it was", k);
		}
		atomic_fetch_add(&undone, 1);
		if (percent(w, 60))
			break;
	}
	return true;
}

static bool apply(world *w, const sheaf_cut *plan, bool replaced)
{
	_cleanup_(context_freep) sheaf_context *before = NULL, *after = NULL;
	sheaf_appended done = SHEAF_APPENDED_INIT;
	char summary[256];
	/* Mostly much shorter than what it stands for. */
	size_t len = percent(w, 85) ? 1 : 1 + below(w, 200);
	memset(summary, 's', len);
	if (sheaf_session_context(&before, w->session, NULL, &w->err) != 0)
		return failed(w, "context");
	int rc = sheaf_compaction_apply(w->session, plan, str_make(summary, len), &done, &w->err);
	tell(w, "apply: %s", rc == 0 ? "ok" : w->err.message);
	if (rc == SHEAF_COMPACT)
		return true; /* not smaller, or a late answer came: judged by what is stored */
	if (rc != 0)
		return failed(w, "apply");
	if (sheaf_session_context(&after, w->session, NULL, &w->err) != 0)
		return failed(w, "context");
	if (!take_compaction(w, done.id) || !check_applied(w, before, after) ||
	    !check_history(w, done.id))
		return false;
	atomic_fetch_add(&applied, 1);
	atomic_fetch_add(&repeated, before->compaction != NULL);
	rc = sheaf_compaction_apply(w->session, plan, str_make(summary, len), &done, &w->err);
	if (rc != 0 || !done.existed)
		return fails(w, "applied twice");
	return !percent(w, 50) || check_undo(w, before, after, replaced);
}

static bool round_once(world *w)
{
	_cleanup_(plan_freep) sheaf_cut *plan = NULL;
	sheaf_compaction_options o = SHEAF_COMPACTION_OPTIONS_INIT;
	view v;
	view_make(&v, w);
	o.keep_recent = percent(w, 25) ? 0 : below(w, 400);
	o.bytes_max = percent(w, 10) ? 1 + below(w, 4000) : 0;
	int rc = sheaf_compaction_plan(&plan, w->session, &o, &w->err);
	tell(w, "plan keeping %llu: %s", (unsigned long long)o.keep_recent,
	     rc == 0 ? plan->first_kept.ptr : w->err.message);
	bool replaced = v.decides != NONE && w->nodes[v.decides].replaces;
	if (rc == SHEAF_COMPACT) {
		/* Everything can go unless a call is open, or there is nothing. */
		if (o.keep_recent == 0 && v.count != 0 && !parts_a_pair(w, &v, v.count) &&
		    strstr(w->err.message, "no answer yet") == NULL)
			return fails(w, "refused: %s", w->err.message);
		return true;
	}
	if (rc != 0)
		return failed(w, "plan");
	if (!check_plan(w, &v, plan))
		return false;
	atomic_fetch_add(&planned, 1);
	atomic_fetch_add(&split, plan->split != 0);
	for (size_t i = percent(w, 30) ? 1 + below(w, 3) : 0; i-- > 0;) {
		bool good = percent(w, 50)   ? say_user(w)
		            : percent(w, 50) ? say_assistant(w, below(w, 2))
		                             : answer_any(w);
		if (!good)
			return false;
	}
	return apply(w, plan, replaced);
}

/* ---- One history ----------------------------------------------------------- */

static bool begin(world *w, uint64_t seed)
{
	char name[ROOM];
	if (w->stored++ % STORE_TURNS == 0) {
		sheaf_close(w->store);
		w->store = NULL;
		if (sheaf_open(&w->store, "memory:", NULL, &w->err) != 0)
			return failed(w, "open");
	}
	(void)snprintf(name, sizeof(name), "s%u", w->sessions++);
	sheaf_key key = sheaf_key_of(name);
	w->seed = seed;
	w->chance = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	w->count = 0;
	w->leaf = NONE;
	w->names = 2;
	return sheaf_session_open(&w->session, w->store, &key, NULL, &w->err) == 0 ||
	       failed(w, "open");
}

static void show(const world *w)
{
	size_t path[NODES_MAX], n = path_list(w, path);
	for (size_t i = 0; w->talks && i < n; i++) {
		const node *x = &w->nodes[path[i]];
		static const char *const kinds[] = {"message", "text", "silent", "compaction"};
		(void)printf("  %s %s%s%s", x->id, kinds[x->kind], x->asks ? " user" : "",
		             x->replies ? " assistant" : "");
		for (size_t k = 0; k < x->call_count; k++)
			(void)printf(" call %s", x->calls[k]);
		(void)printf("%s%s\n", x->answer[0] != '\0' ? " answer " : "", x->answer);
	}
}

static bool run(world *w, uint64_t seed)
{
	bool good = begin(w, seed);
	size_t rounds = good ? 1 + below(w, 4) : 0;
	for (size_t i = 0; good && i < rounds; i++) {
		for (size_t k = 2 + below(w, 14); good && k-- > 0;)
			good = one_step(w);
		show(w);
		good = good && round_once(w);
	}
	sheaf_session_close(w->session);
	w->session = NULL;
	return good;
}

/* ---- Many ------------------------------------------------------------------ */

static atomic_ulong next_seed;
static atomic_uint failures;
static unsigned long histories;
static bool talks;

static void *work(UNUSED void *ctx)
{
	world *w = calloc(1, sizeof(*w));
	if (w == NULL)
		abort();
	w->talks = talks;
	for (;;) {
		uint64_t seed = atomic_fetch_add(&next_seed, 1);
		if (seed >= histories || atomic_load(&failures) >= 5)
			break;
		if (run(w, seed))
			continue;
		atomic_fetch_add(&failures, 1);
		(void)fprintf(stderr, "seed %llu: %s\nagain with: test_property_compaction %llu\n",
		              (unsigned long long)seed, w->why, (unsigned long long)seed);
	}
	sheaf_close(w->store);
	free(w);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[JOBS_MAX];
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t jobs = cores < 1 ? 1 : cores > JOBS_MAX ? JOBS_MAX : (size_t)cores;
	histories = (unsigned long)(HISTORIES * test_scale());
	if (argc > 1) {
		atomic_store(&next_seed, strtoul(argv[1], NULL, 10));
		histories = atomic_load(&next_seed) + 1;
		talks = true;
		jobs = 1;
	}
	for (size_t i = 0; i < jobs; i++) {
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			abort();
	}
	for (size_t i = 0; i < jobs; i++)
		(void)pthread_join(threads[i], NULL);
	unsigned bad = atomic_load(&failures);
	(void)printf(
		"%lu histories: %lu plans, %lu of them within a turn; %lu applied, %lu of them "
		"not the first; %lu undone; %u failed\n",
		histories, planned, split, applied, repeated, undone, bad);
	bool enough = argc > 1 || (applied > histories / 2 && split > histories / 10 &&
	                           repeated > histories / 10 && undone > histories / 5);
	if (!enough)
		(void)fprintf(stderr, "too little of it happened\n");
	return bad != 0 || !enough;
}
