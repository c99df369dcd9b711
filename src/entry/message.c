/*
 * The message builder: writes the JSON of a message part by part.
 *
 * The text is closed again after every call ("]", what is known of the reply,
 * "}"), and the next call writes over that end. So a finished message needs no
 * further step, and the same content gives the same bytes in whatever order
 * the calls about the reply came.
 */
#include "entry/message.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "entry/members.h"

/* How deep a value in a part's payload stands: record, message, content, part, payload. */
#define PAYLOAD_DEPTH 5u
/* What most messages need. */
#define JSON_ROOM 480u
/* A part of a tool result stands below that: payload, content, part. */
#define RESULT_DEPTH 3u

/* What may still be put on the part that was just written. */
enum {
	TAKES_NOTHING = 0,
	TAKES_EXT = 1,
	TAKES_SIGNATURE = 2
};

enum {
	TAIL_PROVIDER,
	TAIL_MODEL,
	TAIL_RESPONSE_ID,
	TAIL_STOP_REASON,
	TAIL_USAGE,
	TAIL_COUNT
};

struct sheaf_message {
	buf json;
	size_t open;        /* where the content ends: the next part goes here */
	size_t parts;       /* in the list that is open */
	size_t outer_parts; /* of the content, while a tool result is open */
	size_t mended;
	bool in_result; /* a tool result is open */
	bool fixed;     /* made from JSON: nothing can be added */
	bool mend;
	int result_is_error;
	int takes;  /* TAKES_*, of the last part */
	int status; /* the first failure; `failure` has the rest of it */
	buf tail[TAIL_COUNT];
	sheaf_error failure;
};

const char *const message_roles[] = {SHEAF_ROLE_USER,
                                     SHEAF_ROLE_ASSISTANT,
                                     SHEAF_ROLE_TOOL,
                                     SHEAF_ROLE_SYSTEM,
                                     SHEAF_ROLE_DEVELOPER,
                                     SHEAF_ROLE_BASH,
                                     SHEAF_ROLE_CUSTOM,
                                     SHEAF_ROLE_BRANCH_SUMMARY,
                                     SHEAF_ROLE_COMPACTION_SUMMARY,
                                     NULL};

bool message_role_known(sheaf_str role)
{
	for (size_t i = 0; role.len != 0 && message_roles[i] != NULL; i++) {
		if (str_is(role, message_roles[i]))
			return true;
	}
	return false;
}

static int fail(sheaf_message *m, int code, const char *why)
{
	if (m->status == 0)
		m->status = err_set(&m->failure, code, "%s", why);
	return m->status;
}

/* Takes over what a buffer ran into. */
static int settle(sheaf_message *m, const buf *b)
{
	if (m->status == 0 && b->status != 0)
		m->status = buf_status(b, &m->failure);
	return m->status;
}

static sheaf_message *message_alloc(void)
{
	sheaf_message *m = mem_alloc(sizeof(*m));
	if (m == NULL)
		return NULL;
	/* Without the failure, which is filled whole when there is one. */
	memset(m, 0, offsetof(sheaf_message, failure));
	m->json.max = SHEAF_RECORD_BYTES_MAX;
	for (size_t i = 0; i < TAIL_COUNT; i++)
		m->tail[i].max = SHEAF_RECORD_BYTES_MAX;
	return m;
}

static int close_json(sheaf_message *m)
{
	m->open = m->json.len;
	if (!m->in_result) {
		buf_char(&m->json, ']');
		for (size_t i = 0; i < TAIL_COUNT; i++)
			buf_str(&m->json, buf_view(&m->tail[i]));
		buf_char(&m->json, '}');
	}
	return settle(m, &m->json);
}

sheaf_message *sheaf_message_new(const char *role)
{
	sheaf_message *m = message_alloc();
	if (m == NULL)
		return NULL;
	sheaf_str known = sheaf_str_of(role);
	if (!message_role_known(known)) {
		(void)fail(m, SHEAF_INVALID, "a message has an unknown role");
		return m;
	}
	(void)buf_reserve(&m->json, JSON_ROOM);
	buf_lit(&m->json, "{\"role\":\"");
	buf_str(&m->json, known);
	buf_lit(&m->json, "\",\"content\":[");
	(void)close_json(m);
	return m;
}

