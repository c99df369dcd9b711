/* The lines of a queue's file: writing them, and what each does to the image. */
#include <errno.h>
#include <stdlib.h>

#include "store/jsonl_queue.h"

/* ---- Lines: writing -------------------------------------------------------------- */

static void begin_line(buf *out, const char *type)
{
	buf_format(out, "{\"type\":\"%s\"", type);
}

static void put_text(buf *out, const char *name, sheaf_str text)
{
	buf_format(out, ",\"%s\":", name);
	buf_json(out, text);
}

static void put_lease(buf *out, sheaf_str token, int64_t until_us, const char *boot)
{
	put_text(out, "token", token);
	buf_format(out, ",\"until_us\":%lld", (long long)until_us);
	put_text(out, "boot", sheaf_str_of(boot));
}

void jqueue_write_header(buf *out, const char *session, int64_t created_us)
{
	char time[CLOCK_TEXT + 1];
	size_t start = out->len;
	clock_format(time, created_us);
	begin_line(out, "queue");
	buf_lit(out, ",\"format\":\"sheaf\",\"version\":1");
	put_text(out, "session", sheaf_str_of(session));
	put_text(out, "created", sheaf_str_of(time));
	record_seal(out, start);
}

/* `item`: what the item has besides, in a file that is written anew; NULL for a new one. */
void jqueue_write_put(buf *out, const sheaf_queue_row *row, const queue_item *item,
                      const char *boot)
{
	char time[CLOCK_TEXT + 1];
	size_t start = out->len;
	clock_format(time, row->enqueued_us);
	begin_line(out, "put");
	put_text(out, "id", row->id);
	put_text(out, "timestamp", sheaf_str_of(time));
	buf_format(out, ",\"priority\":%d", (int)row->priority);
	if (row->claims)
		buf_format(out, ",\"claims\":%d", (int)row->claims);
	if (item && item->token[0])
		put_lease(out, sheaf_str_of(item->token), item->until_us, boot);
	if (row->environment.ptr) {
		buf_lit(out, ",\"environment\":");
		buf_str(out, row->environment);
	}
	put_text(out, "content", row->content);
	record_seal(out, start);
}

void jqueue_write_claim(buf *out, const sheaf_claim *claim, int64_t until_us, const char *boot,
                        queue_item *const *items, size_t count)
{
	size_t start = out->len;
	begin_line(out, "claim");
	put_lease(out, claim->token, until_us, boot);
	buf_lit(out, ",\"ids\":");
	for (size_t i = 0; i < count; i++) {
		buf_char(out, i ? ',' : '[');
		buf_json(out, items[i]->id);
	}
	buf_char(out, ']');
	record_seal(out, start);
}

void jqueue_write_done(buf *out, const char *type, const char *name, sheaf_str value)
{
	size_t start = out->len;
	begin_line(out, type);
	put_text(out, name, value);
	record_seal(out, start);
}

/* ---- Lines: reading -------------------------------------------------------------- */

static bool get_i64(const json_val *v, int64_t *out)
{
	sheaf_str text = json_number(v);
	char digits[24], *end;
	if (text.len == 0 || text.len >= sizeof(digits))
		return false;
	memcpy(digits, text.ptr, text.len);
	digits[text.len] = 0;
	errno = 0;
	*out = strtoll(digits, &end, 10);
	return *end == 0 && errno == 0;
}

static bool name_ok(sheaf_str s)
{
	return s.len != 0 && s.len <= SHEAF_ID_BYTES_MAX;
}

/* A lease as it counts now: one of another boot is over. SHEAF_DAMAGED if there is none. */
static int get_lease(const jqueue *q, const json_val *line, sheaf_str *token, int64_t *until_us)
{
	sheaf_str boot = json_string(json_get(line, "boot"));
	*token = json_string(json_get(line, "token"));
	if (!name_ok(*token) || !boot.ptr || !get_i64(json_get(line, "until_us"), until_us))
		return SHEAF_DAMAGED;
	if (!str_is(boot, q->boot))
		*until_us = 0;
	return 0;
}

