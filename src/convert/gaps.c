/*
 * The text between the pieces of a document, so that it can be written again:
 * a list of [text, how many in a row], one more than there are pieces.
 */
#include "convert/import_inside.h"

#include "base/err.h"
#include "base/str.h"
#include "base/utf8.h"

void gaps_free(gaps *g)
{
	buf_free(&g->now);
	buf_free(&g->last);
	buf_free(&g->list);
}

void hex_write(buf *out, sheaf_str bytes)
{
	static const char hex[] = "0123456789abcdef";
	for (size_t i = 0; i < bytes.len; i++) {
		buf_char(out, hex[(unsigned char)bytes.ptr[i] >> 4]);
		buf_char(out, hex[bytes.ptr[i] & 15]);
	}
}

static void last_write(gaps *g)
{
	if (g->last_count == 0)
		return;
	sheaf_str text = buf_view(&g->last);
	bool valid = utf8_valid(text);
	buf_str(&g->list, g->list.len == 0 ? SHEAF_STR("[") : SHEAF_STR(",["));
	if (valid) {
		buf_json(&g->list, text);
	} else {
		buf_char(&g->list, '"');
		hex_write(&g->list, text);
		buf_char(&g->list, '"');
	}
	buf_char(&g->list, ',');
	buf_u64(&g->list, g->last_count);
	buf_str(&g->list, valid ? SHEAF_STR("]") : SHEAF_STR(",\"hex\"]"));
	g->last_count = 0;
}

void gaps_end_one(gaps *g)
{
	if (g->now.status != 0 && g->list.status == 0)
		g->list.status = g->now.status;
	if (g->last_count == 0 || !str_eq(buf_view(&g->now), buf_view(&g->last))) {
		last_write(g);
		buf swap = g->last;
		g->last = g->now;
		g->now = swap;
	}
	g->last_count++;
	buf_reset(&g->now);
}

int gaps_list(import *im, sheaf_str *out)
{
	gaps *g = &im->inside->gaps;
	gaps_end_one(g);
	last_write(g);
	*out = (sheaf_str){NULL, 0};
	if (g->list.status == SHEAF_NOMEM)
		return err_nomem(im->err);
	if (g->list.status != 0)
		return import_problem(im, "too much text between its parts: it cannot be kept");
	*out = buf_view(&g->list);
	return 0;
}

void gaps_reset(gaps *g)
{
	buf_reset(&g->now);
	buf_reset(&g->list);
	g->last_count = 0;
}

int import_between(import *im, sheaf_str text)
{
	buf_str(&im->inside->gaps.now, text);
	return im->inside->gaps.now.status == SHEAF_NOMEM ? err_nomem(im->err) : 0;
}
