/* Tools in a page: what was called with what, what it changed, what it answered. */
#include "base/str.h"
#include "html_inside.h"

#define OPEN_LINES 24u /* a tool with more is folded until it is asked for */

/* The names that the agents' tools give to the same things. */
static const char *const names_before[] = {"old_string", "oldText", "old_str", "oldString"};
static const char *const names_after[] = {"new_string", "newText", "new_str", "newString"};
static const char *const names_file[] = {"file_path", "filePath", "path"};
static const char *const names_text[] = {"content", "contents", "file_text"};
static const char *const names_patch[] = {"patch", "input", "patchText", "diff"};
static const char *const names_command[] = {"command", "cmd", "script"};

static sheaf_str first_of(const json_val *object, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		sheaf_str value = json_string(json_get(object, names[i]));
		if (value.ptr != NULL)
			return value;
	}
	return (sheaf_str){NULL, 0};
}
#define FIRST_OF(object, names) first_of((object), (names), COUNT_OF(names))

/* ---- What went in ----------------------------------------------------------------- */

static void put_file(buf *out, const json_val *input)
{
	sheaf_str file = FIRST_OF(input, names_file);
	if (file.len == 0)
		return;
	buf_lit(out, "<p class=\"file\">");
	html_line(out, file, 1024);
	buf_lit(out, "</p>");
}

static void put_diff(buf *out, sheaf_str before, sheaf_str after)
{
	html_code_begin(out, (sheaf_str){NULL, 0});
	html_diff(out, before, after);
	html_code_end(out);
}

static bool put_edit(buf *out, const json_val *input)
{
	sheaf_str before = FIRST_OF(input, names_before), after = FIRST_OF(input, names_after);
	if (before.ptr == NULL || after.ptr == NULL)
		return false;
	put_diff(out, before, after);
	return true;
}

/* One edit, or a list of them. */
static bool put_edits(buf *out, const json_val *input)
{
	size_t begin = out->len;
	bool any = false;
	put_file(out, input);
	any = put_edit(out, input);
	for (json_iter it = json_each(json_get(input, "edits")); json_next(&it);)
		any = put_edit(out, it.value) || any;
	if (!any && out->status == 0)
		out->len = begin;
	return any;
}

static bool put_written(buf *out, const json_val *input)
{
	sheaf_str text = FIRST_OF(input, names_text);
	if (text.ptr == NULL || FIRST_OF(input, names_file).ptr == NULL)
		return false;
	put_file(out, input);
	put_diff(out, SHEAF_STR(""), text);
	return true;
}

static bool put_patch(buf *out, sheaf_str patch)
{
	patch = html_trim(patch);
	if (!html_is_patch(patch))
		return false;
	html_code_begin(out, (sheaf_str){NULL, 0});
	html_patch(out, patch);
	html_code_end(out);
	return true;
}

static void put_prompt(buf *out, sheaf_str typed)
{
	html_code_begin(out, (sheaf_str){NULL, 0});
	buf_lit(out, "<span class=\"prompt\">$ </span>");
	html_text(out, html_trim(typed));
	html_code_end(out);
}

/* A command is a string, or its words; of those bash -c runs the last, a patch is the last, too. */
static bool put_command(buf *out, const json_val *input)
{
	sheaf_str typed = FIRST_OF(input, names_command);
	const json_val *words = json_get(input, "command");
	if (typed.ptr == NULL && json_type_of(words) != JSON_ARRAY)
		return false;
	if (typed.ptr != NULL) {
		if (!put_patch(out, typed))
			put_prompt(out, typed);
		return true;
	}
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
	for (json_iter it = json_each(words); json_next(&it);) {
		sheaf_str word = json_string(it.value);
		if (put_patch(out, word))
			return true;
		if (line.len != 0)
			buf_char(&line, ' ');
		buf_str(&line, word);
	}
	put_prompt(out, buf_view(&line));
	return true;
}

static void put_status(buf *out, sheaf_str status)
{
	if (str_is(status, "completed") || str_is(status, "done"))
		buf_lit(out, "<li class=\"done\">☑ ");
	else if (str_is(status, "in_progress"))
		buf_lit(out, "<li class=\"now\">◐ ");
	else
		buf_lit(out, "<li>☐ ");
}

static bool put_todos(buf *out, const json_val *input)
{
	const json_val *list = json_get(input, "todos");
	if (json_type_of(list) != JSON_ARRAY)
		list = json_get(input, "plan");
	if (json_type_of(list) != JSON_ARRAY)
		return false;
	buf_lit(out, "<ul class=\"todos\">");
	for (json_iter it = json_each(list); json_next(&it);) {
		sheaf_str text = json_string(json_get(it.value, "content"));
		if (text.ptr == NULL)
			text = json_string(json_get(it.value, "step"));
		if (text.ptr == NULL)
			text = json_string(it.value);
		put_status(out, json_string(json_get(it.value, "status")));
		html_text(out, text);
		buf_lit(out, "</li>");
	}
	buf_lit(out, "</ul>");
	return true;
}

