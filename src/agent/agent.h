/*
 * The inside of an agent and of a run, and what the files of this folder share.
 *
 *   agent.c    agents: options copied, input queued
 *   busy.c     one run at a time on a session
 *   answer.c   what a model sends: bytes or a message
 *   exchange.c one request and its reply; whether to try again
 *   loop.c     requests and tools in turn, until the model is done
 *   tools.c    calls of tools and their answers
 *   input.c    what waits in the queue
 *   turn.c     beginning and end of a turn; what is left of one that was not ended
 *   run.c      the public calls that run turns
 *   leave.c    compacting, and branches that are left
 *   client.c   the HTTP client's module
 *
 * A run without a session works on a scratch session in the agent's own store in
 * memory. So there is one way of doing everything.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sheaf/agent.h"
#include "sheaf/state.h"

#define NOTHING ((sheaf_str){NULL, 0})

struct sheaf_agent {
	arena *arena;
	sheaf_agent_options o;       /* its strings and lists are copies in the arena */
	sheaf_render_options render; /* what `o` points to; with the tools */
	sheaf_compaction_options compaction;
	sheaf_store *memory;  /* scratch sessions of runs without one */
	sheaf_session *queue; /* and the input that waits for those */
};

/* Input of a turn. */
typedef struct input {
	sheaf_message *message;
	sheaf_str id;    /* the entry's; {NULL,0} = a new one */
	sheaf_str extra; /* a JSON object of the entry's members, or {NULL,0} */
	bool owned;      /* the message is freed with the inputs */
} input;

/* What is claimed from a queue at once. */
typedef struct inputs {
	arena *arena;
	input *items;
	size_t count;
	sheaf_str token; /* {NULL,0}: not from a queue */
} inputs;

typedef struct run {
	sheaf_agent *agent;
	sheaf_session *session; /* never NULL: a scratch one without */
	sheaf_session *shown;   /* NULL without */
	sheaf_session *queue;
	struct busy *busy;
	sheaf_str branch;
	sheaf_str provider;
	sheaf_str model;
	sheaf_str thinking_level;
	sheaf_str turn_wanted; /* id of the first turn */
	sheaf_cancel *cancel;
	bool follow_ups;
	sheaf_error err; /* of what failed last */
	/* the turn */
	arena *arena;  /* lives as long as the turn */
	size_t stored; /* how many entries */
	bool resumed;  /* it was suspended; others are stored already */
	int32_t outcome;
	int32_t stop;
	uint32_t steps;
	uint32_t retries;
	uint32_t compacted;
	sheaf_usage usage;
	sheaf_system *system; /* the agent's and what hooks added */
	size_t system_count;
	bool quiet;       /* observers are told nothing: it works on a copy */
	bool summarising; /* a compaction got as far as that */
	bool no_room;     /* compacting by itself has failed: not again in this turn */
	bool called;      /* the last reply called tools */
	bool open_calls;  /* the last reply has calls that nobody has answered */
	char turn[SHEAF_ID_ROOM];
	char leaf[SHEAF_ID_ROOM]; /* where the branch ends, as far as the run knows */
} run;

/* ---- agent.c ------------------------------------------------------------ */

void message_freep(sheaf_message **m);
void records_freep(sheaf_records **r);
void context_freep(sheaf_context **c);
void request_freep(sheaf_request **r);

void sum_usage(sheaf_usage *sum, const sheaf_usage *more);

/* ---- busy.c ------------------------------------------------------------- */

/* Takes the session for this run, waiting so long at most. SHEAF_BUSY, SHEAF_CANCELLED. */
int busy_take(struct busy **out, sheaf_session *session, int64_t wait_us,
              const sheaf_cancel *cancel, sheaf_error *err);
void busy_release(struct busy *busy);

/* ---- answer.c ----------------------------------------------------------- */

/* A request's reply, as it came. */
typedef struct exchange {
	sheaf_reply *reply;
	sheaf_message *message; /* what was said, or NULL */
	sheaf_message *own;     /* to be freed */
	int32_t stop;
	int32_t fault;
	int32_t complete;
	int32_t status;
	int32_t calls; /* how many tools it calls; -1 = look */
	bool deltas;   /* pieces of it were shown */
	sheaf_usage usage;
	int64_t retry_after_us; /* -1 = not said */
	char words[160];        /* the provider's, of a failure */
} exchange;

