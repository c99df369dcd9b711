/* The player of play.h: steps become calls of the library. */
#include "play.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault_io.h"
#include "sheaf/sys/seams.h"

#define DEADLINE_US 20000

typedef struct key_text {
	char app[64], user[64], session[64];
	sheaf_key key;
} key_text;

static const sheaf_key *key_of(key_text *k, const char *name)
{
	if (sscanf(name, "%63[^/]/%63[^/]/%63s", k->app, k->user, k->session) != 3) {
		k->app[0] = k->user[0] = 0;
		snprintf(k->session, sizeof(k->session), "%s", name);
	}
	k->key = (sheaf_key){sheaf_str_of(k->app), sheaf_str_of(k->user), sheaf_str_of(k->session)};
	return &k->key;
}

/* ---- Handles ----------------------------------------------------------------------- */

int player_open(player *p, const char *dir, sheaf_error *err)
{
	char url[300] = "memory:";
	sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;

	if (dir != NULL && dir != p->dir)
		snprintf(p->dir, sizeof(p->dir), "%s", dir);
	if (p->dir[0])
		snprintf(url, sizeof(url), "jsonl:%s", p->dir);
	options.deadline_us = DEADLINE_US;
	return sheaf_open(&p->store, url, &options, err);
}

int player_set_up(player *p, const scenario *sc, const char *dir, sheaf_error *err)
{
	int rc = 0;

	if (sc->setup[0].kind == STEP_END && dir != NULL)
		snprintf(p->dir, sizeof(p->dir), "%s", dir);
	else
		rc = player_open(p, dir, err);
	for (unsigned i = 0; rc == 0 && sc->setup[i].kind != STEP_END; i++)
		rc = player_do(p, &sc->setup[i], SETUP_FROM + i, false, err);
	return rc;
}

static void close_handles(player *p)
{
	for (size_t i = 0; i < PLAY_SESSIONS; i++) {
		sheaf_session_close(p->open[i].handle);
		p->open[i].handle = NULL;
	}
}

void player_close(player *p)
{
	close_handles(p);
	sheaf_close(p->store);
	p->store = NULL;
}

void player_free(player *p)
{
	player_close(p);
	free(p->said);
	memset(p, 0, sizeof(*p));
}

static size_t place_of(player *p, const char *name)
{
	for (size_t i = 0; i < PLAY_SESSIONS; i++) {
		if (p->open[i].name == NULL)
			p->open[i].name = name;
		if (strcmp(p->open[i].name, name) == 0)
			return i;
	}
	abort();
}

/* The handle of a session that exists; opened if it is not. */
static int handle_of(player *p, const char *name, sheaf_session **out, sheaf_error *err)
{
	size_t at = place_of(p, name);
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	key_text k;
	int rc = 0;

	options.mode = SHEAF_OPEN_EXISTING;
	if (p->open[at].handle == NULL)
		rc = sheaf_session_open(&p->open[at].handle, p->store, key_of(&k, name), &options,
		                        err);
	*out = p->open[at].handle;
	return rc;
}

static void drop_handle(player *p, const char *name)
{
	size_t at = place_of(p, name);
	sheaf_session_close(p->open[at].handle);
	p->open[at].handle = NULL;
}

/* ---- Content ------------------------------------------------------------------------- */

/* Text that names its session and step, with what must be escaped in it. */
static char *text_make(const char *session, unsigned at, unsigned k, unsigned bytes)
{
	static const char filler[] = "The quick \"brown\" fox\njumps over \\ the lazy d\xc3\xb6g. ";
	char *text = malloc(bytes + 80);
	if (text == NULL)
		abort();
	size_t len = (size_t)sprintf(text, "canary-%s-%u.%u ",
	                             strrchr(session, '/') ? strrchr(session, '/') + 1 : session,
	                             at, k);
	for (size_t i = 0; len < bytes; i++)
		text[len++] = filler[(i + at) % (sizeof(filler) - 1)];
	/* Not half a character at the end. */
	while (len > 0 && ((unsigned char)text[len - 1] & 0x80))
		len--;
	text[len] = 0;
	return text;
}

static void id_make(char out[64], unsigned at, unsigned k)
{
	snprintf(out, 64, "rec-%02u-%u", at, k);
}

