/*
 * Writing logs through the dispatch without core: a stamp that hangs each record
 * on the one before it, and readers that turn what comes back into text.
 */
#ifndef TEST_LOG_WRITER_H
#define TEST_LOG_WRITER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "entry/head.h"
#include "sheaf/session.h"
#include "store/store.h"

#define WRITER_RECORDS 8

/* One append. Begin with WRITER_INIT, say what is wanted, call writer_run(). */
typedef struct writer {
	const char *owner; /* "app/user", plain; NULL: "a/u" */
	const char *session;
	const char *ids; /* of the records, separated by blanks; "~id" makes a label of it */
	int64_t time_us; /* of each of them and of the header */
	bool create;
	const char *source;   /* create a fork of it, */
	header_link links[4]; /* reading these */
	size_t link_count;
	const char *known; /* an id to look up before */
	int32_t durability;
	int refuse;    /* what stamp answers, if not 0 */
	int64_t shift; /* added to every seq: rows that do not follow */
	bool headless; /* create without a header */
	/* What came of it. */
	sheaf_append_reply reply;
	uint64_t seqs[1];
	unsigned stamped;
	uint64_t saw; /* the revision that stamp was shown; UINT64_MAX: no session */
	sheaf_error err;
	/* Inside. */
	draft drafts[WRITER_RECORDS];
	size_t count;
	buf bytes;
	sheaf_row rows[WRITER_RECORDS + 1];
	json_doc *doc;
	key_box box;
} writer;

#define WRITER_INIT .bytes = BUF_INIT(SHEAF_BATCH_BYTES_MAX)

static void make_key(key_box *box, const char *owner, const char *session)
{
	if (owner == NULL)
		owner = "a/u";
	size_t app = strcspn(owner, "/");
	const sheaf_key key = {{owner, app}, sheaf_str_of(owner + app + 1), sheaf_str_of(session)};
	assert_int_equal(key_box_init(box, &key, NULL), 0);
}

static int writer_header(writer *w, sheaf_head *next, sheaf_error *err)
{
	char stamp[CLOCK_TEXT + 1];
	clock_format(stamp, w->time_us);
	header hd = {.ours = true,
	             .version = HEADER_VERSION,
	             .id = w->box.plain.session,
	             .app = w->box.plain.app,
	             .user = w->box.plain.user,
	             .timestamp = {stamp, CLOCK_TEXT},
	             .time_us = w->time_us,
	             .kind = SHEAF_STR("main"),
	             .link_count = w->link_count};
	if (w->link_count != 0) {
		memcpy(hd.links, w->links, w->link_count * sizeof(*w->links));
		hd.source = w->links[0].session;
		hd.base = hd.at_seq = w->links[0].base;
		hd.at = SHEAF_STR("at");
	}
	header_write(&w->bytes, &hd);
	w->rows[w->count++] = (sheaf_row){.seq = hd.base,
	                                  .kind = SHEAF_KIND_SESSION,
	                                  .id = hd.id,
	                                  .bytes = {NULL, w->bytes.len - 1}};
	return head_begin(next, &hd, err);
}

static int writer_record(writer *w, sheaf_head *next, const draft *d, size_t i, size_t n,
                         sheaf_error *err)
{
	head_branch b;
	assert_true(head_branch_find(next, (sheaf_str){NULL, 0}, &b));
	bool fact = record_kind_is_fact(d->kind);
	uint64_t seq = sheaf_head_revision(next) + 1, parent = fact ? 0 : b.leaf_seq;
	sheaf_str parent_id = parent != 0 ? b.leaf : (sheaf_str){NULL, 0};
	size_t start = w->bytes.len;
	record_write(&w->bytes, d, parent_id, parent <= head_base(next) ? parent : 0, seq, i, n);
	if (w->bytes.status != 0)
		return buf_status(&w->bytes, err);
	w->rows[w->count++] = (sheaf_row){.seq = seq + (uint64_t)w->shift,
	                                  .kind = d->kind,
	                                  .parent = fact ? head_last_label(next) : parent,
	                                  .id = draft_id(d),
	                                  .bytes = {NULL, w->bytes.len - start - 1}};
	return head_apply(next, d->kind, draft_id(d), (sheaf_str){NULL, 0}, buf_view(&d->body),
	                  draft_delta(d), d->time_us, seq, &w->doc, err);
}

static int writer_stamp(void *ctx, const sheaf_head *head, sheaf_head *next, const sheaf_row **rows,
                        size_t *count, sheaf_error *err)
{
	writer *w = ctx;
	size_t n = w->count;
	w->stamped++;
	w->saw = head != NULL ? sheaf_head_revision(head) : UINT64_MAX;
	if (w->refuse != 0)
		return err_set(err, w->refuse, "refused");
	w->count = 0;
	int rc = head != NULL ? sheaf_head_copy(next, head, err) : writer_header(w, next, err);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = writer_record(w, next, &w->drafts[i], i, n, err);
	size_t total = w->count;
	w->count = n;
	if (rc == 0)
		rc = buf_status(&w->bytes, err);
	if (rc != 0)
		return rc;
	const char *at = w->bytes.ptr;
	for (size_t i = 0; i < total; i++) {
		w->rows[i].bytes.ptr = at;
		at += w->rows[i].bytes.len + 1;
	}
	bool skip = w->create && w->headless;
	*rows = w->rows + skip;
	*count = total - skip;
	return 0;
}

