/*
 * Answers every tool call exactly once, next to it, and leaves out what a provider would refuse.
 *
 * First every part gets its fate (judge_*): it stays, it goes, or it is the
 * answer to a call. Then the list is written anew (emit_*): each item with what
 * stays of it, behind it the answers to its calls, wherever they came from.
 */
#include "core/mend.h"

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "entry/maker.h"

#define NONE SIZE_MAX

typedef enum fate {
	FATE_STAYS,
	FATE_EMPTY,   /* a text of nothing */
	FATE_FOREIGN, /* signed thinking of another model */
	FATE_ANSWER,  /* goes behind its call */
	FATE_SECOND,  /* its call has an answer already */
	FATE_ORPHAN   /* has no call: becomes user text */
} fate;

typedef struct judged {
	uint8_t fate;
	bool late; /* answer: something else lay between it and its call */
	bool lead; /* answer: stays where it is, the message around it begins with it */
	bool gone; /* answer: already written behind its call */
	bool trim; /* result made of parts: some are texts of nothing */
} judged;

typedef struct call {
	size_t item;
	size_t part;
	size_t below; /* the next open call with the same id, NONE at the end */
	size_t rank;  /* which answer of its message this one is, as they came */
	size_t answer_item;
	size_t answer_part;
} call;

/*
 * The calls with one id. Open ones form a list, the nearest message first and
 * within a message the first call first: an answer takes the head.
 */
typedef struct name {
	size_t open;
	size_t last; /* last open call of the message that was added to last, or NONE */
	size_t last_item;
} name;

typedef struct mender {
	const sheaf_item *const *items;
	size_t count;
	sheaf_str provider;
	sheaf_str model;
	arena *arena;
	size_t *first_part;      /* count + 1: where an item's parts begin in `parts` */
	size_t *first_call;      /* count + 1: where an item's calls begin in `calls` */
	size_t *answered;        /* count: how many of an item's calls have an answer */
	uint64_t *content_after; /* how much content there is up to the end of an item */
	uint64_t content;
	judged *parts;
	call *calls;
	size_t call_count, call_room;
	name *names;
	size_t name_count, name_room;
	map by_id; /* id -> index in names */
	const sheaf_item **out;
	size_t out_count, out_room;
	const sheaf_note **notes;
	size_t note_count, note_room;
} mender;

static void mender_free(mender *m)
{
	mem_free(m->first_part);
	mem_free(m->first_call);
	mem_free(m->answered);
	mem_free(m->content_after);
	mem_free(m->parts);
	mem_free(m->calls);
	mem_free(m->names);
	map_free(&m->by_id);
	mem_free(m->out);
	mem_free(m->notes);
}

static judged *judged_of(const mender *m, size_t item, size_t part)
{
	return &m->parts[m->first_part[item] + part];
}

static const sheaf_part *part_of(const mender *m, size_t item, size_t part)
{
	return m->items[item]->message->parts[part];
}

/* ---- Fates --------------------------------------------------------------- */

static int name_find(mender *m, sheaf_str id, name **out)
{
	uint64_t at;
	if (!map_get(&m->by_id, id, &at)) {
		void *names = m->names;
		int rc = mem_grow(&names, &m->name_room, m->name_count + 1, sizeof(*m->names));
		if (rc != 0)
			return rc;
		m->names = names;
		at = m->name_count;
		rc = map_set(&m->by_id, id, at);
		if (rc != 0)
			return rc;
		m->names[m->name_count++] = (name){NONE, NONE, NONE};
	}
	*out = &m->names[at];
	return 0;
}

static int call_add(mender *m, size_t item, size_t part)
{
	name *n;
	int rc = name_find(m, part_of(m, item, part)->id, &n);
	if (rc != 0)
		return rc;
	void *calls = m->calls;
	rc = mem_grow(&calls, &m->call_room, m->call_count + 1, sizeof(*m->calls));
	if (rc != 0)
		return rc;
	m->calls = calls;
	call *new = &m->calls[m->call_count];
	*new = (call){.item = item, .part = part, .answer_item = NONE, .answer_part = NONE};
	if (n->last != NONE && n->last_item == item) {
		new->below = m->calls[n->last].below;
		m->calls[n->last].below = m->call_count;
	} else {
		new->below = n->open;
		n->open = m->call_count;
	}
	n->last = m->call_count++;
	n->last_item = item;
	return 0;
}

