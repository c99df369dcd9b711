/* Reading the options of a request to a model, and saying what rendering it noted. */
#include "request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "model.h"
#include "opt.h"

#define FILE_BYTES_MAX ((size_t)16 << 20)
#define TOOLS_MAX 4096u

void context_freep(sheaf_context **context)
{
	sheaf_context_free(*context);
}

void rendered_freep(sheaf_request **request)
{
	sheaf_request_free(*request);
}

/* ---- Notes ------------------------------------------------------------- */

void request_notes(const cli *c, const sheaf_note *const *notes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const sheaf_note *note = notes[i];
		char where[32] = "";
		if (note->seq != 0)
			snprintf(where, sizeof(where), "@%llu: ", (unsigned long long)note->seq);
		say(c, "note: %s%s%s%.*s", where, sheaf_note_text(note->what),
		    note->detail.len != 0 ? ": " : "", (int)note->detail.len,
		    note->detail.len != 0 ? note->detail.ptr : "");
	}
}

void js_notes(buf *b, const sheaf_note *const *notes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const sheaf_note *note = notes[i];
		js_open(b, NULL, '{');
		js_text(b, "what", sheaf_note_name(note->what));
		js_u64(b, "seq", note->seq);
		js_str(b, "entry_id", note->entry_id);
		js_str(b, "detail", note->detail);
		js_close(b, '}');
	}
}

/* ---- Files ------------------------------------------------------------- */

static int read_file(cli *c, const char *name, buf *out)
{
	FILE *file = fopen(name, "re");
	if (file == NULL)
		return fail_with(c, errno == ENOENT ? SHEAF_NOT_FOUND : SHEAF_STORAGE, NULL,
		                 "cannot read '%.150s': %s", name, strerror(errno));
	char chunk[65536];
	size_t n;
	while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0 && out->status == 0)
		buf_add(out, chunk, n);
	int failed = ferror(file) ? errno : 0;
	fclose(file);
	if (failed != 0)
		return fail_with(c, SHEAF_STORAGE, NULL, "cannot read '%.150s': %s", name,
		                 strerror(failed));
	return buf_status(out, &c->err) != 0 ? fail(c) : 0;
}

/* A copy that lives as long as the command. */
static int keep(cli *c, sheaf_str text, sheaf_str *out)
{
	int ok = 1;
	*out = arena_dup(c->memory, text, &ok);
	return ok ? 0 : fail_memory(c);
}

int request_text(cli *c, opt_id id, sheaf_str *out)
{
	*out = opt_str(c, id);
	if (out->ptr == NULL || out->ptr[0] != '@')
		return 0;
	_cleanup_(buf_free) buf text = BUF_INIT(FILE_BYTES_MAX);
	int rc = read_file(c, out->ptr + 1, &text);
	/* As $(…) in a shell. */
	while (text.len != 0 && text.ptr[text.len - 1] == '\n')
		text.len--;
	return rc != 0 ? rc : keep(c, buf_view(&text), out);
}

/* ---- Tools ------------------------------------------------------------- */

/* {"name":…,"description":…,"schema":{…}}; the schema's bytes stay as they are. */
static int take_tool(cli *c, const json_val *value, sheaf_str text, sheaf_tool *out)
{
	out->name = json_string(json_get(value, "name"));
	out->description = json_string(json_get(value, "description"));
	out->schema = json_member_bytes(text, "schema");
	if (out->name.len == 0 || (out->schema.ptr != NULL && out->schema.ptr[0] != '{'))
		return fail_with(c, SHEAF_INVALID,
		                 "[{\"name\":\"…\",\"description\":\"…\",\"schema\":{…}}, …]",
		                 "--tools: each needs a name, and its schema is an object");
	int rc = keep(c, out->name, &out->name);
	if (rc == 0)
		rc = keep(c, out->description, &out->description);
	return rc != 0 ? rc : keep(c, out->schema, &out->schema);
}

