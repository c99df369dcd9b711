/* A store on one database: opening it, and the table of `postgres:`. */
#include "base/mem.h"
#include "store/postgres.h"

#ifndef SHEAF_POSTGRES_SHARDS

static int postgres_open(void **backend, sheaf_str rest, const sheaf_store_options *options,
                         pg_option_fn option, const void *url, sheaf_error *err)
{
	pg_server *s = mem_zalloc(sizeof(*s));
	if (s == NULL)
		return err_nomem(err);
	int rc = pg_server_init(s, rest, options, option, url, err);
	if (rc == 0)
		rc = pg_prepare_server(s, str_is(option(url, "migrate"), "1"), err);
	if (rc != 0) {
		pg_server_free(s);
		mem_free(s);
		return rc;
	}
	*backend = s;
	return 0;
}

static void postgres_close(void *backend)
{
	pg_server *s = backend;
	pg_server_free(s);
	mem_free(s);
}

static void postgres_describe(void *backend, sheaf_store_info *out)
{
	const pg_server *s = backend;
	out->durability = s->durability_max < SHEAF_DURABILITY_DISK ? s->durability_max
	                                                            : SHEAF_DURABILITY_DISK;
	out->durability_max = s->durability_max;
	out->lists_app = 1;
	out->remote = 1;
}

static pg_place here(void *backend)
{
	return (pg_place){backend, -1};
}

static int postgres_head(void *backend, const sheaf_store_key *key, UNUSED int write,
                         sheaf_head *out, sheaf_head_state *state, sheaf_error *err)
{
	return pg_head(here(backend), key, out, state, err);
}

static int postgres_append(void *backend, const sheaf_store_key *key,
                           const sheaf_append_request *request, sheaf_append_reply *reply,
                           sheaf_error *err)
{
	return pg_append(here(backend), key, request, reply, err);
}

static int postgres_scan(void *backend, const sheaf_store_key *key, const sheaf_scan *scan,
                         sheaf_row_fn fn, void *ctx, sheaf_error *err)
{
	return pg_scan(here(backend), key, scan, fn, ctx, err);
}

static int postgres_read(void *backend, const sheaf_store_key *key, const sheaf_scan *scan,
                         sheaf_head *out, sheaf_head_state *state, sheaf_row_fn fn, void *ctx,
                         sheaf_error *err)
{
	return pg_read(here(backend), key, scan, out, state, fn, ctx, err);
}

static int postgres_find(void *backend, const sheaf_store_key *key, sheaf_str id, uint64_t *seq,
                         sheaf_error *err)
{
	return pg_find(here(backend), key, id, seq, err);
}

static int postgres_header(void *backend, const sheaf_store_key *key, sheaf_row_fn fn, void *ctx,
                           sheaf_error *err)
{
	return pg_header(here(backend), key, fn, ctx, err);
}

static int postgres_list(void *backend, const sheaf_list_query *query, sheaf_info_fn fn, void *ctx,
                         sheaf_error *err)
{
	return pg_list(here(backend), query, fn, ctx, err);
}

static int postgres_remove(void *backend, const sheaf_store_key *key,
                           const sheaf_remove_request *request, sheaf_remove_reply *reply,
                           sheaf_error *err)
{
	return pg_remove(here(backend), key, request, reply, err);
}

static int postgres_replace(void *backend, const sheaf_store_key *key, uint64_t revision,
                            sheaf_rows_fn next, void *ctx, int64_t deadline_us, sheaf_error *err)
{
	return pg_replace(here(backend), key, revision, next, ctx, deadline_us, err);
}

static int postgres_check(void *backend, const sheaf_store_key *key, sheaf_problem_fn fn, void *ctx,
                          sheaf_check_totals *totals, sheaf_error *err)
{
	return pg_check(here(backend), key, fn, ctx, totals, err);
}

static int postgres_state_read(void *backend, sheaf_str scope, int app, sheaf_state_fn fn,
                               void *ctx, sheaf_error *err)
{
	return pg_state_read(here(backend), scope, app, fn, ctx, err);
}

static int postgres_state_apply(void *backend, sheaf_str app, const sheaf_state_item *items,
                                size_t count, int64_t deadline_us, sheaf_error *err)
{
	return pg_state_apply(here(backend), app, items, count, deadline_us, err);
}

static int postgres_queue_put(void *backend, const sheaf_store_key *key, const sheaf_queue_row *row,
                              int64_t deadline_us, int32_t *existed, sheaf_error *err)
{
	return pg_queue_put(here(backend), key, row, deadline_us, existed, err);
}

static int postgres_queue_claim(void *backend, const sheaf_store_key *key, const sheaf_claim *claim,
                                sheaf_queue_fn fn, void *ctx, sheaf_error *err)
{
	return pg_queue_claim(here(backend), key, claim, fn, ctx, err);
}

static int postgres_queue_ack(void *backend, const sheaf_store_key *key, sheaf_str token,
                              int64_t deadline_us, size_t *count, sheaf_error *err)
{
	return pg_queue_ack(here(backend), key, token, deadline_us, count, err);
}

static int postgres_queue_cancel(void *backend, const sheaf_store_key *key, sheaf_str id,
                                 int64_t deadline_us, int32_t *existed, sheaf_error *err)
{
	return pg_queue_cancel(here(backend), key, id, deadline_us, existed, err);
}

static int postgres_queue_list(void *backend, const sheaf_store_key *key, sheaf_queue_fn fn,
                               void *ctx, sheaf_error *err)
{
	return pg_queue_list(here(backend), key, fn, ctx, err);
}

static int postgres_migrate(sheaf_str rest, const sheaf_store_options *options, pg_option_fn option,
                            const void *url, int print, sheaf_text_fn fn, void *ctx,
                            sheaf_error *err)
{
	pg_server s;
	int rc = pg_server_init(&s, rest, options, option, url, err);
	if (rc == 0)
		rc = pg_migrate(&s, print, fn, ctx, err);
	pg_server_free(&s);
	return rc;
}

SHEAF_API const sheaf_store_ops sheaf_store_module = {
	.size = sizeof(sheaf_store_ops),
	.scheme = "postgres",
	.open = postgres_open,
	.option_names = pg_option_names,
	.close = postgres_close,
	.describe = postgres_describe,
	.head = postgres_head,
	.append = postgres_append,
	.scan = postgres_scan,
	.find = postgres_find,
	.header = postgres_header,
	.list = postgres_list,
	.remove = postgres_remove,
	.replace = postgres_replace,
	.check = postgres_check,
	.state_read = postgres_state_read,
	.state_apply = postgres_state_apply,
	.queue_put = postgres_queue_put,
	.queue_claim = postgres_queue_claim,
	.queue_ack = postgres_queue_ack,
	.queue_cancel = postgres_queue_cancel,
	.queue_list = postgres_queue_list,
	.migrate = postgres_migrate,
	.read = postgres_read,
};

#endif
