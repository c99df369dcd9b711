/*
 * What the checkers of the formats share: walking a body, and saying what is
 * wrong with it.
 *
 * A checker knows nothing of how bodies are made here and shares no code with
 * the files that make them, so that a mistake in one is seen by the other. It
 * goes over the parsed body once and says every rule that is broken, with the
 * place. The rules are listed in docs/rendering.md.
 */
#ifndef RENDER_CHECK_H
#define RENDER_CHECK_H

#include "base/arena.h"
#include "base/json.h"
#include "base/map.h"
#include "base/str.h"
#include "sheaf/render.h"

/* Nobody reads more of them. */
#define CHECK_VIOLATIONS_MAX 1000

typedef struct checker {
	arena *arena;
	sheaf_violation *found;
	size_t count, room;
	int status; /* 0 or SHEAF_NOMEM; after that nothing is said any more */
	map seen;   /* ids of calls in this body; what the value means is the format's */
	map items;  /* ids of items (Responses), names of tools */
} checker;

/* One for each format. */
void check_anthropic(checker *c, const json_val *body);
void check_openai_chat(checker *c, const json_val *body);
void check_openai_responses(checker *c, const json_val *body);
void check_gemini(checker *c, const json_val *body);

/* A rule is broken; the place is written as printf does. */
void check_say(checker *c, const char *rule, const char *text, const char *where, ...)
	__attribute__((format(printf, 4, 5)));

/* The rules that are the same everywhere. */
void check_keys(checker *c, const json_val *body);  /* no key twice, not too deep */
void check_model(checker *c, const json_val *body); /* `model` is a name */

/* Puts a key into one of the maps; false if it was there already. */
bool check_first(checker *c, map *m, sheaf_str key, uint64_t value);

/* ---- Looking at values ----------------------------------------------------- */

bool check_is_word(sheaf_str s, size_t max); /* [A-Za-z0-9_-]{1,max} */
bool check_is_blank(sheaf_str s);            /* nothing but white space, or nothing */
bool check_is_base64(sheaf_str s);           /* and not empty */
bool check_is_url(sheaf_str s);              /* http or https */
bool check_is_data_url(sheaf_str s);         /* data:TYPE;base64,DATA */
bool check_in(sheaf_str s, const char *const *words, size_t count);

static inline bool check_is(const json_val *v, const char *text)
{
	return json_type_of(v) == JSON_STRING && str_is(json_string(v), text);
}

/* A string of at least one byte. */
static inline bool check_has_text(const json_val *v)
{
	return json_string(v).len != 0;
}

#endif
