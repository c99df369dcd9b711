/*
 * Writes a request of Google's Gemini, generateContent.
 *
 * Turns alternate: the messages of one side that follow each other are one
 * turn. The list of turns stands last in the body and only grows, so that the
 * same bytes come first in every request of a conversation.
 */
#include "base/err.h"
#include "base/json.h"
#include "base/map.h"
#include "base/str.h"
#include "entry/members.h"
#include "render/render.h"

/* Accepted in place of a signature that is not there: Gemini 3 demands one on the first call of a
 * turn, older models take it. */
#define NO_SIGNATURE "skip_thought_signature_validator"

/* What results may hold since Gemini 3; other data is sent behind them. */
static const char *const result_types[] = {"image/png", "image/jpeg", "image/webp",
                                           "application/pdf", "text/plain"};

typedef struct writer {
	rendering *r;
	buf *out;
	unsigned version;       /* of the model, 25 for 2.5; 0 if it has none */
	const message *at;      /* the message that is being written */
	const message *calling; /* the message before it, if it has calls */
	size_t parts;           /* of the turn so far */
	bool signed_call;       /* the turn has had its first call */
	int rc;                 /* 0 or SHEAF_NOMEM */
} writer;

/* "gemini-2.5-pro" is 25; one that is only called latest is taken for new. */
static unsigned version_of(sheaf_str model)
{
	static const char family[] = "gemini-";
	const size_t len = sizeof(family) - 1;
	size_t at = 0;
	while (at + len <= model.len && memcmp(model.ptr + at, family, len) != 0)
		at++;
	if (at + len > model.len)
		return 0;
	unsigned major = 0, minor = 0;
	for (at += len; at < model.len && model.ptr[at] >= '0' && model.ptr[at] <= '9'; at++)
		major = major < 100 ? major * 10 + (unsigned)(model.ptr[at] - '0') : major;
	if (at + 1 < model.len && model.ptr[at] == '.' && model.ptr[at + 1] >= '0' &&
	    model.ptr[at + 1] <= '9')
		minor = (unsigned)(model.ptr[at + 1] - '0');
	return major != 0 ? major * 10 + minor : 30;
}

static bool is_gemini_3(const writer *w)
{
	return w->version >= 30;
}

/* ---- Parts ----------------------------------------------------------------- */

static void part_open(writer *w)
{
	if (w->parts++ != 0)
		buf_char(w->out, ',');
	buf_char(w->out, '{');
}

/* What came with a part, but for what is written here. */
static void rest_write(writer *w, sheaf_str ext)
{
	static const char *const ours[] = {
		"text",         "thought",          "thoughtSignature", "inlineData", "fileData",
		"functionCall", "functionResponse", "response",         NULL};
	ext_write(w->out, ext, ours);
}

static void signature_write(writer *w, sheaf_str signature)
{
	if (signature.len == 0)
		return;
	buf_lit(w->out, ",\"thoughtSignature\":");
	buf_json(w->out, signature);
}

/* Data or an address, without the braces around it. */
static void source_write(buf *out, const sheaf_part *part)
{
	bool url = str_is(part->source_type, "url");
	if (url)
		buf_lit(out, "\"fileData\":{");
	else
		buf_lit(out, "\"inlineData\":{");
	if (part->media_type.len != 0) {
		buf_lit(out, "\"mimeType\":");
		buf_json(out, part->media_type);
		buf_char(out, ',');
	}
	if (url)
		buf_lit(out, "\"fileUri\":");
	else
		buf_lit(out, "\"data\":");
	buf_json(out, part->data);
	buf_char(out, '}');
}

static void text_write(writer *w, const block *b)
{
	part_open(w);
	buf_lit(w->out, "\"text\":");
	buf_json(w->out, b->text);
	if (b->kind == SHEAF_PART_THINKING)
		buf_lit(w->out, ",\"thought\":true");
	signature_write(w, b->signature);
	rest_write(w, b->ext);
	buf_char(w->out, '}');
}

static void media_write(writer *w, const block *b)
{
	part_open(w);
	source_write(w->out, b->part);
	/* Images a model made are signed, too; a message has no other place for that. */
	sheaf_str signature = members_find(b->ext, "thoughtSignature");
	if (signature.ptr != NULL && w->at->own) {
		buf_lit(w->out, ",\"thoughtSignature\":");
		buf_str(w->out, signature);
	}
	rest_write(w, b->ext);
	buf_char(w->out, '}');
}

