/* What a page must know of every entry before it writes the first: the tree, the path, the calls. */
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "html_inside.h"

#define PREVIEW_BYTES 120u
#define PAGE_BYTES (4u << 20) /* about as much as is read at a time */
#define PAGE_LIMIT 16u
#define SUBAGENTS_MAX 1000u
#define ANSWERS_MAX 256u /* in one entry; with more of them it stands for itself */
#define ANSWER_STEPS 64u /* how far above its answer a call may stand */

void html_index_free(html_index *x)
{
	map_free(&x->calls);
	map_free(&x->ids);
	mem_free(x->nodes);
	arena_free(x->memory);
}

uint32_t html_index_of(const html_index *x, uint64_t seq)
{
	size_t low = 0, high = x->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (x->nodes[middle].seq < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low < x->count && x->nodes[low].seq == seq ? (uint32_t)low : NONE;
}

/* ---- Reading ------------------------------------------------------------------ */

int html_read(html_page *p, html_reader *r, uint64_t kinds, sheaf_records **out)
{
	sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
	size_t bytes = 0;
	how.from_seq = r->from;
	how.limit = r->limit;
	how.kinds = kinds;
	int rc = sheaf_session_records(out, p->session, &how, &p->c->err);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < (*out)->count; i++)
		bytes += (*out)->items[i]->line.len;
	if (bytes > PAGE_BYTES)
		r->limit = r->limit > 2 ? r->limit / 2 : 1;
	else if (bytes < PAGE_BYTES / 4 && r->limit < PAGE_LIMIT)
		r->limit *= 2;
	r->from = (*out)->next_seq;
	r->done = r->from == 0;
	return 0;
}

/* ---- One entry ------------------------------------------------------------------ */

static uint8_t look_of_role(const sheaf_message_view *m)
{
	bool answers = m->part_count != 0;
	for (size_t i = 0; i < m->part_count; i++)
		answers = answers && m->parts[i]->kind == SHEAF_PART_TOOL_RESULT;
	if (answers || str_is(m->role, SHEAF_ROLE_TOOL) || str_is(m->role, SHEAF_ROLE_BASH))
		return LOOK_TOOL;
	if (str_is(m->role, SHEAF_ROLE_USER))
		return LOOK_USER;
	if (str_is(m->role, SHEAF_ROLE_ASSISTANT))
		return LOOK_ASSISTANT;
	if (str_is(m->role, SHEAF_ROLE_SYSTEM) || str_is(m->role, SHEAF_ROLE_DEVELOPER))
		return LOOK_SYSTEM;
	return str_is(m->role, SHEAF_ROLE_CUSTOM) ? LOOK_CUSTOM : LOOK_SUMMARY;
}

static uint8_t look_of(const sheaf_entry *e)
{
	if (e->damaged)
		return LOOK_DAMAGED;
	switch (e->kind) {
	case SHEAF_KIND_MESSAGE:
		return e->message != NULL ? look_of_role(e->message) : LOOK_DAMAGED;
	case SHEAF_KIND_MODEL_CHANGE:
	case SHEAF_KIND_THINKING_LEVEL:
		return LOOK_SETTING;
	case SHEAF_KIND_COMPACTION:
		return LOOK_COMPACTION;
	case SHEAF_KIND_BRANCH_SUMMARY:
		return LOOK_SUMMARY;
	default:
		return LOOK_CUSTOM;
	}
}

/* The first of these a call has says what it is about. */
static const char *const main_arguments[] = {
	"command", "cmd",   "file_path", "filePath",    "path",        "notebook_path",
	"pattern", "query", "url",       "description", "instruction", "prompt",
};

/* A command may be a list of words: the last is what bash -c runs, mostly. */
static sheaf_str argument(const json_val *v)
{
	if (json_type_of(v) != JSON_ARRAY)
		return json_string(v);
	sheaf_str last = {NULL, 0};
	for (json_iter it = json_each(v); json_next(&it);)
		last = json_string(it.value);
	return last;
}

void html_brief(buf *out, const sheaf_part *part)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	if (json_parse(&doc, part->input, NULL) == 0 &&
	    json_type_of(json_root(doc)) == JSON_OBJECT) {
		const json_val *input = json_root(doc);
		for (size_t i = 0; i < COUNT_OF(main_arguments); i++) {
			sheaf_str value = argument(json_get(input, main_arguments[i]));
			if (value.len != 0) {
				html_line(out, value, PREVIEW_BYTES);
				return;
			}
		}
		if (json_count(input) == 0)
			return;
	}
	html_line(out, part->input, PREVIEW_BYTES);
}

