/*
 * A browser of sessions in the terminal.
 *
 *   cmd_tui          begins and ends it; the loop
 *   tui_keys         what each key does, and the page of help
 *   tui_list         the sessions, page by page
 *   tui_preview      the end of the one that is chosen
 *   tui_projects     the directories to choose from
 *   tui_search       what was said, as one types
 *   tui_path         the entries of a conversation, as far as they were looked at
 *   tui_transcript   reading it
 *   tui_tree         its tree
 *   tui_draw         the screen and the keyboard, by ncurses
 *   tui_styled       lines that fit
 *
 * Nothing is read before it is looked at: a list and a conversation come in
 * pages, a preview when the keys rest, a search when the typing does.
 */
#ifndef CLI_TUI_H
#define CLI_TUI_H

#include "find.h"
#include "hit.h"
#include "tree_rows.h"
#include "tui_draw.h"

typedef struct tui tui;

/* ---- What keys do ------------------------------------------------------ */

typedef enum action {
	ACT_NONE,
	ACT_UP,
	ACT_DOWN,
	ACT_PAGE_UP,
	ACT_PAGE_DOWN,
	ACT_HALF_UP,
	ACT_HALF_DOWN,
	ACT_TOP,
	ACT_BOTTOM,
	ACT_OPEN,
	ACT_TREE,
	ACT_PROJECTS,
	ACT_PREVIEW,
	ACT_SEARCH,
	ACT_NEXT_HIT,
	ACT_PREVIOUS_HIT,
	ACT_FOLD,
	ACT_FOLD_ALL,
	ACT_NEXT_ENTRY,
	ACT_PREVIOUS_ENTRY,
	ACT_NEXT_USER,
	ACT_PREVIOUS_USER,
	ACT_COPY,
	ACT_COPY_SESSION,
	ACT_RELOAD,
	ACT_REDRAW,
	ACT_HELP,
	ACT_BACK,
	ACT_QUIT
} action;

/* What the screen shows. */
enum {
	SHOW_LIST,
	SHOW_PROJECTS,
	SHOW_HITS,
	SHOW_TRANSCRIPT,
	SHOW_TREE,
	SHOW_HELP,
	SHOW_COUNT
};

action tui_action(int shown, int key);
/* The keys to know on this screen, in one line. */
void tui_hint(int shown, buf *out);

/* A row that is chosen among many, and the first that is shown. */
typedef struct choice {
	size_t at;
	size_t top;
} choice;

/* Moves it; false if the action is another. */
bool choice_act(choice *c, action what, size_t count, int rows);
/* Brings it into view. */
void choice_show(choice *c, size_t count, int rows);

/* ---- The sessions ------------------------------------------------------ */

typedef struct sessions {
	sheaf_list **pages;
	size_t page_count;
	size_t page_room;
	size_t count;           /* of sessions that were read */
	bool whole;             /* there are no more */
	char project[PATH_MAX]; /* only of this directory; "" = all */
	choice chosen;
	int rows; /* that the list has on the screen */
} sessions;

/* The session in this row; NULL if there is none. */
const sheaf_session_info *sessions_at(const sessions *s, size_t row);
void sessions_done(sessions *s);

typedef struct preview {
	buf of; /* the key that it is of */
	uint64_t revision;
	size_t columns;
	lines text;
	bool due; /* another is chosen, and the keys do not rest yet */
	bool hidden;
} preview;

void preview_load(tui *t, size_t columns);
bool preview_is_of(const preview *p, const sheaf_session_info *info, size_t columns);
void preview_done(preview *p);

typedef struct project {
	sheaf_str directory;
	uint64_t sessions;
	int64_t modified_us;
} project;

typedef struct projects {
	arena *memory;
	project *items; /* by their newest session */
	size_t count;
	size_t room;
	choice chosen;
	int rows;
} projects;

void projects_done(projects *p);

/* ---- What was said ----------------------------------------------------- */

typedef struct searching {
	sheaf_search *index; /* opened by the first search */
	sheaf_hits *hits;
	buf text;    /* as it was typed */
	bool typing; /* keys are text */
	bool due;    /* the text has changed since the hits */
	choice chosen;
	int rows;
	char progress[80]; /* while the index is made */
} searching;

void searching_done(searching *s);
void search_begin(tui *t);
/* A key while the text is typed. */
void search_key(tui *t, int key);
void search_run(tui *t);
/* Opens the hit that is so many after the chosen one. */
void search_open(tui *t, int step);
/* Appends a line with the words that were searched for brought out; how many bytes they are. */
size_t search_mark(const tui *t, sheaf_str styled_text, buf *out);

