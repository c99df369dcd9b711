/* What two logs of a session have in common: proved by a few records, by a sync fact, or read. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/sync.h"
#include "entry/members.h"

/* Compared at a time. */
#define PORTION_ROWS 1024u
#define PORTION_BYTES ((size_t)4 << 20)

typedef struct line_take {
	arena *a;
	uint64_t seq;
	sheaf_str id;
	sheaf_str line; /* ptr NULL: there is none */
} line_take;

static int take_line(void *ctx, const sheaf_row *row)
{
	line_take *t = ctx;
	int ok = 1;
	if (row->damaged)
		return 1;
	t->seq = row->seq;
	t->id = arena_dup(t->a, row->id, &ok);
	t->line = arena_dup(t->a, row->bytes, &ok);
	return ok ? 1 : SHEAF_NOMEM;
}

/* The newest sync fact up to a number. */
static int newest_sync(sheaf_session *in, const sheaf_head *head, uint64_t upto, line_take *out,
                       sheaf_error *err)
{
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = upto,
		.backward = 1,
		.limit = 1,
		.kinds = SHEAF_KIND_BIT(SHEAF_KIND_SYNC),
	};
	return upto == 0 ? 0 : read_scan(in, head, &scan, take_line, out, err);
}

static int line_at(sheaf_session *in, const sheaf_head *head, uint64_t seq, line_take *out,
                   sheaf_error *err)
{
	if (seq == 0 || seq > sheaf_head_revision(head))
		return 0;
	int rc = read_row(in, head, seq, take_line, out, err);
	return rc == SHEAF_NOT_FOUND ? 0 : rc;
}

int sync_same_upto(session_sync *s, uint64_t upto, bool *same, sheaf_error *err)
{
	*same = false;
	if (!str_eq(s->from_line, s->to_line))
		return 0;
	if (upto == head_base(s->to_head)) {
		*same = true;
		return 0;
	}
	_cleanup_(arena_freep) arena *a = arena_new();
	if (a == NULL)
		return err_nomem(err);
	line_take there = {.a = a}, here = {.a = a};
	int rc = newest_sync(s->to, s->to_head, upto, &here, err);
	if (rc == 0)
		rc = newest_sync(s->from, s->from_head, upto, &there, err);
	if (rc != 0 || here.seq != there.seq || !str_eq(here.id, there.id))
		return rc;
	here.line = there.line = (sheaf_str){NULL, 0};
	rc = line_at(s->to, s->to_head, upto, &here, err);
	if (rc == 0)
		rc = line_at(s->from, s->from_head, upto, &there, err);
	*same = rc == 0 && here.line.ptr != NULL && str_eq(here.line, there.line);
	return rc;
}

/* ---- By a sync fact ---------------------------------------------------------- */

/* Of many facts that name others the ones behind are not looked at. */
#define FACTS_LOOKED_AT 32

/* What a sync fact says of another log. */
typedef struct cursor {
	bool found;
	uint64_t at; /* the fact's own number */
	uint64_t seq;
	uint64_t same;
	char crc[16];
	char id[SHEAF_ID_ROOM];
	char mark[SHEAF_ID_ROOM];
} cursor;

static bool cursor_read(cursor *c, const json_val *sync, uint64_t at)
{
	sheaf_str crc = json_string(json_get(sync, "crc"));
	*c = (cursor){.at = at};
	if (crc.len == 0 || !json_u64(json_get(sync, "seq"), &c->seq))
		return false;
	(void)json_u64(json_get(sync, "same"), &c->same);
	str_copy_cut(c->crc, sizeof(c->crc), crc);
	str_copy_cut(c->id, sizeof(c->id), json_string(json_get(sync, "id")));
	str_copy_cut(c->mark, sizeof(c->mark), json_string(json_get(sync, "mark")));
	return true;
}

static bool has_crc(sheaf_str line, const char *crc)
{
	size_t len = strlen(crc);
	return line.len > len + 2 && memcmp(line.ptr + line.len - 2 - len, crc, len) == 0;
}

/* Whether a log is the one that a fact speaks of: by the argument of sync_same_upto(). */
static int cursor_holds(const cursor *c, sheaf_session *in, const sheaf_head *head, bool *holds,
                        sheaf_error *err)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	if (a == NULL)
		return err_nomem(err);
	line_take row = {.a = a}, mark = {.a = a};
	*holds = false;
	int rc = line_at(in, head, c->seq, &row, err);
	if (rc != 0 || row.line.ptr == NULL || !str_is(row.id, c->id) || !has_crc(row.line, c->crc))
		return rc;
	rc = newest_sync(in, head, c->seq, &mark, err);
	if (rc == 0)
		*holds = mark.line.ptr == NULL ? c->mark[0] == '\0' : str_is(mark.id, c->mark);
	return rc;
}

