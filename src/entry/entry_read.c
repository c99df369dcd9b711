/* A scanned line as the public entry: one copy of the line, and views into it. */
#include "entry/record.h"

#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "entry/check.h"
#include "entry/members.h"
#include "entry/message.h"

typedef struct copier {
	arena *a;
	sheaf_str from; /* the line as scanned */
	sheaf_str to;   /* its copy */
	int ok;
	bool looks; /* the copy is the line itself, and strings are the document's */
} copier;

/* The same bytes in the copy; what is not part of the line is copied by itself. */
static sheaf_str moved(copier *c, sheaf_str s)
{
	uintptr_t at = (uintptr_t)s.ptr, first = (uintptr_t)c->from.ptr;
	if (s.ptr == NULL)
		return s;
	if (at >= first && at - first <= c->from.len && s.len <= c->from.len - (at - first))
		return str_make(c->to.ptr + (at - first), s.len);
	return arena_dup(c->a, s, &c->ok);
}

/* What the walk over a body's members finds. */
typedef struct found {
	sheaf_str payload;
	sheaf_str agent;
	sheaf_str turn;
} found;

/* From `at` on; the payload may have been found already. */
static void find_members(found *out, const sheaf_entry *e, size_t at)
{
	sheaf_str key, value;
	while (members_next(e->body, &at, &key, &value)) {
		if (out->payload.ptr == NULL && str_eq(key, e->type))
			out->payload = value;
		else if (out->agent.ptr == NULL && members_key_is(key, "agent"))
			out->agent = value;
		else if (out->turn.ptr == NULL && members_key_is(key, "turn"))
			out->turn = value;
	}
}

/* A string member of the body, which lies in the copy already; not given if it is none. */
static sheaf_str unescaped(copier *c, sheaf_str value)
{
	sheaf_str s;
	if (check_unescape(&s, value, c->a) == SHEAF_NOMEM)
		c->ok = 0;
	return s;
}

static void read_payload(sheaf_entry *out, const json_val *v, sheaf_str bytes, copier *c)
{
	static const struct field {
		int32_t kind;
		const char *name;
		size_t offset;
	} fields[] = {
		{SHEAF_KIND_COMPACTION, "summary", offsetof(sheaf_entry, text)},
		{SHEAF_KIND_COMPACTION, "first_kept_entry_id", offsetof(sheaf_entry, target_id)},
		{SHEAF_KIND_BRANCH_SUMMARY, "summary", offsetof(sheaf_entry, text)},
		{SHEAF_KIND_BRANCH_SUMMARY, "from_id", offsetof(sheaf_entry, target_id)},
		{SHEAF_KIND_LABEL, "label", offsetof(sheaf_entry, text)},
		{SHEAF_KIND_LABEL, "target_id", offsetof(sheaf_entry, target_id)},
		{SHEAF_KIND_SESSION_INFO, "name", offsetof(sheaf_entry, text)},
		{SHEAF_KIND_THINKING_LEVEL, "thinking_level", offsetof(sheaf_entry, text)},
		{SHEAF_KIND_CUSTOM, "custom_type", offsetof(sheaf_entry, text)},
		{SHEAF_KIND_LEAF, "entry_id", offsetof(sheaf_entry, target_id)},
		{SHEAF_KIND_MODEL_CHANGE, "provider", offsetof(sheaf_entry, provider)},
		{SHEAF_KIND_MODEL_CHANGE, "model_id", offsetof(sheaf_entry, model)},
		{SHEAF_KIND_TURN_END, "turn", offsetof(sheaf_entry, turn)},
	};
	for (size_t i = 0; i < COUNT_OF(fields); i++) {
		if (fields[i].kind != out->kind)
			continue;
		sheaf_str value = arena_dup(c->a, json_string(json_get(v, fields[i].name)), &c->ok);
		memcpy((char *)out + fields[i].offset, &value, sizeof(value));
	}
	if (out->kind == SHEAF_KIND_CUSTOM)
		out->data = json_get(v, "data") != NULL
		                    ? members_find(members_inside(bytes), "data")
		                    : arena_dup(c->a, json_string(json_get(v, "data_text")),
		                                &c->ok);
}

/* Kinds whose payload has something to show. */
#define PARSED                                                                                     \
	(SHEAF_KIND_BIT(SHEAF_KIND_MESSAGE) | SHEAF_KIND_BIT(SHEAF_KIND_MODEL_CHANGE) |            \
	 SHEAF_KIND_BIT(SHEAF_KIND_THINKING_LEVEL) | SHEAF_KIND_BIT(SHEAF_KIND_COMPACTION) |       \
	 SHEAF_KIND_BIT(SHEAF_KIND_BRANCH_SUMMARY) | SHEAF_KIND_BIT(SHEAF_KIND_CUSTOM) |           \
	 SHEAF_KIND_BIT(SHEAF_KIND_LABEL) | SHEAF_KIND_BIT(SHEAF_KIND_SESSION_INFO) |              \
	 SHEAF_KIND_BIT(SHEAF_KIND_LEAF) | SHEAF_KIND_BIT(SHEAF_KIND_TURN_END))

