/* Breaking styled text into rows, and putting rows on a page. */
#include "markdown_inside.h"

#include "base/mem.h"
#include "base/str.h"

/* ---- Rows -------------------------------------------------------------- */

/* The end and the width of what a person sees as one character. */
static size_t char_end(sheaf_str s, size_t at, size_t *width)
{
	unsigned char c = (unsigned char)s.ptr[at];
	if (c < 0x80 && (at + 1 == s.len || (unsigned char)s.ptr[at + 1] < 0x80)) {
		*width = 1;
		return at + 1;
	}
	size_t end = text_cluster(s, at);
	*width = text_width(str_make(s.ptr + at, end - at));
	return end;
}

/* Punctuation that must not begin a line. */
static bool closes(sheaf_str s, size_t at)
{
	static const uint32_t points[] = {0x3001, 0x3002, 0x300d, 0x300f, 0x3011, 0x3015, 0x30fc,
	                                  0xff01, 0xff09, 0xff0c, 0xff0e, 0xff1a, 0xff1b, 0xff1f};
	uint32_t c = text_next(s, &at);
	if (c < 0x80)
		return strchr(".,;:!?)]}\"'", (int)c) != NULL;
	for (size_t i = 0; i < COUNT_OF(points); i++) {
		if (points[i] == c)
			return true;
	}
	return false;
}

typedef struct place {
	size_t end; /* of the row, if it is broken here; 0 = there is no such place */
	size_t columns;
	size_t next; /* where the next row begins */
} place;

/* Ends a row. Blanks before its end are left out already. */
static bool end_row(md_cursor *w, md_row *row, const place *at)
{
	row->end = at->end;
	row->columns = at->columns;
	w->at = at->next;
	return true;
}

bool md_next_row(md_cursor *w, size_t room, bool fit, md_row *row)
{
	sheaf_str s = w->flow.text;
	size_t at = w->at, columns = 0;
	place good = {0}, last = {at, 0, 0};
	bool wide = false; /* what stands before `at` */
	row->begin = at;
	if (at >= s.len)
		return false;
	while (at < s.len && s.ptr[at] != '\n') {
		size_t width, end = char_end(s, at, &width);
		if (s.ptr[at] == ' ') {
			bool lead = last.end == row->begin;
			if (lead && fit && room != 0 && columns >= room / 2)
				last.end = ++row->begin; /* an indent leaves room for words */
			else
				columns += width;
			if (!lead)
				good = (place){last.end, last.columns, end};
			at = end;
			wide = false;
			continue;
		}
		bool now = width == 2;
		if ((wide || now) && last.end == at && at != row->begin && !closes(s, at))
			good = (place){at, columns, at};
		if (room != 0 && columns + width > room) {
			if (good.end != 0)
				return end_row(w, row, &good);
			if (fit && at != row->begin)
				return end_row(w, row, &(place){at, columns, at});
		}
		columns += width;
		wide = now;
		at = end;
		last = (place){at, columns, 0};
	}
	last.next = at + 1;
	return end_row(w, row, &last);
}

size_t md_flow_width(const md_flow *flow)
{
	md_cursor w = {.flow = *flow};
	md_row row;
	size_t most = 0;
	while (md_next_row(&w, 0, false, &row))
		most = row.columns > most ? row.columns : most;
	return most;
}

/* ---- The page ---------------------------------------------------------- */

void md_put(md_page *p, sheaf_str text, unsigned style, size_t columns)
{
	if (text.len == 0 || p->status != 0)
		return;
	if (text.len > p->bytes_left || p->run_count >= p->runs_max) {
		p->status = SHEAF_TOO_LARGE;
		return;
	}
	p->bytes_left -= text.len;
	p->status = mem_grow((void **)&p->runs, &p->run_room, p->run_count + 1, sizeof(*p->runs));
	if (p->status != 0)
		return;
	p->runs[p->run_count++] = (markdown_run){text, style};
	p->open.count++;
	p->open.columns += columns;
}

void md_put_blanks(md_page *p, size_t count)
{
	static const char blanks[] =
		"                                                                ";
	while (count > 0) {
		size_t n = count < sizeof(blanks) - 1 ? count : sizeof(blanks) - 1;
		md_put(p, str_make(blanks, n), 0, n);
		count -= n;
	}
}

void md_put_row(md_page *p, md_cursor *w, const md_row *row)
{
	size_t at = row->begin, columns = row->columns;
	while (at < row->end) {
		while (w->piece < w->flow.count && w->flow.pieces[w->piece].end <= at)
			w->piece++;
		const md_piece *piece = w->piece < w->flow.count ? &w->flow.pieces[w->piece] : NULL;
		size_t end = piece != NULL && piece->end < row->end ? piece->end : row->end;
		md_put(p, str_make(w->flow.text.ptr + at, end - at),
		       piece != NULL ? piece->style : 0, columns);
		columns = 0;
		at = end;
	}
}

void md_end_line(md_page *p)
{
	if (p->status == 0)
		p->status = mem_grow((void **)&p->lines, &p->line_room, p->line_count + 1,
		                     sizeof(*p->lines));
	if (p->status == 0)
		p->lines[p->line_count++] = p->open;
	p->open = (md_line){.first = p->run_count};
}
