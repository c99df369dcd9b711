/* Small helpers for messages that are built from other agents' parts. */
#ifndef CONVERT_MEDIA_H
#define CONVERT_MEDIA_H

#include "convert/convert.h"
#include "convert/parts.h"

/* A new message whose broken text is mended; NULL when out of memory. */
sheaf_message *media_message(const char *role);
void media_freep(sheaf_message **m);

/*
 * A file by its address: a data: URL of an image or PDF becomes a part with its
 * base64 text, one at http(s) a part with the address. False for all others.
 */
bool media_put(sheaf_message *m, sheaf_str media_type, sheaf_str url);

/*
 * What the AI SDK keeps of a provider beside a part: {"anthropic":{"signature":…}}.
 * The signature, {NULL,0} if there is none, and the provider that made it.
 */
typedef struct sdk_metadata {
	sheaf_str provider;
	sheaf_str signature;
	bool redacted;
	sheaf_str item_id; /* OpenAI: the item's id */
} sdk_metadata;

sdk_metadata sdk_metadata_of(value metadata);

/* Thinking with what its provider wants back. */
void sdk_thinking_put(sheaf_message *m, sheaf_str text, value metadata);
/* The signature on the last text or call. */
void sdk_signature_put(sheaf_message *m, value metadata);

/* Seconds since 1970 with a fraction, as text; 0 if it is no such number. */
int64_t seconds_us(sheaf_str number);

/* A file's name without folders and what follows its first dot. */
sheaf_str media_stem(sheaf_str path);

/* ROOT with a suffix and a number, or ROOT itself for number 1: "msg", "msg.2", "msg-results.2";
 * cut where it would be longer than an id may be. */
sheaf_str id_with(char room[SHEAF_ID_ROOM], sheaf_str root, const char *suffix, unsigned number);

#endif
