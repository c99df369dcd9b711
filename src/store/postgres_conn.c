/* One connection: what a URL says about it, opening it, and one statement with a deadline. */
#include <poll.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "store/postgres.h"

#define HOST_WAIT_US (INT64_C(3) * 1000000) /* for one of several hosts */
#define CANCEL_WAIT_US (INT64_C(1) * 1000000)
#define SERVER_VERSION_LEAST 130000
#define SETTINGS_MAX 64u

const char pg_option_names[] =
	"prefix migrate pool host hostaddr port dbname user password passfile service "
	"connect_timeout application_name options target_session_attrs tcp_user_timeout "
	"keepalives keepalives_idle keepalives_interval keepalives_count sslmode sslcert sslkey "
	"sslrootcert sslcrl sslpassword ssl_min_protocol_version channel_binding gssencmode "
	"krbsrvname requirepeer";

/* ---- Settings ---------------------------------------------------------------- */

static const char *setting(const pg_server *s, const char *keyword)
{
	for (const PQconninfoOption *o = s->info; o != NULL && o->keyword != NULL; o++) {
		if (strcmp(o->keyword, keyword) == 0)
			return o->val;
	}
	return NULL;
}

/* The URL again, with the options that are libpq's. */
static int join_url(buf *out, sheaf_str rest, pg_option_fn option, const void *url,
                    sheaf_error *err)
{
	if (rest.len != 0 && !str_starts(rest, "//")) {
		int rc = err_set(err, SHEAF_INVALID,
		                 "the URL of a database begins with postgres://");
		err_hint(err, "postgres://user@host:port/database?migrate=1");
		return rc;
	}
	buf_lit(out, "postgres:");
	buf_str(out, rest.len != 0 ? rest : SHEAF_STR("//"));
	char mark = '?';
	for (const char *p = pg_option_names; *p != '\0';) {
		char name[64];
		size_t n = strcspn(p, " ");
		str_copy_cut(name, sizeof(name), str_make(p, n));
		p += n + strspn(p + n, " ");
		sheaf_str value = option(url, name);
		if (value.ptr == NULL || strcmp(name, "prefix") == 0 ||
		    strcmp(name, "migrate") == 0 || strcmp(name, "pool") == 0)
			continue;
		buf_format(out, "%c%s=", mark, name);
		for (size_t i = 0; i < value.len; i++)
			buf_format(out, "%%%02X", (unsigned char)value.ptr[i]);
		mark = '&';
	}
	buf_nul(out);
	return buf_status(out, err);
}

static int read_prefix(pg_server *s, sheaf_str given, sheaf_error *err)
{
	sheaf_str prefix = given.ptr != NULL ? given : SHEAF_STR("sheaf_");
	bool ok = prefix.len >= 1 && prefix.len < PG_PREFIX_ROOM;
	for (size_t i = 0; ok && i < prefix.len; i++) {
		char c = prefix.ptr[i];
		ok = (c >= 'a' && c <= 'z') || c == '_' || (i > 0 && c >= '0' && c <= '9');
	}
	if (!ok)
		return err_set(err, SHEAF_INVALID, "a prefix is spelled [a-z_][a-z0-9_]{0,30}");
	str_copy_cut(s->prefix, sizeof(s->prefix), prefix);
	return 0;
}

static int read_pool(pg_server *s, sheaf_str given, sheaf_error *err)
{
	s->most = given.ptr != NULL ? 0 : PG_POOL_DEFAULT;
	for (size_t i = 0; i < given.len && s->most <= PG_POOL_MAX; i++) {
		char c = given.ptr[i];
		if (c < '0' || c > '9')
			s->most = PG_POOL_MAX + 1;
		else
			s->most = s->most * 10 + (unsigned)(c - '0');
	}
	if (s->most < 1 || s->most > PG_POOL_MAX)
		return err_set(err, SHEAF_INVALID, "a pool has 1 to %u connections", PG_POOL_MAX);
	return 0;
}

