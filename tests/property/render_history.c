/* Makes random conversations, in a session and in memory; see render_history.h. */
#include "property/render_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

typedef enum step_kind {
	STEP_USER,
	STEP_ASSISTANT,
	STEP_ANSWERS,
	STEP_STRAY, /* results that belong nowhere, or to something long past */
	STEP_SYSTEM,
	STEP_ROLE, /* bashExecution, custom, the two summaries */
	STEP_CUSTOM,
	STEP_MODEL,
	STEP_LEVEL,
	STEP_COMPACTION,
	STEP_BRANCH,
	STEP_BRANCH_SUMMARY,
	STEP_LABEL,
	STEP_FORK,
	STEP_KINDS
} step_kind;

static const struct {
	const char *name;
	unsigned weight;
} kinds[STEP_KINDS] = {
	[STEP_USER] = {"user", 20},       [STEP_ASSISTANT] = {"assistant", 26},
	[STEP_ANSWERS] = {"answers", 24}, [STEP_STRAY] = {"stray", 5},
	[STEP_SYSTEM] = {"system", 3},    [STEP_ROLE] = {"role", 4},
	[STEP_CUSTOM] = {"custom", 3},    [STEP_MODEL] = {"model", 2},
	[STEP_LEVEL] = {"level", 1},      [STEP_COMPACTION] = {"compaction", 4},
	[STEP_BRANCH] = {"branch", 4},    [STEP_BRANCH_SUMMARY] = {"branch summary", 2},
	[STEP_LABEL] = {"label", 1},      [STEP_FORK] = {"fork", 1},
};

static const maker_name makers[] = {
	{"anthropic", "claude-sonnet-4-5"}, {"openai", "gpt-5"},
	{"google", "gemini-3-pro-preview"}, {"google", "gemini-2.5-flash"},
	{"deepseek", "deepseek-chat"},      {"anthropic", "claude-sonnet-4-5-20250929"},
};

/* ---- Chance ---------------------------------------------------------------- */