static void judge_answer(mender *m, size_t item, size_t part, judged *j)
{
	uint64_t at;
	if (!map_get(&m->by_id, part_of(m, item, part)->tool_use_id, &at)) {
		j->fate = FATE_ORPHAN;
		return;
	}
	name *n = &m->names[at];
	if (n->open == NONE) {
		j->fate = FATE_SECOND;
		return;
	}
	call *c = &m->calls[n->open];
	c->answer_item = item;
	c->answer_part = part;
	c->rank = m->answered[c->item]++;
	j->fate = FATE_ANSWER;
	j->late = c->item == item || m->content_after[c->item] != m->content;
	if (n->last == n->open)
		n->last = NONE;
	n->open = c->below;
}

static bool has_empty_text(const sheaf_part *result)
{
	for (size_t i = 0; i < result->part_count; i++) {
		if (result->parts[i]->kind == SHEAF_PART_TEXT && result->parts[i]->text.len == 0)
			return true;
	}
	return false;
}

/* A signature only its maker can check; who made an unmarked message is not known: it stays. */
static bool is_foreign(const mender *m, const sheaf_message_view *message, const sheaf_part *part)
{
	if (m->provider.len == 0 || (part->signature.len == 0 && part->redacted == 0))
		return false;
	return !made_by(message, m->provider, m->model);
}

static int judge_part(mender *m, size_t item, size_t part)
{
	const sheaf_part *p = part_of(m, item, part);
	judged *j = judged_of(m, item, part);
	int rc = 0;

	*j = (judged){.fate = FATE_STAYS};
	if (p->kind == SHEAF_PART_TEXT && p->text.len == 0) {
		j->fate = FATE_EMPTY;
	} else if (p->kind == SHEAF_PART_THINKING && is_foreign(m, m->items[item]->message, p)) {
		j->fate = FATE_FOREIGN;
	} else if (p->kind == SHEAF_PART_TOOL_USE) {
		rc = call_add(m, item, part);
	} else if (p->kind == SHEAF_PART_TOOL_RESULT) {
		j->trim = has_empty_text(p);
		judge_answer(m, item, part, j);
	}
	if (j->fate == FATE_STAYS || j->fate == FATE_ORPHAN)
		m->content++;
	return rc;
}

/* A message whose content is not in parts, but in members only its writer knows. */
static bool speaks_without_parts(const sheaf_message_view *message)
{
	for (size_t i = 0; i < message->part_count; i++) {
		if (message->parts[i]->kind != SHEAF_PART_TEXT || message->parts[i]->text.len != 0)
			return false;
	}
	return !str_is(message->role, SHEAF_ROLE_SYSTEM) &&
	       !str_is(message->role, SHEAF_ROLE_DEVELOPER) &&
	       !str_is(message->role, SHEAF_ROLE_USER) &&
	       !str_is(message->role, SHEAF_ROLE_ASSISTANT) &&
	       !str_is(message->role, SHEAF_ROLE_TOOL);
}

static int judge_all(mender *m)
{
	for (size_t i = 0; i < m->count; i++) {
		const sheaf_message_view *message = m->items[i]->message;
		m->first_call[i] = m->call_count;
		for (size_t p = 0; p < message->part_count; p++) {
			int rc = judge_part(m, i, p);
			if (rc != 0)
				return rc;
		}
		if (speaks_without_parts(message))
			m->content++;
		m->content_after[i] = m->content;
	}
	m->first_call[m->count] = m->call_count;
	return 0;
}

/* Puts the calls of each message in the order of their answers; those without one come last. */
static int order_calls(mender *m)
{
	call *calls = mem_alloc((m->call_count + 1) * sizeof(*calls));
	if (calls == NULL)
		return SHEAF_NOMEM;
	for (size_t k = 0; k < m->call_count; k++) {
		const call *c = &m->calls[k];
		size_t rank = c->answer_item != NONE ? c->rank : m->answered[c->item]++;
		calls[m->first_call[c->item] + rank] = *c;
	}
	mem_free(m->calls);
	m->calls = calls;
	return 0;
}