typedef struct cursor_look {
	session_sync *s;
	json_doc **doc;
	bool theirs; /* any fact that speaks of the log here; else one that names the source */
	cursor found;
} cursor_look;

/* The mark that a merge begins with says nothing and is passed over. */
static int look_at_fact(void *ctx, const sheaf_row *row)
{
	cursor_look *l = ctx;
	session_sync *s = l->s;
	record r;
	cursor c;
	if (row->damaged || record_scan(&r, row->bytes, s->a) != 0)
		return 0;
	int rc = json_parse(l->doc, members_find(r.body, "sync"), NULL);
	if (rc != 0)
		return rc == SHEAF_NOMEM ? rc : 0;
	const json_val *sync = json_root(*l->doc);
	if (!cursor_read(&c, sync, row->seq))
		return 0;
	bool holds = true;
	if (l->theirs)
		rc = cursor_holds(&c, s->to, s->to_head, &holds, &s->err);
	else
		holds = str_is(json_string(json_get(sync, "source")), s->c->source);
	if (rc != 0 || !holds)
		return rc;
	l->found = c;
	l->found.found = true;
	return 1;
}

static int look_for_fact(cursor_look *l, sheaf_session *in, const sheaf_head *head,
                         sheaf_error *err)
{
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = sheaf_head_revision(head),
		.backward = 1,
		.limit = FACTS_LOOKED_AT,
		.kinds = SHEAF_KIND_BIT(SHEAF_KIND_SYNC),
	};
	if (scan.from == 0)
		return 0;
	return err_pass(err, &l->s->err, read_scan(in, head, &scan, look_at_fact, l, err));
}

static int part_by_fact(session_sync *s, sheaf_error *err)
{
	cursor_look l = {.s = s, .doc = &s->base_doc};
	int rc = look_for_fact(&l, s->to, s->to_head, err);
	if (rc == 0 && l.found.found)
		rc = cursor_holds(&l.found, s->from, s->from_head, &s->has_cursor, err);
	if (rc == 0 && s->has_cursor) {
		s->start = l.found.seq;
		s->same = l.found.same;
	}
	return rc;
}

/* How far the source knows what is here: what was said before that, it has weighed already. */
static int known_there(session_sync *s, sheaf_error *err)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	cursor_look l = {.s = s, .doc = &doc, .theirs = true};
	int rc = look_for_fact(&l, s->from, s->from_head, err);
	s->here_start = l.found.found && l.found.seq > s->same ? l.found.seq : s->same;
	return rc;
}

int sync_cursor_body(const session_sync *s, buf *out, sheaf_error *err)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	if (a == NULL)
		return err_nomem(err);
	line_take last = {.a = a}, mark = {.a = a};
	head_branch b;
	uint64_t upto = sheaf_head_revision(s->from_head);
	int rc = line_at(s->from, s->from_head, upto, &last, err);
	if (rc == 0)
		rc = newest_sync(s->from, s->from_head, upto, &mark, err);
	if (rc == 0 && last.line.len < 10)
		rc = err_set(err, SHEAF_DAMAGED, "record %llu cannot be read",
		             (unsigned long long)upto);
	if (rc != 0)
		return rc;
	buf_lit(out, "\"sync\":{\"source\":");
	buf_json(out, sheaf_str_of(s->c->source));
	buf_format(out, ",\"seq\":%llu,\"id\":", (unsigned long long)upto);
	buf_json(out, last.id);
	buf_lit(out, ",\"crc\":");
	buf_json(out, str_make(last.line.ptr + last.line.len - 10, 8));
	if (mark.line.ptr != NULL) {
		buf_lit(out, ",\"mark\":");
		buf_json(out, mark.id);
	}
	if (s->same != 0)
		buf_format(out, ",\"same\":%llu", (unsigned long long)s->same);
	buf_lit(out, ",\"branches\":{");
	for (size_t i = 0, n = 0; i < head_branch_count(s->from_head); i++) {
		head_branch_at(s->from_head, i, &b);
		if (sync_is_aside(b.name))
			continue;
		if (n++ != 0)
			buf_char(out, ',');
		buf_json(out, b.name);
		buf_char(out, ':');
		buf_json(out, b.leaf_seq != 0 ? b.leaf : (sheaf_str){"", 0});
	}
	buf_lit(out, "}}");
	return buf_status(out, err);
}

