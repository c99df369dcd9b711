/* Writes a request for Anthropic's Messages interface. */
#include "render/cache.h"

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "entry/members.h"
#include "sheaf/usage.h"

#define MAX_TOKENS_DEFAULT 8192u
#define BUDGET_MIN 1024u

/* A mark is found again if it lies at most about 20 blocks before the next one. */
#define LOOKBACK_BLOCKS 18u

/* Tokens a reply may think for. */
static const struct {
	const char *level;
	uint64_t budget;
} budgets[] = {
	{"minimal", 1024},
	{"low", 4096},
	{"medium", 10240},
	{"high", 32768},
};

typedef struct writer {
	rendering *r;
	buf *out;
	cache_marks marks;
	const block *marked[2]; /* blocks behind which the messages are marked; NULL = none */
} writer;

/* ---- Blocks -------------------------------------------------------------- */

/* What came with a block, but for what is written here; marks are set anew. */
static void rest_write(writer *w, const block *b)
{
	static const char *const ours[] = {"type",          "text",    "thinking", "signature",
	                                   "data",          "id",      "name",     "input",
	                                   "tool_use_id",   "content", "is_error", "source",
	                                   "cache_control", NULL};
	ext_write(w->out, b->ext, ours);
}

static void source_write(writer *w, const sheaf_part *part)
{
	buf *out = w->out;
	if (str_is(part->source_type, "url")) {
		buf_lit(out, "\"source\":{\"type\":\"url\",\"url\":");
	} else {
		buf_lit(out, "\"source\":{\"type\":\"base64\",\"media_type\":");
		buf_json(out, part->media_type);
		buf_lit(out, ",\"data\":");
	}
	buf_json(out, part->data);
	buf_char(out, '}');
}

/* What stands in a message as well as in a result; without the closing brace. */
static void plain_write(writer *w, const block *b)
{
	buf *out = w->out;
	switch (b->kind) {
	case SHEAF_PART_IMAGE:
		buf_lit(out, "{\"type\":\"image\",");
		source_write(w, b->part);
		break;
	case SHEAF_PART_DOCUMENT:
		buf_lit(out, "{\"type\":\"document\",");
		source_write(w, b->part);
		break;
	default:
		buf_lit(out, "{\"type\":\"text\",\"text\":");
		buf_json(out, b->text);
		break;
	}
	rest_write(w, b);
}

static void thinking_write(writer *w, const block *b)
{
	buf *out = w->out;
	if (b->part->redacted) {
		buf_lit(out, "{\"type\":\"redacted_thinking\",\"data\":");
	} else {
		buf_lit(out, "{\"type\":\"thinking\",\"thinking\":");
		buf_json(out, b->text);
		buf_lit(out, ",\"signature\":");
	}
	buf_json(out, b->signature);
	rest_write(w, b);
}

static void call_write(writer *w, const block *b)
{
	buf *out = w->out;
	buf_lit(out, "{\"type\":\"tool_use\",\"id\":\"");
	buf_str(out, b->id);
	buf_lit(out, "\",\"name\":\"");
	buf_str(out, b->name);
	buf_lit(out, "\",\"input\":");
	buf_str(out, b->input);
	rest_write(w, b);
}

static void result_write(writer *w, const block *b)
{
	buf *out = w->out;
	buf_lit(out, "{\"type\":\"tool_result\",\"tool_use_id\":\"");
	buf_str(out, b->id);
	buf_lit(out, "\",\"content\":");
	if (b->parts == NULL) {
		buf_json(out, b->text);
	} else {
		for (size_t i = 0; i < b->part_count; i++) {
			buf_char(out, i == 0 ? '[' : ',');
			plain_write(w, &b->parts[i]);
			buf_char(out, '}');
		}
		buf_char(out, ']');
	}
	if (b->error)
		buf_lit(out, ",\"is_error\":true");
	else if (b->said_error)
		buf_lit(out, ",\"is_error\":false");
	rest_write(w, b);
}

/* As it came, but for a mark that was meant for another request. */
static void opaque_write(writer *w, sheaf_str raw)
{
	buf *out = w->out;
	sheaf_str members = members_inside(members_trim(raw)), key, value;
	bool first = true;
	buf_char(out, '{');
	if (members_find(members, "cache_control").ptr == NULL) {
		buf_str(out, members_trim(members));
		return;
	}
	for (size_t at = 0; members_next(members, &at, &key, &value);) {
		if (members_key_is(key, "cache_control"))
			continue;
		if (!first)
			buf_char(out, ',');
		buf_char(out, '"');
		buf_str(out, key);
		buf_lit(out, "\":");
		buf_str(out, value);
		first = false;
	}
}

