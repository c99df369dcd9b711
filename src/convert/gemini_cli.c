/*
 * Gemini CLI's chats, of three generations: a log that is played back to get
 * the list of messages, and before that a document that is the list.
 *
 * A line of the log is a message, again if it has grown (its calls are added
 * when they are done); or it sets the list anew, as every resuming does and as
 * compression does; or it takes messages back. A list that is the one at hand is
 * nothing new; another one replaces what was, as a compaction does.
 */
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "convert/document.h"
#include "convert/gemini_message.h"
#include "entry/members.h"

/* How many messages a list is compared by; what is before them is taken for changed. */
#define LIST_MAX 65536
/* How far back a message can be that is written again. */
#define AGAIN_MAX 1024

/* A message of the list at hand. */
typedef struct said {
	uint64_t id; /* its hash */
	uint64_t digest;
	sheaf_usage usage; /* that was recorded */
	size_t calls;      /* that were */
	unsigned versions;
	const char *before; /* the entry it hangs on, in the arena */
	const char *entry;  /* its last one */
} said;

typedef struct state {
	bool open;
	bool cut; /* the list had to be cut at the front */
	said *list;
	size_t count, room;
	window answered;
} state;

/* ---- Which files --------------------------------------------------------- */

static bool ends_in(sheaf_str s, const char *tail)
{
	size_t n = strlen(tail);
	return s.len >= n && memcmp(s.ptr + s.len - n, tail, n) == 0;
}

static bool is_chat(sheaf_str head)
{
	sheaf_str members = members_inside(members_trim(head));
	return members_find(members, "sessionId").len > 2 &&
	       members_find(members, "projectHash").len > 2;
}

/* A log has what is known of the session on its first line, and nothing said. */
static bool log_knows(sheaf_str path, sheaf_str head)
{
	const char *end = memchr(head.ptr, '\n', head.len);
	if (end == NULL && !ends_in(path, ".jsonl"))
		return false;
	sheaf_str line = str_make(head.ptr, end != NULL ? (size_t)(end - head.ptr) : head.len);
	return line.len > 1 && line.ptr[line.len - 1] == '}' && is_chat(line) &&
	       members_find(members_inside(line), "messages").ptr == NULL;
}

static bool document_knows(sheaf_str path, sheaf_str head)
{
	return !ends_in(path, ".jsonl") && is_chat(head);
}

static int gemini_begin(import *im)
{
	im->state = arena_zalloc(im->arena, sizeof(state));
	return im->state != NULL ? 0 : err_nomem(im->err);
}

static void gemini_done(import *im)
{
	state *s = im->state;
	if (s == NULL)
		return;
	window_free(&s->answered);
	mem_free(s->list);
}

/* ---- Sessions ------------------------------------------------------------ */

static sheaf_str stem_of(sheaf_str file)
{
	const char *slash = memrchr(file.ptr, '/', file.len);
	sheaf_str name = file;
	if (slash != NULL)
		name = str_make(slash + 1, file.len - (size_t)(slash + 1 - file.ptr));
	const char *dot = memchr(name.ptr, '.', name.len);
	return dot != NULL ? str_make(name.ptr, (size_t)(dot - name.ptr)) : name;
}

/* `meta` has what is known of the session, if anything is. */
static int session_open(import *im, value meta)
{
	state *s = im->state;
	value dirs = value_get(meta, "directories"), dir;
	value_iter it = value_each(dirs);
	sheaf_str id = value_string(meta, "sessionId"), kind = value_string(meta, "kind");
	import_session session = {
		.id = id.len != 0 ? id : stem_of(im->file),
		.name = value_string(meta, "summary"),
		.kind = str_is(kind, "subagent") ? kind : (sheaf_str){NULL, 0},
		.created_us = value_time(meta, "startTime"),
	};
	if (value_next(&it, &dir))
		session.cwd = json_string(dir.v);
	s->open = true;
	return import_open(im, &session);
}

/* ---- The list ------------------------------------------------------------ */

