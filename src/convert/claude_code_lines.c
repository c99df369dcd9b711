/* What a line of Claude Code means: messages, with tokens counted once; what was attached; notes. */
#include <stdio.h>

#include "base/err.h"
#include "base/str.h"
#include "convert/claude_code.h"
#include "entry/members.h"
#include "sheaf/ingest.h"

/* ---- Usage ----------------------------------------------------------------- */

static uint64_t count_of(const json_val *object, const char *name)
{
	uint64_t count = 0;
	(void)json_u64(json_get(object, name), &count);
	return count;
}

/* The part of `now` that `before` has not. */
static uint64_t more(uint64_t *before, uint64_t now)
{
	uint64_t had = *before;
	*before = now > had ? now : had;
	return now > had ? now - had : 0;
}

/*
 * Every line of a reply has the usage of the reply so far. What the lines before
 * it counted is taken off, so that all lines together have it once.
 */
static int usage_put(import *im, sheaf_message *m, value message)
{
	cc_state *s = im->state;
	const json_val *usage = json_get(message.v, "usage");
	const json_val *writes = json_get(usage, "cache_creation");
	sheaf_str id = value_string(message, "id");
	uint64_t had[5] = {0};
	if (json_type_of(usage) != JSON_OBJECT)
		return 0;
	sheaf_str kept = window_get(&s->usage_of, id);
	if (kept.len == sizeof(had))
		memcpy(had, kept.ptr, sizeof(had));
	uint64_t hour = count_of(writes, "ephemeral_1h_input_tokens");
	uint64_t all = count_of(usage, "cache_creation_input_tokens");
	sheaf_usage u = {
		.input = more(&had[0], count_of(usage, "input_tokens")),
		.cache_read = more(&had[1], count_of(usage, "cache_read_input_tokens")),
		.cache_write_5m = more(&had[2], all > hour ? all - hour : 0),
		.cache_write_1h = more(&had[3], hour),
		.output = more(&had[4], count_of(usage, "output_tokens")),
	};
	if (id.len != 0 &&
	    window_set(&s->usage_of, id, str_make((const char *)had, sizeof(had))) != 0)
		return err_nomem(im->err);
	if (u.input + u.cache_read + u.cache_write_5m + u.cache_write_1h + u.output != 0)
		(void)sheaf_message_usage(m, &u);
	return 0;
}

/* ---- Messages -------------------------------------------------------------- */

static void messagesp_free(sheaf_messages **messages)
{
	sheaf_messages_free(*messages);
}

static int reply_put(import *im, sheaf_message *m, value message, bool copied)
{
	if (value_string(message, "model").len != 0)
		(void)sheaf_message_model(m, value_string(message, "model"));
	if (value_string(message, "id").len != 0)
		(void)sheaf_message_response_id(m, value_string(message, "id"));
	if (value_string(message, "stop_reason").len != 0)
		(void)sheaf_message_stop_reason(m, value_string(message, "stop_reason"));
	return copied ? 0 : usage_put(im, m, message);
}

int cc_message_add(import *im, value line, import_record *record)
{
	const cc_state *s = im->state;
	_cleanup_(messagesp_free) sheaf_messages *messages = NULL;
	_cleanup_(buf_free) buf list = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	value message = value_get(line, "message");
	char id[SHEAF_ID_ROOM];
	sheaf_error mine;
	buf_char(&list, '[');
	buf_str(&list, message.text);
	buf_char(&list, ']');
	int rc = buf_status(&list, im->err);
	if (rc != 0)
		return rc;
	rc = sheaf_ingest_messages(&messages, SHEAF_FORMAT_ANTHROPIC, (sheaf_str){NULL, 0},
	                           buf_view(&list), &mine);
	if (rc == SHEAF_NOMEM)
		return err_nomem(im->err);
	if (rc != 0)
		return import_problem(im, "%s", mine.message);
	for (size_t i = 0; rc == 0 && i < messages->count; i++) {
		import_record one = *record;
		one.preamble = json_bool(json_get(line.v, "isMeta"));
		if (i != 0) {
			int len = snprintf(id, sizeof(id), "%.*s.%zu", (int)record->id.len,
			                   record->id.ptr, i);
			one.id = str_make(id, (size_t)len < sizeof(id) ? (size_t)len : 0);
			one.has_parent = false;
		}
		if (str_is(value_string(line, "type"), "assistant"))
			rc = reply_put(im, messages->items[i], message,
			               s->own_us != 0 && record->time_us < s->own_us);
		if (rc == 0)
			rc = import_message(im, messages->items[i], &one);
	}
	return rc;
}

/* ---- What is no message ---------------------------------------------------- */

static void lines_put(buf *out, value list)
{
	value one;
	for (value_iter it = value_each(list); value_next(&it, &one);) {
		buf_char(out, '\n');
		buf_str(out, json_string(one.v));
	}
}

/* The text a model is shown of it. The program words it anew each time; here it is what is known. */
static void attachment_text(buf *out, value attachment)
{
	value content = value_get(attachment, "content");
	value file = value_get(content, "file");
	buf_lit(out, "<system-reminder>\n");
	buf_str(out, value_string(attachment, "type"));
	buf_lit(out, ":");
	if (json_type_of(content.v) == JSON_STRING) {
		buf_char(out, '\n');
		buf_str(out, json_string(content.v));
	} else if (value_string(file, "content").ptr != NULL) {
		buf_char(out, ' ');
		buf_str(out, value_string(file, "filePath"));
		buf_char(out, '\n');
		buf_str(out, value_string(file, "content"));
	} else if (value_get(attachment, "addedLines").v != NULL) {
		lines_put(out, value_get(attachment, "addedLines"));
	} else {
		buf_char(out, '\n');
		buf_str(out, attachment.text);
	}
	buf_lit(out, "\n</system-reminder>");
}

static int custom_add(import *im, const char *kind, sheaf_str type, sheaf_str text,
                      import_record *record)
{
	_cleanup_(buf_free) buf name = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	buf_lit(&name, "claude-code:");
	buf_str(&name, sheaf_str_of(kind));
	buf_str(&name, type);
	buf_lit(&body, "{\"custom\":{\"custom_type\":");
	buf_json(&body, buf_view(&name));
	if (text.ptr != NULL) {
		buf_lit(&body, ",\"in_context\":true,\"content\":");
		buf_json(&body, text);
	}
	buf_lit(&body, "}}");
	int rc = buf_status(&name, im->err);
	if (rc == 0)
		rc = buf_status(&body, im->err);
	record->type = "custom";
	record->body = buf_view(&body);
	record->continues = false;
	return rc == 0 ? import_add(im, record) : rc;
}

int cc_attachment_add(import *im, value line, import_record *record)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	value attachment = value_get(line, "attachment");
	attachment_text(&text, attachment);
	int rc = buf_status(&text, im->err);
	return rc == 0 ? custom_add(im, "", value_string(attachment, "type"), buf_view(&text),
	                            record)
	               : rc;
}

int cc_note_add(import *im, value line, import_record *record)
{
	sheaf_str type = value_string(line, "type"), subtype = value_string(line, "subtype");
	if (str_is(type, "system"))
		return custom_add(im, "system.", subtype, (sheaf_str){NULL, 0}, record);
	return custom_add(im, "", type, (sheaf_str){NULL, 0}, record);
}