uint64_t chance_next(chance *c)
{
	uint64_t z = (c->state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

size_t chance_below(chance *c, size_t n)
{
	return n == 0 ? 0 : (size_t)(chance_next(c) % n);
}

bool chance_percent(chance *c, unsigned percent)
{
	return chance_below(c, 100) < percent;
}

size_t steps_make(act *steps, uint64_t seed)
{
	chance c = {seed};
	unsigned total = 0;
	size_t count = 1 + chance_below(&c, 6);
	count += chance_below(&c, 10) + (chance_percent(&c, 10) ? chance_below(&c, 20) : 0);
	for (size_t k = 0; k < STEP_KINDS; k++)
		total += kinds[k].weight;
	for (size_t i = 0; i < count; i++) {
		size_t at = chance_below(&c, total);
		uint8_t k = 0;
		while (at >= kinds[k].weight)
			at -= kinds[k++].weight;
		steps[i] = (act){k, chance_next(&c)};
	}
	return count;
}

const char *step_name(const act *s)
{
	return kinds[s->kind].name;
}

/* ---- Names ----------------------------------------------------------------- */

static const char *id_new(history *h, chance *c)
{
	static const char *const odd[] = {
		"toolu_01",
		"call_1",
		"a b",
		"x/y.z:0",
		"",
		"\xc3\xa9t\xc3\xa9",
		"0123456789012345678901234567890123456789012345678901234567890123456789",
	};
	if (chance_percent(c, 15))
		return odd[chance_below(c, COUNT_OF(odd))];
	char *id = arena_alloc(h->arena, 24);
	if (id == NULL)
		abort();
	(void)snprintf(id, 24, "call_%u", ++h->names + 100);
	return id;
}

static const char *name_new(chance *c)
{
	static const char *const names[] = {
		"bash",
		"read_file",
		"mcp__x-y",
		"fs.read",
		"7zip",
		"",
		"na me\n\"x\"",
		"a_name_that_is_much_longer_than_any_provider_would_take_it_for_a_tool_of_yours"};
	return names[chance_percent(c, 75) ? chance_below(c, 3) : chance_below(c, COUNT_OF(names))];
}

/* ---- Parts ----------------------------------------------------------------- */

static unsigned mark_new(history *h)
{
	if (h->marks + 1 >= MARKS_MAX)
		abort();
	return ++h->marks;
}

static part part_text(history *h, chance *c)
{
	if (chance_percent(c, 5))
		return (part){.kind = PART_EMPTY};
	if (chance_percent(c, 5))
		return (part){.kind = PART_BLANK, .blank = (uint8_t)chance_below(c, 5)};
	return (part){.kind = PART_TEXT, .mark = mark_new(h), .is_signed = chance_percent(c, 10)};
}

static part part_media(history *h, chance *c)
{
	return (part){.kind = chance_percent(c, 60) ? PART_IMAGE : PART_DOCUMENT,
	              .mark = mark_new(h),
	              .common = chance_percent(c, 60)};
}

static part part_thinking(history *h, chance *c)
{
	return (part){.kind = PART_THINKING,
	              .mark = mark_new(h),
	              .is_signed = chance_percent(c, 70),
	              .redacted = chance_percent(c, 15)};
}

static part part_call(history *h, chance *c)
{
	return (part){.kind = PART_CALL,
	              .mark = mark_new(h),
	              .id = id_new(h, c),
	              .name = name_new(c),
	              .object = chance_percent(c, 80),
	              .is_signed = chance_percent(c, 30)};
}

static part part_opaque(history *h, chance *c)
{
	if (chance_percent(c, 25))
		return (part){.kind = PART_OTHER, .mark = mark_new(h)};
	return (part){
		.kind = PART_OPAQUE, .mark = mark_new(h), .format = (int32_t)chance_below(c, 5)};
}

static part part_result(history *h, chance *c, const char *id)
{
	part p = {.kind = PART_RESULT, .id = id};
	if (chance_percent(c, 60)) {
		p.mark = chance_percent(c, 90) ? mark_new(h) : 0;
		return p;
	}
	p.listed = true;
	p.inner_count = chance_below(c, INNER_MAX + 1);
	for (size_t i = 0; i < p.inner_count; i++) {
		part from = chance_percent(c, 60) ? part_text(h, c) : part_media(h, c);
		p.inner[i] = (inner){from.kind, from.mark, from.common, from.blank};
	}
	return p;
}

/* Every eighth has something that only one format understands. */
static void said_add(said *s, part p)
{
	p.ext = p.mark % 8 == 7;
	if (s->count < PARTS_MAX)
		s->parts[s->count++] = p;
}

/* ---- As JSON --------------------------------------------------------------- */

static void text_json(buf *out, part_kind kind, unsigned mark, uint64_t way, bool lengthy)
{
	static const char *const forms[] = {"say #t%u#", "\n#t%u# \n",
	                                    "\"q\" \\ #t%u# \xc3\xa9\xe2\x80\xa8", "#t%u#  \t",
	                                    "<b>#t%u#</b>"};
	static const char *const blanks[] = {" ", "\n\n", "\t \r\n", "\xc2\xa0", "\xe3\x80\x80 "};
	char text[64];
	if (kind == PART_EMPTY) {
		buf_lit(out, "\"\"");
	} else if (kind == PART_BLANK) {
		buf_json(out, sheaf_str_of(blanks[way % COUNT_OF(blanks)]));
	} else {
		(void)snprintf(text, sizeof(text), forms[way % COUNT_OF(forms)], mark);
		if (!lengthy) {
			buf_json(out, sheaf_str_of(text));
			return;
		}
		buf_char(out, '"');
		buf_format(out, "#t%u#", mark);
		for (int i = 0; i < 400; i++)
			buf_lit(out, " many words of no use at all");
		buf_char(out, '"');
	}
}

/* Members of one format's own, some under names that are written anyway. */
static void ext_json(buf *out, const part *p)
{
	static const char *const members[] = {
		"\"format\":\"anthropic\",\"type\":\"x\",\"cache_control\":{\"ttl\":\"1h\"},\"n\":%u",
		"\"format\":\"openai-chat\",\"role\":\"x\",\"type\":\"x\",\"n\":%u",
		"\"id\":\"it_%u\",\"format\":\"openai-responses\",\"status\":\"completed\",\"call_id\":\"x\"",
		"\"partMetadata\":{\"n\":%u},\"format\":\"gemini\",\"text\":\"x\"",
	};
	if (!p->ext)
		return;
	buf_lit(out, ",\"ext\":{");
	buf_format(out, members[p->mark / 8 % COUNT_OF(members)], p->mark % 3 + 1);
	buf_char(out, '}');
}

static void media_json(buf *out, part_kind kind, unsigned mark, bool common)
{
	static const struct {
		const char *type, *media, *form;
	} forms[] = {
		{"base64", "image/tiff", "aW1n%08u"},
		{"url", "image/png", "https://x.test/aW1n%08u"},
		{"base64", "text/plain", "aW1n%08u"},
		{"base64", "image/png", "no base64 aW1n%08u"},
		{"base64", "", "aW1n%08u"},
		{"url", "", "file:///aW1n%08u"},
		{"base64", "image/gif", "aW1n%08u"},
		{"url", "application/pdf", "https://x.test/aW1n%08u"},
	};
	const char *name = kind == PART_IMAGE ? "image" : "document";
	const size_t way = mark % COUNT_OF(forms);
	const char *type = common ? "base64" : forms[way].type;
	const char *media = !common              ? forms[way].media
	                    : kind == PART_IMAGE ? "image/png"
	                                         : "application/pdf";
	char data[64];
	(void)snprintf(data, sizeof(data), common ? "aW1n%08u" : forms[way].form, mark);
	buf_format(out,
	           "{\"type\":\"%s\",\"%s\":{\"source\":{\"type\":\"%s\",\"media_type\":\"%s\","
	           "\"data\":\"%s\"}}}",
	           name, name, type, media, data);
}

static void opaque_json(buf *out, const part *p, bool reply)
{
	static const char *const of_reply[] = {
		"{\"type\":\"server_tool_use\",\"id\":\"srv_%u\",\"name\":\"x\",\"input\":\"#o%u#\"}",
		"{\"type\":\"refusal\",\"refusal\":\"%u #o%u#\"}",
		"{\"type\":\"web_search_call\",\"id\":\"ws_%u\",\"status\":\"completed\",\"q\":\"#o%u#\"}",
		"{\"executableCode\":{\"language\":\"PYTHON\",\"code\":\"%u #o%u#\"}}",
		"{\"whatever\":[%u,\"#o%u#\"]}",
	};
	static const char *const of_user[] = {
		"{\"type\":\"container_upload\",\"file_id\":\"%u #o%u#\"}",
		"{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"%u #o%u#\",\"format\":\"wav\"}}",
		"{\"type\":\"input_file\",\"file_id\":\"%u #o%u#\"}",
		"{\"fileData\":{\"fileUri\":\"%u #o%u#\"}}",
		"[%u,\"#o%u#\"]",
	};
	static const char *const names[] = {"anthropic", "openai-chat", "openai-responses",
	                                    "gemini", "nobody"};
	if (p->kind == PART_OTHER) {
		buf_format(out, "{\"type\":\"hologram\",\"hologram\":\"#o%u#\"}", p->mark);
		return;
	}
	buf_format(out, "{\"type\":\"opaque\",\"opaque\":{\"provider\":\"%s\",\"raw\":",
	           names[p->format]);
	buf_format(out, reply != p->misplaced ? of_reply[p->format] : of_user[p->format], p->mark,
	           p->mark);
	buf_lit(out, "}}");
}

static void call_json(buf *out, const part *p)
{
	static const char *const odd[] = {
		"\"input\":[1,\"#c%u#\"]",
		"\"input\":\"#c%u#\"",
		"\"input_text\":\"{\\\"a\\\": #c%u#\"",
		"\"input_text\":\"#c%u# \\n\\\"\"",
		"\"input_text\":\"[\\n\\\"#c%u#\\\"]\"",
	};
	static const char *const good[] = {
		"\"input\":{\"a\":\"#c%u#\"}",
		"\"input\":{\"a\":{\"b\":[1,2.50,null]},\"c\":\"#c%u#\"}",
		"\"input_text\":\"{\\n \\\"a\\\":\\\"#c%u#\\\"\\n}\"",
	};
	buf_lit(out, "{\"type\":\"tool_use\",\"tool_use\":{\"id\":");
	buf_json(out, sheaf_str_of(p->id));
	buf_lit(out, ",\"name\":");
	buf_json(out, sheaf_str_of(p->name));
	buf_char(out, ',');
	buf_format(out, p->object ? good[p->mark % COUNT_OF(good)] : odd[p->mark % COUNT_OF(odd)],
	           p->mark);
	if (p->is_signed)
		buf_format(out, ",\"signature\":\"c2ln%08u\"", p->mark);
	ext_json(out, p);
	buf_lit(out, "}}");
}

static void result_json(buf *out, const part *p, bool lengthy)
{
	static const char *const errors[] = {"", ",\"is_error\":false", ",\"is_error\":true"};
	static const char *const names[] = {"", ",\"tool_name\":\"bash\""};
	unsigned way = p->mark + (unsigned)p->inner_count;
	buf_lit(out, "{\"type\":\"tool_result\",\"tool_result\":{\"tool_use_id\":");
	buf_json(out, sheaf_str_of(p->id));
	buf_str(out, sheaf_str_of(names[way % 2]));
	buf_lit(out, ",\"content\":");
	if (!p->listed) {
		text_json(out, p->mark != 0 ? PART_TEXT : PART_EMPTY, p->mark, way, lengthy);
	} else {
		buf_char(out, '[');
		for (size_t i = 0; i < p->inner_count; i++) {
			const inner *in = &p->inner[i];
			if (i != 0)
				buf_char(out, ',');
			if (in->kind == PART_IMAGE || in->kind == PART_DOCUMENT) {
				media_json(out, in->kind, in->mark, in->common);
				continue;
			}
			buf_lit(out, "{\"type\":\"text\",\"text\":{\"content\":");
			text_json(out, in->kind, in->mark, in->mark + in->blank, lengthy);
			buf_lit(out, "}}");
		}
		buf_char(out, ']');
	}
	buf_str(out, sheaf_str_of(errors[way % 3]));
	ext_json(out, p);
	buf_lit(out, "}}");
}

static void thinking_json(buf *out, const part *p)
{
	buf_lit(out, "{\"type\":\"thinking\",\"thinking\":{\"text\":");
	if (p->redacted)
		buf_format(out, "\"\",\"redacted\":true,\"signature\":\"#k%u#\"", p->mark);
	else if (p->is_signed)
		buf_format(out, "\"hm #k%u#\",\"signature\":\"c2ln%08u\"", p->mark, p->mark);
	else
		buf_format(out, "\"hm #k%u#\"", p->mark);
	ext_json(out, p);
	buf_lit(out, "}}");
}

static void part_json(buf *out, const part *p, bool reply, bool lengthy)
{
	switch (p->kind) {
	case PART_TEXT:
	case PART_EMPTY:
	case PART_BLANK:
		buf_lit(out, "{\"type\":\"text\",\"text\":{\"content\":");
		text_json(out, p->kind, p->mark, p->mark + p->blank, false);
		if (p->is_signed)
			buf_format(out, ",\"signature\":\"c2ln%08u\"", p->mark);
		ext_json(out, p);
		buf_lit(out, "}}");
		break;
	case PART_THINKING:
		thinking_json(out, p);
		break;
	case PART_IMAGE:
	case PART_DOCUMENT:
		media_json(out, p->kind, p->mark, p->common);
		break;
	case PART_CALL:
		call_json(out, p);
		break;
	case PART_RESULT:
		result_json(out, p, lengthy);
		break;
	case PART_OPAQUE:
	case PART_OTHER:
		opaque_json(out, p, reply);
		break;
	}
}

static void said_json(buf *out, const said *s, bool lengthy)
{
	bool reply = strcmp(s->role, SHEAF_ROLE_ASSISTANT) == 0;
	buf_format(out, "{\"role\":\"%s\",\"content\":[", s->role);
	for (size_t i = 0; i < s->count; i++) {
		if (i != 0)
			buf_char(out, ',');
		part_json(out, &s->parts[i], reply, lengthy);
	}
	buf_char(out, ']');
	if (s->maker != NULL)
		buf_format(out, ",\"provider\":\"%s\",\"model\":\"%s\"", s->maker->provider,
		           s->maker->model);
	if (s->command != 0)
		buf_format(out, ",\"command\":\"ls #t%u#\",\"output\":\"x\",\"exitCode\":0",
		           s->command);
	if (s->excluded)
		buf_lit(out, ",\"excludeFromContext\":true");
	buf_char(out, '}');
}

/* ---- Appending ------------------------------------------------------------- */

/* A record of any kind, and its entry. The caller has filled the rest of it. */
static int append(history *h, const char *type, const buf *body, entry e)
{
	sheaf_entry_options how = SHEAF_ENTRY_OPTIONS_INIT;
	sheaf_appended done = SHEAF_APPENDED_INIT;
	if (h->count == ENTRIES_MAX)
		return 0;
	if (body->status != 0)
		abort();
	(void)snprintf(e.id, sizeof(e.id), "e%zu", h->count);
	how.id = sheaf_str_of(e.id);
	int rc = sheaf_session_append_json(h->session, sheaf_str_of(type), buf_view(body), &how,
	                                   NULL, &done, &h->err);
	if (rc != 0)
		return rc;
	e.seq = done.seq;
	e.parent = h->leaf;
	h->leaf = h->count;
	h->entries[h->count++] = e;
	return 0;
}

static int append_said(history *h, const said *s)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SIZE_MAX / 2);
	said *copy = arena_alloc(h->arena, sizeof(*copy));
	if (copy == NULL)
		abort();
	*copy = *s;
	buf_lit(&body, "{\"message\":");
	said_json(&body, s, h->long_results);
	if (s->origin != NULL)
		buf_format(&body, ",\"origin\":{\"format\":\"%s\"}", s->origin);
	buf_char(&body, '}');
	return append(h, "message", &body,
	              (entry){.kind = ENTRY_MESSAGE, .said = copy, .said_count = 1});
}

