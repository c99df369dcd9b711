/*
 * A head moves on by one record. Most records are taken by their envelope
 * alone; payloads are looked into only for what a head keeps of them.
 *
 * Whatever can fail comes before the first change, so that a head is never
 * left between two records.
 */
#include "entry/head_inside.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "base/utf8.h"
#include "entry/check.h"
#include "entry/members.h"
#include "entry/retention.h"
#include "entry/usage.h"

#define PREVIEW_BYTES 120u

/* What a record changes besides the counts every record changes. */
typedef struct change {
	json_doc **doc;
	bool has_usage;
	bool has_name;
	bool has_metadata;
	uint64_t usage_turn; /* hash of the turn a message's usage belongs to; 0 = none */
	uint64_t ended_turn; /* hash of the turn that ends; 0 = none */
	sheaf_usage usage;
	retention_fact retention;
	shared *name;
	shared *metadata;
	shared *preview;
	bool has_state;
	bool has_app; /* there are app: keys among the changes of state */
	state_set *state;
} change;

static void change_done(change *c)
{
	shared_unref(c->name);
	shared_unref(c->metadata);
	shared_unref(c->preview);
	state_unref(c->state);
}

/* Parses a piece of a body; what does not parse is damage, for the line's crc held. */
static int parse(const json_val **out, sheaf_str text, json_doc **doc, sheaf_error *err)
{
	*out = NULL;
	int rc = json_parse(doc, text, err);
	if (rc == SHEAF_FORMAT)
		return err_set(err, SHEAF_DAMAGED, "a record's body is not JSON");
	if (rc == 0)
		*out = json_root(*doc);
	return rc;
}

/* ---- Messages and turns --------------------------------------------------- */

