/*
 * OpenCode: what `opencode export` writes, a document {info, messages: [{info,
 * parts}]}.
 *
 * A part of type `tool` is a call and its answer in one; the answers of a step
 * become the message after it. A compaction is a user message with a part of
 * that type, answered by an assistant message marked `summary`: from then on
 * the model is shown those two and what follows. `revert` in the session's info
 * names the message from which on the conversation was taken back.
 */
#include "convert/opencode.h"

#include "base/err.h"
#include "base/str.h"
#include "convert/document.h"
#include "convert/media.h"
#include "convert/parts.h"
#include "entry/members.h"

/* How OpenCode asks for a summary when it goes on after a compaction. */
#define COMPACTION_QUESTION "What did we do so far?"

typedef struct state {
	char revert[SHEAF_ID_ROOM];     /* the first message that was taken back, or "" */
	char compaction[SHEAF_ID_ROOM]; /* the entry a compaction under way keeps from, or "" */
	bool automatic;                 /* … and whether nobody asked for it */
} state;

static void id_keep(char out[SHEAF_ID_ROOM], sheaf_str id)
{
	str_copy_cut(out, SHEAF_ID_ROOM, id.ptr != NULL ? id : SHEAF_STR(""));
}

/* ---- Sessions ------------------------------------------------------------ */

int opencode_open(import *im, sheaf_str info)
{
	state *s = im->state;
	value root;
	im->line = 1;
	int rc = import_parse(im, info, &root);
	sheaf_str id = value_string(root, "id"), parent = value_string(root, "parentID");
	if (rc == 0 && id.len == 0) {
		rc = import_problem(im, "the session has no id: the file's name is taken");
		id = media_stem(im->file);
	}
	if (rc != 0)
		return rc;
	id_keep(s->revert, value_string(value_get(root, "revert"), "messageID"));
	import_session session = {
		.id = id,
		.name = value_string(root, "title"),
		.cwd = value_string(root, "directory"),
		.kind = parent.len != 0 ? SHEAF_STR("subagent") : SHEAF_STR(""),
		.parent = parent,
		.created_us = value_time(value_get(root, "time"), "created"),
	};
	rc = import_open(im, &session);
	return rc == 0 && session.name.len != 0 ? import_name(im, session.name) : rc;
}

/* ---- Parts --------------------------------------------------------------- */

static void file_put(sheaf_message *m, value part)
{
	if (!media_put(m, value_string(part, "mime"), value_string(part, "url")))
		(void)sheaf_message_opaque(m, SHEAF_STR("opencode"), part.text);
}

/* A user's part; what was never shown to a model is kept as it is. */
static void user_part_put(sheaf_message *m, value part)
{
	sheaf_str type = value_string(part, "type");
	if (str_is(type, "text") && !json_bool(json_get(part.v, "ignored")))
		(void)sheaf_message_text(m, value_string(part, "text"));
	else if (str_is(type, "file"))
		file_put(m, part);
	else if (str_is(type, "compaction"))
		(void)sheaf_message_text(m, SHEAF_STR(COMPACTION_QUESTION));
	else
		(void)sheaf_message_opaque(m, SHEAF_STR("opencode"), part.text);
}

static void usage_put(sheaf_message *m, value tokens)
{
	value cache = value_get(tokens, "cache");
	sheaf_usage u = {0};
	if (json_type_of(tokens.v) != JSON_OBJECT)
		return;
	(void)json_u64(json_get(tokens.v, "input"), &u.input);
	(void)json_u64(json_get(tokens.v, "output"), &u.output);
	(void)json_u64(json_get(tokens.v, "reasoning"), &u.reasoning);
	(void)json_u64(json_get(cache.v, "read"), &u.cache_read);
	(void)json_u64(json_get(cache.v, "write"), &u.cache_write_5m);
	u.output += u.reasoning;
	(void)sheaf_message_usage(m, &u);
}

static bool is_answered(value part)
{
	sheaf_str status = value_string(value_get(part, "state"), "status");
	return str_is(value_string(part, "type"), "tool") &&
	       (str_is(status, "completed") || str_is(status, "error"));
}

static void result_put(sheaf_message *m, value part)
{
	value at = value_get(part, "state"), file;
	sheaf_str status = value_string(at, "status"), call = value_string(part, "callID");
	sheaf_str tool = value_string(part, "tool");
	if (str_is(status, "error")) {
		(void)sheaf_message_tool_result(m, call, tool, value_string(at, "error"), 1);
		return;
	}
	value files = value_get(at, "attachments");
	if (json_count(files.v) == 0) {
		(void)sheaf_message_tool_result(m, call, tool, value_string(at, "output"), 0);
		return;
	}
	(void)sheaf_message_tool_result_begin(m, call, tool, 0);
	(void)sheaf_message_text(m, value_string(at, "output"));
	for (value_iter it = value_each(files); value_next(&it, &file);) {
		if (!media_put(m, value_string(file, "mime"), value_string(file, "url")))
			(void)sheaf_message_text(m, file.text);
	}
	(void)sheaf_message_tool_result_end(m);
}

