/* PostgreSQL: appends and the tail of a session, against the bare calls of the same functions. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "bench_pg.h"
#include "sheaf/sys/store.h"

#define OWNER "bench/user"

static sheaf_key key_of(const char *session)
{
	return (sheaf_key){sheaf_str_of("bench"), sheaf_str_of("user"), sheaf_str_of(session)};
}

static sheaf_session *open_session(sheaf_store *store, const char *name)
{
	sheaf_key key = key_of(name);
	sheaf_session *s;
	sheaf_error err;
	bench_check(sheaf_session_open(&s, store, &key, NULL, &err), &err, "open");
	return s;
}

static void append_one(sheaf_session *s)
{
	sheaf_error err;
	bench_check(sheaf_session_append_text(s, "user", (sheaf_str){bench_text(), BENCH_TEXT},
	                                      NULL, &err),
	            &err, "append");
}

/* ---- Appending ---------------------------------------------------------------------------- */

/* The append's call with everything prebuilt: between two calls only numbers and an id change. The
 * head is a real one, which the server does not read; what it compares is revision and mark. */
typedef struct bare_append {
	pg_call call;
	char *revision, *first, *next, *id;
	int64_t at;
} bare_append;

static void bare_append_make(bare_append *x, const pg_side *p, const char *session)
{
	sheaf_session *s = open_session(p->store, session);
	append_one(s);
	append_one(s);
	sheaf_session_close(s);
	char sql[512];
	snprintf(
		sql, sizeof(sql),
		"SELECT s.revision, s.created, s.mark, s.head, s.modified, r.parent, r.kind, r.body"
		" FROM \"%ssession\" s JOIN \"%srecord\" r USING (owner, session)"
		" WHERE s.owner = '" OWNER "' AND s.session = '%s' AND r.seq = s.revision",
		p->prefix, p->prefix, session);
	PGresult *r = PQexecParams(p->admin, sql, 0, NULL, NULL, NULL, NULL, 1);
	pg_call *c = &x->call;
	char parent[8], kind[4];
	int64_t mark = pg_get_int(r, 0, "mark"), created = pg_get_int(r, 0, "created");
	x->at = pg_get_int(r, 0, "revision");
	memcpy(parent, PQgetvalue(r, 0, PQfnumber(r, "parent")), 8);
	memcpy(kind, PQgetvalue(r, 0, PQfnumber(r, "kind")), 4);
	int head = PQfnumber(r, "head"), body = PQfnumber(r, "body");

	pg_call_text(c, "p_owner", OWNER);
	pg_call_text(c, "p_app", "bench");
	pg_call_text(c, "p_session", session);
	pg_call_null(c, "p_shard", PG_INT4);
	pg_call_text(c, "p_sync", "local");
	pg_call_int(c, "p_create", PG_BOOL, 0);
	pg_call_int(c, "p_revive", PG_BOOL, 0);
	pg_call_int(c, "p_retry", PG_BOOL, 0);
	x->revision = pg_call_int(c, "p_revision", PG_INT8, 0);
	pg_call_int(c, "p_created", PG_INT8, created);
	pg_call_int(c, "p_mark", PG_INT8, mark);
	pg_call_array(c, "p_lookup", PG_TEXTS, 0, NULL, 0);
	x->first = pg_call_int(c, "p_first", PG_INT8, 0);
	x->id = pg_call_array(c, "p_ids", PG_TEXTS, 1, "01900000-0000-7000-8000-000000000000", 36);
	pg_call_array(c, "p_parents", PG_INT8S, 1, parent, 8);
	pg_call_array(c, "p_kinds", PG_INT4S, 1, kind, 4);
	pg_call_array(c, "p_bodies", PG_BYTEAS, 1, PQgetvalue(r, 0, body),
	              (size_t)PQgetlength(r, 0, body));
	x->next = pg_call_int(c, "p_next", PG_INT8, 0);
	pg_call_int(c, "p_next_mark", PG_INT8, mark);
	pg_call_bytes(c, "p_head", PG_BYTEA, PQgetvalue(r, 0, head),
	              (size_t)PQgetlength(r, 0, head));
	pg_call_int(c, "p_modified", PG_INT8, pg_get_int(r, 0, "modified"));
	pg_call_int(c, "p_ttl", PG_INT8, 0);
	pg_call_int(c, "p_grace", PG_INT8, 0);
	pg_call_null(c, "p_state", PG_BYTEA);
	pg_call_null(c, "p_source", PG_TEXT);
	pg_call_array(c, "p_links", PG_TEXTS, 0, NULL, 0);
	pg_call_array(c, "p_bases", PG_INT8S, 0, NULL, 0);
	pg_call_array(c, "p_keys", PG_BYTEAS, 0, NULL, 0);
	pg_call_array(c, "p_values", PG_BYTEAS, 0, NULL, 0);
	pg_call_int(c, "p_most", PG_INT8, SHEAF_STATE_BYTES_MAX);
	PQclear(r);
	pg_call_prepare(c, p, "append");
}

