/* The naive model: sessions as arrays of records, and what operations do to them. */
#include "model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Answers ------------------------------------------------------------- */

void answer_clear(answer *a)
{
	a->len = 0;
	if (a->text)
		a->text[0] = 0;
}

void answer_add(answer *a, const char *format, ...)
{
	for (;;) {
		va_list args;
		va_start(args, format);
		int n = vsnprintf(a->text ? a->text + a->len : NULL, a->room - a->len, format,
		                  args);
		va_end(args);
		if (n < 0)
			abort();
		if (a->len + (size_t)n < a->room) {
			a->len += (size_t)n;
			return;
		}
		a->room = (a->len + (size_t)n + 1) * 2;
		a->text = realloc(a->text, a->room);
		if (!a->text)
			abort();
	}
}

void answer_free(answer *a)
{
	free(a->text);
	*a = (answer){0};
}

/* ---- Sessions ------------------------------------------------------------ */

bool m_is_fact(const m_record *r)
{
	return r->kind >= SHEAF_KIND_OTHER_FACT;
}

bool m_is_visible(const m_session *s)
{
	return s->there && !s->hidden;
}

static m_record *record_new(model *m)
{
	m_record *r = calloc(1, sizeof(*r));
	if (!r)
		abort();
	if (m->memory_count == m->memory_room) {
		m->memory_room = m->memory_room ? m->memory_room * 2 : 256;
		m->memory = realloc(m->memory, m->memory_room * sizeof(void *));
		if (!m->memory)
			abort();
	}
	m->memory[m->memory_count++] = r;
	r->batch_count = 1;
	return r;
}

void model_clear(model *m)
{
	for (size_t i = 0; i < m->memory_count; i++)
		free(m->memory[i]);
	free(m->memory);
	for (int i = 0; i < KEYS; i++) {
		free(m->sessions[i].records);
		free(m->sessions[i].homes);
	}
	memset(m, 0, sizeof(*m));
}

void m_session_begin(model *m, m_session *s)
{
	m_record **records = s->records;
	int *homes = s->homes;
	size_t room = s->room;
	memset(s, 0, sizeof(*s));
	s->records = records;
	s->homes = homes;
	s->room = room;
	s->there = true;
	s->self = ++m->born;
	s->branch_count = 1;
	snprintf(s->branches[0].name, WORD, "main");
}

void m_session_push(m_session *s, m_record *r, int home)
{
	if (s->count == s->room) {
		s->room = s->room ? s->room * 2 : 64;
		s->records = realloc(s->records, s->room * sizeof(*s->records));
		s->homes = realloc(s->homes, s->room * sizeof(*s->homes));
		if (!s->records || !s->homes)
			abort();
	}
	s->records[s->count] = r;
	s->homes[s->count++] = home;
}

m_branch *m_branch_find(m_session *s, const char *branch)
{
	for (int i = 0; i < s->branch_count; i++)
		if (strcmp(s->branches[i].name, branch[0] ? branch : "main") == 0)
			return &s->branches[i];
	return NULL;
}

static void branch_set(m_session *s, const char *branch, uint64_t leaf)
{
	m_branch *b = m_branch_find(s, branch);
	if (!b) {
		if (s->branch_count == BRANCHES)
			abort();
		b = &s->branches[s->branch_count++];
		snprintf(b->name, WORD, "%s", branch);
	}
	b->leaf = leaf;
}

static void branch_drop(m_session *s, const char *branch)
{
	m_branch *b = m_branch_find(s, branch);
	if (!b || b == &s->branches[0])
		return;
	s->branch_count--;
	for (long i = b - s->branches; i < s->branch_count; i++)
		s->branches[i] = s->branches[i + 1];
}

