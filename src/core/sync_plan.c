/* What a merge will do: which records come, whose word holds, where branches will stand. */
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/sync.h"
#include "entry/members.h"
#include "entry/retention.h"
#include "entry/state.h"

/* ---- Things that are set anew and again ----------------------------------------- */

static bool outranks(const latest *a, const latest *b)
{
	return a->rank != b->rank ? a->rank > b->rank
	                          : a->rank != INT64_MIN && str_cmp(a->id, b->id) > 0;
}

static int key_at(session_sync *s, sheaf_str name, sync_key **out)
{
	uint64_t at;
	int ok = 1;
	*out = NULL;
	if (map_get(&s->key_at, name, &at)) {
		*out = &s->keys[at];
		return 0;
	}
	if (mem_grow((void **)&s->keys, &s->key_room, s->key_count + 1, sizeof(*s->keys)) != 0)
		return SHEAF_NOMEM;
	sheaf_str kept = arena_dup(s->a, name, &ok);
	if (!ok || map_set(&s->key_at, kept, s->key_count) != 0)
		return SHEAF_NOMEM;
	*out = &s->keys[s->key_count++];
	**out = (sync_key){
		.name = kept,
		.there = {.rank = INT64_MIN},
		.here = {.rank = INT64_MIN},
		.row = SIZE_MAX,
	};
	return 0;
}

/* One record, on its way through keys_of(). */
typedef struct key_pass {
	session_sync *s;
	bool here;  /* of this store: only what the source has set, too, is of interest */
	size_t row; /* of the source: the candidate that stands for it, or SIZE_MAX */
	bool comes; /* the record will be appended whatever its keys */
	const record *r;
	int64_t rank;
	uint64_t kinds; /* of records that may set the same */
} key_pass;

static int take_key(key_pass *p, const char *what, sheaf_str of)
{
	session_sync *s = p->s;
	_cleanup_(buf_free) buf name = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	sync_key *k;
	uint64_t at;
	int ok = 1;
	buf_str(&name, sheaf_str_of(what));
	buf_str(&name, of);
	if (buf_status(&name, NULL) != 0)
		return name.status;
	if (p->here && !map_get(&s->key_at, buf_view(&name), &at))
		return 0;
	int rc = key_at(s, buf_view(&name), &k);
	if (rc != 0)
		return rc;
	latest *l = p->here ? &k->here : &k->there, said = {p->rank, p->r->id};
	if (outranks(&said, l)) {
		l->rank = said.rank;
		l->id = arena_dup(s->a, said.id, &ok);
	}
	if (!p->here) {
		s->key_kinds |= p->kinds;
		if (k->row != SIZE_MAX)
			s->rows[k->row] |= ROW_DROPPED;
		k->row = p->row;
		k->arrives = k->arrives || p->comes;
	}
	return ok ? 0 : SHEAF_NOMEM;
}

static sheaf_str payload(const record *r, const char *name)
{
	return members_inside(members_find(r->body, name));
}

/* The text of a member, still escaped: the same text is the same id. */
static int take_named(key_pass *p, const char *type, const char *what, const char *member)
{
	return take_key(p, what, members_find(payload(p->r, type), member));
}

static int take_settings(key_pass *p)
{
	int rc = 0;
	if (p->r->kind == SHEAF_KIND_SESSION_INFO) {
		sheaf_str info = payload(p->r, "session_info");
		if (members_find(info, "name").ptr != NULL)
			rc = take_key(p, "name", (sheaf_str){"", 0});
		if (rc == 0 && members_find(info, "metadata").ptr != NULL)
			rc = take_key(p, "metadata", (sheaf_str){"", 0});
		return rc;
	}
	retention_fact f = {.has_ttl = false};
	if (retention_read(&f, payload(p->r, "retention"), NULL) != 0)
		return 0;
	if (f.has_ttl || f.has_grace)
		rc = take_key(p, "ttl", (sheaf_str){"", 0});
	if (rc == 0 && f.has_pin)
		rc = take_key(p, "pin", (sheaf_str){"", 0});
	return rc;
}

