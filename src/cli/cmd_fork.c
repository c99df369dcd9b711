/* sheaf fork: a new session that shares another's history up to an entry. */
#include "find.h"
#include "opt.h"
#include "print.h"

int cmd_fork(cli *c)
{
	_cleanup_(session_closep) sheaf_session *source = NULL, *made = NULL;
	char at[SHEAF_ID_ROOM] = "";
	int rc = open_for_reading(c, c->words[0], &source);
	if (rc != 0)
		return rc;
	if (given(c, OPT_AT) && (rc = find_entry(c, source, c->values[OPT_AT], at)) != 0)
		return rc;
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	options.name = opt_str(c, OPT_NAME);
	sheaf_key from = sheaf_session_key(source);
	sheaf_key key = {from.app, from.user, sheaf_str_of(c->words[1])};
	int code = sheaf_session_fork(&made, source, sheaf_str_of(at), &key, &options, &c->err);
	if (code == SHEAF_EXISTS)
		return fail_with(c, code, NULL, "there is a session '%.150s' already", c->words[1]);
	if (code != 0)
		return fail(c);
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	key = sheaf_session_key(made);
	if (c->json) {
		js_open(&out, NULL, '{');
		js_str(&out, "session", key.session);
		js_str(&out, "app", key.app);
		js_str(&out, "user", key.user);
		js_str(&out, "fork_of", from.session);
		js_close(&out, '}');
	} else {
		text_safe(&out, key.session, TEXT_ID);
	}
	buf_char(&out, '\n');
	print_out(&out);
	return 0;
}
