/* sheaf rm: deletes sessions, and says what stays for the forks that read it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "find.h"
#include "view.h"

static void deleted_freep(sheaf_deleted **deleted)
{
	sheaf_deleted_free(*deleted);
}

/* ---- Asking ------------------------------------------------------------ */

static void describe(cli *c, const sheaf_key *key, buf *out)
{
	_cleanup_(session_closep) sheaf_session *session = NULL;
	_cleanup_(head_freep) sheaf_head_view *head = NULL;
	sheaf_session_options options = SHEAF_SESSION_OPTIONS_INIT;
	options.mode = SHEAF_OPEN_EXISTING;
	options.readonly = 1;
	text_safe(out, key->session, TEXT_LINE);
	if (sheaf_session_open(&session, c->store, key, &options, NULL) != 0 ||
	    sheaf_session_head(&head, session, NULL) != 0)
		return;
	if (head->info->name.len != 0) {
		buf_lit(out, "  ");
		text_safe(out, head->info->name, TEXT_LINE);
	}
	buf_lit(out, "  (");
	view_facts(c, out, head);
	buf_lit(out, ")");
}

static bool confirmed(cli *c, const sheaf_key *keys, size_t count)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	for (size_t i = 0; i < count; i++) {
		buf_lit(&out, "  ");
		describe(c, &keys[i], &out);
		buf_char(&out, '\n');
	}
	buf_format(&out, "Delete %s for good? [y/N] ", count == 1 ? "it" : "them");
	fwrite(out.ptr, 1, out.len, stderr);
	char answer[16];
	if (fgets(answer, sizeof(answer), stdin) == NULL)
		return false;
	return answer[0] == 'y' || answer[0] == 'Y';
}

/* A person is asked. A script that names one session has said it; several need --force. */
static int may_delete(cli *c, const sheaf_key *keys, size_t count)
{
	if (given(c, OPT_FORCE) || count == 0)
		return 0;
	if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		return confirmed(c, keys, count)
		               ? 0
		               : fail_with(c, SHEAF_CANCELLED, NULL, "nothing was deleted");
	if (count > 1)
		return fail_with(c, SHEAF_INVALID, "add --force",
		                 "deleting %zu sessions without asking", count);
	return 0;
}

/* ---- Deleting ---------------------------------------------------------- */

static void say_what_happened(cli *c, const sheaf_key *key, const sheaf_deleted *deleted)
{
	if (!deleted->existed) {
		/* It may have been hidden: then what was kept of it is gone now. */
		say(c, given(c, OPT_PURGE) ? "nothing of %.*s is left" : "%.*s was not there",
		    (int)key->session.len, key->session.ptr);
		return;
	}
	if (!deleted->hidden) {
		say(c, "deleted %.*s", (int)key->session.len, key->session.ptr);
		return;
	}
	say(c,
	    "deleted %.*s; what these forks still read stays hidden until they go (or use --purge):",
	    (int)key->session.len, key->session.ptr);
	for (size_t i = 0; i < deleted->forks->count; i++)
		say(c, "  %.*s", (int)deleted->forks->items[i]->session.len,
		    deleted->forks->items[i]->session.ptr);
}

static void put_json(const sheaf_key *key, const sheaf_deleted *deleted)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	js_open(&b, NULL, '{');
	js_str(&b, "session", key->session);
	js_bool(&b, "existed", deleted->existed != 0);
	js_bool(&b, "hidden", deleted->hidden != 0);
	js_open(&b, "forks", '[');
	for (size_t i = 0; i < deleted->forks->count; i++)
		js_str(&b, NULL, deleted->forks->items[i]->session);
	js_close(&b, ']');
	js_close(&b, '}');
	buf_char(&b, '\n');
	print_out(&b);
}

static int delete_one(cli *c, const sheaf_key *key)
{
	_cleanup_(deleted_freep) sheaf_deleted *deleted = NULL;
	sheaf_delete_options options = SHEAF_DELETE_OPTIONS_INIT;
	options.purge = given(c, OPT_PURGE);
	if (sheaf_store_delete(&deleted, c->store, key, &options, &c->err) != 0)
		return fail(c);
	if (c->json)
		put_json(key, deleted);
	else
		say_what_happened(c, key, deleted);
	return 0;
}

/*
 * With --force what is not there is no mistake. A hidden session is not found
 * either but can be purged.
 */
static int find_all(cli *c, sheaf_key *keys)
{
	bool forgiving = given(c, OPT_FORCE) || given(c, OPT_PURGE), there;
	int rc = 0;
	for (int i = 0; rc == 0 && i < c->word_count; i++)
		rc = forgiving ? try_session(c, c->words[i], &keys[i], &there)
		               : find_session(c, c->words[i], &keys[i]);
	return rc;
}

int cmd_rm(cli *c)
{
	size_t count = (size_t)c->word_count;
	sheaf_key *keys = arena_zalloc(c->memory, count * sizeof(*keys));
	if (keys == NULL)
		return fail_memory(c);
	int rc = find_all(c, keys);
	if (rc == 0)
		rc = may_delete(c, keys, count);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = delete_one(c, &keys[i]);
	return rc;
}
