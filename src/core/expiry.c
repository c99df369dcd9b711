/* Expiry: how long a session is kept, bringing it back, and sweeping what is over. */
#include "sheaf/expiry.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/list.h"
#include "core/remove.h"
#include "core/write.h"
#include "entry/retention.h"

/* Stores are asked for what will have expired by then, so that a clock behind theirs misses
 * nothing; what counts is what they say of each session. */
#define CLOCK_SLACK_US (INT64_C(86400) * 1000000)

int expiry_check(const sheaf_head *head, const sheaf_head_state *state, int gone, sheaf_error *err)
{
	switch (sheaf_head_expired(head, state->stored_us, state->now_us)) {
	case SHEAF_EXPIRY_NONE:
		return 0;
	case SHEAF_EXPIRY_OVER:
		return err_set(err, gone,
		               gone == SHEAF_GONE ? "the session was deleted"
		                                  : "there is no such session");
	default:
		(void)err_set(err, SHEAF_EXPIRED, "the session has expired");
		err_hint(err, "sheaf_store_undelete() brings it back");
		return SHEAF_EXPIRED;
	}
}

/* ---- Setting ------------------------------------------------------------ */

/* A time as callers give it: 0 is not given, -1 is none. */
static int take_time(int64_t given, const char *what, bool *has, int64_t *us, sheaf_error *err)
{
	*has = given != 0;
	*us = given > 0 ? given : 0;
	if (given < -1)
		return err_set(err, SHEAF_INVALID, "a %s cannot be negative", what);
	if (given > SHEAF_TTL_US_MAX)
		return err_set(err, SHEAF_LIMIT, "a %s is at most 100 years", what);
	return 0;
}

/* A draft of what is to change. */
static int add_retention(draft_list *list, const sheaf_retention *given, int64_t time_us,
                         sheaf_error *err)
{
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	sheaf_entry_options when = SHEAF_ENTRY_OPTIONS_INIT;
	retention_fact r = {.has_ttl = false};
	int32_t pin = OPTION(given, pin, 0);
	int rc = take_time(OPTION(given, ttl_us, 0), "ttl", &r.has_ttl, &r.ttl_us, err);
	if (rc == 0)
		rc = take_time(OPTION(given, grace_us, 0), "grace", &r.has_grace, &r.grace_us, err);
	if (rc == 0 && (pin < -1 || pin > 1))
		rc = err_set(err, SHEAF_INVALID, "pin is 1, -1 or 0");
	if (rc != 0)
		return rc;
	r.has_pin = pin != 0;
	r.pin = pin > 0;
	retention_write(&body, &r);
	when.time_us = time_us;
	rc = buf_status(&body, err);
	return rc != 0 ? rc : drafts_add(list, "retention", buf_view(&body), &when, err);
}

int drafts_add_ttl(draft_list *list, const sheaf_session_options *options, sheaf_error *err)
{
	sheaf_retention retention = SHEAF_RETENTION_INIT;
	retention.ttl_us = OPTION(options, ttl_us, 0);
	return retention.ttl_us == 0
	               ? 0
	               : add_retention(list, &retention, OPTION(options, created_us, 0), err);
}

int sheaf_session_retain(sheaf_session *session, const sheaf_retention *retention,
                         const sheaf_append_options *how, sheaf_appended *out, sheaf_error *err)
{
	_cleanup_(drafts_free) draft_list list = {0};
	if (session == NULL)
		return err_set(err, SHEAF_INVALID, "no session was given");
	if (OPTION(retention, ttl_us, 0) == 0 && OPTION(retention, grace_us, 0) == 0 &&
	    OPTION(retention, pin, 0) == 0)
		return err_set(err, SHEAF_INVALID, "there is nothing to change");
	int rc = add_retention(&list, retention, 0, err);
	return rc != 0 ? rc : session_append(session, list.items, list.count, how, false, out, err);
}

/* ---- Bringing back ------------------------------------------------------ */

/* The append that a session which has expired accepts. Takes the head over. */
static int revive(sheaf_store *store, const key_box *key, sheaf_head *head, const draft_list *list,
                  sheaf_error *err)
{
	sheaf_session *s = NULL;
	int rc = session_make(&s, store, key, false, head, NULL, err);
	if (rc != 0)
		return rc;
	append a = {.drafts = list->items, .count = list->count, .revive = true};
	rc = append_run(s, &a, NULL, err);
	sheaf_session_close(s);
	return rc == SHEAF_GONE ? err_rename(err, SHEAF_NOT_FOUND, "there is no such session") : rc;
}

int sheaf_store_undelete(sheaf_store *store, const sheaf_key *key, const sheaf_retention *retention,
                         int32_t *existed, sheaf_error *err)
{
	if (store == NULL || key == NULL || key->session.len == 0)
		return err_set(err, SHEAF_INVALID, "a session is undeleted by its key");
	_cleanup_(drafts_free) draft_list list = {0};
	_cleanup_(head_freep) sheaf_head *head = sheaf_head_new();
	sheaf_head_state state = {0};
	sheaf_error local = {0};
	key_box box;
	if (head == NULL)
		return err_nomem(err);
	int rc = key_box_init(&box, key, err);
	if (rc == 0)
		rc = add_retention(&list, retention, 0, err);
	if (rc == 0)
		rc = store_head(store, &box.store, 0, head, &state, err);
	if (rc == 0 && sheaf_head_hidden(head))
		rc = err_set(err, SHEAF_NOT_FOUND, "there is no such session");
	if (rc != 0)
		return rc;
	rc = expiry_check(head, &state, SHEAF_NOT_FOUND, &local);
	bool alive = rc == 0;
	if (rc == SHEAF_EXPIRED) {
		sheaf_head *kept = head;
		head = NULL;
		rc = revive(store, &box, kept, &list, &local);
	}
	if (rc == 0 && existed != NULL)
		*existed = alive;
	return err_pass(err, &local, rc);
}

