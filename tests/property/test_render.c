/*
 * Random conversations rendered for every provider: each request keeps the
 * provider's rules, nothing is lost that could be kept, what was mended is
 * noted, the log stays as it is, and the same comes out twice.
 *
 *   test_property_render [SEED]     one history, and the shortest that fails as well
 *
 * SHEAF_TEST_SCALE multiplies the number of histories.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "property/render_many.h"

#define HISTORIES 200000

/* ---- What is asked for ----------------------------------------------------- */

/* clang-format off */
#define TEXT(literal) {literal, sizeof(literal) - 1}
/* clang-format on */

static const sheaf_tool some_tools[] = {
	{TEXT("bash"), TEXT("runs"), TEXT("{\"type\":\"object\",\"properties\":{\"a\":{}}}")},
	{TEXT("read_file"), {NULL, 0}, {NULL, 0}},
};
static const sheaf_system some_system[] = {
	{TEXT("now is now"), 1, 0},
	{TEXT("be good"), 0, 0},
	{TEXT(""), 0, 0},
};

/* Everything about one request besides the history. */
static sheaf_render_options options_make(int32_t format, chance *c)
{
	static const char *const levels[] = {NULL, NULL, "off", "low", "high", "odd"};
	static const char *const models[][2] = {
		[SHEAF_FORMAT_ANTHROPIC] = {"claude-sonnet-4-5", "claude-opus-4-8"},
		[SHEAF_FORMAT_OPENAI_CHAT] = {"gpt-5", "deepseek-chat"},
		[SHEAF_FORMAT_OPENAI_RESPONSES] = {"gpt-5", "gpt-5.1"},
		[SHEAF_FORMAT_GEMINI] = {"gemini-3-pro-preview", "gemini-2.5-flash"},
	};
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	how.format = format;
	how.model = sheaf_str_of(models[format][chance_percent(c, 30)]);
	how.stream = chance_percent(c, 30);
	how.system = some_system;
	how.system_count = chance_below(c, COUNT_OF(some_system) + 1);
	how.tools = some_tools;
	how.tool_count = chance_below(c, COUNT_OF(some_tools) + 1);
	const char *level = levels[chance_below(c, COUNT_OF(levels))];
	if (level != NULL)
		how.thinking_level = sheaf_str_of(level);
	how.cache = (int32_t)chance_below(c, 4);
	how.message_ttl = chance_percent(c, 20) ? 3600 : 0;
	how.max_tokens = chance_percent(c, 30) ? 1000 * (1 + chance_below(c, 60)) : 0;
	how.thinking_as_text = chance_percent(c, 10);
	how.no_images = chance_percent(c, 10);
	if (chance_percent(c, 20))
		how.cache_key = SHEAF_STR("conversation");
	if (chance_percent(c, 20))
		how.extra = format == SHEAF_FORMAT_GEMINI
		                    ? SHEAF_STR("{\"generationConfig\":{\"temperature\":1}}")
		                    : SHEAF_STR("{\"temperature\":1,\"metadata\":{\"a\":\"b\"}}");
	return how;
}

/* ---- One history ----------------------------------------------------------- */

/* The rules of Gemini depend on the model, which is not in the body. */
static bool keeps_rules(runner *r, const sheaf_request *q)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SIZE_MAX / 2);
	sheaf_violations *found;
	if (q->format == SHEAF_FORMAT_GEMINI) {
		buf_lit(&body, "{\"model\":");
		buf_json(&body, q->model);
		buf_char(&body, ',');
		buf_add(&body, q->body.ptr + 1, q->body.len - 1);
	} else {
		buf_str(&body, q->body);
	}
	if (sheaf_request_check(&found, q->format, buf_view(&body), &r->h.err) != 0)
		return runner_fails(r, sheaf_format_name(q->format), r->h.err.message);
	bool good = found->count == 0;
	if (!good)
		(void)snprintf(r->why, sizeof(r->why), "%s: %s at %s", sheaf_format_name(q->format),
		               found->items[0]->rule.ptr, found->items[0]->where.ptr);
	sheaf_violations_free(found);
	return good;
}

