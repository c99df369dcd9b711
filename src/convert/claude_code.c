/* Claude Code's session files: a tree of lines, where one reply of the model is several lines. */
#include "convert/claude_code.h"

#include "base/err.h"
#include "base/str.h"
#include "base/utf8.h"
#include "entry/members.h"

static bool cc_knows(sheaf_str path, sheaf_str head)
{
	static const char *const types[] = {
		"queue-operation", "file-history-snapshot", "summary", "mode",
		"last-prompt",     "custom-title",          "ai-title"};
	(void)path;
	sheaf_str members = head_members(head), type = members_find(members, "type");
	if (members_find(members, "uuid").ptr != NULL)
		return members_find(members, "sessionId").ptr != NULL &&
		       members_find(members, "parentUuid").ptr != NULL;
	for (size_t i = 0; i < COUNT_OF(types); i++) {
		if (type.len >= 2 && str_is(str_make(type.ptr + 1, type.len - 2), types[i]))
			return members_find(members, "sessionId").ptr != NULL ||
			       members_find(members, "leafUuid").ptr != NULL ||
			       members_find(members, "messageId").ptr != NULL;
	}
	return false;
}

static int cc_begin(import *im)
{
	cc_state *s = arena_zalloc(im->arena, sizeof(*s));
	if (s == NULL)
		return err_nomem(im->err);
	s->boundary_body = (buf)BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	im->state = s;
	return cc_open(im);
}

static void cc_done(import *im)
{
	cc_state *s = im->state;
	if (s == NULL)
		return;
	window_free(&s->group_of);
	window_free(&s->group_of_call);
	window_free(&s->tail_of);
	window_free(&s->stands);
	window_free(&s->usage_of);
	buf_free(&s->boundary_body);
}

/* ---- The tree -------------------------------------------------------------- */

/* Where a line that names this one as its parent hangs. */
static sheaf_str entry_for(const cc_state *s, sheaf_str uuid)
{
	sheaf_str group = window_get(&s->group_of, uuid), stands;
	if (group.ptr != NULL) {
		sheaf_str tail = window_get(&s->tail_of, group);
		if (tail.ptr != NULL)
			return tail;
	}
	stands = window_get(&s->stands, uuid);
	return stands.ptr != NULL ? stands : uuid;
}

/* The blocks of a line's message; none if it has a text instead. */
static json_iter content_each(value line)
{
	const json_val *content = json_get(json_get(line.v, "message"), "content");
	return json_each(json_type_of(content) == JSON_ARRAY ? content : NULL);
}

/* The group of the first call that a line answers, or {NULL,0}. */
static sheaf_str group_answered(const cc_state *s, value line)
{
	for (json_iter it = content_each(line); json_next(&it);) {
		if (!str_is(json_string(json_get(it.value, "type")), "tool_result"))
			continue;
		return window_get(&s->group_of_call,
		                  json_string(json_get(it.value, "tool_use_id")));
	}
	return (sheaf_str){NULL, 0};
}

static int calls_note(import *im, value line, sheaf_str group)
{
	cc_state *s = im->state;
	for (json_iter it = content_each(line); json_next(&it);) {
		if (str_is(json_string(json_get(it.value, "type")), "tool_use") &&
		    window_set(&s->group_of_call, json_string(json_get(it.value, "id")), group) !=
		            0)
			return err_nomem(im->err);
	}
	return 0;
}

/*
 * The group a line belongs to, in `out`; "" for none. A reply's lines and their
 * answers do if they hang together, and whatever the program puts among them.
 */
static void group_find(const cc_state *s, value line, sheaf_str type, sheaf_str parent,
                       char out[SHEAF_ID_ROOM], bool *goes_on)
{
	sheaf_str around = window_get(&s->group_of, parent), own = {NULL, 0};
	*goes_on = false;
	if (str_is(type, "assistant"))
		own = json_string(json_get(json_get(line.v, "message"), "id"));
	else if (str_is(type, "user"))
		own = group_answered(s, line);
	else
		own = around;
	if (!str_is(type, "assistant") && (own.ptr == NULL || !str_eq(own, around)))
		own = (sheaf_str){NULL, 0};
	if (str_is(type, "assistant") && own.len != 0)
		*goes_on = str_eq(own, around);
	str_copy_cut(out, SHEAF_ID_ROOM, own.len < SHEAF_ID_ROOM ? own : (sheaf_str){"", 0});
}

