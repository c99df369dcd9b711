/* pi's session files, version 3: a tree of entries, one a line, much like ours. */
#include "base/err.h"
#include "base/str.h"
#include "base/utf8.h"
#include "convert/convert.h"
#include "convert/parts.h"
#include "convert/pi.h"
#include "convert/window.h"
#include "entry/members.h"

/* Labels and names are nodes of the tree there, and facts here. */
typedef struct state {
	window behind;            /* a line that became a fact -> the entry it hung on */
	window ahead;             /* … -> the entry that hung on it, the latest */
	char last[SHEAF_ID_ROOM]; /* the line read last */
	bool opened;
} state;

static bool pi_knows(sheaf_str path, sheaf_str head)
{
	(void)path;
	sheaf_str members = head_members(head);
	return str_is(members_find(members, "type"), "\"session\"") &&
	       members_find(members, "version").len == 1 &&
	       members_find(members, "cwd").ptr != NULL && members_find(members, "crc").ptr == NULL;
}

static int pi_begin(import *im)
{
	im->state = arena_zalloc(im->arena, sizeof(state));
	return im->state != NULL ? 0 : err_nomem(im->err);
}

static void pi_done(import *im)
{
	state *s = im->state;
	if (s == NULL)
		return;
	window_free(&s->behind);
	window_free(&s->ahead);
}

/* What hangs on a fact hangs on the entry before it. */
static sheaf_str entry_behind(const import *im, sheaf_str id)
{
	const state *s = im->state;
	sheaf_str entry = window_get(&s->behind, id);
	return entry.ptr != NULL ? entry : id;
}

/* ---- Messages ------------------------------------------------------------ */

static void usage_put(sheaf_message *m, value usage)
{
	sheaf_usage u = {0};
	if (json_type_of(usage.v) != JSON_OBJECT)
		return;
	(void)json_u64(json_get(usage.v, "input"), &u.input);
	(void)json_u64(json_get(usage.v, "output"), &u.output);
	(void)json_u64(json_get(usage.v, "cacheRead"), &u.cache_read);
	(void)json_u64(json_get(usage.v, "cacheWrite"), &u.cache_write_5m);
	(void)sheaf_message_usage(m, &u);
}

static void part_put(sheaf_message *m, value part)
{
	sheaf_str type = value_string(part, "type"), signature;
	if (str_is(type, "text")) {
		(void)sheaf_message_text(m, value_string(part, "text"));
		signature = value_string(part, "textSignature");
		if (signature.len != 0)
			(void)sheaf_message_signature(m, signature);
	} else if (str_is(type, "thinking")) {
		(void)sheaf_message_thinking(m, value_string(part, "thinking"),
		                             value_string(part, "thinkingSignature"),
		                             json_bool(json_get(part.v, "redacted")));
	} else if (str_is(type, "image")) {
		(void)sheaf_message_image(m, SHEAF_STR("base64"), value_string(part, "mimeType"),
		                          value_string(part, "data"));
	} else if (str_is(type, "toolCall")) {
		(void)sheaf_message_tool_use(m, value_string(part, "id"),
		                             value_string(part, "name"),
		                             value_get(part, "arguments").text);
		signature = value_string(part, "thoughtSignature");
		if (signature.len != 0)
			(void)sheaf_message_signature(m, signature);
	} else {
		(void)sheaf_message_opaque(m, SHEAF_STR("pi"), part.text);
	}
}

static void content_put(sheaf_message *m, value content)
{
	value part;
	if (json_type_of(content.v) == JSON_STRING)
		(void)sheaf_message_text(m, json_string(content.v));
	for (value_iter it = value_each(content); value_next(&it, &part);)
		part_put(m, part);
}

static void messagep_free(sheaf_message **m)
{
	sheaf_message_free(*m);
}