/* The record "id" is a message that says so, "~id" a label on nothing in particular. */
static int writer_draft(writer *w, const char *id, size_t len, sheaf_error *err)
{
	bool label = id[0] == '~';
	sheaf_entry_options options = SHEAF_ENTRY_OPTIONS_INIT;
	options.id = (sheaf_str){id, len};
	options.time_us = w->time_us;
	char body[512];
	(void)snprintf(body, sizeof(body),
	               label ? "{\"label\":{\"target_id\":\"t\",\"label\":\"%.*s\"}}"
	                     : "{\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\","
	                       "\"text\":{\"content\":\"%.*s\"}}]}}",
	               (int)len, id);
	int rc = draft_init(&w->drafts[w->count], label ? SHEAF_STR("label") : SHEAF_STR("message"),
	                    sheaf_str_of(body), false, &options, err);
	w->count += rc == 0;
	return rc;
}

static int writer_run(writer *w, sheaf_store *store)
{
	make_key(&w->box, w->owner, w->session);
	memset(&w->err, 0, sizeof(w->err));
	if (w->time_us == 0)
		w->time_us = 1;
	int rc = 0;
	for (const char *at = w->ids != NULL ? w->ids : ""; *at != '\0' && rc == 0;) {
		size_t len = strcspn(at, " ");
		assert_true(w->count < WRITER_RECORDS);
		rc = writer_draft(w, at, len, &w->err);
		at += len;
		at += strspn(at, " ");
	}
	const sheaf_str known = sheaf_str_of(w->known);
	sheaf_append_request request = {.size = sizeof(request),
	                                .stamp = writer_stamp,
	                                .ctx = w,
	                                .ids = &known,
	                                .id_count = w->known != NULL,
	                                .seqs = w->seqs,
	                                .create = w->create,
	                                .durability = w->durability,
	                                .source = sheaf_str_of(w->source)};
	if (rc == 0)
		rc = store_append(store, &w->box.store, &request, &w->reply, &w->err);
	for (size_t i = 0; i < w->count; i++)
		draft_free(&w->drafts[i]);
	buf_free(&w->bytes);
	json_free(w->doc);
	w->doc = NULL;
	return rc;
}

/* The shortest ways to say it. */

UNUSED static int create(sheaf_store *store, const char *session, const char *ids)
{
	writer w = {WRITER_INIT, .session = session, .ids = ids, .create = true};
	return writer_run(&w, store);
}

UNUSED static int append(sheaf_store *store, const char *session, const char *ids)
{
	writer w = {WRITER_INIT, .session = session, .ids = ids};
	return writer_run(&w, store);
}

UNUSED static int fork_at(sheaf_store *store, const char *session, const char *source,
                          uint64_t base, const char *ids)
{
	writer w = {WRITER_INIT,    .session = session, .ids = ids,
	            .create = true, .source = source,   .links = {{{source, strlen(source)}, base}},
	            .link_count = 1};
	return writer_run(&w, store);
}

/* What a scan gives, as "seq:id seq:id"; each line is verified. */
typedef struct seen {
	char text[4096];
	size_t len;
	size_t rows;
	size_t stop_after; /* 0: never */
	int stop_with;
} seen;

static int seen_row(void *ctx, const sheaf_row *row)
{
	seen *s = ctx;
	assert_true(record_crc_ok(row->bytes));
	assert_int_equal(row->bytes.ptr[row->bytes.len], '\n');
	s->len += (size_t)snprintf(s->text + s->len, sizeof(s->text) - s->len, "%s%llu:%.*s",
	                           s->len != 0 ? " " : "", (unsigned long long)row->seq,
	                           (int)row->id.len, row->id.ptr);
	assert_true(s->len < sizeof(s->text));
	s->rows++;
	return s->stop_after != 0 && s->rows == s->stop_after ? s->stop_with : 0;
}

UNUSED static int scan_text(sheaf_store *store, const char *session, seen *s)
{
	key_box box;
	make_key(&box, NULL, session);
	const sheaf_scan scan = {.size = sizeof(scan), .limit = SIZE_MAX, .kinds = SHEAF_KINDS_ALL};
	return store_scan(store, &box.store, &scan, seen_row, s, NULL);
}

#define assert_log(store, session, expected)                                                       \
	do {                                                                                       \
		seen s_ = {.len = 0};                                                              \
		assert_int_equal(scan_text((store), (session), &s_), 0);                           \
		assert_string_equal(s_.text, (expected));                                          \
	} while (0)

/* The store under test ---------------------------------------------------------------- */

static sheaf_store *store;

UNUSED static int open_store(void **state)
{
	(void)state;
	return sheaf_open(&store, "memory:", NULL, NULL);
}