/* ---- Steps ----------------------------------------------------------------- */

static int step_user(history *h, chance *c)
{
	said s = {.role = SHEAF_ROLE_USER};
	size_t count = 1 + (chance_percent(c, 25) ? chance_below(c, 3) : 0);
	for (size_t i = 0; i < count; i++) {
		if (chance_percent(c, 75))
			said_add(&s, part_text(h, c));
		else if (chance_percent(c, 60))
			said_add(&s, part_media(h, c));
		else
			said_add(&s, part_opaque(h, c));
	}
	if (chance_percent(c, 2))
		said_add(&s, part_call(h, c)); /* where it does not belong */
	if (chance_percent(c, 2))
		said_add(&s, part_thinking(h, c));
	return append_said(h, &s);
}

static int step_assistant(history *h, chance *c)
{
	said s = {.role = SHEAF_ROLE_ASSISTANT};
	size_t way = chance_below(c, COUNT_OF(makers) + 1);
	s.maker = way < COUNT_OF(makers) ? &makers[way] : NULL;
	if (chance_percent(c, 35))
		said_add(&s, part_thinking(h, c));
	if (chance_percent(c, 70))
		said_add(&s, part_text(h, c));
	if (chance_percent(c, 6))
		said_add(&s, part_opaque(h, c));
	if (chance_percent(c, 3))
		said_add(&s, part_media(h, c));
	if (chance_percent(c, 55)) {
		size_t calls = 1 + (chance_percent(c, 35) ? chance_below(c, 3) : 0);
		for (size_t i = 0; i < calls; i++)
			said_add(&s, part_call(h, c));
	}
	if (chance_percent(c, 5))
		said_add(&s, part_text(h, c));
	if (chance_percent(c, 3))
		said_add(&s, part_thinking(h, c));
	return append_said(h, &s);
}

