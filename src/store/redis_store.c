/* The redis module: opening a store, what it promises, and its table. */
#include <stdlib.h>

#include "base/clock.h"
#include "store/redis.h"

#define SECOND_US INT64_C(1000000)
#define DEADLINE_US (10 * SECOND_US)
#define POOL_DEFAULT 8

/* ---- Options --------------------------------------------------------------------------- */

static int take_number(sheaf_str text, const char *what, int64_t max, int64_t *out,
                       sheaf_error *err)
{
	int64_t value = 0;
	if (text.ptr == NULL)
		return 0;
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9' || value > max)
			value = max + 1;
		else
			value = value * 10 + (text.ptr[i] - '0');
	}
	if (text.len == 0 || value == 0 || value > max)
		return err_set(err, SHEAF_INVALID, "%s is a number from 1 to %lld", what,
		               (long long)max);
	*out = value;
	return 0;
}

/* It goes between the braces of every key, so it must not have any. */
static int take_prefix(rstore *s, sheaf_str text, sheaf_error *err)
{
	if (text.ptr == NULL)
		text = SHEAF_STR("sheaf:");
	bool ok = text.len <= REDIS_PREFIX_MAX;
	for (size_t i = 0; ok && i < text.len; i++) {
		char c = text.ptr[i];
		ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		     strchr("._:-", c) != NULL;
	}
	if (!ok)
		return err_set(err, SHEAF_INVALID, "a prefix is spelled [A-Za-z0-9._:-]{0,%u}",
		               REDIS_PREFIX_MAX);
	str_copy_cut(s->prefix, sizeof(s->prefix), text);
	return 0;
}

static int take_options(rstore *s, sheaf_str (*option)(const void *url, const char *name),
                        const void *url, sheaf_error *err)
{
	int64_t ttl_s = 0, pool = POOL_DEFAULT;
	sheaf_str assume = option(url, "assume");
	int rc = take_prefix(s, option(url, "prefix"), err);
	if (rc == 0)
		rc = take_number(option(url, "ttl"), "ttl", INT64_C(1000000000), &ttl_s, err);
	if (rc == 0)
		rc = take_number(option(url, "pool"), "pool", REDIS_POOL_MAX, &pool, err);
	if (rc == 0 && assume.ptr != NULL && !str_is(assume, "disk"))
		rc = err_set(err, SHEAF_INVALID, "assume can be disk");
	s->ttl_us = ttl_s * SECOND_US;
	s->pool = (size_t)pool;
	s->assume_disk = assume.ptr != NULL;
	return rc;
}

/* ---- Opening ------------------------------------------------------------------------------ */

static void redis_close(void *backend)
{
	rstore *s = backend;
	redis_listeners_free(s);
	for (size_t i = 0; i < s->node_count; i++) {
		while (s->nodes[i]->idle != NULL) {
			rconn *conn = s->nodes[i]->idle;
			s->nodes[i]->idle = conn->next;
			rconn_free(conn);
		}
		mem_free(s->nodes[i]);
	}
	(void)pthread_cond_destroy(&s->given);
	(void)pthread_mutex_destroy(&s->mutex);
	mem_free(s->user);
	mem_free(s->password);
	mem_free(s);
}

/* What every primary promises holds for the store. */
static int look_at_primary(rstore *s, uint16_t node, int64_t deadline_us, sheaf_error *err)
{
	rconn *conn = NULL;
	int rc = rconn_take(s, node, deadline_us, &conn, err);
	if (rc != 0)
		return rc;
	s->disk = s->disk && conn->disk;
	s->replicas = s->replicas && conn->replicas > 0;
	rconn_give(s, conn);
	return 0;
}

static bool is_primary(const rstore *s, uint16_t node)
{
	for (size_t slot = 0; slot < REDIS_SLOTS; slot++) {
		if (s->slots[slot] == node)
			return true;
	}
	return false;
}