static bool check_twice(runner *r, const sheaf_context *context, const sheaf_render_options *how,
                        const sheaf_request *q)
{
	sheaf_request *again;
	if (sheaf_render(&again, context, how, &r->h.err) != 0)
		return runner_fails(r, sheaf_format_name(how->format), r->h.err.message);
	bool good = str_eq(q->body, again->body) && q->note_count == again->note_count;
	sheaf_request_free(again);
	return good || runner_fails(r, sheaf_format_name(how->format), "twice is not the same");
}

static bool check_request(runner *r, const sheaf_context *context, const sheaf_render_options *how)
{
	const char *name = sheaf_format_name(how->format);
	sheaf_request *q;
	int rc = sheaf_render(&q, context, how, &r->h.err);
	if (rc == SHEAF_CONTEXT && oracle_nothing(&r->o))
		return true;
	if (rc == SHEAF_TOO_LARGE && how->elide != 0)
		return true;
	if (rc != 0)
		return runner_fails(r, name, r->h.err.message);
	bool good = keeps_rules(r, q) && check_twice(r, context, how, q);
	if (good && !oracle_request(&r->o, context, q, how))
		good = runner_fails(r, name, r->o.why);
	if (!good && r->print)
		(void)fprintf(stderr, "%s\n", q->body.ptr);
	sheaf_request_free(q);
	return good;
}

static bool check_format(runner *r, int32_t format, size_t leaf, chance *c)
{
	sheaf_context_options which = SHEAF_CONTEXT_OPTIONS_INIT;
	sheaf_render_options how = options_make(format, c);
	sheaf_context *context;
	if (chance_percent(c, 60)) {
		which.provider = sheaf_str_of(sheaf_format_provider(format));
		which.model = how.model;
	}
	which.leaf = leaf != NONE ? sheaf_str_of(r->h.entries[leaf].id) : SHEAF_STR("");
	if (r->h.long_results) {
		how.elide = SHEAF_ELIDE_IMAGES | SHEAF_ELIDE_OUTPUTS;
		how.bytes_max = 20000;
	}
	oracle_make(&r->o, &r->h, leaf, which.provider, which.model);
	if (sheaf_session_context(&context, r->h.session, &which, &r->h.err) != 0)
		return runner_fails(r, "context", r->h.err.message);
	bool good = oracle_context(&r->o, context) || runner_fails(r, "context", r->o.why);
	good = good && check_request(r, context, &how);
	sheaf_context_free(context);
	return good;
}

/* The bytes of the log, as a number. */
static uint64_t log_hash(runner *r, uint64_t *revision)
{
	sheaf_read_options all = SHEAF_READ_OPTIONS_INIT;
	sheaf_records *records;
	uint64_t hash = 1;
	all.raw = 1;
	all.limit = 1000;
	if (sheaf_session_records(&records, r->h.session, &all, &r->h.err) != 0)
		return 0;
	for (size_t i = 0; i < records->count; i++)
		hash = hash * UINT64_C(0x100000001b3) ^ str_hash(records->items[i]->line);
	*revision = records->count != 0 ? records->items[records->count - 1]->seq : 0;
	sheaf_records_free(records);
	return hash;
}

static bool check_all(runner *r, uint64_t seed)
{
	chance c = {seed ^ UINT64_C(0x5eed)};
	uint64_t before, after;
	size_t leaf = r->h.leaf;
	if (r->h.count != 0 && chance_percent(&c, 20))
		leaf = chance_below(&c, r->h.count);
	uint64_t hash = log_hash(r, &before);
	for (int32_t format = 1; format <= 4; format++) {
		if (!check_format(r, format, leaf, &c))
			return false;
	}
	if (log_hash(r, &after) != hash || before != after)
		return runner_fails(r, "log", "it has changed");
	return true;
}

int main(int argc, char **argv)
{
	return many_run(argc, argv, HISTORIES, check_all);
}
