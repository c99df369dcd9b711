/*
 * Dispatch: opens stores and passes every call on to a store's table, after the
 * checks that are the same for all of them.
 */
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/store_inside.h"
#include "store/store_url.h"

#define DEADLINE_DEFAULT_US (INT64_C(10) * 1000000)

/* How many fork()s lie between this process and the one that loaded the library. Counting them is
 * a load for every call, where asking for the process id would be a system call. */
static _Atomic unsigned generation;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

static void forked(void)
{
	atomic_fetch_add(&generation, 1);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

/* Fault points ---------------------------------------------------------------- */

static int (*fault_fn)(void *ctx, const char *slot, sheaf_error *err);
static void *fault_ctx;

void store_set_fault(int (*fault)(void *ctx, const char *slot, sheaf_error *err), void *ctx)
{
	fault_fn = fault;
	fault_ctx = ctx;
}

int call_fault_point(const char *slot, sheaf_error *err)
{
	return fault_fn != NULL ? fault_fn(fault_ctx, slot, err) : 0;
}

/* What every call begins and ends with ------------------------------------------ */

int call_check_store(const sheaf_store *s, sheaf_error *err)
{
	if (s == NULL)
		return err_set(err, SHEAF_INVALID, "no store was given");
	/* Descriptors and their locks are shared with the parent, threads and mutexes are not. */
	if (s->generation != atomic_load_explicit(&generation, memory_order_relaxed))
		return err_set(err, SHEAF_FORKED, "the store was opened before fork()");
	return 0;
}

int call_check_writable(const sheaf_store *s, sheaf_error *err)
{
	int rc = call_check_store(s, err);
	if (rc == 0 && s->readonly)
		rc = err_set(err, SHEAF_READONLY, "the store is open for reading only");
	return rc;
}

/* Stores make paths of these, so a part that is not encoded must not reach one. */
bool call_part_ok(sheaf_str part)
{
	if (part.ptr == NULL || part.len == 0 || part.len > SHEAF_KEY_PART_BYTES_MAX ||
	    part.ptr[0] == '.' || part.ptr[part.len] != '\0')
		return false;
	for (size_t i = 0; i < part.len; i++) {
		char c = part.ptr[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		             (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' || c == '%';
		if (!plain)
			return false;
	}
	return true;
}

int call_check_key(const sheaf_store_key *key, sheaf_error *err)
{
	if (key == NULL)
		return err_set(err, SHEAF_INVALID, "no key was given");
	if (!call_part_ok(key->app) || !call_part_ok(key->user) || !call_part_ok(key->session))
		return err_set(err, SHEAF_INVALID, "the key is not encoded");
	sheaf_str owner = key->owner;
	if (owner.ptr == NULL || owner.len != key->app.len + 1 + key->user.len ||
	    memcmp(owner.ptr, key->app.ptr, key->app.len) != 0 || owner.ptr[key->app.len] != '/' ||
	    memcmp(owner.ptr + key->app.len + 1, key->user.ptr, key->user.len + 1) != 0)
		return err_set(err, SHEAF_INVALID, "the owner is not app/user");
	return 0;
}

int call_no_argument(const char *what, sheaf_error *err)
{
	return err_set(err, SHEAF_INVALID, "no %s was given", what);
}

int call_no_slot(const sheaf_store *s, const char *what, sheaf_error *err)
{
	return err_set(err, SHEAF_UNSUPPORTED, "%s stores cannot %s", s->ops.scheme, what);
}

sheaf_error *call_begin(call *c, sheaf_error *err)
{
	c->err = err != NULL ? err : &c->before;
	if (err != NULL)
		c->before = *err;
	memset(c->err, 0, sizeof(*c->err));
	return c->err;
}

/* A failure that nobody has put into words, as a callback's may be, gets the table's. */
int call_finish(call *c, int rc)
{
	sheaf_error *err = c->err;
	if (rc == 0) {
		if (err != &c->before)
			*err = c->before;
		return 0;
	}
	if (rc > 0) {
		rc = err_set(err, SHEAF_STORAGE, "the store answered %d, which is no code", rc);
		return err_unknown(err, rc);
	}
	if (err->code != rc) {
		int32_t outcome = err->outcome;
		(void)err_set(err, rc, "%s", sheaf_code_text(rc));
		err->outcome = outcome;
	}
	return rc;
}

/* A read that is lost with its server has failed: there is no write whose outcome were open. */
int call_finish_read(call *c, int rc)
{
	rc = call_finish(c, rc);
	if (rc != 0)
		c->err->outcome = SHEAF_FAILED;
	return rc;
}

int64_t call_deadline_from_now(int64_t wait_us)
{
	int64_t now = clock_monotonic_us();
	return wait_us > INT64_MAX - now ? INT64_MAX : now + wait_us;
}

/* Opening ------------------------------------------------------------------------ */

/* What the caller's options say, as far as they reach: an older caller's are shorter. */
static int take_options(sheaf_store_options *to, const sheaf_store_options *from, sheaf_error *err)
{
	*to = (sheaf_store_options)SHEAF_STORE_OPTIONS_INIT;
	if (from == NULL)
		return 0;
	if (from->size < sizeof(from->size))
		return err_set(err, SHEAF_INVALID, "the size of the store options is not set");
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	to->size = sizeof(*to);
	if (to->durability < SHEAF_DURABILITY_DEFAULT || to->durability > SHEAF_DURABILITY_REPLICA)
		return err_set(err, SHEAF_INVALID, "there is no durability %d", to->durability);
	if (to->deadline_us < 0)
		return err_set(err, SHEAF_INVALID, "a deadline cannot be negative");
	return 0;
}

static void describe(const sheaf_store *s, sheaf_store_info *out)
{
	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	out->queues = 1; /* unless the store takes it back */
	s->ops.describe(s->backend, out);
	out->size = sizeof(*out);
	out->scheme = s->ops.scheme;
	if (s->ops.check == NULL || s->ops.repair == NULL)
		out->repairs = 0;
	out->states = store_states(s);
	if (s->ops.queue_put == NULL)
		out->queues = 0;
}

static int check_durability(const sheaf_store *s, int32_t asked, sheaf_error *err)
{
	if (asked <= s->durability_max)
		return 0;
	return err_set(err, SHEAF_UNSUPPORTED, "%s stores give durability %s at most, not %s",
	               s->ops.scheme, sheaf_durability_name(s->durability_max),
	               sheaf_durability_name(asked));
}

/* What can be known once the backend is open. */
static int settle(sheaf_store *s, const sheaf_store_options *options, sheaf_error *err)
{
	sheaf_store_info info;
	describe(s, &info);
	s->readonly = options->readonly != 0 || info.readonly != 0;
	s->lists_app = info.lists_app != 0;
	s->remote = info.remote != 0;
	s->durability_max = info.durability_max;
	s->durability = options->durability != 0 ? options->durability : info.durability;
	s->deadline_us = options->deadline_us != 0 ? options->deadline_us : DEADLINE_DEFAULT_US;
	return check_durability(s, s->durability, err);
}

/* "scheme:rest?option=value…". Options that every store has, and unsafe_fs, say only how. */
static char *make_place(const store_url *u)
{
	_cleanup_(buf_free) buf b = BUF_INIT(SIZE_MAX);
	char mark = '?';
	buf_str(&b, u->scheme);
	buf_char(&b, ':');
	buf_str(&b, u->rest);
	for (size_t i = 0; i < u->count; i++) {
		const char *name = u->options[i].name;
		if (strcmp(name, "readonly") == 0 || strcmp(name, "durability") == 0 ||
		    strcmp(name, "unsafe_fs") == 0)
			continue;
		buf_char(&b, mark);
		buf_str(&b, sheaf_str_of(name));
		buf_char(&b, '=');
		buf_str(&b, u->options[i].value);
		mark = '&';
	}
	return b.status == 0 ? mem_dup(b.ptr, b.len) : NULL;
}

static int open_url(sheaf_store **out, const char *url, const sheaf_store_options *given,
                    sheaf_error *err)
{
	sheaf_store_options options;
	int rc = take_options(&options, given, err);
	if (rc != 0)
		return rc;
	_cleanup_(store_url_free) store_url u;
	rc = store_url_parse(&u, url, err);
	const sheaf_store_ops *ops = NULL;
	if (rc == 0)
		rc = store_scheme_find(u.scheme, &ops, err);
	if (rc == 0)
		rc = store_url_settle(&u, ops->option_names, &options, err);
	if (rc != 0)
		return rc;

	_cleanup_(mem_freep) char *place = make_place(&u);
	_cleanup_(mem_freep) sheaf_store *s = mem_zalloc(sizeof(*s));
	if (s == NULL || place == NULL)
		return err_nomem(err);
	memcpy(&s->ops, ops, ops->size < sizeof(s->ops) ? ops->size : sizeof(s->ops));
	pthread_once(&watch_once, watch_forks);
	s->generation = atomic_load(&generation);
	rc = call_fault_point("open", err);
	if (rc == 0)
		rc = s->ops.open(&s->backend, u.rest, &options, store_url_option, &u, err);
	if (rc != 0)
		return rc;
	rc = settle(s, &options, err);
	if (rc != 0) {
		s->ops.close(s->backend);
		return rc;
	}
	s->place = place;
	place = NULL;
	*out = s;
	s = NULL;
	return 0;
}

int sheaf_open(sheaf_store **out, const char *url, const sheaf_store_options *options,
               sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = out != NULL ? open_url(out, url, options, err) : call_no_argument("place", err);
	return call_finish(&c, rc);
}

/*
 * In a child the backend is left alone: its mutexes may be held by threads that
 * are not there, and giving up a file lock would take it from the parent.
 */
void sheaf_close(sheaf_store *store)
{
	if (store == NULL)
		return;
	if (store->generation == atomic_load(&generation))
		store->ops.close(store->backend);
	mem_free(store->place);
	mem_free(store);
}

int sheaf_store_describe(sheaf_store *store, sheaf_store_info *out, sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = call_check_store(store, err);
	if (rc == 0 && (out == NULL || out->size < sizeof(out->size)))
		rc = err_set(err, SHEAF_INVALID, "the size of the store info is not set");
	if (rc == 0)
		rc = call_fault_point("describe", err);
	if (rc == 0) {
		sheaf_store_info info;
		describe(store, &info);
		info.readonly = store->readonly;
		info.durability = store->durability;
		info.size = out->size;
		memcpy(out, &info, out->size < sizeof(info) ? out->size : sizeof(info));
	}
	return call_finish_read(&c, rc);
}

bool store_readonly(const sheaf_store *s)
{
	return s->readonly;
}

const char *store_place(const sheaf_store *s)
{
	return s->place;
}

int64_t store_patience_us(const sheaf_store *s)
{
	return s->deadline_us;
}

bool store_remote(const sheaf_store *s)
{
	return s->remote;
}

bool store_reads(const sheaf_store *s)
{
	return s->ops.read != NULL;
}

bool store_stamped(const sheaf_store *s)
{
	return s->ops.stamps != NULL;
}

bool store_states(const sheaf_store *s)
{
	return s->ops.state_read != NULL && s->ops.state_apply != NULL;
}

/* Reading -------------------------------------------------------------------------- */

int store_head(sheaf_store *s, const sheaf_store_key *key, int write, sheaf_head *out,
               sheaf_head_state *state, sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	sheaf_head_state unwanted;
	if (state == NULL)
		state = &unwanted;
	int rc = call_check_store(s, err);
	if (rc == 0)
		rc = call_check_key(key, err);
	if (rc == 0 && out == NULL)
		rc = call_no_argument("head", err);
	if (rc == 0)
		rc = call_fault_point("head", err);
	if (rc == 0) {
		memset(state, 0, sizeof(*state));
		/* Reading is allowed; recovering a log on the way would be writing. */
		rc = s->ops.head(s->backend, key, write != 0 && !s->readonly, out, state, err);
	}
	if (rc == 0 && s->readonly)
		state->readonly = 1;
	return call_finish_read(&c, rc);
}

int store_scan(sheaf_store *s, const sheaf_store_key *key, const sheaf_scan *scan, sheaf_row_fn fn,
               void *ctx, sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = call_check_store(s, err);
	if (rc == 0)
		rc = call_check_key(key, err);
	if (rc == 0 && (scan == NULL || scan->size < sizeof(*scan) || fn == NULL))
		rc = call_no_argument("scan", err);
	if (rc == 0)
		rc = call_fault_point("scan", err);
	if (rc == 0)
		rc = s->ops.scan(s->backend, key, scan, fn, ctx, err);
	return call_finish_read(&c, rc);
}

int store_read(sheaf_store *s, const sheaf_store_key *key, const sheaf_scan *scan, sheaf_head *out,
               sheaf_head_state *state, sheaf_row_fn fn, void *ctx, sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = call_check_store(s, err);
	if (rc == 0)
		rc = call_check_key(key, err);
	if (rc == 0 && (scan == NULL || scan->size < sizeof(*scan) || fn == NULL))
		rc = call_no_argument("scan", err);
	if (rc == 0)
		rc = call_fault_point("read", err);
	if (rc == 0) {
		memset(state, 0, sizeof(*state));
		rc = s->ops.read(s->backend, key, scan, out, state, fn, ctx, err);
	}
	if (rc == 0 && s->readonly)
		state->readonly = 1;
	return call_finish_read(&c, rc);
}

int store_find(sheaf_store *s, const sheaf_store_key *key, sheaf_str id, uint64_t *seq,
               sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = call_check_store(s, err);
	if (rc == 0)
		rc = call_check_key(key, err);
	if (rc == 0 && (id.ptr == NULL || id.len == 0 || seq == NULL))
		rc = call_no_argument("id", err);
	if (rc == 0)
		rc = call_fault_point("find", err);
	if (rc == 0)
		rc = s->ops.find(s->backend, key, id, seq, err);
	return call_finish_read(&c, rc);
}

int store_header(sheaf_store *s, const sheaf_store_key *key, sheaf_row_fn fn, void *ctx,
                 sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = call_check_store(s, err);
	if (rc == 0)
		rc = call_check_key(key, err);
	if (rc == 0 && fn == NULL)
		rc = call_no_argument("callback", err);
	if (rc == 0)
		rc = call_fault_point("header", err);
	if (rc == 0)
		rc = s->ops.header(s->backend, key, fn, ctx, err);
	return call_finish_read(&c, rc);
}

static int check_query(const sheaf_store *s, const sheaf_list_query *query, sheaf_error *err)
{
	if (query == NULL || query->size < sizeof(*query))
		return call_no_argument("query", err);
	if ((query->app.ptr != NULL && !call_part_ok(query->app)) ||
	    (query->user.ptr != NULL && !call_part_ok(query->user)))
		return err_set(err, SHEAF_INVALID, "the app or the user is not encoded");
	if (query->has_after != 0 &&
	    (query->after_owner.ptr == NULL || query->after_session.ptr == NULL))
		return err_set(err, SHEAF_INVALID, "the place to start after is not whole");
	if ((query->app.ptr == NULL || query->user.ptr == NULL) && !s->lists_app)
		return call_no_slot(s, "list more than one user", err);
	return 0;
}

int store_list(sheaf_store *s, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
               sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = call_check_store(s, err);
	if (rc == 0)
		rc = check_query(s, query, err);
	if (rc == 0 && fn == NULL)
		rc = call_no_argument("callback", err);
	if (rc == 0)
		rc = call_fault_point("list", err);
	if (rc == 0)
		rc = s->ops.list(s->backend, query, fn, ctx, err);
	return call_finish_read(&c, rc);
}

int store_stamps(sheaf_store *s, sheaf_str app, sheaf_str user, sheaf_stamp_seen_fn fn, void *ctx,
                 sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = call_check_store(s, err);
	if (rc == 0 && s->ops.stamps == NULL)
		rc = call_no_slot(s, "say what changed", err);
	if (rc == 0 &&
	    ((app.ptr != NULL && !call_part_ok(app)) || (user.ptr != NULL && !call_part_ok(user))))
		rc = err_set(err, SHEAF_INVALID, "the key is not encoded");
	if (rc == 0 && fn == NULL)
		rc = call_no_argument("callback", err);
	if (rc == 0)
		rc = call_fault_point("stamps", err);
	if (rc == 0)
		rc = s->ops.stamps(s->backend, app, user, fn, ctx, err);
	return call_finish_read(&c, rc);
}

int store_check(sheaf_store *s, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
                sheaf_check_totals *totals, sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = call_check_store(s, err);
	if (rc == 0 && s->ops.check == NULL)
		rc = call_no_slot(s, "check", err);
	if (rc == 0 && key != NULL)
		rc = call_check_key(key, err);
	if (rc == 0 && (fn == NULL || totals == NULL))
		rc = call_no_argument("callback or place", err);
	if (rc == 0)
		rc = call_fault_point("check", err);
	if (rc == 0) {
		memset(totals, 0, sizeof(*totals));
		rc = s->ops.check(s->backend, key, fn, ctx, totals, err);
	}
	return call_finish_read(&c, rc);
}

/* Writing --------------------------------------------------------------------------- */

static int check_append(const sheaf_store *s, const sheaf_append_request *request, sheaf_error *err)
{
	if (request == NULL || request->size < sizeof(*request) || request->stamp == NULL)
		return call_no_argument("request", err);
	if (request->id_count != 0 && (request->ids == NULL || request->seqs == NULL))
		return call_no_argument("place for seqs", err);
	if (request->source.len != 0 && (request->create == 0 || !call_part_ok(request->source)))
		return err_set(err, SHEAF_INVALID,
		               "only creating has a source, and its key is encoded");
	if (request->durability < SHEAF_DURABILITY_DEFAULT ||
	    request->durability > SHEAF_DURABILITY_REPLICA)
		return err_set(err, SHEAF_INVALID, "there is no durability %d",
		               request->durability);
	if (request->user_state_count != 0 && s->ops.state_read == NULL)
		return call_no_slot(s, "keep state", err);
	return check_durability(s, request->durability, err);
}

static int append(sheaf_store *s, const sheaf_store_key *key, const sheaf_append_request *given,
                  sheaf_append_reply *reply, sheaf_error *err)
{
	sheaf_append_request request = *given;
	if (request.durability == SHEAF_DURABILITY_DEFAULT)
		request.durability = s->durability;
	if (request.deadline_us == 0)
		request.deadline_us = call_deadline_from_now(s->deadline_us);
	if (request.id_count != 0)
		memset(request.seqs, 0, request.id_count * sizeof(*request.seqs));
	int rc = s->ops.append(s->backend, key, &request, reply, err);
	if (rc != 0 || reply->known != 0)
		return rc;
	if (reply->durability == SHEAF_DURABILITY_DEFAULT)
		reply->durability = request.durability;
	if (reply->durability >= request.durability)
		return 0;
	rc = err_set(err, SHEAF_STORAGE, "stored with durability %s where %s was asked for",
	             sheaf_durability_name(reply->durability),
	             sheaf_durability_name(request.durability));
	return err_unknown(err, rc);
}

int store_append(sheaf_store *s, const sheaf_store_key *key, sheaf_append_request *request,
                 sheaf_append_reply *reply, sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	sheaf_append_reply unwanted;
	if (reply == NULL)
		reply = &unwanted;
	memset(reply, 0, sizeof(*reply));
	int rc = call_check_writable(s, err);
	if (rc == 0)
		rc = call_check_key(key, err);
	if (rc == 0)
		rc = check_append(s, request, err);
	if (rc == 0)
		rc = call_fault_point("append", err);
	if (rc == 0)
		rc = append(s, key, request, reply, err);
	return call_finish(&c, rc);
}

int store_remove(sheaf_store *s, const sheaf_store_key *key, sheaf_remove_request *request,
                 sheaf_remove_reply *reply, sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	sheaf_remove_reply unwanted;
	if (reply == NULL)
		reply = &unwanted;
	memset(reply, 0, sizeof(*reply));
	int rc = call_check_writable(s, err);
	if (rc == 0)
		rc = call_check_key(key, err);
	if (rc == 0 && (request == NULL || request->size < sizeof(*request)))
		rc = call_no_argument("request", err);
	if (rc == 0)
		rc = call_fault_point("remove", err);
	if (rc == 0) {
		sheaf_remove_request filled = *request;
		if (filled.deadline_us == 0)
			filled.deadline_us = call_deadline_from_now(s->deadline_us);
		rc = s->ops.remove(s->backend, key, &filled, reply, err);
	}
	return call_finish(&c, rc);
}

int store_replace(sheaf_store *s, const sheaf_store_key *key, uint64_t revision, sheaf_rows_fn next,
                  void *ctx, sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = call_check_writable(s, err);
	if (rc == 0)
		rc = call_check_key(key, err);
	if (rc == 0 && next == NULL)
		rc = call_no_argument("callback", err);
	if (rc == 0)
		rc = call_fault_point("replace", err);
	if (rc == 0)
		rc = s->ops.replace(s->backend, key, revision, next, ctx,
		                    call_deadline_from_now(s->deadline_us), err);
	return call_finish(&c, rc);
}

int store_repair(sheaf_store *s, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
                 sheaf_check_totals *totals, sheaf_error *err)
{
	call c;
	err = call_begin(&c, err);
	int rc = call_check_store(s, err);
	if (rc == 0 && s->ops.repair == NULL)
		rc = call_no_slot(s, "repair", err);
	if (rc == 0)
		rc = call_check_writable(s, err);
	if (rc == 0)
		rc = call_check_key(key, err);
	if (rc == 0 && (fn == NULL || totals == NULL))
		rc = call_no_argument("callback or place", err);
	if (rc == 0)
		rc = call_fault_point("repair", err);
	if (rc == 0) {
		memset(totals, 0, sizeof(*totals));
		rc = s->ops.repair(s->backend, key, fn, ctx, totals,
		                   call_deadline_from_now(s->deadline_us), err);
	}
	return call_finish(&c, rc);
}
