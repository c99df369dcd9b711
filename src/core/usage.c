/* What sessions have used: a walk over messages and ends of turns, summed up by row. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/read.h"
#include "entry/members.h"
#include "entry/usage.h"

#define LIST_PAGE 500u
#define DAY_US INT64_C(86400000000)

/* Models by which turns ran, for ends of turns that alone have usage. */
#define TURN_MODELS 16u

/* A model as records name it, each kept once, with what holds for it on the day last asked for. */
typedef struct named {
	sheaf_str provider;
	sheaf_str model;
	const sheaf_model_row *row;
	int64_t day; /* 0: none yet */
} named;

typedef struct tally {
	arena *a; /* of the result; NULL when it was given away */
	json_doc *doc;
	arena *scratch; /* of the record at hand */
	int32_t by;
	const sheaf_models *models;
	int64_t after_us;
	int64_t before_us;
	sheaf_usage_report report;
	sheaf_usage_row **rows;
	size_t count;
	size_t room;
	map keys;  /* of rows */
	map names; /* of models → named * */
	/* the session at hand */
	const sheaf_head *head;
	sheaf_usage_row *session_row;
	sheaf_str project; /* its directory */
	size_t links;      /* how many sessions the records at hand are inherited through */
	turns seen;
	named *current; /* what the newest model_change says, or NULL */
	struct {
		uint64_t turn;
		named *model;
	} turn_models[TURN_MODELS];
	size_t turn_at;
	sheaf_error err;
} tally;

/* What a record says of its usage. */
typedef struct said {
	bool has_usage;
	bool is_turn; /* of all requests of a turn together */
	sheaf_usage usage;
	sheaf_str turn; /* {NULL,0}: none */
	named *model;
	int64_t time_us;
} said;

static void tally_end(tally *t)
{
	arena_free(t->a);
	arena_free(t->scratch);
	json_free(t->doc);
	mem_free(t->rows);
	map_free(&t->keys);
	map_free(&t->names);
}

/* ---- Rows --------------------------------------------------------------- */

static sheaf_usage_row *row_new(tally *t)
{
	sheaf_usage_row *row = arena_zalloc(t->a, sizeof(*row));
	if (row == NULL ||
	    mem_grow((void **)&t->rows, &t->room, t->count + 1, sizeof(*t->rows)) != 0)
		return NULL;
	t->rows[t->count++] = row;
	return row;
}

/* The row of a key, made if it is new. NULL without memory. */
static sheaf_usage_row *row_of(tally *t, sheaf_str key)
{
	int ok = 1;
	sheaf_usage_row *row = map_get_ptr(&t->keys, key);
	if (row != NULL)
		return row;
	sheaf_str copy = arena_dup(t->a, key, &ok);
	row = ok ? row_new(t) : NULL;
	if (row == NULL || map_set_ptr(&t->keys, copy, row) != 0)
		return NULL;
	row->key = copy;
	return row;
}

/* A provider and a model as one key: the provider's length tells them apart. */
static int name_key(buf *out, sheaf_str provider, sheaf_str model, sheaf_error *err)
{
	buf_reset(out);
	buf_u64(out, provider.len);
	buf_char(out, ':');
	buf_str(out, provider);
	buf_str(out, model);
	return buf_status(out, err);
}

static named *named_of(tally *t, sheaf_str provider, sheaf_str model)
{
	_cleanup_(buf_free) buf key = BUF_INIT(SHEAF_RECORD_BYTES_MAX * (size_t)2);
	int ok = 1;
	if (name_key(&key, provider, model, &t->err) != 0)
		return NULL;
	named *n = map_get_ptr(&t->names, buf_view(&key));
	if (n != NULL)
		return n;
	n = arena_zalloc(t->a, sizeof(*n));
	sheaf_str copy = arena_dup(t->a, buf_view(&key), &ok);
	if (n == NULL || !ok || map_set_ptr(&t->names, copy, n) != 0)
		return NULL;
	n->provider = str_make(copy.ptr + (copy.len - model.len - provider.len), provider.len);
	n->model = str_make(copy.ptr + (copy.len - model.len), model.len);
	return n;
}

