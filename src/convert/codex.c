/*
 * Codex's rollouts, of both generations: a log of what went to the model, what
 * came back, and what was shown beside it.
 *
 * What counts is what the model saw: response_item, compacted and
 * thread_rolled_back. Events repeat that for the screen and are kept as they
 * are, but for the ends of turns, which carry the usage. A reply is one line an
 * item; the lines after its first go on it (`continues`).
 */
#include <stdio.h>

#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"
#include "convert/codex.h"
#include "convert/parts.h"
#include "entry/members.h"
#include "sheaf/ingest.h"

/* How many turns can be taken back. */
#define TURNS_MAX 256
#define ITEM_BYTES_MAX SHEAF_RECORD_BYTES_MAX

typedef struct turn_start {
	char before[SHEAF_ID_ROOM]; /* the entry the turn's first message hangs on */
} turn_start;

typedef struct state {
	bool open;
	bool counts_replies; /* usage comes reply by reply, not as a running total */
	bool in_reply;       /* the entry added last is part of a reply that may go on */
	char session[SHEAF_ID_ROOM];
	char provider[64];
	char model[128];
	char effort[32];
	char turn[SHEAF_ID_ROOM];
	sheaf_usage usage; /* of the turn */
	bool has_usage;
	uint64_t total; /* tokens of the session as said last */
	turn_start turns[TURNS_MAX];
	uint64_t turn_count;
	bool numbered;
	uint64_t ordinal;
	unsigned line_records;
} state;

static bool codex_knows(sheaf_str path, sheaf_str head)
{
	(void)path;
	sheaf_str line = members_inside(members_trim(head));
	return line.ptr != NULL && str_is(members_find(line, "type"), "\"session_meta\"") &&
	       members_find(line, "payload").len > 1;
}

static int codex_begin(import *im)
{
	state *s = arena_zalloc(im->arena, sizeof(*s));
	im->state = s;
	return s != NULL ? 0 : err_nomem(im->err);
}

/* ---- Records ------------------------------------------------------------- */

/* Numbered lines give their number: it goes on through forks, as the number of a line does not. */
static int add(import *im, const import_record *record)
{
	state *s = im->state;
	char id[SHEAF_ID_ROOM];
	import_record whole = *record;
	if (s->numbered)
		whole.id = id_number(id, "ordinal-", s->ordinal, im->id_tail, s->line_records);
	s->line_records++;
	return import_add(im, &whole);
}

static int add_buf(import *im, const import_record *record, const buf *body)
{
	import_record whole = *record;
	int rc = buf_status(body, im->err);
	whole.body = buf_view(body);
	return rc == 0 ? add(im, &whole) : rc;
}

/* ---- Sessions ------------------------------------------------------------ */

static void keep(char *room, size_t size, sheaf_str s)
{
	str_copy_cut(room, size, s.ptr != NULL ? s : SHEAF_STR(""));
}

/* The id in a file's name: rollout-TIME-ID.jsonl. */
static sheaf_str id_of_file(sheaf_str file)
{
	const char *slash = memrchr(file.ptr, '/', file.len);
	sheaf_str name = file;
	if (slash != NULL)
		name = str_make(slash + 1, file.len - (size_t)(slash + 1 - file.ptr));
	const char *dot = memchr(name.ptr, '.', name.len);
	if (dot != NULL)
		name.len = (size_t)(dot - name.ptr);
	if (name.len > UUID_TEXT)
		name = str_make(name.ptr + name.len - UUID_TEXT, UUID_TEXT);
	return name;
}

/* Who began it, if another session did: that one's id. */
static sheaf_str spawned_by(value meta)
{
	sheaf_str parent = value_string(meta, "parent_thread_id");
	if (parent.len != 0)
		return parent;
	value spawn = value_get(value_get(value_get(meta, "source"), "subagent"), "thread_spawn");
	return value_string(spawn, "parent_thread_id");
}

/* Lines of a fork are numbered on from its source, as those that source got later are. */
static sheaf_str tail_of(sheaf_str id)
{
	const size_t len = 12; /* of an id, the random end */
	return id.len > len ? str_make(id.ptr + id.len - len - 1, len + 1) : id;
}

