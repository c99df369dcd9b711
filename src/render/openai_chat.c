/*
 * Writes a request of OpenAI Chat Completions.
 *
 * The list stands last in the body and nothing in it depends on what follows,
 * so that the same bytes come first in every request of a conversation.
 */
#include "base/err.h"
#include "base/str.h"
#include "entry/members.h"
#include "render/openai.h"

/* Members that are written here whatever came with a part. */
static const char *const message_names[] = {"format",        "role", "content", "tool_calls",
                                            "tool_call_id",  "type", "text",    "refusal",
                                            "function_call", NULL};
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
			ext_write(w->out, m->blocks[i].ext, message_names);
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

/* An image, or a document: those come as base64 only. */
static void attachment_write(buf *out, const block *b)
{
	if (b->kind == SHEAF_PART_IMAGE) {
		buf_lit(out, "{\"type\":\"image_url\",\"image_url\":{\"url\":");
		openai_source_write(out, b);
		ext_write(out, b->ext, image_names);
	} else {
		buf_lit(out, "{\"type\":\"file\",\"file\":{\"file_data\":");
		openai_source_write(out, b);
		if (!openai_ext_has(b->ext, "filename"))
			buf_lit(out, ",\"filename\":\"document.pdf\"");
		ext_write(out, b->ext, file_names);
	}
	buf_lit(out, "}}");
}

static void part_write(buf *out, const block *b)
{
	if (b->kind == SHEAF_PART_TEXT)
		text_write(out, b->text);
	else if (b->kind == SHEAF_PART_OPAQUE)
		buf_str(out, b->part->raw);
	else
		attachment_write(out, b);
}

static void content_write(openai_writer *w, const message *m)
{
	if (m->count == 1 && m->blocks[0].kind == SHEAF_PART_TEXT) {
		buf_json(w->out, m->blocks[0].text);
		return;
	}
	for (size_t i = 0; i < m->count; i++) {
		buf_char(w->out, i == 0 ? '[' : ',');
		part_write(w->out, &m->blocks[i]);
	}
	buf_char(w->out, ']');
}

/* ---- Replies ----------------------------------------------------------------- */

/* Whether the model refused in this text. */
static bool is_refusal(const block *b)
{
	return b->ext.len != 0 && str_is(members_find(b->ext, "type"), "\"refusal\"");
}

/*
 * A reply is one text, in however many pieces it came, or one refusal; beside
 * other texts a refusal is a text as well. False if there is neither.
 */
static bool reply_text_write(openai_writer *w, const message *m)
{
	const block *text = NULL;
	size_t texts = 0;
	for (size_t i = 0; i < m->count; i++) {
		const block *b = &m->blocks[i];
		if (b->kind == SHEAF_PART_TEXT && texts++ == 0)
			text = b;
		if (b->kind == SHEAF_PART_OPAQUE) /* sound, or a call that is no function's */
			openai_note(w, SHEAF_NOTE_FOREIGN_PART, openai_opaque_type(b));
	}
	if (texts == 1 && is_refusal(text)) {
		buf_lit(w->out, "[{\"type\":\"refusal\",\"refusal\":");
		buf_json(w->out, text->text);
		buf_lit(w->out, "}]");
	} else if (texts != 0) {
		buf_json(w->out, openai_join(w, m->blocks, m->count, SHEAF_STR("")));
	} else {
		buf_lit(w->out, "null");
	}
	return texts != 0;
}

/* Returns whether there are any. */
static bool calls_write(openai_writer *w, const message *m)
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
		ext_write(out, b->ext, call_names);
		buf_char(out, '}');
	}
	if (n != 0)
		buf_char(out, ']');
	return n != 0;
}

/* Thinking that a compatible server showed, under the name it has there. OpenAI shows none. */
static void thinking_write(openai_writer *w, const message *m)
{
	static const char *const names[] = {"\"reasoning_content\"", "\"reasoning\""};
	for (size_t i = 0; i < m->count; i++) {
		const block *b = &m->blocks[i];
		if (b->kind != SHEAF_PART_THINKING)
			continue;
		sheaf_str member = members_find(b->ext, "member");
		if (!str_is(member, names[0]) && !str_is(member, names[1]))
			continue;
		buf_char(w->out, ',');
		buf_str(w->out, member);
		buf_char(w->out, ':');
		buf_json(w->out, b->text);
		return; /* a message has one */
	}
}

/* A reply that nothing is left of is taken back. */
static void reply_write(openai_writer *w, const message *m)
{
	size_t before = w->out->len;
	message_open(w, "assistant");
	buf_lit(w->out, ",\"content\":");
	bool said = reply_text_write(w, m);
	thinking_write(w, m);
	bool calls = calls_write(w, m);
	message_close(w, m);
	if (!said && !calls) {
		w->out->len = w->out->len > before ? before : w->out->len;
		w->count--;
	}
}

/* ---- The others -------------------------------------------------------------- */

/* Answers hold text only; what else they had follows as a message of the user's. */
static void answer_write(openai_writer *w, const block *b)
{
	message_open(w, "tool");
	buf_lit(w->out, ",\"tool_call_id\":");
	buf_json(w->out, b->id);
	buf_lit(w->out, ",\"content\":");
	buf_json(w->out, b->part_count == 0
	                         ? b->text
	                         : openai_join(w, b->parts, b->part_count, SHEAF_STR("\n")));
	ext_write(w->out, b->ext, message_names);
	buf_char(w->out, '}');
}

static void message_write(openai_writer *w, const message *m)
{
	switch (m->role) {
	case ROLE_ASSISTANT:
		reply_write(w, m);
		return;
	case ROLE_TOOL:
		for (size_t i = 0; i < m->count; i++)
			answer_write(w, &m->blocks[i]);
		return;
	case ROLE_USER:
		message_open(w, "user");
		break;
	case ROLE_SYSTEM:
		message_open(w, "system");
		break;
	case ROLE_DEVELOPER:
		message_open(w, "developer");
		break;
	}
	buf_lit(w->out, ",\"content\":");
	content_write(w, m);
	message_close(w, m);
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
	extra_write(r, out, "messages");
	buf_lit(out, ",\"messages\":[");
	sheaf_str system = openai_system(&w);
	if (system.len != 0) {
		message_open(&w, "system");
		buf_lit(out, ",\"content\":");
		buf_json(out, system);
		buf_char(out, '}');
	}
	size_t opening = w.count;
	for (size_t i = 0; i < r->message_count; i++) {
		w.at = &r->messages[i];
		message_write(&w, w.at);
	}
	buf_lit(out, "]}");
	if (w.rc != 0)
		return err_nomem(err);
	if (w.count == opening)
		return err_set(err, SHEAF_CONTEXT, "there is nothing to send");
	return buf_status(out, err);
}
