/* What the client and its module agree on: the module http shows `sheaf_http_module`. */
#ifndef AGENT_HTTP_H
#define AGENT_HTTP_H

#include <stdbool.h>

#include "sheaf/client.h"

#define HTTP_MODULE "http"
#define HTTP_SYMBOL "sheaf_http_module"
#define HTTP_VERSION 1 /* of this header: library and module must have the same */

/* Strings are NUL-terminated and live as long as the connection is open. */
typedef struct http_config {
	const char *url;            /* the base address */
	const char *const *headers; /* "Name: value" */
	size_t header_count;
	const char *keys[2]; /* what must not appear in errors; NULL = none */
	bool any_http;       /* http:// also to other machines */
	int64_t connect_us;
	int64_t first_byte_us;
	int64_t idle_us;
	size_t reply_bytes_max;
} http_config;

typedef struct http http;

typedef struct http_ops {
	size_t size;
	uint32_t version;
	uint32_t reserved0;
	/* Checks the address: SHEAF_INVALID, SHEAF_DENIED. Connects to nothing. */
	int (*open)(http **out, const http_config *config, sheaf_error *err);
	void (*close)(http *h);
	sheaf_send_fn send; /* `ctx` is what open gave; threads may send together */
} http_ops;

#endif
