/*
 * Writes a request of OpenAI Chat Completions.
 *
 * The list stands last in the body and nothing in it depends on what follows,
 * so that the same bytes come first in every request of a conversation.
 */
#include "base/err.h"
#include "base/str.h"
#include "render/openai.h"

/* Members that are written here whatever came with a part. */
static const char *const message_names[] = {"format",       "role", "content", "tool_calls",
                                            "tool_call_id", "type", "text",    NULL};
static const char *const call_names[] = {"format", "id", "type", "function", NULL};
static const char *const image_names[] = {"format", "type", "url", NULL};
static const char *const file_names[] = {"format", "type", "file_data", "file_id", NULL};

static void message_open(openai_writer *w, const char *role)
{
	openai_element(w);
	buf_lit(w->out, "\"role\":\"");
	buf_str(w->out, sheaf_str_of(role));
	buf_char(w->out, '"');
}

/* What came with the first text that has anything, at the message itself. */
static void message_close(openai_writer *w, const message *m)
{
	for (size_t i = 0; i < m->count; i++) {
		if (m->blocks[i].kind == SHEAF_PART_TEXT && m->blocks[i].ext.len != 0) {
			openai_ext_write(w->out, m->blocks[i].ext, message_names);
			break;
		}
	}
	buf_char(w->out, '}');
}

/* ---- Content ----------------------------------------------------------------- */

static void text_write(buf *out, sheaf_str text)
{
	buf_lit(out, "{\"type\":\"text\",\"text\":");
	buf_json(out, text);
	buf_char(out, '}');
}

/* Documents have no address in this format. */
static bool attachable(const block *b)
{
	return openai_source(b) &&
	       (b->kind == SHEAF_PART_IMAGE || !str_is(b->part->source_type, "url"));
}

static void attachment_write(openai_writer *w, const block *b)
{
	buf *out = w->out;
	if (!attachable(b)) {
		text_write(out, openai_stand_in(w, b));
		return;
	}
	if (b->kind == SHEAF_PART_IMAGE) {
		buf_lit(out, "{\"type\":\"image_url\",\"image_url\":{\"url\":");
		openai_source_write(out, b);
		openai_ext_write(out, b->ext, image_names);
	} else {
		buf_lit(out, "{\"type\":\"file\",\"file\":{\"file_data\":");
		openai_source_write(out, b);
		if (!openai_ext_has(b->ext, "filename")) {
			buf_lit(out, ",\"filename\":");
			buf_json(out, sheaf_str_of(openai_filename(b)));
		}
		openai_ext_write(out, b->ext, file_names);
	}
	buf_lit(out, "}}");
}

/* One part of a list; false if it has no place in a message of that role. */
static bool part_fits(const message *m, const block *b)
{
	switch (b->kind) {
	case SHEAF_PART_TEXT:
	case SHEAF_PART_IMAGE:
	case SHEAF_PART_DOCUMENT:
		return true;
	case SHEAF_PART_OPAQUE:
		return m->role == ROLE_USER ||
		       (m->role == ROLE_ASSISTANT && str_is(openai_opaque_type(b), "refusal"));
	default:
		return false;
	}
}

static void part_write(openai_writer *w, const message *m, const block *b)
{
	if (b->kind == SHEAF_PART_TEXT)
		text_write(w->out, b->text);
	else if (b->kind == SHEAF_PART_OPAQUE)
		buf_str(w->out, b->part->raw);
	else if (m->role == ROLE_USER)
		attachment_write(w, b);
	else /* only users show images */
		text_write(w->out, openai_stand_in(w, b));
}

/* The parts that fit, as a string if that is all there is to say; false if there are none. */
static bool content_write(openai_writer *w, const message *m)
{
	size_t fitting = 0, texts = 0;
	for (size_t i = 0; i < m->count; i++) {
		const block *b = &m->blocks[i];
		if (part_fits(m, b))
			fitting++;
		else if (b->kind == SHEAF_PART_OPAQUE)
			openai_note(w, SHEAF_NOTE_FOREIGN_PART, openai_opaque_type(b));
		texts += b->kind == SHEAF_PART_TEXT;
	}
	/* A reply is one text, in however many pieces it came. */
	if (texts == fitting && (texts == 1 || (texts > 1 && m->role == ROLE_ASSISTANT))) {
		buf_json(w->out, openai_join(w, m->blocks, m->count, SHEAF_STR("")));
		return true;
	}
	if (fitting == 0) {
		buf_lit(w->out, "null");
		return false;
	}
	for (size_t i = 0, n = 0; i < m->count; i++) {
		if (!part_fits(m, &m->blocks[i]))
			continue;
		buf_char(w->out, n++ == 0 ? '[' : ',');
		part_write(w, m, &m->blocks[i]);
	}
	buf_char(w->out, ']');
	return true;
}

/* ---- Messages ---------------------------------------------------------------- */

static void calls_write(openai_writer *w, const message *m)
{
	buf *out = w->out;
	size_t n = 0;
	for (size_t i = 0; i < m->count; i++) {
		const block *b = &m->blocks[i];
		if (b->kind != SHEAF_PART_TOOL_USE)
			continue;
		if (n++ == 0)
			buf_lit(out, ",\"tool_calls\":[");
		else
			buf_char(out, ',');
		buf_lit(out, "{\"id\":");
		buf_json(out, b->id);
		buf_lit(out, ",\"type\":\"function\",\"function\":{\"name\":");
		buf_json(out, b->name);
		buf_lit(out, ",\"arguments\":");
		buf_json(out, b->input);
		buf_char(out, '}');
		openai_ext_write(out, b->ext, call_names);
		buf_char(out, '}');
	}
	if (n != 0)
		buf_char(out, ']');
}

