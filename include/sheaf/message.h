/*
 * Messages: building one to append, and reading one that was stored.
 *
 * A message is a role and a list of parts. Build it part by part, or from JSON
 * text in the format of docs/format.md. A builder remembers its first failure:
 * the calls may be made without looking, and the append that takes the message
 * returns what went wrong.
 *
 *     sheaf_message *m = sheaf_message_new("user");
 *     sheaf_message_text(m, sheaf_str_of("Hello"));
 *     rc = sheaf_session_append_message(session, m, NULL, NULL, NULL, &err);
 *     sheaf_message_free(m);
 */
#ifndef SHEAF_MESSAGE_H
#define SHEAF_MESSAGE_H

#include "error.h"

SHEAF_BEGIN

/* Roles, as they are spelled in records. Others are refused. */
#define SHEAF_ROLE_SYSTEM "system"
#define SHEAF_ROLE_DEVELOPER "developer"
#define SHEAF_ROLE_USER "user"
#define SHEAF_ROLE_ASSISTANT "assistant"
#define SHEAF_ROLE_TOOL "tool"
#define SHEAF_ROLE_BASH "bashExecution"
#define SHEAF_ROLE_CUSTOM "custom"
#define SHEAF_ROLE_BRANCH_SUMMARY "branchSummary"
#define SHEAF_ROLE_COMPACTION_SUMMARY "compactionSummary"

/** Tokens of one reply. For every provider `input` excludes what was read from or written to a
 * cache, and `output` includes `reasoning`. */
typedef struct sheaf_usage {
	uint64_t input;
	uint64_t cache_read;
	uint64_t cache_write_5m;
	uint64_t cache_write_1h;
	uint64_t output;
	uint64_t reasoning;
} sheaf_usage;

/* ---- Building ---------------------------------------------------------- */

typedef struct sheaf_message sheaf_message;

/**
 * A new, empty message. Not thread-safe; the caller frees it.
 * @return NULL only when out of memory; an unknown role is reported on append
 */
SHEAF_API sheaf_message *sheaf_message_new(const char *role);

/**
 * A message from the JSON of a record's `message` member, kept byte for byte.
 * @return 0; SHEAF_INVALID (not such an object, duplicate keys, invalid text),
 *         SHEAF_LIMIT, SHEAF_TOO_LARGE, SHEAF_NOMEM
 */
SHEAF_API int sheaf_message_from_json(sheaf_message **out, sheaf_str json, sheaf_error *err);

SHEAF_API void sheaf_message_free(sheaf_message *message);

/** Broken text becomes U+FFFD from here on instead of failing; how many so far. */
SHEAF_API void sheaf_message_mend_text(sheaf_message *message, int on);
SHEAF_API size_t sheaf_message_mended(const sheaf_message *message);

/* Parts, in the order they are added. Strings are borrowed. Each returns 0 or
 * the message's first failure. */
SHEAF_API int sheaf_message_text(sheaf_message *message, sheaf_str text);
SHEAF_API int sheaf_message_thinking(sheaf_message *message, sheaf_str text, sheaf_str signature,
                                     int redacted);
/** `source_type` is "base64" or "url". */
SHEAF_API int sheaf_message_image(sheaf_message *message, sheaf_str source_type,
                                  sheaf_str media_type, sheaf_str data);
SHEAF_API int sheaf_message_document(sheaf_message *message, sheaf_str source_type,
                                     sheaf_str media_type, sheaf_str data);
/**
 * A tool call. `input` is embedded as given if it is one JSON value without
 * line breaks between tokens, else kept as the string `input_text`; either way
 * the same bytes come back.
 */
SHEAF_API int sheaf_message_tool_use(sheaf_message *message, sheaf_str id, sheaf_str name,
                                     sheaf_str input);
/** A tool's answer as text. `is_error`: 1, 0, or -1 for "not said". `tool_name` may be {NULL,0}. */
SHEAF_API int sheaf_message_tool_result(sheaf_message *message, sheaf_str tool_use_id,
                                        sheaf_str tool_name, sheaf_str text, int is_error);
/** A tool's answer made of parts: text, image and document calls until _end go into it. */
SHEAF_API int sheaf_message_tool_result_begin(sheaf_message *message, sheaf_str tool_use_id,
                                              sheaf_str tool_name, int is_error);
