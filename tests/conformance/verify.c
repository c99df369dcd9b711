/*
 * The check every case ends with: reads a whole store back, recomputes from the
 * records what heads, branches, labels, trees and contexts say, and does it
 * again after the store was closed and opened.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "trash.h"
#include "verify.h"

#define PAGE 257

/* ---- CRC-32C, the slow way ------------------------------------------------ */

uint32_t suite_crc32c(const void *bytes, size_t len)
{
	static uint32_t table[256];
	if (!table[1])
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t c = i;
			for (int k = 0; k < 8; k++)
				c = (c >> 1) ^ (c & 1 ? 0x82f63b78u : 0);
			table[i] = c;
		}
	const unsigned char *p = bytes;
	uint32_t crc = ~0u;
	for (size_t i = 0; i < len; i++)
		crc = (crc >> 8) ^ table[(crc ^ p[i]) & 0xff];
	return ~crc;
}

/* ---- Reading a log -------------------------------------------------------- */

static bool same(sheaf_str a, sheaf_str b)
{
	return a.len == b.len && (!a.len || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static void log_add(suite *t, verify_log *log, const sheaf_entry *e)
{
	if (log->count == log->room) {
		size_t room = log->room ? log->room * 2 : 1024;
		const sheaf_entry **more = t_alloc(t, room * sizeof(sheaf_entry *));
		if (log->count)
			memcpy(more, log->items, log->count * sizeof(sheaf_entry *));
		log->items = more;
		log->room = room;
	}
	log->items[log->count++] = e;
}

static void log_read(suite *t, verify_log *log, sheaf_session *s)
{
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.limit = PAGE;
	do {
		const sheaf_records *page = t_records(t, s, &o);
		CHECK(page->count <= PAGE);
		for (size_t i = 0; i < page->count; i++)
			log_add(t, log, page->items[i]);
		if (page->next_seq)
			CHECK(page->count > 0 && page->next_seq > o.from_seq);
		o.from_seq = page->next_seq;
	} while (o.from_seq);
}

static void check_backward(suite *t, const verify_log *log, sheaf_session *s)
{
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.backward = 1;
	o.raw = 1;
	o.limit = PAGE - 100;
	size_t left = log->count;
	do {
		const sheaf_records *page = t_records(t, s, &o);
		for (size_t i = 0; i < page->count; i++) {
			CHECK(left > 0);
			const sheaf_entry *e = log->items[--left];
			EQ(page->items[i]->seq, e->seq);
			CHECK(same(page->items[i]->line, e->line));
		}
		o.from_seq = page->next_seq;
	} while (o.from_seq);
	EQ(left, 0);
}

/* ---- Records -------------------------------------------------------------- */

static void check_line(suite *t, const sheaf_entry *e)
{
	CHECK(!e->damaged);
	CHECK(e->line.ptr && e->line.len > 20);
	const char *crc = e->line.ptr + e->line.len - strlen(",\"crc\":\"00000000\"}");
	CHECK(memcmp(crc, ",\"crc\":\"", 8) == 0);
	char want[16];
	snprintf(want, sizeof(want), "%08x",
	         suite_crc32c(e->line.ptr, (size_t)(crc - e->line.ptr)));
	if (memcmp(crc + 8, want, 8) != 0)
		FAIL("seq %" PRIu64 ": crc %.8s, computed %s", e->seq, crc + 8, want);
	CHECK(memcmp(e->line.ptr, "{\"type\":\"", 9) == 0);
	CHECK(!memchr(e->line.ptr, '\n', e->line.len));
	CHECK(e->body.len == 0 || memmem(e->line.ptr, e->line.len, e->body.ptr, e->body.len));
	CHECK(e->id.len > 0 && e->id.len <= SHEAF_ID_BYTES_MAX);
	CHECK(e->line.len < SHEAF_RECORD_BYTES_MAX + 1);
}

static void check_parent(suite *t, const verify_log *log, const sheaf_entry *e)
{
	bool fact = e->kind >= SHEAF_KIND_OTHER_FACT;
	if (fact)
		CHECK(!e->parent_id.ptr && e->parent_seq == 0);
	if (e->parent_seq == 0) {
		CHECK(e->parent_id.len == 0);
		return;
	}
	CHECK(e->parent_seq < e->seq);
	const sheaf_entry *parent = log->items[e->parent_seq - 1];
	CHECK(same(parent->id, e->parent_id));
	CHECK(parent->kind < SHEAF_KIND_OTHER_FACT);
}

static void check_batches(suite *t, const verify_log *log)
{
	for (size_t i = 0; i < log->count;) {
		uint64_t n = log->items[i]->batch_count;
		CHECK(n >= 1 && i + n <= log->count);
		for (uint64_t k = 0; k < n; k++) {
			EQ(log->items[i + k]->batch_count, n);
			EQ(log->items[i + k]->batch_index, k);
		}
		i += n;
	}
}

static int by_id(const void *a, const void *b)
{
	const sheaf_entry *x = *(const sheaf_entry *const *)a;
	const sheaf_entry *y = *(const sheaf_entry *const *)b;
	size_t n = x->id.len < y->id.len ? x->id.len : y->id.len;
	int c = memcmp(x->id.ptr, y->id.ptr, n);
	return c ? c : (x->id.len > y->id.len) - (x->id.len < y->id.len);
}

static void check_ids_unique(suite *t, const verify_log *log)
{
	const sheaf_entry **sorted = t_alloc(t, (log->count + 1) * sizeof(sheaf_entry *));
	if (log->count)
		memcpy(sorted, log->items, log->count * sizeof(sheaf_entry *));
	qsort(sorted, log->count, sizeof(sheaf_entry *), by_id);
	for (size_t i = 1; i < log->count; i++)
		if (same(sorted[i - 1]->id, sorted[i]->id))
			FAIL("the id %.*s is stored twice", (int)sorted[i]->id.len,
			     sorted[i]->id.ptr);
}

static void check_records(suite *t, const verify_log *log)
{
	for (size_t i = 0; i < log->count; i++) {
		EQ(log->items[i]->seq, i + 1);
		check_line(t, log->items[i]);
		check_parent(t, log, log->items[i]);
	}
	check_ids_unique(t, log);
}

/* ---- Labels --------------------------------------------------------------- */

/* The label an entry has, from the facts alone; {NULL,0} if none. */
static sheaf_str label_of(const verify_log *log, sheaf_str id)
{
	for (size_t i = log->count; i-- > 0;) {
		const sheaf_entry *e = log->items[i];
		if (e->kind == SHEAF_KIND_LABEL && same(e->target_id, id))
			return e->text.len ? e->text : (sheaf_str){NULL, 0};
	}
	return (sheaf_str){NULL, 0};
}

static void check_labels(suite *t, const verify_log *log, sheaf_session *s)
{
	size_t facts = 0;
	for (size_t i = 0; i < log->count; i++)
		facts += log->items[i]->kind == SHEAF_KIND_LABEL;
	const sheaf_records *labels = t_labels(t, s);
	size_t found = 0;
	for (size_t i = 0; i < log->count && facts; i++) {
		const sheaf_entry *e = log->items[i];
		if (e->kind >= SHEAF_KIND_OTHER_FACT)
			continue;
		sheaf_str want = label_of(log, e->id);
		if (!want.ptr)
			continue;
		CHECK(found < labels->count);
		EQ(labels->items[found]->seq, e->seq);
		CHECK(same(labels->items[found]->label, want));
		CHECK(same(labels->items[found]->line, e->line));
		found++;
	}
	EQ(labels->count, found);
}

/* ---- Branches ------------------------------------------------------------- */

static void check_path(suite *t, const verify_log *log, sheaf_session *s,
                       const sheaf_branch_info *b)
{
	sheaf_records *path = NULL;
	OK(sheaf_session_path(&path, s, b->name, S(NULL), 0, &t->err));
	t_keep_records(t, path);
	if (!b->leaf.ptr) {
		EQ(b->leaf_seq, 0);
		EQ(path->count, 0);
		return;
	}
	CHECK(path->count > 0 && b->leaf_seq <= log->count);
	CHECK(same(path->items[path->count - 1]->id, b->leaf));
	CHECK(same(log->items[b->leaf_seq - 1]->id, b->leaf));
	EQ(path->items[0]->parent_seq, 0);
	for (size_t i = 1; i < path->count; i++) {
		EQ(path->items[i]->parent_seq, path->items[i - 1]->seq);
		CHECK(same(path->items[i]->parent_id, path->items[i - 1]->id));
		CHECK(same(path->items[i]->line, log->items[path->items[i]->seq - 1]->line));
	}
}

/* The leaf a branch has according to the records from `own` on; false if they do not say. */
static bool leaf_of(suite *t, const verify_log *log, uint64_t own, sheaf_str name, sheaf_str *leaf,
                    bool *deleted)
{
	*deleted = false;
	for (size_t i = log->count; i-- > own;) {
		const sheaf_entry *e = log->items[i];
		if (e->kind < SHEAF_KIND_OTHER_FACT && same(e->branch, name)) {
			*leaf = e->id;
			return true;
		}
		if (e->kind != SHEAF_KIND_LEAF)
			continue;
		const char *branch = t_member(t, e->body, "branch");
		if (!same(S(branch ? branch : "main"), name))
			continue;
		*leaf = e->target_id;
		*deleted = !t_contains(e->body, "\"entry_id\"");
		return true;
	}
	return false;
}

static void check_branches(suite *t, const verify_log *log, sheaf_session *s,
                           const sheaf_head_view *h)
{
	CHECK(h->branch_count >= 1 && h->branch_count <= SHEAF_BRANCHES_MAX);
	TEXT(h->branches[0]->name, "main");
	uint64_t own = h->info->base;
	for (size_t i = 0; i < h->branch_count; i++) {
		const sheaf_branch_info *b = h->branches[i];
		check_path(t, log, s, b);
		sheaf_str leaf = {NULL, 0};
		bool deleted;
		if (leaf_of(t, log, own, b->name, &leaf, &deleted)) {
			CHECK(!deleted);
			CHECK(same(leaf, b->leaf));
		} else {
			CHECK(i == 0 && (own ? b->leaf_seq <= own : b->leaf_seq == 0));
		}
		for (size_t k = 0; k < i; k++)
			CHECK(!same(h->branches[k]->name, b->name));
	}
	for (size_t i = own; i < log->count; i++) {
		const sheaf_entry *e = log->items[i];
		bool known = e->kind >= SHEAF_KIND_OTHER_FACT;
		for (size_t k = 0; k < h->branch_count && !known; k++)
			known = same(h->branches[k]->name, e->branch);
		sheaf_str leaf;
		bool deleted = false;
		CHECK(known || (leaf_of(t, log, own, e->branch, &leaf, &deleted) && deleted));
	}
}

/* ---- Head ----------------------------------------------------------------- */

static uint64_t number_in(sheaf_str json, const char *name)
{
	char look[64];
	int n = snprintf(look, sizeof(look), "\"%s\":", name);
	const char *p = json.ptr ? memmem(json.ptr, json.len, look, (size_t)n) : NULL;
	return p ? strtoull(p + n, NULL, 10) : 0;
}

static void usage_add(sheaf_usage *sum, const sheaf_usage *u)
{
	sum->input += u->input;
	sum->cache_read += u->cache_read;
	sum->cache_write_5m += u->cache_write_5m;
	sum->cache_write_1h += u->cache_write_1h;
	sum->output += u->output;
	sum->reasoning += u->reasoning;
}

/* Whether a message of this turn, before the record `end`, has usage of its own. */
static bool turn_has_usage(const verify_log *log, size_t end, const char *turn)
{
	for (size_t i = 0; i < end; i++) {
		const sheaf_entry *e = log->items[i];
		if (e->kind == SHEAF_KIND_MESSAGE && e->message && e->message->usage &&
		    e->turn.ptr && turn && same(e->turn, S(turn)))
			return true;
	}
	return false;
}

static void check_counts(suite *t, const verify_log *log, const sheaf_session_info *info)
{
	uint64_t messages = 0;
	uint64_t turns = 0;
	sheaf_usage sum = {0};
	for (size_t i = info->base; i < log->count; i++) {
		const sheaf_entry *e = log->items[i];
		messages += e->kind == SHEAF_KIND_MESSAGE;
		turns += e->kind == SHEAF_KIND_TURN_END;
		if (e->kind == SHEAF_KIND_MESSAGE && e->message && e->message->usage)
			usage_add(&sum, e->message->usage);
		if (e->kind != SHEAF_KIND_TURN_END || !t_contains(e->body, "\"usage\""))
			continue;
		const char *turn = t_member(t, e->body, "turn");
		if (turn_has_usage(log, i, turn))
			continue;
		sheaf_usage u = {
			number_in(e->body, "input"),          number_in(e->body, "cache_read"),
			number_in(e->body, "cache_write_5m"), number_in(e->body, "cache_write_1h"),
			number_in(e->body, "output"),         number_in(e->body, "reasoning")};
		usage_add(&sum, &u);
	}
	EQ(info->revision, log->count);
	EQ(info->records, log->count - info->base);
	EQ(info->messages, messages);
	EQ(info->turns, turns);
	EQ(info->usage.input, sum.input);
	EQ(info->usage.cache_read, sum.cache_read);
	EQ(info->usage.cache_write_5m, sum.cache_write_5m);
	EQ(info->usage.cache_write_1h, sum.cache_write_1h);
	EQ(info->usage.output, sum.output);
	EQ(info->usage.reasoning, sum.reasoning);
	CHECK(!info->hidden && !info->damaged);
}

static void check_info(suite *t, const verify_log *log, const sheaf_session_info *info)
{
	check_counts(t, log, info);
	if (log->count > info->base)
		EQ(info->modified_us, log->items[log->count - 1]->time_us);
	else
		EQ(info->modified_us, info->created_us);
	for (size_t i = log->count; i-- > info->base;)
		if (log->items[i]->kind == SHEAF_KIND_SESSION_INFO) {
			CHECK(same(log->items[i]->text, info->name));
			break;
		}
	CHECK(info->name.len <= SHEAF_NAME_BYTES_MAX);
}

/* ---- Tree ----------------------------------------------------------------- */

static void check_tree(suite *t, const verify_log *log, sheaf_session *s)
{
	const sheaf_tree *tree = t_tree(t, s);
	size_t at = 0;
	size_t roots = 0;
	for (size_t i = 0; i < log->count; i++) {
		const sheaf_entry *e = log->items[i];
		if (e->kind >= SHEAF_KIND_OTHER_FACT)
			continue;
		CHECK(at < tree->node_count);
		const sheaf_node *n = tree->nodes[at++];
		EQ(n->entry->seq, e->seq);
		if (!e->parent_seq) {
			CHECK(n->parent == NULL && n->depth == 0);
			CHECK(roots < tree->root_count && tree->roots[roots] == n);
			roots++;
			continue;
		}
		CHECK(n->parent != NULL && n->parent->entry->seq == e->parent_seq);
		EQ(n->depth, n->parent->depth + 1);
		CHECK(!n->on_path || n->parent->on_path);
	}
	EQ(tree->node_count, at);
	EQ(tree->root_count, roots);
	for (size_t i = 0; i < tree->node_count; i++) {
		const sheaf_node *n = tree->nodes[i];
		for (size_t k = 0; k < n->child_count; k++) {
			CHECK(n->children[k]->parent == n);
			CHECK(k == 0 ||
			      n->children[k - 1]->entry->seq < n->children[k]->entry->seq);
		}
	}
}

/* ---- Context -------------------------------------------------------------- */

/* How many results for `id` stand in the tool messages right after item `i`. */
static size_t answers_after(const sheaf_context *c, size_t i, sheaf_str id)
{
	size_t n = 0;
	for (size_t k = i + 1; k < c->count; k++) {
		const sheaf_message_view *m = c->items[k]->message;
		size_t results = 0;
		for (size_t p = 0; p < m->part_count; p++)
			if (m->parts[p]->kind == SHEAF_PART_TOOL_RESULT) {
				results++;
				n += same(m->parts[p]->tool_use_id, id);
			}
		if (!results)
			break;
	}
	return n;
}

static void check_context(suite *t, sheaf_session *s, sheaf_str branch)
{
	sheaf_context_options o = SHEAF_CONTEXT_OPTIONS_INIT;
	o.branch = branch;
	const sheaf_context *c = t_context_with(t, s, &o);
	size_t calls = 0;
	size_t answers = 0;
	for (size_t i = 0; i < c->count; i++) {
		const sheaf_message_view *m = c->items[i]->message;
		CHECK(m != NULL);
		for (size_t p = 0; p < m->part_count; p++) {
			const sheaf_part *part = m->parts[p];
			answers += part->kind == SHEAF_PART_TOOL_RESULT;
			CHECK(part->kind != SHEAF_PART_TEXT || part->text.len > 0);
			if (part->kind != SHEAF_PART_TOOL_USE)
				continue;
			calls++;
			CHECK(answers_after(c, i, part->id) >= 1);
		}
	}
	EQ(calls, answers);
	const sheaf_context *again = t_context_with(t, s, &o);
	EQ(again->prefix_hash, c->prefix_hash);
	EQ(sheaf_context_prefix(c, c->count), c->prefix_hash);
}

/* ---- Stores --------------------------------------------------------------- */

static uint64_t fnv(uint64_t h, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

void verify_session(suite *t, sheaf_store *store, const sheaf_key *key, verify_print *print)
{
	sheaf_session *s = NULL;
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	o.readonly = 1;
	OK(sheaf_session_open(&s, store, key, &o, &t->err));
	t_keep(t, s);
	verify_log log = {0};
	log_read(t, &log, s);
	check_backward(t, &log, s);
	check_records(t, &log);
	check_batches(t, &log);
	check_labels(t, &log, s);
	const sheaf_head_view *h = t_head(t, s);
	check_branches(t, &log, s, h);
	check_info(t, &log, h->info);
	check_tree(t, &log, s);
	for (size_t i = 0; i < h->branch_count && i < 4; i++)
		check_context(t, s, h->branches[i]->name);
	EQ(h->torn_bytes, 0);
	EQ(h->tail_bytes, 0);
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < log.count; i++)
		hash = fnv(hash, log.items[i]->line.ptr, log.items[i]->line.len);
	for (size_t i = 0; i < h->branch_count; i++) {
		hash = fnv(hash, h->branches[i]->name.ptr, h->branches[i]->name.len);
		hash = fnv(hash, h->branches[i]->leaf.ptr, h->branches[i]->leaf.len);
	}
	hash = fnv(hash, h->info->name.ptr, h->info->name.len);
	hash = fnv(hash, h->info->preview.ptr, h->info->preview.len);
	hash = fnv(hash, h->info->cwd.ptr, h->info->cwd.len);
	hash = fnv(hash, h->metadata.ptr, h->metadata.len);
	hash = fnv(hash, &h->info->created_us, sizeof(int64_t));
	hash = fnv(hash, &h->info->modified_us, sizeof(int64_t));
	print->hash = hash;
	print->revision = h->info->revision;
	print->own = log.count - h->info->base;
	t_close(t, s);
}

static size_t verify_store(suite *t, const suite_place *place, verify_print *prints, size_t room)
{
	sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
	o.app = S(place->app);
	o.all_apps = place->app[0] == 0;
	o.user = S("");
	o.all_users = place->app[0] != 0 && t->info.lists_app;
	o.limit = 37;
	size_t count = 0;
	do {
		sheaf_list *page = NULL;
		OK(sheaf_store_list(&page, place->store, &o, &t->err));
		trash_add(t, TRASH_LIST, page);
		CHECK(page->count <= 37);
		for (size_t i = 0; i < page->count && count < room; i++) {
			const sheaf_session_info *info = page->items[i];
			CHECK(!info->hidden);
			sheaf_key key = {info->app, info->user, info->session};
			verify_print *p = &prints[count++];
			p->key = key;
			verify_session(t, place->store, &key, p);
			EQ(info->revision, p->revision);
		}
		o.cursor = page->cursor;
	} while (o.cursor.ptr);
	return count;
}

/* A store that can repair has nothing to repair; one that cannot says so. */
static void check_repair(suite *t, sheaf_store *store, const sheaf_key *key)
{
	sheaf_store_info info = {.size = sizeof(info)};
	OK(sheaf_store_describe(store, &info, &t->err));
	sheaf_report *report = NULL;
	if (!info.repairs) {
		FAILS(UNSUPPORTED, sheaf_store_repair(&report, store, key, &t->err));
		CHECK(report == NULL);
		return;
	}
	OK(sheaf_store_repair(&report, store, key, &t->err));
	size_t count = report->count;
	sheaf_report_free(report);
	EQ(count, 0);
}

/* One check, of everything or of a session: how much it has read; false if the store cannot. */
static bool check_part(suite *t, sheaf_store *store, const sheaf_key *key, uint64_t *sessions,
                       uint64_t *records)
{
	sheaf_report *report = NULL;
	int rc = sheaf_store_check(&report, store, key, &t->err);
	if (rc == SHEAF_UNSUPPORTED)
		return false;
	EQ(rc, 0);
	if (report->count)
		FAIL("the store's own check: %.*s: %.*s", (int)report->problems[0]->session.len,
		     report->problems[0]->session.ptr, (int)report->problems[0]->detail.len,
		     report->problems[0]->detail.ptr);
	*sessions += report->sessions;
	*records += report->records;
	sheaf_report_free(report);
	return true;
}

/* Stores that can check themselves find nothing. A store that holds more than this case is asked
 * about the sessions of the case only, or the last case would read what all others left. */
static void check_store(suite *t, const suite_place *place, const verify_print *prints,
                        size_t count)
{
	uint64_t own = 0, sessions = 0, records = 0;
	if (count)
		check_repair(t, place->store, &prints[0].key);
	if (!place->app[0] && !check_part(t, place->store, NULL, &sessions, &records))
		return;
	for (size_t i = 0; i < count; i++) {
		own += prints[i].own;
		if (place->app[0] &&
		    !check_part(t, place->store, &prints[i].key, &sessions, &records))
			return;
	}
	CHECK(sessions >= count && records >= own); /* hidden ones count too */
}

void suite_verify(suite *t)
{
	size_t room = 4096;
	verify_print *before = t_alloc(t, room * sizeof(*before));
	verify_print *after = t_alloc(t, room * sizeof(*after));
	size_t counts[SUITE_STORES];
	size_t used = 0;
	for (size_t i = 0; i < t->place_count; i++) {
		const suite_place *p = &t->places[i];
		counts[i] = verify_store(t, p, before + used, room - used);
		check_store(t, p, before + used, counts[i]);
		used += counts[i];
	}
	suite_reopen(t);
	used = 0;
	for (size_t i = 0; i < t->place_count; i++) {
		size_t n = verify_store(t, &t->places[i], after + used, room - used);
		EQ(n, counts[i]);
		for (size_t k = used; k < used + n; k++) {
			CHECK(same(before[k].key.session, after[k].key.session));
			EQ(before[k].revision, after[k].revision);
			EQ(before[k].hash, after[k].hash);
		}
		used += n;
	}
}