/* What a record does to the session it is appended to. */
void m_session_apply(m_session *s, const m_record *r)
{
	if (!m_is_fact(r))
		branch_set(s, r->branch, r->seq);
	if (r->kind == SHEAF_KIND_LEAF && r->gone)
		branch_drop(s, r->text);
	else if (r->kind == SHEAF_KIND_LEAF)
		branch_set(s, r->text, r->target);
	if (r->kind == SHEAF_KIND_SESSION_INFO && r->named)
		snprintf(s->title, WORD, "%s", r->text);
	if (r->kind == SHEAF_KIND_SESSION_INFO && r->described)
		snprintf(s->metadata, WORD, "%s", r->metadata);
}

m_record *m_session_add(model *m, m_session *s, int kind)
{
	m_record *r = record_new(m);
	r->seq = s->count + 1;
	r->kind = kind;
	m_session_push(s, r, s->self);
	return r;
}

/* ---- Names ---------------------------------------------------------------- */

const char *m_label(const m_session *s, uint64_t seq)
{
	for (size_t i = s->count; i-- > 0;)
		if (s->records[i]->kind == SHEAF_KIND_LABEL && s->records[i]->target == seq)
			return s->records[i]->text;
	return "";
}

static uint64_t find_id(const m_session *s, const char *id)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->records[i]->id[0] && strcmp(s->records[i]->id, id) == 0)
			return i + 1;
	return 0;
}

/* The entry that got this label last and has it still. */
static uint64_t find_label(const m_session *s, const char *label)
{
	for (size_t i = s->count; i-- > 0;) {
		const m_record *r = s->records[i];
		if (r->kind == SHEAF_KIND_LABEL && strcmp(r->text, label) == 0 &&
		    strcmp(m_label(s, r->target), label) == 0) {
			bool newer = false; /* a later fact may say the same of the same entry */
			for (size_t k = i + 1; k < s->count; k++)
				newer |= s->records[k]->kind == SHEAF_KIND_LABEL &&
				         s->records[k]->target == r->target;
			if (!newer)
				return r->target;
		}
	}
	return 0;
}

int m_resolve(const m_session *s, const name *n, uint64_t *seq)
{
	*seq = 0;
	if (n->how == NAME_NONE || (n->how == NAME_WORD && !n->word[0]))
		return SHEAF_INVALID;
	if (n->how == NAME_SEQ) {
		if (n->seq == 0 || n->seq > s->count)
			return SHEAF_NOT_FOUND;
		*seq = n->seq;
	} else {
		*seq = find_id(s, n->word);
		if (*seq == 0) {
			*seq = find_label(s, n->word);
			return *seq ? 0 : SHEAF_NOT_FOUND;
		}
	}
	return m_is_fact(s->records[*seq - 1]) ? SHEAF_INVALID : 0;
}

/* ---- Appending ------------------------------------------------------------ */

typedef struct append {
	model *m;
	m_session *s;
	const op *o;
	spec specs[SPECS + 1];
	int count;               /* without a turn's end */
	uint64_t parents[SPECS]; /* resolved; of the same batch: WITHIN + its place */
	uint64_t targets[SPECS];
	bool unresolved; /* a parent is not there: it can only be a repeat */
} append;

#define WITHIN (UINT64_C(1) << 40)
#define NOWHERE (WITHIN - 1)

/* The number of what was resolved, in a batch that begins with `first`. */
static uint64_t numbered(uint64_t resolved, uint64_t first)
{
	return resolved >= WITHIN ? resolved - WITHIN + first : resolved;
}

static int kind_of(const spec *s)
{
	static const int kinds[] = {
		SHEAF_KIND_MESSAGE,      SHEAF_KIND_MESSAGE,        SHEAF_KIND_MESSAGE,
		SHEAF_KIND_MODEL_CHANGE, SHEAF_KIND_THINKING_LEVEL, SHEAF_KIND_CUSTOM,
		SHEAF_KIND_CUSTOM,       SHEAF_KIND_LABEL,          SHEAF_KIND_SESSION_INFO};
	return kinds[s->what];
}

static bool is_fact(const spec *s)
{
	return kind_of(s) >= SHEAF_KIND_OTHER_FACT;
}

