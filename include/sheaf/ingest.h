/*
 * Ingesting: what a provider says as messages to append.
 *
 * A reply comes whole or as a stream of events; either way it becomes one
 * assistant message with usage, stop reason and response id. A list of messages
 * in a provider's own form becomes messages, too. What has no name here is kept
 * as an opaque part and goes back to the same wire format as it came.
 */
#ifndef SHEAF_INGEST_H
#define SHEAF_INGEST_H

#include "render.h"

SHEAF_BEGIN

/** Why a reply ended, whatever the provider calls it. */
enum {
	SHEAF_STOP_UNKNOWN = 0,
	SHEAF_STOP_END = 1,      /* the turn is over */
	SHEAF_STOP_TOOL_USE = 2, /* tools are to be run */
	SHEAF_STOP_LENGTH = 3,   /* max_tokens */
	SHEAF_STOP_PAUSE = 4,    /* send it back as it is and the model goes on */
	SHEAF_STOP_REFUSAL = 5,
	SHEAF_STOP_OVERFLOW = 6 /* the window is full */
};

/** What kind of failure a provider reported. */
enum {
	SHEAF_FAULT_NONE = 0,
	SHEAF_FAULT_OVERFLOW = 1, /* the request is longer than the window: compact */
	SHEAF_FAULT_RATE = 2,     /* too much at once: wait */
	SHEAF_FAULT_SERVER = 3,   /* overloaded or broken: try again */
	SHEAF_FAULT_AUTH = 4,     /* key or account */
	SHEAF_FAULT_REQUEST = 5   /* refused as it is: trying again does not help */
};

/** A reply. Caller frees. */
typedef struct sheaf_reply {
	sheaf_message *message; /* assistant; owned by the reply; NULL if nothing was said */
	int32_t stop;           /* SHEAF_STOP_*; message's stop_reason is the provider's own word */
	int32_t complete;       /* 0: the stream ended before the reply did, or an error came */
	int32_t fault;          /* SHEAF_FAULT_*: the body or an event was an error */
	int32_t call_count;     /* tool calls in it */
	sheaf_str fault_text;   /* the provider's words */
	sheaf_usage usage;      /* also in the message */
	sheaf_str response_id;
	sheaf_str model; /* the one that answered */
} sheaf_reply;

SHEAF_API void sheaf_reply_free(const sheaf_reply *reply);

/**
 * A whole reply body, also an error body (then `fault` is set).
 * @param provider  recorded on the message; {NULL,0} = the format's
 * @param model     recorded if the reply names none
 * @return 0; SHEAF_FORMAT (no reply of that format), SHEAF_INVALID, SHEAF_NOMEM
 */
SHEAF_API int sheaf_ingest_reply(sheaf_reply **out, int32_t format, sheaf_str provider,
                                 sheaf_str model, sheaf_str body, sheaf_error *err);

/** The kind of failure of an HTTP answer: its status and its body. */
SHEAF_API int32_t sheaf_ingest_fault(int32_t format, int32_t http_status, sheaf_str body);

/* ---- Streams ----------------------------------------------------------- */

enum {
	SHEAF_DELTA_TEXT = 1,
	SHEAF_DELTA_THINKING = 2,
	SHEAF_DELTA_TOOL_USE = 3 /* a call begins: `text` is the tool's name */
};

/** Called as text arrives. `text` is valid during the call. */
typedef void (*sheaf_delta_fn)(void *ctx, int32_t kind, sheaf_str text);

typedef struct sheaf_stream sheaf_stream;

/** A reader of server-sent events. NULL when out of memory or for an unknown format; caller frees.
 * Strings are copied. Not thread-safe. */
SHEAF_API sheaf_stream *sheaf_stream_new(int32_t format, sheaf_str provider, sheaf_str model,
                                         sheaf_delta_fn on_delta, void *ctx);

/**
 * Takes bytes as they come, cut anywhere. A whole body in place of events is
 * understood, too: some servers do not stream although they are asked to.
 * @return 0; SHEAF_FORMAT (not such a stream: nothing more is taken), SHEAF_TOO_LARGE (an event,
 *         or the reply), SHEAF_NOMEM
 */
SHEAF_API int sheaf_stream_feed(sheaf_stream *stream, sheaf_str bytes, sheaf_error *err);

/** Whether the event that ends a reply, or an error, was seen: nothing more needs to be read. */
SHEAF_API int sheaf_stream_done(const sheaf_stream *stream);

/**
 * Ends the stream and gives the reply as far as it came. A tool call whose input
 * did not arrive whole is left out; text and unsigned thinking that did stay.
 * What feeding called SHEAF_FORMAT ends a reply like a cut. Caller frees it.
 * @return 0; SHEAF_TOO_LARGE, SHEAF_NOMEM (also if feeding was), SHEAF_INVALID
 */
SHEAF_API int sheaf_stream_reply(sheaf_reply **out, sheaf_stream *stream, sheaf_error *err);
SHEAF_API void sheaf_stream_free(sheaf_stream *stream);

/* ---- Provider-form messages -------------------------------------------- */

/** Messages made from a list. Caller frees; the messages are owned by it. */
typedef struct sheaf_messages {
	size_t count;
	sheaf_message *const *items;
	size_t opaque_count; /* parts that were kept as they are */
} sheaf_messages;

SHEAF_API void sheaf_messages_free(const sheaf_messages *messages);

/**
 * The `messages`, `input` or `contents` array of a request as messages: the
 * inverse of rendering. One element of the array is one message, but items of
 * one response (Responses) are joined, as are results that answer one message;
 * an element with results and more is two messages, the results first. Elements
 * with nothing in them are passed over. Broken text is mended. What a result
 * holds beside text, images and documents is in it as the text of its JSON.
 * @param provider  recorded on the assistant's messages; {NULL,0} = the format's
 * @return 0; SHEAF_FORMAT (an element that is no message), SHEAF_INVALID (no such format),
 *         SHEAF_TOO_LARGE (a message no record can hold), SHEAF_NOMEM
 */
SHEAF_API int sheaf_ingest_messages(sheaf_messages **out, int32_t format, sheaf_str provider,
                                    sheaf_str array, sheaf_error *err);

SHEAF_END
#endif
