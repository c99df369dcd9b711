/*
 * A client for models over HTTP: the four wire formats on any address.
 *
 *     sheaf_client_options where = SHEAF_CLIENT_OPTIONS_INIT;
 *     where.format = SHEAF_FORMAT_ANTHROPIC;      (key from $ANTHROPIC_API_KEY)
 *     rc = sheaf_client_open(&client, &where, &err);
 *     agent_options.model = sheaf_client_model(client);
 *
 * It is made with libcurl and lives in a module of its own that is loaded by
 * the first open: programs that do not use it carry no libcurl. Proxies are
 * those of the environment, as curl has it. Redirects are not followed. Keys
 * appear in no error.
 */
#ifndef SHEAF_CLIENT_H
#define SHEAF_CLIENT_H

#include "agent.h"

SHEAF_BEGIN

typedef struct sheaf_client sheaf_client;

typedef struct sheaf_client_options {
	size_t size;      /* sizeof(sheaf_client_options) */
	int32_t format;   /* SHEAF_FORMAT_* */
	int32_t any_http; /* 1: http:// also to other machines; else only to this one */
	sheaf_str url;    /* the base address, with or without the "/v1" that paths begin with;
	                  {NULL,0} = the format's own provider */
	sheaf_str key;    /* {NULL,0} = $ANTHROPIC_API_KEY, $OPENAI_API_KEY, or $GEMINI_API_KEY or
	                  $GOOGLE_API_KEY; empty = none is sent */
	const sheaf_str *headers; /* further ones, "Name: value"; one of a name that is sent anyway
	                             takes its place */
	size_t header_count;
	int64_t connect_us;     /* until there is a connection; 0 = 30 s */
	int64_t first_byte_us;  /* until the response begins; 0 = 10 min */
	int64_t idle_us;        /* between two pieces of it; 0 = 2 min */
	size_t reply_bytes_max; /* of one response; 0 = 64 MiB */
} sheaf_client_options;

/* clang-format off */
#define SHEAF_CLIENT_OPTIONS_INIT                                                                  \
	{sizeof(sheaf_client_options), 0, 0, {0, 0}, {0, 0}, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/**
 * Makes a client. Connects to nothing yet. Options are copied. Thread-safe.
 * @return 0; SHEAF_INVALID (format, address, header), SHEAF_DENIED (no key where the format's own
 *         provider wants one, http:// to another machine), SHEAF_UNSUPPORTED (the module is not
 *         installed), SHEAF_NOMEM
 */
SHEAF_API int sheaf_client_open(sheaf_client **out, const sheaf_client_options *options,
                                sheaf_error *err);

/** No request may be going on. NULL is fine. */
SHEAF_API void sheaf_client_close(sheaf_client *client);

/** The client as a model for an agent; valid until it is closed. */
SHEAF_API sheaf_model sheaf_client_model(sheaf_client *client);

SHEAF_END
#endif