/* The beginning of a text without the marks of Markdown that stand in the way of reading it. */
static void preview_text(buf *out, sheaf_str text)
{
	_cleanup_(buf_free) buf bare = BUF_INIT(SIZE_MAX);
	text = html_trim(text);
	sheaf_str cut = utf8_cut(text, PREVIEW_BYTES);
	size_t at = 0;
	while (at < cut.len && (cut.ptr[at] == '#' || cut.ptr[at] == ' ' || cut.ptr[at] == '>'))
		at++;
	for (; at < cut.len; at++) {
		bool strong = cut.ptr[at] == '*' && at + 1 < cut.len && cut.ptr[at + 1] == '*';
		at += strong;
		if (!strong && cut.ptr[at] != '`')
			buf_char(&bare, cut.ptr[at]);
	}
	html_line(out, buf_view(&bare), PREVIEW_BYTES);
	if (cut.len < text.len)
		buf_lit(out, "…");
	if (bare.status != 0 && out->status == 0)
		out->status = bare.status;
}

static void preview_part(buf *out, const sheaf_part *part)
{
	switch (part->kind) {
	case SHEAF_PART_TEXT:
		preview_text(out, part->text);
		break;
	case SHEAF_PART_TOOL_RESULT:
		html_output_line(out, html_trim(part->text), PREVIEW_BYTES);
		break;
	case SHEAF_PART_TOOL_USE:
		html_line(out, part->name, 40);
		buf_char(out, ' ');
		html_brief(out, part);
		break;
	case SHEAF_PART_IMAGE:
		buf_lit(out, "Image");
		break;
	case SHEAF_PART_DOCUMENT:
		buf_lit(out, "Document");
		break;
	case SHEAF_PART_THINKING:
		buf_lit(out, "Thinking");
		break;
	default:
		break;
	}
}

static void preview_message(buf *out, const sheaf_message_view *m)
{
	/* What was said, else what was done, else what was thought. */
	static const int32_t order[] = {SHEAF_PART_TEXT,        SHEAF_PART_TOOL_USE,
	                                SHEAF_PART_TOOL_RESULT, SHEAF_PART_IMAGE,
	                                SHEAF_PART_DOCUMENT,    SHEAF_PART_THINKING};
	size_t begin = out->len;
	for (size_t k = 0; k < COUNT_OF(order); k++) {
		for (size_t i = 0; i < m->part_count && out->len == begin; i++) {
			if (m->parts[i]->kind == order[k])
				preview_part(out, m->parts[i]);
		}
	}
	if (out->len == begin && str_is(m->role, SHEAF_ROLE_BASH)) {
		_cleanup_(json_freep) json_doc *doc = NULL;
		if (json_parse(&doc, m->json, NULL) == 0)
			html_line(out, json_string(json_get(json_root(doc), "command")),
			          PREVIEW_BYTES);
	}
}

static void preview(buf *out, const sheaf_entry *e)
{
	if (e->damaged) {
		buf_lit(out, "Cannot be read");
	} else if (e->message != NULL) {
		preview_message(out, e->message);
	} else if (e->kind == SHEAF_KIND_MODEL_CHANGE) {
		html_line(out, e->model, PREVIEW_BYTES);
	} else {
		html_line(out, e->text.len != 0 ? e->text : e->type, PREVIEW_BYTES);
	}
}

/* ---- Calls and answers ------------------------------------------------------------ */

/* How a sub-agent is told from others: it begins with what it was told. */
static sheaf_str prompt_of(html_index *x, const sheaf_part *part, int *ok)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	if (part->input.len == 0 ||
	    memmem(part->input.ptr, part->input.len, "\"prompt\"", 8) == NULL ||
	    json_parse(&doc, part->input, NULL) != 0)
		return (sheaf_str){NULL, 0};
	sheaf_str prompt = html_trim(json_string(json_get(json_root(doc), "prompt")));
	return arena_dup(x->memory, utf8_cut(prompt, PREVIEW_BYTES), ok);
}

static int note_call(html_index *x, const sheaf_part *part, uint32_t at, buf *room)
{
	html_call *call = map_get_ptr(&x->calls, part->id);
	int ok = 1;
	if (call != NULL) {
		call->again = true;
		return 0;
	}
	call = arena_zalloc(x->memory, sizeof(*call));
	if (call == NULL)
		return SHEAF_NOMEM;
	buf_reset(room);
	html_brief(room, part);
	*call = (html_call){.node = at, .answer = NONE};
	call->prompt = prompt_of(x, part, &ok);
	call->name = arena_dup(x->memory, part->name, &ok);
	call->brief = arena_dup(x->memory, buf_view(room), &ok);
	sheaf_str id = arena_dup(x->memory, part->id, &ok);
	return !ok || room->status != 0 ? SHEAF_NOMEM : map_set_ptr(&x->calls, id, call);
}

