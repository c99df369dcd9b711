/* What a conversation has used: totals, a chart of its turns, a table of its models. */
#include "base/str.h"
#include "html_inside.h"
#include "model.h"

#define BARS_MAX 96u /* more turns than this share bars */
#define CHART_HEIGHT 100u
#define BAR_WIDTH 10u  /* in the chart's own units … */
#define BAR_PIXELS 32u /* … and on a screen, if there is room */

static void report_freep(sheaf_usage_report **report)
{
	sheaf_usage_report_free(*report);
}

static sheaf_usage_sum both(const sheaf_usage_sum *own, const sheaf_usage_sum *inherited)
{
	sheaf_usage_sum sum = *own;
	sheaf_usage_sum_add(&sum, inherited);
	return sum;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t writes(const sheaf_usage *u)
{
	return plus(u->cache_write_5m, u->cache_write_1h);
}

static uint64_t total(const sheaf_usage *u)
{
	return plus(plus(u->input, u->cache_read), plus(writes(u), u->output));
}

static void put_cost(buf *out, const sheaf_usage_sum *sum)
{
	char text[SHEAF_MONEY_ROOM];
	bool none = sum->unpriced != 0 && sum->unpriced == sum->replies;
	sheaf_money_format(text, none ? SHEAF_MONEY_UNKNOWN : sum->cost);
	html_text(out, sheaf_str_of(text));
	if (!none && sum->unpriced != 0)
		buf_char(out, '+');
}

/* ---- Totals ------------------------------------------------------------------------- */

static void put_tile(buf *out, const char *name, uint64_t number)
{
	buf_format(out, "<div><dt>%s</dt><dd title=\"", name);
	html_number(out, number);
	buf_lit(out, "\">");
	html_tokens(out, number);
	buf_lit(out, "</dd></div>");
}

static void put_tiles(buf *out, const sheaf_usage_sum *sum)
{
	const sheaf_usage *u = &sum->tokens;
	buf_lit(out, "<dl class=\"tiles\"><div><dt>Cost</dt><dd>");
	put_cost(out, sum);
	buf_lit(out, "</dd></div>");
	put_tile(out, "Replies", sum->replies);
	put_tile(out, "Input", u->input);
	put_tile(out, "From the cache", u->cache_read);
	put_tile(out, "Into the cache", writes(u));
	put_tile(out, "Output", u->output);
	buf_format(out, "<div><dt>Cache hit rate</dt><dd>%.0f%%</dd></div></dl>",
	           sheaf_usage_hit_rate(u) * 100);
}

/* ---- The chart ------------------------------------------------------------------------ */

static double put_rect(buf *out, const char *class, size_t column, double y, double height)
{
	if (height > 0)
		buf_format(out,
		           "<rect class=\"%s\" x=\"%zu\" y=\"%.2f\" width=\"%u\" height=\"%.2f\"/>",
		           class, column * BAR_WIDTH + 1, y - height, BAR_WIDTH - 2, height);
	return y - height;
}

/* A bar leads to its turn and says in words what it shows. */
static bool open_bar(html_page *p, size_t column, sheaf_str key, const sheaf_usage_sum *sum)
{
	buf *out = &p->out;
	const sheaf_usage *u = &sum->tokens;
	uint64_t at;
	bool found = map_get(&p->index.ids, key, &at);
	if (found)
		buf_format(out, "<a href=\"#e%llu\">", (unsigned long long)p->index.nodes[at].seq);
	buf_lit(out, "<g><title>");
	html_number(out, plus(plus(u->input, u->cache_read), writes(u)));
	buf_lit(out, " in (");
	html_number(out, u->cache_read);
	buf_lit(out, " from the cache), ");
	html_number(out, u->output);
	buf_lit(out, " out, ");
	put_cost(out, sum);
	buf_format(out,
	           "</title><rect class=\"hit\" x=\"%zu\" y=\"0\" width=\"%u\" height=\"%u\"/>",
	           column * BAR_WIDTH, BAR_WIDTH, CHART_HEIGHT);
	return found;
}

static void close_bar(buf *out, bool found)
{
	buf_str(out, found ? SHEAF_STR("</g></a>") : SHEAF_STR("</g>"));
}

static void put_tokens(html_page *p, size_t column, sheaf_str key, const sheaf_usage_sum *sum,
                       uint64_t most)
{
	const sheaf_usage *u = &sum->tokens;
	double scale = (double)CHART_HEIGHT / (double)most, y = CHART_HEIGHT;
	bool found = open_bar(p, column, key, sum);
	y = put_rect(&p->out, "u-read", column, y, (double)u->cache_read * scale);
	y = put_rect(&p->out, "u-write", column, y, (double)writes(u) * scale);
	y = put_rect(&p->out, "u-in", column, y, (double)u->input * scale);
	put_rect(&p->out, "u-out", column, y, (double)u->output * scale);
	close_bar(&p->out, found);
}

static void put_money(html_page *p, size_t column, sheaf_str key, const sheaf_usage_sum *sum,
                      sheaf_money most)
{
	bool found = open_bar(p, column, key, sum);
	put_rect(&p->out, "u-cost", column, CHART_HEIGHT,
	         (double)CHART_HEIGHT * (double)sum->cost / (double)most);
	close_bar(&p->out, found);
}

/* The rows of one bar, as one. */
static sheaf_usage_sum bucket(const sheaf_usage_report *r, size_t from, size_t to)
{
	sheaf_usage_sum sum = both(&r->rows[from]->own, &r->rows[from]->inherited);
	for (size_t i = from + 1; i < to; i++) {
		sheaf_usage_sum more = both(&r->rows[i]->own, &r->rows[i]->inherited);
		sheaf_usage_sum_add(&sum, &more);
	}
	return sum;
}

static void open_svg(buf *out, const char *class, const char *label, size_t bars)
{
	buf_format(out,
	           "<svg class=\"%s\" role=\"img\" aria-label=\"%s\" width=\"%zu\" "
	           "viewBox=\"0 0 %zu %u\" preserveAspectRatio=\"none\">",
	           class, label, bars * BAR_PIXELS, bars * BAR_WIDTH, CHART_HEIGHT);
}

static void put_keys(buf *out, size_t share, uint64_t most, sheaf_money dearest)
{
	char text[SHEAF_MONEY_ROOM];
	buf_lit(out, "<figcaption><span class=\"key u-out\">output</span><span class=\"key u-in\">"
	             "input</span><span class=\"key u-write\">into the cache</span><span "
	             "class=\"key u-read\">from the cache</span>");
	if (dearest > 0)
		buf_lit(out, "<span class=\"key u-cost\">cost</span>");
	buf_lit(out, "<span>");
	if (share > 1)
		buf_format(out, "%zu turns a bar, ", share);
	buf_lit(out, "at most ");
	html_tokens(out, most);
	buf_lit(out, " tokens");
	if (dearest > 0) {
		sheaf_money_format(text, dearest);
		buf_format(out, " and %s", text);
	}
	buf_lit(out, "</span></figcaption>");
}

static void put_chart(html_page *p, const sheaf_usage_report *r)
{
	sheaf_usage_sum sums[BARS_MAX];
	size_t share = (r->count + BARS_MAX - 1) / BARS_MAX, bars = (r->count + share - 1) / share;
	uint64_t most = 1;
	sheaf_money dearest = 0;
	for (size_t i = 0; i < bars; i++) {
		size_t end = (i + 1) * share < r->count ? (i + 1) * share : r->count;
		sums[i] = bucket(r, i * share, end);
		most = total(&sums[i].tokens) > most ? total(&sums[i].tokens) : most;
		dearest = sums[i].cost > dearest ? sums[i].cost : dearest;
	}
	buf_lit(&p->out, "<figure class=\"chart\">");
	open_svg(&p->out, "tokens", "Tokens of each turn", bars);
	for (size_t i = 0; i < bars; i++)
		put_tokens(p, i, r->rows[i * share]->key, &sums[i], most);
	buf_lit(&p->out, "</svg>");
	if (dearest > 0) {
		open_svg(&p->out, "cost", "Cost of each turn", bars);
		for (size_t i = 0; i < bars; i++)
			put_money(p, i, r->rows[i * share]->key, &sums[i], dearest);
		buf_lit(&p->out, "</svg>");
	}
	put_keys(&p->out, share, most, dearest);
	buf_lit(&p->out, "</figure>\n");
}

/* ---- The table ------------------------------------------------------------------------ */

static void put_cell(buf *out, uint64_t number)
{
	buf_lit(out, "<td class=\"r\">");
	html_number(out, number);
	buf_lit(out, "</td>");
}

static void put_models(buf *out, const sheaf_usage_report *r)
{
	buf_lit(out,
	        "<details class=\"aside\"><summary><span class=\"name\">By model</span></summary>"
	        "<div class=\"wide\" tabindex=\"0\"><table class=\"models\"><thead><tr>"
	        "<th scope=\"col\">Model</th><th scope=\"col\" class=\"r\">Replies</th>"
	        "<th scope=\"col\" class=\"r\">Input</th>"
	        "<th scope=\"col\" class=\"r\">From cache</th>"
	        "<th scope=\"col\" class=\"r\">Into cache</th>"
	        "<th scope=\"col\" class=\"r\">Output</th>"
	        "<th scope=\"col\" class=\"r\">Cost</th></tr></thead><tbody>");
	for (size_t i = 0; i < r->count; i++) {
		sheaf_usage_sum sum = both(&r->rows[i]->own, &r->rows[i]->inherited);
		buf_lit(out, "<tr><th scope=\"row\">");
		if (r->rows[i]->key.len != 0)
			html_line(out, r->rows[i]->key, 200);
		else
			buf_lit(out, "not said");
		buf_lit(out, "</th>");
		put_cell(out, sum.replies);
		put_cell(out, sum.tokens.input);
		put_cell(out, sum.tokens.cache_read);
		put_cell(out, writes(&sum.tokens));
		put_cell(out, sum.tokens.output);
		buf_lit(out, "<td class=\"r\">");
		put_cost(out, &sum);
		buf_lit(out, "</td></tr>");
	}
	buf_lit(out, "</tbody></table></div></details>");
}

int html_usage(html_page *p)
{
	_cleanup_(report_freep) sheaf_usage_report *turns = NULL, *models = NULL;
	sheaf_usage_options how = SHEAF_USAGE_OPTIONS_INIT;
	buf *out = &p->out;
	how.models = p->c->models;
	how.by = SHEAF_USAGE_BY_TURN;
	int rc = sheaf_session_usage(&turns, p->session, &how, &p->c->err);
	how.by = SHEAF_USAGE_BY_MODEL;
	if (rc == 0)
		rc = sheaf_session_usage(&models, p->session, &how, &p->c->err);
	if (rc != 0 || turns->count == 0)
		return rc;
	sheaf_usage_sum sum = both(&turns->own, &turns->inherited);
	buf_lit(out,
	        "<details class=\"usage\" open><summary><span class=\"name\">Usage</span> <span "
	        "class=\"brief\">");
	html_tokens(out, total(&sum.tokens));
	buf_lit(out, " tokens · ");
	put_cost(out, &sum);
	buf_lit(out, "</span></summary>");
	buf_lit(out, "<div class=\"figures\">");
	put_chart(p, turns);
	put_tiles(out, &sum);
	buf_lit(out, "</div>");
	put_models(out, models);
	if (sum.unpriced != 0)
		buf_lit(out,
		        "<p class=\"none\">+ and unknown: for some replies no price is known.</p>");
	buf_lit(out, "</details>\n");
	return 0;
}
