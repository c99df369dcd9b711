/* sheaf context: what a model would be shown, to read or as the request a provider takes. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "find.h"
#include "input.h"
#include "opt.h"
#include "request.h"
#include "view.h"

static void violations_freep(sheaf_violations **violations)
{
	sheaf_violations_free(*violations);
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
	js_open(&b, "notes", '[');
	js_notes(&b, context->notes, context->note_count);
	js_close(&b, ']');
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
	return b.status != 0 ? fail_memory(c) : 0;
}

/* ---- For people -------------------------------------------------------- */

static int put_people(cli *c, const sheaf_context *context)
{
	request_notes(c, context->notes, context->note_count);
	print_page(c);
	_cleanup_(view_done) view v = VIEW_INIT(c, true);
	for (size_t i = 0; i < context->count; i++)
		view_item(&v, context->items[i]);
	if (context->count == 0)
		say(c, "the context is empty");
	return v.out.status != 0 ? fail_memory(c) : 0;
}

/* ---- As a request ------------------------------------------------------ */

static const char *place_name(int32_t number)
{
	return number == 1 ? "tools" : number == 2 ? "system" : "messages";
}

/* How much it is, and up to where a provider is asked to keep it. */
static void say_tokens(const cli *c, const sheaf_request *request)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	buf_lit(&text, "about ");
	text_count(&text, request->tokens, "token", "tokens");
	for (size_t i = 0; i < request->mark_count; i++) {
		const sheaf_cache_mark *mark = &request->marks[i];
		buf_format(&text, "\n%s cached for ", place_name(mark->place));
		text_span(&text, (int64_t)mark->ttl * 1000000);
		buf_lit(&text, ", up to about ");
		text_count(&text, mark->tokens, "token", "tokens");
	}
	buf_nul(&text);
	say(c, "%s", text.status == 0 ? text.ptr : "");
}

static void js_violations(buf *b, const sheaf_violations *violations)
{
	js_open(b, "violations", '[');
	for (size_t i = 0; i < violations->count; i++) {
		js_open(b, NULL, '{');
		js_str(b, "where", violations->items[i]->where);
		js_str(b, "rule", violations->items[i]->rule);
		js_str(b, "text", violations->items[i]->text);
		js_close(b, '}');
	}
	js_close(b, ']');
}

/* The body with what is known of it around it. */
static int put_request_json(cli *c, const sheaf_context *context, const sheaf_request *request,
                            const sheaf_violations *violations)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	js_open(&b, NULL, '{');
	js_text(&b, "format", sheaf_format_name(request->format));
	js_str(&b, "provider", request->provider);
	js_str(&b, "model", request->model);
	js_str(&b, "path", request->path);
	js_u64(&b, "tokens", request->tokens);
	js_open(&b, "marks", '[');
	for (size_t i = 0; i < request->mark_count; i++) {
		js_open(&b, NULL, '{');
		js_text(&b, "place", place_name(request->marks[i].place));
		js_u64(&b, "ttl", (uint64_t)request->marks[i].ttl);
		js_u64(&b, "tokens", request->marks[i].tokens);
		js_close(&b, '}');
	}
	js_close(&b, ']');
	js_open(&b, "notes", '[');
	js_notes(&b, context->notes, context->note_count);
	js_notes(&b, request->notes, request->note_count);
	js_close(&b, ']');
	if (violations != NULL)
		js_violations(&b, violations);
	js_raw(&b, "body", request->body);
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
	return b.status != 0 ? fail_memory(c) : 0;
}

/* The body itself: its bytes for a pipe, the same value with controls escaped on a terminal. */
static int put_body(cli *c, sheaf_str body)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	if (c->screen.tty)
		js_line(&out, body);
	else
		buf_str(&out, body);
	buf_char(&out, '\n');
	print_page(c);
	print_out(&out);
	return out.status != 0 ? fail_memory(c) : 0;
}

/* What the rules of the format say about a body, and the exit code. */
static int report_check(cli *c, int32_t format, sheaf_str body, const sheaf_violations *violations)
{
	const char *name = sheaf_format_name(format);
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; !c->json && i < violations->count; i++) {
		const sheaf_violation *v = violations->items[i];
		text_safe(&out, v->where, TEXT_LINE);
		buf_lit(&out, ": ");
		text_safe(&out, v->text, TEXT_LINE);
		buf_lit(&out, " (");
		text_safe(&out, v->rule, TEXT_LINE);
		buf_lit(&out, ")\n");
	}
	if (!c->json && violations->count == 0) {
		buf_format(&out, "ok: ");
		text_bytes(&out, body.len);
		buf_format(&out, " that keep the rules of %s\n", name);
	}
	print_out(&out);
	if (violations->count == 0)
		return 0;
	return fail_with(c, SHEAF_CONTEXT, NULL, "%zu rule%s of %s %s broken", violations->count,
	                 violations->count == 1 ? "" : "s", name,
	                 violations->count == 1 ? "is" : "are");
}

