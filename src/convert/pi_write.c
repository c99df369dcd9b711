/* Writes a session for pi: the whole tree, an entry a line. */
#include "convert/pi.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "convert/export_wire.h"
#include "convert/window.h"
#include "entry/members.h"
#include "sheaf/context.h"

#define LINE_BYTES_MAX (SHEAF_RECORD_BYTES_MAX * 2)

typedef struct writing {
	buf line;
	window last_of; /* an entry that is not one line -> the line to hang on */
	/* a reply that may go on in the next entry: its line is not ended yet */
	char open[SHEAF_ID_ROOM]; /* the entry it came to; "" if there is none */
	char open_line[SHEAF_ID_ROOM];
	size_t open_parts;
	buf open_tail; /* what ends the line */
	sheaf_usage open_usage;
	char last_line[SHEAF_ID_ROOM];
	char last_entry[SHEAF_ID_ROOM];
} writing;

static void writing_free(writing *w)
{
	buf_free(&w->line);
	buf_free(&w->open_tail);
	window_free(&w->last_of);
}

static void string_put(buf *out, const char *before, sheaf_str text)
{
	buf_str(out, sheaf_str_of(before));
	buf_json(out, text);
}

/* ---- Lines ----------------------------------------------------------------- */

static void id_put(buf *out, const char *before, sheaf_str id)
{
	buf_str(out, sheaf_str_of(before));
	if (id.len == 0)
		buf_lit(out, "null");
	else
		buf_json(out, id);
}

static void line_begin(writing *w, const char *type, sheaf_str id, sheaf_str parent,
                       int64_t time_us)
{
	char stamp[CLOCK_TEXT + 1];
	clock_format(stamp, time_us);
	buf_reset(&w->line);
	buf_format(&w->line, "{\"type\":\"%s\",\"id\":", type);
	buf_json(&w->line, id);
	id_put(&w->line, ",\"parentId\":", parent);
	buf_format(&w->line, ",\"timestamp\":\"%.23sZ\"", stamp);
	str_copy_cut(w->last_line, sizeof(w->last_line), id);
}

static int line_end(export *ex, writing *w)
{
	buf_lit(&w->line, "}\n");
	int rc = buf_status(&w->line, ex->err);
	return rc == 0 ? export_write(ex, buf_view(&w->line)) : rc;
}

static sheaf_str parent_of(const writing *w, const sheaf_entry *e)
{
	sheaf_str last = window_get(&w->last_of, e->parent_id);
	return last.ptr != NULL ? last : e->parent_id;
}

static void entry_begin(writing *w, const char *type, const sheaf_entry *e)
{
	line_begin(w, type, e->id, parent_of(w, e), e->time_us);
}

/* ---- Parts ----------------------------------------------------------------- */

static int input_put(export *ex, buf *out, sheaf_str input)
{
	int rc = json_check(input, JSON_OBJECT, NULL);
	if (rc == SHEAF_NOMEM)
		return err_nomem(ex->err);
	if (rc == 0) {
		buf_str(out, input);
	} else {
		string_put(out, "{\"input_text\":", input);
		buf_char(out, '}');
	}
	return 0;
}

static int part_put(export *ex, buf *out, const sheaf_part *part, size_t *count)
{
	int rc = 0;
	if (part->kind == SHEAF_PART_OPAQUE || part->kind == SHEAF_PART_OTHER)
		return export_loss(ex, "part only its provider understands");
	if (part->kind == SHEAF_PART_DOCUMENT)
		return export_loss(ex, "document");
	if (part->kind == SHEAF_PART_TOOL_RESULT)
		return export_loss(ex, "answer in a message that is no tool's");
	if (part->kind == SHEAF_PART_IMAGE && !str_is(part->source_type, "base64"))
		return export_loss(ex, "image by address");
	if ((*count)++ != 0)
		buf_char(out, ',');
	switch (part->kind) {
	case SHEAF_PART_THINKING:
		string_put(out, "{\"type\":\"thinking\",\"thinking\":", part->text);
		if (part->signature.len != 0)
			string_put(out, ",\"thinkingSignature\":", part->signature);
		if (part->redacted)
			buf_lit(out, ",\"redacted\":true");
		break;
	case SHEAF_PART_IMAGE:
		string_put(out, "{\"type\":\"image\",\"data\":", part->data);
		string_put(out, ",\"mimeType\":", part->media_type);
		break;
	case SHEAF_PART_TOOL_USE:
		string_put(out, "{\"type\":\"toolCall\",\"id\":", part->id);
		string_put(out, ",\"name\":", part->name);
		buf_lit(out, ",\"arguments\":");
		rc = input_put(ex, out, part->input);
		if (part->signature.len != 0)
			string_put(out, ",\"thoughtSignature\":", part->signature);
		break;
	default:
		string_put(out, "{\"type\":\"text\",\"text\":", part->text);
		if (part->signature.len != 0)
			string_put(out, ",\"textSignature\":", part->signature);
	}
	buf_char(out, '}');
	return rc;
}