static int result_add(import *im, value message, const import_record *record)
{
	_cleanup_(messagep_free) sheaf_message *m = sheaf_message_new(SHEAF_ROLE_TOOL);
	const json_val *failed = json_get(message.v, "isError");
	if (m == NULL)
		return err_nomem(im->err);
	sheaf_message_mend_text(m, 1);
	(void)sheaf_message_tool_result_begin(m, value_string(message, "toolCallId"),
	                                      value_string(message, "toolName"),
	                                      json_is_bool(failed) ? json_bool(failed) : -1);
	content_put(m, value_get(message, "content"));
	(void)sheaf_message_tool_result_end(m);
	return import_message(im, m, record);
}

static int said_add(import *im, value message, const char *role, const import_record *record)
{
	_cleanup_(messagep_free) sheaf_message *m = sheaf_message_new(role);
	if (m == NULL)
		return err_nomem(im->err);
	sheaf_message_mend_text(m, 1);
	content_put(m, value_get(message, "content"));
	if (value_string(message, "provider").len != 0)
		(void)sheaf_message_provider(m, value_string(message, "provider"));
	if (value_string(message, "model").len != 0)
		(void)sheaf_message_model(m, value_string(message, "model"));
	if (value_string(message, "responseId").len != 0)
		(void)sheaf_message_response_id(m, value_string(message, "responseId"));
	if (value_string(message, "stopReason").len != 0)
		(void)sheaf_message_stop_reason(m, value_string(message, "stopReason"));
	usage_put(m, value_get(message, "usage"));
	return import_message(im, m, record);
}

/* Members of the source's object that `known` does not name, as they are. */
static void others_put(buf *out, sheaf_str object, const char *const *known)
{
	sheaf_str key, member, members = members_inside(members_trim(object));
	for (size_t at = 0; members_next(members, &at, &key, &member);) {
		size_t i = 0;
		while (known[i] != NULL && !members_key_is(key, known[i]))
			i++;
		if (known[i] != NULL)
			continue;
		buf_lit(out, ",\"");
		buf_str(out, key);
		buf_lit(out, "\":");
		buf_str(out, member);
	}
}

/* Content in pi's parts as ours: the array, or the string. */
static int content_json(import *im, buf *out, value content)
{
	_cleanup_(messagep_free) sheaf_message *m = sheaf_message_new(SHEAF_ROLE_USER);
	if (m == NULL)
		return err_nomem(im->err);
	sheaf_message_mend_text(m, 1);
	content_put(m, content);
	sheaf_str json;
	int rc = import_json(im, m, &json);
	buf_str(out,
	        json.ptr != NULL ? members_find(members_inside(json), "content") : SHEAF_STR("[]"));
	return rc;
}

/* Roles whose members are theirs alone: a command that the user ran, and the like. */
static int special_add(import *im, value message, sheaf_str role, const import_record *record)
{
	static const char *const known[] = {"role", "content", NULL};
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	import_record whole = *record;
	buf_lit(&body, "{\"message\":{\"role\":");
	buf_json(&body, role);
	buf_lit(&body, ",\"content\":");
	int rc = content_json(im, &body, value_get(message, "content"));
	others_put(&body, message.text, known);
	buf_lit(&body, "}}");
	if (rc == 0)
		rc = buf_status(&body, im->err);
	whole.type = "message";
	whole.body = buf_view(&body);
	return rc == 0 ? import_add(im, &whole) : rc;
}

static int message_add(import *im, value line, const import_record *record)
{
	value message = value_get(line, "message");
	sheaf_str role = value_string(message, "role");
	if (str_is(role, "user"))
		return said_add(im, message, SHEAF_ROLE_USER, record);
	if (str_is(role, "assistant"))
		return said_add(im, message, SHEAF_ROLE_ASSISTANT, record);
	if (str_is(role, "toolResult"))
		return result_add(im, message, record);
	if (str_is(role, SHEAF_ROLE_BASH) || str_is(role, SHEAF_ROLE_CUSTOM) ||
	    str_is(role, SHEAF_ROLE_BRANCH_SUMMARY) || str_is(role, SHEAF_ROLE_COMPACTION_SUMMARY))
		return special_add(im, message, role, record);
	return import_problem(im, "a message of a role that is not known");
}

/* ---- Other entries ------------------------------------------------------- */

