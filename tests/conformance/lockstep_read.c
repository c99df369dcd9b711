/* Runs a history's reads on a real store. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep_inside.h"

typedef unsigned long long ull;

#define SHOW(s) (int)(s).len, (s).ptr ? (s).ptr : ""

static uint64_t fnv(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static bool ours(sheaf_str id)
{
	return id.len == 0 || id.ptr[0] == 'r';
}

/* Lines can be compared where the test made every id in them and the time. */
static void add_bytes(answer *bytes, const sheaf_entry *e)
{
	if (e->id.ptr[0] == 'r' && ours(e->parent_id) && ours(e->target_id) &&
	    e->kind != SHEAF_KIND_BRANCH_SUMMARY)
		answer_add(bytes, " %" PRIu64 ":%zu:%" PRIx64, e->seq, e->line.len,
		           fnv(e->line.ptr, e->line.len));
}

static void add_record(sheaf_session *s, answer *a, const sheaf_entry *e, bool label)
{
	answer_add(a, " %llu:%s", (ull)e->seq, sheaf_kind_name(e->kind));
	if (e->kind < SHEAF_KIND_OTHER_FACT)
		answer_add(a, "^%llu@%.*s", (ull)e->parent_seq, SHOW(e->branch));
	if (e->kind == SHEAF_KIND_LABEL || e->kind == SHEAF_KIND_LEAF ||
	    e->kind == SHEAF_KIND_COMPACTION)
		answer_add(a, ">%llu", (ull)real_seq(s, e->target_id));
	if (e->kind == SHEAF_KIND_LABEL || (e->kind == SHEAF_KIND_SESSION_INFO && e->text.ptr))
		answer_add(a, "'%.*s'", SHOW(e->text));
	if (e->batch_count > 1)
		answer_add(a, "[%llu/%llu]", (ull)e->batch_index, (ull)e->batch_count);
	if (label && e->label.len)
		answer_add(a, "=%.*s", SHOW(e->label));
}

static void add_records(sheaf_session *s, answer *a, answer *bytes, const sheaf_records *r,
                        bool label)
{
	for (size_t i = 0; i < r->count; i++) {
		add_record(s, a, r->items[i], label);
		add_bytes(bytes, r->items[i]);
	}
}

static int read_records(sheaf_session *s, const op *o, answer *a, answer *bytes, sheaf_error *err)
{
	sheaf_read_options q = SHEAF_READ_OPTIONS_INIT;
	q.backward = o->backward;
	q.newest = o->newest;
	q.own_only = o->own_only;
	q.from_seq = o->newest ? 0 : o->from_seq;
	q.limit = o->limit;
	q.kinds = o->kinds;
	q.after_us = o->after_us;
	if (o->word[0])
		q.branch = sheaf_str_of(o->word);
	answer_add(a, "OK");
	do { /* page after page: together they are what the model finds at once */
		sheaf_records *r = NULL;
		int rc = sheaf_session_records(&r, s, &q, err);
		if (rc)
			return rc;
		if (q.limit && r->count > q.limit)
			answer_add(a, " (page too long)");
		add_records(s, a, bytes, r, false);
		q.from_seq = o->newest ? 0 : r->next_seq;
		sheaf_records_free(r);
	} while (q.from_seq);
	return 0;
}

static int read_list_of(sheaf_session *s, const op *o, answer *a, answer *bytes, sheaf_error *err)
{
	char room[SHEAF_ID_ROOM];
	sheaf_records *r = NULL;
	sheaf_str target = real_name(s, &o->target, room);
	int rc;
	switch (o->what) {
	case OP_PATH:
		rc = sheaf_session_path(&r, s, sheaf_str_of(o->word), target, o->limit, err);
		break;
	case OP_LABELS:
		rc = sheaf_session_labels(&r, s, err);
		break;
	case OP_GET:
		rc = sheaf_session_get(&r, s, target, err);
		break;
	default:
		rc = sheaf_session_children(&r, s, target, err);
		break;
	}
	if (rc == 0) {
		answer_add(a, "OK");
		add_records(s, a, bytes, r, true);
	}
	sheaf_records_free(r);
	return rc;
}