static sheaf_usage_row *row_by_model(tally *t, named *model)
{
	named none = {.provider = {"", 0}, .model = {"", 0}};
	named *m = model != NULL ? model : &none;
	_cleanup_(buf_free) buf key = BUF_INIT(SHEAF_RECORD_BYTES_MAX * (size_t)2);
	if (name_key(&key, m->provider, m->model, &t->err) != 0)
		return NULL;
	sheaf_usage_row *row = row_of(t, buf_view(&key));
	if (row != NULL && row->own.replies == 0 && row->inherited.replies == 0) {
		row->key = m->model;
		row->provider = m->provider;
	}
	return row;
}

static sheaf_usage_row *row_for(tally *t, const said *what, const record *r)
{
	char day[CLOCK_TEXT + 1];
	switch (t->by) {
	case SHEAF_USAGE_BY_TURN:
		return row_of(t, what->turn.ptr != NULL ? what->turn : r->id);
	case SHEAF_USAGE_BY_MODEL:
		return row_by_model(t, what->model);
	case SHEAF_USAGE_BY_DAY:
		clock_format(day, what->time_us);
		return row_of(t, str_make(day, sizeof("2026-11-15") - 1));
	case SHEAF_USAGE_BY_PROJECT:
		return row_of(t, t->project);
	default:
		return t->session_row;
	}
}

/* ---- Records ------------------------------------------------------------ */

/* A member's string; {NULL,0} if it is none. Escapes are rare and cost a parse. */
static int string_of(tally *t, sheaf_str value, sheaf_str *out)
{
	int ok = 1;
	*out = (sheaf_str){NULL, 0};
	if (value.len < 2 || value.ptr[0] != '"')
		return 0;
	*out = str_make(value.ptr + 1, value.len - 2);
	if (memchr(out->ptr, '\\', out->len) == NULL)
		return 0;
	int rc = json_parse(&t->doc, value, &t->err);
	if (rc == 0)
		*out = arena_dup(t->scratch, json_string(json_root(t->doc)), &ok);
	return ok ? rc : err_nomem(&t->err);
}

static int model_of(tally *t, sheaf_str provider, sheaf_str model, named **out)
{
	sheaf_str p, m;
	*out = NULL;
	int rc = string_of(t, provider, &p);
	if (rc == 0)
		rc = string_of(t, model, &m);
	if (rc != 0 || m.len == 0)
		return rc;
	*out = named_of(t, p, m);
	return *out != NULL ? 0 : err_nomem(&t->err);
}

static int read_message(tally *t, said *out, sheaf_str body)
{
	sheaf_str inside = usage_payload(body, "message"), key, value;
	sheaf_str provider = {NULL, 0}, model = {NULL, 0};
	for (size_t at = 0; members_next(inside, &at, &key, &value);) {
		if (members_key_is(key, "provider"))
			provider = value;
		else if (members_key_is(key, "model"))
			model = value;
		else if (!out->has_usage && members_key_is(key, "usage"))
			out->has_usage = usage_read(&out->usage, value);
	}
	int rc = model_of(t, provider, model, &out->model);
	return rc != 0 ? rc : string_of(t, members_find(body, "turn"), &out->turn);
}

static bool says_something(const sheaf_usage *u)
{
	return (u->input | u->cache_read | u->cache_write_5m | u->cache_write_1h | u->output |
	        u->reasoning) != 0;
}

static int read_turn_end(tally *t, said *out, sheaf_str body)
{
	sheaf_str inside = usage_payload(body, "turn_end");
	out->is_turn = true;
	/* A turn that failed before any reply says that it used nothing: that is no reply. */
	out->has_usage = usage_read(&out->usage, members_find(inside, "usage")) &&
	                 says_something(&out->usage);
	return string_of(t, members_find(inside, "turn"), &out->turn);
}

static int read_model_change(tally *t, sheaf_str body)
{
	sheaf_str inside = usage_payload(body, "model_change");
	named *now;
	int rc = model_of(t, members_find(inside, "provider"), members_find(inside, "model_id"),
	                  &now);
	if (rc == 0)
		t->current = now;
	return rc;
}

/* Which model a turn ran by, as far as it is remembered. */
static named *turn_model(const tally *t, uint64_t turn)
{
	for (size_t i = 0; i < TURN_MODELS; i++) {
		size_t at = (t->turn_at + TURN_MODELS - 1 - i) % TURN_MODELS;
		if (t->turn_models[at].turn == turn)
			return t->turn_models[at].model;
	}
	return NULL;
}

