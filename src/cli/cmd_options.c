/* The options of every command, for the table of commands. */
#include "cmd_options.h"

/* Of a string of choices, blanks part them. */
#define ROLES                                                                                      \
	"system developer user assistant tool bashExecution custom branchSummary compactionSummary"
#define LEVELS "none process disk replica"
#define TODO_STATUSES "pending in_progress completed"
#define PLAN_STATUSES "draft approved executing completed failed cancelled"

#define HIT_ROLES "user assistant call tool system summary title other"

#define FORMATS "anthropic openai-chat openai-responses gemini"
#define AGENTS "claude-code codex gemini-cli pi dive opencode chatgpt uimessage"
#define THINKING_LEVELS "off minimal low medium high"

const opt global_options[] = {
	{OPT_STORE, 'S', "store", "URL", "where: jsonl:PATH, postgres://..., redis://...", NULL},
	{OPT_APP, 0, "app", "APP", "the app whose sessions are meant", NULL},
	{OPT_USER, 0, "user", "USER", "the user whose sessions are meant", NULL},
	{OPT_JSON, 0, "json", NULL, "JSON on stdout for programs; errors as JSON, too", NULL},
	{OPT_COLOR, 0, "color", "WHEN", "auto, always or never", "auto always never"},
	{OPT_NO_PAGER, 0, "no-pager", NULL, "do not pass long output through a pager", NULL},
	{OPT_QUIET, 'q', "quiet", NULL, "no messages, only what was asked for", NULL},
	{OPT_HELP, 'h', "help", NULL, "say how it is used", NULL},
	{OPT_VERSION, 0, "version", NULL, "say which version this is", NULL},
	{0},
};

const opt options_none[] = {{0}};

const opt options_new[] = {
	{OPT_NAME, 'N', "name", "NAME", "what people call it", NULL},
	{OPT_CWD, 'C', "cwd", "DIR", "the directory it is about (default: this one)", NULL},
	{OPT_KIND, 'k', "kind", "KIND", "main (default), subagent, ...", NULL},
	{OPT_PARENT, 'p', "parent", "SESSION", "the session that started it", NULL},
	{OPT_TTL, 0, "ttl", "SPAN", "expires so long after its last record: 90s, 12h, 30d", NULL},
	{0},
};

const opt options_append[] = {
	{OPT_ROLE, 'r', "role", "ROLE", "who speaks (default: user)", ROLES},
	{OPT_MESSAGE, 'm', "message", "TEXT", "the text", NULL},
	{OPT_BRANCH, 'b', "branch", "NAME", "onto this branch instead of main", NULL},
	{OPT_PARENT, 'p', "parent", "ENTRY", "after this entry instead of the branch's leaf", NULL},
	{OPT_ROOT, 0, "root", NULL, "before everything: as a new first entry", NULL},
	{OPT_ID, 'i', "id", "ID", "with this id; repeating it writes nothing twice", NULL},
	{OPT_TURN, 't', "turn", "TURN", "as part of this turn", NULL},
	{OPT_AGENT, 0, "agent", "AGENT", "visible to this agent only", NULL},
	{OPT_PROVIDER, 0, "provider", "NAME", "who made it, e.g. anthropic", NULL},
	{OPT_MODEL, 0, "model", "NAME", "which model made it", NULL},
	{OPT_COMPACT, 0, "compact", "ENTRY", "the text sums up all before this entry", NULL},
	{OPT_MESSAGE_JSON, 0, "message-json", NULL, "read a message as JSON from stdin", NULL},
	{OPT_JSON_BODY, 0, "json-body", "TYPE", "read the rest of such a record from stdin", NULL},
	{OPT_BATCH, 0, "batch", NULL, "read records, one a line, and append all or none", NULL},
	{OPT_EXPECT_LEAF, 0, "expect-leaf", "ENTRY", "only if the branch still ends there", NULL},
	{OPT_EXPECT_REVISION, 0, "expect-revision", "N", "only if nothing was added since", NULL},
	{OPT_DURABILITY, 'd', "durability", "LEVEL", "none, process, disk or replica", LEVELS},
	{OPT_CREATE, 'c', "create", NULL, "make the session if it is not there", NULL},
	{OPT_MEND, 0, "mend-text", NULL, "make broken text U+FFFD instead of refusing it", NULL},
	{0},
};

const opt options_import[] = {
	{OPT_ALL, 'a', "all", NULL, "everything that agents left below the home directory", NULL},
	{OPT_FORMAT, 'f', "format", "FORMAT", "who wrote it (default: it is looked at)", AGENTS},
	{OPT_WATCH, 'w', "watch", NULL, "go on as they are written, until interrupted", NULL},
	{OPT_DRY_RUN, 'n', "dry-run", NULL, "read everything, write nothing", NULL},
	{0},
};

