/* sheaf usage: the tokens that sessions have used, and what they cost. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "find.h"
#include "model.h"
#include "opt.h"
#include "print.h"
#include "text.h"

#define KEY_MAX 44u
#define NAME_MAX_COLUMNS 32u
#define GAP 2u

static const char *const kinds[] = {"", "turn", "model", "day", "session"};

static void report_done(sheaf_usage_report **report)
{
	sheaf_usage_report_free(*report);
}

/* ---- For programs ------------------------------------------------------ */

static void js_money(buf *b, const char *name, const sheaf_usage_sum *sum, sheaf_money amount)
{
	char text[SHEAF_MONEY_ROOM];
	bool known = sum->replies == 0 || sum->unpriced < sum->replies;
	sheaf_money_exact(text, known ? amount : SHEAF_MONEY_UNKNOWN);
	js_raw(b, name, sheaf_str_of(text));
}

static void js_rate(buf *b, const char *name, double rate)
{
	char text[32];
	snprintf(text, sizeof(text), "%.6f", rate);
	js_raw(b, name, sheaf_str_of(text));
}

static void js_sum(buf *b, const char *name, const sheaf_usage_sum *sum)
{
	js_open(b, name, '{');
	js_u64(b, "replies", sum->replies);
	js_u64(b, "unpriced", sum->unpriced);
	js_usage(b, "usage", &sum->tokens);
	js_rate(b, "hit_rate", sheaf_usage_hit_rate(&sum->tokens));
	js_rate(b, "efficiency", sheaf_usage_efficiency(&sum->tokens));
	js_u64(b, "tokens_saved", sheaf_usage_tokens_saved(&sum->tokens));
	js_money(b, "cost", sum, sum->cost);
	js_money(b, "saved_gross", sum, sum->saved_gross);
	js_money(b, "saved_net", sum, sum->saved_net);
	js_close(b, '}');
}

static sheaf_usage_sum both(const sheaf_usage_sum *own, const sheaf_usage_sum *inherited)
{
	sheaf_usage_sum sum = *own;
	sheaf_usage_sum_add(&sum, inherited);
	return sum;
}

static void js_sums(buf *b, const sheaf_usage_sum *own, const sheaf_usage_sum *inherited)
{
	sheaf_usage_sum total = both(own, inherited);
	js_sum(b, "own", own);
	js_sum(b, "inherited", inherited);
	js_sum(b, "total", &total);
}

static void js_row(buf *b, const sheaf_usage_row *row, int32_t by)
{
	js_open(b, NULL, '{');
	js_str(b, kinds[by], row->key);
	if (by == SHEAF_USAGE_BY_MODEL)
		js_str(b, "provider", row->provider);
	if (by == SHEAF_USAGE_BY_SESSION) {
		js_str(b, "app", row->app);
		js_str(b, "user", row->user);
		js_str(b, "name", row->name);
	}
	js_time(b, "first", row->first_us);
	js_time(b, "last", row->last_us);
	js_sums(b, &row->own, &row->inherited);
	js_close(b, '}');
}

static int put_json(cli *c, const sheaf_usage_report *report, int32_t by)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	js_open(&b, NULL, '{');
	js_text(&b, "by", kinds[by]);
	js_open(&b, "rows", '[');
	for (size_t i = 0; i < report->count; i++)
		js_row(&b, report->rows[i], by);
	js_close(&b, ']');
	js_sums(&b, &report->own, &report->inherited);
	js_u64(&b, "sessions", report->sessions);
	js_u64(&b, "unreadable", report->unreadable);
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
	return b.status != 0 ? fail_memory(c) : 0;
}

/* ---- For people -------------------------------------------------------- */

enum {
	COL_KEY,
	COL_NAME,
	COL_REPLIES,
	COL_INPUT,
	COL_READ,
	COL_WRITE,
	COL_OUTPUT,
	COL_HIT_RATE,
	COL_COST,
	COL_COUNT
};

/* Cells that are put on paper when all of them are known, so that columns fit. */
typedef struct table {
	cli *c;
	sheaf_str *cells; /* COL_COUNT for each line */
	const char **styles;
	size_t lines;
	size_t room;
	size_t width[COL_COUNT];
	buf cell;
	bool broken; /* out of memory */
} table;

static void table_done(table *t)
{
	buf_free(&t->cell);
}

/* What is in t->cell becomes a cell of the last line. */
static void put_cell(table *t, int column)
{
	int ok = 1;
	size_t width = text_width(buf_view(&t->cell));
	t->cells[(t->lines - 1) * COL_COUNT + (size_t)column] = arena_dup(t->c->memory,
	                                                                  buf_view(&t->cell), &ok);
	t->broken |= !ok || t->cell.status != 0;
	t->width[column] = width > t->width[column] ? width : t->width[column];
	buf_reset(&t->cell);
}

static void put_number(table *t, int column, uint64_t number)
{
	text_number(&t->cell, number);
	put_cell(t, column);
}