/* The payload of a line that is no message, as ours: {"TYPE":{…}}. False if it is unknown. */
static bool settings_put(buf *out, value line, sheaf_str type, import_record *record)
{
	if (str_is(type, "model_change")) {
		record->type = "model_change";
		buf_lit(out, "\"provider\":");
		buf_json(out, value_string(line, "provider"));
		buf_lit(out, ",\"model_id\":");
		buf_json(out, value_string(line, "modelId"));
	} else if (str_is(type, "thinking_level_change")) {
		record->type = "thinking_level";
		buf_lit(out, "\"thinking_level\":");
		buf_json(out, value_string(line, "thinkingLevel"));
	} else {
		return false;
	}
	return true;
}

static bool summary_put(import *im, buf *out, value line, sheaf_str type, import_record *record)
{
	const state *s = im->state;
	buf_lit(out, "\"summary\":");
	buf_json(out, value_string(line, "summary"));
	if (str_is(type, "compaction")) {
		sheaf_str kept = value_string(line, "firstKeptEntryId");
		sheaf_str ahead = window_get(&s->ahead, kept);
		record->type = "compaction";
		if (kept.len != 0 &&
		    !str_eq(kept, value_string(line, "id"))) { /* from itself on: nothing */
			buf_lit(out, ",\"first_kept_entry_id\":");
			buf_json(out, ahead.len != 0 ? ahead : entry_behind(im, kept));
		}
		if (json_number(json_get(line.v, "tokensBefore")).len != 0) {
			buf_lit(out, ",\"tokens_before\":");
			buf_str(out, value_get(line, "tokensBefore").text);
		}
	} else {
		sheaf_str from = entry_behind(im, value_string(line, "fromId"));
		record->type = "branch_summary";
		buf_lit(out, ",\"from_id\":");
		if (from.len == 0 || str_is(from, "root"))
			buf_lit(out, "null");
		else
			buf_json(out, from);
	}
	if (value_get(line, "details").v != NULL) {
		buf_lit(out, ",\"details\":");
		buf_str(out, value_get(line, "details").text);
	}
	return true;
}

static int custom_put(import *im, buf *out, value line, sheaf_str type, import_record *record)
{
	bool message = str_is(type, "custom_message"), custom = str_is(type, "custom");
	value data = value_get(line, message ? "details" : "data");
	int rc = 0;
	record->type = "custom";
	buf_lit(out, "\"custom_type\":");
	if (message || custom) {
		buf_json(out, value_string(line, "customType"));
	} else { /* a kind of entry that came later */
		buf_lit(out, "\"pi:");
		buf_str(out, members_inside(value_get(line, "type").text));
		buf_char(out, '"');
		return 0;
	}
	if (message) {
		buf_lit(out, ",\"in_context\":true,\"content\":");
		rc = content_json(im, out, value_get(line, "content"));
	}
	if (data.v != NULL) {
		buf_lit(out, ",\"data\":");
		buf_str(out, data.text);
	}
	return rc;
}

static int entry_add(import *im, value line, sheaf_str type, import_record *record)
{
	_cleanup_(buf_free) buf payload = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	int rc = 0;
	if (str_is(type, "compaction") || str_is(type, "branch_summary"))
		summary_put(im, &payload, line, type, record);
	else if (!settings_put(&payload, line, type, record))
		rc = custom_put(im, &payload, line, type, record);
	buf_lit(&body, "{\"");
	buf_str(&body, sheaf_str_of(record->type));
	buf_lit(&body, "\":{");
	buf_str(&body, buf_view(&payload));
	buf_lit(&body, "}}");
	if (rc == 0)
		rc = buf_status(&payload, im->err);
	if (rc == 0)
		rc = buf_status(&body, im->err);
	record->body = buf_view(&body);
	return rc == 0 ? import_add(im, record) : rc;
}

/* ---- Facts --------------------------------------------------------------- */