static int more_parts_put(export *ex, buf *out, const sheaf_part *const *parts, size_t count,
                          size_t *n)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = part_put(ex, out, parts[i], n);
	return rc;
}

static int parts_put(export *ex, buf *out, const sheaf_part *const *parts, size_t count)
{
	size_t n = 0;
	buf_char(out, '[');
	int rc = more_parts_put(ex, out, parts, count, &n);
	buf_char(out, ']');
	return rc;
}

/* ---- Messages -------------------------------------------------------------- */

static const char *api_of(sheaf_str provider)
{
	return str_is(provider, "anthropic") ? "anthropic-messages"
	       : str_is(provider, "openai")  ? "openai-responses"
	       : str_is(provider, "google")  ? "google-generative-ai"
	                                     : "openai-completions";
}

static const char *stop_of(const sheaf_message_view *m)
{
	static const char *const long_ones[] = {"max_tokens", "length", "MAX_TOKENS",
	                                        "max_output_tokens"};
	for (size_t i = 0; i < m->part_count; i++) {
		if (m->parts[i]->kind == SHEAF_PART_TOOL_USE)
			return "toolUse";
	}
	for (size_t i = 0; i < COUNT_OF(long_ones); i++) {
		if (str_is(m->stop_reason, long_ones[i]))
			return "length";
	}
	return "stop";
}

static void reply_put(buf *out, const sheaf_message_view *m, const sheaf_usage *u)
{
	uint64_t writes = u->cache_write_5m + u->cache_write_1h;
	sheaf_str provider = m->provider.len != 0 ? m->provider : SHEAF_STR("unknown");
	string_put(out, ",\"api\":", sheaf_str_of(api_of(provider)));
	string_put(out, ",\"provider\":", provider);
	string_put(out, ",\"model\":", m->model.len != 0 ? m->model : SHEAF_STR("unknown"));
	if (m->response_id.len != 0)
		string_put(out, ",\"responseId\":", m->response_id);
	buf_format(out, ",\"usage\":{\"input\":%llu,\"output\":%llu,\"cacheRead\":%llu",
	           (unsigned long long)u->input, (unsigned long long)u->output,
	           (unsigned long long)u->cache_read);
	buf_format(out, ",\"cacheWrite\":%llu,\"totalTokens\":%llu", (unsigned long long)writes,
	           (unsigned long long)(u->input + u->output + u->cache_read + writes));
	buf_lit(out, ",\"cost\":{\"input\":0,\"output\":0,\"cacheRead\":0,\"cacheWrite\":0,"
	             "\"total\":0}}");
	string_put(out, ",\"stopReason\":", sheaf_str_of(stop_of(m)));
}

static void time_put(buf *out, int64_t time_us)
{
	buf_lit(out, ",\"timestamp\":");
	buf_i64(out, time_us / 1000);
	buf_char(out, '}');
}

static int said_write(export *ex, writing *w, const sheaf_entry *e)
{
	entry_begin(w, "message", e);
	buf_lit(&w->line, ",\"message\":{\"role\":\"user\",\"content\":");
	int rc = parts_put(ex, &w->line, e->message->parts, e->message->part_count);
	time_put(&w->line, e->time_us);
	return rc == 0 ? line_end(ex, w) : rc;
}

static void usage_add(sheaf_usage *sum, const sheaf_usage *u)
{
	if (u == NULL)
		return;
	sum->input += u->input;
	sum->output += u->output;
	sum->cache_read += u->cache_read;
	sum->cache_write_5m += u->cache_write_5m;
	sum->cache_write_1h += u->cache_write_1h;
}

