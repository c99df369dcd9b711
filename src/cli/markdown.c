/* Markdown, as md4c reads it, to lines on a page. */
#include "markdown.h"

#include <md4c.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "markdown_inside.h"

#define LEVELS 24u /* lists, their items and quotes inside one another; deeper ones are not drawn */
#define MARK_ROOM 16u /* bytes of an item's mark */
#define CODE_INDENT 2u
#define RULE_COLUMNS 40u

enum {
	LEVEL_QUOTE,
	LEVEL_LIST,
	LEVEL_ITEM
};

typedef struct level {
	int kind;
	bool tight;           /* a list: no blank lines between its items */
	bool ordered;         /* a list */
	unsigned number;      /* of a list's next item */
	char delimiter;       /* after it */
	size_t columns;       /* that stand before every line of it */
	char mark[MARK_ROOM]; /* of an item */
	size_t mark_len;
	bool marked; /* its mark was put */
} level;

enum {
	SPAN_STRONG,
	SPAN_EMPHASIS,
	SPAN_STRIKE,
	SPAN_CODE,
	SPAN_LINK,
	SPAN_KINDS
};

static const unsigned span_styles[SPAN_KINDS] = {MARKDOWN_STRONG, MARKDOWN_EMPHASIS,
                                                 MARKDOWN_STRIKE, MARKDOWN_CODE, MARKDOWN_LINK};

typedef struct reader {
	md_page page;
	size_t columns; /* 0 = any number */
	int flags;
	size_t events_left;

	level levels[LEVELS];
	size_t depth;
	size_t below;     /* levels that are not drawn */
	size_t used;      /* columns of all prefixes */
	bool gap;         /* a blank line goes before the next block */
	sheaf_str prefix; /* of the line before, in the arena: mostly the next one has the same */

	/* The text of the block that is being read. */
	buf text;
	md_piece *pieces;
	size_t piece_count;
	size_t piece_room;
	size_t spans[SPAN_KINDS]; /* how many are open */
	unsigned block_style;
	size_t link_at; /* where the text of a link began */

	md_table table;
} reader;

/* ---- Text of a block --------------------------------------------------- */

static unsigned style_now(const reader *r)
{
	unsigned style = r->block_style;
	for (size_t i = 0; i < SPAN_KINDS; i++)
		style |= r->spans[i] != 0 ? span_styles[i] : 0;
	return style;
}

/* What was added to r->text since the last piece ended has this style. */
static void end_piece(reader *r, unsigned style)
{
	md_piece *last = r->piece_count != 0 ? &r->pieces[r->piece_count - 1] : NULL;
	if (r->text.len == (last != NULL ? last->end : 0))
		return;
	if (last != NULL && last->style == style) {
		last->end = r->text.len;
		return;
	}
	if (r->page.status == 0)
		r->page.status = mem_grow((void **)&r->pieces, &r->piece_room, r->piece_count + 1,
		                          sizeof(*r->pieces));
	if (r->page.status == 0)
		r->pieces[r->piece_count++] = (md_piece){r->text.len, style};
}

static void add_text(reader *r, sheaf_str safe, unsigned style)
{
	buf_str(&r->text, safe);
	end_piece(r, style);
}

/* A mark that people know from the source, where styles are not seen. */
static void add_mark(reader *r, const char *mark)
{
	if ((r->flags & MARKDOWN_MARKS) != 0)
		add_text(r, sheaf_str_of(mark), 0);
}

static void put_point(buf *out, uint32_t c)
{
	char bytes[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n; i-- > 1; c >>= 6)
		bytes[i] = (char)(0x80 | (c & 0x3f));
	bytes[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xf0u) | c);
	/* What is no character comes out as the mark for that. */
	text_safe(out, str_make(bytes, n), TEXT_ID);
}

