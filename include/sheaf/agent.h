/*
 * The agent: turns of a conversation with a model, its tools and a session.
 *
 * A turn is: the input is stored, the model is asked, its reply is stored, the
 * tools it calls are run, their answers are stored, the model is asked again,
 * until it calls none. Every message is in the session before the next step
 * begins, so a process that dies loses nothing that was said; the next run sees
 * that the turn was interrupted, says so in the log, and goes on. Without a
 * session the same happens in memory and nothing is written.
 *
 *     sheaf_agent_options how = SHEAF_AGENT_OPTIONS_INIT;
 *     sheaf_client_open(&client, &where, &err);       (sheaf/client.h)
 *     how.model = sheaf_client_model(client);
 *     render.model = sheaf_str_of("claude-sonnet-4-5");
 *     how.render = &render;
 *     how.session = session;
 *     sheaf_agent_new(&agent, &how, &err);
 *     rc = sheaf_agent_run_text(&turn, agent, sheaf_str_of("Hello"), NULL, &err);
 *     if (rc == 0)
 *             fwrite(turn->text.ptr, 1, turn->text.len, stdout);
 *     sheaf_turn_free(turn);
 *     sheaf_agent_free(agent);
 *
 * The order of a run: the session is loaded, the pre-generation hooks are
 * called, the input is stored, the model and the tools take turns, the
 * post-generation hooks are called, and the end of the turn is stored.
 *
 * An agent does not change once it is made: threads may run it at the same time
 * on different sessions. On one session there is one run at a time in a process
 * (SHEAF_BUSY otherwise). A second process that writes to the branch meanwhile
 * is noticed: the turn ends with SHEAF_STALE. Callbacks are called on the thread
 * of the run.
 */
#ifndef SHEAF_AGENT_H
#define SHEAF_AGENT_H

#include "compaction.h"
#include "ingest.h"
#include "queue.h"

SHEAF_BEGIN

/* ---- Cancelling -------------------------------------------------------- */

/** A switch that ends a run. Set it from any thread, or from a signal handler. */
typedef struct sheaf_cancel sheaf_cancel;

SHEAF_API sheaf_cancel *sheaf_cancel_new(void); /* NULL when out of memory; caller frees */
SHEAF_API void sheaf_cancel_free(sheaf_cancel *cancel);
SHEAF_API void sheaf_cancel_set(sheaf_cancel *cancel, int on); /* 0: it can be used again */
SHEAF_API int sheaf_cancel_is_set(const sheaf_cancel *cancel); /* NULL never is */

/* ---- Models ------------------------------------------------------------ */

/** Takes what a model says. Lives as long as the call it is given to. */
typedef struct sheaf_answer sheaf_answer;

/** The HTTP status, before any byte; 200 if it is never said. `retry_after_us`: how long the
 * provider wants to be left alone; -1 = it did not say. */
SHEAF_API void sheaf_answer_status(sheaf_answer *answer, int32_t http_status,
                                   int64_t retry_after_us);

/**
 * Bytes of the response body as they come, cut anywhere: server-sent events, a
 * whole reply, or an error body; which of them is found out here.
 * @return 0; SHEAF_CANCELLED, SHEAF_FORMAT, SHEAF_TOO_LARGE, SHEAF_NOMEM: send no more and return
 *         this code
 */
SHEAF_API int sheaf_answer_feed(sheaf_answer *answer, sheaf_str bytes, sheaf_error *err);

/** A finished assistant message instead of bytes, from a model that speaks no wire format. It is
 * copied, with provider, model and usage (may be NULL) if it does not say them itself. `stop` is
 * SHEAF_STOP_*; UNKNOWN = tools if it calls any, else the end. */
SHEAF_API int sheaf_answer_message(sheaf_answer *answer, sheaf_message *message, int32_t stop,
                                   const sheaf_usage *usage, sheaf_error *err);

/** Whether the event that ends a reply has come; what may follow (usage, an end mark) comes at once. */
SHEAF_API int sheaf_answer_done(const sheaf_answer *answer);