static sheaf_append_options how_of(const step *s)
{
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	how.durability = s->durability;
	return how;
}

static sheaf_message *message_make(const char *session, unsigned at, unsigned k, unsigned bytes)
{
	sheaf_message *m = sheaf_message_new(k % 2 ? SHEAF_ROLE_ASSISTANT : SHEAF_ROLE_USER);
	char *text = text_make(session, at, k, bytes);
	if (m != NULL)
		(void)sheaf_message_text(m, sheaf_str_of(text));
	free(text);
	return m;
}

/* NULL from a maker is memory that ran out, and nothing was stored. */
static int no_memory(sheaf_error *err)
{
	memset(err, 0, sizeof(*err));
	err->code = SHEAF_NOMEM;
	return SHEAF_NOMEM;
}

/* ---- Steps that write ------------------------------------------------------------------ */

static int do_text(player *p, sheaf_session *s, const step *what, unsigned at, sheaf_error *err)
{
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_append_options how = how_of(what);
	sheaf_appended out = SHEAF_APPENDED_INIT;
	sheaf_message *m;
	char id[64];
	unsigned same = what->kind == STEP_AGAIN ? what->count : at;

	/* The repeat of a step has its bytes too: they are those of the table's other step. */
	m = message_make(what->session, same, 0,
	                 what->kind == STEP_AGAIN ? what[(int)what->count - (int)at].bytes
	                                          : what->bytes);
	if (m == NULL)
		return no_memory(err);
	id_make(id, same, 0);
	entry.id = sheaf_str_of(what->kind != STEP_AUTO ? id
	                        : p->auto_id[at][0]     ? p->auto_id[at]
	                                                : NULL);
	char delta[160];
	snprintf(delta, sizeof(delta), "{\"n\":%u,\"user:n\":%u,\"user:s%u\":\"%s\"}", same, same,
	         same % 3, what->session);
	bool states = what->kind == STEP_STATE ||
	              (what->kind == STEP_AGAIN &&
	               what[(int)what->count - (int)at].kind == STEP_STATE);
	if (states)
		entry.state_delta = sheaf_str_of(delta);
	int rc = sheaf_session_append_message(s, m, &entry, &how, &out, err);
	if (what->kind == STEP_AUTO)
		snprintf(p->auto_id[at], SHEAF_ID_ROOM, "%s", out.id);
	p->existed = rc == 0 && out.existed;
	sheaf_message_free(m);
	return rc;
}

static int fill_batch(sheaf_batch *b, const step *what, unsigned at, sheaf_error *err)
{
	int rc = 0;
	for (unsigned k = 0; rc == 0 && k < what->count; k++) {
		sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
		char id[64];
		id_make(id, at, k);
		entry.id = sheaf_str_of(id);
		if (what->kind == STEP_CUSTOM) {
			rc = sheaf_batch_json(b, SHEAF_STR("custom"),
			                      SHEAF_STR("{\"custom\":{\"custom_type\":\"t\"}}"),
			                      &entry, err);
			continue;
		}
		sheaf_message *m = message_make(what->session, at, k, what->bytes);
		rc = m ? sheaf_batch_message(b, m, &entry, err) : no_memory(err);
		sheaf_message_free(m);
	}
	return rc;
}

static int do_batch(player *p, sheaf_session *s, const step *what, unsigned at, sheaf_error *err)
{
	sheaf_append_options how = how_of(what);
	sheaf_appended out = SHEAF_APPENDED_INIT;
	sheaf_batch *b = sheaf_batch_new();

	if (b == NULL)
		return no_memory(err);
	int rc = fill_batch(b, what, at, err);
	if (rc == 0)
		rc = sheaf_session_append_batch(s, b, &how, &out, err);
	p->existed = rc == 0 && out.existed;
	sheaf_batch_free(b);
	return rc;
}

/* The first entry of sessions made by the setups: after the record of the name. */
#define FIRST_SEQ 2