/* An entry named within a batch: an earlier one of it, or one that is stored. */
static int resolve_within(const append *a, int upto, const name *n, uint64_t *seq)
{
	for (int i = 0; i < upto && n->how == NAME_WORD; i++)
		if (strcmp(a->specs[i].id, n->word) == 0) {
			*seq = WITHIN + (uint64_t)i;
			return is_fact(&a->specs[i]) ? SHEAF_INVALID : 0;
		}
	return m_resolve(a->s, n, seq);
}

static int resolve_all(append *a)
{
	for (int i = 0; i < a->count; i++) {
		const spec *s = &a->specs[i];
		int rc = 0;
		if (s->what == SPEC_LABEL)
			rc = resolve_within(a, i, &s->target, &a->targets[i]);
		else if (!is_fact(s) && s->has_parent && s->parent.how != NAME_NONE)
			rc = resolve_within(a, i, &s->parent, &a->parents[i]);
		if (rc == SHEAF_NOT_FOUND && s->what != SPEC_LABEL) {
			a->unresolved = true;
			a->parents[i] = NOWHERE;
			rc = 0;
		}
		for (int k = 0; k < i && rc == 0; k++)
			if (strcmp(a->specs[k].id, s->id) == 0)
				rc = SHEAF_INVALID;
		if (rc)
			return a->unresolved ? SHEAF_NOT_FOUND : rc;
	}
	return 0;
}

/* Whether the parent was called so at some time. */
static bool was_called(const m_session *s, uint64_t parent, const name *n)
{
	if (n->how != NAME_WORD || parent == 0 || find_id(s, n->word))
		return false;
	for (size_t i = 0; i < s->count; i++)
		if (s->records[i]->kind == SHEAF_KIND_LABEL && s->records[i]->target == parent &&
		    strcmp(s->records[i]->text, n->word) == 0)
			return true;
	return false;
}

static bool same_spec(const m_session *in, const m_record *r, const spec *s, uint64_t parent)
{
	const spec *t = &r->spec;
	bool speaks = s->what != SPEC_CALL; /* a call has no text */
	if (t->what != s->what || (speaks && strcmp(t->text, s->text) != 0) || t->role != s->role ||
	    strcmp(r->branch, s->branch[0] ? s->branch : "main") != 0 ||
	    strcmp(t->turn, s->turn) != 0 || strcmp(t->agent, s->agent) != 0 ||
	    t->tokens != s->tokens || t->call_count != s->call_count)
		return false;
	for (int i = 0; i < s->call_count; i++)
		if (t->calls[i] != s->calls[i])
			return false;
	if (s->has_parent && r->parent != parent && !was_called(in, r->parent, &s->parent))
		return false;
	return true;
}

/* How many of the ids are stored; `same` if all are, as this very batch. */
static int known_ids(const append *a, int all, bool *same, uint64_t *first)
{
	int known = 0;
	*same = true;
	for (int i = 0; i < a->count; i++) {
		uint64_t seq = find_id(a->s, a->specs[i].id);
		if (!seq) {
			*same = false;
			continue;
		}
		known++;
		const m_record *r = a->s->records[seq - 1];
		if (i == 0)
			*first = seq;
		*same = *same && seq == *first + (uint64_t)i && r->batch_count == (uint64_t)all &&
		        r->batch_index == (uint64_t)i &&
		        same_spec(a->s, r, &a->specs[i], numbered(a->parents[i], *first)) &&
		        (a->specs[i].what != SPEC_LABEL ||
		         r->target == numbered(a->targets[i], *first));
	}
	return known;
}

/* Whether the expectation about this branch is met; else the answer is written. */
static bool expected(m_session *s, const op *o, const char *branch, answer *a)
{
	const m_branch *b = m_branch_find(s, branch);
	uint64_t leaf = b ? b->leaf : 0;
	uint64_t want = 0;
	bool met = true;
	if (o->expect == SHEAF_EXPECT_LEAF) {
		if (o->leaf.how == NAME_SEQ)
			met = o->leaf.seq <= s->count && leaf == o->leaf.seq;
		else
			met = o->leaf.how == NAME_NONE && leaf == want;
	} else if (o->expect == SHEAF_EXPECT_REVISION) {
		met = o->revision == s->count;
	}
	if (!met)
		answer_add(a, "STALE rev=%zu leaf=%llu", s->count, (unsigned long long)leaf);
	return met;
}

