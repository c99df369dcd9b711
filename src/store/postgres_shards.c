/*
 * A store on many databases: a map says which has which of 4,096 virtual
 * shards, and the table of `postgres+shards:`.
 *
 * The shard of an owner is fixed for ever; the map is a file that may change.
 * Every statement names the shard it expects, and a server where it does not
 * live answers so: then the file is read again, once, and the call repeated.
 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>

#include "base/io.h"
#include "base/mem.h"
#include "store/postgres.h"

#ifdef SHEAF_POSTGRES_SHARDS

#define SHARDS 4096u
#define SERVERS_MAX 1024u
#define MAP_BYTES_MAX ((size_t)1 << 20)

/* A server of a map. It lives as long as the store: calls may be under way when a map goes. */
typedef struct home {
	char *url;
	bool ready; /* its schema was looked at */
	pg_server server;
} home;

typedef struct shard_map {
	uint64_t version;
	home *homes[SHARDS];
} shard_map;

typedef struct shards {
	char *path;
	sheaf_store_options options;
	char prefix[PG_PREFIX_ROOM];
	char pool[8];
	bool migrate;
	pthread_mutex_t mutex;
	shard_map map;
	home *homes[SERVERS_MAX];
	size_t count;
	int32_t durability_max;
} shards;

static uint32_t shard_of(sheaf_str owner)
{
	static const unsigned char zero[crypto_shorthash_KEYBYTES];
	unsigned char hash[crypto_shorthash_BYTES];
	(void)crypto_shorthash(hash, (const unsigned char *)owner.ptr, owner.len, zero);
	return ((uint32_t)hash[0] | (uint32_t)hash[1] << 8) & (SHARDS - 1);
}

/* ---- URLs inside a map -------------------------------------------------------- */

/* A URL of the map, cut into the rest and its options. */
typedef struct map_url {
	const shards *s;
	char *text;
	sheaf_str rest;
	char *query;
	char value[512];
} map_url;

/* Options of the map's URLs; prefix and pool may be said once, for all, in the store's. */
static sheaf_str map_option(const void *url, const char *name)
{
	const map_url *u = url;
	size_t len = strlen(name);
	for (char *p = u->query; p != NULL && *p != '\0';) {
		size_t n = strcspn(p, "&");
		if (n > len && p[len] == '=' && memcmp(p, name, len) == 0) {
			map_url *room = (map_url *)(uintptr_t)u;
			str_copy_cut(room->value, sizeof(room->value),
			             str_make(p + len + 1, n - len - 1));
			return sheaf_str_of(room->value);
		}
		p += n + (p[n] == '&');
	}
	if (strcmp(name, "prefix") == 0 && u->s->prefix[0] != '\0')
		return sheaf_str_of(u->s->prefix);
	if (strcmp(name, "pool") == 0 && u->s->pool[0] != '\0')
		return sheaf_str_of(u->s->pool);
	return (sheaf_str){NULL, 0};
}

static int home_init(const shards *s, home *h, sheaf_error *err)
{
	_cleanup_(mem_freep) char *text = mem_dup(h->url, strlen(h->url));
	if (text == NULL)
		return err_nomem(err);
	if (strncmp(text, "postgres:", 9) != 0)
		return err_set(err, SHEAF_FORMAT,
		               "a shard lives at a URL that begins with postgres:");
	map_url u = {.s = s, .text = text, .query = strchr(text, '?')};
	if (u.query != NULL)
		*u.query++ = '\0';
	u.rest = sheaf_str_of(text + 9);
	return pg_server_init(&h->server, u.rest, &s->options, map_option, &u, err);
}

/* The server of a URL, made if it is new. */
static int home_find(shards *s, sheaf_str url, home **out, sheaf_error *err)
{
	for (size_t i = 0; i < s->count; i++) {
		if (str_is(url, s->homes[i]->url)) {
			*out = s->homes[i];
			return 0;
		}
	}
	if (s->count == SERVERS_MAX)
		return err_set(err, SHEAF_LIMIT, "a map names at most %u servers", SERVERS_MAX);
	home *h = mem_zalloc(sizeof(*h));
	if (h == NULL)
		return err_nomem(err);
	h->url = mem_dup(url.ptr, url.len);
	int rc = h->url != NULL ? home_init(s, h, err) : err_nomem(err);
	if (rc != 0) {
		pg_server_free(&h->server);
		mem_free(h->url);
		mem_free(h);
		return rc;
	}
	s->homes[s->count++] = h;
	*out = h;
	return 0;
}

