/*
 * What the two formats of OpenAI share: members at the top of a body, the
 * members that came with a part, and where images and documents lie.
 */
#ifndef RENDER_OPENAI_H
#define RENDER_OPENAI_H

#include "render/render.h"

/* What one format's file is writing, with its first failure. */
typedef struct openai_writer {
	rendering *r;
	buf *out;
	const message *at; /* the message that is being written, for notes */
	size_t count;      /* elements of the list so far */
	int rc;            /* 0 or SHEAF_NOMEM */
} openai_writer;

/* Notes something about the message that is being written. */
void openai_note(openai_writer *w, int32_t what, sheaf_str detail);

/* A comma, if this is not the first element of the list, and the opening brace. */
void openai_element(openai_writer *w);

/* `,"name":` unless the caller says it himself in `extra`: then nothing, and false. */
bool openai_member(const openai_writer *w, const char *name);

/* The model, and what both formats say in the same words. */
void openai_head(const openai_writer *w);

/* How much the model should think, in OpenAI's words; {NULL,0} to say nothing. */
sheaf_str openai_effort(const rendering *r);

/* `,"tools":[…]`, if there are any; flat as Responses has them, or nested. */
void openai_tools(const openai_writer *w, bool flat);

/* The pieces of the system text, static ones first, as one text; {NULL,0} if there is none. */
sheaf_str openai_system(openai_writer *w);

/* The texts among blocks as one text, one after the other with `between` in between. */
sheaf_str openai_join(openai_writer *w, const block *blocks, size_t count, sheaf_str between);

/* Where an image or a document lies, as a JSON string: its address, or a data: URL. */
void openai_source_write(buf *out, const block *b);

/* The `type` of an opaque block, without quotes and still escaped; {NULL,0} if it has none. */
sheaf_str openai_opaque_type(const block *b);

/* Members that came with a part: whether there is one, and only those in `only` written. */
bool openai_ext_has(sheaf_str ext, const char *name);
void openai_ext_only(buf *out, sheaf_str ext, const char *const *only);

#endif
