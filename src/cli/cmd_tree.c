/*
 * sheaf tree: every entry of a session, drawn as a tree.
 *
 *     @1 ● user       Make the parser faster
 *     @2 ● assistant  Shall I profile it first?
 *     @3 ├─○ user       No, just try SIMD          a side branch begins,
 *     @4 │ ○ assistant  Done, but it is slower     and goes on in its column
 *     @5 ● user (main)  Yes, profile it            the path goes on in its own
 *
 * The path of a branch stays in the first column however often it was left;
 * only what branches off moves to the right. So a column never ends while a
 * side branch is drawn, and every column to the left is a bar.
 */
#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "find.h"
#include "opt.h"
#include "shapes.h"
#include "view.h"

#define COLUMNS_UNKNOWN 100u /* a preview has to end somewhere in a pipe too */
#define INDENT_MAX 24u       /* side branches of side branches beyond this are drawn on top */
#define PREVIEW_MIN 12u
#define MARK_MAX 32u

typedef struct frame {
	const sheaf_node *node;
	size_t column;
	bool side; /* the first entry of a side branch */
} frame;

typedef struct drawing {
	view v;
	const sheaf_tree *tree;
	unsigned char *marks; /* for each of tree->nodes */
	frame *stack;
	size_t depth;
	size_t room;
	size_t seq_width;
	size_t skipped;     /* entries folded since the last line */
	frame skipped_last; /* the last of them */
	bool fold;
} drawing;

enum {
	MARK_ACTIVE = 1,
	MARK_LEAF = 2
};

static void tree_freep(sheaf_tree **tree)
{
	sheaf_tree_free(*tree);
}

static void drawing_done(drawing *d)
{
	view_done(&d->v);
	mem_free(d->marks);
	mem_free(d->stack);
}

/* ---- What is where ----------------------------------------------------- */

/* The index of the entry with this number; nodes are in order of it. */
static bool index_of(const sheaf_tree *tree, uint64_t seq, size_t *out)
{
	size_t low = 0, high = tree->node_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (tree->nodes[middle]->entry->seq < seq)
			low = middle + 1;
		else
			high = middle;
	}
	*out = low;
	return low < tree->node_count && tree->nodes[low]->entry->seq == seq;
}

static unsigned char marks_of(const drawing *d, const sheaf_node *node)
{
	size_t at;
	return index_of(d->tree, node->entry->seq, &at) ? d->marks[at] : 0;
}

static void mark_path(drawing *d, uint64_t leaf_seq)
{
	size_t at;
	if (!index_of(d->tree, leaf_seq, &at))
		return;
	for (const sheaf_node *n = d->tree->nodes[at]; n != NULL; n = n->parent) {
		if (index_of(d->tree, n->entry->seq, &at))
			d->marks[at] |= MARK_ACTIVE;
	}
}

/* Marks the leaves of all branches and the path of the one asked for. */
static int mark(cli *c, drawing *d, const char *wanted)
{
	const sheaf_head_view *head = d->tree->head;
	bool found = false;
	for (size_t i = 0; i < head->branch_count; i++) {
		const sheaf_branch_info *branch = head->branches[i];
		size_t at;
		if (index_of(d->tree, branch->leaf_seq, &at))
			d->marks[at] |= MARK_LEAF;
		if (!str_is(branch->name, wanted))
			continue;
		found = true;
		mark_path(d, branch->leaf_seq);
	}
	if (!found)
		return fail_with(c, SHEAF_NOT_FOUND, "`sheaf branch SESSION` lists them",
		                 "there is no branch '%.80s'", wanted);
	return 0;
}

static int drawing_start(cli *c, drawing *d, const char *branch)
{
	d->marks = mem_zalloc(d->tree->node_count + 1);
	if (d->marks == NULL)
		return fail_memory(c);
	for (size_t i = 0; i < d->tree->node_count; i++)
		view_note(&d->v, d->tree->nodes[i]->entry);
	uint64_t last = d->tree->node_count != 0
	                        ? d->tree->nodes[d->tree->node_count - 1]->entry->seq
	                        : 0;
	for (d->seq_width = 2; last > 9; last /= 10)
		d->seq_width++;
	return mark(c, d, branch);
}

/* ---- One line ---------------------------------------------------------- */

