/* Markdown: one path of a session to read, to keep, to paste. */
#include "convert/convert.h"

#include "base/str.h"

#define OUT_BYTES_MAX (SHEAF_RECORD_BYTES_MAX * 4)

/* A fence that is longer than any row of backticks inside. */
static size_t fence_length(sheaf_str text)
{
	size_t longest = 2, run = 0;
	for (size_t i = 0; i < text.len; i++) {
		run = text.ptr[i] == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest + 1;
}

static void fenced_put(buf *out, const char *language, sheaf_str text)
{
	size_t length = fence_length(text);
	for (size_t i = 0; i < length; i++)
		buf_char(out, '`');
	buf_str(out, sheaf_str_of(language));
	buf_char(out, '\n');
	buf_str(out, text);
	if (text.len != 0 && text.ptr[text.len - 1] != '\n')
		buf_char(out, '\n');
	for (size_t i = 0; i < length; i++)
		buf_char(out, '`');
	buf_lit(out, "\n\n");
}

static void quoted_put(buf *out, sheaf_str text)
{
	for (size_t at = 0; at < text.len;) {
		const char *end = memchr(text.ptr + at, '\n', text.len - at);
		size_t len = end != NULL ? (size_t)(end - text.ptr) - at : text.len - at;
		buf_lit(out, "> ");
		buf_add(out, text.ptr + at, len);
		buf_char(out, '\n');
		at += len + 1;
	}
	buf_char(out, '\n');
}

static void text_put(buf *out, sheaf_str text)
{
	buf_str(out, text);
	buf_lit(out, "\n\n");
}

static int media_put(export *ex, buf *out, const sheaf_part *part)
{
	bool image = part->kind == SHEAF_PART_IMAGE;
	buf_format(out, "*[%s: %.*s]*\n\n", image ? "image" : "document", (int)part->media_type.len,
	           part->media_type.ptr);
	return export_loss(ex, image ? "image" : "document");
}

static int result_put(export *ex, buf *out, const sheaf_part *part)
{
	int rc = 0;
	buf_format(out, "**%s** ", part->is_error == 1 ? "Failed" : "Result");
	buf_str(out, part->tool_name);
	buf_lit(out, "\n\n");
	if (part->parts == NULL)
		fenced_put(out, "", part->text);
	for (size_t i = 0; rc == 0 && i < part->part_count; i++) {
		if (part->parts[i]->kind == SHEAF_PART_TEXT)
			fenced_put(out, "", part->parts[i]->text);
		else
			rc = media_put(ex, out, part->parts[i]);
	}
	return rc;
}

static int part_put(export *ex, buf *out, const sheaf_part *part)
{
	switch (part->kind) {
	case SHEAF_PART_TEXT:
		text_put(out, part->text);
		return 0;
	case SHEAF_PART_THINKING:
		if (part->redacted)
			return export_loss(ex, "redacted thinking");
		quoted_put(out, part->text);
		return part->signature.len != 0 ? export_loss(ex, "signature of thinking") : 0;
	case SHEAF_PART_TOOL_USE:
		buf_lit(out, "**Call** ");
		buf_str(out, part->name);
		buf_lit(out, "\n\n");
		fenced_put(out, "json", part->input);
		return 0;
	case SHEAF_PART_TOOL_RESULT:
		return result_put(ex, out, part);
	case SHEAF_PART_IMAGE:
	case SHEAF_PART_DOCUMENT:
		return media_put(ex, out, part);
	default:
		return export_loss(ex, "part only its provider understands");
	}
}

static void heading_put(buf *out, const char *who, sheaf_str what, const sheaf_entry *entry)
{
	buf_lit(out, "## ");
	buf_str(out, sheaf_str_of(who));
	if (what.len != 0) {
		buf_lit(out, " · ");
		buf_str(out, what);
	}
	/* To the second: 2026-11-14T10:00:00. */
	if (entry->timestamp.len >= 19)
		buf_format(out, " · %.10s %.8s", entry->timestamp.ptr, entry->timestamp.ptr + 11);
	buf_lit(out, "\n\n");
}

static const char *role_title(sheaf_str role)
{
	static const char *const titles[][2] = {
		{SHEAF_ROLE_USER, "User"},           {SHEAF_ROLE_ASSISTANT, "Assistant"},
		{SHEAF_ROLE_TOOL, "Tool"},           {SHEAF_ROLE_SYSTEM, "System"},
		{SHEAF_ROLE_DEVELOPER, "Developer"}, {SHEAF_ROLE_BASH, "Command"},
	};
	for (size_t i = 0; i < COUNT_OF(titles); i++) {
		if (str_is(role, titles[i][0]))
			return titles[i][1];
	}
	return "Note";
}

static int entry_put(export *ex, buf *out, const sheaf_entry *entry)
{
	int rc = 0;
	switch (entry->kind) {
	case SHEAF_KIND_MESSAGE:
		heading_put(out, role_title(entry->message->role), entry->message->model, entry);
		for (size_t i = 0; rc == 0 && i < entry->message->part_count; i++)
			rc = part_put(ex, out, entry->message->parts[i]);
		return rc;
	case SHEAF_KIND_COMPACTION:
		heading_put(out, "Summary of what was said before", (sheaf_str){NULL, 0}, entry);
		text_put(out, entry->text);
		return 0;
	case SHEAF_KIND_BRANCH_SUMMARY:
		heading_put(out, "Summary of another branch", (sheaf_str){NULL, 0}, entry);
		text_put(out, entry->text);
		return 0;
	case SHEAF_KIND_CUSTOM:
		return export_loss(ex, "custom entry");
	default:
		return 0;
	}
}

static void title_put(const export *ex, buf *out)
{
	const sheaf_session_info *info = ex->head->info;
	buf_lit(out, "# ");
	buf_str(out, info->name.len != 0 ? info->name : sheaf_session_key(ex->session).session);
	buf_lit(out, "\n\n");
	if (info->cwd.len != 0) {
		buf_char(out, '`');
		buf_str(out, info->cwd);
		buf_lit(out, "`\n\n");
	}
}

static int markdown_write(export *ex)
{
	const sheaf_records *path;
	_cleanup_(buf_free) buf out = BUF_INIT(OUT_BYTES_MAX);
	int rc = export_path(ex, &path);
	title_put(ex, &out);
	for (size_t i = 0; rc == 0 && i < path->count; i++) {
		rc = entry_put(ex, &out, path->items[i]);
		if (rc == 0)
			rc = buf_status(&out, ex->err);
		if (rc == 0)
			rc = export_write(ex, buf_view(&out));
		buf_reset(&out);
	}
	return rc == 0 ? export_path_losses(ex) : rc;
}

const converter convert_markdown = {
	.is = {.name = "markdown", .title = "Markdown", .exports = 1},
	.write = markdown_write,
};
