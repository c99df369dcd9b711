/*
 * Compaction: need, plan, apply, undo.
 *
 * A compaction puts a summary in the place of what lies before a cut. Nothing
 * is deleted, and it can be undone. Two calls with the caller's model between
 * them, or one with the model as a callback; no lock is held while it thinks.
 *
 *     rc = sheaf_compaction_plan(&plan, session, &how, &err);
 *     summary = ask_the_model(plan->prompt);
 *     rc = sheaf_compaction_apply(session, plan, summary, NULL, &err);
 *     sheaf_cut_free(plan);
 */
#ifndef SHEAF_COMPACTION_H
#define SHEAF_COMPACTION_H

#include "context.h"
#include "usage.h"

SHEAF_BEGIN

/** Counts the tokens of an item, which lives only during the call, in place of the estimate. Must be
 * a pure function; it is called again when a plan is applied. */
typedef uint64_t (*sheaf_tokens_fn)(void *ctx, const sheaf_item *item);

typedef struct sheaf_compaction_options {
	size_t size;      /* sizeof(sheaf_compaction_options) */
	sheaf_str branch; /* empty = "main" */
	uint64_t window; /* tokens the model takes; 0 = the model's (sheaf/usage.h), else 200,000 */
	uint32_t threshold_percent; /* of the window; 0 = 80 */
	uint32_t reserved0;
	uint64_t reserve;      /* tokens that must stay free; 0 = min(16,384, window / 8) */
	uint64_t keep_recent;  /* tokens to keep as they are; 0 = none;
	                          SHEAF_KEEP_DEFAULT = min(20,000, window / 4) */
	uint64_t extra_tokens; /* of what is sent besides the context: system text, tools */
	size_t bytes_max;    /* a context of more bytes needs compacting, too; 0 = no such bound */
	size_t output_bytes; /* of one tool result in the prompt; 0 = 2,000 */
	sheaf_str provider;  /* whose window is meant; {NULL,0} = as the path says */
	sheaf_str model;
	sheaf_str instructions; /* added to the prompt: what to look after, or {NULL,0} */
	sheaf_str trigger;      /* recorded: "manual" if empty */
	sheaf_tokens_fn tokens;
	void *tokens_ctx;           /* must live as long as a plan made with it */
	const sheaf_models *models; /* where windows are looked up; NULL = the built-in table */
} sheaf_compaction_options;

#define SHEAF_KEEP_DEFAULT UINT64_MAX

/* clang-format off */
#define SHEAF_COMPACTION_OPTIONS_INIT                                                              \
	{sizeof(sheaf_compaction_options), {0, 0}, 0, 0, 0, 0, SHEAF_KEEP_DEFAULT, 0, 0, 0,        \
	 {0, 0}, {0, 0}, {0, 0}, {0, 0}, 0, 0, 0}
/* clang-format on */

/** How full a window is. */
typedef struct sheaf_fill {
	uint64_t tokens;  /* of the context, and of what is sent besides */
	uint64_t counted; /* of these, said by the provider; the rest is estimated */
	uint64_t window;
	uint64_t limit; /* where compaction is due */
	size_t bytes;
	int32_t needed;  /* 1: compact now */
	int32_t unknown; /* 1: right after a compaction, all of it is estimated */
} sheaf_fill;

/**
 * How full the window is. The usage of the last finished reply (input, cache
 * and output) counts for everything up to it, system text and tools included;
 * what came after is estimated. A reply that is older than the deciding
 * compaction, or ended in "error" or "aborted", does not count.
 * @return 0; SHEAF_INVALID (options), and as sheaf_session_context(), but never SHEAF_TOO_LARGE
 */
SHEAF_API int sheaf_compaction_need(sheaf_fill *out, sheaf_session *session,
                                    const sheaf_compaction_options *options, sheaf_error *err);

/** The estimate for one item: bytes / 4 of its texts, of a call its name and input; 1,200 for an
 * image, for a document by its size. */
SHEAF_API uint64_t sheaf_item_tokens(const sheaf_item *item);