static int session_open(import *im, value meta)
{
	state *s = im->state;
	sheaf_str id = value_string(meta, "id"), spawner = spawned_by(meta);
	import_session session = {.id = id.len != 0 ? id : id_of_file(im->file),
	                          .cwd = value_string(meta, "cwd"),
	                          .created_us = value_time(meta, "timestamp")};
	sheaf_str provider = value_string(meta, "model_provider");
	keep(s->session, sizeof(s->session), session.id);
	keep(s->provider, sizeof(s->provider), provider.len != 0 ? provider : SHEAF_STR("openai"));
	session.parent = value_string(meta, "forked_from_id");
	if (spawner.len != 0 || json_get(json_get(meta.v, "source"), "subagent") != NULL) {
		session.kind = SHEAF_STR("subagent");
		session.parent = spawner;
	}
	s->open = true;
	if (json_get(meta.v, "history_base") != NULL)
		keep(im->id_tail, sizeof(im->id_tail), tail_of(session.id));
	int rc = codex_fork_find(im, meta, &session);
	if (rc == 0)
		rc = import_open(im, &session);
	sheaf_session_close(session.fork);
	return rc;
}

/* ---- Turns --------------------------------------------------------------- */

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void usage_add(state *s, value usage)
{
	uint64_t input = 0, cached = 0, written = 0, output = 0, reasoning = 0;
	(void)json_u64(json_get(usage.v, "input_tokens"), &input);
	(void)json_u64(json_get(usage.v, "cached_input_tokens"), &cached);
	(void)json_u64(json_get(usage.v, "cache_write_input_tokens"), &written);
	(void)json_u64(json_get(usage.v, "output_tokens"), &output);
	(void)json_u64(json_get(usage.v, "reasoning_output_tokens"), &reasoning);
	s->usage.input += less(less(input, cached), written);
	s->usage.cache_read += cached;
	s->usage.cache_write_5m += written;
	s->usage.output += output;
	s->usage.reasoning += reasoning;
	s->has_usage |= input != 0 || output != 0;
}

/* A turn older than its session was copied from another one, which has its usage. */
static bool is_copied(const state *s)
{
	sheaf_str turn = sheaf_str_of(s->turn), session = sheaf_str_of(s->session);
	return uuid7_is(turn) && uuid7_is(session) && str_cmp(turn, session) < 0;
}

static void usage_write(buf *out, const sheaf_usage *u)
{
	buf_format(out, ",\"usage\":{\"input\":%llu", (unsigned long long)u->input);
	buf_format(out, ",\"cache_read\":%llu", (unsigned long long)u->cache_read);
	buf_format(out, ",\"cache_write_5m\":%llu", (unsigned long long)u->cache_write_5m);
	buf_format(out, ",\"output\":%llu", (unsigned long long)u->output);
	buf_format(out, ",\"reasoning\":%llu}", (unsigned long long)u->reasoning);
}

static int turn_end_add(import *im, sheaf_str turn, const char *outcome, int64_t time_us)
{
	state *s = im->state;
	_cleanup_(buf_free) buf body = BUF_INIT(65536);
	buf_lit(&body, "{\"turn_end\":{\"turn\":");
	buf_json(&body, turn);
	buf_lit(&body, ",\"outcome\":\"");
	buf_str(&body, sheaf_str_of(outcome));
	buf_char(&body, '"');
	if (s->has_usage && !is_copied(s))
		usage_write(&body, &s->usage);
	buf_lit(&body, "}}");
	s->usage = (sheaf_usage){0};
	s->has_usage = false;
	return add_buf(im, &(import_record){.type = "turn_end", .fact = true, .time_us = time_us},
	               &body);
}

/* A turn that never ended did when the next began. */
static int turn_begin(import *im, sheaf_str turn, int64_t time_us)
{
	state *s = im->state;
	int rc = 0;
	if (turn.len == 0 || str_is(turn, s->turn))
		return 0;
	if (s->turn[0] != '\0' && s->has_usage)
		rc = turn_end_add(im, sheaf_str_of(s->turn), "interrupted", time_us);
	keep(s->turn, sizeof(s->turn), turn);
	s->in_reply = false;
	return rc;
}

