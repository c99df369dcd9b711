/*
 * Builds a context: walks back from the leaf as far as the deciding compaction
 * allows, turns what was met into items in order, and has them mended.
 */
#include "core/context.h"

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/mend.h"
#include "entry/members.h"

/*
 * A first kept entry is nearly always near and on the path. Only after this
 * many entries without it the log is asked where it is, so that the usual
 * context is one walk, and an id that names a fact costs little more.
 */
#define BLIND_ENTRIES 256

/* What the caller gets, and what sheaf_context_prefix() needs. */
typedef struct result {
	sheaf_context context; /* first: the caller's pointer is also this struct's */
	arena *arena;
	const uint64_t *hashes; /* count + 1 */
} result;

typedef enum phase {
	PHASE_TAIL,   /* no compaction yet */
	PHASE_BLIND,  /* looking for its first kept entry by id */
	PHASE_ENTRY,  /* the first kept entry's seq is known */
	PHASE_FACT,   /* it names a fact: everything after that is kept */
	PHASE_CHOSEN, /* single entries are kept */
	PHASE_ALL,    /* it names nothing on this path: everything is kept */
	PHASE_DONE
} phase;

/* A record that could not be read. */
typedef struct lost {
	uint64_t seq;   /* 0: not known */
	uint64_t below; /* the entry met before */
} lost;

typedef struct walk {
	sheaf_session *session;
	const sheaf_head *head;
	sheaf_error *err; /* written by callbacks: not what the store is given (see walk_path) */
	arena *arena;
	json_doc *doc;
	/* options */
	sheaf_str agent;
	bool without_all;
	uint64_t without_seq;
	context_scan *scan; /* gets every entry; then nothing is collected */
	arena *brief;       /* for what it is shown */
	size_t bytes_max;
	/* where it is */
	phase phase;
	uint64_t last_seq; /* of the entry met last */
	bool resumed;      /* the walk starts at an entry that was met before */
	bool paused;       /* stopped to ask where the first kept entry is */
	size_t blind_left;
	uint64_t kept_seq;
	map chosen;
	size_t chosen_left;
	/* what it met, newest first */
	const sheaf_entry **entries;
	size_t count, room;
	size_t after; /* how many of them come after the compaction */
	size_t bytes;
	lost *lost;
	size_t lost_count, lost_room;
	const sheaf_entry *compaction;
	compaction_info info;
	bool all_kept; /* because the first kept entry is not on the path */
} walk;

static void walk_free(walk *w)
{
	json_free(w->doc);
	arena_free(w->brief);
	map_free(&w->chosen);
	mem_free(w->entries);
	mem_free(w->lost);
}

/* ---- One entry ----------------------------------------------------------- */

/* Entries of nobody in particular, of the agent itself, or of one above it ("a" is above "a.b"). */
static bool agent_sees(sheaf_str agent, sheaf_str owner)
{
	if (owner.len == 0 || str_eq(agent, owner))
		return true;
	return agent.len > owner.len && agent.ptr[owner.len] == '.' &&
	       memcmp(agent.ptr, owner.ptr, owner.len) == 0;
}

static int is_visible(walk *w, const record *r, bool *out)
{
	*out = true;
	if (w->agent.ptr == NULL)
		return 0;
	sheaf_str value = members_find(r->body, "agent");
	if (value.len < 2 || value.ptr[0] != '"')
		return 0;
	if (memchr(value.ptr, '\\', value.len) == NULL) {
		*out = agent_sees(w->agent, str_make(value.ptr + 1, value.len - 2));
		return 0;
	}
	int rc = json_parse(&w->doc, value, w->err);
	if (rc == 0)
		*out = agent_sees(w->agent, json_string(json_root(w->doc)));
	return rc;
}

static int lost_add(walk *w, uint64_t seq)
{
	void *grown = w->lost;
	if (mem_grow(&grown, &w->lost_room, w->lost_count + 1, sizeof(*w->lost)) != 0)
		return err_nomem(w->err);
	w->lost = grown;
	w->lost[w->lost_count++] = (lost){seq, w->last_seq};
	return 0;
}