/* ---- Making -------------------------------------------------------------- */

static int note_add(mender *m, int32_t what, size_t item, sheaf_str detail)
{
	void *notes = m->notes;
	int rc = mem_grow(&notes, &m->note_room, m->note_count + 1, sizeof(*m->notes));
	if (rc != 0)
		return rc;
	m->notes = notes;
	sheaf_note *note = arena_zalloc(m->arena, sizeof(*note));
	if (note == NULL)
		return SHEAF_NOMEM;
	const sheaf_entry *entry = m->items[item]->entry;
	note->what = what;
	note->detail = detail;
	if (entry != NULL) {
		note->seq = entry->seq;
		note->entry_id = entry->id;
	}
	m->notes[m->note_count++] = note;
	return 0;
}

static int out_add(mender *m, const sheaf_item *item)
{
	void *out = m->out;
	int rc = mem_grow(&out, &m->out_room, m->out_count + 1, sizeof(*m->out));
	if (rc != 0)
		return rc;
	m->out = out;
	m->out[m->out_count++] = item;
	return 0;
}

/* An item like `source` with another message. */
static int out_add_view(mender *m, const sheaf_item *source, const sheaf_message_view *view)
{
	sheaf_item *item = arena_alloc(m->arena, sizeof(*item));
	if (item == NULL)
		return SHEAF_NOMEM;
	*item = *source;
	item->message = view;
	return out_add(m, item);
}

/* The part as it is sent: a result without the texts of nothing in it. */
static int part_as_sent(mender *m, const sheaf_part *p, bool trim, const sheaf_part **out)
{
	*out = p;
	if (!trim)
		return 0;
	sheaf_part *copy = arena_alloc(m->arena, sizeof(*copy));
	const sheaf_part **parts = arena_alloc(m->arena, p->part_count * sizeof(*parts));
	if (copy == NULL || parts == NULL)
		return SHEAF_NOMEM;
	*copy = *p;
	copy->json = (sheaf_str){NULL, 0};
	copy->parts = parts;
	copy->part_count = 0;
	for (size_t i = 0; i < p->part_count; i++) {
		if (p->parts[i]->kind != SHEAF_PART_TEXT || p->parts[i]->text.len != 0)
			parts[copy->part_count++] = p->parts[i];
	}
	*out = copy;
	return 0;
}

static char *put(char *at, sheaf_str s)
{
	if (s.len != 0)
		memcpy(at, s.ptr, s.len);
	return at + s.len;
}

/* "[tool result NAME ID]\n" and the result's texts, one a line. */
static const sheaf_part *orphan_text(mender *m, const sheaf_part *p)
{
	const sheaf_str opening = SHEAF_STR("[tool result"), blank = SHEAF_STR(" ");
	size_t len = opening.len + 2 + p->tool_name.len + 1 + p->tool_use_id.len + 1 + p->text.len;
	for (size_t i = 0; i < p->part_count; i++)
		len += p->parts[i]->kind == SHEAF_PART_TEXT ? p->parts[i]->text.len + 1 : 0;
	char *text = arena_alloc(m->arena, len + 1);
	sheaf_part *part = arena_zalloc(m->arena, sizeof(*part));
	if (text == NULL || part == NULL)
		return NULL;

	char *at = put(text, opening);
	if (p->tool_name.len != 0)
		at = put(put(at, blank), p->tool_name);
	if (p->tool_use_id.len != 0)
		at = put(put(at, blank), p->tool_use_id);
	at = put(put(at, SHEAF_STR("]\n")), p->text);
	bool first = p->text.len == 0;
	for (size_t i = 0; i < p->part_count; i++) {
		if (p->parts[i]->kind != SHEAF_PART_TEXT || p->parts[i]->text.len == 0)
			continue;
		if (!first)
			at = put(at, SHEAF_STR("\n"));
		at = put(at, p->parts[i]->text);
		first = false;
	}
	*at = '\0';
	part->kind = SHEAF_PART_TEXT;
	part->is_error = -1;
	part->text = str_make(text, (size_t)(at - text));
	return part;
}

/* How many parts an orphan becomes: its text, then what it holds besides texts. */
static size_t orphan_size(const sheaf_part *p)
{
	size_t size = 1;
	for (size_t i = 0; i < p->part_count; i++)
		size += p->parts[i]->kind != SHEAF_PART_TEXT;
	return size;
}