/* ---- The map -------------------------------------------------------------------- */

static int read_file(const char *path, buf *out, sheaf_error *err)
{
	_cleanup_(io_closep) int fd = io_open_root(path, O_RDONLY, 0);
	if (fd < 0)
		return err_sys(err, errno == EACCES ? SHEAF_DENIED : SHEAF_STORAGE, errno,
		               "the map of shards");
	if (buf_reserve(out, MAP_BYTES_MAX) != 0)
		return buf_status(out, err);
	ssize_t n = io_pread_full(fd, out->ptr, MAP_BYTES_MAX, 0);
	if (n < 0)
		return err_sys(err, SHEAF_STORAGE, errno, "the map of shards");
	if ((size_t)n == MAP_BYTES_MAX)
		return err_set(err, SHEAF_TOO_LARGE, "the map of shards is too large");
	out->len = (size_t)n;
	out->ptr[n] = '\0';
	return 0;
}

static int bad_line(int line, const char *why, sheaf_error *err)
{
	return err_set(err, SHEAF_FORMAT, "the map of shards, line %d: %s", line, why);
}

/* "0-2047 postgres://…" */
static int read_range(shards *s, shard_map *to, char *text, int line, sheaf_error *err)
{
	char *end;
	unsigned long first = strtoul(text, &end, 10), last = first;
	if (end == text)
		return bad_line(line, "no number of a shard", err);
	if (*end == '-') {
		char *from = end + 1;
		last = strtoul(from, &end, 10);
		if (end == from)
			return bad_line(line, "no number after the dash", err);
	}
	if (first > last || last >= SHARDS || (*end != ' ' && *end != '\t'))
		return bad_line(line, "shards are 0-4095, then a blank and a URL", err);
	end += strspn(end, " \t");
	home *h = NULL;
	int rc = home_find(s, str_make(end, strcspn(end, " \t\r")), &h, err);
	for (unsigned long i = first; rc == 0 && i <= last; i++) {
		if (to->homes[i] != NULL)
			return bad_line(line, "a shard is there twice", err);
		to->homes[i] = h;
	}
	return rc;
}

static int parse_map(shards *s, shard_map *to, char *text, sheaf_error *err)
{
	bool has_version = false;
	int line = 1, rc = 0;
	for (char *p = text; rc == 0 && *p != '\0'; line++) {
		size_t n = strcspn(p, "\n");
		char *next = p[n] == '\n' ? p + n + 1 : p + n;
		p[n] = '\0';
		if (strncmp(p, "version ", 8) == 0) {
			to->version = strtoull(p + 8, NULL, 10);
			has_version = to->version != 0;
		} else if (p[0] != '#' && p[strspn(p, " \t\r")] != '\0') {
			rc = read_range(s, to, p, line, err);
		}
		p = next;
	}
	if (rc == 0 && !has_version)
		rc = err_set(err, SHEAF_FORMAT, "the map of shards has no version");
	for (size_t i = 0; rc == 0 && i < SHARDS; i++) {
		if (to->homes[i] == NULL)
			rc = err_set(err, SHEAF_FORMAT, "the map of shards has no place for %zu",
			             i);
	}
	return rc;
}

/* Reads the file; a map older than the one there is stays out. The mutex is held, or nobody else
 * knows the store yet. */
static int load_map(shards *s, sheaf_error *err)
{
	_cleanup_(buf_free) buf text = BUF_INIT(MAP_BYTES_MAX + 1);
	_cleanup_(mem_freep) shard_map *to = mem_zalloc(sizeof(*to));
	if (to == NULL)
		return err_nomem(err);
	int rc = read_file(s->path, &text, err);
	if (rc == 0)
		rc = parse_map(s, to, text.ptr, err);
	if (rc == 0 && to->version >= s->map.version)
		s->map = *to;
	return rc;
}

