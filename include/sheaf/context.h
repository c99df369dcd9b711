/*
 * The context: what a model must see.
 *
 * A pure function of the path and the options: the path from the leaf to the
 * root, resolved through the newest compaction on it, with tool calls and
 * answers mended so that every call is answered exactly once, next to it. The
 * log never changes. Same log, same options, same bytes.
 */
#ifndef SHEAF_CONTEXT_H
#define SHEAF_CONTEXT_H

#include "session.h"

SHEAF_BEGIN

typedef struct sheaf_context_options {
	size_t size;      /* sizeof(sheaf_context_options) */
	sheaf_str branch; /* empty = "main" */
	sheaf_str leaf;   /* as of this entry (id or label); {NULL,0} = the branch's leaf;
	                     empty = before the first entry */
	sheaf_str agent;  /* what this agent may see; {NULL,0} = everything */
	sheaf_str
		provider; /* who will read it; {NULL,0}: orphan answers become text, thinking stays */
	sheaf_str model;
	int32_t without_compaction; /* as if nothing had ever been compacted */
	sheaf_str without;          /* ignore this one compaction: the next older decides */
	int32_t allow_damage;       /* go on past records that cannot be read, and list them */
	size_t bytes_max;           /* 0 = SHEAF_CONTEXT_BYTES_DEFAULT */
} sheaf_context_options;

/* clang-format off */
#define SHEAF_CONTEXT_OPTIONS_INIT \
	{sizeof(sheaf_context_options), {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, 0, {0, 0}, 0, \
	 0}
/* clang-format on */

/** What an item stands for. */
enum {
	SHEAF_ITEM_MESSAGE = 1,            /* a message; `message` is what to send */
	SHEAF_ITEM_COMPACTION_SUMMARY = 2, /* `text`; role compactionSummary */
	SHEAF_ITEM_BRANCH_SUMMARY = 3,     /* `text`; role branchSummary */
	SHEAF_ITEM_CUSTOM = 4              /* in-context custom; `text`, as user */
};

typedef struct sheaf_item {
	int32_t kind;
	int32_t synthetic;        /* made here, from the call alone: no entry behind it */
	const sheaf_entry *entry; /* NULL if synthetic, and for a compaction's replacement messages
	                             the compaction */
	const sheaf_message_view *message; /* never NULL; summaries and customs as one text */
	sheaf_str text;
} sheaf_item;

/** What was mended, or worth knowing. */
enum {
	SHEAF_NOTE_INTERRUPTED = 1, /* a call without an answer: one was made up */
	SHEAF_NOTE_LATE_ANSWER = 2, /* an answer moved next to its call */
	SHEAF_NOTE_ORPHAN_ANSWER =
		3, /* an answer without a call became user text, or was left out */
	SHEAF_NOTE_SECOND_ANSWER = 4, /* a call answered twice: the later answer was left out */
	SHEAF_NOTE_EMPTY_TEXT = 5,    /* a text part of nothing was left out */
	SHEAF_NOTE_FOREIGN_THINKING =
		6, /* signed thinking of another provider or model was left out */
	SHEAF_NOTE_FIRST_KEPT =
		7,             /* a compaction's first kept entry is not on the path: all is kept */
	SHEAF_NOTE_DAMAGE = 8, /* a record could not be read; `seq`, 0 if not even that is known */
	/* Only of renderings (sheaf/render.h): */
	SHEAF_NOTE_OPENING = 16,      /* a user's line was put before the first message */
	SHEAF_NOTE_FOREIGN_PART = 17, /* a part only another format understands was left out */
	SHEAF_NOTE_ROLE = 18,         /* a system or developer message was sent as user text */
	SHEAF_NOTE_MOVED = 19,        /* an image of a tool result was sent after it */
	SHEAF_NOTE_ELIDED = 20,       /* an image or the middle of a tool result was left out */
	SHEAF_NOTE_RENAMED = 21,      /* a call's id or a tool's name is spelled otherwise */
	SHEAF_NOTE_INPUT = 22,        /* a call's input was wrapped into an object */
	SHEAF_NOTE_TOOLS = 23, /* no tools were given: the first that is called was declared */
	SHEAF_NOTE_THINKING_OFF = 24, /* thinking was not asked for: the last reply has none */
	SHEAF_NOTE_PREFILL = 25,      /* the last message is the assistant's: it will go on there */
	SHEAF_NOTE_STAND_IN = 26,     /* a line of text stands for what the format cannot hold */
	SHEAF_NOTE_THINKING_TEXT = 27 /* thinking was sent as text */
};

/** "interrupted", "late_answer", …; "note" for a number that is none. */
SHEAF_API const char *sheaf_note_name(int32_t what);
/** The same as a sentence for people. */
SHEAF_API const char *sheaf_note_text(int32_t what);

typedef struct sheaf_note {
	int32_t what;
	int32_t reserved0;
	uint64_t seq;
	sheaf_str entry_id;
	sheaf_str detail; /* a call id or a sentence */
} sheaf_note;

typedef struct sheaf_context {
	size_t count;
	const sheaf_item *const *items;
	size_t note_count;
	const sheaf_note *const *notes;
	sheaf_str leaf; /* {NULL,0} before the first entry */
	uint64_t revision;
	const sheaf_entry *compaction; /* the one that decided, or NULL */
	sheaf_str provider; /* the settings in force, from the path; {NULL,0} if never set */
	sheaf_str model;
	sheaf_str thinking_level;
	uint64_t prefix_hash; /* of all items: equal for equal contexts */
	size_t bytes;         /* of the records it was made from */
} sheaf_context;

/**
 * Builds the context. Costs O(what it returns): reading stops where the newest
 * compaction lets it. Caller frees.
 * @return 0; SHEAF_NOT_FOUND (leaf, branch or `without`), SHEAF_DAMAGED,
 *         SHEAF_TOO_LARGE (compact the session), SHEAF_STORAGE, SHEAF_NOMEM
 */
SHEAF_API int sheaf_session_context(sheaf_context **out, sheaf_session *session,
                                    const sheaf_context_options *options, sheaf_error *err);
SHEAF_API void sheaf_context_free(const sheaf_context *context);

/** The hash of the first `count` items: equal to an earlier context's prefix_hash if that one's
 * items still stand unchanged at the front. */
SHEAF_API uint64_t sheaf_context_prefix(const sheaf_context *context, size_t count);

SHEAF_END
#endif
