/* Pulling one session: which way it goes, and what becomes of it. */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/sync.h"

/* How often it begins anew if somebody else writes to the session meanwhile. */
#define TRIES 8

/* So many records of the source that brought nothing are noted, or they would be read each time. */
#define NOTED_FROM 256u

static void session_sync_end(session_sync *s)
{
	transfer_end(&s->t);
	sheaf_session_close(s->from);
	sheaf_session_close(s->to);
	sheaf_head_free(s->from_head);
	sheaf_head_free(s->to_head);
	sheaf_head_free(s->base);
	json_free(s->base_doc);
	mem_free(s->rows);
	mem_free(s->keys);
	mem_free(s->branches);
	map_free(&s->key_at);
	map_free(&s->sent);
	arena_free(s->a);
}

/* ---- Loading ---------------------------------------------------------------------- */

/* One side: its head, its header, and a handle to read by. SHEAF_NOT_FOUND. */
static int load_side(session_sync *s, sheaf_store *store, bool write, sheaf_head **head,
                     sheaf_head_state *state, header *hd, sheaf_str *line, sheaf_session **out,
                     sheaf_error *err)
{
	*head = sheaf_head_new();
	sheaf_head *seen = sheaf_head_new();
	int rc = *head != NULL && seen != NULL
	                 ? store_head(store, &s->key.store, write, *head, state, err)
	                 : err_nomem(err);
	if (rc == 0)
		rc = sheaf_head_copy(seen, *head, err);
	if (rc != 0) {
		sheaf_head_free(seen);
		return rc;
	}
	rc = session_make(out, store, &s->key, true, seen, state, err);
	return rc == 0 ? header_load(hd, line, store, &s->key, s->a, err) : rc;
}

/* It is not here, or not any more. */
static void drop_here(session_sync *s)
{
	sheaf_session_close(s->to);
	sheaf_head_free(s->to_head);
	s->to = NULL;
	s->to_head = NULL;
}

/* `left` is a sentence if there is nothing to be done. */
static int load_here(session_sync *s, const char **left, sheaf_error *err)
{
	sheaf_head_state state = {0};
	sheaf_error local = {0};
	int rc = load_side(s, s->c->here, !s->c->dry_run, &s->to_head, &state, &s->to_hd,
	                   &s->to_line, &s->to, &local);
	if (rc == SHEAF_NOT_FOUND) {
		drop_here(s);
		return 0;
	}
	if (rc != 0)
		return err_pass(err, &local, rc);
	int expired = sheaf_head_expired(s->to_head, state.stored_us, state.now_us);
	if (sheaf_head_hidden(s->to_head)) {
		*left = "it was deleted here, and forks still read it";
	} else if (expired == SHEAF_EXPIRY_GRACE) {
		*left = "it has expired here";
	} else if (expired == SHEAF_EXPIRY_OVER) {
		drop_here(s);
	} else if (!s->to_hd.ours) {
		*left = "a file of another program is here, and never written to";
	}
	return 0;
}

static int load(session_sync *s, const char **left, sheaf_error *err)
{
	sheaf_head_state state = {0};
	s->a = arena_new();
	if (s->a == NULL)
		return err_nomem(err);
	int rc = load_side(s, s->c->there, false, &s->from_head, &state, &s->from_hd, &s->from_line,
	                   &s->from, err);
	if (rc == 0 && sheaf_head_hidden(s->from_head))
		*left = "it was deleted there";
	else if (rc == 0 && sheaf_head_expired(s->from_head, state.stored_us, state.now_us) != 0)
		*left = "it has expired there";
	if (rc != 0 || *left != NULL)
		return rc;
	if (s->from_hd.ours && s->from_hd.version > HEADER_VERSION)
		return err_set(err, SHEAF_FORMAT, "the session was written by a newer version");
	return load_here(s, left, err);
}

/* ---- What is not here ------------------------------------------------------------------ */

