/* Connections to Redis servers: made and greeted here, kept in a small pool for each node. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include "base/clock.h"
#include "store/redis.h"

#define SECOND_US INT64_C(1000000)
#define CONNECT_MOST_US (3 * SECOND_US)
#define TIMEOUT_LEAST_US 1000

uint16_t redis_node(rstore *s, const char *host, int port)
{
	for (size_t i = 0; i < s->node_count; i++) {
		if (s->nodes[i]->port == port && strcmp(s->nodes[i]->host, host) == 0)
			return (uint16_t)i;
	}
	if (s->node_count == REDIS_NODES_MAX || strlen(host) >= REDIS_HOST_ROOM)
		return REDIS_NO_NODE;
	rnode *node = mem_zalloc(sizeof(*node));
	if (node == NULL)
		return REDIS_NO_NODE;
	str_copy_cut(node->host, sizeof(node->host), sheaf_str_of(host));
	node->port = port;
	s->nodes[s->node_count] = node;
	return (uint16_t)s->node_count++;
}

/* ---- One connection ----------------------------------------------------------- */

static struct timeval time_of(int64_t us)
{
	return (struct timeval){.tv_sec = us / SECOND_US, .tv_usec = us % SECOND_US};
}

/* Setting it costs two system calls, so a wait that is about right stays. */
void rconn_until(rconn *conn, int64_t deadline_us)
{
	int64_t left = deadline_us - clock_monotonic_us();
	if (left < TIMEOUT_LEAST_US)
		left = TIMEOUT_LEAST_US;
	if (left > 3600 * SECOND_US)
		left = 3600 * SECOND_US;
	int64_t off = left - conn->timeout_us;
	if (off > -SECOND_US / 10 && off < SECOND_US && left > SECOND_US)
		return;
	(void)redisSetTimeout(conn->c, time_of(left));
	conn->timeout_us = left;
}

