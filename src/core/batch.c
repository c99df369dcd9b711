/* Batches, stored all together or not at all; and turns, which are batches with an end. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/write.h"
#include "entry/members.h"
#include "entry/message.h"

sheaf_batch *sheaf_batch_new(void)
{
	return mem_zalloc(sizeof(sheaf_batch));
}

static void batch_drop_end(sheaf_batch *batch)
{
	if (batch->end != NULL)
		draft_free(batch->end);
	mem_free(batch->end);
	batch->end = NULL;
}

void sheaf_batch_free(sheaf_batch *batch)
{
	if (batch == NULL)
		return;
	batch_drop_end(batch);
	drafts_free(&batch->drafts);
	mem_free(batch);
}

size_t sheaf_batch_count(const sheaf_batch *batch)
{
	return batch->drafts.count;
}

const char *sheaf_batch_id(const sheaf_batch *batch, size_t i)
{
	return i < batch->drafts.count ? batch->drafts.items[i]->id : NULL;
}

static int batch_add(sheaf_batch *batch, sheaf_str type, sheaf_str body, bool checked,
                     const sheaf_entry_options *entry, sheaf_error *err)
{
	if (batch->drafts.count >= SHEAF_BATCH_RECORDS_MAX)
		return err_set(err, SHEAF_LIMIT, "a batch holds at most %u records",
		               SHEAF_BATCH_RECORDS_MAX);
	draft *d = mem_alloc(sizeof(*d));
	if (d == NULL)
		return err_nomem(err);
	int rc = draft_init(d, type, body, checked, entry, err);
	if (rc != 0) {
		mem_free(d);
		return rc;
	}
	bool partial = OPTION(entry, partial, 0) != 0;
	if (!partial)
		rc = batch_take(batch, d, err);
	if (partial || rc != 0) {
		draft_free(d);
		mem_free(d);
	}
	return rc;
}

int sheaf_batch_message(sheaf_batch *batch, const sheaf_message *message,
                        const sheaf_entry_options *entry, sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	sheaf_str json;
	if (batch == NULL || message == NULL)
		return err_set(err, SHEAF_INVALID, "no batch or no message was given");
	int rc = message_finish(message, &json, err);
	if (rc != 0)
		return rc;
	buf_lit(&body, "\"message\":");
	buf_str(&body, json);
	rc = buf_status(&body, err);
	return rc != 0 ? rc
	               : batch_add(batch, SHEAF_STR("message"), buf_view(&body), true, entry, err);
}

int sheaf_batch_json(sheaf_batch *batch, sheaf_str type, sheaf_str body,
                     const sheaf_entry_options *entry, sheaf_error *err)
{
	if (batch == NULL)
		return err_set(err, SHEAF_INVALID, "no batch was given");
	return batch_add(batch, type, body, false, entry, err);
}

int sheaf_session_append_batch(sheaf_session *session, sheaf_batch *batch,
                               const sheaf_append_options *how, sheaf_appended *out,
                               sheaf_error *err)
{
	if (session == NULL || batch == NULL)
		return err_set(err, SHEAF_INVALID, "no session or no batch was given");
	return session_append(session, batch->drafts.items, batch->drafts.count, how, false, out,
	                      err);
}

/* ---- Turns -------------------------------------------------------------- */

/* The turn's id: the caller's, the one of the try before, or a new one. */
static int turn_name(sheaf_batch *batch, sheaf_str turn, sheaf_error *err)
{
	if (turn.len > SHEAF_ID_BYTES_MAX)
		return err_set(err, SHEAF_LIMIT, "a turn's id has at most %u bytes",
		               SHEAF_ID_BYTES_MAX);
	int rc = text_check(turn, SHEAF_ID_BYTES_MAX, "turn's id", err);
	if (rc != 0)
		return rc;
	if (turn.len != 0) {
		memcpy(batch->turn, turn.ptr, turn.len);
		batch->turn_len = turn.len;
	} else if (batch->turn_len == 0) {
		rc = sheaf_id_new(batch->turn, err);
		if (rc == 0)
			batch->turn_len = strlen(batch->turn);
	}
	return rc;
}

