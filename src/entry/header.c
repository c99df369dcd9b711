/* A session's first line, written and read. */
#include "entry/header.h"

#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "entry/check.h"
#include "entry/members.h"

/* ---- Writing -------------------------------------------------------------- */

/* What is no plain text is left out: the key has the bytes, the header is for people. */
static void put_plain(buf *out, const char *name, sheaf_str text)
{
	if (!check_plain(text))
		return;
	buf_lit(out, ",\"");
	buf_add(out, name, strlen(name));
	buf_lit(out, "\":");
	buf_json(out, text);
}

static void put_number(buf *out, const char *name, uint64_t value)
{
	buf_lit(out, ",\"");
	buf_add(out, name, strlen(name));
	buf_lit(out, "\":");
	buf_u64(out, value);
}

static void put_fork(buf *out, const header *h)
{
	buf_lit(out, ",\"fork\":{\"source\":");
	buf_json(out, h->source);
	buf_lit(out, ",\"at\":");
	if (h->at.len != 0)
		buf_json(out, h->at);
	else
		buf_lit(out, "null");
	put_number(out, "at_seq", h->at_seq);
	put_number(out, "base", h->base);
	put_number(out, "label_seq", h->label_seq);
	buf_lit(out, ",\"links\":[");
	for (size_t i = 0; i < h->link_count; i++) {
		if (i != 0)
			buf_lit(out, ",");
		buf_lit(out, "[");
		buf_json(out, h->links[i].session);
		buf_lit(out, ",");
		buf_u64(out, h->links[i].base);
		buf_lit(out, "]");
	}
	buf_lit(out, "]}");
}

void header_write(buf *out, const header *h)
{
	char timestamp[CLOCK_TEXT + 1];
	size_t start = out->len;
	buf_lit(out, "{\"type\":\"session\",\"format\":\"sheaf\"");
	put_number(out, "version", HEADER_VERSION);
	put_plain(out, "id", h->id);
	clock_format(timestamp, h->time_us);
	put_plain(out, "timestamp",
	          h->timestamp.len != 0 ? h->timestamp : str_make(timestamp, CLOCK_TEXT));
	put_plain(out, "app", h->app);
	put_plain(out, "user", h->user);
	put_plain(out, "kind", h->kind.len != 0 ? h->kind : SHEAF_STR("main"));
	if (h->parent_session.len != 0)
		put_plain(out, "parent_session", h->parent_session);
	if (h->source.ptr != NULL)
		put_fork(out, h);
	if (h->hidden)
		buf_lit(out, ",\"hidden\":true");
	if (h->cwd.len != 0)
		put_plain(out, "cwd", h->cwd);
	if (h->extra.len != 0) {
		buf_lit(out, ",");
		buf_str(out, h->extra);
	}
	record_seal(out, start);
}

/* ---- Extra members -------------------------------------------------------- */

static bool is_known(sheaf_str key)
{
	static const char *const names[] = {
		"type", "format",         "version", "id",     "timestamp", "app", "user",
		"kind", "parent_session", "fork",    "hidden", "cwd",       "crc"};
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		if (members_key_is(key, names[i]))
			return true;
	}
	return false;
}

int header_extra(sheaf_str *members, sheaf_str object, sheaf_error *err)
{
	if (object.len > SHEAF_BODY_BYTES_MAX)
		return err_set(err, SHEAF_TOO_LARGE, "more than %zu bytes", SHEAF_BODY_BYTES_MAX);
	int rc = json_check(object, JSON_OBJECT, err);
	if (rc != 0)
		return rc;
	sheaf_str inside = members_inside(members_trim(object)), key, value;
	for (size_t at = 0; members_next(inside, &at, &key, &value);) {
		if (is_known(key) || check_reserved(key))
			return err_set(err, SHEAF_INVALID, "a header has \"%.*s\" itself",
			               (int)key.len, key.ptr);
	}
	*members = inside;
	return 0;
}

static int read_extra(header *out, sheaf_str line, arena *a, sheaf_error *err)
{
	_cleanup_(buf_free) buf extra = BUF_INIT(2 * SHEAF_RECORD_BYTES_MAX);
	sheaf_str members = members_inside(members_trim(line)), key, value;
	for (size_t at = 0; members_next(members, &at, &key, &value);) {
		if (is_known(key))
			continue;
		if (extra.len != 0)
			buf_lit(&extra, ",");
		buf_lit(&extra, "\"");
		buf_str(&extra, key);
		buf_lit(&extra, "\":");
		buf_str(&extra, value);
	}
	int rc = buf_status(&extra, err), ok = 1;
	if (rc != 0 || extra.len == 0)
		return rc;
	out->extra = arena_dup(a, buf_view(&extra), &ok);
	return ok ? 0 : err_nomem(err);
}

/* ---- Reading -------------------------------------------------------------- */