/* The character that an entity stands for, safe; an unknown name stays as it is. */
static void put_entity(buf *out, sheaf_str entity)
{
	static const struct {
		const char *name;
		uint32_t point;
	} known[] = {
		{"&amp;", '&'},     {"&lt;", '<'},        {"&gt;", '>'},       {"&quot;", '"'},
		{"&apos;", '\''},   {"&nbsp;", ' '},      {"&copy;", 0xa9},    {"&times;", 0xd7},
		{"&middot;", 0xb7}, {"&deg;", 0xb0},      {"&ndash;", 0x2013}, {"&mdash;", 0x2014},
		{"&bull;", 0x2022}, {"&hellip;", 0x2026}, {"&rarr;", 0x2192},  {"&larr;", 0x2190}};
	char digits[12];
	if (str_starts(entity, "&#") && entity.len < sizeof(digits)) {
		bool hex = entity.ptr[2] == 'x' || entity.ptr[2] == 'X';
		size_t from = hex ? 3 : 2;
		memcpy(digits, entity.ptr + from, entity.len - from);
		digits[entity.len - from] = '\0';
		unsigned long point = strtoul(digits, NULL, hex ? 16 : 10);
		put_point(out, point <= 0x10ffff ? (uint32_t)point : 0xfffd);
		return;
	}
	for (size_t i = 0; i < COUNT_OF(known); i++) {
		if (str_is(entity, known[i].name)) {
			put_point(out, known[i].point);
			return;
		}
	}
	buf_str(out, entity);
}

static void put_attribute(buf *out, const MD_ATTRIBUTE *a)
{
	for (size_t i = 0; a->size != 0 && a->substr_offsets[i] < a->size; i++) {
		sheaf_str part = str_make(a->text + a->substr_offsets[i],
		                          a->substr_offsets[i + 1] - a->substr_offsets[i]);
		if (a->substr_types[i] == MD_TEXT_ENTITY)
			put_entity(out, part);
		else
			text_safe(out, part, TEXT_LINE);
	}
}

/* ---- Lines ------------------------------------------------------------- */

static size_t room_of(const reader *r)
{
	return r->columns != 0 ? r->columns - r->used : 0;
}

/* Builds what stands before a line; `blank`: only what goes on through a blank line. */
static void build_prefix(reader *r, buf *out, bool blank)
{
	for (size_t i = 0; i < r->depth; i++) {
		level *l = &r->levels[i];
		if (l->columns == 0)
			continue;
		if (l->kind == LEVEL_QUOTE) {
			buf_str(out, sheaf_str_of(text_glyphs()->quote));
		} else if (!blank && !l->marked) {
			buf_add(out, l->mark, l->mark_len);
			l->marked = true;
		} else {
			text_spaces(out, l->columns);
		}
	}
	while (blank && out->len != 0 && out->ptr[out->len - 1] == ' ')
		out->len--;
}

static void put_prefix_of(reader *r, bool blank)
{
	_cleanup_(buf_free) buf prefix = BUF_INIT(SIZE_MAX);
	int ok = 1;
	if (r->used == 0)
		return;
	build_prefix(r, &prefix, blank);
	if (!str_eq(buf_view(&prefix), r->prefix))
		r->prefix = arena_dup(r->page.memory, buf_view(&prefix), &ok);
	if (!ok || prefix.status != 0)
		r->page.status = SHEAF_NOMEM;
	else
		md_put(&r->page, r->prefix, MARKDOWN_DIM, text_width(r->prefix));
}

static void put_prefix(void *by)
{
	put_prefix_of(by, false);
}

static void put_gap(reader *r)
{
	if (r->gap && r->page.line_count != 0) {
		put_prefix_of(r, true);
		md_end_line(&r->page);
	}
	r->gap = false;
}

/* Whether blank lines part what stands here: not in a tight list. */
static bool wants_gap(const reader *r)
{
	const level *l = r->depth != 0 ? &r->levels[r->depth - 1] : NULL;
	if (l != NULL && l->kind == LEVEL_ITEM && r->depth > 1)
		l--;
	return l == NULL || l->kind != LEVEL_LIST || !l->tight;
}

/* The text that was read, in the arena, and none from now on. */
static md_flow take_flow(reader *r)
{
	int ok = 1;
	md_flow flow = {.text = arena_dup(r->page.memory, buf_view(&r->text), &ok)};
	md_piece *pieces = arena_alloc(r->page.memory, r->piece_count * sizeof(*pieces) + 1);
	if (!ok || pieces == NULL || r->text.status != 0) {
		r->page.status = r->text.status != 0 ? r->text.status : SHEAF_NOMEM;
		return (md_flow){0};
	}
	if (r->piece_count != 0)
		memcpy(pieces, r->pieces, r->piece_count * sizeof(*pieces));
	flow.pieces = pieces;
	flow.count = r->piece_count;
	buf_reset(&r->text);
	r->piece_count = 0;
	return flow;
}