static int apply_header(jqueue *q, const json_val *line)
{
	uint64_t version;
	if (q->bound || !str_is(json_string(json_get(line, "format")), "sheaf") ||
	    !json_u64(json_get(line, "version"), &version) ||
	    !clock_parse(json_string(json_get(line, "created")), &q->created_us))
		return SHEAF_DAMAGED;
	q->bound = true;
	return version == 1 ? 0 : SHEAF_FORMAT;
}

static int apply_put(jqueue *q, const json_val *line, sheaf_str text)
{
	int64_t priority, claims = 0, until_us = 0;
	sheaf_str token = {NULL, 0};
	sheaf_queue_row row = {.id = json_string(json_get(line, "id")),
	                       .content = json_string(json_get(line, "content")),
	                       .environment = json_member_bytes(text, "environment")};
	queue_item *item;

	if (!name_ok(row.id) || !row.content.ptr || queue_find(&q->items, row.id) ||
	    !get_i64(json_get(line, "priority"), &priority) || priority < INT32_MIN ||
	    priority > INT32_MAX ||
	    !clock_parse(json_string(json_get(line, "timestamp")), &row.enqueued_us))
		return SHEAF_DAMAGED;
	if (json_get(line, "claims") &&
	    (!get_i64(json_get(line, "claims"), &claims) || claims < 0 || claims > INT32_MAX))
		return SHEAF_DAMAGED;
	if (json_get(line, "token") && get_lease(q, line, &token, &until_us))
		return SHEAF_DAMAGED;
	row.priority = (int32_t)priority;
	row.claims = (int32_t)claims;
	if (queue_add(&q->items, &row, &item))
		return SHEAF_NOMEM;
	if (token.ptr)
		str_copy_cut(item->token, sizeof(item->token), token);
	item->until_us = until_us;
	item->bytes = text.len + 1;
	q->live += item->bytes;
	return 0;
}

/* Items that are not there are passed over: after a repair their puts may be lost. */
static int apply_claim(jqueue *q, const json_val *line)
{
	sheaf_str token;
	int64_t until_us;
	int rc = get_lease(q, line, &token, &until_us);
	if (rc)
		return rc;
	for (json_iter it = json_each(json_get(line, "ids")); json_next(&it);) {
		queue_item *item = queue_find(&q->items, json_string(it.value));
		if (item)
			queue_mark(item, token, until_us);
	}
	return 0;
}

void jqueue_take_out(jqueue *q, queue_item *item)
{
	q->live -= item->bytes;
	queue_remove(&q->items, item);
}

static int apply_done(jqueue *q, sheaf_str type, const json_val *line)
{
	if (str_is(type, "ack")) {
		sheaf_str token = json_string(json_get(line, "token"));
		if (!name_ok(token))
			return SHEAF_DAMAGED;
		q->live -= queue_ack(&q->items, token);
		return 0;
	}
	sheaf_str id = json_string(json_get(line, "id"));
	if (!str_is(type, "cancel") || !name_ok(id))
		return SHEAF_DAMAGED;
	queue_item *item = queue_find(&q->items, id);
	if (item)
		jqueue_take_out(q, item);
	return 0;
}

/* One verified line into the image. SHEAF_DAMAGED, SHEAF_FORMAT (newer), SHEAF_NOMEM */
int jqueue_apply(jqueue *q, sheaf_str text)
{
	int rc = json_parse(&q->doc, text, NULL);
	if (rc)
		return rc == SHEAF_NOMEM ? rc : SHEAF_DAMAGED;
	const json_val *line = json_root(q->doc);
	sheaf_str type = json_string(json_get(line, "type"));
	if (!type.ptr || q->bound == str_is(type, "queue"))
		return SHEAF_DAMAGED;
	if (!q->bound)
		rc = apply_header(q, line);
	else if (str_is(type, "put"))
		rc = apply_put(q, line, text);
	else if (str_is(type, "claim"))
		rc = apply_claim(q, line);
	else
		rc = apply_done(q, type, line);
	return rc;
}
