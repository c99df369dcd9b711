/* What a model sends back: bytes of any kind of response, or a message; made one exchange. */
#include "agent/agent.h"

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

/* Of a response that comes whole; a stream is bounded by its reader. */
#define BODY_BYTES_MAX ((size_t)64 << 20)

enum {
	FORM_UNKNOWN,
	FORM_EVENTS,
	FORM_WHOLE,
	FORM_MESSAGE
};

struct sheaf_answer {
	run *run;
	const sheaf_request *request;
	bool shown; /* deltas go to the observer */
	int form;
	int32_t status;
	int64_t retry_after_us;
	sheaf_stream *stream;
	buf body;
	exchange *x;
};

void exchange_free(exchange *x)
{
	sheaf_reply_free(x->reply);
	sheaf_message_free(x->own);
	x->reply = NULL;
	x->own = NULL;
	x->message = NULL;
}

void sheaf_answer_status(sheaf_answer *answer, int32_t http_status, int64_t retry_after_us)
{
	answer->status = http_status;
	answer->retry_after_us = retry_after_us;
}

int sheaf_answer_cancelled(const sheaf_answer *answer)
{
	return run_cancelled(answer->run);
}

int sheaf_answer_done(const sheaf_answer *answer)
{
	return answer->form == FORM_EVENTS && answer->stream != NULL &&
	       sheaf_stream_done(answer->stream);
}

static bool status_ok(const sheaf_answer *answer)
{
	return answer->status >= 200 && answer->status < 300;
}

static void on_delta(void *ctx, int32_t kind, sheaf_str text)
{
	sheaf_answer *answer = ctx;
	if (!answer->shown)
		return;
	sheaf_event event = {.kind = SHEAF_EVENT_DELTA, .delta = kind, .text = text};
	answer->x->deltas = true;
	run_event(answer->run, &event);
}

/* Error bodies and whole replies are JSON objects, in Gemini's case perhaps an array of them. */
static int form_of(const sheaf_answer *answer, sheaf_str bytes)
{
	if (!status_ok(answer))
		return FORM_WHOLE;
	for (size_t i = 0; i < bytes.len; i++) {
		char c = bytes.ptr[i];
		if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
			return c == '{' || c == '[' ? FORM_WHOLE : FORM_EVENTS;
	}
	return FORM_UNKNOWN;
}

static int begin_events(sheaf_answer *answer, sheaf_error *err)
{
	const sheaf_request *request = answer->request;
	answer->stream = sheaf_stream_new(request->format, request->provider, request->model,
	                                  on_delta, answer);
	return answer->stream != NULL ? 0 : err_nomem(err);
}

int sheaf_answer_feed(sheaf_answer *answer, sheaf_str bytes, sheaf_error *err)
{
	if (run_cancelled(answer->run))
		return err_set(err, SHEAF_CANCELLED, "cancelled");
	if (answer->form == FORM_UNKNOWN) {
		answer->form = form_of(answer, bytes);
		if (answer->form == FORM_UNKNOWN)
			return 0;
	}
	if (answer->form == FORM_MESSAGE)
		return err_set(err, SHEAF_INVALID, "a message was given already");
	if (answer->form == FORM_EVENTS) {
		int rc = answer->stream == NULL ? begin_events(answer, err) : 0;
		return rc == 0 ? sheaf_stream_feed(answer->stream, bytes, err) : rc;
	}
	buf_str(&answer->body, bytes);
	return buf_status(&answer->body, err);
}

static void add_member(buf *out, sheaf_str json, const char *name, sheaf_str value)
{
	if (value.ptr == NULL || json_member_bytes(json, name).ptr != NULL)
		return;
	buf_format(out, ",\"%s\":", name);
	buf_json(out, value);
}

