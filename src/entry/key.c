/* Keys and the one spelling of their parts for paths, SQL, Redis tags and hashes. */
#include "entry/key.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"

#define SUFFIX ".jsonl"
#define SUFFIX_LEN (sizeof(SUFFIX) - 1)

sheaf_key sheaf_key_of(const char *session)
{
	return (sheaf_key){{"", 0}, {"", 0}, sheaf_str_of(session)};
}

int sheaf_id_new(char out[SHEAF_ID_ROOM], sheaf_error *err)
{
	return uuid7_new(out, err);
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* Dots are plain but for two: a leading one would hide a file, a final suffix would double it. */
static bool stands_for_itself(sheaf_str part, size_t i)
{
	if (part.ptr[i] != '.')
		return is_plain(part.ptr[i]);
	if (i == 0)
		return false;
	return part.len - i != SUFFIX_LEN || memcmp(part.ptr + i, SUFFIX, SUFFIX_LEN) != 0;
}

/* The encoded length, or 0 if that is over the limit. */
static size_t encode(char out[SHEAF_KEY_PART_ROOM], sheaf_str part)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t len = 0;
	if (part.len == 0)
		out[len++] = '%';
	for (size_t i = 0; i < part.len; i++) {
		bool plain = stands_for_itself(part, i);
		if (len + (plain ? 1 : 3) > SHEAF_KEY_PART_BYTES_MAX)
			return 0;
		if (plain) {
			out[len++] = part.ptr[i];
			continue;
		}
		unsigned char byte = (unsigned char)part.ptr[i];
		out[len++] = '%';
		out[len++] = digits[byte >> 4];
		out[len++] = digits[byte & 15];
	}
	out[len] = '\0';
	return len;
}

int sheaf_key_encode(char out[SHEAF_KEY_PART_ROOM], sheaf_str part, sheaf_error *err)
{
	if (encode(out, part) == 0)
		return err_set(err, SHEAF_LIMIT, "a part of a key takes more than %u bytes encoded",
		               SHEAF_KEY_PART_BYTES_MAX);
	return 0;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool decode(char out[SHEAF_KEY_PART_ROOM], size_t *out_len, sheaf_str encoded)
{
	size_t len = 0;
	for (size_t i = 0; i < encoded.len; i++) {
		char c = encoded.ptr[i];
		if (c == '%') {
			if (encoded.len - i < 3)
				return false;
			int high = hex_value(encoded.ptr[i + 1]),
			    low = hex_value(encoded.ptr[i + 2]);
			if (high < 0 || low < 0)
				return false;
			c = (char)(high * 16 + low);
			i += 2;
		}
		out[len++] = c;
	}
	out[len] = '\0';
	*out_len = len;
	return true;
}

int sheaf_key_decode(char out[SHEAF_KEY_PART_ROOM], size_t *out_len, sheaf_str encoded,
                     sheaf_error *err)
{
	char again[SHEAF_KEY_PART_ROOM];
	*out_len = 0;
	out[0] = '\0';
	if (str_eq(encoded, SHEAF_STR("%")))
		return 0;
	/* Only what encode() writes is accepted, so that two spellings never name one session. */
	if (encoded.len == 0 || encoded.len > SHEAF_KEY_PART_BYTES_MAX ||
	    !decode(out, out_len, encoded) ||
	    !str_eq(encoded, str_make(again, encode(again, str_make(out, *out_len)))))
		return err_set(err, SHEAF_INVALID, "not an encoded part of a key");
	return 0;
}

static sheaf_str copy(char *out, sheaf_str s)
{
	if (s.len != 0)
		memcpy(out, s.ptr, s.len);
	out[s.len] = '\0';
	return str_make(out, s.len);
}

static void set_owner(key_box *box)
{
	sheaf_str app = box->store.app, user = box->store.user;
	memcpy(box->owner, app.ptr, app.len);
	box->owner[app.len] = '/';
	(void)copy(box->owner + app.len + 1, user);
	box->store.owner = str_make(box->owner, app.len + 1 + user.len);
}

int key_box_init(key_box *box, const sheaf_key *key, sheaf_error *err)
{
	if (key == NULL || key->session.len == 0)
		return err_set(err, SHEAF_INVALID, "a key needs a session id");
	int rc = sheaf_key_encode(box->app, key->app, err);
	if (rc == 0)
		rc = sheaf_key_encode(box->user, key->user, err);
	if (rc == 0)
		rc = sheaf_key_encode(box->session, key->session, err);
	if (rc != 0)
		return rc;
	/* An encoded part is never shorter than the plain one, so that one fits as well. */
	box->plain.app = copy(box->plain_app, key->app);
	box->plain.user = copy(box->plain_user, key->user);
	box->plain.session = copy(box->plain_session, key->session);
	box->store.app = sheaf_str_of(box->app);
	box->store.user = sheaf_str_of(box->user);
	box->store.session = sheaf_str_of(box->session);
	set_owner(box);
	return 0;
}

static int decode_part(char plain[SHEAF_KEY_PART_ROOM], sheaf_str *out_plain,
                       char kept[SHEAF_KEY_PART_ROOM], sheaf_str *out_kept, sheaf_str encoded,
                       sheaf_error *err)
{
	size_t len;
	int rc = sheaf_key_decode(plain, &len, encoded, err);
	if (rc != 0)
		return rc;
	*out_plain = str_make(plain, len);
	*out_kept = copy(kept, encoded);
	return 0;
}

int key_box_decode(key_box *box, sheaf_str app, sheaf_str user, sheaf_str session, sheaf_error *err)
{
	int rc = decode_part(box->plain_app, &box->plain.app, box->app, &box->store.app, app, err);
	if (rc == 0)
		rc = decode_part(box->plain_user, &box->plain.user, box->user, &box->store.user,
		                 user, err);
	if (rc == 0)
		rc = decode_part(box->plain_session, &box->plain.session, box->session,
		                 &box->store.session, session, err);
	if (rc != 0)
		return rc;
	if (box->plain.session.len == 0)
		return err_set(err, SHEAF_INVALID, "a key needs a session id");
	set_owner(box);
	return 0;
}
