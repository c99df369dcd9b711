/*
 * The words Sheaf itself says to a model: for roles no provider knows, and for
 * what cannot be shown. docs/rendering.md lists them. Changing one breaks every
 * prompt cache.
 */
#include "render/render.h"

#include "base/json.h"
#include "base/str.h"
#include "entry/members.h"

#define SUMMARY_END "\n</summary>"

static const struct wording {
	const char *role;
	const char *before;
	const char *after;
	const char *member; /* where the text is if there are no parts */
} wordings[] = {
	{SHEAF_ROLE_COMPACTION_SUMMARY,
         "The earlier part of this conversation is not shown. In short, it was this:\n\n"
         "<summary>\n",
         SUMMARY_END, "summary"},
	{SHEAF_ROLE_BRANCH_SUMMARY,
         "This conversation went another way and came back to this point. In short, what "
         "happened there:\n\n<summary>\n",
         SUMMARY_END, "summary"},
	{SHEAF_ROLE_SYSTEM, "[system message]\n", "", NULL},
	{SHEAF_ROLE_DEVELOPER, "[developer message]\n", "", NULL},
	{SHEAF_ROLE_BASH, "[The user ran a command]\n", "", NULL},
};

static const struct wording *wording_of(sheaf_str role)
{
	for (size_t i = 0; i < COUNT_OF(wordings); i++) {
		if (str_is(role, wordings[i].role))
			return &wordings[i];
	}
	return NULL;
}

bool wording_has(sheaf_str role)
{
	return wording_of(role) != NULL;
}

static int in_arena(sheaf_str *out, const buf *text, arena *a)
{
	int ok = 1;
	if (text->status != 0)
		return SHEAF_NOMEM;
	*out = arena_dup(a, buf_view(text), &ok);
	return ok ? 0 : SHEAF_NOMEM;
}

/* A string member of a message that its writer put beside the content; false if there is none. */
static bool add_member(buf *out, sheaf_str json, const char *name, json_doc **doc)
{
	sheaf_str value = members_find(members_inside(json), name);
	if (value.len < 2 || value.ptr[0] != '"')
		return false;
	int rc = json_parse(doc, value, NULL);
	if (rc == SHEAF_NOMEM)
		out->status = rc;
	if (rc != 0)
		return false;
	buf_str(out, json_string(json_root(*doc)));
	return true;
}

static bool member_is_true(sheaf_str json, const char *name)
{
	return str_is(members_find(members_inside(json), name), "true");
}

static void end_line(buf *out)
{
	if (out->len != 0 && out->ptr[out->len - 1] != '\n')
		buf_char(out, '\n');
}

/* A command that was run, from the members its writer gave it. */
static bool add_command(buf *out, sheaf_str json, json_doc **doc)
{
	size_t before = out->len;
	buf_lit(out, "$ ");
	if (!add_member(out, json, "command", doc)) {
		if (out->status == 0)
			out->len = before;
		return false;
	}
	end_line(out);
	size_t start = out->len;
	(void)add_member(out, json, "output", doc);
	if (out->len == start)
		buf_lit(out, "[no output]");
	end_line(out);
	if (member_is_true(json, "truncated"))
		buf_lit(out, "[the output was cut]\n");
	sheaf_str code = members_find(members_inside(json), "exitCode");
	if (member_is_true(json, "cancelled")) {
		buf_lit(out, "[cancelled]\n");
	} else if (code.len != 0 && code.ptr[0] != 'n' && code.ptr[0] != '"') {
		buf_lit(out, "[exit code ");
		buf_str(out, code);
		buf_lit(out, "]\n");
	}
	if (out->status == 0)
		out->len--;
	return true;
}

/* The text parts, one a line; false if there is none with anything in it. */
static bool add_texts(buf *out, const sheaf_message_view *view)
{
	bool any = false;
	for (size_t i = 0; i < view->part_count; i++) {
		const sheaf_part *part = view->parts[i];
		if (part->kind != SHEAF_PART_TEXT || text_is_blank(part->text))
			continue;
		if (any)
			buf_char(out, '\n');
		buf_str(out, part->text);
		any = true;
	}
	return any;
}

int wording_make(sheaf_str *out, const sheaf_message_view *view, sheaf_str json, arena *a)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX / 2);
	_cleanup_(json_freep) json_doc *doc = NULL;
	const struct wording *w = wording_of(view->role);

	*out = (sheaf_str){NULL, 0};
	if (w == NULL || member_is_true(json, "excludeFromContext"))
		return 0;
	buf_add(&text, w->before, strlen(w->before));
	bool any = str_is(view->role, SHEAF_ROLE_BASH) && add_command(&text, json, &doc);
	if (any && view->part_count != 0)
		buf_char(&text, '\n');
	any |= add_texts(&text, view);
	if (!any && w->member != NULL)
		any = add_member(&text, json, w->member, &doc);
	buf_add(&text, w->after, strlen(w->after));
	if (text.status != 0)
		return text.status;
	*out = str_make("", 0);
	return any ? in_arena(out, &text, a) : 0;
}

static void add_media(buf *text, const sheaf_part *part)
{
	if (part->kind == SHEAF_PART_IMAGE)
		buf_lit(text, "[image");
	else
		buf_lit(text, "[document");
	if (part->media_type.len != 0) {
		buf_lit(text, ", ");
		buf_str(text, part->media_type);
	}
}

int wording_stand_in(sheaf_str *out, const sheaf_part *part, bool blind, bool in_result, arena *a)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX / 2);
	if (blind && part->kind == SHEAF_PART_IMAGE) {
		*out = in_result ? SHEAF_STR("(tool image omitted: model does not support images)")
		                 : SHEAF_STR("(image omitted: model does not support images)");
		return 0;
	}
	add_media(&text, part);
	buf_lit(&text, ": not shown]");
	return in_arena(out, &text, a);
}

int wording_elided(sheaf_str *out, const sheaf_part *part, arena *a)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SIZE_MAX / 2);
	add_media(&text, part);
	buf_lit(&text, ": left out]");
	return in_arena(out, &text, a);
}