static int orphan_write(mender *m, const sheaf_part *p, const sheaf_part **parts, size_t *count)
{
	const sheaf_part *text = orphan_text(m, p);
	if (text == NULL)
		return SHEAF_NOMEM;
	parts[(*count)++] = text;
	for (size_t i = 0; i < p->part_count; i++) {
		if (p->parts[i]->kind != SHEAF_PART_TEXT)
			parts[(*count)++] = p->parts[i];
	}
	return 0;
}

/* ---- Answers ------------------------------------------------------------- */

static int emit_interrupted(mender *m, const call *c)
{
	const sheaf_part *use = part_of(m, c->item, c->part);
	sheaf_part *part = arena_zalloc(m->arena, sizeof(*part));
	const sheaf_part **parts = arena_alloc(m->arena, sizeof(*parts));
	sheaf_message_view *view = arena_zalloc(m->arena, sizeof(*view));
	sheaf_item *item = arena_zalloc(m->arena, sizeof(*item));
	if (part == NULL || parts == NULL || view == NULL || item == NULL)
		return SHEAF_NOMEM;
	part->kind = SHEAF_PART_TOOL_RESULT;
	part->is_error = 1;
	part->synthetic = 1;
	part->text = SHEAF_STR(MEND_INTERRUPTED);
	part->tool_use_id = use->id;
	part->tool_name = use->name;
	parts[0] = part;
	view->role = SHEAF_STR(SHEAF_ROLE_TOOL);
	view->parts = parts;
	view->part_count = 1;
	item->kind = SHEAF_ITEM_MESSAGE;
	item->synthetic = 1;
	item->message = view;
	int rc = note_add(m, SHEAF_NOTE_INTERRUPTED, c->item, use->id);
	return rc != 0 ? rc : out_add(m, item);
}

/* Whether these answers are all there is in their message, in this order: then it goes as it is. */
static bool is_whole_message(const mender *m, size_t first, size_t n)
{
	size_t item = m->calls[first].answer_item;
	if (item == m->calls[first].item || m->items[item]->message->part_count != n)
		return false;
	for (size_t k = 0; k < n; k++) {
		if (m->calls[first + k].answer_part != k || judged_of(m, item, k)->trim)
			return false;
	}
	return true;
}

/*
 * Whether these answers may stay where they are: a user message that follows
 * the calls at once, begins with them and goes on with something else.
 */
static bool is_lead(const mender *m, size_t first, size_t n)
{
	size_t item = m->calls[first].answer_item;
	const sheaf_message_view *message = m->items[item]->message;
	if (item == m->calls[first].item || !str_is(message->role, SHEAF_ROLE_USER))
		return false;
	size_t k = 0;
	for (size_t p = 0; p < message->part_count && k < n; p++) {
		const judged *j = judged_of(m, item, p);
		if (p == m->calls[first + k].answer_part) {
			if (j->late)
				return false;
			k++;
		} else if (j->fate == FATE_STAYS || j->fate == FATE_ORPHAN ||
		           (j->fate == FATE_ANSWER && !j->gone)) {
			return false;
		}
	}
	return k == n;
}

/* Answers taken out of a message: a message of their own with the same entry. */
static int emit_split(mender *m, size_t first, size_t n)
{
	const sheaf_item *source = m->items[m->calls[first].answer_item];
	sheaf_message_view *view = arena_zalloc(m->arena, sizeof(*view));
	const sheaf_part **parts = arena_alloc(m->arena, n * sizeof(*parts));
	if (view == NULL || parts == NULL)
		return SHEAF_NOMEM;
	for (size_t k = 0; k < n; k++) {
		const call *c = &m->calls[first + k];
		int rc = part_as_sent(m, part_of(m, c->answer_item, c->answer_part),
		                      judged_of(m, c->answer_item, c->answer_part)->trim,
		                      &parts[k]);
		if (rc != 0)
			return rc;
	}
	view->role = str_is(source->message->role, SHEAF_ROLE_USER) ? source->message->role
	                                                            : SHEAF_STR(SHEAF_ROLE_TOOL);
	view->parts = parts;
	view->part_count = n;
	return out_add_view(m, source, view);
}