/* Whether a record's usage counts, as it does for a head; takes note of it for those to come. */
static bool counts(tally *t, said *s)
{
	uint64_t turn = s->turn.ptr != NULL ? turns_hash(s->turn) : 0;
	bool does = s->has_usage;
	if (s->is_turn && turn != 0) {
		does = does && !turns_had_usage(&t->seen, turn);
		turns_note_end(&t->seen, turn);
		s->model = turn_model(t, turn);
	} else if (turn != 0) {
		if (does)
			turns_note_usage(&t->seen, turn);
		if (s->model != NULL && turn_model(t, turn) != s->model) {
			t->turn_models[t->turn_at].turn = turn;
			t->turn_models[t->turn_at].model = s->model;
			t->turn_at = (t->turn_at + 1) % TURN_MODELS;
		}
	}
	if (s->model == NULL)
		s->model = t->current;
	return does;
}

/* Rows change with the day, and records come in the order of time, nearly. */
static const sheaf_model_row *row_on(const tally *t, named *n, int64_t time_us)
{
	int64_t day = time_us / DAY_US;
	if (day == 0 || day != n->day)
		n->row = sheaf_models_find(t->models, n->provider, n->model, time_us);
	n->day = day;
	return n->row;
}

/* A turn's requests together may be over a tier that none of them reached. */
static sheaf_cost cost_of(const tally *t, const said *s)
{
	const sheaf_money no = SHEAF_MONEY_UNKNOWN;
	const sheaf_model_row *m = s->model != NULL ? row_on(t, s->model, s->time_us) : NULL;
	if (!s->is_turn || m == NULL || m->tier_over == 0)
		return sheaf_usage_cost(&s->usage, m);
	sheaf_model_row flat = *m;
	flat.tier = (sheaf_prices){no, no, no, no, no};
	return sheaf_usage_cost(&s->usage, &flat);
}

static int take(tally *t, const said *s, const record *r, bool inherited)
{
	if ((t->after_us != 0 && s->time_us < t->after_us) ||
	    (t->before_us != 0 && s->time_us >= t->before_us))
		return 0;
	sheaf_usage_sum one = usage_sum_of(&s->usage, cost_of(t, s));
	sheaf_usage_sum_add(inherited ? &t->report.inherited : &t->report.own, &one);
	if (t->by == SHEAF_USAGE_BY_NONE)
		return 0;
	sheaf_usage_row *row = row_for(t, s, r);
	if (row == NULL)
		return err_nomem(&t->err);
	if (row->own.replies == 0 && row->inherited.replies == 0)
		row->first_us = row->last_us = s->time_us;
	if (s->time_us < row->first_us)
		row->first_us = s->time_us;
	if (s->time_us > row->last_us)
		row->last_us = s->time_us;
	sheaf_usage_sum_add(inherited ? &row->inherited : &row->own, &one);
	return 0;
}

static int tally_record(tally *t, const record *r, uint64_t seq)
{
	said s = {.model = NULL};
	int rc = 0;
	if (r->kind == SHEAF_KIND_MODEL_CHANGE)
		return read_model_change(t, r->body);
	(void)clock_parse(r->timestamp, &s.time_us);
	rc = r->kind == SHEAF_KIND_TURN_END ? read_turn_end(t, &s, r->body)
	                                    : read_message(t, &s, r->body);
	if (rc != 0 || !counts(t, &s))
		return rc;
	return take(t, &s, r, seq <= head_base(t->head));
}

/* ---- The walk ----------------------------------------------------------- */

/* Each session counts for itself, so what was noted of turns ends with its records. */
static void forget_turns(tally *t)
{
	t->seen = (turns){.count = 0};
	t->turn_at = 0;
	memset(t->turn_models, 0, sizeof(t->turn_models));
}

static void enter_segment(tally *t, uint64_t seq)
{
	sheaf_str session;
	uint64_t base;
	while (t->links != 0 && sheaf_head_link(t->head, t->links - 1, &session, &base) &&
	       seq > base) {
		t->links--;
		forget_turns(t);
	}
}