/* Whether `above` is above `at` with nothing but the same reply and its answers between. */
static bool belongs(const html_index *x, uint32_t at, uint32_t above)
{
	for (size_t steps = 0; steps < ANSWER_STEPS && at != NONE; steps++) {
		const html_node *n = &x->nodes[at];
		if (at == above)
			return true;
		if (n->look != LOOK_TOOL && n->look != LOOK_ASSISTANT && n->look != LOOK_SETTING &&
		    n->look != LOOK_CUSTOM)
			return false;
		at = n->parent;
	}
	return false;
}

/* An entry of answers alone is shown with the calls it answers, if each of them has no other. */
static void note_answers(html_index *x, const sheaf_message_view *m, uint32_t at)
{
	bool all = m->part_count != 0 && m->part_count <= ANSWERS_MAX;
	for (size_t i = 0; i < m->part_count; i++) {
		const sheaf_part *part = m->parts[i];
		html_call *call = part->kind == SHEAF_PART_TOOL_RESULT
		                          ? map_get_ptr(&x->calls, part->tool_use_id)
		                          : NULL;
		all = all && call != NULL && !call->again && call->answer == NONE &&
		      belongs(x, at, call->node);
		if (call != NULL && call->answer != NONE)
			call->again = true;
		else if (call != NULL)
			call->answer = at;
	}
	if (all) {
		const html_call *call = map_get_ptr(&x->calls, m->parts[0]->tool_use_id);
		x->nodes[at].shown = call->node;
	}
}

static int note_message(html_index *x, const sheaf_message_view *m, uint32_t at, buf *room)
{
	int rc = 0;
	for (size_t i = 0; i < m->part_count && rc == 0; i++) {
		if (m->parts[i]->kind == SHEAF_PART_TOOL_USE)
			rc = note_call(x, m->parts[i], at, room);
	}
	if (rc == 0 && x->nodes[at].look == LOOK_TOOL)
		note_answers(x, m, at);
	return rc;
}

/* ---- The tree ---------------------------------------------------------------------- */

/* Where an entry hangs. What cannot be read, or whose parent is lost, hangs on what stands before
 * it, so that the rest stays readable. */
static uint32_t parent_of(const html_index *x, const sheaf_entry *e, uint32_t at)
{
	uint32_t before = at > 0 ? at - 1 : NONE;
	if (e->damaged)
		return before;
	if (e->parent_seq != 0) {
		uint32_t parent = html_index_of(x, e->parent_seq);
		return parent != NONE ? parent : before;
	}
	return e->parent_id.len != 0 ? before : NONE;
}

static int note_entry(html_index *x, const sheaf_entry *e, buf *room)
{
	int ok = 1;
	uint32_t at = (uint32_t)x->count;
	if (x->count >= NONE ||
	    mem_grow((void **)&x->nodes, &x->room, x->count + 1, sizeof(*x->nodes)) != 0)
		return SHEAF_NOMEM;
	uint32_t parent = parent_of(x, e, at);
	html_node *n = &x->nodes[x->count++];
	*n = (html_node){.seq = e->seq, .parent = parent};
	n->first = n->last = n->next = n->heir = n->shown = NONE;
	n->look = look_of(e);
	buf_reset(room);
	preview(room, e);
	n->preview = arena_dup(x->memory, buf_view(room), &ok);
	n->id = arena_dup(x->memory, e->id, &ok);
	if (e->message != NULL)
		n->model = arena_dup(x->memory, e->message->model, &ok);
	if (!ok || room->status != 0)
		return SHEAF_NOMEM;
	if (n->id.len != 0 && map_set(&x->ids, n->id, at) != 0)
		return SHEAF_NOMEM;
	if (parent != NONE) {
		html_node *above = &x->nodes[parent];
		if (above->first == NONE)
			above->first = at;
		else
			x->nodes[above->last].next = at;
		above->last = at;
	}
	if (e->turn.len != 0 && !map_get(&x->ids, e->turn, &(uint64_t){0})) {
		sheaf_str turn = arena_dup(x->memory, e->turn, &ok);
		if (!ok || map_set(&x->ids, turn, at) != 0)
			return SHEAF_NOMEM;
	}
	return e->message != NULL ? note_message(x, e->message, at, room) : 0;
}

static uint64_t leaf_seq(const html_page *p, const place *at)
{
	uint64_t index;
	if (at->leaf.len != 0 && map_get(&p->index.ids, at->leaf, &index))
		return p->index.nodes[index].seq;
	for (size_t i = 0; i < p->head->branch_count; i++) {
		const sheaf_branch_info *b = p->head->branches[i];
		if (at->branch.len != 0 ? str_eq(b->name, at->branch) : i == 0)
			return b->leaf_seq;
	}
	return 0;
}