static void stamp(append *a, m_record *r, int i, int all)
{
	const spec *s = &a->specs[i];
	r->kind = kind_of(s);
	r->spec = *s;
	snprintf(r->id, WORD, "%s", s->id);
	snprintf(r->branch, WORD, "%s", s->branch[0] ? s->branch : "main");
	r->batch_index = (uint64_t)i;
	r->batch_count = (uint64_t)all;
	r->timed = true;
	r->time_us = s->time_us;
	r->tokens = s->tokens;
	snprintf(r->turn, WORD, "%s", s->turn);
	if (s->what == SPEC_LABEL) {
		r->target = numbered(a->targets[i], r->seq - (uint64_t)i);
		snprintf(r->text, WORD, "%s", s->text);
	}
	if (s->what == SPEC_TITLE) {
		r->named = true;
		snprintf(r->text, WORD, "%s", s->text);
	}
	if (!m_is_fact(r))
		r->parent = s->has_parent ? numbered(a->parents[i], r->seq - (uint64_t)i)
		                          : m_branch_find(a->s, r->branch)->leaf;
}

/* Whether every record finds its branch: one without a parent needs one that is there. */
static bool branches_known(append *a)
{
	for (int i = 0; i < a->count; i++) {
		const spec *s = &a->specs[i];
		bool known = is_fact(s) || s->has_parent || m_branch_find(a->s, s->branch);
		for (int k = 0; k < i && !known; k++)
			known = !is_fact(&a->specs[k]) &&
			        strcmp(a->specs[k].branch, s->branch) == 0;
		if (!known)
			return false;
	}
	return true;
}

void m_answer_code(answer *a, int rc)
{
	answer_add(a, "%s", sheaf_code_name(rc));
}

static void append_end(append *a)
{
	m_record *r = m_session_add(a->m, a->s, SHEAF_KIND_TURN_END);
	r->batch_index = (uint64_t)a->count;
	r->batch_count = (uint64_t)a->count + 1;
	snprintf(r->turn, WORD, "%s", a->o->turn);
	r->tokens = a->o->tokens;
	m_session_apply(a->s, r);
}

static void run_append(model *m, m_session *s, const op *o, answer *out)
{
	append a = {.m = m, .s = s, .o = o};
	bool turn = o->what == OP_TURN;
	for (int i = 0; i < o->count; i++) {
		if (is_fact(&o->specs[i]) && o->specs[i].has_parent) { /* it hangs on nothing */
			m_answer_code(out, SHEAF_INVALID);
			return;
		}
		if (o->specs[i].partial)
			continue;
		a.specs[a.count] = o->specs[i];
		if (turn && !a.specs[a.count].turn[0])
			snprintf(a.specs[a.count].turn, WORD, "%s", o->turn);
		a.count++;
	}
	int all = a.count + turn;
	if (a.count == 0 && o->what == OP_APPEND) {
		answer_add(out, "OK 0-0");
		return;
	}
	int rc = all ? resolve_all(&a) : SHEAF_INVALID;
	bool same = false;
	uint64_t first = 0;
	int known = rc ? 0 : known_ids(&a, all, &same, &first);
	if (rc == 0 && known == 0 && a.unresolved)
		rc = SHEAF_NOT_FOUND;
	if (rc || (known && (turn || !same))) { /* a turn's end is new each time */
		m_answer_code(out, rc ? rc : SHEAF_CONFLICT);
		return;
	}
	if (known) {
		answer_add(out, "OK %llu-%llu existed", (unsigned long long)first,
		           (unsigned long long)first + (unsigned long long)a.count - 1);
		return;
	}
	const char *branch = "main";
	for (int i = a.count; i-- > 0;)
		if (!is_fact(&a.specs[i]))
			branch = a.specs[i].branch;
	if (!expected(s, o, branch, out))
		return;
	if (!branches_known(&a)) {
		m_answer_code(out, SHEAF_NOT_FOUND);
		return;
	}
	first = s->count + 1;
	for (int i = 0; i < a.count; i++) {
		m_record *r = m_session_add(m, s, SHEAF_KIND_MESSAGE);
		stamp(&a, r, i, all);
		m_session_apply(s, r);
	}
	if (turn)
		append_end(&a);
	answer_add(out, "OK %llu-%zu", (unsigned long long)first, s->count);
}