/* ---- Sweeping ----------------------------------------------------------- */

typedef struct expired_box {
	sheaf_expired expired;
	sheaf_list *removed;
	sheaf_list *grace;
} expired_box;

typedef struct sweep {
	listing found; /* all whose time is over */
	listing removed;
	listing grace;
	bool more;
} sweep;

static void sweep_end(sweep *w)
{
	listing_end(&w->found);
	listing_end(&w->removed);
	listing_end(&w->grace);
}

static int sweep_take(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	sweep *w = ctx;
	if (info->hidden || info->expired == SHEAF_EXPIRY_NONE)
		return 0;
	return listing_add(info->expired == SHEAF_EXPIRY_OVER ? &w->found : &w->grace, key, info);
}

static int sweep_find(sweep *w, sheaf_store *store, const sheaf_expire_options *options,
                      sheaf_error *err)
{
	const sheaf_str none = {NULL, 0};
	char app[SHEAF_KEY_PART_ROOM], user[SHEAF_KEY_PART_ROOM];
	bool all_apps = OPTION(options, all_apps, 0) != 0;
	int rc = sheaf_key_encode(app, OPTION(options, app, none), err);
	if (rc == 0)
		rc = sheaf_key_encode(user, OPTION(options, user, none), err);
	if (rc == 0)
		rc = listing_begin(&w->found, err);
	if (rc == 0)
		rc = listing_begin(&w->removed, err);
	if (rc == 0)
		rc = listing_begin(&w->grace, err);
	if (rc != 0)
		return rc;
	sheaf_list_query query = {
		.size = sizeof(query),
		.expired_by_us = clock_now_us() + CLOCK_SLACK_US,
	};
	if (!all_apps)
		query.app = sheaf_str_of(app);
	if (!all_apps && !OPTION(options, all_users, 0))
		query.user = sheaf_str_of(user);
	return store_list(store, &query, sweep_take, w, err);
}

/* Removes one of those found, if it is still over. */
static int sweep_remove(sweep *w, sheaf_store *store, const sheaf_session_info *info, bool dry_run,
                        sheaf_error *err)
{
	key_box box;
	sheaf_error local = {0};
	sheaf_key key = {info->app, info->user, info->session};
	removal how = REMOVAL_DONE;
	int rc = key_box_init(&box, &key, err);
	if (rc == 0 && !dry_run)
		rc = remove_expired(store, &box, &how, &local);
	if (rc == SHEAF_BUSY) {
		w->more = true; /* somebody has it; the others need not wait for that */
		return 0;
	}
	if (rc == 0 && how == REMOVAL_DONE && listing_add(&w->removed, &box.store, info) != 0)
		rc = err_nomem(&local);
	return err_pass(err, &local, rc);
}

static int sweep_run(sweep *w, sheaf_store *store, const sheaf_expire_options *options,
                     sheaf_error *err)
{
	bool dry_run = OPTION(options, dry_run, 0) != 0;
	size_t limit = OPTION(options, limit, 0);
	int64_t wait = OPTION(options, deadline_us, 0), begun = clock_monotonic_us();
	for (size_t i = 0; i < w->found.count; i++) {
		if ((limit != 0 && w->removed.count == limit) ||
		    (wait > 0 && clock_monotonic_us() - begun >= wait)) {
			w->more = true;
			return 0;
		}
		int rc = sweep_remove(w, store, w->found.items[i], dry_run, err);
		if (rc != 0)
			return !dry_run && w->removed.count != 0 ? err_unknown(err, rc) : rc;
	}
	return 0;
}

static int sweep_answer(sheaf_expired **out, sweep *w, sheaf_error *err)
{
	expired_box *box = mem_zalloc(sizeof(*box));
	if (box == NULL)
		return err_nomem(err);
	int rc = listing_finish(&box->removed, &w->removed, NULL, err);
	if (rc == 0)
		rc = listing_finish(&box->grace, &w->grace, NULL, err);
	if (rc != 0) {
		sheaf_expired_free(&box->expired);
		return rc;
	}
	box->expired = (sheaf_expired){box->removed, box->grace, w->more};
	*out = &box->expired;
	return 0;
}

int sheaf_store_expire(sheaf_expired **out, sheaf_store *store, const sheaf_expire_options *options,
                       sheaf_error *err)
{
	if (store == NULL)
		return err_set(err, SHEAF_INVALID, "no store was given");
	if (OPTION(options, deadline_us, 0) < 0)
		return err_set(err, SHEAF_INVALID, "a deadline cannot be negative");
	_cleanup_(sweep_end) sweep w = {.more = false};
	bool removes = OPTION(options, dry_run, 0) == 0;
	if (removes && store_readonly(store))
		return err_set(err, SHEAF_READONLY, "the store is open for reading only");
	int rc = sweep_find(&w, store, options, err);
	if (rc == 0)
		rc = sweep_run(&w, store, options, err);
	if (rc != 0 || out == NULL)
		return rc;
	bool removed = removes && w.removed.count != 0;
	rc = sweep_answer(out, &w, err);
	return rc != 0 && removed ? err_unknown(err, rc) : rc;
}

void sheaf_expired_free(sheaf_expired *expired)
{
	if (expired == NULL)
		return;
	expired_box *box = (expired_box *)(void *)expired;
	sheaf_list_free(box->removed);
	sheaf_list_free(box->grace);
	mem_free(box);
}