void sheaf_message_free(sheaf_message *message)
{
	if (message == NULL)
		return;
	buf_free(&message->json);
	for (size_t i = 0; i < TAIL_COUNT; i++)
		buf_free(&message->tail[i]);
	mem_free(message);
}

static int check_shape(const json_val *root, sheaf_error *err)
{
	if (!message_role_known(json_string(json_get(root, "role"))))
		return err_set(err, SHEAF_INVALID, "a message has an unknown role");
	json_type content = json_type_of(json_get(root, "content"));
	if (content != JSON_ARRAY && content != JSON_STRING)
		return err_set(err, SHEAF_INVALID,
		               "a message's content is neither array nor string");
	return 0;
}

static int check_json(sheaf_str json, sheaf_error *err)
{
	if (json.len > SHEAF_RECORD_BYTES_MAX)
		return err_set(err, SHEAF_TOO_LARGE, "more than %zu bytes", SHEAF_RECORD_BYTES_MAX);
	int rc = json_check(json, JSON_OBJECT, err);
	if (rc != 0)
		return rc;
	if (members_depth(json) + 1 > SHEAF_DEPTH_MAX)
		return err_set(err, SHEAF_LIMIT, "a record would be nested deeper than %u",
		               SHEAF_DEPTH_MAX);
	_cleanup_(json_freep) json_doc *doc = NULL;
	rc = json_parse(&doc, json, err);
	return rc == 0 ? check_shape(json_root(doc), err) : rc;
}

int sheaf_message_from_json(sheaf_message **out, sheaf_str json, sheaf_error *err)
{
	if (out == NULL)
		return err_set(err, SHEAF_INVALID, "no place for the message");
	int rc = check_json(json, err);
	if (rc != 0)
		return rc;
	sheaf_message *m = message_alloc();
	if (m == NULL)
		return err_nomem(err);
	m->fixed = true;
	buf_str(&m->json, json);
	rc = buf_status(&m->json, err);
	if (rc != 0)
		sheaf_message_free(m);
	else
		*out = m;
	return rc;
}

void sheaf_message_mend_text(sheaf_message *message, int on)
{
	if (message != NULL)
		message->mend = on != 0;
}

size_t sheaf_message_mended(const sheaf_message *message)
{
	return message != NULL ? message->mended : 0;
}

int message_finish(const sheaf_message *m, sheaf_str *json, sheaf_error *err)
{
	if (m == NULL)
		return err_nomem(err);
	if (m->status != 0) {
		if (err != NULL)
			*err = m->failure;
		return m->status;
	}
	if (m->in_result)
		return err_set(err, SHEAF_INVALID, "a tool result was begun and not ended");
	*json = buf_view(&m->json);
	return 0;
}

sheaf_str sheaf_message_json(sheaf_message *message)
{
	sheaf_str json = {NULL, 0};
	return message_finish(message, &json, NULL) == 0 ? json : (sheaf_str){NULL, 0};
}

/* ---- Pieces of parts ------------------------------------------------------ */

/* The text as a JSON string, mended if that is on. */
static void put_text(sheaf_message *m, buf *out, sheaf_str text)
{
	if (utf8_valid(text)) {
		buf_json(out, text);
		return;
	}
	if (!m->mend) {
		(void)fail(m, SHEAF_INVALID, "text is not valid UTF-8");
		return;
	}
	_cleanup_(buf_free) buf mended = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	m->mended += utf8_mend(&mended, text);
	if (settle(m, &mended) == 0)
		buf_json(out, buf_view(&mended));
}

/* `before` is all that precedes the value, e.g. ,"signature": */
#define put_member(m, before, text)                                                                \
	do {                                                                                       \
		buf_lit(&(m)->json, before);                                                       \
		put_text((m), &(m)->json, (text));                                                 \
	} while (0)

/* The same unless the text was not given. */
#define put_optional(m, before, text)                                                              \
	do {                                                                                       \
		if ((text).ptr != NULL)                                                            \
			put_member((m), before, (text));                                           \
	} while (0)

/* Whether JSON can stand in a payload and come back byte for byte. */
static int embeddable(sheaf_str json, bool *yes, sheaf_error *err)
{
	*yes = false;
	/* Blanks around a value are not part of it, so they would be lost. */
	if (json.len == 0 || json.ptr[0] == ' ' || json.ptr[json.len - 1] == ' ')
		return 0;
	int rc = json_check(json, JSON_NONE, err);
	if (rc == SHEAF_NOMEM)
		return rc;
	*yes = rc == 0 && (json.len <= SHEAF_DEPTH_MAX ||
	                   members_depth(json) + PAYLOAD_DEPTH <= SHEAF_DEPTH_MAX);
	return 0;
}