/* The calls of the newest entry that has any, from the leaf to the root. */
static const said *last_calls(const history *h)
{
	for (size_t at = h->leaf; at != NONE; at = h->entries[at].parent) {
		const entry *e = &h->entries[at];
		for (size_t i = 0; e->kind == ENTRY_MESSAGE && i < e->said->count; i++) {
			if (e->said->parts[i].kind == PART_CALL)
				return e->said;
		}
	}
	return NULL;
}

/* Answers to the last calls: all, some, in another order, twice; in one message or several. */
static int step_answers(history *h, chance *c)
{
	const said *asked = last_calls(h);
	const char *ids[PARTS_MAX * 2];
	size_t count = 0;
	if (asked == NULL)
		return 0;
	for (size_t i = 0; i < asked->count; i++) {
		if (asked->parts[i].kind == PART_CALL && !chance_percent(c, 7))
			ids[count++] = asked->parts[i].id;
	}
	if (count != 0 && chance_percent(c, 5))
		ids[count++] = ids[0];
	for (size_t i = 1; i < count && chance_percent(c, 30); i++) {
		size_t k = chance_below(c, i + 1);
		const char *id = ids[i];
		ids[i] = ids[k];
		ids[k] = id;
	}
	bool apart = chance_percent(c, 30);
	const char *role = chance_percent(c, 80) ? SHEAF_ROLE_TOOL : SHEAF_ROLE_USER;
	said s = {.role = role};
	for (size_t i = 0; i < count; i++) {
		said_add(&s, part_result(h, c, ids[i]));
		if (!apart && i + 1 < count)
			continue;
		if (chance_percent(c, 8))
			said_add(&s, part_text(h, c));
		if (i + 1 == count && chance_percent(c, 5))
			said_add(&s, part_media(h, c));
		int rc = append_said(h, &s);
		if (rc != 0)
			return rc;
		s = (said){.role = role};
	}
	return 0;
}

