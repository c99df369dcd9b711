/* Plain JSONL: the entries of one path in Sheaf's own form, one a line, without where they lie and
 * came from. */
#include "convert/convert.h"

#include "base/str.h"
#include "entry/members.h"

static void string_put(buf *out, const char *name, sheaf_str text)
{
	buf_format(out, ",\"%s\":", name);
	buf_json(out, text);
}

static int line_write(export *ex, const sheaf_entry *entry)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SHEAF_RECORD_BYTES_MAX * 2);
	sheaf_str key, member;
	buf_lit(&out, "{\"type\":");
	buf_json(&out, entry->type);
	string_put(&out, "id", entry->id);
	string_put(&out, "timestamp", entry->timestamp);
	if (entry->label.len != 0)
		string_put(&out, "label", entry->label);
	for (size_t at = 0; members_next(entry->body, &at, &key, &member);) {
		if (members_key_is(key, "origin") || members_key_is(key, "label"))
			continue;
		buf_lit(&out, ",\"");
		buf_str(&out, key);
		buf_lit(&out, "\":");
		buf_str(&out, member);
	}
	buf_lit(&out, "}\n");
	int rc = buf_status(&out, ex->err);
	return rc == 0 ? export_write(ex, buf_view(&out)) : rc;
}

static int jsonl_write(export *ex)
{
	const sheaf_records *path;
	int rc = export_path(ex, &path);
	for (size_t i = 0; rc == 0 && i < path->count; i++)
		rc = line_write(ex, path->items[i]);
	return rc == 0 ? export_path_losses(ex) : rc;
}

const converter convert_jsonl = {
	.is = {.name = "jsonl", .title = "JSON lines", .exports = 1},
	.write = jsonl_write,
};