/* Any other input: each argument by its name. */
static void put_arguments(buf *out, sheaf_str input)
{
	size_t at = 0;
	sheaf_str key, value;
	buf_lit(out, "<dl class=\"args\">");
	while (json_member_next(input, &at, &key, &value)) {
		_cleanup_(json_freep) json_doc *doc = NULL;
		sheaf_str string = {NULL, 0};
		if (value.len != 0 && value.ptr[0] == '"' && json_parse(&doc, value, NULL) == 0)
			string = json_string(json_root(doc));
		buf_lit(out, "<dt>");
		html_line(out, key, 200);
		buf_lit(out, "</dt><dd>");
		if (string.ptr != NULL)
			html_text(out, string);
		else
			html_json(out, value);
		buf_lit(out, "</dd>");
	}
	buf_lit(out, "</dl>");
}

static void put_raw(buf *out, sheaf_str text)
{
	html_code_begin(out, (sheaf_str){NULL, 0});
	html_text(out, text);
	html_code_end(out);
}

static bool put_known(buf *out, const json_val *input)
{
	if (put_edits(out, input) || put_written(out, input) || put_command(out, input) ||
	    put_todos(out, input))
		return true;
	for (size_t i = 0; i < COUNT_OF(names_patch); i++) {
		if (put_patch(out, json_string(json_get(input, names_patch[i]))))
			return true;
	}
	return false;
}

static void put_input(buf *out, sheaf_str input)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	buf_lit(out, "<div class=\"in\">");
	if (json_parse(&doc, input, NULL) != 0 || json_type_of(json_root(doc)) != JSON_OBJECT) {
		sheaf_str text = json_string(json_root(doc));
		text = text.ptr != NULL ? text : input;
		if (!put_patch(out, text))
			put_raw(out, text);
	} else if (json_count(json_root(doc)) != 0 && !put_known(out, json_root(doc))) {
		put_arguments(out, input);
	}
	buf_lit(out, "</div>");
}

/* ---- What came out ---------------------------------------------------------------- */

static void put_text(buf *out, sheaf_str text)
{
	text = html_trim(text);
	if (text.len == 0)
		return;
	html_code_begin(out, (sheaf_str){NULL, 0});
	if (html_is_patch(text))
		html_patch(out, text);
	else
		html_output(out, text);
	html_code_end(out);
}

static void put_answer(buf *out, const sheaf_part *part)
{
	put_text(out, part->text);
	for (size_t i = 0; i < part->part_count; i++) {
		const sheaf_part *inner = part->parts[i];
		if (inner->kind == SHEAF_PART_TEXT)
			put_text(out, inner->text);
		else if (inner->kind == SHEAF_PART_IMAGE || inner->kind == SHEAF_PART_DOCUMENT)
			html_media(out, inner);
		else
			put_raw(out, inner->json);
	}
	if (html_trim(part->text).len == 0 && part->part_count == 0)
		buf_lit(out, "<p class=\"none\">No output</p>");
}

static size_t answer_lines(const sheaf_part *part)
{
	size_t lines = html_lines(part->text);
	for (size_t i = 0; i < part->part_count; i++)
		lines += html_lines(part->parts[i]->text);
	return lines;
}

/* ---- Both ------------------------------------------------------------------------- */

/* The answer of a call that is shown with it: from the page at hand, else read for it. */
static const sheaf_part *answer_of(html_page *p, const html_call *call, sheaf_str id,
                                   sheaf_records **read)
{
	if (call == NULL || call->again || call->answer == NONE ||
	    p->index.nodes[call->answer].shown == NONE)
		return NULL;
	uint64_t seq = p->index.nodes[call->answer].seq;
	const sheaf_entry *entry = NULL;
	for (size_t i = 0; i < p->records->count && entry == NULL; i++) {
		if (p->records->items[i]->seq == seq)
			entry = p->records->items[i];
	}
	if (entry == NULL) {
		sheaf_read_options how = SHEAF_READ_OPTIONS_INIT;
		how.from_seq = seq;
		how.limit = 1;
		if (sheaf_session_records(read, p->session, &how, NULL) != 0 || (*read)->count == 0)
			return NULL;
		entry = (*read)->items[0];
	}
	for (size_t i = 0; entry->message != NULL && i < entry->message->part_count; i++) {
		if (str_eq(entry->message->parts[i]->tool_use_id, id))
			return entry->message->parts[i];
	}
	return NULL;
}

/* What a command is for, in the words of who calls it. */
static void put_why(buf *out, sheaf_str input)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	if (json_parse(&doc, input, NULL) != 0)
		return;
	sheaf_str why = json_string(json_get(json_root(doc), "description"));
	if (why.len == 0 || FIRST_OF(json_root(doc), names_command).ptr == NULL)
		return;
	buf_lit(out, " <span class=\"why\">");
	html_line(out, why, 200);
	buf_lit(out, "</span>");
}

