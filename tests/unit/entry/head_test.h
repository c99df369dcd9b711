/* A small log for the tests of heads: drafts applied to one head, their lines folded into another. */
#ifndef HEAD_TEST_H
#define HEAD_TEST_H

#include "entry_test.h"

#include "base/map.h"
#include "entry/head.h"

/* ---- A small log ------------------------------------------------------------ */

/* Applies drafts to one head and folds their lines into another; both must agree at every step. */
typedef struct log {
	sheaf_head *applied;
	sheaf_head *folded;
	json_doc *doc;
	arena *ids; /* keys of `seqs` */
	map seqs;
	uint64_t last_parent; /* as fold reported it */
} log;

static inline bool same_head(const sheaf_head *a, const sheaf_head *b)
{
	size_t n = sheaf_head_encode(a, NULL, 0);
	char *x = malloc(n), *y = malloc(n);
	bool same = sheaf_head_encode(b, NULL, 0) == n && sheaf_head_encode(a, x, n) == n &&
	            sheaf_head_encode(b, y, n) == n && memcmp(x, y, n) == 0;
	free(x);
	free(y);
	return same;
}

/* The state as a delta that makes it. */
static inline void state_text(const sheaf_head *h, buf *out)
{
	buf_reset(out);
	state_write(out, head_state(h));
	assert_code(0, out->status);
}

static inline bool same_state(const sheaf_head *a, const sheaf_head *b)
{
	_cleanup_(buf_free) buf x = BUF_INIT(SIZE_MAX);
	_cleanup_(buf_free) buf y = BUF_INIT(SIZE_MAX);
	state_text(a, &x);
	state_text(b, &y);
	return str_eq(buf_view(&x), buf_view(&y));
}

static inline int seq_of(void *ctx, sheaf_str id, uint64_t *seq)
{
	return map_get(&((log *)ctx)->seqs, id, seq);
}

static inline int fold_text(sheaf_head *h, sheaf_row *row, sheaf_str line, log *l)
{
	sheaf_error err = {0};
	*row = (sheaf_row){.bytes = line};
	int rc = sheaf_head_fold(h, row, seq_of, l, &err);
	assert_int_equal(rc, err.code);
	return rc;
}

static inline log log_begin(const header *hd)
{
	log l = {sheaf_head_new(), sheaf_head_new(), NULL, arena_new(), MAP_INIT, 0};
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 20);
	sheaf_row row;
	header_write(&b, hd);
	assert_code(0, fold_text(l.folded, &row, str_make(b.ptr, b.len - 1), &l));
	assert_int_equal(row.kind, SHEAF_KIND_SESSION);
	assert_int_equal(row.seq, hd->base);
	assert_int_equal(row.parent, 0);
	header ours = *hd;
	ours.ours = true;
	ours.version = 1;
	assert_code(0, head_begin(l.applied, &ours, NULL));
	assert_true(same_head(l.applied, l.folded));
	return l;
}

static inline log log_new(void)
{
	header hd = {.id = S("s"), .time_us = 1000, .cwd = S("/w")};
	return log_begin(&hd);
}

static inline void log_free(log *l)
{
	sheaf_head_free(l->applied);
	sheaf_head_free(l->folded);
	json_free(l->doc);
	arena_free(l->ids);
	map_free(&l->seqs);
}

