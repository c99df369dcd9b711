/* Finding the store, a session and an entry from what a person typed. */
#include "find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/utf8.h"
#include "opt.h"
#include "print.h"

#define PREFIX_MIN 4u
#define CANDIDATES_MAX 10u
#define PAGE 1000u

void session_closep(sheaf_session **session)
{
	sheaf_session_close(*session);
}

void records_freep(sheaf_records **records)
{
	sheaf_records_free(*records);
}

void head_freep(sheaf_head_view **head)
{
	sheaf_head_view_free(*head);
}

void list_freep(sheaf_list **list)
{
	sheaf_list_free(*list);
}

int open_store(cli *c)
{
	if (c->store != NULL)
		return 0;
	if (sheaf_open(&c->store, c->values[OPT_STORE], NULL, &c->err) != 0)
		return fail(c);
	return 0;
}

/* ---- Sessions ---------------------------------------------------------- */

typedef struct candidates {
	sheaf_str id[CANDIDATES_MAX + 1];
	size_t count; /* may be more than are kept */
	sheaf_str root;
	bool apart; /* some are not of the root */
} candidates;

static bool begins(sheaf_str text, sheaf_str beginning)
{
	return text.len >= beginning.len && memcmp(text.ptr, beginning.ptr, beginning.len) == 0;
}

/* Whether a session is a part of another: an agent of it, or another version. */
static bool is_part(sheaf_str id, sheaf_str root)
{
	return id.len > root.len && begins(id, root) &&
	       (id.ptr[root.len] == '.' || id.ptr[root.len] == '~');
}

static int add_candidate(cli *c, candidates *found, sheaf_str id)
{
	int ok = 1;
	if (found->count < CANDIDATES_MAX)
		found->id[found->count] = arena_dup(c->memory, id, &ok);
	if (found->count == 0 || is_part(found->root, id))
		found->root = arena_dup(c->memory, id, &ok);
	else if (!is_part(id, found->root))
		found->apart = true;
	found->count++;
	return ok ? 0 : fail_memory(c);
}

sheaf_str agent_of(sheaf_str session)
{
	const sheaf_converter *converter;
	for (size_t i = 0; (converter = sheaf_converter_at(i)) != NULL; i++) {
		size_t len = strlen(converter->name);
		if (converter->imports && session.len > len + 1 && session.ptr[len] == '.' &&
		    str_starts(session, converter->name))
			return sheaf_str_of(converter->name);
	}
	return (sheaf_str){NULL, 0};
}

sheaf_str id_of(sheaf_str session)
{
	size_t at = agent_of(session).ptr != NULL ? session.len : 0;
	while (at > 0 && session.ptr[at - 1] != '.')
		at--;
	if (session.len - at < PREFIX_MIN)
		return session;
	return str_make(session.ptr + at, session.len - at);
}

/* Whether what follows a dot in an id begins so. */
static bool has_part(sheaf_str id, sheaf_str name)
{
	for (size_t i = 0; i + name.len < id.len; i++) {
		if (id.ptr[i] == '.' && begins(str_make(id.ptr + i + 1, id.len - i - 1), name))
			return true;
	}
	return false;
}

/* Goes through the owner's sessions: those that are called `name`, or, with `parts`, those whose id
 * begins so, and those of which a part does. */
static int search(cli *c, sheaf_str name, bool expired, candidates *found, candidates *parts)
{
	sheaf_list_options options = SHEAF_LIST_OPTIONS_INIT;
	options.expired = expired;
	options.app = c->app;
	options.user = c->user;
	options.limit = PAGE;
	if (parts == NULL)
		options.name = name;
	for (int ok = 1; ok;) {
		_cleanup_(list_freep) sheaf_list *list = NULL;
		if (sheaf_store_list(&list, c->store, &options, &c->err) != 0)
			return fail(c);
		for (size_t i = 0; i < list->count; i++) {
			sheaf_str id = list->items[i]->session;
			int rc = 0;
			if (parts == NULL || begins(id, name))
				rc = add_candidate(c, found, id);
			else if (has_part(id, name))
				rc = add_candidate(c, parts, id);
			if (rc != 0)
				return rc;
		}
		if (list->cursor.ptr == NULL)
			break;
		options.cursor = arena_dup(c->memory, list->cursor, &ok);
	}
	return 0;
}

static int newest(cli *c, sheaf_key *out)
{
	sheaf_list_options options = SHEAF_LIST_OPTIONS_INIT;
	options.app = c->app;
	options.user = c->user;
	options.limit = 1;
	_cleanup_(list_freep) sheaf_list *list = NULL;
	if (sheaf_store_list(&list, c->store, &options, &c->err) != 0)
		return fail(c);
	if (list->count == 0)
		return fail_with(c, SHEAF_NOT_FOUND, "`sheaf new` starts one",
		                 "there are no sessions");
	int ok = 1;
	out->session = arena_dup(c->memory, list->items[0]->session, &ok);
	return ok ? 0 : fail_memory(c);
}

