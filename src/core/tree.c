/* The whole tree of a session. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/gather.h"

typedef struct tree_box {
	sheaf_tree tree;
	arena *a;
} tree_box;

/* Nodes under construction, in the order of the log. */
typedef struct growth {
	gather g;
	sheaf_node *nodes; /* one for each entry gathered */
} growth;

static int growth_row(void *ctx, const sheaf_row *row)
{
	growth *t = ctx;
	record r;
	bool readable;
	int rc = gather_look(&t->g, row, &r, &readable);
	/* What cannot be read has no place in the tree; its children become roots. */
	return rc != 0 || !readable ? rc : gather_add(&t->g, row, &r);
}

/* The node of a seq, by halving: entries are in the order of their numbers. */
static sheaf_node *node_of(const growth *t, uint64_t seq, size_t below)
{
	size_t low = 0, high = below;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t at = t->g.items[middle]->seq;
		if (at == seq)
			return &t->nodes[middle];
		if (at < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Links every node to its parent. A parent comes before its child, so one pass does. */
static size_t grow_links(growth *t)
{
	size_t roots = 0;
	for (size_t i = 0; i < t->g.count; i++) {
		sheaf_entry *e = t->g.items[i];
		sheaf_node *n = &t->nodes[i];
		sheaf_node *parent = e->parent_seq != 0 ? node_of(t, e->parent_seq, i) : NULL;
		n->entry = e;
		n->parent = parent;
		if (parent == NULL) {
			roots++;
			continue;
		}
		n->depth = parent->depth + 1;
		parent->child_count++;
		/* In a foreign file the line may name a fact in its place. */
		e->parent_id = parent->entry->id;
	}
	return roots;
}

/* Makes the lists of children, of roots and of all, each in the order of the log. */
static int grow_lists(growth *t, sheaf_tree *tree, size_t root_count)
{
	size_t count = t->g.count;
	arena *a = t->g.a;
	const sheaf_node **all = arena_alloc(a, (count + 1) * sizeof(*all));
	const sheaf_node **roots = arena_alloc(a, (root_count + 1) * sizeof(*roots));
	const sheaf_node **lists = arena_alloc(a, (count + 1) * sizeof(*lists));
	if (all == NULL || roots == NULL || lists == NULL)
		return SHEAF_NOMEM;
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		t->nodes[i].children = lists + used;
		used += t->nodes[i].child_count;
		t->nodes[i].child_count = 0;
		all[i] = &t->nodes[i];
	}
	size_t r = 0;
	for (size_t i = 0; i < count; i++) {
		sheaf_node *parent = (sheaf_node *)(uintptr_t)t->nodes[i].parent;
		if (parent == NULL) {
			roots[r++] = &t->nodes[i];
			continue;
		}
		const sheaf_node **kids = (const sheaf_node **)(uintptr_t)parent->children;
		kids[parent->child_count++] = &t->nodes[i];
	}
	tree->nodes = all;
	tree->node_count = count;
	tree->roots = roots;
	tree->root_count = root_count;
	return 0;
}

static void grow_path(growth *t, const sheaf_head *head)
{
	head_branch main;
	if (!head_branch_find(head, SHEAF_STR("main"), &main) || main.leaf_seq == 0)
		return;
	sheaf_node *n = node_of(t, main.leaf_seq, t->g.count);
	while (n != NULL) {
		n->on_path = 1;
		n = (sheaf_node *)(uintptr_t)n->parent;
	}
}

static int grow(growth *t, sheaf_session *s, const sheaf_head *head, const sheaf_head_state *state,
                tree_box **out, sheaf_error *err)
{
	sheaf_scan scan = {
		.size = sizeof(scan),
		.from = 1,
		.limit = SIZE_MAX,
		.kinds = SHEAF_KINDS_ENTRIES,
	};
	int rc = err_pass(err, &t->g.err, read_scan(s, head, &scan, growth_row, t, err));
	if (rc == 0)
		rc = gather_labels(&t->g, s, head, err);
	if (rc != 0)
		return rc;
	tree_box *box = arena_zalloc(t->g.a, sizeof(*box));
	sheaf_head_view *view = arena_zalloc(t->g.a, sizeof(*view));
	t->nodes = arena_zalloc(t->g.a, (t->g.count + 1) * sizeof(*t->nodes));
	if (box == NULL || view == NULL || t->nodes == NULL)
		return err_nomem(err);
	rc = head_view_make(view, s, head, state, t->g.a, err);
	if (rc != 0)
		return rc;
	box->tree.head = view;
	if (grow_lists(t, &box->tree, grow_links(t)) != 0)
		return err_nomem(err);
	grow_path(t, head);
	box->a = t->g.a;
	t->g.a = NULL;
	*out = box;
	return 0;
}

int sheaf_session_tree(sheaf_tree **out, sheaf_session *session, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	sheaf_head_state state = {0};
	if (out == NULL || session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	int rc = session_head(session, &head, &state, err);
	if (rc != 0)
		return rc;
	growth t = {.nodes = NULL};
	tree_box *box = NULL;
	rc = gather_begin(&t.g, true, err);
	if (rc == 0)
		rc = grow(&t, session, head, &state, &box, err);
	gather_end(&t.g);
	if (rc == 0)
		*out = &box->tree;
	return rc;
}

void sheaf_tree_free(const sheaf_tree *tree)
{
	if (tree != NULL)
		arena_free(((const tree_box *)(const void *)tree)->a);
}
