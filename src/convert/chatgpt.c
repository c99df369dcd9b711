/*
 * ChatGPT's data export: a list of conversations, each a tree of nodes in an
 * object `mapping`, or one such conversation.
 *
 * The pieces of a conversation are its messages. What the nodes are, who their
 * parents and children are, is text between them: it changes when a
 * conversation goes on, the messages do not. A node may stand before its parent;
 * it is kept as it is and becomes an entry together with the parent. Calls have
 * no ids: a call is a message to a tool, named by its node.
 */
#include "convert/chatgpt.h"

#include <stdio.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "convert/document.h"
#include "convert/import_inside.h"
#include "convert/media.h"
#include "convert/parts.h"
#include "entry/members.h"

#define NODES_MAX 50000 /* more are kept as they are */
#define VERSIONS_MAX 99

/* What a node became. */
typedef struct node {
	sheaf_str id;
	sheaf_str entry;   /* the entry that stands for it: its own, or its parent's; "" = none */
	sheaf_str call;    /* the call that it makes or answers, {NULL,0} if none */
	struct node *late; /* nodes that wait for it */
	struct node *next; /* waits for the same */
	sheaf_str parent;
	uint64_t at, end; /* where its message is */
	bool there;
	bool waits; /* for its parent */
} node;

typedef struct state {
	arena *arena;   /* of the conversation */
	arena *scratch; /* of the node at hand */
	node beyond;    /* any node that is one too many */
	map nodes;
	document *document;
	node **todo; /* nodes that became entries and may be waited for */
	size_t todo_count, todo_room;
	node *now;
	uint64_t waiting; /* nodes whose parent has not come */
	buf text, flat;
} state;

/* ---- Nodes --------------------------------------------------------------- */

/* The node of that id, known or not yet; NULL when out of memory. */
static node *node_get(state *s, sheaf_str id)
{
	int ok = 1;
	node *n = map_get_ptr(&s->nodes, id);
	if (n != NULL)
		return n;
	n = arena_zalloc(s->arena, sizeof(*n));
	if (n == NULL)
		return NULL;
	n->id = arena_dup(s->arena, id, &ok);
	return ok && map_set_ptr(&s->nodes, n->id, n) == 0 ? n : NULL;
}

static int todo_add(import *im, node *n)
{
	state *s = im->state;
	void *list = s->todo;
	if (mem_grow(&list, &s->todo_room, s->todo_count + 1, sizeof(*s->todo)) != 0)
		return err_nomem(im->err);
	s->todo = list;
	s->todo[s->todo_count++] = n;
	return 0;
}

/* ---- Content ------------------------------------------------------------- */

static void opaque_put(sheaf_message *m, sheaf_str raw)
{
	(void)sheaf_message_opaque(m, SHEAF_STR("chatgpt"), raw);
}

/* `parts`: texts, and objects that point to files beside the export. */
static bool parts_put(sheaf_message *m, value content)
{
	value part;
	bool any = false;
	for (value_iter it = value_each(value_get(content, "parts")); value_next(&it, &part);) {
		sheaf_str text = json_string(part.v);
		if (text.ptr != NULL && text.len == 0)
			continue;
		if (text.ptr != NULL)
			(void)sheaf_message_text(m, text);
		else
			opaque_put(m, part.text);
		any = true;
	}
	return any;
}

static bool thoughts_put(sheaf_message *m, value content)
{
	value thought;
	bool any = false;
	for (value_iter it = value_each(value_get(content, "thoughts"));
	     value_next(&it, &thought);) {
		sheaf_str text = value_string(thought, "content");
		if (text.len == 0)
			text = value_string(thought, "summary");
		(void)sheaf_message_thinking(m, text, (sheaf_str){NULL, 0}, 0);
		any = true;
	}
	return any;
}

/* Whatever the content is; false if it is nothing. */
static bool content_put(sheaf_message *m, value content)
{
	sheaf_str type = value_string(content, "content_type");
	sheaf_str text = value_string(content, "text");
	if (str_is(type, "text") || str_is(type, "multimodal_text"))
		return parts_put(m, content);
	if (str_is(type, "thoughts") && thoughts_put(m, content))
		return true;
	if ((str_is(type, "code") || str_is(type, "execution_output") ||
	     str_is(type, "tether_quote")) &&
	    text.ptr != NULL) {
		(void)sheaf_message_text(m, text);
		return text.len != 0;
	}
	if (content.v == NULL)
		return false;
	opaque_put(m, content.text);
	return true;
}

