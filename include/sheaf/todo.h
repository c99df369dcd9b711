/*
 * What an agent keeps beside a conversation: todos, plans, summaries, and what
 * was compacted when.
 *
 * Todos, plans and summaries are facts: they are no part of the tree, hang on
 * no branch, and never reach a context by themselves. Setting an item appends
 * the whole of it; of each id the latest holds. Nothing is overwritten: every
 * version stays in the log. A fork has what was there at its base.
 *
 *     sheaf_todo todo = SHEAF_TODO_INIT;
 *     todo.content = sheaf_str_of("Run the tests");
 *     todo.active_form = sheaf_str_of("Running the tests");
 *     todo.status = sheaf_str_of("in_progress");
 *     sheaf_session_set_todo(session, &todo, NULL, NULL, &out, &err);   out.id is its id
 *
 * Facts of these types that were appended otherwise and lack an id, or have a
 * status that is none, are passed over by the lists.
 */
#ifndef SHEAF_TODO_H
#define SHEAF_TODO_H

#include "session.h"

SHEAF_BEGIN

/* ---- Todos ------------------------------------------------------------- */

/** One todo, given and got. */
typedef struct sheaf_todo {
	size_t size;           /* sizeof(sheaf_todo), set by the caller */
	sheaf_str id;          /* {NULL,0}: a new one, whose id is the record's */
	sheaf_str content;     /* "Run the tests" */
	sheaf_str active_form; /* "Running the tests"; may be {NULL,0} */
	sheaf_str status;      /* pending (also if not given), in_progress, completed */
	sheaf_str plan_id;     /* of the plan it belongs to; may be {NULL,0} */
	/* Got only: */
	uint64_t seq;       /* of the record that holds */
	int64_t created_us; /* time of the first record with this id */
	int64_t updated_us; /* of the one that holds */
} sheaf_todo;

/* clang-format off */
#define SHEAF_TODO_INIT {sizeof(sheaf_todo), {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, 0, 0, 0}
/* clang-format on */

typedef struct sheaf_todos {
	size_t count;
	const sheaf_todo *const *items; /* in the order in which they first came */
	uint64_t revision;              /* of the session when they were read */
} sheaf_todos;

/**
 * Adds a todo, or sets all of one that is there: any status may follow any other.
 * @return 0; SHEAF_INVALID (a status that is none, no content), and as for every append
 */
SHEAF_API int sheaf_session_set_todo(sheaf_session *session, const sheaf_todo *todo,
                                     const sheaf_entry_options *entry,
                                     const sheaf_append_options *how, sheaf_appended *out,
                                     sheaf_error *err);

/** The todos as they are now. Caller frees. */
SHEAF_API int sheaf_session_todos(sheaf_todos **out, sheaf_session *session, sheaf_error *err);
SHEAF_API void sheaf_todos_free(const sheaf_todos *todos);

/* ---- Plans ------------------------------------------------------------- */

/** One plan, given and got. */
typedef struct sheaf_plan {
	size_t size;       /* sizeof(sheaf_plan), set by the caller */
	sheaf_str id;      /* {NULL,0}: a new one, whose id is the record's */
	sheaf_str name;    /* may be {NULL,0} */
	sheaf_str content; /* the plan itself */
	sheaf_str status;  /* draft (also if not given), approved, executing, completed, failed,
	                      cancelled */
	sheaf_str error;   /* why it failed; may be {NULL,0} */
	/* Got only: */
	uint64_t seq;
	int64_t created_us;
	int64_t updated_us;
} sheaf_plan;

/* clang-format off */
#define SHEAF_PLAN_INIT {sizeof(sheaf_plan), {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, 0, 0, 0}
/* clang-format on */

typedef struct sheaf_plans {
	size_t count;
	const sheaf_plan *const *items; /* in the order in which they first came */
	uint64_t revision;
} sheaf_plans;

/** As sheaf_session_set_todo(). */
SHEAF_API int sheaf_session_set_plan(sheaf_session *session, const sheaf_plan *plan,
                                     const sheaf_entry_options *entry,
                                     const sheaf_append_options *how, sheaf_appended *out,
                                     sheaf_error *err);

/** The plans as they are now. Caller frees. */
SHEAF_API int sheaf_session_plans(sheaf_plans **out, sheaf_session *session, sheaf_error *err);
SHEAF_API void sheaf_plans_free(const sheaf_plans *plans);

/* ---- Summaries --------------------------------------------------------- */

/** What was said up to an entry, in short; unlike a compaction it changes no context. */
typedef struct sheaf_summary {
	sheaf_str id; /* of the record */
	sheaf_str text;
	sheaf_str leaf; /* the entry it goes up to; {NULL,0} before the first */
	uint64_t seq;
	int64_t time_us;
} sheaf_summary;

typedef struct sheaf_summaries {
	size_t count;
	const sheaf_summary *const *items; /* oldest first */
	uint64_t revision;
} sheaf_summaries;

/**
 * Records a summary.
 * @param leaf  the entry it goes up to (id or label); empty = the leaf of main. To
 *              repeat it by its id when others may have gone on, give the leaf
 * @return 0; SHEAF_NOT_FOUND for the leaf, and as for every append
 */
SHEAF_API int sheaf_session_add_summary(sheaf_session *session, sheaf_str text, sheaf_str leaf,
                                        const sheaf_entry_options *entry,
                                        const sheaf_append_options *how, sheaf_appended *out,
                                        sheaf_error *err);

/** All summaries of the session. Caller frees. */
SHEAF_API int sheaf_session_summaries(sheaf_summaries **out, sheaf_session *session,
                                      sheaf_error *err);
SHEAF_API void sheaf_summaries_free(const sheaf_summaries *summaries);

/* ---- Compactions ------------------------------------------------------- */

/** One compaction, as it was recorded. */
typedef struct sheaf_compaction_info {
	sheaf_str id;
	sheaf_str branch;
	sheaf_str summary;
	sheaf_str trigger;       /* manual, auto, threshold, …; {NULL,0} if it does not say */
	sheaf_str first_kept_id; /* {NULL,0}: nothing was kept, or other messages were */
	uint64_t tokens_before;  /* 0 if it does not say */
	uint64_t tokens_after;
	uint64_t seq;
	int64_t time_us;
} sheaf_compaction_info;

typedef struct sheaf_compactions {
	size_t count;
	const sheaf_compaction_info *const *items; /* oldest first */
	uint64_t revision;
} sheaf_compactions;

/**
 * The history of compactions. Caller frees.
 * @param branch  only those on the path of this branch; {NULL,0} = of the whole log
 * @return 0; SHEAF_NOT_FOUND for the branch
 */
SHEAF_API int sheaf_session_compactions(sheaf_compactions **out, sheaf_session *session,
                                        sheaf_str branch, sheaf_error *err);
SHEAF_API void sheaf_compactions_free(const sheaf_compactions *compactions);

SHEAF_END
#endif