/* Behind item `i` the answers to its calls. `closed`: something of the item follows them. */
static int emit_answers(mender *m, size_t i, bool closed)
{
	size_t end = m->first_call[i + 1];
	for (size_t k = m->first_call[i], n; k < end; k += n) {
		size_t item = m->calls[k].answer_item;
		int rc;
		n = 1;
		if (item == NONE) {
			rc = emit_interrupted(m, &m->calls[k]);
			if (rc != 0)
				return rc;
			continue;
		}
		while (k + n < end && m->calls[k + n].answer_item == item)
			n++;
		bool lead = false;
		if (is_whole_message(m, k, n)) {
			rc = out_add(m, m->items[item]);
		} else if (k + n == end && !closed && is_lead(m, k, n)) {
			lead = true;
			rc = 0;
		} else {
			rc = emit_split(m, k, n);
		}
		if (rc != 0)
			return rc;
		for (size_t a = k; a < k + n; a++) {
			judged *j = judged_of(m, item, m->calls[a].answer_part);
			j->lead = lead;
			j->gone = !lead;
		}
	}
	return 0;
}

/* ---- Items --------------------------------------------------------------- */

static int note_part(mender *m, size_t item, size_t part)
{
	const judged *j = judged_of(m, item, part);
	sheaf_str id = part_of(m, item, part)->tool_use_id;
	int rc = 0;

	if (j->trim && j->fate != FATE_SECOND)
		rc = note_add(m, SHEAF_NOTE_EMPTY_TEXT, item, id);
	if (rc != 0)
		return rc;
	switch ((fate)j->fate) {
	case FATE_EMPTY:
		return note_add(m, SHEAF_NOTE_EMPTY_TEXT, item, (sheaf_str){NULL, 0});
	case FATE_FOREIGN:
		return note_add(m, SHEAF_NOTE_FOREIGN_THINKING, item, (sheaf_str){NULL, 0});
	case FATE_SECOND:
		return note_add(m, SHEAF_NOTE_SECOND_ANSWER, item, id);
	case FATE_ORPHAN:
		return note_add(m, SHEAF_NOTE_ORPHAN_ANSWER, item, id);
	case FATE_ANSWER:
		return j->late ? note_add(m, SHEAF_NOTE_LATE_ANSWER, item, id) : 0;
	case FATE_STAYS:
		break;
	}
	return 0;
}

/* What stays of an item at its place. */
typedef struct rest {
	size_t size;    /* parts that stay, an orphan counted as what it becomes */
	size_t orphans; /* parts that orphans become */
	bool changed;
} rest;

static rest rest_of(const mender *m, size_t i)
{
	const sheaf_message_view *message = m->items[i]->message;
	rest r = {0};
	for (size_t p = 0; p < message->part_count; p++) {
		const judged *j = judged_of(m, i, p);
		if (j->fate == FATE_STAYS || j->lead) {
			r.size++;
			r.changed |= j->trim;
		} else {
			size_t orphans = j->fate == FATE_ORPHAN ? orphan_size(message->parts[p])
			                                        : 0;
			r.size += orphans;
			r.orphans += orphans;
			r.changed = true;
		}
	}
	return r;
}