/* Tells a server which shards live there, unless it has been told otherwise before. */
static int settle_shards(const shards *s, home *h, sheaf_error *err)
{
	_cleanup_(buf_free) buf sql = BUF_INIT(MAP_BYTES_MAX);
	buf_format(&sql, "INSERT INTO \"%sshard\" (shard, state) SELECT n, 'normal' FROM unnest('{",
	           h->server.prefix);
	bool first = true;
	for (size_t i = 0; i < SHARDS; i++) {
		if (s->map.homes[i] != h)
			continue;
		buf_format(&sql, "%s%zu", first ? "" : ",", i);
		first = false;
	}
	buf_lit(&sql, "}'::integer[]) n ON CONFLICT (shard) DO NOTHING");
	buf_nul(&sql);
	int rc = buf_status(&sql, err);
	pg_end end;
	pg_conn *c = rc == 0 && !first
	                     ? pg_conn_open(&h->server, pg_deadline(&h->server), &end, err)
	                     : NULL;
	if (c == NULL)
		return rc != 0 || first ? rc : err->code;
	PGresult *r = NULL;
	end = pg_conn_sql(c, sql.ptr, pg_deadline(&h->server), &r, err);
	PQclear(r);
	pg_conn_close(c);
	return end == PG_DONE ? 0 : err->code;
}

/* Looks at a server before its first use. The mutex is held, or nobody knows the store yet. */
static int make_ready(shards *s, home *h, sheaf_error *err)
{
	if (h->ready)
		return 0;
	int rc = pg_prepare_server(&h->server, s->migrate, err);
	if (rc == 0 && s->migrate)
		rc = settle_shards(s, h, err);
	h->ready = rc == 0;
	if (rc == 0 && h->server.durability_max < s->durability_max)
		s->durability_max = h->server.durability_max;
	return rc;
}

/* ---- Opening ---------------------------------------------------------------------- */

static void shards_close(void *backend)
{
	shards *s = backend;
	for (size_t i = 0; i < s->count; i++) {
		pg_server_free(&s->homes[i]->server);
		mem_free(s->homes[i]->url);
		mem_free(s->homes[i]);
	}
	(void)pthread_mutex_destroy(&s->mutex);
	mem_free(s->path);
	mem_free(s);
}