/** Whether the run was cancelled. To be asked at least every 100 ms while waiting. */
SHEAF_API int sheaf_answer_cancelled(const sheaf_answer *answer);

/**
 * Sends a request and passes on the answer.
 * @return 0 when the response is over, whatever its status; SHEAF_CANCELLED; SHEAF_MODEL (there is
 *         no connection, or it broke) and SHEAF_TIMEOUT are tried again; any other code ends the
 *         turn
 */
typedef int (*sheaf_send_fn)(void *ctx, const sheaf_request *request, sheaf_answer *answer,
                             sheaf_error *err);

typedef struct sheaf_model {
	sheaf_send_fn send;
	void *ctx;
	int32_t format; /* SHEAF_FORMAT_*: what requests are rendered as */
	int32_t reserved0;
} sheaf_model;

/* ---- Tools ------------------------------------------------------------- */

/** A call a model made. Strings live as long as what it came in. */
typedef struct sheaf_call {
	sheaf_str id;
	sheaf_str name;
	sheaf_str input; /* JSON, as the model wrote it */
	sheaf_str turn;
	sheaf_session *session;     /* NULL without one */
	const sheaf_cancel *cancel; /* look at it while working long; may be NULL */
	int32_t approved; /* 1: it was suspended, and is run now because somebody said so */
	int32_t reserved0;
} sheaf_call;

/** Takes a tool's answer: any number of these, in any order. */
typedef struct sheaf_tool_answer sheaf_tool_answer;
SHEAF_API int sheaf_tool_answer_text(sheaf_tool_answer *answer, sheaf_str text);
SHEAF_API int sheaf_tool_answer_image(sheaf_tool_answer *answer, sheaf_str source_type,
                                      sheaf_str media_type, sheaf_str data);

/** What a tool returns when its answer comes later, from a person: see sheaf_agent_resume(). */
#define SHEAF_TOOL_SUSPEND 1

/**
 * Runs a tool.
 * @return 0; SHEAF_TOOL_SUSPEND; a negative code: the model is told that the tool failed, by the
 *         text added, or if there is none by err->message. The turn goes on either way.
 */
typedef int (*sheaf_tool_fn)(void *ctx, const sheaf_call *call, sheaf_tool_answer *answer,
                             sheaf_error *err);

typedef struct sheaf_agent_tool {
	sheaf_tool tool;
	sheaf_tool_fn run;
	void *ctx;
} sheaf_agent_tool;

/* ---- Turns ------------------------------------------------------------- */

/** How a turn ended; in the log by its name. */
enum {
	SHEAF_TURN_COMPLETED = 0,  /* "completed" */
	SHEAF_TURN_SUSPENDED = 1,  /* "suspended": calls wait for somebody's answer */
	SHEAF_TURN_LIMIT = 2,      /* "limit": steps_max requests, and it wanted more */
	SHEAF_TURN_CANCELLED = 3,  /* "cancelled" */
	SHEAF_TURN_FAILED = 4,     /* "failed" */
	SHEAF_TURN_INTERRUPTED = 5 /* "interrupted": found open by a later run */
};

SHEAF_API const char *sheaf_turn_outcome_name(int32_t outcome);

/** A turn as far as it came. One free. */
typedef struct sheaf_turn {
	sheaf_str id;
	int32_t outcome;
	int32_t stop;     /* SHEAF_STOP_* of the last reply: LENGTH and REFUSAL are worth showing */
	int32_t code;     /* what the run returned */
	uint32_t steps;   /* replies of the model */
	uint32_t retries; /* requests that were sent again */
	uint32_t compacted;           /* automatic compactions */
	sheaf_usage usage;            /* of all its replies, also those given up and summaries */
	sheaf_str text;               /* of the last reply, NUL-terminated; "" if it has none */
	const sheaf_records *records; /* the turn's entries on the path, oldest first; never NULL;
	                                 of more than SHEAF_CONTEXT_BYTES_DEFAULT the newest */
	size_t pending_count;
	const sheaf_call *pending; /* SUSPENDED: the calls that wait */
} sheaf_turn;

SHEAF_API void sheaf_turn_free(const sheaf_turn *turn);

