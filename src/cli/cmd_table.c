/* The one table of commands: what runs them also makes help, completion and the manual. */
#include <string.h>

#include "cmd.h"

/* Of a string of choices, blanks part them. */
#define ROLES                                                                                      \
	"system developer user assistant tool bashExecution custom branchSummary compactionSummary"
#define LEVELS "none process disk replica"
#define TODO_STATUSES "pending in_progress completed"
#define PLAN_STATUSES "draft approved executing completed failed cancelled"

#define FORMATS "anthropic openai-chat openai-responses gemini"
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

static const opt options_none[] = {{0}};

static const opt options_new[] = {
	{OPT_NAME, 'N', "name", "NAME", "what people call it", NULL},
	{OPT_CWD, 'C', "cwd", "DIR", "the directory it is about (default: this one)", NULL},
	{OPT_KIND, 'k', "kind", "KIND", "main (default), subagent, ...", NULL},
	{OPT_PARENT, 'p', "parent", "SESSION", "the session that started it", NULL},
	{OPT_TTL, 0, "ttl", "SPAN", "expires so long after its last record: 90s, 12h, 30d", NULL},
	{0},
};

static const opt options_append[] = {
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

static const opt options_ls[] = {
	{OPT_ALL, 'a', "all", NULL, "of every app and user (with --app: every user of it)", NULL},
	{OPT_LIMIT, 'n', "limit", "N", "at most N of them (default: 50)", NULL},
	{OPT_CURSOR, 0, "cursor", "CURSOR", "go on where the page before ended", NULL},
	{OPT_CWD, 'C', "cwd", "DIR", "only those about this directory", NULL},
	{OPT_NAME, 'N', "name", "NAME", "only those with this name", NULL},
	{OPT_KIND, 'k', "kind", "KIND", "only those of this kind", NULL},
	{OPT_PARENT, 'p', "parent", "SESSION", "only those started by this session", NULL},
	{OPT_SINCE, 0, "since", "TIME", "only those changed since: a date, 90m, 12h, 3d, 2w", NULL},
	{OPT_BEFORE, 0, "before", "TIME", "only those changed before", NULL},
	{OPT_EXPIRED, 0, "expired", NULL, "also expired ones; say what expires when", NULL},
	{0},
};

static const opt options_show[] = {
	{OPT_FULL, 'f', "full", NULL, "nothing folded, exact times", NULL},
	{OPT_LIMIT, 'n', "last", "N", "only the newest N entries", NULL},
	{OPT_BRANCH, 'b', "branch", "NAME", "of this branch instead of main", NULL},
	{OPT_LEAF, 'l', "leaf", "ENTRY", "as of this entry instead of the branch's leaf", NULL},
	{0},
};

static const opt options_path[] = {
	{OPT_LIMIT, 'n', "last", "N", "only the newest N entries", NULL},
	{OPT_BRANCH, 'b', "branch", "NAME", "of this branch instead of main", NULL},
	{OPT_LEAF, 'l', "leaf", "ENTRY", "as of this entry instead of the branch's leaf", NULL},
	{0},
};

static const opt options_tree[] = {
	{OPT_SHORT, 's', "short", NULL, "only what people said and where it branches", NULL},
	{OPT_BRANCH, 'b', "branch", "NAME", "bring out this branch instead of main", NULL},
	{0},
};

static const opt options_context[] = {
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

static const opt options_usage[] = {
	{OPT_BY, 0, "by", "WHAT", "a row for each turn, model, day or session",
         "turn model day session"},
	{OPT_ALL, 'a', "all", NULL, "of every app and user (with --app: every user of it)", NULL},
	{OPT_SINCE, 0, "since", "TIME", "only what was used since: a date, 90m, 12h, 3d, 2w", NULL},
	{OPT_BEFORE, 0, "before", "TIME", "only what was used before", NULL},
	{0},
};

static const opt options_compact[] = {
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

static const opt options_chat[] = {
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

static const opt options_watch[] = {
	{OPT_FROM, 0, "from", "N", "begin after record N (default: the newest; 0: all)", NULL},
	{OPT_FULL, 'f', "full", NULL, "nothing folded, exact times", NULL},
	{0},
};

static const opt options_branch[] = {
	{OPT_DELETE, 'd', "delete", NULL, "forget the branch; its entries stay", NULL},
	{OPT_SUMMARY, 0, "summary", "TEXT", "leave a summary of what is left behind", NULL},
	{OPT_ROOT, 0, "root", NULL, "to before the first entry", NULL},
	{0},
};

static const opt options_queue[] = {
	{OPT_PRIORITY, 0, "priority", "N", "add: greater comes first (default: 0)", NULL},
	{OPT_ENV, 0, "env", "JSON", "add: what the worker should know besides", NULL},
	{OPT_ID, 'i', "id", "ID", "add: with this id; repeating it adds nothing twice", NULL},
	{OPT_LEASE, 0, "lease", "SECONDS", "claim: for so long (default: 60)", NULL},
	{OPT_ALL, 'a', "all", NULL, "claim: everything, merged into one input", NULL},
	{OPT_LIMIT, 'n', "limit", "N", "claim: at most N items (default: 1)", NULL},
	{0},
};

static const opt options_todo[] = {
	{OPT_STATUS, 0, "status", "STATUS", "pending, in_progress or completed", TODO_STATUSES},
	{OPT_ACTIVE, 0, "active", "TEXT", "what to say while it is done", NULL},
	{OPT_PLAN, 0, "plan", "ID", "the plan it belongs to", NULL},
	{OPT_ID, 'i', "id", "ID", "add: with this id; repeating it adds nothing twice", NULL},
	{0},
};

static const opt options_plan[] = {
	{OPT_STATUS, 0, "status", "STATUS", "how far it is", PLAN_STATUSES},
	{OPT_NAME, 'N', "name", "NAME", "what people call it", NULL},
	{OPT_ERROR, 0, "error", "TEXT", "why it failed", NULL},
	{OPT_ID, 'i', "id", "ID", "add: with this id; repeating it adds nothing twice", NULL},
	{0},
};

static const opt options_fork[] = {
	{OPT_AT, 0, "at", "ENTRY", "up to this entry (default: where main stands)", NULL},
	{OPT_NAME, 'N', "name", "NAME", "what people call it", NULL},
	{0},
};

static const opt options_copy[] = {
	{OPT_ALL, 'a', "all", NULL, "of every app and user (with --app: every user of it)", NULL},
	{0},
};

static const opt options_migrate[] = {
	{OPT_PRINT, 0, "print", NULL, "connect to nothing and print the statements", NULL},
	{0},
};

static const opt options_label[] = {
	{OPT_DELETE, 'd', "delete", NULL, "take the label away", NULL},
	{0},
};

static const opt options_retain[] = {
	{OPT_TTL, 0, "ttl", "SPAN", "expires so long after its last record, or never", NULL},
	{OPT_GRACE, 0, "grace", "SPAN", "can be undeleted so long after that, or none", NULL},
	{0},
};

static const opt options_pin[] = {
	{OPT_OFF, 0, "off", NULL, "let it expire again", NULL},
	{0},
};

static const opt options_expire[] = {
	{OPT_DRY_RUN, 'n', "dry-run", NULL, "change nothing, only say what would go", NULL},
	{OPT_ALL, 'a', "all", NULL, "of every app and user (with --app: every user of it)", NULL},
	{OPT_LIMIT, 0, "limit", "N", "remove at most N", NULL},
	{0},
};

static const opt options_state[] = {
	{OPT_SCOPE, 0, "scope", "SCOPE", "of the user or the app alone, without a session",
         "user app"},
	{0},
};

static const opt options_rm[] = {
	{OPT_PURGE, 0, "purge", NULL, "copy what forks still read into them, then erase all", NULL},
	{OPT_FORCE, 'f', "force", NULL, "do not ask; what is not there is no mistake", NULL},
	{0},
};

const command commands[] = {
	{
		.group = "start and add",
		.name = "new",
		.brief = "start a session",
		.synopsis = "new [ID]",
		.about =
			"Makes an empty session and prints its id. Without an ID it gets a new one, a\n"
			"UUID that sorts by time.",
		.examples = "sheaf new demo\nsheaf new --name 'Fix the parser'",
		.run = cmd_new,
		.words_max = 1,
		.options = options_new,
	},
	{
		.name = "append",
		.brief = "add a message to a session",
		.synopsis = "append SESSION [TEXT...]\n"
			    "append SESSION --compact ENTRY [SUMMARY...]\n"
			    "append SESSION --message-json\n"
			    "append SESSION --json-body TYPE\n"
			    "append SESSION --batch",
		.about =
			"Adds to the end of a branch and prints the new id. The text comes from the\n"
			"arguments, from -m, or from stdin (whose last line break is dropped).\n"
			"\n"
			"--message-json takes {\"role\":...,\"content\":[...]} from stdin, --json-body the\n"
			"members of a record of the given type, --batch one record a line:\n"
			"{\"type\":...,\"id\":..., and the body}. A batch is stored whole or not at all.\n"
			"\n"
			"--compact appends a compaction: from then on a model sees the summary in place\n"
			"of everything before ENTRY. Nothing is deleted.\n"
			"\n"
			"With --id the same append can be repeated safely. With --expect-leaf or\n"
			"--expect-revision it fails with exit code 3 if somebody wrote first;\n"
			"--expect-leaf '' means that nothing is there yet.",
		.examples = "echo hello | sheaf append demo --role user\n"
			    "sheaf append demo -r assistant 'Hi! What shall we do?'\n"
			    "sheaf append demo --expect-leaf @2 'Go on'",
		.run = cmd_append,
		.words_min = 1,
		.words_max = -1,
		.word = WORD_SESSION,
		.options = options_append,
	},
	{
		.name = "chat",
		.brief = "talk with a model",
		.synopsis = "chat [SESSION]",
		.about =
			"A conversation in the terminal: what you say is stored before the model is\n"
			"asked, what it answers as it comes. Without SESSION a new one; a SESSION that\n"
			"is there goes on where it was left. /help in it lists what can be said to the\n"
			"chat itself: /tree, /branch, /label, /compact and others. Ctrl-C stops a reply,\n"
			"Ctrl-D ends the chat.\n"
			"\n"
			"--url is the address of any server that speaks one of the formats: anthropic,\n"
			"openai-chat (unless --format says otherwise), openai-responses or gemini.\n"
			"Without one it is the provider's own, and its key comes from\n"
			"$ANTHROPIC_API_KEY, $OPENAI_API_KEY or $GEMINI_API_KEY.\n"
			"\n"
			"From a pipe every line is something said, and only the answers are printed; a\n"
			"failure ends it. With --json the records of each turn, one a line.",
		.examples = "sheaf chat --model claude-sonnet-4-5\n"
			    "sheaf chat demo --url http://localhost:11434 --model qwen3\n"
			    "echo 'And in Rust?' | sheaf chat --continue",
		.run = cmd_chat,
		.words_max = 1,
		.word = WORD_SESSION,
		.options = options_chat,
	},
	{
		.group = "look",
		.name = "ls",
		.brief = "list sessions, newest first",
		.synopsis = "ls",
		.about =
			"With --quiet only the ids. With --json one object a line, and a last line\n"
			"{\"cursor\":...} if there are more.",
		.examples =
			"sheaf ls\nsheaf ls --cwd . --since 3d\nsheaf ls --json | jq -r .session",
		.run = cmd_ls,
		.options = options_ls,
	},
	{
		.name = "show",
		.brief = "read a conversation",
		.synopsis = "show [SESSION]",
		.about =
			"Shows everything said on a branch, from the beginning to its leaf. Long tool\n"
			"output is folded; --full unfolds it. Without SESSION, the newest one.\n"
			"With --json the records, one a line.",
		.examples =
			"sheaf show demo\nsheaf show demo --full --last 10\nsheaf show demo --branch try-2",
		.run = cmd_show,
		.words_max = 1,
		.word = WORD_SESSION,
		.options = options_show,
	},
	{
		.name = "tree",
		.brief = "see all branches of a session",
		.synopsis = "tree [SESSION]",
		.about =
			"Draws every entry. The path of main (or of --branch) goes straight down; what\n"
			"branches off stands to its right. Branches are named in (parentheses), labels\n"
			"in [brackets]. Without SESSION, the newest one.",
		.examples = "sheaf tree demo\nsheaf tree demo --short",
		.run = cmd_tree,
		.words_max = 1,
		.word = WORD_SESSION,
		.options = options_tree,
	},
	{
		.name = "path",
		.brief = "list the entries from the first to the leaf",
		.synopsis = "path [SESSION]",
		.about =
			"One line for each entry: number, id, who spoke, how it begins. Without SESSION,\n"
			"the newest one. With --json the records, one a line.",
		.examples = "sheaf path demo",
		.run = cmd_path,
		.words_max = 1,
		.word = WORD_SESSION,
		.options = options_path,
	},
	{
		.name = "context",
		.brief = "see what a model would see",
		.synopsis = "context [SESSION]\n"
			    "context [SESSION] --format FORMAT [--check]\n"
			    "context - --format FORMAT --check",
		.about =
			"The path resolved through its newest compaction, with every tool call answered\n"
			"exactly once. What had to be mended is noted on stderr. Without SESSION, the\n"
			"newest one. With --json one object with items, notes and the settings in force.\n"
			"\n"
			"With --format the body of the request, as a provider takes it: anthropic,\n"
			"openai-chat, openai-responses or gemini. A pipe gets exactly its bytes and a\n"
			"line break. --json puts format, path, tokens, cache marks and notes around it.\n"
			"\n"
			"--check prints the rules the body breaks in place of it, and fails with exit\n"
			"code 1 if there are any; for SESSION `-` it takes any body from stdin.",
		.examples = "sheaf context demo\n"
			    "sheaf context demo --json | jq '.items[].role'\n"
			    "sheaf context demo --format anthropic --model claude-sonnet-4-5\n"
			    "sheaf context demo --format gemini --leaf @12 --check",
		.run = cmd_context,
		.words_max = 1,
		.word = WORD_SESSION,
		.options = options_context,
	},
	{
		.name = "usage",
		.brief = "count tokens and what they cost",
		.synopsis = "usage [SESSION]",
		.about =
			"The tokens of a session, by model unless --by says otherwise, and what they\n"
			"cost by the list prices of the day. Without SESSION, of all sessions, by\n"
			"session; what a fork inherits is counted once, where it is stored. Days are\n"
			"UTC.\n"
			"\n"
			"A reply of a model without a known price is counted but not in the cost,\n"
			"which then ends in + (or is unknown). SHEAF_MODELS names a file of prices and\n"
			"windows that goes before the built-in ones.",
		.examples = "sheaf usage demo --by turn\n"
			    "sheaf usage --by day --since 2w\n"
			    "sheaf usage --by model --json | jq .total.cost",
		.run = cmd_usage,
		.words_max = 1,
		.word = WORD_SESSION,
		.options = options_usage,
	},
	{
		.name = "cat",
		.brief = "print records as they are stored",
		.synopsis = "cat SESSION [ENTRY]",
		.about =
			"The stored lines, byte for byte, of the whole log or of one entry. On a terminal\n"
			"control characters are escaped, which leaves the JSON the same.",
		.examples = "sheaf cat demo\nsheaf cat demo @3",
		.run = cmd_cat,
		.words_min = 1,
		.words_max = 2,
		.word = WORD_SESSION,
		.options = options_none,
	},
	{
		.name = "watch",
		.brief = "follow a session as it is written",
		.synopsis = "watch [SESSION]",
		.about =
			"Prints what is appended from now on, by whomever, until it is interrupted\n"
			"(exit code 0) or the session is deleted (1). With --from N begins after record\n"
			"N. With --json the records, one a line: the seq of the last one printed is what\n"
			"--from wants to go on. Without SESSION, the newest one.",
		.examples = "sheaf watch demo\nsheaf watch demo --from 0 --json",
		.run = cmd_watch,
		.words_max = 1,
		.word = WORD_SESSION,
		.options = options_watch,
	},
	{
		.group = "work",
		.name = "queue",
		.brief = "let input wait for a session, and take it",
		.synopsis = "queue SESSION [ls]\n"
			    "queue SESSION add [TEXT...]\n"
			    "queue SESSION claim\n"
			    "queue SESSION ack TOKEN\n"
			    "queue SESSION cancel ID",
		.about =
			"add puts a text (from stdin without one) into the queue and prints its id.\n"
			"claim takes what comes first, by priority and then by age; until the lease is\n"
			"over nobody else gets it. ack with the token that claim gave removes it: the\n"
			"work is done. If it comes too late, and somebody else has claimed the item\n"
			"meanwhile, it fails with exit code 3. cancel takes back what nobody has\n"
			"claimed.\n"
			"\n"
			"claim --all joins what waits by line breaks: at most 100 items or 100,000\n"
			"bytes. With --json the token, and the items with their environment.",
		.examples = "sheaf queue demo add 'And then run the tests'\n"
			    "sheaf queue demo claim --all --json\n"
			    "sheaf queue demo ls",
		.run = cmd_queue,
		.words_min = 1,
		.words_max = -1,
		.word = WORD_SESSION,
		.options = options_queue,
	},
	{
		.name = "todo",
		.brief = "keep a list of what is to be done",
		.synopsis = "todo SESSION [ls]\n"
			    "todo SESSION add [TEXT...]\n"
			    "todo SESSION set ID [TEXT...]",
		.about =
			"add takes a new item (from stdin without a text) and prints its id. set changes\n"
			"what is given and leaves the rest. Nothing is overwritten: every version stays\n"
			"in the log, and the latest holds.",
		.examples = "sheaf todo demo add 'Run the tests' --id tests\n"
			    "sheaf todo demo set tests --status in_progress\n"
			    "sheaf todo demo",
		.run = cmd_todo,
		.words_min = 1,
		.words_max = -1,
		.word = WORD_SESSION,
		.options = options_todo,
	},
	{
		.name = "plan",
		.brief = "keep plans, and how far they are",
		.synopsis = "plan SESSION [ls]\n"
			    "plan SESSION add [TEXT...]\n"
			    "plan SESSION set ID [TEXT...]",
		.about = "As todo. A plan is a draft first; then it can be approved, executing,\n"
			 "completed, failed or cancelled, in any order.",
		.examples = "sheaf plan demo add --name Parser --id p1 '1. measure 2. table'\n"
			    "sheaf plan demo set p1 --status approved",
		.run = cmd_plan,
		.words_min = 1,
		.words_max = -1,
		.word = WORD_SESSION,
		.options = options_plan,
	},
	{
		.name = "compact",
		.brief = "put a summary in the place of what was said",
		.synopsis = "compact SESSION --command CMD\n"
			    "compact SESSION --summary TEXT\n"
			    "compact SESSION --plan\n"
			    "compact SESSION --undo\n"
			    "compact SESSION --need",
		.about =
			"Cuts where no tool call is parted from its answer, so that about --keep tokens\n"
			"stay as they are (0: nothing stays), and lets a summary stand for the rest.\n"
			"Nothing is deleted, and --undo takes it back. What would not make the context\n"
			"smaller is refused.\n"
			"\n"
			"--command runs CMD in a shell with the prompt on its stdin and takes its output;\n"
			"what is appended meanwhile is kept. --plan prints the prompt for whoever writes\n"
			"the summary otherwise; give the leaf it was made for with --expect-leaf, so that\n"
			"nothing is summed up that was not in it.",
		.examples = "sheaf compact demo --command 'llm -m haiku'\n"
			    "sheaf compact demo --keep 0 --summary 'We fixed the parser.'\n"
			    "sheaf compact demo --undo",
		.run = cmd_compact,
		.words_min = 1,
		.words_max = 1,
		.word = WORD_SESSION,
		.options = options_compact,
	},
	{
		.group = "branch and name",
		.name = "branch",
		.brief = "list, make, move or forget branches",
		.synopsis = "branch SESSION\n"
			    "branch SESSION NAME [TARGET | --root]\n"
			    "branch SESSION NAME -d",
		.about =
			"A branch is a name for a place in the tree; what is appended to it moves it on.\n"
			"A new branch without TARGET starts where main stands. Moving main back is how\n"
			"to try again from an earlier entry: nothing is deleted.",
		.examples = "sheaf branch demo\n"
			    "sheaf branch demo try-2 @4\n"
			    "sheaf branch demo main @4 --summary 'SIMD was slower'",
		.run = cmd_branch,
		.words_min = 1,
		.words_max = 3,
		.word = WORD_SESSION,
		.options = options_branch,
	},
	{
		.name = "fork",
		.brief = "start a session from a point of another",
		.synopsis = "fork SESSION [NEW]",
		.about =
			"The new session shares everything up to the entry; both go on by themselves.\n"
			"Prints the new id.",
		.examples = "sheaf fork demo demo-2\nsheaf fork demo demo-3 --at @4",
		.run = cmd_fork,
		.words_min = 1,
		.words_max = 2,
		.word = WORD_SESSION,
		.options = options_fork,
	},
	{
		.name = "label",
		.brief = "mark an entry with a word",
		.synopsis = "label SESSION\n"
			    "label SESSION ENTRY LABEL\n"
			    "label SESSION ENTRY -d",
		.about =
			"A label can stand for the entry's id everywhere. Without an entry, lists them.",
		.examples = "sheaf label demo @1 start\nsheaf fork demo again --at start",
		.run = cmd_label,
		.words_min = 1,
		.words_max = 3,
		.word = WORD_SESSION,
		.options = options_label,
	},
	{
		.name = "state",
		.brief = "see and set small values beside the conversation",
		.synopsis = "state [SESSION]\n"
			    "state [SESSION] get KEY\n"
			    "state [SESSION] set KEY VALUE\n"
			    "state [SESSION] rm KEY\n"
			    "state [SESSION] replay\n"
			    "state --scope SCOPE [get KEY]\n"
			    "state --scope app set KEY VALUE\n"
			    "state --scope app rm KEY",
		.about =
			"A key belongs to the session; with the prefix user: to the user in all\n"
			"sessions, with app: to all users of the app. A VALUE is JSON; what is none is\n"
			"taken as text. Setting appends a record with the value in it.\n"
			"\n"
			"Values of the app are applied after the record is stored; replay applies all\n"
			"of a session once more, except what was set since.",
		.examples = "sheaf state demo set theme dark\n"
			    "sheaf state demo get theme\n"
			    "sheaf state --scope app set limit 5",
		.run = cmd_state,
		.words_max = 4,
		.word = WORD_SESSION,
		.options = options_state,
	},
	{
		.name = "rename",
		.brief = "name a session",
		.synopsis = "rename SESSION NAME",
		.about = "The id stays; the name can stand for it. An empty NAME takes it away.",
		.examples = "sheaf rename demo 'Fix the parser'",
		.run = cmd_rename,
		.words_min = 2,
		.words_max = 2,
		.word = WORD_SESSION,
		.options = options_none,
	},
	{
		.group = "keep in order",
		.name = "rm",
		.brief = "delete sessions",
		.synopsis = "rm SESSION...",
		.about =
			"Asks first on a terminal; in a script, several at once need --force. What living\n"
			"forks still read stays, hidden, until they go; --purge copies it into them.",
		.examples = "sheaf rm demo\nsheaf rm --purge demo",
		.run = cmd_rm,
		.words_min = 1,
		.words_max = -1,
		.word = WORD_SESSION,
		.options = options_rm,
	},
	{
		.name = "retain",
		.brief = "say how long a session is kept",
		.synopsis = "retain SESSION [--ttl SPAN] [--grace SPAN]",
		.about =
			"Sessions stay until they are deleted, unless they have a ttl: then they expire\n"
			"so long after their last record was stored. An expired session answers nothing\n"
			"but can be undeleted during its grace (7d unless set); then it is as if\n"
			"deleted, and `sheaf expire` removes it. SPAN is 90s, 15m, 12h, 30d or 2w;\n"
			"--ttl never takes the ttl away, --grace none the grace. Without options, says\n"
			"what holds.",
		.examples = "sheaf retain demo --ttl 30d\nsheaf retain demo --ttl never",
		.run = cmd_retain,
		.words_min = 1,
		.words_max = 1,
		.word = WORD_SESSION,
		.options = options_retain,
	},
	{
		.name = "pin",
		.brief = "keep a session whatever its ttl",
		.synopsis = "pin SESSION [--off]",
		.about = "A pinned session does not expire. It can still be deleted.",
		.examples = "sheaf pin demo\nsheaf pin demo --off",
		.run = cmd_pin,
		.words_min = 1,
		.words_max = 1,
		.word = WORD_SESSION,
		.options = options_pin,
	},
	{
		.name = "undelete",
		.brief = "bring an expired session back",
		.synopsis = "undelete SESSION",
		.about =
			"As long as its grace lasts; its ttl counts from now. `sheaf ls --expired` shows\n"
			"what can be brought back. What was deleted with `sheaf rm` cannot.",
		.examples = "sheaf undelete demo",
		.run = cmd_undelete,
		.words_min = 1,
		.words_max = 1,
		.word = WORD_SESSION,
		.options = options_none,
	},
	{
		.name = "expire",
		.brief = "remove sessions whose time is over",
		.synopsis = "expire [--dry-run] [--all]",
		.about =
			"Deletes sessions that have expired and whose grace is over, as `sheaf rm` does,\n"
			"and prints their ids. Run it now and then: on Redis they vanish by themselves,\n"
			"elsewhere they stay until then, or until the same key is created anew. With\n"
			"--dry-run says what would go, and what can still be undeleted.",
		.examples = "sheaf expire --dry-run\nsheaf expire --all",
		.run = cmd_expire,
		.options = options_expire,
	},
	{
		.name = "check",
		.brief = "verify a session, or all of them",
		.synopsis = "check [SESSION]",
		.about =
			"Reads every byte and changes nothing. Exit code 5 if something is damaged; an\n"
			"unfinished end left by a crash is not, the next writer moves it away.",
		.examples = "sheaf check\nsheaf check demo --json",
		.run = cmd_check,
		.words_max = 1,
		.word = WORD_SESSION,
		.options = options_none,
	},
	{
		.name = "repair",
		.brief = "make a damaged session writable again",
		.synopsis = "repair SESSION",
		.about =
			"Keeps every record that can be read and notes the lost ones in their place. The\n"
			"original stays beside the log.",
		.examples = "sheaf repair demo",
		.run = cmd_repair,
		.words_min = 1,
		.words_max = 1,
		.word = WORD_SESSION,
		.options = options_none,
	},
	{
		.name = "copy",
		.brief = "copy sessions from one store to another",
		.synopsis = "copy SOURCE DESTINATION",
		.about =
			"Copies every session of --app and --user, or with --all of everybody, under the\n"
			"same key and byte for byte: numbers, ids, checksums, forks with what they read,\n"
			"state, and what waits in queues. What was written is read back and compared.\n"
			"\n"
			"It can be broken off and run again at any time: what is there already is\n"
			"compared and continued. Something else under the same key is a conflict, which\n"
			"is reported and left alone (exit code 3). Nothing is deleted at either end.\n"
			"Sessions that are written to meanwhile are copied as far as they went; run it\n"
			"again for the rest.\n"
			"\n"
			"With --json a line for every note, and a last line with the totals.",
		.examples = "sheaf copy --all jsonl:/old jsonl:/new\n"
			    "sheaf copy --all jsonl:/srv/sheaf postgres://sheaf@db/sheaf\n"
			    "sheaf copy --app shop --user ada redis://cache jsonl:/srv/sheaf",
		.run = cmd_copy,
		.words_min = 2,
		.words_max = 2,
		.options = options_copy,
	},
	{
		.name = "migrate",
		.brief = "create or upgrade the tables of a store",
		.synopsis = "migrate [URL]",
		.about =
			"Brings the schema of a postgres: store, or of every server of a postgres+shards:\n"
			"map, to the version this library knows. Run it as the role that is to own the\n"
			"tables. A schema that is newer is refused and left alone.",
		.examples = "sheaf migrate postgres://sheaf@db/sheaf\n"
			    "sheaf migrate --print postgres://db/sheaf | less",
		.run = cmd_migrate,
		.words_max = 1,
		.options = options_migrate,
	},
	{
		.group = "about sheaf",
		.name = "help",
		.brief = "say how a command is used",
		.synopsis = "help [COMMAND]",
		.about = "Without a command, all of it.",
		.examples = "sheaf help append",
		.run = cmd_help,
		.words_max = 1,
		.word = WORD_COMMAND,
		.plumbing = true,
		.options = options_none,
	},
	{
		.name = "completion",
		.brief = "print a completion script for a shell",
		.synopsis = "completion bash|zsh|fish",
		.about =
			"bash: put `source <(sheaf completion bash)` into ~/.bashrc. zsh: write it to a\n"
			"file _sheaf on $fpath. fish: write it to ~/.config/fish/completions/sheaf.fish.",
		.examples = "source <(sheaf completion bash)",
		.run = cmd_completion,
		.words_min = 1,
		.words_max = 1,
		.word = WORD_SHELL,
		.plumbing = true,
		.options = options_none,
	},
	{
		.name = "man",
		.brief = "print the manual page",
		.synopsis = "man",
		.about = "In roff, for man(1).",
		.examples = "sheaf man | man -l -",
		.run = cmd_man,
		.plumbing = true,
		.options = options_none,
	},
	{
		.name = "version",
		.brief = "say which version this is",
		.synopsis = "version",
		.about = "The version of the command, and of the library if it is another.",
		.examples = "sheaf version",
		.run = cmd_version,
		.plumbing = true,
		.options = options_none,
	},
	{0},
};

const topic topics[] = {
	{"Naming sessions and entries",
         "A session is named by its id, by a beginning of it (four characters or more)\n"
         "that no other session has, or by its exact name.\n"
         "\n"
         "An entry is named by its id, by a beginning of it, by a label, by a branch\n"
         "(which means its leaf), or by @N: the number that show, tree and path print."},
	{"Exit status",
         "0  it worked\n"
         "1  it failed: not found, storage, a limit ...\n"
         "2  the command line or the request is malformed\n"
         "3  somebody else wrote first, or it exists already\n"
         "4  not permitted\n"
         "5  stored data is damaged\n"
         "6  a write failed and may or may not be stored: repeat it with the same --id"},
	{"Environment",
         "SHEAF_STORE  where sessions are, unless --store says it; without either\n"
         "             jsonl:$XDG_DATA_HOME/sheaf, which is ~/.local/share/sheaf\n"
         "SHEAF_PAGER, PAGER  what long output goes through on a terminal (less); `cat`\n"
         "             for nothing\n"
         "SHEAF_MODELS a file of models, their windows and prices (see `sheaf usage`)\n"
         "SHEAF_MODEL, SHEAF_URL, SHEAF_FORMAT  what `sheaf chat` uses unless told otherwise\n"
         "ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY  keys of the providers\n"
         "NO_COLOR     if not empty, no colour; FORCE_COLOR, colour also in a pipe"},
	{0},
};

const command *command_find(const char *name)
{
	for (const command *cmd = commands; cmd->name != NULL; cmd++) {
		if (strcmp(cmd->name, name) == 0)
			return cmd;
	}
	return NULL;
}

#define WORD_MAX 16

static int least(int a, int b, int c)
{
	int m = a < b ? a : b;
	return m < c ? m : c;
}

/* How many insertions, removals, changes and swaps of neighbours lead from a to b. */
static int distance(const char *a, const char *b)
{
	int rows[WORD_MAX + 1][WORD_MAX + 1];
	int m = (int)strlen(a), n = (int)strlen(b);
	if (m > WORD_MAX || n > WORD_MAX)
		return WORD_MAX;
	for (int i = 0; i <= m; i++) {
		for (int j = 0; j <= n; j++) {
			if (i == 0 || j == 0) {
				rows[i][j] = i + j;
				continue;
			}
			int change = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			rows[i][j] = least(rows[i - 1][j] + 1, rows[i][j - 1] + 1, change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    rows[i - 2][j - 2] + 1 < rows[i][j])
				rows[i][j] = rows[i - 2][j - 2] + 1;
		}
	}
	return rows[m][n];
}

const command *command_guess(const char *name)
{
	/* Words of other tools that people try first. */
	static const char *const habits[][2] = {
		{"list", "ls"},         {"log", "show"},      {"view", "show"},
		{"add", "append"},      {"delete", "rm"},     {"remove", "rm"},
		{"fsck", "check"},      {"doctor", "check"},  {"create", "new"},
		{"init", "new"},        {"tag", "label"},     {"mv", "rename"},
		{"checkout", "branch"}, {"switch", "branch"},
	};
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++) {
		if (strcmp(habits[i][0], name) == 0)
			return command_find(habits[i][1]);
	}
	const command *best = NULL;
	int nearest = strlen(name) > 3 ? 3 : 2; /* fewer than this many slips */
	for (const command *cmd = commands; cmd->name != NULL; cmd++) {
		int slips = distance(name, cmd->name);
		if (slips < nearest) {
			nearest = slips;
			best = cmd;
		}
	}
	return best;
}
