/* The conversation as the model sees it, for formats that have neither tree nor compaction. */
#include "convert/said.h"

#include "base/err.h"
#include "base/str.h"
#include "convert/document.h"
#include "sheaf/render.h"

void said_freep(sheaf_context **context)
{
	sheaf_context_free(*context);
}

int said_open(export *ex, sheaf_context **out)
{
	sheaf_context_options how = SHEAF_CONTEXT_OPTIONS_INIT;
	how.branch = ex->options.branch;
	how.leaf = ex->options.leaf;
	int rc = sheaf_session_context(out, ex->session, &how, ex->err);
	if (rc == 0 && (*out)->compaction != NULL)
		rc = export_loss(ex, "what was said before a compaction");
	return rc == 0 ? export_path_losses(ex) : rc;
}

static void requestp_free(sheaf_request **request)
{
	sheaf_request_free(*request);
}

int said_wording(export *ex, const sheaf_context *context, size_t i, buf *out)
{
	static const char *const plain[] = {SHEAF_ROLE_USER, SHEAF_ROLE_ASSISTANT, SHEAF_ROLE_TOOL,
	                                    SHEAF_ROLE_SYSTEM};
	_cleanup_(requestp_free) sheaf_request *request = NULL;
	_cleanup_(json_freep) json_doc *doc = NULL;
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	sheaf_context one = *context;
	for (size_t k = 0; k < COUNT_OF(plain); k++) {
		if (str_is(context->items[i]->message->role, plain[k]))
			return 0;
	}
	if (str_is(context->items[i]->message->role, SHEAF_ROLE_DEVELOPER)) {
		int lost = export_loss(ex, "role");
		if (lost != 0)
			return lost;
	}
	one.items += i;
	one.count = 1;
	how.format = SHEAF_FORMAT_ANTHROPIC; /* knows none of these roles */
	how.model = SHEAF_STR("-");
	how.cache = SHEAF_CACHE_OFF;
	int rc = sheaf_render(&request, &one, &how, ex->err);
	if (rc == 0)
		rc = json_parse(&doc, request->body, ex->err);
	if (rc != 0)
		return rc == SHEAF_CONTEXT ? 0 : rc;
	json_iter messages = json_each(json_get(json_root(doc), "messages"));
	while (json_next(&messages)) {
		json_iter blocks = json_each(json_get(messages.value, "content"));
		while (json_next(&blocks)) {
			sheaf_str text = json_string(json_get(blocks.value, "text"));
			if (out->len != 0 && text.len != 0)
				buf_char(out, '\n');
			buf_str(out, text);
		}
	}
	return buf_status(out, ex->err);
}

const sheaf_part *said_answer(const sheaf_context *context, size_t i, sheaf_str call)
{
	for (i++; i < context->count && str_is(context->items[i]->message->role, "tool"); i++) {
		const sheaf_message_view *m = context->items[i]->message;
		for (size_t k = 0; k < m->part_count; k++) {
			if (m->parts[k]->kind == SHEAF_PART_TOOL_RESULT &&
			    str_eq(m->parts[k]->tool_use_id, call))
				return m->parts[k];
		}
	}
	return NULL;
}

int said_result_text(export *ex, const sheaf_part *result, bool files, buf *out)
{
	bool any = false;
	int rc = 0;
	if (result->parts == NULL)
		buf_str(out, result->text);
	for (size_t i = 0; rc == 0 && i < result->part_count; i++) {
		const sheaf_part *part = result->parts[i];
		bool file = part->kind == SHEAF_PART_IMAGE || part->kind == SHEAF_PART_DOCUMENT;
		if (part->kind != SHEAF_PART_TEXT) {
			rc = file && files ? 0 : export_loss(ex, "file in a tool's answer");
			continue;
		}
		if (any)
			buf_char(out, '\n');
		buf_str(out, part->text);
		any = true;
	}
	return rc == 0 ? buf_status(out, ex->err) : rc;
}

int said_value(export *ex, buf *out, sheaf_str json)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	int rc = json_parse(&doc, json, ex->err);
	if (rc == SHEAF_NOMEM)
		return rc;
	if (rc == 0)
		document_flatten(out, json);
	else
		buf_json(out, json);
	return buf_status(out, ex->err);
}

void said_url(buf *out, const sheaf_part *media)
{
	if (!str_is(media->source_type, "base64")) {
		buf_json(out, media->data);
		return;
	}
	buf_lit(out, "\"data:");
	buf_str(out, media->media_type);
	buf_lit(out, ";base64,");
	buf_str(out, media->data);
	buf_char(out, '"');
}

int said_metadata(export *ex, buf *out, const char *name, const sheaf_message_view *message,
                  const sheaf_part *part)
{
	sheaf_str of = message->provider;
	const char *member = str_is(of, "anthropic") ? part->redacted ? "redactedData" : "signature"
	                     : str_is(of, "google")  ? "thoughtSignature"
	                     : str_is(of, "openai")  ? "reasoningEncryptedContent"
	                                             : NULL;
	if (part->signature.len == 0)
		return 0;
	if (member == NULL)
		return export_loss(ex, "signature of thinking");
	buf_format(out, ",\"%s\":{\"%.*s\":{\"%s\":", name, (int)of.len, of.ptr, member);
	buf_json(out, part->signature);
	buf_lit(out, "}}");
	return buf_status(out, ex->err);
}