/* ---- A conversation ---------------------------------------------------- */

/* Entries from a leaf to the root, 0 being the leaf; read from there as far as was asked for. */
typedef struct path {
	uint64_t *seqs;
	size_t count;
	size_t room;
	uint64_t next; /* the number before the last of them; 0: they are all here */
	bool any;      /* it was not said which: the next one there is */
	size_t page;
} path;

void path_begin(path *p, uint64_t leaf_seq);
void path_done(path *p);
/* Whether there is an entry `i`. Reads on if need be; without one and with an error in `err`. */
bool path_has(path *p, sheaf_session *session, size_t i, sheaf_error *err);
/* The place of a number in it; reads on as far as that. */
bool path_find(path *p, sheaf_session *session, uint64_t seq, size_t *out, sheaf_error *err);
/* Calls `take` for the entries from `first` (the older) to `last`. 0 or an error. */
typedef void (*path_take_fn)(void *ctx, size_t i, const sheaf_entry *entry);
int path_read(const path *p, sheaf_session *session, size_t first, size_t last, path_take_fn take,
              void *ctx, sheaf_error *err);

/* An entry as it is shown. */
typedef struct passage {
	bool there;
	bool user; /* a person said it */
	size_t i;
	lines text;
	char id[SHEAF_ID_ROOM];
} passage;

/* A line of it. */
typedef struct spot {
	size_t i;
	size_t line;
} spot;

#define PASSAGES 256u

typedef struct transcript {
	sheaf_session *session; /* NULL: none was opened */
	sheaf_head_view *head;
	sheaf_records *labels;
	path path;
	view view;
	passage passages[PASSAGES]; /* the last that were looked at, each where its number falls */
	map turned;                 /* numbers of those that are folded otherwise than the rest */
	arena *turned_keys;
	bool unfolded;
	bool found;     /* opened by a search: what was looked for is brought out */
	size_t columns; /* that the passages were made for */
	spot at;
	spot top;
	int rows;
} transcript;

void transcript_done(transcript *r);
/* Opens a session at an entry (0: at its end). False with an error on the status line. */
bool transcript_open(tui *t, const sheaf_key *key, uint64_t seq);
/* The entry it was opened at is a hit: unfolds it and goes to where it says what was looked for. */
void transcript_found(tui *t);
/* Goes to an entry on the path that ends at `leaf_seq`. */
bool transcript_go(tui *t, uint64_t leaf_seq, uint64_t seq);
/* The number of the entry that the reader is at; 0 if there is none. */
uint64_t transcript_seq(const tui *t);

typedef struct treeing {
	sheaf_tree *tree;
	tree_rows rows;
	choice chosen;
	int height;
} treeing;

void treeing_done(treeing *g);
/* The tree of the session that is open. False with an error on the status line. */
bool tree_open(tui *t);

/* ---- The whole --------------------------------------------------------- */

struct tui {
	cli *c;
	cli page; /* what drawing goes by: a width, always styles */
	int shown[SHOW_COUNT];
	size_t depth; /* of `shown`: the last is on the screen */
	char status[512];
	bool bad; /* the status is an error */
	bool quit;
	sessions sessions;
	preview preview;
	projects projects;
	searching search;
	transcript transcript;
	treeing tree;
	choice help;
	int help_rows;
};

/* Shows a screen above the others, or takes it from among them. */
void tui_show(tui *t, int which);
void tui_leave(tui *t, int which);
int tui_shown(const tui *t);

void tui_say(tui *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tui_fail(tui *t, const sheaf_error *err);
/* Copies an id to the clipboard if it is one that nobody can be tricked with. */
void tui_copy(tui *t, const char *what, sheaf_str id);
/* Draws while something takes long; true if it shall stop. */
bool tui_wait(tui *t, const char *what);

/* One for each screen: drawn in an area, and what keys do on it. */
void list_draw(tui *t, area in);
void list_act(tui *t, action what);
bool list_load(tui *t);
void list_again(tui *t);
void projects_draw(tui *t, area in);
void projects_act(tui *t, action what);
bool projects_load(tui *t);
void hits_draw(tui *t, area in);
void hits_act(tui *t, action what);
void transcript_draw(tui *t, area in);
void transcript_act(tui *t, action what);
void tree_draw(tui *t, area in);
void tree_act(tui *t, action what);
void help_draw(tui *t, area in);
void help_act(tui *t, action what);

/* What stands at the right of the status line of each. */
void list_where(const tui *t, buf *out);
void projects_where(const tui *t, buf *out);
void hits_where(const tui *t, buf *out);
void transcript_where(const tui *t, buf *out);
void tree_where(const tui *t, buf *out);

#endif
