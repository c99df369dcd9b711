/* Reads rendered bodies; see render_body.h. Nothing here is shared with what writes or checks them. */
#include "property/render_body.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "entry/members.h"

/* ---- Marks ----------------------------------------------------------------- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

unsigned mark_next(sheaf_str text, size_t *at)
{
	for (size_t i = *at; i < text.len; i++) {
		const char *p = text.ptr + i;
		size_t left = text.len - i, n;
		unsigned mark = 0;
		if (p[0] == '#' && left > 3) {
			for (n = 2; n < left && is_digit(p[n]); n++)
				mark = mark * 10 + (unsigned)(p[n] - '0');
			if (n == 2 || n == left || p[n] != '#')
				continue;
		} else if (p[0] == 'a' && left >= 12 && memcmp(p, "aW1n", 4) == 0) {
			for (n = 4; n < 12 && is_digit(p[n]); n++)
				mark = mark * 10 + (unsigned)(p[n] - '0');
			if (n < 12)
				continue;
		} else {
			continue;
		}
		*at = i + n;
		if (mark != 0 && mark < MARKS_MAX)
			return mark;
	}
	*at = text.len;
	return 0;
}

size_t str_times(sheaf_str text, const char *word)
{
	size_t len = strlen(word), times = 0;
	for (size_t i = 0; i + len <= text.len; i++)
		times += text.ptr[i] == word[0] && memcmp(text.ptr + i, word, len) == 0;
	return times;
}

/* ---- Blocks ---------------------------------------------------------------- */

static sheaf_str get(sheaf_str object, const char *name)
{
	return members_find(members_inside(object), name);
}

/* A string without its quotes. Ids and names have nothing in them that is escaped. */
static sheaf_str word(sheaf_str object, const char *name)
{
	sheaf_str value = get(object, name);
	return value.len >= 2 && value.ptr[0] == '"' ? str_make(value.ptr + 1, value.len - 2)
	                                             : (sheaf_str){"", 0};
}

static bool is_list(sheaf_str value)
{
	return value.len != 0 && value.ptr[0] == '[';
}

typedef struct walk {
	block_fn fn;
	void *ctx;
	char role;
	bool first;
} walk;

static void emit(walk *w, block_kind kind, sheaf_str id, sheaf_str name, sheaf_str bytes)
{
	seen_block b = {kind, w->role, id, name, bytes, w->first};
	w->first = false;
	w->fn(w->ctx, &b);
}

static void emit_plain(walk *w, sheaf_str bytes)
{
	emit(w, BLOCK_OTHER, (sheaf_str){"", 0}, (sheaf_str){"", 0}, bytes);
}

static void anthropic_message(walk *w, sheaf_str message)
{
	sheaf_str content = get(message, "content"), block;
	if (!is_list(content)) {
		emit_plain(w, content);
		return;
	}
	content = members_inside(content);
	for (size_t at = 0; elements_next(content, &at, &block);) {
		sheaf_str type = word(block, "type");
		if (str_is(type, "tool_use"))
			emit(w, BLOCK_CALL, word(block, "id"), word(block, "name"), block);
		else if (str_is(type, "tool_result"))
			emit(w, BLOCK_RESULT, word(block, "tool_use_id"), word(block, "name"),
			     block);
		else
			emit_plain(w, block);
	}
}

static void chat_message(walk *w, sheaf_str message)
{
	sheaf_str content = get(message, "content"), piece, call;
	if (str_is(word(message, "role"), "tool")) {
		w->role = 'u';
		emit(w, BLOCK_RESULT, word(message, "tool_call_id"), (sheaf_str){"", 0}, message);
		return;
	}
	if (get(message, "refusal").ptr != NULL)
		emit_plain(w, get(message, "refusal"));
	if (is_list(content)) {
		content = members_inside(content);
		for (size_t at = 0; elements_next(content, &at, &piece);)
			emit_plain(w, piece);
	} else if (content.len != 0 && !str_is(content, "null")) {
		emit_plain(w, content);
	}
	sheaf_str calls = members_inside(get(message, "tool_calls"));
	for (size_t at = 0; calls.len != 0 && elements_next(calls, &at, &call);)
		emit(w, BLOCK_CALL, word(call, "id"), word(get(call, "function"), "name"), call);
}

static void responses_item(walk *w, sheaf_str item)
{
	sheaf_str type = word(item, "type"), content = get(item, "content"), piece;
	if (str_is(type, "function_call")) {
		w->role = 'a';
		emit(w, BLOCK_CALL, word(item, "call_id"), word(item, "name"), item);
	} else if (str_is(type, "function_call_output")) {
		w->role = 'u';
		emit(w, BLOCK_RESULT, word(item, "call_id"), (sheaf_str){"", 0}, item);
	} else if (is_list(content)) {
		content = members_inside(content);
		for (size_t at = 0; elements_next(content, &at, &piece);)
			emit_plain(w, piece);
	} else {
		if (content.ptr == NULL)
			w->role = 'a';
		emit_plain(w, item);
	}
}

