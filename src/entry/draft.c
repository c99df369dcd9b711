/* Drafts: a record as its caller wants it, checked whole before anything is stored. */
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "entry/check.h"
#include "entry/members.h"
#include "entry/record.h"
#include "entry/state.h"
#include "sheaf/session.h"

#define TYPE_BYTES_MAX 64u
#define YEAR_0001_US (INT64_C(-62135596800) * 1000000)
#define YEAR_10000_US (INT64_C(253402300800) * 1000000)

/* An older caller's struct is shorter: what it has no room for was not given. */
#define GIVEN(options, member, fallback)                                                           \
	((options) != NULL && (options)->size >= offsetof(sheaf_entry_options, member) +           \
	                                                 sizeof((options)->member)                 \
	         ? (options)->member                                                               \
	         : (fallback))

static const sheaf_str none = {NULL, 0};

static bool type_is_owned(const draft *d)
{
	return d->kind == SHEAF_KIND_OTHER_ENTRY || d->kind == SHEAF_KIND_OTHER_FACT;
}

void draft_free(draft *d)
{
	if (type_is_owned(d))
		mem_free((void *)(uintptr_t)d->type.ptr);
	d->type = none;
	buf_free(&d->body);
	buf_free(&d->temp);
}

static bool type_is_good(sheaf_str type)
{
	if (type.len == 0 || type.ptr[0] < 'a' || type.ptr[0] > 'z')
		return false;
	for (size_t i = 0; i < type.len; i++) {
		char c = type.ptr[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
			return false;
	}
	return true;
}

static int init_type(draft *d, sheaf_str type, sheaf_error *err)
{
	if (!type_is_good(type))
		return err_set(err, SHEAF_INVALID, "a type is not spelled [a-z][a-z0-9_]*");
	if (type.len > TYPE_BYTES_MAX)
		return err_set(err, SHEAF_LIMIT, "a type is longer than %u bytes", TYPE_BYTES_MAX);
	/* What is written through an append and not known to be a fact is an entry. */
	int32_t kind = record_kind(type, true);
	if (kind == SHEAF_KIND_SESSION)
		return err_set(err, SHEAF_INVALID, "\"session\" is the header's type");
	if (kind != SHEAF_KIND_OTHER_ENTRY) {
		d->kind = kind;
		d->type = str_make(sheaf_kind_name(kind), type.len);
		return 0;
	}
	char *kept = mem_dup(type.ptr, type.len);
	if (kept == NULL)
		return err_nomem(err);
	d->kind = kind;
	d->type = str_make(kept, type.len);
	return 0;
}

/* Copies an id or a branch name; the room is one byte more than `max`. */
static int copy_name(char *out, size_t *out_len, size_t max, sheaf_str name, const char *what,
                     sheaf_error *err)
{
	if (name.len == 0)
		return err_set(err, SHEAF_INVALID, "%s is empty", what);
	if (name.len > max)
		return err_set(err, SHEAF_LIMIT, "%s is longer than %zu bytes", what, max);
	if (!check_plain(name))
		return err_set(err, SHEAF_INVALID, "%s is not plain UTF-8 text", what);
	memcpy(out, name.ptr, name.len);
	out[name.len] = '\0';
	*out_len = name.len;
	return 0;
}

static int init_id(draft *d, sheaf_str id, sheaf_error *err)
{
	if (id.ptr != NULL)
		return copy_name(d->id, &d->id_len, SHEAF_ID_BYTES_MAX, id, "an id", err);
	d->id_fresh = true;
	d->id_len = UUID_TEXT;
	return uuid7_new(d->id, err);
}

static int init_parent(draft *d, const sheaf_entry_options *options, sheaf_error *err)
{
	if (!GIVEN(options, has_parent, 0))
		return 0;
	if (record_kind_is_fact(d->kind))
		return err_set(err, SHEAF_INVALID, "a %.*s hangs on nothing", (int)d->type.len,
		               d->type.ptr);
	sheaf_str parent = GIVEN(options, parent_id, none);
	d->has_parent = true;
	if (parent.len == 0)
		return 0;
	return copy_name(d->parent_id, &d->parent_len, SHEAF_ID_BYTES_MAX, parent, "a parent's id",
	                 err);
}

static int init_branch(draft *d, sheaf_str branch, sheaf_error *err)
{
	if (branch.len == 0 || str_is(branch, "main"))
		return 0;
	return copy_name(d->branch, &d->branch_len, SHEAF_BRANCH_BYTES_MAX, branch, "a branch name",
	                 err);
}

bool draft_may_be_time(int64_t time_us)
{
	return time_us >= YEAR_0001_US && time_us < YEAR_10000_US;
}

static int init_time(draft *d, int64_t time_us, sheaf_error *err)
{
	d->time_us = time_us != 0 ? time_us : clock_now_us();
	if (!draft_may_be_time(d->time_us))
		return err_set(err, SHEAF_INVALID, "a time lies outside the years 0001 to 9999");
	clock_format(d->timestamp, d->time_us);
	return 0;
}

/* ---- The body ------------------------------------------------------------- */

static void add_members(buf *out, sheaf_str members)
{
	if (members.len == 0)
		return;
	if (out->len != 0)
		buf_lit(out, ",");
	buf_str(out, members);
}

/* The members of a caller's object, checked. */
static int take_object(sheaf_str object, sheaf_str *members, sheaf_str *delta, sheaf_error *err)
{
	if (object.len > SHEAF_RECORD_BYTES_MAX)
		return err_set(err, SHEAF_TOO_LARGE, "more than %zu bytes", SHEAF_RECORD_BYTES_MAX);
	int rc = json_check(object, JSON_OBJECT, err);
	if (rc != 0)
		return rc;
	*members = members_inside(members_trim(object));
	return check_names(*members, delta, err);
}

static int given_twice(const char *what, sheaf_error *err)
{
	return err_set(err, SHEAF_INVALID, "%s is given twice", what);
}

typedef struct named {
	const char *name;
	sheaf_str text;
} named;

static int add_named(buf *out, const named *texts, size_t count, sheaf_str body, bool checked,
                     sheaf_error *err)
{
	for (size_t i = 0; i < count; i++) {
		if (texts[i].text.len == 0)
			continue;
		if (!utf8_valid(texts[i].text))
			return err_set(err, SHEAF_INVALID, "%s is not valid UTF-8", texts[i].name);
		if (!checked && members_find(body, texts[i].name).ptr != NULL)
			return given_twice(texts[i].name, err);
		if (out->len != 0)
			buf_lit(out, ",");
		buf_lit(out, "\"");
		buf_add(out, texts[i].name, strlen(texts[i].name));
		buf_lit(out, "\":");
		buf_json(out, texts[i].text);
	}
	return 0;
}

static void add_delta(buf *out, sheaf_str delta)
{
	add_members(out, SHEAF_STR("\"state_delta\":"));
	buf_str(out, delta);
}

/* Members, with what a store must not see taken out of their state_delta. */
static int add_checked(draft *d, sheaf_str members, sheaf_str delta, sheaf_error *err)
{
	if (delta.ptr == NULL) {
		add_members(&d->body, members);
		return 0;
	}
	_cleanup_(buf_free) buf kept = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	_cleanup_(buf_free) buf rest = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	int rc = state_delta_check(delta, err);
	if (rc == 0)
		rc = state_delta_strip(delta, &kept, &d->temp, err);
	if (rc != 0)
		return rc;
	if (d->temp.len == 0 && kept.len != 0) {
		add_members(&d->body, members);
		return 0;
	}
	state_members_without(&rest, members);
	rc = buf_status(&rest, err);
	if (rc != 0)
		return rc;
	add_members(&d->body, buf_view(&rest));
	if (kept.len != 0)
		add_delta(&d->body, buf_view(&kept));
	return 0;
}

/* A delta that is given by itself; `given` says that a body or extra had one. */
static int add_option_delta(draft *d, sheaf_str delta, bool given, sheaf_error *err)
{
	if (delta.len == 0)
		return 0;
	if (given)
		return given_twice("state_delta", err);
	_cleanup_(buf_free) buf members = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	int rc = json_check(delta, JSON_OBJECT, err);
	delta = members_trim(delta);
	if (rc == 0 && members_depth(delta) + 1 > SHEAF_DEPTH_MAX)
		rc = err_set(err, SHEAF_LIMIT, "JSON nested deeper than %u", SHEAF_DEPTH_MAX);
	add_delta(&members, delta);
	if (rc == 0)
		rc = buf_status(&members, err);
	return rc == 0 ? add_checked(d, buf_view(&members), delta, err) : rc;
}

/* Members from two objects may not share a name; checking the two together finds that. */
static int add_extra(draft *d, sheaf_str extra, bool *given, sheaf_error *err)
{
	sheaf_str members, delta;
	buf *out = &d->body;
	int rc = take_object(extra, &members, &delta, err);
	if (rc == 0 && delta.ptr != NULL && *given)
		rc = given_twice("state_delta", err);
	if (rc == 0)
		rc = add_checked(d, members, delta, err);
	if (rc != 0)
		return rc;
	*given = *given || delta.ptr != NULL;
	_cleanup_(buf_free) buf object = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	buf_lit(&object, "{");
	buf_str(&object, buf_view(out));
	buf_lit(&object, "}");
	rc = buf_status(out, err);
	if (rc == 0)
		rc = buf_status(&object, err);
	return rc == 0 ? json_check(buf_view(&object), JSON_OBJECT, err) : rc;
}

static void note_delta(draft *d)
{
	sheaf_str delta = state_delta_of(buf_view(&d->body));
	d->delta_len = delta.len;
	d->delta_at = delta.len != 0 ? (size_t)(delta.ptr - d->body.ptr) : 0;
}

/* What the builders of trusted bodies could not see: only a message and a piece of an imported file
 * have been checked whole. */
static int check_trusted(const draft *d, sheaf_str body, sheaf_error *err)
{
	if (d->kind == SHEAF_KIND_SOURCE && str_starts(body, "\"source\":{"))
		return 0;
	if (d->kind == SHEAF_KIND_MESSAGE)
		return str_starts(body, "\"message\":{")
		               ? 0
		               : err_set(err, SHEAF_INVALID, "a message needs an object");
	if (body.len > SHEAF_DEPTH_MAX && members_depth(body) + 1 > SHEAF_DEPTH_MAX)
		return err_set(err, SHEAF_LIMIT, "JSON nested deeper than %u", SHEAF_DEPTH_MAX);
	return check_payload(d->kind, d->type, body, err);
}

static int init_body(draft *d, sheaf_str body, bool checked, const sheaf_entry_options *options,
                     sheaf_error *err)
{
	const named texts[] = {
		{"turn", GIVEN(options, turn, none)},
		{"author", GIVEN(options, author, none)},
		{"agent", GIVEN(options, agent, none)},
		{"invocation_id", GIVEN(options, invocation_id, none)},
	};
	int rc = 0;
	sheaf_str delta = none;
	if (!checked)
		rc = take_object(body, &body, &delta, err);
	if (rc == 0)
		rc = checked ? check_trusted(d, body, err)
		             : check_payload(d->kind, d->type, body, err);
	if (rc != 0)
		return rc;
	bool given = delta.ptr != NULL;
	rc = add_checked(d, body, delta, err);
	if (rc == 0)
		rc = add_named(&d->body, texts, COUNT_OF(texts), body, checked, err);
	sheaf_str extra = GIVEN(options, extra, none);
	if (rc == 0 && extra.len != 0)
		rc = add_extra(d, extra, &given, err);
	sheaf_str alone = GIVEN(options, state_delta, none);
	if (rc == 0)
		rc = add_option_delta(d, alone, given, err);
	if (rc == 0)
		rc = buf_status(&d->body, err);
	if (rc == 0 && (given || alone.len != 0))
		note_delta(d);
	return rc;
}

/* ---- What rides on a draft -------------------------------------------------- */

/* The changes of `extra` that `own` does not make itself, then all of `own`. */
static int merge_deltas(buf *out, sheaf_str own, sheaf_str extra, sheaf_error *err)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	_cleanup_(map_free) map keys = MAP_INIT;
	state_change c;
	int rc = a != NULL ? 1 : SHEAF_NOMEM;
	for (size_t at = 0; rc == 1 && (rc = state_delta_next(own, &at, a, &c)) == 1;) {
		if (map_set(&keys, c.key, 1) != 0)
			rc = SHEAF_NOMEM;
	}
	buf_char(out, '{');
	uint64_t known;
	for (size_t at = 0; rc >= 0 && (rc = state_delta_next(extra, &at, a, &c)) == 1;) {
		if (map_get(&keys, c.key, &known))
			continue;
		if (out->len > 1)
			buf_char(out, ',');
		buf_str(out, c.member);
	}
	sheaf_str inside = own.ptr != NULL ? members_inside(own) : str_make("", 0);
	if (inside.len != 0 && out->len > 1)
		buf_char(out, ',');
	buf_str(out, inside);
	buf_char(out, '}');
	return rc < 0 ? err_nomem(err) : buf_status(out, err);
}