static sheaf_str get_string(const json_val *object, const char *name, arena *a, int *ok)
{
	return arena_dup(a, json_string(json_get(object, name)), ok);
}

static bool read_link(header *out, const json_val *pair, arena *a, int *ok)
{
	json_iter it = json_each(pair);
	header_link *link = &out->links[out->link_count];
	if (json_type_of(pair) != JSON_ARRAY || json_count(pair) != 2 || !json_next(&it))
		return false;
	sheaf_str session = json_string(it.value);
	if (session.len == 0 || session.len > SHEAF_KEY_PART_BYTES_MAX)
		return false;
	link->session = arena_dup(a, session, ok);
	if (!json_next(&it) || !json_u64(it.value, &link->base))
		return false;
	/* Bases descend from the nearest to the farthest. */
	if (out->link_count != 0 && link->base > link[-1].base)
		return false;
	out->link_count++;
	return true;
}

/* False for a shape that header_write() never gives a fork. */
static bool read_fork(header *out, const json_val *fork, arena *a, int *ok)
{
	const json_val *links = json_get(fork, "links");
	if (json_type_of(fork) != JSON_OBJECT)
		return false;
	out->source = get_string(fork, "source", a, ok);
	out->at = get_string(fork, "at", a, ok);
	if (!*ok || out->source.len == 0 || out->source.len > SHEAF_KEY_PART_BYTES_MAX ||
	    out->at.len > SHEAF_ID_BYTES_MAX || !json_u64(json_get(fork, "at_seq"), &out->at_seq) ||
	    !json_u64(json_get(fork, "base"), &out->base) ||
	    !json_u64(json_get(fork, "label_seq"), &out->label_seq))
		return false;
	if (json_type_of(links) != JSON_ARRAY || json_count(links) == 0 ||
	    json_count(links) > SHEAF_FORK_LINKS_MAX)
		return false;
	for (json_iter it = json_each(links); json_next(&it);) {
		if (!read_link(out, it.value, a, ok))
			return false;
	}
	return out->links[0].base == out->base && out->at_seq <= out->base &&
	       out->label_seq <= out->base && (out->at.len != 0) == (out->at_seq != 0);
}

static int read_members(header *out, const json_val *root, arena *a, sheaf_error *err)
{
	int ok = 1;
	const json_val *fork = json_get(root, "fork");
	out->id = get_string(root, "id", a, &ok);
	out->app = get_string(root, "app", a, &ok);
	out->user = get_string(root, "user", a, &ok);
	out->timestamp = get_string(root, "timestamp", a, &ok);
	out->kind = get_string(root, "kind", a, &ok);
	out->parent_session = get_string(root, "parent_session", a, &ok);
	out->cwd = get_string(root, "cwd", a, &ok);
	out->hidden = out->ours && json_bool(json_get(root, "hidden"));
	if (out->kind.len == 0)
		out->kind = SHEAF_STR("main");
	bool versioned = json_u64(json_get(root, "version"), &out->version);
	bool timed = clock_parse(out->timestamp, &out->time_us);
	if (!timed)
		out->time_us = 0;
	if (!ok)
		return err_nomem(err);
	if (!out->ours)
		return 0;
	bool good = versioned && out->version != 0 && timed;
	if (good && fork != NULL)
		good = read_fork(out, fork, a, &ok);
	if (!ok)
		return err_nomem(err);
	return good ? 0 : err_set(err, SHEAF_DAMAGED, "the header is not shaped like one");
}

int header_read(header *out, sheaf_str line, arena *a, json_doc **doc, sheaf_error *err)
{
	static const char mark[] = "\"format\":\"sheaf\"";
	memset(out, 0, sizeof(*out));
	bool has_crc = record_has_crc(line);
	bool marked = line.len != 0 && memmem(line.ptr, line.len, mark, sizeof(mark) - 1) != NULL;
	int rc = json_parse(doc, line, err);
	if (rc == SHEAF_NOMEM)
		return rc;
	const json_val *root = rc == 0 ? json_root(*doc) : NULL;
	/* Parsed, the member itself is asked, not the text of some other. */
	if (root != NULL)
		marked = str_eq(json_string(json_get(root, "format")), SHEAF_STR("sheaf"));
	if (!has_crc && !marked) {
		if (root == NULL ||
		    !str_eq(json_string(json_get(root, "type")), SHEAF_STR("session")))
			return err_set(err, SHEAF_FORMAT, "not the first line of a session");
	} else if (root == NULL || !record_crc_ok(line)) {
		return err_set(err, SHEAF_DAMAGED, "the header's checksum does not hold");
	} else if (!marked || !str_eq(json_string(json_get(root, "type")), SHEAF_STR("session"))) {
		return err_set(err, SHEAF_DAMAGED, "the first line is not a header");
	}
	out->ours = marked;
	rc = read_members(out, root, a, err);
	return rc == 0 ? read_extra(out, line, a, err) : rc;
}
