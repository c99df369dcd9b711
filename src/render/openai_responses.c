/*
 * Writes a request of OpenAI Responses that keeps nothing on the server.
 *
 * A message of ours is one or more items there. Those of one reply belong
 * together: an item that comes back under its id wants the reasoning that led
 * to it, and reasoning wants an item after it. So where reasoning is left out,
 * the items of its reply go without their ids, and nothing is missed.
 */
#include "base/err.h"
#include "base/json.h"
#include "base/map.h"
#include "base/str.h"
#include "entry/members.h"
#include "render/openai.h"

typedef struct responses {
	openai_writer w;
	map ids;       /* of items, as they are spelled: each may stand in a request once */
	bool *paired;  /* of each opaque block, in order: it has what it needs beside it */
	size_t opaque; /* such blocks so far */
	bool bare;     /* items of this reply go without ids */
	bool open;     /* a message item is, inside its content */
	/* Reasoning that nothing has followed yet: where it begins, and the elements before it. */
	size_t tail, tail_count;
	bool in_tail;
	size_t passed; /* items of the context that have been gone by */
} responses;

/* Members that are written here whatever came with a part. */
static const char *const item_names[] = {"status", "phase", NULL};
static const char *const bare_names[] = {"phase", NULL};
static const char *const part_names[] = {"format", "id",   "phase",   "status", "role",
                                         "type",   "text", "refusal", NULL};
static const char *const call_names[] = {"format",  "phase", "id",        "status", "type",
                                         "call_id", "name",  "arguments", NULL};
static const char *const answer_names[] = {"format", "phase",   "id",     "status",
                                           "type",   "call_id", "output", NULL};
static const char *const reasoning_names[] = {
	"format", "phase", "id", "status", "type", "summary", "encrypted_content", NULL};
static const char *const image_names[] = {"format", "type", "image_url", "file_id", NULL};
static const char *const file_names[] = {"format",   "type",    "file_data",
                                         "file_url", "file_id", NULL};

/* ---- Items ------------------------------------------------------------------- */

#define ITEM_ID_MAX 64

static bool is_item_id(sheaf_str value)
{
	if (value.len < 3 || value.len > ITEM_ID_MAX + 2 || value.ptr[0] != '"')
		return false;
	for (size_t i = 1; i < value.len - 1; i++) {
		char c = value.ptr[i];
		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-'))
			return false;
	}
	return true;
}

/* Whether an id is good and new; then it is used up. */
static bool take_id(responses *s, sheaf_str value)
{
	uint64_t seen;
	if (!is_item_id(value) || map_get(&s->ids, value, &seen))
		return false;
	if (map_set(&s->ids, value, 1) != 0)
		s->w.rc = SHEAF_NOMEM;
	return true;
}

/* The id of an item and what else its format says of it. */
static void item_ext(responses *s, sheaf_str ext)
{
	buf *out = s->w.out;
	if (ext.len == 0)
		return;
	sheaf_str id = members_find(ext, "id");
	if (!s->bare && id.ptr != NULL && take_id(s, id)) {
		buf_lit(out, ",\"id\":");
		buf_str(out, id);
	}
	openai_ext_only(out, ext, s->bare ? bare_names : item_names);
}

static void item_open(responses *s, const char *type)
{
	s->in_tail = false;
	openai_element(&s->w);
	buf_lit(s->w.out, "\"type\":\"");
	buf_str(s->w.out, sheaf_str_of(type));
	buf_char(s->w.out, '"');
}

static void content_close(responses *s)
{
	if (s->open)
		buf_lit(s->w.out, "]}");
	s->open = false;
}

/* The next part of the message item that is open; `ext` is looked at where one begins. */
static void content_next(responses *s, const message *m, sheaf_str ext)
{
	static const char *const roles[] = {[ROLE_USER] = "user",
	                                    [ROLE_ASSISTANT] = "assistant",
	                                    [ROLE_SYSTEM] = "system",
	                                    [ROLE_DEVELOPER] = "developer"};
	/* A reply may have several messages, each with its id. */
	if (m->role == ROLE_ASSISTANT && openai_ext_has(ext, "id"))
		content_close(s);
	if (s->open) {
		buf_char(s->w.out, ',');
		return;
	}
	item_open(s, "message");
	buf_lit(s->w.out, ",\"role\":\"");
	buf_str(s->w.out, sheaf_str_of(roles[m->role]));
	buf_char(s->w.out, '"');
	item_ext(s, ext);
	buf_lit(s->w.out, ",\"content\":[");
	s->open = true;
}

