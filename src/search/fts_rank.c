/*
 * How good a hit is, and the best of them.
 *
 * BM25 over the words of the query, times what the role is worth, times how new
 * it is. All of that is in the hit's number (see fts.h), so a text is looked up
 * only if it is about to be among the best.
 */
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "search/fts.h"

#define K1 1.2
#define B 0.6
#define LENGTH_MEAN 600.0 /* bytes; a constant, so that a rank does not depend on others */
#define COMMON 20000      /* a word in more texts than this weighs as one in so many */
#define TIMES_MAX 16      /* more occurrences than this make nothing better */
#define NEWNESS_DAYS 30.0 /* after which newness is worth half */
#define DAY_US (INT64_C(86400) * 1000000)
#define DAYS_TO_2000 10957
#define BEST_LEAST 64u
#define PER_LIMIT 8u

static const double role_worth[8] = {
	[SHEAF_HIT_TITLE] = 3.0,   [SHEAF_HIT_USER] = 1.5,  [SHEAF_HIT_ASSISTANT] = 1.0,
	[SHEAF_HIT_CALL] = 0.8,    [SHEAF_HIT_TOOL] = 0.5,  [SHEAF_HIT_SYSTEM] = 0.3,
	[SHEAF_HIT_SUMMARY] = 0.8, [SHEAF_HIT_OTHER] = 0.6,
};

int day_of(int64_t time_us)
{
	int64_t day = time_us / DAY_US - DAYS_TO_2000;
	return day < 0 ? 0 : day >= ID_DAYS ? ID_DAYS - 1 : (int)day;
}

int length_of(size_t bytes)
{
	int n = 0;
	/* The greatest n with 2^(n/2) <= bytes: 16, 23, 32, 45 … */
	while (n < 31 && (double)bytes >= exp2((n + 1) / 2.0))
		n++;
	return n;
}

/* ---- The words of SQLite's tables -------------------------------------------------- */

typedef struct feeding {
	int (*token)(void *ctx, int flags, const char *text, int len, int begin, int end);
	void *ctx;
} feeding;

static int feed_word(void *ctx, const word *w)
{
	feeding *f = ctx;
	return f->token(f->ctx, w->same_place ? FTS5_TOKEN_COLOCATED : 0, w->text.ptr,
	                (int)w->text.len, (int)w->begin, (int)w->end);
}

static int tokenizer_new(void *ctx, const char **args, int count, Fts5Tokenizer **out)
{
	static char only;
	(void)ctx, (void)args, (void)count;
	*out = (Fts5Tokenizer *)(void *)&only;
	return SQLITE_OK;
}

static void tokenizer_free(Fts5Tokenizer *t)
{
	(void)t;
}

static int tokenizer_run(Fts5Tokenizer *t, void *ctx, int flags, const char *text, int len,
                         int (*token)(void *ctx, int flags, const char *text, int len, int begin,
                                      int end))
{
	feeding f = {token, ctx};
	(void)t;
	/* A query is cut into words before it is written. */
	if ((flags & FTS5_TOKENIZE_QUERY) != 0)
		return len > 0 ? token(ctx, 0, text, len, 0, len) : SQLITE_OK;
	return len > 0 ? words_each(str_make(text, (size_t)len), feed_word, &f) : SQLITE_OK;
}

/* ---- Rank ------------------------------------------------------------------------------ */

typedef struct weights {
	int count;
	int today;
	double newness_last; /* of the day before in the walk: hits come in runs of a day */
	int day_last;
	double idf[QUERY_PHRASES_MAX];
	double damping[32]; /* of occurrences in a text, by its length */
} weights;

static int count_text(const Fts5ExtensionApi *api, Fts5Context *fts, void *ctx)
{
	int64_t *n = ctx;
	(void)api, (void)fts;
	return ++*n == COMMON ? SQLITE_DONE : SQLITE_OK;
}