int draft_ride(draft *d, sheaf_str delta, buf *before, sheaf_error *err)
{
	_cleanup_(buf_free) buf merged = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	int rc = merge_deltas(&merged, draft_delta(d), delta, err);
	if (rc != 0)
		return rc;
	if (d->delta_len != 0)
		state_members_without(&body, buf_view(&d->body));
	else
		buf_str(&body, buf_view(&d->body));
	add_delta(&body, buf_view(&merged));
	rc = buf_status(&body, err);
	if (rc != 0)
		return rc;
	*before = d->body;
	d->body = body;
	body = (buf)BUF_INIT(0);
	note_delta(d);
	return 0;
}

void draft_unride(draft *d, buf *before)
{
	buf_free(&d->body);
	d->body = *before;
	note_delta(d);
}

int draft_init(draft *d, sheaf_str type, sheaf_str body, bool checked,
               const struct sheaf_entry_options *options, sheaf_error *err)
{
	memset(d, 0, sizeof(*d));
	d->body.max = SHEAF_BODY_BYTES_MAX;
	d->temp.max = SHEAF_RECORD_BYTES_MAX;
	int rc = init_type(d, type, err);
	if (rc == 0)
		rc = init_id(d, GIVEN(options, id, none), err);
	if (rc == 0)
		rc = init_parent(d, options, err);
	if (rc == 0)
		rc = init_branch(d, GIVEN(options, branch, none), err);
	if (rc == 0)
		rc = init_time(d, GIVEN(options, time_us, 0), err);
	if (rc == 0)
		rc = init_body(d, body, checked, options, err);
	if (rc != 0)
		draft_free(d);
	return rc;
}
