/*
 * The conformance suite's tools: cases that register themselves, checks that
 * end a case, a fresh place in the store under test, short words for the calls
 * a case makes most, and the consistency check every case ends with.
 *
 * Results of the t_* reading calls belong to the case and are freed with it.
 */
#ifndef CONFORMANCE_SUITE_H
#define CONFORMANCE_SUITE_H

#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include "sheaf.h"

#define SUITE_STORES 4
#define SUITE_URL 4200

/* One place a case works in. */
typedef struct suite_place {
	char url[SUITE_URL];
	char app[80];
	sheaf_store *store;
} suite_place;

typedef struct suite {
	const char *url;  /* as given on the command line */
	const char *name; /* of the case */
	suite_place places[SUITE_STORES];
	size_t place_count;
	sheaf_store *store; /* of the first place */
	const char *app;    /* under which the case's keys are; "" where the place is its own */
	sheaf_store_info info;
	sheaf_error err;    /* what OK and FAILS look at */
	sheaf_appended out; /* what the last SAY, CALL, ANSWER or TRY_* did */
	bool memory;        /* the store is gone when it is closed */
	bool unverified;    /* the case left the place in a state the check cannot take */
	jmp_buf escape;
	char reason[2048];
	struct trash *trash;
	size_t trash_count;
	size_t trash_room;
} suite;

/* ---- Cases -------------------------------------------------------------- */

typedef struct suite_case {
	const char *name;
	void (*run)(suite *t);
	const char *file;
	struct suite_case *next;
} suite_case;

void suite_register(suite_case *self);
const suite_case *suite_first(void);

