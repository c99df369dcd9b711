/* The naive model's reads: paths, pages, trees, and contexts with their mending. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

typedef unsigned long long ull;

size_t m_path(const m_session *s, uint64_t leaf, m_record **path)
{
	size_t n = 0;
	for (uint64_t at = leaf; at; at = s->records[at - 1]->parent)
		path[n++] = s->records[at - 1];
	for (size_t i = 0; i < n / 2; i++) {
		m_record *swap = path[i];
		path[i] = path[n - 1 - i];
		path[n - 1 - i] = swap;
	}
	return n;
}

/* ---- Calls and answers ------------------------------------------------------ */

/* One call or answer of a list of messages, in order. */
typedef struct part {
	size_t item;
	int number; /* of the call */
	bool answer;
	size_t partner; /* of a call: its answer, of an answer: its call; NONE */
	bool second;    /* an answer to what was answered */
	bool orphan;
} part;

#define NONE SIZE_MAX

/* The nearest earlier message with an unanswered call of this number; in it the first such call. */
static size_t open_call(const part *parts, size_t before, int number, bool *ever)
{
	size_t found = NONE;
	*ever = false;
	for (size_t i = 0; i < before; i++) {
		if (parts[i].answer || parts[i].number != number)
			continue;
		*ever = true;
		if (parts[i].partner == NONE &&
		    (found == NONE || parts[i].item != parts[found].item))
			found = i;
	}
	return found;
}

/* Pairs answers with calls. `records` are messages; returns how many parts there are. */
static size_t pair(m_record *const *records, size_t count, part *parts)
{
	size_t n = 0;
	for (size_t i = 0; i < count; i++) {
		const spec *s = &records[i]->spec;
		if (records[i]->kind != SHEAF_KIND_MESSAGE || s->what == SPEC_TEXT)
			continue;
		for (int k = 0; k < s->call_count; k++) {
			part *p = &parts[n];
			*p = (part){i, s->calls[k], s->what == SPEC_ANSWER, NONE, false, false};
			if (p->answer) {
				bool ever;
				size_t call = open_call(parts, n, p->number, &ever);
				p->partner = call;
				p->second = call == NONE && ever;
				p->orphan = call == NONE && !ever;
				if (call != NONE)
					parts[call].partner = n;
			}
			n++;
		}
	}
	return n;
}

int m_may_compact(const m_session *s, uint64_t leaf, uint64_t cut)
{
	m_record *path[MODEL_RECORDS];
	static _Thread_local part parts[2 * MODEL_RECORDS];
	size_t n = m_path(s, leaf, path);
	size_t at = cut ? NONE : n;
	for (size_t i = 0; i < n; i++)
		if (path[i]->seq == cut)
			at = i;
	if (at == NONE)
		return SHEAF_COMPACT;
	if (at < n && path[at]->kind == SHEAF_KIND_MESSAGE && path[at]->spec.what == SPEC_ANSWER)
		return SHEAF_COMPACT;
	size_t count = pair(path, n, parts);
	for (size_t i = 0; i < count; i++)
		if (!parts[i].answer && parts[i].item < at &&
		    (parts[i].partner == NONE || parts[parts[i].partner].item >= at))
			return SHEAF_COMPACT;
	return 0;
}

/* ---- Contexts ---------------------------------------------------------------- */

static bool sees(const op *o, const m_record *r)
{
	size_t n = strlen(r->spec.agent);
	if (!o->agent[0] || !n)
		return true;
	return strncmp(o->agent, r->spec.agent, n) == 0 && (o->agent[n] == 0 || o->agent[n] == '.');
}

