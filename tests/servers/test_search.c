/*
 * Search on any store: what is appended is found, what is deleted is not, a
 * fork's records are found once, and an index made anew says the same.
 *
 *     test_servers_search URL
 *
 * Exits 1 if something is found that should not be, or not found that should.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sheaf.h"

static sheaf_store *store;
static sheaf_search *search;
static sheaf_error err;
static char app[64];

static void must(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "search: %s: %s: %s\n", what, sheaf_code_name(rc), err.message);
	exit(1);
}

static sheaf_key key_of(const char *session)
{
	return (sheaf_key){sheaf_str_of(app), sheaf_str_of("u"), sheaf_str_of(session)};
}

static sheaf_session *open_session(const char *id)
{
	sheaf_key key = key_of(id);
	sheaf_session *s;
	must(sheaf_session_open(&s, store, &key, NULL, &err), "open a session");
	return s;
}

static void say(const char *session, const char *id, const char *text)
{
	sheaf_session *s = open_session(session);
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_text(m, sheaf_str_of(text));
	entry.id = sheaf_str_of(id);
	must(sheaf_session_append_message(s, m, &entry, NULL, NULL, &err), "append");
	sheaf_message_free(m);
	sheaf_session_close(s);
}

/* What is found must be `wanted`: "session/entry session/entry". */
static void finds(const char *text, const char *wanted)
{
	char found[2000] = "";
	sheaf_hits *hits;
	sheaf_query q = SHEAF_QUERY_INIT;
	q.text = sheaf_str_of(text);
	q.app = sheaf_str_of(app);
	q.user = sheaf_str_of("u");
	must(sheaf_search_run(&hits, search, &q, &err), text);
	for (size_t i = 0; i < hits->count; i++) {
		size_t at = strlen(found);
		snprintf(found + at, sizeof(found) - at, "%s%.*s/%.*s", i != 0 ? " " : "",
		         (int)hits->items[i]->session.len, hits->items[i]->session.ptr,
		         (int)hits->items[i]->entry_id.len, hits->items[i]->entry_id.ptr);
	}
	sheaf_hits_free(hits);
	if (strcmp(found, wanted) == 0)
		return;
	fprintf(stderr, "search: '%s' finds '%s', not '%s'\n", text, found, wanted);
	exit(1);
}

static void drop(const char *session)
{
	sheaf_key key = key_of(session);
	must(sheaf_store_delete(NULL, store, &key, NULL, &err), "delete");
}

static void again(int rebuild)
{
	sheaf_search_options o = SHEAF_SEARCH_OPTIONS_INIT;
	o.rebuild = rebuild;
	sheaf_search_close(search);
	must(sheaf_search_open(&search, store, &o, &err), "open the index");
}

int main(int argc, char **argv)
{
	sheaf_session *s, *fork;
	if (argc != 2) {
		fprintf(stderr, "usage: test_servers_search URL\n");
		return 2;
	}
	snprintf(app, sizeof(app), "search-%ld", (long)getpid());
	must(sheaf_open(&store, argv[1], NULL, &err), "open the store");
	must(sheaf_search_open(&search, store, NULL, &err), "open the index");
	finds("parser", "");
	say("a", "a1", "the parser is slow");
	finds("parser", "a/a1");
	say("a", "a2", "検索 of parse_table");
	say("b", "b1", "another table");
	finds("検索", "a/a2");
	finds("parse_table", "a/a2");
	finds("another table", "b/b1");

	sheaf_key key = key_of("fork");
	s = open_session("a");
	must(sheaf_session_fork(&fork, s, sheaf_str_of("a1"), &key, NULL, &err), "fork");
	sheaf_session_close(s);
	sheaf_session_close(fork);
	say("fork", "f1", "a fast parser parser");
	finds("parser", "fork/f1 a/a1");
	again(0);
	finds("parser", "fork/f1 a/a1");
	again(1);
	finds("parser", "fork/f1 a/a1");
	drop("a");
	finds("検索", "");
	finds("slow", "fork/a1");
	drop("b");
	finds("table", "");
	drop("fork");
	finds("parser", "");
	sheaf_search_close(search);
	sheaf_close(store);
	return 0;
}
