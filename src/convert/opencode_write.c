/*
 * Writes a conversation as `opencode import` takes it.
 *
 * Ids are made from the time and the place in the conversation, for OpenCode
 * sorts by them; the same conversation has the same ids every time.
 */
#include <stdio.h>

#include "base/err.h"
#include "base/str.h"
#include "convert/opencode.h"
#include "convert/said.h"

#define OUT_BYTES_MAX (SHEAF_RECORD_BYTES_MAX * 4)
#define ID_ROOM 40

typedef struct writer {
	export *ex;
	const sheaf_context *context;
	buf out;
	char message[ID_ROOM]; /* the one at hand */
	char asked[ID_ROOM];   /* the last of the user's */
	uint64_t number;       /* of ids */
	int64_t time_ms;
	bool first; /* of the message's parts */
} writer;

static void writer_free(writer *w)
{
	buf_free(&w->out);
}

/* PREFIX_, twelve digits of time and place, and fourteen letters that tell sessions apart. */
static void id_make(writer *w, char out[ID_ROOM], const char *prefix)
{
	static const char letters[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	uint64_t when = ((uint64_t)w->time_ms * 0x1000 + ++w->number) & 0xffffffffffff;
	uint64_t hash = str_hash(w->ex->head->info->session) + w->number;
	int len = snprintf(out, ID_ROOM, "%s_%012llx", prefix, (unsigned long long)when);
	for (int i = 0; i < 14; i++, hash /= 62)
		out[len + i] = letters[hash == 0 ? 0 : hash % 62];
	out[len + 14] = '\0';
}

/* OpenCode keeps its sessions in a database: the file lies beside it until it is taken in. */
int opencode_place(export *ex)
{
	writer w = {.ex = ex, .time_ms = ex->head->info->created_us / 1000};
	if (!str_starts(sheaf_str_of(ex->id), "ses_"))
		id_make(&w, ex->id, "ses");
	return export_place(ex, ".local/share/opencode/sheaf/%s.json", ex->id);
}

/* ---- Parts --------------------------------------------------------------- */

static void part_begin(writer *w, const char *type)
{
	char id[ID_ROOM];
	id_make(w, id, "prt");
	buf_str(&w->out, w->first ? SHEAF_STR("") : SHEAF_STR(","));
	w->first = false;
	buf_format(
		&w->out,
		"\n        {\"id\":\"%s\",\"sessionID\":\"%s\",\"messageID\":\"%s\",\"type\":\"%s\"",
		id, w->ex->id, w->message, type);
}

static void span_write(writer *w)
{
	buf_format(&w->out, ",\"time\":{\"start\":%lld,\"end\":%lld}", (long long)w->time_ms,
	           (long long)w->time_ms);
}

static void text_write(writer *w, sheaf_str text)
{
	part_begin(w, "text");
	buf_lit(&w->out, ",\"text\":");
	buf_json(&w->out, text);
	buf_char(&w->out, '}');
}

/* An input is an object there. */
static int input_write(writer *w, sheaf_str input)
{
	bool object = input.len != 0 && input.ptr[0] == '{';
	_cleanup_(buf_free) buf flat = BUF_INIT(OUT_BYTES_MAX);
	int rc = said_value(w->ex, &flat, input);
	object = object && flat.len != 0 && flat.ptr[0] == '{';
	buf_str(&w->out, object ? SHEAF_STR("") : SHEAF_STR("{\"input\":"));
	buf_str(&w->out, buf_view(&flat));
	buf_str(&w->out, object ? SHEAF_STR("") : SHEAF_STR("}"));
	return rc;
}

static void file_write(writer *w, const sheaf_part *part)
{
	char id[ID_ROOM];
	id_make(w, id, "prt");
	buf_format(&w->out, "{\"id\":\"%s\",\"sessionID\":\"%s\",\"messageID\":\"%s\"", id,
	           w->ex->id, w->message);
	buf_lit(&w->out, ",\"type\":\"file\",\"mime\":");
	buf_json(&w->out, part->media_type);
	buf_lit(&w->out, ",\"url\":");
	said_url(&w->out, part);
	buf_char(&w->out, '}');
}

static void attachments_write(writer *w, const sheaf_part *answer)
{
	bool any = false;
	for (size_t i = 0; i < answer->part_count; i++) {
		const sheaf_part *part = answer->parts[i];
		if (part->kind != SHEAF_PART_IMAGE && part->kind != SHEAF_PART_DOCUMENT)
			continue;
		buf_str(&w->out, any ? SHEAF_STR(",") : SHEAF_STR(",\"attachments\":["));
		any = true;
		file_write(w, part);
	}
	buf_str(&w->out, any ? SHEAF_STR("]") : SHEAF_STR(""));
}

static int call_write(writer *w, const sheaf_part *call, const sheaf_part *answer)
{
	_cleanup_(buf_free) buf text = BUF_INIT(OUT_BYTES_MAX);
	bool failed = answer == NULL || answer->is_error == 1;
	part_begin(w, "tool");
	buf_lit(&w->out, ",\"callID\":");
	buf_json(&w->out, call->id);
	buf_lit(&w->out, ",\"tool\":");
	buf_json(&w->out, call->name);
	buf_str(&w->out, failed ? SHEAF_STR(",\"state\":{\"status\":\"error\",\"input\":")
	                        : SHEAF_STR(",\"state\":{\"status\":\"completed\",\"input\":"));
	int rc = input_write(w, call->input);
	if (rc == 0 && answer != NULL)
		rc = said_result_text(w->ex, answer, !failed, &text);
	buf_str(&w->out, failed ? SHEAF_STR(",\"error\":") : SHEAF_STR(",\"output\":"));
	buf_json(&w->out, buf_view(&text));
	if (!failed)
		buf_lit(&w->out, ",\"title\":\"\",\"metadata\":{}");
	span_write(w);
	if (!failed)
		attachments_write(w, answer);
	buf_lit(&w->out, "}}");
	return rc;
}

static int part_write(writer *w, size_t i, const sheaf_part *part)
{
	int rc = 0;
	switch (part->kind) {
	case SHEAF_PART_TEXT:
		text_write(w, part->text);
		return 0;
	case SHEAF_PART_THINKING:
		part_begin(w, "reasoning");
		buf_lit(&w->out, ",\"text\":");
		buf_json(&w->out, part->text.ptr != NULL ? part->text : SHEAF_STR(""));
		rc = said_metadata(w->ex, &w->out, "metadata", w->context->items[i]->message, part);
		span_write(w);
		buf_char(&w->out, '}');
		return rc;
	case SHEAF_PART_TOOL_USE:
		return call_write(w, part, said_answer(w->context, i, part->id));
	case SHEAF_PART_TOOL_RESULT:
		return 0; /* with its call */
	case SHEAF_PART_IMAGE:
	case SHEAF_PART_DOCUMENT:
		buf_str(&w->out, w->first ? SHEAF_STR("\n        ") : SHEAF_STR(",\n        "));
		w->first = false;
		file_write(w, part);
		return 0;
	default:
		return export_loss(w->ex, "part only its provider understands");
	}
}

/* ---- Messages ------------------------------------------------------------ */

static void model_write(writer *w, const sheaf_message_view *m)
{
	sheaf_str provider = m->provider.len != 0 ? m->provider : w->context->provider;
	sheaf_str model = m->model.len != 0 ? m->model : w->context->model;
	buf_lit(&w->out, "\"providerID\":");
	buf_json(&w->out, provider.len != 0 ? provider : SHEAF_STR("anthropic"));
	buf_lit(&w->out, ",\"modelID\":");
	buf_json(&w->out, model.len != 0 ? model : SHEAF_STR(OPENCODE_NO_MODEL));
}

static void tokens_write(writer *w, const sheaf_message_view *m)
{
	sheaf_usage u = {0};
	if (m->usage != NULL)
		u = *m->usage;
	buf_format(
		&w->out, "\"cost\":0,\"tokens\":{\"input\":%llu,\"output\":%llu,\"reasoning\":%llu",
		(unsigned long long)u.input,
		(unsigned long long)(u.output - (u.reasoning < u.output ? u.reasoning : u.output)),
		(unsigned long long)u.reasoning);
	buf_format(&w->out, ",\"cache\":{\"read\":%llu,\"write\":%llu}}",
	           (unsigned long long)u.cache_read,
	           (unsigned long long)(u.cache_write_5m + u.cache_write_1h));
}

static void info_write(writer *w, const sheaf_message_view *m, bool reply)
{
	buf_format(&w->out,
	           "{\n      \"info\": {\"id\":\"%s\",\"sessionID\":\"%s\",\"role\":\"%s\","
	           "\"time\":{\"created\":%lld",
	           w->message, w->ex->id, reply ? "assistant" : "user", (long long)w->time_ms);
	if (!reply) {
		buf_lit(&w->out, "},\"agent\":\"build\",\"model\":{");
		model_write(w, m);
		buf_lit(&w->out, "}},\n      \"parts\": [");
		return;
	}
	buf_format(&w->out, ",\"completed\":%lld},\"parentID\":\"%s\",", (long long)w->time_ms,
	           w->asked);
	model_write(w, m);
	buf_lit(&w->out, ",\"mode\":\"build\",\"agent\":\"build\",\"path\":{\"cwd\":");
	buf_json(&w->out, export_cwd(w->ex));
	buf_lit(&w->out, ",\"root\":\"/\"},");
	tokens_write(w, m);
	buf_lit(&w->out, ",\"finish\":");
	buf_json(&w->out, m->stop_reason.len != 0 ? m->stop_reason : SHEAF_STR("stop"));
	buf_lit(&w->out, "},\n      \"parts\": [");
}

static int message_write(writer *w, size_t i, bool first)
{
	const sheaf_item *item = w->context->items[i];
	const sheaf_message_view *m = item->message;
	bool reply = str_is(m->role, "assistant");
	int rc = 0;
	if (str_is(m->role, "tool"))
		return 0; /* with the calls */
	if (item->entry != NULL && item->entry->time_us / 1000 > w->time_ms)
		w->time_ms = item->entry->time_us / 1000;
	buf_reset(&w->out);
	buf_str(&w->out, first ? SHEAF_STR("\n    ") : SHEAF_STR(",\n    "));
	id_make(w, w->message, "msg");
	info_write(w, m, reply);
	w->first = true;
	if (reply) {
		part_begin(w, "step-start");
		buf_char(&w->out, '}');
	} else {
		memcpy(w->asked, w->message, sizeof(w->asked));
	}
	_cleanup_(buf_free) buf words = BUF_INIT(OUT_BYTES_MAX);
	rc = said_wording(w->ex, w->context, i, &words);
	if (words.len != 0)
		text_write(w, buf_view(&words));
	for (size_t k = 0; rc == 0 && words.len == 0 && k < m->part_count; k++)
		rc = part_write(w, i, m->parts[k]);
	if (reply) {
		part_begin(w, "step-finish");
		buf_lit(&w->out, ",\"reason\":");
		buf_json(&w->out, m->stop_reason.len != 0 ? m->stop_reason : SHEAF_STR("stop"));
		buf_char(&w->out, ',');
		tokens_write(w, m);
		buf_char(&w->out, '}');
	}
	buf_lit(&w->out, "\n      ]\n    }");
	if (rc == 0)
		rc = buf_status(&w->out, w->ex->err);
	return rc == 0 ? export_write(w->ex, buf_view(&w->out)) : rc;
}

static int session_write(writer *w)
{
	const sheaf_session_info *of = w->ex->head->info;
	buf_format(&w->out,
	           "{\n  \"info\": {\"id\":\"%s\",\"slug\":\"imported\",\"version\":\"1.1.34\","
	           "\"projectID\":\"global\",\"directory\":",
	           w->ex->id);
	buf_json(&w->out, export_cwd(w->ex));
	buf_lit(&w->out, ",\"title\":");
	buf_json(&w->out, of->name.len != 0 ? of->name : SHEAF_STR("Imported session"));
	buf_format(&w->out, ",\"time\":{\"created\":%lld,\"updated\":%lld}},\n  \"messages\": [",
	           (long long)(of->created_us / 1000), (long long)(of->modified_us / 1000));
	int rc = buf_status(&w->out, w->ex->err);
	return rc == 0 ? export_write(w->ex, buf_view(&w->out)) : rc;
}

/* Whether an item came from the document that is added to. The last one a user said is what
 * replies belong to. */
static bool is_written(writer *w, const sheaf_item *item)
{
	if (w->ex->from_seq == 0 || (item->entry != NULL && item->entry->seq > w->ex->from_seq))
		return false;
	if (item->entry != NULL && item->kind == SHEAF_ITEM_MESSAGE &&
	    str_is(item->message->role, SHEAF_ROLE_USER))
		str_copy_cut(w->asked, sizeof(w->asked), item->entry->id);
	char *part = strchr(w->asked, '.');
	if (part != NULL)
		*part = '\0';
	return true;
}

int opencode_write(export *ex)
{
	_cleanup_(said_freep) sheaf_context *context = NULL;
	int rc = said_open(ex, &context);
	if (rc != 0)
		return rc;
	_cleanup_(writer_free) writer w = {.ex = ex,
	                                   .context = context,
	                                   .out = BUF_INIT(OUT_BYTES_MAX),
	                                   .number = 1, /* the session's */
	                                   .time_ms = ex->head->info->created_us / 1000};
	if (ex->from_seq == 0)
		rc = session_write(&w);
	for (size_t i = 0; rc == 0 && i < context->count; i++) {
		if (is_written(&w, context->items[i]))
			continue;
		rc = message_write(&w, i, i == 0 && ex->from_seq == 0);
	}
	return rc == 0 && ex->from_seq == 0 ? export_write(ex, SHEAF_STR("\n  ]\n}\n")) : rc;
}
