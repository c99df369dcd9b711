/* What the manual says that belongs to no command: names, exit codes, the environment. */
#include "cmd.h"

const topic topics[] = {
	{"Naming sessions and entries",
         "A session is named by its id, by a beginning of it (four characters or more)\n"
         "that no other session has, or by its exact name. Of an id with dots, such as\n"
         "codex.0199..., what stands before a dot can be left out.\n"
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
         "6  a write failed and may or may not be stored: repeat it with the same --id\n"
         "130  stopped by Ctrl-C"},
	{"Environment",
         "SHEAF_STORE  where sessions are, unless --store says it; without either\n"
         "             jsonl:$XDG_DATA_HOME/sheaf, which is ~/.local/share/sheaf\n"
         "SHEAF_PAGER, PAGER  what long output goes through on a terminal (less); `cat`\n"
         "             for nothing\n"
         "SHEAF_MODELS a file of models, their windows and prices (see `sheaf usage`)\n"
         "SHEAF_MODEL, SHEAF_URL, SHEAF_FORMAT  the model that chat and compact ask, its\n"
         "             address and what it speaks, unless options say it\n"
         "ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY  keys of the providers\n"
         "NO_COLOR     if not empty, no colour; FORCE_COLOR, colour also in a pipe"},
	{0},
};
