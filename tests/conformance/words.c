/* Short words for the calls a case makes most: appends, reads, and contexts in a line. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "trash.h"

/* ---- Memory --------------------------------------------------------------- */

void *t_alloc(suite *t, size_t size)
{
	void *p = calloc(1, size ? size : 1);
	CHECK(p != NULL);
	trash_add(t, TRASH_MEMORY, p);
	return p;
}

char *t_format(suite *t, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, format);
	int n = vasprintf(&text, format, args);
	va_end(args);
	CHECK(n >= 0);
	trash_add(t, TRASH_MEMORY, text);
	return text;
}

char *t_fill(suite *t, char byte, size_t count)
{
	char *p = t_alloc(t, count + 1);
	memset(p, byte, count);
	return p;
}

bool t_contains(sheaf_str text, const char *piece)
{
	return text.ptr && memmem(text.ptr, text.len, piece, strlen(piece)) != NULL;
}

const char *t_member(suite *t, sheaf_str json, const char *name)
{
	char *look = t_format(t, "\"%s\":\"", name);
	const char *p = json.ptr ? memmem(json.ptr, json.len, look, strlen(look)) : NULL;
	if (!p)
		return NULL;
	p += strlen(look);
	const char *end = memchr(p, '"', (size_t)(json.ptr + json.len - p));
	CHECK(end != NULL);
	return t_format(t, "%.*s", (int)(end - p), p);
}

/* ---- Options -------------------------------------------------------------- */

sheaf_entry_options t_entry(const put *p)
{
	sheaf_entry_options o = SHEAF_ENTRY_OPTIONS_INIT;
	o.id = S(p->id);
	o.branch = S(p->branch);
	o.has_parent = p->parent || p->root;
	o.parent_id = S(p->parent);
	o.partial = p->partial;
	o.time_us = p->time_us;
	o.turn = S(p->turn);
	o.author = S(p->author);
	o.agent = S(p->agent);
	o.invocation_id = S(p->invocation_id);
	o.extra = S(p->extra);
	o.state_delta = S(p->state_delta);
	return o;
}

sheaf_append_options t_how(const put *p)
{
	sheaf_append_options o = SHEAF_APPEND_OPTIONS_INIT;
	o.expect = p->expect;
	o.leaf = S(p->leaf);
	o.revision = p->revision;
	o.durability = p->durability;
	return o;
}

static void fresh_out(suite *t)
{
	t->out = (sheaf_appended)SHEAF_APPENDED_INIT;
}

/* ---- Sessions ------------------------------------------------------------- */

sheaf_key t_key_of(suite *t, const char *app, const char *user, const char *session)
{
	const char *whole = t->app[0] ? t_format(t, "%s%s", t->app, app) : app;
	return (sheaf_key){S(whole), S(user), S(session)};
}

sheaf_key t_key(suite *t, const char *session)
{
	return t_key_of(t, "", "", session);
}

void t_keep(suite *t, sheaf_session *s)
{
	trash_add(t, TRASH_SESSION, s);
}

sheaf_session *t_open_in(suite *t, sheaf_store *store, const sheaf_key *key, int mode)
{
	sheaf_session *s = NULL;
	sheaf_session_options o = SHEAF_SESSION_OPTIONS_INIT;
	o.mode = mode;
	OK(sheaf_session_open(&s, store, key, &o, &t->err));
	CHECK(s != NULL);
	t_keep(t, s);
	return s;
}

sheaf_session *t_new(suite *t, const char *session)
{
	sheaf_key key = t_key(t, session);
	return t_open_in(t, t->store, &key, SHEAF_OPEN_NEW);
}

sheaf_session *t_existing(suite *t, const char *session)
{
	sheaf_key key = t_key(t, session);
	return t_open_in(t, t->store, &key, SHEAF_OPEN_EXISTING);
}

sheaf_session *t_restart(suite *t, const char *session)
{
	suite_reopen(t);
	return t_existing(t, session);
}

sheaf_session *t_fork(suite *t, sheaf_session *source, const char *at, const char *session)
{
	sheaf_session *s = NULL;
	sheaf_key key = t_key(t, session);
	OK(sheaf_session_fork(&s, source, S(at), &key, NULL, &t->err));
	CHECK(s != NULL);
	t_keep(t, s);
	return s;
}

void t_close(suite *t, sheaf_session *s)
{
	trash_forget(t, s);
	sheaf_session_close(s);
}

/* ---- Appends -------------------------------------------------------------- */

static int append(suite *t, sheaf_session *s, sheaf_message *m, const put *p)
{
	sheaf_entry_options entry = t_entry(p);
	sheaf_append_options how = t_how(p);
	fresh_out(t);
	int rc = sheaf_session_append_message(s, m, &entry, &how, &t->out, &t->err);
	sheaf_message_free(m);
	return rc;
}

int t_say(suite *t, sheaf_session *s, const char *role, const char *text, put p)
{
	sheaf_message *m = sheaf_message_new(role);
	CHECK(m != NULL);
	sheaf_message_text(m, S(text));
	return append(t, s, m, &p);
}

