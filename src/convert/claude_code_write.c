/* Writes a session for Claude Code: what a model would be sent, one line for each block of a reply. */
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "convert/claude_code.h"
#include "convert/export_wire.h"
#include "sheaf/render.h"

/* The version whose lines these are. */
#define CC_VERSION "2.1.197"
/* A reply that no model of the provider made. */
#define CC_NO_MODEL "<synthetic>"

typedef struct writing {
	buf line;
	json_doc *doc;
	char parent[SHEAF_ID_ROOM]; /* the line before; "" at the beginning */
	sheaf_str model;
	uint64_t count; /* of lines made */
	bool replacing; /* a compaction's messages are coming */
	bool summary;   /* the next line sums up what was before it */
} writing;

static void writing_free(writing *w)
{
	buf_free(&w->line);
	json_free(w->doc);
}

/* The same lines get the same ids every time. */
static void uuid_make(const export *ex, writing *w, char out[WIRE_ID_ROOM])
{
	char name[SHEAF_ID_ROOM + 32];
	int len = snprintf(name, sizeof(name), "%s/%llu", ex->id, (unsigned long long)w->count++);
	uint64_t a = str_hash(str_make(name, (size_t)len));
	uint64_t b = str_hash(str_make(name + 1, (size_t)len - 1)) * 0x9e3779b97f4a7c15U;
	(void)snprintf(out, WIRE_ID_ROOM, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
	               (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
	               0x8000U | (unsigned)(b >> 50 & 0x3fff),
	               (unsigned long long)(b & 0xffffffffffff));
}

static void string_put(buf *out, const char *before, sheaf_str text)
{
	buf_str(out, sheaf_str_of(before));
	buf_json(out, text);
}

/* Begins a line that hangs on the one before it. */
static void line_begin(writing *w, bool root)
{
	buf_reset(&w->line);
	if (root || w->parent[0] == '\0')
		buf_lit(&w->line, "{\"parentUuid\":null");
	else
		string_put(&w->line, "{\"parentUuid\":", sheaf_str_of(w->parent));
	if (root && w->parent[0] != '\0')
		string_put(&w->line, ",\"logicalParentUuid\":", sheaf_str_of(w->parent));
	buf_lit(&w->line, ",\"isSidechain\":false");
}

static int line_end(export *ex, writing *w, int64_t time_us)
{
	char uuid[WIRE_ID_ROOM], stamp[CLOCK_TEXT + 1];
	uuid_make(ex, w, uuid);
	clock_format(stamp, time_us);
	string_put(&w->line, ",\"uuid\":", sheaf_str_of(uuid));
	buf_format(&w->line, ",\"timestamp\":\"%.23sZ\"", stamp); /* milliseconds */
	string_put(&w->line, ",\"userType\":\"external\",\"cwd\":", export_cwd(ex));
	string_put(&w->line, ",\"sessionId\":", sheaf_str_of(ex->id));
	buf_lit(&w->line, ",\"version\":\"" CC_VERSION "\",\"gitBranch\":\"\"}\n");
	memcpy(w->parent, uuid, sizeof(uuid));
	int rc = buf_status(&w->line, ex->err);
	return rc == 0 ? export_write(ex, buf_view(&w->line)) : rc;
}

/* Messages stand for what was said before, and none of them is a summary of it. */
static int no_summary_write(export *ex, writing *w, int64_t time_us)
{
	line_begin(w, false);
	buf_lit(&w->line,
	        ",\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"" WIRE_WHAT_FOLLOWS
	        "\"},\"isCompactSummary\":true,\"isVisibleInTranscriptOnly\":true");
	w->summary = false;
	return line_end(ex, w, time_us);
}

static int user_write(export *ex, writing *w, sheaf_str element, int64_t time_us)
{
	line_begin(w, false);
	buf_lit(&w->line, ",\"type\":\"user\",\"message\":");
	buf_str(&w->line, element);
	if (w->summary)
		buf_lit(&w->line, ",\"isCompactSummary\":true,\"isVisibleInTranscriptOnly\":true");
	w->summary = false;
	return line_end(ex, w, time_us);
}

/* One line for each block, all with the id of the reply. */
static int reply_write(export *ex, writing *w, value element, int64_t time_us)
{
	value block, content = value_get(element, "content");
	size_t left = json_count(content.v);
	char reply[WIRE_ID_ROOM];
	bool calls = false;
	int rc = 0;
	uuid_make(ex, w, reply);
	for (value_iter it = value_each(content); value_next(&it, &block);)
		calls = calls || str_is(value_string(block, "type"), "tool_use");
	for (value_iter it = value_each(content); rc == 0 && value_next(&it, &block);) {
		line_begin(w, false);
		buf_lit(&w->line, ",\"type\":\"assistant\",\"message\":{\"id\":\"msg_");
		buf_str(&w->line, sheaf_str_of(reply));
		string_put(&w->line,
		           "\",\"type\":\"message\",\"role\":\"assistant\",\"model\":", w->model);
		buf_lit(&w->line, ",\"content\":[");
		buf_str(&w->line, block.text);
		buf_lit(&w->line, "],\"stop_reason\":");
		buf_str(&w->line, --left != 0 ? SHEAF_STR("null")
		                  : calls     ? SHEAF_STR("\"tool_use\"")
		                              : SHEAF_STR("\"end_turn\""));
		buf_lit(&w->line, ",\"stop_sequence\":null,\"usage\":{\"input_tokens\":0,"
		                  "\"output_tokens\":0}}");
		rc = line_end(ex, w, time_us);
	}
	return rc;
}

static int boundary_write(export *ex, writing *w, int64_t time_us)
{
	line_begin(w, true);
	buf_lit(&w->line,
	        ",\"type\":\"system\",\"subtype\":\"compact_boundary\","
	        "\"content\":\"Conversation compacted\",\"isMeta\":false,\"level\":\"info\","
	        "\"compactMetadata\":{\"trigger\":\"manual\",\"preTokens\":0}");
	w->summary = true;
	return line_end(ex, w, time_us);
}

static int element_write(export *ex, void *ctx, wire_phase phase, sheaf_str element,
                         int64_t time_us)
{
	writing *w = ctx;
	int rc = 0;
	if (phase == WIRE_REPLACED) {
		w->replacing = false;
		return 0;
	}
	if (phase == WIRE_REPLACEMENT && !w->replacing)
		rc = boundary_write(ex, w, time_us);
	w->replacing = phase == WIRE_REPLACEMENT;
	if (rc == 0)
		rc = json_parse(&w->doc, element, ex->err);
	if (rc != 0)
		return rc;
	value v = {json_root(w->doc), element};
	if (w->summary && json_count(json_get(v.v, "content")) > 1)
		rc = no_summary_write(ex, w, time_us);
	if (rc != 0)
		return rc;
	if (str_is(value_string(v, "role"), "assistant"))
		return reply_write(ex, w, v, time_us);
	return user_write(ex, w, element, time_us);
}

/* The line that what is new hangs on, and who made the replies. */
static int place_find(export *ex, writing *w)
{
	const sheaf_records *path;
	int rc = export_path(ex, &path);
	w->model = SHEAF_STR(CC_NO_MODEL);
	for (size_t i = 0; rc == 0 && i < path->count; i++) {
		const sheaf_entry *e = path->items[i];
		if (e->seq <= ex->from_seq)
			str_copy_cut(w->parent, sizeof(w->parent), e->id);
		if (e->message != NULL && str_is(e->message->provider, "anthropic") &&
		    e->message->model.len != 0)
			w->model = e->message->model;
	}
	/* A line that gave two entries is named by what is before the dot. */
	char *dot = strchr(w->parent, '.');
	if (dot != NULL)
		*dot = '\0';
	return rc;
}

int cc_write(export *ex)
{
	_cleanup_(writing_free) writing w = {.line = BUF_INIT(SHEAF_CONTEXT_BYTES_DEFAULT * 2)};
	const wire_way way = {SHEAF_FORMAT_ANTHROPIC, "messages", "claude-sonnet-4-5",
	                      element_write, &w};
	w.count = ex->from_seq;
	int rc = place_find(ex, &w);
	if (rc == 0)
		rc = export_wire(ex, &way);
	return rc;
}

/* A sub-agent's lies below its parent's name. */
int cc_place(export *ex)
{
	char cwd[1024];
	const char *agent = strstr(ex->id, ".agent-");
	str_copy_cut(cwd, sizeof(cwd), export_cwd(ex));
	for (char *p = cwd; *p != '\0'; p++) {
		bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		             (*p >= '0' && *p <= '9');
		if (!plain)
			*p = '-';
	}
	if (agent != NULL)
		return export_place(ex, ".claude/projects/%s/%.*s/subagents/%s.jsonl", cwd,
		                    (int)(agent - ex->id), ex->id, agent + 1);
	return export_place(ex, ".claude/projects/%s/%s.jsonl", cwd, ex->id);
}
