/* The tree of a session: every entry in a row, from which one goes to it. */
#include "base/str.h"
#include "tui.h"

#define MANY 10000u /* records: it takes long enough to say so */

void treeing_done(treeing *g)
{
	tree_rows_done(&g->rows);
	sheaf_tree_free(g->tree);
	*g = (treeing){0};
}

/* Stands where the reader is. */
static void choose_seq(treeing *g, uint64_t seq)
{
	g->chosen = (choice){0};
	for (size_t i = 0; i < g->rows.count; i++) {
		if (g->rows.rows[i].node->entry->seq == seq)
			g->chosen.at = i;
	}
}

bool tree_open(tui *t)
{
	treeing *g = &t->tree;
	sheaf_error err = {0};
	treeing_done(g);
	/* The whole of it is read. */
	if (t->transcript.head->info->records > MANY && tui_wait(t, "reading the whole tree"))
		return false;
	g->rows = (tree_rows)TREE_ROWS_INIT(&t->page);
	if (sheaf_session_tree(&g->tree, t->transcript.session, &err) != 0 ||
	    tree_rows_make(&g->rows, g->tree, "main", false, &err) != 0) {
		tui_fail(t, &err);
		treeing_done(g);
		return false;
	}
	choose_seq(g, transcript_seq(t));
	return true;
}

void tree_draw(tui *t, area in)
{
	treeing *g = &t->tree;
	g->height = in.rows;
	t->page.screen.width = (size_t)in.columns;
	choice_show(&g->chosen, g->rows.count, in.rows);
	for (int row = 0; row < in.rows; row++) {
		size_t i = g->chosen.top + (size_t)row;
		if (i >= g->rows.count)
			break;
		_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
		tree_rows_put(&g->rows, i, &text);
		draw_row(in, row, (styled){.text = buf_view(&text)},
		         i == g->chosen.at ? DRAW_CHOSEN : 0);
	}
	if (g->rows.count == 0)
		draw_text(in, 0, 0, in.columns, SHEAF_STR("nothing has been said here"), 0);
}

void tree_where(const tui *t, buf *out)
{
	text_count(out, t->tree.rows.count, "entry", "entries");
}

void tree_act(tui *t, action what)
{
	treeing *g = &t->tree;
	if (choice_act(&g->chosen, what, g->rows.count, g->height))
		return;
	const sheaf_node *node = g->chosen.at < g->rows.count ? g->rows.rows[g->chosen.at].node
	                                                      : NULL;
	switch (what) {
	case ACT_OPEN:
		if (node != NULL &&
		    transcript_go(t, tree_rows_leaf(&g->rows, node)->entry->seq, node->entry->seq))
			tui_show(t, SHOW_TRANSCRIPT);
		break;
	case ACT_COPY:
		if (node != NULL)
			tui_copy(t, "entry", node->entry->id);
		break;
	case ACT_COPY_SESSION:
		tui_copy(t, "session", t->transcript.head->info->session);
		break;
	case ACT_RELOAD:
		tree_open(t);
		break;
	default:
		break;
	}
}
