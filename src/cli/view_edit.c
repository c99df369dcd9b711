/* Tool calls that change a file, as the lines they take away and add. */
#include "base/json.h"
#include "base/str.h"
#include "view.h"

#define EDIT_MAX ((size_t)1 << 20) /* longer ones are shown as any other call */
#define FOLD_EDIT 12u
#define INDENT 2u

/* What agents call the text that goes and the text that comes. */
static const char *const old_names[] = {"old_string", "oldText", "oldString", "old_str"};
static const char *const new_names[] = {"new_string", "newText", "newString", "new_str"};

static bool is_one_of(sheaf_str name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (str_is(name, names[i]))
			return true;
	}
	return false;
}

static sheaf_str member_of(const json_val *object, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		sheaf_str text = json_string(json_get(object, names[i]));
		if (text.ptr != NULL)
			return text;
	}
	return (sheaf_str){NULL, 0};
}

/* The next line of a text, which moves on. */
static sheaf_str next_line(sheaf_str *text)
{
	const char *end = memchr(text->ptr, '\n', text->len);
	sheaf_str line = str_make(text->ptr, end != NULL ? (size_t)(end - text->ptr) : text->len);
	size_t skip = line.len + (end != NULL);
	*text = str_make(text->ptr + skip, text->len - skip);
	return line;
}

/* Leaves out the lines that both begin with. */
static void skip_same(sheaf_str *a, sheaf_str *b)
{
	while (a->len != 0 && b->len != 0) {
		sheaf_str rest_a = *a, rest_b = *b;
		sheaf_str line_a = next_line(&rest_a), line_b = next_line(&rest_b);
		if (!str_eq(line_a, line_b))
			return;
		*a = rest_a;
		*b = rest_b;
	}
}

/* Leaves out the lines that both end with. */
static void cut_same(sheaf_str *a, sheaf_str *b)
{
	size_t same = 0, whole = 0;
	while (same < a->len && same < b->len &&
	       a->ptr[a->len - 1 - same] == b->ptr[b->len - 1 - same]) {
		same++;
		if (a->ptr[a->len - same] == '\n')
			whole = same;
	}
	if (same == a->len || same == b->len) {
		bool begins_a = same == a->len || a->ptr[a->len - same - 1] == '\n';
		bool begins_b = same == b->len || b->ptr[b->len - same - 1] == '\n';
		whole = begins_a && begins_b ? same : whole;
	}
	a->len -= whole;
	b->len -= whole;
}

static void put_lines(buf *out, char sign, sheaf_str text)
{
	while (text.len != 0) {
		buf_char(out, sign);
		buf_str(out, next_line(&text));
		buf_char(out, '\n');
	}
}

/* One exchange of a text for another. False: this is none. */
static bool put_exchange(buf *out, const json_val *object)
{
	sheaf_str before = member_of(object, old_names, COUNT_OF(old_names));
	sheaf_str after = member_of(object, new_names, COUNT_OF(new_names));
	if (before.ptr == NULL || after.ptr == NULL)
		return false;
	skip_same(&before, &after);
	cut_same(&before, &after);
	if (out->len != 0)
		buf_lit(out, "@@\n");
	put_lines(out, '-', before);
	put_lines(out, '+', after);
	return true;
}

/* The changes of a call, a line each, after a sign. False: it makes none that is understood. */
static bool put_changes(buf *out, const json_val *root)
{
	const json_val *edits = json_get(root, "edits");
	if (json_type_of(edits) != JSON_ARRAY)
		return put_exchange(out, root);
	for (json_iter it = json_each(edits); json_next(&it);) {
		if (!put_exchange(out, it.value))
			return false;
	}
	return json_count(edits) != 0;
}

static bool is_patch(sheaf_str text)
{
	return text.ptr != NULL && str_starts(text, "*** Begin Patch\n");
}

/* The patch that a call holds: it is one, a member is, or the words of a command have it. */
static sheaf_str patch_in(const json_val *root, sheaf_str input)
{
	if (is_patch(input))
		return input;
	if (is_patch(json_string(root)))
		return json_string(root);
	for (json_iter it = json_each(root); json_next(&it);) {
		if (is_patch(json_string(it.value)))
			return json_string(it.value);
		if (json_type_of(it.value) != JSON_ARRAY)
			continue;
		for (json_iter word = json_each(it.value); json_next(&word);) {
			if (is_patch(json_string(word.value)))
				return json_string(word.value);
		}
	}
	return (sheaf_str){NULL, 0};
}

/* The call with what else it says: the file. */
static void put_title(view *v, const sheaf_part *part, const json_val *root)
{
	_cleanup_(buf_free) buf line = BUF_INIT(SIZE_MAX), cut = BUF_INIT(SIZE_MAX);
	const char *before = "";
	buf_format(&line, "%s ", text_glyphs()->call);
	text_safe(&line, part->name, TEXT_LINE);
	buf_char(&line, '(');
	for (json_iter it = json_each(root); json_next(&it);) {
		sheaf_str name = json_string(it.key), value = json_string(it.value);
		if (value.ptr == NULL || is_patch(value) ||
		    is_one_of(name, old_names, COUNT_OF(old_names)) ||
		    is_one_of(name, new_names, COUNT_OF(new_names)))
			continue;
		buf_str(&line, sheaf_str_of(before));
		text_safe(&line, value, TEXT_LINE);
		before = ", ";
	}
	buf_char(&line, ')');
	text_cut(&cut, buf_view(&line), v->full ? 0 : view_room(v));
	text_spaces(&v->out, INDENT);
	print_styled(&v->c->screen, &v->out, STYLE_TOOL, buf_view(&cut));
	buf_char(&v->out, '\n');
}

static const char *sign_style(char sign)
{
	switch (sign) {
	case '+':
		return STYLE_ADDED;
	case '-':
		return STYLE_BAD;
	case '@':
	case '*':
		return STYLE_DIM;
	default:
		return NULL;
	}
}

static void put_folded(view *v, sheaf_str changes)
{
	sheaf_str rest = changes;
	size_t lines = 0, shown = 0;
	while (rest.len != 0) {
		(void)next_line(&rest);
		lines++;
	}
	size_t show = v->full || lines <= FOLD_EDIT + 1 ? lines : FOLD_EDIT;
	for (; shown < show; shown++) {
		sheaf_str line = next_line(&changes);
		view_quoted(v, line.len != 0 ? sign_style(line.ptr[0]) : NULL, line);
	}
	view_more(v, lines - shown);
}

bool view_edit(view *v, const sheaf_part *part)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	_cleanup_(buf_free) buf changes = BUF_INIT(SIZE_MAX);
	if (part->input.len > EDIT_MAX)
		return false;
	const json_val *root = json_parse(&doc, part->input, NULL) == 0 ? json_root(doc) : NULL;
	sheaf_str patch = patch_in(root, part->input);
	if (patch.ptr == NULL && json_type_of(root) == JSON_OBJECT && put_changes(&changes, root))
		patch = buf_view(&changes);
	if (patch.ptr == NULL || changes.status != 0)
		return false;
	put_title(v, part, root);
	put_folded(v, patch);
	return true;
}
