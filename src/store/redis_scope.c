/* The state of users and of apps. */
#include "store/redis.h"

/* An app's value: time as 16 digits, 1 or 0 for deleted, length of the id, id, value. */
#define TIME_DIGITS 16u
#define FRAME (TIME_DIGITS + 2)

static bool take_app_item(sheaf_state_item *item, sheaf_str element)
{
	uint64_t time = 0;
	if (element.len < FRAME)
		return false;
	for (size_t i = 0; i < TIME_DIGITS; i++) {
		char c = element.ptr[i];
		time = time << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	size_t id_len = (unsigned char)element.ptr[TIME_DIGITS + 1];
	if (element.len < FRAME + id_len)
		return false;
	item->time_us = (int64_t)(time ^ UINT64_C(1) << 63);
	item->id = str_make(element.ptr + FRAME, id_len);
	if (element.ptr[TIME_DIGITS] == '1')
		item->value = str_make(element.ptr + FRAME + id_len, element.len - FRAME - id_len);
	return true;
}

int redis_state_read(void *backend, sheaf_str scope, int app, sheaf_state_fn fn, void *ctx,
                     sheaf_error *err)
{
	_cleanup_(rcmd_free) rcmd cmd;
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	rcmd_scope(&cmd, backend, "sheaf_1_state", scope, app ? "a" : "u");
	rcall how = {0};
	int rc = redis_call(backend, &cmd, &how, &reply, err);
	for (size_t i = 1; rc == 0 && i + 1 < reply->elements; i += 2) {
		sheaf_state_item item = {.key = reply_str(reply, i)};
		if (!app)
			item.value = reply_str(reply, i + 1);
		else if (!take_app_item(&item, reply_str(reply, i + 1)))
			return err_set(err, SHEAF_DAMAGED, "the state of the app cannot be read");
		rc = fn(ctx, &item);
	}
	return rc < 0 ? rc : 0;
}

int redis_state_apply(void *backend, sheaf_str app, const sheaf_state_item *items, size_t count,
                      int64_t deadline_us, sheaf_error *err)
{
	_cleanup_(rcmd_free) rcmd cmd;
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	_cleanup_(buf_free) buf element = BUF_INIT(REDIS_COMMAND_MAX);
	rcmd_scope(&cmd, backend, "sheaf_1_state_apply", app, "a");
	for (size_t i = 0; i < count; i++) {
		const sheaf_state_item *item = &items[i];
		bool set = item->value.ptr != NULL;
		buf_reset(&element);
		buf_format(&element, "%016llx%c",
		           (unsigned long long)((uint64_t)item->time_us ^ UINT64_C(1) << 63),
		           set ? '1' : '0');
		buf_char(&element, (char)item->id.len);
		buf_str(&element, item->id);
		if (set)
			buf_str(&element, item->value);
		rcmd_arg(&cmd, item->key);
		rcmd_arg(&cmd, buf_view(&element));
		int rc = buf_status(&element, err);
		if (rc != 0)
			return rc;
	}
	rcall how = {.deadline_us = deadline_us, .write = true};
	int rc = redis_call(backend, &cmd, &how, &reply, err);
	if (rc == 0 && reply_code(reply) == ANSWER_LIMIT)
		rc = err_set(err, SHEAF_LIMIT, "the state of an app has more than %zu bytes",
		             SHEAF_STATE_BYTES_MAX);
	return rc;
}
