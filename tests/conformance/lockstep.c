/* Runs a history's operations on a real store: writes. Reads are in lockstep_read.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep_inside.h"

typedef unsigned long long ull;

int real_open(real *r, const char *url, sheaf_error *err)
{
	memset(r, 0, sizeof(*r));
	r->url = url;
	r->lasting = strncmp(url, "memory:", 7) != 0;
	return sheaf_open(&r->store, url, NULL, err);
}

static void drop_handles(real *r, int key)
{
	for (int i = 0; i < 2; i++) {
		sheaf_session_close(r->handles[key][i]);
		r->handles[key][i] = NULL;
	}
}

void real_begin(real *r, const char *app)
{
	for (int i = 0; i < KEYS; i++)
		drop_handles(r, i);
	snprintf(r->app, sizeof(r->app), "%s", app);
}

void real_close(real *r)
{
	real_begin(r, "");
	sheaf_close(r->store);
	r->store = NULL;
}

static const char *const keys[KEYS] = {"s0", "s1", "s2", "s3", "s4", "s5"};

sheaf_key real_key(const real *r, int key)
{
	return (sheaf_key){sheaf_str_of(r->app), sheaf_str_of("u"), sheaf_str_of(keys[key])};
}

sheaf_session *real_session(real *r, int key, int handle)
{
	sheaf_session **s = &r->handles[key][handle];
	if (*s)
		return *s;
	sheaf_key k = real_key(r, key);
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = SHEAF_OPEN_EXISTING;
	if (sheaf_session_open(s, r->store, &k, &o, NULL) != 0)
		*s = NULL;
	return *s;
}

sheaf_str real_name(sheaf_session *s, const name *n, char room[SHEAF_ID_ROOM])
{
	if (n->how == NAME_NONE)
		return (sheaf_str){NULL, 0};
	if (n->how == NAME_WORD) {
		snprintf(room, SHEAF_ID_ROOM, "%s", n->word);
		return sheaf_str_of(room);
	}
	snprintf(room, SHEAF_ID_ROOM, "ghost");
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.from_seq = n->seq;
	o.limit = 1;
	o.raw = 1;
	sheaf_records *r = NULL;
	if (n->seq && sheaf_session_records(&r, s, &o, NULL) == 0 && r->count == 1 &&
	    r->items[0]->seq == n->seq)
		snprintf(room, SHEAF_ID_ROOM, "%.*s", (int)r->items[0]->id.len,
		         r->items[0]->id.ptr);
	sheaf_records_free(r);
	return sheaf_str_of(room);
}

uint64_t real_seq(sheaf_session *s, sheaf_str id)
{
	sheaf_records *r = NULL;
	uint64_t seq = 0;
	if (id.len && sheaf_session_get(&r, s, id, NULL) == 0)
		seq = r->items[0]->seq;
	sheaf_records_free(r);
	return seq;
}

void real_failed(answer *a, sheaf_session *s, int rc, const sheaf_error *err)
{
	answer_add(a, "%s", sheaf_code_name(rc));
	if (rc == SHEAF_STALE)
		answer_add(a, " rev=%llu leaf=%llu", (ull)err->revision,
		           (ull)real_seq(s, sheaf_str_of(err->leaf)));
	if (err->code != rc || err->outcome != SHEAF_FAILED)
		answer_add(a, " (err says %d, %d)", err->code, err->outcome);
}

/* ---- Records to append ------------------------------------------------------- */

static sheaf_message *message_of(const spec *s)
{
	static const char *const roles[] = {NULL, "assistant", "tool"};
	sheaf_message *m = sheaf_message_new(s->what == SPEC_TEXT ? s->role : roles[s->what]);
	if (!m)
		abort();
	if (s->what == SPEC_TEXT)
		sheaf_message_text(m, sheaf_str_of(s->text));
	for (int i = 0; i < s->call_count; i++) {
		char id[16];
		snprintf(id, sizeof(id), "c%d", s->calls[i]);
		if (s->what == SPEC_CALL)
			sheaf_message_tool_use(m, sheaf_str_of(id), sheaf_str_of("f"),
			                       sheaf_str_of("{}"));
		else
			sheaf_message_tool_result(m, sheaf_str_of(id), sheaf_str_of(NULL),
			                          sheaf_str_of(s->text), -1);
	}
	if (s->tokens) {
		sheaf_usage u = {.input = s->tokens};
		sheaf_message_usage(m, &u);
	}
	return m;
}