/* Writes those parts that stay and are orphans or not, as asked for. */
static int rest_write(mender *m, size_t i, bool orphans, bool others, const sheaf_part **parts,
                      size_t *count)
{
	const sheaf_message_view *message = m->items[i]->message;
	for (size_t p = 0; p < message->part_count; p++) {
		const judged *j = judged_of(m, i, p);
		int rc = 0;
		if (j->fate == FATE_ORPHAN && orphans)
			rc = orphan_write(m, message->parts[p], parts, count);
		else if ((j->fate == FATE_STAYS || j->lead) && others)
			rc = part_as_sent(m, message->parts[p], j->trim, &parts[(*count)++]);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int emit_rest(mender *m, size_t i, bool orphans, bool others, size_t size, sheaf_str role)
{
	const sheaf_item *item = m->items[i];
	sheaf_message_view *view = arena_alloc(m->arena, sizeof(*view));
	const sheaf_part **parts = arena_alloc(m->arena, size * sizeof(*parts));
	if (view == NULL || parts == NULL)
		return SHEAF_NOMEM;
	if (others)
		*view = *item->message;
	else
		*view = (sheaf_message_view){.usage = NULL};
	view->role = role;
	view->json = (sheaf_str){NULL, 0};
	view->parts = parts;
	view->part_count = 0;
	int rc = rest_write(m, i, orphans, others, parts, &view->part_count);
	return rc != 0 ? rc : out_add_view(m, item, view);
}

/*
 * One item and the answers to its calls. Text made of an orphan is the user's,
 * whoever's message it stood in: in a message of another role it comes behind.
 */
static int emit_item(mender *m, size_t i)
{
	const sheaf_item *item = m->items[i];
	const sheaf_str user = SHEAF_STR(SHEAF_ROLE_USER);
	for (size_t p = 0; p < item->message->part_count; p++) {
		int rc = note_part(m, i, p);
		if (rc != 0)
			return rc;
	}
	if (item->message->part_count == 0 && !speaks_without_parts(item->message))
		return note_add(m, SHEAF_NOTE_EMPTY_TEXT, i, (sheaf_str){NULL, 0});

	rest r = rest_of(m, i);
	sheaf_str role = item->message->role;
	/* What is left of a tool message is no answer to anything. */
	if (r.changed && str_is(role, SHEAF_ROLE_TOOL))
		role = user;
	bool inline_orphans = str_eq(role, user);
	size_t here = inline_orphans ? r.size : r.size - r.orphans;
	size_t behind = r.size - here;
	int rc = 0;
	if (!r.changed)
		rc = out_add(m, item);
	else if (here != 0 || speaks_without_parts(item->message))
		rc = emit_rest(m, i, inline_orphans, true, here, role);
	if (rc == 0)
		rc = emit_answers(m, i, behind != 0);
	if (rc == 0 && behind != 0)
		rc = emit_rest(m, i, true, false, behind, user);
	return rc;
}

/* ---- The whole ----------------------------------------------------------- */

static int mender_begin(mender *m)
{
	size_t total = 0;
	m->first_part = mem_alloc((m->count + 1) * sizeof(*m->first_part));
	m->first_call = mem_alloc((m->count + 1) * sizeof(*m->first_call));
	m->answered = mem_zalloc((m->count + 1) * sizeof(*m->answered));
	m->content_after = mem_alloc((m->count + 1) * sizeof(*m->content_after));
	if (m->first_part == NULL || m->first_call == NULL || m->answered == NULL ||
	    m->content_after == NULL)
		return SHEAF_NOMEM;
	for (size_t i = 0; i < m->count; i++) {
		m->first_part[i] = total;
		total += m->items[i]->message->part_count;
	}
	m->first_part[m->count] = total;
	m->parts = mem_alloc((total + 1) * sizeof(*m->parts));
	return m->parts != NULL ? 0 : SHEAF_NOMEM;
}

static int mender_finish(mender *m, mended *out)
{
	out->items = arena_alloc(m->arena, (m->out_count + 1) * sizeof(*out->items));
	out->notes = arena_alloc(m->arena, (m->note_count + 1) * sizeof(*out->notes));
	if (out->items == NULL || out->notes == NULL)
		return SHEAF_NOMEM;
	if (m->out_count != 0)
		memcpy(out->items, m->out, m->out_count * sizeof(*out->items));
	if (m->note_count != 0)
		memcpy(out->notes, m->notes, m->note_count * sizeof(*out->notes));
	out->count = m->out_count;
	out->note_count = m->note_count;
	return 0;
}

int mend_items(mended *out, const sheaf_item *const *items, size_t count, sheaf_str provider,
               sheaf_str model, arena *a, sheaf_error *err)
{
	_cleanup_(mender_free) mender m = {
		.items = items,
		.count = count,
		.provider = provider,
		.model = model,
		.arena = a,
		.by_id = MAP_INIT,
	};
	int rc = mender_begin(&m);
	if (rc == 0)
		rc = judge_all(&m);
	if (rc == 0)
		rc = order_calls(&m);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = emit_item(&m, i);
	if (rc == 0)
		rc = mender_finish(&m, out);
	return rc == 0 ? 0 : err_nomem(err);
}
