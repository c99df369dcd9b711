/*
 * UI messages of the Vercel AI SDK: a list of them, or an object {id, messages}.
 *
 * One message of the assistant holds all steps of a turn; `step-start` splits
 * it into what the model said each time, and the tools' answers go between.
 */
#include <stdio.h>

#include "base/crc.h"
#include "base/err.h"
#include "base/str.h"
#include "convert/document.h"
#include "convert/media.h"
#include "convert/parts.h"
#include "convert/uimessage.h"
#include "entry/members.h"

/* ---- Parts --------------------------------------------------------------- */

/* The tool of a part "tool-NAME" or "dynamic-tool"; {NULL,0} if it is no call. */
static sheaf_str tool_of(value part)
{
	static const char before[] = "tool-";
	sheaf_str type = value_string(part, "type");
	if (str_is(type, "dynamic-tool"))
		return value_string(part, "toolName");
	if (type.len > sizeof(before) - 1 && str_starts(type, before))
		return str_make(type.ptr + sizeof(before) - 1, type.len - (sizeof(before) - 1));
	return (sheaf_str){NULL, 0};
}

static bool is_answered(value part)
{
	return tool_of(part).len != 0 && str_starts(value_string(part, "state"), "output-");
}

static void result_put(sheaf_message *m, value part)
{
	sheaf_str tool = tool_of(part);
	sheaf_str state = value_string(part, "state"), call = value_string(part, "toolCallId");
	value output = value_get(part, "output");
	if (str_is(state, "output-available")) {
		sheaf_str text = json_type_of(output.v) == JSON_STRING ? json_string(output.v)
		                                                       : output.text;
		(void)sheaf_message_tool_result(m, call, tool,
		                                text.ptr != NULL ? text : SHEAF_STR(""), 0);
	} else if (str_is(state, "output-error")) {
		(void)sheaf_message_tool_result(m, call, tool, value_string(part, "errorText"), 1);
	} else {
		sheaf_str reason = value_string(value_get(part, "approval"), "reason");
		(void)sheaf_message_tool_result(
			m, call, tool, reason.len != 0 ? reason : SHEAF_STR("The call was denied."),
			1);
	}
}

/* What a model was told or said; true unless the part says nothing to it. */
static void part_put(sheaf_message *m, value part)
{
	sheaf_str type = value_string(part, "type"), tool = tool_of(part);
	value metadata = value_get(part, "providerMetadata");
	if (str_is(type, "text")) {
		(void)sheaf_message_text(m, value_string(part, "text"));
		sdk_signature_put(m, metadata);
	} else if (str_is(type, "reasoning")) {
		sdk_thinking_put(m, value_string(part, "text"), metadata);
	} else if (tool.len != 0) {
		value input = value_get(part, "input");
		(void)sheaf_message_tool_use(m, value_string(part, "toolCallId"), tool,
		                             input.v != NULL ? input.text : SHEAF_STR("{}"));
		sdk_signature_put(m, value_get(part, "callProviderMetadata"));
	} else if (!str_is(type, "file") ||
	           !media_put(m, value_string(part, "mediaType"), value_string(part, "url"))) {
		(void)sheaf_message_opaque(m, SHEAF_STR("uimessage"), part.text);
	}
}

static void usage_put(sheaf_message *m, value metadata)
{
	value usage = value_get(metadata, "totalUsage");
	sheaf_usage u = {0};
	uint64_t cached = 0;
	if (json_type_of(usage.v) != JSON_OBJECT)
		usage = value_get(metadata, "usage");
	if (json_type_of(usage.v) != JSON_OBJECT)
		return;
	value input = value_get(usage, "inputTokenDetails");
	value output = value_get(usage, "outputTokenDetails");
	(void)json_u64(json_get(usage.v, "inputTokens"), &u.input);
	(void)json_u64(json_get(usage.v, "outputTokens"), &u.output);
	(void)json_u64(json_get(usage.v, "cachedInputTokens"), &u.cache_read);
	(void)json_u64(json_get(input.v, "cacheReadTokens"), &u.cache_read);
	(void)json_u64(json_get(input.v, "cacheWriteTokens"), &u.cache_write_5m);
	(void)json_u64(json_get(usage.v, "reasoningTokens"), &u.reasoning);
	(void)json_u64(json_get(output.v, "reasoningTokens"), &u.reasoning);
	cached = u.cache_read + u.cache_write_5m; /* the input counts both */
	u.input = u.input > cached ? u.input - cached : 0;
	(void)sheaf_message_usage(m, &u);
}