/* ---- By reading ------------------------------------------------------------------ */

typedef struct portion {
	session_sync *s;
	arena *a;
	sheaf_str lines[PORTION_ROWS];
	size_t count;
	size_t bytes;
	size_t at; /* how many of them the source has, too */
} portion;

static int take_ours(void *ctx, const sheaf_row *row)
{
	portion *p = ctx;
	int ok = 1;
	if (row->damaged)
		return 1;
	p->lines[p->count++] = arena_dup(p->a, row->bytes, &ok);
	p->bytes += row->bytes.len;
	if (!ok)
		return SHEAF_NOMEM;
	return p->count == PORTION_ROWS || p->bytes > PORTION_BYTES;
}

static int known_parent(void *ctx, sheaf_str id, uint64_t *seq)
{
	const sheaf_row *row = ctx;
	(void)id;
	*seq = row->parent;
	return row->parent != 0;
}

static int compare_theirs(void *ctx, const sheaf_row *row)
{
	portion *p = ctx;
	sheaf_row copy = *row;
	if (row->damaged || !str_eq(row->bytes, p->lines[p->at]))
		return 1;
	int rc = sheaf_head_fold(p->s->base, &copy, known_parent, (void *)(uintptr_t)row,
	                         &p->s->err);
	if (rc != 0)
		return rc;
	return ++p->at == p->count;
}

static int compare_portion(session_sync *s, portion *p, sheaf_error *err)
{
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = s->start + 1,
		.limit = PORTION_ROWS,
		.kinds = SHEAF_KINDS_ALL,
	};
	p->s = s;
	p->count = p->at = p->bytes = 0;
	int rc = read_scan(s->to, s->to_head, &scan, take_ours, p, err);
	scan.limit = p->count;
	if (rc == 0 && p->count != 0)
		rc = err_pass(err, &s->err,
		              read_scan(s->from, s->from_head, &scan, compare_theirs, p, err));
	s->start += p->at;
	s->c->totals.records_read += p->at;
	return rc;
}

/* The beginning that both have, and what it amounts to. */
static int part_by_reading(session_sync *s, sheaf_error *err)
{
	header hd = s->from_hd;
	header_unlink(&hd);
	s->start = 0;
	s->base = sheaf_head_new();
	_cleanup_(mem_freep) portion *p = mem_zalloc(sizeof(*p));
	if (s->base == NULL || p == NULL)
		return err_nomem(err);
	int rc = head_begin(s->base, &hd, err);
	while (rc == 0) {
		p->a = arena_new();
		rc = p->a != NULL ? compare_portion(s, p, err) : err_nomem(err);
		arena_free(p->a);
		if (p->at < p->count || p->count == 0)
			break;
	}
	s->same = s->start;
	return rc;
}

int sync_part(session_sync *s, sheaf_error *err)
{
	int rc = part_by_fact(s, err);
	if (rc == 0 && !s->has_cursor)
		rc = part_by_reading(s, err);
	return rc != 0 ? rc : known_there(s, err);
}

/* ---- Branches as they were ----------------------------------------------------------- */

static const json_val *base_branches(const session_sync *s)
{
	return json_get(json_root(s->base_doc), "branches");
}

place sync_base_place(const session_sync *s, sheaf_str name)
{
	head_branch b;
	if (!s->has_cursor) {
		if (!head_branch_find(s->base, name, &b))
			return (place){.exists = false};
		return (place){.exists = true, .leaf = b.leaf};
	}
	for (json_iter it = json_each(base_branches(s)); json_next(&it);) {
		if (str_eq(json_string(it.key), name))
			return (place){.exists = true, .leaf = json_string(it.value)};
	}
	return (place){.exists = false};
}

bool sync_base_next(const session_sync *s, size_t *at, sheaf_str *name)
{
	size_t i = 0;
	head_branch b;
	if (!s->has_cursor) {
		if (*at >= head_branch_count(s->base))
			return false;
		head_branch_at(s->base, (*at)++, &b);
		*name = b.name;
		return true;
	}
	for (json_iter it = json_each(base_branches(s)); json_next(&it);) {
		if (i++ == *at) {
			(*at)++;
			*name = json_string(it.key);
			return true;
		}
	}
	return false;
}
