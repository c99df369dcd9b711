/* Checking: every record of one session, or of all that every primary has. */
#include "store/redis.h"

#define SCAN_COUNT "500"

typedef struct checking {
	rstore *s;
	const sheaf_store_key *key;
	sheaf_problem_fn fn;
	void *ctx;
	sheaf_check_totals *totals;
	uint64_t next; /* the seq that must follow */
	sheaf_error *err;
} checking;

static int report(const checking *k, int32_t what, uint64_t seq, uint64_t bytes, const char *detail)
{
	sheaf_problem p = {.what = what,
	                   .app = k->key->app,
	                   .user = k->key->user,
	                   .session = k->key->session,
	                   .seq = seq,
	                   .bytes = bytes,
	                   .detail = sheaf_str_of(detail)};
	return k->fn(k->ctx, &p);
}

static int check_row(void *ctx, const sheaf_row *row)
{
	checking *k = ctx;
	k->totals->bytes += row->bytes.len + 1;
	if (k->next == 0) {
		k->next = row->seq + 1; /* the header */
		return row->damaged ? report(k, SHEAF_PROBLEM_DAMAGE, 0, row->bytes.len,
		                             "the header cannot be read")
		                    : 0;
	}
	int rc = 0;
	if (row->damaged)
		rc = report(k, SHEAF_PROBLEM_DAMAGE, row->seq, row->bytes.len,
		            "a record cannot be read");
	k->totals->records++;
	k->next = row->seq + 1;
	return rc;
}