/* The records whose content a context shows, and the compaction that decided. */
static size_t choose(const op *o, m_record **path, size_t n, m_record **out, m_record **decided,
                     bool *all_kept)
{
	size_t c = NONE;
	*decided = NULL;
	*all_kept = false;
	for (size_t i = 0; i < n && !o->without; i++)
		if (path[i]->kind == SHEAF_KIND_COMPACTION && sees(o, path[i]))
			c = i;
	size_t from = 0;
	if (c != NONE) {
		*decided = path[c];
		from = c;
		for (size_t i = 0; i < c && path[c]->target; i++)
			if (path[i]->seq == path[c]->target)
				from = i;
		if (path[c]->target && from == c) {
			*all_kept = true;
			from = 0;
		}
	}
	size_t count = 0;
	for (size_t i = from; i < n; i++) {
		const m_record *r = path[i];
		bool shown = r->kind == SHEAF_KIND_MESSAGE ||
		             r->kind == SHEAF_KIND_BRANCH_SUMMARY ||
		             (r->kind == SHEAF_KIND_CUSTOM && r->spec.what == SPEC_CUSTOM_TEXT);
		if (shown && sees(o, r))
			out[count++] = path[i];
	}
	return count;
}

/* Whether anything that stays lies between the call's message and the answer. */
static bool is_late(m_record *const *records, const part *parts, size_t count, size_t call,
                    size_t reply)
{
	for (size_t i = parts[call].item + 1; i <= parts[reply].item; i++) {
		bool speaks = records[i]->kind != SHEAF_KIND_MESSAGE ||
		              (records[i]->spec.what == SPEC_TEXT && records[i]->spec.text[0]);
		for (size_t k = 0; k < count && k < reply; k++)
			speaks |= parts[k].item == i && (!parts[k].answer || parts[k].orphan);
		if (speaks)
			return true;
	}
	return false;
}

static void answer_item(answer *a, const m_record *r)
{
	switch (r->kind) {
	case SHEAF_KIND_BRANCH_SUMMARY:
		answer_add(a, " branchSummary(%s)", r->text);
		break;
	case SHEAF_KIND_CUSTOM:
		answer_add(a, " custom(%s)", r->spec.text);
		break;
	default:
		if (r->spec.what == SPEC_TEXT && r->spec.text[0])
			answer_add(a, " %s(%s)", r->spec.role, r->spec.text);
		break;
	}
}

/*
 * Behind a message with calls: their answers as they came, those out of one
 * message together; then what is made up for the others.
 */
static void answer_calls(answer *a, m_record *const *records, const part *parts, size_t count,
                         size_t item, int notes[9])
{
	size_t from = NONE;
	for (size_t i = 0; i < count; i++) {
		if (!parts[i].answer || parts[i].partner == NONE ||
		    parts[parts[i].partner].item != item)
			continue;
		if (parts[i].item != from)
			answer_add(a, "%s tool(", from != NONE ? ")" : "");
		from = parts[i].item;
		answer_add(a, "c%d=%s;", parts[i].number, records[from]->spec.text);
	}
	answer_add(a, "%s", from != NONE ? ")" : "");
	for (size_t i = 0; i < count; i++) {
		if (parts[i].answer || parts[i].item != item || parts[i].partner != NONE)
			continue;
		answer_add(a, " tool(!c%d)", parts[i].number);
		notes[SHEAF_NOTE_INTERRUPTED]++;
	}
}

