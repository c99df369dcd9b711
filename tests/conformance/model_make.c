/* The naive model, continued: forks, copies, exported paths, and deletion. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* ---- Making sessions of sessions -------------------------------------------- */

/* The records after the first `from` are one batch. */
static void one_batch(m_session *s, size_t from)
{
	for (size_t i = from; i < s->count; i++) {
		s->records[i]->batch_index = i - from;
		s->records[i]->batch_count = s->count - from;
	}
}

/*
 * Facts at the end that make a log on its own say what the session said: the
 * records may hold branches, a leaf or a name of somebody else.
 */
static void settle(model *m, m_session *s, const m_session *goal)
{
	size_t before = s->count;
	for (int i = 1; i < s->branch_count;) {
		char branch[WORD];
		snprintf(branch, WORD, "%s", s->branches[i].name);
		if (m_branch_find((m_session *)(uintptr_t)goal, branch))
			i++;
		else
			m_add_leaf(m, s, branch, 0, true);
	}
	for (int i = 0; i < goal->branch_count; i++) {
		const m_branch *want = &goal->branches[i];
		const m_branch *is = m_branch_find(s, want->name);
		if (!is || is->leaf != want->leaf)
			m_add_leaf(m, s, want->name, want->leaf, false);
	}
	bool same_metadata = strcmp(s->metadata, goal->metadata) == 0;
	if (strcmp(s->title, goal->title) != 0 || !same_metadata)
		m_add_title(m, s, goal->title,
		            same_metadata       ? ""
		            : goal->metadata[0] ? goal->metadata
		                                : "{}");
	one_batch(s, before);
}

/* All records of `from` as a log on its own, in `to`. */
static void stand_alone(model *m, m_session *to, const m_session *from)
{
	m_session_begin(m, to);
	for (size_t i = 0; i < from->count; i++) {
		m_session_push(to, from->records[i], to->self);
		m_session_apply(to, from->records[i]);
	}
	if (from->base)
		settle(m, to, from);
}

void m_run_fork(model *m, m_session *s, m_session *f, const op *o, answer *a)
{
	uint64_t at = s->branches[0].leaf;
	int rc = at || o->target.how != NAME_NONE ? 0 : SHEAF_NOT_FOUND;
	if (o->target.how != NAME_NONE)
		rc = m_resolve(s, &o->target, &at);
	if (rc == 0 && f->there)
		rc = SHEAF_EXISTS;
	if (rc) {
		m_answer_code(a, rc);
		return;
	}
	const m_record *r = s->records[at - 1];
	uint64_t base = at + (r->batch_count - 1 - r->batch_index);
	m_session_begin(m, f);
	for (size_t i = 0; i < base; i++)
		m_session_push(f, s->records[i], s->homes[i]);
	f->base = base;
	f->branches[0].leaf = at;
	snprintf(f->source, WORD, "s%d", o->key);
	if (s->title[0] || s->metadata[0])
		m_add_title(m, f, s->title, s->metadata);
	for (size_t i = base; i < s->count; i++) {
		const m_record *l = s->records[i];
		bool latest = l->kind == SHEAF_KIND_LABEL && l->target <= base;
		for (size_t k = i + 1; k < s->count; k++)
			latest &= s->records[k]->kind != SHEAF_KIND_LABEL ||
			          s->records[k]->target != l->target;
		if (latest)
			m_add_label(m, f, l->target, l->text);
	}
	one_batch(f, base);
	answer_add(a, "OK base=%llu rev=%zu", (unsigned long long)base, f->count);
}

void m_run_copy(model *m, m_session *s, m_session *c, answer *a)
{
	if (c->there) {
		m_answer_code(a, SHEAF_EXISTS);
		return;
	}
	stand_alone(m, c, s);
	answer_add(a, "OK rev=%zu", c->count);
}

void m_run_export(model *m, m_session *s, m_session *e, const op *o, answer *a)
{
	uint64_t leaf = s->branches[0].leaf;
	int rc = o->target.how != NAME_NONE ? m_resolve(s, &o->target, &leaf) : 0;
	if (rc == 0 && e->there)
		rc = SHEAF_EXISTS;
	if (rc) {
		m_answer_code(a, rc);
		return;
	}
	m_record *path[MODEL_RECORDS];
	size_t n = m_path(s, leaf, path);
	m_session_begin(m, e);
	for (size_t i = 0; i < n; i++) {
		m_record *r = m_session_add(m, e, path[i]->kind);
		uint64_t seq = r->seq;
		*r = *path[i];
		r->seq = seq;
		r->parent = i;
		r->batch_index = 0;
		r->batch_count = 1;
		snprintf(r->branch, WORD, "main");
		for (size_t k = 0; k < n; k++)
			if (path[i]->target && path[k]->seq == path[i]->target)
				r->target = k + 1;
		m_session_apply(e, r);
	}
	size_t before = e->count;
	for (size_t i = 0; i < s->count; i++)
		for (size_t k = 0; k < n && s->records[i]->kind == SHEAF_KIND_LABEL; k++)
			if (path[k]->seq == s->records[i]->target && m_label(s, path[k]->seq)[0]) {
				bool latest = true;
				for (size_t l = i + 1; l < s->count; l++)
					latest &= s->records[l]->kind != SHEAF_KIND_LABEL ||
					          s->records[l]->target != path[k]->seq;
				if (latest)
					m_add_label(m, e, k + 1, s->records[i]->text);
			}
	one_batch(e, before);
	if (s->title[0] || (s->metadata[0] && strcmp(s->metadata, "{}") != 0))
		m_add_title(m, e, s->title, strcmp(s->metadata, "{}") == 0 ? "" : s->metadata);
	answer_add(a, "OK rev=%zu", e->count);
}

/* ---- Deleting -------------------------------------------------------------- */

static bool reads(const m_session *reader, const m_session *s)
{
	for (size_t i = 0; reader->there && reader != s && i < reader->count; i++)
		if (reader->homes[i] == s->self)
			return true;
	return false;
}

static bool has_readers(const model *m, const m_session *s)
{
	for (int i = 0; i < KEYS; i++)
		if (m_is_visible(&m->sessions[i]) && reads(&m->sessions[i], s))
			return true;
	return false;
}

/* Hidden sessions that nobody reads any more go. */
static void reap(model *m)
{
	for (int i = 0; i < KEYS; i++)
		if (m->sessions[i].there && m->sessions[i].hidden &&
		    !has_readers(m, &m->sessions[i]))
			m->sessions[i].there = false;
}

void m_run_delete(model *m, m_session *s, const op *o, answer *a)
{
	bool existed = m_is_visible(s);
	answer_add(a, "OK existed=%d", existed);
	if (!s->there)
		return;
	bool forks[KEYS] = {false};
	bool any = false;
	for (int i = 0; i < KEYS; i++) {
		forks[i] = m_is_visible(&m->sessions[i]) && reads(&m->sessions[i], s);
		any |= forks[i];
	}
	bool purge = o->what == OP_PURGE;
	answer_add(a, " hidden=%d forks=", any && !purge);
	for (int i = 0; i < KEYS; i++)
		if (forks[i])
			answer_add(a, "s%d,", i);
	for (int i = 0; i < KEYS && purge; i++)
		if (forks[i]) {
			m_session *f = &m->sessions[i];
			m_session alone = {0};
			stand_alone(m, &alone, f);
			free(f->records);
			free(f->homes);
			*f = alone;
		}
	s->hidden = true;
	reap(m);
}