static int turn_end(import *im, const char *outcome, int64_t time_us)
{
	state *s = im->state;
	if (s->turn[0] == '\0')
		return 0;
	int rc = turn_end_add(im, sheaf_str_of(s->turn), outcome, time_us);
	s->turn[0] = '\0';
	s->in_reply = false;
	return rc;
}

/* Usage of what belongs to no turn: rollouts that do not name them. */
static int usage_settle(import *im, int64_t time_us)
{
	state *s = im->state;
	char turn[SHEAF_ID_ROOM];
	s->in_reply = false;
	if (s->turn[0] != '\0' || !s->has_usage)
		return 0;
	(void)snprintf(turn, sizeof(turn), "line-%llu", (unsigned long long)im->number);
	return turn_end_add(im, sheaf_str_of(turn), "completed", time_us);
}

/* The running total is said again and again: what came last counts when it has moved. */
static int total_take(import *im, value event, int64_t time_us)
{
	state *s = im->state;
	value info = value_get(event, "info");
	uint64_t total = 0;
	(void)json_u64(json_get(json_get(info.v, "total_token_usage"), "total_tokens"), &total);
	if (s->counts_replies || total == s->total)
		return 0;
	s->total = total;
	usage_add(s, value_get(info, "last_token_usage"));
	return usage_settle(im, time_us);
}

/* ---- What is said -------------------------------------------------------- */

/* Text Codex itself puts into the user's mouth: no turn begins with it. */
static bool is_from_codex(sheaf_str text)
{
	static const char *const openings[] = {
		"<environment_context>",
		"<user_instructions>",
		"# AGENTS.md instructions for ",
		"<skill>",
		"<turn_aborted>",
		"<user_shell_command>",
		"<subagent_notification>",
	};
	for (size_t i = 0; i < COUNT_OF(openings); i++) {
		if (str_starts(text, openings[i]))
			return true;
	}
	return false;
}

static bool begins_turn(value item)
{
	value part;
	if (!str_is(value_string(item, "type"), "message") ||
	    !str_is(value_string(item, "role"), "user"))
		return false;
	value_iter it = value_each(value_get(item, "content"));
	return !value_next(&it, &part) || !is_from_codex(value_string(part, "text"));
}

/* An item as it is sent: what Codex notes on it for itself is not. */
static void item_write(buf *out, sheaf_str item)
{
	sheaf_str inside = members_inside(members_trim(item)), key, one;
	bool first = true;
	buf_char(out, '{');
	for (size_t at = 0; members_next(inside, &at, &key, &one);) {
		if (members_key_is(key, "internal_chat_message_metadata_passthrough"))
			continue;
		if (!first)
			buf_char(out, ',');
		first = false;
		buf_char(out, '"');
		buf_str(out, key);
		buf_lit(out, "\":");
		buf_str(out, one);
	}
	buf_char(out, '}');
}

static void messages_freep(sheaf_messages **messages)
{
	sheaf_messages_free(*messages);
}

/* The messages of a list of items; *out is NULL if it has what is none. */
static int items_read(import *im, sheaf_messages **out, const buf *list)
{
	const state *s = im->state;
	sheaf_error mine;
	int rc = buf_status(list, im->err);
	if (rc != 0)
		return rc;
	rc = sheaf_ingest_messages(out, SHEAF_FORMAT_OPENAI_RESPONSES, sheaf_str_of(s->provider),
	                           buf_view(list), &mine);
	if (rc == SHEAF_FORMAT || rc == SHEAF_TOO_LARGE)
		return import_problem(im, "kept as it is: %s", mine.message);
	if (rc != 0)
		*im->err = mine;
	return rc;
}

static bool is_of_role(sheaf_message *m, const char *role)
{
	sheaf_str json = sheaf_message_json(m), said;
	said = members_find(members_inside(json), "role");
	return said.len > 2 && str_is(str_make(said.ptr + 1, said.len - 2), role);
}

static bool is_reply(sheaf_message *m)
{
	return is_of_role(m, SHEAF_ROLE_ASSISTANT);
}

static void maker_put(const state *s, sheaf_message *m)
{
	if (is_reply(m) && s->model[0] != '\0')
		(void)sheaf_message_model(m, sheaf_str_of(s->model));
	/* A system's word is one to the provider it was written for only. */
	if (is_of_role(m, SHEAF_ROLE_SYSTEM) || is_of_role(m, SHEAF_ROLE_DEVELOPER))
		(void)sheaf_message_provider(m, sheaf_str_of(s->provider));
}