/* ---- Parts ------------------------------------------------------------------- */

static void text_write(buf *out, const char *type, sheaf_str text, sheaf_str ext)
{
	bool refusal = strcmp(type, "output_text") == 0 && ext.len != 0 &&
	               str_is(members_find(ext, "type"), "\"refusal\"");
	buf_lit(out, "{\"type\":\"");
	buf_str(out, sheaf_str_of(refusal ? "refusal" : type));
	buf_lit(out, "\",\"");
	buf_str(out, sheaf_str_of(refusal ? "refusal" : "text"));
	buf_lit(out, "\":");
	buf_json(out, text);
	ext_write(out, ext, part_names);
	buf_char(out, '}');
}

static void attachment_write(buf *out, const block *b)
{
	if (b->kind == SHEAF_PART_IMAGE) {
		buf_lit(out, "{\"type\":\"input_image\",\"image_url\":");
		openai_source_write(out, b);
		ext_write(out, b->ext, image_names);
		buf_char(out, '}');
		return;
	}
	bool url = str_is(b->part->source_type, "url");
	buf_lit(out, "{\"type\":\"input_file\"");
	if (url)
		buf_lit(out, ",\"file_url\":");
	else
		buf_lit(out, ",\"file_data\":");
	openai_source_write(out, b);
	if (!url && !openai_ext_has(b->ext, "filename"))
		buf_lit(out, ",\"filename\":\"document.pdf\"");
	ext_write(out, b->ext, file_names);
	buf_char(out, '}');
}

static void content_write(responses *s, const message *m, const block *b)
{
	bool text = b->kind == SHEAF_PART_TEXT;
	content_next(s, m, text ? b->ext : (sheaf_str){NULL, 0});
	if (text)
		text_write(s->w.out, m->role == ROLE_ASSISTANT ? "output_text" : "input_text",
		           b->text, b->ext);
	else
		attachment_write(s->w.out, b);
}

/* ---- Opaque items ------------------------------------------------------------ */

typedef enum opaque_kind {
	OPAQUE_NOTHING, /* no type, or reasoning that cannot be read again */
	OPAQUE_PART,    /* belongs into a message's content */
	OPAQUE_ITEM,
	OPAQUE_CALL,  /* an item that must be answered … */
	OPAQUE_ANSWER /* … and the answer */
} opaque_kind;

static bool ends_in(sheaf_str s, const char *tail)
{
	size_t len = strlen(tail);
	return s.len >= len && memcmp(s.ptr + s.len - len, tail, len) == 0;
}

static opaque_kind opaque_kind_of(sheaf_str type)
{
	static const char *const calls[] = {"custom_tool_call", "local_shell_call",
	                                    "shell_call",       "apply_patch_call",
	                                    "computer_call",    "function_call"};
	if (type.len == 0 || str_is(type, "reasoning"))
		return OPAQUE_NOTHING;
	if (str_is(type, "refusal") || str_starts(type, "input_") || str_starts(type, "output_"))
		return OPAQUE_PART;
	for (size_t i = 0; i < COUNT_OF(calls); i++) {
		if (str_is(type, calls[i]))
			return OPAQUE_CALL;
		if (ends_in(type, "_output") && str_starts(type, calls[i]) &&
		    type.len == strlen(calls[i]) + sizeof("_output") - 1)
			return OPAQUE_ANSWER;
	}
	return OPAQUE_ITEM;
}

/* What a call and its answer have in common. An answer of a local shell has it as its id. */
static sheaf_str pair_key(const block *b, opaque_kind kind)
{
	sheaf_str raw = members_trim(b->part->raw);
	sheaf_str key = json_member_bytes(raw, "call_id");
	if (key.ptr == NULL && kind == OPAQUE_ANSWER)
		key = json_member_bytes(raw, "id");
	if (key.len < 3 || key.ptr[0] != '"')
		return (sheaf_str){NULL, 0};
	return str_make(key.ptr + 1, key.len - 2);
}

/* What is known of a call id, other than the number of the opaque call that waits with it. */
#define PAIR_USED UINT64_MAX

typedef struct pairing {
	responses *s;
	map waiting;  /* call ids */
	size_t *turn; /* of each opaque block that is a call */
	size_t now;   /* so many times somebody has said something */
	size_t at;
} pairing;

