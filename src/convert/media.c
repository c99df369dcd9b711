/* Files, signatures and times as other agents spell them. */
#include "convert/media.h"

#include <stdio.h>

#include "base/str.h"
#include "base/utf8.h"

sheaf_message *media_message(const char *role)
{
	sheaf_message *m = sheaf_message_new(role);
	if (m != NULL)
		sheaf_message_mend_text(m, 1);
	return m;
}

void media_freep(sheaf_message **m)
{
	sheaf_message_free(*m);
}

/* The media type and the data of "data:TYPE;base64,DATA". */
static bool data_url(sheaf_str url, sheaf_str *type, sheaf_str *data)
{
	static const char mark[] = ";base64,";
	if (!str_starts(url, "data:"))
		return false;
	const char *comma = memchr(url.ptr, ',', url.len < 1024 ? url.len : 1024);
	size_t head = comma != NULL ? (size_t)(comma - url.ptr) + 1 : 0;
	if (head < 5 + sizeof(mark) - 1 ||
	    memcmp(url.ptr + head - (sizeof(mark) - 1), mark, sizeof(mark) - 1) != 0)
		return false;
	*type = str_make(url.ptr + 5, head - 5 - (sizeof(mark) - 1));
	*data = str_make(url.ptr + head, url.len - head);
	return true;
}

bool media_put(sheaf_message *m, sheaf_str media_type, sheaf_str url)
{
	sheaf_str type = {NULL, 0}, data = url, how = SHEAF_STR("url");
	if (data_url(url, &type, &data))
		how = SHEAF_STR("base64");
	else if (!str_starts(url, "https://") && !str_starts(url, "http://"))
		return false;
	if (media_type.len != 0)
		type = media_type;
	if (str_starts(type, "image/"))
		(void)sheaf_message_image(m, how, type, data);
	else if (str_is(type, "application/pdf"))
		(void)sheaf_message_document(m, how, type, data);
	else
		return false;
	return true;
}

sdk_metadata sdk_metadata_of(value metadata)
{
	sdk_metadata out = {{NULL, 0}, {NULL, 0}, false, {NULL, 0}};
	value of = value_get(metadata, "anthropic");
	if (of.v != NULL) {
		sheaf_str data = value_string(of, "redactedData");
		out.provider = SHEAF_STR("anthropic");
		out.redacted = data.len != 0;
		out.signature = out.redacted ? data : value_string(of, "signature");
	} else if ((of = value_get(metadata, "openai")).v != NULL) {
		out.provider = SHEAF_STR("openai");
		out.signature = value_string(of, "reasoningEncryptedContent");
		out.item_id = value_string(of, "itemId");
	} else if ((of = value_get(metadata, "google")).v != NULL) {
		out.provider = SHEAF_STR("google");
		out.signature = value_string(of, "thoughtSignature");
	}
	return out;
}

void sdk_thinking_put(sheaf_message *m, sheaf_str text, value metadata)
{
	sdk_metadata of = sdk_metadata_of(metadata);
	(void)sheaf_message_thinking(m, text, of.signature, of.redacted);
	if (of.item_id.len != 0) {
		_cleanup_(buf_free) buf ext = BUF_INIT(65536);
		buf_lit(&ext, "{\"id\":");
		buf_json(&ext, of.item_id);
		buf_char(&ext, '}');
		if (ext.status == 0)
			(void)sheaf_message_ext(m, SHEAF_STR("openai-responses"), buf_view(&ext));
	}
}

void sdk_signature_put(sheaf_message *m, value metadata)
{
	sdk_metadata of = sdk_metadata_of(metadata);
	if (str_is(of.provider, "google") && of.signature.len != 0)
		(void)sheaf_message_signature(m, of.signature);
}

int64_t seconds_us(sheaf_str number)
{
	int64_t us = 0, unit = 1000000;
	size_t i = 0;
	for (; i < number.len && number.ptr[i] >= '0' && number.ptr[i] <= '9'; i++) {
		if (us > INT64_MAX / 1000000000)
			return 0;
		us = us * 10 + (number.ptr[i] - '0');
	}
	us *= 1000000;
	if (i < number.len && number.ptr[i] == '.') {
		for (i++; i < number.len && number.ptr[i] >= '0' && number.ptr[i] <= '9'; i++) {
			unit /= 10;
			us += unit * (number.ptr[i] - '0');
		}
	}
	return i == number.len ? us : 0;
}

sheaf_str id_with(char room[SHEAF_ID_ROOM], sheaf_str root, const char *suffix, unsigned number)
{
	int len = (int)utf8_cut(root, SHEAF_ID_BYTES_MAX - 32).len;
	int n = number == 1
	                ? snprintf(room, SHEAF_ID_ROOM, "%.*s%s", len, root.ptr, suffix)
	                : snprintf(room, SHEAF_ID_ROOM, "%.*s%s.%u", len, root.ptr, suffix, number);
	return str_make(room, (size_t)n);
}

sheaf_str media_stem(sheaf_str path)
{
	size_t from = path.len, to;
	while (from > 0 && path.ptr[from - 1] != '/')
		from--;
	for (to = from + 1; to < path.len && path.ptr[to] != '.';)
		to++;
	to = to < path.len ? to : path.len;
	return utf8_cut(str_make(path.ptr + from, to - from), SHEAF_ID_BYTES_MAX / 2);
}