static void gemini_content(walk *w, sheaf_str turn)
{
	sheaf_str parts = members_inside(get(turn, "parts")), piece;
	for (size_t at = 0; elements_next(parts, &at, &piece);) {
		sheaf_str call = get(piece, "functionCall"),
			  answer = get(piece, "functionResponse");
		if (call.ptr != NULL)
			emit(w, BLOCK_CALL, word(call, "id"), word(call, "name"), piece);
		else if (answer.ptr != NULL)
			emit(w, BLOCK_RESULT, word(answer, "id"), word(answer, "name"), piece);
		else
			emit_plain(w, piece);
	}
}

static char role_letter(sheaf_str role)
{
	if (str_is(role, "assistant") || str_is(role, "model"))
		return 'a';
	return str_is(role, "system") || str_is(role, "developer") ? 's' : 'u';
}

bool body_each(int32_t format, sheaf_str body, block_fn fn, void *ctx)
{
	static const struct {
		const char *list;
		void (*message)(walk *w, sheaf_str message);
	} formats[] = {
		[SHEAF_FORMAT_ANTHROPIC] = {"messages", anthropic_message},
		[SHEAF_FORMAT_OPENAI_CHAT] = {"messages", chat_message},
		[SHEAF_FORMAT_OPENAI_RESPONSES] = {"input", responses_item},
		[SHEAF_FORMAT_GEMINI] = {"contents", gemini_content},
	};
	sheaf_str list = json_member_bytes(body, formats[format].list), message;
	if (!is_list(list))
		return false;
	list = members_inside(list);
	walk w = {.fn = fn, .ctx = ctx};
	for (size_t at = 0; elements_next(list, &at, &message);) {
		w.role = role_letter(word(message, "role"));
		w.first = true;
		formats[format].message(&w, message);
	}
	return true;
}

/* ---- Seeing ---------------------------------------------------------------- */

static void see_block(void *ctx, const seen_block *b)
{
	seen *s = ctx;
	uint16_t call = 0, answer = 0;
	if (s->first_role == 0) {
		s->first_role = b->role;
		s->first = b->bytes;
	}
	s->last_role = b->role;
	s->last = b->bytes;
	if (b->kind == BLOCK_CALL && s->call_count < COUNT_OF(s->calls)) {
		s->calls[s->call_count++] = *b;
		call = (uint16_t)s->call_count;
	}
	if (b->kind == BLOCK_RESULT && s->result_count < COUNT_OF(s->results)) {
		s->results[s->result_count++] = *b;
		answer = (uint16_t)s->result_count;
	}
	unsigned mark;
	for (size_t at = 0; (mark = mark_next(b->bytes, &at)) != 0;) {
		s->role[mark] = b->role;
		s->call[mark] = call;
		s->answers[mark] = answer;
	}
}

/* Signatures are c2ln and the mark. */
static void see_signatures(seen *s, sheaf_str body)
{
	for (size_t i = 0; i + 12 <= body.len; i++) {
		const char *p = body.ptr + i;
		unsigned mark = 0;
		size_t n = 4;
		if (p[0] != 'c' || memcmp(p, "c2ln", 4) != 0)
			continue;
		while (n < 12 && is_digit(p[n]))
			mark = mark * 10 + (unsigned)(p[n++] - '0');
		if (n == 12 && mark < MARKS_MAX)
			s->has_signature[mark] = true;
	}
}

void body_see(seen *s, int32_t format, sheaf_str body, unsigned marks)
{
	size_t used = marks + 1 < MARKS_MAX ? marks + 1 : MARKS_MAX;
	memset(s->times, 0, used * sizeof(s->times[0]));
	memset(s->role, 0, used * sizeof(s->role[0]));
	memset(s->has_signature, 0, used * sizeof(s->has_signature[0]));
	memset(s->call, 0, used * sizeof(s->call[0]));
	memset(s->answers, 0, used * sizeof(s->answers[0]));
	s->call_count = s->result_count = 0;
	s->first_role = s->last_role = 0;
	s->first = s->last = (sheaf_str){"", 0};
	unsigned mark;
	for (size_t at = 0; (mark = mark_next(body, &at)) != 0;)
		s->times[mark] = s->times[mark] != 0 ? 2 : 1;
	see_signatures(s, body);
	s->good = body_each(format, body, see_block, s);
}