/* The text of a call: what was written to the tool. */
static sheaf_str call_text(value content)
{
	sheaf_str text = value_string(content, "text");
	json_iter it = json_each(json_get(content.v, "parts"));
	if (text.ptr == NULL && json_next(&it))
		text = json_string(it.value);
	return text.ptr != NULL ? text : SHEAF_STR("");
}

/* ---- Messages ------------------------------------------------------------ */

static void reply_put(sheaf_message *m, value metadata)
{
	sheaf_str model = value_string(metadata, "model_slug");
	sheaf_str reason = value_string(value_get(metadata, "finish_details"), "type");
	(void)sheaf_message_provider(m, SHEAF_STR("openai"));
	if (model.len != 0)
		(void)sheaf_message_model(m, model);
	if (reason.len != 0)
		(void)sheaf_message_stop_reason(m, reason);
}

static const char *role_of(sheaf_str role)
{
	static const char *const known[] = {SHEAF_ROLE_USER, SHEAF_ROLE_ASSISTANT,
	                                    SHEAF_ROLE_SYSTEM, SHEAF_ROLE_TOOL};
	for (size_t i = 0; i < COUNT_OF(known); i++) {
		if (str_is(role, known[i]))
			return known[i];
	}
	return NULL;
}

/* Fills the message; false if there is nothing in it. */
static bool message_put(sheaf_message *m, value message, const char *role, node *n,
                        const node *parent)
{
	value content = value_get(message, "content");
	sheaf_str to = value_string(message, "recipient");
	if (strcmp(role, SHEAF_ROLE_TOOL) == 0) {
		n->call = parent != NULL && parent->call.ptr != NULL ? parent->call : n->id;
		(void)sheaf_message_tool_result_begin(
			m, n->call, value_string(value_get(message, "author"), "name"), -1);
		/* only texts and media stand in a result */
		sheaf_str text = call_text(content);
		(void)sheaf_message_text(m, text.len != 0 ? text : content.text);
		(void)sheaf_message_tool_result_end(m);
		return true;
	}
	if (strcmp(role, SHEAF_ROLE_ASSISTANT) != 0)
		return content_put(m, content);
	reply_put(m, value_get(message, "metadata"));
	if (to.len == 0 || str_is(to, "all"))
		return content_put(m, content);
	n->call = n->id;
	(void)sheaf_message_tool_use(m, n->call, to, call_text(content));
	return true;
}

/* The node becomes an entry, or stands for the one its parent does. */
static int node_add(import *im, node *n, value message)
{
	state *s = im->state;
	const node *parent = n->parent.len != 0 ? node_get(s, n->parent) : NULL;
	sheaf_str behind = parent != NULL ? parent->entry : SHEAF_STR("");
	value author = value_get(message, "author");
	n->there = true;
	n->entry = behind;
	n->call = (sheaf_str){NULL, 0};
	if (json_type_of(message.v) != JSON_OBJECT)
		return todo_add(im, n);
	const char *role = role_of(value_string(author, "role"));
	_cleanup_(media_freep) sheaf_message *m = media_message(role != NULL ? role : "user");
	if (m == NULL)
		return err_nomem(im->err);
	if (role == NULL) {
		int rc = import_problem(im, "a message of a role that is not known");
		return rc == 0 ? todo_add(im, n) : rc;
	}
	int rc = 0;
	if (message_put(m, message, role, n, parent)) {
		import_record record = {
			.id = n->id,
			.has_parent = true,
			.parent = behind,
			.time_us = seconds_us(json_number(json_get(message.v, "create_time"))),
		};
		rc = import_message(im, m, &record);
		n->entry = n->id;
	} else if (sheaf_message_json(m).ptr == NULL) {
		rc = err_nomem(im->err);
	}
	return rc == 0 ? todo_add(im, n) : rc;
}

/* Those that waited for a node, and for them in turn. */
static int late_add(import *im)
{
	state *s = im->state;
	while (s->todo_count != 0) {
		node *parent = s->todo[--s->todo_count];
		for (node *n = parent->late; n != NULL; n = n->next) {
			value message;
			buf_reset(&s->text);
			buf_reset(&s->flat);
			int rc = document_text(s->document, n->at, n->end, &s->text, im->err);
			document_flatten(&s->flat, buf_view(&s->text));
			if (rc == 0)
				rc = buf_status(&s->flat, im->err);
			if (rc == 0)
				rc = import_parse(im, buf_view(&s->flat), &message);
			if (rc == 0)
				rc = node_add(im, n, message);
			if (rc != 0)
				return rc;
			s->waiting--;
		}
		parent->late = NULL;
	}
	return 0;
}

