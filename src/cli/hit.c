/* Hits of a search as people read them: the session, who said it, the snippet. */
#include "hit.h"

#include "base/str.h"

#define TITLE_MAX 72u
#define STYLE_MATCH "1;31"

/* ---- Snippets ---------------------------------------------------------------------------- */

/* A snippet as one safe line, and where its marks are in it. */
typedef struct clean {
	buf text;
	sheaf_mark marks[64];
	size_t count;
} clean;

static void clean_done(clean *l)
{
	buf_free(&l->text);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Appends text whose runs of blanks become one. */
static void clean_add(clean *l, sheaf_str s)
{
	for (size_t at = 0; at < s.len;) {
		size_t from = at;
		while (at < s.len && is_space(s.ptr[at]))
			at++;
		if (at != from && l->text.len != 0 && l->text.ptr[l->text.len - 1] != ' ')
			buf_char(&l->text, ' ');
		from = at;
		while (at < s.len && !is_space(s.ptr[at]))
			at++;
		text_safe(&l->text, str_make(s.ptr + from, at - from), TEXT_ID);
	}
}

static void clean_make(clean *l, const sheaf_hit *hit)
{
	size_t at = 0;
	if (hit->cut_before)
		buf_str(&l->text, sheaf_str_of(text_glyphs()->ellipsis));
	for (size_t i = 0; i < hit->mark_count && l->count < 64; i++) {
		const sheaf_mark *m = &hit->marks[i];
		clean_add(l, str_make(hit->snippet.ptr + at, m->begin - at));
		size_t begin = l->text.len;
		clean_add(l, str_make(hit->snippet.ptr + m->begin, m->end - m->begin));
		l->marks[l->count++] = (sheaf_mark){begin, l->text.len};
		at = m->end;
	}
	clean_add(l, str_make(hit->snippet.ptr + at, hit->snippet.len - at));
	while (l->text.len != 0 && l->text.ptr[l->text.len - 1] == ' ')
		l->text.len--;
	if (hit->cut_after)
		buf_str(&l->text, sheaf_str_of(text_glyphs()->ellipsis));
}

/* Bytes [from, to) with what matches brought out. */
static void put_range(const cli *c, buf *out, const clean *l, size_t from, size_t to)
{
	for (size_t i = 0; i < l->count && from < to; i++) {
		size_t begin = l->marks[i].begin, end = l->marks[i].end;
		if (end <= from || begin >= to)
			continue;
		begin = begin < from ? from : begin;
		end = end > to ? to : end;
		buf_add(out, l->text.ptr + from, begin - from);
		print_styled(&c->screen, out, STYLE_MATCH,
		             str_make(l->text.ptr + begin, end - begin));
		from = end;
	}
	buf_add(out, l->text.ptr + from, to - from);
}

/* Where a line of so many columns that begins at `from` ends: between words if it can. */
static size_t line_end(sheaf_str text, size_t from, size_t columns)
{
	size_t at = from, blank = 0, width = 0;
	while (at < text.len) {
		size_t next = text_cluster(text, at);
		width += text_width(str_make(text.ptr + at, next - at));
		if (text.ptr[at] == ' ')
			blank = at;
		if (width > columns)
			return blank > from ? blank : at > from ? at : next;
		at = next;
	}
	return text.len;
}

void hit_snippet(const cli *c, buf *out, const sheaf_hit *hit, size_t indent, unsigned lines)
{
	_cleanup_(clean_done) clean l = {.text = BUF_INIT(SIZE_MAX)};
	clean_make(&l, hit);
	sheaf_str text = buf_view(&l.text);
	size_t width = c->screen.width;
	size_t columns = width > 2 * indent ? width - indent : SIZE_MAX;
	size_t at = 0;
	for (unsigned i = 0; at < text.len && i < lines; i++) {
		size_t end = line_end(text, at, columns);
		text_spaces(out, indent);
		put_range(c, out, &l, at, end);
		buf_char(out, '\n');
		for (at = end; at < text.len && text.ptr[at] == ' ';)
			at++;
	}
}

/* ---- Who and where ---------------------------------------------------------------------------- */

void hit_session(const cli *c, buf *out, const sheaf_hit *hit, bool id)
{
	_cleanup_(buf_free) buf title = BUF_INIT(SIZE_MAX);
	_cleanup_(buf_free) buf cut = BUF_INIT(SIZE_MAX);
	_cleanup_(buf_free) buf rest = BUF_INIT(SIZE_MAX);
	text_safe(&title, hit->name.len != 0 ? hit->name : hit->preview, TEXT_LINE);
	text_cut(&cut, buf_view(&title), TITLE_MAX);
	print_styled(&c->screen, out, STYLE_TITLE,
	             cut.len != 0 ? buf_view(&cut) : SHEAF_STR("(no name)"));
	if (id) {
		buf_format(&rest, " %s ", text_glyphs()->dot);
		text_safe(&rest, hit->session, TEXT_ID);
	}
	if (hit->cwd.len != 0) {
		buf_format(&rest, " %s ", text_glyphs()->dot);
		view_directory(&rest, hit->cwd);
	}
	print_styled(&c->screen, out, STYLE_DIM, buf_view(&rest));
}

static const char *role_style(int32_t role)
{
	switch (role) {
	case SHEAF_HIT_USER:
		return STYLE_USER;
	case SHEAF_HIT_ASSISTANT:
		return STYLE_ASSISTANT;
	case SHEAF_HIT_CALL:
	case SHEAF_HIT_TOOL:
		return STYLE_TOOL;
	case SHEAF_HIT_SUMMARY:
		return STYLE_COMPACTED;
	default:
		return STYLE_OTHER;
	}
}

void hit_who(const cli *c, buf *out, const sheaf_hit *hit)
{
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
	print_styled(&c->screen, out, role_style(hit->role),
	             sheaf_str_of(sheaf_hit_role(hit->role)));
	if (hit->tool.len != 0) {
		buf_char(&line, ' ');
		text_safe(&line, hit->tool, TEXT_LINE);
	}
	buf_format(&line, " %s ", text_glyphs()->dot);
	text_ago(&line, hit->time_us, c->screen.now_us);
	print_styled(&c->screen, out, STYLE_DIM, buf_view(&line));
}
