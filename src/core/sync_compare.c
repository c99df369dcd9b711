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

typedef struct cursor_look {
	session_sync *s;
	bool found;
	uint64_t here; /* the fact's own number */
	uint64_t seq;
	char crc[16];
	char id[SHEAF_ID_ROOM];
	char mark[SHEAF_ID_ROOM];
} cursor_look;

/* Facts of other sources are passed over, and so is the mark that a merge begins with. */
static int look_at_fact(void *ctx, const sheaf_row *row)
{
	cursor_look *l = ctx;
	session_sync *s = l->s;
	record r;
	if (row->damaged || record_scan(&r, row->bytes, s->a) != 0)
		return 0;
	int rc = json_parse(&s->base_doc, members_find(r.body, "sync"), NULL);
	if (rc == SHEAF_NOMEM)
		return rc;
	const json_val *sync = rc == 0 ? json_root(s->base_doc) : NULL;
	const json_val *crc = json_get(sync, "crc");
	if (crc == NULL || !str_is(json_string(json_get(sync, "source")), s->c->source) ||
	    !json_u64(json_get(sync, "seq"), &l->seq))
		return 0;
	str_copy_cut(l->crc, sizeof(l->crc), json_string(crc));
	str_copy_cut(l->id, sizeof(l->id), json_string(json_get(sync, "id")));
	str_copy_cut(l->mark, sizeof(l->mark), json_string(json_get(sync, "mark")));
	l->here = row->seq;
	l->found = true;
	return 1;
}

static bool has_crc(sheaf_str line, const char *crc)
{
	size_t len = strlen(crc);
	return line.len > len + 2 && memcmp(line.ptr + line.len - 2 - len, crc, len) == 0;
}

/* The fact holds if the source is the one it was: by the argument of sync_same_upto(). */
static int part_by_fact(session_sync *s, sheaf_error *err)
{
	cursor_look l = {.s = s};
	line_take there = {.a = s->a}, mark = {.a = s->a};
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = sheaf_head_revision(s->to_head),
		.backward = 1,
		.limit = SIZE_MAX,
		.kinds = SHEAF_KIND_BIT(SHEAF_KIND_SYNC),
	};
	int rc = scan.from == 0 ? 0 : read_scan(s->to, s->to_head, &scan, look_at_fact, &l, err);
	if (rc == 0 && l.found)
		rc = line_at(s->from, s->from_head, l.seq, &there, err);
	if (rc != 0 || there.line.ptr == NULL || !str_is(there.id, l.id) ||
	    !has_crc(there.line, l.crc))
		return rc;
	rc = newest_sync(s->from, s->from_head, l.seq, &mark, err);
	if (rc != 0)
		return rc;
	s->has_cursor = mark.line.ptr == NULL ? l.mark[0] == '\0' : str_is(mark.id, l.mark);
	s->start = l.seq;
	s->here_start = l.here;
	return 0;
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
	s->here_start = s->start;
	return rc;
}

int sync_part(session_sync *s, sheaf_error *err)
{
	int rc = part_by_fact(s, err);
	return rc != 0 || s->has_cursor ? rc : part_by_reading(s, err);
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