/* A result for any call of the whole tree, or for none. */
static int step_stray(history *h, chance *c)
{
	said s = {.role = chance_percent(c, 60)   ? SHEAF_ROLE_TOOL
	                  : chance_percent(c, 80) ? SHEAF_ROLE_USER
	                                          : SHEAF_ROLE_ASSISTANT};
	const char *id = "nobody";
	for (size_t tries = 0; tries < 8 && h->count != 0 && chance_percent(c, 90); tries++) {
		const entry *e = &h->entries[chance_below(c, h->count)];
		if (e->kind != ENTRY_MESSAGE || e->said->count == 0)
			continue;
		const part *p = &e->said->parts[chance_below(c, e->said->count)];
		if (p->kind == PART_CALL)
			id = p->id;
	}
	if (chance_percent(c, 20))
		said_add(&s, part_text(h, c));
	said_add(&s, part_result(h, c, id));
	if (chance_percent(c, 20))
		said_add(&s, part_text(h, c));
	return append_said(h, &s);
}

static int step_system(history *h, chance *c)
{
	static const char *const origins[] = {NULL,         "codex", "claude-code",
	                                      "gemini-cli", "pi",    "openai-chat"};
	said s = {.role = chance_percent(c, 60) ? SHEAF_ROLE_SYSTEM : SHEAF_ROLE_DEVELOPER,
	          .origin = origins[chance_below(c, COUNT_OF(origins))]};
	said_add(&s, part_text(h, c));
	if (chance_percent(c, 20))
		said_add(&s, part_text(h, c));
	if (chance_percent(c, 5))
		said_add(&s, part_media(h, c));
	return append_said(h, &s);
}