/* Once for each query: how rare each phrase is. */
static int weigh(const Fts5ExtensionApi *api, Fts5Context *fts, int today, weights *w)
{
	sqlite3_int64 texts = 0;
	int rc = api->xRowCount(fts, &texts);
	*w = (weights){.count = api->xPhraseCount(fts), .today = today, .day_last = -1};
	if (w->count > (int)QUERY_PHRASES_MAX)
		w->count = (int)QUERY_PHRASES_MAX;
	for (int i = 0; i < 32; i++)
		w->damping[i] = K1 * (1 - B + B * (exp2(i / 2.0) / LENGTH_MEAN));
	/* Of one alone the weight is the same for all. */
	if (w->count == 1)
		w->idf[0] = 1;
	for (int i = 0; rc == SQLITE_OK && w->count > 1 && i < w->count; i++) {
		int64_t n = 0;
		rc = api->xQueryPhrase(fts, i, &n, count_text);
		rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
		w->idf[i] = log(1 + ((double)texts + 1) / ((double)n + 0.5));
	}
	return rc;
}

static double newness(weights *w, int day)
{
	if (day != w->day_last) {
		int age = w->today > day ? w->today - day : 0;
		w->newness_last = 1 + exp2(-age / NEWNESS_DAYS);
		w->day_last = day;
	}
	return w->newness_last;
}

static double rank_text(const Fts5ExtensionApi *api, Fts5Context *fts, weights *w)
{
	int64_t id = api->xRowid(fts);
	double damping = w->damping[id_length(id)], sum = 0;
	for (int i = 0; i < w->count; i++) {
		Fts5PhraseIter it;
		int column, offset, times = 0;
		int rc = api->xPhraseFirst(fts, i, &it, &column, &offset);
		for (; rc == SQLITE_OK && column >= 0 && times < TIMES_MAX; times++)
			api->xPhraseNext(fts, &it, &column, &offset);
		sum += w->idf[i] * times * (K1 + 1) / (times + damping);
	}
	return sum * role_worth[id_role(id)] * newness(w, id_day(id));
}

static void rank_of(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *out, int count,
                    sqlite3_value **values)
{
	weights *w = api->xGetAuxdata(fts, 0);
	int rc = SQLITE_OK;
	if (w == NULL) {
		w = sqlite3_malloc((int)sizeof(*w));
		rc = w == NULL ? SQLITE_NOMEM
		               : weigh(api, fts, count > 0 ? sqlite3_value_int(values[0]) : 0, w);
		if (rc == SQLITE_OK)
			rc = api->xSetAuxdata(fts, w, sqlite3_free);
		else
			sqlite3_free(w);
	}
	if (rc == SQLITE_OK)
		sqlite3_result_double(out, rank_text(api, fts, w));
	else
		sqlite3_result_error_code(out, rc);
}

int fts_register(index_file *ix, sheaf_error *err)
{
	fts5_api *api = NULL;
	sqlite3_stmt *st = NULL;
	fts5_tokenizer tokenizer = {tokenizer_new, tokenizer_free, tokenizer_run};
	int rc = sqlite3_prepare_v2(ix->db, "SELECT fts5(?1)", -1, &st, NULL);
	if (rc == SQLITE_OK) {
		(void)sqlite3_bind_pointer(st, 1, &api, "fts5_api_ptr", NULL);
		(void)sqlite3_step(st);
	}
	(void)sqlite3_finalize(st);
	if (api == NULL)
		return err_set(err, SHEAF_UNSUPPORTED, "this SQLite has no full-text search");
	rc = api->xCreateTokenizer(api, "sheaf", NULL, &tokenizer, NULL);
	if (rc == SQLITE_OK)
		rc = api->xCreateFunction(api, "rank_of", NULL, rank_of, NULL);
	return rc == SQLITE_OK ? 0 : fts_fail(ix, rc, err);
}

/* ---- The best ------------------------------------------------------------------------------ */

