/* How conversations look to people: a heading and a body for each entry, or one line of it. */
#ifndef CLI_VIEW_H
#define CLI_VIEW_H

#include "base/map.h"
#include "print.h"

typedef struct view {
	const cli *c;
	bool full;   /* nothing is folded */
	bool source; /* texts as they stand, also on a terminal, where they are Markdown else */
	bool gap;    /* something stands above: a blank line goes first */
	map calls;   /* tool call id → name of the tool, of what was shown so far */
	map seqs;    /* entry id → seq */
	arena *kept; /* what the maps hold: entries may go while the view stays */
	buf out;
} view;

#define VIEW_INIT(cli_, full_)                                                                     \
	{                                                                                          \
		(cli_), (full_), false, false, MAP_INIT, MAP_INIT, NULL, BUF_INIT(SIZE_MAX)        \
	}

void view_done(view *v); /* for _cleanup_ */

/* What is known of a session, in two lines. */
void view_session(view *v, const sheaf_head_view *head);

/* One entry of a path; the second only appends it to `v->out`. */
void view_entry(view *v, const sheaf_entry *entry);
void view_entry_put(view *v, const sheaf_entry *entry);

/* One item of a context, as a model sees it. */
void view_item(view *v, const sheaf_item *item);

/* Remembers an entry's number and its tool calls, so that others can name them. */
void view_note(view *v, const sheaf_entry *entry);

/* "user", "assistant", "tool", "compaction" …, at most VIEW_WORD columns, and its style. */
#define VIEW_WORD 10u
const char *view_word(const sheaf_entry *entry);
const char *view_word_style(const sheaf_entry *entry);

/* The beginning of an entry in one safe line, for a tree or a list. `v` knows the names of the
 * tools that answer; it may be NULL. */
void view_preview(const view *v, buf *out, const sheaf_entry *entry);

/* A tool call in one safe line: name(argument). */
void view_call(buf *out, const sheaf_part *part);

/* What people know a session by: its name, else the beginning of what was asked; and what is
 * special about it. */
void view_name(buf *out, const sheaf_session_info *info);

/* What a head says about a session, between dots: "6 messages · 2 branches · …". */
void view_facts(const cli *c, buf *out, const sheaf_head_view *head);

/* A directory with the home directory as "~", safe. */
void view_directory(buf *out, sheaf_str cwd);

/* ---- Between the files of the view ------------------------------------- */

/* A call that changes a file, as the lines that go and come. False: it is no such call, and nothing
 * was put. */
bool view_edit(view *v, const sheaf_part *part);

/* A line behind a bar, cut to the width unless all is shown; how many more there are, if any; columns
 * right of the indent, 0 = not known. */
void view_quoted(view *v, const char *style, sheaf_str line);
void view_more(view *v, size_t lines);
size_t view_room(const view *v);

#endif