/* ---- Messages ------------------------------------------------------------ */

/* What is known of all steps of a message. */
typedef struct turn {
	value message, metadata;
	sheaf_str provider;
	import_record record;
	unsigned steps;
} turn;

typedef struct step {
	sheaf_message *said, *answers;
	bool has_said;
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

static int step_add(import *im, const step *s, turn *t, bool last)
{
	import_record one = t->record;
	char id[SHEAF_ID_ROOM];
	sheaf_str root = t->record.id, model = value_string(t->metadata, "model");
	unsigned number = ++t->steps;
	if (t->provider.len != 0)
		(void)sheaf_message_provider(s->said, t->provider);
	if (model.len != 0)
		(void)sheaf_message_model(s->said, model);
	if (last)
		usage_put(s->said, t->metadata);
	if (root.len != 0)
		one.id = id_with(id, root, "", number);
	int rc = import_message(im, s->said, &one);
	if (rc != 0 || s->answers == NULL)
		return rc;
	if (root.len != 0)
		one.id = id_with(id, root, "-results", number);
	return import_message(im, s->answers, &one);
}

static int assistant_add(import *im, turn *t)
{
	_cleanup_(step_free) step now = {0};
	value part;
	int rc = step_begin(im, &now);
	for (value_iter it = value_each(value_get(t->message, "parts"));
	     rc == 0 && value_next(&it, &part);) {
		if (str_is(value_string(part, "type"), "step-start")) {
			if (!now.has_said)
				continue;
			rc = step_add(im, &now, t, false);
			if (rc == 0)
				rc = step_begin(im, &now);
			continue;
		}
		sdk_metadata of = sdk_metadata_of(value_get(part, "providerMetadata"));
		if (of.provider.len != 0)
			t->provider = of.provider;
		part_put(now.said, part);
		now.has_said = true;
		rc = answer_put(im, &now, part);
	}
	return rc == 0 && now.has_said ? step_add(im, &now, t, true) : rc;
}

static int said_add(import *im, const char *role, const turn *t)
{
	_cleanup_(media_freep) sheaf_message *m = media_message(role);
	value part;
	if (m == NULL)
		return err_nomem(im->err);
	for (value_iter it = value_each(value_get(t->message, "parts")); value_next(&it, &part);)
		part_put(m, part);
	return import_message(im, m, &t->record);
}

static int message_take(import *im, sheaf_str key, value message)
{
	value metadata = value_get(message, "metadata");
	sheaf_str role = value_string(message, "role");
	turn t = {.message = message, .metadata = metadata};
	(void)key;
	t.record.id = value_string(message, "id");
	t.record.time_us = value_time(metadata, "createdAt");
	if (t.record.time_us == 0)
		t.record.time_us = value_time(message, "createdAt");
	if (str_is(role, "assistant"))
		return assistant_add(im, &t);
	if (str_is(role, "user"))
		return said_add(im, SHEAF_ROLE_USER, &t);
	if (str_is(role, "system"))
		return said_add(im, SHEAF_ROLE_SYSTEM, &t);
	return import_problem(im, "a message of a role that is not known");
}

/* ---- The document -------------------------------------------------------- */

static bool has_text(sheaf_str text, const char *what)
{
	return memmem(text.ptr, text.len, what, strlen(what)) != NULL;
}

/* A list of objects with a role and parts; the first may be longer than what is seen of it. */
static bool uimessage_knows(sheaf_str path, sheaf_str head)
{
	(void)path;
	sheaf_str text = members_trim(head);
	if (text.len == 0)
		return false;
	if (text.ptr[0] == '{') {
		sheaf_str members = str_make(text.ptr + 1, text.len - 1), list;
		size_t at = 0;
		sheaf_str key, v;
		if (!members_next(members, &at, &key, &v) || !members_key_is(key, "id"))
			return false;
		const char *found = memmem(text.ptr, text.len, "\"messages\"", 10);
		if (found == NULL)
			return false;
		list = str_make(found + 10, text.len - (size_t)(found + 10 - text.ptr));
		text = members_trim(list);
		text = text.len != 0 ? members_trim(str_make(text.ptr + 1, text.len - 1)) : text;
	}
	if (text.len == 0 || text.ptr[0] != '[')
		return false;
	text = members_trim(str_make(text.ptr + 1, text.len - 1));
	return text.len != 0 && text.ptr[0] == '{' && has_text(text, "\"role\"") &&
	       has_text(text, "\"parts\"") && !has_text(text, "\"mapping\"") &&
	       !has_text(text, "\"info\"");
}

/* A list has no name: it is the file's, and what the first message is. */
static int list_open(import *im, document *d)
{
	document_place here = document_here(d);
	document_element first = {.whole = false};
	char id[SHEAF_ID_ROOM];
	sheaf_str key, stem = media_stem(im->file);
	int rc = document_enter(d, im->err);
	if (rc == 1)
		rc = document_each(d, &key, im->err);
	if (rc == 1)
		rc = document_value(d, &first, im->err);
	if (rc < 0)
		return rc;
	int len = snprintf(id, sizeof(id), "%.*s-%08x", (int)stem.len, stem.ptr,
	                   (unsigned)crc32c(0, first.text.ptr, first.whole ? first.text.len : 0));
	document_back(d, here);
	return import_open(im, &(import_session){.id = str_make(id, (size_t)len)});
}

static int object_open(import *im, document *d)
{
	static const char *const names[] = {"id", "title"};
	sheaf_str values[2], id = {NULL, 0}, name = {NULL, 0};
	value root;
	_cleanup_(buf_free) buf text = BUF_INIT(SOURCE_PIECE_MAX);
	int rc = document_members(d, names, values, 2, im->arena, im->err);
	if (rc != 0)
		return rc;
	buf_lit(&text, "[");
	buf_str(&text, values[0].ptr != NULL ? values[0] : SHEAF_STR("null"));
	buf_lit(&text, ",");
	buf_str(&text, values[1].ptr != NULL ? values[1] : SHEAF_STR("null"));
	buf_lit(&text, "]");
	rc = buf_status(&text, im->err);
	if (rc == 0)
		rc = import_parse(im, buf_view(&text), &root);
	if (rc != 0)
		return rc;
	json_iter it = json_each(root.v);
	if (json_next(&it))
		id = json_string(it.value);
	if (json_next(&it))
		name = json_string(it.value);
	if (id.len == 0)
		id = media_stem(im->file);
	return import_open(im, &(import_session){.id = id, .name = name});
}

static int object_read(import *im, document *d)
{
	sheaf_str key;
	bool found = false;
	int more = document_enter(d, im->err);
	while (more == 1 && (more = document_each(d, &key, im->err)) == 1) {
		bool list = members_key_is(key, "messages") && !found;
		found = found || list;
		int rc = list ? document_pieces(im, d, message_take) : document_skip(d, im->err);
		if (rc != 0)
			return rc;
	}
	return more;
}

static int uimessage_read(import *im)
{
	_cleanup_(document_closep) document *d = NULL;
	char c = 0;
	int rc = document_open(&d, im->file.ptr, im->err);
	if (rc == 0)
		rc = document_peek(d, &c, im->err);
	if (rc < 0)
		return rc;
	im->line = document_line(d);
	rc = c == '{' ? object_open(im, d) : list_open(im, d);
	if (rc == 0 && c != '{' && c != '[')
		rc = import_problem(im, "there is no list of messages in it");
	if (rc == 0)
		rc = c == '{' ? object_read(im, d) : document_pieces(im, d, message_take);
	return rc == 0 ? document_finish(im, d, document_size(d)) : rc;
}

const converter convert_uimessage = {
	.is = {.name = "uimessage", .title = "AI SDK UI messages", .imports = 1, .exports = 1},
	.knows = uimessage_knows,
	.read = uimessage_read,
	.write = uimessage_write,
};