static int do_fact(player *p, sheaf_session *s, const step *what, unsigned at, sheaf_error *err)
{
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_append_options how = how_of(what);
	sheaf_appended out = SHEAF_APPENDED_INIT;
	const char *type = "session_info";
	char body[200], id[64], first[64];
	int rc;

	id_make(id, at, 0);
	id_make(first, 41, 0);
	entry.id = sheaf_str_of(id);
	switch (what->kind) {
	case STEP_LABEL:
		type = "label";
		snprintf(body, sizeof(body),
		         "{\"label\":{\"target_id\":\"%s\",\"label\":\"mark-%u\"}}", first, at);
		break;
	case STEP_BRANCH:
		type = "leaf";
		snprintf(body, sizeof(body),
		         "{\"leaf\":{\"branch\":\"side\",\"entry_id\":\"%s\",\"entry_seq\":%d}}",
		         first, FIRST_SEQ);
		break;
	case STEP_COMPACT:
		rc = sheaf_session_append_compaction(s, SHEAF_STR("all that was said"),
		                                     (sheaf_str){NULL, 0}, 100, &entry, &how, &out,
		                                     err);
		p->existed = rc == 0 && out.existed;
		return rc;
	default:
		snprintf(body, sizeof(body), "{\"session_info\":{\"name\":\"name-%u\"}}", at);
		break;
	}
	rc = sheaf_session_append_json(s, sheaf_str_of(type), sheaf_str_of(body), &entry, &how,
	                               &out, err);
	p->existed = rc == 0 && out.existed;
	return rc;
}

static int do_create(player *p, const step *what, bool again, sheaf_error *err)
{
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	sheaf_session *s = NULL;
	key_text k;

	options.mode = SHEAF_OPEN_NEW;
	options.name = sheaf_str_of(what->session);
	if (what->kind == STEP_CREATE_STATE)
		options.state = SHEAF_STR("{\"first\":1,\"user:first\":[1]}");
	int rc = sheaf_session_open(&s, p->store, key_of(&k, what->session), &options, err);
	p->existed = rc == SHEAF_EXISTS;
	if (again && rc == SHEAF_EXISTS)
		return handle_of(p, what->session, &s, err);
	if (rc == 0)
		p->open[place_of(p, what->session)].handle = s;
	return rc;
}

/* Forks, copies and exports: a new session out of one that is there. */
static int do_derive(player *p, sheaf_session *from, const step *what, bool again, sheaf_error *err)
{
	const sheaf_str leaf = {NULL, 0};
	sheaf_session *s = NULL;
	key_text k;
	int rc;

	key_of(&k, what->other);
	if (what->kind == STEP_FORK)
		rc = sheaf_session_fork(&s, from, leaf, &k.key, NULL, err);
	else if (what->kind == STEP_COPY)
		rc = sheaf_session_copy(&s, from, p->store, &k.key, err);
	else
		rc = sheaf_session_export_path(&s, from, leaf, p->store, &k.key, err);
	p->existed = rc == SHEAF_EXISTS;
	if (again && rc == SHEAF_EXISTS)
		return handle_of(p, what->other, &s, err);
	if (rc == 0)
		p->open[place_of(p, what->other)].handle = s;
	return rc;
}

static int do_delete(player *p, const step *what, sheaf_error *err)
{
	sheaf_delete_options options = SHEAF_DELETE_OPTIONS_INIT;
	sheaf_deleted *out = NULL;
	key_text k;

	drop_handle(p, what->session);
	options.purge = what->kind == STEP_PURGE;
	int rc = sheaf_store_delete(&out, p->store, key_of(&k, what->session), &options, err);
	p->existed = rc == 0 && !out->existed;
	sheaf_deleted_free(out);
	return rc;
}

static int do_app(player *p, const step *what, unsigned at, sheaf_error *err)
{
	char value[20];
	key_text k;
	snprintf(value, sizeof(value), "%u", at);
	return sheaf_store_state_set(p->store, key_of(&k, what->session)->app, SHEAF_STR("step"),
	                             sheaf_str_of(value), err);
}

static int do_repair(player *p, const step *what, sheaf_error *err)
{
	sheaf_report *report = NULL;
	key_text k;
	int rc = sheaf_store_repair(&report, p->store, key_of(&k, what->session), err);
	sheaf_report_free(report);
	return rc;
}

