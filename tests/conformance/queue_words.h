/* Words for cases about queues: items in, claims out, in memory of the case. */
#ifndef CONFORMANCE_QUEUE_WORDS_H
#define CONFORMANCE_QUEUE_WORDS_H

#include "suite.h"

#define SHORT_US 60000         /* a lease that is waited for */
#define PATIENCE_US 20000000LL /* how long it may take on a loaded machine */
#define NEVER 0                /* the default lease: longer than any case */

/* A case that has nothing to say of a store without queues. */
#define QUEUE_CASE(name)                                                                           \
	static void queue_##name(suite *t);                                                        \
	CASE(name)                                                                                 \
	{                                                                                          \
		if (t->info.queues)                                                                \
			queue_##name(t);                                                           \
	}                                                                                          \
	static void queue_##name(suite *t)

int64_t q_now_us(void);
void q_doze(int64_t us);

typedef struct q_item {
	const char *id;
	const char *content; /* else the id */
	const char *environment;
	int priority;
} q_item;

int q_put(suite *t, sheaf_session *s, q_item i);

#define PUT(s, ...) OK(TRY_PUT(s, __VA_ARGS__))
#define TRY_PUT(s, ...) q_put(t, (s), (q_item){.id = __VA_ARGS__})

/* What came of a claim or a look. */
typedef struct q_got {
	size_t count;
	const char *ids; /* separated by blanks */
	const char *claims;
	const char *token; /* NULL: none */
	size_t waiting;    /* how many are not claimed */
} q_got;

q_got q_claim(suite *t, sheaf_session *s, size_t limit, int64_t lease_us);
/* Claims again and again until a lease is over and there is something. */
q_got q_claim_late(suite *t, sheaf_session *s, size_t limit, int64_t lease_us);
q_got q_look(suite *t, sheaf_session *s);
int q_ack(suite *t, sheaf_session *s, const char *token);
int q_cancel(suite *t, sheaf_session *s, const char *id, int32_t *existed);
/* Until so many items are not claimed. */
void q_wait_until_free(suite *t, sheaf_session *s, size_t count);

typedef struct q_merged {
	size_t count;
	const char *ids;
	const char *content;
	const char *environment; /* NULL: none */
	const char *token;
	size_t bytes;
} q_merged;

q_merged q_merge(suite *t, sheaf_session *s);

#endif
