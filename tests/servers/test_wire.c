/*
 * What an append costs and survives on the wire, seen by a proxy in front of
 * the server that URL names with 127.0.0.1:PORT.
 *
 *     test_servers_wire URL [round-trips | lost-replies | lost-requests | lost-and-gone]
 *
 * round-trips: an append is one request and one reply, and so is a batch.
 * lost-replies: the connection is cut after each byte of the reply to an
 * append, from none to the last but one; repeated with its id until it is
 * acknowledged, the entry is there exactly once. lost-requests: the same for
 * every 16th byte of the request. lost-and-gone: what a call says whose reply
 * was lost and that finds the session gone. Without a word: all of them. Exits 1
 * on failure.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proxy.h"
#include "sheaf.h"

#define APPENDS 100u
#define BYTES_MAX 20000u
#define REQUEST_STEP 16u /* a request is long, and after every cut a connection is made anew */

static proxy *wire;
static sheaf_error err;

static bool failed(const char *what, int rc)
{
	fprintf(stderr, "wire: %s: %s: %s\n", what, sheaf_code_name(rc), err.message);
	return false;
}

static int append(sheaf_session *s, const char *id, sheaf_appended *out)
{
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	entry.id = sheaf_str_of(id);
	*out = (sheaf_appended)SHEAF_APPENDED_INIT;
	return sheaf_session_append_json(
		s, sheaf_str_of("message"),
		sheaf_str_of("{\"message\":{\"role\":\"user\",\"content\":\"Hello\"}}"), &entry,
		NULL, out, &err);
}

/* The first appends may load a function or prepare a statement, and that is not their cost. */
static bool warm_up(sheaf_session *s)
{
	for (int i = 0; i < 5; i++) {
		char id[64];
		sheaf_appended out;
		snprintf(id, sizeof(id), "warm-%d", i);
		int rc = append(s, id, &out);
		if (rc != 0)
			return failed("append", rc);
	}
	return true;
}

/* ---- Round trips ---------------------------------------------------------- */

static bool counted(const char *what, uint64_t requests, uint64_t replies)
{
	requests = proxy_requests(wire) - requests;
	replies = proxy_replies(wire) - replies;
	printf("%s: %u appends, %" PRIu64 " requests, %" PRIu64 " replies\n", what, APPENDS,
	       requests, replies);
	return requests == APPENDS && replies == APPENDS;
}

static bool round_trips(sheaf_session *s)
{
	uint64_t requests = proxy_requests(wire), replies = proxy_replies(wire);
	for (unsigned i = 0; i < APPENDS; i++) {
		char id[64];
		sheaf_appended out;
		snprintf(id, sizeof(id), "single-%u", i);
		int rc = append(s, id, &out);
		if (rc != 0)
			return failed("append", rc);
	}
	bool ok = counted("single", requests, replies);
	requests = proxy_requests(wire), replies = proxy_replies(wire);
	for (unsigned i = 0; i < APPENDS; i++) {
		sheaf_batch *batch = sheaf_batch_new();
		sheaf_str body = sheaf_str_of(
			"{\"message\":{\"role\":\"user\",\"content\":\"Hi\"}}");
		int rc = 0;
		for (int n = 0; n < 10 && rc == 0; n++)
			rc = sheaf_batch_json(batch, sheaf_str_of("message"), body, NULL, &err);
		if (rc == 0)
			rc = sheaf_session_append_batch(s, batch, NULL, NULL, &err);
		sheaf_batch_free(batch);
		if (rc != 0)
			return failed("append a batch", rc);
	}
	return counted("batch of 10", requests, replies) && ok;
}

/* ---- Lost replies ----------------------------------------------------------- */

/* How often the session holds the id, by reading all of it. */
static int occurrences(sheaf_session *s, const char *id)
{
	int found = 0;
	sheaf_read_options page = SHEAF_READ_OPTIONS_INIT;
	page.newest = 1;
	page.limit = 8;
	sheaf_records *records = NULL;
	if (sheaf_session_records(&records, s, &page, &err) != 0)
		return -1;
	for (size_t i = 0; i < records->count; i++)
		found += records->items[i]->id.len == strlen(id) &&
		         memcmp(records->items[i]->id.ptr, id, strlen(id)) == 0;
	sheaf_records_free(records);
	return found;
}