static int take_state(key_pass *p)
{
	state_change change;
	size_t at = 0;
	sheaf_str delta = state_delta_of(p->r->body);
	int rc = 0;
	p->row = SIZE_MAX;
	p->kinds = SHEAF_KINDS_ALL;
	while (delta.ptr != NULL && (rc = state_delta_next(delta, &at, p->s->a, &change)) == 1) {
		if (change.scope == STATE_SESSION && (rc = take_key(p, "state ", change.key)) != 0)
			return rc;
	}
	return rc;
}

/* How far a file was imported counts, not when. */
static int64_t import_rank(const record *r)
{
	sheaf_str pieces = members_find(payload(r, "import"), "pieces");
	int64_t n = 0;
	for (size_t i = 0; i < pieces.len && i < 15 && pieces.ptr[i] >= '0' && pieces.ptr[i] <= '9';
	     i++)
		n = n * 10 + (pieces.ptr[i] - '0');
	return n;
}

/* Notes what a record sets. */
static int keys_of(key_pass *p)
{
	int rc = 0;
	p->rank = 0;
	p->kinds = SHEAF_KIND_BIT(p->r->kind);
	(void)clock_parse(p->r->timestamp, &p->rank);
	switch (p->r->kind) {
	case SHEAF_KIND_LABEL:
		rc = take_named(p, "label", "label ", "target_id");
		break;
	case SHEAF_KIND_TODO:
		rc = take_named(p, "todo", "todo ", "id");
		break;
	case SHEAF_KIND_PLAN:
		rc = take_named(p, "plan", "plan ", "id");
		break;
	case SHEAF_KIND_IMPORT:
		p->rank = import_rank(p->r);
		rc = take_key(p, "import", (sheaf_str){"", 0});
		break;
	case SHEAF_KIND_SESSION_INFO:
	case SHEAF_KIND_RETENTION:
		rc = take_settings(p);
		break;
	default:
		break;
	}
	return rc != 0 ? rc : take_state(p);
}

bool sync_takes(const session_sync *s, const char *key)
{
	uint64_t at;
	return map_get(&s->key_at, sheaf_str_of(key), &at) &&
	       outranks(&s->keys[at].there, &s->keys[at].here);
}

int64_t sync_said_at(const session_sync *s, const char *key)
{
	uint64_t at;
	return map_get(&s->key_at, sheaf_str_of(key), &at) ? s->keys[at].there.rank : INT64_MIN;
}

/* ---- Which records come ------------------------------------------------------------ */

typedef struct same_look {
	session_sync *s;
	const record *r;
	bool same;
} same_look;

/* Time and branch may differ: the one is never compared, the other may be NAME@SOURCE. */
static int look_at_ours(void *ctx, const sheaf_row *row)
{
	same_look *l = ctx;
	record mine;
	l->same = !row->damaged && record_scan(&mine, row->bytes, l->s->t.a) == 0 &&
	          str_eq(mine.type, l->r->type) && str_eq(mine.body, l->r->body) &&
	          str_eq(mine.parent_id, l->r->parent_id);
	return 1;
}

/* Whether a record is here; one with other content is a conflict. */
static int is_here(session_sync *s, const record *r, bool *here)
{
	uint64_t seq;
	same_look l = {s, r, false};
	sheaf_error local = {0};
	int rc = read_find(s->to, s->to_head, r->id, &seq, &local);
	*here = rc == 0;
	if (rc == SHEAF_NOT_FOUND)
		return 0;
	if (rc == 0)
		rc = read_row(s->to, s->to_head, seq, look_at_ours, &l, &local);
	if (rc == 0 && !l.same)
		rc = err_set(&local, SHEAF_CONFLICT,
		             "record %.*s has other content here (@%llu) than there (@%llu)",
		             (int)(r->id.len < 40 ? r->id.len : 40), r->id.ptr,
		             (unsigned long long)seq, (unsigned long long)r->seq);
	if (rc != 0)
		s->err = local;
	return rc;
}

static int add_row(session_sync *s, uint64_t seq)
{
	if (mem_grow((void **)&s->rows, &s->row_room, s->row_count + 1, sizeof(*s->rows)) != 0)
		return SHEAF_NOMEM;
	s->rows[s->row_count++] = seq;
	return 0;
}