static uint64_t id_hash(value message)
{
	return str_hash(value_string(message, "id"));
}

static const char *keep(import *im, const char *id)
{
	int ok = 1;
	sheaf_str kept = arena_dup(im->arena, sheaf_str_of(id), &ok);
	return ok ? kept.ptr : NULL;
}

/* Adds a message that hangs on `before` and ends at the entry added last. */
static int list_add(import *im, value message, const char *before, const sheaf_usage *usage)
{
	state *s = im->state;
	void *list = s->list;
	if (s->count == LIST_MAX) {
		s->count = LIST_MAX / 2;
		memmove(s->list, s->list + LIST_MAX / 2, s->count * sizeof(*s->list));
		s->cut = true;
	}
	if (mem_grow(&list, &s->room, s->count + 1, sizeof(*s->list)) != 0)
		return err_nomem(im->err);
	s->list = list;
	said *new = &s->list[s->count++];
	*new = (said){.id = id_hash(message),
	              .digest = gemini_digest(message),
	              .usage = *usage,
	              .calls = json_count(json_get(message.v, "toolCalls")),
	              .versions = 1,
	              .before = keep(im, before),
	              .entry = keep(im, im->last)};
	return new->before != NULL &&new->entry != NULL ? 0 : err_nomem(im->err);
}

/* The newest message of that id, or NULL. */
static said *list_find(const state *s, uint64_t id, size_t back)
{
	for (size_t i = s->count; i-- > 0 && s->count - i <= back;) {
		if (s->list[i].id == id)
			return &s->list[i];
	}
	return NULL;
}

/* ---- Messages ------------------------------------------------------------ */

static bool is_reply(value message)
{
	return str_is(value_string(message, "type"), "gemini");
}

static bool is_user(value message)
{
	return str_is(value_string(message, "type"), "user");
}

/* What of the tokens was not recorded yet. */
static sheaf_usage usage_more(const sheaf_usage *now, const sheaf_usage *before)
{
	sheaf_usage more = {0};
	more.input = now->input > before->input ? now->input - before->input : 0;
	more.cache_read = now->cache_read > before->cache_read
	                          ? now->cache_read - before->cache_read
	                          : 0;
	more.output = now->output > before->output ? now->output - before->output : 0;
	more.reasoning = now->reasoning > before->reasoning ? now->reasoning - before->reasoning
	                                                    : 0;
	return more;
}

static bool usage_is_any(const sheaf_usage *u)
{
	return u->input != 0 || u->cache_read != 0 || u->output != 0;
}

static int answers_add(import *im, value message, int64_t time_us)
{
	state *s = im->state;
	_cleanup_(gemini_freep) sheaf_message *m = NULL;
	int rc = gemini_answers(im, &s->answered, message, &m);
	if (rc != 0 || m == NULL)
		return rc;
	return import_message(im, m, &(import_record){.time_us = time_us});
}

/* A reply, or the rest of one: the calls from one on. */
static int reply_add(import *im, value message, size_t first_call, const sheaf_usage *usage,
                     const import_record *record)
{
	bool rest = record->continues;
	_cleanup_(gemini_freep) sheaf_message *m = gemini_reply(message, first_call, rest);
	if (m == NULL)
		return err_nomem(im->err);
	if (usage_is_any(usage))
		(void)sheaf_message_usage(m, usage);
	int rc = import_message(im, m, record);
	return rc == 0 ? answers_add(im, message, record->time_us) : rc;
}

/* Text Gemini CLI itself puts into the user's mouth, about the machine and its files. */
static bool is_from_gemini(value message)
{
	value content = value_get(message, "content"), part;
	value_iter it = value_each(content);
	sheaf_str text = json_string(content.v);
	if (value_next(&it, &part))
		text = value_string(part, "text");
	return str_starts(text, "<session_context>") || str_starts(text, "This is the Gemini CLI.");
}