static int put_request(cli *c, const sheaf_context *context, const sheaf_request *request)
{
	_cleanup_(violations_freep) sheaf_violations *violations = NULL;
	bool check = given(c, OPT_CHECK);
	if (check && sheaf_request_check(&violations, request->format, request->body, &c->err) != 0)
		return fail(c);
	int rc;
	if (c->json) {
		if ((rc = put_request_json(c, context, request, violations)) != 0)
			return rc;
	} else {
		request_notes(c, context->notes, context->note_count);
		request_notes(c, request->notes, request->note_count);
		if (given(c, OPT_TOKENS))
			say_tokens(c, request);
	}
	if (check)
		return report_check(c, request->format, request->body, violations);
	return c->json ? 0 : put_body(c, request->body);
}

/* A body that somebody else made, from stdin. */
static int check_input(cli *c, int32_t format)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_CONTEXT_BYTES_DEFAULT);
	_cleanup_(violations_freep) sheaf_violations *violations = NULL;
	int rc = input_all(c, &body);
	if (rc != 0)
		return rc;
	if (sheaf_request_check(&violations, format, buf_view(&body), &c->err) != 0)
		return fail(c);
	if (c->json) {
		_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
		js_open(&b, NULL, '{');
		js_text(&b, "format", sheaf_format_name(format));
		js_violations(&b, violations);
		js_close(&b, '}');
		buf_char(&b, '\n');
		print_out(&b);
	}
	return report_check(c, format, buf_view(&body), violations);
}

/* ---- The command ------------------------------------------------------- */

static int get_context(cli *c, sheaf_session *session, sheaf_context **out)
{
	place at;
	int rc = find_place(c, session, &at);
	if (rc != 0)
		return rc;
	sheaf_context_options options = SHEAF_CONTEXT_OPTIONS_INIT;
	options.branch = at.branch;
	options.leaf = at.leaf;
	options.agent = opt_str(c, OPT_AGENT);
	options.provider = opt_str(c, OPT_PROVIDER);
	options.model = opt_str(c, OPT_MODEL);
	options.without_compaction = given(c, OPT_WITHOUT_COMPACTION);
	options.allow_damage = given(c, OPT_ALLOW_DAMAGE);
	return sheaf_session_context(out, session, &options, &c->err) != 0 ? fail(c) : 0;
}

/* Options that mean something only in a request. */
static int check_options(cli *c)
{
	const char *format = c->values[OPT_FORMAT];
	bool request = format != NULL && strcmp(format, "text") != 0;
	static const struct {
		opt_id id;
		const char *name;
	} needs[] = {{OPT_CHECK, "check"},       {OPT_SYSTEM, "system"}, {OPT_TOOLS, "tools"},
	             {OPT_THINKING, "thinking"}, {OPT_CACHE, "cache"},   {OPT_BYTES, "bytes"},
	             {OPT_ELIDE, "elide"},       {OPT_TOKENS, "tokens"}};
	for (size_t i = 0; !request && i < COUNT_OF(needs); i++) {
		if (given(c, needs[i].id))
			return usage(c, "--%s needs a --format", needs[i].name);
	}
	return 0;
}

/* Whether a provider is the owner of some format, but not of this one: its models are not asked so. */
static bool is_of_another(sheaf_str provider, int32_t format)
{
	bool owns = false;
	for (int32_t f = SHEAF_FORMAT_ANTHROPIC; f <= SHEAF_FORMAT_GEMINI; f++)
		owns = owns || str_is(provider, sheaf_format_provider(f));
	return owns && !str_is(provider, sheaf_format_provider(format));
}

int cmd_context(cli *c)
{
	sheaf_render_options how;
	int rc = check_options(c);
	if (rc == 0)
		rc = request_options(c, &how);
	if (rc != 0)
		return rc;
	if (given(c, OPT_CHECK) && c->word_count == 1 && strcmp(c->words[0], "-") == 0)
		return check_input(c, how.format);

	_cleanup_(session_closep) sheaf_session *session = NULL;
	_cleanup_(context_freep) sheaf_context *context = NULL;
	if ((rc = open_for_reading(c, c->words[0], &session)) != 0 ||
	    (rc = get_context(c, session, &context)) != 0)
		return rc;
	if (how.format == 0)
		return c->json ? put_json(c, session, context) : put_people(c, context);
	if (how.model.ptr == NULL && context->model.len == 0)
		return usage(c, "which model? None has spoken yet: --model NAME");
	if (how.model.ptr == NULL && is_of_another(context->provider, how.format))
		return usage(c, "which model? The last one, %.*s, is of %.*s: --model NAME",
		             (int)context->model.len, context->model.ptr,
		             (int)context->provider.len, context->provider.ptr);
	_cleanup_(rendered_freep) sheaf_request *request = NULL;
	how.cache_key = sheaf_session_key(session).session;
	if ((rc = sheaf_render(&request, context, &how, &c->err)) == SHEAF_TOO_LARGE &&
	    how.elide == 0)
		snprintf(c->err.hint, sizeof(c->err.hint),
		         "--elide images,outputs leaves old ones out, `sheaf compact` makes room");
	if (rc != 0)
		return fail(c);
	return put_request(c, context, request);
}