UNUSED static int close_store(void **state)
{
	(void)state;
	sheaf_close(store);
	store = NULL;
	return 0;
}

/* The revision, or a negative code; `*hidden` if wanted. */
UNUSED static int64_t revision(const char *session, int *hidden)
{
	key_box box;
	make_key(&box, NULL, session);
	sheaf_head *head = sheaf_head_new();
	assert_non_null(head);
	int64_t rc = store_head(store, &box.store, 1, head, NULL, NULL);
	if (rc == 0)
		rc = (int64_t)sheaf_head_revision(head);
	if (rc >= 0 && hidden != NULL)
		*hidden = sheaf_head_hidden(head);
	sheaf_head_free(head);
	return rc;
}

UNUSED static int64_t find(const char *session, const char *id)
{
	key_box box;
	uint64_t seq = 0;
	make_key(&box, NULL, session);
	int rc = store_find(store, &box.store, sheaf_str_of(id), &seq, NULL);
	return rc != 0 ? rc : (int64_t)seq;
}

static int seen_info(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	seen *s = ctx;
	assert_true(str_eq(info->app, key->app));
	assert_true(str_eq(info->user, key->user));
	assert_true(str_eq(info->session, key->session));
	s->len += (size_t)snprintf(s->text + s->len, sizeof(s->text) - s->len, "%s%s/%s%s",
	                           s->len != 0 ? " " : "", key->owner.ptr, key->session.ptr,
	                           info->hidden ? "(hidden)" : "");
	assert_true(s->len < sizeof(s->text));
	s->rows++;
	return s->stop_after != 0 && s->rows == s->stop_after ? s->stop_with : 0;
}

#define assert_list(query, expected)                                                               \
	do {                                                                                       \
		seen s_ = {.len = 0};                                                              \
		assert_int_equal(store_list(store, (query), seen_info, &s_, NULL), 0);             \
		assert_string_equal(s_.text, (expected));                                          \
	} while (0)

typedef struct removal {
	int rc;
	sheaf_remove_reply reply;
	seen readers;
} removal;

static removal erase(const char *session, int reap)
{
	removal r = {.rc = 0};
	key_box box;
	make_key(&box, NULL, session);
	sheaf_remove_request request = {
		.size = sizeof(request), .reap = reap, .reader = seen_info, .ctx = &r.readers};
	r.rc = store_remove(store, &box.store, &request, &r.reply, NULL);
	return r;
}

#define assert_removal(call, was_there, stays, forks)                                              \
	do {                                                                                       \
		removal r_ = (call);                                                               \
		assert_int_equal(r_.rc, 0);                                                        \
		assert_int_equal(r_.reply.existed, (was_there));                                   \
		assert_int_equal(r_.reply.hidden, (stays));                                        \
		assert_string_equal(r_.readers.text, (forks));                                     \
	} while (0)

UNUSED static int first_row(void *ctx, const sheaf_row *row)
{
	assert_int_equal(row->kind, SHEAF_KIND_SESSION);
	assert_true(record_crc_ok(row->bytes));
	assert_int_equal(row->bytes.ptr[row->bytes.len], '\n');
	*(uint64_t *)ctx = row->seq;
	return 1;
}

UNUSED static int collect_parents(void *ctx, const sheaf_row *row)
{
	uint64_t *parents = ctx;
	parents[row->seq] = row->parent;
	return 0;
}

/* Rows copied from a session of the store, given one by one. */
typedef struct copy_rows {
	sheaf_row rows[16];
	char *texts[16];
	size_t count;
	size_t at;
	int fail_at_end;
	void (*meanwhile)(void); /* called before the last row */
} copy_rows;

static int copy_row(void *ctx, const sheaf_row *row)
{
	copy_rows *c = ctx;
	assert_true(c->count < COUNT_OF(c->rows));
	char *text = malloc(row->bytes.len + 1);
	assert_non_null(text);
	memcpy(text, row->bytes.ptr, row->bytes.len + 1);
	c->texts[c->count] = text;
	c->rows[c->count] = (sheaf_row){.seq = row->seq, .bytes = {text, row->bytes.len}};
	c->count++;
	return 0;
}

UNUSED static void copy_session(copy_rows *c, const char *session)
{
	key_box box;
	make_key(&box, NULL, session);
	memset(c, 0, sizeof(*c));
	assert_int_equal(store_header(store, &box.store, copy_row, c, NULL), 0);
	sheaf_scan scan = {.size = sizeof(scan), .limit = 15, .kinds = SHEAF_KINDS_ALL};
	assert_int_equal(store_scan(store, &box.store, &scan, copy_row, c, NULL), 0);
}

UNUSED static void copy_free(copy_rows *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->texts[i]);
}

UNUSED static int copy_next(void *ctx, sheaf_row *row, sheaf_error *err)
{
	copy_rows *c = ctx;
	if (c->at + 1 == c->count && c->meanwhile != NULL)
		c->meanwhile();
	if (c->at == c->count)
		return c->fail_at_end != 0 ? err_set(err, c->fail_at_end, "no more") : 0;
	*row = c->rows[c->at++];
	return 1;
}

#endif
