/*
 * Random conversations rendered for every provider: each request keeps the
 * provider's rules, nothing is lost that could be kept, what was mended is
 * noted, the log stays as it is, and the same comes out twice.
 *
 *   test_property_render [SEED]     one history, and the shortest that fails as well
 *
 * SHEAF_TEST_SCALE multiplies the number of histories.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "property/render_oracle.h"
#include "support/play.h"

#define HISTORIES 200000
#define STORE_TURNS 64 /* histories before a new store is opened */
#define JOBS_MAX 8

typedef struct runner {
	sheaf_store *store;
	unsigned stored;
	history h;
	oracle o;
	bool print; /* what fails */
	char why[WHY_ROOM * 2];
} runner;

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

static bool fails(runner *r, const char *format, const char *text)
{
	(void)snprintf(r->why, sizeof(r->why), "%s: %s", format, text);
	return false;
}

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
		return fails(r, sheaf_format_name(q->format), r->h.err.message);
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
		return fails(r, sheaf_format_name(how->format), r->h.err.message);
	bool good = str_eq(q->body, again->body) && q->note_count == again->note_count;
	sheaf_request_free(again);
	return good || fails(r, sheaf_format_name(how->format), "twice is not the same");
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
		return fails(r, name, r->h.err.message);
	bool good = keeps_rules(r, q) && check_twice(r, context, how, q);
	if (good && !oracle_request(&r->o, context, q, how))
		good = fails(r, name, r->o.why);
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
		return fails(r, "context", r->h.err.message);
	bool good = oracle_context(&r->o, context) || fails(r, "context", r->o.why);
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
		return fails(r, "log", "it has changed");
	return true;
}

static bool run(runner *r, const act *steps, size_t count, uint64_t seed, bool print)
{
	r->print = print;
	char name[32];
	bool good = true;
	if (r->stored++ % STORE_TURNS == 0) {
		sheaf_close(r->store);
		r->store = NULL;
		if (sheaf_open(&r->store, "memory:", NULL, &r->h.err) != 0)
			return fails(r, "store", r->h.err.message);
	}
	(void)snprintf(name, sizeof(name), "s%u", r->stored);
	r->h.long_results = seed % 50 == 0;
	int rc = history_open(&r->h, r->store, name);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = history_step(&r->h, &steps[i]);
	if (rc != 0)
		good = fails(r, "history", r->h.err.message);
	good = good && check_all(r, seed);
	if (print)
		history_print(&r->h);
	history_close(&r->h);
	return good;
}

/* Whether two reports say the same but for their numbers. */
static bool is_same_report(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strspn(a, "0123456789");
		b += strspn(b, "0123456789");
		if (*a != *b)
			return false;
		if (*a == '\0')
			return true;
	}
}

/* Leaves out steps as long as it still fails in the same way. */
static void report(runner *r, act *steps, size_t count, uint64_t seed)
{
	char first[sizeof(r->why)];
	memcpy(first, r->why, sizeof(first));
	(void)fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, r->why);
	for (size_t i = count; i-- > 0;) {
		act without[STEPS_MAX];
		memcpy(without, steps, count * sizeof(*steps));
		memmove(without + i, without + i + 1, (count - i - 1) * sizeof(*steps));
		if (run(r, without, count - 1, seed, false) || !is_same_report(first, r->why))
			continue;
		memcpy(steps, without, --count * sizeof(*steps));
	}
	for (size_t i = 0; i < count; i++)
		(void)fprintf(stderr, "%s%s",
		              i != 0 ? ", " : "at the least: ", step_name(&steps[i]));
	(void)fprintf(stderr, "\n");
	(void)run(r, steps, count, seed, true);
	(void)fprintf(stderr, "=> %s\nagain with: test_property_render %llu\n", r->why,
	              (unsigned long long)seed);
}

/* ---- Many ------------------------------------------------------------------ */

static atomic_ulong next_seed;
static atomic_uint failures;
static unsigned long histories;
static pthread_mutex_t reporting = PTHREAD_MUTEX_INITIALIZER;

static void *work(UNUSED void *ctx)
{
	runner *r = calloc(1, sizeof(*r));
	act steps[STEPS_MAX];
	if (r == NULL)
		abort();
	for (;;) {
		uint64_t seed = atomic_fetch_add(&next_seed, 1);
		if (seed >= histories || atomic_load(&failures) >= 5)
			break;
		size_t count = steps_make(steps, seed);
		if (run(r, steps, count, seed, false))
			continue;
		atomic_fetch_add(&failures, 1);
		(void)pthread_mutex_lock(&reporting);
		report(r, steps, count, seed);
		(void)pthread_mutex_unlock(&reporting);
	}
	sheaf_close(r->store);
	free(r);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[JOBS_MAX];
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t jobs = cores < 1 ? 1 : cores > JOBS_MAX ? JOBS_MAX : (size_t)cores;
	if (argc > 1) {
		atomic_store(&next_seed, strtoul(argv[1], NULL, 10));
		histories = atomic_load(&next_seed) + 1;
		jobs = 1;
	} else {
		histories = (unsigned long)(HISTORIES * test_scale());
	}
	for (size_t i = 0; i < jobs; i++) {
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			abort();
	}
	for (size_t i = 0; i < jobs; i++)
		(void)pthread_join(threads[i], NULL);
	unsigned failed = atomic_load(&failures);
	printf("%lu histories, %u failed\n", histories, failed);
	return failed != 0;
}
