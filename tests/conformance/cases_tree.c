/* The whole tree of a session. */
#include <stdio.h>

#include "suite.h"

CASE(tree_of_a_line)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	SAY(s, "user", "3", .id = "u2");
	const sheaf_tree *tree = t_tree(t, s);
	EQ(tree->root_count, 1);
	EQ(tree->node_count, 3);
	const sheaf_node *n = tree->roots[0];
	TEXT(n->entry->id, "u1");
	CHECK(n->parent == NULL && n->on_path && n->depth == 0 && n->child_count == 1);
	n = n->children[0];
	TEXT(n->entry->id, "a1");
	EQ(n->depth, 1);
	n = n->children[0];
	TEXT(n->entry->id, "u2");
	EQ(n->child_count, 0);
	EQ(n->on_path, 1);
	TEXT(n->entry->message->parts[0]->text, "3");
}

CASE(tree_of_branches)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	SAY(s, "assistant", "2b", .id = "a2", .parent = "u1");
	SAY(s, "user", "other", .id = "r2", .root = 1);
	SAY(s, "assistant", "2c", .id = "a3", .parent = "u1");
	LABEL(s, "a1", "first try");
	BRANCH(s, NULL, "a2");
	BRANCH(s, "side", "r2");
	const sheaf_tree *tree = t_tree(t, s);
	EQ(tree->root_count, 2);
	EQ(tree->node_count, 5);
	const sheaf_node *u1 = tree->roots[0];
	EQ(u1->child_count, 3);
	TEXT(u1->children[0]->entry->id, "a1");
	TEXT(u1->children[1]->entry->id, "a2");
	TEXT(u1->children[2]->entry->id, "a3");
	TEXT(u1->children[0]->entry->label, "first try");
	CHECK(u1->children[1]->entry->label.ptr == NULL);
	CHECK(u1->on_path && u1->children[1]->on_path);
	CHECK(!u1->children[0]->on_path && !u1->children[2]->on_path);
	CHECK(!tree->roots[1]->on_path);
	EQ(tree->head->branch_count, 2);
	TEXT(tree->head->branches[0]->leaf, "a2");
	TEXT(tree->head->branches[1]->name, "side");
}

CASE(tree_nodes_by_number)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	LABEL(s, "u1", "l");
	SAY(s, "user", "2", .id = "u2", .root = 1);
	SAY(s, "user", "3", .id = "u3", .parent = "u1");
	const sheaf_tree *tree = t_tree(t, s);
	EQ(tree->node_count, 3);
	EQ(tree->nodes[0]->entry->seq, 1);
	EQ(tree->nodes[1]->entry->seq, 3);
	EQ(tree->nodes[2]->entry->seq, 4);
	CHECK(tree->nodes[2]->parent == tree->nodes[0]);
}

CASE(tree_after_clear)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	OK(sheaf_session_clear(s, &t->err));
	const sheaf_tree *tree = t_tree(t, s);
	EQ(tree->node_count, 1);
	EQ(tree->nodes[0]->on_path, 0);
	CHECK(tree->head->branches[0]->leaf.ptr == NULL);
}

CASE(tree_deep)
{
	/* A chain no recursion would survive. */
	sheaf_session *s = t_new(t, "s");
	for (int round = 0; round < 8; round++) {
		sheaf_batch *b = t_batch(t);
		for (int i = 0; i < 4000; i++)
			OK(sheaf_batch_json(b, S("thinking_level"),
			                    S("{\"thinking_level\":{\"thinking_level\":\"x\"}}"),
			                    NULL, &t->err));
		OK(t_append_batch(t, s, b, (put){0}));
	}
	const sheaf_tree *tree = t_tree(t, s);
	EQ(tree->node_count, 32000);
	EQ(tree->root_count, 1);
	EQ(tree->nodes[31999]->depth, 31999);
	EQ(tree->nodes[31999]->on_path, 1);
	EQ(t_path(t, s, NULL)->count, 32000);
	EQ(t_context(t, s)->count, 0);
}

CASE(tree_wide)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "0", .id = "root");
	sheaf_batch *b = t_batch(t);
	for (int i = 0; i < 1000; i++)
		ADD(b, "assistant", "x", .id = t_format(t, "c%d", i), .parent = "root");
	OK(t_append_batch(t, s, b, (put){0}));
	const sheaf_tree *tree = t_tree(t, s);
	EQ(tree->roots[0]->child_count, 1000);
	TEXT(tree->roots[0]->children[999]->entry->id, "c999");
	EQ(t_children(t, s, "root")->count, 1000);
}

CASE(tree_of_a_fork)
{
	sheaf_session *s = t_new(t, "s");
	SAY(s, "user", "1", .id = "u1");
	SAY(s, "assistant", "2", .id = "a1");
	SAY(s, "assistant", "2b", .id = "a2", .parent = "u1");
	sheaf_session *f = t_fork(t, s, "a2", "f");
	SAY(f, "user", "f", .id = "f1", .parent = "a1");
	const sheaf_tree *tree = t_tree(t, f);
	EQ(tree->node_count, 4);
	EQ(tree->root_count, 1);
	EQ(tree->roots[0]->child_count, 2);
	TEXT(tree->roots[0]->children[0]->children[0]->entry->id, "f1");
	EQ(tree->roots[0]->children[0]->on_path, 1);
	EQ(tree->roots[0]->children[1]->on_path, 0);
}