/* One record more. Returns what the head said. */
static inline int log_try(log *l, const char *type, const char *body, const sheaf_entry_options *o)
{
	_cleanup_(buf_free) buf b = BUF_INIT(1 << 24);
	draft d;
	sheaf_error err = {0};
	if (draft_init(&d, sheaf_str_of(type), sheaf_str_of(body), false, o, &err) != 0)
		fail_msg("%s %s: %s", type, body, err.message);
	head_branch at = {0};
	sheaf_str branch = str_make(d.branch, d.branch_len), parent = NONE;
	uint64_t parent_seq = 0, seq = sheaf_head_revision(l->applied) + 1;
	if (!record_kind_is_fact(d.kind) && head_branch_find(l->applied, branch, &at) &&
	    at.leaf.len) {
		parent = at.leaf;
		parent_seq = at.leaf_seq;
	}
	uint64_t inherited = parent_seq <= head_base(l->applied) ? parent_seq : 0;
	record_write(&b, &d, parent, inherited, seq, 0, 1);
	uint64_t label = head_last_label(l->applied);
	int rc = head_apply(l->applied, d.kind, draft_id(&d), branch, buf_view(&d.body),
	                    draft_delta(&d), d.time_us, seq, &l->doc, NULL);
	if (rc == 0) {
		sheaf_row row;
		int ok = 1;
		assert_code(0, fold_text(l->folded, &row, str_make(b.ptr, b.len - 1), l));
		assert_int_equal(row.seq, seq);
		assert_int_equal(row.kind, d.kind);
		assert_str(row.id, draft_id(&d));
		assert_int_equal(row.parent, d.kind == SHEAF_KIND_LABEL ? label : parent_seq);
		assert_true(same_head(l->applied, l->folded));
		assert_true(same_state(l->applied, l->folded));
		assert_code(0, map_set(&l->seqs, arena_dup(l->ids, draft_id(&d), &ok), seq));
		l->last_parent = row.parent;
	}
	draft_free(&d);
	return rc;
}

static inline void add(log *l, const char *type, const char *body)
{
	assert_code(0, log_try(l, type, body, NULL));
}

static inline void add_as(log *l, const char *id, const char *branch, const char *type,
                          const char *body)
{
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	o.id = sheaf_str_of(id);
	o.branch = sheaf_str_of(branch);
	o.time_us = 5000;
	assert_code(0, log_try(l, type, body, &o));
}

static inline sheaf_session_info info_of(const log *l)
{
	sheaf_session_info info;
	sheaf_head_info(l->applied, &info);
	return info;
}

#define USER(text)                                                                                      \
	"{\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":{\"content\":\"" text \
	"\"}}]}}"
#define REPLY(more) "{\"message\":{\"role\":\"assistant\",\"content\":\"r\"" more "}"

static inline void random_steps(log *l, chance *c, int steps)
{
	static const char *const types[][2] = {
		{"message", USER("hello")},
		{"message", REPLY(",\"usage\":{\"input\":3,\"output\":4}") ",\"turn\":\"t1\"}"},
		{"custom", "{\"custom\":{\"custom_type\":\"c\"}}"},
		{"label", "{\"label\":{\"target_id\":\"x\",\"label\":\"y\"}}"},
		{"session_info", "{\"session_info\":{\"name\":\"n\",\"metadata\":{}}}"},
		{"session_info", "{\"session_info\":{\"name\":\"\"}}"},
		{"turn_end", "{\"turn_end\":{\"turn\":\"t1\",\"usage\":{\"input\":7}}}"},
		{"turn_end", "{\"turn_end\":{\"turn\":\"t2\",\"usage\":{\"input\":7}}}"},
		{"leaf", "{\"leaf\":{\"branch\":\"b1\"}}"},
		{"leaf", "{\"leaf\":{\"branch\":\"b2\",\"entry_id\":null}}"},
		{"thing", "{}"},
		{"thing", "{\"state_delta\":{\"a\":1,\"user:b\":2}}"},
		{"thing", "{\"state_delta\":{\"a\":null,\"b\":[],\"app:c\":3}}"},
	};
	static const char *const branches[] = {"main", "b1", "b2", "b\"3", "b4"};
	for (int i = 0; i < steps; i++) {
		size_t k = chance_below(c, COUNT_OF(types));
		sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
		o.branch = sheaf_str_of(branches[chance_below(c, COUNT_OF(branches))]);
		o.time_us = 1 + (int64_t)chance_below(c, 1000000);
		assert_code(0, log_try(l, types[k][0], types[k][1], &o));
	}
}

#endif
