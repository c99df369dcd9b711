/* Entries and messages as people read them: headings, text, folded tool output. */
#include "view.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "markdown.h"

#define FOLD_TOOL 5u /* lines of a tool's output shown unless --full */
#define FOLD_THINKING 3u
#define FOLD_COLUMNS 160u /* where the width is not known */
#define READING_COLUMNS 100u
#define PREVIEW_BYTES 1024u
#define NAME_COLUMNS 72u
#define INDENT 2u

void view_done(view *v)
{
	map_free(&v->calls);
	map_free(&v->seqs);
	arena_free(v->kept);
	buf_free(&v->out);
}

/* ---- Words ------------------------------------------------------------- */

static const char *role_word(sheaf_str role)
{
	static const char *const names[][2] = {
		{SHEAF_ROLE_SYSTEM, "system"},
		{SHEAF_ROLE_DEVELOPER, "developer"},
		{SHEAF_ROLE_USER, "user"},
		{SHEAF_ROLE_ASSISTANT, "assistant"},
		{SHEAF_ROLE_TOOL, "tool"},
		{SHEAF_ROLE_BASH, "bash"},
		{SHEAF_ROLE_CUSTOM, "custom"},
		{SHEAF_ROLE_BRANCH_SUMMARY, "summary"},
		{SHEAF_ROLE_COMPACTION_SUMMARY, "summary"},
	};
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		if (str_is(role, names[i][0]))
			return names[i][1];
	}
	return "message";
}

const char *view_word(const sheaf_entry *entry)
{
	if (entry->damaged)
		return "damaged";
	switch (entry->kind) {
	case SHEAF_KIND_MESSAGE:
		return entry->message != NULL ? role_word(entry->message->role) : "message";
	case SHEAF_KIND_MODEL_CHANGE:
		return "model";
	case SHEAF_KIND_THINKING_LEVEL:
		return "thinking";
	case SHEAF_KIND_COMPACTION:
		return "compaction";
	case SHEAF_KIND_BRANCH_SUMMARY:
		return "summary";
	case SHEAF_KIND_CUSTOM:
		return "custom";
	default:
		return "other";
	}
}

static const char *role_style(sheaf_str role)
{
	if (str_is(role, SHEAF_ROLE_USER))
		return STYLE_USER;
	if (str_is(role, SHEAF_ROLE_ASSISTANT))
		return STYLE_ASSISTANT;
	if (str_is(role, SHEAF_ROLE_TOOL) || str_is(role, SHEAF_ROLE_BASH))
		return STYLE_TOOL;
	return STYLE_OTHER;
}

const char *view_word_style(const sheaf_entry *entry)
{
	if (entry->damaged)
		return STYLE_BAD;
	if (entry->kind == SHEAF_KIND_COMPACTION)
		return STYLE_COMPACTED;
	if (entry->kind == SHEAF_KIND_MESSAGE && entry->message != NULL)
		return role_style(entry->message->role);
	return entry->kind == SHEAF_KIND_BRANCH_SUMMARY ? STYLE_OTHER : STYLE_DIM;
}

/* ---- One line ---------------------------------------------------------- */

/* A preview needs only the beginning, whatever the size of the rest. */
static void put_line(buf *out, sheaf_str text)
{
	text_safe(out, utf8_cut(text, PREVIEW_BYTES), TEXT_LINE);
}

/* A call with one argument shows it bare, others as name: value. */
static void put_arguments(buf *out, sheaf_str input)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	if (input.len > PREVIEW_BYTES * 64 || json_parse(&doc, input, NULL) != 0 ||
	    json_type_of(json_root(doc)) != JSON_OBJECT) {
		put_line(out, input);
		return;
	}
	size_t count = json_count(json_root(doc)), i = 0;
	for (json_iter it = json_each(json_root(doc)); json_next(&it); i++) {
		sheaf_str name = json_string(it.key), value = json_string(it.value);
		if (i > 0)
			buf_lit(out, ", ");
		if (count > 1) {
			put_line(out, name);
			buf_lit(out, ": ");
		}
		if (value.ptr == NULL) {
			_cleanup_(buf_free) buf key = BUF_INIT(PREVIEW_BYTES);
			buf_str(&key, name);
			buf_nul(&key);
			value = json_member_bytes(input, key.ptr != NULL ? key.ptr : "");
		}
		put_line(out, value);
	}
}

