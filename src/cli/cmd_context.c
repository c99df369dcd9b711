/* sheaf context: what a model would be shown. */
#include <stdio.h>

#include "find.h"
#include "opt.h"
#include "view.h"

static void context_freep(sheaf_context **context)
{
	sheaf_context_free(*context);
}

static const char *kind_name(int32_t kind)
{
	switch (kind) {
	case SHEAF_ITEM_COMPACTION_SUMMARY:
		return "compaction_summary";
	case SHEAF_ITEM_BRANCH_SUMMARY:
		return "branch_summary";
	case SHEAF_ITEM_CUSTOM:
		return "custom";
	default:
		return "message";
	}
}

/* ---- For programs ------------------------------------------------------ */

static void js_part(buf *b, const sheaf_part *part)
{
	if (part->json.ptr != NULL) {
		js_raw(b, NULL, part->json);
		return;
	}
	/* Made by the context: an answer for a call nobody answered, or text that stands in. */
	bool answer = part->kind == SHEAF_PART_TOOL_RESULT;
	js_open(b, NULL, '{');
	js_text(b, "type", answer ? "tool_result" : "text");
	js_open(b, answer ? "tool_result" : "text", '{');
	if (answer) {
		js_str(b, "tool_use_id", part->tool_use_id);
		if (part->tool_name.ptr != NULL)
			js_str(b, "tool_name", part->tool_name);
	}
	js_str(b, "content", part->text.ptr != NULL ? part->text : (sheaf_str){"", 0});
	if (answer && part->is_error >= 0)
		js_bool(b, "is_error", part->is_error == 1);
	js_close(b, '}');
	js_close(b, '}');
}

static void js_message(buf *b, const sheaf_message_view *message)
{
	if (message->json.ptr != NULL) {
		js_raw(b, "message", message->json);
		return;
	}
	js_open(b, "message", '{');
	js_str(b, "role", message->role);
	js_open(b, "content", '[');
	for (size_t i = 0; i < message->part_count; i++)
		js_part(b, message->parts[i]);
	js_close(b, ']');
	js_close(b, '}');
}

static void js_item(buf *b, const sheaf_item *item)
{
	js_open(b, NULL, '{');
	js_text(b, "kind", kind_name(item->kind));
	js_str(b, "role", item->message->role);
	js_str(b, "entry_id", item->entry != NULL ? item->entry->id : (sheaf_str){NULL, 0});
	js_bool(b, "synthetic", item->synthetic != 0);
	js_message(b, item->message);
	js_close(b, '}');
}

static void js_notes(buf *b, const sheaf_context *context)
{
	js_open(b, "notes", '[');
	for (size_t i = 0; i < context->note_count; i++) {
		const sheaf_note *note = context->notes[i];
		js_open(b, NULL, '{');
		js_text(b, "what", sheaf_note_name(note->what));
		js_u64(b, "seq", note->seq);
		js_str(b, "entry_id", note->entry_id);
		js_str(b, "detail", note->detail);
		js_close(b, '}');
	}
	js_close(b, ']');
}

static int put_json(cli *c, sheaf_session *session, const sheaf_context *context)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	char hash[24];
	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)context->prefix_hash);
	js_open(&b, NULL, '{');
	js_str(&b, "session", sheaf_session_key(session).session);
	js_u64(&b, "revision", context->revision);
	js_str(&b, "leaf", context->leaf);
	js_str(&b, "compaction",
	       context->compaction != NULL ? context->compaction->id : (sheaf_str){NULL, 0});
	js_str(&b, "provider", context->provider);
	js_str(&b, "model", context->model);
	js_str(&b, "thinking_level", context->thinking_level);
	js_text(&b, "prefix_hash", hash);
	js_u64(&b, "bytes", context->bytes);
	js_open(&b, "items", '[');
	for (size_t i = 0; i < context->count; i++)
		js_item(&b, context->items[i]);
	js_close(&b, ']');
	js_notes(&b, context);
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
	return b.status != 0 ? fail_memory(c) : 0;
}

/* ---- For people -------------------------------------------------------- */

static int put_people(cli *c, const sheaf_context *context)
{
	for (size_t i = 0; i < context->note_count; i++) {
		const sheaf_note *note = context->notes[i];
		say(c, "note: @%llu: %s%s%.*s", (unsigned long long)note->seq,
		    sheaf_note_text(note->what), note->detail.len != 0 ? ": " : "",
		    (int)note->detail.len, note->detail.len != 0 ? note->detail.ptr : "");
	}
	print_page(c);
	_cleanup_(view_done) view v = VIEW_INIT(c, true);
	for (size_t i = 0; i < context->count; i++)
		view_item(&v, context->items[i]);
	if (context->count == 0)
		say(c, "the context is empty");
	return v.out.status != 0 ? fail_memory(c) : 0;
}

int cmd_context(cli *c)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	_cleanup_(context_freep) sheaf_context *context = NULL;
	place at;
	int rc;
	if ((rc = open_for_reading(c, c->words[0], &session)) != 0 ||
	    (rc = find_place(c, session, &at)) != 0)
		return rc;
	sheaf_context_options options = SHEAF_CONTEXT_OPTIONS_INIT;
	options.branch = at.branch;
	options.leaf = at.leaf;
	options.agent = opt_str(c, OPT_AGENT);
	options.provider = opt_str(c, OPT_PROVIDER);
	options.model = opt_str(c, OPT_MODEL);
	options.without_compaction = given(c, OPT_WITHOUT_COMPACTION);
	options.allow_damage = given(c, OPT_ALLOW_DAMAGE);
	if (sheaf_session_context(&context, session, &options, &c->err) != 0)
		return fail(c);
	return c->json ? put_json(c, session, context) : put_people(c, context);
}