static int step_role(history *h, chance *c)
{
	static const char *const roles[] = {SHEAF_ROLE_BASH, SHEAF_ROLE_CUSTOM,
	                                    SHEAF_ROLE_BRANCH_SUMMARY,
	                                    SHEAF_ROLE_COMPACTION_SUMMARY};
	said s = {.role = roles[chance_below(c, COUNT_OF(roles))]};
	bool bash = strcmp(s.role, SHEAF_ROLE_BASH) == 0;
	if (bash && chance_percent(c, 70))
		s.command = mark_new(h);
	if (s.command == 0 || chance_percent(c, 30))
		said_add(&s, part_text(h, c));
	if (chance_percent(c, 20))
		said_add(&s, part_text(h, c));
	s.excluded = bash && chance_percent(c, 20);
	return append_said(h, &s);
}

static int step_custom(history *h, chance *c)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SIZE_MAX / 2);
	bool shown = chance_percent(c, 60);
	entry e = {.kind = shown ? ENTRY_CUSTOM : ENTRY_SILENT};
	if (shown) {
		e.mark = mark_new(h);
		buf_format(&body,
		           "{\"custom\":{\"custom_type\":\"x\",\"in_context\":true,"
		           "\"content\":\"note #t%u#\"}}",
		           e.mark);
	} else {
		buf_lit(&body, "{\"custom\":{\"custom_type\":\"x\",\"data\":{\"a\":1}}}");
	}
	return append(h, "custom", &body, e);
}

static int step_model(history *h, chance *c)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SIZE_MAX / 2);
	const maker_name *m = &makers[chance_below(c, COUNT_OF(makers))];
	buf_format(&body, "{\"model_change\":{\"provider\":\"%s\",\"model_id\":\"%s\"}}",
	           m->provider, m->model);
	return append(h, "model_change", &body, (entry){.kind = ENTRY_SILENT});
}

