/* sheaf path: the entries from the root to a leaf, one line each. */
#include "find.h"
#include "opt.h"
#include "view.h"

#define ID_MIN 8u

/*
 * How much of each id tells it from its neighbours. Generated ids ascend, so
 * neighbours on a path are the ones most alike.
 */
static size_t id_columns(const cli *c, const sheaf_records *path)
{
	size_t longest = 0, needed = ID_MIN;
	for (size_t i = 0; i < path->count; i++) {
		sheaf_str id = path->items[i]->id;
		longest = id.len > longest ? id.len : longest;
		if (i > 0) {
			size_t n = text_shared(id, path->items[i - 1]->id) + 1;
			needed = n > needed ? n : needed;
		}
	}
	return !c->screen.tty || needed > longest ? longest : needed;
}

static void put_entry(view *v, const sheaf_entry *e, size_t id_width, size_t seq_width)
{
	const screen *s = &v->c->screen;
	buf *out = &v->out;
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	size_t begin = out->len;
	buf_format(&text, "@%-*llu  ", (int)seq_width, (unsigned long long)e->seq);
	print_styled(s, out, STYLE_DIM, buf_view(&text));
	buf_reset(&text);
	text_safe(&text, (sheaf_str){e->id.ptr, e->id.len < id_width ? e->id.len : id_width},
	          TEXT_ID);
	print_styled(s, out, NULL, buf_view(&text));
	text_spaces(out, id_width - (text.len < id_width ? text.len : id_width) + 2);

	buf_reset(&text);
	buf_format(&text, "%-*s", (int)VIEW_WORD, view_word(e));
	print_styled(s, out, view_word_style(e), buf_view(&text));
	buf_lit(out, "  ");
	buf_reset(&text);
	if (e->label.len != 0) {
		buf_lit(&text, "[");
		text_safe(&text, e->label, TEXT_LINE);
		buf_lit(&text, "] ");
		print_styled(s, out, STYLE_LABEL, buf_view(&text));
	}
	size_t used = 1 + seq_width + 2 + id_width + 2 + VIEW_WORD + 2 +
	              text_width(buf_view(&text));
	buf_reset(&text);
	view_preview(v, &text, e);
	text_cut(out, buf_view(&text), s->width > used + 10 ? s->width - used : s->width ? 10 : 0);
	while (out->len > begin && out->ptr[out->len - 1] == ' ')
		out->len--;
	buf_char(out, '\n');
	view_note(v, e);
}

static void put_json(buf *out, const sheaf_entry *e)
{
	js_line(out, e->line);
	buf_char(out, '\n');
}

int cmd_path(cli *c)
{
	uint64_t limit = 0;
	int rc = opt_u64(c, OPT_LIMIT, &limit);
	if (rc != 0)
		return rc;
	_cleanup_(session_closep) sheaf_session *session = NULL;
	_cleanup_(records_freep) sheaf_records *path = NULL;
	place at;
	if ((rc = open_for_reading(c, c->words[0], &session)) != 0 ||
	    (rc = find_place(c, session, &at)) != 0)
		return rc;
	if (sheaf_session_path(&path, session, at.branch, at.leaf, limit, &c->err) != 0)
		return fail(c);
	print_page(c);
	_cleanup_(view_done) view v = VIEW_INIT(c, false);
	size_t id_width = id_columns(c, path), seq_width = 1;
	for (uint64_t seq = path->count != 0 ? path->items[path->count - 1]->seq : 0; seq > 9;
	     seq /= 10)
		seq_width++;
	for (size_t i = 0; i < path->count; i++) {
		if (c->json)
			put_json(&v.out, path->items[i]);
		else
			put_entry(&v, path->items[i], id_width, seq_width);
		print_out(&v.out);
	}
	return v.out.status != 0 ? fail_memory(c) : 0;
}