const opt options_export[] = {
	{OPT_FORMAT, 'f', "format", "FORMAT", "for whom", AGENTS " jsonl markdown"},
	{OPT_HTML, 0, "html", NULL, "one page to read in a browser, with the whole tree", NULL},
	{OPT_OUTPUT, 'o', "output", "FILE", "into this file instead of stdout", NULL},
	{OPT_INSTALL, 'i', "install", NULL, "where that agent looks for it, to go on there", NULL},
	{OPT_CWD, 'C', "cwd", "DIR", "with --install: as a session about this directory", NULL},
	{OPT_BRANCH, 'b', "branch", "NAME", "of this branch instead of main", NULL},
	{OPT_LEAF, 'l', "leaf", "ENTRY", "as of this entry instead of the branch's leaf", NULL},
	{0},
};

const opt options_ls[] = {
	{OPT_ALL, 'a', "all", NULL, "of every app and user (with --app: every user of it)", NULL},
	{OPT_LIMIT, 'n', "limit", "N", "at most N of them (default: 50)", NULL},
	{OPT_CURSOR, 0, "cursor", "CURSOR", "go on where the page before ended", NULL},
	{OPT_CWD, 'C', "cwd", "DIR", "only those about this directory", NULL},
	{OPT_PROJECT, 0, "project", "DIR", "only those of this directory or below it", NULL},
	{OPT_HERE, 'H', "here", NULL, "the same for the working directory", NULL},
	{OPT_BY, 0, "by", "WHAT", "put those of a project together", "project"},
	{OPT_AGENT, 0, "agent", "NAME", "only those imported from it: codex, claude-code, ...",
         NULL},
	{OPT_NAME, 'N', "name", "NAME", "only those with this name", NULL},
	{OPT_KIND, 'k', "kind", "KIND", "only those of this kind", NULL},
	{OPT_PARENT, 'p', "parent", "SESSION", "only those started by this session", NULL},
	{OPT_SINCE, 0, "since", "TIME", "only those changed since: a date, 90m, 12h, 3d, 2w", NULL},
	{OPT_BEFORE, 0, "before", "TIME", "only those changed before", NULL},
	{OPT_EXPIRED, 0, "expired", NULL, "also expired ones; say what expires when", NULL},
	{0},
};

const opt options_search[] = {
	{OPT_ALL, 'a', "all", NULL, "of every app and user (with --app: every user of it)", NULL},
	{OPT_LIMIT, 'n', "limit", "N", "at most N hits (default: 20)", NULL},
	{OPT_PROJECT, 'C', "project", "DIR", "only sessions of this directory or below it", NULL},
	{OPT_HERE, 'H', "here", NULL, "the same for the working directory", NULL},
	{OPT_AGENT, 0, "agent", "NAME", "only of this agent: codex, claude-code, ...", NULL},
	{OPT_ROLE, 'r', "role", "ROLE", "only what such a one said", HIT_ROLES},
	{OPT_TOOL, 't', "tool", "NAME", "only calls of this tool and its answers", NULL},
	{OPT_SINCE, 0, "since", "TIME", "only what was said since: a date, 90m, 12h, 3d, 2w", NULL},
	{OPT_BEFORE, 0, "before", "TIME", "only what was said before", NULL},
	{OPT_REBUILD, 0, "rebuild", NULL, "make the index anew first", NULL},
	{0},
};

const opt options_tui[] = {
	{OPT_PROJECT, 'C', "project", "DIR", "only sessions of this directory", NULL},
	{OPT_HERE, 'H', "here", NULL, "the same for the working directory", NULL},
	{0},
};

const opt options_show[] = {
	{OPT_FULL, 'f', "full", NULL, "nothing folded, exact times", NULL},
	{OPT_LIMIT, 'n', "last", "N", "only the newest N entries", NULL},
	{OPT_BRANCH, 'b', "branch", "NAME", "of this branch instead of main", NULL},
	{OPT_LEAF, 'l', "leaf", "ENTRY", "as of this entry instead of the branch's leaf", NULL},
	{0},
};

const opt options_path[] = {
	{OPT_LIMIT, 'n', "last", "N", "only the newest N entries", NULL},
	{OPT_BRANCH, 'b', "branch", "NAME", "of this branch instead of main", NULL},
	{OPT_LEAF, 'l', "leaf", "ENTRY", "as of this entry instead of the branch's leaf", NULL},
	{0},
};

const opt options_tree[] = {
	{OPT_SHORT, 's', "short", NULL, "only what people said and where it branches", NULL},
	{OPT_BRANCH, 'b', "branch", "NAME", "bring out this branch instead of main", NULL},
	{0},
};