static int step_level(history *h, chance *c)
{
	static const char *const levels[] = {"off", "minimal", "low", "medium", "high", "xhigh"};
	_cleanup_(buf_free) buf body = BUF_INIT(SIZE_MAX / 2);
	buf_format(&body, "{\"thinking_level\":{\"thinking_level\":\"%s\"}}",
	           levels[chance_below(c, COUNT_OF(levels))]);
	return append(h, "thinking_level", &body, (entry){.kind = ENTRY_SILENT});
}

/* An id a compaction may name: of any entry, of a fact, of nothing. */
static const char *kept_id(history *h, chance *c)
{
	size_t way = chance_below(c, 100);
	if (way < 55 && h->leaf != NONE) { /* on the path */
		size_t at = h->leaf, up = chance_below(c, 6);
		while (up-- > 0 && h->entries[at].parent != NONE)
			at = h->entries[at].parent;
		return h->entries[at].id;
	}
	if (way < 80 && h->count != 0)
		return h->entries[chance_below(c, h->count)].id;
	if (way < 90 && h->fact_count != 0)
		return h->facts[chance_below(c, h->fact_count)].id;
	return "nowhere";
}

static void cut_first_kept(history *h, chance *c, entry *e, buf *body)
{
	e->cut = CUT_FIRST_KEPT;
	e->kept[e->kept_count++] = kept_id(h, c);
	buf_format(body, ",\"first_kept_entry_id\":\"%s\"", e->kept[0]);
}

static void cut_kept_ids(history *h, chance *c, entry *e, buf *body)
{
	size_t count = chance_below(c, KEPT_MAX + 1);
	e->cut = CUT_KEPT_IDS;
	buf_lit(body, ",\"kept_ids\":[");
	for (size_t i = 0; i < count; i++) {
		e->kept[e->kept_count++] = kept_id(h, c);
		buf_format(body, "%s\"%s\"", i != 0 ? "," : "", e->kept[i]);
	}
	buf_char(body, ']');
}

static void cut_replacement(history *h, chance *c, entry *e, buf *body)
{
	size_t count = chance_below(c, 4);
	e->cut = CUT_REPLACEMENT;
	e->said = arena_zalloc(h->arena, (count + 1) * sizeof(*e->said));
	e->said_count = count;
	if (e->said == NULL)
		abort();
	buf_lit(body, ",\"replacement\":[");
	for (size_t i = 0; i < count; i++) {
		said *s = &e->said[i];
		size_t way = chance_below(c, 4);
		s->role = way == 0   ? SHEAF_ROLE_ASSISTANT
		          : way == 1 ? SHEAF_ROLE_TOOL
		                     : SHEAF_ROLE_USER;
		if (way == 1 && i != 0 && s[-1].count > 1)
			said_add(s, part_result(h, c, s[-1].parts[1].id));
		else
			said_add(s, part_text(h, c));
		if (way == 0 && chance_percent(c, 60))
			said_add(s, part_call(h, c));
		if (i != 0)
			buf_char(body, ',');
		said_json(body, s, false);
	}
	buf_char(body, ']');
}

static int step_compaction(history *h, chance *c)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SIZE_MAX / 2);
	entry e = {.kind = ENTRY_COMPACTION, .cut = CUT_ALL};
	buf_lit(&body, "{\"compaction\":{\"summary\":");
	if (chance_percent(c, 85)) {
		e.mark = mark_new(h);
		buf_format(&body, "\"in short #t%u#\"", e.mark);
	} else {
		buf_lit(&body, "\"\"");
	}
	size_t way = chance_below(c, 100);
	if (way < 60)
		cut_first_kept(h, c, &e, &body);
	else if (way < 75)
		cut_kept_ids(h, c, &e, &body);
	else if (way < 90)
		cut_replacement(h, c, &e, &body);
	buf_lit(&body, "}}");
	return append(h, "compaction", &body, e);
}

static int step_branch(history *h, chance *c)
{
	size_t to = h->count == 0 || chance_percent(c, 5) ? NONE : chance_below(c, h->count);
	int rc = sheaf_session_branch(h->session, (sheaf_str){NULL, 0},
	                              to == NONE ? SHEAF_STR("") : sheaf_str_of(h->entries[to].id),
	                              NULL, NULL, &h->err);
	if (rc == 0)
		h->leaf = to;
	return rc;
}