static void put_columns(drawing *d, size_t column, bool side)
{
	const glyphs *g = text_glyphs();
	const screen *s = &d->v.c->screen;
	size_t bars = column > INDENT_MAX ? INDENT_MAX : column;
	for (size_t i = 0; i < bars; i++)
		print_styled(s, &d->v.out, STYLE_DIM,
		             sheaf_str_of(side && i + 1 == bars ? g->tee : g->bar));
}

static void put_branches(drawing *d, buf *plain, const sheaf_node *node)
{
	const sheaf_head_view *head = d->tree->head;
	bool first = true;
	for (size_t i = 0; i < head->branch_count; i++) {
		if (head->branches[i]->leaf_seq != node->entry->seq)
			continue;
		buf_str(plain, first ? SHEAF_STR("(") : SHEAF_STR(", "));
		text_safe(plain, head->branches[i]->name, TEXT_LINE);
		first = false;
	}
	if (!first)
		buf_lit(plain, ")");
}

/* What a compaction did: where the kept part begins, how much there was. */
static void put_compaction(drawing *d, buf *plain, const sheaf_entry *entry)
{
	uint64_t seq, tokens;
	size_t begin = plain->len;
	if (map_get(&d->v.seqs, entry->target_id, &seq))
		buf_format(plain, "(keeps from @%llu", (unsigned long long)seq);
	_cleanup_(json_freep) json_doc *doc = NULL;
	if (json_parse(&doc, entry->line, NULL) == 0 &&
	    json_u64(json_get(json_get(json_root(doc), "compaction"), "tokens_before"), &tokens) &&
	    tokens != 0) {
		buf_str(plain, plain->len > begin ? SHEAF_STR(", ") : SHEAF_STR("("));
		text_count(plain, tokens, "token before", "tokens before");
	}
	if (plain->len > begin)
		buf_lit(plain, ") ");
}

/* Puts `plain` in a style with a blank after it, and returns its width. */
static size_t put_mark(drawing *d, const char *style, buf *plain)
{
	if (plain->len == 0)
		return 0;
	_cleanup_(buf_free) buf cut = BUF_INIT(SIZE_MAX);
	text_cut(&cut, buf_view(plain), MARK_MAX);
	print_styled(&d->v.c->screen, &d->v.out, style, buf_view(&cut));
	buf_char(&d->v.out, ' ');
	buf_reset(plain);
	return text_width(buf_view(&cut)) + 1;
}

static const char *bullet(const sheaf_entry *entry, bool active)
{
	const glyphs *g = text_glyphs();
	if (entry->kind == SHEAF_KIND_COMPACTION)
		return g->compacted;
	return active ? g->on : g->off;
}

/* The decorations of an entry; returns their width. */
static size_t put_decorations(drawing *d, const sheaf_node *node)
{
	const sheaf_entry *entry = node->entry;
	_cleanup_(buf_free) buf plain = BUF_INIT(SIZE_MAX);
	size_t width = 0;
	if (marks_of(d, node) & MARK_LEAF)
		put_branches(d, &plain, node);
	width += put_mark(d, STYLE_BRANCH, &plain);
	if (entry->label.len != 0) {
		buf_lit(&plain, "[");
		text_safe(&plain, entry->label, TEXT_LINE);
		buf_lit(&plain, "]");
	}
	return width + put_mark(d, STYLE_LABEL, &plain);
}

