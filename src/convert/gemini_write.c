/* Writes a chat as Gemini CLI's log: any session as the contents it goes on from. */
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "convert/export_wire.h"
#include "convert/gemini_message.h"
#include "sheaf/render.h"

typedef struct writing {
	buf line;
	buf replacement; /* messages that stand for all before them */
	uint64_t count;
} writing;

static void writing_free(writing *w)
{
	buf_free(&w->line);
	buf_free(&w->replacement);
}

static void stamp_put(buf *out, int64_t us)
{
	char stamp[CLOCK_TEXT + 1];
	clock_format(stamp, us);
	buf_char(out, '"');
	buf_str(out, sheaf_str_of(stamp));
	buf_char(out, '"');
}

static int line_end(export *ex, writing *w)
{
	buf_char(&w->line, '\n');
	int rc = buf_status(&w->line, ex->err);
	if (rc == 0)
		rc = export_write(ex, buf_view(&w->line));
	buf_reset(&w->line);
	return rc;
}

static int meta_write(export *ex, writing *w)
{
	const sheaf_session_info *info = ex->head->info;
	buf_lit(&w->line, "{\"sessionId\":");
	buf_json(&w->line, sheaf_str_of(ex->id));
	buf_lit(&w->line, ",\"projectHash\":\"sheaf\",\"startTime\":");
	stamp_put(&w->line, info->created_us);
	buf_lit(&w->line, ",\"lastUpdated\":");
	stamp_put(&w->line, info->modified_us);
	buf_lit(&w->line, ",\"kind\":\"main\"");
	if (ex->cwd.len != 0) {
		buf_lit(&w->line, ",\"directories\":[");
		buf_json(&w->line, ex->cwd);
		buf_char(&w->line, ']');
	}
	if (info->name.len != 0) {
		buf_lit(&w->line, ",\"summary\":");
		buf_json(&w->line, info->name);
	}
	buf_char(&w->line, '}');
	return line_end(ex, w);
}

/* Ids are made of the session's and a number: the same every time. */
static void message_put(const export *ex, writing *w, buf *out, sheaf_str element, int64_t time_us)
{
	bool user = str_is(json_member_bytes(element, "role"), "\"user\"");
	w->count++;
	buf_lit(out, "{\"id\":\"");
	buf_str(out, sheaf_str_of(ex->id));
	buf_format(out, "-%llu-%llu\",\"timestamp\":", (unsigned long long)ex->from_seq,
	           (unsigned long long)w->count);
	stamp_put(out, time_us);
	buf_lit(out, ",\"type\":\"");
	buf_str(out, user ? SHEAF_STR("user") : SHEAF_STR("gemini"));
	buf_lit(out, "\",\"content\":");
	buf_str(out, json_member_bytes(element, "parts"));
	buf_char(out, '}');
}

static int element_write(export *ex, void *ctx, wire_phase phase, sheaf_str element,
                         int64_t time_us)
{
	writing *w = ctx;
	if (phase == WIRE_REPLACEMENT) {
		if (w->replacement.len != 0)
			buf_char(&w->replacement, ',');
		message_put(ex, w, &w->replacement, element, time_us);
		return buf_status(&w->replacement, ex->err);
	}
	if (phase == WIRE_REPLACED) {
		buf_lit(&w->line, "{\"$set\":{\"messages\":[");
		buf_str(&w->line, buf_view(&w->replacement));
		buf_lit(&w->line, "]}}");
		return line_end(ex, w);
	}
	message_put(ex, w, &w->line, element, time_us);
	return line_end(ex, w);
}

int gemini_cli_write(export *ex)
{
	_cleanup_(writing_free) writing w = {
		.line = BUF_INIT(SHEAF_CONTEXT_BYTES_DEFAULT * 2),
		.replacement = BUF_INIT(SHEAF_CONTEXT_BYTES_DEFAULT * 2),
	};
	const wire_way way = {SHEAF_FORMAT_GEMINI, "contents", "gemini-2.5-pro", element_write, &w};
	int rc = ex->from_seq == 0 ? meta_write(ex, &w) : 0;
	return rc == 0 ? export_wire(ex, &way) : rc;
}

/* A project's directory is named after it; another project of that name has a number behind it. */
int gemini_cli_place(export *ex)
{
	char name[256], stamp[CLOCK_TEXT + 1];
	sheaf_str cwd = export_cwd(ex);
	size_t from = cwd.len, len = 0;
	while (from > 0 && cwd.ptr[from - 1] != '/')
		from--;
	for (size_t i = from; i < cwd.len && len + 1 < sizeof(name); i++) {
		char c = cwd.ptr[i];
		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		if (plain || (len != 0 && name[len - 1] != '-'))
			name[len++] = plain ? c : '-';
	}
	len -= len != 0 && name[len - 1] == '-';
	name[len] = '\0';
	clock_format(stamp, ex->head->info->created_us);
	return export_place(ex, ".gemini/tmp/%s/chats/session-%.13s-%.2s-%.8s.jsonl",
	                    len != 0 ? name : "project", stamp, stamp + 14, ex->id);
}