static int no_such_session(cli *c, const char *name)
{
	return fail_with(c, SHEAF_NOT_FOUND, "`sheaf ls` shows the sessions there are",
	                 "there is no session '%.100s'", name);
}

static int ambiguous_session(cli *c, const char *name, const candidates *found)
{
	char message[200];
	snprintf(message, sizeof(message), "'%.100s' could be any of %zu sessions", name,
	         found->count);
	size_t shown = found->count < CANDIDATES_MAX ? found->count : CANDIDATES_MAX;
	return fail_among(c, SHEAF_INVALID, message, found->id, shown);
}

/* Where no session has this id: by a beginning of it, then by name; an expired one last. */
static int search_session(cli *c, const char *name, sheaf_key *out, bool *there)
{
	candidates found = {0};
	int rc = 0;
	for (int expired = 0; rc == 0 && found.count == 0 && expired < 2; expired++) {
		candidates parts = {0};
		if (out->session.len >= PREFIX_MIN)
			rc = search(c, out->session, expired, &found, &parts);
		if (rc == 0 && found.count == 0)
			found = parts;
		if (rc == 0 && found.count == 0)
			rc = search(c, out->session, expired, &found, NULL);
	}
	if (rc != 0)
		return rc;
	if (found.apart)
		return ambiguous_session(c, name, &found);
	*there = found.count != 0;
	if (*there)
		out->session = found.root;
	return 0;
}

static int start_key(cli *c, const char *name, sheaf_key *out)
{
	int rc = open_store(c);
	if (rc != 0)
		return rc;
	*out = (sheaf_key){c->app, c->user, sheaf_str_of(name)};
	if (name == NULL)
		return newest(c, out);
	return name[0] == '\0' ? usage(c, "the name of a session is empty") : 0;
}

/* One that is there but cannot be opened was meant all the same. */
static bool not_that_one(int code)
{
	return code == SHEAF_NOT_FOUND || code == SHEAF_INVALID || code == SHEAF_LIMIT;
}

int try_session(cli *c, const char *name, sheaf_key *out, bool *there)
{
	int rc = start_key(c, name, out);
	if (rc != 0)
		return rc;
	_cleanup_(session_closep) sheaf_session *session = NULL;
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	options.mode = SHEAF_OPEN_EXISTING;
	options.readonly = 1;
	*there = !not_that_one(sheaf_session_open(&session, c->store, out, &options, NULL));
	return *there ? 0 : search_session(c, name, out, there);
}

int find_session(cli *c, const char *name, sheaf_key *out)
{
	bool there;
	int rc = try_session(c, name, out, &there);
	return rc != 0 || there ? rc : no_such_session(c, name);
}

static int open_found(cli *c, const char *name, bool readonly, sheaf_session **out)
{
	sheaf_key key;
	int rc = start_key(c, name, &key);
	if (rc != 0)
		return rc;
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	options.mode = SHEAF_OPEN_EXISTING;
	options.readonly = readonly;
	int code = sheaf_session_open(out, c->store, &key, &options, &c->err);
	if (not_that_one(code)) {
		bool there;
		if ((rc = search_session(c, name, &key, &there)) != 0)
			return rc;
		if (!there)
			return no_such_session(c, name);
		code = sheaf_session_open(out, c->store, &key, &options, &c->err);
	}
	return code == 0 ? 0 : fail(c);
}

int open_for_reading(cli *c, const char *name, sheaf_session **out)
{
	return open_found(c, name, true, out);
}

int open_for_writing(cli *c, const char *name, sheaf_session **out)
{
	int rc = open_found(c, name, false, out);
	if (rc != 0)
		return rc;
	_cleanup_(head_freep) sheaf_head_view *head = NULL;
	if (sheaf_session_head(&head, *out, NULL) == 0 && head->torn_bytes != 0)
		say(c, "note: %llu unfinished bytes of an interrupted write were moved to %.*s",
		    (unsigned long long)head->torn_bytes, (int)head->torn_file.len,
		    head->torn_file.ptr);
	return 0;
}

/* ---- Directories ------------------------------------------------------- */

/* A directory that cannot be recorded (it may hold any byte) is no reason not to start. */
static bool can_be_recorded(sheaf_str directory)
{
	for (size_t i = 0; i < directory.len; i++) {
		if ((unsigned char)directory.ptr[i] < 0x20 || directory.ptr[i] == 0x7f)
			return false;
	}
	return utf8_valid(directory);
}

sheaf_str working_directory(char room[PATH_MAX])
{
	sheaf_str directory = sheaf_str_of(getcwd(room, PATH_MAX));
	return can_be_recorded(directory) ? directory : (sheaf_str){NULL, 0};
}

