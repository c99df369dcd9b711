/* Writes a conversation as UI messages of the AI SDK. */
#include "base/err.h"
#include "base/str.h"
#include "convert/said.h"
#include "convert/uimessage.h"

#define OUT_BYTES_MAX (SHEAF_RECORD_BYTES_MAX * 4)

static int call_write(export *ex, buf *out, const sheaf_part *call, const sheaf_part *answer)
{
	_cleanup_(buf_free) buf text = BUF_INIT(OUT_BYTES_MAX);
	buf_lit(out, "{\"type\":\"dynamic-tool\",\"toolName\":");
	buf_json(out, call->name);
	buf_lit(out, ",\"toolCallId\":");
	buf_json(out, call->id);
	bool failed = answer != NULL && answer->is_error == 1;
	buf_lit(out, ",\"state\":");
	buf_str(out, answer == NULL ? SHEAF_STR("\"input-available\"")
	             : failed       ? SHEAF_STR("\"output-error\"")
	                            : SHEAF_STR("\"output-available\""));
	buf_lit(out, ",\"input\":");
	int rc = said_value(ex, out, call->input);
	if (rc == 0 && answer != NULL) {
		buf_str(out, failed ? SHEAF_STR(",\"errorText\":") : SHEAF_STR(",\"output\":"));
		rc = said_result_text(ex, answer, false, &text);
		buf_json(out, buf_view(&text));
	}
	buf_char(out, '}');
	return rc;
}

/* One part with a comma before it; 0 also for what is left out, which is counted. */
static int part_write(export *ex, buf *out, const sheaf_context *context, size_t i,
                      const sheaf_part *part, bool *first)
{
	const sheaf_message_view *m = context->items[i]->message;
	bool own = part->kind == SHEAF_PART_OPAQUE && str_is(part->provider, "uimessage");
	int rc = 0;
	if (part->kind == SHEAF_PART_OTHER || (part->kind == SHEAF_PART_OPAQUE && !own))
		return export_loss(ex, "part only its provider understands");
	if (!*first)
		buf_char(out, ',');
	*first = false;
	switch (part->kind) {
	case SHEAF_PART_TEXT:
		buf_lit(out, "{\"type\":\"text\",\"text\":");
		buf_json(out, part->text);
		buf_char(out, '}');
		break;
	case SHEAF_PART_THINKING:
		buf_lit(out, "{\"type\":\"reasoning\",\"text\":");
		buf_json(out, part->text.ptr != NULL ? part->text : SHEAF_STR(""));
		rc = said_metadata(ex, out, "providerMetadata", m, part);
		buf_char(out, '}');
		break;
	case SHEAF_PART_TOOL_USE:
		rc = call_write(ex, out, part, said_answer(context, i, part->id));
		break;
	case SHEAF_PART_IMAGE:
	case SHEAF_PART_DOCUMENT:
		buf_lit(out, "{\"type\":\"file\",\"mediaType\":");
		buf_json(out, part->media_type);
		buf_lit(out, ",\"url\":");
		said_url(out, part);
		buf_char(out, '}');
		break;
	default:
		buf_str(out, own ? part->raw : SHEAF_STR("null"));
	}
	return rc == 0 ? buf_status(out, ex->err) : rc;
}

/* The entry's, or one by its place where there is none, or none of its own: a compaction may stand
 * for several messages. */
static void id_write(buf *out, const sheaf_context *context, size_t i)
{
	const sheaf_entry *of = context->items[i]->entry;
	if (of != NULL && (i == 0 || context->items[i - 1]->entry != of))
		buf_json(out, of->id);
	else
		buf_format(out, "\"message-%zu\"", i + 1);
}

static void begin_write(buf *out, const sheaf_context *context, size_t i, const char *role)
{
	const sheaf_item *item = context->items[i];
	buf_str(out, i == 0 ? SHEAF_STR("\n{\"id\":") : SHEAF_STR(",\n{\"id\":"));
	id_write(out, context, i);
	buf_format(out, ",\"role\":\"%s\"", role);
	if (item->entry != NULL) {
		buf_lit(out, ",\"metadata\":{\"createdAt\":");
		buf_json(out, item->entry->timestamp);
		buf_char(out, '}');
	}
	buf_lit(out, ",\"parts\":[");
}

/* One message of the list: an item, or all steps of a turn from item *i on. */
static int message_write(export *ex, const sheaf_context *context, size_t *i)
{
	_cleanup_(buf_free) buf out = BUF_INIT(OUT_BYTES_MAX);
	const sheaf_message_view *m = context->items[*i]->message;
	bool reply = str_is(m->role, "assistant"), first = true;
	int rc = 0;
	begin_write(&out, context, *i,
	            reply                       ? "assistant"
	            : str_is(m->role, "system") ? "system"
	                                        : "user");
	_cleanup_(buf_free) buf words = BUF_INIT(OUT_BYTES_MAX);
	rc = said_wording(ex, context, *i, &words);
	if (rc == 0 && words.len != 0) {
		buf_lit(&out, "{\"type\":\"text\",\"text\":");
		buf_json(&out, buf_view(&words));
		buf_lit(&out, "}]}");
		++*i;
		rc = buf_status(&out, ex->err);
		return rc == 0 ? export_write(ex, buf_view(&out)) : rc;
	}
	do {
		m = context->items[*i]->message;
		if (reply && str_is(m->role, "assistant")) {
			buf_str(&out, first ? SHEAF_STR("{\"type\":\"step-start\"}")
			                    : SHEAF_STR(",{\"type\":\"step-start\"}"));
			first = false;
		}
		for (size_t k = 0; rc == 0 && k < m->part_count; k++) {
			if (m->parts[k]->kind != SHEAF_PART_TOOL_RESULT)
				rc = part_write(ex, &out, context, *i, m->parts[k], &first);
		}
		++*i;
	} while (rc == 0 && reply && *i < context->count &&
	         (str_is(context->items[*i]->message->role, "assistant") ||
	          str_is(context->items[*i]->message->role, "tool")));
	buf_lit(&out, "]}");
	if (rc == 0)
		rc = buf_status(&out, ex->err);
	return rc == 0 ? export_write(ex, buf_view(&out)) : rc;
}

int uimessage_write(export *ex)
{
	_cleanup_(said_freep) sheaf_context *context = NULL;
	int rc = said_open(ex, &context);
	if (rc == 0)
		rc = export_write(ex, SHEAF_STR("["));
	for (size_t i = 0; rc == 0 && i < context->count;)
		rc = message_write(ex, context, &i);
	return rc == 0 ? export_write(ex, SHEAF_STR("\n]\n")) : rc;
}