/*
 * `"name":value`, or `"name_text":"…"` for what must be kept as a string. With
 * `json_only` that must be JSON too.
 */
static int put_json(sheaf_message *m, const char *name, sheaf_str value, bool json_only)
{
	_cleanup_(buf_free) buf mended = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	if (!utf8_valid(value)) {
		if (!m->mend)
			return fail(m, SHEAF_INVALID, "JSON in a part is not valid UTF-8");
		m->mended += utf8_mend(&mended, value);
		if (settle(m, &mended) != 0)
			return m->status;
		value = buf_view(&mended);
	}
	bool embed;
	int rc = embeddable(value, &embed, NULL);
	if (rc == 0 && !embed && json_only) {
		_cleanup_(json_freep) json_doc *doc = NULL;
		rc = json_parse(&doc, value, NULL);
	}
	if (rc != 0)
		return fail(m, rc == SHEAF_NOMEM ? rc : SHEAF_INVALID,
		            rc == SHEAF_NOMEM ? sheaf_code_text(rc) : "an opaque part is not JSON");
	buf_char(&m->json, '"');
	buf_add(&m->json, name, strlen(name));
	if (embed) {
		buf_lit(&m->json, "\":");
		buf_str(&m->json, value);
	} else {
		buf_lit(&m->json, "_text\":");
		buf_json(&m->json, value);
	}
	return 0;
}

static bool part_begin(sheaf_message *m)
{
	if (m == NULL || m->status != 0)
		return false;
	if (m->fixed) {
		(void)fail(m, SHEAF_INVALID, "a message made from JSON takes no more parts");
		return false;
	}
	m->json.len = m->open;
	if (m->parts++ != 0)
		buf_char(&m->json, ',');
	return true;
}

static int part_end(sheaf_message *m, int takes)
{
	if (settle(m, &m->json) != 0)
		return m->status;
	m->takes = takes;
	return close_json(m);
}

static int status_of(const sheaf_message *m)
{
	return m != NULL ? m->status : SHEAF_NOMEM;
}

/* Parts that cannot stand in a tool result. */
static bool outer_begin(sheaf_message *m)
{
	if (m != NULL && m->in_result) {
		(void)fail(m, SHEAF_INVALID, "a tool result holds only text, images and documents");
		return false;
	}
	return part_begin(m);
}

/* ---- Parts ---------------------------------------------------------------- */

int sheaf_message_text(sheaf_message *message, sheaf_str text)
{
	if (!part_begin(message))
		return status_of(message);
	put_member(message, "{\"type\":\"text\",\"text\":{\"content\":", text);
	buf_lit(&message->json, "}}");
	return part_end(message, TAKES_EXT | TAKES_SIGNATURE);
}

int sheaf_message_thinking(sheaf_message *message, sheaf_str text, sheaf_str signature,
                           int redacted)
{
	if (!outer_begin(message))
		return status_of(message);
	put_member(message, "{\"type\":\"thinking\",\"thinking\":{\"text\":", text);
	put_optional(message, ",\"signature\":", signature);
	if (redacted)
		buf_lit(&message->json, ",\"redacted\":true");
	buf_lit(&message->json, "}}");
	return part_end(message, TAKES_EXT);
}

static int put_source(sheaf_message *m, sheaf_str source_type, sheaf_str media_type, sheaf_str data)
{
	if (!str_eq(source_type, SHEAF_STR("base64")) && !str_eq(source_type, SHEAF_STR("url")))
		return fail(m, SHEAF_INVALID, "a source is neither base64 nor url");
	put_member(m, "{\"source\":{\"type\":", source_type);
	put_optional(m, ",\"media_type\":", media_type);
	put_member(m, ",\"data\":", data);
	buf_lit(&m->json, "}}}");
	return part_end(m, TAKES_EXT);
}

int sheaf_message_image(sheaf_message *message, sheaf_str source_type, sheaf_str media_type,
                        sheaf_str data)
{
	if (!part_begin(message))
		return status_of(message);
	buf_lit(&message->json, "{\"type\":\"image\",\"image\":");
	return put_source(message, source_type, media_type, data);
}