/* Reads a record into the arena; NULL for one whose payload cannot be read, which is then lost. */
static int entry_take(walk *w, const sheaf_row *row, const record *r, const sheaf_entry **out)
{
	*out = NULL;
	if (r->line.len > w->bytes_max - w->bytes) {
		(void)err_set(w->err, SHEAF_TOO_LARGE, "the context is larger than %zu bytes",
		              w->bytes_max);
		err_hint(w->err, "compact the session (sheaf_session_append_compaction), "
		                 "or allow more with bytes_max");
		return SHEAF_TOO_LARGE;
	}
	sheaf_entry *entry = arena_zalloc(w->arena, sizeof(*entry));
	if (entry == NULL)
		return err_nomem(w->err);
	int rc = entry_read(entry, r, row->parent, true, w->arena, &w->doc, w->err);
	if (rc == SHEAF_NOMEM)
		return rc;
	if (rc != 0) {
		w->err->code = 0;
		return lost_add(w, row->seq);
	}
	entry->seq = row->seq;
	w->bytes += r->line.len;
	*out = entry;
	return 0;
}

static int entry_collect(walk *w, const sheaf_row *row, const record *r)
{
	const sheaf_entry *entry;
	int rc = entry_take(w, row, r, &entry);
	if (rc != 0 || entry == NULL)
		return rc;
	void *entries = w->entries;
	if (mem_grow(&entries, &w->room, w->count + 1, sizeof(*w->entries)) != 0)
		return err_nomem(w->err);
	w->entries = entries;
	w->entries[w->count++] = entry;
	return 0;
}

/* Takes what is not known yet, in memory that outlives the walk. */
static int settings_keep(walk *w, const sheaf_entry *entry)
{
	settings *known = &w->scan->settings, s = *known;
	int ok = 1;
	settings_take(&s, entry);
	if (s.provider.ptr != known->provider.ptr)
		known->provider = arena_dup(w->arena, s.provider, &ok);
	if (s.model.ptr != known->model.ptr)
		known->model = arena_dup(w->arena, s.model, &ok);
	if (s.thinking_level.ptr != known->thinking_level.ptr)
		known->thinking_level = arena_dup(w->arena, s.thinking_level, &ok);
	return ok ? 0 : err_nomem(w->err);
}

/* Shows an entry to whoever scans, and forgets it. */
static int entry_show(walk *w, const sheaf_row *row, const record *r)
{
	const sheaf_item *item = NULL;
	sheaf_entry entry;
	arena_clear(w->brief);
	int rc = entry_look(&entry, r, row->parent, w->brief, &w->doc, w->err);
	entry.seq = row->seq;
	if (rc == 0)
		rc = item_of_entry(&item, &entry, w->brief, &w->doc, w->err);
	if (rc != 0 && rc != SHEAF_NOMEM) {
		w->err->code = 0;
		return lost_add(w, row->seq);
	}
	if (rc == 0)
		rc = settings_keep(w, &entry);
	return rc != 0 ? rc
	               : w->scan->take(w->scan->ctx, &entry, item, w->compaction != NULL, w->err);
}

/* The compaction that decides: what it keeps says how the walk goes on. */
static int walk_decide(walk *w, const sheaf_row *row, const record *r)
{
	const sheaf_entry *entry;
	int rc = entry_take(w, row, r, &entry);
	if (rc != 0 || entry == NULL)
		return rc;
	rc = compaction_read(&w->info, entry, w->arena, &w->doc, w->err);
	if (rc != 0)
		return rc;
	w->compaction = entry;
	w->after = w->count;
	if (w->scan != NULL)
		settings_fill(&w->scan->settings, &w->info.settings);
	if (compaction_ends_walk(&w->info)) {
		w->phase = PHASE_DONE;
		return 1;
	}
	if (!w->info.chooses) {
		w->phase = PHASE_BLIND;
		w->blind_left = BLIND_ENTRIES;
		return 0;
	}
	for (size_t i = 0; i < w->info.kept_count; i++) {
		if (map_set(&w->chosen, w->info.kept_ids[i], i) != 0)
			return err_nomem(w->err);
	}
	w->phase = PHASE_CHOSEN;
	w->chosen_left = w->chosen.count;
	return 0;
}

/* Whether the walk ends before this entry. */
static bool walk_ends_before(walk *w, const sheaf_row *row, const record *r)
{
	switch (w->phase) {
	case PHASE_BLIND:
		/* A budget overrun may be the fault of going too far: ask first. */
		w->paused = w->blind_left == 0 || r->line.len > w->bytes_max - w->bytes;
		return w->paused;
	case PHASE_FACT:
		if (row->seq > w->kept_seq)
			return false;
		w->phase = PHASE_DONE;
		return true;
	case PHASE_ENTRY:
		if (row->seq < w->kept_seq)
			w->phase = PHASE_ALL;
		return false;
	default:
		return false;
	}
}