static int message_add(import *im, sheaf_message *m, import_record *record)
{
	state *s = im->state;
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	bool reply = is_reply(m);
	buf_lit(&body, "\"message\":");
	buf_str(&body, sheaf_message_json(m));
	record->type = "message";
	record->built = true;
	record->continues = reply && s->in_reply;
	int rc = add_buf(im, record, &body);
	s->in_reply = reply;
	return rc;
}

static int item_add(import *im, value item, int64_t time_us)
{
	state *s = im->state;
	_cleanup_(messages_freep) sheaf_messages *messages = NULL;
	_cleanup_(buf_free) buf list = BUF_INIT(ITEM_BYTES_MAX);
	if (json_type_of(item.v) != JSON_OBJECT)
		return import_problem(im, "an item that is none");
	buf_char(&list, '[');
	item_write(&list, item.text);
	buf_char(&list, ']');
	int rc = items_read(im, &messages, &list);
	if (rc != 0 || messages == NULL)
		return rc;
	bool begins = begins_turn(item);
	if (begins) {
		memcpy(s->turns[s->turn_count++ % TURNS_MAX].before, im->last, sizeof(im->last));
		s->in_reply = false;
	}
	for (size_t i = 0; rc == 0 && i < messages->count; i++) {
		maker_put(s, messages->items[i]);
		rc = message_add(
			im, messages->items[i],
			&(import_record){.time_us = time_us,
		                         .turn = sheaf_str_of(s->turn),
		                         .preamble = !begins && is_of_role(messages->items[i],
		                                                           SHEAF_ROLE_USER)});
	}
	return rc;
}

/* The last n turns are no part of the conversation any more; they stay in the tree. */
static int rolled_back(import *im, value event)
{
	state *s = im->state;
	uint64_t n = 0;
	if (!json_u64(json_get(event.v, "num_turns"), &n) || n == 0)
		return 0;
	if (n > s->turn_count || n > TURNS_MAX)
		return import_problem(im, "takes back more turns than are known");
	s->turn_count -= n;
	memcpy(im->last, s->turns[s->turn_count % TURNS_MAX].before, sizeof(im->last));
	s->in_reply = false;
	return 0;
}

static void replacement_write(const state *s, buf *out, const sheaf_messages *messages)
{
	buf_lit(out, ",\"replacement\":[");
	for (size_t i = 0; i < messages->count; i++) {
		if (i != 0)
			buf_char(out, ',');
		maker_put(s, messages->items[i]);
		buf_str(out, sheaf_message_json(messages->items[i]));
	}
	buf_char(out, ']');
}

/* Everything so far, replaced by a list; by a summary alone in the oldest rollouts. */
static int compacted(import *im, value payload, int64_t time_us)
{
	state *s = im->state;
	_cleanup_(messages_freep) sheaf_messages *messages = NULL;
	_cleanup_(buf_free) buf list = BUF_INIT(ITEM_BYTES_MAX);
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	value history = value_get(payload, "replacement_history"), item;
	sheaf_str message = value_string(payload, "message");
	int rc = 0;
	if (json_type_of(history.v) == JSON_ARRAY) {
		buf_char(&list, '[');
		for (value_iter it = value_each(history); value_next(&it, &item);) {
			if (list.len != 1)
				buf_char(&list, ',');
			item_write(&list, item.text);
		}
		buf_char(&list, ']');
		rc = items_read(im, &messages, &list);
		if (rc != 0)
			return rc;
	}
	buf_lit(&body, "{\"compaction\":{\"summary\":");
	buf_json(&body, messages == NULL && message.ptr != NULL ? message : SHEAF_STR(""));
	if (messages != NULL)
		replacement_write(s, &body, messages);
	if (messages != NULL && message.len != 0) {
		buf_lit(&body, ",\"details\":{\"message\":");
		buf_json(&body, message);
		buf_char(&body, '}');
	}
	buf_lit(&body, "}}");
	s->in_reply = false;
	return add_buf(im,
	               &(import_record){.type = "compaction",
	                                .time_us = time_us,
	                                .turn = sheaf_str_of(s->turn)},
	               &body);
}