/* ---- Statements -------------------------------------------------------------- */

static const struct {
	const char *function;
	int args;
} functions[PG_STATEMENTS] = {
	[PG_APPEND] = {"append", 30},
	[PG_HEAD] = {"get_head", 4},
	[PG_FIND] = {"find", 5},
	[PG_SCAN] = {"scan", 12},
	[PG_HEADER] = {"get_header", 4},
	[PG_LIST] = {"list", 9},
	[PG_LIST_EXPIRED] = {"list_expired", 8},
	[PG_READERS] = {"readers", 4},
	[PG_REMOVE] = {"remove", 6},
	[PG_HIDE] = {"hide", 11},
	[PG_REPLACE_BEGIN] = {"replace_begin", 5},
	[PG_ADD_ROWS] = {"add_rows", 8},
	[PG_REPLACE_FINISH] = {"replace_finish", 14},
	[PG_READ_STATE] = {"read_state", 3},
	[PG_APPLY_STATE] = {"apply_state", 7},
	[PG_QUEUE_PUT] = {"queue_put", 9},
	[PG_QUEUE_LIST] = {"queue_list", 4},
	[PG_QUEUE_CLAIM] = {"queue_claim", 9},
	[PG_QUEUE_ACK] = {"queue_ack", 5},
	[PG_QUEUE_CANCEL] = {"queue_cancel", 5},
};

/* A name says which text it stands for: behind a pooler it may have been prepared by others. */
static int make_texts(pg_server *s, sheaf_error *err)
{
	for (int i = 0; i < PG_STATEMENTS; i++) {
		_cleanup_(buf_free) buf b = BUF_INIT(sizeof(s->texts[i].sql) - 1);
		buf_format(&b, "SELECT * FROM \"%s%s\"(", s->prefix, functions[i].function);
		for (int n = 1; n <= functions[i].args; n++)
			buf_format(&b, "%s$%d", n > 1 ? "," : "", n);
		buf_lit(&b, ")");
		int rc = buf_status(&b, err);
		if (rc != 0)
			return rc;
		str_copy_cut(s->texts[i].sql, sizeof(s->texts[i].sql), buf_view(&b));
		uint64_t hash = str_hash(buf_view(&b));
		buf_reset(&b);
		buf_format(&b, "sheaf%d_%016llx", PG_SCHEMA_VERSION, (unsigned long long)hash);
		str_copy_cut(s->texts[i].name, sizeof(s->texts[i].name), buf_view(&b));
	}
	return 0;
}

int pg_server_init(pg_server *s, sheaf_str rest, const sheaf_store_options *options,
                   pg_option_fn option, const void *url, sheaf_error *err)
{
	memset(s, 0, sizeof(*s));
	s->deadline_us = options != NULL && options->deadline_us > 0 ? options->deadline_us
	                                                             : PG_DEADLINE_US;
	s->durability_max = SHEAF_DURABILITY_DISK;
	int rc = read_prefix(s, option(url, "prefix"), err);
	if (rc == 0)
		rc = read_pool(s, option(url, "pool"), err);
	if (rc == 0)
		rc = make_texts(s, err);
	_cleanup_(buf_free) buf text = BUF_INIT(65536);
	if (rc == 0)
		rc = join_url(&text, rest, option, url, err);
	if (rc != 0)
		return rc;
	char *why = NULL;
	s->info = PQconninfoParse(text.ptr, &why);
	if (s->info == NULL) {
		/* Not the reason itself: it may quote a password. */
		PQfreemem(why);
		return err_set(err, SHEAF_INVALID, "the URL of the database cannot be read");
	}
	pthread_condattr_t attributes;
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&s->freed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	(void)pthread_mutex_init(&s->mutex, NULL);
	return 0;
}

int64_t pg_deadline(const pg_server *s)
{
	return clock_monotonic_us() + s->deadline_us;
}

/* ---- What errors mean ---------------------------------------------------------- */

static bool state_is(const char *state, const char *what)
{
	return strncmp(state, what, strlen(what)) == 0;
}