static void mend(answer *a, m_record *const *records, size_t count, int notes[9])
{
	static _Thread_local part parts[2 * MODEL_RECORDS];
	size_t n = pair(records, count, parts);
	for (size_t i = 0; i < count; i++) {
		const m_record *r = records[i];
		if (r->kind != SHEAF_KIND_MESSAGE || r->spec.what == SPEC_TEXT) {
			answer_item(a, r);
			notes[SHEAF_NOTE_EMPTY_TEXT] += r->kind == SHEAF_KIND_MESSAGE &&
			                                !r->spec.text[0];
			continue;
		}
		if (r->spec.what == SPEC_CALL) {
			answer_add(a, " assistant(");
			for (int k = 0; k < r->spec.call_count; k++)
				answer_add(a, "call c%d;", r->spec.calls[k]);
			answer_add(a, ")");
			answer_calls(a, records, parts, n, i, notes);
			continue;
		}
		bool orphans = false;
		for (size_t k = 0; k < n; k++) {
			if (parts[k].item != i)
				continue;
			notes[SHEAF_NOTE_SECOND_ANSWER] += parts[k].second;
			notes[SHEAF_NOTE_ORPHAN_ANSWER] += parts[k].orphan;
			if (parts[k].orphan)
				answer_add(a, "%s[tool result c%d]\n%s;", orphans ? "" : " user(",
				           parts[k].number, r->spec.text);
			orphans |= parts[k].orphan;
			if (parts[k].partner != NONE)
				notes[SHEAF_NOTE_LATE_ANSWER] += is_late(records, parts, n,
				                                         parts[k].partner, k);
		}
		if (orphans)
			answer_add(a, ")");
	}
}

static void read_context(m_session *s, const op *o, answer *a)
{
	m_record *path[MODEL_RECORDS];
	m_record *shown[MODEL_RECORDS];
	m_record *decided;
	bool all_kept;
	int notes[9] = {0};
	uint64_t leaf = 0;
	int rc = 0;
	if (o->target.how != NAME_NONE) {
		rc = m_resolve(s, &o->target, &leaf);
	} else {
		m_branch *b = m_branch_find(s, o->word);
		rc = b ? 0 : SHEAF_NOT_FOUND;
		leaf = b ? b->leaf : 0;
	}
	if (rc) {
		m_answer_code(a, rc);
		return;
	}
	size_t n = m_path(s, leaf, path);
	size_t count = choose(o, path, n, shown, &decided, &all_kept);
	answer_add(a, "leaf=%llu by=%llu:", (ull)leaf, decided ? (ull)decided->seq : 0);
	if (decided)
		answer_add(a, " compactionSummary(sum)");
	mend(a, shown, count, notes);
	notes[SHEAF_NOTE_FIRST_KEPT] = all_kept;
	const char *mind = "";
	const char *level = "";
	for (size_t i = 0; i < n; i++) {
		if (path[i]->kind == SHEAF_KIND_MODEL_CHANGE)
			mind = path[i]->spec.text;
		if (path[i]->kind == SHEAF_KIND_THINKING_LEVEL)
			level = path[i]->spec.text;
	}
	if (!o->agent[0])
		answer_add(a, " model=%s level=%s", mind, level);
	for (int i = 1; i < 9; i++)
		if (notes[i])
			answer_add(a, " n%d=%d", i, notes[i]);
}

/* ---- Records ------------------------------------------------------------------ */

static void answer_record(answer *a, const m_session *s, const m_record *r, bool label)
{
	answer_add(a, " %llu:%s", (ull)r->seq, sheaf_kind_name(r->kind));
	if (!m_is_fact(r))
		answer_add(a, "^%llu@%s", (ull)r->parent, r->branch);
	if (r->kind == SHEAF_KIND_LABEL || r->kind == SHEAF_KIND_LEAF ||
	    r->kind == SHEAF_KIND_COMPACTION)
		answer_add(a, ">%llu", (ull)r->target);
	if (r->kind == SHEAF_KIND_LABEL || (r->kind == SHEAF_KIND_SESSION_INFO && r->named))
		answer_add(a, "'%s'", r->text);
	if (r->batch_count > 1)
		answer_add(a, "[%llu/%llu]", (ull)r->batch_index, (ull)r->batch_count);
	if (label && m_label(s, r->seq)[0])
		answer_add(a, "=%s", m_label(s, r->seq));
}

/* Whether it is too old for this read; what got the clock's time never is. */
static bool is_before(const op *o, const m_record *r)
{
	return o->after_us && r->timed && r->time_us < o->after_us;
}