/* Puts the text that was read as a paragraph; `indent` more columns to the right. */
static void put_text(reader *r, size_t indent, bool breaks)
{
	size_t room = room_of(r);
	bool fit = (r->flags & MARKDOWN_FIT) != 0;
	md_row row;
	if (r->text.len == 0 && r->text.status == 0)
		return;
	md_cursor w = {.flow = take_flow(r)};
	indent = room == 0 || room > 2 * indent ? indent : 0;
	room = breaks || fit ? room : 0;
	put_gap(r);
	while (r->page.status == 0 && md_next_row(&w, room != 0 ? room - indent : 0, fit, &row)) {
		put_prefix_of(r, row.begin == row.end);
		if (row.begin != row.end)
			md_put_blanks(&r->page, indent);
		md_put_row(&r->page, &w, &row);
		md_end_line(&r->page);
	}
	r->gap = wants_gap(r);
}

/* ---- Blocks ------------------------------------------------------------ */

/* `columns`: of its prefix, if there is room for it. */
static void push(reader *r, level l)
{
	size_t most = r->columns != 0 ? r->columns / 2 : 64;
	if (r->below != 0 || r->depth == LEVELS) {
		r->below++;
		return;
	}
	if (r->used + l.columns > most)
		l.columns = 0;
	r->used += l.columns;
	r->levels[r->depth++] = l;
}

static void pop(reader *r)
{
	if (r->below != 0) {
		r->below--;
		return;
	}
	r->used -= r->levels[--r->depth].columns;
}

static void push_item(reader *r, const MD_BLOCK_LI_DETAIL *item)
{
	level *list = r->depth != 0 ? &r->levels[r->depth - 1] : NULL;
	level l = {.kind = LEVEL_ITEM};
	if (list == NULL || list->kind != LEVEL_LIST || r->below != 0) {
		push(r, l);
		return;
	}
	_cleanup_(buf_free) buf mark = BUF_INIT(MARK_ROOM);
	if (list->ordered)
		buf_format(&mark, "%u%c ", list->number++, list->delimiter);
	else
		buf_format(&mark, "%s ", text_glyphs()->bullet);
	if (mark.status != 0) {
		r->page.status = mark.status;
		return;
	}
	memcpy(l.mark, mark.ptr, mark.len);
	l.mark_len = mark.len;
	l.columns = text_width(buf_view(&mark));
	push(r, l);
	if (item->is_task)
		add_text(r, item->task_mark == ' ' ? SHEAF_STR("[ ] ") : SHEAF_STR("[x] "), 0);
}

/* An item with nothing in it has a mark all the same. */
static void pop_item(reader *r)
{
	const level *l = &r->levels[r->depth - 1];
	if (r->below == 0 && !l->marked && l->columns != 0) {
		put_gap(r);
		put_prefix(r);
		md_end_line(&r->page);
	}
	pop(r);
	r->gap = wants_gap(r);
}

static void put_rule(reader *r)
{
	size_t room = room_of(r);
	size_t columns = room == 0 || room > RULE_COLUMNS ? RULE_COLUMNS : room;
	for (size_t i = 0; i < columns; i++)
		add_text(r, sheaf_str_of(text_glyphs()->rule), MARKDOWN_DIM);
	put_text(r, 0, false);
}

static void begin_heading(reader *r, unsigned rank)
{
	for (unsigned i = 0; i < rank; i++)
		add_text(r, SHEAF_STR("#"), MARKDOWN_DIM);
	add_text(r, SHEAF_STR(" "), MARKDOWN_DIM);
	r->block_style = MARKDOWN_HEADING;
}

static void add_cell(reader *r, const MD_BLOCK_TD_DETAIL *detail)
{
	md_table *t = &r->table;
	if (r->page.status == 0)
		r->page.status = mem_grow((void **)&t->cells, &t->room, t->count + 1,
		                          sizeof(*t->cells));
	if (r->page.status != 0)
		return;
	md_cell cell = {.flow = take_flow(r)};
	if (detail->align == MD_ALIGN_CENTER)
		cell.align = MD_CENTER;
	else if (detail->align == MD_ALIGN_RIGHT)
		cell.align = MD_RIGHT;
	t->cells[t->count++] = cell;
}

static void put_table(reader *r)
{
	put_gap(r);
	md_put_table(&r->page, &r->table, room_of(r), put_prefix, r);
	r->gap = wants_gap(r);
	r->table.count = 0;
}

/* ---- Code -------------------------------------------------------------- */

static unsigned diff_style(sheaf_str line)
{
	if (line.len != 0 && line.ptr[0] == '+')
		return MARKDOWN_ADDED;
	if (line.len != 0 && line.ptr[0] == '-')
		return MARKDOWN_REMOVED;
	return line.len != 0 && line.ptr[0] == '@' ? MARKDOWN_DIM : 0;
}

