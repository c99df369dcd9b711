/* The HTTP client as users see it: what is sent where, by the module that knows libcurl. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/http.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/module.h"
#include "base/str.h"

#define HEADERS_MAX 64u
#define HEADER_BYTES_MAX 16384u
#define CONNECT_DEFAULT_US 30000000
#define FIRST_BYTE_DEFAULT_US 600000000
#define IDLE_DEFAULT_US 120000000
#define REPLY_BYTES_DEFAULT ((size_t)64 << 20)

/* What is particular to a format: where its own provider is, and how a key is shown. */
typedef struct speaker {
	const char *url;
	const char *key_names[2]; /* in the environment */
	const char *key_header;
	const char *fixed; /* a header every request has */
} speaker;

static const speaker speakers[] = {
	[SHEAF_FORMAT_ANTHROPIC] = {"https://api.anthropic.com",
                                    {"ANTHROPIC_API_KEY", NULL},
                                    "x-api-key: ",
                                    "anthropic-version: 2023-06-01"},
	[SHEAF_FORMAT_OPENAI_CHAT] = {"https://api.openai.com",
                                      {"OPENAI_API_KEY", NULL},
                                      "Authorization: Bearer ",
                                      NULL},
	[SHEAF_FORMAT_OPENAI_RESPONSES] = {"https://api.openai.com",
                                           {"OPENAI_API_KEY", NULL},
                                           "Authorization: Bearer ",
                                           NULL},
	[SHEAF_FORMAT_GEMINI] = {"https://generativelanguage.googleapis.com",
                                 {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
                                 "x-goog-api-key: ",
                                 NULL},
};

struct sheaf_client {
	arena *arena;
	int32_t format;
	const http_ops *ops; /* of the module, which stays loaded */
	http *http;
};

/* ---- Headers ------------------------------------------------------------- */

/* A name, a colon, and nothing that could begin another header. */
static int check_header(sheaf_str header, sheaf_error *err)
{
	const char *colon = header.len != 0 ? memchr(header.ptr, ':', header.len) : NULL;
	bool ok = colon != NULL && colon != header.ptr && header.len <= HEADER_BYTES_MAX;
	for (size_t i = 0; ok && i < header.len; i++) {
		unsigned char c = (unsigned char)header.ptr[i];
		ok = c >= 0x20 && c != 0x7f;
		ok = ok && (header.ptr + i >= colon || (c > 0x20 && c < 0x7f));
	}
	return ok ? 0 : err_set(err, SHEAF_INVALID, "a header is spelled \"Name: value\"");
}

static bool same_name(sheaf_str a, sheaf_str b)
{
	const char *colon = memchr(a.ptr, ':', a.len);
	size_t len = (size_t)(colon - a.ptr) + 1;
	return b.len >= len && strncasecmp(a.ptr, b.ptr, len) == 0;
}

typedef struct header_list {
	arena *arena;
	const char **items;
	size_t count;
	const char *keys[2]; /* as in http_config */
	int ok;
} header_list;

static void add_header(header_list *list, const sheaf_client_options *o, sheaf_str header)
{
	for (size_t i = 0; i < o->header_count; i++)
		if (same_name(o->headers[i], header))
			return; /* the caller's own takes its place */
	list->items[list->count++] = arena_dup(list->arena, header, &list->ok).ptr;
}

static sheaf_str find_key(const sheaf_client_options *o, const speaker *s)
{
	sheaf_str key = o->key;
	for (size_t i = 0; i < COUNT_OF(s->key_names) && key.ptr == NULL; i++)
		if (s->key_names[i] != NULL)
			key = sheaf_str_of(getenv(s->key_names[i]));
	return key;
}

/* What a caller's own header says instead of the key's is as secret as that. */
static void hide_own_key(header_list *list, const sheaf_client_options *o, const speaker *s)
{
	for (size_t i = 0; i < o->header_count; i++) {
		sheaf_str header = o->headers[i];
		if (!same_name(header, sheaf_str_of(s->key_header)) &&
		    !same_name(header, SHEAF_STR("Authorization:")))
			continue;
		while (header.len != 0 && header.ptr[header.len - 1] == ' ')
			header.len--;
		/* Behind the colon, or behind "Bearer". */
		const char *end = header.ptr + header.len, *at = end;
		while (at[-1] != ' ' && at[-1] != ':')
			at--;
		sheaf_str own = {at, (size_t)(end - at)};
		if (own.len != 0)
			list->keys[1] = arena_dup(list->arena, own, &list->ok).ptr;
	}
}

/* The key's header; a key with a line break in it would be two. */
static int add_key(header_list *list, const sheaf_client_options *o, const speaker *s,
                   sheaf_error *err)
{
	_cleanup_(buf_free) buf line = BUF_INIT(HEADER_BYTES_MAX);
	sheaf_str key = find_key(o, s);
	if (key.ptr == NULL && o->url.ptr == NULL) {
		int rc = err_set(err, SHEAF_DENIED, "there is no key for %s", s->url);
		err_hint(err, "set $%s", s->key_names[0]);
		return rc;
	}
	if (key.len == 0)
		return 0;
	buf_str(&line, sheaf_str_of(s->key_header));
	buf_str(&line, key);
	int rc = buf_status(&line, err);
	if (rc == 0 && check_header(buf_view(&line), NULL) != 0)
		rc = err_set(err, SHEAF_INVALID, "the key has characters no key can have");
	if (rc != 0)
		return rc;
	add_header(list, o, buf_view(&line));
	list->keys[0] = arena_dup(list->arena, key, &list->ok).ptr;
	return 0;
}

static int make_headers(header_list *list, const sheaf_client_options *o, const speaker *s,
                        sheaf_error *err)
{
	if (o->header_count > HEADERS_MAX)
		return err_set(err, SHEAF_LIMIT, "at most %u headers can be given", HEADERS_MAX);
	for (size_t i = 0; i < o->header_count; i++) {
		int rc = check_header(o->headers[i], err);
		if (rc != 0)
			return rc;
	}
	list->items = arena_alloc(list->arena, (o->header_count + 8) * sizeof(*list->items));
	if (list->items == NULL)
		return err_nomem(err);
	int rc = add_key(list, o, s, err);
	hide_own_key(list, o, s);
	add_header(list, o, SHEAF_STR("Content-Type: application/json"));
	if (s->fixed != NULL)
		add_header(list, o, sheaf_str_of(s->fixed));
	for (size_t i = 0; i < o->header_count; i++)
		list->items[list->count++] = arena_dup(list->arena, o->headers[i], &list->ok).ptr;
	return rc == 0 && !list->ok ? err_nomem(err) : rc;
}

/* ---- Opening ------------------------------------------------------------- */

static int find_module(const http_ops **out, sheaf_error *err)
{
	module m;
	bool there;
	int rc = module_find(HTTP_MODULE, HTTP_SYMBOL, &m, &there, err);
	if (rc != 0 && !there)
		return err_set(err, SHEAF_UNSUPPORTED, "the module for HTTP is not installed");
	if (rc != 0)
		return rc;
	const http_ops *ops = m.symbol;
	if (ops->size < sizeof(*ops) || ops->version != HTTP_VERSION) {
		module_unload(&m);
		return err_set(err, SHEAF_UNSUPPORTED, "the module for HTTP is of another version");
	}
	*out = ops;
	return 0;
}

static int64_t or_default(int64_t us, int64_t otherwise)
{
	return us > 0 ? us : otherwise;
}

static int connect_to(sheaf_client *client, const sheaf_client_options *o, const speaker *s,
                      sheaf_error *err)
{
	header_list headers = {.arena = client->arena, .ok = 1};
	int rc = make_headers(&headers, o, s, err);
	if (rc != 0)
		return rc;
	sheaf_str url = o->url.ptr != NULL ? o->url : sheaf_str_of(s->url);
	url = arena_dup(client->arena, url, &headers.ok);
	if (!headers.ok)
		return err_nomem(err);
	if (strlen(url.ptr) != url.len)
		return err_set(err, SHEAF_INVALID, "the address is none");
	http_config config = {
		.url = url.ptr,
		.headers = headers.items,
		.header_count = headers.count,
		.keys = {headers.keys[0], headers.keys[1]},
		.any_http = o->any_http != 0,
		.connect_us = or_default(o->connect_us, CONNECT_DEFAULT_US),
		.first_byte_us = or_default(o->first_byte_us, FIRST_BYTE_DEFAULT_US),
		.idle_us = or_default(o->idle_us, IDLE_DEFAULT_US),
		.reply_bytes_max = o->reply_bytes_max != 0 ? o->reply_bytes_max
	                                                   : REPLY_BYTES_DEFAULT,
	};
	rc = find_module(&client->ops, err);
	return rc == 0 ? client->ops->open(&client->http, &config, err) : rc;
}

int sheaf_client_open(sheaf_client **out, const sheaf_client_options *options, sheaf_error *err)
{
	sheaf_client_options o = SHEAF_CLIENT_OPTIONS_INIT;
	if (options == NULL || sheaf_format_name(options->format) == NULL)
		return err_set(err, SHEAF_INVALID, "a client needs the format it speaks");
	memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
	sheaf_client *client = mem_zalloc(sizeof(*client));
	if (client == NULL)
		return err_nomem(err);
	client->format = o.format;
	client->arena = arena_new();
	int rc = client->arena != NULL ? connect_to(client, &o, &speakers[o.format], err)
	                               : err_nomem(err);
	if (rc != 0)
		sheaf_client_close(client);
	else
		*out = client;
	return rc;
}

void sheaf_client_close(sheaf_client *client)
{
	if (client == NULL)
		return;
	if (client->http != NULL)
		client->ops->close(client->http);
	arena_free(client->arena);
	mem_free(client);
}

sheaf_model sheaf_client_model(sheaf_client *client)
{
	return (sheaf_model){client->ops->send, client->http, client->format, 0};
}
