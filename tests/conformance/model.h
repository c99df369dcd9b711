/*
 * A store written as plainly as possible: arrays and loops, nothing shared with
 * the library, nothing fast. Histories run on it and on real stores in
 * lockstep; an answer is a line of text, and all must give the same.
 *
 * Records are spoken of by number, because some ids are made by the library;
 * `name` says how an operation names an entry.
 */
#ifndef CONFORMANCE_MODEL_H
#define CONFORMANCE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sheaf.h"

#define KEYS 6     /* sessions a history plays with: "s0" … "s5" */
#define SPECS 5    /* records in one append at most */
#define BRANCHES 8 /* more are never made */
#define WORD 24
#define MODEL_RECORDS 2048 /* a session never has more */

/* How an operation names an entry: by number (of whatever record that is), or by a word. */
typedef struct name {
	enum {
		NAME_NONE,
		NAME_SEQ,
		NAME_WORD
	} how;
	uint64_t seq;
	char word[WORD];
} name;

typedef enum spec_kind {
	SPEC_TEXT,
	SPEC_CALL,
	SPEC_ANSWER,
	SPEC_MODEL,
	SPEC_LEVEL,
	SPEC_CUSTOM,
	SPEC_CUSTOM_TEXT,
	SPEC_LABEL,
	SPEC_TITLE
} spec_kind;

/* One record to append. */
typedef struct spec {
	spec_kind what;
	char id[WORD];
	const char *role; /* text */
	char text[WORD];
	int calls[2]; /* call, answer: numbers of tool calls */
	int call_count;
	char branch[WORD]; /* "" = main */
	bool has_parent;
	name parent; /* NONE with has_parent: a new root */
	name target; /* label */
	char turn[WORD];
	char agent[WORD];
	uint64_t tokens; /* 0: no usage */
	bool partial;
	int64_t time_us;
} spec;

typedef enum op_kind {
	OP_OPEN_NEW,
	OP_APPEND,
	OP_BATCH,
	OP_TURN,
	OP_LABEL,
	OP_BRANCH,
	OP_BRANCH_DELETE,
	OP_BRANCH_SUMMARY,
	OP_CLEAR,
	OP_RENAME,
	OP_COMPACT,
	OP_FORK,
	OP_COPY,
	OP_EXPORT,
	OP_DELETE,
	OP_PURGE,
	OP_RESTART,
	OP_HEAD,
	OP_PATH,
	OP_RECORDS,
	OP_LABELS,
	OP_TREE,
	OP_CONTEXT,
	OP_GET,
	OP_CHILDREN,
	OP_RESOLVE,
	OP_LIST,
	OP_COUNT
} op_kind;

typedef struct op {
	op_kind what;
	int key;
	int other;  /* key of what is made: fork, copy, export */
	int handle; /* 0 or 1: which of two handles */
	spec specs[SPECS];
	int count;
	int expect;
	name leaf; /* expected */
	uint64_t revision;
	name target;     /* branch, label, fork, export, compaction, get, children, context, path */
	char word[WORD]; /* branch name, label, session name, summary, prefix */
	bool metadata;   /* rename: gives metadata too */
	char turn[WORD];
	uint64_t tokens;
	char id[WORD]; /* compaction */
	int64_t time_us;
	/* reads */
	bool backward, newest, own_only, without;
	char agent[WORD];
	uint64_t from_seq, kinds;
	size_t limit;
	int64_t after_us;
} op;

/* Text that grows. */
typedef struct answer {
	char *text;
	size_t len;
	size_t room;
} answer;

void answer_clear(answer *a);
void answer_add(answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void answer_free(answer *a);

/* ---- The model ---------------------------------------------------------- */

/* One record. Once made it never changes; forks and copies point to the same one. */
typedef struct m_record {
	uint64_t seq;
	int kind;      /* SHEAF_KIND_* */
	char id[WORD]; /* "" where the library makes it */
	uint64_t parent;
	char branch[WORD];
	uint64_t batch_index, batch_count;
	spec spec;       /* what was given, for records made from one */
	uint64_t target; /* label, leaf, compaction: the number of an entry, 0 = none */
	char text[WORD]; /* label, name, branch of a leaf, summary */
	bool gone;       /* leaf: the branch is deleted */
	bool named;      /* session_info: says a name */
	bool described;  /* session_info: says metadata (its text is `metadata`) */
	char metadata[WORD];
	char turn[WORD];
	uint64_t tokens;
	bool timed; /* its time is the test's, not the clock's */
	int64_t time_us;
} m_record;

typedef struct m_branch {
	char name[WORD];
	uint64_t leaf;
} m_branch;

typedef struct m_session {
	bool there;
	bool hidden;
	int self; /* different for every session that ever was */
	m_record **records;
	int *homes; /* the session that stores each */
	size_t count;
	size_t room;
	uint64_t base;
	char source[WORD];
	m_branch branches[BRANCHES]; /* main is first */
	int branch_count;
	char title[WORD];
	char metadata[WORD];
} m_session;

typedef struct model {
	m_session sessions[KEYS];
	int born;
	void **memory; /* all records, freed at once */
	size_t memory_count;
	size_t memory_room;
} model;

void model_clear(model *m);
/* Runs an operation and writes its answer. */
void model_run(model *m, const op *o, answer *a);

/* What the files of the model share. */
void m_session_begin(model *m, m_session *s);
void m_session_push(m_session *s, m_record *r, int home);
void m_session_apply(m_session *s, const m_record *r);
m_record *m_session_add(model *m, m_session *s, int kind);
void m_add_leaf(model *m, m_session *s, const char *branch, uint64_t target, bool gone);
void m_add_label(model *m, m_session *s, uint64_t target, const char *label);
void m_add_title(model *m, m_session *s, const char *title, const char *metadata);
void m_answer_code(answer *a, int rc);
void m_run_fork(model *m, m_session *s, m_session *f, const op *o, answer *a);
void m_run_copy(model *m, m_session *s, m_session *c, answer *a);
void m_run_export(model *m, m_session *s, m_session *e, const op *o, answer *a);
void m_run_delete(model *m, m_session *s, const op *o, answer *a);
bool m_is_fact(const m_record *r);
bool m_is_visible(const m_session *s);
/* The entry a name stands for, or an error code. */
int m_resolve(const m_session *s, const name *n, uint64_t *seq);
const char *m_label(const m_session *s, uint64_t seq); /* "" if it has none */
m_branch *m_branch_find(m_session *s, const char *branch);
void m_read(model *m, const op *o, answer *a);
/* Whether a compaction that keeps from `cut` (0: nothing) may hang on `leaf`. */
int m_may_compact(const m_session *s, uint64_t leaf, uint64_t cut);
size_t m_path(const m_session *s, uint64_t leaf, m_record **path);

#endif