int sheaf_message_document(sheaf_message *message, sheaf_str source_type, sheaf_str media_type,
                           sheaf_str data)
{
	if (!part_begin(message))
		return status_of(message);
	buf_lit(&message->json, "{\"type\":\"document\",\"document\":");
	return put_source(message, source_type, media_type, data);
}

int sheaf_message_tool_use(sheaf_message *message, sheaf_str id, sheaf_str name, sheaf_str input)
{
	if (!outer_begin(message))
		return status_of(message);
	put_member(message, "{\"type\":\"tool_use\",\"tool_use\":{\"id\":", id);
	put_member(message, ",\"name\":", name);
	buf_char(&message->json, ',');
	(void)put_json(message, "input", input.ptr != NULL ? input : SHEAF_STR("{}"), false);
	buf_lit(&message->json, "}}");
	return part_end(message, TAKES_EXT | TAKES_SIGNATURE);
}

static void put_result_head(sheaf_message *m, sheaf_str tool_use_id, sheaf_str tool_name)
{
	put_member(m, "{\"type\":\"tool_result\",\"tool_result\":{\"tool_use_id\":", tool_use_id);
	put_optional(m, ",\"tool_name\":", tool_name);
	buf_lit(&m->json, ",\"content\":");
}

static void put_result_end(sheaf_message *m, int is_error)
{
	if (is_error >= 0) {
		buf_lit(&m->json, ",\"is_error\":");
		if (is_error)
			buf_lit(&m->json, "true");
		else
			buf_lit(&m->json, "false");
	}
	buf_lit(&m->json, "}}");
}

int sheaf_message_tool_result(sheaf_message *message, sheaf_str tool_use_id, sheaf_str tool_name,
                              sheaf_str text, int is_error)
{
	if (!outer_begin(message))
		return status_of(message);
	put_result_head(message, tool_use_id, tool_name);
	put_text(message, &message->json, text);
	put_result_end(message, is_error);
	return part_end(message, TAKES_EXT);
}

int sheaf_message_tool_result_begin(sheaf_message *message, sheaf_str tool_use_id,
                                    sheaf_str tool_name, int is_error)
{
	if (!outer_begin(message))
		return status_of(message);
	put_result_head(message, tool_use_id, tool_name);
	buf_char(&message->json, '[');
	message->in_result = true;
	message->result_is_error = is_error;
	message->outer_parts = message->parts;
	message->parts = 0;
	return part_end(message, TAKES_NOTHING);
}

int sheaf_message_tool_result_end(sheaf_message *message)
{
	if (status_of(message) != 0)
		return status_of(message);
	if (!message->in_result)
		return fail(message, SHEAF_INVALID, "a tool result was ended that was not begun");
	buf_char(&message->json, ']');
	put_result_end(message, message->result_is_error);
	message->in_result = false;
	message->parts = message->outer_parts;
	return part_end(message, TAKES_EXT);
}

int sheaf_message_opaque(sheaf_message *message, sheaf_str provider, sheaf_str raw)
{
	if (!outer_begin(message))
		return status_of(message);
	put_member(message, "{\"type\":\"opaque\",\"opaque\":{\"provider\":", provider);
	buf_char(&message->json, ',');
	(void)put_json(message, "raw", raw, true);
	buf_lit(&message->json, "}}");
	return part_end(message, TAKES_NOTHING);
}

/* Takes the braces of payload and part away again, for one more member. */
static void part_reopen(sheaf_message *m)
{
	m->json.len = m->open - 2;
}

int sheaf_message_signature(sheaf_message *message, sheaf_str signature)
{
	if (status_of(message) != 0)
		return status_of(message);
	if ((message->takes & TAKES_SIGNATURE) == 0)
		return fail(message, SHEAF_INVALID,
		            "only a text or a tool_use without a signature takes one");
	part_reopen(message);
	put_member(message, ",\"signature\":", signature);
	buf_lit(&message->json, "}}");
	return part_end(message, message->takes & ~TAKES_SIGNATURE);
}

