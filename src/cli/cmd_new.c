/* sheaf new: starts a session and prints its id. */
#include <stdio.h>
#include <stdlib.h>

#include "find.h"
#include "opt.h"
#include "print.h"

/* Something has the id, perhaps a session that lists do not show any more. */
static int is_taken(cli *c, const sheaf_key *key)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	char hint[sizeof(c->err.hint)] = "";
	options.mode = SHEAF_OPEN_EXISTING;
	/* A part of an id could mean another session. */
	const char *id = key->session.len <= 40 ? c->words[0] : "SESSION";
	if (sheaf_session_open(&session, c->store, key, &options, NULL) == SHEAF_EXPIRED)
		snprintf(hint, sizeof(hint),
		         "it has expired: sheaf undelete %.40s, or sheaf rm %.40s", id, id);
	return fail_with(c, SHEAF_EXISTS, hint, "there is a session '%.150s' already", c->words[0]);
}

int cmd_new(cli *c)
{
	int rc = open_store(c);
	if (rc != 0)
		return rc;
	char directory[PATH_MAX];
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	rc = opt_span(c, OPT_TTL, NULL, &options.ttl_us);
	if (rc != 0)
		return rc;
	options.mode = SHEAF_OPEN_NEW;
	options.name = opt_str(c, OPT_NAME);
	options.kind = opt_str(c, OPT_KIND);
	options.parent_session = opt_str(c, OPT_PARENT);
	options.cwd = opt_str(c, OPT_CWD);
	if (!given(c, OPT_CWD))
		options.cwd = working_directory(directory);
	else if (realpath(c->values[OPT_CWD], directory) != NULL)
		options.cwd = sheaf_str_of(directory);
	sheaf_key key = {c->app, c->user, sheaf_str_of(c->words[0])};
	if (c->words[0] != NULL && c->words[0][0] == '\0')
		return usage(c, "the id of a session is empty");
	_cleanup_(session_closep) sheaf_session *session = NULL;
	int code = sheaf_session_open(&session, c->store, &key, &options, &c->err);
	if (code == SHEAF_EXISTS)
		return is_taken(c, &key);
	if (code != 0)
		return fail(c);
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	key = sheaf_session_key(session);
	if (c->json) {
		js_open(&out, NULL, '{');
		js_str(&out, "session", key.session);
		js_str(&out, "app", key.app);
		js_str(&out, "user", key.user);
		js_close(&out, '}');
	} else {
		text_safe(&out, key.session, TEXT_ID);
	}
	buf_char(&out, '\n');
	print_out(&out);
	return 0;
}
