/* Markdown as HTML: md4c parses, every tag is one of ours, links lead to the web or nowhere. */
#include <md4c.h>

#include "base/str.h"
#include "html_inside.h"

#define DEPTH_MAX 48          /* of blocks and spans inside each other */
#define TEXT_MAX (256u << 10) /* longer ones are shown as they are */
#define URL_MAX 4096u

typedef struct writer {
	buf *out;
	buf code; /* the code block that is being read */
	bool in_code;
	bool breaks;
	unsigned depth;
	unsigned links;   /* open <a> */
	uint64_t is_link; /* for each open link or image, from bit 0 on: whether it has an <a> … */
	unsigned link_depth; /* … and how many are open */
} writer;

/* ---- Links ------------------------------------------------------------------ */

static void put_code_point(buf *out, uint32_t c)
{
	char utf8[4];
	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x80) {
		buf_char(out, (char)c);
		return;
	}
	unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	utf8[0] = (char)((0xff00u >> (more + 1) & 0xffu) | c >> (6 * more));
	for (unsigned i = 1; i <= more; i++)
		utf8[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
	buf_add(out, utf8, more + 1);
}

/* A numeric entity as its character; false for a named one. */
static bool put_entity(buf *out, sheaf_str entity)
{
	uint32_t c = 0;
	if (entity.len < 4 || entity.ptr[1] != '#')
		return false;
	bool hex = entity.ptr[2] == 'x' || entity.ptr[2] == 'X';
	for (size_t i = hex ? 3 : 2; i + 1 < entity.len && c <= 0x10ffff; i++) {
		char d = entity.ptr[i];
		uint32_t digit = d <= '9' ? (uint32_t)(d - '0') : (uint32_t)((d | 0x20) - 'a') + 10;
		c = c * (hex ? 16 : 10) + digit;
	}
	put_code_point(out, c);
	return true;
}

/* An attribute with its numeric entities resolved. Named ones stay as they are spelled: the few
 * that matter in an address are written as characters by everybody. */
static void put_attribute(buf *out, const MD_ATTRIBUTE *a)
{
	for (unsigned i = 0; a->text != NULL && a->substr_offsets[i] < a->size; i++) {
		MD_OFFSET from = a->substr_offsets[i], to = a->substr_offsets[i + 1];
		sheaf_str piece = str_make(a->text + from, to - from);
		if (a->substr_types[i] == MD_TEXT_ENTITY && str_is(piece, "&amp;"))
			buf_char(out, '&');
		else if (a->substr_types[i] != MD_TEXT_ENTITY || !put_entity(out, piece))
			buf_str(out, piece);
	}
}

static bool starts_any_case(sheaf_str s, const char *with)
{
	size_t len = strlen(with);
	for (size_t i = 0; i < len; i++) {
		if (i >= s.len ||
		    (s.ptr[i] | (s.ptr[i] >= 'A' && s.ptr[i] <= 'Z' ? 0x20 : 0)) != with[i])
			return false;
	}
	return true;
}

/* Only these are ever put into a page as something to click. */
static bool may_link(sheaf_str url)
{
	if (url.len > URL_MAX)
		return false;
	for (size_t i = 0; i < url.len; i++) {
		if ((unsigned char)url.ptr[i] < 0x21 || url.ptr[i] == 0x7f)
			return false;
	}
	return starts_any_case(url, "https://") || starts_any_case(url, "http://") ||
	       starts_any_case(url, "mailto:");
}

static void open_link(writer *w, const MD_ATTRIBUTE *href, bool image)
{
	_cleanup_(buf_free) buf url = BUF_INIT(SIZE_MAX);
	put_attribute(&url, href);
	bool link = w->links == 0 && may_link(buf_view(&url));
	w->is_link = w->is_link << 1 | link;
	w->link_depth++;
	w->links += link;
	if (link) {
		buf_lit(w->out, "<a target=\"_blank\" rel=\"noopener noreferrer\" href=\"");
		html_attr(w->out, buf_view(&url));
		buf_lit(w->out, "\">");
	} else {
		buf_lit(w->out, "<span class=\"nolink\">");
	}
	if (image)
		buf_lit(w->out, "Image: ");
}