typedef struct tally {
	unsigned cuts;
	unsigned unknown; /* calls that ended so and were repeated */
	unsigned existed; /* acknowledged as stored before */
} tally;

/* One append with the cut after so many bytes. False: broken. *cut says whether there was one. */
static bool append_cut(sheaf_session *s, int what, unsigned bytes, bool *cut, tally *t)
{
	char id[64];
	snprintf(id, sizeof(id), "%s-%u", what == PROXY_REPLY ? "reply" : "request", bytes);
	proxy_cut(wire, what, bytes);
	sheaf_appended out;
	int rc = append(s, id, &out);
	*cut = proxy_cut_done(wire);
	for (int tries = 0; rc != 0 && tries < 100; tries++) {
		if (rc != SHEAF_STORAGE)
			return failed(id, rc);
		t->unknown += err.outcome == SHEAF_UNKNOWN;
		struct timespec pause = {0, 10000000};
		nanosleep(&pause, NULL);
		rc = append(s, id, &out);
	}
	if (rc != 0)
		return failed(id, rc);
	t->cuts += *cut;
	t->existed += out.existed != 0;
	int found = occurrences(s, id);
	if (found != 1)
		fprintf(stderr, "wire: %s is there %d times\n", id, found);
	return found == 1;
}

static bool every_byte(sheaf_session *s, int what)
{
	tally t = {0};
	bool cut = true;
	unsigned bytes = 0;
	unsigned step = what == PROXY_REPLY ? 1 : REQUEST_STEP;
	for (; cut && bytes < BYTES_MAX; bytes += step)
		if (!append_cut(s, what, bytes, &cut, &t))
			return false;
	printf("lost %s: cut %u times in %u bytes, %u calls were of unknown outcome, %u appends "
	       "had been stored before the one acknowledged\n",
	       what == PROXY_REPLY ? "replies" : "requests", t.cuts, bytes - step, t.unknown,
	       t.existed);
	if (cut || t.cuts < 10) {
		fprintf(stderr, "wire: a %s of %u bytes cannot be\n",
		        what == PROXY_REPLY ? "reply" : "request", bytes);
		return false;
	}
	return true;
}

/* ---- Lost, and gone when it is repeated ----------------------------------------- */

typedef struct other {
	const char *url; /* past the proxy */
	sheaf_key key;
} other;

/* Deletes the session; *existed says what the call said. */
static int delete_session(sheaf_store *store, const sheaf_key *key, int32_t *existed)
{
	sheaf_deleted *deleted = NULL;
	int rc = sheaf_store_delete(&deleted, store, key, NULL, &err);
	*existed = rc == 0 ? deleted->existed : 0;
	sheaf_deleted_free(deleted);
	return rc;
}

static void delete_meanwhile(void *ctx)
{
	const other *o = ctx;
	sheaf_store *store = NULL;
	sheaf_deleted *deleted = NULL;
	sheaf_error ignored;
	if (sheaf_open(&store, o->url, NULL, &ignored) == 0 &&
	    sheaf_store_delete(&deleted, store, &o->key, NULL, &ignored) == 0)
		sheaf_deleted_free(deleted);
	sheaf_close(store);
}

static int make_session(sheaf_store *store, const sheaf_key *key, sheaf_session **s)
{
	sheaf_appended out;
	int rc = sheaf_session_open(s, store, key, NULL, &err);
	return rc == 0 ? append(*s, "first", &out) : rc;
}