/* Whether an object can be a part's `ext`. */
static int check_ext(const sheaf_message *m, sheaf_str json, sheaf_error *err)
{
	int rc = json_check(json, JSON_OBJECT, err);
	size_t above = PAYLOAD_DEPTH + (m->in_result ? RESULT_DEPTH : 0);
	if (rc == 0 && members_depth(json) + above > SHEAF_DEPTH_MAX)
		rc = err_set(err, SHEAF_LIMIT, "a record would be nested deeper than %u",
		             SHEAF_DEPTH_MAX);
	if (rc == 0 && members_find(members_inside(members_trim(json)), "format").ptr != NULL)
		rc = err_set(err, SHEAF_INVALID, "members of a format's own name no format");
	return rc;
}

int sheaf_message_ext(sheaf_message *message, sheaf_str format, sheaf_str members)
{
	if (status_of(message) != 0)
		return status_of(message);
	if ((message->takes & TAKES_EXT) == 0)
		return fail(
			message, SHEAF_INVALID,
			"only the last part, if it is not opaque, takes a format's members once");
	sheaf_error why;
	int rc = check_ext(message, members, &why);
	if (rc != 0)
		return fail(message, rc, why.message);
	sheaf_str inside = members_trim(members_inside(members_trim(members)));
	part_reopen(message);
	put_member(message, ",\"ext\":{\"format\":", format);
	if (inside.len != 0)
		buf_char(&message->json, ',');
	buf_str(&message->json, inside);
	buf_lit(&message->json, "}}}");
	return part_end(message, message->takes & ~TAKES_EXT);
}

/* ---- What is known of a reply --------------------------------------------- */

static bool tail_begin(sheaf_message *m, size_t which)
{
	if (m == NULL || m->status != 0)
		return false;
	if (m->fixed) {
		(void)fail(m, SHEAF_INVALID, "a message made from JSON cannot be changed");
		return false;
	}
	buf_reset(&m->tail[which]);
	return true;
}

static int tail_end(sheaf_message *m, size_t which)
{
	if (settle(m, &m->tail[which]) != 0)
		return m->status;
	m->json.len = m->open;
	return close_json(m);
}

static int tail_text(sheaf_message *m, size_t which, const char *name, sheaf_str text)
{
	if (!tail_begin(m, which))
		return status_of(m);
	/* Not given takes an earlier one away. */
	if (text.ptr != NULL) {
		buf_lit(&m->tail[which], ",\"");
		buf_add(&m->tail[which], name, strlen(name));
		buf_lit(&m->tail[which], "\":");
		put_text(m, &m->tail[which], text);
	}
	return tail_end(m, which);
}

int sheaf_message_provider(sheaf_message *message, sheaf_str provider)
{
	return tail_text(message, TAIL_PROVIDER, "provider", provider);
}

int sheaf_message_model(sheaf_message *message, sheaf_str model)
{
	return tail_text(message, TAIL_MODEL, "model", model);
}

int sheaf_message_response_id(sheaf_message *message, sheaf_str response_id)
{
	return tail_text(message, TAIL_RESPONSE_ID, "response_id", response_id);
}

int sheaf_message_stop_reason(sheaf_message *message, sheaf_str stop_reason)
{
	return tail_text(message, TAIL_STOP_REASON, "stop_reason", stop_reason);
}

static void put_count(buf *out, const char *name, uint64_t value, bool always)
{
	if (value == 0 && !always)
		return;
	if (out->len != 0 && out->ptr[out->len - 1] != '{')
		buf_char(out, ',');
	buf_char(out, '"');
	buf_add(out, name, strlen(name));
	buf_lit(out, "\":");
	buf_u64(out, value);
}

int sheaf_message_usage(sheaf_message *message, const sheaf_usage *usage)
{
	if (!tail_begin(message, TAIL_USAGE))
		return status_of(message);
	buf *out = &message->tail[TAIL_USAGE];
	buf_lit(out, ",\"usage\":{");
	if (usage == NULL)
		buf_reset(out);
	else if (out->status == 0) {
		put_count(out, "input", usage->input, true);
		put_count(out, "cache_read", usage->cache_read, false);
		put_count(out, "cache_write_5m", usage->cache_write_5m, false);
		put_count(out, "cache_write_1h", usage->cache_write_1h, false);
		put_count(out, "output", usage->output, true);
		put_count(out, "reasoning", usage->reasoning, false);
		buf_char(out, '}');
	}
	return tail_end(message, TAIL_USAGE);
}
