/* The tree beside a conversation: every entry a line, side branches moved in, the path brought out. */
#include "base/mem.h"
#include "base/str.h"
#include "html_inside.h"

#define DEPTH_MAX 8u /* deeper ones are moved in no further */

/* What a reader looks for; the rest is shown on demand. */
static bool is_landmark(const html_index *x, uint32_t at)
{
	const html_node *n = &x->nodes[at];
	const html_node *above = n->parent != NONE ? &x->nodes[n->parent] : NULL;
	if (n->look == LOOK_USER || n->look == LOOK_COMPACTION || n->look == LOOK_SUMMARY ||
	    n->look == LOOK_DAMAGED || n->label.len != 0)
		return true;
	return above != NULL && above->first != above->last;
}

static void put_branches(html_page *p, uint64_t seq)
{
	for (size_t i = 0; seq != 0 && i < p->head->branch_count; i++) {
		if (p->head->branches[i]->leaf_seq != seq)
			continue;
		buf_lit(&p->out, "<span class=\"branch\">");
		html_line(&p->out, p->head->branches[i]->name, 80);
		buf_lit(&p->out, "</span>");
	}
}

static bool is_leaf(const html_page *p, uint64_t seq)
{
	bool leaf = false;
	for (size_t i = 0; i < p->head->branch_count; i++)
		leaf = leaf || p->head->branches[i]->leaf_seq == seq;
	return leaf;
}

static void put_node(html_page *p, uint32_t at, unsigned depth)
{
	const html_node *n = &p->index.nodes[at];
	buf *out = &p->out;
	bool leaf = is_leaf(p, n->seq), minor = !leaf && !is_landmark(&p->index, at);
	buf_format(out, "<li class=\"%s%s d%u\"><a href=\"#e%llu\">", html_look(n->look),
	           minor ? " minor" : "", depth < DEPTH_MAX ? depth : DEPTH_MAX,
	           (unsigned long long)n->seq);
	buf_str(out, n->preview.len != 0 ? n->preview : SHEAF_STR("…")); /* is HTML */
	buf_lit(out, "</a>");
	if (n->label.len != 0) {
		buf_lit(out, "<span class=\"label\">");
		html_line(out, n->label, 80);
		buf_lit(out, "</span>");
	}
	put_branches(p, n->seq);
	buf_lit(out, "</li>\n");
}

typedef struct step {
	uint32_t at;
	unsigned depth;
} step;

/* Side branches come before what goes on, the oldest first, each below the entry it leaves. */
static int push_children(step **stack, size_t *room, size_t *count, const html_index *x, step from)
{
	const html_node *n = &x->nodes[from.at];
	size_t more = 0;
	for (uint32_t child = n->first; child != NONE; child = x->nodes[child].next)
		more++;
	if (mem_grow((void **)stack, room, *count + more, sizeof(**stack)) != 0)
		return SHEAF_NOMEM;
	if (n->heir != NONE)
		(*stack)[(*count)++] = (step){n->heir, from.depth};
	size_t begin = *count;
	for (uint32_t child = n->first; child != NONE; child = x->nodes[child].next) {
		if (child != n->heir)
			(*stack)[(*count)++] = (step){child, from.depth + 1};
	}
	for (size_t i = begin, j = *count; i + 1 < j; i++) {
		step other = (*stack)[i];
		(*stack)[i] = (*stack)[--j];
		(*stack)[j] = other;
	}
	return 0;
}

int html_tree(html_page *p)
{
	const html_index *x = &p->index;
	step *stack = NULL;
	size_t room = 0, count = 0;
	int rc = 0;
	buf_lit(&p->out, "<ol class=\"tree\">\n");
	for (uint32_t root = 0; root < x->count && rc == 0; root++) {
		if (x->nodes[root].parent != NONE)
			continue;
		if ((rc = mem_grow((void **)&stack, &room, 1, sizeof(*stack))) != 0)
			break;
		stack[0] = (step){root, 0};
		count = 1;
		while (count > 0 && rc == 0) {
			step top = stack[--count];
			put_node(p, top.at, top.depth);
			if ((rc = html_flush(p, false)) == 0)
				rc = push_children(&stack, &room, &count, x, top);
		}
	}
	mem_free(stack);
	buf_lit(&p->out, "</ol>\n");
	return rc;
}
