/*
 * The draft of a reply: its pieces as they come, and the message they make.
 */
#include "render/ingest.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "entry/members.h"

#define PIECES_MAX 4096u

/* How deep a part's `ext` stands: record, message, content, part, payload. */
#define EXT_DEPTH 5u
/* A part of a result stands below that: payload, content, part. */
#define RESULT_DEPTH 3u

static void piece_free(piece *p)
{
	buf *const all[] = {&p->text, &p->raw, &p->signature, &p->id,
	                    &p->name, &p->ext, &p->citations};
	for (size_t i = 0; i < COUNT_OF(all); i++)
		buf_free(all[i]);
}

void draft_clear(draft *d)
{
	for (size_t i = 0; i < d->count; i++)
		piece_free(&d->pieces[i]);
	mem_free(d->pieces);
	d->pieces = NULL;
	d->count = d->room = d->bytes = 0;
	buf_free(&d->response_id);
	buf_free(&d->model);
	buf_free(&d->stop_word);
	buf_free(&d->fault_text);
}

void draft_fail(draft *d, int code)
{
	if (d->status == 0)
		d->status = code;
}

piece *draft_piece(draft *d, int32_t kind, uint64_t index)
{
	if (d->status != 0)
		return NULL;
	if (d->count == PIECES_MAX) {
		draft_fail(d, SHEAF_TOO_LARGE);
		return NULL;
	}
	void *pieces = d->pieces;
	if (mem_grow(&pieces, &d->room, d->count + 1, sizeof(piece)) != 0) {
		draft_fail(d, SHEAF_NOMEM);
		return NULL;
	}
	d->pieces = pieces;
	piece *p = &d->pieces[d->count++];
	*p = (piece){.kind = kind, .index = index, .is_error = -1};
	return p;
}

piece *draft_find(draft *d, uint64_t index)
{
	for (size_t i = d->count; i-- > 0;) {
		if (d->pieces[i].index == index)
			return &d->pieces[i];
	}
	return NULL;
}

piece *draft_last(draft *d)
{
	return d->count != 0 ? &d->pieces[d->count - 1] : NULL;
}

void draft_add(draft *d, buf *to, sheaf_str text)
{
	if (d->status != 0 || text.len == 0)
		return;
	d->bytes += text.len;
	if (d->bytes > SHEAF_RECORD_BYTES_MAX) {
		draft_fail(d, SHEAF_TOO_LARGE);
		return;
	}
	to->max = SHEAF_RECORD_BYTES_MAX;
	buf_str(to, text);
	if (to->status != 0)
		draft_fail(d, to->status);
}

void draft_set(draft *d, buf *to, sheaf_str text)
{
	if (text.ptr == NULL || text.len == 0)
		return;
	d->bytes -= to->len;
	buf_reset(to);
	draft_add(d, to, text);
}

void draft_say(draft *d, piece *p, sheaf_str text)
{
	draft_add(d, &p->text, text);
	if (d->status == 0 && d->on_delta != NULL && text.len != 0)
		d->on_delta(d->ctx,
		            p->kind == SHEAF_PART_TEXT ? SHEAF_DELTA_TEXT : SHEAF_DELTA_THINKING,
		            text);
}

void draft_call(draft *d, piece *p, sheaf_str name)
{
	draft_add(d, &p->name, name);
	if (d->status == 0 && d->on_delta != NULL)
		d->on_delta(d->ctx, SHEAF_DELTA_TOOL_USE, name);
}

void draft_ext(draft *d, piece *p, sheaf_str key, sheaf_str value)
{
	if (str_is(value, "null") || members_key_is(key, "format"))
		return;
	if (p->ext.len != 0)
		draft_add(d, &p->ext, SHEAF_STR(","));
	draft_add(d, &p->ext, SHEAF_STR("\""));
	draft_add(d, &p->ext, key);
	draft_add(d, &p->ext, SHEAF_STR("\":"));
	draft_add(d, &p->ext, value);
}

void draft_ext_others(draft *d, piece *p, node object, const char *const *known)
{
	for (node_iter it = node_each(object); node_next(&it);) {
		const char *const *name = known;
		while (*name != NULL && !members_key_is(it.key, *name))
			name++;
		if (*name == NULL)
			draft_ext(d, p, it.key, it.value.text);
	}
}

