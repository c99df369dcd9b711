/*
 * Leaves out of a request that is too large what may be missed: images, and the
 * middle of long tool results.
 *
 * The oldest go first, and what the model is working on last. How much goes is
 * asked for in large steps (see sheaf_render), so that a conversation that grows
 * turn by turn is cut at the same places for many turns.
 */
#include "render/render.h"

#include "base/str.h"
#include "base/utf8.h"

#define OUTPUT_LONG 4096u /* a result of more bytes is cut … */
#define OUTPUT_KEPT 1024u /* … to this much of its beginning and of its end */

typedef struct elider {
	rendering *r;
	const sheaf_item *item;
	size_t left; /* bytes still to be left out */
} elider;

static void take(elider *e, size_t before, size_t after)
{
	size_t gone = before > after ? before - after : 0;
	e->left -= gone < e->left ? gone : e->left;
}

static int media_elide(elider *e, block *b)
{
	size_t before = b->part->data.len;
	sheaf_str type = b->part->media_type;
	int rc = wording_elided(&b->text, b->part, e->r->arena);
	if (rc != 0)
		return rc;
	b->kind = SHEAF_PART_TEXT;
	b->ext = (sheaf_str){NULL, 0};
	take(e, before, b->text.len);
	return note_add(e->r, SHEAF_NOTE_ELIDED, e->item, type);
}

/* The end of a text, at most `max` bytes, beginning at a whole character. */
static sheaf_str tail_of(sheaf_str text, size_t max)
{
	size_t at = text.len - max;
	while (at < text.len && ((unsigned char)text.ptr[at] & 0xc0) == 0x80)
		at++;
	return str_make(text.ptr + at, text.len - at);
}

static int output_elide(elider *e, block *b, sheaf_str id)
{
	sheaf_str head = utf8_cut(b->text, OUTPUT_KEPT), tail = tail_of(b->text, OUTPUT_KEPT);
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX / 2);
	int ok = 1;
	buf_str(&text, head);
	buf_lit(&text, "\n[");
	buf_u64(&text, b->text.len - head.len - tail.len);
	buf_lit(&text, " bytes left out]\n");
	buf_str(&text, tail);
	if (text.status != 0)
		return SHEAF_NOMEM;
	size_t before = b->text.len;
	b->text = arena_dup(e->r->arena, buf_view(&text), &ok);
	if (!ok)
		return SHEAF_NOMEM;
	take(e, before, b->text.len);
	return note_add(e->r, SHEAF_NOTE_ELIDED, e->item, id);
}

static bool is_media(const block *b)
{
	return b->kind == SHEAF_PART_IMAGE || b->kind == SHEAF_PART_DOCUMENT;
}

static int block_elide(elider *e, block *b)
{
	const int32_t may = e->r->o.elide;
	if (is_media(b))
		return may & SHEAF_ELIDE_IMAGES ? media_elide(e, b) : 0;
	if (b->kind != SHEAF_PART_TOOL_RESULT)
		return 0;
	if (b->parts == NULL)
		return may & SHEAF_ELIDE_OUTPUTS && b->text.len > OUTPUT_LONG
		               ? output_elide(e, b, b->id)
		               : 0;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < b->part_count && e->left != 0; i++) {
		block *part = &b->parts[i];
		if (is_media(part) && may & SHEAF_ELIDE_IMAGES)
			rc = media_elide(e, part);
		else if (!is_media(part) && may & SHEAF_ELIDE_OUTPUTS &&
		         part->text.len > OUTPUT_LONG)
			rc = output_elide(e, part, b->id);
	}
	return rc;
}

/* The oldest first is also the last turn last. */
int elide(rendering *r, size_t bytes)
{
	elider e = {.r = r, .left = bytes};
	for (size_t i = 0; i < r->message_count; i++) {
		const message *m = &r->messages[i];
		e.item = m->item;
		for (size_t k = 0; k < m->count; k++) {
			if (e.left == 0)
				return 0;
			int rc = block_elide(&e, &m->blocks[k]);
			if (rc != 0)
				return rc;
		}
	}
	return 0;
}