/* Whether this entry is the last one wanted. */
static bool walk_ends_with(walk *w, const sheaf_row *row, const record *r)
{
	if (w->phase == PHASE_BLIND) {
		w->blind_left--;
		return str_eq(r->id, w->info.first_kept);
	}
	return (w->phase == PHASE_ENTRY && row->seq == w->kept_seq) ||
	       (w->phase == PHASE_CHOSEN && w->chosen_left == 0);
}

static int walk_step(void *ctx, const sheaf_row *row, const record *r)
{
	walk *w = ctx;
	if (w->resumed && row->seq == w->last_seq)
		return 0;
	if (walk_ends_before(w, row, r))
		return 1;
	w->last_seq = row->seq;

	bool wanted;
	int rc = is_visible(w, r, &wanted);
	if (rc != 0)
		return rc;
	if (w->phase == PHASE_TAIL && wanted && row->kind == SHEAF_KIND_COMPACTION) {
		bool ignored = w->without_all || row->seq == w->without_seq;
		return ignored ? 0 : walk_decide(w, row, r);
	}
	if (w->phase == PHASE_CHOSEN) {
		bool chosen = map_remove(&w->chosen, r->id);
		w->chosen_left -= chosen;
		wanted = wanted && chosen;
	}
	if (wanted && w->scan != NULL)
		rc = entry_show(w, row, r);
	else if (wanted && item_possible(row, r))
		rc = entry_collect(w, row, r);
	if (rc != 0)
		return rc;
	if (!walk_ends_with(w, row, r))
		return 0;
	w->phase = PHASE_DONE;
	return 1;
}

static int walk_damage(void *ctx, uint64_t seq)
{
	return lost_add(ctx, seq);
}

/* ---- The walk ------------------------------------------------------------ */

/* Takes back what was met beyond the first kept entry. */
static void walk_cut(walk *w, uint64_t first)
{
	if (w->scan != NULL)
		w->scan->forget(w->scan->ctx, first);
	while (w->count > w->after && w->entries[w->count - 1]->seq < first)
		w->bytes -= w->entries[--w->count]->line.len;
	while (w->lost_count > 0) {
		const lost *l = &w->lost[w->lost_count - 1];
		if (l->below >= first && (l->seq == 0 || l->seq >= first))
			break;
		w->lost_count--;
	}
}

/* One walk; what a callback has to say about a failure is better than what the store says. */
static int walk_path(walk *w, uint64_t from)
{
	sheaf_error theirs;
	w->err->code = 0;
	int rc = read_path(w->session, w->head, from, walk_step, walk_damage, w, &theirs);
	if (rc != 0 && w->err->code != rc)
		*w->err = theirs;
	return rc;
}

/* Finds out where the first kept entry is; true if the walk must go on. */
static int walk_locate(walk *w, bool *go_on)
{
	kept_place place;
	int rc = kept_locate(w->session, w->head, w->info.first_kept, w->compaction->seq, &place,
	                     w->err);
	if (rc != 0)
		return rc;
	*go_on = w->paused;
	w->kept_seq = place.seq;
	if (!place.found || (!place.fact && place.seq >= w->last_seq)) {
		w->phase = PHASE_ALL;
	} else if (!place.fact) {
		w->phase = PHASE_ENTRY;
	} else if (w->last_seq > place.seq) {
		w->phase = PHASE_FACT;
	} else {
		walk_cut(w, place.seq);
		w->phase = PHASE_DONE;
		*go_on = false;
	}
	return 0;
}

/* What was lost between the last entry met and the pause will be lost again. */
static void walk_forget_pause(walk *w)
{
	while (w->lost_count > 0) {
		const lost *l = &w->lost[w->lost_count - 1];
		if (l->below != w->last_seq || l->seq == w->last_seq)
			break;
		w->lost_count--;
	}
}

static int walk_run(walk *w, uint64_t leaf_seq)
{
	int rc = walk_path(w, leaf_seq);
	if (rc != 0)
		return rc;
	if (w->phase == PHASE_BLIND) {
		bool go_on;
		rc = walk_locate(w, &go_on);
		if (rc != 0)
			return rc;
		if (go_on) {
			walk_forget_pause(w);
			w->resumed = true;
			rc = walk_path(w, w->last_seq);
		}
		if (rc != 0)
			return rc;
	}
	w->all_kept = w->phase == PHASE_ALL || w->phase == PHASE_ENTRY;
	return 0;
}