static int tally_row(void *ctx, const sheaf_row *row)
{
	tally *t = ctx;
	record r;
	enter_segment(t, row->seq);
	if (row->damaged) {
		t->report.unreadable++;
		return 0;
	}
	arena_free(t->scratch);
	t->scratch = arena_new();
	if (t->scratch == NULL)
		return err_nomem(&t->err);
	int rc = read_record(&r, row, t->scratch, &t->doc, &t->err);
	if (rc == 0)
		rc = tally_record(t, &r, row->seq);
	if (rc != 0 && rc != SHEAF_NOMEM) {
		t->report.unreadable++;
		t->err.code = 0;
		rc = 0;
	}
	return rc;
}

static int scan(tally *t, sheaf_session *s, const sheaf_scan *scan, sheaf_error *err)
{
	return err_pass(err, &t->err, read_scan(s, t->head, scan, tally_row, t, err));
}

/* The records of a session, all of them or its own; the model in force at its fork is inherited. */
static int tally_session(tally *t, sheaf_session *s, const sheaf_head *head, bool own_only,
                         sheaf_error *err)
{
	sheaf_str session;
	uint64_t base, own = head_base(head);
	sheaf_scan model = {
		.size = sizeof(model),
		.from = own,
		.backward = 1,
		.limit = 1,
		.kinds = SHEAF_KIND_BIT(SHEAF_KIND_MODEL_CHANGE),
	};
	sheaf_scan all = {
		.size = sizeof(all),
		.from = own_only ? own + 1 : 1,
		.limit = SIZE_MAX,
		.kinds = SHEAF_KIND_BIT(SHEAF_KIND_MESSAGE) | SHEAF_KIND_BIT(SHEAF_KIND_TURN_END) |
	                 SHEAF_KIND_BIT(SHEAF_KIND_MODEL_CHANGE),
	};
	t->head = head;
	t->current = NULL;
	forget_turns(t);
	for (t->links = 0; sheaf_head_link(head, t->links, &session, &base);)
		t->links++;
	t->report.sessions++;
	int rc = own_only && own != 0 ? scan(t, s, &model, err) : 0;
	return rc != 0 ? rc : scan(t, s, &all, err);
}

/* ---- Results ------------------------------------------------------------ */

static int tally_begin(tally *t, const sheaf_usage_options *o, sheaf_error *err)
{
	*t = (tally){
		.by = OPTION(o, by, 0),
		.models = OPTION(o, models, NULL),
		.after_us = OPTION(o, after_us, 0),
		.before_us = OPTION(o, before_us, 0),
	};
	if (t->by < SHEAF_USAGE_BY_NONE || t->by > SHEAF_USAGE_BY_PROJECT)
		return err_set(err, SHEAF_INVALID,
		               "usage is by turn, model, day, session or project");
	t->a = arena_new();
	return t->a != NULL ? 0 : err_nomem(err);
}

static int by_name(const void *a, const void *b)
{
	const sheaf_usage_row *x = *(sheaf_usage_row *const *)a, *y = *(sheaf_usage_row *const *)b;
	int order = str_cmp(x->provider, y->provider);
	return order != 0 ? order : str_cmp(x->key, y->key);
}

typedef struct report_box {
	sheaf_usage_report report;
	arena *a;
} report_box;

static int tally_finish(sheaf_usage_report **out, tally *t, sheaf_error *err)
{
	report_box *box = arena_zalloc(t->a, sizeof(*box));
	const sheaf_usage_row **rows = arena_alloc(t->a, (t->count + 1) * sizeof(*rows));
	if (box == NULL || rows == NULL)
		return err_nomem(err);
	if (t->count != 0 && (t->by == SHEAF_USAGE_BY_MODEL || t->by == SHEAF_USAGE_BY_DAY))
		qsort(t->rows, t->count, sizeof(*t->rows), by_name);
	for (size_t i = 0; i < t->count; i++)
		rows[i] = t->rows[i];
	box->report = t->report;
	box->report.rows = rows;
	box->report.count = t->count;
	box->a = t->a;
	t->a = NULL;
	*out = &box->report;
	return 0;
}

void sheaf_usage_report_free(const sheaf_usage_report *report)
{
	if (report != NULL)
		arena_free(((const report_box *)(const void *)report)->a);
}

