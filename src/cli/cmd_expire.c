/* sheaf retain, pin, undelete, expire: how long sessions are kept, and removing what is over. */
#include <string.h>

#include "find.h"
#include "opt.h"
#include "print.h"
#include "text.h"

static void expired_freep(sheaf_expired **expired)
{
	sheaf_expired_free(*expired);
}

/* ---- How long one is kept ---------------------------------------------- */

static void js_kept(buf *b, const sheaf_session_info *info)
{
	js_open(b, NULL, '{');
	js_str(b, "session", info->session);
	js_retention(b, info);
	js_close(b, '}');
	buf_char(b, '\n');
}

/* Says what holds for a session now. */
static int show_kept(cli *c, sheaf_session *session)
{
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	_cleanup_(head_freep) sheaf_head_view *head = NULL;
	if (sheaf_session_head(&head, session, &c->err) != 0)
		return fail(c);
	const sheaf_session_info *info = head->info;
	if (c->json) {
		js_kept(&out, info);
	} else {
		text_safe(&out, info->session, TEXT_ID);
		if (info->ttl_us == 0) {
			buf_lit(&out, " does not expire");
		} else {
			buf_lit(&out, " expires ");
			text_span(&out, info->ttl_us);
			buf_lit(&out, " after its last record, in ");
			text_span(&out, info->stored_us + info->ttl_us - c->screen.now_us);
			buf_lit(&out, "; it can be undeleted for ");
			text_span(&out, info->grace_us);
		}
		if (info->pinned)
			buf_lit(&out, "; pinned: it stays");
		buf_char(&out, '\n');
	}
	print_out(&out);
	return out.status != 0 ? fail_memory(c) : 0;
}

static int change(cli *c, sheaf_session *session, const sheaf_retention *retention)
{
	if (sheaf_session_retain(session, retention, NULL, NULL, &c->err) != 0)
		return fail(c);
	return 0;
}

int cmd_retain(cli *c)
{
	sheaf_retention retention = SHEAF_RETENTION_INIT;
	int rc = opt_span(c, OPT_TTL, "never", &retention.ttl_us);
	if (rc == 0)
		rc = opt_span(c, OPT_GRACE, "none", &retention.grace_us);
	if (rc != 0)
		return rc;
	bool changes = given(c, OPT_TTL) || given(c, OPT_GRACE);
	_cleanup_(session_closep) sheaf_session *session = NULL;
	rc = changes ? open_for_writing(c, c->words[0], &session)
	             : open_for_reading(c, c->words[0], &session);
	if (rc == 0 && changes)
		rc = change(c, session, &retention);
	if (rc != 0 || c->quiet)
		return rc;
	return show_kept(c, session);
}

int cmd_pin(cli *c)
{
	sheaf_retention retention = SHEAF_RETENTION_INIT;
	_cleanup_(session_closep) sheaf_session *session = NULL;
	retention.pin = given(c, OPT_OFF) ? -1 : 1;
	int rc = open_for_writing(c, c->words[0], &session);
	if (rc == 0)
		rc = change(c, session, &retention);
	if (rc != 0 || c->quiet)
		return rc;
	if (c->json)
		return show_kept(c, session);
	say(c, given(c, OPT_OFF) ? "%s is not pinned any more" : "%s is pinned: it does not expire",
	    sheaf_session_id(session));
	return 0;
}

int cmd_undelete(cli *c)
{
	sheaf_key key;
	int32_t existed = 0;
	int rc = find_session(c, c->words[0], &key);
	if (rc != 0)
		return rc;
	if (sheaf_store_undelete(c->store, &key, NULL, &existed, &c->err) != 0)
		return fail(c);
	if (c->json) {
		_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
		js_open(&out, NULL, '{');
		js_str(&out, "session", key.session);
		js_bool(&out, "existed", existed != 0);
		js_close(&out, '}');
		buf_char(&out, '\n');
		print_out(&out);
	} else {
		say(c, existed ? "%.*s has not expired" : "%.*s is back", (int)key.session.len,
		    key.session.ptr);
	}
	return 0;
}

/* ---- Sweeping ---------------------------------------------------------- */

static void js_swept(buf *b, const char *name, const sheaf_list *list)
{
	js_open(b, name, '[');
	for (size_t i = 0; i < list->count; i++) {
		const sheaf_session_info *info = list->items[i];
		js_open(b, NULL, '{');
		js_str(b, "session", info->session);
		js_str(b, "app", info->app);
		js_str(b, "user", info->user);
		js_str(b, "name", info->name);
		js_retention(b, info);
		js_close(b, '}');
	}
	js_close(b, ']');
}

static void put_json(cli *c, const sheaf_expired *expired, buf *out)
{
	js_open(out, NULL, '{');
	js_bool(out, "dry_run", given(c, OPT_DRY_RUN));
	js_swept(out, "removed", expired->removed);
	js_swept(out, "grace", expired->grace);
	js_bool(out, "more", expired->more != 0);
	js_close(out, '}');
	buf_char(out, '\n');
}

static void put_swept(cli *c, buf *out, const sheaf_list *list, bool grace)
{
	for (size_t i = 0; i < list->count; i++) {
		const sheaf_session_info *info = list->items[i];
		text_safe(out, info->session, TEXT_ID);
		if (!c->quiet && info->name.len != 0) {
			buf_lit(out, "  ");
			text_safe(out, info->name, TEXT_LINE);
		}
		if (grace) {
			buf_lit(out, "  (can be undeleted for ");
			text_span(out, info->stored_us + info->ttl_us + info->grace_us -
			                       c->screen.now_us);
			buf_char(out, ')');
		}
		buf_char(out, '\n');
	}
}

static void put_lines(cli *c, const sheaf_expired *expired, buf *out)
{
	bool dry_run = given(c, OPT_DRY_RUN);
	put_swept(c, out, expired->removed, false);
	if (dry_run && !c->quiet)
		put_swept(c, out, expired->grace, true);
	size_t count = expired->removed->count;
	say(c, "%s %zu session%s%s; %zu can still be undeleted",
	    dry_run ? "would remove" : "removed", count, count == 1 ? "" : "s",
	    expired->more ? " (there are more)" : "", expired->grace->count);
}

int cmd_expire(cli *c)
{
	sheaf_expire_options options = SHEAF_EXPIRE_OPTIONS_INIT;
	uint64_t limit = 0;
	int rc = opt_u64(c, OPT_LIMIT, &limit);
	if (rc == 0)
		rc = open_store(c);
	if (rc != 0)
		return rc;
	options.app = c->app;
	options.user = c->user;
	options.all_apps = given(c, OPT_ALL) && !given(c, OPT_APP);
	options.all_users = given(c, OPT_ALL);
	options.dry_run = given(c, OPT_DRY_RUN);
	options.limit = limit;
	_cleanup_(expired_freep) sheaf_expired *expired = NULL;
	if (sheaf_store_expire(&expired, c->store, &options, &c->err) != 0)
		return fail(c);
	_cleanup_(buf_free) buf out = BUF_INIT(SIZE_MAX);
	if (c->json)
		put_json(c, expired, &out);
	else
		put_lines(c, expired, &out);
	print_out(&out);
	return out.status != 0 ? fail_memory(c) : 0;
}