int find_project(cli *c, char room[PATH_MAX], sheaf_str *out)
{
	*out = opt_str(c, OPT_PROJECT);
	if (given(c, OPT_PROJECT) && given(c, OPT_HERE))
		return usage(c, "--project and --here name the same");
	if (given(c, OPT_PROJECT) && realpath(c->values[OPT_PROJECT], room) != NULL)
		*out = sheaf_str_of(room);
	if (!given(c, OPT_HERE))
		return 0;
	*out = working_directory(room);
	return out->ptr != NULL
	               ? 0
	               : fail_with(c, SHEAF_INVALID, NULL, "no session can be of this directory");
}

/* ---- Entries ----------------------------------------------------------- */

/* @N. False if it is not spelled so, or no entry has that number. */
static bool entry_by_number(sheaf_session *session, const char *name, char out[SHEAF_ID_ROOM])
{
	char *end;
	errno = 0;
	if (name[0] != '@' || name[1] < '0' || name[1] > '9')
		return false;
	unsigned long long seq = strtoull(name + 1, &end, 10);
	if (*end != '\0' || errno != 0 || seq == 0)
		return false;
	sheaf_read_options options = SHEAF_READ_OPTIONS_INIT;
	options.from_seq = seq;
	options.limit = 1;
	options.raw = 1;
	_cleanup_(records_freep) sheaf_records *records = NULL;
	if (sheaf_session_records(&records, session, &options, NULL) != 0 || records->count == 0 ||
	    records->items[0]->seq != seq || records->items[0]->damaged)
		return false;
	str_copy_cut(out, SHEAF_ID_ROOM, records->items[0]->id);
	return true;
}

/* Says which entries begin so. */
static int ambiguous_entry(cli *c, sheaf_session *session, const char *name)
{
	sheaf_error first = c->err;
	candidates found = {0};
	sheaf_read_options options = SHEAF_READ_OPTIONS_INIT;
	options.limit = PAGE;
	options.raw = 1;
	options.kinds = SHEAF_KINDS_ENTRIES;
	do {
		_cleanup_(records_freep) sheaf_records *page = NULL;
		if (sheaf_session_records(&page, session, &options, NULL) != 0)
			break;
		for (size_t i = 0; i < page->count; i++) {
			if (!str_starts(page->items[i]->id, name))
				continue;
			int rc = add_candidate(c, &found, page->items[i]->id);
			if (rc != 0)
				return rc;
		}
		options.from_seq = page->next_seq;
	} while (options.from_seq != 0);
	c->err = first;
	if (found.count < 2)
		return fail(c);
	char message[200];
	snprintf(message, sizeof(message), "'%.100s' could be any of %zu entries", name,
	         found.count);
	return fail_among(c, SHEAF_INVALID, message, found.id,
	                  found.count < CANDIDATES_MAX ? found.count : CANDIDATES_MAX);
}

int find_entry(cli *c, sheaf_session *session, const char *name, char out[SHEAF_ID_ROOM])
{
	int rc = sheaf_session_resolve(session, sheaf_str_of(name), out, &c->err);
	if (rc == 0)
		return 0;
	if (rc != SHEAF_NOT_FOUND && rc != SHEAF_INVALID)
		return fail(c);
	sheaf_error first = c->err;
	if (name[0] != '\0' && sheaf_session_leaf(session, sheaf_str_of(name), out, NULL) == 0) {
		if (out[0] != '\0')
			return 0;
		return fail_with(c, SHEAF_NOT_FOUND, NULL,
		                 "branch '%.100s' stands before the first entry", name);
	}
	if (entry_by_number(session, name, out))
		return 0;
	c->err = first;
	if (rc == SHEAF_INVALID)
		return ambiguous_entry(c, session, name);
	return fail_with(c, SHEAF_NOT_FOUND, "`sheaf tree` shows the entries there are",
	                 "there is no entry '%.100s'", name);
}

int find_branch(cli *c, sheaf_session *session)
{
	char leaf[SHEAF_ID_ROOM];
	if (!given(c, OPT_BRANCH))
		return 0;
	int code = sheaf_session_leaf(session, opt_str(c, OPT_BRANCH), leaf, &c->err);
	if (code == 0)
		return 0;
	if (code != SHEAF_NOT_FOUND && code != SHEAF_INVALID)
		return fail(c);
	return fail_with(c, SHEAF_NOT_FOUND,
	                 "`sheaf branch SESSION` lists them, `sheaf branch SESSION NAME` makes one",
	                 "there is no branch '%.100s'", c->values[OPT_BRANCH]);
}

int find_place(cli *c, sheaf_session *session, place *out)
{
	memset(out, 0, sizeof(*out));
	int rc = find_branch(c, session);
	if (rc != 0)
		return rc;
	out->branch = opt_str(c, OPT_BRANCH);
	if (!given(c, OPT_LEAF))
		return 0;
	rc = find_entry(c, session, c->values[OPT_LEAF], out->leaf_room);
	out->leaf = sheaf_str_of(out->leaf_room);
	return rc;
}