static void call_write(writer *w, const block *b)
{
	sheaf_str signature = b->signature;
	if (signature.len == 0 && !w->signed_call)
		signature = SHEAF_STR(NO_SIGNATURE);
	w->signed_call = true;
	part_open(w);
	buf_lit(w->out, "\"functionCall\":{\"id\":");
	buf_json(w->out, b->id);
	buf_lit(w->out, ",\"name\":");
	buf_json(w->out, b->name);
	buf_lit(w->out, ",\"args\":");
	buf_str(w->out, b->input);
	buf_char(w->out, '}');
	signature_write(w, signature);
	rest_write(w, b->ext);
	buf_char(w->out, '}');
}

/* ---- Results --------------------------------------------------------------- */

static bool is_inside(const writer *w, const block *part)
{
	if (!is_gemini_3(w) || part->kind == SHEAF_PART_TEXT ||
	    str_is(part->part->source_type, "url"))
		return false;
	for (size_t i = 0; i < COUNT_OF(result_types); i++) {
		if (str_is(part->part->media_type, result_types[i]))
			return true;
	}
	return false;
}

/* The texts of a result, one a line, as one JSON string. */
static void result_text(writer *w, const block *b)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX / 2);
	if (b->parts == NULL) {
		buf_json(w->out, b->text);
		return;
	}
	for (size_t i = 0, n = 0; i < b->part_count; i++) {
		if (b->parts[i].kind != SHEAF_PART_TEXT)
			continue;
		if (n++ != 0)
			buf_char(&text, '\n');
		buf_str(&text, b->parts[i].text);
	}
	if (text.status != 0)
		w->rc = SHEAF_NOMEM;
	buf_json(w->out, buf_view(&text));
}

/* Whether nothing of a result was cut out for its size. */
static bool is_whole(const block *b)
{
	if (b->part == NULL || b->text.ptr != b->part->text.ptr)
		return false;
	for (size_t i = 0; i < b->part_count; i++) {
		const block *inside = &b->parts[i];
		if (inside->kind == SHEAF_PART_TEXT && inside->text.ptr != inside->part->text.ptr)
			return false;
	}
	return true;
}

/* A response that came from this format goes back as it was. */
static void response_write(writer *w, const block *b)
{
	sheaf_str stored = is_whole(b) ? members_find(b->ext, "response") : (sheaf_str){NULL, 0};
	if (stored.len != 0 && stored.ptr[0] == '{') {
		buf_str(w->out, stored);
		return;
	}
	if (b->error)
		buf_lit(w->out, "{\"error\":");
	else
		buf_lit(w->out, "{\"output\":");
	result_text(w, b);
	buf_char(w->out, '}');
}

static void result_write(writer *w, const block *b)
{
	size_t inside = 0;
	part_open(w);
	buf_lit(w->out, "\"functionResponse\":{\"id\":");
	buf_json(w->out, b->id);
	buf_lit(w->out, ",\"name\":");
	buf_json(w->out, b->name);
	buf_lit(w->out, ",\"response\":");
	response_write(w, b);
	for (size_t i = 0; i < b->part_count; i++) {
		if (!is_inside(w, &b->parts[i]))
			continue;
		if (inside++ == 0)
			buf_lit(w->out, ",\"parts\":[{");
		else
			buf_lit(w->out, ",{");
		source_write(w->out, b->parts[i].part);
		buf_char(w->out, '}');
	}
	if (inside != 0)
		buf_char(w->out, ']');
	buf_char(w->out, '}');
	rest_write(w, b->ext);
	buf_char(w->out, '}');
	for (size_t i = 0; i < b->part_count; i++) {
		if (b->parts[i].kind == SHEAF_PART_TEXT || is_inside(w, &b->parts[i]))
			continue;
		media_write(w, &b->parts[i]);
		if (note_add(w->r, SHEAF_NOTE_MOVED, w->at->item, b->id) != 0)
			w->rc = SHEAF_NOMEM;
	}
}