static int do_queue(player *p, sheaf_session *s, const step *what, unsigned at, bool again,
                    sheaf_error *err)
{
	char *content = text_make(what->session, at, 0, what->bytes);
	int rc = player_queue(p, s, what, at, again, content, err);
	free(content);
	return rc;
}

/* ---- Steps behind the library's back ------------------------------------------------------ */

static int spoil(player *p, const step *what)
{
	static const char half[] = "{\"type\":\"message\",\"id\":\"torn\",\"parent_id\":\"rec";
	const sheaf_io *io = fault_io_table();
	char file[200], path[500];
	struct stat st;
	char byte = 0;

	step_file(what, file, sizeof(file));
	snprintf(path, sizeof(path), "%s/%s", p->dir, file);
	int fd = io->open_root(NULL, path, O_RDWR, 0);
	if (fd < 0 || fstat(fd, &st))
		abort();
	off_t at = step_tears(what) ? st.st_size : st.st_size * 2 / 3;
	if (step_damages(what) && io->pread(NULL, fd, &byte, 1, at) != 1)
		abort();
	byte ^= 4;
	const void *bytes = step_tears(what) ? (const void *)half : &byte;
	size_t len = step_tears(what) ? sizeof(half) - 1 : 1;
	if (io->pwrite(NULL, fd, bytes, len, at) != (ssize_t)len)
		abort();
	io->close(NULL, fd);
	return 0;
}

/* ---- Steps that read ----------------------------------------------------------------------- */

/* Text that grows; with malloc, since the library's memory may be failing on purpose. */
typedef struct words {
	char *text;
	size_t len;
} words;

static void say(words *w, const char *text, size_t len)
{
	w->text = realloc(w->text, w->len + len + 2);
	if (w->text == NULL)
		abort();
	memcpy(w->text + w->len, text, len);
	w->len += len;
	w->text[w->len++] = '\n';
	w->text[w->len] = 0;
}

static void say_entry(words *w, const sheaf_entry *e)
{
	if (e->damaged)
		say(w, "(damaged)", 9);
	else
		say(w, e->line.ptr, e->line.len);
}

static int read_records(sheaf_session *s, words *w, sheaf_error *err)
{
	sheaf_read_options options = SHEAF_READ_OPTIONS_INIT;
	sheaf_records *r = NULL;

	options.limit = 10000;
	int rc = sheaf_session_records(&r, s, &options, err);
	for (size_t i = 0; rc == 0 && i < r->count; i++)
		say_entry(w, r->items[i]);
	sheaf_records_free(r);
	return rc;
}

static int read_path(sheaf_session *s, words *w, sheaf_error *err)
{
	sheaf_records *r = NULL;
	int rc = sheaf_session_path(&r, s, (sheaf_str){NULL, 0}, (sheaf_str){NULL, 0}, 0, err);
	for (size_t i = 0; rc == 0 && i < r->count; i++) {
		say_entry(w, r->items[i]);
		say(w, r->items[i]->label.ptr ? r->items[i]->label.ptr : "-",
		    r->items[i]->label.len);
	}
	sheaf_records_free(r);
	return rc;
}

static int read_tree(sheaf_session *s, words *w, sheaf_error *err)
{
	sheaf_tree *t = NULL;
	char line[100];
	int rc = sheaf_session_tree(&t, s, err);
	for (size_t i = 0; rc == 0 && i < t->node_count; i++) {
		const sheaf_node *n = t->nodes[i];
		int len = snprintf(line, sizeof(line), "%zu children, depth %d, path %d",
		                   n->child_count, (int)n->depth, (int)n->on_path);
		say(w, line, (size_t)len);
		say_entry(w, n->entry);
	}
	sheaf_tree_free(t);
	return rc;
}

static int read_context(sheaf_session *s, words *w, sheaf_error *err)
{
	sheaf_context *c = NULL;
	char line[100];
	int rc = sheaf_session_context(&c, s, NULL, err);
	for (size_t i = 0; rc == 0 && i < c->count; i++) {
		sheaf_message_view_text(c->items[i]->message, line, sizeof(line));
		say(w, line, strlen(line));
	}
	if (rc == 0)
		say(w, line,
		    (size_t)snprintf(line, sizeof(line), "hash %llx",
		                     (unsigned long long)c->prefix_hash));
	sheaf_context_free(c);
	return rc;
}