static void pair_set(pairing *p, sheaf_str key, uint64_t value)
{
	if (key.len != 0 && map_set(&p->waiting, key, value) != 0)
		p->s->w.rc = SHEAF_NOMEM;
}

/*
 * An answer belongs to the call before it with its id, if nobody has said
 * anything in between: one that comes later must not bring back a call that
 * requests have been sent without.
 */
static void pair_opaque(pairing *p, const block *b)
{
	opaque_kind kind = opaque_kind_of(openai_opaque_type(b));
	bool *paired = p->s->paired;
	size_t at = p->at++;
	uint64_t call = PAIR_USED;
	if (kind != OPAQUE_CALL && kind != OPAQUE_ANSWER) {
		paired[at] = true;
		return;
	}
	sheaf_str key = pair_key(b, kind);
	bool known = map_get(&p->waiting, key, &call);
	if (kind == OPAQUE_CALL && !(known && call == PAIR_USED)) {
		p->turn[at] = p->now;
		pair_set(p, key, at);
	} else if (kind == OPAQUE_ANSWER && call != PAIR_USED && p->turn[call] == p->now) {
		paired[call] = paired[at] = true;
		pair_set(p, key, PAIR_USED);
	}
}

static void pair_message(pairing *p, const message *m)
{
	p->now += m->role == ROLE_ASSISTANT;
	for (size_t i = 0; i < m->count; i++) {
		if (m->blocks[i].kind == SHEAF_PART_OPAQUE)
			pair_opaque(p, &m->blocks[i]);
		else if (m->role != ROLE_ASSISTANT && m->role != ROLE_TOOL)
			p->now++;
	}
}

/* Finds out which opaque calls have their answer. Ids of plain calls are not for them. */
static void pairs_find(responses *s)
{
	const rendering *r = s->w.r;
	pairing p = {.s = s, .waiting = MAP_INIT};
	size_t opaque = 0;
	for (size_t i = 0; i < r->message_count; i++) {
		for (size_t k = 0; k < r->messages[i].count; k++)
			opaque += r->messages[i].blocks[k].kind == SHEAF_PART_OPAQUE;
	}
	if (opaque == 0)
		return;
	s->paired = arena_zalloc(r->arena, opaque * sizeof(*s->paired));
	p.turn = arena_zalloc(r->arena, opaque * sizeof(*p.turn));
	if (s->paired == NULL || p.turn == NULL) {
		s->w.rc = SHEAF_NOMEM;
		return;
	}
	for (size_t i = 0; i < r->message_count; i++) {
		for (size_t k = 0; k < r->messages[i].count; k++) {
			if (r->messages[i].blocks[k].kind == SHEAF_PART_TOOL_USE)
				pair_set(&p, r->messages[i].blocks[k].id, PAIR_USED);
		}
	}
	for (size_t i = 0; i < r->message_count; i++)
		pair_message(&p, &r->messages[i]);
	map_free(&p.waiting);
}

static void opaque_bytes(responses *s, sheaf_str raw, bool without_id)
{
	static const char *const id_only[] = {"id", "type", NULL};
	static const char *const type_only[] = {"type", NULL};
	s->in_tail = false;
	if (s->w.count++ != 0)
		buf_char(s->w.out, ',');
	if (!without_id) {
		buf_str(s->w.out, raw);
		return;
	}
	sheaf_str members = members_inside(raw);
	buf_char(s->w.out, '{');
	size_t start = s->w.out->len;
	openai_ext_only(s->w.out, members, type_only);
	ext_write(s->w.out, members, id_only);
	/* The first of them came with a comma, too. */
	if (s->w.out->status == 0 && s->w.out->len > start) {
		memmove(s->w.out->ptr + start, s->w.out->ptr + start + 1,
		        s->w.out->len - start - 1);
		s->w.out->len--;
	}
	buf_char(s->w.out, '}');
}

/* Whether the item can be sent, with its id or without. */
static bool opaque_item(responses *s, const block *b, opaque_kind kind, sheaf_str type)
{
	sheaf_str raw = members_trim(b->part->raw);
	sheaf_str id = json_member_bytes(raw, "id");
	if (id.ptr == NULL) {
		content_close(s);
		opaque_bytes(s, raw, false);
		return true;
	}
	bool pairs_by_id = kind == OPAQUE_ITEM && ends_in(type, "_call");
	bool keep = !(s->bare && (kind == OPAQUE_CALL || pairs_by_id)) && take_id(s, id);
	if (!keep && pairs_by_id) /* nothing but its id says what it is */
		return false;
	content_close(s);
	opaque_bytes(s, raw, !keep);
	return true;
}