const opt options_context[] = {
	{OPT_BRANCH, 'b', "branch", "NAME", "of this branch instead of main", NULL},
	{OPT_LEAF, 'l', "leaf", "ENTRY", "as of this entry instead of the branch's leaf", NULL},
	{OPT_AGENT, 0, "agent", "AGENT", "only what this agent may see", NULL},
	{OPT_FORMAT, 'f', "format", "FORMAT", "as the request body of a provider", "text " FORMATS},
	{OPT_CHECK, 0, "check", NULL, "hold the request against the provider's rules", NULL},
	{OPT_PROVIDER, 0, "provider", "NAME", "as for this provider", NULL},
	{OPT_MODEL, 'm', "model", "NAME", "as for this model (default: the session's)", NULL},
	{OPT_SYSTEM, 's', "system", "TEXT", "the system text, or @FILE", NULL},
	{OPT_TOOLS, 0, "tools", "FILE", "JSON list of {name, description, schema}", NULL},
	{OPT_THINKING, 0, "thinking", "LEVEL", "off, minimal, low, medium or high",
         THINKING_LEVELS},
	{OPT_CACHE, 0, "cache", "WHAT", "full (default), system, messages or off",
         "full system messages off"},
	{OPT_BYTES, 0, "bytes", "N", "at most so many bytes", NULL},
	{OPT_ELIDE, 0, "elide", "WHAT", "what may go for that: images,outputs", NULL},
	{OPT_TOKENS, 0, "tokens", NULL, "estimate its tokens, and say what is cached", NULL},
	{OPT_WITHOUT_COMPACTION, 0, "without-compaction", NULL, "as if never compacted", NULL},
	{OPT_ALLOW_DAMAGE, 0, "allow-damage", NULL, "go on past records that cannot be read", NULL},
	{0},
};

const opt options_usage[] = {
	{OPT_BY, 0, "by", "WHAT", "a row for each turn, model, day, session or project",
         "turn model day session project"},
	{OPT_PROJECT, 'C', "project", "DIR", "only sessions of this directory or below it", NULL},
	{OPT_HERE, 'H', "here", NULL, "the same for the working directory", NULL},
	{OPT_AGENT, 0, "agent", "NAME", "only those imported from it: codex, claude-code, ...",
         NULL},
	{OPT_ALL, 'a', "all", NULL, "of every app and user (with --app: every user of it)", NULL},
	{OPT_SINCE, 0, "since", "TIME", "only what was used since: a date, 90m, 12h, 3d, 2w", NULL},
	{OPT_BEFORE, 0, "before", "TIME", "only what was used before", NULL},
	{0},
};

const opt options_compact[] = {
	{OPT_MODEL, 'm', "model", "NAME", "this model writes the summary", NULL},
	{OPT_URL, 'u', "url", "URL", "its address (default: the provider's own)", NULL},
	{OPT_FORMAT, 'f', "format", "FORMAT", "what the server speaks", FORMATS},
	{OPT_SUMMARY, 0, "summary", "TEXT", "this is the summary; - reads it from stdin", NULL},
	{OPT_COMMAND, 0, "command", "CMD", "CMD reads the prompt and writes the summary", NULL},
	{OPT_PLAN, 0, "plan", NULL, "change nothing: say what would go, print the prompt", NULL},
	{OPT_UNDO, 0, "undo", NULL, "take the last compaction back", NULL},
	{OPT_NEED, 0, "need", NULL, "say how full the window is", NULL},
	{OPT_KEEP, 'k', "keep", "N", "keep about N tokens as they are (default: 20000)", NULL},
	{OPT_WINDOW, 0, "window", "N", "the model takes N tokens (default: as is known)", NULL},
	{OPT_INSTRUCTIONS, 0, "instructions", "TEXT", "what the summary should look after", NULL},
	{OPT_BRANCH, 'b', "branch", "NAME", "of this branch instead of main", NULL},
	{OPT_EXPECT_LEAF, 0, "expect-leaf", "ENTRY", "only if the branch still ends there", NULL},
	{0},
};

const opt options_chat[] = {
	{OPT_FORMAT, 'f', "format", "FORMAT", "what the server speaks", FORMATS},
	{OPT_URL, 'u', "url", "URL", "its address (default: the provider's own)", NULL},
	{OPT_MODEL, 'm', "model", "NAME", "which model (default: the session's last)", NULL},
	{OPT_SYSTEM, 's', "system", "TEXT", "the system text, or @FILE", NULL},
	{OPT_THINKING, 0, "thinking", "LEVEL", "off, minimal, low, medium or high",
         THINKING_LEVELS},
	{OPT_BRANCH, 'b', "branch", "NAME", "on this branch instead of main", NULL},
	{OPT_CONTINUE, 'c', "continue", NULL, "go on with a session, without SESSION the newest",
         NULL},
	{0},
};

