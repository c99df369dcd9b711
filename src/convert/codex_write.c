/* Writes a rollout: what any session comes to as the items Codex goes on from. */
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "convert/codex.h"
#include "convert/export_wire.h"
#include "convert/import_inside.h"
#include "convert/parts.h"
#include "sheaf/render.h"

/* The version whose rollouts these are. */
#define CODEX_VERSION "0.135.0"

typedef struct writing {
	buf line;
	buf replacement; /* items that stand for all before them */
	json_doc *doc;
	bool numbered;    /* the rollout's lines have numbers: the second generation */
	uint64_t ordinal; /* of the next line */
	uint64_t turn;    /* the number of the line that began it */
} writing;

static void writing_free(writing *w)
{
	buf_free(&w->line);
	buf_free(&w->replacement);
	json_free(w->doc);
}

static void line_begin(writing *w, int64_t time_us, const char *type)
{
	char stamp[CLOCK_TEXT + 1];
	clock_format(stamp, time_us);
	buf_reset(&w->line);
	buf_lit(&w->line, "{\"timestamp\":\"");
	buf_str(&w->line, sheaf_str_of(stamp));
	buf_char(&w->line, '"');
	if (w->numbered)
		buf_format(&w->line, ",\"ordinal\":%llu", (unsigned long long)w->ordinal++);
	buf_lit(&w->line, ",\"type\":\"");
	buf_str(&w->line, sheaf_str_of(type));
	buf_lit(&w->line, "\",\"payload\":");
}

static int line_end(export *ex, writing *w)
{
	buf_lit(&w->line, "}\n");
	int rc = buf_status(&w->line, ex->err);
	return rc == 0 ? export_write(ex, buf_view(&w->line)) : rc;
}

static int meta_write(export *ex, writing *w)
{
	const sheaf_session_info *info = ex->head->info;
	char stamp[CLOCK_TEXT + 1];
	clock_format(stamp, info->created_us);
	line_begin(w, info->created_us, "session_meta");
	buf_lit(&w->line, "{\"id\":");
	buf_json(&w->line, sheaf_str_of(ex->id));
	buf_lit(&w->line, ",\"timestamp\":\"");
	buf_str(&w->line, sheaf_str_of(stamp));
	buf_lit(&w->line, "\",\"cwd\":");
	buf_json(&w->line, export_cwd(ex));
	buf_lit(&w->line, ",\"originator\":\"sheaf\",\"cli_version\":\"" CODEX_VERSION
	                  "\",\"source\":\"cli\"}");
	return line_end(ex, w);
}

static void said_put(writing *w, bool user, sheaf_str text)
{
	buf_lit(&w->line, "{\"type\":\"");
	buf_str(&w->line, user ? SHEAF_STR("user_message") : SHEAF_STR("agent_message"));
	buf_lit(&w->line, "\",\"message\":");
	buf_json(&w->line, text);
	buf_char(&w->line, '}');
}

/* The same in the second generation. */
static void item_put(const export *ex, writing *w, bool user, sheaf_str text, int64_t time_us)
{
	long long ms = (long long)(time_us / 1000);
	buf_lit(&w->line, "{\"type\":\"item_completed\",\"thread_id\":");
	buf_json(&w->line, sheaf_str_of(ex->id));
	buf_format(&w->line,
	           ",\"turn_id\":\"sheaf-%llu\",\"item\":{\"type\":\"%s\",\"id\":\"item-%llu\"",
	           (unsigned long long)w->turn, user ? "UserMessage" : "AgentMessage",
	           (unsigned long long)w->ordinal);
	buf_str(&w->line, user ? SHEAF_STR(",\"content\":[{\"type\":\"text\",\"text\":")
	                       : SHEAF_STR(",\"content\":[{\"type\":\"Text\",\"text\":"));
	buf_json(&w->line, text);
	buf_str(&w->line, user ? SHEAF_STR(",\"text_elements\":[]}]}") : SHEAF_STR("}]}"));
	buf_format(&w->line, ",\"started_at_ms\":%lld,\"completed_at_ms\":%lld}", ms, ms);
}