/** A plan. Read-only; one free. */
typedef struct sheaf_cut {
	sheaf_str leaf;       /* it was made for */
	sheaf_str first_kept; /* entry id; empty = nothing is kept */
	int32_t split;        /* the cut lies inside a turn */
	int32_t reserved0;
	size_t covered_count;     /* messages the summary stands for … */
	const sheaf_str *covered; /* … and the ids of their entries, oldest first */
	size_t kept_count;        /* items that stay */
	uint64_t tokens_before;
	uint64_t tokens_kept;
	sheaf_str prompt; /* the whole request to a summarising model, as text */
	sheaf_str trigger;
} sheaf_cut;

/**
 * Looks for the newest safe cut that keeps about keep_recent tokens (half of
 * that to twice that), and writes the prompt from the original messages, also
 * those that an earlier compaction kept. Safe is a cut before a user's message,
 * before a reply without calls, and before an entry that is no message; failing
 * that it is made before a reply whose calls are answered behind it; failing
 * that nothing is kept. It never parts a call from its answer. The prompt has
 * room in the window: the longest texts are shortened first. Costs O(context).
 * Caller frees.
 *
 * A call is open while it has no answer; once the user has spoken after it and
 * a model has replied, it counts as given up.
 * @return 0; SHEAF_COMPACT with the reason: there is nothing to compact, or a tool call is open;
 *         SHEAF_INVALID (options); and as sheaf_session_context(), but never SHEAF_TOO_LARGE
 */
SHEAF_API int sheaf_compaction_plan(sheaf_cut **out, sheaf_session *session,
                                    const sheaf_compaction_options *options, sheaf_error *err);
SHEAF_API void sheaf_cut_free(const sheaf_cut *plan);

/**
 * Appends the compaction at the present leaf; what was appended since the plan
 * is kept whole. tokens_before and tokens_after, the trigger, and the model and
 * thinking level in force are recorded with it. Applying a plan again with the
 * same summary answers 0 with `existed`.
 * @return as an append; SHEAF_STALE: the plan's leaf is off the path, or another compaction
 *         decides by now: plan again; SHEAF_COMPACT: a call before the cut was answered behind it
 *         meanwhile, or the context would not be smaller; SHEAF_INVALID: the summary is empty
 */
SHEAF_API int sheaf_compaction_apply(sheaf_session *session, const sheaf_cut *plan,
                                     sheaf_str summary, sheaf_appended *out, sheaf_error *err);

/**
 * Undoes the compaction that decides on a branch (empty = "main"): the context
 * is again what it was without it, and what came after it stays. One entry is
 * appended, with the trigger "undo"; nothing is deleted, and compacting again is
 * possible. Undoing that entry brings the compaction back.
 * @return as an append; SHEAF_NOT_FOUND: no compaction decides; SHEAF_COMPACT: an older one decided
 *         before, whose messages stand in the record itself (`replacement`)
 */
SHEAF_API int sheaf_compaction_undo(sheaf_session *session, sheaf_str branch, sheaf_appended *out,
                                    sheaf_error *err);

/** Takes a summary, piece by piece. */
typedef struct sheaf_summary_sink sheaf_summary_sink;
/** @return 0, SHEAF_TOO_LARGE or SHEAF_NOMEM; the compaction then fails with that code */
SHEAF_API int sheaf_summary_add(sheaf_summary_sink *out, sheaf_str text);

/* For who calls a sheaf_summarise_fn himself: a sink of his own, what it has taken (owned by it). */
SHEAF_API sheaf_summary_sink *sheaf_summary_sink_new(void); /* NULL when out of memory */
SHEAF_API sheaf_str sheaf_summary_sink_text(const sheaf_summary_sink *sink);
SHEAF_API void sheaf_summary_sink_free(sheaf_summary_sink *sink);

/** Answers `plan->prompt` with a summary. Anything but 0 ends the compaction with that code. */
typedef int (*sheaf_summarise_fn)(void *ctx, const sheaf_cut *plan, sheaf_summary_sink *out,
                                  sheaf_error *err);

/** Plan, summarise and apply in one call. No lock is held while `summarise` runs.
 * @return as the three */
SHEAF_API int sheaf_compact(sheaf_session *session, const sheaf_compaction_options *options,
                            sheaf_summarise_fn summarise, void *ctx, sheaf_appended *out,
                            sheaf_error *err);

SHEAF_END
#endif
