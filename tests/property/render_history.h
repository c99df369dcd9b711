/*
 * Random conversations for the tests of rendering: made in a session, and
 * remembered apart from it.
 *
 * A history is a list of steps. Each has a salt that decides what it does, so
 * that leaving others out changes it little, and a seed says all. Whatever is
 * said bears a mark, a number found nowhere else: #t12# in texts, calls,
 * results and thinking, aW1n00000012 as the data of images. What became of a
 * part is seen by looking for its mark.
 */
#ifndef PROPERTY_RENDER_HISTORY_H
#define PROPERTY_RENDER_HISTORY_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "sheaf/context.h"
#include "sheaf/render.h"

#define STEPS_MAX 40
#define PARTS_MAX 6
#define INNER_MAX 3
#define KEPT_MAX 4
#define ENTRIES_MAX 128
#define MARKS_MAX 2048
#define NONE SIZE_MAX

/* ---- Chance ---------------------------------------------------------------- */

typedef struct chance {
	uint64_t state;
} chance;

uint64_t chance_next(chance *c);
size_t chance_below(chance *c, size_t n); /* 0 .. n-1 */
bool chance_percent(chance *c, unsigned percent);

/* ---- What was said --------------------------------------------------------- */

typedef enum part_kind {
	PART_TEXT,
	PART_EMPTY, /* a text of nothing */
	PART_BLANK, /* a text of white space */
	PART_THINKING,
	PART_IMAGE,
	PART_DOCUMENT,
	PART_CALL,
	PART_RESULT,
	PART_OPAQUE,
	PART_OTHER /* of a type nobody knows */
} part_kind;

/* A part inside a result: text, empty, blank, image or document. */
typedef struct inner {
	part_kind kind;
	unsigned mark;
	bool common;   /* an image every format takes */
	uint8_t blank; /* which white space */
} inner;

typedef struct part {
	part_kind kind;
	unsigned mark;    /* 0: nothing to look for */
	bool is_signed;   /* thinking; text and calls may be, too */
	bool redacted;    /* thinking: the mark is in its signature */
	bool common;      /* an image every format takes */
	uint8_t blank;    /* which white space */
	bool object;      /* call: its input is an object */
	int32_t format;   /* opaque: whose */
	bool misplaced;   /* opaque: of a kind that belongs to another role */
	const char *id;   /* call, result */
	const char *name; /* call */
	bool ext;         /* has members that one format knows */
	bool listed;      /* result: made of parts */
	inner inner[INNER_MAX];
	size_t inner_count;
} part;

typedef struct maker_name {
	const char *provider;
	const char *model;
} maker_name;

typedef struct said {
	const char *role;
	const maker_name *maker; /* NULL: not recorded */
	const char *origin;      /* the format it was imported from, or NULL */
	part parts[PARTS_MAX];
	size_t count;
	unsigned command; /* bashExecution: the mark of its command, beside the parts */
	bool excluded;    /* bashExecution: not to be shown */
} said;

/* ---- Entries --------------------------------------------------------------- */

typedef enum entry_kind {
	ENTRY_MESSAGE,
	ENTRY_COMPACTION,
	ENTRY_SUMMARY, /* of a branch */
	ENTRY_CUSTOM,  /* with a text for the model */
	ENTRY_SILENT   /* model change, thinking level, custom data */
} entry_kind;

typedef enum cut_kind {
	CUT_ALL,
	CUT_FIRST_KEPT,
	CUT_REPLACEMENT,
	CUT_KEPT_IDS
} cut_kind;

typedef struct entry {
	entry_kind kind;
	char id[SHEAF_ID_ROOM];
	uint64_t seq;
	size_t parent; /* NONE: a root */
	said *said;    /* message: one; compaction: the replacement */
	size_t said_count;
	unsigned mark; /* of a summary or a custom text */
	cut_kind cut;
	const char *kept[KEPT_MAX]; /* ids */
	size_t kept_count;
} entry;

/* A record that is no entry, but whose id a compaction may name. */
typedef struct fact {
	char id[SHEAF_ID_ROOM];
	uint64_t seq;
} fact;

/* ---- Histories ------------------------------------------------------------- */

typedef struct act {
	uint8_t kind; /* STEP_* in render_history.c */
	uint64_t salt;
} act;

typedef struct history {
	arena *arena;
	sheaf_session *session;
	sheaf_store *store;
	entry entries[ENTRIES_MAX];
	size_t count;
	fact facts[ENTRIES_MAX];
	size_t fact_count;
	size_t leaf; /* of main; NONE before the first */
	unsigned marks;
	unsigned names; /* how many ids were given */
	bool long_results;
	sheaf_error err;
} history;

/* The steps that a seed stands for. */
size_t steps_make(act *steps, uint64_t seed);
const char *step_name(const act *s);

/* A new session in the store; steps; the end. */
int history_open(history *h, sheaf_store *store, const char *name);
int history_step(history *h, const act *s);
void history_close(history *h);

/* A plain turn: the user, perhaps a call and its answer, the assistant. */
int history_turn(history *h, uint64_t salt);

/* For a new line in a report: everything that is in the log. */
void history_print(const history *h);

#endif
