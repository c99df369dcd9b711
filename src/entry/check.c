/*
 * What a record's names, texts and payloads must be. Payloads are looked at as
 * text that json_check has passed: the questions are few and the text may be
 * large.
 */
#include "entry/check.h"

#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "entry/members.h"
#include "entry/message.h"
#include "entry/retention.h"
#include "sheaf/entry.h"

bool check_plain(sheaf_str text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];
		if (c < 0x20 || c == 0x7f)
			return false;
	}
	return utf8_valid(text);
}

bool check_reserved(sheaf_str key)
{
	static const char *const names[] = {"type", "id",    "parent_id", "timestamp", "branch",
	                                    "seq",  "batch", "crc",       "parent_seq"};
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		if (members_key_is(key, names[i]))
			return true;
	}
	return false;
}

int check_names(sheaf_str members, sheaf_str *delta, sheaf_error *err)
{
	sheaf_str key, value;
	*delta = str_make(NULL, 0);
	for (size_t at = 0; members_next(members, &at, &key, &value);) {
		if (check_reserved(key))
			return err_set(err, SHEAF_INVALID, "a body must not hold \"%.*s\"",
			               (int)key.len, key.ptr);
		if (!members_key_is(key, "state_delta"))
			continue;
		/* Whoever looks for it looks for its bytes. */
		if (!str_is(key, "state_delta"))
			return err_set(err, SHEAF_INVALID, "state_delta is spelled with escapes");
		*delta = value;
	}
	return 0;
}

int check_unescape(sheaf_str *out, sheaf_str value, arena *a)
{
	*out = str_make(NULL, 0);
	if (value.len < 2 || value.ptr[0] != '"')
		return SHEAF_FORMAT;
	sheaf_str raw = {value.ptr + 1, value.len - 2};
	if (memchr(raw.ptr, '\\', raw.len) == NULL) {
		*out = raw;
		return 0;
	}
	_cleanup_(json_freep) json_doc *doc = NULL;
	int ok = 1, rc = a != NULL ? json_parse(&doc, value, NULL) : SHEAF_FORMAT;
	if (rc == 0)
		*out = arena_dup(a, json_string(json_root(doc)), &ok);
	return ok ? rc : SHEAF_NOMEM;
}

/* ---- Payloads ------------------------------------------------------------- */

enum {
	IS_STRING = 1,
	IS_NULL = 2,
	IS_OBJECT = 4,
	IS_ARRAY = 8,
	IS_NUMBER = 16,
	OPTIONAL = 32, /* may be absent */
	PLAIN = 64     /* a string without controls */
};

typedef struct rule {
	int32_t kind;
	unsigned is;
	const char *name;
	size_t min; /* of a string, unescaped */
	size_t max;
} rule;

#define ANY 0, SIZE_MAX
#define ID 1, SHEAF_ID_BYTES_MAX

static const rule rules[] = {
	{SHEAF_KIND_MESSAGE, IS_STRING, "role", ANY},
	{SHEAF_KIND_MESSAGE, IS_STRING | IS_ARRAY, "content", ANY},
	{SHEAF_KIND_MODEL_CHANGE, IS_STRING, "provider", ANY},
	{SHEAF_KIND_MODEL_CHANGE, IS_STRING, "model_id", ANY},
	{SHEAF_KIND_THINKING_LEVEL, IS_STRING, "thinking_level", ANY},
	{SHEAF_KIND_COMPACTION, IS_STRING, "summary", ANY},
	{SHEAF_KIND_COMPACTION, IS_STRING | IS_NULL | OPTIONAL | PLAIN, "first_kept_entry_id", 0,
         SHEAF_ID_BYTES_MAX},
	{SHEAF_KIND_COMPACTION, IS_ARRAY | OPTIONAL, "replacement", ANY},
	{SHEAF_KIND_COMPACTION, IS_ARRAY | OPTIONAL, "kept_ids", ANY},
	{SHEAF_KIND_BRANCH_SUMMARY, IS_STRING, "summary", ANY},
	{SHEAF_KIND_BRANCH_SUMMARY, IS_STRING | IS_NULL | PLAIN, "from_id", ID},
	{SHEAF_KIND_CUSTOM, IS_STRING, "custom_type", ANY},
	{SHEAF_KIND_LABEL, IS_STRING | PLAIN, "target_id", ID},
	{SHEAF_KIND_LABEL, IS_STRING | IS_NULL | OPTIONAL, "label", 0, SHEAF_NAME_BYTES_MAX},
	{SHEAF_KIND_SESSION_INFO, IS_STRING | OPTIONAL, "name", 0, SHEAF_NAME_BYTES_MAX},
	{SHEAF_KIND_SESSION_INFO, IS_OBJECT | OPTIONAL, "metadata", ANY},
	{SHEAF_KIND_LEAF, IS_STRING | PLAIN, "branch", 1, SHEAF_BRANCH_BYTES_MAX},
	{SHEAF_KIND_LEAF, IS_STRING | IS_NULL | OPTIONAL | PLAIN, "entry_id", ID},
	{SHEAF_KIND_LEAF, IS_NUMBER | OPTIONAL, "entry_seq", ANY},
	{SHEAF_KIND_TURN_END, IS_STRING, "turn", 1, SIZE_MAX},
	{SHEAF_KIND_TURN_END, IS_STRING | OPTIONAL, "outcome", ANY},
	{SHEAF_KIND_TURN_END, IS_OBJECT | OPTIONAL, "usage", ANY},
};