void draft_opaque(draft *d, node value)
{
	piece *p = draft_piece(d, SHEAF_PART_OPAQUE, 0);
	if (p == NULL)
		return;
	draft_add(d, &p->raw, value.text);
	p->done = true;
}

piece *draft_text(draft *d, sheaf_str text)
{
	piece *p = draft_piece(d, SHEAF_PART_TEXT, 0);
	if (p == NULL)
		return NULL;
	draft_add(d, &p->text, text);
	p->done = true;
	return p;
}

piece *draft_source(draft *d, int32_t kind, sheaf_str url)
{
	static const char before[] = "data:", between[] = ";base64,";
	const size_t head = sizeof(before) - 1, middle = sizeof(between) - 1;
	piece *p = draft_piece(d, kind, 0);
	if (p == NULL)
		return NULL;
	size_t at = head;
	if (url.ptr != NULL && str_starts(url, before)) {
		while (at < url.len && url.ptr[at] != ';' && url.ptr[at] != ',')
			at++;
	}
	bool inside = url.len >= at + middle && memcmp(url.ptr + at, between, middle) == 0;
	if (inside && at > head) {
		draft_add(d, &p->id, SHEAF_STR("base64"));
		draft_add(d, &p->name, str_make(url.ptr + head, at - head));
		draft_add(d, &p->raw, str_make(url.ptr + at + middle, url.len - at - middle));
	} else {
		draft_add(d, &p->id, SHEAF_STR("url"));
		draft_add(d, &p->raw, url);
	}
	p->done = true;
	return p;
}

piece *draft_result(draft *d, sheaf_str tool_use_id, sheaf_str tool_name, int is_error)
{
	piece *p = draft_piece(d, SHEAF_PART_TOOL_RESULT, 0);
	if (p == NULL)
		return NULL;
	draft_add(d, &p->id, tool_use_id);
	draft_add(d, &p->name, tool_name);
	p->is_error = is_error;
	p->done = true;
	return p;
}

void draft_fault(draft *d, node root)
{
	sheaf_str text = {NULL, 0};
	d->fault = fault_of(0, root, &text);
	draft_set(d, &d->fault_text, text);
}

/* ---- The message ----------------------------------------------------------- */

typedef struct making {
	const draft *d;
	sheaf_message *m;
	sheaf_str format;
	int32_t calls;
	size_t parts;
	size_t opaque;
	bool in_result;
} making;

static sheaf_str given(const buf *b)
{
	return b->len != 0 ? buf_view(b) : (sheaf_str){NULL, 0};
}

static sheaf_str call_input(const piece *p)
{
	return p->text.len != 0 ? buf_view(&p->text) : buf_view(&p->raw);
}

/* Whether a call came whole: its end was seen, and the reply did not run out of room in it. */
static bool call_is_whole(const draft *d, const piece *p)
{
	if (!p->done)
		return false;
	if (d->stop != SHEAF_STOP_LENGTH || p + 1 != d->pieces + d->count)
		return true;
	_cleanup_(json_freep) json_doc *doc = NULL;
	return json_parse(&doc, call_input(p), NULL) != SHEAF_FORMAT;
}

/* Whether there is something to say with this piece. */
static bool is_part(const draft *d, const piece *p)
{
	switch (p->kind) {
	case SHEAF_PART_TEXT:
		return p->text.len != 0 || (p->done && p->signature.len != 0);
	case SHEAF_PART_THINKING:
		/* Reasoning that shows nothing still belongs to what follows it. */
		return p->text.len != 0 || (p->done && (p->signature.len != 0 || p->ext.len != 0));
	case SHEAF_PART_TOOL_USE:
		return call_is_whole(d, p);
	default:
		return p->done;
	}
}

void draft_call_id(const draft *d, const piece *p, buf *out)
{
	uint64_t h = str_hash(buf_view(&d->response_id)) + d->salt;
	h = h * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)(p - d->pieces);
	h = (h ^ str_hash(buf_view(&p->name))) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ str_hash(call_input(p))) * UINT64_C(0x94d049bb133111eb);
	buf_format(out, "call_%016llx", (unsigned long long)(h ^ (h >> 31)));
}