/* Type and body of the records that are no messages. */
static const char *body_of(const spec *s, sheaf_session *session, char *room, size_t size)
{
	char id[SHEAF_ID_ROOM];
	switch (s->what) {
	case SPEC_MODEL:
		snprintf(room, size, "{\"model_change\":{\"provider\":\"p\",\"model_id\":\"%s\"}}",
		         s->text);
		return "model_change";
	case SPEC_LEVEL:
		snprintf(room, size, "{\"thinking_level\":{\"thinking_level\":\"%s\"}}", s->text);
		return "thinking_level";
	case SPEC_CUSTOM:
		snprintf(room, size, "{\"custom\":{\"custom_type\":\"x\",\"data\":\"%s\"}}",
		         s->text);
		return "custom";
	case SPEC_CUSTOM_TEXT:
		snprintf(
			room, size,
			"{\"custom\":{\"custom_type\":\"x\",\"in_context\":true,\"content\":\"%s\"}}",
			s->text);
		return "custom";
	case SPEC_LABEL:
		real_name(session, &s->target, id);
		snprintf(room, size, "{\"label\":{\"target_id\":\"%s\",\"label\":\"%s\"}}", id,
		         s->text);
		return "label";
	default:
		snprintf(room, size, "{\"session_info\":{\"name\":\"%s\"}}", s->text);
		return "session_info";
	}
}

static sheaf_entry_options entry_of(const spec *s, sheaf_session *session, char room[SHEAF_ID_ROOM])
{
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = sheaf_str_of(s->id);
	e.branch = sheaf_str_of(s->branch);
	e.has_parent = s->has_parent;
	if (s->has_parent)
		e.parent_id = real_name(session, &s->parent, room);
	e.partial = s->partial;
	e.time_us = s->time_us;
	if (s->turn[0])
		e.turn = sheaf_str_of(s->turn);
	if (s->agent[0])
		e.agent = sheaf_str_of(s->agent);
	return e;
}

static sheaf_append_options how_of(const op *o, sheaf_session *s, char room[SHEAF_ID_ROOM])
{
	sheaf_append_options how = SHEAF_APPEND_OPTIONS_INIT;
	how.expect = o->expect;
	how.revision = o->revision;
	if (o->expect == SHEAF_EXPECT_LEAF)
		how.leaf = real_name(s, &o->leaf, room);
	return how;
}

/* One append by the call that is made for its kind. */
static int append_one(sheaf_session *s, const op *o, sheaf_appended *out, sheaf_error *err)
{
	const spec *x = &o->specs[0];
	char parent[SHEAF_ID_ROOM];
	char leaf[SHEAF_ID_ROOM];
	char body[256];
	sheaf_entry_options e = entry_of(x, s, parent);
	sheaf_append_options how = how_of(o, s, leaf);
	sheaf_str text = sheaf_str_of(x->text);
	int rc;
	switch (x->what) {
	case SPEC_TEXT:
	case SPEC_CALL:
	case SPEC_ANSWER: {
		sheaf_message *m = message_of(x);
		rc = sheaf_session_append_message(s, m, &e, &how, out, err);
		sheaf_message_free(m);
		return rc;
	}
	case SPEC_MODEL:
		return sheaf_session_append_model_change(s, sheaf_str_of("p"), text, &e, &how, out,
		                                         err);
	case SPEC_LEVEL:
		return sheaf_session_append_thinking_level(s, text, &e, &how, out, err);
	case SPEC_CUSTOM_TEXT:
		return sheaf_session_append_custom_text(s, sheaf_str_of("x"), text, &e, &how, out,
		                                        err);
	default: {
		const char *type = body_of(x, s, body, sizeof(body));
		return sheaf_session_append_json(s, sheaf_str_of(type), sheaf_str_of(body), &e,
		                                 &how, out, err);
	}
	}
}