void view_call(buf *out, const sheaf_part *part)
{
	put_line(out, part->name);
	buf_char(out, '(');
	put_arguments(out, part->input);
	buf_char(out, ')');
}

static void put_media(buf *out, const sheaf_part *part)
{
	buf_lit(out, "[");
	buf_str(out, part->kind == SHEAF_PART_IMAGE ? SHEAF_STR("image") : SHEAF_STR("document"));
	if (part->media_type.len != 0) {
		buf_char(out, ' ');
		put_line(out, part->media_type);
	}
	bool named = str_is(part->source_type, "url") || str_is(part->source_type, "file");
	if (str_is(part->source_type, "base64")) {
		buf_lit(out, ", ");
		text_bytes(out, part->data.len / 4 * 3);
	} else if (named && !str_starts(part->data, "data:")) {
		buf_char(out, ' ');
		put_line(out, part->data);
	} else if (part->data.len != 0) {
		buf_lit(out, ", ");
		text_bytes(out, part->data.len);
	}
	buf_lit(out, "]");
}

static void put_other(buf *out, const sheaf_part *part)
{
	buf_lit(out, "[");
	if (part->provider.len != 0)
		put_line(out, part->provider);
	else
		buf_lit(out, "unknown");
	buf_lit(out, " part]");
}

/* The name of the tool an answer belongs to, from the answer or from its call. */
static sheaf_str tool_of(const view *v, const sheaf_part *part)
{
	if (part->tool_name.len != 0)
		return part->tool_name;
	const char *name = v != NULL ? map_get_ptr(&v->calls, part->tool_use_id) : NULL;
	return name != NULL ? sheaf_str_of(name) : part->tool_use_id;
}

static void preview_answer(const view *v, buf *out, const sheaf_part *part)
{
	const glyphs *g = text_glyphs();
	buf_format(out, "%s ", g->answer);
	put_line(out, tool_of(v, part));
	buf_str(out, part->is_error == 1 ? SHEAF_STR(" failed: ") : SHEAF_STR(": "));
	put_line(out, part->text);
	for (size_t i = 0; i < part->part_count; i++) {
		const sheaf_part *inner = part->parts[i];
		if (i > 0)
			buf_char(out, ' ');
		if (inner->kind == SHEAF_PART_TEXT)
			put_line(out, inner->text);
		else if (inner->kind == SHEAF_PART_IMAGE || inner->kind == SHEAF_PART_DOCUMENT)
			put_media(out, inner);
	}
}

static void preview_part(const view *v, buf *out, const sheaf_part *part)
{
	switch (part->kind) {
	case SHEAF_PART_TEXT:
		put_line(out, part->text);
		break;
	case SHEAF_PART_THINKING:
		buf_lit(out, "(thinking) ");
		put_line(out, part->text);
		break;
	case SHEAF_PART_IMAGE:
	case SHEAF_PART_DOCUMENT:
		put_media(out, part);
		break;
	case SHEAF_PART_TOOL_USE:
		buf_format(out, "%s ", text_glyphs()->call);
		view_call(out, part);
		break;
	case SHEAF_PART_TOOL_RESULT:
		preview_answer(v, out, part);
		break;
	default:
		put_other(out, part);
	}
}

/* The members in which a command that the user ran keeps itself and its output; NULL: it has none. */
static const json_val *command_of(const sheaf_message_view *message, json_doc **doc)
{
	if (!str_is(message->role, SHEAF_ROLE_BASH) || message->json.ptr == NULL ||
	    json_parse(doc, message->json, NULL) != 0)
		return NULL;
	const json_val *root = json_root(*doc);
	return json_string(json_get(root, "command")).ptr != NULL ? root : NULL;
}