/* ---- Watching ---------------------------------------------------------- */

enum {
	SHEAF_EVENT_TURN_START = 1,
	SHEAF_EVENT_REQUEST = 2,          /* `request` is about to be sent */
	SHEAF_EVENT_DELTA = 3,            /* `delta`, `text`: a piece of the reply */
	SHEAF_EVENT_MESSAGE_END = 4,      /* a message is stored: `entry`, of any role */
	SHEAF_EVENT_TOOL_START = 5,       /* `call` */
	SHEAF_EVENT_TOOL_END = 6,         /* `call`, `text` (the answer), `code` */
	SHEAF_EVENT_COMPACTION_START = 7, /* `text`: its trigger; "branch" for a branch's summary */
	SHEAF_EVENT_COMPACTION_END = 8,   /* `code`; `text`: what went wrong */
	SHEAF_EVENT_RETRY = 9,       /* `attempt`, `wait_us`, `code`, `text`: why; what was shown of
	                              the reply is void */
	SHEAF_EVENT_TURN_END = 10,   /* `turn` */
	SHEAF_EVENT_INTERRUPTED = 11 /* the turn before had no end: `text` is its id */
};

/** What happens in a run. Members that an event does not have are zero; all is valid during the
 * call only. */
typedef struct sheaf_event {
	int32_t kind;
	int32_t delta; /* SHEAF_DELTA_* */
	int32_t code;
	uint32_t attempt;
	int64_t wait_us;
	sheaf_str turn_id;
	sheaf_str text;
	sheaf_session *session; /* NULL without one */
	const sheaf_request *request;
	const sheaf_entry *entry;
	const sheaf_call *call;
	const sheaf_turn *turn;
} sheaf_event;

typedef void (*sheaf_event_fn)(void *ctx, const sheaf_event *event);

/* ---- Hooks ------------------------------------------------------------- */

enum {
	SHEAF_HOOK_PRE = 1, /* the history is loaded, nothing of the turn is stored */
	SHEAF_HOOK_POST = 2 /* generation is over, the turn's end is not stored yet */
};

/** What a hook may look at and do. Lives during the call. */
typedef struct sheaf_hook sheaf_hook;

SHEAF_API const sheaf_context *sheaf_hook_context(const sheaf_hook *hook); /* PRE: the history */
SHEAF_API size_t sheaf_hook_input_count(const sheaf_hook *hook);
SHEAF_API sheaf_message *sheaf_hook_input(const sheaf_hook *hook, size_t i);
/** PRE: a further, dynamic piece of the system text for this turn. */
SHEAF_API int sheaf_hook_system(sheaf_hook *hook, sheaf_str text);
/** PRE: a message that is stored and sent before the input. Copied. */
SHEAF_API int sheaf_hook_message(sheaf_hook *hook, sheaf_message *message);
SHEAF_API const sheaf_turn *sheaf_hook_turn(const sheaf_hook *hook); /* POST */

/**
 * @return 0; from PRE a negative code refuses the input: nothing is stored, and the run returns the
 *         code. From POST a negative code is what the run returns; the turn stays as it is.
 */
typedef int (*sheaf_hook_fn)(void *ctx, sheaf_hook *hook, sheaf_error *err);

typedef struct sheaf_agent_hook {
	int32_t when;
	int32_t reserved0;
	sheaf_hook_fn call;
	void *ctx;
} sheaf_agent_hook;

/* ---- Agents ------------------------------------------------------------ */

/** Whether leaving a branch by sheaf_agent_branch() asks the summariser what was left behind. */
enum {
	SHEAF_SUMMARY_NEVER = 0,
	SHEAF_SUMMARY_ASK = 1,
	SHEAF_SUMMARY_ALWAYS = 2
};

/** Asked by the policy ASK: `count` entries would be left behind. 1 = summarise them. */
typedef int (*sheaf_ask_fn)(void *ctx, sheaf_session *session, size_t count);

typedef struct sheaf_agent sheaf_agent;