static int message_take(import *im, sheaf_str key, value message)
{
	state *s = im->state;
	node *n = s->now;
	(void)key;
	if (n == &s->beyond)
		return import_problem(im, "more nodes than a conversation has");
	if (n->there || n->waits)
		return import_problem(im, "a node that was there before");
	if (n->parent.len != 0) {
		node *parent = node_get(s, n->parent);
		if (parent == NULL)
			return err_nomem(im->err);
		if (!parent->there) {
			n->next = parent->late;
			parent->late = n;
			n->waits = true;
			s->waiting++;
			return 0;
		}
	}
	int rc = node_add(im, n, message);
	return rc == 0 ? late_add(im) : rc;
}

/* ---- Conversations ------------------------------------------------------- */

static int string_of(import *im, sheaf_str json, arena *in, sheaf_str *out)
{
	int ok = 1;
	value v = {NULL, {NULL, 0}};
	*out = (sheaf_str){NULL, 0};
	int rc = json.ptr != NULL ? import_parse(im, json, &v) : 0;
	sheaf_str text = json_string(v.v);
	if (rc == 0 && text.ptr != NULL)
		*out = arena_dup(in, text, &ok);
	return ok ? rc : err_nomem(im->err);
}

/* A member of `mapping`. */
static int node_read(import *im, document *d, sheaf_str key)
{
	static const char *const names[] = {"parent"};
	state *s = im->state;
	_cleanup_(buf_free) buf name = BUF_INIT(65536);
	sheaf_str parent, member, id;
	buf_char(&name, '"');
	buf_str(&name, key);
	buf_char(&name, '"');
	im->line = document_line(d);
	int rc = buf_status(&name, im->err);
	arena_clear(s->scratch);
	if (rc == 0)
		rc = string_of(im, buf_view(&name), s->scratch, &id);
	if (rc == 0)
		rc = document_members(d, names, &parent, 1, s->scratch, im->err);
	if (rc == 0)
		rc = string_of(im, parent, s->scratch, &parent);
	if (rc != 0)
		return rc;
	bool beyond = s->nodes.count >= NODES_MAX;
	node *n = beyond ? &s->beyond : node_get(s, id.ptr != NULL ? id : SHEAF_STR(""));
	int ok = 1;
	if (n != NULL && !beyond && !n->there && n->end == 0 && parent.ptr != NULL)
		n->parent = arena_dup(s->arena, parent, &ok);
	if (n == NULL || !ok)
		return err_nomem(im->err);
	s->now = n;
	int more = document_enter(d, im->err);
	while (more == 1 && (more = document_each(d, &member, im->err)) == 1) {
		if (members_key_is(member, "message")) {
			char c;
			rc = document_peek(d, &c, im->err);
			if (n->end == 0)
				n->at = document_at(d);
			if (rc >= 0)
				rc = document_piece(im, d, id, message_take);
			if (n->end == 0)
				n->end = document_at(d);
		} else {
			rc = document_skip(d, im->err);
		}
		if (rc != 0)
			return rc;
	}
	return more;
}

static int mapping_read(import *im, document *d)
{
	sheaf_str key;
	_cleanup_(buf_free) buf name = BUF_INIT(65536);
	int more = document_enter(d, im->err);
	while (more == 1 && (more = document_each(d, &key, im->err)) == 1) {
		char c;
		buf_reset(&name);
		buf_str(&name, key);
		int rc = buf_status(&name, im->err);
		if (rc == 0)
			rc = document_peek(d, &c, im->err);
		if (rc >= 0)
			rc = rc == 1 && c == '{' ? node_read(im, d, buf_view(&name))
			                         : document_skip(d, im->err);
		if (rc != 0)
			return rc;
	}
	return more;
}

