/*
 * What the readers of replies share: JSON values with their bytes, and a draft
 * of the reply that a whole body fills at once and a stream piece by piece.
 *
 * Both ways end in draft_reply(), so a stream and the body it stands for give
 * the same message.
 */
#ifndef RENDER_INGEST_H
#define RENDER_INGEST_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "sheaf/ingest.h"

/* ---- JSON ------------------------------------------------------------------ */

/* A value: parsed for reading, its bytes for keeping. Absent if `v` is NULL. */
typedef struct node {
	const json_val *v;
	sheaf_str text;
} node;

/* A text that was parsed. Zero it; serves many texts, one after the other. */
typedef struct source {
	json_doc *doc;
	buf copy; /* used if the text had to be changed */
	node root;
} source;

/*
 * Parses; broken text is mended, and what stands on several lines is put on one. `root` is good
 * until the next call and as long as `text` is. SHEAF_FORMAT, SHEAF_TOO_LARGE, SHEAF_NOMEM.
 */
int source_read(source *s, sheaf_str text, sheaf_error *err);
void source_free(source *s); /* for _cleanup_ too */

node node_get(node object, const char *name);
/* The unescaped string; {NULL,0} if it is none. */
sheaf_str node_string(node object, const char *name);
/* True and the number, if there is one; else `*out` is left alone. */
bool node_u64(node object, const char *name, uint64_t *out);

/* for (node_iter it = node_each(array); node_next(&it);) … it.key, it.value */
typedef struct node_iter {
	sheaf_str key; /* still escaped; {NULL,0} in arrays */
	node value;
	json_iter values;
	sheaf_str inside;
	size_t at;
} node_iter;
node_iter node_each(node container);
bool node_next(node_iter *it);

/* ---- The draft of a reply -------------------------------------------------- */

/* What becomes a part. */
typedef struct piece {
	int32_t kind;   /* SHEAF_PART_* */
	bool done;      /* it came whole */
	bool redacted;  /* thinking */
	bool item;      /* Responses: `raw` is an item still to be read */
	bool list;      /* result: what it holds follows as inner pieces, not as `text` */
	bool inner;     /* stands in the result before it */
	int is_error;   /* result: 1, 0, -1 = not said */
	uint64_t index; /* the provider's number for it in a stream */
	buf text;       /* text, thinking; call: input as it arrives */
	buf raw;        /* opaque: its JSON; call: input that came at once; image: data */
	buf signature;
	buf id;        /* call, result: of the call; image: "base64" or "url" */
	buf name;      /* call, result: the tool; image: media type */
	buf ext;       /* members without braces */
	buf citations; /* Anthropic: elements without brackets */
} piece;

typedef struct draft {
	const struct ingest_format *format;
	piece *pieces;
	size_t count, room;
	size_t bytes; /* of all pieces: bounded */
	buf response_id;
	buf model;
	buf stop_word;
	buf fault_text;
	sheaf_usage usage;
	uint64_t salt;      /* makes ids that are made up differ from message to message */
	uint64_t counts[8]; /* the provider's own numbers, as its file names them */
	int32_t stop;
	int32_t fault;
	bool has_usage;
	bool ended;   /* the event that ends a reply was seen */
	bool refused; /* it says no */
	int status;   /* the first failure */
	sheaf_delta_fn on_delta;
	void *ctx;
} draft;

/* One wire format. Handlers report failures with draft_fail(). */
struct taking;
typedef struct ingest_format {
	int32_t format;
	void (*body)(draft *d, node root);                  /* a whole reply */
	void (*event)(draft *d, sheaf_str name, node data); /* one event of a stream */
	void (*end)(draft *d);                              /* the stream is over; or NULL */
	void (*message)(struct taking *t, node element);    /* an element of a request's list */
} ingest_format;

const ingest_format *ingest_format_of(int32_t format); /* NULL if there is none */

extern const ingest_format ingest_anthropic;
extern const ingest_format ingest_chat;
extern const ingest_format ingest_responses;
extern const ingest_format ingest_gemini;

void draft_clear(draft *d); /* for _cleanup_ too; it can be used again */
void draft_fail(draft *d, int code);

/* A new last piece; NULL after a failure. Pointers to pieces hold until the next one is made. */
piece *draft_piece(draft *d, int32_t kind, uint64_t index);
piece *draft_find(draft *d, uint64_t index); /* the newest of that index, or NULL */
piece *draft_last(draft *d);                 /* NULL if there is none */

/* Adds to a string of the draft or of a piece. */
void draft_add(draft *d, buf *to, sheaf_str text);
/* The same for what a reader of the stream wants to see: text of text and thinking pieces. */
void draft_say(draft *d, piece *p, sheaf_str text);
/* A call has its name: tells the reader. */
void draft_call(draft *d, piece *p, sheaf_str name);
/* A member of the provider's own for this piece. null is nothing. */
void draft_ext(draft *d, piece *p, sheaf_str key, sheaf_str value);
/* All members but those named (a list that ends in NULL). */
void draft_ext_others(draft *d, piece *p, node object, const char *const *known);
/* Replaces a string unless the new one is absent. */
void draft_set(draft *d, buf *to, sheaf_str text);
/* A part only the format understands, whole. */
void draft_opaque(draft *d, node value);
/* A text, whole. */
piece *draft_text(draft *d, sheaf_str text);
/* An image or a document by its address, which may hold it: data:image/png;base64,… */
piece *draft_source(draft *d, int32_t kind, sheaf_str url);
/* A tool's answer, whole, still without content. */
piece *draft_result(draft *d, sheaf_str tool_use_id, sheaf_str tool_name, int is_error);
/* An error object of the provider's. */
void draft_fault(draft *d, node root);

/* An id for a call that came without one: the same for the same reply, else another. */
void draft_call_id(const draft *d, const piece *p, buf *out);

/* What became of a draft. */
typedef struct made {
	sheaf_message *message; /* NULL if there was nothing to say */
	int32_t calls;
	size_t opaque;
} made;

/* The message a draft amounts to. 0 or a failure; caller frees it. */
int draft_message(made *out, const draft *d, const char *role);

/* The reply the draft amounts to; provider and model as sheaf_ingest_reply() takes them. */
int draft_reply(sheaf_reply **out, draft *d, sheaf_str provider, sheaf_str model, sheaf_error *err);

/* ---- Lists of messages ------------------------------------------------------ */

/* A call that was not answered yet. */
typedef struct open_call {
	buf id;
	buf name;
} open_call;

/* A list that is being taken. */
typedef struct taking {
	draft draft;      /* of the message that is being read */
	const char *role; /* its role, or NULL */
	open_call *calls; /* of the last message that has any; for formats without ids */
	size_t call_count, call_room;
	uint64_t element; /* which one of the list is being read */
	sheaf_str provider;
	sheaf_message **items;
	size_t count, room;
	size_t opaque;
	int status; /* the first failure */
} taking;

/* The draft to read into: that of a new message, or of the last one if that has the same role
 * and `join` is set. NULL after a failure. */
draft *take_message(taking *t, const char *role, bool join);
void take_fail(taking *t, int code);
/* The content of a result: a text, or parts each of which `add` puts into the draft. */
void take_content(draft *d, size_t result, node content, void (*add)(draft *d, node part));

/* ---- Failures -------------------------------------------------------------- */

/* The kind of an error that came with an HTTP status (0: unknown); NONE if it is no error.
 * `*text` becomes the provider's words, {NULL,0} if there are none. */
int32_t fault_of(int32_t http_status, node root, sheaf_str *text);
/* Whether an object is a provider's report of an error. */
bool fault_is(node root);

#endif