static int read_tree(sheaf_session *s, answer *a, sheaf_error *err)
{
	sheaf_tree *tree = NULL;
	int rc = sheaf_session_tree(&tree, s, err);
	if (rc)
		return rc;
	answer_add(a, "OK");
	for (size_t i = 0; i < tree->node_count; i++) {
		const sheaf_node *n = tree->nodes[i];
		answer_add(a, " %llu^%llu d%d c%zu%s%.*s", (ull)n->entry->seq,
		           n->parent ? (ull)n->parent->entry->seq : 0, n->depth, n->child_count,
		           n->on_path ? "*" : "", SHOW(n->entry->label));
	}
	sheaf_tree_free(tree);
	return 0;
}

/* ---- Contexts ----------------------------------------------------------------- */

static void add_part(answer *a, const sheaf_part *p, size_t count)
{
	switch (p->kind) {
	case SHEAF_PART_TOOL_USE:
		answer_add(a, "call %.*s;", SHOW(p->id));
		break;
	case SHEAF_PART_TOOL_RESULT:
		if (p->synthetic)
			answer_add(a, "!%.*s", SHOW(p->tool_use_id));
		else
			answer_add(a, "%.*s=%.*s;", SHOW(p->tool_use_id), SHOW(p->text));
		break;
	default: /* what was made of an orphan has no bytes of its own */
		answer_add(a, "%.*s%s", SHOW(p->text), p->json.ptr || count == 0 ? "" : ";");
		break;
	}
}

static void add_item(answer *a, const sheaf_item *i)
{
	const sheaf_message_view *m = i->message;
	if (i->kind != SHEAF_ITEM_MESSAGE) {
		answer_add(a, " %.*s(%.*s)", i->kind == SHEAF_ITEM_CUSTOM ? 6 : (int)m->role.len,
		           i->kind == SHEAF_ITEM_CUSTOM ? "custom" : m->role.ptr, SHOW(i->text));
		return;
	}
	answer_add(a, " %.*s(", SHOW(m->role));
	for (size_t k = 0; k < m->part_count; k++)
		add_part(a, m->parts[k], m->json.ptr ? 0 : m->part_count);
	answer_add(a, ")");
}

static int read_context(sheaf_session *s, const op *o, answer *a, answer *bytes, sheaf_error *err)
{
	char room[SHEAF_ID_ROOM];
	sheaf_context_options q = SHEAF_CONTEXT_OPTIONS_INIT;
	q.branch = sheaf_str_of(o->word);
	q.leaf = real_name(s, &o->target, room);
	q.without_compaction = o->without;
	if (o->agent[0])
		q.agent = sheaf_str_of(o->agent);
	sheaf_context *c = NULL;
	int rc = sheaf_session_context(&c, s, &q, err);
	if (rc)
		return rc;
	answer_add(a, "leaf=%llu by=%llu:", (ull)real_seq(s, c->leaf),
	           c->compaction ? (ull)c->compaction->seq : 0);
	for (size_t i = 0; i < c->count; i++)
		add_item(a, c->items[i]);
	if (!o->agent[0])
		answer_add(a, " model=%.*s level=%.*s", SHOW(c->model), SHOW(c->thinking_level));
	int notes[9] = {0};
	for (size_t i = 0; i < c->note_count; i++)
		if (c->notes[i]->what > 0 && c->notes[i]->what < 9)
			notes[c->notes[i]->what]++;
	for (int i = 1; i < 9; i++)
		if (notes[i])
			answer_add(a, " n%d=%d", i, notes[i]);
	answer_add(bytes, " %" PRIx64, c->prefix_hash);
	sheaf_context_free(c);
	return 0;
}

/* ---- Heads --------------------------------------------------------------------- */