static void preview_command(buf *out, const sheaf_message_view *message)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	const json_val *run = command_of(message, &doc);
	if (run == NULL)
		return;
	buf_lit(out, "$ ");
	put_line(out, json_string(json_get(run, "command")));
}

/* Thinking says little in one line where there is anything else. */
static void preview_message(const view *v, buf *out, const sheaf_message_view *message)
{
	bool others = false;
	for (size_t i = 0; i < message->part_count; i++)
		others = others || message->parts[i]->kind != SHEAF_PART_THINKING;
	size_t begin = out->len;
	preview_command(out, message);
	for (size_t i = 0; i < message->part_count && out->len - begin < PREVIEW_BYTES; i++) {
		if (others && message->parts[i]->kind == SHEAF_PART_THINKING)
			continue;
		if (out->len > begin && out->ptr[out->len - 1] != ' ')
			buf_char(out, ' ');
		preview_part(v, out, message->parts[i]);
	}
}

static void put_model(buf *out, const sheaf_entry *entry)
{
	put_line(out, entry->provider);
	if (entry->provider.len != 0 && entry->model.len != 0)
		buf_char(out, '/');
	put_line(out, entry->model);
}

void view_preview(const view *v, buf *out, const sheaf_entry *entry)
{
	if (entry->damaged) {
		buf_lit(out, "cannot be read");
		return;
	}
	switch (entry->kind) {
	case SHEAF_KIND_MESSAGE:
		if (entry->message != NULL)
			preview_message(v, out, entry->message);
		break;
	case SHEAF_KIND_MODEL_CHANGE:
		put_model(out, entry);
		break;
	case SHEAF_KIND_CUSTOM:
		put_line(out, entry->text);
		if (entry->data.len != 0) {
			buf_char(out, ' ');
			put_line(out, entry->data);
		}
		break;
	case SHEAF_KIND_THINKING_LEVEL:
	case SHEAF_KIND_COMPACTION:
	case SHEAF_KIND_BRANCH_SUMMARY:
		put_line(out, entry->text);
		break;
	default:
		put_line(out, entry->type);
		buf_char(out, ' ');
		put_line(out, entry->body);
	}
}

void view_name(buf *out, const sheaf_session_info *info)
{
	_cleanup_(buf_free) buf preview = BUF_INIT(SIZE_MAX);
	size_t begin = out->len;
	text_safe(&preview, info->preview, TEXT_LINE);
	if (info->name.len != 0)
		text_safe(out, info->name, TEXT_LINE);
	else if (preview.len != 0)
		text_cut(out, buf_view(&preview), NAME_COLUMNS);
	else if (!info->damaged)
		buf_lit(out, "(empty)");
	if (info->kind.len != 0 && !str_is(info->kind, "main")) {
		buf_lit(out, " (");
		text_safe(out, info->kind, TEXT_LINE);
		buf_lit(out, ")");
	}
	if (info->hidden)
		buf_lit(out, " (deleted, kept for forks)");
	if (info->readonly)
		buf_lit(out, " (read-only)");
	if (info->damaged)
		buf_str(out, out->len != begin ? SHEAF_STR(" (damaged)") : SHEAF_STR("(damaged)"));
}

void view_directory(buf *out, sheaf_str cwd)
{
	const char *home = getenv("HOME");
	size_t len = home != NULL ? strlen(home) : 0;
	if (len > 1 && cwd.len >= len && memcmp(cwd.ptr, home, len) == 0 &&
	    (cwd.len == len || cwd.ptr[len] == '/')) {
		buf_char(out, '~');
		cwd = str_make(cwd.ptr + len, cwd.len - len);
	}
	text_safe(out, cwd, TEXT_LINE);
}

/* ---- Headings ---------------------------------------------------------- */

static void put_dot(buf *out)
{
	buf_format(out, " %s ", text_glyphs()->dot);
}

