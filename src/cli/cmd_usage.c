/* sheaf usage: the tokens that sessions have used, and what they cost. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "find.h"
#include "model.h"
#include "opt.h"
#include "print.h"
#include "text.h"
#include "view.h"

#define KEY_MAX 44u
#define NAME_MAX_COLUMNS 32u
#define GAP 2u

#define BAR_MAX 24u
#define BAR_MIN 6u
#define BAR_IN_PIPE 20u
#define PERCENT 5u /* columns of "100% " */
#define KEY_MIN 12u
#define STYLE_BAR "36"

static const char *const kinds[] = {"", "turn", "model", "day", "session", "project"};

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
	COL_TOKENS, /* all of them, where there is no room for each kind */
	COL_COST,
	COL_SHARE,
	COL_COUNT
};

/* A line of the table; its cells are put on paper when all are known, so that columns fit. */
typedef struct line {
	sheaf_str cells[COL_COUNT];
	const char *style;
	double amount; /* what its bar stands for; below 0: it has none */
} line;

typedef struct table {
	cli *c;
	line *lines;
	size_t count;
	size_t width[COL_COUNT];
	bool by_path;  /* keys are directories */
	bool by_money; /* bars are of money, else of tokens */
	bool bars;
	double most;  /* of the amounts */
	double total; /* of all of them */
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
	t->lines[t->count - 1].cells[column] = arena_dup(t->c->memory, buf_view(&t->cell), &ok);
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

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Reasoning is part of the output. */
static uint64_t tokens_of(const sheaf_usage *u)
{
	uint64_t writes = sum_of(u->cache_write_5m, u->cache_write_1h);
	return sum_of(sum_of(u->input, u->cache_read), sum_of(writes, u->output));
}

static void put_sum(table *t, const sheaf_usage_sum *sum)
{
	const sheaf_usage *u = &sum->tokens;
	uint64_t writes = sum_of(u->cache_write_5m, u->cache_write_1h);
	put_number(t, COL_REPLIES, sum->replies);
	put_number(t, COL_INPUT, u->input);
	put_number(t, COL_READ, u->cache_read);
	put_number(t, COL_WRITE, writes);
	put_number(t, COL_OUTPUT, u->output);
	put_number(t, COL_TOKENS, tokens_of(u));
	buf_format(&t->cell, "%.0f%%", sheaf_usage_hit_rate(u) * 100);
	put_cell(t, COL_HIT_RATE);
	put_cost(t, sum);
}

static void put_line(table *t, const char *style)
{
	t->lines[t->count++] = (line){.style = style, .amount = -1};
}

static void put_total(table *t, const char *word, const sheaf_usage_sum *sum)
{
	put_line(t, STYLE_TITLE);
	buf_str(&t->cell, sheaf_str_of(word));
	put_cell(t, COL_KEY);
	put_sum(t, sum);
}

static double amount_of(const table *t, const sheaf_usage_sum *sum)
{
	return t->by_money ? (double)sum->cost : (double)tokens_of(&sum->tokens);
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
	if (by == SHEAF_USAGE_BY_PROJECT)
		view_directory(&key, row->key);
	else if (by == SHEAF_USAGE_BY_SESSION && t->c->screen.tty)
		text_safe(&key, id_of(row->key), TEXT_ID);
	else
		text_safe(&key, row->key, TEXT_ID);
	if (row->key.len == 0)
		buf_str(&key, by == SHEAF_USAGE_BY_PROJECT ? SHEAF_STR("(no directory)")
		                                           : SHEAF_STR("(not said)"));
	if (by == SHEAF_USAGE_BY_PROJECT)
		text_cut_front(&t->cell, buf_view(&key), t->c->screen.tty ? KEY_MAX : 0);
	else
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
	static const char *const words[] = {"", "TURN", "MODEL", "DAY", "SESSION", "PROJECT"};
	static const char *const headings[COL_COUNT] = {
		"",       "",         "REPLIES", "INPUT", "CACHE READ", "CACHE WRITE",
		"OUTPUT", "HIT RATE", "TOKENS",  "COST",  "",
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
		else if (column == COL_SHARE && t->bars)
			text = t->by_money ? "OF COST" : "OF TOKENS";
		buf_str(&t->cell, sheaf_str_of(text));
		put_cell(t, column);
	}
}

/* ---- Putting it on paper ----------------------------------------------- */

/* Columns of the table without the bars. */
static size_t width_of(const table *t)
{
	size_t width = 0;
	for (int column = 0; column < COL_SHARE; column++)
		width += t->width[column] != 0 ? t->width[column] + GAP : 0;
	return width - GAP;
}

static size_t shortest(const table *t, int column)
{
	return t->width[column] < KEY_MIN ? t->width[column] : KEY_MIN;
}

/* How much too wide the table is, with keys and names cut (`shortest`) or not, and its bars short. */
static size_t over(const table *t, bool cut)
{
	size_t have = t->c->screen.width, need = width_of(t);
	need += t->bars ? GAP + PERCENT + BAR_MIN : 0;
	if (cut)
		need -= t->width[COL_KEY] - shortest(t, COL_KEY) + t->width[COL_NAME] -
		        shortest(t, COL_NAME);
	return need > have ? need - have : 0;
}

static void give(table *t, int column)
{
	size_t most = t->width[column] - shortest(t, column), wanted = over(t, false);
	t->width[column] -= wanted < most ? wanted : most;
}

/*
 * Which columns there are, and how wide. A terminal that is too narrow gets one
 * column for all tokens and so room for the bars; then names and keys are cut,
 * then columns go, and last the bars.
 */
static void fit(table *t)
{
	size_t have = t->c->screen.width, tokens = t->width[COL_TOKENS];
	t->width[COL_TOKENS] = 0;
	if (have == 0) {
		t->width[COL_SHARE] = t->bars ? PERCENT + BAR_IN_PIPE : 0;
		return;
	}
	if (over(t, false) != 0) {
		for (int column = COL_INPUT; column < COL_TOKENS; column++)
			t->width[column] = 0;
		t->width[COL_TOKENS] = tokens;
	}
	if (over(t, true) != 0)
		t->width[COL_REPLIES] = 0;
	if (over(t, true) != 0)
		t->width[COL_NAME] = 0;
	if (over(t, true) != 0)
		t->bars = false;
	give(t, COL_NAME);
	give(t, COL_KEY);
	size_t room = t->bars ? have - width_of(t) - GAP : 0;
	t->width[COL_SHARE] = room > PERCENT + BAR_MAX ? PERCENT + BAR_MAX : room;
}

static void print_share(const table *t, buf *out, double amount)
{
	_cleanup_(buf_free) buf bar = BUF_INIT(SIZE_MAX);
	if (!t->bars || amount < 0 || t->total <= 0)
		return;
	text_spaces(out, GAP);
	buf_format(out, "%3.0f%%", amount / t->total * 100);
	if (amount > 0)
		buf_char(out, ' ');
	text_bar(&bar, amount / t->most, t->width[COL_SHARE] - PERCENT);
	print_styled(&t->c->screen, out, STYLE_BAR, buf_view(&bar));
}

static void print_line(const table *t, buf *out, const line *l)
{
	_cleanup_(buf_free) buf cut = BUF_INIT(SIZE_MAX);
	for (int column = 0; column < COL_SHARE; column++) {
		if (t->width[column] == 0)
			continue;
		sheaf_str cell = l->cells[column].ptr != NULL ? l->cells[column] : SHEAF_STR("");
		buf_reset(&cut);
		if (column == COL_KEY && t->by_path)
			text_cut_front(&cut, cell, t->width[column]);
		else
			text_cut(&cut, cell, t->width[column]);
		size_t pad = t->width[column] - text_width(buf_view(&cut));
		if (column >= COL_REPLIES)
			text_spaces(out, pad);
		print_styled(&t->c->screen, out, l->style, buf_view(&cut));
		if (column < COL_REPLIES)
			text_spaces(out, pad);
		if (column != COL_COST)
			text_spaces(out, GAP);
	}
	if (t->bars && l->cells[COL_SHARE].len != 0) {
		text_spaces(out, GAP);
		print_styled(&t->c->screen, out, l->style, l->cells[COL_SHARE]);
	}
	print_share(t, out, l->amount);
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

/* Whether so many rows have used anything. */
static bool has_rows(const sheaf_usage_report *report, size_t wanted)
{
	size_t used = 0;
	for (size_t i = 0; i < report->count && used < wanted; i++)
		used += report->rows[i]->own.replies + report->rows[i]->inherited.replies != 0;
	return used == wanted;
}

/* A line for each row of the report that has anything to say, and its bar. */
static void put_rows(table *t, const sheaf_usage_report *report, int32_t by)
{
	for (size_t i = 0; i < report->count; i++) {
		sheaf_usage_sum sum = both(&report->rows[i]->own, &report->rows[i]->inherited);
		double amount = amount_of(t, &sum);
		if (sum.replies == 0)
			continue;
		put_line(t, NULL);
		put_key(t, report->rows[i], by);
		put_name(t, report->rows[i], by);
		put_sum(t, &sum);
		t->lines[t->count - 1].amount = amount;
		t->most = amount > t->most ? amount : t->most;
	}
}

static int put_table(cli *c, const sheaf_usage_report *report, int32_t by)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	_cleanup_(table_done) table t = {.c = c, .cell = BUF_INIT(SIZE_MAX)};
	sheaf_usage_sum total = both(&report->own, &report->inherited);
	t.lines = arena_zalloc(c->memory, (report->count + 4) * sizeof(*t.lines));
	if (t.lines == NULL)
		return fail_memory(c);
	t.by_path = by == SHEAF_USAGE_BY_PROJECT;
	t.by_money = total.unpriced == 0 && total.cost > 0;
	t.total = amount_of(&t, &total);
	t.bars = t.total > 0 && has_rows(report, 2);
	put_headings(&t, by);
	put_rows(&t, report, by);
	if (report->inherited.replies != 0) {
		put_total(&t, "own", &report->own);
		put_total(&t, "inherited", &report->inherited);
	}
	put_total(&t, "total", &total);
	fit(&t);
	print_page(c);
	for (size_t i = 0; i < t.count; i++)
		print_line(&t, &out, &t.lines[i]);
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
	int by = SHEAF_USAGE_BY_PROJECT;
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
	char directory[PATH_MAX];
	int rc;
	if ((rc = find_project(c, directory, &which.cwd)) != 0 || (rc = open_store(c)) != 0)
		return rc;
	which.cwd_below = 1;
	which.agent = opt_str(c, OPT_AGENT);
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
	if (c->word_count != 0 &&
	    (given(c, OPT_PROJECT) || given(c, OPT_HERE) || given(c, OPT_AGENT)))
		return usage(c, "--project, --here and --agent choose among sessions: name none");
	if ((rc = load_models(c)) != 0)
		return rc;
	how.models = c->models;
	rc = c->word_count != 0 ? session_usage(c, &how, &report) : store_usage(c, &how, &report);
	return rc != 0 ? rc : put_report(c, report, how.by);
}
