/* Writes a session for Dive: a header, and an event for each message as a model would be sent it. */
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "convert/dive.h"
#include "convert/export_wire.h"
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

static void stamp_put(buf *out, const char *before, int64_t us)
{
	char stamp[CLOCK_TEXT + 1];
	clock_format(stamp, us);
	buf_format(out, "%s\"%s\"", before, stamp);
}

static int line_end(export *ex, writing *w)
{
	buf_lit(&w->line, "}}\n");
	int rc = buf_status(&w->line, ex->err);
	if (rc == 0)
		rc = export_write(ex, buf_view(&w->line));
	buf_reset(&w->line);
	return rc;
}

static int header_write(export *ex, writing *w)
{
	const sheaf_session_info *info = ex->head->info;
	buf_lit(&w->line, "{\"line_type\":\"header\",\"data\":{\"id\":");
	buf_json(&w->line, sheaf_str_of(ex->id));
	if (info->name.len != 0) {
		buf_lit(&w->line, ",\"title\":");
		buf_json(&w->line, info->name);
	}
	stamp_put(&w->line, ",\"created_at\":", info->created_us);
	stamp_put(&w->line, ",\"updated_at\":", info->modified_us);
	buf_lit(&w->line, ",\"events\":null");
	return line_end(ex, w);
}

/* Ids are made of the time and a number, as Dive makes its own: the same every time. */
static int event_write(export *ex, writing *w, const char *type, sheaf_str messages,
                       int64_t time_us)
{
	w->count++;
	buf_format(
		&w->line,
		"{\"line_type\":\"event\",\"data\":{\"id\":\"evt-%lld-%llu-%llu\",\"type\":\"%s\"",
		(long long)time_us, (unsigned long long)ex->from_seq, (unsigned long long)w->count,
		type);
	stamp_put(&w->line, ",\"timestamp\":", time_us);
	buf_lit(&w->line, ",\"messages\":[");
	buf_str(&w->line, messages);
	buf_char(&w->line, ']');
	return line_end(ex, w);
}

static int element_write(export *ex, void *ctx, wire_phase phase, sheaf_str element,
                         int64_t time_us)
{
	writing *w = ctx;
	if (phase == WIRE_SAID)
		return event_write(ex, w, "turn", element, time_us);
	if (phase == WIRE_REPLACED)
		return event_write(ex, w, "compaction", buf_view(&w->replacement), time_us);
	if (w->replacement.len != 0)
		buf_char(&w->replacement, ',');
	buf_str(&w->replacement, element);
	return buf_status(&w->replacement, ex->err);
}

int dive_write(export *ex)
{
	_cleanup_(writing_free) writing w = {
		.line = BUF_INIT(SHEAF_CONTEXT_BYTES_DEFAULT * 2),
		.replacement = BUF_INIT(SHEAF_CONTEXT_BYTES_DEFAULT * 2),
	};
	const wire_way way = {SHEAF_FORMAT_ANTHROPIC, "messages", "claude-sonnet-4-5",
	                      element_write, &w};
	int rc = ex->from_seq == 0 ? header_write(ex, &w) : 0;
	return rc == 0 ? export_wire(ex, &way) : rc;
}