/* ---- Facts ----------------------------------------------------------------- */

static void answer_one(answer *a, const m_session *s)
{
	answer_add(a, "OK %zu-%zu", s->count, s->count);
}

void m_add_leaf(model *m, m_session *s, const char *branch, uint64_t target, bool gone)
{
	m_record *r = m_session_add(m, s, SHEAF_KIND_LEAF);
	snprintf(r->text, WORD, "%s", branch[0] ? branch : "main");
	r->target = target;
	r->gone = gone;
	m_session_apply(s, r);
}

void m_add_label(model *m, m_session *s, uint64_t target, const char *label)
{
	m_record *r = m_session_add(m, s, SHEAF_KIND_LABEL);
	r->target = target;
	snprintf(r->text, WORD, "%s", label);
}

void m_add_title(model *m, m_session *s, const char *title, const char *metadata)
{
	m_record *r = m_session_add(m, s, SHEAF_KIND_SESSION_INFO);
	r->named = true;
	snprintf(r->text, WORD, "%s", title);
	r->described = metadata[0] != 0;
	snprintf(r->metadata, WORD, "%s", metadata);
	m_session_apply(s, r);
}

static void run_branch(model *m, m_session *s, const op *o, answer *a)
{
	const char *branch = o->what == OP_CLEAR ? "main" : o->word;
	uint64_t target = 0;
	if (o->what == OP_BRANCH_DELETE && (!branch[0] || strcmp(branch, "main") == 0)) {
		m_answer_code(a, SHEAF_INVALID);
		return;
	}
	int rc = 0;
	if (o->what != OP_CLEAR && o->what != OP_BRANCH_DELETE && o->target.how != NAME_NONE)
		rc = m_resolve(s, &o->target, &target);
	if (rc) {
		m_answer_code(a, rc);
		return;
	}
	if (!expected(s, o, branch, a))
		return;
	if (o->what == OP_BRANCH_DELETE && !m_branch_find(s, branch)) {
		m_answer_code(a, SHEAF_NOT_FOUND);
		return;
	}
	if (o->what == OP_BRANCH_SUMMARY) {
		m_record *r = m_session_add(m, s, SHEAF_KIND_BRANCH_SUMMARY);
		snprintf(r->branch, WORD, "%s", branch[0] ? branch : "main");
		snprintf(r->text, WORD, "left %.18s", branch);
		r->parent = target;
		m_session_apply(s, r);
	} else {
		m_add_leaf(m, s, branch, target, o->what == OP_BRANCH_DELETE);
	}
	answer_one(a, s);
}

static void run_label(model *m, m_session *s, const op *o, answer *a)
{
	uint64_t target;
	int rc = m_resolve(s, &o->target, &target);
	if (rc) {
		m_answer_code(a, rc);
		return;
	}
	if (!expected(s, o, "main", a))
		return;
	m_add_label(m, s, target, o->word);
	answer_one(a, s);
}

static void run_rename(model *m, m_session *s, const op *o, answer *a)
{
	char metadata[WORD] = "";
	if (o->metadata)
		snprintf(metadata, WORD, "{\"n\":%llu}", (unsigned long long)o->tokens);
	if (!expected(s, o, "main", a))
		return;
	m_add_title(m, s, o->word, metadata);
	answer_one(a, s);
}