static void put_summary(buf *out, sheaf_str name, sheaf_str input, sheaf_str brief,
                        const sheaf_part *answer, bool waits)
{
	buf_lit(out, "<summary><span class=\"name\">");
	html_line(out, name, 120);
	buf_lit(out, "</span>");
	put_why(out, input);
	buf_lit(out, " <span class=\"brief\">");
	buf_str(out, brief); /* it is HTML already */
	buf_lit(out, "</span>");
	if (answer != NULL && answer->is_error == 1)
		buf_lit(out, " <span class=\"chip bad\">failed</span>");
	else if (waits)
		buf_lit(out, " <span class=\"chip\">no answer</span>");
	buf_lit(out, "</summary>");
}

static void put_subagent(buf *out, const html_call *call)
{
	if (call == NULL || call->subagent.len == 0)
		return;
	buf_lit(out, "<p class=\"sub\">Sub-agent <code>");
	html_line(out, call->subagent, 400);
	buf_lit(out, "</code></p>");
}

/* An answer with its call: the entry it is of can be linked to all the same. */
static void put_answered(html_page *p, uint32_t at, const sheaf_part *answer)
{
	html_node *n = &p->index.nodes[at];
	buf *out = &p->out;
	bool first = !n->named;
	n->named = true;
	buf_lit(out, "<div class=\"out\"");
	html_where(p, at, first);
	buf_char(out, '>');
	put_answer(out, answer);
	if (n->label.len != 0) {
		buf_lit(out, "<span class=\"label\">");
		html_line(out, n->label, 200);
		buf_lit(out, "</span>");
	}
	if (first)
		html_ways(p, at);
	buf_lit(out, "</div>");
}

void html_call_put(html_page *p, const sheaf_part *part)
{
	_cleanup_(records_freep) sheaf_records *read = NULL;
	_cleanup_(buf_free) buf input = BUF_INIT(SIZE_MAX), brief = BUF_INIT(SIZE_MAX);
	const html_call *call = map_get_ptr(&p->index.calls, part->id);
	const sheaf_part *answer = answer_of(p, call, part->id, &read);
	buf *out = &p->out;
	put_input(&input, part->input);
	html_brief(&brief, part);
	size_t lines = html_lines(buf_view(&input)) + (answer != NULL ? answer_lines(answer) : 0);
	bool failed = answer != NULL && answer->is_error == 1;
	buf_format(out, "<details class=\"tool%s\"%s>", failed ? " bad" : "",
	           lines <= OPEN_LINES ? " open" : "");
	put_summary(out, part->name, part->input, buf_view(&brief), answer,
	            call == NULL || call->answer == NONE);
	buf_str(out, buf_view(&input));
	put_subagent(out, call);
	if (answer != NULL)
		put_answered(p, call->answer, answer);
	buf_lit(out, "</details>");
	if (input.status != 0 || brief.status != 0)
		out->status = SHEAF_NOMEM;
}

void html_answer_put(html_page *p, const sheaf_part *part)
{
	const html_call *call = map_get_ptr(&p->index.calls, part->tool_use_id);
	sheaf_str name = part->tool_name.len != 0 ? part->tool_name
	                 : call != NULL           ? call->name
	                                          : part->tool_use_id;
	buf *out = &p->out;
	buf_format(out, "<details class=\"tool%s\"%s>", part->is_error == 1 ? " bad" : "",
	           answer_lines(part) <= OPEN_LINES ? " open" : "");
	put_summary(out, name, SHEAF_STR(""), call != NULL ? call->brief : SHEAF_STR(""), part,
	            false);
	buf_lit(out, "<div class=\"out\">");
	put_answer(out, part);
	buf_lit(out, "</div></details>");
}

/* A command that the user ran. */
void html_command_put(html_page *p, const sheaf_message_view *message)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	buf *out = &p->out;
	if (json_parse(&doc, message->json, NULL) != 0)
		return;
	const json_val *run = json_root(doc);
	sheaf_str typed = json_string(json_get(run, "command"));
	sheaf_str output = json_string(json_get(run, "output"));
	sheaf_str code = json_number(json_get(run, "exitCode"));
	if (typed.ptr == NULL)
		return;
	bool failed = code.ptr != NULL && !str_is(code, "0");
	buf_format(out, "<details class=\"tool%s\"%s>", failed ? " bad" : "",
	           html_lines(output) <= OPEN_LINES ? " open" : "");
	buf_lit(out, "<summary><span class=\"name\">Run by the user</span> <span class=\"brief\">");
	html_line(out, typed, 120);
	buf_lit(out, "</span>");
	if (failed) {
		buf_lit(out, " <span class=\"chip bad\">exit code ");
		html_line(out, code, 20);
		buf_lit(out, "</span>");
	}
	buf_lit(out, "</summary><div class=\"in\">");
	put_prompt(out, typed);
	buf_lit(out, "</div><div class=\"out\">");
	put_text(out, output);
	buf_lit(out, "</div></details>");
}