static int take_tools(cli *c, sheaf_render_options *out)
{
	const char *name = c->values[OPT_TOOLS];
	if (name == NULL)
		return 0;
	_cleanup_(buf_free) buf text = BUF_INIT(FILE_BYTES_MAX);
	_cleanup_(json_freep) json_doc *doc = NULL;
	int rc = read_file(c, name, &text);
	if (rc != 0)
		return rc;
	if (json_parse(&doc, buf_view(&text), &c->err) != 0)
		return fail_with(c, SHEAF_INVALID, NULL, "--tools: '%.100s' is no JSON: %.80s",
		                 name, c->err.message);
	size_t count = json_count(json_root(doc));
	if (json_type_of(json_root(doc)) != JSON_ARRAY || count > TOOLS_MAX)
		return fail_with(c, SHEAF_INVALID, NULL, "--tools: '%.100s' is no list of tools",
		                 name);
	sheaf_tool *tools = arena_zalloc(c->memory, (count + 1) * sizeof(*tools));
	if (tools == NULL)
		return fail_memory(c);
	size_t at = 0, i = 0;
	sheaf_str element;
	for (json_iter it = json_each(json_root(doc));
	     json_next(&it) && json_element_next(buf_view(&text), &at, &element); i++) {
		if ((rc = take_tool(c, it.value, element, &tools[i])) != 0)
			return rc;
	}
	out->tools = tools;
	out->tool_count = i;
	return 0;
}

/* ---- The rest ---------------------------------------------------------- */

static int32_t cache_named(const char *name)
{
	static const char *const names[] = {
		[SHEAF_CACHE_FULL] = "full",
		[SHEAF_CACHE_SYSTEM] = "system",
		[SHEAF_CACHE_MESSAGES] = "messages",
		[SHEAF_CACHE_OFF] = "off",
	};
	for (size_t i = 0; name != NULL && i < COUNT_OF(names); i++) {
		if (strcmp(names[i], name) == 0)
			return (int32_t)i;
	}
	return SHEAF_CACHE_FULL;
}

/* images,outputs */
static int take_elide(cli *c, int32_t *out)
{
	const char *at = c->values[OPT_ELIDE];
	while (at != NULL && *at != '\0') {
		sheaf_str word = str_make(at, strcspn(at, ","));
		if (str_is(word, "images"))
			*out |= SHEAF_ELIDE_IMAGES;
		else if (str_is(word, "outputs"))
			*out |= SHEAF_ELIDE_OUTPUTS;
		else
			return usage(c, "--elide takes images, outputs or both, with a comma");
		at += word.len + (at[word.len] == ',');
	}
	return 0;
}

static int take_system(cli *c, sheaf_render_options *out)
{
	sheaf_system *system = arena_zalloc(c->memory, sizeof(*system));
	if (system == NULL)
		return fail_memory(c);
	int rc = request_text(c, OPT_SYSTEM, &system->text);
	if (rc == 0 && system->text.len != 0) {
		out->system = system;
		out->system_count = 1;
	}
	return rc;
}

int request_options(cli *c, sheaf_render_options *out)
{
	*out = (sheaf_render_options)SHEAF_RENDER_OPTIONS_INIT;
	uint64_t bytes = 0;
	out->format = sheaf_format_named(opt_str(c, OPT_FORMAT));
	out->provider = opt_str(c, OPT_PROVIDER);
	out->model = opt_str(c, OPT_MODEL);
	out->thinking_level = opt_str(c, OPT_THINKING);
	out->cache = cache_named(c->values[OPT_CACHE]);
	int rc = load_models(c);
	out->models = c->models;
	if (rc == 0)
		rc = opt_u64(c, OPT_BYTES, &bytes);
	if (rc == 0)
		rc = take_elide(c, &out->elide);
	if (rc == 0)
		rc = take_system(c, out);
	if (rc == 0)
		rc = take_tools(c, out);
	out->bytes_max = (size_t)bytes;
	return rc;
}