#define CASE(name)                                                                                 \
	static void case_##name(suite *t);                                                         \
	__attribute__((constructor)) static void register_##name(void)                             \
	{                                                                                          \
		static suite_case self = {#name, case_##name, __FILE__, NULL};                     \
		suite_register(&self);                                                             \
	}                                                                                          \
	static void case_##name(__attribute__((unused)) suite *t)

/* Runs one case with its place and its check; false if it failed (t->reason says why). */
bool suite_run(suite *t, const char *url, const suite_case *c);

/* ---- Checks: each ends the case when it does not hold --------------------- */

__attribute__((noreturn, format(printf, 4, 5))) void suite_fail(suite *t, const char *file,
                                                                int line, const char *format, ...);
void suite_arm(suite *t);
void suite_ok(suite *t, int rc, const char *call, const char *file, int line);
void suite_fails(suite *t, int want, int rc, const char *call, const char *file, int line);
void suite_eq(suite *t, uint64_t a, uint64_t b, const char *what, const char *file, int line);
void suite_text(suite *t, sheaf_str got, const char *want, size_t len, const char *what,
                const char *file, int line);
void suite_ids(suite *t, const sheaf_records *r, const char *want, const char *what,
               const char *file, int line);

#define FAIL(...) suite_fail(t, __FILE__, __LINE__, __VA_ARGS__)
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			FAIL("%s", #condition);                                                    \
	} while (0)
/* The call returns 0 and, as promised, leaves t->err alone. */
#define OK(call) (suite_arm(t), suite_ok(t, (call), #call, __FILE__, __LINE__))
/* The call returns this code, and t->err, if it was given, agrees and says FAILED. */
#define FAILS(code, call)                                                                          \
	(suite_arm(t), suite_fails(t, SHEAF_##code, (call), #call, __FILE__, __LINE__))
#define EQ(a, b) suite_eq(t, (uint64_t)(a), (uint64_t)(b), #a " == " #b, __FILE__, __LINE__)
/* A sheaf_str is this C string. */
#define TEXT(got, want) suite_text(t, (got), (want), strlen(want), #got, __FILE__, __LINE__)
#define BYTES(got, ptr, len) suite_text(t, (got), (ptr), (len), #got, __FILE__, __LINE__)
#define CSTR(got, want)                                                                            \
	suite_text(t, sheaf_str_of(got), (want), strlen(want), #got, __FILE__, __LINE__)
/* The ids of a list of records, in order, separated by spaces. */
#define IDS(records, want) suite_ids(t, (records), (want), #records, __FILE__, __LINE__)
/* The leaf of main, or of a branch; "" before the first entry. */
#define LEAF(s, want) CSTR(t_leaf(t, (s), NULL), (want))
#define LEAF_OF(s, branch, want) CSTR(t_leaf(t, (s), (branch)), (want))

/* ---- Places --------------------------------------------------------------- */

/* A place of that name which is certainly new. */
bool suite_place_make(suite_place *p, const char *url, const char *name);
/* Opens the case's store: a new memory store, a fresh directory, else an app of its own. */
void suite_open(suite *t);
/* Closes every session and store of the case and opens the stores again (memory: sessions only). */
void suite_reopen(suite *t);
/* A second, empty place of the same kind. */
suite_place *suite_other(suite *t);
/* A second store object on the case's own place (memory: the same one, for it has no other). */
sheaf_store *suite_twin(suite *t);

/* Reads everything back and fails the case unless it is consistent. */
void suite_verify(suite *t);

/* ---- Words ---------------------------------------------------------------- */

/* Whatever a case may want to say about an append; zero is the default. */
typedef struct put {
	const char *id;
	const char *branch;
	const char *parent; /* id or label */
	int root;           /* 1: a new root */
	int partial;
	int64_t time_us;
	const char *turn;
	const char *author;
	const char *agent;
	const char *invocation_id;
	const char *extra;
	const char *state_delta;
	int expect;
	const char *leaf;
	uint64_t revision;
	int durability;
} put;

sheaf_entry_options t_entry(const put *p);
sheaf_append_options t_how(const put *p);

sheaf_key t_key(suite *t, const char *session);
sheaf_key t_key_of(suite *t, const char *app, const char *user, const char *session);
sheaf_session *t_new(suite *t, const char *session);
sheaf_session *t_existing(suite *t, const char *session);
sheaf_session *t_open_in(suite *t, sheaf_store *store, const sheaf_key *key, int mode);
sheaf_session *t_fork(suite *t, sheaf_session *source, const char *at, const char *session);
void t_keep(suite *t, sheaf_session *s); /* closed at the end of the case */
void t_close(suite *t, sheaf_session *s);
sheaf_session *t_restart(suite *t, const char *session); /* suite_reopen(), then t_existing() */

int t_say(suite *t, sheaf_session *s, const char *role, const char *text, put p);
int t_call(suite *t, sheaf_session *s, const char *call, const char *tool, const char *input,
           put p);
int t_answer(suite *t, sheaf_session *s, const char *call, const char *text, put p);
int t_json(suite *t, sheaf_session *s, const char *type, const char *body, put p);
int t_compact(suite *t, sheaf_session *s, const char *summary, const char *first_kept, put p);
int t_label(suite *t, sheaf_session *s, const char *target, const char *label);
int t_branch(suite *t, sheaf_session *s, const char *name, const char *target);
int t_rename(suite *t, sheaf_session *s, const char *name);

/* An append of one message: must succeed, or (TRY_) gives its code. t->out has the result. */
#define SAY(s, role, text, ...) OK(TRY_SAY(s, role, text, __VA_ARGS__))
#define TRY_SAY(s, role, text, ...) t_say(t, (s), (role), (text), (put){__VA_ARGS__})
#define CALL(s, call, tool, ...) OK(t_call(t, (s), (call), (tool), "{}", (put){__VA_ARGS__}))
#define ANSWER(s, call, text, ...) OK(t_answer(t, (s), (call), (text), (put){__VA_ARGS__}))
#define JSON(s, type, body, ...) OK(TRY_JSON(s, type, body, __VA_ARGS__))
#define TRY_JSON(s, type, body, ...) t_json(t, (s), (type), (body), (put){__VA_ARGS__})
#define COMPACT(s, summary, kept, ...) OK(TRY_COMPACT(s, summary, kept, __VA_ARGS__))
#define TRY_COMPACT(s, summary, kept, ...) t_compact(t, (s), (summary), (kept), (put){__VA_ARGS__})
#define LABEL(s, target, label) OK(t_label(t, (s), (target), (label)))
#define BRANCH(s, name, target) OK(t_branch(t, (s), (name), (target)))

sheaf_batch *t_batch(suite *t);
/* Adds a text message to a batch; gives the code. */
int t_batch_say(suite *t, sheaf_batch *b, const char *role, const char *text, put p);
#define ADD(batch, role, text, ...) OK(t_batch_say(t, (batch), (role), (text), (put){__VA_ARGS__}))
int t_append_batch(suite *t, sheaf_session *s, sheaf_batch *b, put p);

const char *t_leaf(suite *t, sheaf_session *s, const char *branch);
const sheaf_head_view *t_head(suite *t, sheaf_session *s);
uint64_t t_revision(suite *t, sheaf_session *s);
const sheaf_records *t_path(suite *t, sheaf_session *s, const char *branch);
const sheaf_records *t_all(suite *t, sheaf_session *s);
const sheaf_records *t_records(suite *t, sheaf_session *s, const sheaf_read_options *options);
const sheaf_entry *t_get(suite *t, sheaf_session *s, const char *id);
const sheaf_records *t_children(suite *t, sheaf_session *s, const char *id);
const sheaf_records *t_labels(suite *t, sheaf_session *s);
const sheaf_tree *t_tree(suite *t, sheaf_session *s);
const sheaf_list *t_list(suite *t, const sheaf_list_options *options);
const sheaf_list *t_list_mine(suite *t); /* everything under t->app and user "" */
const sheaf_context *t_context(suite *t, sheaf_session *s);
const sheaf_context *t_context_with(suite *t, sheaf_session *s,
                                    const sheaf_context_options *options);
/* Hands a result that a case made itself to the case's end. */
const sheaf_records *t_keep_records(suite *t, sheaf_records *r);

/*
 * A context in a line: the id of each message, S(text) for a compaction's
 * summary, B(text) for a branch's, X(text) for a custom, !call for a made-up
 * answer, ~text for other synthetic messages, R(text) for replacement messages.
 */
const char *t_items(suite *t, const sheaf_context *c);
#define ITEMS(context, want) CSTR(t_items(t, (context)), (want))
/* Whether a context has this note on an entry or call; NULL takes any. */
bool t_noted(const sheaf_context *c, int what, const char *detail);

/* The state in a line, "KEY=VALUE KEY=VALUE": all that a session sees; of a user, or (NULL) an app. */
const char *t_state(suite *t, sheaf_session *s);
const char *t_store_state(suite *t, const char *app, const char *user);
#define STATE(s, want) CSTR(t_state(t, (s)), (want))
#define SET(s, key, value) OK(sheaf_session_state_set((s), S(key), S(value), &t->err))

/* Memory that lives as long as the case. */
void *t_alloc(suite *t, size_t size);
char *t_format(suite *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `count` times the byte. */
char *t_fill(suite *t, char byte, size_t count);
bool t_contains(sheaf_str text, const char *piece);
static inline sheaf_str S(const char *text)
{
	return sheaf_str_of(text);
}

/* The value of a string member of a JSON object's text without escapes, or NULL. */
const char *t_member(suite *t, sheaf_str json, const char *name);

uint32_t suite_crc32c(const void *bytes, size_t len);

#endif