/* Where the answer to a call stands, if it is not where it should be. */
static const block *answer_find(writer *w, map *by_id, sheaf_str id)
{
	const message *m = w->at;
	uint64_t at;
	if (by_id->count == 0) {
		for (size_t i = 0; i < m->count; i++) {
			if (map_set(by_id, m->blocks[i].id, i) != 0)
				w->rc = SHEAF_NOMEM;
		}
	}
	return map_get(by_id, id, &at) ? &m->blocks[at] : NULL;
}

/* The answers in the order of the calls, whichever came first. */
static void results_write(writer *w)
{
	_cleanup_(map_free) map by_id = MAP_INIT;
	const message *m = w->at;
	size_t next = 0;
	for (size_t i = 0; w->calling != NULL && i < w->calling->count; i++) {
		const block *call = &w->calling->blocks[i];
		if (call->kind != SHEAF_PART_TOOL_USE)
			continue;
		const block *answer = next < m->count ? &m->blocks[next] : NULL;
		next++;
		if (answer == NULL || !str_eq(answer->id, call->id))
			answer = answer_find(w, &by_id, call->id);
		if (answer != NULL)
			result_write(w, answer);
	}
}

/* ---- Turns ----------------------------------------------------------------- */

static void message_write(writer *w)
{
	if (w->at->role == ROLE_TOOL) {
		results_write(w);
		return;
	}
	for (size_t i = 0; i < w->at->count; i++) {
		const block *b = &w->at->blocks[i];
		switch (b->kind) {
		case SHEAF_PART_TEXT:
		case SHEAF_PART_THINKING:
			text_write(w, b);
			break;
		case SHEAF_PART_IMAGE:
		case SHEAF_PART_DOCUMENT:
			media_write(w, b);
			break;
		case SHEAF_PART_TOOL_USE:
			call_write(w, b);
			break;
		default:
			if (w->parts++ != 0)
				buf_char(w->out, ',');
			buf_str(w->out, b->part->raw);
			break;
		}
	}
}

static void contents_write(writer *w)
{
	bool model = false;
	buf_lit(w->out, "\"contents\":[");
	for (size_t i = 0; i < w->r->message_count; i++) {
		const message *m = &w->r->messages[i];
		bool assistant = m->role == ROLE_ASSISTANT;
		if (i == 0 || assistant != model) {
			if (i != 0)
				buf_lit(w->out, "]},");
			if (assistant)
				buf_lit(w->out, "{\"role\":\"model\",\"parts\":[");
			else
				buf_lit(w->out, "{\"role\":\"user\",\"parts\":[");
			w->parts = 0;
			w->signed_call = false;
		}
		model = assistant;
		w->calling = i != 0 ? w->at : NULL;
		w->at = m;
		message_write(w);
	}
	buf_lit(w->out, "]}]");
}

/* ---- The rest of the body -------------------------------------------------- */

/* Whether the caller says it himself. */
static bool in_extra(const writer *w, const char *name)
{
	return w->r->o.extra.len != 0 && json_member_bytes(w->r->o.extra, name).ptr != NULL;
}

static void system_write(writer *w)
{
	const sheaf_render_options *o = &w->r->o;
	size_t count = 0;
	if (in_extra(w, "systemInstruction"))
		return;
	for (int dynamic = 0; dynamic < 2; dynamic++) {
		for (size_t i = 0; i < o->system_count; i++) {
			if ((o->system[i].dynamic != 0) != (dynamic != 0) ||
			    o->system[i].text.len == 0)
				continue;
			if (count++ == 0)
				buf_lit(w->out, "\"systemInstruction\":{\"parts\":[{\"text\":");
			else
				buf_lit(w->out, ",{\"text\":");
			buf_json(w->out, o->system[i].text);
			buf_char(w->out, '}');
		}
	}
	if (count != 0)
		buf_lit(w->out, "]},");
}

static void tools_write(writer *w)
{
	if (w->r->tool_count == 0 || in_extra(w, "tools"))
		return;
	buf_lit(w->out, "\"tools\":[{\"functionDeclarations\":[");
	for (size_t i = 0; i < w->r->tool_count; i++) {
		const sheaf_tool *tool = &w->r->tools[i];
		if (i != 0)
			buf_char(w->out, ',');
		buf_lit(w->out, "{\"name\":");
		buf_json(w->out, tool->name);
		if (tool->description.len != 0) {
			buf_lit(w->out, ",\"description\":");
			buf_json(w->out, tool->description);
		}
		buf_lit(w->out, ",\"parametersJsonSchema\":");
		if (tool->schema.len != 0)
			buf_str(w->out, tool->schema);
		else
			buf_lit(w->out, "{\"type\":\"object\"}");
		buf_char(w->out, '}');
	}
	buf_lit(w->out, "]}],");
}