static int look_at_theirs(void *ctx, const sheaf_row *row)
{
	session_sync *s = ctx;
	record r;
	bool here = true;
	if (row->seq > sheaf_head_revision(s->from_head))
		return 1;
	/* Only what is asked for of a record outlives it. */
	arena_clear(s->t.a);
	if (row->damaged || record_scan(&r, row->bytes, s->t.a) != 0)
		return err_set(&s->err, SHEAF_DAMAGED, "record %llu cannot be read there",
		               (unsigned long long)row->seq);
	s->looked++;
	s->c->totals.records_read++;
	key_pass p = {.s = s, .row = SIZE_MAX, .r = &r};
	switch (r.kind) {
	case SHEAF_KIND_LEAF:
	case SHEAF_KIND_LOST:
	case SHEAF_KIND_SYNC:
		return 0;
	case SHEAF_KIND_SESSION_INFO:
	case SHEAF_KIND_RETENTION:
		return keys_of(&p);
	default:
		break;
	}
	int rc = is_here(s, &r, &here);
	if (rc == 0 && !here) {
		rc = add_row(s, row->seq);
		p.row = s->row_count - 1;
		p.comes = true;
		s->entries += !record_kind_is_fact(r.kind);
	}
	return rc != 0 ? rc : keys_of(&p);
}

static int look_at_mine(void *ctx, const sheaf_row *row)
{
	session_sync *s = ctx;
	record r;
	arena_clear(s->t.a);
	/* What a merge wrote repeats what others have said. */
	if (row->damaged || row->kind == SHEAF_KIND_SYNC ||
	    record_scan(&r, row->bytes, s->t.a) != 0)
		return 0;
	key_pass p = {.s = s, .here = true, .row = SIZE_MAX, .r = &r};
	return keys_of(&p);
}

static int look_through(session_sync *s, sheaf_error *err)
{
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = s->start + 1,
		.limit = SIZE_MAX,
		.kinds = SHEAF_KINDS_ALL,
	};
	s->t.a = arena_new();
	if (s->t.a == NULL)
		return err_nomem(err);
	int rc = 0;
	if (s->start < sheaf_head_revision(s->from_head))
		rc = err_pass(err, &s->err,
		              read_scan(s->from, s->from_head, &scan, look_at_theirs, s, err));
	scan.from = s->here_start + 1;
	scan.kinds = s->key_kinds;
	if (rc == 0 && s->key_count != 0)
		rc = err_pass(err, &s->err,
		              read_scan(s->to, s->to_head, &scan, look_at_mine, s, err));
	arena_free(s->t.a);
	s->t.a = NULL;
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < s->key_count; i++) {
		const sync_key *k = &s->keys[i];
		if (k->row != SIZE_MAX && !outranks(&k->there, &k->here))
			s->rows[k->row] |= ROW_DROPPED;
	}
	for (size_t i = 0; i < s->row_count; i++)
		s->facts += (s->rows[i] & ROW_DROPPED) == 0;
	s->facts -= s->entries;
	return 0;
}

/* ---- Branches ------------------------------------------------------------------------ */

static place place_in(const sheaf_head *head, sheaf_str name)
{
	head_branch b;
	if (!head_branch_find(head, name, &b))
		return (place){.exists = false};
	return (place){
		.exists = true,
		.leaf = b.leaf_seq != 0 ? b.leaf : (sheaf_str){"", 0},
		.seq = b.leaf_seq,
	};
}

static bool place_eq(const place *a, const place *b)
{
	return a->exists == b->exists && (!a->exists || str_eq(a->leaf, b->leaf));
}

typedef struct ancestry {
	uint64_t wanted;
	bool found;
} ancestry;

static int look_for(void *ctx, const sheaf_row *row, const record *r)
{
	ancestry *a = ctx;
	(void)r;
	a->found = row->seq == a->wanted;
	return row->seq <= a->wanted;
}

/* Whether the path to a leaf goes through an entry; "" is before all. */
static int descends(sheaf_session *in, const sheaf_head *head, const place *leaf, sheaf_str from,
                    bool *out, sheaf_error *err)
{
	ancestry a = {0, false};
	sheaf_error local = {0};
	*out = from.len == 0;
	if (from.len == 0 || leaf->seq == 0)
		return 0;
	int rc = read_find(in, head, from, &a.wanted, &local);
	if (rc == SHEAF_NOT_FOUND || (rc == 0 && a.wanted > leaf->seq))
		return 0;
	if (rc == 0)
		rc = read_path(in, head, leaf->seq, look_for, NULL, &a, &local);
	*out = a.found;
	return err_pass(err, &local, rc);
}

