/* sheaf rename: gives a session a name people know it by. */
#include "find.h"
#include "print.h"

int cmd_rename(cli *c)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	int rc = open_for_writing(c, c->words[0], &session);
	if (rc != 0)
		return rc;
	sheaf_appended done = SHEAF_APPENDED_INIT;
	const char *name = c->words[1];
	if (sheaf_session_rename(session, sheaf_str_of(name), (sheaf_str){NULL, 0}, NULL, &done,
	                         &c->err) != 0)
		return fail(c);
	if (c->json) {
		_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
		js_open(&out, NULL, '{');
		js_appended(&out, &done);
		js_text(&out, "name", name);
		js_close(&out, '}');
		buf_char(&out, '\n');
		print_out(&out);
	} else if (name[0] == '\0') {
		say(c, "%s has no name any more", sheaf_session_id(session));
	} else {
		say(c, "%s is now called '%.1000s'", sheaf_session_id(session), name);
	}
	return 0;
}