typedef struct candidate {
	int64_t id;
	double score;
	int64_t session; /* 0: not looked up */
	int64_t time_us;
	uint64_t seq;
	const char *key; /* owner and session, where two are alike in all else */
} candidate;

/* A search under way. */
typedef struct hunt {
	index_file *ix;
	const index_query *query;
	sheaf_error *err;
	parsed words;
	arena *a;
	bool by_session;   /* not every session will do */
	uint8_t *sessions; /* by number: ALLOWED, IMPORTED */
	size_t session_room;
	map keys;
	candidate *best; /* a heap, the worst on top */
	size_t count;
	size_t room;
	bool more; /* some were left out */
} hunt;

static void hunt_end(hunt *h)
{
	query_free(&h->words);
	mem_free(h->sessions);
	map_free(&h->keys);
	arena_free(h->a);
	mem_free(h->best);
}

static sheaf_str number_key(hunt *h, int64_t number, int *ok)
{
	return arena_dup(h->a, str_make((const char *)&number, sizeof(number)), ok);
}

enum {
	ALLOWED = 1, /* its app, user and directory are those asked for */
	IMPORTED = 2 /* it comes from the agent asked for */
};

#define SESSIONS_MAX (INT64_C(1) << 30)

static bool session_is(const hunt *h, int64_t number, unsigned what)
{
	return number >= 0 && (uint64_t)number < h->session_room &&
	       (h->sessions[number] & what) != 0;
}

static int mark_session(hunt *h, int64_t number, unsigned what)
{
	size_t before = h->session_room;
	if (number < 0 || number >= SESSIONS_MAX)
		return SHEAF_DAMAGED;
	if (mem_grow((void **)&h->sessions, &h->session_room, (size_t)number + 1, 1) != 0)
		return SHEAF_NOMEM;
	memset(h->sessions + before, 0, h->session_room - before);
	h->sessions[number] = (uint8_t)what;
	return 0;
}

static bool below_directory(sheaf_str cwd, sheaf_str dir)
{
	while (dir.len > 1 && dir.ptr[dir.len - 1] == '/')
		dir.len--;
	return cwd.len >= dir.len && memcmp(cwd.ptr, dir.ptr, dir.len) == 0 &&
	       (cwd.len == dir.len || cwd.ptr[dir.len] == '/' || dir.len == 1);
}

static int allow_session(void *ctx, const index_session *s)
{
	hunt *h = ctx;
	const index_query *q = h->query;
	if (q->project.ptr != NULL && !below_directory(s->cwd, q->project))
		return 0;
	bool imported = q->agent_prefix.ptr != NULL && s->session.len >= q->agent_prefix.len &&
	                memcmp(s->session.ptr, q->agent_prefix.ptr, q->agent_prefix.len) == 0;
	return mark_session(h, s->number, imported ? ALLOWED | IMPORTED : ALLOWED);
}

/* Which sessions will do, unless all of the index will. */
static int choose_sessions(hunt *h)
{
	const index_query *q = h->query;
	h->by_session = q->project.ptr != NULL || q->agent.ptr != NULL;
	if (!h->by_session && (q->app.ptr != NULL || q->user.ptr != NULL)) {
		_cleanup_(fts_done) sqlite3_stmt *st = fts_use(h->ix, ST_OTHERS, h->err);
		if (st == NULL)
			return SHEAF_DAMAGED;
		if (q->app.ptr != NULL)
			(void)sqlite3_bind_text64(st, 1, q->app.ptr, q->app.len, SQLITE_STATIC,
			                          SQLITE_UTF8);
		if (q->user.ptr != NULL)
			(void)sqlite3_bind_text64(st, 2, q->user.ptr, q->user.len, SQLITE_STATIC,
			                          SQLITE_UTF8);
		int rc = sqlite3_step(st);
		if (rc != SQLITE_ROW && rc != SQLITE_DONE)
			return fts_fail(h->ix, rc, h->err);
		h->by_session = rc == SQLITE_ROW;
	}
	return h->by_session ? fts_sessions(h->ix, q->app, q->user, allow_session, h, h->err) : 0;
}