static void put_cost(table *t, const sheaf_usage_sum *sum)
{
	char text[SHEAF_MONEY_ROOM];
	bool none = sum->unpriced != 0 && sum->unpriced == sum->replies;
	sheaf_money_format(text, none ? SHEAF_MONEY_UNKNOWN : sum->cost);
	buf_str(&t->cell, sheaf_str_of(text));
	if (!none && sum->unpriced != 0)
		buf_char(&t->cell, '+');
	put_cell(t, COL_COST);
}

static void put_sum(table *t, const sheaf_usage_sum *sum)
{
	const sheaf_usage *u = &sum->tokens;
	uint64_t writes;
	if (__builtin_add_overflow(u->cache_write_5m, u->cache_write_1h, &writes))
		writes = UINT64_MAX;
	put_number(t, COL_REPLIES, sum->replies);
	put_number(t, COL_INPUT, u->input);
	put_number(t, COL_READ, u->cache_read);
	put_number(t, COL_WRITE, writes);
	put_number(t, COL_OUTPUT, u->output);
	buf_format(&t->cell, "%.0f%%", sheaf_usage_hit_rate(u) * 100);
	put_cell(t, COL_HIT_RATE);
	put_cost(t, sum);
}

static void put_line(table *t, const char *style)
{
	t->styles[t->lines++] = style;
}

static void put_total(table *t, const char *word, const sheaf_usage_sum *sum)
{
	put_line(t, STYLE_TITLE);
	buf_str(&t->cell, sheaf_str_of(word));
	put_cell(t, COL_KEY);
	put_sum(t, sum);
}

static void put_key(table *t, const sheaf_usage_row *row, int32_t by)
{
	_cleanup_(buf_free) buf key = BUF_INIT(SIZE_MAX);
	if (by == SHEAF_USAGE_BY_SESSION && given(t->c, OPT_ALL) &&
	    row->app.len + row->user.len != 0) {
		text_safe(&key, row->app, TEXT_ID);
		buf_char(&key, '/');
		text_safe(&key, row->user, TEXT_ID);
		buf_char(&key, '/');
	}
	if (row->provider.len != 0) {
		text_safe(&key, row->provider, TEXT_ID);
		buf_char(&key, '/');
	}
	text_safe(&key, row->key, TEXT_ID);
	if (row->key.len == 0)
		buf_lit(&key, "(not said)");
	text_cut(&t->cell, buf_view(&key), t->c->screen.tty ? KEY_MAX : 0);
	put_cell(t, COL_KEY);
}

/* What says more of a row than its key: a session's name, when a turn was. */
static void put_name(table *t, const sheaf_usage_row *row, int32_t by)
{
	_cleanup_(buf_free) buf name = BUF_INIT(SIZE_MAX);
	if (by == SHEAF_USAGE_BY_TURN)
		text_ago(&name, row->first_us, t->c->screen.now_us);
	else if (by == SHEAF_USAGE_BY_SESSION)
		text_safe(&name, row->name, TEXT_LINE);
	if (by == SHEAF_USAGE_BY_TURN && row->inherited.replies != 0)
		buf_lit(&name, " (inherited)");
	text_cut(&t->cell, buf_view(&name), NAME_MAX_COLUMNS);
	put_cell(t, COL_NAME);
}

static void put_headings(table *t, int32_t by)
{
	static const char *const words[] = {"", "TURN", "MODEL", "DAY", "SESSION"};
	static const char *const headings[COL_COUNT] = {
		"",       "",         "REPLIES", "INPUT", "CACHE READ", "CACHE WRITE",
		"OUTPUT", "HIT RATE", "COST",
	};
	put_line(t, STYLE_DIM);
	for (int column = 0; column < COL_COUNT; column++) {
		const char *text = headings[column];
		if (column == COL_KEY)
			text = words[by];
		else if (column == COL_NAME && by == SHEAF_USAGE_BY_SESSION)
			text = "NAME";
		else if (column == COL_NAME && by == SHEAF_USAGE_BY_TURN)
			text = "WHEN";
		buf_str(&t->cell, sheaf_str_of(text));
		put_cell(t, column);
	}
}

static void print_line(const table *t, buf *out, size_t line)
{
	const sheaf_str *cells = t->cells + line * COL_COUNT;
	for (int column = 0; column < COL_COUNT; column++) {
		sheaf_str cell = cells[column].ptr != NULL ? cells[column] : SHEAF_STR("");
		size_t pad = t->width[column] - text_width(cell);
		if (t->width[column] == 0)
			continue;
		if (column >= COL_REPLIES)
			text_spaces(out, pad);
		print_styled(&t->c->screen, out, t->styles[line], cell);
		if (column < COL_REPLIES)
			text_spaces(out, pad);
		if (column != COL_COST)
			text_spaces(out, GAP);
	}
	buf_char(out, '\n');
}