static const struct {
	const char *state; /* the beginning of an SQLSTATE; the first that fits counts */
	pg_end end;
	int code;
	const char *hint;
} meanings[] = {
	{"SHF01", PG_ERROR, SHEAF_WRONG_SHARD, "the map of shards is out of date"},
	{"SHF02", PG_ERROR, SHEAF_LIMIT, ""},
	{"SHF03", PG_ERROR, SHEAF_NOT_FOUND, ""},
	{"SHF04", PG_ERROR, SHEAF_GONE, ""},
	{"23505", PG_KNOWN, SHEAF_CONFLICT, ""},
	{"40001", PG_AGAIN, SHEAF_BUSY, ""},
	{"40P01", PG_AGAIN, SHEAF_BUSY, ""},
	{"55P03", PG_AGAIN, SHEAF_BUSY, ""},
	{"25006", PG_AGAIN, SHEAF_STORAGE, "this server is read-only"},
	{"0A000", PG_AGAIN, SHEAF_STORAGE, ""}, /* a cached plan of an older schema */
	{"57014", PG_ERROR, SHEAF_TIMEOUT, ""},
	{"57P", PG_LOST, SHEAF_STORAGE, ""},
	{"08", PG_LOST, SHEAF_STORAGE, ""},
	{"28", PG_ERROR, SHEAF_DENIED, ""},
	{"42501", PG_ERROR, SHEAF_DENIED, ""},
	{"42P01", PG_ERROR, SHEAF_FORMAT, "run: sheaf migrate URL"},
	{"42883", PG_ERROR, SHEAF_FORMAT, "run: sheaf migrate URL"},
	{"", PG_ERROR, SHEAF_STORAGE, ""},
};

/* The primary message only: details may quote what is stored. */
static pg_end judge(const pg_conn *c, const PGresult *r, sheaf_error *err)
{
	const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
	const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
	if (state == NULL) { /* libpq's own: the connection broke */
		(void)err_set(err, SHEAF_STORAGE, "the connection to the database broke");
		return PG_LOST;
	}
	size_t i = 0;
	while (!state_is(state, meanings[i].state))
		i++;
	(void)err_set(err, meanings[i].code, "postgres: %s (%s)", text != NULL ? text : "failed",
	              state);
	if (meanings[i].hint[0] != '\0')
		err_hint(err, "%s", meanings[i].hint);
	if (PQstatus(c->pq) == CONNECTION_BAD && meanings[i].end != PG_AGAIN)
		return PG_LOST;
	return meanings[i].end;
}

static void take_notice(void *arg, const PGresult *r)
{
	pg_conn *c = arg;
	const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
	if (severity != NULL && strcmp(severity, "WARNING") == 0)
		c->warned = true;
}

/* ---- Opening ----------------------------------------------------------------- */

void pg_conn_close(pg_conn *c)
{
	PQfinish(c->pq);
	mem_free(c);
}

/* Item `i` of a list with commas, or the only one there is. */
static bool list_item(const char *list, size_t i, char *out, size_t room)
{
	for (size_t at = 0;; at++) {
		size_t n = strcspn(list, ",");
		if (at == i) {
			str_copy_cut(out, room, str_make(list, n));
			return true;
		}
		if (list[n] == '\0')
			return false;
		list += n + 1;
	}
}

static PGconn *start(const pg_server *s, const char *host, const char *port, bool many)
{
	const char *keywords[SETTINGS_MAX + 5], *values[SETTINGS_MAX + 5];
	size_t n = 0;
	for (const PQconninfoOption *o = s->info; o->keyword != NULL && n < SETTINGS_MAX; o++) {
		if (o->val == NULL)
			continue;
		keywords[n] = o->keyword;
		values[n++] = strcmp(o->keyword, "host") == 0 && host != NULL   ? host
		              : strcmp(o->keyword, "port") == 0 && port != NULL ? port
		                                                                : o->val;
	}
	keywords[n] = "client_encoding";
	values[n++] = "UTF8";
	if (setting(s, "application_name") == NULL) {
		keywords[n] = "fallback_application_name";
		values[n++] = "sheaf";
	}
	if (many && setting(s, "target_session_attrs") == NULL) {
		keywords[n] = "target_session_attrs";
		values[n++] = "read-write";
	}
	keywords[n] = NULL;
	values[n] = NULL;
	return PQconnectStartParams(keywords, values, 0);
}