static int step_branch_summary(history *h, chance *c)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SIZE_MAX / 2);
	int rc = step_branch(h, c);
	entry e = {.kind = ENTRY_SUMMARY, .mark = mark_new(h)};
	buf_format(&body, "{\"branch_summary\":{\"summary\":\"went #t%u#\",\"from_id\":null}}",
	           e.mark);
	return rc != 0 ? rc : append(h, "branch_summary", &body, e);
}

static int step_label(history *h, chance *c)
{
	sheaf_appended done = SHEAF_APPENDED_INIT;
	char label[24];
	if (h->count == 0 || h->fact_count == ENTRIES_MAX)
		return 0;
	(void)snprintf(label, sizeof(label), "label%zu", h->fact_count);
	int rc = sheaf_session_label(h->session,
	                             sheaf_str_of(h->entries[chance_below(c, h->count)].id),
	                             sheaf_str_of(label), NULL, &done, &h->err);
	if (rc != 0)
		return rc;
	fact *f = &h->facts[h->fact_count++];
	(void)snprintf(f->id, sizeof(f->id), "%s", done.id);
	f->seq = done.seq;
	return 0;
}

/* Goes on in a fork: what came after its base is not there any more. */
static int step_fork(history *h, chance *c)
{
	sheaf_session *forked;
	sheaf_key key = sheaf_session_key(h->session);
	if (h->count == 0)
		return 0;
	size_t at = chance_below(c, h->count), facts = 0;
	key.session = (sheaf_str){NULL, 0};
	int rc = sheaf_session_fork(&forked, h->session, sheaf_str_of(h->entries[at].id), &key,
	                            NULL, &h->err);
	if (rc != 0)
		return rc;
	sheaf_session_close(h->session);
	h->session = forked;
	h->leaf = at;
	h->count = at + 1;
	while (facts < h->fact_count && h->facts[facts].seq < h->entries[at].seq)
		facts++;
	h->fact_count = facts;
	return 0;
}

int history_step(history *h, const act *s)
{
	static int (*const does[STEP_KINDS])(history *, chance *) = {
		[STEP_USER] = step_user,       [STEP_ASSISTANT] = step_assistant,
		[STEP_ANSWERS] = step_answers, [STEP_STRAY] = step_stray,
		[STEP_SYSTEM] = step_system,   [STEP_ROLE] = step_role,
		[STEP_CUSTOM] = step_custom,   [STEP_MODEL] = step_model,
		[STEP_LEVEL] = step_level,     [STEP_COMPACTION] = step_compaction,
		[STEP_BRANCH] = step_branch,   [STEP_BRANCH_SUMMARY] = step_branch_summary,
		[STEP_LABEL] = step_label,     [STEP_FORK] = step_fork,
	};
	chance c = {s->salt};
	return does[s->kind](h, &c);
}

int history_turn(history *h, uint64_t salt)
{
	chance c = {salt};
	said user = {.role = SHEAF_ROLE_USER};
	said_add(&user, (part){.kind = PART_TEXT, .mark = mark_new(h)});
	int rc = append_said(h, &user);
	if (rc == 0 && chance_percent(&c, 50)) {
		rc = step_assistant(h, &c);
		if (rc == 0)
			rc = step_answers(h, &c);
	}
	return rc != 0 ? rc : step_assistant(h, &c);
}

/* ---- The whole ------------------------------------------------------------- */

int history_open(history *h, sheaf_store *store, const char *name)
{
	sheaf_key key = sheaf_key_of(name);
	sheaf_session_options how = SHEAF_SESSION_OPTIONS_INIT;
	how.mode = SHEAF_OPEN_NEW;
	h->arena = arena_new();
	h->store = store;
	h->count = h->fact_count = 0;
	h->leaf = NONE;
	h->marks = h->names = 0;
	h->session = NULL;
	if (h->arena == NULL)
		abort();
	return sheaf_session_open(&h->session, store, &key, &how, &h->err);
}

void history_close(history *h)
{
	sheaf_session_close(h->session);
	arena_free(h->arena);
	h->session = NULL;
	h->arena = NULL;
}

void history_print(const history *h)
{
	sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
	sheaf_records *records;
	how.limit = 1000;
	how.raw = 1;
	if (sheaf_session_records(&records, h->session, &how, NULL) != 0)
		return;
	for (size_t i = 0; i < records->count; i++)
		(void)fprintf(stderr, "  %.*s\n", (int)records->items[i]->line.len,
		              records->items[i]->line.ptr);
	sheaf_records_free(records);
}