/* Adds a line with its tabs as blanks. */
static void add_expanded(reader *r, sheaf_str line, unsigned style)
{
	size_t columns = 0;
	while (line.len != 0) {
		const char *tab = memchr(line.ptr, '\t', line.len);
		sheaf_str part = str_make(line.ptr,
		                          tab != NULL ? (size_t)(tab - line.ptr) : line.len);
		columns += text_width(part);
		buf_str(&r->text, part);
		size_t blanks = tab != NULL ? 8 - columns % 8 : 0;
		text_spaces(&r->text, blanks);
		columns += blanks;
		part.len += tab != NULL;
		line = str_make(line.ptr + part.len, line.len - part.len);
	}
	end_piece(r, style);
}

/* Lines as they are, without the empty ones at the end. */
static void add_verbatim(reader *r, sheaf_str text, bool diff, unsigned style)
{
	while (text.len != 0 && text.ptr[text.len - 1] == '\n')
		text.len--;
	for (size_t at = 0; at < text.len;) {
		const char *end = memchr(text.ptr + at, '\n', text.len - at);
		size_t len = end != NULL ? (size_t)(end - text.ptr) - at : text.len - at;
		sheaf_str line = str_make(text.ptr + at, len);
		unsigned special = diff ? diff_style(line) : 0;
		add_expanded(r, line, special != 0 ? special : style);
		at += len + 1;
		if (at <= text.len)
			add_text(r, SHEAF_STR("\n"), style);
	}
}

static void put_code(reader *r, const MD_BLOCK_CODE_DETAIL *detail)
{
	_cleanup_(buf_free) buf code = r->text;
	sheaf_str language = str_make(detail->lang.text, detail->lang.size);
	bool diff = str_is(language, "diff") || str_is(language, "patch");
	r->text = (buf)BUF_INIT(SIZE_MAX);
	r->piece_count = 0;
	if (code.status != 0)
		r->page.status = code.status;
	add_verbatim(r, buf_view(&code), diff, MARKDOWN_CODE);
	put_text(r, CODE_INDENT, false);
}

/* ---- What md4c calls --------------------------------------------------- */

static int go_on(reader *r)
{
	if (r->events_left-- == 0)
		r->page.status = SHEAF_TOO_LARGE;
	if (r->page.status == 0)
		r->page.status = r->text.status;
	return r->page.status;
}

static int enter_block(MD_BLOCKTYPE type, void *detail, void *by)
{
	reader *r = by;
	if (type != MD_BLOCK_P)
		put_text(r, 0, true); /* of an item of a tight list, before a block in it */
	switch (type) {
	case MD_BLOCK_QUOTE:
		put_gap(r);
		push(r, (level){.kind = LEVEL_QUOTE, .columns = 2});
		break;
	case MD_BLOCK_UL:
		put_gap(r);
		push(r, (level){.kind = LEVEL_LIST,
		                .tight = ((MD_BLOCK_UL_DETAIL *)detail)->is_tight});
		break;
	case MD_BLOCK_OL: {
		const MD_BLOCK_OL_DETAIL *list = detail;
		put_gap(r);
		push(r, (level){.kind = LEVEL_LIST,
		                .tight = list->is_tight,
		                .ordered = true,
		                .number = list->start,
		                .delimiter = list->mark_delimiter});
		break;
	}
	case MD_BLOCK_LI:
		put_gap(r);
		push_item(r, detail);
		break;
	case MD_BLOCK_H:
		begin_heading(r, ((MD_BLOCK_H_DETAIL *)detail)->level);
		break;
	case MD_BLOCK_TABLE:
		r->table.columns = ((MD_BLOCK_TABLE_DETAIL *)detail)->col_count;
		break;
	case MD_BLOCK_TH:
		r->block_style = MARKDOWN_STRONG;
		break;
	default:
		break;
	}
	return go_on(r);
}

static int leave_block(MD_BLOCKTYPE type, void *detail, void *by)
{
	reader *r = by;
	switch (type) {
	case MD_BLOCK_QUOTE:
	case MD_BLOCK_UL:
	case MD_BLOCK_OL:
		pop(r);
		r->gap = wants_gap(r);
		break;
	case MD_BLOCK_LI:
		put_text(r, 0, true);
		pop_item(r);
		break;
	case MD_BLOCK_HR:
		put_rule(r);
		break;
	case MD_BLOCK_CODE:
		put_code(r, detail);
		break;
	case MD_BLOCK_TH:
	case MD_BLOCK_TD:
		add_cell(r, detail);
		break;
	case MD_BLOCK_TABLE:
		put_table(r);
		break;
	default:
		put_text(r, 0, true);
	}
	r->block_style = 0;
	return go_on(r);
}