static bool has_tool(sheaf_str tools, sheaf_str tool)
{
	for (size_t at = 0; at + tool.len + 2 <= tools.len; at++)
		if (tools.ptr[at] == '\n' && tools.ptr[at + 1 + tool.len] == '\n' &&
		    strncasecmp(tools.ptr + at + 1, tool.ptr, tool.len) == 0)
			return true;
	return false;
}

/* Looks a text up: 1 if it is wanted, 0 if not. */
static int look_up(hunt *h, candidate *c)
{
	const index_query *q = h->query;
	_cleanup_(fts_done) sqlite3_stmt *st = fts_use(h->ix, ST_DOC_GET, h->err);
	if (st == NULL)
		return SHEAF_DAMAGED;
	(void)sqlite3_bind_int64(st, 1, c->id);
	int rc = sqlite3_step(st);
	if (rc == SQLITE_DONE)
		return err_set(h->err, SHEAF_DAMAGED,
		               "the search index is damaged: a text is gone");
	if (rc != SQLITE_ROW)
		return fts_fail(h->ix, rc, h->err);
	c->session = sqlite3_column_int64(st, 0);
	c->seq = (uint64_t)sqlite3_column_int64(st, 1);
	c->time_us = sqlite3_column_int64(st, 2);
	if ((q->after_us != 0 && c->time_us < q->after_us) ||
	    (q->before_us != 0 && c->time_us >= q->before_us) ||
	    (h->by_session && !session_is(h, c->session, ALLOWED)) ||
	    (q->tool.ptr != NULL && !has_tool(fts_column(st, 4), q->tool)))
		return 0;
	return q->agent.ptr == NULL || session_is(h, c->session, IMPORTED) ||
	       str_eq(fts_column(st, 3), q->agent);
}

/* What tells apart two texts that are as good and of the same time: the same on every index. */
static const char *key_of(hunt *h, candidate *c)
{
	if (c->key != NULL)
		return c->key;
	int ok = 1;
	c->key = map_get_ptr(&h->keys, str_make((const char *)&c->session, sizeof(c->session)));
	if (c->key != NULL)
		return c->key;
	_cleanup_(buf_free) buf key = BUF_INIT(4096);
	_cleanup_(fts_done) sqlite3_stmt *st = fts_use(h->ix, ST_SESSION_BY_NUMBER, NULL);
	if (st != NULL) {
		(void)sqlite3_bind_int64(st, 1, c->session);
		if (sqlite3_step(st) == SQLITE_ROW) {
			buf_str(&key, fts_column(st, 1));
			buf_char(&key, '/');
			buf_str(&key, fts_column(st, 4));
		}
	}
	sheaf_str kept = arena_dup(h->a, buf_view(&key), &ok);
	c->key = ok ? kept.ptr : "";
	sheaf_str number = number_key(h, c->session, &ok);
	if (ok)
		(void)map_set_ptr(&h->keys, number, (void *)(uintptr_t)c->key);
	return c->key;
}

/* Below 0 if `a` is the better one. */
static int order(hunt *h, candidate *a, candidate *b)
{
	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	if (a->time_us != b->time_us)
		return a->time_us > b->time_us ? -1 : 1;
	int by_key = a->session != b->session ? strcmp(key_of(h, a), key_of(h, b)) : 0;
	if (by_key != 0)
		return by_key;
	return a->seq != b->seq ? (a->seq < b->seq ? -1 : 1) : 0;
}

static void swap(candidate *a, candidate *b)
{
	candidate c = *a;
	*a = *b;
	*b = c;
}

static void sift_up(hunt *h, size_t at)
{
	while (at != 0 && order(h, &h->best[(at - 1) / 2], &h->best[at]) < 0) {
		swap(&h->best[(at - 1) / 2], &h->best[at]);
		at = (at - 1) / 2;
	}
}

