/* Makes up the operations of a history. */
#include "histories_gen.h"

#include <stdio.h>
#include <string.h>

#define TIME_BASE INT64_C(100000000000000) /* 1973: no clock says that */

void generator_begin(generator *g, uint64_t seed)
{
	memset(g, 0, sizeof(*g));
	g->state = seed;
}

/* splitmix64 */
uint64_t generator_random(generator *g, uint64_t below)
{
	uint64_t z = (g->state += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % below;
}

#define R(n) ((int)generator_random(g, (uint64_t)(n)))
#define CHANCE(percent) (R(100) < (percent))

static int64_t some_time(generator *g)
{
	return TIME_BASE + R(1000000) * INT64_C(1000);
}

static void some_id(generator *g, char out[WORD])
{
	snprintf(out, WORD, "r%02x-%d", R(256), g->ids++);
}

/* Mostly one that is there. */
static void some_branch(generator *g, const m_session *s, char out[WORD], int percent_main)
{
	static const char *const branches[] = {"b1", "b2", "b3"};
	out[0] = 0;
	if (CHANCE(percent_main))
		snprintf(out, WORD, "%s", CHANCE(10) ? "main" : "");
	else if (CHANCE(85) && s->there)
		snprintf(out, WORD, "%s", s->branches[R(s->branch_count)].name);
	else
		snprintf(out, WORD, "%s", branches[R(3)]);
}

static void some_label(generator *g, char out[WORD])
{
	snprintf(out, WORD, "l%d", R(4));
}

static name some_name(generator *g, const m_session *s)
{
	name n = {.how = NAME_SEQ};
	int dice = R(100);
	if (dice < 4 || s->count == 0) {
		n.how = NAME_WORD;
		snprintf(n.word, WORD, "ghost");
	} else if (dice < 12) {
		n.how = NAME_WORD;
		some_label(g, n.word);
	} else {
		n.seq = 1 + generator_random(g, s->count);
		for (int i = 0; i < 4 && m_is_fact(s->records[n.seq - 1]) && dice > 15; i++)
			n.seq = 1 + generator_random(g, s->count);
	}
	return n;
}

/* ---- Records ------------------------------------------------------------------ */

static void some_calls(generator *g, int key, spec *s)
{
	int *recent = g->recent[key];
	s->call_count = CHANCE(25) ? 2 : 1;
	for (int i = 0; i < s->call_count; i++) {
		bool old = s->what == SPEC_ANSWER ? !CHANCE(6) : CHANCE(10);
		s->calls[i] = old ? recent[R(4)] : ++g->calls;
		if (s->what == SPEC_CALL)
			recent[R(4)] = s->calls[i];
	}
	if (s->call_count == 2 && s->calls[0] == s->calls[1] && CHANCE(70))
		s->call_count = 1;
}

static void some_spec(generator *g, const m_session *s, int key, spec *x)
{
	static const spec_kind kinds[] = {
		SPEC_TEXT,  SPEC_TEXT,   SPEC_TEXT,        SPEC_TEXT,   SPEC_TEXT,   SPEC_CALL,
		SPEC_CALL,  SPEC_CALL,   SPEC_ANSWER,      SPEC_ANSWER, SPEC_ANSWER, SPEC_MODEL,
		SPEC_LEVEL, SPEC_CUSTOM, SPEC_CUSTOM_TEXT, SPEC_LABEL,  SPEC_TITLE};
	static const char *const roles[] = {"user", "assistant", "system"};
	static const char *const agents[] = {"a", "a.b", "c"};
	memset(x, 0, sizeof(*x));
	x->what = kinds[R(sizeof(kinds) / sizeof(kinds[0]))];
	x->role = roles[R(3)];
	some_id(g, x->id);
	x->time_us = some_time(g);
	snprintf(x->text, WORD, "t%d", R(1000));
	if (x->what == SPEC_TEXT && CHANCE(5))
		x->text[0] = 0;
	if (x->what == SPEC_CALL || x->what == SPEC_ANSWER)
		some_calls(g, key, x);
	if (CHANCE(12))
		snprintf(x->turn, WORD, "turn%d", R(3));
	if (CHANCE(8) && x->what <= SPEC_ANSWER)
		snprintf(x->agent, WORD, "%s", agents[R(3)]);
	if (x->what == SPEC_TEXT && CHANCE(15))
		x->tokens = 1 + generator_random(g, 100);
	x->partial = CHANCE(2);
	if (x->what == SPEC_TITLE) {
		snprintf(x->text, WORD, "title%d", R(5));
		return;
	}
	if (x->what == SPEC_LABEL) {
		some_label(g, x->text);
		x->target = some_name(g, s);
		if (x->target.how == NAME_WORD) /* a record of one's own names ids only */
			snprintf(x->target.word, WORD, "ghost");
		return;
	}
	some_branch(g, s, x->branch, 70);
	x->has_parent = CHANCE(18);
	if (x->has_parent && !CHANCE(25))
		x->parent = some_name(g, s);
}

static void some_expectation(generator *g, m_session *s, const char *branch, op *o)
{
	int dice = R(100);
	o->expect = SHEAF_EXPECT_ANY;
	if (dice >= 60 && dice < 88) {
		const m_branch *b = m_branch_find(s, branch);
		o->expect = SHEAF_EXPECT_LEAF;
		o->leaf = (name){.how = b && b->leaf ? NAME_SEQ : NAME_NONE,
		                 .seq = b ? b->leaf : 0};
		if (dice >= 80)
			o->leaf = some_name(g, s);
		if (o->leaf.how == NAME_WORD) /* a leaf is expected by its id */
			snprintf(o->leaf.word, WORD, "ghost");
	} else if (dice >= 88) {
		o->expect = SHEAF_EXPECT_REVISION;
		o->revision = dice < 96 ? s->count : generator_random(g, s->count + 3);
	}
}

static void some_append(generator *g, m_session *s, op *o)
{
	o->count = o->what == OP_APPEND ? 1 : R(SPECS) + 1;
	for (int i = 0; i < o->count; i++) {
		some_spec(g, s, o->key, &o->specs[i]);
		if (i && o->specs[i].has_parent && CHANCE(40)) { /* one of the same batch */
			o->specs[i].parent = (name){.how = NAME_WORD};
			memcpy(o->specs[i].parent.word, o->specs[R(i)].id, WORD);
		}
		if (i && CHANCE(1))
			snprintf(o->specs[i].id, WORD, "%s", o->specs[0].id);
	}
	if (o->what == OP_TURN) {
		snprintf(o->turn, WORD, "turn%d", R(3));
		o->tokens = CHANCE(50) ? 1 + generator_random(g, 100) : 0;
	}
	const char *branch = "";
	for (int i = o->count; i-- > 0;)
		if (o->specs[i].what < SPEC_LABEL)
			branch = o->specs[i].branch;
	some_expectation(g, s, branch, o);
	if (o->what != OP_TURN) {
		int place = g->past_count < PAST ? g->past_count++ : R(PAST);
		g->past[place] = *o;
	}
}

static void some_repeat(generator *g, const model *m, op *o)
{
	int handle = o->handle;
	if (!g->past_count)
		return;
	*o = g->past[R(g->past_count)];
	o->handle = handle;
	if (CHANCE(25)) { /* where it may be inherited */
		int key = R(KEYS);
		for (int i = 0; i < 8 && m->sessions[key].base == 0; i++)
			key = R(KEYS);
		o->key = key;
	}
	if (o->what == OP_COMPACT || CHANCE(50))
		return;
	spec *x = &o->specs[R(o->count)];
	switch (R(6)) {
	case 4:
		some_branch(g, &m->sessions[o->key], x->branch, 50);
		break;
	case 5:
		x->has_parent = true;
		x->parent = CHANCE(30) ? (name){NAME_NONE, 0, ""}
		                       : some_name(g, &m->sessions[o->key]);
		break;
	case 0:
		snprintf(x->text, WORD, "changed");
		break;
	case 1:
		x->time_us = some_time(g); /* which is no change */
		break;
	case 2:
		o->expect = SHEAF_EXPECT_REVISION;
		o->revision = 0;
		break;
	default:
		o->count = 1 + R(o->count);
		break;
	}
}

static void some_compaction(generator *g, m_session *s, op *o)
{
	some_id(g, o->id);
	o->time_us = some_time(g);
	some_branch(g, s, o->word, 75);
	m_branch *b = m_branch_find(s, o->word);
	if (!CHANCE(20))
		o->target = some_name(g, s);
	if (b && b->leaf && CHANCE(60)) { /* somewhere up the path */
		o->target = (name){.how = NAME_SEQ, .seq = b->leaf};
		for (int up = R(8); up > 0 && s->records[o->target.seq - 1]->parent; up--)
			o->target.seq = s->records[o->target.seq - 1]->parent;
	}
	some_expectation(g, s, o->word, o);
	int place = g->past_count < PAST ? g->past_count++ : R(PAST);
	g->past[place] = *o;
}

/* ---- Operations ---------------------------------------------------------------- */

static void some_read(generator *g, m_session *s, op *o)
{
	static const char *const agents[] = {"a", "a.b", "a.b.c", "c", "d"};
	if (CHANCE(40))
		o->target = some_name(g, s);
	some_branch(g, s, o->word, 50);
	switch (o->what) {
	case OP_RECORDS:
		o->backward = CHANCE(40);
		o->newest = CHANCE(25);
		o->own_only = CHANCE(20);
		o->limit = 1 + generator_random(g, 20);
		o->from_seq = CHANCE(50) ? 1 + generator_random(g, s->count + 2) : 0;
		o->after_us = CHANCE(30) ? some_time(g) : 0;
		if (CHANCE(40))
			o->kinds = CHANCE(50) ? SHEAF_KINDS_ENTRIES
			                      : SHEAF_KIND_BIT(SHEAF_KIND_LABEL) |
			                                SHEAF_KIND_BIT(SHEAF_KIND_MESSAGE);
		break;
	case OP_PATH:
		o->limit = CHANCE(40) ? 1 + generator_random(g, 5) : 0;
		break;
	case OP_CONTEXT:
		o->without = CHANCE(15);
		if (CHANCE(15))
			snprintf(o->agent, WORD, "%s", agents[R(5)]);
		break;
	case OP_RESOLVE:
		snprintf(o->word, WORD, "%.*s", 2 + R(4),
		         s->count ? s->records[generator_random(g, s->count)]->id : "");
		if (!o->word[0])
			some_label(g, o->word);
		break;
	default:
		break;
	}
}

static void some_fact(generator *g, m_session *s, op *o)
{
	const char *branch = "";
	switch (o->what) {
	case OP_LABEL:
		o->target = some_name(g, s);
		if (!CHANCE(20))
			some_label(g, o->word);
		break;
	case OP_RENAME:
		if (!CHANCE(15))
			snprintf(o->word, WORD, "title%d", R(5));
		o->metadata = CHANCE(30);
		o->tokens = generator_random(g, 3);
		break;
	default:
		some_branch(g, s, o->word, o->what == OP_BRANCH_DELETE ? 5 : 40);
		if (o->what == OP_BRANCH && CHANCE(30))
			snprintf(o->word, WORD, "b%d", 1 + R(3));
		branch = o->word;
		if (!CHANCE(12))
			o->target = some_name(g, s);
		break;
	}
	some_expectation(g, s, branch, o);
}

static op_kind some_kind(generator *g)
{
	static const struct {
		op_kind what;
		int weight;
	} table[] = {
		{OP_OPEN_NEW, 3}, {OP_APPEND, 30}, {OP_BATCH, 8},         {OP_TURN, 4},
		{OP_LABEL, 6},    {OP_BRANCH, 5},  {OP_BRANCH_DELETE, 1}, {OP_BRANCH_SUMMARY, 2},
		{OP_CLEAR, 1},    {OP_RENAME, 3},  {OP_COMPACT, 5},       {OP_FORK, 7},
		{OP_COPY, 1},     {OP_EXPORT, 1},  {OP_DELETE, 3},        {OP_PURGE, 2},
		{OP_RESTART, 1},  {OP_HEAD, 1},    {OP_PATH, 2},          {OP_RECORDS, 3},
		{OP_LABELS, 1},   {OP_TREE, 1},    {OP_CONTEXT, 4},       {OP_GET, 1},
		{OP_CHILDREN, 1}, {OP_RESOLVE, 1}, {OP_LIST, 1},          {OP_COUNT, 6}};
	int sum = 0;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		sum += table[i].weight;
	int dice = R(sum);
	for (size_t i = 0;; i++) {
		dice -= table[i].weight;
		if (dice < 0)
			return table[i].what;
	}
}

void generator_next(generator *g, model *m, op *o)
{
	memset(o, 0, sizeof(*o));
	o->what = some_kind(g);
	/* Most of it happens in two sessions, so that they grow; the others are made of them. */
	o->key = CHANCE(65) ? R(2) : R(KEYS);
	o->other = R(KEYS);
	for (int i = 0; i < 8 && m->sessions[o->other].there; i++)
		o->other = R(KEYS);
	o->handle = R(2);
	if ((o->what == OP_DELETE || o->what == OP_PURGE) && o->key < 2 && CHANCE(40))
		o->key = 2 + R(KEYS - 2);
	m_session *s = &m->sessions[o->key];
	if (!s->there && CHANCE(o->key < 2 ? 90 : 10))
		o->what = OP_OPEN_NEW;
	switch (o->what) {
	case OP_COUNT:
		o->what = OP_APPEND;
		some_append(g, s, o);
		some_repeat(g, m, o);
		break;
	case OP_APPEND:
	case OP_BATCH:
	case OP_TURN:
		some_append(g, s, o);
		break;
	case OP_LABEL:
	case OP_BRANCH:
	case OP_BRANCH_DELETE:
	case OP_BRANCH_SUMMARY:
	case OP_RENAME:
		some_fact(g, s, o);
		break;
	case OP_CLEAR:
		o->expect = SHEAF_EXPECT_ANY;
		break;
	case OP_COMPACT:
		some_compaction(g, s, o);
		break;
	case OP_FORK:
	case OP_EXPORT:
		if (CHANCE(70))
			o->target = some_name(g, s);
		break;
	default:
		some_read(g, s, o);
		break;
	}
}

bool generator_look(const model *m, int key, int n, op *o)
{
	const m_session *s = &m->sessions[key];
	memset(o, 0, sizeof(*o));
	o->key = key;
	static const op_kind looks[] = {OP_HEAD, OP_RECORDS, OP_LABELS, OP_TREE};
	if (n < 4) {
		o->what = looks[n];
		o->limit = 50;
		return true;
	}
	int branch = (n - 4) / 2;
	if (branch >= s->branch_count)
		return false;
	o->what = n % 2 ? OP_CONTEXT : OP_PATH;
	snprintf(o->word, WORD, "%s", s->branches[branch].name);
	return true;
}

/* ---- Printing -------------------------------------------------------------------- */

static void print_name(answer *a, const char *what, const name *n)
{
	if (n->how == NAME_SEQ)
		answer_add(a, " %s=#%llu", what, (unsigned long long)n->seq);
	else if (n->how == NAME_WORD)
		answer_add(a, " %s=\"%s\"", what, n->word);
}

static void print_spec(answer *a, const spec *s)
{
	static const char *const kinds[] = {"text",   "call",        "answer", "model", "level",
	                                    "custom", "custom_text", "label",  "title"};
	answer_add(a, "\n    %s %s %s \"%s\"", s->id, kinds[s->what],
	           s->what == SPEC_TEXT ? s->role : "", s->text);
	for (int i = 0; i < s->call_count; i++)
		answer_add(a, " c%d", s->calls[i]);
	if (s->branch[0])
		answer_add(a, " branch=%s", s->branch);
	if (s->has_parent && s->parent.how == NAME_NONE)
		answer_add(a, " root");
	print_name(a, "parent", &s->parent);
	print_name(a, "target", &s->target);
	if (s->turn[0])
		answer_add(a, " turn=%s", s->turn);
	if (s->agent[0])
		answer_add(a, " agent=%s", s->agent);
	if (s->tokens)
		answer_add(a, " tokens=%llu", (unsigned long long)s->tokens);
	if (s->partial)
		answer_add(a, " partial");
}

void op_print(const op *o, answer *a)
{
	static const char *const kinds[] = {
		"open_new",      "append",         "batch",  "turn",   "label",   "branch",
		"branch_delete", "branch_summary", "clear",  "rename", "compact", "fork",
		"copy",          "export",         "delete", "purge",  "restart", "head",
		"path",          "records",        "labels", "tree",   "context", "get",
		"children",      "resolve",        "list"};
	static const char *const expects[] = {"", "", "leaf", "revision"};
	answer_add(a, "%s s%d (handle %d)", kinds[o->what], o->key, o->handle);
	if (o->what == OP_FORK || o->what == OP_COPY || o->what == OP_EXPORT)
		answer_add(a, " to s%d", o->other);
	if (o->id[0])
		answer_add(a, " id=%s", o->id);
	if (o->word[0])
		answer_add(a, " word=%s", o->word);
	print_name(a, "target", &o->target);
	if (o->expect > SHEAF_EXPECT_ANY)
		answer_add(a, " expect %s %llu", expects[o->expect],
		           (unsigned long long)o->revision);
	print_name(a, "leaf", &o->leaf);
	if (o->turn[0])
		answer_add(a, " turn=%s tokens=%llu", o->turn, (unsigned long long)o->tokens);
	if (o->what == OP_RECORDS)
		answer_add(a, " from=%llu limit=%zu kinds=%llx%s%s%s",
		           (unsigned long long)o->from_seq, o->limit, (unsigned long long)o->kinds,
		           o->backward ? " backward" : "", o->newest ? " newest" : "",
		           o->own_only ? " own" : "");
	if (o->without || o->agent[0])
		answer_add(a, " agent=%s%s", o->agent, o->without ? " without compaction" : "");
	for (int i = 0; i < o->count; i++)
		print_spec(a, &o->specs[i]);
}
