/*
 * Anything a server may send: as a stream in one piece and in many, as a body,
 * and as a list of messages. The first two bytes choose format and cuts.
 *
 * Beyond not crashing: pieces make no difference, and whatever becomes a message
 * can be stored.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "sheaf/ingest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int true_if_good)
{
	if (!true_if_good)
		abort();
}

static void count_delta(void *ctx, int32_t kind, sheaf_str text)
{
	size_t *bytes = ctx;
	must(kind >= SHEAF_DELTA_TEXT && kind <= SHEAF_DELTA_TOOL_USE);
	*bytes += text.len;
}

static void check_reply(const sheaf_reply *r)
{
	must(r->complete == 0 || r->fault == 0);
	must(r->stop >= SHEAF_STOP_UNKNOWN && r->stop <= SHEAF_STOP_OVERFLOW);
	must(r->call_count == 0 || r->message != NULL);
	if (r->message != NULL)
		must(json_check(sheaf_message_json(r->message), JSON_OBJECT, NULL) == 0);
}

/* What came of it; 0 or the code of the first failure. */
static int read_stream(int32_t format, sheaf_str bytes, size_t step, sheaf_reply **reply)
{
	size_t seen = 0;
	sheaf_stream *s = sheaf_stream_new(format, (sheaf_str){NULL, 0}, SHEAF_STR("m"),
	                                   count_delta, &seen);
	int rc = 0;
	must(s != NULL);
	for (size_t at = 0; at < bytes.len && rc == 0; at += step) {
		size_t n = bytes.len - at < step ? bytes.len - at : step;
		rc = sheaf_stream_feed(s, str_make(bytes.ptr + at, n), NULL);
	}
	int end = sheaf_stream_reply(reply, s, NULL);
	if (end == 0)
		check_reply(*reply);
	sheaf_stream_free(s);
	return rc != 0 ? rc : end;
}

static void compare(const sheaf_reply *a, const sheaf_reply *b)
{
	must((a == NULL) == (b == NULL));
	if (a == NULL)
		return;
	must(a->stop == b->stop && a->complete == b->complete && a->fault == b->fault);
	must((a->message == NULL) == (b->message == NULL));
	if (a->message != NULL)
		must(str_eq(sheaf_message_json(a->message), sheaf_message_json(b->message)));
}

static void read_whole(int32_t format, sheaf_str bytes)
{
	sheaf_reply *r = NULL;
	sheaf_messages *list = NULL;
	if (sheaf_ingest_reply(&r, format, (sheaf_str){NULL, 0}, SHEAF_STR("m"), bytes, NULL) == 0)
		check_reply(r);
	sheaf_reply_free(r);
	if (sheaf_ingest_messages(&list, format, (sheaf_str){NULL, 0}, bytes, NULL) == 0) {
		for (size_t i = 0; i < list->count; i++)
			must(json_check(sheaf_message_json(list->items[i]), JSON_OBJECT, NULL) == 0);
	}
	sheaf_messages_free(list);
	(void)sheaf_ingest_fault(format, 0, bytes);
	(void)sheaf_ingest_fault(format, 400, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	int32_t format = data[0] % 4 + 1;
	size_t step = 1 + data[1] % 64;
	sheaf_str bytes = {(const char *)data + 2, size - 2};
	sheaf_reply *once = NULL, *pieces = NULL;
	int rc = read_stream(format, bytes, bytes.len + 1, &once);
	must(rc == read_stream(format, bytes, step, &pieces));
	compare(once, pieces);
	sheaf_reply_free(once);
	sheaf_reply_free(pieces);
	read_whole(format, bytes);
	return 0;
}