static bool assistant_part_put(sheaf_message *m, value part)
{
	sheaf_str type = value_string(part, "type");
	value metadata = value_get(part, "metadata");
	if (str_is(type, "text")) {
		(void)sheaf_message_text(m, value_string(part, "text"));
		sdk_signature_put(m, metadata);
	} else if (str_is(type, "reasoning")) {
		sdk_thinking_put(m, value_string(part, "text"), metadata);
	} else if (str_is(type, "tool")) {
		value input = value_get(value_get(part, "state"), "input");
		(void)sheaf_message_tool_use(m, value_string(part, "callID"),
		                             value_string(part, "tool"),
		                             input.v != NULL ? input.text : SHEAF_STR("{}"));
		sdk_signature_put(m, metadata);
	} else if (str_is(type, "file")) {
		file_put(m, part);
	} else if (!str_is(type, "step-start") && !str_is(type, "step-finish") &&
	           !str_is(type, "patch") && !str_is(type, "snapshot") && !str_is(type, "retry")) {
		(void)sheaf_message_opaque(m, SHEAF_STR("opencode"), part.text);
	} else {
		return false;
	}
	return true;
}

/* ---- Messages ------------------------------------------------------------ */

static int user_add(import *im, value message, const import_record *record)
{
	state *s = im->state;
	_cleanup_(media_freep) sheaf_message *m = media_message(SHEAF_ROLE_USER);
	value part;
	if (m == NULL)
		return err_nomem(im->err);
	for (value_iter it = value_each(value_get(message, "parts")); value_next(&it, &part);) {
		user_part_put(m, part);
		if (!str_is(value_string(part, "type"), "compaction"))
			continue;
		sheaf_str tail = value_string(part, "tail_start_id");
		id_keep(s->compaction, tail.len != 0 ? tail : record->id);
		s->automatic = json_bool(json_get(part.v, "auto"));
	}
	return import_message(im, m, record);
}

/* One step of a reply: what the model said, and what the tools answered. */
typedef struct step {
	sheaf_message *said, *answers;
	bool has_said;
	value tokens;
	sheaf_str reason;
} step;

static void step_free(step *s)
{
	sheaf_message_free(s->said);
	sheaf_message_free(s->answers);
}

static int step_begin(import *im, step *s)
{
	step_free(s);
	*s = (step){.said = media_message(SHEAF_ROLE_ASSISTANT)};
	return s->said != NULL ? 0 : err_nomem(im->err);
}

/* The answer in a part that is a call, if it has come. */
static int answer_put(import *im, step *s, value part)
{
	if (!is_answered(part))
		return 0;
	if (s->answers == NULL && (s->answers = media_message(SHEAF_ROLE_TOOL)) == NULL)
		return err_nomem(im->err);
	result_put(s->answers, part);
	return 0;
}

static int step_add(import *im, const step *s, value info, unsigned number,
                    const import_record *record)
{
	import_record one = *record;
	char id[SHEAF_ID_ROOM];
	value error = value_get(info, "error");
	sheaf_str reason = s->reason.len != 0 ? s->reason
	                   : error.v != NULL  ? value_string(error, "name")
	                                      : value_string(info, "finish");
	sheaf_str model = value_string(info, "modelID"), by = value_string(info, "providerID");
	if (by.len != 0)
		(void)sheaf_message_provider(s->said, by);
	if (model.len != 0 && !str_is(model, OPENCODE_NO_MODEL))
		(void)sheaf_message_model(s->said, model);
	if (reason.len != 0)
		(void)sheaf_message_stop_reason(s->said, reason);
	usage_put(s->said, s->tokens);
	one.id = id_with(id, record->id, "", number);
	int rc = import_message(im, s->said, &one);
	if (rc != 0 || s->answers == NULL)
		return rc;
	one.id = id_with(id, record->id, "-results", number);
	return import_message(im, s->answers, &one);
}

/* From here on the model is shown what was asked for and the summary. */
static int compaction_add(import *im, const import_record *record)
{
	state *s = im->state;
	_cleanup_(buf_free) buf body = BUF_INIT(65536);
	char id[SHEAF_ID_ROOM];
	import_record one = {.type = "compaction", .time_us = record->time_us};
	buf_lit(&body, "{\"compaction\":{\"summary\":\"\",\"first_kept_entry_id\":");
	buf_json(&body, sheaf_str_of(s->compaction));
	buf_lit(&body, ",\"trigger\":");
	buf_str(&body, s->automatic ? SHEAF_STR("\"auto\"") : SHEAF_STR("\"manual\""));
	buf_lit(&body, ",\"details\":{\"summary_entry_id\":");
	buf_json(&body, record->id);
	buf_lit(&body, "}}}");
	one.id = id_with(id, record->id, "-compaction", 1);
	one.body = buf_view(&body);
	s->compaction[0] = '\0';
	int rc = buf_status(&body, im->err);
	return rc == 0 ? import_add(im, &one) : rc;
}