static const struct {
	MD_SPANTYPE type;
	int kind;
	const char *mark;
} span_kinds[] = {
	{MD_SPAN_STRONG, SPAN_STRONG, "**"}, {MD_SPAN_EM, SPAN_EMPHASIS, "*"},
	{MD_SPAN_DEL, SPAN_STRIKE, "~~"},    {MD_SPAN_CODE, SPAN_CODE, "`"},
	{MD_SPAN_A, SPAN_LINK, ""},
};

static int enter_span(MD_SPANTYPE type, void *detail, void *by)
{
	reader *r = by;
	(void)detail;
	for (size_t i = 0; i < COUNT_OF(span_kinds); i++) {
		if (span_kinds[i].type == type) {
			add_mark(r, span_kinds[i].mark);
			r->spans[span_kinds[i].kind]++;
		}
	}
	if (type == MD_SPAN_A)
		r->link_at = r->text.len;
	if (type == MD_SPAN_IMG)
		add_text(r, SHEAF_STR("[image: "), style_now(r) | MARKDOWN_DIM);
	return go_on(r);
}

/* Where a link leads, unless its text says it: a person must see it before following it. */
static void add_address(reader *r, const MD_ATTRIBUTE *address, bool link)
{
	_cleanup_(buf_free) buf url = BUF_INIT(SIZE_MAX);
	put_attribute(&url, address);
	sheaf_str said = link && r->link_at <= r->text.len
	                         ? str_make(buf_view(&r->text).ptr + r->link_at,
	                                    r->text.len - r->link_at)
	                         : (sheaf_str){"", 0};
	sheaf_str bare = buf_view(&url);
	if (str_starts(bare, "mailto:"))
		bare = str_make(bare.ptr + 7, bare.len - 7);
	if (url.status != 0)
		r->page.status = SHEAF_NOMEM;
	if (url.len == 0 || str_eq(said, bare) || str_eq(said, buf_view(&url)) || url.ptr[0] == '#')
		return;
	add_text(r, SHEAF_STR(" ("), MARKDOWN_DIM);
	add_text(r, buf_view(&url), MARKDOWN_DIM);
	add_text(r, SHEAF_STR(")"), MARKDOWN_DIM);
}

static int leave_span(MD_SPANTYPE type, void *detail, void *by)
{
	reader *r = by;
	for (size_t i = 0; i < COUNT_OF(span_kinds); i++) {
		if (span_kinds[i].type == type) {
			r->spans[span_kinds[i].kind]--;
			add_mark(r, span_kinds[i].mark);
		}
	}
	if (type == MD_SPAN_A)
		add_address(r, &((MD_SPAN_A_DETAIL *)detail)->href, true);
	if (type == MD_SPAN_IMG) {
		add_address(r, &((MD_SPAN_IMG_DETAIL *)detail)->src, false);
		add_text(r, SHEAF_STR("]"), style_now(r) | MARKDOWN_DIM);
	}
	return go_on(r);
}

/* Text in a paragraph: a tab there is a blank. */
static void add_words(reader *r, sheaf_str safe)
{
	for (size_t at = 0; at < safe.len;) {
		const char *tab = memchr(safe.ptr + at, '\t', safe.len - at);
		size_t end = tab != NULL ? (size_t)(tab - safe.ptr) : safe.len;
		add_text(r, str_make(safe.ptr + at, end - at), style_now(r));
		if (tab != NULL)
			add_text(r, SHEAF_STR(" "), style_now(r));
		at = end + (tab != NULL);
	}
}

static int take_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE size, void *by)
{
	reader *r = by;
	sheaf_str part = str_make(text, size);
	switch (type) {
	case MD_TEXT_BR:
	case MD_TEXT_SOFTBR: /* in a conversation a line break is meant */
		add_text(r, SHEAF_STR("\n"), style_now(r));
		break;
	case MD_TEXT_ENTITY:
		put_entity(&r->text, part);
		end_piece(r, style_now(r));
		break;
	case MD_TEXT_CODE:
		if (r->spans[SPAN_CODE] == 0) { /* a block of it: tabs count */
			add_text(r, part, MARKDOWN_CODE);
			break;
		}
		add_words(r, part);
		break;
	default:
		add_words(r, part);
	}
	return go_on(r);
}