static void sift_down(hunt *h, size_t count)
{
	for (size_t at = 0;;) {
		size_t worst = 2 * at + 1;
		if (worst >= count)
			return;
		if (worst + 1 < count && order(h, &h->best[worst], &h->best[worst + 1]) < 0)
			worst++;
		if (order(h, &h->best[at], &h->best[worst]) >= 0)
			return;
		swap(&h->best[at], &h->best[worst]);
		at = worst;
	}
}

static int consider(hunt *h, int64_t id, double score)
{
	const index_query *q = h->query;
	candidate c = {.id = id, .score = score};
	if (q->roles != 0 && (q->roles & SHEAF_HIT_BIT(id_role(id))) == 0)
		return 0;
	if ((q->after_us != 0 && id_day(id) < day_of(q->after_us)) ||
	    (q->before_us != 0 && id_day(id) > day_of(q->before_us)))
		return 0;
	if (h->count == h->room && score < h->best[0].score) {
		h->more = true;
		return 0;
	}
	int rc = look_up(h, &c);
	if (rc <= 0)
		return rc;
	if (h->count < h->room) {
		h->best[h->count] = c;
		sift_up(h, h->count++);
		return 0;
	}
	h->more = true;
	if (order(h, &c, &h->best[0]) < 0) {
		h->best[0] = c;
		sift_down(h, h->count);
	}
	return 0;
}

/* Fills h->best with the best `room`, best first. */
static int collect(hunt *h, size_t room)
{
	_cleanup_(fts_done) sqlite3_stmt *st = fts_use(h->ix, ST_MATCH, h->err);
	if (st == NULL)
		return SHEAF_DAMAGED;
	mem_free(h->best);
	h->best = mem_alloc(room * sizeof(*h->best));
	if (h->best == NULL)
		return err_nomem(h->err);
	h->room = room;
	h->count = 0;
	h->more = false;
	sheaf_str match = buf_view(&h->words.match);
	(void)sqlite3_bind_text64(st, 1, match.ptr, match.len, SQLITE_STATIC, SQLITE_UTF8);
	(void)sqlite3_bind_int(st, 2, day_of(h->query->now_us));
	int rc;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		rc = consider(h, sqlite3_column_int64(st, 0), sqlite3_column_double(st, 1));
		if (rc != 0)
			return rc;
	}
	if (rc != SQLITE_DONE)
		return fts_fail(h->ix, rc, h->err);
	for (size_t left = h->count; left > 1; left--) {
		swap(&h->best[0], &h->best[left - 1]);
		sift_down(h, left - 1);
	}
	return 0;
}

/* Keeps at most so many of a session, and counts what is left, up to the limit. */
static size_t thin_out(hunt *h)
{
	const index_query *q = h->query;
	size_t kept = 0;
	for (size_t i = 0; i < h->count; i++) {
		uint32_t same = 0;
		for (size_t k = 0; k < kept; k++)
			same += h->best[k].session == h->best[i].session;
		if (q->per_session != 0 && same >= q->per_session) {
			h->more = true;
			continue;
		}
		if (kept == q->limit) {
			h->more = true;
			break;
		}
		h->best[kept++] = h->best[i];
	}
	return kept;
}

/* ---- Answering --------------------------------------------------------------------------------- */

