/* What the files that need, plan, apply and undo compactions share. */
#ifndef CORE_COMPACTION_INSIDE_H
#define CORE_COMPACTION_INSIDE_H

#include "base/buf.h"
#include "core/context.h"
#include "sheaf/compaction.h"

/*
 * A compaction is checked against one leaf and stored only on that leaf. When
 * others append meanwhile it is checked again, this often.
 */
#define COMPACTION_TRIES 16

/* ---- The record ---------------------------------------------------------- */

/* What a compaction's payload says. */
typedef struct compaction_body {
	sheaf_str summary;
	sheaf_str first_kept; /* {NULL,0}: nothing is kept, or `kept_ids` */
	const sheaf_str *kept_ids;
	size_t kept_count;
	bool chooses; /* kept_ids, be they none */
	bool counted; /* tokens_before is known … */
	bool shrunk;  /* … and tokens_after, too */
	uint64_t tokens_before;
	uint64_t tokens_after;
	sheaf_str trigger;
	settings settings;
} compaction_body;

void compaction_write(buf *out, const compaction_body *c);

/* ---- Tokens -------------------------------------------------------------- */

/* The caller's options with their defaults filled in. Strings are the caller's. */
typedef struct compaction_rules {
	sheaf_str branch;
	uint64_t window;
	uint64_t limit;   /* where compaction is due */
	uint64_t reserve; /* tokens that must stay free */
	uint64_t keep;    /* tokens to keep as they are */
	uint64_t extra;
	size_t bytes_max; /* SIZE_MAX: no such bound */
	size_t output_bytes;
	sheaf_str instructions;
	sheaf_str trigger;
	sheaf_tokens_fn tokens;
	void *tokens_ctx;
} compaction_rules;

/* `in_force` are the settings of the path, for a model that was not given. SHEAF_INVALID. */
int rules_make(compaction_rules *out, const sheaf_compaction_options *options,
               const settings *in_force, sheaf_error *err);

uint64_t rules_tokens(const compaction_rules *rules, const sheaf_item *item);

/* What the provider counted for a reply and all before it; 0 if it is none, or came to no end. */
uint64_t reply_tokens(const sheaf_item *item);

/* ---- Pieces -------------------------------------------------------------- */

/*
 * Something that was said, as the request to a summarising model shows it. Of
 * a text that is too long the middle is missing: it is `len` bytes long, of
 * which `head` and `tail` are kept. All of it if `tail` has no ptr.
 */
typedef struct piece {
	const char *what;
	sheaf_str name; /* of a tool, a media type; behind `what` */
	sheaf_str head;
	sheaf_str tail;
	size_t len;
	size_t most; /* of the text at most, whatever the window */
} piece;

typedef struct pieces {
	piece *items;
	size_t count, room;
	size_t counted; /* from this one on they are in the prompt, whatever the cut … */
	size_t bytes;   /* … and so much of them was kept since the level was set */
	size_t level;   /* no text will be longer: more of them never raise it */
} pieces;

/* ---- Outlines ------------------------------------------------------------ */

/* How good a place for a cut is. */
typedef enum cut_place {
	CUT_NEVER, /* before an answer, or inside what a compaction gave */
	CUT_SPLIT, /* before a reply with calls */
	CUT_SAFE
} cut_place;

/* One item of a context and the place before it. */
typedef struct step {
	sheaf_str id;   /* of its entry */
	sheaf_str from; /* of the entry that a cut here names as the first kept one */
	cut_place place;
	bool asks;    /* a user's message: with it a turn begins */
	bool replies; /* an assistant's */
	bool kept;    /* it lies before the compaction that decides */
	bool parted;  /* a cut here would part a call from its answer, or leave an open call */
	bool doubled; /* it answers what was answered already: a context leaves that out */
	uint64_t seq;
	uint64_t tokens;
	size_t bytes;
	size_t mark, mark_count;   /* its calls and answers */
	size_t piece, piece_count; /* its texts */
} step;

/* A tool call or an answer. */
typedef struct call_mark {
	sheaf_str id;
	sheaf_str name; /* call: the tool */
	size_t at;      /* its step */
	size_t piece;   /* SIZE_MAX: there is none */
	size_t below;   /* call: the next older open one with this id */
	bool call;
	bool open;
} call_mark;

/*
 * A context as far as a compaction must know it: of every item what kind it is
 * and how long, of every text no more than the prompt can show. So it has room
 * in memory, however long the history.
 */
typedef struct outline {
	const sheaf_compaction_options *options;
	compaction_rules rules;
	bool texts; /* collect pieces */
	arena *arena;
	arena *ids; /* for ids that are to outlive the rest; NULL: the same */
	context_scan scan;
	bool model_known;
	step *steps; /* in the order of the path */
	size_t count, room;
	size_t given;   /* how many of them a compaction gave */
	size_t low;     /* the first place where a cut leaves anything out */
	bool parted;    /* the same as step.parted for the place after the last */
	sheaf_str open; /* an open call, {NULL,0} if there is none */
	call_mark *marks;
	size_t mark_count, mark_room;
	pieces pieces;
	uint64_t tokens;    /* of all steps */
	uint64_t counted;   /* by the provider, up to the last reply … */
	uint64_t estimated; /* … and for what came after it */
	size_t bytes;
	/* entries that are looked for, by id */
	sheaf_str leaf, cut;
	char newer[SHEAF_ID_ROOM]; /* the entry met before this one */
	char after_leaf[SHEAF_ID_ROOM];
	char first_after[SHEAF_ID_ROOM]; /* the first entry after the compaction */
	size_t steps_at_leaf;            /* how many steps are newer; SIZE_MAX: it was not met */
	size_t steps_at_cut;
} outline;

/* Everything is in `a` and `o->ids`, which must outlive it. */
int outline_make(outline *out, sheaf_session *session, const sheaf_head *head, uint64_t leaf_seq,
                 const sheaf_compaction_options *options, arena *a, sheaf_error *err);
void outline_free(outline *o);

void outline_fill(sheaf_fill *out, const outline *o);

/* What an item says, as pieces; called with the newest item first. SHEAF_NOMEM. */
int pieces_take(outline *o, const sheaf_item *item);

/* ---- The plan ------------------------------------------------------------ */

typedef struct cut_box {
	sheaf_cut cut; /* first: the caller's pointer is also this struct's */
	arena *arena;
	sheaf_compaction_options options; /* with strings of its own */
	sheaf_str id;                     /* of the compaction that apply will append */
	uint64_t previous_seq;            /* of the compaction that decided, 0 if none did */
} cut_box;

/* The request to a summarising model: the first `cut` steps; what stays begins at `cut`. */
int prompt_write(sheaf_str *out, outline *o, size_t cut, bool split, sheaf_str leaf, arena *a,
                 sheaf_error *err);

/* The branch's leaf: 0 before the first entry. SHEAF_NOT_FOUND. */
int compaction_leaf(const sheaf_head *head, sheaf_str branch, head_branch *out, sheaf_error *err);

#endif