static int shards_new(shards **out, sheaf_str rest, const sheaf_store_options *options,
                      pg_option_fn option, const void *url, sheaf_error *err)
{
	if (rest.len == 0 || rest.ptr[0] != '/')
		return err_set(err, SHEAF_INVALID,
		               "the map of shards is named by an absolute path");
	shards *s = mem_zalloc(sizeof(*s));
	if (s == NULL)
		return err_nomem(err);
	(void)pthread_mutex_init(&s->mutex, NULL);
	s->durability_max = SHEAF_DURABILITY_REPLICA;
	if (options != NULL)
		s->options = *options;
	s->migrate = str_is(option(url, "migrate"), "1");
	str_copy_cut(s->prefix, sizeof(s->prefix), option(url, "prefix"));
	str_copy_cut(s->pool, sizeof(s->pool), option(url, "pool"));
	s->path = mem_dup(rest.ptr, rest.len);
	int rc = s->path != NULL ? load_map(s, err) : err_nomem(err);
	if (rc != 0) {
		shards_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

static int shards_open(void **backend, sheaf_str rest, const sheaf_store_options *options,
                       pg_option_fn option, const void *url, sheaf_error *err)
{
	shards *s = NULL;
	int rc = shards_new(&s, rest, options, option, url, err);
	for (size_t i = 0; rc == 0 && i < s->count; i++)
		rc = make_ready(s, s->homes[i], err);
	if (rc != 0) {
		if (s != NULL)
			shards_close(s);
		return rc;
	}
	*backend = s;
	return 0;
}

static void shards_describe(void *backend, sheaf_store_info *out)
{
	const shards *s = backend;
	out->durability_max = s->durability_max;
	out->durability = s->durability_max < SHEAF_DURABILITY_DISK ? s->durability_max
	                                                            : SHEAF_DURABILITY_DISK;
	out->lists_app = 1;
	out->remote = 1;
}

static int shards_migrate(sheaf_str rest, const sheaf_store_options *options, pg_option_fn option,
                          const void *url, int print, sheaf_text_fn fn, void *ctx, sheaf_error *err)
{
	shards *s = NULL;
	int rc = shards_new(&s, rest, options, option, url, err);
	if (rc != 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < (print != 0 ? 1 : s->count); i++) {
		rc = pg_migrate(&s->homes[i]->server, print, fn, ctx, err);
		if (rc == 0 && print == 0)
			rc = settle_shards(s, s->homes[i], err);
	}
	shards_close(s);
	return rc;
}

/* ---- Calls of one owner -------------------------------------------------------------- */

static int find_place(shards *s, sheaf_str owner, pg_place *out, sheaf_error *err)
{
	uint32_t shard = shard_of(owner);
	(void)pthread_mutex_lock(&s->mutex);
	home *h = s->map.homes[shard];
	int rc = make_ready(s, h, err);
	(void)pthread_mutex_unlock(&s->mutex);
	*out = (pg_place){&h->server, (int32_t)shard};
	return rc;
}

/* Whether a call that was told WRONG_SHARD should be made once more, with the map read anew: not one
 * that may have been carried out before the shard went. */
static bool moved(shards *s, int rc, int *tries, sheaf_error *err)
{
	sheaf_error local;
	if (rc != SHEAF_WRONG_SHARD || err->outcome == SHEAF_UNKNOWN || (*tries)++ != 0)
		return false;
	(void)pthread_mutex_lock(&s->mutex);
	rc = load_map(s, &local);
	(void)pthread_mutex_unlock(&s->mutex);
	if (rc != 0)
		err_hint(err, "%.100s", local.message);
	return rc == 0;
}

/*
 * `call` is made with `at` where the owner lives, once more if `tries` is still
 * 0. A callback that was given something sets it: it must not get that twice.
 */
#define ROUTED(owner, call)                                                                        \
	do {                                                                                       \
		pg_place at;                                                                       \
		int tries = 0, rc;                                                                 \
		do {                                                                               \
			rc = find_place(backend, (owner), &at, err);                               \
			if (rc == 0)                                                               \
				rc = (call);                                                       \
		} while (moved(backend, rc, &tries, err));                                         \
		return rc;                                                                         \
	} while (0)

/* Rows on their way to a callback. */
typedef struct passing {
	sheaf_row_fn fn;
	void *ctx;
	int *tries; /* none is left once a row was given */
} passing;

static int pass_row(void *ctx, const sheaf_row *row)
{
	passing *p = ctx;
	*p->tries = 1;
	return p->fn(p->ctx, row);
}

static int shards_head(void *backend, const sheaf_store_key *key, UNUSED int write, sheaf_head *out,
                       sheaf_head_state *state, sheaf_error *err)
{
	ROUTED(key->owner, pg_head(at, key, out, state, err));
}

static int shards_append(void *backend, const sheaf_store_key *key,
                         const sheaf_append_request *request, sheaf_append_reply *reply,
                         sheaf_error *err)
{
	ROUTED(key->owner, pg_append(at, key, request, reply, err));
}

static int shards_scan(void *backend, const sheaf_store_key *key, const sheaf_scan *scan,
                       sheaf_row_fn fn, void *ctx, sheaf_error *err)
{
	passing p = {fn, ctx, NULL};
	ROUTED(key->owner, (p.tries = &tries, pg_scan(at, key, scan, pass_row, &p, err)));
}

static int shards_read(void *backend, const sheaf_store_key *key, const sheaf_scan *scan,
                       sheaf_head *out, sheaf_head_state *state, sheaf_row_fn fn, void *ctx,
                       sheaf_error *err)
{
	passing p = {fn, ctx, NULL};
	ROUTED(key->owner,
	       (p.tries = &tries, pg_read(at, key, scan, out, state, pass_row, &p, err)));
}

static int shards_find(void *backend, const sheaf_store_key *key, sheaf_str id, uint64_t *seq,
                       sheaf_error *err)
{
	ROUTED(key->owner, pg_find(at, key, id, seq, err));
}

static int shards_header(void *backend, const sheaf_store_key *key, sheaf_row_fn fn, void *ctx,
                         sheaf_error *err)
{
	ROUTED(key->owner, pg_header(at, key, fn, ctx, err));
}

static int shards_remove(void *backend, const sheaf_store_key *key,
                         const sheaf_remove_request *request, sheaf_remove_reply *reply,
                         sheaf_error *err)
{
	ROUTED(key->owner, pg_remove(at, key, request, reply, err));
}

static int shards_replace(void *backend, const sheaf_store_key *key, uint64_t revision,
                          sheaf_rows_fn next, void *ctx, int64_t deadline_us, sheaf_error *err)
{
	ROUTED(key->owner, pg_replace(at, key, revision, next, ctx, deadline_us, err));
}

static int shards_state_read(void *backend, sheaf_str scope, int app, sheaf_state_fn fn, void *ctx,
                             sheaf_error *err)
{
	ROUTED(scope, pg_state_read(at, scope, app, fn, ctx, err));
}

static int shards_state_apply(void *backend, sheaf_str app, const sheaf_state_item *items,
                              size_t count, int64_t deadline_us, sheaf_error *err)
{
	ROUTED(app, pg_state_apply(at, app, items, count, deadline_us, err));
}

static int shards_queue_put(void *backend, const sheaf_store_key *key, const sheaf_queue_row *row,
                            int64_t deadline_us, int32_t *existed, sheaf_error *err)
{
	ROUTED(key->owner, pg_queue_put(at, key, row, deadline_us, existed, err));
}

static int shards_queue_claim(void *backend, const sheaf_store_key *key, const sheaf_claim *claim,
                              sheaf_queue_fn fn, void *ctx, sheaf_error *err)
{
	ROUTED(key->owner, pg_queue_claim(at, key, claim, fn, ctx, err));
}

static int shards_queue_ack(void *backend, const sheaf_store_key *key, sheaf_str token,
                            int64_t deadline_us, size_t *count, sheaf_error *err)
{
	ROUTED(key->owner, pg_queue_ack(at, key, token, deadline_us, count, err));
}

static int shards_queue_cancel(void *backend, const sheaf_store_key *key, sheaf_str id,
                               int64_t deadline_us, int32_t *existed, sheaf_error *err)
{
	ROUTED(key->owner, pg_queue_cancel(at, key, id, deadline_us, existed, err));
}

static int shards_queue_list(void *backend, const sheaf_store_key *key, sheaf_queue_fn fn,
                             void *ctx, sheaf_error *err)
{
	ROUTED(key->owner, pg_queue_list(at, key, fn, ctx, err));
}

/* ---- Calls on all of them ---------------------------------------------------------------- */

/* The servers that the map names now. */
static int live_homes(shards *s, home **out, size_t *count, sheaf_error *err)
{
	int rc = 0;
	*count = 0;
	(void)pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; rc == 0 && i < s->count; i++) {
		for (size_t n = 0; n < SHARDS; n++) {
			if (s->map.homes[n] != s->homes[i])
				continue;
			out[(*count)++] = s->homes[i];
			rc = make_ready(s, s->homes[i], err);
			break;
		}
	}
	(void)pthread_mutex_unlock(&s->mutex);
	return rc;
}

static bool lives_at(shards *s, sheaf_str owner, const pg_server *server)
{
	(void)pthread_mutex_lock(&s->mutex);
	bool here = &s->map.homes[shard_of(owner)]->server == server;
	(void)pthread_mutex_unlock(&s->mutex);
	return here;
}

/* Passes on what lives on the server that is asked: what was moved away may still lie there. */
typedef struct filter {
	shards *s;
	const pg_server *server;
	sheaf_info_fn fn;
	void *ctx;
	bool stopped;
} filter;

static int filter_info(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	filter *f = ctx;
	if (!lives_at(f->s, key->owner, f->server))
		return 0;
	int rc = f->fn(f->ctx, key, info);
	f->stopped = rc != 0;
	return rc;
}

static int shards_list_merged(shards *s, const sheaf_list_query *query, home **homes, size_t count,
                              sheaf_info_fn fn, void *ctx, sheaf_error *err)
{
	_cleanup_(mem_freep) pg_lister **listers = mem_zalloc((count + 1) * sizeof(*listers));
	int rc = listers != NULL ? 0 : err_nomem(err);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		rc = pg_lister_new(&listers[i], (pg_place){&homes[i]->server, -1}, query, err);
	}
	while (rc == 0) {
		size_t best = count;
		for (size_t i = 0; rc == 0 && i < count; i++) {
			rc = pg_lister_fill(listers[i], err);
			if (rc == 0 && pg_lister_has(listers[i]) &&
			    (best == count || pg_lister_before(listers[i], listers[best])))
				best = i;
		}
		if (rc != 0 || best == count)
			break;
		filter f = {s, &homes[best]->server, fn, ctx, false};
		rc = pg_lister_give(listers[best], filter_info, &f, err);
	}
	for (size_t i = 0; listers != NULL && i < count; i++)
		pg_lister_free(listers[i]);
	return rc < 0 ? rc : 0;
}