static void read_records(const m_session *s, const op *o, answer *a)
{
	const m_record *found[MODEL_RECORDS];
	size_t n = 0;
	bool down = o->backward || o->newest;
	for (size_t k = 0; k < s->count; k++) {
		const m_record *r = s->records[down ? s->count - 1 - k : k];
		if (!o->newest && is_before(o, r))
			continue;
		if (o->own_only && r->seq <= s->base)
			continue;
		if (o->from_seq && !o->newest &&
		    (down ? r->seq > o->from_seq : r->seq < o->from_seq))
			continue;
		if (o->kinds && !(o->kinds & SHEAF_KIND_BIT(r->kind)))
			continue;
		if (o->word[0] && (m_is_fact(r) || strcmp(r->branch, o->word) != 0))
			continue;
		found[n++] = r;
		if (o->newest && n == o->limit)
			break;
	}
	answer_add(a, "OK");
	for (size_t i = 0; i < n; i++) {
		const m_record *r = found[o->newest ? n - 1 - i : i];
		if (!o->newest ||
		    !is_before(o, r)) /* the newest are chosen first, then the time picks */
			answer_record(a, s, r, false);
	}
}

static void read_path(m_session *s, const op *o, answer *a)
{
	m_record *path[MODEL_RECORDS];
	uint64_t leaf = 0;
	int rc = 0;
	if (o->target.how != NAME_NONE) {
		rc = m_resolve(s, &o->target, &leaf);
	} else {
		m_branch *b = m_branch_find(s, o->word);
		rc = b ? 0 : SHEAF_NOT_FOUND;
		leaf = b ? b->leaf : 0;
	}
	if (rc) {
		m_answer_code(a, rc);
		return;
	}
	size_t n = m_path(s, leaf, path);
	answer_add(a, "OK");
	for (size_t i = o->limit && n > o->limit ? n - o->limit : 0; i < n; i++)
		answer_record(a, s, path[i], true);
}

static void read_labels(const m_session *s, answer *a)
{
	answer_add(a, "OK");
	for (size_t i = 0; i < s->count; i++)
		if (!m_is_fact(s->records[i]) && m_label(s, i + 1)[0])
			answer_record(a, s, s->records[i], true);
}

static void read_tree(const m_session *s, answer *a)
{
	m_record *path[MODEL_RECORDS];
	size_t n = m_path(s, s->branches[0].leaf, path);
	answer_add(a, "OK");
	for (size_t i = 0; i < s->count; i++) {
		const m_record *r = s->records[i];
		if (m_is_fact(r))
			continue;
		int depth = 0;
		size_t children = 0;
		bool on_path = false;
		for (uint64_t at = r->parent; at; at = s->records[at - 1]->parent)
			depth++;
		for (size_t k = 0; k < s->count; k++)
			children += !m_is_fact(s->records[k]) && s->records[k]->parent == r->seq;
		for (size_t k = 0; k < n; k++)
			on_path |= path[k] == r;
		answer_add(a, " %llu^%llu d%d c%zu%s%s", (ull)r->seq, (ull)r->parent, depth,
		           children, on_path ? "*" : "", m_label(s, r->seq));
	}
}

static void read_get(const m_session *s, const op *o, answer *a)
{
	uint64_t seq = 0;
	int rc = m_resolve(s, &o->target, &seq);
	if (rc == SHEAF_INVALID && o->target.how != NAME_NONE && seq)
		rc = 0; /* a fact is a record too */
	m_answer_code(a, rc);
	if (rc == 0)
		answer_record(a, s, s->records[seq - 1], true);
}

static void read_children(const m_session *s, const op *o, answer *a)
{
	uint64_t seq = 0;
	int rc = o->target.how == NAME_NONE ? 0 : m_resolve(s, &o->target, &seq);
	m_answer_code(a, rc);
	for (size_t i = 0; i < s->count && rc == 0; i++)
		if (!m_is_fact(s->records[i]) && s->records[i]->parent == seq)
			answer_record(a, s, s->records[i], true);
}

