/*
 * What an agent sent, against what Sheaf makes of the session file it wrote:
 * requests of tests/data/wire, block by block (support/body_lines.h).
 */
#ifndef TESTS_CONVERT_WIRE_KIT_H
#define TESTS_CONVERT_WIRE_KIT_H

#include "base/json.h"
#include "sheaf/render.h"
#include "support/body_lines.h"
#include "unit/convert/convert_kit.h"

typedef struct wire {
	const char *request; /* of tests/data/wire */
	int32_t format;
	const char *provider; /* NULL: the format's */
	const char *leaf;     /* as of this entry; NULL: the last */
	size_t system;        /* messages at the front that are the agent's system text */
	size_t unwritten;     /* blocks at the end that the agent never writes down */
	int doubles;          /* answers stand twice in what was sent */
	int unsigned_calls;   /* signatures are not written down */
	int plain;            /* sent to a model without images, foreign thinking as text */
} wire;

static void wire_without(buf *out, sheaf_str lines, const char *word)
{
	while (lines.len != 0) {
		const char *end = memchr(lines.ptr, '\n', lines.len);
		size_t len = (size_t)(end - lines.ptr) + 1;
		sheaf_str line = str_make(lines.ptr, len);
		if (memmem(line.ptr, line.len, word, strlen(word)) == NULL)
			buf_str(out, line);
		lines = str_make(lines.ptr + len, lines.len - len);
	}
}

static void wire_sent(buf *out, const wire *w, char *model, size_t room)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	char path[512];
	size_t len;
	(void)snprintf(path, sizeof(path), SHEAF_TEST_DATA "/wire/%s.json", w->request);
	char *file = file_read(path, &len);
	assert_int_equal(json_parse(&doc, str_make(file, len), NULL), 0);
	const json_val *body = json_get(json_root(doc), "body");
	sheaf_str name = json_string(json_get(body, "model"));
	str_copy_cut(model, room, name.len != 0 ? name : SHEAF_STR("gemini-2.5-flash"));
	if (w->doubles)
		body_lines_once(out, body);
	else
		body_lines(out, w->format, body, w->system);
	free(file);
	for (size_t i = 0; i < w->unwritten; i++) {
		out->len--;
		while (out->len != 0 && out->ptr[out->len - 1] != '\n')
			out->len--;
	}
}

static void wire_rendered(buf *out, const wire *w, sheaf_session *s, const char *model)
{
	_cleanup_(json_freep) json_doc *doc = NULL;
	sheaf_context *context;
	sheaf_request *request;
	sheaf_error err;
	sheaf_context_options as = SHEAF_CONTEXT_OPTIONS_INIT;
	sheaf_render_options how = SHEAF_RENDER_OPTIONS_INIT;
	as.leaf = sheaf_str_of(w->leaf);
	int rc = sheaf_session_context(&context, s, &as, &err);
	if (rc != 0)
		print_error("%s: %s\n", w->request, err.message);
	assert_int_equal(rc, 0);
	how.format = w->format;
	how.model = sheaf_str_of(model);
	how.provider = sheaf_str_of(w->provider);
	how.thinking_as_text = w->plain;
	how.no_images = w->plain;
	assert_int_equal(sheaf_render(&request, context, &how, &err), 0);
	assert_int_equal(json_parse(&doc, request->body, NULL), 0);
	body_lines(out, w->format, json_root(doc), 0);
	sheaf_request_free(request);
	sheaf_context_free(context);
}

static UNUSED void wire_same(sheaf_session *s, const wire *w)
{
	_cleanup_(buf_free) buf sent = BUF_INIT(KIT_BYTES_MAX), mine = BUF_INIT(KIT_BYTES_MAX);
	_cleanup_(buf_free) buf a = BUF_INIT(KIT_BYTES_MAX), b = BUF_INIT(KIT_BYTES_MAX);
	const char *left_out = w->unsigned_calls ? "model signature" : "\n\n";
	char model[64];
	wire_sent(&sent, w, model, sizeof(model));
	wire_rendered(&mine, w, s, model);
	wire_without(&a, buf_view(&sent), left_out);
	wire_without(&b, buf_view(&mine), left_out);
	buf_nul(&a);
	buf_nul(&b);
	assert_true(a.len > 200);
	assert_string_equal(b.ptr, a.ptr);
}

#endif