static void put_node(drawing *d, const frame *f)
{
	const screen *s = &d->v.c->screen;
	const sheaf_entry *entry = f->node->entry;
	buf *out = &d->v.out;
	bool active = marks_of(d, f->node) & MARK_ACTIVE;
	const char *style = active ? view_word_style(entry) : STYLE_DIM;
	size_t columns = (f->column > INDENT_MAX ? INDENT_MAX : f->column) * 2;
	_cleanup_(buf_free) buf plain = BUF_INIT(SIZE_MAX);

	size_t begin = out->len;
	char number[24];
	snprintf(number, sizeof(number), "@%llu", (unsigned long long)entry->seq);
	buf_format(&plain, "%*s ", (int)d->seq_width, number);
	print_styled(s, out, STYLE_DIM, buf_view(&plain));
	put_columns(d, f->column, f->side);
	print_styled(s, out, style, sheaf_str_of(bullet(entry, active)));
	buf_char(out, ' ');
	buf_reset(&plain);
	buf_format(&plain, "%-*s", (int)VIEW_WORD, view_word(entry));
	print_styled(s, out, style, buf_view(&plain));
	buf_char(out, ' ');
	size_t used = d->seq_width + 1 + columns + 2 + VIEW_WORD + 1;
	used += put_decorations(d, f->node);

	buf_reset(&plain);
	if (entry->kind == SHEAF_KIND_COMPACTION)
		put_compaction(d, &plain, entry);
	view_preview(&d->v, &plain, entry);
	size_t width = s->width != 0 ? s->width : COLUMNS_UNKNOWN;
	_cleanup_(buf_free) buf cut = BUF_INIT(SIZE_MAX);
	text_cut(&cut, buf_view(&plain), width > used + PREVIEW_MIN ? width - used : PREVIEW_MIN);
	print_styled(s, out, active ? NULL : STYLE_DIM, buf_view(&cut));
	while (out->len > begin && out->ptr[out->len - 1] == ' ')
		out->len--;
	buf_char(out, '\n');
}

/* ---- The whole --------------------------------------------------------- */

/* An entry that says nothing about the shape, for --short. */
static bool is_plain(const drawing *d, const frame *f)
{
	const sheaf_entry *e = f->node->entry;
	bool asked = e->kind == SHEAF_KIND_MESSAGE && e->message != NULL &&
	             str_is(e->message->role, SHEAF_ROLE_USER);
	return !asked && !f->side && f->node->parent != NULL && f->node->child_count == 1 &&
	       e->label.len == 0 && e->kind != SHEAF_KIND_COMPACTION &&
	       e->kind != SHEAF_KIND_BRANCH_SUMMARY && !e->damaged &&
	       !(marks_of(d, f->node) & MARK_LEAF);
}

static void flush_skipped(drawing *d)
{
	if (d->skipped == 1)
		put_node(
			d,
			&d->skipped_last); /* folding one line into one line hides it for nothing */
	if (d->skipped < 2) {
		d->skipped = 0;
		return;
	}
	const screen *s = &d->v.c->screen;
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	text_spaces(&d->v.out, d->seq_width + 1);
	put_columns(d, d->skipped_last.column, false);
	buf_format(&text, "%s ", text_glyphs()->fold);
	text_count(&text, d->skipped, "entry", "entries");
	print_styled(s, &d->v.out, STYLE_DIM, buf_view(&text));
	buf_char(&d->v.out, '\n');
	d->skipped = 0;
}

static int push(cli *c, drawing *d, const sheaf_node *node, size_t column, bool side)
{
	if (mem_grow((void **)&d->stack, &d->room, d->depth + 1, sizeof(*d->stack)) != 0)
		return fail_memory(c);
	d->stack[d->depth++] = (frame){node, column, side};
	return 0;
}

/* The child that goes on in the same column: the one on the path, else the newest. */
static const sheaf_node *next_in_column(const drawing *d, const sheaf_node *node)
{
	for (size_t i = 0; i < node->child_count; i++) {
		if (marks_of(d, node->children[i]) & MARK_ACTIVE)
			return node->children[i];
	}
	return node->child_count != 0 ? node->children[node->child_count - 1] : NULL;
}

/* Pushed last is drawn first: side branches, oldest first, then what goes on here. */
static int push_children(cli *c, drawing *d, const frame *f)
{
	const sheaf_node *next = next_in_column(d, f->node);
	int rc = next != NULL ? push(c, d, next, f->column, false) : 0;
	for (size_t i = f->node->child_count; rc == 0 && i > 0; i--) {
		if (f->node->children[i - 1] != next)
			rc = push(c, d, f->node->children[i - 1], f->column + 1, true);
	}
	return rc;
}

static int draw_root(cli *c, drawing *d, const sheaf_node *root)
{
	int rc = push(c, d, root, 0, false);
	while (rc == 0 && d->depth > 0) {
		frame f = d->stack[--d->depth];
		if (d->fold && is_plain(d, &f)) {
			d->skipped++;
			d->skipped_last = f;
		} else {
			flush_skipped(d);
			put_node(d, &f);
		}
		rc = push_children(c, d, &f);
		print_out(&d->v.out);
	}
	flush_skipped(d);
	return rc;
}

