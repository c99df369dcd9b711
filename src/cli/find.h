/* Finding what a person named: the store, a session, an entry. */
#ifndef CLI_FIND_H
#define CLI_FIND_H

#include <limits.h>

#include "cmd.h"

/* For _cleanup_. */
void session_closep(sheaf_session **session);
void records_freep(sheaf_records **records);
void head_freep(sheaf_head_view **head);
void list_freep(sheaf_list **list);

/* Opens the store of --store or the default one, once. 0 or the exit code after a report. */
int open_store(cli *c);

/*
 * The key of the session that `name` names: its id, else a unique beginning of
 * one or of what follows a dot in it (four characters at least), else its exact
 * name. Where others are parts of one (ID.agent-…, ID~2), that one is meant.
 * NULL: the newest one.
 * The key's strings live as long as the command. 0 or the exit code.
 */
int find_session(cli *c, const char *name, sheaf_key *out);
/* The same, but a session that is not there is no mistake: the key is then of `name` as an id. */
int try_session(cli *c, const char *name, sheaf_key *out, bool *there);

/* Finds and opens it; reading never changes a file. 0 or the exit code. */
int open_for_reading(cli *c, const char *name, sheaf_session **out);
int open_for_writing(cli *c, const char *name, sheaf_session **out);

/*
 * The id of an entry: its id, a unique beginning of it, a label, a branch (its
 * leaf) or @N (the record with number N). 0 or the exit code.
 */
int find_entry(cli *c, sheaf_session *session, const char *name, char out[SHEAF_ID_ROOM]);

/* The working directory as a session records it; {NULL,0} if it cannot be recorded. */
sheaf_str working_directory(char room[PATH_MAX]);

/* The directory of --project or --here, in which or below which sessions are meant; {NULL,0} without
 * either. 0 or the exit code. */
int find_project(cli *c, char room[PATH_MAX], sheaf_str *out);

/* The agent that a session was imported from, by its id; {NULL,0} if it was not. */
sheaf_str agent_of(sheaf_str session);
/* The end of its id by which people may name it: what follows the last dot, if it was imported. */
sheaf_str id_of(sheaf_str session);

/* Whether the branch of --branch is there. 0 or the exit code. */
int find_branch(cli *c, sheaf_session *session);

/* The leaf that --leaf or --branch name, for calls that take either. 0 or the exit code. */
typedef struct place {
	char leaf_room[SHEAF_ID_ROOM];
	sheaf_str leaf;   /* {NULL,0}: the branch's */
	sheaf_str branch; /* empty: main */
} place;
int find_place(cli *c, sheaf_session *session, place *out);

#endif
