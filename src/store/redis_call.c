/*
 * One call of a function: to the node that has the slot, again until the
 * deadline when that node has moved, is not ready, or does not answer.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/redis.h"

#define PAUSE_LEAST_US 1000
#define PAUSE_MOST_US 200000
#define MAP_PAUSE_US 100000
#define ASKING "*1\r\n$6\r\nASKING\r\n"

/* ---- Slots ------------------------------------------------------------------------ */

static void take_range(rstore *s, const redisReply *range, const char *asked)
{
	if (range->type != REDIS_REPLY_ARRAY || range->elements < 3)
		return;
	int64_t first = reply_i64(range, 0), last = reply_i64(range, 1);
	const redisReply *primary = range->element[2];
	sheaf_str host = reply_str(primary, 0);
	char name[REDIS_HOST_ROOM];
	/* A node that does not know its own address means the one we have. */
	str_copy_cut(name, sizeof(name), host.len != 0 ? host : sheaf_str_of(asked));
	uint16_t node = redis_node(s, name, (int)reply_i64(primary, 1));
	for (int64_t slot = first; slot >= 0 && slot <= last && slot < (int64_t)REDIS_SLOTS; slot++)
		s->slots[slot] = node;
}

static int ask_for_slots(rstore *s, uint16_t node, int64_t deadline_us, sheaf_error *err)
{
	static const char ask[] = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";
	rconn *conn = NULL;
	int rc = rconn_take(s, node, deadline_us, &conn, err);
	if (rc != 0)
		return rc;
	bool sent = false;
	rconn_until(conn, deadline_us);
	(void)rconn_send(conn, ask, sizeof(ask) - 1, &sent);
	_cleanup_(redis_reply_free) redisReply *reply = rconn_reply(conn);
	if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) {
		rc = err_set(err, SHEAF_STORAGE, "a node of the cluster does not know its slots");
	} else {
		(void)pthread_mutex_lock(&s->mutex);
		for (size_t i = 0; i < reply->elements; i++)
			take_range(s, reply->element[i], s->nodes[node]->host);
		s->mapped_us = clock_monotonic_us();
		(void)pthread_mutex_unlock(&s->mutex);
	}
	rconn_give(s, conn);
	return rc;
}

/* The first node that answers is believed: what is wrong comes out as MOVED. */
int redis_map_slots(rstore *s, int64_t deadline_us, sheaf_error *err)
{
	(void)pthread_mutex_lock(&s->mutex);
	size_t count = s->node_count;
	size_t from = (size_t)(clock_monotonic_us() / 1000) % count;
	bool fresh = s->mapped_us != 0 && clock_monotonic_us() - s->mapped_us < MAP_PAUSE_US;
	(void)pthread_mutex_unlock(&s->mutex);
	int rc = 0;
	for (size_t i = 0; !fresh && i < count; i++) {
		rc = ask_for_slots(s, (uint16_t)((from + i) % count), deadline_us, err);
		if (rc == 0 || clock_monotonic_us() >= deadline_us)
			break;
	}
	return rc;
}

uint16_t redis_node_of(rstore *s, uint16_t slot)
{
	(void)pthread_mutex_lock(&s->mutex);
	uint16_t node = s->cluster ? s->slots[slot] : s->primary;
	(void)pthread_mutex_unlock(&s->mutex);
	return node;
}

/* Where to go after a failure: the cluster is asked; without one the next of the URL's hosts may
 * be the primary by now. */
static uint16_t look_around(rstore *s, uint16_t failed, uint16_t slot, int64_t deadline_us)
{
	sheaf_error ignored;
	if (s->cluster) {
		(void)redis_map_slots(s, deadline_us, &ignored);
	} else {
		(void)pthread_mutex_lock(&s->mutex);
		if (s->primary == failed)
			s->primary = (uint16_t)((failed + 1u) % s->seed_count);
		(void)pthread_mutex_unlock(&s->mutex);
	}
	return redis_node_of(s, slot);
}

/* ---- Errors of the server -------------------------------------------------------------- */

/* What to do about an error. */
typedef enum verdict {
	FOLLOW, /* at once, where it says */
	LOAD,   /* at once, after loading the library */
	LATER,  /* again after a pause: it certainly was not done */
	REFUSED /* it certainly was not done, and will not be */,
	BROKEN /* who knows */
} verdict;

typedef struct attempt {
	rstore *s;
	rcmd *cmd;
	rcall *how;
	int64_t deadline_us;
	uint16_t node;
	bool asking;
	bool open; /* an answer was lost: it may have been done */
	bool pause;
	unsigned pauses;
} attempt;