static int conversation_open(import *im, document *d, sheaf_str *leaf)
{
	static const char *const names[] = {"id", "conversation_id", "title", "create_time",
	                                    "current_node"};
	state *s = im->state;
	sheaf_str values[COUNT_OF(names)], id, name;
	im->line = document_line(d);
	int rc = document_members(d, names, values, COUNT_OF(names), s->arena, im->err);
	if (rc == 0)
		rc = string_of(im, values[0].ptr != NULL ? values[0] : values[1], s->arena, &id);
	if (rc == 0)
		rc = string_of(im, values[2], s->arena, &name);
	if (rc == 0)
		rc = string_of(im, values[4], s->arena, leaf);
	if (rc == 0 && id.len == 0) {
		id = media_stem(im->file);
		rc = import_problem(im, "a conversation without an id: the file's name is taken");
	}
	if (rc != 0)
		return rc;
	import_session session = {.id = id, .name = name, .created_us = seconds_us(values[3])};
	rc = import_open(im, &session);
	return rc == 0 && name.len != 0 ? import_name(im, name) : rc;
}

static void state_reset(state *s)
{
	arena_clear(s->arena);
	map_free(&s->nodes);
	s->nodes = (map)MAP_INIT;
	s->todo_count = 0;
	s->waiting = 0;
}

/* The conversation that comes next; `before` stands before it when it is written again. */
static int conversation_read(import *im, document *d, sheaf_str before)
{
	state *s = im->state;
	sheaf_str key, leaf;
	bool found = false;
	state_reset(s);
	im->number = 0;
	int rc = conversation_open(im, d, &leaf);
	if (rc == 0)
		rc = import_between(im, before);
	if (rc != 0)
		return rc;
	int more = document_enter(d, im->err);
	while (more == 1 && (more = document_each(d, &key, im->err)) == 1) {
		bool mapping = members_key_is(key, "mapping") && !found;
		found = found || mapping;
		rc = mapping ? mapping_read(im, d) : document_skip(d, im->err);
		if (rc != 0)
			return rc;
	}
	const node *n = leaf.len != 0 ? map_get_ptr(&s->nodes, leaf) : NULL;
	if (more == 0 && n != NULL && n->entry.len != 0)
		more = import_leaf(im, n->entry);
	if (more == 0 && s->waiting != 0)
		more = import_problem(im,
		                      "%llu messages hang on no other: they are kept as they are",
		                      (unsigned long long)s->waiting);
	return more;
}

/* ---- The document -------------------------------------------------------- */

/* How the list ends: what is behind its last brace. */
static int list_ending(import *im, document *d, buf *out)
{
	uint64_t size = document_size(d), from = size > 256 ? size - 256 : 0;
	_cleanup_(buf_free) buf last = BUF_INIT(256);
	int rc = document_text(d, from, size, &last, im->err);
	if (rc != 0)
		return rc;
	size_t at = last.len;
	while (at > 0 && last.ptr[at - 1] != '}')
		at--;
	sheaf_str text = str_make(last.ptr + at, last.len - at);
	buf_str(out, str_is(members_trim(text), "]") ? text : SHEAF_STR("]"));
	return buf_status(out, im->err);
}

/* The conversation that comes next, and the text up to the list's end or its own. */
static int once_read(import *im, document *d, sheaf_str before)
{
	_cleanup_(buf_free) buf ending = BUF_INIT(1024);
	char c = 0;
	document_begin(d, document_at(d));
	int rc = conversation_read(im, d, before);
	if (rc != 0)
		return rc;
	uint64_t end = document_at(d);
	int more = document_peek(d, &c, im->err);
	if (more < 0)
		return more;
	if (more == 0 || document_wrong(d) != NULL || c != ',') { /* the last */
		rc = document_finish(im, d, document_size(d));
	} else {
		rc = document_finish(im, d, end);
		if (rc == 0)
			rc = list_ending(im, d, &ending);
		if (rc == 0)
			rc = import_between(im, buf_view(&ending));
	}
	return rc == 0 ? session_end(im) : rc;
}

/*
 * One of a list. It begins as the list does and ends as the list does, so that
 * it is a list of one when it is written again. One that is not what it was is
 * imported beside it; the others are not touched by that.
 */
static int listed_read(import *im, document *d, sheaf_str before)
{
	document_place here = document_here(d);
	for (unsigned version = 1; version <= VERSIONS_MAX; version++) {
		im->inside->version = version;
		document_back(d, here);
		int rc = once_read(im, d, before);
		if (rc != IMPORT_CHANGED)
			return rc;
		session_drop(im);
		rc = import_problem(im, "not what was imported before: imported anew beside it");
		if (rc != 0)
			return rc;
	}
	return err_set(im->err, SHEAF_LIMIT, "too many versions of one conversation");
}