/* A turn's hash, never 0; 0 for a value that is no string. */
static int turn_hash(uint64_t *out, sheaf_str value, json_doc **doc, sheaf_error *err)
{
	*out = 0;
	if (value.len < 2 || value.ptr[0] != '"')
		return 0;
	sheaf_str turn = {value.ptr + 1, value.len - 2};
	if (memchr(turn.ptr, '\\', turn.len) != NULL) {
		const json_val *parsed;
		int rc = parse(&parsed, value, doc, err);
		if (rc != 0)
			return rc;
		turn = json_string(parsed);
	}
	*out = turns_hash(turn);
	return 0;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The beginning of a text on one line: blanks squeezed, controls dropped. */
static sheaf_str make_preview(char out[PREVIEW_BYTES + 8], sheaf_str text)
{
	size_t len = 0;
	bool space = false;
	for (size_t i = 0; i < text.len && len <= PREVIEW_BYTES + 4; i++) {
		unsigned char c = (unsigned char)text.ptr[i];
		bool c1 = c == 0xc2 && i + 1 < text.len && (unsigned char)text.ptr[i + 1] < 0xa0;
		if (is_space(text.ptr[i])) {
			space = len != 0;
			continue;
		}
		if (c < 0x20 || c == 0x7f || c1) {
			i += c1;
			continue;
		}
		if (space)
			out[len++] = ' ';
		space = false;
		out[len++] = text.ptr[i];
	}
	sheaf_str cut = utf8_cut(str_make(out, len), PREVIEW_BYTES);
	while (cut.len != 0 && cut.ptr[cut.len - 1] == ' ')
		cut.len--;
	return cut;
}

/* The first text in a parsed content. */
static sheaf_str first_text(const json_val *content)
{
	if (json_type_of(content) == JSON_STRING)
		return json_string(content);
	for (json_iter it = json_each(content); json_next(&it);) {
		if (!str_eq(json_string(json_get(it.value, "type")), SHEAF_STR("text")))
			continue;
		const json_val *text = json_get(it.value, "text");
		return json_string(json_type_of(text) == JSON_STRING ? text
		                                                     : json_get(text, "content"));
	}
	return str_make(NULL, 0);
}

static int read_preview(change *c, sheaf_str content, sheaf_error *err)
{
	char room[PREVIEW_BYTES + 8];
	const json_val *parsed;
	int rc = parse(&parsed, content, c->doc, err);
	if (rc != 0)
		return rc;
	sheaf_str preview = make_preview(room, first_text(parsed));
	if (preview.len == 0)
		return 0;
	c->preview = shared_new(preview);
	return c->preview != NULL ? 0 : err_nomem(err);
}

/* What follows a payload walked up to `at`; the whole body if something precedes it. */
static sheaf_str after(sheaf_str body, sheaf_str inside, size_t at)
{
	const char *end = body.ptr + body.len;
	if (inside.ptr == NULL || inside.ptr + inside.len != end)
		return body;
	const char *brace = memchr(inside.ptr + at, '}', inside.len - at);
	return brace != NULL ? str_make(brace + 1, (size_t)(end - brace - 1)) : body;
}

static int read_message(change *c, const sheaf_head *h, sheaf_str body, sheaf_error *err)
{
	sheaf_str key, value, role = {NULL, 0}, content = {NULL, 0}, usage = {NULL, 0};
	sheaf_str inside = usage_payload(body, "message");
	size_t at = 0;
	while (members_next(inside, &at, &key, &value)) {
		if (role.ptr == NULL && members_key_is(key, "role"))
			role = value;
		else if (content.ptr == NULL && members_key_is(key, "content"))
			content = value;
		else if (usage.ptr == NULL && members_key_is(key, "usage"))
			usage = value;
	}
	int rc = 0;
	c->has_usage = usage_read(&c->usage, usage);
	if (c->has_usage)
		rc = turn_hash(&c->usage_turn, members_find(after(body, inside, at), "turn"),
		               c->doc, err);
	if (rc == 0 && h->preview == NULL && content.ptr != NULL &&
	    str_eq(role, SHEAF_STR("\"user\"")) && !str_is(members_find(body, "preamble"), "true"))
		rc = read_preview(c, content, err);
	return rc;
}

static int read_turn_end(change *c, const sheaf_head *h, sheaf_str body, sheaf_error *err)
{
	uint64_t turn;
	sheaf_str inside = usage_payload(body, "turn_end");
	int rc = turn_hash(&turn, members_find(inside, "turn"), c->doc, err);
	/* A turn's usage repeats that of its messages where they have any. */
	if (rc == 0 && (turn == 0 || !turns_had_usage(&h->n.usage_turns, turn)))
		c->has_usage = usage_read(&c->usage, members_find(inside, "usage"));
	c->ended_turn = turn;
	return rc;
}

/* ---- Facts that a head keeps ---------------------------------------------- */

static int read_session_info(change *c, sheaf_str body, sheaf_error *err)
{
	sheaf_str payload = members_find(body, "session_info");
	const json_val *root;
	if (payload.ptr == NULL)
		return 0;
	int rc = parse(&root, payload, c->doc, err);
	if (rc != 0)
		return rc;
	sheaf_str name = json_string(json_get(root, "name"));
	c->has_name = name.ptr != NULL;
	if (name.len != 0 && (c->name = shared_new(utf8_cut(name, SHEAF_NAME_BYTES_MAX))) == NULL)
		return err_nomem(err);
	if (json_type_of(json_get(root, "metadata")) != JSON_OBJECT)
		return 0;
	c->has_metadata = true;
	c->metadata = shared_new(members_find(members_inside(payload), "metadata"));
	return c->metadata != NULL ? 0 : err_nomem(err);
}

/* One that says something else than it may is passed over: no session goes because of it. */
static void read_retention(change *c, const sheaf_head *h, sheaf_str body)
{
	if (h->origin->readonly ||
	    retention_read(&c->retention, members_inside(members_find(body, "retention")), NULL) !=
	            0)
		c->retention = (retention_fact){.has_ttl = false};
}

/*
 * A branch pointer moved, or gone. This is all such a record changes, so it may
 * fail in the middle of nothing.
 */
static int apply_leaf(sheaf_head *h, sheaf_str body, json_doc **doc, sheaf_error *err)
{
	const json_val *root = NULL;
	sheaf_str payload = members_find(body, "leaf");
	int rc = payload.ptr != NULL ? parse(&root, payload, doc, err) : 0;
	if (rc != 0)
		return rc;
	sheaf_str name = json_string(json_get(root, "branch"));
	const json_val *entry = json_get(root, "entry_id");
	sheaf_str id = json_string(entry);
	uint64_t seq = 0;
	if (name.len == 0 || name.len > SHEAF_BRANCH_BYTES_MAX || id.len > SHEAF_ID_BYTES_MAX)
		return err_set(err, SHEAF_DAMAGED, "a leaf names no branch");
	if (entry == NULL) {
		slot *gone = head_slot_find(h, name);
		if (gone != NULL && gone != &h->main)
			head_slot_remove(h, gone);
		return 0;
	}
	if (id.len != 0 && (!json_u64(json_get(root, "entry_seq"), &seq) || seq == 0))
		return err_set(err, SHEAF_DAMAGED, "a leaf names no entry");
	slot *s;
	rc = head_slot(h, name, &s, err);
	if (rc == 0)
		head_slot_set(s, id, seq);
	return rc;
}

/* ---- Applying ------------------------------------------------------------- */

static int read_change(change *c, const sheaf_head *h, int32_t kind, sheaf_str body,
                       sheaf_error *err)
{
	switch (kind) {
	case SHEAF_KIND_MESSAGE:
		return read_message(c, h, body, err);
	case SHEAF_KIND_TURN_END:
		return read_turn_end(c, h, body, err);
	case SHEAF_KIND_SESSION_INFO:
		return read_session_info(c, body, err);
	case SHEAF_KIND_RETENTION:
		read_retention(c, h, body);
		return 0;
	default:
		return 0;
	}
}

static void take_usage(counts *n, const change *c)
{
	if (!c->has_usage)
		return;
	usage_add(&n->usage, &c->usage);
	if (c->usage_turn != 0)
		turns_note_usage(&n->usage_turns, c->usage_turn);
}

/* Moves a text from the change to the head. */
static void take_text(shared **to, shared **from)
{
	shared_unref(*to);
	*to = *from;
	*from = NULL;
}

static void take_retention(counts *n, const retention_fact *r)
{
	if (r->has_ttl)
		n->ttl_us = r->ttl_us;
	if (r->has_grace)
		n->grace_us = r->grace_us;
	if (r->has_pin)
		n->pinned = r->pin;
}

static void take_state(sheaf_head *h, change *c, uint64_t seq)
{
	if (!c->has_state)
		return;
	if (c->has_app)
		h->n.app_seq = seq;
	if (c->state == h->state)
		return;
	h->n.state_seq = seq;
	state_unref(h->state);
	h->state = c->state;
	c->state = NULL;
}

static void take_change(sheaf_head *h, change *c, uint64_t seq)
{
	take_usage(&h->n, c);
	if (c->ended_turn != 0)
		turns_note_end(&h->n.usage_turns, c->ended_turn);
	take_retention(&h->n, &c->retention);
	take_state(h, c, seq);
	if (c->preview != NULL)
		take_text(&h->preview, &c->preview);
	if (c->has_name)
		take_text(&h->name, &c->name);
	if (c->has_metadata)
		take_text(&h->metadata, &c->metadata);
}

int head_apply(sheaf_head *h, int32_t kind, sheaf_str id, sheaf_str branch, sheaf_str body,
               sheaf_str delta, int64_t time_us, uint64_t seq, json_doc **doc, sheaf_error *err)
{
	assert(h->begun && seq == h->n.revision + 1);
	_cleanup_(change_done) change c = {.doc = doc};
	int rc = read_change(&c, h, kind, body, err);
	if (rc == 0 && delta.ptr != NULL) {
		rc = state_apply(&c.state, h->state, delta, &c.has_app, err);
		c.has_state = rc == 0;
	}
	if (rc == 0 && kind == SHEAF_KIND_LEAF)
		rc = apply_leaf(h, body, doc, err);
	if (rc == 0 && !record_kind_is_fact(kind)) {
		slot *s;
		rc = head_slot(h, branch, &s, err);
		if (rc == 0)
			head_slot_set(s, id, seq);
	}
	if (rc != 0)
		return rc;
	take_change(h, &c, seq);
	h->n.revision = seq;
	h->n.records++;
	h->n.modified_us = time_us;
	h->n.messages += kind == SHEAF_KIND_MESSAGE;
	h->n.turns += kind == SHEAF_KIND_TURN_END;
	if (kind == SHEAF_KIND_LABEL)
		h->n.last_label = seq;
	if (kind == SHEAF_KIND_LOST)
		h->n.last_lost = seq;
	return 0;
}