static bool finish_start(PGconn *pq, int64_t until_us)
{
	short events = POLLOUT;
	for (;;) {
		int64_t left = until_us - clock_monotonic_us();
		if (PQstatus(pq) == CONNECTION_BAD || left <= 0)
			return false;
		if (io_poll(PQsocket(pq), events, left) == 0)
			continue;
		switch (PQconnectPoll(pq)) {
		case PGRES_POLLING_OK:
			return true;
		case PGRES_POLLING_READING:
			events = POLLIN;
			break;
		case PGRES_POLLING_WRITING:
			events = POLLOUT;
			break;
		default:
			return false;
		}
	}
}

/* Whether waiting may help: a server that refuses the user or the database will go on doing so. */
static pg_end judge_refusal(PGconn *pq, sheaf_error *err)
{
	const char *text = PQerrorMessage(pq);
	size_t len = strcspn(text, "\n");
	bool denied = strstr(text, "authentication failed") != NULL ||
	              strstr(text, "no password supplied") != NULL ||
	              strstr(text, "no pg_hba.conf entry") != NULL ||
	              strstr(text, "is not permitted to log in") != NULL;
	bool unknown = strstr(text, "does not exist") != NULL;
	bool absent = unknown && strstr(text, "database \"") != NULL;
	denied = denied || (unknown && strstr(text, "role \"") != NULL);
	(void)err_set(err, denied ? SHEAF_DENIED : SHEAF_STORAGE, "cannot connect: %.*s", (int)len,
	              len != 0 ? text : "no answer in time");
	return denied || absent ? PG_ERROR : PG_AGAIN;
}

static int check_server(PGconn *pq, sheaf_error *err)
{
	const char *encoding = PQparameterStatus(pq, "server_encoding");
	if (PQserverVersion(pq) < SERVER_VERSION_LEAST)
		return err_set(err, SHEAF_UNSUPPORTED, "PostgreSQL 13 or newer is needed");
	if (encoding != NULL && strcmp(encoding, "UTF8") != 0 && strcmp(encoding, "SQL_ASCII") != 0)
		return err_set(err, SHEAF_UNSUPPORTED, "the database is not encoded in UTF-8");
	return 0;
}

static pg_conn *wrap(PGconn *pq, pg_end *end, sheaf_error *err)
{
	pg_conn *c = mem_zalloc(sizeof(*c));
	int rc = c == NULL ? err_nomem(err) : check_server(pq, err);
	if (rc == 0 && PQsetnonblocking(pq, 1) != 0)
		rc = err_nomem(err);
	if (rc != 0) {
		PQfinish(pq);
		mem_free(c);
		*end = PG_ERROR;
		return NULL;
	}
	c->pq = pq;
	(void)PQsetNoticeReceiver(pq, take_notice, c);
	*end = PG_DONE;
	return c;
}

/* Several hosts are tried in turn, each for a while: libpq alone would wait for one that hangs. */
pg_conn *pg_conn_open(pg_server *s, int64_t deadline_us, pg_end *end, sheaf_error *err)
{
	const char *hosts = setting(s, "host"), *ports = setting(s, "port");
	bool many = hosts != NULL && strchr(hosts, ',') != NULL && setting(s, "hostaddr") == NULL;
	*end = PG_AGAIN;
	for (size_t i = 0; i < PG_HOSTS_MAX; i++) {
		char host[256], port[16];
		if (many && !list_item(hosts, i, host, sizeof(host)))
			break;
		bool has_port = many && ports != NULL && ports[0] != '\0' &&
		                (list_item(ports, i, port, sizeof(port)) ||
		                 list_item(ports, 0, port, sizeof(port)));
		int64_t until = clock_monotonic_us() + HOST_WAIT_US;
		if (!many || until > deadline_us)
			until = deadline_us;
		PGconn *pq = start(s, many ? host : NULL, has_port ? port : NULL, many);
		if (pq == NULL) {
			(void)err_nomem(err);
			*end = PG_ERROR;
			return NULL;
		}
		if (finish_start(pq, until))
			return wrap(pq, end, err);
		*end = judge_refusal(pq, err);
		PQfinish(pq);
		if (!many || *end == PG_ERROR)
			break;
	}
	return NULL;
}