/* Codex shows what was said from these, and lists sessions by them. */
static int event_write(export *ex, writing *w, sheaf_str element, int64_t time_us)
{
	int rc = json_parse(&w->doc, element, ex->err);
	if (rc != 0)
		return rc;
	value item = {json_root(w->doc), element}, part;
	sheaf_str role = value_string(item, "role");
	bool user = str_is(role, "user");
	if (!str_is(value_string(item, "type"), "message") || (!user && !str_is(role, "assistant")))
		return 0;
	for (value_iter it = value_each(value_get(item, "content")); value_next(&it, &part);) {
		sheaf_str text = value_string(part, "text");
		if (text.len == 0)
			continue;
		if (user)
			w->turn = w->ordinal;
		line_begin(w, time_us, "event_msg");
		if (w->numbered)
			item_put(ex, w, user, text, time_us);
		else
			said_put(w, user, text);
		rc = line_end(ex, w);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int element_write(export *ex, void *ctx, wire_phase phase, sheaf_str element,
                         int64_t time_us)
{
	writing *w = ctx;
	if (phase == WIRE_REPLACEMENT) {
		if (w->replacement.len != 0)
			buf_char(&w->replacement, ',');
		buf_str(&w->replacement, element);
		return buf_status(&w->replacement, ex->err);
	}
	if (phase == WIRE_REPLACED) {
		line_begin(w, time_us, "compacted");
		buf_lit(&w->line, "{\"message\":\"\",\"replacement_history\":[");
		buf_str(&w->line, buf_view(&w->replacement));
		buf_lit(&w->line, "]}");
		return line_end(ex, w);
	}
	line_begin(w, time_us, "response_item");
	buf_str(&w->line, element);
	int rc = line_end(ex, w);
	return rc == 0 ? event_write(ex, w, element, time_us) : rc;
}

/* The number that a line has, if it is one of this format. */
static int number_find(export *ex, writing *w, const sheaf_entry *record)
{
	sheaf_str raw, number;
	int rc = export_raw(ex, record, &raw);
	if (rc != 0 || raw.ptr == NULL)
		return rc;
	rc = json_check(raw, JSON_OBJECT, NULL);
	if (rc != 0)
		return rc == SHEAF_NOMEM ? err_nomem(ex->err) : 0;
	number = json_member_bytes(raw, "ordinal");
	if (number.len != 0) {
		w->numbered = true;
		w->ordinal = number_read(number) + 1;
	}
	return 0;
}

/* What is added to numbered lines goes on counting. */
static int numbers_find(export *ex, writing *w)
{
	const sheaf_records *page;
	uint64_t seq = 0, until = ex->from_seq;
	int rc = 1;
	ex->from_seq = 0;
	while (seq < until && (rc = export_records(ex, &seq, &page)) == 1) {
		int code = 0;
		for (size_t i = 0; code == 0 && i < page->count; i++) {
			if (page->items[i]->seq < until)
				code = number_find(ex, w, page->items[i]);
		}
		if (code != 0)
			return code;
	}
	ex->from_seq = until;
	return rc < 0 ? rc : 0;
}

int codex_write(export *ex)
{
	_cleanup_(writing_free) writing w = {
		.line = BUF_INIT(SHEAF_CONTEXT_BYTES_DEFAULT * 2),
		.replacement = BUF_INIT(SHEAF_CONTEXT_BYTES_DEFAULT * 2),
	};
	const wire_way way = {SHEAF_FORMAT_OPENAI_RESPONSES, "input", "gpt-5.1-codex",
	                      element_write, &w};
	int rc = ex->from_seq == 0 ? meta_write(ex, &w) : numbers_find(ex, &w);
	return rc == 0 ? export_wire(ex, &way) : rc;
}

int codex_place(export *ex)
{
	char stamp[CLOCK_TEXT + 1];
	clock_format(stamp, ex->head->info->created_us);
	return export_place(ex, ".codex/sessions/%.4s/%.2s/%.2s/rollout-%.13s-%.2s-%.2s-%s.jsonl",
	                    stamp, stamp + 5, stamp + 8, stamp, stamp + 14, stamp + 17, ex->id);
}