/* What comes after hangs on the entry that was added last, if one was. */
static int line_end(import *im, value line, sheaf_str type, sheaf_str uuid, const char *group,
                    const char *parent, bool added)
{
	cc_state *s = im->state;
	sheaf_str last = added ? sheaf_str_of(im->last) : sheaf_str_of(parent);
	int rc = 0;
	if (group[0] != '\0') {
		if (window_set(&s->group_of, uuid, sheaf_str_of(group)) != 0 ||
		    window_set(&s->tail_of, sheaf_str_of(group), last) != 0)
			return err_nomem(im->err);
		if (str_is(type, "assistant"))
			rc = calls_note(im, line, sheaf_str_of(group));
	} else if (!str_eq(last, uuid) && window_set(&s->stands, uuid, last) != 0) {
		rc = err_nomem(im->err);
	}
	return rc;
}

/* ---- Compactions ----------------------------------------------------------- */

static void number_put(buf *out, const char *name, value object, const char *member)
{
	if (json_number(json_get(object.v, member)).len == 0)
		return;
	buf_format(out, ",\"%s\":", name);
	buf_str(out, value_get(object, member).text);
}

/* The line that says there was a compaction; the summary is the next one. */
static int boundary_take(import *im, value line, sheaf_str uuid)
{
	cc_state *s = im->state;
	value meta = value_get(line, "compactMetadata"), id;
	value kept = value_get(value_get(meta, "preservedMessages"), "uuids");
	sheaf_str head = value_string(value_get(meta, "preservedSegment"), "headUuid");
	sheaf_str before = value_string(line, "logicalParentUuid");
	buf *out = &s->boundary_body;
	bool any = false;
	str_copy_cut(s->boundary, sizeof(s->boundary), uuid);
	str_copy_cut(s->boundary_parent, sizeof(s->boundary_parent), entry_for(s, before));
	buf_reset(out);
	for (value_iter it = value_each(kept); value_next(&it, &id);) {
		if (json_type_of(id.v) != JSON_STRING)
			continue;
		buf_str(out, any ? SHEAF_STR(",") : SHEAF_STR(",\"kept_ids\":["));
		buf_str(out, id.text);
		any = true;
	}
	if (any) {
		buf_char(out, ']');
	} else if (head.len != 0) {
		buf_lit(out, ",\"first_kept_entry_id\":");
		buf_json(out, head);
	}
	number_put(out, "tokens_before", meta, "preTokens");
	number_put(out, "tokens_after", meta, "postTokens");
	if (value_string(meta, "trigger").len != 0) {
		buf_lit(out, ",\"trigger\":");
		buf_json(out, value_string(meta, "trigger"));
	}
	if (window_set(&s->stands, uuid, SHEAF_STR("")) != 0)
		return err_nomem(im->err);
	return buf_status(out, im->err);
}

static void text_put(buf *out, value content)
{
	value block;
	if (json_type_of(content.v) == JSON_STRING)
		buf_str(out, json_string(content.v));
	for (value_iter it = value_each(content); value_next(&it, &block);) {
		if (out->len != 0)
			buf_lit(out, "\n\n");
		buf_str(out, value_string(block, "text"));
	}
}

static int summary_add(import *im, value line, import_record *record)
{
	cc_state *s = im->state;
	_cleanup_(buf_free) buf text = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	text_put(&text, value_get(value_get(line, "message"), "content"));
	buf_lit(&body, "{\"compaction\":{\"summary\":");
	buf_json(&body, buf_view(&text));
	if (str_eq(value_string(line, "parentUuid"), sheaf_str_of(s->boundary))) {
		buf_str(&body, buf_view(&s->boundary_body));
		record->parent = sheaf_str_of(s->boundary_parent);
	}
	buf_lit(&body, "}}");
	int rc = buf_status(&text, im->err);
	if (rc == 0)
		rc = buf_status(&body, im->err);
	record->type = "compaction";
	record->body = buf_view(&body);
	return rc == 0 ? import_add(im, record) : rc;
}

