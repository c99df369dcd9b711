/*
 * The entries of a session as the rows of a drawn tree.
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
#ifndef CLI_TREE_ROWS_H
#define CLI_TREE_ROWS_H

#include "view.h"

typedef struct tree_row {
	const sheaf_node *node; /* of several that are folded into one row, the last */
	size_t column;
	size_t folded; /* how many entries the row stands for; 0: it is one, shown */
	bool side;     /* the first entry of a side branch */
} tree_row;

typedef struct tree_rows {
	view v;
	const sheaf_tree *tree; /* borrowed */
	unsigned char *marks;   /* for each of tree->nodes */
	tree_row *rows;
	size_t count;
	size_t room;
	size_t seq_width;
} tree_rows;

#define TREE_ROWS_INIT(cli_)                                                                       \
	{                                                                                          \
		.v = VIEW_INIT((cli_), false)                                                      \
	}

/*
 * Puts the tree in order, with the path of `branch` in the first column; `fold`: only what says
 * where it branches. 0, SHEAF_NOT_FOUND (there is no such branch) or SHEAF_NOMEM.
 */
int tree_rows_make(tree_rows *t, const sheaf_tree *tree, const char *branch, bool fold,
                   sheaf_error *err);
void tree_rows_done(tree_rows *t); /* for _cleanup_ */

/* Appends one row, in at most the width of the view's screen, without a line break. */
void tree_rows_put(const tree_rows *t, size_t row, buf *out);

/* Whether an entry is on the path of the branch. */
bool tree_rows_on_path(const tree_rows *t, const sheaf_node *node);

/* The end of the branch that an entry is on: of the one asked for if it can be, else the newest. */
const sheaf_node *tree_rows_leaf(const tree_rows *t, const sheaf_node *node);

#endif