static void bare_append_run(bare_append *x, PGconn *conn)
{
	char digits[13];
	pg_put_i64(x->revision, x->at);
	pg_put_i64(x->first, x->at + 1);
	pg_put_i64(x->next, x->at + 1);
	snprintf(digits, sizeof(digits), "%012llx", (unsigned long long)++x->at);
	memcpy(x->id + 24, digits, 12);
	PGresult *r = pg_call_run(&x->call, conn);
	if (pg_get_int(r, 0, "o_status") != 0)
		bench_check(SHEAF_STALE, NULL, "the bare append");
	PQclear(r);
}

int bench_pg_append(bench *b)
{
	enum {
		ROUNDS = 4000
	};
	size_t rounds = b->quick ? 600 : ROUNDS;
	static double ours[ROUNDS], theirs[ROUNDS];
	pg_side p;
	bare_append x = {.at = 0};

	if (!pg_side_open(&p, "pg-append", "ba_"))
		return 0;
	bare_append_make(&x, &p, "bare");
	sheaf_session *s = open_session(p.store, "ours");
	for (int i = 0; i < 50; i++) { /* plans and caches settle */
		append_one(s);
		bare_append_run(&x, p.bare);
	}
	for (size_t i = 0; i < rounds; i++)
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++) {
			double t = bench_now_us();
			if (k ^ first)
				append_one(s);
			else
				bare_append_run(&x, p.bare);
			*((k ^ first) ? &ours[i] : &theirs[i]) = bench_now_us() - t;
		}
	bench_report(b, "pg-append", bench_median(ours, rounds), "us", bench_median(theirs, rounds),
	             1.10, false);
	sheaf_session_close(s);
	pg_call_free(&x.call);
	pg_side_close(&p);
	return 0;
}

#define BATCH 10

static void append_batch(sheaf_session *s)
{
	sheaf_batch *batch = sheaf_batch_new();
	sheaf_error err;
	for (int i = 0; i < BATCH; i++) {
		sheaf_message *m = sheaf_message_new("user");
		sheaf_message_text(m, (sheaf_str){bench_text(), BENCH_TEXT});
		bench_check(sheaf_batch_message(batch, m, NULL, &err), &err, "add to a batch");
		sheaf_message_free(m);
	}
	bench_check(sheaf_session_append_batch(s, batch, NULL, NULL, &err), &err, "append a batch");
	sheaf_batch_free(batch);
}

int bench_pg_batch(bench *b)
{
	enum {
		ROUNDS = 1000
	};
	size_t rounds = b->quick ? 100 : ROUNDS;
	static double batches[ROUNDS], singles[ROUNDS];
	pg_side p;

	if (!pg_side_open(&p, "pg-batch", "bb_"))
		return 0;
	sheaf_session *many = open_session(p.store, "batches"),
		      *one = open_session(p.store, "singles");
	for (size_t i = 0; i < rounds; i++)
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++) {
			double t = bench_now_us();
			if (k ^ first)
				append_batch(many);
			for (int j = 0; j < BATCH && !(k ^ first); j++)
				append_one(one);
			*((k ^ first) ? &batches[i] : &singles[i]) = bench_now_us() - t;
		}
	bench_report(b, "pg-batch", BATCH * 1e6 / bench_median(batches, rounds), "records/s",
	             BATCH * 1e6 / bench_median(singles, rounds), 5, true);
	sheaf_session_close(many);
	sheaf_session_close(one);
	pg_side_close(&p);
	return 0;
}