/* ---- Lines ----------------------------------------------------------------- */

static int node_add(import *im, value line, sheaf_str type, import_record *record)
{
	if (json_bool(json_get(line.v, "isCompactSummary")))
		return summary_add(im, line, record);
	if (str_is(type, "attachment"))
		return cc_attachment_add(im, line, record);
	if ((str_is(type, "user") || str_is(type, "assistant")) &&
	    !json_bool(json_get(line.v, "isApiErrorMessage")) &&
	    !json_bool(json_get(line.v, "isVisibleInTranscriptOnly")))
		return cc_message_add(im, line, record);
	return cc_note_add(im, line, record);
}

static int node_take(import *im, value line, sheaf_str type, sheaf_str uuid)
{
	cc_state *s = im->state;
	char group[SHEAF_ID_ROOM], parent[SHEAF_ID_ROOM], was[SHEAF_ID_ROOM];
	bool goes_on;
	sheaf_str named = value_string(line, "parentUuid");
	if (str_is(type, "system") && str_is(value_string(line, "subtype"), "compact_boundary"))
		return boundary_take(im, line, uuid);
	group_find(s, line, type, named, group, &goes_on);
	str_copy_cut(parent, sizeof(parent), named.len != 0 ? entry_for(s, named) : named);
	import_record record = {
		.id = uuid,
		.has_parent = true,
		.parent = sheaf_str_of(parent),
		.time_us = value_time(line, "timestamp"),
		.continues = goes_on,
	};
	memcpy(was, im->last, sizeof(was));
	im->last[0] = '\0';
	int rc = node_add(im, line, type, &record);
	bool added = im->last[0] != '\0';
	if (!added)
		memcpy(im->last, was, sizeof(was));
	if (rc == 0 && (s->is_agent || !json_bool(json_get(line.v, "isSidechain")))) {
		str_copy_cut(s->last, sizeof(s->last), uuid);
		s->leaf[0] = '\0';
	}
	return rc == 0 ? line_end(im, line, type, uuid, group, parent, added) : rc;
}

/* A title: the user's own stays, whatever others come after it. */
static int title_take(import *im, value line, sheaf_str type)
{
	static const char *const names[] = {"customTitle", "aiTitle", "title", "summary"};
	cc_state *s = im->state;
	bool own = str_is(type, "custom-title");
	sheaf_str title = {NULL, 0};
	for (size_t i = 0; i < COUNT_OF(names) && title.len == 0; i++)
		title = value_string(line, names[i]);
	if (title.len == 0 || (s->named && !own))
		return 0;
	s->named = own;
	return import_name(im, title);
}

static int cc_take(import *im, sheaf_str piece)
{
	cc_state *s = im->state;
	value line;
	int rc = import_parse(im, piece, &line);
	if (rc != 0 || line.v == NULL)
		return rc;
	sheaf_str type = value_string(line, "type"), uuid = value_string(line, "uuid");
	if (uuid.len != 0 && uuid.len <= SHEAF_ID_BYTES_MAX)
		return node_take(im, line, type, uuid);
	if (str_is(type, "last-prompt"))
		str_copy_cut(s->leaf, sizeof(s->leaf), value_string(line, "leafUuid"));
	else if (str_is(type, "summary") || str_is(type, "custom-title") ||
	         str_is(type, "ai-title"))
		return title_take(im, line, type);
	else if (type.len == 0)
		return import_problem(im, "a line without a type");
	return 0;
}

static int cc_end(import *im)
{
	const cc_state *s = im->state;
	const char *leaf = s->leaf[0] != '\0' ? s->leaf : s->last;
	return leaf[0] != '\0' ? import_leaf(im, entry_for(s, sheaf_str_of(leaf))) : 0;
}

const converter convert_claude_code = {
	.is = {"claude-code", "Claude Code", 1, 1, ".claude", "CLAUDE_CONFIG_DIR",
               "claude --resume ID"},
	.knows = cc_knows,
	.begin = cc_begin,
	.take = cc_take,
	.end = cc_end,
	.done = cc_done,
	.write = cc_write,
	.place = cc_place,
	.tree = true,
	.places = {"projects"},
};
