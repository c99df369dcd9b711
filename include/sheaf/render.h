/*
 * Rendering: a context, the system text and the tools as the request body of a
 * provider; and checking such a body.
 *
 * A pure function: the same context and options give the same bytes, and a turn
 * more leaves the blocks before it as they were, so that the provider's prompt
 * cache stays warm. Whatever the history, what comes out keeps the provider's
 * rules; what had to be changed for that is listed in the notes.
 *
 *     sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
 *     how.format = SHEAF_FORMAT_ANTHROPIC;
 *     how.model = sheaf_str_of("claude-sonnet-4-5");
 *     rc = sheaf_render(&request, context, &how, &err);
 *     post("https://…/v1/messages", request->body);
 *     sheaf_request_free(request);
 */
#ifndef SHEAF_RENDER_H
#define SHEAF_RENDER_H

#include "context.h"

SHEAF_BEGIN

/** Wire formats. Messages and opaque parts name theirs by sheaf_format_name(). */
enum {
	SHEAF_FORMAT_ANTHROPIC = 1,        /* "anthropic": Anthropic Messages */
	SHEAF_FORMAT_OPENAI_CHAT = 2,      /* "openai-chat": OpenAI Chat Completions */
	SHEAF_FORMAT_OPENAI_RESPONSES = 3, /* "openai-responses": OpenAI Responses */
	SHEAF_FORMAT_GEMINI = 4            /* "gemini": Google Gemini generateContent */
};

/** NULL for a number that is none of them. */
SHEAF_API const char *sheaf_format_name(int32_t format);
/** 0 for a name that is none of them. */
SHEAF_API int32_t sheaf_format_named(sheaf_str name);
/** Who speaks a format unless said otherwise: anthropic, openai, openai, google. */
SHEAF_API const char *sheaf_format_provider(int32_t format);

/** A piece of the system text. Dynamic pieces are sent after the static ones and never marked
 * for the cache. */
typedef struct sheaf_system {
	sheaf_str text;
	int32_t dynamic;
	int32_t reserved0;
} sheaf_system;

/** A tool the model may call. `schema` is the JSON Schema object of its input. */
typedef struct sheaf_tool {
	sheaf_str name;
	sheaf_str description; /* may be {NULL,0} */
	sheaf_str schema;      /* {NULL,0}: an object of anything */
} sheaf_tool;

/** What is marked for the provider's prompt cache (Anthropic; the others do it themselves). */
enum {
	SHEAF_CACHE_FULL = 0,     /* tools and system text, and the messages */
	SHEAF_CACHE_SYSTEM = 1,   /* tools and system text only */
	SHEAF_CACHE_MESSAGES = 2, /* the messages only */
	SHEAF_CACHE_OFF = 3
};

/** What may be left out of a request that would be larger than bytes_max, oldest first. */
enum {
	SHEAF_ELIDE_IMAGES = 1,  /* images and documents */
	SHEAF_ELIDE_OUTPUTS = 2, /* the middle of long tool results */
};

typedef struct sheaf_render_options {
	size_t size;        /* sizeof(sheaf_render_options) */
	int32_t format;     /* one of the above */
	int32_t stream;     /* ask for the reply as a stream of events */
	sheaf_str provider; /* who will read it; {NULL,0} = sheaf_format_provider(format) */
	sheaf_str model;    /* {NULL,0} = the context's; SHEAF_INVALID if that has none either */
	const sheaf_system *system;
	size_t system_count;
	const sheaf_tool *tools;
	size_t tool_count;
	uint64_t max_tokens; /* of the reply; 0 = the model's (see sheaf/usage.h), else 8192 where
	                        the format must have one */
	sheaf_str thinking_level; /* "off", "minimal", "low", "medium", "high"; {NULL,0} = the
	                             context's; with neither nothing is said of it */
	sheaf_str extra;     /* a JSON object whose members are added at the top level as they are
	                        (temperature, metadata, …), or {NULL,0} */
	sheaf_str cache_key; /* one for each conversation, e.g. the session id; helps providers that
	                        route by it */
	int32_t cache;       /* SHEAF_CACHE_* */
	int32_t static_ttl;  /* seconds, 300 or 3600; 0 = 3600 */
	int32_t message_ttl; /* seconds, 300 or 3600, not more than static_ttl; 0 = 300 */
	int32_t elide;       /* SHEAF_ELIDE_* bits */
	size_t bytes_max;    /* of the body; 0 = SHEAF_CONTEXT_BYTES_DEFAULT */
	int32_t thinking_as_text; /* thinking that cannot be sent as such goes before the answer as
	                             text instead of being left out */
	int32_t no_images;        /* the model sees none: a line stands in for each */
	const struct sheaf_models
		*models; /* laid over the built-in table (sheaf/usage.h), or NULL */
} sheaf_render_options;