static int draw(cli *c, drawing *d)
{
	const sheaf_head_view *head = d->tree->head;
	print_page(c);
	view_session(&d->v, head);
	for (size_t i = 0; i < d->tree->root_count; i++) {
		buf_char(&d->v.out, '\n');
		int rc = draw_root(c, d, d->tree->roots[i]);
		if (rc != 0)
			return rc;
	}
	for (size_t i = 0; i < head->branch_count; i++) {
		if (head->branches[i]->leaf_seq != 0)
			continue;
		buf_char(&d->v.out, '\n');
		_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
		buf_lit(&text, "(");
		text_safe(&text, head->branches[i]->name, TEXT_LINE);
		buf_lit(&text, ")");
		print_styled(&c->screen, &d->v.out, STYLE_BRANCH, buf_view(&text));
		buf_lit(&d->v.out, " before the first entry\n");
	}
	print_out(&d->v.out);
	return d->v.out.status != 0 ? fail_memory(c) : 0;
}

/* ---- For programs ------------------------------------------------------ */

static void js_node(const drawing *d, buf *b, const sheaf_node *node)
{
	const sheaf_entry *e = node->entry;
	_cleanup_(buf_free) buf preview = BUF_INIT(SIZE_MAX), cut = BUF_INIT(SIZE_MAX);
	view_preview(&d->v, &preview, e);
	text_cut(&cut, buf_view(&preview), COLUMNS_UNKNOWN);
	js_open(b, NULL, '{');
	js_str(b, "id", e->id);
	js_u64(b, "seq", e->seq);
	js_str(b, "parent_id",
	       node->parent != NULL ? node->parent->entry->id : (sheaf_str){NULL, 0});
	js_str(b, "type", e->type);
	js_str(b, "role", e->message != NULL ? e->message->role : (sheaf_str){NULL, 0});
	js_str(b, "branch", e->branch);
	js_time(b, "timestamp", e->time_us);
	js_str(b, "label", e->label);
	js_bool(b, "on_path", marks_of(d, node) & MARK_ACTIVE);
	js_bool(b, "damaged", e->damaged != 0);
	js_str(b, "preview", buf_view(&cut));
	js_close(b, '}');
}

static int put_json(cli *c, drawing *d)
{
	const sheaf_head_view *head = d->tree->head;
	buf *b = &d->v.out;
	js_open(b, NULL, '{');
	js_str(b, "session", head->info->session);
	js_str(b, "name", head->info->name);
	js_u64(b, "revision", head->info->revision);
	js_open(b, "branches", '[');
	for (size_t i = 0; i < head->branch_count; i++) {
		js_open(b, NULL, '{');
		js_str(b, "name", head->branches[i]->name);
		js_str(b, "leaf", head->branches[i]->leaf);
		js_u64(b, "leaf_seq", head->branches[i]->leaf_seq);
		js_close(b, '}');
	}
	js_close(b, ']');
	js_open(b, "nodes", '[');
	for (size_t i = 0; i < d->tree->node_count; i++)
		js_node(d, b, d->tree->nodes[i]);
	js_close(b, ']');
	js_close(b, '}');
	buf_char(b, '\n');
	print_out(b);
	return b->status != 0 ? fail_memory(c) : 0;
}

int show_tree(cli *c, sheaf_session *session, const char *branch, bool fold)
{
	_cleanup_(tree_freep) sheaf_tree *tree = NULL;
	if (sheaf_session_tree(&tree, session, &c->err) != 0)
		return fail(c);
	_cleanup_(drawing_done) drawing d = {.v = VIEW_INIT(c, false), .tree = tree};
	d.fold = fold;
	int rc = drawing_start(c, &d, branch);
	if (rc != 0)
		return rc;
	return c->json ? put_json(c, &d) : draw(c, &d);
}

int cmd_tree(cli *c)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	int rc = open_for_reading(c, c->words[0], &session);
	if (rc != 0)
		return rc;
	return show_tree(c, session, given(c, OPT_BRANCH) ? c->values[OPT_BRANCH] : "main",
	                 given(c, OPT_SHORT));
}