/* The session at hand: its directory, and its row, also if it has used nothing. */
static int session_row(tally *t, const sheaf_session_info *info, sheaf_error *err)
{
	int ok = 1;
	t->project = info->cwd.ptr != NULL ? info->cwd : SHEAF_STR("");
	if (t->by != SHEAF_USAGE_BY_SESSION)
		return 0;
	sheaf_usage_row *row = t->session_row = row_new(t);
	if (row == NULL)
		return err_nomem(err);
	row->key = arena_dup(t->a, info->session, &ok);
	row->app = arena_dup(t->a, info->app, &ok);
	row->user = arena_dup(t->a, info->user, &ok);
	row->name = arena_dup(t->a, info->name, &ok);
	return ok ? 0 : err_nomem(err);
}

int sheaf_session_usage(sheaf_usage_report **out, sheaf_session *session,
                        const sheaf_usage_options *options, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	_cleanup_(tally_end) tally t = {.a = NULL};
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = tally_begin(&t, options, err);
	if (rc == 0)
		rc = session_peek(session, &head, NULL, err);
	if (rc == 0) {
		sheaf_key key = sheaf_session_key(session);
		sheaf_session_info info;
		sheaf_head_info(head, &info);
		info.app = key.app;
		info.user = key.user;
		info.session = key.session;
		rc = session_row(&t, &info, err);
	}
	if (rc == 0)
		rc = tally_session(&t, session, head, false, err);
	return rc != 0 ? rc : tally_finish(out, &t, err);
}

/* ---- Stores ------------------------------------------------------------- */

static void session_closep(sheaf_session **s)
{
	sheaf_session_close(*s);
}

static void list_freep(sheaf_list **list)
{
	sheaf_list_free(*list);
}

/* One session of a list. One that went meanwhile has used nothing; a broken one is noted. */
static int tally_listed(tally *t, sheaf_store *store, const sheaf_session_info *info,
                        sheaf_error *err)
{
	_cleanup_(session_closep) sheaf_session *s = NULL;
	_cleanup_(head_freep) sheaf_head *head = NULL;
	sheaf_session_options how = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_key key = {info->app, info->user, info->session};
	sheaf_error local = {0};
	how.mode = SHEAF_OPEN_EXISTING;
	how.readonly = 1;
	int rc = sheaf_session_open(&s, store, &key, &how, &local);
	if (rc == 0)
		rc = session_peek(s, &head, NULL, &local);
	if (rc == 0)
		rc = session_row(t, info, &local);
	if (rc == 0)
		rc = tally_session(t, s, head, true, &local);
	if (rc == SHEAF_NOT_FOUND || rc == SHEAF_GONE || rc == SHEAF_EXPIRED)
		return 0;
	if (rc == SHEAF_DAMAGED || rc == SHEAF_FORMAT) {
		t->report.unreadable++;
		return 0;
	}
	if (rc != 0 && err != NULL)
		*err = local;
	return rc;
}

int sheaf_store_usage(sheaf_usage_report **out, sheaf_store *store, const sheaf_list_options *which,
                      const sheaf_usage_options *options, sheaf_error *err)
{
	_cleanup_(tally_end) tally t = {.a = NULL};
	_cleanup_(list_freep) sheaf_list *page = NULL;
	sheaf_list_options list = SHEAF_LIST_OPTIONS_INIT;
	if (out == NULL || store == NULL)
		return err_set(err, SHEAF_INVALID, "no store was given");
	int rc = tally_begin(&t, options, err);
	if (rc == 0 && t.by == SHEAF_USAGE_BY_TURN)
		rc = err_set(err, SHEAF_INVALID, "usage by turn is that of one session");
	if (rc != 0)
		return rc;
	if (which != NULL)
		memcpy(&list, which, which->size < sizeof(list) ? which->size : sizeof(list));
	list.size = sizeof(list);
	list.limit = LIST_PAGE;
	do {
		sheaf_list *next = NULL;
		rc = sheaf_store_list(&next, store, &list, err);
		if (rc != 0)
			return rc;
		sheaf_list_free(page);
		page = next;
		for (size_t i = 0; rc == 0 && i < page->count; i++)
			rc = tally_listed(&t, store, page->items[i], err);
		list.cursor = page->cursor;
	} while (rc == 0 && page->cursor.ptr != NULL);
	return rc != 0 ? rc : tally_finish(out, &t, err);
}