/* A reply, or more of the one whose line is open. */
static int reply_write(export *ex, writing *w, const sheaf_entry *e)
{
	const sheaf_message_view *m = e->message;
	if (w->open[0] == '\0') {
		entry_begin(w, "message", e);
		buf_lit(&w->line, ",\"message\":{\"role\":\"assistant\",\"content\":[");
		str_copy_cut(w->open_line, sizeof(w->open_line), e->id);
		w->open_parts = 0;
		w->open_usage = (sheaf_usage){0};
	} else if (window_set(&w->last_of, e->id, sheaf_str_of(w->open_line)) != 0) {
		return err_nomem(ex->err);
	}
	str_copy_cut(w->open, sizeof(w->open), e->id);
	usage_add(&w->open_usage, m->usage);
	buf_reset(&w->open_tail);
	buf_char(&w->open_tail, ']');
	reply_put(&w->open_tail, m, &w->open_usage);
	time_put(&w->open_tail, e->time_us);
	return more_parts_put(ex, &w->line, m->parts, m->part_count, &w->open_parts);
}

/* Ends the line of a reply, unless this record is more of it. */
static int reply_end(export *ex, writing *w, const sheaf_entry *next)
{
	if (w->open[0] == '\0')
		return 0;
	if (next != NULL && next->message != NULL &&
	    str_eq(next->parent_id, sheaf_str_of(w->open)) &&
	    str_is(next->message->role, SHEAF_ROLE_ASSISTANT) &&
	    str_is(members_find(next->body, "continues"), "true"))
		return 0;
	w->open[0] = '\0';
	buf_str(&w->line, buf_view(&w->open_tail));
	int rc = buf_status(&w->open_tail, ex->err);
	return rc == 0 ? line_end(ex, w) : rc;
}

static int result_write(export *ex, writing *w, const sheaf_entry *e, const sheaf_part *part,
                        sheaf_str id, sheaf_str parent)
{
	int rc = 0;
	line_begin(w, "message", id, parent, e->time_us);
	string_put(&w->line,
	           ",\"message\":{\"role\":\"toolResult\",\"toolCallId\":", part->tool_use_id);
	string_put(&w->line,
	           ",\"toolName\":", part->tool_name.ptr != NULL ? part->tool_name : SHEAF_STR(""));
	buf_lit(&w->line, ",\"content\":");
	if (part->parts != NULL) {
		rc = parts_put(ex, &w->line, part->parts, part->part_count);
	} else {
		string_put(&w->line, "[{\"type\":\"text\",\"text\":", part->text);
		buf_lit(&w->line, "}]");
	}
	buf_str(&w->line, part->is_error == 1 ? SHEAF_STR(",\"isError\":true")
	                                      : SHEAF_STR(",\"isError\":false"));
	time_put(&w->line, e->time_us);
	return rc == 0 ? line_end(ex, w) : rc;
}

/* One line for each answer: the first has the entry's id, what follows hangs on the last. */
static int results_write(export *ex, writing *w, const sheaf_entry *e)
{
	char id[SHEAF_ID_ROOM + 16], parent[SHEAF_ID_ROOM + 16];
	size_t n = 0;
	int rc = 0;
	str_copy_cut(parent, sizeof(parent), parent_of(w, e));
	for (size_t i = 0; rc == 0 && i < e->message->part_count; i++) {
		const sheaf_part *part = e->message->parts[i];
		if (part->kind != SHEAF_PART_TOOL_RESULT) {
			rc = export_loss(ex, "part beside an answer");
			continue;
		}
		(void)snprintf(id, sizeof(id), n == 0 ? "%.*s" : "%.*s.%zu", (int)e->id.len,
		               e->id.ptr, n);
		n++;
		rc = result_write(ex, w, e, part, sheaf_str_of(id), sheaf_str_of(parent));
		memcpy(parent, id, sizeof(parent));
	}
	if (rc == 0 && n != 1 && window_set(&w->last_of, e->id, sheaf_str_of(parent)) != 0)
		rc = err_nomem(ex->err);
	return rc;
}