/* Not by hiredis, which would copy the bytes and raise SIGPIPE. */
bool rconn_send(rconn *conn, const char *bytes, size_t len, bool *sent)
{
	while (len != 0) {
		ssize_t n = send(conn->c->fd, bytes, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			conn->c->err = REDIS_ERR_IO;
			return false;
		}
		*sent = true;
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

redisReply *rconn_reply(rconn *conn)
{
	void *reply = NULL;
	if (conn->c->err != 0 || redisGetReply(conn->c, &reply) != REDIS_OK)
		return NULL;
	return reply;
}

void rconn_free(rconn *conn)
{
	if (conn == NULL)
		return;
	redisFree(conn->c);
	mem_free(conn);
}

/* ---- The greeting ---------------------------------------------------------------- */

/* The value of "name:" in the text of INFO. */
static sheaf_str info_value(const redisReply *info, const char *name)
{
	size_t len = strlen(name);
	const char *at = info->str, *end = info->str + info->len;
	while (at < end) {
		const char *stop = memchr(at, '\r', (size_t)(end - at));
		if (stop == NULL)
			stop = end;
		if ((size_t)(stop - at) > len && memcmp(at, name, len) == 0 && at[len] == ':')
			return str_make(at + len + 1, (size_t)(stop - at) - len - 1);
		at = stop + (stop < end ? 2 : 0);
	}
	return str_make("", 0);
}

static int refuse(const redisReply *reply, sheaf_error *err)
{
	sheaf_str said = str_make(reply->str, reply->len);
	if (str_starts(said, "NOAUTH") || str_starts(said, "WRONGPASS") ||
	    str_starts(said, "NOPERM") || str_starts(said, "ERR AUTH") ||
	    str_starts(said, "ERR invalid password"))
		return err_set(err, SHEAF_DENIED, "the redis server says: %s", reply->str);
	if (str_starts(said, "LOADING"))
		return err_set(err, SHEAF_BUSY, "the redis server is loading its data");
	return err_set(err, SHEAF_STORAGE, "the redis server says: %s", reply->str);
}

static int take_info(rconn *conn, const redisReply *info, sheaf_error *err)
{
	/* It answers INFO then, but says that it keeps no log. */
	if (str_is(info_value(info, "loading"), "1"))
		return err_set(err, SHEAF_BUSY, "the redis server is loading its data");
	sheaf_str policy = info_value(info, "maxmemory_policy");
	if (policy.len != 0 && !str_is(policy, "noeviction")) {
		int rc = err_set(err, SHEAF_UNSUPPORTED,
		                 "the redis server may evict keys (maxmemory-policy %.*s)",
		                 (int)policy.len, policy.ptr);
		err_hint(err, "set maxmemory-policy to noeviction");
		return rc;
	}
	conn->disk = str_is(info_value(info, "aof_enabled"), "1");
	sheaf_str replicas = info_value(info, "connected_slaves");
	conn->replicas = replicas.len != 0 ? strtol(replicas.ptr, NULL, 10) : 0;
	conn->cluster = str_is(info_value(info, "cluster_enabled"), "1");
	/* A replica would answer reads, with what its primary said a while ago. */
	if (!conn->cluster && !str_is(info_value(info, "role"), "master"))
		return err_set(err, SHEAF_STORAGE, "the redis server is a replica");
	return 0;
}

/* Whether a write is on disk when it is answered can be asked only where CONFIG is allowed. */
static void take_fsync(const rstore *s, rconn *conn, const redisReply *reply)
{
	bool always = false, pauses = false;
	for (size_t i = 0; i + 1 < reply->elements; i += 2) {
		sheaf_str name = reply_str(reply, i), value = reply_str(reply, i + 1);
		always = always || (str_is(name, "appendfsync") && str_is(value, "always"));
		/* While it saves or rewrites its log, such a server does not sync at all. */
		pauses = pauses ||
		         (str_is(name, "no-appendfsync-on-rewrite") && !str_is(value, "no"));
	}
	if (reply->type == REDIS_REPLY_ERROR && s->assume_disk)
		conn->disk = true;
	else
		conn->disk = conn->disk && always && !pauses;
}

enum {
	GREET_AUTH,
	GREET_SELECT,
	GREET_INFO,
	GREET_FSYNC
};

static int take_greeting(const rstore *s, rconn *conn, int what, const redisReply *reply,
                         sheaf_error *err)
{
	if (what == GREET_FSYNC) {
		take_fsync(s, conn, reply);
		return 0;
	}
	if (reply->type == REDIS_REPLY_ERROR)
		return refuse(reply, err);
	return what == GREET_INFO ? take_info(conn, reply, err) : 0;
}

static int broken(const rnode *node, const redisContext *c, sheaf_error *err)
{
	return err_set(err, SHEAF_STORAGE, "no connection to the redis server %s:%d: %s",
	               node->host, node->port, c != NULL && c->errstr[0] ? c->errstr : "lost");
}

/* Who we are and what the server promises, in one round trip. */
static int greet(const rstore *s, rconn *conn, const rnode *node, sheaf_error *err)
{
	int asked[4];
	size_t count = 0;
	rcmd one[4];
	if (s->password != NULL) {
		rcmd_begin(&one[count]);
		rcmd_text(&one[count], "AUTH");
		if (s->user != NULL)
			rcmd_text(&one[count], s->user);
		rcmd_text(&one[count], s->password);
		asked[count++] = GREET_AUTH;
	}
	if (s->db != 0) {
		rcmd_begin(&one[count]);
		rcmd_text(&one[count], "SELECT");
		rcmd_i64(&one[count], s->db);
		asked[count++] = GREET_SELECT;
	}
	rcmd_begin(&one[count]);
	static const char *const info[] = {"INFO", "memory", "persistence", "replication",
	                                   "cluster"};
	for (size_t i = 0; i < COUNT_OF(info); i++)
		rcmd_text(&one[count], info[i]);
	asked[count++] = GREET_INFO;
	rcmd_begin(&one[count]);
	static const char *const fsync[] = {"CONFIG", "GET", "appendfsync",
	                                    "no-appendfsync-on-rewrite"};
	for (size_t i = 0; i < COUNT_OF(fsync); i++)
		rcmd_text(&one[count], fsync[i]);
	asked[count++] = GREET_FSYNC;

	int rc = 0;
	bool sent = false;
	for (size_t i = 0; i < count; i++) {
		sheaf_str bytes = rcmd_bytes(&one[i]);
		if (bytes.ptr == NULL)
			rc = err_nomem(err);
		else if (rc == 0 && !rconn_send(conn, bytes.ptr, bytes.len, &sent))
			rc = broken(node, conn->c, err);
		rcmd_free(&one[i]);
	}
	for (size_t i = 0; rc == 0 && i < count; i++) {
		_cleanup_(redis_reply_free) redisReply *reply = rconn_reply(conn);
		rc = reply == NULL ? broken(node, conn->c, err)
		                   : take_greeting(s, conn, asked[i], reply, err);
	}
	return rc;
}

int rconn_new(rstore *s, uint16_t at, int64_t deadline_us, rconn **out, sheaf_error *err)
{
	const rnode *node = s->nodes[at];
	int64_t left = deadline_us - clock_monotonic_us();
	if (left > CONNECT_MOST_US)
		left = CONNECT_MOST_US;
	if (left < TIMEOUT_LEAST_US)
		left = TIMEOUT_LEAST_US;
	rconn *conn = mem_zalloc(sizeof(*conn));
	if (conn == NULL)
		return err_nomem(err);
	conn->node = at;
	conn->c = redisConnectWithTimeout(node->host, node->port, time_of(left));
	int rc = 0;
	if (conn->c == NULL)
		rc = err_nomem(err);
	else if (conn->c->err != 0)
		rc = broken(node, conn->c, err);
	if (rc == 0) {
		(void)redisEnableKeepAlive(conn->c);
		rconn_until(conn, clock_monotonic_us() + CONNECT_MOST_US);
		rc = greet(s, conn, node, err);
	}
	if (rc != 0) {
		if (conn->c != NULL)
			redisFree(conn->c);
		mem_free(conn);
		return rc;
	}
	*out = conn;
	return 0;
}

/* ---- The pool ------------------------------------------------------------------------ */

static struct timespec timespec_of(int64_t us)
{
	return (struct timespec){.tv_sec = us / SECOND_US, .tv_nsec = us % SECOND_US * 1000};
}

int rconn_take(rstore *s, uint16_t at, int64_t deadline_us, rconn **out, sheaf_error *err)
{
	struct timespec until = timespec_of(deadline_us);
	(void)pthread_mutex_lock(&s->mutex);
	rnode *node = s->nodes[at];
	while (node->idle == NULL && node->open >= s->pool) {
		if (pthread_cond_timedwait(&s->given, &s->mutex, &until) != 0) {
			(void)pthread_mutex_unlock(&s->mutex);
			return err_set(err, SHEAF_BUSY,
			               "all %zu connections to the server are used", s->pool);
		}
	}
	rconn *conn = node->idle;
	if (conn != NULL)
		node->idle = conn->next;
	else
		node->open++;
	(void)pthread_mutex_unlock(&s->mutex);
	if (conn != NULL) {
		*out = conn;
		return 0;
	}
	int rc = rconn_new(s, at, deadline_us, out, err);
	if (rc != 0) {
		(void)pthread_mutex_lock(&s->mutex);
		node->open--;
		(void)pthread_cond_broadcast(&s->given);
		(void)pthread_mutex_unlock(&s->mutex);
	}
	return rc;
}

void rconn_give(rstore *s, rconn *conn)
{
	bool good = conn->c->err == 0;
	(void)pthread_mutex_lock(&s->mutex);
	rnode *node = s->nodes[conn->node];
	if (good) {
		conn->next = node->idle;
		node->idle = conn;
	} else {
		node->open--;
	}
	(void)pthread_cond_broadcast(&s->given);
	(void)pthread_mutex_unlock(&s->mutex);
	if (!good)
		rconn_free(conn);
}