/* The user's message, after the answers in it. */
static int user_add(import *im, value message, const import_record *record)
{
	state *s = im->state;
	_cleanup_(gemini_freep) sheaf_message *m = NULL, *answers = NULL;
	import_record rest = *record;
	int rc = gemini_responses(im, &s->answered, message, &answers);
	if (rc == 0)
		rc = gemini_user(im, message, &m);
	if (rc == 0 && answers != NULL) {
		rc = import_message(im, answers, record);
		rest = (import_record){.time_us = record->time_us};
	}
	rest.preamble = is_from_gemini(message);
	return rc == 0 && m != NULL ? import_message(im, m, &rest) : rc;
}

/* What the program told the user. */
static int notice_add(import *im, value message, const import_record *record)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	import_record whole = *record;
	value content = value_get(message, "content");
	buf_lit(&body, "{\"custom\":{\"custom_type\":\"gemini-cli:");
	buf_str(&body, SHEAF_STR("notice"));
	buf_lit(&body, "\",\"data\":{\"type\":");
	buf_json(&body, value_string(message, "type"));
	if (content.v != NULL) {
		buf_lit(&body, ",\"content\":");
		buf_str(&body, content.text);
	}
	buf_lit(&body, "}}}");
	whole.type = "custom";
	whole.body = buf_view(&body);
	int rc = buf_status(&body, im->err);
	return rc == 0 ? import_add(im, &whole) : rc;
}

/* A message the list did not have. */
static int message_new(import *im, value message)
{
	state *s = im->state;
	char before[SHEAF_ID_ROOM];
	sheaf_usage usage = gemini_usage(message);
	import_record record = {.id = value_string(message, "id"),
	                        .time_us = value_time(message, "timestamp")};
	int rc;
	if (gemini_is_double(&s->answered, message))
		return 0;
	memcpy(before, im->last, sizeof(before));
	if (is_reply(message))
		rc = reply_add(im, message, 0, &usage, &record);
	else if (is_user(message))
		rc = user_add(im, message, &record);
	else
		rc = notice_add(im, message, &record);
	return rc == 0 ? list_add(im, message, before, &usage) : rc;
}

/* Another version of a message hangs where the one before it does. */
static int version_add(import *im, said *old, value message, const sheaf_usage *more)
{
	char id[SHEAF_ID_ROOM];
	sheaf_str name = value_string(message, "id");
	int len = snprintf(id, sizeof(id), "%.*s~%u", (int)(name.len < 100 ? name.len : 100),
	                   name.ptr, ++old->versions);
	import_record record = {.id = str_make(id, (size_t)len),
	                        .time_us = value_time(message, "timestamp"),
	                        .has_parent = true,
	                        .parent = sheaf_str_of(old->before)};
	if (is_reply(message))
		return reply_add(im, message, 0, more, &record);
	return is_user(message) ? user_add(im, message, &record) : notice_add(im, message, &record);
}

/* A message that the list has: it has grown, or changed. */
static int message_again(import *im, said *old, value message)
{
	state *s = im->state;
	bool last = old == &s->list[s->count - 1];
	size_t calls = json_count(json_get(message.v, "toolCalls"));
	sheaf_usage usage = gemini_usage(message), more = usage_more(&usage, &old->usage);
	int64_t time_us = value_time(message, "timestamp");
	bool same = old->digest == gemini_digest(message) && calls >= old->calls;
	int rc = 0;
	if (!same && !last)
		return import_problem(im, "changes what was said before: kept as it is");
	if (!same)
		rc = version_add(im, old, message, &more);
	else if (last && (calls > old->calls || usage_is_any(&more)))
		rc = reply_add(im, message, old->calls, &more,
		               &(import_record){.time_us = time_us, .continues = true});
	else
		rc = answers_add(im, message, time_us);
	if (rc != 0)
		return rc;
	old->digest = gemini_digest(message);
	old->calls = last ? calls : old->calls;
	old->usage = usage;
	if (last)
		old->entry = keep(im, im->last);
	return old->entry != NULL ? 0 : err_nomem(im->err);
}

