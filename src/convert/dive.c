/*
 * Dive: a log of {"line_type": "header" | "event", "data": …}.
 *
 * An event is a turn with the messages it added, or a compaction whose messages
 * stand for all before. Messages have the blocks of Anthropic's API; the usage is the turn's.
 */
#include "convert/dive.h"

#include "base/err.h"
#include "base/str.h"
#include "convert/media.h"
#include "convert/parts.h"
#include "entry/members.h"
#include "sheaf/ingest.h"

static bool dive_knows(sheaf_str path, sheaf_str head)
{
	(void)path;
	const char *end = memchr(head.ptr, '\n', head.len);
	sheaf_str line = str_make(head.ptr, end != NULL ? (size_t)(end - head.ptr) : head.len);
	sheaf_str members = members_inside(members_trim(line));
	return str_is(members_find(members, "line_type"), "\"header\"") &&
	       members_find(members, "data").ptr != NULL;
}

static int header_take(import *im, value data)
{
	sheaf_str id = value_string(data, "id");
	if (id.len == 0) {
		int rc = import_problem(im, "the session has no id: the file's name is taken");
		if (rc != 0)
			return rc;
		id = media_stem(im->file);
	}
	import_session session = {
		.id = id,
		.name = value_string(data, "title"),
		.parent = value_string(data, "forked_from"),
		.created_us = value_time(data, "created_at"),
	};
	return import_open(im, &session);
}

static void usage_put(sheaf_message *m, value usage)
{
	sheaf_usage u = {0};
	(void)json_u64(json_get(usage.v, "input_tokens"), &u.input);
	(void)json_u64(json_get(usage.v, "output_tokens"), &u.output);
	(void)json_u64(json_get(usage.v, "cache_read_input_tokens"), &u.cache_read);
	(void)json_u64(json_get(usage.v, "cache_creation_input_tokens"), &u.cache_write_5m);
	(void)json_u64(json_get(usage.v, "reasoning_tokens"), &u.reasoning);
	(void)sheaf_message_usage(m, &u);
}

static bool is_assistant(sheaf_message *m)
{
	sheaf_str json = sheaf_message_json(m);
	return str_is(members_find(members_inside(json), "role"), "\"assistant\"");
}

/* The messages of a turn; what the turn took is with its last reply. */
static int turn_add(import *im, value data, const sheaf_messages *list)
{
	value usage = value_get(data, "usage");
	sheaf_str root = value_string(data, "id");
	import_record record = {.time_us = value_time(data, "timestamp"), .turn = root};
	char id[SHEAF_ID_ROOM];
	size_t last = list->count;
	for (size_t i = 0; i < list->count; i++) {
		if (is_assistant(list->items[i]))
			last = i;
	}
	if (last < list->count && json_type_of(usage.v) == JSON_OBJECT)
		usage_put(list->items[last], usage);
	for (size_t i = 0; i < list->count; i++) {
		if (root.len != 0)
			record.id = id_with(id, root, "", (unsigned)i + 1);
		int rc = import_message(im, list->items[i], &record);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int compaction_add(import *im, value data, const sheaf_messages *list)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	import_record record = {.type = "compaction",
	                        .id = value_string(data, "id"),
	                        .time_us = value_time(data, "timestamp")};
	buf_lit(&body, "{\"compaction\":{\"summary\":\"\",\"replacement\":[");
	for (size_t i = 0; i < list->count; i++) {
		if (i != 0)
			buf_char(&body, ',');
		buf_str(&body, sheaf_message_json(list->items[i]));
	}
	buf_lit(&body, "]}}");
	int rc = buf_status(&body, im->err);
	record.body = buf_view(&body);
	return rc == 0 ? import_add(im, &record) : rc;
}

static void messages_freep(sheaf_messages **list)
{
	sheaf_messages_free(*list);
}

static int event_take(import *im, value data)
{
	_cleanup_(messages_freep) sheaf_messages *list = NULL;
	sheaf_str type = value_string(data, "type");
	value messages = value_get(data, "messages");
	bool none = messages.v == NULL || json_type_of(messages.v) == JSON_NULL;
	sheaf_error mine;
	if (!str_is(type, "turn") && !str_is(type, "compaction"))
		return import_problem(im, "an event of a type that is not known");
	int rc = sheaf_ingest_messages(&list, SHEAF_FORMAT_ANTHROPIC, (sheaf_str){NULL, 0},
	                               none ? SHEAF_STR("[]") : messages.text, &mine);
	if (rc == SHEAF_NOMEM)
		return err_nomem(im->err);
	if (rc != 0)
		return import_problem(im, "its messages: %s", mine.message);
	return str_is(type, "turn") ? turn_add(im, data, list) : compaction_add(im, data, list);
}

static int dive_take(import *im, sheaf_str piece)
{
	value line;
	int rc = import_parse(im, piece, &line);
	if (rc != 0 || line.v == NULL)
		return rc;
	sheaf_str type = value_string(line, "line_type");
	value data = value_get(line, "data");
	if (str_is(type, "header") && im->number == 1)
		return header_take(im, data);
	if (str_is(type, "event"))
		return event_take(im, data);
	return import_problem(im, "a line of a type that is not known");
}

const converter convert_dive = {
	.is = {.name = "dive", .title = "Dive", .imports = 1, .exports = 1},
	.knows = dive_knows,
	.take = dive_take,
	.write = dive_write,
};