void exchange_free(exchange *x);

/* Sends a request and takes the reply. Returns what `send` did; the exchange is filled either way. */
int exchange_send(run *r, const sheaf_request *request, bool shown, exchange *x, sheaf_error *err);

/* ---- exchange.c --------------------------------------------------------- */

/* Asks for a reply to the history and stores it; `*reply_id` is its entry, "" if nothing was said. */
int exchange_step(run *r, char reply_id[SHEAF_ID_ROOM], sheaf_error *err);

/* The agent's summariser, or its model. `ctx` is a run. */
int exchange_summarise(void *ctx, const sheaf_cut *plan, sheaf_summary_sink *out, sheaf_error *err);

/* Compacts if there is need (`trigger` NULL) or for a reason. SHEAF_COMPACT: it cannot be done. */
int exchange_compact(run *r, const char *trigger, sheaf_str instructions, sheaf_appended *out,
                     sheaf_error *err);

/* The context as this run's model will see it. */
int exchange_context(run *r, sheaf_context **out, sheaf_error *err);

/* ---- loop.c ------------------------------------------------------------- */

/* From stored input to the end of generation; sets the outcome. */
int loop_run(run *r, sheaf_error *err);

/* ---- tools.c ------------------------------------------------------------ */

/* Runs what the reply calls and stores the answers; `*suspended` counts those that come later. */
int tools_run(run *r, const char *reply_id, size_t *suspended, sheaf_error *err);

/* Stores an answer in words. */
int tools_answer(run *r, const sheaf_call *call, sheaf_str text, int is_error, sheaf_error *err);

/* Runs one call and stores its answer. SHEAF_TOOL_SUSPEND: nothing is stored. */
int tools_call(run *r, const sheaf_call *call, sheaf_error *err);

/* The calls at the end of the history that nobody has answered, in `a`. */
int tools_open(run *r, arena *a, sheaf_call **out, size_t *count, sheaf_error *err);

/* Answers them: the turn is over without them. */
int tools_close(run *r, sheaf_str text, sheaf_error *err);

/* ---- input.c ------------------------------------------------------------ */

/* Claims what waits: all of it, or what steers. Empty if nothing does. */
int input_take(run *r, bool steering, inputs *out, sheaf_error *err);
int input_done(run *r, const inputs *in, sheaf_error *err); /* it is stored */
void inputs_free(inputs *in);

/* ---- turn.c ------------------------------------------------------------- */

void run_event(run *r, sheaf_event *event);
bool run_cancelled(const run *r);
/* Sleeps, unless cancelled: SHEAF_CANCELLED. */
int run_sleep(run *r, int64_t us, sheaf_error *err);

/* Stores a message of the turn at the leaf. `id` and `extra` may be {NULL,0}. */
int turn_append(run *r, const sheaf_message *message, sheaf_str id, sheaf_str extra,
                sheaf_error *err);

/* `,"usage":{…}` as records have it. */
void write_usage(buf *b, const sheaf_usage *usage);

/* What the last turn on the branch is. */
typedef struct last_turn {
	bool open;      /* it has no end */
	bool suspended; /* it waits */
	char id[SHEAF_ID_ROOM];
	sheaf_usage usage; /* of a suspended one, so far */
} last_turn;

int turn_last(run *r, last_turn *out, sheaf_error *err);

/* One turn from its input to its stored end. `*out` is set if it was begun. */
int turn_run(run *r, inputs *in, sheaf_turn **out, sheaf_error *err);

/* Goes on with a turn that was suspended. */
int turn_resume(run *r, const last_turn *last, const sheaf_resume *answers, size_t count,
                sheaf_turn **out, sheaf_error *err);

/* Stores the end of a turn. */
int turn_end(run *r, const char *id, int32_t outcome, const sheaf_usage *usage,
             const sheaf_call *pending, size_t pending_count, sheaf_error *err);

/* The turn for the caller. */
int turn_make(run *r, int code, sheaf_turn **out, sheaf_error *err);

/* ---- run.c -------------------------------------------------------------- */

int run_open(run *r, sheaf_agent *agent, const sheaf_run_options *options, sheaf_error *err);
void run_close(run *r);

#endif