static bool has_calls(const message *m)
{
	for (size_t i = 0; i < m->count; i++) {
		if (m->blocks[i].kind == SHEAF_PART_TOOL_USE)
			return true;
	}
	return false;
}

/* A message of any role but the tools'. One that nothing is left of is taken back. */
static void message_write(openai_writer *w, const message *m)
{
	static const char *const roles[] = {[ROLE_USER] = "user",
	                                    [ROLE_ASSISTANT] = "assistant",
	                                    [ROLE_SYSTEM] = "system",
	                                    [ROLE_DEVELOPER] = "developer"};
	size_t before = w->out->len;
	message_open(w, roles[m->role]);
	buf_lit(w->out, ",\"content\":");
	bool said = content_write(w, m);
	if (m->role == ROLE_ASSISTANT && has_calls(m)) {
		calls_write(w, m);
		said = true;
	}
	message_close(w, m);
	if (!said) {
		w->out->len = w->out->len > before ? before : w->out->len;
		w->count--;
	}
}

/* ---- Answers of tools -------------------------------------------------------- */

static bool has_attachments(const block *b)
{
	for (size_t i = 0; i < b->part_count; i++) {
		if (b->parts[i].kind != SHEAF_PART_TEXT)
			return true;
	}
	return false;
}

static sheaf_str answer_text(openai_writer *w, const block *b)
{
	sheaf_str text = b->text;
	if (b->part_count != 0)
		text = openai_join(w, b->parts, b->part_count, SHEAF_STR("\n"));
	return text.len == 0 && has_attachments(b) ? SHEAF_STR("(attached to the next message)")
	                                           : text;
}

static void answer_write(openai_writer *w, const block *b)
{
	message_open(w, "tool");
	buf_lit(w->out, ",\"tool_call_id\":");
	buf_json(w->out, b->id);
	buf_lit(w->out, ",\"content\":");
	buf_json(w->out, answer_text(w, b));
	openai_ext_write(w->out, b->ext, message_names);
	buf_char(w->out, '}');
}

/* What an answer shows, for a user's message: the call it belongs to, and the parts. */
static void attachments_write(openai_writer *w, const block *b, bool first)
{
	buf_char(w->out, first ? '[' : ',');
	buf_lit(w->out, "{\"type\":\"text\",\"text\":\"Attached to the answer to ");
	buf_str(w->out, b->id); /* of letters and digits */
	buf_lit(w->out, ":\"}");
	for (size_t i = 0; i < b->part_count; i++) {
		if (b->parts[i].kind == SHEAF_PART_TEXT)
			continue;
		buf_char(w->out, ',');
		attachment_write(w, &b->parts[i]);
	}
	openai_note(w, SHEAF_NOTE_MOVED, b->id);
}

/*
 * Messages of answers that follow each other, and then what they show: it
 * cannot stand between the answers, for they must follow their calls. Returns
 * how many messages that were.
 */
static size_t answers_write(openai_writer *w, const message *m, size_t count)
{
	size_t run = 0, shown = 0;
	for (; run < count && m[run].role == ROLE_TOOL; run++) {
		w->at = &m[run];
		for (size_t i = 0; i < m[run].count; i++)
			answer_write(w, &m[run].blocks[i]);
	}
	for (size_t k = 0; k < run; k++) {
		w->at = &m[k];
		for (size_t i = 0; i < m[k].count; i++) {
			if (!has_attachments(&m[k].blocks[i]))
				continue;
			if (shown == 0) {
				message_open(w, "user");
				buf_lit(w->out, ",\"content\":");
			}
			attachments_write(w, &m[k].blocks[i], shown++ == 0);
		}
	}
	if (shown != 0)
		buf_lit(w->out, "]}");
	return run;
}

/* ---- The body ---------------------------------------------------------------- */

static void options_write(openai_writer *w)
{
	const sheaf_render_options *o = &w->r->o;
	buf *out = w->out;
	if (o->stream && openai_member(w, "stream_options"))
		buf_lit(out, "{\"include_usage\":true}");
	if (o->max_tokens != 0 && openai_member(w, "max_completion_tokens"))
		buf_u64(out, o->max_tokens);
	sheaf_str effort = openai_effort(w->r);
	if (effort.len != 0 && openai_member(w, "reasoning_effort"))
		buf_json(out, effort);
}

int openai_chat_write(rendering *r, buf *out, sheaf_error *err)
{
	openai_writer w = {r, out, NULL, 0, 0};
	openai_head(&w);
	options_write(&w);
	openai_tools(&w, false);
	extra_write(r, out);
	buf_lit(out, ",\"messages\":[");
	sheaf_str system = openai_system(&w);
	if (system.len != 0) {
		message_open(&w, "system");
		buf_lit(out, ",\"content\":");
		buf_json(out, system);
		buf_char(out, '}');
	}
	size_t opening = w.count;
	for (size_t i = 0; i < r->message_count;) {
		w.at = &r->messages[i];
		if (r->messages[i].role == ROLE_TOOL) {
			i += answers_write(&w, &r->messages[i], r->message_count - i);
		} else {
			message_write(&w, &r->messages[i]);
			i++;
		}
	}
	buf_lit(out, "]}");
	if (w.rc != 0)
		return err_nomem(err);
	if (w.count == opening)
		return err_set(err, SHEAF_CONTEXT, "there is nothing to send");
	return buf_status(out, err);
}
