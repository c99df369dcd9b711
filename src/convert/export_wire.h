/*
 * Exporting to agents that write down what they send: the conversation as the
 * elements of a request, with the newest compaction as what replaces the rest.
 */
#ifndef CONVERT_EXPORT_WIRE_H
#define CONVERT_EXPORT_WIRE_H

#include "convert/convert.h"

typedef enum wire_phase {
	WIRE_SAID,        /* an element of the conversation */
	WIRE_REPLACEMENT, /* one of those that stand for all before them */
	WIRE_REPLACED     /* these were all; no element */
} wire_phase;

typedef int wire_take(export *ex, void *ctx, wire_phase phase, sheaf_str element, int64_t time_us);

typedef struct wire_way {
	int32_t format;    /* SHEAF_FORMAT_* */
	const char *list;  /* "input", "contents" */
	const char *model; /* whose form it takes if the session names none of that provider */
	wire_take *take;
	void *ctx;
} wire_way;

/* Where a format wants a summary, and there is none but messages in its place. */
#define WIRE_WHAT_FOLLOWS "The messages that follow stand for what was said before."

/* What was said after ex->from_seq. What the format cannot carry is counted as lost. */
int export_wire(export *ex, const wire_way *way);

/* A session's id for formats that want a UUID: its own if it has one, else made from its name. */
#define WIRE_ID_ROOM 40
void export_uuid(const export *ex, char out[WIRE_ID_ROOM]);

#endif