typedef struct sheaf_agent_options {
	size_t size;            /* sizeof(sheaf_agent_options) */
	sheaf_model model;      /* must have `send` and `format` */
	sheaf_session *session; /* must outlive the agent; NULL: nothing is written */
	sheaf_str branch;       /* empty = "main" */
	sheaf_str agent;        /* on entries, and what is visible; {NULL,0} = everything */
	const sheaf_render_options *render; /* may be NULL; `format` and the tools are filled in */
	const sheaf_compaction_options *compaction; /* may be NULL; `branch`, `provider`, `model`,
	                                               `extra_tokens` and `trigger` are filled in, and
	                                               `models`, if NULL, by render's */
	int32_t no_compaction;  /* 1: never compact by itself; then overflow is SHEAF_CONTEXT */
	int32_t branch_summary; /* SHEAF_SUMMARY_* */
	sheaf_summarise_fn summarise; /* NULL: the model is asked */
	void *summarise_ctx;
	sheaf_ask_fn ask;
	void *ask_ctx;
	const sheaf_agent_tool *tools;
	size_t tool_count;
	const sheaf_agent_hook *hooks; /* called in this order */
	size_t hook_count;
	sheaf_event_fn on_event;
	void *event_ctx;
	uint32_t steps_max;     /* requests in one turn; 0 = 100 */
	int32_t retries;        /* of one request; 0 = 4; -1 = none */
	int64_t backoff_us;     /* before the first retry, doubled for each more, give or take a
	                       quarter; 0 = 1 s. What the provider asks for comes first. */
	int64_t backoff_max_us; /* never wait longer; 0 = 60 s. A provider that asks for more ends
	                           the turn. */
} sheaf_agent_options;

