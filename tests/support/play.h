/*
 * Scenarios: histories of a store as tables of steps, and a player for them.
 *
 * The tests of faults and crashes play the same scenarios. Each step is one
 * call of the library (two where a session must be opened first), with ids and
 * times that depend on the step alone, so that it can be repeated and so that
 * two runs can be compared.
 */
#ifndef SUPPORT_PLAY_H
#define SUPPORT_PLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "sheaf.h"

typedef enum step_kind {
	STEP_END = 0,
	STEP_CREATE,       /* session, named after itself */
	STEP_CREATE_STATE, /* the same with first values */
	STEP_OPEN,         /* a handle on what exists, recovering it if need be */
	STEP_CLOSE,        /* the handle */
	STEP_REOPEN,       /* the store: closed and opened again */
	STEP_TEXT,         /* a message of `bytes` bytes, under an id of ours */
	STEP_STATE,        /* the same, and it sets values of session and user */
	STEP_AUTO,         /* the same under an id the library makes */
	STEP_BATCH,        /* `count` messages of `bytes` bytes */
	STEP_CUSTOM,       /* `count` tiny custom entries in one batch */
	STEP_LABEL,        /* the first entry */
	STEP_NAME,         /* renames the session */
	STEP_BRANCH,       /* makes the branch "side" at the first entry */
	STEP_COMPACT,      /* everything */
	STEP_AGAIN,        /* the message of step `count` once more: it exists */
	STEP_FORK,         /* other from session */
	STEP_COPY,         /* session to other */
	STEP_EXPORT,       /* the path of session to other */
	STEP_APP,          /* sets a value of the session's app */
	STEP_DELETE,
	STEP_PURGE,
	STEP_REPAIR,
	STEP_PUT,    /* an item of `bytes` bytes into the queue, under an id of ours */
	STEP_TAKE,   /* claims `count` items and acknowledges them */
	STEP_CANCEL, /* the item of step `count` */
	/* these only read, and say what they read */
	STEP_LIST,
	STEP_RECORDS,
	STEP_CONTEXT,
	STEP_TREE,
	STEP_PATH,
	STEP_CHECK,
	STEP_QUEUE,
	/* these change files behind the library's back; for setups on jsonl */
	STEP_DAMAGE, /* flips a bit in the middle of the log */
	STEP_TEAR,   /* puts half a line at the end */
	STEP_DAMAGE_QUEUE,
	STEP_TEAR_QUEUE
} step_kind;

typedef struct step {
	step_kind kind;
	const char *session; /* "s" or "app/user/s" */
	const char *other;
	unsigned bytes;
	unsigned count;
	int durability;
} step;

typedef struct scenario {
	const char *name;
	const step
		*setup; /* played before anything is counted, failed or recorded; may be empty, then
	                      the first step opens the store */
	const step *steps;
	bool files;    /* needs jsonl */
	unsigned dear; /* takes long: where every n is tried, this many share the work of each */
} scenario;

extern const scenario scenarios[];
extern const size_t scenario_count;

size_t steps_count(const step *steps);
bool step_reads(const step *s);
bool step_damages(const step *s);
bool step_tears(const step *s);
/* The file a damage or a tear is done to, beneath the store's directory. */
void step_file(const step *s, char *out, size_t room);

#define PLAY_SESSIONS 8

/* The sessions a scenario speaks of. */
typedef struct cast {
	const char *names[PLAY_SESSIONS];
	size_t count;
} cast;

void cast_of(cast *out, const scenario *sc);

typedef struct player {
	char dir[256]; /* of a jsonl store; "" plays on memory: */
	sheaf_store *store;
	struct {
		const char *name;
		sheaf_session *handle;
	} open[PLAY_SESSIONS];
	char auto_id[64][SHEAF_ID_ROOM]; /* by step: what the library called it */
	char token[64][SHEAF_ID_ROOM];   /* by step: what it claimed and has not acknowledged */
	char *said;                      /* what the last reading step said; malloc */
	bool existed;                    /* a repeat found its work done */
} player;

/* Opens the store. `dir` NULL: where it was, or memory. */
int player_open(player *p, const char *dir, sheaf_error *err);
/* Opens it and plays a setup. */
int player_set_up(player *p, const scenario *sc, const char *dir, sheaf_error *err);
void player_close(player *p); /* store and handles; `said` and what is on the disk stay */
void player_free(player *p);  /* all of it */

/* Steps of setups are numbered from here on. */
#define SETUP_FROM 40u

/*
 * Plays step number `at` of a scenario. A repeat with `again` takes what an
 * earlier try left behind for success.
 */
int player_do(player *p, const step *s, unsigned at, bool again, sheaf_error *err);

/* play_queue.c: the steps on queues, and the queue of a session as text; malloc. */
int player_queue(player *p, sheaf_session *s, const step *what, unsigned at, bool again,
                 const char *content, sheaf_error *err);
char *queue_text(sheaf_session *s, int *rc, sheaf_error *err);

/* ---- What a store says ------------------------------------------------------------ */

/*
 * A session as text: absent, hidden, or every record it shows and its branches.
 * `masked` leaves out what two runs have different: ids the library made, crcs.
 * The caller frees.
 */
char *session_text(sheaf_store *store, const char *dir, const char *name, bool masked);

char *text_masked(const char *text); /* the same for what a reading step said; caller frees */

/* All sessions of a cast, one after the other. `store` NULL: opened for reading, and closed. */
char *store_text(sheaf_store *store, const char *dir, const cast *who, bool masked);

/* The list of the whole store as text. NULL with *rc if it fails. */
char *list_text(sheaf_store *store, int *rc, sheaf_error *err);

/* Problems of the kinds in `mask` (1 << SHEAF_PROBLEM_…) that check finds; -1 if it fails. */
int check_count(sheaf_store *store, unsigned mask, char *why, size_t room);

/* ---- Files -------------------------------------------------------------------------- */

void tree_remove(const char *dir);
size_t open_descriptors(void);
/* Whether any file beneath `dir` holds this text; its path comes back. */
bool tree_holds(const char *dir, const char *text, char *where, size_t room);
/* Whether any file beneath `dir` has a name with this beginning. */
bool tree_names(const char *dir, const char *beginning, char *where, size_t room);
/* A new directory for scratch files, in memory where there is such a place. */
void scratch_dir(char out[256], const char *what);
double test_scale(void); /* SHEAF_TEST_SCALE, 1 unless set */

#endif
