/* sheaf show: a conversation, from its beginning to its leaf, for reading. */
#include "find.h"
#include "opt.h"
#include "view.h"

/* The raw lines, which programs know from docs/format.md. */
static int show_json(const sheaf_records *path)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < path->count; i++) {
		js_line(&out, path->items[i]->line);
		buf_char(&out, '\n');
		print_out(&out);
	}
	return 0;
}

static int show_people(cli *c, sheaf_session *session, const sheaf_records *path)
{
	_cleanup_(head_freep) sheaf_head_view *head = NULL;
	if (sheaf_session_head(&head, session, &c->err) != 0)
		return fail(c);
	print_page(c);
	_cleanup_(view_done) view v = VIEW_INIT(c, given(c, OPT_FULL));
	view_session(&v, head);
	for (size_t i = 0; i < path->count; i++)
		view_entry(&v, path->items[i]);
	if (path->count == 0)
		say(c, "nothing has been said here");
	return v.out.status != 0 ? fail_memory(c) : 0;
}

int cmd_show(cli *c)
{
	uint64_t limit = 0;
	int rc = opt_u64(c, OPT_LIMIT, &limit);
	if (rc != 0)
		return rc;
	_cleanup_(session_closep) sheaf_session *session = NULL;
	_cleanup_(records_freep) sheaf_records *path = NULL;
	place at;
	if ((rc = open_for_reading(c, c->words[0], &session)) != 0 ||
	    (rc = find_place(c, session, &at)) != 0)
		return rc;
	if (sheaf_session_path(&path, session, at.branch, at.leaf, limit, &c->err) != 0)
		return fail(c);
	return c->json ? show_json(path) : show_people(c, session, path);
}