void view_facts(const cli *c, buf *out, const sheaf_head_view *head)
{
	const sheaf_session_info *info = head->info;
	/* A fork counts its own; what it inherits is counted where it is stored. */
	if (info->source.len != 0)
		text_count(out, info->messages, "message of its own", "messages of its own");
	else
		text_count(out, info->messages, "message", "messages");
	if (head->branch_count > 1) {
		put_dot(out);
		text_count(out, head->branch_count, "branch", "branches");
	}
	if (info->source.len != 0) {
		put_dot(out);
		buf_lit(out, "fork of ");
		text_safe(out, info->source, TEXT_LINE);
		buf_format(out, " at @%llu", (unsigned long long)info->base);
	}
	if (info->cwd.len != 0) {
		put_dot(out);
		view_directory(out, info->cwd);
	}
	uint64_t in = info->usage.input + info->usage.cache_read + info->usage.cache_write_5m +
	              info->usage.cache_write_1h;
	if (in + info->usage.output != 0) {
		put_dot(out);
		text_count(out, in, "token in, ", "tokens in, ");
		text_count(out, info->usage.output, "out", "out");
	}
	put_dot(out);
	text_ago(out, info->modified_us, c->screen.now_us);
}

void view_session(view *v, const sheaf_head_view *head)
{
	const screen *s = &v->c->screen;
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	text_safe(&text, head->info->session, TEXT_LINE);
	print_styled(s, &v->out, STYLE_TITLE, buf_view(&text));
	if (head->info->name.len != 0) {
		buf_lit(&v->out, "  ");
		text_safe(&v->out, head->info->name, TEXT_LINE);
	}
	buf_char(&v->out, '\n');
	buf_reset(&text);
	view_facts(v->c, &text, head);
	print_styled(s, &v->out, STYLE_DIM, buf_view(&text));
	buf_lit(&v->out, "\n");
	if (head->damaged)
		print_styled(
			s, &v->out, STYLE_BAD,
			SHEAF_STR("damaged: some records cannot be read (see `sheaf check`)\n"));
	v->gap = true;
	print_out(&v->out);
}

/* A copy that lives as long as the view; {NULL,0} without memory: then numbers and names of tools
 * are not known later, which is good enough. */
static sheaf_str keep(view *v, sheaf_str s)
{
	int ok = 1;
	if (v->kept == NULL)
		v->kept = arena_new();
	sheaf_str copy = v->kept != NULL ? arena_dup(v->kept, s, &ok) : (sheaf_str){NULL, 0};
	return ok ? copy : (sheaf_str){NULL, 0};
}

static void note_calls(view *v, const sheaf_message_view *message)
{
	uint64_t known;
	for (size_t i = 0; i < message->part_count; i++) {
		const sheaf_part *part = message->parts[i];
		if (part->kind != SHEAF_PART_TOOL_USE || part->id.ptr == NULL ||
		    map_get(&v->calls, part->id, &known))
			continue;
		sheaf_str id = keep(v, part->id), name = keep(v, part->name);
		if (id.ptr != NULL && name.ptr != NULL)
			(void)map_set(&v->calls, id, (uint64_t)(uintptr_t)name.ptr);
	}
}

void view_note(view *v, const sheaf_entry *entry)
{
	uint64_t known;
	if (entry->id.ptr != NULL && !map_get(&v->seqs, entry->id, &known)) {
		sheaf_str id = keep(v, entry->id);
		if (id.ptr != NULL)
			(void)map_set(&v->seqs, id, entry->seq);
	}
	if (entry->message != NULL)
		note_calls(v, entry->message);
}

