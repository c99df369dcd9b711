/* Creating a session: its header and the facts of its first batch, in one append. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/remove.h"
#include "core/write.h"
#include "entry/check.h"

#define CWD_BYTES_MAX ((size_t)64 << 10)

/* How often a key may be cleared and taken by others before we believe that it is taken. */
#define CREATE_TRIES 8

/* A header's text; one that holds controls would be left out of the line. */
static int header_text(sheaf_str text, size_t max, const char *what, sheaf_error *err)
{
	int rc = text_check(text, max, what, err);
	if (rc == 0 && !check_plain(text))
		rc = err_set(err, SHEAF_INVALID, "the %s holds control characters", what);
	return rc;
}

int header_from_options(header *hd, const key_box *key, const sheaf_session_options *options,
                        char stamp[CLOCK_TEXT + 1], sheaf_error *err)
{
	const sheaf_str none = {NULL, 0};
	memset(hd, 0, sizeof(*hd));
	hd->ours = true;
	hd->version = HEADER_VERSION;
	hd->id = key->plain.session;
	hd->app = key->plain.app;
	hd->user = key->plain.user;
	hd->kind = OPTION(options, kind, none);
	hd->parent_session = OPTION(options, parent_session, none);
	hd->cwd = OPTION(options, cwd, none);
	hd->time_us = OPTION(options, created_us, 0);
	if (hd->time_us == 0)
		hd->time_us = clock_now_us();
	if (hd->kind.len == 0)
		hd->kind = SHEAF_STR("main");
	clock_format(stamp, hd->time_us);
	hd->timestamp = str_make(stamp, CLOCK_TEXT);

	int rc = text_check(OPTION(options, name, none), SHEAF_NAME_BYTES_MAX, "name", err);
	if (rc == 0)
		rc = header_text(hd->kind, SHEAF_NAME_BYTES_MAX, "kind", err);
	if (rc == 0)
		rc = header_text(hd->parent_session, SHEAF_NAME_BYTES_MAX, "parent session", err);
	if (rc == 0)
		rc = header_text(hd->cwd, CWD_BYTES_MAX, "working directory", err);
	int64_t ttl_us = OPTION(options, ttl_us, 0);
	if (rc == 0 && ttl_us < 0)
		rc = err_set(err, SHEAF_INVALID, "a ttl cannot be negative");
	if (rc == 0 && ttl_us > SHEAF_TTL_US_MAX)
		rc = err_set(err, SHEAF_LIMIT, "a ttl is at most 100 years");
	sheaf_str extra = OPTION(options, extra, none);
	if (rc == 0 && extra.ptr != NULL)
		rc = header_extra(&hd->extra, extra, err);
	return rc;
}

typedef struct creation {
	const header *hd;
	draft *const *facts;
	size_t fact_count;
	rows rows;
	sheaf_head *after;
	json_doc *doc;
} creation;

static int creation_stamp(void *ctx, const sheaf_head *head, sheaf_head *next,
                          const sheaf_row **out, size_t *count, sheaf_error *err)
{
	creation *c = ctx;
	if (head != NULL)
		return err_set(err, SHEAF_EXISTS, "there is such a session already");
	rows_reset(&c->rows);
	sheaf_row *row = rows_add(&c->rows);
	if (row == NULL)
		return err_nomem(err);
	header_write(&c->rows.bytes, c->hd);
	int rc = buf_status(&c->rows.bytes, err);
	if (rc != 0)
		return rc;
	row->seq = c->hd->link_count != 0 ? c->hd->base : 0;
	row->kind = SHEAF_KIND_SESSION;
	row->id = c->hd->id;
	row->bytes.len = c->rows.bytes.len - 1;
	rc = head_begin(next, c->hd, err);
	if (rc == 0)
		rc = rows_stamp(&c->rows, next, c->facts, c->fact_count, &c->doc, err);
	if (rc == 0)
		rc = sheaf_head_copy(c->after, next, err);
	if (rc != 0)
		return rc;
	rows_close(&c->rows);
	*out = c->rows.items;
	*count = c->rows.count;
	return 0;
}

int create_append(sheaf_store *store, const sheaf_store_key *key, sheaf_append_request *request,
                  sheaf_append_reply *reply, sheaf_error *err)
{
	sheaf_error local = {0};
	removal how = REMOVAL_ABSENT;
	int rc = SHEAF_EXISTS;
	for (int i = 0; i < CREATE_TRIES && rc == SHEAF_EXISTS && how != REMOVAL_LEFT; i++) {
		rc = store_append(store, key, request, reply, &local);
		if (rc != SHEAF_EXISTS)
			break;
		key_box box;
		sheaf_error why = {0};
		int cleared = key_box_decode(&box, key->app, key->user, key->session, &why);
		if (cleared == 0)
			cleared = remove_expired(store, &box, &how, &why);
		if (cleared != 0)
			return err_pass(err, &why, cleared);
	}
	return err_pass(err, &local, rc);
}

int session_create(sheaf_store *store, const sheaf_store_key *key, const header *hd,
                   draft *const *facts, size_t fact_count, sheaf_str source, int32_t durability,
                   sheaf_head *after, sheaf_error *err)
{
	creation c = {
		.hd = hd,
		.facts = facts,
		.fact_count = fact_count,
		.rows = {.bytes = BUF_INIT(2 * SHEAF_BATCH_BYTES_MAX)},
		.after = after,
	};
	sheaf_append_request request = {
		.size = sizeof(request),
		.stamp = creation_stamp,
		.ctx = &c,
		.create = 1,
		.durability = durability,
		.source = source,
	};
	sheaf_append_reply reply = {0};
	_cleanup_(state_load_end) state_load load = {0};
	int rc = state_load_drafts(&load, facts, fact_count, err);
	if (rc == 0 && load.app.count != 0 && !store_states(store))
		rc = err_set(err, SHEAF_UNSUPPORTED, "this store keeps no state of apps");
	request.user_state = load.user.items;
	request.user_state_count = load.user.count;
	if (rc == 0)
		rc = create_append(store, key, &request, &reply, err);
	/* If this fails the first append on the session tries it again. */
	if (rc == 0 && load.app.count != 0)
		(void)store_state_apply(store, key->app, load.app.items, load.app.count, NULL);
	rows_free(&c.rows);
	json_free(c.doc);
	return rc;
}