int t_call(suite *t, sheaf_session *s, const char *call, const char *tool, const char *input, put p)
{
	sheaf_message *m = sheaf_message_new(SHEAF_ROLE_ASSISTANT);
	CHECK(m != NULL);
	sheaf_message_tool_use(m, S(call), S(tool), S(input));
	return append(t, s, m, &p);
}

int t_answer(suite *t, sheaf_session *s, const char *call, const char *text, put p)
{
	sheaf_message *m = sheaf_message_new(SHEAF_ROLE_TOOL);
	CHECK(m != NULL);
	sheaf_message_tool_result(m, S(call), S(NULL), S(text), -1);
	return append(t, s, m, &p);
}

int t_json(suite *t, sheaf_session *s, const char *type, const char *body, put p)
{
	sheaf_entry_options entry = t_entry(&p);
	sheaf_append_options how = t_how(&p);
	fresh_out(t);
	return sheaf_session_append_json(s, S(type), S(body), &entry, &how, &t->out, &t->err);
}

int t_compact(suite *t, sheaf_session *s, const char *summary, const char *first_kept, put p)
{
	sheaf_entry_options entry = t_entry(&p);
	sheaf_append_options how = t_how(&p);
	fresh_out(t);
	return sheaf_session_append_compaction(s, S(summary), S(first_kept), 1500, &entry, &how,
	                                       &t->out, &t->err);
}

int t_label(suite *t, sheaf_session *s, const char *target, const char *label)
{
	fresh_out(t);
	return sheaf_session_label(s, S(target), S(label), NULL, &t->out, &t->err);
}

int t_branch(suite *t, sheaf_session *s, const char *name, const char *target)
{
	fresh_out(t);
	return sheaf_session_branch(s, S(name), S(target), NULL, &t->out, &t->err);
}

int t_rename(suite *t, sheaf_session *s, const char *name)
{
	fresh_out(t);
	return sheaf_session_rename(s, S(name), S(NULL), NULL, &t->out, &t->err);
}

sheaf_batch *t_batch(suite *t)
{
	sheaf_batch *b = sheaf_batch_new();
	CHECK(b != NULL);
	trash_add(t, TRASH_BATCH, b);
	return b;
}

int t_batch_say(suite *t, sheaf_batch *b, const char *role, const char *text, put p)
{
	sheaf_message *m = sheaf_message_new(role);
	CHECK(m != NULL);
	sheaf_message_text(m, S(text));
	sheaf_entry_options entry = t_entry(&p);
	int rc = sheaf_batch_message(b, m, &entry, &t->err);
	sheaf_message_free(m);
	return rc;
}

int t_append_batch(suite *t, sheaf_session *s, sheaf_batch *b, put p)
{
	sheaf_append_options how = t_how(&p);
	fresh_out(t);
	return sheaf_session_append_batch(s, b, &how, &t->out, &t->err);
}

/* ---- Reads ---------------------------------------------------------------- */

const char *t_leaf(suite *t, sheaf_session *s, const char *branch)
{
	char *out = t_alloc(t, SHEAF_ID_ROOM);
	OK(sheaf_session_leaf(s, S(branch), out, &t->err));
	return out;
}

const sheaf_head_view *t_head(suite *t, sheaf_session *s)
{
	sheaf_head_view *h = NULL;
	OK(sheaf_session_head(&h, s, &t->err));
	CHECK(h != NULL && h->info != NULL);
	trash_add(t, TRASH_HEAD, h);
	return h;
}

uint64_t t_revision(suite *t, sheaf_session *s)
{
	return t_head(t, s)->info->revision;
}

const sheaf_records *t_keep_records(suite *t, sheaf_records *r)
{
	CHECK(r != NULL);
	trash_add(t, TRASH_RECORDS, r);
	return r;
}

const sheaf_records *t_path(suite *t, sheaf_session *s, const char *branch)
{
	sheaf_records *r = NULL;
	OK(sheaf_session_path(&r, s, S(branch), S(NULL), 0, &t->err));
	return t_keep_records(t, r);
}

const sheaf_records *t_records(suite *t, sheaf_session *s, const sheaf_read_options *options)
{
	sheaf_records *r = NULL;
	OK(sheaf_session_records(&r, s, options, &t->err));
	return t_keep_records(t, r);
}

const sheaf_records *t_all(suite *t, sheaf_session *s)
{
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	o.limit = 100000;
	const sheaf_records *r = t_records(t, s, &o);
	EQ(r->next_seq, 0);
	return r;
}

const sheaf_entry *t_get(suite *t, sheaf_session *s, const char *id)
{
	sheaf_records *r = NULL;
	OK(sheaf_session_get(&r, s, S(id), &t->err));
	t_keep_records(t, r);
	EQ(r->count, 1);
	return r->items[0];
}