/* What stands after the word: the model, the tool, the setting. */
static void put_subject(view *v, buf *out, const sheaf_entry *entry)
{
	const sheaf_message_view *message = entry->message;
	uint64_t seq;
	if (message != NULL && message->model.len != 0) {
		put_dot(out);
		text_safe(out, message->model, TEXT_LINE);
	} else if (message != NULL && message->part_count == 1 &&
	           message->parts[0]->kind == SHEAF_PART_TOOL_RESULT) {
		put_dot(out);
		text_safe(out, tool_of(v, message->parts[0]), TEXT_LINE);
		if (message->parts[0]->is_error == 1)
			buf_lit(out, " failed");
	} else if (entry->kind == SHEAF_KIND_MODEL_CHANGE ||
	           entry->kind == SHEAF_KIND_THINKING_LEVEL) {
		put_dot(out);
		view_preview(v, out, entry);
	} else if (entry->kind == SHEAF_KIND_CUSTOM) {
		put_dot(out);
		text_safe(out, entry->text, TEXT_LINE);
	} else if (entry->kind == SHEAF_KIND_COMPACTION && entry->target_id.len != 0) {
		put_dot(out);
		if (map_get(&v->seqs, entry->target_id, &seq))
			buf_format(out, "keeps from @%llu", (unsigned long long)seq);
		else
			buf_lit(out, "keeps what cannot be found");
	}
	if (message != NULL && str_is(message->stop_reason, "max_tokens"))
		buf_lit(out, " (cut off)");
}

static void put_label(view *v, sheaf_str label)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX);
	buf_lit(&text, "[");
	text_safe(&text, label, TEXT_LINE);
	buf_lit(&text, "]");
	buf_char(&v->out, ' ');
	print_styled(&v->c->screen, &v->out, STYLE_LABEL, buf_view(&text));
}

static void put_gap(view *v)
{
	if (v->gap)
		buf_char(&v->out, '\n');
	v->gap = true;
}

static void put_heading(view *v, const sheaf_entry *entry)
{
	const screen *s = &v->c->screen;
	_cleanup_(buf_free) buf rest = BUF_INIT(SIZE_MAX);
	print_styled(s, &v->out, view_word_style(entry), sheaf_str_of(view_word(entry)));
	put_subject(v, &rest, entry);
	put_dot(&rest);
	if (v->full)
		text_safe(&rest, entry->timestamp, TEXT_LINE);
	else
		text_ago(&rest, entry->time_us, s->now_us);
	put_dot(&rest);
	buf_format(&rest, "@%llu", (unsigned long long)entry->seq);
	print_styled(s, &v->out, STYLE_DIM, buf_view(&rest));
	if (entry->label.len != 0)
		put_label(v, entry->label);
	buf_char(&v->out, '\n');
}

/* ---- Bodies ------------------------------------------------------------ */

static size_t reading_columns(const view *v)
{
	size_t width = v->c->screen.width;
	return width > READING_COLUMNS ? READING_COLUMNS : width;
}

/* Without memory for it the text is shown as it stands. */
static bool put_markdown(view *v, sheaf_str text)
{
	const screen *s = &v->c->screen;
	_cleanup_(markdown_freep) markdown *m = NULL;
	size_t columns = reading_columns(v);
	if (markdown_read(&m, text, columns > 2 * INDENT ? columns - INDENT : columns,
	                  s->color ? 0 : MARKDOWN_MARKS) != 0)
		return false;
	for (size_t i = 0; i < m->count; i++) {
		if (m->lines[i].count != 0 && columns > 2 * INDENT)
			text_spaces(&v->out, INDENT);
		markdown_put(s, &v->out, &m->lines[i]);
		buf_char(&v->out, '\n');
	}
	return true;
}

static void put_block(view *v, sheaf_str text)
{
	_cleanup_(buf_free) buf safe = BUF_INIT(SIZE_MAX);
	if (v->c->screen.tty && !v->source && put_markdown(v, text))
		return;
	while (text.len > 0 && text.ptr[text.len - 1] == '\n')
		text.len--;
	text_safe(&safe, text, TEXT_BLOCK);
	text_wrap(&v->out, buf_view(&safe), INDENT, reading_columns(v));
}

static size_t count_lines(sheaf_str text)
{
	size_t lines = text.len != 0;
	for (size_t i = 0; i + 1 < text.len; i++)
		lines += text.ptr[i] == '\n';
	return lines;
}