/* The cache in a sentence. */
static void print_cache(buf *out, const sheaf_usage_sum *sum)
{
	char gross[SHEAF_MONEY_ROOM], net[SHEAF_MONEY_ROOM];
	const sheaf_usage *u = &sum->tokens;
	if (u->cache_read == 0 && u->cache_write_5m == 0 && u->cache_write_1h == 0)
		return;
	buf_format(out, "cache: hit rate %.1f%%, efficiency %.1f%%, ",
	           sheaf_usage_hit_rate(u) * 100, sheaf_usage_efficiency(u) * 100);
	text_count(out, sheaf_usage_tokens_saved(u), "token saved", "tokens saved");
	if (sum->unpriced == 0) {
		sheaf_money_format(gross, sum->saved_gross);
		sheaf_money_format(net, sum->saved_net);
		buf_format(out, "; %s saved gross, %s net", gross, net);
	}
	buf_char(out, '\n');
}

static int put_table(cli *c, const sheaf_usage_report *report, int32_t by)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	_cleanup_(table_done) table t = {.c = c, .cell = BUF_INIT(SIZE_MAX)};
	sheaf_usage_sum total = both(&report->own, &report->inherited);
	size_t most = report->count + 4;
	t.cells = arena_zalloc(c->memory, most * COL_COUNT * sizeof(*t.cells));
	t.styles = arena_zalloc(c->memory, most * sizeof(*t.styles));
	if (t.cells == NULL || t.styles == NULL)
		return fail_memory(c);
	put_headings(&t, by);
	for (size_t i = 0; i < report->count; i++) {
		sheaf_usage_sum sum = both(&report->rows[i]->own, &report->rows[i]->inherited);
		put_line(&t, NULL);
		put_key(&t, report->rows[i], by);
		put_name(&t, report->rows[i], by);
		put_sum(&t, &sum);
	}
	if (report->inherited.replies != 0) {
		put_total(&t, "own", &report->own);
		put_total(&t, "inherited", &report->inherited);
	}
	put_total(&t, "total", &total);
	print_page(c);
	for (size_t i = 0; i < t.lines; i++)
		print_line(&t, &out, i);
	print_cache(&out, &total);
	print_out(&out);
	return t.broken || out.status != 0 ? fail_memory(c) : 0;
}

static int put_report(cli *c, const sheaf_usage_report *report, int32_t by)
{
	sheaf_usage_sum total = both(&report->own, &report->inherited);
	if (c->json)
		return put_json(c, report, by);
	if (total.replies == 0) {
		say(c, "no usage is recorded");
		return 0;
	}
	int rc = put_table(c, report, by);
	if (total.unpriced != 0)
		say(c, "+: %llu of %llu replies %s of a model without a known price",
		    (unsigned long long)total.unpriced, (unsigned long long)total.replies,
		    total.unpriced == 1 ? "is" : "are");
	if (report->unreadable != 0)
		say(c, "%llu %s could not be read", (unsigned long long)report->unreadable,
		    report->unreadable == 1 ? "record" : "records");
	return rc;
}

/* ---- The command ------------------------------------------------------- */

static int read_by(const cli *c)
{
	if (!given(c, OPT_BY))
		return c->word_count != 0 ? SHEAF_USAGE_BY_MODEL : SHEAF_USAGE_BY_SESSION;
	int by = SHEAF_USAGE_BY_SESSION;
	while (strcmp(c->values[OPT_BY], kinds[by]) != 0)
		by--;
	return by;
}

static int session_usage(cli *c, const sheaf_usage_options *how, sheaf_usage_report **report)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	int rc = open_for_reading(c, c->words[0], &session);
	if (rc != 0)
		return rc;
	return sheaf_session_usage(report, session, how, &c->err) != 0 ? fail(c) : 0;
}

static int store_usage(cli *c, const sheaf_usage_options *how, sheaf_usage_report **report)
{
	sheaf_list_options which = SHEAF_LIST_OPTIONS_INIT;
	int rc = open_store(c);
	if (rc != 0)
		return rc;
	which.app = c->app;
	which.user = c->user;
	/* All of an app if one is named, else all of the store. */
	which.all_apps = given(c, OPT_ALL) && !given(c, OPT_APP);
	which.all_users = given(c, OPT_ALL);
	return sheaf_store_usage(report, c->store, &which, how, &c->err) != 0 ? fail(c) : 0;
}

int cmd_usage(cli *c)
{
	sheaf_usage_options how = SHEAF_USAGE_OPTIONS_INIT;
	_cleanup_(report_done) sheaf_usage_report *report = NULL;
	int rc;
	if ((rc = opt_time(c, OPT_SINCE, &how.after_us)) != 0 ||
	    (rc = opt_time(c, OPT_BEFORE, &how.before_us)) != 0)
		return rc;
	how.by = read_by(c);
	if (how.by == SHEAF_USAGE_BY_TURN && c->word_count == 0)
		return usage(c, "--by turn is of one session: name it");
	if ((rc = load_models(c)) != 0)
		return rc;
	how.models = c->models;
	rc = c->word_count != 0 ? session_usage(c, &how, &report) : store_usage(c, &how, &report);
	return rc != 0 ? rc : put_report(c, report, how.by);
}