static int decide(session_sync *s, sync_branch *b, sheaf_error *err)
{
	bool ahead = false, behind = false;
	if (place_eq(&b->there, &b->here) || place_eq(&b->there, &b->base))
		return 0;
	if (place_eq(&b->here, &b->base)) {
		b->what = BRANCH_MOVES;
		return 0;
	}
	if (!b->there.exists)
		return 0;
	int rc = 0;
	if (b->here.exists)
		rc = descends(s->from, s->from_head, &b->there, b->here.leaf, &ahead, err);
	if (rc == 0 && b->here.exists && !ahead)
		rc = descends(s->to, s->to_head, &b->here, b->there.leaf, &behind, err);
	if (!behind)
		b->what = ahead ? BRANCH_MOVES : BRANCH_APART;
	return rc;
}

static int add_branch(session_sync *s, sheaf_str name, sheaf_error *err)
{
	if (sync_is_aside(name))
		return 0;
	if (mem_grow((void **)&s->branches, &s->branch_room, s->branch_count + 1,
	             sizeof(*s->branches)) != 0)
		return err_nomem(err);
	sync_branch *b = &s->branches[s->branch_count++];
	*b = (sync_branch){
		.name = name,
		.base = sync_base_place(s, name),
		.there = place_in(s->from_head, name),
		.here = place_in(s->to_head, name),
	};
	int len = snprintf(b->aside, sizeof(b->aside), "%.*s@%s", (int)name.len, name.ptr,
	                   s->c->source);
	if (len < 0 || (size_t)len >= sizeof(b->aside))
		b->aside[0] = '\0';
	int rc = decide(s, b, err);
	if (rc == 0 && b->what == BRANCH_APART && b->aside[0] == '\0')
		rc = err_set(err, SHEAF_LIMIT,
		             "both moved a branch whose name is too long for NAME@%s",
		             s->c->source);
	return rc;
}

static int look_at_branches(session_sync *s, sheaf_error *err)
{
	head_branch b;
	sheaf_str name;
	size_t at = 0;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < head_branch_count(s->from_head); i++) {
		head_branch_at(s->from_head, i, &b);
		rc = add_branch(s, b.name, err);
	}
	/* Those that are gone there. */
	while (rc == 0 && sync_base_next(s, &at, &name)) {
		if (!head_branch_find(s->from_head, name, &b))
			rc = add_branch(s, name, err);
	}
	return rc;
}

/* What is set apart goes when the two agree again, unless somebody moved it. */
static bool is_over(const session_sync *s, const sync_branch *b)
{
	place aside = place_in(s->to_head, sheaf_str_of(b->aside));
	return b->aside[0] != '\0' && aside.exists &&
	       (place_eq(&aside, &b->base) || place_eq(&aside, &b->there)) &&
	       (b->what == BRANCH_MOVES || place_eq(&b->there, &b->here));
}

static int count_branches(session_sync *s, sheaf_error *err)
{
	size_t more = s->row_count != 0; /* the one for what is on no branch any more */
	for (size_t i = 0; i < s->branch_count; i++) {
		sync_branch *b = &s->branches[i];
		place aside = place_in(s->to_head, sheaf_str_of(b->aside));
		b->over = is_over(s, b);
		s->moved += b->what == BRANCH_MOVES;
		s->apart += b->what == BRANCH_APART && !place_eq(&aside, &b->there);
		s->over += b->over;
		more += b->what == BRANCH_MOVES ? !b->here.exists
		                                : b->what == BRANCH_APART && !aside.exists;
	}
	if (head_branch_count(s->to_head) + more > SHEAF_BRANCHES_MAX)
		return err_set(err, SHEAF_LIMIT, "it would have more than %u branches",
		               SHEAF_BRANCHES_MAX);
	return 0;
}

int sync_plan(session_sync *s, sheaf_error *err)
{
	int rc = look_through(s, err);
	if (rc == 0)
		rc = look_at_branches(s, err);
	return rc != 0 ? rc : count_branches(s, err);
}