static void block_write(writer *w, const block *b)
{
	buf *out = w->out;
	switch (b->kind) {
	case SHEAF_PART_THINKING:
		thinking_write(w, b);
		break;
	case SHEAF_PART_TOOL_USE:
		call_write(w, b);
		break;
	case SHEAF_PART_TOOL_RESULT:
		result_write(w, b);
		break;
	case SHEAF_PART_OPAQUE:
		opaque_write(w, b->part->raw);
		break;
	default:
		plain_write(w, b);
		break;
	}
	if (b == w->marked[0] || b == w->marked[1]) {
		const char *mark = cache_mark(&w->marks, CACHE_MESSAGES);
		if (mark != NULL) {
			if (out->len != 0 && out->ptr[out->len - 1] != '{')
				buf_char(out, ',');
			buf_add(out, mark, strlen(mark));
		}
	}
	buf_char(out, '}');
}

/* ---- Messages ------------------------------------------------------------ */

static bool is_reply(const message *m)
{
	return m->role == ROLE_ASSISTANT;
}

/*
 * The last block of the last user message is marked; and, where so many blocks
 * came since that the mark of the request before would not be found from there,
 * that place once more.
 */
static void marks_place(writer *w)
{
	const rendering *r = w->r;
	size_t i = r->message_count, blocks = 0;
	while (i > 0 && is_reply(&r->messages[i - 1]))
		i--;
	if (i == 0)
		return;
	const message *last = &r->messages[i - 1];
	w->marked[0] = &last->blocks[last->count - 1];
	for (; i > 0 && !is_reply(&r->messages[i - 1]); i--)
		blocks += r->messages[i - 1].count;
	for (; i > 0 && is_reply(&r->messages[i - 1]); i--)
		blocks += r->messages[i - 1].count;
	if (i > 0 && blocks > LOOKBACK_BLOCKS) {
		last = &r->messages[i - 1];
		w->marked[1] = &last->blocks[last->count - 1];
	}
}

/* Neighbours of one side are one message: so are results and what the user says after them. */
static void messages_write(writer *w)
{
	const rendering *r = w->r;
	buf *out = w->out;
	buf_lit(out, "\"messages\":[");
	for (size_t i = 0; i < r->message_count; i++) {
		const message *m = &r->messages[i];
		bool joined = i > 0 && is_reply(m) == is_reply(m - 1);
		if (!joined) {
			if (i > 0)
				buf_lit(out, "]},");
			if (is_reply(m))
				buf_lit(out, "{\"role\":\"assistant\",\"content\":[");
			else
				buf_lit(out, "{\"role\":\"user\",\"content\":[");
		}
		for (size_t k = 0; k < m->count; k++) {
			if (joined || k > 0)
				buf_char(out, ',');
			block_write(w, &m->blocks[k]);
		}
	}
	buf_lit(out, "]}]");
}

/* ---- Tools, system text, settings ---------------------------------------- */

static void mark_write(writer *w, int32_t place)
{
	const char *mark = cache_mark(&w->marks, place);
	if (mark == NULL)
		return;
	buf_char(w->out, ',');
	buf_add(w->out, mark, strlen(mark));
}

static void tools_write(writer *w)
{
	const rendering *r = w->r;
	buf *out = w->out;
	if (r->tool_count == 0 || extra_has(r, "tools"))
		return;
	buf_lit(out, "\"tools\":[");
	for (size_t i = 0; i < r->tool_count; i++) {
		const sheaf_tool *tool = &r->tools[i];
		if (i > 0)
			buf_char(out, ',');
		buf_lit(out, "{\"name\":");
		buf_json(out, tool->name);
		if (tool->description.len != 0) {
			buf_lit(out, ",\"description\":");
			buf_json(out, tool->description);
		}
		buf_lit(out, ",\"input_schema\":");
		if (tool->schema.len != 0)
			buf_str(out, tool->schema);
		else
			buf_lit(out, "{\"type\":\"object\"}");
		if (i + 1 == r->tool_count)
			mark_write(w, CACHE_TOOLS);
		buf_char(out, '}');
	}
	buf_lit(out, "],");
}