/* ---- The tail ------------------------------------------------------------------------------- */

#define TAIL 200
#define LOG 2000

/* The module's own table, for the slot that core calls. */
typedef struct module {
	const sheaf_store_ops *ops;
	void *backend;
} module;

static sheaf_str option_of(const void *url, const char *name)
{
	return strcmp(name, "prefix") == 0 ? sheaf_str_of(url) : (sheaf_str){NULL, 0};
}

static void module_open(module *m, const pg_side *p)
{
	Dl_info self;
	char path[4200];
	sheaf_error err;
	sheaf_store_options options = SHEAF_STORE_OPTIONS_INIT;
	const char *url = strchr(getenv("SHEAF_TEST_POSTGRES_ROLE"), ':') + 1;
	/* POSIX wants the cast between pointers to functions and to objects; ISO C has none. */
	union {
		int (*function)(sheaf_store **, const char *, const sheaf_store_options *,
		                sheaf_error *);
		void *address;
	} library = {.function = sheaf_open};
	if (!dladdr(library.address, &self))
		exit(1);
	snprintf(path, sizeof(path), "%.*s/sheaf/postgres.so",
	         (int)(strrchr(self.dli_fname, '/') - self.dli_fname), self.dli_fname);
	void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	m->ops = loaded ? dlsym(loaded, "sheaf_store_module") : NULL;
	if (!m->ops)
		bench_check(SHEAF_UNSUPPORTED, NULL, path);
	bench_check(
		m->ops->open(&m->backend, sheaf_str_of(url), &options, option_of, p->prefix, &err),
		&err, "open the module");
}

static void bare_scan_make(pg_call *c, const pg_side *p)
{
	pg_call_text(c, "p_owner", OWNER);
	pg_call_text(c, "p_app", "bench");
	pg_call_text(c, "p_session", "tail");
	pg_call_null(c, "p_shard", PG_INT4);
	pg_call_int(c, "p_low", PG_INT8, 0);
	pg_call_int(c, "p_high", PG_INT8, INT64_MAX / 2);
	pg_call_int(c, "p_span", PG_INT8, 256);
	pg_call_int(c, "p_kinds", PG_INT8, -1);
	pg_call_int(c, "p_backward", PG_BOOL, 1);
	pg_call_int(c, "p_limit", PG_INT4, TAIL);
	pg_call_int(c, "p_bytes", PG_INT8, 1 << 22);
	pg_call_int(c, "p_head", PG_BOOL, 0);
	pg_call_prepare(c, p, "scan");
}

static volatile uint64_t sink;

static void touch(sheaf_str s)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < s.len; i += 64)
		sum += (unsigned char)s.ptr[i];
	sink += sum;
}

/* The lines of an answer: every one is seen, and with `docs` parsed and kept. */
static double bare_read(const pg_call *c, PGconn *conn, yyjson_doc **docs)
{
	size_t n = 0;
	double t = bench_now_us();
	PGresult *r = pg_call_run(c, conn);
	int column = PQfnumber(r, "o_body");
	for (int i = 0; i < PQntuples(r); i++) {
		if (PQgetisnull(r, i, column))
			continue;
		sheaf_str line = {PQgetvalue(r, i, column) + 1,
		                  (size_t)PQgetlength(r, i, column) - 1};
		if (line.ptr[-1] != 0)
			bench_check(SHEAF_FORMAT, NULL, "a plain body");
		if (docs) {
			docs[n] = yyjson_read(line.ptr, line.len, 0);
			yyjson_val *m = yyjson_obj_get(yyjson_doc_get_root(docs[n]), "message");
			yyjson_val *part = yyjson_arr_get_first(yyjson_obj_get(m, "content"));
			yyjson_val *text = yyjson_obj_get(yyjson_obj_get(part, "text"), "content");
			touch((sheaf_str){yyjson_get_str(text), yyjson_get_len(text)});
		} else {
			touch(line);
		}
		n++;
	}
	if (n != TAIL)
		bench_check(SHEAF_NOT_FOUND, NULL, "the bare tail");
	PQclear(r);
	for (size_t i = 0; docs && i < n; i++)
		yyjson_doc_free(docs[i]);
	return bench_now_us() - t;
}

