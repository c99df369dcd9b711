/* Forks: a new session that reads another's records up to one of them. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/transfer.h"

/* A fork under way. */
typedef struct forking {
	sheaf_session *source;
	sheaf_head *head; /* of the source */
	char at[SHEAF_ID_ROOM];
	uint64_t at_seq;
	uint64_t base; /* the last record of the batch that `at` is in */
	uint64_t label_seq;
	key_box key;
	header hd;
	char stamp[CLOCK_TEXT + 1];
	sheaf_str name;
	draft_list labels; /* set later on what is inherited; newest first until they are turned */
	sheaf_error err;
} forking;

static void forking_end(forking *f)
{
	sheaf_head_free(f->head);
	drafts_free(&f->labels);
}

/* ---- Where -------------------------------------------------------------- */

static int take_batch_end(void *ctx, const sheaf_row *row)
{
	forking *f = ctx;
	record r;
	_cleanup_(arena_freep) arena *a = arena_new();
	_cleanup_(json_freep) json_doc *doc = NULL;
	if (a == NULL)
		return err_nomem(&f->err);
	if (row->damaged)
		return err_set(&f->err, SHEAF_DAMAGED, "the entry cannot be read");
	int rc = read_record(&r, row, a, &doc, &f->err);
	if (rc == 0)
		f->base = row->seq + (r.batch_count - 1 - r.batch_index);
	return rc;
}

static int find_place(forking *f, sheaf_str at, sheaf_error *err)
{
	head_branch main;
	if (at.len != 0) {
		int rc = read_resolve(f->source, f->head, at, f->at, &f->at_seq, err);
		if (rc != 0)
			return rc;
	} else {
		if (!head_branch_find(f->head, SHEAF_STR("main"), &main) || main.leaf_seq == 0)
			return err_set(err, SHEAF_NOT_FOUND, "main has no entry to fork at");
		str_copy_cut(f->at, sizeof(f->at), main.leaf);
		f->at_seq = main.leaf_seq;
	}
	return err_pass(err, &f->err,
	                read_row(f->source, f->head, f->at_seq, take_batch_end, f, err));
}

/* ---- What is written ---------------------------------------------------- */

/*
 * Labels of the source from the newest down to the first that is inherited as a
 * record: those in between that speak of inherited entries are written again.
 */
static int take_label(void *ctx, const label_row *row)
{
	forking *f = ctx;
	if (row->seq <= f->base) {
		f->label_seq = row->seq;
		return 1;
	}
	uint64_t seq;
	if (!row->latest)
		return 0;
	int rc = read_find(f->source, f->head, row->target, &seq, &f->err);
	if (rc != 0)
		return rc == SHEAF_NOT_FOUND ? 0 : rc;
	if (seq > f->base)
		return 0;
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	body_label(&body, row->target, row->label);
	rc = buf_status(&body, &f->err);
	if (rc == 0)
		rc = drafts_add(&f->labels, "label", buf_view(&body), NULL, &f->err);
	return rc;
}

static int find_labels(forking *f, sheaf_error *err)
{
	/* The usual case costs nothing: at the head every label is inherited as a record. */
	if (head_last_label(f->head) <= f->base) {
		f->label_seq = head_last_label(f->head);
		return 0;
	}
	int rc = read_label_rows(f->source, f->head, take_label, f, err);
	for (size_t i = 0, k = f->labels.count; i + 1 < k; i++) {
		draft *swap = f->labels.items[i];
		f->labels.items[i] = f->labels.items[--k];
		f->labels.items[k] = swap;
	}
	return err_pass(err, &f->err, rc);
}

/* The header without its links; what the options leave open is as in the source. */
static int make_header(forking *f, const sheaf_session_options *options, sheaf_error *err)
{
	sheaf_session_info info;
	int rc = header_from_options(&f->hd, &f->key, options, f->stamp, err);
	if (rc != 0)
		return rc;
	sheaf_head_info(f->head, &info);
	const sheaf_str none = {NULL, 0};
	if (OPTION(options, kind, none).len == 0)
		f->hd.kind = info.kind;
	if (f->hd.parent_session.ptr == NULL)
		f->hd.parent_session = info.parent_session;
	if (f->hd.cwd.ptr == NULL)
		f->hd.cwd = info.cwd;
	f->name = OPTION(options, name, none);
	if (f->name.ptr == NULL)
		f->name = info.name;
	return 0;
}

/* The chain of the fork: where `at` is stored, and from there what that session inherits. */
static bool make_links(forking *f)
{
	header *hd = &f->hd;
	sheaf_str session = f->source->key.store.session;
	uint64_t base;
	size_t next = 0;
	if (f->at_seq <= head_base(f->head)) {
		while (sheaf_head_link(f->head, next, &session, &base)) {
			sheaf_str further;
			uint64_t below;
			next++;
			if (!sheaf_head_link(f->head, next, &further, &below) || below < f->at_seq)
				break;
		}
	}
	hd->links[0] = (header_link){session, f->base};
	hd->link_count = 1;
	for (; sheaf_head_link(f->head, next, &session, &base); next++) {
		if (hd->link_count == SHEAF_FORK_LINKS_MAX)
			return false;
		hd->links[hd->link_count++] = (header_link){session, base};
	}
	hd->source = f->source->key.store.session;
	hd->at = sheaf_str_of(f->at);
	hd->at_seq = f->at_seq;
	hd->base = f->base;
	hd->label_seq = f->label_seq;
	return true;
}