/* Sessions on their way to a callback. */
typedef struct passing_info {
	sheaf_info_fn fn;
	void *ctx;
	int *tries;
} passing_info;

static int pass_info(void *ctx, const sheaf_store_key *key, const sheaf_session_info *info)
{
	passing_info *p = ctx;
	*p->tries = 1;
	return p->fn(p->ctx, key, info);
}

static int shards_list(void *backend, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
                       sheaf_error *err)
{
	shards *s = backend;
	if (query->app.ptr != NULL && query->user.ptr != NULL) {
		_cleanup_(buf_free) buf owner = BUF_INIT(1024);
		buf_str(&owner, query->app);
		buf_char(&owner, '/');
		buf_str(&owner, query->user);
		if (buf_status(&owner, err) != 0)
			return err->code;
		passing_info p = {fn, ctx, NULL};
		ROUTED(buf_view(&owner),
		       (p.tries = &tries, pg_list(at, query, pass_info, &p, err)));
	}
	_cleanup_(mem_freep) home **homes = mem_alloc(SERVERS_MAX * sizeof(*homes));
	size_t count = 0;
	int rc = homes != NULL ? live_homes(s, homes, &count, err) : err_nomem(err);
	return rc == 0 ? shards_list_merged(s, query, homes, count, fn, ctx, err) : rc;
}