static int append_many(sheaf_session *s, const op *o, sheaf_appended *out, sheaf_error *err)
{
	sheaf_batch *b = sheaf_batch_new();
	char leaf[SHEAF_ID_ROOM];
	int rc = b ? 0 : SHEAF_NOMEM;
	for (int i = 0; i < o->count && rc == 0; i++) {
		const spec *x = &o->specs[i];
		char parent[SHEAF_ID_ROOM];
		sheaf_entry_options e = entry_of(x, s, parent);
		if (x->what <= SPEC_ANSWER) {
			sheaf_message *m = message_of(x);
			rc = sheaf_batch_message(b, m, &e, err);
			sheaf_message_free(m);
		} else {
			char body[256];
			const char *type = body_of(x, s, body, sizeof(body));
			rc = sheaf_batch_json(b, sheaf_str_of(type), sheaf_str_of(body), &e, err);
		}
	}
	sheaf_append_options how = how_of(o, s, leaf);
	if (rc == 0 && o->what == OP_TURN) {
		sheaf_usage u = {.input = o->tokens};
		rc = sheaf_session_append_turn(s, b, sheaf_str_of(o->turn), sheaf_str_of(NULL),
		                               o->tokens ? &u : NULL, &how, out, err);
	} else if (rc == 0) {
		rc = sheaf_session_append_batch(s, b, &how, out, err);
	}
	sheaf_batch_free(b);
	return rc;
}

/* ---- Writes ------------------------------------------------------------------ */

static int write_fact(sheaf_session *s, const op *o, sheaf_appended *out, sheaf_error *err)
{
	char room[SHEAF_ID_ROOM];
	char leaf[SHEAF_ID_ROOM];
	char metadata[WORD + 8];
	sheaf_str target = real_name(s, &o->target, room);
	sheaf_append_options how = how_of(o, s, leaf);
	sheaf_str word = sheaf_str_of(o->word);
	switch (o->what) {
	case OP_LABEL:
		return sheaf_session_label(s, target, word, &how, out, err);
	case OP_BRANCH:
		return sheaf_session_branch(s, word, target, &how, out, err);
	case OP_BRANCH_DELETE:
		return sheaf_session_branch_delete(s, word, &how, out, err);
	case OP_BRANCH_SUMMARY:
		snprintf(metadata, sizeof(metadata), "left %s", o->word);
		return sheaf_session_branch_with_summary(s, word, target, sheaf_str_of(metadata),
		                                         &how, out, err);
	default:
		snprintf(metadata, sizeof(metadata), "{\"n\":%llu}", (ull)o->tokens);
		return sheaf_session_rename(s, word, sheaf_str_of(o->metadata ? metadata : NULL),
		                            &how, out, err);
	}
}

static int write_compaction(sheaf_session *s, const op *o, sheaf_appended *out, sheaf_error *err)
{
	char room[SHEAF_ID_ROOM];
	char leaf[SHEAF_ID_ROOM];
	sheaf_entry_options e = SHEAF_ENTRY_OPTIONS_INIT;
	e.id = sheaf_str_of(o->id);
	e.branch = sheaf_str_of(o->word);
	e.time_us = o->time_us;
	sheaf_append_options how = how_of(o, s, leaf);
	return sheaf_session_append_compaction(
		s, sheaf_str_of("sum"), real_name(s, &o->target, room), 7, &e, &how, out, err);
}

static void run_write(sheaf_session *s, const op *o, answer *a)
{
	sheaf_appended out = SHEAF_APPENDED_INIT;
	sheaf_error err = {0};
	int rc;
	switch (o->what) {
	case OP_APPEND:
		rc = append_one(s, o, &out, &err);
		break;
	case OP_BATCH:
	case OP_TURN:
		rc = append_many(s, o, &out, &err);
		break;
	case OP_COMPACT:
		rc = write_compaction(s, o, &out, &err);
		break;
	case OP_CLEAR: {
		rc = sheaf_session_clear(s, &err);
		sheaf_head_view *h = NULL;
		if (rc == 0)
			rc = sheaf_session_head(&h, s, &err);
		if (rc == 0)
			out.seq = out.first_seq = h->info->revision;
		sheaf_head_view_free(h);
		break;
	}
	default:
		rc = write_fact(s, o, &out, &err);
		break;
	}
	if (rc)
		real_failed(a, s, rc, &err);
	else
		answer_add(a, "OK %llu-%llu%s", (ull)out.first_seq, (ull)out.seq,
		           out.existed ? " existed" : "");
}

/* ---- Sessions ---------------------------------------------------------------- */