static void opaque_write(responses *s, const message *m, const block *b)
{
	sheaf_str type = openai_opaque_type(b);
	opaque_kind kind = s->paired[s->opaque++] ? opaque_kind_of(type) : OPAQUE_NOTHING;
	bool sent = false;
	if (kind == OPAQUE_PART) {
		bool output = !str_starts(type, "input_");
		sent = m->role == ROLE_ASSISTANT ? output : m->role == ROLE_USER && !output;
		if (sent) {
			content_next(s, m, (sheaf_str){NULL, 0});
			buf_str(s->w.out, b->part->raw);
		}
	} else if (kind != OPAQUE_NOTHING) {
		sent = opaque_item(s, b, kind, type);
	}
	if (!sent)
		openai_note(&s->w, SHEAF_NOTE_FOREIGN_PART, type);
}

/* ---- Replies ----------------------------------------------------------------- */

/* Whether items of a reply must do without their ids: it is not whole any more. */
static bool is_bare(const message *m)
{
	size_t sent = 0, had = 0;
	for (size_t i = 0; i < m->count; i++) {
		const block *b = &m->blocks[i];
		sent += b->kind == SHEAF_PART_THINKING;
		if (b->kind == SHEAF_PART_OPAQUE && str_is(openai_opaque_type(b), "reasoning"))
			return true;
	}
	/* One that the context changed may have lost some before. */
	if (m->item == NULL || m->item->message->json.ptr == NULL)
		return true;
	for (size_t i = 0; i < m->item->message->part_count; i++)
		had += m->item->message->parts[i]->kind == SHEAF_PART_THINKING;
	return sent < had;
}

static void reasoning_write(responses *s, const block *b)
{
	buf *out = s->w.out;
	content_close(s);
	if (!s->in_tail) {
		s->tail = out->len;
		s->tail_count = s->w.count;
	}
	item_open(s, "reasoning");
	s->in_tail = true;
	item_ext(s, b->ext);
	buf_lit(out, ",\"summary\":");
	sheaf_str summary = b->ext.len != 0 ? members_find(b->ext, "summary") : b->ext;
	if (summary.ptr != NULL) {
		buf_str(out, summary);
	} else if (b->text.len != 0) {
		buf_char(out, '[');
		text_write(out, "summary_text", b->text, summary);
		buf_char(out, ']');
	} else {
		buf_lit(out, "[]");
	}
	buf_lit(out, ",\"encrypted_content\":");
	buf_json(out, b->signature);
	ext_write(out, b->ext, reasoning_names);
	buf_char(out, '}');
}

static void call_write(responses *s, const block *b)
{
	buf *out = s->w.out;
	content_close(s);
	item_open(s, "function_call");
	item_ext(s, b->ext);
	buf_lit(out, ",\"call_id\":");
	buf_json(out, b->id);
	buf_lit(out, ",\"name\":");
	buf_json(out, b->name);
	buf_lit(out, ",\"arguments\":");
	buf_json(out, b->input);
	ext_write(out, b->ext, call_names);
	buf_char(out, '}');
}

static void answer_write(responses *s, const block *b)
{
	buf *out = s->w.out;
	item_open(s, "function_call_output");
	item_ext(s, b->ext);
	buf_lit(out, ",\"call_id\":");
	buf_json(out, b->id);
	buf_lit(out, ",\"output\":");
	if (b->part_count == 0) {
		buf_json(out, b->text);
	} else if (b->part_count == 1 && b->parts[0].kind == SHEAF_PART_TEXT) {
		buf_json(out, b->parts[0].text);
	} else {
		for (size_t i = 0; i < b->part_count; i++) {
			const block *part = &b->parts[i];
			buf_char(out, i == 0 ? '[' : ',');
			if (part->kind == SHEAF_PART_TEXT)
				text_write(out, "input_text", part->text, part->ext);
			else
				attachment_write(out, part);
		}
		buf_char(out, ']');
	}
	ext_write(out, b->ext, answer_names);
	buf_char(out, '}');
}

