/* sheaf tree: every entry of a session, drawn as a tree. */
#include "find.h"
#include "opt.h"
#include "shapes.h"
#include "tree_rows.h"

#define PREVIEW_COLUMNS 100u /* for programs */

static void tree_freep(sheaf_tree **tree)
{
	sheaf_tree_free(*tree);
}

/* ---- For people -------------------------------------------------------- */

static void put_empty_branches(cli *c, buf *out, const sheaf_head_view *head)
{
	for (size_t i = 0; i < head->branch_count; i++) {
		if (head->branches[i]->leaf_seq != 0)
			continue;
		buf_char(out, '\n');
		_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
		buf_lit(&text, "(");
		text_safe(&text, head->branches[i]->name, TEXT_LINE);
		buf_lit(&text, ")");
		print_styled(&c->screen, out, STYLE_BRANCH, buf_view(&text));
		buf_lit(out, " before the first entry\n");
	}
}

static int draw(cli *c, tree_rows *t)
{
	buf *out = &t->v.out;
	print_page(c);
	view_session(&t->v, t->tree->head);
	for (size_t i = 0; i < t->count; i++) {
		if (t->rows[i].node->parent == NULL)
			buf_char(out, '\n');
		tree_rows_put(t, i, out);
		buf_char(out, '\n');
		print_out(out);
	}
	put_empty_branches(c, out, t->tree->head);
	print_out(out);
	return out->status != 0 ? fail_memory(c) : 0;
}

/* ---- For programs ------------------------------------------------------ */

static void js_node(const tree_rows *t, buf *b, const sheaf_node *node)
{
	const sheaf_entry *e = node->entry;
	_cleanup_(buf_free) buf preview = BUF_INIT(SIZE_MAX), cut = BUF_INIT(SIZE_MAX);
	view_preview(&t->v, &preview, e);
	text_cut(&cut, buf_view(&preview), PREVIEW_COLUMNS);
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
	js_bool(b, "on_path", tree_rows_on_path(t, node));
	js_bool(b, "damaged", e->damaged != 0);
	js_str(b, "preview", buf_view(&cut));
	js_close(b, '}');
}

static int put_json(cli *c, tree_rows *t)
{
	const sheaf_head_view *head = t->tree->head;
	buf *b = &t->v.out;
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
	for (size_t i = 0; i < t->tree->node_count; i++)
		js_node(t, b, t->tree->nodes[i]);
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
	_cleanup_(tree_rows_done) tree_rows t = TREE_ROWS_INIT(c);
	int rc = tree_rows_make(&t, tree, branch, fold, &c->err);
	if (rc == SHEAF_NOT_FOUND)
		return fail_with(c, rc, "`sheaf branch SESSION` lists them",
		                 "there is no branch '%.80s'", branch);
	if (rc != 0)
		return fail(c);
	return c->json ? put_json(c, &t) : draw(c, &t);
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