/* Times are compared where the test gave them: long before now. */
#define TEST_TIME_MAX INT64_C(1000000000000000)

static void add_info(answer *a, const sheaf_session_info *i)
{
	answer_add(a,
	           "rev=%llu own=%llu messages=%llu turns=%llu tokens=%llu base=%llu source=%.*s "
	           "name=%.*s",
	           (ull)i->revision, (ull)i->records, (ull)i->messages, (ull)i->turns,
	           (ull)i->usage.input, (ull)i->base, SHOW(i->source), SHOW(i->name));
	if (i->modified_us < TEST_TIME_MAX)
		answer_add(a, " at=%lld", (long long)i->modified_us);
}

static int read_head(sheaf_session *s, answer *a, answer *bytes, sheaf_error *err)
{
	sheaf_head_view *h = NULL;
	int rc = sheaf_session_head(&h, s, err);
	if (rc)
		return rc;
	add_info(a, h->info);
	answer_add(a, " metadata=%.*s branches=", SHOW(h->metadata));
	for (size_t i = 0; i < h->branch_count; i++)
		answer_add(a, "%.*s:%llu,", SHOW(h->branches[i]->name),
		           (ull)h->branches[i]->leaf_seq);
	answer_add(bytes, " %.*s", SHOW(h->info->preview));
	sheaf_head_view_free(h);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const sheaf_session_info *x = *(const sheaf_session_info *const *)a;
	const sheaf_session_info *y = *(const sheaf_session_info *const *)b;
	return memcmp(x->session.ptr, y->session.ptr, 2);
}

void real_list(real *r, answer *said)
{
	sheaf_list_options q = SHEAF_LIST_OPTIONS_INIT;
	q.app = sheaf_str_of(r->app);
	q.user = sheaf_str_of("u");
	sheaf_list *l = NULL;
	sheaf_error err = {0};
	int rc = sheaf_store_list(&l, r->store, &q, &err);
	answer_add(said, "%s", sheaf_code_name(rc));
	if (rc)
		return;
	for (size_t i = 1; i < l->count; i++) {
		const sheaf_session_info *x = l->items[i - 1];
		const sheaf_session_info *y = l->items[i];
		if (x->modified_us < y->modified_us ||
		    (x->modified_us == y->modified_us && by_name(&x, &y) >= 0))
			answer_add(said, " (not in order)");
	}
	const sheaf_session_info *rows[KEYS];
	size_t n = l->count < KEYS ? l->count : KEYS;
	if (n)
		memcpy(rows, l->items, n * sizeof(rows[0]));
	qsort(rows, n, sizeof(rows[0]), by_name);
	for (size_t i = 0; i < n; i++) {
		answer_add(said, "\n  %.*s ", SHOW(rows[i]->session));
		add_info(said, rows[i]);
	}
	if (l->count > KEYS || l->cursor.ptr)
		answer_add(said, " (and more)");
	sheaf_list_free(l);
}

void real_read(sheaf_session *s, const op *o, answer *said, answer *bytes)
{
	sheaf_error err = {0};
	char id[SHEAF_ID_ROOM] = "";
	size_t before = said->len;
	int rc;
	switch (o->what) {
	case OP_HEAD:
		rc = read_head(s, said, bytes, &err);
		break;
	case OP_RECORDS:
		rc = read_records(s, o, said, bytes, &err);
		break;
	case OP_TREE:
		rc = read_tree(s, said, &err);
		break;
	case OP_CONTEXT:
		rc = read_context(s, o, said, bytes, &err);
		break;
	case OP_RESOLVE:
		rc = sheaf_session_resolve(s, sheaf_str_of(o->word), id, &err);
		if (rc == 0)
			answer_add(said, "OK %llu", (ull)real_seq(s, sheaf_str_of(id)));
		break;
	default:
		rc = read_list_of(s, o, said, bytes, &err);
		break;
	}
	if (rc) {
		said->len = before;
		real_failed(said, s, rc, &err);
	}
}