static int read_queue(sheaf_session *s, words *w, sheaf_error *err)
{
	int rc;
	w->text = queue_text(s, &rc, err);
	return rc;
}

static int read_check(sheaf_store *store, words *w, sheaf_error *err)
{
	sheaf_report *r = NULL;
	char line[200];
	int rc = sheaf_store_check(&r, store, NULL, err);
	if (rc == 0)
		say(w, line,
		    (size_t)snprintf(line, sizeof(line), "%llu sessions, %llu records, %llu bytes",
		                     (unsigned long long)r->sessions,
		                     (unsigned long long)r->records, (unsigned long long)r->bytes));
	for (size_t i = 0; rc == 0 && i < r->count; i++)
		if (r->problems[i]->what != SHEAF_PROBLEM_KEPT)
			say(w, r->problems[i]->detail.ptr, r->problems[i]->detail.len);
	sheaf_report_free(r);
	return rc;
}

static int do_read(player *p, const step *what, sheaf_error *err)
{
	sheaf_session *s = NULL;
	words w = {NULL, 0};
	int rc = 0;

	free(p->said);
	p->said = NULL;
	if (what->kind == STEP_LIST) {
		p->said = list_text(p->store, &rc, err);
		return rc;
	}
	if (what->session)
		rc = handle_of(p, what->session, &s, err);
	if (rc == 0)
		rc = what->kind == STEP_RECORDS   ? read_records(s, &w, err)
		     : what->kind == STEP_PATH    ? read_path(s, &w, err)
		     : what->kind == STEP_TREE    ? read_tree(s, &w, err)
		     : what->kind == STEP_CONTEXT ? read_context(s, &w, err)
		     : what->kind == STEP_QUEUE   ? read_queue(s, &w, err)
		                                  : read_check(p->store, &w, err);
	p->said = w.text;
	return rc;
}

/* ---- All of them ------------------------------------------------------------------------------ */

static int do_reopen(player *p, sheaf_error *err)
{
	player_close(p);
	return player_open(p, NULL, err);
}

int player_do(player *p, const step *what, unsigned at, bool again, sheaf_error *err)
{
	sheaf_session *s = NULL;
	int rc = 0;

	memset(err, 0, sizeof(*err));
	p->existed = false;
	/* Setups come before, also in time. */
	fault_io_clock((int64_t)(at >= SETUP_FROM ? at - SETUP_FROM : at + SETUP_FROM) * 1000000);
	fault_io_wait(700000);
	if (step_reads(what))
		return do_read(p, what, err);
	switch (what->kind) {
	case STEP_CREATE:
	case STEP_CREATE_STATE:
		return do_create(p, what, again, err);
	case STEP_REOPEN:
		return do_reopen(p, err);
	case STEP_CLOSE:
		drop_handle(p, what->session);
		return 0;
	case STEP_DELETE:
	case STEP_PURGE:
		return do_delete(p, what, err);
	case STEP_REPAIR:
		return do_repair(p, what, err);
	case STEP_APP:
		return do_app(p, what, at, err);
	case STEP_DAMAGE:
	case STEP_TEAR:
	case STEP_DAMAGE_QUEUE:
	case STEP_TEAR_QUEUE:
		return spoil(p, what);
	default:
		break;
	}
	rc = handle_of(p, what->session, &s, err);
	if (rc != 0)
		return rc;
	switch (what->kind) {
	case STEP_TEXT:
	case STEP_STATE:
	case STEP_AUTO:
	case STEP_AGAIN:
		return do_text(p, s, what, at, err);
	case STEP_BATCH:
	case STEP_CUSTOM:
		return do_batch(p, s, what, at, err);
	case STEP_FORK:
	case STEP_COPY:
	case STEP_EXPORT:
		return do_derive(p, s, what, again, err);
	case STEP_PUT:
	case STEP_TAKE:
	case STEP_CANCEL:
		return do_queue(p, s, what, at, again, err);
	case STEP_OPEN:
		return 0;
	default:
		return do_fact(p, s, what, at, err);
	}
}