/* What has members of its own goes with them; what pi has no role for is a note in the context. */
static int other_write(export *ex, writing *w, const sheaf_entry *e)
{
	sheaf_str key, member, members = members_inside(e->message->json);
	if (str_is(e->message->role, SHEAF_ROLE_BASH) && members.ptr != NULL) {
		entry_begin(w, "message", e);
		buf_lit(&w->line, ",\"message\":{\"role\":\"bashExecution\"");
		for (size_t at = 0; members_next(members, &at, &key, &member);) {
			if (members_key_is(key, "role") || members_key_is(key, "content") ||
			    members_key_is(key, "timestamp"))
				continue;
			buf_lit(&w->line, ",\"");
			buf_str(&w->line, key);
			buf_lit(&w->line, "\":");
			buf_str(&w->line, member);
		}
		time_put(&w->line, e->time_us);
		return line_end(ex, w);
	}
	entry_begin(w, "custom_message", e);
	string_put(&w->line, ",\"customType\":", e->message->role);
	buf_lit(&w->line, ",\"display\":true,\"content\":");
	int rc = parts_put(ex, &w->line, e->message->parts, e->message->part_count);
	if (rc == 0)
		rc = export_loss(ex, "role");
	return rc == 0 ? line_end(ex, w) : rc;
}

static int message_write(export *ex, writing *w, const sheaf_entry *e)
{
	if (str_is(e->message->role, SHEAF_ROLE_USER))
		return said_write(ex, w, e);
	if (str_is(e->message->role, SHEAF_ROLE_ASSISTANT))
		return reply_write(ex, w, e);
	if (str_is(e->message->role, SHEAF_ROLE_TOOL))
		return results_write(ex, w, e);
	return other_write(ex, w, e);
}

/* ---- Other entries ---------------------------------------------------------- */

static void contextp_free(sheaf_context **c)
{
	sheaf_context_free(*c);
}

/* The messages that stand for all before a compaction: entries that hang on it. */
static int replacement_write(export *ex, writing *w, const sheaf_entry *e)
{
	_cleanup_(contextp_free) sheaf_context *c = NULL;
	sheaf_context_options how = SHEAF_CONTEXT_OPTIONS_INIT;
	char id[SHEAF_ID_ROOM + 32], parent[SHEAF_ID_ROOM + 32];
	sheaf_entry made = *e;
	how.leaf = e->id;
	how.allow_damage = 1;
	int rc = sheaf_session_context(&c, ex->session, &how, ex->err);
	made.body = (sheaf_str){NULL, 0};
	made.kind = SHEAF_KIND_MESSAGE;
	str_copy_cut(parent, sizeof(parent), e->id);
	for (size_t i = 0, n = 0; rc == 0 && i < c->count; i++) {
		const sheaf_item *item = c->items[i];
		if (item->kind != SHEAF_ITEM_MESSAGE || item->entry == NULL ||
		    item->entry->seq != e->seq)
			continue;
		(void)snprintf(id, sizeof(id), "%.*s-%zu", (int)e->id.len, e->id.ptr, ++n);
		made.id = sheaf_str_of(id);
		made.parent_id = sheaf_str_of(parent);
		made.message = item->message;
		rc = reply_end(ex, w, &made);
		if (rc == 0)
			rc = message_write(ex, w, &made);
		memcpy(parent, id, sizeof(parent));
	}
	if (rc == 0)
		rc = reply_end(ex, w, NULL);
	if (rc == 0 && window_set(&w->last_of, e->id, sheaf_str_of(w->last_line)) != 0)
		rc = err_nomem(ex->err);
	return rc;
}