/* ---- Running ----------------------------------------------------------------- */

/* PQcancel() talks to the server on its own and cannot be given a deadline, hence the thread. */
static void *cancel_thread(void *arg)
{
	char why[256];
	PGcancel *cancel = arg;
	(void)PQcancel(cancel, why, sizeof(why));
	PQfreeCancel(cancel);
	return NULL;
}

static void cancel(PGconn *pq)
{
	PGcancel *request = PQgetCancel(pq);
	pthread_t thread;
	if (request == NULL)
		return;
	if (pthread_create(&thread, NULL, cancel_thread, request) != 0)
		PQfreeCancel(request);
	else
		(void)pthread_detach(thread);
}

/* Until the answer can be read without waiting: 1; 0 when the time is over; -1 when it broke. */
static int await(PGconn *pq, int64_t until_us)
{
	for (;;) {
		int flushed = PQflush(pq);
		if (flushed < 0)
			return -1;
		if (flushed == 0 && !PQisBusy(pq))
			return 1;
		int64_t left = until_us - clock_monotonic_us();
		if (left <= 0)
			return 0;
		short events = flushed != 0 ? POLLIN | POLLOUT : POLLIN;
		int ready = io_poll(PQsocket(pq), events, left);
		if ((ready & ~POLLOUT) != 0 && PQconsumeInput(pq) == 0)
			return -1;
	}
}

/* No statement of ours copies; the end of such an answer would never come. */
static bool is_copy(const PGresult *r)
{
	ExecStatusType status = PQresultStatus(r);
	return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

/* Reads the answers to what was sent; keeps the first failure, else the last. */
static pg_end collect(pg_conn *c, int64_t deadline_us, PGresult **out, sheaf_error *err)
{
	PGresult *kept = NULL;
	int64_t until = deadline_us;
	bool cancelled = false;
	for (;;) {
		int ready = await(c->pq, until);
		if (ready == 0 && !cancelled) {
			cancel(c->pq);
			cancelled = c->cancelled = true;
			until = clock_monotonic_us() + CANCEL_WAIT_US;
			continue;
		}
		if (ready <= 0) {
			PQclear(kept);
			(void)err_set(err, ready == 0 ? SHEAF_TIMEOUT : SHEAF_STORAGE,
			              ready == 0 ? "the database did not answer in time"
			                         : "the connection to the database broke");
			return PG_LOST;
		}
		PGresult *r = PQgetResult(c->pq);
		if (r == NULL)
			break;
		if (is_copy(r)) {
			PQclear(r);
			PQclear(kept);
			c->cancelled = true; /* it cannot be used again */
			(void)err_set(err, SHEAF_STORAGE, "the database answered nonsense");
			return PG_LOST;
		}
		if (kept != NULL && PQresultStatus(kept) == PGRES_FATAL_ERROR) {
			PQclear(r);
			continue;
		}
		PQclear(kept);
		kept = r;
	}
	ExecStatusType status = kept != NULL ? PQresultStatus(kept) : PGRES_FATAL_ERROR;
	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
		*out = kept;
		return PG_DONE;
	}
	pg_end end = judge(c, kept, err);
	if (cancelled && err->code == SHEAF_TIMEOUT) /* it would say that a user cancelled it */
		(void)err_set(err, SHEAF_TIMEOUT, "the deadline passed before the server answered");
	*out = kept;
	return end;
}