void view_quoted(view *v, const char *style, sheaf_str line)
{
	_cleanup_(buf_free) buf safe = BUF_INIT(SIZE_MAX), cut = BUF_INIT(SIZE_MAX);
	size_t width = v->c->screen.width > 20 ? v->c->screen.width - 5 : FOLD_COLUMNS;
	/* Long enough for any terminal, short enough for a line of ten megabytes. */
	text_safe(&safe, v->full ? line : utf8_cut(line, PREVIEW_BYTES), TEXT_BLOCK);
	text_cut(&cut, buf_view(&safe), v->full ? 0 : width);
	text_spaces(&v->out, INDENT);
	print_styled(&v->c->screen, &v->out, STYLE_DIM, sheaf_str_of(text_glyphs()->quote));
	print_styled(&v->c->screen, &v->out, style, buf_view(&cut));
	buf_char(&v->out, '\n');
}

void view_more(view *v, size_t lines)
{
	_cleanup_(buf_free) buf more = BUF_INIT(SIZE_MAX);
	if (lines == 0)
		return;
	text_spaces(&more, INDENT);
	buf_format(&more, "%s ", text_glyphs()->ellipsis);
	text_count(&more, lines, "more line", "more lines");
	buf_char(&more, '\n');
	print_styled(&v->c->screen, &v->out, STYLE_DIM, buf_view(&more));
}

/* The first lines of a text, and how many more there are. */
static void put_folded(view *v, const char *style, sheaf_str text, size_t fold)
{
	size_t lines = count_lines(text), at = 0;
	/* Never a fold that hides a single line. */
	size_t show = v->full || lines <= fold + 1 ? lines : fold;
	for (size_t i = 0; i < show && at < text.len; i++) {
		const char *end = memchr(text.ptr + at, '\n', text.len - at);
		size_t len = end != NULL ? (size_t)(end - text.ptr) - at : text.len - at;
		view_quoted(v, style, str_make(text.ptr + at, len));
		at += len + 1;
	}
	view_more(v, lines - show);
}

size_t view_room(const view *v)
{
	size_t width = v->c->screen.width;
	return width > INDENT ? width - INDENT : 0;
}

static void put_line_in(view *v, const char *style, const buf *line)
{
	text_spaces(&v->out, INDENT);
	_cleanup_(buf_free) buf cut = BUF_INIT(SIZE_MAX);
	text_cut(&cut, buf_view(line), v->full ? 0 : view_room(v));
	print_styled(&v->c->screen, &v->out, style, buf_view(&cut));
	buf_char(&v->out, '\n');
}

static void put_call(view *v, const sheaf_part *part)
{
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
	if (v->c->screen.tty && !v->source && view_edit(v, part))
		return;
	buf_format(&line, "%s ", text_glyphs()->call);
	if (v->full)
		text_safe(&line, part->name, TEXT_LINE);
	else
		view_call(&line, part);
	put_line_in(v, STYLE_TOOL, &line);
	if (v->full)
		put_folded(v, NULL, part->input, 0);
}

static void put_media_line(view *v, const sheaf_part *part)
{
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
	put_media(&line, part);
	put_line_in(v, STYLE_DIM, &line);
}

static void put_answer(view *v, const sheaf_part *part, bool named)
{
	const char *style = part->is_error == 1 ? STYLE_BAD : NULL;
	if (!named) {
		_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
		buf_format(&line, "%s ", text_glyphs()->answer);
		text_safe(&line, tool_of(v, part), TEXT_LINE);
		if (part->is_error == 1)
			buf_lit(&line, " failed");
		put_line_in(v, STYLE_TOOL, &line);
	}
	put_folded(v, style, part->text, FOLD_TOOL);
	for (size_t i = 0; i < part->part_count; i++) {
		const sheaf_part *inner = part->parts[i];
		if (inner->kind == SHEAF_PART_TEXT)
			put_folded(v, style, inner->text, FOLD_TOOL);
		else if (inner->kind == SHEAF_PART_IMAGE || inner->kind == SHEAF_PART_DOCUMENT)
			put_media_line(v, inner);
	}
}

