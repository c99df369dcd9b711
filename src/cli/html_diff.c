/* Differences: what an edit takes away and puts in, line by line, and patches as they are. */
#include "base/mem.h"
#include "base/str.h"
#include "html_inside.h"

#define CELLS_MAX (1u << 18) /* of the table of common lines; larger edits are shown whole */

static void put_line(buf *out, const char *class, char sign, sheaf_str line)
{
	buf_format(out, "<span class=\"%s\">%c", class, sign);
	html_text(out, line);
	buf_lit(out, "\n</span>");
}

static sheaf_str next_line(sheaf_str text, size_t *at)
{
	const char *end = memchr(text.ptr + *at, '\n', text.len - *at);
	size_t len = end != NULL ? (size_t)(end - text.ptr) - *at : text.len - *at;
	sheaf_str line = str_make(text.ptr + *at, len);
	*at += len + 1;
	return line;
}

/* ---- Two texts --------------------------------------------------------------- */

typedef struct lines {
	sheaf_str *items;
	size_t count;
} lines;

static int split(lines *out, sheaf_str text)
{
	size_t room = html_lines(text) + 1, at = 0;
	out->items = mem_alloc(room * sizeof(*out->items));
	if (out->items == NULL)
		return SHEAF_NOMEM;
	while (at < text.len)
		out->items[out->count++] = next_line(text, &at);
	return 0;
}

static void put_all(buf *out, const lines *l, size_t from, size_t to, char sign)
{
	for (size_t i = from; i < to; i++)
		put_line(out, sign == '-' ? "d" : sign == '+' ? "a" : "s", sign, l->items[i]);
}

/* The lengths of the longest common runs of what follows, by the classic table. */
static uint32_t *common(const lines *a, const lines *b, size_t from, size_t a_end, size_t b_end)
{
	size_t rows = a_end - from + 1, columns = b_end - from + 1;
	uint32_t *t = mem_zalloc(rows * columns * sizeof(*t));
	if (t == NULL)
		return NULL;
	for (size_t i = rows - 1; i-- > 0;) {
		for (size_t j = columns - 1; j-- > 0;) {
			uint32_t down = t[(i + 1) * columns + j], right = t[i * columns + j + 1];
			t[i * columns + j] = str_eq(a->items[from + i], b->items[from + j])
			                             ? t[(i + 1) * columns + j + 1] + 1
			                     : down > right ? down
			                                    : right;
		}
	}
	return t;
}

static void put_middle(buf *out, const lines *a, const lines *b, size_t from, size_t a_end,
                       size_t b_end)
{
	size_t rows = a_end - from + 1, columns = b_end - from + 1, i = 0, j = 0;
	uint32_t *t = rows <= CELLS_MAX / columns ? common(a, b, from, a_end, b_end) : NULL;
	while (t != NULL && i + 1 < rows && j + 1 < columns) {
		if (str_eq(a->items[from + i], b->items[from + j])) {
			put_line(out, "s", ' ', a->items[from + i]);
			i++, j++;
		} else if (t[(i + 1) * columns + j] >= t[i * columns + j + 1]) {
			put_line(out, "d", '-', a->items[from + i++]);
		} else {
			put_line(out, "a", '+', b->items[from + j++]);
		}
	}
	put_all(out, a, from + i, a_end, '-');
	put_all(out, b, from + j, b_end, '+');
	mem_free(t);
}

void html_diff(buf *out, sheaf_str before, sheaf_str after)
{
	lines a = {0}, b = {0};
	if (split(&a, before) != 0 || split(&b, after) != 0) {
		out->status = out->status != 0 ? out->status : SHEAF_NOMEM;
	} else {
		size_t same = 0, a_end = a.count, b_end = b.count;
		while (same < a_end && same < b_end && str_eq(a.items[same], b.items[same]))
			same++;
		while (a_end > same && b_end > same &&
		       str_eq(a.items[a_end - 1], b.items[b_end - 1]))
			a_end--, b_end--;
		put_all(out, &a, 0, same, ' ');
		put_middle(out, &a, &b, same, a_end, b_end);
		put_all(out, &a, a_end, a.count, ' ');
	}
	mem_free(a.items);
	mem_free(b.items);
}

/* ---- Patches ------------------------------------------------------------------ */

static const char *patch_class(sheaf_str line)
{
	if (str_starts(line, "+++") || str_starts(line, "---") || str_starts(line, "diff ") ||
	    str_starts(line, "index ") || str_starts(line, "*** "))
		return "h";
	if (str_starts(line, "@@"))
		return "k";
	if (str_starts(line, "+"))
		return "a";
	return str_starts(line, "-") ? "d" : "s";
}

void html_patch(buf *out, sheaf_str patch)
{
	for (size_t at = 0; at < patch.len;) {
		sheaf_str line = next_line(patch, &at);
		buf_format(out, "<span class=\"%s\">", patch_class(line));
		html_text(out, line);
		buf_lit(out, "\n</span>");
	}
}

bool html_is_patch(sheaf_str text)
{
	return str_starts(text, "*** Begin Patch") || str_starts(text, "diff --git ") ||
	       (str_starts(text, "--- ") && memmem(text.ptr, text.len, "\n+++ ", 5) != NULL);
}