SHEAF_API int sheaf_message_tool_result_end(sheaf_message *message);
/** A part only its provider understands; `raw` is one JSON value, given back verbatim. */
SHEAF_API int sheaf_message_opaque(sheaf_message *message, sheaf_str provider, sheaf_str raw);
/** Puts a signature on the last text or tool_use part. */
SHEAF_API int sheaf_message_signature(sheaf_message *message, sheaf_str signature);
/**
 * Puts members that only one wire format knows on the last part, once, unless it is opaque: they
 * go back as they are to that format and to no other.
 * @param format   its name, see sheaf_format_name() in sheaf/render.h
 * @param members  a JSON object without a member `format`; bytes are kept
 */
SHEAF_API int sheaf_message_ext(sheaf_message *message, sheaf_str format, sheaf_str members);

/* What is known of a reply. */
SHEAF_API int sheaf_message_provider(sheaf_message *message, sheaf_str provider);
SHEAF_API int sheaf_message_model(sheaf_message *message, sheaf_str model);
SHEAF_API int sheaf_message_response_id(sheaf_message *message, sheaf_str response_id);
SHEAF_API int sheaf_message_stop_reason(sheaf_message *message, sheaf_str stop_reason);
SHEAF_API int sheaf_message_usage(sheaf_message *message, const sheaf_usage *usage);

/**
 * The message as JSON, as it will be stored. Owned by the message, until its
 * next change. On a failed message {NULL, 0}.
 */
SHEAF_API sheaf_str sheaf_message_json(sheaf_message *message);

/* ---- Reading ----------------------------------------------------------- */

/** Kinds of parts. New ones may come: treat an unknown kind as SHEAF_PART_OTHER. */
enum {
	SHEAF_PART_OTHER = 0, /* a type this version does not know; see `json` */
	SHEAF_PART_TEXT = 1,
	SHEAF_PART_THINKING = 2,
	SHEAF_PART_IMAGE = 3,
	SHEAF_PART_DOCUMENT = 4,
	SHEAF_PART_TOOL_USE = 5,
	SHEAF_PART_TOOL_RESULT = 6,
	SHEAF_PART_OPAQUE = 7
};

/**
 * One part, read-only, owned by the result it came in. A member that its kind
 * does not have is zero. Strings are unescaped and NUL-terminated; `input`,
 * `raw`, `ext` and `json` are bytes as stored.
 */
typedef struct sheaf_part {
	int32_t kind;
	int32_t is_error;  /* tool_result: 1, 0, -1 = not said */
	int32_t redacted;  /* thinking */
	int32_t synthetic; /* tool_result: made by the context for a call nobody answered */
	sheaf_str text;    /* text, thinking, and a tool_result whose content is a string */
	sheaf_str signature;
	sheaf_str id;          /* tool_use */
	sheaf_str name;        /* tool_use: the tool */
	sheaf_str input;       /* tool_use: as it was given, whichever way it was kept */
	sheaf_str tool_use_id; /* tool_result */
	sheaf_str tool_name;
	sheaf_str source_type; /* image, document */
	sheaf_str media_type;
	sheaf_str data;
	sheaf_str provider; /* opaque */
	sheaf_str raw;
	sheaf_str ext; /* what sheaf_message_ext() put on it, as stored: an object whose `format`
	                  names the wire format that knows its other members */
	sheaf_str
		json; /* the whole part as stored; {NULL,0} for one that a context made or changed */
	const struct sheaf_part *const *parts; /* tool_result made of parts */
	size_t part_count;
} sheaf_part;

/** A stored message, read-only, owned by the result it came in. */
typedef struct sheaf_message_view {
	sheaf_str role;
	sheaf_str provider;
	sheaf_str model;
	sheaf_str response_id;
	sheaf_str stop_reason;
	const sheaf_usage *usage; /* NULL if none was recorded */
	const sheaf_part *const *parts;
	size_t part_count;
	sheaf_str json; /* the `message` member as stored, of a reply in several entries put
	                   together; {NULL,0} if the context changed it */
} sheaf_message_view;

/** The text parts one after the other: the only one as it is, several joined by line breaks
 * into `out` (NUL-terminated, cut at `room`). Returns the full length. */
SHEAF_API size_t sheaf_message_view_text(const sheaf_message_view *message, char *out, size_t room);

SHEAF_END
#endif