/* Marks a record as part of the turn unless it says already which it belongs to. */
static int turn_mark(sheaf_batch *batch, draft *d, sheaf_error *err)
{
	if (members_find(buf_view(&d->body), "turn").ptr != NULL)
		return 0;
	size_t before = d->body.len;
	if (before != 0)
		buf_char(&d->body, ',');
	buf_lit(&d->body, "\"turn\":");
	buf_json(&d->body, str_make(batch->turn, batch->turn_len));
	if (d->body.status == 0)
		batch->bytes += d->body.len - before;
	int rc = buf_status(&d->body, err);
	if (rc != 0) {
		/* As it was, so that the batch can still be used. */
		d->body.status = 0;
		d->body.len = before;
	}
	return rc;
}

static void body_count(buf *out, const char *name, uint64_t value, bool always)
{
	if (value == 0 && !always)
		return;
	if (out->len != 0 && out->ptr[out->len - 1] != '{')
		buf_char(out, ',');
	buf_json(out, sheaf_str_of(name));
	buf_char(out, ':');
	buf_u64(out, value);
}

static void body_turn_end(buf *out, sheaf_str turn, sheaf_str outcome, const sheaf_usage *usage)
{
	buf_lit(out, "\"turn_end\":{\"turn\":");
	buf_json(out, turn);
	buf_lit(out, ",\"outcome\":");
	buf_json(out, outcome.len != 0 ? outcome : SHEAF_STR("completed"));
	if (usage != NULL) {
		buf_lit(out, ",\"usage\":{");
		body_count(out, "input", usage->input, true);
		body_count(out, "cache_read", usage->cache_read, false);
		body_count(out, "cache_write_5m", usage->cache_write_5m, false);
		body_count(out, "cache_write_1h", usage->cache_write_1h, false);
		body_count(out, "output", usage->output, true);
		body_count(out, "reasoning", usage->reasoning, false);
		buf_char(out, '}');
	}
	buf_char(out, '}');
}

/* Makes the turn_end. One made before gives its id and its time to the new one. */
static int turn_end_make(sheaf_batch *batch, sheaf_str outcome, const sheaf_usage *usage,
                         sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	body_turn_end(&body, str_make(batch->turn, batch->turn_len), outcome, usage);
	int rc = buf_status(&body, err);
	if (rc != 0)
		return rc;
	sheaf_entry_options same = SHEAF_ENTRY_OPTIONS_INIT;
	if (batch->end != NULL) {
		same.id = draft_id(batch->end);
		same.time_us = batch->end->time_us;
	}
	draft *d = mem_zalloc(sizeof(*d));
	if (d == NULL)
		return err_nomem(err);
	rc = draft_init(d, SHEAF_STR("turn_end"), buf_view(&body), true, &same, err);
	if (rc != 0) {
		mem_free(d);
		return rc;
	}
	batch_drop_end(batch);
	batch->end = d;
	return 0;
}

int sheaf_session_append_turn(sheaf_session *session, sheaf_batch *batch, sheaf_str turn,
                              sheaf_str outcome, const sheaf_usage *usage,
                              const sheaf_append_options *how, sheaf_appended *out,
                              sheaf_error *err)
{
	if (session == NULL || batch == NULL)
		return err_set(err, SHEAF_INVALID, "no session or no batch was given");
	draft_list *list = &batch->drafts;
	/* An empty turn ends one whose messages were appended as they came. */
	if (list->count == 0 && turn.len == 0 && batch->turn_len == 0)
		return err_set(err, SHEAF_INVALID,
		               "a turn without records needs the id of the turn");
	int rc = text_check(outcome, SHEAF_NAME_BYTES_MAX, "outcome", err);
	if (rc == 0)
		rc = turn_name(batch, turn, err);
	for (size_t i = 0; rc == 0 && i < list->count; i++)
		rc = turn_mark(batch, list->items[i], err);
	if (rc == 0)
		rc = turn_end_make(batch, outcome, usage, err);
	if (rc == 0 && mem_grow((void **)&list->items, &list->room, list->count + 1,
	                        sizeof(*list->items)) != 0)
		rc = err_nomem(err);
	if (rc != 0)
		return rc;
	/* Behind the last for this call only: the batch stays what the caller made. */
	list->items[list->count] = batch->end;
	return session_append(session, list->items, list->count + 1, how, true, out, err);
}