/* clang-format off */
#define SHEAF_RENDER_OPTIONS_INIT                                                                  \
	{sizeof(sheaf_render_options), 0, 0, {0, 0}, {0, 0}, 0, 0, 0, 0, 0, {0, 0}, {0, 0},        \
	 {0, 0}, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/** A place marked for the cache. */
typedef struct sheaf_cache_mark {
	int32_t ttl;     /* seconds */
	int32_t place;   /* 1 tools, 2 system, 3 messages */
	uint64_t tokens; /* estimated, from the beginning of the request up to it */
} sheaf_cache_mark;

/** A rendered request. One free. */
typedef struct sheaf_request {
	int32_t format;
	int32_t stream;
	sheaf_str body; /* JSON, NUL-terminated */
	sheaf_str provider;
	sheaf_str model;
	sheaf_str path;  /* below the provider's base address: "/v1/messages" … */
	uint64_t tokens; /* estimated */
	size_t note_count;
	const sheaf_note *const *notes; /* what rendering changed; the context has its own */
	size_t mark_count;
	sheaf_cache_mark marks[4];
} sheaf_request;

/**
 * Renders a context. Costs O(its size). Caller frees; nothing in it depends on
 * the context or the options any more.
 * @return 0; SHEAF_INVALID (options: no model, ttls in the wrong order, `extra` or a schema that
 *         is no JSON object, a tool's name the format does not take, or twice), SHEAF_CONTEXT
 *         (there is nothing to send), SHEAF_TOO_LARGE (over bytes_max, also without what may be
 *         elided), SHEAF_NOMEM
 */
SHEAF_API int sheaf_render(sheaf_request **out, const sheaf_context *context,
                           const sheaf_render_options *options, sheaf_error *err);
SHEAF_API void sheaf_request_free(const sheaf_request *request);

/* ---- Checking ---------------------------------------------------------- */

/** A rule a body breaks. */
typedef struct sheaf_violation {
	sheaf_str where; /* "messages[3].content[0]" */
	sheaf_str rule;  /* its short name: "call_unanswered" … */
	sheaf_str text;  /* a sentence for people */
} sheaf_violation;

typedef struct sheaf_violations {
	size_t count;
	const sheaf_violation *const *items;
} sheaf_violations;

/**
 * Holds a request body against the provider's rules, whoever made it. The rules
 * are listed in docs/rendering.md. Caller frees.
 * @return 0, also when there are problems; SHEAF_FORMAT (not JSON), SHEAF_INVALID (no such
 *         format), SHEAF_NOMEM
 */
SHEAF_API int sheaf_request_check(sheaf_violations **out, int32_t format, sheaf_str body,
                                  sheaf_error *err);
SHEAF_API void sheaf_violations_free(const sheaf_violations *violations);

/* ---- What stayed the same ---------------------------------------------- */

/** Why a later context does not begin with an earlier one, or is of no use to its reader. */
enum {
	SHEAF_BREAK_NONE = 0,        /* it does */
	SHEAF_BREAK_LATE_ANSWER = 1, /* a call that had none was answered */
	SHEAF_BREAK_COMPACTION = 2, /* a compaction decides that did not before, or none any more */
	SHEAF_BREAK_MODEL = 3,      /* another provider or model is in force; the items may be the
	                               same, but no two models share a cache */
	SHEAF_BREAK_OPTIONS = 4,    /* other options: agent, target, damage passed over, … */
	SHEAF_BREAK_BRANCH = 5      /* another path */
};

typedef struct sheaf_common {
	size_t items; /* how many items at the front are the same */
	size_t bytes; /* of those items, as far as their text goes */
	int32_t why;  /* SHEAF_BREAK_* */
	int32_t reserved0;
	sheaf_str entry_id; /* the first entry of the later one that differs, or {NULL,0} */
} sheaf_common;

/**
 * Compares two contexts of one session. `out->entry_id` is owned by `later`.
 * Options of a rendering (system text, tools, elision) are not looked at: for
 * those compare the requests.
 */
SHEAF_API void sheaf_context_common(sheaf_common *out, const sheaf_context *earlier,
                                    const sheaf_context *later);

/** How many leading bytes two bodies share, as if they had no cache marks. */
SHEAF_API size_t sheaf_request_common(const sheaf_request *earlier, const sheaf_request *later);

SHEAF_END
#endif