/* "MOVED 1234 host:port" or "ASK …" */
static bool follow(attempt *a, const char *text)
{
	const char *space = strchr(text, ' ');
	const char *address = space != NULL ? strchr(space + 1, ' ') : NULL;
	const char *colon = address != NULL ? strrchr(address, ':') : NULL;
	if (colon == NULL)
		return false;
	char host[REDIS_HOST_ROOM];
	address++;
	(void)pthread_mutex_lock(&a->s->mutex);
	if (colon == address)
		str_copy_cut(host, sizeof(host), sheaf_str_of(a->s->nodes[a->node]->host));
	else
		str_copy_cut(host, sizeof(host), str_make(address, (size_t)(colon - address)));
	uint16_t node = redis_node(a->s, host, (int)strtol(colon + 1, NULL, 10));
	bool moved = text[0] == 'M';
	if (moved && node != REDIS_NO_NODE)
		a->s->slots[a->cmd->slot] = node;
	(void)pthread_mutex_unlock(&a->s->mutex);
	a->node = node;
	a->asking = !moved;
	return node != REDIS_NO_NODE;
}

static verdict judge(attempt *a, const redisReply *reply, sheaf_error *err)
{
	static const char *const later[] = {"TRYAGAIN",   "CLUSTERDOWN", "LOADING",  "READONLY",
	                                    "MASTERDOWN", "BUSY",        "UNBLOCKED"};
	static const char *const refused[] = {"OOM", "MISCONF"};
	static const char *const denied[] = {"NOAUTH", "NOPERM", "WRONGPASS"};
	sheaf_str said = str_make(reply->str, reply->len);
	if (str_starts(said, "MOVED ") || str_starts(said, "ASK "))
		return follow(a, reply->str) ? FOLLOW : LATER;
	if (str_starts(said, "ERR Function not found"))
		return LOAD;
	for (size_t i = 0; i < COUNT_OF(denied); i++) {
		if (str_starts(said, denied[i])) {
			(void)err_set(err, SHEAF_DENIED, "the redis server says: %s", reply->str);
			return REFUSED;
		}
	}
	(void)err_set(err, SHEAF_STORAGE, "the redis server says: %s", reply->str);
	for (size_t i = 0; i < COUNT_OF(later); i++) {
		if (str_starts(said, later[i]))
			return LATER;
	}
	/* A slot on its way: functions look at every key before they write. */
	if (strstr(reply->str, "non local key") != NULL)
		return LATER;
	for (size_t i = 0; i < COUNT_OF(refused); i++) {
		if (str_starts(said, refused[i]))
			return REFUSED;
	}
	return BROKEN;
}

static int load_library(rconn *conn, sheaf_error *err)
{
	_cleanup_(rcmd_free) rcmd load;
	rcmd_begin(&load);
	rcmd_text(&load, "FUNCTION");
	rcmd_text(&load, "LOAD");
	rcmd_arg(&load, str_make((const char *)redis_library_text, redis_library_len));
	sheaf_str bytes = rcmd_bytes(&load);
	bool sent = false;
	if (bytes.ptr == NULL)
		return err_nomem(err);
	(void)rconn_send(conn, bytes.ptr, bytes.len, &sent);
	_cleanup_(redis_reply_free) redisReply *reply = rconn_reply(conn);
	if (reply == NULL)
		return 0; /* the next attempt sees what is wrong */
	/* Somebody else was faster: as good. */
	if (reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "already exists") == NULL) {
		int rc = err_set(
			err, strncmp(reply->str, "NOPERM", 6) == 0 ? SHEAF_DENIED : SHEAF_STORAGE,
			"the library of functions was not loaded: %s", reply->str);
		err_hint(err, "Redis 7 or Valkey is needed, and the right to FUNCTION LOAD");
		return rc;
	}
	return 0;
}

/* ---- One attempt -------------------------------------------------------------------------- */

static bool send_wait(rconn *conn, int64_t deadline_us, bool *sent)
{
	int64_t left_ms = (deadline_us - clock_monotonic_us()) / 1000;
	char digits[24], text[96];
	(void)snprintf(digits, sizeof(digits), "%lld", (long long)(left_ms > 1 ? left_ms : 1));
	int len = snprintf(text, sizeof(text), "*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$%zu\r\n%s\r\n",
	                   strlen(digits), digits);
	return rconn_send(conn, text, (size_t)len, sent);
}

static int too_few(sheaf_error *err)
{
	int rc = err_set(err, SHEAF_TIMEOUT, "no replica has confirmed the write in time");
	return err_unknown(err, rc);
}