/* clang-format off */
#define SHEAF_AGENT_OPTIONS_INIT                                                                   \
	{sizeof(sheaf_agent_options), {0, 0, 0, 0}, 0, {0, 0}, {0, 0}, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
	 0, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/**
 * Makes an agent. Strings, tools and hooks are copied; the contexts of callbacks,
 * the session and tables of models are borrowed for its life.
 * @return 0; SHEAF_INVALID (no model, a tool without a name or function), SHEAF_NOMEM
 */
SHEAF_API int sheaf_agent_new(sheaf_agent **out, const sheaf_agent_options *options,
                              sheaf_error *err);
/** No run may be going on. NULL is fine. */
SHEAF_API void sheaf_agent_free(sheaf_agent *agent);

/** What one call may do otherwise than the agent. Zero means as the agent. */
typedef struct sheaf_run_options {
	size_t size;            /* sizeof(sheaf_run_options) */
	sheaf_session *session; /* instead of the agent's */
	int32_t no_session;     /* 1: without one, also if the agent has one */
	int32_t no_follow_ups;  /* 1: leave what waits in the queue when the turn is over */
	sheaf_str branch;
	sheaf_str model;          /* instead of render.model */
	sheaf_str thinking_level; /* instead of render.thinking_level */
	sheaf_str turn;           /* the turn's id; else a new UUIDv7 */
	sheaf_cancel *cancel;
	int64_t wait_us; /* for another run on the session to end; 0 = SHEAF_BUSY at once. Ends
	                    early when cancelled. */
} sheaf_run_options;

/* clang-format off */
#define SHEAF_RUN_OPTIONS_INIT                                                                     \
	{sizeof(sheaf_run_options), 0, 0, 0, {0, 0}, {0, 0}, {0, 0}, {0, 0}, 0, 0}
/* clang-format on */

/**
 * Runs a turn: appends the input and lets the model answer, with all that
 * belongs to it. When the turn is completed and input waits in the session's
 * queue, that is the next turn, and so on.
 *
 * @param out      the last turn; caller frees. Set whenever a turn was begun, also on failure;
 *                 else NULL. May be NULL itself.
 * @param messages borrowed. None (count 0): what waits in the queue, or if nothing does the
 *                 history as it is, which must not end with a finished reply: so a turn that was
 *                 interrupted is taken up again
 * @param options  may be NULL
 * @return 0 (look at turn->outcome: COMPLETED, SUSPENDED or LIMIT);
 *         SHEAF_CANCELLED: what had arrived is stored;
 *         SHEAF_BUSY: another run is going on, or the last turn is suspended (then
 *         sheaf_agent_pending() says so);
 *         SHEAF_CONTEXT: there is nothing to answer, or the window is full and compacting does
 *         not help;
 *         SHEAF_MODEL: the model cannot be reached, or refuses (err->message has its words);
 *         SHEAF_DENIED: it does not accept the key; SHEAF_TIMEOUT; SHEAF_STALE: somebody else
 *         moved the branch; a hook's code; and what appends return
 */
SHEAF_API int sheaf_agent_run(sheaf_turn **out, sheaf_agent *agent, sheaf_message *const *messages,
                              size_t count, const sheaf_run_options *options, sheaf_error *err);

/** The same with one user message of one text. */
SHEAF_API int sheaf_agent_run_text(sheaf_turn **out, sheaf_agent *agent, sheaf_str text,
                                   const sheaf_run_options *options, sheaf_error *err);

/* ---- Input from elsewhere ---------------------------------------------- */

/*
 * Input for a run that is going on, or for the next. It waits in the session's
 * queue (sheaf/queue.h), from any process; without a session in the agent's
 * memory. What has a priority above 0 is a steering: the model sees it with its
 * next request. The rest follows when the turn is over.
 */
#define SHEAF_PRIORITY_STEER 1

/** Queues a text. `session` NULL: the agent's. @return as sheaf_session_enqueue() */
SHEAF_API int sheaf_agent_steer(sheaf_agent *agent, sheaf_session *session, sheaf_str text,
                                sheaf_error *err);
SHEAF_API int sheaf_agent_follow_up(sheaf_agent *agent, sheaf_session *session, sheaf_str text,
                                    sheaf_error *err);

/* ---- Suspended turns --------------------------------------------------- */

/** The answer to a call that waits. */
typedef struct sheaf_resume {
	sheaf_str call_id;
	sheaf_str text;   /* what the model is told */
	int32_t is_error; /* e.g. because it was not permitted */
	int32_t run;      /* 1: run the tool now instead, with call->approved set */
} sheaf_resume;

/** The suspended turn a session ends with. Caller frees. @return 0; SHEAF_NOT_FOUND; SHEAF_BUSY */
SHEAF_API int sheaf_agent_pending(sheaf_turn **out, sheaf_agent *agent,
                                  const sheaf_run_options *options, sheaf_error *err);

/**
 * Answers calls of a suspended turn and, when all are answered, goes on with it:
 * the same turn, its usage added up. Works in another process than the one that
 * suspended.
 * @return as sheaf_agent_run(); SHEAF_NOT_FOUND: no turn is suspended, or no such call waits;
 *         SHEAF_INVALID: one is answered twice (then nothing is stored)
 */
SHEAF_API int sheaf_agent_resume(sheaf_turn **out, sheaf_agent *agent, const sheaf_resume *answers,
                                 size_t count, const sheaf_run_options *options, sheaf_error *err);

/** Gives a suspended turn up: its calls are answered with an error, its outcome is "cancelled". */
SHEAF_API int sheaf_agent_give_up(sheaf_agent *agent, const sheaf_run_options *options,
                                  sheaf_error *err);

/* ---- Compacting and branching ------------------------------------------ */

/** Compacts now, by the agent's summariser. `instructions` may be {NULL,0}.
 * @return as sheaf_compact(), and SHEAF_BUSY */
SHEAF_API int sheaf_agent_compact(sheaf_agent *agent, sheaf_str instructions,
                                  const sheaf_run_options *options, sheaf_appended *out,
                                  sheaf_error *err);

/**
 * Moves the branch to an entry (id or label; empty = before the first), with a
 * summary of what is left behind if the policy says so.
 * @param summarised  may be NULL: whether there is one
 * @return as sheaf_session_branch(), and SHEAF_BUSY
 */
SHEAF_API int sheaf_agent_branch(sheaf_agent *agent, sheaf_str target,
                                 const sheaf_run_options *options, int32_t *summarised,
                                 sheaf_error *err);

SHEAF_END
#endif