/* The message with what it does not say itself: who made it, and what it cost. */
static int copy_message(sheaf_message **out, const sheaf_request *request, sheaf_str json,
                        const sheaf_usage *usage, sheaf_error *err)
{
	_cleanup_(buf_free) buf text = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	while (json.len > 0 && json.ptr[json.len - 1] != '}')
		json.len--;
	if (json.len == 0)
		return err_set(err, SHEAF_INVALID, "the model's message is broken");
	buf_add(&text, json.ptr, json.len - 1);
	add_member(&text, json, "provider", request->provider);
	add_member(&text, json, "model", request->model);
	if (usage != NULL && json_member_bytes(json, "usage").ptr == NULL)
		write_usage(&text, usage);
	buf_char(&text, '}');
	int rc = buf_status(&text, err);
	return rc == 0 ? sheaf_message_from_json(out, buf_view(&text), err) : rc;
}

int sheaf_answer_message(sheaf_answer *answer, sheaf_message *message, int32_t stop,
                         const sheaf_usage *usage, sheaf_error *err)
{
	exchange *x = answer->x;
	if (answer->form != FORM_UNKNOWN)
		return err_set(err, SHEAF_INVALID, "an answer is bytes or one message");
	sheaf_str json = sheaf_message_json(message);
	if (json.ptr == NULL)
		return err_set(err, SHEAF_INVALID, "the model's message is broken");
	int rc = copy_message(&x->own, answer->request, json, usage, err);
	if (rc != 0)
		return rc;
	answer->form = FORM_MESSAGE;
	x->message = x->own;
	x->stop = stop;
	x->complete = 1;
	x->calls = -1;
	if (usage != NULL)
		x->usage = *usage;
	return 0;
}

/* ---- The end of a response ----------------------------------------------- */

static void take_reply(exchange *x, sheaf_reply *reply)
{
	x->reply = reply;
	x->message = reply->message;
	x->stop = reply->stop;
	x->fault = reply->fault;
	x->complete = reply->complete;
	x->calls = reply->call_count;
	x->usage = reply->usage;
	str_copy_cut(x->words, sizeof(x->words), reply->fault_text);
}

static int finish_whole(sheaf_answer *answer, sheaf_error *err)
{
	const sheaf_request *request = answer->request;
	exchange *x = answer->x;
	sheaf_reply *reply = NULL;
	sheaf_str body = buf_view(&answer->body);
	int rc = sheaf_ingest_reply(&reply, request->format, request->provider, request->model,
	                            body, err);
	if (rc == 0)
		take_reply(x, reply);
	if (!status_ok(answer)) {
		/* What is no error body of the format is one of a proxy: the status counts. */
		x->fault = sheaf_ingest_fault(request->format, answer->status, body);
		if (x->fault == SHEAF_FAULT_NONE)
			x->fault = SHEAF_FAULT_REQUEST;
		x->message = NULL;
		x->complete = 0;
		rc = rc == SHEAF_NOMEM ? rc : 0;
	}
	return rc;
}

static int finish(sheaf_answer *answer, sheaf_error *err)
{
	exchange *x = answer->x;
	sheaf_reply *reply = NULL;
	int rc = 0;
	x->status = answer->status;
	x->retry_after_us = answer->retry_after_us;
	switch (answer->form) {
	case FORM_EVENTS:
		rc = answer->stream != NULL ? sheaf_stream_reply(&reply, answer->stream, err) : 0;
		if (rc == 0 && reply != NULL)
			take_reply(x, reply);
		return rc;
	case FORM_WHOLE:
		return finish_whole(answer, err);
	case FORM_MESSAGE:
		return 0;
	default:
		if (!status_ok(answer))
			return finish_whole(answer, err);
		return 0;
	}
}

int exchange_send(run *r, const sheaf_request *request, bool shown, exchange *x, sheaf_error *err)
{
	const sheaf_model *model = &r->agent->o.model;
	*x = (exchange){.retry_after_us = -1};
	sheaf_answer answer = {.run = r,
	                       .request = request,
	                       .shown = shown,
	                       .status = 200,
	                       .retry_after_us = -1,
	                       .body = BUF_INIT(BODY_BYTES_MAX),
	                       .x = x};
	int sent = model->send(model->ctx, request, &answer, err);
	if (sent > 0)
		sent = err_set(err, SHEAF_INVALID, "the model's function returned no code");
	sheaf_error late;
	int rc = finish(&answer, sent == 0 ? err : &late);
	sheaf_stream_free(answer.stream);
	buf_free(&answer.body);
	return sent != 0 ? sent : rc;
}