static int put_call(making *k, const piece *p)
{
	_cleanup_(buf_free) buf id = BUF_INIT(64);
	if (p->id.len == 0) {
		draft_call_id(k->d, p, &id);
		if (id.status != 0)
			return id.status;
	}
	k->calls++;
	return sheaf_message_tool_use(k->m, buf_view(p->id.len != 0 ? &p->id : &id),
	                              buf_view(&p->name), call_input(p));
}

static int put_ext(making *k, const piece *p)
{
	if (!p->done || (p->ext.len == 0 && p->citations.len == 0))
		return 0;
	size_t depth = EXT_DEPTH + (k->in_result ? RESULT_DEPTH : 0);
	_cleanup_(buf_free) buf members = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	buf_char(&members, '{');
	buf_str(&members, buf_view(&p->ext));
	if (p->citations.len != 0) {
		if (p->ext.len != 0)
			buf_char(&members, ',');
		buf_lit(&members, "\"citations\":[");
		buf_str(&members, buf_view(&p->citations));
		buf_char(&members, ']');
	}
	buf_char(&members, '}');
	if (members.status != 0)
		return members.status;
	/* What cannot be kept beside a text must not cost the text. */
	int rc = json_check(buf_view(&members), JSON_OBJECT, NULL);
	if (rc == SHEAF_NOMEM)
		return rc;
	if (rc != 0 || members_depth(buf_view(&members)) + depth > SHEAF_DEPTH_MAX)
		return 0;
	return sheaf_message_ext(k->m, k->format, buf_view(&members));
}

static int put_part(making *k, const piece *p)
{
	sheaf_str signature = p->done ? given(&p->signature) : (sheaf_str){NULL, 0};
	int rc = 0;
	switch (p->kind) {
	case SHEAF_PART_TEXT:
		rc = sheaf_message_text(k->m, buf_view(&p->text));
		break;
	case SHEAF_PART_THINKING:
		rc = sheaf_message_thinking(k->m, buf_view(&p->text), signature, p->redacted);
		signature.ptr = NULL;
		break;
	case SHEAF_PART_TOOL_USE:
		rc = put_call(k, p);
		break;
	case SHEAF_PART_IMAGE:
		rc = sheaf_message_image(k->m, buf_view(&p->id), given(&p->name),
		                         buf_view(&p->raw));
		signature.ptr = NULL;
		break;
	case SHEAF_PART_DOCUMENT:
		rc = sheaf_message_document(k->m, buf_view(&p->id), given(&p->name),
		                            buf_view(&p->raw));
		signature.ptr = NULL;
		break;
	case SHEAF_PART_TOOL_RESULT:
		if (p->list) {
			k->in_result = true;
			return sheaf_message_tool_result_begin(k->m, buf_view(&p->id),
			                                       given(&p->name), p->is_error);
		}
		rc = sheaf_message_tool_result(k->m, buf_view(&p->id), given(&p->name),
		                               buf_view(&p->text), p->is_error);
		break;
	default:
		k->opaque++;
		return sheaf_message_opaque(k->m, k->format, buf_view(&p->raw));
	}
	if (rc == 0 && signature.ptr != NULL)
		rc = sheaf_message_signature(k->m, signature);
	return rc == 0 ? put_ext(k, p) : rc;
}

/* Ends the result that is open. What is said of it comes last. */
static int end_result(making *k, const piece *result)
{
	if (!k->in_result)
		return 0;
	k->in_result = false;
	int rc = sheaf_message_tool_result_end(k->m);
	return rc == 0 ? put_ext(k, result) : rc;
}

static int put_parts(making *k)
{
	const draft *d = k->d;
	const piece *result = NULL;
	int rc = 0;
	for (size_t i = 0; i < d->count && rc == 0; i++) {
		const piece *p = &d->pieces[i];
		if (!p->inner)
			rc = end_result(k, result);
		if (rc != 0 || !is_part(d, p))
			continue;
		k->parts++;
		rc = put_part(k, p);
		if (p->kind == SHEAF_PART_TOOL_RESULT)
			result = p;
	}
	return rc == 0 ? end_result(k, result) : rc;
}