const sheaf_records *t_children(suite *t, sheaf_session *s, const char *id)
{
	sheaf_records *r = NULL;
	OK(sheaf_session_children(&r, s, S(id), &t->err));
	return t_keep_records(t, r);
}

const sheaf_records *t_labels(suite *t, sheaf_session *s)
{
	sheaf_records *r = NULL;
	OK(sheaf_session_labels(&r, s, &t->err));
	return t_keep_records(t, r);
}

const sheaf_tree *t_tree(suite *t, sheaf_session *s)
{
	sheaf_tree *tree = NULL;
	OK(sheaf_session_tree(&tree, s, &t->err));
	CHECK(tree != NULL);
	trash_add(t, TRASH_TREE, tree);
	return tree;
}

const sheaf_list *t_list(suite *t, const sheaf_list_options *options)
{
	sheaf_list *l = NULL;
	OK(sheaf_store_list(&l, t->store, options, &t->err));
	CHECK(l != NULL);
	trash_add(t, TRASH_LIST, l);
	return l;
}

const sheaf_list *t_list_mine(suite *t)
{
	sheaf_list_options o = SHEAF_LIST_OPTIONS_INIT;
	o.app = S(t->app);
	o.user = S("");
	return t_list(t, &o);
}

/* ---- Contexts ------------------------------------------------------------- */

const sheaf_context *t_context_with(suite *t, sheaf_session *s,
                                    const sheaf_context_options *options)
{
	sheaf_context *c = NULL;
	OK(sheaf_session_context(&c, s, options, &t->err));
	CHECK(c != NULL);
	trash_add(t, TRASH_CONTEXT, c);
	return c;
}

const sheaf_context *t_context(suite *t, sheaf_session *s)
{
	return t_context_with(t, s, NULL);
}

static const char *item_text(suite *t, const sheaf_item *i)
{
	const sheaf_message_view *m = i->message;
	switch (i->kind) {
	case SHEAF_ITEM_COMPACTION_SUMMARY:
		return t_format(t, "S(%.*s)", (int)i->text.len, i->text.ptr);
	case SHEAF_ITEM_BRANCH_SUMMARY:
		return t_format(t, "B(%.*s)", (int)i->text.len, i->text.ptr);
	case SHEAF_ITEM_CUSTOM:
		return t_format(t, "X(%.*s)", (int)i->text.len, i->text.ptr);
	default:
		break;
	}
	char text[256];
	sheaf_message_view_text(m, text, sizeof(text));
	if (i->synthetic && m->part_count && m->parts[0]->kind == SHEAF_PART_TOOL_RESULT) {
		char *all = t_format(t, "%s", "");
		for (size_t k = 0; k < m->part_count; k++)
			all = t_format(t, "%s!%.*s", all, (int)m->parts[k]->tool_use_id.len,
			               m->parts[k]->tool_use_id.ptr);
		return all;
	}
	if (i->synthetic)
		return t_format(t, "~%s", text);
	CHECK(i->entry != NULL);
	if (i->entry->kind == SHEAF_KIND_COMPACTION)
		return t_format(t, "R(%s)", text);
	return t_format(t, "%.*s", (int)i->entry->id.len, i->entry->id.ptr);
}

const char *t_items(suite *t, const sheaf_context *c)
{
	char *all = t_format(t, "%s", "");
	for (size_t i = 0; i < c->count; i++) {
		CHECK(c->items[i]->message != NULL);
		all = t_format(t, "%s%s%s", all, i ? " " : "", item_text(t, c->items[i]));
	}
	return all;
}

bool t_noted(const sheaf_context *c, int what, const char *detail)
{
	for (size_t i = 0; i < c->note_count; i++) {
		const sheaf_note *n = c->notes[i];
		if (n->what == what &&
		    (!detail || t_contains(n->detail, detail) || t_contains(n->entry_id, detail)))
			return true;
	}
	return false;
}

/* ---- State -------------------------------------------------------------- */

static const char *state_line(suite *t, sheaf_state *state)
{
	size_t room = 1;
	for (size_t i = 0; i < state->count; i++)
		room += state->items[i]->key.len + state->items[i]->value.len + 2;
	char *line = t_alloc(t, room);
	size_t n = 0;
	for (size_t i = 0; i < state->count; i++) {
		const sheaf_state_value *v = state->items[i];
		n += (size_t)snprintf(line + n, room - n, "%s%.*s=%.*s", i ? " " : "",
		                      (int)v->key.len, v->key.ptr, (int)v->value.len, v->value.ptr);
	}
	sheaf_state_free(state);
	return line;
}

const char *t_state(suite *t, sheaf_session *s)
{
	sheaf_state *state = NULL;
	OK(sheaf_session_state_all(&state, s, &t->err));
	return state_line(t, state);
}

const char *t_store_state(suite *t, const char *app, const char *user)
{
	sheaf_state *state = NULL;
	OK(sheaf_store_state(&state, t->store, S(app), S(user), &t->err));
	return state_line(t, state);
}