static int compaction_write(export *ex, writing *w, const sheaf_entry *e)
{
	sheaf_str members = members_inside(members_find(e->body, "compaction"));
	sheaf_str tokens = members_find(members, "tokens_before"), first;
	sheaf_str chosen = members_inside(members_find(members, "kept_ids")), kept = e->target_id;
	size_t at = 0;
	int rc = 0;
	/* Chosen entries are mostly the last ones: then the first of them says it. */
	if (chosen.ptr != NULL && elements_next(chosen, &at, &first) && first.len > 2)
		kept = str_make(first.ptr + 1, first.len - 2);
	if (kept.len == 0) /* nothing is kept: it keeps from itself on */
		kept = e->id;
	sheaf_str line = window_get(&w->last_of, kept);
	entry_begin(w, "compaction", e);
	bool replaced = members_find(members, "replacement").ptr != NULL;
	string_put(&w->line, ",\"summary\":",
	           e->text.len == 0 && replaced ? SHEAF_STR(WIRE_WHAT_FOLLOWS) : e->text);
	string_put(&w->line, ",\"firstKeptEntryId\":", line.ptr != NULL ? line : kept);
	buf_lit(&w->line, ",\"tokensBefore\":");
	buf_str(&w->line, tokens.len != 0 ? tokens : SHEAF_STR("0"));
	if (!replaced && members_find(members, "kept_ids").ptr != NULL)
		rc = export_loss(ex, "what a compaction keeps");
	if (rc == 0)
		rc = line_end(ex, w);
	return rc == 0 && replaced ? replacement_write(ex, w, e) : rc;
}

static int custom_write(export *ex, writing *w, const sheaf_entry *e)
{
	sheaf_str members = members_inside(members_find(e->body, "custom"));
	bool shown = str_is(members_find(members, "in_context"), "true");
	sheaf_str content = members_find(members, "content");
	entry_begin(w, shown ? "custom_message" : "custom", e);
	string_put(&w->line, ",\"customType\":", e->text);
	if (shown) {
		/* Parts are spelled otherwise there; text is text. */
		bool text = content.len != 0 && content.ptr[0] == '"';
		int rc = text ? 0 : export_loss(ex, "content of a custom entry");
		if (rc != 0)
			return rc;
		buf_lit(&w->line, ",\"display\":true,\"content\":");
		buf_str(&w->line, text ? content : SHEAF_STR("\"\""));
	}
	if (e->data.len != 0) {
		buf_str(&w->line, shown ? SHEAF_STR(",\"details\":") : SHEAF_STR(",\"data\":"));
		buf_str(&w->line, e->data);
	}
	return line_end(ex, w);
}

static int entry_write(export *ex, writing *w, const sheaf_entry *e)
{
	switch (e->kind) {
	case SHEAF_KIND_MESSAGE:
		return message_write(ex, w, e);
	case SHEAF_KIND_COMPACTION:
		return compaction_write(ex, w, e);
	case SHEAF_KIND_MODEL_CHANGE:
		entry_begin(w, "model_change", e);
		string_put(&w->line, ",\"provider\":", e->provider);
		string_put(&w->line, ",\"modelId\":", e->model);
		return line_end(ex, w);
	case SHEAF_KIND_THINKING_LEVEL:
		entry_begin(w, "thinking_level_change", e);
		string_put(&w->line, ",\"thinkingLevel\":", e->text);
		return line_end(ex, w);
	case SHEAF_KIND_BRANCH_SUMMARY:
		entry_begin(w, "branch_summary", e);
		string_put(&w->line, ",\"fromId\":",
		           e->target_id.len != 0 ? e->target_id : SHEAF_STR("root"));
		string_put(&w->line, ",\"summary\":", e->text);
		return line_end(ex, w);
	case SHEAF_KIND_CUSTOM:
		return custom_write(ex, w, e);
	default: /* others hang on it */
		entry_begin(w, "custom", e);
		string_put(&w->line, ",\"customType\":", e->type);
		return line_end(ex, w);
	}
}

/* Labels and names are nodes there: they hang on the line before them. */
static int fact_write(export *ex, writing *w, const sheaf_entry *e)
{
	char parent[SHEAF_ID_ROOM];
	memcpy(parent, w->last_line, sizeof(parent));
	if (e->kind == SHEAF_KIND_LABEL) {
		line_begin(w, "label", e->id, sheaf_str_of(parent), e->time_us);
		string_put(&w->line, ",\"targetId\":", e->target_id);
		if (e->text.len != 0)
			string_put(&w->line, ",\"label\":", e->text);
	} else if (e->kind == SHEAF_KIND_SESSION_INFO && e->text.ptr != NULL) {
		line_begin(w, "session_info", e->id, sheaf_str_of(parent), e->time_us);
		string_put(&w->line, ",\"name\":", e->text);
	} else {
		return 0;
	}
	return line_end(ex, w);
}

/* ---- The whole --------------------------------------------------------------- */