/* Whether a pooler has given us a server that does not know, or knew before us, a statement. */
static bool is_pooler(const PGresult *r)
{
	const char *state = r != NULL ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
	return state != NULL && (strcmp(state, "42P05") == 0 || strcmp(state, "26000") == 0);
}

static pg_end not_sent(const pg_conn *c, sheaf_error *err)
{
	if (PQstatus(c->pq) != CONNECTION_BAD) {
		(void)err_nomem(err);
		return PG_ERROR;
	}
	(void)err_set(err, SHEAF_STORAGE, "the connection to the database broke");
	return PG_AGAIN;
}

static pg_end prepare(pg_server *s, pg_conn *c, pg_statement which, int64_t deadline_us,
                      sheaf_error *err)
{
	_cleanup_(pg_clearp) PGresult *r = NULL;
	const pg_text *text = &s->texts[which];
	if (PQsendPrepare(c->pq, text->name, text->sql, 0, NULL) == 0)
		return not_sent(c, err);
	pg_end end = collect(c, deadline_us, &r, err);
	if (end == PG_ERROR && is_pooler(r)) {
		s->unnamed = true;
		return PG_DONE;
	}
	c->prepared[which] = end == PG_DONE;
	return end == PG_LOST ? PG_AGAIN : end; /* nothing was executed */
}

static pg_end execute(pg_server *s, pg_conn *c, pg_statement which, bool unnamed,
                      const pg_args *args, int64_t deadline_us, PGresult **out, sheaf_error *err)
{
	const char *values[PG_ARGS_MAX];
	int formats[PG_ARGS_MAX];
	for (int i = 0; i < args->count; i++) {
		values[i] = args->len[i] < 0 ? NULL : args->bytes.ptr + args->at[i];
		formats[i] = 1;
	}
	const pg_text *text = &s->texts[which];
	int sent = unnamed ? PQsendQueryParams(c->pq, text->sql, args->count, NULL, values,
	                                       args->len, formats, 1)
	                   : PQsendQueryPrepared(c->pq, text->name, args->count, values, args->len,
	                                         formats, 1);
	if (sent == 0)
		return not_sent(c, err);
	pg_end end = collect(c, deadline_us, out, err);
	/* A warning in an append says that it was stored, but not where it should be. */
	if (end == PG_DONE && c->warned && which == PG_APPEND) {
		PQclear(*out);
		*out = NULL;
		(void)err_set(err, SHEAF_STORAGE, "no standby has confirmed the write");
		return PG_LOST;
	}
	return end;
}

pg_end pg_conn_run(pg_server *s, pg_conn *c, pg_statement which, const pg_args *args,
                   int64_t deadline_us, PGresult **out, sheaf_error *err)
{
	*out = NULL;
	if (buf_status(&args->bytes, err) != 0)
		return PG_ERROR;
	c->warned = false;
	if (!s->unnamed && !c->prepared[which]) {
		pg_end end = prepare(s, c, which, deadline_us, err);
		if (end != PG_DONE)
			return end;
	}
	bool unnamed = s->unnamed;
	pg_end end = execute(s, c, which, unnamed, args, deadline_us, out, err);
	if (end == PG_ERROR && !unnamed && is_pooler(*out)) {
		PQclear(*out);
		*out = NULL;
		s->unnamed = true;
		end = execute(s, c, which, true, args, deadline_us, out, err);
	}
	if (end != PG_DONE) {
		PQclear(*out);
		*out = NULL;
	}
	return end;
}

pg_end pg_conn_sql(pg_conn *c, const char *sql, int64_t deadline_us, PGresult **out,
                   sheaf_error *err)
{
	*out = NULL;
	if (PQsendQuery(c->pq, sql) == 0)
		return not_sent(c, err);
	pg_end end = collect(c, deadline_us, out, err);
	if (end != PG_DONE) {
		PQclear(*out);
		*out = NULL;
	}
	return end;
}
