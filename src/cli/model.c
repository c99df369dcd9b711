/* Choosing the model that answers, and saying what to do when it does not. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "opt.h"
#include "request.h"

static const struct {
	const char *provider;
	const char *key;
	int32_t format;
} known[] = {
	{"anthropic", "ANTHROPIC_API_KEY", SHEAF_FORMAT_ANTHROPIC},
	{"openai", "OPENAI_API_KEY", SHEAF_FORMAT_OPENAI_RESPONSES},
	{"openai", "OPENAI_API_KEY", SHEAF_FORMAT_OPENAI_CHAT},
	{"google", "GEMINI_API_KEY", SHEAF_FORMAT_GEMINI},
	{"google", "GOOGLE_API_KEY", SHEAF_FORMAT_GEMINI},
};

void model_done(model *m)
{
	sheaf_client_close(m->client);
}

static const char *key_name(int32_t format)
{
	for (size_t i = 0; i < COUNT_OF(known); i++) {
		if (known[i].format == format)
			return known[i].key;
	}
	return known[0].key;
}

static const char *option_or_env(const cli *c, opt_id id, const char *name)
{
	const char *value = given(c, id) ? c->values[id] : getenv(name);
	return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *model_url(const cli *c)
{
	return option_or_env(c, OPT_URL, "SHEAF_URL");
}

bool model_given(const cli *c)
{
	return given(c, OPT_MODEL) || given(c, OPT_URL) || given(c, OPT_FORMAT);
}

int load_models(cli *c)
{
	const char *file = getenv("SHEAF_MODELS");
	if (c->models != NULL || file == NULL || file[0] == '\0')
		return 0;
	if (sheaf_models_load(&c->models, file, &c->err) == 0)
		return 0;
	snprintf(c->err.hint, sizeof(c->err.hint), "$SHEAF_MODELS names the file: %.80s", file);
	return fail(c);
}

/* What speaks at an address of its own is nearly always this; else by whose model it is, by the
 * provider that spoke last, or by the key there is. */
static int32_t guess_format(const cli *c, const model *m, sheaf_str provider)
{
	if (m->url != NULL)
		return SHEAF_FORMAT_OPENAI_CHAT;
	for (size_t i = 0; i < COUNT_OF(known); i++) {
		if (sheaf_models_find(c->models, sheaf_str_of(known[i].provider), m->name, 0) !=
		    NULL)
			return known[i].format;
	}
	for (size_t i = 0; i < COUNT_OF(known); i++) {
		if (str_is(provider, known[i].provider))
			return known[i].format;
	}
	for (size_t i = 0; i < COUNT_OF(known); i++) {
		if (getenv(known[i].key) != NULL)
			return known[i].format;
	}
	return SHEAF_FORMAT_ANTHROPIC;
}

const char *model_elsewhere(const cli *c, const model *m, sheaf_str name)
{
	sheaf_str here = sheaf_str_of(sheaf_format_provider(m->format));
	if (m->url != NULL || sheaf_models_find(c->models, here, name, 0) != NULL)
		return NULL;
	for (size_t i = 0; i < COUNT_OF(known); i++) {
		if (sheaf_models_find(c->models, sheaf_str_of(known[i].provider), name, 0) != NULL)
			return known[i].provider;
	}
	return NULL;
}

static int spoke_last(cli *c, sheaf_session *session, sheaf_str branch, model *m,
                      sheaf_str *provider)
{
	if (session == NULL)
		return 0;
	_cleanup_(context_freep) sheaf_context *context = NULL;
	sheaf_context_options options = SHEAF_CONTEXT_OPTIONS_INIT;
	options.branch = branch;
	options.bytes_max = SIZE_MAX / 2; /* what is too large to be sent can still be compacted */
	if (sheaf_session_context(&context, session, &options, &c->err) != 0)
		return fail(c);
	int ok = 1;
	*provider = arena_dup(c->memory, context->provider, &ok);
	if (m->name.ptr == NULL)
		m->name = arena_dup(c->memory, context->model, &ok);
	return ok ? 0 : fail_memory(c);
}

static int open_client(cli *c, model *m)
{
	sheaf_client_options where = SHEAF_CLIENT_OPTIONS_INIT;
	where.format = m->format;
	where.url = sheaf_str_of(m->url);
	int rc = sheaf_client_open(&m->client, &where, &c->err);
	if (rc == SHEAF_DENIED && m->url == NULL)
		snprintf(c->err.hint, sizeof(c->err.hint),
		         "set $%s, or give the --url of a server that wants none",
		         key_name(m->format));
	return rc != 0 ? fail(c) : 0;
}

int model_open(cli *c, sheaf_session *session, sheaf_str branch, model *out)
{
	sheaf_str provider = {NULL, 0};
	const char *format = option_or_env(c, OPT_FORMAT, "SHEAF_FORMAT");
	out->url = model_url(c);
	out->name = sheaf_str_of(option_or_env(c, OPT_MODEL, "SHEAF_MODEL"));
	int rc = spoke_last(c, session, branch, out, &provider);
	if (rc != 0)
		return rc;
	if (out->name.len == 0)
		return usage(c, "which model? --model NAME, or $SHEAF_MODEL");
	out->format = format != NULL ? sheaf_format_named(sheaf_str_of(format))
	                             : guess_format(c, out, provider);
	if (out->format == 0)
		return usage(c, "$SHEAF_FORMAT names no format: '%.40s'", format);
	return open_client(c, out);
}

int model_failed(cli *c, const model *m, const char *again)
{
	char *hint = c->err.hint;
	size_t room = sizeof(c->err.hint);
	switch (c->err.code) {
	case SHEAF_DENIED:
		snprintf(hint, room, "set $%s to a key that is accepted; nothing said is lost",
		         key_name(m->format));
		break;
	case SHEAF_MODEL:
	case SHEAF_TIMEOUT:
		snprintf(hint, room, "nothing is lost; %s asks again", again);
		break;
	case SHEAF_STALE:
		snprintf(hint, room, "somebody else wrote to this branch; %s goes on from there",
		         again);
		break;
	default:
		break;
	}
	return fail(c);
}
