/*
 * Streams: a reader of server-sent events that fills the draft of a reply.
 *
 * Bytes come cut anywhere. A line ends in LF, CR or CRLF, an event at an empty
 * line; what an event says is up to the wire format. A server that answers with
 * a plain body instead is understood as well.
 */
#include "render/ingest.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define EVENT_BYTES_MAX ((size_t)2 * SHEAF_RECORD_BYTES_MAX)

typedef enum stream_state {
	STATE_START, /* nothing but blanks and a byte order mark so far */
	STATE_EVENTS,
	STATE_BODY, /* it is no stream of events: `line` collects all of it */
	STATE_OVER
} stream_state;

struct sheaf_stream {
	draft draft;
	source source;
	buf line;
	buf name; /* of the event that is being read */
	buf data;
	buf provider;
	buf model;
	stream_state state;
	bool after_cr; /* an LF now belongs to the CR before it */
	bool has_data;
	bool finished;       /* the draft is as it will be */
	sheaf_error failure; /* why nothing more is taken, if draft.status is set */
};

sheaf_stream *sheaf_stream_new(int32_t format, sheaf_str provider, sheaf_str model,
                               sheaf_delta_fn on_delta, void *ctx)
{
	const ingest_format *how = ingest_format_of(format);
	sheaf_stream *s = how != NULL ? mem_zalloc(sizeof(*s)) : NULL;
	if (s == NULL)
		return NULL;
	s->draft.format = how;
	s->draft.on_delta = on_delta;
	s->draft.ctx = ctx;
	s->line.max = s->data.max = s->name.max = EVENT_BYTES_MAX;
	s->provider.max = s->model.max = EVENT_BYTES_MAX;
	buf_str(&s->provider, provider);
	buf_str(&s->model, model);
	if (s->provider.status != 0 || s->model.status != 0) {
		sheaf_stream_free(s);
		return NULL;
	}
	return s;
}

void sheaf_stream_free(sheaf_stream *stream)
{
	if (stream == NULL)
		return;
	draft_clear(&stream->draft);
	source_free(&stream->source);
	buf_free(&stream->line);
	buf_free(&stream->name);
	buf_free(&stream->data);
	buf_free(&stream->provider);
	buf_free(&stream->model);
	mem_free(stream);
}

/* ---- Events ---------------------------------------------------------------- */

static int stream_fail(sheaf_stream *s, int code, const char *why)
{
	draft_fail(&s->draft, code);
	s->state = STATE_OVER;
	return err_set(&s->failure, code, "%s", why);
}

static int take_event(sheaf_stream *s)
{
	sheaf_str data = buf_view(&s->data);
	if (str_is(data, "[DONE]")) {
		/* Behind nothing it ends no reply: a server that speaks another format says it, too. */
		s->draft.ended = s->draft.ended || s->draft.count != 0 ||
		                 s->draft.stop_word.len != 0;
		return 0;
	}
	int rc = source_read(&s->source, data, NULL);
	if (rc != 0)
		return stream_fail(
			s, rc, rc == SHEAF_FORMAT ? "an event is not JSON" : sheaf_code_text(rc));
	if (fault_is(s->source.root))
		draft_fault(&s->draft, s->source.root);
	else
		s->draft.format->event(&s->draft, buf_view(&s->name), s->source.root);
	rc = s->draft.status;
	return rc == 0 ? 0 : stream_fail(s, rc, sheaf_code_text(rc));
}

static int end_event(sheaf_stream *s)
{
	int rc = s->has_data && s->data.len != 0 ? take_event(s) : 0;
	buf_reset(&s->data);
	buf_reset(&s->name);
	s->has_data = false;
	return rc;
}

static int take_line(sheaf_stream *s)
{
	sheaf_str line = buf_view(&s->line);
	if (line.len == 0)
		return end_event(s);
	const char *colon = memchr(line.ptr, ':', line.len);
	sheaf_str field = line, value = {"", 0};
	if (colon != NULL) {
		field.len = (size_t)(colon - line.ptr);
		value = str_make(colon + 1, line.len - field.len - 1);
		if (value.len != 0 && value.ptr[0] == ' ')
			value = str_make(value.ptr + 1, value.len - 1);
	}
	if (str_is(field, "data")) {
		if (s->has_data)
			buf_char(&s->data, '\n');
		buf_str(&s->data, value);
		s->has_data = true;
	} else if (str_is(field, "event")) {
		buf_reset(&s->name);
		buf_str(&s->name, value);
	}
	int rc = s->data.status != 0 ? s->data.status : s->name.status;
	return rc == 0 ? 0 : stream_fail(s, rc, "an event is too large");
}

