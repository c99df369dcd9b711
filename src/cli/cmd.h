/*
 * The commands: one table that runs them and makes help, completion and the manual.
 */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include <stdbool.h>

#include "base/arena.h"
#include "sheaf.h"

/* Every option of every command; one of a name means the same everywhere. */
typedef enum opt_id {
	OPT_HELP,
	OPT_VERSION,
	OPT_STORE,
	OPT_APP,
	OPT_USER,
	OPT_JSON,
	OPT_COLOR,
	OPT_NO_PAGER,
	OPT_QUIET,
	OPT_ACTIVE,
	OPT_AGENT,
	OPT_ALL,
	OPT_ALLOW_DAMAGE,
	OPT_AS,
	OPT_AT,
	OPT_BATCH,
	OPT_BEFORE,
	OPT_BRANCH,
	OPT_BYTES,
	OPT_CACHE,
	OPT_CHECK,
	OPT_BY,
	OPT_COMMAND,
	OPT_COMPACT,
	OPT_CONTINUE,
	OPT_CREATE,
	OPT_CURSOR,
	OPT_CWD,
	OPT_DELETE,
	OPT_DRY_RUN,
	OPT_DURABILITY,
	OPT_ELIDE,
	OPT_ENV,
	OPT_ERROR,
	OPT_EXPECT_LEAF,
	OPT_EXPECT_REVISION,
	OPT_EXPIRED,
	OPT_FORCE,
	OPT_FORMAT,
	OPT_FROM,
	OPT_FULL,
	OPT_GRACE,
	OPT_HERE,
	OPT_HTML,
	OPT_ID,
	OPT_INSTALL,
	OPT_INSTRUCTIONS,
	OPT_JSON_BODY,
	OPT_KEEP,
	OPT_KIND,
	OPT_LEAF,
	OPT_LEASE,
	OPT_LIMIT,
	OPT_MEND,
	OPT_MESSAGE,
	OPT_MESSAGE_JSON,
	OPT_MODEL,
	OPT_NAME,
	OPT_NEED,
	OPT_OFF,
	OPT_OUTPUT,
	OPT_PARENT,
	OPT_PLAN,
	OPT_PRIORITY,
	OPT_PRINT,
	OPT_PROJECT,
	OPT_PROVIDER,
	OPT_PURGE,
	OPT_REBUILD,
	OPT_ROLE,
	OPT_ROOT,
	OPT_SCOPE,
	OPT_SHORT,
	OPT_SINCE,
	OPT_STATUS,
	OPT_SUMMARY,
	OPT_SYSTEM,
	OPT_THINKING,
	OPT_TOKENS,
	OPT_TOOL,
	OPT_TOOLS,
	OPT_TTL,
	OPT_TURN,
	OPT_UNDO,
	OPT_WATCH,
	OPT_WINDOW,
	OPT_URL,
	OPT_WITHOUT_COMPACTION,
	OPT_COUNT
} opt_id;

typedef struct opt {
	opt_id id;
	char letter;       /* 0 if it has none */
	const char *name;  /* NULL ends a list */
	const char *value; /* what it takes; NULL for a switch */
	const char *help;
	const char *choices; /* the only values it takes, blank-separated, or NULL */
} opt;

/* What completion offers for a command's words. */
enum {
	WORD_NONE,
	WORD_SESSION,
	WORD_COMMAND,
	WORD_SHELL
};

typedef struct cli cli;

typedef struct command {
	const char *name;
	const char *brief;    /* one line, no full stop */
	const char *synopsis; /* one line for each form, without "sheaf" */
	const char *about;    /* paragraphs, lines of at most 76 columns */
	const char *examples; /* one a line */
	int (*run)(cli *c);   /* returns the exit code */
	int words_min;
	int words_max;     /* -1: any number */
	int word;          /* WORD_… of the first word */
	bool plumbing;     /* left out of the short list */
	const char *group; /* starts a group in the short list, or NULL */
	const opt *options;
} command;

/* Ended by a NULL name. */
extern const command commands[];
extern const opt global_options[];

const command *command_find(const char *name);
/* The command whose name is nearest to a mistyped one, or NULL if none is near. */
const command *command_guess(const char *name);

/* Parts of the manual that belong to no command: titles and paragraphs, ended by NULL. */
typedef struct topic {
	const char *title;
	const char *text;
} topic;
extern const topic topics[];

typedef struct screen {
	bool tty;       /* stdout is a terminal */
	bool color;     /* on stdout */
	bool color_err; /* on stderr */
	size_t width;   /* in columns, 0 = not known: cut nothing */
	int64_t now_us;
} screen;

struct cli {
	const command *command;
	const char *values[OPT_COUNT]; /* NULL if not given; "" for a switch */
	const char **words;            /* what is neither option nor command */
	int word_count;
	bool json;
	bool quiet;
	screen screen;
	sheaf_str app;
	sheaf_str user;
	sheaf_store *store;   /* opened on first use */
	sheaf_models *models; /* of $SHEAF_MODELS, once load_models() was called, or NULL */
	arena *memory;        /* lives as long as the command */
	sheaf_error err;
};

static inline bool given(const cli *c, opt_id id)
{
	return c->values[id] != NULL;
}

int cmd_append(cli *c);
int cmd_branch(cli *c);
int cmd_cat(cli *c);
int cmd_chat(cli *c);
int cmd_check(cli *c);
int cmd_compact(cli *c);
int cmd_completion(cli *c);
int cmd_context(cli *c);
int cmd_copy(cli *c);
int cmd_expire(cli *c);
int cmd_export(cli *c);
int cmd_fork(cli *c);
int cmd_help(cli *c);
int cmd_import(cli *c);
int cmd_label(cli *c);
int cmd_ls(cli *c);
int cmd_man(cli *c);
int cmd_migrate(cli *c);
int cmd_new(cli *c);
int cmd_path(cli *c);
int cmd_pin(cli *c);
int cmd_plan(cli *c);
int cmd_pull(cli *c);
int cmd_push(cli *c);
int cmd_queue(cli *c);
int cmd_rename(cli *c);
int cmd_repair(cli *c);
int cmd_retain(cli *c);
int cmd_rm(cli *c);
int cmd_search(cli *c);
int cmd_show(cli *c);
int cmd_todo(cli *c);
int cmd_state(cli *c);
int cmd_tree(cli *c);
int cmd_tui(cli *c);
int cmd_undelete(cli *c);
int cmd_usage(cli *c);
int cmd_version(cli *c);
int cmd_watch(cli *c);

/* cmd_help.c */
int help_short(cli *c); /* bare `sheaf` */
int help_command(cli *c, const command *about);

#endif
