/*
 * Replies that come whole; and JSON as all readers of replies look at it.
 */
#include "render/ingest.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "entry/members.h"

/* ---- JSON ------------------------------------------------------------------ */

/* The text without the blanks between its tokens. */
static void put_tight(buf *out, sheaf_str text)
{
	const char *p = text.ptr, *end = p + text.len, *from = p;
	while (p < end) {
		if (*p == '"') {
			const char *close = json_string_end(p + 1, end);
			p = close != NULL ? close + 1 : end;
		} else if (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
			buf_add(out, from, (size_t)(p - from));
			from = ++p;
		} else {
			p++;
		}
	}
	buf_add(out, from, (size_t)(p - from));
}

static bool on_one_line(sheaf_str text)
{
	/* In JSON that parses, these stand between tokens only. */
	return memchr(text.ptr, '\n', text.len) == NULL &&
	       memchr(text.ptr, '\r', text.len) == NULL && memchr(text.ptr, '\t', text.len) == NULL;
}

static int parse_mended(source *s, sheaf_str *text, sheaf_error *err)
{
	int rc = json_parse(&s->doc, *text, err);
	if (rc != SHEAF_FORMAT)
		return rc;
	json_mend(&s->copy, *text, NULL);
	rc = buf_status(&s->copy, err);
	if (rc != 0)
		return rc;
	*text = buf_view(&s->copy);
	return json_parse(&s->doc, *text, err);
}

int source_read(source *s, sheaf_str text, sheaf_error *err)
{
	s->root = (node){NULL, {NULL, 0}};
	buf_reset(&s->copy);
	s->copy.max = 4 * SHEAF_RECORD_BYTES_MAX;
	if (text.ptr == NULL || text.len == 0)
		return err_set(err, SHEAF_FORMAT, "there is no JSON");
	int rc = parse_mended(s, &text, err);
	if (rc != 0)
		return rc;
	if (!on_one_line(text)) {
		_cleanup_(buf_free) buf tight = BUF_INIT(4 * SHEAF_RECORD_BYTES_MAX);
		put_tight(&tight, text);
		rc = buf_status(&tight, err);
		if (rc != 0)
			return rc;
		buf swap = s->copy;
		s->copy = tight;
		tight = swap;
		text = buf_view(&s->copy);
	}
	s->root = (node){json_root(s->doc), members_trim(text)};
	return 0;
}

void source_free(source *s)
{
	json_free(s->doc);
	buf_free(&s->copy);
}

node node_get(node object, const char *name)
{
	const json_val *v = json_get(object.v, name);
	if (v == NULL)
		return (node){NULL, {NULL, 0}};
	return (node){v, members_find(members_inside(object.text), name)};
}

sheaf_str node_string(node object, const char *name)
{
	return json_string(json_get(object.v, name));
}

bool node_u64(node object, const char *name, uint64_t *out)
{
	return json_u64(json_get(object.v, name), out);
}

node_iter node_each(node container)
{
	return (node_iter){.values = json_each(container.v),
	                   .inside = members_inside(container.text)};
}

bool node_next(node_iter *it)
{
	if (!json_next(&it->values))
		return false;
	it->key = (sheaf_str){NULL, 0};
	it->value.v = it->values.value;
	return it->values.key != NULL ? members_next(it->inside, &it->at, &it->key, &it->value.text)
	                              : elements_next(it->inside, &it->at, &it->value.text);
}

/* ---- Replies --------------------------------------------------------------- */

const ingest_format *ingest_format_of(int32_t format)
{
	switch (format) {
	case SHEAF_FORMAT_ANTHROPIC:
		return &ingest_anthropic;
	case SHEAF_FORMAT_OPENAI_CHAT:
		return &ingest_chat;
	case SHEAF_FORMAT_OPENAI_RESPONSES:
		return &ingest_responses;
	case SHEAF_FORMAT_GEMINI:
		return &ingest_gemini;
	default:
		return NULL;
	}
}

int sheaf_ingest_reply(sheaf_reply **out, int32_t format, sheaf_str provider, sheaf_str model,
                       sheaf_str body, sheaf_error *err)
{
	const ingest_format *how = ingest_format_of(format);
	if (out == NULL || how == NULL)
		return err_set(err, SHEAF_INVALID, "%s",
		               out == NULL ? "no place for the reply" : "no such wire format");
	_cleanup_(source_free) source s = {0};
	int rc = source_read(&s, body, err);
	if (rc != 0)
		return rc;
	_cleanup_(draft_clear) draft d = {.format = how};
	if (fault_is(s.root))
		draft_fault(&d, s.root);
	else
		how->body(&d, s.root);
	d.ended = true;
	return draft_reply(out, &d, provider, model, err);
}