static int take_row(void *ctx, const sheaf_row *row)
{
	touch(row->bytes);
	++*(size_t *)ctx;
	return row->damaged ? SHEAF_DAMAGED : 0;
}

static double scan_once(const module *m)
{
	sheaf_store_key key = {sheaf_str_of(OWNER), sheaf_str_of("bench"), sheaf_str_of("user"),
	                       sheaf_str_of("tail")};
	sheaf_scan scan = {.size = sizeof(scan),
	                   .from = UINT64_MAX,
	                   .backward = 1,
	                   .limit = TAIL,
	                   .kinds = UINT64_MAX};
	size_t rows = 0;
	sheaf_error err;
	double t = bench_now_us();
	bench_check(m->ops->scan(m->backend, &key, &scan, take_row, &rows, &err), &err, "scan");
	t = bench_now_us() - t;
	if (rows != TAIL)
		bench_check(SHEAF_NOT_FOUND, NULL, "scan the tail");
	return t;
}

static double typed_once(sheaf_session *s)
{
	sheaf_read_options o = SHEAF_READ_OPTIONS_INIT;
	sheaf_records *r;
	sheaf_error err;
	o.newest = 1;
	o.limit = TAIL;
	double t = bench_now_us();
	bench_check(sheaf_session_records(&r, s, &o, &err), &err, "read");
	if (r->count != TAIL)
		bench_check(SHEAF_NOT_FOUND, NULL, "read the tail");
	for (size_t i = 0; i < r->count; i++)
		touch(r->items[i]->message->parts[0]->text);
	sheaf_records_free(r);
	return bench_now_us() - t;
}

/* A log whose tail is read. */
static bool tail_open(pg_side *p, const char *name, sheaf_session **s, pg_call *c)
{
	if (!pg_side_open(p, name, "bt_"))
		return false;
	*s = open_session(p->store, "tail");
	for (int i = 0; i < LOG / BATCH; i++)
		append_batch(*s);
	pg_run(p, "VACUUM ANALYZE @record, @session");
	bare_scan_make(c, p);
	return true;
}

int bench_pg_tail(bench *b)
{
	enum {
		ROUNDS = 1000
	};
	size_t rounds = b->quick ? 200 : ROUNDS;
	static double ours[ROUNDS], theirs[ROUNDS];
	pg_side p;
	sheaf_session *s;
	pg_call c = {.count = 0};
	module m;

	if (!tail_open(&p, "pg-tail", &s, &c))
		return 0;
	module_open(&m, &p);
	for (int i = 0; i < 20; i++) {
		scan_once(&m);
		bare_read(&c, p.bare, NULL);
	}
	for (size_t i = 0; i < rounds; i++)
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++) {
			if (k ^ first)
				ours[i] = scan_once(&m);
			else
				theirs[i] = bare_read(&c, p.bare, NULL);
		}
	bench_report(b, "pg-tail", bench_median(ours, rounds), "us", bench_median(theirs, rounds),
	             1.25, false);
	m.ops->close(m.backend);
	sheaf_session_close(s);
	pg_call_free(&c);
	pg_side_close(&p);
	return 0;
}

int bench_pg_tail_typed(bench *b)
{
	enum {
		ROUNDS = 1000
	};
	size_t rounds = b->quick ? 200 : ROUNDS;
	static double ours[ROUNDS], theirs[ROUNDS];
	pg_side p;
	sheaf_session *s;
	pg_call c = {.count = 0};
	yyjson_doc *docs[TAIL];

	if (!tail_open(&p, "pg-tail-typed", &s, &c))
		return 0;
	for (int i = 0; i < 20; i++) {
		typed_once(s);
		bare_read(&c, p.bare, docs);
	}
	for (size_t i = 0; i < rounds; i++)
		for (int k = 0, first = (int)(bench_random() & 1); k < 2; k++) {
			if (k ^ first)
				ours[i] = typed_once(s);
			else
				theirs[i] = bare_read(&c, p.bare, docs);
		}
	bench_report(b, "pg-tail-typed", bench_median(ours, rounds), "us",
	             bench_median(theirs, rounds), 1.1, false);
	sheaf_session_close(s);
	pg_call_free(&c);
	pg_side_close(&p);
	return 0;
}