static int header_write(export *ex, writing *w)
{
	const sheaf_session_info *info = ex->head->info;
	char stamp[CLOCK_TEXT + 1];
	clock_format(stamp, info->created_us);
	buf_reset(&w->line);
	string_put(&w->line, "{\"type\":\"session\",\"version\":3,\"id\":", sheaf_str_of(ex->id));
	buf_format(&w->line, ",\"timestamp\":\"%.23sZ\"", stamp);
	string_put(&w->line, ",\"cwd\":", export_cwd(ex));
	return line_end(ex, w);
}

static int record_write(export *ex, writing *w, const sheaf_entry *e)
{
	bool entry = (SHEAF_KIND_BIT(e->kind) & SHEAF_KINDS_ENTRIES) != 0;
	if (e->damaged)
		return export_loss(ex, "damaged record");
	bool weighs = entry || e->kind == SHEAF_KIND_LABEL || e->kind == SHEAF_KIND_SESSION_INFO;
	int rc = weighs ? reply_end(ex, w, entry ? e : NULL) : 0;
	if (rc == 0)
		rc = entry ? entry_write(ex, w, e) : fact_write(ex, w, e);
	if (entry)
		str_copy_cut(w->last_entry, sizeof(w->last_entry), e->id);
	return rc;
}

/* pi goes on at the last line: if that is not where the session stands, one is put there. */
static int leaf_write(export *ex, writing *w)
{
	sheaf_str leaf = ex->head->branch_count != 0 ? ex->head->branches[0]->leaf
	                                             : (sheaf_str){NULL, 0};
	char id[SHEAF_ID_ROOM + 16], parent[SHEAF_ID_ROOM];
	if (leaf.len == 0 || w->last_line[0] == '\0' || str_eq(leaf, sheaf_str_of(w->last_entry)))
		return 0;
	sheaf_str last = window_get(&w->last_of, leaf);
	str_copy_cut(parent, sizeof(parent), last.ptr != NULL ? last : leaf);
	(void)snprintf(id, sizeof(id), "%s.leaf", parent);
	line_begin(w, "custom", sheaf_str_of(id), sheaf_str_of(parent),
	           ex->head->info->modified_us);
	buf_lit(&w->line, ",\"customType\":\"sheaf.leaf\"");
	return line_end(ex, w);
}

/* The line and the entry that what is new comes after. */
static int before_find(export *ex, writing *w)
{
	const sheaf_records *path;
	int rc = ex->from_seq != 0 ? export_path(ex, &path) : 0;
	for (size_t i = 0; rc == 0 && ex->from_seq != 0 && i < path->count; i++) {
		if (path->items[i]->seq > ex->from_seq)
			continue;
		str_copy_cut(w->last_entry, sizeof(w->last_entry), path->items[i]->id);
		str_copy_cut(w->last_line, sizeof(w->last_line), path->items[i]->id);
	}
	return rc;
}

int pi_write(export *ex)
{
	_cleanup_(writing_free) writing w = {.line = BUF_INIT(LINE_BYTES_MAX),
	                                     .open_tail = BUF_INIT(LINE_BYTES_MAX)};
	const sheaf_records *page;
	uint64_t seq = 0;
	int rc = ex->from_seq == 0 ? header_write(ex, &w) : before_find(ex, &w);
	while (rc >= 0 && (rc = export_records(ex, &seq, &page)) == 1) {
		for (size_t i = 0; rc >= 0 && i < page->count; i++)
			rc = record_write(ex, &w, page->items[i]);
	}
	if (rc == 0)
		rc = reply_end(ex, &w, NULL);
	return rc == 0 ? leaf_write(ex, &w) : rc;
}

int pi_place(export *ex)
{
	char cwd[1024], stamp[CLOCK_TEXT + 1];
	str_copy_cut(cwd, sizeof(cwd), export_cwd(ex));
	for (char *p = cwd; *p != '\0'; p++) {
		if (*p == '/' || *p == '\\' || *p == ':')
			*p = '-';
	}
	clock_format(stamp, ex->head->info->created_us);
	return export_place(ex, ".pi/agent/sessions/--%s--/%.13s-%.2s-%.2s-%.3sZ_%s.jsonl",
	                    cwd[0] == '-' ? cwd + 1 : cwd, stamp, stamp + 14, stamp + 17,
	                    stamp + 20, ex->id);
}