static int payload_status(int rc, sheaf_error *err)
{
	return rc == SHEAF_FORMAT ? err_set(err, SHEAF_DAMAGED, "a record's payload is not JSON")
	                          : rc;
}

/*
 * A body nearly always begins with the payload. It is parsed from there, which
 * finds its end, too: a long text is gone through once instead of twice.
 */
static int parse_first(found *out, const sheaf_entry *e, size_t *end, json_doc **doc,
                       sheaf_error *err)
{
	sheaf_str body = e->body;
	size_t at = e->type.len + 3, used;
	*end = 0;
	if ((PARSED & SHEAF_KIND_BIT(e->kind)) == 0 || body.len <= at || body.ptr[0] != '"' ||
	    memcmp(body.ptr + 1, e->type.ptr, e->type.len) != 0 ||
	    memcmp(body.ptr + at - 2, "\":{", 3) != 0)
		return 0;
	int rc = json_parse_first(doc, str_make(body.ptr + at, body.len - at), &used, err);
	if (rc != 0)
		return payload_status(rc, err);
	out->payload = str_make(body.ptr + at, used);
	*end = at + used;
	return 0;
}

/* `parsed`: `doc` holds it already. */
static int parse_payload(sheaf_entry *out, sheaf_str payload, bool parsed, copier *c,
                         json_doc **doc, sheaf_error *err)
{
	if ((PARSED & SHEAF_KIND_BIT(out->kind)) == 0)
		return 0;
	if (payload.ptr == NULL || payload.ptr[0] != '{') {
		/* A foreign fact may lack it; then it says nothing. */
		if (out->seq == 0 && out->kind != SHEAF_KIND_MESSAGE)
			return 0;
		return err_set(err, SHEAF_DAMAGED, "a record lacks its payload");
	}
	int rc = parsed ? 0 : payload_status(json_parse(doc, payload, err), err);
	if (rc != 0)
		return rc;
	if (out->kind != SHEAF_KIND_MESSAGE) {
		read_payload(out, json_root(*doc), payload, c);
		return 0;
	}
	sheaf_message_view *message;
	rc = c->looks ? message_look(&message, json_root(*doc), payload, c->a, err)
	              : message_read_kept(&message, json_root(*doc), payload, c->a, err);
	if (rc == 0)
		out->message = message;
	return rc;
}

/* The envelope; 0 in `time_us` for a foreign time that is none. */
static int copy_envelope(sheaf_entry *out, const record *r, copier *c, sheaf_error *err)
{
	out->kind = r->kind;
	out->seq = r->seq;
	out->line = c->to;
	out->type = moved(c, r->type);
	out->id = moved(c, r->id);
	out->parent_id = record_kind_is_fact(r->kind) ? str_make(NULL, 0) : moved(c, r->parent_id);
	out->timestamp = moved(c, r->timestamp);
	out->branch = r->branch.ptr != NULL ? moved(c, r->branch) : SHEAF_STR("main");
	out->body = moved(c, r->body);
	out->batch_index = r->batch_index;
	out->batch_count = r->batch_count;
	if (!c->ok)
		return err_nomem(err);
	if (!c->looks && !clock_parse(r->timestamp, &out->time_us)) {
		out->time_us = 0;
		if (r->seq != 0)
			return err_set(err, SHEAF_DAMAGED, "a record has no time");
	}
	return 0;
}

static int entry_fill(sheaf_entry *out, const record *r, uint64_t parent_seq, bool parse, copier *c,
                      json_doc **doc, sheaf_error *err)
{
	found in = {0};
	size_t end = 0;
	int rc = copy_envelope(out, r, c, err);
	if (rc == 0 && parse)
		rc = parse_first(&in, out, &end, doc, err);
	if (rc != 0)
		return rc;
	out->parent_seq = parent_seq;
	find_members(&in, out, end);
	out->agent = unescaped(c, in.agent);
	if (out->agent.ptr == NULL)
		out->agent = SHEAF_STR("");
	if (parse) {
		out->turn = unescaped(c, in.turn);
		rc = parse_payload(out, in.payload, end != 0, c, doc, err);
	}
	return rc == 0 && !c->ok ? err_nomem(err) : rc;
}

int entry_read(sheaf_entry *out, const record *r, uint64_t parent_seq, bool parse, arena *a,
               json_doc **doc, sheaf_error *err)
{
	memset(out, 0, sizeof(*out));
	copier c = {.a = a, .from = r->line, .ok = 1};
	c.to = arena_dup(a, r->line, &c.ok);
	return c.ok ? entry_fill(out, r, parent_seq, parse, &c, doc, err) : err_nomem(err);
}

int entry_look(sheaf_entry *out, const record *r, uint64_t parent_seq, arena *a, json_doc **doc,
               sheaf_error *err)
{
	memset(out, 0, sizeof(*out));
	copier c = {.a = a, .from = r->line, .to = r->line, .ok = 1, .looks = true};
	return entry_fill(out, r, parent_seq, true, &c, doc, err);
}
