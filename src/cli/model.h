/* Which model answers, and where: from the options, the environment, or what spoke last. */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "cmd.h"

typedef struct model {
	sheaf_client *client;
	int32_t format;
	sheaf_str name;
	const char *url; /* NULL: the provider's own */
} model;

void model_done(model *m); /* for _cleanup_ */

/*
 * Reads --model, --url and --format or $SHEAF_MODEL, $SHEAF_URL and
 * $SHEAF_FORMAT, and opens a client. What is not said is as it was: `session`
 * (may be NULL) says which provider and model spoke last on the branch. 0 or the
 * exit code after a report; strings live as long as the command.
 */
int model_open(cli *c, sheaf_session *session, sheaf_str branch, model *out);

/* Reads the file that $SHEAF_MODELS names, if it names one. 0 or the exit code after a report. */
int load_models(cli *c);

/* The address of --url or $SHEAF_URL; NULL: the provider's own. */
const char *model_url(const cli *c);

/* The provider, other than that of the client, whose model this is by the table, or NULL. */
const char *model_elsewhere(const cli *c, const model *m, sheaf_str name);

/* Whether the command line asks for a model. */
bool model_given(const cli *c);

/* Reports c->err after a request that failed: what to do about it. `again` says how to repeat it. */
int model_failed(cli *c, const model *m, const char *again);

#endif