static int fact_add(import *im, value line, sheaf_str type, import_record *record)
{
	_cleanup_(buf_free) buf body = BUF_INIT(65536);
	state *s = im->state;
	if (window_set(&s->behind, record->id, record->parent) != 0)
		return err_nomem(im->err);
	record->fact = true;
	if (str_is(type, "label")) {
		record->type = "label";
		buf_lit(&body, "{\"label\":{\"target_id\":");
		buf_json(&body, entry_behind(im, value_string(line, "targetId")));
		buf_lit(&body, ",\"label\":");
		buf_json(&body, value_string(line, "label"));
	} else {
		record->type = "session_info";
		buf_lit(&body, "{\"session_info\":{\"name\":");
		buf_json(&body, utf8_cut(value_string(line, "name"), SHEAF_NAME_BYTES_MAX));
	}
	buf_lit(&body, "}}");
	int rc = buf_status(&body, im->err);
	record->body = buf_view(&body);
	return rc == 0 ? import_add(im, record) : rc;
}

/* ---- Lines --------------------------------------------------------------- */

/* The id in …/TIME_ID.jsonl. */
static sheaf_str id_in_path(sheaf_str path)
{
	size_t from = path.len;
	while (from > 0 && path.ptr[from - 1] != '/' && path.ptr[from - 1] != '_')
		from--;
	sheaf_str id = {path.ptr + from, path.len - from};
	if (id.len > 6 && memcmp(id.ptr + id.len - 6, ".jsonl", 6) == 0)
		id.len -= 6;
	return id;
}

static int header_take(import *im, value line)
{
	sheaf_str parent = value_string(line, "parentSession");
	import_session session = {
		.id = value_string(line, "id"),
		.cwd = value_string(line, "cwd"),
		.created_us = value_time(line, "timestamp"),
	};
	state *s = im->state;
	if (s->opened)
		return import_problem(im, "a second header");
	if (session.id.len == 0) /* damaged: the file's name has it, too */
		session.id = id_in_path(im->file);
	s->opened = true;
	if (parent.len != 0)
		session.parent = id_in_path(parent);
	return import_open(im, &session);
}

static int pi_take(import *im, sheaf_str piece)
{
	state *s = im->state;
	value line;
	int rc = import_parse(im, piece, &line);
	sheaf_str type = value_string(line, "type"), id = value_string(line, "id");
	sheaf_str parent = value_string(line, "parentId");
	if (rc == 0 && (str_is(type, "session") || !s->opened))
		rc = header_take(im, str_is(type, "session") ? line : (value){NULL, {NULL, 0}});
	if (rc != 0 || line.v == NULL || str_is(type, "session"))
		return rc;
	if (id.len == 0 || id.len > SHEAF_ID_BYTES_MAX || type.len == 0)
		return import_problem(im, "no entry: it has no id or no type");
	import_record record = {
		.id = id,
		.has_parent = true,
		.parent = entry_behind(im, parent),
		.time_us = value_time(line, "timestamp"),
	};
	str_copy_cut(s->last, sizeof(s->last), id);
	if (str_is(type, "label") || str_is(type, "session_info"))
		return fact_add(im, line, type, &record);
	/* Facts in a row: the one nearest to this entry is the one it hangs on. */
	if (record.parent.ptr != parent.ptr && window_set(&s->ahead, parent, id) != 0)
		return err_nomem(im->err);
	record.parent = entry_behind(im, parent);
	if (str_is(type, "message"))
		return message_add(im, line, &record);
	return entry_add(im, line, type, &record);
}

/* Where pi goes on: at the last line. */
static int pi_end(import *im)
{
	const state *s = im->state;
	return s->last[0] != '\0' ? import_leaf(im, entry_behind(im, sheaf_str_of(s->last))) : 0;
}

const converter convert_pi = {
	.is = {"pi", "pi", 1, 1, ".pi/agent", "PI_CODING_AGENT_DIR", "pi --session ID"},
	.knows = pi_knows,
	.begin = pi_begin,
	.take = pi_take,
	.end = pi_end,
	.done = pi_done,
	.write = pi_write,
	.place = pi_place,
	.tree = true,
	.bound = true,
	.places = {"sessions"},
};