/* A deletion whose reply was lost says that the session was there. */
static bool lost_deletion(sheaf_store *store, sheaf_key key)
{
	sheaf_session *s = NULL;
	int32_t existed = 0;
	for (int round = 0; round < 2; round++) { /* the first prepares what is needed */
		int rc = make_session(store, &key, &s);
		sheaf_session_close(s);
		if (rc == 0 && round == 1)
			proxy_cut_later(wire, PROXY_REPLY, 1, NULL, NULL);
		if (rc == 0)
			rc = delete_session(store, &key, &existed);
		if (rc != 0)
			return failed("delete", rc);
	}
	bool cut = proxy_cut_done(wire);
	printf("lost deletion: cut %d, existed %d\n", cut, existed);
	return cut && existed == 1;
}

/* An append that was stored, and deleted before it could be repeated, did not fail for certain. */
static bool lost_append(sheaf_store *store, const other *o)
{
	sheaf_session *s = NULL;
	sheaf_appended out;
	int rc = make_session(store, &o->key, &s);
	if (rc != 0)
		return failed("make a session", rc);
	proxy_cut_later(wire, PROXY_REPLY, 0, delete_meanwhile, (void *)(uintptr_t)o);
	rc = append(s, "late", &out);
	bool cut = proxy_cut_done(wire), unknown = err.outcome == SHEAF_UNKNOWN;
	printf("lost append: cut %d, %s, unknown %d\n", cut, sheaf_code_name(rc), unknown);
	sheaf_session_close(s);
	return cut && rc != 0 && unknown;
}

static bool lost_and_gone(sheaf_store *store, const sheaf_key *key, const char *past)
{
	char name[128];
	snprintf(name, sizeof(name), "%.*s-gone", (int)key->session.len, key->session.ptr);
	other o = {past, *key};
	o.key.session = sheaf_str_of(name);
	bool ok = lost_deletion(store, o.key);
	return lost_append(store, &o) && ok;
}

/* ---- The program -------------------------------------------------------------- */

/* The URL with the proxy's port instead of the server's. */
static bool behind_proxy(const char *url, char *out, size_t room)
{
	const char *host = strstr(url, "127.0.0.1:");
	if (!host)
		return false;
	char *rest;
	unsigned long port = strtoul(host + strlen("127.0.0.1:"), &rest, 10);
	wire = proxy_start((uint16_t)port);
	if (!wire)
		return false;
	snprintf(out, room, "%.*s127.0.0.1:%u%s", (int)(host - url), url, proxy_port(wire), rest);
	return true;
}

static bool run(const char *url, const char *past, const char *what)
{
	sheaf_store *store = NULL;
	sheaf_session *s = NULL;
	char name[64];
	snprintf(name, sizeof(name), "wire-%d-%ld", (int)getpid(), (long)time(NULL));
	sheaf_key key = sheaf_key_of(name);
	key.app = sheaf_str_of("wire");
	int rc = sheaf_open(&store, url, NULL, &err);
	if (rc == 0)
		rc = sheaf_session_open(&s, store, &key, NULL, &err);
	bool ok = rc == 0 ? warm_up(s) : failed("open", rc);
	if (ok && (!what || strcmp(what, "round-trips") == 0))
		ok &= round_trips(s);
	if (ok && (!what || strcmp(what, "lost-replies") == 0))
		ok &= every_byte(s, PROXY_REPLY);
	if (ok && (!what || strcmp(what, "lost-requests") == 0))
		ok &= every_byte(s, PROXY_REQUEST);
	if (ok && (!what || strcmp(what, "lost-and-gone") == 0))
		ok &= lost_and_gone(store, &key, past);
	if (s)
		sheaf_session_close(s);
	sheaf_close(store);
	return ok;
}

int main(int argc, char **argv)
{
	char url[1000];
	if (argc < 2 || argc > 3 || !behind_proxy(argv[1], url, sizeof(url))) {
		fputs("usage: test_servers_wire URL "
		      "[round-trips|lost-replies|lost-requests|lost-and-gone]\n",
		      stderr);
		return 2;
	}
	bool ok = run(url, argv[1], argv[2]);
	proxy_stop(wire);
	puts(ok ? "ok" : "BROKEN");
	return ok ? 0 : 1;
}
