/* Tables of Markdown on a page. */
#include "markdown_inside.h"

#include "base/str.h"

#define GRID_COLUMNS 32u /* what has more is no grid that anybody reads */
#define CELL_MIN 5u      /* a narrower one is no grid either */

static md_cell cell_at(const md_table *t, size_t row, size_t column)
{
	size_t i = row * t->columns + column;
	return i < t->count ? t->cells[i] : (md_cell){0};
}

static size_t rows_of(const md_table *t)
{
	return (t->count + t->columns - 1) / t->columns;
}

/* The widths of a grid of at most `room` columns: what is widest gives first. False: too narrow. */
static bool measure(const md_table *t, size_t room, size_t *widths)
{
	size_t total = 3 * (t->columns - 1), widest = 1;
	for (size_t i = 0; i < t->columns; i++)
		widths[i] = 1;
	for (size_t i = 0; i < t->count; i++) {
		size_t width = md_flow_width(&t->cells[i].flow);
		size_t *most = &widths[i % t->columns];
		*most = width > *most ? width : *most;
	}
	for (size_t i = 0; i < t->columns; i++) {
		total += widths[i];
		widest = widths[i] > widest ? widths[i] : widest;
	}
	if (room == 0 || total <= room)
		return true;
	size_t least = 3 * (t->columns - 1);
	for (size_t i = 0; i < t->columns; i++)
		least += widths[i] < CELL_MIN ? widths[i] : CELL_MIN;
	if (least > room)
		return false;
	for (size_t cap = widest < room ? widest : room; total > room; cap--) {
		total = 3 * (t->columns - 1);
		for (size_t i = 0; i < t->columns; i++) {
			widths[i] = widths[i] > cap ? cap : widths[i];
			total += widths[i];
		}
	}
	return true;
}

/* One line of one cell, with what fills it up. */
static void put_cell_row(md_page *p, md_cursor *w, int align, size_t width, bool last)
{
	md_row row = {0};
	bool any = md_next_row(w, width, true, &row);
	size_t columns = any ? row.columns : 0;
	size_t pad = width > columns ? width - columns : 0, before = 0;
	if (align != MD_LEFT)
		before = align == MD_RIGHT ? pad : pad / 2;
	if (!any && last)
		return;
	md_put_blanks(p, before);
	if (any)
		md_put_row(p, w, &row);
	if (!last)
		md_put_blanks(p, pad - before);
}

static void put_grid_row(md_page *p, const md_table *t, size_t row, const size_t *widths,
                         md_prefix *prefix, void *by)
{
	md_cursor cells[GRID_COLUMNS];
	bool more = true;
	for (size_t i = 0; i < t->columns; i++)
		cells[i] = (md_cursor){.flow = cell_at(t, row, i).flow};
	while (more) {
		more = false;
		prefix(by);
		for (size_t i = 0; i < t->columns; i++) {
			bool last = i + 1 == t->columns;
			put_cell_row(p, &cells[i], cell_at(t, row, i).align, widths[i], last);
			if (!last)
				md_put(p, sheaf_str_of(text_glyphs()->table_bar), MARKDOWN_DIM, 3);
			more = more || cells[i].at < cells[i].flow.text.len;
		}
		md_end_line(p);
	}
}

static void put_rule(md_page *p, const size_t *widths, size_t count, md_prefix *prefix, void *by)
{
	const glyphs *g = text_glyphs();
	_cleanup_(buf_free) buf rule = BUF_INIT(SIZE_MAX);
	size_t columns = 0;
	int ok = 1;
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_str(&rule, sheaf_str_of(g->table_cross));
		for (size_t k = 0; k < widths[i]; k++)
			buf_str(&rule, sheaf_str_of(g->rule));
		columns += widths[i] + (i > 0 ? 3 : 0);
	}
	prefix(by);
	md_put(p, arena_dup(p->memory, buf_view(&rule), &ok), MARKDOWN_DIM, columns);
	p->status = ok && rule.status == 0 ? p->status : SHEAF_NOMEM;
	md_end_line(p);
}

/* "heading: what it says" for every cell of a row, with a blank line between rows. */
static void put_list_row(md_page *p, const md_table *t, size_t row, size_t room, md_prefix *prefix,
                         void *by)
{
	for (size_t i = 0; i < t->columns; i++) {
		md_flow parts[] = {cell_at(t, 0, i).flow, cell_at(t, row, i).flow};
		for (size_t k = 0; k < (row == 0 ? 1u : 2u); k++) {
			md_cursor w = {.flow = parts[k]};
			size_t indent = k == 1 && room > 2 ? 2 : 0;
			md_row line;
			while (md_next_row(&w, room > indent ? room - indent : room, true, &line)) {
				prefix(by);
				md_put_blanks(p, indent);
				md_put_row(p, &w, &line);
				md_end_line(p);
			}
		}
	}
	if (row + 1 < rows_of(t)) {
		prefix(by);
		md_end_line(p);
	}
}

void md_put_table(md_page *p, const md_table *t, size_t room, md_prefix *prefix, void *by)
{
	size_t widths[GRID_COLUMNS];
	if (t->columns == 0)
		return;
	bool grid = t->columns <= GRID_COLUMNS && measure(t, room, widths);
	for (size_t row = grid || rows_of(t) == 1 ? 0 : 1; row < rows_of(t); row++) {
		if (!grid) {
			put_list_row(p, t, row, room, prefix, by);
			continue;
		}
		put_grid_row(p, t, row, widths, prefix, by);
		if (row == 0)
			put_rule(p, widths, t->columns, prefix, by);
	}
}