/* ---- All of it --------------------------------------------------------- */

static void reader_done(reader *r)
{
	buf_free(&r->text);
	mem_free(r->pieces);
	mem_free(r->table.cells);
	mem_free(r->page.runs);
	mem_free(r->page.lines);
	arena_free(r->page.memory);
}

/* The text as it stands, only wrapped. */
static void put_source(reader *r, sheaf_str safe)
{
	md_page *p = &r->page;
	p->status = 0;
	p->run_count = p->line_count = 0;
	p->open = (md_line){0};
	p->runs_max = p->bytes_left = SIZE_MAX;
	buf_reset(&r->text);
	r->piece_count = r->depth = r->below = r->used = 0;
	r->gap = false;
	add_verbatim(r, safe, false, 0);
	put_text(r, 0, true);
}

static int parse(reader *r, sheaf_str safe)
{
	static const MD_PARSER parser = {
		.flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS |
	                 MD_FLAG_PERMISSIVEURLAUTOLINKS | MD_FLAG_NOHTML,
		.enter_block = enter_block,
		.leave_block = leave_block,
		.enter_span = enter_span,
		.leave_span = leave_span,
		.text = take_text,
	};
	r->events_left = 8 * safe.len + 1024;
	r->page.runs_max = 16 * safe.len + 4096;
	r->page.bytes_left = 64 * safe.len + 65536;
	r->text.max = r->page.bytes_left;
	if (safe.len > MARKDOWN_MAX)
		return SHEAF_TOO_LARGE;
	int rc = md_parse(safe.ptr, (MD_SIZE)safe.len, &parser, r);
	return rc == -1 ? SHEAF_NOMEM : rc;
}

/* The page as it is handed out. */
static int finish(markdown **out, reader *r)
{
	md_page *p = &r->page;
	markdown *m = arena_alloc(p->memory, sizeof(*m));
	markdown_run *runs = arena_alloc(p->memory, (p->run_count + 1) * sizeof(*runs));
	markdown_line *lines = arena_alloc(p->memory, (p->line_count + 1) * sizeof(*lines));
	if (m == NULL || runs == NULL || lines == NULL)
		return SHEAF_NOMEM;
	if (p->run_count != 0)
		memcpy(runs, p->runs, p->run_count * sizeof(*runs));
	for (size_t i = 0; i < p->line_count; i++) {
		const md_line *line = &p->lines[i];
		lines[i] = (markdown_line){runs + line->first, line->count, line->columns};
	}
	*m = (markdown){lines, p->line_count, p->memory};
	p->memory = NULL;
	*out = m;
	return 0;
}

int markdown_read(markdown **out, sheaf_str text, size_t columns, int flags)
{
	_cleanup_(buf_free) buf safe = BUF_INIT(SIZE_MAX);
	_cleanup_(reader_done) reader r = {
		.page.memory = arena_new(),
		.columns = columns,
		.flags = flags,
		.text = BUF_INIT(SIZE_MAX),
	};
	*out = NULL;
	/* First of all: nothing that is parsed, measured or printed is raw. */
	text_safe(&safe, text, TEXT_BLOCK);
	/* md4c looks at the byte after a last line that does not end (0.4.8). */
	buf_char(&safe, '\n');
	if (r.page.memory == NULL || safe.status != 0)
		return SHEAF_NOMEM;
	int rc = parse(&r, buf_view(&safe));
	if (rc == SHEAF_TOO_LARGE) {
		r.text.max = SIZE_MAX;
		put_source(&r, buf_view(&safe));
		rc = r.page.status;
	}
	return rc != 0 ? rc : finish(out, &r);
}

void markdown_free(markdown *m)
{
	if (m != NULL)
		arena_free(m->memory);
}

void markdown_freep(markdown **m)
{
	markdown_free(*m);
}

void markdown_put(const screen *s, buf *out, const markdown_line *line)
{
	static const char *const codes[] = {"1", "3", "9", "36", "4", "1;33", "2", "32", "31"};
	for (size_t i = 0; i < line->count; i++) {
		_cleanup_(buf_free) buf style = BUF_INIT(64);
		for (size_t bit = 0; bit < COUNT_OF(codes); bit++) {
			if ((line->runs[i].style >> bit & 1) != 0)
				buf_format(&style, "%s%s", style.len != 0 ? ";" : "", codes[bit]);
		}
		buf_nul(&style);
		print_styled(s, out, style.len != 0 ? style.ptr : NULL, line->runs[i].text);
	}
}