/* Whether what a fork reads is the same here, so that it can stay one. */
static int can_stay_fork(session_sync *s, bool *can, sheaf_error *err)
{
	sheaf_str source;
	uint64_t base;
	int ok = 1;
	*can = false;
	if (!sheaf_head_link(s->from_head, 0, &source, &base))
		return 0;
	_cleanup_(mem_freep) session_sync *o = mem_zalloc(sizeof(*o));
	if (o == NULL)
		return err_nomem(err);
	const char *left = NULL;
	sheaf_error local = {0};
	o->c = s->c;
	int rc = key_box_decode(&o->key, s->key.store.app, s->key.store.user, source, &local);
	if (rc == 0)
		rc = load(o, &left, &local);
	/* Deleted there, it can be read all the same; here it must be there to be forked from. */
	if (rc == 0 && left == NULL && o->to != NULL && sheaf_head_revision(o->to_head) >= base &&
	    sheaf_head_revision(o->from_head) >= base)
		rc = sync_same_upto(o, base, can, &local);
	if (rc == 0 && *can)
		s->fork_of = arena_dup(s->a, source, &ok);
	session_sync_end(o);
	if (rc == SHEAF_NOMEM || !ok)
		return err_nomem(err);
	return 0;
}

/* A copy of its own: of a fork, with what it reads; of another program's file. */
static int copy_whole(session_sync *s, sheaf_error *err)
{
	sheaf_session *made = NULL;
	const char *left = NULL;
	sheaf_session_info info;
	sheaf_head_info(s->from_head, &info);
	s->facts = info.records > info.messages ? info.records - info.messages : 0;
	s->entries = info.messages;
	s->c->totals.records_read += info.revision;
	if (s->c->dry_run)
		return 0;
	int rc = sheaf_session_copy(&made, s->from, s->c->here, &s->key.plain, err);
	sheaf_session_close(made);
	if (rc == SHEAF_EXISTS)
		return err_set(err, SHEAF_STALE, "it was written to meanwhile");
	if (rc == 0 && s->from_hd.ours)
		rc = load_here(s, &left, err);
	if (rc == 0 && s->from_hd.ours && left == NULL && s->to != NULL)
		rc = sync_note_cursor(s, true, err);
	return rc;
}

static int pull_new(session_sync *s, sheaf_error *err)
{
	bool fork = false;
	if (s->from_hd.ours && head_base(s->from_head) == 0)
		return sync_extend(s, err);
	int rc = s->from_hd.ours ? can_stay_fork(s, &fork, err) : 0;
	if (rc != 0)
		return rc;
	return fork ? sync_extend(s, err) : copy_whole(s, err);
}

/* ---- What is on both sides -------------------------------------------------------------- */

static bool same_session(const session_sync *s)
{
	return str_eq(s->from_hd.id, s->to_hd.id) && s->from_hd.time_us == s->to_hd.time_us;
}

static int pull_merge(session_sync *s, int32_t *what, sheaf_error *err)
{
	int rc = sync_part(s, err);
	if (rc == 0)
		rc = sync_plan(s, err);
	if (rc != 0)
		return rc;
	if (!sync_merge_is_empty(s)) {
		*what = SHEAF_SYNC_MERGED;
		return sync_merge(s, err);
	}
	return s->looked >= NOTED_FROM && !s->c->dry_run ? sync_note_cursor(s, false, err) : 0;
}

static int pull_both(session_sync *s, int32_t *what, sheaf_error *err)
{
	uint64_t there = sheaf_head_revision(s->from_head), here = sheaf_head_revision(s->to_head);
	bool same;
	if (!same_session(s))
		return err_set(err, SHEAF_CONFLICT, "another session is here under this key");
	int rc = sync_same_upto(s, there < here ? there : here, &same, err);
	if (rc != 0 || (same && there <= here))
		return rc;
	if (!same)
		return pull_merge(s, what, err);
	*what = SHEAF_SYNC_EXTENDED;
	return sync_extend(s, err);
}

/* `what` stays 0 if there is nothing new. */
static int pull(session_sync *s, int32_t *what, const char **left, sheaf_error *err)
{
	int rc = load(s, left, err);
	if (rc != 0)
		return rc;
	if (*left == NULL && !s->from_hd.ours && s->to != NULL)
		*left = "a file of another program is taken in once";
	if (*left != NULL) {
		*what = SHEAF_SYNC_LEFT;
		return 0;
	}
	if (s->to != NULL)
		return pull_both(s, what, err);
	*what = SHEAF_SYNC_COPIED;
	return pull_new(s, err);
}

/* ---- What becomes of it --------------------------------------------------------------------- */

