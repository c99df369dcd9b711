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
	int32_t kind;           /* SHEAF_PART_*, never OTHER; opaque: see part->raw, an object */
	bool error;             /* result: the tool failed */
	bool said_error;        /* result: is_error was recorded (true or false) */
	const sheaf_part *part; /* where it comes from; NULL for what was made here */
	sheaf_str text;         /* text; thinking; result of one text */
	sheaf_str signature;    /* text, thinking (always), call: only if the target made it */
	sheaf_str id;           /* call, result: as the format takes it, unique among calls */
	sheaf_str name;         /* call, result: the tool, as the format takes it */
	sheaf_str input;        /* call: JSON; an object if the format needs one */
	sheaf_str ext;          /* members only the target's format knows, without braces: see
	                            "ext" in docs/format.md; {NULL,0} unless the target made it */
	struct block *parts;    /* result made of parts: text, image, document only; where
	                              result_parts is false text only */
	size_t part_count;
} block;

/*
 * One message; blocks of consecutive messages may be joined by a format. Never
 * empty. Calls are in assistant messages only, and the message behind one with
 * calls is of role TOOL and has one result for each of them.
 */
typedef struct message {
	block_role role;
	bool own; /* assistant: made by the provider and model that will read it */
	block *blocks;
	size_t count;
	const sheaf_item *item; /* NULL for one that was made here */
} message;

typedef struct rendering rendering;

/* A rule set: what a format can take. One const row for each, in render.c. */
typedef struct format_rules {
	int32_t format;
	const char *name;
	const char *provider;
	const char *path;        /* of the request; a model's name follows it if … */
	const char *path_end;    /* … this is not NULL, and then this */
	const char *path_stream; /* the same for a stream */
	int (*write)(rendering *r, buf *out, sheaf_error *err);
	bool has_system;      /* `system` and `developer` messages inside the list … */
	bool has_developer;   /* … else they become user text, or the one the other */
	bool has_thinking;    /* signed thinking can go back; else it is left out (or text) */
	bool named_thinking;  /* thinking can go back whose `ext` names the member it stood in */
	bool opens_with_user; /* the list must begin with a user message */
	bool tools_required;  /* tools must be declared if there are calls */
	bool result_parts;  /* results may hold images; else those go into a user message behind */
	bool reply_images;  /* so may the assistant's messages; else a line stands in */
	bool blank_text;    /* a text may be nothing but white space */
	bool blank_end;     /* an assistant's message may end in white space */
	bool ext_together;  /* `ext` goes only with all the thinking of its message */
	bool name_letter;   /* a tool's name begins with a letter or '_' */
	bool image_url;     /* images may be given by their address … */
	bool document_url;  /* … and documents */
	const char *images; /* media types of images it takes, blanks around each; NULL: all */
	const char *documents;  /* the same of documents given as base64 */
	const char *user_never; /* types of opaque parts that are not the user's; NULL: see below */
	const char *reply_never; /* … and not the assistant's. NULL: parts have no types there */
} format_rules;

const format_rules *rules_of(int32_t format); /* NULL if there is none */

/* A rendering in progress. */
struct rendering {
	const sheaf_context *context;
	sheaf_render_options o; /* whole, defaults filled in: model, provider, ttls, max_tokens … */
	const format_rules *rules;
	arena *arena;
	const message *messages; /* never two of role TOOL one after the other */
	size_t message_count;
	message *list; /* where they and their blocks are; not in the arena, for they grow */
	block *blocks;
	const sheaf_tool *tools; /* given, or made from the calls where tools_required */
	size_t tool_count;
	sheaf_note **notes;
	size_t note_count, note_room;
	sheaf_cache_mark marks[4];
	size_t mark_count;
};

/* Longest id of a call, and longest name of a tool: what every format takes. */
#define CALL_ID_MAX 64
#define TOOL_NAME_MAX 64

/* Characters of ids and of tools' names. */
extern const bool id_chars[256];

static inline bool id_char(char c)
{
	return id_chars[(unsigned char)c];
}

static inline bool name_may_begin(char c)
{
	return id_char(c) && c != '-' && (c < '0' || c > '9');
}

/*
 * Leaves out at least `bytes` of what o.elide allows, the oldest first, in the
 * blocks themselves, and notes it. Less if there is no more. 0 or SHEAF_NOMEM.
 */
int elide(rendering *r, size_t bytes);

/* Notes what was changed, `item` and `detail` as far as known. 0 or SHEAF_NOMEM. */
int note_add(rendering *r, int32_t what, const sheaf_item *item, sheaf_str detail);

/* Fills messages and tools. SHEAF_CONTEXT when nothing is left to send, SHEAF_NOMEM. */
int blocks_make(rendering *r, sheaf_error *err);

/*
 * The formats: write the whole body. They return 0 or a code with err filled;
 * what fails in `out` is found afterwards (buf_status). Options are checked
 * before: schemas and `extra` are JSON objects, names of tools are good ones.
 */
int anthropic_write(rendering *r, buf *out, sheaf_error *err);
int openai_chat_write(rendering *r, buf *out, sheaf_error *err);
int openai_responses_write(rendering *r, buf *out, sheaf_error *err);
int gemini_write(rendering *r, buf *out, sheaf_error *err);

/*
 * What a message of a role that no provider knows says, as one user text: a
 * heading and its texts, or members of `json`, the message as it was stored.
 * Empty: it says nothing; {NULL,0}: it is not to be shown.
 */
int wording_make(sheaf_str *out, const sheaf_message_view *view, sheaf_str json, arena *a);

/* Whether a role has such a wording, or is said to the model as it is. */
bool wording_has(sheaf_str role);

/* A line that stands for an image or document; `blind`: because the model sees none. */
int wording_stand_in(sheaf_str *out, const sheaf_part *part, bool blind, bool in_result, arena *a);

/* Whether o.extra has a member: then a format leaves its own of that name out. */
bool extra_has(const rendering *r, const char *name);

/* Whether a text is white space only. */
bool text_is_blank(sheaf_str text);

/* The same for one that was left out to make a request smaller. */
int wording_elided(sheaf_str *out, const sheaf_part *part, arena *a);

/* Members that came with a part, each with a comma before it, but for those in `without`, a list
 * that ends in NULL: what a format writes itself it writes once. */
void ext_write(buf *out, sheaf_str ext, const char *const *without);

/* The members of o.extra, each with a comma before it, but for the model and the list of messages,
 * which are not the caller's to say. */
void extra_write(const rendering *r, buf *out, const char *list);

#endif