/* The first of the hosts that answers says whether it is one server or a cluster. */
static int find_server(rstore *s, int64_t deadline_us, sheaf_error *err)
{
	int rc = SHEAF_BUSY;
	do {
		for (uint16_t i = 0; i < s->seed_count && rc != 0; i++) {
			rconn *conn = NULL;
			rc = rconn_take(s, i, deadline_us, &conn, err);
			if (rc != 0)
				continue;
			s->cluster = conn->cluster;
			s->primary = i;
			rconn_give(s, conn);
		}
		if (rc == SHEAF_BUSY)
			clock_sleep_us(SECOND_US / 10);
	} while (rc == SHEAF_BUSY && clock_monotonic_us() < deadline_us);
	return rc;
}

static int look_around(rstore *s, int64_t deadline_us, sheaf_error *err)
{
	int rc = find_server(s, deadline_us, err);
	if (rc == 0 && s->cluster)
		rc = redis_map_slots(s, deadline_us, err);
	if (rc == 0 && s->cluster && s->db != 0)
		rc = err_set(err, SHEAF_INVALID, "a cluster has no databases");
	s->disk = s->replicas = true;
	for (uint16_t i = 0; rc == 0 && i < s->node_count; i++) {
		if (s->cluster ? is_primary(s, i) : i == s->primary)
			rc = look_at_primary(s, i, deadline_us, err);
	}
	return rc;
}

static rstore *store_new(void)
{
	rstore *s = mem_zalloc(sizeof(*s));
	if (s == NULL)
		return NULL;
	pthread_condattr_t monotonic;
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&s->given, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
	(void)pthread_mutex_init(&s->mutex, NULL);
	memset(s->slots, 0xff, sizeof(s->slots));
	return s;
}

static int redis_open(void **backend, sheaf_str rest, const sheaf_store_options *options,
                      sheaf_str (*option)(const void *url, const char *name), const void *url,
                      sheaf_error *err)
{
	rstore *s = store_new();
	if (s == NULL)
		return err_nomem(err);
	s->deadline_us = options->deadline_us != 0 ? options->deadline_us : DEADLINE_US;
	int rc = take_options(s, option, url, err);
	if (rc == 0)
		rc = redis_url_parse(s, rest, err);
	if (rc == 0)
		rc = look_around(s, clock_monotonic_us() + s->deadline_us, err);
	if (rc == 0 && options->durability == SHEAF_DURABILITY_DISK && !s->disk) {
		rc = err_set(err, SHEAF_UNSUPPORTED,
		             "the redis server does not sync before it answers");
		err_hint(err, "appendonly yes and appendfsync always, or ask for less");
	}
	if (rc != 0) {
		redis_close(s);
		return rc;
	}
	*backend = s;
	return 0;
}

static void redis_describe(void *backend, sheaf_store_info *out)
{
	const rstore *s = backend;
	out->durability = s->disk ? SHEAF_DURABILITY_DISK : SHEAF_DURABILITY_PROCESS;
	out->durability_max = s->replicas ? SHEAF_DURABILITY_REPLICA : out->durability;
	out->lists_app = 0; /* no key knows all owners of an app, and no one node has them all */
	out->remote = 1;
}

extern const sheaf_store_ops sheaf_store_module;

SHEAF_API const sheaf_store_ops sheaf_store_module = {
	.size = sizeof(sheaf_store_ops),
	.scheme = "redis",
	.open = redis_open,
	.option_names = "prefix ttl pool assume",
	.close = redis_close,
	.describe = redis_describe,
	.head = redis_head,
	.append = redis_append,
	.scan = redis_scan,
	.find = redis_find,
	.header = redis_header,
	.list = redis_list,
	.remove = redis_remove,
	.replace = redis_replace,
	.check = redis_check,
	.state_read = redis_state_read,
	.state_apply = redis_state_apply,
	.queue_put = redis_queue_put,
	.queue_claim = redis_queue_claim,
	.queue_ack = redis_queue_ack,
	.queue_cancel = redis_queue_cancel,
	.queue_list = redis_queue_list,
	.wait = redis_wait,
};
