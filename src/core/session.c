/* Session handles: opening, closing, the head and the leaf. */
#include "core/session.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/write.h"

/* How often a session may appear and vanish under an open before we give up. */
#define OPEN_TRIES 8

void head_freep(sheaf_head **h)
{
	sheaf_head_free(*h);
	*h = NULL;
}

int text_check(sheaf_str text, size_t max, const char *what, sheaf_error *err)
{
	if (text.len > max)
		return err_set(err, SHEAF_LIMIT, "the %s has %zu bytes; at most %zu are allowed",
		               what, text.len, max);
	if (text.len != 0 && (text.ptr == NULL || !utf8_valid(text)))
		return err_set(err, SHEAF_INVALID, "the %s is not valid UTF-8", what);
	return 0;
}

int branch_name_check(sheaf_str *name, sheaf_error *err)
{
	if (name->len == 0) {
		*name = SHEAF_STR("main");
		return 0;
	}
	return text_check(*name, SHEAF_BRANCH_BYTES_MAX, "branch name", err);
}

/* ---- Handles ------------------------------------------------------------ */

int session_key_make(key_box *box, const sheaf_key *key, sheaf_error *err)
{
	if (key->session.len != 0)
		return key_box_init(box, key, err);
	char id[SHEAF_ID_ROOM];
	int rc = sheaf_id_new(id, err);
	if (rc != 0)
		return rc;
	sheaf_key named = {key->app, key->user, sheaf_str_of(id)};
	return key_box_init(box, &named, err);
}

