/* A tree of entries put in order and drawn row by row. */
#include "tree_rows.h"

#include <stdio.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#define COLUMNS_UNKNOWN 100u /* a preview has to end somewhere in a pipe too */
#define INDENT_MAX 24u       /* side branches of side branches beyond this are drawn on top */
#define PREVIEW_MIN 12u
#define MARK_MAX 32u

enum {
	MARK_ACTIVE = 1,
	MARK_LEAF = 2
};

void tree_rows_done(tree_rows *t)
{
	view_done(&t->v);
	mem_free(t->marks);
	mem_free(t->rows);
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

static unsigned char marks_of(const tree_rows *t, const sheaf_node *node)
{
	size_t at;
	return index_of(t->tree, node->entry->seq, &at) ? t->marks[at] : 0;
}

bool tree_rows_on_path(const tree_rows *t, const sheaf_node *node)
{
	return marks_of(t, node) & MARK_ACTIVE;
}

static void mark_path(tree_rows *t, uint64_t leaf_seq)
{
	size_t at;
	if (!index_of(t->tree, leaf_seq, &at))
		return;
	for (const sheaf_node *n = t->tree->nodes[at]; n != NULL; n = n->parent) {
		if (index_of(t->tree, n->entry->seq, &at))
			t->marks[at] |= MARK_ACTIVE;
	}
}

/* Marks the leaves of all branches and the path of the one asked for. */
static int mark(tree_rows *t, const char *wanted, sheaf_error *err)
{
	const sheaf_head_view *head = t->tree->head;
	bool found = false;
	for (size_t i = 0; i < head->branch_count; i++) {
		const sheaf_branch_info *branch = head->branches[i];
		size_t at;
		if (index_of(t->tree, branch->leaf_seq, &at))
			t->marks[at] |= MARK_LEAF;
		if (!str_is(branch->name, wanted))
			continue;
		found = true;
		mark_path(t, branch->leaf_seq);
	}
	return found ? 0 : err_set(err, SHEAF_NOT_FOUND, "there is no branch '%.80s'", wanted);
}

/* ---- In order ---------------------------------------------------------- */

/* What is still to come, the next one last. */
typedef struct ahead {
	tree_row *rows;
	size_t count;
	size_t room;
} ahead;

static void ahead_done(ahead *a)
{
	mem_free(a->rows);
}

static int push(ahead *a, const sheaf_node *node, size_t column, bool side)
{
	if (mem_grow((void **)&a->rows, &a->room, a->count + 1, sizeof(*a->rows)) != 0)
		return SHEAF_NOMEM;
	a->rows[a->count++] = (tree_row){node, column, 0, side};
	return 0;
}

/* The child that goes on in the same column: the one on the path, else the newest. */
static const sheaf_node *next_in_column(const tree_rows *t, const sheaf_node *node)
{
	for (size_t i = 0; i < node->child_count; i++) {
		if (tree_rows_on_path(t, node->children[i]))
			return node->children[i];
	}
	return node->child_count != 0 ? node->children[node->child_count - 1] : NULL;
}

const sheaf_node *tree_rows_leaf(const tree_rows *t, const sheaf_node *node)
{
	for (const sheaf_node *next; (next = next_in_column(t, node)) != NULL;)
		node = next;
	return node;
}

/* Pushed last comes first: side branches, oldest first, then what goes on here. */
static int push_children(const tree_rows *t, ahead *a, const tree_row *row)
{
	const sheaf_node *next = next_in_column(t, row->node);
	int rc = next != NULL ? push(a, next, row->column, false) : 0;
	for (size_t i = row->node->child_count; rc == 0 && i > 0; i--) {
		if (row->node->children[i - 1] != next)
			rc = push(a, row->node->children[i - 1], row->column + 1, true);
	}
	return rc;
}

/* An entry that says nothing about the shape. */
static bool is_plain(const tree_rows *t, const tree_row *row)
{
	const sheaf_entry *e = row->node->entry;
	bool asked = e->kind == SHEAF_KIND_MESSAGE && e->message != NULL &&
	             str_is(e->message->role, SHEAF_ROLE_USER);
	return !asked && !row->side && row->node->parent != NULL && row->node->child_count == 1 &&
	       e->label.len == 0 && e->kind != SHEAF_KIND_COMPACTION &&
	       e->kind != SHEAF_KIND_BRANCH_SUMMARY && !e->damaged &&
	       !(marks_of(t, row->node) & MARK_LEAF);
}

static int add_row(tree_rows *t, const tree_row *row)
{
	if (mem_grow((void **)&t->rows, &t->room, t->count + 1, sizeof(*t->rows)) != 0)
		return SHEAF_NOMEM;
	t->rows[t->count++] = *row;
	return 0;
}

/* Folding one line into one line hides it for nothing. */
static int add_folded(tree_rows *t, tree_row *folded)
{
	if (folded->folded == 0)
		return 0;
	if (folded->folded == 1)
		folded->folded = 0;
	int rc = add_row(t, folded);
	folded->folded = 0;
	return rc;
}

static int add_root(tree_rows *t, const sheaf_node *root, bool fold)
{
	_cleanup_(ahead_done) ahead a = {0};
	tree_row folded = {0};
	int rc = push(&a, root, 0, false);
	while (rc == 0 && a.count > 0) {
		tree_row row = a.rows[--a.count];
		if (fold && is_plain(t, &row)) {
			size_t count = folded.folded + 1;
			folded = row;
			folded.folded = count;
		} else if ((rc = add_folded(t, &folded)) == 0) {
			rc = add_row(t, &row);
		}
		if (rc == 0)
			rc = push_children(t, &a, &row);
	}
	return rc != 0 ? rc : add_folded(t, &folded);
}

int tree_rows_make(tree_rows *t, const sheaf_tree *tree, const char *branch, bool fold,
                   sheaf_error *err)
{
	t->tree = tree;
	t->marks = mem_zalloc(tree->node_count + 1);
	if (t->marks == NULL)
		return err_nomem(err);
	for (size_t i = 0; i < tree->node_count; i++)
		view_note(&t->v, tree->nodes[i]->entry);
	uint64_t last = tree->node_count != 0 ? tree->nodes[tree->node_count - 1]->entry->seq : 0;
	for (t->seq_width = 2; last > 9; last /= 10)
		t->seq_width++;
	int rc = mark(t, branch, err);
	if (rc != 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < tree->root_count; i++)
		rc = add_root(t, tree->roots[i], fold);
	return rc != 0 ? err_nomem(err) : 0;
}

/* ---- One row ----------------------------------------------------------- */

static void put_columns(const tree_rows *t, buf *out, size_t column, bool side)
{
	const glyphs *g = text_glyphs();
	size_t bars = column > INDENT_MAX ? INDENT_MAX : column;
	for (size_t i = 0; i < bars; i++)
		print_styled(&t->v.c->screen, out, STYLE_DIM,
		             sheaf_str_of(side && i + 1 == bars ? g->tee : g->bar));
}

static void put_branches(const tree_rows *t, buf *plain, const sheaf_node *node)
{
	const sheaf_head_view *head = t->tree->head;
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
static void put_compaction(const tree_rows *t, buf *plain, const sheaf_entry *entry)
{
	uint64_t seq, tokens;
	size_t begin = plain->len;
	if (map_get(&t->v.seqs, entry->target_id, &seq))
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
static size_t put_mark(const tree_rows *t, buf *out, const char *style, buf *plain)
{
	if (plain->len == 0)
		return 0;
	_cleanup_(buf_free) buf cut = BUF_INIT(SIZE_MAX);
	text_cut(&cut, buf_view(plain), MARK_MAX);
	print_styled(&t->v.c->screen, out, style, buf_view(&cut));
	buf_char(out, ' ');
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
static size_t put_decorations(const tree_rows *t, buf *out, const sheaf_node *node)
{
	const sheaf_entry *entry = node->entry;
	_cleanup_(buf_free) buf plain = BUF_INIT(SIZE_MAX);
	size_t width = 0;
	if (marks_of(t, node) & MARK_LEAF)
		put_branches(t, &plain, node);
	width += put_mark(t, out, STYLE_BRANCH, &plain);
	if (entry->label.len != 0) {
		buf_lit(&plain, "[");
		text_safe(&plain, entry->label, TEXT_LINE);
		buf_lit(&plain, "]");
	}
	return width + put_mark(t, out, STYLE_LABEL, &plain);
}

static void put_node(const tree_rows *t, const tree_row *row, buf *out)
{
	const screen *s = &t->v.c->screen;
	const sheaf_entry *entry = row->node->entry;
	bool active = tree_rows_on_path(t, row->node);
	const char *style = active ? view_word_style(entry) : STYLE_DIM;
	size_t columns = (row->column > INDENT_MAX ? INDENT_MAX : row->column) * 2;
	_cleanup_(buf_free) buf plain = BUF_INIT(SIZE_MAX);

	char number[24];
	snprintf(number, sizeof(number), "@%llu", (unsigned long long)entry->seq);
	buf_format(&plain, "%*s ", (int)t->seq_width, number);
	print_styled(s, out, STYLE_DIM, buf_view(&plain));
	put_columns(t, out, row->column, row->side);
	print_styled(s, out, style, sheaf_str_of(bullet(entry, active)));
	buf_char(out, ' ');
	buf_reset(&plain);
	buf_format(&plain, "%-*s", (int)VIEW_WORD, view_word(entry));
	print_styled(s, out, style, buf_view(&plain));
	buf_char(out, ' ');
	size_t used = t->seq_width + 1 + columns + 2 + VIEW_WORD + 1;
	used += put_decorations(t, out, row->node);

	buf_reset(&plain);
	if (entry->kind == SHEAF_KIND_COMPACTION)
		put_compaction(t, &plain, entry);
	view_preview(&t->v, &plain, entry);
	size_t width = s->width != 0 ? s->width : COLUMNS_UNKNOWN;
	_cleanup_(buf_free) buf cut = BUF_INIT(SIZE_MAX);
	text_cut(&cut, buf_view(&plain), width > used + PREVIEW_MIN ? width - used : PREVIEW_MIN);
	print_styled(s, out, active ? NULL : STYLE_DIM, buf_view(&cut));
}

void tree_rows_put(const tree_rows *t, size_t row, buf *out)
{
	const tree_row *r = &t->rows[row];
	size_t begin = out->len;
	if (r->folded == 0) {
		put_node(t, r, out);
	} else {
		_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
		text_spaces(out, t->seq_width + 1);
		put_columns(t, out, r->column, false);
		buf_format(&text, "%s ", text_glyphs()->fold);
		text_count(&text, r->folded, "entry", "entries");
		print_styled(&t->v.c->screen, out, STYLE_DIM, buf_view(&text));
	}
	while (out->len > begin && out->ptr[out->len - 1] == ' ')
		out->len--;
}
