/*
 * What must be true of a context and of its renderings, worked out from the
 * history alone: what is shown, which answer belongs to which call, what must
 * be mended, and which notes that gives.
 */
#ifndef PROPERTY_RENDER_ORACLE_H
#define PROPERTY_RENDER_ORACLE_H

#include "property/render_body.h"

#define WHY_ROOM 512
#define SHOWN_MAX (ENTRIES_MAX + 8)
#define EXPECTED_MAX 512

typedef enum fate {
	FATE_STAYS,
	FATE_EMPTY,
	FATE_FOREIGN, /* thinking that the context left out */
	FATE_ANSWER,
	FATE_SECOND,
	FATE_ORPHAN
} fate;

/* Something a context shows: a message, or a text with a mark. */
typedef struct shown {
	const entry *from;
	const said *said;
	unsigned mark;
} shown;

typedef struct asked {
	size_t item, part;
	size_t answer_item, answer_part; /* NONE: nobody answered */
} asked;

typedef struct expected {
	int32_t what;
	uint64_t seq; /* 0: any */
	bool may;     /* it need not be there */
} expected;

typedef struct oracle {
	const history *h;
	sheaf_str provider, model; /* the context was made for; may be empty */
	shown items[SHOWN_MAX];
	size_t count;
	uint8_t fates[SHOWN_MAX][PARTS_MAX];
	asked calls[SHOWN_MAX * PARTS_MAX];
	size_t call_count;
	expected notes[EXPECTED_MAX];
	size_t note_count;
	seen seen;
	char why[WHY_ROOM];
} oracle;

/* What a context of this leaf shows to this reader. */
void oracle_make(oracle *o, const history *h, size_t leaf, sheaf_str provider, sheaf_str model);

/* Whether they are as they must be; else `why` says what is not. */
bool oracle_context(oracle *o, const sheaf_context *context);
bool oracle_request(oracle *o, const sheaf_context *context, const sheaf_request *request,
                    const sheaf_render_options *options);
/* Whether there is nothing that could be sent. */
bool oracle_nothing(const oracle *o);

#endif