/* Every session a fork reads must be there and long enough. */
static int check_links(const checking *k, const sheaf_head *head)
{
	sheaf_str session;
	uint64_t base;
	for (size_t i = 0; sheaf_head_link(head, i, &session, &base); i++) {
		char name[SHEAF_KEY_PART_ROOM];
		str_copy_cut(name, sizeof(name), session);
		sheaf_store_key key = *k->key;
		key.session = sheaf_str_of(name);
		_cleanup_(rstate_free) rstate at = {0};
		int rc = redis_state(k->s, &key, false, 0, &at, k->err);
		if (rc != 0 && rc != SHEAF_NOT_FOUND)
			return rc;
		if (rc == SHEAF_NOT_FOUND || at.revision < base)
			rc = report(k, SHEAF_PROBLEM_FORK, base, 0,
			            "the session it was forked from is not there or too short");
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* What the head says of the log. */
static int check_head(const checking *k, const rstate *at, sheaf_error *err)
{
	_cleanup_(redis_head_freep) sheaf_head *head = sheaf_head_new();
	if (head == NULL)
		return err_nomem(err);
	int rc = redis_head_decode(head, at->head, at->state, err);
	if (rc == SHEAF_DAMAGED)
		return report(k, SHEAF_PROBLEM_DAMAGE, 0, 0, "the head cannot be read");
	return rc == 0 && !at->hidden ? check_links(k, head) : rc;
}

/* Fewer records than the head says, and nobody has cut the log meanwhile. */
static int check_length(const checking *k, const rstate *at, sheaf_error *err)
{
	if (k->next == 0 || k->next > at->revision)
		return 0;
	_cleanup_(rstate_free) rstate now = {0};
	int rc = redis_state(k->s, k->key, false, 0, &now, err);
	if (rc != 0 || !str_eq(now.digest, at->digest))
		return rc;
	return report(k, SHEAF_PROBLEM_DAMAGE, k->next, 0, "records are missing");
}

static int check_session(checking *k, sheaf_error *err)
{
	sheaf_scan all = {.size = sizeof(all), .limit = SIZE_MAX, .kinds = SHEAF_KINDS_ALL};
	_cleanup_(rstate_free) rstate at = {0};
	k->next = 0;
	int rc = redis_state(k->s, k->key, false, 0, &at, err);
	if (rc == 0)
		rc = check_head(k, &at, err);
	if (rc == 0)
		rc = redis_header(k->s, k->key, check_row, k, err);
	if (rc == SHEAF_DAMAGED)
		rc = report(k, SHEAF_PROBLEM_DAMAGE, 0, 0, "the header cannot be read");
	if (rc == 0)
		rc = redis_scan(k->s, k->key, &all, check_row, k, err);
	if (rc == 0)
		rc = check_length(k, &at, err);
	if (rc == 0)
		k->totals->sessions++;
	return rc;
}

/* ---- All sessions ------------------------------------------------------------------------ */

/* "{prefix app/user}h:session": its parts, copied with a NUL each. */
typedef struct named {
	sheaf_store_key key;
	char owner[2 * SHEAF_KEY_PART_ROOM];
	char app[SHEAF_KEY_PART_ROOM];
	char user[SHEAF_KEY_PART_ROOM];
	char session[SHEAF_KEY_PART_ROOM];
} named;

static bool take_name(named *n, const rstore *s, sheaf_str text)
{
	size_t front = 1 + strlen(s->prefix);
	const char *close = memchr(text.ptr, '}', text.len);
	if (close == NULL || text.len < front || (size_t)(close - text.ptr) < front)
		return false;
	sheaf_str owner = str_make(text.ptr + front, (size_t)(close - text.ptr) - front);
	const char *slash = memchr(owner.ptr, '/', owner.len);
	if (slash == NULL || (size_t)(close - text.ptr) + 3 >= text.len)
		return false;
	sheaf_str session = str_make(close + 3, text.len - (size_t)(close - text.ptr) - 3);
	sheaf_str app = str_make(owner.ptr, (size_t)(slash - owner.ptr));
	sheaf_str user = str_make(slash + 1, owner.len - app.len - 1);
	if (app.len > SHEAF_KEY_PART_BYTES_MAX || user.len > SHEAF_KEY_PART_BYTES_MAX ||
	    session.len > SHEAF_KEY_PART_BYTES_MAX)
		return false;
	str_copy_cut(n->owner, sizeof(n->owner), owner);
	str_copy_cut(n->app, sizeof(n->app), app);
	str_copy_cut(n->user, sizeof(n->user), user);
	str_copy_cut(n->session, sizeof(n->session), session);
	n->key = (sheaf_store_key){sheaf_str_of(n->owner), sheaf_str_of(n->app),
	                           sheaf_str_of(n->user), sheaf_str_of(n->session)};
	return true;
}

static int scan_keys(rstore *s, uint16_t node, const char *cursor, redisReply **reply,
                     sheaf_error *err)
{
	_cleanup_(rcmd_free) rcmd cmd;
	_cleanup_(buf_free) buf pattern = BUF_INIT(4096);
	rconn *conn = NULL;
	bool sent = false;
	redis_key(&pattern, s, SHEAF_STR("*"), "h:", SHEAF_STR("*"));
	rcmd_begin(&cmd);
	rcmd_text(&cmd, "SCAN");
	rcmd_text(&cmd, cursor);
	rcmd_text(&cmd, "MATCH");
	rcmd_arg(&cmd, buf_view(&pattern));
	rcmd_text(&cmd, "COUNT");
	rcmd_text(&cmd, SCAN_COUNT);
	sheaf_str bytes = rcmd_bytes(&cmd);
	if (bytes.ptr == NULL)
		return err_nomem(err);
	int rc = rconn_take(s, node, redis_deadline(s, 0), &conn, err);
	if (rc != 0)
		return rc;
	rconn_until(conn, redis_deadline(s, 0));
	(void)rconn_send(conn, bytes.ptr, bytes.len, &sent);
	*reply = rconn_reply(conn);
	rconn_give(s, conn);
	if (*reply == NULL || (*reply)->type != REDIS_REPLY_ARRAY || (*reply)->elements != 2)
		return redis_strange(err);
	return 0;
}

/* A key may come twice, and one that moves between nodes too: what is read twice is only slower,
 * but totals count it twice. */
static int check_node(checking *k, uint16_t node, sheaf_error *err)
{
	char cursor[32] = "0";
	do {
		_cleanup_(redis_reply_free) redisReply *reply = NULL;
		int rc = scan_keys(k->s, node, cursor, &reply, err);
		if (rc != 0)
			return rc;
		const redisReply *keys = reply->element[1];
		for (size_t i = 0; i < keys->elements; i++) {
			named n;
			if (!take_name(&n, k->s, reply_str(keys, i)))
				continue;
			k->key = &n.key;
			rc = check_session(k, err);
			k->key = NULL;
			if (rc != 0 && rc != SHEAF_NOT_FOUND)
				return rc;
		}
		str_copy_cut(cursor, sizeof(cursor), reply_str(reply, 0));
	} while (strcmp(cursor, "0") != 0);
	return 0;
}

static bool has_slots(rstore *s, uint16_t node)
{
	bool found = false;
	(void)pthread_mutex_lock(&s->mutex);
	for (size_t slot = 0; slot < REDIS_SLOTS && !found; slot++)
		found = s->slots[slot] == node;
	found = s->cluster ? found : node == s->primary;
	(void)pthread_mutex_unlock(&s->mutex);
	return found;
}

int redis_check(void *backend, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
                sheaf_check_totals *totals, sheaf_error *err)
{
	rstore *s = backend;
	checking k = {.s = s, .key = key, .fn = fn, .ctx = ctx, .totals = totals, .err = err};
	if (key != NULL)
		return check_session(&k, err);
	int rc = s->cluster ? redis_map_slots(s, redis_deadline(s, 0), err) : 0;
	(void)pthread_mutex_lock(&s->mutex);
	size_t count = s->node_count;
	(void)pthread_mutex_unlock(&s->mutex);
	for (uint16_t i = 0; rc == 0 && i < count; i++) {
		if (has_slots(s, i))
			rc = check_node(&k, i, err);
	}
	return rc > 0 ? 0 : rc;
}