/*
 * Damage ends in failure unless the caller allows it. A record that a repair
 * has replaced is not damage any more: the loss was accepted then.
 */
static int check_lost(walk *w, bool allow)
{
	for (size_t i = 0; !allow && i < w->lost_count; i++) {
		int32_t kind;
		int rc = row_kind(w->session, w->head, w->lost[i].seq, &kind, w->err);
		if (rc != 0 && rc != SHEAF_NOT_FOUND)
			return rc;
		if (rc == 0 && kind == SHEAF_KIND_LOST)
			continue;
		if (w->lost[i].seq != 0)
			(void)err_set(w->err, SHEAF_DAMAGED, "record %llu cannot be read",
			              (unsigned long long)w->lost[i].seq);
		else
			(void)err_set(w->err, SHEAF_DAMAGED,
			              "record %llu hangs on none that is there",
			              (unsigned long long)w->lost[i].below);
		err_hint(w->err, "read around it with allow_damage, or repair the session");
		return SHEAF_DAMAGED;
	}
	return 0;
}

/* ---- From entries to a context ------------------------------------------- */

typedef struct list {
	const sheaf_item **items;
	size_t count, room;
} list;

static void list_free(list *l)
{
	mem_free(l->items);
}

static int list_add(list *l, const sheaf_item *item, sheaf_error *err)
{
	void *items = l->items;
	if (item == NULL || mem_grow(&items, &l->room, l->count + 1, sizeof(*l->items)) != 0)
		return err_nomem(err);
	l->items = items;
	l->items[l->count++] = item;
	return 0;
}

static int list_add_compaction(list *l, walk *w)
{
	const sheaf_entry *c = w->compaction;
	int rc = 0;
	if (c->text.len != 0)
		rc = list_add(l,
		              item_of_text(SHEAF_ITEM_COMPACTION_SUMMARY,
		                           SHEAF_STR(SHEAF_ROLE_COMPACTION_SUMMARY), c->text, c,
		                           w->arena),
		              w->err);
	for (size_t at = 0; rc == 0;) {
		const sheaf_message_view *message;
		rc = replacement_next(&w->info, &at, &message, w->arena, &w->doc, w->err);
		if (rc == 0)
			return 0;
		if (rc == SHEAF_DAMAGED)
			rc = lost_add(w, c->seq);
		else if (rc > 0)
			rc = list_add(l, item_of_message(message, c, w->arena), w->err);
	}
	return rc;
}

static int list_make(list *l, walk *w)
{
	int rc = w->compaction != NULL ? list_add_compaction(l, w) : 0;
	for (size_t i = w->count; rc == 0 && i-- > 0;) {
		const sheaf_item *item;
		rc = item_of_entry(&item, w->entries[i], w->arena, &w->doc, w->err);
		if (rc == SHEAF_DAMAGED)
			rc = lost_add(w, w->entries[i]->seq);
		else if (rc == 0 && item != NULL)
			rc = list_add(l, item, w->err);
	}
	return rc;
}

/* Whether an item is the rest of the reply that the item before it is, or begins. */
static bool goes_on(const list *l, size_t i)
{
	const sheaf_item *item = l->items[i], *before = l->items[i - 1];
	return item->kind == SHEAF_ITEM_MESSAGE && before->kind == SHEAF_ITEM_MESSAGE &&
	       str_is(item->message->role, SHEAF_ROLE_ASSISTANT) &&
	       str_is(before->message->role, SHEAF_ROLE_ASSISTANT) &&
	       item->entry->kind == SHEAF_KIND_MESSAGE &&
	       str_is(members_find(item->entry->body, "continues"), "true");
}

static int list_join(list *l, walk *w)
{
	size_t kept = 0, next;
	for (size_t i = 0; i < l->count; i = next) {
		for (next = i + 1; next < l->count && goes_on(l, next);)
			next++;
		const sheaf_item *item = next == i + 1
		                                 ? l->items[i]
		                                 : item_joined(&l->items[i], next - i, w->arena);
		if (item == NULL)
			return err_nomem(w->err);
		l->items[kept++] = item;
	}
	l->count = kept;
	return 0;
}

static settings settings_find(const walk *w)
{
	settings found = {0};
	for (size_t i = 0; i < w->count; i++) {
		if (i == w->after && w->compaction != NULL)
			settings_fill(&found, &w->info.settings);
		settings_take(&found, w->entries[i]);
	}
	if (w->compaction != NULL)
		settings_fill(&found, &w->info.settings);
	return found;
}