static int nothing_take(import *im, sheaf_str key, value element)
{
	(void)key;
	(void)element;
	return import_problem(im, "no conversation");
}

/* What is in the list and no conversation, or all that follows where it is no list any more: a
 * session of its own, so that nothing is lost. */
static int leftover_read(import *im, document *d, uint64_t from, bool all)
{
	char id[SHEAF_ID_ROOM];
	sheaf_str stem = media_stem(im->file);
	int len = snprintf(id, sizeof(id), "%.*s-at-%llu", (int)stem.len, stem.ptr,
	                   (unsigned long long)from);
	im->inside->version = 1;
	im->number = 0;
	document_begin(d, from);
	int rc = import_open(im, &(import_session){.id = str_make(id, (size_t)len)});
	if (rc == 0 && !all)
		rc = document_piece(im, d, SHEAF_STR(""), nothing_take);
	if (rc != 0)
		return rc;
	uint64_t end = document_at(d);
	char c = 0;
	int more = all ? 0 : document_peek(d, &c, im->err);
	if (more < 0)
		return more;
	bool last = more == 0 || document_wrong(d) != NULL || c != ',';
	rc = document_finish(im, d, last ? document_size(d) : end);
	return rc == 0 ? session_end(im) : rc;
}

static int list_read(import *im, document *d)
{
	_cleanup_(buf_free) buf before = BUF_INIT(65536);
	sheaf_str key;
	uint64_t end = 0;
	char c;
	int more = document_enter(d, im->err);
	while (more == 1 && (more = document_each(d, &key, im->err)) == 1) {
		int rc = 0, next = document_peek(d, &c, im->err);
		if (before.len == 0)
			rc = document_text(d, 0, document_at(d), &before, im->err);
		if (rc == 0)
			rc = next < 0 ? next
			     : next == 1 && c == '{'
			             ? listed_read(im, d, buf_view(&before))
			             : leftover_read(im, d, end != 0 ? document_at(d) : 0, false);
		if (rc != 0 || document_wrong(d) != NULL) /* which was said */
			return rc;
		end = document_at(d);
	}
	return more == 0 && document_wrong(d) != NULL ? leftover_read(im, d, end, true) : more;
}

static bool chatgpt_knows(sheaf_str path, sheaf_str head)
{
	(void)path;
	sheaf_str text = members_trim(head);
	if (text.len != 0 && text.ptr[0] == '[')
		text = members_trim(str_make(text.ptr + 1, text.len - 1));
	return text.len != 0 && text.ptr[0] == '{' &&
	       memmem(text.ptr, text.len, "\"mapping\"", 9) != NULL &&
	       (memmem(text.ptr, text.len, "\"create_time\"", 13) != NULL ||
	        memmem(text.ptr, text.len, "\"current_node\"", 14) != NULL);
}

static int chatgpt_begin(import *im)
{
	state *s = arena_zalloc(im->arena, sizeof(*s));
	im->state = s;
	if (s == NULL || (s->arena = arena_new()) == NULL || (s->scratch = arena_new()) == NULL)
		return err_nomem(im->err);
	s->text = s->flat = (buf)BUF_INIT(SOURCE_PIECE_MAX + 1);
	return 0;
}

static void chatgpt_done(import *im)
{
	state *s = im->state;
	if (s == NULL)
		return;
	arena_free(s->arena);
	arena_free(s->scratch);
	map_free(&s->nodes);
	mem_free(s->todo);
	buf_free(&s->text);
	buf_free(&s->flat);
}

static int chatgpt_read(import *im)
{
	_cleanup_(document_closep) document *d = NULL;
	char c = 0;
	int rc = document_open(&d, im->file.ptr, im->err);
	if (rc == 0)
		rc = document_peek(d, &c, im->err);
	if (rc < 0)
		return rc;
	((state *)im->state)->document = d;
	if (c == '[')
		return list_read(im, d);
	document_begin(d, 0);
	rc = conversation_read(im, d, SHEAF_STR(""));
	return rc == 0 ? document_finish(im, d, document_size(d)) : rc;
}

const converter convert_chatgpt = {
	.is = {.name = "chatgpt", .title = "ChatGPT export", .imports = 1, .exports = 1},
	.knows = chatgpt_knows,
	.begin = chatgpt_begin,
	.read = chatgpt_read,
	.done = chatgpt_done,
	.write = chatgpt_write,
};
