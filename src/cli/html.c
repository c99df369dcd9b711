/* sheaf export --html: the page as a whole, written as it is read. */
#include "html.h"

#include "base/str.h"
#include "html_inside.h"

#define FLUSH_BYTES (64u << 10)

int html_flush(html_page *p, bool all)
{
	if (p->out.status != 0)
		return p->out.status;
	if (p->out.len == 0 || (!all && p->out.len < FLUSH_BYTES))
		return 0;
	int rc = p->write(p->ctx, buf_view(&p->out));
	buf_reset(&p->out);
	return rc;
}

/* ---- The head --------------------------------------------------------------------------- */

/* A SHA-256 as a policy spells it. */
static void put_base64(buf *out, const char hex[])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned bits = 0, held = 0;
	for (size_t i = 0; hex[i] != '\0'; i++) {
		unsigned d = (unsigned)(hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
		bits = bits << 4 | d;
		held += 4;
		if (held >= 6) {
			held -= 6;
			buf_char(out, digits[bits >> held & 63]);
		}
	}
	/* 256 bits leave four over. */
	buf_char(out, digits[bits << (6 - held) & 63]);
	buf_char(out, '=');
}

static void put_title(buf *out, const sheaf_session_info *info)
{
	if (info->name.len != 0)
		html_line(out, info->name, 300);
	else if (info->preview.len != 0)
		html_line(out, info->preview, 120);
	else
		html_line(out, info->session, 300);
}

static void put_head(html_page *p)
{
	buf *out = &p->out;
	buf_lit(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	             "img-src data:; style-src 'sha256-");
	put_base64(out, html_style_sha256);
	buf_lit(out, "'; script-src 'sha256-");
	put_base64(out, html_script_sha256);
	buf_lit(out, "'; base-uri 'none'; form-action 'none'\">\n"
	             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	             "<meta name=\"referrer\" content=\"no-referrer\">\n"
	             "<meta name=\"color-scheme\" content=\"light dark\">\n"
	             "<meta name=\"generator\" content=\"sheaf\">\n"
	             "<link rel=\"icon\" href=\"data:,\">\n<title>");
	const sheaf_session_info *info = p->head->info;
	html_attr(out, info->name.len != 0      ? info->name
	               : info->preview.len != 0 ? info->preview
	                                        : info->session);
	buf_lit(out, "</title>\n<style>");
	buf_add(out, html_style, html_style_len);
	buf_lit(out, "</style>\n<script>");
	buf_add(out, html_script, html_script_len);
	buf_lit(out, "</script>\n</head>\n");
}

static void put_fact(buf *out, const char *name, sheaf_str value)
{
	if (value.len == 0)
		return;
	buf_format(out, "<div><dt>%s</dt><dd>", name);
	html_line(out, value, 1024);
	buf_lit(out, "</dd></div>");
}

static void put_facts(html_page *p)
{
	const sheaf_session_info *info = p->head->info;
	buf *out = &p->out;
	buf_lit(out, "<dl class=\"facts\">");
	put_fact(out, "Session", info->session);
	put_fact(out, "App", info->app);
	put_fact(out, "User", info->user);
	put_fact(out, "Directory", info->cwd);
	buf_lit(out, "<div><dt>From</dt><dd>");
	html_date(out, info->created_us);
	buf_lit(out, "</dd></div><div><dt>To</dt><dd>");
	html_date(out, info->modified_us);
	buf_lit(out, "</dd></div><div><dt>Messages</dt><dd>");
	html_number(out, info->messages);
	buf_lit(out, "</dd></div>");
	put_fact(out, "Fork of", info->source);
	put_fact(out, "Started by", info->parent_session);
	buf_lit(out, "</dl>\n");
	if (p->subagents->count != 0) {
		buf_lit(out,
		        "<details class=\"subs\"><summary><span class=\"name\">Sub-agents</span> "
		        "<span class=\"brief\">");
		html_number(out, p->subagents->count);
		buf_lit(out, "</span></summary><ul>");
		for (size_t i = 0; i < p->subagents->count; i++) {
			const sheaf_session_info *sub = p->subagents->items[i];
			buf_lit(out, "<li>");
			put_title(out, sub);
			buf_lit(out, " <code>");
			html_line(out, sub->session, 400);
			buf_lit(out, "</code></li>");
		}
		buf_lit(out, "</ul></details>\n");
	}
	if (p->head->damaged)
		buf_lit(out,
		        "<p class=\"warn\">Some records of this session cannot be read.</p>\n");
}

static void put_bar(html_page *p)
{
	buf *out = &p->out;
	buf_lit(out, "<header class=\"top\" role=\"banner\">\n"
	             "<button type=\"button\" id=\"show-tree\" class=\"js\" aria-controls=\"tree\" "
	             "aria-expanded=\"false\">Tree</button>\n<a class=\"title\" href=\"#top\">");
	put_title(out, p->head->info);
	buf_lit(out,
	        "</a>\n<search class=\"js\" role=\"search\"><label class=\"away\" for=\"find\">Search in "
	        "this conversation</label><input id=\"find\" type=\"search\" placeholder=\"Search\" "
	        "autocomplete=\"off\" spellcheck=\"false\"><output id=\"found\" for=\"find\" "
	        "aria-live=\"polite\"></output><button type=\"button\" id=\"find-back\" "
	        "aria-label=\"Previous hit\">↑</button><button type=\"button\" id=\"find-next\" "
	        "aria-label=\"Next hit\">↓</button></search>\n"
	        "<div class=\"tools js\"><button type=\"button\" id=\"open-all\">Expand all</button>"
	        "<button type=\"button\" id=\"close-all\">Collapse all</button><button "
	        "type=\"button\" id=\"theme\" aria-label=\"Light or dark\">◐</button><button "
	        "type=\"button\" id=\"keys\" aria-label=\"Keys\">?</button></div>\n</header>\n");
}