/* The notes of the walk, then those of the mending. */
static int notes_make(sheaf_context *c, const walk *w, const mended *m)
{
	size_t room = w->lost_count + w->all_kept + w->chosen_left + m->note_count;
	const sheaf_note **notes = arena_alloc(w->arena, (room + 1) * sizeof(*notes));
	sheaf_note *made = arena_zalloc(w->arena, (room + 1) * sizeof(*made));
	if (notes == NULL || made == NULL)
		return err_nomem(w->err);
	size_t n = 0;
	for (size_t i = w->lost_count; i-- > 0; n++) {
		made[n].what = SHEAF_NOTE_DAMAGE;
		made[n].seq = w->lost[i].seq;
	}
	if (w->all_kept) {
		made[n].what = SHEAF_NOTE_FIRST_KEPT;
		made[n].detail = w->info.first_kept;
		n++;
	}
	/* In the order of the record, not of the map. */
	for (size_t i = 0; w->chosen_left > 0 && i < w->info.kept_count; i++) {
		uint64_t at;
		if (!map_get(&w->chosen, w->info.kept_ids[i], &at) || at != i)
			continue;
		made[n].what = SHEAF_NOTE_FIRST_KEPT;
		made[n].detail = w->info.kept_ids[i];
		n++;
	}
	for (size_t i = 0; i < n; i++) {
		notes[i] = &made[i];
		if (made[i].what == SHEAF_NOTE_FIRST_KEPT) {
			made[i].seq = w->compaction->seq;
			made[i].entry_id = w->compaction->id;
		}
	}
	for (size_t i = 0; i < m->note_count; i++)
		notes[n++] = m->notes[i];
	c->notes = notes;
	c->note_count = n;
	return 0;
}

static int hashes_make(result *r, sheaf_error *err)
{
	uint64_t *hashes = arena_alloc(r->arena, (r->context.count + 1) * sizeof(*hashes));
	if (hashes == NULL)
		return err_nomem(err);
	hashes[0] = ITEM_HASH_START;
	for (size_t i = 0; i < r->context.count; i++)
		hashes[i + 1] = item_hash(hashes[i], r->context.items[i]);
	r->hashes = hashes;
	r->context.prefix_hash = hashes[r->context.count];
	return 0;
}

static int result_make(result *r, walk *w, const sheaf_context_options *options)
{
	_cleanup_(list_free) list l = {0};
	sheaf_context *c = &r->context;
	mended m;
	int rc = list_make(&l, w);
	if (rc == 0)
		rc = check_lost(w, OPTION(options, allow_damage, 0) != 0);
	if (rc == 0)
		rc = list_join(&l, w);
	if (rc == 0)
		rc = mend_items(&m, l.items, l.count, OPTION(options, provider, ((sheaf_str){0})),
		                OPTION(options, model, ((sheaf_str){0})), w->arena, w->err);
	if (rc != 0)
		return rc;
	c->items = m.items;
	c->count = m.count;
	c->revision = sheaf_head_revision(w->head);
	c->compaction = w->compaction;
	c->bytes = w->bytes;
	settings found = settings_find(w);
	c->provider = found.provider;
	c->model = found.model;
	c->thinking_level = found.thinking_level;
	rc = notes_make(c, w, &m);
	return rc != 0 ? rc : hashes_make(r, w->err);
}

/* ---- One by one ---------------------------------------------------------- */

int context_scan_run(context_scan *scan, sheaf_session *session, const sheaf_head *head,
                     uint64_t leaf_seq, uint64_t without_seq, arena *a, sheaf_error *err)
{
	_cleanup_(list_free) list l = {0};
	_cleanup_(walk_free) walk w = {
		.session = session,
		.head = head,
		.err = err,
		.arena = a,
		.without_seq = without_seq,
		.scan = scan,
		.brief = arena_new(),
		.bytes_max = SIZE_MAX,
		.phase = PHASE_TAIL,
		.chosen = MAP_INIT,
	};
	int rc = w.brief != NULL ? 0 : err_nomem(err);
	if (rc == 0 && leaf_seq != 0)
		rc = walk_run(&w, leaf_seq);
	if (rc == 0 && w.compaction != NULL)
		rc = list_add_compaction(&l, &w);
	if (rc == 0)
		rc = check_lost(&w, false);
	const sheaf_item **given = arena_alloc(a, (l.count + 1) * sizeof(*given));
	if (rc == 0 && given == NULL)
		rc = err_nomem(err);
	if (rc != 0)
		return rc;
	if (l.count != 0)
		memcpy(given, l.items, l.count * sizeof(*given));
	scan->given = given;
	scan->given_count = l.count;
	scan->compaction = w.compaction;
	scan->info = w.info;
	return 0;
}