/* The entry a compaction keeps from: a fact stands for the next entry of the path. */
static int resolve_cut(const m_session *s, const op *o, uint64_t leaf, uint64_t *cut)
{
	*cut = 0;
	if (o->target.how == NAME_NONE)
		return 0;
	int rc = m_resolve(s, &o->target, cut);
	if (rc != SHEAF_INVALID)
		return rc;
	m_record *path[MODEL_RECORDS];
	size_t n = m_path(s, leaf, path);
	for (size_t i = 0; i < n; i++)
		if (path[i]->seq > *cut) {
			*cut = path[i]->seq;
			return 0;
		}
	return SHEAF_COMPACT;
}

static void run_compact(model *m, m_session *s, const op *o, answer *a)
{
	uint64_t cut;
	m_branch *b = m_branch_find(s, o->word);
	uint64_t stored = find_id(s, o->id);
	uint64_t leaf = b ? b->leaf : 0;
	if (stored)
		leaf = s->records[stored - 1]->parent;
	else if (!expected(s, o, o->word, a))
		return;
	int rc = resolve_cut(s, o, leaf, &cut);
	if (stored && (rc == 0 || rc == SHEAF_COMPACT)) {
		const m_record *r = s->records[stored - 1];
		if (rc == 0 && r->kind == SHEAF_KIND_COMPACTION && r->target == cut &&
		    strcmp(r->branch, o->word[0] ? o->word : "main") == 0)
			answer_add(a, "OK %llu-%llu existed", (unsigned long long)stored,
			           (unsigned long long)stored);
		else
			m_answer_code(a, SHEAF_CONFLICT);
		return;
	}
	if (rc == 0)
		rc = m_may_compact(s, leaf, cut);
	if (rc == 0 && !b)
		rc = SHEAF_NOT_FOUND;
	if (rc) {
		m_answer_code(a, rc);
		return;
	}
	m_record *r = m_session_add(m, s, SHEAF_KIND_COMPACTION);
	snprintf(r->id, WORD, "%s", o->id);
	snprintf(r->branch, WORD, "%s", b->name);
	r->parent = b->leaf;
	r->target = cut;
	r->timed = true;
	r->time_us = o->time_us;
	m_session_apply(s, r);
	answer_one(a, s);
}

/* ---- Running ---------------------------------------------------------------- */

void model_run(model *m, const op *o, answer *a)
{
	m_session *s = &m->sessions[o->key];
	m_session *other = &m->sessions[o->other];
	if (o->what == OP_DELETE || o->what == OP_PURGE) {
		m_run_delete(m, s, o, a);
		return;
	}
	if (o->what == OP_RESTART || o->what == OP_LIST) {
		m_read(m, o, a);
		return;
	}
	if (o->what == OP_OPEN_NEW) {
		m_answer_code(a, s->there ? SHEAF_EXISTS : 0);
		if (!s->there)
			m_session_begin(m, s);
		return;
	}
	if (!m_is_visible(s)) {
		answer_add(a, "no session");
		return;
	}
	switch (o->what) {
	case OP_APPEND:
	case OP_BATCH:
	case OP_TURN:
		run_append(m, s, o, a);
		break;
	case OP_LABEL:
		run_label(m, s, o, a);
		break;
	case OP_BRANCH:
	case OP_BRANCH_DELETE:
	case OP_BRANCH_SUMMARY:
	case OP_CLEAR:
		run_branch(m, s, o, a);
		break;
	case OP_RENAME:
		run_rename(m, s, o, a);
		break;
	case OP_COMPACT:
		run_compact(m, s, o, a);
		break;
	case OP_FORK:
		m_run_fork(m, s, other, o, a);
		break;
	case OP_COPY:
		m_run_copy(m, s, other, a);
		break;
	case OP_EXPORT:
		m_run_export(m, s, other, o, a);
		break;
	default:
		m_read(m, o, a);
		break;
	}
}