/* Sends and receives: 1 with an answer in *out, 0 if the connection failed, or a failure. */
static int exchange(attempt *a, rconn *conn, redisReply **out, sheaf_error *err)
{
	sheaf_str bytes = rcmd_bytes(a->cmd);
	bool wait = a->how->durability == SHEAF_DURABILITY_REPLICA, sent = false, unused;
	if (bytes.ptr == NULL)
		return err_set(err, a->cmd->bytes.status, "the command does not fit into memory");
	if (a->how->durability == SHEAF_DURABILITY_DISK && !conn->disk) {
		int rc = err_set(err, SHEAF_UNSUPPORTED,
		                 "the redis server does not sync before it answers");
		err_hint(err, "appendonly yes and appendfsync always, or ask for less");
		return rc;
	}
	rconn_until(conn, a->deadline_us);
	if (a->asking)
		(void)rconn_send(conn, ASKING, sizeof(ASKING) - 1, &unused);
	(void)rconn_send(conn, bytes.ptr, bytes.len, &sent);
	if (wait)
		(void)send_wait(conn, a->deadline_us, &unused);
	if (a->asking) {
		redisReply *ok = rconn_reply(conn);
		redis_reply_free(&ok);
	}
	*out = rconn_reply(conn);
	if (*out == NULL) {
		a->open = a->open || (sent && a->how->write);
		return 0;
	}
	a->how->reached = conn->disk ? SHEAF_DURABILITY_DISK : SHEAF_DURABILITY_PROCESS;
	if (!wait)
		return 1;
	_cleanup_(redis_reply_free) redisReply *acks = rconn_reply(conn);
	/* Only what was written, or found to be there, is waited for. */
	if ((*out)->type != REDIS_REPLY_ARRAY || reply_code(*out) > ANSWER_KNOWN)
		return 1;
	if (acks == NULL || acks->type != REDIS_REPLY_INTEGER || acks->integer < 1)
		return too_few(err);
	a->how->reached = SHEAF_DURABILITY_REPLICA;
	return 1;
}

/* 1 with an answer, 0 to try again, or a failure. */
static int try_once(attempt *a, redisReply **out, sheaf_error *err)
{
	rconn *conn = NULL;
	a->pause = true;
	int rc = rconn_take(a->s, a->node, a->deadline_us, &conn, err);
	if (rc == SHEAF_STORAGE || (rc == SHEAF_BUSY && clock_monotonic_us() < a->deadline_us))
		return 0; /* nobody is there, or not ready */
	if (rc != 0)
		return rc;
	_cleanup_(redis_reply_free) redisReply *reply = NULL;
	rc = exchange(a, conn, &reply, err);
	a->asking = false;
	if (rc == 0) {
		(void)err_set(err, SHEAF_STORAGE, "the connection to the redis server broke");
	} else if (rc > 0 && reply->type == REDIS_REPLY_ERROR) {
		verdict v = judge(a, reply, err);
		rc = 0;
		a->pause = v == LATER;
		if (v == LOAD)
			rc = load_library(conn, err);
		else if (v == REFUSED || v == BROKEN)
			rc = err->code;
		if (v == BROKEN && a->how->write)
			a->open = true;
		/* A primary that has become a replica: somebody else is the primary now. */
		if (v == LATER && !a->s->cluster && strncmp(reply->str, "READONLY", 8) == 0)
			conn->c->err = REDIS_ERR_OTHER;
	}
	rconn_give(a->s, conn);
	if (rc > 0) {
		*out = reply;
		reply = NULL;
	}
	return rc;
}

static void pause_before(attempt *a)
{
	int64_t most = PAUSE_LEAST_US << (a->pauses < 8 ? a->pauses : 8);
	if (most > PAUSE_MOST_US)
		most = PAUSE_MOST_US;
	int64_t now = clock_monotonic_us(), left = a->deadline_us - now;
	int64_t wait = most / 2 + (now ^ now >> 7) % (most / 2 + 1);
	a->pauses++;
	if (wait > left)
		wait = left;
	if (wait > 0)
		clock_sleep_us(wait);
}

int redis_call(rstore *s, rcmd *cmd, rcall *how, redisReply **out, sheaf_error *err)
{
	attempt a = {.s = s,
	             .cmd = cmd,
	             .how = how,
	             .deadline_us = redis_deadline(s, how->deadline_us),
	             .node = redis_node_of(s, cmd->slot)};
	int rc = 0;
	for (;;) {
		if (a.node == REDIS_NO_NODE)
			rc = err_set(err, SHEAF_STORAGE, "no node of the cluster has the slot");
		else
			rc = try_once(&a, out, err);
		if (rc > 0)
			break;
		if (rc < 0 && a.node != REDIS_NO_NODE)
			return a.open ? err_unknown(err, rc) : rc;
		/* From now on it may be there already. */
		if (a.open && cmd->repeat_at != 0)
			cmd->bytes.ptr[cmd->repeat_at] = '1';
		how->repeated = how->repeated || a.open;
		if (clock_monotonic_us() >= a.deadline_us) {
			if (err->code == 0)
				(void)err_set(err, SHEAF_TIMEOUT,
				              "the redis server did not answer in time");
			rc = err->code;
			return a.open ? err_unknown(err, rc) : rc;
		}
		if (!a.pause && a.node != REDIS_NO_NODE)
			continue;
		pause_before(&a);
		a.node = look_around(s, a.node, cmd->slot, a.deadline_us);
	}
	if ((*out)->type != REDIS_REPLY_ARRAY || (*out)->elements == 0) {
		redis_reply_free(out);
		rc = redis_strange(err);
		return how->write ? err_unknown(err, rc) : rc;
	}
	return 0;
}