/* ---- By reference, or by copy ------------------------------------------- */

static int fork_by_reference(forking *f, const sheaf_session_options *options, sheaf_head *after,
                             sheaf_error *err)
{
	_cleanup_(drafts_free) draft_list facts = {0};
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	_cleanup_(buf_free) buf state = BUF_INIT(SHEAF_BODY_BYTES_MAX);
	_cleanup_(state_unrefp) state_set *set = NULL;
	sheaf_str metadata = head_metadata(f->head);
	int rc = state_at(f->source, f->head, f->base, &set, err);
	bool named = f->name.len != 0 || metadata.ptr != NULL;
	if (rc == 0 && (named || set != NULL)) {
		sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
		body_session_info(&body, named ? f->name : (sheaf_str){NULL, 0}, metadata);
		if (set != NULL) {
			state_write(&state, set);
			entry.state_delta = buf_view(&state);
		}
		rc = buf_status(&body, err);
		if (rc == 0)
			rc = buf_status(&state, err);
		if (rc == 0)
			rc = drafts_add(&facts, "session_info", buf_view(&body), &entry, err);
	}
	if (rc == 0)
		rc = drafts_add_ttl(&facts, options, err);
	size_t all = facts.count + f->labels.count;
	if (rc == 0 && mem_grow((void **)&facts.items, &facts.room, all, sizeof(*facts.items)) != 0)
		rc = err_nomem(err);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < f->labels.count; i++)
		facts.items[facts.count++] = f->labels.items[i];
	f->labels.count = 0; /* theirs now */
	return session_create(f->source->store, &f->key.store, &f->hd, facts.items, facts.count,
	                      f->source->key.store.session, OPTION(options, durability, 0), after,
	                      err);
}

/* The chain is too long: what would be inherited is copied, with its bytes and numbers. */
static int fork_by_copy(forking *f, const sheaf_session_options *options, sheaf_head *after,
                        sheaf_error *err)
{
	_cleanup_(transfer_end) transfer t = {.a = NULL};
	header_unlink(&f->hd);
	int rc = transfer_begin(&t, f->source, f->head, &f->hd, transfer_fill_raw, err);
	if (rc != 0)
		return rc;
	t.upto = f->base;
	transfer_goal goal = {
		.leaf = sheaf_str_of(f->at),
		.leaf_seq = f->at_seq,
		.name = f->name,
		.metadata = head_metadata(f->head),
		.ttl_us = OPTION(options, ttl_us, 0),
		.grace_us = SHEAF_GRACE_US_DEFAULT,
	};
	rc = transfer_store(&t, f->source->store, &f->key, &f->labels, &goal,
	                    f->source->key.store.session, OPTION(options, durability, 0), err);
	return rc != 0 ? rc : sheaf_head_copy(after, t.after, err);
}

static int fork_key(forking *f, const sheaf_key *key, sheaf_error *err)
{
	sheaf_key own = f->source->key.plain;
	if (key == NULL)
		own.session = (sheaf_str){NULL, 0};
	else if (!str_eq(key->app, own.app) || !str_eq(key->user, own.user)) {
		int rc = err_set(err, SHEAF_INVALID, "a fork stays with its app and user");
		err_hint(err, "use sheaf_session_copy()");
		return rc;
	} else
		own = *key;
	return session_key_make(&f->key, &own, err);
}

static int fork_run(forking *f, sheaf_session **out, sheaf_str at, const sheaf_key *key,
                    const sheaf_session_options *options, sheaf_error *err)
{
	sheaf_head_state state = {0};
	int rc = fork_key(f, key, err);
	if (rc == 0)
		rc = session_head(f->source, &f->head, &state, err);
	if (rc != 0)
		return rc;
	if (state.readonly) {
		rc = err_set(err, SHEAF_READONLY, "the source cannot be forked by reference");
		err_hint(err, "take it in with sheaf_session_copy(), then fork the copy");
		return rc;
	}
	rc = find_place(f, at, err);
	if (rc == 0)
		rc = find_labels(f, err);
	if (rc == 0)
		rc = make_header(f, options, err);
	if (rc != 0)
		return rc;
	sheaf_head *after = sheaf_head_new();
	if (after == NULL)
		return err_nomem(err);
	rc = make_links(f) ? fork_by_reference(f, options, after, err)
	                   : fork_by_copy(f, options, after, err);
	if (rc != 0) {
		sheaf_head_free(after);
		return rc;
	}
	return session_made(out, f->source->store, &f->key, after, err);
}

int sheaf_session_fork(sheaf_session **out, sheaf_session *source, sheaf_str at,
                       const sheaf_key *key, const sheaf_session_options *options, sheaf_error *err)
{
	if (out == NULL || source == NULL)
		return err_set(err, SHEAF_INVALID, "a fork needs a source");
	if (OPTION(options, readonly, 0))
		return err_set(err, SHEAF_INVALID,
		               "a new session cannot be opened for reading only");
	_cleanup_(mem_freep) forking *f = mem_zalloc(sizeof(*f));
	if (f == NULL)
		return err_nomem(err);
	f->source = source;
	int rc = fork_run(f, out, at, key, options, err);
	forking_end(f);
	return rc;
}