/* The path, and which child goes on: the one on it, else the one that was written to last. */
static int find_paths(html_index *x, uint64_t leaf)
{
	uint32_t at = html_index_of(x, leaf);
	uint64_t *newest = mem_alloc((x->count + 1) * sizeof(*newest));
	if (newest == NULL)
		return SHEAF_NOMEM;
	for (; at != NONE; at = x->nodes[at].parent)
		x->nodes[at].on_path = true;
	for (size_t i = 0; i < x->count; i++)
		newest[i] = x->nodes[i].seq;
	for (size_t i = x->count; i-- > 0;) {
		html_node *n = &x->nodes[i];
		x->others = x->others || !n->on_path;
		if (n->parent == NONE)
			continue;
		html_node *above = &x->nodes[n->parent];
		if (newest[i] > newest[n->parent])
			newest[n->parent] = newest[i];
		if (above->heir == NONE || n->on_path ||
		    (!x->nodes[above->heir].on_path && newest[i] > newest[above->heir]))
			above->heir = (uint32_t)i;
	}
	mem_free(newest);
	return 0;
}

/* A reply in several entries, with its tools between them, is one speech. */
static void find_speeches(html_index *x)
{
	for (size_t i = 0; i < x->count; i++) {
		html_node *n = &x->nodes[i];
		uint32_t above = n->parent;
		if (n->shown != NONE && x->nodes[n->shown].look != LOOK_ASSISTANT)
			n->shown = NONE;
		while (above != NONE && x->nodes[above].shown != NONE)
			above = x->nodes[above].parent;
		n->goes_on = n->look == LOOK_ASSISTANT && above != NONE &&
		             x->nodes[above].look == LOOK_ASSISTANT &&
		             str_eq(x->nodes[above].model, n->model);
	}
}

/* ---- Beside the entries -------------------------------------------------------------- */

static int note_labels(html_page *p)
{
	_cleanup_(records_freep) sheaf_records *labels = NULL;
	int ok = 1, rc = sheaf_session_labels(&labels, p->session, &p->c->err);
	for (size_t i = 0; rc == 0 && i < labels->count; i++) {
		uint32_t at = html_index_of(&p->index, labels->items[i]->seq);
		if (at != NONE)
			p->index.nodes[at].label = arena_dup(p->index.memory,
			                                     labels->items[i]->label, &ok);
	}
	return rc != 0 ? rc : ok ? 0 : SHEAF_NOMEM;
}

/* The sub-agents of a session, by the calls that began them. */
static int note_subagents(html_page *p)
{
	sheaf_list_options which = SHEAF_LIST_OPTIONS_INIT;
	sheaf_key key = sheaf_session_key(p->session);
	int ok = 1;
	which.app = key.app;
	which.user = key.user;
	which.kind = SHEAF_STR("subagent");
	which.parent_session = key.session;
	which.limit = SUBAGENTS_MAX;
	int rc = sheaf_store_list(&p->subagents, sheaf_session_store(p->session), &which,
	                          &p->c->err);
	if (rc != 0)
		return rc;
	const map_slot *slot;
	for (size_t at = 0; (slot = map_each(&p->index.calls, &at)) != NULL;) {
		html_call *call = (html_call *)(uintptr_t)slot->value;
		for (size_t i = 0; call->prompt.len != 0 && i < p->subagents->count; i++) {
			const sheaf_session_info *info = p->subagents->items[i];
			size_t len = info->preview.len < call->prompt.len ? info->preview.len
			                                                  : call->prompt.len;
			if (len != 0 && memcmp(info->preview.ptr, call->prompt.ptr, len) == 0)
				call->subagent = arena_dup(p->index.memory, info->session, &ok);
		}
	}
	return ok ? 0 : SHEAF_NOMEM;
}

int html_index_read(html_page *p, const place *at)
{
	html_reader r = HTML_READER_INIT;
	_cleanup_(buf_free) buf room = BUF_INIT(SIZE_MAX);
	int rc = 0;
	if ((p->index.memory = arena_new()) == NULL)
		return SHEAF_NOMEM;
	while (rc == 0 && !r.done) {
		_cleanup_(records_freep) sheaf_records *page = NULL;
		rc = html_read(p, &r, SHEAF_KINDS_ENTRIES, &page);
		for (size_t i = 0; rc == 0 && i < page->count; i++)
			rc = note_entry(&p->index, page->items[i], &room);
	}
	if (rc == 0)
		rc = note_labels(p);
	if (rc == 0)
		rc = note_subagents(p);
	if (rc == 0)
		rc = find_paths(&p->index, p->index.leaf = leaf_seq(p, at));
	if (rc == 0)
		find_speeches(&p->index);
	return rc;
}
