/* What the files of search share: an open index and how it follows its store. */
#ifndef SEARCH_SEARCH_INSIDE_H
#define SEARCH_SEARCH_INSIDE_H

#include <pthread.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "search/index.h"
#include "store/store.h"

struct sheaf_search {
	sheaf_store *store;
	const index_ops *ops; /* of the module, which stays loaded */
	index_file *file;
	char *path; /* NULL: in memory */
	pthread_mutex_t mutex;
	sheaf_search_progress_fn progress;
	void *ctx;
	bool rebuilt;
	/* When all of the store was last seen to be indexed: a sum over its stamps, for whom, and the
	   index's changes until then. */
	struct {
		bool known;
		uint64_t sum;
		uint64_t whom;
		uint64_t changes;
	} settled;
};

/* ---- text.c: what a record says ------------------------------------------------- */

typedef struct record_text {
	arena *a; /* of the record that is being read */
	json_doc *doc;
	buf text;
	buf tools;
	index_doc out; /* views into the two above and the arena */
	bool any;      /* there is something to index */
} record_text;

/* Kinds of records that have text. */
#define TEXT_KINDS                                                                                 \
	(SHEAF_KIND_BIT(SHEAF_KIND_MESSAGE) | SHEAF_KIND_BIT(SHEAF_KIND_COMPACTION) |              \
	 SHEAF_KIND_BIT(SHEAF_KIND_BRANCH_SUMMARY) | SHEAF_KIND_BIT(SHEAF_KIND_CUSTOM))

/* Asked for the tool of a call that a result does not name, told of calls. */
typedef struct tool_names {
	int (*told)(void *ctx, sheaf_str call, sheaf_str tool, sheaf_error *err);
	int (*asked)(void *ctx, sheaf_str call, buf *tool, bool *found, sheaf_error *err);
	void *ctx;
} tool_names;

/* Reads a line into `t->out`. A line that cannot be read has no text. */
int text_of_record(record_text *t, sheaf_str line, uint64_t seq, const tool_names *names,
                   sheaf_error *err);
void text_done(record_text *t); /* for _cleanup_ */

/* ---- place.c: where the index lies --------------------------------------------------- */

/* The path of a store's index, made if it is not there; NULL: in memory. */
int place_make(char **path, sheaf_store *store, sheaf_error *err);
/* The path of the index beside the logs, or of the one in the cache; NULL: there is none. */
int place_look(char **path, sheaf_store *store, bool beside, sheaf_error *err);
/* Throws an index away: the file and what SQLite has beside it. */
void place_drop(const char *path);

/* ---- follow.c -------------------------------------------------------------------------- */

/* Takes in what changed of an app's and user's sessions ({NULL,0}: all); says how many did. */
int follow(sheaf_search *s, sheaf_str app, sheaf_str user, uint64_t *updated, sheaf_error *err);

/* ---- search.c ---------------------------------------------------------------------------- */

int search_module(const index_ops **out, bool *there, sheaf_error *err);

#endif