/* ---- The calls ----------------------------------------------------------- */

/* The leaf asked for: 0 before the first entry. */
static int find_leaf(result *r, const walk *w, const sheaf_context_options *options,
                     uint64_t *leaf_seq)
{
	sheaf_str leaf = OPTION(options, leaf, ((sheaf_str){0}));
	sheaf_str name = OPTION(options, branch, ((sheaf_str){0}));
	char id[SHEAF_ID_ROOM];
	head_branch branch;
	*leaf_seq = 0;
	if (leaf.ptr != NULL) {
		if (leaf.len == 0)
			return 0;
		int rc = read_resolve(w->session, w->head, leaf, id, leaf_seq, w->err);
		if (rc != 0)
			return rc;
		leaf = sheaf_str_of(id);
	} else {
		if (!head_branch_find(w->head, name, &branch))
			return err_set(w->err, SHEAF_NOT_FOUND, "there is no such branch");
		if (branch.leaf.len == 0)
			return 0;
		leaf = branch.leaf;
		*leaf_seq = branch.leaf_seq;
	}
	int ok = 1;
	r->context.leaf = arena_dup(w->arena, leaf, &ok);
	return ok ? 0 : err_nomem(w->err);
}

static int find_without(walk *w, sheaf_str without)
{
	char id[SHEAF_ID_ROOM];
	int32_t kind;
	if (without.len == 0)
		return 0;
	int rc = read_resolve(w->session, w->head, without, id, &w->without_seq, w->err);
	if (rc == 0)
		rc = row_kind(w->session, w->head, w->without_seq, &kind, w->err);
	if (rc != 0)
		return rc;
	if (kind != SHEAF_KIND_COMPACTION)
		return err_set(w->err, SHEAF_NOT_FOUND, "the entry to do without is no compaction");
	return 0;
}

static int context_build(result *r, sheaf_session *session, const sheaf_context_options *options,
                         sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	uint64_t leaf_seq;
	int rc = session_head(session, &head, NULL, err);
	if (rc != 0)
		return rc;
	size_t bytes_max = OPTION(options, bytes_max, (size_t)0);
	_cleanup_(walk_free) walk w = {
		.session = session,
		.head = head,
		.err = err,
		.arena = r->arena,
		.agent = OPTION(options, agent, ((sheaf_str){0})),
		.without_all = OPTION(options, without_compaction, 0) != 0,
		.bytes_max = bytes_max != 0 ? bytes_max : SHEAF_CONTEXT_BYTES_DEFAULT,
		.phase = PHASE_TAIL,
		.chosen = MAP_INIT,
	};
	rc = find_leaf(r, &w, options, &leaf_seq);
	if (rc == 0)
		rc = find_without(&w, OPTION(options, without, ((sheaf_str){0})));
	if (rc == 0 && leaf_seq != 0)
		rc = walk_run(&w, leaf_seq);
	return rc == 0 ? result_make(r, &w, options) : rc;
}

int sheaf_session_context(sheaf_context **out, sheaf_session *session,
                          const sheaf_context_options *options, sheaf_error *err)
{
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID,
		               "a context needs a session and a place to put it");
	_cleanup_(arena_freep) arena *a = arena_new();
	result *r = a != NULL ? arena_zalloc(a, sizeof(*r)) : NULL;
	if (r == NULL)
		return err_nomem(err);
	r->arena = a;
	/* Some failures on the way are answers; the caller's struct is for the last word only. */
	sheaf_error mine = {0};
	int rc = context_build(r, session, options, &mine);
	if (rc != 0) {
		if (err != NULL)
			*err = mine;
		return rc;
	}
	a = NULL;
	*out = &r->context;
	return 0;
}

void sheaf_context_free(const sheaf_context *context)
{
	if (context != NULL)
		arena_free(((const result *)(const void *)context)->arena);
}

uint64_t sheaf_context_prefix(const sheaf_context *context, size_t count)
{
	/* 0 is no hash: what is longer than the context is no prefix of it. */
	if (context == NULL || count > context->count)
		return 0;
	return ((const result *)(const void *)context)->hashes[count];
}