/* First what stays the same, then what does not. */
static void system_write(writer *w)
{
	const rendering *r = w->r;
	buf *out = w->out;
	size_t last_static = SIZE_MAX, written = 0;
	if (extra_has(r, "system"))
		return;
	for (size_t i = 0; i < r->o.system_count; i++) {
		if (!r->o.system[i].dynamic && !text_is_blank(r->o.system[i].text))
			last_static = i;
	}
	for (int dynamic = 0; dynamic <= 1; dynamic++) {
		for (size_t i = 0; i < r->o.system_count; i++) {
			const sheaf_system *piece = &r->o.system[i];
			if ((piece->dynamic != 0) != dynamic || text_is_blank(piece->text))
				continue;
			if (written++ == 0)
				buf_lit(out, "\"system\":[");
			else
				buf_char(out, ',');
			buf_lit(out, "{\"type\":\"text\",\"text\":");
			buf_json(out, piece->text);
			if (i == last_static)
				mark_write(w, CACHE_SYSTEM);
			buf_char(out, '}');
		}
	}
	if (written != 0)
		buf_lit(out, "],");
}

static bool begins_with_thinking(const message *m)
{
	return m->blocks[0].kind == SHEAF_PART_THINKING;
}

/*
 * Whether thinking may be asked for. While tools are being run, what the
 * assistant said since the user last spoke counts as one reply, and that must
 * have begun with thinking; a reply that is to be gone on with cannot think.
 */
static bool may_think(const rendering *r)
{
	bool good = true, fresh = true;
	for (size_t i = 0; i < r->message_count; i++) {
		const message *m = &r->messages[i];
		if (is_reply(m)) {
			good = good && (!fresh || begins_with_thinking(m));
			fresh = false;
		} else if (m->role != ROLE_TOOL) {
			fresh = true;
			if (i == 0 || is_reply(m - 1))
				good = true;
		}
	}
	return good && !is_reply(&r->messages[r->message_count - 1]);
}

/* The caller's own word counts, wherever he says it. */
static uint64_t max_tokens_of(const rendering *r)
{
	if (extra_has(r, "max_tokens")) {
		sheaf_str said = json_member_bytes(r->o.extra, "max_tokens");
		uint64_t value = 0;
		for (size_t i = 0; i < said.len && said.ptr[i] >= '0' && said.ptr[i] <= '9'; i++)
			value = value < UINT32_MAX ? value * 10 + (uint64_t)(said.ptr[i] - '0')
			                           : value;
		return value;
	}
	if (r->o.max_tokens != 0)
		return r->o.max_tokens;
	const sheaf_model_row *model = sheaf_models_find(r->o.models, r->o.provider, r->o.model, 0);
	return model != NULL && model->max_output != 0 ? model->max_output : MAX_TOKENS_DEFAULT;
}

static int thinking_ask(writer *w, uint64_t max_tokens)
{
	sheaf_str level = w->r->o.thinking_level;
	uint64_t budget = 0;
	if (level.len == 0 || extra_has(w->r, "thinking"))
		return 0;
	if (str_is(level, "off")) {
		buf_lit(w->out, "\"thinking\":{\"type\":\"disabled\"},");
		return 0;
	}
	for (size_t i = 0; i < COUNT_OF(budgets); i++) {
		if (str_is(level, budgets[i].level))
			budget = budgets[i].budget;
	}
	if (budget == 0)
		return 0;
	/* The reply itself must fit, too. */
	if (budget > max_tokens / 2)
		budget = max_tokens / 2 > BUDGET_MIN ? max_tokens / 2 : BUDGET_MIN;
	if (budget >= max_tokens || !may_think(w->r))
		return note_add(w->r, SHEAF_NOTE_THINKING_OFF, NULL, level);
	buf_lit(w->out, "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":");
	buf_u64(w->out, budget);
	buf_lit(w->out, "},");
	return 0;
}

int anthropic_write(rendering *r, buf *out, sheaf_error *err)
{
	writer w = {.r = r, .out = out};
	uint64_t max_tokens = max_tokens_of(r);
	cache_begin(&w.marks, r, out);
	marks_place(&w);
	buf_lit(out, "{\"model\":");
	buf_json(out, r->o.model);
	buf_lit(out, ",");
	if (!extra_has(r, "max_tokens")) {
		buf_lit(out, "\"max_tokens\":");
		buf_u64(out, max_tokens);
		buf_lit(out, ",");
	}
	if (r->o.stream && !extra_has(r, "stream"))
		buf_lit(out, "\"stream\":true,");
	if (thinking_ask(&w, max_tokens) != 0)
		return err_nomem(err);
	tools_write(&w);
	system_write(&w);
	messages_write(&w);
	extra_write(r, out, "messages");
	buf_char(out, '}');
	return 0;
}