static bool name_has(sheaf_str name, const char *word)
{
	size_t len = strlen(word);
	for (size_t i = 0; i + len <= name.len; i++) {
		if (memcmp(name.ptr + i, word, len) == 0)
			return true;
	}
	return false;
}

/* Levels as the two generations put them; the large models cannot do without. */
typedef struct level {
	const char *name;
	const char *word;       /* Gemini 3 */
	const char *word_large; /* the same for its large models */
	unsigned budget;        /* Gemini 2.5 */
	unsigned budget_large;
	bool shown; /* the reply holds a summary of the thinking */
} level;

static const level levels[] = {
	{"off", "minimal", "low", 0, 128, false},
	{"minimal", "minimal", "low", 512, 512, true},
	{"low", "low", "low", 2048, 2048, true},
	{"medium", "medium", "medium", 8192, 8192, true},
	{"high", "high", "high", 24576, 32768, true},
};

/* NULL if nothing is to be said of thinking. */
static const level *level_of(const writer *w)
{
	for (size_t i = 0; i < COUNT_OF(levels) && w->version >= 25; i++) {
		if (str_is(w->r->o.thinking_level, levels[i].name))
			return &levels[i];
	}
	return NULL;
}

static void thinking_write(writer *w, const level *l)
{
	bool large = name_has(w->r->o.model, "-pro");
	if (is_gemini_3(w))
		buf_format(w->out, "\"thinkingConfig\":{\"thinkingLevel\":\"%s\"",
		           large ? l->word_large : l->word);
	else
		buf_format(w->out, "\"thinkingConfig\":{\"thinkingBudget\":%u",
		           large ? l->budget_large : l->budget);
	if (l->shown)
		buf_lit(w->out, ",\"includeThoughts\":true");
	buf_char(w->out, '}');
}

static void config_next(writer *w, size_t *count)
{
	if ((*count)++ == 0)
		buf_lit(w->out, "\"generationConfig\":{");
	else
		buf_char(w->out, ',');
}

/* What the options say, unless the caller says it himself, and what else he says. */
static void config_write(writer *w)
{
	const sheaf_render_options *o = &w->r->o;
	const level *thinking = level_of(w);
	sheaf_str theirs = {NULL, 0};
	size_t count = 0;
	if (o->extra.len != 0)
		theirs = members_trim(
			members_inside(json_member_bytes(o->extra, "generationConfig")));
	if (o->max_tokens != 0 && members_find(theirs, "maxOutputTokens").ptr == NULL) {
		config_next(w, &count);
		buf_lit(w->out, "\"maxOutputTokens\":");
		buf_u64(w->out, o->max_tokens);
	}
	if (thinking != NULL && members_find(theirs, "thinkingConfig").ptr == NULL) {
		config_next(w, &count);
		thinking_write(w, thinking);
	}
	if (theirs.len != 0) {
		config_next(w, &count);
		buf_str(w->out, theirs);
	}
	if (count != 0)
		buf_lit(w->out, "},");
}

/* What else the caller says. */
static void others_write(writer *w)
{
	sheaf_str key, value;
	if (w->r->o.extra.len == 0)
		return;
	for (size_t at = 0; json_member_next(w->r->o.extra, &at, &key, &value);) {
		if (members_key_is(key, "generationConfig") || members_key_is(key, "contents"))
			continue;
		buf_char(w->out, '"');
		buf_str(w->out, key);
		buf_lit(w->out, "\":");
		buf_str(w->out, value);
		buf_char(w->out, ',');
	}
}

int gemini_write(rendering *r, buf *out, sheaf_error *err)
{
	writer w = {.r = r, .out = out, .version = version_of(r->o.model)};
	buf_char(out, '{');
	system_write(&w);
	tools_write(&w);
	config_write(&w);
	others_write(&w);
	contents_write(&w);
	buf_char(out, '}');
	return w.rc == 0 ? 0 : err_nomem(err);
}