/* ---- Bytes ----------------------------------------------------------------- */

/* Passes over what may stand before a stream and tells what it is. */
static void begin(sheaf_stream *s, sheaf_str *bytes)
{
	static const char mark[] = "\xef\xbb\xbf";
	while (bytes->len != 0) {
		char c = bytes->ptr[0];
		if (s->line.len < 3 && c == mark[s->line.len]) {
			buf_char(&s->line, c);
		} else if (c != ' ' && c != '\r' && c != '\n' && c != '\t') {
			buf_reset(&s->line);
			s->state = c == '{' || c == '[' ? STATE_BODY : STATE_EVENTS;
			return;
		}
		*bytes = str_make(bytes->ptr + 1, bytes->len - 1);
	}
}

static int take_events(sheaf_stream *s, sheaf_str bytes)
{
	const char *p = bytes.ptr, *end = p + bytes.len;
	int rc = 0;
	while (p < end && rc == 0) {
		if (s->after_cr && *p == '\n') {
			s->after_cr = false;
			p++;
			continue;
		}
		s->after_cr = false;
		const char *stop = p;
		while (stop < end && *stop != '\n' && *stop != '\r')
			stop++;
		buf_add(&s->line, p, (size_t)(stop - p));
		if (s->line.status != 0)
			return stream_fail(s, s->line.status, "a line is too long");
		if (stop == end)
			break;
		s->after_cr = *stop == '\r';
		rc = take_line(s);
		buf_reset(&s->line);
		p = stop + 1;
	}
	return rc;
}

int sheaf_stream_feed(sheaf_stream *stream, sheaf_str bytes, sheaf_error *err)
{
	if (stream == NULL)
		return err_nomem(err);
	int rc = stream->draft.status;
	if (stream->state == STATE_START)
		begin(stream, &bytes);
	if (rc == 0 && stream->state == STATE_EVENTS)
		rc = take_events(stream, bytes);
	else if (stream->state == STATE_BODY)
		buf_str(&stream->line, bytes);
	if (rc == 0 && stream->line.status != 0)
		rc = stream_fail(stream, stream->line.status, "the answer is too large");
	if (rc != 0 && err != NULL)
		*err = stream->failure;
	return rc;
}

int sheaf_stream_done(const sheaf_stream *stream)
{
	return stream != NULL && (stream->draft.ended || stream->draft.fault != 0);
}

/* ---- The reply ------------------------------------------------------------- */

static void take_body(sheaf_stream *s)
{
	draft *d = &s->draft;
	int rc = source_read(&s->source, buf_view(&s->line), NULL);
	if (rc != 0) {
		draft_fail(d, rc);
		return;
	}
	if (fault_is(s->source.root))
		draft_fault(d, s->source.root);
	else
		d->format->body(d, s->source.root);
	d->ended = d->status == 0;
}

/* The last line and event may lack their ends. */
static void finish(sheaf_stream *s)
{
	draft *d = &s->draft;
	bool events = s->state != STATE_BODY;
	if (!events)
		take_body(s);
	else if (s->state == STATE_EVENTS && (s->line.len == 0 || take_line(s) == 0))
		(void)end_event(s);
	s->state = STATE_OVER;
	/* What is not understood ends a stream; what came before it was. */
	if (d->status == SHEAF_FORMAT)
		d->status = 0;
	if (events && d->format->end != NULL)
		d->format->end(d);
	s->finished = true;
}

int sheaf_stream_reply(sheaf_reply **out, sheaf_stream *stream, sheaf_error *err)
{
	if (out == NULL || stream == NULL)
		return err_set(err, SHEAF_INVALID, "no stream or no place for its reply");
	if (!stream->finished)
		finish(stream);
	sheaf_str provider = buf_view(&stream->provider), model = buf_view(&stream->model);
	if (provider.len == 0)
		provider.ptr = NULL;
	if (model.len == 0)
		model.ptr = NULL;
	return draft_reply(out, &stream->draft, provider, model, err);
}