/* The session a text is shown in: where it lies, or if that is deleted a fork that reads it. */
static int find_session(hunt *h, const candidate *c, sqlite3_stmt **st, index_session *out)
{
	*st = fts_use(h->ix, ST_SESSION_BY_NUMBER, h->err);
	if (*st == NULL)
		return SHEAF_DAMAGED;
	(void)sqlite3_bind_int64(*st, 1, c->session);
	int rc = sqlite3_step(*st);
	if (rc != SQLITE_ROW)
		return rc == SQLITE_DONE ? err_set(h->err, SHEAF_DAMAGED,
		                                   "the search index is damaged: a session is gone")
		                         : fts_fail(h->ix, rc, h->err);
	fts_session_row(*st, out);
	if (!out->hidden)
		return 1;
	sqlite3_stmt *hidden = *st;
	*st = fts_use(h->ix, ST_READER, h->err);
	if (*st == NULL)
		return SHEAF_DAMAGED;
	(void)sqlite3_bind_text64(*st, 1, out->owner.ptr, out->owner.len, SQLITE_TRANSIENT,
	                          SQLITE_UTF8);
	(void)sqlite3_bind_text64(*st, 2, out->session.ptr, out->session.len, SQLITE_TRANSIENT,
	                          SQLITE_UTF8);
	(void)sqlite3_bind_int64(*st, 3, (int64_t)c->seq);
	fts_done(&hidden);
	rc = sqlite3_step(*st);
	if (rc == SQLITE_DONE)
		return 0; /* nobody can open it any more */
	if (rc != SQLITE_ROW)
		return fts_fail(h->ix, rc, h->err);
	fts_session_row(*st, out);
	return 1;
}

static int give(hunt *h, const candidate *c, index_hit_fn fn, void *ctx)
{
	_cleanup_(fts_done) sqlite3_stmt *session_st = NULL;
	_cleanup_(buf_free) buf entry = BUF_INIT(SHEAF_ID_BYTES_MAX + 1);
	index_session session;
	snippet s;
	int rc = find_session(h, c, &session_st, &session);
	if (rc <= 0)
		return rc;
	rc = fts_body(h->ix, c->id, &entry, h->err);
	if (rc != 0)
		return rc;
	_cleanup_(fts_done) sqlite3_stmt *st = fts_use(h->ix, ST_DOC_GET, h->err);
	if (st == NULL)
		return SHEAF_DAMAGED;
	(void)sqlite3_bind_int64(st, 1, c->id);
	if (sqlite3_step(st) != SQLITE_ROW)
		return err_set(h->err, SHEAF_DAMAGED,
		               "the search index is damaged: a text is gone");
	index_doc doc = {.session = c->session,
	                 .seq = c->seq,
	                 .time_us = c->time_us,
	                 .role = id_role(c->id),
	                 .entry = buf_view(&entry),
	                 .agent = fts_column(st, 3),
	                 .tools = fts_column(st, 4)};
	snippet_make(&s, &h->words, buf_view(&h->ix->plain));
	index_hit hit = {.session = &session,
	                 .doc = &doc,
	                 .snippet = s.text,
	                 .marks = s.marks,
	                 .mark_count = s.mark_count,
	                 .cut_before = s.cut_before,
	                 .cut_after = s.cut_after,
	                 .score = c->score};
	return fn(ctx, &hit);
}

int fts_query(index_file *ix, const index_query *query, index_hit_fn fn, void *ctx, bool *more,
              sheaf_error *err)
{
	_cleanup_(hunt_end) hunt h = {.ix = ix, .query = query, .err = err};
	int rc = query_parse(&h.words, query->text, err);
	if (rc != 0)
		return rc;
	h.a = arena_new();
	if (h.a == NULL)
		return err_nomem(err);
	rc = choose_sessions(&h);
	size_t room = query->limit * (query->per_session != 0 ? PER_LIMIT : 1);
	room = room < BEST_LEAST ? BEST_LEAST : room;
	size_t kept = 0;
	while (rc == 0) {
		rc = collect(&h, room);
		bool all = h.count < room;
		kept = rc == 0 ? thin_out(&h) : 0;
		if (all || kept == query->limit || room > SIZE_MAX / 64)
			break;
		room *= 16; /* one session has most of them */
	}
	for (size_t i = 0; rc == 0 && i < kept; i++)
		rc = give(&h, &h.best[i], fn, ctx);
	*more = h.more;
	return rc;
}