/* What may not be clicked can still be read. */
static void close_link(writer *w, const MD_ATTRIBUTE *href)
{
	bool link = w->is_link & 1;
	w->is_link >>= 1;
	w->link_depth--;
	w->links -= link;
	if (link) {
		buf_lit(w->out, "</a>");
		return;
	}
	_cleanup_(buf_free) buf url = BUF_INIT(SIZE_MAX);
	put_attribute(&url, href);
	if (url.len != 0) {
		buf_lit(w->out, " <code>");
		html_line(w->out, buf_view(&url), URL_MAX);
		buf_lit(w->out, "</code>");
	}
	buf_lit(w->out, "</span>");
}

/* ---- Blocks ----------------------------------------------------------------- */

static void put_heading(writer *w, const MD_BLOCK_H_DETAIL *h, bool open)
{
	/* The page has the first two levels. */
	buf_format(w->out, open ? "<h%u>" : "</h%u>", h->level > 4 ? 6 : h->level + 2);
}

static void put_item(writer *w, const MD_BLOCK_LI_DETAIL *li)
{
	if (!li->is_task)
		buf_lit(w->out, "<li>");
	else if (li->task_mark == ' ')
		buf_lit(w->out, "<li class=\"task\">☐ ");
	else
		buf_lit(w->out, "<li class=\"task\">☑ ");
}

static void put_cell(writer *w, const char *tag, const MD_BLOCK_TD_DETAIL *td)
{
	static const char *const classes[] = {"", " class=\"l\"", " class=\"m\"", " class=\"r\""};
	buf_format(w->out, "<%s%s>", tag, classes[td->align]);
}

static void put_code(writer *w, const MD_BLOCK_CODE_DETAIL *code)
{
	_cleanup_(buf_free) buf lang = BUF_INIT(SIZE_MAX);
	put_attribute(&lang, &code->info);
	html_code_begin(w->out, buf_view(&lang));
	if (starts_any_case(buf_view(&lang), "diff") || starts_any_case(buf_view(&lang), "patch"))
		html_patch(w->out, buf_view(&w->code));
	else
		html_text(w->out, buf_view(&w->code));
	html_code_end(w->out);
}

static int enter_block(MD_BLOCKTYPE type, void *detail, void *ctx)
{
	writer *w = ctx;
	if (++w->depth > DEPTH_MAX)
		return 1;
	switch (type) {
	case MD_BLOCK_QUOTE:
		buf_lit(w->out, "<blockquote>");
		break;
	case MD_BLOCK_UL:
		buf_lit(w->out, "<ul>");
		break;
	case MD_BLOCK_OL:
		buf_format(w->out, "<ol start=\"%u\">", ((MD_BLOCK_OL_DETAIL *)detail)->start);
		break;
	case MD_BLOCK_LI:
		put_item(w, detail);
		break;
	case MD_BLOCK_HR:
		buf_lit(w->out, "<hr>");
		break;
	case MD_BLOCK_H:
		put_heading(w, detail, true);
		break;
	case MD_BLOCK_CODE:
		w->in_code = true;
		buf_reset(&w->code);
		break;
	case MD_BLOCK_P:
		buf_lit(w->out, "<p>");
		break;
	case MD_BLOCK_TABLE:
		buf_lit(w->out, "<div class=\"wide\" tabindex=\"0\"><table>");
		break;
	case MD_BLOCK_TR:
		buf_lit(w->out, "<tr>");
		break;
	case MD_BLOCK_TH:
		put_cell(w, "th", detail);
		break;
	case MD_BLOCK_TD:
		put_cell(w, "td", detail);
		break;
	default:
		break;
	}
	return 0;
}

static int leave_block(MD_BLOCKTYPE type, void *detail, void *ctx)
{
	writer *w = ctx;
	w->depth--;
	switch (type) {
	case MD_BLOCK_QUOTE:
		buf_lit(w->out, "</blockquote>");
		break;
	case MD_BLOCK_UL:
		buf_lit(w->out, "</ul>");
		break;
	case MD_BLOCK_OL:
		buf_lit(w->out, "</ol>");
		break;
	case MD_BLOCK_LI:
		buf_lit(w->out, "</li>");
		break;
	case MD_BLOCK_H:
		put_heading(w, detail, false);
		break;
	case MD_BLOCK_CODE:
		w->in_code = false;
		put_code(w, detail);
		break;
	case MD_BLOCK_P:
		buf_lit(w->out, "</p>");
		break;
	case MD_BLOCK_TABLE:
		buf_lit(w->out, "</table></div>");
		break;
	case MD_BLOCK_TR:
		buf_lit(w->out, "</tr>");
		break;
	case MD_BLOCK_TH:
		buf_lit(w->out, "</th>");
		break;
	case MD_BLOCK_TD:
		buf_lit(w->out, "</td>");
		break;
	default:
		break;
	}
	return 0;
}