static int assistant_add(import *im, value message, value info, const import_record *record)
{
	state *s = im->state;
	_cleanup_(step_free) step now = {0};
	value part, parts = value_get(message, "parts");
	unsigned number = 1;
	int rc = step_begin(im, &now);
	for (value_iter it = value_each(parts); rc == 0 && value_next(&it, &part);) {
		sheaf_str type = value_string(part, "type");
		if (str_is(type, "step-start") && now.has_said) {
			rc = step_add(im, &now, info, number++, record);
			if (rc == 0)
				rc = step_begin(im, &now);
		} else if (str_is(type, "step-finish")) {
			now.tokens = value_get(part, "tokens");
			now.reason = value_string(part, "reason");
		}
		if (rc == 0 && assistant_part_put(now.said, part))
			now.has_said = true;
		if (rc == 0)
			rc = answer_put(im, &now, part);
	}
	if (rc == 0 && now.tokens.v == NULL && number == 1)
		now.tokens = value_get(info, "tokens");
	if (rc == 0 && (now.has_said || now.tokens.v != NULL))
		rc = step_add(im, &now, info, number, record);
	bool summary = json_bool(json_get(info.v, "summary")) &&
	               value_string(info, "finish").len != 0 && json_get(info.v, "error") == NULL;
	if (rc == 0 && summary && s->compaction[0] != '\0')
		rc = compaction_add(im, record);
	return rc;
}

int opencode_message(import *im, sheaf_str key, value message)
{
	state *s = im->state;
	(void)key;
	value info = value_get(message, "info");
	sheaf_str role = value_string(info, "role"), id = value_string(info, "id");
	import_record record = {
		.id = id,
		.time_us = value_time(value_get(info, "time"), "created"),
	};
	if (s->revert[0] != '\0' && str_is(id, s->revert)) {
		int rc = import_leaf(im, sheaf_str_of(im->last));
		if (rc != 0)
			return rc;
	}
	if (str_is(role, "user"))
		return user_add(im, message, &record);
	if (str_is(role, "assistant"))
		return assistant_add(im, message, info, &record);
	return import_problem(im, "a message of a role that is not known");
}

/* ---- The document -------------------------------------------------------- */

static bool opencode_knows(sheaf_str path, sheaf_str head)
{
	size_t at = 0;
	sheaf_str key, info;
	if (opencode_is_storage(path))
		return str_starts(members_find(members_inside(head), "id"), "\"ses_");
	sheaf_str text = members_trim(head);
	if (text.len == 0 || text.ptr[0] != '{')
		return false;
	text = str_make(text.ptr + 1, text.len - 1);
	return members_next(text, &at, &key, &info) && members_key_is(key, "info") &&
	       str_starts(members_find(members_inside(info), "id"), "\"ses_");
}

static int opencode_begin(import *im)
{
	im->state = arena_zalloc(im->arena, sizeof(state));
	return im->state != NULL ? 0 : err_nomem(im->err);
}

/* The members of the document; the messages are its pieces. */
static int members_read(import *im, document *d)
{
	sheaf_str key;
	bool found = false;
	int more = document_enter(d, im->err);
	while (more == 1 && (more = document_each(d, &key, im->err)) == 1) {
		bool list = members_key_is(key, "messages") && !found;
		found = found || list;
		int rc = list ? document_pieces(im, d, opencode_message)
		              : document_skip(d, im->err);
		if (rc != 0)
			return rc;
	}
	return more;
}

static int document_read(import *im)
{
	_cleanup_(document_closep) document *d = NULL;
	static const char *const names[] = {"info"};
	_cleanup_(buf_free) buf flat = BUF_INIT(SOURCE_PIECE_MAX);
	sheaf_str info;
	int rc = document_open(&d, im->file.ptr, im->err);
	if (rc == 0)
		rc = document_members(d, names, &info, 1, im->arena, im->err);
	if (rc != 0)
		return rc;
	document_flatten(&flat, info.ptr != NULL ? info : SHEAF_STR("{}"));
	rc = buf_status(&flat, im->err);
	if (rc == 0)
		rc = opencode_open(im, buf_view(&flat));
	if (rc == 0)
		rc = members_read(im, d);
	return rc == 0 ? document_finish(im, d, document_size(d)) : rc;
}

static int opencode_read(import *im)
{
	return opencode_is_storage(im->file) ? opencode_storage_read(im) : document_read(im);
}

const converter convert_opencode = {
	.is = {"opencode", "OpenCode", 1, 1, ".local/share", "XDG_DATA_HOME",
               "opencode import FILE && opencode --session ID"},
	.knows = opencode_knows,
	.begin = opencode_begin,
	.read = opencode_read,
	.write = opencode_write,
	.adds = true,
	.place = opencode_place,
	.places = {"opencode/storage/session"},
};