static void put_part(view *v, const sheaf_part *part, bool named)
{
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
	switch (part->kind) {
	case SHEAF_PART_TEXT:
		put_block(v, part->text);
		break;
	case SHEAF_PART_THINKING:
		buf_lit(&line, "thinking");
		if (part->redacted)
			buf_lit(&line, ", redacted");
		put_line_in(v, STYLE_DIM, &line);
		if (!part->redacted)
			put_folded(v, STYLE_DIM, part->text, FOLD_THINKING);
		break;
	case SHEAF_PART_IMAGE:
	case SHEAF_PART_DOCUMENT:
		put_media_line(v, part);
		break;
	case SHEAF_PART_TOOL_USE:
		put_call(v, part);
		break;
	case SHEAF_PART_TOOL_RESULT:
		put_answer(v, part, named);
		break;
	default:
		put_other(&line, part);
		put_line_in(v, STYLE_DIM, &line);
	}
}

static void put_command(view *v, const sheaf_message_view *message)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX);
	const json_val *run = command_of(message, &doc);
	if (run == NULL)
		return;
	buf_lit(&line, "$ ");
	text_safe(&line, json_string(json_get(run, "command")), TEXT_LINE);
	put_line_in(v, STYLE_TOOL, &line);
	put_folded(v, NULL, json_string(json_get(run, "output")), FOLD_TOOL);
	sheaf_str code = json_number(json_get(run, "exitCode"));
	buf_reset(&line);
	if (json_bool(json_get(run, "cancelled")))
		buf_lit(&line, "cancelled");
	else if (code.ptr != NULL && !str_is(code, "0"))
		buf_format(&line, "exit code %.*s", (int)code.len, code.ptr);
	if (line.len != 0)
		put_line_in(v, STYLE_BAD, &line);
}

/* `named`: the heading already says which tool answered. */
static void put_message(view *v, const sheaf_message_view *message, bool named)
{
	put_command(v, message);
	for (size_t i = 0; i < message->part_count; i++) {
		const sheaf_part *part = message->parts[i];
		bool follows = i > 0 && (part->kind != message->parts[i - 1]->kind);
		if (follows)
			buf_char(&v->out, '\n');
		put_part(v, part, named && message->part_count == 1);
	}
}

void view_entry_put(view *v, const sheaf_entry *entry)
{
	put_gap(v);
	put_heading(v, entry);
	if (entry->damaged) {
		print_styled(&v->c->screen, &v->out, STYLE_BAD,
		             SHEAF_STR("  this record cannot be read\n"));
	} else if (entry->kind == SHEAF_KIND_MESSAGE && entry->message != NULL) {
		put_message(v, entry->message, true);
	} else if (entry->kind == SHEAF_KIND_COMPACTION ||
	           entry->kind == SHEAF_KIND_BRANCH_SUMMARY) {
		put_block(v, entry->text);
	} else if (entry->kind == SHEAF_KIND_CUSTOM && entry->data.len != 0) {
		put_folded(v, STYLE_DIM, entry->data, 0);
	} else if (entry->kind == SHEAF_KIND_OTHER_ENTRY) {
		put_folded(v, STYLE_DIM, entry->body, 0);
	}
	view_note(v, entry);
}

void view_entry(view *v, const sheaf_entry *entry)
{
	view_entry_put(v, entry);
	print_out(&v->out);
}

void view_item(view *v, const sheaf_item *item)
{
	const screen *s = &v->c->screen;
	_cleanup_(buf_free) buf rest = BUF_INIT(SIZE_MAX);
	v->source = true;
	put_gap(v);
	text_safe(&rest, item->message->role, TEXT_LINE);
	print_styled(s, &v->out, role_style(item->message->role), buf_view(&rest));
	buf_reset(&rest);
	put_dot(&rest);
	if (item->synthetic)
		buf_lit(&rest, "made up, nothing was recorded");
	else if (item->entry != NULL)
		buf_format(&rest, "@%llu", (unsigned long long)item->entry->seq);
	print_styled(s, &v->out, STYLE_DIM, buf_view(&rest));
	buf_char(&v->out, '\n');
	put_message(v, item->message, false);
	note_calls(v, item->message);
	print_out(&v->out);
}