const opt options_watch[] = {
	{OPT_FROM, 0, "from", "N", "begin after record N (default: the newest; 0: all)", NULL},
	{OPT_FULL, 'f', "full", NULL, "nothing folded, exact times", NULL},
	{0},
};

const opt options_branch[] = {
	{OPT_DELETE, 'd', "delete", NULL, "forget the branch; its entries stay", NULL},
	{OPT_SUMMARY, 0, "summary", "TEXT", "leave a summary of what is left behind", NULL},
	{OPT_ROOT, 0, "root", NULL, "to before the first entry", NULL},
	{0},
};

const opt options_queue[] = {
	{OPT_PRIORITY, 0, "priority", "N", "add: greater comes first (default: 0)", NULL},
	{OPT_ENV, 0, "env", "JSON", "add: what the worker should know besides", NULL},
	{OPT_ID, 'i', "id", "ID", "add: with this id; repeating it adds nothing twice", NULL},
	{OPT_LEASE, 0, "lease", "SECONDS", "claim: for so long (default: 60)", NULL},
	{OPT_ALL, 'a', "all", NULL, "claim: everything, merged into one input", NULL},
	{OPT_LIMIT, 'n', "limit", "N", "claim: at most N items (default: 1)", NULL},
	{0},
};

const opt options_todo[] = {
	{OPT_STATUS, 0, "status", "STATUS", "pending, in_progress or completed", TODO_STATUSES},
	{OPT_ACTIVE, 0, "active", "TEXT", "what to say while it is done", NULL},
	{OPT_PLAN, 0, "plan", "ID", "the plan it belongs to", NULL},
	{OPT_ID, 'i', "id", "ID", "add: with this id; repeating it adds nothing twice", NULL},
	{0},
};

const opt options_plan[] = {
	{OPT_STATUS, 0, "status", "STATUS", "how far it is", PLAN_STATUSES},
	{OPT_NAME, 'N', "name", "NAME", "what people call it", NULL},
	{OPT_ERROR, 0, "error", "TEXT", "why it failed", NULL},
	{OPT_ID, 'i', "id", "ID", "add: with this id; repeating it adds nothing twice", NULL},
	{0},
};

const opt options_fork[] = {
	{OPT_AT, 0, "at", "ENTRY", "up to this entry (default: where main stands)", NULL},
	{OPT_NAME, 'N', "name", "NAME", "what people call it", NULL},
	{0},
};

const opt options_copy[] = {
	{OPT_ALL, 'a', "all", NULL, "of every app and user (with --app: every user of it)", NULL},
	{0},
};

const opt options_sync[] = {
	{OPT_ALL, 'a', "all", NULL, "of every app and user (with --app: every user of it)", NULL},
	{OPT_AS, 0, "as", "NAME", "what the store that gives is called in the other", NULL},
	{OPT_DRY_RUN, 'n', "dry-run", NULL, "say what would be done and write nothing", NULL},
	{0},
};

const opt options_migrate[] = {
	{OPT_PRINT, 0, "print", NULL, "connect to nothing and print the statements", NULL},
	{0},
};

const opt options_label[] = {
	{OPT_DELETE, 'd', "delete", NULL, "take the label away", NULL},
	{0},
};

const opt options_retain[] = {
	{OPT_TTL, 0, "ttl", "SPAN", "expires so long after its last record, or never", NULL},
	{OPT_GRACE, 0, "grace", "SPAN", "can be undeleted so long after that, or none", NULL},
	{0},
};

const opt options_pin[] = {
	{OPT_OFF, 0, "off", NULL, "let it expire again", NULL},
	{0},
};

const opt options_expire[] = {
	{OPT_DRY_RUN, 'n', "dry-run", NULL, "change nothing, only say what would go", NULL},
	{OPT_ALL, 'a', "all", NULL, "of every app and user (with --app: every user of it)", NULL},
	{OPT_LIMIT, 0, "limit", "N", "remove at most N", NULL},
	{0},
};

const opt options_state[] = {
	{OPT_SCOPE, 0, "scope", "SCOPE", "of the user or the app alone, without a session",
         "user app"},
	{0},
};

const opt options_rm[] = {
	{OPT_PURGE, 0, "purge", NULL, "copy what forks still read into them, then erase all", NULL},
	{OPT_FORCE, 'f', "force", NULL, "do not ask; what is not there is no mistake", NULL},
	{0},
};