/* Ids of the test's making begin with "r"; only those can be meant by such a prefix. */
static void read_resolve(const m_session *s, const op *o, answer *a)
{
	name whole = {.how = NAME_WORD};
	snprintf(whole.word, WORD, "%s", o->word);
	uint64_t seq = 0;
	int rc = m_resolve(s, &whole, &seq);
	if (rc == SHEAF_NOT_FOUND && strlen(o->word) >= 4) {
		size_t matches = 0;
		for (size_t i = 0; i < s->count; i++)
			if (!m_is_fact(s->records[i]) &&
			    strncmp(s->records[i]->id, o->word, strlen(o->word)) == 0) {
				matches++;
				seq = i + 1;
			}
		rc = matches == 1 ? 0 : matches ? SHEAF_INVALID : SHEAF_NOT_FOUND;
	}
	m_answer_code(a, rc);
	if (rc == 0)
		answer_add(a, " %llu", (ull)seq);
}

/* ---- Heads --------------------------------------------------------------------- */

static bool turn_spent(const m_session *s, size_t upto, const char *turn)
{
	for (size_t i = 0; i < upto; i++)
		if (s->homes[i] == s->self && s->records[i]->kind == SHEAF_KIND_MESSAGE &&
		    s->records[i]->tokens && strcmp(s->records[i]->turn, turn) == 0)
			return true;
	return false;
}

static void answer_info(const m_session *s, answer *a)
{
	size_t own = 0, messages = 0, turns = 0;
	uint64_t tokens = 0;
	for (size_t i = 0; i < s->count; i++) {
		const m_record *r = s->records[i];
		if (s->homes[i] != s->self)
			continue;
		own++;
		messages += r->kind == SHEAF_KIND_MESSAGE;
		turns += r->kind == SHEAF_KIND_TURN_END;
		if (r->kind == SHEAF_KIND_MESSAGE ||
		    (r->kind == SHEAF_KIND_TURN_END && !turn_spent(s, i, r->turn)))
			tokens += r->tokens;
	}
	answer_add(a,
	           "rev=%zu own=%zu messages=%zu turns=%zu tokens=%llu base=%llu source=%s name=%s",
	           s->count, own, messages, turns, (ull)tokens, (ull)s->base, s->source, s->title);
	const m_record *last = s->count ? s->records[s->count - 1] : NULL;
	if (last && last->timed && s->count > s->base)
		answer_add(a, " at=%lld", (long long)last->time_us);
}

static void read_head(const m_session *s, answer *a)
{
	answer_info(s, a);
	answer_add(a, " metadata=%s branches=", s->metadata);
	for (int i = 0; i < s->branch_count; i++)
		answer_add(a, "%s:%llu,", s->branches[i].name, (ull)s->branches[i].leaf);
}

static void read_list(const model *m, answer *a)
{
	answer_add(a, "OK");
	for (int i = 0; i < KEYS; i++)
		if (m_is_visible(&m->sessions[i])) {
			answer_add(a, "\n  s%d ", i);
			answer_info(&m->sessions[i], a);
		}
}

void m_read(model *m, const op *o, answer *a)
{
	m_session *s = &m->sessions[o->key];
	switch (o->what) {
	case OP_HEAD:
		read_head(s, a);
		break;
	case OP_PATH:
		read_path(s, o, a);
		break;
	case OP_RECORDS:
		read_records(s, o, a);
		break;
	case OP_LABELS:
		read_labels(s, a);
		break;
	case OP_TREE:
		read_tree(s, a);
		break;
	case OP_CONTEXT:
		read_context(s, o, a);
		break;
	case OP_GET:
		read_get(s, o, a);
		break;
	case OP_CHILDREN:
		read_children(s, o, a);
		break;
	case OP_RESOLVE:
		read_resolve(s, o, a);
		break;
	default: /* a restart changes nothing, so a list says what there is */
		read_list(m, a);
		break;
	}
}