int session_make(sheaf_session **out, sheaf_store *store, const key_box *key, bool readonly,
                 sheaf_head *head, const sheaf_head_state *state, sheaf_error *err)
{
	sheaf_session *s = mem_zalloc(sizeof(*s));
	if (s == NULL) {
		sheaf_head_free(head);
		return err_nomem(err);
	}
	s->store = store;
	s->readonly = readonly;
	s->seen = head;
	/* Whoever wrote it may have died before he applied it. */
	s->state.app_from = s->state.app_to = head_app_seq(head);
	atomic_init(&s->state.used, s->state.app_from != 0);
	if (state != NULL)
		s->opened = *state;
	int rc = key_box_init(&s->key, &key->plain, err);
	if (rc == 0 && pthread_mutex_init(&s->lock, NULL) != 0)
		rc = err_nomem(err);
	if (rc != 0) {
		sheaf_head_free(head);
		mem_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

int session_made(sheaf_session **out, sheaf_store *store, const key_box *key, sheaf_head *head,
                 sheaf_error *err)
{
	int rc = session_make(out, store, key, false, head, NULL, err);
	return rc != 0 ? err_unknown(err, rc) : 0;
}

void sheaf_session_close(sheaf_session *session)
{
	if (session == NULL)
		return;
	scratch_free(session->spare);
	handle_state_free(&session->state);
	sheaf_head_free(session->seen);
	(void)pthread_mutex_destroy(&session->lock);
	mem_free(session);
}

sheaf_key sheaf_session_key(const sheaf_session *session)
{
	return session->key.plain;
}

sheaf_store *sheaf_session_store(const sheaf_session *session)
{
	return session->store;
}

const char *sheaf_session_id(const sheaf_session *session)
{
	return session->key.plain_session;
}

/* The head of a session that is there; *hidden tells, on SHEAF_NOT_FOUND, that the key is taken. */
static int open_head(sheaf_head **out, sheaf_store *store, const key_box *key, bool write,
                     sheaf_head_state *state, bool *hidden, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = sheaf_head_new();
	if (head == NULL)
		return err_nomem(err);
	*hidden = false;
	int rc = store_head(store, &key->store, write && !store_readonly(store), head, state, err);
	if (rc != 0)
		return rc;
	*hidden = sheaf_head_hidden(head) != 0;
	if (*hidden)
		return err_set(err, SHEAF_NOT_FOUND, "there is no such session");
	*out = head;
	head = NULL;
	return 0;
}

static int open_existing(sheaf_session **out, sheaf_store *store, const key_box *key, bool readonly,
                         bool *hidden, sheaf_error *err)
{
	sheaf_head *head;
	sheaf_head_state state = {0};
	int rc = open_head(&head, store, key, !readonly, &state, hidden, err);
	if (rc != 0)
		return rc;
	rc = expiry_check(head, &state, SHEAF_NOT_FOUND, err);
	if (rc == 0)
		return session_make(out, store, key, readonly, head, &state, err);
	sheaf_head_free(head);
	return rc;
}

int session_open_expired(sheaf_session **out, sheaf_store *store, const key_box *key,
                         sheaf_error *err)
{
	sheaf_head *head;
	sheaf_head_state state = {0};
	bool hidden;
	int rc = open_head(&head, store, key, true, &state, &hidden, err);
	if (rc == 0)
		rc = session_make(out, store, key, false, head, &state, err);
	if (rc == 0)
		(*out)->expired_too = true;
	return rc;
}

/* What a new session is told besides its header: its name and its first values. */
static int first_facts(draft_list *facts, const sheaf_session_options *options, sheaf_error *err)
{
	const sheaf_str none = {NULL, 0};
	sheaf_str name = OPTION(options, name, none), state = OPTION(options, state, none);
	if (name.len == 0 && state.len == 0)
		return 0;
	_cleanup_(buf_free) buf body = BUF_INIT(SHEAF_RECORD_BYTES_MAX);
	body_session_info(&body, name.len != 0 ? name : none, none);
	sheaf_entry_options entry = SHEAF_ENTRY_OPTIONS_INIT;
	entry.time_us = OPTION(options, created_us, 0);
	entry.state_delta = state;
	int rc = buf_status(&body, err);
	return rc == 0 ? drafts_add(facts, "session_info", buf_view(&body), &entry, err) : rc;
}

static bool says_nothing(const draft *d)
{
	return str_is(buf_view(&d->body), "\"session_info\":{}");
}

static int create_new(sheaf_session **out, sheaf_store *store, const key_box *key,
                      const sheaf_session_options *options, sheaf_error *err)
{
	header hd;
	char stamp[CLOCK_TEXT + 1];
	int rc = header_from_options(&hd, key, options, stamp, err);
	if (rc != 0)
		return rc;
	_cleanup_(drafts_free) draft_list facts = {0};
	rc = first_facts(&facts, options, err);
	if (rc == 0)
		rc = drafts_add_ttl(&facts, options, err);
	if (rc != 0)
		return rc;
	_cleanup_(head_freep) sheaf_head *head = sheaf_head_new();
	if (head == NULL)
		return err_nomem(err);
	/* A record is made for temp: values too, but only for the handle. */
	size_t kept_back = facts.count != 0 && says_nothing(facts.items[0]) ? 1 : 0;
	rc = session_create(store, &key->store, &hd, kept_back ? facts.items + 1 : facts.items,
	                    facts.count - kept_back, (sheaf_str){NULL, 0},
	                    OPTION(options, durability, 0), head, err);
	if (rc != 0)
		return rc;
	sheaf_head *kept = head;
	head = NULL;
	rc = session_made(out, store, key, kept, err);
	if (rc == 0)
		state_take_temp(*out, facts.items, facts.count);
	return rc;
}

/*
 * Opens or creates, whichever fits. Another process may create or delete the
 * session between our look and our step, so the step decides and the loop goes
 * round again.
 */
static int open_either(sheaf_session **out, sheaf_store *store, const key_box *key, bool fresh,
                       const sheaf_session_options *options, sheaf_error *err)
{
	int rc = SHEAF_NOT_FOUND;
	for (int i = 0; i < OPEN_TRIES; i++) {
		bool hidden = false;
		if (!fresh || i > 0)
			rc = open_existing(out, store, key, false, &hidden, err);
		if (rc != SHEAF_NOT_FOUND)
			return rc;
		if (hidden)
			return err_set(
				err, SHEAF_EXISTS,
				"the key belongs to a deleted session that forks still read");
		rc = create_new(out, store, key, options, err);
		if (rc != SHEAF_EXISTS)
			return rc;
	}
	return rc;
}

int sheaf_session_open(sheaf_session **out, sheaf_store *store, const sheaf_key *key,
                       const sheaf_session_options *options, sheaf_error *err)
{
	if (out == NULL || store == NULL || key == NULL)
		return err_set(err, SHEAF_INVALID, "a session is opened in a store by its key");
	int32_t mode = OPTION(options, mode, SHEAF_OPEN_EITHER);
	bool readonly = OPTION(options, readonly, 0) != 0;
	bool fresh = key->session.len == 0;
	if (mode < SHEAF_OPEN_EITHER || mode > SHEAF_OPEN_NEW)
		return err_set(err, SHEAF_INVALID, "unknown mode %d", (int)mode);
	if (mode == SHEAF_OPEN_NEW && readonly)
		return err_set(err, SHEAF_INVALID,
		               "a new session cannot be opened for reading only");
	if (fresh && (mode == SHEAF_OPEN_EXISTING || readonly))
		return err_set(err, SHEAF_INVALID, "the key has no session part");

	/* Errors on the way to success must not reach the caller's struct. */
	sheaf_error local;
	key_box box;
	sheaf_session *made = NULL;
	int rc = session_key_make(&box, key, &local);
	if (rc == 0) {
		bool hidden;
		if (mode == SHEAF_OPEN_NEW)
			rc = create_new(&made, store, &box, options, &local);
		else if (mode == SHEAF_OPEN_EXISTING || readonly)
			rc = open_existing(&made, store, &box, readonly, &hidden, &local);
		else
			rc = open_either(&made, store, &box, fresh, options, &local);
	}
	if (rc == 0)
		*out = made;
	else if (err != NULL)
		*err = local;
	return rc;
}

struct recent {
	key_box key;
	bool found;
};

static int recent_take(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	struct recent *r = ctx;
	if (info->hidden || info->expired != SHEAF_EXPIRY_NONE)
		return 0;
	int rc = key_box_decode(&r->key, key->app, key->user, key->session, NULL);
	r->found = rc == 0;
	return rc != 0 ? rc : 1;
}

static int recent_find(sheaf_store *store, sheaf_str app, sheaf_str user, struct recent *r,
                       sheaf_error *err)
{
	char app_text[SHEAF_KEY_PART_ROOM], user_text[SHEAF_KEY_PART_ROOM];
	int rc = sheaf_key_encode(app_text, app, err);
	if (rc == 0)
		rc = sheaf_key_encode(user_text, user, err);
	if (rc != 0)
		return rc;
	sheaf_list_query query = {
		.size = sizeof(query),
		.app = sheaf_str_of(app_text),
		.user = sheaf_str_of(user_text),
	};
	r->found = false;
	rc = store_list(store, &query, recent_take, r, err);
	if (rc == 0 && !r->found)
		rc = err_set(err, SHEAF_NOT_FOUND, "this app and user have no session");
	return rc;
}

int sheaf_session_open_recent(sheaf_session **out, sheaf_store *store, sheaf_str app,
                              sheaf_str user, sheaf_error *err)
{
	if (out == NULL || store == NULL)
		return err_set(err, SHEAF_INVALID, "a session is opened in a store");
	sheaf_error local;
	struct recent r;
	sheaf_session *made = NULL;
	int rc = SHEAF_NOT_FOUND;
	for (int i = 0; i < OPEN_TRIES; i++) {
		rc = recent_find(store, app, user, &r, &local);
		if (rc != 0)
			break;
		bool hidden;
		rc = open_existing(&made, store, &r.key, false, &hidden, &local);
		if (rc != SHEAF_NOT_FOUND && rc != SHEAF_EXPIRED)
			break;
	}
	if (rc == 0)
		*out = made;
	else if (err != NULL)
		*err = local;
	return rc;
}

/* ---- Head --------------------------------------------------------------- */

static int64_t head_created(const sheaf_head *head)
{
	sheaf_session_info info;
	sheaf_head_info(head, &info);
	return info.created_us;
}

void session_saw(sheaf_session *s, const sheaf_head *head)
{
	(void)pthread_mutex_lock(&s->lock);
	/*
	 * Threads of one handle finish in any order; the older head must not win.
	 * A session that was deleted and made again starts from a low revision, and
	 * is known by its birth. A failed copy leaves the older head: the next turn
	 * is then STALE, never wrong.
	 */
	if (sheaf_head_revision(head) >= sheaf_head_revision(s->seen) ||
	    head_created(head) != head_created(s->seen))
		(void)sheaf_head_copy(s->seen, head, NULL);
	(void)pthread_mutex_unlock(&s->lock);
}

/* What every read does with the head it got: `rc` is how getting it went. */
static int alive(const sheaf_session *s, const sheaf_head *head, const sheaf_head_state *state,
                 int rc, sheaf_error *err)
{
	if (rc == SHEAF_NOT_FOUND || (rc == 0 && sheaf_head_hidden(head)))
		return err_set(err, SHEAF_GONE, "the session was deleted");
	if (rc == 0 && !s->expired_too)
		rc = expiry_check(head, state, SHEAF_GONE, err);
	return rc;
}

int session_peek(sheaf_session *s, sheaf_head **out, sheaf_head_state *state, sheaf_error *err)
{
	sheaf_head_state unwanted;
	_cleanup_(head_freep) sheaf_head *head = sheaf_head_new();
	if (head == NULL)
		return err_nomem(err);
	if (state == NULL)
		state = &unwanted;
	int rc = store_head(s->store, &s->key.store, 0, head, state, err);
	rc = alive(s, head, state, rc, err);
	if (rc != 0)
		return rc;
	*out = head;
	head = NULL;
	return 0;
}

int session_head(sheaf_session *s, sheaf_head **out, sheaf_head_state *state, sheaf_error *err)
{
	int rc = session_peek(s, out, state, err);
	if (rc == 0)
		session_saw(s, *out);
	return rc;
}

bool session_reads(sheaf_session *s)
{
	sheaf_str source;
	uint64_t base;
	if (!store_reads(s->store))
		return false;
	(void)pthread_mutex_lock(&s->lock);
	bool fork = sheaf_head_link(s->seen, 0, &source, &base) != 0;
	(void)pthread_mutex_unlock(&s->lock);
	return !fork;
}

int session_read(sheaf_session *s, const sheaf_scan *scan, sheaf_row_fn fn, void *ctx,
                 sheaf_head **out, sheaf_error *err)
{
	sheaf_head_state state;
	_cleanup_(head_freep) sheaf_head *head = sheaf_head_new();
	if (head == NULL)
		return err_nomem(err);
	int rc = store_read(s->store, &s->key.store, scan, head, &state, fn, ctx, err);
	rc = alive(s, head, &state, rc, err);
	if (rc != 0)
		return rc;
	session_saw(s, head);
	*out = head;
	head = NULL;
	return 0;
}

struct header_take {
	header *out;
	arena *a;
	sheaf_error *err;
	bool found;
};

static int header_take(void *ctx, const sheaf_row *row)
{
	struct header_take *t = ctx;
	_cleanup_(json_freep) json_doc *doc = NULL;
	int ok = 1;
	sheaf_str line = arena_dup(t->a, row->bytes, &ok);
	if (!ok)
		return err_nomem(t->err);
	t->found = true;
	return header_read(t->out, line, t->a, &doc, t->err);
}

int session_header(sheaf_session *s, header *out, arena *a, sheaf_error *err)
{
	sheaf_error local = {0};
	struct header_take t = {out, a, &local, false};
	int rc = store_header(s->store, &s->key.store, header_take, &t, err);
	if (rc == SHEAF_NOT_FOUND)
		return err_set(err, SHEAF_GONE, "the session was deleted");
	if (rc == 0 && !t.found)
		return err_set(err, SHEAF_DAMAGED, "the session has no header");
	return err_pass(err, &local, rc);
}

static int info_dup(sheaf_session_info *out, const sheaf_session_info *info, arena *a)
{
	int ok = 1;
	*out = *info;
	out->app = arena_dup(a, info->app, &ok);
	out->user = arena_dup(a, info->user, &ok);
	out->session = arena_dup(a, info->session, &ok);
	out->name = arena_dup(a, info->name, &ok);
	out->kind = arena_dup(a, info->kind, &ok);
	out->parent_session = arena_dup(a, info->parent_session, &ok);
	out->cwd = arena_dup(a, info->cwd, &ok);
	out->preview = arena_dup(a, info->preview, &ok);
	out->source = arena_dup(a, info->source, &ok);
	return ok;
}

int info_copy(sheaf_session_info *out, const sheaf_store_key *key, const sheaf_session_info *info,
              arena *a, sheaf_error *err)
{
	key_box box;
	int rc = key_box_decode(&box, key->app, key->user, key->session, err);
	if (rc != 0)
		return rc;
	sheaf_session_info full = *info;
	full.app = box.plain.app;
	full.user = box.plain.user;
	full.session = box.plain.session;
	return info_dup(out, &full, a) ? 0 : err_nomem(err);
}

static int branches_make(sheaf_head_view *out, const sheaf_head *head, arena *a)
{
	size_t count = head_branch_count(head);
	sheaf_branch_info *infos = arena_zalloc(a, count * sizeof(*infos));
	const sheaf_branch_info **list = arena_zalloc(a, count * sizeof(*list));
	if (infos == NULL || list == NULL)
		return 0;
	int ok = 1;
	for (size_t i = 0; i < count; i++) {
		head_branch b;
		head_branch_at(head, i, &b);
		infos[i].name = arena_dup(a, b.name, &ok);
		if (b.leaf_seq != 0)
			infos[i].leaf = arena_dup(a, b.leaf, &ok);
		infos[i].leaf_seq = b.leaf_seq;
		list[i] = &infos[i];
	}
	out->branch_count = count;
	out->branches = list;
	return ok;
}

int head_view_make(sheaf_head_view *out, const sheaf_session *s, const sheaf_head *head,
                   const sheaf_head_state *state, arena *a, sheaf_error *err)
{
	sheaf_session_info info, *copy = arena_alloc(a, sizeof(*copy));
	if (copy == NULL)
		return err_nomem(err);
	sheaf_head_info(head, &info);
	info.app = s->key.plain.app;
	info.user = s->key.plain.user;
	info.session = s->key.plain.session;
	info.readonly = state->readonly;
	info.damaged = state->damaged;
	sheaf_info_clock(&info, state->stored_us, state->now_us);
	int ok = info_dup(copy, &info, a) && branches_make(out, head, a);
	out->info = copy;
	out->metadata = arena_dup(a, head_metadata(head), &ok);
	out->readonly = s->readonly || state->readonly;
	out->damaged = state->damaged;
	/* What opening moved away is news of this handle, not of the log. */
	out->torn_bytes = s->opened.torn_bytes;
	if (s->opened.torn_file[0] != '\0')
		out->torn_file = arena_dup(a, sheaf_str_of(s->opened.torn_file), &ok);
	out->tail_bytes = state->tail_bytes;
	return ok ? 0 : err_nomem(err);
}

typedef struct view_box {
	sheaf_head_view view;
	arena *a;
} view_box;

int sheaf_session_head(sheaf_head_view **out, sheaf_session *session, sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	sheaf_head_state state = {0};
	int rc = session_head(session, &head, &state, err);
	if (rc != 0)
		return rc;
	_cleanup_(arena_freep) arena *a = arena_new();
	view_box *box = a ? arena_zalloc(a, sizeof(*box)) : NULL;
	if (box == NULL)
		return err_nomem(err);
	rc = head_view_make(&box->view, session, head, &state, a, err);
	if (rc != 0)
		return rc;
	box->a = a;
	a = NULL;
	*out = &box->view;
	return 0;
}

void sheaf_head_view_free(const sheaf_head_view *head)
{
	if (head != NULL)
		arena_free(((const view_box *)(const void *)head)->a);
}

int sheaf_session_leaf(sheaf_session *session, sheaf_str branch, char out[SHEAF_ID_ROOM],
                       sheaf_error *err)
{
	_cleanup_(head_freep) sheaf_head *head = NULL;
	int rc = branch_name_check(&branch, err);
	if (rc == 0)
		rc = session_head(session, &head, NULL, err);
	if (rc != 0)
		return rc;
	head_branch b;
	if (!head_branch_find(head, branch, &b))
		return err_set(err, SHEAF_NOT_FOUND, "there is no such branch");
	str_copy_cut(out, SHEAF_ID_ROOM, b.leaf_seq != 0 ? b.leaf : (sheaf_str){"", 0});
	return 0;
}