static void block_write(responses *s, const message *m, const block *b)
{
	switch (b->kind) {
	case SHEAF_PART_THINKING:
		reasoning_write(s, b);
		break;
	case SHEAF_PART_TOOL_USE:
		call_write(s, b);
		break;
	case SHEAF_PART_TOOL_RESULT:
		answer_write(s, b);
		break;
	case SHEAF_PART_OPAQUE:
		opaque_write(s, m, b);
		break;
	default:
		content_write(s, m, b);
	}
}

/* Reasoning that leads to nothing is taken back. */
static void tail_drop(responses *s)
{
	if (!s->in_tail)
		return;
	s->w.out->len = s->tail < s->w.out->len ? s->tail : s->w.out->len;
	s->w.count = s->tail_count;
	s->bare = true;
	openai_note(&s->w, SHEAF_NOTE_FOREIGN_THINKING, (sheaf_str){NULL, 0});
}

/* Whether a reply of which nothing but reasoning was left stood right before this message. */
static bool lost_before(responses *s, const message *m)
{
	const sheaf_context *c = s->w.r->context;
	bool lost = false;
	if (m->item == NULL || (s->passed != 0 && c->items[s->passed - 1] == m->item))
		return false;
	while (s->passed < c->count && c->items[s->passed++] != m->item)
		lost = str_is(c->items[s->passed - 1]->message->role, SHEAF_ROLE_ASSISTANT);
	return lost;
}

static void message_write(responses *s, const message *m)
{
	s->w.at = m;
	bool lost = lost_before(s, m);
	/* Messages that follow each other may be pieces of one reply. */
	if (m->role == ROLE_ASSISTANT)
		s->bare = s->bare || lost || is_bare(m);
	else
		s->bare = false;
	s->in_tail = false;
	for (size_t i = 0; i < m->count; i++)
		block_write(s, m, &m->blocks[i]);
	content_close(s);
	tail_drop(s);
}

/* ---- The body ---------------------------------------------------------------- */

/* Models before those that reason refuse to be asked for it. */
static bool reasons(sheaf_str model)
{
	static const char tail[] = "-chat";
	if (str_starts(model, "gpt-3") || str_starts(model, "gpt-4") ||
	    str_starts(model, "chatgpt-"))
		return false;
	for (size_t i = 0; i + sizeof(tail) - 1 <= model.len; i++) {
		if (memcmp(model.ptr + i, tail, sizeof(tail) - 1) == 0)
			return false;
	}
	return true;
}

#define OUTPUT_TOKENS_MIN 16

static void options_write(responses *s)
{
	openai_writer *w = &s->w;
	const sheaf_render_options *o = &w->r->o;
	if (openai_member(w, "store"))
		buf_lit(w->out, "false");
	if (reasons(o->model) && openai_member(w, "include"))
		buf_lit(w->out, "[\"reasoning.encrypted_content\"]");
	if (o->max_tokens != 0 && openai_member(w, "max_output_tokens"))
		buf_u64(w->out,
		        o->max_tokens < OUTPUT_TOKENS_MIN ? OUTPUT_TOKENS_MIN : o->max_tokens);
	sheaf_str effort = openai_effort(w->r);
	if (effort.len != 0 && openai_member(w, "reasoning")) {
		buf_lit(w->out, "{\"effort\":");
		buf_json(w->out, effort);
		buf_char(w->out, '}');
	}
	sheaf_str system = openai_system(w);
	if (system.len != 0 && openai_member(w, "instructions"))
		buf_json(w->out, system);
}

static void responses_done(responses *s)
{
	map_free(&s->ids);
}

int openai_responses_write(rendering *r, buf *out, sheaf_error *err)
{
	_cleanup_(responses_done) responses s = {.w = {r, out, NULL, 0, 0}};
	pairs_find(&s);
	if (s.w.rc != 0)
		return err_nomem(err);
	openai_head(&s.w);
	options_write(&s);
	openai_tools(&s.w, true);
	extra_write(r, out, "input");
	buf_lit(out, ",\"input\":[");
	for (size_t i = 0; i < r->message_count; i++)
		message_write(&s, &r->messages[i]);
	buf_lit(out, "]}");
	if (s.w.rc != 0)
		return err_nomem(err);
	if (s.w.count == 0)
		return err_set(err, SHEAF_CONTEXT, "there is nothing to send");
	return buf_status(out, err);
}