/* ---- Spans and text ---------------------------------------------------------- */

static const char *span_tag(MD_SPANTYPE type)
{
	switch (type) {
	case MD_SPAN_EM:
		return "em";
	case MD_SPAN_STRONG:
		return "strong";
	case MD_SPAN_CODE:
		return "code";
	case MD_SPAN_DEL:
		return "del";
	default:
		return "span";
	}
}

static int enter_span(MD_SPANTYPE type, void *detail, void *ctx)
{
	writer *w = ctx;
	if (++w->depth > DEPTH_MAX)
		return 1;
	if (type == MD_SPAN_A)
		open_link(w, &((MD_SPAN_A_DETAIL *)detail)->href, false);
	else if (type == MD_SPAN_IMG)
		open_link(w, &((MD_SPAN_IMG_DETAIL *)detail)->src, true);
	else
		buf_format(w->out, "<%s>", span_tag(type));
	return 0;
}

static int leave_span(MD_SPANTYPE type, void *detail, void *ctx)
{
	writer *w = ctx;
	w->depth--;
	if (type == MD_SPAN_A)
		close_link(w, &((MD_SPAN_A_DETAIL *)detail)->href);
	else if (type == MD_SPAN_IMG)
		close_link(w, &((MD_SPAN_IMG_DETAIL *)detail)->src);
	else
		buf_format(w->out, "</%s>", span_tag(type));
	return 0;
}

static int text(MD_TEXTTYPE type, const MD_CHAR *ptr, MD_SIZE size, void *ctx)
{
	writer *w = ctx;
	sheaf_str s = str_make(ptr, size);
	_cleanup_(buf_free) buf one = BUF_INIT(SIZE_MAX);
	if (w->in_code) {
		if (type == MD_TEXT_NULLCHAR)
			put_code_point(&w->code, 0);
		else
			buf_str(&w->code, s);
		return 0;
	}
	switch (type) {
	case MD_TEXT_NULLCHAR:
		put_code_point(w->out, 0);
		break;
	case MD_TEXT_BR:
		buf_lit(w->out, "<br>");
		break;
	case MD_TEXT_SOFTBR:
		buf_str(w->out, w->breaks ? SHEAF_STR("<br>") : SHEAF_STR("\n"));
		break;
	case MD_TEXT_ENTITY:
		/* A named entity is letters and digits: it stands for text, whatever it is. */
		if (put_entity(&one, s))
			html_text(w->out, buf_view(&one));
		else
			buf_str(w->out, s);
		break;
	default:
		html_text(w->out, s);
	}
	return 0;
}

static void put_plain(buf *out, sheaf_str s)
{
	buf_lit(out, "<p class=\"plain\">");
	html_text(out, s);
	buf_lit(out, "</p>");
}

void html_markdown(buf *out, sheaf_str s, int how)
{
	static const MD_PARSER parser = {
		.flags = MD_FLAG_NOHTML | MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH |
	                 MD_FLAG_TASKLISTS | MD_FLAG_PERMISSIVEURLAUTOLINKS |
	                 MD_FLAG_NOINDENTEDCODEBLOCKS,
		.enter_block = enter_block,
		.leave_block = leave_block,
		.enter_span = enter_span,
		.leave_span = leave_span,
		.text = text,
	};
	s = html_trim(s);
	if (s.len == 0)
		return;
	buf_lit(out, "<div class=\"md\" dir=\"auto\">");
	size_t begin = out->len;
	writer w = {.out = out, .code = BUF_INIT(SIZE_MAX), .breaks = how == MARKDOWN_BREAKS};
	_cleanup_(buf_free) buf whole = BUF_INIT(SIZE_MAX);
	if (s.len <= TEXT_MAX) {
		/* md4c looks at the byte after a last line that does not end (0.4.8). */
		buf_str(&whole, s);
		buf_char(&whole, '\n');
	}
	if (whole.len == 0 || whole.status != 0 ||
	    md_parse(whole.ptr, (MD_SIZE)whole.len, &parser, &w) != 0) {
		if (out->status == 0)
			out->len = begin;
		put_plain(out, s);
	}
	if (w.code.status != 0 && out->status == 0)
		out->status = w.code.status;
	buf_free(&w.code);
	buf_lit(out, "</div>");
}