static void run_make(real *r, sheaf_session *s, const op *o, answer *a)
{
	char room[SHEAF_ID_ROOM];
	sheaf_error err = {0};
	sheaf_key key = real_key(r, o->other);
	sheaf_session *made = NULL;
	sheaf_str target = real_name(s, &o->target, room);
	int rc;
	if (o->what == OP_FORK)
		rc = sheaf_session_fork(&made, s, target, &key, NULL, &err);
	else if (o->what == OP_COPY)
		rc = sheaf_session_copy(&made, s, r->store, &key, &err);
	else
		rc = sheaf_session_export_path(&made, s, target, r->store, &key, &err);
	if (rc) {
		real_failed(a, s, rc, &err);
		return;
	}
	sheaf_head_view *h = NULL;
	rc = sheaf_session_head(&h, made, &err);
	if (rc) {
		real_failed(a, made, rc, &err);
	} else {
		answer_add(a, "OK");
		if (o->what == OP_FORK)
			answer_add(a, " base=%llu", (ull)h->info->base);
		answer_add(a, " rev=%llu", (ull)h->info->revision);
	}
	sheaf_head_view_free(h);
	drop_handles(r, o->other);
	r->handles[o->other][o->handle] = made;
}

static int by_name(const void *a, const void *b)
{
	const sheaf_session_info *x = *(const sheaf_session_info *const *)a;
	const sheaf_session_info *y = *(const sheaf_session_info *const *)b;
	return memcmp(x->session.ptr, y->session.ptr, 2);
}

static void run_delete(real *r, const op *o, answer *a)
{
	sheaf_key key = real_key(r, o->key);
	sheaf_delete_options options = SHEAF_DELETE_OPTIONS_INIT;
	options.purge = o->what == OP_PURGE;
	sheaf_deleted *d = NULL;
	sheaf_error err = {0};
	drop_handles(r, o->key);
	int rc = sheaf_store_delete(&d, r->store, &key, &options, &err);
	if (rc) {
		real_failed(a, NULL, rc, &err);
		return;
	}
	answer_add(a, "OK existed=%d", d->existed);
	if (d->existed || d->hidden || d->forks->count) {
		const sheaf_session_info *forks[KEYS];
		size_t n = d->forks->count < KEYS ? d->forks->count : KEYS;
		if (n)
			memcpy(forks, d->forks->items, n * sizeof(forks[0]));
		qsort(forks, n, sizeof(forks[0]), by_name);
		answer_add(a, " hidden=%d forks=", d->hidden);
		for (size_t i = 0; i < n; i++)
			answer_add(a, "%.*s,", (int)forks[i]->session.len, forks[i]->session.ptr);
	}
	sheaf_deleted_free(d);
}

static void run_restart(real *r, answer *a)
{
	for (int i = 0; i < KEYS; i++)
		drop_handles(r, i);
	if (!r->lasting)
		return;
	sheaf_close(r->store);
	r->store = NULL;
	sheaf_error err = {0};
	int rc = sheaf_open(&r->store, r->url, NULL, &err);
	if (rc)
		answer_add(a, "reopen: %s %s", sheaf_code_name(rc), err.message);
}

static void run_open_new(real *r, const op *o, answer *a)
{
	sheaf_key key = real_key(r, o->key);
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	options.mode = SHEAF_OPEN_NEW;
	sheaf_session *s = NULL;
	int rc = sheaf_session_open(&s, r->store, &key, &options, NULL);
	answer_add(a, "%s", sheaf_code_name(rc));
	if (rc)
		return;
	drop_handles(r, o->key);
	r->handles[o->key][o->handle] = s;
}

void real_run(real *r, const op *o, answer *said, answer *bytes)
{
	switch (o->what) {
	case OP_OPEN_NEW:
		run_open_new(r, o, said);
		return;
	case OP_DELETE:
	case OP_PURGE:
		run_delete(r, o, said);
		return;
	case OP_RESTART:
		run_restart(r, said);
		real_list(r, said);
		return;
	case OP_LIST:
		real_list(r, said);
		return;
	default:
		break;
	}
	sheaf_session *s = real_session(r, o->key, o->handle);
	if (!s) {
		answer_add(said, "no session");
		return;
	}
	if (o->what == OP_FORK || o->what == OP_COPY || o->what == OP_EXPORT)
		run_make(r, s, o, said);
	else if (o->what < OP_FORK)
		run_write(s, o, said);
	else
		real_read(s, o, said, bytes);
}

void real_end(real *r, answer *said)
{
	for (int i = 0; i < KEYS; i++) {
		op o = {.what = i % 2 ? OP_DELETE : OP_PURGE, .key = i};
		answer unused = {0};
		run_delete(r, &o, &unused);
		answer_free(&unused);
	}
	real_list(r, said);
}