static unsigned type_of(sheaf_str value)
{
	switch (value.ptr[0]) {
	case '"':
		return IS_STRING;
	case 'n':
		return IS_NULL;
	case '{':
		return IS_OBJECT;
	case '[':
		return IS_ARRAY;
	case 't':
	case 'f':
		return 0;
	default:
		return IS_NUMBER;
	}
}

/* The length of a checked JSON string once unescaped; `*plain` tells whether controls are in it. */
static size_t unescaped_length(sheaf_str value, bool *plain)
{
	size_t len = 0;
	*plain = true;
	for (size_t i = 1; i + 1 < value.len; len++) {
		char c = value.ptr[i++];
		if (c == 0x7f)
			*plain = false;
		if (c != '\\')
			continue;
		c = value.ptr[i++];
		if (c != 'u') {
			*plain = *plain && (c == '"' || c == '\\' || c == '/');
			continue;
		}
		unsigned code = 0;
		for (size_t end = i + 4; i < end; i++) {
			char digit = value.ptr[i];
			code = code * 16 +
			       (unsigned)(digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
		}
		/* Half of a surrogate pair is two bytes of its four. */
		len += code < 0x80 ? 0 : code < 0x800 || (code & 0xf800) == 0xd800 ? 1 : 2;
		*plain = *plain && code >= 0x20 && code != 0x7f;
	}
	return len;
}

static int check_rule(const rule *r, sheaf_str type, sheaf_str value, sheaf_error *err)
{
	int type_len = (int)type.len;
	if (value.ptr == NULL) {
		if ((r->is & OPTIONAL) != 0)
			return 0;
		return err_set(err, SHEAF_INVALID, "a %.*s needs %s", type_len, type.ptr, r->name);
	}
	unsigned is = type_of(value);
	if ((r->is & is) == 0)
		return err_set(err, SHEAF_INVALID, "%s of a %.*s has the wrong type", r->name,
		               type_len, type.ptr);
	if (is != IS_STRING)
		return 0;
	bool plain;
	size_t len = unescaped_length(value, &plain);
	if (len < r->min)
		return err_set(err, SHEAF_INVALID, "%s of a %.*s is empty", r->name, type_len,
		               type.ptr);
	if (len > r->max)
		return err_set(err, SHEAF_LIMIT, "%s of a %.*s is longer than %zu bytes", r->name,
		               type_len, type.ptr, r->max);
	if ((r->is & PLAIN) != 0 && !plain)
		return err_set(err, SHEAF_INVALID, "%s of a %.*s holds control characters", r->name,
		               type_len, type.ptr);
	return 0;
}

static bool role_known(sheaf_str value)
{
	sheaf_str raw = {value.ptr + 1, value.len - 2};
	for (size_t i = 0; message_roles[i] != NULL; i++) {
		if (members_key_is(raw, message_roles[i]))
			return true;
	}
	return false;
}

static bool is_whole(sheaf_str number)
{
	for (size_t i = 0; i < number.len; i++) {
		if (number.ptr[i] < '0' || number.ptr[i] > '9')
			return false;
	}
	return number.len != 0 && number.len <= 20 && number.ptr[0] != '0';
}

static bool is_given(sheaf_str value)
{
	return value.ptr != NULL && value.ptr[0] != 'n';
}

/* What the table cannot say. */
static int check_special(int32_t kind, sheaf_str inside, sheaf_error *err)
{
	if (kind == SHEAF_KIND_MESSAGE) {
		sheaf_str role = members_find(inside, "role");
		return role_known(role)
		               ? 0
		               : err_set(err, SHEAF_INVALID, "a message has an unknown role: %.*s",
		                         (int)(role.len < 40 ? role.len : 40), role.ptr);
	}
	if (kind == SHEAF_KIND_COMPACTION &&
	    is_given(members_find(inside, "first_kept_entry_id")) +
	                    is_given(members_find(inside, "replacement")) +
	                    is_given(members_find(inside, "kept_ids")) >
	            1)
		return err_set(err, SHEAF_INVALID,
		               "a compaction says more than once what it keeps");
	/* A log must be enough to rebuild its head, so a leaf names its entry's number too. */
	if (kind == SHEAF_KIND_LEAF && is_given(members_find(inside, "entry_id")) &&
	    !is_whole(members_find(inside, "entry_seq")))
		return err_set(err, SHEAF_INVALID, "a leaf needs entry_seq beside entry_id");
	if (kind == SHEAF_KIND_RETENTION) {
		retention_fact r;
		return retention_read(&r, inside, err);
	}
	return 0;
}

static bool has_payload(int32_t kind)
{
	return kind != SHEAF_KIND_OTHER_ENTRY && kind != SHEAF_KIND_OTHER_FACT;
}

int check_payload(int32_t kind, sheaf_str type, sheaf_str members, sheaf_error *err)
{
	if (!has_payload(kind))
		return 0;
	sheaf_str payload = {NULL, 0}, key, value;
	for (size_t at = 0; payload.ptr == NULL && members_next(members, &at, &key, &value);) {
		if (str_eq(key, type))
			payload = value;
	}
	if (payload.ptr == NULL || type_of(payload) != IS_OBJECT)
		return err_set(err, SHEAF_INVALID, "a %.*s needs an object \"%.*s\"", (int)type.len,
		               type.ptr, (int)type.len, type.ptr);
	sheaf_str inside = members_inside(payload);
	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		if (rules[i].kind != kind)
			continue;
		int rc = check_rule(&rules[i], type, members_find(inside, rules[i].name), err);
		if (rc != 0)
			return rc;
	}
	return check_special(kind, inside, err);
}
