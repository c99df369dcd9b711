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

/* Tokens of many items as they will be sent: after mending. */
int rules_tokens_mended(const compaction_rules *rules, const sheaf_item *const *items, size_t count,
                        arena *a, uint64_t *out, sheaf_error *err);

void fill_make(sheaf_fill *out, const compaction_rules *rules, const context_raw *raw);

/* The branch's leaf: 0 before the first entry. SHEAF_NOT_FOUND. */
int compaction_leaf(const sheaf_head *head, sheaf_str branch, head_branch *out, sheaf_error *err);

/* ---- Cuts ---------------------------------------------------------------- */

/* How good a place for a cut is. */
typedef enum cut_place {
	CUT_NEVER, /* before an answer, or inside what a compaction gave */
	CUT_SPLIT, /* before a reply with calls */
	CUT_SAFE
} cut_place;

/* One item of a context and the place before it. */
typedef struct step {
	const sheaf_item *item;
	sheaf_str id; /* of the entry that a cut here names as the first kept one */
	cut_place place;
	bool asks;    /* a user's message: with it a turn begins */
	bool replies; /* an assistant's */
	bool parted;  /* a cut here would part a call from its answer, or leave an open call */
	uint64_t seq; /* of its entry */
	uint64_t tokens;
	size_t bytes;
} step;

typedef struct steps {
	step *items;
	size_t count;
	size_t low;     /* the first place where a cut leaves anything out */
	bool parted;    /* the same as step.parted for the place after the last */
	sheaf_str open; /* an open call, {NULL,0} if there is none */
} steps;

/* All in `a`. `rules` NULL: tokens are not counted. */
int steps_make(steps *out, const context_raw *raw, const compaction_rules *rules, arena *a,
               sheaf_error *err);

/* ---- The plan ------------------------------------------------------------ */

typedef struct cut_box {
	sheaf_cut cut; /* first: the caller's pointer is also this struct's */
	arena *arena;
	compaction_rules rules;
	sheaf_str id;          /* of the compaction that apply will append */
	uint64_t previous_seq; /* of the compaction that decided, 0 if none did */
} cut_box;

/* The request to a summarising model: the first `cut` steps; what stays begins at `cut`. */
int prompt_write(sheaf_str *out, const steps *all, size_t cut, bool split, sheaf_str leaf,
                 sheaf_str previous, const compaction_rules *rules, arena *a, sheaf_error *err);

#endif