static void put_branches(html_page *p)
{
	buf *out = &p->out;
	if (p->head->branch_count < 2)
		return;
	buf_lit(out, "<h2>Branches</h2>\n<ul class=\"branches\">");
	for (size_t i = 0; i < p->head->branch_count; i++) {
		const sheaf_branch_info *b = p->head->branches[i];
		buf_lit(out, "<li>");
		if (b->leaf_seq != 0)
			buf_format(out, "<a href=\"#e%llu\" data-leaf=\"%llu\">",
			           (unsigned long long)b->leaf_seq,
			           (unsigned long long)b->leaf_seq);
		html_line(out, b->name, 200);
		if (b->leaf_seq != 0)
			buf_lit(out, "</a>");
		buf_lit(out, "</li>");
	}
	buf_lit(out, "</ul>\n");
}

static void put_keys(buf *out)
{
	static const char *const keys[][2] = {
		{"j k", "next and previous entry"},
		{"n p", "next and previous message of the user"},
		{"o", "fold or unfold what the entry has"},
		{"e c", "expand all, collapse all"},
		{"/", "search; Enter and Shift+Enter go from hit to hit"},
		{"t", "the tree"},
		{"d", "light or dark"},
		{"Esc", "leave"},
	};
	buf_lit(out, "<dialog id=\"help\" aria-label=\"Keys\"><h2>Keys</h2><dl>");
	for (size_t i = 0; i < COUNT_OF(keys); i++)
		buf_format(out, "<dt><kbd>%s</kbd></dt><dd>%s</dd>", keys[i][0], keys[i][1]);
	buf_lit(out, "</dl><button type=\"button\" id=\"help-close\">Close</button></dialog>\n");
}

/* ---- The entries -------------------------------------------------------------------------- */

static int put_entries(html_page *p, bool on_path)
{
	html_reader r = HTML_READER_INIT;
	int rc = 0;
	while (rc == 0 && !r.done) {
		_cleanup_(records_freep) sheaf_records *page = NULL;
		rc = html_read(p, &r, SHEAF_KINDS_ENTRIES, &page);
		p->records = page;
		for (size_t i = 0; rc == 0 && i < page->count; i++) {
			uint32_t at = html_index_of(&p->index, page->items[i]->seq);
			if (at == NONE || p->index.nodes[at].on_path != on_path ||
			    p->index.nodes[at].named)
				continue;
			p->index.nodes[at].named = true;
			html_entry(p, page->items[i], at);
			rc = html_flush(p, false);
		}
		p->records = NULL;
	}
	return rc;
}

static int put_main(html_page *p)
{
	buf *out = &p->out;
	buf_lit(out, "<main id=\"main\" tabindex=\"-1\">\n<section class=\"about\" "
	             "aria-label=\"About this session\"><h1>");
	put_title(out, p->head->info);
	buf_lit(out, "</h1>\n");
	put_facts(p);
	int rc = html_usage(p);
	buf_lit(out, "</section>\n<section id=\"path\" aria-label=\"Conversation\">\n");
	if (rc == 0)
		rc = put_entries(p, true);
	buf_lit(out, "</section>\n");
	if (rc == 0 && p->index.others) {
		buf_lit(out, "<section id=\"others\" aria-label=\"Other branches\"><h2 "
		             "class=\"others\">Other branches</h2>\n");
		rc = put_entries(p, false);
		buf_lit(out, "</section>\n");
	}
	buf_lit(out, "</main>\n");
	return rc;
}

static int put_page(html_page *p)
{
	buf *out = &p->out;
	sheaf_key key = sheaf_session_key(p->session);
	put_head(p);
	buf_lit(out, "<body id=\"top\" data-key=\"");
	html_attr(out, key.app);
	buf_char(out, '/');
	html_attr(out, key.user);
	buf_char(out, '/');
	html_attr(out, key.session);
	buf_format(out, "\" data-leaf=\"%llu", (unsigned long long)p->index.leaf);
	buf_lit(out, "\">\n<a class=\"skip\" href=\"#main\">Skip to the conversation</a>\n");
	put_bar(p);
	buf_lit(out,
	        "<div class=\"page\">\n<nav id=\"tree\" aria-label=\"Tree of the conversation\">\n"
	        "<div class=\"side\">");
	put_branches(p);
	buf_lit(out, "<h2>Tree <label class=\"js\"><input type=\"checkbox\" id=\"all-nodes\"> "
	             "everything</label></h2>\n");
	int rc = html_tree(p);
	buf_lit(out, "</div></nav>\n");
	if (rc == 0)
		rc = put_main(p);
	buf_lit(out, "</div>\n");
	put_keys(out);
	buf_lit(out, "</body>\n</html>\n");
	return rc != 0 ? rc : html_flush(p, true);
}

int html_export(cli *c, sheaf_session *session, const place *at, sheaf_write_fn write, void *ctx)
{
	html_page p = {.c = c, .session = session, .write = write, .ctx = ctx};
	p.out = (buf)BUF_INIT(SIZE_MAX);
	int rc = sheaf_session_head(&p.head, session, &c->err);
	if (rc == 0)
		rc = html_index_read(&p, at);
	if (rc == 0)
		rc = put_page(&p);
	html_index_free(&p.index);
	sheaf_list_free(p.subagents);
	sheaf_head_view_free(p.head);
	buf_free(&p.out);
	return rc;
}
