/* Rendering: a request body from a context, against yyjson writing the same body. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "bench.h"

#define TURNS 50 /* of four messages each */
#define TOOLS 8
#define TEXT 900
#define OUTPUT 3600 /* of a tool's answer: about what files and commands give */

static const char schema[] =
	"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\",\"description\":"
	"\"Where the file is\"},\"offset\":{\"type\":\"integer\",\"minimum\":0},\"limit\":"
	"{\"type\":\"integer\",\"maximum\":2000}},\"required\":[\"path\"]}";

/* Source, output and prose as agents have them: lines, some quotes, now and then another script. */
static sheaf_str sample(size_t len)
{
	static const char line[] =
		"The file src/main.c has 214 lines, and the loop in it ends too early.\n"
		"\tif (strcmp(name, \"--help\") == 0)\n"
		"\t\treturn usage(stdout); /* caf\xc3\xa9: \xe8\xaa\x9e */\n"
		"ok 12 - reads the header of a file that was cut off in the middle\n";
	static char text[OUTPUT];
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = line[i % (sizeof(line) - 1)];
	/* Not in the middle of a character. */
	while (len > 0 && (text[len - 1] & 0x80) != 0)
		len--;
	return (sheaf_str){text, len};
}

static void append(sheaf_session *s, sheaf_message *m)
{
	sheaf_error err;
	bench_check(sheaf_session_append_message(s, m, NULL, NULL, NULL, &err), &err, "append");
	sheaf_message_free(m);
}

/* A question, a call, its answer, a reply: what an agent's session is made of. */
static void turn(sheaf_session *s, unsigned number)
{
	const sheaf_str text = sample(TEXT);
	char id[32];
	snprintf(id, sizeof(id), "toolu_%012u", number);
	sheaf_message *m = sheaf_message_new("user");
	sheaf_message_text(m, text);
	append(s, m);
	m = sheaf_message_new("assistant");
	sheaf_message_text(m, sample(120));
	sheaf_message_tool_use(m, sheaf_str_of(id), SHEAF_STR("tool_3"),
	                       SHEAF_STR("{\"path\":\"src/main.c\",\"offset\":0,\"limit\":2000}"));
	append(s, m);
	m = sheaf_message_new("tool");
	sheaf_message_tool_result(m, sheaf_str_of(id), SHEAF_STR("tool_3"), sample(OUTPUT), 0);
	append(s, m);
	m = sheaf_message_new("assistant");
	sheaf_message_text(m, text);
	append(s, m);
}

static sheaf_context *make_context(sheaf_store **store)
{
	sheaf_session *s;
	sheaf_context *c;
	sheaf_error err;
	sheaf_key key = sheaf_key_of("render");
	bench_check(sheaf_open(store, "memory:", NULL, &err), &err, "open a store");
	bench_check(sheaf_session_open(&s, *store, &key, NULL, &err), &err, "open");
	for (unsigned i = 0; i < TURNS; i++)
		turn(s, i);
	bench_check(sheaf_session_context(&c, s, NULL, &err), &err, "context");
	sheaf_session_close(s);
	if (c->count != 4 * TURNS)
		bench_check(SHEAF_CONTEXT, NULL, "a context of another length");
	return c;
}

static double render_ours(const sheaf_context *c, const sheaf_render_options *how)
{
	sheaf_request *q;
	sheaf_error err;
	double t = bench_cpu_us();
	bench_check(sheaf_render(&q, c, how, &err), &err, "render");
	sheaf_request_free(q);
	return bench_cpu_us() - t;
}

static double render_bare(const yyjson_doc *doc)
{
	size_t len;
	double t = bench_cpu_us();
	char *text = yyjson_write(doc, 0, &len);
	if (text == NULL)
		bench_check(SHEAF_NOMEM, NULL, "write");
	free(text);
	return bench_cpu_us() - t;
}

static void render_format(bench *b, const sheaf_context *c, sheaf_render_options *how)
{
	enum {
		ROUNDS = 1001
	};
	size_t rounds = b->quick ? 201 : ROUNDS;
	static double ours[ROUNDS], bare[ROUNDS];
	char name[64];
	sheaf_request *q;
	sheaf_error err;

	bench_check(sheaf_render(&q, c, how, &err), &err, "render");
	yyjson_doc *doc = yyjson_read(q->body.ptr, q->body.len, 0);
	size_t len = 0;
	char *again = yyjson_write(doc, 0, &len);
	if (again == NULL || len != q->body.len || memcmp(again, q->body.ptr, len) != 0)
		bench_check(SHEAF_FORMAT, NULL, "write the same bytes");
	free(again);
	sheaf_request_free(q);
	for (size_t i = 0; i < rounds; i++) {
		if (bench_random() & 1) {
			ours[i] = render_ours(c, how);
			bare[i] = render_bare(doc);
		} else {
			bare[i] = render_bare(doc);
			ours[i] = render_ours(c, how);
		}
	}
	yyjson_doc_free(doc);
	snprintf(name, sizeof(name), "render-%s", sheaf_format_name(how->format));
	bench_report(b, name, bench_median(ours, rounds), "us", bench_median(bare, rounds), 2,
	             false);
}

int bench_render(bench *b)
{
	/* Bodies stay in memory the process has: how malloc gets it would decide otherwise. */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	sheaf_store *store;
	sheaf_context *c = make_context(&store);
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	sheaf_tool tools[TOOLS];
	char names[TOOLS][16];
	const sheaf_system system[] = {{sample(TEXT), 0, 0}, {sample(TEXT), 1, 0}};
	for (unsigned i = 0; i < TOOLS; i++) {
		snprintf(names[i], sizeof(names[i]), "tool_%u", i);
		tools[i] = (sheaf_tool){sheaf_str_of(names[i]), sample(300), SHEAF_STR(schema)};
	}
	how.model = SHEAF_STR("claude-sonnet-4-5");
	how.system = system;
	how.system_count = 2;
	how.tools = tools;
	how.tool_count = TOOLS;
	for (how.format = SHEAF_FORMAT_ANTHROPIC; how.format <= SHEAF_FORMAT_GEMINI; how.format++)
		render_format(b, c, &how);
	sheaf_context_free(c);
	sheaf_close(store);
	return 0;
}