/* ---- Settings ------------------------------------------------------------ */

static int model_add(import *im, sheaf_str model, int64_t time_us)
{
	state *s = im->state;
	_cleanup_(buf_free) buf body = BUF_INIT(65536);
	if (model.len == 0 || str_is(model, s->model))
		return 0;
	keep(s->model, sizeof(s->model), model);
	buf_lit(&body, "{\"model_change\":{\"provider\":");
	buf_json(&body, sheaf_str_of(s->provider));
	buf_lit(&body, ",\"model_id\":");
	buf_json(&body, model);
	buf_lit(&body, "}}");
	return add_buf(im, &(import_record){.type = "model_change", .time_us = time_us}, &body);
}

static int effort_add(import *im, sheaf_str effort, int64_t time_us)
{
	state *s = im->state;
	_cleanup_(buf_free) buf body = BUF_INIT(65536);
	if (effort.len == 0 || str_is(effort, s->effort))
		return 0;
	keep(s->effort, sizeof(s->effort), effort);
	buf_lit(&body, "{\"thinking_level\":{\"thinking_level\":");
	buf_json(&body, effort);
	buf_lit(&body, "}}");
	return add_buf(im, &(import_record){.type = "thinking_level", .time_us = time_us}, &body);
}

static int turn_context(import *im, value payload, int64_t time_us)
{
	int rc = turn_begin(im, value_string(payload, "turn_id"), time_us);
	if (rc == 0)
		rc = model_add(im, value_string(payload, "model"), time_us);
	return rc == 0 ? effort_add(im, value_string(payload, "effort"), time_us) : rc;
}

/* ---- Lines --------------------------------------------------------------- */

static int event_take(import *im, value event, int64_t time_us)
{
	sheaf_str type = value_string(event, "type");
	if (str_is(type, "task_started") || str_is(type, "turn_started"))
		return turn_begin(im, value_string(event, "turn_id"), time_us);
	if (str_is(type, "task_complete") || str_is(type, "turn_complete"))
		return turn_end(im, "completed", time_us);
	if (str_is(type, "turn_aborted"))
		return turn_end(im, "aborted", time_us);
	if (str_is(type, "token_count"))
		return total_take(im, event, time_us);
	if (str_is(type, "thread_rolled_back"))
		return rolled_back(im, event);
	if (str_is(type, "thread_name_updated") && value_string(event, "thread_name").len != 0)
		return import_name(im, value_string(event, "thread_name"));
	return 0;
}

static int line_take(import *im, value line)
{
	state *s = im->state;
	value payload = value_get(line, "payload");
	sheaf_str type = value_string(line, "type");
	int64_t time_us = value_time(line, "timestamp");
	if (str_is(type, "response_item"))
		return item_add(im, payload, time_us);
	if (str_is(type, "event_msg"))
		return event_take(im, payload, time_us);
	if (str_is(type, "compacted"))
		return compacted(im, payload, time_us);
	if (str_is(type, "turn_context"))
		return turn_context(im, payload, time_us);
	if (str_is(type, "token_usage_record")) {
		s->counts_replies = true;
		usage_add(s, value_get(payload, "usage"));
		return usage_settle(im, time_us);
	}
	return 0;
}

static int codex_take(import *im, sheaf_str piece)
{
	state *s = im->state;
	value line;
	int rc = import_parse(im, piece, &line);
	if (rc == 0 && !s->open) {
		bool meta = str_is(value_string(line, "type"), "session_meta");
		rc = session_open(im, meta ? value_get(line, "payload") : (value){NULL, {NULL, 0}});
	}
	if (rc != 0 || line.v == NULL)
		return rc;
	s->line_records = 0;
	s->numbered = json_u64(json_get(line.v, "ordinal"), &s->ordinal);
	return line_take(im, line);
}

const converter convert_codex = {
	.is = {"codex", "Codex", 1, 1, ".codex", "CODEX_HOME", "codex resume ID"},
	.knows = codex_knows,
	.begin = codex_begin,
	.take = codex_take,
	.write = codex_write,
	.place = codex_place,
	.places = {"sessions", "archived_sessions"},
};