static void count(store_sync *c, const session_sync *s, int32_t what)
{
	sheaf_sync_totals *t = &c->totals;
	t->copied += what == SHEAF_SYNC_COPIED;
	t->extended += what == SHEAF_SYNC_EXTENDED;
	t->merged += what == SHEAF_SYNC_MERGED;
	t->conflicts += what == SHEAF_SYNC_CONFLICT;
	t->failed += what == SHEAF_SYNC_FAILED;
	t->left += what == SHEAF_SYNC_LEFT;
	t->same += what == 0;
	if (what != SHEAF_SYNC_COPIED && what != SHEAF_SYNC_EXTENDED && what != SHEAF_SYNC_MERGED)
		return;
	t->entries += s->entries;
	t->facts += s->facts;
	t->branches += s->moved;
	t->apart += s->apart;
}

static void note(store_sync *c, const session_sync *s, int32_t what, int code, sheaf_str detail)
{
	void (*fn)(void *, const sheaf_sync_note *) = OPTION(c->options, note, NULL);
	if (fn == NULL || what == 0)
		return;
	sheaf_session_info info = {.name = {"", 0}};
	if (s->from_head != NULL)
		sheaf_head_info(s->from_head, &info);
	sheaf_sync_note n = {
		.what = what,
		.code = code,
		.app = s->key.plain.app,
		.user = s->key.plain.user,
		.session = s->key.plain.session,
		.name = info.name,
		.detail = detail,
	};
	if (what == SHEAF_SYNC_COPIED || what == SHEAF_SYNC_EXTENDED || what == SHEAF_SYNC_MERGED) {
		n.entries = s->entries;
		n.facts = s->facts;
		n.branches = s->moved;
		n.apart = s->apart;
	}
	for (size_t i = 0; i < s->branch_count && n.apart != 0 && n.branch.ptr == NULL; i++) {
		if (s->branches[i].what == BRANCH_APART)
			n.branch = sheaf_str_of(s->branches[i].aside);
	}
	fn(c->options->ctx, &n);
}

/* Whether a failure concerns this session only. */
static bool is_own(int rc)
{
	switch (rc) {
	case SHEAF_CONFLICT:
	case SHEAF_DAMAGED:
	case SHEAF_FORMAT:
	case SHEAF_GONE:
	case SHEAF_NOT_FOUND:
	case SHEAF_EXISTS:
	case SHEAF_EXPIRED:
	case SHEAF_STALE:
	case SHEAF_LIMIT:
	case SHEAF_TOO_LARGE:
		return true;
	default:
		return false;
	}
}

static void failed(store_sync *c, const session_sync *s, int rc, const sheaf_error *err)
{
	int32_t what = rc == SHEAF_CONFLICT ? SHEAF_SYNC_CONFLICT : SHEAF_SYNC_FAILED;
	count(c, s, what);
	note(c, s, what, rc, sheaf_str_of(err->message));
	if (what == SHEAF_SYNC_FAILED && c->first_code == 0) {
		c->first_code = rc;
		str_copy_cut(c->first_message, sizeof(c->first_message),
		             sheaf_str_of(err->message));
	}
}

/* One try; SHEAF_STALE if it is to be made again. */
static int try_session(store_sync *c, const sync_item *it, bool last, sheaf_error *err)
{
	_cleanup_(mem_freep) session_sync *s = mem_zalloc(sizeof(*s));
	if (s == NULL)
		return err_nomem(err);
	s->c = c;
	sheaf_error local = {0};
	const char *left = NULL;
	int32_t what = 0;
	const char *user = sync_next(it->app);
	int rc = key_box_decode(&s->key, sheaf_str_of(it->app), sheaf_str_of(user),
	                        sheaf_str_of(sync_next(user)), &local);
	if (rc == 0)
		rc = pull(s, &what, &left, &local);
	if (rc == 0) {
		count(c, s, what);
		note(c, s, what, 0, sheaf_str_of(left));
	} else if (rc == SHEAF_STALE && !last && local.outcome == SHEAF_FAILED) {
		; /* again */
	} else if (is_own(rc) && local.outcome == SHEAF_FAILED) {
		failed(c, s, rc, &local);
		rc = 0;
	} else {
		(void)err_pass(err, &local, rc);
	}
	session_sync_end(s);
	return rc;
}

int sync_session(store_sync *c, sync_item *it, sheaf_error *err)
{
	int rc = SHEAF_STALE;
	it->status = SYNC_DONE;
	for (int i = 1; i <= TRIES && rc == SHEAF_STALE; i++)
		rc = try_session(c, it, i == TRIES, err);
	c->totals.done++;
	return rc != 0 ? rc : sync_progress(c, err);
}
