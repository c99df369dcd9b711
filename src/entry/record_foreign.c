/*
 * Lines of files that are not ours: plain session files in their nested form, and in the flat form
 * in which a payload's members stand beside the envelope's.
 */
#include "entry/record.h"

#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "entry/check.h"
#include "entry/members.h"

#define TYPE_BYTES_MAX 64u

/* What belongs into the payload where a line is flat. */
static const struct flat {
	int32_t kind;
	const char *names; /* with a blank around each */
} flats[] = {
	{SHEAF_KIND_MESSAGE, " role content model provider response_id stop_reason usage "},
	{SHEAF_KIND_MODEL_CHANGE, " provider model_id "},
	{SHEAF_KIND_THINKING_LEVEL, " thinking_level "},
	{SHEAF_KIND_LABEL, " target_id label "},
	{SHEAF_KIND_SESSION_INFO, " name metadata "},
	{SHEAF_KIND_COMPACTION, " summary first_kept_entry_id tokens_before tokens_after trigger "
                                "details replacement kept_ids "},
	{SHEAF_KIND_BRANCH_SUMMARY, " summary from_id details "},
	{SHEAF_KIND_CUSTOM, " custom_type data in_context content "},
};

static const char *flat_names(int32_t kind)
{
	for (size_t i = 0; i < COUNT_OF(flats); i++) {
		if (flats[i].kind == kind)
			return flats[i].names;
	}
	return NULL;
}

static bool listed(const char *names, sheaf_str key)
{
	for (const char *p = names + 1; *p != '\0';) {
		const char *blank = strchr(p, ' ');
		if (key.len == (size_t)(blank - p) && memcmp(key.ptr, p, key.len) == 0)
			return true;
		p = blank + 1;
	}
	return false;
}

static void add_member(buf *out, sheaf_str key, sheaf_str value)
{
	if (out->len != 0)
		buf_lit(out, ",");
	buf_lit(out, "\"");
	buf_str(out, key);
	buf_lit(out, "\":");
	buf_str(out, value);
}

/* Sorts a line's members into payload and rest; the payload comes first, as ours does. */
static int make_body(record *out, sheaf_str members, bool flat, arena *a, sheaf_error *err)
{
	const char *names = flat ? flat_names(out->kind) : NULL;
	_cleanup_(buf_free) buf payload = BUF_INIT(2 * SHEAF_RECORD_BYTES_MAX);
	_cleanup_(buf_free) buf rest = BUF_INIT(2 * SHEAF_RECORD_BYTES_MAX);
	_cleanup_(buf_free) buf body = BUF_INIT(4 * SHEAF_RECORD_BYTES_MAX);
	sheaf_str key, value;
	for (size_t at = 0; members_next(members, &at, &key, &value);) {
		if (check_reserved(key))
			continue;
		add_member(names != NULL && listed(names, key) ? &payload : &rest, key, value);
	}
	if (names != NULL) {
		buf_lit(&body, "\"");
		buf_str(&body, out->type);
		buf_lit(&body, "\":{");
		buf_str(&body, buf_view(&payload));
		buf_lit(&body, "}");
		if (rest.len != 0)
			buf_lit(&body, ",");
	}
	buf_str(&body, buf_view(&rest));
	int rc = buf_status(&payload, err), ok = 1;
	if (rc == 0)
		rc = buf_status(&rest, err);
	if (rc == 0)
		rc = buf_status(&body, err);
	if (rc == 0)
		out->body = arena_dup(a, buf_view(&body), &ok);
	return rc == 0 && !ok ? err_nomem(err) : rc;
}

/* A plain string of 1 to `max` bytes, copied. {NULL,0} where it is none. */
static sheaf_str get_name(const json_val *root, const char *name, size_t max, arena *a, int *ok)
{
	sheaf_str s = json_string(json_get(root, name));
	if (s.len == 0 || s.len > max || !check_plain(s))
		return (sheaf_str){NULL, 0};
	return arena_dup(a, s, ok);
}

static int read_envelope(record *out, const json_val *root, arena *a, sheaf_error *err)
{
	int ok = 1;
	const json_val *parent = json_get(root, "parent_id");
	out->type = get_name(root, "type", TYPE_BYTES_MAX, a, &ok);
	out->id = get_name(root, "id", SHEAF_ID_BYTES_MAX, a, &ok);
	out->parent_id = get_name(root, "parent_id", SHEAF_ID_BYTES_MAX, a, &ok);
	out->timestamp = get_name(root, "timestamp", SHEAF_ID_BYTES_MAX, a, &ok);
	out->branch = get_name(root, "branch", SHEAF_BRANCH_BYTES_MAX, a, &ok);
	if (!ok)
		return err_nomem(err);
	if (str_eq(out->branch, SHEAF_STR("main")))
		out->branch = (sheaf_str){NULL, 0};
	if (out->type.ptr == NULL || out->id.ptr == NULL)
		return err_set(err, SHEAF_FORMAT, "a line has no type or no id");
	/* An empty string is how some writers spell null. */
	if (out->parent_id.ptr == NULL && json_string(parent).len != 0)
		return err_set(err, SHEAF_FORMAT, "a line has a parent_id that is none");
	json_type parent_type = json_type_of(parent);
	if (parent_type != JSON_NONE && parent_type != JSON_NULL && parent_type != JSON_STRING)
		return err_set(err, SHEAF_FORMAT, "a line has a parent_id that is no string");
	out->has_parent = parent_type != JSON_NONE;
	return 0;
}

int record_scan_foreign(record *out, sheaf_str line, arena *a, json_doc **doc, sheaf_error *err)
{
	memset(out, 0, sizeof(*out));
	int rc = json_parse(doc, line, err);
	if (rc != 0)
		return rc;
	const json_val *root = json_root(*doc);
	if (json_type_of(root) != JSON_OBJECT)
		return err_set(err, SHEAF_FORMAT, "a line is not an object");
	rc = read_envelope(out, root, a, err);
	if (rc != 0)
		return rc;
	out->kind = record_kind(out->type, out->has_parent);
	if (out->kind == SHEAF_KIND_SESSION)
		return err_set(err, SHEAF_FORMAT, "a second header");
	out->line = line;
	out->batch_count = 1;
	/* The type's name is NUL-terminated in the arena. */
	bool nested = json_type_of(json_get(root, out->type.ptr)) == JSON_OBJECT;
	return make_body(out, members_inside(members_trim(line)), !nested, a, err);
}