static int message_take(import *im, value message)
{
	state *s = im->state;
	said *old = list_find(s, id_hash(message), AGAIN_MAX);
	if (value_string(message, "id").len == 0)
		return import_problem(im, "a message without an id");
	return old != NULL ? message_again(im, old, message) : message_new(im, message);
}

/* ---- Lists --------------------------------------------------------------- */

/* How many messages of a list are those at hand, and how many it has; doubles do not count. */
static size_t list_same(const state *s, value messages, size_t *count)
{
	value message;
	size_t same = 0;
	*count = 0;
	for (value_iter it = value_each(messages); value_next(&it, &message);) {
		if (gemini_is_double(&s->answered, message))
			continue;
		if (same == *count && same < s->count && s->list[same].id == id_hash(message) &&
		    s->list[same].digest == gemini_digest(message))
			same++;
		++*count;
	}
	return same;
}

/* What follows those that are the same. */
static int list_append(import *im, value messages, size_t same)
{
	const state *s = im->state;
	value message;
	for (value_iter it = value_each(messages); value_next(&it, &message);) {
		if (gemini_is_double(&s->answered, message))
			continue;
		if (same != 0) {
			same--;
			continue;
		}
		int rc = message_new(im, message);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static void replacement_put(buf *body, sheaf_message *m)
{
	sheaf_str json = m != NULL ? sheaf_message_json(m) : (sheaf_str){NULL, 0};
	if (json.ptr == NULL)
		return;
	if (body->ptr[body->len - 1] != '[')
		buf_char(body, ',');
	buf_str(body, json);
}

/* One message of a list that replaces: with its answers, without usage, which was counted. */
static int replacement_message(import *im, window *answered, buf *body, value message)
{
	_cleanup_(gemini_freep) sheaf_message *m = NULL, *answers = NULL;
	int rc;
	if (is_reply(message)) {
		m = gemini_reply(message, 0, false);
		rc = m != NULL ? gemini_answers(im, answered, message, &answers)
		               : err_nomem(im->err);
		replacement_put(body, m);
		replacement_put(body, answers);
		return rc;
	}
	if (!is_user(message) || gemini_is_double(answered, message))
		return 0;
	rc = gemini_responses(im, answered, message, &answers);
	if (rc == 0)
		rc = gemini_user(im, message, &m);
	replacement_put(body, answers);
	replacement_put(body, m);
	return rc;
}

static void window_freep(window *w)
{
	window_free(w);
}

static int list_replace(import *im, value messages)
{
	state *s = im->state;
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	_cleanup_(window_freep) window answered = {0};
	value message;
	int rc = 0;
	buf_lit(&body, "{\"compaction\":{\"summary\":\"\",\"replacement\":[");
	for (value_iter it = value_each(messages); rc == 0 && value_next(&it, &message);)
		rc = replacement_message(im, &answered, &body, message);
	buf_lit(&body, "]}}");
	if (rc == 0)
		rc = buf_status(&body, im->err);
	if (rc == 0)
		rc = import_add(im,
		                &(import_record){.type = "compaction", .body = buf_view(&body)});
	s->count = 0;
	s->cut = false;
	for (value_iter it = value_each(messages); rc == 0 && value_next(&it, &message);) {
		sheaf_usage usage = gemini_usage(message);
		sheaf_message *known = NULL;
		if (!gemini_is_double(&s->answered, message))
			rc = list_add(im, message, im->last, &usage);
		if (rc == 0)
			rc = gemini_answers(im, &s->answered, message, &known);
		sheaf_message_free(known);
	}
	return rc;
}

static void stand_at(import *im, const char *entry)
{
	str_copy_cut(im->last, sizeof(im->last), sheaf_str_of(entry));
}

static int list_set(import *im, value messages)
{
	state *s = im->state;
	size_t count, same = list_same(s, messages, &count);
	if (same == s->count && !s->cut)
		return list_append(im, messages, same);
	if (same != count || s->cut)
		return list_replace(im, messages);
	stand_at(im, same != 0 ? s->list[same - 1].entry : "");
	s->count = same;
	return 0;
}

/* Everything from a message on is taken back; from one that is not known, everything. */
static int rewind_to(import *im, value id)
{
	state *s = im->state;
	said *at = list_find(s, str_hash(json_string(id.v)), SIZE_MAX);
	stand_at(im, at != NULL ? at->before : "");
	s->count = at != NULL ? (size_t)(at - s->list) : 0;
	return 0;
}

/* ---- Lines --------------------------------------------------------------- */

static int set_take(import *im, value set)
{
	value messages = value_get(set, "messages");
	sheaf_str summary = value_string(set, "summary");
	int rc = summary.len != 0 ? import_name(im, summary) : 0;
	if (rc == 0 && json_type_of(messages.v) == JSON_ARRAY)
		rc = list_set(im, messages);
	return rc;
}

static int log_take(import *im, sheaf_str piece)
{
	state *s = im->state;
	value line;
	int rc = import_parse(im, piece, &line);
	if (rc == 0 && !s->open)
		rc = session_open(im, line);
	if (rc != 0 || line.v == NULL)
		return rc;
	value set = value_get(line, "$set"), back = value_get(line, "$rewindTo");
	if (set.v != NULL)
		return set_take(im, set);
	if (back.v != NULL)
		return rewind_to(im, back);
	if (json_get(line.v, "id") != NULL && json_get(line.v, "type") != NULL)
		return message_take(im, line);
	return 0;
}

/* ---- Documents ----------------------------------------------------------- */

static int element_take(import *im, sheaf_str key, value element)
{
	(void)key;
	return message_take(im, element);
}

static int document_session(import *im, document *d)
{
	static const char *const names[] = {"sessionId", "startTime", "summary", "kind",
	                                    "directories"};
	_cleanup_(buf_free) buf text = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	sheaf_str values[COUNT_OF(names)];
	value meta;
	int rc = document_members(d, names, values, COUNT_OF(names), im->arena, im->err);
	if (rc != 0)
		return rc;
	buf_char(&text, '{');
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		if (values[i].ptr == NULL)
			continue;
		if (text.len != 1)
			buf_char(&text, ',');
		buf_json(&text, sheaf_str_of(names[i]));
		buf_char(&text, ':');
		buf_str(&text, values[i]);
	}
	buf_char(&text, '}');
	rc = buf_status(&text, im->err);
	if (rc == 0)
		rc = import_parse(im, buf_view(&text), &meta);
	return rc == 0 ? session_open(im, meta) : rc;
}

static int document_read(import *im)
{
	_cleanup_(document_closep) document *d = NULL;
	sheaf_str key;
	int rc = document_open(&d, im->file.ptr, im->err);
	if (rc == 0)
		rc = document_session(im, d);
	if (rc != 0)
		return rc;
	document_begin(d, 0);
	int more = document_enter(d, im->err);
	while (more == 1 && (more = document_each(d, &key, im->err)) == 1) {
		rc = members_key_is(key, "messages") ? document_pieces(im, d, element_take)
		                                     : document_skip(d, im->err);
		if (rc != 0)
			return rc;
	}
	return more == 0 ? document_finish(im, d, document_size(d)) : more;
}

static const converter gemini_document = {
	.is = {.name = "gemini-cli", .title = "Gemini CLI", .imports = 1},
	.knows = document_knows,
	.begin = gemini_begin,
	.read = document_read,
	.done = gemini_done,
};

const converter convert_gemini_cli = {
	.is = {"gemini-cli", "Gemini CLI", 1, 1, "", "GEMINI_CLI_HOME", "gemini --resume ID"},
	.knows = log_knows,
	.begin = gemini_begin,
	.take = log_take,
	.write = gemini_cli_write,
	.place = gemini_cli_place,
	.done = gemini_done,
	.places = {".gemini/tmp"},
	.also = &gemini_document,
};