int draft_message(made *out, const draft *d, const char *role)
{
	making k = {.d = d,
	            .m = sheaf_message_new(role),
	            .format = sheaf_str_of(sheaf_format_name(d->format->format))};
	*out = (made){NULL, 0, 0};
	if (k.m == NULL)
		return SHEAF_NOMEM;
	sheaf_message_mend_text(k.m, 1);
	int rc = put_parts(&k);
	if (rc != 0 || k.parts == 0)
		sheaf_message_free(k.m);
	else
		*out = (made){k.m, k.calls, k.opaque};
	return rc;
}

/* ---- The reply ------------------------------------------------------------- */

typedef struct reply {
	sheaf_reply pub; /* first: the pointer callers have */
	arena *arena;
} reply;

void sheaf_reply_free(const sheaf_reply *r)
{
	if (r == NULL)
		return;
	const reply *inner = (const reply *)(const void *)r;
	sheaf_message_free(r->message);
	arena_free(inner->arena);
}

/* Calls decide: providers say "stop" with calls in hand, and calls may have been left out. */
static int32_t stop_of(const draft *d, int32_t calls)
{
	if (calls != 0 && (d->stop == SHEAF_STOP_END || d->stop == SHEAF_STOP_UNKNOWN))
		return SHEAF_STOP_TOOL_USE;
	if (calls == 0 && d->stop == SHEAF_STOP_TOOL_USE)
		return SHEAF_STOP_END;
	if (d->refused && d->stop == SHEAF_STOP_END)
		return SHEAF_STOP_REFUSAL;
	return d->stop;
}

static reply *make_reply(const draft *d, sheaf_str model)
{
	_cleanup_(arena_freep) arena *a = arena_new();
	reply *r = a != NULL ? arena_zalloc(a, sizeof(*r)) : NULL;
	int ok = 1;
	if (r == NULL)
		return NULL;
	r->pub.fault = d->fault;
	r->pub.fault_text = arena_dup(a, given(&d->fault_text), &ok);
	r->pub.response_id = arena_dup(a, given(&d->response_id), &ok);
	r->pub.model = arena_dup(a, model, &ok);
	r->pub.usage = d->usage;
	r->pub.complete = d->fault == 0 && (d->ended || d->stop_word.len != 0);
	if (!ok)
		return NULL;
	r->arena = a;
	a = NULL;
	return r;
}

static int put_facts(sheaf_message *m, const draft *d, sheaf_str provider, sheaf_str model)
{
	(void)sheaf_message_provider(m, provider);
	(void)sheaf_message_model(m, model);
	(void)sheaf_message_response_id(m, given(&d->response_id));
	int rc = sheaf_message_stop_reason(m, given(&d->stop_word));
	return rc == 0 && d->has_usage ? sheaf_message_usage(m, &d->usage) : rc;
}

static int fail_with(sheaf_error *err, int rc)
{
	return err_set(err, rc, "%s",
	               rc == SHEAF_FORMAT ? "not a reply in this wire format"
	                                  : sheaf_code_text(rc));
}

int draft_reply(sheaf_reply **out, draft *d, sheaf_str provider, sheaf_str model, sheaf_error *err)
{
	made m;
	if (d->status != 0)
		return fail_with(err, d->status);
	if (provider.ptr == NULL)
		provider = sheaf_str_of(sheaf_format_provider(d->format->format));
	if (d->model.len != 0)
		model = buf_view(&d->model);
	int rc = draft_message(&m, d, SHEAF_ROLE_ASSISTANT);
	if (rc == 0 && m.message != NULL)
		rc = put_facts(m.message, d, provider, model);
	reply *r = rc == 0 ? make_reply(d, model) : NULL;
	if (r == NULL) {
		sheaf_message_free(m.message);
		return fail_with(err, rc != 0 ? rc : SHEAF_NOMEM);
	}
	r->pub.message = m.message;
	r->pub.call_count = m.calls;
	r->pub.stop = stop_of(d, m.calls);
	*out = &r->pub;
	return 0;
}