typedef struct check_all {
	shards *s;
	sheaf_problem_fn fn;
	void *ctx;
	sheaf_check_totals *totals;
	sheaf_error *err;
} check_all;

static int check_one(void *ctx, const sheaf_store_key *key, UNUSED const sheaf_session_info *info)
{
	check_all *k = ctx;
	sheaf_check_totals one = {0};
	pg_place at;
	int rc = find_place(k->s, key->owner, &at, k->err);
	if (rc == 0)
		rc = pg_check(at, key, k->fn, k->ctx, &one, k->err);
	if (rc == SHEAF_NOT_FOUND)
		return 0; /* deleted meanwhile */
	k->totals->sessions += one.sessions;
	k->totals->records += one.records;
	k->totals->bytes += one.bytes;
	return rc;
}

static int shards_check(void *backend, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
                        sheaf_check_totals *totals, sheaf_error *err)
{
	if (key != NULL)
		ROUTED(key->owner, pg_check(at, key, fn, ctx, totals, err));
	check_all k = {backend, fn, ctx, totals, err};
	sheaf_list_query all = {.size = sizeof(all), .hidden = 1};
	return shards_list(backend, &all, check_one, &k, err);
}

SHEAF_API const sheaf_store_ops sheaf_store_module = {
	.size = sizeof(sheaf_store_ops),
	.scheme = "postgres+shards",
	.open = shards_open,
	.option_names = "prefix migrate pool",
	.close = shards_close,
	.describe = shards_describe,
	.head = shards_head,
	.append = shards_append,
	.scan = shards_scan,
	.find = shards_find,
	.header = shards_header,
	.list = shards_list,
	.remove = shards_remove,
	.replace = shards_replace,
	.check = shards_check,
	.state_read = shards_state_read,
	.state_apply = shards_state_apply,
	.queue_put = shards_queue_put,
	.queue_claim = shards_queue_claim,
	.queue_ack = shards_queue_ack,
	.queue_cancel = shards_queue_cancel,
	.queue_list = shards_queue_list,
	.migrate = shards_migrate,
	.read = shards_read,
};

#endif
