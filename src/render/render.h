/*
 * What all formats share: the options with their defaults filled in, and a
 * context as a list of plain messages whose blocks every format can write.
 *
 * blocks.c makes that list. It has settled what does not depend on how a format
 * spells things: the wording of the roles no provider knows, whose thinking and
 * opaque parts go back, ids and names a format takes, inputs that are objects.
 * A format's file only writes, in order, and never looks at an entry.
 */
#ifndef RENDER_RENDER_H
#define RENDER_RENDER_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "sheaf/render.h"

typedef enum block_role {
	ROLE_USER,
	ROLE_ASSISTANT,
	ROLE_TOOL, /* nothing but results, the answers to the message before */
	ROLE_SYSTEM,
	ROLE_DEVELOPER
} block_role;

/* One block. Strings not named in a kind's line are zero. */
typedef struct block {
	int32_t kind;              /* SHEAF_PART_*, never OTHER */
	bool error;                /* result: the tool failed */
	bool said_error;           /* result: is_error was recorded (true or false) */
	const sheaf_part *part;    /* where it comes from; NULL for what was made here */
	sheaf_str text;            /* text; thinking; result of one text */
	sheaf_str signature;       /* text, thinking, call: set only if the target made it */
	sheaf_str id;              /* call, result: as the format takes it, unique among calls */
	sheaf_str name;            /* call, result: the tool, as the format takes it */
	sheaf_str input;           /* call: JSON; an object if the format needs one */
	sheaf_str ext;             /* members only the target's format knows, without braces: see
	                            "ext" in docs/format.md; {NULL,0} unless the target made it */
	const struct block *parts; /* result made of parts: text, image, document only */
	size_t part_count;
} block;

/* One message; blocks of consecutive messages may be joined by a format. Never empty. */
typedef struct message {
	block_role role;
	bool own; /* assistant: made by the provider and model that will read it */
	const block *blocks;
	size_t count;
	const sheaf_item *item; /* NULL for one that was made here */
} message;

/* A rule set: what a format can take. One const row for each. */
typedef struct format_rules {
	const char *name;
	const char *provider;
	const char *path;
	bool input_object;    /* a call's input must be an object */
	bool has_system;      /* `system` and `developer` messages inside the list … */
	bool has_developer;   /* … else they become user text */
	bool has_thinking;    /* thinking can go back; else it is left out (or text) */
	bool opens_with_user; /* the list must begin with a user message */
	bool tools_required;  /* tools must be declared if there are calls */
	bool result_parts;    /* results may hold images */
	size_t id_max;        /* longest id of a call; its characters are [A-Za-z0-9_-] */
	size_t name_max;      /* the same for a tool's name */
} format_rules;

extern const format_rules *rules_of(int32_t format); /* NULL if there is none */

/* A rendering in progress. */
typedef struct rendering {
	const sheaf_context *context;
	sheaf_render_options o; /* whole, defaults filled in: model, provider, ttls, max_tokens … */
	const format_rules *rules;
	arena *arena;
	const message *messages;
	size_t message_count;
	const sheaf_tool *tools; /* given, or made from the calls where tools_required */
	size_t tool_count;
	sheaf_note **notes;
	size_t note_count, note_room;
	sheaf_cache_mark marks[4];
	size_t mark_count;
} rendering;

/* Notes what was changed, `item` and `detail` as far as known. 0 or SHEAF_NOMEM. */
int note_add(rendering *r, int32_t what, const sheaf_item *item, sheaf_str detail);

/* Fills messages and tools. SHEAF_CONTEXT when nothing is left to send, SHEAF_NOMEM. */
int blocks_make(rendering *r, sheaf_error *err);

/* The formats: write the whole body. They report through `out` (buf_status) and err. */
int anthropic_write(rendering *r, buf *out, sheaf_error *err);
int openai_chat_write(rendering *r, buf *out, sheaf_error *err);
int openai_responses_write(rendering *r, buf *out, sheaf_error *err);
int gemini_write(rendering *r, buf *out, sheaf_error *err);

/* The members of o.extra, each with a comma before it; nothing if there are none. */
void extra_write(const rendering *r, buf *out);

#endif
